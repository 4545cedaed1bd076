"""The truth of Hamming water-filling, by its definition: every K in rationals, 400-bit logs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb, fmpq

PMF = (0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02)


KNOWN = {0.05: 1.2730369840, 0.1: 1.0568812805, 0.2: 0.7066760108, 0.3: 0.4366338891,
         0.4: 0.2306454879, 0.5: 0.0819482950}  # fmt: skip


def rationals(masses) -> list[Fraction]:
    """Return the law, largest first, zeros left out."""
    exact = sorted((Fraction(m) for m in np.asarray(masses, float).tolist() if m), reverse=True)
    total = sum(exact)
    return [m / total for m in exact]


def level_of(masses, budget: Fraction) -> Fraction:
    """Return λ by trying every number of letters that might be kept."""
    p = rationals(masses)
    if budget >= 1 - p[0]:
        return p[0]
    for k in range(2, len(p) + 1):
        level = (budget - sum(p[k:])) / (k - 1)
        if level < p[k - 1] and (k == len(p) or p[k] <= level):
            return level
    raise AssertionError("no number of letters fits")


def poured(masses, level: Fraction) -> Fraction:
    """D(λ) = Σ min(p, λ) − λ."""
    return sum(min(p, level) for p in rationals(masses)) - level


def ball(value: Fraction) -> arb:
    return arb(fmpq(*value.as_integer_ratio()))


def part(value: Fraction) -> arb:
    return ball(value) * ball(value).log() if value else arb(0)


def truth(masses, budget) -> arb:
    """R(D) in nats, to 400 bits (call it with ``ctx.workprec(400)``)."""
    budget = Fraction(budget)
    level = level_of(masses, budget)
    p = rationals(masses)
    if level == p[0]:
        return arb(0)
    kept = [q for q in p if q > level]
    inside = sum((-part(q) for q in kept), arb(0))
    return inside + part(1 - budget) + (len(kept) - 1) * part(level)


def contains(enclosure, value: arb) -> bool:
    """Tell whether a value is inside, or 400 bits do not tell it from an end."""
    ends = arb(enclosure.lower), arb(enclosure.upper)
    return not ends[0] > value and not value > ends[1] and float(value.rad()) < 1e-100


def random_pmf(rng: np.random.Generator, letters: int) -> np.ndarray:
    """Return a law with ties, zeros or tiny letters now and then."""
    p = rng.dirichlet(np.full(letters, rng.choice([0.3, 1.0, 5.0])))
    kind = rng.integers(5)
    if kind == 0 and letters > 2:
        p[rng.integers(letters)] = p[rng.integers(letters)]
    if kind == 1 and letters > 2:
        p[rng.integers(letters)] = 0.0
    if kind == 2:
        p = rng.integers(1, 4, letters).astype(float)
    if kind == 3:
        p[rng.integers(letters)] = 10.0 ** rng.uniform(-12, -4)
    return p / p.sum()


def random_budget(rng: np.random.Generator, p: np.ndarray) -> float:
    """Return a D from the whole range, its ends and its kinks included."""
    most = 1 - p.max()
    kink = float(poured(p, Fraction(float(rng.choice(p[p > 0]))) / sum(map(Fraction, p.tolist()))))
    ends = [0.0, most, min(1.0, 1.05 * most), kink, 1e-6 * most, (1 - 1e-6) * most]
    return float(rng.choice(ends)) if rng.random() < 0.3 else rng.uniform(0, most)
