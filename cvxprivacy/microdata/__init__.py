"""Tables: masking them, what a masked one has lost and reveals, and what its columns reveal."""

from cvxprivacy.microdata.compare import Comparison, compare
from cvxprivacy.microdata.untouched import Leak, untouched

__all__ = ["Comparison", "Leak", "compare", "untouched"]
