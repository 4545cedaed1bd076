"""Random programs at the ends of their curves: prices and ends against another solver.

Bounds are 1e-15 … 1e-3 of their range from an end, or at it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import leakage
from tests.instances import law, span
from tests.lengths import some_at_length
from tests.results.many_digits import Reference, UnfitError, slope

Chance = np.random.Generator
EACH = 20


def next_to_nothing(rng: Chance) -> float:
    return float(rng.choice([0.0, 10 ** rng.uniform(-15, -3)], p=[0.1, 0.9]))


def source(rng: Chance) -> Any:
    joint = law(rng, int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    if rng.random() < 0.15:  # a rare letter
        joint = joint * np.where(np.arange(joint.shape[1]) == 0, 10 ** rng.uniform(-14, -2), 1)
    return cpv.DiscreteSource(joint / joint.sum())


def budgeted(rng: Chance, **options: Any) -> Any:
    value = source(rng)
    d = cpv.hamming(len(value.x))
    low, high = span(value, d)
    off = next_to_nothing(rng) * (high - low)
    budget = low + off if rng.random() < 0.7 else high - off
    return cpv.PrivacyDistortion(
        value, d, budget, units=str(rng.choice(["bits", "nats"])), **options
    )


def rare(rng: Chance) -> Any:
    masses = 10 ** rng.uniform(-15, -1, int(rng.integers(2, 4)))
    masses[0] = 1 - masses[1:].sum()
    value = cpv.DiscreteSource.identical(masses / masses.sum())
    budget = float(rng.uniform(0.05, 0.95)) * float(masses[1:].sum())
    return cpv.PrivacyDistortion(value, cpv.hamming(len(masses)), budget)


def ruled(make: Callable[[float], Any]) -> Callable[[Chance], Any]:
    def problem(rng: Chance) -> Any:
        value, rule = source(rng), make(next_to_nothing(rng))
        return cpv.MinimumDistortion(value, cpv.hamming(len(value.x)), [rule])

    return problem


def weighed(rng: Chance) -> Any:
    value = source(rng)
    price = 10 ** rng.uniform(-15, 15)
    return cpv.PrivacyDistortion(value, cpv.hamming(len(value.x)), price=float(price))


KINDS: dict[str, Callable[[Chance], Any]] = {
    "budget": budgeted,
    "W seen": lambda rng: budgeted(rng, encoder="wx"),
    "χ²": lambda rng: budgeted(rng, leakage=leakage.ChiSquared()),
    "Hellinger": lambda rng: budgeted(rng, leakage=leakage.SquaredHellinger()),
    "total variation": lambda rng: budgeted(rng, leakage=leakage.TotalVariation()),
    "guesses": lambda rng: budgeted(rng, leakage=leakage.GuessingProbability()),
    "any prior": lambda rng: budgeted(rng, prior="any"),
    "rare letters": rare,
    "price": weighed,
    "cap": ruled(cpv.LeakageCap),
    "cap of χ²": ruled(lambda b: cpv.LeakageCap(b, leakage=leakage.ChiSquared())),
    "each letter": ruled(lambda b: cpv.PerLetter(leakage.SquaredHellinger(), b)),
    "t-closeness": ruled(cpv.TCloseness),
    "equal distances": ruled(lambda t: cpv.TCloseness(t, "tv")),
    "earth mover": ruled(lambda t: cpv.TCloseness(t, "emd")),
    "delta": ruled(cpv.DeltaDisclosure),
    "pointwise": ruled(cpv.PointwiseMaximalLeakage),
    "local": ruled(cpv.LocalPrivacy),
    "approximate": ruled(lambda b: cpv.LocalPrivacy(0, **({"delta": b} if b else {}))),
    "maximal": ruled(cpv.MaximalLeakage),
    "floor": ruled(cpv.KeepProbability),
    "marginal": ruled(cpv.MarginalDistance),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is infeasible, or loose
@pytest.mark.parametrize(
    ("kind", "seed"),
    some_at_length([(kind, seed) for seed in range(EACH) for kind in KINDS], 6, 120),
)
def test_ends_and_prices_next_to_an_end(kind, seed):
    problem = KINDS[kind](np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        solution = problem.solve(certify="warn")
        if solution.status == "infeasible":  # where a budget is rounded down from the least
            return
        prices = dict(solution.prices)
    assert solution.lower >= 0
    program = problem.program
    for y in range(program.m):
        constant = np.tile(np.eye(program.m)[y], (program.n, 1))
        if not program.centred and program.violation(constant) <= 0:
            rounding = 1e-15 * max(
                map(sum, map(program.sizes, program.objectives.values())), default=0
            )
            assert solution.upper <= program.attained(constant) * (1 + 1e-15) + rounding
    try:
        reference = Reference(program)
        reference.solve()
    except UnfitError:  # of other measures, or at the end itself
        return
    truth = float(reference.value)
    room = 1e-11 * abs(truth) + 1e-15
    assert solution.lower - room <= truth <= solution.upper + room
    for name, price in prices.items():
        if price.kind == "one-sided":
            continue
        rule = next(iter(getattr(problem, "criteria", ())), None)
        typed = getattr(problem, name, None) if rule is None else rule.value
        exact = slope(problem, name, typed, reference)
        if price.kind != "not proved":
            digits = 1e-9 * abs(exact) + 1e-12
            assert price.lower - digits <= exact <= price.upper + digits
        if price.kind in ("two-sided", "not proved"):
            zero = 1e-6 if price.kind == "not proved" or price.lower <= 0 <= price.upper else 0.0
            assert float(price) == pytest.approx(exact, rel=0.0101, abs=zero)
