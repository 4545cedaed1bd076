"""The papers' programs, one short file each."""

from cvxprivacy.formulations.base import ChannelProblem
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion

__all__ = ["ChannelProblem", "MinimumDistortion", "PrivacyDistortion"]
