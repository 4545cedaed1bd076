"""What is refused, by which error, and whether the message helps."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy import plotting
from cvxprivacy.errors import UnknownValueError
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.extremes import least_value
from tests.instances import BINARY, ENDS, HAMMING, THREE, budgeted
from tests.refusals import UNSAID, refused


def test_errors_come_back_whole_from_a_worker():
    for error in (
        cpv.InputError("a", "wrong", "do right", where=(np.int64(1), 2), value=np.float64(3)),
        UnknownValueError("a", "wrong", "do right"),
        cpv.InfeasibleError("nothing", None, conflict=["a"], extremes={"a": 1.0}),
    ):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)
        assert "np." not in repr(vars(back))


NUMBERS = (-0.1, math.nan, math.inf, -math.inf, "a lot", "0.1", True, [0.1], 1j)
CAPPED = [cpv.LeakageCap(0.5)]
# options of a problem; argument, value, place
PROBLEMS = [
    *(({"budget": v}, "budget", v, None) for v in NUMBERS),
    *(({"budget": None, "price": v}, "price", v, None) for v in (*NUMBERS, 0)),
    *(({"budget": v, "price": w}, "budget", UNSAID, None) for v, w in ((None, None), (0.1, 2.0))),
    *(({"encoder": v}, "encoder", v, None) for v in ("xw", "w", "X", "", None, ["x"])),
    *(({"units": v}, "units", v, None) for v in ("bit", "BITS", "", None, 2, ["bits"])),
    *(({"criteria": v}, "criteria", v, None) for v in (None, 0.5)),
    *(
        ({"criteria": [*CAPPED, v]}, "criteria", v, 1)
        for v in (3.0, "leakage", None, cpv.LeakageCap, {"b": 0.1})
    ),
    *(({"source": v}, "source", UNSAID, None) for v in ([[0.4, 0.1]], np.eye(2) / 2, None, "s")),
    *(
        ({"distortion": v}, "distortion", UNSAID, None)
        for v in (cpv.hamming(3), [[0, 1, 2]], np.ones((3, 2)), np.ones((2, 3, 2)), [0, 1])
    ),
    *(({"distortion": v}, "distortion", UNSAID, None) for v in ("hamming", None, cpv.hamming, 1.0)),
    *(({"distortion": [[0, 1], [v, 0]]}, "distortion", v, (1, 0)) for v in (-1.0, math.nan)),
]
SOLVES = [
    *(("method", v) for v in ("newton", "CONIC", "", None)),
    *(("accuracy", v) for v in ("low", "HIGH", 1e-9, None)),
    *(("solver", v) for v in ("NO_SUCH_SOLVER", "OSQP", None)),  # which has no exponential cone
    *(("certify", v) for v in ("yes", "Warn", None, 2)),
    *(("solver_options", v) for v in (3, "max_iter", ["max_iter"])),
]


@pytest.mark.parametrize(("options", "argument", "value", "where"), PROBLEMS)
def test_what_is_no_problem(options, argument, value, where):
    options = {"source": BINARY, "distortion": HAMMING, "budget": 0.1, **options}
    refused(lambda: cpv.PrivacyDistortion(**options), argument, value=value, where=where)
    if not {"budget", "price", "encoder"} & {argument}:
        del options["budget"]
        others = {"criteria": CAPPED, **options}
        refused(lambda: cpv.MinimumDistortion(**others), argument, value=value, where=where)


@pytest.mark.parametrize("budget", [0.1, 0.0, 0.5])  # of which the ends need no solver
@pytest.mark.parametrize(("argument", "value"), SOLVES)
def test_what_is_no_way_to_solve(argument, value, budget):
    refused(lambda: budgeted(budget=budget).solve(**{argument: value}), argument, value=value)


def test_a_misfit_says_which_shapes_would_do():
    wide = cpv.DiscreteSource([[0.2, 0.2, 0.1], [0.1, 0.2, 0.2]])
    assert cpv.PrivacyDistortion(wide, np.ones((3, 2)), budget=1).alphabet.d.matrix.shape == (3, 2)
    refused(
        lambda: cpv.PrivacyDistortion(wide, np.ones((2, 3)), budget=1),
        "distortion", "(2, 3)", "(3, |X̂|)", "(2, 3, |X̂|)",
    )  # fmt: skip


def test_a_budget_may_be_zero_and_one_criterion_is_a_list():
    assert budgeted(budget=0).budget == 0
    for call in (BINARY.entropy, BINARY.information):
        refused(lambda call=call: call(units="bit"), "units", value="bit")
    with pytest.raises(cpv.InputError, match="list"):
        budgeted(criteria=cpv.LeakageCap(0.5))


def test_numpy_numbers_are_numbers():
    problem = budgeted(budget=np.float32(0.25), criteria=[cpv.LeakageCap(np.int64(1))])
    assert problem.budget == 0.25
    assert problem.criteria[0].b == 1.0


@pytest.mark.parametrize("certify", [1, np.True_])
def test_what_equals_true_is_not_silently_false(certify):
    with pytest.raises((cpv.InputError, cpv.InfeasibleError)):
        cpv.PrivacyDistortion(THREE, ENDS, budget=0.1).solve(certify=certify)


def test_misspelled_arguments_are_python_errors():
    with pytest.raises(TypeError, match="buget"):
        cpv.PrivacyDistortion(BINARY, HAMMING, buget=0.1)
    with pytest.raises(TypeError, match="acuracy"):
        budgeted().solve(acuracy="high")


def test_a_criterion_that_generates_is_read_once():
    caps = (cpv.LeakageCap(b) for b in (0.5, 0.25))
    problem = budgeted(criteria=caps)
    assert [c.b for c in problem.criteria] == [0.5, 0.25]
    assert len(problem.program.constraints) == 3


def test_a_cost_of_one_layer_is_of_all_atoms():
    source = cpv.DiscreteSource([[0.25, 0.25], [0.125, 0.375]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    cost = np.array([[3.0, 1.0], [2.0, 5.0]])
    for value in (cost, cost[None], np.stack([cost, cost])):
        assert (
            least_value(problem.program, Expression("c", cost=value, constant=0.5))
            == 0.5 + 0.375 + 2 * 0.625
        )


def test_an_unknown_name_of_the_package():
    with pytest.raises(AttributeError, match="PrivacyDistorsion"):
        _ = cpv.PrivacyDistorsion


def test_what_are_no_axes():
    solution = budgeted().solve()
    curve = cpv.frontier(budgeted(), tol=0.1)
    for draw in (curve.plot, cpv.PrivacyProfile(solution.channel).plot,
                 lambda ax: plotting.channel(solution.channel, ax)):  # fmt: skip
        refused(lambda draw=draw: draw(ax=1), "ax", "axes of matplotlib")


def test_what_is_no_earlier_release():
    for after in (5, "no channel", [0.5]):
        refused(
            lambda after=after: budgeted(after=after), "after", "pass solution.channel", where=0
        )


def test_refusals_name_the_feature_that_helps():
    frame = pd.DataFrame({"id": range(10_001), "ill": [0, 1] * 5_000 + [0]})
    error = refused(
        lambda: cpv.DiscreteSource.from_table(frame, sensitive="ill", key="id"),
        "key", "groups=", "from_table(…, most=10001)", value="id",
    )  # fmt: skip
    assert error.remedy
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="id", most=10_001)
    assert len(source.x) == 10_001
    refused(lambda: cpv.leakage.Sibson(0.5), "order", "sibson_information", value=0.5)
    metric = cpv.absolute_error([0, 1])
    refused(
        lambda: cpv.LocalPrivacy(1.0, metric=metric, delta=0.1),
        "delta", "PrivacyProfile", value=0.1,
    )  # fmt: skip
