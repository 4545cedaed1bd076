"""Quantities of a release as exact data, and the algebra in which programs are stated (P13).

Expressions add, scale, and compare as in CVXPY: ``risk <= budget`` is a constraint.  Numbers that
were typed are traced through (see :mod:`cvxprivacy.programs.parameter`): every expression is
affine in them, and knows its derivative by each.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np

from cvxprivacy.additive import AdditiveCost, Cost, dense, floats, plus as added, times as product
from cvxprivacy.errors import InputError
from cvxprivacy.exact import (
    Exact,
    FloatArray,
    alike,
    array as exact_array,
    listed,
    plus,
    rational,
    written,
)
from cvxprivacy.frozen import FrozenDict, FrozenFields, core
from cvxprivacy.programs.latex_symbols import tex
from cvxprivacy.programs.parameter import Scalar, Symbol
from cvxprivacy.validation import table, typed

__all__ = [
    "Constraint",
    "Expression",
    "Minimize",
    "Quantity",
    "Worst",
    "each_part",
    "first_part",
    "indexed",
    "parts_of",
    "refuse_nonconvex",
]

Sense = Literal["<=", "=="]
_REMEDY = (
    "quantities are added, weighed by numbers and compared; of a maximum, bound each by itself"
)
_REFLECTED = {  # what NumPy calls the operators of a number of its own on the left
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "less_equal": "__ge__",
    "greater_equal": "__le__",
    "equal": "__eq__",
}


def _refused(what: str, remedy: str) -> Callable[..., NoReturn]:
    """Return an operator that says why a quantity of a release has none of its kind."""

    def operator(*operands: Any, **options: Any) -> NoReturn:
        raise TypeError(f"{what}: {remedy}")

    return operator


class Quantity:
    """A quantity with ``+``, ``*`` by numbers, ``<=``, ``>=`` and ``==``, and what these make.

    As in CVXPY; no other function of a quantity is stated by a program.
    """

    def __add__(self, other: Any) -> Any:
        raise NotImplementedError

    def __mul__(self, factor: Any) -> Self:
        raise NotImplementedError

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other)

    def __rmul__(self, factor: Any) -> Self:
        return self.__mul__(factor)

    def __neg__(self) -> Self:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __rtruediv__ = _refused(
        "a reciprocal of a quantity of a release is not taken",
        "1/quantity <= b is stated as quantity >= 1/b, where that is convex",
    )
    __pow__ = _refused(
        "a power of a quantity of a release is not taken",
        "bound the quantity itself by the root of the bound",
    )
    __abs__ = _refused(
        "an absolute value of a quantity of a release is not taken",
        "bound it from both sides, by two names: quantity <= b and quantity >= -b",
    )
    __lt__ = __gt__ = _refused(  # which max and min ask for, too
        "a strict inequality has no optimum",
        f"state it with <= or >= (and of max or min: {_REMEDY})",
    )
    # NumPy and CVXPY would take a quantity for an array of objects
    __array__ = _refused("a quantity of a release is not an array", _REMEDY)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        reflected, number = _REFLECTED.get(function.__name__), inputs[0]
        if reflected is None or isinstance(number, Quantity):
            raise TypeError(f"numpy.{function.__name__} of a quantity of a release: {_REMEDY}")
        return getattr(self, reflected)(number if np.ndim(number) else number.item())


@dataclass(frozen=True, eq=False)
class Expression(Quantity, FrozenFields):
    """A named quantity Σ_k Σ_y α_k(y) Φ_k(y) + ⟨C, Q⟩ + c of the release.

    Attributes
    ----------
    name : str
        The quantity's name, as in "the least *distortion*".
    weights : mapping of str to number or (m,) array
        α_k of the information of each view.
    cost : (n, m) or (L, n, m) array, or AdditiveCost, optional
        C, per unit of letter mass, or per unit of atom mass; ``cost_radius`` bounds the
        distance to the number meant where it is irrational.
    constant, constant_radius : number
        c, likewise.
    latex : str
        How the quantity is written.
    per_output : bool
        One value for each output y, of column y alone, instead of their sum.
    derivatives : mapping of Symbol to Expression
        By each function of a number that was typed, in which the quantity is affine.
    views : mapping of str to View
        What the information is about.
    origin : int, optional
        Of which law it is a quantity.
    of_channel : bool
        Whether it is of chances p(x̂ | s) themselves: of no table of records is it known.
    printed_costs : mapping of PrintedCost to number
        Of what the cost is a sum, where that is known, for print.

    Every number is exact: a float as the dyadic rational that it is, else a ``Fraction``; sums
    and products are exact too.
    """

    name: str = ""
    weights: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost | None = None
    cost_radius: Any = 0.0
    constant: Any = 0.0
    constant_radius: Any = 0.0
    latex: str = ""
    per_output: bool = False
    derivatives: Mapping[Symbol, Expression] = field(default_factory=dict)
    views: Mapping[str, Any] = field(default_factory=dict)
    origin: int | None = None
    of_channel: bool = False
    printed_costs: Mapping[Any, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def kept(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        weights: dict[str, Any] = {}
        for view, weight in self.weights.items():
            weights[view] = (_table if np.ndim(weight) else _number)(weight, view)
        kept("weights", FrozenDict(weights))
        kept("derivatives", FrozenDict(self.derivatives))
        kept("views", FrozenDict(self.views))
        kept("printed_costs", FrozenDict(self.printed_costs))
        remedy = "forbid the move with upper = 0"
        if isinstance(self.cost, AdditiveCost):
            for part in self.cost.parts:
                table(part.table, "cost", remedy, negative=True)
        elif self.cost is not None:
            kept("cost", table(self.cost, "cost", remedy, negative=True))
        for name in ("cost_radius", "constant", "constant_radius"):
            kept(name, _number(getattr(self, name), name))

    def each(self) -> Expression:
        """Return its value for each output by itself: a constraint of it is one per output."""
        derivatives = {symbol: slope.each() for symbol, slope in self.derivatives.items()}
        return replace(self, per_output=True, derivatives=derivatives)

    def named(self, name: str, latex: str = "") -> Expression:
        """Return the same quantity under another name."""
        return replace(self, name=name, latex=latex)

    def printed_as(self, *costs: Any, less: Any = ()) -> Expression:
        """Return the same quantity, its cost written as the mean of functions, less others."""
        signs = dict.fromkeys(costs, Fraction(1)) | dict.fromkeys(less, Fraction(-1))
        return replace(self, printed_costs=signs)

    @property
    def summands(self) -> Mapping[Any, Fraction]:
        """Of what the cost is a sum: of itself by its name, if nothing is known of it."""
        if self.printed_costs or self.cost is None:
            return self.printed_costs
        return {self.name: Fraction(1)}

    # ---- algebra -------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        if isinstance(other, numbers.Real | Scalar):
            other = _constant(other)
        if not isinstance(other, Expression):
            return NotImplemented
        if self.per_output != other.per_output and not (self._constant or other._constant):
            raise TypeError("a sum of a whole quantity and one for each output: use .each()")
        if None not in (self.origin, other.origin) and self.origin != other.origin:
            raise TypeError("a sum of quantities of different laws")
        for view in self.views.keys() & other.views.keys():
            if self.views[view] != other.views[view]:
                raise TypeError(f"two different views are called {view!r}")
        weights: dict[str, Any] = dict(self.weights)
        for view, weight in other.weights.items():
            weights[view] = _sum(weights[view], weight) if view in weights else weight
        cost = self.cost if other.cost is None else other.cost
        if self.cost is not None and other.cost is not None:
            cost = _added(self.cost, other.cost)
        derivatives = dict(self.derivatives)
        for symbol, slope in other.derivatives.items():
            derivatives[symbol] = derivatives[symbol] + slope if symbol in derivatives else slope
        return Expression(
            name=" + ".join(filter(None, (self.name, other.name))),
            weights=weights,
            cost=cost,
            cost_radius=_sum(self.cost_radius, other.cost_radius),
            constant=_sum(self.constant, other.constant),
            constant_radius=_sum(self.constant_radius, other.constant_radius),
            latex=" + ".join(filter(None, (self.latex, other.latex))).replace("+ -", "- "),
            per_output=self.per_output or other.per_output,
            derivatives=derivatives,
            views={**self.views, **other.views},
            origin=other.origin if self.origin is None else self.origin,
            of_channel=self.of_channel or other.of_channel,
            printed_costs={
                k: self.summands.get(k, Fraction(0)) + other.summands.get(k, Fraction(0))
                for k in {**self.summands, **other.summands}
            },
        )

    def __mul__(self, factor: Any) -> Expression:
        if isinstance(factor, Quantity):
            remedy = "weigh each by a number and add them"
            raise TypeError(f"a product of two quantities of a release is not convex: {remedy}")
        if not isinstance(factor, Scalar):
            factor = Scalar(_number(factor, "factor"))
        by, radius = factor.enclosure
        if radius and self.weights:
            raise TypeError("information can only be weighed by an exact number")
        if factor.slopes and self.derivatives:
            raise TypeError("a product of two numbers that are typed is not affine in them")
        derivatives = {symbol: slope * by for symbol, slope in self.derivatives.items()}
        derivatives |= {symbol: self * slope for symbol, slope in factor.slopes.items()}
        largest = Fraction(0)
        if radius and self.cost is not None:
            largest = _largest(self.cost)

        def times(value: Any) -> Any:
            return product(value, by) if np.ndim(value) else rational(value) * by

        return replace(
            self,
            name=self.name if by == 1 else f"{float(by):g} {self.name}",
            weights={view: times(weight) for view, weight in self.weights.items()},
            cost=None if self.cost is None else product(self.cost, by),
            cost_radius=rational(self.cost_radius) * (abs(by) + radius) + radius * largest,
            constant=times(self.constant),
            constant_radius=rational(self.constant_radius) * (abs(by) + radius)
            + radius * abs(rational(self.constant)),
            latex=_multiplied(by, self.latex),
            printed_costs={k: c * by for k, c in self.summands.items()},
            derivatives=derivatives,
        )

    def __truediv__(self, divisor: Any) -> Expression:
        if isinstance(divisor, Quantity):
            remedy = "a ratio ≤ b is stated as numerator <= b * denominator"
            raise TypeError(f"a ratio of two quantities of a release is not convex: {remedy}")
        if isinstance(divisor, Scalar):
            remedy = "type its inverse, and multiply by that"
            raise TypeError(f"a quotient by a number that is typed is not affine in it: {remedy}")
        by = rational(_number(divisor, "divisor"))
        if not by:
            raise ZeroDivisionError(f"{self.name or 'a quantity'} is divided by 0")
        return self * (1 / by)

    def __le__(self, bound: Any) -> Constraint:
        return Constraint.between(self, "<=", bound)

    def __ge__(self, bound: Any) -> Constraint:
        if isinstance(bound, Expression):
            return bound <= self
        less = Constraint.between(-self, "<=", -bound)
        shown = less.expression.named(f"-1 {self.name}", self.latex)
        return replace(less, expression=shown, relation=r"\ge")

    def __eq__(self, bound: object) -> Constraint:  # type: ignore[override]  # as CVXPY's
        return replace(Constraint.between(self, "==", bound), relation="=")

    __hash__ = None  # type: ignore[assignment]  # equality is a constraint

    @property
    def _constant(self) -> bool:
        return not self.weights and self.cost is None

    @property
    def convex(self) -> bool:
        """Whether no information has a weight below 0."""
        return not any(np.any(np.asarray(weight) < 0) for weight in self.weights.values())

    # ---- as numbers ----------------------------------------------------------------------

    @cached_property
    def costs(self) -> FloatArray | None:
        """The nearest floats to the cost."""
        return None if self.cost is None else floats(self.cost)

    def columns(self, m: int) -> dict[str, FloatArray]:
        """Return the weights in floats, as arrays of shape (m,)."""
        return {v: np.broadcast_to(np.asarray(w, float), (m,)) for v, w in self.weights.items()}

    def to_dict(self, lists: dict[Any, Any] | None = None) -> dict[str, Any]:
        """Return the data in lists.

        Expressions of a channel program share ``lists``: those of one cost array its list, in which
        one row stands for all letters where all are equal, and one column for all outputs.
        """
        shared: dict[Any, Any] = {} if lists is None else lists

        def stored(cost: Any, reduced: bool = False) -> Any:
            key = id(cost), reduced  # a table in which parts have their places is kept in full
            if key not in shared:
                if isinstance(cost, AdditiveCost):
                    shared[key] = cost.to_dict(stored)
                else:
                    shared[key] = listed(alike(cost) if reduced else cost)
            return shared[key]

        return {
            "name": self.name,
            "weights": {view: listed(w) for view, w in self.weights.items()},
            "cost": None if self.cost is None else stored(self.cost, lists is not None),
            "cost_radius": written(self.cost_radius),
            "constant": [written(self.constant), written(self.constant_radius)],
        }


def Minimize(expression: Expression) -> Expression:
    """Return ``expression``; it only makes a formulation read like the paper's program."""
    return expression


def refuse_nonconvex(objectives: Iterable[Expression], rows: Mapping[str, Constraint]) -> None:
    """Refuse a program that is not convex in the release, and so has no certificate.

    Raises
    ------
    InputError
        For information that is maximised, bounded from below, or set equal to a number.
    """
    if not all(objective.convex for objective in objectives):
        problem = "not convex: information weighed by a number below 0"
        raise InputError("objective", problem, "minimise information: no proof maximises it")
    for name, row in rows.items():
        if not row.expression.convex or (row.sense == "==" and not row.linear):
            problem = "not convex: information bounded from below, or equal to a number"
            raise InputError(name, problem, "bound it from above, or equivocation from below")


@dataclass(frozen=True, eq=False)
class Constraint:
    r"""One constraint ``expression <= bound`` or ``== bound``, or one for each output.

    Attributes
    ----------
    expression : Expression
        Left-hand side; an equality has no information in it.
    sense : {"<=", "=="}
    bound : number, or sequence of m numbers for one constraint per output
        Kept exactly; a float is the rational that it is.
    radius : number
        Distance of ``bound`` from the number meant, where that is irrational.
    derivatives : mapping of Symbol to Expression
        Of expression − bound, by each function of a number that was typed.
    relation : {"\le", "\ge", "="}
        As it was stated: −a ≤ −b is printed as a ≥ b.
    right : str
        The right-hand side in LaTeX, where that is no number.
    level : str
        ``bound`` in LaTeX, where it is another one for each output, or row of a group.
    """

    expression: Expression
    sense: Sense
    bound: Fraction | tuple[Fraction, ...]
    radius: Any = 0
    derivatives: Mapping[Symbol, Expression] = field(default_factory=dict)
    of_law: ClassVar[bool] = True  # not of the channel alone
    relation: str = r"\le"
    right: str = ""
    level: str = ""

    def __post_init__(self) -> None:
        bound: Any = self.bound
        if isinstance(bound, tuple) and {*map(type, bound)} <= {Fraction}:
            kept: Any = bound  # as nearly all are: of a row for each of a thousand outputs
        elif isinstance(bound, Iterable):
            kept = tuple(Fraction(_number(b, "bound")) for b in bound)
        else:
            kept = Fraction(_number(bound, "bound"))
        object.__setattr__(self, "bound", kept)
        object.__setattr__(self, "radius", _number(self.radius, "radius"))
        object.__setattr__(self, "derivatives", FrozenDict(self.derivatives))

    @classmethod
    def between(cls, left: Expression, sense: Sense, right: Any) -> Constraint:
        """State left ≤ right or left = right, constants on the right."""
        if isinstance(right, Expression):
            difference = left - right
            expression = replace(difference, constant=0, constant_radius=0)
            bound: Any = -rational(difference.constant)
            radius: Any = difference.constant_radius
        elif np.ndim(right):
            difference = expression = left
            bound, radius = right, 0
        else:
            scalar = right if isinstance(right, Scalar) else Scalar(_number(right, "bound"))
            difference, expression = left - scalar, left
            bound, radius = scalar.enclosure
        if left.per_output and expression.cost is not None and not np.ndim(bound):
            bound = (bound,) * expression.cost.shape[-1]
        cost: Any = expression.cost
        cost = core(cost) if isinstance(cost, np.ndarray) else cost  # what is repeated, once
        free = cost is None or not (cost.any() or expression.cost_radius)
        right_latex = right.latex if isinstance(right, Expression) else ""
        expression = replace(
            expression,
            name=left.name,
            latex=left.latex,
            cost=None if free and expression.weights else expression.cost,
            derivatives={},
        )
        return cls(expression, sense, bound, radius, difference.derivatives, right=right_latex)

    def __bool__(self) -> bool:
        raise TypeError("a constraint has no truth value: name it in a dict of constraints")

    @property
    def per_output(self) -> bool:
        """One constraint for each output y, of column y alone."""
        return self.expression.per_output

    @property
    def linear(self) -> bool:
        """Whether there is no information in it."""
        return not self.expression.weights

    @property
    def number(self) -> Fraction:
        """The bound, where it is one for all outputs."""
        assert isinstance(self.bound, Fraction)
        return self.bound

    def stated(self, written: Callable[[float], str] = tex, y: str = r"\hat x") -> str:
        """Return it in LaTeX as it was stated, of outputs y, its numbers ``written`` so."""
        sign, bound = -1 if self.relation == r"\ge" else 1, self.bound
        numbers = {*bound} if isinstance(bound, tuple) else {bound}
        right = self.right or self.level or f"b({y})"
        if not self.right and len(numbers) == 1:
            right = written(sign * float(numbers.pop()) + 0.0)
        each = rf" \quad \forall\, {y}" if self.per_output else ""
        return f"{self.expression.latex} {self.relation} {right}{each}"

    def bounds(self, m: int) -> FloatArray:
        """Return the bound in floats, shape () or, per output, (m,)."""
        if isinstance(self.bound, tuple):
            return np.array([float(b) for b in self.bound])
        return np.full(m, float(self.bound)) if self.per_output else np.array(float(self.bound))

    def to_dict(self, lists: dict[Any, Any] | None = None) -> dict[str, Any]:
        """Return the data as a proof file stores it."""
        bound = self.bound
        return {
            "term": self.expression.to_dict(lists),
            "sense": self.sense,
            "bound": [str(b) for b in bound] if isinstance(bound, tuple) else str(bound),
            "radius": written(self.radius),
            "per_output": self.per_output,
        }


def _multiplied(by: Fraction, latex: str) -> str:
    inner = f"({latex})" if " + " in latex or " - " in latex else latex
    if abs(by) == 1:
        return inner if by == 1 and latex == inner else f"{'-' if by < 0 else ''}{inner}"
    return f"{tex(float(by))}\\, {inner}"


def _constant(number: Any) -> Expression:
    scalar = number if isinstance(number, Scalar) else Scalar(number)
    middle, radius = scalar.enclosure
    derivatives = {s: Expression(constant=slope) for s, slope in scalar.slopes.items()}
    latex = tex(float(middle)) if middle else ""
    return Expression(constant=middle, constant_radius=radius, latex=latex, derivatives=derivatives)


def _number(value: Any, argument: str) -> float | Fraction:
    if type(value) is float and math.isfinite(value):  # most are what they will be
        return value
    return typed(value, argument, negative=True)


def _table(values: Any, argument: str) -> Exact:
    return table(values, argument, "pass finite numbers", negative=True)


def _sum(a: Any, b: Any) -> Any:
    """Return the sum of two numbers, or of weights for each output."""
    if not (np.ndim(a) or np.ndim(b)):
        return rational(a) + rational(b)
    return plus(*(x if np.ndim(x) else exact_array([x]) for x in (a, b)))


def _added(a: Cost, b: Cost) -> Cost:
    """Return the sum of two costs; one of them may be per atom."""
    if a.ndim == b.ndim == 2:
        return added(a, b)
    total = plus(*(c if c.ndim == 3 else c[None] for c in (dense(a), dense(b))))
    return total[0] if total.shape[0] == 1 else total


def _largest(cost: Cost) -> Fraction:
    if isinstance(cost, AdditiveCost):
        return cost.largest
    return max(abs(rational(value)) for value in set(cost.flat))


@dataclass(frozen=True, eq=False)
class Worst(Quantity):
    """A quantity under several laws, each part by the name of its law ("" that of the source).

    Minimised, it is the greatest (P26); bounded, each of them is.  That holds under each law by
    itself, and not under their mixtures: two laws under each of which W is constant tell nothing
    about it, and their mixture may tell everything.
    Sums, multiples and comparisons are those of the parts, law by law.  Where the parts are all
    ``over`` a letter, such as the values w of W, and not each of a law of its own, a quantity is
    the same for all of them.
    """

    parts: Mapping[str, Expression]
    over: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", FrozenDict(self.parts))

    @property
    def name(self) -> str:
        return next(iter(self.parts.values())).name

    @property
    def latex(self) -> str:
        shown = dict.fromkeys(part.latex for part in self.parts.values())
        if self.over:
            return rf"\max_{{{self.over}}} {{{next(iter(shown))}}}"
        return rf"\max\{{{', '.join(shown)}\}}"

    def named(self, name: str, latex: str = "") -> Worst:
        """Return the same quantities under another name; ``latex`` is of that under the source."""
        return self._each(lambda part: part.named(name, latex and part.latex))

    def each(self) -> Worst:
        """Return the values for each output by itself: constraints of it are one per output."""
        return self._each(lambda part: part.each())

    def to_dict(self, lists: dict[int, Any] | None = None) -> dict[str, Any]:
        """Return the data as a proof file stores it."""
        shared: dict[int, Any] = {} if lists is None else lists
        return {"worst": {name: part.to_dict(shared) for name, part in self.parts.items()}}

    # ---- algebra -------------------------------------------------------------------------

    def _each(self, of: Callable[[Expression], Expression]) -> Worst:
        return replace(self, parts={name: of(part) for name, part in self.parts.items()})

    def _paired(self, other: Any, combined: Callable[[Any, Any], Any]) -> Any:
        """Return each part combined with what it meets in another operand, if that has all."""
        mixed = isinstance(other, Expression) and not self.over  # of one law alone
        if mixed or (isinstance(other, Worst) and other.parts.keys() != self.parts.keys()):
            return NotImplemented
        others = other.parts if isinstance(other, Worst) else dict.fromkeys(self.parts, other)
        return {name: combined(part, others[name]) for name, part in self.parts.items()}

    def __add__(self, other: Any) -> Worst:
        parts = self._paired(other, operator.add)
        return parts if parts is NotImplemented else replace(self, parts=parts)

    def __mul__(self, factor: Any) -> Worst:
        return self._each(lambda part: part * factor)

    def __truediv__(self, divisor: Any) -> Worst:
        return self._each(lambda part: part / divisor)

    def __le__(self, bound: Any) -> Mapping[str, Constraint]:
        return self._paired(bound, operator.le)

    def __ge__(self, bound: Any) -> Mapping[str, Constraint]:
        return self._paired(bound, operator.ge)

    def __eq__(self, bound: object) -> Mapping[str, Constraint]:  # type: ignore[override]
        return self._paired(bound, operator.eq)

    __hash__ = None  # type: ignore[assignment]  # equality is a constraint


def parts_of(objective: Expression | Worst) -> Mapping[str, Expression]:
    """Return what is minimised the greatest of, by name; "" where it is one alone."""
    return objective.parts if isinstance(objective, Worst) else {"": objective}


def first_part(objective: Expression | Worst) -> Expression:
    """Return what says in which units a program's value is: its objective, or one of several."""
    return next(iter(parts_of(objective).values()))


def indexed(name: str, law: str) -> str:
    """Return what a quantity or a constraint is called under a law."""
    return f"{name}[{law}]" if law else name


def each_part(quantities: Mapping[str, Any]) -> dict[str, Any]:
    """Return quantities, or what compares them, by name, those under several laws one by one."""
    named = {}
    for name, quantity in quantities.items():
        parts = quantity.parts if isinstance(quantity, Worst) else quantity
        by_law = parts if isinstance(parts, Mapping) else {"": parts}
        named.update({indexed(name, law): part for law, part in by_law.items()})
    return named
