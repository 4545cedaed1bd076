"""The best intervals: against all partitions, and what they are called."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.model.information import mutual_information
from tests.criteria.definitions import standing
from tests.sdc.audits import GROUP_CRITERIA, refusal

COUNTS = arrays(np.int64, (3, 6), elements=st.integers(0, 9)).filter(lambda n: n.sum(axis=1).all())


def partitions(n):
    """All groupings of n letters into intervals, as lists of (first, stop)."""
    for chosen in itertools.product([False, True], repeat=n - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(chosen) if cut), n]
        yield list(itertools.pairwise(ends))


def merged(table, parts):
    return np.stack([table[:, a:b].sum(axis=1) for a, b in parts], axis=1)


def feasible(table, parts, criteria):
    groups = merged(table, parts)
    return all(standing(c, groups, reference=table.sum(axis=1))[1].all() for c in criteria)


# ---- intervals ---------------------------------------------------------------------------


@given(COUNTS, GROUP_CRITERIA, st.sampled_from([None, 1, 2, 3]))
def test_no_partition_is_better(counts, criteria, groups):
    source = cpv.DiscreteSource.from_counts(counts)
    table = counts[:, counts.sum(axis=0) > 0]
    options = [
        mutual_information(merged(table, parts))
        for parts in partitions(table.shape[1])
        if feasible(table, parts, criteria) and groups in (None, len(parts))
    ]
    if not options:
        with pytest.raises(cpv.InputError, match="criteria|groups"):
            sdc.optimal_intervals(source, criteria, groups=groups)
        return
    outcome = sdc.optimal_intervals(source, criteria, groups=groups)
    assert outcome.information == pytest.approx(max(options), abs=1e-9)
    assert groups in (None, len(outcome.outputs))
    assert all(verdict.holds for verdict in outcome.standing.values())
    # the groups are intervals
    runs = [key for key, _ in itertools.groupby(outcome.groups)]
    assert len(runs) == len(set(runs))


FORBIDDEN = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))).map(
    lambda moves: {(x, y) for x, y in moves if x != y}  # who stays may always stay
)


@given(COUNTS, GROUP_CRITERIA, st.one_of(st.just(frozenset()), FORBIDDEN))
def test_no_partition_has_less_distortion(counts, criteria, forbidden):
    source = cpv.DiscreteSource.from_counts(counts)
    alive = counts.sum(axis=0) > 0
    table, p = counts[:, alive], counts.sum(axis=0)[alive] / counts.sum()
    costs = cpv.absolute_error(source.x).matrix.copy()
    for move in forbidden:
        costs[move] = math.inf
    d, rows = cpv.Distortion(costs), costs[alive]
    options = [
        sum((p[a:b, None] * rows[a:b]).sum(axis=0).min() for a, b in parts)
        for parts in partitions(table.shape[1])
        if feasible(table, parts, criteria)
    ]
    if min(options, default=math.inf) == math.inf:
        with pytest.raises(cpv.InputError, match="criteria"):
            sdc.optimal_intervals(source, criteria, distortion=d)
        return
    outcome = sdc.optimal_intervals(source, criteria, distortion=d)
    assert outcome.distortion == pytest.approx(min(options), abs=1e-12)
    released = outcome.channel.matrix * source.p_x[:, None]
    place = [source.x.index(y) for y in outcome.outputs]
    there = released > 0
    assert (released[there] * costs[:, place][there]).sum() == pytest.approx(
        outcome.distortion, abs=1e-12
    )


def test_units_are_of_the_criterion_and_of_the_answer():
    counts = np.array([[9, 6, 2, 1], [1, 3, 8, 9]])
    source = cpv.DiscreteSource.from_counts(counts)
    bits = sdc.optimal_intervals(source, [cpv.TCloseness(0.3)])
    nats = sdc.optimal_intervals(source, [cpv.TCloseness(0.3 * math.log(2))], units="nats")
    assert bits.groups == nats.groups
    assert nats.information == pytest.approx(bits.information * math.log(2))


def test_letters_without_records_go_along_and_a_law_will_do():
    counts = np.array([[0, 4, 0, 1, 0], [0, 1, 0, 4, 0]])
    outcome = sdc.optimal_intervals(cpv.DiscreteSource.from_counts(counts))
    assert outcome.groups == [1, 1, 1, 3, 3]
    law = sdc.optimal_intervals(cpv.DiscreteSource(counts / 10), [cpv.TCloseness(0.5)])
    assert law.groups == outcome.groups
    with pytest.raises(cpv.InputError, match="records"):
        sdc.optimal_intervals(cpv.DiscreteSource(counts / 10), [cpv.KAnonymity(2)])


def test_what_cannot_be_asked():
    source = cpv.DiscreteSource.from_counts([[3, 1], [1, 3]])
    for criterion in (cpv.LDiversity(2.5), cpv.KAnonymity(9), cpv.LeakageCap(0.1)):
        refusal("criteria", sdc.optimal_intervals, source, [criterion])
    refusal("criteria", sdc.optimal_intervals, source, cpv.KAnonymity(2))
    refusal("groups", sdc.optimal_intervals, source, [cpv.KAnonymity(5)], groups=2)
    for groups in (0, 3, 1.5):
        refusal("groups", sdc.optimal_intervals, source, groups=groups)
    refusal("source", sdc.optimal_intervals, [[1, 2]])
    law = cpv.DiscreteSource([[0.3, 0.1], [0.2, 0.4]])
    refusal("source", sdc.optimal_intervals, law, [cpv.KAnonymity(2)])  # it has no records
    cube = cpv.Distortion(np.zeros((2, 2, 2)))
    refusal("distortion", sdc.optimal_intervals, source, distortion=cube)
    many = cpv.DiscreteSource.from_counts(np.ones((2, 3001)))
    assert refusal("source", sdc.optimal_intervals, many).value == 3001


# ---- what intervals are called -----------------------------------------------------------


def test_intervals_keep_apart_what_reads_alike():
    big = cpv.DiscreteSource.from_counts([[9, 1], [1, 9]], x=[10**16, 10**16 + 1])
    outcome = sdc.optimal_intervals(big)
    assert outcome.groups == [10**16, 10**16 + 1]  # nothing was grouped: the letters themselves
    assert outcome.information == pytest.approx(big.information())
    pairs = cpv.DiscreteSource.from_counts(
        [[9, 9, 1, 1], [1, 1, 9, 9]], x=[10**16 + i for i in range(4)]
    )
    first, *_, last = sdc.optimal_intervals(pairs, groups=2).groups
    assert (first, last) == (
        "[10000000000000000, 10000000000000001]", "[10000000000000002, 10000000000000003]"
    )  # fmt: skip
    mixed = cpv.DiscreteSource.from_counts([[9, 1, 8, 8], [1, 9, 1, 1]], x=[1, "1", 2, 3])
    assert "called '1'" in str(refusal("source", sdc.optimal_intervals, mixed, groups=3))


def test_bins_are_joined_by_their_edges():
    table = pd.DataFrame({"x": [11, 12, 23, 35, 36, 44] * 3, "w": list("abaabb") * 3})
    source = cpv.DiscreteSource.from_table(table, key="x", sensitive="w", bins={"x": 10})
    outcome = sdc.optimal_intervals(source, [cpv.KAnonymity(9)])
    assert set(outcome.groups) <= {"[10, 30)", "[30, 50)"}
    open_ended = (-math.inf, 20, 30, math.inf)
    source = cpv.DiscreteSource.from_table(table, key="x", sensitive="w", bins={"x": open_ended})
    assert sdc.optimal_intervals(source, groups=1).groups == ["all"] * 3


def test_what_has_no_place_on_a_line():
    table = pd.DataFrame({"x": [1, 2, None] * 4, "y": [1, 2, 3] * 4, "w": list("ab") * 6})
    gap = cpv.DiscreteSource.from_table(table, key="x", sensitive="w", missing="level")
    two = cpv.DiscreteSource.from_table(table[:2], key=["x", "y"], sensitive="w")
    for source in (gap, two):
        assert "order" in str(refusal("source", sdc.optimal_intervals, source))


# ---- Adult -------------------------------------------------------------------------------


@pytest.mark.long
def test_the_best_intervals_of_adult(tables):
    frame = cpv.datasets.load_adult(complete=True)
    ages = cpv.DiscreteSource.from_table(frame, sensitive="marital-status", key="age")
    criteria = [cpv.TCloseness(0.55), cpv.LDiversity(2.7)]
    best_of_all = sdc.optimal_intervals(ages, criteria)
    four = sdc.optimal_intervals(ages, criteria, groups=4)
    assert four.information <= best_of_all.information <= ages.information()
    if tables.real:
        assert ages.information() == pytest.approx(0.3357, abs=5e-5)
        assert best_of_all.information == pytest.approx(0.2382, abs=5e-5)
        assert four.information == pytest.approx(0.2308, abs=5e-5)
        assert four.outputs == ["[17, 34]", "[35, 44]", "[45, 59]", "[60, 90]"]
    # three cuts of 72 ages can be tried one and all, by cumulated counts
    cumulated = np.pad(ages.joint.cumsum(axis=1), ((0, 0), (1, 0)))
    size = len(ages.x)
    best, prior = 0.0, ages.joint.sum(axis=1)
    allowed = np.zeros((size + 1, size + 1), bool)
    for a in range(size):
        groups = cumulated[:, a + 1 :] - cumulated[:, a : a + 1]
        ok = [standing(c, groups, reference=prior)[1] for c in criteria]
        allowed[a, a + 1 :] = np.logical_and(*ok)
    for cuts in itertools.combinations(range(1, size), 3):
        ends = (0, *cuts, size)
        if all(allowed[a, b] for a, b in itertools.pairwise(ends)):
            joint = cumulated[:, ends[1:]] - cumulated[:, ends[:-1]]
            best = max(best, mutual_information(joint))
    assert best == pytest.approx(four.information, abs=1e-12)
