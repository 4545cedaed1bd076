"""``python -m cvxprivacy_verifier proof.json``: what is proved, in words, or what is not."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence

from .statement import for_console, reported
from .verify import disagreements, read_document
from .work import allowing


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the files named; exit 0 if all are proved, 1 if one is not, 2 if unreadable."""
    paths = list(sys.argv[1:] if arguments is None else arguments)
    times = 1.0
    if paths[:1] == ["--work"] and len(paths) > 1:
        try:
            times = float(paths[1])
        except ValueError:
            paths = []
        paths = paths[2:] if 0 < times < math.inf else []
    if not paths or paths[0] in ("-h", "--help"):
        print("usage: python -m cvxprivacy_verifier [--work TIMES] PROOF.json …")
        print("--work TIMES: allow so many times the usual work and memory (10 minutes, 1 GiB)")
        return 0 if paths else 2
    with allowing(times):
        return max(map(_verified, paths))


def _verified(path: str) -> int:
    """Verify a file, and say what is proved or what is not."""
    try:
        document = read_document(path)
    except (OSError, ValueError, RecursionError) as error:
        print(f"{path}: unreadable: {error}", file=sys.stderr)
        return 2
    problems = disagreements(document)
    if problems:
        text = "\n  ".join([f"{path}: NOT verified", *problems])
        _say(for_console(text, sys.stdout.encoding))
        return 1
    _say(reported(path, document, sys.stdout.encoding))
    return 0


def _say(text: str) -> None:
    """Print a text; who reads may have seen enough, and the exit code counts what is left."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
