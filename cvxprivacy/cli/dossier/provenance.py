"""Where a dossier's numbers come from: files and their sums, versions, the command, the seed."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from cvxprivacy.cli.dossier.secrecy import file_name
from cvxprivacy.cli.outputs import Output

__all__ = ["Kept", "columns_of", "input_file", "now", "seed_of", "sha256", "versions"]

PACKAGES = ("cvxprivacy", "numpy", "scipy", "pandas", "narwhals", "python-flint", "matplotlib")
BLOCK = 1 << 20
MOST_BYTES = 1 << 30  # of a released table that is read again


@dataclass
class Kept:
    """The files of a command, as they are written: what a report on them needs to know.

    Attributes
    ----------
    outputs : list of Output
        To be written by :func:`cvxprivacy.cli.outputs.write_all`, before the report on them.
    results : dict of str to Any
        What each write returned.
    """

    outputs: Sequence[Output]
    results: dict[str, Any] = field(default_factory=dict)
    _handles: dict[str, IO[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outputs = [replace(output, write=self._noted(output)) for output in self.outputs]

    def _noted(self, output: Output) -> Any:
        def write(file: IO[Any]) -> Any:
            self.results[output.option] = output.write(file)
            self._handles[output.option] = file
            return self.results[output.option]

        return write

    def files(self) -> list[dict[str, Any]]:
        """Return each file's option, name and SHA-256, None for a device."""
        paths = {output.option: output.path for output in self.outputs}
        return [
            {"option": f"--{option}", "name": file_name(str(paths[option])),
             "sha256": self.sum_of(option)}
            for option in self._handles
        ]  # fmt: skip

    def sum_of(self, option: str) -> str | None:
        """Return the SHA-256 of a written file; None of a device, which cannot be read again."""
        try:
            return _digest(_blocks(self._handles[option]))
        except OSError:
            return None

    @contextmanager
    def copy(self, option: str, suffix: str) -> Iterator[Path | None]:
        """Lend a private copy of a written file, which has no name yet; None of a device."""
        with TemporaryDirectory() as folder:
            path: Path | None = Path(folder) / f"released{suffix}"
            handle = self._handles.get(option)
            try:
                if handle is None or os.fstat(handle.fileno()).st_size > MOST_BYTES:
                    raise OSError
                with Path(folder, f"released{suffix}").open("wb") as file:
                    for block in _blocks(handle):
                        file.write(block)
            except OSError:
                path = None
            yield path


def _blocks(file: IO[Any]) -> Iterator[bytes]:
    """Yield what a file that is open for writing holds so far."""
    file.flush()
    place = 0
    while block := os.pread(file.fileno(), BLOCK, place):
        yield block
        place += len(block)
    if not place:
        raise OSError("nothing can be read")


def _digest(blocks: Iterator[bytes]) -> str:
    total = hashlib.sha256()
    for block in blocks:
        total.update(block)
    return total.hexdigest()


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def now() -> str:
    """Return date and time, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that made the numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def input_file(path: str) -> dict[str, Any]:
    """Return a table's name without folder, its SHA-256, and its size."""
    return {"name": file_name(path), "sha256": sha256(path), "bytes": Path(path).stat().st_size}


def seed_of(arguments: Sequence[str]) -> dict[str, Any]:
    """Say whether the seed of the draws is secret."""
    typed, row_id = (
        any(token == name or token.startswith(f"{name}=") for token in arguments)
        for name in ("--seed", "--row-id")
    )
    words = (
        "fresh, of 128 bits, drawn for this release from the operating system's generator and "
        "kept nowhere: it is secret"
    )
    if typed:
        words = (
            "given on the command line, and kept out of this report: whoever knows that command "
            "line can draw the same release again and undo it, so it must be kept as secret as "
            "the table"
        )
    if row_id:
        words += "; each record's draw depends on the seed and the record's name alone"
    return {"given": typed, "secret": not typed, "words": words}


def columns_of(header: Sequence[str], schema: Any) -> list[dict[str, str]]:
    """Return the columns of a table, each with its part in the release."""
    parts: Mapping[str, str] = {
        **dict.fromkeys(schema.sensitive, "confidential, copied"),
        **dict.fromkeys(schema.key, "key, released in perturbed form"),
        **dict.fromkeys(schema.side, "side information"),
        **({schema.weights: "survey weight, copied"} if schema.weights else {}),
    }
    return [{"column": name, "part": parts.get(name, "copied as it is")} for name in header]
