"""The scripts on rate, distortion and equivocation: closed forms, brute force, records."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.scripts.oracles import BITS


def plogp(masses):
    """Σ p log₂ p, one by one."""
    return math.fsum(p * math.log2(p) for p in np.ravel(masses).tolist() if p > 0)


def h(p):
    return -plogp([p, 1 - p])


def star(a, b):
    return a * (1 - b) + b * (1 - a)


# ---- the doubly symmetric binary source --------------------------------------------------


def test_script_doubly_symmetric_binary(run):
    words = ["lie in all of the proved enclosures"]
    module, result, _ = run("problems/doubly_symmetric_binary", words=words)
    p0 = 0.25

    # what is known of it in nats: rates at D = .05, .1, .2
    known = {
        "decoder": (0.3896535340, 0.2850078694, 0.0950026231),
        "both": (0.3638199013, 0.2372521712, 0.0619327211),
    }
    for who, values in known.items():
        for d, nats in zip((0.05, 0.1, 0.2), values, strict=True):
            assert module.rate(d, who) == pytest.approx(nats / BITS, abs=1e-9)
    assert pytest.approx(0.0880207, abs=5e-8) == module.D_C

    for point in result.points:
        d, who = point.budget, point.known_to
        if who is None:
            assert module.rate(d, who) == pytest.approx(1 - h(d), abs=1e-12)
        for solution, closed in (
            (point.rate, module.rate(d, who)),
            (point.leakage, module.rate(d, who) + (0.0 if who is None else 1 - h(p0))),
        ):
            referee.check(solution)
            assert solution.lower - 1e-9 <= closed <= solution.upper + 1e-9
        # W = X: one release is best in both
        assert float(point.rate.leakage) == pytest.approx(point.leakage.value, abs=2e-7)
        assert float(point.leakage.rate) == pytest.approx(point.rate.value, abs=2e-7)
        assert max(map(abs, point.errors)) < 1e-7

    # time-sharing: beyond D_c the constants err D_c of the time, the followers p0
    for point in result.of("decoder"):
        kinds, d = point.strategies(), point.budget
        constant, error = kinds[module.CONSTANT]
        follow, wrong = kinds[module.FOLLOW]
        assert constant + follow == pytest.approx(1.0, abs=1e-4)
        share = min(max((d - module.D_C) / (p0 - module.D_C), 0.0), 1.0)
        assert follow == pytest.approx(share, abs=2e-3)
        assert module.follows(d) == pytest.approx(share, abs=1e-12)
        if share > 0.01:
            assert wrong == pytest.approx(p0, abs=1e-6)
        if share < 0.99:
            assert error == pytest.approx(min(d, module.D_C), abs=1e-3)
            slope = (module.rate(d + 1e-6, "decoder") - module.rate(d - 1e-6, "decoder")) / 2e-6
            assert point.rate.prices["budget"] == pytest.approx(slope, rel=2e-3)

    # who pays: with Z at both, the total leakage is that without Z
    by = {who: {p.budget: p.leakage for p in result.of(who)} for who in module.KNOWN_TO}
    for d, user in by["decoder"].items():
        assert by["both"][d].value == pytest.approx(by[None][d].value, abs=1e-7)
        if d < p0:
            assert user.lower > by["both"][d].upper + 1e-3


# ---- Adult -------------------------------------------------------------------------------


def told(source, solution):
    """Return p(w, y, z) of a release, record type by record type."""
    law, channel = source.pmf, solution.channel
    rows = dict(zip(channel.inputs, channel.matrix, strict=True))
    found = np.zeros((len(source.w), channel.matrix.shape[1], len(source.z)))
    for (w, x, z), mass in np.ndenumerate(law):
        label = (source.x[x], source.z[z]) if channel.encoder == "xz" else source.x[x]
        found[w, :, z] += mass * rows[label]
    return found


def leaked(joint):
    """I(first; rest) in bits."""
    first = joint.sum(axis=tuple(range(1, joint.ndim)))
    return plogp(joint) - plogp(first) - plogp(joint.sum(axis=0))


@pytest.mark.long
def test_script_side_information_adult(run, tables):
    words = ("certified", "refused, with proof", "Miller–Madow", "price dD/dt", "two mean")
    module, result, _ = run("problems/side_information_adult", "--quick", words=words)
    source, law = result.source, result.source.pmf
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
        joint = told(source, solution)
        read = joint if who else joint.sum(axis=2)
        assert solution.value == pytest.approx(leaked(read), abs=1e-9)
        assert result.leakage(solution) == pytest.approx(leaked(joint), abs=1e-9)
        assert float(solution.distortion) <= budget
    for budget in result.budgets:
        nobody, user, both = (result.average[who, budget] for who in module.KNOWN_TO)
        assert held < both.lower < both.value < user.lower < user.value
        assert user.lower <= result.leakage(nobody)
        assert nobody.value < user.value - held  # the letters of X̂ and sex work together

    # a cap below what the user has is refused; the message says from where on it would do
    assert result.refusal.conflict == ["max_leakage"]
    assert result.refusal.extremes["max_leakage"] == pytest.approx(held, abs=1e-5)
    assert result.refusal.certificate.verify()
    least = re.search(r"max_leakage would have to be at least ([\d.]+)", str(result.refusal))
    assert float(least[1]) == pytest.approx(held, abs=1e-4)

    # the worst case: every (u, z) keeps it if made so, and not if Z was forgotten
    for who, solution in result.worst.items():
        # on the sample, whose cells often have a single record, CVXPY's solver stops a bit early
        loose = not tables.real and solution.gap < 2e-5
        referee.check(solution, status=solution.status if loose else "certified")
        joint = told(source, solution)
        q = joint.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(joint > 0, joint / (source.p_w[:, None, None] * q), 1.0)
            each = np.where(q > 0, (joint * np.log2(ratio)).sum(axis=0) / q, 0.0)
        share, found = result.letters(solution)
        used = share * source.records >= 1
        assert found[used] == pytest.approx(each[used], abs=1e-9)
        if who is None:
            assert share[found > module.T].sum() > 0.1
            plain = joint.sum(axis=2)
            alone = [cpv.information.divergence(c, source.p_w) for c in plain.T if c.sum() > 1e-6]
            assert max(alone) <= module.T + 1e-6
        else:
            assert each.max() <= module.T + 1e-9
    nobody, user, both = (result.worst[who] for who in module.KNOWN_TO)
    assert nobody.value < both.lower < both.value < user.lower

    # on the records: letter by letter as the decoder says, and as often as the channel says
    solution = result.worst["decoder"]
    table = module.released(result, solution, seed=3)
    read = module.decoded(table, solution)
    assert list(table.columns) == ["marital-status", "U", "sex"]
    for column in ("marital-status", "sex"):
        assert (read[column] == result.frame[column]).all()
    decoder = solution.channel.decoder
    first = read.assign(U=table["U"])[["U", "sex", "age", "education"]].head(500)
    for u, z, *cell in first.to_numpy():
        assert decoder(u, z) == tuple(cell)
    two = [u for u, rule in enumerate(decoder.table) if rule[0] != rule[1]]
    mass = told(source, solution)[:, two].sum()
    assert table["U"].isin(two).mean() == pytest.approx(
        mass, abs=5 * (mass / source.records) ** 0.5
    )
    if tables.real:
        assert mass == pytest.approx(0.10, abs=0.01)
    for who in module.KNOWN_TO:
        solution = result.average[who, module.BUDGET]
        # d² ≤ 6 d bounds the variance of a record's error
        spread = math.sqrt(d.max() * float(solution.distortion) / source.records)
        measured = module.measured(result, who, seed=7)
        assert measured.distortion == pytest.approx(float(solution.distortion), abs=5 * spread)
        if tables.real:
            assert measured.leakage == pytest.approx(solution.value, abs=4e-3)
            assert 0 < measured.bias < 4e-3


# ---- Fig. 3 of Sankar et al. -------------------------------------------------------------


def test_script_sankar_fig3(run):
    module, result, _ = run("figures/sankar_fig3", words=["Remark 4"])
    q = module.Q
    split = np.linspace(0, 0.5, 5001)
    unknown = np.array([h(star(q, a)) for a in split])
    own = np.array([h(a) for a in split])

    def least(d, equivocation):
        """R(D, E): the best of all ways to split the wrong bits between A and B."""
        free = (split <= d) & (unknown >= equivocation)
        rest = np.minimum(d - split[free], 0.5)
        return (2 - own[free] - np.interp(rest, split, own)).min()

    for d, corner in result.corners.items():
        for solution in (corner.rate, corner.leakage):
            referee.check(solution)
        for solution, closed in (
            (corner.rate, 2 - 2 * h(min(d / 2, 0.5))),
            (corner.leakage, 1 - h(star(q, min(d, 0.5)))),
        ):
            assert solution.lower - 1e-12 <= closed <= solution.upper + 1e-12
        assert corner.rate.value == pytest.approx(least(d, 0.0), abs=1e-5)
        assert module.rate(d) == pytest.approx(2 - 2 * h(min(d / 2, 0.5)), abs=1e-12)

    for d, found in result.surface.items():
        corner = result.corners[d]
        # Remark 4: neither end is the other's
        assert corner.private == pytest.approx(h(star(q, d / 2)), abs=1e-3)
        assert corner.private < corner.gamma - 0.01
        assert found[-1].solution.lower > corner.rate.upper + 0.05
        assert found[-1].cap == pytest.approx(corner.leakage.value + module.MARGIN, abs=1e-12)
        rates = [corner.rate.value]
        for each in found:
            referee.check(each.solution)
            closed = module.rate(d, each.equivocation)
            assert each.solution.lower - 1e-9 <= closed <= each.solution.upper + 1e-9
            assert least(d, each.equivocation) == pytest.approx(closed, abs=2e-3)
            assert float(each.solution.leakage) <= each.cap + 1e-12
            rates.append(each.solution.value)
        assert rates == sorted(rates)
        # where the errors are: even for the rate, in A alone for privacy
        even = [float(corner.rate.terms[f"distortion of {bit}"]) for bit in "AB"]
        assert even == pytest.approx([d / 2, d / 2], abs=1e-3)
        first, second = (float(found[-1].solution.terms[f"distortion of {bit}"]) for bit in "AB")
        assert first == pytest.approx(min(d, 0.5), abs=2e-3)
        assert first + second == pytest.approx(d, abs=1e-6)
        # the price is the slope
        each = found[0]
        step = 1e-4
        low, high = (module.rate(d, each.equivocation + s) for s in (-step, step))
        slope = -each.solution.prices["max_leakage"]
        assert (high - low) / (2 * step) == pytest.approx(slope, rel=1e-3)
