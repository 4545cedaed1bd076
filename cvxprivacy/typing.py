"""Classes of what comes back, and types to annotate programs and criteria of one's own with.

``Formulation`` is what :meth:`ChannelProblem.formulation` returns; what
:meth:`Criterion.constraints` returns is a mapping of names to ``Rule``.

>>> from collections.abc import Mapping
>>> import cvxprivacy as cpv
>>> from cvxprivacy.typing import Alphabet, Formulation, Rule
>>> class LeastRate(cpv.ChannelProblem):
...     budget = cpv.Parameter()
...
...     def formulation(self) -> Formulation:
...         return self.rate, {"budget": self.distortion <= self.budget}
>>> class RareOutputs(cpv.Criterion):
...     name = "rare_outputs"
...     share = cpv.Parameter()
...
...     def constraints(self, release: Alphabet) -> Mapping[str, Rule]:
...         return {"": release.mass().each() <= self.share}
>>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
>>> round(LeastRate(source, cpv.hamming(2), 0.2, criteria=[RareOutputs(0.5)]).solve().value, 4)
0.2781
"""

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.frontiers.frontier import Frontier
from cvxprivacy.frontiers.surface import Surface
from cvxprivacy.frontiers.sweep import Sweep
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.expression import Constraint, Expression, Quantity
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Rule
from cvxprivacy.release.channel import CountedChannel, MergedChannel
from cvxprivacy.release.estimation import Estimate
from cvxprivacy.release.hamming import HammingChannel
from cvxprivacy.results.comparison import ChannelComparison
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.informed import Informed
from cvxprivacy.results.price_bounds import Price
from cvxprivacy.results.solution import GaussianSolution, Solution
from cvxprivacy.solvers.watch import Progress

__all__ = [
    "Alphabet",
    "Auxiliary",
    "Certificate",
    "ChannelComparison",
    "Constraint",
    "CountedChannel",
    "Enclosure",
    "EntryBounds",
    "Estimate",
    "Expression",
    "Formulation",
    "Frontier",
    "GaussianSolution",
    "HammingChannel",
    "Informed",
    "MergedChannel",
    "Price",
    "Progress",
    "Quantity",
    "Rule",
    "Solution",
    "Surface",
    "Sweep",
]
