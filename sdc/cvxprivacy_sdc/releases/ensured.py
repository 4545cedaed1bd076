"""A table that a channel draws which was made of another one: judged, and its groups merged.

Nothing of the first table's design is known here, and nothing is proved of the law.  What is asked
is decided on the records that are released, and the share of changed records is what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.release.channel import Channel
from cvxprivacy_sdc.errors import BrokenTableError
from cvxprivacy_sdc.releases.merging import Merging, merging
from cvxprivacy_sdc.releases.merging_program import least_merging
from cvxprivacy_sdc.whole_counts.nearness import steps_apart
from cvxprivacy_sdc.whole_counts.tally import DrawnCounts, drawn_counts

__all__ = ["Ensured", "ensured"]

_SECONDS = 60.0  # for the program over mergings


@dataclass(frozen=True, eq=False)
class Ensured:
    """A drawn table that satisfies what is asked.

    Attributes
    ----------
    channel : Channel
        What draws it, with the same seed.
    counts : DrawnCounts
        Of the table.
    before, verdicts : list of Verdict
        On each criterion, as it was drawn and as it is released.
    merging : Merging
        Of which groups; of none where all criteria held.
    changed : int
        Records whose key is changed, by the draw or by merging.
    lower : int or None
        No merging of the groups that were drawn changes fewer, by proof; None where no program
        states the criteria.
    optimal : bool
        Whether the solver claims that none changes fewer.
    """

    channel: Channel
    counts: DrawnCounts
    before: list[Verdict]
    verdicts: list[Verdict]
    merging: Merging
    changed: int
    lower: int | None = None
    optimal: bool = False


def ensured(
    channel: Channel, frame: Any, criteria: Sequence[Criterion], *,
    seed: int, row_id: Any = None, draw: str = "independent", units: str = "bits",
) -> Ensured:  # fmt: skip
    """Draw a table in memory, and merge groups until it satisfies the criteria.

    Parameters
    ----------
    channel : Channel
        Of a table that was counted with the same schema.
    frame : frame
        With the confidential columns of the channel's schema.
    criteria : sequence of Criterion
    seed, row_id, draw
        As of :meth:`cvxprivacy.Channel.apply`.
    units : {"bits", "nats"}

    Raises
    ------
    InputError
        For a criterion that no table can be judged by.
    BrokenTableError
        If no merging satisfies them.
    """
    schema = channel.schema
    assert schema is not None
    source = DiscreteSource.from_schema(frame, schema)
    outputs, kept = channel.outputs, schema.counted_records(frame)
    counts = drawn_counts(channel, kept, source, seed=seed, row_id=row_id, draw=draw)
    place = {label: y for y, label in enumerate(outputs)}
    same = np.array([[place.get(x, -1)] for x in source.x]) == np.arange(len(outputs))
    how: Any = {"encoder": channel.encoder, "units": units}
    alphabet = Alphabet(source, Distortion(1.0 - same, outputs=outputs), **how)
    before = _verdicts(counts, criteria, alphabet)
    for rule, verdict in zip(criteria, before, strict=True):
        if verdict.holds is None:
            wrong = f"{rule!r} cannot be decided on a table"
            raise InputError("criteria", wrong, "leave it out: it is the channel's to promise")
    costs = counts.moves.T @ ~same
    stays = np.arange(len(outputs))
    stay = Merging.of(counts, stays)
    drawn = Ensured(channel, counts, before, before, stay, _changed(counts, same))
    if all(verdict.holds for verdict in before):
        return drawn
    steps = steps_apart(source.x, outputs, schema, source.levels)
    merged, least, failed = None, None, None
    try:
        merged = merging(counts, criteria, alphabet, None, steps)
    except BrokenTableError as error:
        failed = error
    if not counts.weighted:
        least = least_merging(
            counts, criteria, costs, counts.moves.T @ steps, units,
            best=None if merged is None else merged.places, time_limit=_SECONDS,
        )  # fmt: skip
    if least is not None and least.places is not None:
        merged = Merging.of(counts, least.places)
    if merged is None:
        assert failed is not None
        raise failed
    after = counts.relabelled(merged.places)
    verdicts = _verdicts(after, criteria, alphabet)
    if broken := [repr(rule) for rule, v in zip(criteria, verdicts, strict=True) if not v.holds]:
        raise BrokenTableError(int((after.sizes > 0).sum()), broken)
    return replace(
        drawn,
        channel=channel.relabelled([outputs[y] for y in merged.places]),
        counts=after,
        verdicts=verdicts,
        merging=merged,
        changed=_changed(after, same),
        lower=None if least is None else least.lower,
        optimal=least is not None and least.optimal,
    )


def _changed(counts: DrawnCounts, same: npt.NDArray[np.bool_]) -> int:
    """Return how many records are released as another letter than their own."""
    return int(counts.records[~same[counts.x_at, counts.y_at]].sum())


def _verdicts(
    counts: DrawnCounts, criteria: Sequence[Criterion], alphabet: Alphabet
) -> list[Verdict]:
    """Return how each criterion stands on a table, decided exactly."""
    sizes = None if counts.weighted else counts.sizes
    moves = counts.w_at, counts.x_at, counts.y_at
    table = Counts.of_moves(alphabet, moves, counts.masses, sizes)
    return [rule.verdict(table) for rule in criteria]
