"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["whole_file"]


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, binary: bool = False, private: bool = False
) -> Iterator[IO[Any]]:
    """Open a file for writing that takes its name only when the block has ended well.

    An exception, or the process's death, leaves what stood under ``path`` as it was.  Where the
    system has unnamed files (Linux), not even a temporary one remains after ``kill -9``.

    Parameters
    ----------
    path : path
        A pipe or a device is opened as it is.
    binary : bool
        Bytes; else text in UTF-8 whose line ends are written as they are given.
    private : bool
        Readable by its owner only (mode 0600).

    Yields
    ------
    file object
    """
    target = Path(os.path.realpath(path))
    how: dict[str, Any] = {"mode": "wb"}
    if not binary:
        how = {"mode": "w", "encoding": "utf-8", "newline": ""}
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
    device = Path(path).is_absolute() and Path(path).parts[1] == "dev"  # /dev/stdout may be a file
    in_place = device or (target.exists() and not target.is_file())
    permissions = 0o600 if private else 0o666  # the latter less the process's umask
    with _device(path, how) if in_place else _renamed(path, target, how, permissions) as file:
        yield file


@contextmanager
def _device(path: str | os.PathLike[str], how: Mapping[str, Any]) -> Iterator[IO[Any]]:
    """Open what is no file as it is."""
    try:
        with Path(path).open(**how) as file:
            yield file
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None


@contextmanager
def _renamed(
    path: str | os.PathLike[str], target: Path, how: Mapping[str, Any], permissions: int
) -> Iterator[IO[Any]]:
    """Open a file without a name, or with another one, that becomes ``target`` at the end."""
    name = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        handle = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, permissions)
        named = False
    except (AttributeError, OSError) as error:  # another system, or a file system without them
        if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
            raise
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, permissions)
        named = True
    try:
        with os.fdopen(handle, **how) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not named:
                link = f"/proc/self/fd/{file.fileno()}"  # only with a folder given is it followed
                os.link(link, name, src_dir_fd=file.fileno(), follow_symlinks=True)
                named = True
        name.replace(target)
    except BaseException as error:
        if named:
            with suppress(FileNotFoundError):
                name.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            nameless = str(error.filename or "/proc").startswith("/proc")
            if nameless:
                raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
