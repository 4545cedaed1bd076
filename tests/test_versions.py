"""One version for all distributions, wherever it stands; and what is published is what is here."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
import cvxprivacy_verifier
from tests.repository import ROOT

VERSION = cvxprivacy_verifier.__version__
OURS, SDC, VERIFIER = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    for folder in ("", "sdc", "verifier")
)


def test_the_version_is_one():
    assert f"cvxprivacy-verifier=={VERSION}" in OURS["project"]["dependencies"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {VERSION}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(.*?)\]", changes, re.MULTILINE)
    assert newest
    before_release = "rc" in VERSION or "dev" in VERSION
    assert newest[1] == ("Unreleased" if before_release else VERSION)
    assert cpv.__version__ == metadata.version("cvxprivacy")
    assert sdc.__version__ == VERSION
    assert "scripts" not in OURS["project"]  # the command is of cvxprivacy-sdc
    named = {name for name in SDC["project"]["dependencies"] if name.startswith("cvxprivacy")}
    assert named == {f"cvxprivacy[tables]=={VERSION}", f"cvxprivacy-verifier=={VERSION}"}


def test_all_distributions_say_the_same():
    for field in ("requires-python", "license", "authors", "urls"):
        assert OURS["project"][field] == VERIFIER["project"][field] == SDC["project"][field]
    licences = {(ROOT / folder / "LICENSE").read_bytes() for folder in ("", "sdc", "verifier")}
    assert len(licences) == 1


def test_the_release_workflow_looks_where_the_version_stands():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"sed -n 's/\^(.*?)\\\(", text)
    source = (ROOT / "verifier" / "cvxprivacy_verifier" / "__init__.py").read_text()
    assert re.search(rf"^{pattern}{re.escape(VERSION)}\"$", source, re.MULTILINE)


def test_workflows_try_what_is_promised():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    tried = re.search(r"python: \[(.*)\]", text)
    assert tried
    named = [c.rsplit(" ", 1)[1] for c in OURS["project"]["classifiers"] if ":: 3." in c]
    assert re.findall(r"3\.\d+", tried[1]) == named
    assert OURS["project"]["requires-python"] == f">={named[0]}"
    for command in re.findall(r"\.ci/\w+", text):
        assert (ROOT / command).is_file(), command
