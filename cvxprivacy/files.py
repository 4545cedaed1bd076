"""Files that appear complete or not at all, alone or as a set.

A file is written without a name, or with one that no other file has, and takes its own at the end.
A set notes beforehand, in a journal beside each of its files, which part becomes which file: what
a process that ended between two names has left is completed or undone by :func:`recovered`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, which removes and renames no file that is open
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "BINARY", "WholeFiles", "blocks_of", "file_sum", "is_device", "pending", "reachable",
    "recovered", "relative", "sum_of", "whole_file", "whole_files",
]  # fmt: skip

SCHEMA = "cvxprivacy pending 1"
BLOCK = 1 << 20
PATIENCE = 60.0  # seconds: to take its names, a set needs less than one
BINARY = getattr(os, "OBINARY", 0)  # of Windows, which else writes other line ends
_PART = re.compile(r"\.[0-9a-f]{16}\.part\.(.+)", re.DOTALL)
_JOURNAL = re.compile(r"\.[0-9a-f]{16}\.pending")


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


@dataclass(frozen=True)
class _Entry:
    """A file of a set: the part that it is written as, what it is to be called, its SHA-256."""

    part: Path
    target: Path
    sha256: str


class WholeFiles:
    """Files of :func:`whole_files`, in the order in which they take their names.

    Attributes
    ----------
    path : str
        The file that is worked on, as it was named: of which an error without a name is.
    """

    def __init__(self, replace: bool) -> None:
        self.path, self._replace = "", replace
        self._token, self._keeps_parts = secrets.token_hex(8), False
        self._files: list[tuple[str, Path, IO[Any]]] = []  # as typed, the target, the part
        self._others: list[tuple[str, IO[Any]]] = []  # devices, and journals

    def open(
        self, path: str | os.PathLike[str], *, binary: bool = False, private: bool = False
    ) -> IO[Any]:
        """Open a further file, with the arguments of :func:`whole_file`."""
        self.path, target = os.fspath(path), Path(os.path.realpath(path))
        how: dict[str, Any] = {"mode": "wb"}
        if not binary:
            how = {"mode": "w", "encoding": "utf-8", "newline": ""}
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder", self.path)
        if is_device(path):
            file = Path(path).open(**how)  # noqa: SIM115
            self._others.append((self.path, file))
            return file
        for line in recovered([path]):  # else it would be completed over this one, later
            warnings.warn(line, stacklevel=4)
        part = target.with_name(f".{self._token}.part.{target.name}")  # which tells the format, too
        file = _opened(part, 0o600 if private else 0o666, **how)  # the latter less the umask
        self._files.append((self.path, target, file))
        return file

    def finish(self) -> None:
        """Let the files take their names; those of a set only with a journal."""
        for path, file in self._others:
            self.path = path
            file.flush()
        for path, _, file in self._files:
            self.path = path
            file.flush()
            os.fsync(file.fileno())
        several = len(self._files) > 1
        entries = [
            _Entry(Path(file.name), target, sum_of(file) if several else "")
            for _, target, file in self._files
        ]
        folders = list(dict.fromkeys(target.parent for _, target, _ in self._files))
        journals = [folder / f".{self._token}.pending" for folder in folders if several]
        with _in_turn(folders if several else []):
            self._take_names(entries, folders, journals)

    def _take_names(
        self, entries: Sequence[_Entry], folders: Sequence[Path], journals: Sequence[Path]
    ) -> None:
        """Let parts take their names; with journals together, or none of them."""
        try:
            for journal in journals:
                self._note(entries, journal)
            for path, _, file in self._files:
                self.path = path
                _named(file)
            if fcntl is None:
                self._closed()
            for folder in folders:
                _on_disk(folder)
        except BaseException:
            _removed(journals)
            raise
        if not journals:
            for entry in entries:
                _take(entry, self._replace)
            return
        self._keeps_parts = True  # from here on they are completed or undone, here or later
        try:
            complete = _settled(entries, self._replace)
        except FileExistsError:  # another process was faster
            complete = _settled(entries, self._replace)
        except BaseException:  # a signal waits until the set is one; what cannot be stays pending
            _settled(entries, self._replace)
            _removed(journals)
            raise
        for folder in folders:
            _on_disk(folder)
        _removed(journals)
        if not complete:
            names = [path for path, target, _ in self._files if target.exists()]
            problem = "was made by another process meanwhile: nothing is written"
            raise FileExistsError(errno.EEXIST, problem, next(iter(names), self.path))

    def _note(self, entries: Sequence[_Entry], journal: Path) -> None:
        """Note in a folder what becomes of the parts, wherever they are."""
        lines = [
            {
                "part": relative(entry.part, journal.parent),
                "target": relative(entry.target, journal.parent),
                "sha256": entry.sha256,
            }
            for entry in entries
        ]
        file = _opened(journal, 0o600, mode="w", encoding="utf-8")
        self._others.append((str(journal), file))  # which holds its lock
        json.dump({"schema": SCHEMA, "replace": self._replace, "files": lines}, file)
        file.flush()
        os.fsync(file.fileno())
        _named(file)

    def close(self) -> None:
        """Close the files, and remove what has no name of its own."""
        if fcntl is None:
            self._closed()
        for _, _, file in self._files:
            if not self._keeps_parts:
                with suppress(OSError):
                    Path(file.name).unlink(missing_ok=True)
        self._closed()  # only now are the locks given up

    def _closed(self) -> None:
        for file in [*(file for *_, file in self._files), *(file for _, file in self._others)]:
            with suppress(OSError):  # of a full disk, which was told of before
                file.close()


# ---- a file that is written --------------------------------------------------------------


def is_device(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is of a pipe or a device, which is written to as it is."""
    parts, target = Path(path).parts, Path(os.path.realpath(path))
    device = Path(path).is_absolute() and parts[1:2] == ("dev",) and parts[2:3] != ("shm",)
    return device or (target.exists() and not target.is_file())  # /dev/stdout may be a file


def relative(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> str:
    """Return a path as seen from a folder, with slashes; of another drive, as it is."""
    with suppress(ValueError):
        path = os.path.relpath(path, folder)
    return Path(path).as_posix()


def _opened(name: Path, permissions: int, **how: Any) -> IO[Any]:
    """Open a file without a name where there are such, else of this one, and lock it."""
    try:
        if not Path("/proc/self/fd").is_dir():
            raise AttributeError
        handle = os.open(name.parent, os.O_TMPFILE | os.O_RDWR, permissions)
    except (AttributeError, OSError) as error:  # another system, or a file system without them
        if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
            raise
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | BINARY, permissions)
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


# ---- names of a set, taken or not --------------------------------------------------------


def _settled(entries: Sequence[_Entry], replace: bool) -> bool:
    """Call every part what it is to be called or, where that cannot be, remove those there are.

    Return whether the set is complete.  It may be called again, whatever interrupted it.
    """
    waiting = [entry for entry in entries if entry.part.exists()]
    twice = [e for e in waiting if e.target.exists() and e.part.samefile(e.target)]
    taken = [e for e in entries if e not in waiting and _sum_if_any(e.target) == e.sha256]
    free = replace or not any(e.target.exists() for e in waiting if e not in twice)
    complete = free and len(waiting) + len(taken) == len(entries)
    if complete:
        for entry in waiting:
            _take(entry, replace)
        return True
    for entry in entries:
        if not replace and entry in [*taken, *twice]:  # nothing was there before
            entry.target.unlink()
        entry.part.unlink(missing_ok=True)
    return False


def _take(entry: _Entry, replace: bool) -> None:
    """Call a part by its name; FileExistsError is raised for one that is not to be replaced."""
    if entry.target.exists() and entry.part.samefile(entry.target):
        entry.part.unlink()  # of two names for one file, the latter was taken before
    elif replace:
        entry.part.replace(entry.target)
    else:
        try:
            os.link(entry.part, entry.target)
        except OSError as error:
            if isinstance(error, FileExistsError):
                raise FileExistsError(errno.EEXIST, error.strerror, str(entry.target)) from None
            # a file system without hard links: who makes the file may replace it
            os.close(os.open(entry.target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            entry.part.replace(entry.target)
        else:
            entry.part.unlink()


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


def _sum_if_any(path: Path) -> str | None:
    with suppress(OSError):
        return file_sum(path)
    return None


def _removed(journals: Iterable[Path]) -> None:
    for journal in journals:
        journal.unlink(missing_ok=True)


def _on_disk(folder: Path) -> None:
    """See that names which were taken outlast a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- what an ended process left ----------------------------------------------------------


def recovered(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Complete or undo what ended processes left of files of these names; return it in words.

    What a process that is still at work has, or another user, is left alone.
    """
    targets = {Path(os.path.realpath(path)) for path in paths}
    lines = []
    for folder in sorted({target.parent for target in targets if target.parent.is_dir()}):
        for journal, entries, replace in _journals(folder):
            names = [entry.target.name for entry in entries]
            if targets.isdisjoint(entry.target for entry in entries):
                continue
            with _claimed(journal) as ended:
                if ended:
                    complete = _settled(entries, replace)
                    _removed(entry.target.parent / journal.name for entry in entries)
                    what = "is completed" if complete else "is undone: nothing of it is left"
                    lines.append(f"an earlier run that was ended {what}: {', '.join(names)}")
        for part in sorted(folder.glob(".*.part.*")):
            match = _PART.fullmatch(part.name)
            if match and folder / match[1] in targets:
                with _claimed(part) as ended:
                    if ended:
                        part.unlink(missing_ok=True)
                        lines.append(f"{part}: removed, which an earlier run that was ended left")
    return lines


def pending(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the files of a set with this one which have not all taken their names, or None."""
    target = Path(os.path.realpath(path))
    for _, entries, _ in _journals(target.parent):
        if target in [entry.target for entry in entries]:
            return [entry.target.name for entry in entries]
    return None


def _journals(folder: Path) -> Iterator[tuple[Path, list[_Entry], bool]]:
    """Yield the journals of a folder, with what they note."""
    for path in sorted(folder.glob(".*.pending")):
        if not _JOURNAL.fullmatch(path.name):
            continue
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
            if note["schema"] != SCHEMA:
                continue
            places = [
                [Path(os.path.normpath(folder / line[key])) for key in ("part", "target")]
                for line in note["files"]
            ]
            sums = [str(line["sha256"]) for line in note["files"]]
            replace = bool(note["replace"])
        except (OSError, ValueError, KeyError, TypeError):  # half written: of no set yet
            continue
        pairs = zip(places, sums, strict=True)
        yield path, [_Entry(part, target, total) for (part, target), total in pairs], replace


@contextmanager
def _claimed(path: Path) -> Iterator[bool]:
    """Tell whether the process that wrote a file has ended, and hold the file if so.

    It has where nobody holds the lock; a link to an open file of a process then leads nowhere.
    Files of another user are nobody's to complete: they may name any file of this one.
    """
    try:
        theirs = hasattr(os, "geteuid") and path.lstat().st_uid != os.geteuid()
    except FileNotFoundError:  # another process was faster
        theirs = True
    if theirs:
        yield False
        return
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        yield path.is_symlink()
        return
    if fcntl is None:  # there is no lock, and no open file is removed
        os.close(handle)
        yield True
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ended = path.is_symlink() or os.fstat(handle).st_nlink > 0
    except OSError:
        ended = False
    try:
        yield ended
    finally:
        os.close(handle)
