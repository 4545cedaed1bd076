"""The interior-point method for channel programs: from bad starts, and against the conic solver."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.solvers import interior
from cvxprivacy.solvers.driver import solve
from tests import referee


def problems():
    """Yield programs with every kind of row that the method knows."""
    rng = np.random.default_rng(3)
    law = rng.dirichlet(np.full(12, 0.8)).reshape(3, 4)
    source, error = cpv.DiscreteSource(law), rng.random((4, 4))
    np.fill_diagonal(error, 0)
    for rules in (
        [],
        [cpv.TCloseness(0.1)],
        [cpv.LDiversity(1.6)],
        [cpv.DeltaDisclosure(1.0)],
        [cpv.PreserveMarginal()],
        [cpv.PreserveMean([1.0, 2.0, 3.0, 5.0]), cpv.KeepProbability(0.2)],
        [cpv.ForbiddenMoves(np.eye(4, k=3, dtype=bool)), cpv.LeakageCap(0.2)],
    ):
        yield cpv.PrivacyDistortion(source, error, budget=0.25, criteria=rules, units="nats")
    law = rng.dirichlet(np.ones(24)).reshape(3, 4, 2)
    for who in (None, "decoder", "both"):
        yield cpv.RateDistortionEquivocation(
            cpv.DiscreteSource(law), error, 0.2, minimize="leakage", max_rate=0.9,
            side_information=who, units="nats",
        )  # fmt: skip


PROBLEMS = list(problems())


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_it_proves_what_the_conic_solver_finds(number):
    problem = PROBLEMS[number]
    program = problem.program
    assert interior.fits(program)
    conic = problem.solve(method="conic")
    prover = Prover(program, "high")
    start = conic.certificate
    for channel, dual in interior.central_path(program, start.primal.matrix, start.dual):
        assert program.violation(channel) < 1e-6
        prover.offer_dual(dual)
        prover.offer_channel(channel)
    assert prover.status == "certified"
    assert prover.lower <= conic.upper
    assert conic.lower <= prover.upper
    referee.check(problem.solve(accuracy="high"))


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_a_bad_start_proves_nothing_false(number):
    program = PROBLEMS[number].program
    truth = PROBLEMS[number].solve()
    rng = np.random.default_rng(number)
    start = rng.dirichlet(np.ones(program.m), program.n)
    prover = Prover(program)
    for channel, dual in interior.central_path(program, start, truth.certificate.dual):
        prover.offer_dual(dual)
        prover.offer_channel(channel)
    assert prover.lower <= truth.upper
    assert truth.lower <= prover.upper


def test_auxiliaries_are_not_for_it():
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2), budget=0.2,
        criteria=[cpv.LocalPrivacy(3.0)],
    )  # fmt: skip
    assert not interior.fits(problem.program)
    referee.check(problem.solve())


def test_what_the_central_path_did_is_in_the_log():
    problem = PROBLEMS[8]
    said = solve(problem.program, accuracy="high", solver_options={"max_iter": 8}).log
    assert any("central path" in line for line in said)
    quiet = solve(problem.program, method="conic", solver_options={"max_iter": 8}).log
    assert not any("central path" in line for line in quiet)
