"""A solved point of a frontier."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from cvxprivacy.certificates.balls import decode
from cvxprivacy.errors import InputError
from cvxprivacy.frontiers.family import Family
from cvxprivacy.results.solution import Enclosure, Solution

__all__ = ["Point"]


class Point:
    """A solved point of a frontier.

    Attributes
    ----------
    x : float
        The number typed.
    status : {"certified", "loose", "infeasible", "uncertified"}
    lower, upper : float
        Enclose the optimum; both infinite where nothing is feasible.
    price : float or None
        d optimum / d x, by the multipliers of this point.
    terms : dict of str to Enclosure
        Quantities of its release.
    solution : Solution or None
        All of it; None on a frontier that was loaded without its problem.
    """

    def __init__(self, record: Mapping[str, Any], family: Family | None) -> None:
        claim = record["claim"]
        self.record, self._family = record, family
        self.x, self.status = float(record["x"]), claim["status"]
        self.lower, self.upper = decode(claim["lower"]), decode(claim["upper"])
        self.price = None if record["price"] is None else float(record["price"])
        self.terms = {
            name: Enclosure(decode(low), decode(high))
            for name, (low, high) in claim["terms"].items()
        }

    @cached_property
    def solution(self) -> Solution | None:
        return None if self._family is None else self._family.solution(self.record)

    @property
    def known(self) -> Solution:
        """The solution, or an error that says how to have it."""
        if self.solution is None:
            remedy = "pass problem= to Frontier.load"
            raise InputError("problem", "the frontier was loaded without it", remedy)
        return self.solution

    def __repr__(self) -> str:
        return f"Point({self.x!r}, {self.status}, value in [{self.lower!r}, {self.upper!r}])"
