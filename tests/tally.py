"""What came of a campaign."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field

Counter = collections.Counter[str]


@dataclass
class Tally:
    """How many were tried and verified, what was false, and why the others were refused.

    ``loose`` counts what verified and is true, but holds numbers of another kind than it should.
    """

    tried: int = 0
    verified: int = 0
    false: list[str] = field(default_factory=list)
    refusals: Counter = field(default_factory=collections.Counter)
    loose: Counter = field(default_factory=collections.Counter)
    slowest: tuple[float, str] = (0.0, "")  # seconds of processor time
    largest: tuple[int, str] = (0, "")  # bytes of memory

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.tried + other.tried,
            self.verified + other.verified,
            self.false + other.false,
            self.refusals + other.refusals,
            self.loose + other.loose,
            max(self.slowest, other.slowest),
            max(self.largest, other.largest),
        )

    def __str__(self) -> str:
        text = f"{self.tried} tried, {self.verified} verified, {len(self.false)} false"
        text += "".join(f", {count} {kind}" for kind, count in self.refusals.most_common())
        if self.loose:
            text += "; loosely written, and true: "
            text += ", ".join(f"{count} {kind}" for kind, count in self.loose.most_common())
        if self.slowest[1]:
            text += f"; slowest {self.slowest[0]:.2f} s ({self.slowest[1]})"
            text += f", largest {self.largest[0] / 2**20:.0f} MiB ({self.largest[1]})"
        return text
