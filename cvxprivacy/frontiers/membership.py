"""Whether a point can be achieved, with what proves the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

__all__ = ["Membership"]


class Membership(str):
    """``"inside"``, ``"outside"`` or ``"within tol"``, with its certificate.

    Attributes
    ----------
    weights : dict of int to Fraction
        Inside: of the vertices of a surface, or the points of a frontier, whose mixture is as good
        as the point in every coordinate.
    plane : (Fraction, Fraction, Fraction, Fraction) or None
        Outside a surface: (w, s) with w·p < s, where every release has w·p ≥ s.
    bound : float or None
        Outside a frontier: what no release undercuts there, by proof; +inf where none is feasible.
    """

    weights: dict[int, Fraction]
    plane: tuple[Fraction, ...] | None
    bound: float | None

    def __new__(
        cls,
        answer: str,
        weights: Mapping[int, Fraction] | None = None,
        plane: Sequence[Fraction] | None = None,
        bound: float | None = None,
    ) -> Membership:
        self = super().__new__(cls, answer)
        self.weights = dict(weights or {})
        self.plane = None if plane is None else tuple(plane)
        self.bound = bound
        return self
