"""The scripts of the categorical example, run small: names that vanish, and Fig. 4."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from tests import referee
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


def test_script_sankar_fig4(run):
    words = ("lost in the text", "3 of 3 pairs of enclosures overlap")
    module, result, _ = run("figures/sankar_fig4", words=words)
    for budget, both in result.solved.items():
        referee.check(both.program)
        assert both.closed.lower <= both.program.upper
        assert both.program.lower <= both.closed.upper
        assert both.program.distortion <= budget + 1e-15
        assert both.closed.prices["budget"] == pytest.approx(
            both.program.prices["budget"], abs=1e-4
        )
    # by hand: λ = (D − τ)/(K − 1)
    levels = {0.05: (7, 1 / 120), 0.1: (7, 1 / 60), 0.2: (5, 0.0375), 0.3: (4, 1 / 15),
              0.4: (3, 0.1), 0.5: (2, 0.15)}  # fmt: skip
    for budget, (kept, level) in levels.items():
        law = module.released(result.shown[budget])
        above = np.maximum(np.array(module.PMF) - level, 0)
        assert law == pytest.approx(above / above.sum(), abs=1e-12)
        assert len(result.shown[budget].release.kept) == kept
    assert module.released(result.shown[0.0]) == pytest.approx(module.PMF)
    assert result.limits == pytest.approx(
        {"a": 0.6, "b": 0.6, "c": 0.5, "d": 0.4, "e": 0.25, "f": 0.17, "g": 0.12}
    )
    gamma = [float(s.equivocation) for s in result.lines.values()]
    assert gamma == sorted(gamma)
    assert gamma[0] == 0
    assert gamma[-1] == pytest.approx(cpv.information.entropy(module.PMF))
    assert np.all(np.diff(gamma, 2) < 1e-9)  # concave, on an even grid
