"""Write ``tests/data/api.txt`` and ``api_sdc.txt``: the public names, with their signatures.

``python -m tests.api``.  A line that goes, or an argument, is a break that CHANGELOG tells of, and
from 1.0 on one that was deprecated for a version: see CONTRIBUTING.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = {"cvxprivacy": "api", "cvxprivacy_sdc": "api_sdc"}  # of the reference, and files of data
LISTED = re.compile(r"^   (?P<name>[a-zA-Z_][\w.]*)$", re.MULTILINE)


def stored(package: str) -> Path:
    """Return the file of a package's names."""
    return ROOT / "tests" / "data" / f"{PAGES[package]}.txt"


def public(package: str) -> dict[str, Any]:
    """Return what the reference documents of a package, by dotted name without the package's."""
    page = (ROOT / "docs" / "reference" / f"{PAGES[package]}.md").read_text(encoding="utf-8")
    values = {}
    for dotted in LISTED.findall(page):
        *modules, name = dotted.split(".")
        module = importlib.import_module(".".join([package, *modules]))
        values[dotted] = getattr(module, name)
    return values


def signature(value: Any) -> str:
    """Return the arguments of a callable, with defaults and without annotations."""
    try:
        arguments = inspect.signature(value)
    except (TypeError, ValueError):  # of a class that is made by no call
        return "(…)"
    plain = [p.replace(annotation=p.empty) for p in arguments.parameters.values()]
    text = str(arguments.replace(parameters=plain, return_annotation=arguments.empty))
    return re.sub(r"<(?:object|function|class) [^>]*>", "…", text)


def members(value: type) -> Iterator[str]:
    """Yield the public methods of a class with their signatures, and its properties.

    What it has from a class of another package is not promised here.
    """
    ours = [c for c in value.__mro__ if c.__module__.split(".")[0] in PAGES]
    for name in sorted({name for owner in ours for name in vars(owner)}):
        if not name.startswith("_"):
            static = inspect.getattr_static(value, name)
            called = inspect.isfunction(static) or isinstance(static, classmethod | staticmethod)
            yield f"{name}{signature(getattr(value, name))}" if called else name


def lines(package: str) -> Iterator[str]:
    """Yield a line for each public name, and one for each of its members."""
    for dotted, value in sorted(public(package).items()):
        yield f"{dotted}{signature(value)}" if callable(value) else dotted
        if inspect.isclass(value) and not issubclass(value, Exception):
            yield from (f"    .{member}" for member in members(value))


def main() -> None:
    """Write the files."""
    for package in PAGES:
        stored(package).write_text("\n".join(lines(package)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
