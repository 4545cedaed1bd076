"""Bounds of the population's risk: that they are above it, and how far."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.model.information import miller_madow, mutual_information
from cvxprivacy.text import upwards
from cvxprivacy_sdc.risk import population
from cvxprivacy_sdc.risk.estimators import estimated
from cvxprivacy_sdc.risk.population import BOUNDS, halved, measured, population_bounds
from tests.lengths import rest_at_length
from tests.public_tables import real_folder
from tests.sdc.audits import refusal

RARE = np.array([[0.9, 0.05], [0.0, 0.05]])  # W = 1 in one cell alone
LAWS = {
    "equal": np.eye(3) / 3,
    "independent": np.outer([0.2, 0.8], [0.5, 0.3, 0.2]),
    "rare": RARE,
    "rarer": np.array([[0.989, 0.001], [0.001, 0.009]]),
    "many": np.random.default_rng(3).dirichlet(np.full(30, 0.2)).reshape(3, 10),
}


def blurred(letters, kept):
    """Return the channel that keeps a letter with this probability, and else draws any."""
    return kept * np.eye(letters) + (1 - kept) / letters


def drawn(law, records, rng):
    return rng.multinomial(records, law.ravel()).reshape(law.shape).astype(float)


# ---- they are above ----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kept", [1.0, 0.6])
@pytest.mark.parametrize("records", rest_at_length([12, 600, 60], 2))
def test_every_bound_is_above_as_often_as_it_says(law, kept, records):
    """Of unequal laws and few records, up to three standard errors."""
    law, rng, tables, level = LAWS[law], np.random.default_rng(5), 120, 0.8
    channel = blurred(law.shape[1], kept)
    truth, above = mutual_information(law @ channel), dict.fromkeys([*BOUNDS, "first"], 0)
    for _ in range(tables):
        design, holdout = drawn(law, records, rng), drawn(law, records, rng)
        bounds = population_bounds(channel, design, holdout, level=level)
        above["first"] += bounds[0].value >= truth - 1e-12
        for bound in bounds:
            above[bound.name] += bound.value >= truth - 1e-12
    least = level - 3 * math.sqrt(level * (1 - level) / tables)
    assert {name: n / tables for name, n in above.items() if n / tables < least} == {}


@pytest.mark.parametrize("records", [5, 50, 500])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_what_the_holdout_never_met_is_covered(records, level):
    """All records in one cell, which is likelier than 1 − level under a law that leaks."""
    rare = 1 - (1.001 * (1 - level)) ** (1 / records)  # P(no record of it) > 1 − level
    law = np.diag([1 - rare, rare])
    truth, table = mutual_information(law), np.diag([float(records), 0.0])
    for design in (table, np.diag([records - 1.0, 1.0]), np.diag([1.0, records - 1.0])):
        for bound in population_bounds(np.eye(2), design, table, level=level):
            assert bound.value > truth, bound


def test_bounds_never_promise_more_than_the_letters_hold():
    bounds = population_bounds(np.eye(3), np.eye(3), np.eye(3), units="nats")
    assert [bound.value for bound in bounds] == [math.log(3)] * 3
    one = population_bounds([[1.0], [1.0]], [[1, 2], [3, 4]], [[1, 2], [3, 4]])
    assert {bound.value for bound in one} == {0.0}


# ---- they are near -----------------------------------------------------------------------


def test_an_independent_pair_is_bounded_by_what_shrinks():
    """Like 1/n by the log-loss, where nothing leaks; like √(1/n), and its logarithm, by others."""
    law, channel = np.outer([0.25, 0.75], [0.5, 0.5]), np.eye(2)
    values = {}
    for records in (4_000, 400_000):
        counts = law * records
        outcome = population_bounds(channel, counts, counts, units="nats")
        values[records] = {bound.name: bound.value for bound in outcome}
    few, many = values.values()
    assert min(*few.values(), *many.values()) > 0
    assert many["log-loss"] < few["log-loss"] / 50
    assert few["bounded differences"] / 10 < many["bounded differences"]
    assert many["bounded differences"] < few["bounded differences"] / 6
    assert many["cell by cell"] < few["cell by cell"] / 9


def test_the_log_loss_bound_has_no_term_in_the_number_of_letters():
    """W tells nothing; X̂ has 4 values, or 400, of which the plug-in has the bias."""
    excess = []
    for letters in (4, 400):
        law = np.full((2, letters), 0.5 / letters)
        counts = np.full((2, letters), 4_000.0 / letters)
        bounds = population_bounds(np.eye(letters), counts, counts, units="nats")
        excess.append(next(b.value for b in bounds if b.name == "log-loss"))
        assert mutual_information(law) < 1e-12
    assert excess[1] < 1.2 * excess[0] < 0.01


def test_a_higher_level_and_fewer_records_are_dearer():
    rng = np.random.default_rng(1)
    design, holdout = (drawn(LAWS["many"], 900, rng) for _ in range(2))
    channel = blurred(10, 0.7)

    def values(holdout, level):
        outcome = population_bounds(channel, design, holdout, level=level)
        return np.array([next(b.value for b in outcome if b.name == name) for name in BOUNDS])

    plugin = mutual_information(holdout @ channel)
    assert (values(holdout, 0.5) < values(holdout, 0.95)).all()
    assert (values(holdout * 1000, 0.95) < values(holdout, 0.95)).all()
    assert (values(holdout, 0.5) > plugin).all()
    assert values(holdout * 10**6, 0.95) == pytest.approx(plugin, rel=0.03)


# ---- the steps of the proofs -------------------------------------------------------------


def test_the_inequality_of_the_log_loss():
    """exp(−λu − a) ≤ 1 − λu + c f(u) for all u ≤ B, with equality at B where a > 0."""
    rng = np.random.default_rng(2)
    for _ in range(400):
        rate = rng.uniform(0.001, 0.95)
        c = rate ** rng.uniform(1.01, 2.0)
        caps = rng.exponential(4.0, 3)
        reference = population._Reference(np.ones(3), caps, 1)
        for cap, a in zip(caps, reference.above(rate, c), strict=True):
            if math.isinf(a):
                assert 1 - rate * cap + c * (math.expm1(-cap) + cap) <= 0
                continue
            u = np.concatenate([np.linspace(-30, cap, 2001), [cap]])
            right = 1 - rate * u + c * (np.expm1(-u) + u)
            assert (np.exp(-rate * u - a) <= right * (1 + 1e-9) + 1e-12).all()
            if a > 0:
                assert math.exp(-rate * cap - a) == pytest.approx(right[-1], rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_the_unknown_function_is_what_the_proof_says(law):
    """E ψ ≥ J, E e^{−ψ} ≤ 1, ψ ≤ B, and its mean over records is at most what is known."""
    law, rng = LAWS[law], np.random.default_rng(4)
    law = np.maximum(law, 1e-9) / np.maximum(law, 1e-9).sum()
    channel, design, holdout = blurred(law.shape[1], 0.6), drawn(law, 40, rng), drawn(law, 30, rng)
    joint = law @ channel
    truth = mutual_information(joint, units="nats")
    for reference in population._references(channel, design):
        other = joint.sum(axis=0 if reference.axis else 1, keepdims=True)
        ours = reference.law[:, None] if reference.axis else reference.law[None]
        psi = np.log(joint / other / ours) @ channel.T
        caps = reference.caps[:, None] if reference.axis else reference.caps[None]
        assert (law * psi).sum() >= truth - 1e-12
        assert (law * np.exp(-psi)).sum() <= 1 + 1e-12
        assert (psi <= caps + 1e-12).all()
        expected = mutual_information(holdout @ channel, units="nats") + reference.excess(holdout)
        assert (holdout / holdout.sum() * psi).sum() <= expected + 1e-12


def test_the_log_loss_bounds_the_mean_of_the_unknown_function_whatever_the_design():
    """E ψ = J + D(p_W ‖ r), or with X̂, is far above J where the design was of another law."""
    law, channel, level = np.full((4, 4), 0.02) + 0.17 * np.eye(4), blurred(4, 0.9), 0.8
    rng, joint, tables = np.random.default_rng(9), law @ channel, 200
    truth = mutual_information(joint, units="nats")
    for design in (np.diag([900.0, 30.0, 3.0, 0.0]), np.diag([400.0, 400.0, 1.0, 1.0])):
        of_w, of_x = population._references(channel, design)
        ours = [joint.sum(axis=1) @ np.log(joint.sum(axis=1) / of_w.law),
               joint.sum(axis=0) @ np.log(joint.sum(axis=0) / of_x.law)]  # fmt: skip
        assert min(ours) > 0.3
        above = 0
        for _ in range(tables):
            holdout = drawn(law, 300, rng)
            value = population._log_loss(channel, design, holdout, -math.log(1 - level))[1]
            above += value >= truth + min(ours)
        assert above / tables > level - 3 * math.sqrt(level * (1 - level) / tables)


def test_the_formula_of_the_log_loss_bound(monkeypatch):
    """Of one λ and one c, by W: (1 − e⁻ˢ)/(λ − c), s = λ(Ĵ + D) + Σ p̂(w) a(w) + log(1/δ)/n."""
    rate, c = 0.45, 0.45**1.9
    monkeypatch.setattr(population, "_LAMBDAS", np.array([rate]))
    monkeypatch.setattr(population, "_STEPS", np.array([0.1]))
    design, holdout = np.diag([98.0, 7.0]), np.array([[60.0, 5.0], [5.0, 30.0]])
    channel, log = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]), 3.0
    by_w = population._references(channel, design)[:1]
    monkeypatch.setattr(population, "_references", lambda *_: by_w)
    r, p = np.array([98.5, 7.5]) / 106, np.array([65.0, 35.0]) / 100
    caps = -np.log(r)
    a = -rate * caps - np.log(1 - rate * caps + c * (np.exp(-caps) - 1 + caps))
    assert a[0] < 0 < a[1]
    s = rate * (mutual_information(holdout, units="nats") + p @ np.log(p / r))
    s += p[1] * a[1] + log / 100
    outcome = population._log_loss(channel, design, holdout, log)[1]
    assert outcome == pytest.approx((1 - math.exp(-s)) / (rate - c))


def test_the_box_holds_all_cells_together():
    law, rng, level = LAWS["many"], np.random.default_rng(3), 0.8
    inside = 0
    for _ in range(300):
        low, high = population._box(drawn(law, 500, rng), level)
        inside += ((low <= law) & (law <= high)).all()
    assert level - 3 * math.sqrt(level * (1 - level) / 300) < inside / 300


def test_one_record_moves_the_plug_in_by_what_is_allowed():
    rng, greatest = np.random.default_rng(6), 0.0
    for _ in range(300):
        size, shape = int(rng.integers(2, 30)), tuple(rng.integers(2, 5, 2))
        channel = rng.dirichlet(np.full(3, 0.2), shape[1])
        counts = drawn(rng.dirichlet(np.full(math.prod(shape), 0.3)).reshape(shape), size - 1, rng)
        values = []
        for cell in np.ndindex(*shape):
            more = counts.copy()
            more[cell] += 1
            values.append(mutual_information(more @ channel, units="nats"))
        entropy = -(math.log(1 / size) + (size - 1) * math.log1p(-1 / size)) / size
        assert np.ptp(values) <= 2 * entropy + 1e-12
        greatest = max(greatest, np.ptp(values) / entropy)
    assert greatest > 0.9  # the constant is of the right size


@pytest.mark.long
def test_the_box_holds_no_law_that_leaks_more():
    rng, nearest = np.random.default_rng(8), math.inf
    for seed in range(20):
        law = np.random.default_rng(seed).dirichlet(np.full(6, 0.7)).reshape(2, 3)
        counts, channel = drawn(law, 200, rng), blurred(3, 0.8)
        bound = population._cell_by_cell(channel, counts, 0.9)
        low, high = population._box(counts, 0.9)
        inside = rng.uniform(low, high, (4000, 2, 3))
        inside[:2000] = np.where(rng.random((2000, 2, 3)) < 0.5, low, high)
        free = 1 - inside.sum(axis=(1, 2)) + inside[:, 0, 0]  # of the first cell
        inside = inside[(free >= low[0, 0]) & (free <= high[0, 0])]
        inside[:, 0, 0] += 1 - inside.sum(axis=(1, 2))
        leaks = [mutual_information(p @ channel, units="nats") for p in inside]
        assert max(leaks) <= bound
        nearest = min(nearest, bound / max(leaks))
    assert nearest < 1.6


# ---- the halves --------------------------------------------------------------------------


def people(records=900, seed=2):
    rng = np.random.default_rng(seed)
    age = rng.integers(2, 6, records)
    ill = np.where(rng.random(records) < age / 8, "yes", "no")
    sex = rng.choice(["f", "m"], records)
    return pd.DataFrame({"age": age, "sex": sex, "ill": ill, "weight": 1.0 + age})


def of_people(**options):
    return cpv.DiscreteSource.from_table(people(), sensitive="ill", key=["age", "sex"], **options)


def stated(source):
    d = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    return cpv.PrivacyDistortion(source, d, budget=0.1)


def designed(source, problem, *, seed, share=0.5, bootstrap=200, **options):
    """Design a channel on a part of the records; return what the others say, and its solution."""
    rng = np.random.default_rng(seed)
    halves = halved(source, share=share, seed=rng)
    half = problem(halves.design)
    solution = half.solve(**options)
    return measured(halves, half, solution, bootstrap=bootstrap, seed=rng), solution


def test_records_are_held_out_at_random_and_in_all():
    source = of_people()
    halves = halved(source, share=0.3, seed=7)
    assert (halves.holdout + halves.design.law == source.law).all()
    assert (halves.holdout.sum(), halves.design.records) == (270, 630)
    assert (halved(source, share=0.3, seed=7).holdout == halves.holdout).all()
    assert (halved(source, share=0.3, seed=8).holdout != halves.holdout).any()
    mean = np.mean([halved(source, share=0.3, seed=i).holdout for i in range(400)], axis=0)
    assert mean == pytest.approx(0.3 * source.law, abs=5 * math.sqrt(0.21 * source.law.max() / 400))


def test_a_release_is_measured_on_records_that_it_was_not_designed_on():
    source = of_people()
    outcome, solution = designed(source, stated, seed=3)
    halves = halved(source, share=0.5, seed=np.random.default_rng(3))
    channel = solution.channel.matrix
    assert outcome.design.plugin == pytest.approx(solution.risk)
    assert outcome.holdout.plugin == mutual_information(halves.holdout @ channel)
    assert outcome.upper == population_bounds(channel, halves.design.law, halves.holdout)[0].value
    assert outcome.holdout.lower < outcome.holdout.plugin < outcome.upper
    assert outcome.distortion[0] == pytest.approx(0.1)
    cost = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source).cost.floats
    full = (source.p_x[:, None] * channel * cost).sum()
    assert outcome.distortion[1] == pytest.approx(full)
    assert outcome.distortion[1] != outcome.distortion[0]
    text = str(outcome)
    assert f"is at most {upwards(outcome.upper)} bits: Chernoff" in text
    assert "not proved" in text
    assert outcome.document()["bounds"] == {b.name: b.value for b in outcome.bounds}
    again, _ = designed(source, stated, seed=3)
    assert again.document() == outcome.document()


def test_a_channel_that_changes_nothing_has_the_bias_of_its_cells():
    counts = np.array([[30, 4, 0], [6, 25, 9]])
    plain, through = estimated(counts), estimated(counts, channel=np.eye(3))
    assert through.bias == pytest.approx(plain.bias) == pytest.approx(miller_madow(counts))
    blurs = estimated(counts, channel=blurred(3, 0.5))
    assert 0 < blurs.bias < plain.bias
    assert estimated(counts, channel=np.ones((3, 1))).bias == pytest.approx(0)
    law, rng = counts / counts.sum(), np.random.default_rng(1)
    released = law @ blurred(3, 0.5)
    ratio = released / released.sum(axis=1, keepdims=True) / released.sum(axis=0)
    ours = np.log2(ratio) @ blurred(3, 0.5).T  # what a record adds, of mean I(W; X̂): less noise
    tables = [drawn(law, 400, rng) for _ in range(4000)]
    excess = [mutual_information(t @ blurred(3, 0.5)) - (t * ours).sum() / 400 for t in tables]
    expected = estimated(law * 74_000, channel=blurred(3, 0.5)).bias * 185
    assert np.mean(excess) == pytest.approx(expected, rel=0.1)
    redrawn = estimated(counts * 20, channel=np.eye(3), draws=300, seed=1)
    usual = estimated(counts * 20, draws=300, seed=1)
    assert redrawn.lower == pytest.approx(usual.lower, rel=0.05)
    assert redrawn.upper == pytest.approx(usual.upper, rel=0.05)
    refusal("channel", estimated, counts, channel=np.eye(2))


def test_what_cannot_be_held_out_is_refused():
    source = of_people()
    for share in (0.0, 1.0, -0.1, 1.5, "half", math.nan):
        assert refusal("share", halved, source, share=share).value is share
    two = cpv.DiscreteSource.from_counts([[1, 1]])
    assert halved(two, seed=1).holdout.sum() == 1
    one = cpv.DiscreteSource.from_counts([[1, 0]])
    assert "a record at least in either part" in str(refusal("share", halved, one))
    refusal("share", halved, source, share=1e-6)
    refusal("weights", halved, of_people(weights="weight"))
    refusal("source", halved, cpv.DiscreteSource([[0.5, 0.5]]))
    refusal("source", halved, cpv.DiscreteSource.from_counts(np.ones((2, 2, 2), int)))
    halves = halved(source, seed=1)
    problem = stated(source)
    refusal("problem", measured, halves, problem, problem.solve())
    d = cpv.hamming(source.x)
    both = cpv.PrivacyDistortion(halves.design, d, budget=0.1, encoder="wx")
    refusal("encoder", measured, halves, both, both.solve())
    problem = stated(halves.design)
    solution = problem.solve()
    refusal("level", measured, halves, problem, solution, level=1.0)
    refusal("bootstrap", measured, halves, problem, solution, bootstrap=1)
    square, counts = np.eye(2), [[1, 2], [3, 4]]
    refusal("matrix", population_bounds, [[0.5, 0.4], [0, 1]], counts, counts)
    refusal("holdout", population_bounds, square, counts, [[1, 2]])
    refusal("holdout", population_bounds, square, counts, [[0.5, 2], [3, 4]])
    refusal("design", population_bounds, square, [[0, 0], [0, 0]], counts)


def test_cells_that_the_design_lacks_have_a_row():
    source = cpv.DiscreteSource.from_counts([[40, 30, 1, 1], [10, 30, 0, 1]])
    for seed in range(6):
        outcome, _ = designed(
            source, lambda half: cpv.PrivacyDistortion(half, cpv.hamming(4), budget=0.2),
            share=0.7, seed=seed, bootstrap=0,
        )  # fmt: skip
        assert math.isfinite(outcome.upper)
        assert outcome.holdout.lower is None


# ---- a real table as the population ------------------------------------------------------


def adult(sensitive):
    frame = pd.read_csv(real_folder("adult") / "adult.csv")
    bins = {"age": 10}
    return cpv.DiscreteSource.from_table(frame, sensitive=sensitive, key=["age", "sex"], bins=bins)


def of_adult(source, records, tables, seed, draws=0):
    """Return how often the bound is above the truth, its mean excess, and the bootstrap's."""
    rng, above, covered, excess, widths, reaches = np.random.default_rng(seed), 0, 0, [], [], []
    for _ in range(tables):
        counts = drawn(source.pmf, records, rng)
        sample = source._with(law=counts, records=records, effective=float(records))
        outcome, solution = designed(sample, stated, seed=rng, bootstrap=draws, certify=False)
        truth = mutual_information(source.law @ solution.channel.matrix)
        above += outcome.upper >= truth
        excess.append(outcome.upper - truth)
        if outcome.holdout.lower is not None:
            covered += outcome.holdout.lower <= truth <= outcome.holdout.upper
            widths.append(outcome.holdout.upper - outcome.holdout.lower)
            reaches.append(outcome.holdout.upper - truth)
    value = len(widths)
    intervals = (value, covered / value, np.mean(widths), np.mean(reaches)) if value else (0,) * 4
    return above / tables, float(np.mean(excess)), intervals


@pytest.mark.long
@pytest.mark.real
def test_the_bound_is_above_the_risk_of_a_real_population():
    share, excess, _ = of_adult(adult("income"), 1_000, 25, seed=1)
    assert share == 1  # 5 % of 25 tables, were the bound no better than its proof
    assert excess < 0.15


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize("sensitive", ["income", "marital-status"])
@pytest.mark.parametrize("records", [1_000, 5_000])
def test_coverage_over_120_tables(sensitive, records):
    """Adult as the population: designed on half of a table drawn from it, measured on the rest."""
    share, excess, (value, covered, width, reach) = of_adult(
        adult(sensitive), records, 120, seed=records, draws=100
    )
    print(
        f"\n{sensitive}, {records:,} records: above in {share:.1%}, mean excess {excess:.4f} bits; "
        f"bootstrap given {value} times, covers {covered:.1%}, mean width {width:.4f}, "
        f"its upper end {reach:.4f} above"
    )
    assert share >= 0.95


def test_a_solution_of_another_problem_is_refused():
    """What a holdout says of it was reported beside the problem's own optimum."""
    source = cpv.DiscreteSource.from_counts([[600, 200], [200, 600]])
    halves = halved(source, seed=1)
    problem = cpv.PrivacyDistortion(halves.design, cpv.hamming(2), budget=0.2)
    assert measured(halves, problem, problem.solve(), seed=2, bootstrap=0)
    for other in (
        problem.at(budget=0.3),
        cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2),
    ):
        with pytest.raises(cpv.InputError, match="of another problem") as caught:
            measured(halves, problem, other.solve(), seed=2, bootstrap=0)
        assert caught.value.argument == "solution"
