"""Masking methods: sizes and optima of partitions, ranks, moments, counts, and bad tables."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import cvxprivacy as cpv
from cvxprivacy.microdata import partitions
from cvxprivacy.microdata.partitions import hansen_mukherjee, mdav, means, mu_approx, within
from tests import referee
from tests.test_architecture import ROOT

masking = pytest.importorskip(
    "cvxprivacy.microdata.masking", reason="the extra `masking` is not installed"
)
checks = pytest.importorskip("sklearn.utils.estimator_checks")

GROUPING = (masking.MDAV, masking.MuApprox, masking.HansenMukherjee)
ALL = (*GROUPING, masking.RankSwapping, masking.AdditiveNoise, masking.PRAM, masking.OptimalPRAM)


def same_partition(one, other):
    """Tell whether two labellings make the same groups."""
    pairs = set(zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


@st.composite
def tables(draw, most=60, columns=3):
    """Draw records, many of them tied, and a group size."""
    n, d = draw(st.integers(1, most)), draw(st.integers(1, columns))
    k = draw(st.integers(1, n))
    seed, levels = draw(st.integers(0, 10**6)), draw(st.sampled_from([1, 2, 3, 10, 10**6]))
    data = np.random.default_rng(seed).integers(0, levels, size=(n, d)).astype(float)
    return data, k


# ---- partitions --------------------------------------------------------------------------


@given(tables())
@settings(max_examples=150)
def test_sizes_of_groups(table):
    data, k = table
    for partition, most in ((mdav, 2 * k - 1), (mu_approx, max(2 * k - 1, 3 * k - 5))):
        labels = partition(data, k)
        sizes = np.bincount(labels)
        assert labels.shape == (len(data),)
        assert k <= sizes.min()
        assert sizes.max() <= most
    sizes = np.bincount(hansen_mukherjee(data[:, 0], k))
    assert k <= sizes.min()
    assert sizes.max() <= 2 * k - 1


@given(tables(columns=1))
@settings(max_examples=100)
def test_no_partition_of_one_attribute_has_less_error_than_the_optimum(table):
    data, k = table
    least = within(data, hansen_mukherjee(data, k))
    scale = max(1.0, float((data**2).sum()))
    for partition in (mdav, mu_approx):
        assert within(data, partition(data, k)) >= least - 1e-12 * scale


def every_partition(items, k):
    """Yield all partitions of a list into parts of at least k."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [i for i in rest if i not in others]
            if not left or len(left) >= k:
                for partition in every_partition(left, k):
                    yield [[first, *others], *partition]


@pytest.mark.parametrize(("n", "k"), [(5, 1), (6, 2), (7, 2), (8, 3), (9, 4), (9, 3), (4, 4)])
def test_the_optimum_of_one_attribute_is_the_least_of_all_partitions(n, k):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 6, n).astype(float) if seed % 2 else rng.normal(size=n) ** 3
        errors = []
        for partition in every_partition(list(range(n)), k):
            errors.append(sum(((x[part] - x[part].mean()) ** 2).sum() for part in partition))
        found = hansen_mukherjee(x, k)
        assert within(x, found) == pytest.approx(min(errors), abs=1e-12)
        assert (np.diff(found[np.argsort(x, kind="stable")]) >= 0).all()  # groups are intervals


def test_the_optimum_survives_an_offset():
    x = np.random.default_rng(0).normal(size=200)
    near = hansen_mukherjee(x, 3)
    shifted = x + 1e6
    assert within(shifted, hansen_mukherjee(shifted, 3)) == pytest.approx(within(x, near), rel=1e-6)


def naive_mdav(data, k):
    """MDAV as it is written down, record by record."""
    left, labels, group = list(range(len(data))), [0] * len(data), 0

    def near(point, some):
        return sorted(some, key=lambda i: (float(((data[i] - point) ** 2).sum()), i))

    while len(left) >= 3 * k:
        r = near(np.mean([data[i] for i in left], axis=0), left)[-1]
        one = near(data[r], left)[:k]
        rest = [i for i in left if i not in one]
        s = near(data[r], rest)[-1]
        other = near(data[s], rest)[:k]
        for members in (one, other):
            for i in members:
                labels[i] = group
            group += 1
        left = [i for i in rest if i not in other]
    if len(left) >= 2 * k:
        r = near(np.mean([data[i] for i in left], axis=0), left)[-1]
        for i in (one := near(data[r], left)[:k]):
            labels[i] = group
        left, group = [i for i in left if i not in one], group + 1
    for i in left:
        labels[i] = group
    return labels


@pytest.mark.parametrize("d", [1, 2, 4])
def test_mdav_is_what_is_written_down(d):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 70))
        data, k = rng.normal(size=(n, d)), int(rng.integers(1, n + 1))
        assert same_partition(mdav(data, k), naive_mdav(data, k)), (n, k)


def test_mdav_by_hand():
    # mean 6.2: 20 is farthest; with it 9; then, farthest from 20, 0 with 1
    assert mdav([0.0, 1.0, 9.0, 20.0, 1.0], 2).tolist() == [1, 1, 0, 0, 1]
    line = [0.0, 1.0, 2.0, 3.0, 10.0, 11.0]  # 3k records: both ends, and the middle
    assert same_partition(mdav(line, 2), [0, 0, 2, 2, 1, 1])


def test_ties_fall_to_the_first_records():
    data = np.zeros((7, 2))
    data[6] = 1.0
    # 6 is farthest, 0 its nearest; farthest from 6 are all others, first 1, with 2; the rest
    assert mdav(data, 2).tolist() == [0, 1, 1, 2, 2, 2, 0]


@given(tables())
@settings(max_examples=60)
def test_the_forest_has_short_edges_and_no_small_tree(table):
    data, k = table
    edges = partitions._forest(data, k)
    distance = ((data[:, None] - data) ** 2).sum(axis=2)
    tree = np.arange(len(data))
    for a, b in edges:
        # nothing but its own tree, of fewer than k records, was nearer
        nearer = distance[a] < distance[a, b]
        assert nearer.sum() <= k - 1
        assert tree[a] != tree[b]  # no circle
        tree[tree == tree[a]] = tree[b]
    assert np.unique(tree, return_counts=True)[1].min() >= k
    assert len({a for a, _ in edges}) == len(edges)  # one edge from each record at most


def test_the_forest_does_not_depend_on_the_size_of_batches(monkeypatch):
    data = np.random.default_rng(3).normal(size=(300, 2))
    whole = mu_approx(data, 20)
    monkeypatch.setattr(partitions, "BATCH", 64)
    assert (mu_approx(data, 20) == whole).all()


def test_memory_is_linear_in_the_records():
    data = np.random.default_rng(0).normal(size=(4000, 2))
    peaks = []
    for k in (20, 2000):  # 2000 neighbours of 4000 records are 128 MB
        tracemalloc.start()
        mu_approx(data, k)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 10e6
    assert peaks[1] < 64e6
    tracemalloc.start()
    mdav(data, 20)
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 9])
def test_trees_of_every_shape_are_cut(k):
    rng = np.random.default_rng(k)
    for size in range(k, 8 * k):
        records = rng.normal(size=(size, 2))
        star = [(i, 0) for i in range(1, size)]
        path = [(i, i - 1) for i in range(1, size)]
        legs = [(i, max(i - (k - 1), 0)) for i in range(1, size)]  # subtrees of up to k − 1
        loose = [(i, int(rng.integers(i))) for i in range(1, size)]
        for edges in (star, path, legs, loose):
            sizes = np.bincount(partitions._cut(records, edges, k))
            assert k <= sizes.min()
            assert sizes.max() <= max(2 * k - 1, 3 * k - 5)


def test_means_of_groups():
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(50, 3)) * 1e3, rng.integers(0, 7, 50)
    expected = pd.DataFrame(data).groupby(labels).transform("mean").to_numpy()
    assert means(data, labels) == pytest.approx(expected, rel=1e-12)
    tied = np.full((3, 1), 0.1)  # whose sum is no multiple of 0.1
    assert (means(tied, np.zeros(3, int)) == 0.1).all()


@pytest.mark.parametrize("partition", [mdav, mu_approx, hansen_mukherjee])
def test_partitions_refuse(partition):
    for k in (0, 2.5, "three", None):
        with pytest.raises(cpv.InputError, match="^k: "):
            partition([1.0, 2.0, 3.0], k)
    with pytest.raises(cpv.InputError, match="4 from 3 samples; pass at most 3"):
        partition([1.0, 2.0, 3.0], 4)
    with pytest.raises(cpv.InputError, match=r"data\[1\]: nan"):
        partition([1.0, np.nan], 1)
    assert partition([5.0], 1).tolist() == [0]
    if partition is not mu_approx:  # which may leave five together
        assert np.bincount(partition([5.0] * 9, 3)).tolist() == [3, 3, 3]
    with pytest.raises(cpv.InputError, match="one attribute"):
        hansen_mukherjee(np.zeros((4, 2)), 2)


# ---- microaggregation --------------------------------------------------------------------


@pytest.mark.parametrize("kind", GROUPING)
def test_microaggregation_keeps_means_and_gives_k_of_each(kind):
    data = np.random.default_rng(1).normal(size=(101, 4)) * [1, 10, 100, 1000]
    method = kind(k=5)
    masked = method.fit_transform(data)
    assert masked.mean(axis=0) == pytest.approx(data.mean(axis=0), rel=1e-9, abs=1e-9)
    assert not hasattr(method, "transform")
    labels = np.atleast_2d(method.labels_.T).T
    assert labels.shape == (101, 4 if kind is masking.HansenMukherjee else 1)
    for places, group in zip(method.groups_, labels.T, strict=True):
        for value in np.unique(group):
            members = masked[group == value][:, places]
            assert len(members) >= 5
            assert (members == members[0]).all()
            assert members[0] == pytest.approx(data[group == value][:, places].mean(axis=0))
    assert (kind(k=1).fit_transform(data) == data).all()


def test_new_records_would_break_the_groups():
    """Why there is no transform: the nearest mean is another group's for many records."""
    data = np.random.default_rng(0).normal(size=(1000, 3))
    method = masking.MDAV(k=5)
    masked = method.fit_transform(data)
    centres = np.unique(masked, axis=0)
    nearest = ((data[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    sizes = np.bincount(nearest, minlength=len(centres))
    assert (sizes[nearest] < 5).sum() > 100


def test_groups_of_attributes():
    data = np.random.default_rng(2).normal(size=(40, 13))
    method = masking.MDAV(k=4, groups=3)
    masked = method.fit_transform(data)
    assert [len(g) for g in method.groups_] == [3, 3, 3, 4]  # in order, the last takes the rest
    assert method.labels_.shape == (40, 4)
    alone = masking.MDAV(k=4).fit(data[:, :3])
    assert (masked[:, :3] == alone.fit_transform(data[:, :3])).all()
    assert masking.MDAV(k=4, groups=99).fit(data).groups_ == [list(range(13))]
    each = masking.MDAV(k=4, groups=1).fit_transform(data)
    assert (each[:, [5]] == masking.MDAV(k=4).fit_transform(data[:, [5]])).all()
    frame = pd.DataFrame(data[:, :4], columns=list("abcd"))
    named = masking.MuApprox(k=4, groups=[["d", "a"], ["c", "b"]])
    assert list(named.fit_transform(frame).columns) == list("abcd")
    assert named.groups_ == [[3, 0], [2, 1]]


def test_standard_deviations_decide_distances():
    data = np.array([[0, 0], [1, 1000], [0.1, 900], [1, 100]], dtype=float)
    raw = masking.MDAV(k=2, standardise=False).fit(data).labels_
    scaled = masking.MDAV(k=2).fit(data).labels_
    assert same_partition(raw, [0, 1, 1, 0])
    assert same_partition(scaled, masking.MDAV(k=2).fit(data * [1, 1e-6]).labels_)
    constant = np.column_stack([data, np.full(4, 7.0)])
    assert same_partition(masking.MDAV(k=2).fit(constant).labels_, scaled)
    assert (masking.MDAV(k=2).fit_transform(constant)[:, 2] == 7).all()


# ---- frames ------------------------------------------------------------------------------


def frames():
    pandas = pd.DataFrame(
        {"age": [31, 44, 25, 70, 18, 52], "pay": [1.5, 2.0, 0.3, 9.0, 0.1, 4.4]},
        index=list("uvwxyz"),
    )
    yield "pandas", pandas
    polars = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    yield "polars", polars.from_pandas(pandas)
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    yield "pyarrow", pyarrow.Table.from_pandas(pandas, preserve_index=False)


@pytest.mark.parametrize("kind", ALL)
def test_a_frame_comes_back_in_its_flavour(kind):
    random = {} if kind in GROUPING else {"random_state": 5}
    results = []
    for flavour, frame in frames():
        method = kind(**random)
        masked = method.fit_transform(frame)
        assert type(masked) is type(frame), flavour
        assert list(method.get_feature_names_out()) == ["age", "pay"]
        if flavour == "pandas":
            assert list(masked.index) == list("uvwxyz")
        else:
            masked = masked.to_pandas()
        assert list(masked.columns) == ["age", "pay"]
        results.append(masked.to_numpy(float))
    array = kind(**random).fit_transform(np.asarray(next(frames())[1], float))
    assert isinstance(array, np.ndarray)
    for result in results:
        assert result == pytest.approx(array)


def test_set_output():
    for flavour, frame in frames():
        for method in (masking.MDAV(k=2), masking.PRAM(0.5, random_state=1)):
            made = method.set_output(transform="pandas").fit_transform(frame)
            assert isinstance(made, pd.DataFrame), flavour
            assert list(made.columns) == ["age", "pay"]
            if flavour == "pandas":
                assert list(made.index) == list("uvwxyz")
    made = masking.MDAV(k=2).set_output(transform="pandas").fit_transform(np.zeros((4, 2)))
    assert list(made.columns) == ["x0", "x1"]


def test_whole_numbers_and_odd_names_of_columns():
    frame = pd.DataFrame({0: [1, 2, 3, 4], "b c": [True, False, True, True]})
    frame.columns = ["0", "b c"]
    masked = masking.MDAV(k=2).fit_transform(frame.astype({"b c": int}))
    assert masked["0"].dtype == float
    nullable = pd.DataFrame({"a": pd.array([1, 2, 3], dtype="Int64")})
    assert masking.MDAV(k=3).fit_transform(nullable)["a"].tolist() == [2.0, 2.0, 2.0]


# ---- rank swapping -----------------------------------------------------------------------


def displacement(before, after):
    """Return the least number of ranks between two values, ties resolved in favour."""
    ranked = np.sort(before)
    first, last = (np.searchsorted(ranked, before, side=s) for s in ("left", "right"))
    low, high = (np.searchsorted(ranked, after, side=s) for s in ("left", "right"))
    return np.maximum(0, np.maximum(low - (last - 1), first - (high - 1)))


@given(tables(most=120, columns=2), st.floats(0, 100), st.integers(0, 10**6))
@settings(max_examples=100)
def test_ranks_move_by_p_percent_at_most(table, p, seed):
    data = table[0]
    method = masking.RankSwapping(p, random_state=seed)
    masked = method.fit_transform(data)
    donors = method.labels_.reshape(data.shape)
    for x, y, donor in zip(data.T, masked.T, donors.T, strict=True):
        assert (np.sort(x) == np.sort(y)).all()  # the attribute itself is untouched
        assert (y == x[donor]).all()
        assert (donor[donor] == np.arange(len(x))).all()  # values change places, two by two
        assert displacement(x, y).max() <= p / 100 * len(x) + 1e-9


def test_the_window_is_used_to_its_end():
    data = np.arange(1000.0)[:, None]
    moved = np.abs(masking.RankSwapping(7, random_state=0).fit_transform(data) - data)[:, 0]
    assert 60 <= moved.max() <= 70
    assert (moved == 0).mean() < 0.05  # few find no partner
    assert 15 < moved.mean() < 45
    still = masking.RankSwapping(0.05, random_state=0).fit_transform(data)
    assert (still == data).all()


def test_attributes_are_swapped_by_themselves():
    data = np.column_stack([np.arange(200.0), np.arange(200.0)])
    masked = masking.RankSwapping(20, random_state=1).fit_transform(data)
    assert (masked[:, 0] != masked[:, 1]).mean() > 0.8


# ---- noise and rescaling -----------------------------------------------------------------


def test_noise_has_the_covariance_it_says():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40_000, 2)) @ [[3.0, 1.0], [0.0, 0.5]] + [5, -7]
    law = np.cov(data.T, ddof=0)
    for correlated in (False, True):
        method = masking.AdditiveNoise(0.4, correlated=correlated, random_state=1)
        noise = method.fit_transform(data) - data
        expected = 0.16 * (law if correlated else np.diag(law.diagonal()))
        assert method.covariance_ == pytest.approx(expected)
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        assert np.abs(np.cov(noise.T) - expected).max() < 0.03 * scale.max()
        assert np.abs(noise.mean(axis=0)).max() < 4 * np.sqrt(expected.diagonal().max() / 40_000)
    first = masking.AdditiveNoise(0.4, random_state=1).fit(data)
    assert (first.transform(data) == first.transform(data)).all()  # as scikit-learn has it
    fresh = masking.AdditiveNoise(0.4).fit(data)
    assert (fresh.transform(data) != fresh.transform(data)).any()
    some = first.transform(data[:3])
    assert some.shape == (3, 2)


def test_noise_leaves_a_constant_column():
    data = np.column_stack([np.arange(5.0), np.full(5, 0.1)])  # whose mean is not 0.1 exactly
    masked = masking.AdditiveNoise(1.0, random_state=0).fit_transform(data)
    assert (masked[:, 1] == 0.1).all()
    assert (masking.AdditiveNoise(0.0).fit_transform(data) == data).all()
    assert masking.AdditiveNoise(1.0).fit_transform([[3.0]]).tolist() == [[3.0]]


def test_rescaling_restores_means_and_variances():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 3)) * [1, 5, 100] + [0, 3, 1e4]
    masked = masking.MDAV(k=20).fit_transform(data)
    made = masking.rescale(data, masked)
    assert made.mean(axis=0) == pytest.approx(data.mean(axis=0), abs=1e-9, rel=1e-12)
    assert made.std(axis=0) == pytest.approx(data.std(axis=0), rel=1e-12)
    # by the paper's formula
    j = 1
    by_hand = (masked[:, j] - masked[:, j].mean()) * data[:, j].std() / masked[:, j].std()
    assert made[:, j] == pytest.approx(by_hand + data[:, j].mean())
    whole = masking.Rescaled(masking.MDAV(k=20))
    assert whole.fit_transform(data) == pytest.approx(made)
    assert (whole.method_.labels_ == masking.MDAV(k=20).fit(data).labels_).all()
    frame = pd.DataFrame(data, columns=list("abc"), index=range(10, 310))
    assert whole.fit_transform(frame).index[0] == 10
    few = masking.rescale(data, masked[:50])  # a sample of another size
    assert few.std(axis=0) == pytest.approx(data.std(axis=0))
    flat = masking.rescale(data, np.full_like(masked, 9.9))
    assert flat == pytest.approx(np.broadcast_to(data.mean(axis=0), flat.shape))


# ---- PRAM --------------------------------------------------------------------------------


def letters(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    illness = rng.choice(["none", "mild", "severe"], p=[0.7, 0.2, 0.1], size=n)
    age = np.where(illness == "severe", 60, 30) + 10 * rng.integers(0, 3, n)
    sex = rng.choice(["f", "m"], size=n)
    return pd.DataFrame({"age": age, "sex": sex}), pd.Series(illness, name="illness")


def test_pram_keeps_letters_with_the_probability_given():
    frame, _ = letters()
    masked = masking.PRAM(0.7, random_state=1).fit_transform(frame)
    assert masked.dtypes.equals(frame.dtypes)
    for name, size in (("age", 6), ("sex", 2)):
        counts = pd.crosstab(frame[name], masked[name]).to_numpy()
        stay = np.full((size, size), 0.3 / (size - 1))
        np.fill_diagonal(stay, 0.7)
        expected = counts.sum(axis=1, keepdims=True) * stay
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert statistic < chi2.ppf(0.9999, size * (size - 1))
    assert masking.PRAM(1.0).fit_transform(frame).equals(frame)
    only = pd.DataFrame({"a": ["x"] * 4})
    assert masking.PRAM(0.1).fit_transform(only).equals(only)  # no other letter to draw


def test_invariant_pram_keeps_the_expected_counts():
    frame, _ = letters()
    method = masking.PRAM(0.6, invariant=True, random_state=0).fit(frame)
    for name, channel in zip(frame, method.channels_, strict=True):
        p = frame[name].value_counts(normalize=True)[channel.inputs].to_numpy()
        assert channel.p_input == pytest.approx(p, abs=1e-15)
        assert channel.outputs == channel.inputs
        assert p @ channel.matrix == pytest.approx(p, abs=1e-12)
        assert (1 - channel.matrix.diagonal()).max() > 0
    # two stages: K, then its inverse by Bayes
    k = masking.PRAM(0.6).fit(frame).channels_[0]
    p = k.p_input
    back = (p[:, None] * k.matrix).T / (p @ k.matrix)[:, None]
    assert method.channels_[0].matrix == pytest.approx(k.matrix @ back)


def test_channels_of_columns_and_of_records():
    frame, _ = letters(500)
    one = masking.PRAM({"sex": 0.0}, random_state=0).fit_transform(frame)
    assert one["age"].equals(frame["age"])
    assert (one["sex"] != frame["sex"]).all()
    recode = cpv.Channel([[0, 1], [1, 0]], inputs=["f", "m"], outputs=["m", "x"])
    made = masking.PRAM({"sex": recode}, random_state=0).fit_transform(frame)
    assert set(made["sex"]) == {"m", "x"}
    assert ((made["sex"] == "m") == (frame["sex"] == "m")).all()
    cells = sorted(set(zip(frame["age"], frame["sex"], strict=True)))
    constant = np.zeros((len(cells), len(cells)))
    constant[:, 3] = 1.0
    joint = cpv.Channel(constant, inputs=cells, outputs=cells)
    made = masking.PRAM(joint, random_state=0).fit_transform(frame)
    assert set(zip(made["age"], made["sex"], strict=True)) == {cells[3]}
    array = masking.PRAM(joint, random_state=0).fit_transform(frame.to_numpy())
    assert (array == np.array(cells[3], dtype=object)).all()
    text = masking.PRAM(0.5, random_state=0).fit_transform(np.array([["a"], ["bb"], ["a"]]))
    assert text.dtype.kind == "U"


def test_pram_refuses():
    frame, _ = letters(100)
    method = masking.PRAM().fit(frame)
    odd = frame.assign(sex="?")
    with pytest.raises(cpv.UnknownValueError, match=r"'\?' is no input of the channel"):
        method.transform(odd)
    gaps = frame.astype({"sex": object})
    gaps.loc[7, "sex"] = None
    with pytest.raises(cpv.InputError, match=r"X\[7, sex\]: a missing value"):
        masking.PRAM().fit(gaps)
    with pytest.raises(cpv.InputError, match="no column 'weight'; there are age, sex"):
        masking.PRAM({"weight": 0.5}).fit(frame)
    with pytest.raises(cpv.InputError, match="channel: 1.5"):
        masking.PRAM(1.5).fit(frame)
    seen = cpv.Channel(
        np.eye(4), inputs=list(itertools.product("ab", "fm")), outputs=list("fmfm"), encoder="wx"
    )
    with pytest.raises(cpv.InputError, match="sees the confidential letter"):
        masking.PRAM({"sex": seen}).fit(frame)


def test_optimal_pram_leaks_least():
    frame, illness = letters(3000)
    method = masking.OptimalPRAM(0.2, random_state=2).fit(frame, illness)
    referee.check(method.solution_)
    assert float(method.solution_.distortion) == pytest.approx(0.2, abs=1e-3)
    masked = method.transform(frame)
    changed = (masked != frame).to_numpy().mean()
    assert changed == pytest.approx(0.2, abs=0.02)
    # ordinary PRAM of the same distortion leaks more, in the same law
    plain = masking.PRAM(0.8).fit(frame)
    product = np.kron(plain.channels_[0].matrix, plain.channels_[1].matrix)
    cells = list(itertools.product(*(c.inputs for c in plain.channels_)))
    source = cpv.DiscreteSource.from_table(
        frame.assign(illness=illness), sensitive="illness", key=["age", "sex"]
    )
    rows = product[[cells.index(x) for x in source.x]]
    risk = cpv.information.mutual_information(source.pmf @ rows)
    assert method.solution_.value < 0.9 * risk

    kept = masking.OptimalPRAM(0.2, invariant=True, random_state=2).fit(frame, illness)
    referee.check(kept.solution_)
    channel = kept.channels_[0]
    assert channel.released_marginal == pytest.approx(channel.p_input, abs=1e-6)
    assert kept.solution_.value >= method.solution_.lower


def test_optimal_pram_under_criteria_and_of_the_table_itself():
    frame, illness = letters(800)
    close = masking.OptimalPRAM(
        None, distortion={"age": "absolute_error", "sex": "hamming"},
        criteria=[cpv.TCloseness(0.1)], bins={"age": 20}, random_state=0,
    )  # fmt: skip
    close.fit(frame, illness)
    referee.check(close.solution_)
    free = masking.OptimalPRAM(
        None, distortion={"age": "absolute_error", "sex": "hamming"},
        criteria=[cpv.TCloseness(0.2)], bins={"age": 20}, random_state=0,
    )  # fmt: skip
    assert free.fit(frame, illness).solution_.value < close.solution_.value
    shannon = masking.OptimalPRAM(0.1, random_state=0).fit(frame[["sex"]])
    p = frame["sex"].value_counts(normalize=True).to_numpy()
    h = -(0.1 * np.log2(0.1) + 0.9 * np.log2(0.9))
    entropy = -(p * np.log2(p)).sum()
    assert shannon.solution_.value == pytest.approx(entropy - h, abs=1e-5)  # R(D) = H − h(D)
    with pytest.raises(cpv.InputError, match="y: 3 letters; pass 800, one per record"):
        masking.OptimalPRAM().fit(frame, ["a", "b", "c"])
    with pytest.raises(cpv.InputError, match="distortion: 7"):
        masking.OptimalPRAM(distortion=7).fit(frame)


# ---- manners -----------------------------------------------------------------------------

SKIPS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
RANDOM = (masking.RankSwapping(20), masking.AdditiveNoise(0.3), masking.PRAM(0.5))


@SKIPS
@pytest.mark.parametrize("method", [kind() for kind in ALL[:-1]], ids=lambda m: type(m).__name__)
def test_check_estimator(method):
    checks.check_estimator(method)


@SKIPS
def test_check_estimator_of_options():
    checks.check_estimator(masking.PRAM(invariant=True))
    checks.check_estimator(masking.AdditiveNoise(correlated=True, random_state=0))
    # what was not seen together cannot be released: the one check that needs it is expected
    expected = {"check_fit_idempotent": "it transforms combinations that were not fitted"}
    checks.check_estimator(masking.OptimalPRAM(), expected_failed_checks=expected)


@pytest.mark.parametrize("method", RANDOM, ids=lambda m: type(m).__name__)
def test_chance_is_repeatable(method):
    data = np.random.default_rng(0).integers(0, 9, size=(200, 2)).astype(float)

    def run(state):
        return masking.base.clone(method).set_params(random_state=state).fit_transform(data)

    assert (run(3) == run(3)).all()
    assert (run(3) != run(4)).any()
    assert (run(np.random.default_rng(3)) == run(3)).all()
    assert (run(np.random.RandomState(3)) == run(np.random.RandomState(3))).all()
    assert (run(None) != run(None)).any()
    with pytest.raises(cpv.InputError, match="random_state: 'x'"):
        run("x")


@pytest.mark.parametrize("kind", [*GROUPING, masking.RankSwapping, masking.AdditiveNoise])
def test_tables_that_cannot_be_masked(kind):
    method = kind(k=1) if kind in GROUPING else kind()
    text = pd.DataFrame({"age": [1.0, 2.0], "name": ["Ann", "3"]})
    with pytest.raises(cpv.InputError, match=r"X\[0, name\]: 'Ann' is no number"):
        method.fit(text)
    with pytest.raises(cpv.InputError, match=r"X\[1, age\]: a missing value"):
        method.fit(pd.DataFrame({"age": [1.0, None]}))
    with pytest.raises(cpv.InputError, match=r"X\[0, age\]: inf is not finite"):
        method.fit(pd.DataFrame({"age": [np.inf, 1.0]}))
    with pytest.raises(cpv.InputError, match=r"X\[1, 0\]: NaN"):
        method.fit([[1.0], [np.nan]])
    with pytest.raises(cpv.InputError, match="no records"):
        method.fit(pd.DataFrame({"age": []}))
    with pytest.raises(ValueError, match="1D array"):
        method.fit([1.0, 2.0])
    polars = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    with pytest.raises(cpv.InputError, match="X: a lazy LazyFrame; collect it first"):
        method.fit(polars.LazyFrame({"a": [1.0]}))
    one = method.fit_transform([[4.0]])
    assert one.tolist() == [[4.0]]


@pytest.mark.parametrize("kind", GROUPING)
def test_groups_that_cannot_be(kind):
    with pytest.raises(cpv.InputError, match="groups of 3 from 2 samples; pass at most 2"):
        kind(k=3).fit([[1.0], [2.0]])
    with pytest.raises(cpv.InputError, match="^k: 0"):
        kind(k=0).fit([[1.0], [2.0]])
    if kind is masking.HansenMukherjee:
        return
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=list("abc"))
    with pytest.raises(cpv.InputError, match=r"groups\[1\]: no column 'z'"):
        kind(k=2, groups=[["a"], ["z"]]).fit(frame)
    for odd in ([["a"], ["b"]], [["a", "b"], ["b", "c"]], [["a", "b", "c"], []]):
        with pytest.raises(cpv.InputError, match="put each of a, b, c into one group"):
            kind(k=2, groups=odd).fit(frame)
    with pytest.raises(cpv.InputError, match="groups: 0"):
        kind(k=2, groups=0).fit(frame)


def test_parameters_out_of_range():
    for p in (-1, 101, np.nan, "x"):
        with pytest.raises(cpv.InputError, match="^p: "):
            masking.RankSwapping(p).fit([[1.0]])
    for scale in (-0.1, np.inf):
        with pytest.raises(cpv.InputError, match="^scale: "):
            masking.AdditiveNoise(scale).fit([[1.0]])
    with pytest.raises(cpv.InputError, match="2 columns beside 3"):
        masking.rescale(np.zeros((4, 3)), np.zeros((4, 2)))


def test_the_extra_is_named_where_scikit_learn_is_missing():
    code = "import sys; sys.modules['sklearn'] = None; import cvxprivacy.microdata.masking"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert "pip install 'cvxprivacy[masking]'" in done.stderr
    code = "import sys; sys.modules['sklearn'] = None; import cvxprivacy as c; c.compare"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
