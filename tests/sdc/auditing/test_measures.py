"""Privacy measures of tables of counts: their definitions on records, other programs, criteria."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.criteria.counts import disclosure, entropy_diversity, leaked
from cvxprivacy.leakage import EarthMover, TotalVariation
from cvxprivacy.model.one_symbol import i1
from cvxprivacy_sdc.auditing import measures
from tests.criteria.definitions import standing
from tests.public_tables import real_folder
from tests.sdc.audits import refusal

TABLE = np.array([[5, 0, 2], [3, 1, 2], [0, 1, 2]])
TABLES = arrays(np.int64, (3, 4), elements=st.integers(0, 6)).filter(
    lambda n: n.sum(axis=0).all() and n.sum(axis=1).all()
)


def records_of(counts):
    """Return the table that has these counts, record by record."""
    return [
        (w, x)
        for (w, x), n in np.ndenumerate(counts)
        for _ in range(n)
    ]  # fmt: skip


@given(TABLES, st.integers(0, 9))
def test_class_sizes_by_their_definitions(counts, suppressed):
    """As pycanon states them: Σ |EC|² + |DB|² − |DB||DB'|, |DB'|/(k |EC|), mean penalty."""
    records = records_of(counts)
    groups = [[w for w, y in records if y == x] for x in range(counts.shape[1])]
    total, sizes = len(records) + suppressed, [len(group) for group in groups]
    penalty = sum(len(group) - max(Counter(group).values()) for group in groups) + suppressed
    of = measures.ClassSizes.of(counts, suppressed)
    assert of.discernibility == sum(n * n for n in sizes) + total**2 - total * len(records)
    assert of.discernibility == measures.discernibility(sizes, suppressed)
    assert (of.number, of.least, of.greatest) == (len(groups), min(sizes), max(sizes))
    assert of.average == pytest.approx(len(records) / len(groups))
    assert of.normalised == pytest.approx(len(records) / (min(sizes) * len(groups)))
    assert measures.average_class_size([*sizes, 0], 3) == pytest.approx(of.average / 3)
    assert of.classification == pytest.approx(penalty / total)
    assert of.suppressed == suppressed


@given(TABLES)
def test_definitions_on_the_records(counts):
    records = records_of(counts)
    everyone = Counter(w for w, _ in records)
    total = len(records)
    for x in range(counts.shape[1]):
        group = Counter(w for w, y in records if y == x)
        n = sum(group.values())
        p = {w: group[w] / n for w in everyone}
        q = {w: everyone[w] / total for w in everyone}
        expected = {
            measures.distinct_diversity: len(group),
            entropy_diversity: math.prod(v**-v for v in p.values() if v),
            measures.likeness: max(p[w] / q[w] - 1 for w in p),
            disclosure: max(abs(math.log(p[w] / q[w])) if p[w] else math.inf for w in p),
        }
        for measure, value in expected.items():
            assert measure(counts)[x] == pytest.approx(value, abs=1e-12), measure.__name__
        assert standing(cpv.KAnonymity(2), counts)[0][x] == n
        recorded = max(abs(math.log(p[w] / q[w])) for w in p if p[w])
        assert disclosure(counts, observed=True)[x] == pytest.approx(recorded, abs=1e-12)
        ranked = sorted(group.values(), reverse=True)
        for l in (1, 2, 3):  # noqa: E741
            c = measures.recursive_diversity(counts, l)[x]
            tail = sum(ranked[l - 1 :])
            if math.isinf(c):
                assert len(group) < l
                continue
            assert ranked[0] < c * (1 + 1e-9) * tail  # above it the table is diverse
            assert not ranked[0] < c * (1 - 1e-9) * tail  # and below it is not


@given(TABLES, st.sampled_from(["ordered", "equal"]), st.booleans())
def test_earth_mover_is_the_least_work(counts, ground, gap):
    """Against the transport problem itself, as a linear program; a value nobody has counts."""
    if gap:
        counts = np.insert(counts, 1, 0, axis=0)
    p, q = counts[:, 0] / counts[:, 0].sum(), counts.sum(axis=1) / counts.sum()
    n = len(p)
    rank = np.arange(n)
    far = np.abs(rank[:, None] - rank) / (n - 1) if ground == "ordered" else 1.0 - np.eye(n)
    sides = [np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))]
    work = linprog(far.ravel(), A_eq=np.vstack(sides), b_eq=np.concatenate([p, q])).fun
    outcome = leaked(EarthMover(ground), counts)[0]
    assert outcome == pytest.approx(work, abs=1e-9)
    assert outcome == pytest.approx(leaked(EarthMover(far), counts)[0], abs=1e-9)
    if ground == "ordered":
        assert outcome == pytest.approx(wasserstein_distance(rank, rank, p, q) / (n - 1), abs=1e-12)


@given(TABLES)
def test_enhanced_likeness_is_the_least_parameter(counts):
    """(p(w|x) − p(w)) / p(w) ≤ min(β, −ln p(w)) for every w: at β, not below, or never."""
    q = counts.sum(axis=1) / counts.sum()
    outcome = measures.likeness(counts, enhanced=True)
    for x, beta in enumerate(outcome):
        gain = counts[:, x] / counts[:, x].sum() / q - 1

        def holds(b, gain=gain):
            return (gain <= np.minimum(b, -np.log(q)) + 1e-9).all()

        if math.isinf(beta):
            assert not holds(1e9)
        else:
            assert holds(beta)
            assert beta < 1e-6 or not holds(beta - 1e-6)


@given(TABLES, st.integers(0, 3), st.integers(0, 3))
def test_merging_two_groups_breaks_no_criterion(counts, a, b):
    """The pruning of the lattice and the exactness of the search rest on this."""
    if a == b:
        return
    values = [x for x in range(4) if x not in (a, b)]
    merged = np.column_stack([counts[:, a] + counts[:, b], counts[:, values]])
    for criterion in (
        cpv.TCloseness(0.3), cpv.LDiversity(1.7), cpv.KAnonymity(5), cpv.DeltaDisclosure(0.8),
    ):  # fmt: skip
        _, before = standing(criterion, counts)
        _, after = standing(criterion, merged)
        if before[[a, b]].all():
            assert after[0], criterion
        assert (after[1:] == before[values]).all()


def test_standing_is_by_the_measures_and_met_by_equality():
    cases = {
        cpv.TCloseness(np.nextafter(i1(TABLE)[0], 1)): (i1(TABLE), [True, False, True]),
        cpv.LDiversity(2.0): (entropy_diversity(TABLE), [False, True, True]),
        cpv.KAnonymity(6): (TABLE.sum(axis=0), [True, False, True]),
        cpv.DeltaDisclosure(1.0): (disclosure(TABLE), [False, False, True]),
    }
    for criterion, (values, expected) in cases.items():
        outcome, holds = standing(criterion, TABLE)
        assert outcome == pytest.approx(values)
        assert holds.tolist() == expected, criterion
    even = [[1, 2], [1, 2]]  # two values, equally often: ℓ = 2 whatever rounding says
    assert standing(cpv.LDiversity(2.0), even)[1].all()
    nats = np.nextafter(i1(TABLE, units="nats")[0], 1)
    assert standing(cpv.TCloseness(nats), TABLE, units="nats")[1][0]


def test_a_letter_without_records_has_no_measure_and_breaks_nothing():
    table = np.insert(TABLE, 1, 0, axis=1)
    for measure in (
        measures.distinct_diversity, entropy_diversity, measures.recursive_diversity,
        disclosure, measures.likeness,
        partial(leaked, EarthMover()),
    ):  # fmt: skip
        outcome = measure(table)
        assert np.isnan(outcome).tolist() == [False, True, False, False]
        assert outcome[[0, 2, 3]] == pytest.approx(measure(TABLE))
    for criterion in (cpv.TCloseness(0), cpv.LDiversity(3), cpv.KAnonymity(99)):
        assert standing(criterion, table)[1][1]


def test_wrong_counts():
    for counts in ([[1, -1]], [[0, 0]], [1, 2], [[math.inf]]):
        refusal("counts", measures.distinct_diversity, counts)
    for l in (0, 1.5, "x"):  # noqa: E741
        refusal("l", measures.recursive_diversity, TABLE, l)
    refusal("reference", leaked, EarthMover(), TABLE, reference=[1, 0, 1])


# ---- beside pycanon ----------------------------------------------------------------------

# t_closeness of pycanon 1.3.6 on its own examples (data/processed of its repository at 3561f35,
# with the keys of its examples), whose counts of W in each class are here.
ITS_TEXT = {
    "hospital_anonymized": (0.6153846153846154, [
        [0, 1, 0, 1, 3], [1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0],
    ]),
    "drugs_k5": (0.6797297297297298, [
        [5, 13, 3, 5, 3, 3, 4, 6, 5, 6, 8, 1, 4, 4, 3, 2, 3, 3, 3, 3],
        [6, 3, 0, 0, 0, 0, 6, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 6, 3, 0, 0, 0],
        [0, 0, 5, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0],
        [0, 0, 0, 5, 9, 6, 0, 0, 0, 8, 5, 5, 0, 0, 3, 0, 0, 0, 2, 3],
    ]),
}  # fmt: skip
ITS_SCORES = [  # StudentsMath_Score_k7: W is a number, of 41 values
    [30, 30, 42, 55, 72, 75, 76], [30, 37, 52, 56, 71, 72, 73],
    [32, 33, 34, 50, 54, 59, 69, 74, 80], [51, 53, 60, 61, 79, 83, 89, 95],
    [60, 62, 67, 77, 80, 87, 95], [48, 51, 52, 53, 53, 60, 64, 84, 87, 87, 95],
    [52, 53, 58, 64, 68, 76, 83, 88], [45, 47, 51, 75, 79, 79, 90],
]  # fmt: skip


@pytest.mark.parametrize("name", ITS_TEXT)
def test_pycanon_on_its_own_texts_is_the_equal_distance(name):
    t, counts = ITS_TEXT[name]
    assert leaked(EarthMover("equal"), counts).max() == pytest.approx(t, abs=1e-12)
    assert leaked(TotalVariation(), counts).max() == pytest.approx(t, abs=1e-12)


def test_pycanon_on_its_own_numbers_is_the_ordered_distance():
    records = [(group, score) for group, scores in enumerate(ITS_SCORES) for score in scores]
    frame = pd.DataFrame(records, columns=["x", "w"])
    audit = sdc.audit(frame, key="x", sensitive="w")
    assert audit.measures["ordered distance"].worst == pytest.approx(0.19748883928571426, abs=1e-12)
    assert audit.measures["equal distance"].worst == pytest.approx(27 / 32, abs=1e-12)


def test_where_pycanon_says_otherwise():
    """What pycanon 1.3.6 says of tables that its ``t_closeness`` takes otherwise."""
    frame = pd.DataFrame({"x": [1, 1, 2, 2, 3, 3], "w": [1, 2, 2, 5, 5, 5]})
    how = {"key": "x", "sensitive": "w"}

    def measured(table, name="ordered distance", **options):
        return sdc.audit(table, **how, **options).measures[name].worst

    assert measured(frame) == pytest.approx(0.4166666666666667)  # alike
    graded = pd.Categorical(frame["w"].astype(str), ordered=True)
    assert measured(frame.assign(w=graded)) == pytest.approx(
        5 / 12
    )  # in order; pycanon: 0.5, equal
    moved = frame.set_axis([3, 0, 4, 1, 5, 2])
    assert measured(moved) == pytest.approx(5 / 12)  # pycanon: 0.167, labels taken for places
    without = frame.assign(x=[1, 1, 2, 2, np.nan, np.nan])
    # the records without a key leave p(w) too; pycanon keeps them there: 0.417
    assert measured(without, missing="drop") == pytest.approx(0.25)
    assert measured(without, missing="level") == pytest.approx(5 / 12)
    assert measured(frame.assign(w=1)) == 0.0  # pycanon: a division by zero


# What pycanon 1.3.5 says of adult.csv (Python 3.11, pandas 2.3.3), in an environment of its own:
#     python benchmarks/sdc/pycanon_audit.py adult.csv
# k, ⌊entropy ℓ⌋, t (equal distance; ordered where W is a number), basic β, δ without the values
# that a group misses.
SIX = ["age", "education", "occupation", "relationship", "sex", "native-country"]
PYCANON = [
    (SIX, "income", 1, 1, 0.7591904425539756, 3.152659099604642, 2.98259391741754),
    (SIX, "marital-status", 1, 1, 0.999293633487915, 1414.6956521739132, 7.255376316246419),
    (["race", "sex"], "marital-status", 109, 2, 0.357749209966631, 4.002567929414864,
     1.664595769939616),
    (["race", "sex"], "education-num", 109, 6, 0.08610245056982632, 6.882110869038974,
     2.0645957447788046),
    (["race", "sex"], "occupation", 109, 8, 0.32220540754980986, 17.843171296296298,
     3.1669503185343943),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize(("key", "sensitive", "k", "l", "t", "beta", "delta"), PYCANON)
def test_the_numbers_of_pycanon_on_adult(key, sensitive, k, l, t, beta, delta):  # noqa: E741
    frame = pd.read_csv(real_folder("adult") / "adult.csv")
    audit = sdc.audit(frame, key=key, sensitive=sensitive)
    results = {name: measure.worst for name, measure in audit.measures.items()}
    assert results["k"] == k
    assert math.floor(results["entropy l"] + 1e-9) == l
    distance = "ordered distance" if sensitive == "education-num" else "equal distance"
    assert results[distance] == pytest.approx(t, abs=1e-12)
    assert results["beta"] == pytest.approx(beta, rel=1e-12)
    assert results["delta observed"] == pytest.approx(delta, abs=1e-12)
    assert results["delta"] == math.inf  # some group misses some value: pycanon drops it
