"""Full-domain generalisation: against all levels; and what determinism costs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.model.information import entropy, mutual_information
from tests import referee
from tests.criteria.definitions import standing
from tests.lengths import some_at_length
from tests.sdc.audits import GROUP_CRITERIA, refusal


def people(seed, records=60):
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(0, 8, records), rng.choice(["f", "m"], records)
    town = rng.choice(["a", "b", "c"], records)
    ill = (rng.random(records) < 0.15 + 0.08 * age + 0.1 * (sex == "m")).astype(int)
    ill += (rng.random(records) < 0.2).astype(int)
    return pd.DataFrame({"age": age, "sex": sex, "town": town, "ill": ill})


def levels_of(source):
    results = {"age": sdc.Hierarchy.intervals(source.levels["age"], 2, 4)}
    results["town"] = sdc.Hierarchy.tree(
        {"a": ("north", "*"), "b": ("north", "*"), "c": ("south", "*")}
    )
    return results


@pytest.mark.long
@given(st.integers(0, 10_000), GROUP_CRITERIA, st.sampled_from(["W", "X", "d"]))
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
    satisfied, worth = {}, {}
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
        satisfied[node] = all(standing(c, table, reference=prior)[1].all() for c in criteria)
        if keep == "d":
            p = source.p_x[:, None] * d.matrix
            worth[node] = -sum(p[i].sum(axis=0).min() for i in groups.values())
        else:
            worth[node] = mutual_information(table) if keep == "W" else entropy(table.sum(axis=0))
    good = [node for node, holds in satisfied.items() if holds]

    def ask():
        return sdc.full_domain(
            source, hierarchies, criteria, keep=keep if keep != "d" else "W", distortion=d
        )

    if not good:
        with pytest.raises(cpv.InputError):
            ask()
        return
    outcome = ask()
    finest = [g for g in good if not any(h != g and all(np.array(h) <= np.array(g)) for h in good)]
    assert sorted(tuple(m.values()) for m in outcome.minimal) == sorted(finest)
    assert outcome.nodes == 12 >= outcome.evaluated
    assert worth[tuple(outcome.levels.values())] == pytest.approx(max(worth[g] for g in good))
    if keep == "d":
        assert outcome.distortion == pytest.approx(-max(worth[g] for g in good), abs=1e-12)


def test_pruning_spares_most_of_a_lattice():
    frame = people(1, 400)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex", "town"])
    chain = sdc.Hierarchy.intervals(source.levels["age"], 2, 4, 8, 16, 32, 64, 128)
    outcome = sdc.full_domain(
        source, {"age": chain, "town": levels_of(source)["town"]}, [cpv.KAnonymity(40)]
    )
    assert outcome.evaluated < outcome.nodes / 2


def test_a_generalisation_is_applied_to_tables():
    frame = people(3)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex", "town"])
    outcome = sdc.full_domain(source, levels_of(source), [cpv.KAnonymity(4)])
    released = outcome.channel.apply(frame, seed=0)
    audit = sdc.audit(frame, released, key=["age", "sex", "town"], sensitive="ill")
    assert audit.measures["k"].worst >= 4
    assert audit.after.plugin == pytest.approx(outcome.information, abs=1e-12)
    assert released["sex"].tolist() == frame["sex"].tolist()  # it has no hierarchy
    for piece in ("groups", "levels", "KAnonymity(4)", "looked at"):
        assert piece in str(outcome)


def test_what_the_lattice_refuses():
    frame = people(3)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key=["age", "sex"])
    ages = sdc.Hierarchy.suppression(source.levels["age"])
    tall = sdc.Hierarchy(source.levels["age"], [source.levels["age"]] * 1001)
    wide = sdc.Hierarchy(["f", "m"], [["f", "m"]] * 1001)
    for hierarchies in (
        {}, {"town": ages}, {"age": {1: 2}}, {"age": sdc.Hierarchy.suppression([0, 1])},
        {"age": tall, "sex": wide},
    ):  # fmt: skip
        refusal("hierarchies", sdc.full_domain, source, hierarchies, [])
    refusal("source", sdc.full_domain, cpv.DiscreteSource([[0.5, 0.5]]), {"age": ages}, [])
    refusal("hierarchies", sdc.full_domain, source, {"age": ages}, [cpv.KAnonymity(50)])
    refusal("keep", sdc.full_domain, source, {"age": ages}, [], keep="Z")


# ---- what determinism costs --------------------------------------------------------------


@pytest.mark.parametrize("seed", some_at_length(range(4), 2))
def test_no_deterministic_map_beats_the_randomised_optimum(seed):
    """All 4⁴ maps are tried: intervals are some of them, and channels are more than all."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, (3, 4))
    source, d = cpv.DiscreteSource.from_counts(counts), cpv.absolute_error([0, 1, 2, 3])
    criteria = [cpv.TCloseness(0.06), cpv.KAnonymity(20)]
    price = sdc.price_of_determinism(source, d, criteria, accuracy="high")
    referee.check(price.randomised)
    maps = []
    for to in itertools.product(range(4), repeat=4):
        joint = np.zeros((3, 4))
        for x, y in enumerate(to):
            joint[:, y] += counts[:, x]
        if all(standing(c, joint)[1].all() for c in criteria):
            maps.append(sum(source.p_x[x] * abs(x - y) for x, y in enumerate(to)))
    assert price.randomised.lower <= min(maps) + 1e-9
    assert min(maps) <= price.deterministic.distortion + 1e-12
    assert price.gap.lower >= -1e-9
    assert float(price.gap) == pytest.approx(
        price.deterministic.distortion - price.randomised.value, abs=1e-9
    )
    assert "intervals add" in str(price)


def test_a_criterion_that_asks_nothing_costs_nothing():
    source = cpv.DiscreteSource.from_counts([[3, 1, 2], [1, 3, 2]])
    price = sdc.price_of_determinism(source, cpv.absolute_error([0, 1, 2]), [cpv.TCloseness(2.0)])
    assert float(price.gap) == pytest.approx(0.0, abs=1e-6)


def test_a_move_of_infinite_distortion_is_made_by_no_level_and_no_interval():
    """Nobody may be called younger: all of a group are released as its oldest, or as one older."""
    frame = pd.DataFrame({"age": [20, 30, 40, 50] * 6, "ill": list("nyynynyn") * 3})
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age")
    older = np.subtract.outer(source.x, source.x).T.astype(float)
    d = cpv.Distortion(np.where(older < 0, np.inf, older), inputs=source.x, outputs=source.x)
    ages = {"age": sdc.Hierarchy.intervals(source.levels["age"], 20, 40)}
    for hierarchies in (None, ages):
        price = sdc.price_of_determinism(source, d, [cpv.KAnonymity(11)], hierarchies=hierarchies)
        assert price.deterministic.groups == [30, 30, 50, 50]
        assert price.deterministic.distortion == 5
        assert price.randomised.upper <= 5
    apart = cpv.Distortion(np.where(np.eye(4) > 0, 0.0, np.inf), inputs=source.x)
    refusal("groups", sdc.optimal_intervals, source, [cpv.KAnonymity(11)], distortion=apart)
    rules = [cpv.KAnonymity(11)]
    refusal("hierarchies", sdc.full_domain, source, ages, rules, distortion=apart)


def test_levels_have_a_price_too():
    source = cpv.DiscreteSource.from_table(people(1), sensitive="ill", key="age")
    ages = {"age": sdc.Hierarchy.intervals(source.levels["age"], 2, 4)}
    d, criteria = cpv.absolute_error(source.x), [cpv.KAnonymity(9)]
    price = sdc.price_of_determinism(source, d, criteria, hierarchies=ages)
    best = sdc.full_domain(source, ages, criteria, distortion=d)
    assert price.deterministic.distortion == best.distortion > 0
    assert "levels add" in str(price)
    assert "E d(X, X̂)" in str(best)
    # of partitions the two are one, so that the law is asked for what it can promise
    other = sdc.price_of_determinism(source, d, [cpv.RecordEntropy(9)], hierarchies=ages)
    assert (other.deterministic.groups, other.deterministic.distortion) == (
        price.deterministic.groups, best.distortion
    )  # fmt: skip
    assert other.randomised.upper == price.randomised.upper <= best.distortion
    assert "under RecordEntropy(9) for KAnonymity(9)" in str(price)
    assert "for" not in str(other)
    held, suppressed = best.standing["KAnonymity(9)"], {"keep": "loss", "suppress": 0.3}
    assert held.values.tolist() == other.deterministic.standing["RecordEntropy(9)"].values.tolist()
    both = [
        sdc.full_domain(source, ages, [kind(10)], **suppressed)
        for kind in (cpv.KAnonymity, cpv.RecordEntropy)
    ]
    assert both[0].groups == both[1].groups
    for best, name in zip(both, ("KAnonymity(10)", "RecordEntropy(10)"), strict=True):
        assert best.standing_of_suppressed == {name: False}
