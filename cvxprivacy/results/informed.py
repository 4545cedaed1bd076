"""What a release tells about W to one who knows X, where the encoder saw both.

I(W; X̂) is of a reader who sees x̂ alone.  An encoder of (W, X) that makes it small may tell *more*
to one who knows x: x̂ was chosen by w, and I(W; X, X̂) = I(W; X) + I(W; X̂ | X).  Of an encoder that
sees X alone the second part is 0, so that all this is of the others.  Where a user holds Z, too,
it is of one who knows x and z.

Evaluated in floats at the certificate's own release, which they hold exactly, with a bound on what
rounding adds: u = 2⁻⁵³ for each product, quotient and logarithm, and k u for a sum of k masses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray, is_sparse
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.model.information import nat
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.results.enclosure import Enclosure

__all__ = ["SURE", "Atoms", "Informed", "atoms_of", "informed", "informed_by_table"]

SURE = Fraction(19, 20)  # a posterior from which on a value of W counts as sure
_ROUNDING = 2.0**-53
_STEPS = 16  # products, quotients and logarithms of one mass, with what NumPy's may be off
_NOTHING = 1e-12  # information that is no more than rounding
_LITTLE = 0.001  # under which a board is told no digits
_SHOWN = 1e-6  # information that is told beyond what X tells, to be cautioned of: that of a gap


@dataclass(frozen=True, eq=False)
class Atoms(FrozenFields):
    """Masses by what the encoder sees, and by what is known: an entry for each atom.

    Attributes
    ----------
    letter, w, cell : ndarray of int
        The row of the channel, the value of W, and that of X (with Z, if a user has it).
    mass : ndarray
    labels : list
        The values of X, or of (X, Z), by their numbers.
    summed : int
        Of how many masses each is a sum.
    """

    letter: np.ndarray
    w: np.ndarray
    cell: np.ndarray
    mass: FloatArray
    labels: list[Any]
    summed: int = 1


@dataclass(frozen=True, eq=False)
class Informed(FrozenFields):
    """What is told about W to one who knows x: before the release, and by it.

    Attributes
    ----------
    before, after : Enclosure
        I(W; X), and I(W; X, X̂) of the release.
    sure_before, sure : Enclosure
        Share of all mass of which a value of W has a posterior of 95 % at least, given x, and given
        x and x̂.
    greatest_before, greatest : Enclosure
        max p(w | x), and max p(w | x, x̂) over all that has mass.
    cell : tuple
        The x and the x̂ where that is greatest, of several the most frequent pair.
    share : float
        Its share of all mass.
    units : {"bits", "nats"}
    names : sequence of str
        What W and X are called, and what else is known.

    Examples
    --------
    Two fair bits differ with probability 0.2.  An encoder of both that may change a tenth of the
    records changes X where it is W: whoever knows X and sees another X̂ knows W.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), 0.1, encoder="wx").solve()
    >>> informed = solution.informed
    >>> round(solution.risk, 4), round(informed.before, 4), round(informed.after, 4)
    (0.1187, 0.2781, 0.3122)
    >>> round(informed.sure_before, 4), round(informed.sure, 4), round(informed.greatest, 4)
    (0.0, 0.1, 1.0)
    """

    before: Enclosure
    after: Enclosure
    sure_before: Enclosure
    sure: Enclosure
    greatest_before: Enclosure
    greatest: Enclosure
    cell: tuple[Any, Any]
    share: float
    units: str
    names: Sequence[str] = ("W", "X")

    @property
    def exceeds(self) -> bool:
        """Whether the release is proved to tell one who knows x more than x does."""
        return self.after.lower > self.before.upper + _SHOWN

    @property
    def words(self) -> str:
        """What one who knows X learns, in one line."""
        w, x = self.names
        return (
            f"learns {_shown(self.after)} {self.units} of {w}, {_shown(self.before)} from {x} "
            "alone; "
            f"is sure of it to {float(SURE):.0%} for {self.sure:.2%} of the records, "
            f"{self.sure_before:.2%} without the release; greatest posterior {self.greatest:.4g}, "
            f"for {self.share:.2%} of the records, {self.greatest_before:.4g} without"
        )

    def document(self) -> dict[str, Any]:
        """Return the numbers, without whom they concern."""
        ends = ("before", "after", "sure_before", "sure", "greatest_before", "greatest")
        numbers = {name: float(getattr(self, name)) for name in ends}
        return {**numbers, "share_of_greatest": self.share, "units": self.units}

    @property
    def caution(self) -> str:
        """What is to be said where the release tells more than X does; else nothing."""
        if not self.exceeds:
            return ""
        w, x = self.names
        return (
            f"the randomisation saw {w}, and the release tells {self._more} more about "
            f"it to who knows a person's {x} than {x} alone does: the risk is of a reader who does "
            "not; ConditionalLeakageCap bounds this, and a randomisation that sees the key "
            "alone adds nothing"
        )

    @property
    def _more(self) -> str:
        """How much the release tells more than X does, with its unit."""
        more = float(self.after) - float(self.before)
        return f"{f'{more:.4g}' if more >= _LITTLE else f'less than {_LITTLE}'} {self.units}"

    @property
    def caution_of_rounding(self) -> str:
        """What is to be said of a table that is blind but for its rounding; else nothing."""
        if not self.exceeds:
            return ""
        w, x = self.names
        return (
            f"counts were rounded with {w} in view, each by less than a record: to who knows a "
            f"person's {x} the table tells {self._more} more about it than {x} alone, "
            "as the accidents of a draw do, too"
        )


def _shown(information: float) -> str:
    return f"{information if information > _NOTHING else 0:.4g}"


def atoms_of(of: Alphabet) -> Atoms:
    """Return the atoms of an alphabet's law, those that differ in what nobody knows as one."""
    mass, summed = np.where(of.met, of.law, 0.0), 1
    if not of.side_information:  # z tells nobody apart
        mass, summed = mass.sum(axis=0, keepdims=True), len(mass)
    rows, letter = np.nonzero(mass)
    z = of.z_of[rows, letter] if of.side_information else np.zeros(len(rows), np.int64)
    pairs, cell = np.unique(np.stack([of.x_of[letter], z]), axis=1, return_inverse=True)
    x, names = of.source.x, of.source.z_names if of.side_information else []
    labels = [(x[i], names[j]) if names else x[i] for i, j in pairs.T.tolist()]
    return Atoms(letter, of.w_of[rows, letter], cell.ravel(), mass[rows, letter], labels, summed)


def informed(
    atoms: Atoms, matrix: Any, outputs: Sequence[Any], units: str, names: Sequence[str]
) -> Informed:
    """Return what a channel tells those who know x.

    Parameters
    ----------
    atoms : Atoms
    matrix : array, shape (n, m)
        p(x̂ | s), dense or sparse.
    outputs : sequence
        Its columns' labels.
    units : {"bits", "nats"}
        Of information.
    names : sequence of str
        What W and X are called.
    """
    if is_sparse(matrix):
        some = matrix.tocsr()[atoms.letter].tocoo()
        entry, output, chance = some.row, some.col.astype(np.int64), some.data
    else:
        rows = np.asarray(matrix)[atoms.letter]
        entry, output = np.nonzero(rows)
        chance = rows[entry, output]
    there = chance > 0
    entry, output, chance = entry[there], output[there], chance[there]
    release = _Posteriors(atoms, entry, output, len(outputs), atoms.mass[entry], chance)
    return _informed(release, outputs, units, names)


def informed_by_table(
    moves: tuple[np.ndarray, np.ndarray, np.ndarray],
    masses: np.ndarray,
    labels: Sequence[Any],
    outputs: Sequence[Any],
    units: str,
    names: Sequence[str],
) -> Informed:
    """Return what a table that was drawn tells those who know x.

    Parameters
    ----------
    moves : three ndarrays of int, shape (cells,)
        Places of w, x and x̂.
    masses : ndarray, shape (cells,)
        Records, or their weights.
    labels, outputs : sequence
        Of x and of x̂.
    units : {"bits", "nats"}
        Of information.
    names : sequence of str
        What W and X are called.
    """
    cells, place = np.unique(np.stack(moves), axis=1, return_inverse=True)  # groups were merged
    masses, y = np.asarray(np.bincount(place.ravel(), masses), float), cells[2]
    pairs, entry = np.unique(cells[:2], axis=1, return_inverse=True)
    entry = entry.ravel()
    summed = int(np.bincount(entry).max())
    of_pairs = np.asarray(np.bincount(entry, masses), float)
    atoms = Atoms(np.arange(len(of_pairs)), pairs[0], pairs[1], of_pairs, list(labels), summed)
    release = _Posteriors(atoms, entry, y, len(outputs), masses, np.ones(len(masses)))
    return _informed(release, outputs, units, names)


def _informed(
    release: _Posteriors, outputs: Sequence[Any], units: str, names: Sequence[str]
) -> Informed:
    atoms = release.atoms
    every, none = np.arange(len(atoms.mass)), np.zeros(len(atoms.mass), np.int64)
    nothing = _Posteriors(atoms, every, none, 1, atoms.mass, np.ones(len(every)))
    place = release.top
    cell, output = divmod(int(release.keys[place]), len(outputs))
    before, more = nothing.of_cells(units), release.given_cell(units)
    after = Enclosure(
        max(0.0, math.nextafter(before.lower + more.lower, -math.inf)),
        math.nextafter(before.upper + more.upper, math.inf),
    )
    return Informed(
        before,
        after,
        nothing.sure,
        release.sure,
        nothing.greatest,
        release.greatest,
        (atoms.labels[cell], outputs[output]),
        float(release.masses[place] / release.masses.sum()),
        units,
        tuple(names),
    )


class _Posteriors:
    """J(w, x, x̂) of all that has mass, by pairs (x, x̂): entries of a mass times a chance."""

    def __init__(
        self,
        atoms: Atoms,
        entry: np.ndarray,
        output: np.ndarray,
        outputs: int,
        mass: FloatArray,
        chance: FloatArray,
    ) -> None:
        self.atoms, self.entry, self.mass, self.chance = atoms, entry, mass, chance
        self.joint = mass * chance
        self.keys, self.pair = np.unique(atoms.cell[entry] * outputs + output, return_inverse=True)
        self.masses = np.bincount(self.pair, self.joint)
        self.most = np.zeros(len(self.keys))
        np.maximum.at(self.most, self.pair, self.joint)
        widest = int(np.bincount(self.pair).max()) + int(np.bincount(atoms.cell).max())
        self.off = (_STEPS + widest + atoms.summed) * _ROUNDING  # of a posterior, in terms of it

    @property
    def posterior(self) -> FloatArray:
        """max_w p(w | x, x̂) of each pair."""
        ratio: FloatArray = self.most / self.masses
        return ratio

    @property
    def top(self) -> int:
        """The pair of the greatest posterior, the most frequent one of several."""
        rounded = np.round(self.posterior, 12)
        return int(np.lexsort((self.masses, rounded))[-1])

    @property
    def greatest(self) -> Enclosure:
        most = float(self.posterior.max())
        return Enclosure(max(0.0, most * (1 - self.off)), min(1.0, most * (1 + self.off)))

    @property
    def sure(self) -> Enclosure:
        """The share of mass where a value of W is sure."""
        off = self.posterior - float(SURE)
        sure = off >= 0
        near = np.flatnonzero(np.abs(off) <= 2 * self.off)  # compared in rationals
        order = np.argsort(self.pair, kind="stable")
        ends = np.searchsorted(self.pair[order], [near, near + 1])
        for pair, first, last in zip(near.tolist(), *ends.tolist(), strict=True):
            sure[pair] = self._is_sure(order[first:last])
        share = math.fsum(self.masses[sure]) / math.fsum(self.masses)
        return _around(share, 2 * self.off * share, 0.0, 1.0)

    def _is_sure(self, places: np.ndarray) -> bool:
        joint = [
            Fraction(float(self.mass[i])) * Fraction(float(self.chance[i])) for i in places.tolist()
        ]
        return max(joint) >= SURE * sum(joint)

    def of_cells(self, units: str) -> Enclosure:
        """I(W; X), of all masses by w and x."""
        atoms = self.atoms
        by_w = np.bincount(atoms.w, atoms.mass)[atoms.w]
        by_cell = np.bincount(atoms.cell, atoms.mass)[atoms.cell]
        total = math.fsum(atoms.mass)
        ratio = (atoms.mass / by_w) / (by_cell / total)
        return self._mean(atoms.mass, ratio, units, len(atoms.mass))

    def given_cell(self, units: str) -> Enclosure:
        """I(W; X̂ | X) = Σ J log(p(w | x, x̂)/p(w | x))."""
        atoms = self.atoms
        prior = atoms.mass / np.bincount(atoms.cell, atoms.mass)[atoms.cell]
        ratio = (self.joint / self.masses[self.pair]) / prior[self.entry]
        return self._mean(self.joint, ratio, units, 0)

    def _mean(self, joint: FloatArray, ratio: FloatArray, units: str, more: int) -> Enclosure:
        """Return Σ J log r / Σ J: r is off by ``off`` and ``more`` roundings of itself."""
        terms, total = joint * np.log(ratio), math.fsum(joint)
        scale = nat(units) / total
        off = self.off + more * _ROUNDING
        spread = math.fsum(joint) * 2 * off + math.fsum(np.abs(terms)) * 2 * off
        return _around(math.fsum(terms) * scale, spread * scale, 0.0, math.inf)


def _around(middle: float, off: float, least: float, most: float) -> Enclosure:
    return Enclosure(max(least, middle - off), min(most, middle + off))
