"""What was drawn, beside what it was drawn from: letters, changes, and loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from cvxprivacy.microdata.audit.findings import implied_bounds
from cvxprivacy.tables.engines import as_narwhals, python_values
from cvxprivacy.tables.labels import shown
from cvxprivacy.tables.schema import TableSchema

if TYPE_CHECKING:
    from cvxprivacy.microdata.audit import Audit

__all__ = [
    "INFINITE",
    "Pairs",
    "changed",
    "counted_letters",
    "extended",
    "losses",
    "paired",
    "released_table",
    "rounded",
]

DIGITS = 4
COARSE = 2  # digits of a group's divergence, off which not every count can be read …
FEWEST = 10  # … and the records under which it is not told: of one record it tells W
INFINITE = "infinite"  # which JSON has no number for
MOST_PAIRS = 5_000_000  # records of which both versions are held in memory


@dataclass(frozen=True)
class Pairs:
    """Key letters of each released record, before and after, by column."""

    before: Mapping[str, list[Any]]
    after: Mapping[str, list[Any]]
    records: int


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Return a number to so many digits, None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{float(value):.{digits}g}")


def extended(value: float, digits: int = DIGITS) -> float | str | None:
    """Return a number to so many digits, or that it is infinite; None for none."""
    return INFINITE if math.isinf(value) else rounded(value, digits)


def released_table(path: Path, schema: TableSchema) -> Any:
    """Open a released table as the original was read; bands stand in place of numbers."""
    from cvxprivacy.cli.table_files import open_table

    reading = dict(schema.reading)
    if "numbers" in reading:
        recoded = {*schema.key} & {*schema.bins, *schema.groups}
        reading["numbers"] = [name for name in reading["numbers"] if name not in recoded]
    return open_table(path, None, recorded=reading)


def paired(original: Any, released: Any, schema: TableSchema) -> Pairs | None:
    """Return both versions of the key of each record, None where they cannot be set side by side.

    Those of the original have to be the records that were counted, in their order.
    """
    before, after = _collected(original, schema.key), _collected(released, schema.key)
    if before is None or after is None or len(before) != len(after):
        return None
    return Pairs(
        {name: schema.letters(before, [name]) for name in schema.key},
        {name: python_values(after[name]) for name in schema.key},
        len(before),
    )


def _collected(frame: Any, names: Sequence[str]) -> nw.DataFrame[Any] | None:
    """Return columns in memory, None if they are too long for it."""
    lazy = as_narwhals(frame).lazy().select(*names)
    size = lazy.select(nw.len()).collect().item()
    return None if size > MOST_PAIRS else lazy.collect()


def changed(pairs: Pairs) -> dict[str, Any]:
    """Count the records whose cell is another one: in each column, and in any."""
    unlike = {
        name: np.array([a != b for a, b in zip(pairs.before[name], pairs.after[name], strict=True)])
        for name in pairs.before
    }
    anywhere = np.logical_or.reduce(list(unlike.values()))

    def row(flags: Any) -> dict[str, Any]:
        return {"records": int(flags.sum()), "share": rounded(float(flags.mean()))}

    return {
        "records": pairs.records,
        "columns": [{"column": name, **row(flags)} for name, flags in unlike.items()],
        "any": row(anywhere),
    }


def losses(pairs: Pairs) -> dict[str, Any]:
    """Measure what numeric key columns have lost as numbers, and all of them as categories."""
    import pandas as pd

    from cvxprivacy.sdc.loss import categorical_loss

    before, after = (
        pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in side.items()})
        for side in (pairs.before, pairs.after)
    )
    numeric = [n for n in pairs.before if _numeric(pairs.before[n]) and _numeric(pairs.after[n])]
    loss = categorical_loss(before, after)
    rows = zip(loss.columns, loss.changed, loss.uncertainty, loss.marginals, strict=True)
    document: dict[str, Any] = {
        "categorical": {
            "columns": [
                {"column": name, "changed": rounded(a), "uncertainty": rounded(b),
                 "marginal": rounded(c)}
                for name, a, b, c in rows
            ],
            "total": rounded(loss.total),
        },
        "numeric": None,
    }  # fmt: skip
    if numeric:
        document["numeric"] = _numeric_losses(
            before[numeric].astype(float), after[numeric].astype(float)
        )
    return document


def _numeric_losses(before: Any, after: Any) -> dict[str, Any]:
    """Return Table 1 of Mateo-Sanz et al. and the probabilistic losses."""
    from cvxprivacy.sdc.loss import information_loss, probabilistic_loss

    loss, pil = information_loss(before, after), probabilistic_loss(before, after)
    return {
        "columns": list(before.columns),
        "table": [
            {"compared": what, **{how.replace(" ", "_"): rounded(v) for how, v in row.items()}}
            for what, row in loss.table.items()
        ],
        "parts": {name: rounded(value) for name, value in loss.parts.items()},
        "probabilistic": {name: rounded(value) for name, value in pil.parts.items()},
        "probabilistic_total": rounded(pil.total),
    }


def _numeric(values: Sequence[Any]) -> bool:
    return all(
        isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values
    )


def counted_letters(audit: Audit, criteria: Sequence[Any]) -> dict[str, Any]:
    """Return every released letter with its records and what it reveals, the worst first.

    What it reveals is D(p(w | x̂) ‖ p(w)), to two digits, and of ten records or more alone: who
    knows the shares of W could read its counts off more.
    """
    ks = [float(criterion.value) for criterion in criteria if criterion.counts_records]
    divergence = implied_bounds(criteria, 0.0, audit.units).get("t")
    measure, sizes = audit.measures["I1"], audit.released.joint.sum(axis=0)
    schema = audit.released.schema
    assert schema is not None
    large = [i for i in measure.order if sizes[i] >= FEWEST]
    small = sorted(i for i in measure.order if sizes[i] < FEWEST)
    return {
        "columns": list(schema.key),
        "unit": audit.units,
        "average": rounded(audit.after.plugin),
        "bounds": {
            "records": rounded(max(ks, default=None)),
            "risk": rounded(divergence),
        },
        "rows": [
            {
                "key": [shown(part) for part in _parts(audit.letters[i])],
                "records": int(sizes[i]),
                "risk": rounded(float(measure.values[i]), COARSE) if sizes[i] >= FEWEST else None,
            }
            for i in [*large, *small]
        ],
    }


def _parts(letter: Any) -> tuple[Any, ...]:
    return letter if isinstance(letter, tuple) else (letter,)
