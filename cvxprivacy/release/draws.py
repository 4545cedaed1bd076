"""Chance that only the holder of a key can repeat: a number for each record's place, or name.

The key has 256 bits.  A typed seed is stretched to one by scrypt, so that trying seeds is slow; by
default the key is the system's own randomness.  Numbers are words of 64 bits of SHAKE-256, keyed;
those of records with names are a keyed BLAKE2b of the name.  ``docs/reference/files.md`` has the
bytes, for whoever wants to draw again with the standard library.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import operator
import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtri

from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.errors import InputError
from cvxprivacy.exact import is_sparse

__all__ = ["Draws", "Numbers", "distinct", "is_missing", "numerators"]

SCHEME = "cvxprivacy draws 1"
BLOCK = 2**16  # bytes that one hash makes
_UNUSED = 12  # bits of a word beyond the 52 of a number

Numbers = npt.NDArray[np.int64]


class Draws:
    """Whole numbers below 2⁵², one or more for each record, and normal ones.

    Those of a record depend on the key and on its place, or its name, alone.

    Parameters
    ----------
    seed : int, numpy.random.Generator or None
        None takes the system's own randomness: nobody can repeat it, nor guess it.  A generator
        moves on by 32 bytes when the first number is drawn.
    balanced : bool
        Whether records are drawn together, so that counts hardly scatter.
    """

    def __init__(self, seed: int | np.random.Generator | None, *, balanced: bool = False) -> None:
        self.balanced = balanced
        self._key: bytes | None = None
        self._seed: int | np.random.Generator | None = seed
        self._stream = 0
        if seed is None or isinstance(seed, np.random.Generator):
            return
        remedy = "pass a whole number ≥ 0 or a numpy.random.Generator"
        try:
            self._seed = operator.index(seed)
        except TypeError:  # what was typed may be a secret: it is not shown
            raise InputError("seed", f"a {type(seed).__name__}", remedy) from None
        if self._seed < 0:
            raise InputError("seed", "a negative number", remedy)

    def _secret(self) -> bytes:
        if self._key is None:
            self._key, self._seed = _key_of(self._seed), None
        return self._key

    def __call__(
        self, size: int, names: Sequence[Any] | None, first: int = 0, each: int = 1
    ) -> Numbers:
        """Return numbers of ``size`` records, shape (each, size), from the record ``first`` on.

        ``names`` are theirs, if they have any.
        """
        self._secret()  # taken even for no records: a lazy release has its own from the start
        if names is None:
            words = self._words("letters", each * size, each * first).reshape(size, each)
        else:
            words = self._named(size, names, first)[:, :each]
        return (words >> _UNUSED).astype(np.int64).T

    def below(self, purpose: str) -> Callable[[int], int]:
        """Return what draws a whole number ≥ 0 below a bound of at most 2⁶³, by whole words alone.

        Words beyond the last multiple of the bound are passed over: all numbers are as probable.
        """
        words = (
            word
            for block in itertools.count()
            for word in self._words(purpose, BLOCK // 8, block * BLOCK // 8).tolist()
        )

        def draw(bound: int) -> int:
            return next(word % bound for word in words if word < 2**64 - 2**64 % bound)

        return draw

    def normals(self, size: int, columns: int) -> npt.NDArray[np.float64]:
        """Return independent standard normal numbers, shape (size, columns).

        One bit is the sign, and Φ⁻¹ makes the size of 63: the greatest is 9.16, beyond which a
        normal law has a mass of 2⁻⁶⁴.
        """
        words = self._words("normals", size * columns).reshape(size, columns)
        lower = ndtri(((words >> 1) + 0.5) * 2.0**-64)
        return np.where(words & 1, lower, -lower)

    def derived(self, purpose: str) -> bytes:
        """Return 32 bytes of the key for another use, which tell nothing of it."""
        return hashlib.shake_256(self._secret() + f"{SCHEME} {purpose}".encode()).digest(32)

    def fresh(self, purpose: str) -> Draws:
        """Return draws by a key of their own: none of their numbers tells of those of this key."""
        draws = Draws(None)
        draws._key, draws._seed = self.derived(purpose), None
        return draws

    def generator(self, purpose: str) -> np.random.Generator:
        """Return chance whose figures may be published: they tell nothing of a typed seed."""
        return np.random.default_rng(int.from_bytes(self.derived(purpose), "big"))

    def children(self, count: int) -> list[Draws]:
        """Return independent draws for partitions; those by name are the same for all."""
        self._secret()  # one for all
        twins = [copy.copy(self) for _ in range(count)]
        for i, twin in enumerate(twins):
            twin._stream = i + 1
        return twins

    def _words(self, purpose: str, size: int, first: int = 0) -> npt.NDArray[np.uint64]:
        """Return words of a stream; each block is hashed as far as it is needed."""
        start, stop = 8 * first, 8 * (first + size)
        head = self._secret() + f"{SCHEME} {purpose} {self._stream} ".encode()
        blocks = [
            hashlib.shake_256(head + b"%d" % i).digest(min(BLOCK, stop - i * BLOCK))
            for i in range(start // BLOCK, -(-stop // BLOCK))
        ]
        return np.frombuffer(b"".join(blocks), "<u8")[start % BLOCK // 8 :]

    def _named(self, size: int, names: Sequence[Any], first: int) -> npt.NDArray[np.uint64]:
        """Return two words for each name."""
        if len(names) != size:
            raise InputError("row_id", f"{len(names)} names", f"pass {size}, one per record")
        key, texts = self._secret(), distinct(names, "row_id", first)
        digests = [hashlib.blake2b(t.encode(), digest_size=16, key=key).digest() for t in texts]
        return np.frombuffer(b"".join(digests), "<u8").reshape(size, 2)


def _key_of(seed: int | np.random.Generator | None) -> bytes:
    if seed is None:
        return secrets.token_bytes(32)
    return _stretched(seed) if isinstance(seed, int) else seed.bytes(32)


@lru_cache(maxsize=64)
def _stretched(seed: int) -> bytes:
    """Return the key of a typed seed: by 16 MiB and some forty milliseconds for each one tried."""
    return hashlib.scrypt(hex(seed).encode(), salt=SCHEME.encode(), n=2**14, r=8, p=1, dklen=32)


def distinct(names: Sequence[Any], argument: str, first: int = 0) -> list[str]:
    """Return the names of records as text, ``2`` for 2.0, too: each of them names one.

    ``first`` is the number of the first record.
    """
    places = dict[str, int]()
    for i, name in enumerate(names, first):
        if is_missing(name):
            raise InputError(argument, "a missing name", "name every record", where=i)
        integral = isinstance(name, float) and name.is_integer()
        text = str(int(name) if integral else name)
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            problem = f"{name!r} has half of a character that takes two"
            remedy = "mend the encoding of the table"
            raise InputError(argument, problem, remedy, where=i, value=name)
        if (other := places.setdefault(text, i)) != i:
            problem = f"{name!r} names records {other} and {i}"
            remedy = "name every record by itself"
            raise InputError(argument, problem, remedy, where=i, value=name)
    return list(places)


def is_missing(name: Any) -> bool:
    """Tell whether a name is missing: None, NaN, NaT or NA."""
    try:
        return name is None or bool(name != name)
    except TypeError:
        return True


# ---- laws in whole numbers ----------------------------------------------------------------


def numerators(matrix: Any) -> Any:
    """Return the rows of a stochastic matrix as whole numbers over 2⁵² that sum to it.

    What has such numbers is kept.  Else entries are rounded to the nearest, and as many as it
    takes to the next: none by more than 2⁻⁵², or 2⁻⁵¹ where the row had to be divided by its sum,
    and a zero not at all.
    """
    if is_sparse(matrix):
        data, ends = matrix.data, matrix.indptr
    else:
        data, ends = matrix.ravel(), np.arange(matrix.shape[0] + 1) * matrix.shape[1]
    scaled, starts = data * float(DENOMINATOR), ends[:-1]
    rounded = np.rint(scaled).astype(np.int64)
    off = np.add.reduceat(rounded, starts) != DENOMINATOR
    off |= np.logical_or.reduceat(rounded != scaled, starts)
    spans = list(pairwise(ends.tolist()))
    for row in np.flatnonzero(off).tolist():
        span = slice(*spans[row])
        rounded[span] = _rounded(data[span])
    if is_sparse(matrix):
        return sparse.csr_array((rounded, matrix.indices, matrix.indptr), shape=matrix.shape)
    return rounded.reshape(matrix.shape)


def _rounded(row: npt.NDArray[np.float64]) -> Numbers:
    """Return a row as whole numbers: change by one what was rounded farthest the other way."""
    scaled = row / fsum(row.tolist()) * DENOMINATOR
    rounded = np.rint(scaled).astype(np.int64)
    missing = DENOMINATOR - int(rounded.sum())
    step = 1 if missing > 0 else -1
    farthest = np.where(row > 0, step * (scaled - rounded), -np.inf)
    rounded[np.argsort(-farthest, kind="stable")[: abs(missing)]] += step
    return rounded
