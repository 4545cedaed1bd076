"""Files that appear complete or not at all, alone or as a set.

A file is written beside its target, under a name that no other file has, and takes its own at the
end.  What a process that was killed has left is named (:func:`leftovers`), and neither opened nor
touched: no file says which other is renamed, completed or removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = [
    "BINARY", "NO_LINK", "WholeFiles", "blocks_of", "file_sum", "is_device", "leftovers",
    "relative", "whole_file", "whole_files",
]  # fmt: skip

BLOCK = 1 << 20
BINARY = getattr(os, "O_BINARY", 0)  # of Windows, which else writes other line ends
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_PART = re.compile(r"\.[0-9a-f]{16}\.part\.(.+)", re.DOTALL)


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, binary: bool = False, private: bool = False
) -> Iterator[IO[Any]]:
    """Open a file for writing that takes its name only when the block has ended well.

    An exception leaves what stood under ``path`` as it was, and so does the death of the process.

    Parameters
    ----------
    path : path
        A pipe or a device is opened as it is; a link to a file is refused.
    binary : bool
        Bytes; else text in UTF-8 whose line ends are written as they are given.
    private : bool
        Readable by its owner only (mode 0600).

    Yields
    ------
    file object
    """
    with whole_files() as files:
        yield files.open(path, binary=binary, private=private)


@contextmanager
def whole_files(*, replace: bool = True) -> Iterator[WholeFiles]:
    """Open files that take their names one after another when the block has ended well.

    Parameters
    ----------
    replace : bool
        Whether a file that is there by then is replaced; else FileExistsError is raised, and
        nothing is written.

    Yields
    ------
    WholeFiles
    """
    files = WholeFiles(replace)
    try:
        yield files
        files.finish()
    except OSError as error:
        if error.filename is None and error.errno is not None and files.path:
            raise type(error)(error.errno, error.strerror, files.path) from None
        raise
    finally:
        files.close()


class WholeFiles:
    """Files of :func:`whole_files`, in the order in which they take their names.

    Attributes
    ----------
    path : str
        The file that is worked on, as it was named: an error without a file name concerns it.
    """

    def __init__(self, replace: bool) -> None:
        self.path, self._replace, self._token = "", replace, secrets.token_hex(8)
        self._files: list[tuple[str, Path, IO[Any]]] = []  # as typed, the target, the part
        self._written: dict[str, os.stat_result] = {}  # the parts, as they were closed
        self._devices: list[tuple[str, IO[Any]]] = []

    def open(
        self, path: str | os.PathLike[str], *, binary: bool = False, private: bool = False
    ) -> IO[Any]:
        """Open a further file, with the arguments of :func:`whole_file`."""
        self.path = os.fspath(path)
        how: dict[str, Any] = {"mode": "wb"}
        if not binary:
            how = {"mode": "w", "encoding": "utf-8", "newline": ""}
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder", self.path)
        if is_device(path):
            file = Path(path).open(**how)  # noqa: SIM115
            self._devices.append((self.path, file))
            return file
        if Path(path).is_symlink():
            raise OSError(errno.ELOOP, "is a link: name the file itself", self.path)
        target = Path(os.path.realpath(Path(path).parent)) / Path(path).name
        part = target.with_name(f".{self._token}.part.{target.name}")  # which tells the format, too
        permissions = 0o600 if private else 0o666  # the latter less the umask
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | BINARY, permissions)
        file = open(part, opener=lambda *_: handle, **how)  # noqa: SIM115
        self._files.append((self.path, target, file))
        return file

    def finish(self) -> None:
        """Write all files to the disk; then let them take their names, each in its turn."""
        for path, file in self._devices:
            self.path = path
            file.flush()
        for path, _, file in self._files:
            self.path = path
            file.flush()
            os.fsync(file.fileno())
            self._written[file.name] = os.fstat(file.fileno())
            file.close()  # Windows renames no file that is open
        self._take_names()
        for folder in {target.parent for _, target, _ in self._files}:
            _sync(folder)

    def _take_names(self) -> None:
        """Rename all parts: an interruption waits, an error undoes what it can."""
        waiting, interruption = [*self._files], None
        while waiting:
            self.path, target, file = waiting[0]
            try:
                written = self._written[file.name]
                if _is(target, written):
                    pass  # an interruption came after the name was taken; the part is left to close
                elif _is(Path(file.name), written):
                    _take(Path(file.name), target, self._replace)
                else:
                    problem = "was removed or replaced while it was written: write all again"
                    raise OSError(errno.ESTALE, problem, self.path)
                waiting.pop(0)
            except KeyboardInterrupt as error:
                interruption = error
            except BaseException as error:
                self._undo([target for _, target, _ in self._files[: -len(waiting)]], error)
                raise
        if interruption is not None:
            raise interruption

    def _undo(self, taken: Sequence[Path], error: BaseException) -> None:
        """Remove files that were not there before; report others as replaced."""
        if not self._replace:
            for target in taken:
                target.unlink(missing_ok=True)
        elif taken and isinstance(error, OSError):
            names = ", ".join(target.name for target in taken)
            error.strerror = f"{error.strerror}, after {names} had been replaced: write all again"

    def close(self) -> None:
        """Close the files, and remove the parts that are left."""
        for file in [*(file for *_, file in self._files), *(file for _, file in self._devices)]:
            with suppress(OSError):  # a full disk was reported before
                file.close()
        for _, _, file in self._files:
            with suppress(OSError):
                Path(file.name).unlink(missing_ok=True)


def is_device(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is of a pipe or a device, which is written to as it is."""
    parts, target = Path(os.path.normpath(path)).parts, Path(os.path.realpath(path))
    device = Path(path).is_absolute() and parts[1:2] == ("dev",) and parts[2:3] != ("shm",)
    pipe = target.exists() and not target.is_file() and not Path(path).is_symlink()
    return device or pipe  # /dev/stdout may be a file


def relative(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> str:
    """Return a path as seen from a folder, with slashes; of another drive, as it is."""
    with suppress(ValueError):
        path = os.path.relpath(path, folder)
    return Path(path).as_posix()


def blocks_of(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks."""
    with Path(path).open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def file_sum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def leftovers(paths: Iterable[str | os.PathLike[str]], *, ending: str | None = None) -> list[str]:
    """Name the parts that killed processes left next to files of these names, in words.

    Nothing is opened, followed or removed: whoever may write into a folder may have put it there.

    Parameters
    ----------
    paths : iterable of path
    ending : str, optional
        Of further files in their folders.
    """
    targets = {Path(os.path.realpath(Path(path).parent)) / Path(path).name for path in paths}
    lines = []
    for folder in sorted({target.parent for target in targets if target.parent.is_dir()}):
        for path in sorted(folder.iterdir()):
            part = _PART.fullmatch(path.name)
            of = "" if part is None else part[1]
            if of and (folder / of in targets or (ending and of.endswith(ending))):
                lines.append(
                    f"{str(path)!r} is a part of {of!r}: a run is at work, or was ended; if so, "
                    "remove it, and write the files of the set again"
                )
    return lines


def _is(path: Path, written: os.stat_result) -> bool:
    """Return whether a path is of the file that was written, and of no link to it."""
    try:
        return os.path.samestat(path.lstat(), written)
    except FileNotFoundError:
        return False


def _take(part: Path, target: Path, replace: bool) -> None:
    """Rename a part; FileExistsError is raised for a target that is not to be replaced."""
    if replace:
        part.replace(target)  # which replaces a link, and follows none
        return
    try:
        os.link(part, target)
    except OSError as error:
        if isinstance(error, FileExistsError):
            problem = "was made by another process meanwhile: nothing is written"
            raise FileExistsError(errno.EEXIST, problem, str(target)) from None
        # a file system without hard links: who makes the file may replace it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        part.replace(target)
    else:
        part.unlink()


def _sync(folder: Path) -> None:
    """Let new names outlast a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
