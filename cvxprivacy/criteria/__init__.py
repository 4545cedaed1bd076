"""What a release must satisfy: privacy criteria, and rules of post-randomisation."""

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.postrandomisation import (
    ForbiddenMoves,
    KeepProbability,
    Linear,
    PreserveMarginal,
    PreserveMean,
)
from cvxprivacy.criteria.privacy import (
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    LeakageCap,
    LocalPrivacy,
    MaximalLeakage,
    TCloseness,
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
