r"""Both ends of R(D) = min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D, from the law, D and any water level.

The letters' masses are floats m(x) ≥ 0, p = m/Σm, and 0 ≤ D ≤ 1; all of this, the level and what
follows from them without a logarithm is exact.  Let 0 ≤ λ ≤ max p: a level below 0 counts as 0,
and one above max p as max p.  Let A = {x : p(x) > λ}, or one letter of greatest p where no p
exceeds λ, and K = |A| ≥ 1, τ = Σ_{x ∉ A} p(x), δ = (K − 1) λ + τ.

*Lower end.*  X̂ that meets D, a law r(· | x̂) for each x̂ and s ≥ 0 have

    I(X; X̂) ≥ E log(r(X | X̂)/p(X)) + s (Pr(X ≠ X̂) − D)
            ≥ Σ_x p(x) min_x̂ {log(r(x | x̂)/p(x)) + s 1[x ≠ x̂]} − s D,

since what the first step drops is Σ p(x̂) KL(p(· | x̂) ‖ r(· | x̂)) ≥ 0.  Let K ≥ 2, so that
A = {p > λ} and 1 − δ − λ = Σ_A (p − λ) > 0, and let λ > 0.  Take s = log((1 − δ)/λ) > 0 and, for x̂
in A, r(x | x̂) = 1 − δ at x = x̂, λ at other x in A and p(x) outside A, in all 1.  The braces are
then log((1 − δ)/p(x)) for x in A and s for other x, whatever x̂ in A.  For x̂ outside A a law r
with braces at least these exists: it needs λ on A, p(x) outside and p(x̂)(1 − δ)/λ at x̂, in all
1 − (1 − δ − λ)(1 − p(x̂)/λ), which is at most 1 because p(x̂) ≤ λ.  Hence for every D

    R(D) ≥ −Σ_A p log p + (1 − D) log(1 − δ) + (D − τ) log λ = I_λ − s (D − δ),

a line in D that touches R at δ, where I_λ = −Σ_A p log p + (1 − δ) log(1 − δ) + (K − 1) λ log λ.
If λ = 0, it is R(0) = H(X), and nothing about other D; if K = 1, nothing.  R ≥ 0 always.

*Upper end.*  The channel of level λ keeps x with probability (1 − λ/p(x))⁺, else draws x̂ from
q(x̂) = (p(x̂) − λ)⁺/(1 − δ − λ); if K = 1, x̂ is always the one letter of A.  Let K ≥ 2, x̂ in A.  The
joint law is p(x) (λ/p(x)) q(x̂) = λ q(x̂) for other x in A, p(x) q(x̂) for x outside A, and for x = x̂
it is p(x) − λ + λ q(x) = q(x)(1 − δ − λ) + λ q(x) = q(x)(1 − δ).  So p(x̂) is q(x̂), p(x | x̂) is the
r above, Pr(X ≠ X̂) = δ, and, as q(x)(1 − δ) + (1 − q(x)) λ = p(x) in A,

    I(X; X̂) = E log(r(X | X̂)/p(X)) = (1 − δ) log(1 − δ) + (K − 1) λ log λ − Σ_A p log p = I_λ.

If K = 1, then δ = 1 − max p and I(X; X̂) = 0.

The release is this channel if δ = D.  If δ > D it is the channel with probability D/δ, else X
itself; if δ < D, the channel with probability min(1, (M − D)⁺/(M − δ)), M = 1 − max p, else the
letter of greatest p.  So Pr(X ≠ X̂) is D, or M < D, and as I(X; X̂) is convex in p(x̂ | x), the chord
between I_λ and H(X), or I_λ and 0, is no less than what the mixture reveals.  What it reveals is
also at least the lower end at its own Pr(X ≠ X̂).

Logarithms are in balls, as precise as it takes to know each value to 2⁻¹⁰⁰ of itself, or to
2⁻¹¹⁰⁰: see :func:`sharp`.  These are (G41) to (G44) of ``docs/theory/covariance.md``.  Needs the
standard library and python-flint only.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
from flint import arb, ctx

from .balls import PRECISION, UnprovableError, ball, number

__all__ = [
    "Filling",
    "HammingProof",
    "Letters",
    "exact_sum",
    "in_units",
    "information_unit",
    "nonnegative",
    "scale",
    "sharp",
]

# A sum over 2²⁰ letters loses 2²⁰, and one that cancels against Σ m log m over m ≤ Σm/2 ten bits
# more, so that the first is enough unless ends cancel, and the last always is, as no logarithm of
# what a document may hold exceeds 10⁴.
PRECISIONS = (160, 320, 640, 1280)
RELATIVE, ABSOLUTE = 100, 1100  # −log₂ of a sharp radius: of the value, or below every float


def log(value: Fraction) -> arb:
    """Return log of a rational > 0, precise also next to 1."""
    near = Fraction(1, 2) < value < 2
    return ball(value - 1).log1p() if near else ball(value).log()


def v_log_v(value: Fraction) -> arb:
    return ball(value) * log(value) if value else arb(0)


def sharp(value: Callable[[], arb]) -> arb:
    """Return a value with a radius of at most 2⁻¹⁰⁰ of itself or 2⁻¹¹⁰⁰.

    A claim that is wider than that by a little on both sides therefore contains what is computed
    here, in whichever way and however precisely it was computed itself.
    """
    enclosed = arb.neg_inf()
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            enclosed = value()
            least = max(abs(enclosed.mid()) * arb(2) ** -RELATIVE, arb(2) ** -ABSOLUTE)
            if enclosed.rad() <= least:
                break
    return enclosed


def nonnegative(value: arb) -> arb:
    """Return what is known of a value in a ball that is known to be ≥ 0."""
    if value >= 0:
        return value
    half = arb(0, value.upper() / 2)
    return half + half.rad()  # from 0, exactly


def information_unit(program: Mapping[str, Any]) -> str:
    """Return the unit of information of a closed form's program."""
    if program["units"] not in ("nats", "bits"):
        raise UnprovableError(f"no unit of information is called {program['units']!r}")
    return str(program["units"])


def scale(units: str) -> float:
    """Return one nat."""
    return {"nats": 1.0, "bits": 1.0 / math.log(2.0)}[units]


def in_units(nats: arb, units: str) -> arb:
    """Return information in ``units``."""
    return nats / arb(2).log() if units == "bits" else nats


class Letters:
    """Masses > 0 of letters, increasing, and sums over those at places start … stop − 1."""

    masses: Any  # a sequence of floats

    def __init__(self, masses: Sequence[float]) -> None:
        self.masses, self.total = masses, exact_sum(masses)
        self._sums: dict[tuple[int, ...], Any] = {}  # the same for both ends

    def __len__(self) -> int:
        return len(self.masses)

    def below(self, mass: Fraction) -> int:
        """Return how many masses are at most ``mass``; never all of them."""
        return min(bisect_right(self.masses, mass), len(self) - 1)

    def mass(self, start: int, stop: int) -> Fraction:
        """Return Σ m exactly."""
        if (start, stop) not in self._sums:
            self._sums[start, stop] = exact_sum(self.masses[start:stop])
        return self._sums[start, stop]

    def m_log_m(self, start: int, stop: int) -> arb:
        """Return Σ m log m, with one logarithm for each distinct m."""
        key = start, stop, ctx.prec
        if key not in self._sums:
            distinct = Counter(self.masses[start:stop])
            balls = [arb(m) for m in distinct]
            parts = zip(distinct.values(), balls, map(arb.log, balls), strict=True)
            self._sums[key] = sum((times * (m * log_m) for times, m, log_m in parts), arb(0))
        return self._sums[key]


def exact_sum(masses: Sequence[float]) -> Fraction:
    """Return the sum of finite floats as the rational that it is.

    Each is M 2^e with whole |M| ≤ 2⁵³; the M are added up for each e.
    """
    parts: defaultdict[int, int] = defaultdict(int)
    for mantissa, exponent in map(math.frexp, masses):
        parts[exponent] += int(mantissa * 2.0**53)
    least = min(parts, default=0)
    total = sum(part << (exponent - least) for exponent, part in parts.items())
    return total * Fraction(2) ** (least - 53)


class Filling:
    """Water poured over letters up to a level; the letters are those of the module's text.

    What has a logarithm is in nats, at the precision of the moment.

    Attributes
    ----------
    level, tail, distortion : Fraction
        λ, τ, δ.
    kept : int
        K.
    most : Fraction
        M = 1 − max p.
    """

    def __init__(self, letters: Letters, level: Fraction) -> None:
        self.letters, self._top = letters, Fraction(float(letters.masses[-1])) / letters.total
        self.level, self.most = min(max(level, Fraction(0)), self._top), 1 - self._top
        self._drowned = letters.below(self.level * letters.total)
        self.kept = len(letters) - self._drowned
        self.tail = letters.mass(0, self._drowned) / letters.total
        self.distortion = (self.kept - 1) * self.level + self.tail  # (G41)

    @property
    def inside(self) -> arb:
        """−Σ_A p log p."""
        if self._top <= Fraction(1, 2):
            return self._entropy(self._drowned, len(self.letters), 1 - self.tail)
        # log p of a letter that has nearly everything is next to 0: take it apart
        others = self._entropy(self._drowned, len(self.letters) - 1, self.most - self.tail)
        return others - v_log_v(self._top)

    @property
    def outside(self) -> arb:
        """−Σ p log p of the others."""
        return self._entropy(0, self._drowned, self.tail)

    def _entropy(self, start: int, stop: int, share: Fraction) -> arb:
        """Return −Σ p log p of letters of probability ``share`` in all, none above 1/2."""
        total = self.letters.total
        return ball(share) * log(total) - self.letters.m_log_m(start, stop) / ball(total)

    @property
    def entropy(self) -> arb:
        """H(X)."""
        return self.inside + self.outside

    @property
    def rate(self) -> arb:
        """I_λ."""
        return self.inside - self._spread if self.kept > 1 else arb(0)  # (G43)

    @property
    def equivocation(self) -> arb:
        """H(X | X̂) of the channel of level λ."""
        return self.outside + self._spread

    @property
    def _spread(self) -> arb:
        """−(1 − δ) log(1 − δ) − (K − 1) λ log λ."""
        return -v_log_v(1 - self.distortion) - (self.kept - 1) * v_log_v(self.level)

    @property
    def slope(self) -> float:
        """s; 0 where nothing is revealed."""
        if self.kept == 1:
            return 0.0
        if not self.level:
            return math.inf
        return float(log((1 - self.distortion) / self.level))  # 1 − δ > λ where K ≥ 2

    def lower(self, budget: Fraction) -> arb:
        """Return the lower end of R(``budget``)."""
        if self.kept == 1:
            return arb(0)
        if not self.level:  # s = ∞ proves R(0) = H(X), and nothing about other D
            return arb(0) if budget else self.inside
        kept = ball(1 - budget) * log(1 - self.distortion)
        return self.inside + kept + ball(budget - self.tail) * log(self.level)  # (G42)

    def mixture(self, budget: Fraction) -> tuple[Fraction, bool]:
        """Return with which probability the release is the channel, and if it is X otherwise."""
        delta = self.distortion
        if delta > budget:  # too much is changed: X itself at times
            return budget / delta, True
        if delta == self.most:
            return Fraction(1), False
        return max(self.most - budget, Fraction(0)) / (self.most - delta), False

    def reached(self, budget: Fraction) -> Fraction:
        """Return Pr(X ≠ X̂) of the release."""
        return min(budget, self.most)

    def upper(self, budget: Fraction) -> arb:
        """Return the upper end of R(``budget``)."""
        share, revealed = self.mixture(budget)
        if not share and not revealed:
            return arb(0)
        chord = ball(share) * self.rate  # (G44)
        return chord + ball(1 - share) * self.entropy if revealed else chord


class HammingProof:
    """The exact program behind ``HammingProgram.to_dict()``, and the ends it proves."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        flint.ctx.prec = PRECISION
        if program.get("kind") != "hamming" or set(program) != {"kind", "units", "law", "budget"}:
            raise UnprovableError("a program over letters has a kind, units, a law and a budget")
        self.program, law = program, program["law"]
        self.units = information_unit(program)
        if not isinstance(law, list) or not all(type(m) is float for m in law):
            raise UnprovableError("the law is no list of floats")
        if not all(0 <= m < math.inf for m in law) or not any(law):
            raise UnprovableError("the law has a negative or infinite mass, or no mass at all")
        self.budget = number(program["budget"])
        if not 0 <= self.budget <= 1:
            raise UnprovableError("the budget is no probability")
        self.letters = Letters(sorted(filter(None, law)))

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged: a nat of information."""
        return scale(self.units)

    def converted(self, nats: Callable[[], arb]) -> arb:
        """Return a value in the program's units."""
        return sharp(lambda: in_units(nats(), self.units))

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that a level proves, in the program's units."""
        flint.ctx.prec = PRECISION
        filling = Filling(self.letters, number(dual["level"]))
        if not dual.get("objective", 1):
            return arb(0)  # the identity is feasible: nothing contradicts the constraint
        bound = self.converted(lambda: filling.lower(self.budget))
        return bound if bound > 0 else arb(0)

    def upper(self, primal: Mapping[str, Any]) -> HammingEvaluation:
        """Evaluate the release of a level."""
        flint.ctx.prec = PRECISION
        return HammingEvaluation(self, Filling(self.letters, number(primal["level"])))


class HammingEvaluation:
    """The release of a level: it meets the budget, and this is what it is worth."""

    def __init__(self, proof: HammingProof, filling: Filling) -> None:
        self.feasible, self.broken = True, list[str]()
        budget, converted = proof.budget, proof.converted
        self.objective = nonnegative(converted(lambda: filling.upper(budget)))
        reached = filling.reached(budget)
        if filling.mixture(budget)[0] == 1:
            rate = self.objective  # the channel of the level itself, whose rate is I_λ
            equivocation = converted(lambda: filling.equivocation)
        else:
            # of a mixture: between the bound at what it reaches, and the chord
            least = converted(lambda: filling.lower(reached))
            entropy = converted(lambda: filling.entropy)
            rate = nonnegative(least.union(self.objective))
            equivocation = entropy - rate
        self.terms = {
            "rate": rate,
            "leakage": rate,  # W = X
            "equivocation": nonnegative(equivocation),
            "distortion": sharp(lambda: ball(reached)),
        }
