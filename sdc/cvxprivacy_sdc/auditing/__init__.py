"""A released table against the original: every measure, its worst letters, and the verdicts."""

from cvxprivacy_sdc.auditing.findings import Leaked, Measure, Verdict
from cvxprivacy_sdc.auditing.report import Audit, audit
from cvxprivacy_sdc.auditing.several import Audits, audit_each

__all__ = ["Audit", "Audits", "Leaked", "Measure", "Verdict", "audit", "audit_each"]
