"""Every public name says what it takes and returns, and shows an example that runs.

What an example prints is checked in ``tests/test_examples.py``; here, that it is there, and that
the docstring names the parameters that the object has (numpydoc's validation).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

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


def test_public_names_are_documented_with_examples():
    wrong = {}
    for name, thing in NAMES.items():
        made = not (inspect.isclass(thing) and thing.__name__ in RETURNED)
        wrong[name] = _wrong(name, OF_A_NAME, frozenset() if made else PARAMETERS)
        doc = inspect.getdoc(thing)
        if ">>>" not in doc:
            wrong[name].append(("EX01", "no example that runs"))
        if not (made or "Attributes\n----" in doc or issubclass(thing, (Exception, Warning))):
            wrong[name].append(("", "no section Attributes"))
    assert len(wrong) > 100
    assert not {name: errors for name, errors in wrong.items() if errors}


def test_members_of_public_classes_are_documented():
    wrong = {name: _wrong(name, OF_A_MEMBER) for name in _members()}
    assert len(wrong) > 200
    assert not {name: errors for name, errors in wrong.items() if errors}


def test_every_class_that_is_only_returned_is_public():
    assert {name.rpartition(".")[2] for name in NAMES} >= RETURNED


def test_the_modules_are_those_that_users_reach():
    values = [getattr(package, n) for package in (cpv, sdc) for n in package.__all__]
    reached = {value.__name__ for value in values if inspect.ismodule(value)}
    assert reached <= {*MODULES, "cvxprivacy_verifier"}
