"""The scripts after Sankar et al.: closed forms, brute force, CVXPY's own words."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.lengths import rest_at_length
from tests.repository import ROOT, script
from tests.scripts.oracles import BITS, h, information, solved, star

# ---- the region ---------------------------------------------------------------------------


@pytest.mark.long
def test_script_sankar_fig3(run):
    ran = run("figures/sankar_fig3")
    assert ran.differing == set()
    q = ran.module.Q
    split = np.linspace(0, 0.5, 5001)
    unknown = np.array([h(star(q, a)) for a in split])
    values = np.array([h(a) for a in split])

    def least(d, equivocation):
        """R(D, E): the best of all ways to split the wrong bits between A and B."""
        free = (split <= d) & (unknown >= equivocation)
        others = np.minimum(d - split[free], 0.5)
        return (2 - values[free] - np.interp(others, split, values)).min()

    for row in ran.result.itertuples():
        d, solution = row.D, row.solved
        referee.check(solution)
        if row.point == "Γ(D)":
            closed = 1 - h(star(q, min(d, 0.5)))
            assert pytest.approx(1 - solution.value, abs=1e-7) == row.E
        else:
            closed = ran.module.rate(d, row.E if row.point == "R(D, E)" else 0.0)
            asked = row.E if row.point == "R(D, E)" else 0.0
            assert least(d, asked) == pytest.approx(closed, abs=2e-3 if asked else 1e-5)
        assert solution.lower - 1e-9 <= closed <= solution.upper + 1e-9
        if row.point == "R(D)":  # errors are spread evenly, and W is seen through those of A
            assert closed == pytest.approx(2 - 2 * h(d / 2), abs=1e-12)
            assert row._5 == pytest.approx(d / 2, abs=1e-3)
            assert pytest.approx(h(star(q, d / 2)), abs=1e-3) == row.E
    for d, some in ran.result[ran.result.point == "R(D, E)"].groupby("D"):
        at, step = some.E.iloc[0], 1e-4  # the price is the slope
        low, high = (ran.module.rate(d, at + off) for off in (-step, step))
        price = -some.solved.iloc[0].prices["max_leakage"]
        assert (high - low) / (2 * step) == pytest.approx(price, rel=1e-3)
        assert some.R.is_monotonic_increasing
        assert (some.solved.map(lambda s: float(s.leakage)) <= 1 - some.E + 1e-12).all()
        assert some["wrong B"].iloc[-1] == pytest.approx(max(d - 0.5, 0), abs=2e-3)
    assert len(ran.result) == 2 * 14 + 4 * 7


# ---- the categorical source ---------------------------------------------------------------


@pytest.mark.long
def test_script_sankar_fig4(run):
    ran = run("figures/sankar_fig4")
    flat = "H(X̂) at D = 0.5 [bits], 2.2522 at 0"
    assert ran.differing == {flat, "multiplier of D at 0.3 [bits]"}
    pmf, result = [0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02], ran.result
    for d, program in result.programs.items():
        closed = result.closed[d]
        referee.check(program)
        assert closed.lower <= program.upper
        assert program.lower <= closed.upper
        assert program.distortion <= d + 1e-15
        prices = closed.prices["budget"], program.prices["budget"]
        assert prices[0] == pytest.approx(prices[1], abs=1e-4)
    # by hand: λ = (D − τ)/(K − 1)
    levels = {0.1: (7, 1 / 60), 0.2: (5, 0.0375), 0.3: (4, 1 / 15), 0.4: (3, 0.1), 0.5: (2, 0.15)}
    for d, (kept, level) in levels.items():
        law = result.table[f"D = {d:g}"]
        above = np.maximum(np.array(pmf) - level, 0)
        assert law.to_numpy() == pytest.approx(above / above.sum(), abs=1e-12)
        assert (law > 0).sum() == kept
        expected = result.table["p(x)"]
        assert (law / expected)[law > 0].is_monotonic_decreasing  # steeper, not flatter
    gone = result.table["gone at D"].tolist()
    assert gone == pytest.approx([0.6, 0.6, 0.5, 0.4, 0.25, 0.17, 0.12])
    assert (np.diff(result.changed) >= 0).all()  # the rarer, the more often changed
    assert pmf @ result.changed == pytest.approx(0.3, abs=1e-12)
    grid = np.linspace(0, 0.6, 121).round(3)
    gamma = [float(result.closed[d].equivocation) for d in grid]
    assert gamma == sorted(gamma)
    assert gamma[0] == 0
    assert gamma[-1] == pytest.approx(cpv.information.entropy(pmf))
    assert np.all(np.diff(gamma, 2) < 1e-9)  # concave


# ---- Gaussian data ------------------------------------------------------------------------


def told_beyond(joints, p):
    """I(X; what is released | Z), of a joint law with X for each z."""
    each = (
        information(j, m, cp.sum(j, axis=0) / m.sum()) for j, m in zip(joints, p.T, strict=True)
    )
    return sum(map(cp.sum, each))


def theorem_3(source, outputs, d):
    """Least I(X; X̂ | Z) in bits, in CVXPY's own words."""
    p = source.pmf.sum(axis=0)
    cost = np.subtract.outer(source.x, outputs) ** 2
    joints = [cp.Variable(cost.shape, nonneg=True) for _ in p.T]
    rules = [cp.sum(j, axis=1) == m for j, m in zip(joints, p.T, strict=True)]
    rules += [sum(cp.sum(cp.multiply(cost, j)) for j in joints) <= d]
    return solved(cp.Minimize(told_beyond(joints, p)), rules)


def theorem_2(source, outputs, d):
    """Least I(X; U | Z) in bits over all strategies, in CVXPY's own words."""
    p = source.pmf.sum(axis=0)
    strategies = np.array(list(itertools.product(range(len(outputs)), repeat=len(source.z))))
    cost = np.subtract.outer(source.x, outputs) ** 2
    value = cp.Variable((len(source.x), len(strategies)), nonneg=True)
    joints = [cp.multiply(m[:, None], value) for m in p.T]
    wrong = (cp.multiply(cost[:, t], j) for t, j in zip(strategies.T, joints, strict=True))
    rules = [cp.sum(value, axis=1) == 1, sum(map(cp.sum, wrong)) <= d]
    return solved(cp.Minimize(told_beyond(joints, p)), rules)


@pytest.mark.long
def test_script_sankar_fig5(run):
    ran = run("figures/sankar_fig5", "--quick")
    assert ran.differing == set()
    check_figure_5(ran)


@pytest.mark.campaign
def test_figure_5_of_sankar_at_full_size(run):
    ran = run("figures/sankar_fig5")
    assert ran.differing == set()
    check_figure_5(ran)
    losses = ran.result.losses
    matched = losses[(losses.step == 1) & (losses.kind == "rate")].sort_values("span")
    assert (matched["loss ≥"] > 0).all()  # a finite grid has a loss …
    assert (matched["loss ≤"].diff().dropna() < 0).all()  # … which falls as the span grows
    assert matched["loss ≤"].iloc[-1] < 1e-6
    far = losses[(losses.step == 2) & (losses.kind == "rate")]["loss ≥"]
    assert far.tolist() == pytest.approx([0.0578, 0.0578], abs=2e-4)  # more x do not help


def check_figure_5(ran):
    for row in ran.result.points.itertuples():
        if row.program == "covariance":
            closed = {"rate": np.log2((1 - row.z**2) / row.d) / 2,
                      "leakage": -np.log2(1 - row.w**2 * (1 - row.d)) / 2}  # fmt: skip
            assert row.solution.value == pytest.approx(closed[row.kind], abs=1e-6)
            assert ran.module.closed(row.kind, row.w, row.z, row.d) == closed[row.kind]
        else:
            referee.check(row.solution, status=row.solution.status)
    tails = ran.result.points.query("program != 'covariance'").solution
    assert max(s.gap for s in tails) < 5e-5
    losses = ran.result.losses
    assert (losses["loss ≥"] <= losses["loss ≤"]).all()
    assert (losses["Thm. 3"] <= losses["Thm. 2"] + 1e-6).all()


@pytest.mark.campaign
def test_no_rate_loss_is_of_the_continuum_and_of_gaussians():
    """Theorems 2 and 3 on small grids: what is lost, and for which laws."""
    module = script(ROOT / "figures" / "sankar_fig5.py")
    gaussian = cpv.GaussianSource.scalar(0.8, rho_xz=0.5).discretise(9, 2.4, z_points=3)
    x, z = np.array(gaussian.x), np.array(gaussian.z)
    humps = sum(np.exp(-((x[:, None] - 0.5 * z + s) ** 2) / 0.375) for s in (0.75, -0.75))
    humps = humps / humps.sum(axis=0) * gaussian.pmf.sum(axis=(0, 1))
    for source, least, most in (
        (gaussian, 5e-5, 2e-4), (cpv.DiscreteSource([humps / 2, humps / 2], x=x, z=z), 0.02, 0.1),
    ):  # fmt: skip
        outputs = module.letters(0.5, 0.3, 1)[1:-1]
        both, user = module.free("rate", source, outputs, 0.3, listed=4000).values()
        assert least < user.lower - both.upper <= user.upper - both.lower < most
        assert theorem_3(source, outputs, 0.3) == pytest.approx(both.value, abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("step", rest_at_length([3, 2], 1))
def test_both_theorems_in_cvxpys_own_words(step):
    module = script(ROOT / "figures" / "sankar_fig5.py")
    source = cpv.GaussianSource.scalar(0.8, rho_xz=0.5).discretise(7, 2.4, z_points=3)
    outputs = module.letters(0.5, 0.3, step)
    for listed in (4000, 1):  # listed, or generated
        both, user = module.free("rate", source, outputs, 0.3, listed=listed).values()
        assert theorem_3(source, outputs, 0.3) == pytest.approx(both.value, abs=1e-5)
        assert theorem_2(source, outputs, 0.3) == pytest.approx(user.upper, abs=1e-5)


@pytest.mark.long
def test_a_grid_approaches_gaussian_data_as_fast_as_their_tails_fall():
    """Without Z, over all channels: faster than any power of the points, if the span grows."""
    module, off = script(ROOT / "figures" / "sankar_fig5.py"), {}
    law = cpv.GaussianSource.scalar(0.8)
    for kind in module.KINDS:
        for points, span in ((11, 3), (21, 4), (31, 5), (21, 3), (31, 3)):
            [s] = module.free(kind, law.discretise(points, span), None, 0.3).values()
            off[kind, points, span] = abs(s.upper - module.closed(kind, 0.8, 0.0, 0.3))
        assert 0.012 > off[kind, 11, 3] > 10 * off[kind, 21, 4] > 100 * off[kind, 31, 5]
        assert min(off[kind, 21, 3], off[kind, 31, 3]) > 5e-3  # on ±3 they stay off


# ---- the doubly symmetric binary source --------------------------------------------------


@pytest.mark.long
def test_script_doubly_symmetric_binary(run):
    ran = run("problems/doubly_symmetric_binary")
    assert ran.differing == set()
    module, result, p0 = ran.module, ran.result, 0.25
    # what is known of it in nats: rates at D = .05, .1, .2
    expected = {"the user": (0.3896535340, 0.2850078694, 0.0950026231),
             "user, encoder": (0.3638199013, 0.2372521712, 0.0619327211)}  # fmt: skip
    for who, values in expected.items():
        for d, nats in zip((0.05, 0.1, 0.2), values, strict=True):
            assert module.closed("rate", who, d) == pytest.approx(nats / BITS, abs=1e-9)
    assert pytest.approx(0.0880207, abs=5e-8) == module.D_C

    for (kind, who, d), solution in result.items():
        referee.check(solution)
        closed = module.closed("rate", who, d) if who != "nobody" else 1 - h(d)
        closed = closed + (kind == "leakage" and who != "nobody") * (1 - h(p0))
        assert solution.lower - 1e-9 <= closed <= solution.upper + 1e-9
    for (who, d), rate in result["rate"].items():
        leakage = result["leakage", who, d]
        # W = X: one release is best in both
        assert float(rate.leakage) == pytest.approx(leakage.value, abs=2e-7)
        assert float(leakage.rate) == pytest.approx(rate.value, abs=2e-7)

    # time-sharing: beyond D_c the constants err D_c of the time, the followers p0
    for d, solution in result["rate", "the user"].items():
        rules, channel = solution.channel.decoder.table, solution.channel
        mass = dict(zip(map(tuple, rules), channel.released_marginal, strict=True))
        share = min(max((d - module.D_C) / (p0 - module.D_C), 0.0), 1.0)
        assert mass[0, 1] == pytest.approx(share, abs=2e-3)
        assert mass[1, 0] == pytest.approx(0.0, abs=1e-6)
        if share < 0.99:
            zero, one = rules.index([0, 0]), rules.index([1, 1])
            wrong = (channel.matrix[1, zero] + channel.matrix[0, one]) / 2 / (1 - share)
            assert wrong == pytest.approx(min(d, module.D_C), abs=1e-3)
            ends = (float(module.closed("rate", "the user", d + e)) for e in (1e-6, -1e-6))
            slope = (next(ends) - next(ends)) / 2e-6
            assert solution.prices["budget"] == pytest.approx(slope, rel=2e-3)

    # who pays: with Z at both, the total leakage is that without Z
    for d in module.BUDGETS:
        nobody, user, both = (result["leakage", who, d] for who in module.KNOWN_TO)
        assert both.value == pytest.approx(nobody.value, abs=1e-7)
        if d < p0:
            assert user.lower > both.upper + 1e-3
