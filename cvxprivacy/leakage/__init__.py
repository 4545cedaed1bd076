"""Measures of leakage: what a release may reveal of W, as objective, cap or bound per letter."""

from cvxprivacy.leakage.base import Leakage
from cvxprivacy.leakage.f_information import (
    ChiSquared,
    HockeyStick,
    MutualInformation,
    SquaredHellinger,
    TotalVariation,
)
from cvxprivacy.leakage.gain import Gain, GuessingProbability
from cvxprivacy.leakage.polyhedral import Polyhedral
from cvxprivacy.leakage.sibson import MaximalLeakageOf, Sibson
from cvxprivacy.leakage.smooth import Smooth
from cvxprivacy.leakage.transport import EarthMover

__all__ = [
    "MEASURES",
    "ChiSquared",
    "EarthMover",
    "Gain",
    "GuessingProbability",
    "HockeyStick",
    "Leakage",
    "MaximalLeakageOf",
    "MutualInformation",
    "Polyhedral",
    "Sibson",
    "Smooth",
    "SquaredHellinger",
    "TotalVariation",
]

_ALL = (
    *(MutualInformation, ChiSquared, SquaredHellinger, TotalVariation, HockeyStick),
    *(EarthMover, Gain, GuessingProbability, Sibson, MaximalLeakageOf),
)
MEASURES: dict[str, type[Leakage]] = {measure.__name__: measure for measure in _ALL}
