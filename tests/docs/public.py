"""The public names: of both packages, of the modules that users import, of the reference."""

from __future__ import annotations

import importlib
from typing import Any

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.api import PAGES, public

__all__ = ["MODULES", "public_names"]

MODULES = (
    "cvxprivacy.leakage",
    "cvxprivacy.mechanisms",
    "cvxprivacy.plotting",
    "cvxprivacy.reference",
    "cvxprivacy.study",
    "cvxprivacy.style",
    "cvxprivacy.tables.datasets",
    "cvxprivacy.model.information",
    "cvxprivacy.model.one_symbol",
    "cvxprivacy_sdc.masking",
    "cvxprivacy_sdc.loss",
    "cvxprivacy_sdc.risk",
)


def public_names() -> dict[str, Any]:
    """Return classes and functions by their full public names."""
    names = {f"{package.__name__}.{n}": getattr(package, n)
             for package in (cpv, sdc) for n in dir(package) if not n.startswith("_")}  # fmt: skip
    for path in MODULES:
        module = importlib.import_module(path)
        names |= {f"{path}.{n}": getattr(module, n) for n in module.__all__}
    # what comes back, too; what a formulation is stated in has a page of its own
    for package in PAGES:
        listed = {n: v for n, v in public(package).items() if not n.startswith("programs.")}
        names |= {f"{package}.{n}": value for n, value in listed.items()}
    return {n: thing for n, thing in names.items() if callable(thing)}
