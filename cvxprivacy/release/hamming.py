"""The release of the categorical example: a channel that is never written out as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.certificates.sums import rounded_down
from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.frozen import owned
from cvxprivacy.release.apply import Places
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import Numbers, numerators

__all__ = ["MOST_DENSE", "HammingChannel", "few"]

MOST_DENSE = 2_000  # letters of a matrix


def few(letters: int, wanted: str) -> None:
    """Refuse to write out a matrix over too many letters."""
    if letters > MOST_DENSE:
        problem = f"{letters:,} letters, too many for {wanted}"
        remedy = f"use at most {MOST_DENSE:,}, or apply(), row() and posterior_of() of the release"
        raise InputError("pmf", problem, remedy, value=letters)


class HammingChannel(Channel):
    """Keep x with probability (1 − λ/p(x))⁺, else draw from p(x̂) ∝ (p(x̂) − λ)⁺.

    The reverse of p(x | x̂) = 1 − D for x = x̂, min(p(x), λ) otherwise (Sankar et al. 2013,
    eqs. 16–17): by Bayes' rule p(x̂ | x) = p(x̂) λ/p(x) for x̂ ≠ x and p(x) > λ, and p(x̂) for
    p(x) ≤ λ, which is what the sentence above says.  Memory is that of the law; a draw costs one
    search in the released marginal.  Each p(x̂ | x) drawn by is within 2⁻⁵¹ of the exact one.  What
    needs the matrix is there for up to 2,000 letters: ``matrix`` (|X|, |X̂|), ``posterior``,
    ``then``, ``estimate``, ``save`` and the other methods of a :class:`Channel`.

    Attributes
    ----------
    level : Fraction
        λ.
    distortion : Fraction
        Pr(X ≠ X̂), exactly.
    inputs, outputs : list
        All letters, and those that are still released; ``kept`` is another name of the latter.
    p_input : ndarray, shape (|X|,)
        The law of the letters.
    arbitrary : ndarray of bool, shape (|X|,)
        Letters of probability zero: they are drawn anew.

    Examples
    --------
    Letters of 5 % and less vanish, and the others share the water level 3λ + 0.1 = D:

    >>> from fractions import Fraction
    >>> import cvxprivacy as cpv
    >>> counts = [40, 25, 15, 10, 5, 3, 2]
    >>> problem = cpv.HammingWaterFilling.from_counts(counts, Fraction(3, 10))
    >>> release = problem.solve().channel
    >>> release.level, release.kept
    (Fraction(1, 15), [0, 1, 2, 3])

    A release is right with probability 1 − D; for the rest it points to every letter above the
    level alike, and says nothing about those below:

    >>> [str(p) for p in release.posterior_of(0, exact=True)]
    ['7/10', '1/15', '1/15', '1/15', '1/20', '3/100', '1/50']
    >>> sum(release.row(6, exact=True))
    Fraction(1, 1)
    """

    def __init__(
        self,
        masses: npt.NDArray[np.float64],
        total: Fraction,
        level: Fraction,
        distortion: Fraction,
        inputs: Sequence[Any],
    ) -> None:
        self.level, self.distortion = level, distortion
        self.inputs, self.schema, self.encoder, self.decoder = list(inputs), None, "x", None
        self._masses, self._total = masses, total
        self.p_input, self.arbitrary = masses / float(total), masses == 0
        kept = np.flatnonzero(masses > rounded_down(level * total))
        self._kept = kept if len(kept) else np.array([int(masses.argmax())])
        self.outputs = [self.inputs[i] for i in self._kept.tolist()]

    def __repr__(self) -> str:
        return f"HammingChannel({len(self.inputs):,} letters → {len(self.outputs):,})"

    def _first_rows(self, count: int) -> np.ndarray:
        return np.array([self.row(x) for x in self.inputs[:count]])

    # ---- what it says --------------------------------------------------------------------

    @property
    def kept(self) -> list[Any]:
        """Letters that are still released: those of probability above λ."""
        return self.outputs

    @property
    def released_marginal(self) -> np.ndarray:
        """p(x̂) of ``outputs``, shape (|X̂|,)."""
        return self._marginal.copy()

    def row(self, x: Any, *, exact: bool = False) -> np.ndarray:
        """Return p(x̂ | x) over ``outputs``, shape (|X̂|,).

        Parameters
        ----------
        x : label
            A letter of ``inputs``.
        exact : bool
            Return an array of ``Fraction``, whose sum is 1, instead of floats.

        Raises
        ------
        UnknownValueError
            If x is no input.
        """
        place = self._place(x, "x")
        keep: Any = self._keep[place]
        if exact:
            mass = Fraction(float(self._masses[place])) / self._total
            keep = max(1 - self.level / mass, Fraction(0)) if mass else Fraction(0)
        row = (1 - keep) * (self._exact_marginal if exact else self._marginal)
        if self._output[place] >= 0:
            row[self._output[place]] += keep
        return row

    def posterior_of(self, x_hat: Any, *, exact: bool = False) -> np.ndarray:
        """Return p(x | x̂) over ``inputs``, shape (|X|,), of a released x̂.

        Parameters
        ----------
        x_hat : label
            A letter of ``outputs``.
        exact : bool
            Return an array of ``Fraction``, whose sum is 1, instead of floats.

        Raises
        ------
        UnknownValueError
            If x̂ is no letter, or one that is never released.
        """
        place = self._place(x_hat, "x_hat")
        if self._output[place] < 0:
            remedy = "name one of the letters in .kept"
            raise UnknownValueError("x_hat", f"{x_hat!r} is never released", remedy, value=x_hat)
        if exact:
            masses = [Fraction(m) / self._total for m in self._masses.tolist()]
            law = np.array([min(p, self.level) for p in masses], dtype=object)
            law[place] = 1 - self.distortion
        else:
            law = np.minimum(self._prior(), float(self.level))
            law[place] = float(1 - self.distortion)
        return law

    @cached_property
    def matrix(self) -> np.ndarray:  # type: ignore[override]  # as others read it, an attribute
        """p(x̂ | x), shape (|X|, |X̂|), of at most 2,000 letters."""
        few(len(self.inputs), "a matrix")
        matrix = np.outer(1.0 - self._keep, self._marginal)
        matrix[self._kept, np.arange(len(self._kept))] += self._keep[self._kept]
        return owned(matrix)

    def to_channel(self) -> Channel:
        """Return the same as a dense, square channel of at most 2,000 letters.

        Letters never released have zeros.
        """
        few(len(self.inputs), "a matrix")
        square = np.zeros((len(self.inputs),) * 2)
        square[:, self._kept] = self.matrix
        return Channel(
            square,
            inputs=self.inputs,
            outputs=self.inputs,
            p_input=self.p_input,
            arbitrary=self.arbitrary,
        )

    # ---- drawing -------------------------------------------------------------------------

    independent = False
    _each = 2  # whether it is kept, and what is drawn anew

    def _draw(self, rows: Places, numbers: Numbers) -> Places:
        drawn, anew = self._output[rows], numbers[0] >= self._keep_below[rows]
        drawn[anew] = np.searchsorted(self._cumulative, numbers[1, anew], side="right")
        return drawn

    # ---- its parts -----------------------------------------------------------------------

    def _place(self, label: Any, argument: str) -> int:
        try:
            return self._rows[label]
        except (KeyError, TypeError):
            remedy = "name a letter of the source"
            problem = f"{label!r} is no letter"
            raise UnknownValueError(argument, problem, remedy, value=label) from None

    @cached_property
    def _output(self) -> npt.NDArray[np.int64]:
        """Each letter's number among the released ones, −1 without."""
        column = np.full(len(self.inputs), -1)
        column[self._kept] = np.arange(len(self._kept))
        return column

    @cached_property
    def _above(self) -> npt.NDArray[np.float64]:
        """p(x̂) − λ of ``outputs``, in the unit of the masses; λ to twice a float's digits."""
        level = self.level * self._total
        high = float(level)
        low = float(level - Fraction(high))
        return np.maximum((self._masses[self._kept] - high) - low, 0.0)

    @cached_property
    def _keep(self) -> npt.NDArray[np.float64]:
        """(1 − λ/p(x))⁺."""
        keep = np.zeros(len(self.inputs))
        keep[self._kept] = self._above / self._masses[self._kept]
        return keep

    @cached_property
    def _marginal(self) -> npt.NDArray[np.float64]:
        if len(self._kept) > 1 and self._above.any():
            return self._above / self._above.sum()
        return self._exact_marginal.astype(float)  # where λ is next to the greatest p, or is it

    @cached_property
    def _keep_below(self) -> Numbers:
        return np.rint(self._keep * DENOMINATOR).astype(np.int64)

    @cached_property
    def _cumulative(self) -> Numbers:
        return np.cumsum(numerators(self._marginal[None])[0])

    @cached_property
    def _exact_marginal(self) -> npt.NDArray[np.object_]:
        if len(self._kept) == 1:
            return np.array([Fraction(1)], dtype=object)
        masses = [Fraction(m) / self._total for m in self._masses[self._kept].tolist()]
        left = 1 - self.distortion - self.level
        return np.array([(p - self.level) / left for p in masses], dtype=object)
