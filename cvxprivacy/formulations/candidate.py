"""A release that somebody else proposes, as the rows of a problem's program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.model.laws import tabulated
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.release.channel import Channel
from cvxprivacy.validation import array

__all__ = ["candidate_rows"]

_OFF = 0.05  # by which a row that was printed to two digits may miss 1


def candidate_rows(candidate: Any, alphabet: Alphabet) -> FloatArray:
    """Return p(x̂ | s) of a channel, a frame or a matrix for each letter s with mass, as it is.

    Labels decide where there are any: rows and columns may come in any order, and outputs that
    are not named have no mass.  Rows of a matrix are in the order of the problem's inputs.

    Raises
    ------
    InputError
        For labels that the problem does not have or a row that is missing, a shape that does not
        fit, and a row that is no law, up to rounding.
    """
    if isinstance(candidate, Channel):
        if "w" in candidate.encoder and "w" not in alphabet.encoder_inputs:
            wrong = "p(x̂ | w, x), as of whole counts, where the problem is of p(x̂ | x)"
            remedy = 'state the problem with encoder="wx"'
            raise InputError("candidate", wrong, remedy, value=candidate)
        values: Any = candidate.matrix
        labels: list[Any] = [candidate.inputs, candidate.outputs]
    else:
        table = tabulated(candidate, variables=[2])
        values, labels = table.values, list(table.labels) or [None, None]
    inputs, outputs = alphabet.inputs, list(alphabet.outputs)
    rows = inputs if labels[0] is None else labels[0]
    columns = outputs if labels[1] is None else labels[1]
    remedy = f"pass p(x̂ | x), {len(inputs)} rows for inputs and {len(outputs)} columns for outputs"
    matrix = array(values, "candidate", remedy, axes=(2,), negative=True)
    if matrix.shape != (len(rows), len(columns)):
        raise InputError("candidate", f"shape {matrix.shape}", remedy)
    placed = np.zeros((len(rows), len(outputs)))
    placed[:, _places(columns, outputs, "output")] = matrix
    order = {label: i for i, label in enumerate(rows)}
    _places(rows, inputs, "input")
    chosen = []
    for place in alphabet.support:
        if (label := inputs[place]) not in order:
            raise InputError("candidate", f"no row for {label!r}", remedy, value=label)
        chosen.append(order[label])
    laws = placed[chosen]
    totals = laws.sum(axis=1)
    wrong = (np.abs(totals - 1.0) > _OFF) | (laws < -_OFF).any(axis=1)
    if wrong.any():
        i = int(wrong.argmax())
        where, least = inputs[alphabet.support[i]], float(laws[i].min())
        wrong_by = f"an entry of {least:.6g}" if least < -_OFF else f"a sum of {totals[i]:.6g}"
        raise InputError("candidate", f"a row with {wrong_by}", "pass laws", where=where)
    return laws


def _places(labels: Sequence[Any], among: Sequence[Any], kind: str) -> list[int]:
    order = {label: i for i, label in enumerate(among)}
    for i, label in enumerate(labels):
        if label not in order:
            remedy = f"use labels of the problem, such as {among[0]!r}"
            raise InputError("candidate", f"{label!r} is no {kind}", remedy, where=i, value=label)
    if len(set(labels)) < len(labels):
        raise InputError("candidate", f"{kind}s named twice", "name each once")
    return [order[label] for label in labels]
