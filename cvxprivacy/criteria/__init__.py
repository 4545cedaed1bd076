"""What a release must satisfy: privacy criteria, and rules of post-randomisation."""

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.criteria.bounded_leakage import (
    ConditionalLeakageCap,
    LeakageCap,
    PerfectPrivacy,
    PerLetter,
    TCloseness,
)
from cvxprivacy.criteria.capacity import CapacityCap
from cvxprivacy.criteria.diversity import KAnonymity, LDiversity, RecordEntropy
from cvxprivacy.criteria.local_privacy import LocalPrivacy
from cvxprivacy.criteria.postrandomisation import (
    ForbiddenMoves,
    KeepProbability,
    Linear,
    MarginalDistance,
    PreserveMarginal,
    PreserveMean,
)
from cvxprivacy.criteria.ratios import (
    DeltaDisclosure,
    LocalInformationPrivacy,
    MaximalLeakage,
    PointwiseMaximalLeakage,
)

__all__ = [
    "CapacityCap",
    "ConditionalLeakageCap",
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
    "RecordEntropy",
    "TCloseness",
]
