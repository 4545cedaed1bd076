"""How far the mutual information of a table of counts is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from cvxprivacy.checks import array, generator, number, whole
from cvxprivacy.errors import InputError
from cvxprivacy.information import miller_madow, mutual_information, nat

__all__ = ["Information", "draws_of", "estimated"]

FEWEST = 5.0  # records per observed cell, under which no interval is given
FEW = 10.0  # under which it covers less than it says
CHUNK = 1 << 21  # counts drawn at a time


@dataclass(frozen=True)
class Information:
    """An estimate of I(W; X) from counts.

    Attributes
    ----------
    plugin : float
        I of the empirical law: what the table at hand says, exactly.
    bias : float
        Its expected excess over I of the law that the records were drawn from, by Miller and
        Madow's formula.
    lower, upper : float or None
        Bootstrap interval for the latter; None where it was not asked for, or where the cells hold
        too few records for one.
    level : float
        Its nominal coverage.
    draws : int
        Of the bootstrap.
    units : {"bits", "nats"}
    note : str
        Why there is no interval, or what is wrong with it.
    """

    plugin: float
    bias: float
    lower: float | None
    upper: float | None
    level: float
    draws: int
    units: str
    note: str = ""

    @property
    def corrected(self) -> float:
        """Plug-in value less bias, at least 0."""
        return max(0.0, self.plugin - self.bias)

    def __str__(self) -> str:
        said = f"{self.plugin:.4f} {self.units}, corrected {self.corrected:.4f}"
        if self.lower is not None:
            said += f" [{self.lower:.4f}, {self.upper:.4f}] at {self.level:.0%}"
        return said


def draws_of(value: int, argument: str) -> int:
    """Return a number of draws that have a spread, or 0."""
    found = whole(value, argument, least=0)
    if found == 1:
        remedy = "pass 0 for no interval, or a few hundred"
        raise InputError(argument, "1 draw has no spread", remedy, value=value)
    return found


def estimated(
    counts: npt.ArrayLike,
    *,
    draws: int = 0,
    level: float = 0.95,
    seed: int | np.random.Generator | None = None,
    units: str = "bits",
) -> Information:
    """Estimate I(W; X) of the law behind a table of counts, with a bootstrap interval.

    The table is drawn again from its own law.  With Î the plug-in value, Ĩ = Î − (Miller–Madow),
    and stars for the redrawn tables, the interval is

        Ĩ − (mean Ĩ* − Î) ± z sd Ĩ*,    cut at 0:

    the bias that Ĩ* has left against the truth of the redrawn world, which is Î, is taken off
    once more.  (Percentiles of Î* or Ĩ* are biased twice instead, and miss.)

    How often the 95 % interval covered the truth in simulations (Dirichlet laws of 2 × 4 to 7 × 72
    cells, 400 tables each; ``tests/test_audit.py`` has some of them): with 20 or more records per
    *observed* cell 93 to 97 %, with 10 at least 92 %, with 5 only 75 to 95 %, with 3 as little as
    7 %.  Under 5 none is given, and under 10 the result says so.  Near independence it covers more
    than 95 %.

    Parameters
    ----------
    counts : array_like, shape (|W|, |X|)
    draws : int
        0: no interval; 1 is refused.  A few hundred are enough, because only a mean and a spread
        are taken.
    level : float
        In (0, 1).
    seed : int or Generator, optional
    units : {"bits", "nats"}
    """
    remedy = "pass whole numbers of records, shape (|W|, |X|)"
    table = array(counts, "counts", remedy, axes=(2,), massive=True)
    if (table != np.floor(table)).any():
        raise InputError("counts", "not whole numbers", remedy)
    draws = draws_of(draws, "draws")
    level = number(level, "level", zero=False, below=1.0)
    plugin = mutual_information(table, units=units)
    bias = miller_madow(table, units=units)
    size, cells = int(table.sum()), int(np.count_nonzero(table))
    note = ""
    if size < FEW * cells:
        note = f"with {size / cells:.1f} records per observed cell it covers less than it says"
    if size < FEWEST * cells:
        note = f"{size / cells:.1f} records per observed cell are too few for an interval"
    if not draws or size < FEWEST * cells:
        return Information(plugin, bias, None, None, level, 0, units, note if draws else "")
    redrawn = _redrawn(table, draws, generator(seed)) * nat(units)
    centre = plugin - bias - (redrawn.mean() - plugin)
    reach = NormalDist().inv_cdf((1 + level) / 2) * redrawn.std(ddof=1)
    lower, upper = (max(0.0, float(end)) for end in (centre - reach, centre + reach))
    return Information(plugin, bias, lower, upper, level, draws, units, note)


def _redrawn(table: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return I less Miller–Madow of tables drawn again, in nats."""
    rows, columns = np.nonzero(table)
    size, mass = int(table.sum()), table[rows, columns]
    order = np.argsort(columns, kind="stable")  # cells of a column, and of a row, side by side
    rows, columns, mass = rows[order], columns[order], mass[order]
    across = np.argsort(rows, kind="stable")
    starts = [np.flatnonzero(np.diff(k, prepend=-1)) for k in (columns, rows[across])]
    found = []
    for first in range(0, draws, step := max(1, CHUNK // len(mass))):
        cells = rng.multinomial(size, mass / size, min(step, draws - first)).astype(float)
        sides = [cells, np.add.reduceat(cells, starts[0], axis=1)]
        sides.append(np.add.reduceat(cells[:, across], starts[1], axis=1))
        terms = [(n * np.log(np.maximum(n, 1.0))).sum(axis=1) / size for n in sides]
        kinds = [np.count_nonzero(n, axis=1) for n in sides]
        information = terms[0] - terms[1] - terms[2] + math.log(size)
        found.append(information - (kinds[0] - kinds[1] - kinds[2] + 1) / (2 * size))
    return np.concatenate(found)
