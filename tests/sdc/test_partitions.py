"""Partitions into groups of at least k: sizes, optima, and what is written down of them."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from cvxprivacy_sdc import partitions
from cvxprivacy_sdc.partitions import hansen_mukherjee, mdav, means, mu_approx
from tests.sdc.audits import refusal
from tests.sdc.partition_cases import same_partition, tied_tables


@given(tied_tables())
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


@given(tied_tables(columns=1))
@settings(max_examples=100)
def test_no_partition_of_one_attribute_has_less_error_than_the_optimum(table):
    data, k = table
    least = error_of(data, hansen_mukherjee(data, k))
    scale = max(1.0, float((data**2).sum()))
    for partition in (mdav, mu_approx):
        assert error_of(data, partition(data, k)) >= least - 1e-12 * scale


def error_of(data, labels):
    """Return the sum of squared distances of all records to the means of their groups."""
    data = np.asarray(data, dtype=float).reshape(len(data), -1)
    return float(((data - means(data, labels)) ** 2).sum())


def every_partition(items, k):
    """Yield all partitions of a list into parts of at least k."""
    if not items:
        yield []
        return
    first, remaining = items[0], items[1:]
    for size in range(k - 1, len(remaining) + 1):
        for others in itertools.combinations(remaining, size):
            left = [i for i in remaining if i not in others]
            if not left or len(left) >= k:
                for partition in every_partition(left, k):
                    yield [[first, *others], *partition]


@pytest.mark.parametrize(("n", "k"), [(5, 1), (7, 2), (8, 3), (9, 4), (4, 4)])
def test_the_optimum_of_one_attribute_is_the_least_of_all_partitions(n, k):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 6, n).astype(float) if seed % 2 else rng.normal(size=n) ** 3
        errors = []
        for partition in every_partition(list(range(n)), k):
            errors.append(sum(((x[part] - x[part].mean()) ** 2).sum() for part in partition))
        outcome = hansen_mukherjee(x, k)
        assert error_of(x, outcome) == pytest.approx(min(errors), abs=1e-12)
        assert (np.diff(outcome[np.argsort(x, kind="stable")]) >= 0).all()  # groups are intervals


def test_the_optimum_survives_an_offset():
    x = np.random.default_rng(0).normal(size=200)
    near, far = (error_of(data, hansen_mukherjee(data, 3)) for data in (x, x + 1e6))
    assert far == pytest.approx(near, rel=1e-6)


def naive_mdav(data, k):
    """MDAV as it is written down, record by record."""
    left, labels, group = list(range(len(data))), [0] * len(data), 0

    def near(point, some):
        return sorted(some, key=lambda i: (float(((data[i] - point) ** 2).sum()), i))

    while len(left) >= 3 * k:
        r = near(np.mean([data[i] for i in left], axis=0), left)[-1]
        one = near(data[r], left)[:k]
        values = [i for i in left if i not in one]
        s = near(data[r], values)[-1]
        other = near(data[s], values)[:k]
        for members in (one, other):
            for i in members:
                labels[i] = group
            group += 1
        left = [i for i in values if i not in other]
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


def test_ties_fall_to_the_first_records():
    data = np.zeros((7, 2))
    data[6] = 1.0
    # 6 is farthest, 0 its nearest; farthest from 6 are all others, first 1, with 2; the rest
    assert mdav(data, 2).tolist() == [0, 1, 1, 2, 2, 2, 0]


@given(tied_tables())
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
    full = mu_approx(data, 20)
    monkeypatch.setattr(partitions, "BATCH", 64)
    assert (mu_approx(data, 20) == full).all()


@pytest.mark.long
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
    for k in (0, 2.5, "three", None, 4):
        assert refusal("k", partition, [1.0, 2.0, 3.0], k).value == k
    assert refusal("data", partition, [1.0, np.nan], 1).where == (1,)
    assert partition([5.0], 1).tolist() == [0]
    if partition is not mu_approx:  # which may leave five together
        assert np.bincount(partition([5.0] * 9, 3)).tolist() == [3, 3, 3]


def test_the_optimum_is_of_one_attribute():
    refusal("values", hansen_mukherjee, np.zeros((4, 2)), 2)
