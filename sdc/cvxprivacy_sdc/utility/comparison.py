"""Masked tables in the plane of risk and distortion, with the bounds of the plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.extras import pd
from cvxprivacy.leakage import Leakage as Measure
from cvxprivacy.leakage.transport import order_in_words
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import bias_in_words
from cvxprivacy.results.solution import GaussianSolution, Solution
from cvxprivacy.validation import axes_of, one_of
from cvxprivacy_sdc.auditing.measures import extremes
from cvxprivacy_sdc.risk import EstimatedLeakage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OPTIMUM", "Comparison", "Point"]

OPTIMUM = "optimal channel"
COLUMNS = {  # of the frame: Point's attributes by title, with {} for the units
    "method": "method", "setting": "setting", "distortion": "distortion",
    "leakage [{}]": "leakage", "cut distortion": "cut", "risk [{}]": "risk",
    "optimum": "optimum", "excess": "excess", "linked": "linkage", "interval": "interval",
    "PIL": "pil", "IL": "il", "score": "score",
}  # fmt: skip
_ENDS = {
    "nothing": "if nothing is released", "untouched": "of the cells untouched",
    "everything": "if W itself is released",
}  # fmt: skip
_WAYS = [(1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)]  # preferred first
_REACHES = (6, 11, 17, 25, 36)  # points of the page
BELOW = "below the frontier: by sampling, or as more than the cell was used"


@dataclass(frozen=True)
class Point:
    """A masked table, measured.

    Attributes
    ----------
    method, setting : str
        The curve it belongs to, and where on it.
    distortion : float
        E ‖x − x̂‖² with each attribute in units of its variance, divided by their number: the
        mean share of the variance that is error.
    leakage : EstimatedLeakage
        I(W; X̂) of the records by nearest neighbours, W and X̂ as they are.
    cut : float
        The same of the table cut into cells: x̂ is the mean of its cell.
    risk : float
        I(W; X̂) of the table cut into cells, as counted, biased upwards in small samples.
    optimum : float
        What releases of this cut distortion that see X's cell alone leak at least, as certified.
    linkage, interval, pil, il, score : float
        :func:`~cvxprivacy_sdc.risk.distance_linkage`, ``interval_disclosure``, the totals
        of ``probabilistic_loss`` and ``information_loss``, and ``score`` with PIL.
    measures : dict of str to float
        The table cut into cells, in the measures of leakage asked for.
    """

    method: str
    setting: str
    distortion: float
    leakage: EstimatedLeakage
    cut: float
    risk: float
    optimum: float
    linkage: float
    interval: float
    pil: float
    il: float
    score: float
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def excess(self) -> float:
        """Risk above the certified optimum of the same cut distortion; may be negative."""
        return self.risk - self.optimum


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods in the plane of risk and distortion, with the bounds of the plane.

    :func:`compare` returns one.

    Attributes
    ----------
    points : list of Point
        In the order given; the optimal channels, applied to the table, last.
    source : DiscreteSource
        The counted law of classes and cells.
    frontier : list of Solution
        Certified optima of that law.
    within : float
        Distortion within the cells, which every release of cells has.
    gaussian : dict of float to GaussianSolution
        By distortion, the QGLB of the table as it is, uncut, from estimates of h(W) and the
        moments; without ``entropy`` the optimum of a Gaussian table with these moments.  Empty
        if W is no number.
    entropy : float or None
        h(W) as estimated by nearest neighbours, W in standard deviations; None if W has no
        density.
    units : {"bits", "nats"}
        Of information.
    measures : dict of str to Leakage
        Those that the tables are measured in besides information, by their names.

    Examples
    --------
    No release that sees an age's cell alone lies below the certified line; a masking's excess is
    how far it lies above:

    >>> import numpy as np, pandas as pd
    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> from cvxprivacy_sdc.masking import MDAV
    >>> age = np.arange(20.0, 80.0)
    >>> people = pd.DataFrame({"age": age, "ill": np.where(age % 7 < age / 12, "yes", "no")})
    >>> comparison = sdc.compare(
    ...     people, {"MDAV": MDAV(k=10)}, sensitive="ill", key="age", cells=6, shares=[0.3, 0.6]
    ... )
    >>> point = comparison.points[0]
    >>> bool(np.isclose(point.risk, comparison.lower(point.cut) + point.excess))
    True
    >>> cut = np.linspace(comparison.within, 1, 5)
    >>> bool(np.all(comparison.lower(cut) <= comparison.upper(cut) + 1e-9))
    True
    >>> bool(np.all(comparison.upper(cut) <= comparison.chord(cut) + 1e-9))
    True
    """

    points: list[Point]
    source: DiscreteSource
    frontier: list[Solution]
    within: float
    gaussian: dict[float, GaussianSolution]
    entropy: float | None
    units: str
    measures: Mapping[str, Measure] = field(default_factory=dict)

    def measured(self, law: npt.ArrayLike) -> dict[str, float]:
        """Return what a joint law of classes and released cells leaks in each measure.

        Parameters
        ----------
        law : array_like, shape (|W|, |X̂|)
            Masses that sum to 1.
        """
        joint = np.asarray(law, dtype=float)
        return {name: of.total(joint) * of.unit(self.units) for name, of in self.measures.items()}

    @property
    def ends(self) -> dict[str, dict[str, float]]:
        """What each measure is: of nothing released, of the cells untouched, of W itself."""
        untouched, rows = self.measured(self.source.pmf), {}
        for name, of in self.measures.items():
            nothing, everything = extremes(of, self.source.p_w, units=self.units)
            rows[name] = {
                "nothing": nothing, "untouched": untouched[name], "everything": everything
            }  # fmt: skip
        return rows

    @property
    def information(self) -> float:
        """I(W; X) of the counted law, what an untouched table leaks."""
        return self.source.information(units=self.units)

    def lower(self, cut: npt.ArrayLike) -> np.ndarray:
        """Return what releases of this cut distortion that see X's cell alone leak at least.

        Certified.  None of them has less than ``within``, where I(W; X) is returned.

        Parameters
        ----------
        cut : array_like
            Distortions of the table cut into cells, as shares of the variance.
        """
        at = np.asarray(cut) - self.within
        lines = [s.lower - s.duals["budget"] * (at - _budget(s)) for s in self.frontier]
        return np.where(at < 0, self.information, np.clip(np.max(lines, axis=0), 0.0, None))

    def upper(self, cut: npt.ArrayLike) -> np.ndarray:
        """Return what mixtures of the certified optima leak.

        Parameters
        ----------
        cut : array_like
            Distortions of the table cut into cells, as shares of the variance.
        """
        knots = [(0.0, self.information), *((_budget(s), s.value) for s in self.frontier)]
        knots.append((1 - self.within, 0.0))
        return np.interp(np.asarray(cut) - self.within, *np.array(knots).T)

    def chord(self, cut: npt.ArrayLike) -> np.ndarray:
        """MIUB: what the better of "release the cell" and "release the mean" leaks, mixed.

        Parameters
        ----------
        cut : array_like
            Distortions of the table cut into cells, as shares of the variance.
        """
        share = (np.asarray(cut) - self.within) / (1 - self.within)
        return self.information * np.clip(1 - share, 0.0, 1.0)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point, a pandas frame."""
        columns = {
            title.format(self.units): [getattr(p, name) for p in self.points]
            for title, name in COLUMNS.items()
        }
        columns[f"leakage [{self.units}]"] = [p.leakage.value for p in self.points]
        for name, of in self.measures.items():
            title = f"{name} [{self.units}]" if of.in_units else name
            columns[title] = [p.measures[name] for p in self.points]
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        curves = len({p.method for p in self.points})
        return f"Comparison({curves} methods, {len(self.points)} tables, {self.source!r})"

    def __str__(self) -> str:
        table = self.to_frame().to_string(index=False, float_format="{:.4f}".format)
        notes = [
            f"  risk: I(W; X̂) counted from the table, X̂ cut into {len(self.source.x)} cells and W "
            f"into {len(self.source.w)} classes",
            f"  untouched, the cells leak {self.information:.4f} {self.units}, "
            f"{bias_in_words(self.source.bias(units=self.units) or 0.0)}; every risk has its own; "
            f"{self.within:.1%} of the variance lies within cells",
            "  optimum: no release that sees X's cell alone leaks less at this cut distortion "
            "(certified)",
            "  excess: risk less optimum; below zero by sampling, or as the method used more than "
            "the cell",
            "  leakage: of the records as they are, by nearest neighbours",
        ]
        if self.measures:
            notes.append("  in these measures the optimal channels need not be the best:")
        for name, ends in self.ends.items():
            values = ", ".join(f"{value:.4g} {_ENDS[end]}" for end, value in ends.items())
            notes.append(f"  {name}: {self.measures[name].meaning}; {values}")
        if any(of.ordered for of in self.measures.values()) and not self.source.in_order:
            notes.append(f"  {order_in_words('W', self.source.w)}")
        return "\n".join([repr(self), table, *notes])

    def draw(
        self,
        ax: Axes | None = None,
        *,
        of: str = "cells",
        parameters: Mapping[str, str] | None = None,
    ) -> Axes:
        """Draw risk against distortion: a curve for each method, its points by their settings.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            With its legend, if the labels of points shall keep clear of it.
        of : {"cells", "records"}
            The tables cut into cells, above the certified frontier of releases that see X's cell
            alone (a point below it is ringed, and the legend says why); or the records as they
            are, beside the QGLB, both of them estimates.
        parameters : mapping of str to str, optional
            The letter of each method's settings: ``{"mdav": "k"}`` writes k = 3 for 3.
        """
        one_of(of, "of", "cells", "records")
        ax, letters, cells = axes_of(ax), parameters or {}, of == "cells"
        (self._draw_bounds if cells else self._draw_estimates)(ax)
        marks, below = [], []
        names = dict.fromkeys(p.method for p in self.points if p.method != OPTIMUM)
        for i, name in enumerate(names):
            curve = [p for p in self.points if p.method == name]
            spots = [(p.cut, p.risk) if cells else (p.distortion, p.leakage.value) for p in curve]
            color, mark = f"C{i % 10}", "osD^v<>P"[i % 8]
            face = color if cells else "white"
            ax.plot(
                *np.array(spots).T, mark + "-", ms=5.5, color=color, mfc=face, lw=1.1, label=name
            )
            letter = f"{letters[name]} = " if name in letters else ""
            marks += [(*at, letter + p.setting, color) for at, p in zip(spots, curve, strict=True)]
            below += [(x, y) for x, y in spots if cells and y < float(self.lower(x))]
        if below:
            ring: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": "crimson", "mew": 1.2}
            ax.plot(*np.array(below).T, "o", label=BELOW, **ring)
        most = max(1.0, *(max(p.cut, p.distortion) for p in self.points))  # of both pictures
        ax.set_xlim(0.0, most * 1.03)
        risks = (max(p.risk, p.leakage.value) for p in self.points)
        ax.set_ylim(0.0, max(self.information, *risks) * 1.06)
        ax.set_xlabel("distortion [share of the variance]")
        ax.set_ylabel(f"risk $I(W; \\hat X)$ [{self.units}]")
        label_points(ax, marks)
        return ax

    def _draw_bounds(self, ax: Axes) -> None:
        """Draw the certified frontier, with its band, and the MIUB."""
        fine = np.linspace(self.within, 1.0, 400)
        band = "between what is proved and what is achieved"
        lower, upper = self.lower(fine), self.upper(fine)
        ax.fill_between(fine, lower, upper, color="0.35", alpha=0.45, lw=0, label=band)
        ax.plot(fine, upper, color="0.1", lw=1.2)
        label = "frontier of releases of X's cell, certified"
        x, values = zip(*((self.within + _budget(s), s.value) for s in self.frontier), strict=True)
        ax.plot(x, values, ".-", color="0.1", ms=5, lw=1.2, label=label)
        ax.plot(fine, self.chord(fine), "k--", lw=1.0, label="MIUB: the cell, or the mean")

    def _draw_estimates(self, ax: Axes) -> None:
        """Draw the QGLB, if there is one."""
        if not self.gaussian:
            return
        label = "QGLB, from estimates of h(W) and Σ"
        label = "optimum, if Gaussian" if self.entropy is None else label
        shares = list(self.gaussian)
        fine = np.linspace(min(shares), max(shares), 400)
        lower = np.interp(fine, shares, [s.lower for s in self.gaussian.values()])
        bound = np.where(lower < 0, np.nan, lower)  # it says nothing there
        ax.plot(fine, bound, "k-.", lw=1.0, label=label)


def _budget(solution: Solution) -> float:
    return float(solution.certificate.program.constraints["budget"].bounds(1))


def label_points(ax: Axes, marks: Iterable[tuple[float, float, str, str]]) -> None:
    """Write a text beside each point where it covers no mark, no other text and the fewest lines.

    The places are tried in a fixed order, from near to far; a text far from its mark is joined
    to it.  The axes should have their limits, and their legend, before.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    marks : iterable of (x, y, text, color)
        The points, in the coordinates of the data.
    """
    points = list(marks)
    root: Any = getattr(ax.figure, "figure", ax.figure)
    root.draw_without_rendering()  # so that the axes have their place
    inch, frame, transform = root.dpi / 72, ax.get_window_extent(), ax.transData.transform
    legend = ax.get_legend()
    taken: list[Any] = [] if legend is None else [legend.get_window_extent().extents]
    spots = [transform((x, y)) for x, y, *_ in points]
    radius = 4.5 * inch
    taken += [np.array([*(s - radius), *(s + radius)]) for s in spots]
    inked = _inked(ax)
    for (x, y, text, color), spot in zip(points, spots, strict=True):
        if not text:
            continue
        note: Any = ax.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", fontsize=7.5, color=color,
            ha="center", va="center",
        )  # fmt: skip
        size = note.get_window_extent()
        half = np.array([size.width, size.height]) / 2 + 0.8 * inch
        best, least = (0.0, 0.0), np.inf
        for turn, (reach, way) in enumerate(product(_REACHES, _WAYS)):
            unit = np.array(way) / (1.0 if 0 in way else 2**0.5)
            offset = unit * reach * inch + np.array(way) * half
            low, high = spot + offset - half, spot + offset + half
            outside = (low < frame.min).any() or (high > frame.max).any()
            hit = sum(_overlap(low, high, box) for box in taken)
            lines = ((inked > low) & (inked < high)).all(axis=1).sum()
            cost = 1e6 * outside + 1e3 * hit + 2.0 * lines + 0.4 * turn
            if cost < least:
                best, least, box = tuple(offset / inch), cost, np.array([*low, *high])
        note.set_position(best)
        taken.append(box)
        if np.hypot(*(np.abs(best) - half / inch).clip(0)) > 9:
            ax.annotate("", (x, y), xytext=best, textcoords="offset points",
                        arrowprops={"arrowstyle": "-", "color": color, "lw": 0.6, "alpha": 0.9,
                                    "shrinkB": 3, "shrinkA": 5})  # fmt: skip


def _overlap(low: np.ndarray, high: np.ndarray, box: Sequence[float]) -> float:
    """Return the share of a box that another covers, and at least a little if they touch."""
    common = np.minimum(high, box[2:]) - np.maximum(low, box[:2])
    if (common <= 0).any():
        return 0.0
    return 0.05 + float(np.prod(common) / np.prod(high - low))


def _inked(ax: Axes) -> np.ndarray:
    """Return points of the page, a few pixels apart, where lines run."""
    points = [np.empty((0, 2))]
    for line in ax.lines:
        path = ax.transData.transform(np.column_stack(line.get_data()).astype(float))
        for start, end in pairwise(path):
            if np.isfinite([*start, *end]).all() and line.get_linestyle() != "None":
                steps = int(np.hypot(*(end - start)) // 3) + 1
                points.append(np.linspace(start, end, steps, endpoint=False))
    return np.concatenate(points)
