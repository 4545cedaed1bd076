"""What an audit or a drawn table shows cannot be written to."""

from __future__ import annotations

import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests import test_frozen

TABLE = pd.DataFrame({"w": [0, 0, 1, 1, 1, 0], "x": [1, 0, 2, 0, 1, 2]})
RULES = [cpv.TCloseness(0.3)]
SOURCE = cpv.DiscreteSource.from_table(TABLE, sensitive="w", key="x")
MADE = {
    "audit": lambda: sdc.audit(TABLE, TABLE, key="x", sensitive="w", criteria=RULES),
    "drawn table": lambda: sdc.release_table(
        cpv.MinimumDistortion(SOURCE, cpv.hamming(3), RULES), TABLE, seed=1
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_no_array_of_a_value_can_be_made_writable(name):
    value = MADE[name]()
    assert any(array.size for _, array, _ in test_frozen.arrays(value, name, MADE[name], set()))
    test_frozen.check_arrays(MADE[name](), name)
