"""The scripts of the categorical example, run small: names that vanish, and Fig. 4."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.test_architecture import ROOT, script


def test_script_names(run):
    small = ("--names", "20000", "--records", "200000")
    words = ("made-up names", "enclosed", "vanished", "p-value", "in fractions")
    module, result, text = run("problems/names", *small, words=words)
    assert text.count(" yes") == 5

    left = [len(s.release.kept) for s in result.solutions.values()]
    assert left == sorted(left, reverse=True)
    values = [s.value for s in result.solutions.values()]
    assert values == sorted(values, reverse=True)
    for share, solution in result.solutions.items():
        assert solution.status == "certified"
        assert solution.gap < 1e-12
        assert solution.distortion == pytest.approx(share * result.most)
        rare = solution.release.released_marginal
        assert (np.diff(rare) <= 0).all()  # the law stays in order
    assert 0 < result.left < 20_000

    # what is measured agrees with what is exact, or the release is wrong
    groups = module.groups(result)
    assert [g.kept for g in groups] == sorted((g.kept for g in groups), reverse=True)
    assert groups[0].ranks.start == 0
    assert groups[-1].ranks.stop == 20_000
    for group in groups:
        assert abs(group.seen - group.exact) < 4.5 * group.error
        if group.kept:
            assert group.exact > 10 * group.prior
        else:
            assert group.exact == pytest.approx(group.prior)
    blind = module.guesses(result)
    (never, _), (best, expected), (unseen, _), (learned, _) = blind.values()
    assert never == 0
    assert best == unseen
    assert abs(best - expected) < 5 * expected**0.5 + 5
    assert learned <= expected + 5 * expected**0.5 + 5
    assert all(module.exactly(result).values())


def test_an_attack_on_a_leaking_release_is_noticed():
    """The measurements can fail: release neighbours in rank as one and the same letter."""
    module = script(ROOT / "problems" / "names.py")
    result = module.made_up(2_000, 100_000)
    gone = result.original >= result.left
    telling = np.where(gone, result.original // 50, result.released)
    leaking = replace(result, released=telling)
    off = [abs(g.seen - g.exact) / g.error for g in module.groups(leaking) if not g.kept]
    assert max(off) > 6
    honest, told = (next(iter(reversed(module.guesses(r).values()))) for r in (result, leaking))
    assert told[0] > 2 * honest[0] + 20
    assert "p-value 0.00" in module.independence(leaking)
    assert "p-value 0.00" not in module.independence(result)


def test_names_of_a_table(run, tmp_path):
    rng = np.random.default_rng(0)
    names = rng.choice(["Smith", "Johnson", "Poor", "NA", ""], 3000, p=[0.6, 0.3, 0.07, 0.02, 0.01])
    pd.DataFrame({"name": names, "id": range(3000)}).to_csv(tmp_path / "people.csv", index=False)
    arguments = ("--table", str(tmp_path / "people.csv"), "--column", "name")
    module, result, _ = run("problems/names", *arguments)
    assert sorted(result.names) == ["", "Johnson", "NA", "Poor", "Smith"]  # text, as it is written
    assert result.problems[module.SHARE].records == 3000
    counts = dict(zip(result.names, np.bincount(result.original).tolist(), strict=True))
    assert counts == pd.Series(names).value_counts().to_dict()
    with pytest.raises(SystemExit):
        module.main(["--column", "name"])
