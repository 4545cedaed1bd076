"""Channels as files: JSON that is read again, and CSV for sdcMicro."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file
from cvxprivacy.release.decoder import Decoder
from cvxprivacy.tables.labels import read, written
from cvxprivacy.tables.schema import TableSchema

__all__ = ["load", "write", "write_sdcmicro"]

FORMAT = "cvxprivacy channel 1"


def write(arguments: Mapping[str, Any], file: IO[str]) -> None:
    """Write a channel, given as the arguments it is made of, into an open file."""
    p_input, schema, decoder = (arguments[name] for name in ("p_input", "schema", "decoder"))
    document = {
        "schema": FORMAT,
        "inputs": [written(label) for label in arguments["inputs"]],
        "outputs": [written(label) for label in arguments["outputs"]],
        "matrix": arguments["matrix"].tolist(),
        "p_input": None if p_input is None else p_input.tolist(),
        "arbitrary": arguments["arbitrary"].tolist(),
        "encoder": arguments["encoder"],
        "coding": None if schema is None else schema.to_dict(),
        "decoder": None if decoder is None else decoder.to_dict(),
    }
    json.dump(document, file, ensure_ascii=False, allow_nan=False)


def load(path: str | os.PathLike[str], make: Callable[..., Any]) -> Any:
    """Return what ``make`` makes of the arguments that a file holds.

    Raises
    ------
    InputError
        If the file is not a channel's.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            return make(**_arguments(json.load(file)))
    except OSError as error:
        problem = f"{os.fspath(path)!r} cannot be read ({error.strerror})"
        raise InputError("path", problem, "pass a file that exists") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        problem = f"{os.fspath(path)!r} is no channel ({message})"
        raise InputError("path", problem, "pass a file that Channel.save wrote") from None


def _arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a document holds; without a decoder, it is an older one."""
    if document["schema"] != FORMAT:
        raise ValueError(f"its schema is {document['schema']!r}")
    schema, decoder = document["coding"], document.get("decoder")
    schema = None if schema is None else TableSchema.from_dict(schema)
    return {
        "inputs": [read(label) for label in document["inputs"]],
        "outputs": [read(label) for label in document["outputs"]],
        **{name: document[name] for name in ("matrix", "p_input", "arbitrary", "encoder")},
        "schema": schema,
        "decoder": None if decoder is None else Decoder.from_dict(decoder, schema),
    }


def write_sdcmicro(
    path: str | os.PathLike[str],
    matrix: np.ndarray,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    separator: str,
) -> None:
    """Write a matrix as CSV, as ``Channel.to_sdcmicro`` has it."""
    parts = [x if isinstance(x, tuple) else (x,) for x in inputs]
    names = [separator.join("NA" if p is None else str(p) for p in x) for x in parts]
    if set(outputs) != set(inputs) or len(outputs) != len(inputs):
        remedy = "release key letters, each under its own column"
        raise InputError("outputs", "not the inputs, as sdcMicro wants them", remedy)
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        problem = f"two letters read {twice!r}"
        raise InputError("separator", problem, "pass another separator", value=twice)
    columns = [outputs.index(x) for x in inputs]
    with whole_file(path) as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["", *names])
        for name, row in zip(names, matrix[:, columns].tolist(), strict=True):
            writer.writerow([name, *row])
