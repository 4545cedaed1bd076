"""A number that is proved to lie between two ends."""

from __future__ import annotations

from typing import Any

__all__ = ["Enclosure"]


class Enclosure(float):
    """A number that is proved to lie in [lower, upper]; as a float it is their middle.

    Terms of a solution and prices of a frontier are such numbers.  Arithmetic with one gives a
    plain float.

    Attributes
    ----------
    lower, upper : float
        The proved ends; either may be infinite.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> risk = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve().risk
    >>> round(risk, 4), risk.lower <= risk <= risk.upper
    (0.0956, True)
    >>> risk.upper - risk.lower < 1e-12
    True
    """

    lower: float
    upper: float

    def __new__(cls, lower: float, upper: float) -> Enclosure:
        half = lower + (upper - lower) / 2
        number = super().__new__(cls, lower if half != half else half)  # of [−∞, b] it is −∞
        number.lower, number.upper = lower, upper
        return number

    def __repr__(self) -> str:
        return f"Enclosure({self.lower!r}, {self.upper!r})"

    def __str__(self) -> str:
        return f"[{self.lower!r}, {self.upper!r}]"

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise AttributeError(f"{name!r} of an enclosure cannot change: make another one")
        super().__setattr__(name, value)

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]  # float's has one
        return self.lower, self.upper
