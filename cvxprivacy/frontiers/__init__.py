"""Whole trade-off curves and surfaces, with a proved band."""

from cvxprivacy.frontiers.frontier import Frontier
from cvxprivacy.frontiers.point import Point
from cvxprivacy.frontiers.surface import Membership, Surface, surface
from cvxprivacy.frontiers.sweep import Sweep, frontier, sweep

__all__ = [
    "Frontier",
    "Membership",
    "Point",
    "Surface",
    "Sweep",
    "frontier",
    "surface",
    "sweep",
]
