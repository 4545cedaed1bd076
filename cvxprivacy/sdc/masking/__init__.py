"""Masking methods of statistical disclosure control, as scikit-learn estimators.

``fit_transform`` masks a table.  Noise and PRAM have a ``transform`` too, for further records;
microaggregation and rank swapping have none, as their promise concerns the records they were
fitted on.  Needs scikit-learn (``pip install "cvxprivacy[masking]"``).
"""

from cvxprivacy.extras import required

required("sklearn", "masking", "masking")
from cvxprivacy.sdc.masking.numeric import (  # noqa: E402
    MDAV,
    AdditiveNoise,
    HansenMukherjee,
    MuApprox,
    RankSwapping,
    Rescaled,
    rescale,
)
from cvxprivacy.sdc.masking.pram import PRAM, OptimalPRAM  # noqa: E402

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
