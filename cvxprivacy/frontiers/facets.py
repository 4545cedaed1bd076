"""Where a surface is still unknown: facets of the hull of what is achieved, and what is proved.

For every weight w ≥ 0 the program min Σ w_i f_i(Q) has no infeasible corner; its release is a
vertex of the hull, and its multipliers prove a half-space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, QhullError

from cvxprivacy.certificates import verify
from cvxprivacy.certificates.balls import ceil, floor
from cvxprivacy.errors import InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frontiers.ends import refuse_nothing
from cvxprivacy.frontiers.family import CONVEX, Family, digest
from cvxprivacy.programs import Dual, Term
from cvxprivacy.solvers.driver import solve

__all__ = ["Tessellation", "Weighted"]


class Weighted:
    """What a worker does: minimise a weighted sum, and prove a half-space."""

    def __init__(self, problem: ChannelProblem, names: tuple[str, str], accuracy: str) -> None:
        both = [Family(problem, name, accuracy) for name in names]
        for name, family in zip(names, both, strict=True):
            if family.kind != CONVEX or not isinstance(problem, ChannelProblem):
                remedy = "use two constraints of a discrete problem with a bound of their own"
                raise InputError("parameter", f"{name!r} spans no surface", remedy)
        self.names, self.accuracy = names, accuracy
        self.problem = both[0].problem
        program = self.problem.program
        self.axes = [program.rows[name].term for name in names]
        self.free = replace(
            program,
            rows={k: row for k, row in program.rows.items() if k not in names},
            terms=dict(zip("xyv", [*self.axes, program.objective], strict=True)),
        )
        bounds = {name: replace(program.rows[name], bound=Fraction(0)) for name in names}
        self.zero = replace(program, rows={**program.rows, **bounds})
        self.digest = digest([*names, accuracy, self.zero.to_dict()])

    def work(self, task: Sequence[float]) -> dict[str, Any]:
        """Minimise x w₁ + y w₂ + v w₀ over all releases, w₀ being 0 or 1."""
        first, second, last = task
        parts = [w * term for w, term in zip((first, second), self.axes, strict=True) if w]
        parts += [self.free.objective] if last else []
        objective = parts[0]
        for part in parts[1:]:
            objective = objective + part
        outcome = solve(replace(self.free, objective=objective), accuracy=self.accuracy)
        found = outcome.certificate
        if found.status == "infeasible":
            refuse_nothing(self.problem, found, self.names)
        record: dict[str, Any] = {"weights": list(task), "support": "-inf", "point": None}
        if found.dual is not None:
            multipliers = {**found.dual.multipliers, **dict(zip(self.names, task, strict=False))}
            dual = Dual(found.dual.scores, multipliers, found.dual.auxiliaries, int(last))
            record["dual"] = dual.cleaned(self.zero).to_dict()
            proof = verify.proof_of(self.zero.to_dict())
            support = floor(proof.lower(record["dual"]))
            record["support"] = support if math.isfinite(support) else "-inf"
        if found.primal is not None:
            record["primal"] = found.primal.to_dict()
            evaluation = verify.proof_of(self.free.to_dict()).upper(record["primal"])
            record["point"] = [ceil(evaluation.terms[k]) for k in "xyv"]
        return {"record": record, "solves": 1}


class Tessellation:
    """The search for one surface: the hull's facets, the widest gaps first."""

    def __init__(self, worker: Weighted, tol: float, max_solves: int) -> None:
        self.worker, self.tol, self.max_solves = worker, tol, max_solves
        self.records: list[dict[str, Any]] = []
        self.done: set[str] = set()
        program = worker.problem.program
        terms: list[Term] = [*worker.axes, program.objective]
        self.units = np.array([replace(program, objective=term).scale for term in terms])
        self._gaps: list[tuple[float, list[float]]] | None = None

    @property
    def solves(self) -> int:
        return len(self.records)

    @property
    def vertices(self) -> np.ndarray:
        """What solved releases achieve, shape (N, 3)."""
        found = [record["point"] for record in self.records if record["point"] is not None]
        return np.array(found, float).reshape(-1, 3)

    @property
    def planes(self) -> np.ndarray:
        """Proved half-spaces w·p ≥ s as rows (w, s), shape (K, 4)."""
        found = [[*r["weights"], r["support"]] for r in self.records if r["support"] != "-inf"]
        return np.array(found, float).reshape(-1, 4)

    def wanted(self) -> list[list[float]]:
        first = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        first = [task for task in first if json.dumps(task) not in self.done]
        if first or not len(self.vertices):
            return first
        room = max(0, self.max_solves - self.solves)
        return [w for gap, w in self.gaps() if gap > self.tol and json.dumps(w) not in self.done][
            :room
        ]

    def take(self, task: Sequence[float], result: dict[str, Any]) -> None:
        self.done.add(json.dumps(list(task)))
        self.records.append(result["record"])
        self._gaps = None

    def said(self) -> str:
        names = " × ".join(self.worker.names)
        return f"{names}: {self.solves} solves, tolerance {self.tol:.2g}"

    @property
    def band(self) -> float:
        """The widest gap; infinite before the three axes are solved."""
        if len(self.planes) < 3 or not len(self.vertices):
            return math.inf
        return max((gap for gap, _ in self.gaps()), default=0.0)

    def gaps(self) -> list[tuple[float, list[float]]]:
        """Return each facet's distance from what is proved, in units along (1, 1, 1), and normal.

        What is proved of a normal w is the best Σ μ_k s_k with Σ μ_k w_k = w, μ ≥ 0.
        """
        if self._gaps is None:
            planes, vertices = self.planes, self.vertices
            found = []
            for w in _normals(vertices / self.units) / self.units:
                w = w / (w[2] or w.max())
                best = linprog(-planes[:, 3], A_eq=planes[:, :3].T, b_eq=w)
                support = -math.inf if best.fun is None else -best.fun
                gap = (float((vertices @ w).min()) - support) / float(w @ self.units)
                found.append((gap, w.tolist()))
            self._gaps = sorted(found, key=lambda pair: (-pair[0], pair[1]))
        return self._gaps


def _normals(vertices: np.ndarray) -> np.ndarray:
    """Return the inner normals w ≥ 0 of the hull of points that is closed upwards.

    The upward directions are far points; Qhull's facets that face down are those of the set.
    """
    origin = vertices.min(axis=0)
    spread = np.unique((vertices - origin).round(12), axis=0)
    far = [spread + 100.0 * (1.0 + spread.max()) * e for e in np.eye(3)]
    try:
        hull = ConvexHull(np.vstack([spread, *far]))
    except QhullError:
        return np.empty((0, 3))
    normals = -hull.equations[:, :3]
    normals = normals[(normals > -1e-9).all(axis=1)]
    normals = np.where(normals < 1e-9 * normals.max(axis=1, keepdims=True), 0.0, normals)
    return np.unique(normals.round(12), axis=0)
