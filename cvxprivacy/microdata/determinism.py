"""What it costs that a release is deterministic, measured against the certified optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cvxprivacy.criteria import Criterion
from cvxprivacy.distortion import Distortion
from cvxprivacy.formulations import MinimumDistortion
from cvxprivacy.microdata.full_domain import full_domain
from cvxprivacy.microdata.generalise import Generalisation, optimal_intervals
from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.solution import Enclosure, Solution
from cvxprivacy.sources import DiscreteSource

__all__ = ["PriceOfDeterminism", "price_of_determinism"]


@dataclass(frozen=True, eq=False)
class PriceOfDeterminism:
    """The least distortion of groupings, and of all randomisations, under one promise.

    Attributes
    ----------
    deterministic : Generalisation
        The best grouping into intervals, or the best levels, exactly.
    randomised : Solution
        The optimum over all p(x̂ | x), proved.
    """

    deterministic: Generalisation
    randomised: Solution

    @property
    def gap(self) -> Enclosure:
        """Distortion that determinism adds, enclosed as the optimum is."""
        cost = self.deterministic.distortion
        assert cost is not None
        return Enclosure(cost - self.randomised.upper, cost - self.randomised.lower)

    def __str__(self) -> str:
        cost, best = self.deterministic.distortion, self.randomised
        assert cost is not None
        share = f" ({self.gap / cost:.1%} of it)" if cost else ""
        return "\n".join(
            [
                "least distortion under " + ", ".join(map(repr, self.deterministic.criteria)),
                f"  deterministic    {cost:.6g} (exact, {len(self.deterministic.outputs)} groups)",
                f"  randomised       {best.value:.6g} ({best.status}, gap {best.gap:.1e})",
                f"  determinism adds {self.gap:.6g}{share}",
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
    """Compare the best deterministic release with the best randomisation under the same criteria.

    The claim of Rebollo-Monedero et al. 2010, that post-randomisation does what no partition can,
    made measurable: both minimise E d(X, X̂) subject to the same criteria per released letter.

    Parameters
    ----------
    source, distortion, criteria, units : as in :func:`optimal_intervals`
    hierarchies : mapping of key column to Hierarchy, optional
        Search their levels (:func:`full_domain`) instead of intervals.
    **solve
        Passed to ``MinimumDistortion(…).solve``.
    """
    if hierarchies is None:
        best = optimal_intervals(source, criteria, distortion=distortion, units=units)
    else:
        best = full_domain(source, hierarchies, criteria, distortion=distortion, units=units)
    problem = MinimumDistortion(source, distortion, criteria, units=units)
    return PriceOfDeterminism(best, problem.solve(**solve))
