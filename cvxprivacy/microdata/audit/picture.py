"""An audit as a picture, in the layout of Bezzi's Fig. 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxprivacy import style
from cvxprivacy.microdata.audit.findings import Findings
from cvxprivacy.microdata.audit.words import shown
from cvxprivacy.style import inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (style.PAGE, 3.2)
BARS = 12  # released letters that are drawn one by one
BOUNDS = {"t": "$t$", "H(W) − log ℓ": r"$H(W)-\log\,\ell$"}  # on the average, as they are drawn


def drawn(findings: Findings, figure: Figure | None = None) -> Figure:
    """Draw the average against its bounds, and I1 and I2 of the letters."""
    import matplotlib as mpl

    with mpl.rc_context(style.HOUSE):
        if figure is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=SIZE, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.7))
        _averages(findings, left)
        _letters(findings, right)
    return figure


def _averages(findings: Findings, ax: Axes) -> None:
    """Draw bars of I(W; X), of what the criteria allow, and of I(W; X̃) with its interval."""
    after, alone = findings.after, findings.before is findings.after
    bars = [] if alone else [("$I(W;X)$", findings.before.plugin, style.BLACK, "")]
    for name, color, hatch in (("t", style.GREY, "//"), ("H(W) − log ℓ", style.LIGHT, "")):
        if name in findings.averages:
            bars.append((BOUNDS[name], findings.averages[name].bound, color, hatch))
    bars.append(("$I(W;X)$" if alone else r"$I(W;\tilde X)$", after.plugin, "#ffffff", ""))
    for i, (_, value, color, hatch) in enumerate(bars):
        ax.bar(i, value, 0.7, color=color, edgecolor="black", hatch=hatch)
        top = max(value, after.upper or 0.0) if color == "#ffffff" else value
        ax.annotate(f"{value:.3f}", (i, top), (0, 3), textcoords="offset points", ha="center")
    if after.lower is not None and after.upper is not None:
        ax.vlines(len(bars) - 1, after.lower, after.upper, color=style.VERMILION, lw=3, zorder=3)
        ax.set_xlabel(f"orange: {after.level:.0%} interval, bias removed")
    ax.set_xticks(range(len(bars)), [name for name, *_ in bars])
    ax.set_xlim(-0.7, max(len(bars) - 0.3, 1.7))
    ax.set_ylabel(f"information [{findings.units}]")
    ax.set_title("on average")
    ax.margins(y=0.15)


def _letters(findings: Findings, ax: Axes) -> None:
    """Draw I1 and I2 of each letter, or of many their distribution over the records."""
    sizes, few = findings.released.joint.sum(axis=0), len(findings.letters) <= BARS
    both = (("I1", style.GREY, "//", style.BLACK, "$I_1$ (t-closeness)"),
            ("I2", style.LIGHT, "", style.BLUE, r"$I_2$ ($\ell$-diversity)"))  # fmt: skip
    for (name, color, hatch, edge, label), side in zip(both, (-1, 1), strict=True):
        values = findings.measures[name].values
        if few:
            at = np.arange(len(values)) + side * 0.2
            ax.bar(at, values, 0.4, color=color, edgecolor="black", hatch=hatch, label=label)
        else:
            order = np.argsort(-values, kind="stable")
            share = np.insert(np.cumsum(sizes[order]) / sizes.sum(), 0, 0.0)
            ax.stairs(values[order], share, baseline=None, color=edge, lw=1.6, label=label)
    ax.axhline(0.0, color="black", lw=0.6)
    for (name, label), dashes in zip(BOUNDS.items(), ("-", "--"), strict=True):
        if name in findings.averages:
            bound = findings.averages[name].bound
            ax.axhline(bound, color=style.VERMILION, ls=dashes, lw=1.3, label=label)
    ax.axhline(findings.after.plugin, color=style.GREEN, ls=":", lw=1.4, label="average")
    if few:
        names = [_plain(shown(letter)) for letter in findings.letters]
        long = max(map(len, names)) * len(names) > 60
        ax.set_xticks(range(len(names)), names, rotation=30 if long else 0,
                      ha="right" if long else "center")  # fmt: skip
        ax.set_xlabel(_plain(findings.released.names[1]))
    else:
        ax.set_xlim(0, 1)
        ax.set_xlabel("share of records at or above the value")
    ax.set_title("per released letter")
    ax.set_ylabel(f"information [{findings.units}]")
    ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2), columnspacing=1.2)
    ax.margins(y=0.12)


def _plain(text: str) -> str:
    """Return text in which matplotlib sees no mathematics."""
    return text.replace("$", r"\$")


def svg(findings: Findings) -> str:
    """Return the picture as SVG to be put into HTML: real text, no file and no address named."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Bare

    with mpl.rc_context(style.HOUSE):
        figure = drawn(findings, Bare(figsize=SIZE, layout="constrained"))
        return inline_svg(figure, _described(findings))


def _described(findings: Findings) -> str:
    i1, i2 = findings.measures["I1"], findings.measures["I2"]
    bounds = "; ".join(f"{name} = {c.bound:.3g}" for name, c in findings.averages.items())
    return (
        f"I(W; X̃) = {findings.after.plugin:.3g} {findings.units} on average"
        f"{' against ' + bounds if bounds else ''}. Per released letter I1 goes from "
        f"{i1.values.min():.3g} to {i1.values.max():.3g} and I2 from {i2.values.min():.3g} to "
        f"{i2.values.max():.3g}."
    )
