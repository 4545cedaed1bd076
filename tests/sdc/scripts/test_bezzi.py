"""The scripts on Bezzi 2010: what the paper prints, and no number without its check."""

from __future__ import annotations

import math
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr
from scipy.stats import entropy

import cvxprivacy as cpv
from cvxprivacy import study, style
from tests import pictures, referee
from tests.lengths import rest_at_length
from tests.public_tables import REAL
from tests.repository import ROOT, script
from tests.scripts.oracles import BITS, letters


def of_sample(path, picture, *arguments):
    """Run a script on 200 records, of which the papers need not speak true."""
    module = script(ROOT / f"{path}.py")
    out = study.run(module.study, module.report, module.draw, [*arguments, "--out", str(picture)])
    pictures.check(out.figure)
    return SimpleNamespace(module=module, result=out.result)


@pytest.mark.long
def test_script_bezzi_fig1(run):
    ran = run("figures/bezzi_fig1")
    people, defects = ran.result.people, ran.result.defects
    assert people["I1"].round(4).tolist() == [0.1255] * 10 + [0.8552] * 2
    assert people["I2"].round(4).tolist() == [0.4138] * 10 + [-0.5862] * 2
    assert ran.result.average == pytest.approx(0.2472, abs=5e-5)
    assert ran.differing == {
        "chain rule X: I1 to I4", "chain rule Y: I1 to I4",
        "I(X¹X²; Y), X¹, X² fair coins, Y their xor [bits]",
    }  # fmt: skip
    # but for I4 in Y, which the paper leaves open, each column is what is printed of the other
    here = [ran.claims[f"chain rule {letter}: I1 to I4"].here for letter in "XY"]
    printed = [ran.claims[f"chain rule {letter}: I1 to I4"].theirs for letter in "YX"]
    assert here[0][:11] == printed[0][:11] == "no, yes, no"
    assert here[1] == printed[1]
    assert ((defects < 1e-12) | (defects > 0.5)).all(axis=None)  # nothing in between
    assert ran.claims["I(X¹X²; Y), X¹, X² fair coins, Y their xor [bits]"].here == "1"


def test_defects_of_a_chain_rule_by_hand():
    """One law, its sums written out: I1 lacks what I2 has."""
    module = script(ROOT / "figures" / "bezzi_fig1.py")
    law = np.random.default_rng(3).dirichlet(np.ones(36)).reshape(2, 3, 3, 2)
    p = law.reshape(6, 3, 2)

    def divergence(part):  # D(p(y | last axis) ‖ p(y)) of masses y × x
        value, prior = part / part.sum(axis=0), part.sum(axis=1) / part.sum()
        return rel_entr(value, prior[:, None]).sum(axis=0) / BITS

    worst = max(
        abs(divergence(p.reshape(6, 6))[2 * a + b] - divergence(p.sum(axis=2))[a]
            - divergence(p[:, a])[b]) for a in range(3) for b in range(2)
    )  # fmt: skip
    assert module.defects_of(law, "I1")[1] == pytest.approx(worst, abs=1e-12)
    assert worst > 0.01
    assert module.defects_of(law, "I2")[1] < 1e-12


def checked(ran):
    """Check what tables of any size satisfy, from the records alone."""
    module, result = ran.module, ran.result
    audits, source = result.audits, result.price.deterministic.source
    assert audits["A2"].holds
    assert audits["best four"].holds
    assert all(c.holds for audit in audits.values() for c in audit.averages.values())
    assert audits["best four"].after.plugin <= result.best.information + 1e-12
    # A2 is among the minimal ones, sex alone is another and keeps more
    assert (2, 1, 1, 1) in [tuple(levels.values()) for levels in result.levels.minimal]
    assert tuple(result.levels.levels.values()) == (3, 0, 1, 1)
    assert result.levels.information > audits["A2"].after.plugin
    table = pd.crosstab(result.table[module.W], result.table["age"] // 25).to_numpy()
    value, prior = table / table.sum(axis=0), table.sum(axis=1) / table.sum()
    i1 = rel_entr(value, prior[:, None]).sum(axis=0) / BITS
    assert audits["A1"].measures["I1"].values == pytest.approx(i1, abs=1e-12)
    assert audits["A1"].after.plugin == pytest.approx(i1 @ table.sum(axis=0) / table.sum())
    h = {w: entropy(result.table[w].value_counts(), base=2) for w in (module.W, module.SALARY)}
    shares = [h[module.SALARY] / h[module.W] * x for x in (module.T, math.log2(module.L))]
    for solution, of, t, least in (
        (result.price.randomised, source, module.T, math.log2(module.L)),
        (result.salaries, paid(result.table, source.x), *shares),
    ):
        referee.check(solution)
        _, i1, left = letters(of, solution.channel.matrix)
        assert i1.max() <= t + 1e-9
        assert left.min() >= least - 1e-9
    assert result.price.gap.lower > 0


def paid(table, ages):
    """Count the salary by age, in the steps in which it was randomised."""
    step = np.diff(ages).min()
    years = table.assign(age=table["age"] // step * step)
    return cpv.DiscreteSource.from_table(years, sensitive="income", key="age")


@pytest.mark.long
def test_script_bezzi_fig2_4(run, tables, tmp_path):
    if not tables.real:
        checked(of_sample("figures/bezzi_fig2_4", tmp_path / "picture.png", "--quick"))
        return
    ran = run("figures/bezzi_fig2_4", "--quick")
    checked(ran)
    assert ran.differing == {
        "values by attribute", "H(W) [bits]", "ℓ_t of t = 0.55", "ℓ_t is off ℓ = 2.7 by",
        "A1*: most by any intervals [bits]", "A1*: lost, at least", "salary: H(W) [bits]",
    }  # fmt: skip
    summary = {what: claim.here for what, claim in ran.claims.items()}
    assert summary["A1: its groups break"] == "t ℓ, –, –, t"
    assert summary["salary: greatest ℓ"] == "1.75268"
    assert ran.claims["salary: greatest ℓ"].why.endswith("t = 0.55 leaves 100.0% of what age tells")
    assert summary["lost at ℓ = 3"] == "74%, of what age tells 41%"
    result = ran.result
    assert len(result.whole.x) == 3152
    assert result.whole.information() == pytest.approx(0.7567, abs=5e-5)
    assert result.age.entropy() == pytest.approx(1.8197, abs=5e-5)
    assert result.salary.entropy() == pytest.approx(0.8096, abs=5e-5)
    assert result.age.information() == pytest.approx(0.3357, abs=5e-5)
    assert result.at_51 == pytest.approx(0.0851, abs=5e-5)
    assert result.best.information == pytest.approx(0.2382, abs=5e-5)
    assert result.audits["best four"].letters == ["[17, 34]", "[35, 44]", "[45, 59]", "[60, 90]"]
    assert result.audits["best four"].after.plugin == pytest.approx(0.2308, abs=5e-5)
    # of the salary both criteria break for the same group, under the same shares of H(W)
    assert [v.broken.tolist() for v in result.audits["A1, salary"].verdicts] == [[0], [0]]


@pytest.mark.long
@pytest.mark.parametrize("most", rest_at_length([0.3, 6.0], 1))
def test_no_label_of_fig2_4_lies_on_another(most):
    """Whatever the table: bounds that are equal, near or in either order, low and high bars."""
    values = np.array([most, -0.5, 0.02, most / 2])

    def audit(t, ell):
        return SimpleNamespace(
            averages={i: SimpleNamespace(bound=b) for i, b in enumerate((most, t, ell))},
            after=SimpleNamespace(plugin=most / 3), letters=["[0, 25)", "3", "4", "[75, 100)"],
            measures={kind: SimpleNamespace(values=values) for kind in ("I1", "I2")},
        )  # fmt: skip

    bounds = [(0.5, 0.5), (0.5, 0.499), (0.01, 0.02), (0.1, 5)]  # one for each row of panels
    for order in (bounds, [pair[::-1] for pair in bounds]):
        audits = zip(("A2", "A1", "best four", "salary"), order, strict=True)
        audits = {name: audit(*pair) for name, pair in audits}
        with plt.rc_context(style.HOUSE):
            drawn = script(ROOT / "figures" / "bezzi_fig2_4.py").draw(
                SimpleNamespace(audits=audits)
            )
        pictures.check(drawn)


@pytest.mark.parametrize("tables", [REAL], indirect=True)
@pytest.mark.long
def test_bezzi_fig2_4_of_single_years(run, tables):
    ran = run("figures/bezzi_fig2_4")
    checked(ran)
    price = ran.result.price
    assert price.deterministic.distortion == pytest.approx(2.1099, abs=5e-5)
    assert price.randomised.value == pytest.approx(1.4010, abs=1e-4)
    assert ran.result.salaries.value == pytest.approx(2.4965, abs=5e-5)


@pytest.mark.long
def test_script_medical_table(run):
    ran = run("problems/medical_table")
    result, promise = ran.result, ran.module.PROMISE
    assert ran.differing == set()
    assert len(ran.claims) == 4
    assert "worst by I1: Erin, John\n" in ran.text
    assert result.audit.per_record("I1").round(4).tolist() == [0.1255] * 10 + [0.8552] * 2
    for t, price in result.prices.items():
        referee.check(price.randomised)
        assert price.gap.lower >= -1e-6
        for release in (price.randomised, price.deterministic):
            assert letters(result.source, release.channel.matrix)[1].max() <= t + 1e-9
    fixed, free = result.table.to_numpy().T
    assert list(fixed) == sorted(fixed, reverse=True)
    assert list(free) == sorted(free, reverse=True)
    assert fixed[-1] == 0.0  # at the last t the bins of ten pass as they are
    # the price, from D(q ‖ p) = t and E = 10 (1/q − 2) / 12 alone
    best = result.prices[promise].randomised
    q = 1 / (2 + 12 * best.value / 10)
    assert rel_entr([q, 1 - q], [1 / 12, 11 / 12]).sum() / BITS == pytest.approx(promise, abs=1e-6)
    slope = -10 / 12 / q**2 / np.log2(11 * q / (1 - q))
    assert best.prices["t_closeness"] == pytest.approx(slope, rel=1e-4)


@pytest.mark.long
def test_script_adult_marital(run, tables):
    ran = run("problems/adult_marital", "--quick")
    module, result = ran.module, ran.result
    assert ran.differing == set()
    source, solution = result.source, result.price.randomised
    records, cells = (30_162, 3152) if tables.real else (190, 177)
    assert source.records == result.audit.released.records == records
    assert len(result.uncoarsened.x) == cells
    fates = [fate for _, fate in result.tried.values()]
    assert fates == ["not tried"] * (len(fates) - 1) + ["certified"]
    assert len(source.x) <= 60
    referee.check(solution)
    _, i1, h = letters(source, solution.channel.matrix)
    assert i1.max() <= module.T + 1e-9
    assert h.min() >= math.log2(module.L) - 1e-9
    # each attribute's share, from the channel, or the groups, and the letters alone
    place = {x: i for i, x in enumerate(source.x)}
    grouping = np.zeros((len(place), len(place)))
    grouping[np.arange(len(place)), [place[g] for g in result.price.deterministic.groups]] = 1
    for axis, name in enumerate(module.KEY):
        levels = source.levels[name]
        rank = np.array([levels.index(x[axis]) for x in source.x])
        far = np.abs(rank[:, None] - rank)
        far = far / (len(levels) - 1) if name in ("age", "education") else np.minimum(far, 1)
        for column, matrix in zip(result.shares, (grouping, solution.channel.matrix), strict=True):
            share = (source.p_x[:, None] * matrix * far).sum()
            assert result.shares.loc[name, column] == pytest.approx(share, abs=1e-9)
    assert all(verdict.holds for verdict in result.price.deterministic.standing.values())
    assert result.price.deterministic.distortion > solution.upper


@pytest.mark.parametrize("tables", [REAL], indirect=True)
@pytest.mark.long
def test_adult_marital_of_bands_of_ten(run, tables):
    ran = run("problems/adult_marital")
    assert ran.differing == set()
    assert ran.result.price.randomised.value == pytest.approx(0.0728846, abs=1e-6)
    assert ran.result.price.deterministic.distortion == pytest.approx(0.453928, abs=1e-6)
