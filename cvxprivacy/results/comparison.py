r"""Is one channel at most as telling as another, for every prior and every gain?

A is at most as telling as B if and only if A = B G for a stochastic G, a *garbling* of what B
releases: D. Blackwell, *Equivalent comparisons of experiments*, Annals of Mathematical Statistics
24, 1953; as refinement of channels, A. McIver et al., *Abstract channels and their robust
information-leakage ordering*, POST 2014.  How far it is from that is the deficiency of
L. Le Cam, *Sufficiency and approximate sufficiency*, Annals of Mathematical Statistics 35, 1964:

.. math:: δ &= \min_G \max_x \tfrac12 \textstyle\sum_y |A(x, y) - (B G)(x, y)| \\
            &= \max_{π, g} \; \textstyle\sum_y \max_a \sum_x π g(a, x) A(x, y)
               - \sum_y \max_a \sum_x π g(a, x) B(x, y), \quad 0 ≤ g ≤ 1,

one linear program and its dual.  HiGHS proposes G, π and g; all that is answered is evaluated in
rationals, of whichever were proposed: any G bounds δ from above, any π and g from below.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat, fmpz_mat, nmod_mat
from scipy import sparse
from scipy.optimize import linprog

from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, each, floats, fractions, is_sparse
from cvxprivacy.frozen import Frozen
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import numerators
from cvxprivacy.release.estimation import RESOLUTION
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.validation import table
from cvxprivacy_verifier.balls import ball, ceil, floor

__all__ = ["ChannelComparison", "compare_channels"]

_PRIME = 2**61 - 1  # modulo which independent rows and columns are picked
_UNKNOWNS = 1_000  # entries of a garbling that is not the only one
_COEFFICIENTS = 10_000_000  # of the linear program: 200 letters
_TIDY = 2**20  # denominator up to which a proposed number is taken for a simple fraction
_TIGHT: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class ChannelComparison(Frozen):
    """What is proved of channels A and B: that A is at most as telling as B, or that it is not.

    Made by :func:`compare_channels`.  Made of other garblings, priors and gains it says what these
    prove, and no more: nothing is taken from whoever proposed them.

    Parameters
    ----------
    a, b : Channel or array_like
        As :func:`compare_channels` takes them.
    garbling : array_like, shape (|outputs of B|, |outputs of A|)
        G, whose rows are laws.
    prior : array_like, shape (|X|,), optional
        π, a law of the inputs.
    gain : array_like, shape (guesses, |X|), optional
        g, what each guess gains where x is true.

    Attributes
    ----------
    garbling, prior, gain : ndarray of Fraction
        G, the nearest one where A is no garbling of B; and π and g that separate A from B, None
        where none are known.

    Raises
    ------
    InputError
        For what is no channel, no law, or of another shape.

    Examples
    --------
    A garbling that is not one proves nothing but a distance:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.typing import ChannelComparison
    >>> noisy, clear = [[0.75, 0.25], [0.25, 0.75]], [[1, 0], [0, 1]]
    >>> print(ChannelComparison(noisy, clear, garbling=[[0.5, 0.5], [0.25, 0.75]]).verdict)
    None
    >>> print(ChannelComparison(noisy, clear, garbling=noisy).verdict)
    True
    """

    def __init__(
        self,
        a: Channel | npt.ArrayLike,
        b: Channel | npt.ArrayLike,
        *,
        garbling: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
        gain: npt.ArrayLike | None = None,
    ) -> None:
        self._a, self._b = _alike(a, b)
        shape = (self._b.shape[1], self._a.shape[1])
        self.garbling: Exact = _laws(garbling, "garbling", shape)
        self.prior: Exact | None = None
        self.gain: Exact | None = None
        if (prior is None) != (gain is None):
            problem = "a prior without a gain, or a gain without a prior"
            raise InputError("gain", problem, "pass both")
        if gain is not None and prior is not None:
            inputs = len(self._a)
            self.prior = _laws([prior], "prior", (1, inputs))[0]
            remedy = f"pass shape (guesses, {inputs}) of finite numbers"
            self.gain = fractions(table(gain, "gain", remedy, axes=(2,), negative=True))
            if self.gain.shape[1] != inputs:
                raise InputError("gain", f"shape {self.gain.shape}", remedy)

    @cached_property
    def _distance(self) -> Fraction:
        """The greatest total variation of a row of A from that of B G."""
        a, b, g = (_matrix(x) for x in (self._a, self._b, self.garbling))
        rows = (a - b * g).tolist()
        return _fraction(max(sum((abs(x) for x in row), fmpq(0)) for row in rows)) / 2

    @property
    def gains(self) -> tuple[Fraction, Fraction] | None:
        """What the best guess gains that sees what A, and what B releases, exactly."""
        if self.gain is None or self.prior is None:
            return None
        weighed = _matrix(self.gain * self.prior)
        both = ((weighed * _matrix(x)).transpose().tolist() for x in (self._a, self._b))
        first, second = (_fraction(sum(map(max, columns), fmpq(0))) for columns in both)
        return first, second

    @property
    def margin(self) -> Fraction | None:
        """What is gained by A beyond B, exactly; None where no gain is known."""
        return None if self.gains is None else self.gains[0] - self.gains[1]

    @property
    def verdict(self) -> bool | None:
        """Whether A is at most as telling as B, for every prior and gain; None if undecided."""
        if not self._distance:
            return True
        return False if self.margin is not None and self.margin > 0 else None

    @property
    def deficiency(self) -> Enclosure:
        """δ: but for a probability of δ, what A releases can be drawn from what B does.

        No gain between 0 and 1 is greater by A than by B by more than δ, and some is by as much.
        """
        low = Fraction(0)
        if self.margin is not None and self.margin > 0 and self.gain is not None:
            span = (self.gain.max(axis=0) - self.gain.min(axis=0)).max()
            low = self.margin / span
        return Enclosure(max(0.0, floor(ball(low))), min(1.0, ceil(ball(self._distance))))

    def __repr__(self) -> str:
        shapes = " beside ".join(f"{x.shape[0]} → {x.shape[1]}" for x in (self._a, self._b))
        words = {True: "yes", False: "no", None: "undecided"}[self.verdict]
        return f"ChannelComparison({shapes}: {words})"

    def __str__(self) -> str:
        distance = f"but for a probability of {self.deficiency.upper:.3g} at most"
        if self.verdict:
            return "A is at most as telling as B, for every prior and every gain: A = B G exactly"
        if self.verdict is None:
            return f"undecided whether A is at most as telling as B: it is, {distance}"
        first, second = map(float, self.gains or ())
        return (
            f"A is not at most as telling as B: a gain is {first:.6g} by A and {second:.6g} by B\n"
            f"A is a garbling of B {distance}"
        )


def compare_channels(a: Channel | npt.ArrayLike, b: Channel | npt.ArrayLike) -> ChannelComparison:
    """Tell whether A is at most as telling as B, for every prior and every gain, with a proof.

    *Yes* is proved by a garbling G with A = B G exactly; *no* by a prior and a gain, guesses ×
    inputs, for which A gains more than B.  Else it is undecided, such as of matrices in floats that
    are products but for rounding; ``deficiency`` says how nearly A is a garbling of B.

    Parameters
    ----------
    a, b : Channel or array_like, shape (|X|, |outputs|)
        Channels of the same inputs.  A ``Channel``, and a matrix of floats, is what
        :meth:`Channel.apply` draws by, multiples of 2⁻⁵²; a matrix of fractions is itself.

    Returns
    -------
    ChannelComparison
        With ``verdict``, ``garbling``, ``prior``, ``gain``, ``margin`` and ``deficiency``.

    Raises
    ------
    InputError
        For what is no channel, sparse or very large ones, or channels of different inputs.

    Notes
    -----
    The program has |outputs of A| · (|X| + |outputs of B|) variables: forty letters take a few
    seconds, sixty some twenty.
    Where columns of B depend on each other, an exact garbling is sought up to a thousand entries.
    Every row counts, those of inputs without mass too.

    Examples
    --------
    A symmetric channel with more noise is a garbling of one with less; not the other way round:

    >>> import cvxprivacy as cpv
    >>> from fractions import Fraction as F
    >>> some, more = ([[1 - p, p], [p, 1 - p]] for p in (F(1, 10), F(1, 5)))
    >>> answer = cpv.compare_channels(more, some)
    >>> print(answer)
    A is at most as telling as B, for every prior and every gain: A = B G exactly
    >>> print(answer.garbling[0, 1], (F(1, 5) - F(1, 10)) / (1 - 2 * F(1, 10)))
    1/8 1/8
    >>> cpv.compare_channels(some, more).margin
    Fraction(1, 10)

    It is one of an erasure with a probability up to twice its own, here just so, which is none of
    it:

    >>> erased = [[F(4, 5), 0, F(1, 5)], [0, F(4, 5), F(1, 5)]]
    >>> cpv.compare_channels(some, erased).verdict, cpv.compare_channels(erased, some).verdict
    (True, False)
    """
    first, second = _alike(a, b)
    if (size := first.size * second.shape[1]) > _COEFFICIENTS:
        raise InputError("a", f"{size:,} products of entries", "put letters together", value=size)
    near, scores = _proposed(floats(first), floats(second))
    garbling = _repaired(first, second, near)
    laws = [_law_near(near, fine) for fine in (False, True)] if garbling is None else [garbling]
    best = min((ChannelComparison(a, b, garbling=g) for g in laws), key=lambda one: one._distance)
    if best.verdict:
        return best
    answers = [best]
    for fine in (False, True):
        shares = _simple(scores, fine)
        prior = shares.max(axis=0)
        if prior.any():
            gain = shares / np.array([mass or Fraction(1) for mass in prior])
            answers.append(best._with(prior=prior / prior.sum(), gain=gain))
    answer = max(answers, key=lambda one: one.margin or 0)
    return answer if answer.verdict is False else best


# ---- what is compared ---------------------------------------------------------------------


def _alike(a: Any, b: Any) -> tuple[Exact, Exact]:
    """Return both matrices exactly, the rows of B in the order of A's inputs."""
    if isinstance(a, Channel) and isinstance(b, Channel) and a.inputs != b.inputs:
        places = {label: i for i, label in enumerate(b.inputs)}
        for i, label in enumerate(a.inputs):
            if label not in places:
                problem = f"no input {label!r}, which the first channel has"
                raise InputError("b", problem, "pass channels of the same inputs", where=i)
        if len(a.inputs) == len(b.inputs):
            b = _exactly(b, "b")[[places[label] for label in a.inputs]]
    first, second = _exactly(a, "a"), _exactly(b, "b")
    if len(first) != len(second):
        problem = f"{len(second)} inputs, where the first channel has {len(first)}"
        raise InputError("b", problem, "pass channels of the same inputs")
    return first, second


def _exactly(channel: Any, argument: str) -> Exact:
    """Return p(y | x) as fractions."""
    if is_sparse(channel) or (isinstance(channel, Channel) and is_sparse(channel.matrix)):
        raise InputError(argument, "sparse, of very many entries", "put letters together")
    if isinstance(channel, Channel):
        return _drawn(channel.matrix)
    return _laws(channel, argument, None)


def _laws(values: Any, argument: str, shape: tuple[int, int] | None) -> Exact:
    """Return rows that are laws exactly: fractions as they are, floats as they are drawn by."""
    remedy = f"pass rows of nonnegative numbers that sum to 1, shape {shape or '(|X|, |outputs|)'}"
    exact = table(values, argument, remedy, axes=(2,))
    if shape is not None and exact.shape != shape:
        raise InputError(argument, f"shape {exact.shape}", remedy)
    rows = fractions(exact)
    excess = [abs(total - 1) for total in rows.sum(axis=1)]
    most = 0 if exact.dtype == object else RESOLUTION
    for i in (i for i, off in enumerate(excess) if off > most):
        problem = f"the row sums to {float(rows[i].sum())!r}, and not to 1"
        raise InputError(argument, problem, remedy, where=i)
    return _drawn(floats(exact)) if any(excess) else rows


def _drawn(matrix: FloatArray) -> Exact:
    """Return what is drawn by."""
    return each(lambda k: Fraction(int(k), DENOMINATOR), numerators(matrix))


# ---- what is proposed ---------------------------------------------------------------------


def _proposed(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return G, and π g of A's outputs as guesses, of the linear program and its dual."""
    (inputs, m), n = a.shape, b.shape[1]
    eye, one = sparse.eye_array(m), np.ones((1, m))
    # variables: G row by row, E = (A − B G)₊, t;  rows: A − B G ≤ E, Σ_y E ≤ t, Σ_y G = 1
    above: list[Any] = [-sparse.kron(b, eye), -sparse.eye_array(inputs * m), None]
    within: list[Any] = [None, sparse.kron(sparse.eye_array(inputs), one), -np.ones((inputs, 1))]
    laws = [sparse.kron(sparse.eye_array(n), one), sparse.coo_array((n, inputs * m + 1))]
    cost = np.zeros((n + inputs) * m + 1)
    cost[-1] = 1.0
    upper: Any = sparse.block_array([above, within], format="csc")
    equal: Any = sparse.hstack(laws, format="csc")
    answer: Any = linprog(
        cost,
        A_ub=upper,
        b_ub=np.concatenate([-a.ravel(), np.zeros(inputs)]),
        A_eq=equal,
        b_eq=np.ones(n),
        method="highs",
        options=_TIGHT,
    )
    if answer.x is None:
        warnings.warn(f"HiGHS: {answer.message}", RuntimeWarning, stacklevel=3)
        return np.full((n, m), 1.0 / m), np.zeros((m, inputs))
    near = answer.x[: n * m].reshape(n, m)
    scores = np.maximum(-answer.ineqlin.marginals[: inputs * m], 0.0)
    return near, scores.reshape(inputs, m).T


def _simple(values: FloatArray, fine: bool = False) -> Exact:
    """Return a simple fraction next to each number, or the number itself where ``fine``."""
    exact = each(Fraction, values)
    return exact if fine else each(lambda x: x.limit_denominator(_TIDY), exact)


def _law_near(near: FloatArray, fine: bool) -> Exact:
    """Return a law next to each row."""
    rows = _simple(np.maximum(near, 0.0), fine)
    return rows / rows.sum(axis=1)[:, None]


# ---- what is made exact -------------------------------------------------------------------


def _repaired(a: Exact, b: Exact, near: FloatArray) -> Exact | None:
    """Return a garbling that is one exactly and next to a proposed one, or None.

    Of independent columns of B it is the only one.  Else the equations B G = A and G 1 = 1 are
    solved for as many entries as are independent, the greatest first; others stay as proposed.
    """
    m, n = a.shape[1], b.shape[1]
    matrix = _matrix(b)
    rows = _independent(matrix.transpose())
    if len(rows) == n:
        garbling = _entries(_matrix(b[rows]).solve(_matrix(a[rows])))
    elif n * m > _UNKNOWNS:
        return None
    else:
        equal, laws = np.kron(b, np.eye(m, dtype=int)), np.kron(np.eye(n, dtype=int), [[1] * m])
        system = np.vstack([equal, each(Fraction, laws)])
        right = np.concatenate([a.ravel(), [Fraction(1)] * n])
        flat = _simple(np.maximum(near.ravel(), 0.0))
        order = np.argsort(-near.ravel(), kind="stable")
        columns = order[_independent(_matrix(system[:, order]))]
        flat[columns] = Fraction(0)
        remainder = right - system @ flat
        rows = _independent(_matrix(system[:, columns]).transpose())
        square = system[rows][:, columns]
        solved = _matrix(square).solve(_matrix(remainder[rows, None]))
        flat[columns] = _entries(solved)[:, 0]
        garbling = flat.reshape(n, m)
    sound = (garbling >= 0).all() and (garbling.sum(axis=1) == 1).all()
    return garbling if sound and matrix * _matrix(garbling) == _matrix(a) else None


def _independent(matrix: fmpq_mat) -> list[int]:
    """Return the first columns that are independent, by all likelihood: modulo a prime."""
    integers, _ = matrix.numer_denom()
    reduced, rank = nmod_mat(fmpz_mat(integers), _PRIME).rref()
    return [next(j for j, x in enumerate(row) if x) for row in reduced.tolist()[:rank]]


def _matrix(values: Exact) -> fmpq_mat:
    entries = [fmpq(x.numerator, x.denominator) for x in values.ravel().tolist()]
    return fmpq_mat(*values.shape, entries)


def _entries(matrix: fmpq_mat) -> Exact:
    rows = [[_fraction(x) for x in row] for row in matrix.tolist()]
    return np.array(rows, dtype=object).reshape(matrix.nrows(), matrix.ncols())


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))
