"""Levels and suppression together: against the whole lattice, record by record."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.lengths import rest_at_length, some_at_length
from tests.sdc.audits import refusal

LIMITS = (0, 0.1, 0.3)
KEYS = ["a", "b", "c"]
KEEP = ("W", "X", "discernibility", "class size", "non-uniform entropy", "loss")
HIERARCHIES = {
    "a": sdc.Hierarchy.intervals([0, 1, 2, 3], 2),
    "b": sdc.Hierarchy.tree({"x": ("p", "*"), "y": ("p", "*"), "z": ("q", "*")}),
}


def records_of(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(16, 40))
    a, b = rng.integers(0, 4, n), rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2])
    c, w = rng.choice(["m", "n"], n, p=[0.9, 0.1]), (rng.integers(0, 3, n) + a // 2) % 4
    return pd.DataFrame({"a": a, "b": b, "c": c, "w": w})


# ---- criteria, of the values of W in a group, whose shares in the table are p -------------


def shares(group):
    return {w: Fraction(n, len(group)) for w, n in Counter(group).items()}


def _recursive(c, least):
    def holds(group, p):
        counts = sorted(Counter(group).values(), reverse=True)
        return counts[0] < c * sum(counts[least - 1 :])

    return holds


def _likeness(beta, enhanced=False):
    def holds(group, p):
        most = {w: min(beta, -math.log(q)) if enhanced else beta for w, q in p.items()}
        return all(q / p[w] - 1 <= most[w] for w, q in shares(group).items())

    return holds


def _entropy(law):
    return -sum(float(q) * math.log2(q) for q in law.values())


CRITERIA = {
    "k": (cpv.KAnonymity(4), lambda group, p: len(group) >= 4),
    "distinct": (sdc.DistinctDiversity(3), lambda group, p: len(set(group)) >= 3),
    "entropy": (cpv.LDiversity(1.9), lambda group, p: _entropy(shares(group)) >= math.log2(1.9)),
    "recursive": (sdc.RecursiveDiversity(2, 2), _recursive(2, 2)),
    "strict": (sdc.RecursiveDiversity(Fraction(3, 2), 3), _recursive(Fraction(3, 2), 3)),
    "beta": (sdc.BetaLikeness(1), _likeness(1)),
    "enhanced": (sdc.BetaLikeness(2, enhanced=True), _likeness(2, enhanced=True)),
    "t": (
        cpv.TCloseness(Fraction(2, 5), "tv"),
        lambda group, p: (
            sum(abs(shares(group).get(w, 0) - q) for w, q in p.items()) <= Fraction(4, 5)
        ),
    ),
    "delta": (
        cpv.DeltaDisclosure(1.7),
        lambda group, p: all(
            w in shares(group) and abs(math.log(shares(group)[w] / q)) <= 1.7 for w, q in p.items()
        ),
    ),
}


# ---- a table at a node, record by record ---------------------------------------------------


def recoded(frame, node):
    """Return each record's values at a node, which may have columns without a hierarchy."""
    levels = dict(zip(HIERARCHIES, node, strict=True))
    names = {n: h.mapping(levels[n]) for n, h in HIERARCHIES.items()}
    return [
        tuple(names[n][v] if n in names else v for n, v in zip(KEYS, row, strict=True))
        for row in frame[KEYS].itertuples(index=False)
    ]


def kept_of(values, w, judges):
    """Return which records are in groups that satisfy all criteria."""
    groups, p = {}, shares(w)
    for value, each in zip(values, w, strict=True):
        groups.setdefault(value, []).append(each)
    good = {value: all(judge(group, p) for judge in judges) for value, group in groups.items()}
    return [good[value] for value in values]


def informs(released, w):
    return _entropy(shares(released)) + _entropy(shares(w)) - _entropy(
        shares(list(zip(released, w, strict=True)))
    )  # fmt: skip


def losses(frame, values, kept, hierarchies=HIERARCHIES):
    """Return the loss of each column, as Iyengar has it."""
    results = []
    for column, name in enumerate(frame[KEYS] if hierarchies is HIERARCHIES else hierarchies):
        total = Fraction(0)
        for value, stays in zip(values, kept, strict=True):
            leaves = 1
            if name in hierarchies:
                letters = hierarchies[name].letters
                leaves = max(level.count(value[column]) for level in hierarchies[name].levels)
                total += Fraction(leaves - 1, len(letters) - 1) if stays else 1
            else:
                total += not stays
        results.append(total / len(values))
    return results


def worth(keep, frame, values, kept):
    """Return a cost, or minus what is kept, of records of which some are suppressed."""
    released = [v if stays else None for v, stays in zip(values, kept, strict=True)]
    n, sizes = len(released), Counter(released)
    if keep == "W":
        return -informs(released, frame["w"].tolist())
    if keep == "X":
        return -_entropy(shares(released))
    if keep == "discernibility":
        return sum(n if r is None else sizes[r] for r in released)
    if keep == "class size":
        return n / len(sizes)
    if keep == "loss":
        return float(np.mean(losses(frame, values, kept)))
    return non_uniform(frame[KEYS].itertuples(index=False), values, kept)


def non_uniform(rows, values, kept):
    total = 0.0
    for column in zip(zip(*rows, strict=True), zip(*values, strict=True), strict=True):
        before, after = Counter(column[0]), Counter(column[1])
        hidden = Counter(v for v, stays in zip(column[1], kept, strict=True) if not stays)
        for x, v, stays in zip(*column, kept, strict=True):
            total -= math.log2(before[x] / after[v])
            total -= 0.0 if stays else math.log2(hidden[v] / sum(hidden.values()))
    return total


@pytest.mark.parametrize("seed", some_at_length(range(16), 1))
def test_every_node_of_a_lattice_is_no_better(seed):
    """Of each criterion, limit and objective; each table has two criteria at once, too."""
    frame = records_of(seed)
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key=KEYS)
    nodes = list(itertools.product(range(3), range(3)))
    tables = {node: recoded(frame, node) for node in nodes}
    both = [["k", name] for name in ("entropy", "beta", "t")]
    for i, names in enumerate([*([name] for name in CRITERIA), *both]):
        rules, judges = zip(*(CRITERIA[name] for name in names), strict=True)
        kept = {node: kept_of(tables[node], frame["w"].tolist(), judges) for node in nodes}
        for limit in LIMITS:
            most = Fraction(str(limit)) * len(frame)
            good = [node for node in nodes if kept[node].count(False) <= most]
            for keep in KEEP if i == seed % 12 else (KEEP[(i + seed) % 6],):
                how = {"suppress": limit, "keep": keep}
                if not good:
                    with pytest.raises(cpv.InputError):
                        sdc.full_domain(source, HIERARCHIES, rules, **how)
                    continue
                best = sdc.full_domain(source, HIERARCHIES, rules, **how)
                is_finest(best, good)
                node = tuple(best.levels.values())
                costs = {at: worth(keep, frame, tables[at], kept[at]) for at in good}
                assert costs[node] == pytest.approx(min(costs.values()), abs=1e-9)
                assert abs(best.score) == pytest.approx(abs(costs[node]), abs=1e-9)
                assert best.share_suppressed == kept[node].count(False) / len(frame)
                stands = best.standing_of_suppressed
                if not all(kept[node]):
                    alone = [
                        w for w, stays in zip(frame["w"], kept[node], strict=True) if not stays
                    ]
                    p = shares(frame["w"].tolist())
                    assert list(stands.values()) == [judge(alone, p) for judge in judges]
                else:
                    assert not stands
                assert all(verdict.holds for verdict in best.standing.values())


def is_finest(best, good):
    finest = [g for g in good if not any(h != g and all(map(int.__le__, h, g)) for h in good)]
    assert sorted(tuple(node.values()) for node in best.minimal) == sorted(finest)


@pytest.mark.parametrize("seed", rest_at_length(range(8), 3))
def test_a_bound_on_the_whole_release_counts_the_suppressed_as_one_letter(seed):
    frame = records_of(seed)
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key=KEYS)
    rules = [cpv.LeakageCap(0.31), cpv.KAnonymity(3)]
    for limit in LIMITS:
        good = []
        for node in itertools.product(range(3), range(3)):
            values, w = recoded(frame, node), frame["w"].tolist()
            kept = kept_of(values, w, [lambda group, p: len(group) >= 3])
            released = [v if stays else None for v, stays in zip(values, kept, strict=True)]
            if released.count(None) <= limit * len(w) and informs(released, w) <= 0.31:
                good.append(node)
        if good:
            best = sdc.full_domain(source, HIERARCHIES, rules, suppress=limit)
            is_finest(best, good)
            assert best.standing["LeakageCap(0.31)"].holds
        else:
            refusal("hierarchies", sdc.full_domain, source, HIERARCHIES, rules, suppress=limit)


@pytest.mark.parametrize("name", CRITERIA)
def test_claims_about_merging_are_true_of_random_groups(name):
    """Of two groups that satisfy it, so does the union; with any other, where that is claimed."""
    rule, judge = CRITERIA[name]
    rng = np.random.default_rng(7)
    tried = 0
    for _ in range(400):
        p = {w: Fraction(1, 4) for w in range(4)}
        groups = [rng.integers(0, 4, rng.integers(1, 9)).tolist() for _ in range(2)]
        hold = [judge(group, p) for group in groups]
        if all(hold) or (rule.survives_company and any(hold)):
            assert judge(groups[0] + groups[1], p)
            tried += 1
    assert tried >= 5
    assert rule.survives_merging


@pytest.mark.parametrize("name", ["entropy", "recursive", "beta", "t", "delta"])
def test_company_breaks_what_does_not_claim_otherwise(name):
    rule, judge = CRITERIA[name]
    p = {w: Fraction(1, 4) for w in range(4)}
    assert judge([0, 1, 2, 3], p)
    assert not judge([0, 1, 2, 3, *[0] * 30], p)
    assert not rule.survives_company


def test_enhanced_likeness_says_that_it_asks_for_more():
    basic, enhanced = (sdc.BetaLikeness(2, enhanced=both).in_words(w="ill").asks for both in (0, 1))
    assert basic.endswith("exceed that in the whole table by more than 2 times the latter")
    assert enhanced == f"{basic}, nor by more than minus its logarithm times"


def test_a_share_is_the_decimal_that_was_typed():
    """29 of 100 records, which the float 0.29 is less than."""
    frame = pd.DataFrame({"a": [0] * 71 + list(range(1, 30))})
    source = cpv.DiscreteSource.from_table(frame, sensitive=None, key="a")
    hierarchies = {"a": sdc.Hierarchy.suppression(source.x)}
    for limit, level in ((0.29, 0), (Fraction(29, 100), 0), (0.28, 1)):
        how = {"suppress": limit, "keep": "X"}
        best = sdc.full_domain(source, hierarchies, [cpv.KAnonymity(2)], **how)
        assert best.levels == {"a": level}
    assert best.share_suppressed == 0


def test_what_is_suppressed_is_missing_in_the_released_table():
    frame = records_of(3)
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key=KEYS)
    best = sdc.full_domain(source, HIERARCHIES, [cpv.KAnonymity(4)], suppress=0.3, keep="loss")
    released = best.channel.apply(frame, seed=0)
    lost = released["a"].isna()
    assert 0 < lost.mean() == best.share_suppressed
    assert released[lost][KEYS].isna().all(axis=None)
    sizes = released[~lost].groupby(KEYS).size()
    assert sizes.min() >= 4
    assert released["w"].tolist() == frame["w"].tolist()
    for piece in ("suppressed", "exempt; by itself it", "loss = "):
        assert piece in str(best)


def test_a_table_of_key_columns_alone_is_recoded(tmp_path):
    frame = records_of(3)
    alone = cpv.DiscreteSource.from_table(frame[KEYS], sensitive=None, key=KEYS)
    beside = cpv.DiscreteSource.from_table(frame, sensitive="w", key=KEYS)
    assert alone.law.shape == (1, len(beside.x))
    again = cpv.DiscreteSource.from_schema(frame, alone.schema, [alone.w, alone.x])
    assert again.law.tolist() == alone.law.tolist()
    how = {"suppress": 0.2, "keep": "loss"}
    best, other = (
        sdc.full_domain(source, HIERARCHIES, [cpv.KAnonymity(4)], **how)
        for source in (alone, beside)
    )
    assert (best.groups, best.score, best.minimal) == (other.groups, other.score, other.minimal)
    assert best.share_suppressed > 0 == best.information
    best.channel.save(tmp_path / "channel.json")
    released = cpv.Channel.load(tmp_path / "channel.json").apply(frame[KEYS], seed=1)
    assert released.equals(best.channel.apply(frame[KEYS], seed=0))


def test_all_records_may_be_suppressed():
    source = cpv.DiscreteSource.from_table(records_of(3), sensitive="w", key=KEYS)
    best = sdc.full_domain(source, HIERARCHIES, [cpv.KAnonymity(400)], suppress=1, keep="loss")
    assert (best.share_suppressed, best.score, len(best.outputs)) == (1.0, 1.0, 1)
    assert best.standing_of_suppressed == {"KAnonymity(400)": False}
    assert "it breaks KAnonymity(400)" in str(best)
    assert "KAnonymity(400)    no group is kept" in str(best)
    for rule in (sdc.BetaLikeness(0), sdc.RecursiveDiversity(0.01, 2), sdc.DistinctDiversity(9)):
        best = sdc.full_domain(source, HIERARCHIES, [cpv.KAnonymity(400), rule], suppress=1)
        assert best.standing[str(rule)].holds
        assert best.standing_of_suppressed[str(rule)] is isinstance(rule, sdc.BetaLikeness)
        assert f"{rule!s:<18} no group is kept" in str(best)


def test_what_is_printed_says_of_which_groups_a_rule_holds():
    """Of a bound on the whole no group breaks anything; the suppressed group is exempt."""
    source = cpv.DiscreteSource.from_table(records_of(3), sensitive="w", key=KEYS)
    rules = [cpv.KAnonymity(4), cpv.LeakageCap(0.9)]
    free = str(sdc.full_domain(source, HIERARCHIES, rules[:1]))
    assert "over the groups, 0 break it" in free
    best = sdc.full_domain(source, HIERARCHIES, rules, suppress=0.3)
    assert best.share_suppressed > 0
    lines = {line.split()[0]: line for line in str(best).splitlines()}
    assert lines["KAnonymity(4)"].endswith("over the groups that are kept, 0 break it")
    value = best.standing["LeakageCap(0.9)"].value
    assert lines["LeakageCap(0.9)"].endswith(f"{value:.4g} of the release as a whole, holds")
    assert "by itself" in lines["suppressed"]
    alone = str(sdc.full_domain(source, HIERARCHIES, rules[1:], suppress=0.3))
    assert "by itself" not in alone


def test_a_table_without_a_confidential_column_is_not_recoded_by_what_it_tells_of_it():
    source = cpv.DiscreteSource.from_table(records_of(3)[KEYS], sensitive=None, key=KEYS)
    with pytest.raises(cpv.InputError, match="keep: 'W', of which there is one value"):
        sdc.full_domain(source, HIERARCHIES, [cpv.KAnonymity(2)])
    for hierarchies in ([1], {}, None):
        with pytest.raises(cpv.InputError, match="pass {column: Hierarchy}"):
            sdc.full_domain(source, hierarchies, [cpv.KAnonymity(2)], keep="X")
    with pytest.raises(cpv.InputError, match="sensitive: None"):
        sdc.audit(records_of(3), key=KEYS, sensitive=None)


def test_weights_are_what_is_suppressed():
    """A record that is alone in its group weighs a fifth."""
    frame = pd.DataFrame({"a": [0, 0, 1], "w": [0, 1, 1], "weight": [0.7, 0.9, 0.4]})
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key="a", weights="weight")
    rule, levels = sdc.DistinctDiversity(2), {"a": sdc.Hierarchy.suppression([0, 1])}
    for limit, level in ((0.2, 0), (0.19, 1)):
        best = sdc.full_domain(source, levels, [rule], suppress=limit, keep="X")
        assert best.levels["a"] == level
    assert best.share_suppressed == 0


def test_what_suppression_refuses():
    frame = records_of(3)
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key=KEYS)
    ask, k = sdc.full_domain, [cpv.KAnonymity(4)]
    for bad in (-0.1, 1.1, "2%", math.nan):
        refusal("suppress", ask, source, HIERARCHIES, k, suppress=bad)
    d = cpv.per_attribute(dict.fromkeys(KEYS, "hamming"), source)
    refusal("suppress", ask, source, HIERARCHIES, k, suppress=0.1, distortion=d)
    assert '"class size"' in str(refusal("keep", ask, source, HIERARCHIES, k, keep="size"))
    refusal("criteria", ask, source, HIERARCHIES, [cpv.LocalPrivacy(1)], suppress=0.1)
    missing = frame.assign(a=[None, None, None, *frame["a"][3:]]).astype({"a": object})
    missing[KEYS] = missing[KEYS].where(missing[KEYS].notna().all(axis=1), None)
    some = cpv.DiscreteSource.from_table(missing, sensitive="w", key=KEYS, missing="level")
    level = {"c": sdc.Hierarchy.suppression([None, "m", "n"], mark=None)}
    outcome = refusal("suppress", ask, some, level, [cpv.KAnonymity(3)], suppress=0.9)
    assert "look like" in str(outcome)


def test_programs_refuse_what_is_decided_on_tables_alone():
    source, d = cpv.DiscreteSource.from_counts([[3, 1], [1, 3]]), cpv.hamming(2)
    for rule in (sdc.DistinctDiversity(2), sdc.RecursiveDiversity(2, 2), sdc.BetaLikeness(1)):
        with pytest.raises(cpv.InputError, match="tables alone"):
            cpv.MinimumDistortion(source, d, [rule]).solve()
