"""Chance: one draw after the other, or one for each record's name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError

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
        try:
            self.generator = np.random.default_rng(seed)
            if seed is None:
                raise TypeError("chance must be repeatable")
        except (TypeError, ValueError) as error:
            remedy = "pass a whole number ≥ 0 or a numpy.random.Generator"
            raise InputError("seed", f"{seed!r} ({error})", remedy, value=seed) from None
        self.key = self.generator.bytes(32) if keyed else None

    def __call__(self, size: int, names: Sequence[Any] | None, first: int = 0) -> np.ndarray:
        """Return ``size`` numbers; ``names`` of the records if they have any."""
        if self.key is None or names is None:
            return self.generator.random(size)
        if len(names) != size:
            raise InputError("row_id", f"{len(names)} names", f"pass {size}, one per record")
        found = np.empty(size)
        seen: dict[bytes, int] = {}
        for i, name in enumerate(names):
            if name is None:
                remedy = "name every record"
                raise InputError("row_id", "a missing name", remedy, where=first + i)
            text = str(int(name) if isinstance(name, float) and name == int(name) else name)
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

    def repeatable(self) -> Callable[[], Draws]:
        """Return a maker of draws that start over from here each time."""
        state = self.generator.bit_generator.state
        key, kind = self.key, type(self.generator.bit_generator)

        def again() -> Draws:
            draws = Draws(np.random.Generator(kind()), keyed=False)
            draws.generator.bit_generator.state, draws.key = state, key
            return draws

        return again
