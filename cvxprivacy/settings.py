"""Numbers of the package's own methods, to be passed to ``solve``.

They say how an optimum is looked for, never what counts as proved: with other numbers a solve is
slower, or its enclosure wider.  Each class tells what its numbers are for, and what set them.

>>> import cvxprivacy as cpv
>>> from cvxprivacy.settings import InteriorPoint
>>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
>>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
>>> problem.solve(settings=InteriorPoint(boundary=0.9)).status
'certified'
"""

from cvxprivacy.solvers.bregman.method import MirrorDescent
from cvxprivacy.solvers.channel import Stages
from cvxprivacy.solvers.covariance.method import CovariancePath
from cvxprivacy.solvers.entries.settings import EntryGeneration
from cvxprivacy.solvers.entry_rows import EntryRows
from cvxprivacy.solvers.interior.settings import InteriorPoint
from cvxprivacy.solvers.sparse_rows import SparseRows
from cvxprivacy.solvers.strategy_generation import StrategyGeneration
from cvxprivacy.solvers.useful import RayGeneration

__all__ = [
    "CovariancePath",
    "EntryGeneration",
    "EntryRows",
    "InteriorPoint",
    "MirrorDescent",
    "RayGeneration",
    "SparseRows",
    "Stages",
    "StrategyGeneration",
]
