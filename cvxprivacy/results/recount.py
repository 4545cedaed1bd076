"""A proof tied to the table it speaks of: how the law was counted, and counted again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.leakage.relative_entropy import RelativeEntropy
from cvxprivacy.model.discrete import DiscreteSource, labels_by_x
from cvxprivacy.programs.channel import IntArray
from cvxprivacy.tables.labels import read, written
from cvxprivacy.tables.schema import TableSchema

__all__ = ["agreement", "other_records", "recount", "schema_of", "table_record"]

TOLERANCE = 1e-12  # of sums of survey weights, which an engine may add in any order


def table_record(source: DiscreteSource, encoder: str) -> dict[str, Any] | None:
    """Return what is needed to count the table again; None for a source without a table."""
    if source.schema is None:
        return None
    letters = [source.w, source.x, *([source.z] if source.z is not None else [])]
    return {
        **source.schema.to_dict(),
        "encoder": encoder,
        "alive": source.atoms(encoder).support.tolist(),
        "records": source.records,
        "letters": [[written(label, lenient=True) for label in axis] for axis in letters],
    }


def other_records(mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None) -> list[str]:
    """Return the keys under which two records of tables differ, but for how files are read."""
    both = {**(theirs or {}), **(mine or {})}
    return [k for k in both if k != "reading" and (mine or {}).get(k) != (theirs or {}).get(k)]


def schema_of(document: Mapping[str, Any]) -> TableSchema:
    """Return how the records of a proof's table became letters, if there is a table."""
    table = document.get("table")
    if table is None:
        remedy = "verify it without a table"
        raise InputError("table", "the proof's law was not counted from a table", remedy)
    try:
        return TableSchema.from_dict(table)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        remedy = "pass a proof that this package wrote"
        raise InputError("table", f"no record of a table ({error})", remedy) from None


def agreement(document: Mapping[str, Any]) -> str:
    """Say what it means that :func:`recount` named no difference: what was compared, and how."""
    schema = schema_of(document)
    text = f"{document['table']['records']:,} records, counted again: the proof's counts"
    if schema.weights is not None:
        text += f", weights agree to {TOLERANCE:g} of their sum"
    return text


def recount(document: Mapping[str, Any], frame: Any) -> list[str]:
    """Return how a table differs from the one that a proof was made for; empty if it does not.

    The table is counted with the recorded columns, bins, letters and treatment of missing
    values, and its law compared with the program's, atom by atom: exactly for counts, and for
    survey weights to 1e-12 of their sum, as engines add them in different orders.

    Parameters
    ----------
    document : mapping
        A proof, as :meth:`~cvxprivacy.typing.Certificate.document` returns it.
    frame : frame of any kind
        The table, as :meth:`cvxprivacy.DiscreteSource.from_table` takes it.

    Returns
    -------
    list of str
        The differences, in words.

    Raises
    ------
    InputError
        If the proof has no table, or is of earlier releases too: its problem then ties it to both.

    Examples
    --------
    >>> import pandas as pd
    >>> import cvxprivacy as cpv
    >>> table = pd.DataFrame({"age": [30, 30, 40, 40, 50, 50], "ill": [0, 1, 0, 1, 1, 1]})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.3)
    >>> proof = problem.solve().certificate.document()
    >>> recount(proof, table)
    []

    Five of the six records are another table, and the proof says nothing about it:

    >>> recount(proof, table.head(5))[0]
    '5 records, where the proof has 6'
    """
    schema, table = schema_of(document), document["table"]
    if schema.earlier:
        remedy = "verify it with its problem, which names the channels of these"
        raise InputError("table", "the proof is of earlier releases too", remedy)
    try:
        levels = [[read(label) for label in axis] for axis in table["letters"]]
        source = DiscreteSource.from_schema(frame, schema, levels)
        return list(_differences(source, table, document["program"]))
    except InputError as error:
        return [str(error)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"no record of a table: {type(error).__name__}: {error}"]


def _differences(
    source: DiscreteSource, table: Mapping[str, Any], program: Mapping[str, Any]
) -> Iterator[str]:
    """Say how the law of a table counted again differs from that of a proof's program."""
    law, atoms = np.array(program["law"], float), source.atoms(table["encoder"])
    if source.records != table["records"]:
        records = table["records"]
        count = f"{records:,}" if isinstance(records, int) else repr(records)
        yield f"{source.records:,} records, where the proof has {count}"
    expected = {"W": atoms.w_of}
    for z, name in enumerate(source.z_names):
        expected[f"W|{name}"] = np.where(atoms.z_of == z, atoms.w_of, -1)
    labels = {n: view["labels"] for n, view in program["views"].items() if n[:2] in ("W", "W|")}
    if not labels.keys() <= expected.keys():  # of those who know x: a view for each
        for name, of_w in list(expected.items()):
            there = (of_w >= 0) & (atoms.law > 0)
            expected |= labels_by_x(name, there, atoms.w_of, atoms.x_of, source.x)
    if any(view["measure"]["kind"] == RelativeEntropy.kind for view in program["views"].values()):
        values = [str(source.w[w]) for w in atoms.w_support]
        if not _centred_alike(atoms.w_of, values, law, program["views"]):
            yield "what the values of W are compared with is not what the proof says"
            return
        rows, columns = atoms.law.shape
        law = law[:rows, :columns]
        labels = {n: np.array(table)[:rows, :columns] for n, table in labels.items()}
    if (
        atoms.law.shape != law.shape
        or table["alive"] != atoms.support.tolist()
        or not all(n in expected and np.array_equal(expected[n], labels[n]) for n in labels)
    ):
        yield "the letters that occur are not those of the proof"
        return
    error = np.abs(atoms.law - law)
    different = error > (TOLERANCE * float(law.sum()) if source.weighted else 0.0)
    if different.any():
        atom, s = (int(i) for i in np.argwhere(different)[0])
        w = source.w[atoms.w_support[atoms.w_of[atom, s]]]
        x = source.x[atoms.x_of[s]]
        yield (
            f"{int(different.sum()):,} cells differ: {atoms.law[atom, s]:,.15g} records with "
            f"{source.names[0]} = {w!r} and {source.names[1]} = {x!r}, where the proof has "
            f"{law[atom, s]:,.15g}"
        )


def _centred_alike(
    w_of: IntArray, values: list[str], law: FloatArray, views: Mapping[str, Any]
) -> bool:
    """Tell whether each value of W is compared with the one letter that is nobody's."""
    rows, columns = w_of.shape
    if law.shape[1] != columns + 1 or len(law) < rows or law[rows:, :columns].any():
        return False

    def padded(labels: IntArray, last: int) -> list[list[int]]:
        table = np.full(law.shape, -1)
        table[:rows, :columns] = labels
        table[law[:, -1] > 0, -1] = last
        return [list(map(int, row)) for row in table]

    compared = [(v, padded(np.where(w_of == w, 0, -1), 1)) for w, v in enumerate(values)]
    stated = {n: v for n, v in views.items() if v["measure"]["kind"] == RelativeEntropy.kind}
    named = [(n.partition(" = ")[2], v["labels"]) for n, v in stated.items()]
    if len({*values}) < len(values):  # of values that are written alike, names do not tell
        compared, named = ([("", labels) for _, labels in pairs] for pairs in (compared, named))
    others = [v["labels"] for n, v in views.items() if n == "W"]
    return sorted(named) == sorted(compared) and all(o == padded(w_of, -1) for o in others)
