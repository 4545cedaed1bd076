"""``cvxprivacy compare``: masking methods beside the certified optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.statements import options as shared
from cvxprivacy_sdc.statements.columns import columns_of, refuse_unknown
from cvxprivacy_sdc.statements.exits import note_reading, say
from cvxprivacy_sdc.statements.outputs import (
    Output,
    described,
    picture_format,
    refuse_unwritable,
    write_all,
)

__all__ = ["compare"]

DEFAULTS = (
    "mdav=3,10,30,100", "mu-approx=3,10,30,100", "noise=0.1,0.3,0.6,1", "rank-swapping=2,5,15,50"
)  # fmt: skip


@click.command(cls=shared.Grouped)
@click.argument("table", type=click.Path())
@shared.sensitive
@shared.key("of numbers, which are masked.")
@click.option(
    "--method",
    multiple=True,
    metavar="NAME=VALUE,…",
    help="A curve: mdav, mu-approx or hansen-mukherjee and group sizes k; rank-swapping and "
    "percentages p; noise or correlated-noise and standard deviations relative to the data's; "
    "scaled-… restores means and variances.  By default: " + ", ".join(DEFAULTS) + ".",
)
@click.option(
    "--masked",
    multiple=True,
    metavar="NAME=FILE",
    help="A table that was masked elsewhere, record for record; --masked alone adds no methods.",
)
@shared.leakage(
    "Measured of each table too, several times if you like: guessing-probability, "
    "hockey-stick:1.5, earth-mover, …"
)
@shared.units
@shared.file("--picture", "Risk against distortion (.png, .pdf, .svg).")
@shared.file("--out", "The table of results, as CSV.")
@shared.as_json()
@shared.force
@shared.reads_tables
def compare(
    table: str,
    sensitive: Sequence[str],
    key: Sequence[str],
    method: Sequence[str],
    masked: Sequence[str],
    picture: str | None,
    out: str | None,
    reading: dict[str, Any],
    **settings: Any,
) -> None:
    """Measure what masking methods leak and lose on TABLE, beside the certified optimum.

    Nothing is released: the methods are applied, measured, and thrown away.  The optimum is proved
    for releases that see X's cell alone; a method's risk is counted from one table, and may lie on
    either side of it.
    """
    from cvxprivacy_sdc.formats.shuffle import Shuffle
    from cvxprivacy_sdc.formats.table_files import open_table
    from cvxprivacy_sdc.utility.compare import compare as compared

    files = [shared.name_and_value(text, "--masked", "mine=masked.csv") for text in masked]
    targets = {"picture": picture, "out": out}
    refuse_unwritable(targets, table, *(path for _, path in files))
    kind = "" if picture is None else picture_format(picture)
    methods = _methods(method or (() if masked else DEFAULTS))
    opened = note_reading(open_table(table, reading))
    w, x = (
        columns_of(texts, opened.header, option)
        for option, texts in (("--sensitive", sensitive), ("--key", key))
    )
    frame = _frame(opened, [*w, *x])
    for name, path in files:
        if name in methods:
            raise InputError("--masked", f"two curves are called {name!r}", "name another")
        methods[name] = _frame(note_reading(open_table(path, reading)), x)
        if (order := Shuffle.beside(path)) is not None:  # it is compared record by record
            methods[name] = order.undone(methods[name])
    result = compared(frame, methods, sensitive=w, key=x, **settings)

    def write_table(file: IO[str]) -> None:
        result.to_frame().to_csv(file, index=False, lineterminator="\n")

    write_all(
        [
            Output("out", out, write_table),
            Output("picture", picture, lambda file: _draw(result, file, kind), binary=True),
        ]
    )
    words = {"out": "the table", "picture": "risk against distortion"}
    text = "\n".join([str(result), *described(targets, words)])
    say({**_document(result), "files": targets}, text)


def _document(result: Any) -> dict[str, Any]:
    """Return what a comparison found."""
    return {
        "units": result.units,
        "records": result.source.records,
        "cells": len(result.source.x),
        "classes": len(result.source.w),
        "information": result.information,
        "within": result.within,
        "leakage": {
            name: {"meaning": result.measures[name].meaning, **ends}
            for name, ends in result.ends.items()
        },
        "points": result.to_frame().to_dict(orient="records"),
        "frontier": [
            {"distortion": result.within + float(s.distortion), "lower": s.lower,
             "upper": s.upper, "status": s.status} for s in result.frontier
        ],
        "qglb": [{"distortion": d, "lower": s.lower} for d, s in result.gaussian.items()],
        "entropy": result.entropy,
    }  # fmt: skip


def _methods(texts: Sequence[str]) -> dict[str, Any]:
    """Return the curves that the options name: methods by their settings."""
    if not texts:
        return {}
    from cvxprivacy_sdc import masking

    makers: dict[str, Callable[..., Any]] = {
        "mdav": masking.MDAV,
        "mu-approx": masking.MuApprox,
        "hansen-mukherjee": masking.HansenMukherjee,
        "rank-swapping": lambda p: masking.RankSwapping(p, random_state=0),
        "noise": lambda s: masking.AdditiveNoise(s, random_state=0),
        "correlated-noise": lambda s: masking.AdditiveNoise(s, correlated=True, random_state=0),
    }  # fmt: skip
    curves: dict[str, Any] = {}
    for text in texts:
        name, values = shared.name_and_value(text, "--method", "mdav=3,10,30")
        plain = name.removeprefix("scaled-")
        if plain not in makers:
            remedy = f"use one of {', '.join(makers)}, or scaled- before it"
            raise InputError("--method", f"{name!r} is unknown", remedy, value=name)
        curve = curves.setdefault(name, {})  # named twice, one curve
        for value in values.split(","):
            problem = f"{value!r} of {name} is no number"
            made = makers[plain](
                shared.number_of(value, "--method", problem, "write it like mdav=3,10,30")
            )
            curve[value.strip()] = made if plain == name else masking.Rescaled(made)
    return curves


def _frame(opened: Any, names: Sequence[str]) -> Any:
    """Return columns of an opened table as a pandas frame."""
    refuse_unknown(opened.path.name, names, opened.header)
    frame = opened.frame(names)
    return frame if hasattr(frame, "set_axis") else frame.select(*names).df()


def _draw(result: Any, file: IO[bytes], kind: str) -> None:
    """Draw both pictures: of the tables cut into cells, and of the records as they are."""
    from matplotlib.figure import Figure

    letters = {"mdav": "k", "mu-approx": "k", "hansen-mukherjee": "k", "rank-swapping": "p",
               "noise": "σ", "correlated-noise": "σ"}  # fmt: skip
    letters |= {f"scaled-{name}": letter for name, letter in letters.items()}
    figure = Figure(figsize=(14, 7.5))  # whose axes stay where the labels were placed
    figure.subplots_adjust(left=0.05, right=0.99, top=0.95, bottom=0.21, wspace=0.11)
    left, right = figure.subplots(1, 2)
    left.set_title("tables cut into cells, beside the certified frontier", fontsize=11)
    right.set_title("records as they are, by nearest neighbours: estimates", fontsize=11)
    for ax, of in ((right, "records"), (left, "cells")):
        result.draw(ax, of=of, parameters=letters)
        ax.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
    figure.savefig(file, format=kind, dpi=150)
