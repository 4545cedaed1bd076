"""Without the public tables: a script says in one line what to do, and writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.test_architecture import ROOT, script

SET = {
    **dict.fromkeys(("invariant_pram", "worst_case_or_average", "side_information_adult"),
                    r"Set CVXPRIVACY_DATA .* adult\.csv.* UCI"),
    **dict.fromkeys(("census_income", "compare_maskings"),
                    r"Set CVXPRIVACY_DATA .* census\.csv.* CASC"),
}  # fmt: skip
SET = {f"problems/{name}": words for name, words in SET.items()}
SET["figures/mateosanz_tables"] = SET["problems/census_income"]
FETCH = dict.fromkeys(
    ("problems/adult_marital", "figures/bezzi_fig2_4"),
    r"adult\.csv .*cannot be fetched.* CVXPRIVACY_DATA",
)


@pytest.mark.parametrize("folder", [None, "empty"])
@pytest.mark.parametrize("path", [*SET, *FETCH])
def test_a_script_says_what_to_do(path, folder, tmp_path, monkeypatch, capsys):
    if "mask" in path or "mateosanz" in path:
        pytest.importorskip("sklearn", reason="the extra `masking` is not installed")
    for name in ("CVXPRIVACY_DATA", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    if folder:
        monkeypatch.setenv("CVXPRIVACY_DATA", str(tmp_path))
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(SystemExit, match={**SET, **FETCH}[path]) as raised:
        script(ROOT / f"{path}.py").main(["--out", str(tmp_path / "x.png")])
    assert "\n" not in raised.value.code
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_the_shell_gets_one_line_and_an_exit_status(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "CVXPRIVACY_DATA"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "problems" / "census_income.py"), "--out", str(tmp_path / "x")],
        capture_output=True, text=True, check=False, env={**environment, "PYTHONPATH": str(ROOT)},
        encoding="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Set CVXPRIVACY_DATA")
    assert len(done.stderr.strip().splitlines()) == 1
