"""Facts that a release and an audit have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier import provenance
from cvxprivacy.cli.dossier.secrecy import Guard, typed_command
from cvxprivacy.cli.dossier.tables import extended, rounded

if TYPE_CHECKING:
    import click

    from cvxprivacy.microdata.audit import Audit

__all__ = ["Asked", "Facts", "guard_of", "input_facts", "measures", "uncertainty", "worst_group"]

LISTED = 12  # values of a group
Facts = dict[str, Any]


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
    """

    arguments: Sequence[str]
    command: click.Command
    table: str
    opened: Any


def input_facts(asked: Asked, source: Any, guard: Guard, notes: Sequence[str], seed: Any) -> Facts:
    """Return where the numbers come from."""
    schema = source.schema
    reading = {k: v for k, v in schema.reading.items() if k not in ("na", "numbers")}
    return {
        "file": provenance.input_file(asked.table),
        "released": None,
        "records": source.records,
        "left_out": source.dropped,
        "confidential": {"columns": list(schema.sensitive), "values": len(source.w)},
        "key": {"columns": list(schema.key), "cells": len(source.x)},
        "columns": provenance.columns_of(asked.opened.header, schema),
        "recodings": [
            {
                "column": name,
                "intervals": len(bins.labels),
                "edges": None
                if name in schema.sensitive
                else [rounded(e, 12) if abs(e) < float("inf") else str(e) for e in bins.edges],
            }
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
        "when": provenance.now(),
        "versions": provenance.versions(),
        "command": typed_command(asked.arguments, asked.command, schema.sensitive),
        "seed": seed,
        "notes": guard.kept(notes),
    }


def _listed(groups: Any, guard: Guard) -> list[Facts]:
    """Return each group of a key column with how many values it has, and the first of them."""
    members: dict[str, list[str]] = {}
    for value, group in groups.groups.items():
        members.setdefault(str(group), []).append(value)
    return [
        {"name": name, "count": len(values), "values": guard.kept(values[:LISTED])}
        for name, values in members.items()
    ]


def guard_of(source: Any) -> Guard:
    """Return what knows the values of W; names and key letters are public."""
    schema, key = source.schema, [source.levels.get(name, []) for name in source.schema.key]
    return Guard(source.w, [*schema.columns, *(str(level) for levels in key for level in levels)])


def _flat(data: Any, prefix: str = "") -> Facts:
    """Return nested numbers by what they are called, level after level."""
    flat: Facts = {}
    for name, value in data.items():
        title = f"{prefix}{name}"
        if isinstance(value, dict):
            flat |= _flat(value, f"{title}, ")
        elif value is not None and value != "":
            flat[title] = rounded(value) if isinstance(value, float) else value
    return flat


def uncertainty(audit: Audit | None, guard: Guard, population: Any = None) -> Facts:
    """Return how far the information that was counted is known."""

    def estimate(of: Any) -> Facts:
        return {
            "counted": rounded(of.plugin), "bias": rounded(of.bias),
            "corrected": rounded(of.corrected), "lower": rounded(of.lower),
            "upper": rounded(of.upper), "level": of.level, "draws": of.draws, "note": of.note,
        }  # fmt: skip

    rows = []
    if audit is not None and audit.before is not audit.after:
        rows.append({"of": "the original table, I(W; X)", **estimate(audit.before)})
    if audit is not None:
        alone = audit.before is audit.after
        of = "the original table, I(W; X)" if alone else "the released table, I(W; X̂)"
        rows.append({"of": of, **estimate(audit.after)})
    return {"rows": rows, "population": guard.scalars(_flat(population or {}))}


def measures(audit: Audit, guard: Guard) -> Facts:
    """Return every measure of the groups at its worst."""
    rows = [
        {"measure": m.title, "worst": extended(m.worst), "groups": m.letters,
         "records": m.records, "average": extended(m.average)}
        for m in audit.measures.values()
    ]  # fmt: skip
    return {"rows": rows, "notes": guard.kept(audit.all_notes)}


def worst_group(audit: Audit) -> str:
    """Return the greatest divergence of a group, with its unit."""
    measure = audit.measures["I1"]
    return f"{measure.worst:.4g} {audit.units}"
