"""Surfaces of rate, distortion and leakage: closed forms, brute force, and exact membership."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import rel_entr

import cvxprivacy as cpv
from cvxprivacy.typing import Surface
from tests import referee
from tests.frontiers.instances import binary, entropy, least_risk
from tests.refusals import refused

ERROR = 0.1
NAMES = ("budget", "max_leakage")
SKEWED = cpv.DiscreteSource([[0.45, 0.05], [0.1, 0.4]])  # rate and leakage pull apart
COST = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]])  # a third letter that keeps less


def least_rate(source, distortion) -> cpv.RateDistortionEquivocation:
    """min I(X; X̂) s.t. E d ≤ D, I(W; X̂) ≤ ℓ."""
    return cpv.RateDistortionEquivocation(source, distortion, budget=0.3, max_leakage=0.3)


@pytest.fixture(scope="module")
def symmetric() -> Surface:
    return cpv.surface(least_rate(binary(ERROR), cpv.hamming(2)), NAMES, tol=3e-3)


@pytest.fixture(scope="module")
def skewed() -> Surface:
    return cpv.surface(least_rate(SKEWED, COST), NAMES, tol=5e-3)


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


@pytest.mark.long
def test_answers_carry_their_proof(skewed):
    vertices = [[Fraction(x) for x in row] for row in skewed.vertices.tolist()]
    answers = set()
    for point in np.random.default_rng(5).uniform([0, 0, 0], [0.5, 0.5, 1.0], (200, 3)):
        answer = skewed.contains(point)
        answers.add(str(answer))
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
    assert {"inside", "outside"} <= answers
    corner = skewed.contains([Fraction(1, 3), Fraction(2, 3), Fraction(4, 3)])  # typed, not near
    assert (corner, sum(corner.weights.values())) == ("inside", 1)


@pytest.mark.long
def test_membership_agrees_with_brute_force(skewed):
    """Every channel of a fine grid is inside or within tol, and dominates what is inside."""
    side = np.linspace(0, 1, 26)
    laws = np.array([[a, b, 1 - a - b] for a in side for b in side if a + b <= 1 + 1e-12]).clip(0)
    channels = laws[np.indices((len(laws), len(laws))).reshape(2, -1)].swapaxes(0, 1)
    p_x = SKEWED.p_x
    released = np.einsum("x,kxy->ky", p_x, channels)

    def information(joint, ours):
        return rel_entr(joint, ours[None, :, None] * released[:, None]).sum((1, 2)) / math.log(2)

    budget = np.einsum("x,kxy,xy->k", p_x, channels, COST)
    rate = information(p_x[None, :, None] * channels, p_x)
    leakage = information(np.einsum("wx,kxy->kwy", SKEWED.pmf, channels), SKEWED.p_w)
    achieved = np.stack([budget, leakage, rate], axis=1)
    # soundness: no half-space excludes any channel
    normals, supports = skewed.planes[:, :3], skewed.planes[:, 3]
    assert (achieved @ normals.T - supports).min() > -1e-9
    rng = np.random.default_rng(2)
    for k in rng.choice(len(achieved), 40, replace=False):
        assert skewed.contains(achieved[k] + 1e-9) != "outside"
        assert skewed.contains(achieved[k] + skewed.band * skewed.units * 1.001) == "inside"
    # tightness: what is answered "inside" has a channel of the grid near it
    for point in rng.uniform([0.0, 0.0, 0.0], [0.4, 0.4, 0.6], (60, 3)):
        if skewed.contains(point) == "inside":
            assert (achieved <= point + 0.03).all(axis=1).any()
        elif skewed.contains(point) == "outside":
            assert not (achieved <= point - 1e-9).all(axis=1).any()


@pytest.mark.long
def test_solved_problems_lie_between(skewed):
    problem = least_rate(SKEWED, COST)
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
            expected = skewed.solution_at(budget, leakage)
            referee.check(expected, status=expected.status)
            assert low - 1e-9 <= expected.lower <= expected.upper <= high + 1e-9
            assert float(expected.leakage) <= leakage
            assert float(expected.distortion) <= budget
            assert np.array_equal(
                skewed.release_at(budget, leakage).matrix, expected.release.matrix
            )


def test_slices_tables_and_pictures(symmetric):
    import matplotlib.pyplot as plt

    cut = symmetric.slice(budget=0.1, count=11)
    assert list(cut.columns) == ["max_leakage", "inner", "outer"]
    assert (cut["outer"] <= cut["inner"]).all()
    rate, leakage = closed(0.1)
    assert np.isfinite(cut["inner"][cut["max_leakage"] > leakage + 0.01]).all()
    assert np.isinf(cut["outer"][cut["max_leakage"] < leakage - 0.01]).all()
    assert cut["inner"].iloc[-1] == pytest.approx(rate, abs=6e-3)
    other = symmetric.slice(max_leakage=leakage, count=3)
    assert other["outer"].tolist() == [symmetric.outer(x, leakage) for x in other["budget"]]
    for fixed in ({"rate": 0.1}, {}, {"budget": 0.1, "max_leakage": 0.1}):
        with pytest.raises(cpv.InputError) as caught:
            symmetric.slice(**fixed)
        assert caught.value.argument == "fixed"
    frame = symmetric.to_frame()
    assert list(frame.columns) == ["budget", "max_leakage", "optimum"]
    assert len(frame) == len(symmetric.vertices)
    ax = symmetric.plot(count=6)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("budget", "max leakage [bits]")
    assert ax.get_zlabel() == r"$I(X; \hat X)$ [bits]"
    assert "Surface(budget × max_leakage" in repr(symmetric)
    plt.close(ax.figure)


@pytest.mark.long
def test_workers_and_checkpoint_as_of_a_frontier(tmp_path):
    problem, path = least_rate(binary(ERROR), cpv.hamming(2)), tmp_path / "surface.jsonl"
    lines = []
    one = cpv.surface(problem, NAMES, tol=2e-2, checkpoint=path, progress=lines.append)
    assert lines[-1] == f"budget × max_leakage: {one.solves} solves, tolerance 0.02"
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length == 1 + one.solves
    again = cpv.surface(problem.at(budget=0.1), NAMES, tol=2e-2, checkpoint=path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == length
    assert np.array_equal(one.vertices, again.vertices)
    assert np.array_equal(one.planes, again.planes)
    with pytest.warns(UserWarning, match="stopped after 4 solves"):
        few = cpv.surface(problem, NAMES, tol=1e-4, max_solves=4)
    assert not few.complete
    assert few.band > 1e-2


def test_a_surface_is_a_value(symmetric):
    for name in ("vertices", "band", "tol"):
        with pytest.raises(AttributeError, match="cannot change"):
            setattr(symmetric, name, None)
    with pytest.raises(ValueError, match="read-only"):
        symmetric.planes[0] = 0.0
    public = [name for name in dir(symmetric) if not name.startswith("_")]
    documented = type(symmetric).__doc__
    assert all(name in documented or getattr(symmetric, name).__doc__ for name in public)
    again = pickle.loads(pickle.dumps(symmetric))
    assert again.inner(0.2, 0.5) == symmetric.inner(0.2, 0.5)


@pytest.mark.parametrize(
    ("problem", "names", "argument"),
    [
        (least_rate(SKEWED, COST), ("budget",), "parameters"),
        (least_rate(SKEWED, COST), ("budget", "budget"), "parameters"),
        (least_rate(SKEWED, COST), "ab", "parameters"),
        (least_rate(SKEWED, COST), 2, "parameters"),
        (least_rate(SKEWED, COST), ("budget", [0.1]), "parameter"),
        (least_rate(SKEWED, COST), ("budget", "max_rate"), "parameter"),
        (least_risk(cpv.TCloseness(0.1)), ("budget", "t_closeness"), "parameter"),
    ],
)
def test_what_spans_no_surface_is_refused(problem, names, argument):
    with pytest.raises(cpv.InputError) as caught:
        cpv.surface(problem, names)
    assert caught.value.argument == argument


def test_bad_points_are_refused(symmetric):
    for point in ([0.1, 0.2], [0.1, 0.2, math.nan], "abc"):
        with pytest.raises(cpv.InputError) as caught:
            symmetric.contains(point)
        assert caught.value.argument == "point"
    with pytest.raises(cpv.InputError, match="no release is known"):
        symmetric.release_at(0.0, 0.0)
    with pytest.raises(cpv.InputError) as caught:
        symmetric.outer(0.1, math.nan)
    assert caught.value.argument == "y"


# ---- kept in a file ----------------------------------------------------------------------


def test_what_was_kept_is_proved_again(symmetric, tmp_path):
    problem = least_rate(binary(ERROR), cpv.hamming(2))
    path = symmetric.save(tmp_path / "surface.json")
    assert path.stat().st_mode & 0o077 == 0  # of its owner alone
    again = Surface.load(path, problem.at(budget=0.4))
    assert np.array_equal(again.vertices, symmetric.vertices)
    assert np.array_equal(again.planes, symmetric.planes)
    assert (again.band, again.tol, again.complete) == (symmetric.band, symmetric.tol, True)
    assert again.solution_at(0.2, 0.3).value == symmetric.solution_at(0.2, 0.3).value
    other = least_rate(binary(ERROR), [[0, 2], [1, 0]])
    refused(lambda: Surface.load(path, other), "problem", "another")


def _support(record):
    record["support"] = record["support"] + 1e-6  # more than is proved


def _point(record):
    record["point"][2] -= 1e-6  # less than is achieved


def _weights(record):
    record["weights"] = [w + 0.01 for w in record["weights"]]


def _multipliers(record):
    record["dual"]["multipliers"]["budget"] *= 1.01


def _both(record):  # a half-space that is proved, and not where the weights say
    _weights(record)
    record["support"] = -1.0


def _scaled(record):  # a proof has the objective in it, or not
    record["weights"][2] = record["dual"]["objective"] = 1e-3


def _short(record):
    record["weights"] = record["weights"][:2]


def _negative(record):
    record["weights"][0] *= -1
    record["dual"]["multipliers"]["budget"] *= -1


@pytest.mark.parametrize(
    "change", [_support, _point, _weights, _multipliers, _both, _negative, _scaled, _short]
)
def test_what_was_tampered_with_is_refused(symmetric, tmp_path, change):
    path = symmetric.save(tmp_path / "surface.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    records = document["records"]
    change(next(r for r in records if r["point"] and r["support"] != "-inf" and r["weights"][0]))
    path.write_text(json.dumps(document), encoding="utf-8")
    problem = least_rate(binary(ERROR), cpv.hamming(2))
    refused(lambda: Surface.load(path, problem), "path", "surface.json")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": "cvxprivacy frontier 4"}'])
def test_what_is_no_surface_is_refused(tmp_path, text):
    path = tmp_path / "other.json"
    problem = least_rate(binary(ERROR), cpv.hamming(2))
    refused(lambda: Surface.load(path, problem), "path", "cannot be read")
    path.write_text(text, encoding="utf-8")
    refused(lambda: Surface.load(path, problem), "path", "Surface.save")


# ---- Gaussian ----------------------------------------------------------------------------


def test_a_gaussian_surface_encloses_the_closed_form():
    rho = 0.7
    source = cpv.GaussianSource([[1, rho], [rho, 1]], sensitive=[0], key=[1])
    problem = cpv.GaussianEquivocation(source, 0.5, max_leakage=0.3)
    spanned = cpv.surface(problem, NAMES, tol=0.02)
    assert spanned.complete
    assert spanned.units.tolist() == pytest.approx([1, 1 / np.log(2), 1 / np.log(2)])
    for budget in np.linspace(0.1, 0.95, 12).tolist():
        rate = -0.5 * np.log2(budget)  # the least, and it leaks −½ log(1 − (1 − D) ρ²)
        leakage = -0.5 * np.log2(1 - (1 - budget) * rho**2)
        assert spanned.outer(budget, leakage) <= rate + 1e-9
        assert spanned.contains((budget, leakage, rate - 0.03)) == "outside"
        assert spanned.contains((budget + 0.02, leakage + 0.03, rate + 0.03)) == "inside"
        assert spanned.contains((budget - 0.03, leakage - 0.04, 5.0)) == "outside"
        mixed = spanned.solution_at(budget + 0.02, leakage + 0.03)
        assert mixed.lower <= mixed.upper <= spanned.inner(budget + 0.02, leakage + 0.03) + 1e-9
        assert mixed.certificate.verify()


@pytest.mark.long
def test_two_gaussian_budgets_span_a_surface():
    source = cpv.GaussianSource(
        [[1, 0.5, 0.4], [0.5, 1, 0.2], [0.4, 0.2, 1]],
        sensitive=[0], key=[1, 2], names=["w", "a", "b"],
    )  # fmt: skip
    problem = cpv.QuadraticGaussian(source, {"a": 0.5, "b": 0.5})
    spanned = cpv.surface(problem, ("budget[a]", "budget[b]"), tol=0.02)
    for a, b in ((0.3, 0.6), (0.5, 0.5), (0.9, 0.2)):
        solved = problem.at(**{"budget[a]": a, "budget[b]": b}).solve()
        assert spanned.outer(a, b) <= solved.upper
        assert solved.lower <= spanned.inner(a, b)


@pytest.mark.long
def test_the_band_is_in_the_unit_of_the_optimum_as_of_a_frontier():
    source = binary(ERROR)
    bits, nats = (
        cpv.RateDistortionEquivocation(source, cpv.hamming(2), 0.2, max_leakage=0.2, units=units)
        for units in ("bits", "nats")
    )
    first = cpv.surface(bits, NAMES, tol=0.02)
    second = cpv.surface(nats, NAMES, tol=0.02 * np.log(2))
    assert first.solves == second.solves
    assert second.band == pytest.approx(first.band * np.log(2), rel=1e-6)
    assert np.allclose(second.vertices[:, 2], first.vertices[:, 2] * np.log(2), atol=1e-6)


def test_a_third_constraint_of_a_gaussian_surface_in_bits():
    source = cpv.GaussianSource([[1, 0.6], [0.6, 1]], sensitive=[0], key=[1])
    problem = cpv.GaussianEquivocation(source, 0.5, max_leakage=0.05, max_rate=0.4)
    spanned = cpv.surface(problem, NAMES, tol=0.1)
    solved = problem.at(budget=0.6, max_leakage=0.2).solve()
    assert spanned.outer(0.6, 0.2) <= solved.upper
    assert spanned.contains((0.6, 0.2, 1.0)) == "inside"
    first = next(plane for plane in spanned.planes if tuple(plane[:3]) == (1, 0, 0))
    assert first[3] == pytest.approx(2 ** (-2 * 0.4), abs=1e-6)  # D of the rate 0.4
    assert first[3] <= 2 ** (-2 * 0.4)
