"""What every criterion and measure owes, and a subclass that only composes one.

Its certified value, its verdict on tables of counts against an independent evaluation in rationals,
its bound where strategies are generated, and that no number of its program can be moved unseen.
"""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import cvxprivacy as cpv
from cvxprivacy import criteria
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy_verifier.differences import differences
from tests.leakage.measures import MEASURES
from tests.lengths import some_at_length

SOURCE = cpv.DiscreteSource.from_counts([[30, 9, 4], [6, 20, 11]])
COST = [[0, 1, 3], [1, 0, 1], [3, 1, 0]]
MOVES = [[False, False, True], [False, False, False], [True, False, False]]
RAISED = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
RULES = {
    "t": cpv.TCloseness(Fraction(1, 20)),
    "tv": cpv.TCloseness(Fraction(1, 10), "tv"),
    "emd": cpv.TCloseness(Fraction(1, 10), "emd"),
    "l": cpv.LDiversity(Fraction(19, 10)),
    "k": cpv.KAnonymity(26),
    "entropy": cpv.RecordEntropy(30),
    "delta": cpv.DeltaDisclosure(Fraction(1, 4)),
    "lip": cpv.LocalInformationPrivacy(Fraction(1, 4)),
    "pml": cpv.PointwiseMaximalLeakage(Fraction(1, 4)),
    "perfect": cpv.PerfectPrivacy(),
    "chi": cpv.PerLetter(cpv.leakage.ChiSquared(), Fraction(1, 20)),
    "cap": cpv.LeakageCap(Fraction(1, 20)),
    "guess": cpv.LeakageCap(Fraction(3, 5), cpv.leakage.GuessingProbability()),
    "capacity": cpv.CapacityCap(Fraction(1, 20)),
    "conditional": cpv.ConditionalLeakageCap(Fraction(1, 50)),
    "ldp": cpv.LocalPrivacy(1),
    "metric": cpv.LocalPrivacy(1, metric=[[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    "but for": cpv.LocalPrivacy(Fraction(1, 2), delta=Fraction(1, 10)),
    "maximal": cpv.MaximalLeakage(Fraction(1, 2)),
    "keep": cpv.KeepProbability(Fraction(3, 4)),
    "moves": cpv.ForbiddenMoves(MOVES),
    "marginal": cpv.PreserveMarginal(),
    "distance": cpv.MarginalDistance(Fraction(1, 20)),
    "mean": cpv.PreserveMean([1, 2, 4]),
    "linear": cpv.Linear(RAISED, Fraction(1, 8)),
}
OF_MOVES = (  # which a release of everything as it is satisfies
    *(cpv.KeepProbability, cpv.ForbiddenMoves, cpv.PreserveMarginal),
    *(cpv.MarginalDistance, cpv.PreserveMean, cpv.Linear),
)
STATED = [name for name in RULES if not RULES[name].of_table]  # in convex programs
CHANCES = ("ldp", "metric", "but for", "maximal", "keep")  # of which no table tells
TABLES = 30


def renamed(rule):
    """Return a criterion of a class of one's own, which inherits all of another."""
    return _of(type("Mine", (type(rule),), {"name": "mine"}), rule)


def restated(rule):
    """Return one whose class states the same constraints, and so claims nothing of them."""

    def constraints(self, release):
        return type(rule).constraints(self, release)

    return _of(type("Restated", (type(rule),), {"constraints": constraints}), rule)


def _of(kind, rule):
    other = copy.copy(rule)
    outcome = kind.__new__(kind)
    outcome.__dict__.update(other.__dict__)
    return outcome


def problem_of(rule, **options):
    """Return a problem in which a rule binds, if it does anywhere."""
    if isinstance(rule, cpv.ConditionalLeakageCap):  # of encoders that see W, which tell less of it
        return cpv.PrivacyDistortion(SOURCE, COST, 0.1, encoder="wx", criteria=[rule], **options)
    if not isinstance(rule, OF_MOVES):
        return cpv.MinimumDistortion(SOURCE, COST, [rule], **options)
    return cpv.PrivacyDistortion(SOURCE, COST, criteria=[rule], budget=0.4, **options)


# ---- claims are of the rows that a class states ------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_other_constraints_claim_nothing(name):
    rule, mine, other = RULES[name], renamed(RULES[name]), restated(RULES[name])
    for claim in (
        "survives_merging",
        "survives_company",
        "survives_informed_encoder",
        "on_average",
        "of_releases",
        "of_table",
        "words",
        "loosens",
    ):
        assert getattr(mine, claim) == getattr(rule, claim)
    assert type(mine.relaxation) in (type(mine), type(rule.relaxation))
    assert other.relaxation is other
    assert not other.of_table
    assert not other.survives_merging
    assert not other.survives_company
    assert not other.survives_informed_encoder
    assert not other.on_average
    assert other.of_releases is None
    assert other.words is other.measure is None
    assert type(other).verdict is cpv.Criterion.verdict
    assert other.in_words().asks.endswith("holds")


@pytest.mark.long
@pytest.mark.parametrize("name", some_at_length(STATED, 10))
def test_the_same_rows_have_the_same_value_and_price(name):
    solved = {}
    for rule in (RULES[name], renamed(RULES[name]), restated(RULES[name])):
        solution = problem_of(rule).solve()
        assert solution.status == "certified"
        assert solution.certificate.verify()
        solved[type(rule)] = solution
    first, *others = solved.values()
    for other in others:
        assert max(first.lower, other.lower) <= min(first.upper, other.upper)


@pytest.mark.parametrize(
    "name", some_at_length([name for name in STATED if RULES[name].loosens], 5)
)
def test_a_number_loosens_the_way_that_it_says(name):
    rule = RULES[name]
    share = Fraction(21, 20) if rule.loosens == "up" else Fraction(20, 21)
    tight, loose = (problem_of(each).solve() for each in (rule, rule.at(rule.value * share)))
    assert loose.upper < tight.lower - 1e-6  # strictly: it binds, so that this could fail


@pytest.mark.parametrize("name", some_at_length(STATED, 8))
def test_no_number_of_a_program_moves_unseen(name):
    problem = problem_of(restated(RULES[name]))
    document = json.loads(json.dumps(problem.program.to_dict()))
    assert not differences(document, problem.program.to_dict())
    for path in _numbers(document):
        moved = json.loads(json.dumps(document))
        *parents, last = path
        place = moved
        for key in parents:
            place = place[key]
        place[last] = _moved(place[last])
        assert differences(moved, problem.program.to_dict()), path


def _numbers(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            if key != "name":
                yield from _numbers(value, (*path, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _numbers(value, (*path, i))
    elif not isinstance(node, bool) and node is not None:
        try:
            Fraction(node)
        except ValueError:  # a word
            return
        yield path


def _moved(number):
    if isinstance(number, int):
        return number + 1
    near = Fraction(number)
    return str(near + Fraction(1, 10**9) * max(1, abs(near)))


# ---- verdicts on counts ------------------------------------------------------------------


def tables(seed=0, count=TABLES):
    """Yield records N(w, x, x̂) of small tables, many of them near a bound, some at one."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        moves = rng.dirichlet(np.ones(3) * 10 ** rng.uniform(-1, 1), 3)
        mixed = rng.random() ** 2
        counts = rng.integers(0, 9, (2, 3)) + 1
        if i % 5 == 0:  # W tells nothing
            counts = np.tile(counts[:1], (2, 1))
        if i % 5 == 1:  # nobody moves
            mixed, moves = 0.0, np.eye(3)
        moves = mixed * moves.mean(axis=0) + (1 - mixed) * (moves if i % 3 else np.eye(3))
        if i % 10 == 0:
            drawn = np.repeat(counts[:, :, None], 3, axis=2)  # exactly as without knowing x
        else:
            drawn = np.array([[rng.multinomial(n * 4, p) for n, p in zip(row, moves, strict=True)]
                              for row in counts])  # fmt: skip
        yield drawn


def counted(drawn):
    source = cpv.DiscreteSource.from_counts(drawn.sum(axis=2))
    release = Alphabet(source, np.array(COST, float))
    moves = np.nonzero(drawn)
    return Counts.of_moves(release, moves, drawn[moves], drawn.sum(axis=(0, 1)))


def power_of_two(exponent):
    """Return n and the rational 2^(n exponent)."""
    return exponent.denominator, Fraction(2) ** exponent.numerator


def informs_at_most(columns, masses, bound, *, uniform=False):
    """Tell whether Π (J N / p q)^J ≤ 2^(bound Σ q), in whole powers of rationals."""
    n, most = power_of_two(Fraction(bound) * sum(map(sum, columns)))
    value, total = Fraction(1), sum(masses)
    for column in columns:
        for j, p in zip(column, masses, strict=True):
            if j:
                value *= Fraction(j * total, p * sum(column)) ** j
    return value**n <= most


def leaves_open(drawn, least):
    """Tell whether Π (n N(x)/n(x))^n(x) ≥ k^n of each group: H of the record in whole powers."""
    moves = drawn.sum(axis=0)
    for column in moves.T.tolist():
        n, value = sum(column), Fraction(1)
        for part, full in zip(column, moves.sum(axis=1).tolist(), strict=True):
            value *= Fraction(n * full, part) ** part if part else 1
        if value < Fraction(least) ** n:
            return False
    return True


def given_x_at_most(drawn, bound):
    """Tell whether Π (N(w, x, x̂) N(x) / N(w, x) N(x, x̂))^N ≤ 2^(bound N)."""
    n, most = power_of_two(Fraction(bound) * int(drawn.sum()))
    value = Fraction(1)
    for w, x, y in np.argwhere(drawn):
        j, p, q = (int(k) for k in (drawn[w, x, y], drawn[w, x].sum(), drawn[:, x, y].sum()))
        value *= Fraction(j * int(drawn[:, x].sum()), p * q) ** j
    return value**n <= most


def most_of_two(groups):
    """Return max_π I_π in bits of two rows, by their prior alone: no count is next to a bound."""
    rows = np.array(groups, float).T
    rows /= rows.sum(axis=1, keepdims=True)

    def learnt(first):
        law = first * rows[0] + (1 - first) * rows[1]
        parts = np.where(rows > 0, rows * np.log2(np.maximum(rows, 1e-300) / law), 0.0).sum(axis=1)
        return -(first * parts[0] + (1 - first) * parts[1])

    return -minimize_scalar(learnt, bounds=(0, 1), method="bounded", options={"xatol": 1e-10}).fun


def judged(name, drawn):
    """Tell whether a table satisfies a rule, in rationals and, of e^ε, in 60 digits."""
    rule, joint = RULES[name], drawn.sum(axis=1)
    bound = None if rule.value is None else Fraction(rule.value)
    masses, total = [int(p) for p in joint.sum(axis=1)], int(joint.sum())
    prior = [Fraction(p, total) for p in masses]
    groups = [[int(j) for j in column] for column in joint.T if column.sum()]
    posts = [[Fraction(j, sum(group)) for j in group] for group in groups]
    ratios = [[p / q for p, q in zip(post, prior, strict=True)] for post in posts]
    released, original = joint.sum(axis=0), drawn.sum(axis=(0, 2))
    share = {y: Fraction(int(released[y]) - int(original[y]), total) for y in range(3)}

    def below(x, exponent):
        with mpmath.workdps(60):
            return mpmath.mpf(x.numerator) / x.denominator <= mpmath.exp(
                mpmath.mpf(exponent.numerator) / exponent.denominator
            )

    def raised():
        return sum(
            (Fraction(RAISED[x][y] * int(drawn[:, x, y].sum()), total)
             for x in range(3) for y in range(3)), Fraction(0),
        )  # fmt: skip

    verdicts = {
        "t": lambda: all(informs_at_most([g], masses, bound) for g in groups),
        "tv": lambda: all(
            sum(abs(p - q) for p, q in zip(post, prior, strict=True)) / 2 <= bound for post in posts
        ),
        "emd": lambda: all(abs(post[0] - prior[0]) <= bound for post in posts),  # of two values
        "l": lambda: all(
            math.prod(Fraction(sum(g), j) ** j for j in g if j) >= bound ** sum(g) for g in groups
        ),
        "k": lambda: all(sum(g) >= bound for g in groups),
        "entropy": lambda: leaves_open(drawn, bound),
        "pml": lambda: all(below(max(r), bound) for r in ratios),
        "delta": lambda: all(
            min(r) > 0 and below(max(r), bound) and below(1 / min(r), bound) for r in ratios
        ),
        "perfect": lambda: all(set(r) == {1} for r in ratios),
        "chi": lambda: all(
            sum(q * (x - 1) ** 2 for q, x in zip(prior, r, strict=True)) <= bound for r in ratios
        ),
        "cap": lambda: informs_at_most(groups, masses, bound),
        "guess": lambda: sum(map(max, groups)) <= bound * total,
        "capacity": lambda: bool(most_of_two(groups) <= bound),
        "conditional": lambda: given_x_at_most(drawn, bound),
        "moves": lambda: not drawn[:, np.array(MOVES)].any(),
        "marginal": lambda: not any(share.values()),
        "distance": lambda: sum(s for s in share.values() if s > 0) <= bound,
        "mean": lambda: share[0] + 2 * share[1] + 4 * share[2] == 0,
        "linear": lambda: raised() <= bound,
    }
    verdicts["lip"] = verdicts["delta"]
    return verdicts[name]()


@pytest.mark.parametrize("name", [name for name in RULES if name not in CHANCES])
def test_verdicts_are_those_of_the_definition_in_rationals(name):
    held = []
    for drawn in tables():
        expected, table = judged(name, drawn), counted(drawn)
        for rule in (RULES[name], renamed(RULES[name])):
            assert rule.verdict(table).holds is expected, drawn.tolist()
        held.append(expected)
    assert {True, False} <= {*held} or name in ("marginal", "mean")


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name in STATED if name not in (*CHANCES, "capacity", "conditional")]
)
def test_rows_alone_give_the_same_verdict_or_none(name):
    undecided = 0
    for drawn in tables(1):
        verdict = restated(RULES[name]).verdict(counted(drawn)).holds
        assert verdict in (judged(name, drawn), None), drawn.tolist()
        undecided += verdict is None
    assert undecided <= TABLES // 10  # ties of numbers that are balls in a program


@pytest.mark.parametrize("name", ["t", "tv", "chi", "pml", "cap", "guess", "distance", "linear"])
def test_rows_of_weighted_records_give_the_same_verdict(name):
    """Where no record weighs a whole: clear of the bound, which weights meet to a rounding."""
    decided = 0
    for drawn in tables(5, 20):
        source = cpv.DiscreteSource.from_counts(drawn.sum(axis=2))
        moves = np.nonzero(drawn)
        release = Alphabet(source, np.array(COST, float))
        table = Counts.of_moves(release, moves, drawn[moves] * 0.375)
        expected, of_rows = RULES[name].verdict(table), restated(RULES[name]).verdict(table)
        assert expected.holds is judged(name, drawn) or of_rows.holds is expected.holds
        assert of_rows.holds in (expected.holds, None)
        decided += of_rows.holds is not None
    assert decided >= 15


def test_records_of_a_cell_without_mass_are_refused():
    release = Alphabet(cpv.DiscreteSource.from_counts([[3, 0], [1, 2]]), np.eye(2))
    moves = np.array([0]), np.array([1]), np.array([0])
    with pytest.raises(cpv.InputError, match="without mass"):
        Counts.of_moves(release, moves, np.array([1]))


@pytest.mark.parametrize("name", CHANCES)
def test_what_is_of_chances_is_not_decided_on_a_table(name):
    for drawn in tables(2, 5):
        for rule in (RULES[name], restated(RULES[name])):
            assert rule.verdict(counted(drawn)).holds is None


@pytest.mark.parametrize("name", some_at_length([name for name in RULES if name not in CHANCES], 8))
def test_without_key_letters_a_verdict_is_the_same_or_none(name):
    """As of a table whose original is not at hand."""
    for drawn in tables(3, 20):
        table = Counts.of_records(drawn.sum(axis=1))
        for rule in (RULES[name], restated(RULES[name])):
            expected = None if name == "k" and rule is not RULES[name] else judged(name, drawn)
            assert rule.verdict(table).holds in (expected, None)


def test_rows_of_what_x_cannot_tell_do_not_judge_a_table():
    """An encoder of X tells nothing beyond it; a table that it drew does, by chance."""
    rule = RULES["conditional"]
    broken = 0
    for drawn in tables(1):
        assert restated(rule).verdict(counted(drawn)).holds is None
        broken += not judged("conditional", drawn)
    assert broken


def test_groups_of_k_leave_k_records_open_and_not_the_other_way_round():
    """Each group by itself, and where what became what is not known, its size decides or nothing.

    H = log n + Σ (n_x/n) log(N_x/n_x) ≥ log n.
    """
    larger = 0
    for drawn in tables(4):
        sizes = drawn.sum(axis=(0, 1))
        for k in {*sizes[sizes > 0].tolist()}:
            of_groups = cpv.KAnonymity(k).verdict(counted(drawn))
            of_records = cpv.RecordEntropy(k).verdict(counted(drawn))
            assert (of_records.met >= of_groups.met).all()
            assert (of_records.met | of_records.broken).all()
            larger += int((of_records.met & of_groups.broken).sum())
            assert cpv.KAnonymity(k).relaxation == cpv.RecordEntropy(k)
            alone = cpv.RecordEntropy(k).verdict(Counts.of_records(drawn.sum(axis=1)))
            assert (alone.met == (of_groups.met | (sizes == 0))).all()
            assert not alone.broken.any()
            assert alone.values is None
    assert larger


def test_of_a_release_without_chance_the_two_are_one():
    for number, drawn in enumerate(tables(6)):
        moves = np.zeros_like(drawn)
        for x, y in enumerate([0, number % 2, 2 * (number % 3 > 0)]):
            moves[:, x, y] += drawn.sum(axis=2)[:, x]
        sizes = moves.sum(axis=(0, 1))
        for k in {*sizes[sizes > 0].tolist()}:
            for rule in (cpv.KAnonymity(k), cpv.RecordEntropy(k)):
                verdict = rule.verdict(counted(moves))
                assert verdict.met.tolist() == [not n or n >= k for n in sizes.tolist()]
                assert verdict.value == pytest.approx(min(sizes[sizes > 0]))


def test_the_words_of_both_are_those_of_each():
    of_groups, of_records = (rule(5).in_words() for rule in (cpv.KAnonymity, cpv.RecordEntropy))
    assert of_groups.asks == "every released group has at least 5 records"
    assert of_records.asks == (
        "given what is released, the record that it came from is as uncertain as 5 equally likely "
        "records, or more"
    )
    assert "group" not in of_records.asks + of_records.quantity
    assert "may have fewer records" in of_records.definition


def test_company_may_break_what_records_leave_open():
    """One of a thousand alike is released alone, then with one that is like no other."""
    rule = cpv.RecordEntropy(500)
    for joined, holds, left in ((0, True, 1000), (1, False, 2 * math.sqrt(1000))):
        moves = np.zeros((1, 3, 3), int)
        moves[0, 0] = 1, 999, 0
        moves[0, 1:, 1:] = [[1 - joined, 0], [0, 5]]
        moves[0, 1, 0] = joined
        verdict = rule.verdict(counted(moves))
        assert verdict.met[0] == holds
        assert verdict.values[0] == pytest.approx(left)
    assert not rule.survives_company


def test_what_is_of_tables_is_refused_by_programs():
    source = cpv.DiscreteSource.from_counts([[4, 1], [1, 4]])
    rules = [cpv.TCloseness(1), cpv.KAnonymity(5)]
    for call in (
        lambda: cpv.MinimumDistortion(source, cpv.hamming(2), rules),
        lambda: cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, criteria=rules),
        lambda: cpv.RateDistortionEquivocation(source, cpv.hamming(2), 0.5, criteria=rules),
    ):
        with pytest.raises(cpv.InputError) as caught:
            call()
        assert caught.value.argument == "criteria"
        assert caught.value.problem == "KAnonymity is decided on tables alone"
        assert "RecordEntropy" in caught.value.remedy


# ---- measures ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_decides_by_what_proofs_read(name):
    """A value of one's own that is wrong changes no verdict."""
    measure = MEASURES[name][0]

    def nothing(self, joint, reference):
        return np.zeros(joint.shape[1])

    wrong = type("Wrong", (type(measure),), {"value": nothing, "total": lambda self, joint: 0.0})
    lying = wrong.__new__(wrong)
    lying.__dict__.update(measure.__dict__)
    counts = np.array([[30, 2, 9], [5, 20, 9], [1, 3, 9]])
    for bound in (0.01, 0.1, 0.5, 1.0, 1.5, 2.0):
        for of in (cpv.PerLetter, lambda m, b: cpv.LeakageCap(b, leakage=m)):
            table = Counts.of_records(counts)
            assert of(lying, bound).verdict(table).holds is of(measure, bound).verdict(table).holds


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_that_only_composes_another_is_proved_alike(name):
    measure = MEASURES[name][0]
    mine = type("Mine", (type(measure),), {})
    other = mine.__new__(mine)
    other.__dict__.update(measure.__dict__)
    source = cpv.DiscreteSource.from_counts([[30, 2, 9], [5, 20, 9], [1, 3, 9]])
    ends = []
    for leakage in (measure, other):
        problem = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.2, leakage=leakage)
        solution = problem.solve()
        assert solution.certificate.verify()
        ends.append((solution.lower, solution.upper))
    assert max(low for low, _ in ends) <= min(high for _, high in ends)


def test_every_criterion_and_every_measure_is_under_this_contract():
    assert {type(rule).__name__ for rule in RULES.values()} == set(criteria.__all__) - {"Criterion"}
    bases = {"Leakage", "MEASURES", "Polyhedral", "Smooth", "divergence", "measures"}
    listed = {type(measure).__name__ for measure, _ in MEASURES.values()}
    assert listed >= set(cpv.leakage.__all__) - bases
