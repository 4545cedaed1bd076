"""From what is stated to a channel program: constraints, criteria and entry bounds as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.centre import Centre, is_centred
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Rule
from cvxprivacy.programs.worst import Worst, each_part, parts_of

__all__ = ["Rules", "centre_of", "compiled"]

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
