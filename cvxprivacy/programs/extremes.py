"""Least and greatest values that need no solver."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.additive import AdditiveCost, dense
from cvxprivacy.exact import fractions
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Expression, Worst

__all__ = ["greatest_distortion", "least_value"]


def least_value(program: ChannelProgram, expression: Expression | Worst) -> float:
    """Return the least value of a linear quantity over the entry bounds, rounded up.

    Of the worst of several, the greatest of the least of each: no release has less.
    """
    if isinstance(expression, Worst):
        return max(least_value(program, part) for part in expression.parts.values())
    shape, value = (program.n, program.m), Fraction(0)
    masses = fractions(program.law)
    cost = np.zeros(shape) if expression.cost is None else expression.cost
    if isinstance(cost, AdditiveCost) and program.lower is None and program.upper is None:
        return _rounded_up(_least_sum(masses.sum(axis=0), cost) / masses.sum(), expression)
    table = dense(cost)
    low = np.zeros(shape) if program.lower is None else program.lower
    high = np.ones(shape) if program.upper is None else program.upper
    if len(table) != len(masses) or table.ndim == 2:  # one layer for all atoms
        masses, table = masses.sum(axis=0)[None], table.reshape(1, *shape)
    layers = zip(masses, fractions(table), strict=True)
    costs: Any = sum(mass[:, None] * layer for mass, layer in layers)
    for row, floors, most in zip(costs, fractions(low), fractions(high), strict=True):
        value, left = value + row @ floors, 1 - floors.sum()
        for y in np.argsort(row):
            share = min(left, most[y] - floors[y])
            value, left = value + row[y] * share, left - share
            if left <= 0:
                break
    return _rounded_up(value / masses.sum(), expression)


def _least_sum(masses: Any, cost: AdditiveCost) -> Fraction:
    """Return Σ_s p(s) min_y C(s, y)."""
    return Fraction(masses @ np.concatenate([fractions(block) for block in cost.least()]))


def _rounded_up(value: Fraction, expression: Expression) -> float:
    least = value + Fraction(expression.constant)
    near = float(least)
    return near if near >= least else math.nextafter(near, math.inf)


def greatest_distortion(
    program: ChannelProgram, letters: Alphabet, distortion: Expression | Worst
) -> float:
    """Return D_max = min_x̂ E d, from where on a constant is released; one for each z seen.

    Of the worst of several, the least at which one letter does under each.  Infinite where every
    letter is forbidden to some record.
    """
    allowed: Any = np.ones(letters.m, bool)
    if letters.d.forbidden is not None:
        allowed = ~letters.possible(letters.d.forbidden).any(axis=0)
    if isinstance(distortion, Worst):
        each = [program.weighted(part, program.mass) for part in distortion.parts.values()]
        return float(np.max(each, axis=0)[allowed].min(initial=math.inf))
    z = letters.z_of[0] if "z" in letters.encoder_inputs else np.zeros(program.n, int)
    sums = (program.weighted(distortion, (z == each) * program.mass) for each in np.unique(z))
    return float(sum(each[allowed].min(initial=math.inf) for each in sums))
