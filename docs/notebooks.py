"""Executed pages as notebooks to hand out: solved, and for students, with empty cells for answers.

They are written when the pages are built, without outputs: whoever opens one runs it.  Markdown is
plain, and a link leads to a notebook of the same folder or to an address of the web; of any other
its text is kept.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook

__all__ = ["VERSIONS", "executed", "note", "write"]

VERSIONS = ("students", "solved")

INSTALL = (
    "*Runs where `cvxprivacy` is installed with what its examples need: "
    '`pip install -e ./verifier -e ".[examples]" -e ./sdc` in a copy of the repository.*'
)
YOUR_CODE, YOUR_WORDS = "# your answer", "*Your answer:*"

_FENCE = re.compile(r"^( *)(:::+|```+)\{(\w+)\}[^\n]*\n(.*?)^\1\2 *$\n?", re.M | re.S)
_LABEL = re.compile(r"^\([\w-]+\)=\n", re.M)
_ROLE = re.compile(r"\{[\w:]+\}`~?(?:[\w.]+\.)?(\w+)`")
_FORMULA = re.compile(r"^( *)\$\$.*?\$\$", re.M | re.S)
_MARKED = re.compile(r"\n\s*(?=[-+*=#>])")  # a line of a formula that Markdown takes for a list
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def executed(docs: Path) -> list[str]:
    """Return the pages that are handed out as notebooks, without their suffix."""
    pages = (
        path for folder in ("tutorials", "howto", "theory") for path in docs.glob(f"{folder}/*.md")
    )
    names = {
        path.relative_to(docs).with_suffix("").as_posix()
        for path in pages
        if path.read_text(encoding="utf-8").startswith("---\nfile_format: mystnb")
    }
    return sorted(names)


def note(page: str, docs: Path) -> str:
    """Return the last words of a page: where its notebooks are."""
    if page not in executed(docs):
        return ""
    links = [
        f"{{download}}`{version} <../_static/notebooks/{version}/{page}.ipynb>`"
        for version in VERSIONS
        if version == "solved" or page.startswith("tutorials/")
    ]
    words = f"for {links[0]}, and {links[1]}" if len(links) > 1 else links[0]
    return f"\n\n---\nThis page as a notebook, for Jupyter or marimo: {words}.\n"


def write(docs: Path, out: Path) -> None:
    """Write all notebooks, and the tutorials of each version in one archive."""
    pages = executed(docs)
    for version in VERSIONS:
        files: dict[str, str] = {}
        for page in pages:
            if version == "solved" or page.startswith("tutorials/"):
                source = (docs / f"{page}.md").read_text(encoding="utf-8")
                notebook = converted(source, page, set(pages), solved=version == "solved")
                files[f"{page}.ipynb"] = nbformat.writes(notebook) + "\n"
        for name, text in files.items():
            path = out / version / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        with zipfile.ZipFile(
            out / f"tutorials-{version}.zip", "w", zipfile.ZIP_DEFLATED
        ) as archive:
            for name, text in files.items():
                if name.startswith(
                    "tutorials/"
                ):  # dated alike, so that equal pages are equal files
                    archive.writestr(zipfile.ZipInfo(name.rpartition("/")[2]), text)


def converted(source: str, page: str, pages: set[str], *, solved: bool) -> nbformat.NotebookNode:
    """Return a page as a notebook."""
    title, cells = page.rpartition("/")[2], []
    for cell in read_myst_markdown_notebook(source).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code":
            answer = "hide-cell" in tags
            code = cell.source if solved or not answer else YOUR_CODE
            folded = {"jupyter": {"source_hidden": True}} if "hide-input" in tags else {}
            cells.append(nbformat.v4.new_code_cell(code, metadata=folded))
        elif text := _plain(cell.source, page, pages, solved=solved).strip():
            cells.append(nbformat.v4.new_markdown_cell(text))
    head, _, rest = cells[0].source.partition("\n")
    cells[0].source = f"{head}\n\n{INSTALL}\n{rest}"
    for i, cell in enumerate(cells):
        cell.id = f"{title}-{i}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _plain(text: str, page: str, pages: set[str], *, solved: bool) -> str:
    """Return Markdown without directives and roles, its links followed or left out."""

    def fence(match: re.Match[str]) -> str:
        indent, kind, inner = match[1], match[3], match[4]
        if kind != "dropdown":
            return inner
        return f"{indent}**Answer.** {inner.lstrip()}" if solved else f"{indent}{YOUR_WORDS}\n"

    def link(match: re.Match[str]) -> str:
        words, address = match[1], match[2]
        if address.startswith("https:"):
            return match[0]
        folder, target = page.rpartition("/")[0], address.partition("#")[0]
        if target.endswith(".md") and f"{folder}/{target[:-3]}" in pages:
            return f"[{words}]({target[:-3]}.ipynb)"
        return words

    text = _FORMULA.sub(lambda formula: _MARKED.sub(" ", formula[0]), text)
    return _LINK.sub(link, _ROLE.sub(r"`\1`", _LABEL.sub("", _FENCE.sub(fence, text))))
