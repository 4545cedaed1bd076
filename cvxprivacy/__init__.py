"""Information-theoretic privacy trade-offs as convex programs with certified optima.

>>> import cvxprivacy as cpv
>>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
>>> cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve().status
'certified'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxprivacy.bins import Bins
    from cvxprivacy.certificates import Certificate
    from cvxprivacy.criteria import (
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
    from cvxprivacy.distortion import (
        Distortion,
        absolute_error,
        hamming,
        hierarchy_distance,
        ordinal,
        per_attribute,
        squared_error,
    )
    from cvxprivacy.errors import (
        CertificationError,
        InfeasibleError,
        InputError,
        UnknownValueError,
    )
    from cvxprivacy.estimation import Estimate
    from cvxprivacy.formulations import (
        BoxWaterFilling,
        ChannelProblem,
        CovarianceProblem,
        GaussianEquivocation,
        MinimumDistortion,
        PrivacyDistortion,
        QuadraticGaussian,
        ReverseWaterFilling,
        closed_gaussian_bound,
    )
    from cvxprivacy.frames import Coding
    from cvxprivacy.frontiers import Frontier, Surface, Sweep, frontier, surface, sweep
    from cvxprivacy.gaussian import GaussianSource
    from cvxprivacy.microdata import untouched
    from cvxprivacy.readback import recount
    from cvxprivacy.release import Channel, GaussianRelease
    from cvxprivacy.solution import Enclosure, GaussianSolution, Solution
    from cvxprivacy.sources import DiscreteSource

# Importing CVXPY takes a second or two, so every name is loaded when it is first used.
_HOME = {
    "Bins": "bins",
    "BoxWaterFilling": "formulations",
    "Certificate": "certificates",
    "CertificationError": "errors",
    "Channel": "release",
    "ChannelProblem": "formulations",
    "Coding": "frames",
    "CovarianceProblem": "formulations",
    "Criterion": "criteria",
    "DeltaDisclosure": "criteria",
    "DiscreteSource": "sources",
    "Distortion": "distortion",
    "Enclosure": "solution",
    "Estimate": "estimation",
    "ForbiddenMoves": "criteria",
    "Frontier": "frontiers",
    "GaussianEquivocation": "formulations",
    "GaussianRelease": "release",
    "GaussianSolution": "solution",
    "GaussianSource": "gaussian",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "KAnonymity": "criteria",
    "KeepProbability": "criteria",
    "LDiversity": "criteria",
    "LeakageCap": "criteria",
    "Linear": "criteria",
    "LocalPrivacy": "criteria",
    "MaximalLeakage": "criteria",
    "MinimumDistortion": "formulations",
    "PreserveMarginal": "criteria",
    "PreserveMean": "criteria",
    "PrivacyDistortion": "formulations",
    "QuadraticGaussian": "formulations",
    "ReverseWaterFilling": "formulations",
    "Solution": "solution",
    "Surface": "frontiers",
    "Sweep": "frontiers",
    "TCloseness": "criteria",
    "UnknownValueError": "errors",
    "absolute_error": "distortion",
    "closed_gaussian_bound": "formulations",
    "frontier": "frontiers",
    "hamming": "distortion",
    "hierarchy_distance": "distortion",
    "ordinal": "distortion",
    "per_attribute": "distortion",
    "recount": "readback",
    "squared_error": "distortion",
    "surface": "frontiers",
    "sweep": "frontiers",
    "untouched": "microdata",
}
_MODULES = ("information", "plotting", "reference")

__all__ = [
    "Bins",
    "BoxWaterFilling",
    "Certificate",
    "CertificationError",
    "Channel",
    "ChannelProblem",
    "Coding",
    "CovarianceProblem",
    "Criterion",
    "DeltaDisclosure",
    "DiscreteSource",
    "Distortion",
    "Enclosure",
    "Estimate",
    "ForbiddenMoves",
    "Frontier",
    "GaussianEquivocation",
    "GaussianRelease",
    "GaussianSolution",
    "GaussianSource",
    "InfeasibleError",
    "InputError",
    "KAnonymity",
    "KeepProbability",
    "LDiversity",
    "LeakageCap",
    "Linear",
    "LocalPrivacy",
    "MaximalLeakage",
    "MinimumDistortion",
    "PreserveMarginal",
    "PreserveMean",
    "PrivacyDistortion",
    "QuadraticGaussian",
    "ReverseWaterFilling",
    "Solution",
    "Surface",
    "Sweep",
    "TCloseness",
    "UnknownValueError",
    "absolute_error",
    "closed_gaussian_bound",
    "frontier",
    "hamming",
    "hierarchy_distance",
    "information",
    "ordinal",
    "per_attribute",
    "plotting",
    "recount",
    "reference",
    "squared_error",
    "surface",
    "sweep",
    "untouched",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("cvxprivacy")
    if name in _MODULES:
        return import_module(f"cvxprivacy.{name}")
    if name in _HOME:
        return getattr(import_module(f"cvxprivacy.{_HOME[name]}"), name)
    raise AttributeError(f"module 'cvxprivacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
