"""Tables that are never dense: enclosures, seconds and the process's own peak.

    pytest benchmarks/test_large_tables.py -m "" -s -p no:xdist

Income against columns of the Adult table, distortion by columns, in a process of its own each.
Without ``-m ""`` only the smallest is run, as long as its limit says.
"""

from __future__ import annotations

import multiprocessing
import time

import pytest

import cvxprivacy as cpv
from benchmarks.memory import peak

KINDS = {
    "age": "ordinal",
    "education-num": "ordinal",
    "race": "hamming",
    "sex": "hamming",
    "workclass": "hamming",
    "occupation": "hamming",
    "native-country": "hamming",
    "hours-per-week": "ordinal",
}


def enclosed(columns: int, share: float, limit: float | None) -> dict[str, float]:
    """Solve for some columns at a share of what the best constant release costs."""
    adult, kinds = cpv.datasets.load_adult(), dict(list(KINDS.items())[:columns])
    source = cpv.DiscreteSource.from_table(
        adult, sensitive="income", key=list(kinds), missing="level"
    )
    d = cpv.per_attribute(kinds, source)
    program = cpv.PrivacyDistortion(source, d, budget=1.0).program
    (row,) = program.constraints.values()
    best = float(program.weighted(row.expression, program.mass).min())  # of constant releases
    start = time.perf_counter()
    solution = cpv.PrivacyDistortion(source, d, budget=share * best).solve(time_limit=limit)
    return {
        "cells": len(source.x),
        "lower": solution.lower,
        "upper": solution.upper,
        "gap": solution.gap,
        "seconds": round(time.perf_counter() - start, 1),
        "peak GiB": peak(),
    }


@pytest.mark.parametrize(
    ("columns", "limit", "width"),
    [
        (5, 30.0, 1e-2),
        pytest.param(6, 300.0, 1e-2, marks=pytest.mark.long),
        pytest.param(6, None, 1e-3, marks=pytest.mark.long),
        pytest.param(8, 300.0, 1e-2, marks=pytest.mark.long),
    ],
)
def test_cells_by_the_thousand(columns, limit, width):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seen = pool.apply(enclosed, (columns, 0.1, limit))
    print(f"\n{columns} columns: {seen} (target: gap {width:g} bits, peak 4 GiB)")
    assert 0 <= seen["lower"] <= seen["upper"]
    assert seen["peak GiB"] <= 4.0
