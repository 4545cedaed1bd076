"""Measures as numbers: of two laws, and of what a channel tells about its input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.leakage.base import Leakage, by_name, checked, measure_of
from cvxprivacy.leakage.f_divergence import JensenShannon, VinczeLeCam
from cvxprivacy.leakage.f_information import (
    ChiSquared,
    MutualInformation,
    SquaredHellinger,
    TotalVariation,
)
from cvxprivacy.leakage.gain import GuessingProbability
from cvxprivacy.leakage.sibson import Maximal
from cvxprivacy.leakage.transport import EarthMover
from cvxprivacy.model.information import laws, renyi_divergence
from cvxprivacy.validation import array, text

__all__ = ["divergence", "measures"]

_ROWS, _SLACK = "pass p(x̂ | x), shape (|X|, |X̂|), whose rows sum to 1", 1e-9
_EACH = (
    *(MutualInformation, ChiSquared, SquaredHellinger, TotalVariation, JensenShannon),
    *(VinczeLeCam, EarthMover, GuessingProbability, Maximal),
)


def divergence(
    p: npt.ArrayLike, q: npt.ArrayLike, kind: str | Leakage = "kl", *, units: str = "bits"
) -> float:
    """Return a divergence of two laws, by its name.

    A release leaks the mean of such divergences of posteriors p from the prior q.  Convex in (p, q)
    are all but Rényi's of an order above 1, which is so in q, and quasi-convex in both (van Erven
    and Harremoës, *Rényi Divergence and Kullback–Leibler Divergence*, IEEE Transactions on
    Information Theory 60, 2014): :class:`~cvxprivacy.leakage.Sibson` minimises its exponential.

    Parameters
    ----------
    p, q : array_like
        Probabilities or counts ≥ 0 of one shape, each divided by its own sum.
    kind : str or Leakage
        ``"kl"``, ``"js"`` (at most a bit), and ``"renyi:α"`` of any order α ≥ 0, ``"renyi:inf"``
        too; ``"tv"``, ``"hockey-stick:γ"``, ``"chi2"``, ``"hellinger"`` (squared, at most 2),
        ``"le-cam"``, ``"power:a"`` and ``"emd"`` (in the order of the values), and their long
        names such as ``"total-variation"``, numbers as their classes in
        :mod:`cvxprivacy.leakage` define them; or such a measure itself, as an ``EarthMover`` with
        other ground distances or an ``FInformation``.
    units : {"bits", "nats"}
        Of the first three; the others have none.

    Returns
    -------
    float
        ≥ 0; infinite where p has what q lacks, for ``"kl"``, ``"chi2"``, Rényi's and powers of an
        order ≥ 1; Rényi's of orders below are where the laws have no value in common.

    Raises
    ------
    InputError
        For negative numbers, shapes that differ, an unknown kind, or a measure that compares no two
        laws, such as a gain.

    Examples
    --------
    Of a bit that is 1 in a fifth of the records against a fair one:

    >>> import cvxprivacy as cpv
    >>> p, q = [0.8, 0.2], [0.5, 0.5]
    >>> for kind in ("kl", "renyi:2", "tv", "chi2", "hockey-stick:1.5"):
    ...     print(f"{kind:16} {cpv.leakage.divergence(p, q, kind):.4f}")
    kl               0.2781
    renyi:2          0.4436
    tv               0.3000
    chi2             0.3600
    hockey-stick:1.5 0.0500

    >>> [cpv.leakage.divergence([1, 1], [1, 0], kind) for kind in ("kl", "renyi:0.5")]
    [inf, 1.0]
    >>> far = cpv.leakage.EarthMover([[0, 1, 5], [1, 0, 4], [5, 4, 0]])
    >>> cpv.leakage.divergence([1, 0, 0], [0, 0, 1], far)
    5.0
    """
    first, second = laws(p, q)
    if isinstance(kind, Leakage):
        return checked(kind, "kind").between(first, second) * kind.unit(units)
    name, colon, order = text(kind, "kind", "pass a name such as 'kl'").partition(":")
    if name.lower() != "renyi":
        measure = measure_of(kind, "kind")
        return measure.between(first, second) * measure.unit(units)
    remedy = 'use "renyi:2"'
    if not colon:
        raise InputError("kind", f"{kind!r} has no number", remedy, value=kind)
    try:
        number = float(order)
    except ValueError:
        raise InputError("kind", f"{order!r} is no number", remedy, value=kind) from None
    return renyi_divergence(first, second, number, units=units)


def measures(
    prior: npt.ArrayLike, channel: Any, *, leakage: Any = None, units: str = "bits"
) -> dict[str, float]:
    """Return what a channel tells in every measure that needs no number, by name.

    Parameters
    ----------
    prior : array_like, shape (|X|,) or (|W|, |X|)
        The law of the channel's inputs, or p(w, x), of which what is told about W.
    channel : Channel or array_like, shape (|X|, |X̂|)
        p(x̂ | x).
    leakage : Leakage or sequence of Leakage, optional
        Other measures, such as ``Sibson(2)`` or a ``Gain``, in place of these.
    units : {"bits", "nats"}
        Of measures that are information.

    Returns
    -------
    dict of str to float
        As ``total`` of each measure has it, with information in ``units``.  The earth mover's
        distance takes the values in the order of the rows.

    Raises
    ------
    InputError
        For negative numbers, or shapes that do not fit.

    Examples
    --------
    A fair bit that is released as it is in four records of five:

    >>> import cvxprivacy as cpv
    >>> kept = [[0.8, 0.2], [0.2, 0.8]]
    >>> for name, value in cpv.leakage.measures([0.5, 0.5], kept).items():
    ...     print(f"{name:30} {value:.4f}")
    mutual information             0.2781
    chi-squared                    0.3600
    squared Hellinger              0.1026
    total variation                0.3000
    Jensen-Shannon                 0.0731
    Vincze-Le Cam                  0.1978
    earth mover's distance (ordered) 0.3000
    guessing probability           0.8000
    maximal leakage                1.6000
    """
    remedy = "pass a law of the inputs, shape (|X|,), or p(w, x), shape (|W|, |X|)"
    law = array(prior, "prior", remedy, axes=(1, 2), massive=True)
    rows = array(getattr(channel, "matrix", channel), "channel", _ROWS, axes=(2,))
    for i in np.flatnonzero(np.abs(rows.sum(axis=1) - 1.0) > _SLACK).tolist():
        raise InputError("channel", f"the row sums to {float(rows[i].sum())!r}", _ROWS, where=i)
    if law.shape[-1] != rows.shape[0]:
        problem = f"shape {law.shape} beside a channel of {rows.shape[0]} inputs"
        raise InputError("prior", problem, remedy)
    law = law / math.fsum(law.ravel().tolist())
    joint = rows * law[:, None] if law.ndim == 1 else law @ rows
    chosen = [each() for each in _EACH] if leakage is None else leakage
    values = by_name(chosen, "leakage").items()
    return {name: measure.total(joint) * measure.unit(units) for name, measure in values}
