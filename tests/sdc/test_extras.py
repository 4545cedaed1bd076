"""An install of cvxprivacy-sdc without extras: what needs one says what to type."""

from __future__ import annotations

import sys
import tomllib

import pytest

from tests.repository import ROOT, loaded_after
from tests.test_architecture import imports_of, modules
from tests.test_extras import answered, imported

PROJECT = tomllib.loads((ROOT / "sdc" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {"files": ["openpyxl", "pyreadstat", "python_calamine"], "linkage": ["splink"]}
HIDDEN = [package for packages in EXTRAS.values() for package in packages]
TABLE = ["--sensitive", "ill", "--key", "age", "--budget", "0.1"]
LINKED = "from cvxprivacy_sdc.risk import probabilistic_linkage as p; p([[1.0]], [[2.0]])"


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """Return how ends what needs an extra, where none is installed."""
    folder = tmp_path_factory.mktemp("light")
    names = [f"t.{ending}" for ending in ("xlsx", "sav", "dta", "sas7bdat")]
    for name in names:
        (folder / name).write_bytes(b"")
    commands = {name: ["release", name, *TABLE] for name in names}
    return answered(folder, HIDDEN, code={"linkage": LINKED}, commands=commands)


def line(extra):
    return f"is not installed; install it with: pip install 'cvxprivacy-sdc[{extra}]'"


def test_commands_that_need_an_extra_say_what_to_type(light):
    for name, (code, message) in light["commands"].items():
        assert (code, message.count("\n")) == (2, 1), (name, message)
        assert message.startswith("cvxprivacy: ")
        assert message.endswith(line("files") + "\n"), name


def test_code_that_needs_an_extra_says_what_to_type(light):
    assert light["code"]["linkage"].startswith("MissingPackageError: ")
    assert light["code"]["linkage"].endswith(line("linkage"))


def test_extras_bring_what_code_asks_for():
    for extra, packages in EXTRAS.items():
        assert {*map(imported, PROJECT["optional-dependencies"][extra])} == {*packages}


def test_all_that_is_imported_is_named():
    """Of an extra only inside functions, or for a type checker."""
    named = {*map(imported, PROJECT["dependencies"]), *HIDDEN, "cvxprivacy_sdc", "cvxprivacy"}
    named |= {"polars", "dask"}  # frames of users, who have them
    for path in modules("cvxprivacy_sdc"):
        used = {name.split(".")[0] for name in imports_of(path)}
        assert used - named <= {*sys.stdlib_module_names}, path


def test_importing_is_lazy():
    loaded = loaded_after("import cvxprivacy_sdc")
    assert not {"cvxpy", "matplotlib", "scipy", "flint", "pandas"} & loaded
