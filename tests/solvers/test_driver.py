"""The loop: which attempts are made, in which order, what is reported, what stops it."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.programs.expression import Expression
from cvxprivacy.settings import CovariancePath, using
from cvxprivacy.solvers.channel import ChannelTask
from cvxprivacy.solvers.conic.channel import ConicModel
from cvxprivacy.solvers.conic.covariance import LogDetModel
from cvxprivacy.solvers.driver import _minimise, solve, solve_gaussian
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy.solvers.task import Task, attempts
from tests import referee
from tests.programs.test_channel import base, cost

MASS = base().mass
LEAST, MOST = (MASS * cost(0).min(axis=1)).sum(), (MASS @ cost(0)).min()
BUDGET = Expression("d", cost=cost(0)) <= float(LEAST + MOST) / 2
PROGRAM = base(constraints={"budget": BUDGET})
BOTH = base(constraints={"budget": BUDGET, "rate": Expression("r", {"W": 1.0}) <= 0.5})
BINARY = cpv.DiscreteSource(np.array([[3, 1], [1, 3]]) / 8)
GAUSSIAN = cpv.GaussianSource(np.eye(4) + 0.5, sensitive=[0], key=[1, 2, 3])
CAPPED = cpv.GaussianEquivocation(GAUSSIAN, 0.5, max_leakage=0.3).program


# ---- the loop ----------------------------------------------------------------------------


class Stages(Task):
    """Writes down which stages are called; the last one settles it."""

    def __init__(self, last: int, has_interior: bool = False, status: str = "certified") -> None:
        super().__init__({"solver": "CLARABEL"})
        self.called: list[str] = []
        self.last, self.has_interior, self.final = last, has_interior, status
        self.prover = SimpleNamespace(status="loose", certificate=lambda: None)

    def stage(self, name: str) -> bool:
        self.called.append(name)
        if len(self.called) == self.last:
            self.prover.status = self.final
        return self.settled

    def presolve(self, minimise):
        return self.stage("presolve")

    def structured(self):
        return self.stage("structured")

    def propose(self, settings):
        self.stage("propose")

    def prove(self):
        self.stage("prove")

    def phase_one(self, minimise):
        self.has_interior = True
        self.stage("phase one")


FIRST = ["presolve", "structured", "propose", "prove"]
WHOLE = [*FIRST, "phase one", "prove", *4 * ["propose", "prove"]]


@pytest.mark.parametrize("status", ["certified", "infeasible"])
@pytest.mark.parametrize(
    ("last", "stages"),
    [(1, 1), (2, 2), (3, 4), (4, 4), (5, 5), (6, 6), (7, 8), (8, 8), (9, 10), (99, len(WHOLE))],
)
def test_stages_follow_each_other_until_it_is_settled(last, stages, status):
    """What is proposed is proved before the next attempt; phase one is tried once."""
    task = Stages(last, status=status)
    _minimise(task)
    assert task.called == WHOLE[:stages]


def test_no_phase_one_where_a_strictly_feasible_point_is_at_hand():
    task = Stages(99, has_interior=True)
    _minimise(task)
    assert task.called == [*FIRST, *4 * ["propose", "prove"]]


class FirstIsRarer(cpv.Criterion):
    """The first value of W is no likelier than the second, whatever is released."""

    def constraints(self, release):
        return {"": release.mass(0).each() <= release.mass(1).each()}


def test_a_linear_row_for_each_output_alone_is_mended():
    """A channel of least cost does not satisfy it strictly; constant ones do."""
    law = np.random.default_rng(3).integers(1, 50, (2, 5))
    source, d = cpv.DiscreteSource.from_counts(law), cpv.squared_error(np.arange(5))
    problem = cpv.MinimumDistortion(source, d, [FirstIsRarer()])
    for method in ("structured", "conic"):
        referee.check(problem.solve(method=method))


# ---- the log -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        lambda: cpv.PrivacyDistortion(BINARY, cpv.hamming(2), budget=0.1),
        lambda: cpv.PrivacyDistortion(BINARY, cpv.hamming(2), budget=0),
        lambda: cpv.GaussianEquivocation(GAUSSIAN, 0.5, max_leakage=0.3),
        lambda: cpv.ReverseWaterFilling([1.0, 2.0], 0.5),
        lambda: cpv.HammingWaterFilling([0.2, 0.3, 0.5], 0.1),
        lambda: cpv.RateDistortionEquivocation(
            cpv.DiscreteSource(np.array([[[4, 1], [1, 2]], [[1, 2], [2, 3]]]) / 16),
            cpv.hamming(2), 0.1, side_information="decoder", most_strategies=1,
        ),
    ],
    ids=["attempts", "face", "covariance", "closed form", "hamming", "generated"],
)  # fmt: skip
def test_what_attempts_report_is_in_the_log_and_sent_to_the_logger(problem, caplog):
    with caplog.at_level(logging.DEBUG, "cvxprivacy"):
        solution = problem().solve()
    records = [r for r in caplog.records if r.name == "cvxprivacy"]
    assert {r.levelname for r in records} == {"DEBUG"}
    lines = [r.getMessage() for r in records]
    assert len(solution.log) > 0
    assert set(solution.log) <= set(lines)
    if "strategies" not in " ".join(lines):  # the other program's attempts are not the solution's
        assert list(solution.log) == lines


def test_an_error_says_what_the_solver_reported(monkeypatch):
    monkeypatch.setattr(ConicModel, "solve", lambda *_, **__: "out of sorts")
    problem = cpv.PrivacyDistortion(
        BINARY, cpv.hamming(2), budget=0.1, criteria=[cpv.LeakageCap(1e-4)]
    )
    with pytest.raises(cpv.CertificationError) as caught:
        problem.solve(method="conic")
    log = problem.solve(method="conic", certify=False).log
    assert log[0] == "CLARABEL defaults: out of sorts"
    assert sum("out of sorts" in line for line in log) > len(attempts("CLARABEL"))
    assert "; ".join(log) in str(caught.value)


# ---- attempts ----------------------------------------------------------------------------


@pytest.mark.parametrize("accuracy", ["default", "high"])
@pytest.mark.parametrize(
    ("run", "program", "model"),
    [(solve, PROGRAM, ConicModel), (solve_gaussian, CAPPED, LogDetModel)],
    ids=["channel", "covariance"],
)
def test_every_setting_is_tried_with_the_users_options_on_top(
    run, program, model, accuracy, monkeypatch
):
    calls = []

    def nothing(self, solver, options, **how):
        calls.append((options, how["user"], self.phase_one))
        return "nothing"

    monkeypatch.setattr(model, "solve", nothing)
    options = {"max_iter": 7, "tol_feas": 1e-3}
    outcome = run(program, method="conic", accuracy=accuracy, solver_options=options)
    assert outcome.certificate.status in ("loose", "uncertified")
    tried = [dict(settings) for settings, user, phase_one in calls if not phase_one]
    assert tried == [{**settings, **options} for settings in attempts("CLARABEL", accuracy)]
    assert all(user != phase_one for _, user, phase_one in calls)  # who should hear of them


def test_plain_settings_come_first_unless_high_accuracy_is_asked_for():
    assert attempts("CLARABEL")[0] == {}
    assert attempts("CLARABEL", "high")[-1] == {}
    assert attempts("SCS")[0]["eps_abs"] > attempts("SCS", "high")[0]["eps_abs"]
    assert attempts("ANOTHER") == [{}]
    for solver in ("CLARABEL", "SCS"):
        plain, high = attempts(solver), attempts(solver, "high")
        assert sorted(map(str, plain)) == sorted(map(str, high))


@pytest.mark.parametrize("problem", [PROGRAM, CAPPED], ids=["channel", "covariance"])
def test_a_misspelled_option_is_heard_of(problem):
    run = solve if problem is PROGRAM else solve_gaussian
    with pytest.raises(cpv.InputError) as caught:
        run(problem, method="conic", solver_options={"max_itre": 7})
    assert caught.value.argument == "solver_options"


def test_what_is_certified_is_not_tried_again():
    log = solve(PROGRAM, method="conic").log
    assert len(log) == 1
    assert log[0].startswith("CLARABEL defaults: ")


@pytest.mark.parametrize("program", [PROGRAM, BOTH], ids=["one row", "two rows"])
def test_a_strictly_feasible_channel_is_looked_for_where_none_is_known(program, monkeypatch):
    """Once, after the first attempt fails; the next attempt then certifies."""
    honest, calls = ConicModel.solve, []

    def failing_first(self, *value, **options):
        calls.append(self)
        return "failed" if len(calls) == 1 else honest(self, *value, **options)

    monkeypatch.setattr(ConicModel, "solve", failing_first)
    monkeypatch.setattr(interior, "fits", lambda program: False)
    outcome = solve(program)
    assert outcome.certificate.status == "certified"
    looked = [line for line in outcome.log if "strictly feasible" in line]
    assert bool(looked) == (program is BOTH)
    assert all("infeasible" in line for line in looked[:-1])
    assert not any("phase one" in line for line in outcome.log)


def test_a_strictly_feasible_channel_has_room_in_every_row():
    task = ChannelTask(BOTH, {})
    assert not task.has_interior
    assert ChannelTask(PROGRAM, {}).has_interior
    two = {"budget": BUDGET, "again": Expression("", cost=cost(1)) <= 10.0}
    assert not ChannelTask(base(constraints=two), {}).has_interior
    task.phase_one(lambda inner: pytest.fail("there is room"))
    ((channel, _),) = task.prover.strictly_feasible
    for row in BOTH.constraints.values():
        assert BOTH.value(row.expression, channel.matrix) < row.bounds(4) - 1e-4
    assert task.prover.primal is channel


@pytest.mark.parametrize("method", ["auto", "conic"])
def test_a_contradiction_of_several_rows_is_found(method):
    """By the central path's own multipliers, or by those of phase one."""
    rows = {
        "risk": Expression("risk", {"W": 1.0}) <= 1e-4,
        "budget": Expression("d", cost=cost(0)) <= float(LEAST) + 1e-4,
        "other": Expression("other", cost=cost(1)) <= 10.0,
    }
    outcome = solve(base(constraints=rows), method=method)
    assert outcome.certificate.status == "infeasible"
    last = {"auto": "central path", "conic": "CLARABEL phase one"}
    assert last[method] in outcome.log[-1]
    conflict = {k for k, v in outcome.certificate.dual.multipliers.items() if np.any(v)}
    assert conflict == {"risk", "budget"}


# ---- covariance programs -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "line"),
    [(1.0, "closed form: no constraint binds"), (0, "closed form: no error is allowed")],
)
def test_the_ends_of_a_budget_need_no_iterations(budget, line):
    """Of the trace of Σ, from nothing to all of Cov(X) in the unit of its trace."""
    most = float(np.trace(np.eye(3) + 0.5)) * (1 + 1e-9)
    program = cpv.QuadraticGaussian(GAUSSIAN, budget * most).program
    outcome = solve_gaussian(program)
    assert outcome.log == [line]
    certificate = outcome.certificate
    assert certificate.status == "certified"
    assert certificate.verify()
    information = GAUSSIAN.information() if budget == 0 else 0.0
    assert certificate.lower - 1e-9 <= information <= certificate.upper + 1e-9


def test_the_central_path_comes_before_the_solver():
    log = solve_gaussian(CAPPED).log
    assert [line.split(":")[0] for line in log] == ["CLARABEL phase one", "central path"]


def test_the_solver_alone_is_asked_where_it_is_told_so():
    outcome = solve_gaussian(CAPPED, method="conic", accuracy="high")
    assert not any("central path" in line for line in outcome.log)
    assert outcome.certificate.lower <= solve_gaussian(CAPPED).certificate.upper
    assert solve_gaussian(CAPPED).certificate.lower <= outcome.certificate.upper


def test_a_central_path_that_breaks_is_reported_and_the_solver_takes_over(monkeypatch):
    def broken(*value):
        raise np.linalg.LinAlgError("no way")

    monkeypatch.setattr("cvxprivacy.solvers.covariance.stages.central_path", broken)
    outcome = solve_gaussian(CAPPED)
    assert "central path: no way" in outcome.log
    assert outcome.certificate.status == "certified"
    alone = solve_gaussian(CAPPED, method="structured")
    assert alone.log[-1] == "central path: no way"
    assert alone.certificate.status != "certified"


def test_a_covariance_program_that_would_not_fit_is_refused(monkeypatch):
    from cvxprivacy.solvers.covariance import stages

    program = cpv.QuadraticGaussian(GAUSSIAN, 0.5).program
    with using(CovariancePath(most_numbers=3)):
        with pytest.raises(cpv.InputError, match="a Newton step takes about .* GiB"):
            solve_gaussian(program, method="structured")
        assert solve_gaussian(program).certificate.status == "certified"
        monkeypatch.setattr(stages, "MOST_VARIABLES", 1)
        with pytest.raises(cpv.InputError, match="a conic model takes about .* GiB"):
            solve_gaussian(program)


def test_conflicting_rows_are_named_without_those_that_do_not_matter():
    program = cpv.GaussianEquivocation(GAUSSIAN, 0.5, max_leakage=1e-4).program
    size = Expression("size", cost=np.eye(program.n))
    rows = {**program.constraints, "loose": size <= 4.0, "looser": size <= 5.0}
    certificate = solve_gaussian(replace(program, constraints=rows)).certificate
    assert certificate.status == "infeasible"
    assert certificate.verify()
    conflict = {name for name, price in certificate.dual.multipliers.items() if price}
    assert conflict == set(program.constraints)


# ---- what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"method": "fast"}, "method"),
        ({"accuracy": "exact"}, "accuracy"),
        ({"solver": "NONE"}, "solver"),
        ({"solver_options": [1]}, "solver_options"),
    ],
)
def test_unknown_options_are_refused(options, argument):
    with pytest.raises(cpv.InputError) as caught:
        solve(PROGRAM, **options)
    assert caught.value.argument == argument


def test_the_structured_method_knows_no_caps():
    capped = cpv.QuadraticGaussian(GAUSSIAN, 0.5, cap=np.eye(3)).program
    with pytest.raises(cpv.InputError) as caught:
        solve_gaussian(capped, method="structured")
    assert caught.value.argument == "method"
