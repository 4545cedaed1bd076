"""What the best guess gains: g-leakage, and the probability of guessing W."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats as exact_floats, fractions, written
from cvxprivacy.leakage.base import Entries, Face, Places, Polyhedral, Recourse
from cvxprivacy.validation import table

__all__ = ["Gain", "GuessingProbability"]


class Gain(Polyhedral):
    """Σ_x̂ max_g Σ_w G(g, w) p(w, x̂): the mean gain of the best guess g after seeing x̂.

    F(J) = max_g ⟨G(g, ·), J⟩, the posterior g-vulnerability of Alvim, Chatzikokolakis, Palamidessi
    and Smith, *Measuring Information Leakage Using Generalized Gain Functions*, CSF 2012.  Without
    a release it is max_g Σ G(g, w) p(w).

    Parameters
    ----------
    matrix : array_like, shape (guesses, |W|)
        G(g, w), what guess g gains where w is true; any finite numbers.

    Raises
    ------
    InputError
        For numbers that are not finite; once there is a source, for another number of values.

    Examples
    --------
    An adversary wins 1 for a right guess, loses 1 for a wrong one, and may pass.  Two fair bits
    that differ with probability 0.2 are worth 0.8 − 0.2; with X flipped in a fifth of the records,
    0.68 − 0.32:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> bet = cpv.leakage.Gain([[1, -1], [-1, 1], [0, 0]])
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=bet)
    >>> round(bet.total(source.pmf), 4), round(problem.solve().value, 4)
    (0.6, 0.36)
    """

    kind = "gain"
    meaning = "the mean gain of the best guess that sees x̂"
    divergence = False

    def __init__(self, matrix: npt.ArrayLike) -> None:
        remedy = "pass shape (guesses, |W|) of finite numbers"
        self.matrix: Exact | None = table(matrix, "matrix", remedy, axes=(2,), negative=True)

    def fitted(self, values: Sequence[Hashable], support: Sequence[int]) -> Self:
        if self._table.shape[1] != len(values):
            problem = f"gains for {self._table.shape[1]} values, where W has {len(values)}"
            raise InputError("matrix", problem, f"pass shape (guesses, {len(values)})")
        return self._with(matrix=self._table[:, np.asarray(support)])

    @property
    def signed(self) -> bool:
        return self.matrix is not None and bool((self.matrix < 0).any())

    @property
    def name(self) -> str:
        return f"gain of {len(self._table)} guesses"

    @property
    def symbol(self) -> str:
        return "V_G"

    def latex(self, at: Places) -> str:
        return r"\max_{g} " + at.sum(rf"{at.constant('G')}(g, {at.index}) \, {at.j}")

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        """Return the gain of a random guess."""
        share = at.score(rf"\eta_{{{self.symbol}{at.mark}}}", "g")
        sound = [at.each(rf"{share} \ge 0", "g"), rf"{at.sum(share, 'g')} = 1"]
        return at.sum(rf"{share} \, {at.constant('G')}(g, {at.index})", "g"), sound

    def data(self) -> dict[str, Any]:
        rows = self._table.tolist()
        return {"kind": self.kind, "matrix": [[written(c) for c in row] for row in rows]}

    def rows(self, values: int) -> int:
        return len(self._table)

    @property
    def _table(self) -> Exact:
        if self.matrix is None:
            raise TypeError("gains for no W in particular: use .fitted(values, support)")
        return self.matrix

    @property
    def span(self) -> float:
        gains = exact_floats(self._table)
        lost = gains.max(axis=0) - gains
        return float(np.median(lost[lost > 0])) if (lost > 0).any() else 1.0

    def value(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        most: FloatArray = self.lifted(joint, reference).max(axis=0)
        return most

    def scores(self, joint: FloatArray, reference: FloatArray) -> FloatArray:
        """Return the weights of guesses."""
        best = self.lifted(joint, reference).argmax(axis=0)
        return np.eye(self.rows(len(reference)))[:, best]

    def inside(self, scores: FloatArray, reference: FloatArray) -> FloatArray:
        weights = np.maximum(scores, 0.0)
        weights = np.where(weights.any(axis=0), weights, 1.0)
        mean_gains: FloatArray = exact_floats(self._table).T @ (weights / weights.sum(axis=0))
        return mean_gains

    def face(self, prior: Exact, reference: Exact) -> Face:
        """Return where the best guess without a release is best still: others gain no more."""
        gains, each = fractions(self._table), np.eye(len(self._table))
        best = int((gains @ prior).argmax())
        others = np.arange(len(each)) != best
        moves = (each - each[best])[others]
        return Face(gains[best], (gains - gains[best])[others], each[best], moves)

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        """Return what each guess gains."""
        return exact_floats(self._table) @ joint

    def entries(self, reference: FloatArray) -> Entries | None:
        """Return the gains, where each guess gains with one value alone, and none loses."""
        gains = exact_floats(self._table)
        if gains.shape != (len(reference),) * 2 or (gains != np.diag(np.diag(gains))).any():
            return None
        weights = np.diag(gains)
        return Entries(weights, False, np.ones(len(weights))) if (weights > 0).all() else None

    def recourse(self, reference: FloatArray) -> Recourse:
        """Return a level above what each guess gains; it is > 0, as some guess gains.

        Where all may gain nothing, a number is lent to each, and q itself is recourse, to pay it
        back: at a level of 0 the weights of guesses need not add up to 1.
        """
        gains = exact_floats(self._table)
        count, sure = len(gains), float(gains.min(axis=1).max())
        level = np.hstack([np.ones((count, 1)), -np.eye(count)])
        harmless = gains[gains.min(axis=1) >= 0]
        if len(harmless) and harmless.mean(axis=0).min() > 0:  # one of them at random gains
            return Recourse(level, np.zeros(count), np.eye(1, count + 1)[0])
        lent = self.span - sure
        matrix = np.zeros((count + 1, count + 2))
        matrix[:count, 1:], matrix[count, 0] = level, 1.0
        cost = np.concatenate([[-lent, 1.0], np.zeros(count)])
        return Recourse(matrix, np.concatenate([np.full(count, lent), [1.0]]), cost)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._table.shape[0]} guesses)"


class GuessingProbability(Gain):
    """Σ_x̂ max_w p(w, x̂): the probability that the best guess of W that sees x̂ is right.

    Posterior Bayes vulnerability (Smith, *On the Foundations of Quantitative Information Flow*,
    FoSSaCS 2009): the gain of 1 for the right value; max_w p(w) without a release.

    Examples
    --------
    A fair bit is guessed from X with probability 0.8, and with 0.68 if X is flipped in a fifth of
    the records.  It is 0.5 without a release:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> guess = cpv.leakage.GuessingProbability()
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2, leakage=guess)
    >>> round(guess.total(source.pmf), 4), round(problem.solve().value, 4)
    (0.8, 0.68)
    """

    meaning = "the probability of guessing W right from x̂"

    def __init__(self) -> None:
        self.matrix = None
        self._values: int | None = None

    def fitted(self, values: Sequence[Hashable], support: Sequence[int]) -> Self:
        return self._with(_values=len(support))

    def rows(self, values: int) -> int:
        return values

    @property
    def _table(self) -> Exact:
        if self._values is None:
            return super()._table
        return np.eye(self._values)

    def lifted(self, joint: Any, reference: FloatArray) -> Any:
        return joint

    @property
    def name(self) -> str:
        return "guessing probability"

    @property
    def label(self) -> str:
        return self.name

    @property
    def symbol(self) -> str:
        return "V"

    def latex(self, at: Places) -> str:
        return rf"\max_{{{at.index}}} {at.j}"

    def latex_scores(self, at: Places) -> tuple[str, list[str]]:
        """Return the probability of guessing each value."""
        share = at.score(rf"\eta_{{{self.symbol}{at.mark}}}")
        return share, [at.each(rf"{share} \ge 0"), rf"{at.sum(share)} = 1"]

    def __repr__(self) -> str:
        return "GuessingProbability()"
