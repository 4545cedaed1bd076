"""Long work: many solves in any order, kept as they come, on one core or on a cluster.

A *search* says which tasks it wants next, and takes their results; what it wants depends on the
results alone, never on the order or the time in which they came, so that every number of workers
ends with the same points.  Workers are joblib's: processes by default, or whatever backend
``joblib.parallel_config`` names (Dask, Ray).  Each keeps to one BLAS thread.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cvxprivacy.errors import InputError
from cvxprivacy.frontiers.family import digest

__all__ = ["Search", "explore"]

SCHEMA = "cvxprivacy checkpoint 1"

Task = Any  # what JSON can hold
Result = dict[str, Any]


class Worker(Protocol):
    """What a worker process is given; ``digest`` says which problem it is."""

    digest: str

    def work(self, task: Task) -> Result:
        """Do one task."""
        ...


class Search(Protocol):
    """What decides which tasks are worth doing."""

    @property
    def worker(self) -> Worker: ...

    def wanted(self) -> list[Task]:
        """Return tasks to do next, the most useful first; none when done."""
        ...

    def take(self, task: Task, result: Result) -> None:
        """Take the result of a task."""
        ...

    def said(self) -> str:
        """Return how far it is, for a line of progress."""
        ...


def explore(
    searches: Sequence[Search],
    *,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str], None] = False,
) -> bool:
    """Do what the searches want until none wants more; return False if it was interrupted.

    Parameters
    ----------
    n_jobs : int, optional
        Workers, as joblib counts them: −1 is all cores; None is 1, or what
        ``joblib.parallel_config`` says.
    checkpoint : path, optional
        A file that each result is appended to as it comes, readable by its owner only.  If it
        is there, what it holds is not done again.
    progress : bool or callable
        Write a line to standard error, or hand it to a function, after each result.
    """
    say = progress if callable(progress) else _line if progress else None
    log = Checkpoint(checkpoint, [search.worker.digest for search in searches])
    try:
        while wanted := [(i, task) for i, s in enumerate(searches) for task in s.wanted()]:
            for i, task in wanted:
                if (known := log.known(i, task)) is not None:
                    searches[i].take(task, known)
            new = [(i, task) for i, task in wanted if log.known(i, task) is None]
            with closing(_results(searches, new, n_jobs)) as results:
                for (i, task), result in zip(new, results, strict=False):
                    log.add(i, task, result)
                    searches[i].take(task, result)
                    if say is not None:
                        say("; ".join(search.said() for search in searches))
    except KeyboardInterrupt:
        return False
    finally:
        log.close()
        if say is _line:
            sys.stderr.write("\n")
    return True


def _results(
    searches: Sequence[Search], tasks: Sequence[tuple[int, Task]], n_jobs: int | None
) -> Generator[Result]:
    """Yield the results in the order of the tasks."""
    calls = (delayed(_worked)(searches[i].worker, task) for i, task in tasks)
    yield from Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)(calls)


def _worked(worker: Worker, task: Task) -> Result:
    with threadpool_limits(limits=1):
        return worker.work(task)


def _line(text: str) -> None:
    """Rewrite the last line of standard error."""
    width = 78
    sys.stderr.write("\r" + text[:width].ljust(width))
    sys.stderr.flush()


class Checkpoint:
    """Results in a file of JSON lines, the first of which says whose they are.

    A result is one ``write``, flushed to the disk; half a line, which a killed process may leave
    behind, is cut off when the file is opened again.
    """

    def __init__(self, path: str | os.PathLike[str] | None, digests: Sequence[str]) -> None:
        self.results: dict[str, Result] = {}
        self.handle: int | None = None
        if path is None:
            return
        self.path = os.fspath(path)
        try:
            self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            os.fchmod(self.handle, 0o600)  # it may have stood there, empty and open to all
        except OSError as error:
            problem = f"{self.path!r} cannot be opened ({error.strerror})"
            raise InputError("checkpoint", problem, "pass a file in a folder that exists") from None
        try:
            self._resume({"schema": SCHEMA, "problems": list(digests)})
        except BaseException:
            self.close()
            raise

    def _resume(self, header: Mapping[str, Any]) -> None:
        assert self.handle is not None
        with os.fdopen(os.dup(self.handle), "rb") as file:
            lines = file.read().split(b"\n")
        whole = sum(len(line) + 1 for line in lines[:-1])
        for number, line in enumerate(lines[:-1]):
            try:
                entry = json.loads(line)
                if number:
                    if entry["sha256"] != digest([entry["task"], entry["result"]]):
                        raise ValueError("it was changed")
                    self.results[_key(*entry["task"])] = entry["result"]
                    continue
                if entry["schema"] != SCHEMA:
                    raise ValueError(f"its schema is {entry['schema']!r}")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                problem = f"line {number + 1} of {self.path!r} is no result ({error})"
                raise InputError("checkpoint", problem, "pass another file") from None
            if entry != header:
                problem = f"{self.path!r} belongs to another problem, or another accuracy"
                raise InputError("checkpoint", problem, "pass another file")
        if not whole and not json.dumps(header).encode().startswith(lines[0]):
            problem = f"{self.path!r} is no checkpoint"
            raise InputError("checkpoint", problem, "pass another file")
        os.ftruncate(self.handle, whole)
        os.lseek(self.handle, 0, os.SEEK_END)
        if not whole:
            self._write(header)

    def known(self, search: int, task: Task) -> Result | None:
        return self.results.get(_key(search, task))

    def add(self, search: int, task: Task, result: Result) -> None:
        if self.handle is not None:
            parts = json.loads(json.dumps([[search, task], result]))
            self._write({"task": parts[0], "result": parts[1], "sha256": digest(parts)})

    def _write(self, entry: Any) -> None:
        assert self.handle is not None
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n"
        data = memoryview(line.encode())
        while data:
            data = data[os.write(self.handle, data) :]
        os.fsync(self.handle)

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


def _key(search: int, task: Task) -> str:
    return json.dumps([search, task])
