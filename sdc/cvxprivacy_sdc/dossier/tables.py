"""The tables of a dossier: the one that was drawn, counted and set beside its original."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw, pd
from cvxprivacy.tables.engines import as_narwhals, python_values
from cvxprivacy.tables.labels import shown
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy_sdc.auditing.findings import RISK, Measure, implied_bounds
from cvxprivacy_sdc.dossier.provenance import Asked, Facts, Kept
from cvxprivacy_sdc.dossier.secrecy import Guard
from cvxprivacy_sdc.dossier.words import extended, rounded

if TYPE_CHECKING:
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.release.channel import Channel
    from cvxprivacy_sdc.auditing import Audit

__all__ = ["FEWEST", "Drawn", "counted_letters", "measures", "uncertainty"]

COARSE = 2  # digits of a group's divergence, off which not every count can be read
FEWEST = 10  # records of a group, under which nothing is told of what they are: of one it tells W
MOST_PAIRS = 5_000_000  # records of which both versions are held in memory
MOST_LETTERS = 600  # of a channel whose figures are computed in seconds
DRAWS = 200  # of the bootstrap
SEED = 0  # of the same: a report made twice says the same
_UNFIGURED = (
    "computed of a key of fewer cells, and of records that were drawn one by one, or dealt out in "
    "whole counts, alone"
)


@dataclass(frozen=True)
class Drawn:
    """What is known of the drawn table.

    Attributes
    ----------
    audit : Audit or None
        Its groups against the original; None where nothing was drawn, or it cannot be read again.
    changed, losses : dict or None
        Of its cells beside the original ones.
    quality : dict or None
        Of its figures beside the original ones.
    left_out : dict of str to str
        Why sections of the report are not known.
    """

    audit: Audit | None = None
    changed: dict[str, Any] | None = None
    losses: dict[str, Any] | None = None
    quality: dict[str, Any] | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, asked: Asked, frame: Any, source: DiscreteSource, criteria: Sequence[Any], kept: Kept,
        units: str, channel: Channel | None,
    ) -> Drawn:  # fmt: skip
        """Read the table that was written under ``--out`` by a channel, and count it."""
        from cvxprivacy_sdc.auditing import audit

        section = "Groups, changed cells and loss"
        if "out" not in kept.results:
            return cls(left_out={section: "no table was drawn"})
        if why := kept.unread("out"):
            return cls(left_out={section: f"the released table {why}"})
        schema = source.schema
        assert schema is not None
        names = [*schema.columns, *([schema.weights] if schema.weights else [])]
        there = [name for name in names if name not in asked.opened.dropped]
        binned = {name: of for name, of in schema.bins.items() if name in schema.sensitive}
        recodings: dict[str, Any] = {"bins": schema.bins, "groups": schema.groups}
        # what misses a value in the release is suppressed: those that were dropped are not in it
        before = schema.counted_records(frame)
        with kept.lent("out") as path:
            after = released_table(path, schema).frame(there, binned=binned)
            if asked.opened.shuffle is not None:
                after = asked.opened.shuffle.undone(after)
            if len(there) < len(names):
                after = _beside(after, before, there, [n for n in names if n not in there])
            pairs = paired(before, after, schema)
            audited = audit(
                before, after, key=list(schema.key), sensitive=list(schema.sensitive),
                criteria=criteria, **recodings, missing="level",
                reference="released", bootstrap=DRAWS, seed=SEED, units=units,
                weights=schema.weights,
            )  # fmt: skip
            figures = None if channel is None else quality_of(before, after, channel)
        if pairs is None:
            why = "the records of both tables cannot be set side by side in memory"
            return cls(audited, left_out={"Changed cells and loss": why})
        lost = {"Figures before and after": _UNFIGURED} if figures is None else {}
        return cls(audited, changed(*pairs), losses(*pairs), figures, lost)


def _beside(released: Any, original: Any, there: Sequence[str], lacking: Sequence[str]) -> Any:
    """Return a released table with the columns that it lacks, of the same records in order."""
    after = as_narwhals(released).lazy().select(*there).collect().to_pandas()
    before = as_narwhals(original).lazy().select(*lacking).collect().to_pandas()
    return pd.concat([after.reset_index(drop=True), before.reset_index(drop=True)], axis=1)


def released_table(
    path: str | os.PathLike[str], schema: TableSchema, typed: Mapping[str, Any] | None = None
) -> Any:
    """Open a released table as the original was read; bands stand in place of numbers.

    ``typed`` is how the user says that it is read.
    """
    from cvxprivacy_sdc.formats.table_files import open_table

    reading = dict(schema.reading)
    if "numbers" in reading:
        recoded = {*schema.key} & {*schema.bins, *schema.groups}
        reading["numbers"] = [name for name in reading["numbers"] if name not in recoded]
    return open_table(path, typed, recorded=reading)


def quality_of(before: Any, after: Any, channel: Channel) -> dict[str, Any] | None:
    """Return how far figures are from the original's, by kind; None where that is not known."""
    from cvxprivacy_sdc.utility.quality import quality

    if len(channel.inputs) > MOST_LETTERS:
        return None
    try:
        figures = quality(before, after, channel)
    except InputError:  # a channel that is not counted so, as that of a sequel is
        return None
    names = ("figures", "determined", "error", "standard_error", "pram_error",
             "pram_standard_error")  # fmt: skip
    return {
        "changed": figures.changed,
        "information": figures.information,
        "pram_information": figures.pram_information,
        "rows": [
            {"kind": kind, **{name: each[name] for name in names}}
            for kind, each in figures.summary.items()
        ],
    }


# ---- both versions of each record --------------------------------------------------------


def paired(
    original: Any, released: Any, schema: TableSchema
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return both versions of the key of each record, None where they cannot be set side by side.

    Those of the original have to be the records that were counted, in their order.
    """
    before, after = _collected(original, schema.key), _collected(released, schema.key)
    if before is None or after is None or len(before) != len(after):
        return None
    return (
        _of_objects({name: schema.letters(before, [name]) for name in schema.key}),
        _of_objects({name: python_values(after[name]) for name in schema.key}),
    )


def _of_objects(columns: Mapping[str, Any]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def _collected(frame: Any, names: Sequence[str]) -> nw.DataFrame[Any] | None:
    """Return columns in memory, None if they are too long for it."""
    lazy = as_narwhals(frame).lazy().select(*names)
    size = lazy.select(nw.len()).collect().item()
    return None if size > MOST_PAIRS else lazy.collect()


def changed(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
    """Count the records whose cell is another one: in each column, and in any."""
    unlike = {
        name: np.array([a != b for a, b in zip(before[name], after[name], strict=True)])
        for name in before
    }

    def row(flags: Any) -> dict[str, Any]:
        return {"records": int(flags.sum()), "share": rounded(float(flags.mean()))}

    return {
        "records": len(before),
        "columns": [{"column": name, **row(flags)} for name, flags in unlike.items()],
        "any": row(np.logical_or.reduce(list(unlike.values()))),
    }


def losses(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
    """Measure what key columns have lost as categories."""
    from cvxprivacy_sdc.loss import categorical_loss

    loss = categorical_loss(before, after)
    return {
        "columns": [
            {"column": name, "changed": rounded(changed), "uncertainty": rounded(uncertainty),
             "marginal": rounded(marginal)}
            for name, changed, uncertainty, marginal in zip(
                loss.columns, loss.changed, loss.uncertainty, loss.marginals, strict=True
            )
        ],
        "parts": {name: rounded(part) for name, part in loss.parts.items()},
        "total": rounded(loss.total),
    }  # fmt: skip


# ---- groups ------------------------------------------------------------------------------


def counted_letters(
    audit: Audit, criteria: Sequence[Any], labels: Mapping[str, Mapping[Any, str]]
) -> dict[str, Any]:
    """Return every released letter with its records and what it reveals, the worst first.

    What it reveals is D(p(w | x̂) ‖ p(w)), to two digits, and of ten records or more alone.
    ``labels`` has what codes of a column are called.
    """
    ks = [float(c.value) for c in criteria if c.counts_records and c.of_table]
    divergence = implied_bounds(criteria, 0.0, audit.units).get("t")
    measure, sizes = audit.measures["I1"], audit.released.joint.sum(axis=0)
    schema = audit.released.schema
    assert schema is not None
    cells = audit.letters if len(schema.key) > 1 else [(letter,) for letter in audit.letters]
    large = [i for i in measure.order if sizes[i] >= FEWEST]
    small = sorted(i for i in measure.order if sizes[i] < FEWEST)
    return {
        "columns": list(schema.key),
        "unit": audit.units,
        "average": rounded(audit.after.plugin),
        "bounds": {"records": rounded(max(ks, default=None)), "risk": rounded(divergence)},
        "rows": [
            {
                "key": [
                    _labelled(part, labels.get(name, {}))
                    for name, part in zip(schema.key, parts, strict=True)
                ],
                "records": int(sizes[i]),
                "risk": rounded(float(measure.values[i]), COARSE) if sizes[i] >= FEWEST else None,
            }
            for i, parts in ((i, cells[i]) for i in (*large, *small))
        ],
    }


def _labelled(part: Any, labels: Mapping[Any, str]) -> str:
    """Return a value as people read it, a code behind what it is called."""
    called = labels.get(part) if isinstance(part, int | float | str) else None
    return shown(part) if called is None else f"{called} ({shown(part)})"


def measures(audit: Audit, guard: Guard) -> Facts:
    """Return every measure at its worst group: of those of ten records or more, but for sizes."""
    rows = []
    for name, measure in audit.measures.items():
        large = measure if name in _OF_SIZES else _of_large_groups(measure)
        if large is None:
            continue
        # of the same groups, and coarse: off the average of all one would read the others
        worst, average = (
            extended(number, 4 if large is measure else COARSE)
            for number in (large.worst, large.average)
        )
        rows.append(
            {"measure": large.title, "worst": worst, "groups": large.letters,
             "records": large.records, "average": average}
        )  # fmt: skip
    return {"rows": rows, "notes": guard.kept(audit.all_notes)}


_OF_SIZES = ("k", RISK)  # which tell how many records a group has, as the released table does


def _of_large_groups(measure: Measure) -> Measure | None:
    """Return a measure of the groups whose records are too many to be told apart by it."""
    large = measure.sizes >= FEWEST
    if not large.any():
        return None
    parts = {name: getattr(measure, name)[large] for name in ("values", "sizes", "masses")}
    return replace(measure, **parts)


def uncertainty(audit: Audit | None, *, chosen: bool = False) -> Facts:
    """Return how far the information that was counted is known.

    Of a key whose groups were ``chosen`` by the same records no formula knows it.
    """

    def estimate(name: str, of: Any) -> Facts:
        numbers = ("bias", "remainder", "corrected", "lower", "upper")
        estimates: Facts = {n: None if chosen else rounded(getattr(of, n)) for n in numbers}
        draws, note = of.draws, of.note
        if chosen:
            draws, note = 0, "none, as the groups of the key were chosen by these records"
        return {"of": name, "counted": rounded(of.plugin), **estimates, "level": of.level,
                "draws": draws, "note": note}  # fmt: skip

    rows = []
    if audit is not None:
        alone = audit.before is audit.after
        rows = [estimate("the original table, I(W; X)", audit.before)]
        rows += [] if alone else [estimate("the released table, I(W; X̂)", audit.after)]
    return {"rows": rows}
