"""The dossier of a release or an audit: what a disclosure board reads and signs.

``--report report.html`` writes a page that needs nothing else, ``--report report.json`` the same
facts as data, by the JSON Schema that :func:`schema` returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.dossier.sections import schema
from cvxprivacy_sdc.statements.outputs import Output

__all__ = ["report_outputs", "report_targets", "schema"]

_KINDS = {".html": "html", ".htm": "html", ".json": "json"}


def report_targets(paths: Sequence[str]) -> dict[str, str]:
    """Return the paths of ``--report`` under names for errors; what is no report is refused."""
    kinds: dict[str, str] = {}
    for path in paths:
        kind = _KINDS.get(Path(path).suffix.lower())
        if kind is None:
            remedy = "end its name in .html for a page, or in .json for the same as data"
            raise InputError("--report", f"{path!r} says no format", remedy, value=path)
        if kind in kinds:
            problem, remedy = f"two of format {kind}", "pass one .html and one .json at most"
            raise InputError("--report", problem, remedy, value=path)
        kinds[kind] = path
    return dict(zip(("report", "report, again"), kinds.values(), strict=False))


def report_outputs(
    targets: Mapping[str, str], facts: Callable[[], dict[str, Any]]
) -> list[Output]:  # fmt: skip
    """Return the files of a report; the facts are made once, when the first is written."""
    made = cache(facts)

    def writer(path: str) -> Callable[[IO[str]], None]:
        """Return what writes the facts in the format of a file's name."""
        render = _json if Path(path).suffix.lower() == ".json" else _page

        def write(file: IO[str]) -> None:
            file.write(render(made()))

        return write

    return [Output(name, path, writer(path), private=True) for name, path in targets.items()]


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _page(facts: Mapping[str, Any]) -> str:
    from cvxprivacy_sdc.dossier.page import html

    return html(facts)
