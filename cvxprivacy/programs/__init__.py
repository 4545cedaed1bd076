"""The canonical programs as plain data."""

from cvxprivacy.programs.channel import (
    Auxiliary,
    ChannelProgram,
    Dual,
    EntryBounds,
    Minimize,
    Part,
    Row,
    Term,
    View,
)
from cvxprivacy.programs.covariance import (
    CovarianceDual,
    CovarianceProgram,
    ErrorCovariance,
    GaussianView,
)
from cvxprivacy.programs.hamming import HammingDual, HammingProgram, WaterLevel

__all__ = [
    "Auxiliary",
    "ChannelProgram",
    "CovarianceDual",
    "CovarianceProgram",
    "Dual",
    "EntryBounds",
    "ErrorCovariance",
    "GaussianView",
    "HammingDual",
    "HammingProgram",
    "Minimize",
    "Part",
    "Row",
    "Term",
    "View",
    "WaterLevel",
]
