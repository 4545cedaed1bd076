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
    from cvxprivacy.decoder import Decoder
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
        UnseenValueWarning,
    )
    from cvxprivacy.estimation import Estimate
    from cvxprivacy.formulations import (
        BoxWaterFilling,
        ChannelProblem,
        CovarianceProblem,
        GaussianEquivocation,
        HammingChannel,
        HammingWaterFilling,
        MinimumDistortion,
        PrivacyDistortion,
        QuadraticGaussian,
        RateDistortionEquivocation,
        ReverseWaterFilling,
        closed_gaussian_bound,
    )
    from cvxprivacy.frames import Coding
    from cvxprivacy.frontiers import Frontier, Surface, Sweep, frontier, surface, sweep
    from cvxprivacy.gaussian import GaussianSource
    from cvxprivacy.microdata import (
        Audit,
        Comparison,
        Generalisation,
        Hierarchy,
        audit,
        compare,
        full_domain,
        optimal_intervals,
        price_of_determinism,
        untouched,
    )
    from cvxprivacy.readback import recount
    from cvxprivacy.release import Channel, GaussianRelease
    from cvxprivacy.solution import Enclosure, GaussianSolution, Solution
    from cvxprivacy.sources import DiscreteSource

# Importing CVXPY takes a second or two, so every name is loaded when it is first used.
_HOME = {
    "Audit": "microdata",
    "Bins": "bins",
    "BoxWaterFilling": "formulations",
    "Certificate": "certificates",
    "CertificationError": "errors",
    "Channel": "release",
    "ChannelProblem": "formulations",
    "Coding": "frames",
    "Comparison": "microdata",
    "CovarianceProblem": "formulations",
    "Criterion": "criteria",
    "Decoder": "decoder",
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
    "Generalisation": "microdata",
    "HammingChannel": "formulations",
    "HammingWaterFilling": "formulations",
    "Hierarchy": "microdata",
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
    "RateDistortionEquivocation": "formulations",
    "ReverseWaterFilling": "formulations",
    "Solution": "solution",
    "Surface": "frontiers",
    "Sweep": "frontiers",
    "TCloseness": "criteria",
    "UnknownValueError": "errors",
    "UnseenValueWarning": "errors",
    "absolute_error": "distortion",
    "audit": "microdata",
    "closed_gaussian_bound": "formulations",
    "compare": "microdata",
    "frontier": "frontiers",
    "full_domain": "microdata",
    "hamming": "distortion",
    "hierarchy_distance": "distortion",
    "optimal_intervals": "microdata",
    "ordinal": "distortion",
    "per_attribute": "distortion",
    "price_of_determinism": "microdata",
    "recount": "readback",
    "squared_error": "distortion",
    "surface": "frontiers",
    "sweep": "frontiers",
    "untouched": "microdata",
}
_MODULES = ("datasets", "information", "one_symbol", "plotting", "reference")

__all__ = [
    "Audit",
    "Bins",
    "BoxWaterFilling",
    "Certificate",
    "CertificationError",
    "Channel",
    "ChannelProblem",
    "Coding",
    "Comparison",
    "CovarianceProblem",
    "Criterion",
    "Decoder",
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
    "Generalisation",
    "HammingChannel",
    "HammingWaterFilling",
    "Hierarchy",
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
    "RateDistortionEquivocation",
    "ReverseWaterFilling",
    "Solution",
    "Surface",
    "Sweep",
    "TCloseness",
    "UnknownValueError",
    "UnseenValueWarning",
    "absolute_error",
    "audit",
    "closed_gaussian_bound",
    "compare",
    "datasets",
    "frontier",
    "full_domain",
    "hamming",
    "hierarchy_distance",
    "information",
    "one_symbol",
    "optimal_intervals",
    "ordinal",
    "per_attribute",
    "plotting",
    "price_of_determinism",
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
