"""What a release must satisfy: privacy criteria, and rules of post-randomisation."""

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.privacy import (
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    LeakageCap,
    LocalPrivacy,
    MaximalLeakage,
    TCloseness,
)
from cvxprivacy.criteria.release_rules import (
    ForbiddenMoves,
    KeepProbability,
    Linear,
    PreserveMarginal,
    PreserveMean,
)

__all__ = [
    "Criterion",
    "DeltaDisclosure",
    "ForbiddenMoves",
    "KAnonymity",
    "KeepProbability",
    "LDiversity",
    "LeakageCap",
    "Linear",
    "LocalPrivacy",
    "MaximalLeakage",
    "PreserveMarginal",
    "PreserveMean",
    "TCloseness",
]
