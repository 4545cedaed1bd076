"""The table that a release drew: read again, counted, and set beside its original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxprivacy.cli.dossier.tables import changed, losses, paired, released_table
from cvxprivacy.cli.formats import ending_of

if TYPE_CHECKING:
    from cvxprivacy.cli.dossier.common import Asked
    from cvxprivacy.cli.dossier.provenance import Kept
    from cvxprivacy.microdata.audit import Audit
    from cvxprivacy.model.discrete import DiscreteSource

__all__ = ["Drawn"]

DRAWS = 200  # of the bootstrap
SEED = 0  # of the same: a report made twice says the same


@dataclass(frozen=True)
class Drawn:
    """What is known of the drawn table.

    Attributes
    ----------
    audit : Audit or None
        Its groups against the original; None where nothing was drawn, or it cannot be read again.
    changed, losses : dict or None
        Of its cells beside the original ones.
    left_out : list of dict
        What is not known, and why.
    """

    audit: Audit | None = None
    changed: dict[str, Any] | None = None
    losses: dict[str, Any] | None = None
    left_out: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        asked: Asked,
        source: DiscreteSource,
        criteria: Sequence[Any],
        kept: Kept,
        units: str,
    ) -> Drawn:
        """Read the table that was written under ``--out``."""
        section = "Groups, changed cells and loss"
        if "out" not in kept.results:
            return cls(left_out=[{"section": section, "why": "no table was drawn"}])
        with kept.copy("out", _ending(kept)) as path:
            if path is None:
                why = "the released table was written to a device, or is too large to be read again"
                return cls(left_out=[{"section": section, "why": why}])
            return cls._counted(asked, source, criteria, path, units)

    @classmethod
    def _counted(
        cls,
        asked: Asked,
        source: DiscreteSource,
        criteria: Sequence[Any],
        path: Path,
        units: str,
    ) -> Drawn:
        from cvxprivacy.microdata.audit import audit

        schema = source.schema
        assert schema is not None
        names = schema.columns
        after = released_table(path, schema).frame(
            names, binned=[name for name in schema.sensitive if name in schema.bins]
        )
        # what misses a value in the release is suppressed: those that were dropped are not in it
        before = schema.counted_records(asked.opened.frame(names, binned=list(schema.bins)))
        pairs = paired(before, after, schema)
        recodings: dict[str, Any] = {"bins": schema.bins, "groups": schema.groups}
        audited = audit(
            before,
            after,
            key=list(schema.key),
            sensitive=list(schema.sensitive),
            criteria=criteria,
            **recodings,
            missing="level",
            reference="released",
            bootstrap=DRAWS,
            seed=SEED,
            units=units,
        )
        if pairs is None:
            why = "the records of both tables cannot be set side by side in memory"
            return cls(audited, left_out=[{"section": "Changed cells and loss", "why": why}])
        return cls(audited, changed(pairs), losses(pairs))


def _ending(kept: Kept) -> str:
    """Return the ending of the released table's name, which tells its format."""
    path = next(str(output.path) for output in kept.outputs if output.option == "out")
    ending, compressed = ending_of(path)
    return f"{ending}.gz" if compressed else ending
