"""What intervals or levels cost, as deterministic releases, against the certified optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cvxprivacy.criteria import Criterion
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.microdata.full_domain import full_domain
from cvxprivacy.microdata.generalisation import Generalisation
from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.microdata.intervals import optimal_intervals
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.solution import Solution

__all__ = ["PriceOfDeterminism", "price_of_determinism"]


@dataclass(frozen=True, eq=False)
class PriceOfDeterminism:
    """The least distortion of intervals or levels, and of all randomisations, under one promise.

    Attributes
    ----------
    deterministic : Generalisation
        The best intervals that satisfy the criteria each by itself, or the best minimal levels.
    randomised : Solution
        The optimum over all p(x̂ | x), proved.
    """

    deterministic: Generalisation
    randomised: Solution

    @property
    def gap(self) -> Enclosure:
        """Distortion that intervals or levels add, enclosed as the optimum is.

        It is the cost of determinism and of their form together: some other grouping may do with
        less.
        """
        cost = self.deterministic.distortion
        assert cost is not None
        return Enclosure(cost - self.randomised.upper, cost - self.randomised.lower)

    def __str__(self) -> str:
        cost, best = self.deterministic.distortion, self.randomised
        assert cost is not None
        share = f" ({self.gap / cost:.1%} of it)" if cost else ""
        kind = "intervals" if self.deterministic.levels is None else "levels"
        return "\n".join(
            [
                "least distortion under " + ", ".join(map(repr, self.deterministic.criteria)),
                f"  {'best ' + kind:<16} {cost:.6g} ({len(self.deterministic.outputs)} groups)",
                f"  {'randomised':<16} {best.value:.6g} ({best.status}, gap {best.gap:.1e})",
                f"  {kind + ' add':<16} {self.gap:.6g}{share}",
            ]
        )


def price_of_determinism(
    source: DiscreteSource,
    distortion: Distortion,
    criteria: Sequence[Criterion],
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    units: str = "bits",
    **solve: Any,
) -> PriceOfDeterminism:
    """Compare the best intervals, or levels, with the best randomisation under the same criteria.

    After the claim of Rebollo-Monedero et al. 2010, that post-randomisation does what no partition
    can: both minimise E d(X, X̂) subject to the same criteria per released letter.  The partitions
    searched are intervals, each satisfying the criteria by itself, or the minimal levels of
    hierarchies; the difference is an upper bound of what determinism alone costs.

    Parameters
    ----------
    source : DiscreteSource
        As of :func:`optimal_intervals`, or with ``hierarchies`` of :func:`full_domain`.
    distortion : Distortion
        d(x, x̂), of which the mean is minimised.
    criteria : sequence of Criterion
        Per letter: ``TCloseness``, ``LDiversity``, ``KAnonymity``, ``DeltaDisclosure``.
    hierarchies : mapping of key column to Hierarchy, optional
        Search their levels (:func:`full_domain`) instead of intervals.
    units : {"bits", "nats"}
        Of information, in the criteria.
    **solve
        Passed to ``MinimumDistortion(…).solve``.

    Returns
    -------
    PriceOfDeterminism
        With ``deterministic``, a :class:`Generalisation`, ``randomised``, a :class:`Solution`, and
        their ``gap`` in distortion.

    Raises
    ------
    InputError
        If no partition satisfies the criteria.

    Examples
    --------
    Four ages of ten persons each, and k = 20.  The best intervals join two ages each, which moves
    every second person by one; a randomisation keeps the same promise for half of that:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[9, 8, 2, 1], [1, 2, 8, 9]])
    >>> measure = cpv.absolute_error([0, 1, 2, 3])
    >>> price = price_of_determinism(source, measure, [cpv.KAnonymity(20)])
    >>> price.deterministic.groups, price.deterministic.distortion
    ([0, 0, 2, 2], 0.5)
    >>> price.randomised.status, round(price.randomised.value, 4), round(price.gap, 4)
    ('certified', 0.2637, 0.2363)
    """
    if hierarchies is None:
        best = optimal_intervals(source, criteria, distortion=distortion, units=units)
    else:
        best = full_domain(source, hierarchies, criteria, distortion=distortion, units=units)
    problem = MinimumDistortion(source, distortion, criteria, units=units)
    return PriceOfDeterminism(best, problem.solve(**solve))
