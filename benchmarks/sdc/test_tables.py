"""Tables larger than memory: counted and released in less than a gibibyte.

pytest benchmarks/sdc/test_tables.py --benchmark-enable -m "" -p no:xdist -s
"""

from __future__ import annotations

import multiprocessing

import pytest

from benchmarks.sdc import ten_million

pytest.importorskip("duckdb", reason="the extra `tables` is not installed")


@pytest.mark.parametrize("records", [10_000_000])
def test_ten_million_records_in_a_gibibyte(tmp_path, records):
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "table.parquet"
    maker = context.Process(target=ten_million.make, args=(path, records))
    maker.start()
    maker.join()
    with context.Pool(1) as pool:
        seen = pool.apply(ten_million.release, (path, tmp_path / "released.parquet"))
    print(f"\n{seen} (target: peak 1 GiB)")
    assert seen["counted"] == seen["written"] == records
    assert seen["peak GiB"] <= 1.0
