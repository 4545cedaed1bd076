"""Local privacy: how much more probable one input makes an output than another.

Of all pairs alike (ε-local differential privacy), by how far inputs are apart (metric privacy), or
but for a probability δ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import ctx

from cvxprivacy.criteria.base import Criterion, Words, factor_in_words
from cvxprivacy.criteria.counts import Counts, Verdict
from cvxprivacy.criteria.decisions import within
from cvxprivacy.criteria.ratios import EXPONENT, exponent
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, Real, array as exact_array, floats, fractions, rational
from cvxprivacy.frozen import owned
from cvxprivacy.leakage import Maximal
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.alphabet import Alphabet, Earlier
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.latex_symbols import Notation, tex
from cvxprivacy.programs.parameter import Parameter, Scalar
from cvxprivacy.programs.side_conditions import Auxiliary, Excess, Rule
from cvxprivacy.text import upwards
from cvxprivacy.validation import table
from cvxprivacy_verifier.balls import PRECISION, ball

__all__ = ["LocalPrivacy", "generating_pairs"]

# Of a mass: what is rounded of all by 2⁻⁵² is no longer little beside it.  With letters of 1e-13 a
# rule of maxima was certified as fast as ever, with 1e-14 it was loose, and below it had no proof
_RARE = 2.0**-44
_FEW = 4_000  # pairs of inputs, for each earlier letter, stated one by one: 44 inputs took 40 s
_DRAWS = 2.0**52  # a draw has probabilities of whole numbers over it


class LocalPrivacy(Criterion):
    r"""p(x̂ | s) ≤ e^ε p(x̂ | s') for all inputs s, s' and outputs x̂: ε-local privacy.

    It protects the encoder's whole input, and holds under any law of it.  Two weaker forms:

    .. math::
       p(x̂ | x) &≤ e^{ε\, m(x, x')} p(x̂ | x') && \text{for a metric } m \\
       \textstyle\sum_{x̂} \bigl(p(x̂ | s) - e^ε p(x̂ | s')\bigr)^+ &≤ δ && \text{but for } δ

    After earlier releases it is of all together, p(z | s) p(x̂ | s, z) ≤ e^ε p(z | s') p(x̂ | s', z),
    where s is all that any of them saw: x, or (w, x).

    Metric privacy: K. Chatzikokolakis, M. E. Andrés, N. E. Bordenabe and C. Palamidessi,
    *Broadening the scope of differential privacy using metrics*, PETS 2013.  Only pairs that do not
    follow from others are stated: on a line neighbours alone.  A value without mass gets a row that
    keeps the rule with all others; it is no input of the channel where none does.

    Parameters
    ----------
    epsilon : number
        ε ≥ 0, a natural logarithm whatever the problem's units; with a metric, one for each unit of
        distance.
    metric : Distortion or array_like, shape (|X|, |X|), optional
        m(x, x'): symmetric, 0 on the diagonal.  By default 1 elsewhere.
    delta : number, optional
        0 < δ < 1, what the whole excess of one letter over another may be.

    Raises
    ------
    InputError
        For a negative or a huge ε, what is no metric, a δ that is not between 0 and 1, or both;
        once there are earlier releases, for a δ, or an ε that these exceed by themselves.

    Examples
    --------
    The optimum for a fair bit is randomised response, which lies with probability 1/(1 + e^ε):

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> source = cpv.DiscreteSource.identical([0.5, 0.5])
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.LocalPrivacy(log(3))])
    >>> problem.solve().channel.matrix.round(4).tolist()
    [[0.75, 0.25], [0.25, 0.75]]

    Places on a road, one kilometre after the other: neighbours may not be told apart by more than a
    factor 2, those two kilometres apart by 4:

    >>> road = cpv.DiscreteSource.identical([0.25] * 4)
    >>> km = cpv.absolute_error([0, 1, 2, 3])
    >>> near = cpv.LocalPrivacy(log(2), metric=km)
    >>> round(cpv.MinimumDistortion(road, km, [near]).solve().value, 4)
    0.7083

    A bit that may be told outright with probability δ:

    >>> rule = cpv.LocalPrivacy(0, delta=0.2)
    >>> round(cpv.MinimumDistortion(source, cpv.hamming(2), [rule]).solve().value, 4)
    0.4
    """

    name = "local_privacy"
    of_releases = "all"
    survives_merging = of_channel = independent_draws = True
    by_law = False  # of the channel, whatever the law
    words = Words(
        "no record's own {x} makes any released value more than {factor} times as probable as "
        "another record's would",
        "greatest log ratio",
        "nats",
        examples=("LocalPrivacy=2",),
    )
    epsilon = Parameter(below=EXPONENT, loosens="up", loosest=exponent)
    delta = Parameter(zero=False, below=1.0, optional=True, loosens="up", loosest=1 - 2.0**-53)

    def __init__(
        self,
        epsilon: Real,
        *,
        metric: Distortion | npt.ArrayLike | None = None,
        delta: Real | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.metric: Any = None if metric is None else _metric(metric)
        self.delta = delta
        if metric is not None and delta is not None:
            problem = "a metric and a δ"
            remedy = "pass one of them: PrivacyProfile(channel, metric=…).delta(ε) evaluates both"
            raise InputError("delta", problem, remedy, value=delta)

    def in_words(
        self, *, w: str = "W", x: str = "X", units: str = "bits", number: str = ""
    ) -> Words:
        words = super().in_words(w=w, x=x, units=units, number=number)
        if self.words is None:  # of a class that states something else
            return words
        number = number or f"{float(self.epsilon):g}"
        if self.metric is not None:
            asks = (
                f"no record's own {x} makes any released value more than e^({number} d) times as "
                "probable as one at a distance d would"
            )
            return replace(words, asks=asks, quantity="greatest log ratio per unit of distance")
        if self.delta is not None:
            asks = (
                f"but for a probability of {float(self.delta):g}, no record's own {x} makes any "
                f"released values more than {factor_in_words(number)} times as probable as another "
                "record's would"
            )
            return replace(words, asks=asks, quantity="log ratio", unit="nats")
        return words

    def verdict(self, table: Counts) -> Verdict:
        """Of no table is it decided: it is of the chances that a record had."""
        return Verdict(None)

    def at(self, value: Real) -> Criterion:
        return type(self)(value, metric=self.metric, delta=self.delta)

    def __repr__(self) -> str:
        others = "" if self.metric is None else ", metric=…"
        others += "" if self.delta is None else f", delta={float(self.delta):g}"
        return f"LocalPrivacy({float(self.epsilon):g}{others})"

    def entries_of(self, release: Alphabet, x: int) -> tuple[Any, Any] | None:
        """Return no bounds after earlier releases: how these released x is not in the law."""
        return None if release.earlier is not None else super().entries_of(release, x)

    def tightest(self, laws: Sequence[DiscreteSource]) -> float | None:
        """What earlier releases are at by themselves, if there are any."""
        earlier = [law.earlier[law.joint > 0] for law in laws if law.earlier is not None]
        if self.metric is not None and earlier:
            return None
        least = super().tightest(laws) or 0.0
        for chances in earlier:
            low, high = chances.min(axis=0), chances.max(axis=0)
            ratio = max(_log(b / a) if a else math.inf for a, b in zip(low, high, strict=True))
            least = max(least, ratio * (1 + 1e-12))
        return least

    def stated(self, of: Notation) -> str:
        read = of.together or of.inputs
        other = ", ".join(f"{letter}'" for letter in read)
        right, limit = of.all_releases("'"), tex(float(self.epsilon))
        if self.delta is not None:
            inner = rf"\bigl({of.channel} - e^{{{limit}}} \, {right}\bigr)^+"
            most = tex(float(self.delta))
            return rf"\sum_{{{of.y}}} {inner} \le {most} \quad \forall\, {of.s}, {other}"
        if self.metric is not None:
            limit = rf"{limit} \, m({', '.join(read)}, {other})"
        each = ", ".join([*read, other, *("z" if of.together else ""), of.y])
        return rf"{of.all_releases()} \le e^{{{limit}}} \, {right} \quad \forall\, {each}"

    def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
        if self.delta is not None:
            return self._excesses(release)
        if self.metric is not None:
            return self._pairs(release)
        if release.earlier is not None:
            return self._together(release, release.earlier)
        most = self.epsilon.exp()
        return {"": Auxiliary.of("ratio", most, rf"e^{{{tex(self.epsilon.near)}}}")}

    def _pairs(self, release: Alphabet) -> Mapping[str, Rule]:
        """Return a row for each pair of letters that generates others (of each output).

        After earlier releases it is of p(z | s) p(x̂ | s, z), for each z, which generates alike.
        """
        earlier, size, distances = release.earlier, len(release.source.x), self.metric
        if distances.shape != (size, size):
            remedy = f"pass one of shape ({size}, {size}), in the order of the source's x"
            raise InputError("metric", f"shape {distances.shape}", remedy)
        if (release.encoder_inputs if earlier is None else earlier.sees) != "x":
            problem = "inputs that are not x alone, of which the metric is"
            remedy = 'use encoder="x", for this and earlier releases, and no other side information'
            raise InputError("metric", problem, remedy)
        x_of = release.x_of if earlier is None else earlier.x_of
        pairs = generating_pairs(distances[np.ix_(x_of, x_of)])
        bounds = {pair: (distance, Fraction(1)) for pair, distance in pairs.items()}
        if earlier is not None:
            self._refuse_exceeded(
                earlier, [(*p, z, d) for p, d in pairs.items() for z in earlier.z]
            )
            bounds = _with_earlier(earlier, pairs)
        return self._rows(release, bounds)

    def _rows(
        self, release: Alphabet, bounds: Mapping[tuple[int, int], tuple[Fraction, Fraction]]
    ) -> dict[str, Rule]:
        """Return p(x̂ | i) ≤ e^εm share p(x̂ | j) of pairs, by how far they are apart, and shares."""
        rules: dict[str, Rule] = {}
        for (i, j), (distance, share) in bounds.items():
            if distance:
                rules[f"{i}/{j}"] = self._row(release, (i, j), distance, share).each() <= 0
            else:  # whatever ε is
                same = release.moved({i: Scalar(1), j: Scalar(-1)}).each()
                rules[f"{i}={j}"] = same == 0 * self.epsilon
        return rules

    def _row(
        self, release: Alphabet, pair: tuple[int, int], distance: Fraction, share: Fraction
    ) -> Expression:
        """Return p(x̂ | i) − e^εm share p(x̂ | j), divided by what no float holds, if that is so."""
        (i, j), power, most = pair, self.epsilon * distance, max(share, Fraction(1))
        moving, signed, by, other = j, power, -share, {i: Scalar(1)}
        if power > EXPONENT - _log(max(share / release.masses[j], Fraction(1))):
            moving, signed, by, other = i, -power, 1 / most, {j: Scalar(-share / most)}
        factor, mass = signed.exp() * by, release.masses[moving]
        if mass > _RARE or power > EXPONENT:
            return release.moved({**other, moving: factor})
        # what e^εm is off is multiplied by the mass of all letters, and weighs most of a rare one's
        middle, off = _power(signed, -math.floor(_log(mass) / math.log(2)))
        row = release.moved({**other, moving: Scalar(middle * by, factor.slopes)})
        return replace(row, cost_radius=off * abs(by) / mass)

    def row_bounds(
        self, release: Alphabet, x: int, rows: Mapping[int, FloatArray]
    ) -> tuple[Any, Any] | None:
        r"""Return what the metric leaves: max p(x̂ | x') e^−εm(x, x') and min p(x̂ | x') e^εm(x, x').

        Of the multiples of 2⁻⁵² that rows are drawn by, with ends that no rounding moves outwards.
        """
        if self.metric is None:
            return super().row_bounds(release, x, rows)
        if not rows:
            return None
        k = np.rint(np.array(list(rows.values())) * _DRAWS)
        exponents = (float(self.epsilon) * floats(self.metric[x, list(rows)]))[:, None]
        # ε, m and their product are rounded by 2⁻⁵³ each, which moves e to that power by 1.5 times
        # the exponent, in 2⁻⁵²; exp by 1, and by ½ each its product with k, 1 + off, and theirs.
        # Where shrunk has lost digits, or all, it allows all but 0, as the powers themselves do
        off = np.where(exponents > 0, (4 + 2 * exponents) * 2.0**-52, 0.0)
        shrunk = np.exp(-exponents)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            least = (k * shrunk * (1 + off)).max(axis=0)
            most = np.where(k > 0, k / shrunk * (1 - off), 0.0).min(axis=0)
        lower, upper = np.maximum(np.ceil(least), k.any(axis=0)), np.floor(most)
        if (lower > upper).any():
            return None
        return lower / _DRAWS, np.minimum(upper / _DRAWS, 1.0)

    def _together(self, release: Alphabet, earlier: Earlier) -> Mapping[str, Rule]:
        """Return max_s p(z | s) p(x̂ | s, z) ≤ e^ε p(z | s') p(x̂ | s', z) for each s' and z.

        Or that of each s by itself, of few where something is rare.
        """
        ends = [(int(p.argmax()), int(p.argmin()), z) for z, p in enumerate(earlier.chance.T)]
        self._refuse_exceeded(earlier, [(*end, Fraction(1)) for end in ends])
        if (bounds := _of_rare(release, earlier)) is not None:
            return self._rows(release, bounds)
        factor, rules = self.epsilon.exp() * release.law_rounding, dict[str, Rule]()
        for z, observer in enumerate(release.observers):
            greatest = release.leaked(Maximal(), "S", observer).each()
            least: dict[int, Fraction] = {}
            for s, p in zip(earlier.letter[:, z].tolist(), earlier.chance[:, z], strict=True):
                least[s] = min(least.get(s, p), p)
            least.pop(-1, None)  # of what has no mass in floats, and no row
            for s, p in least.items():
                rules[f"{s}|{observer.name}"] = greatest <= release.moved({s: factor * p}).each()
        return rules

    def _refuse_exceeded(
        self, earlier: Earlier, places: Iterable[tuple[int, int, int, Fraction]]
    ) -> None:
        """Refuse an ε that the rule, summed over x̂, does not allow the earlier releases.

        ``places`` are inputs s, s', letters z, and how far s and s' are apart.
        """
        epsilon, exceeded = rational(self.epsilon), []
        for i, j, z, distance in places:
            p, q = earlier.chance[i, z], earlier.chance[j, z]
            if p > q and not (q and within(p / q, epsilon * distance)):
                alone = _log(p / q) / float(distance) if q and distance else math.inf
                exceeded.append((alone, i, j, z))
        if not exceeded:
            return
        alone, i, j, z = max(exceeded)
        chances = (earlier.chance[s, z] for s in (i, j))
        p, q = (f"e^{_log(c):.4g}" if c and not float(c) else f"{float(c):.4g}" for c in chances)
        problem = (
            f"{self.epsilon.near:g} is below the {alone:.4g} of the earlier releases alone, in "
            f"which {earlier.labels[i]!r} became {earlier.outputs[z]!r} with probability {p} "
            f"and {earlier.labels[j]!r} with {q}"
        )
        remedy = f"pass at least {upwards(alone * (1 + 1e-15))}"
        if math.isinf(alone):
            remedy = "bound what all tell otherwise, as by LeakageCap"
        raise InputError("epsilon", problem, remedy, value=self.epsilon.near)

    def _excesses(self, release: Alphabet) -> Mapping[str, Rule]:
        """Return the excess of each letter over each other."""
        if release.earlier is not None:
            problem = "one δ for this and earlier releases together, which no program states yet"
            remedy = (
                "leave delta out; or state it without after=, and add up ε and δ of each release"
            )
            raise InputError("delta", problem, remedy, value=self.delta.near)
        factor, mass, size = self.epsilon.exp(), release.masses, release.n
        (bound, _), (most, off) = self.delta.enclosure, _power(self.epsilon)
        none = exact_array([Fraction(0)] * release.m)
        rules: dict[str, Rule] = {}
        for i, j in itertools.permutations(range(size), 2):
            share = np.full(size, Fraction(0), dtype=object)
            share[i], share[j] = 1 / mass[i], -most / mass[j]
            slope = np.zeros(size)
            slope[j] = -1 / float(mass[j])
            rules[f"{i}/{j}"] = Excess(
                bound=bound,
                radius=float(off) * (1 + 2.0**-40),  # Σ p(x̂ | s') = 1: of e^ε in the bound
                derivatives=self.delta.slopes | factor.slopes,
                share=exact_array(share),
                levels=none,
                pair=(i, j),
                moving=dict.fromkeys(factor.slopes, slope),
            )
        return rules


def _log(ratio: Fraction) -> float:
    """Return log r for r > 0, to a float's digits, also where r is no float, or next to 1."""
    if ratio < 1:
        return -_log(1 / ratio)
    with ctx.workprec(PRECISION):
        return float(ball(ratio - 1).log1p().mid())


def _power(exponent: Scalar, more: int = 0) -> tuple[Fraction, Fraction]:
    """Return e to a power as a rational, and how far that may be off: far below 1, and every δ.

    By 2^−more of what it would be.
    """
    ratio = Fraction(*exponent.as_integer_ratio())
    with ctx.workprec(PRECISION + 2 * abs(int(ratio)) + more):
        power = ball(ratio).exp()
    middle, off = (end.fmpq() for end in (power.mid(), power.rad()))
    return Fraction(int(middle.p), int(middle.q)), Fraction(int(off.p), int(off.q))


def _of_rare(
    release: Alphabet, earlier: Earlier
) -> dict[tuple[int, int], tuple[Fraction, Fraction]] | None:
    """Return the bounds of each pair, if few, where letters are so rare that a maximum drowns.

    In the rounding of the law, that is: rows of pairs are of the earlier channels exactly.
    """
    masses = [*release.masses, *earlier.chance[earlier.chance > 0]]
    size = len(earlier.labels)
    if min(masses) > _RARE or size**2 * len(earlier.z) > _FEW:
        return None
    return _with_earlier(
        earlier, dict.fromkeys(itertools.permutations(range(size), 2), Fraction(1))
    )


def _with_earlier(
    earlier: Earlier, pairs: Mapping[tuple[int, int], Fraction]
) -> dict[tuple[int, int], tuple[Fraction, Fraction]]:
    """Return how far letters of the encoder are apart, and the least p(z | s')/p(z | s) of them."""
    bounds: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
    for (i, j), distance in pairs.items():
        for z in earlier.z:
            if earlier.chance[i, z]:
                letters = int(earlier.letter[i, z]), int(earlier.letter[j, z])
                if letters[0] == letters[1] or -1 in letters:  # of one row, or of one without mass
                    continue
                share = earlier.chance[j, z] / earlier.chance[i, z]
                bounds[letters] = distance, min(share, bounds.get(letters, (distance, share))[1])
    return bounds


def _metric(value: Any) -> Any:
    """Return a metric as it was typed, checked."""
    remedy = "pass distances m(x, x') ≥ 0, symmetric, and 0 on the diagonal"
    value = value.matrix if isinstance(value, Distortion) else value
    metric = table(value, "metric", remedy, axes=(2,))
    if metric.shape[0] != metric.shape[1]:
        raise InputError("metric", f"shape {metric.shape}", remedy)
    for i, j in zip(*np.nonzero(metric != metric.T), strict=True):
        raise InputError("metric", "not symmetric", remedy, where=(int(i), int(j)))
    for i in np.flatnonzero(np.diagonal(metric) != 0):
        raise InputError("metric", "not 0 on the diagonal", remedy, where=(int(i), int(i)))
    return owned(metric)


def generating_pairs(metric: npt.ArrayLike) -> dict[tuple[int, int], Fraction]:
    """Return the pairs (i, j) from whose bounds those of all others follow, and how far they are.

    p(x̂ | i) ≤ e^{ε m(i, j)} p(x̂ | j) follows from (i, k) and (k, j) if m(i, k) + m(k, j) ≤ m(i, j).
    Distances are those of the shortest ways, exactly.

    Parameters
    ----------
    metric : array_like, shape (n, n)
        Symmetric, 0 on the diagonal.  Of letters at distance 0 each is paired with the first of
        them, once.

    Examples
    --------
    >>> list(generating_pairs([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    [(0, 1), (1, 0), (1, 2), (2, 1)]
    """
    distances = fractions(exact_array(metric)).tolist()
    common = math.lcm(*(distance.denominator for row in distances for distance in row))
    shortest = np.array([[int(x * common) for x in row] for row in distances], dtype=object)
    for k in range(len(shortest)):  # what follows through others bounds as well (Floyd–Warshall)
        np.minimum(shortest, shortest[:, k, None] + shortest[k], out=shortest)
    first = np.argmax(shortest == 0, axis=1)
    several = np.flatnonzero(first == np.arange(len(first)))
    among = shortest[np.ix_(several, several)]
    needed = among > 0
    for k in range(len(among)):
        through = among[:, k, None] + among[k] == among
        through[k], through[:, k] = False, False
        needed &= ~through
    pairs = [(int(several[i]), int(several[j])) for i, j in zip(*np.nonzero(needed), strict=True)]
    pairs += [(int(i), int(j)) for i, j in enumerate(first) if i != j]
    return {pair: Fraction(shortest[pair], common) for pair in pairs}
