"""What contributors are told is there: paths, commands, rooms."""

from __future__ import annotations

import re
import tomllib

from tests.repository import ROOT
from tests.test_architecture import FOLDERS, PACKAGE

SDC = FOLDERS["cvxprivacy_sdc"] / "cvxprivacy_sdc"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "docs" / "reference" / "design.md").read_text(encoding="utf-8")


def test_every_path_is_there() -> None:
    paths = re.findall(r"`([\w./-]+/[\w./-]*)`", CONTRIBUTING)
    assert len(paths) > 20
    for path in paths:
        assert any((base / path).exists() for base in (ROOT, PACKAGE, SDC)), path


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", CONTRIBUTING):
        assert (ROOT / target).exists(), target


def test_the_map_names_every_room() -> None:
    """A room is a folder of a package; files beside them are what several rooms share."""
    folders = [path for of in (PACKAGE, SDC) for path in of.iterdir()]
    rooms = {path.name for path in folders if (path / "__init__.py").exists()}
    assert len(rooms) > 20
    table = DESIGN.split("## What has to be trusted")[0]
    assert {room for room in rooms if f"`{room}`" not in table} == set()


def test_what_is_looked_at_before_a_commit_is_what_ci_looks_at() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = set(re.findall(r"entry: ([\w -]+?),", hooks))
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = {line.strip().removesuffix(" .") for line in script}
    assert entries == {"ruff check", "ruff format --check", "codespell", "mypy"}
    assert entries <= commands
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    dev = " ".join(tools["project"]["optional-dependencies"]["dev"])
    assert all(tool in dev for tool in ("pre-commit", "ruff", "codespell", "mypy"))


def test_letters_of_the_theory_have_the_names_that_the_table_gives() -> None:
    index = (ROOT / "docs" / "theory" / "index.md").read_text(encoding="utf-8")
    table = index.split("## Letters")[1]
    rows = re.findall(r"^\| .* \| .* \| (`.*) \| `([\w/]+\.py)` \|$", table, re.M)
    assert len(rows) > 15
    for names, path in rows:
        source = (PACKAGE / path).read_text(encoding="utf-8")
        for name in re.findall(r"`([^`]+)`", names):
            assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source), (name, path)
