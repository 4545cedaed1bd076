"""What is stated is what is proved, printed and priced; what cannot be is refused."""

from __future__ import annotations

import copy
import math
import pickle

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from tests.instances import SOURCE, D
from tests.lengths import some_at_length
from tests.referee import by_hand
from tests.refusals import refused

PLAIN = cpv.PrivacyDistortion(SOURCE, D, budget=0.4)
MOMENTS = cpv.GaussianSource([[2, 1, 0.5], [1, 2, 0.25], [0.5, 0.25, 1]], sensitive=[0], key=[1, 2])
QUADRATIC = cpv.QuadraticGaussian(MOMENTS, 0.8)


# ---- names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (cpv.MinimumDistortion(SOURCE, D, [cpv.TCloseness(0.08)]), "t_closeness"),
        (cpv.MinimumDistortion(SOURCE, D, [cpv.DeltaDisclosure(0.5)]), "delta_disclosure.above[0]"),
        (cpv.PrivacyDistortion(SOURCE, D, price=2.5), "price"),
        (PLAIN, "budget"),
        (PLAIN, "mass"),
        (PLAIN, "floor"),
    ],
)
def test_a_name_that_is_taken_is_refused(problem, name):
    """Once the new constraint took the place of the old one, and the proof was of that."""
    with pytest.raises(cpv.InputError, match="already") as caught:
        problem.with_constraint(name, problem.rate <= 10)
    assert caught.value.argument == "name"


@pytest.mark.parametrize("name", [3, "", None])
def test_what_is_no_name_is_refused(name):
    refused(lambda: PLAIN.with_constraint(name, PLAIN.rate <= 10), "name", "no name", value=name)


def test_what_is_no_constraint_of_one_number_is_refused():
    each = PLAIN.rate.each()
    refused(lambda: PLAIN.with_constraint("mine", each <= [0.1] * 4), "constraint", "more than one")
    missing = lambda: PLAIN.with_constraint("mine", PLAIN.rate)  # noqa: E731
    assert isinstance(refused(missing, "constraint", "a Expression").value, type(PLAIN.rate))


@pytest.mark.parametrize("name", ["floor of rate", "fixed risk", "cap on equivocation"])
def test_information_bounded_from_below_is_refused_by_name(name):
    """The privacy funnel: no proof by duality knows of it, and the refusal says why."""
    stated = {
        "floor of rate": PLAIN.rate >= 0.1,
        "fixed risk": PLAIN.risk == 0.1,
        "cap on equivocation": PLAIN.equivocation <= 1,
    }[name]
    refused(lambda: PLAIN.with_constraint(name, stated), name, "bounded from below")


def test_quantities_of_another_law_are_refused():
    other = cpv.PrivacyDistortion(
        cpv.DiscreteSource.from_counts(SOURCE.law[[1, 0, 2]]), D, budget=0.4
    )
    with pytest.raises(cpv.InputError, match="another law"):
        PLAIN.with_constraint("other", other.risk <= 0.05)
    with pytest.raises(TypeError, match="different laws"):
        _ = PLAIN.risk + other.risk
    assert PLAIN.at(budget=0.5).with_constraint("same", PLAIN.risk <= 0.5).solve()


# ---- other numbers -----------------------------------------------------------------------


@pytest.mark.long
def test_added_constraints_move():
    cap = PLAIN.with_constraint("limit", PLAIN.rate <= 1)
    assert cap.at(limit=0.9).solve().prices["limit"] < 0
    two = PLAIN.with_constraint("mine", PLAIN.variables["Q"][0, :2] <= 0.3)
    with pytest.raises(cpv.InputError, match="no single number"):
        two.at(mine=0.1)
    for name, value in (("limit", math.nan), ("limit", "many")):
        with pytest.raises(cpv.InputError):
            cap.at(**{name: value})
    kept = two.at(budget=0.5)
    assert set(kept.program.constraints) == {"budget", "mine.0", "mine.1"}
    for twin in (pickle.loads(pickle.dumps(cap)), copy.deepcopy(cap)):
        assert (str(twin), twin.solve().value) == (str(cap), cap.solve().value)
    curve = cpv.frontier(PLAIN.with_constraint("div", cpv.LDiversity(1.2)), "div", tol=0.05)
    low, high = curve.solved_range
    assert 1 < low < high < 3


def test_a_constraint_from_below_keeps_its_side():
    Q = PLAIN.variables["Q"]
    ruled = PLAIN.with_constraint("mine", Q[0, 3] >= 0.05)
    assert "mine ≥ 0.05" in str(ruled)
    solution = ruled.solve(accuracy="high")
    high, low = (ruled.at(mine=0.05 + s).solve().value for s in (1e-4, -1e-4))
    assert solution.prices["mine"] == pytest.approx((high - low) / 2e-4, rel=1e-2)
    assert solution.prices["mine"] > 0
    assert Q[0, 3].value is None or Q[0, 3].value >= 0


@pytest.mark.long
def test_sigma_is_bounded_from_below_too():
    """Once a row was divided by a negative trace, and said the opposite."""
    sigma = QUADRATIC.variables["Sigma"]
    for bound in (0.3, 0.45):
        ruled = QUADRATIC.with_constraint("least", sigma[1, 1] >= bound)
        solution = ruled.solve()
        assert solution.status == "certified"
        assert solution.error_covariance[1, 1] >= bound - 1e-12
        by_hand(ruled)
        assert ruled.variables["Sigma"].value[1, 1] >= bound - 1e-6
    floor = QUADRATIC.with_constraint("fl", QUADRATIC.distortion >= 0.5)
    assert (floor.at(fl=0.6).program.constraints["fl"].expression.cost == -np.eye(2)).all()
    assert floor.solve().status == "certified"
    capped = QUADRATIC.with_constraint("cap", QUADRATIC.rate <= 2.0).solve(accuracy="high")
    assert capped.prices["cap"] < 0
    with pytest.raises(cpv.InputError, match="inequality"):
        QUADRATIC.with_constraint("z", QUADRATIC.distortion == 0.5)


# ---- what is proved ----------------------------------------------------------------------


def test_a_radius_is_kept():
    """H(W) is no float: a bound by it is no float either."""
    ruled = PLAIN.with_constraint("r", PLAIN.risk <= PLAIN.equivocation)
    assert 0 < ruled.program.constraints["r"].radius < 1e-14


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (lambda p: p.distortion + 0.3 <= 0.9, "E d(X, X̂) + 0.3 ≤ 0.9"),
        (lambda p: p.risk <= p.equivocation, "I(W; X̂) ≤ H(W | X̂)"),
        (lambda p: 2 * (p.risk + p.rate) <= 3, "2 (I(W; X̂) + I(X; X̂)) ≤ 3"),
        (lambda p: p.rate - p.equivocation <= 1, "I(X; X̂) - H(W | X̂) ≤ 1"),
        (lambda p: p.equivocation >= 0.1, "H(W | X̂) ≥ 0.1"),
        (lambda p: p.risk.each() <= 0.1, "I(W; X̂) ≤ 0.1 for each x̂"),
    ],
)
def test_what_is_printed_is_the_constraint(state, text):
    ruled = PLAIN.with_constraint("mine", state(PLAIN))
    assert text in str(ruled.solve())


def test_whole_quantities_and_those_of_each_letter_do_not_mix():
    class Mixed(cpv.Criterion):
        name = "mixed"
        p = cpv.Parameter()

        def constraints(self, release):
            return {"": release.risk <= self.p * release.mass().each()}

    with pytest.raises(TypeError, match="each"):
        cpv.MinimumDistortion(SOURCE, D, [Mixed(0.1)])


def test_a_forbidding_cost_does_not_hide_the_others():
    d = D.copy()
    d[0, 3] = 1e9
    problem = cpv.PrivacyDistortion(SOURCE, d, budget=0.4)
    assert problem.problem.solve() == pytest.approx(problem.solve().value, rel=1e-5)


def test_nothing_is_left_of_a_solve_that_failed():
    problem = cpv.PrivacyDistortion(SOURCE, D[:, 1:], budget=0.7)
    problem.problem.solve()
    assert problem.constraints["budget"].dual_value is not None
    problem.parameters["budget"].value = 0.0
    assert problem.problem.solve() == math.inf
    assert problem.problem.status == "infeasible"
    assert problem.constraints["budget"].dual_value is None
    gaussian = QUADRATIC.with_constraint("least", QUADRATIC.distortion >= 0.5)
    gaussian.problem.solve()
    gaussian.parameters["budget"].value = 0.1
    gaussian.problem.solve()
    assert gaussian.variables["Sigma"].value is None


# ---- what leaves no trace ----------------------------------------------------------------


def rule(state):
    class Own(cpv.Criterion):
        name = "own"
        p = cpv.Parameter()

        def constraints(self, release):
            return {"": release.distortion <= state(self.p)}

    return Own


@pytest.mark.parametrize(
    "state",
    [
        lambda p: 10 * p + math.sqrt(p),
        lambda p: 0.1 * (p + 1).exp(),
        lambda p: (p + 1).log(),
        lambda p: 1 / (p * p),
        lambda p: p / p,
        lambda p: np.sqrt(p),
    ],
)
def test_what_is_not_traced_is_refused(state):
    with pytest.raises(TypeError):
        cpv.PrivacyDistortion(SOURCE, D, criteria=[rule(state)(0.01)])


@pytest.mark.parametrize(
    "state",
    some_at_length(
        [
            lambda p: 0.3 + p,
            lambda p: 0.5 - p,
            lambda p: p.exp() - 0.6,
            lambda p: 1 + (2 * p).log() / 5,
        ],
        2,
    ),
)
def test_what_is_traced_has_its_price(state):
    problem = cpv.PrivacyDistortion(SOURCE, D, criteria=[rule(state)(0.1)])
    solution = problem.solve(accuracy="high")
    high, low = (problem.at(own=0.1 + s).solve(accuracy="high").value for s in (1e-5, -1e-5))
    assert solution.prices["own"] == pytest.approx((high - low) / 2e-5, rel=1e-4)
    by_hand(problem)


class Weighed(cpv.CovarianceProblem):
    """min I(X; X̂) + a I(W; X̂)  s.t.  c E ‖X − X̂‖² ≤ D."""

    budget, a, c = cpv.Parameter(), cpv.Parameter(), cpv.Parameter()

    def __init__(self, source, budget, a, c):
        super().__init__(source)
        self.budget, self.a, self.c = budget, a, c

    def formulation(self):
        return self.rate + self.a * self.risk, {"budget": self.c * self.distortion <= self.budget}


def test_a_covariance_formulation_of_ones_own_has_its_prices():
    problem = Weighed(MOMENTS, 0.8, 0.7, 1.1)
    solution = problem.solve(accuracy="high")
    assert set(solution.prices) == {"budget", "a", "c"}
    for name, typed in (("budget", 0.8), ("a", 0.7), ("c", 1.1)):
        high, low = (
            problem.at(**{name: typed + s}).solve(accuracy="high").value for s in (1e-4, -1e-4)
        )
        assert solution.prices[name] == pytest.approx((high - low) / 2e-4, rel=1e-4)
    by_hand(problem)


def test_criteria_of_two_numbers():
    class Both(cpv.Criterion):
        name = "both"
        a, b = cpv.Parameter(), cpv.Parameter()

        def constraints(self, release):
            return {"a": release.distortion <= self.a, "b": release.rate <= self.b}

    problem = cpv.PrivacyDistortion(SOURCE, D, criteria=[Both(0.4, b=1.0)])
    assert "Both(a=0.4, b=1)" in str(problem)
    assert set(problem.solve().prices) == {"both.a", "both.b"}
    for numbers in ((0.4,), (0.4, 1.0, 2.0)):
        refused(lambda numbers=numbers: Both(*numbers), "Both", "pass a, b")
    refused(lambda: problem.at(both=0.4), "both", "no single number")


def test_a_bound_that_is_a_function_is_explained_in_what_was_typed():
    class Doubled(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self):
            return self.risk, {"budget": self.distortion <= 2 * self.budget - 0.5}

    with pytest.raises(cpv.InfeasibleError, match=r"budget 0\.2 cannot hold.*at least 0\.25"):
        Doubled(SOURCE, D, budget=0.2).solve()
    with pytest.raises(cpv.InfeasibleError, match="far"):
        PLAIN.with_constraint("far", PLAIN.distortion >= 50).solve()


def test_a_subclass_sets_its_own_numbers():
    class Sub(cpv.PrivacyDistortion):
        weight = cpv.Parameter(optional=True)

        def __init__(self, source, distortion, budget, weight):
            self.weight = weight
            super().__init__(source, distortion, budget=budget)

        def formulation(self):
            objective, constraints = super().formulation()
            return objective + self.weight * self.rate, constraints

    solution = Sub(SOURCE, D, 0.4, 0.5).solve()
    assert set(solution.prices) == {"budget", "weight"}
    assert solution.prices["weight"] > 0


def test_cvxpy_is_asked_for_what_it_computes():
    Q = PLAIN.variables["Q"]
    ruled = PLAIN.with_constraint("mine", 0.25 * cp.sum(Q[0]) + 0.5 * Q[1, 1] - 0.125 <= 0.25)
    row = ruled.program.constraints["mine"]
    assert row.bound == 0.375
    assert row.expression.cost[0].tolist() == [0.25] * 4
    assert row.expression.cost[1].tolist() == [0, 0.5, 0, 0]


class Odds(cpv.Criterion):
    """p(mild | x̂) ≤ r p(none | x̂) for every x̂."""

    name = "odds"
    r = cpv.Parameter(loosens="up", loosest=50.0)

    def constraints(self, release):
        return {"up": release.mass(1).each() <= self.r * release.mass(0).each()}


class Spared(cpv.ChannelProblem):
    """min I(W; X̂) + E A  s.t.  Pr(W = none) + Pr(W = severe) ≥ c."""

    c = cpv.Parameter()

    def formulation(self):
        of = self.alphabet
        ours = of.total("late", [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
        return self.risk + 0.5 * ours, {"few": of.mass(0) + of.mass(2) >= self.c}


ILLNESS = cpv.DiscreteSource.from_counts(
    [[4, 2, 1], [0, 0, 0], [1, 3, 2], [1, 1, 5]], w=["none", "empty", "mild", "severe"], x=[1, 2, 3]
)


def test_values_of_w_are_told_apart_in_print():
    """Each row of one value of W says which; what is of every one of them says so."""
    problem = cpv.PrivacyDistortion(ILLNESS, cpv.hamming(3), budget=0.5, criteria=[Odds(2)])
    row = r"J(\text{mild}, \hat x) \le 2 \, J(\text{none}, \hat x) \quad \forall\, \hat x"
    assert row in problem.latex_expanded
    expected = r"\left(p(\text{mild} \mid x) - 2 \, p(\text{none} \mid x)\right)"
    assert rf"\lambda_{{\text{{odds.up}}}}(\hat x) \, {expected}" in problem.dual_latex
    spared = Spared(ILLNESS, cpv.hamming(3), c=0.2)
    both = r"\sum_{\hat x} J(\text{none}, \hat x) + \sum_{\hat x} J(\text{severe}, \hat x)"
    assert rf"{both} \ge 0.2" in spared.latex_expanded
    assert "J(none) + J(severe) ≥ 0.2" in str(spared)
    assert "I(W; X̂) + 0.5 E A[late](X, X̂)" in str(spared)
    disclosure = cpv.DeltaDisclosure(0.5)
    every = cpv.PrivacyDistortion(ILLNESS, cpv.hamming(3), budget=0.5, criteria=[disclosure])
    assert r"J(w, \hat x) \le e^{0.5} \, p(w) \, q(\hat x)" in every.latex_expanded


class Shares(cpv.Criterion):
    """p(w, x̂) ≤ r_w p(x̂) for every w, with the same r or with another for each w."""

    name = "shares"
    apart = cpv.Parameter(zero=True, loosens="up", loosest=1.0)

    def constraints(self, release):
        return {
            str(w): release.mass(w).each() <= (0.9 + w * self.apart) * release.mass().each()
            for w in range(len(release.p_w))
        }


@pytest.mark.parametrize(("apart", "rows"), [(0.0, 1), (0.01, 3)])
def test_a_quantifier_stands_only_where_all_rows_are_alike(apart, rows):
    rule = Shares(apart)
    problem = cpv.PrivacyDistortion(ILLNESS, cpv.hamming(3), budget=0.5, criteria=[rule])
    lines = [line for line in problem.latex_expanded.splitlines() if r"q(\hat x) \quad" in line]
    assert len(lines) == rows
    assert (r"J(w, \hat x) \le 0.9 \, q(\hat x) \quad \forall\, w, \hat x" in lines[0]) == (
        rows == 1
    )


def test_a_value_of_w_without_mass_has_no_number():
    of = cpv.PrivacyDistortion(ILLNESS, cpv.hamming(3), budget=0.5).alphabet
    assert len(of.p_w) == 3
    for number in (3, -1, 1.0, "mild"):
        refused(lambda number=number: of.mass(number), "w", "no number of a value of W")
    refused(lambda: of.total("a", np.eye(2)), "matrix", "shape (2, 2)")
