"""The alphabets of a program: what is encoded, what is observed, and the quantities of both.

An encoder reads letters s (x, or with w before it, or z after it).  Everybody observes the output
y, and where Z is side information, those with one z are an observer each.  Where the same release
is to do under several laws, each letter has atoms of each.  Risk, rate, distortion and equivocation
are exact :class:`~cvxprivacy.programs.expression.Expression` in these letters.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np
from flint import arb

from cvxprivacy.additive import Cost, dense, of_letters, plus
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, array as exact_array, fractions, rational
from cvxprivacy.frozen import Frozen, FrozenDict, FrozenFields, frozen, owned
from cvxprivacy.leakage import Leakage
from cvxprivacy.leakage.relative_entropy import RelativeEntropy
from cvxprivacy.model.discrete import Atoms, DiscreteSource, labels_by_x, lay_out
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import DENSE, INFORMATION, View
from cvxprivacy.programs.expression import Expression, Worst, indexed
from cvxprivacy.programs.latex_symbols import GIVEN_X, Notation, PrintedCost, upright
from cvxprivacy.programs.parameter import Scalar, Symbol
from cvxprivacy.validation import one_of, untaken

__all__ = [
    "Alphabet",
    "Earlier",
    "Laws",
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


class Alphabet(Frozen):
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
        chance = (of_x[x] if w is None else exact[w, x])[:, self._met_z]
        labels = [source.x[j] for j in x]
        if w is not None:
            labels = [(source.w[i], label) for i, label in zip(w, labels, strict=True)]
        outputs = [(source.z or [])[z] for z in self._met_z]
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
        strategies[:, self._met_z] = rules
        return strategies

    @property
    def _met_z(self) -> list[int]:
        """The values of Z that have mass."""
        return [observer.z or 0 for observer in self.observers]

    @property
    def met_strategies(self) -> np.ndarray:
        """What each output means for each z that has mass, shape (m, number of observers)."""
        assert self.strategies is not None
        return self.strategies[:, self._met_z]

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

    # ---- quantities ----------------------------------------------------------------------

    def under_each_law(self, quantity: Callable[[Alphabet], Expression]) -> Any:
        """Return a quantity, or, where there are several laws, it under each: their ``Worst``.

        Its sums, multiples and comparisons with numbers are again such quantities, and bounds.
        """
        if not self.several:
            return quantity(self)
        parts = {law: quantity(of) for law, of in self.by_law.items()}
        under = {law: upright(f" under {law}") if law else "" for law in parts}
        return Worst({
            law: part.named(indexed(part.name, law), part.latex and part.latex + under[law])
            for law, part in parts.items()
        })  # fmt: skip

    @cached_property
    def origin(self) -> int:
        """Tells the atoms from others."""
        atoms = self._atoms
        content = str(atoms.law.shape).encode(), atoms.law.tobytes(), atoms.w_of.tobytes()
        return int(hashlib.sha256(b"".join(content)).hexdigest()[:15], 16)

    def _quantity(
        self, name: str = "", weights: Any = (), cost: Any = None, radius: Any = 0, **data: Any
    ) -> Expression:
        """Return a quantity under the law: of its atoms alone, where there are several."""
        weights = dict(weights)
        if self.several:
            weights = {view: self.scale * weight for view, weight in weights.items()}
            cost, radius = None if cost is None else self._under_law(cost), self.scale * radius
        if self.earlier_letter is not None:
            named, atoms = self.earlier_letter.view, self.earlier_letter.atoms
            views = data.get("views", {})
            data["views"] = {named(k): view.restricted(atoms) for k, view in views.items()}
            weights = {named(view): weight for view, weight in weights.items()}
            cost = None if cost is None else np.where(atoms[:, :, None], dense(cost), 0.0)
        data |= {"cost_radius": radius, "origin": self.origin}
        return Expression(name, weights, cost, **data)

    def _under_law(self, cost: Cost) -> Exact:
        """Return Σ_l p(l, s) C(l, s, y) of the law's atoms l, per unit of all mass of letter s."""
        atoms = fractions(np.where(self.met, self.law, 0.0)) * self.scale
        share = atoms / fractions(self.law).sum(axis=0)
        table = dense(cost)
        if table.strides[-1] == 0:  # the same for all outputs
            table = table[..., :1]
        if table.ndim == 2:
            share, table = share.sum(axis=0)[None], table[None]
        mean = sum(map(_rows_times, share, table))
        return exact_array(np.broadcast_to(mean, (self.n, self.m)))

    def with_earlier_letter(self, observer: Observer) -> Self:
        """Return the letters as if what is released were (z, x̂), z an observer's earlier letter.

        All quantities are of records with that z, against laws whatever z.
        """
        everybody = Observer("", None, np.ones(self.law.shape, bool), Fraction(1))
        return self._with(earlier_letter=observer, observers=[everybody], earlier=self.earlier)

    def total(self, name: str, matrix: Cost, latex: str = "") -> Expression:
        """Return E A(X, X̂), or E A(W, X, X̂): a distortion of one's own, say.

        Parameters
        ----------
        name : str
            What it is reported as.
        matrix : array, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
            A: what a record with w and x that is released as x̂ counts.
        latex : str, optional
            The letter A.

        Raises
        ------
        InputError
            If the matrix has another shape.
        """
        matrix = exact_array(matrix) if isinstance(matrix, (list, tuple)) else matrix
        x, y = self.d.cost.shape[-2:]
        if matrix.shape not in ((x, y), (len(self.source.w), x, y)):
            remedy = f"pass one of shape ({x}, {y}), or ({len(self.source.w)}, {x}, {y})"
            raise InputError("matrix", f"shape {matrix.shape}", remedy)
        return self._mean(name, matrix, latex or rf"A_{{{upright(name)}}}")

    def _mean(self, name: str, matrix: Cost, letter: str, latex: str = "") -> Expression:
        """Return the mean of a function of (x, x̂), or of (w, x, x̂), by its letter."""
        w, of_w = ("w", "@w, ") if matrix.ndim == 3 else ("", "")
        latex = latex or rf"{letter}({'W, ' if w else ''}X, \hat X)"
        z = "z" if self.strategies is not None else ""
        printed = PrintedCost(f"{letter}({of_w}x, {self.notation.released})", f"{w}x{z}")
        cost = self.per_letter(matrix)
        return self._quantity(name, cost=cost, latex=rf"\mathrm{{E}}\, {latex}").printed_as(printed)

    @cached_property
    def notation(self) -> Notation:
        """What the letters are in LaTeX."""
        return Notation(
            self.encoder_inputs,
            self.side_information,
            same=all(source.identity for source in self.laws.values()),
            several=self.several,
            units=self.units,
            strategies=self.strategies is not None,
            together="" if self.earlier is None else self.earlier.sees,
        )

    def information(self, kind: str = "W", observer: Observer | None = None) -> Expression:
        """Return I(W; what is observed), or I(S; …) of the encoder's letter, in ``units``.

        Of all observers together, or of one: its part of the sum.  Leakage is against p(w)
        whatever z, so that the sum is I(W; X̂, Z); rate against p(s | z).  Where z was released
        earlier, it is a part of what is told: S is x, or (w, x), and its law p(s) whatever z.
        """
        return self.leaked(INFORMATION, kind, observer)

    def leaked(
        self, measure: Leakage, kind: str = "W", observer: Observer | None = None
    ) -> Expression:
        """Return what is leaked about W, or about the encoder's letter, in some measure.

        Of all observers together, or of one, as :meth:`information`.
        """
        of_w = kind == "W"
        values, support = (self.source.w, self.w_support) if of_w else (self.inputs, self.support)
        fitted = measure.fitted(values, np.asarray(support).tolist())
        suffix = "" if fitted.informs else f": {fitted.label}"
        views = {
            indexed(each.view(kind), self.under) + suffix: self._view(kind, each)
            for each in (self.observers if observer is None else [observer])
        }
        return self._leaked(measure.name, self.notation.sensitive if of_w else "S", fitted, views)

    def _leaked(
        self, name: str, letter: str, measure: Leakage, views: Mapping[str, View]
    ) -> Expression:
        """Return what is leaked to all of these views together, in a measure."""
        views = {k: replace(v, measure=measure, scale=self.scale) for k, v in views.items()}
        latex = rf"{measure.symbol}({letter}; {self.notation.held})"
        return self._quantity(name, dict.fromkeys(views, 1), views=views, latex=latex)

    @cached_property
    def conditional_leakage(self) -> Expression:
        """I(W; X̂ | X), or I(W; U | X, Z): what is told to who knows x beyond x, a view for each x.

        Nothing, whatever is released, where the encoder does not see W: that is of its channel,
        and not of a table that was drawn by it, where W and x̂ agree by chance.
        """
        views: dict[str, View] = {}
        earlier = self.earlier
        informed = "w" in (self.encoder_inputs if earlier is None else earlier.sees)
        if informed:
            if len(self.source.x) * self.law.size > DENSE:
                size = f"{self.n:,} letters, by {len(self.source.x):,} values of X"
                remedy = "state it of a coarser key: merge letters"
                raise InputError("criteria", f"I(W; X̂ | X) of {size}", remedy)
            for each in self.observers:
                there = (self.law > 0) & (each.atoms | (earlier is not None))
                reader = each.view("W"), there, self.w_of, self.x_of, self.source.x
                for name, table in labels_by_x(*reader).items():
                    view = View(table, kind=GIVEN_X, scale=self.scale)
                    name = indexed(name, self.under)
                    views[name] = view if earlier is None else view.restricted(each.atoms)
        of, z = self.notation, ", Z" if self.side_information and earlier is None else ""
        latex = rf"I({of.sensitive}; {of.held.removesuffix(z)} \mid X{z})"
        data = {"views": views, "latex": latex, "of_channel": not informed}
        return self._quantity("conditional leakage", dict.fromkeys(views, 1), **data)

    def risk_in(self, measure: Leakage) -> Expression:
        """Return what is leaked about W in some measure, as the risk."""
        leaked = self.leaked(measure)
        return leaked.named("risk", leaked.latex)

    @cached_property
    def w_view(self) -> View:
        """What an observer of W sees."""
        return View(np.where(self.met, self.w_of, -1) if self.several else self.w_of)

    def _view(self, kind: str, observer: Observer) -> View:
        if kind == "W":
            if observer.z is None:
                return self.w_view
            return View(np.where(observer.atoms, self.w_of, -1), self.w_of)
        if self.earlier is not None:
            of = self.earlier.number
            return View(np.where(observer.atoms, of, -1), of, kind="S")
        letter = np.tile(np.arange(self.n), (len(self.law), 1))
        if observer.sees_all:
            return View(letter, kind="S")
        number = np.cumsum((observer.atoms & (self.law > 0)).any(axis=0)) - 1
        return View(np.where(observer.atoms & (self.law > 0), number[letter], -1), kind="S")

    def mass(self, w: int | None = None, observer: Observer | None = None) -> Expression:
        """Return Pr(observed), or Pr(W = w, observed).

        Parameters
        ----------
        w : int, optional
            The number of a value of W among those that have mass, as in ``p_w``.
        observer : Observer, optional
            By default one who sees all that the user does.

        Raises
        ------
        InputError
            If no value of W has that number.
        """
        if w is not None and not (isinstance(w, (int, np.integer)) and 0 <= w < len(self.p_w)):
            problem = f"{w!r} is no number of a value of W with mass"
            raise InputError("w", problem, f"pass one of 0 … {len(self.p_w) - 1}", value=w)
        event = "" if w is None else upright(str(self.source.w[self.w_support[w]]))
        atoms = np.ones(self.law.shape) if w is None else (self.w_of == w).astype(float)
        cost = self._over(atoms, observer)
        if w is None and (observer is None or observer.sees_all) and not self.several:
            cost = np.broadcast_to(1.0, (self.n, self.m))
        mass = self._quantity("mass", cost=cost, latex=f"J({event})" if event else "q")
        return mass.printed_as(PrintedCost("", "", self.free(observer), event))

    def free(self, observer: Observer | None) -> tuple[str, ...]:
        """Return the letter of an observer, of which there is a constraint each."""
        each = self.earlier_letter is not None or (observer is not None and observer.z is not None)
        return ("z",) if each else ()

    def weighed(self, factors: Sequence[Scalar], observer: Observer | None = None) -> Expression:
        """Return Σ_w c_w Pr(W = w, observed) for one factor c_w per value of ``w_support``."""
        pairs = [factor.enclosure for factor in factors]
        slopes: dict[Symbol, list[float]] = {}
        for i, factor in enumerate(factors):
            for symbol, slope in factor.slopes.items():
                slopes.setdefault(symbol, [0.0] * len(factors))[i] = slope
        values = exact_array([middle for middle, _ in pairs])
        quantity = self._quantity(
            cost=self._over(values[self.w_of], observer),
            radius=max(radius for _, radius in pairs),
            derivatives={
                symbol: self._quantity(cost=self._over(np.array(slope)[self.w_of], observer))
                for symbol, slope in slopes.items()
            },
        )
        return quantity.printed_as(PrintedCost("c(@w)", "w", self.free(observer)))

    def moved(self, factors: Mapping[int, Scalar]) -> Expression:
        """Return Σ_s c_s p(x̂ | s), of the channel alone, for factors of some letters s.

        Parameters
        ----------
        factors : mapping of int to number
            c_s by the place of s among the letters with mass.
        """
        cost = np.full(self.n, Fraction(0), dtype=object)
        radius, slopes = Fraction(0), dict[Symbol, Expression]()
        shape = (self.n, self.m)
        for s, factor in factors.items():
            middle, off = factor.enclosure
            cost[s], radius = middle / self.masses[s], max(radius, off / self.masses[s])
            for symbol, slope in factor.slopes.items():
                change = np.zeros(self.n)
                change[s] = slope / float(self.masses[s])
                moved = Expression(cost=np.broadcast_to(change[:, None], shape), origin=self.origin)
                slopes[symbol] = slopes[symbol] + moved if symbol in slopes else moved
        table = np.broadcast_to(exact_array(cost)[:, None], shape)
        return Expression(
            "moved", {}, table, radius, derivatives=slopes, origin=self.origin, of_channel=True
        )

    def _over(self, atoms: np.ndarray, observer: Observer | None) -> np.ndarray:
        """Return a cost (L, n, m) that is the same for all outputs, of one observer's atoms."""
        if observer is not None and not observer.sees_all:
            atoms = np.where(observer.atoms, atoms, 0.0)
        return np.broadcast_to(atoms[:, :, None], (*self.law.shape, self.m))

    @cached_property
    def risk(self) -> Expression:
        """I(W; X̂), or I(W; U, Z) where the user knows Z."""
        return self.risk_in(INFORMATION)

    @cached_property
    def rate(self) -> Expression:
        """I(S; X̂), S what is encoded, or I(S; U | Z)."""
        letter = "X" if self.encoder == "x" else "W, X"
        observed = self.notation.held.replace(", Z", r" \mid Z")
        return self.information("S").named("rate", rf"I({letter}; {observed})")

    @cached_property
    def distortion(self) -> Expression:
        """E d(X, X̂), or E d(W, X, X̂)."""
        return self._mean("distortion", self.d.cost, "d")

    @cached_property
    def equivocation(self) -> Expression:
        """H(W | what the user has) = H(W) − leakage."""
        entropy = sum((-Scalar(p) * Scalar(p).log(self.units) for p in self.p_w), Scalar(0))
        latex = rf"H({self.notation.sensitive} \mid {self.notation.held})"
        return (entropy - self.risk).named("equivocation", latex)

    def whatever_prior(self) -> Worst:
        """max_π I_π(W; X̂) = min_r max_w D(p(x̂ | w) ‖ r), the capacity of W → X̂.

        Whatever an intruder's prior π, no more is told; of the source is p(x | w) alone.
        """
        if self.several or self.side_information:
            problem = "several laws" if self.several else "side information or earlier releases"
            remedy = 'solve it without, or for prior="source", or with LeakageCap, not CapacityCap'
            raise InputError("prior", f"any, with {problem}", remedy)
        latex = rf"D(p_{{{self.notation.held} \mid {self.notation.w}}} \,\|\, r)"
        parts: dict[str, Expression] = {}
        for number, w in enumerate(self.w_support):
            view = View(np.where(self.w_of == number, 0, -1), measure=RelativeEntropy())
            name = untaken(f"{self.notation.w} = {self.source.w[w]}", parts)
            parts[name] = self._quantity("risk", {name: 1}, views={name: view}, latex=latex)
        return Worst(parts, self.notation.w)

    def leakage_of(
        self,
        attributes: tuple[str, ...] = (),
        measure: Leakage = INFORMATION,
        argument: str = "max_leakage",
    ) -> Expression:
        """I(W_j; what the user has) for some attributes of W; for all of W if none is named.

        Or what is leaked about them in another measure; ``argument`` is where they were named.
        """
        if not attributes:
            return self.risk.named("leakage", self.risk.latex)
        names = ", ".join(attributes)
        numbers = self._attributes(attributes, argument)
        part, values = numbers[self.w_of], range(int(numbers.max()) + 1)
        if self.several:
            part = np.where(self.met, part, -1)
        letter, fitted = upright(names), measure.fitted(values, list(values))
        views = {
            indexed(each.view(f"W[{names}]"), self.under): View(
                np.where(each.atoms, part, -1), part, kind=letter
            )
            for each in self.observers
        }
        return self._leaked(f"leakage of {names}", letter, fitted, views)

    def _attributes(self, names: tuple[str, ...], argument: str = "max_leakage") -> np.ndarray:
        """Return the number of the letter of some attributes of W, for each of ``w_support``."""
        labels = [self.source.w[w] for w in self.w_support]
        cells = [label if isinstance(label, tuple) else (label,) for label in labels]
        schema = self.source.schema
        columns = schema.sensitive if schema else tuple(map(str, range(len(cells[0]))))
        for name in names:
            if name not in columns:
                problem, remedy = f"no hidden attribute {name!r}", f"use {', '.join(columns)}"
                raise InputError(argument, problem, remedy, value=name)
        letters = [tuple(cell[columns.index(name)] for name in names) for cell in cells]
        numbers = {letter: i for i, letter in enumerate(dict.fromkeys(letters))}
        return np.array([numbers[letter] for letter in letters])

    def distortion_of(self, attributes: tuple[str, ...] = ()) -> Expression:
        """Σ E d_i for some key attributes; E d if none is named."""
        if not attributes:
            return self.distortion
        parts: Mapping[str, Cost] = self.d.parts
        for name in attributes:
            if name not in parts:
                remedy = f"use {', '.join(parts)}" if parts else "make it with per_attribute"
                problem = f"the distortion has no part {name!r}"
                raise InputError("budget", problem, remedy, value=name)
        names, cost = ", ".join(attributes), reduce(plus, [parts[name] for name in attributes])
        letter = rf"d_{{{upright(names)}}}"
        return self._mean(f"distortion of {names}", cost, letter, letter)

    @cached_property
    def distortions(self) -> Mapping[str, Expression]:
        """E d_i of each attribute of a distortion that was made ``per_attribute``."""
        return {name: self.distortion_of((name,)) for name in self.d.parts}


def _rows_times(factors: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return rows times a factor each, in rationals: a row repeats few numbers."""
    products = np.empty(table.shape, dtype=object)
    for factor, row, out in zip(factors, table, products, strict=True):
        multiples = {value: factor * rational(value) for value in set(row.tolist())}
        out[:] = [multiples[value] for value in row.tolist()]
    return products


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
