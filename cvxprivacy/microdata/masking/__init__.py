"""Masking methods of statistical disclosure control, as scikit-learn estimators.

``fit_transform`` masks a table.  Noise and PRAM have a ``transform`` too, for further records;
microaggregation and rank swapping have none, as their promise concerns the records they were
fitted on.  Needs scikit-learn (``pip install "cvxprivacy[masking]"``).
"""

from cvxprivacy.microdata.masking.microaggregation import MDAV, HansenMukherjee, MuApprox
from cvxprivacy.microdata.masking.noise import AdditiveNoise, Rescaled, rescale
from cvxprivacy.microdata.masking.pram import PRAM, OptimalPRAM
from cvxprivacy.microdata.masking.swapping import RankSwapping

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
