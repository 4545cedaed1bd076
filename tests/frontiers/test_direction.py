"""Which way a number loosens is declared: curves against points solved one by one."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier
from tests.lengths import rest_at_length, some_at_length
from tests.own_criterion import GuessedAtMost

BIT = cpv.DiscreteSource.identical([0.5, 0.5])
PAIR = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
COUNTED = cpv.DiscreteSource.from_counts([[30, 9, 4], [6, 20, 11]])


class UnsureAtLeast(cpv.Criterion):
    """p(w | x̂) ≤ 1 − u for all w and x̂: one that loosens down."""

    name = "unsure_at_least"
    u = cpv.Parameter(below=1.0, loosens="down", loosest=0.0)

    def constraints(self, release):
        mass = release.mass().each()
        return {
            str(w): release.mass(w).each() <= (1 - self.u) * mass for w in range(len(release.p_w))
        }

    def tightest(self, laws):
        return 0.5


class Mine(cpv.LocalPrivacy):
    """Inherits the rows, and what is declared of them."""

    name = "mine"


class Restated(cpv.LocalPrivacy):
    """States the rows again, and declares nothing of them."""

    name = "restated"

    def constraints(self, release):
        return super().constraints(release)


GROUND = [[0, 400], [500, 0]]
RULES = [  # each with a number at which the direction used to be guessed wrongly, and its range
    (BIT, Mine(30), (0.1, 4.0)),
    (PAIR, cpv.DeltaDisclosure(25), (0.02, 1.0)),
    (PAIR, cpv.TCloseness(300, GROUND), (1.0, 150.0)),
    (PAIR, UnsureAtLeast(0.1), (0.15, 0.49)),
    (PAIR, cpv.PointwiseMaximalLeakage(40), (0.02, 0.6)),
    (COUNTED, cpv.RecordEntropy(1), (20.0, 79.0)),
    (BIT, cpv.LocalPrivacy(30), (0.1, 4.0)),
    (PAIR, cpv.TCloseness(100), (0.001, 0.4)),
    (PAIR, cpv.PerLetter(cpv.leakage.EarthMover(GROUND), 200), (1.0, 150.0)),
    (PAIR, GuessedAtMost(1.0), (0.51, 0.9)),
    (COUNTED, cpv.LDiversity(1.0), (1.2, 1.95)),
]


def posed(source, rule):
    d = cpv.hamming(2) if source is not COUNTED else [[0, 1, 3], [1, 0, 1], [3, 1, 0]]
    return cpv.MinimumDistortion(source, d, [rule])


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "rule", "ends"), some_at_length(RULES, 4), ids=lambda x: repr(x)[:30]
)
def test_a_curve_encloses_what_is_solved_at_each_number(source, rule, ends):
    problem = posed(source, rule)
    curve = cpv.frontier(problem, rule.name, tol=0.1)
    assert curve.complete
    assert 0 <= curve.band <= 0.1
    for x in np.linspace(*ends, 5).tolist():
        solved = problem.at(**{rule.name: x}).solve()
        assert solved.status == "certified"
        assert curve.outer(x) <= solved.upper
        assert solved.lower <= curve.inner(x) <= curve.outer(x) + 0.1 + 1e-12


def test_randomised_response_whatever_number_was_typed():
    """A bit is released wrongly with probability 1/(1 + e^ε)."""
    for typed in (0.1, 1, 30, 600):
        problem = posed(BIT, cpv.LocalPrivacy(typed))
        curve = cpv.frontier(problem, "local_privacy", points=[0.5, 1.0, 2.0])
        for x in (0.5, 1.0, 2.0):
            assert curve.outer(x) <= 1 / (1 + math.exp(x)) <= curve.inner(x)
        assert curve.inner(1.0) == pytest.approx(0.26894, abs=1e-5)


def test_a_number_that_declares_nothing_is_not_moved():
    class Undeclared(GuessedAtMost):
        p = cpv.Parameter()

    for rule in (Undeclared(0.7), Restated(1.0)):
        with pytest.raises(cpv.InputError, match=r"declare \w+ = Parameter\(loosens=") as caught:
            cpv.frontier(posed(PAIR, rule), rule.name)
        assert caught.value.argument == "parameter"


def test_a_loosest_value_without_a_direction_is_refused():
    for wrong in (None, "sideways"):
        with pytest.raises(cpv.InputError, match='loosens="up" or "down"'):
            cpv.Parameter(loosens=wrong, loosest=1.0)


@pytest.mark.long
def test_a_conflict_is_searched_the_way_that_is_declared():
    """At k = 38 all must look alike, which the cap on distortion forbids; k would have to fall."""
    rules = [cpv.RecordEntropy(79), cpv.Linear([[0, 1, 1], [1, 0, 1], [1, 1, 0]], 0.3)]
    with pytest.raises(
        cpv.InfeasibleError, match="record_entropy would have to be at most"
    ) as caught:
        cpv.PrivacyDistortion(COUNTED, cpv.hamming(3), criteria=rules).solve()
    most = caught.value.extremes["record_entropy"]
    rules[0] = cpv.RecordEntropy(most)
    assert cpv.PrivacyDistortion(COUNTED, cpv.hamming(3), criteria=rules).solve().value >= 0
    rules[0] = cpv.RecordEntropy(most * 1.01)
    with pytest.raises(cpv.InfeasibleError):
        cpv.PrivacyDistortion(COUNTED, cpv.hamming(3), criteria=rules).solve()


def test_a_frontier_of_mixed_quantities_is_in_units_of_its_objective():
    class Mixed(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self):
            moved = self.alphabet.total("raised", [[0.0, 1.0], [0.0, 0.0]])
            return self.risk + 0.5 * moved, {"budget": self.distortion <= self.budget}

    text = str(cpv.frontier(Mixed(PAIR, cpv.hamming(2), budget=0.2), points=[0.1, 0.3]))
    assert "units of the objective" in text
    assert "units of distortion" not in text


# ---- stored frontiers --------------------------------------------------------------------


def scalars(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of numbers, words and switches."""
    if isinstance(node, dict | list):
        entries = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in entries:
            yield from scalars(value, (*path, key))
    else:
        yield path


def replaced(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    other = copy.deepcopy(body)
    node = other
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return other


LABELS = {  # what no proof is of, and nothing is computed with
    *("title", "abscissa", "ordinate", "accuracy", "digest", "solves", "name", "software", "raw"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "rule", rest_at_length([None, cpv.MaximalLeakage(0.4), cpv.TCloseness(0.1)], 1)
)
def test_no_changed_file_says_what_is_false(rule, tmp_path):
    """Each number is moved, each word and switch changed: refused, or true where it is read."""
    if rule is None:
        problem, name = cpv.PrivacyDistortion(PAIR, cpv.hamming(2), budget=0.2), "budget"
    else:
        problem, name = posed(PAIR, rule), rule.name
    curve = cpv.frontier(problem, name, points=[0.05, 0.4])
    path = curve.save(tmp_path / "curve.json")
    body = json.loads(path.read_text(encoding="utf-8"))
    places = np.linspace(0.06, 0.39, 5).tolist()
    truth = [problem.at(**{name: x}).solve(accuracy="high") for x in places]
    changes = 0
    for where in scalars(body):
        node = body
        for key in where:
            node = node[key]
        if LABELS & {*map(str, where)} or node is None:
            continue
        for value in _changed(node):
            target = tmp_path / "changed.json"
            target.write_text(json.dumps(replaced(body, where, value)), encoding="utf-8")
            for expected in (problem, *([] if curve.kind == "monotone" else [None])):
                changes += 1
                try:
                    loaded = Frontier.load(target, expected, verify=True)
                except cpv.InputError:
                    continue
                for x, solved in zip(places, truth, strict=True):
                    assert loaded.outer(x) <= solved.upper, where
                    assert loaded.inner(x) >= solved.lower, where
                assert not loaded.complete or loaded.tol is None or loaded.band <= loaded.tol
                assert loaded.edge is None
    assert changes > 100


def _changed(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 0.9]
    return ["1/3", "convex", "monotone", "bits", "nats", ""]


def test_one_of_two_numbers_moves():
    """A fair bit under (ε, δ): told outright with probability δ, else lied about."""
    bit = cpv.DiscreteSource.identical([0.5, 0.5])
    rule = cpv.LocalPrivacy(0.4, delta=0.25)
    problem = cpv.MinimumDistortion(bit, cpv.hamming(2), [rule])

    def least(epsilon, delta):
        return (1 - delta) / (1 + math.exp(epsilon))

    looser = {"local_privacy.delta": (0.1, 0.3, 0.6), "local_privacy.epsilon": (0.0, 0.4, 1.0)}
    for name, places in looser.items():
        curve = cpv.frontier(problem, name, points=places)
        key = name.split(".")[1]
        truth = [least(**{"epsilon": 0.4, "delta": 0.25, key: x}) for x in places]
        for point, value in zip(curve.points, truth, strict=True):
            assert point.lower - 1e-12 <= value <= point.upper + 1e-12
        between = (places[0] + places[1]) / 2  # a staircase: no line is claimed from above
        assert curve.inner(between) == pytest.approx(truth[0])
        exact = least(**{"epsilon": 0.4, "delta": 0.25, key: between})
        assert truth[1] - 1e-9 <= curve.outer(between) <= exact + 1e-12
    with pytest.raises(cpv.InputError, match=r"local_privacy\.epsilon, local_privacy\.delta"):
        cpv.frontier(problem, "local_privacy")
    with pytest.raises(cpv.InputError, match=r"delta of LocalPrivacy.*pass between="):
        cpv.frontier(problem, "local_privacy.delta")


def test_of_several_numbers_none_is_searched_that_other_rows_do_not_state():
    """A number loosens as the class says that states the rows; a least value is where it begins."""

    class Mixed(cpv.Criterion):
        name = "mixed"
        slope = cpv.Parameter(least=0.25, loosens="up", loosest=1.0)
        most = cpv.Parameter()

        def constraints(self, release):
            return {"": release.distortion <= self.slope + self.most}

    class Otherwise(Mixed):
        def constraints(self, release):
            return {"": release.distortion <= 1 - self.slope + self.most}

    bit = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    stated, other = (
        cpv.PrivacyDistortion(bit, cpv.hamming(2), price=1, criteria=[kind(0.3, 0.1)])
        for kind in (Mixed, Otherwise)
    )
    curve = cpv.frontier(stated, "mixed.slope", between=(None, 0.4), tol=0.2)
    assert curve.points[0].x == 0.25
    for problem, name, remedy in (
        (stated, "mixed.most", r"use one of mixed\.slope, price$"),
        (other, "mixed.slope", r"use one of price$"),
    ):
        with pytest.raises(cpv.InputError, match=remedy):
            cpv.frontier(problem, name, points=(0.3, 0.5))
