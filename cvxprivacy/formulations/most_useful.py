r"""The most useful release under a privacy rule of every letter.

.. math::
   \begin{aligned}
   \max_{p(y | x)} \quad & \sum_y F(p(·, y)) \\
   \text{s.t.}     \quad & \text{each } p(y | ·) \text{ in one polyhedral cone}
   \end{aligned}

F is convex, so that this is no convex program in p(y | x).  But F is homogeneous, too: the columns
p(y | ·) may be split into the extreme rays of the cone at no loss, and weights of rays make a
*linear* program: P. Kairouz, S. Oh and P. Viswanath, *Extremal Mechanisms for Local Differential
Privacy*, JMLR 17 (2016), Theorem 2; for pointwise maximal leakage L. Grosse, S. Saeidian and
T. J. Oechtering, *Extremal Mechanisms for Pointwise Maximal Leakage*, IEEE TIFS 19 (2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.additive import dense
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.formulations.rays import RayProblem
from cvxprivacy.leakage import Leakage, MutualInformation
from cvxprivacy.leakage.base import checked
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.parameter import Parameter

__all__ = ["MostUsefulRelease"]


class MostUsefulRelease(RayProblem):
    """max Σ F about X s.t. rules of every output, and E d(X, X̂) ≤ D if asked, over p(y | x).

    A global optimum of a problem that is not convex, proved at both ends: the release attains the
    lower one, and the upper one holds for every extreme ray of the rules, all of which the verifier
    finds by itself.  It may have any number of outputs; |X| are enough, one more for each budget,
    and ``certify`` takes no more.

    Parameters
    ----------
    source : DiscreteSource
        Joint law of W and X.
    criteria : sequence of Criterion
        Rules of each output by itself: :class:`LocalPrivacy` (also with a metric),
        :class:`PointwiseMaximalLeakage`, :class:`LocalInformationPrivacy`,
        :class:`DeltaDisclosure`, or linear rows ``.each()``.  Under ``LocalPrivacy`` alone there
        are 2ⁿ rays: up to 20 letters all are looked at; up to 100 mutual information, χ² and
        total variation about ``"x"`` are bounded without, and a gap may remain.  Other rules are
        for few values of W.
        A row of all outputs together, such as ``Linear``, may leave the answer ``loose``: it is of
        the outputs as they are, where an optimum may need one of them more than once.
    utility : Leakage or its name, optional
        The measure of what is told: by default mutual information; any of ``cpv.leakage``.
    about : str or sequence of str
        What is useful to know: ``"x"``, ``"w"``, or attributes of W by name.
    distortion : Distortion or array_like, shape (|X|, |X̂|), optional
        d(x, x̂): every output y then stands for one x̂, and is the pair (x̂, number).
    budget : float, optional
        D ≥ 0 of E d(X, X̂).
    units : {"bits", "nats"}
        Of information.

    Raises
    ------
    InputError
        For a rule that is not of every output by itself, such as a cap on all that is leaked: with
        it this is the privacy funnel, of which nobody has a global optimum.

    Examples
    --------
    Of four letters that are equally likely, under ε = log 3: each output keeps one letter (here)
    or two apart from the others, and tells log 4 + (3/w) log(3/w) + (3/w) log(1/w) with w = 6:

    >>> import cvxprivacy as cpv
    >>> from math import log, log2
    >>> source = cpv.DiscreteSource.identical([0.25] * 4)
    >>> problem = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(log(3))])
    >>> solution = problem.solve()
    >>> solution.status, round(solution.value, 6), round(2 + log2(0.5) / 2 + log2(1 / 6) / 2, 6)
    ('certified', 0.207519, 0.207519)
    >>> solution.channel.matrix.round(4).tolist()
    [[0.5, 0.1667, 0.1667, 0.1667], ...]
    """

    budget = Parameter(optional=True)

    def __init__(
        self,
        source: DiscreteSource,
        criteria: Sequence[Criterion],
        *,
        utility: Leakage | str | None = None,
        about: str | Sequence[str] = "x",
        distortion: Distortion | npt.ArrayLike | None = None,
        budget: Real | None = None,
        units: str = "bits",
    ) -> None:
        self.measure = MutualInformation() if utility is None else checked(utility, "utility")
        self.about = _named(about)
        if (distortion is None) != (budget is None):
            raise InputError(
                "budget", "distortion= and budget=, one without the other", "pass both"
            )
        d = _outputs(source, distortion)
        super().__init__(source, d, budget=budget, criteria=criteria, units=units)

    # ---- the program ---------------------------------------------------------------------

    @cached_property
    def utility(self) -> Expression:
        """What is told about ``about``, which is maximised."""
        of = self.alphabet
        if self.about == ("x",):
            utility = of.leaked(self.measure, "S")
        elif self.about == ("w",):
            utility = of.leaked(self.measure)
        else:
            utility = of.leakage_of(self.about, self.measure, "about")
        return utility.named("utility", utility.latex.replace("(S;", "(X;"))

    def quantities(self) -> Mapping[str, Any]:
        spent = {} if self.budget is None else {"distortion": self.distortion}
        return {"utility": self.utility, "risk": self.risk, **spent}

    def formulation(self) -> Formulation:
        constraints = {}
        if self.budget is not None:
            constraints["budget"] = self.distortion <= self.budget
        return self.utility, constraints


def _named(about: Any) -> tuple[str, ...]:
    """Return what is useful to know: "x", "w", or names of attributes."""
    names = (about,) if isinstance(about, str) else about
    listed = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    if not listed or not names:
        remedy = 'pass "x", "w", or names of attributes of W, such as ["sex"]'
        raise InputError("about", repr(about), remedy, value=about)
    return tuple(names)


def _outputs(source: DiscreteSource, distortion: Any) -> Distortion:
    """Return what the outputs stand for: nothing, or letters x̂ as often as an optimum may need."""
    if not isinstance(source, DiscreteSource):
        raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource")
    n = int(np.count_nonzero(source.p_x))
    if distortion is None:
        return Distortion(np.zeros((len(source.x), n)), name="nothing")
    d = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
    if d.cost.ndim != 2:
        raise InputError("distortion", "d(w, x, x̂)", "pass one of x and x̂ alone")
    if d.forbidden is not None:
        remedy = "pass finite numbers: moves are forbidden in PrivacyDistortion alone"
        raise InputError("distortion", "infinite for some moves", remedy)
    outputs = d.outputs or range(d.cost.shape[1])
    pairs = [(label, number) for label in outputs for number in range(n + 1)]
    return Distortion(np.repeat(dense(d.cost), n + 1, axis=1), inputs=d.inputs, outputs=pairs)
