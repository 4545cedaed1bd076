"""Distortions: entries by hand, metric properties, labels, and what is refused."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import cvxprivacy as cpv
from tests import referee

NUMBERS = st.floats(-100, 100).map(lambda x: round(x, 3))
TREE = {
    "Paris": ("France", "Europe", "World"),
    "Lyon": ("France", "Europe", "World"),
    "Rome": ("Italy", "Europe", "World"),
    "Lima": ("Peru", "America", "World"),
}


def is_metric(d: np.ndarray) -> None:
    assert (np.diag(d) == 0).all()
    assert (d == d.T).all()
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + 1e-9).all()


# ---- any matrix --------------------------------------------------------------------------


def test_a_matrix_is_copied_labelled_and_kept_from_writing():
    matrix = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 4.0]])
    d = cpv.Distortion(matrix, outputs=["a", "b", "none"], name="loss")
    matrix[0, 1] = 9.0
    assert d.matrix.tolist() == [[0, 1, 5], [2, 0, 4]]
    assert d.outputs == ["a", "b", "none"]
    assert "loss" in repr(d)
    assert "(2, 3)" in repr(d)
    with pytest.raises(ValueError, match="read-only"):
        d.matrix[0, 0] = 1.0
    assert cpv.Distortion(matrix).outputs == [0, 1, 2]


def test_a_distortion_scales_and_keeps_its_labels():
    d = cpv.Distortion([[0, 1, 5], [2, 0, 4]], outputs="abc", name="loss")
    for scaled in (d * 2.5, 2.5 * d):
        assert scaled.matrix.tolist() == [[0, 2.5, 12.5], [5, 0, 10]]
        assert scaled.outputs == list("abc")
        assert scaled.name == "loss"
    assert d.matrix[0, 1] == 1


@pytest.mark.parametrize("value", [-1e-9, math.nan, -math.inf])
def test_a_broken_price_is_named(value):
    with pytest.raises(cpv.InputError) as caught:
        cpv.Distortion([[0, 1, 5], [2, value, 4]])
    assert caught.value.argument == "distortion"
    assert caught.value.where == (1, 1)
    assert str(caught.value).startswith(f"distortion[1, 1]: {value!r} ")
    assert "nonnegative" in str(caught.value)
    cube = np.zeros((2, 3, 4))
    cube[1, 2, 0] = value
    with pytest.raises(cpv.InputError, match=r"^distortion\[1, 2, 0\]"):
        cpv.Distortion(cube)


PRICES = [[0, 1, 5], [2, 0, 4]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        *[(lambda m=m: cpv.Distortion(m), r"^distortion: shape .*\(\|X\|, \|X̂\|\)")
          for m in ([0, 1], 3.0, [[]], np.zeros((1, 1, 1, 1)), None)],
        (lambda: cpv.Distortion("hamming"), "^distortion: not numbers"),
        (lambda: cpv.Distortion([["a"]]), r"^distortion\[0, 0\]: 'a' is no number"),
        (lambda: cpv.Distortion([[0, 1], [1]]), "^distortion: not numbers"),
        (lambda: cpv.Distortion(PRICES, outputs=["a", "b"]), "^outputs: 2 labels; pass 3"),
        (lambda: cpv.Distortion(PRICES, inputs=["a"]), "^inputs: 1 labels; pass 2"),
        (lambda: cpv.Distortion(PRICES, inputs=["a", "a"]), "^inputs.*'a'"),
        *[(lambda f=f: cpv.hamming(2) * f, "^factor") for f in (-1.0, math.nan, math.inf)],
        *[(lambda f=f, k=k: f(k), "^letters: no letters.*number")
          for f in (cpv.hamming, cpv.ordinal) for k in (0, -1, [], "")],
        *[(lambda f=f, k=k: f(k), "^letters")
          for f in (cpv.hamming, cpv.ordinal) for k in (2.5, None)],
        *[(lambda f=f: f(["a", "b", "a"]), "^letters.*'a'") for f in (cpv.hamming, cpv.ordinal)],
        (lambda: cpv.squared_error([[0, 0], [1, 1]], [0, 1]), "^outputs: 1 coordinates; pass 2"),
        *[(lambda t=t: cpv.hierarchy_distance(t), "^paths.*path to the root")
          for t in ({}, {"a": (), "b": ()}, {"a": ("x", "root"), "b": ("root",)})],
        (lambda: cpv.hierarchy_distance({"a": ("x", "one"), "b": ("x", "other")}),
         "^paths: no common root"),
        (lambda: cpv.per_attribute({}), "^distortions"),
        (lambda: cpv.per_attribute(PARTS, []), "^cells"),
        (lambda: cpv.per_attribute(PARTS, [(20, "f"), (40, "m")]), "^cells.*40.*'age'.*inputs="),
        *[(lambda c=c: cpv.per_attribute(PARTS, [(20, "f"), c]), f"^cells.*{re.escape(repr(c))}")
          for c in ((20,), (20, "f", 1), 20)],
        *[(lambda a=a: cpv.per_attribute(PARTS, **{a: {"height": [1]}}), f"^{a}: 'height'.*age")
          for a in ("weights", "inputs")],
        *[(lambda m=m: cpv.per_attribute({"age": cpv.Distortion(m)}), "^distortions.*'age'")
          for m in ([[0, 1], [1, 0], [1, 1]], [[0, 1, 1], [1, 0, 1]], np.zeros((2, 2, 2)))],
        (lambda: cpv.per_attribute({"sex": [[0, 1], [1, 0]]}), "^distortions.*'sex'"),
        (lambda: cpv.per_attribute(PARTS, inputs={"sex": ["f", "m", "x"]}), "^inputs.*'sex'"),
    ],
)  # fmt: skip
def test_what_is_no_distortion_is_refused(build, message):
    with pytest.raises(cpv.InputError, match=message):
        build()


# ---- numbers -----------------------------------------------------------------------------


def test_rows_are_key_letters_and_columns_are_released_ones():
    squared = cpv.squared_error([0, 1, 4], [1, 3])
    assert squared.matrix.tolist() == [[1, 9], [0, 4], [9, 1]]
    assert squared.outputs == [1, 3]
    absolute = cpv.absolute_error([0, 1, 4], [1, 3])
    assert absolute.matrix.tolist() == [[1, 3], [0, 2], [3, 1]]
    assert (
        cpv.squared_error([0, 1, 4]).outputs == cpv.absolute_error([0, 1, 4]).outputs == [0, 1, 4]
    )


def test_errors_of_vectors_by_hand():
    points = [[0, 0], [3, 4], [1, -1]]
    squared = cpv.squared_error(points)
    assert squared.matrix.tolist() == [[0, 25, 2], [25, 0, 29], [2, 29, 0]]
    assert squared.outputs == [(0, 0), (3, 4), (1, -1)]
    absolute = cpv.absolute_error(points, [[0, 1]])
    assert absolute.matrix.tolist() == [[1], [6], [3]]
    assert absolute.outputs == [(0, 1)]
    column = cpv.squared_error([[0], [2]])
    assert column.matrix.tolist() == [[0, 4], [4, 0]]


@settings(max_examples=40)
@given(hnp.arrays(float, hnp.array_shapes(min_dims=1, max_dims=2, max_side=5), elements=NUMBERS))
def test_errors_of_numbers_are_distances(values):
    absolute, squared = cpv.absolute_error(values).matrix, cpv.squared_error(values).matrix
    assert absolute.shape == squared.shape == (len(values), len(values))
    is_metric(absolute)
    is_metric(np.sqrt(squared))
    rows = np.atleast_2d(values.T).T
    for i, j in np.ndindex(squared.shape):
        taxi = sum(abs(a - b) for a, b in zip(rows[i], rows[j], strict=True))
        assert absolute[i, j] == pytest.approx(taxi)
        assert squared[i, j] == pytest.approx(math.dist(rows[i], rows[j]) ** 2)


@pytest.mark.parametrize("function", [cpv.squared_error, cpv.absolute_error])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_broken_number_is_named(function, value):
    with pytest.raises(cpv.InputError) as caught:
        function([0.0, 1.0, value])
    assert str(caught.value).startswith("values[2")
    assert repr(value) in str(caught.value)
    assert "finite" in str(caught.value)
    with pytest.raises(cpv.InputError) as caught:
        function([0.0, 1.0], [value, 0.0])
    assert str(caught.value).startswith("outputs[0")
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("function", [cpv.squared_error, cpv.absolute_error])
@pytest.mark.parametrize(
    ("values", "place"),
    [(["a", "b"], "[0]"), ([], ""), (np.zeros((2, 2, 2)), ""), ([[1], [1, 2]], "")],
)
def test_letters_that_stand_for_no_number_are_refused(function, values, place):
    with pytest.raises(cpv.InputError, match=rf"^values{re.escape(place)}: .*number"):
        function(values)


# ---- letters -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5])
def test_hamming_counts_changes(size):
    d = cpv.hamming(size)
    assert d.outputs == list(range(size))
    is_metric(d.matrix)
    assert d.matrix.sum() == size * (size - 1)
    assert set(np.unique(d.matrix)) <= {0.0, 1.0}


def test_hamming_of_labels():
    d = cpv.hamming(["single", "married", ("divorced", 2)])
    assert d.outputs == ["single", "married", ("divorced", 2)]
    assert d.matrix.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_ordinal_is_the_share_of_ranks():
    d = cpv.ordinal(["low", "middle", "high"])
    assert d.matrix.tolist() == [[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]]
    assert d.outputs == ["low", "middle", "high"]
    assert cpv.ordinal(1).matrix.tolist() == [[0]]
    assert cpv.ordinal(np.int64(3)).matrix.shape == cpv.hamming(np.int64(3)).matrix.shape == (3, 3)
    six = cpv.ordinal(6)
    is_metric(six.matrix)
    assert six.matrix == pytest.approx(cpv.absolute_error(range(6)).matrix / 5)
    assert six.outputs == [0, 1, 2, 3, 4, 5]


# ---- hierarchies -------------------------------------------------------------------------


def test_levels_climbed_until_letters_meet():
    d = cpv.hierarchy_distance(TREE)
    assert d.outputs == ["Paris", "Lyon", "Rome", "Lima"]
    third = 1 / 3
    expected = [
        [0, third, 2 * third, 1],
        [third, 0, 2 * third, 1],
        [2 * third, 2 * third, 0, 1],
        [1, 1, 1, 0],
    ]
    assert d.matrix == pytest.approx(np.array(expected), abs=1e-15)


def test_equal_names_on_different_branches_do_not_meet():
    tree = {
        "Paris": ("other", "Europe", "World"),
        "Lima": ("other", "America", "World"),
        "Rome": ("Italy", "Europe", "World"),
    }
    matrix = cpv.hierarchy_distance(tree).matrix
    assert matrix[0, 1] == 1.0
    assert matrix[0, 2] == pytest.approx(2 / 3)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=7))
def test_a_hierarchy_is_an_ultrametric(branches):
    tree = {i: ((a, b), a, "root") for i, (a, b) in enumerate(branches)}
    d = cpv.hierarchy_distance(tree).matrix
    is_metric(d)
    assert (d[:, None, :] <= np.maximum(d[:, :, None], d[None, :, :]) + 1e-15).all()
    for (i, one), (j, other) in itertools.combinations(enumerate(branches), 2):
        levels = 1 if one == other else 2 if one[0] == other[0] else 3
        assert d[i, j] == pytest.approx(levels / 3)


# ---- several attributes ------------------------------------------------------------------

PARTS = {
    "age": cpv.absolute_error([20, 30, 50]),
    "sex": cpv.Distortion([[0, 1], [7, 0]], outputs=["f", "m"]),
}
CELLS = [(50, "f"), (20, "m"), (30, "f")]


def test_all_combinations_in_the_order_of_the_attributes():
    d = cpv.per_attribute(PARTS)
    assert d.outputs == list(itertools.product([20, 30, 50], ["f", "m"]))
    place = {cell: i for i, cell in enumerate(d.outputs)}
    assert d.matrix[place[20, "f"], place[50, "m"]] == 30 + 1
    assert d.matrix[place[20, "m"], place[50, "f"]] == 30 + 7
    assert d.matrix[place[30, "m"], place[30, "f"]] == 7
    assert (np.diag(d.matrix) == 0).all()


def test_observed_cells_only():
    d = cpv.per_attribute(PARTS, CELLS)
    assert d.outputs == CELLS
    assert d.matrix.tolist() == [[0, 31, 20], [37, 0, 17], [20, 11, 0]]
    assert cpv.per_attribute({"sex": cpv.hamming(["f", "m"])}).outputs == [("f",), ("m",)]


def test_inputs_name_the_letters_of_a_cell():
    d = cpv.per_attribute(
        PARTS, [("old", "f"), ("young", "m")], inputs={"age": ["young", "grown", "old"]}
    )
    assert d.matrix.tolist() == [[0, 31], [37, 0]]
    assert d.outputs == [("old", "f"), ("young", "m")]


@settings(max_examples=40)
@given(
    st.permutations(list(itertools.product([20, 30, 50], ["f", "m"]))),
    st.integers(1, 6),
    st.floats(0, 5),
    st.floats(0, 5),
)
def test_cells_and_weights_agree_with_a_loop(cells, size, of_age, of_sex):
    cells = cells[:size]
    d = cpv.per_attribute(PARTS, cells, weights={"sex": of_sex, "age": of_age}).matrix
    for (i, (age, sex)), (j, (other, gender)) in itertools.product(enumerate(cells), repeat=2):
        change = 0 if sex == gender else 1 if sex == "f" else 7
        assert d[i, j] == pytest.approx(of_age * abs(age - other) + of_sex * change)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("cells", [None, [(20, "f"), (50, "m")]])
def test_a_broken_weight_is_named(weight, cells):
    with pytest.raises(cpv.InputError) as caught:
        cpv.per_attribute(PARTS, cells, weights={"sex": weight})
    assert caught.value.argument == "weights"
    assert "sex" in str(caught.value)
    assert repr(weight) in str(caught.value)


# ---- in a problem ------------------------------------------------------------------------


def test_a_square_matrix_releases_the_letters_of_the_source():
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]], x=["a", "b"])
    problem = cpv.PrivacyDistortion(source, [[0, 1], [1, 0]], budget=0.2)
    assert problem.alphabet.d.outputs == ["a", "b"]
    wide = cpv.PrivacyDistortion(source, [[0, 1, 2], [1, 0, 2]], budget=0.2)
    assert wide.alphabet.d.outputs == [0, 1, 2]


LAW = [[0.1, 0.2, 0.1], [0.3, 0.1, 0.2]]


def moves(distortion, x, **options) -> dict:
    """Return the price of every move between labels, as a problem on letters ``x`` sees it."""
    source = cpv.DiscreteSource(LAW, w=["u", "v"], x=x)
    measure = cpv.PrivacyDistortion(source, distortion, budget=9, **options).alphabet.d
    return {
        (*here, to): measure.matrix[(*places, j)]
        for here, places in zip(
            itertools.product(*[source.w, x][-measure.matrix.ndim + 1 :]),
            np.ndindex(measure.matrix.shape[:-1]),
            strict=True,
        )
        for j, to in enumerate(measure.outputs)
    }


@pytest.mark.parametrize("order", list(itertools.permutations(["low", "middle", "high"])))
def test_rows_are_matched_to_the_source_by_label(order):
    x = ["high", "low", "middle"]
    prices = moves(cpv.ordinal(["low", "middle", "high"]), x)
    assert prices["low", "high"] == prices["high", "low"] == 1.0
    assert prices["low", "middle"] == prices["middle", "high"] == 0.5
    assert prices["low", "low"] == prices["middle", "middle"] == prices["high", "high"] == 0.0
    hamming = moves(cpv.hamming(order), x)
    assert all(price == (here != to) for (here, to), price in hamming.items())
    tree = {"low": ("few", "all"), "middle": ("few", "all"), "high": ("many", "all")}
    distances = moves(cpv.hierarchy_distance({letter: tree[letter] for letter in order}), x)
    assert distances["low", "middle"] == 0.5
    assert distances["low", "high"] == 1.0


def test_labels_of_rows_and_columns_are_two_things():
    d = cpv.Distortion([[1, 2], [3, 4], [5, 6]], inputs=["c", "a", "b"], outputs=["short", "long"])
    prices = moves(d, ["a", "b", "c"])
    assert prices["a", "short"] == 3
    assert prices["b", "long"] == 6
    assert prices["c", "long"] == 2
    assert moves(2 * d, ["a", "b", "c"])["a", "long"] == 8
    by_place = cpv.Distortion([[1, 2], [3, 4], [5, 6]], outputs=["short", "long"])
    assert moves(by_place, ["a", "b", "c"])["a", "short"] == 1


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_rows_that_see_w_are_matched_by_the_label_of_x(encoder):
    cube = np.arange(12.0).reshape(2, 3, 2)
    d = cpv.Distortion(cube, inputs=["c", "a", "b"], outputs=["short", "long"])
    prices = moves(d, ["a", "b", "c"], encoder=encoder)
    assert prices["u", "a", "short"] == cube[0, 1, 0]
    assert prices["v", "c", "long"] == cube[1, 0, 1]
    assert prices["v", "b", "short"] == cube[1, 2, 0]


def test_cells_are_matched_whatever_their_order():
    x = [(20, "m"), (30, "f"), (50, "f")]
    d = cpv.per_attribute(PARTS, CELLS)
    prices = moves(d, x)
    assert prices[(20, "m"), (50, "f")] == 30 + 7
    assert prices[(50, "f"), (20, "m")] == 30 + 1
    assert prices[(30, "f"), (50, "f")] == 20


def test_a_release_without_error_is_the_table_itself():
    x = ["high", "low", "middle"]
    source = cpv.DiscreteSource(LAW, x=x)
    for d in (cpv.ordinal(["low", "middle", "high"]), cpv.hamming(x[::-1]), cpv.hamming(3)):
        channel = cpv.PrivacyDistortion(source, d, budget=0).solve().channel
        assert list(channel.apply(x, seed=0)) == x


@pytest.mark.parametrize("letters", [["a", "b", "z"], ["x", "y", "z"]])
def test_a_letter_of_the_source_without_a_row_is_named(letters):
    source = cpv.DiscreteSource(LAW, x=["a", "b", "c"])
    with pytest.raises(cpv.InputError) as caught:
        cpv.PrivacyDistortion(source, cpv.hamming(letters), budget=0.1)
    missing = next(x for x in "abc" if x not in letters)
    assert caught.value.argument == "distortion"
    assert caught.value.value == missing
    assert repr(missing) in str(caught.value)
    assert "label" in str(caught.value)


def test_the_price_of_an_error_reaches_the_optimum():
    source = cpv.DiscreteSource([[0.5, 0.0], [0.0, 0.5]])
    # only 0 → 1 costs: releasing 1 always costs 3 · 1/2
    problem = cpv.PrivacyDistortion(source, [[0, 3], [0, 0]], budget=0)
    assert problem.greatest_distortion == 0.0
    problem = cpv.PrivacyDistortion(source, [[0, 3], [4, 0]], budget=0)
    assert problem.greatest_distortion == pytest.approx(1.5)
    assert problem.least_distortion == 0.0


# ---- frames ------------------------------------------------------------------------------


def test_the_rows_of_a_frame_are_matched_and_not_counted_off():
    frame = pd.DataFrame([[0.0, 1.0], [5.0, 0.0]], index=["b", "a"], columns=["b", "a"])
    d = cpv.Distortion(frame)
    assert (d.inputs, d.outputs) == (["b", "a"], ["b", "a"])
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]], x=["a", "b"])
    fitted = d.fitted(2, source.x)
    assert fitted.matrix.tolist() == [[5, 0], [0, 1]]
    assert fitted.outputs == ["b", "a"]
    with pytest.raises(cpv.InputError, match="no row for 0"):
        d.fitted(2, [0, 1])
    value = cpv.Distortion(frame, inputs=["p", "q"], outputs=["r", "s"])
    assert (value.inputs, value.outputs) == (["p", "q"], ["r", "s"])
    counted = cpv.Distortion(pd.DataFrame([[0, 1], [1, 0]]))
    assert counted.inputs is None
    assert counted.fitted(2, source.x).outputs == ["a", "b"]
    pl = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    d = cpv.Distortion(pl.DataFrame({"from": ["b", "a"], "a": [1.0, 0.0], "b": [0.0, 5.0]}))
    assert (d.inputs, d.outputs) == (["b", "a"], ["a", "b"])
    assert d.fitted(2, source.x).matrix.tolist() == [[0, 5], [1, 0]]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ([1e200, 0], None),
        (np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]"), (0,)),
    ],
)
def test_values_without_a_squared_error_are_refused(values, where):
    with pytest.raises(cpv.InputError) as caught:
        cpv.squared_error(values)
    assert (caught.value.argument, caught.value.where) == ("values", where)


def test_letters_that_no_float_tells_apart_have_labels_of_their_own():
    assert cpv.squared_error([2**53, 2**53 + 1, 0.5]).outputs == [2**53, 2**53 + 1, 0.5]


def test_divergence_as_a_distortion_keeps_what_x_tells_of_another_attribute():
    """d(x, x̂) = D(p(v | x) ‖ p(v | x̂)): what is lost in logarithmic score by reading x̂ for x.

    E d = I(V; X) − I(V; X̂) + E D(p(v | X̂ is released) ‖ p(v | X = X̂)), so that a budget D keeps
    I(V; X̂) ≥ I(V; X) − D, and if V is itself the secret, no release leaks less.
    """
    men = np.array([[32, 11, 10, 3], [53, 50, 25, 15], [10, 10, 7, 7], [3, 30, 5, 8]])
    women = np.array([[36, 9, 5, 2], [66, 34, 29, 14], [16, 7, 7, 7], [4, 64, 5, 8]])
    counts, hair = men + women, ["black", "brown", "red", "blond"]  # columns: eyes (Snee 1974)
    p = counts / counts.sum(axis=1, keepdims=True)
    table = (p[:, None] * np.log2(p[:, None] / p)).sum(axis=2)
    d = cpv.Distortion(table, outputs=hair, name="divergence")
    eyes = cpv.DiscreteSource.from_counts(counts.T, x=hair)
    sex = cpv.DiscreteSource.from_counts([men.sum(axis=1), women.sum(axis=1)], x=hair)
    full, before = eyes.information(), np.inf
    assert eyes.p_x @ table @ eyes.p_x > full  # drawing x̂ afresh costs more than withholding it
    for budget in (0.01, 0.05, 0.15):
        hidden, useful = (
            cpv.RateDistortionEquivocation(source, d, budget, minimize="leakage").solve()
            for source in (eyes, sex)
        )
        referee.check(hidden)
        referee.check(useful)
        joint = eyes.pmf @ hidden.channel.matrix
        q = joint.sum(axis=0)
        excess = sum(
            q[y] * cpv.information.divergence(joint[:, y] / q[y], p[y]) for y in np.flatnonzero(q)
        )
        assert hidden.value - excess == pytest.approx(full - float(hidden.distortion), abs=1e-9)
        assert hidden.lower >= full - budget
        kept = cpv.information.mutual_information(eyes.pmf @ useful.channel.matrix)
        assert kept >= full - budget
        assert useful.upper < min(before, sex.information())  # what is left of sex falls
        before = useful.lower
