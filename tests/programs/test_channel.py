"""The channel program beyond one view and one budget: every kind of row, and the auxiliaries."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.errors import InputError
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.expression import Constraint, Expression, Minimize
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


def certified(program: ChannelProgram, width: float = 1e-7):
    certificate = solve(program, accuracy="high").certificate
    assert certificate.gap <= width, certificate
    assert certificate.verify()
    return certificate


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
    from cvxprivacy.solvers.conic.channel import ConicModel

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
        ({"units": "hartleys"}, "'hartleys' is unknown"),
        ({"law": np.ones(4)}, r"shape \(4,\)"),
        ({"views": {"W": View(np.zeros((2, 2), int))}}, "labels of another shape"),
        ({"views": {"W": View(2 * labels_of_w(np.ones((3, 4))))}}, "a label of reference mass 0"),
        ({"objective": Expression("", {"W": -1.0})}, "not convex"),
        ({"objective": Expression("", {"Z": 1.0})}, "no view"),
        ({"objective": Expression("", {"W": np.ones(3)})}, r"weights of shape \(3,\)"),
        ({"objective": Expression("", cost=np.ones((3, 3)))}, "cost of shape"),
        ({"constraints": {"r": Expression("", {"W": 1.0}) == 0.1}}, "not convex"),
        (
            {"constraints": {"r": Constraint(Expression("", {"W": 1.0}).each(), "<=", [0, 0])}},
            "bounds",
        ),
        (
            {"constraints": {"r": Expression("", {"W": 1.0}, constant=1).each() <= 0.1}},
            "put it into the bound",
        ),
        ({"lower": np.full((4, 4), 2.0)}, "out of order"),
        ({"upper": np.ones((2, 2))}, "entry bounds"),
    ],
)
def test_data_that_is_no_program_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(base(), **change)
