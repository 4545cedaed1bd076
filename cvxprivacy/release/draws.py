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
    seed : int or numpy.random.Generator
    keyed : bool
        For records with names: a keyed hash (BLAKE2b) of the name.
    """

    def __init__(self, seed: int | np.random.Generator, *, keyed: bool) -> None:
        if seed is None:
            remedy = "pass a whole number ≥ 0 or a numpy.random.Generator"
            raise InputError("seed", "None (chance must be repeatable)", remedy)
        self.generator = generator(seed)
        self.key = self.generator.bytes(32) if keyed else None
        self._start = self.generator.bit_generator.state
        self._given = isinstance(seed, np.random.Generator)

    def __call__(self, size: int, names: Sequence[Any] | None, first: int = 0) -> np.ndarray:
        """Return ``size`` numbers; ``names`` of the records if they have any."""
        if self.key is None or names is None:
            return self.generator.random(size)
        if len(names) != size:
            raise InputError("row_id", f"{len(names)} names", f"pass {size}, one per record")
        found = np.empty(size)
        seen: dict[bytes, int] = {}
        for i, name in enumerate(names):
            if _gone(name):
                remedy = "name every record"
                raise InputError("row_id", "a missing name", remedy, where=first + i)
            whole = isinstance(name, float) and name.is_integer()
            text = str(int(name) if whole else name)
            digest = hashlib.blake2b(text.encode(), digest_size=8, key=self.key).digest()
            if seen.setdefault(digest, i) != i:
                raise InputError(
                    "row_id",
                    f"{name!r} names records {first + seen[digest]} and {first + i}",
                    "name every record by itself",
                    where=first + i,
                    value=name,
                )
            found[i] = (int.from_bytes(digest, "big") >> 11) * 2.0**-53
        return found

    def children(self, count: int) -> list[Draws]:
        """Return independent draws for partitions; those by name are the same for all."""
        if self.key is not None:
            return [self] * count
        return [Draws(child, keyed=False) for child in self.generator.spawn(count)]

    def lasting(self) -> Draws:
        """Return draws for what is computed later, perhaps twice: see :meth:`afresh`.

        A generator that was given moves on, so that its next release draws other numbers.
        """
        found = self.afresh()
        if self._given:
            source = self.generator.bit_generator
            source.state = source.jumped().state if hasattr(source, "jumped") else found.state()
        return found

    def state(self) -> Any:
        """Return another state, far from this one."""
        kind = type(self.generator.bit_generator)
        return kind(self.generator.integers(2**63, size=4)).state

    def afresh(self) -> Draws:
        """Return the same draws from their start."""
        kind = type(self.generator.bit_generator)
        found = Draws(np.random.Generator(kind()), keyed=False)
        found.generator.bit_generator.state = found._start = self._start
        found.key, found._given = self.key, self._given
        return found


def _gone(name: Any) -> bool:
    """Tell whether a name is missing: None, NaN, NaT or NA."""
    try:
        return name is None or bool(name != name)
    except TypeError:
        return True
