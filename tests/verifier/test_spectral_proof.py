"""Proofs of reverse water-filling of a covariance along nearly its eigenvectors."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.spectral import SpectralCertificate
from cvxprivacy.exact import array
from cvxprivacy.programs.spectral import SpectralProgram
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import UnprovableError
from cvxprivacy_verifier.spectral_proof import SpectralProof
from cvxprivacy_verifier.statement import stated
from tests import second_checker
from tests.claims import claimed
from tests.lengths import some_at_length

Document = dict[str, Any]
SHARES = (Fraction(1, 100), Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(2))


def law(rng: np.random.Generator, size: int, condition: float) -> np.ndarray:
    axes = np.linalg.qr(rng.normal(size=(size, size)))[0]
    outcome = (axes * np.geomspace(1, 1 / condition, size)) @ axes.T
    return (outcome + outcome.T) / 2


def certificate(covariance: Any, budget: Fraction, units: str = "nats") -> SpectralCertificate:
    exact = array(covariance)
    powers, axes = np.linalg.eigh(np.array(covariance, float))
    level = cpv.ReverseWaterFilling(powers, budget).level
    program = SpectralProgram(exact, budget, units)
    return SpectralCertificate(program, "high", axes, powers, level)


def trace(covariance: Any) -> Fraction:
    return sum((Fraction(row[i]) for i, row in enumerate(covariance.tolist())), Fraction(0))


@pytest.fixture(scope="module")
def document() -> Document:
    outcome = law(np.random.default_rng(1), 4, 100.0)
    return json.loads(json.dumps(certificate(outcome, trace(outcome) / 3).document()))


@pytest.mark.parametrize("condition", some_at_length([1.0, 10.0, 1e4, 1e8], 2))
@pytest.mark.parametrize("share", SHARES)
def test_two_checkers_agree_on_it(condition: float, share: Fraction) -> None:
    rng = np.random.default_rng(int(condition))
    for size in (1, 2, 4):
        covariance = law(rng, size, condition)
        outcome = certificate(covariance, share * trace(covariance), ("bits", "nats")[size % 2])
        assert outcome.status == "certified"
        assert outcome.verify()
        document = json.loads(json.dumps(outcome.document()))
        lower, upper, status = second_checker.check(document)
        assert status == "certified"
        assert outcome.lower <= upper
        assert lower <= outcome.upper
        assert float(lower) == pytest.approx(outcome.lower, abs=1e-10)
        assert float(upper) == pytest.approx(outcome.upper, abs=1e-10)
        dense = cpv.ReverseWaterFilling(
            covariance, share * trace(covariance), units=outcome.program.units
        ).solve(accuracy="high")
        assert dense.certificate.program.to_dict()["kind"] == "covariance"
        assert dense.lower <= outcome.upper
        assert outcome.lower <= dense.upper


def test_axes_that_are_none_prove_nothing_false(document: Document) -> None:
    """Whatever V, r, y and the price are: what verifies is true."""
    rng = np.random.default_rng(2)
    truth = document["claim"]["lower"], document["claim"]["upper"]
    verified = 0
    for number in range(150):
        forged = copy.deepcopy(document)
        size = 10.0 ** rng.uniform(-12, 1)
        for part, key in (("primal", "removed"), ("dual", "precisions"), ("dual", "price")):
            if rng.random() < 0.6:
                values = np.array(forged[part][key]) * (1 + size * rng.normal(size=4)[:None])
                if key == "price":
                    values = values[0]
                forged[part][key] = values.tolist()
        for part in ("primal", "dual"):
            if rng.random() < 0.6:
                axes = np.array(forged[part]["axes"])
                axes = axes + size * rng.normal(size=(4, 4))
                forged[part]["axes"] = (axes if number % 3 else axes[:, ::-1]).tolist()
        try:
            summary = claimed(forged)
        except UnprovableError:
            continue
        if verify.disagreements(summary):
            continue
        verified += 1
        assert summary["claim"]["lower"] <= truth[1]
        assert summary["claim"]["upper"] >= truth[0]
        lower, upper, _ = second_checker.check(summary)
        assert summary["claim"]["lower"] <= upper
        assert lower <= summary["claim"]["upper"]
    assert verified > 30


def test_a_covariance_that_is_moved_is_another_program(document: Document) -> None:
    for i, j, step in ((0, 0, -0.01), (0, 1, 0.01), (2, 3, -1e-9)):
        forged = copy.deepcopy(document)
        forged["program"]["covariance"][i][j] += step
        if i != j:
            with pytest.raises(UnprovableError, match="not symmetric"):
                verify.recompute(forged)
            forged["program"]["covariance"][j][i] += step
        assert verify.disagreements(forged)
    forged = copy.deepcopy(document)
    forged["program"]["covariance"] = [[-x for x in row] for row in forged["program"]["covariance"]]
    with pytest.raises(UnprovableError, match="0 ≼ Σ"):
        verify.recompute(forged)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"units": "bans"}, "'bans'"),
        ({"budget": 0}, "not positive"),
        ({"budget": math.nan}, "not finite"),
        ({"covariance": [[1.0, 0.0]]}, "not symmetric"),
        ({"covariance": [[1.0, 0.5], [0.25, 1.0]]}, "not symmetric"),
        ({"covariance": [[1.0], [2.0, 3.0]]}, "ragged"),
    ],
    ids=str,
)
def test_what_is_no_program_is_refused(change: Any, text: str) -> None:
    program = {"kind": "spectral", "units": "bits", "covariance": [[1.0]], "budget": "1/2"}
    assert SpectralProof(program).unit(1.0) == pytest.approx(1 / math.log(2))
    with pytest.raises(UnprovableError, match=text):
        SpectralProof({**program, **change})


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("primal", {"axes": [[1.0]]}),
        ("primal", {"removed": [0.0]}),
        ("primal", {"removed": [0.0, 0.0, 0.0, -1e-3]}),
        ("dual", {"precisions": None}),
        ("dual", {"precisions": [1.0, 1.0, 1.0, -1.0]}),
        ("dual", {"price": "x"}),
    ],
    ids=str,
)
def test_what_is_no_proof_is_refused(part: str, change: Any, document: Document) -> None:
    with pytest.raises(UnprovableError):
        verify.recompute({**document, part: {**document[part], **change}})


def test_the_file_says_what_it_proves(document: Document) -> None:
    lines = "\n".join(stated(document))
    assert "minimised: information I(X; X^), in nats" in lines
    assert "X of 4 jointly Gaussian variables" in lines
    assert "trace of Sigma <= " in lines


@pytest.mark.long
def test_a_covariance_of_sixty_variables() -> None:
    covariance = law(np.random.default_rng(5), 60, 1e4)
    problem = cpv.ReverseWaterFilling(covariance, 0.3 * float(np.trace(covariance)), units="nats")
    solution = problem.solve(accuracy="high")
    assert solution.status == "certified"
    assert solution.certificate.verify()
    assert solution.certificate.proves(problem)
    assert not solution.certificate.proves(problem.at(budget=1))
    powers, level = np.linalg.eigvalsh(covariance), float(problem.level)
    value = 0.5 * np.log(powers / np.minimum(powers, level)).sum()
    assert math.isclose(solution.value, value, rel_tol=1e-10)
    assert math.isclose(solution.prices["budget"], -1 / (2 * level), rel_tol=1e-12)
    sigma, release = solution.error_covariance, solution.release
    assert math.isclose(np.trace(sigma), float(problem.total), rel_tol=1e-12)
    kept = release.gain @ covariance @ release.gain.T + release.noise  # Cov(X̂) = Γ − Σ
    assert np.allclose(kept, covariance - sigma, atol=1e-12)
    above, below = solution.duals["Σ ≼ Σ_X"], solution.duals["0 ≼ Σ"]
    slope = np.linalg.inv(sigma) / 2
    assert np.allclose(slope, solution.duals["budget"] * np.eye(60) + above - below, rtol=1e-6)
    ruled = problem.with_constraint("mine", problem.risk <= 1e3)
    assert ruled.exact_program is None
