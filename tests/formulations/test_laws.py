"""One release under several laws: the worst is minimised, and each law has its bounds."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Frontier, Solution
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil, floor
from cvxprivacy_verifier.statement import stated
from tests import referee
from tests.leakage.measures import MEASURES, in_cvxpy
from tests.lengths import rest_at_length, some_at_length
from tests.second_checker import check

HAMMING = cpv.hamming(2)
FIRST = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
SECOND = cpv.DiscreteSource([[0.2, 0.4], [0.3, 0.1]])


def tables(rng: np.random.Generator, count: int, shape: tuple[int, int] = (3, 3)) -> list[Any]:
    """Return counts with mass at every w and x, some of them with zeros."""
    values = []
    while len(values) < count:
        law = rng.integers(0, 12, shape) * (rng.random(shape) < 0.9)
        if law.sum(axis=0).all() and law.sum(axis=1).all():
            values.append(law)
    return values


def sources(*laws: Any) -> list[cpv.DiscreteSource]:
    return [cpv.DiscreteSource.from_counts(law) for law in laws]


def document(solution: Solution) -> Any:
    return json.loads(json.dumps(solution.certificate.document()))


def refereed(solution: Solution) -> None:
    referee.check(solution)
    lower, upper, status = check(document(solution))
    assert status == solution.status
    assert max(lower, Fraction(solution.lower)) <= min(upper, Fraction(solution.upper))


# ---- the optimum -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", some_at_length(["information", "chi-squared", "variation", "guess", "Sibson 2"], 3)
)
@pytest.mark.parametrize("seed", rest_at_length([1, 2], 1))
def test_it_is_the_least_of_the_greatest(name: str, seed: int) -> None:
    """Against the same program written out in CVXPY from the definitions."""
    rng = np.random.default_rng([seed, len(name)])
    laws = tables(rng, int(rng.integers(2, 4)))
    d = np.round(rng.random((3, 3)), 2) * (1 - np.eye(3))
    budget = 0.4 * max(min((law.sum(axis=0) @ d) / law.sum()) for law in laws)
    first, *others = sources(*laws)
    problem = cpv.PrivacyDistortion(
        first, d, budget=budget, laws=others, leakage=MEASURES[name][0], units="nats"
    )
    solution = problem.solve()
    refereed(solution)
    channel, worst = cp.Variable((3, 3), nonneg=True), cp.Variable()
    rows = [cp.sum(channel, axis=1) == 1]
    for law in laws:
        p = law / law.sum()
        rows += [worst >= in_cvxpy(name, p @ channel, p.sum(axis=1))]
        rows += [cp.sum(cp.multiply(p.sum(axis=0)[:, None] * d, channel)) <= budget]
    cp.Problem(cp.Minimize(worst), rows).solve(solver="CLARABEL")
    assert solution.status == "certified"
    assert solution.value == pytest.approx(float(worst.value), abs=2e-6)


def test_by_hand_in_cvxpy() -> None:
    problem = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws={"2025": SECOND})
    referee.check(problem.solve(), problem=problem)
    priced = cpv.PrivacyDistortion(FIRST, HAMMING, price=0.3, laws=[SECOND])
    referee.check(priced.solve(), problem=priced)


@pytest.mark.parametrize("encoder", some_at_length(["x", "wx"], 1))
def test_the_same_law_twice_changes_nothing(encoder: str) -> None:
    """Whether it is typed in counts or in shares."""
    counts = [[30, 10, 5], [4, 20, 11]]
    (source,) = sources(counts)
    shares = cpv.DiscreteSource(np.array(counts) / 80)
    options: Any = {"budget": 0.15, "encoder": encoder, "criteria": [cpv.TCloseness(0.2)]}
    alone = cpv.PrivacyDistortion(source, cpv.hamming(3), **options).solve()
    for laws in ([source], [shares], {"a": shares, "b": source}):
        several = cpv.PrivacyDistortion(source, cpv.hamming(3), laws=laws, **options).solve()
        refereed(several)
        assert several.value == pytest.approx(alone.value, abs=2e-7)
        assert several.prices["budget"] == pytest.approx(alone.prices["budget"], rel=1e-3)


def test_the_order_of_laws_does_not_matter_and_one_more_costs() -> None:
    a, b, c = sources(*tables(np.random.default_rng(5), 3))
    values = [
        cpv.PrivacyDistortion(first, cpv.hamming(3), budget=0.2, laws=others).solve().value
        for first, others in [(a, [b, c]), (c, [b, a]), (b, [a, c]), (b, [a]), (b, None)]
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert values[0] == pytest.approx(values[2], abs=1e-6)
    assert values[4] <= values[3] + 1e-6 <= values[2] + 2e-6
    assert values[4] < values[3] - 1e-3  # b alone would allow what a does not


def test_a_mixture_may_tell_everything() -> None:
    """What the documentation says: each law by itself, and nothing about their mixtures."""
    low, high = sources([[5, 0], [0, 0]], [[0, 0], [0, 5]])
    problem = cpv.PrivacyDistortion(low, HAMMING, budget=0.0, laws=[high])
    solution = problem.solve()
    assert solution.upper == 0.0
    both = cpv.DiscreteSource([[0.5, 0], [0, 0.5]])
    assert cpv.PrivacyDistortion(both, HAMMING, budget=0.0).solve().value == pytest.approx(1.0)
    assert "mixture" in str(cpv.PrivacyDistortion.__doc__)


def test_letters_without_mass_in_the_first_law() -> None:
    """Those of another law have rows of their own; none of either law does."""
    first = cpv.DiscreteSource.from_counts([[8, 2, 0, 0], [2, 8, 0, 0]], x=list("abcd"))
    other = cpv.DiscreteSource.from_counts([[6, 1], [1, 6]], x=list("ac"))  # b without mass
    problem = cpv.PrivacyDistortion(first, cpv.hamming(list("abcd")), budget=0.1, laws=[other])
    solution = problem.solve()
    refereed(solution)
    release = solution.release
    assert list(release.inputs) == list("abcd")
    assert release.arbitrary.tolist() == [False, False, False, True]
    assert release.p_input.tolist() == [0.5, 0.5, 0.0, 0.0]
    moved = {x: 1 - release.matrix[i, i] for i, x in enumerate("abc")}
    assert moved["a"] / 2 + moved["b"] / 2 <= 0.1 + 1e-12
    assert moved["a"] / 2 + moved["c"] / 2 <= 0.1 + 1e-12
    assert moved["c"] > 0.01


def test_values_of_w_that_a_law_lacks() -> None:
    first = cpv.DiscreteSource.from_counts([[8, 2], [2, 8], [3, 3]], w=list("uvw"))
    other = cpv.DiscreteSource.from_counts([[6, 1], [1, 6]], w=list("wu"))
    measure = cpv.leakage.GuessingProbability()
    for leakage in (None, measure, cpv.leakage.EarthMover()):
        problem = cpv.PrivacyDistortion(first, HAMMING, budget=0.1, laws=[other], leakage=leakage)
        refereed(problem.solve())
    terms = problem.at(budget=0.0).solve().terms
    assert terms["information[law 1]"] == pytest.approx(other.information(), abs=1e-9)


# ---- what else is stated ---------------------------------------------------------------------

CRITERIA = [
    cpv.TCloseness(0.05),
    cpv.TCloseness(0.1, "tv"),
    cpv.LDiversity(2.4),
    cpv.RecordEntropy(20),
    cpv.DeltaDisclosure(0.4),
    cpv.PointwiseMaximalLeakage(0.3),
    cpv.LeakageCap(0.02),
    cpv.LeakageCap(0.45, cpv.leakage.GuessingProbability()),
    cpv.PerLetter(cpv.leakage.ChiSquared(), 0.05),
]


@pytest.mark.parametrize("criterion", some_at_length(CRITERIA, 4), ids=repr)
def test_criteria_hold_under_each_law(criterion: cpv.Criterion) -> None:
    """The release is feasible alone under each, and the law that binds is not the first."""
    first = cpv.DiscreteSource.from_counts(np.full((3, 3), 11))
    second = cpv.DiscreteSource.from_counts([[30, 2, 4], [3, 25, 5], [1, 4, 35]])
    problem = cpv.MinimumDistortion(first, cpv.hamming(3), [criterion], laws=[second])
    solution = problem.solve()
    refereed(solution)
    alone = cpv.MinimumDistortion(second, cpv.hamming(3), [criterion])
    assert solution.value == pytest.approx(solution.terms["distortion[law 1]"], abs=1e-6)
    assert alone.solve().value <= solution.value + 1e-6
    proof = verify.proof_of(json.loads(json.dumps(alone.program.to_dict())))
    assert proof.upper(solution.certificate.primal.to_dict()).feasible


def test_rules_of_the_channel_are_stated_once() -> None:
    rules = [cpv.LocalPrivacy(1.0), cpv.KeepProbability(0.3)]
    problem = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.4, laws=[SECOND], criteria=rules)
    assert list(problem.program.auxiliaries) == ["local_privacy"]
    solution = problem.solve()
    refereed(solution)
    eps = 1e-4
    for name, typed in {"local_privacy": 1.0, "keep_probability": 0.3, "budget": 0.4}.items():
        ends = [problem.at(**{name: typed + s * eps}).solve(accuracy="high") for s in (1, -1)]
        slope = (ends[0].value - ends[1].value) / (2 * eps)
        assert solution.prices[name] == pytest.approx(slope, abs=2e-3), name


def test_rules_of_a_law_are_stated_under_each() -> None:
    means = cpv.PreserveMean([0.0, 1.0, 3.0])
    a, b = sources(*tables(np.random.default_rng(8), 2))
    problem = cpv.PrivacyDistortion(a, cpv.hamming(3), budget=0.3, laws=[b], criteria=[means])
    solution = problem.solve()
    refereed(solution)
    for source in (a, b):
        released = source.p_x @ solution.release.matrix
        assert released @ [0, 1, 3] == pytest.approx(source.p_x @ [0, 1, 3], abs=1e-12)


def test_prices_are_slopes() -> None:
    a, b, c = sources(*tables(np.random.default_rng(11), 3))
    problem = cpv.PrivacyDistortion(a, cpv.hamming(3), budget=0.2, laws=[b, c])
    eps, price = 1e-4, problem.solve(accuracy="high").prices["budget"]
    ends = [problem.at(budget=0.2 + s * eps).solve(accuracy="high").value for s in (1, -1)]
    assert price == pytest.approx((ends[0] - ends[1]) / (2 * eps), rel=1e-3)
    priced = cpv.PrivacyDistortion(a, cpv.hamming(3), price=0.4, laws=[b, c])
    slope = priced.solve(accuracy="high").prices["price"]
    ends = [priced.at(price=0.4 + s * eps).solve(accuracy="high").value for s in (1, -1)]
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * eps), rel=1e-3)


def test_a_problem_of_ones_own() -> None:
    """Quantities under several laws add up and compare as those under one do."""

    class RatePlusLeakage(cpv.ChannelProblem):
        budget = cpv.Parameter()

        def formulation(self) -> Any:
            return self.rate + 2 * self.risk, {"budget": self.distortion <= self.budget}

    problem = RatePlusLeakage(FIRST, HAMMING, budget=0.2, laws={"2025": SECOND})
    solution = problem.solve(accuracy="high")
    referee.check(solution, problem=problem)
    alone = [RatePlusLeakage(s, HAMMING, budget=0.2).solve().value for s in (FIRST, SECOND)]
    assert solution.value >= max(alone) - 1e-6
    capped = problem.with_constraint("mine", problem.rate <= 0.1).at(budget=0.35)
    assert {"mine", "mine[2025]"} <= set(capped.program.constraints)
    outcome = capped.solve()
    assert max(outcome.terms[k].upper for k in ("risk", "risk[2025]")) <= 0.1
    with pytest.raises(cpv.InfeasibleError, match="mine|I\\("):
        capped.at(budget=0.2).solve()
    with pytest.raises(cpv.InfeasibleError):
        capped.at(mine=0.001).solve()
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = problem.risk + problem.alphabet.risk


@pytest.mark.long
def test_a_curve_under_several_laws() -> None:
    a, b = sources(*tables(np.random.default_rng(2), 2))
    problem = cpv.PrivacyDistortion(a, cpv.hamming(3), budget=0.2, laws=[b])
    curve = cpv.frontier(problem, tol=5e-2)
    for x in (0.1, 0.23, 0.4):
        value = problem.at(budget=x).solve()
        assert curve.outer(x) <= value.upper
        assert value.lower <= curve.inner(x)
    caps = cpv.MinimumDistortion(a, cpv.hamming(3), [cpv.LeakageCap(0.1)], laws=[b])
    curve = cpv.frontier(caps, "leakage_cap", tol=0.1)
    value = caps.at(leakage_cap=0.07).solve()
    assert curve.outer(0.07) <= value.upper
    assert value.lower <= curve.inner(0.07)
    capped = cpv.PrivacyDistortion(a, cpv.hamming(3), budget=0.2, laws=[b], criteria=caps.criteria)
    with pytest.raises(cpv.InputError, match="spans no surface"):
        cpv.surface(capped, ("budget", "leakage_cap"))


def test_curves_are_verified_without_their_problem(tmp_path: Any) -> None:
    problem = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws=[SECOND])
    curve = cpv.frontier(problem, points=[0.1, 0.2])
    curve.save(tmp_path / "curve.json")
    again = Frontier.load(tmp_path / "curve.json", verify=True)
    assert again.outer(0.13) == curve.outer(0.13)
    text = (tmp_path / "curve.json").read_text()
    body = json.loads(text)
    assert body["facts"]["rows"] == ["budget", "budget[law 1]"]
    for point in body["points"]:  # the number moves under one law alone
        for row in ("budget", "budget[law 1]"):
            if point["program"] and row in point["program"]["rows"]:
                del point["program"]["rows"][row]
                break
    (tmp_path / "curve.json").write_text(json.dumps(body))
    with pytest.raises(cpv.InputError, match="another"):
        Frontier.load(tmp_path / "curve.json", verify=True)


# ---- proofs ----------------------------------------------------------------------------------


def test_shares_are_normalised_exactly() -> None:
    """Whatever they are, they prove no more than a mean of the objectives does."""
    solution = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws=[SECOND]).solve()
    body = document(solution)
    proof = verify.proof_of(body["program"])
    honest = body["dual"]["shares"]
    assert set(honest) == {"law 1"}
    for share in (0.3, 1.0, 1 + 2**-40, 7.0, 1e300, -3.0, math.nan, "1", None):
        dual = {**body["dual"], "shares": {"law 1": share}}
        assert floor(proof.lower(dual)) <= solution.upper
    assert ceil(proof.upper(body["primal"]).objective) == solution.upper


def test_what_was_proved_is_told_from_what_is_asked() -> None:
    problem = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws={"a": SECOND})
    solution = problem.solve()
    assert solution.certificate.proves(problem)
    for other in (
        cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2),
        cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws={"b": SECOND}),
        cpv.PrivacyDistortion(SECOND, HAMMING, budget=0.2, laws={"a": FIRST}),
    ):
        assert not solution.certificate.proves(other)
    text = "\n".join(stated(document(solution)))
    assert "the greatest of 2" in text
    swapped = document(solution)
    worst = swapped["program"]["objective"]["worst"]
    worst[""] = worst["a"]  # the worst of one law twice
    swapped["sha256"] = verify.digest(swapped)
    assert any("is claimed" in outcome for outcome in verify.disagreements(swapped))


def test_it_is_a_value_like_other_problems() -> None:
    problem = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws={"2025": SECOND})
    again = pickle.loads(pickle.dumps(problem))
    assert again.program.to_dict() == problem.program.to_dict()
    assert "max{I(W; X̂), I(W; X̂) under 2025}" in repr(problem)
    assert r"\text{ under 2025}" in problem.latex
    assert "risk[2025]" in str(problem.solve())


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.long
def test_what_conflicts_is_told_with_numbers_that_would_do() -> None:
    a, b = sources(*tables(np.random.default_rng(3), 2))
    problem = cpv.PrivacyDistortion(
        a, cpv.hamming(3), budget=0.01, laws=[b], criteria=[cpv.LeakageCap(0.02)]
    )
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    assert set(caught.value.conflict) == {"budget", "leakage_cap"}
    for name, number in caught.value.extremes.items():
        room = problem.at(**{name: number * (1 + 1e-6)})
        assert room.solve(certify=False).certificate.primal is not None
        with pytest.raises(cpv.InfeasibleError):
            problem.at(**{name: number * 0.99}).solve()


@pytest.mark.parametrize(
    ("laws", "text"),
    [
        (SECOND, "laws"),
        ([[0.5, 0.5]], "laws"),
        ([np.eye(2) / 2], "laws"),
        (3, "laws"),
        ({"": SECOND}, "is no name"),
        ([cpv.DiscreteSource(np.full((2, 2, 2), 0.125))], "side information"),
        ([cpv.DiscreteSource([[0.2, 0.3], [0.2, 0.3]], x=[0, "b"])], "'b' is no letter"),
        ({"2025": cpv.DiscreteSource([[0.2, 0.3], [0.2, 0.3]], w=[0, 9])}, "9 is no letter"),
    ],
)
def test_what_are_no_further_laws(laws: Any, text: str) -> None:
    with pytest.raises(cpv.InputError, match=text) as caught:
        cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws=laws)
    assert caught.value.argument == "laws"


def test_labels_decide_and_not_places() -> None:
    turned = cpv.DiscreteSource([[0.1, 0.3], [0.4, 0.2]], x=[1, 0], w=[1, 0])
    same = cpv.DiscreteSource([[0.2, 0.4], [0.3, 0.1]])
    values = [
        cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.1, laws=[law]).solve().value
        for law in (turned, same)
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_names_that_clash_are_refused() -> None:
    caps = [cpv.LeakageCap(0.1), cpv.LeakageCap(0.2)]
    with pytest.raises(cpv.InputError, match="leakage_cap"):
        cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, criteria=caps, laws={"2": SECOND})


# ---- what a review found -------------------------------------------------------------------


def test_letters_of_one_law_may_stay_under_preserved_marginals() -> None:
    first = cpv.DiscreteSource.from_counts([[8, 2, 0], [2, 8, 0]], x=list("abc"))
    other = cpv.DiscreteSource.from_counts([[8, 0, 2], [2, 0, 8]], x=list("abc"))
    for a, b in ((first, other), (other, first)):
        problem = cpv.PrivacyDistortion(
            a, cpv.hamming(list("abc")), budget=0.5, criteria=[cpv.PreserveMarginal()], laws=[b]
        )
        solution = problem.solve()
        refereed(solution)
        for law in (a, b):
            assert law.p_x @ solution.release.matrix == pytest.approx(law.p_x, abs=1e-12)


def test_a_comparison_of_another_problem_is_refused() -> None:
    one = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.4, laws={"a": SECOND})
    other = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.4, laws={"b": SECOND})
    alone = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.4)
    for problem, stated_ in (
        (other, one.risk <= 0.01),
        (alone, {"mine": alone.distortion <= 0.01}),
        (alone, {}),
        (one, {"": 3, "a": 3}),
    ):
        with pytest.raises(cpv.InputError, match="no comparison under this problem's laws"):
            problem.with_constraint("mine", stated_)
    with pytest.raises(cpv.InputError, match="no one law"):
        one.with_constraint("mine", one.variables["Q"][0, 1] <= 0.05)
    for wrong in ("x", None):
        with pytest.raises(cpv.InputError):
            _ = one.risk <= wrong


def test_the_gap_is_judged_alike_in_every_order() -> None:
    """An offset of one law makes no gap under another look narrow."""
    d = np.array([[0, 1.0, 1e6], [1.0, 0, 1e6], [1e6, 1e6 + 1, 1e6 + 2]])
    a, b = sources([[30, 10, 0], [10, 30, 0]], [[3, 5, 20], [8, 2, 20]])
    units = []
    for first, laws in ((a, [b]), (b, [a])):
        problem = cpv.MinimumDistortion(first, d, [cpv.LeakageCap(0.05)], laws=laws)
        proof = verify.proof_of(json.loads(json.dumps(problem.program.to_dict())))
        units.append(proof.unit(5e5))
    assert units[0] == pytest.approx(units[1], rel=1e-9)


def test_the_ends_of_distortion_under_several_laws() -> None:
    problem = cpv.PrivacyDistortion(FIRST, HAMMING, budget=0.2, laws=[SECOND])
    assert problem.least_distortion == 0.0
    assert problem.greatest_distortion == pytest.approx(0.5)
    assert problem.at(budget=problem.greatest_distortion).solve().upper < 1e-6


def test_refusals_say_under_which_law() -> None:
    few = cpv.DiscreteSource.from_counts([[3, 1], [1, 3]])
    many = cpv.DiscreteSource.from_counts([[30, 10], [10, 30]])
    with pytest.raises(cpv.InputError, match="8 records, under 2025"):
        cpv.MinimumDistortion(many, HAMMING, [cpv.RecordEntropy(20)], laws={"2025": few})
    curve = cpv.frontier(
        cpv.MinimumDistortion(many, HAMMING, [cpv.RecordEntropy(2)], laws={"2025": few}),
        "record_entropy", points=[2.0, 5.0],
    )  # fmt: skip
    assert curve.outer(3.0) <= curve.inner(3.0)


@pytest.mark.long
def test_many_values_of_w_are_stated_in_little_time() -> None:
    """Costs that are the same for all outputs are multiplied once for each letter."""
    rng = np.random.default_rng(0)
    a, b = sources(*(rng.integers(1, 30, (5, 60)) for _ in range(2)))
    rules = [cpv.DeltaDisclosure(1.0)]
    problem = cpv.PrivacyDistortion(a, cpv.hamming(60), budget=0.3, laws=[b], criteria=rules)
    assert len(problem.program.constraints) == 2 + 2 * 10
