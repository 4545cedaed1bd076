"""Everything that a problem states, under the names of what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cvxprivacy.criteria.base import Criterion
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.expression import (
    Constraint,
    Expression,
    Worst,
    each_part,
    indexed,
    parts_of,
)
from cvxprivacy.programs.parameter import Parameter, tracing
from cvxprivacy.programs.side_conditions import Rule, renamed

__all__ = ["at", "names_of", "numbers_of", "refuse_untraced", "stated_rules"]


def stated_rules(
    constraints: Mapping[str, Constraint | Mapping[str, Constraint]],
    criteria: Mapping[str, Criterion],
    alphabet: Alphabet | None,
) -> Rules:
    """Return a formulation's constraints, and what states each criterion, by name."""
    rules: dict[str, Mapping[str, Rule]] = {
        name: each_part({name: rows}) for name, rows in constraints.items()
    }
    used = {name for group in rules.values() for name in group}
    for name, criterion in criteria.items():
        group = _parts(name, criterion, alphabet)
        if used & group.keys():
            remedy = "give the rule, or the law, another name"
            problem = f"two constraints are called {min(used & group.keys())!r}"
            raise InputError("criteria", problem, remedy)
        rules[name] = group
        used |= group.keys()
    return rules


def refuse_untraced(
    numbers: Iterable[str], objective: Expression | Worst, constraints: Mapping[str, Constraint]
) -> None:
    """Refuse a number that was typed and leaves no trace: its price would be unknown."""
    places: tuple[Any, ...] = (*parts_of(objective).values(), *constraints.values())
    traced = {symbol.name.split("[")[0] for each in places for symbol in each.derivatives}
    for name in numbers:
        if name not in traced:
            remedy = f"state them with arithmetic of self.{name}, so that its price is known"
            raise InputError(name, "in neither the objective nor a constraint", remedy)


def _parts(name: str, criterion: Criterion, alphabet: Any) -> dict[str, Rule]:
    """Return what states a criterion, its numbers under its name."""
    declared = Parameter.typed(criterion)
    names = {key: name if len(declared) < 2 else f"{name}.{key}" for key in declared or ("p",)}
    names |= {f"p.{key}": f"{name}.{key}" for key in criterion.numbers if key not in declared}
    with tracing():
        rules = {("", k): rule for k, rule in _of_releases(name, criterion, alphabet).items()}
        for law, release in _further(criterion, alphabet).items():
            rows = _under(law, criterion, release).items()
            rules |= {(law, k): row for k, row in rows if row.of_law}
    traced = {symbol.name for rule in rules.values() for symbol in rule.derivatives}
    lost = declared.keys() - traced if rules else set()
    if lost:
        problem = f"{type(criterion).__name__}.{min(lost)} is in none of its constraints"
        remedy = "state them with arithmetic of self.… so that its price is known"
        raise InputError("criteria", problem, remedy)
    return {
        indexed(f"{name}.{k}" if k else name, law): renamed(rule, names)
        for (law, k), rule in rules.items()
    }


def _of_releases(name: str, criterion: Criterion, release: Any) -> Mapping[str, Rule]:
    """Return what states a criterion, after earlier releases of all together.

    One that does not say of which it is speaks of a released letter x̂: as that is (z, x̂), its rows
    of x̂ are stated for each z; sums over all x̂ are sums over all (z, x̂) as they are.
    """
    rules = criterion.constraints(release)
    if criterion.of_releases is not None or getattr(release, "earlier", None) is None:
        return rules
    for rule in rules.values():
        if not isinstance(rule, Constraint) or rule.expression.of_channel:
            problem = f"{name} bounds chances p(x̂ | s) of this release, and not of all together"
            remedy = (
                "state it of release.mass, .leaked or .information; or set of_releases = 'this' in "
                "its class, if it is a rule of this release alone"
            )
            raise InputError("criteria", problem, remedy)
    stated = {key: rule for key, rule in rules.items() if not _per_output(rule)}
    for observer in release.observers if len(stated) < len(rules) else ():
        for key, rule in criterion.constraints(release.with_earlier_letter(observer)).items():
            if _per_output(rule):
                stated[f"{key}|{observer.name}" if key else observer.name] = rule
    return stated


def _per_output(rule: Rule) -> bool:
    return isinstance(rule, Constraint) and rule.per_output


def _under(law: str, criterion: Criterion, release: Any) -> Mapping[str, Rule]:
    """Return what states a criterion under a law, which an error names."""
    try:
        return criterion.constraints(release)
    except InputError as error:
        problem = f"{error.problem}, under {law}"
        where, value = error.where, error.value
        raise InputError(error.argument, problem, error.remedy, where=where, value=value) from None


def _further(criterion: Criterion, alphabet: Any) -> Mapping[str, Any]:
    """Return the alphabet under each law but the first, where a criterion is of each."""
    if not criterion.by_law or not getattr(alphabet, "several", False):
        return {}
    return {law: release for law, release in alphabet.by_law.items() if law}


def at(criteria: Mapping[str, Criterion], name: str, value: Real) -> dict[str, Criterion]:
    """Return these criteria with another number of this name, as prices have it; {} if none is.

    That is the criterion's own name, or ``"name.parameter"`` where it has several numbers.
    """
    if (criterion := criteria.get(name)) is not None:
        if criterion.value is None or np.ndim(criterion.value):
            names = " or ".join(f"{name}.{key}" for key in criterion.numbers)
            remedy = f"use {names or 'the name of a constraint with one number'}"
            raise InputError(name, f"{criterion!r} has no single number", remedy)
        return {**criteria, name: criterion.at(value)}
    owner, _, key = name.rpartition(".")
    criterion = criteria.get(owner)
    if criterion is None or key not in criterion.numbers:
        return {}
    return {**criteria, owner: criterion.with_number(key, value)}


def names_of(rules: Rules, objective: Expression | Worst) -> set[str]:
    """Return the names of rules, of their parts, and of the numbers that were typed."""
    parts = {key for group in rules.values() for key in group}
    return {*rules, *parts, *numbers_of(rules, objective)}


def numbers_of(rules: Rules, objective: Expression | Worst) -> list[str]:
    """Return the names of the numbers that were typed, as prices have them."""
    rows = (rule for group in rules.values() for rule in group.values())
    places: tuple[Any, ...] = (*parts_of(objective).values(), *rows)
    return list(dict.fromkeys(symbol.name for place in places for symbol in place.derivatives))
