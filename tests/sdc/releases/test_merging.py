"""Groups merged by a rule of thumb: which, where several cost the same."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.tables import Bins, TableSchema
from cvxprivacy_sdc.releases.merging import merging
from cvxprivacy_sdc.whole_counts.nearness import steps_apart
from cvxprivacy_sdc.whole_counts.tally import DrawnCounts

BANDS = Bins(tuple(range(20, 90, 10)))
SCHEMA = TableSchema(key=("age", "sex"), sensitive=("ill",), bins={"age": BANDS})
CELLS = [(band, sex) for band in BANDS.labels for sex in "fm"]
OLDEST, YOUNGEST = ("[70, 80)", "m"), ("[20, 30)", "f")


def drawn_as_it_was(sizes, few):
    """Return a table that was released as it is: even groups, but of one in ``few``, all ill."""
    counts = {}
    for y, cell in enumerate(CELLS):
        for w in range(2):
            counts[w, cell, y] = sizes[cell] if cell not in few else 2 * w * sizes[cell]
    return DrawnCounts.of([0, 1], CELLS, CELLS, {k: n for k, n in counts.items() if n})


def merged(counts, rules, schema=SCHEMA):
    joint = np.zeros((2, len(CELLS)))
    np.add.at(joint, (counts.w_at, counts.x_at), counts.records)
    alphabet = Alphabet(cpv.DiscreteSource(joint / joint.sum(), x=CELLS), cpv.hamming(CELLS))
    apart = steps_apart(CELLS, CELLS, schema, {"sex": ["f", "m"]})
    return merging(counts, rules, alphabet, None, apart)


def test_of_equal_cost_the_nearest_band_is_taken():
    """All others cost as many records: the largest group was at the far end of the scale."""
    sizes = {**dict.fromkeys(CELLS, 100), OLDEST: 3, YOUNGEST: 900}
    counts = drawn_as_it_was(sizes, {OLDEST})
    assert merged(counts, [cpv.TCloseness(0.2)]).moves == [(OLDEST, ("[60, 70)", "m"), 6)]
    # another sex is as far as the farthest age
    sizes |= {cell: 3 for cell in CELLS if cell[1] == "m" and cell != ("[20, 30)", "m")}
    few = {cell for cell in CELLS if sizes[cell] == 3}
    for cell, to, _ in merged(drawn_as_it_was(sizes, few), [cpv.TCloseness(0.2)]).moves:
        assert cell[1] == "m"
        assert to[1] == "m" or to[0] == cell[0]


def test_without_an_order_the_largest_group_is_taken():
    sizes = {**dict.fromkeys(CELLS, 100), OLDEST: 3, ("[30, 40)", "m"): 300}
    plain = TableSchema(key=("age", "sex"), sensitive=("ill",))
    (move,) = merged(drawn_as_it_was(sizes, {OLDEST}), [cpv.TCloseness(0.2)], plain).moves
    assert move == (OLDEST, ("[30, 40)", "m"), 6)


@pytest.mark.parametrize("cell", CELLS[::3])
def test_a_cap_is_met_by_the_nearest_merge_of_those_that_help_as_much(cell):
    """One group leaks: merged into any other of as many records it leaks as little."""
    counts = drawn_as_it_was({**dict.fromkeys(CELLS, 100), cell: 3}, {cell})
    cap = cpv.LeakageCap(1e-3)
    assert not cap.verdict(Counts.of_records(counts.joint, "bits")).holds
    outcome = merged(counts, [cap])
    assert cap.verdict(Counts.of_records(counts.relabelled(outcome.places).joint, "bits")).holds
    ((_, to, _),) = outcome.moves
    steps = abs(BANDS.labels.index(cell[0]) - BANDS.labels.index(to[0]))
    assert (steps, to[1]) == (1, cell[1])


def drawn_of(joint):
    """Return the table N(w, x) released as it is, and its alphabet."""
    letters, values = list(range(joint.shape[1])), list(range(len(joint)))
    moves = {(w, x, x): int(n) for (w, x), n in np.ndenumerate(joint) if n}
    source = cpv.DiscreteSource.from_counts(joint, x=letters)
    return DrawnCounts.of(values, letters, letters, moves), Alphabet(source, cpv.hamming(letters))


def test_three_groups_may_lessen_a_guess_that_no_two_do():
    """Groups {1, 2}, {2, 3}, {1, 3} of W: two of them are guessed as one is, all as 2 of 6."""
    counts, alphabet = drawn_of(np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]]))
    cap = cpv.LeakageCap(0.34, leakage=cpv.leakage.GuessingProbability())
    merged = merging(counts, [cap], alphabet, None, 1 - np.eye(3))
    assert len(set(merged.places.tolist())) == 1
    with pytest.raises(sdc.BrokenTableError):
        merging(counts, [cap.at(0.33)], alphabet, None, 1 - np.eye(3))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_refused_no_merging_satisfies(seed):
    """All groups together leak least, in every measure."""
    rng = np.random.default_rng(seed)
    joint = rng.integers(0, 4, (3, 4)) + np.eye(3, 4, dtype=int)
    counts, alphabet = drawn_of(joint)
    measure = rng.choice([cpv.leakage.GuessingProbability(), cpv.leakage.TotalVariation()])
    together = Counts.of_records(joint.sum(axis=1, keepdims=True), "bits")
    for excess in (-1e-3, 1e-3):
        least = float(cpv.LeakageCap(1, leakage=measure).verdict(together).value)
        if least + excess < 0:
            continue
        cap = cpv.LeakageCap(least + excess, leakage=measure)
        if excess < 0:
            with pytest.raises(sdc.BrokenTableError):
                merging(counts, [cap], alphabet, None, 1 - np.eye(4))
        else:
            places = merging(counts, [cap], alphabet, None, 1 - np.eye(4)).places
            after = Counts.of_records(counts.relabelled(places).joint, "bits")
            assert cap.verdict(after).holds
