"""The privacy–distortion function against oracles, closed forms and other algorithms."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy import reference
from tests import referee
from tests.lengths import rest_at_length

# Enclosures proved elsewhere in ball arithmetic at 128 bits, in nats: Gaussian density of
# correlation rho on `points` equally spaced values in [−3, 3]², D = share · Var X.
ORACLES = [
    (31, 0.95, 0.25, 0.5614509862680688, 0.56145098635671),
    (31, 0.95, 0.50, 0.29850669758365006, 0.2985066976372832),
    (31, 0.95, 0.75, 0.12717936561706678, 0.1271793731036641),
    (11, 0.70, 0.50, 0.1388360495557144, 0.13883604955817644),
    (21, 0.90, 0.40, 0.33012244540307684, 0.33012244543890035),
]


def gaussian(points: int, rho: float, share: float, **options) -> cpv.PrivacyDistortion:
    source = cpv.DiscreteSource.gaussian(rho, points=points)
    grid = np.array(source.x)
    variance = source.p_x @ grid**2 - (source.p_x @ grid) ** 2
    return cpv.PrivacyDistortion(
        source, cpv.squared_error(grid), budget=share * variance, units="nats", **options
    )


def random_problem(rng: np.random.Generator, w: int, x: int, y: int, alpha: float, **options):
    pmf = rng.dirichlet(np.full(w * x, alpha)).reshape(w, x)
    d = rng.random((x, y))
    ends = cpv.PrivacyDistortion(cpv.DiscreteSource(pmf), d, price=1.0)
    share = rng.uniform(0.05, 0.95)
    budget = (1 - share) * ends.least_distortion + share * ends.greatest_distortion
    budget = max(budget, ends.least_distortion)  # where both ends are one number, but for rounding
    return cpv.PrivacyDistortion(cpv.DiscreteSource(pmf), d, budget=budget, **options)


def h(p: float) -> float:
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


@pytest.mark.parametrize(("points", "rho", "share", "lower", "upper"), ORACLES)
@pytest.mark.parametrize(
    ("accuracy", "width"), rest_at_length([("high", 1e-9), ("default", 1e-6)], 1)
)
def test_encloses_the_oracles(points, rho, share, lower, upper, accuracy, width):
    solution = gaussian(points, rho, share).solve(accuracy=accuracy)
    referee.check(solution)
    assert solution.gap <= width
    assert solution.lower <= upper
    assert lower <= solution.upper


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_unit_of_distortion_does_not_matter(scale):
    plain = gaussian(11, 0.7, 0.5)
    scaled = cpv.PrivacyDistortion(
        plain.source, plain.alphabet.d * scale, budget=plain.budget * scale, units="nats"
    )
    a, b = plain.solve(accuracy="high"), scaled.solve(accuracy="high")
    referee.check(b, problem=scaled)
    assert max(a.lower, b.lower) <= min(a.upper, b.upper)
    assert b.prices["budget"] * scale == pytest.approx(a.prices["budget"], rel=1e-5)


@pytest.mark.parametrize(
    ("key", "count"), [(1, 10), pytest.param(2, 600, marks=pytest.mark.campaign)]
)
def test_nearly_all_random_instances_reach_a_billionth_of_a_nat(key, count):
    """At least 99 % of instances up to 10 × 30 × 30."""
    widths = []
    for seed in range(count):
        rng = np.random.default_rng([key, seed])
        sizes = rng.integers(2, 11), rng.integers(2, 31), rng.integers(2, 31)
        problem = random_problem(rng, *sizes, (0.1, 1.0, 10.0)[seed % 3], units="nats")
        solution = problem.solve(accuracy="high", certify=False)
        referee.check(solution, status=solution.status, verify=seed % 10 == 0)
        widths.append(solution.gap)
    assert np.mean(np.array(widths) <= 1e-9) >= 0.99


@given(p=st.floats(0.02, 0.5), share=st.floats(0.02, 0.98))
@settings(max_examples=15)
def test_binary_rate_distortion_is_the_closed_form(p, share):
    """W = X binary, Hamming: R(D) = h(p) − h(D) for D ≤ p, with slope −ln((1 − D)/D)."""
    budget = share * p
    source = cpv.DiscreteSource.identical([1 - p, p])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=budget, units="nats")
    solution = problem.solve(accuracy="high")
    referee.check(solution)
    truth = h(p) - h(budget)
    assert solution.lower - 1e-12 <= truth <= solution.upper + 1e-12
    slope = math.log((1 - budget) / budget)
    assert solution.prices["budget"] == pytest.approx(-slope, rel=1e-4, abs=1e-5)
    assert solution.duals["budget"] == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("slope", [3.0, 6.0, 12.0])
def test_blahut_arimoto_lies_in_the_enclosure(slope):
    rng = np.random.default_rng(5)
    p, d = rng.dirichlet(np.ones(6)), rng.random((6, 8))
    rate, budget, channel = reference.blahut_arimoto(p, d, slope, iterations=200_000)
    source = cpv.DiscreteSource.identical(p)
    solution = cpv.PrivacyDistortion(source, d, budget=budget, units="nats").solve(accuracy="high")
    assert solution.lower - 1e-9 <= rate <= solution.upper + 1e-7
    assert solution.prices["budget"] == pytest.approx(-slope, rel=1e-3)
    assert channel.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.long
def test_steepest_descent_goes_down_towards_the_certified_optimum():
    """The paper's §6.1, at its step and number of iterations, on 11 points."""
    source = cpv.DiscreteSource.gaussian(0.95, points=11)
    grid = np.array(source.x)
    d = (grid[:, None] - grid) ** 2
    start = reference.mixture_of_trivial_rules(grid, source.p_x, 0.5)
    best = cpv.PrivacyDistortion(source, cpv.squared_error(grid), price=1.22, units="nats").solve()
    costs = []
    for iterations in (0, 2_000, 32_000):
        risk, distortion, channel = reference.projected_descent(
            source.pmf, d, 1.22, start, iterations=iterations
        )
        joint = source.pmf @ channel
        assert risk == pytest.approx(cpv.information.mutual_information(joint, units="nats"))
        costs.append(distortion + 1.22 * risk)
    assert costs[0] > costs[1] > costs[2] > best.upper
    assert costs[2] - best.value < 0.5 * (costs[0] - best.value)


def test_a_row_is_projected_to_its_nearest_point_of_the_simplex():
    """From p(x) d = 1 and no price, a step moves each row by −step · d and projects it."""
    rng = np.random.default_rng(4)
    start, d = rng.dirichlet(np.ones(5), size=3), rng.normal(size=(3, 5))
    joint = np.full((2, 3), 1 / 6)
    _, _, moved = reference.projected_descent(
        joint, d, 0.0, start, iterations=1, step=0.9, exact=True
    )
    near = cp.Variable((3, 5), nonneg=True)
    off = cp.sum_squares(near - (start - 0.3 * d))
    cp.Problem(cp.Minimize(off), [cp.sum(near, axis=1) == 1]).solve(solver="CLARABEL")
    assert moved == pytest.approx(near.value, abs=1e-6)
    assert (moved == 0).any()


def test_one_descent_step_follows_the_gradient():
    """From an interior point, a small step lowers C by step·‖projected gradient‖²."""
    rng = np.random.default_rng(1)
    joint, d = rng.dirichlet(np.ones(12)).reshape(3, 4), rng.random((4, 4))
    start = rng.dirichlet(np.full(4, 20.0), size=4)

    def total(channel: np.ndarray) -> float:
        risk = cpv.information.mutual_information(joint @ channel, units="nats")
        return float((joint.sum(axis=0)[:, None] * channel * d).sum()) + 0.7 * risk

    step, gradient = 1e-5, np.zeros((4, 4))
    for at in np.ndindex(4, 4):
        ahead, behind = start.copy(), start.copy()
        ahead[at] += 1e-6
        behind[at] -= 1e-6
        gradient[at] = (total_of(joint, d, ahead) - total_of(joint, d, behind)) / 2e-6
    gradient -= gradient.mean(axis=1, keepdims=True)
    _, _, moved = reference.projected_descent(joint, d, 0.7, start, iterations=1, step=step)
    assert (start - moved) / step == pytest.approx(gradient, rel=1e-3, abs=1e-5)
    assert total(moved) < total(start)


def total_of(joint: np.ndarray, d: np.ndarray, channel: np.ndarray) -> float:
    """C for a channel whose rows need not sum to 1, as the gradient's formula has it."""
    recorded, p_x, p_w = joint @ channel, joint.sum(axis=0), joint.sum(axis=1)
    risk = (recorded * np.log(recorded / p_w[:, None])).sum() - (
        p_x @ channel * np.log(p_x @ channel)
    ).sum()
    return float((p_x[:, None] * channel * d).sum() + 0.7 * risk)


def test_no_distortion_reveals_what_x_reveals():
    problem = gaussian(11, 0.7, 0.0)
    solution = problem.solve(accuracy="high")
    referee.check(solution)
    assert solution.value == pytest.approx(problem.source.information(units="nats"), abs=1e-9)
    assert np.array_equal(solution.channel.matrix, np.eye(11))
    assert float(solution.distortion) == 0.0


def test_the_least_budget_is_the_face_of_nearest_letters():
    """D = D_min with ties: only moves to nearest outputs, and their best mixture."""
    pmf = np.array([[0.3, 0.1, 0.1], [0.1, 0.1, 0.3]])
    d = np.array([[0.2, 0.5], [0.4, 0.4], [0.5, 0.2]])
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(pmf), d, price=1.0)
    edge = cpv.PrivacyDistortion(cpv.DiscreteSource(pmf), d, budget=problem.least_distortion)
    solution = edge.solve()
    referee.check(solution)
    assert solution.channel.matrix[0, 0] == solution.channel.matrix[2, 1] == 1.0
    tie = [
        cpv.information.mutual_information(pmf @ np.array([[1, 0], [t, 1 - t], [0, 1]]))
        for t in np.linspace(0, 1, 2001)
    ]
    assert solution.value == pytest.approx(min(tie), abs=1e-6)


@pytest.mark.parametrize("factor", [1.0, 1.5, 1e6])
def test_beyond_the_greatest_distortion_nothing_is_revealed(factor):
    ends = gaussian(11, 0.7, 0.5)
    budget = factor * ends.greatest_distortion * (1 + 1e-12)
    problem = cpv.PrivacyDistortion(ends.source, ends.alphabet.d, budget=budget)
    solution = problem.solve(accuracy="high")
    referee.check(solution)
    assert solution.value == solution.lower == 0.0
    assert solution.prices["budget"] == 0.0


def test_perfect_privacy_can_cost_less_than_the_greatest_distortion():
    """R(D) = 0 from the linear program min ⟨C, Q⟩ s.t. M_W Q = p_W qᵀ on."""
    rng = np.random.default_rng(11)
    pmf, d = rng.dirichlet(np.ones(8)).reshape(2, 4), rng.random((4, 4))
    p_x, p_w = pmf.sum(axis=0), pmf.sum(axis=1)
    rows, right = [], []
    for s in range(4):
        row = np.zeros((4, 4))
        row[s] = 1
        rows.append(row.ravel())
        right.append(p_x[s])
    for y in range(4):
        row = np.zeros((4, 4))
        row[:, y] = pmf[0] / p_x - p_w[0]
        rows.append(row.ravel())
        right.append(0.0)
    free = linprog(d.ravel(), A_eq=np.array(rows), b_eq=right, bounds=(0, None)).fun
    source = cpv.DiscreteSource(pmf)
    assert free < cpv.PrivacyDistortion(source, d, price=1.0).greatest_distortion - 0.01
    above = cpv.PrivacyDistortion(source, d, budget=free + 1e-3).solve()
    below = cpv.PrivacyDistortion(source, d, budget=free - 1e-2).solve()
    assert above.value < 1e-6
    assert below.lower > 1e-6


@pytest.mark.parametrize("power", range(-14, -1, 2))
def test_budgets_next_to_the_least_are_certified(power):
    problem = gaussian(11, 0.9, 0.0)
    near = cpv.PrivacyDistortion(
        problem.source, problem.alphabet.d, budget=10.0**power, units="nats"
    )
    referee.check(near.solve())


def test_seeing_w_helps_and_is_certified():
    rng = np.random.default_rng(3)
    for _ in range(5):
        x_only = random_problem(rng, 3, 4, 4, 1.0)
        both = cpv.PrivacyDistortion(
            x_only.source, x_only.alphabet.d, budget=x_only.budget, encoder="wx"
        )
        a, b = x_only.solve(accuracy="high"), both.solve(accuracy="high")
        referee.check(b, problem=both)
        assert b.lower <= a.upper
        assert b.channel.matrix.shape == (12, 4)
        joint = np.zeros((3, 4))
        for (w, x), row in zip(b.channel.inputs, b.channel.matrix, strict=True):
            joint[w] += x_only.source.pmf[w, x] * row
        assert cpv.information.mutual_information(joint) == pytest.approx(b.value, abs=1e-9)


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_distortion_may_depend_on_w(encoder):
    """d(w, x, x̂): the budget holds for the average over the joint law, computed by hand."""
    rng = np.random.default_rng(4)
    pmf, d = rng.dirichlet(np.ones(12)).reshape(3, 4), rng.random((3, 4, 5))
    source = cpv.DiscreteSource(pmf)
    problem = cpv.PrivacyDistortion(source, d, budget=0.35, encoder=encoder)
    solution = problem.solve(accuracy="high")
    referee.check(solution, problem=problem)
    rows = solution.channel.matrix
    k = np.broadcast_to(rows, (3, 4, 5)) if encoder == "x" else rows.reshape(3, 4, 5)
    assert float(np.einsum("wx,wxy,wxy->", pmf, k, d)) <= 0.35 + 1e-12
    if encoder == "x":  # the same as its average given x
        averaged = np.einsum("wx,wxy->xy", pmf / pmf.sum(axis=0), d)
        same = cpv.PrivacyDistortion(source, averaged, budget=0.35).solve(accuracy="high")
        assert same.value == pytest.approx(solution.value, abs=1e-8)


def gaussian_with(**options):
    return cpv.PrivacyDistortion(
        cpv.DiscreteSource.gaussian(0.9, points=11),
        cpv.squared_error(np.linspace(-3, 3, 11)),
        units="nats",
        **options,
    )


def test_fixed_multipliers_bound_every_other_budget():
    """The bound is affine in the budget: one solve supports the whole curve."""
    solution = gaussian_with(budget=0.4).solve(accuracy="high")
    for budget in (0.05, 0.2, 0.35, 0.45, 0.6, 0.8):
        line = solution.lower + solution.prices["budget"] * (budget - 0.4)
        assert line <= gaussian_with(budget=budget).solve().upper + 1e-12


def test_a_real_failure_of_clarabel_is_survived():
    """With these settings Clarabel 0.11 gives up on this instance; the next settings do not."""
    rng = np.random.default_rng([7, 579])
    w, x, y = rng.integers(2, 11), rng.integers(2, 31), rng.integers(2, 31)
    pmf = rng.dirichlet(np.full(w * x, 0.1)).reshape(w, x)
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource(pmf), rng.random((x, y)), budget=0.244, units="nats"
    )
    solution = problem.solve(accuracy="high")
    referee.check(solution)
    for method, status in (("conic", "loose"), ("auto", "certified")):
        broken = cpv.PrivacyDistortion(
            cpv.DiscreteSource(pmf), problem.alphabet.d, budget=0.244, units="nats"
        ).solve(method=method, solver_options={"max_iter": 1})
        assert broken.status == status
        assert broken.lower <= solution.upper
        assert solution.lower <= broken.upper


@pytest.mark.parametrize(
    "options",
    [{"max_iters": 5}, {"direct_solve_method": "nonsense"}, {"equilibrate_max_iter": -1}],
)
def test_misspelled_settings_are_the_users_to_mend(options):
    with pytest.raises(cpv.InputError, match="solver_options.*CLARABEL"):
        gaussian(11, 0.7, 0.5).solve(solver_options=options)


def test_prints_and_latex_say_what_the_program_is():
    problem = gaussian(11, 0.7, 0.5)
    solution = problem.solve()
    text = str(solution)
    for piece in (
        "PrivacyDistortion: certified",
        "nats",
        "min I(W; X̂)",
        "E d(X, X̂) ≤",
        "d optimum / d budget",
    ):
        assert piece in text
    assert "I(W; \\hat X)" in problem.latex
    assert "\\le" in problem.latex
    assert problem._repr_latex_().count("$$") == 2
    assert "<table>" in solution._repr_html_()
    assert "certified" in repr(solution)
    assert "|W| = 11" in repr(problem)


def test_the_channel_is_a_ready_release():
    solution = gaussian(11, 0.7, 0.5).solve()
    channel = solution.channel
    assert solution.release is channel
    assert (channel.matrix.sum(axis=1) == 1.0).all()  # exactly: multiples of 2⁻⁵²
    drawn = channel.apply(channel.inputs * 3, seed=1)
    assert set(drawn.tolist()) <= set(channel.outputs)


@pytest.mark.long
def test_a_laplacian_source_is_approached_from_below():
    """Absolute error, E|X| = 1: R(D) = log(1/D) (Berger 1971); cut and sampled, a little less."""
    for budget, most in ((0.4, 0.3), (0.7, 0.2)):
        off = []
        for points, span in ((21, 4.0), (41, 6.0), (81, 8.0)):
            x = np.linspace(-span, span, points)
            p = np.exp(-np.abs(x))
            source = cpv.DiscreteSource.identical(p / p.sum(), x=x.tolist())
            error = cpv.absolute_error(source.x)
            solution = cpv.PrivacyDistortion(source, error, budget=budget).solve(certify=False)
            assert solution.gap < 1e-5
            off.append(-math.log2(budget) - solution.upper)
        assert most > off[0] > 2 * off[1] > 4 * off[2] > 0
