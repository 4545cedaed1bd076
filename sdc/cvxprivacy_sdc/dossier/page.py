"""A dossier as one page of HTML that needs nothing else: made of its facts alone.

Pictures are drawn into it, and programs set in MathML, which browsers set without a network and
without a script.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.style import inline_svg
from cvxprivacy.text import cells, plain, upwards
from cvxprivacy_sdc.dossier.words import INFINITE, NOTHING
from cvxprivacy_verifier.wording import many

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["html"]

_COUNTED = ("records", "values", "bits")
SHOWN = 10  # groups in the table; all are in the picture and in the JSON
_VERDICTS = {True: "May be released", False: "Must not be released", None: "No verdict"}
_UPRIGHT = re.compile(r"\\mathrm\{(E|tr)\}")
_OVER = re.compile(r"\\(min|max)_(\{(?:[^{}]|\{[^{}]*\})*\}|\w)")
BLUE, ORANGE, GREY = "#1f4e79", "#b8460e", "#5c6670"  # told apart by all eyes, and in grey print
NAMED = 5  # worst groups that carry their number
SIZE = (6.7, 3.1)  # inches: the width of a page of A4 between its margins
_FONTS = ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans"]
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cvxprivacy",
    "font.family": "sans-serif",
    "font.sans-serif": _FONTS,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.labelsize": 9,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def html(facts: Mapping[str, Any]) -> str:
    """Return the page of a dossier.

    Parameters
    ----------
    facts : mapping
        As :mod:`cvxprivacy_sdc.dossier.facts` makes them, or as read from the JSON of a report.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "number": number,
        "count": lambda value: "–" if value is None else f"{value:,.0f}",
        "percent": percent,
        "share": lambda value: "–" if value is None else f"{100 * value:.1f} %",
        "mathml": mathml,
        "many": many,
        "phrase": cells,
        "figure": figure,
        "css": css_string,
    }
    source = files("cvxprivacy_sdc.dossier").joinpath("dossier.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    letters, curve = facts["letters"], facts["tradeoff"]
    return template.render(
        facts=facts,
        stamp=_VERDICTS[facts["verdict"]["may_be_released"]],
        shown=SHOWN,
        letters_picture=letters and letters_svg(letters),
        curve_picture=curve and tradeoff_svg(curve),
    )


def number(value: Any, digits: int = 4) -> str:
    """Return a number as people read it; a dash for none, 0 for what is rounding alone."""
    if value is None or value == INFINITE:
        return "–" if value is None else "∞"
    if abs(value) < NOTHING:
        return "0"
    if isinstance(value, int) or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else plain(value, digits)


def percent(share: float) -> str:
    """Return a share of something as people read it; what is little is not called nothing."""
    return "less than 0.1 %" if 0 < share < 5e-4 else f"{100 * share:.1f} %"


def figure(value: float | None, unit: str, quantity: str = "") -> str:
    """Return a number with its unit; logarithms of factors as these."""
    if value is None:
        return "–"
    if unit == "nats" and "log ratio" in quantity:  # and not information in nats
        return f"a factor of {number(float(upwards(math.exp(value), 3)), 3)}"
    return f"{number(value)} {unit[:-1] if value == 1 and unit in _COUNTED else unit}".rstrip()


def css_string(text: str) -> str:
    """Return text as a string of CSS."""
    return '"' + re.sub(r"[^\w .,-]", lambda mark: f"\\{ord(mark[0]):x} ", text) + '"'


def mathml(latex: str, *, display: bool = True) -> str:
    """Return LaTeX of a program as MathML; nothing for nothing."""
    if not latex:
        return ""
    from latex2mathml.converter import convert

    text = _UPRIGHT.sub(r"\\operatorname{\1}", latex)
    text = text.replace(r"\log ", r"\log\, ")
    text = _OVER.sub(r"\\underset{\2}{\\\1}", text) if display else text
    made = convert(text, display="block" if display else "inline")
    made = re.sub(r'\sxmlns="[^"]*"', "", made, count=1)
    return str(made).replace('display="block"', 'displaystyle="true"')


# ---- pictures ----------------------------------------------------------------------------


def letters_svg(letters: Mapping[str, Any]) -> str:
    """Return each released group whose divergence is told: its records, and what it reveals.

    Nothing where none is told.
    """
    import matplotlib as mpl
    import matplotlib.ticker

    rows = [row for row in letters["rows"] if row["risk"] is not None]  # they come first
    if not rows:
        return ""
    records = sum(row["records"] for row in letters["rows"])
    with mpl.rc_context(_STYLE):
        figure, ax = _figure()
        bounds, unit = letters["bounds"], letters["unit"]
        sizes, risks = [row["records"] for row in rows], [row["risk"] for row in rows]
        ax.plot(sizes, risks, "o", ms=5, mfc="white", mec=BLUE, mew=1.1)
        for i in range(min(NAMED, len(rows))):
            ax.plot(sizes[i], risks[i], "o", ms=5, color=BLUE)
            ax.annotate(f"{i + 1}", (sizes[i], risks[i]), (0, -11), ha="center",
                        textcoords="offset points", fontsize=8.5, color=BLUE)  # fmt: skip
        ax.axhline(letters["average"] or 0.0, color=GREY, lw=0.9, ls=":")
        _beside(ax, letters["average"] or 0.0, "average over records", GREY)
        if bounds["risk"] is not None:
            ax.axhline(bounds["risk"], color=ORANGE, lw=1.1)
            _beside(ax, 1.06 * bounds["risk"], f"asked: at most {bounds['risk']:g} {unit}", ORANGE)
        if bounds["records"] is not None:
            ax.axvline(bounds["records"], color=ORANGE, lw=1.1, ls="--")
            ax.annotate(f"asked: at least {bounds['records']:g} records",
                        (bounds["records"], 1), (3, -2), xycoords=("data", "axes fraction"),
                        textcoords="offset points", va="top", fontsize=8, color=ORANGE)  # fmt: skip
        ax.set_xscale("log")
        ax.set_xlim(max(min([*sizes, bounds["records"] or sizes[0]]), 1) / 1.6, max(sizes) * 2.2)
        ax.set_ylim(bottom=0.0, top=1.25 * max([*risks, bounds["risk"] or 0.0, 1e-6]))
        ax.set_xlabel("size of the group [records], each step tenfold")
        ax.set_ylabel(f"difference from the whole table [{unit}]")
        ax.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: f"{x:,.0f}"))
        ax.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        description = (
            f"{many(len(rows), 'released group')} of {min(sizes):,} to {max(sizes):,} records, of "
            f"{records:,}; the greatest difference is {risks[0]:.3g} {unit}."
        )
        return _svg(figure, "groups", description)


def _beside(ax: Axes, height: float, text: str, color: str) -> None:
    ax.annotate(
        text, (1, height), (-2, 2), xycoords=("axes fraction", "data"), fontsize=8, color=color,
        textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip


def tradeoff_svg(curve: Mapping[str, Any]) -> str:
    """Return the optimum over the number that was chosen, with its proved band."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        figure, ax = _figure()
        rows = [row for row in curve["curve"] if row["achieved"] is not None]
        x = [row["x"] for row in rows]
        top = [row["achieved"] for row in rows]
        low = [max(row["proved"], 0.0) if row["proved"] is not None else 0.0 for row in rows]
        steps: Any = "post" if curve["kind"] == "monotone" else None
        band: list[Any] = [x, low, top]
        if steps is None:  # between two places it may be as low as is proved at either
            segments = list(pairwise(zip(x, top, low, strict=True)))
            ends = [end for segment in segments for end in segment]
            floor = [min(end[2] for end in segment) for segment in segments]
            band = [[end[0] for end in ends], np.repeat(floor, 2), [end[1] for end in ends]]
        ax.fill_between(band[0], band[1], band[2], color=BLUE, alpha=0.25, lw=0, step=steps,
                        label="between points: somewhere here")  # fmt: skip
        ax.plot(x, top, color=BLUE, lw=1.2, label="a release attains this",
                drawstyle="steps-post" if steps else "default")  # fmt: skip
        for point in curve["choices"]:
            ax.plot(point["x"], point["value"], "o", ms=4, color=BLUE)
            ax.annotate(point["name"], (point["x"], point["value"]), (5, 5), color=BLUE,
                        textcoords="offset points", fontsize=9.5, fontweight="bold")  # fmt: skip
        chosen = curve["chosen"]
        ax.plot(chosen["x"], chosen["value"], "D", ms=7, mfc="white", mec=ORANGE, mew=1.6,
                label=f"as chosen: {chosen['x']:g}", zorder=4)  # fmt: skip
        ax.set_xlabel(curve["words"] + (f" [{curve['x_unit']}]" if curve["x_unit"] else ""))
        unit = f" [{curve['unit']}]" if curve["unit"] else ""
        ax.set_ylabel(f"{curve['minimised']}{unit}")
        ax.set_ylim(bottom=0.0)
        ax.margins(x=0.02)
        ax.legend(frameon=False, fontsize=8, loc="best")
        description = (
            f"{curve['minimised']} over {curve['words']}, from {x[0]:.3g} to {x[-1]:.3g}; at the "
            f"chosen {chosen['x']:g} it is {chosen['value']:.4g}{unit}."
        )
        return _svg(figure, "curve", description)


def _figure() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as SVG inside HTML, whose ids no other picture on the page has."""
    picture = inline_svg(figure, description)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', picture))
    picture = re.sub(
        r'\sid="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", picture
    )
    return re.sub(r'(href="|url\()#', rf"\1#{name}-", picture)
