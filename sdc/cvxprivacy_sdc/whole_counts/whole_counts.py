r"""The table itself as the variable: whole counts of least distortion, or of least leakage.

.. math::
   \begin{aligned}
   \min_{m}          \quad & Σ\, d(x, x̂)\, m(w, x, x̂),
                              \text{ or } I(W; X̂) \text{ where it is at most } N D \\
   \text{subject to} \quad & Σ_{x̂} m(w, x, x̂) = n(w, x), \quad m \text{ whole} \\
                           & \text{every criterion at } N(w, x̂) = Σ_x m(w, x, x̂) \\
   \text{of encoder x} \quad & |m(w, x, x̂) - n(w, x)\, p(x̂ | x)| < 1
   \end{aligned}

k-anonymity is N(x̂) = 0 or N(x̂) ≥ k.  m/n is a channel of (W, X), so that the certificate of the
convex program over these bounds every table from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion, criteria_listed
from cvxprivacy.criteria.diversity import KAnonymity
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real, typed_most
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.leakage import Leakage, MutualInformation
from cvxprivacy.leakage.base import checked
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy_sdc.whole_counts.problem import TableProblem, smallest_group

__all__ = ["WholeCounts"]


class WholeCounts(TableProblem):
    """min E d(X, X̂), or I(W; X̂) s.t. E d(X, X̂) ≤ D, over whole counts m(w, x, x̂), s.t. criteria.

    The released table has exactly these counts, so that what holds of them holds of it; which
    records of a cell move is chance.

    Encoder x is *blind*: counts are those of a channel of x alone, each rounded up or down, and of
    the roundings that satisfy the criteria chance picks one.  Their distortion is small, and not
    the least; it is proved what no table is below.

    Parameters
    ----------
    source : DiscreteSource
        The table in whole records: ``from_table`` without weights, or ``from_counts``.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂).
    criteria : sequence of Criterion
        What the table must satisfy, ``KAnonymity`` among them; decided of the counts, exactly.
    budget : float, optional
        D ≥ 0, which the mean distortion of the table is not above, as typed: 3 of 10 records are
        within 0.3; then the leakage is minimised.
    leakage : Leakage, optional
        Of a budget: another measure of what is minimised, as of :class:`PrivacyDistortion`.
    encoder : {"x", "wx"}
        What the counts may depend on: x alone, up to a record in each count where criteria or the
        leakage are about W, or w and x.
    units : {"bits", "nats"}
        Of information.

    Attributes
    ----------
    relaxed : MinimumDistortion or PrivacyDistortion
        The convex program whose certificate bounds every table from below: of channels of (W, X),
        where counts may depend on w.
    law : MinimumDistortion or PrivacyDistortion
        That of channels of the encoder, which a blind table rounds.
    smallest_group : int
        k of ``KAnonymity``, else 1.

    Raises
    ------
    InputError
        For a table of no whole records, or a criterion that whole counts do not take.

    Examples
    --------
    Groups of five, of 3, 4 and 10 records: the ten fill up both of the others.

    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> source = cpv.DiscreteSource.from_counts([[1, 3, 6], [2, 1, 4]], x=["a", "b", "c"])
    >>> table = sdc.WholeCounts(source, cpv.hamming(3), [cpv.KAnonymity(5)]).solve()
    >>> table.status, float(table.total), table.groups.tolist()
    ('proved optimal', 3.0, [5, 5, 7])

    No share of a value of W more than 1.25 times, or less than 1/1.25 times, what it was:

    >>> from math import log
    >>> rules = [cpv.DeltaDisclosure(log(1.25))]
    >>> table = sdc.WholeCounts(source, cpv.hamming(3), rules, encoder="wx").solve()
    >>> table.status, float(table.total), table.joint.tolist()
    ('proved optimal', 1.0, [[2.0, 2.0, 6.0], [2.0, 1.0, 4.0]])

    Without looking at W, but for less than a record in each count:

    >>> blind = sdc.WholeCounts(source, cpv.hamming(3), rules).solve(seed=1)
    >>> blind.status, bool(blind.verdicts["delta_disclosure"].holds)
    ('feasible', True)

    One record in six may change, and the groups are to tell as little as they can of W:

    >>> table = sdc.WholeCounts(source, cpv.hamming(3), budget=1 / 6, encoder="wx").solve()
    >>> table.status, float(table.total), round(table.value, 4), table.lower
    ("optimal by the solver's claim", 1.0, 0.003, 0.0)
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        criteria: Sequence[Criterion] = (),
        *,
        budget: Real | None = None,
        leakage: Leakage | str | None = None,
        encoder: str = "x",
        units: str = "bits",
    ) -> None:
        self.source, self.criteria = source, criteria_listed(criteria)
        self.smallest_group = smallest_group(self.criteria)
        rules = [rule for rule in self.criteria if not isinstance(rule, KAnonymity)]
        self.encoder, self.units, self.budget = encoder, units, budget
        if budget is None and leakage is not None:
            problem, remedy = "without a budget the distortion is minimised", "pass budget="
            raise InputError("leakage", problem, remedy)
        how: dict[str, Any] = {"criteria": rules, "units": units}
        program: type[ChannelProblem] = MinimumDistortion
        self.leakage = None
        if budget is not None:
            self.leakage = MutualInformation() if leakage is None else checked(leakage, "leakage")
            how |= {"budget": typed_most(budget), "leakage": self.leakage}
            program = PrivacyDistortion
        self.law = program(source, distortion, encoder=encoder, **how)
        self.relaxed = self.law
        if self.blind:
            self.relaxed = program(source, distortion, encoder="wx", **how)
        self._check()
