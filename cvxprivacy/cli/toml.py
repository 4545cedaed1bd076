"""TOML: where each key of a file stands, and a file that holds given keys."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from cvxprivacy.errors import InputError

__all__ = ["Keys", "lines_of", "written"]

Keys = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\''
    r"|#[^\n]*|\n|[\[\]{}=,.]|[^\s\[\]{}=,.#\"']+",
    re.DOTALL,
)


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
