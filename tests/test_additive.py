"""Sums of small tables are the tables that they stand for, to the last number."""

from __future__ import annotations

import copy
import itertools
import pickle
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import additive, exact
from cvxprivacy.additive import AdditiveCost, Part
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.extremes import least_value


def summed(cost: AdditiveCost) -> list[list[Fraction]]:
    """Return the sums entry by entry."""
    rows, columns = cost.shape
    return [
        [
            sum((Fraction(p.table[p.rows[s], p.columns[y]]) for p in cost.parts), Fraction(0))
            for y in range(columns)
        ]
        for s in range(rows)
    ]


def made(seed: int, rows: int = 6, columns: int = 5) -> AdditiveCost:
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        shape = rng.integers(1, 5, 2)
        kind = seed % 3
        entries: Any = rng.random(shape) if kind == 0 else rng.integers(-4, 9, shape).astype(float)
        if kind == 2:
            entries = exact.times(entries, Fraction(1, int(rng.choice([3, 7, 30]))))
        at, to = rng.integers(shape[0], size=rows), rng.integers(shape[1], size=columns)
        parts.append(Part(exact.array(entries), at, to))
    return AdditiveCost(tuple(parts))


@pytest.mark.parametrize("seed", range(30))
def test_sums_are_exact_and_floats_are_the_nearest(seed: int) -> None:
    cost = made(seed)
    expected = summed(cost)
    table = additive.dense(cost)
    assert table.shape == cost.shape == (6, 5)
    assert [[Fraction(v) for v in row] for row in table.tolist()] == expected
    assert additive.floats(cost).tolist() == [[float(v) for v in row] for row in expected]
    assert np.asarray(cost).tolist() == additive.floats(cost).tolist()
    assert cost.largest == max(abs(v) for row in expected for v in row)
    assert cost.any() or not any(itertools.chain(*expected))
    with pytest.raises(ValueError, match="read-only"):
        additive.floats(cost)[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        cost.parts[0].rows[0] = 1


@pytest.mark.parametrize("seed", range(10))
def test_products_and_sums_are_exact(seed: int) -> None:
    one, other = made(seed), made(seed + 3)
    third = additive.times(one, Fraction(1, 3))
    assert isinstance(third, AdditiveCost)
    assert summed(third) == [[v / 3 for v in row] for row in summed(one)]
    both = additive.plus(one, other)
    assert isinstance(both, AdditiveCost)
    pairs = zip(summed(one), summed(other), strict=True)
    expected = [[a + b for a, b in zip(*rows, strict=True)] for rows in pairs]
    assert summed(both) == expected
    table = additive.plus(additive.dense(one), other)
    assert [[Fraction(v) for v in row] for row in np.asarray(table, object).tolist()] == expected
    double = additive.plus(one, additive.times(one, -1))
    assert isinstance(double, AdditiveCost)
    assert len(double.parts) == len(one.parts)  # tables of the same places are added
    assert not double.any()
    order = [3, 0, 0]
    some = additive.of_letters(one, order)
    assert additive.floats(some).tolist() == additive.floats(one)[order].tolist()


def test_values_travel() -> None:
    cost = made(2)
    for other in (pickle.loads(pickle.dumps(cost)), copy.deepcopy(cost)):
        assert summed(other) == summed(cost)


def test_a_distortion_per_attribute_is_what_it_was() -> None:
    cells = [(a, b) for a in range(4) for b in ("u", "v")]
    weights = {"a": 0.1, "b": Fraction(1, 7)}
    measures = {"a": cpv.ordinal(4), "b": cpv.hamming(["u", "v"])}
    d = cpv.per_attribute(measures, cells, weights=weights) * 0.3
    index = {"a": [a for a, _ in cells], "b": ["uv".index(b) for _, b in cells]}
    full = {k: measures[k].exact[np.ix_(i, i)] for k, i in index.items()}
    expected = reduce(exact.plus, (exact.times(full[k], weights[k]) for k in full))
    expected = exact.times(expected, 0.3)
    assert d.exact.tolist() == expected.tolist()
    assert d.exact.dtype == expected.dtype
    assert d.matrix.tolist() == exact.floats(expected).tolist()
    assert {k: np.asarray(part).tolist() for k, part in d.parts.items()} == {
        k: exact.floats(part).tolist() for k, part in full.items()
    }
    fitted = d.fitted(1, cells[::-1])
    assert fitted.matrix.tolist() == d.matrix[::-1].tolist()
    assert repr(fitted) == "Distortion(per attribute, shape (8, 8))"


@pytest.mark.parametrize("bounds", [{}, {"lower": np.full((6, 5), 0.125)}])
def test_expressions_of_sums_are_those_of_their_table(bounds: Any) -> None:
    law = np.random.default_rng(0).integers(1, 9, (2, 6)).astype(float)
    one = made(2)
    table = additive.dense(one)
    layered = np.stack([np.zeros((6, 5)), np.ones((6, 5))])
    least = []
    for cost in (one, table):
        term = 3 * Expression("d", cost=cost) + Expression("e", cost=cost)
        mixed = term + Expression("f", cost=layered)
        assert [Fraction(v) for v in np.ravel(additive.dense(term.cost)).tolist()] == [
            4 * Fraction(v) for v in table.ravel().tolist()
        ]
        assert [Fraction(v) for v in additive.dense(mixed.cost)[1].ravel().tolist()] == [
            4 * Fraction(v) + 1 for v in table.ravel().tolist()
        ]
        program = ChannelProgram(law, 5, {"W": View(np.tile([[0], [1]], 6))}, term, **bounds)
        least.append(least_value(program, term))
    assert least[0] == least[1]


def test_sums_beyond_every_float_are_refused() -> None:
    huge = cpv.Distortion([[0, 1e308], [1e308, 0]])
    with pytest.raises(cpv.InputError, match="^distortion"):
        cpv.per_attribute({"a": huge, "b": huge})


def test_parts_without_a_common_denominator_are_stored_as_one_table() -> None:
    """What proofs would not add up is no reason to refuse what they take as a table."""
    primes = [k for k in range(10**7, 10**7 + 20000) if all(k % d for d in range(2, 3200))]
    size = int(len(primes) ** 0.5)
    unlike = [
        [Fraction(i != j, p) for j, p in enumerate(primes[i * size : (i + 1) * size])]
        for i in range(size)
    ]
    letters = [(i,) for i in range(size)]
    d = cpv.per_attribute({"a": cpv.Distortion(unlike)}, letters)
    source = cpv.DiscreteSource(
        np.random.default_rng(0).dirichlet(np.ones(2 * size)).reshape(2, -1), x=letters
    )
    problem = cpv.PrivacyDistortion(source, d, budget=1e-9)
    document = problem.program.to_dict()
    assert document["objective"]["cost"] is None
    assert document["rows"]["budget"]["term"]["cost"] is document["terms"]["distortion"]["cost"]
    assert problem.solve().status == "certified"
