"""Documents checked a second time, by other arithmetic and by none of the package's code.

Everything is a ``Fraction``; a logarithm lies between two of them, found by mpmath's intervals.
Written from the mathematics: any laws r(· | y) and multipliers λ ≥ 0 bound a channel program from
below, any Y ≻ 0 and P ≽ 0 a covariance program, and any feasible point bounds each from above.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.second_checker.channel import Channel
from tests.second_checker.covariance import Covariance
from tests.second_checker.hamming import Hamming
from tests.second_checker.numbers import Refused, need
from tests.second_checker.spectral import Spectral
from tests.second_checker.useful import Useful
from tests.second_checker.water import Water

__all__ = ["KINDS", "Refused", "check", "judged", "program_of", "tolerance"]

SCHEMA = "cvxprivacy/certificate/"  # … and a number
ACCURACY = {"default": Fraction(1, 10**6), "high": Fraction(1, 10**9)}
KINDS: dict[str, Any] = {
    "channel": Channel,
    "covariance": Covariance,
    "hamming": Hamming,
    "spectral": Spectral,
    "useful": Useful,
    "water": Water,
}
_NONE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def program_of(document: Any) -> Any:
    """Return the program of a document."""
    try:
        need(document["schema"].startswith(SCHEMA), "another schema")
        return KINDS[document["program"]["kind"]](document["program"])
    except _NONE as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def tolerance(program: Any, accuracy: str, upper: Any) -> Fraction:
    """Return how far apart the ends of a certified document may be."""
    return ACCURACY[accuracy] * program.unit(upper)


def bounded(program: Any, dual: Any) -> Any:
    """Return what multipliers prove; nothing if there is a 0 where none may be."""
    try:
        return program.lower(dual)
    except ZeroDivisionError:
        return -math.inf


def check(document: Any) -> tuple[Any, Any, str]:
    """Return rationals (or infinities) around the minimum of the program, and the status.

    Raises
    ------
    Refused
        If the document holds no program, or a primal that is not feasible.
    """
    return judged(document, program_of(document))[:3]


def judged(document: Any, program: Any) -> tuple[Any, Any, str, dict[str, Any]]:
    """Return what ``check`` does, and an enclosure of every term at the primal."""
    lower, upper, status, terms = least(document, program)
    if getattr(program, "greatest", False):  # that of −f
        lower, upper = -upper, -lower
    return lower, upper, status, terms


def least(document: Any, program: Any) -> tuple[Any, Any, str, dict[str, Any]]:
    """Return what is known of the least value."""
    try:
        dual, primal = document["dual"], document["primal"]
        accuracy = ACCURACY[document["accuracy"]]
        bound = -math.inf if dual is None else bounded(program, dual)
        if dual is not None and not dual.get("objective", 1):
            outcome = bound > 0
            ends = math.inf if outcome else -math.inf, math.inf
            return *ends, ("uncertified", "infeasible")[outcome], {}
        (_, upper), terms = ((0, math.inf), {}) if primal is None else program.upper(primal)
        if not -math.inf < bound <= upper < math.inf:
            return bound, upper, "uncertified", terms
        certified = upper - bound <= accuracy * program.unit(upper)
        return bound, upper, "certified" if certified else "loose", terms
    except _NONE as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
