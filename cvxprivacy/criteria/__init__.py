"""What a release must satisfy: privacy criteria, and rules of post-randomisation."""

from cvxprivacy.criteria.privacy import (
    Criterion,
    DeltaDisclosure,
    ForbiddenMoves,
    KAnonymity,
    KeepProbability,
    LDiversity,
    LeakageCap,
    Linear,
    LocalPrivacy,
    MaximalLeakage,
    PreserveMarginal,
    PreserveMean,
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
