"""Randomisations, and what applies them to tables."""
