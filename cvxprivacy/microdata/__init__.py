"""Measures of tables: what their columns reveal."""

from cvxprivacy.microdata.untouched import Leak, untouched

__all__ = ["Leak", "untouched"]
