"""Changes of a proof's document, and the verifier as a command."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

from cvxprivacy_verifier import verify

Document = dict[str, Any]
Place = tuple[Any, ...]


def signed(document: Document) -> Document:
    """Return a document under a digest of its own."""
    return {**document, "sha256": verify.digest(document)}


def get(document: Any, path: Place) -> Any:
    for key in path:
        document = document[next(iter(document)) if key == "*" else key]
    return document


def put(*path: Any, value: Any) -> Callable[[Document], None]:
    """Return what writes ``value`` at a path into a document; "*" is the first key there."""

    def change(document: Document) -> None:
        get(document, path[:-1])[path[-1]] = value

    return change


def changed(document: Document, *path: Any, value: Any) -> Document:
    """Return a document with one thing changed, under a digest of its own."""
    wrong = copy.deepcopy(document)
    here = get(wrong, path[:-1])
    here[path[-1]] = value(here[path[-1]]) if callable(value) else value
    return signed(wrong)


def leaves(node: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the path to every leaf, and to every container as well (they can be dropped)."""
    if path:
        yield path
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield from leaves(node[key], (*path, key))


def run(*arguments: str, limit: float = 60) -> subprocess.CompletedProcess[str]:
    """Run the verifier in a fresh process."""
    command = [sys.executable, "-m", "cvxprivacy_verifier", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
