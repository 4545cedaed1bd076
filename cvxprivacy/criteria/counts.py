"""A released table in counts, and how a criterion stands on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvxprivacy.criteria.decisions import LeakageTerm, at_most, common
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, rational
from cvxprivacy.frozen import FrozenFields, frozen
from cvxprivacy.leakage import Leakage, as_proved
from cvxprivacy.model.one_symbol import SLACK, i1, laws
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import INFORMATION
from cvxprivacy.validation import array

__all__ = ["Cells", "Counts", "Verdict", "disclosure", "entropy_diversity", "leaked"]

_NEAR = 1e-6  # of max(1, bound): beyond it no rounding of a float tells a letter wrongly

Booleans = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


# ---- measures of letters, in floats ------------------------------------------------------


def checked_counts(counts: npt.ArrayLike) -> np.ndarray:
    """Return counts as an array; what are none is refused."""
    remedy = "pass finite nonnegative counts of shape (|W|, |X̃|)"
    return array(counts, "counts", remedy, axes=(2,), massive=True)


def observed_laws(
    counts: npt.ArrayLike, reference: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return p(w|x̃) and p(w) of the values of W that occur."""
    p, prior = laws(checked_counts(counts), reference)
    return p[prior[:, 0] > 0], prior[prior[:, 0] > 0]


def entropy_diversity(counts: npt.ArrayLike) -> FloatArray:
    """Entropy ℓ = 2^H(W|x̃) (Machanavajjhala et al. 2006; Bezzi 2010, eq. 10)."""
    p, _ = laws(checked_counts(counts))
    return np.asarray(np.exp(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=0)))


def disclosure(
    counts: npt.ArrayLike, *, observed: bool = False, reference: npt.ArrayLike | None = None
) -> FloatArray:
    """The δ of δ-disclosure privacy: max_w |ln p(w|x̃)/p(w)| (Brickell and Shmatikov 2008).

    They ask it to be below δ; the criterion here, at most δ.

    A value of W that is missing from a letter discloses without bound: δ is infinite there.

    Parameters
    ----------
    observed : bool
        Leave out the values that a letter misses, as pycanon does: that is no longer δ-disclosure
        privacy, but it compares letters of which none is complete.
    """
    p, prior = observed_laws(counts, reference)
    with np.errstate(divide="ignore"):
        distance = np.abs(np.log(p) - np.log(prior))
    if observed:
        distance[p == 0] = 0.0
    return np.asarray(distance.max(axis=0))


def leaked(
    leakage: Leakage,
    counts: npt.ArrayLike,
    *,
    reference: npt.ArrayLike | None = None,
    units: str = "bits",
) -> FloatArray:
    """F(p(w|x̃)) of a measure of leakage, against p(w); ``units`` are those of information.

    It is what proofs take the measure for.
    """
    p, prior = laws(checked_counts(counts), reference)
    there = prior[:, 0] > 0
    measure = as_proved(leakage.fitted(range(len(p)), np.flatnonzero(there).tolist()))
    if measure.informs:
        return i1(counts, reference=reference, units=units)
    values = measure.value(np.nan_to_num(p[there]), prior[there, 0]) * measure.unit(units)
    return np.where(np.isnan(p[there]).any(axis=0), math.nan, values)


# ---- a table -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Verdict(FrozenFields):
    """How a table stands with a criterion.

    Attributes
    ----------
    holds : bool or None
        Whether the table satisfies it, decided exactly of whole records, and of weights to their
        rounding, 1e-9; None where that cannot be decided on a table.
    value : float or None
        What the table has of the quantity that is bounded, at its worst letter.
    values : ndarray, shape (|X̂|,), or None
        The same of each released letter, where there is a bound for each; NaN without records.
    met, broken : ndarray of bool, shape (|X̂|,), or None
        Which letters satisfy it, and which do not; some may be neither.
    """

    holds: bool | None
    value: float | None = None
    values: FloatArray | None = None
    met: Booleans | None = None
    broken: Booleans | None = None

    @classmethod
    def of_letters(
        cls,
        decided: Sequence[bool | None],
        values: FloatArray | None = None,
        *,
        at_least: bool = False,
    ) -> Verdict:
        """Return the verdict of all letters, given that of each."""
        met = np.array([each is True for each in decided], bool)
        broken = np.array([each is False for each in decided], bool)
        holds = False if broken.any() else True if met.all() else None
        worst = None
        if values is not None and not np.isnan(values).all():
            worst = float(np.nanmin(values) if at_least else np.nanmax(values))
        return cls(holds, worst, values, met, broken)


@dataclass(frozen=True, eq=False)
class Cells(FrozenFields):
    """Records N(l, s, x̂) of the atoms l of the encoder's letters s, those that are not 0."""

    atom: Places
    letter: Places
    output: Places
    masses: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Counts(FrozenFields):
    """A released table in counts, and what a criterion may be evaluated at.

    Attributes
    ----------
    joint : ndarray, shape (|W|, |X̂|)
        Records, or their survey weights, by value of W and released letter.
    units : {"bits", "nats"}
        Of information.
    reference : ndarray, shape (|W|,), optional
        Masses of p(w), by default the row sums.
    sizes : ndarray, shape (|X̂|,), optional
        Records of each released letter.
    order : sequence of int, optional
        Rows of the values of W in their order, where a measure goes by it.
    release : Alphabet, optional
        The letters of the problem, under the table's own law.
    cells : Cells, optional
        Records by atom, letter and output of it; without, ``joint`` is all that is known.
    matches : ndarray, shape (|X̂|,), optional
        Records that may have each released letter, where a missing value matches every other; by
        default those that do.
    origins : ndarray, shape (|X̂|,), optional
        2^H(record | x̂), how many equally likely records leave it as open which one a released
        letter came from; where ``cells`` do not tell, and all the same it is known.
    """

    joint: npt.NDArray[Any]
    units: str = "bits"
    reference: npt.NDArray[Any] | None = None
    sizes: npt.NDArray[Any] | None = None
    order: Sequence[int] | None = None
    release: Alphabet | None = None
    cells: Cells | None = None
    matches: npt.NDArray[Any] | None = None
    origins: npt.NDArray[Any] | None = None

    @classmethod
    def of_records(cls, joint: npt.ArrayLike, units: str = "bits", **fields: Any) -> Self:
        """Return a table of whole records, of which the sums are the sizes of the letters."""
        counts = checked_counts(joint)
        return cls(counts, units, sizes=counts.sum(axis=0), **fields)

    @classmethod
    def of_moves(
        cls,
        release: Alphabet,
        moves: tuple[Places, Places, Places],
        masses: npt.NDArray[Any],
        sizes: npt.NDArray[Any] | None = None,
    ) -> Self:
        """Return a table of records by value of W, key letter and output of an alphabet.

        Parameters
        ----------
        release : Alphabet
            Of the table's own law.
        moves : three ndarrays of int, shape (cells,)
            Places of w, x and x̂ in the source and the outputs.
        masses : ndarray, shape (cells,)
            Records, or their weights.
        sizes : ndarray, shape (|X̂|,), optional
            Records of each output.
        """
        w_at, x_at, y_at = moves
        shape = len(release.source.w), len(release.source.x)
        atoms, letters = np.nonzero(release.law > 0)
        place = np.full(shape, -1)
        pairs = release.w_support[release.w_of[atoms, letters]], release.x_of[letters]
        place[pairs] = np.arange(len(atoms))
        at = place[w_at, x_at]
        if (at < 0).any():
            remedy = "count them in the law of the release"
            raise InputError("moves", "records of a cell without mass", remedy)
        joint = np.zeros((shape[0], release.m), masses.dtype)
        np.add.at(joint, (w_at, y_at), masses)
        cells = Cells(atoms[at], letters[at], y_at, masses)
        return cls(joint, release.units, sizes=sizes, release=release, cells=cells)

    @cached_property
    def masses(self) -> npt.NDArray[Any]:
        """Masses of p(w), shape (|W|,)."""
        masses: npt.NDArray[Any] = frozen(
            self.joint.sum(axis=1) if self.reference is None else np.asarray(self.reference)
        )
        return masses

    @cached_property
    def integral(self) -> bool:
        """Whether all masses are whole numbers of records."""
        return is_whole(self.joint) and is_whole(self.masses)

    @cached_property
    def total(self) -> Fraction:
        """All records, or their weights."""
        return sum(map(rational, self.joint.sum(axis=0).tolist()), Fraction(0))

    def in_order(self, measure: Leakage) -> Counts:
        """Return the table with its rows in the order in which a measure is to see them."""
        if self.order is None or not measure.ordered:
            return self
        at, reference = list(self.order), self.reference
        return Counts(self.joint[at], self.units, None if reference is None else reference[at])

    def slack(self, bound: Fraction) -> Fraction:
        """Return what counts as rounding at a bound: nothing where records are whole."""
        return Fraction(0) if self.integral else Fraction(SLACK) * max(Fraction(1), abs(bound))

    # ---- verdicts ------------------------------------------------------------------------

    def of_letters(
        self,
        values: FloatArray,
        bound: Fraction,
        decide: Callable[[int], bool | None],
        *,
        at_least: bool = False,
        scale: float = 0.0,
    ) -> Verdict:
        """Return a verdict on every letter: exactly by ``decide`` where floats may not tell.

        Parameters
        ----------
        values : ndarray, shape (|X̂|,)
            The quantity in floats.
        decide : callable
            Of the number of a letter with records.
        scale : float, optional
            Of the numbers that ``values`` are sums of, if they are greater than the bound.
        """
        near, sign = float(bound), -1 if at_least else 1
        holds: list[bool | None] = (~(sign * (values - near) > 0)).tolist()
        off = np.abs(values - near)
        unsure = (off <= _NEAR * max(1.0, abs(near), scale)) | (np.isnan(values) & self._filled)
        for y in np.flatnonzero(unsure).tolist():
            close = not self.integral and float(off[y]) <= float(self.slack(bound))
            holds[y] = True if close else decide(y)
        return Verdict.of_letters(holds, values, at_least=at_least)

    def leaked_by_letter(self, measure: Leakage, bound: Fraction) -> Verdict:
        """Return whether F(J(·, x̂)) ≤ bound · q(x̂) at every letter."""
        table = self.in_order(measure)
        how: dict[str, Any] = {"reference": table.reference, "units": self.units}
        values, data = leaked(measure, table.joint, **how), table._data(measure)
        return self.of_letters(
            values, bound, lambda y: table._at_most(data, [y], bound), scale=_greatest(data)
        )

    def leaked_in_all(self, measure: Leakage, bound: Fraction) -> Verdict:
        """Return whether Σ F(J(·, x̂)) ≤ bound · Σ q(x̂)."""
        table = self.in_order(measure)
        shares = table.joint.sum(axis=0) / table.joint.sum()
        how: dict[str, Any] = {"reference": table.reference, "units": self.units}
        value = float(np.nan_to_num(leaked(measure, table.joint, **how)) @ shares)
        letters = range(table.joint.shape[1])
        most = bound + self.slack(bound)
        return Verdict(table._at_most(table._data(measure), letters, most), value)

    def leaked_given_x(self, bound: Fraction) -> Verdict:
        """Return whether I(W; X̂ | X) ≤ bound, or given X and Z where a user has that."""
        release, cells = self.release, self.cells
        if release is None or cells is None:
            return Verdict(None)
        at = cells.atom, cells.letter
        z = release.z_of[at] if release.side_information else np.zeros(len(cells.atom), np.int64)
        rows = zip(
            release.x_of[cells.letter].tolist(),
            z.tolist(),
            release.w_of[at].tolist(),
            cells.output.tolist(),
            common(cells.masses.tolist()),
            strict=True,
        )
        groups: dict[tuple[int, int], dict[int, Counter[int]]] = {}
        for *cell, w, y, records in rows:
            groups.setdefault((cell[0], cell[1]), {}).setdefault(w, Counter())[y] += records
        data, terms = self._data(INFORMATION), list[LeakageTerm]()
        for group in groups.values():
            masses = [by_output.total() for by_output in group.values()]
            for y in set().union(*group.values()):
                terms.append(LeakageTerm(data, [each[y] for each in group.values()], masses))
        records = sum(common(cells.masses.tolist()))
        most = bound + self.slack(bound)
        nats = math.fsum(float(c) * math.log(r) for each in terms for c, r in each.logarithms or ())
        value = max(0.0, nats) * INFORMATION.unit(self.units) / records
        return Verdict(at_most(terms, most * records, self.units), value)

    @property
    def _filled(self) -> Booleans:
        return np.asarray(self.joint.sum(axis=0) > 0)

    @cached_property
    def _rows(self) -> Places:
        """The rows of the values of W with mass."""
        rows: Places = frozen(np.flatnonzero(np.asarray(self.masses, float) > 0))
        return rows

    def _data(self, measure: Leakage) -> dict[str, Any]:
        """Return a measure of these rows, as proofs read it."""
        return measure.fitted(range(len(self.masses)), self._rows.tolist()).data()

    def _at_most(
        self, data: Mapping[str, Any], letters: Iterable[int], bound: Fraction
    ) -> bool | None:
        rows = self._rows
        masses, columns = common(self.masses[rows].tolist()), self.joint[rows].T
        records = common(j for y in letters for j in columns[y].tolist())  # in one unit
        joints = [records[i : i + len(rows)] for i in range(0, len(records), len(rows))]
        terms = [LeakageTerm(data, joint, masses) for joint in joints if any(joint)]
        return at_most(terms, bound * sum(records), self.units)


def _greatest(data: Mapping[str, Any]) -> float:
    """Return the greatest distance or gain of a measure."""
    table = data.get("ground") or data.get("matrix") or []
    return max((abs(float(Fraction(entry))) for row in table for entry in row), default=0.0)


def is_whole(masses: npt.NDArray[Any]) -> bool:
    """Tell whether masses are whole numbers, which floats hold exactly."""
    return bool((masses == np.rint(masses)).all() and masses.max(initial=0.0) < 2**53)


def refuse_uncounted(table: Counts) -> npt.NDArray[Any]:
    """Return the records of the letters; refuse a table of which these are not known."""
    if table.sizes is None:
        remedy = "make it with DiscreteSource.from_counts, or from_table without weights"
        raise InputError("source", "no number of records behind it", remedy)
    return table.sizes
