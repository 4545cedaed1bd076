r"""The table itself as the variable: whole counts of least distortion.

.. math::
   \begin{aligned}
   \min_{m}          \quad & Σ\, d(x, x̂)\, m(w, x, x̂) \\
   \text{subject to} \quad & Σ_{x̂} m(w, x, x̂) = n(w, x), \quad m \text{ whole} \\
                           & \text{every criterion at } N(w, x̂) = Σ_x m(w, x, x̂) \\
                           & N(x̂) = 0 \text{ or } N(x̂) ≥ k
   \end{aligned}

m/n is a channel, so that the convex program's certificate bounds every table from below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.table import TableProblem
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.validation import integer

__all__ = ["WholeCounts"]


class WholeCounts(TableProblem):
    """min E d(X, X̂) over whole counts m(w, x, x̂), s.t. criteria and a least group size.

    The released table has exactly these counts, so that what holds of them holds of it; which
    records of a cell move is chance.

    Parameters
    ----------
    source : DiscreteSource
        The table in whole records: ``from_table`` without weights, or ``from_counts``.
    distortion : Distortion or array_like, shape (|X|, |X̂|) or (|W|, |X|, |X̂|)
        d(x, x̂) or d(w, x, x̂).
    criteria : sequence of Criterion
        What the table must satisfy; decided of the counts, exactly.
    smallest_group : int
        k: a released value has no records, or k of them at least.
    encoder : {"x", "wx"}
        What the counts may depend on: x alone, where no criterion is about W, or w and x.
    units : {"bits", "nats"}
        Of information.

    Attributes
    ----------
    relaxed : MinimumDistortion
        The convex program over all channels, whose certificate bounds every table from below.

    Raises
    ------
    InputError
        For a table of no whole records, or a criterion that whole counts do not take.

    Examples
    --------
    Groups of five, of 3, 4 and 10 records: the ten fill up both of the others.

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[1, 3, 6], [2, 1, 4]], x=["a", "b", "c"])
    >>> table = cpv.WholeCounts(source, cpv.hamming(3), smallest_group=5).solve()
    >>> table.status, float(table.total), table.groups.tolist()
    ('proved optimal', 3.0, [5, 5, 7])

    No share of a value of W more than 1.25 times, or less than 1/1.25 times, what it was:

    >>> from math import log
    >>> rules = [cpv.DeltaDisclosure(log(1.25))]
    >>> table = cpv.WholeCounts(source, cpv.hamming(3), rules, encoder="wx").solve()
    >>> table.status, float(table.total), table.joint.tolist()
    ('proved optimal', 1.0, [[2.0, 2.0, 6.0], [2.0, 1.0, 4.0]])
    """

    def __init__(
        self,
        source: DiscreteSource,
        distortion: Distortion | npt.ArrayLike,
        criteria: Sequence[Criterion] = (),
        *,
        smallest_group: int = 1,
        encoder: str = "x",
        units: str = "bits",
    ) -> None:
        self.relaxed = MinimumDistortion(source, distortion, criteria, encoder=encoder, units=units)
        self.source, self.criteria = source, self.relaxed.criteria
        self.smallest_group = integer(smallest_group, "smallest_group", least=1)
        self.encoder, self.units = encoder, units
        self._check()
