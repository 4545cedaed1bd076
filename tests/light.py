"""What an install without extras does; ``test_extras.py`` runs it in a process of its own.

Packages are hidden as if they were not installed, and what is asked in JSON is answered in JSON.
"""

from __future__ import annotations

import doctest
import json
import pkgutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO

SPARED = (  # words of examples that are of an extra
    ".compare(",
    ".masking",
    ".slice(",
    ".to_frame(",
    "load_",
    "pandas",
    "probabilistic_linkage(",
    "solve_all(",
)


def examples(name: str) -> dict[str, str]:
    """Return how the examples of a package fail, empty where they do not; all modules load."""
    package = import_module(name)
    outcome = {}
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda _: None):
        if module.name.endswith("__main__"):
            continue
        for test in finder.find(import_module(module.name)):
            text = "".join(example.source for example in test.examples)
            if text and not any(word in text for word in SPARED):
                lines: list[str] = []
                doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=lines.append)
                outcome[test.name] = "".join(lines)
    return outcome


def ending(code: str) -> str:
    """Return how a piece of code ends: its error, or nothing."""
    try:
        exec(code, {})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def command(words: list[str]) -> tuple[int, str]:
    """Return the exit code of a command, and all that it prints as errors."""
    from cvxprivacy_sdc.commands import main

    errors = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(errors):
        try:
            main(words, prog_name="cvxprivacy")
        except SystemExit as ended:
            return ended.code or 0, errors.getvalue()
    return 0, errors.getvalue()


if __name__ == "__main__":
    asked = json.loads(sys.stdin.read())
    for name in asked["hidden"]:
        sys.modules[name] = None  # type: ignore[assignment]
    answer = {
        "examples": examples("cvxprivacy") if asked["examples"] else {},
        "code": {name: ending(code) for name, code in asked["code"].items()},
        "commands": {name: command(words) for name, words in asked["commands"].items()},
    }
    print(json.dumps(answer))
