"""What no curve can be drawn of, and checkpoints that were changed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cvxprivacy as cpv


def regions(**options):
    law = np.random.default_rng(1).dirichlet(np.full(18, 0.5)).reshape(2, 3, 3)
    return cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(law), cpv.hamming(3), side_information="decoder", **options
    )


def test_a_cut_list_of_strategies_proves_nothing_from_below():
    cut = regions(budget=0.3, max_leakage=0.9, most_strategies=1)
    with pytest.raises(cpv.InputError, match="raise most_strategies"):
        cpv.frontier(cut)
    with pytest.raises(cpv.InputError, match="raise most_strategies"):
        cpv.surface(cut, ("budget", "max_leakage"))


def test_a_least_value_does_not_move():
    with pytest.raises(cpv.InputError, match="move max_leakage"):
        cpv.frontier(regions(budget=0.3, min_equivocation=0.1), "min_equivocation")


@pytest.mark.parametrize("x", [math.nan, math.inf, "a", None])
def test_a_place_is_a_number(x):
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    curve = cpv.frontier(cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1), tol=0.05)
    for ask in (curve.price, curve.release_at, curve.solution_at):
        with pytest.raises(cpv.InputError, match="x"):
            ask(x)


def test_a_changed_checkpoint_is_refused(tmp_path):
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1)
    path = tmp_path / "points.jsonl"
    path.touch(mode=0o644)
    cpv.frontier(problem, tol=0.05, checkpoint=path)
    assert path.stat().st_mode & 0o077 == 0
    lines = path.read_text().split("\n")
    lines[2] = lines[2].replace('"lower": ', '"lower": 9', 1)
    path.write_text("\n".join(lines))
    with pytest.raises(cpv.InputError, match=r"line 3 .* changed"):
        cpv.frontier(problem, tol=0.05, checkpoint=path)
