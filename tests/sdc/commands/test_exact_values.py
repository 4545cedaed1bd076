"""Values that no float holds, in files: released as they are, and audited apart."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

from tests.engines import pa
from tests.lengths import some_at_length
from tests.sdc.commands.runner import report, say
from tests.tables.test_exact_values import table_of

KINDS = ["decimal", "integer", "unsigned"]


def in_files(seed, kind, ending, bins=False):
    """Return what is wrong of a table that is released with nothing changed, and audited."""
    import pyarrow.parquet as pq

    _, values, x, w, table = table_of(seed, kind)
    before, after = f"t.{ending}", f"o.{ending}"
    if ending == "parquet":
        pq.write_table(table, before)
    else:
        text = [["w", "x", "copy"], *zip(w, x, x[::-1], strict=True)]
        rows = [",".join(f"{v:f}" if isinstance(v, Decimal) else str(v) for v in r) for r in text]
        Path(before).write_text("\n".join(rows) + "\n", encoding="utf-8")
    how = ["--sensitive", "w", "--key", "x"]
    if bins:
        edge = Decimal(sorted(values)[1])
        how += ["--bins", f"x=-inf:{edge:f}:inf"]
    classes = Counter((v >= edge) if bins else v for v in x)
    audited = report("audit", before, *how, code=None)["classes"]
    wrong = [] if audited["number"] == len(classes) else ["audit"]
    wrong += [] if audited["least"] == min(classes.values()) else ["least"]
    printed = say("release", before, *how, "--budget", "0", "--out", after, "--json")
    Path("r.json").write_text(printed.out, encoding="utf-8")
    say("verify", "--report", "r.json", "--table", before, "--released", after)
    if not bins and ending == "parquet":
        wrong += [] if pq.read_table(after).equals(table) else ["release"]
    elif not bins:
        wrong += [] if Path(after).read_bytes() == Path(before).read_bytes() else ["release"]
    Path(after).unlink()
    return [(seed, kind, ending, bins, what) for what in wrong]


@pytest.mark.parametrize(
    ("kind", "ending"), some_at_length([*product(KINDS, ["parquet", "csv"])], 3)
)
def test_a_file_is_released_as_it_is(kind, ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert in_files(1, kind, ending) + in_files(1, kind, ending, bins=True) == []


def test_nearby_decimals_are_audited_apart(tmp_path, monkeypatch):
    """By hand: two values, each of ten records that are alike, so k = 10 and ℓ = 1."""
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    x = [Decimal("12345678901234.5678")] * 10 + [Decimal("12345678901234.5679")] * 10
    pq.write_table(pa.table({"ill": list("y" * 10 + "n" * 10), "x": x}), "t.parquet")
    how = ("audit", "t.parquet", "--key", "x", "--sensitive", "ill")
    document = report(*how, "--criterion", "LDiversity=2", code=1)
    assert document["classes"]["least"] == 10
    assert document["information"]["after"]["plugin"] == pytest.approx(1)


def test_infinite_keys_are_released(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    table = pa.table({"x": [1.0, float("inf"), -float("inf")] * 4, "w": list("abab" * 3)})
    pq.write_table(table, "t.parquet")
    how = ("t.parquet", "--sensitive", "w", "--key", "x")
    say("release", *how, "--budget", "0", "--out", "o.parquet")
    assert pq.read_table("o.parquet").equals(table)
    message = say("audit", *how, "--bins", "x=1", code=2).err
    assert "column 'x' has" in message
    assert "--bins" not in message


def campaign(trials):
    os.chdir(tempfile.mkdtemp())
    wrong = []
    for seed in range(trials):
        kind, ending = KINDS[seed % 3], ("parquet", "csv")[seed // 3 % 2]
        wrong += in_files(seed, kind, ending, bins=seed % 5 == 0)
        if seed % 50 == 49:
            print(f"{seed + 1} files, {len(wrong)} differences: {wrong[:5]}", flush=True)


if __name__ == "__main__":
    campaign(int(sys.argv[1]))
