"""Without the public tables: a script says in one line what to do, and writes nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from cvxprivacy import study
from tests.test_architecture import ROOT, script, scripts

READERS = {
    path.stem: (path, match[1])
    for path in scripts()
    if (match := re.search(r"datasets\.load_(adult|census)", path.read_text(encoding="utf-8")))
}


@pytest.mark.parametrize("folder", [None, "empty"])
@pytest.mark.parametrize("name", READERS)
def test_a_script_says_what_to_do(name, folder, tmp_path, monkeypatch, capsys):
    path, table = READERS[name]
    if "masking" in path.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn", reason="the extra `masking` is not installed")
    for variable in ("CVXPRIVACY_DATA", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    if folder:
        monkeypatch.setenv("CVXPRIVACY_DATA", str(tmp_path))
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    module, words = script(path), rf"{table}\.csv .*cannot be fetched.* CVXPRIVACY_DATA"
    with pytest.raises(SystemExit, match=words) as raised:
        study.run(module.study, module.report, module.draw, ["--out", str(tmp_path / "x.png")])
    assert "\n" not in raised.value.code
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


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
