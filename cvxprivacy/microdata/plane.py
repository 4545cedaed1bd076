"""The picture of a comparison: risk against distortion, each point labelled by its setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_bounds", "draw_curves", "draw_estimates", "label_points"]

_WAYS = [(1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)]  # preferred first
_REACHES = (6, 11, 17, 25, 36)  # points of the page
BELOW = "below the frontier: by sampling, or as more than the cell was used"


def draw_bounds(result: Any, budgets: Sequence[float], ax: Axes) -> None:
    """Draw the certified frontier of a comparison, with its band, and the MIUB.

    Parameters
    ----------
    result : Comparison
    budgets : sequence of float
        Distortions of its certified optima beyond ``within``.
    ax : matplotlib.axes.Axes
    """
    fine = np.linspace(result.within, 1.0, 400)
    band = "between what is proved and what is achieved"
    ends = result.lower(fine), result.upper(fine)
    ax.fill_between(fine, *ends, color="0.35", alpha=0.45, lw=0, label=band)
    ax.plot(fine, result.upper(fine), color="0.1", lw=1.2)
    label = "frontier of releases of X's cell, certified"
    values = [s.value for s in result.frontier]
    x = [result.within + budget for budget in budgets]
    ax.plot(x, values, ".-", color="0.1", ms=5, lw=1.2, label=label)
    ax.plot(fine, result.chord(fine), "k--", lw=1.0, label="MIUB: the cell, or the mean")


def draw_estimates(result: Any, ax: Axes) -> None:
    """Draw the QGLB of a comparison, if there is one."""
    if not result.gaussian:
        return
    label = "QGLB, from estimates of h(W) and Σ"
    label = "optimum, if Gaussian" if result.entropy is None else label
    shares = list(result.gaussian)
    fine = np.linspace(min(shares), max(shares), 400)
    lower = np.interp(fine, shares, [s.lower for s in result.gaussian.values()])
    bound = np.where(lower < 0, np.nan, lower)  # it says nothing there
    ax.plot(fine, bound, "k-.", lw=1.0, label=label)


def draw_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    settings: Mapping[str, Sequence[str]],
    ax: Axes,
    limits: tuple[float, float],
    *,
    filled: bool = True,
    floor: Any = None,
) -> None:
    """Draw a curve of points for each method, and label every point by its setting.

    Parameters
    ----------
    curves : mapping of method to points
        Distortion and risk.
    settings : mapping of method to str
        What to write beside each point.
    ax : matplotlib.axes.Axes
    limits : (float, float)
        The greatest distortion and risk that are to be seen.
    filled : bool
        Filled marks, or open ones.
    floor : callable, optional
        The least risk at each distortion: points below it are ringed, and the legend says why.
    """
    marks, below = [], []
    for i, (name, points) in enumerate(curves.items()):
        color, mark = f"C{i % 10}", "osD^v<>P"[i % 8]
        face = color if filled else "white"
        ax.plot(*np.array(points).T, mark + "-", ms=5.5, color=color, mfc=face, lw=1.1, label=name)
        marks += [(x, y, text, color) for (x, y), text in zip(points, settings[name], strict=True)]
        below += [] if floor is None else [(x, y) for x, y in points if y < float(floor(x))]
    if below:
        how: dict[str, Any] = {
            "ms": 13,
            "mfc": "none",
            "mec": "crimson",
            "mew": 1.2,
            "label": BELOW,
        }
        ax.plot(*np.array(below).T, "o", **how)
    ax.set_xlim(0.0, limits[0] * 1.03)
    ax.set_ylim(0.0, limits[1] * 1.06)
    label_points(ax, marks)


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
