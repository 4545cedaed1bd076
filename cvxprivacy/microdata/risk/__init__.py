"""Disclosure risk: of records, of a masked table, and of a release in its population."""

from cvxprivacy.microdata.risk.estimators import Leakage, leakage
from cvxprivacy.microdata.risk.individual import IndividualRisk, individual_risk
from cvxprivacy.microdata.risk.intervals import interval_disclosure, score
from cvxprivacy.microdata.risk.linkage import distance_linkage, probabilistic_linkage
from cvxprivacy.microdata.risk.population import Bound, population_bounds

__all__ = [
    "Bound",
    "IndividualRisk",
    "Leakage",
    "distance_linkage",
    "individual_risk",
    "interval_disclosure",
    "leakage",
    "population_bounds",
    "probabilistic_linkage",
    "score",
]
