"""From what is stated to a channel program: constraints, criteria and entry bounds as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from cvxprivacy.additive import dense, times
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, array, rational
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import DENSE, ChannelProgram, IntArray, View
from cvxprivacy.programs.expression import Constraint, Expression, Worst, each_part, parts_of
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess, Rule

__all__ = ["Centre", "Rules", "centre_of", "compiled", "is_centred"]

Program = TypeVar("Program", bound=ChannelProgram)
Rules = Mapping[str, Mapping[str, Rule]]  # what was stated under each name, by names of its parts


def compiled(
    alphabet: Alphabet,
    objective: Expression | Worst,
    rules: Rules,
    terms: Mapping[str, Expression | Worst],
    statement: str,
    kind: type[Program] = ChannelProgram,  # type: ignore[assignment]
    centre: Centre | None = None,
) -> Program:
    """Return the program of an objective under rules, those of the letters alone.

    With ``centre`` it has that letter more: what :func:`centre_of` returns of the same.

    Raises
    ------
    InputError
        If a move must have some probability and is forbidden.
    """
    law = alphabet.law
    if centre is not None:
        law, objective, rules = centre.law, centre.quantity(objective), centre.rules(rules)
        terms = {name: centre.quantity(term) for name, term in terms.items()}
    parts = {name: rule for group in rules.values() for name, rule in group.items()}
    constraints = {name: rule for name, rule in parts.items() if isinstance(rule, Constraint)}
    lower, upper = _entry_bounds(alphabet, list(parts.values()))
    of_parts = {f"distortion of {name}": term for name, term in alphabet.distortions.items()}
    if centre is not None:
        of_parts = {name: centre.expression(term) for name, term in of_parts.items()}
    reported: dict[str, Expression] = {**each_part(terms), **of_parts}
    rows = (row.expression for row in constraints.values())
    expressions = [*parts_of(objective).values(), *rows, *reported.values()]
    views: dict[str, Any] = {
        "W": alphabet.w_view if centre is None else centre.view(alphabet.w_view)
    }
    for expression in expressions:
        if expression.origin not in (None, alphabet.origin):
            problem, remedy = "a quantity of another law", "state it in this problem's own"
            raise InputError("constraint", problem, remedy)
        for name, view in expression.views.items():
            if views.setdefault(name, view) != view:
                problem = f"two different views are called {name!r}"
                raise InputError("constraint", problem, "give their measures other names")
    return kind(
        law=law,
        outputs=alphabet.m,
        views=views,
        objective=objective,
        constraints=constraints,
        lower=lower,
        upper=upper,
        auxiliaries={name: rule for name, rule in parts.items() if isinstance(rule, Auxiliary)},
        terms=reported,
        units=alphabet.units,
        statement=statement,
    )


def centre_of(alphabet: Alphabet, objective: Expression | Worst, rules: Rules) -> Centre | None:
    """Return the letter that is nobody's, where something is compared with it."""
    stated = [objective, *(rule for group in rules.values() for rule in group.values())]
    return Centre(alphabet.law, alphabet.m) if is_centred(stated) else None


def _entry_bounds(alphabet: Alphabet, rules: list[Rule]) -> tuple[Exact | None, Exact | None]:
    bounds = [rule for rule in rules if isinstance(rule, EntryBounds)]
    lowers = [box.lower for box in bounds if box.lower is not None]
    uppers = [box.upper for box in bounds if box.upper is not None]
    lower = np.maximum.reduce(lowers) if lowers else None
    upper = np.minimum.reduce(uppers) if uppers else None
    if lower is not None and upper is not None and (lower > upper).any():
        s, y = (int(i) for i in np.argwhere(lower > upper)[0])
        move = f"{alphabet.source.x[alphabet.x_of[s]]!r} → {alphabet.outputs[y]!r}"
        problem = f"{move} must have probability {float(lower[s, y]):g} and is forbidden"
        raise InputError("criteria", problem, "drop the floor or allow the move")
    return lower, upper


_DOUBLED = 2  # of all mass, the letters have a half


def is_centred(quantities: Iterable[Expression | Worst | Rule]) -> bool:
    """Tell whether some quantity, or rule, is of a relative entropy from the centre."""
    terms = (q.expression if isinstance(q, Constraint) else q for q in quantities)
    parts = (p for q in terms if isinstance(q, Expression | Worst) for p in parts_of(q).values())
    views = (view for part in parts for view in part.views.values())
    return any(isinstance(view, View) and view.measure.centred for view in views)


class Centre:
    r"""What becomes of a program's data with one more letter, whose row of the channel is a law r.

    Whatever the prior π of W, a release tells no more of it than the capacity of W → X̂,

    .. math:: \max_π I_π(W; \hat X) = \min_r \max_w D(p_{\hat X \mid w} \,\|\, r),

    and the right-hand side (A1) is jointly convex in the channel and in r (A2).  With r as the last
    row of the channel it is a channel program: a quantity for each w is the relative entropy of
    what w is released as from that row (:mod:`cvxprivacy.leakage.relative_entropy`).  The letter
    costs nothing, and no other view sees it.  It has as much mass as all others together, so that
    what these cost, and what is seen of them, is to be doubled.  Criteria of each letter hold of
    its row too: at the optimum r is a mixture of rows that satisfy them.

    Parameters
    ----------
    law : (L, n) array
        Masses of the atoms.
    outputs : int
        m.
    """

    def __init__(self, law: FloatArray, outputs: int) -> None:
        if law.shape[1] * outputs > DENSE:
            problem = f"{law.shape[1]:,} letters and {outputs:,} outputs"
            raise InputError("prior", problem, "state it of a coarser key: merge letters")
        masses = _floats(sum(map(Fraction, law.ravel().tolist()), Fraction(0)))
        self.rows = max(len(law), len(masses))  # no one float need be the sum
        self.law = np.zeros((self.rows, law.shape[1] + 1))
        self.law[: len(law), :-1], self.law[: len(masses), -1] = law, masses

    def _labels(self, labels: IntArray, last: int) -> IntArray:
        padded = np.full(self.law.shape, -1, np.int64)
        padded[: len(labels), :-1] = labels
        padded[self.law[:, -1] > 0, -1] = last
        return padded

    def view(self, view: View) -> View:
        """Return what is seen: of r by those alone that compare with it."""
        last = 1 if view.measure.centred else -1
        reference = None if view.reference is None else self._labels(view.reference, last)
        labels = self._labels(view.labels, last)
        return replace(view, labels=labels, reference=reference, scale=view.scale * _DOUBLED)

    def _cost(self, cost: Any) -> Exact:
        costs = dense(cost)
        if costs.ndim == 3 and len(costs) not in (1, self.rows):  # atoms without mass cost nothing
            more = np.zeros((self.rows - len(costs), *costs.shape[1:]))
            costs = np.concatenate([costs, more], axis=0)
        none = np.zeros((*costs.shape[:-2], 1, costs.shape[-1]))
        return array(times(np.concatenate([costs, none], axis=-2), _DOUBLED))

    def expression(self, term: Expression) -> Expression:
        """Return a quantity of the letters, as before."""
        return replace(
            term,
            weights={
                view: times(weight, _DOUBLED) if np.ndim(weight) else rational(weight) * _DOUBLED
                for view, weight in term.weights.items()
            },
            cost=None if term.cost is None else self._cost(term.cost),
            cost_radius=rational(term.cost_radius) * _DOUBLED,
            views={name: self.view(view) for name, view in term.views.items()},
            derivatives={s: self.expression(slope) for s, slope in term.derivatives.items()},
        )

    def quantity(self, quantity: Any) -> Any:
        """Return a quantity, or the worst of several."""
        if isinstance(quantity, Worst):
            return replace(
                quantity, parts={k: self.expression(p) for k, p in quantity.parts.items()}
            )
        return self.expression(quantity)

    def rule(self, rule: Rule) -> Rule:
        """Return a constraint, an auxiliary or entry bounds, as before."""
        if isinstance(rule, Constraint):
            slopes = {s: self.expression(slope) for s, slope in rule.derivatives.items()}
            return replace(rule, expression=self.expression(rule.expression), derivatives=slopes)
        if isinstance(rule, Excess):
            moving = {s: _padded(2.0 * slope, 0.0) for s, slope in rule.moving.items()}
            share = _padded(times(rule.share, _DOUBLED), 0)
            return replace(rule, share=share, moving=moving)
        if isinstance(rule, Auxiliary):
            return rule
        lower = None if rule.lower is None else _padded(rule.lower, 0)
        upper = None if rule.upper is None else _padded(rule.upper, 1)
        return replace(
            rule,
            lower=lower,
            upper=upper,
            derivatives={s: _padded(slope, 0.0) for s, slope in rule.derivatives.items()},
            entry=None if rule.entry is None else _padded(rule.entry, 0),
        )

    def rules(self, rules: Mapping[str, Mapping[str, Rule]]) -> dict[str, dict[str, Rule]]:
        """Return all rules, by the names of groups and parts."""
        return {
            group: {name: self.rule(rule) for name, rule in parts.items()}
            for group, parts in rules.items()
        }


def _padded(table: Any, value: Any) -> Any:
    """Return a table with the centre's row, all of it of one value."""
    values = np.asarray(table)
    if not values.ndim:
        return table
    row = np.full((1, *values.shape[1:]), value, dtype=values.dtype)
    return np.concatenate([values, row], axis=0)


def _floats(number: Fraction) -> list[float]:
    """Return floats of which a number > 0 is the sum, exactly: each the most that is left."""
    parts = []
    while number:
        part = float(number)
        if Fraction(part) > number:  # none is negative
            part = float(np.nextafter(part, 0.0))
        parts.append(part)
        number -= Fraction(part)
    return parts
