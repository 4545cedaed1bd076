"""The scripts of the categorical example, run small: names that vanish, and Fig. 4."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.repository import ROOT, script


@pytest.mark.long
def test_script_names(run):
    ran = run("problems/names", "--quick")
    result = ran.result
    (kept,) = ran.differing  # rarity is no protection of a name that is kept
    assert kept.startswith("p(x|x̂) of kept names")
    check(ran)
    gone = result.learned["first"] > result.left
    assert result.learned["first"].iloc[0] == 1
    assert result.learned["last"].iloc[-1] == len(result.law)
    assert (result.learned["kept by"] == 0)[gone].all()
    outcome = result.learned[["p(x)", "p(x|x̂)"]].to_numpy()
    assert outcome[gone, 1] == pytest.approx(outcome[gone, 0])
    assert outcome[~gone, 1] == pytest.approx(1 - result.budget)
    assert (outcome[~gone, 1] > 10 * outcome[~gone, 0]).all()


def check(ran):
    """Compare releases with the law that they must have, from the water level alone."""
    result = ran.result
    left, values = [], []
    for share, (problem, solution) in result.solved.items():
        assert solution.status == "certified"
        assert solution.gap < 1e-12
        assert solution.distortion == pytest.approx(share * (1 - result.law[0]))
        level, law = float(problem.level), solution.release.released_marginal
        above = result.law[result.law > level] - level
        assert law == pytest.approx(above / above.sum(), rel=1e-9)
        tau, d = result.law[result.law <= level], float(problem.budget)
        gamma = (1 - d) * np.log2(1 - d) + (len(above) - 1) * level * np.log2(level)
        gamma = -gamma - tau @ np.log2(tau)  # (18)
        before = -result.law @ np.log2(result.law)
        assert solution.value == pytest.approx(before - gamma, abs=1e-9)
        left.append(len(law))
        values.append(solution.value)
    assert left == sorted(left, reverse=True)
    assert values == sorted(values, reverse=True)
    # the records: none of the vanished is released, and a kept one reads true at its odds
    assert result.released.max() < result.left < len(result.law)
    some = result.released == 0
    truth = (result.original[some] == 0).mean()
    assert truth == pytest.approx(1 - result.budget, abs=4 / some.sum() ** 0.5)


def test_an_attack_on_a_leaking_release_is_noticed():
    """The measurements can fail: release neighbours in rank as one and the same letter."""
    module = script(ROOT / "problems" / "names.py")
    result = module.study(quick=True)
    gone = result.original >= result.left
    telling = np.where(gone, result.original // 50, result.released)
    table = module.learned(result.law, result.left, result.budget, result.original, telling)
    off = ((table["measured"] - table["p(x|x̂)"]).abs() / table["±"])[table["last"] > result.left]
    assert off.max() > 6


@pytest.mark.long
def test_names_of_a_table(run, tmp_path):
    rng = np.random.default_rng(0)
    names = rng.choice(["Smith", "Johnson", "Poor", "NA", ""], 3000, p=[0.6, 0.3, 0.07, 0.02, 0.01])
    pd.DataFrame({"name": names, "id": range(3000)}).to_csv(tmp_path / "people.csv", index=False)
    ran = run("problems/names", "--table", str(tmp_path / "people.csv"), "--column", "name")
    check(ran)
    result = ran.result
    assert list(result.names) == ["Smith", "Johnson", "Poor", "NA", ""]  # text, as it is written
    assert result.solved[ran.module.SHARE][0].records == 3000
    counts = dict(zip(result.names, np.bincount(result.original).tolist(), strict=True))
    assert counts == pd.Series(names).value_counts().to_dict()
    with pytest.raises(SystemExit, match="no_such_file"):
        run("problems/names", "--table", "no_such_file.csv")
    with pytest.raises(SystemExit, match="--table: Usecols do not match .*'surname'"):
        run("problems/names", "--table", str(tmp_path / "people.csv"), "--column", "surname")
    (tmp_path / "empty.csv").write_text("name\n")
    with pytest.raises(SystemExit, match="pass"):
        run("problems/names", "--table", str(tmp_path / "empty.csv"))


@pytest.mark.campaign
def test_a_million_names(run):
    ran = run("problems/names")
    assert len(ran.result.law) == 1_000_000
    check(ran)
    assert ran.claims.keys() == {
        "changed records", "greatest |measured − exact| [standard errors]",
        "p(x|x̂) of kept names of p(x) ≈ 2e-06", "vanished: greatest |p(x|x̂)/p(x) − 1|",
    }  # fmt: skip
    assert ran.differing == {"p(x|x̂) of kept names of p(x) ≈ 2e-06"}
    assert ran.claims["p(x|x̂) of kept names of p(x) ≈ 2e-06"].here.startswith("0.70")
