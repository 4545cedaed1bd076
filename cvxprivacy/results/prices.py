"""Prices: d value / d (number typed), from multipliers and derivatives of what they multiply."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.parameter import Symbol
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds

__all__ = ["prices"]


def prices(
    program: ChannelProgram,
    rules: Rules,
    channel: np.ndarray,
    dual: Dual,
    floors: np.ndarray,
    edges: Collection[str] = (),
) -> dict[str, Any]:
    """Return the price of every number typed: ∂f/∂θ + Σ_j λ_j ∂g_j/∂θ.

    Parameters
    ----------
    floors : ndarray, shape of the channel
        Multipliers of the lower bounds on the entries, each times the mass of its row.
    edges : collection of str
        Constraints whose bounds are the least that is feasible: tightening them costs ∞.
    """
    amounts: dict[str, Any] = {}

    def add(symbol: Symbol, marginal: Any) -> None:
        amounts[symbol.name] = amounts.get(symbol.name, 0.0) + symbol.slope * marginal

    for name, rule in ((k, r) for group in rules.values() for k, r in group.items()):
        derivative: Any
        for symbol, derivative in rule.derivatives.items():
            if isinstance(rule, Constraint):
                columns = program.columns(derivative, channel) + float(derivative.constant) / (
                    1 if rule.per_output else program.m
                )
                if name in edges:
                    add(symbol, math.copysign(math.inf, columns.sum()))
                else:
                    multiplier = np.asarray(dual.multipliers[name], dtype=float)
                    add(symbol, float((multiplier * columns).sum()))
            elif isinstance(rule, Auxiliary):
                marginal = rule.marginal(dual.auxiliaries[name], program.mass, channel)
                add(symbol, derivative * marginal)
            else:
                add(symbol, _of_floors(program, rule, derivative, floors, symbol.typed))
    for share, part in dual.weighed(program):
        for symbol, derivative in part.derivatives.items():
            add(symbol, share * program.value(derivative, channel))
    return {name: amount + 0.0 for name, amount in amounts.items()}


def _of_floors(
    program: ChannelProgram, rule: EntryBounds, derivative: Any, floors: np.ndarray, typed: Any
) -> Any:
    """Return d value / d floor; ∞ in a full row, where any more is infeasible."""
    assert program.lower is not None
    own = (rule.lower == program.lower) * derivative
    full = program.lower.sum(axis=1, keepdims=True) >= 1.0
    binding = np.where(full & (own > 0), math.inf, own * floors).sum(axis=1)
    if rule.entry is None:
        return float(binding.sum())
    prices = np.zeros(np.shape(typed))
    np.add.at(prices, rule.entry, binding)
    return prices
