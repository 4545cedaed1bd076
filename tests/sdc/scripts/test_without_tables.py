"""Without the public tables scripts of disclosure control say in one line what to do, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT, needs_sdc, scripts
from tests.scripts.test_without_tables import check, readers

READERS = readers(filter(needs_sdc, scripts()))


@pytest.mark.parametrize("folder", [None, "empty"])
@pytest.mark.parametrize(("path", "table"), READERS.items(), ids=lambda value: Path(value).stem)
def test_a_script_says_what_to_do(path, table, folder, tmp_path, monkeypatch, capsys):
    if "masking" in path.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn", reason="the extra `masking` is not installed")
    check(path, table, folder, tmp_path, monkeypatch, capsys)


@pytest.mark.long
def test_the_shell_gets_one_line_and_an_exit_status(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "CVXPRIVACY_DATA"}
    environment |= {"PYTHONPATH": str(ROOT), "CVXPRIVACY_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "problems" / "census_income.py"), "--out", "x.png"],
        capture_output=True, text=True, check=False, encoding="utf-8", cwd=tmp_path,
        env={**environment, "https_proxy": "http://127.0.0.1:9"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "census.csv" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
