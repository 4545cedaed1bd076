"""Rate, distortion and equivocation: closed forms, orders, and a search over general U."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import cvxprivacy as cpv
from tests import referee
from tests.formulations.regions import (
    CASES,
    ENCODERS,
    Played,
    agree,
    between,
    costs,
    entropy,
    h,
    holed,
    information,
    random_law,
    rde,
    solved,
    star,
)
from tests.instances import instance
from tests.lengths import rest_at_length, some_at_length


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
    expected = {0.05: 0.3896535340, 0.1: 0.2850078694, 0.2: 0.0950026231}
    for budget, value in expected.items():
        assert wyner_ziv(0.25, budget)[0] == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("case", rest_at_length(CASES, 1))
def test_doubly_symmetric_binary_sources_are_the_closed_forms(case):
    """Eight (p₀, D), half on each side of D_c; with W = X the leakage is I(X; Z) + rate."""
    rng = np.random.default_rng(5)
    for p0 in np.linspace(0.03, 0.47, 4):
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
        solution = solved(problem, by_hand=True)
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


@pytest.mark.long
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
        expected = information(source.law[..., None], "w", "z")
        assert float(solution.leakage) == pytest.approx(expected, abs=1e-12)
        assert float(solution.distortion) == 0.0


def test_a_z_that_is_w_knows_all_that_there_is_to_leak():
    rng = np.random.default_rng(4)
    joint = rng.dirichlet(np.ones(6)).reshape(2, 3)
    source = cpv.DiscreteSource(joint[:, :, None] * np.eye(2)[:, None, :])
    for case, goal in itertools.product(("decoder", "both"), ("rate", "leakage")):
        solution = solved(rde(source, cpv.hamming(3), 0.2, minimize=goal, side_information=case))
        assert float(solution.leakage) == pytest.approx(entropy(source.p_w), abs=1e-9)
        assert float(solution.equivocation) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("case", some_at_length(CASES, 1))
def test_the_ends_of_the_curve(case):
    """At D_min only nearest moves are left; from D_max on nothing is sent, and Z alone leaks."""
    rng = np.random.default_rng(7)
    law, d = random_law(rng, 2, 3, 2), costs(rng, 3, 4)
    source, expected = cpv.DiscreteSource(law), information(law[..., None], "w", "z")
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
    for goal, value in (("rate", 0.0), ("leakage", expected if case else 0.0)):
        problem = rde(source, d, greatest + 1e-12, minimize=goal, side_information=case)
        last = solved(problem)
        assert last.value == pytest.approx(value, abs=1e-12)
        assert last.prices["budget"] == 0.0


@pytest.mark.parametrize("case", CASES)
def test_nothing_can_be_told_but_what_x_and_z_tell(case):
    """The ends of the equivocation (Remark 1): all of X at D = 0, and Z alone beyond D_max."""
    law = random_law(np.random.default_rng(0), 2, 3, 2)
    source = cpv.DiscreteSource(law)
    most = information(law[..., None], "w", "xz" if case else "x")
    least = information(law[..., None], "w", "z") if case else 0.0
    for budget, learned in ((0, most), (1, least)):
        problem = rde(source, cpv.hamming(3), budget, minimize="leakage", side_information=case)
        assert solved(problem).value == pytest.approx(learned, abs=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(("layers", "units"), rest_at_length([(False, "nats"), (True, "bits")], 1))
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
        recorded = encoder + ("z" if case == "both" else "")
        assert solution.channel.encoder == recorded
        values = list(itertools.product(*(axes[name] for name in recorded)))
        assert solution.channel.inputs == (values if len(recorded) > 1 else [x for (x,) in values])
        met = law.sum(axis=tuple(i for i, name in enumerate("wxz") if name not in recorded)).ravel()
        assert np.array_equal(solution.channel.arbitrary, met == 0)
        assert solution.channel.p_input == pytest.approx(met, abs=1e-15)


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_at_length(range(3), 1))
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
    source, expected = cpv.DiscreteSource(law), information(law[..., None], "w", "z")
    budget = between(lambda **o: rde(source, d, side_information="decoder", **o), 0.3)
    goals = {"rate": "rate", "leakage": "leakage", "sum": {"rate": 1.0, "leakage": 0.7}}
    least = {}
    for case, encoder, (name, goal) in itertools.product(CASES, ENCODERS, goals.items()):
        problem = rde(source, d, budget, minimize=goal, side_information=case, encoder=encoder)
        least[case, encoder, name] = solved(problem, by_hand=True)
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
            assert least[case, encoder, "leakage"].upper >= expected - 1e-12
    for case, name in itertools.product(CASES, goals):
        assert least[case, "wx", name].lower <= least[case, "x", name].upper


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


class Search:
    """p(u | s) with the best decoder f(u, z), s = x or (w, x); rate, leakage and distortion."""

    def __init__(self, law: np.ndarray, d: np.ndarray, encoder: str) -> None:
        w, x, z = law.shape
        d = np.broadcast_to(d, (w, x, d.shape[-1]))
        if encoder == "x":
            self.visited = law.transpose(1, 0, 2)  # p(s, w, z)
            self.risk = np.einsum("wxz,wxy->xzy", law, d)
        else:
            self.visited = np.zeros((w * x, w, z))
            for i, (a, b) in enumerate(np.ndindex(w, x)):
                self.visited[i, a] = law[a, b]
            self.risk = np.einsum("wxz,wxy->wxzy", law, d).reshape(w * x, z, -1)
        kept = self.visited.sum(axis=(1, 2)) > 0
        self.visited, self.risk = self.visited[kept], self.risk[kept]
        self.mass = self.visited.sum(axis=(1, 2))
        self.p_w, self.p_sz = self.visited.sum(axis=(0, 2)), self.visited.sum(axis=1)
        self.p_z = self.p_sz.sum(axis=0)

    def terms(self, k: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return (rate, leakage, distortion), and their gradients with respect to p(u | s)."""
        learned = np.einsum("swz,su->wzu", self.visited, k)
        of_z = learned.sum(axis=0)
        sent = self.p_sz[:, :, None] * k[:, None, :]

        def log(a, b):
            return np.log(np.where(a > 0, a, 1.0) / np.where(a > 0, b, 1.0))

        rate_log = log(sent * self.p_z[:, None], self.p_sz[:, :, None] * of_z)
        leak_log = log(learned, self.p_w[:, None, None] * of_z)
        costs = np.einsum("szy,su->uzy", self.risk, k)
        best = costs.argmin(axis=2)
        cost = np.take_along_axis(
            self.risk[:, None], np.broadcast_to(best, (len(k), *best.shape))[..., None], axis=3
        )[..., 0].sum(axis=2)
        values = [(sent * rate_log).sum(), (learned * leak_log).sum(), (cost * k).sum()]
        slopes = [
            (self.p_sz[:, :, None] * rate_log).sum(axis=1),
            np.einsum("swz,wzu->su", self.visited, leak_log),
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


@pytest.mark.long
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("seed", rest_at_length(range(3), 1))
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


@pytest.mark.parametrize(
    ("count", "width"),
    [(12, 1e-6), pytest.param(120, 1e-7, marks=pytest.mark.long)],
    ids=["a millionth", "a ten-millionth"],
)
@pytest.mark.parametrize("name", ["region", "region_by_distortion"])
def test_nearly_all_random_problems_are_proved(name, count, width):
    """What is said of them is the joint law's; what cannot be met is proved infeasible."""
    rng, gaps = np.random.default_rng([20, count]), []
    for _ in range(count):
        problem = instance(rng, name)[1]
        solution = problem.solve(accuracy="high", certify=False)
        if solution.status == "infeasible":
            assert solution.certificate.verify()
            continue
        referee.check(solution, status=solution.status)
        agree(problem, solution)
        gaps.append(solution.gap / problem.program.scale)
    assert len(gaps) >= count / 2
    assert np.mean(np.array(gaps) <= width) >= 0.99
