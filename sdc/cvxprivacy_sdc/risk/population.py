"""From sample to population: a channel designed on some records, measured on others.

The risk of a certified optimum is that of the table at hand, which the optimum fits.  Other records
of the same population, which the channel has never met, tell what it leaks there: below are upper
confidence bounds, proved, of I(W; X̂) in the population that the records were drawn from.

Records (Wᵢ, Xᵢ), i = 1 … n, are independent draws from an unknown law p(w, x) on known finite sets,
and go through a channel Q(x̂ | x) that is known and does not depend on them: it was designed on
other records.  J = I(W; X̂) under p(w, x) Q(x̂ | x), and Ĵ is the same under their empirical law p̂,
both in nats.  Everything below may use the design records too, which are independent of these n.
Each bound exceeds J with probability 1 − δ at least.

**Log-loss.**  Let r be any law of W, from the design records, and

    ψ(w, x) = Σ_x̂ Q(x̂ | x) log [p(w | x̂) / r(w)],    an unknown function.

1. E ψ = J + D(p_W ‖ r) ≥ J.
2. E e^{−ψ} ≤ 1: by Jensen e^{−ψ} ≤ Σ_x̂ Q(x̂ | x) r(w)/p(w | x̂), whose mean is
   Σ_x̂ p(x̂) Σ_{w: p(w, x̂) > 0} r(w) ≤ 1.
3. ψ(w, x) ≤ B(w) = log 1/r(w).
4. The mean of ψ over the records is Ĵ + D(p̂_W ‖ r) − D(p̂ ‖ p of W given X̂) ≤ Ĵ + D(p̂_W ‖ r), which
   is known.

With f(u) = e^{−u} − 1 + u, 0 < λ < 1 and λ² ≤ c < λ, let
a(w) = max(0, −λB − log(1 − λB + c f(B))); λ and c are such that every w has this logarithm.  Then

    exp(−λu − a) ≤ 1 − λu + c f(u)    for every u ≤ B:                                      (*)

K(u) = 1 − e^{λu}(1 − λu + c f(u)) has K(0) = 0 and K′(u) = e^{λu} b(u) with the convex
b(u) = λ(λ − c)u − c(1 − λ)(1 − e^{−u}), b(0) = 0, b′(0) = λ² − c ≤ 0.  So b ≥ 0 for u < 0 and K ≤ 0
there; for u > 0 b has one sign change at most, from − to +, so K ≤ max(0, K(B)), and (*) is
1 − e^{−a} ≥ K.  By 1 and 2, E exp(−λψ − a) ≤ 1 − λ Eψ + c(E e^{−ψ} − 1 + Eψ) ≤ 1 − (λ − c) Eψ.
Markov's inequality for the product over the records and 4 give, with probability 1 − δ,

    J ≤ Eψ ≤ (1 − e^{−s})/(λ − c),    s = λ(Ĵ + D(p̂_W ‖ r)) + mean a(Wᵢ) + log(1/δ)/n.

λ, c and r are chosen on the design records and cost nothing.  To leading order this is
Ĵ + √(2v log(1/δ)/n) with v a multiple of J itself; beside D(p̂_W ‖ r) and the bias of Ĵ no term
grows with the number of letters.  The same with the roles changed: s a law of X̂,
ψ = Σ_x̂ Q(x̂ | x) log [p(x̂ | w)/s(x̂)], and B(x) = Σ_x̂ Q(x̂ | x) log [max_x′ Q(x̂ | x′)/s(x̂)].  Which is
used is decided on the design records.
(Step 2 is the central condition of T. van Erven, P. Grünwald, N. Mehta, M. Reid and R. Williamson,
Fast rates in statistical and online learning, JMLR 16, 2015; the inequality of the mean is
H. Chernoff's, Ann. Math. Statist. 23, 1952.  The combination is derived above.)

**Bounded differences.**  The mean of the cross-entropy −Σ p̂ log p is H, and it is Ĥ + D(p̂ ‖ p); so
J − E Ĵ = E[D_W + D_X̂ − D_WX̂], divergences of the laws in p̂ from those in p.  As D_WX̂ is at least
D_W and D_X̂, J − E Ĵ ≤ min(E D_W, E D_X̂) ≤ log(1 + (m − 1)/n), with m the fewest of |W|, |X| and
|X̂| (L. Paninski, Neural Computation 15, 2003: E D ≤ log(1 + E χ²), E χ² ≤ (m − 1)/n).  Let T tell
one record from the others: given T = 1 that record's W and X̂ are independent, so
I(W; X̂) = I(W; X̂ | T) + I(W; T) − I(W; T | X̂) lies within ± h(1/n), the binary entropy, of a
number that does not depend on the record: replacing it moves Ĵ by 2h(1/n) at most (A. Antos and
I. Kontoyiannis, Random Structures & Algorithms 19, 2001, have 2 log n/n for an entropy).
C. McDiarmid's inequality (1989) gives J ≤ Ĵ + log(1 + (m − 1)/n) + 2h(1/n) √(n log(1/δ)/2).

**Cell by cell.**  Intervals of Clopper and Pearson (Biometrika 26, 1934) for each of the k cells
(w, x), at 1 − δ/k, hold together with probability 1 − δ (Bonferroni), and make a box.  For p in it,
and any r and s, J ≤ Σ p(w, x̂) log p(w, x̂) − Σ p(w) log r(w) − Σ p(x̂) log s(x̂); t log t lies under
its secant over the interval of p(w, x̂), and what is left is linear in p: its maximum over the box
and Σ p = 1 fills cells in the order of their coefficients.

None exceeds log m, which is always true.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.additive import floats
from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.errors import InputError
from cvxprivacy.frozen import owned
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import divergence, entropy, mutual_information, nat
from cvxprivacy.text import aligned, upwards
from cvxprivacy.validation import array, generator, number
from cvxprivacy_sdc.risk.estimators import Information, draws_of, estimated

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.results.solution import Solution

__all__ = ["BOUNDS", "Bound", "Halves", "PopulationRisk", "halved", "measured", "population_bounds"]

Array = npt.NDArray[np.float64]

BOUNDS = {
    "log-loss": "Chernoff's bound of the log-loss, E exp(−ψ) ≤ 1 (van Erven et al. 2015)",
    "bounded differences": "McDiarmid 1989 and Paninski 2003, as Antos and Kontoyiannis 2001",
    "cell by cell": "Clopper and Pearson 1934, for all cells together (Bonferroni)",
}
_LAMBDAS = np.geomspace(1e-3, 0.9, 48)
_STEPS = np.linspace(0.0, 0.98, 24)  # of c between λ² and λ, on a scale of logarithms


@dataclass(frozen=True, eq=False)
class Halves:
    """The records of a table in two random parts.

    Attributes
    ----------
    full, design : DiscreteSource
        All records, and those that the channel is designed on, over the same letters.
    holdout : ndarray of counts, shape (|W|, |X|)
        The others.
    """

    full: DiscreteSource
    design: DiscreteSource
    holdout: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PopulationRisk:
    """I(W; X̂) of a channel in the population that a table's records were drawn from.

    Attributes
    ----------
    bounds : tuple of Bound
        Upper confidence bounds; the first is the one that is reported.
    level : float
        At which each holds by itself.
    design, holdout : Information
        Plug-in value of either part, with its Miller–Madow bias; of the holdout with a bootstrap
        interval, which is no proof.
    overall : float
        Plug-in value of all records.
    records : (int, int)
        On which the channel was designed, and on which it was measured.
    distortion : (float, float) or None
        E d(X, X̂) of the records that the channel was designed on, and of all.
    names : (str, str)
        Of W and X.
    units : {"bits", "nats"}
    """

    bounds: tuple[Bound, ...]
    level: float
    design: Information
    holdout: Information
    overall: float
    records: tuple[int, int]
    distortion: tuple[float, float] | None
    names: tuple[str, str]
    units: str

    @property
    def upper(self) -> float:
        """The reported bound: above the population's I(W; X̂) with probability ``level``."""
        return self.bounds[0].value

    @property
    def assumption(self) -> str:
        """What the bound rests on beside its proof."""
        w, x = self.names
        return (
            f"records are independent draws, {w} and {x} have the table's values only, and bands "
            "and groups that were settled from the table are taken as given"
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        first = self.bounds[0]
        return {
            "upper": self.upper, "level": self.level, "bound": first.name, "source": first.source,
            "units": self.units, "assumption": self.assumption,
            "bounds": {bound.name: bound.value for bound in self.bounds},
            "design": {"records": self.records[0], **_estimate(self.design)},
            "holdout": {"records": self.records[1], **_estimate(self.holdout)},
            "whole": {"records": sum(self.records), "plugin": self.overall},
            "distortion": None if self.distortion is None else
            {"design": self.distortion[0], "whole": self.distortion[1]},
            "rows": self.rows(),
        }  # fmt: skip

    def rows(self) -> dict[str, str]:
        """Return each figure in words, by what it is of."""
        first, *others = self.bounds
        design, held = (f"{number:,}" for number in self.records)
        rows = {
            f"In the population, at {self.level:.0%}, proved":
                f"I(W; X̂) is at most {upwards(self.upper)} {self.units}: {first.source}",
            "Assumed": self.assumption,
            f"Counted on the {held} records held out":
                f"{self.holdout.plugin:.4g}, of which bias about {self.holdout.bias:.2g}",
            f"Counted on the {design} records of the design":
                f"{self.design.plugin:.4g}, of which bias about {self.design.bias:.2g}",
            "Counted on all records, by the channel alone": f"{self.overall:.4g}",
            "Other bounds, proved": ", ".join(f"{b.name} {upwards(b.value)}" for b in others),
        }  # fmt: skip
        if self.holdout.lower is not None:
            ends = f"[{self.holdout.lower:.4g}, {self.holdout.upper:.4g}], not proved"
            rows["Bootstrap interval on those held out, bias taken off"] = ends
        if self.holdout.note:
            rows["The bootstrap"] = self.holdout.note
        if self.distortion is not None:
            designed, overall = self.distortion
            rows["Expected distortion, by the channel alone"] = (
                f"{designed:.4g} on the design, {overall:.4g} on all records"
            )
        return rows

    def __str__(self) -> str:
        design, held = (f"{number:,}" for number in self.records)
        head = f"population: channel designed on {design} records, measured on {held} others"
        return "\n".join([head, *(f"  {line}" for line in aligned([*self.rows().items()]))])


def _estimate(of: Information) -> dict[str, Any]:
    names = ("plugin", "bias", "lower", "upper", "note")
    return {name: value for name, value in asdict(of).items() if name in names}


def halved(
    source: DiscreteSource, *, share: float = 0.5, seed: int | np.random.Generator | None = None
) -> Halves:
    """Hold out a random share of a table's records.

    Which records they are is drawn by their cells: the counts of a simple random sample are
    multivariate hypergeometric.

    Parameters
    ----------
    source : DiscreteSource
        Of a table, or of counts; without survey weights, which make records no independent draws,
        and without Z.
    share : float
        In (0, 1); the number of records held out is rounded.
    seed : int or Generator, optional

    Raises
    ------
    InputError
        For another share, or where either part would have no record.
    """
    share = number(share, "share", zero=False, below=1.0)
    if source.weighted:
        problem = "records with survey weights are no independent draws of one law"
        raise InputError("weights", problem, "leave the weights out, or hold nothing out")
    records = source.records or 0
    if source.law.ndim != 2 or (source.law % 1).any() or source.law.sum() != records:
        problem = "no counts of records of (W, X)"
        raise InputError("source", problem, "pass from_table or from_counts, without Z")
    held = round(share * records)
    if not 0 < held < records:
        problem = f"of {records:,} records it holds {held:,} out"
        raise InputError("share", problem, "leave a record at least in either part", value=share)
    counts = source.law.astype(np.int64)
    drawn = generator(seed).multivariate_hypergeometric(counts.ravel(), held, method="marginals")
    holdout = drawn.reshape(counts.shape)
    left = records - held
    law = owned((counts - holdout).astype(float))
    design = source._with(law=law, records=left, effective=float(left))
    return Halves(source, design, holdout.astype(float))


def measured(
    halves: Halves,
    problem: ChannelProblem,
    solution: Solution,
    *,
    level: float = 0.95,
    bootstrap: int = 200,
    seed: int | np.random.Generator | None = None,
) -> PopulationRisk:
    """Measure on the holdout what a problem's solution leaks that was found on the design.

    Parameters
    ----------
    halves : Halves
    problem : ChannelProblem
        Of ``halves.design``, with an encoder of X.
    solution : Solution
        Of the problem.
    level : float
        With which the bound holds: for this share of all tables, whatever the population.
    bootstrap : int
        Draws for the interval beside it, which is not proved; 0 for none.
    seed : int or Generator, optional
        Of the bootstrap.

    Raises
    ------
    InputError
        For a problem of another source, a randomisation that sees more than X, or one that has no
        row for a cell of the table.
    """
    draws, source = draws_of(bootstrap, "bootstrap"), halves.full
    if problem.source is not halves.design:
        raise InputError("problem", "of another source", "state it of the design records")
    if problem.encoder != "x" or problem.side_information is not None:
        wrong = f"the randomisation sees {problem.encoder!r}"
        raise InputError("encoder", wrong, "use encoder='x', which a holdout can measure")
    refuse_other(solution.certificate, problem, "solution")
    channel = solution.channel
    assert channel is not None
    place = {x: i for i, x in enumerate(channel.inputs)}
    lacking = [x for x in source.x if x not in place]
    if lacking:
        wrong = f"{len(lacking)} cells of the table have no row: the design half lacks them"
        raise InputError("criteria", wrong, "hold out fewer records, or ask for less")
    matrix = channel.matrix[[place[x] for x in source.x]]
    units = problem.units
    bounds = population_bounds(matrix, halves.design.law, halves.holdout, level=level, units=units)
    spread: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
    costs, joints = floats(problem.alphabet.d.cost), (halves.design.pmf, source.pmf)
    laws = joints if costs.ndim == 3 else [joint.sum(axis=0) for joint in joints]
    designed, released = (float((p[..., None] * matrix * costs).sum()) for p in laws)
    return PopulationRisk(
        bounds,
        level,
        estimated(halves.design.law, channel=matrix, level=level, units=units),
        estimated(halves.holdout, channel=matrix, units=units, **spread),
        mutual_information(source.law @ matrix, units=units),
        (int(halves.design.law.sum()), int(halves.holdout.sum())),
        (designed, released),
        (source.names[0], source.names[1]),
        units,
    )


# ---- the bounds --------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """An upper confidence bound of the population's I(W; X̂): see :func:`population_bounds`.

    Attributes
    ----------
    name : {"log-loss", "bounded differences", "cell by cell"}
        Which of the three; ``source`` has the references.
    value : float
        The bound, at most log m, in the units asked for.
    expected : float
        What it promised to be, on the design records: the bound that promises least is reported.

    Examples
    --------
    Under the law of these records the channel leaks 1 − h(0.4 · 0.9 + 0.6 · 0.1) = 0.0185 bits.  A
    thousand of them prove at most 0.0505, a million next to the truth:

    >>> def bound(records):
    ...     half = [[0.3 * records, 0.2 * records], [0.2 * records, 0.3 * records]]
    ...     return population_bounds([[0.9, 0.1], [0.1, 0.9]], half, half)[0]
    >>> round(bound(1_000).value, 4), round(bound(1_000_000).value, 4)
    (0.0505, 0.0192)
    >>> bound(1_000).name
    'log-loss'
    """

    name: str
    value: float
    expected: float

    @property
    def source(self) -> str:
        """Whose inequalities it rests on."""
        return BOUNDS[self.name]


def population_bounds(
    matrix: npt.ArrayLike,
    design: npt.ArrayLike,
    holdout: npt.ArrayLike,
    *,
    level: float = 0.95,
    units: str = "bits",
) -> tuple[Bound, ...]:
    """Bound I(W; X̂) of the population from above, by records that the channel was not designed on.

    Parameters
    ----------
    matrix : array_like, shape (|X|, |X̂|)
        Q(x̂ | x), which may depend on ``design`` and on nothing of ``holdout``.
    design, holdout : array_like of counts, shape (|W|, |X|)
        Records of either part; rows and columns without records are values that may occur.
    level : float
        Probability 1 − δ with which each bound holds, whatever the law.
    units : {"bits", "nats"}

    Returns
    -------
    tuple of Bound
        That which promised least on the design records first.  The choice does not depend on the
        holdout, so that the first one holds with the level; the least of all values need not.

    Examples
    --------
    >>> half = [[300, 200], [200, 300]]
    >>> best, *others = population_bounds([[0.9, 0.1], [0.1, 0.9]], half, half)
    >>> best.name, round(best.value, 3)
    ('log-loss', 0.051)
    """
    channel = _channel(matrix)
    remedy = f"pass counts of shape (|W|, {len(channel)})"
    first, second = _counts(design, "design", remedy), _counts(holdout, "holdout", remedy)
    if first.shape != second.shape or first.shape[1] != len(channel):
        raise InputError("holdout", f"shape {second.shape} beside {first.shape}", remedy)
    level, unit = number(level, "level", zero=False, below=1.0), nat(units)
    like = first * (second.sum() / first.sum())  # the design as a holdout of the other's size
    log, most = math.log(1 / (1 - level)), math.log(min(*first.shape, channel.shape[1]))
    pairs = {
        "log-loss": _log_loss(channel, first, second, log),
        "bounded differences": [_bounded(channel, of, log) for of in (like, second)],
        "cell by cell": [_cell_by_cell(channel, of, level) for of in (like, second)],
    }
    bounds = [
        Bound(name, min(value, most) * unit, min(expected, most) * unit)
        for name, (expected, value) in pairs.items()
    ]
    return tuple(sorted(bounds, key=lambda bound: bound.expected))


def _channel(matrix: npt.ArrayLike) -> Array:
    remedy = "pass rows that are laws, shape (|X|, |X̂|)"
    channel = array(matrix, "matrix", remedy, axes=(2,))
    off = np.flatnonzero(np.abs(channel.sum(axis=1) - 1) > 1e-9)
    if len(off):
        raise InputError("matrix", "a row does not sum to 1", remedy, where=int(off[0]))
    return channel


def _counts(values: npt.ArrayLike, argument: str, remedy: str) -> Array:
    counts = array(values, argument, remedy, axes=(2,), massive=True)
    if (counts % 1 != 0).any():
        raise InputError(argument, "not whole numbers of records", remedy)
    return counts


def _smoothed(counts: Array) -> Array:
    """Return a law that leaves nothing out: half a record more of each (Krichevsky, Trofimov)."""
    more: Array = counts + 0.5
    return more / more.sum()


# ---- log-loss ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reference:
    """A law of W, or of X̂, that ψ compares with, and how great ψ can be for each letter.

    ``marginal`` sums counts over the other letters: its laws weigh ``caps``, and become those of
    the reference by ``through``.
    """

    law: Array
    caps: Array
    axis: int
    through: Array | None = None

    def marginal(self, counts: Array) -> Array:
        return counts.sum(axis=self.axis)

    def excess(self, counts: Array) -> float:
        """Return D(p̂ ‖ r)."""
        marginal = self.marginal(counts)
        return divergence(
            marginal if self.through is None else marginal @ self.through, self.law, units="nats"
        )

    def above(self, rate: Any, c: Any) -> Array:
        """Return a of each letter; infinite where λ and c do not do, and prove nothing."""
        inside = 1 - rate * self.caps + c * (np.expm1(-self.caps) + self.caps)
        kept = np.where(inside > 0, inside, 1.0)
        return np.where(inside > 0, np.maximum(0.0, -rate * self.caps - np.log(kept)), np.inf)


def _references(channel: Array, design: Array) -> list[_Reference]:
    of_w = _smoothed(design.sum(axis=1))
    of_x = _smoothed(design.sum(axis=0)) @ channel
    ratio = np.log(np.maximum(channel.max(axis=0), 1e-300) / np.maximum(of_x, 1e-300))
    return [
        _Reference(of_w, -np.log(of_w), 1),
        _Reference(of_x, np.maximum(channel @ ratio, 0.0), 0, channel),
    ]


def _log_loss(channel: Array, design: Array, holdout: Array, log: float) -> tuple[float, float]:
    """Return the bound that the design promises, and that of the holdout."""
    size, designed = holdout.sum(), mutual_information(design @ channel, units="nats")
    rate = np.repeat(_LAMBDAS, len(_STEPS))
    c = rate ** (2.0 - np.tile(_STEPS, len(_LAMBDAS)))
    best: tuple[float, Any] = (math.inf, None)
    for reference in _references(channel, design):
        law = _smoothed(reference.marginal(design))
        fit = (len(reference.law) - 1) * (1 / size + 1 / design.sum()) / 2
        expected = np.empty(len(rate))
        for i in range(0, len(rate), step := max(1, (1 << 20) // len(law))):
            part = slice(i, i + step)
            mean = reference.above(rate[part, None], c[part, None]) @ law
            values = _solved(rate[part], c[part], designed + fit, mean + log / size)
            expected[part] = np.where(np.isfinite(mean), values, np.inf)  # a law without zeros
        least = int(expected.argmin())
        if best[1] is None or expected[least] < best[0]:
            best = float(expected[least]), (reference, rate[least], c[least])
    promised, (reference, rate, c) = best
    counts = reference.marginal(holdout)
    on = counts > 0
    mean = reference.above(rate, c)[on] @ counts[on] / size
    measured = mutual_information(holdout @ channel, units="nats") + reference.excess(holdout)
    return promised, float(_solved(rate, c, measured, mean + log / size))


def _solved(rate: Any, c: Any, information: float, more: Any) -> Any:
    """Return (1 − e^{−s})/(λ − c)."""
    return -np.expm1(-(rate * information + more)) / (rate - c)


# ---- bounded differences -----------------------------------------------------------------


def _bounded(channel: Array, counts: Array, log: float) -> float:
    size, m = float(counts.sum()), min(*counts.shape, channel.shape[1])
    moved = 2 * entropy([1.0, size - 1.0], units="nats") if size > 1 else 0.0
    plugin = mutual_information(counts @ channel, units="nats")
    return plugin + math.log1p((m - 1) / size) + moved * math.sqrt(size * log / 2)


# ---- cell by cell ------------------------------------------------------------------------


def _cell_by_cell(channel: Array, counts: Array, level: float) -> float:
    low, high = _box(counts, level)
    least, most = low @ channel, np.minimum(high @ channel, 1.0)
    width = np.maximum(most - least, 1e-300)
    slopes = (_xlogx(most) - _xlogx(least)) / width
    constant = float((_xlogx(least) - slopes * least).sum())
    law = _smoothed(counts)
    r, s = law.sum(axis=1), np.maximum(law.sum(axis=0) @ channel, 1e-300)
    each = (slopes - np.log(s)) @ channel.T - np.log(r)[:, None]
    order = np.argsort(-each, axis=None)
    room = (high - low).ravel()[order]
    free = max(0.0, 1.0 - float(low.sum()))
    filled = np.clip(free - (np.cumsum(room) - room), 0.0, room)
    return constant + float((each * low).sum() + each.ravel()[order] @ filled)


def _box(counts: Array, level: float) -> tuple[Array, Array]:
    """Return the intervals of all cells, which hold together."""
    from scipy.stats import beta

    size, tail = counts.sum(), (1 - level) / counts.size / 2
    low = np.where(counts > 0, beta.ppf(tail, np.maximum(counts, 1e-9), size - counts + 1), 0.0)
    others = np.maximum(size - counts, 1e-9)
    return low, np.where(counts < size, beta.isf(tail, counts + 1, others), 1.0)


def _xlogx(values: Array) -> Array:
    product: Array = values * np.log(np.maximum(values, 1e-300))
    return product
