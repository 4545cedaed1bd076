"""What an encoder of (W, X) tells who knows x, and the criterion that caps it."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction

import numpy as np
import pandas
import pytest

import cvxprivacy as cpv
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.results.informed import informed_by_table
from cvxprivacy.results.recount import recount
from tests.lengths import rest_at_length
from tests.public_tables import real_folder

FAIR = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
COINS = cpv.DiscreteSource([[0.25, 0.25], [0.25, 0.25]])
HAMMING = cpv.hamming(2)


def joint_of(source, channel, z=None):
    """Return p(w, x, x̂), of those with one z, in plain floats; rows of the channel are by label."""
    law = source.law if z is None else source.law[:, :, z]
    law = law / source.law.sum()
    joint = np.zeros((*law.shape, len(channel.outputs)))
    for letter, row in zip(channel.inputs, np.asarray(channel.matrix), strict=True):
        w, x = source.w.index(letter[0]), source.x.index(letter[1])
        if z is None or len(letter) == 2 or letter[2] == source.z[z]:
            joint[w, x] = law[w, x] * row
    return joint


def conditional(joint):
    """I(W; X̂ | X) of the joint mass, in bits, by entropies."""

    def h(mass):
        return -float((mass[mass > 0] * np.log2(mass[mass > 0])).sum())

    return h(joint.sum(axis=2)) + h(joint.sum(axis=0)) - h(joint.sum(axis=(0, 2))) - h(joint)


def sure_share(joint, share=0.95):
    masses = joint.sum(axis=0)
    return masses[joint.max(axis=0) >= share * masses].sum()


def laid_out(seed, zero=0.0):
    rng = np.random.default_rng([40, seed])
    law = rng.dirichlet(np.ones(12) * 0.7).reshape(3, 4)
    law[rng.random(law.shape) < zero] = 0.0
    law[0, 0] += 0.01
    cost = rng.random((4, 4)) * (1 - np.eye(4))
    return cpv.DiscreteSource(law / law.sum()), cost


# ---- what is told --------------------------------------------------------------------------


def test_a_mask_tells_nothing_by_itself_and_all_to_who_knows_x():
    """X̂ = W ⊕ X of two coins: I(W; X̂) = 0, I(W; X, X̂) = 1."""
    problem = cpv.PrivacyDistortion(COINS, HAMMING, budget=0.5, encoder="wx")
    inputs = problem.alphabet.inputs
    mask = cpv.Channel([[1 - (w ^ x), w ^ x] for w, x in inputs], inputs=inputs, outputs=[0, 1],
                       encoder="wx")  # fmt: skip
    solution = problem.certify(mask)
    reader = solution.informed
    assert solution.risk == pytest.approx(0, abs=1e-12)
    assert solution.informed_risk.lower <= 1 <= solution.informed_risk.upper
    assert solution.informed_risk.upper - solution.informed_risk.lower < 1e-12
    assert reader.before.lower <= 0 <= reader.before.upper
    assert (reader.sure_before.upper, reader.sure.upper) == (0.0, 1.0)
    assert reader.sure.lower > 1 - 1e-12
    assert reader.greatest_before == pytest.approx(0.5)
    assert reader.greatest == pytest.approx(1.0)
    assert reader.share == pytest.approx(0.25)
    assert reader.exceeds
    assert any("1 bits more about it to who knows" in note for note in solution.notes)
    text = str(solution)
    assert "who knows X" in text
    assert "learns 1 bits of W, 0 from X alone; is sure of it to 95% for 100.00%" in text


def test_where_x_is_constant_all_that_is_told_is_the_risk():
    """W a coin, X̂ = W but for a share 0.11: 1 − h(0.11) by both."""
    source = cpv.DiscreteSource([[0.5], [0.5]])
    problem = cpv.PrivacyDistortion(source, [[0.0, 1.0]], budget=1.0, encoder="wx")
    rows = cpv.Channel([[0.89, 0.11], [0.11, 0.89]], inputs=problem.alphabet.inputs,
                       outputs=[0, 1], encoder="wx")  # fmt: skip
    solution = problem.certify(rows)
    expected = 1 - cpv.information.entropy([0.11, 0.89])
    assert solution.informed_risk == pytest.approx(expected, abs=1e-12)
    assert solution.risk == pytest.approx(expected, abs=1e-12)
    assert solution.informed.greatest == pytest.approx(0.89)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("units", ["bits", "nats"])
def test_the_figures_are_those_of_plain_floats(seed, units):
    source, cost = laid_out(seed, 0.25 * (seed % 2))
    problem = cpv.PrivacyDistortion(source, cost, budget=0.1, encoder="wx", units=units)
    solution = problem.solve()
    joint = joint_of(source, solution.channel)
    reader, unit = solution.informed, 1.0 if units == "bits" else np.log(2)
    before = source.information(units=units)
    after = before + conditional(joint) * unit
    for enclosure, value in (
        (reader.before, before),
        (reader.after, after),
        (reader.sure, sure_share(joint)),
        (reader.sure_before, sure_share(joint.sum(axis=2, keepdims=True))),
    ):
        assert enclosure.lower - 1e-12 <= value <= enclosure.upper + 1e-12
        assert enclosure.upper - enclosure.lower < 1e-12
    assert solution.terms["informed_risk"] == reader.after
    there = joint.sum(axis=0) > 0
    posterior = joint.max(axis=0)[there] / joint.sum(axis=0)[there]
    assert reader.greatest == pytest.approx(posterior.max(), abs=1e-12)
    for twin in (copy.deepcopy(solution), pickle.loads(pickle.dumps(solution))):
        assert twin.informed.after.upper == reader.after.upper


def test_a_posterior_of_just_95_percent_is_sure():
    """Nineteen records of twenty, before and after, where nothing is changed; 18 of 19 is not."""
    source = cpv.DiscreteSource.from_counts([[19, 18], [1, 1]])
    solution = cpv.PrivacyDistortion(source, HAMMING, budget=0, encoder="wx").solve()
    for enclosure in (solution.informed.sure_before, solution.informed.sure):
        assert enclosure.lower <= 20 / 39 <= enclosure.upper
    moves = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    table = informed_by_table(moves, np.array([19, 1, 18, 1]), ["a", "b"], ["a", "b"], "bits", "wx")
    assert table.sure.lower <= 20 / 39 <= table.sure.upper
    assert table.after == pytest.approx(source.information())


def test_an_encoder_of_x_adds_nothing_and_says_nothing():
    solution = cpv.PrivacyDistortion(FAIR, HAMMING, budget=0.2).solve()
    assert solution.informed is None
    assert "informed_risk" not in solution.terms
    assert "who knows" not in str(solution)


def test_of_a_user_with_z_it_is_of_who_knows_x_and_z():
    rng = np.random.default_rng(7)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(12)).reshape(2, 3, 2))
    for side in ("decoder", "both"):
        problem = cpv.RateDistortionEquivocation(
            source, cpv.hamming(3), 0.3, side_information=side, encoder="wx", minimize="leakage"
        )
        solution = problem.solve()
        parts = [joint_of(source, solution.channel, z) for z in range(2)]
        more = sum(conditional(part / part.sum()) * part.sum() for part in parts)
        flat = cpv.DiscreteSource(source.law.reshape(2, 6))
        assert solution.informed_risk == pytest.approx(flat.information() + more, abs=1e-9)


def test_of_several_laws_each_has_its_own_and_the_worst_is_shown():
    other = cpv.DiscreteSource([[0.3, 0.2], [0.15, 0.35]])
    problem = cpv.PrivacyDistortion(FAIR, HAMMING, 0.1, encoder="wx", laws={"next": other})
    solution = problem.solve()
    for law, name in ((FAIR, "informed_risk"), (other, "informed_risk[next]")):
        expected = law.information() + conditional(joint_of(law, solution.channel))
        assert solution.terms[name] == pytest.approx(expected, abs=1e-12)
    assert solution.informed.after == max(
        solution.terms["informed_risk"], solution.terms["informed_risk[next]"]
    )


# ---- the cap -----------------------------------------------------------------------------


def capped(c, source=FAIR, cost=HAMMING, **options):
    rules = [cpv.ConditionalLeakageCap(c)]
    options = {"budget": 0.1, "encoder": "wx", "criteria": rules, **options}
    return cpv.PrivacyDistortion(source, cost, **options)


@pytest.mark.parametrize("seed", rest_at_length(range(3), 1))
def test_the_cap_binds_and_its_price_is_the_slope(seed):
    source, cost = laid_out(seed + 1)
    free = capped(10, source, cost, budget=0.05).solve()
    assert free.value > 1e-3
    most = conditional(joint_of(source, free.channel))
    assert most > 1e-3
    assert free.prices["conditional_leakage_cap"] == pytest.approx(0, abs=1e-6)
    at, step = most / 3, most / 3000
    caps = [capped(c, source, cost, budget=0.05) for c in (at - step, at, at + step)]
    solutions = [problem.solve() for problem in caps]
    for solution, c in zip(solutions, (at - step, at, at + step), strict=True):
        assert solution.status == "certified"
        assert solution.certificate.verify()
        assert conditional(joint_of(source, solution.channel)) == pytest.approx(c, abs=1e-6)
        assert solution.informed.after.upper <= source.information() + c + 1e-12
    low, middle, high = (solution.value for solution in solutions)
    slope = (high - low) / (2 * step)
    assert middle > free.value
    assert solutions[1].prices["conditional_leakage_cap"] == pytest.approx(slope, rel=0.01)
    assert slope < 0


def test_a_cap_of_nothing_is_the_encoder_of_x():
    blind = cpv.PrivacyDistortion(FAIR, HAMMING, 0.1).solve()
    assert capped(0).solve().value == pytest.approx(blind.value, abs=1e-8)


def test_of_an_encoder_of_x_nothing_is_asked_and_that_is_said():
    solution = capped(0.01, encoder="x").solve()
    blind = cpv.PrivacyDistortion(FAIR, HAMMING, 0.1).solve()
    assert solution.value == pytest.approx(blind.value, abs=1e-8)
    note = "conditional_leakage_cap binds nothing: I(W; X̂ | X) is 0 for every release"
    assert note in solution.notes


def test_a_frontier_of_the_cap_falls_from_the_blind_end_to_the_free_one():
    ends = (0.001, 0.05)
    curve = cpv.frontier(capped(0.01), "conditional_leakage_cap", between=ends, tol=0.002)
    assert curve.band <= 0.002
    for c in (*ends, 0.02):
        solution = capped(c).solve()
        assert curve.outer(c) <= solution.upper + 1e-9
        assert curve.inner(c) >= solution.lower - 1e-9
    assert curve.outer(0.001) > curve.inner(0.05)


def test_it_is_stated_in_cvxpy_and_solved_there():
    problem = capped(0.02)
    problem.problem.solve(solver="CLARABEL")
    assert problem.problem.value == pytest.approx(problem.solve().value, abs=1e-6)


def test_whoever_holds_an_earlier_release_knows_it_too():
    first = cpv.PrivacyDistortion(FAIR, HAMMING, budget=0.2).solve()
    for remember in (True, False):
        again = capped(0.02, budget=0.2, after=first.channel, remember=remember).solve()
        assert again.status == "certified"
        assert again.informed.after.upper <= FAIR.information() + 0.02 + 1e-12


def test_a_verdict_counts_the_records_by_w_x_and_what_is_released():
    """One of each (w, x), masked: a bit is told to who knows x; that of a constant is none."""
    table = cpv.DiscreteSource.from_counts([[1, 1], [1, 1]])
    w, x = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    for y, value in ((w ^ x, 1.0), (np.zeros(4, int), 0.0)):
        counts = Counts.of_moves(Alphabet(table, np.eye(2)), (w, x, y), np.ones(4, int))
        for bound, holds in ((Fraction(1), True), (Fraction(1, 2), value == 0)):
            verdict = cpv.ConditionalLeakageCap(bound).verdict(counts)
            assert (verdict.holds, verdict.value) == (holds, pytest.approx(value))
    alone = Counts.of_records([[1, 1], [1, 1]])
    assert cpv.ConditionalLeakageCap(1).verdict(alone).holds is None


@pytest.mark.long
def test_letters_that_are_too_many_are_refused():
    source = cpv.DiscreteSource(np.full((2, 3200), 1 / 6400))
    with pytest.raises(cpv.InputError, match="coarser key") as caught:
        cpv.MinimumDistortion(
            source, cpv.hamming(3200), [cpv.ConditionalLeakageCap(0.1)], encoder="wx"
        )
    assert caught.value.argument == "criteria"


def test_a_table_that_is_counted_again_tells_who_is_meant_to_know_x():
    frame = pandas.DataFrame({"ill": list("nnyynyyn"), "age": [30, 30, 30, 40, 40, 40, 50, 50]})
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age")
    solution = capped(0.01, source, cpv.hamming(3)).solve()
    document = json.loads(json.dumps(solution.certificate.document()))
    assert recount(document, frame) == []
    view = document["program"]["views"]["W|X = 30"]
    view["labels"] = [[1 - v if v >= 0 else v for v in row] for row in view["labels"]]
    assert recount(document, frame) == ["the letters that occur are not those of the proof"]


# ---- a table -----------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("capped_too", [False, True])
def test_what_is_told_of_adult_to_who_knows_age_and_sex(capped_too):
    """A risk of 0.0945 bits, and 0.83 told; sure to 95 % for 23 % of the mass, 5 % before."""
    frame = pandas.read_csv(real_folder("adult") / "adult.csv")
    source = cpv.DiscreteSource.from_table(
        frame, sensitive="marital-status", key=["age", "sex"], bins={"age": 10}
    )
    cost = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    options = {"criteria": [cpv.ConditionalLeakageCap(0.1)]} if capped_too else {}
    solution = cpv.PrivacyDistortion(source, cost, 0.1, encoder="wx", **options).solve()
    reader = solution.informed
    assert reader.before == pytest.approx(0.47578, abs=1e-5)
    assert reader.sure_before == pytest.approx(0.05089, abs=1e-5)
    if capped_too:
        assert solution.risk > 0.0946
        assert reader.after <= 0.47578 + 0.1 + 1e-5
    else:
        assert solution.risk == pytest.approx(0.09451, abs=1e-5)
        assert reader.after == pytest.approx(0.8305, abs=1e-3)
        assert reader.sure == pytest.approx(0.2315, abs=1e-3)
