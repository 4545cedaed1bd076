"""The papers' programs, one short file each."""

from cvxprivacy.formulations.base import ChannelProblem
from cvxprivacy.formulations.equivocation import RateDistortionEquivocation
from cvxprivacy.formulations.gaussian import GaussianEquivocation, QuadraticGaussian
from cvxprivacy.formulations.gaussian_base import CovarianceProblem
from cvxprivacy.formulations.hamming import HammingWaterFilling
from cvxprivacy.formulations.hamming_channel import HammingChannel
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.formulations.water_filling import (
    BoxWaterFilling,
    ReverseWaterFilling,
    closed_gaussian_bound,
)

__all__ = [
    "BoxWaterFilling",
    "ChannelProblem",
    "CovarianceProblem",
    "GaussianEquivocation",
    "HammingChannel",
    "HammingWaterFilling",
    "MinimumDistortion",
    "PrivacyDistortion",
    "QuadraticGaussian",
    "RateDistortionEquivocation",
    "ReverseWaterFilling",
    "closed_gaussian_bound",
]
