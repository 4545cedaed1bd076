"""Drawn tables: counted again by hand, mended, and never leakier than what was proved."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.tables import Bins, TableSchema
from cvxprivacy_sdc.releases.drawn_table import DrawnTable
from cvxprivacy_sdc.utility.changes import changes
from cvxprivacy_sdc.whole_counts.tally import drawn_counts
from tests import engines
from tests.lengths import rest_at_length, some_at_length
from tests.release.test_draws import SEED, secrets_of
from tests.sdc.audits import people

BINS = {"age": 10}


def posed(table, criteria, d=None, key=("age", "sex"), **options):
    bins = BINS if "age" in key else None
    source = cpv.DiscreteSource.from_table(
        table, sensitive="ill", key=list(key), bins=bins, **options
    )
    measure = cpv.hamming(source.x) if d is None else d(source)
    return cpv.MinimumDistortion(source, measure, criteria)


def groups_of(frame, key=("age", "sex")):
    """Count W in each released group, with pandas alone."""
    results: dict = {}
    for cell, ill in zip(letters(frame, key), frame["ill"], strict=True):
        results.setdefault(cell, Counter())[ill] += 1
    return results


def letters(frame, key=("age", "sex")):
    return [tuple(None if pd.isna(v) else v for v in row) for row in frame[list(key)].to_numpy()]


def origins_of(problem, table, frame):
    """Return 2^H of the record that each group came from: those of one letter are alike."""
    key = problem.source.schema.key
    before = problem.source.schema.letters(engines.nw.from_native(table), list(key))
    moves, full = Counter(zip(before, letters(frame, key), strict=True)), Counter(before)
    sizes, nats = Counter(letters(frame, key)), Counter()
    for (x, y), n in moves.items():  # each of n_x records with probability 1/n_x of the n/N(y)
        nats[y] += n / sizes[y] * math.log(sizes[y] / n * full[x])
    return {y: math.exp(h) for y, h in nats.items()}


def broken_by_hand(rule, frame, origins):
    """Return the groups that break a criterion, by the definitions, in floats."""
    full, broken = Counter(frame["ill"]), []
    total = sum(full.values())
    for cell, ours in groups_of(frame).items():
        q = sum(ours.values())
        p = {w: ours[w] / q for w in full}
        prior = {w: n / total for w, n in full.items()}
        divergence = sum(v * math.log2(v / prior[w]) for w, v in p.items() if v)
        entropy = -sum(v * math.log(v) for v in p.values() if v)
        apart = max(abs(math.log(v / prior[w])) if v else math.inf for w, v in p.items())
        most = max(math.log(v / prior[w]) for w, v in p.items() if v)
        bad = {
            cpv.RecordEntropy: lambda b, k=origins[cell]: k < b - 1e-9,
            cpv.TCloseness: lambda b, d=divergence: d > b + 1e-12,
            cpv.LDiversity: lambda b, h=entropy: math.exp(h) < b - 1e-12,
            cpv.DeltaDisclosure: lambda b, a=apart: a > b + 1e-12,
            cpv.PointwiseMaximalLeakage: lambda b, m=most: m > b + 1e-12,
        }[type(rule)](float(rule.value))
        if bad:
            broken.append(cell)
    return broken


def bits(joint):
    """I(W; X̂) of masses, by the definition."""
    p = joint / joint.sum()
    both = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    return float((p[p > 0] * np.log2(p[p > 0] / both[p > 0])).sum())


def check_ensured(table, criteria, seed, d=None):
    """Release a table in both ways and count everything again; return whether it was broken."""
    problem = posed(table, criteria, d)
    solution = problem.solve()
    loose = sdc.release_table(problem, table, seed=seed, solution=solution)
    for check, rule in zip(loose.checks, criteria, strict=True):
        hand = broken_by_hand(rule, loose.frame, origins_of(problem, table, loose.frame))
        assert (check.groups, check.holds) == (len(hand), not hand), check
        sizes = {cell: sum(ours.values()) for cell, ours in groups_of(loose.frame).items()}
        assert check.records == sum(sizes[cell] for cell in hand)
    tight = sdc.release_table(problem, table, seed=seed, solution=solution, ensure="table")
    for rule in criteria:
        origins = origins_of(problem, table, tight.frame)
        assert not broken_by_hand(rule, tight.frame, origins)
    assert tight.holds
    assert len(tight.frame) == len(table)
    if tight.designed is not None:  # in whole counts: the law is that of the table
        assert tight.merging is None
        shown = tight.frame.fillna("withheld")
        joint = pd.crosstab(shown["ill"], [shown["age"], shown["sex"]])
        assert tight.risk == pytest.approx(bits(joint.to_numpy()), abs=1e-9)
        assert tight.law.mean_distortion == pytest.approx(float(tight.distortion), abs=1e-12)
        return not loose.holds
    merged = tight.channel.matrix @ np.eye(len(tight.channel.outputs))
    labels = list(dict.fromkeys(tight.channel.outputs))
    places = [labels.index(y) for y in tight.channel.outputs]
    joint = problem.source.joint @ merged  # masses of (w, x̂) as drawn
    released = np.zeros((len(joint), len(labels)))
    np.add.at(released.T, places, joint.T)
    assert bits(released) <= solution.terms["risk"].upper + 1e-9
    assert tight.risk == pytest.approx(bits(released), abs=1e-9)
    if loose.holds:
        assert tight.merging is None
        pd.testing.assert_frame_equal(tight.frame, loose.frame)
    return not loose.holds


RULES = (
    [cpv.RecordEntropy(8)],
    [cpv.TCloseness(0.05)],
    [cpv.LDiversity(2.0), cpv.RecordEntropy(5)],
    [cpv.DeltaDisclosure(0.5)],
    [cpv.PointwiseMaximalLeakage(0.4), cpv.RecordEntropy(6)],
    [cpv.TCloseness(0.1), cpv.LDiversity(2.2), cpv.DeltaDisclosure(1.0)],
)


def random_table(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 400))
    table = people(n, seed)
    table["age"] = np.where(rng.random(n) < 0.03, 75, table["age"])  # a few of a rare age
    return table


def ensured(first, tables):
    """Check so many tables whose criteria can be met at all; return how many had to be mended."""
    mended, recorded, seeds = 0, 0, itertools.count(first)
    while recorded < tables:
        seed = next(seeds)
        d = (lambda s: cpv.hamming(s.x).with_suppression(0.4)) if seed % 3 == 0 else None
        try:
            mended += check_ensured(random_table(seed), RULES[seed % len(RULES)], seed, d)
        except cpv.InfeasibleError:  # too diverse for so few records
            continue
        recorded += 1
    return mended


def test_an_ensured_table_breaks_nothing():
    assert ensured(0, 4) >= 2  # of tables that broke something before


@pytest.mark.campaign
def test_sixty_ensured_tables_break_nothing():
    assert ensured(1_000, 60) >= 30


@pytest.mark.parametrize("kind", some_at_length(engines.KINDS, 3))
@pytest.mark.parametrize("row_id", rest_at_length(["id", None], 1))
def test_what_is_counted_is_what_is_released(kind, row_id):
    """In every engine, batch by batch, with draws by place or by name."""
    table = people(500)
    problem = posed(table, [cpv.TCloseness(0.05)])
    channel = problem.solve().channel
    frame = engines.converted(kind, table)
    counts = drawn_counts(channel, frame, problem.source, seed=3, row_id=row_id)
    released = engines.collected(channel.apply(frame, seed=3, row_id=row_id))
    released = pd.DataFrame({n: engines.column(released, n) for n in ("age", "sex", "ill")})
    outcome = groups_of(released)
    for y, letter in enumerate(counts.outputs):
        ours = dict(zip(counts.w, counts.joint[:, y].tolist(), strict=True))
        assert Counter({w: n for w, n in ours.items() if n}) == outcome.get(letter, Counter())
    before = problem.source.schema.letters(engines.nw.from_native(table), ["age", "sex"])
    if kind != "dask":  # whose rows are in memory's order too, but not its draws
        after = [tuple(row) for row in released[["age", "sex"]].to_numpy()]
        moves = Counter(zip(before, after, strict=True))
        for (x, y), n in moves.items():
            assert counts.moves[counts.x.index(x), counts.outputs.index(y)] == n


def test_the_distortion_of_the_table_is_its_mean_exactly():
    table = people(200)
    d = lambda s: cpv.per_attribute(  # noqa: E731
        {"age": "ordinal", "sex": "hamming"}, s, weights={"age": 0.1}
    ).with_suppression({"sex": 0.3})
    problem = posed(table, [cpv.RecordEntropy(12), cpv.TCloseness(0.02)], d)
    drawn = sdc.release_table(problem, table, seed=5, ensure="table")
    measure = problem.alphabet.d
    x, y = ({v: i for i, v in enumerate(side)} for side in (problem.source.x, measure.outputs))
    before = problem.source.schema.letters(engines.nw.from_native(table), ["age", "sex"])
    after = [tuple(None if pd.isna(v) else v for v in row)
             for row in drawn.frame[["age", "sex"]].to_numpy()]  # fmt: skip
    exact = [Fraction(measure.exact[x[a], y[b]]) for a, b in zip(before, after, strict=True)]
    assert drawn.distortion == sum(exact) / len(exact)
    assert drawn.merging is not None
    assert drawn.distortion != drawn.drawn_distortion


def test_caps_and_budgets_are_of_the_table_too():
    table = people(300)
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key=["age", "sex"], bins=BINS)
    cap = cpv.LeakageCap(0.02, cpv.leakage.TotalVariation())
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.5, criteria=[cap])
    drawn = sdc.release_table(problem, table, seed=1, ensure="table")
    budget, leak = drawn.checks
    moved = np.mean([a != b for a, b in zip(
        source.schema.letters(engines.nw.from_native(table), ["age", "sex"]),
        map(tuple, drawn.frame[["age", "sex"]].to_numpy()), strict=True)])  # fmt: skip
    assert budget.table == pytest.approx(moved)
    assert budget.holds == (moved <= 0.5)
    outcome = groups_of(drawn.frame)
    total, full = len(table), Counter(table["ill"])
    apart = sum(
        abs(ours[w] / total - sum(ours.values()) / total * full[w] / total)
        for ours in outcome.values() for w in full
    ) / 2  # fmt: skip
    assert leak.table == pytest.approx(apart)
    assert leak.law <= 0.02 + 1e-9
    assert leak.holds == (apart <= 0.02)
    assert not leak.per_group
    assert drawn.holds  # which speaks of groups


@pytest.mark.long
def test_forbidden_moves_are_not_made_by_merging():
    """Old may be released as old alone, young as either: some draw leaves too few of the old."""
    table = pd.DataFrame({"age": ["old"] * 6 + ["young"] * 94, "ill": ["no", "yes"] * 50})
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    rules = [cpv.RecordEntropy(30), cpv.ForbiddenMoves([[False, True], [False, False]])]
    problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), rules)
    solution = problem.solve()
    drawn = [DrawnTable.of(problem, solution, table, seed=seed) for seed in range(20)]
    assert any(d.broken for d in drawn)
    mended = 0
    for seed, before in enumerate(drawn):
        after = DrawnTable.of(problem, solution, table, seed=seed, ensure="table")
        assert after.holds
        mended += bool(before.broken)
        for x, y, _ in after.merging.moves if after.merging else ():
            assert (x, y) == ("young", "old")
    assert mended


def test_what_no_merging_can_mend_is_an_error():
    """Each value may become its neighbour round a circle: any two groups have one that may not."""
    table = pd.DataFrame({"age": ["a", "b", "c"] * 60, "ill": ["no", "yes"] * 90})
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    mask = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], bool)
    rules = [cpv.RecordEntropy(80), cpv.ForbiddenMoves(mask)]
    problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), rules)
    solution = problem.solve()
    assert solution.status == "certified"  # a group of 60 hides among 120 by chance
    with pytest.raises(sdc.BrokenTableError, match="RecordEntropy.80.*3 groups are left") as caught:
        sdc.release_table(problem, table, seed=1, solution=solution, ensure="table")
    assert caught.value.criteria == ["RecordEntropy(80)"]
    assert pickle.loads(pickle.dumps(caught.value)).criteria == ["RecordEntropy(80)"]


@pytest.mark.parametrize("missing", ["drop", "level"])
def test_missing_values(missing):
    table = people(300)
    table["age"] = table["age"].astype("Int64").mask(np.arange(300) % 7 == 0)
    problem = posed(table, [cpv.RecordEntropy(15)], missing=missing)
    drawn = sdc.release_table(problem, table, seed=2, ensure="table")
    assert len(drawn.frame) == (257 if missing == "drop" else 300)
    counted = table.dropna() if missing == "drop" else table
    origins = origins_of(problem, counted, drawn.frame)
    assert not broken_by_hand(cpv.RecordEntropy(15), drawn.frame, origins)


def test_another_table_is_refused():
    table = people(300)
    problem = posed(table, [cpv.RecordEntropy(15)])
    with pytest.raises(cpv.InputError, match="300") as caught:
        sdc.release_table(problem, table.iloc[:-1], seed=1)
    assert caught.value.argument == "frame"
    with pytest.raises(cpv.InputError) as caught:
        sdc.release_table(problem, table, seed=1, ensure="both")
    assert caught.value.argument == "ensure"


def test_changes_are_in_the_columns_own_units():
    schema = TableSchema(key=("age", "sex"), bins={"age": Bins((20, 30, 40, 60))})
    x = [("[20, 30)", "f"), ("[30, 40)", "m")]
    outputs = [*x, ("[40, 60)", "f"), (None, "m")]
    joint = np.array([[6, 1, 2, 0], [0, 5, 0, 6]])
    moved = (*np.nonzero(joint), joint[joint > 0])
    full, age, sex = changes(moved, x, outputs, schema)
    assert (full.changed, full.suppressed) == (3 / 20, 6 / 20)
    assert (age.changed, age.suppressed, age.mean) == (3 / 20, 6 / 20, (1 * 10 + 2 * 25) / 3)
    assert (sex.changed, sex.suppressed, sex.mean) == (1 / 20, 0, None)
    assert str(age) == "age: 15.0 % of the records change, by 20 on average; withheld in 30.0 %"


# ---- what is said of the law -------------------------------------------------------------


def law_by_hand(drawn, source):
    """Return p(w, x̂) of the channel with its outputs relabelled, label by label."""
    channel = drawn.channel
    outcome = Counter()
    for i, x in enumerate(channel.inputs):
        for w, mass in zip(source.w, source.joint[:, source.x.index(x)], strict=True):
            for y, q in zip(channel.outputs, channel.matrix[i], strict=True):
                outcome[w, y] += mass * q / source.joint.sum()
    return outcome


def test_after_merging_the_law_is_that_of_what_is_released():
    """Nothing is said to be proved of it but what merging keeps: a budget it may break."""
    table = people(400)
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key=["age", "sex"], bins=BINS)
    rules = [cpv.RecordEntropy(70), cpv.KeepProbability(0.6), cpv.LocalPrivacy(6.0)]
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.15, criteria=rules)
    drawn = sdc.release_table(problem, table, seed=3, ensure="table")
    assert drawn.merging is not None
    budget, k, keep, local = drawn.checks
    joint = law_by_hand(drawn, source)
    moved = sum(
        source.joint[:, j].sum() / source.joint.sum() * q
        for i, x in enumerate(drawn.channel.inputs)
        for j in [source.x.index(x)]
        for y, q in zip(drawn.channel.outputs, drawn.channel.matrix[i], strict=True)
        if y != x
    )
    assert budget.law == pytest.approx(moved)
    assert moved > 0.15
    assert budget.law_holds is False
    assert (k.law_holds, keep.law_holds, local.law_holds) == (True, None, True)
    both = np.array([[joint[w, y] for y in dict.fromkeys(drawn.channel.outputs)] for w in source.w])
    assert drawn.risk == pytest.approx(bits(both), abs=1e-9)
    plain = sdc.release_table(problem, table, seed=3)
    assert [check.law_holds for check in plain.checks] == [True] * 4


@pytest.mark.parametrize("measure", [None, cpv.leakage.GuessingProbability()])
def test_a_cap_is_met_by_the_table_too(measure):
    table = people(400)
    cap = cpv.LeakageCap(0.03 if measure is None else 0.53, measure)
    problem = posed(table, [cap, cpv.RecordEntropy(20)])
    solution = problem.solve()
    loose = sdc.release_table(problem, table, seed=4, solution=solution)
    assert any(check.name == "leakage_cap" for check in loose.broken)
    tight = sdc.release_table(problem, table, seed=4, solution=solution, ensure="table")
    outcome = groups_of(tight.frame)
    joint = np.array([[ours[w] for ours in outcome.values()] for w in problem.source.w])
    leaks = bits(joint) if measure is None else joint.max(axis=0).sum() / joint.sum()
    assert leaks <= float(cap.b)
    assert tight.checks[0].table == pytest.approx(leaks)
    assert min(sum(ours.values()) for ours in outcome.values()) >= 20
    assert tight.distortion >= loose.distortion


def test_survey_weights_weigh_in_the_table_as_in_the_law():
    table = people(400)
    table["weight"] = np.where(table["id"] % 3 == 0, 20.5, 1.0)
    rule = cpv.TCloseness(0.05)
    problem = posed(table, [rule], weights="weight")
    solution = problem.solve()
    for ensure in ("law", "table"):
        drawn = sdc.release_table(problem, table, seed=5, solution=solution, ensure=ensure)
        frame, full = drawn.frame, table.groupby("ill")["weight"].sum()
        worst = 0.0
        for _, group in frame.groupby(["age", "sex"]):
            p = group.groupby("ill")["weight"].sum()
            p, prior = p / p.sum(), full[p.index] / full.sum()
            worst = max(worst, float((p * np.log2(p / prior)).sum()))
        assert drawn.checks[0].table == pytest.approx(worst)
        assert drawn.checks[0].holds == (worst <= 0.05)
    assert drawn.holds


# ---- criteria of one's own, and rules of averages ----------------------------------------


class GuessedAtMost(cpv.Criterion):
    """p(w | x̂) ≤ p for all w and x̂, and nothing more is said of it."""

    name = "guessed_at_most"
    p = cpv.Parameter()

    def constraints(self, release):
        mass = release.mass().each()
        return {str(w): release.mass(w).each() <= self.p * mass for w in range(len(release.p_w))}


def most_guessed(frame):
    return max(max(ours.values()) / sum(ours.values()) for ours in groups_of(frame).values())


@pytest.mark.parametrize("seed", rest_at_length(range(6), 1))
def test_a_criterion_of_ones_own_is_decided_by_its_rows(seed):
    table = random_table(seed)
    p = 0.6 + 0.02 * seed
    problem = posed(table, [GuessedAtMost(p)])
    solution = problem.solve()
    loose = sdc.release_table(problem, table, seed=seed, solution=solution)
    assert loose.holds == (most_guessed(loose.frame) <= p)
    tight = sdc.release_table(problem, table, seed=seed, solution=solution, ensure="table")
    assert tight.holds
    assert most_guessed(tight.frame) <= p


def test_rules_of_averages_are_decided_and_told_apart():
    table = people(300)
    rules = [cpv.PreserveMarginal(), cpv.MarginalDistance(0.001), cpv.LeakageCap(0.1)]
    problem = posed(table, rules, key=("age",))
    drawn = sdc.release_table(problem, table, seed=1)
    marginal, distance, cap = drawn.checks
    released, original = drawn.frame["age"].value_counts(), drawn.counts.moves.sum(axis=1)
    assert sorted(released) != sorted(original)
    assert marginal.holds is distance.holds is False
    assert not marginal.breaks
    assert "beyond it" in distance.standing
    apart = np.abs(drawn.counts.moves.sum(axis=0) - original).sum() / 2 / 300
    assert distance.table == pytest.approx(apart)
    assert drawn.holds is False
    assert drawn.broken == [check for check in (cap,) if not check.holds]
    with pytest.raises(sdc.BrokenTableError, match="PreserveMarginal"):
        sdc.release_table(problem, table, seed=1, ensure="table")


def test_what_a_table_cannot_tell_does_not_hold():
    table = people(300)
    problem = posed(table, [cpv.LocalPrivacy(1), cpv.RecordEntropy(2)], key=("age",))
    drawn = sdc.release_table(problem, table, seed=1, ensure="table")
    assert drawn.checks[0].holds is None
    assert drawn.checks[1].holds is True
    assert drawn.holds is None
    assert "cannot be decided on a table" in str(drawn)


def test_added_constraints_are_decided_on_the_table():
    """A cap in the problem's own quantities is one on what the table tells, not on its channel."""
    table = people(300)
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age", bins=BINS)
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.3)
    problem = problem.with_constraint("cap", problem.risk <= 0.05)
    problem = problem.with_constraint("one", problem.variables["Q"][0, 1] <= 0.02)
    drawn = sdc.release_table(problem, table, seed=3)
    _, cap, one = drawn.checks
    assert cap.table == pytest.approx(bits(drawn.counts.joint))
    assert cap.holds == (bits(drawn.counts.joint) <= 0.05)
    assert one.table == pytest.approx(drawn.counts.moves[0, 1] / 300)


def test_a_solution_of_another_problem_is_refused():
    """The identity's was reported to be proved for t = 0.001."""
    table = people(300)
    problem = posed(table, [cpv.TCloseness(0.001)])
    others = {
        "bound": posed(table, []),
        "t-closeness": posed(table, [cpv.TCloseness(0.002)]),
        "law": posed(people(300, seed=1), [cpv.TCloseness(0.001)]),
        "letters": posed(table, [cpv.TCloseness(0.001)], key=("age",)),
    }
    for other in others.values():
        with pytest.raises(cpv.InputError, match="of another problem") as caught:
            sdc.release_table(problem, table, seed=1, solution=other.solve())
        assert caught.value.argument == "solution"
    twin = posed(table, [cpv.TCloseness(0.001)]).solve()
    assert sdc.release_table(problem, table, seed=1, solution=twin).law.proved
    named = table.rename(columns={"age": "sex", "sex": "age"})
    source = cpv.DiscreteSource.from_table(
        named, sensitive="ill", key=["sex", "age"], bins={"sex": 10}
    )
    same = cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.TCloseness(0.001)])
    with pytest.raises(cpv.InputError, match="columns of another table"):
        sdc.release_table(problem, table, seed=1, solution=same.solve())
    renamed = posed(table.assign(ill=table["ill"].astype(str) + "!"), [cpv.TCloseness(0.001)])
    with pytest.raises(cpv.InputError, match="columns of another table"):
        sdc.release_table(problem, table, seed=1, solution=renamed.solve())
    gaussian = cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), budget=0.5).solve()
    with pytest.raises(cpv.InputError, match="kind of program"):
        sdc.release_table(problem, table, seed=1, solution=gaussian)


def test_as_many_records_of_other_cells_are_refused():
    table = pd.DataFrame({"age": [30, 30, 40, 40, 50, 50], "ill": list("nnyyny")})
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    problem = cpv.MinimumDistortion(source, cpv.absolute_error(source.x), [cpv.RecordEntropy(3)])
    other = table.assign(ill=list("nyynny"))  # the same ages, and as many ill
    with pytest.raises(cpv.InputError, match="other records of"):
        sdc.release_table(problem, other, seed=1)


def test_a_chance_for_each_letter_is_listed_as_undecided():
    table = pd.DataFrame({"age": [30, 30, 30, 50, 50, 50], "ill": list("nnyyny")})
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    rule = cpv.KeepProbability([0.5, 0.25])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.8, criteria=[rule])
    drawn = sdc.release_table(problem, table, seed=1)
    assert drawn.holds is None
    assert "cannot be decided" in str(drawn)


@pytest.mark.parametrize("seed", ["9172635", -9172635, 9172635.5, [9172635]])
def test_a_seed_that_is_refused_is_not_shown(seed):
    table = people(40, seed=1)
    problem = posed(table, [cpv.TCloseness(0.5)])
    with pytest.raises(cpv.InputError) as caught:
        sdc.release_table(problem, table, seed=seed)
    assert caught.value.argument == "seed"
    assert "9172635" not in f"{caught.value} {vars(caught.value)}"


@pytest.mark.parametrize("seed", [None, np.random.default_rng(1)])
def test_a_table_that_is_drawn_twice_needs_a_seed_to_repeat(seed):
    table = people(40, seed=1)
    with pytest.raises(cpv.InputError, match="drawn twice"):
        sdc.release_table(posed(table, [cpv.TCloseness(0.5)]), table, seed=seed)


def test_no_key_of_a_drawn_table_is_shown_or_kept():
    frame = pd.DataFrame({"age": [30, 30, 50, 50] * 5, "ill": [0, 1, 1, 1] * 5})
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age")
    problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.TCloseness(0.5)])
    drawn = sdc.release_table(problem, frame, seed=SEED)
    kept = [drawn.solution, drawn.channel]
    shown = [pickle.dumps(each) for each in kept] + [repr(each).encode() for each in (*kept, drawn)]
    for secret in secrets_of(SEED):
        assert not any(secret in each for each in shown)
