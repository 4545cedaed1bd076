"""An audit as a picture, and as one HTML page that needs nothing else."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.microdata.audit import SHOWN, Audit, number, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["body", "drawn", "page"]

BARS = 12  # released letters that are drawn one by one
LISTS = ("I1", "I2", "k")  # measures whose worst letters are listed

STYLE = """
:root { color-scheme: light; }
body { font: 1rem/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1rem; }
caption { text-align: left; color: #444; padding-bottom: .35rem; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #ddd; text-align: left;
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th[scope=row] { font-weight: 400; }
.broken { color: #a30000; font-weight: 600; }
.secret { border-left: .3rem solid #a30000; padding: .4rem .8rem; background: #fdf3f3; }
svg { max-width: 100%; height: auto; }
"""


# ---- the picture -------------------------------------------------------------------------


def drawn(audit: Audit, figure: Figure | None = None) -> Figure:
    """Draw the average against its bounds, and I1 and I2 of the letters."""
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.7))
    _averages(audit, left)
    _letters(audit, right)
    return figure


def _averages(audit: Audit, ax: Axes) -> None:
    names = {"t": "$t$", "H(W) − log ℓ": r"$H(W) - \log\,\ell$"}
    bounds = audit.averages
    bars = [("$I(W;X)$", audit.before.plugin, "#000000", "")]
    if audit.before is audit.after:
        bars = []
    for name, color, hatch in (("t", "#6e6e6e", "//"), ("H(W) − log ℓ", "#c9c9c9", "")):
        if name in bounds:
            bars.append((names[name], bounds[name].bound, color, hatch))
    released = "$I(W;X)$" if audit.before is audit.after else r"$I(W;\tilde X)$"
    bars.append((released, audit.after.plugin, "#ffffff", ""))
    for i, (_, value, color, hatch) in enumerate(bars):
        ax.bar(i, value, 0.7, color=color, edgecolor="black", hatch=hatch)
        top = max(value, audit.after.upper or 0.0) if color == "#ffffff" else value
        ax.annotate(f"{value:.3f}", (i, top), (0, 3), textcoords="offset points", ha="center",
                    fontsize=9)  # fmt: skip
    after = audit.after
    if after.lower is not None and after.upper is not None:
        ax.vlines(len(bars) - 1, after.lower, after.upper, color="#D55E00", lw=3, zorder=3)
        ax.set_xlabel(f"orange: {after.level:.0%} interval, bias removed", fontsize=9)
    ax.set_xticks(range(len(bars)), [name for name, *_ in bars])
    ax.set_xlim(-0.7, max(len(bars) - 0.3, 1.7))
    ax.set_ylabel(f"information [{audit.units}]")
    ax.set_title("on average", fontsize=11)
    ax.margins(y=0.15)


def _letters(audit: Audit, ax: Axes) -> None:
    sizes = audit.released.joint.sum(axis=0)
    both = (("I1", "#5f5f5f", "//", "$I_1$ (t-closeness)", -1),
            ("I2", "#cfcfcf", "", r"$I_2$ ($\ell$-diversity)", 1))  # fmt: skip
    few = len(audit.letters) <= BARS
    for name, color, hatch, label, side in both:
        values = audit.measures[name].values
        if few:
            at = np.arange(len(values)) + side * 0.2
            ax.bar(at, values, 0.4, color=color, edgecolor="black", hatch=hatch, label=label)
        else:
            order = np.argsort(-values, kind="stable")
            share = np.concatenate([[0.0], np.cumsum(sizes[order]) / sizes.sum()])
            edge = "#000000" if side < 0 else "#0072B2"
            ax.stairs(values[order], share, baseline=None, color=edge, lw=1.6, label=label)
    ax.axhline(0.0, color="black", lw=0.6)
    for name, style, label in (("t", "-", "$t$"), ("H(W) − log ℓ", "--", r"$H(W)-\log\,\ell$")):
        if name in audit.averages:
            ax.axhline(audit.averages[name].bound, color="#B00020", ls=style, lw=1.3, label=label)
    ax.axhline(audit.after.plugin, color="#009E73", ls=":", lw=1.4, label="average")
    if few:
        names = [_plain(shown(letter)) for letter in audit.letters]
        long = max(map(len, names)) * len(names) > 60
        ax.set_xticks(range(len(names)), names, rotation=30 if long else 0,
                      ha="right" if long else "center", fontsize=9)  # fmt: skip
        ax.set_xlabel(_plain(audit.released.names[1]))
    else:
        ax.set_xlim(0, 1)
        ax.set_xlabel("share of records at or above the value")
    ax.set_title("per released letter", fontsize=11)
    ax.set_ylabel(f"information [{audit.units}]")
    ax.legend(fontsize=9, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    ax.margins(y=0.12)


def _plain(text: str) -> str:
    """Return text in which matplotlib sees no mathematics."""
    return text.replace("$", r"\$")


def _svg(audit: Audit) -> str:
    """Return the picture as SVG to be put into HTML: real text, no file and no address named."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Bare

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cvxprivacy"}):
        figure = drawn(audit, Bare(figsize=(11, 4.6), layout="constrained"))
        text = StringIO()
        with warnings.catch_warnings():  # the text stays text: a reader's fonts draw it
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
    said = escape(_described(audit), quote=True)
    return f'{head} role="img" aria-label="{said}">{rest.replace("xlink:href", "href")}'


def _described(audit: Audit) -> str:
    i1, i2 = audit.measures["I1"], audit.measures["I2"]
    bounds = "; ".join(f"{name} = {c.bound:.3g}" for name, c in audit.averages.items())
    return (
        f"I(W; X̃) = {audit.after.plugin:.3g} {audit.units} on average"
        f"{' against ' + bounds if bounds else ''}. Per released letter I1 goes from "
        f"{i1.values.min():.3g} to {i1.values.max():.3g} and I2 from {i2.values.min():.3g} to "
        f"{i2.values.max():.3g}."
    )


# ---- the page ----------------------------------------------------------------------------


def page(audit: Audit) -> str:
    """Return the audit as one HTML document, its style and its picture inside."""
    title = f"Audit: {audit.released.names[0]} given {audit.released.names[1]}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body(audit, picture=True)}\n</main>\n"
        "</body>\n</html>\n"
    )


def body(audit: Audit, *, picture: bool) -> str:
    """Return what stands in the page, with or without the picture."""
    w = audit.released.names[0]
    parts = [
        f'<p class="secret">This page tells what {escape(w)} is in the worst groups: keep it with '
        "the original table.</p>",
        _table("The tables", [], [[name, said] for name, said in audit.facts.items()]),
    ]
    if audit.conclusions:
        rows = [[name, verdict, said] for name, verdict, said in audit.conclusions]
        caption = (
            "Conditions on the average are necessary; those per released letter are necessary "
            "and sufficient"
        )
        parts += ["<h2>Conditions</h2>", _table(caption, ["condition", "verdict", "found"], rows)]
    parts.append("<h2>Measures</h2>")
    parts.append(
        _table(
            "The worst released letter of each measure, how many letters are as bad, and the "
            "records in them",
            ["measure", "worst", "letters", "records", "average over records"],
            [
                [m.title, number(m.worst), f"{m.letters:,}", f"{m.records:,}", number(m.average)]
                for m in audit.measures.values()
            ],
            numbers=True,
        )
    )
    if picture:
        parts += ["<h2>Information</h2>", f'<div class="scroll">{_svg(audit)}</div>']
    parts.append("<h2>Worst letters</h2>")
    counts, sizes = audit.released.joint, audit.released.joint.sum(axis=0)
    columns = [("records", "k"), ("I1", "I1"), ("I2", "I2"), ("entropy ℓ", "entropy l")]
    for name in LISTS:
        rows = []
        for i in audit.measures[name].order[:SHOWN]:
            most = int(counts[:, i].argmax())
            values = [number(float(audit.measures[of].values[i])) for _, of in columns]
            share = f"{shown(audit.released.w[most])}: {counts[most, i] / sizes[i]:.0%}"
            rows.append([shown(audit.letters[i]), *values, share])
        header = [audit.released.names[1], *(title for title, _ in columns), f"most frequent {w}"]
        parts.append(_table(f"By {audit.measures[name].title}", header, rows, numbers=True))
    if audit.all_notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in audit.all_notes)
        parts.append(f"<h2>Notes</h2>\n<ul>{items}</ul>")
    return "\n".join(parts)


def _table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: bool = False
) -> str:
    """Return a table whose first column names its rows."""
    rows = list(rows)
    numeric = [numbers and i > 0 and not _words(rows, i) for i in range(len(rows[0]))]

    def marked(i: int) -> str:
        return ' class="n"' if numeric[i] else ""

    lines = [f'<div class="scroll"><table>\n<caption>{escape(caption)}</caption>']
    if header:
        cells = "".join(
            f'<th scope="col"{marked(i)}>{escape(name)}</th>' for i, name in enumerate(header)
        )
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for row in rows:
        cells = f'<th scope="row">{escape(str(row[0]))}</th>'
        for i, value in enumerate(row[1:], 1):
            broken = ' class="broken"' if value == "BROKEN" else marked(i)
            cells += f"<td{broken}>{escape(str(value))}</td>"
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _words(rows: Sequence[Sequence[Any]], column: int) -> bool:
    return any(re.search(r"[A-Za-z]{2}|:", str(row[column])) for row in rows)
