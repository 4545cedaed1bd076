r"""The least distortion under privacy criteria: the privacy–distortion curve read the other way.

.. math::
   \begin{aligned}
   \min_{p(x̂ | x)}   \quad & E\, d(X, X̂) \\
   \text{subject to} \quad & \text{every criterion, for instance } I(W; X̂) ≤ b
   \end{aligned}

Rebollo-Monedero et al. 2010, §4.4 ("or vice versa").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.formulations.sequel import earlier
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.alphabet import Laws
from cvxprivacy.programs.expression import Minimize
from cvxprivacy.release.channel import Channel

__all__ = ["MinimumDistortion"]


class MinimumDistortion(ChannelProblem):
    """min E d(X, X̂) s.t. the criteria, over p(x̂ | x): Rebollo-Monedero et al. 2010, §4.4.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W and X.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂), which is minimised.
    criteria : sequence of Criterion
        What the release must satisfy; without any nothing is changed that costs.
    encoder : {"x", "wx"}
        What the randomisation sees: X alone, or W and X.
    units : {"bits", "nats"}
        Units of information in the criteria.
    laws : sequence of DiscreteSource, or mapping of names to them, optional
        Further laws under which the criteria hold; the worst distortion is minimised.
    after : Channel, or several, optional
        Of earlier releases of the same records, which the user has, too: leakage and criteria are
        of all of them together; rules of moves, marginals and means are of this one.
    remember : bool
        Whether the randomisation sees what was drawn then, p(x̂ | x, earlier): with the draws at
        hand, else p(x̂ | x).

    Raises
    ------
    InputError
        For anything that does not make a program.

    Examples
    --------
    It is R(D) read the other way: with the leakage capped at R(0.2), the least distortion is 0.2.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> cap = 1 - cpv.information.entropy([0.32, 0.68])  # R(0.2)
    >>> solution = cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.LeakageCap(cap)]).solve()
    >>> round(solution.value, 4)
    0.2

    The price of the cap is the inverse of the slope of R there, 1/0.652 of distortion per bit:

    >>> round(solution.prices["leakage_cap"], 3)
    -1.533
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        criteria: Sequence[Criterion] = (),
        *,
        encoder: str = "x",
        units: str = "bits",
        laws: Laws = None,
        after: Channel | Sequence[Channel] | None = None,
        remember: bool = True,
    ) -> None:
        source, sharing = earlier(source, after, remember, laws)
        options: Any = {"encoder": encoder, "criteria": criteria, "units": units, "laws": laws}
        super().__init__(source, distortion, side_information=sharing, **options)

    def formulation(self) -> Formulation:
        return Minimize(self.distortion), {}  # E d(X, X̂)
