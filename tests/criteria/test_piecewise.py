"""Maxima, absolute values and norms of CVXPY, one row for each affine piece."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.criteria.added import cvxpy_rows
from cvxprivacy.criteria.piecewise import pieces
from tests import referee
from tests.lengths import some_at_length

SOURCE = cpv.DiscreteSource.from_counts([[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]])
PROBLEM = cpv.PrivacyDistortion(SOURCE, cpv.absolute_error([25, 40, 55, 70]), 5.0)
Q, P = PROBLEM.variables["Q"], SOURCE.p_x
A = cp.Variable((2, 3), name="A")
TABLE = np.array([[0.3, -0.4, 0.8], [0.1, 0.7, -0.2]])

EXPRESSIONS = [
    cp.max(A), cp.max(A, axis=0), cp.max(A, axis=1), cp.max(A - TABLE) - 3,
    cp.maximum(A, 0.2), cp.maximum(A[0], A[1], 0.3), cp.maximum(cp.norm1(A[0]), A),
    cp.abs(A - TABLE), cp.pos(A - 0.1), cp.neg(A), cp.multiply(np.abs(TABLE), cp.abs(A)),
    cp.norm1(A - TABLE), cp.norm1(A - TABLE, axis=0), cp.norm(A, 1), cp.tv(A[0]),
    cp.norm_inf(A - TABLE), cp.norm(A, "inf"), cp.mixed_norm(A, 1, "inf"),
    cp.sum_largest(A, 2), cp.sum_largest(cp.abs(A - TABLE), 2), -cp.sum_smallest(A, 2),
    cp.max(A, axis=1) + cp.norm1(A - 0.2), 2 * cp.max(A) - cp.min(A), 3 - cp.min(A, axis=0),
    -cp.minimum(A, 0.3), cp.sum(cp.maximum(A - TABLE, 0), axis=1),
    cp.max(cp.abs(A - TABLE) @ np.ones((3, 2))), cp.max(A) + cp.sum(A) - cp.min(A[:, 0]),
    cp.max(cp.hstack([cp.max(A), cp.norm1(A[0])])),
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda e: str(e)[:30])
def test_the_greatest_piece_is_what_cvxpy_evaluates(expression):
    parts, rng = pieces(expression, A), np.random.default_rng(0)
    assert len(parts) == expression.size
    for _ in range(20):
        A.value = rng.normal(size=A.shape)
        flat = np.append(A.value.ravel(order="F"), 1.0)
        greatest = [(part @ flat).max() for part in parts]
        assert np.allclose(greatest, np.ravel(expression.value, order="F"), atol=1e-12)
    A.value = None


@pytest.mark.parametrize(
    "constraint",
    [
        cp.abs(A[0] - 0.1) <= np.array([[1.0, 1, 1], [0.4, 0.03, 0.2]]),
        cp.max(A, axis=0, keepdims=True) <= np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]]),
        cp.maximum(A, np.array([0.1, 0.2, 0.3])) <= 0.5,
        np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]]) <= cp.min(A, axis=1, keepdims=True),
    ],
    ids=str,
)
def test_what_is_broadcast_loses_no_bound(constraint):
    rows, numbers = cvxpy_rows(constraint, A)
    rng = np.random.default_rng(1)
    for _ in range(20):
        A.value = rng.normal(size=A.shape)
        excess = [
            float((row.coefficients * A.value).sum()) + row.constant - numbers[row.place]
            for row in rows
        ]
        signs = [-1 if row.relation == ">=" else 1 for row in rows]
        broken = max(sign * value for sign, value in zip(signs, excess, strict=True))
        assert broken == pytest.approx(float(np.max(constraint.expr.value)), abs=1e-12)
    A.value = None


CONSTRAINTS = {
    "largest": cp.max(Q[0, 1:]) <= 0.01,
    "change": cp.norm1(cp.sum(Q, axis=0) - P) <= 0.05,
    "worst change": cp.norm_inf(cp.sum(Q, axis=0) - P) <= 0.02,
    "each change": cp.abs(cp.sum(Q, axis=0) - P) <= 0.02,
    "least kept": cp.min(cp.diag(Q)) >= 0.18,
    "two sides": cp.max(Q[0, 1:]) <= 0.05 * cp.min(cp.diag(Q)),
}


@pytest.mark.parametrize("name", some_at_length(CONSTRAINTS, 3))
def test_solved_and_proved_as_by_hand(name):
    constraint = CONSTRAINTS[name]
    problem = PROBLEM.with_constraint(name, constraint)
    solution = problem.solve()
    referee.check(solution)
    assert solution.certificate.proves(problem)
    assert not solution.certificate.proves(PROBLEM)
    by_hand = cp.Problem(PROBLEM.objective, [*PROBLEM.problem.constraints, constraint])
    assert abs(by_hand.solve(solver=cp.CLARABEL) - solution.value) < 1e-6
    assert solution.value > PROBLEM.solve().value + 1e-4  # it binds
    Q.value = SOURCE.p_x[:, None] * solution.channel.matrix
    assert constraint.violation() == pytest.approx(0, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "number"), [("largest", 0.01), ("change", 0.05), ("least kept", 0.18)]
)
def test_the_price_of_one_number_is_that_of_all_pieces(name, number):
    problem, step = PROBLEM.with_constraint(name, CONSTRAINTS[name]), 1e-3
    high, low = (problem.at(**{name: number + s}).solve(accuracy="high") for s in (step, -step))
    price = problem.solve().prices[name]
    assert price == pytest.approx((high.value - low.value) / (2 * step), rel=0.02)
    assert abs(price) > 0.01


@pytest.mark.long
def test_each_entry_has_a_number_of_its_own():
    problem = PROBLEM.with_constraint("change", CONSTRAINTS["each change"])
    prices = problem.solve().prices
    assert {f"change.{i}" for i in range(4)} < set(prices)
    moved = problem.at(**{"change.3": 0.01}).solve()
    assert moved.value > problem.solve().value
    assert abs(moved.channel.matrix.T @ P - P)[3] <= 0.01 + 1e-12


@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        (cp.sum_squares(Q) <= 0.5, "not convex piecewise linear"),
        (cp.norm2(Q[0]) <= 0.5, "not convex piecewise linear"),
        (cp.min(Q) <= 0.5, "not convex piecewise linear"),
        (cp.max(Q) >= 0.5, "not convex piecewise linear"),
        (cp.abs(cp.square(Q)) <= 0.5, "not convex piecewise linear"),
        (cp.max(Q) == 0.5, "not affine"),
        (cp.norm1(Q) <= 0.5, None),  # Q ≥ 0: one piece
        (cp.norm1(Q - 1) <= 20, "65,536 affine pieces"),
        (cp.sum_largest(Q, 1.5) <= 0.6, "a share of an entry"),
    ],
    ids=str,
)
def test_what_has_no_rows_is_refused_by_its_name(constraint, problem):
    if problem is None:
        assert len(pieces(constraint.args[0], Q)[0]) == 1
        return
    with pytest.raises(cpv.InputError, match=problem) as error:
        PROBLEM.with_constraint("mine", constraint)
    assert error.value.argument == "constraint"


def test_a_gaussian_error_is_bounded_in_each_variable():
    source = cpv.GaussianSource(
        [[2, 0.8, 0.5], [0.8, 1, 0.3], [0.5, 0.3, 1]], sensitive=[0], key=[1, 2]
    )
    problem = cpv.QuadraticGaussian(source, 0.8)
    largest = problem.with_constraint(
        "largest", cp.max(cp.diag(problem.variables["Sigma"])) <= 0.42
    )
    solution = largest.solve()
    assert solution.status == "certified"
    assert solution.certificate.verify()
    assert np.diag(solution.error_covariance).max() <= 0.42 + 1e-9
    assert solution.value > problem.solve().value + 1e-6
