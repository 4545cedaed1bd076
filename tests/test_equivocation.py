"""Rate, distortion and equivocation: closed forms, another search, and the law recomputed.

What a solution says is compared with what its channel and decoder do to the joint law of
(w, x, z, u), written out in full here: no view, label or reference of the package is used.
"""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pytest
from scipy.optimize import brentq

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.results.recount import recount
from cvxprivacy.solvers import strategies
from cvxprivacy.solvers.driver import solve
from tests import referee
from tests.cli.runner import say
from tests.lengths import rest_at_length

CASES = (None, "decoder", "both")
ENCODERS = ("x", "wx")
pd = pytest.importorskip("pandas", reason="the extra `examples` is not installed")


# ---- the joint law, written out ----------------------------------------------------------


def entropy(masses) -> float:
    masses = np.asarray(masses, float).ravel()
    masses = masses[masses > 0]
    return float(-(masses * np.log(masses)).sum())


def information(joint: np.ndarray, a: str, b: str, given: str = "") -> float:
    """Return I(A; B | C) in nats of a law over the axes w, x, z, u."""

    def h(letters: str) -> float:
        gone = tuple(i for i, name in enumerate("wxzu") if name not in letters)
        return entropy(joint.sum(axis=gone))

    return h(a + given) + h(b + given) - h(given) - h(a + b + given)


class Played:
    """A solution's release played on the source: p(w, x, z, u), and the x̂ of every u and z."""

    def __init__(self, problem: cpv.RateDistortionEquivocation, solution: cpv.Solution) -> None:
        self.problem, source, channel = problem, problem.source, solution.channel
        self.unit = math.log(2.0) if problem.units == "bits" else 1.0
        law = source.law if source.law.ndim == 3 else source.law[:, :, None]
        zs = source.z if source.z is not None else [None]
        place = {label: i for i, label in enumerate(channel.inputs)}
        self.joint = np.zeros((*law.shape, channel.matrix.shape[1]))
        for w, x, z in np.ndindex(law.shape):
            axes = {"w": source.w[w], "x": source.x[x], "z": zs[z]}
            label = tuple(axes[name] for name in channel.encoder)
            row = channel.matrix[place[label if len(label) > 1 else label[0]]]
            self.joint[w, x, z] = law[w, x, z] / law.sum() * row
        self.letters = problem.alphabet.d.outputs
        self.hat = np.tile(np.arange(len(self.letters))[:, None], (1, len(zs)))
        if channel.decoder is not None:
            used = range(len(channel.outputs))
            read = [[self.letters.index(channel.decoder(u, z)) for z in zs] for u in used]
            self.hat = np.array(read)

    @property
    def released(self) -> np.ndarray:
        """p(w, x, z, x̂)."""
        found = np.zeros((*self.joint.shape[:3], len(self.letters)))
        for u, z in np.ndindex(self.hat.shape):
            found[:, :, z, self.hat[u, z]] += self.joint[:, :, z, u]
        return found

    def expected(self, matrix) -> float:
        """Return E m(X, X̂) or E m(W, X, X̂)."""
        matrix = np.asarray(matrix, float)
        matrix = np.broadcast_to(matrix, (self.joint.shape[0], *matrix.shape[-2:]))
        return float((self.released.sum(axis=2) * matrix).sum())

    @property
    def terms(self) -> dict[str, float]:
        joint, side = self.joint, self.problem.side_information
        s = "wx" if self.problem.encoder == "wx" else "x"
        rate = information(joint, s, "u", "z" if side else "")
        leakage = information(joint, "w", "uz" if side else "u")
        return {
            "rate": rate / self.unit,
            "leakage": leakage / self.unit,
            "equivocation": (entropy(joint.sum(axis=(1, 2, 3))) - leakage) / self.unit,
            "distortion": self.expected(self.problem.alphabet.d.matrix),
        }

    def cells(self):
        """Yield p(w, x | u), or p(w, x | u, z) and z where the user knows it, of what occurs."""
        side = self.problem.side_information is not None
        table = self.joint if side else self.joint.sum(axis=2, keepdims=True)
        for z, u in itertools.product(range(table.shape[2]), range(table.shape[3])):
            mass = table[:, :, z, u].sum()
            if mass > 1e-9:
                yield table[:, :, z, u] / mass, z

    def excess(self, criterion: cpv.Criterion) -> float:
        """Return by how much a criterion is broken in some cell; negative if in none."""
        p_w = self.joint.sum(axis=(1, 2, 3))
        before = self.joint.sum(axis=3)
        if self.problem.side_information is None:
            before = before.sum(axis=2, keepdims=True)
        worst = -math.inf
        for cell, z in self.cells():
            w = cell.sum(axis=1)
            told = sum(a * math.log(a / b) for a, b in zip(w, p_w, strict=True) if a > 0)
            if isinstance(criterion, cpv.TCloseness):
                off = told / self.unit - criterion.t
            elif isinstance(criterion, cpv.LDiversity):
                off = math.log(criterion.l) - entropy(w)
            elif isinstance(criterion, cpv.DeltaDisclosure):
                met = p_w > 0
                off = np.abs(np.log(np.maximum(w[met], 1e-300) / p_w[met])).max() - criterion.delta
            else:  # H(record | u, z) = H(s | u, z) + Σ p(s | u, z) log(records with s and z)
                records = self.problem.source.records * before[:, :, z]
                s, n = cell, records
                if self.problem.encoder == "x":
                    s, n = cell.sum(axis=0), records.sum(axis=0)
                on = s > 0
                off = math.log(criterion.k) - entropy(s) - (s[on] * np.log(n[on])).sum()
            worst = max(worst, float(off))
        return worst


def agree(problem, solution, tolerance: float = 1e-9) -> Played:
    """Compare every term with the law written out."""
    played = Played(problem, solution)
    for name, value in played.terms.items():
        assert value == pytest.approx(float(solution.terms[name]), abs=tolerance), name
    return played


def solved(problem, accuracy: str = "high") -> cpv.Solution:
    """Solve, referee, recompute."""
    solution = problem.solve(accuracy=accuracy)
    referee.check(solution)
    agree(problem, solution)
    return solution


def rde(source, distortion, *args, **options) -> cpv.RateDistortionEquivocation:
    return cpv.RateDistortionEquivocation(source, distortion, *args, **{"units": "nats", **options})


def random_law(rng: np.random.Generator, w: int, x: int, z: int, alpha: float = 1.0) -> np.ndarray:
    return rng.dirichlet(np.full(w * x * z, alpha)).reshape(w, x, z)


def costs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return d(x, x̂) or d(w, x, x̂), least where x̂ is x."""
    off = np.arange(shape[-2])[:, None] != np.arange(shape[-1])
    return rng.random(shape) * 0.5 + off


def holed(rng: np.random.Generator) -> np.ndarray:
    """Return a law of 3 × 5 × 4: a w, an x and a z without mass, a w that no z₀ has."""
    law = np.zeros((4, 5, 3))
    law[np.ix_([0, 2, 3], [0, 1, 3, 4], [0, 2])] = random_law(rng, 3, 4, 2)
    law[0, :, 0] = 0.0
    law[:, 3, 2] = 0.0
    return law / law.sum()


def between(problem_of, share: float) -> float:
    """Return a budget between the least and the greatest distortion."""
    ends = problem_of(minimize="distortion")
    low, high = ends.least_distortion, ends.greatest_distortion
    assert high - low > 1e-3
    return (1 - share) * low + share * high


# ---- closed forms ------------------------------------------------------------------------


def h(p: float) -> float:
    return entropy([p, 1 - p])


def star(a: float, b: float) -> float:
    return a * (1 - b) + b * (1 - a)


def symmetric(p0: float) -> cpv.DiscreteSource:
    """W = X a fair bit, Z its copy through a binary symmetric channel."""
    law = np.zeros((2, 2, 2))
    for x, z in np.ndindex(2, 2):
        law[x, x, z] = 0.5 * (p0 if x != z else 1 - p0)
    return cpv.DiscreteSource(law)


def wyner_ziv(p0: float, budget: float) -> tuple[float, float]:
    """Return R_WZ(D) and D_c: h(p₀∗D) − h(D), and from D_c on its tangent through (p₀, 0)."""

    def slope(d: float) -> float:
        return (1 - 2 * p0) * math.log((1 - star(p0, d)) / star(p0, d)) - math.log((1 - d) / d)

    def rate(d: float) -> float:
        return h(star(p0, d)) - h(d)

    critical = brentq(lambda d: rate(d) + slope(d) * (p0 - d), 1e-9, p0 * (1 - 1e-9), xtol=1e-15)
    if budget <= critical:
        return rate(budget), critical
    return rate(critical) * (p0 - budget) / (p0 - critical), critical


def test_the_closed_form_of_the_tests_has_the_papers_numbers():
    assert wyner_ziv(0.25, 0.1)[1] == pytest.approx(0.0880207, abs=1e-7)
    known = {0.05: 0.3896535340, 0.1: 0.2850078694, 0.2: 0.0950026231}
    for budget, value in known.items():
        assert wyner_ziv(0.25, budget)[0] == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("case", rest_at_length(CASES, 1))
def test_doubly_symmetric_binary_sources_are_the_closed_forms(case):
    """Fifty (p₀, D), half on each side of D_c; with W = X the leakage is I(X; Z) + rate."""
    rng = np.random.default_rng(5)
    for p0 in np.linspace(0.03, 0.47, 25):
        critical = wyner_ziv(p0, 0.5 * p0)[1]
        below = critical * rng.uniform(0.05, 0.999)
        above = critical + (p0 - critical) * rng.uniform(0.001, 0.95)
        for budget in (below, above):
            rate = {
                None: math.log(2) - h(budget),
                "decoder": wyner_ziv(p0, budget)[0],
                "both": h(p0) - h(budget),
            }[case]
            leakage = rate if case is None else math.log(2) - h(p0) + rate
            for name, truth in (("rate", rate), ("leakage", leakage)):
                options = {"minimize": name, "side_information": case}
                problem = rde(symmetric(p0), cpv.hamming(2), budget, **options)
                solution = solved(problem)
                assert solution.gap <= 1e-7
                assert solution.lower - 1e-9 <= truth <= solution.upper + 1e-9


@pytest.mark.parametrize("flip", [0.1, 0.3])
def test_the_greatest_equivocation_of_a_noisy_bit_is_that_of_its_noise(flip):
    """Γ(D) = h(a ∗ D): H(W | X̂) ≤ h(P(W ≠ X̂)) ≤ h(a ∗ D), attained by X̂ = X ⊕ Bern(D)."""
    law = 0.5 * np.array([[1 - flip, flip], [flip, 1 - flip]])
    for budget in (0.02, 0.2, 0.4):
        problem = rde(cpv.DiscreteSource(law), cpv.hamming(2), budget, minimize="leakage")
        solution = solved(problem)
        assert float(solution.equivocation) == pytest.approx(h(star(flip, budget)), abs=1e-8)


def test_without_side_information_it_is_shannons_and_the_privacy_distortion_function():
    rng = np.random.default_rng(1)
    law, d = rng.dirichlet(np.ones(12)).reshape(3, 4), costs(rng, 4, 5)
    source = cpv.DiscreteSource(law)
    budget = between(lambda **o: rde(source, d, **o), 0.4)
    rate = solved(rde(source, d, budget))
    leakage = solved(rde(source, d, budget, minimize="leakage"))
    shannon = cpv.PrivacyDistortion(
        cpv.DiscreteSource.identical(source.p_x / source.p_x.sum()), d, budget=budget, units="nats"
    ).solve(accuracy="high")
    leaked = cpv.PrivacyDistortion(source, d, budget=budget, units="nats").solve(accuracy="high")
    assert rate.value == pytest.approx(shannon.value, abs=2e-9)
    assert leakage.value == pytest.approx(leaked.value, abs=2e-9)


def test_the_categorical_example_of_the_paper():
    """Γ(D) and R(D) at once (eqs. 13–18): p = (.4, .25, …), Hamming distortion."""
    p = (0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02)
    known = {0.05: 1.2730369840, 0.2: 0.7066760108, 0.5: 0.0819482950}
    for budget, rate in known.items():
        solution = solved(rde(cpv.DiscreteSource.identical(p), cpv.hamming(7), budget))
        assert solution.value == pytest.approx(rate, abs=2e-9)
        assert float(solution.equivocation) == pytest.approx(entropy(p) - rate, abs=2e-9)


# ---- special sources ---------------------------------------------------------------------


def test_an_independent_z_changes_nothing():
    """Z is then noise that U could hold: I(S; U | Z) is a mean of rates of releases p(x̂ | s)."""
    rng = np.random.default_rng(2)
    plain, d = rng.dirichlet(np.ones(12)).reshape(3, 4), costs(rng, 4, 3)
    source = cpv.DiscreteSource(plain[:, :, None] * rng.dirichlet(np.ones(2)))
    budget = between(lambda **o: rde(source, d, **o), 0.3)
    for encoder, goal in itertools.product(
        ENCODERS, ("rate", "leakage", {"rate": 1, "leakage": 2})
    ):
        values = [
            solved(rde(source, d, budget, minimize=goal, encoder=encoder, side_information=case))
            for case in CASES
        ]
        assert values[0].value == pytest.approx(values[1].value, abs=3e-9)
        assert values[0].value == pytest.approx(values[2].value, abs=3e-9)


def test_a_z_that_is_x_leaves_nothing_to_send():
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(6)).reshape(2, 3)
    source = cpv.DiscreteSource(joint[:, :, None] * np.eye(3))
    for case in ("decoder", "both"):
        solution = solved(rde(source, cpv.hamming(3), 0.0, side_information=case))
        assert solution.value == pytest.approx(0.0, abs=1e-12)
        known = information(source.law[..., None], "w", "z")
        assert float(solution.leakage) == pytest.approx(known, abs=1e-12)
        assert float(solution.distortion) == 0.0


def test_a_z_that_is_w_knows_all_that_there_is_to_leak():
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.ones(6)).reshape(2, 3)
    source = cpv.DiscreteSource(joint[:, :, None] * np.eye(2)[:, None, :])
    for case, goal in itertools.product(("decoder", "both"), ("rate", "leakage")):
        solution = solved(rde(source, cpv.hamming(3), 0.2, minimize=goal, side_information=case))
        assert float(solution.leakage) == pytest.approx(entropy(source.p_w), abs=1e-9)
        assert float(solution.equivocation) == pytest.approx(0.0, abs=1e-9)


def test_a_constant_z_is_no_z():
    rng = np.random.default_rng(6)
    joint, d = rng.dirichlet(np.ones(6)).reshape(2, 3), costs(rng, 3, 4)
    plain, constant = cpv.DiscreteSource(joint), cpv.DiscreteSource(joint[:, :, None])
    budget = between(lambda **o: rde(plain, d, **o), 0.5)
    for goal in ("rate", "leakage"):
        least = solved(rde(plain, d, budget, minimize=goal)).value
        for case in ("decoder", "both"):
            found = solved(rde(constant, d, budget, minimize=goal, side_information=case)).value
            assert found == pytest.approx(least, abs=2e-9)


@pytest.mark.parametrize("case", CASES)
def test_the_ends_of_the_curve(case):
    """At D_min only nearest moves are left; from D_max on nothing is sent, and Z alone leaks."""
    rng = np.random.default_rng(7)
    law, d = random_law(rng, 2, 3, 2), costs(rng, 3, 4)
    source, known = cpv.DiscreteSource(law), information(law[..., None], "w", "z")
    ends = rde(source, d, side_information=case)
    least, greatest = ends.least_distortion, ends.greatest_distortion
    masses = law.sum(axis=0)
    assert least == pytest.approx((masses.sum(axis=1) * d.min(axis=1)).sum(), abs=1e-15)
    by_z = np.einsum("xz,xy->zy", masses, d)
    guess = by_z.sum(axis=0).min() if case is None else by_z.min(axis=1).sum()
    assert greatest == pytest.approx(guess, abs=1e-15)
    first = solved(rde(source, d, least, side_information=case))
    assert first.prices["budget"] == -math.inf
    assert float(first.distortion) == pytest.approx(least, abs=1e-15)
    with pytest.raises(cpv.InfeasibleError, match="least distortion") as caught:
        rde(source, d, least * (1 - 1e-9), side_information=case).solve()
    assert caught.value.certificate.verify()
    for goal, value in (("rate", 0.0), ("leakage", known if case else 0.0)):
        problem = rde(source, d, greatest + 1e-12, minimize=goal, side_information=case)
        last = solved(problem)
        assert last.value == pytest.approx(value, abs=1e-12)
        assert last.prices["budget"] == 0.0


# ---- the law recomputed ------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(("layers", "units"), [(False, "nats"), (True, "bits")])
def test_terms_are_those_of_the_joint_law(case, encoder, layers, units):
    """|W|, |X|, |Z|, |X̂| all differ, letters without mass, a w that never meets some z."""
    rng = np.random.default_rng([11, layers])
    law = holed(rng)
    d = costs(rng, 4, 5, 2) if layers else costs(rng, 5, 2)
    source = cpv.DiscreteSource(law, w=list("abcd"), x=[10, 20, 30, 40, 50], z=["p", "q", "r"])
    options = {"side_information": case, "encoder": encoder, "units": units}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.3)
    for goal in ("rate", {"rate": 0.5, "leakage": 1.0, "distortion": 0.25}):
        problem = rde(source, d, budget, minimize=goal, **options)
        solution = solved(problem)
        played = Played(problem, solution)
        weights = goal if isinstance(goal, dict) else {goal: 1.0}
        value = sum(weight * played.terms[name] for name, weight in weights.items())
        assert value == pytest.approx(solution.value, abs=1e-9)
        assert played.terms["distortion"] <= budget + 1e-12
        axes = {"w": source.w, "x": source.x, "z": source.z}
        seen = encoder + ("z" if case == "both" else "")
        assert solution.channel.encoder == seen
        whole = list(itertools.product(*(axes[name] for name in seen)))
        assert solution.channel.inputs == (whole if len(seen) > 1 else [x for (x,) in whole])
        met = law.sum(axis=tuple(i for i, name in enumerate("wxz") if name not in seen)).ravel()
        assert np.array_equal(solution.channel.arbitrary, met == 0)
        assert solution.channel.p_input == pytest.approx(met, abs=1e-15)


def test_labels_of_z_may_be_anything_that_tells_them_apart():
    rng = np.random.default_rng(12)
    law, d = random_law(rng, 2, 3, 3), costs(rng, 3, 3)
    values = []
    for z in (None, [1, "1", 1.5], ["W", "S|1", "|"], [None, True, ("a", 2)], ["é", " ", "a|b"]):
        source = cpv.DiscreteSource(law, z=z)
        criteria = [cpv.TCloseness(0.9)]
        for case in ("decoder", "both"):
            problem = rde(source, d, 0.35, side_information=case, criteria=criteria)
            solution = solved(problem)
            assert Played(problem, solution).excess(criteria[0]) <= 1e-9
            values.append(solution.value)
    assert values[::2] == pytest.approx([values[0]] * 5, abs=1e-9)
    assert values[1::2] == pytest.approx([values[1]] * 5, abs=1e-9)


def test_an_order_of_the_axes_is_no_part_of_the_answer():
    """Permuted letters and outputs: the same values."""
    rng = np.random.default_rng(13)
    law, d = random_law(rng, 3, 4, 2), costs(rng, 3, 4, 3)
    a, b, c, e = (rng.permutation(n) for n in (3, 4, 2, 3))
    for case, encoder in itertools.product(CASES, ENCODERS):
        options = {"side_information": case, "encoder": encoder}
        options["minimize"] = {"rate": 1, "leakage": 1}
        one = solved(rde(cpv.DiscreteSource(law), d, 0.6, **options))
        moved = cpv.DiscreteSource(law[np.ix_(a, b, c)])
        other = solved(rde(moved, d[np.ix_(a, b, e)], 0.6, **options))
        assert one.value == pytest.approx(other.value, abs=4e-9)


@pytest.mark.parametrize("case", CASES)
def test_units_change_the_numbers_and_nothing_else(case):
    rng = np.random.default_rng(14)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2)), costs(rng, 3, 3)
    budget = between(lambda **o: rde(source, d, side_information=case, **o), 0.5)
    nats = solved(rde(source, d, budget, side_information=case))
    cap = float(nats.leakage) + 1.0
    bits = solved(
        rde(source, d, budget, side_information=case, units="bits", max_leakage=cap / math.log(2))
    )
    assert bits.value * math.log(2) == pytest.approx(nats.value, abs=3e-9)
    assert bits.prices["budget"] * math.log(2) == pytest.approx(nats.prices["budget"], rel=1e-4)


# ---- what is ordered, and what is not ----------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_more_knowledge_never_costs_more(seed):
    """The theorems, for the least value of each quantity at one budget.

    both ≤ decoder: (U, f) plays p(x̂ | s, z), and data processing of (U, Z) → (X̂, Z).
    decoder ≤ none, rate: X̂ – S – Z, so that I(S; X̂ | Z) = I(S; X̂) − I(Z; X̂).
    decoder leaks ≤ I(W; X̂₀, Z): the release that is best without Z may be played beside it.
    wx ≤ x: a channel p(u | x) is one of p(u | w, x), and its I(W, X; U | ·) = I(X; U | ·).
    leakage with Z ≥ I(W; Z): the user holds Z anyway.
    """
    rng = np.random.default_rng([15, seed])
    law, d = random_law(rng, 2, 3, 2, (0.4, 1.0)[seed % 2]), costs(rng, 3, 3)
    source, known = cpv.DiscreteSource(law), information(law[..., None], "w", "z")
    budget = between(lambda **o: rde(source, d, side_information="decoder", **o), 0.3)
    goals = {"rate": "rate", "leakage": "leakage", "sum": {"rate": 1.0, "leakage": 0.7}}
    least = {}
    for case, encoder, (name, goal) in itertools.product(CASES, ENCODERS, goals.items()):
        problem = rde(source, d, budget, minimize=goal, side_information=case, encoder=encoder)
        least[case, encoder, name] = solved(problem)
        if case is None and name == "leakage":
            played = Played(problem, least[case, encoder, name]).joint
            beside = information(played, "w", "uz")
            least["beside", encoder] = beside
    for encoder, name in itertools.product(ENCODERS, goals):
        assert least["both", encoder, name].lower <= least["decoder", encoder, name].upper
    for encoder in ENCODERS:
        assert least["decoder", encoder, "rate"].lower <= least[None, encoder, "rate"].upper
        assert least["decoder", encoder, "leakage"].lower <= least["beside", encoder] + 1e-9
        for case in ("decoder", "both"):
            assert least[case, encoder, "leakage"].upper >= known - 1e-12
    for case, name in itertools.product(CASES, goals):
        assert least[case, "wx", name].lower <= least[case, "x", name].upper


def test_without_z_an_encoder_of_w_leaks_no_more_than_one_of_a_user_with_z():
    """For leakage and encoder wx: Σ_z p(z | w, x) p(x̂ | w, x, z) is a release p(x̂ | w, x).

    I(W; X̂) ≤ I(W; X̂, Z) then; with encoder x the same where W – X – Z.
    """
    rng = np.random.default_rng(16)
    joint = 0.25 * rng.dirichlet(np.ones(9)).reshape(3, 3) + 0.25 * np.eye(3)
    chain = joint[..., None] * rng.dirichlet(np.ones(2), 3)
    other = 0.5 * chain + 0.5 * random_law(rng, 3, 3, 2, 0.5)
    for law, encoders in ((other, ["wx"]), (chain, ENCODERS)):
        for encoder in encoders:
            none, *with_z = (
                solved(
                    rde(
                        cpv.DiscreteSource(law), cpv.hamming(3), 0.1, minimize="leakage",
                        side_information=case, encoder=encoder,
                    )
                )
                for case in CASES
            )  # fmt: skip
            assert none.value > 1e-4
            for known in with_z:
                assert none.lower <= known.upper


def test_leakage_to_a_user_with_z_may_be_more_or_less_than_to_one_without():
    """Z = W knows all.  Z = W ⊕ X, none of W, is what the user asks for."""
    knows = np.zeros((2, 2, 2))
    knows[0, :, 0], knows[1, :, 1] = [0.4, 0.1], [0.1, 0.4]
    source = cpv.DiscreteSource(knows)
    values = [
        solved(rde(source, cpv.hamming(2), 0.1, minimize="leakage", side_information=case)).value
        for case in CASES
    ]
    assert min(values[1:]) > values[0] + 0.1
    helps, d = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    for w, n in np.ndindex(2, 2):
        helps[w, w ^ n, n] = (0.3 if w else 0.7) * (0.4 if n else 0.6)
        d[w, w ^ n, 1 - n] = 1.0
    values = [
        solved(
            rde(cpv.DiscreteSource(helps), d, 0.32, minimize="leakage", side_information=case)
        ).value
        for case in CASES
    ]
    assert values[1:] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert values[0] > 1e-3


# ---- a search over general U -------------------------------------------------------------


class Search:
    """p(u | s) with the best decoder f(u, z), s = x or (w, x); rate, leakage and distortion."""

    def __init__(self, law: np.ndarray, d: np.ndarray, encoder: str) -> None:
        w, x, z = law.shape
        d = np.broadcast_to(d, (w, x, d.shape[-1]))
        if encoder == "x":
            self.seen = law.transpose(1, 0, 2)  # p(s, w, z)
            self.risk = np.einsum("wxz,wxy->xzy", law, d)
        else:
            self.seen = np.zeros((w * x, w, z))
            for i, (a, b) in enumerate(np.ndindex(w, x)):
                self.seen[i, a] = law[a, b]
            self.risk = np.einsum("wxz,wxy->wxzy", law, d).reshape(w * x, z, -1)
        kept = self.seen.sum(axis=(1, 2)) > 0
        self.seen, self.risk = self.seen[kept], self.risk[kept]
        self.mass = self.seen.sum(axis=(1, 2))
        self.p_w, self.p_sz = self.seen.sum(axis=(0, 2)), self.seen.sum(axis=1)
        self.p_z = self.p_sz.sum(axis=0)

    def terms(self, k: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return (rate, leakage, distortion), and their gradients with respect to p(u | s)."""
        told = np.einsum("swz,su->wzu", self.seen, k)
        of_z = told.sum(axis=0)
        sent = self.p_sz[:, :, None] * k[:, None, :]

        def log(a, b):
            return np.log(np.where(a > 0, a, 1.0) / np.where(a > 0, b, 1.0))

        rate_log = log(sent * self.p_z[:, None], self.p_sz[:, :, None] * of_z)
        leak_log = log(told, self.p_w[:, None, None] * of_z)
        costs = np.einsum("szy,su->uzy", self.risk, k)
        best = costs.argmin(axis=2)
        cost = np.take_along_axis(
            self.risk[:, None], np.broadcast_to(best, (len(k), *best.shape))[..., None], axis=3
        )[..., 0].sum(axis=2)
        values = [(sent * rate_log).sum(), (told * leak_log).sum(), (cost * k).sum()]
        slopes = [
            (self.p_sz[:, :, None] * rate_log).sum(axis=1),
            np.einsum("swz,wzu->su", self.seen, leak_log),
            cost,
        ]
        return np.array(values), slopes

    def descend(self, k: np.ndarray, weights, steps: int) -> np.ndarray:
        step = 1 / (weights[0] + weights[1])  # the step of Blahut and Arimoto
        for _ in range(steps):
            _, slopes = self.terms(k)
            slope = sum(a * s for a, s in zip(weights, slopes, strict=True)) / self.mass[:, None]
            k = k * np.exp(-np.clip(step * (slope - slope.min(axis=1, keepdims=True)), 0, 30))
            k = np.maximum(k / k.sum(axis=1, keepdims=True), 1e-30)
        return k / k.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("seed", range(3))
def test_no_general_u_beats_the_strategies(encoder, seed):
    """Any p(u | s), any f: never below the certified end; and the search comes near it."""
    rng = np.random.default_rng([16, seed])
    law = random_law(rng, 2, 3, 2, 0.7)
    law[rng.integers(2), rng.integers(3), rng.integers(2)] = 0.0
    law /= law.sum()
    d = costs(rng, 3, 3) if seed % 2 else costs(rng, 2, 3, 3)
    source, search = cpv.DiscreteSource(law), Search(law, d, encoder)
    options = {"side_information": "decoder", "encoder": encoder}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.35)
    for goal in ({"rate": 1.0}, {"leakage": 1.0}, {"rate": 0.4, "leakage": 1.0}):
        solution = solved(rde(source, d, budget, minimize=goal, **options))
        price = solution.duals["budget"]
        weights = (goal.get("rate", 0.0), goal.get("leakage", 0.0), price)
        lowest = math.inf
        for letters in range(1, 7):
            tries = 10 if letters == 6 else 1
            starts = rng.dirichlet(np.full(letters, 0.5), size=(tries, len(search.mass)))
            for start in starts:
                for steps in (0, 100):
                    values, _ = search.terms(search.descend(start + 1e-9, weights, steps))
                    value = weights[0] * values[0] + weights[1] * values[1]
                    # weak duality: with its own multiplier the proof bounds every distortion
                    assert value + price * (values[2] - budget) >= solution.lower - 1e-10
                    if values[2] <= budget:
                        assert value >= solution.lower - 1e-10
                    lowest = min(lowest, value + price * (values[2] - budget))
        assert lowest <= solution.upper + 2e-2, "the search is no search"


# ---- caps --------------------------------------------------------------------------------


def said(error: cpv.InfeasibleError, name: str) -> float:
    found = re.search(
        re.escape(name) + r" would have to be at (?:least|most) ([0-9.]+)", str(error)
    )
    assert found, str(error)
    return float(found[1])


@pytest.mark.parametrize(
    ("case", "units", "most"),
    [("decoder", "nats", 1), ("decoder", "bits", 64), ("both", "nats", 1)],
)
def test_what_z_tells_cannot_be_capped(case, units, most):
    """I(W; U, Z) ≥ I(W; Z): less is proved infeasible, and the number to write is told."""
    rng = np.random.default_rng(17)
    law = random_law(rng, 3, 3, 2, 0.5)
    source, unit = cpv.DiscreteSource(law), math.log(2) if units == "bits" else 1.0
    known, whole = information(law[..., None], "w", "z") / unit, entropy(source.p_w) / unit
    for encoder in ENCODERS:

        def problem(encoder=encoder, **bounds):
            options = {"side_information": case, "encoder": encoder, "units": units}
            return rde(source, cpv.hamming(3), most_strategies=most, **options, **bounds)

        for tight in (1e-2, 1e-9):
            with pytest.raises(cpv.InfeasibleError) as caught:
                problem(max_leakage=known * (1 - tight)).solve()
            assert caught.value.certificate.verify()
            assert caught.value.conflict == ["max_leakage"]
            needed = said(caught.value, "max_leakage")
            assert known <= needed <= known * 1.002
            problem(max_leakage=needed).solve()
            with pytest.raises(cpv.InfeasibleError) as caught:
                problem(min_equivocation=(whole - known) * (1 + tight)).solve()
            assert caught.value.certificate.verify()
            allowed = said(caught.value, "min_equivocation")
            assert (whole - known) * 0.998 <= allowed <= whole - known
            problem(min_equivocation=allowed).solve()
        for loose in (1e-3, 1e-6):
            solution = problem(max_leakage=known * (1 + loose)).solve()
            assert solution.status == "certified"
            assert solution.value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.long
def test_conflicts_name_numbers_that_would_do():
    """Each suggestion, put in alone, is feasible; a little less is not."""
    rng = np.random.default_rng(18)
    cells = list(itertools.product("ab", "cd"))
    law = rng.dirichlet(np.full(32, 0.6)).reshape(4, 4, 2)
    source = cpv.DiscreteSource(law, w=cells, x=cells)
    parts = {"p": cpv.hamming(["a", "b"]), "q": cpv.hamming(["c", "d"])}
    measure = cpv.per_attribute(parts, cells)
    split = law.reshape(2, 2, 4, 2)
    tried = 0
    for case in ("decoder", "both"):
        known = information(law[..., None], "w", "z")
        first = information(split.sum(axis=1)[..., None], "w", "z")
        stated = [
            {"budget": 0.3, "max_leakage": known + 0.003},
            {"budget": {"p": 0.05, "q": 0.4}, "max_leakage": {"0": first + 0.003}},
            {"budget": {"p": 0.05, "p, q": 0.2}, "max_rate": 0.1},
            {"budget": 0.2, "min_equivocation": entropy(source.p_w) - known - 0.003},
        ]
        if case == "both":  # a bisection
            stated = [stated[1], {"budget": 0.2, "criteria": [cpv.TCloseness(0.2)]}]
        for bounds in stated:
            with pytest.raises(cpv.InfeasibleError) as caught:
                rde(source, measure, side_information=case, **bounds).solve()
            assert caught.value.certificate.verify()
            for name in caught.value.extremes:
                argument, _, key = name.removesuffix("]").partition("[")
                number = said(caught.value, name)
                for value, feasible in ((number, True), (number * 0.997, False)):
                    if "equivocation" in name and not feasible:
                        value = number * 1.003
                    other = dict(bounds)
                    if key:
                        other[argument] = {**bounds[argument], key: value}
                    elif name == "t_closeness":
                        other["criteria"] = [cpv.TCloseness(value)]
                    else:
                        other[name] = value
                    problem = rde(source, measure, side_information=case, **other)
                    status = problem.solve(certify=False).status
                    assert (status in ("certified", "loose")) == feasible, (name, value)
                    assert feasible or status == "infeasible"
                tried += 1
    assert tried >= 9


@pytest.mark.parametrize("case", CASES)
def test_equivocation_is_what_the_leakage_leaves(case):
    """R(D, E) by min_equivocation = E, and by max_leakage = H(W) − E."""
    rng = np.random.default_rng(19)
    source, d = cpv.DiscreteSource(random_law(rng, 3, 4, 2)), costs(rng, 4, 3)
    options = {"side_information": case}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.2)
    free = solved(rde(source, d, budget, **options))
    least = solved(rde(source, d, budget, minimize="leakage", **options))
    cap = 0.5 * (float(free.leakage) + least.value)
    assert float(free.leakage) - least.value > 1e-4
    whole = entropy(source.p_w)
    capped = solved(rde(source, d, budget, max_leakage=cap, **options))
    held = solved(rde(source, d, budget, min_equivocation=whole - cap, **options))
    assert capped.value == pytest.approx(held.value, abs=1e-7)
    assert capped.value > free.value + 1e-7
    assert float(held.equivocation) >= whole - cap - 1e-12
    assert held.prices["min_equivocation"] == pytest.approx(-capped.prices["max_leakage"], rel=1e-3)
    assert held.prices["min_equivocation"] > 0
    assert "H(W" in repr(rde(source, d, budget, min_equivocation=0.1, **options))


# ---- criteria for every letter and every z -----------------------------------------------


def known_to_z(counts: np.ndarray, case: str | None) -> list[np.ndarray]:
    """Return p(w | z) for every z that occurs; p(w) alone without side information."""
    tables = [counts[:, :, z].sum(axis=1) for z in range(counts.shape[2])] if case else []
    tables = tables or [counts.sum(axis=(1, 2))]
    return [t / t.sum() for t in tables if t.sum()]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_criteria_hold_for_every_letter_and_z(case, encoder):
    """Recounted per (u, z); each binds, and its price is the derivative."""
    rng = np.random.default_rng([21, encoder == "x"])
    counts = rng.multinomial(500, random_law(rng, 3, 4, 2, 0.8).ravel()).reshape(3, 4, 2)
    counts[:, :, :] += 1
    source, d = cpv.DiscreteSource.from_counts(counts), 1 - np.eye(4)
    laws, p_w = known_to_z(counts, case), counts.sum(axis=(1, 2)) / counts.sum()
    told = max((p * np.log(p / p_w)).sum() for p in laws)
    diverse = min(entropy(p) for p in laws)
    delta = max(np.abs(np.log(p / p_w)).max() for p in laws)
    fewest = counts.sum(axis=(0, 1)).min() if case else counts.sum()
    for criterion, step in (
        (cpv.TCloseness(told + 0.05), 1e-4),
        (cpv.LDiversity(math.exp(diverse - 0.05)), -1e-3),
        (cpv.DeltaDisclosure(delta + 0.2), 1e-4),
        (cpv.KAnonymity(0.6 * fewest), -1e-2),
    ):
        options = {"side_information": case, "encoder": encoder, "minimize": "distortion"}
        problem = rde(source, d, criteria=[criterion], **options)
        solution = problem.solve(accuracy="high")
        referee.check(solution, status=solution.status)
        assert solution.gap <= 1e-6
        played = agree(problem, solution)
        assert -1e-5 <= played.excess(criterion) <= 1e-9, criterion
        free = rde(source, d, **options).solve()
        assert solution.value > free.value + 1e-4
        price, value = solution.prices[criterion.name], float(criterion.value)
        loose, tight = (
            rde(source, d, criteria=[criterion.at(value + s)], **options).solve(accuracy="high")
            for s in (step, -step)
        )
        chords = sorted(
            [(loose.value - solution.value) / step, (solution.value - tight.value) / step]
        )
        room = 0.02 * abs(price) + 1e-5
        assert chords[0] - room <= price <= chords[1] + room
        assert price * step < 0


def test_a_criterion_holds_for_every_z_and_not_only_on_average():
    """One z where nothing may be said: the release is blind there, and free elsewhere."""
    law = np.zeros((2, 2, 2))
    law[:, :, 0] = 0.2 * np.eye(2) + 0.05
    law[:, :, 1] = 0.2 * np.eye(2) + 0.05
    source, t = cpv.DiscreteSource(law / law.sum()), cpv.TCloseness(0.02)
    both = rde(source, cpv.hamming(2), minimize="distortion", side_information="both", criteria=[t])
    none = rde(source, cpv.hamming(2), minimize="distortion", criteria=[t])
    assert solved(both).value == pytest.approx(solved(none).value, abs=1e-8)
    law[:, :, 1] = 0.25  # there x tells nothing of w, and may be told
    source = cpv.DiscreteSource(law / law.sum())
    both = rde(source, cpv.hamming(2), minimize="distortion", side_information="both", criteria=[t])
    free = solved(both)
    released = Played(both, free).released.sum(axis=0)  # p(x, z, x̂)
    assert released[0, 1, 1] + released[1, 1, 0] == pytest.approx(0.0, abs=1e-8)
    assert released[0, 0, 1] + released[1, 0, 0] > 0.1


def test_record_level_anonymity_counts_the_records_of_each_z():
    counts = np.array([[[30, 2], [10, 1]], [[5, 1], [25, 4]]])
    source = cpv.DiscreteSource.from_counts(counts)
    for case in ("decoder", "both"):
        with pytest.raises(cpv.InputError, match=r"9 exceeds the 8 records with Z = 1"):
            rde(source, cpv.hamming(2), side_information=case, criteria=[cpv.KAnonymity(9)])
        k = cpv.KAnonymity(8)
        problem = rde(source, cpv.hamming(2), 0.5, side_information=case, criteria=[k])
        assert problem.solve().status == "certified"
    assert rde(source, cpv.hamming(2), 0.5, criteria=[cpv.KAnonymity(40)]).solve().value >= 0


# ---- rules of post-randomisation where the user decodes ----------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_rules_hold_for_what_the_user_reads(case, encoder):
    """KeepProbability, ForbiddenMoves, PreserveMarginal, PreserveMean, Linear of (x, z, x̂)."""
    rng = np.random.default_rng(23)
    counts = rng.multinomial(300, random_law(rng, 2, 3, 2).ravel()).reshape(2, 3, 2)
    counts[0, 1, 0] = counts[1, 1, 0] = 0  # x = 1 never meets z = 0
    source, values = cpv.DiscreteSource.from_counts(counts, x=["a", "b", "c"]), [1.0, 2.5, -3.0]
    mask = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool)
    weights = rng.normal(size=(2, 3, 3))
    measure = cpv.hamming(["a", "b", "c"])
    options = {"side_information": case, "encoder": encoder}

    def play(*criteria, budget=None):
        problem = rde(source, measure, budget, criteria=criteria, **options)
        return Played(problem, solved(problem)), solved(problem)

    played, solution = play(cpv.KeepProbability(0.7))
    law = played.released.sum(axis=0)  # p(x, z, x̂)
    for x, z in np.ndindex(3, 2):
        if law[x, z].sum():
            assert law[x, z, x] >= 0.7 * law[x, z].sum() - 1e-12
    more = rde(source, measure, criteria=[cpv.KeepProbability(0.701)], **options).solve()
    less = rde(source, measure, criteria=[cpv.KeepProbability(0.699)], **options).solve()
    slope = (more.value - less.value) / 0.002
    assert solution.prices["keep_probability"] == pytest.approx(slope, rel=5e-3)
    assert slope > 0

    played, _ = play(cpv.ForbiddenMoves(mask), budget=0.4)
    assert (played.released.sum(axis=(0, 2))[mask] == 0.0).all()

    played, _ = play(cpv.PreserveMarginal(), budget=0.4)
    assert played.released.sum(axis=(0, 1, 2)) == pytest.approx(source.p_x, abs=1e-13)

    played, _ = play(cpv.PreserveMean(values), budget=0.4)
    mean = played.released.sum(axis=(0, 1, 2)) @ values
    assert mean == pytest.approx(source.p_x @ values, abs=1e-13)

    matrix = rng.random((3, 3))
    for a, sense in ((weights, "<="), (weights, "=="), (matrix, "==")):
        free, _ = play(budget=0.15)
        bound = free.expected(a) - 0.02
        played, solution = play(cpv.Linear(a, bound, sense=sense), budget=0.15)
        assert played.expected(a) == pytest.approx(bound, abs=1e-7)
        assert played.expected(a) <= bound + 1e-13
        ahead, behind = (
            rde(source, measure, 0.15, criteria=[cpv.Linear(a, bound + s, sense=sense)], **options)
            .solve(accuracy="high")
            .value
            for s in (1e-4, -1e-4)
        )
        slope = (ahead - behind) / 2e-4
        assert solution.prices["linear"] == pytest.approx(slope, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_privacy_of_the_whole_channel(case):
    """LocalPrivacy and MaximalLeakage bound what the encoder sends, u or x̂, as a function of s."""
    rng = np.random.default_rng(24)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2)), costs(rng, 3, 3)
    for criterion, step in ((cpv.LocalPrivacy(0.8), 1e-3), (cpv.MaximalLeakage(0.3), 1e-3)):

        def problem(c):
            options = {"minimize": "distortion", "side_information": case}
            return rde(source, d, criteria=[c], **options)

        solution = solved(problem(criterion))
        matrix = solution.channel.matrix
        if criterion.name == "local_privacy":
            assert (matrix.max(axis=0) <= math.exp(0.8) * matrix.min(axis=0) + 1e-12).all()
        else:
            assert math.log(matrix.max(axis=0).sum()) <= 0.3 + 1e-12
        ends = [problem(criterion.at(float(criterion.value) + s)).solve() for s in (step, -step)]
        slope = (ends[0].value - ends[1].value) / (2 * step)
        assert solution.prices[criterion.name] == pytest.approx(slope, rel=2e-2, abs=1e-4)


# ---- prices ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_prices_are_derivatives(case, encoder):
    """Of every number typed; the optimum is convex in a bound, so that chords bracket it."""
    rng = np.random.default_rng([25, encoder == "x"])
    law = 0.4 * random_law(rng, 3, 3, 2) + 0.1 * np.eye(3)[:, :, None]  # x tells much of w
    source, d = cpv.DiscreteSource(law), costs(rng, 3, 3)
    options = {"side_information": case, "encoder": encoder}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.25)
    low = solved(rde(source, d, budget, minimize="leakage", **options))
    far = solved(rde(source, d, budget, **options))
    leak = 0.5 * (low.value + float(far.leakage))
    rate = 0.5 * (far.value + float(low.rate))
    whole = entropy(source.p_w)
    stated = [
        ({"budget": budget, "minimize": "rate"}, "budget", -1),
        ({"budget": budget, "minimize": "leakage"}, "budget", -1),
        ({"budget": budget, "minimize": "rate", "max_leakage": leak}, "max_leakage", -1),
        ({"budget": budget, "minimize": "leakage", "max_rate": rate}, "max_rate", -1),
        ({"budget": budget, "min_equivocation": whole - leak}, "min_equivocation", 1),
        ({"minimize": "distortion", "max_rate": rate}, "max_rate", -1),
    ]
    for bounds, name, sign in stated:
        solution = solved(rde(source, d, **bounds, **options))
        step = 1e-4
        ahead, behind = (
            rde(source, d, **{**bounds, name: bounds[name] + s}, **options).solve(accuracy="high")
            for s in (step, -step)
        )
        price = solution.prices[name]
        assert (solution.value - behind.value) / step - 1e-3 <= price, (bounds, name)
        assert price <= (ahead.value - solution.value) / step + 1e-3, (bounds, name)
        assert sign * price > 1e-4
        assert sign * solution.duals[name] < 0 or name == "min_equivocation" or price < 0
        assert np.min(solution.duals[name]) >= 0
    goal = {"rate": 0.6, "leakage": 1.2, "distortion": 0.9}
    solution = solved(rde(source, d, minimize=goal, **options))
    for name, weight in goal.items():
        ahead, behind = (
            rde(source, d, minimize={**goal, name: weight + s}, **options).solve(accuracy="high")
            for s in (1e-3, -1e-3)
        )
        slope = (ahead.value - behind.value) / 2e-3
        assert solution.prices[f"minimize[{name}]"] == pytest.approx(slope, abs=2e-3)
        assert solution.prices[f"minimize[{name}]"] == pytest.approx(float(solution.terms[name]))


def test_a_mapping_of_one_weight_is_a_multiple():
    rng = np.random.default_rng(26)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2)), costs(rng, 3, 3)
    for name in ("rate", "leakage", "distortion"):
        options = {"side_information": "decoder", "max_rate": 0.1}
        once = solved(rde(source, d, minimize=name, **options))
        thrice = solved(rde(source, d, minimize={name: 3.0}, **options))
        assert thrice.value == pytest.approx(3 * once.value, abs=1e-8)


# ---- several attributes ------------------------------------------------------------------


def people(records: int = 500, seed: int = 31):
    rng = np.random.default_rng(seed)
    town = rng.choice(["A", "B"], records, p=[0.6, 0.4])
    ill = np.where(rng.random(records) < 0.6, np.where(town == "A", "flu", "no"), "hiv")
    rich = np.where(rng.random(records) < 0.7, town == "B", rng.random(records) < 0.5)
    age = rng.choice([20, 30], records) + 10 * (ill == "flu")
    return pd.DataFrame(
        {
            "id": np.arange(records),
            "age": age,
            "ill": ill,
            "sex": np.where(rng.random(records) < 0.8, np.where(rich, "m", "f"), "m"),
            "income": np.where(rich, "high", "low"),
            "town": town,
        }
    )


ASKED = {"sensitive": ["ill", "income"], "key": ["age", "sex"], "side": "town"}


@pytest.mark.parametrize("case", CASES)
def test_hidden_attributes_and_sets_of_them_have_bounds_of_their_own(case):
    """I(W_j; what the user holds) of single columns and of pairs, from the law written out."""
    source = cpv.DiscreteSource.from_table(people(), **ASKED)
    measure = cpv.per_attribute({"age": "absolute_error", "sex": "hamming"}, source)
    letters = {name: [w[i] for w in source.w] for i, name in enumerate(ASKED["sensitive"])}

    def leaks(played: Played, *names: str) -> float:
        groups = list(zip(*(letters[name] for name in names), strict=True))
        kinds = sorted(set(groups))
        merged = np.zeros((len(kinds), *played.joint.shape[1:]))
        for i, group in enumerate(groups):
            merged[kinds.index(group)] += played.joint[i]
        return information(merged, "w", "uz" if case else "u")

    options = {"side_information": case, "most_strategies": 300}
    free = rde(source, measure, {"age": 3.0, ("age", "sex"): 3.3}, **options)
    before = Played(free, solved(free))
    floor = rde(
        source, measure, minimize="leakage", max_leakage={"ill": 9.0, "income": 9.0}, **options
    )
    known = {name: float(solved(floor).terms[f"leakage of {name}"]) for name in ("ill", "income")}
    caps = {name: 0.7 * leaks(before, name) + 0.3 * known[name] for name in ("ill", "income")}
    caps |= {("ill", "income"): leaks(before, "ill", "income") - 1e-3}
    problem = rde(source, measure, {"age": 3.0, "age, sex": 3.3}, max_leakage=caps, **options)
    solution = solved(problem)
    played = Played(problem, solution)
    for names, cap in caps.items():
        names = names if isinstance(names, tuple) else tuple(names.split(", "))
        term = float(solution.terms[f"leakage of {', '.join(names)}"])
        assert term == pytest.approx(leaks(played, *names), abs=1e-9)
        assert term <= cap + 1e-12
    assert leaks(played, "ill", "income") == pytest.approx(played.terms["leakage"], abs=1e-9)
    for name in ("age", "sex"):
        part = measure.parts[name]
        assert float(solution.terms[f"distortion of {name}"]) == pytest.approx(
            played.expected(part), abs=1e-9
        )
    assert played.expected(measure.parts["age"]) <= 3.0 + 1e-12
    both = played.expected(measure.parts["age"] + measure.parts["sex"])
    assert both <= 3.3 + 1e-12
    assert {"budget[age]", "budget[age, sex]"} <= set(solution.prices)
    assert min(solution.prices[f"max_leakage[{key}]"] for key in ("ill", "income")) < -1e-4
    for key in ("ill", "income"):
        ahead, behind = (
            rde(
                source, measure, {"age": 3.0, "age, sex": 3.3},
                max_leakage={**caps, key: caps[key] + s}, **options,
            ).solve(accuracy="high").value
            for s in (1e-5, -1e-5)
        )  # fmt: skip
        price, room = solution.prices[f"max_leakage[{key}]"], 2e-3
        assert (solution.value - behind) / 1e-5 - room <= price
        assert price <= (ahead - solution.value) / 1e-5 + room
    with pytest.raises(cpv.InputError, match=r"no hidden attribute 'age'; use ill, income"):
        rde(source, measure, max_leakage={"age": 1.0}, **options).solve()
    with pytest.raises(cpv.InputError, match=r"distortion has no part 'ill'; use age, sex"):
        rde(source, measure, {"ill": 1.0}, **options)


def test_weights_of_records_and_several_columns_of_side_information():
    """The same law with weights as with copies, and Z of two columns as of their tuples."""
    frame = people(300)
    frame["n"] = np.where(frame["id"] % 3 == 0, 2, 1)
    copies = frame.loc[frame.index.repeat(frame["n"])]
    asked = {"sensitive": "ill", "key": "age", "side": ["town", "income"]}
    weighed = cpv.DiscreteSource.from_table(frame, weights="n", **asked)
    counted = cpv.DiscreteSource.from_table(copies, **asked)
    assert counted.z == weighed.z
    assert all(isinstance(z, tuple) for z in counted.z)
    one, other = (
        solved(rde(source, cpv.hamming(source.x), 0.3, side_information="both"))
        for source in (weighed, counted)
    )
    assert one.value == pytest.approx(other.value, abs=2e-9)
    k = [cpv.KAnonymity(2)]
    with pytest.raises(cpv.InputError, match="weighted records cannot be counted"):
        rde(weighed, cpv.hamming(weighed.x), 0.3, side_information="both", criteria=k)


# ---- proofs ------------------------------------------------------------------------------


def proofs(frame, **options):
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="sex", side="town")
    return rde(source, cpv.hamming(source.x), 0.2, **options).solve().certificate


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_proof_is_of_its_table_and_of_no_other(case, encoder, tmp_path):
    frame = people()
    document = proofs(frame, side_information=case, encoder=encoder).document()
    assert recount(document, frame) == []
    assert recount(document, frame.sample(frac=1.0, random_state=1)) == []
    permuted = frame.assign(town=frame["town"].sample(frac=1.0, random_state=2).to_numpy())
    assert recount(document, permuted)
    assert recount(document, frame.assign(town=frame["town"].replace({"A": "B", "B": "A"})))
    assert recount(document, frame.assign(ill=frame["ill"].replace({"no": "flu", "flu": "no"})))
    assert recount(document, frame.iloc[1:])
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document))
    assert verify.main([str(path)]) == 0
    document["claim"]["lower"] = float(document["claim"]["lower"]) + 1e-3
    document["sha256"] = verify.digest(document)
    path.write_text(json.dumps(document))
    assert verify.main([str(path)]) == 1


def test_the_cvxpy_problem_is_the_one_that_was_solved():
    problem = rde(symmetric(0.25), cpv.hamming(2), 0.1, side_information="decoder", max_leakage=0.6)
    solution = problem.solve()
    assert problem.problem.solve() == pytest.approx(solution.value, abs=1e-6)
    assert set(problem.constraints) == {"mass", "budget", "max_leakage"}
    assert "I(X; U \\mid Z)" in problem.latex
    assert "over p(u | x)" in repr(problem)
    assert "4 strategies Z → X̂" in repr(problem)


# ---- gaps --------------------------------------------------------------------------------

KINDS = ("rate", "leakage", "weights", "max_leakage", "max_rate", "equivocation")
KINDS += ("hidden", "t", "δ")


def random_problem(seed: int) -> cpv.RateDistortionEquivocation | None:
    """Return a problem of any kind; None where least and greatest distortion nearly agree."""
    rng = np.random.default_rng([20, seed])
    case, encoder, kind = CASES[seed % 3], ENCODERS[seed // 3 % 2], KINDS[seed // 6 % 9]
    w, x, z, y = (int(a) for a in rng.permutation([2, 3, 4, 3]))
    z = min(z, 2 if case == "decoder" and y ** min(z, 3) > 27 else 3)
    labels = list(itertools.product("ab", "cd")) if kind == "hidden" else None
    w = 4 if kind == "hidden" else w
    law = random_law(rng, w, x, z, rng.choice([0.3, 1.0, 3.0]))
    if rng.random() < 0.5 and kind != "hidden":
        law[rng.integers(w), :, rng.integers(z)] = 0.0
    if rng.random() < 0.5 and kind != "hidden":
        law[:, rng.integers(x), rng.integers(z)] = 0.0
    law /= law.sum()
    source = cpv.DiscreteSource(law, w=labels)
    d = rng.random((x, y)) if rng.random() < 0.6 else rng.random((w, x, y))

    def problem(*args, **bounds):
        return rde(source, d, *args, side_information=case, encoder=encoder, **bounds)

    ends = problem(minimize="distortion")
    low, high = ends.least_distortion, ends.greatest_distortion
    if high - low < 1e-3:
        return None
    budget = low + (high - low) * rng.uniform(0.05, 0.95)
    if kind in ("rate", "leakage"):
        return problem(budget, minimize=kind)
    if kind == "weights":
        goal = {"rate": rng.uniform(0.1, 2), "leakage": rng.uniform(0.1, 2)}
        goal["distortion"] = rng.uniform(1, 5)
        return problem(budget if rng.random() < 0.5 else None, minimize=goal)
    if kind in ("t", "δ"):
        p_w = law.sum(axis=(1, 2))
        met = [p / p.sum() for p in law.sum(axis=1).T if p.sum()] if case else [p_w]
        told = max(sum(a * math.log(a / b) for a, b in zip(p, p_w, strict=True) if a) for p in met)
        criterion = cpv.TCloseness(told + rng.uniform(0.02, 0.2))
        if kind == "δ" and all((p > 0).all() for p in met):
            most = max(np.abs(np.log(p / p_w)).max() for p in met)
            criterion = cpv.DeltaDisclosure(most + rng.uniform(0.05, 0.5))
        return problem(minimize="distortion", criteria=[criterion])
    leak, rate = problem(budget, minimize="leakage").solve(), problem(budget).solve()
    share = rng.uniform(0.05, 0.9)
    if kind == "max_rate":
        cap = rate.upper + share * max(float(leak.rate) - rate.upper, 1e-3)
        return problem(budget, minimize="leakage", max_rate=cap)
    cap = leak.upper + share * max(float(rate.leakage) - leak.upper, 1e-3)
    if kind == "max_leakage":
        return problem(budget, max_leakage=cap)
    if kind == "equivocation":
        return problem(budget, min_equivocation=entropy(source.p_w) - cap)
    parts = problem(budget, minimize="leakage", max_leakage={"0": 9.0}).solve()
    single = float(parts.terms["leakage of 0"]) + 0.01
    return problem(budget, max_leakage={"0": single, ("0", "1"): cap})


def gaps(seeds) -> list[float]:
    found = []
    for seed in seeds:
        problem = random_problem(seed)
        if problem is not None:
            solution = problem.solve(accuracy="high", certify="warn")
            referee.check(solution, status=solution.status)
            agree(problem, solution)
            found.append(solution.gap)
    return found


def test_random_problems_are_proved_to_a_millionth():
    """One of each kind, and every case with every encoder."""
    found = gaps(range(0, 54, 2))
    assert len(found) >= 24
    assert max(found) <= 1e-6


@pytest.mark.long
def test_nearly_all_random_problems_are_proved_to_a_ten_millionth():
    found = gaps(range(234))
    assert len(found) >= 200
    assert np.mean(np.array(found) <= 1e-7) >= 0.99


# ---- cut lists of strategies -------------------------------------------------------------


def cut_problem(seed: int, most: int):
    """Return a problem whose strategies are more than ``most``, bounds met by a full list."""
    rng = np.random.default_rng([27, seed])
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3, 0.6)), costs(rng, 3, 3)
    options = {"side_information": "decoder", "encoder": ENCODERS[seed % 2]}
    budget = between(lambda **o: rde(source, d, **options, **o), rng.uniform(0.1, 0.6))
    bounds = [
        {"minimize": "rate"},
        {"minimize": "leakage"},
        {"minimize": {"rate": 1.0, "leakage": 0.5}},
        {"minimize": "rate", "max_leakage": math.inf},
        {"minimize": "distortion", "criteria": [cpv.LocalPrivacy(0.2)]},
        {"minimize": "distortion", "criteria": [cpv.MaximalLeakage(0.05)]},
        {"minimize": "rate", "criteria": [cpv.PreserveMean([0.0, 1.0, 3.0])]},
        {"minimize": {"rate": 1.0, "distortion": 2.0}, "criteria": [cpv.TCloseness(1.5)]},
    ][seed % 8]
    if "max_leakage" in bounds:
        least = rde(source, d, budget, minimize="leakage", **options).solve().upper
        bounds["max_leakage"] = least + 0.01
    free = bounds["minimize"] == "distortion"
    return rde(source, d, None if free else budget, most_strategies=most, **options, **bounds)


@pytest.mark.parametrize("seed", rest_at_length(range(8), 4))
def test_a_cut_list_encloses_the_optimum_of_the_whole_list(seed, tmp_path):
    """Also under LocalPrivacy and MaximalLeakage: the lower end leaves them out, and is lower."""
    whole, cut = cut_problem(seed, 27), cut_problem(seed, 26)
    assert whole.alphabet.m == 27
    assert not whole.cut
    assert cut.cut
    exact = whole.solve(accuracy="high")
    referee.check(exact, status=exact.status)
    for most in (1, 26)[: 1 + seed % 2]:
        problem = cut_problem(seed, most)
        found = problem.solve(accuracy="high")
        assert found.lower <= exact.upper + 1e-12
        assert exact.lower <= found.upper + 1e-12
        near = 1e-2 if problem.program.auxiliaries else 1e-4
        assert found.upper == pytest.approx(exact.upper, abs=near)
        assert (found.status == "certified") == (found.gap <= 1e-9 * problem.program.scale)
        assert found.certificate.verify()
        referee.check(found, status=found.status)
        agree(problem, found)
        informed = problem.informed.solve(accuracy="high")
        referee.check(informed, status=informed.status)
        assert found.lower <= informed.upper
        for name, price in found.prices.items():
            if name in ("budget", "max_leakage"):
                assert price <= 1e-9
        path = found.certificate.to_json(tmp_path / "proof.json")
        assert verify.main([str(path)]) == 0
        claim = json.loads(path.read_text())["claim"]
        assert claim["status"] == "uncertified"  # of a release alone: nothing from below
        assert claim["lower"] == "-inf"
        assert float(claim["upper"]) == found.upper
        path = found.certificate.relaxation.to_json(tmp_path / "bound.json")
        assert verify.main([str(path)]) == 0
        assert json.loads(path.read_text())["claim"]["lower"] == found.lower
        again = problem.solve(accuracy="high")
        assert again.upper <= found.upper + 1e-7
        assert found.certificate.verify()


def test_a_cut_list_that_is_infeasible_proves_nothing(monkeypatch):
    """Its few strategies break the rules, others might not: the answer is no contradiction."""
    rng = np.random.default_rng(28)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 3)), cpv.hamming(3)
    options = {"side_information": "decoder", "most_strategies": 1}
    problem = rde(source, d, 0.3, **options)
    none = np.zeros((0, 3), dtype=np.int64)
    with monkeypatch.context() as patch:
        patch.setattr(strategies, "_coupled", lambda *_: none)
        patch.setattr(strategies, "_better", lambda *_: none)
        constant = np.zeros((1, 3), dtype=np.int64)
        few = problem._with(alphabet=problem.alphabet.with_strategies(constant))  # too far off
        assert solve(few.program).certificate.status == "infeasible"
        problem = few
        with pytest.raises(cpv.CertificationError, match="nothing finite is proved") as caught:
            problem.solve()
    assert caught.value.certificate.status == "uncertified"
    assert caught.value.certificate.verify()
    assert caught.value.certificate.upper == math.inf
    assert problem.solve().status in ("certified", "loose")
    least = rde(source, d, minimize="leakage", **options).solve().lower
    with pytest.raises(cpv.InfeasibleError, match="max_leakage") as caught:
        rde(source, d, max_leakage=0.9 * least, **options).solve()
    assert caught.value.certificate.verify()
    quiet = rde(source, d, max_leakage=0.9 * least, **options).solve(certify=False)
    assert quiet.status == "infeasible"
    assert quiet.channel is None
    with pytest.warns(UserWarning, match="max_leakage"):
        rde(source, d, max_leakage=0.9 * least, **options).solve(certify="warn")


@pytest.mark.parametrize("most", [1, 5, 256])
def test_generated_strategies_come_near_the_best(most):
    """Four letters and four z: 256 strategies, of which a few dozen suffice."""
    rng = np.random.default_rng(29)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 4, 4, 0.5)), costs(rng, 4, 4)
    options = {"side_information": "decoder", "most_strategies": most}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.3)
    problem = rde(source, d, budget, minimize={"rate": 1.0, "leakage": 1.0}, **options)
    solution = problem.solve()
    agree(problem, solution)
    referee.check(solution, status=solution.status)
    assert problem.cut == (most < 256)
    truth = rde(
        source, d, budget, minimize={"rate": 1.0, "leakage": 1.0}, side_information="decoder"
    ).solve()
    assert truth.lower - 1e-9 <= solution.upper <= truth.upper + 1e-4
    assert solution.lower <= truth.upper


# ---- bad input ---------------------------------------------------------------------------

SOURCE = cpv.DiscreteSource(np.full((2, 3, 2), 1 / 12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minimize": "risk"}, r"minimize: 'risk'; use rate, leakage, distortion, or a mapping"),
        ({"minimize": {"risk": 1}}, r"minimize: 'risk'; use rate"),
        ({"minimize": None}, r"minimize: None; use rate"),
        ({"minimize": {}}, r"minimize: \{\}; pass at least one weight > 0"),
        ({"minimize": {"rate": 0}}, r"minimize: .*; pass at least one weight > 0"),
        ({"minimize": {"rate": -1}}, r"minimize\[rate\]: -1 is out of range; pass a finite"),
        ({"minimize": {"rate": "a"}}, r"minimize\[rate\]: 'a' is no number; pass a number"),
        ({"budget": -0.1}, r"budget: -0.1 is out of range; pass a finite number ≥ 0"),
        ({"budget": math.nan}, r"budget: nan is out of range"),
        ({"budget": "x"}, r"budget: 'x' is no number; pass a number"),
        ({"budget": [0.1]}, r"budget: \[0.1\] is no number; pass a number"),
        ({"budget": {}}, r"budget: no budget; pass a number, or one per attribute"),
        ({"budget": {"a": 0.1}}, r"budget: the distortion has no part 'a'; make it with per_attr"),
        ({"max_leakage": -1}, r"max_leakage: -1 is out of range; pass a finite number ≥ 0"),
        ({"max_leakage": math.inf}, r"max_leakage: inf is out of range"),
        ({"max_leakage": {"0": -1}}, r"max_leakage\[0\]: -1 is out of range; pass a finite"),
        ({"max_leakage": {"a": 1}}, r"max_leakage: no hidden attribute 'a'; use 0"),
        ({"max_leakage": {}}, r"max_leakage: no max_leakage"),
        ({"max_rate": -1}, r"max_rate: -1 is out of range"),
        ({"max_rate": {"x": 1}}, r"max_rate: .* is no number; pass a number"),
        ({"min_equivocation": -1}, r"min_equivocation: -1 is out of range"),
        ({"min_equivocation": "much"}, r"min_equivocation: 'much' is no number"),
        ({"side_information": "user"}, r"side_information: 'user'; use None, \"decoder\""),
        ({"side_information": True}, r"side_information: True; use None"),
        ({"encoder": "xz"}, r"encoder: 'xz' is unknown; use \"x\" or \"wx\""),
        ({"units": "bit"}, r"units: 'bit' is no unit"),
        ({"criteria": [3]}, r"criteria\[0\]: 3 is no criterion; pass criteria"),
        ({"criteria": 3}, r"criteria: 3 is no list; pass a list of criteria"),
        ({"most_strategies": 0}, r"most_strategies: 0; pass a whole number of at least 1"),
        ({"most_strategies": 1.5}, r"most_strategies: 1.5; pass a whole number"),
        ({"criteria": [cpv.KeepProbability([0.1] * 3)], "side_information": "decoder"},
         r"p: one for each letter, where the user decodes with Z; pass one floor"),
        ({"criteria": [cpv.KAnonymity(2)], "side_information": "both"},
         r"source: no number of records behind it; make it with"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_where_it_enters(options, message):
    with pytest.raises(cpv.InputError, match=message):
        rde(SOURCE, cpv.hamming(3), **options).solve()


def test_sources_and_distortions_that_do_not_fit():
    with pytest.raises(cpv.InputError, match=r"source: no side information Z; make it of a law"):
        rde(cpv.DiscreteSource(np.eye(2) / 2), cpv.hamming(2), side_information="both")
    with pytest.raises(cpv.InputError, match=r"source: a ndarray; pass a DiscreteSource"):
        rde(np.eye(2) / 2, cpv.hamming(2))
    with pytest.raises(cpv.InputError, match=r"distortion: shape \(2, 2\) beside a source"):
        rde(SOURCE, cpv.hamming(2), side_information="decoder")
    problem = rde(SOURCE, cpv.hamming(3), 0.1, side_information="decoder")
    with pytest.raises(cpv.InputError, match=r"problem: its Q is no law of \(x, x̂\)"):
        cpv.Linear.from_cvxpy(None, problem)
    with pytest.raises(cpv.InputError, match=r"certify: 'maybe'"):
        rde(SOURCE, cpv.hamming(3), 0.1).solve(certify="maybe")


# ---- written down ------------------------------------------------------------------------

TOML = """
formulation = "RateDistortionEquivocation"
side_information = "{case}"
encoder = "{encoder}"
minimize = {{ rate = 1.0, leakage = 0.5 }}
budget = {{ age = 4.0, "age, sex" = 4.5 }}
max_leakage = {{ ill = 0.5, "ill, income" = 0.9 }}
units = "nats"
most_strategies = {most}

[source]
table = "t.csv"
sensitive = ["ill", "income"]
key = ["age", "sex"]
side = "town"

[distortion]
attributes = {{ age = "absolute_error", sex = "hamming" }}

[[criteria]]
kind = "LeakageCap"
b = 0.95

[solve]
accuracy = "high"

[output]
certificate = "proof.json"
channel = "channel.json"
"""


@pytest.mark.parametrize(
    ("case", "encoder", "most"), [("decoder", "x", 300), ("decoder", "wx", 20), ("both", "wx", 20)]
)
def test_a_problem_written_down_is_solved_and_its_proof_verified(
    case, encoder, most, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = people()
    frame.to_csv("t.csv", index=False)
    (tmp_path / "p.toml").write_text(TOML.format(case=case, encoder=encoder, most=most))
    generated = (case, most) == ("decoder", 20)  # its lower end is that of an informed encoder
    text = say("solve", "p.toml", code=5 if generated else 0).out
    assert "RateDistortionEquivocation: " in text
    assert "leakage of ill, income" in text
    source = cpv.DiscreteSource.from_table(frame, **ASKED)
    measure = cpv.per_attribute({"age": "absolute_error", "sex": "hamming"}, source)
    problem = rde(
        source,
        measure,
        {"age": 4.0, ("age", "sex"): 4.5},
        minimize={"rate": 1.0, "leakage": 0.5},
        max_leakage={"ill": 0.5, ("ill", "income"): 0.9},
        side_information=case,
        encoder=encoder,
        most_strategies=most,
        criteria=[cpv.LeakageCap(0.95)],
    )
    solution = problem.solve(accuracy="high")
    referee.check(solution, status=solution.status)
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert float(proof["claim"]["upper"]) == solution.upper
    kept = cpv.Channel.load("channel.json")
    assert kept.encoder == solution.channel.encoder
    assert np.array_equal(kept.matrix, solution.channel.matrix)
    assert (kept.decoder is None) == (case == "both")
    if kept.decoder is not None:
        assert kept.decoder.table == solution.channel.decoder.table
    say("verify", "proof.json", "--table", "t.csv")
    frame.assign(town=np.roll(frame["town"], 1)).to_csv("u.csv", index=False)
    say("verify", "proof.json", "--table", "u.csv", code=1)
