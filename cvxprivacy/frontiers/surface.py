r"""Three quantities at once: the surface of rate, distortion and leakage, from both sides.

The releases of a problem, seen by its objective and by two of its constraints' left-hand sides,
fill a convex set

.. math:: P = \{(x, y, v) : f_1(Q) ≤ x,\; f_2(Q) ≤ y,\; f_0(Q) ≤ v \text{ for some release } Q\},

closed upwards (Sankar, Rajagopalan and Poor, IEEE TIFS 8(6), 2013, Defs. 3–5, trace it for rate,
distortion and equivocation).  From inside: the hull of solved releases, as mixing them achieves
what lies between.  From outside: half-spaces w·p ≥ s that hold P, each proved by the multipliers
of min w·f(Q).  A facet of the hull that is farther than the tolerance from what is proved has the
next weight for its normal.

Answers are decided in exact arithmetic; a solver only says where to look.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog

from cvxprivacy.errors import InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frontiers.curve import rounded
from cvxprivacy.frontiers.ends import refuse_nothing
from cvxprivacy.frontiers.explore import explore
from cvxprivacy.frontiers.facets import Tessellation, Weighted
from cvxprivacy.frontiers.mixing import mixture
from cvxprivacy.proving.certificate import Ends
from cvxprivacy.proving.stored import channel, multipliers
from cvxprivacy.validation import array, number, whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Membership", "Surface", "surface"]

Triple = tuple[float, float, float]


class Membership(str):
    """``"inside"``, ``"outside"`` or ``"within tol"``, with its certificate.

    Attributes
    ----------
    weights : dict of int to Fraction
        Inside: of the vertices whose mixture is as good as the point in all three coordinates.
    plane : (Fraction, Fraction, Fraction, Fraction) or None
        Outside: (w, s) with w·p < s, where every release has w·p ≥ s.
    """

    weights: dict[int, Fraction]
    plane: tuple[Fraction, ...] | None

    def __new__(
        cls,
        answer: str,
        weights: Mapping[int, Fraction] | None = None,
        plane: Sequence[Fraction] | None = None,
    ) -> Membership:
        self = super().__new__(cls, answer)
        self.weights = dict(weights or {})
        self.plane = None if plane is None else tuple(plane)
        return self


class Surface:
    """What three quantities can be together, enclosed everywhere.

    Attributes
    ----------
    names : (str, str)
        The two constraints.
    vertices : ndarray, shape (N, 3)
        (x, y, v) of solved releases: their hull, closed upwards, is achieved.
    planes : ndarray, shape (K, 4)
        Rows (w₁, w₂, w₀, s): every release has w₁ x + w₂ y + w₀ v ≥ s, by proof.
    units : ndarray, shape (3,)
        A nat of information, the span of a distortion.
    band : float
        A point that no half-space excludes is achieved when each coordinate is raised by at most
        this many of its units (computed in floating point, from what is proved).
    complete : bool
    """

    def __init__(self, search: Tessellation, complete: bool) -> None:
        self._worker, self.names = search.worker, search.worker.names
        self._records = [r for r in search.records if r["point"] is not None]
        self._duals = [r for r in search.records if r["support"] != "-inf"]
        self.vertices, self.planes, self.units = search.vertices, search.planes, search.units
        self.band, self.tol, self.solves, self.complete = (
            search.band, search.tol, search.solves, complete,
        )  # fmt: skip
        self._exact = [[Fraction(x) for x in row] for row in self.vertices.tolist()]
        self._proved = [[Fraction(x) for x in row] for row in self.planes.tolist()]

    # ---- membership ----------------------------------------------------------------------

    def contains(self, point: Sequence[float]) -> Membership:
        """Tell whether a release has at most these two constraint values and this objective.

        Parameters
        ----------
        point : (x, y, v)
            In the order of ``names``, then the objective.

        Returns
        -------
        Membership
            A text with the certificate of the answer: mixture weights, or a half-space.
        """
        remedy = f"pass three numbers: {self.names[0]}, {self.names[1]} and the objective"
        p = array(point, "point", remedy, axes=(1,), negative=True)
        if p.shape != (3,):
            raise InputError("point", f"shape {p.shape}", remedy)
        exact = [Fraction(x) for x in p.tolist()]
        for k in np.argsort(self.planes[:, :3] @ p - self.planes[:, 3], kind="stable")[:3]:
            *w, s = self._proved[k]
            if _dot(w, exact) < s:
                return Membership("outside", plane=[*w, s])
        # the mixture that is better by the most units in all coordinates
        better = np.append(np.zeros(len(self.vertices)), -1.0)
        weights = _shares(better, np.hstack([self.vertices.T, self.units[:, None]]), p, 1)
        mixed = self._mixed(weights)
        if mixed is not None and all(a <= b for a, b in zip(mixed, exact, strict=True)):
            return Membership("inside", weights=weights)
        return Membership("within tol")

    def _mixed(self, weights: Mapping[int, Fraction]) -> list[Fraction] | None:
        """Return the exact mixture of vertices."""
        if not weights:
            return None
        columns = zip(*(self._exact[i] for i in weights), strict=True)
        shares = list(weights.values())
        return [_dot(shares, column) for column in columns]

    # ---- the surface over its two bounds --------------------------------------------------

    def _best(self, x: float, y: float) -> tuple[dict[int, Fraction], Fraction] | None:
        """Return mixture weights that are allowed at (x, y) and the objective they achieve."""
        exact, place = (Fraction(x), Fraction(y)), np.array([x, y])
        for less in (0.0, 1e-12, 1e-9):  # a little inside, where rounding is in the way
            limits = place - less * self.units[:2]
            weights = _shares(self.vertices[:, 2], self.vertices[:, :2].T, limits)
            mixed = self._mixed(weights)
            if mixed is not None and mixed[0] <= exact[0] and mixed[1] <= exact[1]:
                return weights, mixed[2]
        return None

    def inner(self, x: float, y: float) -> float:
        """Return what a mixture of solved releases achieves; +inf where none is known."""
        found = self._best(float(x), float(y))
        return math.inf if found is None else rounded(found[1], math.inf)

    def outer(self, x: float, y: float) -> float:
        """Return what no release undercuts, by proof; +inf where none is feasible, by proof."""
        best = Fraction(-(10**18))
        for w1, w2, w0, s in self._proved:
            left = s - w1 * Fraction(float(x)) - w2 * Fraction(float(y))
            if w0 == 0 and left > 0:
                return math.inf
            if w0:
                best = max(best, left / w0)
        return rounded(best, -math.inf)

    def solution_at(self, x: float, y: float) -> Any:
        """Return what is known at (x, y) without solving again: release, enclosure, certificate."""
        found = self._best(float(x), float(y))
        if found is None:
            raise InputError("x", f"no release is known at {x:g}, {y:g}", "pass larger bounds")
        problem = self._worker.problem.at(**dict(zip(self.names, (x, y), strict=True)))
        primals = [(channel(self._records[i]["primal"]), w) for i, w in found[0].items()]
        tops = self.planes[:, 3] - self.planes[:, :2] @ np.array([x, y])
        tops = np.where(self.planes[:, 2] > 0, tops, -math.inf)
        best = multipliers(self._duals[int(np.argmax(tops))]["dual"])
        most = rounded(found[1], math.inf)
        return mixture(problem, self._worker.accuracy, primals, [best], most)

    def release_at(self, x: float, y: float) -> Any:
        """Return a release within both bounds that achieves the inner surface or less."""
        return self.solution_at(x, y).release

    # ---- tables and pictures --------------------------------------------------------------

    def slice(self, count: int = 51, **fixed: float) -> pd.DataFrame:
        """Return both curves at one fixed bound, over the range of the other.

        Parameters
        ----------
        count : int
            Rows.
        **fixed : float
            One of the two names: ``surface.slice(budget=0.1)``.
        """
        import pandas as pd

        if len(fixed) != 1 or next(iter(fixed)) not in self.names:
            remedy = f"fix one of {self.names[0]} and {self.names[1]}"
            raise InputError("fixed", f"{fixed!r}", remedy)
        ((name, value),) = fixed.items()
        at = self.names.index(name)
        along = self.vertices[:, 1 - at]
        other = np.linspace(float(along.min()), float(along.max()), count)
        pairs = [(value, z) if at == 0 else (z, value) for z in other.tolist()]
        return pd.DataFrame(
            {
                self.names[1 - at]: other,
                "inner": [self.inner(*pair) for pair in pairs],
                "outer": [self.outer(*pair) for pair in pairs],
            }
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the vertices as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.vertices, columns=[*self.names, "optimum"])

    def plot(self, ax: Axes | None = None, *, count: int = 25) -> Any:
        """Draw the inner surface and its vertices on 3-D axes."""
        import matplotlib.pyplot as plt

        ax_: Any = plt.figure().add_subplot(projection="3d") if ax is None else ax
        low, high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        grid: list[list[Triple]] = []
        for x in np.linspace(low[0], high[0], count).tolist():
            edge = self._edge(x)
            if edge is not None:
                row = np.linspace(edge, max(edge, float(high[1])), count).tolist()
                grid.append([(x, y, self.inner(x, y)) for y in row])
        drawn = np.array(grid)
        drawn = np.where(np.isfinite(drawn), drawn, np.nan)
        look: dict[str, Any] = {"cmap": "viridis", "alpha": 0.75, "lw": 0.2, "edgecolor": "#444444"}
        ax_.plot_surface(*np.moveaxis(drawn, -1, 0), rstride=1, cstride=1, **look)
        ax_.scatter(*self.vertices.T, color="#D55E00", s=6, depthshade=False)
        named = [name.replace("_", " ") for name in self.names]
        ordinate = f"${self._worker.problem.objective().latex}$"
        ax_.set(xlabel=named[0], ylabel=named[1], zlabel=ordinate)
        return ax_

    def _edge(self, x: float) -> float | None:
        """Return about the least second bound at which a release is known."""
        weights = _shares(self.vertices[:, 1], self.vertices[:, :1].T, np.array([x]))
        mixed = self._mixed(weights)
        return None if mixed is None else float(mixed[1]) + 1e-9 * float(self.units[1])

    def __repr__(self) -> str:
        names = " × ".join(self.names)
        return f"Surface({names}, {len(self.vertices)} vertices, band {self.band:.1e})"


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _shares(
    cost: np.ndarray, rows: np.ndarray, limits: np.ndarray, slacks: int = 0
) -> dict[int, Fraction]:
    """Return the cheapest weights of vertices with rows·weights ≤ limits, as rationals of sum one.

    They keep the limits up to rounding; none if nothing does.  The last ``slacks`` variables are
    no weights, but free.
    """
    size = len(cost) - slacks
    if not size:
        return {}
    total = np.repeat([1.0, 0.0], [size, slacks])
    bounds = [(0.0, None)] * size + [(None, None)] * slacks
    found = linprog(cost, A_ub=rows, b_ub=limits, A_eq=[total], b_eq=[1.0], bounds=bounds)
    if found.x is None:
        return {}
    kept = {i: Fraction(w) for i, w in enumerate(found.x[:size].tolist()) if w > 0}
    together = sum(kept.values(), Fraction(0))
    return {i: w / together for i, w in kept.items()}


def surface(
    problem: ChannelProblem,
    parameters: tuple[str, str],
    *,
    tol: float = 1e-2,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str], None] = False,
    accuracy: str = "default",
    max_solves: int = 1000,
) -> Surface:
    """Enclose the surface of an optimum over two of its right-hand sides.

    Parameters
    ----------
    problem : ChannelProblem
        Its own values of the two bounds do not matter.
    parameters : (str, str)
        Names of two constraints, such as ``("budget", "max_leakage")``.
    tol : float
        Distance of the two surfaces, in units of each quantity: a nat of information, the span
        of a distortion.
    n_jobs, checkpoint, progress, accuracy, max_solves
        As of :func:`frontier`.

    Returns
    -------
    Surface

    Raises
    ------
    InfeasibleError
        If nothing is feasible, whatever the two bounds are.
    CertificationError
        If no release was found, and it is not proved that there is none.
    """
    names = tuple(parameters)
    if len(names) != 2 or names[0] == names[1]:
        raise InputError("parameters", f"{parameters!r}", "pass the names of two constraints")
    worker = Weighted(problem, (names[0], names[1]), accuracy)
    limit = whole(max_solves, "max_solves", least=3)
    search = Tessellation(worker, number(tol, "tol", zero=False), limit)
    done = explore([search], n_jobs=n_jobs, checkpoint=checkpoint, progress=progress)
    if done and not len(search.vertices):
        refuse_nothing(problem, Ends(problem.program, accuracy).certificate())
    found = Surface(search, done and search.band <= search.tol)
    if not found.complete:
        why = f"stopped after {found.solves} solves" if done else "interrupted"
        message = f"{why}: the band is {found.band:.2e}, asked was {found.tol:.2g}"
        warnings.warn(message, stacklevel=2)
    return found
