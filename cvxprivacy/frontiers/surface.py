r"""Three quantities at once: the surface of rate, distortion and leakage, from both sides.

The releases of a problem, seen by its objective and by two of its constraints' left-hand sides,
fill a convex set

.. math:: P = \{(x, y, v) : f_1(Q) ≤ x,\; f_2(Q) ≤ y,\; f_0(Q) ≤ v \text{ for some release } Q\},

closed upwards (Sankar, Rajagopalan and Poor, IEEE TIFS 8(6), 2013, Def. 2, trace it for rate,
distortion and equivocation).  From inside: the hull of solved releases, as mixing them achieves
what lies between.  From outside: half-spaces w·p ≥ s that hold P, each proved by the multipliers
of min w·f(Q).  A facet of the hull that is farther than the tolerance from what is proved has the
next weight for its normal.

Answers are decided in exact arithmetic; a solver only says where to look.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, QhullError

from cvxprivacy import style
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, floats
from cvxprivacy.extras import pd
from cvxprivacy.files import whole_file
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.frontiers.curve import Number, rounded
from cvxprivacy.frontiers.explore import Progress, explore
from cvxprivacy.frontiers.membership import Membership
from cvxprivacy.frontiers.weighted import WeightedProblem
from cvxprivacy.frozen import Frozen
from cvxprivacy.results.solution import Solution
from cvxprivacy.validation import axes_of, integer, number, table, typed
from cvxprivacy_verifier.balls import UnprovableError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Surface", "Tessellation", "surface"]

SCHEMA = "cvxprivacy surface 1"


class Surface(Frozen):
    """What three quantities can be together, enclosed everywhere: see :func:`surface`.

    Attributes
    ----------
    names : (str, str)
        The two constraints.
    vertices : ndarray, shape (N, 3)
        (x, y, v) of solved releases: their hull, closed upwards, is achieved.
    planes : ndarray, shape (K, 4)
        Rows (w₁, w₂, w₀, s): every release has w₁ x + w₂ y + w₀ v ≥ s, by proof.
    units : ndarray, shape (3,)
        What counts alike in the three: a nat of information, the span of a distortion (of a
        Gaussian problem, the distortion of a release that tells nothing).
    band : float
        A point that no half-space excludes is achieved when its optimum is raised by at most this,
        and each bound by the same share of its unit; in the unit of the optimum, as of a
        :class:`Frontier` (computed in floating point, from what is proved).
    tol : float
        What was asked of the band; ``complete`` tells whether it was reached.
    complete : bool
        Whether the band that was asked was reached.
    solves : int
        Programs that were solved for it.

    Examples
    --------
    The least rate of a binary X at distortion 0.2 is 1 − h(0.2) = 0.278 bits, and its release leaks
    0.096 bits of W; a cap above that costs nothing.  At distortion 0.1 no release leaks less than
    0.173 bits:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.RateDistortionEquivocation(source, cpv.hamming(2), 0.2, max_leakage=0.1)
    >>> found = cpv.surface(problem, ("budget", "max_leakage"), tol=0.02)
    >>> round(found.inner(0.2, 0.15), 3), found.outer(0.1, 0.1)
    (0.278, inf)

    Each answer about a point (distortion, leakage, rate) has its certificate, here a mixture of
    solved releases that is as good in all three:

    >>> answer = found.contains((0.2, 0.15, 0.3))
    >>> answer, sum(answer.weights.values()) == 1
    ('inside', True)
    """

    def __init__(self, search: Tessellation, complete: bool) -> None:
        self._problem, self._records = search.problem, search.records
        self._vertex_records, self._plane_records = search.vertex_records, search.plane_records
        self.names, self.units = search.problem.names, search.problem.units
        self.vertices, self.planes = search.vertices, search.planes
        self.band, self.tol, self.solves = search.band, search.tol, search.solves
        self.complete = complete
        self._vertices = [[Fraction(x) for x in row] for row in self.vertices.tolist()]
        self._planes = [[Fraction(x) for x in row] for row in self.planes.tolist()]

    # ---- membership ----------------------------------------------------------------------

    def contains(self, point: Sequence[Real]) -> Membership:
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
        numbers = table(point, "point", remedy, axes=(1,), negative=True)
        if numbers.shape != (3,):
            raise InputError("point", f"shape {numbers.shape}", remedy)
        exact, near = [Fraction(x) for x in numbers.tolist()], floats(numbers)
        for k in np.argsort(self.planes[:, :3] @ near - self.planes[:, 3], kind="stable")[:3]:
            *w, s = self._planes[k]
            if _dot(w, exact) < s:
                return Membership("outside", plane=[*w, s])
        # the mixture that is better by the most units in all coordinates
        better = np.append(np.zeros(len(self.vertices)), -1.0)
        weights = _shares(better, np.hstack([self.vertices.T, self.units[:, None]]), near, 1)
        mixed = self._mixed(weights)
        if mixed is not None and all(a <= b for a, b in zip(mixed, exact, strict=True)):
            return Membership("inside", weights=weights)
        return Membership("within tol")

    def _mixed(self, weights: Mapping[int, Fraction]) -> list[Fraction] | None:
        """Return the exact mixture of vertices."""
        if not weights:
            return None
        columns = zip(*(self._vertices[i] for i in weights), strict=True)
        shares = list(weights.values())
        return [_dot(shares, column) for column in columns]

    # ---- the surface over its two bounds --------------------------------------------------

    def _best(self, x: Number, y: Number) -> tuple[dict[int, Fraction], Fraction] | None:
        """Return mixture weights that are allowed at (x, y) and the objective they achieve."""
        for less in (0.0, 1e-12, 1e-9):  # a little inside, where rounding is in the way
            limits = np.array([float(x), float(y)]) - less * self.units[:2]
            weights = _shares(self.vertices[:, 2], self.vertices[:, :2].T, limits)
            mixed = self._mixed(weights)
            if mixed is not None and mixed[0] <= Fraction(x) and mixed[1] <= Fraction(y):
                return weights, mixed[2]
        return None

    def inner(self, x: Real, y: Real) -> float:
        """Return what a mixture of solved releases achieves; +inf where none is known.

        Parameters
        ----------
        x, y : number
            Values of the two bounds, in the order of ``names``.
        """
        best = self._best(*_place(x, y))
        return math.inf if best is None else rounded(best[1], math.inf)

    def outer(self, x: Real, y: Real) -> float:
        """Return what no release undercuts, by proof; +inf where none is feasible, by proof.

        Parameters
        ----------
        x, y : number
            Values of the two bounds, in the order of ``names``.
        """
        place = [Fraction(number) for number in _place(x, y)]
        residuals = [(w0, s - _dot(w, place)) for *w, w0, s in self._planes]
        if any(residual > 0 for w0, residual in residuals if not w0):
            return math.inf
        return max(
            (rounded(residual / w0, -math.inf) for w0, residual in residuals if w0),
            default=-math.inf,
        )

    def solution_at(self, x: Real, y: Real) -> Solution:
        """Return what is known at (x, y) without solving again: release, enclosure, certificate.

        Parameters
        ----------
        x, y : number
            Values of the two bounds, in the order of ``names``.

        Raises
        ------
        InputError
            If no release is known there.
        """
        place = _place(x, y)
        best = self._best(*place)
        if best is None:
            where = "{:g}, {:g}".format(*map(float, place))
            raise InputError("x", f"no release is known at {where}", "pass larger bounds")
        weights, objective = best
        heights = self.planes[:, 3] - self.planes[:, :2] @ np.array(place, float)
        highest = int(np.argmax(np.where(self.planes[:, 2] > 0, heights, -math.inf)))
        solved = [(self._vertex_records[i], share) for i, share in weights.items()]
        most = rounded(objective, math.inf)
        return self._problem.mixed(place, solved, self._plane_records[highest], most)

    def release_at(self, x: Real, y: Real) -> Any:
        """Return a release within both bounds that achieves the inner surface or less.

        Parameters
        ----------
        x, y : number
            Values of the two bounds, in the order of ``names``.
        """
        return self.solution_at(x, y).release

    # ---- tables and pictures --------------------------------------------------------------

    def slice(self, count: int = 51, **fixed: float) -> pd.DataFrame:
        """Return both curves at one fixed bound, over the range of the other, a pandas frame.

        Parameters
        ----------
        count : int
            Rows.
        **fixed : float
            One of the two names with its value, as in ``surface.slice(budget=0.1)``.

        Raises
        ------
        InputError
            If not one bound is fixed, or it is none of the surface's.
        """
        if len(fixed) != 1 or next(iter(fixed)) not in self.names:
            remedy = f"fix one of {self.names[0]} and {self.names[1]}"
            raise InputError("fixed", f"{fixed!r}", remedy)
        ((name, value),) = fixed.items()
        free = 1 - self.names.index(name)
        along = self.vertices[:, free]
        places = np.linspace(float(along.min()), float(along.max()), count)
        pairs = [(value, z) if free else (z, value) for z in places.tolist()]
        curves = {"inner": self.inner, "outer": self.outer}
        values = {side: [curve(*pair) for pair in pairs] for side, curve in curves.items()}
        return pd.DataFrame({self.names[free]: places, **values})

    # ---- kept, shown, proved again -------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the surface with all its proofs as JSON, whole or not at all.

        The file holds releases and multipliers of the confidential attribute: it is readable by
        its owner only.

        Parameters
        ----------
        path : str or path
            Where it is written; the path is returned.
        """
        weighted = self._problem
        head: dict[str, Any] = {
            "schema": SCHEMA,
            "names": list(self.names),
            "accuracy": weighted.accuracy,
        }
        head |= {"tol": self.tol, "digest": weighted.digest, "records": self._records}
        with whole_file(path, private=True) as file:
            json.dump(head, file, ensure_ascii=False, allow_nan=False)
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], problem: Any) -> Surface:
        """Read what :meth:`save` wrote, and prove all of it again.

        Parameters
        ----------
        path : str or path
            The file.
        problem : ChannelProblem or CovarianceProblem
            The problem it is of, at any values of the two bounds.

        Raises
        ------
        InputError
            If the file is no surface, or another problem's, or a proof in it fails.
        """
        where = os.fspath(path)
        remedy = "pass a file that Surface.save wrote"
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if document["schema"] != SCHEMA:
                raise ValueError(f"its schema is {document['schema']!r}")
            first, second = document["names"]
            weighted = WeightedProblem(problem, (first, second), document["accuracy"])
            if weighted.digest != document["digest"]:
                other = f"{where!r} is of another one"
                raise InputError("problem", other, "pass the problem that the surface is of")
            records = document["records"]
            search = Tessellation(
                weighted, number(document["tol"], "tol", zero=False), len(records)
            )
            for record in records:
                proved = weighted.proved(record)
                if proved != record:
                    raise ValueError(f"the proof of weights {record['weights']} fails")
                search.take(record["weights"], {"record": proved})
        except OSError as error:
            problem_ = f"{where!r} cannot be read ({error.strerror})"
            raise InputError("path", problem_, "pass a file that exists") from None
        except (ValueError, LookupError, TypeError, ArithmeticError, UnprovableError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("path", f"{where!r} is no surface: {error}", remedy) from None
        return cls(search, search.band <= search.tol)

    def to_frame(self) -> pd.DataFrame:
        """Return the vertices as a pandas frame, the optimum in its last column."""
        last = "value_of_optimum" if "optimum" in self.names else "optimum"
        return pd.DataFrame(self.vertices, columns=[*self.names, last])

    def plot(self, ax: Axes | None = None, *, count: int = 25) -> Any:
        """Draw the inner surface and its vertices on 3-D axes, which are returned.

        Parameters
        ----------
        ax : mpl_toolkits.mplot3d.axes3d.Axes3D, optional
            A new figure's by default.
        count : int
            Places along each of the two bounds at which the surface is drawn.
        """
        import matplotlib.pyplot as plt

        axes: Any = plt.figure().add_subplot(projection="3d") if ax is None else axes_of(ax)
        if axes.name != "3d":
            raise InputError("ax", "axes of two dimensions", 'pass some of projection="3d"')
        low, (right, back) = self.vertices.min(axis=0), self._cropped()
        grid = []
        for x in np.linspace(low[0], right, count).tolist():
            least = self._least_second(x)
            if least is not None:
                row = np.linspace(least, max(least, back), count).tolist()
                grid.append([(x, y, self.inner(x, y)) for y in row])
        points = np.where(np.isfinite(grid), grid, np.nan)
        look: dict[str, Any] = {
            "cmap": style.MAP,
            "alpha": 0.75,
            "lw": 0.2,
            "edgecolor": style.GREY,
        }
        axes.plot_surface(*np.moveaxis(points, -1, 0), rstride=1, cstride=1, **look)
        shown = (self.vertices[:, :2] <= [right, back]).all(axis=1)
        axes.scatter(*self.vertices[shown].T, color=style.VERMILION, s=6, depthshade=False)
        names = [*(name.replace("_", " ") for name in self.names), f"${self._problem.latex}$"]
        units = [f" [{unit}]" if unit else "" for unit in self._problem.words]
        xlabel, ylabel, zlabel = map("".join, zip(names, units, strict=True))
        axes.set(xlabel=xlabel, ylabel=ylabel, zlabel=zlabel)
        return axes

    def _cropped(self, count: int = 9) -> tuple[float, float]:
        """Return bounds beyond which the optimum hardly falls: where a picture ends."""
        low, high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        ends = []
        for axis in (0, 1):
            across = np.linspace(low[1 - axis], high[1 - axis], count).tolist()

            def heights(end: float, axis: int = axis, across: list[float] = across) -> np.ndarray:
                places = [(end, other) if axis == 0 else (other, end) for other in across]
                return np.array([self.inner(*place) for place in places])

            lowest = heights(float(high[axis])) + self.tol
            left, right = float(low[axis]), float(high[axis])
            margin = 0.02 * (right - left)
            while right - left > margin:
                middle = (left + right) / 2
                flat = bool((heights(middle) <= lowest).all())
                left, right = (left, middle) if flat else (middle, right)
            ends.append(min(right + margin, float(high[axis])))
        return ends[0], ends[1]

    def _least_second(self, x: float) -> float | None:
        """Return about the least second bound at which a release is known."""
        weights = _shares(self.vertices[:, 1], self.vertices[:, :1].T, np.array([x]))
        mixed = self._mixed(weights)
        return None if mixed is None else float(mixed[1]) + 1e-9 * float(self.units[1])

    def __repr__(self) -> str:
        names = " × ".join(self.names)
        return f"Surface({names}, {len(self.vertices)} vertices, band {self.band:.1e})"


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _place(x: Real, y: Real) -> tuple[Number, Number]:
    return typed(x, "x", negative=True), typed(y, "y", negative=True)


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
    best = linprog(cost, A_ub=rows, b_ub=limits, A_eq=[total], b_eq=[1.0], bounds=bounds).x
    if best is None:
        return {}
    positive = {i: Fraction(w) for i, w in enumerate(best[:size].tolist()) if w > 0}
    mass = sum(positive.values(), Fraction(0))
    return {i: w / mass for i, w in positive.items()}


def surface(
    problem: ChannelProblem | CovarianceProblem,
    parameters: tuple[str, str],
    *,
    tol: float = 1e-2,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    accuracy: str = "default",
    max_solves: int = 1000,
) -> Surface:
    """Enclose the surface of an optimum over two of its right-hand sides.

    Parameters
    ----------
    problem : ChannelProblem or CovarianceProblem
        Its own values of the two bounds do not matter.
    parameters : (str, str)
        Names of two constraints, such as ``("budget", "max_leakage")``.
    tol : float
        Distance of the two surfaces in the unit of the optimum, as of :func:`frontier`: what no
        proof excludes is achieved when the optimum is raised by it, and both bounds by the same
        share of their units.
    n_jobs : int, optional
        Workers, as of :func:`frontier`.
    checkpoint : path, optional
        A file to which each solved point is appended, as of :func:`frontier`.
    progress : bool or callable
        Whom to tell of each solve, as of :func:`frontier`.
    accuracy : {"default", "high"}
        Of each solve, as of ``solve``.
    max_solves : int
        After so many the surface is returned as it is, with a warning.

    Returns
    -------
    Surface
        Also after an interrupt (Ctrl-C), with what is proved so far.

    Raises
    ------
    InfeasibleError
        If nothing is feasible, whatever the two bounds are.
    CertificationError
        If no release was found, and it is not proved that there is none.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.RateDistortionEquivocation(source, cpv.hamming(2), 0.2, max_leakage=0.1)
    >>> found = cpv.surface(problem, ("budget", "max_leakage"), tol=0.02)
    >>> found.complete, found.band <= 0.02, found.units.round(3).tolist()
    (True, True, [1.0, 1.443, 1.443])
    """
    names = tuple(parameters) if isinstance(parameters, Iterable) else ()
    if isinstance(parameters, str) or len(names) != 2 or names[0] == names[1]:
        remedy = 'pass the names of two constraints, such as ("budget", "max_leakage")'
        raise InputError("parameters", f"{parameters!r}", remedy, value=parameters)
    weighted = WeightedProblem(problem, (names[0], names[1]), accuracy)
    limit = integer(max_solves, "max_solves", least=3)
    search = Tessellation(weighted, number(tol, "tol", zero=False), limit)
    finished = explore([search], n_jobs=n_jobs, checkpoint=checkpoint, progress=progress)
    if finished and not search.vertex_records:
        weighted.refuse_nothing()
    result = Surface(search, finished and search.band <= search.tol)
    if not result.complete:
        why = f"stopped after {result.solves} solves" if finished else "interrupted"
        message = f"{why}: the band is {result.band:.2e}, asked was {result.tol:.2g}"
        warnings.warn(message, stacklevel=2)
    return result


# ---- facets of the hull -------------------------------------------------------------------


AXES = np.eye(3).tolist()


class Tessellation:
    """The search for one surface: the hull's facets, the widest gaps first.

    ``vertices``, shape (N, 3), is what solved releases achieve; ``planes``, shape (K, 4), has
    proved half-spaces w·p ≥ s as rows (w, s); each row has a record.
    """

    def __init__(self, problem: WeightedProblem, tol: float, max_solves: int) -> None:
        self.problem, self.tol, self.max_solves = problem, tol, max_solves
        self.work, self.digest = problem.solve, problem.digest
        self.records: list[dict[str, Any]] = []
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
        self.records.append(record)
        if record["point"] is not None:
            self.vertex_records.append(record)
            self.vertices = np.vstack([self.vertices, record["point"]])
        if record["support"] != "-inf":
            self.plane_records.append(record)
            self.planes = np.vstack([self.planes, [*record["weights"], record["support"]]])
        self._gaps = None

    @property
    def share(self) -> float:
        """About how much is done: facets grow as 1/tol."""
        return self.tol / max(self.band, self.tol)

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
        """Return each facet's distance from what is proved, and its normal.

        It is measured along the three units, and told in the unit of the optimum.

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
                gaps.append((gap * float(units[2]), w.tolist()))
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
