"""Suppressed letters: what they cost, which there are, and that the optimum uses them well."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from tests import referee

CELLS = [("young", "m"), ("young", "f"), ("old", "f")]


def test_every_choice_of_columns_is_added_once():
    d = cpv.hamming(CELLS).with_suppression(0.25)
    assert d.outputs[:3] == CELLS
    assert set(d.outputs[3:]) == {
        ("young", None), ("old", None), (None, "m"), (None, "f"), (None, None)
    }  # fmt: skip
    assert len(set(d.outputs)) == len(d.outputs)
    assert d.inputs == CELLS


def test_what_remains_costs_the_least_that_agrees_with_it():
    d = cpv.hamming(CELLS).with_suppression({"age": 0.25, "sex": 0.5}, columns=["age", "sex"])
    at = {y: i for i, y in enumerate(d.outputs)}
    row = d.matrix[CELLS.index(("young", "m"))]
    assert row[at["young", None]] == 0.5  # sex alone is withheld
    assert row[at["old", None]] == 1.5  # and something else is said
    assert row[at[None, "m"]] == 0.25
    assert row[at[None, "f"]] == 1.25
    assert row[at[None, None]] == 0.75
    assert (row[:3] == [0, 1, 1]).all()


@pytest.mark.parametrize("factor", [1, 3])
def test_by_attribute_each_column_costs_what_it_does_by_itself(factor):
    parts = {"age": cpv.absolute_error([20, 40]), "sex": cpv.hamming(["f", "m"])}
    cells = list(itertools.product([20, 40], "fm"))[:3]
    weights = {"age": 0.1, "sex": 2}
    d = factor * cpv.per_attribute(parts, cells, weights=weights)
    e = d.with_suppression({"age": 0.7, "sex": 0.3})
    for (i, x), (j, y) in itertools.product(enumerate(cells), enumerate(e.outputs)):
        ours = Fraction(0)
        for a, b, name, price in zip(x, y, parts, (0.7, 0.3), strict=True):
            far = abs(a - b) if name == "age" and b is not None else int(a != b)
            each = factor * Fraction(weights[name]) * far
            ours += Fraction(price) if b is None else each
        assert Fraction(e.exact[i, j]) == ours, (x, y)
    # what the weight multiplies: parts with their weights add up to d
    ages = [0.7 / (factor * 0.1) if y[0] is None else abs(20 - y[0]) for y in e.outputs]
    assert np.allclose(np.asarray(e.parts["age"])[0], ages)
    shares = [factor * weights[name] * np.asarray(e.parts[name]) for name in parts]
    assert np.allclose(sum(shares), np.asarray(e.cost, float))


def test_a_missing_value_is_withheld_already():
    d = cpv.hamming(["a", "b", None]).with_suppression(0.5)
    assert d.outputs == ["a", "b", None]
    assert d.matrix.tolist() == [[0, 1, 0.5], [1, 0, 0.5], [1, 1, 0]]
    table = pd.DataFrame({"k": ["a", "b", None, "a"], "w": [0, 1, 1, 0]})
    source = cpv.DiscreteSource.from_table(table, sensitive="w", key="k", missing="level")
    e = cpv.per_attribute({"k": "hamming"}, source).with_suppression(0.5)
    assert (e.outputs, e.matrix.tolist()) == (d.outputs, d.matrix.tolist())


def test_a_distortion_of_w_too():
    d = cpv.Distortion(np.arange(8.0).reshape(2, 2, 2), inputs="ab", outputs="ab")
    e = d.with_suppression(9)
    assert e.outputs == ["a", "b", None]
    assert e.matrix[..., 2].tolist() == [[9, 11], [13, 15]]


def test_the_optimum_withholds_what_is_cheaper_than_a_lie():
    """Two letters that tell all: to say nothing of one at cost c is as good as c of a swap."""
    source = cpv.DiscreteSource([[0.5, 0.0], [0.0, 0.5]], x="ab")
    plain = cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.PerfectPrivacy()]).solve()
    d = cpv.hamming(source.x).with_suppression(0.2)
    kept = cpv.MinimumDistortion(source, d, [cpv.PerfectPrivacy()])
    solution = kept.solve()
    assert plain.value == pytest.approx(0.5)
    assert solution.value == pytest.approx(0.2)
    assert solution.channel.released_marginal[2] == pytest.approx(1)
    referee.check(solution, problem=kept)


@pytest.mark.parametrize(
    ("refused", "argument"),
    [
        (lambda: cpv.hamming(3).with_suppression(0.1), "cost"),
        (lambda: cpv.hamming("ab").with_suppression(-1), "cost"),
        (lambda: cpv.hamming(CELLS).with_suppression({"height": 1}, columns=["a", "b"]), "cost"),
        (lambda: cpv.hamming(CELLS).with_suppression({"a": 1}, columns=["a"]), "columns"),
        (lambda: cpv.hamming(CELLS).with_suppression({"a": 1}), "columns"),
        (lambda: cpv.hamming(range(200_000)[:2]).with_suppression("x"), "cost"),
    ],
)
def test_refusals(refused, argument):
    with pytest.raises(cpv.InputError) as caught:
        refused()
    assert caught.value.argument == argument


@pytest.mark.parametrize("kind", ["Int64", "int64", "float64", "category", "str", "bool"])
def test_a_withheld_value_is_a_missing_one_of_its_type(kind):
    values = {"str": ["a", "b"], "category": ["a", "b"], "bool": [True, False]}.get(kind, [1, 2])
    table = pd.DataFrame({"k": pd.Series(values * 50, dtype=kind), "w": [0, 1] * 50})
    source = cpv.DiscreteSource.from_table(table, sensitive="w", key="k")
    d = cpv.hamming(source.x).with_suppression(0.2)
    problem = cpv.MinimumDistortion(source, d, [cpv.PerfectPrivacy()])
    released = problem.solve().channel.apply(table, seed=1)
    assert released["k"].isna().all()
    nullable = {"int64": "Int64", "bool": "boolean"}
    assert released["k"].dtype == nullable.get(kind, table["k"].dtype)
