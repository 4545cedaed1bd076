r"""How much local privacy a channel has of its own: its least ε, and the least δ for each ε.

.. math::
   ε(m) &= \max_{x, x', y} \frac{1}{m(x, x')} \log \frac{p(y | x)}{p(y | x')} \\
   δ(ε) &= \max_{x, x'} \textstyle\sum_y \bigl(p(y | x) - e^{ε\, m(x, x')} p(y | x')\bigr)^+

The curve δ(ε) is the privacy profile of B. Balle, G. Barthe and M. Gaboardi, *Privacy amplification
by subsampling*, NeurIPS 2018, of one who asks a single record.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flint import arb

from cvxprivacy import style
from cvxprivacy.criteria.local_privacy import LocalPrivacy
from cvxprivacy.criteria.ratios import EXPONENT
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, floats, is_sparse, rational
from cvxprivacy.frozen import Frozen
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import numerators
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.validation import axes_of, typed
from cvxprivacy_verifier.balls import ball, ceil, floor, total

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrivacyProfile"]

ULP, TINY = 2.0**-52, 2.0**-1000
PLACES = 201  # at which δ is drawn
FAR = 20.0  # where a picture ends whose ε is infinite


class PrivacyProfile(Frozen):
    """The least ε of a channel, and the least δ(ε): what it keeps of (ε, δ)-local privacy.

    Of every row, whatever the law: those of inputs without mass count too.  What is evaluated are
    the whole numbers that :meth:`Channel.apply` draws by, exactly or in balls, so that no number
    is reported that was not proved.

    Parameters
    ----------
    channel : Channel
        Any channel p(y | x).
    metric : Distortion or array_like, shape (|X|, |X|), optional
        m(x, x') in the order of ``channel.inputs``, as of :class:`LocalPrivacy`; by default 1
        between any two inputs.

    Attributes
    ----------
    epsilon : Enclosure
        The least ε, a natural logarithm (for each unit of distance); infinite where an output is
        possible for one input alone.

    Raises
    ------
    InputError
        For what is no channel, one that is sparse, or what is no metric of its inputs.

    Examples
    --------
    Randomised response that lies with probability ¼ has ε = log 3.  With less than that it holds
    but for a δ, here ¾ − √3/4:

    >>> import cvxprivacy as cpv
    >>> from math import log
    >>> channel = cpv.Channel([[0.75, 0.25], [0.25, 0.75]], inputs="ab", outputs="ab")
    >>> profile = cpv.PrivacyProfile(channel)
    >>> round(profile.epsilon, 6), round(log(3), 6)
    (1.098612, 1.098612)
    >>> [round(profile.delta(epsilon), 4) for epsilon in (0, log(3) / 2, 2)]
    [0.5, 0.317, 0.0]
    """

    def __init__(
        self, channel: Channel, *, metric: Distortion | npt.ArrayLike | None = None
    ) -> None:
        if not isinstance(channel, Channel):
            raise InputError("channel", f"a {type(channel).__name__}", "pass a Channel")
        if is_sparse(channel.matrix):
            problem = "sparse, of over twenty million entries"
            raise InputError("channel", problem, "put letters together")
        self.channel = channel
        self.metric: Any = LocalPrivacy(0, metric=metric).metric
        n = len(channel.inputs)
        if metric is not None and self.metric.shape != (n, n):
            remedy = f"pass one of shape ({n}, {n}), in the order of channel.inputs"
            raise InputError("metric", f"shape {self.metric.shape}", remedy)

    def __repr__(self) -> str:
        return f"PrivacyProfile({self.channel!r}, epsilon {float(self.epsilon):.6g})"

    @cached_property
    def _k(self) -> np.ndarray:
        """What is drawn by, over 2⁵²."""
        return numerators(self.channel.matrix)

    @cached_property
    def _distances(self) -> np.ndarray:
        if self.metric is None:
            return 1.0 - np.eye(len(self._k))
        # what is apart stays apart, though a float be too coarse for it
        return np.where(self.metric != 0, np.maximum(floats(self.metric), TINY), 0.0)

    def _distance(self, i: int, j: int) -> Fraction:
        return Fraction(int(i != j)) if self.metric is None else rational(self.metric[i, j])

    @cached_property
    def epsilon(self) -> Enclosure:
        """The least ε, enclosed."""
        ratios = self._greatest()
        if ratios is None:
            return Enclosure(math.inf, math.inf)
        balls = [ball(Fraction(a, b)).log() / ball(self._distance(i, j)) for a, b, i, j in ratios]
        ends = [(floor(value), ceil(value)) for value in balls]
        return Enclosure(max([0.0, *(low for low, _ in ends)]), max([0.0, *(up for _, up in ends)]))

    @np.errstate(over="ignore", invalid="ignore")
    def _greatest(self) -> list[tuple[int, int, int, int]] | None:
        """Return k, k', x, x' of every ratio that floats cannot tell from the greatest.

        None where a ratio is infinite, or not 1 between inputs at distance 0.
        """
        used = self._k[:, self._k.any(axis=0)]
        if not used.all():
            return None
        logs, best = np.log(used.astype(float)), 0.0
        near: list[tuple[float, int, int, int, int]] = []
        for i, distances in enumerate(self._distances):
            apart = distances > 0
            if (used[~apart] != used[i]).any():
                return None
            others = np.flatnonzero(apart)
            value = (logs[i] - logs[others]) / distances[others, None]
            # each logarithm is below 37, and off by less than 37 ulp; distances by half a one
            off = (100 / distances[others, None] + np.abs(value)) * ULP
            best = max(best, float((value - off).max(initial=0.0)))
            rows, columns = np.nonzero(value + off >= best)
            alike = np.stack([used[i, columns], used[others[rows], columns], others[rows]])
            _, first = np.unique(alike, axis=1, return_index=True)
            upper = (value + off)[rows, columns]
            near += [(float(upper[f]), *alike[:2, f].tolist(), i, int(alike[2, f])) for f in first]
        likely = [ratio for upper, *ratio in near if upper >= best]
        different = {(a, b, self._distances[i, j]): (a, b, i, j) for a, b, i, j in likely}
        return list(different.values())

    def delta(self, epsilon: Real) -> Enclosure:
        """Return the least δ with which the channel is (ε, δ)-private; 0 from its own ε on.

        Parameters
        ----------
        epsilon : number
            ε ≥ 0, a natural logarithm (for each unit of distance).

        Raises
        ------
        InputError
            For a negative or a huge ε.
        """
        limit = typed(epsilon, "epsilon", below=EXPONENT)
        if self.epsilon.upper <= limit:
            return Enclosure(0.0, 0.0)
        k, best, pair = self._k / 2.0**52, -1.0, (0, 0)
        exponents = np.minimum(float(limit) * self._distances, EXPONENT)  # a smaller factor is safe
        for i, factors in enumerate(np.exp(exponents)):
            excess = np.maximum(k[i] - factors[:, None] * k, 0.0).sum(axis=1)
            j = int(excess.argmax())
            if excess[j] > best:
                best, pair = float(excess[j]), (i, j)
        # a term that counts is at most k, so that e^ε is off by (2 + ε m) ulp of it at most, and
        # all k together are 1
        off = (10.0 + float(exponents.max()) + k.shape[1]) * 2 * ULP
        return Enclosure(max(0.0, floor(self._excess(limit, *pair))), min(1.0, best + off))

    def _excess(self, epsilon: Real, i: int, j: int) -> arb:
        """Enclose Σ_y (p(y | x) − e^{ε m} p(y | x'))₊ of a pair."""
        # a factor above 2⁵² leaves nothing of what the other may release, and an infinite one no
        # ball of what it may not
        factor = ball(min(rational(epsilon) * self._distance(i, j), Fraction(EXPONENT))).exp()
        pairs = zip(self._k[i].tolist(), self._k[j].tolist(), strict=True)
        return total((arb(a) - factor * b).max(arb(0)) for a, b in pairs) / 2**52

    def plot(
        self,
        ax: Axes | None = None,
        *,
        most: float | None = None,
        label: str = "",
        color: str | None = None,
    ) -> Axes:
        """Draw δ(ε), from 0 to the channel's own ε.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The current axes by default.
        most : float, optional
            The ε at which the picture ends.
        label : str, optional
            Of the curve, for a legend.
        color : str, optional
            Of the curve; the next one of the axes by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with their labels.
        """
        ax = axes_of(ax)
        end = min(self.epsilon.upper, FAR) if most is None else float(typed(most, "most"))
        fine = np.linspace(0.0, end, PLACES)
        upper = [self.delta(epsilon).upper for epsilon in fine.tolist()]
        ax.plot(fine, upper, lw=style.HOUSE["lines.linewidth"], color=color, label=label or None)
        ax.set(xlabel=r"$\varepsilon$", ylabel=r"least $\delta(\varepsilon)$")
        return ax
