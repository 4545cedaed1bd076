"""Measures of tables: what their columns reveal, what a release guarantees, how to coarsen."""

from cvxprivacy.microdata.audit import Audit, audit
from cvxprivacy.microdata.determinism import PriceOfDeterminism, price_of_determinism
from cvxprivacy.microdata.full_domain import full_domain
from cvxprivacy.microdata.generalise import Generalisation, optimal_intervals
from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.microdata.untouched import Leak, untouched

__all__ = [
    "Audit",
    "Generalisation",
    "Hierarchy",
    "Leak",
    "PriceOfDeterminism",
    "audit",
    "full_domain",
    "optimal_intervals",
    "price_of_determinism",
    "untouched",
]
