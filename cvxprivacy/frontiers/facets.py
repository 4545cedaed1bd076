"""Where a surface is still unknown: facets of the hull of what is achieved, and what is proved.

For every weight w ≥ 0 the program min Σ w_i f_i(Q) has no infeasible corner; its release is a
vertex of the hull, and its multipliers prove a half-space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, QhullError

from cvxprivacy.frontiers.weighted import WeightedProblem

__all__ = ["Tessellation"]

AXES = np.eye(3).tolist()


class Tessellation:
    """The search for one surface: the hull's facets, the widest gaps first.

    ``vertices``, shape (N, 3), is what solved releases achieve; ``planes``, shape (K, 4), has
    proved half-spaces w·p ≥ s as rows (w, s); each row has a record.
    """

    def __init__(self, problem: WeightedProblem, tol: float, max_solves: int) -> None:
        self.problem, self.tol, self.max_solves = problem, tol, max_solves
        self.work, self.digest = problem.solve, problem.digest
        self.vertex_records: list[dict[str, Any]] = []
        self.plane_records: list[dict[str, Any]] = []
        self.vertices, self.planes = np.empty((0, 3)), np.empty((0, 4))
        self._done: set[str] = set()
        self._gaps: list[tuple[float, list[float]]] | None = None

    @property
    def solves(self) -> int:
        """Programs that were solved."""
        return len(self._done)

    def next_tasks(self) -> list[list[float]]:
        """Return the axes, then the normals of the facets that are too far from what is proved."""
        first = [task for task in AXES if json.dumps(task) not in self._done]
        if first or not len(self.vertices):
            return first
        wide = [weights for gap, weights in self._facets() if gap > self.tol]
        room = max(0, self.max_solves - self.solves)
        return [task for task in wide if json.dumps(task) not in self._done][:room]

    def take(self, task: Sequence[float], result: dict[str, Any]) -> None:
        """Take a vertex and a half-space."""
        record = result["record"]
        self._done.add(json.dumps(list(task)))
        if record["point"] is not None:
            self.vertex_records.append(record)
            self.vertices = np.vstack([self.vertices, record["point"]])
        if record["support"] != "-inf":
            self.plane_records.append(record)
            self.planes = np.vstack([self.planes, [*record["weights"], record["support"]]])
        self._gaps = None

    def progress(self) -> str:
        """Return the number of solves, in a line."""
        names = " × ".join(self.problem.names)
        return f"{names}: {self.solves} solves, tolerance {self.tol:.2g}"

    @property
    def band(self) -> float:
        """The widest gap; infinite before the three axes are solved."""
        if len(self.planes) < 3 or not len(self.vertices):
            return math.inf
        return max((gap for gap, _ in self._facets()), default=0.0)

    def _facets(self) -> list[tuple[float, list[float]]]:
        """Return each facet's distance from what is proved, in units along (1, 1, 1), and normal.

        What is proved of a normal w is the best Σ μ_k s_k with Σ μ_k w_k = w, μ ≥ 0.
        """
        if self._gaps is None:
            planes, vertices, units = self.planes, self.vertices, self.problem.units
            gaps = []
            for w in _normals(vertices / units) / units:
                w = w / (w[2] or w.max())
                best = linprog(-planes[:, 3], A_eq=planes[:, :3].T, b_eq=w)
                support = -math.inf if best.fun is None else -best.fun
                gap = (float((vertices @ w).min()) - support) / float(w @ units)
                gaps.append((gap, w.tolist()))
            self._gaps = sorted(gaps, key=lambda pair: (-pair[0], pair[1]))
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
