"""Solvers that fail, and the threads that they may use."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import cvxprivacy as cpv
from cvxprivacy.solvers import driver
from cvxprivacy_verifier import verify
from tests.formulations.gaussian import E, Q, S


@pytest.mark.parametrize(
    "left", [math.nan, math.inf, 1e300, None, "shape"], ids=["nan", "inf", "huge", "none", "shape"]
)
@pytest.mark.parametrize("method", ["conic", "auto"])
def test_whatever_a_solver_leaves_is_survived(
    monkeypatch: pytest.MonkeyPatch, left: Any, method: str
) -> None:
    def solve(self: cp.Problem, **options: Any) -> None:
        for one in [*self.variables(), *(v for c in self.constraints for v in c.dual_variables)]:
            shape = (2, 5) if left == "shape" else one.shape
            one.save_value(
                None if left is None else np.full(shape, 0.0 if left == "shape" else left)
            )

    monkeypatch.setattr(cp.Problem, "solve", solve)

    def path(white: Any, *others: Any) -> Any:
        multipliers = {"budget": math.nan}
        whitened = np.full((white.program.n,) * 2, np.nan)
        yield SimpleNamespace(
            number=0,
            gap=math.nan,
            whitened=whitened,
            centre=whitened,
            multipliers=lambda: multipliers,
        )

    monkeypatch.setattr("cvxprivacy.solvers.covariance.stages.central_path", path)
    source = S(np.eye(4) + 0.5, sensitive=[0], key=[1, 2, 3])
    problems: list[Callable[[], Any]] = [
        lambda: Q(source, 0.5),
        lambda: Q(source, 0.5, cap=np.eye(3)),
        lambda: Q(source, {"V1": 0.1, "V2": 0.2}),
        lambda: E(source, 0.5, max_leakage=0.3),
        lambda: E(source, 0.5, minimize="leakage", max_rate=1.0),
    ]
    for problem in problems:
        solution = problem().solve(method=method, certify=False)
        assert solution.status in ("loose", "uncertified", "certified")
        assert -math.inf <= solution.lower <= solution.upper <= math.inf


def test_a_solve_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> dict[str, int]:
        pools = (p for p in threadpool_info() if p["user_api"] == "blas")
        return {p["filepath"]: p["num_threads"] for p in pools}

    recorded, information = [], verify.proof_of

    def proof_of(program: Any) -> Any:
        recorded.append(threads())
        return information(program)

    source = cpv.DiscreteSource(np.eye(2) / 2)
    for _ in range(2):  # the second time with all libraries loaded
        with threadpool_limits(2, user_api="blas"):
            before = threads()
            monkeypatch.setattr(verify, "proof_of", proof_of)
            Q(S.scalar(0.5), 0.5).solve()
            cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1).solve()
            with pytest.raises(cpv.InputError):
                driver.solve_gaussian(Q(S.scalar(0.5), 0.5, cap=[[1]]).program, method="structured")
            monkeypatch.undo()
            assert {path: threads()[path] for path in before} == before
    assert 2 in before.values()  # some were built for one thread
    assert all(outcome[path] == 1 for outcome in recorded for path in before if path in outcome)
    assert len(recorded) >= 4
