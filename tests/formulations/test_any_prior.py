"""Leakage whatever the prior: oracles, closed forms, and what CVXPY finds by itself."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.leakage.relative_entropy import RelativeEntropy
from cvxprivacy_verifier.statement import stated
from tests.lengths import seeds, some_at_length

LOG2 = math.log(2)
SOURCE = cpv.DiscreteSource([[0.3, 0.1, 0.05], [0.05, 0.1, 0.4]])
ORACLES = json.loads((Path(__file__).parents[1] / "data" / "any-prior.json").read_text())


def h(*law):
    return -sum(p * math.log(p) for p in law if p > 0)


def designed(source, d, budget=None, **options):
    options = {"units": "nats", **options}
    return cpv.PrivacyDistortion(source, d, budget=budget, prior="any", **options)


def certified(problem, **options):
    solution = problem.solve(**options)
    assert solution.status == "certified"
    assert solution.certificate.verify()
    return solution


def test_multipliers_are_of_the_letters_alone_and_add_up_to_the_value():
    d = cpv.hamming(3)
    solution = certified(designed(SOURCE, d, 0.2, criteria=[cpv.LocalPrivacy(3)]))
    assert solution.duals["floor"].shape == solution.duals["local_privacy.cap"].shape == (3, 3)
    p_x = SOURCE.pmf.sum(axis=0)
    dual = p_x @ solution.duals["mass"] - 0.2 * solution.duals["budget"]
    assert dual == pytest.approx(solution.value, abs=1e-7)


def test_what_is_no_measure_by_itself_is_refused():
    measure = RelativeEntropy()
    with pytest.raises(cpv.InputError, match='of one value of W alone; use prior="any"'):
        cpv.PrivacyDistortion(SOURCE, cpv.hamming(3), 0.2, leakage=measure)


# ---- values known from elsewhere ---------------------------------------------------------


@pytest.mark.parametrize("number", some_at_length(range(len(ORACLES)), 6))
def test_ends_meet_those_that_another_program_proved(number):
    value = ORACLES[number]
    source = cpv.DiscreteSource(value["pmf"])
    solution = certified(designed(source, np.array(value["d"]), value["budget"]), accuracy="high")
    assert solution.lower <= max(value["upper"], 0.0)  # floats of the other program are below 0
    assert value["lower"] <= solution.upper
    assert solution.upper - solution.lower < 1e-8


@pytest.mark.parametrize(
    ("a", "budget"),
    some_at_length([(a, b) for b in (0.0, 0.05, 0.2, 0.5) for a in (0.0, 0.1, 0.3)], 4),
)
def test_of_a_symmetric_bit_the_even_prior_learns_most(a, budget):
    law = np.array([[1 - a, a], [a, 1 - a]]) / 2
    source = cpv.DiscreteSource(law)
    solution = certified(designed(source, cpv.hamming(2), budget))
    q = a * (1 - budget) + (1 - a) * budget
    assert solution.value == pytest.approx(LOG2 - h(q, 1 - q), abs=2e-6)
    by_source = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=budget, units="nats").solve()
    assert solution.value == pytest.approx(by_source.value, abs=2e-6)
    if q < 0.49:  # else any prior learns as little
        assert solution.least_favourable == pytest.approx({0: 0.5, 1: 0.5}, abs=1e-2)


@pytest.mark.parametrize("size", [2, 4])
def test_of_a_value_itself_and_evenly_it_is_the_distortion_of_a_uniform_source(size):
    source = cpv.DiscreteSource.identical([Fraction(1, size)] * size)
    for budget in (0.1, 1 - 1 / size):
        truth = math.log(size) - h(1 - budget, budget) - budget * math.log(size - 1)
        solution = certified(designed(source, cpv.hamming(size), budget))
        assert solution.value == pytest.approx(truth, abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_budget_it_is_the_capacity_of_the_letters(seed):
    source = cpv.DiscreteSource(np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(3, 4))
    solution = certified(designed(source, cpv.hamming(4), 0))
    exactly = cpv.capacity(np.eye(4), source, units="nats")
    assert solution.lower <= exactly.value.upper
    assert exactly.value.lower <= solution.upper
    most = solution.least_favourable
    assert most == pytest.approx(exactly.prior, abs=0.02)


@pytest.mark.parametrize("budget", [0.45, 0.6])
def test_with_room_enough_nothing_is_told(budget):
    solution = certified(designed(SOURCE, cpv.hamming(3), budget + 0.1))
    assert solution.lower <= 0 <= solution.upper <= 1e-6


def test_what_is_released_tells_no_prior_more():
    solution = certified(designed(SOURCE, cpv.hamming(3), 0.15), accuracy="high")
    rows = SOURCE.pmf / SOURCE.pmf.sum(axis=1, keepdims=True) @ solution.channel.matrix
    shares = np.linspace(0, 1, 201)[:, None]
    informed = [
        cpv.information.mutual_information(np.array([[p], [1 - p]]) * rows, units="nats")
        for p in shares.ravel()
    ]
    assert max(informed) <= solution.upper + 1e-12
    assert max(informed) == pytest.approx(solution.value, abs=1e-4)
    capacity = cpv.capacity(solution.channel, SOURCE, units="nats").value
    assert capacity.upper >= solution.lower
    assert capacity.lower <= solution.upper
    prior = np.array(list(solution.least_favourable.values()))
    assert cpv.information.mutual_information(prior[:, None] * rows, units="nats") == (
        pytest.approx(solution.value, abs=1e-7)
    )
    by_source = cpv.PrivacyDistortion(SOURCE, cpv.hamming(3), budget=0.15, units="nats").solve()
    assert by_source.value <= solution.value  # the table's own prior is one of them
    assert solution.terms["information"].upper <= solution.upper


# ---- against a statement in CVXPY --------------------------------------------------------


class Stated:
    """min t: D(V_w ‖ r) ≤ t for every w, in CVXPY, over Q and a law r."""

    def __init__(self, law, d, encoder="x"):
        self.law, self.d = law, np.asarray(d, float)
        w, x = law.shape
        m = self.d.shape[-1]
        self.p_w = law.sum(axis=1)
        self.q = [cp.Variable((x, m), nonneg=True) for _ in range(w if encoder == "wx" else 1)]
        self.r, self.t = cp.Variable(m, nonneg=True), cp.Variable()
        self.rows = [self.q[min(i, len(self.q) - 1)] for i in range(w)]
        self.constraints = [cp.sum(q, axis=1) == 1 for q in self.q] + [cp.sum(self.r) == 1]
        costs = self.d if self.d.ndim == 3 else np.broadcast_to(self.d, (w, *self.d.shape))
        self.distortion = sum(
            cp.sum(cp.multiply(law[i][:, None] * costs[i], self.rows[i])) for i in range(w)
        )
        self.laws = [law[i] @ self.rows[i] / self.p_w[i] for i in range(w)]
        self.constraints += [cp.sum(cp.rel_entr(v, self.r)) <= self.t for v in self.laws]
        self.marginal = sum(law[i] @ self.rows[i] for i in range(w))

    def least(self, objective, *constraints):
        problem = cp.Problem(cp.Minimize(objective), [*self.constraints, *constraints])
        precise = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
        return problem.solve(solver=cp.CLARABEL, **precise)


def law_of(seed, w=3, x=4):
    rng = np.random.default_rng([44, seed])
    law = rng.dirichlet(np.full(w * x, 10 ** rng.uniform(-0.3, 0.5))).reshape(w, x)
    return law, rng


@pytest.mark.parametrize("encoder", ["x", "wx"])
@pytest.mark.parametrize("seed", seeds(20, 2))
def test_cvxpy_finds_the_same(seed, encoder):
    law, rng = law_of(seed)
    d = rng.random((4, 4)) * (1 - np.eye(4))
    stated_here = Stated(law, d, encoder)
    budget = float(rng.uniform(0.02, 0.8)) * float((law.sum(axis=0) @ d).min())
    least = stated_here.least(stated_here.t, stated_here.distortion <= budget)
    problem = designed(cpv.DiscreteSource(law), d, budget, encoder=encoder)
    assert certified(problem).value == pytest.approx(least, abs=2e-6)
    price = float(rng.uniform(0.1, 2))
    least = stated_here.least(price * stated_here.t + stated_here.distortion)
    problem = designed(cpv.DiscreteSource(law), d, price=price, encoder=encoder)
    assert certified(problem).value == pytest.approx(least, abs=2e-6)


@pytest.mark.parametrize("seed", some_at_length(range(8), 1))
def test_methods_agree(seed):
    law, rng = law_of(seed)
    budget = float(rng.uniform(0.1, 0.4))
    problem = designed(cpv.DiscreteSource(law), cpv.hamming(4), budget)
    interior, conic = certified(problem, method="structured"), certified(problem, method="conic")
    assert interior.value == pytest.approx(conic.value, abs=2e-6)
    assert problem.problem.solve() == pytest.approx(interior.value, abs=1e-5)


def local(s, e):
    q = s.q[0]
    return [q[i] <= math.exp(e) * q[j] for i in range(4) for j in range(4)]


def approximate(s, e, delta):
    q = s.q[0]
    return [cp.sum(cp.pos(q[i] - math.exp(e) * q[j])) <= delta for i in range(4) for j in range(4)]


def within(s, b):
    p_x = np.array(s.law.sum(axis=0))
    return [cp.sum(cp.abs(s.marginal - p_x)) / 2 <= b]


MOVES = np.tri(4, 4, -2, dtype=bool)
BESIDE = {
    "local": (lambda: cpv.LocalPrivacy(1.2), lambda s: local(s, 1.2)),
    "metric": (
        lambda: cpv.LocalPrivacy(1, metric=cpv.absolute_error([0, 1, 2, 3])),
        lambda s: [
            s.q[0][i] <= math.exp(abs(i - j)) * s.q[0][j] for i in range(4) for j in range(4)
        ],
    ),
    "but for": (
        lambda: cpv.LocalPrivacy(0.5, delta=0.2),
        lambda s: approximate(s, 0.5, 0.2),
    ),
    "marginal": (
        cpv.PreserveMarginal,
        lambda s: [s.marginal == s.law.sum(axis=0)],
    ),
    "distance": (lambda: cpv.MarginalDistance(0.05), lambda s: within(s, 0.05)),
    "kept": (lambda: cpv.KeepProbability(0.6), lambda s: [cp.diag(s.q[0]) >= 0.6]),
    "moves": (
        lambda: cpv.ForbiddenMoves(MOVES),
        lambda s: [cp.multiply(MOVES.astype(float), s.q[0]) == 0],
    ),
    "maximal": (
        lambda: cpv.MaximalLeakage(math.log(2.5)),
        lambda s: [cp.sum(cp.max(s.q[0], axis=0)) <= 2.5],
    ),
    "mean": (
        lambda: cpv.PreserveMean([0, 1, 2, 3]),
        lambda s: [s.marginal @ np.arange(4) == s.law.sum(axis=0) @ np.arange(4)],
    ),
    "closeness": (
        lambda: cpv.TCloseness(0.05, distance="tv"),
        lambda s: [
            sum(cp.abs(v[y] - s.marginal[y]) * p for v, p in zip(s.laws, s.p_w, strict=True)) / 2
            <= 0.05 * s.marginal[y]
            for y in range(4)
        ],
    ),
}  # fmt: skip
BUDGETS = {"local": 0.5, "metric": 0.5, "but for": 0.5, "maximal": 0.35, "closeness": 0.4}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("seed", some_at_length(range(6), 1))
def test_criteria_beside_it_leave_the_law_r_as_free_as_it_is(name, seed):
    """Each acts on the row r too, or must not: the least is that of a program without it."""
    law, _ = law_of(seed)
    criterion, rows = BESIDE[name]
    stated_here = Stated(law, cpv.hamming(4).matrix)
    budget = BUDGETS.get(name, 0.25)
    least = stated_here.least(stated_here.t, stated_here.distortion <= budget, *rows(stated_here))
    problem = designed(cpv.DiscreteSource(law), cpv.hamming(4), budget, criteria=[criterion()])
    if not math.isfinite(least):
        with pytest.raises(cpv.InfeasibleError):
            problem.solve()
        return
    assert certified(problem).value == pytest.approx(least, abs=3e-6)


@pytest.mark.parametrize("seed", some_at_length(range(6), 1))
def test_a_cap_on_capacity_is_the_inverse(seed):
    law, rng = law_of(seed)
    source, d = cpv.DiscreteSource(law), cpv.hamming(4)
    budget = float(rng.uniform(0.1, 0.3))
    least = certified(designed(source, d, budget), accuracy="high").value
    problem = cpv.MinimumDistortion(source, d, [cpv.CapacityCap(least)], units="nats")
    assert certified(problem, accuracy="high").value == pytest.approx(budget, abs=1e-6)
    stated_here = Stated(law, d.matrix)
    other = stated_here.least(stated_here.distortion, stated_here.t <= least / 2)
    assert certified(problem.at(capacity_cap=least / 2)).value == pytest.approx(other, abs=3e-6)
    both = cpv.PrivacyDistortion(
        source, d, budget=0.4, criteria=[cpv.CapacityCap(least / 2)], units="nats"
    )
    information = sum(
        p * cp.sum(cp.rel_entr(v, stated_here.marginal))
        for p, v in zip(stated_here.p_w, stated_here.laws, strict=True)
    )
    within = [stated_here.distortion <= 0.4, stated_here.t <= least / 2]
    assert certified(both).value == pytest.approx(stated_here.least(information, *within), abs=3e-6)


def test_a_cap_and_an_aim_share_the_law_r():
    """Capped below its least, the aim is infeasible; capped at more, the cap is idle."""
    problem = designed(SOURCE, cpv.hamming(3), 0.15)
    least = certified(problem).value
    for cap, met in ((1.01 * least, True), (0.99 * least, False)):
        capped = designed(SOURCE, cpv.hamming(3), 0.15, criteria=[cpv.CapacityCap(cap)])
        if met:
            assert certified(capped).value == pytest.approx(least, abs=1e-6)
            continue
        with pytest.raises(cpv.InfeasibleError) as refused:
            capped.solve()
        assert refused.value.certificate.verify()
        assert "capacity_cap would have to be at least" in str(refused.value)


# ---- what is infeasible, prices, frontiers, candidates -----------------------------------


def test_what_cannot_be_is_proved_and_explained():
    problem = designed(SOURCE, cpv.hamming(3), 0.05, criteria=[cpv.LocalPrivacy(0.5)])
    with pytest.raises(cpv.InfeasibleError) as refused:
        problem.solve()
    assert refused.value.certificate.status == "infeasible"
    assert refused.value.certificate.verify()
    text = str(refused.value)
    assert "budget" in text
    assert "LocalPrivacy(0.5)" in text
    cap = cpv.MinimumDistortion(
        SOURCE, cpv.hamming(3), [cpv.CapacityCap(0.001), cpv.KeepProbability(0.9)]
    )
    with pytest.raises(cpv.InfeasibleError) as refused:
        cap.solve()
    assert refused.value.certificate.verify()
    assert "capacity_cap would have to be at least" in str(refused.value)


@pytest.mark.parametrize("name", some_at_length(["budget", "local_privacy", "capacity_cap"], 1))
def test_prices_hold_what_differences_say(name):
    if name == "capacity_cap":
        problem = cpv.MinimumDistortion(SOURCE, cpv.hamming(3), [cpv.CapacityCap(0.02)])
        at = 0.02
    else:
        criteria = [cpv.LocalPrivacy(1.5)] if name == "local_privacy" else []
        problem = designed(SOURCE, cpv.hamming(3), 0.35 if criteria else 0.15, criteria=criteria)
        at = 1.5 if criteria else 0.15
    solution = certified(problem, accuracy="high")
    step = 0.01 * at
    below, above = (problem.at(**{name: x}).solve(accuracy="high") for x in (at - step, at + step))
    price = solution.prices[name]
    steepest = (solution.upper - below.lower) / step, (solution.lower - below.upper) / step
    flattest = (above.upper - solution.lower) / step, (above.lower - solution.upper) / step
    assert price.lower <= max(flattest) + 1e-6
    assert price.upper >= min(steepest) - 1e-6
    assert min(steepest) - 1e-5 <= price.upper
    assert price.lower <= max(flattest) + 1e-5
    assert min(steepest) <= max(flattest) + 1e-6  # convex


def test_a_frontier_holds_every_point_between():
    problem = designed(SOURCE, cpv.hamming(3), 0.15)
    curve = cpv.frontier(problem, "budget", tol=0.05)
    rng = np.random.default_rng(1)
    for budget in rng.uniform(0.02, 0.45, 2):
        solution = certified(problem.at(budget=float(budget)))
        assert curve.outer(budget) <= solution.upper + 1e-9
        assert solution.lower <= curve.inner(budget) + 1e-9


@pytest.mark.parametrize("encoder", ["x", "wx"])
@pytest.mark.parametrize("of_w", [False, True])
def test_the_ends_of_the_curve_are_those_of_any_problem(of_w, encoder):
    d = np.random.default_rng(2).uniform(size=(2, 3, 3))
    d = d if of_w else cpv.Distortion(np.where(d[0] > 0.9, math.inf, d[0]))
    plain = cpv.PrivacyDistortion(SOURCE, d, 0.9, encoder=encoder)
    capped = cpv.MinimumDistortion(SOURCE, d, [cpv.CapacityCap(0.1)], encoder=encoder)
    for problem in (designed(SOURCE, d, 0.9, encoder=encoder), capped):
        assert problem.least_distortion == pytest.approx(plain.least_distortion, rel=1e-14)
        assert problem.greatest_distortion == pytest.approx(plain.greatest_distortion, rel=1e-14)


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_candidates_are_told_how_far_they_are(encoder):
    problem = designed(SOURCE, cpv.hamming(3), 0.15, encoder=encoder)
    solution = certified(problem)
    by_duals = problem.certify(solution.channel, duals=solution.duals)
    assert by_duals.lower == pytest.approx(solution.lower, abs=1e-8)
    again = problem.certify(solution.channel)
    assert again.status == "certified"
    assert again.lower <= solution.upper
    assert solution.lower <= again.upper
    by_source = cpv.PrivacyDistortion(SOURCE, cpv.hamming(3), budget=0.15, encoder=encoder)
    other = problem.certify(by_source.solve().channel)
    assert other.lower <= solution.upper + 1e-9
    assert other.upper >= solution.lower - 1e-9
    assert other.certificate.verify()
    if encoder == "x":
        for matrix in (np.eye(3), np.full((3, 3), 1 / 3)):
            answer = problem.certify(matrix)  # repaired, where it keeps no budget
            assert answer.lower <= solution.upper + 1e-9
            assert answer.upper >= solution.lower - 1e-9
            assert answer.certificate.verify()
        letters = cpv.capacity(np.eye(3), SOURCE, units="nats").value
        assert problem.certify(np.eye(3)).upper == pytest.approx(letters.upper, abs=1e-6)


# ---- laws that are hard to hold ----------------------------------------------------------


def test_of_masses_whose_sum_is_no_float_the_law_r_has_exactly_as_much():
    for pmf in (
        [[0.1, 0.2], [0.3, 0.4]],
        [[0.1, 1e-17], [1e-30, 0.9]],
        [[1 / 3, 1e-12], [1e-12, 2 / 3]],
        [[7 / 11, 1 / 11], [2.0**-60, 3 / 11]],
    ):
        source = cpv.DiscreteSource(pmf)
        problem = designed(source, cpv.hamming(2), 0.1)
        law = [[Fraction(p) for p in row] for row in problem.program.law.tolist()]
        others = sum(p for row in law for p in row[:-1])
        assert sum(row[-1] for row in law) == others
        solution = certified(problem)
        rows = np.array(pmf) / np.sum(pmf, axis=1, keepdims=True)
        stated_here = Stated(np.array(pmf) / np.sum(pmf), 1 - np.eye(2))
        least = stated_here.least(stated_here.t, stated_here.distortion <= 0.1)
        assert solution.value == pytest.approx(least, abs=1e-4)
        assert (
            solution.upper
            >= cpv.capacity(rows @ solution.channel.matrix, units="nats").value.lower - 1e-9
        )


def test_a_rare_value_weighs_as_much_as_any():
    for rare in (1e-3, 1e-6, 1e-12):
        law = np.array([[rare * 0.9, rare * 0.1], [(1 - rare) * 0.2, (1 - rare) * 0.8]])
        solution = certified(designed(cpv.DiscreteSource(law), cpv.hamming(2), 0.05))
        # the budget is all of the frequent value's: the prior that learns most is not rare
        assert solution.value > 0.1
        assert min(solution.least_favourable.values()) > 0.3


def test_what_has_no_mass_is_no_ones_concern():
    law = np.array([[0.3, 0, 0.1, 0], [0, 0, 0, 0], [0.1, 0, 0.5, 0]])
    solution = certified(designed(cpv.DiscreteSource(law), cpv.hamming(4), 0.1))
    small = certified(designed(cpv.DiscreteSource(law[::2, ::2]), cpv.hamming(2), 0.1))
    assert solution.value == pytest.approx(small.value, abs=2e-6)
    assert list(solution.least_favourable) == [0, 2]
    assert len(solution.channel.inputs) == 4
    zeros = np.array([[0.4, 0.0], [0.0, 0.6]])
    both = certified(designed(cpv.DiscreteSource(zeros), cpv.hamming(2), 0.1, encoder="wx"))
    assert both.channel.encoder == "wx"


def test_of_one_value_nothing_is_told():
    solution = certified(designed(cpv.DiscreteSource([[0.3, 0.7]]), cpv.hamming(2), 0.1))
    assert solution.lower <= 0 <= solution.upper < 1e-6
    assert dict(solution.least_favourable) == {0: 1.0}


def test_labels_move_with_their_rows():
    rng = np.random.default_rng(9)
    law = rng.dirichlet(np.ones(12)).reshape(3, 4)
    d = rng.random((4, 4)) * (1 - np.eye(4))
    first = certified(designed(cpv.DiscreteSource(law, w=[*"abc"]), d, 0.1), accuracy="high")
    ws, xs = [2, 0, 1], [3, 1, 0, 2]
    moved = cpv.DiscreteSource(law[np.ix_(ws, xs)], w=[*"cab"], x=xs)
    second = certified(designed(moved, d[np.ix_(xs, xs)], 0.1), accuracy="high")
    assert first.value == pytest.approx(second.value, abs=1e-8)
    for w in "abc":
        assert first.least_favourable[w] == pytest.approx(second.least_favourable[w], abs=1e-3)


def test_bits_are_nats_over_log_two():
    values = {
        u: certified(designed(SOURCE, cpv.hamming(3), 0.1, units=u)) for u in ("bits", "nats")
    }
    assert values["bits"].value == pytest.approx(values["nats"].value / LOG2, abs=3e-6)
    assert values["bits"].prices["budget"].upper == pytest.approx(
        values["nats"].prices["budget"].upper / LOG2, rel=1e-2
    )


def test_labels_that_print_alike_are_told_apart():
    law = [[0.2, 0.1], [0.1, 0.2], [0.15, 0.25]]
    source = cpv.DiscreteSource(law, w=[1, "1", 1.5])
    solution = certified(designed(source, cpv.hamming(2), 0.1))
    assert set(solution.least_favourable) == {1, "1", 1.5}
    assert len(solution.certificate.document()["program"]["objective"]["worst"]) == 3


# ---- what it is not ----------------------------------------------------------------------

SIDE = cpv.DiscreteSource(np.full((2, 2, 2), 0.125))
FIRST = cpv.PrivacyDistortion(
    cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]]), cpv.hamming(2), budget=0.2
)
PAIR = cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]])
REFUSED = {
    "laws": lambda: designed(PAIR, cpv.hamming(2), 0.1, laws=[PAIR]),
    "after": lambda: designed(PAIR, cpv.hamming(2), 0.1, after=FIRST.solve().channel),
    "another measure": lambda: designed(
        PAIR, cpv.hamming(2), 0.1, leakage=cpv.leakage.ChiSquared()
    ),
    "another prior": lambda: cpv.PrivacyDistortion(PAIR, cpv.hamming(2), budget=0.1, prior="all"),
    "no word": lambda: cpv.PrivacyDistortion(PAIR, cpv.hamming(2), budget=0.1, prior=None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_such_value_is_refused(name):
    with pytest.raises(cpv.InputError) as refused:
        REFUSED[name]().solve()
    assert refused.value.argument == "prior"
    assert refused.value.remedy


CAPPED = {
    "laws": lambda: cpv.MinimumDistortion(
        PAIR, cpv.hamming(2), [cpv.CapacityCap(0.1)], laws=[PAIR]
    ),
    "side": lambda: cpv.RateDistortionEquivocation(
        SIDE, cpv.hamming(2), 0.2, side_information="decoder", criteria=[cpv.CapacityCap(0.1)]
    ),
}


@pytest.mark.parametrize("name", CAPPED)
def test_a_cap_of_several_laws_or_of_side_information_is_refused(name):
    with pytest.raises(cpv.InputError):
        CAPPED[name]().solve()


def test_it_says_what_is_minimised_of_whom():
    solution = certified(designed(SOURCE, cpv.hamming(3), 0.1))
    text = "\n".join(stated(solution.certificate.document()))
    assert "relative entropy of label 0's outputs from label 1's" in text
    assert "letter 3 with 0.5 of the mass" in text
    assert r"\max" in designed(SOURCE, cpv.hamming(3), 0.1).latex


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_the_dual_as_it_is_printed_attains_the_value(encoder):
    """θ a prior, s = log V/θV: Σ min over x̂ of the braces, less λ times the budget."""
    problem = designed(SOURCE, cpv.hamming(3), 0.15, encoder=encoder)
    solution = certified(problem, accuracy="high")
    assert r"\sum_{w} \theta(w) = 1" in problem.dual_latex
    matrix = (
        np.broadcast_to(solution.channel.matrix, (2, 3, 3))
        if encoder == "x"
        else (np.asarray(solution.channel.matrix).reshape(2, 3, 3))
    )
    law, theta = SOURCE.pmf, np.array(list(solution.least_favourable.values()))
    by_w = law / law.sum(axis=1, keepdims=True)
    released = np.einsum("wx,wxy->wy", by_w, matrix)
    s = np.log(released / (theta @ released))
    assert (theta @ np.exp(s)) == pytest.approx(1)
    costs, price = cpv.hamming(3).matrix, solution.duals["budget"]
    each = theta[:, None, None] * by_w[:, :, None] * s[:, None, :]
    each = each + law[:, :, None] * price * costs
    each = each.sum(axis=0, keepdims=True) if encoder == "x" else each
    assert each.min(axis=-1).sum() - 0.15 * price == pytest.approx(solution.value, abs=1e-5)
