"""Deterministic generalisation: against all partitions, all levels and all channels."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cvxprivacy as cpv
from cvxprivacy.microdata import measures
from cvxprivacy.model.information import entropy, mutual_information
from tests import referee

COUNTS = arrays(np.int64, (3, 6), elements=st.integers(0, 9)).filter(lambda n: n.sum(axis=1).all())
CRITERIA = st.sampled_from(
    [
        [],
        [cpv.KAnonymity(9)],
        [cpv.TCloseness(0.2)],
        [cpv.LDiversity(1.8), cpv.KAnonymity(5)],
        [cpv.DeltaDisclosure(1.0)],
    ]
)


def partitions(n):
    """All groupings of n letters into intervals, as lists of (first, stop)."""
    for chosen in itertools.product([False, True], repeat=n - 1):
        ends = [0, *(i + 1 for i, cut in enumerate(chosen) if cut), n]
        yield list(itertools.pairwise(ends))


def merged(table, parts):
    return np.stack([table[:, a:b].sum(axis=1) for a, b in parts], axis=1)


def feasible(table, parts, criteria):
    groups = merged(table, parts)
    return all(measures.standing(c, groups, reference=table.sum(axis=1))[1].all() for c in criteria)


# ---- intervals ---------------------------------------------------------------------------


@given(COUNTS, CRITERIA, st.sampled_from([None, 1, 2, 3]))
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
            cpv.optimal_intervals(source, criteria, groups=groups)
        return
    found = cpv.optimal_intervals(source, criteria, groups=groups)
    assert found.information == pytest.approx(max(options), abs=1e-9)
    assert groups in (None, len(found.outputs))
    for _, holds in found.standing.values():
        assert holds.all()
    # the groups are intervals
    runs = [key for key, _ in itertools.groupby(found.groups)]
    assert len(runs) == len(set(runs))


@given(COUNTS, CRITERIA)
def test_no_partition_has_less_distortion(counts, criteria):
    source = cpv.DiscreteSource.from_counts(counts)
    alive = counts.sum(axis=0) > 0
    table, p = counts[:, alive], counts.sum(axis=0)[alive] / counts.sum()
    d = cpv.absolute_error(source.x)
    rows = d.matrix[alive]
    options = [
        sum((p[a:b, None] * rows[a:b]).sum(axis=0).min() for a, b in parts)
        for parts in partitions(table.shape[1])
        if feasible(table, parts, criteria)
    ]
    if not options:
        with pytest.raises(cpv.InputError, match="criteria"):
            cpv.optimal_intervals(source, criteria, distortion=d)
        return
    found = cpv.optimal_intervals(source, criteria, distortion=d)
    assert found.distortion == pytest.approx(min(options), abs=1e-12)
    cost = source.p_x[:, None] * found.channel.matrix
    place = [source.x.index(y) for y in found.outputs]
    assert (cost * d.matrix[:, place]).sum() == pytest.approx(found.distortion, abs=1e-12)


def test_units_are_of_the_criterion_and_of_the_answer():
    counts = np.array([[9, 6, 2, 1], [1, 3, 8, 9]])
    source = cpv.DiscreteSource.from_counts(counts)
    bits = cpv.optimal_intervals(source, [cpv.TCloseness(0.3)])
    nats = cpv.optimal_intervals(source, [cpv.TCloseness(0.3 * math.log(2))], units="nats")
    assert bits.groups == nats.groups
    assert nats.information == pytest.approx(bits.information * math.log(2))


def test_letters_without_records_go_along_and_a_law_will_do():
    counts = np.array([[0, 4, 0, 1, 0], [0, 1, 0, 4, 0]])
    found = cpv.optimal_intervals(cpv.DiscreteSource.from_counts(counts))
    assert found.groups == [1, 1, 1, 3, 3]
    law = cpv.optimal_intervals(cpv.DiscreteSource(counts / 10), [cpv.TCloseness(0.5)])
    assert law.groups == found.groups
    with pytest.raises(cpv.InputError, match="records"):
        cpv.optimal_intervals(cpv.DiscreteSource(counts / 10), [cpv.KAnonymity(2)])


def test_what_cannot_be_asked():
    source = cpv.DiscreteSource.from_counts([[3, 1], [1, 3]])
    for criteria, said in (
        ([cpv.LDiversity(2.5)], "one group"), ([cpv.KAnonymity(9)], "one group"),
        ([cpv.LeakageCap(0.1)], "per letter"),
    ):  # fmt: skip
        with pytest.raises(cpv.InputError, match=said):
            cpv.optimal_intervals(source, criteria)
    with pytest.raises(cpv.InputError, match="no 2 intervals"):
        cpv.optimal_intervals(source, [cpv.KAnonymity(5)], groups=2)
    for groups in (0, 3, 1.5):
        with pytest.raises(cpv.InputError, match="groups"):
            cpv.optimal_intervals(source, groups=groups)
    with pytest.raises(cpv.InputError, match="source"):
        cpv.optimal_intervals([[1, 2]])
    cube = cpv.Distortion(np.zeros((2, 2, 2)))
    with pytest.raises(cpv.InputError, match="distortion"):
        cpv.optimal_intervals(source, distortion=cube)


# ---- hierarchies -------------------------------------------------------------------------


def test_hierarchies_are_channels():
    ages = cpv.Hierarchy.intervals([17, 29, 30, 64], 10, 20)
    assert [len(set(level)) for level in ages.levels] == [4, 4, 3, 1]
    assert ages.levels[1] == ["[10, 20)", "[20, 30)", "[30, 40)", "[60, 70)"]
    channel = ages.channel(2)
    assert channel.outputs == ["[0, 20)", "[20, 40)", "[60, 80)"]
    assert channel.matrix.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert channel.apply([64, 17, 30], seed=0).tolist() == ["[60, 80)", "[0, 20)", "[20, 40)"]
    assert ages.channel(0).outputs == [17, 29, 30, 64]
    edges = cpv.Hierarchy.intervals([1, 5, 9], (-math.inf, 4, math.inf), suppress=False)
    assert edges.levels[1:] == [["< 4", "≥ 4", "≥ 4"]]
    towns = cpv.Hierarchy.tree(
        {"Paris": ("France", "Europe"), "Lyon": ("France", "Europe"), "Rome": ("Italy", "Europe")}
    )
    assert repr(towns) == "Hierarchy(3 → 2 → 1 groups)"
    assert cpv.Hierarchy.suppression("ab").channel(1).outputs == ["*"]


def test_what_is_no_hierarchy():
    cases = {
        "part": lambda: cpv.Hierarchy([1, 2, 3], [["a", "a", "b"], ["c", "d", "d"]]),
        "groups for": lambda: cpv.Hierarchy([1, 2], [["a"]]),
        "distinct": lambda: cpv.Hierarchy([1, 1], []),
        "in no interval": lambda: cpv.Hierarchy.intervals([1, 9], (0, 5)),
        "finite": lambda: cpv.Hierarchy.intervals([1, None], 5),
        "levels are": lambda: cpv.Hierarchy.suppression([1, 2]).channel(2),
        "one path": lambda: cpv.Hierarchy.tree({"a": ("b",), "c": ("b", "d")}),
        "parent": lambda: cpv.Hierarchy.tree(["a"]),
        r"^paths\[a\]: 'xy' is no list": lambda: cpv.Hierarchy.tree({"a": "xy", "b": "xz"}),
        r"^paths\[a\]: 3": lambda: cpv.Hierarchy.tree({"a": 3}),
        "^letters: none": lambda: cpv.Hierarchy.suppression([]),
        "^letters: 7": lambda: cpv.Hierarchy.suppression(7),
        r"^levels\[1\]: 3": lambda: cpv.Hierarchy(["a", "b"], [3]),
        r"^levels\[1\]: unhashable": lambda: cpv.Hierarchy(["a", "b"], [[[1], [1]]]),
        r"^levels\[1\]: 'ab' is no list": lambda: cpv.Hierarchy(["a", "b"], ["ab"]),
        "^letters: shape": lambda: cpv.Hierarchy.intervals([], 10),
    }
    for said, make in cases.items():
        with pytest.raises(cpv.InputError, match=said):
            make()
    # bands of 5 and 7 do not nest: the message names two letters that are parted
    with pytest.raises(cpv.InputError, match="5 and 7 share"):
        cpv.Hierarchy.intervals([5, 7], 5, 7)


# ---- several attributes ------------------------------------------------------------------


def people(seed, records=60):
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(0, 8, records), rng.choice(["f", "m"], records)
    town = rng.choice(["a", "b", "c"], records)
    ill = (rng.random(records) < 0.15 + 0.08 * age + 0.1 * (sex == "m")).astype(int)
    ill += (rng.random(records) < 0.2).astype(int)
    return pd.DataFrame({"age": age, "sex": sex, "town": town, "ill": ill})


def levels_of(source):
    found = {"age": cpv.Hierarchy.intervals(source.levels["age"], 2, 4)}
    found["town"] = cpv.Hierarchy.tree(
        {"a": ("north", "*"), "b": ("north", "*"), "c": ("south", "*")}
    )
    return found


@given(st.integers(0, 10_000), CRITERIA, st.sampled_from(["W", "X", "d"]))
@settings(max_examples=40)
def test_the_lattice_is_searched_whole(seed, criteria, keep):
    frame = people(seed)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex", "town"])
    hierarchies = levels_of(source)
    d = None
    if keep == "d":
        kinds = {"age": "absolute_error", "sex": "hamming", "town": "hamming"}
        d = cpv.per_attribute(kinds, source)
    counts = source.joint
    standing, worth = {}, {}
    for node in itertools.product(range(4), range(3)):
        at = dict(zip(hierarchies, node, strict=True))

        def name(x, at=at):
            age, sex, town = x
            of = {n: h.levels[at[n]][h.letters.index(v)] for (n, h), v in
                  zip(hierarchies.items(), (age, town), strict=True)}  # fmt: skip
            return of["age"], sex, of["town"]

        groups = {}
        for i, x in enumerate(source.x):
            groups.setdefault(name(x), []).append(i)
        table = np.stack([counts[:, i].sum(axis=1) for i in groups.values()], axis=1)
        prior = counts.sum(axis=1)
        standing[node] = all(
            measures.standing(c, table, reference=prior)[1].all() for c in criteria
        )
        if keep == "d":
            p = source.p_x[:, None] * d.matrix
            worth[node] = -sum(p[i].sum(axis=0).min() for i in groups.values())
        else:
            worth[node] = mutual_information(table) if keep == "W" else entropy(table.sum(axis=0))
    good = [node for node, holds in standing.items() if holds]

    def ask():
        return cpv.full_domain(
            source, hierarchies, criteria, keep=keep if keep != "d" else "W", distortion=d
        )

    if not good:
        with pytest.raises(cpv.InputError):
            ask()
        return
    found = ask()
    finest = [g for g in good if not any(h != g and all(np.array(h) <= np.array(g)) for h in good)]
    assert sorted(tuple(m.values()) for m in found.minimal) == sorted(finest)
    assert found.nodes == 12 >= found.evaluated
    assert worth[tuple(found.levels.values())] == pytest.approx(max(worth[g] for g in good))
    if keep == "d":
        assert found.distortion == pytest.approx(-max(worth[g] for g in good), abs=1e-12)


def test_pruning_spares_most_of_a_lattice():
    frame = people(1, 400)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex", "town"])
    chain = cpv.Hierarchy.intervals(source.levels["age"], 2, 4, 8, 16, 32, 64, 128)
    found = cpv.full_domain(
        source, {"age": chain, "town": levels_of(source)["town"]}, [cpv.KAnonymity(40)]
    )
    assert found.evaluated < found.nodes / 2


def test_a_generalisation_is_applied_to_tables():
    frame = people(3)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex", "town"])
    found = cpv.full_domain(source, levels_of(source), [cpv.KAnonymity(4)])
    released = found.channel.apply(frame, seed=0)
    audit = cpv.audit(frame, released, key=["age", "sex", "town"], sensitive="ill")
    assert audit.measures["k"].worst >= 4
    assert audit.after.plugin == pytest.approx(found.information, abs=1e-12)
    assert released["sex"].tolist() == frame["sex"].tolist()  # it has no hierarchy
    for piece in ("groups", "levels", "KAnonymity(4)", "looked at"):
        assert piece in str(found)


def test_what_the_lattice_refuses():
    frame = people(3)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex"])
    ages = cpv.Hierarchy.suppression(source.levels["age"])
    cases = [
        ({}, "none"), ({"town": ages}, "no key column"), ({"age": {1: 2}}, "pass a Hierarchy"),
        ({"age": cpv.Hierarchy.suppression([0, 1])}, "not among"),
    ]  # fmt: skip
    for hierarchies, said in cases:
        with pytest.raises(cpv.InputError, match=said):
            cpv.full_domain(source, hierarchies, [])
    with pytest.raises(cpv.InputError, match="from_table"):
        cpv.full_domain(cpv.DiscreteSource([[0.5, 0.5]]), {"age": ages}, [])
    with pytest.raises(cpv.InputError, match="no levels satisfy"):
        cpv.full_domain(source, {"age": ages}, [cpv.KAnonymity(50)])
    with pytest.raises(cpv.InputError, match="keep"):
        cpv.full_domain(source, {"age": ages}, [], keep="Z")


# ---- what determinism costs --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_no_deterministic_map_beats_the_randomised_optimum(seed):
    """All 4⁴ maps are tried: intervals are some of them, and channels are more than all."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, (3, 4))
    source, d = cpv.DiscreteSource.from_counts(counts), cpv.absolute_error([0, 1, 2, 3])
    criteria = [cpv.TCloseness(0.06), cpv.KAnonymity(20)]
    price = cpv.price_of_determinism(source, d, criteria, accuracy="high")
    referee.check(price.randomised)
    maps = []
    for to in itertools.product(range(4), repeat=4):
        joint = np.zeros((3, 4))
        for x, y in enumerate(to):
            joint[:, y] += counts[:, x]
        if all(measures.standing(c, joint)[1].all() for c in criteria):
            maps.append(sum(source.p_x[x] * abs(x - y) for x, y in enumerate(to)))
    assert price.randomised.lower <= min(maps) + 1e-9
    assert min(maps) <= price.deterministic.distortion + 1e-12
    assert price.gap.lower >= -1e-9
    assert float(price.gap) == pytest.approx(
        price.deterministic.distortion - price.randomised.value, abs=1e-9
    )
    assert "intervals add" in str(price)


def test_what_asks_nothing_costs_nothing():
    source = cpv.DiscreteSource.from_counts([[3, 1, 2], [1, 3, 2]])
    price = cpv.price_of_determinism(source, cpv.absolute_error([0, 1, 2]), [cpv.TCloseness(2.0)])
    assert float(price.gap) == pytest.approx(0.0, abs=1e-6)


# ---- Adult -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ages():
    folder = os.environ.get("CVXPRIVACY_DATA")
    if not folder or not (Path(folder) / "adult.csv").is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")
    frame = cpv.datasets.load_adult(complete=True)
    return cpv.DiscreteSource.from_table(frame, sensitive="marital-status", key="age")


def test_the_best_intervals_of_adult(ages):
    criteria = [cpv.TCloseness(0.55), cpv.LDiversity(2.7)]
    assert ages.information() == pytest.approx(0.3357, abs=5e-5)
    found = cpv.optimal_intervals(ages, criteria)
    assert found.information == pytest.approx(0.2382, abs=5e-5)
    four = cpv.optimal_intervals(ages, criteria, groups=4)
    assert four.information == pytest.approx(0.2308, abs=5e-5)
    assert four.outputs == ["[17, 34]", "[35, 44]", "[45, 59]", "[60, 90]"]
    # three cuts of 72 ages can be tried one and all, by cumulated counts
    cumulated = np.concatenate([np.zeros((7, 1)), ages.joint.cumsum(axis=1)], axis=1)
    best, prior = 0.0, ages.joint.sum(axis=1)
    allowed = np.zeros((73, 73), bool)
    for a in range(72):
        groups = cumulated[:, a + 1 :] - cumulated[:, a : a + 1]
        ok = [measures.standing(c, groups, reference=prior)[1] for c in criteria]
        allowed[a, a + 1 :] = np.logical_and(*ok)
    for cuts in itertools.combinations(range(1, 72), 3):
        ends = (0, *cuts, 72)
        if all(allowed[a, b] for a, b in itertools.pairwise(ends)):
            joint = cumulated[:, ends[1:]] - cumulated[:, ends[:-1]]
            best = max(best, mutual_information(joint))
    assert best == pytest.approx(four.information, abs=1e-12)


# ---- what intervals are called -----------------------------------------------------------


def test_intervals_keep_apart_what_reads_alike():
    big = cpv.DiscreteSource.from_counts([[9, 1], [1, 9]], x=[10**16, 10**16 + 1])
    found = cpv.optimal_intervals(big)
    assert found.groups == [10**16, 10**16 + 1]  # nothing was grouped: the letters themselves
    assert found.information == pytest.approx(big.information())
    pairs = cpv.DiscreteSource.from_counts(
        [[9, 9, 1, 1], [1, 1, 9, 9]], x=[10**16 + i for i in range(4)]
    )
    first, *_, last = cpv.optimal_intervals(pairs, groups=2).groups
    assert (first, last) == (
        "[10000000000000000, 10000000000000001]", "[10000000000000002, 10000000000000003]"
    )  # fmt: skip
    mixed = cpv.DiscreteSource.from_counts([[9, 1, 8, 8], [1, 9, 1, 1]], x=[1, "1", 2, 3])
    with pytest.raises(cpv.InputError, match="two intervals would be called '1'"):
        cpv.optimal_intervals(mixed, groups=3)


def test_bins_are_joined_by_their_edges():
    table = pd.DataFrame({"x": [11, 12, 23, 35, 36, 44] * 3, "w": list("abaabb") * 3})
    source = cpv.DiscreteSource.from_table(table, key="x", sensitive="w", bins={"x": 10})
    found = cpv.optimal_intervals(source, [cpv.KAnonymity(9)])
    assert set(found.groups) <= {"[10, 30)", "[30, 50)"}
    open_ended = (-math.inf, 20, 30, math.inf)
    source = cpv.DiscreteSource.from_table(table, key="x", sensitive="w", bins={"x": open_ended})
    assert cpv.optimal_intervals(source, groups=1).groups == ["all"] * 3


def test_what_has_no_place_on_a_line():
    table = pd.DataFrame({"x": [1, 2, None] * 4, "y": [1, 2, 3] * 4, "w": list("ab") * 6})
    gap = cpv.DiscreteSource.from_table(table, key="x", sensitive="w", missing="level")
    two = cpv.DiscreteSource.from_table(table[:2], key=["x", "y"], sensitive="w")
    for source in (gap, two):
        with pytest.raises(cpv.InputError, match="source: .*order"):
            cpv.optimal_intervals(source)
    with pytest.raises(cpv.InputError, match="pass a list of criteria"):
        cpv.optimal_intervals(gap, cpv.KAnonymity(2))
