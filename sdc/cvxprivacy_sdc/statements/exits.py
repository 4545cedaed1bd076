"""How a command ends: its exit code, its one line of error, its JSON."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import click

from cvxprivacy.errors import CertificationError, InfeasibleError, InputError, MissingPackageError
from cvxprivacy_sdc.errors import BrokenTableError

__all__ = [
    "AS_JSON", "CODES", "FORCED", "Commands", "arguments", "as_options", "note", "note_reading",
    "notes", "say", "say_json", "wants_json",
]  # fmt: skip

CODES = {
    "certified": 0,
    "broken": 1,
    "input": 2,
    "infeasible": 3,
    "uncertified": 4,
    "loose": 5,
    "internal": 70,
}
AS_JSON, FORCED = "cvxprivacy.json", "cvxprivacy.force"  # keys of the context's meta
_TYPED, _NOTES = "cvxprivacy.arguments", "cvxprivacy.notes"  # likewise
_OPTIONS = {  # what Python's arguments are called on the command line, beside options of that name
    **{name: f"--criterion ({name})" for name in ("t", "l", "k", "b", "p", "delta", "epsilon")},
    **dict.fromkeys(("frame", "original", "table"), "TABLE"),
    "groups": "--group or --hierarchy",
    "distortions": "--distortion",
    "criteria": "--criterion",
    "released": "RELEASED",
}
_PHRASES = {
    'pass missing="level" (a letter of their own) or missing="drop"': "pass --missing level (a "
    "letter of their own), --missing drop, or --na for the text of a missing cell",
    "' (key)": "' (--key)",
    'pass draw="independent"': "pass --draw independent",
    "pass a whole number ≥ 0 or a numpy.random.Generator": "pass a whole number ≥ 0",
    "bin numbers, or name fewer columns": "bin numbers, name fewer columns, or let "
    "`release --cells 300` choose bins",
    "pass a file that Channel.save wrote": "pass a file that `release --channel` wrote",
}


class Commands(click.Group):
    """Commands in the order in which they are used, whose failures are one line and a code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they were added."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, for a report that names the command."""
        ctx.meta[_TYPED] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a failure becomes a line on standard error and an exit code."""
        for stream in (sys.stdout, sys.stderr):  # a console may lack the hat of X̂
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # who reads has seen enough
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        except KeyboardInterrupt:
            click.echo("cvxprivacy: interrupted", err=True)
            sys.exit(130)
        except Exception as error:
            kind, message, details = _failure(error)
            if kind == "internal" and "CVXPRIVACY_TRACEBACK" in os.environ:
                raise
            if wants_json():
                say_json({"error": {"kind": kind, "message": message, **details}})
            for line in notes():  # which may be why
                click.echo(f"cvxprivacy: note: {line}", err=True)
            click.echo(f"cvxprivacy: {message}", err=True)
            sys.exit(CODES[kind])


def _failure(error: Exception) -> tuple[str, str, dict[str, Any]]:
    """Return the kind of a failure, what is said of it, and what its JSON holds besides."""
    match error:
        case InfeasibleError():
            return "infeasible", str(error), {"extremes": error.extremes}
        case BrokenTableError():
            return "infeasible", str(error), {"criteria": error.criteria}
        case CertificationError():
            return "uncertified", str(error), {}
        case InputError():
            return "input", as_options(str(error)), {"argument": error.argument}
        case MissingPackageError():
            return "input", str(error), {"requirement": error.requirement}
        case OSError():
            return "input", f"{error.filename or 'file'}: {error.strerror or error}", {}
        case MemoryError():
            return "input", "not enough memory: coarsen the key columns", {}
    message = f"{type(error).__name__}: {error} (set CVXPRIVACY_TRACEBACK to see where)"
    return "internal", f"this should not have happened: {message}", {}


def as_options(message: str) -> str:
    """Say what Python's arguments are called by the command that is run."""
    context = click.get_current_context()
    command = context.command
    if isinstance(command, Commands) and context.invoked_subcommand:
        command = command.commands[context.invoked_subcommand]
    options = _OPTIONS | {p.name: p.opts[0] for p in command.params if isinstance(p, click.Option)}
    message = re.sub(r"^(\w+)\[\d+\](?=: [\d,]+ missing values)", r"\1", message)
    message = re.sub(r"^\w+(?=[:\[])", lambda name: options.get(name[0], name[0]), message)
    for python, typed in _PHRASES.items():
        message = message.replace(python, typed)
    return message


def arguments() -> tuple[str, ...]:
    """Return the arguments of the command as they were typed, its own name first."""
    typed: tuple[str, ...] = click.get_current_context().meta.get(_TYPED, ())
    return typed


def wants_json() -> bool:
    """Tell whether the command was given ``--json``."""
    return bool(click.get_current_context().meta.get(AS_JSON))


def note(line: str) -> None:
    """Keep a line that the command says at its end, once, whether it succeeds or not."""
    _noted().append(lambda: [line])


def note_reading(table: Any) -> Any:
    """Return an input, of which the command says at its end how it was read."""
    _noted().append(lambda: table.notes)
    return table


def notes() -> list[str]:
    """Return what is to be said of what was typed and read."""
    return list(dict.fromkeys(line for lines in _noted() for line in lines()))


def _noted() -> list[Callable[[], list[str]]]:
    """Return what tells the lines: of a table they are known once it was read."""
    context = click.get_current_context(silent=True)
    kept: list[Callable[[], list[str]]] = []
    return kept if context is None else context.meta.setdefault(_NOTES, kept)


def say(document: dict[str, Any], text: str) -> None:
    """Print a document if ``--json`` was given, else the text; with what else is to be noted."""
    more = [line for line in notes() if line not in document.get("notes", ())]
    if more:
        document = {**document, "notes": [*document.get("notes", ()), *more]}
        text = "\n".join([text, *(f"note: {line}" for line in more)])
    if wants_json():
        say_json(document)
    else:
        click.echo(text)


def say_json(value: Any) -> None:
    """Print one JSON document; numbers that JSON has not become text."""

    def plain(item: Any) -> Any:
        """Return a value as JSON has it."""
        if isinstance(item, dict):
            return {str(key): plain(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [plain(entry) for entry in item]
        if hasattr(item, "tolist"):
            return plain(item.tolist())
        if isinstance(item, float):
            return float(item) if abs(item) < float("inf") else str(float(item))
        return item

    click.echo(json.dumps(plain(value), ensure_ascii=False, indent=2, default=str))
