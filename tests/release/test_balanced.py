"""Balanced draws: each record's own probabilities, and counts that hardly scatter."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy import mechanisms
from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.release.balanced import _Flow, balanced, dealt
from cvxprivacy.release.draws import Draws, numerators
from cvxprivacy.tables import TableSchema
from tests.lengths import seeds

CHANNEL = cpv.Channel([[0.3, 0.7, 0.0], [0.1, 0.25, 0.65]], inputs="ab", outputs="xyz")


def instance(rng, most=60, letters=5):
    n, m, values = (int(k) for k in rng.integers(1, letters + 1, 3))
    size = int(rng.integers(0, most))
    laws = numerators(rng.dirichlet(np.full(m, rng.choice([0.2, 1, 5])), n))
    return laws, rng.integers(0, n, size), rng.integers(0, values, size)


def expected(laws, rows_, w):
    """Return how many records of (w, s) are expected as each output, in parts of 2⁻⁵²."""
    counts = np.zeros((6, *laws.shape), dtype=object)
    for s, value in zip(rows_.tolist(), w.tolist(), strict=True):
        counts[value, s] += laws[s].astype(object)
    return counts


@pytest.mark.parametrize("seed", seeds(30, 4))
def test_every_count_is_within_one_of_its_expectation(seed):
    draws, rng = Draws(seed), np.random.default_rng(seed)
    for trial in range(100):
        laws, s, w = instance(rng)
        y = balanced(laws, s, w.tolist(), draws.fresh(str(trial)))
        counts, means = np.zeros((6, *laws.shape), dtype=object), expected(laws, s, w)
        np.add.at(counts, (w, s, y), DENOMINATOR)
        for axes in ((), (1,), (0, 1)):  # (w, s, y), (w, y), y
            off = (counts - means).sum(axis=axes) if axes else counts - means
            assert (abs(off) < DENOMINATOR).all()


class Chosen(int):
    """A number below a bound of which the test decides on which side of another it is."""

    def __new__(cls, low, bound, chances):
        number = super().__new__(cls, 0)
        number.low, number.bound, number.chances = low, bound, chances
        return number

    def __lt__(self, other):
        self.chances.append(Fraction(other if self.low else self.bound - other, self.bound))
        return self.low


def outcomes(laws, cells, sizes, groups):
    """Yield all that may become of counts, with their exact probabilities."""
    sides = [()]
    while sides:
        start, chances = sides.pop(), []

        def below(bound, start=start, chances=chances):
            low = start[len(chances)] if len(chances) < len(start) else True
            return Chosen(low, bound, chances)

        flow = _Flow(laws, cells, sizes, groups)
        flow.make_whole(below)
        sides += [(*start, *[True] * k, False) for k in range(len(chances) - len(start))]
        yield flow.outputs(), np.prod(chances) if chances else Fraction(1)


@pytest.mark.parametrize("seed", seeds(60, 6))
def test_the_mean_of_all_that_may_be_counted_is_the_expectation(seed):
    """Exactly: every record of a cell, in a random order, has the channel's probabilities."""
    rng = np.random.default_rng(seed)
    laws, s, w = instance(rng, 6, 3)
    keys = w * len(laws) + s
    cells, sizes = np.unique(keys, return_counts=True)
    ends = np.cumsum([0, *sizes])
    means = np.full((len(cells), laws.shape[1]), Fraction(0))
    total = Fraction(0)
    for outputs, chance in outcomes(laws, cells, sizes, 6):
        total += chance
        for cell, (start, stop) in enumerate(pairwise(ends)):
            for y in outputs[start:stop]:
                means[cell, y] += chance
    assert total == 1
    for key, size, mean in zip(cells, sizes, means, strict=True):
        law = laws[key % len(laws)]
        assert [x / int(size) for x in mean] == [Fraction(int(k), DENOMINATOR) for k in law]


def test_each_record_has_its_own_probabilities():
    """Also in the first and in the last place of its cell."""
    letters, draws, count = ["a", "a", "b", "a", "b"], Draws(1), 600
    laws, s = numerators(CHANNEL.matrix), np.array([0, 0, 1, 0, 1])
    drawn = [balanced(laws, s, [0, 0, 0, 1, 1], draws.fresh(str(i))) for i in range(count)]
    shares = np.stack([(np.array(drawn) == y).mean(axis=0) for y in range(3)])
    truth = np.array([CHANNEL.matrix["ab".index(letter)] for letter in letters]).T
    assert (abs(shares - truth) < 5 * np.sqrt(truth * (1 - truth) / count) + 1e-12).all()


def test_estimates_scatter_less_than_of_independent_draws():
    letters, laws = ["a"] * 30 + ["b"] * 70, []
    for draw in ("independent", "balanced"):
        released = [
            CHANNEL.apply(letters, seed=np.random.default_rng(i), draw=draw) for i in range(150)
        ]
        counts = np.array([[np.sum(table == y) for y in "xyz"] for table in released])
        laws.append(counts.var(axis=0))
    assert (laws[1] < 0.05 * laws[0]).all()


def named_people():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"ill": rng.choice(["no", "yes", "?"], 90), "key": rng.choice(list("abc"), 90)}
    )
    return frame.assign(id=[f"r{i}" for i in range(90)])


def test_names_make_the_table_the_same_in_any_order():
    frame = named_people()
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="key")
    solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.3).solve()
    how = {"seed": 4, "row_id": "id", "draw": "balanced"}
    released = solution.channel.apply(frame, **how)
    shuffled = solution.channel.apply(frame.sample(frac=1, random_state=1), **how)
    pd.testing.assert_frame_equal(released, shuffled.sort_index())
    sizes = np.array([(released["key"] == y).sum() for y in source.x])
    assert (abs(sizes - solution.channel.released_marginal * 90) < 1 + 1e-9).all()
    without = frame.drop(columns="ill")  # next month's table, whose ill is not there yet
    assert len(solution.channel.apply(without, **how)) == 90


def test_a_promise_of_independent_draws_is_kept(tmp_path):
    source = cpv.DiscreteSource([[0.3, 0.1], [0.2, 0.4]], x="ab")
    problem = cpv.MinimumDistortion(source, cpv.hamming("ab"), [cpv.LocalPrivacy(1)])
    channel = problem.solve().channel
    channel.save(tmp_path / "c.json")
    channels = (
        channel, cpv.Channel.load(tmp_path / "c.json"), channel.relabelled("cd"),
        mechanisms.randomised_response("ab", 1.0),
        channel.then(cpv.Channel(np.eye(2), inputs="ab", outputs="ab")),
        cpv.Channel(np.eye(2), inputs="ab", outputs="ab").then(channel),
    )  # fmt: skip
    for private in channels:
        assert private.independent
        with pytest.raises(cpv.InputError, match="holds of independent draws alone") as caught:
            private.apply([private.inputs[0]], draw="balanced")
        assert caught.value.argument == "draw"
    free = cpv.MinimumDistortion(source, cpv.hamming("ab"), [cpv.DeltaDisclosure(0.2)]).solve()
    assert not free.channel.independent
    assert len(free.channel.apply(["a"] * 9, draw="balanced")) == 9


def test_what_cannot_be_counted_first_is_refused():
    pl = pytest.importorskip("polars")
    channel = cpv.Channel(
        [[0.5, 0.5], [0.5, 0.5]], inputs="ab", outputs="ab", schema=TableSchema(key=("key",))
    )
    lazy = pl.LazyFrame({"key": ["a", "b"]})
    with pytest.raises(cpv.InputError, match="collect it into a frame") as caught:
        channel.apply(lazy, draw="balanced")
    assert caught.value.argument == "draw"
    with pytest.raises(cpv.InputError, match="draw"):
        channel.apply(["a"], draw="even")


def test_a_sparse_channel_is_drawn_alike():
    from scipy import sparse

    laws, s, w = instance(np.random.default_rng(8))
    dense = balanced(laws, s, w.tolist(), Draws(2))
    assert (balanced(sparse.csr_array(laws), s, w.tolist(), Draws(2)) == dense).all()


@pytest.mark.parametrize("words", [1, 2])
def test_records_are_dealt_in_the_order_of_their_numbers_cell_by_cell(words):
    """However many there are to a cell, and where numbers are equal, by the next or the place."""
    rng = np.random.default_rng(0)
    for count, most in ((3, 2**52), (3, 40), (90, 2**52)):
        cells, numbers = rng.integers(0, count, 600), rng.integers(0, most, (words, 600))
        outputs = rng.integers(0, 5, 600)
        order = sorted(range(600), key=lambda i: (cells[i], *numbers[:, i], i))
        expected = np.empty(600, int)
        expected[order] = outputs
        assert dealt(cells, outputs, numbers).tolist() == expected.tolist()
    none = np.zeros(0, np.int64)
    assert len(dealt(none, none, np.zeros((words, 0), np.int64))) == 0
