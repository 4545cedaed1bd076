"""``cvxprivacy release --noise``: numbers released through the optimal Gaussian rule."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

import click
import numpy as np
from click.core import ParameterSource

from cvxprivacy.errors import InputError
from cvxprivacy.formulations.quadratic_gaussian import QuadraticGaussian
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import number
from cvxprivacy_sdc.copied.joint_disclosure import copied_disclosure
from cvxprivacy_sdc.copied.order import OrderTest
from cvxprivacy_sdc.copied.untouched import undoing
from cvxprivacy_sdc.dossier import report_outputs, report_targets
from cvxprivacy_sdc.dossier.provenance import Asked, Kept
from cvxprivacy_sdc.dossier.report import REPORTED, proved
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.formats.shuffle import release_shuffled
from cvxprivacy_sdc.formats.table_files import TextTable, open_table
from cvxprivacy_sdc.statements.columns import (
    columns_of,
    copied_columns,
    leave_out,
    remarks_on_dropped,
)
from cvxprivacy_sdc.statements.exits import CODES, arguments, note_reading, say
from cvxprivacy_sdc.statements.outputs import (
    Output,
    described,
    progress,
    refuse_unwritable,
    steps,
    write_all,
)

__all__ = ["release_noise"]

_REFUSED = (
    *("bins", "group", "hierarchy", "level", "top", "cells", "distortion", "criterion", "leakage"),
    *("weights", "missing", "encoder", "channel", "problem_out", "row_id", "draw"),
    *("untouched", "attack", "ensure", "suppress"),
)
LITTLE = 0.01  # share of a variance that hides little
_CAVEATS = (
    "the proof holds for second moments: the least I(W; X̂) of this budget if W and X were jointly "
    "Gaussian; what this release of another law leaks is not proved",
    "the budget is the mean share of the key columns' variances that is error",
    "the numbers released may lie where no record does, such as below 0",
    "what copied columns tell of the confidential ones is not measured with --noise",
)


def release_noise(table: str, options: Mapping[str, Any]) -> NoReturn:
    """Release numeric key columns of TABLE: the rule of least I(W; X̂) for Gaussian W and X.

    ``budget`` is the mean share of the key columns' variances that is error, D / |X| for columns
    of variance 1: Rebollo-Monedero et al. 2010, eq. (6) and Theorem 2.  Numbers are rounded to a
    power of ten of at most a hundredth of their error's standard deviation.
    """
    _refuse_others()
    reports = report_targets(options["report"])
    targets = {**{name: options[name] for name in ("out", "certificate")}, **reports}
    refuse_unwritable(targets, table, shuffled=options["shuffle"])
    share = _share(options["budget"])
    opened = note_reading(open_table(table, options["reading"], out=targets["out"]))
    columns = {
        role: columns_of(options[role], opened.header, f"--{role}") for role in ("sensitive", "key")
    }
    used = [*columns["key"], *columns["sensitive"]]
    drop, keep = options["drop"] or None, options["keep_columns"] or None
    leave_out(opened, drop, keep, key=columns["key"], used=used)
    opened.refuse_unwritable()
    key = columns["key"]
    schema = TableSchema(tuple(key), tuple(columns["sensitive"]))
    house = House.of(targets, table, always=options["shuffle"])
    house.follow(opened)
    opened.replaced = key
    copied = copied_columns(opened, schema)
    every = opened.frame([*schema.columns, *copied], binned=dict.fromkeys(schema.columns))
    frame = _numbers(every, [*columns["sensitive"], *key])
    source = GaussianSource.from_table(
        frame, sensitive=columns["sensitive"], key=key, standardize=True
    )
    leaks, _ = copied_disclosure(every, schema, opened.dropped, progress)
    undone = undoing(leaks, key)
    order = OrderTest.of(every, schema, dropped=opened.dropped, shuffled=options["shuffle"])
    problem = QuadraticGaussian(source, budget=share * len(key), units=options["units"])
    with steps() as on_step:
        solution = problem.solve(time_limit=options["time_limit"], progress=on_step)
    errors = _errors(solution, source, key)
    units = [error["unit"] for error in errors.values()]
    rounded: dict[str, list[float]] = {}

    def write(file: IO[bytes]) -> list[str]:
        released = solution.release.apply(frame, seed=options["seed"])
        rounded.update({n: rounded_to(released[n], u) for n, u in zip(key, units, strict=True)})
        with progress(opened.size, f"writing {Path(targets['out'] or '').name}") as written:
            return _write(opened, rounded, units, file, written)

    proof = solution.certificate.write
    kept = Kept([
        Output("out", targets["out"], write, binary=True),
        Output("certificate", targets["certificate"], proof, private=True),
    ])  # fmt: skip
    if options["shuffle"]:
        release_shuffled(opened, house, options["seed"])
    bare = [name for name, error in errors.items() if error["share"] < LITTLE]
    almost = [
        f"released almost as they are, as they tell little more of "
        f"{', '.join(columns['sensitive'])}: {', '.join(bare)}; their values may still identify "
        "records"
    ] * bool(bare)

    def facts() -> dict[str, Any]:
        from cvxprivacy_sdc.dossier.noise import noise_facts

        command = click.get_current_context().command
        asked = Asked(arguments(), command, table, opened, house)
        return noise_facts(
            asked, frame, columns, problem, solution, rounded or None, kept, almost, order,
            undone,
        )  # fmt: skip

    results = write_all([*kept.outputs, *report_outputs(reports, facts)], house)
    document = {"table": table, "records": source.records, **proved(solution), "errors": errors,
                "files": {n: p for n, p in targets.items() if p}}  # fmt: skip
    notes = [*order.lines, *(entry["words"] for entry in undone)]
    notes += remarks_on_dropped(opened, schema)
    document["notes"] = [*document["notes"], *_CAVEATS, *results.get("out", ()), *notes, *almost]
    document |= {"order": order.document(), "undone": undone}
    if opened.dropped:
        document["columns_dropped"] = list(opened.dropped)
    say(document, _text(document, str(solution), columns))
    sys.exit(CODES[solution.status])


def _share(budget: float | None) -> float:
    """Return the share of variance that is error, or say what to pass."""
    if budget is None:
        raise InputError("--budget", "none", "pass the share of variance that is error, as 0.2")
    share = number(budget, "budget", zero=False)
    if share > 1:
        remedy = "pass the share of variance that is error, at most 1"
        raise InputError("--budget", f"{share:g}", remedy, value=share)
    return share


def _errors(solution: Any, source: GaussianSource, key: Sequence[str]) -> dict[str, Any]:
    """Return the error of each column: its deviation, its share of the variance, its unit."""
    scales = source.scale[list(source.x)]
    shares = np.maximum(solution.error_covariance.diagonal(), 0.0)
    deviations = np.sqrt(shares) * scales
    return {
        name: {"deviation": float(d), "share": float(share), "unit": unit_of(d, scale)}
        for name, d, share, scale in zip(key, deviations, shares, scales, strict=True)
    }


def unit_of(deviation: float, scale: float) -> float:
    """Return the power of ten that numbers are rounded to: at most a hundredth of their error."""
    return float(10.0 ** math.floor(math.log10(max(deviation, 1e-6 * scale) / 100)))


def rounded_to(values: Any, unit: float) -> list[float]:
    """Return numbers as multiples of a power of ten, 0 without a sign."""
    digits = -round(math.log10(unit))
    return [round(float(v), digits) + 0.0 for v in values]


def _refuse_others() -> None:
    """Refuse the options that speak of letters, if they were typed."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        typed = context.get_parameter_source(name) is not ParameterSource.DEFAULT
        if name in _REFUSED and typed:
            remedy = "leave it out: numbers are released as numbers"
            raise InputError(parameter.opts[0], "does not apply with --noise", remedy)


def _numbers(frame: Any, names: Sequence[str]) -> Any:
    """Return columns of numbers in memory, as a pandas frame."""
    names = list(dict.fromkeys(names))
    if hasattr(frame, "dropna"):
        return frame[names]
    return frame.to_arrow_table().select(names).to_pandas()  # a DuckDB relation


def _write(
    opened: Any, rounded: Mapping[str, list[float]], units: Sequence[float], file: IO[bytes],
    written: Any,
) -> list[str]:  # fmt: skip
    """Write a table with new numbers in some columns; return what is to be said of it."""
    cells: dict[str, list[Any]] = dict(rounded)
    if isinstance(opened, TextTable):
        places = [max(0, -round(math.log10(unit))) for unit in units]
        cells = {
            name: [f"{v:.{d}f}".replace(".", opened.decimal or ".") for v in values]
            for (name, values), d in zip(rounded.items(), places, strict=True)
        }
    return opened.write(file, cells, None, written)


def _text(document: Mapping[str, Any], solved: str, columns: Mapping[str, list[str]]) -> str:
    """Return the facts of the release in plain words."""
    w, x = (", ".join(columns[role]) for role in ("sensitive", "key"))
    lines = [f"{document['table']}: {document['records']:,} records, W = {w}, X = {x}", solved]
    lines.append("error of each column: standard deviation, share of its variance, rounded to")
    lines += [
        f"  {name:<20} {e['deviation']:.4g}, {e['share']:.1%}, {e['unit']:g}"
        for name, e in document["errors"].items()
    ]
    lines += [f"note: {note}" for note in document["notes"] if f" {note}" not in solved]
    words = {
        "out": f"{document['records']:,} records",
        "certificate": f"the proof; it contains the covariance of {w} and {x}{{private}}",
        **dict.fromkeys(("report", "report, again"), REPORTED),
    }
    shuffled = document["order"]["shuffled"]
    return "\n".join([*lines, *described(document["files"], words, shuffled=shuffled)])
