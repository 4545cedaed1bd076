"""Proofs of water in boxes: ends at any level, documents, forgeries, what is no program."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.__main__ import main
from cvxprivacy_verifier.balls import UnprovableError, ceil, floor
from cvxprivacy_verifier.statement import stated
from cvxprivacy_verifier.water_proof import WaterProof
from tests.claims import claimed
from tests.formulations.water_truth import contains, value_of

F = Fraction
PROBLEMS: dict[str, Any] = {
    "reverse": cpv.ReverseWaterFilling([4, 1.5, F(1, 3), 0.25], F(5, 4)),
    "box": cpv.BoxWaterFilling([1, 2.5, 4, F(1, 7)], [1, 1.5, F(2, 3), 0.25], 1, units="nats"),
}
Document = dict[str, Any]


def document_of(name: str) -> Document:
    return json.loads(json.dumps(PROBLEMS[name].solve().certificate.document()))


def changed(document: Document, place: str, **values: Any) -> Document:
    return {**document, place: {**document[place], **values}}


def truth(program: Document) -> Any:
    return value_of(*(program[k] for k in ("gains", "variances", "budget", "units")))[0]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("factor", ["1/1000000", "1/2", "9/10", "99/100", "101/100", "11/10", "50"])
def test_a_wrong_level_is_looser_and_proves_nothing_false(name: str, factor: str) -> None:
    document = document_of(name)
    level = F(document["dual"]["level"]) * F(factor)
    wrong = changed(document, "dual", level=str(level))
    summary = verify.recompute(wrong)
    exact = truth(document["program"])
    assert contains(summary["lower"], summary["upper"], exact)
    assert summary["lower"] < document["claim"]["lower"]
    assert verify.disagreements(claimed(wrong)) == []
    wrong = changed(document, "primal", level=str(level))
    if F(factor) > 1:  # more than the budget
        with pytest.raises(UnprovableError, match="breaks budget"):
            verify.recompute(wrong)
        assert verify.disagreements(wrong)
    else:
        summary = verify.recompute(wrong)
        assert contains(summary["lower"], summary["upper"], exact)
        assert summary["upper"] > document["claim"]["upper"]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_lower_end_is_weak_duality(name: str) -> None:
    """f(x(v)) + (X(v) − t)/2v is the minimum over x in [0, c] of f(x) + μ(Σx − t), by a search."""
    program = document_of(name)["program"]
    caps = np.array([float(F(c)) for c in program["variances"]])
    gains = program["gains"]
    offsets = np.zeros(4) if gains is None else 1 / np.array([float(F(g)) for g in gains])
    unit = 1 / math.log(2) if program["units"] == "bits" else 1.0
    for level in (0.05, 0.3, 0.8, 1.1, 4.0):
        bound = -float(F(program["budget"])) / (2 * level)
        for o, c in zip(offsets, caps, strict=True):
            x = np.linspace(0 if o else 1e-9, c, 400_001)
            bound += (np.log((o + c) / (o + x)) / 2 + x / (2 * level)).min()
        outcome = verify.proof_of(program).lower({"level": level, "objective": 1})
        assert float(outcome) == pytest.approx(max(bound * unit, 0.0), abs=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_changed_is_another_program_or_no_proof(name: str) -> None:
    problem, document = PROBLEMS[name], document_of(name)
    program = document["program"]
    assert problem.solve().certificate.proves(problem)
    assert problem.at(**{problem._total: 2}).solve().certificate.differences(problem)
    for key in ("variances", *(("gains",) if program["gains"] else ())):
        values = program[key]
        moved = [math.nextafter(float(F(values[0])), 9.0), *values[1:]]
        for other in (moved, values[::-1], [2 * F(values[0]), *values[1:]]):
            other = [v if isinstance(v, float) else str(v) for v in other]
            wrong = changed(document, "program", **{key: other})
            assert any("sha256" in text for text in verify.disagreements(wrong))
            summary = claimed(wrong) if _pours(wrong) else None
            if summary is not None:  # then true of the other program
                claim = summary["claim"]
                assert contains(claim["lower"], claim["upper"], truth(wrong["program"]))
        for wrong in ([-F(v) for v in map(F, values)], [0, *values[1:]], values[1:], []):
            other = [v if isinstance(v, float) else str(v) for v in wrong]
            wrong_program = changed(document, "program", **{key: other})
            if other == values[1:] and program["gains"] is None:  # a program of fewer variances
                assert verify.disagreements(wrong_program)
                continue
            with pytest.raises(UnprovableError):
                verify.recompute(wrong_program)
    for swapped in ({"units": "nats"}, {"units": "bits"}, {"budget": "3/4"}, {"budget": "7/4"}):
        if program != {**program, **swapped}:
            assert verify.disagreements(changed(document, "program", **swapped))


def _pours(document: Document) -> bool:
    try:
        verify.recompute(document)
    except UnprovableError:  # more than the budget
        return False
    return True


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_claim_moved_inwards_is_refused(name: str) -> None:
    document = document_of(name)
    assert verify.disagreements(document) == []
    for key, sign in (("lower", math.inf), ("upper", -math.inf)):
        end = document["claim"][key]
        for moved in (math.nextafter(end, sign), end + math.copysign(1e-6, sign)):
            wrong = changed(document, "claim", **{key: moved})
            assert any(text.startswith("the value") for text in verify.disagreements(wrong))
    for term, (low, high) in document["claim"]["terms"].items():
        for moved in ([math.nextafter(low, math.inf), high], [low, math.nextafter(high, 0)]):
            terms = {**document["claim"]["terms"], term: moved}
            wrong = changed(document, "claim", terms=terms)
            assert any(text.startswith(term) for text in verify.disagreements(wrong))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"units": "bans"}, "'bans'"),
        ({"variances": []}, "no list"),
        ({"variances": None}, "no list"),
        ({"variances": [1.0, math.nan]}, "not finite"),
        ({"variances": [1.0, math.inf]}, "not finite"),
        ({"variances": [1.0, True]}, "no number"),
        ({"variances": [1.0, "1/0"]}, "no fraction"),
        ({"variances": [1.0, -0.0]}, "not all positive"),
        ({"gains": [1.0]}, "as many gains"),
        ({"gains": [1.0, -2.0]}, "not all positive"),
        ({"gains": 3}, "no list"),
        ({"budget": 0}, "not positive"),
        ({"budget": "-1/2"}, "not positive"),
        ({"budget": math.inf}, "not finite"),
    ],
    ids=str,
)
def test_what_is_no_program_is_refused(change: Any, text: str) -> None:
    program = {"kind": "water", "units": "bits", "gains": None, "variances": [1.0, 2.0]}
    program |= {"budget": "1/2"}
    assert WaterProof(program).unit(1.0) == pytest.approx(1 / math.log(2))
    with pytest.raises(UnprovableError, match=text):
        WaterProof({**program, **change})


def test_levels_of_every_kind() -> None:
    """No level is needed for f ≥ 0; and a release has one."""
    program = {"kind": "water", "units": "nats", "gains": [2, "1/3", 5e-324], "budget": 1}
    proof = WaterProof({**program, "variances": [1.0, "7/3", 1.7e308]})
    exact = value_of([2, F(1, 3), 5e-324], [1, F(7, 3), 1.7e308], 1)[0]
    for level in (0, -1, "-1/3", 5e-324, "1/" + "9" * 1999, 1, "4/3", "9" * 2000, 1.7e308):
        lower = proof.lower({"level": level, "objective": 1})
        assert contains(floor(lower), math.inf, exact)
        assert proof.lower({"level": level, "objective": 0}) == 0
        try:
            evaluation = proof.upper({"level": level})
        except UnprovableError:
            assert F(level) <= 0
            continue
        if evaluation.feasible:
            assert contains(-math.inf, ceil(evaluation.objective), exact)
        else:
            assert F(level) > F(3, 2)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_proof_file_is_read_without_the_package_s_arrays(
    name: str, tmp_path: Any, capsys: Any
) -> None:
    solution = PROBLEMS[name].solve()
    path = solution.certificate.to_json(tmp_path / "proof.json")
    assert main([str(path)]) == 0
    assert "verified, certified" in capsys.readouterr().out
    code = "import sys; from cvxprivacy_verifier.__main__ import main; "
    code += "assert main(sys.argv[1:]) == 0; "
    code += "assert not {'numpy', 'cvxpy', 'narwhals'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)


def test_the_file_says_what_it_proves() -> None:
    assert document_of("reverse")["program"] == {
        "kind": "water", "units": "bits", "gains": None,
        "variances": [4.0, 1.5, "1/3", 0.25], "budget": "5/4",
    }  # fmt: skip
    lines = "\n".join(stated(document_of("reverse")))
    assert "minimised: information I(X; X^), in bits" in lines
    assert "X of 4 independent Gaussian variables, of variance 0.25 to 4" in lines
    assert "trace of Sigma <= 1.25" in lines
    lines = "\n".join(stated(document_of("box")))
    assert "minimised: information I(W; X^), in nats" in lines
    assert "noise of variance 1/gain, gain 1/7 to 4" in lines


@pytest.mark.long
def test_many_distinct_gains_are_proved_from_below() -> None:
    """No document holds the exact level: 53 bits of denominator for each gain."""
    rng = np.random.default_rng(3)
    gains, caps = 10 ** rng.uniform(-2, 2, (2, 1500))
    problem = cpv.BoxWaterFilling(gains, caps, 0.25 * caps.sum(), units="nats")
    solution = problem.solve(accuracy="high")
    assert solution.status == "certified"
    assert solution.certificate.verify()
    with mpmath.workdps(60):
        offsets, tops = [[mpmath.mpf(v) for v in values.tolist()] for values in (gains, caps)]
        offsets = [1 / g for g in offsets]
        pairs = list(zip(offsets, tops, strict=True))
        low, high = mpmath.mpf(0), mpmath.mpf(1e5)
        for _ in range(260):
            level = (low + high) / 2
            x = [min(max(level - o, mpmath.mpf(0)), c) for o, c in pairs]
            low, high = (level, high) if sum(x) < float(problem.total) else (low, level)
        ratios = ((o + c) / (o + y) for (o, c), y in zip(pairs, x, strict=True))
        value = sum(map(mpmath.log, ratios)) / 2
        assert mpmath.mpf(solution.lower) <= value <= mpmath.mpf(solution.upper)
        near = mpmath.mpf(problem.level.numerator) / problem.level.denominator
        assert 0 < (level - near) / level < mpmath.mpf(2) ** -95
    assert solution.distortion.upper <= float(problem.total)
