"""Edges of the regions: proofs of other tables, bounds given twice, prices at edges, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.results.recount import recount
from tests.release import test_decoder as td
from tests.test_equivocation import CASES, random_law, rde

RNG = np.random.default_rng


# 1 a proof passes for a table of other people: x is not compared
def test_a_proof_is_not_of_a_table_with_other_keys():
    w, masses = [0, 1, 0, 1], [4, 3, 5, 2]

    def table(x, z):
        rows = list(zip(w, x, z, strict=True))
        return pd.DataFrame(
            [row for row, n in zip(rows, masses, strict=True) for _ in range(n)],
            columns=list("wxz"),
        )

    a, b = table([0, 0, 1, 2], list("pqpq")), table([0, 1, 2, 2], list("pqpq"))
    source = cpv.DiscreteSource.from_table(a, sensitive="w", key="x", side="z")
    solution = rde(source, cpv.hamming(source.x), 0.1, side_information="both").solve()
    assert recount(solution.certificate.document(), a) == []
    assert recount(solution.certificate.document(), b)


def test_a_proof_is_not_of_a_table_with_other_keys_wx():
    """Not of this change: PrivacyDistortion, encoder wx."""
    a = pd.DataFrame({"w": [0] * 4 + [1] * 5, "x": ["s"] * 4 + ["t"] * 5})
    b = a.assign(x=["t"] * 4 + ["s"] * 5)
    source = cpv.DiscreteSource.from_table(a, sensitive="w", key="x")
    d = cpv.Distortion([[0, 1], [3, 0]], inputs=["s", "t"], outputs=["s", "t"])
    solution = cpv.PrivacyDistortion(source, d, budget=0.2, encoder="wx").solve()
    assert recount(solution.certificate.document(), b)


# 2 soundness of input: of two bounds on the same set the looser may win, silently
def test_a_bound_written_twice_is_not_dropped():
    source = cpv.DiscreteSource(random_law(RNG(0), 4, 3, 2), w=list(itertools.product("ab", "cd")))
    bounds = {("0", "1"): 0.1, "0, 1": 0.5}
    try:
        problem = rde(source, cpv.hamming(3), 0.1, max_leakage=bounds)
    except cpv.InputError:
        return
    rows = [
        row for name, row in problem.program.constraints.items() if name.startswith("max_leakage")
    ]
    assert min(float(row.bound) for row in rows) == 0.1


# 3 the price of a floor of 1 has the wrong sign where the user decodes
@pytest.mark.parametrize("case", CASES)
def test_the_price_of_a_floor_of_one_is_plus_infinity(case):
    source = cpv.DiscreteSource(random_law(RNG(0), 3, 4, 2))
    keep = [cpv.KeepProbability(1.0)]
    solution = rde(source, cpv.hamming(4), side_information=case, criteria=keep).solve()
    assert solution.prices["keep_probability"] == math.inf


# 4 a first list that is infeasible ends the search for strategies: what 27 listed strategies
# certify is "nothing finite" with a cut list; and its suggestions are of another problem
COUNTS = [[[0, 1, 13], [0, 0, 0], [0, 27, 0], [0, 0, 13]],
          [[0, 3, 5], [19, 0, 5], [0, 4, 92], [0, 0, 118]]]  # fmt: skip
COST = [[0.25, 0.34, 0.91], [0.96, 0.17, 0.02], [0.81, 0.67, 0.74], [0.33, 0.45, 0.76]]


def small(*args, most=1024, **bounds):
    return rde(
        cpv.DiscreteSource.from_counts(COUNTS), COST, *args, side_information="decoder",
        most_strategies=most, **bounds,
    )  # fmt: skip


# 6 "certified" means |Z| times as much as the documentation says
def test_certified_is_a_gap_of_a_millionth_of_a_nat():
    solution = small(0.449, minimize="leakage", max_rate=0.377087).solve()  # 2.1e-6
    assert solution.status != "certified" or solution.gap <= 1e-6


def test_the_unit_of_the_gap_is_one_nat_whatever_z():
    source = cpv.DiscreteSource(np.full((2, 2, 50), 1 / 200))
    for case in CASES:
        assert rde(source, cpv.hamming(2), 0.1, side_information=case).program.scale == 1.0


# 8 raw errors
SOURCE = cpv.DiscreteSource(np.full((2, 3, 2), 1 / 12))


@pytest.mark.parametrize(
    "bad",
    [
        lambda: cpv.Decoder([["a"]], side=["p"]).apply([0], [["p"]]),
        lambda: cpv.Decoder(None, side=["p"]),
        lambda: cpv.Decoder([1], side=["p"]),
        lambda: cpv.Channel([[1.0]], inputs=["a"], outputs=[0], decoder="x"),
    ],
)
def test_bad_input_is_an_input_error(bad):
    with pytest.raises(cpv.InputError):
        bad()


# 9 what is printed
def test_the_size_line_counts_letters_and_strategies_apart():
    criteria = [cpv.LeakageCap(0.5), cpv.TCloseness(0.5)]
    problem = rde(SOURCE, cpv.hamming(3), 0.3, side_information="decoder", criteria=criteria)
    assert r"|\hat X| = 9" not in problem._repr_latex_()


def test_a_channel_before_one_with_a_decoder_keeps_it():
    channel = td.problem().solve().channel
    first = cpv.Channel(np.eye(len(channel.inputs)), inputs=channel.inputs, outputs=channel.inputs)
    assert first.then(channel).decoder is channel.decoder


def test_estimate_says_which_column_is_missing():
    """A channel without a decoder does the same."""
    channel = td.problem().solve().channel
    with pytest.raises(cpv.InputError):
        channel.estimate(td.people())
