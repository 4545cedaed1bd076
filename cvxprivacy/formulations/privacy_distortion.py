r"""The privacy–distortion function.

.. math::
   \begin{aligned}
   R(D) = \min_{p(x̂ | x)} \quad & I(W; X̂) \\
   \text{subject to}      \quad & E\, d(X, X̂) ≤ D
   \end{aligned}

with W – X – X̂ a Markov chain: Rebollo-Monedero, Forné and Domingo-Ferrer, *From
t-Closeness-Like Privacy to Postrandomization via Information Theory*, IEEE TKDE 22(11), 2010,
eq. (3).  With W = X it is Shannon's rate–distortion function, eq. (5); with a price λ in place
of the budget, the Lagrangian form C = D + λR of §6.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.formulations.sequel import earlier
from cvxprivacy.leakage import Leakage, MutualInformation
from cvxprivacy.leakage.base import checked
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.alphabet import Alphabet, Laws
from cvxprivacy.programs.expression import Minimize
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.release.channel import Channel
from cvxprivacy.validation import one_of

__all__ = ["PrivacyDistortion"]


class PrivacyDistortion(ChannelProblem):
    """min I(W; X̂) s.t. E d(X, X̂) ≤ D, or min E d(X, X̂) + λ I(W; X̂), over p(x̂ | x).

    W – X – X̂ is a Markov chain: R(D) of Rebollo-Monedero et al. 2010, eq. (3); with W = X Shannon's
    rate–distortion function, eq. (5); with a price λ the Lagrangian form C = D + λR of §6.1.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W and X.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂).
    budget : float, optional
        D ≥ 0, in the unit of d.
    price : float, optional
        λ > 0, in units of d per unit of information.  Without budget and price the risk is
        minimised under the criteria alone.
    encoder : {"x", "wx"}
        What the randomisation sees: X alone, or W and X: p(x̂ | w, x).
    criteria : sequence of Criterion
        What the release must satisfy besides; none by default.
    leakage : Leakage or str, optional
        Another measure of risk, in its own unit, such as ``cpv.leakage.ChiSquared()`` or ``"tv"``.
    prior : {"source", "any"}
        What an intruder believes of W: the law of the source, or anything.  Of any prior π the risk
        is the greatest I_π(W; X̂), which is the capacity of W → X̂; the budget is of the source.
    units : {"bits", "nats"}
        Of information: the risk, and the numbers of criteria that bound information.
    laws : sequence of DiscreteSource, or mapping of names to them, optional
        Further laws, such as other years: the worst risk is minimised, and budget and criteria
        hold, under ``source`` and each of these, but not under their mixtures.
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
    W and X are fair bits that differ with probability 0.2.  At D = 0.2 it is best to flip X with
    probability 0.2, so that W and X̂ differ with probability 0.2 · 0.8 + 0.8 · 0.2 = 0.32 and
    R(D) = 1 − h(0.32):

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    >>> solution.status, round(solution.value, 4)
    ('certified', 0.0956)
    >>> round(1 - cpv.information.entropy([0.32, 0.68]), 4)
    0.0956

    The price of the budget is the slope of the curve there:

    >>> round(solution.prices["budget"], 3)
    -0.652

    A second release of the same records, no worse than the first, and of which what was drawn then
    is remembered: it tells nothing more.  Where it is not, both tell 0.145 bits at best.

    >>> again = cpv.PrivacyDistortion(source, cpv.hamming(2), 0.2, after=solution.channel)
    >>> round(again.solve().value, 4)
    0.0956
    >>> anew = cpv.PrivacyDistortion(
    ...     source, cpv.hamming(2), 0.2, after=solution.channel, remember=False
    ... )
    >>> round(anew.solve().value, 3)
    0.145
    """

    budget = Parameter(optional=True)
    price = Parameter(zero=False, optional=True)

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        budget: Real | None = None,
        *,
        price: Real | None = None,
        encoder: str = "x",
        criteria: Sequence[Criterion] = (),
        leakage: Leakage | str | None = None,
        prior: str = "source",
        units: str = "bits",
        laws: Laws = None,
        after: Channel | Sequence[Channel] | None = None,
        remember: bool = True,
    ) -> None:
        self.leakage = MutualInformation() if leakage is None else checked(leakage, "leakage")
        one_of(prior, "prior", "source", "any")
        self.prior = prior
        if self.prior == "any" and not self.leakage.informs:
            remedy = 'use prior="source": leakage.Maximal() is of guesses whatever the prior'
            raise InputError("prior", f"{self.leakage!r} whatever the prior", remedy, value=prior)
        if budget is not None and price is not None:
            raise InputError("budget", "budget and price", "pass exactly one of budget= and price=")
        if budget is None and price is None and not criteria:
            remedy = "pass exactly one of budget= and price=, or criteria= that bound the release"
            raise InputError("budget", "neither budget nor price", remedy)
        options: Any = {"encoder": encoder, "criteria": criteria, "units": units, "laws": laws}
        source, options["side_information"] = earlier(source, after, remember, laws)
        super().__init__(source, distortion, budget=budget, price=price, **options)

    @cached_property
    def risk(self) -> Any:
        """I(W; X̂) in the problem's units, or what is leaked in another measure."""
        if self.prior == "any":
            return self.alphabet.whatever_prior()
        return self.alphabet.under_each_law(lambda of: of.risk_in(self.leakage))

    def quantities(self) -> Mapping[str, Any]:
        under, informs = self.alphabet.under_each_law, self.leakage.informs
        information = {"information": under(Alphabet.information)}
        if self.prior == "any":  # of which the risk is the value
            return {**information, "distortion": self.distortion}
        return {
            "risk": self.risk,
            **({} if informs else information),
            "distortion": self.distortion,
        }

    def formulation(self) -> Formulation:
        if self.price is not None:
            return Minimize(self.distortion + self.price * self.risk), {}  # E d(X, X̂) + λ I(W; X̂)
        constraints = {}
        if self.budget is not None:
            constraints["budget"] = self.distortion <= self.budget  # E d(X, X̂) ≤ D
        return Minimize(self.risk), constraints  # I(W; X̂)
