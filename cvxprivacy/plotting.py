"""Pictures of channels and of trade-offs, on matplotlib axes.

Every function draws on ``ax`` (by default the current axes) and returns it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy import style
from cvxprivacy.errors import InputError
from cvxprivacy.release.channel import Channel
from cvxprivacy.results.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["channel", "inline_svg", "tradeoff"]


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.gca()


def _text(label: Any) -> str:
    return f"{label:.3g}" if isinstance(label, float) else str(label)


def channel(release: Channel, ax: Axes | None = None, *, ticks: int = 6) -> Axes:
    """Draw p(x̂ | x) as an image: a row for each input, a column for each output.

    Parameters
    ----------
    release : Channel
    ax : matplotlib.axes.Axes, optional
    ticks : int
        Labels on each axis at most.
    """
    ax = _axes(ax)
    image = ax.imshow(release.matrix, vmin=0.0, vmax=1.0, cmap=style.MAP, aspect="auto")
    for axis, labels in ((ax.xaxis, release.outputs), (ax.yaxis, release.inputs)):
        at = np.unique(np.linspace(0, len(labels) - 1, min(ticks, len(labels))).round().astype(int))
        axis.set_ticks(at.tolist(), [_text(labels[i]) for i in at])
    ax.set_xlabel("released $\\hat x$")
    ax.set_ylabel("original $x$")
    ax.figure.colorbar(image, ax=ax, label="$p(\\hat x \\mid x)$")
    return ax


def tradeoff(
    solutions: Sequence[Solution],
    ax: Axes | None = None,
    *,
    per: tuple[float, float] = (1.0, 1.0),
    label: str = "",
    color: str | None = None,
) -> Axes:
    """Draw certified points of R(D), and the band between what they achieve and what they prove.

    Each solution's multiplier is the slope of a line that R(D) never falls below; chords
    between the points are achieved by mixing their releases.

    Parameters
    ----------
    solutions : sequence of Solution
        Of one source at several budgets.
    per : (float, float)
        Units of the axes: distortion and risk are divided by these.
    label, color : str, optional
    """
    if not solutions:
        raise InputError("solutions", "none", "pass at least one solution with a budget")
    ax = _axes(ax)
    lines = []
    for i, solution in enumerate(solutions):
        row = solution.certificate.program.constraints.get("budget")
        if row is None or "budget" not in solution.duals or solution.value_units is None:
            remedy = "pass solved problems of least information with budget="
            raise InputError("solutions", f"{solution!r} has no point", remedy, where=i)
        if solution.units != solutions[0].units:
            raise InputError("solutions", "bits beside nats", "solve all in one unit", where=i)
        lines.append(
            (float(row.bounds(1)), solution.value, solution.lower, solution.duals["budget"])
        )
    x, y, low, slope = np.array(sorted(lines)).T
    (points,) = ax.plot(x / per[0], y / per[1], "o", ms=4, color=color, zorder=3)
    if label:
        points.set_label(label)
    fine = np.linspace(x.min(), x.max(), 400)
    outer = (low[:, None] - slope[:, None] * (fine - x[:, None])).max(axis=0)
    ax.fill_between(
        fine / per[0],
        np.maximum(outer, 0.0) / per[1],
        np.interp(fine, x, y) / per[1],
        color=points.get_color(),
        alpha=0.35,
    )
    ax.set_xlabel("distortion $D$")
    ax.set_ylabel(f"risk $I(W; \\hat X)$ [{solutions[0].units}]")
    ax.set_ylim(bottom=0.0)
    return ax


def inline_svg(figure: Figure, description: str) -> str:
    """Return a figure as SVG to be put into HTML: no metadata, no address, with a description.

    Its text is text where ``svg.fonttype`` is "none": a reader's fonts draw it.
    """
    text = StringIO()
    with warnings.catch_warnings():  # of glyphs that matplotlib's own font lacks
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    picture = text.getvalue()
    picture = picture[picture.index("<svg") :]
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    head, rest = picture.split(">", 1)
    head = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
    said = escape(description, quote=True)
    return f'{head} role="img" aria-label="{said}">{rest.replace("xlink:href", "href")}'
