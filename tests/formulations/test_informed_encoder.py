"""What survives that the encoder learns Z: claims of criteria, held against releases."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.solvers import strategy_generation
from tests.formulations.regions import costs, random_law, rde

RULES = {
    "t": cpv.TCloseness(0.6),
    "emd": cpv.TCloseness(0.3, "emd"),
    "l": cpv.LDiversity(1.2),
    "delta": cpv.DeltaDisclosure(1.5),
    "pml": cpv.PointwiseMaximalLeakage(0.6),
    "chi": cpv.PerLetter(cpv.leakage.ChiSquared(), 0.7),
    "cap": cpv.LeakageCap(0.2),
    "guess": cpv.LeakageCap(0.75, leakage=cpv.leakage.GuessingProbability()),
    "keep": cpv.KeepProbability(0.4),
    "moves": cpv.ForbiddenMoves(lambda x, y: (x, y) == (0, 2)),
    "marginal": cpv.PreserveMarginal(),
    "mean": cpv.PreserveMean([0.0, 1.0, 3.0]),
    "linear": cpv.Linear([[0, 1, 1], [0, 0, 1], [0, 0, 0]], 0.2),
    "k": cpv.KAnonymity(8),
}


class GuessedAtMost(cpv.Criterion):
    """p(w | u) ≤ p, whatever Z is: it does not survive, and does not say so."""

    name = "guessed_at_most"
    p = cpv.Parameter(loosens="up", loosest=1.0)

    def constraints(self, release):
        mass = release.mass().each()
        return {str(w): release.mass(w).each() <= self.p * mass for w in range(len(release.p_w))}


def source_of(rng, name):
    if name == "k":
        return cpv.DiscreteSource.from_counts(rng.integers(1, 9, (2, 3, 2)))
    return cpv.DiscreteSource(random_law(rng, 2, 3, 2, 0.7))


def informed_release(problem, channel):
    """Return p(x̂ | s, z) of the letters that strategies mean."""
    informed, alphabet = problem.informed, problem.alphabet
    generation = strategy_generation.Generation(alphabet, None, informed.alphabet, None)
    places = strategy_generation._places(generation)
    found = np.zeros((informed.alphabet.n, len(alphabet.d.outputs)))
    for s, row in enumerate(places):
        for z, letter in enumerate(row):
            if letter >= 0:
                np.add.at(found[letter], alphabet.strategies[:, z], channel[s])
    return found


@pytest.mark.parametrize("encoder", ["x", "wx"])
@pytest.mark.parametrize("name", RULES)
def test_what_strategies_satisfy_their_letters_do(name, encoder):
    """At releases on the boundary: optima of random distortions."""
    rule, checked = RULES[name], 0
    assert type(rule).survives_informed_encoder
    for seed in range(12):
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
    assert checked >= 4


def test_one_that_speaks_of_letters_whatever_z_does_not_survive():
    """It is found out by the same test, so that this could fail."""
    worst = 0.0
    for seed in range(40):
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


@pytest.mark.parametrize("seed", range(6))
def test_generated_strategies_under_a_criterion_of_ones_own_enclose_the_optimum(seed):
    """The lower end used to be that of an encoder that has to satisfy what it need not."""
    rng = np.random.default_rng([33, seed])
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2, 0.3)), costs(rng, 3, 3)
    options = {"minimize": "distortion", "side_information": "decoder"}
    least = max(source.p_w.max() * 1.02, 0.75)
    options["criteria"] = [GuessedAtMost(min(least, 0.99))]
    exact = rde(source, d, **options).solve(accuracy="high")
    found = rde(source, d, most_strategies=1, **options).solve(certify=False)
    assert found.status != "infeasible"
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper


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


def test_a_certificate_is_of_its_very_strategies():
    rng = np.random.default_rng(35)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), costs(rng, 3, 3)
    problem = rde(source, d, 0.5, side_information="decoder", most_strategies=1)
    certificate = problem.solve().certificate
    assert certificate.proves(problem)
    assert not certificate.proves(problem.at(budget=0.4))
    moved = certificate._with(strategies=certificate.strategies[::-1])
    assert not moved.proves(problem)
    for wrong in ([[0, 0]], [[0.5, 0, 0]], [[0, 0, 3]], [[-1, 0, 0]], [], [0, 0, 0]):
        with pytest.raises(cpv.InputError) as caught:
            problem.over(wrong)
        assert caught.value.argument == "strategies"


def test_entry_ranges_are_of_all_releases_or_refused():
    rng = np.random.default_rng(36)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), costs(rng, 3, 3)
    problem = rde(source, d, 0.5, side_information="decoder", most_strategies=1)
    with pytest.raises(cpv.InputError, match="strategies are listed"):
        cpv.entry_range(problem, 0, 0)


def test_entry_ranges_under_several_laws():
    """The worst of both is within the margin: the entry of the optimum is inside."""
    one, other = ([[0.4, 0.1], [0.1, 0.4]], [[0.3, 0.2], [0.1, 0.4]])
    source, year = cpv.DiscreteSource(one), cpv.DiscreteSource(other)
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, laws={"year": year})
    solution = problem.solve()
    for x in (0, 1):
        ends = cpv.entry_range(problem, x, 0, within=1e-4)
        assert ends.lower - 1e-9 <= solution.channel.matrix[x, 0] <= ends.upper + 1e-9
        assert ends.upper - ends.lower < 0.2
