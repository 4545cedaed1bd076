"""The public names and signatures are those that users rely on."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

from tests import api
from tests.repository import HAS_SDC

PACKAGES = {name: import_module(name) for name in api.PAGES if HAS_SDC or name == "cvxprivacy"}
MODULES = {"loss", "masking", "risk",
           "datasets", "information", "leakage", "one_symbol"}  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_names_and_signatures_are_those_that_were_promised(package):
    promised = api.stored(package).read_text(encoding="utf-8").splitlines()
    outcome = list(api.lines(package))
    gone, fresh = sorted({*promised} - {*outcome}), sorted({*outcome} - {*promised})
    words = "python -m tests.api writes them anew; CHANGELOG tells users"
    assert outcome == promised, f"gone: {gone}; fresh: {fresh}; {words}"


def test_the_verifier_is_an_attribute_of_the_package():
    code = "import cvxprivacy as cpv; cpv.verifier.verify.disagreements"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_that_is_exported_is_documented(package):
    assert {*PACKAGES[package].__all__} - MODULES <= {*api.public(package), "__version__"}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_comes_back_is_not_exported(package):
    """At the top stand what users construct or call, and errors that they catch."""
    from cvxprivacy import typing

    names = {*PACKAGES[package].__all__} - MODULES - {"__version__"}
    assert not names & {*typing.__all__}
    for name in names:
        value = getattr(PACKAGES[package], name)
        assert inspect.isroutine(value) or inspect.isclass(value)
