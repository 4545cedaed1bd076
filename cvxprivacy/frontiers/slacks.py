"""Every constraint of a program at a release: what it says, its slack and its multiplier.

Each is f(Q) ≤ b with f convex, f(Q) = Σ_y f_y(Q(·, y)) for one that is ``each`` "letter".  So the
slack b − f of a mixture is at least the mixture of the slacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.latex import plain
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess

__all__ = ["at_channel", "at_covariance", "constraints", "finite", "measured"]


def constraints(problem: Any, moving: str = "") -> Iterator[tuple[dict[str, str], Any]]:
    """Yield what is said of each constraint, and what it is, in the order in which they stand.

    The number of the criterion ``moving`` is called by its name.
    """
    if not isinstance(problem, ChannelProblem):
        for name, row in problem._rows.items():
            yield _statement(name, row, _plainly(name, row)), row
        return
    criteria, names = problem._criteria(), problem.alphabet.source.names
    for group, rules in problem.rules.items():
        words = ""
        if group in criteria:
            context = {"w": names[0], "x": names[1], "units": problem.units}
            number = group.replace("_", " ") if group == moving else ""
            words = criteria[group].in_words(number=number, **context).asks
        for name, rule in rules.items():
            for part, bound in _parts(name, rule):
                yield _statement(part, bound, words or _plainly(name, rule)), bound


def _parts(name: str, rule: Any) -> Iterator[tuple[str, Any]]:
    """Yield a constraint; entry bounds are a floor, a cap or both."""
    if not isinstance(rule, EntryBounds):
        yield name, rule
        return
    both = rule.lower is not None and rule.upper is not None
    if rule.lower is not None:
        yield (f"{name}.floor" if both else name), EntryBounds(lower=rule.lower)
    if rule.upper is not None:
        yield (f"{name}.cap" if both else name), EntryBounds(upper=rule.upper)


def _plainly(name: str, rule: Any) -> str:
    if not isinstance(rule, Constraint):
        return name
    sign = {r"\le": "≤", r"\ge": "≥", "=": "="}[rule.relation]
    return f"{plain(rule.expression.latex).replace(' - ', ' − ')} {sign} {name.replace('_', ' ')}"


def _statement(name: str, rule: Any, words: str) -> dict[str, str]:
    each = "release"
    if isinstance(rule, EntryBounds):
        each = "entry"
    elif rule.per_output if isinstance(rule, Constraint) else rule.kind == "ratio":
        each = "letter"
    sense = rule.sense if isinstance(rule, Constraint) else "<="
    return {"name": name, "words": words, "sense": sense, "each": each}


def measured(value: Any, bound: Any, multiplier: Any, kept: Any = None) -> dict[str, Any]:
    """Return a constraint at a release: f(Q) ≤ b, b − f(Q), and its multiplier."""
    slack = np.asarray(bound) - np.asarray(value)
    parts = {"value": value, "bound": bound, "slack": slack, "multiplier": multiplier}
    return {name: finite(part, kept) for name, part in parts.items()}


def finite(values: Any, kept: Any = None) -> Any:
    """Return numbers in lists, None where they are infinite, unknown or not ``kept``."""
    if values is None:
        return None
    if not np.ndim(values):
        return float(values) if math.isfinite(values) else None
    kept = [None] * len(values) if kept is None else kept
    return [
        None if keep is False else finite(value, keep if np.ndim(keep) else None)
        for value, keep in zip(values, kept, strict=True)
    ]


def at_channel(problem: ChannelProblem, solution: Any, channel: FloatArray) -> dict[str, Any]:
    """Return every constraint at a channel."""
    program, duals, rows = problem.program, solution.duals, {}
    for statement, rule in constraints(problem):
        name = statement["name"]
        if isinstance(rule, Constraint):
            value = program.columns(rule.expression, channel)
            if not rule.per_output:
                value = value.sum() + float(rule.expression.constant)
            rows[name] = measured(value, rule.bounds(program.m), duals.get(name))
        elif isinstance(rule, EntryBounds):
            rows[name] = _at_entries(rule, program, duals, channel)
        else:
            rows[name] = _at_auxiliary(rule, program.mass, duals.get(f"{name}.cap"), channel)
    return rows


def _at_entries(
    rule: EntryBounds, program: Any, duals: Mapping[str, Any], channel: FloatArray
) -> dict[str, Any]:
    """Return bounds on entries as −K ≤ −lower or K ≤ upper, where they say anything."""
    sign, stated, effective = (-1, rule.lower, program.lower)
    if rule.lower is None:
        sign, stated, effective = (1, rule.upper, program.upper)
    bound = np.asarray(stated, float)
    multiplier = duals.get("floor" if sign < 0 else "cap")
    if multiplier is not None:
        multiplier = np.where(bound == np.asarray(effective, float), multiplier, 0.0)
    bounding = bound > 0 if sign < 0 else bound < 1
    return measured(sign * channel, sign * bound, multiplier, bounding.tolist())


def _at_auxiliary(
    rule: Auxiliary, mass: FloatArray, cap: Any, channel: FloatArray
) -> dict[str, Any]:
    """Return a bounded auxiliary at a channel.

    Of a ``ratio``: max_s K(s, y) − e^ε min_s K(s, y) ≤ 0 for each y.
    """
    bound = float(rule.bound)
    if isinstance(rule, Excess):
        return measured(np.maximum(rule.exceeded(mass, channel), 0.0).sum(), bound, None)
    top = channel.max(axis=0)
    if rule.kind == "maximum":
        return measured(top.sum(), bound, None)
    return measured(top - bound * channel.min(axis=0), np.zeros(len(top)), None)


def at_covariance(problem: Any, solution: Any, sigma: FloatArray) -> dict[str, Any]:
    """Return every constraint at an error covariance of the encoded variables."""
    program = problem.program
    return {
        name: measured(
            program.value(row.expression, sigma), float(row.bounds(1)), solution.duals.get(name)
        )
        for name, row in program.constraints.items()
    }
