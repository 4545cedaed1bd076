"""Capacities: closed forms, what Arimoto and Blahut find, and channels that are hardly any."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from scipy import optimize

import cvxprivacy as cpv
from cvxprivacy.model import capacity as proposed
from tests.lengths import rest_at_length, seeds, some_at_length

LOG2 = math.log(2)


def h(*law):
    return -sum(p * math.log(p) for p in law if p > 0)


def z_channel(a):
    return math.log1p((1 - a) * a ** (a / (1 - a)))


def additive(*noise):
    return np.array([np.roll(noise, shift) for shift in range(len(noise))])


CLOSED = {
    **{f"symmetric {a}": ([[1 - a, a], [a, 1 - a]], LOG2 - h(a, 1 - a)) for a in (0.25, 0.03125)},
    **{f"erasure {a}": ([[1 - a, a, 0], [0, a, 1 - a]], (1 - a) * LOG2) for a in (0.25, 0.875)},
    **{f"z {a}": ([[1, 0], [a, 1 - a]], z_channel(a)) for a in (0.0625, 0.5, 0.96875)},
    "additive": (additive(0.5, 0.25, 0.125, 0.125), math.log(4) - h(0.5, 0.25, 0.125, 0.125)),
    "typewriter": (additive(0.5, 0.5, 0.0, 0.0, 0.0, 0.0), math.log(3)),
    "told": (np.eye(5), math.log(5)),
    "told by classes": (np.repeat(np.eye(3), 4, axis=0), math.log(3)),
    "of nothing": ([[0.25, 0.75]] * 3, 0.0),
    "of one input": ([[0.25, 0.5, 0.25]], 0.0),
    "of one output": ([[1.0]] * 4, 0.0),
    "an output of no one": ([[1, 0, 0], [0, 0, 1]], LOG2),
    "an input beside": (np.vstack([np.eye(2), [0.5, 0.5]]), LOG2),
    "told, with a value twice": ([*np.eye(3), [0, 0, 1]], math.log(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_enclosed(name):
    rows, truth = CLOSED[name]
    for units, unit in (("nats", 1.0), ("bits", LOG2)):
        answer = cpv.capacity(rows, units=units)
        assert answer.value.lower - 1e-15 <= truth / unit <= answer.value.upper + 1e-15
        assert answer.value.upper - answer.value.lower < 1e-11
        assert float(answer) == pytest.approx(truth / unit, abs=1e-11)
        assert sum(answer.prior.values()) == pytest.approx(1)
        assert sum(answer.output_law.values()) == pytest.approx(1)
        assert answer.price == 0


def test_fields_say_who_learns_most():
    answer = cpv.capacity([[1, 0], [0.5, 0.5]], units="nats")
    assert answer.prior == pytest.approx({0: 0.6, 1: 0.4})
    assert answer.output_law == pytest.approx({0: 0.8, 1: 0.2}, abs=1e-9)
    assert repr(answer).startswith("Capacity(")
    assert answer.units == "nats"


def iterated(rows, steps):
    """Return both ends of Arimoto and Blahut in nats, and the prior."""
    prior = np.full(len(rows), 1 / len(rows))
    for _ in range(steps):
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(rows > 0, rows * np.log(rows / (prior @ rows)), 0.0).sum(axis=1)
        low, high = float(np.log(prior @ np.exp(far))), float(far.max())
        if high - low < 1e-12:
            break
        prior = prior * np.exp(far - high)
        prior /= prior.sum()
    return low, high, prior


def drawn(seed):
    """Return rows of floats: dense, sparse, nearly alike, or more inputs than outputs."""
    rng = np.random.default_rng([15, seed])
    n, m = (int(k) for k in rng.integers(2, 9, 2))
    n = n + 12 * (seed % 5 == 0)
    rows = rng.dirichlet(np.full(m, 10 ** rng.uniform(-1.2, 0.8)), n)
    if seed % 4 == 1:
        rows = np.where(rng.random((n, m)) < 0.4, 0.0, rows) + np.eye(n, m)
        rows[:, 0] += 1e-3 * (rows.sum(axis=1) == 0)
    if seed % 4 == 2:
        rows = rows[:1] + 10 ** rng.uniform(-7, -2) * rows
    if seed % 4 == 3:
        rows = np.vstack([rows, rows[: n // 2]])
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", seeds(80, 12))
def test_it_is_what_arimoto_and_blahut_converge_to(seed):
    rows = drawn(seed)
    low, high, _ = iterated(rows, 3000)
    answer = cpv.capacity(rows, units="nats").value
    assert answer.lower <= high + 1e-14
    assert low <= answer.upper + 1e-14
    assert answer.upper - answer.lower < 1e-9


@pytest.mark.parametrize("seed", seeds(60, 6))
def test_no_prior_learns_more_than_the_upper_end(seed):
    rows = drawn(seed)
    answer = cpv.capacity(rows, units="nats")
    rng = np.random.default_rng(seed)
    best = np.array(list(answer.prior.values()))
    for size in (0.01, 0.1, 1, 10):
        for prior in rng.dirichlet(np.full(len(rows), size), 5):
            for share in (1.0, 0.1, 1e-3):
                joint = ((1 - share) * best + share * np.maximum(prior, 1e-100))[:, None] * rows
                value = cpv.information.mutual_information(joint, units="nats")
                assert value <= answer.value.upper + 1e-14
    joint = best[:, None] * rows
    value = cpv.information.mutual_information(joint, units="nats")
    assert value == pytest.approx(answer.value.lower, abs=1e-12)


HARD = {
    "a prior that underflows": np.block([
        [np.eye(101), np.zeros((101, 1))],
        [np.full((1, 101), (1 - 2.0**-40) / 101), np.full((1, 1), 2.0**-40)],
    ]),
    "masses near the least float": np.array([[1, 5e-324], [1, 0]]),
    "masses of many sizes": np.array([[1, 1e-300, 1e-12], [1e-300, 1, 1e-12], [1e-12, 1e-12, 1]]),
    "rows that differ by an ulp": np.array([[0.5, 0.5], [0.5 + 2.0**-53, 0.5 - 2.0**-53]]),
    "a rare difference": np.array([[1, 1e-12, 0], [1, 0, 1e-12]]),
    "all but one alike": np.vstack([[[0.5, 0.5]] * 30, [[0.5 + 1e-9, 0.5 - 1e-9]]]),
    "a hundred inputs of two outputs": np.column_stack([np.linspace(0, 1, 101)] * 2)
    * [1, -1] + [0, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_channels_that_are_hard_to_iterate_are_enclosed(name):
    rows = HARD[name] / HARD[name].sum(axis=1, keepdims=True)
    answer = cpv.capacity(rows, units="nats").value
    low, high, _ = iterated(np.where(rows > 1e-290, rows, 0.0), 200)
    assert answer.lower <= high + 1e-14
    assert low <= answer.upper + 1e-14
    assert answer.upper - answer.lower < 1e-10


def with_cost(cost, limit, a=0.1):
    """Return the capacity in nats of a binary symmetric channel whose second input costs 1."""
    p = min(limit / cost, 0.5)
    q = p * (1 - a) + (1 - p) * a
    return h(q, 1 - q) - h(a, 1 - a)


@pytest.mark.parametrize("size", rest_at_length([1e-9, 1e9, 3.7], 2))
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.05, 0.2, 0.5, 0.9])
def test_an_input_that_costs_is_used_as_often_as_is_allowed(size, share):
    rows, limit = [[0.9, 0.1], [0.1, 0.9]], size * share
    answer = cpv.capacity(rows, cost=[0, size], at_most=limit, units="nats")
    truth = with_cost(size, limit)
    assert answer.value.lower - 1e-15 <= truth <= answer.value.upper + 1e-15
    assert answer.value.upper - answer.value.lower < 1e-9
    assert answer.prior[1] * size <= limit * (1 + 1e-12)
    if 1e-6 < share < 0.5:  # the slope of a closed form
        step = 1e-6 * limit
        slope = (with_cost(size, limit + step) - with_cost(size, limit - step)) / (2 * step)
        assert answer.price == pytest.approx(slope, rel=1e-4)
    elif share > 0.5:
        assert answer.price == 0
    bits = cpv.capacity(rows, cost=[0, size], at_most=limit)
    assert bits.price == pytest.approx(answer.price / LOG2)
    shifted = cpv.capacity(rows, cost=[-7 * size, -6 * size], at_most=limit - 7 * size)
    assert float(shifted) == pytest.approx(float(bits), abs=1e-6)


@pytest.mark.parametrize("seed", some_at_length([121, *range(60)], 6))
def test_of_random_channels_with_a_cost_no_prior_that_keeps_it_learns_more(seed):
    rows, rng = drawn(seed), np.random.default_rng([3, seed])
    cost = rng.normal(size=len(rows)) * 10.0 ** rng.integers(-6, 6)
    limit = float(cost.min() + rng.uniform(0, 0.6) * np.ptp(cost))
    answer = cpv.capacity(rows, cost=cost, at_most=limit, units="nats")
    assert answer.value.upper - answer.value.lower < 1e-6
    assert answer.value.lower <= cpv.capacity(rows, units="nats").value.upper
    least = np.eye(len(rows))[int(cost.argmin())]
    best = np.array(list(answer.prior.values()))
    for prior in rng.dirichlet(np.full(len(rows), 0.3), 20):
        over = max(0.0, float(cost @ prior) - limit)
        share = over / (over + limit - float(cost.min()) + 1e-300)
        kept = (1 - share) * prior + share * least
        for other in (kept, 0.9 * best + 0.1 * kept, 0.999 * best + 0.001 * kept):
            value = cpv.information.mutual_information(other[:, None] * rows, units="nats")
            assert value <= answer.value.upper + 1e-12


def test_of_several_inputs_that_cost_least_nothing_is_lost():
    rows = [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]
    answer = cpv.capacity(rows, cost=[1, 1, 2], at_most=1, units="nats")
    assert answer.value.upper - answer.value.lower < 1e-9
    assert float(answer) == pytest.approx(LOG2 - h(0.1, 0.9))


def test_a_price_that_a_solver_has_below_zero_proves_nothing(monkeypatch):
    """The upper end is one for λ ≥ 0 alone."""

    class Answer:
        x = (-0.5, 0.0)

    monkeypatch.setattr(optimize, "linprog", lambda *_, **__: Answer)
    answer = cpv.capacity([[0.9, 0.1], [0.1, 0.9]], cost=[0, 1], at_most=0.3, units="nats")
    assert answer.value.upper >= with_cost(1, 0.3)
    assert answer.price == 0


def test_whatever_is_proposed_both_ends_hold(monkeypatch):
    rng = np.random.default_rng(8)
    rows, truth = [[1, 0], [0.5, 0.5]], z_channel(0.5)
    for _ in range(20):
        wrong = rng.dirichlet(np.full(2, 0.3))
        monkeypatch.setattr(proposed, "best_prior", lambda *_, p=wrong: (p, 0.0))
        answer = cpv.capacity(rows, units="nats").value
        assert answer.lower <= truth <= answer.upper


def test_ends_hold_whatever_the_precision_of_others():
    before = flint.ctx.prec
    try:
        for precision in (2, 20, 53, 300):
            flint.ctx.prec = precision
            answer = cpv.capacity([[1, 0], [0.5, 0.5]], units="nats").value
            assert answer.lower <= z_channel(0.5) + 1e-16
            assert answer.upper >= z_channel(0.5) - 1e-16
            assert flint.ctx.prec == precision
    finally:
        flint.ctx.prec = before


def test_of_a_release_it_is_what_is_told_about_w():
    source = cpv.DiscreteSource([[0.04, 0.01, 0], [0.3, 0.6, 0.05], [0, 0, 0]], w=["a", "b", "c"])
    channel = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.2).solve().channel
    law = np.array([[0.8, 0.2, 0], [0.3 / 0.95, 0.6 / 0.95, 0.05 / 0.95]])
    ours = cpv.capacity(channel, source, units="nats")
    assert list(ours.prior) == ["a", "b"]  # c has no mass
    low, high, _ = iterated(law @ channel.matrix, 5000)
    assert low - 1e-9 <= float(ours) <= high + 1e-9
    assert float(cpv.capacity(channel.matrix, source, units="nats")) == pytest.approx(float(ours))
    assert ours.value.lower >= cpv.information.mutual_information(
        source.pmf @ channel.matrix, units="nats"
    )
    with_x = cpv.capacity(channel, units="nats")  # what is told of x is no less
    assert float(with_x) >= float(ours)


def test_costs_are_of_values_of_w_where_there_is_a_source():
    source = cpv.DiscreteSource([[0.25, 0.25], [0.0, 0.5]])
    answer = cpv.capacity(np.eye(2), source, cost=[0, 1], at_most=0.1, units="nats")
    prior, rows = np.array([0.9, 0.1]), np.array([[0.5, 0.5], [0, 1]])
    informed = cpv.information.mutual_information(prior[:, None] * rows, units="nats")
    assert float(answer) == pytest.approx(informed, abs=1e-12)


@pytest.mark.parametrize(
    ("channel", "options", "argument"),
    [
        ([[0.5, -0.5]], {}, "channel"),
        ([0.5, 0.5], {}, "channel"),
        ([[math.nan, 1.0]], {}, "channel"),
        ([[math.inf, 1.0]], {}, "channel"),
        ([["a", "b"]], {}, "channel"),
        ([[1, 0], [0, 0]], {}, "channel"),
        ([[2, 0], [7, 7]], {}, "channel"),  # counts
        (np.array([[1, 0.5], [0, 0.5]]), {}, "channel"),  # its columns sum to 1
        ([[]], {}, "channel"),
        (np.eye(2), {"cost": [0, 1]}, "at_most"),
        (np.eye(2), {"at_most": 1}, "cost"),
        (np.eye(2), {"cost": [0], "at_most": 1}, "cost"),
        (np.eye(2), {"cost": [0, math.nan], "at_most": 1}, "cost"),
        (np.eye(2), {"cost": [0, 1], "at_most": "a"}, "at_most"),
        (np.eye(2), {"cost": [1, 2], "at_most": 0.5}, "at_most"),
        (np.eye(2), {"cost": [1, 2], "at_most": math.nan}, "at_most"),
        (np.eye(2), {"units": "digits"}, "units"),
        (np.eye(2), {"source": [[0.5, 0.5]]}, "source"),
        (np.eye(2), {"source": cpv.DiscreteSource(np.ones((2, 3)) / 6)}, "channel"),
        (np.eye(3), {"source": cpv.DiscreteSource(np.ones((2, 2)) / 4)}, "channel"),
        (np.eye(2), {"source": cpv.DiscreteSource(np.ones((2, 2, 2)) / 8)}, "source"),
    ],
)
def test_what_is_no_channel_is_refused(channel, options, argument):
    with pytest.raises(cpv.InputError) as refused:
        cpv.capacity(channel, **options)
    assert refused.value.argument == argument


def test_a_release_of_more_than_x_is_refused():
    source = cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, encoder="wx")
    with pytest.raises(cpv.InputError, match="reads W"):
        cpv.capacity(problem.solve().channel, source)


def test_fractions_are_exact():
    third = Fraction(1, 3)
    rows = [[third, 1 - third], [1 - third, third]]
    answer = cpv.capacity(rows, units="nats").value
    assert answer.lower <= LOG2 - h(1 / 3, 2 / 3) + 1e-15
    assert answer.upper >= LOG2 - h(1 / 3, 2 / 3) - 1e-15
    # of floats there is none that costs ⅓
    dear = [third, third, 1]
    alone = cpv.capacity(np.eye(3), cost=dear, at_most=third, units="nats")
    assert float(alone) == pytest.approx(LOG2)
    with pytest.raises(cpv.InputError, match="below every cost"):
        cpv.capacity(np.eye(3), cost=dear, at_most=1 / 3)
