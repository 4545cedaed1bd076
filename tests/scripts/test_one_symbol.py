"""The scripts on one-symbol information: the paper's numbers, and no claim without its check."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests import referee
from tests.scripts.oracles import letters


def test_script_bezzi_fig1(run):
    module, result, _ = run("figures/bezzi_fig1", words=["xor", "exchanged"])
    i1, i2 = (result.per_record(kind).round(4).tolist() for kind in ("I1", "I2"))
    assert i1 == [0.1255] * 10 + [0.8552] * 2
    assert i2 == [0.4138] * 10 + [-0.5862] * 2
    assert result.audit.after.plugin == pytest.approx(0.2472, abs=5e-5)
    assert np.mean(i1) == pytest.approx(np.mean(i2), abs=1e-4)
    holds = {
        kind: [value < module.HELD for value in values.values()]
        for kind, values in result.defects.items()
    }
    assert holds == {
        "I1": [True, True, False, True], "I2": [False, True, True, True],
        "I3": [False, True, False, True], "I4": [True, True, False, False],
    }  # fmt: skip


def test_script_bezzi_fig2_4(run, tables):
    words = ["intervals add", *(["0.34 cannot be"] if tables.real else [])]
    module, result, _ = run("figures/bezzi_fig2_4", words=words)
    a2, a1, best = result.audits.values()
    assert a2.holds
    assert best.holds
    assert all(c.holds for audit in (a2, a1, best) for c in audit.averages.values())
    if tables.real:
        assert result.whole.records == 30_162
        assert len(result.whole.x) == 3152
        assert result.whole.information() == pytest.approx(0.7567, abs=5e-5)
        assert result.whole.entropy() == pytest.approx(1.8197, abs=5e-5)
        assert result.income == pytest.approx(0.8096, abs=5e-5)
        assert result.at_49 == pytest.approx(0.092, abs=5e-4)
        assert a2.after.plugin == pytest.approx(0.085, abs=5e-4)
        assert best.after.plugin == pytest.approx(0.2308, abs=5e-5)
        assert result.any_number.information == pytest.approx(0.2382, abs=5e-5)
    # the first and the last quarter of a century break both or, in so many records, one
    assert [v.broken.tolist() for v in a1.verdicts] == [[0, 3], [0] if tables.real else [0, 3]]
    # the paper's grouping is among the minimal ones, sex alone is another and keeps more
    levels = [tuple(m.values()) for m in result.levels.minimal]
    assert (2, 1, 1, 1) in levels
    assert result.levels.information > a2.after.plugin
    assert best.after.plugin <= result.any_number.information + 1e-12
    referee.check(result.price.randomised)
    assert result.price.gap.lower > 0
    source = result.price.deterministic.source
    _, i1, h = letters(source, result.price.randomised.channel.matrix)
    assert i1.max() <= module.T + 1e-9
    assert h.min() >= math.log2(module.L) - 1e-9


def test_script_medical_table(run):
    words = ("certified", "Erin, John", "BROKEN", "intervals add", "0.2472")
    module, result, _ = run("problems/medical_table", words=words)
    assert result.audit.per_record("I1").round(4).tolist() == [0.1255] * 10 + [0.8552] * 2
    fixed, free = [], []
    for t, price in result.prices.items():
        referee.check(price.randomised)
        assert price.gap.lower >= -1e-6
        for release in (price.randomised, price.deterministic):
            assert letters(result.source, release.channel.matrix)[1].max() <= t + 1e-9
        fixed.append(price.deterministic.distortion)
        free.append(price.randomised.value)
    assert fixed == sorted(fixed, reverse=True)
    assert free == sorted(free, reverse=True)
    assert fixed[-1] == 0.0  # at the last t the bins of ten pass as they are
    assert float(result.prices[module.PROMISE].gap) > 0.5


def test_script_adult_marital(run, tables):
    records, cells = (30_162, "3,152") if tables.real else (190, "177")
    words = ("certified", "not tried", f"|X| = {cells}", "levels add", "share of")
    module, result, _ = run("problems/adult_marital", "--letters", "60", words=words)
    source, solution = result.source, result.solution
    assert source.records == result.audit.released.records == records
    sizes = [size for size, _ in result.tried.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert len(source.x) == sizes[-1] <= 60
    referee.check(solution)
    _, i1, h = letters(source, solution.channel.matrix)
    assert i1.max() <= 0.55 + 1e-9
    assert h.min() >= math.log2(2.7) - 1e-9
    # each attribute's share, from the channel and the letters alone
    matrix = solution.channel.matrix
    for axis, name in enumerate(module.KEY):
        levels = source.levels[name]
        rank = np.array([levels.index(x[axis]) for x in source.x])
        far = np.abs(rank[:, None] - rank)
        far = far / (len(levels) - 1) if name in ("age", "education") else np.minimum(far, 1)
        share = (source.p_x[:, None] * matrix * far).sum()
        assert float(solution.terms[f"distortion of {name}"]) == pytest.approx(share, abs=1e-9)
    fixed = result.price.deterministic
    assert all(holds.all() for _, holds in fixed.standing.values())
    assert fixed.distortion > solution.upper
