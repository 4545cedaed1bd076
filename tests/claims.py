"""The best claim that the verifier allows a document."""

from __future__ import annotations

import json
import math
from typing import Any

from cvxprivacy_verifier import verify


def claimed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document that claims what it proves, sealed."""
    summary = json.loads(json.dumps(document))
    proved = verify.recompute(summary)
    summary["claim"] = {
        "status": proved["status"],
        "lower": end(proved["lower"]),
        "upper": end(proved["upper"]),
        "terms": {k: [end(x) for x in ends] for k, ends in proved["terms"].items()},
    }
    summary["sha256"] = verify.digest(summary)
    return summary


def end(value: float) -> Any:
    return value if math.isfinite(value) else str(value)
