"""Closed forms, contradictions and facial reduction, on programs small enough to know."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.side_conditions import Auxiliary
from cvxprivacy.solvers import presolve
from cvxprivacy.solvers.driver import solve
from tests.lengths import rest_at_length, some_at_length
from tests.programs.test_channel import base, certified, cost, labels_of_w

RISK = Expression("risk", {"W": 1.0})
TIES = (
    np.floor(2 * cost(4)) + np.arange(4.0)[:, None]
)  # several cheapest moves: the face is no single channel


def by_rel_entr(program: ChannelProgram, extra=lambda q: []) -> float:
    """State the program independently, by CVXPY's rel_entr atom and in conditional form."""
    p = program.law.sum(axis=0) / program.law.sum()
    k = cp.Variable((program.n, program.m), nonneg=True)
    q = cp.multiply(p[:, None], k)
    phis = {}
    for name, view in program.views.items():
        law = program.law / program.law.sum()
        matrix = np.zeros((view.size, program.n))
        np.add.at(matrix, (view.labels, np.broadcast_to(np.arange(program.n), law.shape)), law)
        pi = matrix.sum(axis=1, keepdims=True)
        j = matrix @ k
        other = (pi / pi.sum()) @ cp.sum(j, axis=0, keepdims=True)
        phis[name] = cp.sum(cp.rel_entr(j, other), axis=0)

    def term(t: Expression):
        value = cp.Constant(np.zeros(program.m))
        for view, weight in t.weights.items():
            value = value + cp.multiply(np.broadcast_to(weight, program.m), phis[view])
        if t.cost is not None:
            value = value + cp.sum(cp.multiply(t.cost, q), axis=0)
        return value

    rows = [cp.sum(k, axis=1) == 1]
    for row in program.constraints.values():
        left = term(row.expression) if row.per_output else cp.sum(term(row.expression))
        rows.append(
            left == row.bounds(program.m) if row.sense == "==" else left <= row.bounds(program.m)
        )
    if program.lower is not None:
        rows.append(k >= program.lower)
    if program.upper is not None:
        rows.append(k <= program.upper)
    problem = cp.Problem(cp.Minimize(cp.sum(term(program.objective))), rows + extra(k))
    problem.solve(solver="CLARABEL")
    return problem.value


def agree(program: ChannelProgram, extra=lambda k: []) -> None:
    certificate = certified(program)
    other = by_rel_entr(program, extra)
    assert certificate.lower - 1e-6 <= other <= certificate.upper + 1e-6


def lifted(program, **options):
    """Solve by facial reduction; its multipliers must lose nothing on the way back."""
    reduction = presolve.facial_reduction(program)
    inner = solve(reduction.program, accuracy="high").certificate
    outcome = solve(program, accuracy="high", **options)
    certificate = outcome.certificate
    assert outcome.log[0] == f"closed form: {reduction.name} leaves a face"
    assert outcome.edges == ([reduction.name] if reduction.edge else [])
    assert certificate.status == "certified"
    assert certificate.verify()
    dual = next(reduction.duals(inner.dual))
    assert dual.lower_bound(program) == pytest.approx(inner.lower, abs=1e-9)
    return reduction, certificate


# ---- facial reduction --------------------------------------------------------------------


def test_a_least_budget_leaves_the_cheapest_moves():
    program = base(4)
    masses = program.law.sum(axis=0)
    least = Fraction(int(masses @ TIES.min(axis=1)), int(masses.sum()))
    cheapest = TIES.min(axis=1, keepdims=True) == TIES
    assert (cheapest.sum(axis=1) > 1).any()
    at_least = replace(program, constraints={"budget": Expression("d", cost=TIES) <= least})
    reduction, certificate = lifted(at_least)
    assert not reduction.program.constraints
    assert (reduction.program.upper == cheapest).all()
    assert (certificate.primal.matrix[~cheapest] == 0).all()
    agree(replace(program, upper=cheapest.astype(float)))
    above = replace(
        program, constraints={"budget": Expression("d", cost=TIES) <= float(least) + 1e-6}
    )
    assert presolve.facial_reduction(above) is None


@pytest.mark.parametrize("per_output", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_no_information_is_independence(per_output, share):
    """With a weight of the same view in the objective the posteriors are lifted too."""
    distortion = Expression("d", cost=cost(5, 5))
    term = RISK.each() if per_output else RISK
    program = base(
        5, x=5, objective=distortion + share * RISK, constraints={"closeness": term <= 0}
    )
    reduction, certificate = lifted(program)
    assert all(row.sense == "==" for row in reduction.program.constraints.values())
    n, m = program.n, program.m
    matrix = program.view_matrix("W").toarray()
    independent = matrix - program.prior("W")[:, None] * matrix.sum(axis=0)
    sums = np.kron(np.eye(n), np.ones(m)), np.kron(independent, np.eye(m))
    expected = linprog(
        (program.mass[:, None] * cost(5, 5)).ravel(),
        A_eq=np.vstack(sums),
        b_eq=np.concatenate([np.ones(n), np.zeros(len(sums[1]))]),
    )
    assert certificate.lower - 1e-8 <= expected.fun <= certificate.upper + 1e-8


@pytest.mark.parametrize("off", [1e-9, 1e-5, 1e-2])
def test_a_contradiction_of_the_face_is_one_of_the_program(off):
    """No λ loses nothing where multipliers are not attained; half of it is enough."""
    silent = base(5, x=5, objective=Expression("d", cost=cost(5, 5)), constraints={"t": RISK <= 0})
    least = solve(silent, accuracy="high").certificate.lower
    budget = Expression("d", cost=cost(5, 5)) <= least - off
    program = replace(silent, constraints={**silent.constraints, "budget": budget})
    reduction = presolve.facial_reduction(program)
    inner = solve(reduction.program).certificate
    assert inner.status == "infeasible"
    dual = next(reduction.duals(inner.dual))
    assert dual.objective == 0
    prover = Prover(program)
    assert prover.offer_dual(dual)
    assert prover.certificate().status == "infeasible"
    assert prover.certificate().verify()


def ratio_program(**parts):
    return base(
        objective=Expression("d", cost=cost(6)),
        auxiliaries={"ldp": Auxiliary("ratio", 3.0, 1e-15)},
        **parts,
    )


def test_a_forbidden_move_under_bounded_ratios_forbids_its_output():
    upper = np.ones((4, 4))
    upper[1, 2] = upper[3, 0] = 0
    reduction, certificate = lifted(ratio_program(upper=upper))
    assert (reduction.program.upper == [0, 1, 0, 1]).all()
    assert (certificate.primal.matrix[:, [0, 2]] == 0).all()
    agree(ratio_program(upper=upper), lambda k: [k <= 3 * k[[s] * 4, :] for s in range(4)])


def test_a_floor_on_such_an_output_is_a_contradiction():
    upper, lower = np.ones((4, 4)), np.zeros((4, 4))
    upper[1, 2], lower[0, 2] = 0, 0.1
    program = ratio_program(upper=upper, lower=lower)
    assert presolve.facial_reduction(program) is None
    certificate = solve(program).certificate
    assert certificate.status == "infeasible"
    assert certificate.verify()


# ---- just feasible, and just not ---------------------------------------------------------


def budgets(least: Fraction):
    """Yield budgets next to the least there is, as floats and as they are."""
    parts = (0, Fraction(1, 10**12), Fraction(-1, 10**12), Fraction(1, 10**9), Fraction(-1, 10**9))
    for part in parts:
        yield least * (1 + part)
        yield float(least * (1 + part))
    yield np.nextafter(float(least), 0.0)
    yield np.nextafter(float(least), 9.0)


FLOORS = [
    [],
    [cpv.KeepProbability([0.1, 0.2, 0.3, 0.9]), cpv.ForbiddenMoves(np.eye(4, k=2, dtype=bool))],
    *([cpv.KeepProbability(p)] for p in (Fraction(1, 3), 1 - 1e-12, 0.3, 1e-12, 1)),
]


@pytest.mark.parametrize("size", rest_at_length([1e-12, 1.0, 1e12], 1))
@pytest.mark.parametrize("floors", rest_at_length(FLOORS, 2), ids=repr)
def test_next_to_the_least_budget_it_is_certified_or_proved_to_be_infeasible(floors, size):
    counts = np.random.default_rng(7).integers(1, 30, (3, 4))
    d = (cost(7) + 0.1) * size
    source = cpv.DiscreteSource.from_counts(counts)
    problem = cpv.PrivacyDistortion(source, d, budget=99 * size, criteria=floors)
    least = exactly_least(problem.program, d)
    for budget in budgets(least):
        solution = problem.at(budget=budget).solve(certify=False)
        proved = "certified" if Fraction(budget) >= least else "infeasible"
        allowed = {proved}
        if floors and 0 < least - Fraction(budget) < least * 2**-52:
            allowed.add("uncertified")  # a proof's thresholds are floats
        assert solution.status in allowed, (budget, least)
        assert solution.certificate.verify()


def exactly_least(program: ChannelProgram, d: np.ndarray) -> Fraction:
    """Fill the cheapest outputs first, in rationals."""
    total = Fraction(0)
    low = np.zeros((4, 4)) if program.lower is None else program.lower
    high = np.ones((4, 4)) if program.upper is None else program.upper
    for s, mass in enumerate(program.law.sum(axis=0)):
        floors, caps = [Fraction(x) for x in low[s]], [Fraction(x) for x in high[s]]
        left = 1 - sum(floors)
        for y in np.argsort(d[s]):
            move = min(left, caps[y] - floors[y])
            total += Fraction(mass) * Fraction(d[s, y]) * (floors[y] + move)
            left -= move
    return total / Fraction(program.law.sum())


# ---- constant channels alone -------------------------------------------------------------

KINDS = pytest.mark.parametrize("kind", ["ratio", "maximum"])


def constants_only(kind: str, seed: int = 6, **parts) -> ChannelProgram:
    parts.setdefault("objective", Expression("d", cost=cost(seed)))
    return base(auxiliaries={"silent": Auxiliary(kind, 1.0)}, **parts)


def of_constants(program: ChannelProgram) -> float:
    """Solve the linear program over the law of the output, stated independently."""
    p = program.mass

    def column(term):
        return p @ program.cost(term)

    sides: dict[str, list] = {"<=": [], "==": []}
    for row in program.constraints.values():
        lines = np.diag(column(row.expression)) if row.per_output else column(row.expression)[None]
        sides[row.sense] += list(
            zip(lines, np.broadcast_to(row.bounds(4), len(lines)), strict=True)
        )
    sides["=="].append((np.ones(4), 1.0))
    low = 0.0 if program.floor is None else program.floor.max(axis=0)
    high = 1.0 if program.ceiling is None else program.ceiling.min(axis=0)
    box = np.broadcast_arrays(low, high, np.zeros(4))[:2]
    outcome = linprog(
        column(program.objective),
        *(np.array(x) if len(x) else None for side in sides.values()
          for x in ([a for a, _ in side], [b for _, b in side])),
        bounds=np.transpose(box),
    )  # fmt: skip
    return outcome.fun if outcome.status == 0 else np.inf


RULES = {
    "nothing": {},
    "floors": {"lower": np.diag([0.3, 0.1, 0.2, 0.15])},
    "fractions": {"lower": np.diag([Fraction(1, 3), Fraction(0), Fraction(1, 7), Fraction(1, 2)])},
    "a forbidden move": {"upper": 1.0 - np.eye(4)[[1, 1, 1, 1]] * np.eye(4)[0][:, None]},
    "a mean": {"constraints": {"mean": Expression(cost=np.tile(np.arange(4.0), (4, 1))) == 1.3}},
    "a law": {"constraints": {"law": Expression(cost=np.ones((4, 4))).each()
                              == [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3), Fraction(0)]}},
    "two rows": {"constraints": {"a": Expression(cost=cost(8)) <= 0.5,
                                 "b": Expression(cost=cost(9)) <= 0.465}},
    "information": {"constraints": {"closeness": RISK.each() <= 0, "risk": RISK <= 0.1}},
}  # fmt: skip


@KINDS
@pytest.mark.parametrize("rules", some_at_length(RULES.values(), 4), ids=RULES)
def test_where_constants_alone_are_allowed_the_best_is_found_in_closed_form(rules, kind):
    for share in (0.0, 0.7):
        objective = Expression("d", cost=cost(6)) + share * RISK
        program = constants_only(kind, objective=objective, **rules)
        linear = {k: row for k, row in program.constraints.items() if row.linear}
        truth = of_constants(replace(program, constraints=linear))
        outcome = solve(program, accuracy="high")
        certificate = outcome.certificate
        assert outcome.log == [
            "closed form: silent leaves a face", "closed form: no constraint binds"
        ]  # fmt: skip
        assert outcome.edges == []
        assert certificate.status == "certified"
        assert certificate.verify()
        assert certificate.gap <= 1e-13
        assert certificate.upper == pytest.approx(truth, abs=1e-9)
        numerators = certificate.primal.numerators
        assert (numerators == numerators[0]).all()


@KINDS
def test_rules_that_no_constant_satisfies_are_a_contradiction(kind):
    a, b = Expression(cost=cost(8)), Expression(cost=-cost(8))
    best = float((base().mass @ cost(8)).min())
    for rows in ({"a": a <= best - 1e-7}, {"a": a <= 0.4, "b": b <= -0.45}, {"a": a == 2.0}):
        outcome = solve(constants_only(kind, constraints=rows))
        assert outcome.log == ["closed form: infeasible"]
        assert outcome.certificate.verify()
    other = solve(base(constraints={"a": a <= best - 1e-7}, objective=a)).certificate
    assert other.status == "certified"  # of other channels


@KINDS
def test_next_to_constants_the_program_is_solved_as_any_other(kind):
    program = base(
        objective=Expression("d", cost=cost(6)), auxiliaries={"silent": Auxiliary(kind, 1.0, 1e-15)}
    )
    assert presolve.facial_reduction(program) is None
    assert presolve.facial_reduction(constants_only(kind)) is not None


@pytest.mark.parametrize("criterion", [cpv.MaximalLeakage, cpv.LocalPrivacy])
@pytest.mark.parametrize("side", some_at_length([None, "decoder", "both"], 2))
def test_a_release_that_tells_nothing_beside_z(criterion, side):
    """Also where Z tells something by itself: what is known beforehand is no constant's fault."""
    law = np.random.default_rng(5).dirichlet(np.ones(18)).reshape(2, 3, 3)
    problem = cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(law), cost(4, 3, 3), minimize={"distortion": 1.0, "leakage": 0.5},
        side_information=side, criteria=[criterion(0), cpv.LeakageCap(2.0)],
    )  # fmt: skip
    solution = problem.solve(accuracy="high")
    assert solution.status == "certified"
    assert solution.certificate.verify()
    assert not any("path" in line or "CLARABEL" in line for line in solution.log)


# ---- what needs no solver ----------------------------------------------------------------


def test_contradictions_are_of_one_row_or_of_the_entries():
    least = float((base().mass * cost(1).min(axis=1)).sum())
    term = Expression("d", cost=cost(1))
    both = {"other": term <= least + 1e-3, "budget": term <= least - 1e-6}
    (dual,) = presolve.contradictions(base(constraints=both))
    assert dual.objective == 0
    assert float(dual.multipliers["budget"]) > 0
    assert not dual.multipliers.get("other")
    for entries in ({"lower": np.full((4, 4), 0.3)}, {"upper": np.full((4, 4), 0.2)}):
        assert len(presolve.contradictions(base(**entries))) == 1
        assert solve(base(**entries)).log == ["closed form: infeasible"]
    assert presolve.contradictions(base(constraints={"budget": term <= least + 1e-6})) == []


@pytest.mark.parametrize("off", [-1e-6, 1e-6])
def test_what_an_observer_knows_beforehand_cannot_be_capped(off):
    """The view sees the first letters alone, and compares with the law of all."""
    law = base().law
    labels = labels_of_w(law)
    partial = np.where(np.arange(law.shape[1]) < 2, labels, -1)
    recorded, all_ = law[:, :2].sum(axis=1), law.sum(axis=1)
    share, prior, reference = (
        recorded.sum() / law.sum(),
        recorded / recorded.sum(),
        all_ / all_.sum(),
    )
    expected = float(share * (prior * np.log(prior / reference)).sum())
    program = base(
        views={"P": View(partial, labels), "W": View(labels)},
        constraints={"cap": Expression("partial", {"P": 1.0}) <= expected + off},
    )
    certificate = solve(program).certificate
    assert bool(presolve.contradictions(program)) == (off < 0)
    assert (certificate.status == "infeasible") == (off < 0)
    assert certificate.verify()


def test_beyond_the_greatest_distortion_nothing_is_revealed():
    term = Expression("d", cost=cost(2))
    most = float((base().mass @ cost(2)).min())
    channel, dual = presolve.constant(base(constraints={"budget": term <= most + 1e-9}))
    assert (channel == channel[0]).all()
    assert dual.lower_bound(base()) == 0
    assert presolve.constant(base(constraints={"budget": term <= most - 1e-3})) is None
    outcome = solve(base(constraints={"budget": term <= most + 1e-9}))
    assert outcome.log == ["closed form: no constraint binds"]
    assert outcome.certificate.lower == 0 <= outcome.certificate.upper <= 1e-12


def test_where_information_is_free_each_letter_moves_as_it_costs_least():
    program = base(objective=Expression("d", cost=cost(2)))
    channel, _ = presolve.constant(program)
    assert (channel.argmax(axis=1) == cost(2).argmin(axis=1)).all()
    assert solve(program).certificate.status == "certified"


# ---- strictly feasible -------------------------------------------------------------------


def test_a_tightened_program_has_room_in_every_inequality():
    term = Expression("d", cost=cost(3))
    rows = {
        "budget": term <= 0.5,
        "risk": RISK <= 0.2,
        "each": Expression("t", {"W": 1.0}, cost=np.full((4, 4), -0.3)).each() <= 0,
        "kept": Expression("k", cost=np.tile(np.arange(4.0), (4, 1))) == 1.5,
    }
    auxiliaries = {"ldp": Auxiliary("ratio", 3.0), "leak": Auxiliary("maximum", 2.0)}
    program = base(constraints=rows, auxiliaries=auxiliaries)
    tighter = presolve.tightened(program, 0.1)
    channel = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    span = {"budget": np.ptp(cost(3)), "risk": 1.0, "each": 0.3 * (program.mass @ channel)}
    for name, row in rows.items():
        other = tighter.constraints[name]
        room = (
            program.columns(other.expression, channel) - program.columns(row.expression, channel)
            if row.per_output
            else row.bounds(4) - other.bounds(4)
        )
        assert room == pytest.approx(0.1 * span.get(name, 0.0), abs=1e-12)
    assert tighter.auxiliaries["ldp"].bound == pytest.approx(2.8)
    assert tighter.auxiliaries["leak"].bound == pytest.approx(1.9)
