"""The file that stays in the house: which files are of one set, and the key of their keyed sums.

A plain SHA-256 of a confidential file tells whoever guesses the file that the guess is right; with
all but one record known, that is few guesses.  What leaves the house names such files by
HMAC-SHA-256, under a key that ``NAME.house.json`` beside the first of them keeps.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from cvxprivacy.files import blocks_of, file_sum, is_device, leftovers, relative

__all__ = ["CheckedSet", "House", "checked_set", "manifest"]

SCHEMA = "cvxprivacy house 1"
ENDING = ".house.json"
MOST_BYTES = 16 << 20  # of such a file that is read
_SUM = re.compile("[0-9a-f]{64}")
PURPOSE = "which files are of one set, and the key of keyed SHA-256 sums; it stays in the house"


@dataclass
class House:
    """The file beside a set of outputs that stays in the house.

    Attributes
    ----------
    path : str or None
        None where a single file is written that is no report, or none but devices.
    original : str or None
        Path of the confidential table.
    key : str
        64 hexadecimal digits.
    entries : dict
        What else is kept.
    """

    path: str | None
    original: str | None = None
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    entries: dict[str, Any] = field(default_factory=dict)
    digest: Any = None  # of the original, where it was summed while it was read

    @classmethod
    def of(
        cls, targets: Mapping[str, str | None], original: str | None = None, *,
        always: bool = False,
    ) -> House:  # fmt: skip
        """Return the file of these outputs, which is named after the first of them.

        ``always`` says that there is one of a single file, too: its order is kept there.
        """
        files = {name: path for name, path in targets.items() if path and not is_device(path)}
        wanted = len(files) > (not always) or any(name.startswith("report") for name in files)
        return cls(next(iter(files.values())) + ENDING if wanted else None, original)

    @property
    def name(self) -> str | None:
        """Its name without folder."""
        return None if self.path is None else Path(self.path).name

    def follow(self, opened: Any) -> None:
        """Sum an original that was opened while it is read the next time, if that is of text."""
        text = getattr(opened, "text", None)
        if self.path is not None and text is not None and text.path.suffix.lower() != ".gz":
            self.digest = text.digest = self._hmac()

    def keyed(self, blocks: Iterable[bytes]) -> str:
        """Return the keyed sum of what a file holds."""
        total = self._hmac()
        for block in blocks:
            total.update(block)
        return total.hexdigest()

    def _hmac(self) -> hmac.HMAC:
        return hmac.new(bytes.fromhex(self.key), digestmod=hashlib.sha256)

    @cached_property
    def table(self) -> dict[str, Any]:
        """The name of the original without folder, and its keyed sum."""
        path = Path(str(self.original))
        if self.digest is not None:
            return {"name": path.name, "keyed_sha256": self.digest.hexdigest()}
        return {"name": path.name, "keyed_sha256": self.keyed(blocks_of(path))}

    def write(self, file: IO[str], written: Mapping[str, tuple[str, IO[Any]]]) -> None:
        """Write what is kept, once the files of the set are: their paths, by their options."""
        folder = Path(os.path.realpath(str(self.path))).parent
        document = {
            "schema": SCHEMA,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "key": self.key,
            "files": {
                option: {
                    "name": relative(os.path.realpath(path), folder),
                    "sha256": file_sum(part.name),
                }
                for option, (path, part) in written.items()
            },
            **({} if self.original is None else {"table": self.table}),
            **self.entries,
        }
        json.dump(document, file, ensure_ascii=False, indent=1)
        file.write("\n")


def manifest(path: Path) -> dict[str, Any] | None:
    """Return what a file of a set keeps; None of a pipe, of something else, of another user's.

    Whoever may write into the folder may have put it there: its shape is that of one that was
    written, and what names it holds is not.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        document = json.loads(data.decode("utf-8")) if len(data) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return document if _is_manifest(document) else None


def _is_manifest(document: Any) -> bool:
    """Tell the shape of what :meth:`House.write` writes."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return False
    files, table = document.get("files"), document.get("table")
    entries = [*files.values()] if isinstance(files, dict) else [None]
    return (
        _is_sum(document.get("key"))
        and all(_is_entry(entry, "sha256") for entry in entries)
        and (table is None or _is_entry(table, "keyed_sha256"))
    )


def _is_entry(entry: Any, total: str) -> bool:
    """Tell a file's name with a sum from anything else."""
    named = isinstance(entry, dict) and isinstance(entry.get("name"), str)
    return named and "\0" not in entry["name"] and _is_sum(entry.get(total))


def _is_sum(value: Any) -> bool:
    return isinstance(value, str) and _SUM.fullmatch(value) is not None


# ---- a set that is checked ---------------------------------------------------------------


@dataclass(frozen=True)
class CheckedSet:
    """What the set of files of a proof is found to be.

    Attributes
    ----------
    problems, lines : list of str
        What is wrong with it, and what is to be said of it; nothing of a proof that is of no set.
    """

    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def checked_set(proof: str, table: str | None = None) -> CheckedSet:
    """Check the set of files that a proof is of, where a file beside it says what that is.

    Parameters
    ----------
    table : str, optional
        The original, whose keyed sum is compared with that of the report.
    """
    if unfinished := leftovers([proof], ending=ENDING):
        return CheckedSet(unfinished)
    houses = [(path, document, _differing(path, document)) for path, document in _houses(proof)]
    if not houses:
        return CheckedSet()
    # an older set may have had a proof of this name
    path, document, differ = min(houses, key=lambda house: bool(house[2]))
    if differ:
        return CheckedSet([f"{path.name}: not of one set: {', '.join(differ)}"])
    lines = [f"{path.name}: the files of its set that are here are those that were written with it"]
    if table is not None and document.get("table") and Path(table).is_file():
        sums = House(None, table, document["key"]).table["keyed_sha256"]
        same = sums == document["table"]["keyed_sha256"]
        words = "the file itself" if same else "another file than the one that was released"
        lines.append(f"{table}: {words}, by its keyed SHA-256")
    return CheckedSet([], lines)


def _houses(proof: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the files beside a proof that name it."""
    documents, target = [], Path(os.path.realpath(proof))
    for path in sorted(target.parent.glob(f"*{ENDING}")):
        document = manifest(path)
        names = [] if document is None else [e["name"] for e in document["files"].values()]
        if document is not None and target.name in names:
            documents.append((path, document))
    return documents


def _differing(path: Path, document: Mapping[str, Any]) -> list[str]:
    """Return the files of a set that are there and are not those that were written.

    Those of other folders are not looked at: an enemy's manifest could name any file, and tell by
    its sum what is in it.
    """
    from cvxprivacy.tables.labels import printable  # which loads NumPy

    differ = []
    for entry in document["files"].values():
        file = path.parent / entry["name"]
        beside = file.name == entry["name"] and file.is_file() and not file.is_symlink()
        if beside and file_sum(file) != entry["sha256"]:
            differ.append(printable(entry["name"]))
    return differ
