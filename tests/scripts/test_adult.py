"""The scripts on the Adult table: each against an independent statement, and by name."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.lengths import rest_at_length
from tests.scripts.oracles import information, letters, plogp, solved

STEP = 1e-3  # of differences


def leaked(joint):
    """I(first; rest) in bits."""
    first = joint.sum(axis=tuple(range(1, joint.ndim)))
    return plogp(joint) - plogp(first) - plogp(joint.sum(axis=0))


def slope(problems):
    """Return the slope between the optima of two problems whose bounds are 2 STEP apart."""
    low, high = (problem.solve().value for problem in problems)
    return (high - low) / (2 * STEP)


@pytest.mark.long
def test_script_invariant_pram(run, tables):
    ran = run("problems/invariant_pram")
    module, result = ran.module, ran.result
    assert ran.differing == set()
    source, counts = result.source, result.source.joint.sum(axis=0)
    assert source.records == counts.sum() == (32_561 if tables.real else 200)
    assert (source.x[0], source.x[8], source.x[-1]) == ("Preschool", "HS-grad", "Doctorate")
    for solution in result.optima.values():
        referee.check(solution)
    values = [solution.value for solution in result.optima.values()]
    assert values == sorted(values)

    # the same program in CVXPY's own words
    pmf, n = source.pmf, len(source.x)
    for floor in (0.3, module.FLOOR, 0.9):
        k = cp.Variable((n, n), nonneg=True)
        far = (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 2).astype(float)
        rules = [
            cp.sum(k, axis=1) == 1,
            source.p_x @ k == source.p_x,
            cp.diag(k) >= floor,
            cp.multiply(far, k) == 0,
        ]
        leakage = cp.sum(information(pmf @ k, source.p_w, source.p_x @ k))
        assert solved(cp.Minimize(leakage), rules) == pytest.approx(
            result.optima[floor].value, abs=2e-6
        )

    # the price is the slope
    near = []
    for floor in (module.FLOOR - STEP, module.FLOOR + STEP):
        rules = [cpv.PreserveMarginal(), cpv.KeepProbability(floor), cpv.ForbiddenMoves(far > 0)]
        near.append(cpv.PrivacyDistortion(source, cpv.hamming(source.x), criteria=rules))
    chosen = result.optima[module.FLOOR]
    assert slope(near) == pytest.approx(chosen.prices["keep_probability"], rel=0.01)

    # the classical matrices: invariant, legal where the script says so, never below the optimum
    optimum, free, *legal = result.matrices.values()
    assert (optimum == chosen.channel.matrix).all()
    for matrix in (free, *legal):
        assert source.p_x @ matrix == pytest.approx(source.p_x, abs=1e-14)
        assert np.abs(matrix[far > 0]).max() == 0
    for matrix in legal:
        assert matrix.diagonal().min() == pytest.approx(module.FLOOR, abs=1e-9)
        assert module.leakage(source, matrix) >= chosen.lower

    # on the records themselves the table of education moves by sampling error alone
    released = chosen.channel.apply(result.frame["education"].to_numpy(), seed=1)
    drawn = np.array([(released == level).sum() for level in source.x])
    matrix = chosen.channel.matrix
    spread = np.sqrt(counts @ (matrix * (1 - matrix)))
    assert drawn.sum() == counts.sum()
    assert (np.abs(drawn - counts) <= 4.5 * spread).all()
    assert (drawn != counts).any()


@pytest.mark.long
def test_script_worst_case_or_average(run, tables):
    ran = run("problems/worst_case_or_average")
    module, result, source = ran.module, ran.result, ran.result.source
    assert ran.differing == set()
    assert source.records == (32_561 if tables.real else 200)
    assert len(source.x) == 14
    pmf, p_w, p_x, n = source.pmf, source.p_w, source.p_x, len(source.x)
    decades = [module.DECADES.index(decade) for decade, _ in source.x]
    sexes = [sex for _, sex in source.x]
    moved = np.abs(np.subtract.outer(decades, decades))
    d = moved + np.not_equal.outer(sexes, sexes)
    assert (result.error.matrix == d).all()

    for solution in [*result.optima.values(), result.least]:
        referee.check(solution)
        joint = p_x[:, None] * solution.channel.matrix  # the parts, in decades and in changes
        assert float(solution.terms["distortion of decade"]) == pytest.approx((joint * moved).sum())
        assert float(solution.distortion) == pytest.approx((joint * d).sum())
    for t in module.BOUNDS:
        average, worst = (result.optima[name, t] for name in module.RULES)
        _, each, _ = letters(source, worst.channel.matrix)
        assert each.max() <= t + 1e-9
        q, each, _ = letters(source, average.channel.matrix)
        assert q @ each <= t + 1e-9
        assert q @ each == pytest.approx(min(t, source.information()), abs=1e-5)
        share, divergence = module.letters(source, average)
        assert share[share > 0] == pytest.approx(q, abs=1e-12)
        used = q * source.records >= 1
        assert divergence[share > 0][used] == pytest.approx(each[used], abs=1e-9)
        assert divergence.max() > t  # the average hides at least one letter
        assert worst.lower >= average.value  # proved: the promise costs something
    for name in module.RULES:
        values = [result.optima[name, t].value for t in module.BOUNDS]
        assert values == sorted(values, reverse=True)

    # all programs in CVXPY's own words, at the t that is drawn
    t = module.BOUND
    k = cp.Variable((n, n), nonneg=True)
    law, spent = [cp.sum(k, axis=1) == 1], cp.sum(cp.multiply(p_x[:, None] * d, k))
    each = information(pmf @ k, p_w, p_x @ k)
    for name, rule in (("worst case", each <= t * (p_x @ k)), ("average", cp.sum(each) <= t)):
        other = solved(cp.Minimize(spent), [*law, rule])
        assert other == pytest.approx(result.optima[name, t].value, abs=1e-5)
    other = solved(cp.Minimize(cp.sum(each)), [*law, spent <= result.optima["worst case", t].value])
    assert other == pytest.approx(result.least.value, abs=1e-5)

    # the prices are slopes in t
    for name, rule in module.RULES.items():
        near = [cpv.MinimumDistortion(source, result.error, [rule(t + s)]) for s in (-STEP, STEP)]
        (price,) = result.optima[name, t].prices.values()
        assert slope(near) == pytest.approx(price, rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("constants", rest_at_length([{"SHARES": (0.0, 0.2, 0.8)}, {}], 1))
def test_script_guessing_adult(run, tables, constants):
    ran = run("problems/guessing_adult", **constants)
    module, result, source = ran.module, ran.result, ran.result.source
    assert ran.differing == set()
    assert source.records == (32_561 if tables.real else 200)
    pmf, d = source.pmf, result.error.matrix
    bands = list(dict.fromkeys(band for band, _ in source.x))
    for i, j in ((0, 3), (1, -1), (2, 2)):
        (band, sex), (other, changed) = source.x[i], source.x[j]
        levels = source.levels["age"]
        steps = abs(levels.index(band) - levels.index(other)) / (len(levels) - 1)
        assert d[i, j] == pytest.approx(steps + (sex != changed))
    assert len(bands) > 5
    for (share, name), solution in result.optima.items():
        referee.check(solution)
        assert result.told.loc[share, name] >= solution.lower - 1e-9
        assert solution.upper >= result.none[name] - 1e-6
        parts = sum(float(solution.terms[f"distortion of {key}"]) for key in ("age", "sex"))
        assert parts == pytest.approx(float(solution.distortion), abs=1e-9)
    for share in module.SHARES:
        learned, best = result.told.loc[share], result.optima[share, module.INFORMATION]
        assert learned[module.INFORMATION] == pytest.approx(best.upper, abs=1e-9)
        joint = pmf @ best.channel.matrix
        assert learned[module.GUESS] == pytest.approx(joint.max(axis=0).sum())
        sibson = np.sqrt((joint**2 / source.p_w[:, None]).sum(axis=0)).sum()
        assert learned[module.SIBSON] == pytest.approx(sibson)
    k = cp.Variable(d.shape, nonneg=True)  # the same program in CVXPY's own words
    spent = cp.sum(cp.multiply(source.p_x[:, None] * d, k))
    rules = [cp.sum(k, axis=1) == 1, spent <= module.CHOSEN * result.constant]
    other = solved(cp.Minimize(cp.sum(cp.max(pmf @ k, axis=0))), rules)
    assert other == pytest.approx(result.optima[module.CHOSEN, module.GUESS].upper, abs=2e-6)
    for name in module.MEASURES:
        values = [result.optima[share, name].upper for share in module.SHARES]
        assert values == sorted(values, reverse=True)


@pytest.mark.long
def test_script_perfect_privacy(run, tables):
    ran = run("problems/perfect_privacy")
    result, source = ran.result, ran.result.source
    assert ran.differing == set()
    assert source.records == (32_561 if tables.real else 200)
    for solution in result.optima.values():
        referee.check(solution)
    solution, *relaxed = result.optima.values()
    joint = source.pmf @ solution.channel.matrix
    assert np.allclose(joint, np.outer(source.p_w, joint.sum(axis=0)), atol=1e-15)
    assert solution.risk.upper == 0.0  # exactly, as proved
    kept = leaked(source.p_x[:, None] * solution.channel.matrix)
    assert float(ran.claims["I(X; X̂) [bits]"].here) == pytest.approx(kept, rel=1e-5)
    assert kept <= leaked(source.pmf.sum(axis=0) * np.eye(len(source.x)))  # H(X)
    # the least distortion is a linear program in the release
    d = result.error.matrix
    k = cp.Variable(d.shape, nonneg=True)
    rules = [cp.sum(k, axis=1) == 1]
    rules += [source.pmf @ k == source.p_w[:, None] @ cp.reshape(source.p_x @ k, (1, -1), "C")]
    spent = cp.sum(cp.multiply(source.p_x[:, None] * d, k))
    assert solved(cp.Minimize(spent), rules) == pytest.approx(solution.upper, abs=2e-6)
    assert result.constant == pytest.approx((source.p_x @ d).min())
    for t, near in list(result.optima.items())[1:]:
        learned = source.pmf @ near.channel.matrix
        learned = learned[:, learned.sum(axis=0) > 1e-12]
        off = np.abs(learned / learned.sum(axis=0) - source.p_w[:, None]).sum(axis=0) / 2
        assert off.max() <= t + 1e-6
    values = [solution.value, *(point.value for point in relaxed)]
    assert values == sorted(values, reverse=True)


@pytest.mark.long
def test_script_most_useful(run, tables):
    epsilons, about = (0.5, 1.0, 3.0), (0.1, 0.4)
    ran = run("problems/most_useful", EPSILONS=epsilons, ABOUT_W=about)
    assert ran.differing == set()
    source, pmf = ran.result.source, ran.result.source.p_x
    rays = np.array(list(itertools.product([0.0, 1.0], repeat=len(pmf)))[1:])
    for epsilon, solution in ran.result.optima.items():
        assert solution.status == "certified"
        assert solution.certificate.verify()
        # all rays in one linear program of another solver
        columns = 1 + (np.exp(epsilon) - 1) * rays
        columns /= columns @ pmf[:, None]
        joint = pmf * columns
        values = np.sum(joint * np.log2(columns), axis=1)
        weights = cp.Variable(len(columns), nonneg=True)
        best = solved(cp.Minimize(-values @ weights), [columns.T @ weights == 1])
        assert -best == pytest.approx(solution.value, abs=1e-6)
    for epsilon, solution in ran.result.pointwise.items():
        posterior = source.pmf @ solution.channel.matrix
        posterior = posterior / posterior.sum(axis=0) / source.p_w[:, None]
        assert posterior.max() <= np.exp(epsilon) * (1 + 1e-9)
        assert solution.value <= cpv.information.entropy(pmf) + 1e-9


# ---- sex as side information -------------------------------------------------------------


def information_after(source, solution):
    """Return p(w, y, z) of a release, record type by record type."""
    law, channel = source.pmf, solution.channel
    rows = dict(zip(channel.inputs, channel.matrix, strict=True))
    outcome = np.zeros((len(source.w), channel.matrix.shape[1], len(source.z)))
    for (w, x, z), mass in np.ndenumerate(law):
        label = (source.x[x], source.z[z]) if channel.encoder == "xz" else source.x[x]
        outcome[w, :, z] += mass * rows[label]
    return outcome


@pytest.mark.long
def test_script_side_information_adult(run, tables):
    ran = run("problems/side_information_adult", "--quick")
    module, result, source = ran.module, ran.result, ran.result.source
    assert ran.differing == set()
    law = source.pmf
    assert source.records == (32_561 if tables.real else 200)
    assert law.shape == (7 if tables.real else 6, 16, 2)
    held = leaked(law.sum(axis=1))
    if tables.real:
        assert held == pytest.approx(0.1634, abs=5e-5)
    assert result.held == pytest.approx(held, abs=1e-12)

    d = np.array([[abs(module.AGES.index(a) - module.AGES.index(b))
                   + abs(module.DEGREES.index(s) - module.DEGREES.index(t))
                   for b, t in source.x] for a, s in source.x])  # fmt: skip
    assert (result.error.matrix == d).all()

    # nobody, the user, user and encoder: what each release tells, and its error, from the channel
    for (who, budget), solution in result.average.items():
        referee.check(solution)
        joint = information_after(source, solution)
        read = joint if who else joint.sum(axis=2)
        assert solution.value == pytest.approx(leaked(read), abs=1e-9)
        assert float(solution.distortion) <= budget
    for budget, row in result.least.iterrows():
        nobody, user, both = (result.average[who, budget] for who in module.KNOWN_TO)
        assert held < both.lower < both.value < user.lower < user.value
        assert row[module.NAIVE] == pytest.approx(
            leaked(information_after(source, nobody)), abs=1e-9
        )
        assert user.lower <= row[module.NAIVE]
        assert nobody.value < user.value - held  # the letters of X̂ and sex work together

    # a cap below what the user has is refused; the message says from where on it would do
    assert result.refusal.conflict == ["max_leakage"]
    assert result.refusal.extremes["max_leakage"] == pytest.approx(held, abs=1e-5)
    assert result.refusal.certificate.verify()

    # the worst case: every (u, z) keeps it if made so, and not if Z was forgotten
    for who, solution in result.worst.items():
        # on the sample, whose cells often have a single record, CVXPY's solver stops a bit early
        loose = not tables.real and solution.gap < 2e-5
        referee.check(solution, status=solution.status if loose else "certified")
        joint = information_after(source, solution)
        q = joint.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(joint > 0, joint / (source.p_w[:, None, None] * q), 1.0)
            each = np.where(q > 0, (joint * np.log2(ratio)).sum(axis=0) / q, 0.0)
        summary = module.letters(source, solution)
        at = summary.index, summary["z"].map(list(source.z).index)
        assert (q[at] * source.records >= 1).all()
        assert len(summary) == (q * source.records >= 1).sum()
        assert summary["share"].to_numpy() == pytest.approx(q[at], abs=1e-12)
        assert summary["bits"].to_numpy() == pytest.approx(each[at], abs=1e-9)
        if who is None:
            assert summary["share"][summary["bits"] > module.T].sum() > 0.1
            plain = joint.sum(axis=2)
            alone = [cpv.information.divergence(c, source.p_w) for c in plain.T if c.sum() > 1e-6]
            assert max(alone) <= module.T + 1e-6
        else:
            assert each.max() <= module.T + 1e-9
    nobody, user, both = (result.worst[who] for who in module.KNOWN_TO)
    assert nobody.value < both.lower < both.value < user.lower

    # on the records: letter by letter as the decoder says, and as often as the channel says
    solution = result.worst["decoder"]
    frame = result.frame[["marital-status", "age", "education", "sex"]]
    table, decoder = solution.channel.apply(frame, seed=3), solution.channel.decoder
    read = decoder.apply(table)
    assert list(table.columns) == ["marital-status", "U", "sex"]
    for column in ("marital-status", "sex"):
        assert (read[column] == frame[column]).all()
    first = read.assign(U=table["U"])[["U", "sex", "age", "education"]].head(500)
    for u, z, *cell in first.to_numpy():
        assert decoder(u, z) == tuple(cell)
    two = [u for u, rule in enumerate(decoder.table) if rule[0] != rule[1]]
    mass = information_after(source, solution)[:, two].sum()
    assert table["U"].isin(two).mean() == pytest.approx(
        mass, abs=5 * (mass / source.records) ** 0.5
    )
    if tables.real:
        assert mass == pytest.approx(0.10, abs=0.01)
    place = {cell: i for i, cell in enumerate(source.x)}
    for who in module.KNOWN_TO:
        solution = result.average[who, module.BUDGET]
        table, decoder = solution.channel.apply(frame, seed=7), solution.channel.decoder
        read = table if decoder is None else decoder.apply(table)
        before, after = ([place[cell] for cell in zip(each["age"], each["education"], strict=True)]
                         for each in (frame, read))  # fmt: skip
        # d² ≤ 6 d bounds the variance of a record's error
        spread = math.sqrt(d.max() * float(solution.distortion) / source.records)
        assert d[before, after].mean() == pytest.approx(float(solution.distortion), abs=5 * spread)
        if tables.real:  # the plug-in of a drawn table is near that of its law
            recorded = ["U"] if who == "decoder" else ["age", "education"]
            recorded += ["sex"] * (who is not None)
            counts = pd.crosstab(table["marital-status"], [table[name] for name in recorded])
            assert leaked(counts.to_numpy() / len(table)) == pytest.approx(solution.value, abs=4e-3)
