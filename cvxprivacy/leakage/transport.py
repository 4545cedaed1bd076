"""Earth mover's distance between posterior and prior, by a ground distance between values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats as exact_floats, over, written
from cvxprivacy.leakage.base import Leakage
from cvxprivacy.validation import table
from cvxprivacy.verifier.transport import plan

__all__ = ["EarthMover"]


class EarthMover(Leakage):
    """The least cost of moving the posterior to the prior, averaged over released letters.

    F(J) is the optimum of min Σ ρ(v, w) T(v, w) over plans T ≥ 0 that take J to π q.  As a bound
    for every released letter it is the t-closeness of Li, Li and Venkatasubramanian, *t-Closeness:
    Privacy Beyond k-Anonymity and ℓ-Diversity*, ICDE 2007, §5.

    Parameters
    ----------
    ground : "ordered", "equal" or array_like, shape (|W|, |W|)
        ρ: abs(i − j)/(|W| − 1) for values in their order, 1 between any two different ones (total
        variation), or a table with zeros on its diagonal.  In a table, values without mass count.
    """

    kind = "transport"
    meaning = "the mean share of ground distance by which the law of W moves when x̂ is seen"

    def __init__(self, ground: str | npt.ArrayLike = "ordered") -> None:
        remedy = 'pass "ordered", "equal" or a table (|W|, |W|) of numbers ≥ 0, 0 on its diagonal'
        self.ground: str | Exact
        self._fitted: Exact | None = None
        if isinstance(ground, str):
            if ground not in ("ordered", "equal"):
                raise InputError("ground", f"{ground!r} is unknown", remedy, value=ground)
            self.ground = ground
            return
        self.ground = table(ground, "ground", remedy, axes=(2,))
        if self.ground.shape[0] != self.ground.shape[1]:
            raise InputError("ground", f"shape {self.ground.shape}", remedy)
        for i, own in enumerate(self.ground.diagonal()):
            if own:
                raise InputError("ground", f"{own!r} is not 0", remedy, where=(i, i), value=own)

    def fitted(self, values: Sequence[Hashable], support: Sequence[int]) -> Self:
        size, at = len(values), np.asarray(support)
        if isinstance(self.ground, str):
            apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
            if self.ground == "equal":
                apart = np.sign(apart)
            whole = over(apart, max(size - 1, 1) if self.ground == "ordered" else 1)
        else:
            whole = self.ground
        if len(whole) != size:
            problem = f"ground distances of {len(whole)} values, where W has {size}"
            raise InputError("ground", problem, f"pass a table ({size}, {size})")
        return self._with(_fitted=whole[np.ix_(at, at)])

    @property
    def name(self) -> str:
        how = f" ({self.ground})" if isinstance(self.ground, str) else ""
        return f"earth mover's distance{how}"

    @property
    def label(self) -> str:
        return self.name if isinstance(self.ground, str) else super().label

    @property
    def symbol(self) -> str:
        return r"\mathrm{EMD}"

    def data(self) -> dict[str, Any]:
        rows = self._table.tolist()
        return {"kind": self.kind, "ground": [[written(c) for c in row] for row in rows]}

    @property
    def _table(self) -> Exact:
        if self._fitted is None:
            raise TypeError("ground distances of no W in particular: use .fitted(values, support)")
        return self._fitted

    @property
    def _floats(self) -> FloatArray:
        return exact_floats(self._table)

    @property
    def separates(self) -> bool:
        return bool((self._floats + np.eye(len(self._floats)) > 0).all())

    @property
    def span(self) -> float:
        apart = self._floats[self._floats > 0]
        return float(np.median(apart)) if apart.size else 1.0

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        return (self.inside(self.scores(joint, reference), reference) * joint).sum(axis=0)

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        costs = self._floats.tolist()
        prices = [
            plan(column.tolist(), (column.sum() * reference).tolist(), costs)[1]
            for column in joint.T
        ]
        return np.array(prices).T

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        """Return f + Σ π g, g the most that f(v) + g(w) ≤ ρ(v, w) allows."""
        g = (self._floats[:, :, None] - scores[:, None, :]).min(axis=0)
        found: FloatArray = scores + reference @ g
        return found

    def cone(self, x: Any, mass: Any, reference: FloatArray) -> tuple[Any, Mapping[str, Any]]:
        import cvxpy as cp

        size = len(reference)
        one, eye = np.ones((1, size)), np.eye(size)
        moved = cp.Variable((size * size, x.shape[1]), nonneg=True)
        ends = {
            "from": np.kron(eye, one) @ moved == x,
            "to": np.kron(one, eye) @ moved == reference[:, None] @ mass,
        }
        return self._floats.reshape(-1) @ moved, ends

    def __repr__(self) -> str:
        if isinstance(self.ground, str):
            return f"EarthMover({self.ground!r})"
        return f"EarthMover(ground of {len(self.ground)} values)"
