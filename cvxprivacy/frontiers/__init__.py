"""Whole trade-off curves and surfaces, with a proved band."""
