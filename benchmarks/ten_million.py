"""Count and release ten million records of a Parquet file through DuckDB, and print the peak.

    python benchmarks/ten_million.py folder [records]

The file is made in the folder first, by a process of its own, so that the peak is that of
counting and releasing alone.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
from pathlib import Path


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


def peak() -> float:
    """Return the most memory that this process held, in GiB.

    ``getrusage`` would count what the parent held when it made this process.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 2**20


def main() -> None:
    """Make, release, print."""
    folder = Path(sys.argv[1])
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    path = folder / "ten_million.parquet"
    context = multiprocessing.get_context("spawn")
    maker = context.Process(target=make, args=(path, records))
    maker.start()
    maker.join()
    with context.Pool(1) as pool:
        print(pool.apply(release, (path, folder / "released.parquet")))


if __name__ == "__main__":
    main()
