"""A proof tied to the table it speaks of: how the law was counted, and counted again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.tables.frames import Coding
from cvxprivacy.tables.labels import read, written

__all__ = ["coding_of", "record", "recount", "recounted"]

TOLERANCE = 1e-12  # of sums of survey weights, which an engine may add in any order


def record(source: DiscreteSource, encoder: str) -> dict[str, Any] | None:
    """Return what is needed to count the table again; None for a source without a table."""
    if source.coding is None:
        return None
    letters = [source.w, source.x, *([source.z] if source.z is not None else [])]
    return {
        **source.coding.to_dict(),
        "encoder": encoder,
        "alive": source.atoms(encoder).alive.tolist(),
        "records": source.records,
        "letters": [[written(label, lenient=True) for label in axis] for axis in letters],
    }


def coding_of(document: Mapping[str, Any]) -> Coding:
    """Return how the records of a proof's table became letters.

    Raises
    ------
    InputError
        If the proof is of a law that was not counted from a table.
    """
    table = document.get("table")
    if table is None:
        remedy = "verify it without a table"
        raise InputError("table", "the proof's law was not counted from a table", remedy)
    try:
        return Coding.from_dict(table)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        remedy = "pass a proof that this package wrote"
        raise InputError("table", f"no record of a table ({error})", remedy) from None


def recounted(document: Mapping[str, Any]) -> str:
    """Say what it means that :func:`recount` found no difference: what was compared, how exactly.

    Parameters
    ----------
    document : mapping
        A proof of a law that was counted from a table.
    """
    coding = coding_of(document)
    said = f"{document['table']['records']:,} records, counted again: the proof's counts"
    if coding.weights is not None:
        said += f", weights agree to {TOLERANCE:g} of their sum"
    return said


def recount(document: Mapping[str, Any], frame: Any) -> list[str]:
    """Return how a table differs from the one that a proof was made for; empty if it does not.

    The table is counted with the recorded columns, bins, letters and treatment of missing
    values, and its law compared with the program's, atom by atom: exactly for counts, and for
    survey weights to 1e-12 of their sum, as engines add them in different orders.

    Parameters
    ----------
    document : mapping
        A proof, as :meth:`cvxprivacy.Certificate.document` returns it.
    frame : as in :meth:`cvxprivacy.DiscreteSource.from_table`

    Raises
    ------
    InputError
        If the proof has no table.
    """
    coding, table = coding_of(document), document["table"]
    try:
        same = table["records"]
        levels = [[read(label) for label in axis] for axis in table["letters"]]
        source = DiscreteSource.from_coding(frame, coding, levels)
        program = document["program"]
        law, views = np.array(program["law"], float), program["views"]
        atoms = source.atoms(table["encoder"])
        expected = {"W": atoms.w_of}
        for z, name in enumerate(source.z_names):
            expected[f"W|{name}"] = np.where(atoms.z_of == z, atoms.w_of, -1)
        labels = {name: views[name]["labels"] for name in views if name[:2] in ("W", "W|")}
        same_letters = table["alive"] == atoms.alive.tolist()
    except InputError as error:
        return [str(error)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"no record of a table: {type(error).__name__}: {error}"]
    found = []
    if source.records != same:
        had = f"{same:,}" if isinstance(same, int) else repr(same)
        found.append(f"{source.records:,} records, where the proof has {had}")
    known = all(name in expected for name in labels)
    if (
        atoms.law.shape != law.shape
        or not (known and same_letters)
        or not all(np.array_equal(expected[name], values) for name, values in labels.items())
    ):
        found.append("the letters that occur are not those of the proof")
        return found
    off = np.abs(atoms.law - law)
    slack = TOLERANCE * float(law.sum()) if coding.weights is not None else 0.0
    if (off > slack).any():
        atom, s = (int(i) for i in np.argwhere(off > slack)[0])
        w = source.w[atoms.alive_w[atoms.w_of[atom, s]]]
        x = source.x[atoms.x_of[s]]
        found.append(
            f"{int((off > slack).sum()):,} cells differ: {atoms.law[atom, s]:,.15g} records with "
            f"{source.names[0]} = {w!r} and {source.names[1]} = {x!r}, where the proof has "
            f"{law[atom, s]:,.15g}"
        )
    return found
