"""Why nothing is feasible: which constraints conflict, and what each could be instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InfeasibleError
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import Rules, is_centred
from cvxprivacy.programs.expression import Constraint, Expression, Worst
from cvxprivacy.programs.extremes import least_value
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds
from cvxprivacy.results.inactive_constraints import is_constant
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.text import above, sufficient
from cvxprivacy_verifier.balls import ball, ceil, floor

__all__ = ["Conflict"]


class _Extreme(NamedTuple):
    """The tightest value that a number could take."""

    value: float
    up: bool  # whether it would have to be that or more
    near: bool  # whether a little tighter might do


class Conflict:
    """A channel program that a certificate proves infeasible.

    Parameters
    ----------
    certificate : Certificate
    alphabet : Alphabet
    rules : mapping
        What was stated under each name.
    criteria : mapping of str to Criterion
    other : callable
        Returns the program with another number in the criterion of a name.
    watch : Watch, optional
        Once it says stop, what each number could be is left out.
    """

    def __init__(
        self,
        certificate: Any,
        alphabet: Alphabet,
        rules: Rules,
        criteria: Mapping[str, Criterion],
        other: Callable[[str, float], ChannelProgram],
        watch: Watch | None = None,
    ) -> None:
        self.certificate, self.program = certificate, certificate.program
        self.alphabet, self.rules, self.criteria, self.other = alphabet, rules, criteria, other
        self.watch, self.clock = watch, watch or Watch()

    def explained(self) -> InfeasibleError:
        """Say in the user's words which constraints conflict, and what each could be."""
        names = self._names()
        extremes = {name: None if self.clock.stopped else self._extreme(name) for name in names}
        rules = list(self.rules[names[0]].values())
        rule = rules[0] if len(names) == len(rules) == 1 else None
        if isinstance(rule, Constraint) and rule.linear and _is_typed(rule):
            message = self._below_least(names[0], rule)
        else:
            message = " and ".join(map(self._as_typed, names)) + " cannot hold"
            message += " together" if len(names) > 1 else ""
            could = [
                f"{name} would have to be {'at least' if up else 'at most'} "
                f"{sufficient(value, up=up, near=near)}"
                for name, (value, up, near) in (
                    (k, e) for k, e in extremes.items() if e is not None
                )
            ]
            message += f"; with the rest as it is, {' or '.join(could)}" if could else ""
        constant = [k for k in names for row in self.rules[k].values() if _is_constant(row)]
        for name in dict.fromkeys(constant):
            message += f"; {name} is the same for every release: for each output, use .each()"
        numbers = {name: extreme.value for name, extreme in extremes.items() if extreme is not None}
        return InfeasibleError(message, self.certificate, conflict=names, extremes=numbers)

    def _names(self) -> list[str]:
        """Return the names of what the contradiction uses."""
        dual, names = self.certificate.dual, []
        boxes = dual.lower_bound(replace(self.program, lower=None, upper=None)) <= 0
        for name, group in self.rules.items():
            for key, rule in group.items():
                if isinstance(rule, EntryBounds):
                    used = boxes
                elif isinstance(rule, Auxiliary):
                    used = any(np.any(np.asarray(x) > 0) for x in dual.auxiliaries[key])
                else:
                    used = bool(np.any(np.asarray(dual.multipliers[key]) != 0))
                if used and name not in names:
                    names.append(name)
        return names

    def _below_least(self, name: str, rule: Constraint) -> str:
        program = self.program
        least = least_value(program, rule.expression)
        alone = program.lower is None and program.upper is None
        return (
            f"{name} {_below(float(rule.bounds(program.m)), least)} is below {above(least)}, "
            f"the least {rule.expression.name} "
            f"{'of any release' if alone else 'that the other rules leave'}"
        )

    def _as_typed(self, name: str) -> str:
        if name in self.criteria:
            return repr(self.criteria[name])
        rule = next(iter(self.rules[name].values()))
        assert isinstance(rule, Constraint)
        return f"{name} {float(_typed(rule)):.6g}"

    def _extreme(self, name: str) -> _Extreme | None:
        """Return the tightest value a number could take given the rest.

        A bound of its own constraint is minimised; other numbers are bisected to three digits.
        """
        group = self.rules[name]
        one = name in group or is_centred(group.values())  # else rows have bounds of their own
        if one and all(map(_is_bound, group.values())):
            return self._least_bound(group)
        criterion = self.criteria.get(name)
        if criterion is None or criterion.loosest is None or criterion.loosens is None:
            return None
        number, up = float(criterion.value), criterion.loosens == "up"
        if not (criterion.loosest > number if up else criterion.loosest < number):
            return None
        return self._bisected(name, number, criterion.loosest)

    def _least_bound(self, group: Mapping[str, Any]) -> _Extreme | None:
        """Return the tightest number in a bound, or in the same one under several laws."""
        rows = {k: row for k, row in self.program.constraints.items() if k not in group}
        rule = next(iter(group.values()))
        over = {k: each.expression + (rule.number - each.number) for k, each in group.items()}
        objective = Worst(over) if len(over) > 1 else rule.expression
        least = self._solved(replace(self.program, objective=objective, constraints=rows))
        if least.primal is None or self.clock.stopped:
            return None
        slope = _slope(rule)
        theta = _typed(rule) + (Fraction(least.upper) - rule.number) / slope
        return _Extreme((ceil if slope > 0 else floor)(ball(theta)) + 0.0, slope > 0, False)

    def _bisected(self, name: str, tight: float, loose: float) -> _Extreme | None:
        if not self._feasible(name, loose):
            return None
        up = loose > tight
        tight = max(tight, 1e-9 * loose) if up and tight >= 0 else tight
        for _ in range(40):
            if min(tight, loose) > 0:
                narrow, middle = abs(math.log(loose / tight)) < 1e-3, math.sqrt(tight * loose)
            else:
                narrow, middle = abs(loose - tight) < 1e-4, (tight + loose) / 2
            if narrow:
                break
            if self._feasible(name, middle):
                loose = middle
            else:
                tight = middle
            if self.clock.stopped:
                return None
        return _Extreme(loose, up, True)

    def _feasible(self, name: str, value: float) -> bool:
        """Tell whether the constraints are feasible with another number in one criterion."""
        idle = replace(self.other(name, value), objective=Expression("nothing"))
        return self._solved(idle).primal is not None

    def _solved(self, program: ChannelProgram) -> Any:
        return solve(program, watch=self.watch).certificate


def _is_constant(rule: Any) -> bool:
    return isinstance(rule, Constraint) and is_constant(rule)


def _is_bound(rule: Any) -> bool:
    """Tell whether a rule is an upper bound that is affine in the number that was typed."""
    return isinstance(rule, Constraint) and rule.sense == "<=" and _is_affine(rule)


def _is_affine(rule: Constraint) -> bool:
    """Tell whether the bound is affine in the number that was typed, and nothing else is."""
    moves = rule.derivatives.items()
    alone = all(not s.function and d.cost is None and not d.weights for s, d in moves)
    return alone and not rule.per_output and len(rule.derivatives) <= 1


def _is_typed(rule: Constraint) -> bool:
    """Tell whether the bound is an upper one, and the number that was typed."""
    return _is_affine(rule) and rule.relation == r"\le" and _typed(rule) == rule.bound


def _slope(rule: Constraint) -> Fraction:
    """Return d bound / d (number typed); 1 for a bound without a name."""
    slopes = [-Fraction(d.constant) for d in rule.derivatives.values() if d.constant]
    return slopes[0] if slopes else Fraction(1)


def _typed(rule: Constraint) -> Fraction:
    """Return the number that was typed into a bound."""
    numbers = [Fraction(s.typed) for s, d in rule.derivatives.items() if d.constant]
    return numbers[0] if numbers else rule.number


def _below(value: float, limit: float) -> str:
    """Return a number to as few digits as are below ``limit``, six at least."""
    texts = (f"{value:.{digits}g}" for digits in range(6, 18))
    return next((text for text in texts if float(text) < limit), repr(value))
