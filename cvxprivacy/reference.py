"""Reference algorithms, for figures and tests only: nothing here is certified.

* Blahut–Arimoto for W = X (Cover and Thomas 2006, §10.8), which Rebollo-Monedero et al. 2010
  name in §4.5;
* the projected steepest descent of Rebollo-Monedero et al. 2010, §6.1.

Both work in nats and in probabilities, and stop where they are told to.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError

__all__ = ["blahut_arimoto", "mixture_of_trivial_rules", "projected_descent"]


def blahut_arimoto(
    pmf: npt.ArrayLike, distortion: npt.ArrayLike, slope: float, *, iterations: int = 10_000
) -> tuple[float, float, np.ndarray]:
    """Return (R, D, p(x̂ | x)) on Shannon's rate–distortion curve where −dR/dD = slope, in nats.

    Parameters
    ----------
    pmf : array_like, shape (|X|,)
    distortion : array_like, shape (|X|, |X̂|)
    slope : float
        Nats per unit of distortion, > 0.
    iterations : int
        Alternations at most; they stop when the output law moves by less than 1e-15.
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
    price : float
        λ.
    start : array_like, shape (|X|, |X̂|)
        Row-stochastic.
    iterations, step
        The paper's are the defaults.
    exact : bool
        Project each row onto the simplex instead, to its nearest point.
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
    seen, q = joint @ channel, p_x @ channel
    on = seen > 0
    ratio = np.where(on, seen, 1.0) / np.where(on, p_w[:, None] * q, 1.0)
    risk = float((np.where(on, seen, 0.0) * np.log(ratio)).sum())
    return risk, float((p_x[:, None] * channel * d).sum()), channel
