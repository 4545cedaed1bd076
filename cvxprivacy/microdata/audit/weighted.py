"""The law of records with survey weights, beside the records themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import miller_madow, mutual_information
from cvxprivacy.sdc.risk.estimators import Information
from cvxprivacy.tables.engines import as_narwhals
from cvxprivacy.tables.values import MOST_CELLS
from cvxprivacy.validation import present

__all__ = ["COUNTED", "Laws", "estimated_of_weights", "weighted"]

COUNTED = "k and distinct ℓ are of records, all else is of the weighted law"


@dataclass(frozen=True, eq=False)
class Laws:
    """The two tables as they are measured: counts of records, or sums of their weights.

    Attributes
    ----------
    original, released : DiscreteSource
        With the letters of the counted tables, in their order.
    weights : str or None
        The column of the weights; None where records are counted.
    """

    original: DiscreteSource
    released: DiscreteSource
    weights: str | None = None


def weighted(frame: Any, source: DiscreteSource, weights: str) -> DiscreteSource:
    """Count a table again, with weights; every letter and every value must weigh something."""
    assert source.schema is not None
    present(weights, as_narwhals(frame).lazy().collect_schema().names(), "weights")
    if weights in source.schema.columns:
        problem = f"column {weights!r} named twice"
        raise InputError("weights", problem, "name each column once", value=weights)
    schema, levels = replace(source.schema, weights=weights), (source.w, source.x)
    law = DiscreteSource.from_schema(frame, schema, levels, most=MOST_CELLS)
    for axis, letters, name in ((0, source.x, source.names[1]), (1, source.w, source.names[0])):
        if idle := np.flatnonzero(law.joint.sum(axis=axis) == 0).tolist():
            problem = f"every record of {len(idle):,} of {len(letters):,} values of {name} weighs 0"
            remedy = "leave these records out, or give them weights"
            raise InputError("weights", problem, remedy, value=weights)
    return law


def estimated_of_weights(law: DiscreteSource, level: float, draws: int, units: str) -> Information:
    """Estimate I(W; X) of weighted records, whose bias is that of Kish's effective number."""
    plugin = mutual_information(law.joint, units=units)
    bias = miller_madow(law.joint, records=law.effective, units=units)
    note = "no interval is given of weighted records" if draws else ""
    return Information(plugin, bias, None, None, level, 0, units, note)
