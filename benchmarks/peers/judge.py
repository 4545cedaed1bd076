"""Who is right, by the definitions: in fractions, and in balls where there are logarithms.

Nothing here comes from the package or from a peer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from .cases import Law, Rows, composed

Counts = Mapping[int, int]


def ball(value: Fraction) -> arb:
    """Return a fraction as a ball."""
    return arb(value.numerator) / value.denominator


def power(base: Fraction, exponent: Fraction) -> arb:
    """Return base ** exponent, 0 ** 0 being 1."""
    if base:
        return (ball(exponent) * ball(base).log()).exp()
    return arb(0) if exponent else arb(1)


def log2(value: arb) -> arb:
    """Return a logarithm in bits."""
    return value.log() / arb(2).log()


def entropy(p: Law) -> float:
    """Return H in bits."""
    return float(-sum((ball(x) * log2(ball(x)) for x in p if x), arb(0)))


def output(prior: Law, rows: Rows) -> Law:
    """Return the law of the outputs."""
    return composed([prior], rows)[0]


def information(prior: Law, rows: Rows) -> float:
    """Return I(X; Y) in bits."""
    q = output(prior, rows)
    return float(
        sum((ball(p) * divergence(row, q) for p, row in zip(prior, rows, strict=True)), arb(0))
    )


def divergence(p: Law, q: Law) -> arb:
    """Return D(p ‖ q) in bits, of a p that q dominates."""
    return sum((ball(a) * log2(ball(a / b)) for a, b in zip(p, q, strict=True) if a), arb(0))


def renyi(p: Law, q: Law, order: Fraction) -> float:
    """Return Rényi's divergence in bits, infinite where it is."""
    terms = [(a, b) for a, b in zip(p, q, strict=True) if a]
    if order >= 1 and any(not b for _, b in terms):
        return math.inf
    if order == 1:
        return float(divergence(p, q))
    total = sum((power(a, order) * power(b, 1 - order) for a, b in terms if b), arb(0))
    return float(log2(total) / ball(order - 1)) if any(b for _, b in terms) else math.inf


def sibson(prior: Law, rows: Rows, order: Fraction) -> float:
    """Return Sibson's information in bits."""
    total = arb(0)
    for column in zip(*rows, strict=True):
        inner = sum((ball(p) * power(v, order) for p, v in zip(prior, column, strict=True)), arb(0))
        total += (inner.log() / ball(order)).exp()
    return float(log2(total) * ball(order / (order - 1)))


def best_guess(gain: Rows, prior: Law, rows: Rows) -> Fraction:
    """Return Σ_y max_g Σ_x G(g, x) π(x) V(y | x)."""
    joint = [[p * v for v in row] for p, row in zip(prior, rows, strict=True)]
    gained = [
        [sum((g * j for g, j in zip(gains, column, strict=True)), Fraction(0)) for gains in gain]
        for column in zip(*joint, strict=True)
    ]
    return sum((max(column) for column in gained), Fraction(0))


def identity(size: int) -> Rows:
    """Return the gain of a right guess."""
    return [[Fraction(i == j) for j in range(size)] for i in range(size)]


def capacity(rows: Rows, priors: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Enclose a capacity: I(π) ≤ C ≤ max_x D(V_x ‖ r), of the best of some π and of their r."""
    lower, upper = 0.0, math.inf
    for numbers in priors:
        masses = [Fraction(max(float(x), 0.0)) for x in numbers]
        prior = [x / sum(masses) for x in masses]
        r = output(prior, rows)
        lower = max(lower, information(prior, rows))
        if all(all(b or not a for a, b in zip(row, r, strict=True)) for row in rows):
            upper = min(upper, max(float(divergence(row, r)) for row in rows))
    return lower, upper


BY_PROOF = "garbling or gain, in fractions"
ANSWER = {True: 1.0, False: 0.0, None: math.nan}


def order(a: Rows, b: Rows, garbling: Any, prior: Any, gain: Any) -> float:
    """Return 1 if A is at most as telling as B, 0 if not: by a garbling, or by what separates them.

    Without a prior and a gain it is the distance of two rows, which no garbling makes greater.
    """
    if composed(b, garbling.tolist()) == a:
        return 1.0
    if prior is not None and separation(a, b, prior, gain) > 0:
        return 0.0
    places = [(i, j) for i in range(len(a)) for j in range(i)]
    assert any(apart(a[i], a[j]) > apart(b[i], b[j]) for i, j in places), "nothing decides"
    return 0.0


def apart(p: Law, q: Law) -> Fraction:
    """Return the total variation of two laws."""
    return sum((abs(x - y) for x, y in zip(p, q, strict=True)), Fraction(0)) / 2


def separation(a: Rows, b: Rows, prior: Any, gain: Any) -> Fraction:
    """Return by how much the best guess gains more of A than of B."""
    asked, believed = gain.tolist(), prior.tolist()
    return best_guess(asked, believed, a) - best_guess(asked, believed, b)


def deficiency(a: Rows, b: Rows, garbling: Any, prior: Any, gain: Any) -> tuple[float, float]:
    """Enclose Le Cam's deficiency: of any garbling from above, of any prior and gain from below."""
    near = composed(b, garbling.tolist())
    far = [[abs(x - y) for x, y in zip(*two, strict=True)] for two in zip(a, near, strict=True)]
    lower = Fraction(0) if prior is None else separation(a, b, prior, gain)
    return float(lower), float(max(map(sum, far)) / 2)


# ---- tables --------------------------------------------------------------------------------


def gains(of: Counts, whole: Counts) -> list[tuple[Fraction, Fraction]]:
    """Return p(w) and (p(w | class) − p(w)) / p(w) of each value of W."""
    size, records = sum(of.values()), sum(whole.values())
    return [
        (Fraction(n, records), Fraction(of.get(w, 0) * records, size * n) - 1)
        for w, n in whole.items()
    ]


def basic_beta(classes: Sequence[Counts], whole: Counts) -> Fraction:
    """Return the least β of Cao and Karras 2012, §3."""
    return max(gain for of in classes for _, gain in gains(of, whole))


def enhanced_beta(classes: Sequence[Counts], whole: Counts) -> float:
    """Return the least β with gain ≤ min(β, −ln p(w)) for each w; infinite where no β is enough."""
    every = [pair for of in classes for pair in gains(of, whole)]
    if any(ball(gain) > -ball(p).log() for p, gain in every if gain > 0):
        return math.inf
    return float(max(gain for _, gain in every))


def delta(classes: Sequence[Counts], whole: Counts, *, missed: bool) -> float:
    """Return max abs(ln p(w | class) / p(w)): of the values that occur, or infinite for others."""
    every = [1 + gain for of in classes for _, gain in gains(of, whole)]
    if missed and not all(every):
        return math.inf
    return max(abs(float(ball(ratio).log())) for ratio in every if ratio)


def closeness(classes: Sequence[Counts], whole: Counts, *, ordered: bool) -> Fraction:
    """Return the greatest earth mover's distance, of values in a row or all equally far."""
    worst = Fraction(0)
    for of in classes:
        moved = [p * gain for p, gain in gains(of, whole)]
        if ordered:
            sums = [sum(moved[: i + 1]) for i in range(len(moved))]
            worst = max(worst, sum(map(abs, sums), Fraction(0)) / (len(moved) - 1))
        else:
            worst = max(worst, sum(map(abs, moved), Fraction(0)) / 2)
    return worst


def diverse(of: Counts, l: Fraction) -> bool:  # noqa: E741
    """Return whether H(W | class) ≥ log ℓ: Nᴺ ≥ ℓᴺ ∏ nⁿ, without a logarithm."""
    size = sum(of.values())
    return size**size >= l**size * math.prod(n**n for n in of.values())


def entropy_diversity(classes: Sequence[Counts]) -> int:
    """Return the greatest whole ℓ of entropy ℓ-diversity."""
    most = min(len(of) for of in classes)
    return max(l for l in range(1, most + 1) if all(diverse(of, Fraction(l)) for of in classes))  # noqa: E741


def recursive_c(classes: Sequence[Counts], l: int) -> int:  # noqa: E741
    """Return the least whole c with r₁ < c (r_ℓ + … + r_m) in each class."""
    sorted_counts = [sorted(of.values(), reverse=True) for of in classes]
    return max(r[0] // sum(r[l - 1 :]) + 1 for r in sorted_counts)
