"""The channel program beyond one view and one budget: every kind of row, and the auxiliaries."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from cvxprivacy.errors import InputError
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Auxiliary, Constraint, Expression, Minimize
from cvxprivacy.programs.parameter import Scalar
from cvxprivacy.proving.certificate import Prover
from cvxprivacy.results.prices import prices
from cvxprivacy.solvers.driver import solve


def labels_of_w(law: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(law))[:, None], law.shape[1], axis=1)


def base(seed: int = 0, w: int = 3, x: int = 4, y: int = 4, **parts) -> ChannelProgram:
    rng = np.random.default_rng(seed)
    law = rng.integers(1, 30, (w, x)).astype(float)
    return ChannelProgram(
        law,
        y,
        views=parts.pop("views", {"W": View(labels_of_w(law))}),
        objective=parts.pop("objective", Minimize(Expression("risk", {"W": 1.0}))),
        terms={"risk": Expression("risk", {"W": 1.0})},
        units=parts.pop("units", "nats"),
        **parts,
    )


def cost(seed: int, n: int = 4, m: int = 4) -> np.ndarray:
    return np.random.default_rng([seed, 9]).random((n, m))


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


def certified(program: ChannelProgram, width: float = 1e-7):
    certificate = solve(program, accuracy="high").certificate
    assert certificate.gap <= width, certificate
    assert certificate.verify()
    return certificate


def agree(program: ChannelProgram, extra=lambda k: []) -> None:
    certificate = certified(program)
    other = by_rel_entr(program, extra)
    assert certificate.lower - 1e-6 <= other <= certificate.upper + 1e-6


# ---- each part of the program against an independent statement ---------------------------


@pytest.mark.parametrize("seed", range(3))
def test_several_views_in_objective_and_rows(seed):
    """Rate view (identity on S) in a row, leakage in the objective, distortion besides."""
    program = base(seed)
    rate = View(np.repeat(np.arange(4)[None], 3, axis=0))
    views = {"W": program.views["W"], "S": rate}
    information = -sum(p * math.log(p) for p in program.mass)
    rows = {
        "budget": Expression("distortion", cost=cost(seed)) <= 0.45,
        "rate": Expression("rate", {"S": 1.0}) <= 0.3 * information,
    }
    agree(replace(program, views=views, constraints=rows))
    weighted = Minimize(Expression("both", {"W": 1.0, "S": 0.25}))
    agree(replace(program, views=views, constraints={"budget": rows["budget"]}, objective=weighted))


@pytest.mark.parametrize("seed", range(3))
def test_one_row_per_output(seed):
    """Φ_W(y) ≤ t q(y): no letter reveals more than t (Bezzi 2010, eq. 8)."""
    away = cost(seed) * (1 - np.eye(4))
    program = base(seed, objective=Minimize(Expression("distortion", cost=away)))
    t = 0.01
    risk, mass = Expression("closeness", {"W": 1.0}), Expression("mass", cost=np.ones((4, 4)))
    row = risk.each() <= Scalar.named(t, "t") * mass.each()
    program = replace(program, constraints={"t": row})
    agree(program)
    certificate = certified(program)
    q = program.mass @ certificate.primal.matrix
    assert (program.information(certificate.primal.matrix, "W") <= t * q + 1e-15).all()
    lam = certificate.dual.multipliers["t"]
    step = 1e-4  # the price of t is −Σ λ_y q(y)
    values = []
    for moved in (t - step, t + step):
        other = risk.each() <= moved * mass.each()
        values.append(certified(replace(program, constraints={"t": other})).upper)
    price = prices(program, {"t": {"t": row}}, certificate.primal.matrix, certificate.dual)["t"]
    assert price == pytest.approx((values[1] - values[0]) / (2 * step), rel=1e-3)
    assert price == pytest.approx(-float((lam * q).sum()))


@pytest.mark.parametrize("seed", range(3))
def test_equalities_are_met_exactly(seed):
    """A preserved marginal, Σ_s Q(s, y) = p(y), as rationals; and a preserved mean."""
    program = base(seed)
    total = Fraction(int(program.law.sum()))
    marginal = [Fraction(int(v)) / total for v in program.law.sum(axis=0)]
    budget = Expression("distortion", cost=cost(seed) * (1 - np.eye(4))) <= 0.2
    rows = {
        "budget": budget,
        "marginal": Constraint(Expression("", cost=np.ones((4, 4))).each(), "==", marginal),
    }
    program = replace(program, constraints=rows)
    agree(program)
    primal = certified(program).primal
    for y in range(4):
        mass = sum(
            Fraction(int(program.law[:, s].sum())) * Fraction(int(primal.numerators[s, y]))
            for s in range(4)
        )
        assert mass == marginal[y] * total * primal.denominator
    values = np.array([1.0, 2.0, 3.0, 4.0])
    mean = sum(m * int(v) for m, v in zip(marginal, values, strict=True))
    rows = {"budget": budget, "mean": Expression("", cost=np.tile(values, (4, 1))) == mean}
    agree(replace(program, constraints=rows))


@pytest.mark.parametrize("seed", range(3))
def test_entry_bounds(seed):
    """Keep at least 60 % of each value, forbid moves across two levels."""
    far = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) > 1
    program = base(seed, lower=0.6 * np.eye(4), upper=np.where(far, 0.0, 1.0))
    agree(program)
    k = certified(program).primal.matrix
    assert (k[far] == 0.0).all()
    assert (np.diag(k) >= 0.6).all()
    agree(replace(program, constraints={"budget": Expression("d", cost=cost(seed)) <= 0.55}))


@pytest.mark.parametrize("seed", range(3))
def test_local_privacy_through_its_auxiliary(seed):
    """K(s, y) ≤ e^ε K(s', y) for all s, s'."""
    epsilon = 0.8
    factor = math.exp(epsilon)
    program = base(
        seed,
        objective=Minimize(Expression("distortion", cost=cost(seed))),
        auxiliaries={"ldp": Auxiliary("ratio", factor, 1e-15)},
    )
    agree(program, lambda k: [k[s] <= factor * k[t] for s in range(4) for t in range(4) if s != t])
    k = certified(program).primal.matrix
    assert (k.max(axis=0) <= factor * k.min(axis=0)).all()


@pytest.mark.parametrize("seed", range(3))
def test_maximal_leakage_through_its_auxiliary(seed):
    """Σ_y max_s K(s, y) ≤ e^b."""
    bound = 1.6
    program = base(
        seed,
        objective=Minimize(Expression("distortion", cost=cost(seed))),
        auxiliaries={"maxl": Auxiliary("maximum", bound)},
    )
    agree(program, lambda k: [cp.sum(cp.max(k, axis=0)) <= bound])
    assert certified(program).primal.matrix.max(axis=0).sum() <= bound


def test_split_views_with_their_own_reference():
    """Views by z of a leakage L = I(W; U, Z): atoms (w, z), reference p_W for each z."""
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 20, (2, 2, 3)).astype(float)  # w, z, x
    law = counts.reshape(4, 3)
    w = np.repeat([0, 0, 1, 1], 3).reshape(4, 3)
    z = np.tile([0, 1], 2)[:, None] * np.ones((1, 3), int)
    views = {f"z{k}": View(np.where(z == k, w, -1), reference=w) for k in range(2)}
    leak = Expression("leakage", {"z0": 1.0, "z1": 1.0})
    program = ChannelProgram(
        law,
        3,
        views,
        Minimize(leak),
        {"budget": Expression("d", cost=1.0 - np.eye(3)) <= 0.3},
        units="nats",
    )
    certificate = certified(program)
    k = certificate.primal.matrix
    joint = np.einsum("wzx,xy->wyz", counts / counts.sum(), k)
    p_w = joint.sum(axis=(1, 2))
    direct = sum(
        joint[i, y, c] * math.log(joint[i, y, c] / (p_w[i] * joint[:, y, c].sum()))
        for i in range(2) for y in range(3) for c in range(2) if joint[i, y, c] > 0
    )  # fmt: skip
    assert direct == pytest.approx(certificate.upper, abs=1e-12)
    floor = sum(  # side information alone leaks I(W; Z)
        p * math.log(p / (p_w[i] * counts.sum(axis=(0, 2))[c] / counts.sum()))
        for (i, c), p in np.ndenumerate(counts.sum(axis=2) / counts.sum())
    )
    assert certificate.lower > floor


def test_a_constant_and_a_radius_are_part_of_what_is_proved():
    """H(W) − I as a reported term, and a cost known only to a radius widens both ends."""
    program = base(1, constraints={"budget": Expression("d", cost=cost(1)) <= 0.45})
    exact = certified(program)
    vague = replace(
        program, objective=replace(program.objective, cost=cost(3), cost_radius=1e-4, constant=2.0)
    )
    sharp = replace(vague, objective=replace(vague.objective, cost_radius=0.0))
    a, b = solve(vague).certificate, certified(sharp)
    assert a.lower <= b.lower - 0.9e-4
    assert a.upper >= b.upper + 0.9e-4
    assert b.lower > exact.lower + 2.0


def test_moved_bounds_need_no_new_problem():
    """The budget is a parameter: the same model solves another budget."""
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

    term = Expression("d", cost=cost(1))
    program = base(1, constraints={"budget": term <= 0.45})
    model = ConicModel(program)
    first = model.problem
    for budget in (0.45, 0.4, 0.5):
        moved = replace(program, constraints={"budget": term <= budget})
        model.set_bounds(moved.constraints)
        model.solve("CLARABEL", {})
        prover = Prover(moved)
        prover.offer_dual(model.dual())
        prover.offer_channel(model.channel())
        assert prover.status == "certified"
        assert model.problem is first


# ---- what cannot be ----------------------------------------------------------------------


def test_contradictory_rows_are_proved_infeasible():
    term = Expression("d", cost=cost(1))
    high = Expression("-d", cost=-cost(1))
    least = (base(1).mass * cost(1).min(axis=1)).sum()
    for rows in (
        {"budget": term <= least - 1e-6},
        {"low": term <= 0.4, "high": high <= -0.41},
        {"closeness": Expression("", {"W": 1.0}) <= 0.0001, "budget": term <= least + 1e-4},
    ):
        certificate = solve(base(1, constraints=rows)).certificate
        assert certificate.status == "infeasible", rows
        assert certificate.verify()
    impossible = base(1, lower=np.full((4, 4), 0.3))
    certificate = solve(impossible).certificate
    assert certificate.status == "infeasible"
    assert certificate.verify()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": np.array([[1.0, 0.0], [1.0, 0.0]])}, "without mass"),
        ({"law": np.array([[1.0, -1.0]])}, "nonnegative"),
        ({"units": "hartleys"}, "no unit"),
        ({"views": {"W": View(np.zeros((2, 2), int))}}, "labels of another shape"),
        ({"objective": Expression("", {"W": -1.0})}, "not convex"),
        ({"objective": Expression("", {"Z": 1.0})}, "no view"),
        ({"objective": Expression("", cost=np.ones((3, 3)))}, "cost of shape"),
        ({"constraints": {"r": Expression("", {"W": 1.0}) == 0.1}}, "not convex"),
        (
            {"constraints": {"r": Constraint(Expression("", {"W": 1.0}).each(), "<=", [0, 0])}},
            "bounds",
        ),
        ({"lower": np.full((4, 4), 2.0)}, "out of order"),
        ({"upper": np.ones((2, 2))}, "entry bounds"),
    ],
)
def test_data_that_is_no_program_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(base(), **change)


def test_terms_of_what_is_no_number_are_refused():
    for change, message in (
        (
            {"cost": np.full((4, 4), np.inf)},
            "^cost.*inf is not finite; forbid the move with upper = 0",
        ),
        ({"weights": {"W": math.nan}}, "^W: nan is out of range; pass a finite number"),
        ({"constant": "1/2"}, "^constant: '1/2' is no number"),
    ):
        with pytest.raises(InputError, match=message):
            Expression("", **change)
    with pytest.raises(InputError, match="negative radius"):
        replace(
            base(),
            objective=Expression("", {"W": 1}),
            constraints={"r": Expression("", cost_radius=-1) <= 1},
        )


def test_rows_are_named_not_tested():
    with pytest.raises(TypeError, match="truth value"):
        bool(Expression("d", cost=np.ones((2, 2))) <= 1.0)
    with pytest.raises(InputError, match="finite"):
        _ = Expression("d", cost=np.ones((2, 2))) <= math.nan


def test_terms_form_an_algebra():
    program = base(1)
    a, b = (
        Expression("a", {"W": 2.0}, cost=cost(1)),
        Expression("b", {"W": np.arange(4.0)}, constant=1.0),
    )
    k = np.full((4, 4), 0.25)
    for combined, value in (
        (a + b, program.value(a, k) + program.value(b, k)),
        (3 * a, 3 * program.value(a, k)),
        (-a, -program.value(a, k)),
    ):
        assert program.value(combined, k) == pytest.approx(value)
    atoms = Expression("c", cost=np.random.default_rng(0).random((3, 4, 4)))
    assert program.value(a + atoms, k) == pytest.approx(
        program.value(a, k) + program.value(atoms, k)
    )


def test_multipliers_of_any_shape_are_cleaned():
    program = base(1, constraints={"budget": Expression("d", cost=cost(1)) <= 0.45})
    dual = Dual({"W": np.full((2, 2), 1.0)}, {"budget": np.array([np.nan, 1.0])})
    clean = dual.cleaned(program)
    assert clean.scores["W"].shape == (3, 4)
    assert clean.multipliers["budget"] == 0.0
    assert Dual({}, {"budget": -2.0}).violation(program) == 2.0
