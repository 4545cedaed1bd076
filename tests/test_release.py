"""Channels as releases: what is drawn, for whom, and what letters without mass receive."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import cvxprivacy as cpv
from tests import referee

pd = pytest.importorskip("pandas", reason="the extra `examples` is not installed")

MATRIX = [[0.5, 0.3, 0.2, 0.0], [0.0, 0.15, 0.0, 0.85], [0.25, 0.25, 0.25, 0.25]]
INPUTS = ["a", "b", "c"]
OUTPUTS = ["p", "q", "r", "s"]


class Edge(np.random.Generator):
    """A generator whose uniform numbers are all ``value``."""

    def __init__(self, value: float) -> None:
        super().__init__(np.random.PCG64(0))
        self.value = value

    def random(self, size=None, *_, **__):
        return np.full(size, self.value)


@pytest.fixture
def channel() -> cpv.Channel:
    return cpv.Channel(MATRIX, inputs=INPUTS, outputs=OUTPUTS, p_input=[0.2, 0.7, 0.1])


@pytest.fixture
def copier() -> cpv.Channel:
    """Each input has an output of its own, in another order."""
    return cpv.Channel([[0, 0, 1], [1, 0, 0], [0, 1, 0]], inputs="abc", outputs=["B", "C", "A"])


# ---- what comes back ---------------------------------------------------------------------


def test_each_value_gets_the_row_of_its_label(copier):
    assert list(copier.apply(["b", "a", "c", "a"], seed=0)) == ["B", "A", "C", "A"]
    assert list(copier.apply(np.array(["c", "c", "b"]), seed=0)) == ["C", "C", "B"]
    assert list(copier.apply(("a",), seed=0)) == ["A"]
    assert len(copier.apply([], seed=0)) == 0


def test_a_series_keeps_its_index_and_name(copier):
    values = pd.Series(["b", "a", "c"], index=[7, 7, -1], name="key")
    released = copier.apply(values, seed=0)
    assert isinstance(released, pd.Series)
    assert released.tolist() == ["B", "A", "C"]
    assert released.index.tolist() == [7, 7, -1]
    assert released.name == "key"
    assert values.tolist() == ["b", "a", "c"]


def test_a_series_of_another_kind(copier):
    days = pd.date_range("2026-01-01", periods=2)
    released = copier.apply(pd.Series(["c", "a"], index=days, dtype="category"), seed=0)
    assert released.tolist() == ["C", "A"]
    assert (released.index == days).all()
    assert released.name is None
    empty = copier.apply(pd.Series([], dtype=object, name="key"), seed=0)
    assert isinstance(empty, pd.Series)
    assert (len(empty), empty.name) == (0, "key")


def test_a_column_goes_back_into_its_frame(copier):
    frame = pd.DataFrame({"key": ["a", "b", "c"], "kept": [1, 2, 3]}, index=[9, 4, 6])
    frame["released"] = copier.apply(frame["key"], seed=0)
    assert frame["released"].tolist() == ["A", "B", "C"]
    some = frame[frame["kept"] > 1].copy()
    some["released"] = copier.apply(some["key"], seed=1)
    assert some.loc[[6, 4], "released"].tolist() == ["C", "B"]


def test_arrays_come_back_as_arrays(channel):
    for values in (["a", "b"], np.array(["a", "b"])):
        assert isinstance(channel.apply(values, seed=0), np.ndarray)


def test_numbers_stay_numbers():
    channel = cpv.Channel([[0, 1], [1, 0]], inputs=[0, 1], outputs=[10, 20])
    released = channel.apply(np.array([1, 0, 1]), seed=0)
    assert released.tolist() == [10, 20, 10]
    assert np.issubdtype(released.dtype, np.integer)
    assert channel.apply(pd.Series([1, 0]), seed=0).sum() == 30


@pytest.mark.parametrize(
    "outputs",
    [[0, "1-4"], ["0", 0], [True, "unknown"], [2.5, "none", None], [0, "1-4", (5, 9)], [1, None]],
)
def test_labels_of_several_types_keep_their_types(outputs):
    inputs = list("abc")[: len(outputs)]
    channel = cpv.Channel(np.eye(len(outputs)), inputs=inputs, outputs=outputs)
    for released in (channel.apply(inputs, seed=0), channel.apply(pd.Series(inputs), seed=0)):
        assert list(released) == outputs
        assert [isinstance(y, str) for y in released] == [isinstance(y, str) for y in outputs]


def test_tuples_are_labels():
    channel = cpv.Channel(
        [[0, 1], [1, 0]], inputs=[(30, "f"), (40, "m")], outputs=[(30, "f"), (40, "m")]
    )
    assert list(channel.apply([(40, "m"), (30, "f")], seed=0)) == [(30, "f"), (40, "m")]
    frame = pd.DataFrame({"age": [40, 30], "sex": ["m", "f"]}, index=[5, 3])
    cells = pd.Series(list(zip(frame["age"], frame["sex"], strict=True)), index=frame.index)
    released = channel.apply(cells, seed=0)
    assert released.loc[5] == (30, "f")
    assert released.loc[3] == (40, "m")
    rows = cpv.Channel([[0, 1], [1, 0]], inputs=[(1, 2), (3, 4)], outputs=["x", "y"])
    assert list(rows.apply(np.array([[1, 2], [3, 4], [1, 2]]), seed=0)) == ["y", "x", "y"]
    lists = pd.Series([[1, 2], [3, 4]])
    assert rows.apply(lists, seed=0).tolist() == ["y", "x"]


# ---- what is drawn -----------------------------------------------------------------------


def test_frequencies_are_the_rows_of_the_matrix(channel):
    rng = np.random.default_rng(20)
    values = rng.choice(INPUTS, size=60_000, p=[0.2, 0.5, 0.3])
    released = channel.apply(values, seed=1)
    for letter, row in zip(INPUTS, MATRIX, strict=True):
        drawn = released[values == letter]
        counts = np.array([(drawn == y).sum() for y in OUTPUTS])
        on = np.array(row) > 0
        assert counts[~on].sum() == 0
        expected = np.array(row)[on] * len(drawn)
        assert stats.chisquare(counts[on], expected).pvalue > 1e-3


def test_draws_of_neighbours_are_independent(channel):
    released = channel.apply(["a"] * 40_000, seed=2)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, tuple(np.searchsorted(OUTPUTS, released.reshape(-1, 2)).T), 1)
    assert stats.chi2_contingency(pairs).pvalue > 1e-3
    both = channel.apply(["a", "c"] * 20_000, seed=2).reshape(-1, 2)
    table = pd.crosstab(both[:, 0], both[:, 1])
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_the_released_marginal_is_what_a_population_shows(channel):
    assert channel.released_marginal == pytest.approx([0.125, 0.19, 0.065, 0.62])
    values = np.repeat(INPUTS, [8000, 28_000, 4000])
    released = channel.apply(values, seed=3)
    counts = [(released == y).sum() for y in OUTPUTS]
    # the variance of a mixture drawn row by row is below the multinomial one
    deviation = np.array(counts) - 40_000 * channel.released_marginal
    assert (np.abs(deviation) < 4 * np.sqrt(counts)).all()


def test_the_released_marginal_needs_the_law_of_the_inputs():
    channel = cpv.Channel(MATRIX, inputs=INPUTS, outputs=OUTPUTS)
    with pytest.raises(cpv.InputError, match="^p_input"):
        _ = channel.released_marginal


@pytest.mark.parametrize("value", [0.0, math.nextafter(1.0, 0.0)])
@pytest.mark.parametrize(
    "row",
    [
        [0.0, 1.0, 0.0],
        [0.0, 0.0, 0.3, 0.0, 0.7, 0.0],
        [0.0, *[0.1] * 10, 0.0],
        [0.0, 1 / 3, 1 / 3, 1 / 3, 0.0],
        [0.0, *[1 / 49] * 49, 0.0],
        [0.0, 1 - 1e-12, 0.0],
        [0.0, 1 + 1e-12, 0.0],
    ],
)
def test_a_letter_of_probability_zero_is_not_drawn_at_the_edges(row, value):
    channel = cpv.Channel([row], inputs=["a"], outputs=range(len(row)))
    for drawn in channel.apply(["a"] * 3, seed=Edge(value)):
        assert row[drawn] > 0


@settings(max_examples=40)
@given(
    hnp.arrays(float, (3, 6), elements=st.sampled_from([0.0, 0.0, 1e-3, 0.1, 1.0])).filter(
        lambda a: a.any(axis=1).all()
    ),
    st.integers(0, 2**32 - 1),
)
def test_a_letter_of_probability_zero_is_never_drawn(weights, seed):
    matrix = weights / weights.sum(axis=1, keepdims=True)
    channel = cpv.Channel(matrix, inputs=range(3), outputs=range(6))
    values = np.repeat([2, 0, 1], 50)
    for x, y in zip(values, channel.apply(values, seed=seed), strict=True):
        assert matrix[x, y] > 0


# ---- seeds -------------------------------------------------------------------------------


def test_a_seed_decides_everything(channel):
    values = ["a", "b", "c"] * 50
    once, again, other = (list(channel.apply(values, seed=s)) for s in (5, 5, 6))
    assert once == again
    assert once != other
    series = channel.apply(pd.Series(values), seed=5)
    assert series.tolist() == once
    assert list(channel.apply(values, seed=np.random.default_rng(5))) == once


def test_a_generator_goes_on_where_it_stopped(channel):
    rng = np.random.default_rng(5)
    values = ["c"] * 100
    parts = [*channel.apply(values[:40], seed=rng), *channel.apply(values[40:], seed=rng)]
    assert parts == list(channel.apply(values, seed=5))
    assert list(channel.apply(values, seed=rng)) != parts


def test_a_seed_is_required(channel):
    with pytest.raises(TypeError, match="seed"):
        channel.apply(["a"])


# ---- values that the source did not have -------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "z", "y"],
        np.array(["a", "b", "z", "y"]),
        pd.Series(["a", "b", "z", "y"], index=[10, 2, 0, 1]),
    ],
)
def test_an_unknown_value_is_named_with_its_row(channel, values):
    rng = np.random.default_rng(8)
    with pytest.raises(cpv.UnknownValueError) as caught:
        channel.apply(values, seed=rng)
    assert isinstance(caught.value, cpv.InputError)
    assert (caught.value.argument, caught.value.where, caught.value.value) == ("values", 2, "z")
    assert str(caught.value).startswith("values[2]: 'z' ")
    assert "rebuild" in str(caught.value)
    assert rng.random() == np.random.default_rng(8).random()  # nothing was drawn


@pytest.mark.parametrize("value", [math.nan, None, pd.NA, {}, ["a"], 1, "A", ""])
def test_nothing_is_taken_for_a_letter_that_it_is_not(channel, value):
    with pytest.raises(cpv.UnknownValueError) as caught:
        channel.apply(["a", value], seed=0)
    assert caught.value.where == 1
    assert repr(value) in str(caught.value)


def test_an_unknown_tuple_is_named():
    channel = cpv.Channel([[1, 0], [0, 1]], inputs=[(1, "f"), (2, "m")], outputs=[0, 1])
    for values in ([(1, "f"), (1, "m")], pd.Series([(1, "f"), (1, "m")])):
        with pytest.raises(cpv.UnknownValueError, match=r"^values\[1\]: \(1, 'm'\) "):
            channel.apply(values, seed=0)


def test_a_table_with_a_new_value_is_refused():
    old = pd.DataFrame({"w": ["u", "v", "u", "v"], "x": ["a", "b", "b", "a"]})
    source = cpv.DiscreteSource.from_table(old, sensitive="w", key="x")
    solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.2).solve()
    assert set(solution.channel.apply(old["x"], seed=0)) <= {"a", "b"}
    with pytest.raises(cpv.UnknownValueError, match=r"^values\[3\]: 'c' "):
        solution.channel.apply(pd.Series(["a", "b", "b", "c"]), seed=0)


# ---- matrices that are no channel --------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "piece"),
    [
        ([0.5, 0.6], "1.1"),
        ([0.5, 0.4], "0.9"),
        ([-0.5, 1.5], "-0.5"),
        ([math.nan, 1.0], "nan"),
        ([math.inf, 0.0], "inf"),
    ],
)
def test_a_row_that_is_no_law_is_named(row, piece):
    with pytest.raises(cpv.InputError) as caught:
        cpv.Channel([[1, 0], row], inputs=["a", "b"], outputs=[0, 1])
    assert str(caught.value).startswith("matrix[1")
    assert piece in str(caught.value)


@pytest.mark.parametrize("matrix", [[[1, 0]], [[1], [1]], [1, 0], np.ones((2, 2, 1))])
def test_a_matrix_fits_its_labels(matrix):
    with pytest.raises(cpv.InputError) as caught:
        cpv.Channel(matrix, inputs=["a", "b"], outputs=[0, 1])
    assert caught.value.argument == "matrix"
    assert str(np.shape(matrix)) in str(caught.value)
    assert "(2, 2)" in str(caught.value)


def test_a_matrix_is_numbers():
    with pytest.raises(cpv.InputError, match="^matrix"):
        cpv.Channel([["yes", "no"]], inputs=["a"], outputs=[0, 1])


def test_inputs_are_distinct():
    with pytest.raises(cpv.InputError, match="^inputs.*'a'"):
        cpv.Channel([[1, 0], [0, 1]], inputs=["a", "a"], outputs=[0, 1])


@pytest.mark.parametrize("argument", ["p_input", "arbitrary"])
def test_there_is_one_entry_per_input(argument):
    with pytest.raises(cpv.InputError, match=f"^{argument}"):
        cpv.Channel([[1, 0]], inputs=["a"], outputs=[0, 1], **{argument: [1, 0]})


def test_the_matrix_is_a_copy_that_cannot_be_written():
    matrix = np.eye(2)
    channel = cpv.Channel(matrix, inputs=["a", "b"], outputs=["a", "b"])
    matrix[0] = [0, 1]
    assert channel.matrix.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 0.5
    assert "2 inputs" in repr(channel)
    assert "2 outputs" in repr(channel)


# ---- letters of probability zero ---------------------------------------------------------

# w = 1 and x = 2 never occur; besides them (w, x) = (0, 3) does not
SPARSE = np.array(
    [
        [0.30, 0.05, 0.00, 0.00],
        [0.00, 0.00, 0.00, 0.00],
        [0.05, 0.10, 0.00, 0.25],
        [0.05, 0.15, 0.00, 0.05],
    ]
)
W, X = ["w0", "never", "w2", "w3"], ["x0", "x1", "none", "x3"]
PRICES = np.array([[0.0, 1, 5, 2], [3, 0, 1, 1], [1, 1, 0, 1], [2, 4, 1, 0.5]])


def mutual(joint: np.ndarray) -> float:
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return sum(p * math.log2(p / q) for p, q in zip(joint.flat, product.flat, strict=True) if p > 0)


def sparse_problem(**options) -> cpv.PrivacyDistortion:
    source = cpv.DiscreteSource(SPARSE, w=W, x=X)
    return cpv.PrivacyDistortion(source, PRICES, budget=0.6, **options)


def test_impossible_letters_are_restored_as_arbitrary_rows():
    solution = sparse_problem().solve()
    referee.check(solution)
    channel = solution.channel
    assert channel is solution.release
    assert channel.inputs == X
    assert channel.outputs == X
    assert channel.matrix.shape == (4, 4)
    assert channel.arbitrary.tolist() == [False, False, True, False]
    assert channel.p_input == pytest.approx(SPARSE.sum(axis=0), abs=1e-15)
    marginal = SPARSE.sum(axis=0) @ channel.matrix
    assert channel.released_marginal == pytest.approx(marginal, abs=1e-15)
    assert channel.matrix[2] == pytest.approx(marginal, abs=1e-12)
    assert marginal.max() - marginal.min() > 0.2
    assert channel.matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    released = channel.apply(["none"] * 20_000, seed=4)
    for label, share in zip(X, marginal, strict=True):
        assert (released == label).mean() == pytest.approx(share, abs=0.02)


def test_impossible_letters_change_no_number():
    solution = sparse_problem().solve(accuracy="high")
    kept = np.ix_([0, 2, 3], [0, 1, 3])
    small = cpv.PrivacyDistortion(
        cpv.DiscreteSource(SPARSE[kept]), PRICES[[0, 1, 3]], budget=0.6
    ).solve(accuracy="high")
    assert solution.lower <= small.upper
    assert small.lower <= solution.upper
    joint = SPARSE @ solution.channel.matrix
    assert mutual(joint) == pytest.approx(solution.value, abs=1e-11)
    error = (SPARSE.sum(axis=0)[:, None] * PRICES * solution.channel.matrix).sum()
    assert error == pytest.approx(float(solution.distortion), abs=1e-12)
    assert error == pytest.approx(0.6, abs=1e-6)


def test_an_encoder_of_both_has_a_row_for_every_pair():
    prices = np.stack([PRICES, PRICES.T, PRICES + 1, PRICES * 2])  # d(w, x, x̂)
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource(SPARSE, w=W, x=X), prices, budget=0.9, encoder="wx"
    )
    solution = problem.solve()
    referee.check(solution)
    channel = solution.channel
    assert channel.inputs == [(w, x) for w in W for x in X]
    assert channel.arbitrary.tolist() == (SPARSE.ravel() == 0).tolist()
    assert channel.p_input == pytest.approx(SPARSE.ravel(), abs=1e-15)
    marginal = SPARSE.ravel() @ channel.matrix
    for row in np.flatnonzero(SPARSE.ravel() == 0):
        assert channel.matrix[row] == pytest.approx(marginal, abs=1e-12)
    assert channel.released_marginal == pytest.approx(marginal, abs=1e-15)
    joint = np.einsum("wx,wxy->wy", SPARSE, channel.matrix.reshape(4, 4, 4))
    assert mutual(joint) == pytest.approx(solution.value, abs=1e-11)
    error = np.einsum("wx,wxy,wxy", SPARSE, channel.matrix.reshape(4, 4, 4), prices)
    assert error == pytest.approx(float(solution.distortion), abs=1e-12)


def test_a_release_of_pairs_takes_pairs():
    solution = sparse_problem(encoder="wx").solve()
    frame = pd.DataFrame({"w": ["w0", "w2", "w3"], "x": ["x0", "x3", "x1"]}, index=[4, 4, 2])
    pairs = frame.apply(tuple, axis=1)
    released = solution.release.apply(pairs, seed=0)
    assert released.index.tolist() == [4, 4, 2]
    assert set(released) <= set(X)
    with pytest.raises(cpv.UnknownValueError, match=r"^values\[0\]: 'x0' "):
        solution.release.apply(frame["x"], seed=0)
    with pytest.raises(cpv.UnknownValueError, match=r"\('x0', 'w0'\)"):
        solution.release.apply([("x0", "w0")], seed=0)


def test_seeing_w_can_only_help_where_letters_are_missing():
    both, alone = sparse_problem(encoder="wx").solve(), sparse_problem().solve()
    assert both.lower <= alone.upper
    assert both.upper < alone.lower


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_no_row_is_arbitrary_where_every_letter_occurs(encoder):
    source = cpv.DiscreteSource([[0.4, 0.1], [0.2, 0.3]])
    channel = (
        cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1, encoder=encoder).solve().channel
    )
    assert not channel.arbitrary.any()
    assert len(channel.inputs) == (2 if encoder == "x" else 4)


def test_impossible_letters_at_the_edges_of_the_curve():
    source = cpv.DiscreteSource(SPARSE, w=W, x=X)
    least = sparse_problem().least_distortion  # only x3 always costs
    assert least == pytest.approx(0.3 * 0.5, abs=1e-12)
    for budget in (least, 5.0):  # 5 is beyond the greatest distortion
        solution = cpv.PrivacyDistortion(source, PRICES, budget=budget).solve()
        referee.check(solution)
        channel = solution.channel
        assert channel.arbitrary.tolist() == [False, False, True, False]
        assert channel.matrix[2] == pytest.approx(channel.released_marginal, abs=1e-12)
    constant = channel.matrix[:, channel.matrix[0].argmax()]
    assert constant == pytest.approx(1.0)


# ---- whole frames ------------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "note": [f"n{i}" for i in range(40)],
        "kids": [0, 1, 1, 0] * 10,
        "age": [0, 0, 1, 1] * 10,
        "ill": ["yes", "no", "no", "yes", "no"] * 8,
    },
    index=range(100, 140),
)


@pytest.mark.parametrize("encoder", ["x", "wx"])
@pytest.mark.parametrize("key", ["age", ["age", "kids"]])
def test_a_frame_is_matched_by_name_and_comes_back_whole(encoder, key):
    source = cpv.DiscreteSource.from_table(TABLE, sensitive="ill", key=key)
    keep = cpv.hamming(source.x)
    same = cpv.PrivacyDistortion(source, keep, budget=0, encoder=encoder).solve().channel
    assert same.apply(TABLE, seed=0).equals(TABLE)  # budget 0 changes nothing, key by key
    shuffled = TABLE[["ill", "kids", "note", "age"]]
    assert same.apply(shuffled, seed=0).equals(shuffled)
    moved = cpv.Channel(
        np.full(same.matrix.shape, 1 / len(same.outputs)), inputs=same.inputs,
        outputs=same.outputs, coding=same.coding, encoder=encoder,
    )  # fmt: skip
    released = moved.apply(TABLE, seed=1)
    keys = [key] if isinstance(key, str) else key
    others = [column for column in TABLE.columns if column not in keys]
    assert released[others].equals(TABLE[others])
    assert not released[keys].equals(TABLE[keys])
    assert list(released.columns) == list(TABLE.columns)
    with pytest.raises(cpv.InputError, match="no column 'age'"):
        moved.apply(TABLE.drop(columns="age"), seed=0)


def test_without_names_the_columns_are_counted_off():
    channel = cpv.Channel(np.eye(2), inputs=[(1, "f"), (2, "m")], outputs=[(1, "f"), (2, "m")])
    frame = pd.DataFrame({"a": [1, 2], "b": ["f", "m"]})
    assert channel.apply(frame, seed=0).equals(frame)
    with pytest.raises(cpv.InputError, match="3 columns where an input has 2"):
        channel.apply(frame.assign(c=0), seed=0)
