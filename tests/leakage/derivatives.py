"""Gradients, Hessians and second orders of smooth measures against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cvxprivacy.leakage import Smooth


def assert_derivatives(
    measure: Smooth, joint: np.ndarray, prior: np.ndarray, rng: np.random.Generator, size: Any
) -> None:
    """Compare a measure's derivatives at J with differences, of which ``size`` is the scale."""
    slope, value = measure.gradient(joint, prior), measure.value(joint, prior)
    assert (slope * joint).sum(axis=0) == pytest.approx(value, abs=1e-12 * size)
    change, step = rng.standard_normal(joint.shape) * joint, 1e-5
    ahead = measure.value(joint + step * change, prior)
    behind = measure.value(joint - step * change, prior)
    along = (slope * change).sum(axis=0)
    assert (ahead - behind) / (2 * step) == pytest.approx(along, abs=1e-7 * size)
    ahead = measure.gradient(joint + step * change, prior)
    behind = measure.gradient(joint - step * change, prior)
    bowl = measure.curvature(joint, prior, slope)
    assert (bowl.normal * bowl.along).sum(axis=0) == pytest.approx(1.0, rel=1e-12)
    bent = (change - bowl.along * (bowl.normal * change).sum(axis=0)) / bowl.mean
    bent = bent - bowl.normal * (bowl.along * bent).sum(axis=0)
    assert (ahead - behind) / (2 * step) == pytest.approx(bent, abs=1e-6 * size)
    change, step = np.clip(change, -2 * joint, 2 * joint), 1e-4
    ahead = measure.gradient(joint + step * change, prior)
    behind = measure.gradient(joint - step * change, prior)
    second = (ahead + behind - 2 * slope) / (2 * step**2)
    assert second == pytest.approx(measure.second_order(joint, change, prior), abs=1e-5 * size)
