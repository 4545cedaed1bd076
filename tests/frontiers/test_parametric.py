"""Which numbers move, and what no curve can be drawn of."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier
from tests.frontiers.instances import D5, counted, grid, least_distortion, least_risk
from tests.lengths import some_at_length


def regions(**options):
    law = np.random.default_rng(1).dirichlet(np.full(18, 0.5)).reshape(2, 3, 3)
    return cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(law), cpv.hamming(3), side_information="decoder", **options
    )


class Doubled(cpv.PrivacyDistortion):
    def formulation(self):
        return self.risk, {"budget": self.distortion <= 2 * self.budget}


class Shifted(cpv.PrivacyDistortion):
    def formulation(self):
        return self.risk, {"budget": self.distortion <= self.budget + 1}


@pytest.mark.parametrize(
    ("problem", "name", "argument", "piece"),
    [
        ("a problem", "budget", "problem", "PrivacyDistortion"),
        (cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.2), "budget", "problem", "channel_problem()"),
        (regions(budget=0.3, max_leakage=0.9, most_strategies=1), "budget", "problem", "raise"),
        (regions(budget=0.3, min_equivocation=0.1), "min_equivocation", "parameter", "max_leakage"),
        (grid(5), "nothing", "parameter", "use one of budget"),
        (least_risk(cpv.PreserveMarginal()), "preserve_marginal", "parameter", "cannot move"),
        (grid(5), "two", "parameter", "use one of budget"),
        (least_distortion(cpv.LeakageCap(0.1)), "two", "parameter", "use one of leakage_cap|"),
        (grid(5), [0.1, 0.2], "parameter", "points=[…]"),
        (grid(5), (0.1, 0.2), "parameter", "points=[…]"),
        (grid(5), {"budget": 0.2}, "parameter", 'such as "budget"'),
        (grid(5), 0.1, "parameter", "points=[…]"),
        (least_risk(cpv.TCloseness(0.1)), "nothing", "parameter", "budget, t_closeness"),
        (Doubled(counted(), D5, budget=0.3), "budget", "parameter", "more than a bound"),
        (Shifted(counted(), D5, budget=0.3), "budget", "parameter", "more than a bound"),
    ],
)
def test_what_has_no_curve_is_refused(problem, name, argument, piece):
    with pytest.raises(cpv.InputError) as caught:
        cpv.frontier(problem, name)
    assert caught.value.argument == argument
    assert piece in f"{caught.value}|"


@pytest.mark.parametrize(
    ("options", "argument", "where"),
    [
        ({"between": (0.3, 0.2)}, "between", None),
        ({"between": 0.3}, "between", None),
        ({"between": (-1.0, 0.2)}, "budget", None),
        ({"between": (math.nan, 0.2)}, "between", 0),
        ({"tol": 0.0}, "tol", None),
        ({"points": []}, "points", None),
        ({"points": [0.1, "x"]}, "points", 1),
        ({"points": [0.1, math.inf]}, "points", 1),
        ({"max_solves": 0}, "max_solves", None),
        ({"accuracy": "best"}, "accuracy", None),
    ],
)
def test_bad_options_are_refused_by_name(options, argument, where):
    with pytest.raises(cpv.InputError) as caught:
        cpv.frontier(grid(5), **options)
    assert (caught.value.argument, caught.value.where) == (argument, where)


@pytest.mark.parametrize("x", [math.nan, math.inf, "a", None])
def test_a_place_is_a_number(x):
    curve = cpv.frontier(grid(5), points=[0.3])
    for ask in (curve.inner, curve.outer, curve.price, curve.release_at, curve.solution_at):
        with pytest.raises(cpv.InputError) as caught:
            ask(x)
        assert caught.value.argument == "x"


def test_one_budget_of_several_moves():
    source = cpv.GaussianSource(np.eye(3) + 0.3, sensitive=[0], key=[1, 2], names=["w", "a", "b"])
    problem = cpv.QuadraticGaussian(source, {"a": 0.3, "b": 0.4})
    curve = cpv.frontier(problem, "budget[a]", between=(0.1, None), tol=0.05)
    assert curve.complete
    assert curve.outer(0.2) <= problem.at(**{"budget[a]": 0.2}).solve().upper


# ---- numbers as they are typed -----------------------------------------------------------------


SMALL = cpv.PrivacyDistortion(
    counted(shape=(2, 3)), cpv.hamming(3), budget=0.2, criteria=[cpv.TCloseness(0.3)]
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("problem", "name"),
    some_at_length(
        [
            (least_risk(), "budget"),
            (least_risk(cpv.MaximalLeakage(1.0)), "maximal_leakage"),
            (SMALL, "t_closeness"),
            (cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), 0.3), "budget"),
        ],
        2,
    ),
)
def test_a_fraction_is_solved_at_itself(problem, name, tmp_path):
    third, half = Fraction(1, 3), Fraction(1, 2)
    path = tmp_path / "points.jsonl"
    curve = cpv.frontier(problem, name, points=[half, third, 0.9], checkpoint=path)
    assert [(type(p.x), p.x) for p in curve.points] == [
        (Fraction, third),
        (float, 0.5),
        (float, 0.9),
    ]
    typed = problem.at(**{name: third}).solve()
    assert (
        curve.points[0].solution.certificate.program.to_dict()
        == typed.certificate.program.to_dict()
    )
    assert curve.solution_at(third).certificate.document() == curve.documents()[0]
    assert curve.inner(third) == curve.points[0].upper
    lower, upper = curve.points[0].lower, curve.points[0].upper
    assert lower - 1e-15 <= curve.outer(third) <= upper  # the other points may prove more
    assert curve.solved_range == (third, 0.9)
    assert "from 0.333333 to 0.9" in str(curve)
    between = Fraction(2, 3)  # a mixture there, or a staircase
    solution = curve.solution_at(between)
    assert solution.certificate.differences(problem.at(**{name: between})) == []
    assert curve.outer(between) <= solution.upper <= curve.inner(between) + 1e-12
    assert curve.price(between).lower <= 0 <= -curve.price(between).upper
    assert curve.to_frame()[name].tolist() == [1 / 3, 0.5, 0.9]
    resumed = cpv.frontier(problem, name, points=[third, half, 0.9], checkpoint=path)
    assert resumed.documents() == curve.documents()
    loaded = Frontier.load(curve.save(tmp_path / "curve.json"), problem, verify=True)
    assert [p.x for p in loaded.points] == [p.x for p in curve.points]
    plain = Frontier.load(tmp_path / "curve.json", verify=curve.kind != "monotone")
    assert plain.inner(third) == curve.inner(third)
    assert curve.plot().get_xlim()[1] < 1


def test_a_stretch_between_fractions():
    low, high = Fraction(1, 3), Fraction(2, 3)
    curve = cpv.frontier(least_risk(cpv.LeakageCap(0.03)), between=(low, high), tol=0.01)
    assert curve.complete
    assert curve.points[0].x == low
    assert curve.points[-1].x == high
    edges = cpv.frontier(least_risk(cpv.TCloseness(0.01), budget=0.3), "t_closeness",
                         points=[low / 100, high])  # fmt: skip
    assert edges.edge == (low / 100, high)


def test_a_law_of_fractions_has_curves_too():
    law = [[Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 7), Fraction(5, 14)]]
    problem = cpv.MinimumDistortion(
        cpv.DiscreteSource(law), cpv.hamming(2), [cpv.MaximalLeakage(0.3)]
    )
    curve = cpv.frontier(problem, "maximal_leakage", tol=0.02)
    assert curve.complete
    true = problem.solve()
    assert curve.outer(0.3) <= true.upper
    assert true.lower <= curve.inner(0.3)
