"""Measures of leakage: what a release may reveal of W, as objective, cap or bound per letter."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from cvxprivacy.leakage.base import Leakage, Polyhedral, Smooth
from cvxprivacy.leakage.evaluated import divergence, measures
from cvxprivacy.leakage.f_divergence import (
    FInformation,
    JensenShannon,
    PowerDivergence,
    VinczeLeCam,
)
from cvxprivacy.leakage.f_information import (
    ChiSquared,
    HockeyStick,
    MutualInformation,
    SquaredHellinger,
    TotalVariation,
)
from cvxprivacy.leakage.gain import Gain, GuessingProbability
from cvxprivacy.leakage.relative_entropy import RelativeEntropy
from cvxprivacy.leakage.sibson import Maximal, Sibson
from cvxprivacy.leakage.transport import EarthMover

__all__ = [
    "MEASURES",
    "ChiSquared",
    "EarthMover",
    "FInformation",
    "Gain",
    "GuessingProbability",
    "HockeyStick",
    "JensenShannon",
    "Leakage",
    "Maximal",
    "MutualInformation",
    "Polyhedral",
    "PowerDivergence",
    "Sibson",
    "Smooth",
    "SquaredHellinger",
    "TotalVariation",
    "VinczeLeCam",
    "divergence",
    "measures",
]

_ALL = (
    *(MutualInformation, ChiSquared, SquaredHellinger, TotalVariation, HockeyStick),
    *(VinczeLeCam, JensenShannon, PowerDivergence, FInformation),
    *(EarthMover, Gain, GuessingProbability, Sibson, Maximal),
)
MEASURES: dict[str, type[Leakage]] = {measure.__name__: measure for measure in _ALL}


def _exactly(rows: Any) -> Any:
    return [list(map(Fraction, row)) for row in rows]


_BY_KIND: dict[str, Callable[[Any], Leakage]] = {  # of what proofs store of a measure
    "mutual information": lambda data: MutualInformation(),
    "chi-squared": lambda data: ChiSquared(),
    "squared Hellinger": lambda data: SquaredHellinger(),
    "Vincze-Le Cam": lambda data: VinczeLeCam(),
    "Jensen-Shannon": lambda data: JensenShannon(),
    "power divergence": lambda data: PowerDivergence(Fraction(data["order"])),
    "f-information": lambda data: FInformation(_exactly(data["terms"])),
    "hockey-stick": lambda data: HockeyStick(Fraction(data["gamma"])),
    "transport": lambda data: EarthMover(_exactly(data["ground"])),
    "gain": lambda data: Gain(_exactly(data["matrix"])),
    "Sibson": lambda data: Sibson(Fraction(data["order"])),
    "maximal leakage": lambda data: Maximal(),
}


def as_proved(measure: Leakage) -> Leakage:
    """Return what proofs take a measure for, which know one of a user's own by its data alone.

    Parameters
    ----------
    measure : Leakage
        Fitted to the values of W that have mass.
    """
    if type(measure) in (*_ALL, RelativeEntropy):
        return measure
    data = measure.data()
    values = range(len(data.get("ground") or (data.get("matrix") or [()])[0]))
    return _BY_KIND[data["kind"]](data).fitted(values, list(values))
