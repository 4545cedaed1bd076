"""The public names: of ``cvxprivacy``, of the modules that its users import, of the reference."""

from __future__ import annotations

import importlib
from typing import Any

import cvxprivacy as cpv
from tests.api import public

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
    "cvxprivacy.sdc.masking",
    "cvxprivacy.sdc.loss",
    "cvxprivacy.sdc.risk",
)


def public_names() -> dict[str, Any]:
    """Return classes and functions by their full public names."""
    names = {f"cvxprivacy.{n}": getattr(cpv, n) for n in dir(cpv) if not n.startswith("_")}
    for path in MODULES:
        module = importlib.import_module(path)
        names |= {f"{path}.{n}": getattr(module, n) for n in module.__all__}
    # what comes back, too; what a formulation is stated in has a page of its own
    listed = {n: thing for n, thing in public().items() if not n.startswith("programs.")}
    names |= {f"cvxprivacy.{n}": thing for n, thing in listed.items()}
    return {n: thing for n, thing in names.items() if callable(thing)}
