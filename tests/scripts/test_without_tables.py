"""Without the public tables: a script says in one line what to do, and writes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cvxprivacy import study
from tests.repository import needs_sdc, script, scripts

LOADER = r"datasets\.load_(adult|census)"


def readers(paths):
    """Return the table that each script reads, of those that read one."""
    found_in = {path: re.search(LOADER, path.read_text(encoding="utf-8")) for path in paths}
    return {path: match[1] for path, match in found_in.items() if match}


READERS = readers(path for path in scripts() if not needs_sdc(path))


@pytest.mark.parametrize("folder", [None, "empty"])
@pytest.mark.parametrize(("path", "table"), READERS.items(), ids=lambda value: Path(value).stem)
def test_a_script_says_what_to_do(path, table, folder, tmp_path, monkeypatch, capsys):
    check(path, table, folder, tmp_path, monkeypatch, capsys)


def check(path, table, folder, tmp_path, monkeypatch, capsys):
    """Run a script where its table is not, and cannot be fetched."""
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
