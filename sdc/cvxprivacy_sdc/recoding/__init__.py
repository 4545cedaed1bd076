"""Coarser keys: hierarchies, intervals, and the best of them."""
