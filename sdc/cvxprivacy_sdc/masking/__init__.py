"""Masking methods of statistical disclosure control, as scikit-learn estimators.

``fit_transform`` masks a table.  Noise and PRAM have a ``transform`` too, for further records;
microaggregation and rank swapping have none, as their promise concerns the records they were
fitted on.
"""

from cvxprivacy_sdc.masking.numeric import (
    MDAV,
    AdditiveNoise,
    HansenMukherjee,
    MuApprox,
    RankSwapping,
    Rescaled,
    rescale,
)
from cvxprivacy_sdc.masking.pram import PRAM, OptimalPRAM

__all__ = [
    "MDAV",
    "PRAM",
    "AdditiveNoise",
    "HansenMukherjee",
    "MuApprox",
    "OptimalPRAM",
    "RankSwapping",
    "Rescaled",
    "rescale",
]
