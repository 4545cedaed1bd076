"""An infinite distortion is a forbidden move: in problem files, and of tables that are drawn."""

from __future__ import annotations

import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy_sdc.statements import problemfile
from tests.formulations.test_infinite_distortion import MASK, D


def test_a_problem_file(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text("""
formulation = "PrivacyDistortion"
budget = 0.1
[source]
pmf = [[0.3, 0.15, 0.05], [0.05, 0.15, 0.3]]
[distortion]
matrix = [[0, 1, inf], [0.5, 0, 1], [inf, 0.5, 0]]
""")
    problem = problemfile.read(path).problem
    assert problem.criteria == (cpv.ForbiddenMoves(MASK),)
    assert problem.solve().status == "certified"


def test_a_table_is_drawn_and_merged_without_such_moves():
    table = pd.DataFrame({
        "ill": ["n", "y", "n", "y", "n", "n", "y", "y", "n", "y"] * 30,
        "age": [1, 2, 3, 2, 1, 1, 3, 3, 2, 1] * 30,
    })  # fmt: skip
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    problem = cpv.PrivacyDistortion(source, D, 0.2, criteria=[cpv.TCloseness(0.1)])
    drawn = sdc.release_table(problem, table, seed=1)
    moves = pd.crosstab(table["age"], drawn.frame["age"]).reindex(columns=[1, 2, 3], fill_value=0)
    assert not moves.to_numpy()[MASK].any()


def test_erasures_in_a_problem_file(tmp_path):
    path = tmp_path / "erasure.toml"
    path.write_text("""
formulation = "PrivacyDistortion"
budget = 0.25
[source]
pmf = [[0.5, 0.0], [0.0, 0.5]]
[distortion]
matrix = [[0, inf, 1], [inf, 0, 1]]
""")
    assert problemfile.read(path).problem.solve().value == pytest.approx(0.75, abs=1e-6)
