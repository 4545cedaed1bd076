"""Channels: the matrix and its labels, what it makes of lists and series, and its files."""

from __future__ import annotations

import csv
import datetime
import json
import math
import stat

import numpy as np
import pytest
from scipy import sparse, stats

import cvxprivacy as cpv
from cvxprivacy.errors import UnknownValueError
from cvxprivacy.release.channel import CountedChannel
from cvxprivacy.tables import Bins, TableSchema
from tests import referee
from tests.engines import ASKED, INF, NAN, made, pd, people

MATRIX = [[0.5, 0.3, 0.2, 0.0], [0.0, 0.15, 0.0, 0.85], [0.25, 0.25, 0.25, 0.25]]
INPUTS = ["a", "b", "c"]
OUTPUTS = ["p", "q", "r", "s"]


@pytest.fixture
def channel() -> cpv.Channel:
    return cpv.Channel(MATRIX, inputs=INPUTS, outputs=OUTPUTS, p_input=[0.2, 0.7, 0.1])


@pytest.fixture
def copier() -> cpv.Channel:
    """Each input has an output of its own, in another order."""
    return cpv.Channel([[0, 0, 1], [1, 0, 0], [0, 1, 0]], inputs="abc", outputs=["B", "C", "A"])


# ---- algebra -----------------------------------------------------------------------------


def test_the_released_marginal_and_the_posterior_are_bayes_rule(channel):
    assert channel.released_marginal == pytest.approx([0.125, 0.19, 0.065, 0.62])
    assert channel.posterior[2] == pytest.approx([8 / 13, 0, 5 / 13])
    never = cpv.Channel(
        [[0.5, 0.5, 0], [0.25, 0.75, 0]], inputs="ab", outputs="rst", p_input=[1, 4]
    )
    assert np.isnan(never.posterior[2]).all()
    without = cpv.Channel(MATRIX, inputs=INPUTS, outputs=OUTPUTS)
    for name in ("released_marginal", "posterior"):
        with pytest.raises(cpv.InputError, match="^p_input"):
            getattr(without, name)


def test_one_channel_after_another_is_their_product():
    first = cpv.Channel(
        np.array(MATRIX)[:, [0, 1, 3]] / np.sum(np.array(MATRIX)[:, [0, 1, 3]], 1, keepdims=True),
        inputs="abc", outputs="rst", p_input=[0.2, 0.7, 0.1], arbitrary=[0, 0, 1],
        schema=TableSchema(key=("x",)),
    )  # fmt: skip
    second = cpv.Channel([[1, 0], [0.5, 0.5], [0.3, 0.7], [0, 1]], inputs="tsrq", outputs="yn")
    both, expected = first.then(second), first.matrix @ [[0.3, 0.7], [0.5, 0.5], [1, 0]]
    assert both.matrix == pytest.approx(expected, abs=1e-15)
    assert (both.inputs, both.outputs, both.schema) == (list("abc"), list("yn"), first.schema)
    assert (both.arbitrary.tolist(), both.p_input.tolist()) == (
        [False, False, True],
        [0.2, 0.7, 0.1],
    )
    twice = second.apply(first.apply(["a"] * 20_000, seed=1), seed=2)
    assert stats.binomtest(int((twice == "y").sum()), 20_000, expected[0, 0]).pvalue > 1e-3
    with pytest.raises(UnknownValueError) as caught:
        second.then(first)
    assert (caught.value.argument, caught.value.where, caught.value.value) == ("other", 0, "y")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("draw", ["independent", "balanced"])
def test_outputs_of_one_name_are_one_output_and_drawn_as_before(kind, draw, channel, tmp_path):
    if kind == "sparse":
        channel = channel._with(matrix=sparse.csr_array(channel.matrix))
    merged = channel.relabelled("uvuv")
    merged.save(tmp_path / "c.json")
    values = [INPUTS[i] for i in np.random.default_rng(1).integers(0, 3, 500)]
    became = dict(zip(OUTPUTS, "uvuv", strict=True))
    drawn = [became[y] for y in channel.apply(values, seed=5, draw=draw).tolist()]
    for each in (merged, cpv.Channel.load(tmp_path / "c.json")):
        assert each.apply(values, seed=5, draw=draw).tolist() == drawn
        assert each.outputs == ["u", "v"]
        assert each._first_rows(3) == pytest.approx(np.array(MATRIX) @ np.eye(2)[[0, 1, 0, 1]])
        assert each.released_marginal == pytest.approx([0.19, 0.81])
    twice = merged.relabelled(["first", "only"]).relabelled(["one", "one"])
    assert (twice.outputs, set(twice.apply(values, seed=1))) == (["one"], {"one"})
    with pytest.raises(cpv.InputError, match="^labels"):
        channel.relabelled(["u"] * 9)


def test_a_mended_channel_of_whole_counts_stays_with_its_table_too(tmp_path):
    counted = CountedChannel([[1, 2, 0], [0, 2, 3]], inputs="ab", outputs="abc")
    merged = counted.relabelled("abb")
    assert sorted(merged.apply(list("aaabbbbb"), seed=3).tolist()) == list("abbbbbbb")
    for channel, kind in ((merged, cpv.Channel), (merged, type(merged)), (counted, CountedChannel)):
        kept = kind.load(channel.save(tmp_path / "c.json"))
        drawn = [each.apply(list("aaabbbbb"), seed=3).tolist() for each in (kept, channel)]
        assert type(kept) is type(channel)
        assert drawn[0] == drawn[1]


def test_the_matrix_is_a_copy_that_cannot_be_written(channel):
    matrix = np.eye(2)
    one = cpv.Channel(matrix, inputs=["a", "b"], outputs=["a", "b"])
    matrix[0] = [0, 1]
    assert one.matrix.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        one.matrix[0, 0] = 0.5
    assert repr(channel) == "Channel(3 inputs → 4 outputs)"
    frame = channel.to_frame()
    assert (frame.index.tolist(), frame.columns.tolist()) == (INPUTS, OUTPUTS)
    assert frame.loc["b", "s"] == 0.85


@pytest.mark.parametrize(
    ("row", "value"), [([0.5, 0.6], 1.1), ([0.5, 0.4], 0.9), ([-0.5, 1.5], -0.5), ([INF, 0], INF)]
)
def test_a_row_that_is_no_law_is_named(row, value):
    with pytest.raises(cpv.InputError, match=r"^matrix\[1") as caught:
        cpv.Channel([[1, 0], row], inputs=["a", "b"], outputs=[0, 1])
    assert caught.value.value == pytest.approx(value)


@pytest.mark.parametrize("matrix", [[[1, 0]], [[1], [1]], [1, 0], np.ones((2, 2, 1)), [["y", "n"]]])
def test_a_matrix_fits_its_labels(matrix):
    with pytest.raises(cpv.InputError) as caught:
        cpv.Channel(matrix, inputs=["a", "b"], outputs=[0, 1])
    assert caught.value.argument == "matrix"
    assert "(2, 2)" in caught.value.remedy


@pytest.mark.parametrize(
    ("argument", "value"),
    [("inputs", "aa"), ("p_input", [1, 0, 0]), ("p_input", [-1, 2]), ("arbitrary", [1]),
     ("arbitrary", [0, 2]), ("encoder", "xw"), ("decoder", "ab"), ("outputs", ["xy", 5])],
)  # fmt: skip
def test_what_makes_no_channel_is_refused_by_name(argument, value):
    options = {"inputs": [("a", 1), ("b", 2)], "outputs": [("a", 1), ("b", 2)]}
    options |= {"schema": TableSchema(key=("k", "l"))} if argument == "outputs" else {}
    with pytest.raises(cpv.InputError) as caught:
        cpv.Channel(np.eye(2), **options | {argument: value})
    assert caught.value.argument == argument


def test_only_letters_of_a_decoder_have_another_column(channel):
    with pytest.raises(cpv.InputError, match="^column: it releases key letters"):
        channel.named("V")


# ---- lists and series --------------------------------------------------------------------


def test_each_value_gets_the_row_of_its_label(copier):
    assert list(copier.apply(["b", "a", "c", "a"], seed=0)) == ["B", "A", "C", "A"]
    assert list(copier.apply(np.array(["c", "c", "b"]), seed=0)) == ["C", "C", "B"]
    assert list(copier.apply(("a",), seed=0)) == ["A"]
    assert len(copier.apply([], seed=0)) == 0
    for values in ("abc", b"a", 5, None):
        with pytest.raises(cpv.InputError, match="^values"):
            copier.apply(values, seed=0)


@pytest.mark.parametrize("index", [[7, 7, -1], pd.date_range("2026-01-01", periods=3, name="day")])
@pytest.mark.parametrize("dtype", [object, "category"])
def test_a_series_keeps_its_index_and_name(index, dtype, copier):
    values = pd.Series(["b", "a", "c"], index=index, name="key", dtype=dtype)
    released = copier.apply(values, seed=0)
    assert isinstance(released, pd.Series)
    assert (released.tolist(), values.tolist()) == (["B", "A", "C"], ["b", "a", "c"])
    assert released.index.equals(values.index)
    assert (released.name, released.index.name) == ("key", values.index.name)
    empty = copier.apply(values[:0].rename(None), seed=0)
    assert isinstance(empty, pd.Series)
    assert (len(empty), empty.name) == (0, None)


@pytest.mark.parametrize(
    "outputs",
    [[10, 20], ["0", 0], [True, "unknown"], [2.5, "none", None], [0, "1-4", (5, 9)], [1, None]],
)
def test_labels_of_several_types_keep_their_types(outputs):
    inputs = list("abc")[: len(outputs)]
    channel = cpv.Channel(np.eye(len(outputs)), inputs=inputs, outputs=outputs)
    for released in (channel.apply(inputs, seed=0), channel.apply(pd.Series(inputs), seed=0)):
        assert list(released) == outputs
        assert [isinstance(y, str) for y in released] == [isinstance(y, str) for y in outputs]


def test_tuples_are_labels():
    rows = cpv.Channel([[0, 1], [1, 0]], inputs=[(1, "f"), (2, "m")], outputs=[(1, "f"), (2, "m")])
    assert list(rows.apply([(2, "m"), (1, "f")], seed=0)) == [(1, "f"), (2, "m")]
    released = rows.apply(pd.Series([(2, "m"), (1, "f")], index=[5, 3]), seed=0)
    assert (released.loc[5], released.loc[3]) == ((1, "f"), (2, "m"))
    assert rows.apply(pd.Series([[1, "f"]]), seed=0).tolist() == [(2, "m")]
    numbers = cpv.Channel([[0, 1], [1, 0]], inputs=[(1, 2), (3, 4)], outputs=["x", "y"])
    assert list(numbers.apply(np.array([[1, 2], [3, 4], [1, 2]]), seed=0)) == ["y", "x", "y"]
    with pytest.raises(UnknownValueError, match=r"^values\[1\]: \(1, 'm'\) "):
        rows.apply(pd.Series([(1, "f"), (1, "m")]), seed=0)


@pytest.mark.parametrize("kind", [list, np.array, lambda v: pd.Series(v, index=[10, 2, 0, 1])])
def test_an_unknown_value_is_named_with_its_row_and_nothing_is_drawn(channel, kind):
    rng = np.random.default_rng(8)
    with pytest.raises(UnknownValueError) as caught:
        channel.apply(kind(["a", "b", "z", "y"]), seed=rng)
    assert (caught.value.argument, caught.value.where, caught.value.value) == ("values", 2, "z")
    assert "rebuild" in caught.value.remedy
    assert rng.random() == np.random.default_rng(8).random()


@pytest.mark.parametrize("value", [math.nan, None, pd.NA, {}, ["a"], 1, "A", ""])
def test_nothing_is_taken_for_a_letter_that_it_is_not(channel, value):
    with pytest.raises(UnknownValueError) as caught:
        channel.apply(["a", value], seed=0)
    assert caught.value.where == 1


# ---- what is drawn -----------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 2**52 - 1])
@pytest.mark.parametrize(
    "row",
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.3, 0.0, 0.7, 0.0], [0.0, *[0.1] * 10, 0.0],
     [0.0, *[1 / 49] * 49, 0.0], [0.0, 1 - 1e-12, 0.0], [0.0, 1 + 1e-12, 0.0]],
)  # fmt: skip
def test_a_letter_of_probability_zero_is_not_drawn_at_the_edges(row, value):
    channel = cpv.Channel([row], inputs=["a"], outputs=range(len(row)))
    (drawn,) = channel._draw(np.array([0]), np.array([[value]]))
    assert row[drawn] > 0


def test_a_seed_decides_everything_and_a_generator_goes_on(channel):
    values, rng = ["c"] * 100, np.random.default_rng(5)
    once, again, other = (list(channel.apply(values, seed=s)) for s in (5, 5, 6))
    assert once == again != other
    assert channel.apply(pd.Series(values), seed=5).tolist() == once
    assert channel.apply(values[:40], seed=5).tolist() == once[:40]
    first, second = (list(channel.apply(values, seed=rng)) for _ in range(2))
    assert first != second
    assert list(channel.apply(values, seed=np.random.default_rng(5))) == first
    for seed in (-1, "five", 1.5, [1, 2], np.random.RandomState(1)):
        with pytest.raises(cpv.InputError, match="^seed"):
            channel.apply(["a"], seed=seed)


def test_without_a_seed_nobody_repeats_a_release(channel):
    values = ["c"] * 400
    assert list(channel.apply(values)) != list(channel.apply(values, seed=None))
    names = list(range(400))  # nor by the names of records: their key is drawn, too
    assert list(channel.apply(values, row_id=names)) != list(channel.apply(values, row_id=names))


# ---- letters of probability zero ---------------------------------------------------------

# w = 1 and x = 2 never occur; besides them (w, x) = (0, 3) does not
SPARSE = np.array(
    [[0.30, 0.05, 0.00, 0.00], [0.00, 0.00, 0.00, 0.00], [0.05, 0.10, 0.00, 0.25],
     [0.05, 0.15, 0.00, 0.05]]
)  # fmt: skip
W, X = ["w0", "never", "w2", "w3"], ["x0", "x1", "none", "x3"]
PRICES = np.array([[0.0, 1, 5, 2], [3, 0, 1, 1], [1, 1, 0, 1], [2, 4, 1, 0.5]])


def mutual(joint: np.ndarray) -> float:
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return sum(p * math.log2(p / q) for p, q in zip(joint.flat, product.flat, strict=True) if p > 0)


@pytest.mark.filterwarnings("ignore::cvxprivacy.errors.UnseenValueWarning")
@pytest.mark.parametrize("budget", [None, 0.6, 5.0])  # the least; 5 is beyond the most
def test_impossible_letters_are_restored_as_arbitrary_rows(budget):
    source = cpv.DiscreteSource(SPARSE, w=W, x=X)
    if budget is None:
        budget = cpv.PrivacyDistortion(source, PRICES, budget=1).least_distortion
        assert budget == pytest.approx(0.3 * 0.5, abs=1e-12)  # only x3 always costs
    solution = cpv.PrivacyDistortion(source, PRICES, budget=budget).solve(accuracy="high")
    referee.check(solution)
    channel, law = solution.channel, SPARSE.sum(axis=0)
    assert (channel.inputs, channel.outputs, channel.matrix.shape) == (X, X, (4, 4))
    assert channel.arbitrary.tolist() == [False, False, True, False]
    assert channel.p_input == pytest.approx(law, abs=1e-15)
    assert channel.released_marginal == pytest.approx(law @ channel.matrix, abs=1e-15)
    assert channel.matrix[2] == pytest.approx(channel.released_marginal, abs=1e-12)
    assert mutual(SPARSE @ channel.matrix) == pytest.approx(solution.value, abs=1e-11)
    error = (law[:, None] * PRICES * channel.matrix).sum()
    assert error == pytest.approx(float(solution.distortion), abs=1e-12)
    released = channel.apply(["none"] * 20_000, seed=4)
    for label, share in zip(X, channel.released_marginal, strict=True):
        assert (released == label).mean() == pytest.approx(share, abs=0.02)


def test_an_encoder_of_both_has_a_row_for_every_pair():
    prices = np.stack([PRICES, PRICES.T, PRICES + 1, PRICES * 2])  # d(w, x, x̂)
    source = cpv.DiscreteSource(SPARSE, w=W, x=X)
    solution = cpv.PrivacyDistortion(source, prices, budget=0.9, encoder="wx").solve()
    referee.check(solution)
    channel = solution.channel
    assert channel.inputs == [(w, x) for w in W for x in X]
    assert channel.arbitrary.tolist() == (SPARSE.ravel() == 0).tolist()
    assert channel.p_input == pytest.approx(SPARSE.ravel(), abs=1e-15)
    for row in np.flatnonzero(SPARSE.ravel() == 0):
        assert channel.matrix[row] == pytest.approx(channel.released_marginal, abs=1e-12)
    cube = channel.matrix.reshape(4, 4, 4)
    joint = np.einsum("wx,wxy->wy", SPARSE, cube)
    assert mutual(joint) == pytest.approx(solution.value, abs=1e-11)
    error = np.einsum("wx,wxy,wxy", SPARSE, cube, prices)
    assert error == pytest.approx(float(solution.distortion), abs=1e-12)
    pairs = pd.Series([("w0", "x0"), ("w2", "x3")], index=[4, 4])
    assert set(channel.apply(pairs, seed=0)) <= set(X)
    with pytest.raises(UnknownValueError, match=r"\('x0', 'w0'\)"):
        channel.apply([("x0", "w0")], seed=0)


# ---- files -------------------------------------------------------------------------------

DAY, HOUR = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    "letters",
    [["a", "é☃"], [1, 2**70], [0.1, 1e-300], [True, False], ["a", None], [(1, "f"), (2, None)],
     [("u", (1, "f")), ("v", (2.5, True))], [DAY, HOUR], [(DAY, 1), ()]],
    ids=str,
)  # fmt: skip
def test_a_channel_is_read_as_it_was_saved(letters, tmp_path):
    matrix = [[0.1, 0.9], [1 / 3, 2 / 3]]
    one = cpv.Channel(matrix, inputs=letters, outputs=letters, arbitrary=[True, False])
    path = one.save(tmp_path / "channel.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = cpv.Channel.load(path)
    assert repr((again.inputs, again.outputs)) == repr((letters, letters))
    assert again.matrix.tolist() == matrix
    assert (again.arbitrary.tolist(), again.p_input, again.schema) == ([True, False], None, None)


INSTANT = pd.Timestamp("2026-01-01") + pd.Timedelta(1)  # a nanosecond


@pytest.mark.parametrize("label", [np.int64(3), INF, NAN, b"a", INSTANT, "\ud800"], ids=repr)
def test_letters_come_back_or_are_refused(label, tmp_path):
    one = cpv.Channel([[1.0]], inputs=[label], outputs=["x"])
    try:
        path = one.save(tmp_path / "channel.json")
    except cpv.InputError:
        assert list(tmp_path.iterdir()) == []
        assert not isinstance(label, np.int64)  # a number like any other
    else:
        (again,) = cpv.Channel.load(path).inputs
        assert again == label or again != again != label


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return an encoder of (w, x), with bands and a missing level, and its file."""
    source = cpv.DiscreteSource.from_table(made("pandas", people()), **ASKED)
    measure = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    one = cpv.PrivacyDistortion(source, measure, budget=0.3, encoder="wx").solve().channel
    return one, one.save(tmp_path_factory.mktemp("saved") / "channel.json")


def test_a_file_of_the_first_version_is_read(tmp_path):
    """As it was written when a schema was called coding and there were no decoders."""
    coding = {"sensitive": ["ill"], "key": ["age"], "side": [], "weights": None, "missing": "drop",
              "bins": [["age", ["-inf", 20, "inf"]]], "reading": {"format": "text"}}  # fmt: skip
    path, bands = tmp_path / "old.json", ["< 20", "≥ 20"]
    path.write_text(json.dumps(
        {"schema": "cvxprivacy channel 1", "inputs": bands, "outputs": bands, "encoder": "x",
         "matrix": [[1.0, 0.0], [0.5, 0.5]], "p_input": [0.25, 0.75], "arbitrary": [False, True],
         "coding": coding}
    ))  # fmt: skip
    one = cpv.Channel.load(path)
    assert one.schema == TableSchema(
        ("age",), ("ill",), bins={"age": Bins((-INF, 20, INF))}, missing="drop",
        reading={"format": "text"},
    )  # fmt: skip
    assert (one.decoder, one.arbitrary.tolist()) == (None, [False, True])
    assert one.apply(pd.DataFrame({"age": [3, 19]}), seed=0)["age"].tolist() == ["< 20"] * 2
    assert json.loads(one.save(path).read_text())["coding"] == coding


DAMAGE = [
    {"schema": "another"}, {"schema": ...}, {"inputs": 5}, {"inputs": []}, {"inputs": "abc"},
    {"outputs": 5}, {"outputs": ["ab"] * 9}, {"matrix": 5},
    {"matrix": [[10**400]]}, {"matrix": [[0.5] * 9] * 27}, {"p_input": [1]}, {"p_input": ["no"]},
    {"arbitrary": ["no"] * 27}, {"arbitrary": 5}, {"encoder": "y"}, {"coding": []}, {"coding": {}},
    {"coding": {"key": "age"}}, {"coding": {"key": []}}, {"coding": {"key": [5]}},
    {"coding": {"bins": 5}}, {"coding": {"bins": [["age", [1]]]}}, {"coding": {"missing": "x"}},
    {"coding": {"bins": [["age", ["a", "b"]]]}}, {"coding": {"weights": 5}},
    {"inputs": [{"date": 5}]}, {"inputs": [{"when": "x"}]},
]  # fmt: skip


@pytest.mark.parametrize(
    "damage", [*DAMAGE, "cut", "empty", "deep", "bytes"], ids=lambda d: str(d)[:60]
)
def test_a_damaged_file_is_no_channel(damage, saved, tmp_path):
    text, path = saved[1].read_text(), tmp_path / "channel.json"
    if isinstance(damage, dict):
        document, ((field, value),) = json.loads(text), damage.items()
        document[field] = document[field] | value if value and isinstance(value, dict) else value
        text = json.dumps({k: v for k, v in document.items() if v is not ...})
    text = {"cut": text[:-20], "empty": "", "deep": "[" * 100_000}.get(str(damage), text)
    path.write_bytes(b"\xff\xfe\x00" if damage == "bytes" else text.encode())
    with pytest.raises(cpv.InputError, match="^path: .*channel.json"):
        cpv.Channel.load(path)
    with pytest.raises(cpv.InputError, match="cannot be read"):
        cpv.Channel.load(tmp_path / "nowhere.json")


def test_sdcmicro_gets_rows_and_columns_in_one_order(tmp_path):
    letters, path = [("[0, 20)", "f"), ("[0, 20)", None), ('say "hi"', "m")], tmp_path / "pd.csv"
    matrix = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.25, 0.25, 0.5]])
    cpv.Channel(matrix, inputs=letters, outputs=letters[::-1]).to_sdcmicro(path)
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["", "[0, 20)|f", "[0, 20)|NA", 'say "hi"|m']
    assert [row[0] for row in rows] == header[1:]
    assert [list(map(float, row[1:])) for row in rows] == matrix[:, ::-1].tolist()


@pytest.mark.parametrize(("inputs", "outputs"), [(["a|b", ("a", "b")],) * 2, ("ab", "ac")])
def test_sdcmicro_takes_no_other_letters(inputs, outputs, tmp_path):
    with pytest.raises(cpv.InputError):
        cpv.Channel(np.eye(2), inputs=inputs, outputs=outputs).to_sdcmicro(tmp_path / "pd.csv")
    assert list(tmp_path.iterdir()) == []
