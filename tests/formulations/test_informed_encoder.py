"""What survives that the encoder learns Z: claims of criteria, held against releases."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.formulations.optimal_face import entry_range
from cvxprivacy.solvers import strategy_generation
from cvxprivacy.solvers.driver import solve
from tests.formulations.regions import costs, random_law, rde
from tests.lengths import rest_at_length, some_at_length
from tests.own_criterion import GuessedAtMost

RULES = {
    "t": cpv.TCloseness(0.6),
    "emd": cpv.TCloseness(0.3, "emd"),
    "l": cpv.LDiversity(1.2),
    "delta": cpv.DeltaDisclosure(1.5),
    "pml": cpv.PointwiseMaximalLeakage(0.6),
    "chi": cpv.PerLetter(cpv.leakage.ChiSquared(), 0.7),
    "cap": cpv.LeakageCap(0.2),
    "conditional": cpv.ConditionalLeakageCap(0.05),
    "guess": cpv.LeakageCap(0.75, leakage=cpv.leakage.GuessingProbability()),
    "keep": cpv.KeepProbability(0.4),
    "moves": cpv.ForbiddenMoves(lambda x, y: (x, y) == (0, 2)),
    "marginal": cpv.PreserveMarginal(),
    "mean": cpv.PreserveMean([0.0, 1.0, 3.0]),
    "linear": cpv.Linear([[0, 1, 1], [0, 0, 1], [0, 0, 0]], 0.2),
    "k": cpv.RecordEntropy(8),
    "perfect": cpv.PerfectPrivacy(),
    "local": cpv.LocalInformationPrivacy(1.5),
}


def source_of(rng, name):
    if name == "k":
        return cpv.DiscreteSource.from_counts(rng.integers(1, 9, (2, 3, 2)))
    if name == "perfect":  # Z alone must tell nothing of W
        counts = rng.multinomial(16, [0.5, 0.3, 0.2], (2, 2))
        return cpv.DiscreteSource.from_counts(np.moveaxis(counts, 2, 1))
    return cpv.DiscreteSource(random_law(rng, 2, 3, 2, 0.7))


def informed_release(problem, channel):
    """Return p(x̂ | s, z) of the letters that strategies mean."""
    informed, alphabet = problem.informed, problem.alphabet
    generation = strategy_generation.Generation(alphabet, None, informed.alphabet, None)
    places = strategy_generation._places(generation)
    outcome = np.zeros((informed.alphabet.n, len(alphabet.d.outputs)))
    for s, row in enumerate(places):
        for z, letter in enumerate(row):
            if letter >= 0:
                np.add.at(outcome[letter], alphabet.strategies[:, z], channel[s])
    return outcome


@pytest.mark.long
@pytest.mark.parametrize("encoder", rest_at_length(["wx", "x"], 1))
@pytest.mark.parametrize("name", RULES)
def test_what_strategies_satisfy_their_letters_do(name, encoder):
    """At releases on the boundary: optima of random distortions."""
    rule, checked = RULES[name], 0
    assert type(rule).survives_informed_encoder
    for seed in range(12):
        if checked == 3:
            break
        rng = np.random.default_rng([31, seed])
        options = {"side_information": "decoder", "encoder": encoder, "criteria": [rule]}
        try:
            problem = rde(source_of(rng, name), costs(rng, 3, 3), minimize="distortion", **options)
            solution = problem.solve(certify=False)
        except cpv.InputError:  # too many records asked for at a z
            continue
        primal = solution.certificate.primal
        if primal is None:
            continue
        checked += 1
        release = informed_release(problem, primal.matrix)
        assert problem.informed.program.violation(release) <= 1e-9
    assert checked == 3


def test_every_criterion_that_says_so_is_held_against_releases():
    """The others are about a whole column of the channel, or are refused beside strategies."""
    classes = {each for each in vars(cpv.criteria).values() if isinstance(each, type)}
    stated = {each for each in classes if issubclass(each, cpv.Criterion)} - {cpv.Criterion}
    assert {each for each in stated if each.survives_informed_encoder} == set(
        map(type, RULES.values())
    )
    recorded = {cpv.LocalPrivacy, cpv.MaximalLeakage, cpv.MarginalDistance}
    assert {each for each in stated if not each.survives_informed_encoder} >= recorded


def test_one_that_speaks_of_letters_whatever_z_does_not_survive():
    """It is found out by the same test, so that this could fail."""
    worst = 0.0
    for seed in range(12):
        rng = np.random.default_rng([32, seed])
        source, rule = cpv.DiscreteSource(random_law(rng, 2, 3, 2, 0.3)), GuessedAtMost(0.8)
        options = {"side_information": "decoder", "criteria": [rule]}
        problem = rde(source, costs(rng, 3, 3), minimize="distortion", **options)
        primal = problem.solve(certify=False).certificate.primal
        if primal is not None:
            release = informed_release(problem, primal.matrix)
            kept = type("Kept", (GuessedAtMost,), {"survives_informed_encoder": True})
            other = rde(source, costs(rng, 3, 3), minimize="distortion",
                        side_information="decoder", criteria=[kept(0.8)])  # fmt: skip
            worst = max(worst, other.informed.program.violation(release))
    assert worst > 1e-3


@pytest.mark.parametrize("seed", some_at_length(range(6), 2))
def test_generated_strategies_under_a_criterion_of_ones_own_enclose_the_optimum(seed):
    """The lower end used to be that of an encoder that has to satisfy what it need not."""
    rng = np.random.default_rng([33, seed])
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2, 0.3)), costs(rng, 3, 3)
    options = {"minimize": "distortion", "side_information": "decoder"}
    least = max(source.p_w.max() * 1.02, 0.75)
    options["criteria"] = [GuessedAtMost(min(least, 0.99))]
    exact = rde(source, d, **options).solve(accuracy="high")
    solution = rde(source, d, most_strategies=1, **options).solve(certify=False)
    assert solution.status != "infeasible"
    assert solution.lower <= exact.upper
    assert exact.lower <= solution.upper


def test_a_formulation_of_ones_own_has_no_bound_for_strategies_that_are_not_listed():
    class Mine(cpv.RateDistortionEquivocation):
        def formulation(self):
            objective, constraints = super().formulation()
            mass = self.alphabet.mass(0).each() - 0.9 * self.alphabet.mass().each()
            return objective, {**constraints, "guess": mass <= 0}

    rng = np.random.default_rng(34)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2)), costs(rng, 3, 3)
    options = {"side_information": "decoder"}
    budget = 2.0
    assert Mine(source, d, budget, **options).solve().status == "certified"
    with pytest.raises(cpv.InputError, match="no bound for them all") as caught:
        Mine(source, d, budget, most_strategies=1, **options).solve()
    assert caught.value.argument == "most_strategies"


@pytest.mark.parametrize("name", ["rate", "risk", "distortion", "equivocation", "quantities"])
def test_what_the_formulation_reads_is_of_the_formulation(name):
    """A weighted rate of one's own was bounded by that of the paper's Theorem 3."""
    kind = type("Mine", (cpv.RateDistortionEquivocation,), {name: property(lambda self: None)})
    assert not kind.survives_informed_encoder
    assert type("Same", (cpv.RateDistortionEquivocation,), {}).survives_informed_encoder
    assert type("Sure", (kind,), {"survives_informed_encoder": True}).survives_informed_encoder


def test_rows_of_a_class_beside_are_not_claimed_of():
    class Rows:
        def constraints(self, release):
            return {"": release.mass(0).each() <= 0.7 * release.mass().each()}

    class Mixed(Rows, cpv.TCloseness):
        pass

    assert not Mixed.survives_informed_encoder
    assert not Mixed.survives_merging


def test_criteria_that_a_class_adds_by_itself_are_refused():
    class Mine(cpv.RateDistortionEquivocation):
        def __init__(self, source, d, *, side_information, criteria=(), most_strategies=1):
            options = {"side_information": side_information, "most_strategies": most_strategies}
            super().__init__(source, d, 2.0, criteria=[*criteria, GuessedAtMost(0.9)], **options)

    rng = np.random.default_rng(37)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2)), costs(rng, 3, 3)
    with pytest.raises(cpv.InputError, match="other criteria") as caught:
        Mine(source, d, side_information="decoder").solve()
    assert caught.value.argument == "most_strategies"


@pytest.mark.long
def test_a_false_claim_shows_where_the_ends_cross():
    """A class that says that it survives: its lower end was above a release, or infeasible."""
    kept = type("Kept", (GuessedAtMost,), {"survives_informed_encoder": True})
    crossed = 0
    for seed in range(6):
        rng = np.random.default_rng([33, seed])
        source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2, 0.3)), costs(rng, 3, 3)
        options = {"minimize": "distortion", "side_information": "decoder", "most_strategies": 1}
        p = min(max(source.p_w.max() * 1.02, 0.75), 0.99)
        try:
            solution = rde(source, d, criteria=[kept(p)], **options).solve(certify=False)
        except cpv.InputError as error:
            crossed += "declares survives_informed_encoder" in str(error)
        else:
            assert solution.lower <= solution.upper
    assert crossed


def generated(budget=0.5, **options):
    rng = np.random.default_rng(1)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), costs(rng, 3, 3)
    return rde(source, d, budget, side_information="decoder", **options)


def test_infeasible_says_of_what_it_is():
    """The least leakage with Z at the encoder was called that of the problem: .1718 for .1808."""
    typed = {"budget": 0.9, "max_leakage": 1e-5}
    typed["criteria"] = [cpv.LocalPrivacy(9), cpv.KeepProbability(0.9)]
    with pytest.raises(cpv.InfeasibleError) as exact:
        generated(**typed).solve()
    cut = generated(**typed, most_strategies=1)
    with pytest.raises(cpv.InfeasibleError) as caught:
        cut.solve()
    error = caught.value
    assert str(error).endswith("even if the encoder knows Z too and without LocalPrivacy(9)")
    assert error.extremes["max_leakage"] <= exact.value.extremes["max_leakage"]
    assert error.certificate.proves(cut)
    assert error.certificate.verify()


def test_infeasible_names_criteria_as_the_problem_does():
    """The first of two of one name is left out: the other is still the second."""
    named = type("Named", (GuessedAtMost,), {"name": "t_closeness"})
    rules = [named(1), cpv.TCloseness(0.001)]  # Z alone tells more
    with pytest.raises(cpv.InfeasibleError) as caught:
        generated(2.0, criteria=rules, most_strategies=1).solve()
    assert caught.value.conflict == ["t_closeness[2]"]


def test_a_list_to_begin_with_proves_nothing_of_all_strategies():
    """Its optimum, .1974, was certified to be that of the problem, which is .1838."""
    cut, exact = generated(most_strategies=1), generated().solve()
    listed = solve(cut.program).certificate
    assert listed.lower > exact.upper
    assert not listed.proves(cut)
    certificate = cut.solve().certificate
    assert certificate.lower <= exact.upper
    assert pickle.loads(pickle.dumps(certificate)).proves(cut)
    assert not certificate.relaxation.proves(cut)


def test_a_certificate_is_of_its_very_strategies():
    rng = np.random.default_rng(35)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), costs(rng, 3, 3)
    problem = rde(source, d, 0.5, side_information="decoder", most_strategies=1)
    certificate = problem.solve().certificate
    assert certificate.proves(problem)
    assert not certificate.proves(problem.at(budget=0.4))
    moved = certificate._with(strategies=certificate.strategies[::-1])
    assert not moved.proves(problem)
    for wrong in (
        [[0, 0, 1], [0, 1]],
        [[0, 0, 1], [0, 0, 1]],
        [[10**30, 0, 0]],
        None,
        {},
        [[0, 0]],
        [[0.5, 0, 0]],
        [[0, 0, 3]],
        [[-1, 0, 0]],
        [],
        [0, 0, 0],
    ):
        with pytest.raises(cpv.InputError) as caught:
            problem.over(wrong)
        assert caught.value.argument == "strategies"


def test_entry_ranges_are_of_all_releases_or_refused():
    rng = np.random.default_rng(36)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), costs(rng, 3, 3)
    problem = rde(source, d, 0.5, side_information="decoder", most_strategies=1)
    with pytest.raises(cpv.InputError, match="strategies are listed"):
        entry_range(problem, 0, 0)


def test_entry_ranges_under_several_laws():
    """The worst of both is within the margin: the entry of the optimum is inside."""
    one, other = ([[0.4, 0.1], [0.1, 0.4]], [[0.3, 0.2], [0.1, 0.4]])
    source, year = cpv.DiscreteSource(one), cpv.DiscreteSource(other)
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, laws={"year": year})
    solution = problem.solve()
    for x in (0, 1):
        ends = entry_range(problem, x, 0, within=1e-4)
        assert ends.lower - 1e-9 <= solution.channel.matrix[x, 0] <= ends.upper + 1e-9
        assert ends.upper - ends.lower < 0.2
