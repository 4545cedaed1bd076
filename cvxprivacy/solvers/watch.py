"""The clock of a solve: when to stop, and who is told of its steps."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from cvxprivacy.errors import InputError
from cvxprivacy.validation import number

__all__ = ["Progress", "Watch"]

_logger = logging.getLogger("cvxprivacy.steps")


@dataclass(frozen=True)
class Progress:
    """How far a solve is, as ``solve(progress=…)`` tells it after each step.

    Attributes
    ----------
    step : int
        Number of the method's step.
    gap : float
        How wide the enclosure is about to be, in the unit of the objective; it is proved at the
        end, and at any step at which the solve is stopped.
    tolerance : float
        The gap that is wanted.
    seconds : float
        Since the solve began.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> steps = []
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    >>> solution = problem.solve(progress=steps.append)
    >>> steps[0].gap > steps[-1].gap, steps[-1].gap <= steps[-1].tolerance
    (True, True)

    The gap shrinks by about the same factor in each step, and so does what is left: a gap of
    1e−4 after two seconds leaves two seconds to 1e−8.

    >>> print(Progress(step=10, gap=1e-4, tolerance=1e-8, seconds=2.0))
    step  10  gap 1.0e-04  2.0 s, about 2 s left
    """

    step: int
    gap: float
    tolerance: float
    seconds: float

    @property
    def seconds_left(self) -> float:
        """What is left, if the gap goes on shrinking as it has from one; NaN if it has not."""
        # a path shrinks its gap by one factor a step: time goes with its logarithm, from 1 on
        done, wanted = -math.log(max(self.gap, 1e-300)), -math.log(max(self.tolerance, 1e-300))
        return self.seconds * max(wanted - done, 0.0) / done if done > 0 else math.nan

    def __str__(self) -> str:
        left = "" if math.isnan(self.seconds_left) else f", about {self.seconds_left:.0f} s left"
        return f"step {self.step:3d}  gap {self.gap:.1e}  {self.seconds:.1f} s{left}"


class Watch:
    """Shared by all programs that one call of ``solve`` meets."""

    def __init__(
        self,
        time_limit: float | None = None,
        progress: Callable[[Progress], object] | None = None,
        verbose: bool = False,
    ) -> None:
        if time_limit is not None:
            time_limit = number(time_limit, "time_limit", zero=False)
        if progress is not None and not callable(progress):
            remedy = "pass a function of one cvxprivacy.typing.Progress"
            raise InputError("progress", f"{progress!r} is no function", remedy, value=progress)
        self.began, self.limit = time.monotonic(), time_limit
        self.progress, self.verbose = progress, verbose
        self.interrupted = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds that are left, not below 0."""
        return math.inf if self.limit is None else max(self.limit - self.seconds, 0.0)

    @property
    def stopped(self) -> str:
        """Why nothing more is to be tried, or nothing."""
        if self.interrupted:
            return "interrupted"
        return "" if self.left > 0 else f"time limit of {self.limit:g} s"

    def silent(self) -> Watch:
        """Return the same clock, which tells nobody of steps."""
        other = copy(self)
        other.progress, other.verbose = None, False
        return other

    def step(self, taken: int, gap: float, tolerance: float) -> None:
        """Tell whoever wants to know."""
        now = Progress(taken, gap, tolerance, self.seconds)
        _logger.debug("%s", now)
        if self.verbose:
            print(now, file=sys.stderr)
        if self.progress is not None:
            self.progress(now)
