"""Long work: many solves in any order, kept as they come, on one core or on a cluster.

A *search* says which tasks it wants next, and takes their results; what it wants depends on the
results alone, never on the order or the time in which they came, so that every number of workers
ends with the same points.  Workers are joblib's: processes by default, or whatever backend
``joblib.parallel_config`` names (Dask, Ray).  Each keeps to one BLAS thread.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import closing
from typing import Any, Protocol

from joblib import Parallel, delayed

from cvxprivacy.errors import InputError
from cvxprivacy.files import BINARY, NO_LINK
from cvxprivacy.frontiers.stored import digest
from cvxprivacy.solvers.threads import one_thread
from cvxprivacy_verifier import verify

__all__ = ["Search", "explore"]

SCHEMA = f"cvxprivacy checkpoint 2, {verify.SCHEMA}"  # results hold certificates

Task = Any  # what JSON can hold
Result = dict[str, Any]
Progress = bool | Callable[[str], None]


class Search(Protocol):
    """What decides which tasks are worth doing."""

    @property
    def digest(self) -> str:
        """What tells its problem from all others."""

    @property
    def work(self) -> Callable[[Task], Result]:
        """What does a task, in a worker process."""

    def next_tasks(self) -> list[Task]:
        """Return tasks to do next, the most useful first; none when done."""

    def take(self, task: Task, result: Result) -> None:
        """Take the result of a task."""

    @property
    def share(self) -> float:
        """About how much of it is done."""

    def progress(self) -> str:
        """Return how far it is, in a line."""


def explore(
    searches: Sequence[Search],
    *,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = False,
    labels: Sequence[Hashable] = (),
) -> bool:
    """Do what the searches want until none wants more; return False if it was interrupted.

    The options are those of :func:`cvxprivacy.frontier`, ``labels`` those of several searches.
    """
    report = progress if callable(progress) else _rewrite_line if progress else None
    lines = _Lines(report, searches, labels)
    log = Checkpoint(checkpoint, [search.digest for search in searches])
    try:
        while tasks := [(i, task) for i, s in enumerate(searches) for task in s.next_tasks()]:
            new = []
            for i, task in tasks:
                if (result := log.results.get(_key(i, task))) is not None:
                    searches[i].take(task, result)
                    lines.take(i, solved=False)
                else:
                    new.append((i, task))
            with closing(_results(searches, new, n_jobs)) as results:
                for (i, task), result in zip(new, results, strict=False):
                    log.add(i, task, result)
                    searches[i].take(task, result)
                    lines.take(i, solved=True)
    except KeyboardInterrupt:
        return False
    finally:
        log.close()
        if report is _rewrite_line:
            sys.stderr.write("\n")
    return True


class _Lines:
    """Tells how far one search is, or how many of several are done and which was solved last."""

    def __init__(
        self,
        report: Callable[[str], object] | None,
        searches: Sequence[Search],
        labels: Sequence[Hashable],
    ) -> None:
        self.report, self.searches, self.labels = report, searches, labels
        self.shares = [0.0 for _ in searches]
        self.gained, self.seconds, self.since = 0.0, 0.0, time.monotonic()

    def take(self, i: int, *, solved: bool) -> None:
        """Note the share of a search, and tell of a solve; what was read took no time."""
        if self.report is None:
            return
        search, before, now = self.searches[i], self.shares[i], time.monotonic()
        self.shares[i] = search.share if search.next_tasks() else 1.0
        if solved:
            self.gained += self.shares[i] - before
            self.seconds += now - self.since
            self.report(self._newest(i))
        self.since = now

    def _newest(self, i: int) -> str:
        """Return the line after a solve of search ``i``."""
        left = len(self.shares) - sum(self.shares)
        seconds = left * self.seconds / self.gained if self.gained > 0 else math.inf
        after = f", {seconds:.0f} s left" if left and math.isfinite(seconds) else ""
        if len(self.shares) == 1:
            return self.searches[i].progress() + after
        done = self.shares.count(1.0)
        return f"{done}/{len(self.shares)}, {self.labels[i]}{after}"


def _results(
    searches: Sequence[Search], tasks: Sequence[tuple[int, Task]], n_jobs: int | None
) -> Generator[Result]:
    """Yield the results in the order of the tasks; no worker is started for none."""
    calls = (delayed(_work)(searches[i].work, task) for i, task in tasks)
    yield from Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)(calls)


def _work(work: Callable[[Task], Result], task: Task) -> Result:
    with one_thread():
        return work(task)


def _rewrite_line(text: str) -> None:
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
        self._handle: int | None = None
        if path is None:
            return
        self._path = os.fspath(path)
        try:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | BINARY | NO_LINK, 0o600)
        except OSError as error:
            problem = f"{self._path!r} cannot be opened ({error.strerror})"
            raise InputError("checkpoint", problem, "pass a file in a folder that exists") from None
        try:
            self._resume(self._handle, {"schema": SCHEMA, "problems": list(digests)})
            if hasattr(os, "fchmod"):  # Windows before 3.13 has none, and no such permissions
                os.fchmod(self._handle, 0o600)  # it may have stood there, empty and open to all
        except BaseException:
            self.close()
            raise

    def _resume(self, handle: int, header: dict[str, Any]) -> None:
        with os.fdopen(os.dup(handle), "rb") as file:
            *lines, partial = file.read().split(b"\n")
        if not lines and not json.dumps(header).encode().startswith(partial):
            raise self._refused("is no checkpoint")
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                if number > 1:
                    if entry["sha256"] != digest([entry["task"], entry["result"]]):
                        raise ValueError("it was changed")
                    self.results[_key(*entry["task"])] = entry["result"]
                elif entry["schema"] != SCHEMA:
                    raise ValueError(f"its schema is {entry['schema']!r}")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise self._refused(f"has no result in line {number} ({error})") from None
            if number == 1 and entry != header:
                raise self._refused("belongs to another problem, or another accuracy")
        os.ftruncate(handle, sum(len(line) + 1 for line in lines))
        os.lseek(handle, 0, os.SEEK_END)
        if not lines:
            self._write(header)

    def _refused(self, problem: str) -> InputError:
        return InputError("checkpoint", f"{self._path!r} {problem}", "pass another file")

    def add(self, search: int, task: Task, result: Result) -> None:
        """Append a result."""
        if self._handle is not None:
            parts = json.loads(json.dumps([[search, task], result]))
            self._write({"task": parts[0], "result": parts[1], "sha256": digest(parts)})

    def _write(self, entry: Any) -> None:
        assert self._handle is not None
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n"
        data = memoryview(line.encode())
        while data:
            data = data[os.write(self._handle, data) :]
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file; to close it twice does no harm."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _key(search: int, task: Task) -> str:
    return json.dumps([search, task])
