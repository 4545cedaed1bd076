"""Side information Z: what a user tells apart, and what one who knows Z makes of a release."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.model.discrete import Atoms, DiscreteSource

__all__ = ["Observer", "all_strategies", "checked", "few", "observers", "who"]


@dataclass(frozen=True, eq=False)
class Observer:
    """A user as far as what they know tells them apart: everybody, or those with one z.

    Attributes
    ----------
    name : str
        The value of Z, in print.
    z : int or None
        Its number among the source's; None for everybody.
    here : ndarray of bool, shape (L, n)
        The atoms with it.
    share : Fraction
        p(z).
    """

    name: str
    z: int | None
    here: np.ndarray
    share: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "here", frozen(self.here))

    def view(self, kind: str) -> str:
        """Return the name of the view of W or S that this observer has."""
        return kind if self.z is None else f"{kind}|{self.name}"


def who(side_information: str | None) -> None:
    """Refuse what does not say who knows Z."""
    if side_information not in (None, "decoder", "both"):
        remedy = 'use None, "decoder" or "both"'
        raise InputError("side_information", f"{side_information!r}", remedy)


def checked(source: DiscreteSource, side_information: str | None) -> None:
    """Refuse side information that is no such thing, or that the source lacks."""
    who(side_information)
    if side_information is not None and source.z is None:
        remedy = "make it of a law with three axes, or from a table with side="
        raise InputError("source", "no side information Z", remedy)


def observers(source: DiscreteSource, atoms: Atoms, side_information: str | None) -> list[Observer]:
    """Return everybody, or one observer for each z that has mass."""
    if side_information is None or source.z is None:
        return [Observer("", None, np.ones(atoms.law.shape, bool), Fraction(1))]
    masses = [sum(map(Fraction, layer.ravel().tolist())) for layer in np.moveaxis(source.law, 2, 0)]
    return [
        Observer(name, z, atoms.z_of == z, Fraction(mass, sum(masses)))
        for z, (name, mass) in enumerate(zip(source.z_names, masses, strict=True))
        if mass
    ]


def few(letters: int, who: Sequence[Observer], most: int) -> bool:
    """Tell whether there are at most ``most`` rules Z → X̂."""
    return len(who) * math.log(max(letters, 1)) <= math.log(most) + 1e-9


def all_strategies(
    letters: int, who: Sequence[Observer], size: int, most: int
) -> np.ndarray | None:
    """Return every rule t: Z → X̂ as rows t(z), shape (m, |Z|); None if there are more than most.

    They suffice: T = f(U, ·) is a function of U, so that rate, leakage, distortion and the
    criteria per letter are no worse than with U (Shannon's strategies).
    """
    if not few(letters, who, most):
        return None
    found = np.zeros((letters ** len(who), size), dtype=np.int64)
    rules: Any = list(itertools.product(range(letters), repeat=len(who)))
    found[:, [observer.z or 0 for observer in who]] = rules
    return found
