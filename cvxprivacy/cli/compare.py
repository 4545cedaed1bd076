"""``cvxprivacy compare``: masking methods beside the certified optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from cvxprivacy.cli.common import reading_of, say_json, table_options, told
from cvxprivacy.errors import InputError

__all__ = ["compare"]

DEFAULTS = (
    "mdav=3,10,30,100", "mu-approx=3,10,30,100", "noise=0.1,0.3,0.6,1", "rank-swapping=2,5,15,50"
)  # fmt: skip
PICTURES = (".pdf", ".png", ".svg")


@click.command()
@click.argument("table", type=click.Path())
@click.option(
    "--sensitive",
    multiple=True,
    required=True,
    metavar="COLUMN[,…]",
    help="Confidential column W, or several.",
)
@click.option(
    "--key",
    multiple=True,
    required=True,
    metavar="COLUMN[,…]",
    help="Columns X of numbers, which are masked.",
)
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
@click.option("--cells", type=int, default=64, show_default=True, help="Cells of X at most.")
@click.option("--classes", type=int, default=8, show_default=True, help="Classes of W at most.")
@click.option("--units", type=click.Choice(["bits", "nats"]), default="bits", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of random methods.")
@click.option("--picture", type=click.Path(), help="Risk against distortion (.png, .pdf, .svg).")
@click.option("--out", type=click.Path(), help="The table of results, as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options
@told
def compare(table: str, **options: Any) -> None:
    """Measure what masking methods leak and lose on TABLE, beside the certified optimum.

    Nothing is released: the methods are applied, measured, and thrown away.  The optimum is proved
    for releases that see X's cell alone; a method's risk is counted from one table, and may lie on
    either side of it.
    """
    from cvxprivacy.cli.release import columns_named, writable
    from cvxprivacy.cli.tables import open_table
    from cvxprivacy.files import whole_file
    from cvxprivacy.microdata.compare import compare as compared

    masked = [_named(text, "--masked", "mine=masked.csv") for text in options["masked"]]
    targets = {name: options[name] for name in ("picture", "out")}
    writable(targets, table, *(path for _, path in masked))
    picture, out = options["picture"], options["out"]
    if picture is not None and Path(picture).suffix.lower() not in PICTURES:
        remedy = f"end it with one of {', '.join(PICTURES)}"
        raise InputError("--picture", f"{picture} is no kind of picture", remedy, value=picture)
    given = options["method"] or (() if masked else DEFAULTS)
    seed = options["seed"]
    if seed < 0:
        raise InputError("--seed", f"{seed}", "pass a whole number ≥ 0", value=seed)
    methods: dict[str, Any] = _methods(given, seed)
    reading = reading_of(options)
    opened = open_table(table, reading)
    sensitive, key = (columns_named(options[name], opened.header) for name in ("sensitive", "key"))
    frame = _frame(opened, [*sensitive, *key])
    for name, path in masked:
        if name in methods:
            raise InputError("--masked", f"two curves are called {name!r}", "name another")
        methods[name] = _frame(open_table(path, reading), key)
    found = compared(
        frame,
        methods,
        sensitive=sensitive,
        key=key,
        cells=options["cells"],
        classes=options["classes"],
        units=options["units"],
        seed=seed,
    )
    with ExitStack() as files:
        if out is not None:
            file = files.enter_context(whole_file(out))
            found.to_frame().to_csv(file, index=False, lineterminator="\n")
        if picture is not None:
            kind = Path(picture).suffix[1:].lower()
            _draw(found, files.enter_context(whole_file(picture, binary=True)), kind)
    if options["as_json"]:
        say_json(
            {
                "units": found.units,
                "records": found.source.records,
                "cells": len(found.source.x),
                "classes": len(found.source.w),
                "information": found.information,
                "within": found.within,
                "points": found.to_frame().to_dict(orient="records"),
                "frontier": [
                    {"distortion": found.within + float(s.distortion), "lower": s.lower,
                     "upper": s.upper, "status": s.status} for s in found.frontier
                ],
                "qglb": [{"distortion": d, "lower": s.lower} for d, s in found.gaussian.items()],
                "entropy": found.entropy,
                "files": targets,
            }
        )  # fmt: skip
        return
    click.echo(found)
    for name, path in targets.items():
        if path is not None:
            click.echo(f"{path}: {'the table' if name == 'out' else 'risk against distortion'}")


def _named(text: str, option: str, example: str) -> tuple[str, str]:
    name, mark, rest = text.partition("=")
    if not (name and mark and rest):
        raise InputError(option, f"{text!r}", f"write it like {example}", value=text)
    return name, rest


def _methods(given: Sequence[str], seed: int) -> dict[str, dict[str, Any]]:
    """Return the curves that the options name."""
    if not given:
        return {}
    try:
        from cvxprivacy.microdata import masking
    except ImportError as error:
        remedy = "pip install 'cvxprivacy[masking]', or pass tables with --masked"
        raise InputError("--method", str(error), remedy) from None
    known: dict[str, Callable[..., Any]] = {
        "mdav": masking.MDAV,
        "mu-approx": masking.MuApprox,
        "hansen-mukherjee": masking.HansenMukherjee,
        "rank-swapping": lambda p: masking.RankSwapping(p, random_state=seed),
        "noise": lambda s: masking.AdditiveNoise(s, random_state=seed),
        "correlated-noise": lambda s: masking.AdditiveNoise(
            s, correlated=True, random_state=seed
        ),
    }  # fmt: skip
    found: dict[str, dict[str, Any]] = {}
    for text in given:
        name, values = _named(text, "--method", "mdav=3,10,30")
        plain = name.removeprefix("scaled-")
        if plain not in known:
            remedy = f"use one of {', '.join(known)}, or scaled- before it"
            raise InputError("--method", f"{name!r} is unknown", remedy, value=name)
        curve = {}
        for value in values.split(","):
            try:
                number = float(value)
            except ValueError:
                problem = f"{value!r} of {name} is no number"
                remedy = "write it like mdav=3,10,30"
                raise InputError("--method", problem, remedy, value=value) from None
            made = known[plain](number)
            curve[value.strip()] = made if plain == name else masking.Rescaled(made)
        found.setdefault(name, {}).update(curve)  # named twice, one curve
    return found


def _frame(opened: Any, names: Sequence[str]) -> Any:
    """Return columns of an opened table as a pandas frame."""
    from cvxprivacy.validation import present

    for name in names:
        present(name, opened.header, opened.path.name)
    frame = opened.frame(names)
    return frame if hasattr(frame, "set_axis") else frame.select(*names).df()


def _draw(found: Any, file: Any, kind: str) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(9, 6), layout="constrained")
    found.draw(ax).legend(fontsize=9)
    figure.savefig(file, format=kind, dpi=150)
    plt.close(figure)
