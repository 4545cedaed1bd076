"""The scripts on rate, distortion and equivocation: closed forms, brute force, records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests import referee
from tests.scripts.oracles import BITS


def plogp(masses):
    """Σ p log₂ p, one by one."""
    return math.fsum(p * math.log2(p) for p in np.ravel(masses).tolist() if p > 0)


def h(p):
    return -plogp([p, 1 - p])


def star(a, b):
    return a * (1 - b) + b * (1 - a)


# ---- the doubly symmetric binary source --------------------------------------------------


def test_script_doubly_symmetric_binary(run):
    words = ["lie in all of the proved enclosures"]
    module, result, _ = run("problems/doubly_symmetric_binary", words=words)
    p0 = 0.25

    # what is known of it in nats: rates at D = .05, .1, .2
    known = {
        "decoder": (0.3896535340, 0.2850078694, 0.0950026231),
        "both": (0.3638199013, 0.2372521712, 0.0619327211),
    }
    for who, values in known.items():
        for d, nats in zip((0.05, 0.1, 0.2), values, strict=True):
            assert module.rate(d, who) == pytest.approx(nats / BITS, abs=1e-9)
    assert pytest.approx(0.0880207, abs=5e-8) == module.D_C

    for point in result.points:
        d, who = point.budget, point.known_to
        if who is None:
            assert module.rate(d, who) == pytest.approx(1 - h(d), abs=1e-12)
        for solution, closed in (
            (point.rate, module.rate(d, who)),
            (point.leakage, module.rate(d, who) + (0.0 if who is None else 1 - h(p0))),
        ):
            referee.check(solution)
            assert solution.lower - 1e-9 <= closed <= solution.upper + 1e-9
        # W = X: one release is best in both
        assert float(point.rate.leakage) == pytest.approx(point.leakage.value, abs=2e-7)
        assert float(point.leakage.rate) == pytest.approx(point.rate.value, abs=2e-7)
        assert max(map(abs, point.errors)) < 1e-7

    # time-sharing: beyond D_c the constants err D_c of the time, the followers p0
    for point in result.of("decoder"):
        kinds, d = point.strategies(), point.budget
        constant, error = kinds[module.CONSTANT]
        follow, wrong = kinds[module.FOLLOW]
        assert constant + follow == pytest.approx(1.0, abs=1e-4)
        share = min(max((d - module.D_C) / (p0 - module.D_C), 0.0), 1.0)
        assert follow == pytest.approx(share, abs=2e-3)
        assert module.follows(d) == pytest.approx(share, abs=1e-12)
        if share > 0.01:
            assert wrong == pytest.approx(p0, abs=1e-6)
        if share < 0.99:
            assert error == pytest.approx(min(d, module.D_C), abs=1e-3)
            slope = (module.rate(d + 1e-6, "decoder") - module.rate(d - 1e-6, "decoder")) / 2e-6
            assert point.rate.prices["budget"] == pytest.approx(slope, rel=2e-3)

    # who pays: with Z at both, the total leakage is that without Z
    by = {who: {p.budget: p.leakage for p in result.of(who)} for who in module.KNOWN_TO}
    for d, user in by["decoder"].items():
        assert by["both"][d].value == pytest.approx(by[None][d].value, abs=1e-7)
        if d < p0:
            assert user.lower > by["both"][d].upper + 1e-3


# ---- Fig. 3 of Sankar et al. -------------------------------------------------------------


def test_script_sankar_fig3(run):
    module, result, _ = run("figures/sankar_fig3", words=["Remark 4"])
    q = module.Q
    split = np.linspace(0, 0.5, 5001)
    unknown = np.array([h(star(q, a)) for a in split])
    own = np.array([h(a) for a in split])

    def least(d, equivocation):
        """R(D, E): the best of all ways to split the wrong bits between A and B."""
        free = (split <= d) & (unknown >= equivocation)
        rest = np.minimum(d - split[free], 0.5)
        return (2 - own[free] - np.interp(rest, split, own)).min()

    for d, corner in result.corners.items():
        for solution in (corner.rate, corner.leakage):
            referee.check(solution)
        for solution, closed in (
            (corner.rate, 2 - 2 * h(min(d / 2, 0.5))),
            (corner.leakage, 1 - h(star(q, min(d, 0.5)))),
        ):
            assert solution.lower - 1e-12 <= closed <= solution.upper + 1e-12
        assert corner.rate.value == pytest.approx(least(d, 0.0), abs=1e-5)
        assert module.rate(d) == pytest.approx(2 - 2 * h(min(d / 2, 0.5)), abs=1e-12)

    for d, found in result.surface.items():
        corner = result.corners[d]
        # Remark 4: neither end is the other's
        assert corner.private == pytest.approx(h(star(q, d / 2)), abs=1e-3)
        assert corner.private < corner.gamma - 0.01
        assert found[-1].solution.lower > corner.rate.upper + 0.05
        assert found[-1].cap == pytest.approx(corner.leakage.value + module.MARGIN, abs=1e-12)
        rates = [corner.rate.value]
        for each in found:
            referee.check(each.solution)
            closed = module.rate(d, each.equivocation)
            assert each.solution.lower - 1e-9 <= closed <= each.solution.upper + 1e-9
            assert least(d, each.equivocation) == pytest.approx(closed, abs=2e-3)
            assert float(each.solution.leakage) <= each.cap + 1e-12
            rates.append(each.solution.value)
        assert rates == sorted(rates)
        # where the errors are: even for the rate, in A alone for privacy
        even = [float(corner.rate.terms[f"distortion of {bit}"]) for bit in "AB"]
        assert even == pytest.approx([d / 2, d / 2], abs=1e-3)
        first, second = (float(found[-1].solution.terms[f"distortion of {bit}"]) for bit in "AB")
        assert first == pytest.approx(min(d, 0.5), abs=2e-3)
        assert first + second == pytest.approx(d, abs=1e-6)
        # the price is the slope
        each = found[0]
        step = 1e-4
        low, high = (module.rate(d, each.equivocation + s) for s in (-step, step))
        slope = -each.solution.prices["max_leakage"]
        assert (high - low) / (2 * step) == pytest.approx(slope, rel=1e-3)
