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

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.several import Laws
from cvxprivacy.programs.expression import Minimize

__all__ = ["MinimumDistortion"]


class MinimumDistortion(ChannelProblem):
    """min E d(X, X̂) s.t. the criteria, over p(x̂ | x).

    Parameters
    ----------
    source : DiscreteSource
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
    criteria : sequence of Criterion
        What the release must satisfy.
    encoder : {"x", "wx"}
    units : {"bits", "nats"}
        Units of information in the criteria.
    laws : sequence of DiscreteSource, or mapping of names to them, optional
        Further laws under which the criteria hold; the worst distortion is minimised.
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        criteria: Sequence[Criterion],
        *,
        encoder: str = "x",
        units: str = "bits",
        laws: Laws = None,
    ) -> None:
        super().__init__(
            source, distortion, encoder=encoder, criteria=criteria, units=units, laws=laws
        )

    def formulation(self) -> Formulation:
        return Minimize(self.distortion), {}  # E d(X, X̂)
