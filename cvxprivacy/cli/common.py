"""What the commands share: how failures end, how JSON is printed, how text tables are read."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

import click

from cvxprivacy.errors import CertificationError, InfeasibleError, InputError

__all__ = ["CODES", "reading_of", "say_json", "table_options", "told"]

_OPTIONS = {
    **{n: f"--{n}" for n in ("sensitive", "key", "bins", "budget", "weights", "missing", "seed")},
    **{n: f"--criterion ({n})" for n in ("t", "l", "k", "b", "p", "delta", "epsilon")},
    "row_id": "--row-id",
    "distortions": "--distortion",
    "criteria": "--criterion",
    "released": "RELEASED",
    "na": "--na",
    "delimiter": "--delimiter",
    "encoding": "--encoding",
    "frame": "TABLE",
    "original": "TABLE",
    "ordered": "--ordered",
    "reference": "--reference",
    "bootstrap": "--bootstrap",
    "methods": "--method",
    "cells": "--cells",
    "classes": "--classes",
    "table": "TABLE",
}
_PHRASES = {
    'pass missing="level" (a letter of their own) or missing="drop"': "pass --missing level (a "
    "letter of their own), --missing drop, or --na for the text of a missing cell",
    "pass a whole number ≥ 0 or a numpy.random.Generator": "pass a whole number ≥ 0",
    "pass a file that Channel.save wrote": "pass a file that `release --channel` wrote",
}
CODES = {
    "certified": 0,
    "unproved": 1,
    "input": 2,
    "infeasible": 3,
    "uncertified": 4,
    "loose": 5,
    "internal": 70,
}


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn what can go wrong into a message and an exit code, without a traceback."""

    @wraps(command)
    def run(**options: Any) -> None:
        for stream in (sys.stdout, sys.stderr):  # a console may lack the hat of X̂
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        as_json = bool(options.get("as_json"))
        try:
            command(**options)
        except InfeasibleError as error:
            _fail(as_json, "infeasible", str(error), {"extremes": error.extremes})
        except CertificationError as error:
            _fail(as_json, "uncertified", str(error))
        except InputError as error:
            _fail(as_json, "input", _as_options(str(error)), {"argument": error.argument})
        except BrokenPipeError:  # who reads has seen enough
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        except OSError as error:
            _fail(as_json, "input", f"{error.filename or 'file'}: {error.strerror or error}")
        except KeyboardInterrupt:
            click.echo("cvxprivacy: interrupted", err=True)
            sys.exit(130)
        except MemoryError:
            _fail(as_json, "input", "not enough memory: coarsen the key columns")
        except click.exceptions.Abort:
            raise
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:
            if "CVXPRIVACY_TRACEBACK" in os.environ:
                raise
            said = f"{type(error).__name__}: {error} (set CVXPRIVACY_TRACEBACK to see where)"
            _fail(as_json, "internal", f"this should not have happened: {said}")

    return run


def _as_options(message: str) -> str:
    """Say what Python's arguments are called on the command line."""
    for argument, option in _OPTIONS.items():
        message = re.sub(rf"^{argument}(?=[:\[])", option, message)
    for said, typed in _PHRASES.items():
        message = message.replace(said, typed)
    return message


def _fail(as_json: bool, kind: str, message: str, more: dict[str, Any] | None = None) -> NoReturn:
    if as_json:
        say_json({"error": {"kind": kind, "message": message, **(more or {})}})
    click.echo(f"cvxprivacy: {message}", err=True)
    sys.exit(CODES[kind])


def say_json(value: Any) -> None:
    """Print one JSON document; numbers that JSON has not become text."""

    def plain(item: Any) -> Any:
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


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a text table is read."""
    for option in (
        click.option("--na", multiple=True, metavar="TEXT", help="Text of a missing cell; by "
                     "default the empty one.  May be given several times."),
        click.option("--encoding", default=None, help="Of a text table; utf-8 by default."),
        click.option("--delimiter", default=None, help="Of a text table; by default a comma, a "
                     "tab for .tsv."),
    ):  # fmt: skip
        command = option(command)
    return command


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the table options given."""
    found = {name: options.pop(name) for name in ("delimiter", "encoding", "na")}
    found["na"] = found["na"] or None
    if found["delimiter"] in ("tab", "\\t"):
        found["delimiter"] = "\t"
    return found
