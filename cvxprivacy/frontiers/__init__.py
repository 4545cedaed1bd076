"""Whole trade-off curves and surfaces, with a proved band."""

from cvxprivacy.frontiers.frontier import Frontier, Point, frontier

__all__ = ["Frontier", "Point", "frontier"]
