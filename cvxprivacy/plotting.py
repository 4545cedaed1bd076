"""Pictures of channels and of trade-offs, on matplotlib axes.

Every function draws on ``ax`` (by default the current axes) and returns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy import style
from cvxprivacy.errors import InputError
from cvxprivacy.programs.expression import first_part
from cvxprivacy.release.channel import Channel
from cvxprivacy.results.solution import Solution
from cvxprivacy.validation import axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["channel", "tradeoff", "zonotopes"]


def _text(label: Any) -> str:
    return f"{label:.3g}" if isinstance(label, float) else str(label)


def channel(release: Channel, ax: Axes | None = None, *, ticks: int = 6) -> Axes:
    """Draw p(x̂ | x) as an image: a row for each input, a column for each output.

    Parameters
    ----------
    release : Channel
        Such as ``solution.channel``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    ticks : int
        Labels on each axis at most.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with a colour bar beside them.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import plotting
    >>> import matplotlib.pyplot as plt
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    >>> figure, ax = plt.subplots()
    >>> ax = plotting.channel(solution.channel, ax)
    >>> ax.images[0].get_array().round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    >>> plt.close(figure)
    """
    ax = axes_of(ax)
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
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.
    per : (float, float)
        Units of the axes: distortion and risk are divided by these.
    label : str
        Of the points, for a legend.
    color : str, optional
        Of points and band, by default the next of the axes' cycle.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with their labels.

    Raises
    ------
    InputError
        For no solutions, ones without a budget, or bits beside nats.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import plotting
    >>> import matplotlib.pyplot as plt
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1)
    >>> figure, ax = plt.subplots()
    >>> ax = plotting.tradeoff([problem.at(budget=d).solve() for d in (0.1, 0.2, 0.3)], ax)
    >>> ax.lines[0].get_ydata().round(3).tolist()
    [0.173, 0.096, 0.042]
    >>> plt.close(figure)
    """
    if not solutions:
        raise InputError("solutions", "none", "pass at least one solution with a budget")
    ax = axes_of(ax)
    lines = []
    for i, solution in enumerate(solutions):
        program = solution.certificate.program
        row, views = program.constraints.get("budget"), first_part(program.objective).weights
        informs = all(getattr(program.views[view], "informs", True) for view in views)
        none = row is None or "budget" not in solution.duals or solution.value_units is None
        if none or not informs:
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


def zonotopes(channels: Mapping[str, Channel], ax: Axes | None = None) -> Axes:
    """Draw what tests of two inputs can reach that see what a channel releases.

    A test that accepts some outputs, perhaps at random, does so with a probability under either
    input; all such pairs are a zonotope, the sum of a segment for each output.  Its upper edge is
    the ROC curve of the likelihood ratio.  Of two inputs, a channel is at most as telling as
    another, for every prior and gain, if and only if its region lies within the other's.

    Parameters
    ----------
    channels : mapping of str to Channel
        Of the same two inputs, by the names of their regions in a legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default the current axes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with their labels.

    Raises
    ------
    InputError
        For what is no mapping of channels, or a channel of other inputs.

    See Also
    --------
    compare_channels : The proof, of any number of inputs.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import plotting
    >>> import matplotlib.pyplot as plt
    >>> noisy = cpv.Channel([[0.75, 0.25], [0.25, 0.75]], inputs="ab", outputs="ab")
    >>> figure, ax = plt.subplots()
    >>> ax = plotting.zonotopes({"once": noisy, "twice": noisy.then(noisy)}, ax)
    >>> ax.patches[0].get_xy().tolist()
    [[0.0, 0.0], [0.25, 0.75], [1.0, 1.0], [0.75, 0.25], [0.0, 0.0]]
    >>> plt.close(figure)
    """
    remedy = "pass channels of the same two inputs by name"
    if not isinstance(channels, Mapping) or not channels:
        raise InputError("channels", "none by name", remedy)
    ax, names = axes_of(ax), None
    for (name, release), color in zip(channels.items(), cycle(style.PALETTE), strict=False):
        names = names or getattr(release, "inputs", None)
        if not isinstance(release, Channel) or len(release.inputs) != 2 or release.inputs != names:
            raise InputError("channels", f"{release!r}", remedy, where=name)
        second, first = np.asarray(release.matrix)
        steps = np.stack([first, second])[:, np.argsort(np.arctan2(first, second), kind="stable")]
        # outputs of a high likelihood ratio first, up to all; and from all back to none
        upper = np.hstack([[[0.0], [0.0]], steps.cumsum(axis=1)])
        lower = 1.0 - upper
        outline = np.hstack([upper, lower[:, 1:]])
        ax.fill(*outline, color=color, alpha=0.15, lw=0)
        ax.plot(*outline, color=color, lw=style.HOUSE["lines.linewidth"], label=name)
    of = [_text(label) for label in names or ()]
    ax.set(xlabel=f"P(accept | {of[1]})", ylabel=f"P(accept | {of[0]})", aspect="equal")
    return ax
