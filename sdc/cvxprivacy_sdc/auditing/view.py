"""An audit as it is shown: in words, as a picture, and as one HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy import style
from cvxprivacy.model.one_symbol import equivalent_diversity
from cvxprivacy.tables.labels import printable, shown
from cvxprivacy.text import padded
from cvxprivacy_sdc.auditing.findings import (
    RISK,
    SHOWN,
    Findings,
    Leaked,
    Measure,
    Verdict,
    implied_bounds,
)
from cvxprivacy_sdc.auditing.pairing import COUNTED
from cvxprivacy_sdc.risk.individual import ESTIMATE
from cvxprivacy_sdc.risk.wildcards import MATCHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (style.PAGE, 3.2)
BARS = 12  # released letters that are drawn one by one
BOUNDS = {"t": "$t$", "H(W) − log ℓ": r"$H(W)-\log\,\ell$"}  # on the average, as they are drawn
LISTS = ("I1", "I2", "k")  # measures whose worst letters are listed on the page
LISTED = {"records": "k", "I1": "I1", "I2": "I2", "entropy ℓ": "entropy l"}  # of these lists
COLUMNS = ("worst", "letters", "records", "average")


# ---- in words ----------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a measure as people read it."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1e3 else f"{value:.4g}"


def _released(findings: Findings) -> str:
    return "I(W; X)" if findings.before is findings.after else "I(W; X̃)"


def facts(findings: Findings) -> dict[str, str]:
    """Say what the tables are."""
    source, before, after = findings.released, findings.before, findings.after
    law = findings.laws.released
    entropy = f"{law.entropy(units=findings.units):.4f} {findings.units}"
    words = {
        "records": f"{source.records:,}",
        "confidential": f"{source.names[0]}, {len(source.w)} values",
        "released": f"{source.names[1]}, {len(source.x):,} letters",
        **_classes(findings),
        **_weights(findings),
        "re-identified": _re_identified(findings),
        "H(W)": f"{entropy}; ℓ_max = {findings.greatest_diversity:.4g}",
    }
    bounds = implied_bounds(findings.criteria, 0.0, findings.units)
    if (t := bounds.get("t")) is not None:
        equivalent = equivalent_diversity(law.p_w, t, units=findings.units)
        words["ℓ_t"] = f"{equivalent:.4g} at t = {t:g}"
    if before is not after:
        words["I(W; X)"] = str(before)
    words[_released(findings)] = str(after)
    biased = findings.laws.original.biased or law.biased
    alike = (before.lower is None) == (after.lower is None)  # corrected alike
    if before is not after and before.corrected > 0 and alike and not biased:
        words["kept"] = f"{after.corrected / before.corrected:.1%} of I(W; X), both corrected"
    return words


def _classes(findings: Findings) -> dict[str, str]:
    """Say how large the released classes are, and what that costs a user."""
    of = findings.classes
    sizes = f"{of.least:,} to {of.greatest:,} records, {number(of.average)} on average"
    lost = f"; {of.suppressed:,} suppressed" if of.suppressed else ""
    metric = f"classification metric {number(of.classification)}"
    return {
        "classes": f"{sizes}, {number(of.normalised)} times the least{lost}",
        "utility": f"discernibility {of.discernibility:,.0f}; {metric}",
    }


def _weights(findings: Findings) -> dict[str, str]:
    """Say what records weigh, where they have survey weights."""
    law, column = findings.laws.released, findings.laws.weights
    if column is None:
        return {}
    persons = f"{law.joint.sum():,.0f} persons by {column}"
    return {"weights": f"{persons}; records weigh as {law.effective:,.0f} (Kish); {COUNTED}"}


def _re_identified(findings: Findings) -> str:
    """Say how many records are expected to be re-identified, and the greatest risk."""
    risk = findings.measures[RISK]
    model = ESTIMATE
    if findings.laws.weights is None:
        model = "1/k: too high where the table is a sample"
    expected = f"{findings.re_identified:.4g} records expected"
    many = "1 record" if risk.records == 1 else f"{risk.records:,} records"
    return f"{expected}, greatest risk {risk.worst:.4g} of {many}; {model}"


def conclusions(findings: Findings) -> list[tuple[str, str, str]]:
    """Return every condition: what it says, "holds", "BROKEN" or "seen", and by how much."""
    rows, released = [], _released(findings)
    for name, condition in findings.averages.items():
        value, bound = f"{condition.value:.4g}", f"{condition.bound:.4g}"
        if name != "I(W; X)":
            stands = "holds" if condition.holds else "BROKEN"
            rows.append((f"on average, {released} ≤ {name}", stands, f"{value}, at most {bound}"))
        elif condition.holds:
            words = f"{value}, not above the {bound} of {name}"
            rows.append((f"on average, {released}", "seen", words))
        else:
            words = f"{value}, more than the {bound} of {name}: sampling, or X̃ uses W"
            rows.append((f"on average, {released}", "seen", words))
    for verdict in findings.verdicts:
        rows.append((repr(verdict.criterion), *_standing(verdict, findings)))
    return rows


def _standing(verdict: Verdict, findings: Findings) -> tuple[str, str]:
    """Say how a criterion stands, and by how much."""
    value = "" if verdict.value is None else f", at {verdict.value:.4g}"
    of_sizes = verdict.criterion.counts_records and verdict.criterion.of_table
    how = f", where {MATCHED}" * (findings.wildcards and of_sizes)
    if verdict.holds is None:
        return "open", "it cannot be decided on the released table alone"
    if verdict.letters:
        some = ", ".join(shown(findings.letters[i]) for i in verdict.broken[:3])
        more = ", …" if verdict.letters > 3 else ""
        many = f"{verdict.letters:,} letters break" if verdict.letters > 1 else "1 letter breaks"
        return "BROKEN", f"{many} it{how}, with {verdict.records:,} records: {some}{more}"
    if not verdict.holds:
        return "BROKEN", f"the table does not{value}"
    if verdict.of_letters:
        return "holds", f"every letter satisfies it{how}"
    return "holds", f"the table does{value}"


def notes(findings: Findings) -> list[str]:
    """Return the notes, with those on the intervals."""
    both = {"I(W; X)": findings.before, _released(findings): findings.after}
    return [*findings.notes, *(f"{name}: {of.note}" for name, of in both.items() if of.note)]


def measured(findings: Findings) -> list[list[str]]:
    """Return the header and a row for each measure that is none of leakage."""
    others = [of for of in findings.measures.values() if not isinstance(of, Leaked)]
    return [["measure", *COLUMNS], *map(_row, others)]


def leaked(findings: Findings) -> list[list[str]]:
    """Return the header and a row for each measure of leakage: between nothing and everything."""
    compared = any(not math.isnan(of.original) for of in findings.leaks)
    ends = ["nothing", *(["original"] if compared else []), "everything"]
    rows = [[*_row(of), *(number(getattr(of, end)) for end in ends)] for of in findings.leaks]
    return [["leakage", *COLUMNS, *ends], *rows]


def _row(of: Measure) -> list[str]:
    """Return a measure's title, its worst, how many letters and records are, and its average."""
    counts = (f"{of.letters:,}", f"{of.records:,}")
    return [of.title, number(of.worst), *counts, number(of.average)]


def meanings(findings: Findings) -> dict[str, str]:
    """Say what is in the rows and columns of leakage."""
    w = findings.released.names[0]
    return {
        **{of.title: of.leakage.meaning for of in findings.leaks},
        "average": "what leaks in all",
        "nothing, everything": f"what would if nothing were released, and if {w} itself were",
    }


def text(findings: Findings) -> str:
    """Return the audit as lines for a terminal."""
    lines = ["audit of a released table"]
    lines += [f"  {padded(name, 13)}  {words}" for name, words in facts(findings).items()]
    for rows in (measured(findings), leaked(findings)):
        lines += ["", *(f"  {name:<37} {_in_columns(cells)}" for name, *cells in rows)]
    lines += ["", *(f"  {name:<37} {words}" for name, words in meanings(findings).items())]
    conditions = conclusions(findings)
    lines += [""] * bool(conditions)
    lines += [f"  {stands:<6}  {name}: {words}" for name, stands, words in conditions]
    lines += [f"  note: {note}" for note in notes(findings)]
    return "\n".join(map(printable, lines))


def _in_columns(cells: Sequence[str]) -> str:
    widths = (9, 8, 8, 9, *[10] * (len(cells) - len(COLUMNS)))
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


# ---- as a picture, in the layout of Bezzi's Fig. 2 ---------------------------------------


def drawn(findings: Findings, figure: Figure | None = None) -> Figure:
    """Draw the average against its bounds, and I1 and I2 of the letters."""
    import matplotlib as mpl

    if figure is None:  # one that a notebook shows; pyplot must not begin within the context
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=SIZE, layout="constrained")
    with mpl.rc_context(style.HOUSE):
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
        return style.inline_svg(figure, _described(findings))


def _described(findings: Findings) -> str:
    i1, i2 = findings.measures["I1"], findings.measures["I2"]
    bounds = "; ".join(f"{name} = {c.bound:.3g}" for name, c in findings.averages.items())
    return (
        f"I(W; X̃) = {findings.after.plugin:.3g} {findings.units} on average"
        f"{' against ' + bounds if bounds else ''}. Per released letter I1 goes from "
        f"{i1.values.min():.3g} to {i1.values.max():.3g} and I2 from {i2.values.min():.3g} to "
        f"{i2.values.max():.3g}."
    )


# ---- as a page that needs nothing else ---------------------------------------------------


def html(findings: Findings, *, document: bool = True) -> str:
    """Return the audit as a page with its style and picture inside, or for a page without them."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    source = files("cvxprivacy_sdc.auditing").joinpath("audit.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    return template.render(
        document=document,
        names=findings.released.names,
        facts=list(facts(findings).items()),
        conclusions=conclusions(findings),
        measures=measured(findings),
        leaks=leaked(findings),
        meanings=list(meanings(findings).items()),
        picture=svg(findings) if document else "",
        columns=list(LISTED),
        worst={findings.measures[name].title: _worst(findings, name) for name in LISTS},
        notes=notes(findings),
    )


def _worst(findings: Findings, measure: str) -> list[list[Any]]:
    """Return the worst letters of a measure, what is measured of them, and their commonest W."""
    counts, rows = findings.laws.released.joint, []
    for i in findings.measures[measure].order[:SHOWN]:
        values = [number(float(findings.measures[name].values[i])) for name in LISTED.values()]
        most = int(counts[:, i].argmax())
        share = f"{shown(findings.released.w[most])}: {counts[most, i] / counts[:, i].sum():.0%}"
        rows.append([shown(findings.letters[i]), *values, share])
    return rows
