"""Frontiers: time-sharing, exponentials and staircases, tables and pictures, and as values."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier
from tests.frontiers.instances import D5, grid, least_distortion, least_risk
from tests.lengths import rest_at_length


@pytest.mark.long
def test_maximal_leakage_is_convex_in_its_exponential():
    problem = least_distortion(cpv.MaximalLeakage(0.3))
    curve = cpv.frontier(problem, "maximal_leakage", tol=2e-3)
    assert curve.kind == "convex in exp"
    assert curve.solved_range == (0.0, pytest.approx(math.log2(5), abs=1e-9))
    for b in np.random.default_rng(0).uniform(0.0, math.log2(5), 5).tolist():
        true = problem.at(maximal_leakage=b).solve()
        assert curve.outer(b) <= true.upper
        assert true.lower <= curve.inner(b) <= curve.outer(b) + curve.band
        mixed = curve.solution_at(b)
        assert mixed.upper <= curve.inner(b) + 1e-12
        assert float(np.log2(mixed.channel.matrix.max(axis=0).sum())) <= b + 1e-12
        price = curve.price(b)
        assert price.lower - 1e-4 <= true.prices["maximal_leakage"] <= price.upper + 1e-4
        assert price.upper - price.lower < 0.2
    nats = least_distortion(cpv.MaximalLeakage(0.3), units="nats")
    other = cpv.frontier(nats, "maximal_leakage", tol=2e-3)
    assert other.inner(0.5) == pytest.approx(curve.inner(0.5 / math.log(2)), abs=4e-3)
    slope = nats.at(maximal_leakage=0.5).solve().prices["maximal_leakage"]
    assert other.price(0.5).lower - 1e-4 <= slope <= other.price(0.5).upper + 1e-4


STAIRCASES = [
    ([cpv.TCloseness(0.1)], "t_closeness", False),
    ([cpv.LDiversity(2.0)], "l_diversity", True),
    ([cpv.LocalPrivacy(1.0)], "local_privacy", False),
    ([cpv.DeltaDisclosure(0.3)], "delta_disclosure", False),
    ([cpv.RecordEntropy(20)], "record_entropy", True),
    ([cpv.KeepProbability(0.3), cpv.LeakageCap(0.08)], "keep_probability", True),
]


@pytest.mark.long
@pytest.mark.parametrize(("criteria", "name", "falling"), rest_at_length(STAIRCASES, 2))
def test_monotone_curves_are_staircases(criteria, name, falling):
    problem = least_distortion(*criteria, distortion=D5)
    between = (0.0, 3.0) if name == "local_privacy" else None
    curve = cpv.frontier(problem, name, tol=0.3, between=between)
    assert curve.kind == "monotone"
    assert curve.complete
    assert curve.edge is None or len(criteria) > 1  # the tightest number alone is feasible
    first, last = curve.solved_range
    rng = np.random.default_rng(1)
    for x in [first, last, *rng.uniform(first, last, 2).tolist()]:
        true = problem.at(**{name: x}).solve(certify="warn")
        assert curve.outer(x) <= true.upper + 1e-9
        assert true.lower - 1e-9 <= curve.inner(x) <= curve.outer(x) + curve.band
        release = curve.release_at(x)  # of a solved point: no time-sharing
        assert any(np.array_equal(release.matrix, p.solution.channel.matrix) for p in curve.points)
        assert (curve.price(x) >= 0) if falling else (curve.price(x) <= 0)
    values = curve.inner(np.linspace(first, last, 50))
    assert (np.diff(values) >= 0 if falling else np.diff(values) <= 0).all()
    # between the points, multipliers prove more than the next point's lower end does
    gains = []
    for left, right in pairwise(curve.points):
        for share in (0.1, 0.5, 0.9):
            x = left.x + share * (right.x - left.x)
            gains.append(curve.outer(x) - min(left.lower, right.lower))
    assert min(gains) >= 0
    assert max(gains) > 1e-3


def test_between_of_a_number_that_tightens():
    problem = least_distortion(cpv.KeepProbability(0.3))
    curve = cpv.frontier(problem, "keep_probability", between=(0.2, None), tol=0.5)
    assert curve.solved_range == (0.2, 1.0)


def test_the_price_of_a_staircase_is_interpolated():
    curve = cpv.frontier(
        least_distortion(cpv.TCloseness(0.1)), "t_closeness", points=[0.05, 0.1, 0.2]
    )
    prices = [point.price for point in curve.points]
    assert curve.price(0.1) == prices[1] < 0
    assert curve.price(0.15) == pytest.approx((prices[1] + prices[2]) / 2)
    alone = cpv.frontier(least_distortion(cpv.TCloseness(0.1)), "t_closeness", points=[0.0])
    assert alone.points[0].price == -math.inf
    assert (alone.price(0.3).lower, alone.price(0.3).upper) == (-math.inf, 0.0)


# ---- shown -----------------------------------------------------------------------------------


def test_tables_and_pictures():
    import matplotlib.pyplot as plt

    curve = cpv.frontier(grid(5), tol=2e-2)
    frame = curve.to_frame()
    assert list(frame.columns[:5]) == ["budget", "lower", "upper", "status", "price"]
    assert frame["budget"].tolist() == [point.x for point in curve.points]
    assert (frame["lower"] <= frame["upper"]).all()
    assert (frame["distortion"] <= frame["budget"] + 1e-12).all()
    figure, ax = plt.subplots()
    assert curve.plot(ax, per=(2.0, 1.0), label="one") is ax
    assert ax.get_xlim()[1] < 0.6
    assert ax.lines[0].get_ydata()[0] == curve.inner(curve.points[0].x)
    assert "nats" in ax.get_ylabel()
    assert "budget" in ax.get_xlabel()
    assert ax.get_legend_handles_labels()[1] == ["one"]
    plt.close(figure)
    assert f"{len(curve.points)} points" in repr(curve)
    for piece in ("PrivacyDistortion over budget", "convex", "band", "solves", "(asked: 0.02)"):
        assert piece in str(curve)


def test_a_frontier_of_distortions_is_not_in_bits():
    curve = cpv.frontier(least_distortion(cpv.LeakageCap(0.1)), "leakage_cap", tol=1.0)
    assert "units of distortion" in str(curve)
    assert "bits" not in str(curve) + curve.plot().get_ylabel()


def test_a_frontier_of_another_measure_is_in_its_units():
    gain = cpv.leakage.Gain([[3, 0, 1], [0, 2, 1]])
    source = cpv.DiscreteSource([[0.2, 0.1], [0.1, 0.2], [0.2, 0.2]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.3, leakage=gain)
    curve = cpv.frontier(problem, tol=0.1)
    assert "units of gain of 2 guesses (asked" in str(curve)
    assert "bits" not in str(curve) + curve.plot().get_ylabel()


def test_nothing_feasible_has_no_picture():
    def stop(_):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        curve = cpv.frontier(least_risk(cpv.LeakageCap(0.03)), points=[0.2, 0.3], progress=stop)
    assert "nothing feasible" in str(curve)
    assert (curve.solved_range, curve.band) == (None, math.inf)
    with pytest.raises(cpv.InputError, match="none is feasible"):
        curve.plot()
    with pytest.raises(cpv.InputError, match="go on"):
        curve.price(0.2)


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criteria", "name"),
    rest_at_length([([], "budget"), ([cpv.LocalPrivacy(2.0)], "local_privacy")], 1),
)
def test_a_frontier_is_copied_and_sent(criteria, name):
    curve = cpv.frontier(least_risk(*criteria, budget=0.5), name, tol=0.2)
    x = (curve.points[0].x + curve.points[-1].x) / 2
    for other in (copy.deepcopy(curve), pickle.loads(pickle.dumps(curve))):
        assert str(other) == str(curve)
        assert (other.outer(x), other.inner(x)) == (curve.outer(x), curve.inner(x))
        assert other.solution_at(x).upper == curve.solution_at(x).upper


def test_a_frontier_cannot_change_and_shows_what_is_documented():
    curve = cpv.frontier(grid(5), points=[0.3, 0.4])
    both = cpv.sweep({"a": grid(5)}, points=[0.3])
    for value in (curve, curve.points[0], both):
        public = [name for name in dir(value) if not name.startswith("_")]
        recorded = {name for name in public if not hasattr(dict, name)}
        documented = type(value).__doc__
        for name in recorded:
            member = getattr(type(value), name, None)
            assert name in documented or (callable(member) and member.__doc__), name
            with pytest.raises(AttributeError, match="cannot change"):
                setattr(value, name, None)
    with pytest.raises(TypeError, match="cannot be written to"):
        curve.points.append(curve.points[0])
    assert curve.points[0].x == Fraction(0.3)
    assert repr(curve.points[0]).startswith("Point(0.3, certified, value in [")


def test_a_bound_that_loosens_as_it_grows_has_a_falling_curve() -> None:
    """Whatever the number is at which it forbids nothing."""
    source = cpv.DiscreteSource([[0.5, 0.1], [0.1, 0.3]])
    rule = cpv.MarginalDistance(0.05)
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.3, criteria=[rule])
    curve = cpv.frontier(problem, "marginal_distance", points=[0.01, 0.05, 0.2])
    for x in (0.03, 0.1):
        value = problem.at(marginal_distance=x).solve()
        assert curve.outer(x) <= value.upper
        assert value.lower <= curve.inner(x)


def test_an_axis_that_is_not_the_problems_is_refused(tmp_path) -> None:
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    path = tmp_path / "curve.json"
    cpv.frontier(problem, points=[0.1, 0.3]).save(path)
    body = path.read_text()
    for facts in (
        {"rows": ["budget"] * 4},
        {"rows": []},
        {"kind": "monotone", "falling": True},
        {"falling": True},
    ):
        changed = json.loads(body)
        changed["facts"].update(facts)
        path.write_text(json.dumps(changed))
        with pytest.raises(cpv.InputError):
            Frontier.load(path, problem, verify=True)
    for rows in (["budget"] * 4, [], ["other"]):
        changed = json.loads(body)
        changed["facts"]["rows"] = rows
        path.write_text(json.dumps(changed))
        with pytest.raises(cpv.InputError):
            Frontier.load(path, verify=True)
