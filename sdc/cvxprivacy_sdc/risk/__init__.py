"""Disclosure risk: of records, of a masked table, and of a release in its population."""

from cvxprivacy_sdc.risk.estimators import EstimatedLeakage, estimated_leakage
from cvxprivacy_sdc.risk.individual import IndividualRisk, individual_risk
from cvxprivacy_sdc.risk.linkage import (
    distance_linkage,
    interval_disclosure,
    probabilistic_linkage,
    score,
)
from cvxprivacy_sdc.risk.population import Bound, population_bounds
from cvxprivacy_sdc.risk.uniqueness import PopulationUniqueness, population_uniqueness

__all__ = [
    "Bound",
    "EstimatedLeakage",
    "IndividualRisk",
    "PopulationUniqueness",
    "distance_linkage",
    "estimated_leakage",
    "individual_risk",
    "interval_disclosure",
    "population_bounds",
    "population_uniqueness",
    "probabilistic_linkage",
    "score",
]
