"""Chance: one draw after the other, or one for each record's name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.validation import generator

__all__ = ["Draws"]


class Draws:
    """Uniform numbers of [0, 1): one after the other, or one for each record's name.

    Parameters
    ----------
    seed : int, numpy.random.Generator or None
        None takes the system's own randomness: nobody can repeat it, nor guess it.
    keyed : bool
        For records with names: a keyed hash (BLAKE2b) of the name.
    """

    def __init__(self, seed: int | np.random.Generator | None, *, keyed: bool) -> None:
        self.generator = generator(seed)
        self.key = self.generator.bytes(32) if keyed else None
        self._start = self.generator.bit_generator.state
        self._shared = isinstance(seed, np.random.Generator)

    def __call__(self, size: int, names: Sequence[Any] | None, first: int = 0) -> np.ndarray:
        """Return ``size`` numbers; ``names`` of the records if they have any."""
        if self.key is None or names is None:
            return self.generator.random(size)
        if len(names) != size:
            raise InputError("row_id", f"{len(names)} names", f"pass {size}, one per record")
        uniform, records = np.empty(size), dict[bytes, int]()
        for i, name in enumerate(names):
            if _is_missing(name):
                remedy = "name every record"
                raise InputError("row_id", "a missing name", remedy, where=first + i)
            integral = isinstance(name, float) and name.is_integer()
            text = str(int(name) if integral else name)
            digest = hashlib.blake2b(text.encode(), digest_size=8, key=self.key).digest()
            other = records.setdefault(digest, i)
            if other != i:
                problem = f"{name!r} names records {first + other} and {first + i}"
                remedy = "name every record by itself"
                raise InputError("row_id", problem, remedy, where=first + i, value=name)
            uniform[i] = (int.from_bytes(digest, "big") >> 11) * 2.0**-53
        return uniform

    def children(self, count: int) -> list[Draws]:
        """Return independent draws for partitions; those by name are the same for all."""
        if self.key is not None:
            return [self] * count
        return [Draws(child, keyed=False) for child in self.generator.spawn(count)]

    def lasting(self) -> Draws:
        """Return draws for what is computed later, perhaps twice: see :meth:`afresh`.

        A generator that was passed in moves on, so that its next release draws other numbers.
        """
        draws, source = self.afresh(), self.generator.bit_generator
        if self._shared and hasattr(source, "jumped"):
            source.state = source.jumped().state
        elif self._shared:  # another state, far from this one
            source.state = type(source)(draws.generator.integers(2**63, size=4)).state
        return draws

    def afresh(self) -> Draws:
        """Return the same draws from their start."""
        draws = Draws(np.random.Generator(type(self.generator.bit_generator)()), keyed=False)
        draws.generator.bit_generator.state = draws._start = self._start
        draws.key, draws._shared = self.key, self._shared
        return draws


def _is_missing(name: Any) -> bool:
    """Tell whether a name is missing: None, NaN, NaT or NA."""
    try:
        return name is None or bool(name != name)
    except TypeError:
        return True
