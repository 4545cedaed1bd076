"""Storage types of Stata: byte, int and float, which pyreadstat writes as long or double.

A ``.dta`` file has records of equal width, and a list of how each variable is stored (Stata,
*Reference*, ``help dta``: formats 113 to 115, and 117 to 119 with a map of places).  Both are
written anew, and the map; all else stays.  The greatest numbers of each type are no values: there
are 27, `.`, `.a` to `.z`, which are the missing ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["stored_as"]

_TYPES = {"int8": "<i1", "int16": "<i2", "int32": "<i4", "float": "<f4", "double": "<f8"}
_GREATEST = {"int8": 100, "int16": 32_740, "int32": 2_147_483_620}  # that is no missing value
_MISSING = {"float": (0x7F00 << 16, 11), "double": (0x7FE0 << 48, 40)}  # bits of ., and of a letter
_FLOAT = float(np.uint32((0x7F00 << 16) - 1).view(np.float32))  # the greatest


@dataclass(frozen=True)
class _Layout:
    """Where a file has what: types of variables with their codes, and its records."""

    types: int
    codes: npt.NDArray[Any]
    first: int
    data: int
    records: int
    places: int | None  # of the map

    @classmethod
    def of(cls, content: bytes) -> _Layout:
        """Read it from a file's bytes, the least byte of numbers first."""
        if content[:1] != b"<":
            variables, records = (int(np.frombuffer(content, of, 1, at)[0])
                                  for of, at in (("<u2", 4), ("<u4", 6)))  # fmt: skip
            formats = 12 if content[0] == 113 else 49
            data = 109 + variables * (1 + 33 + 2 + formats + 33 + 81) + 2
            while int.from_bytes(content[data + 1 : data + 5], "little"):  # characteristics
                data += 5 + int.from_bytes(content[data + 1 : data + 5], "little")
            codes = np.frombuffer(content, "u1", variables, 109)
            return cls(109, codes, 251, data + 5, records, None)
        release = int(content[content.index(b"<release>") + 9 :][:3])
        label, width = content.index(b"<label>") + 7, 1 if release == 117 else 2
        label += width + int.from_bytes(content[label : label + width], "little")  # of any text
        head = content[: content.index(b"<map>", label) + 5]
        sizes = [(b"<K>", "<u4" if release == 119 else "<u2"),
                 (b"<N>", "<u4" if release == 117 else "<u8")]  # fmt: skip
        variables, records = (int(np.frombuffer(head, of, 1, head.index(mark) + 3)[0])
                              for mark, of in sizes)  # fmt: skip
        places = np.frombuffer(content, "<u8", 14, len(head))
        types = int(places[2]) + len(b"<variable_types>")
        codes = np.frombuffer(content, "<u2", variables, types)
        return cls(types, codes, 65_530, int(places[9]) + len(b"<data>"), records, len(head))

    @property
    def step(self) -> int:
        """From the code of one type of numbers to that of the next, wider one."""
        return 1 if self.places is None else -1

    def kinds(self) -> list[str]:
        """Return how each variable is stored: a type of numbers, or a width of bytes."""
        numbers = {self.first + self.step * i: name for i, name in enumerate(_TYPES)}
        widths = {32_768: 8}  # of a long text there is a number
        return [numbers.get(code, f"V{widths.get(code, code)}") for code in self.codes.tolist()]


def stored_as(content: bytes, wanted: Sequence[str]) -> tuple[bytes, list[str]]:
    """Return a file whose numbers are stored as is wanted, where the type holds all of them.

    Parameters
    ----------
    content : bytes
        A file of Stata, with numbers as long or double.
    wanted : sequence of str
        For each variable ``int8``, ``int16``, ``int32``, ``float`` or ``double``; others stay.

    Returns
    -------
    content : bytes
    kinds : list of str
        How each is stored.
    """
    layout = _Layout.of(content)
    kinds = layout.kinds()
    rows = np.frombuffer(content, _record(kinds), layout.records, layout.data)
    columns: dict[str, npt.NDArray[Any]] = {}
    for i, (kind, of) in enumerate(zip(kinds, wanted, strict=True)):
        narrow = _narrowed(rows[f"v{i}"], kind, of) if kind in _TYPES and of in _TYPES else None
        columns[f"v{i}"] = rows[f"v{i}"] if narrow is None else narrow
        kinds[i] = kind if narrow is None else of
    made = np.empty(layout.records, _record(kinds))
    for name, column in columns.items():
        made[name] = column
    codes = layout.codes.copy()
    for i, kind in enumerate(kinds):
        if kind in _TYPES:
            codes[i] = layout.first + layout.step * [*_TYPES].index(kind)
    end = layout.data + rows.nbytes
    new = bytearray(content[: layout.data] + made.tobytes() + content[end:])
    new[layout.types : layout.types + codes.nbytes] = codes.tobytes()
    if layout.places is not None:
        places = np.frombuffer(content, "<u8", 14, layout.places).copy()
        places[10:] -= np.uint64(rows.nbytes - made.nbytes)
        new[layout.places : layout.places + places.nbytes] = places.tobytes()
    return bytes(new), kinds


def _record(kinds: Sequence[str]) -> np.dtype[Any]:
    return np.dtype([(f"v{i}", _TYPES.get(kind, kind)) for i, kind in enumerate(kinds)])


def _narrowed(column: npt.NDArray[Any], kind: str, of: str) -> npt.NDArray[Any] | None:
    """Return numbers in a narrower type; None where it is none, or does not hold all of them."""
    if np.dtype(_TYPES[of]).itemsize >= np.dtype(_TYPES[kind]).itemsize:
        return None
    letter = _letters(column, kind)
    there = letter < 0
    numbers = np.where(there, column, 0)
    if of in _GREATEST:
        lowest = 1 - (1 << (8 * np.dtype(_TYPES[of]).itemsize - 1))
        inside = (numbers == np.round(numbers)) & (numbers >= lowest) & (numbers <= _GREATEST[of])
        return np.where(there, numbers, _GREATEST[of] + 1 + letter) if inside.all() else None
    with np.errstate(over="ignore"):
        floats = numbers.astype("<f4")
    if not ((floats == numbers) & (abs(numbers) <= _FLOAT)).all():
        return None
    first, shift = _MISSING[of]
    floats.view("<u4")[~there] = first + (letter[~there] << shift)
    return floats


def _letters(column: npt.NDArray[Any], kind: str) -> npt.NDArray[np.int64]:
    """Return which missing value each number is, . as 0 and .z as 26; -1 for a number."""
    if kind in _GREATEST:
        letter = column.astype(np.int64) - _GREATEST[kind] - 1
    else:
        first, shift = _MISSING[kind]
        letter = (np.ascontiguousarray(column).view("<i8") - first) >> shift
        letter = np.where(letter > 26, -1, letter)  # NaN and infinities are left alone
    return np.maximum(letter, -1)
