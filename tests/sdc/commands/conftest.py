"""A folder with a table, and what a release of it leaves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.sdc.commands.runner import BOTH, OUTPUTS, people, rows, say, write


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("t.csv", people())
    return tmp_path


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """Release a small table once, for those who only need what it leaves."""
    folder = tmp_path_factory.mktemp("kept")
    write(folder / "t.csv", people())
    outputs = [part if part.startswith("--") else str(folder / part) for part in OUTPUTS]
    say("release", folder / "t.csv", *BOTH, "--seed", 1, *outputs)
    return folder


@pytest.fixture
def parquet(here):
    _, arrow, file = (pytest.importorskip(name, reason="the extra `tables` is not installed")
                      for name in ("duckdb", "pyarrow", "pyarrow.parquet"))  # fmt: skip
    columns = {name: [row[name] for row in rows("t.csv")] for name in rows("t.csv")[0]}
    columns |= {name: list(map(int, columns[name])) for name in ("id", "age")}
    file.write_table(arrow.table(columns), "t.parquet")
    return SimpleNamespace(
        make=lambda path, columns: file.write_table(arrow.table(columns), path),
        read=lambda path: file.read_table(path).to_pydict(),
        columns=columns,
    )
