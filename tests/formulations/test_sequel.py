"""Further releases of the same records: what all tell together, by hand and by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.criteria import local_privacy
from cvxprivacy.criteria.decisions import within
from cvxprivacy.formulations.sequel import after_releases
from cvxprivacy.programs.parameter import Scalar
from tests import referee
from tests.lengths import some_at_length
from tests.refusals import refused

AGES = [25, 40, 55, 70]
SOURCE = cpv.DiscreteSource.from_counts(
    [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]], x=AGES, names=["illness", "age"]
)
YEARS = cpv.absolute_error(AGES)


def channel_of(rng, n, m):
    return cpv.Channel(rng.dirichlet(np.full(m, 0.7), n), inputs=list(range(n)), outputs=range(m))


def by_hand(law, d, budget, remember):
    """Return the least I(W; X̂ Z) in bits over p(x̂ | x, z), or over p(x̂ | x), in CVXPY."""
    _, x, z = law.shape
    m = d.shape[1]
    channels = [cp.Variable((x, m), nonneg=True) for _ in range(z if remember else 1)]
    p_w = law.sum(axis=(1, 2))
    terms, cost = [], 0
    for k in range(z):
        channel = channels[k if remember else 0]
        joint = law[:, :, k] @ channel
        alone = p_w[:, None] @ cp.sum(joint, axis=0, keepdims=True)
        terms.append(cp.sum(cp.rel_entr(joint, alone)))
        cost += cp.sum(cp.multiply(law[:, :, k].sum(axis=0)[:, None] * d, channel))
    rules = [cp.sum(c, axis=1) == 1 for c in channels] + [cost <= budget]
    problem = cp.Problem(cp.Minimize(sum(terms)), rules)
    return problem.solve(solver="CLARABEL") / np.log(2)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_it_is_the_program_of_all_releases_together(seed, remember):
    rng = np.random.default_rng(seed)
    w, x, first, m = (int(k) for k in rng.integers(2, 5, 4))
    pmf = rng.dirichlet(np.ones(w * x)).reshape(w, x)
    source, channel, d = cpv.DiscreteSource(pmf), channel_of(rng, x, first), rng.random((x, m))
    budget = float(d.min(axis=1).mean() + 0.3 * rng.random())
    problem = cpv.PrivacyDistortion(source, d, budget, after=channel, remember=remember)
    try:
        solution = problem.solve()
    except cpv.InfeasibleError:
        assert budget < float(source.p_x @ d.min(axis=1)) + 1e-12
        return
    assert solution.status == "certified"
    referee.check(solution)
    truth = by_hand(pmf[:, :, None] * channel.matrix[None], d, budget, remember)
    assert solution.value == pytest.approx(truth, abs=2e-6)
    assert solution.certificate.verify()
    assert solution.certificate.proves(problem)


def test_what_is_remembered_need_not_be_told_twice():
    first = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0).solve(accuracy="high")
    again = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0, after=first.channel).solve(accuracy="high")
    assert again.value == pytest.approx(first.value, abs=1e-8)  # nothing new
    nearer = [
        cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, after=first.channel, remember=r).solve()
        for r in (True, False)
    ]
    alone = cpv.PrivacyDistortion(SOURCE, YEARS, 5.0).solve()
    both = mutual(SOURCE.pmf, first.channel.matrix, alone.channel.matrix)
    assert nearer[0].value == pytest.approx(0.1148, abs=5e-5)
    assert both == pytest.approx(0.1784, abs=5e-5)  # drawn independently
    assert first.value < nearer[0].value < nearer[1].value < both
    assert nearer[0].value >= alone.value - 1e-9  # the first is another burden


def mutual(pmf, *channels):
    """Return I(W; X̂₁ X̂₂ …) of independent draws."""
    joint = pmf[:, :, None]
    for channel in channels:
        joint = (joint[:, :, :, None] * channel[None, :, None, :]).reshape(*pmf.shape, -1)
    return cpv.information.mutual_information(joint.sum(axis=1))


def test_independent_draws_of_one_channel_are_never_better():
    """The averaging attack as a theorem: what repeats itself is feasible, and no better."""
    first = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0).solve().channel
    for copies in (1, 2):
        problem = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0, after=[first] * copies, remember=False)
        least = problem.solve()
        repeated = mutual(SOURCE.pmf, *[first.matrix] * (copies + 1))
        assert least.lower <= repeated + 1e-9
        answer = problem.certify(first)
        assert answer.upper == pytest.approx(repeated, abs=1e-8)
        assert answer.lower <= least.upper


def test_the_release_draws_with_both_letters():
    first = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0).solve().channel
    second = cpv.PrivacyDistortion(SOURCE, YEARS, 5.0, after=first).solve().channel
    x = np.random.default_rng(0).choice(AGES, 40_000, p=SOURCE.p_x)
    drawn = first.apply(x, seed=1)
    released = second.apply(list(zip(x.tolist(), drawn.tolist(), strict=True)), seed=2)
    assert np.abs(x - released).mean() == pytest.approx(5.0, abs=0.15)
    pair = x == 40, drawn == 40
    chosen = pair[0] & pair[1]
    if chosen.sum() > 500:
        row = second.matrix[second.inputs.index((40, 40))]
        shares = [(released[chosen] == y).mean() for y in second.outputs]
        assert shares == pytest.approx(row, abs=0.05)


def test_labels_decide_and_not_places():
    first = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0).solve().channel
    order = [2, 0, 3, 1]
    turned = cpv.Channel(
        first.matrix[order], inputs=[first.inputs[i] for i in order], outputs=first.outputs
    )
    laws = [after_releases(SOURCE, c).law for c in (first, turned)]
    assert (laws[0] == laws[1]).all()
    assert laws[0].sum(axis=2) == pytest.approx(SOURCE.pmf, abs=1e-15)


def test_an_earlier_release_that_saw_w():
    informed = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0, encoder="wx").solve()
    law = after_releases(SOURCE, informed.channel).law
    assert law.sum(axis=2) == pytest.approx(SOURCE.pmf, abs=1e-15)
    leaked = cpv.information.mutual_information(law.sum(axis=1))
    assert leaked == pytest.approx(informed.value, abs=1e-7)
    again = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0, encoder="wx", after=informed.channel).solve()
    assert again.value == pytest.approx(informed.value, abs=1e-6)


# ---- criteria of all releases ------------------------------------------------------------

BIT = cpv.DiscreteSource.identical([0.5, 0.5])


def flipped(p):
    """Return a channel that flips a bit with probability p."""
    return cpv.Channel([[1 - p, p], [p, 1 - p]], inputs=[0, 1], outputs=[0, 1])


def least(rule, source=BIT, **options):
    return cpv.MinimumDistortion(source, cpv.hamming(2), [rule], **options).solve(accuracy="high")


def test_local_privacy_is_of_the_product_of_both_channels():
    """0.9 (1 − p) = e³ 0.1 p without the first draws; with them two such equations for each."""
    first, factor = flipped(0.1), np.exp(3)
    apart = least(cpv.LocalPrivacy(3), after=first, remember=False)
    assert apart.value == pytest.approx(1 / (1 + factor / 9), abs=1e-8)
    kept = least(cpv.LocalPrivacy(3), after=first)
    moved = (9 * factor - 1) / (factor**2 - 1)  # of x whose first letter was the other
    assert kept.value == pytest.approx(0.9 * (1 - factor / 9 * moved) + 0.1 * moved, abs=1e-8)
    line = cpv.LocalPrivacy(3, metric=[[0, 1], [1, 0]])
    assert least(line, after=first).value == pytest.approx(kept.value, abs=1e-8)


def test_local_privacy_that_the_earlier_release_exceeds_is_refused():
    """A bit that was flipped with probability .01 is at ε = log 99 = 4.595 whatever follows."""
    for metric in (None, [[0, 1], [1, 0]]):
        for remember in (True, False):
            asked = {"after": flipped(0.01), "remember": remember}
            low, high = (cpv.LocalPrivacy(e, metric=metric) for e in (1.0, 4.7))
            refused(partial(least, low, **asked), "epsilon", "4.595 of the earlier releases alone")
            assert least(high, **asked).status == "certified"
    sure = cpv.Channel([[1.0, 0.0], [0.5, 0.5]], inputs=[0, 1], outputs="ab")
    refused(lambda: least(cpv.LocalPrivacy(9), after=sure), "epsilon", "became 'b'")
    assert cpv.LocalPrivacy(1).tightest([after_releases(BIT, flipped(0.01))]) >= np.log(99)


def rarely(*chances):
    """Return a channel that releases "a" with these probabilities, else "b"."""
    rows = [[p, 1 - p] for p in chances]
    return cpv.Channel(rows, inputs=[*range(len(rows))], outputs="ab")


def exactly(channel):
    rows = [[Fraction(p) for p in row] for row in channel.matrix.tolist()]
    return dict(zip(channel.inputs, [[p / sum(row) for p in row] for row in rows], strict=True))


def within_all_releases(first, last, epsilon):
    """Tell, of fractions, whether p(z | s) p(y | s, z) ≤ e^ε p(z | s') p(y | s', z) everywhere."""
    before, after = exactly(first), exactly(last)
    both = {
        x: [p * q for z, p in zip("ab", law, strict=True) for q in after.get((x, z)) or after[x]]
        for x, law in before.items()
    }
    return all(
        within(p / q, Fraction(epsilon))
        for a, b in itertools.permutations(both.values(), 2)
        for p, q in zip(a, b, strict=True)
    )


@pytest.mark.parametrize(
    ("of_a_metric", "remember"),
    some_at_length([*itertools.product([True, False], [True, False])], 2),
)
@pytest.mark.parametrize(
    ("chances", "epsilons"),
    [
        ((1e-200, 0.5), (461, 500, 690, 699)),
        ((1e-200, 2e-200), (5, 100, 300, 690, 699)),
        ((1e-17, 1e-17, 0.1), (100, 300, 500)),
    ],
)
def test_what_hardly_any_record_released_before_keeps_no_bound_from_proof(
    chances, epsilons, of_a_metric, remember
):
    first, size = rarely(*chances), len(chances)
    source = cpv.DiscreteSource.identical([0.5, 0.5] if size == 2 else [0.3, 0.3, 0.4])
    for epsilon in epsilons:
        rule = cpv.LocalPrivacy(epsilon, metric=1 - np.eye(size) if of_a_metric else None)
        options = {"after": first, "remember": remember}
        solution = cpv.MinimumDistortion(source, cpv.hamming(size), [rule], **options).solve()
        assert solution.status == "certified"
        assert solution.certificate.verify()
        assert within_all_releases(first, solution.channel, epsilon)


@pytest.mark.parametrize("remember", [True, False])
def test_rows_of_pairs_after_rare_letters_are_the_rule_of_all(remember, monkeypatch):
    """A letter that is no rarer under one input than the other tells nothing, however rare."""
    kinds = [{"after": rarely(p, 2 * p), "remember": remember} for p in (1e-200, 1e-3)]
    values = [least(cpv.LocalPrivacy(2), **kind) for kind in kinds]
    assert values[0].prices["local_privacy"] < -0.05
    for kind, solution in zip(kinds, values, strict=True):
        low, high = (least(cpv.LocalPrivacy(2 + side), **kind) for side in (-1e-4, 1e-4))
        slope = (high.value - low.value) / 2e-4
        assert solution.prices["local_privacy"] == pytest.approx(slope, abs=1e-5)
    for rare in (0.0, 1.0):
        monkeypatch.setattr(local_privacy, "_RARE", rare)
        assert least(cpv.LocalPrivacy(2), **kinds[1]).value == pytest.approx(
            values[1].value, abs=1e-9
        )


@pytest.mark.parametrize("few", [0, 4_000])
def test_no_rule_is_of_the_row_of_what_has_no_mass_in_floats(few, monkeypatch):
    monkeypatch.setattr(local_privacy, "_FEW", few)
    first = rarely(1e-150, 1e-165)  # twice, 1e-300 and 1e-330
    options = {"after": [first, first], "remember": True}
    for metric in (None, [[0, 1], [1, 0]]):
        rule = cpv.LocalPrivacy(100, metric=metric)
        problem = cpv.MinimumDistortion(BIT, cpv.hamming(2), [rule], **options)
        assert problem.program.n == 7
        assert not any("-1" in name for name in problem.program.constraints)


def test_earlier_releases_may_exceed_any_float_and_are_refused_by_its_logarithm():
    first = rarely(1e-200, 0.5)
    alone = 2 * (math.log(0.5) + 200 * math.log(10))
    assert cpv.LocalPrivacy(1).tightest([after_releases(BIT, [first, first])]) == pytest.approx(
        alone, rel=1e-9
    )
    for metric, remember in itertools.product((None, [[0, 1], [1, 0]]), (True, False)):
        asked = {"after": [first, first], "remember": remember}
        rule = cpv.LocalPrivacy(690, metric=metric)
        refused(partial(least, rule, **asked), "epsilon", "919.6", "e^-921")


def test_a_logarithm_of_a_ratio_is_known_to_a_float_wherever_that_is():
    for ratio, expected in (
        (Fraction(10) ** 400, 400 * math.log(10)),
        (Fraction(1, 10**400), -400 * math.log(10)),
        (1 + Fraction(1, 10**60), 1e-60),
        (1 - Fraction(1, 10**60), -1e-60),
        (Fraction(1), 0.0),
        (Fraction(3), math.log(3)),
    ):
        assert local_privacy._log(ratio) == pytest.approx(expected, rel=1e-15)


def test_an_input_of_local_privacy_is_all_that_any_release_saw():
    """The first is about W alone, at ε = 1 and I(W; X) = 0: x may be told at another ε = 1."""
    source = cpv.DiscreteSource(np.full((2, 2), 0.25))
    pairs, share = [(w, x) for w in (0, 1) for x in (0, 1)], 1 / (1 + np.e)
    rows = [[1 - share, share] if w else [share, 1 - share] for w, _ in pairs]
    first = cpv.Channel(rows, inputs=pairs, outputs=[0, 1])._with(encoder="wx")
    refused(lambda: least(cpv.LocalPrivacy(0.9), source, after=first), "epsilon", "(0, 0)")
    for remember in (True, False):
        solution = least(cpv.LocalPrivacy(2), source, after=first, remember=remember)
        assert solution.value == pytest.approx(share, abs=1e-8)
    metric = cpv.LocalPrivacy(2, metric=[[0, 1], [1, 0]])
    refused(lambda: least(metric, source, after=first), "metric", "not x alone")


def test_what_no_program_states_of_all_releases_is_refused():
    class Halves(cpv.Criterion):
        """p(x̂ | s) ≤ p."""

        p = cpv.Parameter()

        def constraints(self, release):
            return {"": release.moved({0: Scalar(1)}).each() <= self.p}

    first = flipped(0.1)
    refused(lambda: least(cpv.LocalPrivacy(3, delta=0.1), after=first), "delta", "no program")
    refused(lambda: least(Halves(0.5), after=first), "criteria", "of this release")
    Halves.of_releases = "this"
    assert least(Halves(0.5), after=first).value == pytest.approx(0.225, abs=1e-6)  # of x = z = 0


def test_maximal_leakage_is_of_all_releases():
    """Σ max over z and x̂ of two flips at .1 and p is 2 max(.9 (1 − p), .1) + 2 max(.9 p, .1)."""
    solution = least(cpv.MaximalLeakage(np.log2(1.96)), after=flipped(0.1), remember=False)
    p = 0.5 - 0.5 * (1 - solution.value * 2)
    both = 2 * max(0.9 * (1 - p), 0.1 * p) + 2 * max(0.9 * p, 0.1 * (1 - p))
    assert both == pytest.approx(1.96, abs=1e-8)
    with pytest.raises(cpv.InfeasibleError):
        least(cpv.MaximalLeakage(np.log2(1.79)), after=flipped(0.1))
    problem = cpv.MinimumDistortion(
        BIT, cpv.hamming(2), [cpv.MaximalLeakage(0.9)], after=flipped(0.1)
    )
    curve = cpv.frontier(problem, "maximal_leakage", tol=0.05)
    assert curve.outer(0.95) <= problem.at(maximal_leakage=0.95).solve().value <= curve.inner(0.95)


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_a_cap_given_x_counts_what_an_earlier_release_that_saw_w_told(encoder):
    """The first is W, flipped with probability 0.2, beside an independent X: 1 − h(0.2) bits."""
    source, inputs = cpv.DiscreteSource(np.full((2, 2), 0.25)), [(0, 0), (0, 1), (1, 0), (1, 1)]
    rows = [[0.8, 0.2]] * 2 + [[0.2, 0.8]] * 2
    first = cpv.Channel(rows, inputs=inputs, outputs=[0, 1])._with(encoder="wx")
    before = 1 - cpv.information.entropy([0.2, 0.8])
    asked = {"source": source, "after": first, "encoder": encoder}
    assert least(cpv.ConditionalLeakageCap(before + 1e-6), **asked).value == pytest.approx(0)
    with pytest.raises(cpv.InfeasibleError):
        least(cpv.ConditionalLeakageCap(before - 1e-3), **asked)


def test_record_entropy_does_not_take_a_draw_for_an_attribute():
    """A fair coin tells nothing of forty records: the optimum of each k is that without it."""
    source = cpv.DiscreteSource.from_counts([[15, 5], [5, 15]])
    coin = cpv.Channel([[0.5, 0.5]] * 2, inputs=[0, 1], outputs="ab")
    for k in (15, 25, 38):
        alone = least(cpv.RecordEntropy(k), source).value
        for remember in (True, False):
            both = least(cpv.RecordEntropy(k), source, after=coin, remember=remember)
            assert both.value == pytest.approx(alone, abs=1e-7)
    refused(lambda: least(cpv.RecordEntropy(41), source, after=coin), "k", "exceeds the 40 records")


def test_rules_of_moves_marginals_and_means_are_of_this_release():
    first = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0).solve().channel
    moves = np.zeros((4, 4), bool)
    moves[0, 3] = True
    rules = [
        cpv.KeepProbability(0.3),
        cpv.ForbiddenMoves(moves),
        cpv.PreserveMean(AGES),
        cpv.MarginalDistance(0.05),
        cpv.Linear(np.eye(4), 0.9, name="kept"),
    ]
    for remember in (True, False):
        how = {"after": first, "remember": remember}
        release = cpv.PrivacyDistortion(SOURCE, YEARS, 9.0, criteria=rules, **how).solve().channel
        law = after_releases(SOURCE, first).law.sum(axis=0)
        rows = release.matrix.reshape(4, -1, 4) if remember else release.matrix[:, None]
        pairs = (law[:, :, None] * rows).sum(axis=1)  # p(x, x̂)
        assert rows[np.arange(4), :, np.arange(4)].min() >= 0.3 - 1e-12
        assert rows[0, :, 3].max() == 0
        assert pairs.sum(axis=0) @ AGES == pytest.approx(SOURCE.p_x @ AGES, abs=1e-9)
        assert np.abs(pairs.sum(axis=0) - SOURCE.p_x).sum() / 2 <= 0.05 + 1e-12
        assert np.trace(pairs) <= 0.9 + 1e-12


def test_a_value_without_mass_has_no_row_where_the_chances_of_all_are_bounded():
    source = cpv.DiscreteSource([[0.3, 0.2, 0.0], [0.2, 0.3, 0.0]])
    first = cpv.Channel([[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]], inputs=range(3), outputs=[0, 1])
    for rule in (cpv.LocalPrivacy(2), cpv.MaximalLeakage(0.9)):
        problem = cpv.MinimumDistortion(source, cpv.hamming(3), [rule], after=first)
        assert {x for x, _ in problem.solve().channel.inputs} == {0, 1}


def test_what_is_no_earlier_release_is_refused():
    first = cpv.PrivacyDistortion(SOURCE, YEARS, 8.0).solve().channel

    def after(value, source=SOURCE, **options):
        return lambda: cpv.PrivacyDistortion(source, YEARS, 8.0, after=value, **options)

    refused(after([]), "after", "no channel")
    refused(after([first, 3]), "after", "a int", where=1)
    few = cpv.Channel([[1.0, 0.0]], inputs=[25], outputs=[25, 40])
    refused(after(few), "after", "40 is no input", where=0, value=40)
    refused(after([first] * 9), "after", "combinations")
    refused(after(first, laws=[SOURCE]), "after", "several laws")
    refused(after(first, remember="no"), "remember")
    side = cpv.DiscreteSource(np.full((2, 4, 2), 1 / 16), x=AGES)
    refused(after(first, source=side), "after", "side information")
