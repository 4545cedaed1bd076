"""What a page shows in fences: code, commands, and what they print."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.repository import ROOT

__all__ = ["NUMBER", "PAGES", "Block", "blocks", "code_cells", "commands"]

README = ROOT / "README.md"
GENERATED = {"_build", "gallery", "generated", "jupyter_execute"}
PAGES = [
    README,
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not GENERATED.intersection(page.relative_to(ROOT).parts)
    ),
]
NUMBER = re.compile(r"[-+]?\d+\.\d+(?:e[-+]\d+)?|[-+]?\d+(?:e[-+]\d+)")
_FENCE = re.compile(r"^(`{3,})(\{?[\w-]*\}?)[^\n]*\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fence: its language, or directive in braces, and its text."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the fences of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [Block(outcome[2], outcome[3]) for outcome in _FENCE.finditer(text)]


def code_cells(page: Path) -> list[str]:
    """Return the code that is run when the page is built."""
    options = re.compile(r"\A(?::[\w-]+:[^\n]*\n)+\n?")
    return [options.sub("", b.text) for b in blocks(page) if b.language == "{code-cell}"]


def commands(block: Block) -> list[tuple[list[str], str]]:
    """Return each command of a block, in words, with what the page shows of its output."""
    matches = re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n?((?:(?!\$ )[^\n]*\n)*)", block.text, re.M)
    return [(shlex.split(command.replace("\\\n", " ")), shown) for command, shown in matches]
