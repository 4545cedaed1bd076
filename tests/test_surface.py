"""Surfaces of rate, distortion and leakage: closed forms, brute force, and exact membership."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import rel_entr

import cvxprivacy as cpv
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frontiers.facets import Weighted
from cvxprivacy.programs import Minimize, Term
from tests import referee


class LeastRate(ChannelProblem):
    """min I(X; X̂) s.t. E d ≤ D, I(W; X̂) ≤ ℓ: rate, distortion, equivocation, nobody knows Z."""

    def __init__(self, source, distortion, *, budget=0.3, max_leakage=0.3, **options):
        self.budget, self.max_leakage = budget, max_leakage
        super().__init__(source, distortion, **options)

    def objective(self):
        return Minimize(Term("rate", {"S": 1.0}, latex=r"I(X; \hat X)"))

    def subject_to(self):
        return {
            "budget": self.distortion <= self.budget,
            "max_leakage": self.risk <= self.max_leakage,
        }


def entropy(p: float) -> float:
    return 0.0 if p in (0.0, 1.0) else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


ERROR = 0.1
SYMMETRIC = cpv.DiscreteSource([[(1 - ERROR) / 2, ERROR / 2], [ERROR / 2, (1 - ERROR) / 2]])
SKEWED = cpv.DiscreteSource([[0.45, 0.05], [0.1, 0.4]])  # rate and leakage pull apart
NAMES = ("budget", "max_leakage")


@pytest.fixture(scope="module")
def symmetric() -> cpv.Surface:
    return cpv.surface(LeastRate(SYMMETRIC, cpv.hamming(2)), NAMES, tol=3e-3)


@pytest.fixture(scope="module")
def skewed() -> cpv.Surface:
    error = [[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]]  # a third letter that keeps less
    return cpv.surface(LeastRate(SKEWED, error), NAMES, tol=5e-3)


def closed(budget: float) -> tuple[float, float]:
    """R(D) = 1 − h(D) and L(D) = 1 − h(p ∗ D), by the same channel."""
    through = ERROR * (1 - budget) + (1 - ERROR) * budget
    return 1 - entropy(budget), 1 - entropy(through)


def test_the_binary_closed_form_is_on_the_surface(symmetric):
    assert symmetric.complete
    assert symmetric.band <= 3e-3
    step = symmetric.band * symmetric.units * 1.001
    for budget in np.random.default_rng(0).uniform(0.0, 0.5, 25).tolist():
        rate, leakage = closed(budget)
        assert symmetric.outer(budget, leakage) <= rate + 1e-12  # feasible: not excluded
        assert symmetric.outer(budget, 1.0) <= rate + 1e-12 <= symmetric.inner(budget, 1.0) + 1e-12
        point = np.array([budget, leakage, rate])
        assert symmetric.contains(point) != "outside"
        assert symmetric.contains(point + step) == "inside"
        assert symmetric.contains(point - step) == "outside"
    for budget in (0.1, 0.2, 0.4):  # both are least: less of either is not to be had, by proof
        rate, leakage = closed(budget)
        assert symmetric.contains([budget, leakage, rate - 0.02]) == "outside"
        assert symmetric.contains([budget, leakage - 0.02, 5.0]) == "outside"
        assert symmetric.outer(budget, leakage - 0.02) == math.inf
        assert symmetric.inner(budget, leakage - 0.02) == math.inf


def test_answers_carry_their_proof(skewed):
    rng = np.random.default_rng(5)
    vertices = [[Fraction(x) for x in row] for row in skewed.vertices.tolist()]
    seen = set()
    for point in rng.uniform([0, 0, 0], [0.5, 0.5, 1.0], (200, 3)):
        answer = skewed.contains(point)
        seen.add(str(answer))
        exact = [Fraction(x) for x in point.tolist()]
        if answer == "inside":
            assert sum(answer.weights.values()) == 1
            assert min(answer.weights.values()) > 0
            mixed = [sum(w * vertices[i][k] for i, w in answer.weights.items()) for k in range(3)]
            assert all(a <= b for a, b in zip(mixed, exact, strict=True))
            assert answer.plane is None
        elif answer == "outside":
            *normal, support = answer.plane
            assert min(normal) >= 0
            assert sum(w * x for w, x in zip(normal, exact, strict=True)) < support
            for vertex in vertices:
                assert sum(w * x for w, x in zip(normal, vertex, strict=True)) >= support
        else:
            raised = point + skewed.band * skewed.units * 1.001
            assert skewed.contains(raised) == "inside"
    assert {"inside", "outside"} <= seen


def test_membership_agrees_with_brute_force(skewed):
    """Every channel of a fine grid is inside or within tol, and dominates what is inside."""
    error = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]])
    side = np.linspace(0, 1, 26)
    laws = np.array([[a, b, 1 - a - b] for a in side for b in side if a + b <= 1 + 1e-12]).clip(0)
    pairs = np.array([(i, j) for i in range(len(laws)) for j in range(len(laws))])
    channels = np.stack([laws[pairs[:, 0]], laws[pairs[:, 1]]], axis=1)
    p_x = SKEWED.p_x
    released = np.einsum("x,kxy->ky", p_x, channels)

    def information(joint, own):
        return rel_entr(joint, own[None, :, None] * released[:, None]).sum((1, 2)) / math.log(2)

    budget = np.einsum("x,kxy,xy->k", p_x, channels, error)
    rate = information(p_x[None, :, None] * channels, p_x)
    leakage = information(np.einsum("wx,kxy->kwy", SKEWED.pmf, channels), SKEWED.p_w)
    found = np.stack([budget, leakage, rate], axis=1)
    # soundness: no half-space excludes any channel
    normals, supports = skewed.planes[:, :3], skewed.planes[:, 3]
    assert (found @ normals.T - supports).min() > -1e-9
    rng = np.random.default_rng(2)
    for k in rng.choice(len(found), 40, replace=False):
        assert skewed.contains(found[k] + 1e-9) != "outside"
        assert skewed.contains(found[k] + skewed.band * skewed.units * 1.001) == "inside"
    # tightness: what is answered "inside" has a channel of the grid near it
    for point in rng.uniform([0.0, 0.0, 0.0], [0.4, 0.4, 0.6], (60, 3)):
        if skewed.contains(point) == "inside":
            assert (found <= point + 0.03).all(axis=1).any()
        elif skewed.contains(point) == "outside":
            assert not (found <= point - 1e-9).all(axis=1).any()


def test_solved_problems_lie_between(skewed):
    problem = LeastRate(SKEWED, [[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]])
    rng = np.random.default_rng(4)
    for budget, leakage in rng.uniform([0.02, 0.02], [0.4, 0.35], (12, 2)).tolist():
        true = problem.at(budget=budget, max_leakage=leakage).solve(certify=False)
        low, high = skewed.outer(budget, leakage), skewed.inner(budget, leakage)
        if true.status == "infeasible":
            assert high == math.inf
            continue
        referee.check(true)
        assert low <= true.upper
        assert true.lower <= high
        if math.isfinite(high):
            known = skewed.solution_at(budget, leakage)
            referee.check(known, status=known.status)
            assert known.upper <= high + 1e-9
            assert float(known.risk) <= leakage
            assert float(known.distortion) <= budget
            assert known.lower >= low - 1e-9


def test_every_half_space_is_proved_again(skewed):
    """From the program's data in floats: min over letters and outputs of the minorant."""
    worker = Weighted(LeastRate(SKEWED, [[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]]), NAMES, "default")
    for task in ([1.0, 0.0, 0.0], [0.3, 0.7, 1.0], [2.0, 1.0, 0.0]):
        record = worker.work(task)["record"]
        scores = np.array(record["dual"]["scores"]["W"])
        ratio = scores - np.log(SKEWED.p_w @ np.exp(scores))
        table = task[1] * (SKEWED.pmf / SKEWED.p_x).T @ ratio / math.log(2)
        if task[2]:
            own = np.array(record["dual"]["scores"]["S"])
            table = table + (own - np.log(SKEWED.p_x @ np.exp(own))) / math.log(2)
        table = table + task[0] * np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]])
        assert record["support"] == pytest.approx(SKEWED.p_x @ table.min(axis=1), abs=1e-12)
        value = float(np.dot(task, record["point"]))
        assert record["support"] <= value <= record["support"] + 1e-6 * sum(task)


def test_slices_tables_and_pictures(symmetric):
    import matplotlib.pyplot as plt

    cut = symmetric.slice(budget=0.1, count=11)
    assert list(cut.columns) == ["max_leakage", "inner", "outer"]
    assert (cut["outer"] <= cut["inner"]).all()
    rate, leakage = closed(0.1)
    feasible = cut["max_leakage"] > leakage + 0.01
    assert np.isfinite(cut["inner"][feasible]).all()
    assert np.isinf(cut["outer"][cut["max_leakage"] < leakage - 0.01]).all()
    assert cut["inner"].iloc[-1] == pytest.approx(rate, abs=6e-3)
    assert "budget" in symmetric.slice(max_leakage=0.2, count=3).columns
    with pytest.raises(cpv.InputError, match="fix one of budget and max_leakage"):
        symmetric.slice(rate=0.1)
    frame = symmetric.to_frame()
    assert list(frame.columns) == ["budget", "max_leakage", "optimum"]
    ax = symmetric.plot(count=6)
    assert ax.get_xlabel() == "budget"
    assert "Surface(budget × max_leakage" in repr(symmetric)
    plt.close(ax.figure)


def test_workers_and_checkpoint_as_of_a_frontier(tmp_path):
    problem, path = LeastRate(SYMMETRIC, cpv.hamming(2)), tmp_path / "surface.jsonl"
    one = cpv.surface(problem, NAMES, tol=2e-2, checkpoint=path)
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines == 1 + one.solves
    again = cpv.surface(problem.at(budget=0.1), NAMES, tol=2e-2, checkpoint=path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == lines
    assert np.array_equal(one.vertices, again.vertices)
    assert np.array_equal(one.planes, again.planes)
    with pytest.warns(UserWarning, match="stopped after 4 solves"):
        few = cpv.surface(problem, NAMES, tol=1e-4, max_solves=4)
    assert not few.complete
    assert few.band > 1e-2


def test_bad_input():
    problem = LeastRate(SYMMETRIC, cpv.hamming(2))
    with pytest.raises(cpv.InputError, match="two constraints"):
        cpv.surface(problem, ("budget",))
    with pytest.raises(cpv.InputError, match="two constraints"):
        cpv.surface(problem, ("budget", "budget"))
    with pytest.raises(cpv.InputError, match="use one of budget, max_leakage"):
        cpv.surface(problem, ("budget", "max_rate"))
    tclose = cpv.PrivacyDistortion(
        SYMMETRIC, cpv.hamming(2), budget=0.1, criteria=[cpv.TCloseness(0.1)]
    )
    with pytest.raises(cpv.InputError, match="spans no surface"):
        cpv.surface(tclose, ("budget", "t_closeness"))
    surface = cpv.surface(problem, NAMES, tol=0.2)
    for point in ([0.1, 0.2], [0.1, 0.2, math.nan], "abc"):
        with pytest.raises(cpv.InputError, match="point"):
            surface.contains(point)
    with pytest.raises(cpv.InputError, match="no release is known"):
        surface.release_at(0.0, 0.0)
