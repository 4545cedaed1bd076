"""Information loss: what a masked table has lost, as the literature measures it."""

from cvxprivacy.microdata.loss.categorical import CategoricalLoss, categorical_loss
from cvxprivacy.microdata.loss.probabilistic import ProbabilisticLoss, probabilistic_loss
from cvxprivacy.microdata.loss.unbounded import InformationLoss, information_loss

__all__ = [
    "CategoricalLoss",
    "InformationLoss",
    "ProbabilisticLoss",
    "categorical_loss",
    "information_loss",
    "probabilistic_loss",
]
