"""The scripts on one-symbol information: the paper's numbers, and no claim without its check."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import rel_entr

from tests import referee
from tests.test_architecture import ROOT, script


@pytest.fixture
def adult():
    folder = os.environ.get("CVXPRIVACY_DATA")
    if not folder or not (Path(folder) / "adult.csv").is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")


def ran(folder, name, tmp_path, capsys, *more):
    module = script(ROOT / folder / f"{name}.py")
    picture = tmp_path / "deep" / f"{name}.png"
    result = module.main([*more, "--out", str(picture)])
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size > 30_000
    text = capsys.readouterr().out
    assert str(picture) in text
    assert "nan" not in text
    return module, result, text


def revealed(source, channel):
    """Return p(x̂), I1 and H(W | x̂) in bits, by SciPy."""
    joint = source.pmf @ channel
    q = joint.sum(axis=0)
    joint, q = joint[:, q > 0], q[q > 0]
    i1 = rel_entr(joint, np.outer(source.p_w, q)).sum(axis=0) / q / math.log(2)
    p = joint / q
    return q, i1, -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=0)


def test_script_bezzi_fig1(tmp_path, capsys):
    module, result, text = ran("figures", "bezzi_fig1", tmp_path, capsys, "--quick")
    for piece in ("paper:", "here:", "why:", "xor", "exchanged"):
        assert piece in text
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


@pytest.mark.usefixtures("adult")
def test_script_bezzi_fig2_4(tmp_path, capsys):
    module, result, text = ran("figures", "bezzi_fig2_4", tmp_path, capsys, "--quick")
    for piece in ("paper:", "here:", "why:", "0.34 cannot be", "intervals add"):
        assert piece in text
    assert result.whole.records == 30_162
    assert len(result.whole.x) == 3152
    assert result.whole.information() == pytest.approx(0.7567, abs=5e-5)
    assert result.whole.entropy() == pytest.approx(1.8197, abs=5e-5)
    assert result.income == pytest.approx(0.8096, abs=5e-5)
    assert result.at_49 == pytest.approx(0.092, abs=5e-4)
    a2, a1, best = result.audits.values()
    assert a2.after.plugin == pytest.approx(0.085, abs=5e-4)
    assert a2.holds
    assert [v.broken.tolist() for v in a1.verdicts] == [[0, 3], [0]]
    assert all(c.holds for audit in (a2, a1, best) for c in audit.averages.values())
    assert best.holds
    assert best.after.plugin == pytest.approx(0.2308, abs=5e-5)
    assert result.any_number.information == pytest.approx(0.2382, abs=5e-5)
    # the paper's grouping is among the minimal ones, sex alone is another and keeps more
    levels = [tuple(m.values()) for m in result.levels.minimal]
    assert (2, 1, 1, 1) in levels
    assert result.levels.information > a2.after.plugin
    referee.check(result.price.randomised)
    assert result.price.gap.lower > 0
    source = result.price.deterministic.source
    _, i1, h = revealed(source, result.price.randomised.channel.matrix)
    assert i1.max() <= module.T + 1e-9
    assert h.min() >= math.log2(module.L) - 1e-9


def test_script_medical_table(tmp_path, capsys):
    module, result, text = ran("problems", "medical_table", tmp_path, capsys)
    for piece in ("certified", "Erin, John", "BROKEN", "intervals add", "0.2472"):
        assert piece in text
    assert result.audit.per_record("I1").round(4).tolist() == [0.1255] * 10 + [0.8552] * 2
    fixed, free = [], []
    for t, price in result.prices.items():
        referee.check(price.randomised)
        assert price.gap.lower >= -1e-6
        _, i1, _ = revealed(result.source, price.randomised.channel.matrix)
        assert i1.max() <= t + 1e-9
        _, i1, _ = revealed(result.source, price.deterministic.channel.matrix)
        assert i1.max() <= t + 1e-9
        fixed.append(price.deterministic.distortion)
        free.append(price.randomised.value)
    assert fixed == sorted(fixed, reverse=True)
    assert free == sorted(free, reverse=True)
    assert fixed[-1] == 0.0  # at the last t the bins of ten pass as they are
    assert float(result.prices[module.PROMISE].gap) > 0.5


@pytest.mark.usefixtures("adult")
def test_script_adult_marital(tmp_path, capsys):
    module, result, text = ran("problems", "adult_marital", tmp_path, capsys, "--letters", "60")
    for piece in ("certified", "not tried", "|X| = 3,152", "levels add", "share of"):
        assert piece in text
    source, solution = result.source, result.solution
    assert source.records == 30_162
    sizes = [size for size, _ in result.tried.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert len(source.x) == sizes[-1] <= 60
    referee.check(solution)
    _, i1, h = revealed(source, solution.channel.matrix)
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
    assert result.audit.released.records == 30_162


@pytest.mark.parametrize("path", ["problems/adult_marital.py", "figures/bezzi_fig2_4.py"])
def test_without_the_table_a_script_says_what_to_do(path, tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "CVXPRIVACY_DATA"}
    environment |= {
        "CVXPRIVACY_CACHE": str(tmp_path), "https_proxy": "http://127.0.0.1:9",
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(ROOT / path), "--out", str(tmp_path / "x.png")],
        capture_output=True, text=True, check=False, env=environment, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    for piece in ("adult.csv", "cannot be fetched", "CVXPRIVACY_DATA"):
        assert piece in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_lists_them():
    from tests.cli.runner import say

    shown = say("figures", "--root", ROOT).out
    for name in ("bezzi_fig1", "bezzi_fig2_4", "medical_table", "adult_marital"):
        assert name in shown
