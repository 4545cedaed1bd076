"""Files that appear complete or not at all, alone or as a set.

A file is written without a name, or with one that no other file has, and takes its own at the end.
No file says which other is renamed, completed or removed: what a process that ended between two
names has left is named (:func:`leftovers`), and neither opened nor touched.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, which removes and renames no file that is open
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "BINARY", "NO_LINK", "WholeFiles", "blocks_of", "file_sum", "is_device", "journals",
    "leftovers", "reachable", "relative", "sum_of", "whole_file", "whole_files",
]  # fmt: skip

BLOCK = 1 << 20
PATIENCE = 60.0  # seconds: to take its names, a set needs less than one
BINARY = getattr(os, "O_BINARY", 0)  # of Windows, which else writes other line ends
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
_PART = re.compile(r"\.[0-9a-f]{16}\.part\.(.+)", re.DOTALL)
_JOURNAL = re.compile(r"\.[0-9a-f]{16}\.pending")  # of earlier versions, which followed it


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
    """Open files that take their names together when the block has ended well, or none of them.

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
        nameless = str(error.filename or "/proc").startswith("/proc")
        if nameless and error.errno is not None and files.path:
            raise type(error)(error.errno, error.strerror, files.path) from None
        raise
    finally:
        files.close()


class WholeFiles:
    """Files of :func:`whole_files`, in the order in which they take their names.

    Attributes
    ----------
    path : str
        The file that is worked on, as it was named: of which an error without a name is.
    """

    def __init__(self, replace: bool) -> None:
        self.path, self._replace, self._token = "", replace, secrets.token_hex(8)
        self._files: list[tuple[str, Path, IO[Any]]] = []  # as typed, the target, the part
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
        file = _opened(part, 0o600 if private else 0o666, **how)  # the latter less the umask
        self._files.append((self.path, target, file))
        return file

    def finish(self) -> None:
        """Let the files take their names, each in its turn; sets of one folder do not mix."""
        for path, file in self._devices:
            self.path = path
            file.flush()
        for path, _, file in self._files:
            self.path = path
            file.flush()
            os.fsync(file.fileno())
        folders = list(dict.fromkeys(target.parent for _, target, _ in self._files))
        with _in_turn(folders if len(self._files) > 1 else []):
            for path, _, file in self._files:
                self.path = path
                _named(file)
            if fcntl is None:
                self._closed()
            self._take_names()
            for folder in folders:
                _on_disk(folder)

    def _take_names(self) -> None:
        """Let all parts take their names: an interruption waits, an error undoes what it can."""
        waiting, interruption = [*self._files], None
        while waiting:
            self.path, target, file = waiting[0]
            try:
                if os.path.lexists(file.name):  # else it was interrupted after its name was taken
                    _take(Path(file.name), target, self._replace)
                waiting.pop(0)
            except KeyboardInterrupt as error:
                interruption = error
            except BaseException as error:
                self._undone([target for _, target, _ in self._files[: -len(waiting)]], error)
                raise
        if interruption is not None:
            raise interruption

    def _undone(self, taken: Sequence[Path], error: BaseException) -> None:
        """Remove files that were not there before; say of others that they were replaced."""
        if not self._replace:
            for target in taken:
                target.unlink(missing_ok=True)
        elif taken and isinstance(error, OSError):
            names = ", ".join(target.name for target in taken)
            error.strerror = f"{error.strerror}, after {names} had been replaced: write all again"

    def close(self) -> None:
        """Close the files, and remove what has no name of its own."""
        if fcntl is None:
            self._closed()
        for _, _, file in self._files:
            with suppress(OSError):
                Path(file.name).unlink(missing_ok=True)
        self._closed()

    def _closed(self) -> None:
        for file in [*(file for *_, file in self._files), *(file for _, file in self._devices)]:
            with suppress(OSError):  # of a full disk, which was told of before
                file.close()


# ---- a file that is written --------------------------------------------------------------


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


def _opened(name: Path, permissions: int, **how: Any) -> IO[Any]:
    """Open a file without a name where there are such, else of this one."""
    try:
        if not Path("/proc/self/fd").is_dir():
            raise AttributeError
        handle = os.open(name.parent, os.O_TMPFILE | os.O_RDWR, permissions)
    except (AttributeError, OSError) as error:  # another system, or a file system without them
        if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
            raise
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | BINARY, permissions)
    return open(os.fspath(name), opener=lambda *_: handle, **how)


def _named(file: IO[Any]) -> None:
    """Call a file by the name that it was opened for, if it has none yet."""
    if _is_nameless(file):  # only with a folder given is the link followed
        link = f"/proc/self/fd/{file.fileno()}"
        os.link(link, file.name, src_dir_fd=file.fileno(), follow_symlinks=True)


def _is_nameless(file: IO[Any]) -> bool:
    return os.fstat(file.fileno()).st_nlink == 0


@contextmanager
def reachable(file: IO[Any]) -> Iterator[Path]:
    """Lend a path to a file that is being written, with the ending of its name to be.

    Nothing is copied: what has no name yet is reached through a link to the open file, which
    leads nowhere when the process has ended.
    """
    file.flush()
    path, nameless = Path(file.name), _is_nameless(file)
    if nameless:
        path.symlink_to(f"/proc/{os.getpid()}/fd/{file.fileno()}")
    try:
        yield path
    finally:
        if nameless:
            path.unlink(missing_ok=True)


def blocks_of(file: IO[Any]) -> Iterator[bytes]:
    """Yield what a file that is open for writing holds so far."""
    file.flush()
    place = f"/proc/self/fd/{file.fileno()}" if _is_nameless(file) else file.name
    with Path(place).open("rb") as again:
        while block := again.read(BLOCK):
            yield block


def sum_of(file: IO[Any]) -> str:
    """Return the SHA-256 of the same."""
    total = hashlib.sha256()
    for block in blocks_of(file):
        total.update(block)
    return total.hexdigest()


def file_sum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file that has its name."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- names that are taken ----------------------------------------------------------------


def _take(part: Path, target: Path, replace: bool) -> None:
    """Call a part by its name; FileExistsError is raised for one that is not to be replaced."""
    if replace:
        part.replace(target)  # which replaces a link, and follows none
        return
    if os.path.lexists(target) and part.samefile(target):
        part.unlink()  # of two names for one file, the latter was taken before
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


@contextmanager
def _in_turn(folders: Iterable[Path]) -> Iterator[None]:
    """Hold folders while a set takes its names: two sets of the same names would mix.

    In one order, so that nobody waits for one who waits; where there are no locks, nobody waits.
    """
    with ExitStack() as held:
        for folder in sorted(folders) if fcntl is not None else []:
            busy = False
            with suppress(OSError):
                handle = os.open(folder, os.O_RDONLY)
                held.callback(os.close, handle)
                busy = not _locked(handle)
            if busy:
                problem = f"is held by another process for {PATIENCE:g} seconds: nothing is written"
                raise TimeoutError(errno.ETIMEDOUT, problem, str(folder))
        yield


def _locked(handle: int) -> bool:
    """Lock a folder, and tell whether its turn came in time."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        else:
            return True


def _on_disk(folder: Path) -> None:
    """See that names which were taken outlast a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- what an ended process left ----------------------------------------------------------


def leftovers(paths: Iterable[str | os.PathLike[str]], *, ending: str | None = None) -> list[str]:
    """Name what processes that were ended left beside files of these names, in words.

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


def journals(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Name the journals of earlier versions in the folders of these files, in words."""
    folders = {Path(os.path.realpath(Path(path).parent)) for path in paths}
    return [
        f"{str(path)!r} is a journal, which nothing follows: remove it"
        for folder in sorted(folder for folder in folders if folder.is_dir())
        for path in sorted(folder.iterdir())
        if _JOURNAL.fullmatch(path.name)
    ]
