r"""Mechanisms of the literature, by name: what is done in practice, to set beside an optimum.

Each function returns a :class:`~cvxprivacy.Channel` whose rows are the letters that you pass, with
local privacy of the ε that you type, or metric privacy of a metric that its docstring names.

**What is drawn has the ε, not only the formula.**  A channel draws by whole multiples of 2⁻⁵²
(:meth:`~cvxprivacy.Channel.apply`), and a formula that is rounded to them may exceed its ε.  So
each law is mixed with a uniform one of a few multiples for each output,

.. math:: \frac{a + c + 1}{b + c - 1} ≤ e^{ε}
          \quad\text{where}\quad a ≤ e^{ε} b \text{ and } c ≥ \frac{e^{ε} + 1}{e^{ε} - 1},

and what is returned is examined by :class:`~cvxprivacy.PrivacyProfile`, exactly: its own ε is at
most the one typed.  At ε ≥ 0.01 that moves no probability by much more than 10⁻¹² for
each output that there is.

Outputs such as subsets and bits are no letters of a problem: :func:`remap` sends each to the letter
that costs least, which is what a user of the release would do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.additive import floats
from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.criteria.ratios import EXPONENT
from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import Real
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import numerators
from cvxprivacy.results.privacy_profile import PrivacyProfile
from cvxprivacy.validation import array, integer, labels, one_of, typed

__all__ = [
    "exponential",
    "planar_laplace",
    "randomised_response",
    "rappor",
    "remap",
    "subset_selection",
    "truncated_geometric",
]

MOST = 4096  # outputs of subsets, of bits, and of cells
REACH = 40.0  # ε times the distance beyond which e^(−ε d) is below the last digit of what is summed
FARTHEST = 2000  # steps of the lattice that are summed


def randomised_response(letters: Sequence[Hashable], epsilon: Real) -> Channel:
    r"""Keep the letter, or release any other one: p(y | x) ∝ e^ε for y = x, and 1 else.

    ε-local privacy.  S. L. Warner, *Randomized response*, JASA 60 (1965), for two letters; of k
    letters it costs the least Hamming distortion, (k − 1)/(e^ε + k − 1) under a uniform law
    (P. Kairouz, S. Oh and P. Viswanath, *Extremal mechanisms for local differential privacy*, JMLR
    17 (2016)).

    Parameters
    ----------
    letters : sequence
        Labels of the inputs, which are the outputs too.
    epsilon : number
        ε > 0, a natural logarithm.

    Returns
    -------
    Channel
        p(y | x), shape (k, k).

    Raises
    ------
    InputError
        For an ε that is not positive, or letters that are not distinct.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> mechanisms.randomised_response("abc", log(2)).matrix.round(4).tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """
    letters, limit = _letters(letters), _epsilon(epsilon)
    weights = np.where(np.eye(len(letters), dtype=bool), 1.0, math.exp(-limit))
    return _private(weights, letters, letters, epsilon)


def subset_selection(
    letters: Sequence[Hashable], epsilon: Real, *, size: int | None = None
) -> Channel:
    r"""Release a subset of a size: p(y | x) ∝ e^ε for subsets y that hold x, and 1 else.

    ε-local privacy.  M. Ye and A. Barg, *Optimal schemes for discrete distribution estimation under
    locally differential privacy*, IEEE Trans. Inf. Theory 64 (2018); S. Wang et al., *Mutual
    information optimally local private discrete distribution estimation* (2016).  Under a uniform
    law no other release of this ε tells more about the letter, in bits.

    Parameters
    ----------
    letters : sequence
        Labels of the inputs.
    epsilon : number
        ε > 0, a natural logarithm.
    size : int, optional
        Letters in a subset, fewer than there are.  By default that which tells most of a uniform
        letter, next to k/(e^ε + 1).

    Returns
    -------
    Channel
        Its outputs are tuples of letters, in their order.

    Raises
    ------
    InputError
        For an ε that is not positive, a size that does not fit, or more than 4,096 subsets.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> channel = mechanisms.subset_selection("abcd", log(2), size=2)
    >>> channel.outputs[:3], channel.matrix[0].round(4).tolist()
    ([('a', 'b'), ('a', 'c'), ('a', 'd')], [0.2222, 0.2222, 0.2222, 0.1111, 0.1111, 0.1111])
    """
    letters, limit = _letters(letters), _epsilon(epsilon)
    k = len(letters)
    size = _most_telling(k, limit) if size is None else integer(size, "size", least=1)
    if size > max(k - 1, 1):
        remedy = f"pass a size of at most {max(k - 1, 1)}"
        raise InputError("size", f"{size} of {k} letters", remedy, value=size)
    count = math.comb(k, size)
    _refuse_many(count, "pass another size, or fewer letters")
    subsets = list(itertools.combinations(range(k), size))
    member = np.zeros((k, count), dtype=bool)
    for column, subset in enumerate(subsets):
        member[list(subset), column] = True
    outputs = [tuple(letters[i] for i in subset) for subset in subsets]
    return _private(np.where(member, 1.0, math.exp(-limit)), letters, outputs, epsilon)


def _most_telling(k: int, epsilon: float) -> int:
    """Return the size of subsets that tells most of a uniform letter: it is one of two."""
    low = min(max(math.floor(k / (math.exp(epsilon) + 1)), 1), max(k - 1, 1))
    q = math.exp(-epsilon)

    def information(size: int) -> float:  # in nats, of weights 1 and e^−ε with mean w
        w = (size + (k - size) * q) / k
        inside = size / w * math.log(1 / w)
        return (inside + (k - size) * q / w * math.log(q / w)) / k

    return max((low, min(low + 1, max(k - 1, 1))), key=information)


def rappor(letters: Sequence[Hashable], epsilon: Real) -> Channel:
    r"""Release a bit for each letter, each kept with probability :math:`1/(1 + e^{-ε/2})`.

    ε-local privacy: two letters differ in two bits.  The basic one-time RAPPOR of Ú. Erlingsson,
    V. Pihur and A. Korolova, *RAPPOR: randomized aggregatable privacy-preserving ordinal response*,
    CCS 2014.

    Parameters
    ----------
    letters : sequence
        Labels of the inputs, 12 at most.
    epsilon : number
        ε > 0, a natural logarithm.

    Returns
    -------
    Channel
        Its outputs are tuples of 0 and 1, one for each letter.

    Raises
    ------
    InputError
        For an ε that is not positive, or more than 12 letters.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> channel = mechanisms.rappor("ab", 2 * log(3))
    >>> channel.outputs, channel.matrix[0].round(4).tolist()
    ([(0, 0), (0, 1), (1, 0), (1, 1)], [0.1875, 0.0625, 0.5625, 0.1875])
    """
    letters, limit = _letters(letters), _epsilon(epsilon)
    k = len(letters)
    _refuse_many(2**k, "pass at most 12 letters, or use subset_selection")
    outputs = np.array(list(itertools.product((0, 1), repeat=k)))
    flipped = (outputs[None] != np.eye(k)[:, None]).sum(axis=2)
    bits = [tuple(row) for row in outputs.tolist()]
    return _private(np.exp(-limit / 2 * flipped), letters, bits, epsilon)


def truncated_geometric(values: Sequence[Hashable] | int, epsilon: Real) -> Channel:
    r"""Add geometric noise to a place in a row, and cut off at the ends.

    .. math:: p(j | i) = \frac{1 - a}{1 + a} a^{|i - j|} \text{ inside, }
              \frac{1}{1 + a} a^{|i - j|} \text{ at either end}, \quad a = e^{-ε}

    ε-metric privacy for m(i, j) = |i − j|, the places between two values.  A. Ghosh, T. Roughgarden
    and M. Sundararajan, *Universally utility-maximizing privacy mechanisms*, SIAM J. Comput. 41
    (2012): after :func:`remap` it costs least, whatever the law and whatever loss grows with
    distance.

    Parameters
    ----------
    values : sequence, or int
        Labels in their order; or how many, 0, 1, ….
    epsilon : number
        ε > 0, a natural logarithm for each place.

    Returns
    -------
    Channel
        p(y | x), of the same letters.

    Raises
    ------
    InputError
        For an ε that is not positive, or values that are not distinct.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> mechanisms.truncated_geometric(3, log(2)).matrix.round(4).tolist()
    [[0.6667, 0.1667, 0.1667], [0.3333, 0.3333, 0.3333], [0.1667, 0.1667, 0.6667]]
    """
    whole_number = isinstance(values, int | np.integer) and not isinstance(values, bool)
    count = integer(values, "values", least=1) if whole_number else 0
    letters, limit = _letters(range(count) if count else values, "values"), _epsilon(epsilon)
    places = np.arange(len(letters))
    apart = np.abs(places[:, None] - places)
    weights = np.exp(-limit * apart)
    weights[:, 1:-1] *= -math.expm1(-limit)
    return _private(weights, letters, letters, epsilon, apart)


def planar_laplace(
    shape: tuple[int, int],
    epsilon: Real,
    *,
    letters: Sequence[Hashable] | None = None,
    distance: str = "euclidean",
) -> Channel:
    r"""Add Laplace noise to a place on a grid, and move what falls outside to the nearest cell.

    The noise is that of the endless lattice, :math:`e^{-ε d} / \sum e^{-ε d}`: its sum is the same
    for every place, so that what is released is ε-metric private for d itself, the distance in
    cells, and cutting off is post-processing.  (On the grid alone each row has a sum of its own,
    and :math:`p ∝ e^{-ε d}` is private for 2 ε only.)  M. E. Andrés, N. E. Bordenabe,
    K. Chatzikokolakis and C. Palamidessi, *Geo-indistinguishability*, CCS 2013, on a lattice in
    place of the plane.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the grid.
    epsilon : number
        ε ≥ 0.02, a natural logarithm for the side of a cell.
    letters : sequence, optional
        Labels of the cells, row by row; by default (row, column).
    distance : {"euclidean", "city"}
        d: :math:`\sqrt{Δr^2 + Δc^2}`, or |Δr| + |Δc|, which is never less.

    Returns
    -------
    Channel
        p(y | x), of the same letters.

    Raises
    ------
    InputError
        For an ε below 0.02, a shape that is none, or more than 4,096 cells.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> channel = mechanisms.planar_laplace((2, 2), log(2), distance="city")
    >>> channel.inputs, channel.matrix[0].round(4).tolist()
    ([(0, 0), (0, 1), (1, 0), (1, 1)], [0.4444, 0.2222, 0.2222, 0.1111])
    """
    try:
        rows, columns = shape
    except (TypeError, ValueError):
        remedy = "pass (rows, columns), such as (6, 6)"
        raise InputError("shape", f"{shape!r} is no pair", remedy, value=shape) from None
    rows, columns = (integer(side, "shape", least=1) for side in (rows, columns))
    _refuse_many(rows * columns, "pass fewer cells", "shape")
    one_of(distance, "distance", "euclidean", "city")
    limit = _epsilon(epsilon)
    reach = math.ceil(rows + columns + REACH / limit)
    if reach > FARTHEST + rows + columns:
        remedy = f"pass an ε of at least {REACH / FARTHEST:g} for each cell, or use exponential"
        raise InputError("epsilon", f"{epsilon!r} is too small", remedy, value=epsilon)
    cells = list(itertools.product(range(rows), range(columns)))
    names = cells if letters is None else labels(letters, len(cells), "letters")
    down, across = _clamped(rows, reach), _clamped(columns, reach)
    noise = np.exp(-limit * _apart(np.arange(reach + 1), np.arange(reach + 1), distance))
    weights = np.einsum("iru,uv,jcv->ijrc", down, noise, across, optimize=True)
    row, column = np.array(cells).T
    metric = _apart(np.abs(row[:, None] - row), np.abs(column[:, None] - column), distance, False)
    return _private(weights.reshape(len(cells), -1), names, names, epsilon, metric)


def _apart(rows: np.ndarray, columns: np.ndarray, distance: str, outer: bool = True) -> np.ndarray:
    """Return distances of numbers of rows and columns, of each with each or one by one."""
    rows = rows[:, None] if outer else rows
    return np.hypot(rows, columns) if distance == "euclidean" else rows + columns


def _clamped(size: int, reach: int) -> np.ndarray:
    """Return how many steps of each length lead from one line of a grid to another, cut off."""
    steps = np.arange(-reach, reach + 1)
    counts = np.zeros((size, size, reach + 1))
    for i in range(size):
        np.add.at(counts[i], (np.clip(i + steps, 0, size - 1), np.abs(steps)), 1.0)
    return counts


def exponential(distances: Distortion | npt.ArrayLike, epsilon: Real) -> Channel:
    r"""Release near letters rather than far ones: :math:`p(y | x) ∝ e^{-ε\, d(x, y)/2}`.

    ε-metric privacy for :math:`m(x, x') = \max_y |d(x, y) - d(x', y)|`, which is at most d where d
    is a metric: half of ε goes to the distance, half to the sum of the row, which needs less; what
    is left over, ``PrivacyProfile`` tells.  F. McSherry and
    K. Talwar, *Mechanism design via differential privacy*, FOCS 2007.

    Parameters
    ----------
    distances : Distortion or array_like, shape (|X|, |Y|)
        d(x, y) ≥ 0; the labels are those of the distortion, or 0, 1, ….
    epsilon : number
        ε > 0, a natural logarithm for each unit of distance.

    Returns
    -------
    Channel
        p(y | x).

    Raises
    ------
    InputError
        For an ε that is not positive, or what is no table of distances.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> places = cpv.absolute_error([0, 1, 2])
    >>> mechanisms.exponential(places, 2 * log(2)).matrix.round(4).tolist()
    [[0.5714, 0.2857, 0.1429], [0.25, 0.5, 0.25], [0.1429, 0.2857, 0.5714]]
    """
    limit = _epsilon(epsilon)
    remedy = "pass distances d(x, y) ≥ 0, shape (|X|, |Y|)"
    table = distances.matrix if isinstance(distances, Distortion) else distances
    d = array(table, "distances", remedy, axes=(2,))
    named = distances if isinstance(distances, Distortion) else Distortion(d)
    outputs = named.outputs
    inputs = named.inputs or (outputs if len(outputs) == len(d) else list(range(len(d))))
    metric = np.array([np.abs(d - row).max(axis=1) for row in d])
    weights = np.exp(-limit / 2 * (d - d.min(axis=1, keepdims=True)))
    return _private(weights, inputs, outputs, epsilon, metric)


def remap(
    channel: Channel, source: DiscreteSource, distortion: Distortion | npt.ArrayLike
) -> Channel:
    """Return the channel whose outputs are replaced by the letters that cost least.

    Each output y becomes the x̂ with the least Σ_x p(x) p(y | x) d(x, x̂), the first of several: no
    use of y has a smaller expected distortion.  It is post-processing, and keeps the channel's ε.

    Parameters
    ----------
    channel : Channel
        Its inputs hold the letters of the source that have mass.
    source : DiscreteSource
        The law.
    distortion : Distortion or array_like
        d(x, x̂) or d(w, x, x̂).

    Returns
    -------
    Channel
        With the released letters of the distortion as its outputs.

    Raises
    ------
    InputError
        For what is no channel or source, or a distortion that does not fit, or that forbids every
        letter to inputs of one output.
    UnknownValueError
        For a letter of the source that is no input of the channel.

    Examples
    --------
    Subsets of two become letters again:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy import mechanisms
    >>> from math import log
    >>> source = cpv.DiscreteSource.identical([0.5, 0.3, 0.2], x=["a", "b", "c"])
    >>> pairs = mechanisms.subset_selection("abc", log(4), size=2)
    >>> letter = mechanisms.remap(pairs, source, cpv.hamming(source.x))
    >>> letter.outputs, letter.matrix.round(4).tolist()
    (['a', 'b', 'c'], [[0.8889, 0.1111, 0.0], [0.5556, 0.4444, 0.0], [0.5556, 0.4444, 0.0]])
    """
    kinds = {"channel": (channel, Channel), "source": (source, DiscreteSource)}
    for argument, (value, kind) in kinds.items():
        if not isinstance(value, kind):
            problem = f"a {type(value).__name__}"
            raise InputError(argument, problem, f"pass a {kind.__name__}")
    named = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
    fitted = named.fitted(len(source.w), source.x)
    place = {label: i for i, label in enumerate(channel.inputs)}
    law = np.zeros((len(source.w), len(channel.inputs)))
    cost = np.zeros((*law.shape, len(fitted.outputs)))
    forbidden = np.zeros(cost.shape[1:], bool)
    for j in np.flatnonzero(source.p_x).tolist():
        label = source.x[j]
        if label not in place:
            remedy = "make the channel of the letters of the source"
            problem = f"no input {label!r}"
            raise UnknownValueError("channel", problem, remedy, where=j, value=label)
        law[:, place[label]] = source.pmf[:, j]
        cost[:, place[label]] = floats(fitted.cost)[..., j, :]
        if fitted.forbidden is not None:
            forbidden[place[label]] = fitted.forbidden[j]
    k = numerators(channel.matrix)
    priced = np.einsum("wx,wxz->xz", law, cost)
    barred = (k > 0).T @ forbidden
    for y in np.flatnonzero(barred.all(axis=1)).tolist():
        problem = f"forbids every letter to some input of the output {channel.outputs[y]!r}"
        raise InputError("distortion", problem, "leave a letter that all may become", where=y)
    best = np.where(barred, np.inf, k.T @ priced).argmin(axis=1)
    merged = np.asarray(k @ np.eye(cost.shape[-1], dtype=np.int64)[best])
    return Channel(
        merged / DENOMINATOR,
        inputs=channel.inputs,
        outputs=fitted.outputs,
        p_input=law.sum(axis=0),
        independent=channel.independent,
    )


# ---- what all have in common --------------------------------------------------------------


def _letters(letters: Any, argument: str = "letters") -> list[Any]:
    """Return distinct labels, at least one."""
    try:
        listed = list(letters)
    except TypeError:
        remedy = "pass labels, such as a list"
        raise InputError(argument, f"{letters!r} is no sequence", remedy, value=letters) from None
    if not listed:
        raise InputError(argument, "none", "pass at least one letter")
    return labels(listed, None, argument)


def _epsilon(epsilon: Real) -> float:
    return float(typed(epsilon, "epsilon", zero=False, below=EXPONENT))


def _refuse_many(count: int, remedy: str, argument: str = "letters") -> None:
    """Refuse more outputs than a matrix is for; their number may have thousands of digits."""
    if count > MOST:
        raise InputError(argument, f"more than {MOST:,} outputs", remedy)


def _private(
    weights: np.ndarray, inputs: Any, outputs: Any, epsilon: Real, metric: Any = None
) -> Channel:
    """Return the channel of weights, mixed with a uniform law until it has the ε that was typed.

    The weights satisfy the bound of their formula, up to rounding; a uniform law satisfies any.
    """
    law = weights / weights.sum(axis=1, keepdims=True)
    count = law.shape[1]
    positive = np.ones(1) if metric is None else metric[metric > 0]
    exponent = float(epsilon) * float(positive.min(initial=1.0))
    units = 8.0 / math.tanh(exponent / 2) if exponent else math.inf  # room for eight roundings
    while True:
        share = min(1.0, units * count / DENOMINATOR)
        mixed = numerators((1.0 - share) * law + share / count) / DENOMINATOR
        channel = Channel(mixed, inputs=inputs, outputs=outputs, independent=True)
        if PrivacyProfile(channel, metric=metric).epsilon.upper <= epsilon:
            return channel
        units *= 2
