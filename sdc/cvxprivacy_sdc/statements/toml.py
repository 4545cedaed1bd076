"""TOML: a file's values as arguments, where each key stands, and a file that holds given keys.

A value is read by the annotation of what it is for; errors name the file, the line and the key.
"""

from __future__ import annotations

import json
import re
import reprlib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, signature
from itertools import takewhile
from pathlib import Path
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.model.discrete import DiscreteSource

__all__ = ["Keys", "TomlFile", "guarded", "lines_of", "written"]

Keys = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\''
    r"|#[^\n]*|\n|[\[\]{}=,.]|[^\s\[\]{}=,.#\"']+",
    re.DOTALL,
)
_OPTIONS_OF: dict[str, Callable[..., Any]] = {
    "counts": DiscreteSource,
    "table": DiscreteSource.from_table,
}  # take these **options
_TYPES: dict[str, tuple[set[type], str]] = {  # word of an annotation: TOML's types, in words
    "float": ({int, float}, "a number"),
    "Real": ({int, float}, "a number"),
    "int": ({int}, "a whole number"),
    "str": ({str}, "a string"),
    "bool": ({bool}, "a boolean"),
    "Sequence": ({list}, "an array"),
    "list": ({list}, "an array"),
    "ArrayLike": ({int, float, list}, "an array"),
    "Mapping": ({dict}, "a table"),
}
_ODD = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


@dataclass
class TomlFile:
    """A file's name and text, and the letters that keys of its tables may stand for."""

    path: Path
    text: str
    letters: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def lines(self) -> dict[Keys, int]:
        """Where each key stands."""
        return lines_of(self.text)

    def error(self, keys: Keys, problem: str, remedy: str, **details: Any) -> InputError:
        """Return an error at a key, on its line or on that of the table where it would be."""
        nearest = next(keys[:n] for n in range(len(keys), -1, -1) if keys[:n] in self.lines)
        name = "".join(f".{k}" if isinstance(k, str) else f"[{k}]" for k in keys).lstrip(".")
        place = f"{self.path}, line {self.lines[nearest]}"
        return InputError(f"{place}, {name}" if name else place, problem, remedy, **details)

    def located(self, keys: Keys, error: InputError) -> InputError:
        """Return a constructor's error at a key, or at the entry of it that the error names."""
        where = error.where
        entry = (*keys, *(where if isinstance(where, tuple) else (where,)))
        if isinstance(where, str) or entry in self.lines:
            keys, where = entry, None
        return self.error(keys, error.problem, error.remedy, where=where, value=error.value)

    # ---- values, by the annotations of the arguments that they become -----------------------

    def typed(self, keys: Keys, value: Any, annotation: str) -> Any:
        """Return a value for an argument that is so annotated, or say what to write instead."""
        outer, inner = annotation, 1
        while inner:
            outer, inner = re.subn(r"\[[^][]*\]", "", outer)
        words = re.findall(r"\w+", outer)
        wanted = [_TYPES[word] for word in words if word in _TYPES]
        if not wanted or {"Any", "Hashable", "Leakage"} & {*words}:  # a measure was made
            return tuple(value) if (annotation, type(value)) == ("Hashable", list) else value
        if not any(type(value) in types for types, _ in wanted):
            actual = (name for types, name in _TYPES.values() if type(value) in types)
            problem = f"{reprlib.repr(value)} is {next(actual, 'a date or a time')}"
            remedy = f"write {' or '.join(dict.fromkeys(name for _, name in wanted))}"
            raise self.error(keys, problem, remedy, value=value)
        if isinstance(value, dict) and (of := re.search(r"Mapping\[(\w+), (.*)\]", annotation)):
            letters = self.letters if of[1] == "Hashable" else {}
            return {letters.get(k, k): self.typed((*keys, k), v, of[2]) for k, v in value.items()}
        if isinstance(value, list) and "ArrayLike" in words:
            self.shape(keys, value)
        elif isinstance(value, list):
            of = re.search(r"(?:Sequence|list)\[(.*)\]", annotation)
            return [self.typed((*keys, i), v, of[1] if of else "Any") for i, v in enumerate(value)]
        return value

    def shape(self, keys: Keys, value: Any) -> tuple[int, ...]:
        """Return the shape of an array of numbers, or say which entry breaks it."""
        if not isinstance(value, list):
            self.typed(keys, value, "float | bool")
            return ()
        shapes = [self.shape((*keys, i), entry) for i, entry in enumerate(value)]
        for i, shape in enumerate(shapes):
            if shape != shapes[0]:
                problem = f"shape {shape} after entries of shape {shapes[0]}"
                raise self.error((*keys, i), problem, "make all rows of one length")
        return (len(shapes), *(shapes[0] if shapes else ()))

    def arguments(
        self, keys: Keys, table: Any, parameters: Mapping[str, Parameter]
    ) -> dict[str, Any]:
        """Return a table's values as arguments for these parameters."""
        self.typed(keys, table, "Mapping")
        for key in table:
            if key not in parameters:
                names = ", ".join(parameters)
                remedy = f"the keys here are {names}" if names else "leave it out"
                raise self.error((*keys, key), "unknown key", remedy)
        for key, parameter in parameters.items():
            if key not in table and parameter.default is Parameter.empty:
                raise self.error((*keys, key), "missing", "write it, there is no default")
        return {
            k: self.typed((*keys, k), v, str(parameters[k].annotation)) for k, v in table.items()
        }

    def call(self, function: Any, keys: Keys, table: Any, first: str = "", *also: Any) -> Any:
        """Call a function with a table's values: ``first`` and ``also`` in front, by position."""
        parameters = dict(signature(function).parameters)
        if first:
            (_, main), *others = parameters.items()
            if others and others[-1][1].kind is Parameter.VAR_KEYWORD:  # **options of another's
                options = [*signature(_OPTIONS_OF[first]).parameters.items()][1:]
                others = [*others[:-1], *(p for p in options if p[0] not in dict(others))]
            parameters = {first: main, **dict(others[len(also) :])}
        values = self.arguments(keys, table, parameters)
        front = (values.pop(first), *also) if first else ()
        try:
            return guarded(function, *front, **values)
        except InputError as error:
            argument = error.argument if error.argument in parameters else first
            place = (*keys, argument) if argument else keys
            raise self.located(place, error) from error.__cause__

    def chosen(self, keys: Keys, name: Any, choices: Mapping[str, Any]) -> Any:
        """Return what has that name."""
        if not isinstance(name, str) or name not in choices:
            problem = "missing" if name is None else f"{reprlib.repr(name)} is unknown"
            raise self.error(keys, problem, f"use one of {', '.join(choices)}")
        return choices[name]

    def form(self, keys: Keys, table: Mapping[str, Any], *forms: str) -> str:
        """Return the only one of these keys that a table has."""
        present = [form for form in forms if form in table]
        if len(present) == 1:
            return present[0]
        remedy = f"write exactly one of {', '.join(forms)}"
        if not present:
            raise self.error(keys, "does not say what it is", remedy)
        raise self.error((*keys, present[1]), f"{' and '.join(present)} exclude each other", remedy)


def guarded(function: Callable[..., Any], *front: Any, **values: Any) -> Any:
    """Call a function; whatever else it trips over becomes an InputError."""
    try:
        return function(*front, **values)
    except InputError:
        raise
    except _ODD as error:
        problem = f"cannot be used ({type(error).__name__}: {error})"
        raise InputError("", problem, "see the documentation of its arguments") from error


# ---- where keys stand --------------------------------------------------------------------


def lines_of(text: str) -> dict[Keys, int]:
    """Return the line of each table, key and entry of an array in valid TOML."""
    lines, sizes, table = dict[Keys, int](), dict[Keys, int](), Keys()
    for tokens, numbers in _statements(text):
        header, many = tokens[0] == "[", tokens[:2] == ["[", "["]
        path = () if header else table
        for part in takewhile(lambda token: token not in "=]", tokens[header + many :]):
            if part != ".":
                key = tomllib.loads(f"_ = {part}")["_"] if part[0] in "\"'" else part
                path = (*path, sizes[path] - 1, key) if path in sizes else (*path, key)
                lines.setdefault(path, numbers[0])
        if many:
            sizes[path] = sizes.get(path, 0) + 1
            path = (*path, sizes[path] - 1)
            lines[path] = numbers[0]
        if header:
            table = path
            continue
        start = tokens.index("=") + 1
        entry: tuple[int, ...] = ()  # in the arrays that are open
        for token, number in zip(tokens[start:], numbers[start:], strict=True):
            entry = entry[:-1] if token in "]}" else entry
            lines.setdefault((*path, *entry), number)
            entry = (*entry, 0) if token in "[{" else entry
            entry = (*entry[:-1], entry[-1] + 1) if token == "," else entry
    return {(): lines.get(("formulation",), 1), **lines}


def _statements(text: str) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the tokens of each header or assignment, and their lines."""
    tokens, numbers, depth, line = list[str](), list[int](), 0, 1
    for token in _TOKEN.findall(text + "\n"):
        depth += (token in "[{") - (token in "]}")
        if token[0] not in "\n#":
            tokens.append(token)
            numbers.append(line)
        elif token == "\n" and tokens and not depth:
            yield tokens, numbers
            tokens, numbers = [], []
        line += token.count("\n")


# ---- written -----------------------------------------------------------------------------


def written(data: Mapping[str, Any]) -> str:
    """Return a problem file that holds these keys.

    Parameters
    ----------
    data : mapping
        The keys of a problem file; numbers are written with all their digits.

    Raises
    ------
    InputError
        For a text that no file in UTF-8 can hold.
    """
    sections = {
        key: value if isinstance(value, list) else [value]
        for key, value in data.items()
        if key in ("source", "distortion", "criteria", "solve", "output")
    }
    lines = _assignments({key: value for key, value in data.items() if key not in sections})
    for key, tables in sections.items():
        header = f"[[{key}]]" if tables is data[key] else f"[{key}]"
        for table in tables:
            lines += ["", header, *_assignments(table)]
    return "\n".join(lines) + "\n"


def _assignments(table: Mapping[str, Any]) -> list[str]:
    bare = re.compile(r"[A-Za-z0-9_-]+")
    return [
        f"{key if bare.fullmatch(key) else _value(key)} = {_value(value)}"
        for key, value in table.items()
    ]


def _value(value: Any) -> str:
    """Return a value in TOML, on one line."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            remedy = "rename it: a problem file is UTF-8"
            raise InputError("problem", f"{value!r} is no text", remedy, value=value) from None
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows DEL
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_assignments(value)) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)  # the digits of a float that tell it from all others; inf and nan are TOML
