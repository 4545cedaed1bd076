"""``problem.problem`` is the paper's program: solved by hand it gives value and prices."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv

LAW = np.array([[9, 2, 1, 3], [1, 4, 8, 2], [2, 3, 1, 6]])
SOURCE = cpv.DiscreteSource.from_counts(LAW)
KNOWN = cpv.DiscreteSource.from_counts(
    np.random.default_rng(3).integers(1, 9, (2, 3, 2)).astype(float)
)
D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) * (1 + np.eye(4, k=1))
GAUSSIAN = cpv.GaussianSource(
    [[2.0, 1.0, 0.5, 0.2], [1.0, 2.0, 0.25, 0.1], [0.5, 0.25, 1.0, 0.3], [0.2, 0.1, 0.3, 1.0]],
    sensitive=[0], key=[1, 2], side=[3],
)  # fmt: skip


def scaled(scale: float, **side: Any) -> cpv.GaussianSource:
    moments = np.array(GAUSSIAN.exact, float) * scale
    return cpv.GaussianSource(moments, sensitive=[0], key=[1, 2], **side)


CRITERIA: dict[str, Any] = {
    "t-closeness": cpv.TCloseness(0.08),
    "l-diversity": cpv.LDiversity(2.2),
    "k-anonymity": cpv.KAnonymity(14),
    "delta": cpv.DeltaDisclosure(0.7),
    "leakage": cpv.LeakageCap(0.07),
    "local": cpv.LocalPrivacy(1.2),
    "maximal": cpv.MaximalLeakage(0.9),
    "keep": cpv.KeepProbability(0.6),
    "keep each": cpv.KeepProbability([0.6, 0.2, 0.5, 0.4]),
    "forbidden": cpv.ForbiddenMoves(np.eye(4, k=1, dtype=bool)),
    "marginal": cpv.PreserveMarginal(),
    "mean": cpv.PreserveMean([0, 1, 2, 3]),
    "linear": cpv.Linear(np.eye(4), 0.55, sense="<="),
}


def stricter(name: str, scale: float, units: str) -> Any:
    rule = CRITERIA[name]
    if name in ("keep", "keep each", "forbidden", "marginal", "mean", "linear"):
        return cpv.PrivacyDistortion(SOURCE, D * scale, budget=0.9 * scale, criteria=[rule])
    return cpv.MinimumDistortion(SOURCE, D * scale, [rule], units=units)


def decoded(minimize: Any, scale: float, **rules: Any) -> Any:
    d = cpv.hamming(3).matrix * scale
    return cpv.RateDistortionEquivocation(
        KNOWN, d, 0.25 * scale, minimize=minimize, side_information="decoder", **rules
    )


FORMULATIONS: dict[str, Any] = {
    "budget": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, budget=0.4 * s),
    "nats": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, budget=0.4 * s, units="nats"),
    "w seen": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, budget=0.4 * s, encoder="wx"),
    "price": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, price=2.5 * s),
    "rate": lambda s: cpv.RateDistortionEquivocation(SOURCE, D * s, 0.4 * s, max_leakage=0.1),
    "leakage": lambda s: cpv.RateDistortionEquivocation(
        SOURCE, D * s, 0.4 * s, minimize="leakage", max_rate=0.8
    ),
    "distortion": lambda s: cpv.RateDistortionEquivocation(
        SOURCE, D * s, minimize="distortion", min_equivocation=1.4
    ),
    "weighted": lambda s: decoded({"rate": 1.0, "leakage": 0.5}, s),
    "decoder": lambda s: decoded("rate", s, max_leakage=0.4),
    "both": lambda s: cpv.RateDistortionEquivocation(
        KNOWN, cpv.hamming(3).matrix * s, 0.25 * s, side_information="both"
    ),
    "quadratic": lambda s: cpv.QuadraticGaussian(
        scaled(s), 0.8 * s
    ),
    "attributes": lambda s: cpv.QuadraticGaussian(
        cpv.GaussianSource(
            np.array(GAUSSIAN.exact, float) * s, sensitive=["w"], key=["a", "b"],
            names=["w", "a", "b", "z"],
        ),
        {"a": 0.7 * s, "b": 0.3 * s},
    ),
    "gaussian rate": lambda s: cpv.GaussianEquivocation(
        scaled(s, side=[3]),
        0.8 * s, max_leakage=0.5, side_information="both",
    ),
    "gaussian leakage": lambda s: cpv.GaussianEquivocation(
        scaled(s, side=[3]),
        0.8 * s, minimize="leakage", max_rate=2.0, encoder="wx",
    ),
    "reverse": lambda s: cpv.ReverseWaterFilling(np.array([0.5, 1.0, 4.0]) * s, 2.0 * s),
    "box": lambda s: cpv.BoxWaterFilling(np.array([0.5, 1.0, 4.0]) / s, np.ones(3) * s, 1.2 * s),
    "categorical": lambda s: cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.3),
    **{name: lambda s, n=name: stricter(n, s, "bits") for name in CRITERIA},
    "nats of t": lambda s: stricter("t-closeness", s, "nats"),
    "nats of l": lambda s: stricter("l-diversity", s, "nats"),
    "nats of b": lambda s: stricter("maximal", s, "nats"),
}  # fmt: skip


def scale_of(problem: Any) -> float:
    """One nat, or the span of the costs."""
    return float(getattr(problem.program, "scale", 1.0))


def check_by_hand(problem: Any) -> None:
    """Compare value and multipliers with those of the program in sight."""
    solution = problem.solve()
    shown = problem.problem
    assert shown.is_dcp(dpp=True)
    value = shown.solve()
    size = 1e-5 * max(abs(solution.value), 1e-3 * scale_of(problem))
    assert abs(value - solution.value) <= size, (value, solution.value)
    assert shown.value == pytest.approx(float(shown.objective.value))
    for name in ("budget", "leakage_cap", "max_leakage", "max_rate"):
        if name in solution.prices:
            by_hand = -float(problem.constraints[name].dual_value)
            unit = max(abs(solution.prices[name]), 1e-3)
            assert abs(by_hand - solution.prices[name]) <= 1e-5 * unit + 1e-7, name
    assert set(solution.prices) <= set(problem.parameters), solution.prices


@pytest.mark.parametrize("name", FORMULATIONS)
def test_solving_it_by_hand_gives_value_and_prices(name):
    check_by_hand(FORMULATIONS[name](1.0))


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("name", [n for n in FORMULATIONS if n != "categorical"])
def test_the_unit_of_distortion_changes_nothing(name, scale):
    problem = FORMULATIONS[name](scale)
    solution = problem.solve()
    value = problem.problem.solve()
    size = max(abs(solution.value), 1e-3 * scale_of(problem))
    assert abs(value - solution.value) <= 1e-5 * size


@pytest.mark.parametrize("name", FORMULATIONS)
def test_prices_are_slopes(name):
    """Against the certified optimum at numbers a little to both sides."""
    problem = FORMULATIONS[name](1.0)
    if name == "categorical":
        pytest.skip("its prices have tests of their own, to twelve digits")
    solution = problem.solve(accuracy="high")
    for key, price in solution.prices.items():
        typed = problem.parameters[key].value
        if np.ndim(typed):
            continue
        step = 1e-4 * max(float(typed), 1e-2)
        high, low = (problem.at(**{key: float(typed) + s}).solve() for s in (step, -step))
        slope = (high.value - low.value) / (2 * step)
        assert price == pytest.approx(slope, rel=2e-2, abs=2e-3), key


@pytest.mark.parametrize(
    "name", ["budget", "price", "l-diversity", "delta", "maximal", "quadratic"]
)
def test_another_value_of_a_parameter_is_another_problem(name):
    """The program in sight can be moved as one moves parameters, and nothing else is."""
    problem = FORMULATIONS[name](1.0)
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
    problem = FORMULATIONS["rate"](1.0)
    assert set(problem.parameters) == {"budget", "max_leakage"}
    assert set(problem.constraints) == {"mass", "budget", "max_leakage"}
    assert set(problem.variables) == {"Q"}
    assert isinstance(problem.objective, cp.Minimize)
    assert all(isinstance(c, cp.Constraint) for c in problem.constraints.values())
    gaussian = FORMULATIONS["gaussian rate"](1.0)
    assert gaussian.variables["Sigma"].shape == (2, 2)
    gaussian.problem.solve()
    sigma = gaussian.solve().error_covariance
    assert gaussian.variables["Sigma"].value == pytest.approx(sigma, abs=1e-4)


# ---- one more constraint -----------------------------------------------------------------


def test_an_affine_constraint_is_covered_by_the_certificate():
    problem = FORMULATIONS["budget"](1.0)
    Q = problem.variables["Q"]
    ruled = problem.with_constraint("mine", Q[0, 0] <= 0.1)
    solution = ruled.solve()
    assert solution.status == "certified"
    assert solution.lower > problem.solve().upper
    assert "mine 0.1" in str(solution)
    mass = problem.program.mass
    assert mass[0] * solution.channel.matrix[0, 0] <= 0.1 + 1e-15
    by_hand = cp.Problem(problem.objective, [*problem.problem.constraints, Q[0, 0] <= 0.1])
    assert by_hand.solve(solver="CLARABEL") == pytest.approx(solution.value, abs=1e-6)
    high, low = (ruled.at(mine=0.1 + s).solve().value for s in (1e-5, -1e-5))
    assert solution.prices["mine"] == pytest.approx((high - low) / 2e-5, rel=1e-2)
    check_by_hand(ruled)
    assert str(problem) != str(ruled)
    assert str(ruled.at(budget=0.4)) == str(ruled)


def test_a_cap_on_any_quantity_is_a_constraint():
    problem = FORMULATIONS["budget"](1.0)
    free = problem.solve()
    least = cpv.RateDistortionEquivocation(SOURCE, D, 0.4).solve().upper
    capped = problem.with_constraint("cap", problem.rate <= least + 1e-3)
    assert capped.solve().lower > free.upper
    same = cpv.PrivacyDistortion(SOURCE, D, budget=0.4, criteria=[cpv.LeakageCap(free.upper + 1)])
    added = problem.with_constraint("leak", cpv.LeakageCap(free.upper + 1))
    assert added.solve().value == pytest.approx(same.solve().value, abs=1e-7)
    floor = FORMULATIONS["price"](1.0)
    kept = floor.with_constraint("kept", floor.equivocation >= 1.45).solve()
    assert kept.prices["kept"] > 0


def test_sigma_takes_constraints_too():
    problem = FORMULATIONS["quadratic"](1.0)
    sigma = problem.variables["Sigma"]
    ruled = problem.with_constraint("second", sigma[1, 1] <= 0.2)
    solution = ruled.solve()
    assert solution.status == "certified"
    assert solution.lower > problem.solve().upper
    assert solution.error_covariance[1, 1] <= 0.2 + 1e-12
    check_by_hand(ruled)
    high, low = (ruled.at(second=0.2 + s).solve().value for s in (1e-4, -1e-4))
    assert solution.prices["second"] == pytest.approx((high - low) / 2e-4, rel=1e-2)


@pytest.mark.parametrize(
    ("state", "argument", "piece"),
    [
        (lambda q: cp.sum_squares(q) <= 1, "constraint", "LeakageCap"),
        (lambda q: cp.sum(cp.entr(q)) >= 1, "constraint", "not affine"),
        (lambda q: cp.norm(q, 1) <= 1, "constraint", "not affine"),
        (lambda q: cp.Variable(name="mine") <= q[0, 0], "constraint", "uses mine"),
        (lambda q: cp.SOC(q[0, 0], q[1]), "constraint", "SOC"),
        (lambda q: q[0, 0] <= cp.Parameter(name="p"), "constraint", "without a value"),
        (lambda q: q[0, 0] >= 0.1, "name", "already"),
        (lambda q: 3, "constraint", "int"),
    ],
)
def test_what_cannot_be_certified_is_refused_by_name(state, argument, piece):
    problem = FORMULATIONS["budget"](1.0)
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
    p = cpv.Parameter(loosest=1.0)

    def constraints(self, release):
        return {
            str(w): release.mass(w).each() <= self.p * release.mass().each()
            for w in range(len(release.p_w))
        }


def test_a_formulation_of_ones_own():
    own = RatePlusLeakage(SOURCE, D, budget=0.4)
    theirs = cpv.RateDistortionEquivocation(
        SOURCE, D, 0.4, minimize={"rate": 1.0, "leakage": 1.0}
    ).solve()
    assert own.solve().value == pytest.approx(theirs.value, abs=1e-7)
    weighed = RatePlusLeakage(SOURCE, D, budget=0.4, weight=2.0)
    check_by_hand(weighed)
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
    check_by_hand(problem)
    with pytest.raises(cpv.InfeasibleError, match="guess would have to be at least 0.357"):
        problem.at(guess=0.3).solve()


def test_a_number_that_leaves_no_trace_is_refused():
    """Its price would be unknown: once a default gave −106 for −6.62."""

    class Lost(cpv.Criterion):
        name = "lost"
        p = cpv.Parameter()

        def constraints(self, release):
            return {"": release.distortion <= float(self.p)}

    class LostToo(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self):
            return self.risk, {"budget": self.distortion <= float(self.budget)}

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
