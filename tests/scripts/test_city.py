"""The script on a city: small here, and not better than its optimum anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from tests import referee


@pytest.mark.long
def test_script_city_grid(run):
    ran = run("problems/city_grid", SIDE=4, EPSILONS=(0.5, 1.0), CHOSEN=0.5)
    assert ran.differing == set()
    for epsilon, solution in ran.result.optima.items():
        referee.check(solution)
        cost = ran.result.cost.loc[epsilon]
        for name in ("Laplace", "exponential"):  # a remap is the best use of what is released
            assert solution.lower <= cost[f"{name}, remapped"] <= cost[name] + 1e-12
        assert cost["optimum"] == solution.value
    assert (np.diff(ran.result.cost["optimum"]) < 0).all()
    assert all(spent.upper <= epsilon for (_, epsilon), spent in ran.result.spent.items())
