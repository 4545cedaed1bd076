r"""What a picture of a frontier needs, as JSON: solved releases in floats, without their proofs.

One document holds the problem in words, its law, every solved point with its release, and the
corners of the inner curve, so that a page can draw the frontier and mix releases between solved
points as :meth:`~cvxprivacy.frontiers.frontier.Frontier.release_at` does.  ``schema.json``, which
lies beside this file, says what is in it.  Channels, laws and multipliers are rounded to doubles:
the proofs are in what :meth:`~cvxprivacy.frontiers.frontier.Frontier.save` writes.

Each constraint is f(Q) ≤ b with f convex, f(Q) = Σ_y f_y(Q(·, y)) for one that is ``each``
"letter".  So the slack b − f of a mixture is at least the mixture of the slacks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, Real
from cvxprivacy.formulations.categorical import CategoricalProblem
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.frontiers.curve import CONCAVE, CONVEX, Breakpoint, Convex, Curve
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.point import Point
from cvxprivacy.programs.expression import Constraint, each_part, first_part
from cvxprivacy.programs.latex_symbols import ROW, aligned, plain, tex, upright
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess
from cvxprivacy.text import in_place
from cvxprivacy.validation import typed

__all__ = [
    "SCHEMA",
    "at_channel",
    "at_covariance",
    "categorical_document",
    "constraints",
    "document",
    "finite",
    "measured",
]

SCHEMA = "cvxprivacy frontier picture 1"
PLACES = 121  # at which a reference curve is drawn
WORDS = ("parameter", "unit", "value", "price")

References = Mapping[str, Callable[[float], float]]


def document(
    facts: Mapping[str, Any],
    curve: Curve,
    points: Sequence[Point],
    family: ParametricProblem,
    *,
    title: str = "",
    words: Mapping[str, str] | None = None,
    references: References | None = None,
) -> dict[str, Any]:
    """Return the picture of a frontier; arguments as of ``Frontier.to_json``.

    Raises
    ------
    InputError
        For what a picture does not show: an encoder of (W, X), side information, several laws.
    """
    if not points:
        raise InputError("points", "none is solved", "solve further")
    if facts["kind"] == CONCAVE:
        remedy = "use save(), which keeps all, or the frontier of a bound"
        raise InputError("parameter", "a weight, whose curve no page mixes", remedy)
    problem = family.at(points[0].x)
    _refuse_unshown(problem)
    discrete = isinstance(problem, ChannelProblem)
    parameter = str(facts["parameter"])
    latex = _with_name(problem, parameter)
    head = {
        **_head(title or f"{facts['title']} over {parameter}", problem, parameter, latex),
        "kind": facts["kind"],
        "falling": facts["falling"],
        "objective": _objective(problem),
        "words": _words(words, facts, plain(facts["ordinate"])),
        "model": _channel_model(problem) if discrete else _gaussian_model(problem),
        "constraints": [stated for stated, _ in constraints(problem, parameter)],
    }
    pairs = zip(curve.breakpoints, points, strict=True)
    shown = [_point(at, point, family.at(point.x)) for at, point in pairs]
    return {
        **head,
        "points": shown,
        "corners": _corners(curve),
        "references": _references(references, [p["x"] for p in shown if p["upper"] is not None]),
    }


def categorical_document(
    problem: CategoricalProblem,
    points: Iterable[Real],
    *,
    title: str = "",
    words: Mapping[str, str] | None = None,
    references: References | None = None,
) -> dict[str, Any]:
    """Return the picture of a water level: ``problem.at(budget=…)`` solved in closed form.

    A :class:`~cvxprivacy.HammingWaterFilling` has no frontier, as its optimum is known for every
    budget.  Each point is proved by itself, and its line as a frontier's: at level λ the bound is
    affine in the budget, with slope −log((1 − D)/λ).

    Parameters
    ----------
    points : sequence of number
        Budgets, 0 < D.
    title, words, references
        As of ``Frontier.to_json``.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> problem = cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.1)
    >>> picture = categorical_document(problem, [0.1, 0.3, 0.5])
    >>> [round(point["level"], 3) for point in picture["points"]]
    [0.05, 0.15, 0.5]
    """
    budgets = sorted({typed(x, "points", zero=False, where=i) for i, x in enumerate(points)})
    if not budgets:
        raise InputError("points", "no number", "pass at least one")
    shown: list[dict[str, Any]] = []
    corners = []
    for i, budget in enumerate(budgets):
        solution = problem.at(budget=budget).solve()
        x, slope = float(budget), -float(solution.unproved_prices["budget"])
        shown.append({
            "x": x,
            "bound": x,
            "lower": solution.lower,
            "upper": solution.upper,
            "status": solution.status,
            "price": -slope + 0.0,
            "slope": slope,
            "terms": {name: [t.lower, t.upper] for name, t in solution.terms.items()},
            "constraints": {"budget": measured(float(solution.distortion), x, slope)},
            "level": float(solution.release.level),
        })  # fmt: skip
        corners.append({"x": x, "bound": x, "point": i})
    latex = aligned(r"p(\hat x \mid x)", r"I(X; \hat X)", [r"\Pr(X \ne \hat X) \le \text{budget}"])
    facts = {"parameter": "budget", "falling": False, "unit": problem.units, "units": problem.units}
    constraint = {"name": "budget", "words": "Pr(X ≠ X̂) ≤ budget", "sense": "<=", "each": "release"}
    return {
        **_head(title or "HammingWaterFilling over budget", problem, "budget", latex),
        "kind": CONVEX,
        "falling": False,
        "objective": "rate",
        "words": _words(words, facts, "I(X; X̂)"),
        "model": {
            "kind": "categorical",
            "names": {"w": "X", "x": "X"},
            "x": _labels(problem.x),
            "pmf": (problem.law / float(problem.total)).tolist(),
        },
        "constraints": [constraint],
        "points": shown,
        "corners": corners,
        "references": _references(references, [point["x"] for point in shown]),
    }


# ---- the problem ---------------------------------------------------------------------------


def _head(title: str, problem: Any, parameter: str, latex: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "title": title,
        "program": type(problem).__name__,
        "parameter": parameter,
        "latex": latex,
        "units": problem.units,
    }


def _with_name(problem: Any, parameter: str) -> str:
    """Return the program in LaTeX, with the name of the number that moves in its place."""
    objective, *rows = str(problem.latex).split(ROW)
    discrete = isinstance(problem, ChannelProblem)
    criteria = problem._criteria() if discrete else {}
    stated = each_part(problem._formulated[1]) if discrete else problem._rows
    place = [*stated, *criteria].index(parameter)
    left, relation, right = re.split(r"(\\[lg]e )", rows[place], maxsplit=1)
    name = upright(parameter.replace("_", " "))
    if parameter in criteria:
        name = in_place(right, tex(float(criteria[parameter].value)), name)
    return ROW.join([objective, *rows[:place], left + relation + name, *rows[place + 1 :]])


def _refuse_unshown(problem: Any) -> None:
    """Refuse problems whose releases are no p(x̂ | x) under one law."""
    remedy = "a picture shows releases p(x̂ | x) under one law: use save(), which keeps all"
    if problem.encoder != "x":
        raise InputError("encoder", f"{problem.encoder!r}", remedy, value=problem.encoder)
    held = problem.side_information if isinstance(problem, ChannelProblem) else problem.given
    if held:
        raise InputError("side_information", f"{held!r}", remedy, value=held)
    if isinstance(problem, ChannelProblem) and problem.program.centred:
        raise InputError("prior", "what is told to any prior", remedy)
    if isinstance(problem, ChannelProblem) and problem.alphabet.several:
        count = len(problem.alphabet.laws)
        raise InputError("laws", f"{count} laws", remedy, value=count)


def _objective(problem: Any) -> str:
    """Return which quantity is minimised, where a page can compute it from law and release."""
    objective = first_part(problem._formulated[0])
    informs = all(getattr(view, "informs", True) for view in objective.views.values())
    computed = {"risk": "risk", "leakage": "risk", "rate": "rate", "distortion": "distortion"}
    return computed.get(objective.name, "other") if informs and not objective.constant else "other"


def _words(words: Mapping[str, str] | None, facts: Mapping[str, Any], value: str) -> dict[str, str]:
    """Return what the axes and the price are called."""
    typed = dict(words or {})
    for name, text in typed.items():
        if name not in WORDS or not isinstance(text, str):
            remedy = f"name {', '.join(WORDS)}, each a text"
            raise InputError("words", f"{text!r}", remedy, where=name, value=text)
    parameter = facts["parameter"].replace("_", " ")
    unit = f", {facts['units']}" if facts["unit"] == facts["units"] else ""
    effect = "cost" if facts["falling"] else "save"
    price = f"what one more unit of {parameter} would {effect}{unit}"
    usual = {"parameter": parameter, "unit": "", "value": f"{value}{unit}", "price": price}
    return {**usual, **typed}


def _labels(letters: Iterable[Any]) -> list[str]:
    return [", ".join(map(_label, x)) if isinstance(x, tuple) else _label(x) for x in letters]


def _label(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _channel_model(problem: ChannelProblem) -> dict[str, Any]:
    alphabet, program = problem.alphabet, problem.program
    joint = np.zeros((len(alphabet.w_support), program.n))
    np.add.at(joint, (alphabet.w_of, np.arange(program.n)), program.law / program.total)
    source = alphabet.source
    return {
        "kind": "channel",
        "names": dict(zip("wx", _labels(source.names[:2]), strict=True)),
        "w": _labels(source.w[i] for i in alphabet.w_support),
        "x": _labels(source.x[i] for i in alphabet.x_of),
        "outputs": _labels(alphabet.outputs),
        "joint": joint.tolist(),
        "distortion": program.cost(problem.distortion).tolist(),
    }


def _gaussian_model(problem: CovarianceProblem) -> dict[str, Any]:
    source = problem.source
    cross, covariance = source.block(source.w, source.x), source.block(source.x, source.x)
    return {
        "kind": "gaussian",
        "w": [source.names[i] for i in source.w],
        "x": [source.names[i] for i in source.x],
        "covariance_w": source.block(source.w, source.w).tolist(),
        "covariance_x": covariance.tolist(),
        "regression": np.linalg.lstsq(covariance, cross.T, rcond=None)[0].T.tolist(),
    }


# ---- points and curves ---------------------------------------------------------------------


def _point(at: Breakpoint, point: Point, problem: Any) -> dict[str, Any]:
    solution, discrete = point._solution(), isinstance(problem, ChannelProblem)
    primal = solution.certificate.primal
    facts: dict[str, Any] = {
        "x": float(point.x),
        "bound": float(at.bound[1]),
        "lower": finite(point.lower),
        "upper": finite(point.upper),
        "status": point.status,
        "price": finite(point.price),
        "slope": float(at.slope[0]),
        "terms": {k: [finite(t.lower), finite(t.upper)] for k, t in point.terms.items()},
    }
    name = "channel" if discrete else "error_covariance"
    if point.status == "infeasible" or primal is None:
        return {**facts, name: None, "constraints": {}}
    if discrete:
        rows = at_channel(problem, solution, primal.matrix)
        return {**facts, name: primal.matrix.tolist(), "constraints": rows}
    sigma, rows = solution.error_covariance, at_covariance(problem, solution, primal.matrix)
    return {**facts, name: np.asarray(sigma).tolist(), "constraints": rows}


def _corners(curve: Curve) -> list[dict[str, Any]]:
    """Return the corners of the inner curve, in the order of x, and whose releases are there."""
    places = {id(point): i for i, point in enumerate(curve.breakpoints)}
    if isinstance(curve, Convex):
        pairs = curve._hull
    else:
        mixtures = ((point, curve.mixture(point.x)) for point in curve.breakpoints)
        pairs = [(point, mixture[0]) for point, mixture in mixtures if mixture is not None]
    return [
        {"x": float(p.x), "bound": float(p.bound[1]), "point": places[id(owner)]}
        for p, owner in pairs
    ]


def _references(references: References | None, xs: Sequence[float]) -> list[dict[str, Any]]:
    """Return further curves, each by its label, over the range of the points."""
    curves = []
    for label, function in (references or {}).items():
        places = np.linspace(min(xs), max(xs), PLACES).tolist() if xs else []
        values = list(map(float, map(function, places)))
        if not np.isfinite(values).all():
            remedy = "pass functions that are finite over the range of the frontier"
            raise InputError("references", "not finite", remedy, where=label)
        curves.append({"label": str(label), "x": places, "y": values})
    return curves


# ---- constraints, slacks and multipliers at a release -------------------------------------


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
