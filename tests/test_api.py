"""The public names and signatures are those that users rely on."""

from __future__ import annotations

import inspect
import subprocess
import sys

import cvxprivacy as cpv
from tests import api

MODULES = {"datasets", "information", "leakage", "mechanisms", "one_symbol", "plotting",
           "reference", "study", "style"}  # fmt: skip


def test_names_and_signatures_are_those_that_were_promised():
    promised = api.PATH.read_text(encoding="utf-8").splitlines()
    outcome = list(api.lines())
    gone, fresh = sorted({*promised} - {*outcome}), sorted({*outcome} - {*promised})
    words = "python -m tests.api writes them anew; CHANGELOG tells users"
    assert outcome == promised, f"gone: {gone}; fresh: {fresh}; {words}"


def test_the_verifier_is_an_attribute_of_the_package():
    code = "import cvxprivacy as cpv; cpv.verifier.verify.disagreements"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_that_is_exported_is_documented():
    assert {*cpv.__all__} - MODULES <= {*api.public()}


def test_what_comes_back_is_not_exported():
    """At the top stand what users construct or call, and errors that they catch."""
    from cvxprivacy import typing

    assert not {*cpv.__all__} & {*typing.__all__}
    for name in cpv.__all__:
        value = getattr(cpv, name)
        assert name in MODULES or inspect.isroutine(value) or inspect.isclass(value)
