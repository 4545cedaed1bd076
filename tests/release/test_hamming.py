"""The implicit Hamming channel: drawn, of frames, and as a dense channel."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.errors import UnknownValueError
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


ONE = 2**52
LAWS = [([*PMF, 0.0], budget) for budget in (0.0, 0.05, 0.3, 0.5, 0.6, 0.9)]
LAWS += [
    (p, float(u * (1 - p.max())))
    for u, p in zip(
        np.linspace(0.05, 0.95, 20), np.random.default_rng(8).dirichlet(np.ones(5), 20), strict=True
    )
]


@pytest.mark.parametrize(("p", "budget"), LAWS, ids=range(len(LAWS)))
def test_the_drawn_law_is_the_proved_one_to_the_last_bit(p, budget):
    release = cpv.HammingWaterFilling(p, budget).solve().release
    keep, ends = release._keep_below.tolist(), [0, *release._cumulative.tolist()]
    assert ends[-1] == ONE
    anew = [Fraction(after - before, ONE) for before, after in pairwise(ends)]
    for x in range(len(p)):
        law = [(1 - Fraction(keep[x], ONE)) * share for share in anew]
        if keep[x]:
            law[release.kept.index(x)] += Fraction(keep[x], ONE)
        exact = release.row(x, exact=True).tolist()
        assert max(abs(a - b) for a, b in zip(law, exact, strict=True)) <= Fraction(2, ONE)


@pytest.mark.parametrize(("p", "budget"), LAWS, ids=range(len(LAWS)))
def test_numbers_at_every_edge_meet_the_right_letter(p, budget):
    release = cpv.HammingWaterFilling(p, budget).solve().release
    ends = release._cumulative.tolist()
    for x in range(len(p)):
        keep = int(release._keep_below[x])
        firsts = [v for v in (0, keep - 1, keep, ONE - 1) if 0 <= v < ONE]
        for first in firsts:
            for second in [v for e in [0, *ends] for v in (e - 1, e) if 0 <= v < ONE]:
                (drawn,) = release._draw(np.array([x]), np.array([[first], [second]]))
                fresh = next(y for y, end in enumerate(ends) if second < end)
                assert drawn == (release.kept.index(x) if first < keep else fresh)


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
    with pytest.raises(UnknownValueError, match="'Rajagopalan' is no input"):
        release.apply(["Rajagopalan"], seed=1)


def test_a_dense_channel_is_the_same_and_does_all_that_channels_do(tmp_path):
    release = cpv.HammingWaterFilling([0.0, *PMF], 0.3).solve().release
    dense = release.to_channel()
    assert dense.arbitrary.tolist() == [True] + [False] * 7
    assert dense.matrix[:, release.kept] == pytest.approx(release.matrix, abs=0)
    assert dense.matrix.sum() == pytest.approx(8)
    assert dense.matrix[0, release.kept] == pytest.approx(release.released_marginal)
    assert dense.released_marginal[release.kept] == pytest.approx(release.released_marginal)
    for kind in (cpv.Channel, type(release)):
        again = kind.load(release.save(tmp_path / "channel.json"))
        assert again.matrix == pytest.approx(release.matrix, abs=0)
        assert again.outputs == release.outputs
    assert release.then(cpv.HammingWaterFilling([0.0, *PMF], 0.0).solve().release)
    estimate = dense.to_sdcmicro(tmp_path / "pd.csv")
    assert estimate.read_text().count("\n") == 9
