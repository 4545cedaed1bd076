"""Release ten million records of a Parquet file, beside a plain copy of it by Polars.

    python -m benchmarks.sdc.ten_million folder [records]

The file is made in the folder first.  Each run is a process of its own: a plain copy, the command
without and with the survey of the other columns, and Python with DuckDB's memory limited.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.memory import peak

COPY = """
import sys, polars
polars.scan_parquet(sys.argv[1]).sink_parquet(sys.argv[2], compression="snappy")
"""
RELEASE = [
    "release", "--sensitive", "ward", "--key", "age,sex", "--bins", "age=10", "--budget", "0.1",
    "--seed", "1", "--force",
]  # fmt: skip


def make(path: Path, records: int) -> None:
    """Write records of ward × age × sex, with a number and a text beside them."""
    import duckdb

    duckdb.execute("SET threads = 1")
    duckdb.execute(
        f"""COPY (SELECT i AS id,
                 'ward ' || (hash(i) % 5) AS ward,
                 CAST(18 + (hash(i * 7) % 30) + (hash(i) % 5) * 8 AS INTEGER) AS age,
                 CASE WHEN hash(i * 3) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
                 (hash(i * 11) % 100000) / 7.0 AS amount
              FROM range({records}) t(i)) TO '{path}' (FORMAT parquet)"""
    )


def release(path: Path, out: Path) -> dict[str, float]:
    """Count, solve, release; return what was seen."""
    import duckdb
    import pyarrow.parquet as pq

    import cvxprivacy as cpv

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '256MB'")
    table = connection.read_parquet(str(path))
    source = cpv.DiscreteSource.from_table(
        table, sensitive="ward", key=["age", "sex"], bins={"age": 10}
    )
    measure = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    solution = cpv.PrivacyDistortion(source, measure, budget=0.1).solve()
    reader = solution.channel.apply(table, seed=1)
    written = 0
    with pq.ParquetWriter(out, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            written += len(batch)
    return {"counted": source.records, "written": written, "peak GiB": round(peak(), 3)}


def timed(*arguments: str) -> dict[str, float]:
    """Run Python; return seconds on the clock, seconds of all processors, and the peak."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "processors": round(used.ru_utime + used.ru_stime, 1),
        "peak GiB": round(used.ru_maxrss / 2**20, 3),
    }


def main() -> None:
    """Make, copy, release, print."""
    folder = Path(sys.argv[1])
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    path = folder / "ten_million.parquet"
    context = multiprocessing.get_context("spawn")
    maker = context.Process(target=make, args=(path, records))
    maker.start()
    maker.join()
    released, command = str(folder / "released.parquet"), ["-m", "cvxprivacy_sdc", *RELEASE]
    print("plain copy", timed("-c", COPY, str(path), str(folder / "copy.parquet")))
    for survey in ("--no-untouched", "--untouched"):
        print(f"release {survey}", timed(*command, survey, "--out", released, str(path)))
    with context.Pool(1) as pool:
        print(pool.apply(release, (path, folder / "released.parquet")))


if __name__ == "__main__":
    main()
