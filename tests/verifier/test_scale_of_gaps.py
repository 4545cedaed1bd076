"""By what a gap is judged: no forbidden move and no offset makes a wide enclosure look narrow."""

from __future__ import annotations

import time

import pytest

from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import UnaffordableError, UnprovableError
from tests.primals import INFORMATION
from tests.second_checker import check

DUAL = {"objective": 1, "scores": {}, "multipliers": {}, "auxiliaries": {}}


def term(cost=None, weights=None):
    zero = [0, 0]
    return {"weights": weights or {}, "cost": cost, "cost_radius": 0, "constant": zero}


def program(law, outputs, objective, **more):
    data = {"kind": "channel", "units": "nats", "law": law, "outputs": outputs}
    empty = {"views": {}, "rows": {}, "lower": None, "upper": None, "auxiliaries": {}, "terms": {}}
    return {**data, "objective": objective, **empty, **more}


def document(data, outputs):
    primal = {"outputs": [[y] for y in outputs], "numerators": [[1]] * len(outputs)}
    body = {"schema": verify.SCHEMA, "software": "", "accuracy": "default", "table": None}
    body |= {"program": data, "primal": {**primal, "denominator": 1}, "dual": DUAL}
    proved = verify.recompute(body)
    claim = {name: proved[name] for name in ("status", "lower", "upper", "terms")}
    body["claim"] = claim
    body["sha256"] = verify.digest(body)
    return body


@pytest.mark.parametrize("cap", [0, 0.0, "0", "0/7"])
def test_a_forbidden_cheap_move_is_forbidden_however_it_is_typed(cap):
    data = program([[1.0]], 3, term([[-1e9, 0, 1]]), upper=[[cap, 1, 1]])
    summary = document(data, [2])
    assert summary["claim"]["status"] == "loose"
    assert not verify.disagreements(summary)
    assert check(summary)[2] == "loose"


@pytest.mark.parametrize("parts", [False, True])
def test_offsets_that_cancel_between_letters_absorb_nothing(parts):
    big = 2.0**100
    cost = [[big, big], [4e6, 4e6], [-big, -big], [-4e6, -4e6], [0, 1e12]]
    if parts:
        cost = {"parts": [{"table": cost, "rows": [0, 1, 2, 3, 4], "columns": [0, 1]}]}
    views = {"V": {"labels": [[0, 1, 2, 3, 4]], "reference": None, "measure": INFORMATION}}
    data = program([[1, 1, 1, 1, 1]], 2, term(cost, {"V": 1}), views=views)
    summary = document(data, [0, 1, 0, 1, 0])
    assert summary["claim"]["upper"] - summary["claim"]["lower"] > 0.6
    assert summary["claim"]["status"] == "loose"


def test_many_parts_of_many_rows_are_refused_at_once():
    n, rows = 5400, 100
    part = {"table": [[i] for i in range(rows)], "rows": [i % rows for i in range(n)]}
    part["columns"] = [0] * n
    data = program([[1] * n], n, term({"parts": [part] * 33}))
    start = time.process_time()
    with pytest.raises(UnaffordableError):
        verify.proof_of(data)
    assert time.process_time() - start < 1.0
    few = program([[1] * 256], 1900, term({"parts": [{**part, "rows": [0] * 256}] * 150}))
    few["objective"]["cost"]["parts"] = [
        {**p, "columns": [0] * 1900} for p in few["objective"]["cost"]["parts"]
    ]
    with pytest.raises(UnaffordableError):
        verify.proof_of(few)


def test_auxiliaries_of_many_outputs_are_refused():
    ratio = {str(i): {"kind": "ratio", "bound": [2, 0]} for i in range(14)}
    with pytest.raises(UnaffordableError):
        verify.proof_of(program([[1]], 1_999_950, term(), auxiliaries=ratio))


def test_whole_numbers_of_one_hash_are_refused_at_once():
    table = [[k * (2**61 - 1) for k in range(1, 40_001)]]
    part = {"table": table, "rows": [0], "columns": [0, 1]}
    with pytest.raises(UnprovableError, match="stands as text"):
        verify.proof_of(program([[1]], 2, term({"parts": [part]})))


@pytest.mark.parametrize("mass", [1e-320, 1e-199, 1e-10, 1.0, 1e10, 8.5e307])
@pytest.mark.parametrize("costs", [(0.0, 1e-150), (3.0, 3.0 + 1e-10), (1e10, 2e10)])
def test_masses_of_any_size_leave_the_step_as_it_is(mass, costs):
    """Times a mass a cost may leave the range of floats: its step is no less for that."""
    low, high = costs
    data = program([[mass] * 2], 2, term([[low, high], [high, low]]))
    summary = document(data, [1, 0])  # the worst moves
    assert summary["claim"]["status"] == "loose"
    assert not verify.disagreements(summary)
    unit = verify.proof_of(data).unit(high)
    assert unit == pytest.approx(high - low, rel=1e-6)


@pytest.mark.parametrize("costs", [("1/1" + "0" * 400, 0.0), ("1" + "0" * 400, 0.0)])
def test_costs_that_no_float_tells_apart_have_no_scale(costs):
    data = program([[1.0, 1.0]], 2, term([[costs[1], costs[0]], [costs[0], costs[1]]]))
    with pytest.raises(UnprovableError, match="beyond the range of floats"):
        verify.proof_of(data).unit(1.0)
