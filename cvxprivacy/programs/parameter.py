"""Numbers that are typed: declared in a class, kept exactly, and traced into every program.

A formulation or a criterion declares its numbers as :class:`Parameter`.  While it is stated, each
is read as a :class:`Scalar`, a number that remembers which one it is.  Arithmetic keeps track, so
that prices are right by construction: d value / d (number typed).
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb, ctx

from cvxprivacy.errors import InputError
from cvxprivacy.exact import plain, rational
from cvxprivacy.frozen import FrozenDict
from cvxprivacy.model.information import nat
from cvxprivacy.validation import typed
from cvxprivacy_verifier.balls import PRECISION, ball

__all__ = ["AttributeParameter", "Parameter", "Scalar", "Symbol", "indexed", "tracing"]


@dataclass(frozen=True)
class Symbol:
    """A function of one typed number θ in which a program is affine.

    Attributes
    ----------
    name : str
        Of the number: that of its constraint, or ``price``, ….
    function : {"", "log", "exp"}
        θ itself, rate · log θ, or exp(rate · θ).
    rate : float
    typed : number or array
        θ, as it was typed.
    """

    name: str
    function: Literal["", "log", "exp"] = ""
    rate: float = 1.0
    typed: Any = field(default=0.0, compare=False)

    def at(self, theta: Any) -> Any:
        """Return the value of the function."""
        if self.function == "log":
            return self.rate * math.log(theta)
        return math.exp(self.rate * theta) if self.function == "exp" else theta

    @property
    def value(self) -> Any:
        """The value of the function at the number typed."""
        return self.at(float(self.typed) if self.function else self.typed)

    @property
    def slope(self) -> float:
        """Its derivative there."""
        if self.function == "log":
            return self.rate / float(self.typed)
        return self.rate * self.value if self.function == "exp" else 1.0


_TRACING = ContextVar("tracing", default=False)


@contextmanager
def tracing() -> Iterator[None]:
    """Read parameters as scalars, which remember what they are, while a program is stated."""
    token = _TRACING.set(True)
    try:
        yield
    finally:
        _TRACING.reset(token)


class Scalar:
    """A number in a program, exact or in a ball, and affine in the numbers typed.

    Attributes
    ----------
    number : Fraction or ball
    slopes : mapping of Symbol to float
        d number / d each function of a number that was typed.
    """

    __array_ufunc__ = None  # so that NumPy's scalars leave arithmetic to this class

    def __init__(self, number: Any, slopes: Mapping[Symbol, float] | None = None) -> None:
        self.number = number if isinstance(number, arb) else rational(number)
        self.slopes = dict(slopes or {})

    @classmethod
    def named(cls, number: Any, name: str) -> Scalar:
        """Return the number typed for ``name``."""
        return cls(number, {Symbol(name, typed=number): 1.0})

    # ---- as a number ---------------------------------------------------------------------

    @property
    def enclosure(self) -> tuple[Fraction, Fraction]:
        """The number as a rational, and how far that may be off."""
        if isinstance(self.number, Fraction):
            return self.number, Fraction(0)
        middle = float(self.number.mid())
        with ctx.workprec(PRECISION):
            off = abs(self.number - arb(middle)).upper()
        radius = 0.0 if off.is_zero() else math.nextafter(float(off), math.inf)
        return Fraction(middle), Fraction(radius)

    @property
    def near(self) -> float:
        """The nearest float, for print; arithmetic with it would leave no trace."""
        return float(self.enclosure[0])

    def __float__(self) -> float:
        raise TypeError("a number that is typed is traced: state the program with its arithmetic")

    def __format__(self, specification: str) -> str:
        return format(self.near, specification)

    def as_integer_ratio(self) -> tuple[int, int]:
        return self.enclosure[0].as_integer_ratio()

    def __bool__(self) -> bool:
        return bool(self.enclosure[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scalar | int | float | Fraction):
            return NotImplemented
        return self.enclosure[0] == (other.enclosure[0] if isinstance(other, Scalar) else other)

    def __lt__(self, other: Any) -> bool:
        return self.enclosure[0] < other

    def __gt__(self, other: Any) -> bool:
        return self.enclosure[0] > other

    def __le__(self, other: Any) -> bool:  # of a quantity: a constraint, which that states
        return NotImplemented if _scalar(other) is None else not self > other

    def __ge__(self, other: Any) -> bool:
        return NotImplemented if _scalar(other) is None else not self < other

    def __hash__(self) -> int:
        return hash(self.enclosure[0])

    def __repr__(self) -> str:
        return repr(plain(self.enclosure[0]))

    # ---- arithmetic ----------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if (term := _scalar(other)) is None:
            return NotImplemented
        both = {*self.slopes, *term.slopes}
        slopes = {s: self.slopes.get(s, 0.0) + term.slopes.get(s, 0.0) for s in both}
        return Scalar(_combined(self.number, term.number, operator.add), slopes)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if (factor := _scalar(other)) is None:
            return NotImplemented
        if self.slopes and factor.slopes:
            raise TypeError("a product of two numbers that are typed is not affine in them")
        slopes = {s: slope * factor.near for s, slope in self.slopes.items()}
        slopes |= {s: slope * self.near for s, slope in factor.slopes.items()}
        return Scalar(_combined(self.number, factor.number, operator.mul), slopes)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Scalar):
            raise TypeError("a number that is typed cannot divide: use its logarithm")
        return self * (1 / rational(other))

    def __rtruediv__(self, other: Any) -> Any:
        raise TypeError("a number that is typed cannot divide: use its logarithm")

    def __pow__(self, exponent: Any) -> Any:
        raise TypeError("a power of a number that is typed is not affine in it: type the power")

    def log(self, units: str = "nats") -> Scalar:
        """Return its logarithm, in bits or in nats."""
        with ctx.workprec(PRECISION):
            value = _balled(self.number).log()
            if units == "bits":
                value = value / arb(2).log()
        return Scalar(value, self._through("log", nat(units)))

    def exp(self, base: float = math.e) -> Scalar:
        """Return ``base`` to its power, base e or 2."""
        with ctx.workprec(PRECISION):
            value = (_balled(self.number) * (arb(2).log() if base == 2 else 1)).exp()
        return Scalar(value, self._through("exp", 1.0 if base == math.e else math.log(base)))

    def _through(self, function: Literal["log", "exp"], rate: float) -> Mapping[Symbol, float]:
        """Return the slope by log θ of log cθ, or by exp cθ."""
        if not self.slopes:
            return {}
        ((symbol, slope), *others) = self.slopes.items()
        theta = rational(symbol.typed)
        proper = math.isclose(self.near, slope * float(theta), rel_tol=1e-12)  # nothing was added
        if others or symbol.function or not proper or (function == "log" and slope <= 0):
            raise TypeError(f"{function} of a number that is typed: only of c θ")
        rate *= 1.0 if function == "log" else slope
        return {replace(symbol, function=function, rate=rate): 1.0}


def _scalar(value: Any) -> Scalar | None:
    if isinstance(value, Scalar):
        return value
    return Scalar(value) if isinstance(value, int | float | Fraction | np.number) else None


def _balled(number: Fraction | arb) -> arb:
    return ball(number) if isinstance(number, Fraction) else number


def _combined(a: Any, b: Any, combine: Callable[[Any, Any], Any]) -> Fraction | arb:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return combine(a, b)
    with ctx.workprec(PRECISION):
        return combine(_balled(a), _balled(b))


class Parameter:
    """A number ≥ 0 that a problem or a criterion is made of, declared in its class.

    ``self.budget = budget`` in ``__init__`` refuses what is no such number and keeps the very
    number that was typed, which is what reading it gives; a ``Scalar`` of it in
    ``formulation`` and ``constraints``; None where none was typed.

    Parameters
    ----------
    zero : bool
        Allow 0.
    negative : bool
        Allow negative numbers.
    least, below : float
        Limits, the upper one not included.
    optional : bool
        Allow None.
    loosens : {"up", "down", None}
        Whether a criterion forbids less where the number is greater ("up") or less ("down"): it is
        then allowed what it was allowed before.  None says nothing, and the number is not searched.
    loosest : float or callable of the number, optional
        A value at which a criterion forbids next to nothing: where bisection may begin; with
        ``loosens``.

    Examples
    --------
    A cap in other words: the user may be told b bits by ten records together.  Its price is that of
    :class:`LeakageCap`, −1.533, divided by ten, as the number is traced through the arithmetic:

    >>> import cvxprivacy as cpv
    >>> class TenRecords(cpv.Criterion):
    ...     "10 I(W; X̂) ≤ b."
    ...
    ...     name = "ten_records"
    ...     b = cpv.Parameter()
    ...
    ...     def constraints(self, release):
    ...         return {"": release.risk <= self.b / 10}
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> cap = 10 * (1 - cpv.information.entropy([0.32, 0.68]))
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [TenRecords(cap)]).solve()
    >>> round(solution.value, 4), round(solution.prices["ten_records"], 4)
    (0.2, -0.1533)

    What is no such number is refused by name:

    >>> try:
    ...     TenRecords(-1)
    ... except cpv.InputError as error:
    ...     print(error.argument, error.value)
    b -1
    """

    def __init__(
        self,
        *,
        zero: bool = True,
        negative: bool = False,
        least: float = -math.inf,
        below: float = math.inf,
        optional: bool = False,
        loosens: Literal["up", "down"] | None = None,
        loosest: float | Callable[[float], float] | None = None,
    ) -> None:
        if loosest is not None and loosens not in ("up", "down"):
            problem = f"{loosens!r}, where the loosest value is {loosest!r}"
            raise InputError("loosens", problem, 'pass loosens="up" or "down" with it')
        self.zero, self.negative, self.least, self.below = zero, negative, least, below
        self.optional, self.loosens, self.loosest = optional, loosens, loosest

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__.get(f"_{self.name}")
        return Scalar.named(value, self.name) if value is not None and _TRACING.get() else value

    def __set__(self, instance: Any, value: Any) -> None:
        if value is not None or not self.optional:
            limits: dict[str, Any] = {"zero": self.zero, "negative": self.negative}
            value = typed(value, self.name, below=self.below, **limits)
            if value < self.least:
                remedy = f"pass a number ≥ {self.least:g}"
                raise InputError(self.name, f"{value!r} is out of range", remedy, value=value)
        instance.__dict__[f"_{self.name}"] = value

    @staticmethod
    def of(owner: type) -> dict[str, Parameter]:
        """Return those that a class declares, by name.

        Parameters
        ----------
        owner : type
            The class; those of its bases come first.
        """
        kinds = (vars(kind).items() for kind in reversed(owner.__mro__))
        return {k: v for items in kinds for k, v in items if isinstance(v, Parameter)}

    @staticmethod
    def typed(instance: Any) -> dict[str, Parameter]:
        """Return those of which an instance has a number: an optional one may have none.

        Parameters
        ----------
        instance : object
            Of a class that declares parameters.
        """
        declared = Parameter.of(type(instance))
        return {name: p for name, p in declared.items() if getattr(instance, name) is not None}

    @staticmethod
    def fill(instance: Any, numbers: Mapping[str, Any]) -> None:
        """Set all parameters of an instance; refuse names that its class does not declare.

        Parameters
        ----------
        instance : object
            What is being made.
        numbers : mapping of str to number
            By name; an optional one may be missing.

        Raises
        ------
        InputError
            For an unknown name, a missing number, or one that is refused.
        """
        kind, declared = type(instance), Parameter.of(type(instance))
        for name in numbers.keys() - declared.keys():
            mine = f"declare it in the class: {name} = cpv.Parameter()"
            remedy = f"use {', '.join(declared)}" if declared else mine
            raise InputError(name, f"a {kind.__name__} has no such number", remedy)
        for name, parameter in declared.items():
            if name in numbers:
                setattr(instance, name, numbers[name])
            elif f"_{name}" not in instance.__dict__:  # a subclass may have set it
                if not parameter.optional:
                    raise InputError(name, "missing", f"pass {name}=")
                setattr(instance, name, None)

    @staticmethod
    def signed(owner: type) -> inspect.Signature:
        """Return the signature of a class, with its parameters in place of ``*values, **numbers``.

        Parameters
        ----------
        owner : type
            The class.
        """
        init = owner.__init__  # type: ignore[misc]  # of this very class
        parameters = list(inspect.signature(init).parameters.values())[1:]
        others = [p for p in parameters if "VAR" not in p.kind.name]
        if len(others) == len(parameters):  # it says what it takes
            return inspect.Signature(parameters)
        empty, placed = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
        declared = [
            inspect.Parameter(name, placed, default=None if parameter.optional else empty)
            for name, parameter in Parameter.of(owner).items()
            if name not in {p.name for p in others}
        ]
        by_name = inspect.Parameter.KEYWORD_ONLY
        defaults = [p.default is not empty for p in declared]
        if defaults != sorted(defaults):  # no place after one that may be left out
            declared = [p.replace(kind=by_name) for p in declared]
        return inspect.Signature(sorted([*others, *declared], key=lambda p: p.kind == by_name))

    @staticmethod
    def placed(owner: type, values: Sequence[Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Return numbers by name, those first that were passed by place.

        Parameters
        ----------
        owner : type
            The class that declares them.
        values : sequence of number
            In the order of their declaration.
        numbers : mapping of str to number
            By name.

        Raises
        ------
        InputError
            For more numbers than are declared, or one that is passed twice.
        """
        names = list(Parameter.of(owner))
        if len(values) > len(names):
            problem, remedy = f"{len(values)} numbers", f"pass {', '.join(names) or 'none'}"
            raise InputError(owner.__name__, problem, remedy)
        by_place = dict(zip(names, values, strict=False))
        for name in by_place.keys() & numbers.keys():
            raise InputError(name, "passed by place and by name", f"pass {name}= once")
        return {**by_place, **numbers}


class AttributeParameter(Parameter):
    """A number, or one for each attribute, or for several together.

    ``{"age": 1.0, ("age", "sex"): 1.2}``; ``"age, sex"`` is the same key.
    """

    def __set__(self, instance: Any, value: Any) -> None:
        if not isinstance(value, Mapping):
            super().__set__(instance, value)
            return
        if not value:
            problem, remedy = f"no {self.name}", "pass a number, or one per attribute"
            raise InputError(self.name, problem, remedy)
        numbers: dict[tuple[str, ...], Any] = {}
        for key, number in value.items():
            parts = map(str, key) if isinstance(key, tuple) else str(key).split(", ")
            names = tuple(dict.fromkeys(parts))
            where = ", ".join(names)
            if any(set(names) == set(other) for other in numbers):
                remedy = "bound each set of attributes once"
                raise InputError(self.name, f"{where} twice", remedy, where=where)
            numbers[names] = typed(number, self.name, zero=self.zero, where=where)
        instance.__dict__[f"_{self.name}"] = numbers
        instance.__dict__[f"_{self.name}_typed"] = FrozenDict(value)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None and f"_{self.name}_typed" in instance.__dict__:
            return instance.__dict__[f"_{self.name}_typed"]
        return super().__get__(instance, owner)

    def each(self, instance: Any) -> dict[tuple[str, ...], Scalar]:
        """Return the numbers of an instance by their attributes, by () of one for all."""
        value = instance.__dict__.get(f"_{self.name}")
        if not isinstance(value, Mapping):
            return {} if value is None else {(): Scalar.named(value, self.name)}
        return {
            names: Scalar.named(number, indexed(self.name, names))
            for names, number in value.items()
        }


def indexed(name: str, names: tuple[str, ...]) -> str:
    """Return the name of a number, or of a constraint, that is of some attributes alone."""
    return f"{name}[{', '.join(names)}]" if names else name
