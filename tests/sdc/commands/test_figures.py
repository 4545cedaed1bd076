"""``figures``: the scripts of a checkout, listed and run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.sdc.commands.runner import ROOT, command, refused, say


def test_figures_are_listed(here):
    listed = say("figures").out
    scripts = [p.stem for name in ("figures", "problems") for p in (ROOT / name).glob("*.py")]
    assert sorted(re.findall(r"^\w+/(\w+) +\S", listed, re.M)) == sorted(scripts)
    refused("figures", "nope", pieces=["'nope'", scripts[0]])


@pytest.mark.long
def test_figures_are_run(here):
    environment = {
        "CVXPRIVACY_DATA": str(here), "CVXPRIVACY_CACHE": str(here / "cache"),
        "https_proxy": "http://127.0.0.1:9", "NO_PROXY": "", "no_proxy": "",
    }  # fmt: skip
    done = command("figures", "invariant_pram", "--out", "a", cwd=here, env=environment)
    assert done.returncode == 1
    assert "invariant_pram failed: dataset: adult.csv is not at hand" in done.stderr
    assert f"CVXPRIVACY_DATA has no {here / 'adult.csv'}" in done.stderr
    shutil.copytree(ROOT / "cvxprivacy", "site/cvxprivacy")
    done = command("figures", cwd=here, env={"PYTHONPATH": str(here / "site")})
    assert (done.returncode, done.stdout) == (2, "")
    assert "--root" in done.stderr
    done = say("figures", "gaussian_scalar", "--out", "deep/er", "--format", "pdf")
    assert "certified" in done.out
    assert Path("deep/er/gaussian_scalar.pdf").read_bytes()[:4] == b"%PDF"
