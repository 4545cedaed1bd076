"""The implicit Hamming channel: drawn, of frames, and as a dense channel."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from tests.formulations.hamming_truth import PMF


def test_the_drawn_release_has_the_promised_law():
    letters = list("abcdefg")
    solution = cpv.HammingWaterFilling(PMF, 0.3, x=letters).solve()
    rng = np.random.default_rng(6)
    size = 200_000
    original = rng.choice(letters, size, p=PMF)
    released = solution.release.apply(original, seed=7)
    assert list(released[:5]) == list(solution.release.apply(original[:5], seed=7))
    counts = Counter(zip(original.tolist(), released.tolist(), strict=True))
    for x in letters:
        row = solution.release.row(x)
        recorded = sum(n for (a, _), n in counts.items() if a == x)
        for x_hat, p in zip(solution.release.kept, row, strict=True):
            assert counts[x, x_hat] == pytest.approx(
                recorded * p, abs=5 * math.sqrt(recorded * p) + 5
            )
    assert {x_hat for _, x_hat in counts} == set(solution.release.kept) == set("abcd")
    changed = (original != released).mean()
    assert changed == pytest.approx(0.3, abs=5 * math.sqrt(0.21 / size))


def test_every_uniform_number_meets_the_right_letter():
    """Integrate the draw over a fine grid of uniform numbers: no chance is involved."""

    for budget in (0.0, 0.05, 0.3, 0.5, 0.6, 0.9):
        release = cpv.HammingWaterFilling([*PMF, 0.0], budget).solve().release
        for x in range(8):
            size = 20_000
            drawn = release._draw(np.full(size, x), (np.arange(size) + 0.5) / size)
            shares = np.bincount(drawn, minlength=len(release.kept)) / size
            assert shares == pytest.approx(release.row(x), abs=2.5 / size)


def test_the_least_and_the_last_uniform_number_are_letters_too():
    rng = np.random.default_rng(8)
    laws = [([*PMF, 0.0], budget) for budget in (0.3, 0.5, 0.6, 0.9)]
    laws += [(p, rng.uniform(0, 1 - p.max())) for p in rng.dirichlet(np.ones(5), 200)]
    for p, budget in laws:
        release = cpv.HammingWaterFilling(p, budget).solve().release
        for x in range(len(p)):
            drawn = release._draw(np.full(2, x), np.array([0.0, 1 - 2.0**-53]))
            assert ((drawn >= 0) & (drawn < len(release.kept))).all()
            if x in release.kept:
                assert release.kept[drawn[0]] == x


def test_frames_series_and_names_of_records():
    letters = ["Smith", "Johnson", "Poor", "Sankar"]
    release = cpv.HammingWaterFilling([0.5, 0.3, 0.15, 0.05], 0.3, x=letters).solve().release
    frame = pd.DataFrame({"name": letters * 25, "id": range(100)}, index=range(7, 107))
    once = release.apply(frame["name"], seed=1)
    assert once.index.equals(frame.index)
    assert once.name == "name"
    assert list(once) == list(release.apply(frame["name"].to_numpy(), seed=1))
    assert list(release.apply(frame[["name"]], seed=1)["name"]) == list(once)
    keyed = release.apply(frame["name"], seed=2, row_id=frame["id"])
    order = np.random.default_rng(0).permutation(100)
    mixed = release.apply(frame["name"].iloc[order], seed=2, row_id=frame["id"].iloc[order])
    assert mixed.sort_index().equals(keyed)
    pl = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    lazy = release.apply(pl.DataFrame({"name": letters * 25}).lazy(), seed=1).collect()
    assert lazy["name"].to_list() == list(once)
    with pytest.raises(cpv.UnknownValueError, match="'Rajagopalan' is no input"):
        release.apply(["Rajagopalan"], seed=1)


def test_a_dense_channel_is_the_same_and_does_all_that_channels_do(tmp_path):
    release = cpv.HammingWaterFilling([0.0, *PMF], 0.3).solve().release
    dense = release.to_channel()
    assert dense.arbitrary.tolist() == [True] + [False] * 7
    assert dense.matrix[:, release.kept] == pytest.approx(release.matrix, abs=0)
    assert dense.matrix.sum() == pytest.approx(8)
    assert dense.matrix[0, release.kept] == pytest.approx(release.released_marginal)
    assert dense.released_marginal[release.kept] == pytest.approx(release.released_marginal)
    again = cpv.Channel.load(release.save(tmp_path / "channel.json"))
    assert again.matrix == pytest.approx(release.matrix, abs=0)
    assert again.outputs == release.outputs
    assert release.then(cpv.HammingWaterFilling([0.0, *PMF], 0.0).solve().release)
    estimate = dense.to_sdcmicro(tmp_path / "pd.csv")
    assert estimate.read_text().count("\n") == 9
