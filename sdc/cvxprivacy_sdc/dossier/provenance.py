"""Where a dossier's numbers come from, and how a reader checks them.

Files and their sums, versions, the command, the seed; and the proof, verified on the spot.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy.files import blocks_of, file_sum, is_device
from cvxprivacy.tables.periods import Periods
from cvxprivacy_sdc.dossier.secrecy import KEPT_OUT, Guard, file_name, typed_command
from cvxprivacy_sdc.dossier.words import rounded
from cvxprivacy_sdc.formats.house import House
from cvxprivacy_sdc.statements.outputs import Output

__all__ = ["Asked", "Facts", "Kept", "input_facts", "input_file", "seed_of", "verification"]

Facts = dict[str, Any]

PACKAGES = ("cvxprivacy", "numpy", "scipy", "pandas", "narwhals", "python-flint", "matplotlib")
LISTED = 12  # values of a group
GONE = "not in the released table"  # what becomes of a column
_UNSAID = ("na", "numbers", "codes", "dates", "drop", "keep")  # of how a table was read
MOST_BYTES = 1 << 30  # of a released table that is read again
MOST_PROOF = 8 << 20  # bytes of a proof that is proved again while the report is made


# ---- what was asked, of which file -------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A command as it was typed.

    Attributes
    ----------
    arguments : sequence of str
        The command's name first.
    command : click.Command
    table : str
        Path of the original table.
    opened : TextTable or ParquetTable
        The same.
    house : House
        What stays in the house, of this table.
    """

    arguments: Sequence[str]
    command: click.Command
    table: str
    opened: Any
    house: House


def input_facts(
    asked: Asked, schema: Any, sizes: Mapping[str, int], guard: Guard, notes: Sequence[str],
    seed: Any,
) -> Facts:  # fmt: skip
    """Return where the numbers come from.

    ``sizes`` has the ``records`` that were counted, those ``left_out``, and of how many values
    ``w`` and ``x`` are.
    """
    reading = {k: v for k, v in schema.reading.items() if k not in _UNSAID}
    return {
        "file": asked.house.table,
        "house": asked.house.name,
        "released": None,
        "records": sizes["records"],
        "left_out": sizes["left_out"],
        "confidential": {"columns": list(schema.sensitive), "values": sizes["w"]},
        "key": {"columns": list(schema.key), "cells": sizes["x"]},
        "columns": _columns(asked.opened, schema),
        "recodings": [
            {"column": name, **_intervals(bins, name in schema.sensitive)}
            for name, bins in schema.bins.items()
        ],
        "groups": [
            {
                "column": name,
                "groups": None if name in schema.sensitive else _listed(groups, guard),
                "rest": None if groups.rest is None else str(groups.rest),
            }
            for name, groups in schema.groups.items()
        ],
        "missing": schema.missing,
        "reading": reading,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "command": typed_command(asked.arguments, asked.command, schema.sensitive),
        "seed": seed,
        "notes": guard.kept(notes),
    }


def input_file(path: str) -> Facts:
    """Return a released table's name without folder, its SHA-256, and its size."""
    size = Path(path).stat().st_size
    return {"name": file_name(path), "sha256": file_sum(path), "bytes": size}


def _columns(opened: Any, schema: Any) -> list[dict[str, str]]:
    """Return the columns of a table, each with its part in the release."""
    parts: Mapping[str, str] = {
        **dict.fromkeys(schema.sensitive, "confidential, copied"),
        **dict.fromkeys(schema.key, "key, released in perturbed form"),
        **dict.fromkeys(schema.side, "side information"),
        **({schema.weights: "survey weight, copied"} if schema.weights else {}),
    }
    dropped = {
        name: parts[name].replace("copied", GONE) if name in parts else GONE
        for name in opened.dropped
    }
    shown = {**dict.fromkeys(opened.header, "copied as it is"), **parts, **dropped}
    return [{"column": name, "part": shown[name]} for name in opened.header]


def _listed(groups: Any, guard: Guard) -> list[Facts]:
    """Return each group of a key column with how many values it has, and the first of them."""
    members: dict[str, list[str]] = {}
    for value, group in groups.groups.items():
        members.setdefault(str(group), []).append(value)
    return [
        {"name": name, "count": len(values), "values": guard.kept(values[:LISTED])}
        for name, values in members.items()
    ]


def seed_of(arguments: Sequence[str], *, balanced: bool = False) -> dict[str, bool]:
    """Return whether the seed was typed, and what else the draws depend on.

    ``balanced``: whether records were drawn together.
    """
    typed, row_id = (
        any(token == name or token.startswith(f"{name}=") for token in arguments)
        for name in ("--seed", "--row-id")
    )
    return {"given": typed, "row_id": row_id, "balanced": balanced}


# ---- what was written, and how it is checked ---------------------------------------------


@dataclass
class Kept:
    """The files of a command, as they are written: what a report on them needs to know.

    Attributes
    ----------
    outputs : list of Output
        To be written by ``outputs.write_all``, before the report on them.
    results : dict of str to Any
        What each write returned.
    """

    outputs: Sequence[Output]
    results: dict[str, Any] = field(default_factory=dict)
    _handles: dict[str, IO[Any] | None] = field(default_factory=dict)  # None of a device

    def __post_init__(self) -> None:
        self.outputs = [replace(output, write=self._noted(output)) for output in self.outputs]

    def _noted(self, output: Output) -> Any:
        def write(file: IO[Any]) -> Any:
            self.results[output.option] = output.write(file)
            file.flush()
            self._handles[output.option] = None if is_device(str(output.path)) else file
            return self.results[output.option]

        return write

    def files(self, house: House) -> list[dict[str, Any]]:
        """Return each file's option, name and sum, None for a device.

        What is for its owner alone tells the law: its sum is keyed.
        """
        rows = []
        for output in self.outputs:
            if output.option in self._handles:
                file, private = self._handles[output.option], output.private
                plain = None if file is None or private else file_sum(file.name)
                keyed = house.keyed(blocks_of(file.name)) if file is not None and private else None
                name = file_name(str(output.path))
                row = {"option": f"--{output.option}", "name": name}
                rows.append({**row, "sha256": plain, "keyed_sha256": keyed})
        return rows

    def unread(self, option: str, most: int = MOST_BYTES) -> str | None:
        """Return why a written file is not read again, None where it is."""
        file = self._handles[option]
        if file is None:
            return "was written to a device, and cannot be read again"
        size = os.fstat(file.fileno()).st_size
        return f"has {size:,} bytes, too many to be read again" if size > most else None

    @contextmanager
    def lent(self, option: str) -> Iterator[Path]:
        """Lend the path of a written file that has not its own name yet, but its ending.

        Raises
        ------
        InputError
            For a file that cannot be read again: nothing is written then.
        """
        file = self._handles[option]
        assert file is not None
        try:
            yield Path(file.name)
        except (OSError, InputError) as error:
            if isinstance(error, InputError) and file.name not in str(error):
                raise
            reason = getattr(error, "strerror", None) or getattr(error, "problem", error)
            name = next(str(o.path) for o in self.outputs if o.option == option)
            problem = f"{name} cannot be read again for the report ({reason})"
            remedy = "mend that, or leave out --report"
            raise InputError(f"--{option}", problem, remedy, value=name) from error


def verification(
    kept: Kept, asked: Asked, guard: Guard, sensitive: Sequence[str], *, sequel: bool = False
) -> Facts:
    """Return how the release is checked; a proof file of moderate size is verified on the spot.

    A proof of a ``sequel`` is tied to its tables by its problem, and new records have another.

    What the verifier prints is its own text; a line that names a confidential value is kept out.
    """
    from cvxprivacy_verifier.statement import reported
    from cvxprivacy_verifier.verify import disagreements

    paths = {output.option: output.path for output in kept.outputs if output.path}
    table, names = file_name(asked.table), {o: file_name(str(p)) for o, p in paths.items()}
    files = kept.files(asked.house)
    commands = [f"sha256sum {row['name']}" for row in files if row["sha256"] is not None]
    facts: Facts = {"commands": commands, "files": files, "verified": None, "says": []}
    if "certificate" not in names:
        return {**facts, "note": "no proof was written: pass --certificate proof.json"}
    proof = names["certificate"]
    problem = f" --problem {names['problem-out']}" if "problem-out" in names else ""
    tied = f" --table {table}{problem}" if problem or not sequel else ""
    commands.insert(0, f"cvxprivacy verify {proof}{tied}")
    if (another := names.get("certificate, new records")) is not None:
        asked_too = names.get("problem-out, new records")
        tied = "" if asked_too is None else f" --problem {asked_too}"
        commands.insert(1, f"cvxprivacy verify {another} --table {table}{tied}")
    if why := kept.unread("certificate", MOST_PROOF):
        note = f"the proof was not verified again while this report was made: it {why}"
        return {**facts, "note": note}
    with kept.lent("certificate") as path:
        document = json.loads(path.read_text(encoding="utf-8"))
    problems = disagreements(document)
    lines = [] if problems else reported(proof, document).splitlines()
    says = guard.kept((_without_edges(line, sensitive) for line in lines), numbers=False)
    note = "without --problem-out nothing ties the proof to the channels of earlier releases"
    note = note if sequel and not problem else ""
    return {**facts, "verified": not problems, "says": says, "note": note}


def _intervals(bins: Any, hidden: bool) -> dict[str, Any]:
    """Return what is said of bins; the edges of hidden ones are not."""
    if isinstance(bins, Periods):
        return {"unit": bins.unit}
    edges = [rounded(e, 12) if abs(e) < 1e12 else str(e) for e in bins.edges]
    return {"intervals": len(bins.labels), "edges": None if hidden else edges}


def _without_edges(line: str, sensitive: Sequence[str]) -> str:
    """Return a line of the verifier without the edges of the confidential columns' bins."""
    from cvxprivacy_verifier.wording import quoted

    parts = line.split("; ")
    for i, part in enumerate(parts):
        if any(part.startswith(f"{quoted(name)} in ") for name in sensitive):
            parts[i] = f"{part.partition(' from ')[0]} {KEPT_OUT}"
    return "; ".join(parts)
