"""What is counted: how far two numbers agree, and which of them is right."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median

NEAR = 1e-9  # relative above 1, absolute below: what is nearer agrees, and is right

Truth = float | Fraction | tuple[float, float]


def near(a: float, b: float) -> bool:
    """Return whether two numbers agree."""
    return a == b or (
        math.isfinite(a) and math.isfinite(b) and abs(a - b) <= NEAR * max(1.0, abs(b))
    )


def right(value: float, truth: Truth) -> bool:
    """Return whether a number is the truth, or between the ends that enclose it."""
    low, high = truth if isinstance(truth, tuple) else (truth, truth)
    return low <= value <= high or near(value, low) or near(value, high)


def digits(a: float, b: float) -> float:
    """Return to how many decimal digits two numbers agree, 16 at most."""
    if a == b:
        return 16.0
    if not math.isfinite(a) or not math.isfinite(b):
        return 0.0
    return min(16.0, max(0.0, -math.log10(abs(a - b) / max(1.0, abs(b)))))


@dataclass
class Tally:
    """One line of the table: a quantity that a peer has, too."""

    quantity: str
    judge: str
    agreement: list[float] = field(default_factory=list)
    differences: int = 0
    ours: int = 0
    theirs: int = 0
    undecided: int = 0
    unanswered: int = 0
    example: str = ""

    def add(self, ours: float, theirs: float, truth: Truth, case: object = "") -> None:
        """Count a case."""
        ours, theirs = float(ours), float(theirs)
        self.agreement.append(digits(theirs, ours))
        ours_right, theirs_right = right(ours, truth), right(theirs, truth)
        self.ours += ours_right
        self.theirs += theirs_right
        self.undecided += math.isnan(ours)
        self.unanswered += math.isnan(theirs)
        if not near(theirs, ours):
            self.differences += 1
            if not (ours_right and theirs_right) and not self.example:
                self.example = f"{case}: {ours:.12g} here, {theirs:.12g} there; true {truth}"

    def row(self) -> str:
        """Return the line in print."""
        cases = len(self.agreement)
        return (
            f"{self.quantity:33} {cases:5} {median(self.agreement):6.1f} "
            f"{min(self.agreement):5.1f} {self.differences:6} "
            f"{self.ours:5} {self.theirs:5}  {self.judge}"
            + (f"; no answer here: {self.undecided}" if self.undecided else "")
            + (f"; no answer there: {self.unanswered}" if self.unanswered else "")
        )

    @property
    def wrong(self) -> int:
        """How often this package said what is not so."""
        return len(self.agreement) - self.ours - self.undecided


HEAD = (
    f"{'':33} {'cases':>5} {'digits:':>12} {'differ':>6} {'right:':>11}\n"
    f"{'':33} {'':5} {'median':>6} {'worst':>5} {'':6} {'here':>5} {'there':>5}  judged by"
)
