"""The relative entropy of one label from another: derivatives, scores, and CVXPY's own cone."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings, strategies as st

from cvxprivacy.leakage.relative_entropy import RelativeEntropy
from cvxprivacy_verifier.balls import PRECISION
from cvxprivacy_verifier.measures import measure_of
from tests.leakage.derivatives import assert_derivatives
from tests.second_checker.measures import Measure
from tests.second_checker.numbers import exact

SEEDS = st.integers(0, 2**32 - 1)
MEASURE = RelativeEntropy()


def inner(seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return positive masses of two labels at five outputs, and a reference that is not theirs."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(2, 2.0), 5).T * rng.random(5) + 1e-3
    return joint, rng.dirichlet(np.full(2, 2.0)) + 0.01, rng


@given(seed=SEEDS)
@settings(max_examples=30)
def test_it_is_the_mass_of_the_law_times_the_divergence(seed: int) -> None:
    _, _, rng = inner(seed)
    laws, masses = rng.dirichlet(np.full(5, 0.5), 2) + 1e-9, rng.uniform(0.01, 1, 2)
    laws /= laws.sum(axis=1, keepdims=True)
    value = MEASURE.value(masses[:, None] * laws, masses).sum()
    truth = masses[1] * (laws[0] * np.log(laws[0] / laws[1])).sum()
    assert value == pytest.approx(truth, abs=1e-12)


def test_of_nothing_it_is_what_is_left() -> None:
    joint = np.array([[0.0, 0.0, 0.2, 0.1], [0.3, 0.0, 0.0, 0.1]])
    value = MEASURE.value(joint, np.array([0.5, 0.5]))
    assert value.tolist() == [0.3, 0.0, math.inf, 0.0]


@given(seed=SEEDS)
@settings(max_examples=40)
def test_gradients_and_curvatures_are_derivatives(seed: int) -> None:
    joint, prior, rng = inner(seed)
    # relative to the size of each place: π₁/π₀ and J₀/J₁ may be large
    size = 1.0 + (1 + prior[1] / prior[0]) ** 2 * (1 + (joint[0] / joint[1]).max()) ** 2
    assert_derivatives(MEASURE, joint, prior, rng, size)


@given(seed=SEEDS)
@settings(max_examples=40)
def test_a_gradient_tells_the_scores_and_three_say_the_same_of_them(seed: int) -> None:
    joint, prior, rng = inner(seed)
    slope = MEASURE.gradient(joint, prior)
    assert MEASURE.inside(MEASURE.parameters(slope, prior), prior) == pytest.approx(slope, abs=1e-9)
    ctx.prec = PRECISION
    balls = [arb(float(p)) for p in prior]
    proof = measure_of(MEASURE.data(), [p / sum(balls, arb(0)) for p in balls], arb(1))
    pi = [exact(float(p)) for p in prior]
    other = Measure(MEASURE.data(), [p / sum(pi) for p in pi], "nats")
    for scores in (MEASURE.scores(joint, prior), 3 * rng.normal(size=(1, 5)), np.zeros((1, 5))):
        ours = MEASURE.inside(scores, prior)
        value = MEASURE.value(joint, prior)
        assert ((ours * joint).sum(axis=0) <= value + 1e-9 * (1 + np.abs(ours).max())).all()
        for column, slopes in zip(scores.T, ours.T, strict=True):
            proved = [float(s) for s in proof.inside(column.tolist())]
            below = [float(s) for s in other.below([exact(float(x)) for x in column])]
            assert proved == pytest.approx(slopes, rel=1e-9, abs=1e-12)
            assert below == pytest.approx(proved, rel=1e-12, abs=1e-12)
    for column, value in zip(joint.T, MEASURE.value(joint, prior), strict=True):
        enclosed = proof.value([arb(float(x)) for x in column])
        low, high = other.value([exact(float(x)) for x in column])
        assert float(enclosed) == pytest.approx(value, rel=1e-9, abs=1e-13)
        assert float(low) <= float(enclosed) * (1 + 1e-12) + 1e-30
        assert float(enclosed) <= float(high) * (1 + 1e-12) + 1e-30


def test_its_cone_is_its_value() -> None:
    for seed in range(4):
        joint, prior, _ = inner(seed)
        x = cp.Variable(joint.shape)
        value, more = MEASURE.cone(x, cp.sum(x, axis=0), prior)
        problem = cp.Problem(cp.Minimize(cp.sum(value)), [x == joint, *more.values()])
        assert problem.solve() == pytest.approx(MEASURE.value(joint, prior).sum(), abs=1e-6)


def test_its_face_is_that_of_what_tells_nothing() -> None:
    """At J = π q scores of both labels are 0, and near it τ (π₁/π₀, −1)."""
    reference = np.array([0.25, 0.75])
    face = MEASURE.face(reference, reference)
    assert face is not None
    step = 1e-6
    for moved, direction in zip(face.parameter_directions, face.directions, strict=True):
        slopes = MEASURE.inside(step * moved[:, None], reference).ravel() / step
        assert slopes == pytest.approx([float(x) for x in direction], rel=1e-5)
        assert float(direction @ reference) == 0  # as far up as down, where J = π q
