"""What every criterion is, and how a new one is written.

A criterion declares its number and states constraints in the quantities of an
:class:`~cvxprivacy.programs.alphabet.Alphabet`.  Its price, its parameter in ``problem.problem``
and the answer to "how loose would it have to be?" follow from that; :class:`Criterion` has an
example.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Signature
from typing import Any, ClassVar, Literal

from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.criteria.own_rows import verdict_by_rows
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, Real
from cvxprivacy.frozen import Frozen
from cvxprivacy.leakage import Leakage
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.latex_symbols import Notation
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.programs.side_conditions import Rule
from cvxprivacy.text import in_place, plain, upwards
from cvxprivacy.validation import untaken

__all__ = ["Criterion", "TableCriterion", "Words", "by_name", "criteria_listed", "factor_in_words",
           "reset_claims"]  # fmt: skip


@dataclass(frozen=True)
class Words:
    """A criterion in words; a class has them with places for numbers and names.

    Attributes
    ----------
    asks : str
        What it asks for, a sentence without its end, of ``{n}`` the number, ``{factor}`` e to its
        power, ``{w}`` and ``{x}`` the columns, ``{measure}`` what leaks and ``{how}`` the same with
        its unit.
    quantity, unit : str
        What it bounds, and in which unit; no unit for a pure number.
    at_least : bool
        Whether its number is the least that there may be, else the most.
    definition, source : str
        The criterion in one sentence for a board, and who proposed it.
    examples : tuple of str
        How it is typed on the command line.
    """

    asks: str
    quantity: str
    unit: str = ""
    at_least: bool = False
    definition: str = ""
    source: str = ""
    examples: tuple[str, ...] = ()

    def about(self, names: Mapping[str, str]) -> Words:
        """Return the words with numbers and names in their places."""
        parts = {key: getattr(self, key).format(**names) for key in ("asks", "quantity", "unit")}
        return replace(self, **parts)


# ---- a criterion, and all of them by name -------------------------------------------------


_CLAIMS = {
    *("survives_merging", "survives_informed_encoder", "on_average", "of_channel", "words"),
    *("counts_records", "survives_company", "of_table", "relaxation", "of_releases"),
    *("measure", "verdict", "mean_information", "tightest", "only_perfect_when_tightest"),
}


def factor_in_words(exponent: str) -> str:
    """Return e to a power as people read it, rounded up; as it is typed where it is no number."""
    try:
        return f"{plain(float(upwards(math.exp(float(exponent)), 3)), 3)} (e^{exponent})"
    except (ValueError, OverflowError):
        return f"e^{exponent}"


class Criterion(Frozen):
    """Something that the release must satisfy; subclasses state ``constraints``.

    Parameters
    ----------
    *numbers : number
        The parameters that the class declares, in their order.
    **named : number
        The same by name.

    Attributes
    ----------
    name : str
        Its name among the constraints, duals and prices.
    latex : str
        How it is written; ``stated`` writes it in the letters of a problem.
    by_law : bool
        Whether it is demanded under each of several laws by itself.
    survives_merging : bool
        Whether a release that satisfies it does so after outputs are released as one another.
    survives_company : bool
        Whether a letter that satisfies it does so after any other records are released as it, also
        such as break it by themselves.
    survives_informed_encoder : bool
        Whether, if strategies Z → X̂ satisfy it, the letters do so that they mean at each z,
        released by an encoder that knows Z: then it is kept where such an encoder bounds the
        optimum.  Strategies of one letter at z are released as one there, so that this implies
        merging at each z; ``survives_merging``, of all outputs whatever z, is not asked for.
        Convex rows per letter of each of ``release.observers``, moves, means and leakage in all
        survive; what is asked of a strategy whatever z is, as by an auxiliary, does not.
    on_average : bool
        Whether it bounds an expectation, which tables that are drawn scatter about.
    independent_draws : bool
        Whether it is a promise to one who may know what all other records are and became: then it
        holds of records that are drawn independently, and not of balanced draws.
    of_channel : bool
        Whether it speaks of p(x̂ | x) alone: it then holds whatever the law of these letters is.
    of_table : bool
        Whether it speaks of tables alone: no convex program states it, and its ``constraints``
        refuse.
    of_releases : {"all", "this", None}
        Of which releases its ``constraints`` are where some were made before: of all together, or
        of this one, as rules of moves and means are.  None where the class does not say: then what
        it states of each letter x̂ is stated of each pair (z, x̂), and what it states of chances is
        refused.
    counts_records : bool
        Whether it is about whole records, whatever their survey weights.
    words : Words or None
        How it reads.
    only_perfect_when_tightest : bool
        Whether nothing but perfect privacy satisfies its tightest value.
    loosens : {"up", "down", None}
        As its one number declares: which way that forbids less.

    A subclass that states other ``constraints`` inherits none of these claims, nor the ``verdict``
    on a table: what it does not state is not claimed.

    Raises
    ------
    InputError
        For numbers that the class does not declare, or refuses.

    Examples
    --------
    A criterion of one's own: no value of W may be guessed right with a probability above p,
    whatever is released.  Two fair bits that differ with probability 0.2 differ with
    0.2 + 0.6 D if X is flipped with probability D, which is 0.3 at D = 1/6:

    >>> import cvxprivacy as cpv
    >>> class GuessedAtMost(cpv.Criterion):
    ...     "p(w | x̂) ≤ p for all w and x̂."
    ...
    ...     name = "guessed_at_most"
    ...     p = cpv.Parameter(loosens="up", loosest=1.0)
    ...     survives_merging = True  # posteriors are averaged
    ...
    ...     def constraints(self, release):
    ...         values = range(len(release.p_w))
    ...         mass = release.mass().each()
    ...         return {str(w): release.mass(w).each() <= self.p * mass for w in values}
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [GuessedAtMost(0.7)]).solve()
    >>> round(solution.value, 4), round(solution.prices["guessed_at_most"], 4)
    (0.1667, -1.6667)
    """

    name = "criterion"
    by_law: ClassVar[bool] = True
    survives_merging: ClassVar[bool] = False
    survives_company: ClassVar[bool] = False
    survives_informed_encoder: ClassVar[bool] = False
    on_average: ClassVar[bool] = False
    of_channel: ClassVar[bool] = False
    of_table: ClassVar[bool] = False
    of_releases: ClassVar[Literal["all", "this"] | None] = None
    counts_records: ClassVar[bool] = False
    independent_draws: ClassVar[bool] = False
    words: ClassVar[Words | None] = None
    only_perfect_when_tightest: ClassVar[bool] = False
    _divergence: ClassVar[str] = "divergence"  # what information is called at one letter
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = Parameter.signed(cls)
        reset_claims(cls, Criterion, _CLAIMS, {"constraints"})

    def __init__(self, *numbers: Any, **named: Any) -> None:
        declared = Parameter.of(type(self))
        values = Parameter.placed(type(self), numbers, named)
        if values.keys() != declared.keys():
            problem, remedy = f"{len(values)} numbers", f"pass {', '.join(declared) or 'none'}"
            raise InputError(type(self).__name__, problem, remedy)
        for key, value in values.items():
            setattr(self, key, value)

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        """Return what states it, by name; the key "" stands for the criterion's own name.

        Parameters
        ----------
        release : Alphabet
            The letters of the problem, and the quantities that constraints are stated in.

        Returns
        -------
        dict of str to Constraint
            Comparisons of quantities, one or several.
        """
        raise NotImplementedError

    @property
    def measure(self) -> Leakage | None:
        """The measure of leakage that it bounds, if it bounds one."""
        return None

    @property
    def relaxation(self) -> Criterion:
        """What the law of every table that satisfies it satisfies, and convex programs can state.

        By default itself.
        """
        return self

    def verdict(self, table: Counts) -> Verdict:
        """Return how a table of counts stands with it, decided exactly.

        By default by what it states, evaluated at the law of the table: a criterion that says more
        than that of single letters, or of what a record is released as, cannot be decided there.

        Parameters
        ----------
        table : Counts
            Records by value of W and released letter, and by key letter where that is known.
        """
        return verdict_by_rows(self, table)

    def mean_information(self, entropy: float, units: str) -> tuple[str, float] | None:
        """Return a bound that it implies on I(W; X̂), and its name; None where it implies none.

        Parameters
        ----------
        entropy : float
            H(W), in ``units``.
        units : {"bits", "nats"}
            Of information.
        """
        return None

    def in_words(
        self, *, w: str = "W", x: str = "X", units: str = "bits", number: str = ""
    ) -> Words:
        """Return how it reads.

        Parameters
        ----------
        w, x : str
            What the confidential attribute and the key are called.
        units : {"bits", "nats"}
            Of information.
        number : str
            What its number is called; by default it is written.

        Examples
        --------
        >>> import cvxprivacy as cpv
        >>> cpv.KAnonymity(5).in_words().asks
        'every released group has at least 5 records'
        """
        typed = self._number()
        if self.words is None:
            text = in_place(repr(self), typed, number) if number and typed else repr(self)
            return Words(f"{text} holds", text)
        names = {"n": number or typed, "w": w, "x": x, "units": units}
        names["factor"] = factor_in_words(number or typed)
        return self.words.about(names | self._measured(units))

    def _measured(self, units: str) -> dict[str, str]:
        """Return what the measure is called in words, and its unit."""
        measure = self.measure
        if measure is None:
            return {}
        if not measure.informs:
            unit = units if measure.in_units else ""
            return {"measure": measure.name, "how": measure.name, "unit": unit}
        name = self._divergence
        return {"measure": name, "how": f"{name}, in {units}", "unit": units}

    def _number(self) -> str:
        """Return the number typed, if there is one."""
        try:
            return "" if self.value is None else f"{float(self.value):g}"
        except (TypeError, ValueError):  # one for each letter
            return "its own"

    @property
    def latex(self) -> str:
        """How it is written in LaTeX, without delimiters."""
        return self.stated(Notation())

    def stated(self, of: Notation) -> str:
        """Return it in the letters of a problem, with its quantifier; by default its name.

        Parameters
        ----------
        of : Notation
            What W, X and what is released are called, and what the user knows besides.
        """
        latex = type(self).latex
        return rf"\text{{{type(self).__name__}}}" if latex is Criterion.latex else self.latex

    @property
    def value(self) -> Any:
        """The number typed, if there is just one; ``prices[name]`` is d optimum / d value."""
        typed = list(Parameter.typed(self))
        return getattr(self, typed[0]) if len(typed) == 1 else None

    @property
    def numbers(self) -> Mapping[str, Any]:
        """The numbers typed by their names, where there are several: prices are ``name.key``."""
        typed = Parameter.typed(self)
        return {key: getattr(self, key) for key in typed} if len(typed) > 1 else {}

    @property
    def loosens(self) -> Literal["up", "down"] | None:
        """Which way its one number forbids less, as that declares; None if it does not say."""
        typed = [*Parameter.typed(self)]
        return self._loosens(typed[0]) if len(typed) == 1 else None

    def _loosens(self, key: str) -> Literal["up", "down"] | None:
        """Return which way a number of the rows as they are stated forbids less."""
        for owner in type(self).__mro__:
            stated = vars(owner)
            if "constraints" in stated or any(isinstance(p, Parameter) for p in stated.values()):
                number = stated.get(key)  # one of other rows says nothing
                return number.loosens if isinstance(number, Parameter) else None
        return None

    @property
    def loosest(self) -> float | None:
        """A value at which it forbids next to nothing, if its number can be searched."""
        typed = list(Parameter.typed(self).values())
        loosest = typed[0].loosest if len(typed) == 1 and self.loosens else None
        return loosest(float(self.value)) if callable(loosest) else loosest

    def tightest(self, laws: Sequence[DiscreteSource]) -> float | None:
        """Return a value beyond which no release can satisfy it, or none that is of use.

        None where that is not known; by default 0, or its least value, of a number that loosens up.

        Parameters
        ----------
        laws : sequence of DiscreteSource
            Under each of which it is demanded.
        """
        typed = list(Parameter.typed(self).values())
        return max(0.0, typed[0].least) if self.loosens == "up" else None

    def at(self, value: Real) -> Criterion:
        """Return the same criterion with another number.

        Parameters
        ----------
        value : number
            In place of the one that was typed.
        """
        return type(self)(value)

    def with_number(self, key: str, value: Real) -> Criterion:
        """Return the same criterion with another one of its several numbers.

        Parameters
        ----------
        key : str
            Its name, as in ``numbers``.
        value : number
            In place of the one that was typed.
        """
        return type(self)(**{**self.numbers, key: value})

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        """Return bounds (m,) on the row of a key letter without mass; None if unknown.

        By default none: what is stated speaks of all letters together.

        Parameters
        ----------
        release : Alphabet
            The letters of the problem.
        x : int
            The place of the letter in ``source.x``.
        """
        return 0.0, 1.0

    def row_bounds(
        self, release: Alphabet, x: int, rows: Mapping[int, FloatArray]
    ) -> tuple[Any, Any] | None:
        """Return bounds (m,) that other rows set on that of a key letter without mass.

        None if no row keeps what is stated of each two.  By default there are none.

        Parameters
        ----------
        release : Alphabet
            The letters of the problem.
        x : int
            The place of the letter in ``source.x``.
        rows : mapping of int to array (m,)
            Rows of other letters, by their places.
        """
        return 0.0, 1.0

    def _remedy(self, name: str) -> str:
        return "make another criterion, or use problem.at(…)"

    def __repr__(self) -> str:
        numbers = {key: f"{float(getattr(self, key)):g}" for key in Parameter.typed(self)}
        texts = [f"{k}={v}" for k, v in numbers.items()] if len(numbers) > 1 else numbers.values()
        return f"{type(self).__name__}({', '.join(texts)})"


def reset_claims(cls: type, base: type, claims: Iterable[str], statements: Iterable[str]) -> None:
    """Set back the claims of a class that were made of other statements than it has.

    Parameters
    ----------
    cls, base : type
        The class, as it is made, and the one that claims nothing.
    claims : iterable of str
        Names of its claims.
    statements : iterable of str
        Names of the methods and properties that the claims are about.
    """
    places = [vars(owner).keys() for owner in cls.__mro__]
    latest = min(i for i, names in enumerate(places) if not names.isdisjoint(statements))
    for claim in claims:
        if all(claim not in names for names in places[: latest + 1]):
            setattr(cls, claim, vars(base)[claim])


class TableCriterion(Criterion):
    """A criterion that speaks of tables alone, which no convex program states."""

    of_table = True
    _instead: ClassVar[str] = "use it in full_domain, optimal_intervals or audit"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        problem = f"{type(self).__name__} is decided on tables alone"
        raise InputError("criteria", problem, self._instead)


def criteria_listed(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria as a tuple; what is no list of them is refused."""
    try:
        entries = tuple(criteria)
    except TypeError:
        problem, remedy = f"{criteria!r} is no list", f"pass a list of criteria: [{criteria!r}]"
        raise InputError("criteria", problem, remedy) from None
    for i, criterion in enumerate(entries):
        if not isinstance(criterion, Criterion):
            remedy = "pass criteria such as TCloseness(0.5)"
            raise InputError("criteria", f"{criterion!r} is no criterion", remedy, where=i)
    return entries


def by_name(criteria: Sequence[Criterion], taken: Mapping[str, Any]) -> dict[str, Criterion]:
    """Return the criteria by name, a second of one name as ``name[2]``."""
    names: dict[str, Criterion] = {}
    for criterion in criteria:
        names[untaken(criterion.name, {*names, *taken})] = criterion
    return names
