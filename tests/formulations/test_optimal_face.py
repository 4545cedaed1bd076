"""How far an entry may move among optimal releases."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.formulations.optimal_face import entry_range
from cvxprivacy.settings import Stages

LAW = np.array([[0.3, 0.1, 0.0], [0.1, 0.3, 0.2]])
TWINS = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])


def test_outputs_of_one_cost_share_a_row_in_any_way():
    """With K(0, 0) + K(0, 1) fixed by the optimum of two outputs, either may have all of it."""
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(LAW), TWINS, budget=0.1)
    merged = cpv.PrivacyDistortion(cpv.DiscreteSource(LAW), TWINS[:, 1:], budget=0.1)
    kept = merged.solve(accuracy="high").channel.matrix[0, 0]
    for output in (0, 1):
        ends = entry_range(problem, 0, output, within=1e-6)
        assert ends.lower == 0.0
        assert ends.upper == pytest.approx(kept, abs=5e-3)
        assert ends.upper >= kept - 1e-6


@pytest.mark.long
def test_a_unique_optimum_has_entries_that_hardly_move():
    """A binary symmetric source: K(0, 1) = D at the optimum, and nothing else is near it."""
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1)
    for within, width in ((1e-4, 0.05), (1e-6, 0.005)):
        ends = entry_range(problem, 0, 1, within=within)
        assert ends.lower <= 0.1 <= ends.upper
        assert ends.upper - ends.lower < width


@pytest.mark.long
def test_releases_of_all_methods_are_within():
    rng = np.random.default_rng(4)
    law, error = rng.dirichlet(np.ones(15)).reshape(3, 5), rng.random((5, 7))
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(law), error, budget=0.3)
    values = [problem.solve(method=method) for method in ("structured", "conic")]
    values.append(problem.solve(settings=Stages(few_entries_beyond=1)))
    least = min(each.value for each in values)
    within = max(each.value for each in values) - least + 1e-6
    for letter, output in ((0, 0), (2, 3), (4, 6)):
        ends = entry_range(problem, letter, output, within=within)
        for each in values:
            assert ends.lower <= each.channel.matrix[letter, output] <= ends.upper


def test_what_is_no_entry_is_refused():
    massless = cpv.DiscreteSource(np.array([[0.3, 0.1, 0.0], [0.1, 0.5, 0.0]]))
    problem = cpv.PrivacyDistortion(massless, TWINS, budget=0.1)
    for value, argument in (((2, 0), "letter"), ((7, 0), "letter"), ((0, "x"), "output")):
        with pytest.raises(cpv.InputError) as caught:
            entry_range(problem, *value)
        assert caught.value.argument == argument
    with pytest.raises(cpv.InputError) as caught:
        entry_range(problem, 0, 0, within=0)
    assert caught.value.argument == "within"
