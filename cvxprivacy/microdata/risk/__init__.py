"""Disclosure risk of a masked table: linkage, interval disclosure, leakage, and the score."""

from cvxprivacy.microdata.risk.estimators import Leakage, leakage
from cvxprivacy.microdata.risk.intervals import interval_disclosure, score
from cvxprivacy.microdata.risk.linkage import distance_linkage, probabilistic_linkage

__all__ = [
    "Leakage",
    "distance_linkage",
    "interval_disclosure",
    "leakage",
    "probabilistic_linkage",
    "score",
]
