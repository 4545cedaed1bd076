"""Several laws of the same letters: strata, years, resampled tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.model.atoms import Atoms, lay_out
from cvxprivacy.model.discrete import DiscreteSource

__all__ = ["Laws", "stacked", "with_letters_of"]

Laws = Mapping[str, DiscreteSource] | Sequence[DiscreteSource] | None

_REMEDY = "pass a list of DiscreteSource, or a mapping of names to them"


def with_letters_of(laws: Laws, source: DiscreteSource) -> dict[str, DiscreteSource]:
    """Return laws by name, with the letters of a source in their order.

    Those of a list are "law 1", "law 2", ….

    Raises
    ------
    InputError
        For a law that has letters with mass that the source does not list.
    """
    if laws is None or not isinstance(source, DiscreteSource):
        return {}  # such a source is refused where it is read
    if isinstance(laws, DiscreteSource) or not isinstance(laws, Mapping | Sequence):
        raise InputError("laws", f"a {type(laws).__name__}", _REMEDY)
    named = laws if isinstance(laws, Mapping) else {f"law {i}": k for i, k in enumerate(laws, 1)}
    fitted = {}
    for name, law in named.items():
        if not isinstance(name, str) or not name:
            raise InputError("laws", f"{name!r} is no name", "name laws by texts", value=name)
        if not isinstance(law, DiscreteSource):
            raise InputError("laws", f"a {type(law).__name__}", _REMEDY, where=name)
        fitted[name] = _with_letters_of(source, law, name)
    return fitted


def _with_letters_of(source: DiscreteSource, law: DiscreteSource, name: str) -> DiscreteSource:
    if law.law.ndim != 2 or source.law.ndim != 2:
        raise InputError("laws", "side information Z", "make sources of W and X", where=name)
    places = []
    for axis, (mine, theirs) in enumerate(((source.w, law.w), (source.x, law.x))):
        numbers = {label: i for i, label in enumerate(mine)}
        met = np.flatnonzero(law.law.sum(axis=1 - axis) > 0)
        for label in (theirs[i] for i in met):
            if label not in numbers:
                problem = f"{source.names[axis]} = {label!r} is no letter of the source"
                remedy = "count all tables with the same letters, and pass the one with most first"
                raise InputError("laws", problem, remedy, where=name, value=label)
        places.append((met, np.array([numbers[theirs[i]] for i in met])))
    (rows, to_rows), (columns, to_columns) = places
    masses = np.zeros(source.law.shape)
    masses[np.ix_(to_rows, to_columns)] = law.law[np.ix_(rows, columns)]
    return law._with(law=masses, w=source.w, x=source.x)


def stacked(laws: Mapping[str, DiscreteSource], encoder: str) -> Atoms:
    """Lay out the atoms of all laws for an encoder, ``z_of`` the number of each atom's law.

    Each is multiplied by a power of 2, which is exact, so that none outweighs the others.
    """
    layers: list[Any] = []
    for law in laws.values():
        _, power = math.frexp(math.fsum(law.law.ravel().tolist()))
        scaled = np.ldexp(law.law, -power)
        layers.append(scaled if (np.ldexp(scaled, power) == law.law).all() else law.law)
    return lay_out(np.stack(layers, axis=2), encoder)
