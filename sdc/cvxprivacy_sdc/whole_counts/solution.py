"""What a program over whole counts ends with: a table, and what is proved or claimed of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.counts import Verdict
from cvxprivacy.errors import InputError
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.model.information import mutual_information
from cvxprivacy.release.channel import Channel, CountedChannel
from cvxprivacy.results.solution import Solution
from cvxprivacy.text import aligned, facts_html

__all__ = ["Rounding", "TableSolution"]


@dataclass(frozen=True, eq=False)
class Rounding(FrozenFields):
    """What a blind table rounds.

    Attributes
    ----------
    channel : Channel
        p(x̂ | x): each m(w, x, x̂) is less than one record off n(w, x) p(x̂ | x).
    lower : float
        Proved: no channel of x that satisfies the criteria has less of what is minimised, the mean
        distortion or under a budget what leaks; infinite where none satisfies them, NaN where that
        is not known.
    """

    channel: Channel
    lower: float


@dataclass(frozen=True, eq=False)
class TableSolution(FrozenFields):
    """A table of whole counts, how far from the best it may be, and who says so.

    Attributes
    ----------
    title, statement : str
        Which problem, and its program in one line.
    status : str
        ``"proved optimal"``: no table costs less, by a certificate or an exact recursion.
        ``"optimal by the solver's claim"``: HiGHS ended with its own bound at the table's cost, to
        the gap that was asked for.  ``"feasible"``: every criterion holds, and it was stopped, or
        moves were left out, or it is a blind table, of which the least is not known.
        ``"infeasible by the solver's claim"``, ``"stopped"``: no table.
    units : {"bits", "nats"}
        Of information.
    records : int
    law : ndarray, shape (|W|, |X|)
        Records of the table before.
    rounds, cuts : int
        Programs that HiGHS solved, and rows that were added to them.
    counts : ndarray of int, shape (|S|, |X̂|), or None
        m(s, x̂), s one of ``channel.inputs``: x, or (w, x).
    joint : ndarray, shape (|W|, |X̂|), or None
        N(w, x̂).  Of encoder ``"x"`` its expectation: chance says which records of x move.
    total : Fraction or None
        Σ d m, exactly.
    value : float
        What is minimised: the mean distortion, or under a budget what is leaked; NaN without a
        table.
    lower : float
        Proved: no table, and no other release that satisfies the criteria, has a value below; −inf
        where a time limit or Ctrl-C left nothing proved of a leakage that may be below 0.
    claimed : float
        What HiGHS says of all tables; −inf where it says nothing.
    budget : float or None
        Of the mean distortion, where the leakage is minimised.
    leakage : str
        The measure that is minimised, if that is not I(W; X̂).
    in_the_way : tuple of str
        Without a table: the criteria that the nearest one breaks, and where.
    verdicts : dict of str to Verdict
        Each criterion on the counts, decided exactly.
    relaxed : Solution or None
        The convex program's optimum, whose certificate proves ``lower``, where there are criteria.
    channel : CountedChannel or None
        What draws the table.
    rounding : Rounding or None
        The channel of x that a blind table rounds.

    Examples
    --------
    A certificate of the convex program proves that no table changes fewer than one record:

    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> source = cpv.DiscreteSource.from_counts([[1, 3, 6], [2, 1, 4]], x=["a", "b", "c"])
    >>> rules = [cpv.TCloseness(0.15, distance="tv")]
    >>> table = sdc.WholeCounts(source, cpv.hamming(3), rules, encoder="wx").solve()
    >>> print(table)
    WholeCounts: proved optimal (information in bits)
      program      min E d(X, X̂)  s.t.  TCloseness(0.15, 'tv'), m(w, x, x̂) whole
      records      17
      distortion   0.0588235, 1 in all
      proved       no table has less than 0.0588235
      groups       3, of 2 records or more
      I(W; X̂)      0.00304965
      I(W; X, X̂)   0.0977344, to whoever knows x; I(W; X) = 0.0533292
      t_closeness  holds of the counts, 0.0882353
    """

    title: str
    statement: str
    status: str
    units: str
    records: int
    law: npt.NDArray[np.float64]
    lower: float
    claimed: float
    counts: npt.NDArray[np.int64] | None = None
    joint: npt.NDArray[np.float64] | None = None
    total: Fraction | None = None
    verdicts: Mapping[str, Verdict] | None = None
    channel: CountedChannel | None = None
    relaxed: Solution | None = None
    rounding: Rounding | None = None
    value: float = math.nan
    budget: float | None = None
    leakage: str = ""
    in_the_way: tuple[str, ...] = ()
    rounds: int = 0
    cuts: int = 0

    @property
    def distortion(self) -> float:
        """E d(X, X̂) of the table; NaN without one."""
        return math.nan if self.total is None else float(self.total / self.records)

    @property
    def gap(self) -> float:
        """By how much the best table may have less than this one, by proof."""
        return self.value - self.lower

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """Records of each released letter, shape (|X̂|,)."""
        return self._table.sum(axis=0)

    @property
    def _table(self) -> npt.NDArray[np.int64]:
        if self.counts is None:
            raise InputError("table", f"there is none: {self.status}", "relax the criteria")
        return self.counts

    @cached_property
    def risk(self) -> float:
        """I(W; X̂) of the counts; of encoder ``"x"`` of the channel."""
        assert self.joint is not None or self._table is None
        return mutual_information(np.asarray(self.joint), units=self.units)

    @cached_property
    def informed_risk(self) -> float:
        """I(W; X, X̂): what is told to whoever knows x; of encoder ``"x"`` of the channel."""
        counts, channel = self._table, self.channel
        assert channel is not None
        if channel.encoder == "x":
            return mutual_information(self.law, units=self.units)
        pairs = [[w, x] for w, x in channel.inputs]
        places: list[dict[Any, int]] = [{}, {}]
        at = np.array([[p.setdefault(v, len(p)) for p, v in zip(places, pair, strict=True)]
                       for pair in pairs])  # fmt: skip
        cube = np.zeros((len(places[0]), len(places[1]), counts.shape[1]))
        cube[at[:, 0], at[:, 1]] = counts
        return mutual_information(cube.reshape(len(cube), -1), units=self.units)

    def apply(
        self, values: Any, *, seed: int | np.random.Generator | None = None, row_id: Any = None
    ) -> Any:
        """Release the table: in each cell a random order of its records hands out the letters.

        Parameters
        ----------
        values : frame, or list of letters
            The table that was counted, in memory.
        seed : int or numpy.random.Generator, optional
            Of the order; by default the system's own randomness, which nobody can repeat.
        row_id : column name, optional
            Which names each record: the draw then depends on names, not on places.

        Raises
        ------
        InputError
            For a table of other counts, or where there is no table to release.
        """
        _ = self._table
        assert self.channel is not None
        return self.channel.apply(values, seed=seed, row_id=row_id)

    # ---- in print ------------------------------------------------------------------------

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("program", self.statement), ("records", f"{self.records:,}")]
        less = "has less than" if self.budget is None else "within the budget tells less than"
        if self.counts is None:
            ways = [("the nearest table breaks", way) for way in self.in_the_way]
            return [*lines, ("proved", f"no release {less} {self.lower:.6g}"), *ways]
        assert self.total is not None
        lines.append(("distortion", f"{self.distortion:.6g}, {float(self.total):,.12g} in all"))
        if self.leakage:
            lines.append((self.leakage, f"{self.value:.6g}"))
        lines.append(("proved", f"no table {less} {self.lower:.6g}"))
        if self.rounding is not None:
            least = f"; no channel of x {less} {self.rounding.lower:.6g}"
            if self.rounding.lower == math.inf:
                least = "; no channel of x itself satisfies what is asked"
            least = "" if math.isnan(self.rounding.lower) else least
            lines.append(("rounds", f"a channel of x, each count by less than one{least}"))
        elif self.status != "proved optimal":
            nothing = self.claimed <= self.lower
            text = "nothing more" if nothing else f"no table {less} {self.claimed:.6g}"
            lines.append(("the solver claims", text))
        sizes = self.groups[self.groups > 0]
        lines.append(("groups", f"{len(sizes):,}, of {sizes.min():,} records or more"))
        expected = self.channel is not None and self.channel.encoder == "x"
        of = ", of the channel" if expected else ""
        lines.append(("I(W; X̂)", f"{self.risk:.6g}{of}"))
        before = mutual_information(self.law, units=self.units)
        informed = f"{self.informed_risk:.6g}{of}, to whoever knows x; I(W; X) = {before:.6g}"
        lines.append(("I(W; X, X̂)", informed))
        for name, verdict in (self.verdicts or {}).items():
            value = "" if verdict.value is None else f", {verdict.value:.6g}"
            lines.append((name, f"holds of the counts{value}" if verdict.holds else "not decided"))
        return lines

    def __str__(self) -> str:
        head = f"{self.title}: {self.status} (information in {self.units})"
        return "\n".join([head, *(f"  {line}" for line in aligned(self._lines()))])

    def __repr__(self) -> str:
        ends = f"{self.value!r}, proved lower end {self.lower!r}"
        return f"TableSolution({self.title}, {self.status}, {ends})"

    def _repr_html_(self) -> str:
        return facts_html(f"{self.title}: {self.status}", self._lines())
