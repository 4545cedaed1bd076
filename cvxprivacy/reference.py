"""Reference algorithms, for figures and tests only: nothing here is certified.

* Blahut–Arimoto for W = X (Cover and Thomas 2006, §10.8), which Rebollo-Monedero et al. 2010
  name in §4.5;
* the projected steepest descent of Rebollo-Monedero et al. 2010, §6.1;
* the random codes of Sankar, Rajagopalan and Poor 2013, appendix, and what a code does, exactly.

The first two work in nats and in probabilities, and stop where they are told to; codes are of n
records at once, n small, and measured in bits per record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError

__all__ = ["BlockCode", "CodeMeasures", "blahut_arimoto", "books_by_side_information",
           "measure_code", "mixture_of_trivial_rules", "projected_descent",
           "quantise_and_bin"]  # fmt: skip


def blahut_arimoto(
    pmf: npt.ArrayLike, distortion: npt.ArrayLike, slope: float, *, iterations: int = 10_000
) -> tuple[float, float, np.ndarray]:
    """Return a point of Shannon's rate–distortion curve where −dR/dD = slope, in nats.

    Parameters
    ----------
    pmf : array_like, shape (|X|,)
        Probabilities of X.
    distortion : array_like, shape (|X|, |X̂|)
        d(x, x̂).
    slope : float
        Nats per unit of distortion, > 0.
    iterations : int
        Alternations at most; they stop when the output law moves by less than 1e-15.

    Returns
    -------
    tuple of (float, float, ndarray)
        R, D and p(x̂ | x).

    Raises
    ------
    InputError
        For a slope that is not positive.

    Examples
    --------
    A fair bit has R(D) = ln 2 − h(D), of slope ln (1 − D)/D: ln 9 at D = 0.1.

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> from math import log
    >>> found = reference.blahut_arimoto([0.5, 0.5], [[0, 1], [1, 0]], slope=log(9))
    >>> rate, distortion, channel = found
    >>> round(distortion, 4), round(rate, 4), channel.round(2).tolist()
    (0.1, 0.3681, [[0.9, 0.1], [0.1, 0.9]])
    >>> round(log(2) - cpv.information.entropy([0.1, 0.9], units="nats"), 4)
    0.3681
    """
    p, d = np.asarray(pmf, float), np.asarray(distortion, float)
    if not slope > 0:
        raise InputError("slope", f"{slope!r}", "pass a positive number of nats per distortion")
    kernel = np.exp(-slope * (d - d.min(axis=1, keepdims=True)))
    q = np.full(d.shape[1], 1.0 / d.shape[1])
    for _ in range(iterations):
        channel = q * kernel
        channel /= channel.sum(axis=1, keepdims=True)
        moved = p @ channel
        if np.abs(moved - q).max() < 1e-15:
            break
        q = moved
    channel = q * kernel
    channel /= channel.sum(axis=1, keepdims=True)
    q, on = p @ channel, channel > 0
    ratio = np.where(on, channel, 1.0) / np.where(q > 0, q, 1.0)
    rate = float((p[:, None] * channel * np.log(np.where(on, ratio, 1.0))).sum())
    return rate, float((p[:, None] * channel * d).sum()), channel


def mixture_of_trivial_rules(
    values: npt.ArrayLike, pmf: npt.ArrayLike, share: float, outputs: npt.ArrayLike | None = None
) -> np.ndarray:
    """Return the start of the descent: x̂ = x with weight 1 − share, else x̂ nearest E X.

    Rebollo-Monedero et al. 2010, §5.3: the rule behind the mutual-information upper bound.

    Parameters
    ----------
    values : array_like, shape (|X|,)
        The number that each letter stands for.
    pmf : array_like, shape (|X|,)
        Probabilities of X.
    share : float
        Weight of the constant, from 0 to 1.
    outputs : array_like, shape (|X̂|,), optional
        What may be released, by default the values themselves.

    Returns
    -------
    ndarray, shape (|X|, |X̂|)
        p(x̂ | x).

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> reference.mixture_of_trivial_rules([-1, 0, 1], [0.25, 0.5, 0.25], 0.2).tolist()
    [[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.2, 0.8]]
    """
    x, p = np.asarray(values, float), np.asarray(pmf, float)
    y = x if outputs is None else np.asarray(outputs, float)
    channel = np.zeros((len(x), len(y)))
    channel[np.arange(len(x)), np.abs(x[:, None] - y).argmin(axis=1)] = 1.0 - share
    channel[:, np.abs(y - p @ x).argmin()] += share
    return channel


def projected_descent(
    pmf: npt.ArrayLike,
    distortion: npt.ArrayLike,
    price: float,
    start: npt.ArrayLike,
    *,
    iterations: int = 32_000,
    step: float = 1e-4,
    exact: bool = False,
) -> tuple[float, float, np.ndarray]:
    """Return (R, D, p(x̂ | x)) after steepest descent on C = D + λ R, in nats.

    The gradient is projected onto Σ_x̂ p(x̂ | x) = 1; negative entries are reset to 0 and the
    rows renormalised, as in Rebollo-Monedero et al. 2010, §6.1.

    Parameters
    ----------
    pmf : array_like, shape (|W|, |X|)
        Joint law.
    distortion : array_like, shape (|X|, |X̂|)
        d(x, x̂).
    price : float
        λ, in units of d per nat.
    start : array_like, shape (|X|, |X̂|)
        Row-stochastic.
    iterations : int
        Steps that are taken, by default as many as in the paper.
    step : float
        Length of each in units of the gradient, by default the paper's.
    exact : bool
        Project each row onto the simplex instead, to its nearest point.

    Returns
    -------
    tuple of (float, float, ndarray)
        R, D and p(x̂ | x) where it stopped.

    Examples
    --------
    With steps that are large enough it comes to the optimum, which it cannot prove:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> law, d, start = [[0.4, 0.1], [0.1, 0.4]], cpv.hamming(2), [[0.9, 0.1], [0.1, 0.9]]
    >>> risk, distortion, _ = reference.projected_descent(
    ...     law, d.matrix, 2.0, start, iterations=2000, step=0.1
    ... )
    >>> problem = cpv.PrivacyDistortion(cpv.DiscreteSource(law), d, price=2.0, units="nats")
    >>> round(distortion + 2 * risk, 6), round(problem.solve().value, 6)
    (0.331191, 0.331191)
    """
    joint, d = np.asarray(pmf, float), np.asarray(distortion, float)
    channel = np.array(start, float)
    p_x, p_w = joint.sum(axis=0), joint.sum(axis=1)
    given_w = joint / p_w[:, None]  # p(x | w)
    tiny = 1e-300
    for _ in range(iterations):
        log_w = np.log(np.maximum(given_w @ channel, tiny))  # ln p(x̂ | w)
        log_q = np.log(np.maximum(p_x @ channel, tiny))
        gradient = p_x[:, None] * (d - price * log_q) + price * (joint.T @ log_w)
        gradient -= gradient.mean(axis=1, keepdims=True)
        moved = channel - step * gradient
        if exact:  # x ↦ (x − θ)⁺, where θ makes the row sum to 1
            falling = -np.sort(-moved, axis=1)
            levels = (falling.cumsum(axis=1) - 1.0) / np.arange(1, falling.shape[1] + 1)
            kept = (falling > levels).sum(axis=1, keepdims=True)
            moved -= np.take_along_axis(levels, kept - 1, axis=1)
        channel = np.maximum(moved, 0.0)
        channel /= channel.sum(axis=1, keepdims=True)
    p_wy, q = joint @ channel, p_x @ channel
    on = p_wy > 0
    ratio = np.where(on, p_wy, 1.0) / np.where(on, p_w[:, None] * q, 1.0)
    risk = float((np.where(on, p_wy, 0.0) * np.log(ratio)).sum())
    return risk, float((p_x[:, None] * channel * d).sum()), channel


# ---- random codes ------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockCode:
    """A code of n records: what is sent, and what the user makes of it.

    Sequences are numbered as by ``itertools.product``: their last letter changes first.

    Parameters
    ----------
    sent : ndarray of int, shape (|X|ⁿ, |Z|ⁿ)
        The index j of each xⁿ and zⁿ; an encoder that does not know zⁿ has equal columns.
    read : ndarray of int, shape (indices, |Z|ⁿ, n)
        The x̂ⁿ of each j and zⁿ.

    Examples
    --------
    The majority of three bits, read as three equal bits; nobody knows a Z.  Of three fair bits one
    in four is off:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> import numpy as np
    >>> sent = np.array([[0], [0], [0], [1], [0], [1], [1], [1]])  # 000, 001, 010, 011, …
    >>> read = np.array([[[0, 0, 0]], [[1, 1, 1]]])
    >>> code = reference.BlockCode(sent, read)
    >>> fair = np.eye(2)[:, :, None] / 2  # W = X
    >>> measured = reference.measure_code(fair, 1 - np.eye(2), code)
    >>> round(measured.rate, 4), measured.distortion
    (0.3333, 0.25)
    """

    sent: npt.NDArray[np.intp]
    read: npt.NDArray[np.intp]


class CodeMeasures(NamedTuple):
    """What a code does, in bits per record and units of distortion.

    Attributes
    ----------
    rate : float
        log₂ of the number of indices, per record.
    told : float
        H(J | Zⁿ)/n, which is I(Xⁿ; J | Zⁿ)/n, as J is a function of (Xⁿ, Zⁿ).
    of_letters, by_letters : float
        Σ I(X_i; J, Zⁿ | Z_i)/n and Σ I(X_i; X̂_i | Z_i)/n.
    distortion, best : float
        Of what the user reads, and of the best guess of each x_i from j and zⁿ.
    equivocation, left_of_letters, left_by_letters : float
        H(Wⁿ | J, Zⁿ)/n, Σ H(W_i | J, Zⁿ)/n and Σ H(W_i | X̂_i, Z_i)/n.

    Examples
    --------
    The majority of three fair bits tells a third of a bit of each of them.  One by one they seem to
    be told less, 1 − h(¼), which is R(D) at D = ¼:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> import numpy as np
    >>> sent = np.array([[0], [0], [0], [1], [0], [1], [1], [1]])
    >>> code = reference.BlockCode(sent, np.array([[[0, 0, 0]], [[1, 1, 1]]]))
    >>> measured = reference.measure_code(np.eye(2)[:, :, None] / 2, 1 - np.eye(2), code)
    >>> round(measured.told, 4), round(measured.by_letters, 4)
    (0.3333, 0.1887)
    >>> round(1 - cpv.information.entropy([0.25, 0.75]), 4)
    0.1887
    """

    rate: float
    told: float
    of_letters: float
    by_letters: float
    distortion: float
    best: float
    equivocation: float
    left_of_letters: float
    left_by_letters: float


def quantise_and_bin(
    joint: npt.ArrayLike, reading: npt.ArrayLike, n: int, *, seed: int = 0, margin: float = 0.0
) -> tuple[BlockCode, BlockCode]:
    """Return a random code, and the same with the word itself sent in place of its bin.

    Sankar et al. 2013, appendix: 2^{n I(X, Z; U)} words are drawn from p(u) and dealt into
    2^{n I(X; U | Z)} bins; (xⁿ, zⁿ) is quantised to the likeliest word, whose bin is sent, and
    the user takes the likeliest word of the bin given zⁿ.  If p(u | x, z) = p(u | x), the words
    do not depend on zⁿ (Theorem 2), else the encoder knows it (Theorem 3).

    Parameters
    ----------
    joint : array_like, shape (|X|, |Z|, |U|)
        p(x, z, u), rounded so that words tie that should; it is divided by its sum.
    reading : array_like of int, shape (|U|, |Z|)
        f(u, z), the letter x̂.
    n : int
        Records that are coded at once.
    seed : int
        Of the words that are drawn.
    margin : float
        Added to the rate of the bins, in bits per record.

    Returns
    -------
    tuple of (BlockCode, BlockCode)
        The code that sends bins, and the one that sends words.

    Examples
    --------
    A fair bit and a Z that differs from it with probability 0.1; U = X tells it all.  Words of
    four records take 4 bits, bins 4 H(X | Z) = 1.876, and what rounding up to whole bins adds:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> import numpy as np
    >>> joint = np.zeros((2, 2, 2))
    >>> joint[0, :, 0], joint[1, :, 1] = [0.45, 0.05], [0.05, 0.45]
    >>> bins, words = reference.quantise_and_bin(joint, [[0, 0], [1, 1]], 4, seed=1)
    >>> len(words.read), len(bins.read)
    (16, 4)
    """
    law, f = np.asarray(joint, float), np.asarray(reading, int)
    law = law / law.sum()
    p_xz, p_zu, p_u = law.sum(axis=2), law.sum(axis=0), law.sum(axis=(0, 1))
    word_rate = _entropy(p_xz) + _entropy(p_u) - _entropy(law)
    side_information = _entropy(p_xz.sum(axis=0)) + _entropy(p_u) - _entropy(p_zu)  # I(Z; U)
    words = math.ceil(2 ** (n * word_rate))
    bins = min(words, math.ceil(2 ** (n * (word_rate - side_information + margin))))
    rng = np.random.default_rng([seed, n])
    book = rng.choice(len(p_u), p=p_u, size=(words, n))
    bin_of = rng.permutation(words) % bins
    xs, zs = _sequences(law.shape[0], n), _sequences(law.shape[1], n)
    word = np.empty((len(xs), len(zs)), int)
    density = law / (p_xz[:, :, None] * p_u)
    for place, z in enumerate(zs):
        word[:, place] = _likelihood(density[:, z], book, xs).argmax(axis=1)
    score = _likelihood(np.repeat((p_zu / p_u)[:, None], n, axis=1), book, zs)
    taken = np.stack([np.where(bin_of == j, score, -np.inf).argmax(axis=1) for j in range(bins)])
    readings = f[book[:, None], zs]
    return BlockCode(bin_of[word], readings[taken, np.arange(len(zs))]), BlockCode(word, readings)


def books_by_side_information(joint: npt.ArrayLike, n: int, *, seed: int = 0) -> BlockCode:
    """Return a random code with a book of its own for each zⁿ, drawn from p(x̂ | z), unbinned.

    Of 2^{n I(X; X̂ | Z)} words the likeliest given xⁿ and zⁿ is sent by its number.

    Parameters
    ----------
    joint : array_like, shape (|X|, |Z|, |X̂|)
        p(x, z, x̂), as in :func:`quantise_and_bin`.
    n : int
        Records that are coded at once.
    seed : int
        Of the words that are drawn.

    Returns
    -------
    BlockCode
        Whose encoder knows zⁿ.

    Examples
    --------
    Longer words of a fair bit come nearer to D = 0.1 at 1 − h(0.1) = 0.531 bits per record:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> import numpy as np
    >>> joint = np.array([[[0.45, 0.05]], [[0.05, 0.45]]])  # nothing is known besides
    >>> for n in (2, 4, 8):
    ...     code = reference.books_by_side_information(joint, n, seed=1)
    ...     bit, d = np.eye(2)[:, :, None] / 2, 1 - np.eye(2)
    ...     measured = reference.measure_code(bit, d, code)
    ...     print(n, f"{measured.rate:.3f} {measured.distortion:.3f}")
    2 0.792 0.250
    4 0.580 0.219
    8 0.540 0.191
    """
    law = np.asarray(joint, float)
    law = law / law.sum()
    p_xz, p_zu = law.sum(axis=2), law.sum(axis=0)
    word_rate = _entropy(p_xz) + _entropy(p_zu) - _entropy(law) - _entropy(p_xz.sum(axis=0))
    words = math.ceil(2 ** (n * word_rate))
    rng = np.random.default_rng([seed, n])
    xs, zs = _sequences(law.shape[0], n), _sequences(law.shape[1], n)
    sent, read = np.empty((len(xs), len(zs)), int), np.empty((words, len(zs), n), int)
    steps = (p_zu / p_zu.sum(axis=1, keepdims=True)).cumsum(axis=1)
    density = law / np.where(p_zu > 0, p_zu, 1.0)
    for place, z in enumerate(zs):
        drawn = rng.random((words, n, 1)) >= steps[z, :-1]
        read[:, place] = book = drawn.sum(axis=2)
        sent[:, place] = _likelihood(density[:, z], book, xs).argmax(axis=1)
    return BlockCode(sent, read)


def measure_code(pmf: npt.ArrayLike, distortion: npt.ArrayLike, code: BlockCode) -> CodeMeasures:
    """Return what a code does to i.i.d. records, by a visit to every (wⁿ, xⁿ, zⁿ).

    Parameters
    ----------
    pmf : array_like, shape (|W|, |X|, |Z|)
        The law of each record.
    distortion : array_like, shape (|X|, |X̂|)
        d(x, x̂).
    code : BlockCode
        Of few records: the work grows as (|X| |Z|)ⁿ.

    Returns
    -------
    CodeMeasures
        Exact but for rounding, nothing is sampled.

    Examples
    --------
    Records that are sent one by one and as they are:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import reference
    >>> import numpy as np
    >>> code = reference.BlockCode(np.array([[0], [1]]), np.array([[[0]], [[1]]]))
    >>> law = np.array([[[0.4], [0.1]], [[0.1], [0.4]]])  # W differs from X with probability 0.2
    >>> measured = reference.measure_code(law, 1 - np.eye(2), code)
    >>> measured.rate, measured.distortion, round(measured.equivocation, 4)  # h(0.2)
    (1.0, 0.0, 0.7219)
    """
    law, d = np.asarray(pmf, float), np.asarray(distortion, float)
    p_xz = law.sum(axis=0)
    indices, _, n = code.read.shape
    to_w = (law / np.where(p_xz > 0, p_xz, 1.0)).transpose(2, 0, 1)  # p(w | x) of each z
    xs, zs = _sequences(law.shape[1], n), _sequences(law.shape[2], n)
    is_letter = _letters_of(xs, law.shape[1])
    h_jz = h_jwz = h_x = h_w = spent = least = 0.0
    read = np.zeros((n, law.shape[2], d.shape[1], law.shape[1]))  # p(x_i, z_i, x̂_i)
    for place, z in enumerate(zs):
        mass = np.zeros((indices, len(xs)))  # p(j, xⁿ, zⁿ)
        mass[code.sent[:, place], np.arange(len(xs))] = _kron(p_xz[:, z].T, 1)
        first, last = (_kron(to_w[half], 2) for half in (z[: n // 2], z[n // 2 :]))
        h_jz += _entropy(mass.sum(axis=1))
        h_jwz += _entropy(first @ mass.reshape(indices, first.shape[1], -1) @ last.T)
        letters = (mass @ is_letter).reshape(indices, n, -1)  # p(x_i, j, zⁿ)
        h_x += _entropy(letters)
        h_w += _entropy(np.einsum("iwx,jix->jiw", to_w[z], letters))
        cost = letters @ d
        spent += np.take_along_axis(cost, code.read[:, place, :, None], axis=2).sum()
        least += cost.min(axis=2).sum()
        np.add.at(read, (np.arange(n), z, code.read[:, place]), letters)
    left = np.einsum("zwx,izyx->izyw", to_w, read)
    h_read, h_z = _entropy(read.sum(axis=3)), _entropy(p_xz.sum(axis=0))
    before = _entropy(p_xz) - h_z  # H(X | Z)
    return CodeMeasures(
        rate=math.log2(indices) / n, told=h_jz / n - h_z, of_letters=before - (h_x / n - h_jz),
        by_letters=before - (_entropy(read) - h_read) / n, distortion=float(spent) / n,
        best=float(least) / n, equivocation=(h_jwz - h_jz) / n,
        left_of_letters=h_w / n - h_jz, left_by_letters=(_entropy(left) - h_read) / n,
    )  # fmt: skip


def _sequences(letters: int, n: int) -> npt.NDArray[np.intp]:
    """Return all words of n letters, shape (lettersⁿ, n)."""
    return np.stack(np.unravel_index(np.arange(letters**n), (letters,) * n), axis=1)


def _likelihood(
    table: npt.NDArray[np.float64], book: npt.NDArray[np.intp], words: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Return log Π_i table[a_i, i, u_i] of each word aⁿ and each uⁿ of the book, to nine digits.

    Equal likelihoods come out equal, whatever the order of their factors.
    """
    logs = np.log(np.maximum(table, 1e-300))
    of_book = logs[:, np.arange(book.shape[1]), book]  # shape (letters, words of the book, n)
    return np.round(_letters_of(words, len(table)) @ of_book.transpose(2, 0, 1).reshape(
        -1, len(book)), 9)  # fmt: skip


def _letters_of(words: npt.NDArray[np.intp], letters: int) -> npt.NDArray[np.float64]:
    """Return 1 where word aⁿ has letter a at place i, shape (words, n letters)."""
    return (words[:, :, None] == np.arange(letters)).reshape(len(words), -1).astype(float)


def _kron(parts: npt.NDArray[np.float64], axes: int) -> npt.NDArray[np.float64]:
    """Return the Kronecker product of parts, of this number of axes."""
    return reduce(lambda a, b: np.kron(a, b), parts, np.ones((1,) * axes))


def _entropy(masses: npt.NDArray[np.float64]) -> float:
    """−Σ p log₂ p."""
    positive = masses[masses > 0]
    return -float(positive @ np.log2(positive))
