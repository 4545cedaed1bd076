"""The scripts that draw whole curves."""

from __future__ import annotations

import numpy as np
import pytest

from tests import referee
from tests.test_architecture import ROOT, script


def test_script_what_does_a_bit_cost(tmp_path, capsys):
    module = script(ROOT / "problems" / "what_does_a_bit_cost.py")
    picture = tmp_path / "deep" / "picture.png"
    result = module.main(["--out", str(picture)])
    assert picture.stat().st_size > 30_000
    text = capsys.readouterr().out
    assert "nan" not in text
    for piece in ("592 students", "convex", "band", "price", "a kink", "certified", str(picture)):
        assert piece in text

    # facts of the 592 students, known beforehand
    source = result.source
    assert source.records == 592
    assert source.p_x * 592 == pytest.approx([108, 286, 71, 127])
    assert source.p_w * 592 == pytest.approx([220, 215, 93, 64])

    curve, inverse = result.curve, result.inverse
    assert curve.band <= module.TOL
    for point in curve.points[1::6]:
        referee.check(point.solution)
    referee.check(result.chosen)
    # everybody under the commonest hair colour tells nothing, and costs 1 − 286/592
    assert curve.points[-1].x <= 1 - 286 / 592 + 1e-12
    assert curve.points[-1].upper <= 1e-9
    assert curve.inner(0.0) == pytest.approx(source.information(), abs=1e-6)

    # the two programs are one curve: inverse functions, with inverse prices
    for share in (0.03, 0.1, 0.17):
        bits = (curve.inner(share) + curve.outer(share)) / 2
        assert inverse.outer(bits) - 2e-3 <= share <= inverse.inner(bits) + 2e-3
        forth, back = curve.price(share), inverse.price(bits)
        assert float(forth) * float(back) == pytest.approx(1.0, rel=0.1)

    # the optimality conditions, recomputed from the channel alone
    channel, price = result.chosen.channel.matrix, -result.chosen.prices["budget"]
    given = source.pmf / source.p_x
    joint = source.pmf @ channel
    told = np.log2(joint / np.outer(source.p_w, joint.sum(axis=0)))
    cost = given.T @ told + price * (1 - np.eye(4))
    reduced = cost - cost.min(axis=1, keepdims=True)
    assert reduced == pytest.approx(result.reduced, abs=1e-6)
    assert (channel * reduced).max() < 1e-7
    assert (reduced[channel < 1e-9] > 0.01).all()
    assert all(abs(value) < 1e-6 for value in result.residuals().values())
    slope = (curve.inner(0.1 + 0.02) - curve.inner(0.1 - 0.02)) / 0.04
    assert -price == pytest.approx(slope, rel=0.02)
