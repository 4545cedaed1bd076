"""Groups of a table that was drawn elsewhere, merged: against every merging that there is."""

from __future__ import annotations

import itertools
from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.errors import UnknownValueError
from cvxprivacy_sdc.releases import merging_program
from cvxprivacy_sdc.releases.ensured import ensured
from cvxprivacy_sdc.releases.merging_program import least_merging
from cvxprivacy_sdc.whole_counts.tally import DrawnCounts
from tests.lengths import rest_at_length
from tests.sdc.audits import people

RULES = (
    [cpv.KAnonymity(9)],
    [cpv.DeltaDisclosure(0.5)],
    [cpv.TCloseness(0.03), cpv.KAnonymity(6)],
    [cpv.LDiversity(1.7)],
    [cpv.LeakageCap(0.02)],
    [cpv.TCloseness(0.1, "tv"), cpv.LeakageCap(0.03), cpv.KAnonymity(4)],
    [cpv.LeakageCap(0.6, cpv.leakage.GuessingProbability())],
)


def bits(joint):
    p = joint / joint.sum()
    both = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    return float((p[p > 0] * np.log2(p[p > 0] / both[p > 0])).sum())


def keeps(rule, joint, prior):
    """Whether merged counts satisfy a criterion, by the definition, in floats; None at the edge."""
    sizes = joint.sum(axis=0)
    shares = joint / sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(shares / prior[:, None])
        divergence = np.nansum(shares * ratio, axis=0) / log(2)
        entropy = -np.nansum(np.where(shares > 0, shares * np.log(shares), 0), axis=0)
    kind = type(rule)
    bound = float(rule.value)
    if kind is cpv.KAnonymity:
        return sizes.min() >= bound
    if kind is cpv.LeakageCap:
        guessed = joint.max(axis=0).sum() / joint.sum()
        spare = bound - (bits(joint) if bound < 0.5 else guessed)
    elif kind is cpv.TCloseness:
        variation = np.abs(shares - prior[:, None]).sum(axis=0).max() / 2
        spare = bound - (divergence.max() if rule.distance == "kl" else variation)
    elif kind is cpv.LDiversity:
        spare = np.exp(entropy).min() - bound
    else:
        spare = bound - np.abs(ratio).max()
    return None if abs(spare) < 1e-9 else spare > 0


def every_merging(joint, costs, rules):
    """Return the least cost of all maps of groups to groups, None where none satisfies all."""
    prior, best, count = joint.sum(axis=1) / joint.sum(), None, len(costs)
    for places in itertools.product(range(count), repeat=count):
        merged = np.zeros_like(joint)
        np.add.at(merged.T, list(places), joint.T)
        merged = merged[:, merged.any(axis=0)]
        standing = [keeps(rule, merged, prior) for rule in rules]
        if None in standing:
            return "edge"
        cost = int(costs[range(count), places].sum())
        if all(standing) and (best is None or cost < best):
            best = cost
    return best


def laid_out(joint):
    w, y = np.nonzero(joint)
    cells = joint[w, y]
    names = list("ab"), list(range(joint.shape[1])), list(range(joint.shape[1]))
    return DrawnCounts(*names, w, y, y, cells, cells)


def compared(seed):
    """Compare one random table; return whether there is a merging."""
    rng = np.random.default_rng(seed)
    joint = rng.integers(0, 9, (2, int(rng.integers(2, 5))))
    joint[:, joint.sum(axis=0) == 0] = 1
    joint[joint.sum(axis=1) == 0] += 1
    costs = rng.integers(0, 2 * joint.sum(axis=0)[:, None] + 1, (joint.shape[1],) * 2)
    rules = RULES[seed % len(RULES)]
    truth = every_merging(joint, costs, rules)
    if truth == "edge":
        return False
    try:
        least = least_merging(laid_out(joint), rules, costs, np.zeros(costs.shape), "bits")
    except cpv.InfeasibleError:
        assert truth is None
        return False
    assert least.lower <= (np.inf if truth is None else truth)
    if truth is None:
        assert least.places is None
        return False
    merged = np.zeros_like(joint)
    np.add.at(merged.T, least.places, joint.T)
    prior = joint.sum(axis=1) / joint.sum()
    assert all(keeps(rule, merged[:, merged.any(axis=0)], prior) for rule in rules)
    assert costs[range(len(costs)), least.places].sum() == truth
    assert least.optimal
    return True


@pytest.mark.parametrize("first", rest_at_length(range(0, 280, 28), 1))
def test_no_merging_costs_less(first):
    assert sum(map(compared, range(first, first + 28))) >= 10


# ---- tables ------------------------------------------------------------------------------


def channel_of(table, **options):
    how = {"sensitive": "ill", "key": ["age", "sex"], "bins": {"age": 10}, **options}
    source = cpv.DiscreteSource.from_table(table, **how)
    return (
        cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.TCloseness(0.1)]).solve().channel
    )


ASKED = [cpv.TCloseness(0.05), cpv.KAnonymity(20)]


def counted(frame):
    return pd.crosstab(frame["ill"], [frame["age"], frame["sex"]])


def test_another_table_is_mended_and_drawn_by_the_same_seed():
    channel, table = channel_of(people(300)), people(250, seed=5)
    mended = ensured(channel, table, ASKED, seed=3)
    drawn, released = (c.apply(table, seed=3) for c in (channel, mended.channel))
    joint = counted(released).to_numpy()
    assert joint.sum(axis=0).min() >= 20
    prior = joint.sum(axis=1) / 250
    assert all(keeps(rule, joint, prior) for rule in ASKED)
    assert not all(keeps(rule, counted(drawn).to_numpy(), prior) for rule in ASKED)
    bands = table.assign(age=[f"[{a // 10 * 10}, {a // 10 * 10 + 10})" for a in table["age"]])
    moved = (bands[["age", "sex"]] != released[["age", "sex"]]).any(axis=1).sum()
    assert mended.lower <= mended.changed == moved
    apart = (drawn[["age", "sex"]] != released[["age", "sex"]]).any(axis=1).sum()
    assert mended.merging.records == apart > 0
    again = ensured(mended.channel, table, ASKED, seed=3)  # nothing is left to merge
    assert again.channel is mended.channel
    assert (again.merging.moves, again.changed) == ([], mended.changed)


def test_the_rule_of_thumb_is_never_better_and_takes_over(monkeypatch):
    channel, table = channel_of(people(300)), people(250, seed=5)
    best = ensured(channel, table, ASKED, seed=3)
    monkeypatch.setattr(merging_program, "ALL_MOVES", 3)
    thumb = ensured(channel, table, ASKED, seed=3)
    assert best.changed <= thumb.changed
    assert thumb.lower == best.lower
    assert (thumb.optimal, best.optimal) == (False, True)
    monkeypatch.setattr(merging_program, "_GROUPS", 3)
    assert ensured(channel, table, ASKED, seed=3).lower is None


def test_what_no_program_states_is_merged_by_the_rule_of_thumb():
    table = people(250, seed=5).assign(weight=1.5)
    weighted = ensured(channel_of(table, weights="weight"), table, [cpv.TCloseness(0.05)], seed=3)
    entropy = ensured(channel_of(table), table, [cpv.RecordEntropy(30)], seed=3)
    released = weighted.channel.apply(table, seed=3)
    bands = table.assign(age=[f"[{a // 10 * 10}, {a // 10 * 10 + 10})" for a in table["age"]])
    moved = (bands[["age", "sex"]] != released[["age", "sex"]]).any(axis=1).sum()
    assert weighted.changed == moved
    for mended in (weighted, entropy):
        assert mended.lower is None
        assert all(verdict.holds for verdict in mended.verdicts)


def test_ties_go_to_the_nearest_band():
    ages = [25] * 3 + [35] * 10 + [45] * 10 + [65] * 10
    table = pd.DataFrame({"age": ages, "sex": "f", "ill": ["no", "yes", "no"] * 11})
    source = cpv.DiscreteSource.from_table(
        table, sensitive="ill", key=["age", "sex"], bins={"age": 10}
    )
    stays = cpv.Channel(
        np.eye(4), inputs=source.x, outputs=source.x[::-1], schema=source.schema
    ).relabelled(source.x)
    mended = ensured(stays, table, [cpv.KAnonymity(5)], seed=1)
    assert mended.merging.moves == [(("[20, 30)", "f"), ("[30, 40)", "f"), 3)]
    assert mended.lower <= mended.changed == 3
    assert mended.optimal


def test_what_cannot_be_mended_is_refused():
    channel, table = channel_of(people(300)), people(250, seed=5)
    with pytest.raises(cpv.InputError, match="KeepProbability.*cannot be decided on a table"):
        ensured(channel, table, [cpv.KeepProbability(0.5)], seed=1)
    with pytest.raises(cpv.InfeasibleError, match="LDiversity"):
        ensured(channel, table, [cpv.LDiversity(2.99)], seed=1)
    with pytest.raises(sdc.BrokenTableError, match="DistinctDiversity"):
        ensured(channel, table[table["ill"] != "flu"], [sdc.DistinctDiversity(3)], seed=1)
    with pytest.raises(UnknownValueError, match="is no input"):
        ensured(channel, table.assign(sex="x"), ASKED, seed=1)


def test_the_smallest_groups_are_those_of_whoever_counts():
    channel, table = channel_of(people(300)), people(120, seed=9)
    mended = ensured(channel, table, [cpv.KAnonymity(15)], seed=2, draw="balanced", row_id="id")
    released = mended.channel.apply(table, seed=2, draw="balanced", row_id="id")
    sizes = Counter(zip(released["age"], released["sex"], strict=True))
    assert sorted(sizes.values()) == sorted(n for n in mended.counts.sizes.tolist() if n)
    assert min(sizes.values()) >= 15
