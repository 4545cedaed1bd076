"""What a dossier may say: no value of the confidential attribute, no folder, no seed.

Facts are built from what is harmless: names of columns, key letters (which are released anyway),
numbers of records, and measures.  What comes as text from elsewhere, such as a solver's note or
what a verifier prints, passes a :class:`Guard`, which knows the confidential values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from cvxprivacy_sdc.statements.columns import folded

__all__ = ["KEPT_OUT", "Guard", "file_name", "guard_of", "typed_command"]

KEPT_OUT = "(kept out)"
_RECODED = {"bins", "top", "level"}  # of a column of W, whose values they may name
_MAPPED = {"group", "hierarchy"}  # likewise, in files
_FILES = {"out", "certificate", "channel", "problem-out", "report", "after", "after-channel"}
_SHOWN = {
    *("sensitive", "key", "distortion", "budget", "criterion", "leakage", "weights", "missing"),
    *("encoder", "units", "time-limit", "row-id", "draw", "delimiter", "encoding"),
    *("bootstrap", "ensure", "suppress", "cells", "decimal", "sheet"),
    *("prior", "comment", "drop", "keep-columns"),
}
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?")


def _pattern(texts: Sequence[str]) -> re.Pattern[str]:
    """Return what finds any of these texts as a word or a number of its own."""
    parts = "|".join(rf"(?<![\w.]){re.escape(text)}(?!\w|[.,]\d)" for text in texts)
    return re.compile(parts or r"(?!)")


class Guard:
    """Knows the values of the confidential attribute, and which text names none of them.

    Parameters
    ----------
    values : iterable
        Letters of W; tuples of several columns.
    public : iterable of str
        Names of columns and key letters, which may read like a value of W and are no secret.
    """

    def __init__(self, values: Iterable[Any], public: Iterable[str] = ()) -> None:
        parts = {
            "missing" if part is None else str(part)  # as messages say it
            for value in values
            for part in (value if isinstance(value, tuple) else (value,))
        }
        parts = {part for part in parts if part.strip()}
        longest = sorted(parts - set(public), key=len, reverse=True)
        named = [part for part in longest if not _NUMBER.fullmatch(part)]
        self._all, self._named = _pattern(longest), _pattern(named)

    def allows(self, text: str, *, numbers: bool = True) -> bool:
        """Tell whether a text names no confidential value.

        Parameters
        ----------
        numbers : bool
            Whether a value that is a number counts as named where that number stands; in text
            that speaks of measures alone it does not.
        """
        return (self._all if numbers else self._named).search(text) is None

    def kept(self, texts: Iterable[str], *, numbers: bool = True) -> list[str]:
        """Return the texts that may be said; of the others, how many there are."""
        texts = list(texts)
        allowed = [text for text in texts if self.allows(text, numbers=numbers)]
        hidden = len(texts) - len(allowed)
        if hidden:
            are = "1 line names" if hidden == 1 else f"{hidden} lines name"
            where = "kept out of this report: see what the command prints"
            allowed.append(f"{are} values of the confidential attribute: {where}")
        return allowed


def guard_of(source: Any) -> Guard:
    """Return what knows the values of W; names and key letters are public."""
    schema, key = source.schema, [source.levels.get(name, []) for name in source.schema.key]
    return Guard(source.w, [*schema.columns, *(str(level) for levels in key for level in levels)])


def file_name(path: str) -> str:
    """Return a file's name without its folder."""
    return Path(path).name


def typed_command(
    arguments: Sequence[str], command: click.Command, sensitive: Iterable[str]
) -> str:
    """Return the command line without folders, seed, confidential values or their bins.

    Parameters
    ----------
    arguments : sequence of str
        As typed, the command's name first.
    command : click.Command
        Which says what options take a value.
    sensitive : iterable of str
        Columns of W, whose bins name its values.

    Options whose values are not known to be harmless are shown without these.
    """
    flags = {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.is_flag
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    tokens, waiting = ["cvxprivacy", *arguments[:1]], list(arguments[1:])
    while waiting:
        token = waiting.pop(0)
        if token == "--":
            tokens += [_quoted(file_name(path)) for path in waiting]
            break
        if not token.startswith("-") or token == "-":
            tokens.append(_quoted(file_name(token)))
            continue
        name, sign, value = token.partition("=")
        if not sign and name not in flags and waiting:
            optional = name == "--ordered" and waiting[0].startswith("--")
            value = "" if optional else waiting.pop(0)
        tokens.append(name)
        if value:
            tokens.append(_value(name.lstrip("-"), value, {*sensitive}))
    return " ".join(tokens)


def _value(option: str, value: str, sensitive: set[str]) -> str:
    """Return the value of an option as it may be said."""
    if option in _FILES:
        return _quoted(file_name(value))
    if option in _RECODED | _MAPPED:
        parts = [value] if any("," in name for name in sensitive) else value.split(",")
        pairs = []
        for name, _sign, typed in (part.rpartition("=") for part in parts):
            shown = file_name(typed) if option in _MAPPED else typed
            hidden = folded(name) in map(folded, sensitive)
            pairs.append(f"{name}={KEPT_OUT if hidden else shown}")
        return _quoted(",".join(pairs))
    return _quoted(value) if option in _SHOWN else KEPT_OUT


def _quoted(text: str) -> str:
    """Return text as a shell reads it, where it has to be quoted."""
    if re.fullmatch(r"[\w@%+=:,./*|-]+", text) and "*" not in text and "|" not in text:
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
