"""Tables: masking and coarsening them, what a release has lost, and what it still reveals."""

from cvxprivacy.microdata.audit import Audit, audit
from cvxprivacy.microdata.compare import Comparison, Point, compare
from cvxprivacy.microdata.determinism import PriceOfDeterminism, price_of_determinism
from cvxprivacy.microdata.full_domain import full_domain
from cvxprivacy.microdata.generalise import Generalisation, optimal_intervals
from cvxprivacy.microdata.hierarchy import Hierarchy
from cvxprivacy.microdata.untouched import Leak, untouched

__all__ = [
    "Audit",
    "Comparison",
    "Generalisation",
    "Hierarchy",
    "Leak",
    "Point",
    "PriceOfDeterminism",
    "audit",
    "compare",
    "full_domain",
    "optimal_intervals",
    "price_of_determinism",
    "untouched",
]
