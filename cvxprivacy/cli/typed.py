"""What is typed in options: columns, numbers, criteria, measures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cvxprivacy.errors import InputError

__all__ = [
    "bins_of", "cap_of", "criteria_of", "leakage_of", "measures_of", "measures_of_leakage",
    "name_and_value", "pairs", "prices_of", "refuse_unknown", "split_columns", "stated_criterion",
    "stated_leakage",
]  # fmt: skip


def criteria_of(texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return names and arguments of criteria written NAME or NAME=NUMBER."""
    if not texts:
        return []
    from cvxprivacy import criteria

    # what a criterion's words show is typed here: one number at most, and maybe a measure
    parameters = {
        name: needed
        for name in criteria.__all__
        if (words := getattr(criteria, name).words)
        and words.examples
        and len(needed := _needed(getattr(criteria, name))) < 2
    }
    rules = []
    for text in texts:
        name, _sign, value = text.partition("=")
        value, _sign, measure = value.partition(":")
        if name not in parameters:
            remedy = f"use one of {', '.join(parameters)}, or `cvxprivacy solve` for others"
            raise InputError("--criterion", f"{name!r} is unknown", remedy, value=name)
        remedy = f"write {name}=NUMBER" if parameters[name] else f"write {name}"
        if bool(parameters[name]) != bool(value):
            raise InputError("--criterion", f"{text!r}", remedy, value=text)
        try:
            numbers = [float(value)] if value else []
        except ValueError:
            problem = f"{value!r} of {name}"
            raise InputError("--criterion", problem, remedy, value=value) from None
        arguments: dict[str, Any] = dict(zip(parameters[name], numbers, strict=True))
        rules.append((name, arguments | _measured(getattr(criteria, name), measure, text)))
    return rules


def _needed(kind: Any) -> list[str]:
    """Return the arguments that a criterion needs besides a measure."""
    return [
        argument.name
        for argument in inspect.signature(kind).parameters.values()
        if argument.default is argument.empty and argument.name != "leakage"
    ]


def _measured(kind: Any, measure: str, text: str) -> dict[str, Any]:
    """Return the argument that NUMBER:MEASURE adds: a distance, or a measure of leakage."""
    parameters = inspect.signature(kind).parameters
    if measure and "distance" in parameters:
        return {"distance": measure}
    if measure and "leakage" in parameters:
        return {"leakage": leakage_of(measure, "--criterion")}
    missing = "leakage" in parameters and parameters["leakage"].default is inspect.Parameter.empty
    if not measure and not missing:
        return {}
    remedy = f"write {kind.__name__}=0.1:total-variation" if missing else "leave it out"
    problem = "without a measure" if missing else f"with {measure!r}"
    raise InputError("--criterion", f"{text!r} {problem}", remedy, value=text)


def stated_leakage(data: Mapping[str, Any]) -> Any:
    """Return the measure of leakage that a problem file states in this way."""
    from cvxprivacy.leakage import MEASURES

    arguments = {name: value for name, value in data.items() if name != "kind"}
    return MEASURES[data["kind"]](**arguments)


def stated_criterion(data: Mapping[str, Any]) -> Any:
    """Return the criterion that a problem file states in this way."""
    from cvxprivacy import criteria

    arguments = {name: value for name, value in data.items() if name != "kind"}
    if "leakage" in arguments:
        arguments["leakage"] = stated_leakage(arguments["leakage"])
    return getattr(criteria, data["kind"])(**arguments)


def measures_of_leakage() -> dict[str, tuple[str, list[str]]]:
    """Return the class of each measure by the name that is typed, and the numbers it needs."""
    from cvxprivacy import leakage

    measures: dict[str, tuple[str, list[str]]] = {}
    for name, measure in leakage.MEASURES.items():
        if name == "Gain":  # whose matrix is no number
            continue
        arguments = inspect.signature(measure).parameters.values()
        needed = [a.name for a in arguments if a.default is a.empty]
        measures[re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()] = name, needed
    return measures


def leakage_of(text: str, option: str) -> dict[str, Any]:
    """Return what a problem file says of a measure NAME, or NAME:NUMBER (hockey-stick:1.5)."""
    measures = measures_of_leakage()
    name, _sign, number = text.partition(":")
    if name not in measures:
        remedy = f"use one of {', '.join(measures)}"
        raise InputError(option, f"{name!r} is no measure of leakage", remedy, value=name)
    kind, needed = measures[name]
    remedy = f"write {name}:NUMBER" if needed else f"write {name}"
    if bool(needed) != bool(number):
        raise InputError(option, f"{text!r}", remedy, value=text)
    try:
        data = {"kind": kind, **({needed[0]: float(number)} if needed else {})}
        stated_leakage(data)
    except InputError as error:
        problem = f"{error.argument} of {name}: {error.problem}"
        raise InputError(option, problem, error.remedy, value=text) from None
    except ValueError:
        raise InputError(option, f"{number!r} of {name}", remedy, value=number) from None
    return data


def split_columns(texts: Sequence[str], header: Sequence[str]) -> list[str]:
    """Split at commas, except where a column's name has one."""
    names: list[str] = []
    for text in texts:
        names += [text] if text in header else [part.strip() for part in text.split(",")]
    return names


def refuse_unknown(
    option: str, names: Sequence[str], header: Sequence[str], what: str = "column"
) -> None:
    """Refuse the first column that is not there."""
    for name in names:
        if name not in header:
            remedy = f"use one of {', '.join(map(repr, header))}"
            if len(header) == 1 and any(mark in header[0] for mark in ",;\t|"):
                remedy += ", or pass another --delimiter"
            raise InputError(option, f"no {what} {name!r}", remedy, value=name)


def name_and_value(text: str, option: str, example: str) -> tuple[str, str]:
    """Split NAME=VALUE at the first sign."""
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise InputError(option, f"{text!r}", f"write it like {example}", value=text)
    return name, value


def pairs(
    texts: Sequence[str], header: Sequence[str], option: str, example: str, what: str = "column"
) -> dict[str, str]:
    """Split COLUMN=VALUE,… at commas, except where a column's name has one."""
    values: dict[str, str] = {}
    for text in texts:
        undivided = text.rpartition("=")[0] in header
        for part in [text] if undivided else text.split(","):
            name, sign, value = part.rpartition("=")
            name = name if name in header else name.strip()
            if not sign or not name or not value.strip():
                raise InputError(option, f"{part!r}", f"write it like {example}", value=part)
            refuse_unknown(option, [name], header, what)
            if name in values:
                raise InputError(option, f"{name!r} twice", "say it once", value=name)
            values[name] = value.strip()
    return values


def bins_of(texts: Sequence[str], header: Sequence[str]) -> dict[str, Any]:
    """Return a width, the edges of intervals, or quantiles ("q10"), for each column named."""
    made: dict[str, float | str | list[float]] = {}
    for name, value in pairs(texts, header, "--bins", "age=10 or age=0:18:65:120").items():
        if re.fullmatch(r"q[0-9]+", value):
            made[name] = value
            continue
        try:
            numbers = [float(part) for part in value.split(":")]
        except ValueError:
            remedy = "write a width, age=10, edges, age=-inf:18:65:inf, or quantiles, age=q10"
            raise InputError("--bins", f"{value!r} for {name!r}", remedy, value=value) from None
        made[name] = numbers[0] if len(numbers) == 1 else numbers
    return made


def measures_of(
    texts: Sequence[str], columns: Sequence[str]
) -> tuple[dict[str, str], dict[str, float]]:
    """Return measures and weights of key columns, written COLUMN=KIND or COLUMN=WEIGHT*KIND."""
    kinds: dict[str, str] = {}
    weights: dict[str, float] = {}
    if [text.strip() for text in texts] == ["hamming"] and "hamming" not in columns:
        return kinds, weights  # a record counts once if anything changed
    number = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+"
    for name, kind in pairs(texts, columns, "--distortion", "age=ordinal", "key column").items():
        match = re.fullmatch(rf"(?:({number})\*)?(\w+)", kind)
        if match is None:
            remedy = "write it like age=ordinal or age=2*ordinal"
            raise InputError("--distortion", f"{kind!r} for {name!r}", remedy, value=kind)
        weights[name], kinds[name] = float(match[1] or 1), match[2]
    return kinds, weights


def prices_of(texts: Sequence[str], columns: Sequence[str]) -> float | dict[str, float]:
    """Return what it costs to suppress any key column, or those named: COST or COLUMN=COST,…."""
    example = "0.3, or age=0.3,sex=0.5"
    named = len(texts) > 1 or "=" in texts[0]
    typed = pairs(texts, columns, "--suppress", example, "key column") if named else {"": texts[0]}
    prices = {}
    for name, text in typed.items():
        try:
            prices[name] = float(text)
        except ValueError:
            remedy = f"write a cost, {example}"
            raise InputError("--suppress", f"{text!r}", remedy, value=text) from None
    return prices if named else prices[""]


def cap_of(text: str | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the criterion that NUMBER or NUMBER:MEASURE means, at most so much leakage."""
    if text is None:
        return []
    number, _sign, measure = text.partition(":")
    try:
        arguments: dict[str, Any] = {"b": float(number)}
    except ValueError:
        remedy = "write it like 0.05, in bits, or 0.6:guessing-probability"
        raise InputError("--at-most", f"{text!r}", remedy, value=text) from None
    if measure:
        arguments["leakage"] = leakage_of(measure, "--at-most")
    return [("LeakageCap", arguments)]
