"""What is encoded and what is observed: the letters of a channel program, and its quantities.

An encoder reads letters s (x, or with w before it, or z after it).  Everybody observes the output
y, and where Z is side information, those with one z are an observer each.  Criteria and
formulations are stated in the quantities defined here, each an exact
:class:`~cvxprivacy.programs.expression.Expression`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, array as exact_array, floats, fractions, plus
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.information import nat
from cvxprivacy.programs.channel import View
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.parameter import Scalar, Symbol

__all__ = ["Alphabet", "Observer", "check_side_information"]


@dataclass(frozen=True, eq=False)
class Observer:
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", frozen(self.atoms))

    def view(self, kind: str) -> str:
        """Return the name of the view of W or S that this observer has."""
        return kind if self.z is None else f"{kind}|{self.name}"


def check_side_information(source: Any, side_information: str | None) -> None:
    """Refuse what does not say who knows Z, or a Z that the source lacks."""
    if side_information not in (None, "decoder", "both"):
        remedy = 'use None, "decoder" or "both"'
        raise InputError("side_information", f"{side_information!r}", remedy)
    if side_information is not None and not source.z:
        raise InputError(
            "source",
            "no side information Z",
            "make it of a law with three axes, or from a table with side=",
        )


class Alphabet(Frozen):
    """The letters of a problem, and its quantities.

    Parameters
    ----------
    source : DiscreteSource
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
    encoder : {"x", "wx"}
    side_information : {None, "decoder", "both"}
        Who knows Z.
    units : {"bits", "nats"}

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
    observers : list of Observer
    strategies : ndarray of int, shape (m, |Z|), or None
        What each output means for each z; None if outputs are released letters.
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Any,
        *,
        encoder: str = "x",
        side_information: str | None = None,
        units: str = "bits",
    ) -> None:
        if not isinstance(source, DiscreteSource):
            raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
        if encoder not in ("x", "wx"):
            raise InputError("encoder", f"{encoder!r} is unknown", 'use "x" or "wx"')
        nat(units)
        check_side_information(source, side_information)
        self.source, self.units, self.encoder = source, units, encoder
        self.side_information = side_information
        d = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
        self.d = d.fitted(len(source.w), source.x)
        self.encoder_inputs = encoder + ("z" if side_information == "both" else "")
        atoms = source.atoms(self.encoder_inputs)
        self.law, self.w_of, self.w_support = atoms.law, atoms.w_of, atoms.alive_w
        self.support, self.x_of, self.z_of = atoms.alive, atoms.x_of, atoms.z_of
        self.observers = self._observers()
        self.strategies: np.ndarray | None = None

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

    # ---- letters -------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of letters that the encoder reads."""
        return len(self.support)

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

    def with_strategies(self, strategies: np.ndarray) -> Alphabet:
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

    def per_letter(self, matrix: np.ndarray) -> np.ndarray:
        """Return a cost (|X|, |X̂|) or (|W|, |X|, |X̂|) for the program's letters or atoms."""
        w = self.w_support[self.w_of]
        if matrix.ndim == 2:
            cost = matrix[self.x_of]
        else:
            cost = matrix[w[0] if self.encoder == "wx" else w, self.x_of]
        if self.strategies is None:
            return cost
        whole = np.broadcast_to(cost, (*self.law.shape, matrix.shape[-1]))
        return np.take_along_axis(whole, self.strategies.T[self.z_of], axis=2)

    def possible(self, moves: np.ndarray) -> np.ndarray:
        """Tell where an output may make one of these moves, (|X|, |X̂|) → (n, m)."""
        layers = self.per_letter(moves)
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

    @cached_property
    def p_w(self) -> list[Fraction]:
        """The exact law of W on ``w_support``."""
        return self._shares(self.w_of, len(self.w_support))

    @cached_property
    def p_x(self) -> list[Fraction]:
        """The exact law of all key letters of the source."""
        return self._shares(np.broadcast_to(self.x_of, self.law.shape), len(self.source.x))

    def _shares(self, labels: np.ndarray, size: int) -> list[Fraction]:
        masses = [Fraction(0)] * size
        for label, mass in zip(labels.ravel().tolist(), self.law.ravel().tolist(), strict=True):
            masses[label] += Fraction(mass)
        total = sum(masses)
        return [mass / total for mass in masses]

    # ---- quantities ----------------------------------------------------------------------

    def information(self, kind: str = "W", observer: Observer | None = None) -> Expression:
        """Return I(W; what is observed), or I(S; …) of the encoder's letter, in ``units``.

        Of all observers together, or of one: its part of the sum.  Leakage is against p(w)
        whatever z, so that the sum is I(W; X̂, Z); rate against p(s | z).
        """
        observers = self.observers if observer is None else [observer]
        views = {each.view(kind): self._view(kind, each) for each in observers}
        return Expression(weights=dict.fromkeys(views, 1), views=views)

    @cached_property
    def w_view(self) -> View:
        """What an observer of W sees."""
        return View(self.w_of)

    def _view(self, kind: str, observer: Observer) -> View:
        if kind == "W":
            if observer.z is None:
                return self.w_view
            return View(np.where(observer.atoms, self.w_of, -1), self.w_of)
        letter = np.tile(np.arange(self.n), (len(self.law), 1))
        if observer.z is None:
            return View(letter)
        number = np.cumsum((observer.atoms & (self.law > 0)).any(axis=0)) - 1
        return View(np.where(observer.atoms & (self.law > 0), number[letter], -1))

    def mass(self, w: int | None = None, observer: Observer | None = None) -> Expression:
        """Return Pr(observed), or Pr(W = w, observed), w numbered among ``w_support``."""
        if w is None and (observer is None or observer.z is None):
            return Expression("mass", cost=np.ones((self.n, self.m)), latex="q")
        atoms = np.ones(self.law.shape) if w is None else (self.w_of == w).astype(float)
        return Expression("mass", cost=self._over(atoms, observer), latex="q")

    def weighed(self, factors: Sequence[Scalar], observer: Observer | None = None) -> Expression:
        """Return Σ_w c_w Pr(W = w, observed) for one factor c_w per value of ``w_support``."""
        pairs = [factor.enclosure for factor in factors]
        slopes: dict[Symbol, list[float]] = {}
        for i, factor in enumerate(factors):
            for symbol, slope in factor.slopes.items():
                slopes.setdefault(symbol, [0.0] * len(factors))[i] = slope
        values = exact_array([middle for middle, _ in pairs])
        return Expression(
            cost=self._over(values[self.w_of], observer),
            cost_radius=max(radius for _, radius in pairs),
            derivatives={
                symbol: Expression(cost=self._over(np.array(slope)[self.w_of], observer))
                for symbol, slope in slopes.items()
            },
        )

    def _over(self, atoms: np.ndarray, observer: Observer | None) -> np.ndarray:
        """Return a cost (L, n, m) that is the same for all outputs, of one observer's atoms."""
        if observer is not None and observer.z is not None:
            atoms = np.where(observer.atoms, atoms, 0.0)
        return np.broadcast_to(atoms[:, :, None], (*self.law.shape, self.m))

    @property
    def held(self) -> str:
        """What a user has after the release, in LaTeX."""
        return {None: r"\hat X", "decoder": "U, Z", "both": r"\hat X, Z"}[self.side_information]

    @cached_property
    def risk(self) -> Expression:
        """I(W; X̂), or I(W; U, Z) where the user knows Z."""
        return self.information("W").named("risk", rf"I(W; {self.held})")

    @cached_property
    def rate(self) -> Expression:
        """I(S; X̂), S what is encoded, or I(S; U | Z)."""
        letter = "X" if self.encoder == "x" else "W, X"
        said = self.held.replace(", Z", r" \mid Z")
        return self.information("S").named("rate", rf"I({letter}; {said})")

    @cached_property
    def distortion(self) -> Expression:
        """E d(X, X̂), or E d(W, X, X̂)."""
        inner = r"W, X, \hat X" if self.d.matrix.ndim == 3 else r"X, \hat X"
        cost = self.per_letter(self.d.exact)
        return Expression("distortion", cost=cost, latex=rf"\mathrm{{E}}\, d({inner})")

    @cached_property
    def equivocation(self) -> Expression:
        """H(W | what the user has) = H(W) − leakage."""
        entropy = sum((-Scalar(p) * Scalar(p).log(self.units) for p in self.p_w), Scalar(0))
        latex = rf"H(W \mid {self.held})"
        return (entropy - self.risk).named("equivocation", latex)

    def leakage_of(self, attributes: tuple[str, ...] = ()) -> Expression:
        """I(W_j; what the user has) for some attributes of W; for all of W if none is named."""
        if not attributes:
            return self.risk.named("leakage", self.risk.latex)
        names = ", ".join(attributes)
        part = self._attributes(attributes)[self.w_of]
        views = {
            observer.view(f"W[{names}]"): View(np.where(observer.atoms, part, -1), part)
            for observer in self.observers
        }
        latex = rf"I(\text{{{names}}}; {self.held})"
        return Expression(f"leakage of {names}", dict.fromkeys(views, 1), views=views, latex=latex)

    def _attributes(self, names: tuple[str, ...]) -> np.ndarray:
        """Return the number of the letter of some attributes of W, for each of ``w_support``."""
        labels = [self.source.w[w] for w in self.w_support]
        cells = [label if isinstance(label, tuple) else (label,) for label in labels]
        schema = self.source.schema
        columns = schema.sensitive if schema else tuple(map(str, range(len(cells[0]))))
        for name in names:
            if name not in columns:
                problem, remedy = f"no hidden attribute {name!r}", f"use {', '.join(columns)}"
                raise InputError("max_leakage", problem, remedy, value=name)
        letters = [tuple(cell[columns.index(name)] for name in names) for cell in cells]
        numbers = {letter: i for i, letter in enumerate(dict.fromkeys(letters))}
        return np.array([numbers[letter] for letter in letters])

    def distortion_of(self, attributes: tuple[str, ...] = ()) -> Expression:
        """Σ E d_i for some key attributes; E d if none is named."""
        if not attributes:
            return self.distortion
        parts = self.d.parts
        for name in attributes:
            if name not in parts:
                remedy = f"use {', '.join(parts)}" if parts else "make it with per_attribute"
                problem = f"the distortion has no part {name!r}"
                raise InputError("budget", problem, remedy, value=name)
        names = ", ".join(attributes)
        cost = self.per_letter(reduce(plus, [parts[name] for name in attributes]))
        latex = rf"\mathrm{{E}}\, d_{{\text{{{names}}}}}"
        return Expression(f"distortion of {names}", cost=cost, latex=latex)

    @cached_property
    def distortions(self) -> Mapping[str, Expression]:
        """E d_i of each attribute of a distortion that was made ``per_attribute``."""
        return {name: self.distortion_of((name,)) for name in self.d.parts}

    def mass_of_cost(self, cost: FloatArray) -> FloatArray:
        """Return p(s) C(s, y) of costs per letter, or per atom, shape (n, m)."""
        total = self.law.sum()
        if cost.ndim == 2:
            return (self.law.sum(axis=0) / total)[:, None] * cost
        return np.einsum(
            "ls,lsy->sy", self.law / total, np.broadcast_to(cost, (*self.law.shape, self.m))
        )

    def least(self, expression: Expression, lower: Any = None, upper: Any = None) -> float:
        """Return the least value of a linear quantity over entry bounds, rounded up."""
        shape, value = (self.n, self.m), Fraction(0)
        masses = fractions(self.law)
        cost = np.zeros(shape) if expression.cost is None else expression.cost
        low = np.zeros(shape) if lower is None else lower
        high = np.ones(shape) if upper is None else upper
        if len(cost) != len(masses) or cost.ndim == 2:  # one layer for all atoms
            masses, cost = masses.sum(axis=0)[None], cost.reshape(1, *shape)
        layers = zip(masses, fractions(cost), strict=True)
        costs: Any = sum(mass[:, None] * layer for mass, layer in layers)
        for row, floors, most in zip(costs, fractions(low), fractions(high), strict=True):
            value, left = value + row @ floors, 1 - floors.sum()
            for y in np.argsort(row):
                share = min(left, most[y] - floors[y])
                value, left = value + row[y] * share, left - share
                if left <= 0:
                    break
        least = value / masses.sum() + Fraction(expression.constant)
        near = float(least)
        return near if near >= least else math.nextafter(near, math.inf)

    @cached_property
    def greatest_distortion(self) -> float:
        """D_max = min_x̂ E d: from there on a constant is released and nothing is revealed.

        A constant for each z, where the encoder knows it.
        """
        cost = self.mass_of_cost(floats(self.per_letter(self.d.exact)))
        z = self.z_of[0] if "z" in self.encoder_inputs else np.zeros(self.n, int)
        return float(sum(cost[z == each].sum(axis=0).min() for each in np.unique(z)))
