"""What is encoded and what is observed: the letters of a channel program.

An encoder reads letters s (x, or with w before it, or z after it).  Everybody observes the output
y, and where Z is side information, those with one z are an observer each.  Where the same release
is to do under several laws, each letter has atoms of each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from flint import arb

from cvxprivacy.additive import Cost, dense, of_letters
from cvxprivacy.errors import InputError
from cvxprivacy.frozen import Frozen, FrozenDict, FrozenFields, frozen, owned
from cvxprivacy.model.atoms import Atoms, lay_out
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import nat
from cvxprivacy.programs.parameter import Scalar
from cvxprivacy.validation import one_of

__all__ = [
    "Earlier",
    "Laws",
    "Letters",
    "Observer",
    "check_encoder",
    "check_side_information",
    "stacked",
    "with_letters_of",
]


@dataclass(frozen=True, eq=False)
class Observer(FrozenFields):
    """A user as far as what they know tells them apart: everybody, or those with one z.

    Attributes
    ----------
    name : str
        The value of Z, in print.
    z : int or None
        Its number among the source's; None for everybody.
    atoms : ndarray of bool, shape (L, n)
        Those with this z.
    share : Fraction
        p(z).
    """

    name: str
    z: int | None
    atoms: np.ndarray
    share: Fraction

    @cached_property
    def sees_all(self) -> bool:
        """Whether no atoms are those of others, or of other laws."""
        return bool(self.atoms.all())

    def view(self, kind: str) -> str:
        """Return the name of the view of W or S that this observer has."""
        return kind if self.z is None else f"{kind}|{self.name}"


@dataclass(frozen=True, eq=False)
class Earlier(FrozenFields):
    """Earlier releases, by all that they and this one see of a record: x, or (w, x).

    Attributes
    ----------
    sees : {"x", "wx"}
        What some release depends on.
    labels, outputs : list
        The inputs r with mass: x, or (w, x); and the letters z.
    x_of : ndarray of int, shape (R,)
        The x of each.
    chance : ndarray of Fraction, shape (R, observers)
        p(z | r), exactly.
    letter : ndarray of int, shape (R, observers)
        What the encoder of this release reads of r and z.
    number : ndarray of int, shape (L, n)
        The input r of each atom; −1 of those without mass.
    """

    sees: str
    labels: list[Any]
    outputs: list[Any]
    x_of: np.ndarray
    chance: np.ndarray
    letter: np.ndarray
    number: np.ndarray

    @property
    def z(self) -> range:
        """The places of the letters z."""
        return range(len(self.outputs))


def check_encoder(encoder: str) -> None:
    """Refuse what does not say what the encoder sees."""
    one_of(encoder, "encoder", "x", "wx")


def check_side_information(source: Any, side_information: str | None) -> None:
    """Refuse what does not say who knows Z, or a Z that the source lacks."""
    one_of(side_information, "side_information", None, "decoder", "both")
    if side_information is not None and not source.z:
        raise InputError(
            "source",
            "no side information Z",
            "make it of a law with three axes, or from a table with side=",
        )


class Letters(Frozen):
    """The letters of a problem.

    Parameters
    ----------
    source : DiscreteSource
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
    encoder : {"x", "wx"}
    side_information : {None, "decoder", "both"}
        Who knows Z.
    units : {"bits", "nats"}
    laws : mapping of str to DiscreteSource
        Further laws of the same letters, by name.

    Attributes
    ----------
    d : Distortion
        With its rows in the order of the source's letters.
    encoder_inputs : str
        The letters that make an encoder's letter s: ``"x"``, ``"wx"``, ``"xz"`` or ``"wxz"``.
    law : ndarray, shape (L, n)
        Masses of the atoms, a column per letter with mass.
    w_of, z_of : ndarray of int, shape (L, n)
        Each atom's w, numbered among ``w_support``, and its z.
    w_support, support : ndarray of int
        The values of W, and the encoder's letters, that have mass.
    x_of : ndarray of int, shape (n,)
        Each letter's x.
    under : str
        The law of all quantities; "" is the source.
    observers : list of Observer
    strategies : ndarray of int, shape (m, |Z|), or None
        What each output means for each z; None if outputs are released letters.
    earlier_letter : Observer or None
        Whose records alone all quantities are of, as of ``with_earlier_letter``.
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Any,
        *,
        encoder: str = "x",
        side_information: str | None = None,
        units: str = "bits",
        laws: Mapping[str, DiscreteSource] = FrozenDict(),
    ) -> None:
        if not isinstance(source, DiscreteSource):
            raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
        check_encoder(encoder)
        nat(units)
        check_side_information(source, side_information)
        self.source, self.units, self.encoder = source, units, encoder
        self.side_information = side_information
        d = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
        self.d = d.fitted(len(source.w), source.x)
        self.encoder_inputs = encoder + ("z" if side_information == "both" else "")
        self.laws, self.under = {"": source, **laws}, ""
        atoms = stacked(self.laws, encoder) if laws else source.atoms(self.encoder_inputs)
        self.law, self.w_of, self.w_support = atoms.law, atoms.w_of, atoms.w_support
        self.support, self.x_of, self.z_of = atoms.support, atoms.x_of, atoms.z_of
        self.observers = self._observers()
        self.strategies: np.ndarray | None = None
        self.earlier_letter: Observer | None = None
        self._atoms = atoms
        for name, value in self._seen_under("").items():
            setattr(self, name, value)

    # ---- laws ----------------------------------------------------------------------------

    @cached_property
    def by_law(self) -> Mapping[str, Self]:
        """The same letters under each law by itself."""
        return {name: self._with(**self._seen_under(name)) for name in self.laws}

    def _seen_under(self, name: str) -> dict[str, Any]:
        """Return what is different under a law; nothing where there is but one."""
        if not self.several:
            return {}
        atoms = self._atoms
        of_law = atoms.z_of == list(self.laws).index(name)
        there = np.unique(atoms.w_of[of_law & (atoms.law > 0)])
        number = np.zeros(len(atoms.w_support), np.int64)
        number[there] = np.arange(len(there))
        return {
            "under": name,
            "source": self.laws[name],
            "w_of": number[atoms.w_of],
            "w_support": atoms.w_support[there],
            "observers": [Observer("", None, of_law, Fraction(1))],
        }

    @property
    def several(self) -> bool:
        """Whether there are several laws."""
        return len(self.laws) > 1

    @cached_property
    def met(self) -> np.ndarray:
        """Atoms of the law, shape (L, n)."""
        return self.observers[0].atoms if self.several else owned(np.ones(self.law.shape, bool))

    @cached_property
    def scale(self) -> Fraction:
        """The mass of all atoms in terms of those of the law."""
        if not self.several:
            return Fraction(1)
        atoms = map(Fraction, self.law.ravel().tolist()), map(Fraction, self.law[self.met].tolist())
        total, part = (sum(masses, Fraction(0)) for masses in atoms)
        return total / part

    def _observers(self) -> list[Observer]:
        source = self.source
        if self.side_information is None or source.z is None:
            return [Observer("", None, np.ones(self.law.shape, bool), Fraction(1))]
        layers = np.moveaxis(source.law, 2, 0)
        masses = [sum(map(Fraction, layer.ravel().tolist())) for layer in layers]
        return [
            Observer(name, z, self.z_of == z, Fraction(mass, sum(masses)))
            for z, (name, mass) in enumerate(zip(source.z_names, masses, strict=True))
            if mass
        ]

    @cached_property
    def earlier(self) -> Earlier | None:
        """The earlier releases that Z is of; None where Z is something else."""
        source = self.source
        if source.earlier is None or self.side_information is None:
            return None
        masses, exact = source.joint > 0, source.earlier
        of_x = exact[masses.argmax(axis=0), np.arange(len(source.x))]
        sees_w = "w" in self.encoder_inputs or bool((exact != of_x)[masses].any())
        w, x = np.nonzero(masses) if sees_w else (None, np.flatnonzero(masses.any(axis=0)))
        number = np.full(masses.shape, -1)
        number[(slice(None) if w is None else w), x] = np.arange(len(x))
        at = number[self.w_support[self.w_of], self.x_of]
        letter = np.full((len(x), len(self.observers)), -1)
        for k, observer in enumerate(self.observers):
            atom, s = np.nonzero(observer.atoms & (at >= 0))
            letter[at[atom, s], k] = s
        met = [observer.z or 0 for observer in self.observers]
        chance = (of_x[x] if w is None else exact[w, x])[:, met]
        labels = [source.x[j] for j in x]
        if w is not None:
            labels = [(source.w[i], label) for i, label in zip(w, labels, strict=True)]
        outputs = [(source.z or [])[z] for z in met]
        number = np.where(self.law > 0, at, -1)
        return Earlier("wx" if sees_w else "x", labels, outputs, x, chance, letter, number)

    @cached_property
    def law_rounding(self) -> Scalar:
        """1, in a ball of what p(z | r) of the law is off that of the earlier channels."""
        earlier = self.earlier
        assert earlier is not None
        masses = np.full(earlier.chance.shape, Fraction(0), dtype=object)
        for k, observer in enumerate(self.observers):
            for place in zip(*np.nonzero(observer.atoms & (earlier.number >= 0)), strict=True):
                masses[earlier.number[place], k] += Fraction(float(self.law[place]))
        there = masses > 0
        shares = (masses / masses.sum(axis=1, keepdims=True))[there]
        off = abs(earlier.chance[there] / shares - 1).max()
        return Scalar(arb(1, 2.5 * float(off)))  # of both sides of a comparison

    # ---- letters -------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of letters that the encoder reads."""
        return len(self.support)

    @property
    def inputs(self) -> list[Any]:
        """Labels of what may be encoded, with mass or without: x, or (w, x), (x, z), (w, x, z)."""
        axes = {"w": self.source.w, "x": self.source.x, "z": self.source.z or []}
        labels = list(itertools.product(*(axes[axis] for axis in self.encoder_inputs)))
        return labels if len(self.encoder_inputs) > 1 else [label[0] for label in labels]

    @property
    def m(self) -> int:
        """Number of outputs: released letters, or strategies."""
        return len(self.outputs)

    @property
    def outputs(self) -> list[Any]:
        """Labels of the outputs; strategies are numbered."""
        return self.d.outputs if self.strategies is None else list(range(len(self.strategies)))

    @property
    def sizes(self) -> dict[str, int]:
        """|W|, |X|, |Z| if it is side information, and |X̂|."""
        source = self.source
        sizes = {"W": len(source.w), "X": len(source.x)}
        if self.side_information:
            sizes["Z"] = len(source.z or ())
        return {**sizes, "X̂": len(self.d.outputs)}

    def with_strategies(self, strategies: np.ndarray) -> Self:
        """Return the alphabet with these rules Z → X̂, shape (m, |Z|), as outputs."""
        return self._with(strategies=frozen(strategies))

    def all_strategies(self, most: int) -> np.ndarray | None:
        """Return every rule t: Z → X̂ as rows t(z), shape (m, |Z|); None if more than ``most``.

        They suffice: T = f(U, ·) is a function of U, so that rate, leakage, distortion and the
        criteria per letter are no worse than with U (Shannon's strategies).
        """
        letters, count = len(self.d.outputs), len(self.observers)
        if count * math.log(max(letters, 1)) > math.log(most) + 1e-9:
            return None
        strategies = np.zeros((letters**count, len(self.source.z or ())), dtype=np.int64)
        rules: Any = list(itertools.product(range(letters), repeat=count))
        strategies[:, [observer.z or 0 for observer in self.observers]] = rules
        return strategies

    @property
    def met_strategies(self) -> np.ndarray:
        """What each output means for each z that has mass, shape (m, number of observers)."""
        assert self.strategies is not None
        return self.strategies[:, np.array([observer.z or 0 for observer in self.observers])]

    def per_letter(self, matrix: Cost) -> Cost:
        """Return a cost (|X|, |X̂|) or (|W|, |X|, |X̂|) for the program's letters or atoms."""
        w = self.w_support[self.w_of]
        if matrix.ndim == 2:
            cost = of_letters(matrix, self.x_of)
        else:
            cost = dense(matrix)[w[0] if self.encoder == "wx" else w, self.x_of]
        if self.strategies is None:
            return cost
        full = np.broadcast_to(dense(cost), (*self.law.shape, matrix.shape[-1]))
        return np.take_along_axis(full, self.strategies.T[self.z_of], axis=2)

    def possible(self, moves: np.ndarray) -> np.ndarray:
        """Tell where an output may make one of these moves, (|X|, |X̂|) → (n, m)."""
        layers = dense(self.per_letter(moves))
        if layers.ndim == 3:
            layers = np.asarray((layers & (self.law > 0)[:, :, None]).any(axis=0))
        return layers

    def unchanged(self, letters: Sequence[int]) -> np.ndarray:
        """Tell where a released letter is the key letter itself, shape (len(letters), |X̂|)."""
        rows = []
        for x in letters:
            label = self.source.x[x]
            row = [output == label for output in self.d.outputs]
            if sum(row) != 1:
                how = "is released under two columns" if any(row) else "is no released letter"
                remedy = "use a distortion whose outputs are the source's key letters, once each"
                raise InputError("distortion", f"{label!r} {how}", remedy, value=label)
            rows.append(row)
        return np.array(rows)

    @property
    def mass_of_letters(self) -> np.ndarray:
        """p(s) in floats, shape (n,)."""
        masses = np.where(self.met, self.law, 0.0)
        shares: np.ndarray = masses.sum(axis=0) / masses.sum()
        return shares

    @cached_property
    def masses(self) -> list[Fraction]:
        """The exact p(s) of all atoms, under whatever law."""
        columns = [sum(map(Fraction, column), Fraction(0)) for column in self.law.T.tolist()]
        total = sum(columns)
        return [mass / total for mass in columns]

    @cached_property
    def p_w(self) -> list[Fraction]:
        """The exact law of W on ``w_support``."""
        return self._shares(self.w_of, len(self.w_support))

    @cached_property
    def p_x(self) -> list[Fraction]:
        """The exact law of all key letters of the source."""
        return self._shares(np.broadcast_to(self.x_of, self.law.shape), len(self.source.x))

    def _shares(self, labels: np.ndarray, size: int) -> list[Fraction]:
        masses, law = [Fraction(0)] * size, np.where(self.met, self.law, 0.0)
        for label, mass in zip(labels.ravel().tolist(), law.ravel().tolist(), strict=True):
            masses[label] += Fraction(mass)
        total = sum(masses)
        return [mass / total for mass in masses]


# ---- several laws of the same letters -----------------------------------------------------


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
