"""The scripts on the Adult table: each against an independent statement, and by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import rel_entr

import cvxprivacy as cpv
from tests import referee
from tests.test_architecture import ROOT, script

BITS = np.log(2.0)


@pytest.fixture
def adult():
    """Skip where the public table is not at hand."""
    folder = os.environ.get("CVXPRIVACY_DATA")
    if not folder or not (Path(folder) / "adult.csv").is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")


def solved(problem: cp.Problem) -> float:
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    return problem.value


@pytest.mark.parametrize("name", ["invariant_pram", "worst_case_or_average"])
@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_the_table_a_script_says_what_to_set(name, folder, tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "CVXPRIVACY_DATA"}
    if folder:
        environment["CVXPRIVACY_DATA"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, str(ROOT / "problems" / f"{name}.py"), "--out", str(tmp_path / "x.png")],
        capture_output=True, text=True, check=False, env={**environment, "PYTHONPATH": str(ROOT)},
        encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    for piece in ("Set CVXPRIVACY_DATA", "adult.csv", "UCI"):
        assert piece in done.stderr
    assert not (tmp_path / "x.png").exists()


@pytest.mark.usefixtures("adult")
def test_script_invariant_pram(tmp_path, capsys):
    module = script(ROOT / "problems" / "invariant_pram.py")
    result = module.main(["--out", str(tmp_path / "deep" / "picture.png")])
    assert (tmp_path / "deep" / "picture.png").stat().st_size > 10_000
    text = capsys.readouterr().out
    for piece in ("certified", "enclosure", "bias", "price of the floor", "two-step", "breaks"):
        assert piece in text
    assert "NO" not in text

    source, counts = result.source, result.source.joint.sum(axis=0)
    assert source.records == counts.sum() == 32_561
    assert (source.x[0], source.x[8], source.x[-1]) == ("Preschool", "HS-grad", "Doctorate")
    for solution in result.solutions.values():
        referee.check(solution)
    values = [solution.value for solution in result.solutions.values()]
    assert values == sorted(values)
    assert result.solutions[1.0].value == pytest.approx(source.information(), abs=1e-9)

    # the same program in CVXPY's own words
    pmf, n = source.pmf, len(source.x)
    for floor in (0.3, module.FLOOR, 0.9):
        k = cp.Variable((n, n), nonneg=True)
        joint, independent = pmf @ k, cp.outer(source.p_w, source.p_x @ k)
        far = (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 2).astype(float)
        rules = [
            cp.sum(k, axis=1) == 1,
            source.p_x @ k == source.p_x,
            cp.diag(k) >= floor,
            cp.multiply(far, k) == 0,
        ]
        leakage = cp.sum(cp.rel_entr(joint, independent)) / BITS
        found = solved(cp.Problem(cp.Minimize(leakage), rules))
        assert found == pytest.approx(result.solutions[floor].value, abs=2e-6)

    # the price is the slope, and the enclosures of the sweep respect it
    step = 1e-3
    near = module.study(module.adult(), (module.FLOOR - step, module.FLOOR + step)).solutions
    low, high = (solution.value for solution in near.values())
    price = result.chosen.prices["keep_probability"]
    assert (high - low) / (2 * step) == pytest.approx(price, rel=0.01)

    # the classical matrices: invariant, legal where the script says so, never below the optimum
    for matrix in (result.two_steps(0.6), result.raised(0.6), result.mixed(0.6)):
        assert source.p_x @ matrix == pytest.approx(source.p_x, abs=1e-14)
        assert np.abs(matrix[result.levels > module.REACH]).max() == 0
    for matrix in (result.raised(0.6), result.mixed(0.6)):
        assert matrix.diagonal().min() == pytest.approx(0.6, abs=1e-9)
        assert result.leakage(matrix) >= result.chosen.lower

    # on the records themselves the table of education moves by sampling error alone
    released = result.chosen.channel.apply(module.adult()["education"].to_numpy(), seed=1)
    seen = np.array([(released == level).sum() for level in source.x])
    matrix = result.chosen.channel.matrix
    spread = np.sqrt(counts @ (matrix * (1 - matrix)))
    assert seen.sum() == counts.sum()
    assert (np.abs(seen - counts) <= 4.5 * spread).all()
    assert (seen != counts).any()


@pytest.mark.usefixtures("adult")
def test_script_worst_case_or_average(tmp_path, capsys):
    module = script(ROOT / "problems" / "worst_case_or_average.py")
    result = module.main(["--out", str(tmp_path / "deep" / "picture.png")])
    assert (tmp_path / "deep" / "picture.png").stat().st_size > 10_000
    text = capsys.readouterr().out
    for piece in ("certified", "TCloseness", "LeakageCap", "price", "ratio", "under the average"):
        assert piece in text

    source = result.source
    assert source.records == 32_561
    assert len(source.x) == 14
    pmf, p_w, p_x = source.pmf, source.p_w, source.p_x

    def revealed(solution: cpv.Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return p(x̂) and each letter's divergence, from the channel and term by term."""
        joint = pmf @ solution.channel.matrix
        q = joint.sum(axis=0)
        phi = rel_entr(joint, np.outer(p_w, q)).sum(axis=0) / BITS
        return q, np.divide(phi, q, out=np.zeros_like(q), where=q > 0)

    for t, pair in result.pairs.items():
        for solution in (pair.average, pair.worst):
            referee.check(solution)
        _, worst = revealed(pair.worst)
        assert (worst <= t + 1e-9).all()
        q, average = revealed(pair.average)
        assert q @ average <= t + 1e-9
        assert q @ average == pytest.approx(min(t, source.information()), abs=1e-5)
        share, divergence = pair.letters(pair.average)
        used = q * source.records >= 1
        assert divergence[used] == pytest.approx(average[used], abs=1e-9)
        assert share == pytest.approx(q, abs=1e-12)
        assert divergence.max() > t  # the average hides at least one letter
        assert pair.worst.lower >= pair.average.value  # proved: the promise costs something
    for side in ("average", "worst"):
        values = [getattr(pair, side).value for pair in result.pairs.values()]
        assert values == sorted(values, reverse=True)

    # both programs in CVXPY's own words, at the t that is drawn
    t, n = module.BOUND, len(source.x)
    decades = [module.DECADES.index(decade) for decade, _ in source.x]
    sexes = [sex for _, sex in source.x]
    d = np.array([[abs(decades[i] - decades[j]) + (sexes[i] != sexes[j]) for j in range(n)]
                  for i in range(n)])  # fmt: skip
    k = cp.Variable((n, n), nonneg=True)
    law, error = [cp.sum(k, axis=1) == 1], cp.sum(cp.multiply(p_x[:, None] * d, k))
    per_letter = cp.sum(cp.rel_entr(pmf @ k, cp.outer(p_w, p_x @ k)), axis=0) / BITS
    worst = solved(cp.Problem(cp.Minimize(error), [*law, per_letter <= t * (p_x @ k)]))
    average = solved(cp.Problem(cp.Minimize(error), [*law, cp.sum(per_letter) <= t]))
    assert worst == pytest.approx(result.chosen.worst.value, abs=1e-5)
    assert average == pytest.approx(result.chosen.average.value, abs=1e-5)

    # the prices are slopes in t
    step = 1e-3
    near = module.study(module.adult(), (t - step, t + step)).pairs.values()
    for side, name in (("average", "leakage_cap"), ("worst", "t_closeness")):
        low, high = (getattr(pair, side).value for pair in near)
        price = getattr(result.chosen, side).prices[name]
        assert (high - low) / (2 * step) == pytest.approx(price, rel=0.01)
