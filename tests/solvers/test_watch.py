"""A solve that is watched, timed or interrupted: what it says, and what it still proves."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.typing import Progress
from tests import referee
from tests.lengths import some_at_length
from tests.refusals import refused

SOURCE = cpv.DiscreteSource(np.random.default_rng(1).dirichlet(np.ones(24)).reshape(3, 8))
D = np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 7
PLAIN = cpv.PrivacyDistortion(SOURCE, D, budget=0.1)
CAPPED = cpv.MinimumDistortion(SOURCE, D, [cpv.LeakageCap(0.1), cpv.TCloseness(0.3)])
GAUSSIAN = cpv.GaussianSource(np.eye(4) + 0.5, sensitive=[0], key=[1, 2, 3])
COVARIANCE = cpv.QuadraticGaussian(GAUSSIAN, {"V1": 0.1, "V2": 0.2})
PROBLEMS = {"plain": PLAIN, "capped": CAPPED, "covariance": COVARIANCE}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_each_step_is_told(problem, capsys):
    recorded: list[Progress] = []
    solution = problem.solve(progress=recorded.append, verbose=True)
    assert [now.step for now in recorded] == list(range(len(recorded)))
    assert f"central path: {recorded[-1].step} steps" in solution.log[0]
    assert recorded[-1].gap <= recorded[-1].tolerance < recorded[0].gap
    assert all(a.seconds <= b.seconds for a, b in pairwise(recorded))
    assert solution.gap <= recorded[-1].tolerance
    assert capsys.readouterr().err.splitlines() == [str(now) for now in recorded]


def test_what_is_left_if_the_gap_goes_on_shrinking():
    assert Progress(9, 1e-3, 1e-6, 5.0).seconds_left == pytest.approx(5.0)
    assert Progress(9, 1e-7, 1e-6, 5.0).seconds_left == 0
    assert math.isnan(Progress(0, 30.0, 1e-6, 0.1).seconds_left)
    assert str(Progress(9, 1e-3, 1e-6, 5.0)).endswith("5.0 s, about 5 s left")
    assert str(Progress(0, 30.0, 1e-6, 0.1)).endswith("0.1 s")


class Stop:
    """Interrupts, or lets the time run out, at a step."""

    def __init__(self, last: int, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        self.last, self.patch = last, monkeypatch

    def __call__(self, now: Progress) -> None:
        if now.step == self.last:
            if self.patch is None:
                raise KeyboardInterrupt
            self.patch.setattr(Watch, "left", 0.0)


@pytest.mark.parametrize("timed", [False, True], ids=["interrupted", "out of time"])
@pytest.mark.parametrize("last", some_at_length([3, 0, 7], 1))
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_proved_so_far_is_returned(problem, last, timed, monkeypatch):
    truth = problem.solve()
    with monkeypatch.context() as patch:
        stop = Stop(last, patch if timed else None)
        solution = problem.solve(progress=stop, time_limit=100.0, certify=False)
        reason = "time limit of 100 s" if timed else "interrupted"
        assert solution.log[-1] == f"stopped: {reason}"
    assert not any("CLARABEL" in line for line in solution.log)
    assert solution.status in ("loose", "uncertified")
    assert solution.lower <= truth.upper
    assert truth.lower <= solution.upper
    assert solution.certificate.verify()
    if last == 7:
        assert solution.status == "loose"
        if problem is not COVARIANCE:  # the referee knows channels
            referee.check(solution, status="loose")


def test_a_second_interrupt_returns_nothing(monkeypatch):
    from cvxprivacy.solvers.channel import ChannelTask

    def again(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChannelTask, "salvage", again)
    with pytest.raises(KeyboardInterrupt):
        PLAIN.solve(progress=Stop(3))


def test_no_attempt_is_made_when_time_is_up(monkeypatch):
    monkeypatch.setattr(Watch, "left", 0.0)
    solution = PLAIN.solve(method="conic", time_limit=5.0, certify=False)
    assert not any("CLARABEL" in line for line in solution.log)
    assert solution.log[-1] == "stopped: time limit of 5 s"


@pytest.mark.parametrize(
    ("options", "argument", "value"),
    [
        ({"time_limit": 0}, "time_limit", 0.0),
        ({"time_limit": -1.0}, "time_limit", -1.0),
        ({"time_limit": "soon"}, "time_limit", "soon"),
        ({"time_limit": "5"}, "time_limit", "5"),
        ({"time_limit": True}, "time_limit", True),
        ({"time_limit": math.inf}, "time_limit", math.inf),
        ({"progress": 3}, "progress", 3),
    ],
)
def test_what_is_no_limit_and_no_function(options, argument, value):
    error = refused(lambda: PLAIN.solve(**options), argument, value=value)
    assert type(error.value) is type(value)


def test_nan_seconds_are_no_limit():
    refused(lambda: PLAIN.solve(time_limit=math.nan), "time_limit", "> 0", value=math.nan)


STRICT = [
    cpv.PrivacyDistortion(
        SOURCE, D, budget=0.5, criteria=[cpv.KeepProbability(0.9), cpv.LeakageCap(0.001)]
    ),
    cpv.GaussianEquivocation(cpv.GaussianSource.scalar(0.8), 0.25, max_leakage=0.3),
]


@pytest.mark.parametrize("problem", STRICT, ids=["channel", "covariance"])
def test_what_numbers_could_be_is_left_out_once_time_is_up(problem):
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve(time_limit=100.0)
    asked = caught.value
    assert asked.extremes
    late = problem._explained(asked.certificate, Watch(1e-9))
    assert late.conflict == asked.conflict
    assert not late.extremes
    assert str(asked).startswith(f"{late}; with the rest as it is, ")


def test_a_covariance_path_proves_what_it_tells_wherever_it_is_stopped():
    """On the way from one centre to the next the last one's multipliers are offered."""
    recorded: list[Progress] = []
    COVARIANCE.solve(progress=recorded.append)
    assert recorded[0].gap > 1 > 1e-6 > recorded[-1].gap
    for step in range(4, len(recorded), 5):
        solution = COVARIANCE.solve(progress=Stop(step), certify=False)
        assert solution.gap <= 1.1 * recorded[step].gap


def test_a_covariance_path_that_breaks_down_proves_what_it_came_to(monkeypatch):
    from cvxprivacy.solvers.covariance import method

    def broken(self, *values):
        raise np.linalg.LinAlgError("no convergence")

    monkeypatch.setattr(method._Path, "multipliers", broken)
    solution = COVARIANCE.solve(method="structured", certify=False)
    assert solution.status == "loose"
    assert solution.upper < math.inf
