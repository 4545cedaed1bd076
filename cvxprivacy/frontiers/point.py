"""A solved point of a frontier: what its record says, and the line that it proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb

from cvxprivacy.errors import InputError
from cvxprivacy.frontiers.curve import CONCAVE, EXPONENTIAL, MONOTONE, Axis, Breakpoint, interval
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.stored import from_json
from cvxprivacy.frozen import Frozen
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.solution import Solution
from cvxprivacy_verifier.balls import ball, decode, total

__all__ = ["Point", "breakpoint_of"]


class Point(Frozen):
    """A solved point of a frontier.

    Attributes
    ----------
    x : float or Fraction
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

    def __init__(self, record: Mapping[str, Any], problem: ParametricProblem | None) -> None:
        claim, price = record["claim"], record["price"]
        self._record, self._problem = record, problem
        self.x, self.status = from_json(record["x"]), claim["status"]
        self.lower, self.upper = decode(claim["lower"]), decode(claim["upper"])
        self.price = None if price is None else float(price)
        self.terms = {
            name: Enclosure(decode(low), decode(high))
            for name, (low, high) in claim["terms"].items()
        }

    @cached_property
    def solution(self) -> Solution | None:
        """All that is known at this point."""
        return None if self._problem is None else self._problem.solution(self.x, self._record)

    def _solution(self) -> Solution:
        if self.solution is None:
            remedy = "pass problem= to Frontier.load"
            raise InputError("problem", "the frontier was loaded without it", remedy)
        return self.solution

    def __repr__(self) -> str:
        return f"Point({self.x!r}, {self.status}, value in [{self.lower!r}, {self.upper!r}])"


def breakpoint_of(record: Mapping[str, Any], program: Mapping[str, Any], axis: Axis) -> Breakpoint:
    """Return a solved point with the slope of its line.

    The bound that its multipliers prove is affine in the right-hand side: the slope is the
    multiplier itself, in the units of the optimum, or the sum of those that have this number.
    """
    x, claim, dual = from_json(record["x"]), record["claim"], record["dual"]
    enclosure = x, axis.bound(x), decode(claim["lower"]), decode(claim["upper"])
    if axis.kind == CONCAVE:
        weighed = claim["terms"].get(axis.rows[0])  # what the number weighs, of the release
        ends = () if weighed is None else [Fraction(decode(end)) for end in weighed]
        return Breakpoint(*enclosure, (ends[0], ends[1])) if ends else Breakpoint(*enclosure)
    if dual is None or not dual["objective"] or axis.kind == MONOTONE:
        return Breakpoint(*enclosure)
    if axis.kind == EXPONENTIAL:  # the summand −e^b max_y Σ_s p(s) μ(s, y)
        (mu,) = dual["auxiliaries"][axis.rows[0]]
        mass = [total(map(ball, column)) for column in zip(*program["law"], strict=True)]
        sums = [interval(_dot(mass, column) / total(mass)) for column in zip(*mu, strict=True)]
        return Breakpoint(*enclosure, (max(low for low, _ in sums), max(high for _, high in sums)))
    multipliers = (Fraction(dual["multipliers"].get(row, 0.0)) for row in axis.rows)
    slope = sum((max(multiplier, Fraction(0)) for multiplier in multipliers), Fraction(0))
    if program["kind"] == "channel" or program["units"] == "nats":
        return Breakpoint(*enclosure, (slope, slope))
    expressions = program["rows"][axis.rows[0]]["term"], program["objective"]
    inner, outer = (bool(expression["weights"]) for expression in expressions)
    if inner == outer:
        return Breakpoint(*enclosure, (slope, slope))
    # a covariance program's multipliers are those of the program in nats
    low, high = interval(arb(2).log() if inner else 1 / arb(2).log())
    return Breakpoint(*enclosure, (slope * low, slope * high))


def _dot(mass: Sequence[arb], column: Sequence[float]) -> arb:
    return total(p * max(x, 0.0) for p, x in zip(mass, column, strict=True))
