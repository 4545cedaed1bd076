"""Bounds on what leaks: at every released letter x̂, or in all.

F is a measure of :mod:`cvxprivacy.leakage`, convex in the joint mass: F(J(·, x̂)) ≤ bound · q(x̂) at
each letter, which one of mass 0 satisfies, or Σ F ≤ b.  t, leakages and b are in the problem's
units.  The release that comes back satisfies them *provably*, not to a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion, Words
from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.exact import Real, rational
from cvxprivacy.leakage import EarthMover, Leakage, MutualInformation, TotalVariation
from cvxprivacy.leakage.base import NAMES, checked
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.latex_symbols import Notation, tex
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Rule
from cvxprivacy.text import named
from cvxprivacy.validation import typed

__all__ = [
    "ConditionalLeakageCap",
    "LeakageCap",
    "PerLetter",
    "PerfectPrivacy",
    "TCloseness",
    "independent",
]

_DISTANCES: dict[str, Callable[[], Leakage]] = {
    "kl": MutualInformation,
    "tv": TotalVariation,
    "emd": EarthMover,
}
_NAMES = {
    "kl": NAMES["MutualInformation"],
    "tv": NAMES["TotalVariation"],
    "emd": NAMES["EarthMover"],
}


def _larger(number: float) -> float:
    return max(2 * number, 64.0)


class PerLetter(Criterion):
    """A measure of leakage, bounded for every released letter: F(J(·, x̂)) ≤ bound · q(x̂).

    Parameters
    ----------
    leakage : Leakage or str
        Such as ``cpv.leakage.TotalVariation()``, or its name ``"tv"``: then TV(p(w | x̂), p(w)) ≤
        bound for every x̂.
    bound : number
        In the measure's unit; ≥ 0 unless that may be negative, as gains may.

    Raises
    ------
    InputError
        For what is no measure, or a bound that it cannot have.

    Examples
    --------
    The posterior of a fair bit may be 0.7 at most, 0.2 from the prior.  X = W but for a share 0.2,
    and p(w | x̂) = 0.8 − 0.6 D if X is flipped with probability D: D = 1/6.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rule = cpv.PerLetter(cpv.leakage.TotalVariation(), 0.2)
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve()
    >>> round(solution.value, 4), round(solution.prices["per_letter"], 4)
    (0.1667, -1.6667)
    """

    name = "per_letter"
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, {how} is at most {n}",
        "greatest {measure}",
        "{unit}",
        examples=("PerLetter=0.2:total-variation",),
    )
    bound = Parameter(negative=True, loosens="up", loosest=_larger)

    def __init__(self, leakage: Leakage | str, bound: Real) -> None:
        self.leakage = checked(leakage, "leakage")
        self.bound = typed(bound, "bound", negative=self.leakage.signed)

    @property
    def measure(self) -> Leakage:
        """What leaks."""
        return self.leakage

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_by_letter(self.leakage, rational(self.bound))

    def at(self, value: Real) -> Criterion:
        return type(self)(self.leakage, value)

    def stated(self, of: Notation) -> str:
        left = rf"{self.leakage.symbol}({_laws(of, ', ')})"
        return rf"{left} \le {tex(float(self.bound))} \quad \forall\, {of.observation}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _per_letter(release, self.leakage, self.bound, self.leakage.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.leakage!r}, {float(self.bound):g})"


def _laws(of: Notation, between: str) -> str:
    """Return the law of W as what is released tells it, and as it is."""
    hidden = of.sensitive
    return rf"p_{{{hidden} \mid {of.observation}}}{between}p_{hidden}"


def _per_letter(
    release: Alphabet, measure: Leakage, bound: Real | Scalar, name: str
) -> Mapping[str, Rule]:
    """Return F(J(·, x̂)) ≤ bound · q(x̂), for what each observer sees."""
    return {
        o.name: release.leaked(measure, "W", o).named(name).each()
        <= bound * release.mass(None, o).each()
        for o in release.observers
    }


def independent(release: Alphabet, zero: Real | Scalar) -> Mapping[str, Rule]:
    """Return that no letter tells anything about W; ``zero`` is the number that was typed."""
    return _per_letter(release, MutualInformation(), zero, "t-closeness")


class _Distance(EarthMover):
    """Earth mover's distance, of which t-closeness calls the ground so."""

    _called = "distance"


class TCloseness(Criterion):
    """The law of W at every released letter x̂ is t-close to its law at large.

    Parameters
    ----------
    t : number
        t ≥ 0: in the problem's units with ``"kl"``, else a share of the largest distance.
    distance : "kl", "tv", "emd", another name of these, or array_like, shape (|W|, |W|)
        D(p(w | x̂) ‖ p(w)) (Bezzi; Rebollo-Monedero et al.); total variation; earth mover's
        distance of ordered values, abs(i − j)/(|W| − 1), or of any ground distances (N. Li, T. Li
        and S. Venkatasubramanian, ICDE 2007, who name t-closeness).

    Raises
    ------
    InputError
        For a negative t, or what is no distance.

    Examples
    --------
    Two fair bits differ with probability 0.2.  At t = 1 − h(0.3) the posterior may be 0.7 at
    most, and X is flipped with the probability 1/6 that makes it so:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> t = 1 - cpv.information.entropy([0.3, 0.7])
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.TCloseness(t)]).solve()
    >>> round(t, 4), round(solution.value, 4)
    (0.1187, 0.1667)

    In total variation that is t = 0.7 − 0.5:

    >>> rule = cpv.TCloseness(0.2, distance="tv")
    >>> round(cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve().value, 4)
    0.1667
    """

    name = "t_closeness"
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "in every released group, the distribution of {w} is within {n} of that in the whole table "
        "({how})",
        "greatest {measure}",
        "{unit}",
        definition="t-closeness: no group's distribution of W is farther than t from the whole "
        "table's.",
        source="N. Li, T. Li and S. Venkatasubramanian, t-closeness, ICDE (2007)",
        examples=("TCloseness=0.1", "TCloseness=0.15:emd"),
    )
    t = Parameter(loosens="up", loosest=_larger)

    def __init__(self, t: Real, distance: str | npt.ArrayLike = "kl") -> None:
        self.t = t
        self.distance = distance
        if isinstance(distance, str):
            self.distance = named(distance, "distance", _NAMES, "distance")
            self.leakage = _DISTANCES[self.distance]()
        else:
            self.leakage = _Distance(distance)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, self.distance)

    @property
    def measure(self) -> Leakage:
        """The distance that t bounds."""
        return self.leakage

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_by_letter(self.leakage, rational(self.t))

    def mean_information(self, entropy: float, units: str) -> tuple[str, float] | None:
        return ("t", float(self.t)) if self.leakage.informs else None

    def stated(self, of: Notation) -> str:
        other = rf"{self.leakage.symbol}({_laws(of, ', ')})"
        divergence = _laws(of, r" \,\|\, ")
        left = f"D({divergence})" if self.leakage.informs else other
        return rf"{left} \le {tex(float(self.t))} \quad \forall\, {of.observation}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return _per_letter(release, self.leakage, self.t, "t-closeness")

    def __repr__(self) -> str:
        distance = self.distance if isinstance(self.distance, str) else self.leakage
        how = "" if self.leakage.informs else f", {distance!r}"
        return f"TCloseness({float(self.t):g}{how})"


class PerfectPrivacy(Criterion):
    """W and X̂ are independent: nothing at all is leaked, in any measure.

    Examples
    --------
    Two bits that depend on each other: only a release that tells nothing about X is silent about
    W, and half of the records are changed.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.PerfectPrivacy()])
    >>> round(problem.solve().value, 4)
    0.5

    Where X has a part that W does not depend on, that part is released.  Of four values of X the
    last bit is independent of W:

    >>> source = cpv.DiscreteSource([[0.2, 0.2, 0.05, 0.05], [0.05, 0.05, 0.2, 0.2]])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(4), [cpv.PerfectPrivacy()])
    >>> round(problem.solve().value, 4)  # 3/4 for a release that tells nothing about X
    0.5
    """

    name = "perfect_privacy"
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    words = Words(
        "the released columns tell nothing at all about {w}",
        "greatest {measure}",
        "{unit}",
        examples=("PerfectPrivacy",),
    )

    @property
    def measure(self) -> Leakage:
        """Mutual information, which is 0 where all others are."""
        return MutualInformation()

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_by_letter(self.measure, Fraction(0))

    def stated(self, of: Notation) -> str:
        return rf"I({of.sensitive}; {of.held}) = 0"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return independent(release, 0)


class LeakageCap(Criterion):
    """I(W; X̂) ≤ b, the average information leakage (Rebollo-Monedero et al. 2010, eq. 2).

    Parameters
    ----------
    b : number
        In the problem's units, or in the unit of the measure; ≥ 0 unless that may be negative.
    leakage : Leakage or str, optional
        Another measure, or its name: Σ_x̂ F(J(·, x̂)) ≤ b.

    Raises
    ------
    InputError
        For a b that the measure cannot have, or what is no measure.

    Examples
    --------
    Two fair bits differ with probability 0.2, and with 0.2 + 0.6 D if X is flipped with
    probability D.  A cap of 1 − h(0.3) bits asks for D = 1/6; so does one guess in 0.7 right:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> caps = [
    ...     cpv.LeakageCap(1 - cpv.information.entropy([0.3, 0.7])),
    ...     cpv.LeakageCap(0.7, leakage=cpv.leakage.GuessingProbability()),
    ... ]
    >>> [round(cpv.MinimumDistortion(source, cpv.hamming(2), [c]).solve().value, 4) for c in caps]
    [0.1667, 0.1667]
    """

    name = "leakage_cap"
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    _divergence = "information"
    words = Words(
        "on average, the released columns tell at most {n} about {w} ({how})",
        "{measure}",
        "{unit}",
        definition="A leakage cap bounds what is told on average over the records.",
        source="D. Rebollo-Monedero, J. Forné and J. Domingo-Ferrer, From t-closeness-like privacy "
        "to postrandomization via information theory, IEEE TKDE 22(11) (2010)",
        examples=("LeakageCap=0.05", "LeakageCap=0.6:guessing-probability"),
    )
    b = Parameter(negative=True, loosens="up", loosest=_larger)

    def __init__(self, b: Real, leakage: Leakage | str | None = None) -> None:
        self.leakage = None if leakage is None else checked(leakage, "leakage")
        self.b = typed(b, "b", negative=self.measure.signed)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, self.leakage)

    def stated(self, of: Notation) -> str:
        return rf"{self.measure.symbol}({of.sensitive}; {of.held}) \le {tex(float(self.b))}"

    @property
    def measure(self) -> Leakage:
        """What leaks: mutual information, unless another measure was named."""
        return MutualInformation() if self.leakage is None else self.leakage

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_in_all(self.measure, rational(self.b))

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        leaked = release.risk if self.leakage is None else release.leaked(self.leakage)
        return {"": leaked <= self.b}

    def __repr__(self) -> str:
        of = "" if self.leakage is None else f", {self.leakage!r}"
        return f"LeakageCap({float(self.b):g}{of})"


class ConditionalLeakageCap(Criterion):
    """I(W; X̂ | X) ≤ c: what the release adds, on average, to what X itself tells about W.

    An encoder that sees W may tell *more* to who knows x than x does: I(W; X, X̂) is I(W; X) and
    this.  Of an encoder that sees X alone it is 0 whatever is released, and nothing is asked.
    After earlier releases X̂ is all that was released.

    Parameters
    ----------
    c : number
        In the problem's units, ≥ 0.

    Raises
    ------
    InputError
        For a negative c, or of so many letters that no view for each x is stated.

    Examples
    --------
    Two fair bits differ with probability 0.2, and a tenth of the records may be changed.  An
    encoder that sees both changes X only where it is W, with probability 1/8: X̂ is W with
    probability 0.7, and 1 − h(0.3) is told by itself.  But to who knows X, a change tells W for
    sure.  With less of that, more is told by itself, up to what an encoder of X alone tells:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> d = cpv.hamming(2)
    >>> free = cpv.PrivacyDistortion(source, d, budget=0.1, encoder="wx").solve()
    >>> cap = [cpv.ConditionalLeakageCap(0.02)]
    >>> capped = cpv.PrivacyDistortion(source, d, 0.1, encoder="wx", criteria=cap).solve()
    >>> blind = cpv.PrivacyDistortion(source, d, budget=0.1).solve()
    >>> [round(solution.value, 4) for solution in (free, capped, blind)]
    [0.1187, 0.1263, 0.1733]
    >>> before = source.information()
    >>> [round(solution.informed_risk - before, 4) for solution in (free, capped)]
    [0.0341, 0.02]
    """

    name = "conditional_leakage_cap"
    of_releases = "all"
    survives_merging = survives_informed_encoder = True
    _divergence = "information"
    words = Words(
        "who knows a person's {x} learns at most {n} about {w} from what it is released as ({how})",
        "{measure} beyond what {x} tells",
        "{unit}",
        definition="A cap on conditional leakage bounds what a release adds, on average, to what "
        "the original key tells about W: nothing, unless the randomisation sees W.",
        source="A. D. Wyner, A definition of conditional mutual information for arbitrary "
        "ensembles, Information and Control 38 (1978)",
        examples=("ConditionalLeakageCap=0.05",),
    )
    c = Parameter(loosens="up", loosest=_larger)

    def __init__(self, c: Real) -> None:
        self.c = typed(c, "c")

    def at(self, value: Real) -> Criterion:
        return type(self)(value)

    def stated(self, of: Notation) -> str:
        held, z = of.held.partition(", ")[::2]
        condition = f"X, {z}" if z else "X"
        if of.together:
            held, condition = of.held, "X"
        return rf"I({of.sensitive}; {held} \mid {condition}) \le {tex(float(self.c))}"

    @property
    def measure(self) -> Leakage:
        """Mutual information, given X."""
        return MutualInformation()

    def verdict(self, table: Counts) -> Verdict:
        return table.leaked_given_x(rational(self.c))

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        return {"": release.conditional_leakage <= self.c}

    def __repr__(self) -> str:
        return f"ConditionalLeakageCap({float(self.c):g})"
