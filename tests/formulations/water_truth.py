"""Water in boxes by other means: rationals, and logarithms of mpmath to sixty digits and more."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from cvxprivacy.exact import floats
from cvxprivacy.programs.water import WaterProgram
from cvxprivacy_verifier import verify
from tests import second_checker

DIGITS = 60


def poured(offsets: Sequence[Fraction], caps: Sequence[Fraction], level: Fraction) -> Fraction:
    """Return Σ clip(v − o, 0, c)."""
    pairs = zip(offsets, caps, strict=True)
    return sum((min(max(level - o, Fraction(0)), c) for o, c in pairs), Fraction(0))


def level_of(
    offsets: Sequence[Fraction], caps: Sequence[Fraction], total: Fraction
) -> Fraction | None:
    """Return the least level at which the total is poured; None where it covers all caps."""
    if total >= sum(caps):
        return None
    kinks = sorted({*offsets, *(o + c for o, c in zip(offsets, caps, strict=True))})
    place = next(i for i, kink in enumerate(kinks) if poured(offsets, caps, kink) >= total)
    low, high = kinks[place - 1], kinks[place]
    ends = poured(offsets, caps, low), poured(offsets, caps, high)
    return low + (total - ends[0]) * (high - low) / (ends[1] - ends[0])


def number(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def value_of(
    gains: Sequence[Any] | None, caps: Sequence[Any], total: Any, units: str = "nats"
) -> tuple[Any, Fraction | None]:
    """Return ½ Σ log((o + c)/(o + x)) and the level."""
    exact = [Fraction(c) for c in caps]
    offsets = [Fraction(0)] * len(exact) if gains is None else [1 / Fraction(g) for g in gains]
    level = level_of(offsets, exact, Fraction(total))
    value = mpmath.mpf(0)
    with mpmath.workdps(DIGITS + 700):  # ratios next to 1, of numbers as far apart as floats are
        for o, c in zip(offsets, exact, strict=True):
            x = c if level is None else min(max(level - o, Fraction(0)), c)
            if x != c:
                value += mpmath.log(number((o + c) / (o + x))) / 2
        return value / (mpmath.log(2) if units == "bits" else 1), level


def contains(lower: float, upper: float, value: Any) -> bool:
    with mpmath.workdps(DIGITS + 700):
        return bool(mpmath.mpf(lower) <= value <= mpmath.mpf(upper))


def check(solution: Any, *, status: str | None = "certified") -> None:
    """Raise AssertionError unless a solution of water in boxes is what it says it is."""
    certificate = solution.certificate
    program: WaterProgram = certificate.program
    gains, caps = program.gains, program.variances
    assert status is None or certificate.status == status, certificate
    assert certificate.verify()
    listed = None if gains is None else gains.tolist()
    truth, level = value_of(listed, caps.tolist(), program.budget, program.units)
    assert contains(certificate.lower, certificate.upper, truth)
    document = certificate.document()
    lower, upper, judged = second_checker.check(document)
    proved = verify.recompute(document)
    assert proved["lower"] <= upper
    assert lower <= proved["upper"]
    assert judged == proved["status"]
    # stationarity, signs and complementarity of what is printed
    offsets = np.zeros(len(caps)) if gains is None else 1 / floats(gains)
    x, unit = np.diag(solution.error_covariance), 1 / np.log(2) if program.units == "bits" else 1.0
    price = next(v for k, v in solution.duals.items() if "≼" not in k)
    assert list(solution.prices.values()) == [-price]
    assert price == (0 if level is None else float(1 / (2 * level)) * unit)
    above, below = (np.diag(solution.duals[name]) for name in ("Σ ≼ Σ_X", "0 ≼ Σ"))
    slope = unit / (2 * (offsets + x))
    assert np.allclose(slope, price + above - below, rtol=1e-12, atol=0)
    assert (above >= 0).all()
    assert (below >= 0).all()
    assert (below * x == 0).all()
    assert (above * (floats(caps) - x) == 0).all()
    assert np.allclose(np.diag(solution.posteriors["W"]), offsets + x, rtol=1e-14, atol=0)
    release = solution.release
    assert np.allclose(release.gains, 1 - x / floats(caps), rtol=0, atol=1e-15)
    assert np.allclose(release.noises, x * release.gains, rtol=1e-15, atol=0)
    assert np.array_equal(release.gain, np.diag(release.gains))
