"""A released table against the original: every measure, its worst letters, and the verdicts."""

from cvxprivacy.microdata.audit.findings import Leaked, Measure, Verdict
from cvxprivacy.microdata.audit.report import Audit, audit
from cvxprivacy.microdata.audit.several import Audits, audit_each

__all__ = ["Audit", "Audits", "Leaked", "Measure", "Verdict", "audit", "audit_each"]
