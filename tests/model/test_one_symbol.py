"""One-symbol information: definitions in plain loops, exact facts as properties, criteria, ε."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra.numpy import arrays

import cvxprivacy as cpv
from cvxprivacy.model.information import conditional_entropy, entropy, mutual_information
from cvxprivacy.model.one_symbol import (
    average_conditions,
    equivalent_diversity,
    greatest_diversity,
    i1,
    i2,
    i3,
    i4,
    privacy_loss,
    surprise_of_inputs,
    surprise_under,
)
from tests.criteria.definitions import standing
from tests.lengths import some_at_length

KINDS = {"i1": i1, "i2": i2, "i3": i3, "i4": i4}
MEDICAL = np.array([[4, 4, 2, 1], [0, 0, 0, 1]])  # well, ill × heights in bins of ten


def laws(*shape):
    """Counts with zeros, of every letter at least one record."""
    return arrays(np.int64, shape, elements=st.integers(0, 6)).filter(
        lambda n: n.reshape(-1, *shape[-1:]).sum(axis=0).all()
    )


def by_hand(joint, kind, x):
    """Each definition, value by value."""
    p = joint / joint.sum()
    p_w, p_x = p.sum(axis=1), p.sum(axis=0)
    given_x = p[:, x] / p_x[x]

    def h(law):
        return -sum(v * math.log2(v) for v in law if v > 0)

    if kind == "i1":
        return sum(a * math.log2(a / b) for a, b in zip(given_x, p_w, strict=True) if a > 0)
    if kind == "i2":
        return h(p_w) - h(given_x)
    if kind == "i3":
        return sum(
            given_x[w] * (h(p_x) - h(p[w] / p_w[w])) for w in range(len(p)) if given_x[w] > 0
        )
    two = np.stack([p[:, x], p_w - p[:, x]], axis=1)
    return h(p_w) - sum(
        two[:, j].sum() * h(two[:, j] / two[:, j].sum()) for j in (0, 1) if two[:, j].sum() > 1e-12
    )


@given(laws(3, 4))
def test_each_is_its_definition(joint):
    for kind, f in KINDS.items():
        expected = [by_hand(joint, kind, x) for x in range(4)]
        assert f(joint) == pytest.approx(expected, abs=1e-12)
        assert f(joint, units="nats") == pytest.approx(np.array(expected) * math.log(2), abs=1e-12)


@given(laws(3, 4))
def test_what_is_never_negative_and_what_averages(joint):
    mass, mutual = joint.sum(axis=0) / joint.sum(), mutual_information(joint)
    for kind in ("i1", "i4"):
        assert min(by_hand(joint, kind, x) for x in range(4)) > -1e-12
        assert KINDS[kind](joint).min() >= 0
    for kind in ("i1", "i2", "i3"):
        assert KINDS[kind](joint) @ mass == pytest.approx(mutual, abs=1e-12)
    # what membership in one group tells is no more than what the groups tell together
    assert i4(joint).max() <= mutual + 1e-12


def test_what_can_be_negative_and_what_does_not_average():
    assert i2(MEDICAL).min() < -0.5
    # most records share one x; whoever has another x has a W of which x is uncertain
    joint = np.array([[90, 0, 0], [0, 5, 5]])
    assert i3(joint).min() < -0.3
    assert i4(MEDICAL) @ MEDICAL.sum(axis=0) / 12 < mutual_information(MEDICAL) - 0.1


@given(laws(2, 3, 4))
def test_all_four_have_a_chain_rule_in_the_averaged_attribute(joint):
    p = joint / joint.sum()
    full, first = p.reshape(6, 4), p.sum(axis=1)
    p_x = first.sum(axis=0)
    for x in range(4):
        given_x = first[:, x] / p_x[x]
        divergence = sum(
            given_x[a]
            * sum(
                v * math.log2(v / u)
                for v, u in zip(p[a, :, x] / p[a, :, x].sum(), p[a].sum(axis=1) / p[a].sum(),
                                strict=True)
                if v > 0
            )
            for a in range(2) if given_x[a] > 0
        )  # fmt: skip
        assert i1(full)[x] == pytest.approx(i1(first)[x] + divergence, abs=1e-9)
        two_weights = sum(p[a].sum() * entropy(p[a].sum(axis=1)) for a in range(2) if p[a].any())
        two_weights -= sum(given_x[a] * entropy(p[a, :, x]) for a in range(2) if given_x[a] > 0)
        assert i2(full)[x] == pytest.approx(i2(first)[x] + two_weights, abs=1e-9)
        reduced = sum(
            p[a, b, x] / p_x[x] * (entropy(first[a]) - entropy(p[a, b]))
            for a in range(2) for b in range(3) if p[a, b, x] > 0
        )  # fmt: skip
        assert i3(full)[x] == pytest.approx(i3(first)[x] + reduced, abs=1e-9)
        member = sum(
            p[a].sum()
            * mutual_information(np.stack([p[a, :, x], p[a].sum(axis=1) - p[a, :, x]], axis=1))
            for a in range(2) if p[a].any()
        )  # fmt: skip
        assert i4(full)[x] == pytest.approx(i4(first)[x] + member, abs=1e-9)


@given(laws(3, 6))
def test_only_specific_information_adds_when_the_symbol_is_split(of_both):
    joint = of_both.reshape(3, 3, 2)
    of_first = joint.sum(axis=2)
    second = np.array([i2(joint[:, a]) for a in range(3)])
    added = i2(of_first)[:, None] + second
    assert i2(of_both).reshape(3, 2) == pytest.approx(added, abs=1e-9)


@pytest.mark.parametrize("kind", ["i1", "i3", "i4"])
def test_the_others_do_not(kind):
    joint = np.array([[[4, 1], [1, 1]], [[1, 1], [1, 4]]])  # w, x1, x2
    f = KINDS[kind]
    added = f(joint.sum(axis=2))[:, None] + np.array([f(joint[:, a]) for a in range(2)])
    assert np.abs(f(joint.reshape(2, 4)).reshape(2, 2) - added).max() > 0.02


def test_independent_symbols_need_not_add():
    xor = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])  # w = x1 xor x2
    assert mutual_information(xor.reshape(2, 4)) == pytest.approx(1.0)
    assert mutual_information(xor.sum(axis=1)) == mutual_information(xor.sum(axis=2)) == 0.0


def split(f, law):
    """Return the defect of f(x1 x2) = f(x1) + f(x2 | x1), the law with axes w, x1, x2."""
    added = f(law.sum(axis=2))[:, None] + np.array([f(law[:, a]) for a in range(law.shape[1])])
    return np.abs(f(law.reshape(len(law), -1)).reshape(law.shape[1:]) - added).max()


@pytest.mark.parametrize("a", some_at_length([-0.5, 0.0, 0.5, 0.9, 1.0, 1.5], 3))
def test_of_mixtures_one_is_never_negative_and_one_has_the_chain_rule(a):
    """Bezzi 2010, §2.2: all a I1 + (1 − a) I2 average to I; a = 1 is positive, a = 0 additive."""

    def mixture(law):
        return a * i1(law) + (1 - a) * i2(law)

    rng = np.random.default_rng(0)
    drawn = [rng.dirichlet(np.full(12, 0.3)).reshape(3, 2, 2) + 1e-12 for _ in range(500)]
    flat = [law.reshape(3, 4) for law in drawn]
    for law in flat:
        assert mixture(law) @ law.sum(axis=0) / law.sum() == pytest.approx(mutual_information(law))
    assert (min(mixture(law).min() for law in flat) > -1e-9) == (a == 1)
    assert (max(split(mixture, law) for law in drawn) < 1e-9) == (a == 0)


def test_neither_is_the_only_decomposition():
    """Bezzi 2010, §2.2, calls I1 the only positive one and I2 the only additive one."""
    law = np.random.default_rng(0).dirichlet(np.ones(18)).reshape(3, 3, 2)
    flat, a = law.reshape(3, 6), np.array([1.0, 0.0, 0.0])
    p_x, full = flat.sum(axis=0), mutual_information(flat)

    def other(law):  # the second term has mean 0 and adds up: p(w) − p(w | x) does
        return i2(law) + a @ (law.sum(axis=1, keepdims=True) / law.sum() - law / law.sum(axis=0))

    half = (i1(flat) + full) / 2
    for outcome in (half, other(flat)):
        assert outcome @ p_x == pytest.approx(full, abs=1e-12)
    assert half.min() > 0
    assert np.abs(half - i1(flat)).max() > 0.1
    assert split(other, law) < 1e-12
    assert np.abs(other(flat) - i2(flat)).max() > 0.1


def test_the_twelve_people():
    well, ill = math.log2(12 / 11), 0.5 * math.log2(12 / 22) + 0.5 * math.log2(12 / 2)
    assert i1(MEDICAL) == pytest.approx([well, well, well, ill], abs=1e-12)
    prior = entropy([11, 1])
    assert i2(MEDICAL) == pytest.approx([prior] * 3 + [prior - 1], abs=1e-12)
    assert i1(MEDICAL).round(4).tolist() == [0.1255] * 3 + [0.8552]
    assert i2(MEDICAL).round(4).tolist() == [0.4138] * 3 + [-0.5862]
    assert round(mutual_information(MEDICAL), 4) == 0.2472


def test_record_level_identity_is_surprise():
    """I1 of the record itself is log N/n, so k-anonymity is I1(record, x̃) ≤ log N/k."""
    sizes = [2, 3, 5]
    records = np.zeros((10, 3))
    records[np.arange(10), np.repeat([0, 1, 2], sizes)] = 1
    assert i1(records) == pytest.approx([math.log2(10 / n) for n in sizes])
    assert i2(records) == pytest.approx(i1(records))


@given(laws(4, 3))
def test_diversity_is_at_most_the_records(counts):
    """ℓ-diversity implies k-anonymity for k ≤ ℓ (Bezzi 2010, §2.1)."""
    diverse = [2 ** entropy(group) for group in counts.T]
    assert (diverse <= counts.sum(axis=0) + 1e-9).all()


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_identity_on_average_is_necessary_for_k(sizes):
    """I(record, x̃) ≤ log N/k, the average of eq. 6, where every group has k records."""
    records = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    outcome, total = mutual_information(records), sum(sizes)
    assert outcome <= math.log2(total / min(sizes)) + 1e-9


def test_and_not_sufficient_for_k():
    records = np.repeat(np.eye(3), [10, 1, 1], axis=0)  # two records stand alone: k = 1
    assert mutual_information(records) < math.log2(12 / 2)


def test_tuples_that_are_alike_have_no_k_of_eq_5():
    """Eq. 5 with X the height: Omer and Bob are both 170 cm; X must be the record's number."""
    people = cpv.datasets.load_bezzi()
    tens = people["height"] // 10
    for name, k in (("name", [4, 4, 2, 2]), ("height", [4, 2**1.5, 2, 2])):
        counts = people.groupby([people[name], tens]).size().unstack(fill_value=0).to_numpy()
        assert 2 ** (entropy(counts.sum(axis=1)) - i2(counts)) == pytest.approx(k)


def test_a_letter_without_mass_has_no_value():
    joint = [[1, 0, 2], [3, 0, 1]]
    for f in KINDS.values():
        assert np.isnan(f(joint)).tolist() == [False, True, False]
        assert f(joint)[[0, 2]] == pytest.approx(f(np.array(joint)[:, [0, 2]]))


def test_another_reference():
    joint = np.array([[3, 1], [1, 1]])
    outcome = i1(joint, reference=[1, 1])
    assert outcome == pytest.approx([1 - entropy([3, 1]), 0.0])
    for reference in ([1, 2, 3], [1, 0], [1, math.nan], [-1, 2]):
        with pytest.raises(cpv.InputError, match="reference"):
            i1(joint, reference=reference)


@pytest.mark.parametrize("joint", [[1, 2], [[1, -1]], [[0, 0]], [[math.nan, 1]], "x", [[]]])
def test_what_is_no_law(joint):
    for f in KINDS.values():
        with pytest.raises(cpv.InputError, match="joint"):
            f(joint)


# ---- criteria in one unit ----------------------------------------------------------------


@given(laws(3, 4), st.floats(0, 1.5), st.floats(1, 3))
def test_conditions_on_the_average_are_necessary(joint, t, diverse):
    most = entropy(joint.sum(axis=1)) - math.log2(diverse)
    per_letter = (i1(joint) <= t).all() and (i2(joint) <= most).all()
    averages = average_conditions(joint, t=t, l=diverse)
    assert [c.bound for c in averages.values()] == pytest.approx([t, most])
    for condition in averages.values():
        assert condition.value == pytest.approx(mutual_information(joint), abs=1e-12)
    if per_letter:
        assert all(c.holds for c in averages.values())


def test_and_not_sufficient():
    averages = average_conditions(MEDICAL, t=0.3, l=1.05)
    assert all(c.holds for c in averages.values())
    assert i1(MEDICAL).max() > 0.3
    assert i2(MEDICAL).max() > averages["H(W) − log ℓ"].bound


def test_processing_cannot_add():
    coarse = MEDICAL @ [[1, 0], [1, 0], [0, 1], [0, 1]]
    before = mutual_information(MEDICAL)
    assert average_conditions(coarse, original=before)["I(W; X)"].holds
    assert not average_conditions(MEDICAL, original=mutual_information(coarse))["I(W; X)"].holds
    # unless x̃ is made of W as well (footnote 1): here it is W
    itself = np.diag(MEDICAL.sum(axis=1))
    assert not average_conditions(itself, original=before)["I(W; X)"].holds


@given(laws(4, 3), st.floats(0, 3))
def test_equivalent_diversity(joint, t):
    p_w = joint.sum(axis=1)
    assume(np.count_nonzero(p_w) > 1)
    most = greatest_diversity(p_w)
    assert 1 < most <= np.count_nonzero(p_w) + 1e-12
    assert equivalent_diversity(p_w, t) == pytest.approx(most * 2**-t)
    nats = equivalent_diversity(p_w, t * math.log(2), units="nats")
    assert nats == pytest.approx(equivalent_diversity(p_w, t))
    # ℓ_t bounds the average by the same number as t does
    assert entropy(p_w) - math.log2(equivalent_diversity(p_w, t)) == pytest.approx(t, abs=1e-12)


def test_bad_thresholds():
    for wrong in ({"t": -1}, {"l": 0.5}, {"l": "x"}, {"original": math.nan}):
        with pytest.raises(cpv.InputError, match=next(iter(wrong))):
            average_conditions(MEDICAL, **wrong)


# ---- differential privacy ----------------------------------------------------------------


def test_randomised_response():
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        keep = math.exp(epsilon) / (1 + math.exp(epsilon))
        channel = [[keep, 1 - keep], [1 - keep, keep]]
        assert privacy_loss(channel) == pytest.approx(epsilon, abs=1e-12)
        # against a neighbour that has all the prior, the bound on the surprise is attained
        outcome = surprise_of_inputs(channel, [1e-9, 1.0], units="nats")[0]
        assert outcome == pytest.approx(surprise_under(epsilon, units="nats"), abs=1e-7)
        assert outcome / math.log(2) == pytest.approx(surprise_under(epsilon), abs=1e-7)


@given(
    arrays(np.float64, (4, 3), elements=st.floats(0.01, 1)),
    arrays(np.float64, 4, elements=st.floats(0.01, 1)),
    arrays(np.bool_, (4, 4)),
)
def test_differential_privacy_bounds_every_surprise(weights, prior, near):
    channel, near = weights / weights.sum(axis=1, keepdims=True), near | near.T
    epsilon = privacy_loss(channel, near)
    pairs = [(x, y) for x in range(4) for y in range(4) if x == y or near[x, y]]
    ratios = [np.log(channel[x] / channel[y]).max() for x, y in pairs]
    assert epsilon == pytest.approx(max(ratios), abs=1e-12)
    outcome = surprise_of_inputs(channel, prior, near, units="nats")
    for x in range(4):
        around = [y for a, y in pairs if a == x]
        mixed = prior[around] @ channel[around] / prior[around].sum()
        assert outcome[x] == pytest.approx(
            (channel[x] * np.log(channel[x] / mixed)).sum(), abs=1e-12
        )
    assert outcome.max() <= surprise_under(epsilon, units="nats") + 1e-12
    assert surprise_under(epsilon, units="nats") <= min(epsilon, epsilon**2 / 2) + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_a_number_released_by_the_geometric_mechanism(epsilon):
    """Footnote 4: counts 0 … 20, neighbours one apart, tails collected at −40 and 60."""
    x, s, r = np.arange(21), np.arange(-40, 61), math.exp(-epsilon)
    law = (1 - r) / (1 + r) * r ** np.abs(np.subtract.outer(x, s))
    law[:, 0], law[:, -1] = r ** (x + 40) / (1 + r), r ** (60 - x) / (1 + r)
    near = np.abs(np.subtract.outer(x, x)) == 1
    assert privacy_loss(law, near) == pytest.approx(epsilon, abs=1e-9)
    assert surprise_of_inputs(law, neighbours=near).max() <= surprise_under(epsilon)


def test_surprise_does_not_bound_epsilon():
    channel = [[1 - 1e-6, 1e-6, 0.0], [1 - 1e-6, 0.0, 1e-6]]
    assert privacy_loss(channel) == math.inf
    assert surprise_of_inputs(channel).max() < 2e-6
    alone = np.zeros((2, 2), bool)  # no neighbours: nothing is revealed
    assert privacy_loss(channel, alone) == 0.0
    assert surprise_of_inputs(channel, neighbours=alone).tolist() == [0.0, 0.0]


def test_the_criterion_of_the_programs_is_the_same_epsilon():
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.1, 0.1, 0.3]])
    problem = cpv.MinimumDistortion(source, cpv.hamming(3), [cpv.LocalPrivacy(1.0)])
    solution = problem.solve()
    assert privacy_loss(solution.channel.matrix) == pytest.approx(1.0, abs=1e-6)


def test_what_is_no_channel():
    for channel in ([[0.5, 0.6]], [[1.2, -0.2]], [1.0], "x"):
        with pytest.raises(cpv.InputError, match="channel"):
            privacy_loss(channel)
    good = [[0.5, 0.5], [0.5, 0.5]]
    for near in (np.eye(3, dtype=bool), np.array([[1, 0], [0, 1]]), np.triu(np.ones((2, 2), bool))):
        with pytest.raises(cpv.InputError, match="neighbours"):
            privacy_loss(good, near)
    for prior in ([1.0], [0.0, 1.0], [1, 2, 3]):
        with pytest.raises(cpv.InputError, match="prior"):
            surprise_of_inputs(good, prior)
    with pytest.raises(cpv.InputError, match="epsilon"):
        surprise_under(-1)


def test_on_the_criteria_of_a_solved_problem():
    """The programs' t-closeness and ℓ-diversity are I1 and I2 of the released letters."""
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 40, (3, 6))
    source = cpv.DiscreteSource.from_counts(counts)
    criteria = [cpv.TCloseness(0.05), cpv.LDiversity(2.6)]
    solution = cpv.MinimumDistortion(source, cpv.hamming(6), criteria).solve()
    joint = counts @ solution.channel.matrix
    used = joint.sum(axis=0) > 1e-6 * counts.sum()
    assert i1(joint)[used].max() == pytest.approx(0.05, abs=1e-4)
    assert i1(joint)[used].max() <= 0.05 + 1e-9
    most = entropy(counts.sum(axis=1)) - math.log2(2.6)
    assert i2(joint)[used].max() <= most + 1e-9
    assert conditional_entropy(joint) >= math.log2(2.6)


# ---- small numbers -----------------------------------------------------------------------


def test_small_masses_and_subnormal_probabilities():
    outcome = i4([[1, 0], [1e-10, 1e-17]])
    assert np.isfinite(outcome).all()
    assert outcome[0] == pytest.approx(outcome[1])  # x̃ and not x̃ are the same two sets
    tiny = privacy_loss([[1, 1e-320], [1e-12, 1 - 1e-12]])
    assert tiny == pytest.approx(-math.log(1e-320), abs=1e-6)


def test_one_slack_for_letters_and_averages():

    joint = [[3 / 7, 1 / 7], [1 / 7, 3 / 7]]  # masses; whole records are decided exactly
    t = i1(joint)[0]
    just, over = t - 0.9e-9, t - 1.1e-9
    for at, holds in ((just, True), (over, False)):
        assert standing(cpv.TCloseness(at), joint)[1].all() == holds
        assert average_conditions(joint, t=at)["t"].holds == holds


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("neighbours", lambda: privacy_loss([[1, 0], [1, 0]], [[True], [True, False]])),
        ("l: 'many'", lambda: average_conditions([[1, 0], [0, 1]], l="many")),
        ("l: '2'", lambda: average_conditions([[1, 0], [0, 1]], l="2")),
    ],
)
def test_raw_errors_are_input_errors(text, asked):
    with pytest.raises(cpv.InputError, match=text):
        asked()
