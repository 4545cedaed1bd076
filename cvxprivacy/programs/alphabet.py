"""The quantities that programs are stated in: risk, rate, distortion, equivocation.

Each is an exact :class:`~cvxprivacy.programs.expression.Expression` in the letters of a problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np

from cvxprivacy.additive import Cost, dense, plus
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, array as exact_array, fractions, rational
from cvxprivacy.leakage import Leakage
from cvxprivacy.leakage.relative_entropy import RelativeEntropy
from cvxprivacy.model.atoms import labels_by_x
from cvxprivacy.programs.channel import DENSE, INFORMATION, View
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.latex import as_under
from cvxprivacy.programs.lettering import GIVEN_X, Lettering, Wording
from cvxprivacy.programs.letters import Letters, Observer
from cvxprivacy.programs.notation import upright
from cvxprivacy.programs.parameter import Scalar, Symbol
from cvxprivacy.programs.worst import Worst, indexed
from cvxprivacy.validation import untaken

__all__ = ["Alphabet"]


def _rows_times(factors: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return rows times a factor each, in rationals: a row repeats few numbers."""
    products = np.empty(table.shape, dtype=object)
    for factor, row, out in zip(factors, table, products, strict=True):
        multiples = {value: factor * rational(value) for value in set(row.tolist())}
        out[:] = [multiples[value] for value in row.tolist()]
    return products


class Alphabet(Letters):
    """The letters of a problem, and the quantities of what is released of them.

    Arguments and attributes are those of :class:`~cvxprivacy.programs.letters.Letters`.
    """

    # ---- quantities ----------------------------------------------------------------------

    def under_each_law(self, quantity: Callable[[Alphabet], Expression]) -> Any:
        """Return a quantity, or, where there are several laws, it under each: their ``Worst``.

        Its sums, multiples and comparisons with numbers are again such quantities, and bounds.
        """
        if not self.several:
            return quantity(self)
        parts = {law: quantity(of) for law, of in self.by_law.items()}
        return Worst({
            law: part.named(indexed(part.name, law), as_under(law, part.latex))
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
            name_of, atoms = self.earlier_letter.view, self.earlier_letter.atoms
            views = {
                name_of(k): view.restricted(atoms) for k, view in data.get("views", {}).items()
            }
            data |= {"views": views}
            weights = {name_of(view): weight for view, weight in dict(weights).items()}
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
            share = share.sum(axis=0)[None]
            table = table[None]
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
        letter, inner = latex or rf"A_{{{upright(name)}}}", "W, X" if matrix.ndim == 3 else "X"
        text = rf"\mathrm{{E}}\, {letter}({inner}, \hat X)"
        quantity = self._quantity(name, cost=self.per_letter(matrix), latex=text)
        return quantity.worded(self._of_letters(letter, matrix.ndim))

    def _of_letters(self, name: str, axes: int) -> Wording:
        """Return how the mean of a function of (x, x̂), or of (w, x, x̂), is written."""
        of = r"@w, x" if axes == 3 else "x"
        side = "z" if self.strategies is not None else ""
        over = ("wx" if axes == 3 else "x") + side
        return Wording(f"{name}({of}, {self.lettering.released})", over)

    @cached_property
    def lettering(self) -> Lettering:
        """What the letters are in LaTeX."""
        same = all(source.identity for source in self.laws.values())
        return Lettering(
            self.encoder_inputs,
            self.side_information,
            same,
            self.several,
            self.units,
            self.strategies is not None,
            "" if self.earlier is None else self.earlier.sees,
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
        values, support = (
            (self.source.w, self.w_support) if kind == "W" else (self.inputs, self.support)
        )
        fitted = measure.fitted(values, np.asarray(support).tolist())
        suffix = "" if fitted.informs else f": {fitted.label}"
        views = {
            f"{indexed(each.view(kind), self.under)}{suffix}": replace(
                self._view(kind, each), measure=fitted, scale=self.scale
            )
            for each in (self.observers if observer is None else [observer])
        }
        letter = self.w_in_print if kind == "W" else "S"
        latex = rf"{measure.symbol}({letter}; {self.lettering.held})"
        return self._quantity(measure.name, dict.fromkeys(views, 1), views=views, latex=latex)

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
                problem = (
                    f"I(W; X̂ | X) of {self.n:,} letters, by {len(self.source.x):,} values of X"
                )
                raise InputError("criteria", problem, "state it of a coarser key: merge letters")
            for each in self.observers:
                there = (self.law > 0) & (each.atoms | (earlier is not None))
                reader = each.view("W"), there, self.w_of, self.x_of, self.source.x
                for name, table in labels_by_x(*reader).items():
                    view = View(table, kind=GIVEN_X, scale=self.scale)
                    view = view if earlier is None else view.restricted(each.atoms)
                    views[indexed(name, self.under)] = view
        held = self.lettering.held.partition(", ")
        latex = rf"I({self.w_in_print}; {held[0]} \mid X{held[1]}{held[2]})"
        if earlier is not None:
            latex = rf"I({self.w_in_print}; {self.lettering.held} \mid X)"
        weights = dict.fromkeys(views, 1)
        return self._quantity(
            "conditional leakage", weights, views=views, latex=latex, of_channel=not informed
        )

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
        if w is None and (observer is None or observer.sees_all) and not self.several:
            ones = np.broadcast_to(1.0, (self.n, self.m))
            return self._quantity("mass", cost=ones, latex="q").worded(
                Wording("", "", self.free(observer))
            )
        atoms = np.ones(self.law.shape) if w is None else (self.w_of == w).astype(float)
        event = "" if w is None else upright(str(self.source.w[self.w_support[w]]))
        latex = f"J({event})" if event else "q"
        mass = self._quantity("mass", cost=self._over(atoms, observer), latex=latex)
        return mass.worded(Wording("", "", self.free(observer), event))

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
        return quantity.worded(Wording("c(@w)", "w", self.free(observer)))

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

    @property
    def w_in_print(self) -> str:
        """W, or X where it is the same."""
        return self.lettering.w.upper()

    @cached_property
    def risk(self) -> Expression:
        """I(W; X̂), or I(W; U, Z) where the user knows Z."""
        return self.information("W").named("risk", rf"I({self.w_in_print}; {self.lettering.held})")

    @cached_property
    def rate(self) -> Expression:
        """I(S; X̂), S what is encoded, or I(S; U | Z)."""
        letter = "X" if self.encoder == "x" else "W, X"
        observed = self.lettering.held.replace(", Z", r" \mid Z")
        return self.information("S").named("rate", rf"I({letter}; {observed})")

    @cached_property
    def distortion(self) -> Expression:
        """E d(X, X̂), or E d(W, X, X̂)."""
        inner = r"W, X, \hat X" if self.d.cost.ndim == 3 else r"X, \hat X"
        cost = self.per_letter(self.d.cost)
        quantity = self._quantity("distortion", cost=cost, latex=rf"\mathrm{{E}}\, d({inner})")
        return quantity.worded(self._of_letters("d", self.d.cost.ndim))

    @cached_property
    def equivocation(self) -> Expression:
        """H(W | what the user has) = H(W) − leakage."""
        entropy = sum((-Scalar(p) * Scalar(p).log(self.units) for p in self.p_w), Scalar(0))
        latex = rf"H({self.w_in_print} \mid {self.lettering.held})"
        return (entropy - self.risk).named("equivocation", latex)

    def whatever_prior(self) -> Worst:
        """max_π I_π(W; X̂) = min_r max_w D(p(x̂ | w) ‖ r), the capacity of W → X̂.

        Whatever an intruder's prior π, no more is told; of the source is p(x | w) alone.
        """
        if self.several or self.side_information:
            problem = "several laws" if self.several else "side information or earlier releases"
            remedy = 'solve it without, or for prior="source", or with LeakageCap, not CapacityCap'
            raise InputError("prior", f"any, with {problem}", remedy)
        latex = rf"D(p_{{{self.lettering.held} \mid {self.lettering.w}}} \,\|\, r)"
        parts: dict[str, Expression] = {}
        for number, w in enumerate(self.w_support):
            value = str(self.source.w[w])
            view = View(np.where(self.w_of == number, 0, -1), measure=RelativeEntropy())
            name = untaken(f"{self.lettering.w} = {value}", parts)
            quantity = self._quantity("risk", {name: 1}, views={name: view}, latex=latex)
            parts[name] = quantity
        return Worst(parts, self.lettering.w)

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
            indexed(observer.view(f"W[{names}]"), self.under): View(
                np.where(observer.atoms, part, -1), part, fitted, kind=letter, scale=self.scale
            )
            for observer in self.observers
        }
        latex = rf"I({letter}; {self.lettering.held})"
        return self._quantity(
            f"leakage of {names}", dict.fromkeys(views, 1), views=views, latex=latex
        )

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
        names = ", ".join(attributes)
        cost = reduce(plus, [parts[name] for name in attributes])
        letter, fitted = rf"d_{{{upright(names)}}}", self.per_letter(cost)
        latex = rf"\mathrm{{E}}\, {letter}"
        quantity = self._quantity(f"distortion of {names}", cost=fitted, latex=latex)
        return quantity.worded(self._of_letters(letter, cost.ndim))

    @cached_property
    def distortions(self) -> Mapping[str, Expression]:
        """E d_i of each attribute of a distortion that was made ``per_attribute``."""
        return {name: self.distortion_of((name,)) for name in self.d.parts}
