"""Disclosure risk of a masked table: linkage, interval disclosure, leakage, and the score."""

from cvxprivacy.microdata.risk.estimators import Leakage, leakage
from cvxprivacy.microdata.risk.intervals import interval_disclosure, score
from cvxprivacy.microdata.risk.linkage import distance_linkage, probabilistic_linkage
from cvxprivacy.microdata.risk.population import Bound, population_bounds

__all__ = [
    "Bound",
    "Leakage",
    "distance_linkage",
    "interval_disclosure",
    "leakage",
    "population_bounds",
    "probabilistic_linkage",
    "score",
]
