"""A released table against the original: every measure, its worst letters, and the verdicts."""

from cvxprivacy.microdata.audit.findings import Leaked, Measure, Verdict
from cvxprivacy.microdata.audit.report import Audit, audit

__all__ = ["Audit", "Leaked", "Measure", "Verdict", "audit"]
