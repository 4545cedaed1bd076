"""``problem.problem`` is the paper's program: solved by hand it gives value and prices."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.instances import FAST, SOURCE, VARIOUS, D
from tests.lengths import rest_at_length, some_at_length
from tests.refusals import refused

SCALED = [name for name in FAST if name != "categorical"]  # its prices are known to twelve digits


@pytest.mark.long
@pytest.mark.parametrize("name", rest_at_length(FAST, 12))
def test_solving_it_by_hand_gives_value_and_prices(name):
    referee.by_hand(FAST[name](1.0))


@pytest.mark.parametrize("name", some_at_length(VARIOUS, 10))
def test_random_problems_by_hand(name):
    """Whatever the certificate says of them: CVXPY finds an optimum between its ends, or none."""
    problem = VARIOUS[name]()
    try:
        solution = problem.solve(certify=False)
    except cpv.InputError:  # of a singular covariance
        return
    value = problem.problem.solve()
    if solution.status == "infeasible":
        assert value is None or value > 1e6 or math.isnan(value)
        return
    size = max(abs(solution.value), float(getattr(problem.program, "scale", 1.0)))
    assert solution.lower - 1e-4 * size <= value <= solution.upper + 1e-4 * size


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "scale"), [(name, 1e9 if i % 2 else 1e-9) for i, name in enumerate(SCALED)]
)
def test_the_unit_of_distortion_changes_nothing(name, scale):
    problem = FAST[name](scale)
    solution = problem.solve()
    value = problem.problem.solve()
    size = max(abs(solution.value), 1e-3 * float(getattr(problem.program, "scale", 1.0)))
    assert abs(value - solution.value) <= 1e-5 * size


@pytest.mark.long
@pytest.mark.parametrize("name", rest_at_length(SCALED, 12))
def test_prices_are_slopes(name):
    """Against the certified optimum at numbers a little to both sides."""
    problem = FAST[name](1.0)
    solution = problem.solve(accuracy="high")
    for key, price in solution.prices.items():
        typed = problem.parameters[key].value
        if np.ndim(typed):
            continue
        step = 1e-4 * max(float(typed), 1e-2)
        high, low = (
            problem.at(**{key: float(typed) + s}).solve(accuracy="high") for s in (step, -step)
        )
        slope = (high.value - low.value) / (2 * step)
        assert price == pytest.approx(slope, rel=2e-3, abs=1e-4), key


@pytest.mark.parametrize(
    "name", some_at_length(["budget", "price", "l-diversity", "delta", "maximal", "quadratic"], 3)
)
def test_another_value_of_a_parameter_is_another_problem(name):
    """The program in sight can be moved as one moves parameters, and nothing else is."""
    problem = FAST[name](1.0)
    before = problem.solve()
    (key,) = problem.parameters
    parameter = problem.parameters[key]
    other = 1.05 * float(parameter.value)
    parameter.value = other
    moved = problem.at(**{key: other}).solve()
    assert problem.problem.solve() == pytest.approx(moved.value, rel=1e-5)
    assert problem.solve().value == before.value
    assert (moved.value != before.value) == (before.prices[key] != 0)


def test_what_is_shown_has_the_names_of_what_was_typed():
    problem = FAST["rate"](1.0)
    assert set(problem.parameters) == {"budget", "max_leakage"}
    assert set(problem.constraints) == {"mass", "budget", "max_leakage"}
    assert set(problem.variables) == {"Q"}
    assert isinstance(problem.objective, cp.Minimize)
    assert all(isinstance(c, cp.Constraint) for c in problem.constraints.values())
    gaussian = FAST["gaussian rate"](1.0)
    assert gaussian.variables["Sigma"].shape == (2, 2)
    gaussian.problem.solve()
    sigma = gaussian.solve().error_covariance
    assert gaussian.variables["Sigma"].value == pytest.approx(sigma, abs=1e-4)


# ---- one more constraint -----------------------------------------------------------------


def test_an_affine_constraint_is_covered_by_the_certificate():
    problem = FAST["budget"](1.0)
    Q = problem.variables["Q"]
    ruled = problem.with_constraint("mine", Q[0, 0] <= 0.1)
    solution = ruled.solve()
    assert solution.status == "certified"
    assert solution.lower > problem.solve().upper
    assert "mine ≤ 0.1" in str(solution)
    mass = problem.program.mass
    assert mass[0] * solution.channel.matrix[0, 0] <= 0.1 + 1e-15
    by_hand = cp.Problem(problem.objective, [*problem.problem.constraints, Q[0, 0] <= 0.1])
    assert by_hand.solve(solver="CLARABEL") == pytest.approx(solution.value, abs=1e-6)
    high, low = (ruled.at(mine=0.1 + s).solve().value for s in (1e-5, -1e-5))
    assert solution.prices["mine"] == pytest.approx((high - low) / 2e-5, rel=1e-2)
    referee.by_hand(ruled)
    assert str(problem) != str(ruled)
    assert str(ruled.at(budget=0.4)) == str(ruled)


def test_a_cap_on_any_quantity_is_a_constraint():
    problem = FAST["budget"](1.0)
    free = problem.solve()
    least = cpv.RateDistortionEquivocation(SOURCE, D, 0.4).solve().upper
    capped = problem.with_constraint("cap", problem.rate <= least + 1e-3)
    assert capped.solve().lower > free.upper
    same = cpv.PrivacyDistortion(SOURCE, D, budget=0.4, criteria=[cpv.LeakageCap(free.upper + 1)])
    added = problem.with_constraint("leak", cpv.LeakageCap(free.upper + 1))
    assert added.solve().value == pytest.approx(same.solve().value, abs=1e-7)
    floor = FAST["price"](1.0)
    kept = floor.with_constraint("kept", floor.equivocation >= 1.45).solve()
    assert kept.prices["kept"] > 0


@pytest.mark.long
def test_sigma_takes_constraints_too():
    problem = FAST["quadratic"](1.0)
    sigma = problem.variables["Sigma"]
    ruled = problem.with_constraint("second", sigma[1, 1] <= 0.2)
    solution = ruled.solve()
    assert solution.status == "certified"
    assert solution.lower > problem.solve().upper
    assert solution.error_covariance[1, 1] <= 0.2 + 1e-12
    referee.by_hand(ruled)
    high, low = (ruled.at(second=0.2 + s).solve().value for s in (1e-4, -1e-4))
    assert solution.prices["second"] == pytest.approx((high - low) / 2e-4, rel=1e-2)


@pytest.mark.parametrize(
    ("state", "argument", "piece"),
    [
        (lambda q: cp.sum_squares(q) <= 1, "constraint", "LeakageCap"),
        (lambda q: cp.sum(cp.entr(q)) >= 1, "constraint", "not convex piecewise linear"),
        (lambda q: cp.norm(q, 1) >= 1, "constraint", "not convex piecewise linear"),
        (lambda q: cp.Variable(name="mine") <= q[0, 0], "constraint", "uses mine"),
        (lambda q: cp.Variable(q.shape, name="Q") <= 1, "constraint", "the Q of another problem"),
        (lambda q: cp.SOC(q[0, 0], q[1]), "constraint", "SOC"),
        (lambda q: q[0, 0] <= cp.Parameter(name="p"), "constraint", "without a value"),
        (lambda q: q[0, 0] >= 0.1, "name", "already"),
        (lambda q: 3, "constraint", "int"),
    ],
)
def test_what_cannot_be_certified_is_refused_by_name(state, argument, piece):
    problem = FAST["budget"](1.0)
    name = "budget" if argument == "name" else "mine"
    with pytest.raises(cpv.InputError, match=piece) as caught:
        problem.with_constraint(name, state(problem.variables["Q"]))
    assert caught.value.argument == argument


# ---- formulations and criteria of one's own ----------------------------------------------


class RatePlusLeakage(cpv.ChannelProblem):
    budget = cpv.Parameter()
    weight = cpv.Parameter(optional=True)

    def formulation(self):
        leak = self.risk if self.weight is None else self.weight * self.risk
        return self.rate + leak, {"budget": self.distortion <= self.budget}


class Guess(cpv.Criterion):
    name = "guess"
    p = cpv.Parameter(loosens="up", loosest=1.0)

    def constraints(self, release):
        return {
            str(w): release.mass(w).each() <= self.p * release.mass().each()
            for w in range(len(release.p_w))
        }


def test_a_formulation_of_ones_own():
    ours = RatePlusLeakage(SOURCE, D, budget=0.4)
    theirs = cpv.RateDistortionEquivocation(
        SOURCE, D, 0.4, minimize={"rate": 1.0, "leakage": 1.0}
    ).solve()
    assert ours.solve().value == pytest.approx(theirs.value, abs=1e-7)
    weighed = RatePlusLeakage(SOURCE, D, budget=0.4, weight=2.0)
    referee.by_hand(weighed)
    solution = weighed.solve(accuracy="high")
    for key, at in (("budget", 0.4), ("weight", 2.0)):
        high, low = (weighed.at(**{key: at + s}).solve().value for s in (1e-4, -1e-4))
        assert solution.prices[key] == pytest.approx((high - low) / 2e-4, rel=1e-3)
    with pytest.raises(cpv.InputError, match="pass budget="):
        RatePlusLeakage(SOURCE, D)
    with pytest.raises(cpv.InputError, match="budget.*out of range"):
        RatePlusLeakage(SOURCE, D, budget=-1)
    with pytest.raises(cpv.InputError, match="no such number"):
        RatePlusLeakage(SOURCE, D, budget=1, most=2)


def test_a_criterion_of_ones_own_has_the_right_price():
    problem = cpv.MinimumDistortion(SOURCE, D, [Guess(0.5)])
    solution = problem.solve(accuracy="high")
    posterior = (SOURCE.law / SOURCE.law.sum(axis=0)) @ (
        SOURCE.law.sum(axis=0)[:, None] * solution.channel.matrix
    )
    assert (posterior <= 0.5 * posterior.sum(axis=0) + 1e-12).all()
    high, low = (problem.at(guess=0.5 + s).solve(accuracy="high").value for s in (1e-5, -1e-5))
    assert solution.prices["guess"] == pytest.approx((high - low) / 2e-5, rel=1e-4)
    referee.by_hand(problem)
    with pytest.raises(cpv.InfeasibleError, match="guess would have to be at least about 0.357"):
        problem.at(guess=0.3).solve()


def test_a_number_that_leaves_no_trace_is_refused():
    """Its price would be unknown: once a default gave −106 for −6.62."""

    class Lost(cpv.Criterion):
        name = "lost"
        p = cpv.Parameter()

        def constraints(self, release):
            return {"": release.distortion <= self.p.near}

    class LostToo(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self):
            return self.risk, {"budget": self.distortion <= self.budget.near}

    with pytest.raises(cpv.InputError, match="its price is known"):
        cpv.MinimumDistortion(SOURCE, D, [Lost(0.2)])
    with pytest.raises(cpv.InputError, match="its price is known"):
        LostToo(SOURCE, D, budget=0.2)


def test_products_of_numbers_that_were_typed_are_refused():
    class Squared(cpv.Criterion):
        name = "squared"
        p = cpv.Parameter()

        def constraints(self, release):
            return {"": release.distortion <= self.p * self.p}

    with pytest.raises(TypeError, match="not affine"):
        cpv.MinimumDistortion(SOURCE, D, [Squared(0.2)])


def test_what_is_affine_in_a_number_has_its_price():
    class Halved(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self):
            return self.risk, {"budget": self.distortion <= np.float64(0.5) * self.budget + 0.1}

    solution = Halved(SOURCE, D, budget=0.6).solve(accuracy="high")
    plain = cpv.PrivacyDistortion(SOURCE, D, budget=0.4).solve(accuracy="high")
    assert solution.value == pytest.approx(plain.value, abs=1e-9)
    assert solution.prices["budget"] == pytest.approx(plain.prices["budget"] / 2, rel=1e-6)


def test_the_multipliers_of_letters_have_one_sign_everywhere():
    """Σ p ν − λ D is the optimum: as printed, as returned, and as CVXPY has them."""
    problem = cpv.PrivacyDistortion(SOURCE, D, budget=0.4)
    solution, p = problem.solve(), SOURCE.pmf.sum(axis=0)
    nu, price = solution.duals["mass"], solution.duals["budget"]
    assert p @ nu - 0.4 * price == pytest.approx(solution.lower, abs=1e-9)
    problem.problem.solve(solver="CLARABEL")
    assert problem.constraints["mass"].dual_value == pytest.approx(nu, abs=1e-4)
    assert r"\sum_{x} p(x) \, \nu(x) - 0.4 \, \lambda" in problem.dual_latex


def test_constraints_are_prepared_in_the_variables_of_the_first_problem():
    problem = cpv.PrivacyDistortion(SOURCE, D, budget=0.4)
    q = problem.variables["Q"]
    together = problem
    for i, constraint in enumerate([q[0, 1] <= 0.01, q[1, 0] <= 0.02, q[2, 3] <= 0.03]):
        together = together.with_constraint(f"move {i}", constraint)
    assert together.variables["Q"] is q is problem.at(budget=0.3).variables["Q"]
    assert together.solve().value >= problem.solve().value
    assert together == problem.with_constraint("move 0", q[0, 1] <= 0.01).with_constraint(
        "move 1", q[1, 0] <= 0.02
    ).with_constraint("move 2", q[2, 3] <= 0.03)
    other = cpv.PrivacyDistortion(SOURCE, D, budget=0.4)
    refused(lambda: other.with_constraint("theirs", q[0, 1] <= 0.01), "constraint")
    wider = problem.at(encoder="wx")  # another Q
    refused(lambda: wider.with_constraint("theirs", q[0, 1] <= 0.01), "constraint")


def test_a_formulation_that_reads_what_is_made_of_it_is_refused():
    class Circular(cpv.ChannelProblem):
        def formulation(self):
            return self.risk, {"move": self.variables["Q"][0, 1] <= 0.1}

    error = refused(lambda: Circular(SOURCE, D).solve(), "formulation")
    assert "with_constraint" in str(error)
