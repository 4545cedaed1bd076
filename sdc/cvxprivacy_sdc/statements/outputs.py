"""The files that a command writes: refused before any work, and written all or none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click

from cvxprivacy.errors import InputError
from cvxprivacy.files import is_device, leftovers, whole_files
from cvxprivacy_sdc.formats.house import PURPOSE, House
from cvxprivacy_sdc.statements.exits import FORCED, wants_json

__all__ = [
    "Output", "described", "progress", "refuse_unwritable", "steps", "write_all",
]  # fmt: skip


@dataclass(frozen=True)
class Output:
    """A file: its option, its path if it is wanted, what writes it, and who may read it."""

    option: str
    path: str | None
    write: Callable[[IO[Any]], Any]
    binary: bool = False
    private: bool = False  # for its owner only


def write_all(outputs: Sequence[Output], house: House | None = None) -> dict[str, Any]:
    """Write files that take their names together or not at all; return what each write returned.

    What stays in the house of them is written last, with what ``house`` holds by then.
    """
    house = House.of({output.option: output.path for output in outputs}) if house is None else house
    results, written = {}, {}
    with whole_files(replace=_forced()) as files:
        for output in outputs:
            if output.path is not None:
                file = files.open(output.path, binary=output.binary, private=output.private)
                results[output.option] = output.write(file)
                file.flush()  # a full disk is noticed before any file has its name
                if not is_device(output.path):
                    written[output.option] = output.path, file
        if house.path is not None:
            house.write(files.open(house.path, private=True), written)
    return results


def refuse_unwritable(
    targets: Mapping[str, str | None], *inputs: str, prefix: str = "--", shuffled: bool = False
) -> None:
    """Refuse, before any work, outputs that cannot be or that would destroy a file.

    A file that is there is replaced only with ``--force``; an input never is; a device is no file.
    What an earlier run that was ended left of these outputs is named, and left alone.
    """
    taken = {os.path.realpath(path): f"the input {path}" for path in inputs}
    wanted = [(name, path) for name, path in targets.items() if path is not None]
    house = House.of(targets, always=shuffled).path
    checked = wanted if house is None else [*wanted, (wanted[0][0], house)]
    paths = [path for _, path in checked if not is_device(path)]
    for line in leftovers(paths):
        click.echo(f"cvxprivacy: {line}", err=True)
    for name, path in checked:
        real = os.path.realpath(path)
        folder = Path(real).parent
        problem, remedy = "", "name another file"
        if real in taken:
            problem = f"{path} is {taken[real]}"
        elif Path(path).is_symlink() and not is_device(path):
            problem, remedy = f"{path} is a link", f"name the file itself, {real}"
        elif not folder.is_dir():
            problem, remedy = f"{path}: there is no folder {folder}", "make it first"
        elif Path(real).is_dir() or not os.access(folder, os.W_OK):
            problem = f"{path} cannot be written"
        elif Path(path).is_file() and not is_device(path) and not _forced():
            problem, remedy = f"{path} is there already", "pass --force to replace it"
        if problem:
            raise InputError(f"{prefix}{name}", problem, remedy)
        taken[real] = f"also {prefix}{name}"


def _forced() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(FORCED))


def described(
    targets: Mapping[str, str | None], words: Mapping[str, str], *, shuffled: bool = False
) -> list[str]:
    """Return a line for each file; ``{private}`` in its words says that only its owner reads it."""
    lines, words = [], {**words, "house": PURPOSE + "{private}"}
    for name, path in {**targets, "house": House.of(targets, always=shuffled).path}.items():
        if path is not None:
            file = Path(path)  # a device is nobody's own
            private = file.is_file() and not file.stat().st_mode & 0o077
            privacy = ", so only you can read it" if private else ""
            lines.append(f"{path}: {words[name].replace('{private}', privacy)}")
    return lines


def _watched() -> bool:
    """Tell whether somebody sits at a terminal and no document is printed."""
    return sys.stderr.isatty() and not wants_json()


@contextmanager
def progress(size: int, label: str) -> Iterator[Callable[[int], object] | None]:
    """Show a bar on a terminal's standard error, and nothing elsewhere."""
    if not _watched():
        yield None
        return
    with click.progressbar(length=size, label=label, file=sys.stderr) as bar:
        yield bar.update


@contextmanager
def steps() -> Iterator[Callable[[object], object] | None]:
    """Show the steps of a solve on one line of a terminal's standard error, or nothing."""
    if not _watched():
        yield None
        return
    try:
        yield lambda now: click.echo(f"\r\x1b[Ksolving: {now}", err=True, nl=False)
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)
