"""What many copied columns, and many records, take to be measured.

pytest benchmarks/sdc/test_many_columns.py --benchmark-enable -m "" -p no:xdist -s

On two cores of a server, at the time of writing: 200 columns of 500 records 1 s, 2,000 columns
9 s, 13 columns of a million records 2.4 s.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc


def made(records: int, columns: int) -> pd.DataFrame:
    """Make columns of two, eight, sixty and many values."""
    rng = np.random.default_rng(0)
    sizes = [2, 8, 60, 5000]
    copied = {f"c{i}": rng.integers(0, sizes[i % 4], records) for i in range(columns)}
    return pd.DataFrame({"ill": rng.integers(0, 2, records), "age": rng.integers(0, 5, records)}
                        | copied)  # fmt: skip


def seconds(records: int, columns: int) -> float:
    frame = made(records, columns)
    schema = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="age").schema
    start = time.perf_counter()
    assert len(sdc.untouched(frame, schema)) == columns
    return time.perf_counter() - start


def test_twice_the_columns_take_twice_the_time():
    seconds(500, 20)
    few, many = (min(seconds(500, columns) for _ in range(2)) for columns in (200, 400))
    print(f"\n200 columns {few:.2f} s, 400 columns {many:.2f} s: {many / few:.2f} times")
    assert many / few < 2.6


@pytest.mark.long
@pytest.mark.parametrize(("records", "columns", "target"), [(500, 2000, 30), (1_000_000, 13, 10)])
def test_large_tables(records, columns, target):
    took = seconds(records, columns)
    print(f"\n{records:,} records, {columns:,} columns: {took:.1f} s (target {target} s)")
    assert took <= target
