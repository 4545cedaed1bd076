"""Every public name says what it takes and returns, and shows an example that runs.

What an example prints is checked in ``tests/test_examples.py``; here, that it is there, and that
the docstring names the parameters that the object has (numpydoc's validation).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from numpydoc.validate import validate

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.docs.public import MODULES, public_names

# what users are given, and do not make: Attributes say what it holds
RETURNED = {
    "Audit", "Audits", "Bound", "BrokenTableError", "CategoricalLoss", "Certificate",
    "CertificationError", "ClassSizes", "CodeMeasures", "Comparison", "Condition", "DrawnTable",
    "Enclosure", "Estimate", "Figure", "Frontier", "GaussianRelease", "GaussianSolution",
    "Generalisation", "HammingChannel", "IndividualRisk", "InfeasibleError", "InformationLoss",
    "Informed", "InputError", "KeyRecoding", "Matching", "MissingPackageError", "Outcome",
    "PopulationUniqueness", "Price", "ProbabilisticLoss", "Progress", "Quality", "Solution",
    "Surface", "Sweep", "TableSolution", "UnknownValueError", "UnseenValueWarning",
}  # fmt: skip
PARAMETERS = {"PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR10"}
LAYOUT = {"GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10", "SS01", "RT03", "YD01"}
OF_A_NAME = PARAMETERS | LAYOUT | {"RT01", "EX01"}
OF_A_MEMBER = PARAMETERS | LAYOUT
NAMES = public_names()


def _members() -> Iterator[str]:
    """Name what public classes define themselves and no base documents."""
    for name, thing in NAMES.items():
        for member, defined in vars(thing).items() if inspect.isclass(thing) else ():
            documented = any(
                getattr(vars(base).get(member), "__doc__", None) for base in thing.__mro__[1:]
            )
            described = isinstance(defined, (property, classmethod, staticmethod)) or (
                inspect.isfunction(defined) or type(defined).__name__ == "cached_property"
            )
            if described and not member.startswith("_") and not documented:
                yield f"{name}.{member}"


def _wrong(name: str, checks: set[str], spared: set[str] = frozenset()) -> list[tuple[str, str]]:
    return [(c, text) for c, text in validate(name)["errors"] if c in checks - spared]


@pytest.mark.parametrize("name", list(NAMES))
def test_a_public_name_is_documented_with_an_example(name):
    thing: Any = NAMES[name]
    made = not (inspect.isclass(thing) and thing.__name__ in RETURNED)
    wrong = _wrong(name, OF_A_NAME, frozenset() if made else PARAMETERS)
    assert not wrong
    doc = inspect.getdoc(thing)
    assert ">>>" in doc
    assert made or "Attributes\n----" in doc or issubclass(thing, (Exception, Warning))


@pytest.mark.parametrize("name", list(_members()))
def test_a_member_of_a_public_class_is_documented(name):
    assert not _wrong(name, OF_A_MEMBER)


def test_every_class_that_is_only_returned_is_public():
    assert {name.rpartition(".")[2] for name in NAMES} >= RETURNED


def test_the_modules_are_those_that_users_reach():
    values = [getattr(package, n) for package in (cpv, sdc) for n in package.__all__]
    reached = {value.__name__ for value in values if inspect.ismodule(value)}
    assert reached <= {*MODULES, "cvxprivacy_verifier"}
