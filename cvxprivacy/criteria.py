"""Privacy criteria and rules as constraints of a problem.

A criterion is one short class that yields named rows in the terms of the problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cvxprivacy.checks import number
from cvxprivacy.programs import Row

if TYPE_CHECKING:
    from cvxprivacy.formulations.base import ChannelProblem

__all__ = ["Criterion", "LeakageCap"]


class Criterion:
    """Something that the release must satisfy."""

    def rows(self, problem: ChannelProblem) -> Mapping[str, Row]:
        """Return the rows that state it, by name."""
        raise NotImplementedError


class LeakageCap(Criterion):
    """I(W; X̂) ≤ b, the average leakage (Rebollo-Monedero et al. 2010, eq. 2).

    Parameters
    ----------
    b : float
        Cap in the problem's units, b ≥ 0.
    """

    def __init__(self, b: float) -> None:
        self.b = number(b, "b")

    def __repr__(self) -> str:
        return f"LeakageCap({self.b:g})"

    def rows(self, problem: ChannelProblem) -> Mapping[str, Row]:
        return {"leakage_cap": problem.risk <= self.b}
