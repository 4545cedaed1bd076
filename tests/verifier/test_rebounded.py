"""A proof of one program serves others that differ in bounds of rows, and no others."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.channel_proof import ChannelProof

SOURCE = cpv.DiscreteSource([[0.3, 0.2, 0.05], [0.05, 0.1, 0.3]])
PROBLEM = cpv.PrivacyDistortion(SOURCE, cpv.absolute_error(range(3)), budget=0.3)


@pytest.fixture
def proof() -> ChannelProof:
    return verify.proof_of(PROBLEM.program.to_dict())


@pytest.mark.parametrize("budget", [0.1, 0.2, 0.3])
def test_ends_are_those_of_a_proof_that_reads_everything(proof, budget):
    certificate = PROBLEM.at(budget=budget).solve().certificate
    program, primal, dual = (
        part.to_dict() for part in (certificate.program, certificate.primal, certificate.dual)
    )
    before = proof.lower(dual).str(), proof.upper(primal).broken
    one, other = proof.rebounded(program), ChannelProof(program)
    assert one is not None
    assert one.program == program
    assert one.lower(dual).str() == other.lower(dual).str()
    assert one.upper(primal).feasible
    assert one.upper(primal).objective.str() == other.upper(primal).objective.str()
    assert one.unit(certificate.upper) == other.unit(certificate.upper)
    assert (proof.lower(dual).str(), proof.upper(primal).broken) == before  # it is still its own


def moved(program: dict[str, Any], *path: Any) -> dict[str, Any]:
    """Return a program with another number at a place."""
    other = copy.deepcopy(program)
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] += 1
    return other


@pytest.mark.parametrize(
    "path",
    [
        ("law", 0, 0),
        ("rows", "budget", "radius"),
        ("rows", "budget", "term", "cost", 0, 1),
        ("terms", "distortion", "cost", 0, 1),
        ("objective", "weights", "W"),
        ("views", "W", "labels", 0, 0),
    ],
)
def test_what_differs_in_more_is_read_again(proof, path):
    program = moved(PROBLEM.program.to_dict(), *path)
    assert proof.rebounded(program) is None
    assert proof.rebounded({**program, "rows": {}}) is None


def test_bounds_of_another_program_are_proved_of_that(proof):
    other = cpv.PrivacyDistortion(SOURCE, cpv.hamming(3), budget=0.3).program
    assert Prover(other, similar=proof).proof.program == other.to_dict()
    closer = PROBLEM.at(budget=0.1).program
    assert Prover(closer, similar=proof).proof.program == closer.to_dict()
