"""The most useful release: closed forms, and what others find."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

import cvxprivacy as cpv
from cvxprivacy.formulations.optimal_face import entry_range
from cvxprivacy_verifier import useful_proof, work
from tests.lengths import rest_at_length, seeds, some_at_length

L = cpv.leakage
PAIR = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])


def subset_selection(n: int, epsilon: float) -> float:
    """Return what the best subset selection tells of n letters that are equally likely."""
    values = []
    for k in range(1, n):
        w = k * math.exp(epsilon) + n - k
        kept = k * math.exp(epsilon) / w * math.log(math.exp(epsilon) / w)
        values.append(math.log(n) + kept + (n - k) / w * math.log(1 / w))
    return max(values)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 4, 7])
def test_of_equally_likely_letters_it_is_subset_selection(n, epsilon):
    source = cpv.DiscreteSource.identical([Fraction(1, n)] * n)
    rule = cpv.LocalPrivacy(epsilon)
    solution = cpv.MostUsefulRelease(source, [rule], units="nats").solve(accuracy="high")
    assert solution.status == "certified"
    truth = subset_selection(n, epsilon)
    assert solution.lower - 1e-12 <= truth <= solution.upper + 1e-12
    ratios = solution.channel.matrix.max(axis=0) / solution.channel.matrix.min(axis=0)
    assert ratios.max() <= math.exp(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(
    "measure", rest_at_length([L.MutualInformation(), L.ChiSquared(), L.TotalVariation()], 1)
)
def test_of_more_letters_than_rays_are_looked_at_of_it_is_subset_selection_too(measure):
    n, ratio = 30, math.exp(1.5)
    source = cpv.DiscreteSource.identical([Fraction(1, n)] * n)
    rule = cpv.LocalPrivacy(1.5)
    solution = cpv.MostUsefulRelease(source, [rule], utility=measure, units="nats").solve()
    rays = np.where(np.tri(n, n, -1, dtype=bool), ratio, 1.0)  # of each size
    rays /= rays.mean(axis=1, keepdims=True)
    truth = measure.value(rays.T / n, np.full(n, 1 / n)).max()
    assert solution.status == "certified"
    assert solution.lower - 1e-9 <= truth <= solution.upper + 1e-12
    assert solution.gap <= 1e-8
    if measure == L.MutualInformation():
        assert truth == pytest.approx(subset_selection(n, 1.5), abs=1e-12)


@pytest.mark.parametrize("seed", seeds(20, 3))
@pytest.mark.parametrize("spends", [False, True])
def test_columns_are_priced_as_all_of_them_are_looked_at(seed, spends, monkeypatch):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    source = cpv.DiscreteSource.identical(rng.dirichlet(np.ones(n)))
    budget = float(1 - source.p_x.max())  # of a constant
    spent = {"distortion": cpv.hamming(n), "budget": budget} if spends else {}
    measure = [L.MutualInformation(), L.ChiSquared(), L.TotalVariation()][seed % 3]
    rule = cpv.LocalPrivacy(float(rng.uniform(0.8, 4)))
    looked = cpv.MostUsefulRelease(source, [rule], utility=measure, **spent).solve()
    for place in (useful_proof, work):
        monkeypatch.setattr(place, "LISTED", 1)
    priced = cpv.MostUsefulRelease(source, [rule], utility=measure, **spent).solve()
    assert priced.lower <= looked.upper + 1e-12
    assert looked.lower <= priced.upper + 1e-12
    assert priced.gap <= 1e-6
    assert priced.value == pytest.approx(looked.value, abs=1e-7)


@pytest.mark.parametrize("measure", [L.MutualInformation(), L.ChiSquared(), L.TotalVariation()])
@pytest.mark.parametrize("epsilon", some_at_length([1e-9, 0, 15, 30, 100, 600], 3))
def test_of_many_letters_ends_are_near_whatever_is_promised(epsilon, measure):
    """Of γ = e¹⁰⁰ what λ lacked in rounding was γ times the answer; of γ = 1 M is no number."""
    if measure == L.ChiSquared():
        epsilon = min(epsilon, 30)  # of a larger γ the balls of M are wider than what is told
    source = cpv.DiscreteSource.identical(np.random.default_rng(1).dirichlet(np.ones(22)))
    rules = [cpv.LocalPrivacy(epsilon)]
    solution = cpv.MostUsefulRelease(source, rules, utility=measure).solve()
    assert 0 <= solution.gap < 1e-6 * max(1.0, solution.value)
    if epsilon > 30:  # X itself
        p = source.p_x
        parts = measure.value(np.diag(p), p).sum()
        everything = cpv.information.entropy(p) if measure.in_units else parts
        assert solution.value == pytest.approx(everything, rel=1e-9)
    assert epsilon or solution.value == 0


@pytest.mark.long
def test_of_many_letters_a_gap_that_remains_is_told():
    source = cpv.DiscreteSource.identical(np.random.default_rng(1).dirichlet(np.ones(22)))
    solution = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(2)]).solve()
    assert 0 < solution.gap < 1e-5 * solution.value
    assert solution.certificate.verify()
    for few in (8, 12):  # merged letters cannot tell more
        law = [*source.p_x[: few - 1], source.p_x[few - 1 :].sum()]
        merged = cpv.DiscreteSource.identical(law)
        assert cpv.MostUsefulRelease(merged, [cpv.LocalPrivacy(2)]).solve().lower < solution.upper


def test_of_many_letters_what_would_look_at_all_corners_is_refused():
    source = cpv.DiscreteSource.identical(np.random.default_rng(1).dirichlet(np.ones(22)))
    with pytest.raises(cpv.InputError, match="weights of rays"):
        _ = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(2)]).problem
    for options in ({"about": "w"}, {"utility": L.GuessingProbability()}):
        coarse = cpv.DiscreteSource(np.vstack([source.p_x / 2, source.p_x[::-1] / 2]))
        with pytest.raises(cpv.InputError, match="22 letters, where 20 are the most, unless"):
            cpv.MostUsefulRelease(coarse, [cpv.LocalPrivacy(2)], **options).solve()


@given(p=st.floats(0.05, 0.95), epsilon=st.floats(0.05, 4))
@settings(max_examples=12, deadline=None)
def test_of_two_letters_it_is_randomised_response(p, epsilon):
    """Whatever the law, the ε and the measure (Kairouz, Oh and Viswanath, Theorem 18)."""
    source = cpv.DiscreteSource.identical([p, 1 - p])
    stay = 1 / (1 + math.exp(-epsilon))
    response = np.array([[stay, 1 - stay], [1 - stay, stay]])
    for measure in (L.MutualInformation(), L.ChiSquared(), L.TotalVariation()):
        problem = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(epsilon)], utility=measure)
        solution = problem.solve()
        joint = np.array([p, 1 - p])[:, None] * response
        truth = measure.value(joint, np.array([p, 1 - p])).sum() * measure.unit("bits")
        assert solution.lower - 1e-9 <= truth <= solution.upper + 1e-9


def vertices(rows):
    """Return the vertices of {c ≥ 0: rows c ≤ 0, Σ c = 1}, by halfspaces that meet."""
    n = rows.shape[1]
    # c = (u, 1 − Σ u)
    last = np.vstack([np.eye(n - 1), -np.ones(n - 1)])
    offset = np.append(np.zeros(n - 1), 1.0)
    walls = np.vstack([rows, -np.eye(n)])
    halfspaces = np.column_stack([walls @ last, walls @ offset])
    inside = np.full(n - 1, 1 / n)
    points = HalfspaceIntersection(halfspaces, inside).intersections
    return points @ last.T + offset


def best(columns, values):
    return -linprog(-values, A_eq=columns.T, b_eq=np.ones(columns.shape[1])).fun


@pytest.mark.parametrize("seed", seeds(30, 4))
def test_of_rules_about_w_it_is_the_linear_program_of_all_vertices(seed):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(8)).reshape(2, 4)
    epsilon, both = float(rng.uniform(0.1, 0.6)), seed % 2
    kind = cpv.LocalInformationPrivacy if both else cpv.PointwiseMaximalLeakage
    p_w, p_x = law.sum(axis=1), law.sum(axis=0)
    rows = [law - math.exp(epsilon) * np.outer(p_w, p_x)]
    rows += [math.exp(-epsilon) * np.outer(p_w, p_x) - law] if both else []
    columns = vertices(np.vstack(rows))
    for measure in (L.ChiSquared(), L.GuessingProbability(), L.MutualInformation()):
        problem = cpv.MostUsefulRelease(
            cpv.DiscreteSource(law), [kind(epsilon)], utility=measure, units="nats"
        )
        solution = problem.solve()
        joint = p_x[:, None] * columns.T
        if isinstance(measure, L.GuessingProbability):
            values = joint.max(axis=0)
        else:
            values = measure.value(joint, p_x)
        assert solution.status == "certified"
        assert solution.value == pytest.approx(best(columns, values), abs=1e-7)


def test_it_attains_what_no_random_private_channel_does():
    rng = np.random.default_rng(2)
    solution = cpv.MostUsefulRelease(PAIR, [cpv.LocalPrivacy(0.8)], units="nats").solve()
    tried = 0
    for _ in range(300):
        channel = rng.dirichlet(np.ones(3)) * np.exp(rng.uniform(-0.4, 0.4, (3, 3)))
        channel /= channel.sum(axis=1, keepdims=True)
        if (channel.max(axis=0) / channel.min(axis=0)).max() > math.exp(0.8):
            continue
        tried += 1
        joint = PAIR.pmf.sum(axis=0)[:, None] * channel
        value = cpv.information.mutual_information(joint, units="nats")
        assert value <= solution.upper + 1e-12
    assert tried > 100


def test_what_is_useful_may_be_another_attribute():
    law = np.random.default_rng(5).dirichlet(np.ones(12)).reshape(4, 3)
    source = cpv.DiscreteSource(law, w=[("a", 1), ("a", 2), ("b", 1), ("b", 2)])
    rules = [cpv.LocalPrivacy(1)]
    values = {
        about: cpv.MostUsefulRelease(source, rules, about=about, units="nats").solve().value
        for about in ("x", "w", "0", ("0", "1"))
    }
    assert values["w"] == pytest.approx(values["0", "1"], abs=1e-9)
    assert values["0"] < values["w"] < values["x"]
    part = cpv.DiscreteSource(law.reshape(2, 2, 3).sum(axis=1))
    alone = cpv.MostUsefulRelease(part, rules, about="w", units="nats").solve()
    assert values["0"] == pytest.approx(alone.value, abs=1e-9)
    corners = np.array(list(product((1.0, math.e), repeat=3)))
    corners /= corners @ law.sum(axis=0)[:, None]
    joint = part.pmf @ corners.T
    measured = L.MutualInformation().value(joint, part.pmf.sum(axis=1))
    assert alone.value == pytest.approx(best(corners, measured), abs=1e-9)


def test_a_budget_costs_what_is_useful():
    d = cpv.hamming(3)
    rules, least = [cpv.LocalPrivacy(2)], []
    bare = cpv.MostUsefulRelease(PAIR, rules).solve()
    floor = cpv.MinimumDistortion(PAIR, d, rules).solve()
    for share in (0.001, 0.01, 0.1, 1.0):
        budget = floor.value + share * (0.6 - floor.value)
        problem = cpv.MostUsefulRelease(PAIR, rules, distortion=d, budget=budget)
        solution = problem.solve()
        assert solution.status == "certified"
        assert solution.distortion.upper <= budget
        assert {label for label, _ in solution.channel.outputs} <= set(PAIR.x)
        least.append(solution.value)
        assert solution.certificate.verify()
    assert all(later >= sooner - 1e-6 for sooner, later in pairwise(least))  # as they are proved
    assert least[-1] <= bare.upper
    with pytest.raises(cpv.InfeasibleError, match="budget would have to be at least"):
        cpv.MostUsefulRelease(PAIR, rules, distortion=d, budget=floor.lower * 0.9).solve()


def test_cvxpy_solves_the_same_linear_program():
    for rules in ([cpv.LocalPrivacy(1)], [cpv.PointwiseMaximalLeakage(0.3)]):
        problem = cpv.MostUsefulRelease(PAIR, rules, distortion=cpv.hamming(3), budget=0.55)
        solution = problem.solve()
        assert problem.problem.solve() == pytest.approx(solution.value, abs=1e-6)
        assert set(problem.constraints) == {"mass", "budget"}
        dual = problem.constraints["budget"].dual_value
        assert float(dual) == pytest.approx(solution.duals["budget"], abs=1e-5)
    assert r"\max" in problem.latex
    assert r"\max" in problem.latex_expanded
    assert r"\min" in problem.dual_latex


def test_a_candidate_is_told_how_far_it_is():
    source = cpv.DiscreteSource.identical([0.25] * 4)
    problem = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(0.3)])
    stay = math.exp(0.3) / (math.exp(0.3) + 3)
    response = np.full((4, 4), (1 - stay) / 3) + np.eye(4) * (stay - (1 - stay) / 3)
    answer = problem.certify(response)
    assert answer.status == "loose"
    assert answer.upper == pytest.approx(subset_selection(4, 0.3) / math.log(2))
    assert problem.certify(problem.solve().channel).status == "certified"
    with pytest.raises(cpv.InputError, match="leave them out"):
        problem.certify(response, {})


def test_letters_without_mass_keep_the_rule():
    source = cpv.DiscreteSource.identical([0.5, 0.0, 0.5])
    channel = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1)]).solve().channel
    assert len(channel.inputs) == 3
    pairs = combinations(channel.matrix, 2)
    assert all((a <= math.e * b + 1e-12).all() for a, b in pairs)


@pytest.mark.parametrize("rule", [
    cpv.LeakageCap(0.1), cpv.LocalPrivacy(1, delta=0.1), cpv.MaximalLeakage(0.5),
    cpv.PerfectPrivacy(), cpv.PointwiseMaximalLeakage(0),
    cpv.KeepProbability(0.5), cpv.TCloseness(0.1), cpv.PreserveMarginal(),
])  # fmt: skip
def test_rules_of_all_outputs_together_are_refused(rule):
    with pytest.raises(cpv.InputError, match="not linear in every output by itself"):
        cpv.MostUsefulRelease(PAIR, [rule])


def test_what_it_cannot_do_is_refused():
    rules = [cpv.LocalPrivacy(1)]
    problem = cpv.MostUsefulRelease(PAIR, rules)
    with pytest.raises(cpv.InputError, match="pass both"):
        cpv.MostUsefulRelease(PAIR, rules, budget=0.1)
    with pytest.raises(cpv.InputError, match="no hidden attribute"):
        cpv.MostUsefulRelease(PAIR, rules, about="age").solve()
    with pytest.raises(cpv.InputError, match="no convex function"):
        cpv.frontier(problem, "local_privacy")
    with pytest.raises(cpv.InputError, match="a problem that minimises"):
        entry_range(problem, 0, 0)
    many = cpv.DiscreteSource.identical([1 / 101] * 101)
    with pytest.raises(cpv.InputError, match="100 are the most"):
        cpv.MostUsefulRelease(many, rules).solve()
    wide = cpv.DiscreteSource(np.ones((12, 20)) / 240)
    with pytest.raises(cpv.InputError, match="merge letters of x"):
        cpv.MostUsefulRelease(wide, [cpv.LocalInformationPrivacy(0.1)]).solve()


@pytest.mark.parametrize("option", [
    {"method": "conic"}, {"solver": "SCS"}, {"solver_options": {"max_iter": 3}},
])  # fmt: skip
def test_a_choice_of_solver_is_refused(option):
    problem = cpv.MostUsefulRelease(PAIR, [cpv.LocalPrivacy(1)])
    with pytest.raises(cpv.InputError, match=r"one solver.*accuracy=, time_limit="):
        problem.solve(**option)
    assert problem.solve(method="auto", solver="clarabel", solver_options={}).status == "certified"


@pytest.mark.parametrize("about", [None, 5, [], [1], "age", ("x", "w")])
def test_what_is_useful_is_named_where_it_is_wrong(about):
    with pytest.raises(cpv.InputError) as refused:
        cpv.MostUsefulRelease(PAIR, [cpv.LocalPrivacy(1)], about=about).solve()
    assert refused.value.argument == "about"


@pytest.mark.parametrize("source", [None, [PAIR, PAIR]])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(cpv.InputError, match="pass a DiscreteSource"):
        cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1)])


def test_a_constraint_that_is_added_is_of_every_output_by_itself_too():
    problem = cpv.MostUsefulRelease(PAIR, [cpv.LocalPrivacy(1)])
    for row in (problem.risk <= 0.01, problem.risk.each() <= 0.01):
        with pytest.raises(cpv.InputError, match=r"criteria\[mine\].*funnel"):
            problem.with_constraint("mine", row)
    with pytest.raises(cpv.InputError, match="weights of rays"):
        problem.with_constraint("mine", problem.variables["alpha"][0, 0] <= 0.1)


def test_a_side_information_that_nobody_uses_adds_no_outputs():
    source = cpv.DiscreteSource(np.ones((2, 2, 2)) / 8)
    assert cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1)]).program.m == 2


def test_another_number_is_another_problem():
    problem = cpv.MostUsefulRelease(PAIR, [cpv.LocalPrivacy(1)])
    values = [problem.at(local_privacy=e).solve().value for e in (0.5, 1, 2)]
    assert values == sorted(values)
    solution = problem.solve()
    assert solution.certificate.proves(problem)
    assert not solution.certificate.proves(problem.at(local_privacy=2))
