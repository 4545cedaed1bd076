"""What a release must satisfy: privacy criteria, and rules of post-randomisation."""

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.postrandomisation import (
    ForbiddenMoves,
    KeepProbability,
    Linear,
    MarginalDistance,
    PreserveMarginal,
    PreserveMean,
)
from cvxprivacy.criteria.privacy import (
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    LeakageCap,
    LocalInformationPrivacy,
    LocalPrivacy,
    MaximalLeakage,
    PerfectPrivacy,
    PerLetter,
    PointwiseMaximalLeakage,
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
    "LocalInformationPrivacy",
    "LocalPrivacy",
    "MarginalDistance",
    "MaximalLeakage",
    "PerLetter",
    "PerfectPrivacy",
    "PointwiseMaximalLeakage",
    "PreserveMarginal",
    "PreserveMean",
    "TCloseness",
]
