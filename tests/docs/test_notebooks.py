"""Notebooks that are handed out: clean, without dead links, and run in Jupyter and in marimo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lengths import some_weekly
from tests.repository import ROOT, script

pytest.importorskip("myst_nb", reason="needs what builds the pages: pip install -e .[docs]")
import nbformat

notebooks = script(ROOT / "docs" / "notebooks.py")
PAGES = notebooks.executed(ROOT / "docs")
RAW = re.compile(r":::|\{[\w:]+\}`|```\{|^\([\w-]+\)=$|<div", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGE = """---
file_format: mystnb
kernelspec:
  name: python3
---
# A page

:::{div} learn
**You will learn** little of {py:class}`~cvxprivacy.Channel`.
:::

```{code-cell}
:tags: [hide-input]
x = 1
```

(a-label)=
$$
a
+ b
= c
$$

See [the other](other.md#part), [a theory](../theory/deep.md) and [the web](https://example.org/a).

1. Why?

   ```{dropdown} Answer
   Because of
   reasons.
   ```

```{code-cell}
---
tags: [hide-cell]
mystnb:
  code_prompt_show: "Answer"
---
secret = x + 1
```
"""


def test_a_page_becomes_two_clean_notebooks():
    pages = {"tutorials/page", "tutorials/other"}
    both = [notebooks.converted(PAGE, "tutorials/page", pages, solved=s) for s in (False, True)]
    for notebook in both:
        nbformat.validate(notebook)
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        assert not RAW.search(text)
        assert text.startswith(f"# A page\n\n{notebooks.INSTALL}")
        assert "**You will learn** little of `Channel`." in text
        assert "$$\na + b = c\n$$" in text  # no line of it is a list for Markdown
        links = "See [the other](other.ipynb), a theory and [the web](https://example.org/a)."
        assert links in text
        assert notebook.cells[1].metadata == {"jupyter": {"source_hidden": True}}
    asked, solved = both
    assert asked.cells[-1].source == notebooks.YOUR_CODE
    assert f"1. Why?\n\n   {notebooks.YOUR_WORDS}" in asked.cells[-2].source
    assert "secret" not in str(asked)
    assert solved.cells[-1].source == "secret = x + 1"
    assert "1. Why?\n\n   **Answer.** Because of\n   reasons." in solved.cells[-2].source
    again = notebooks.converted(PAGE, "tutorials/page", pages, solved=True)
    assert nbformat.writes(again) == nbformat.writes(solved)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("notebooks")
    notebooks.write(ROOT / "docs", out)
    return out


def test_every_notebook_is_plain_and_leads_to_its_neighbours(folder):
    written = sorted(folder.rglob("*.ipynb"))
    assert {path.parent.name for path in written} == {"tutorials", "howto", "theory"}
    assert len(written) == len(PAGES) + sum(page.startswith("tutorials/") for page in PAGES)
    for path in written:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                assert not RAW.search(cell.source), (path.name, RAW.search(cell.source))
                for address in LINK.findall(cell.source):
                    there = address.startswith("https:") or (path.parent / address).exists()
                    assert there, (path.name, address)


def test_students_see_no_answer(folder):
    for page in PAGES:
        if page.startswith("tutorials/"):
            asked, solved = (
                nbformat.read(folder / version / f"{page}.ipynb", as_version=4)
                for version in notebooks.VERSIONS
            )
            blank = [c.source for c in asked.cells].count(notebooks.YOUR_CODE)
            words = sum(notebooks.YOUR_WORDS in c.source for c in asked.cells)
            assert blank + words > 0, f"{page} asks nothing"
            assert len(asked.cells) == len(solved.cells)
            assert "**Answer.**" not in str(asked)


def run(command: list[str], folder: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, check=False,
        env={**environment, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


TUTORIALS = [page for page in PAGES if page.startswith("tutorials/")]


# Solved, a notebook has the cells of its page, which run in Jupyter when the pages are built.  A
# student's lacks the answers, on which no other cell may depend: it runs here.
# Marimo refuses a name that two cells define: of all cells, these are the most.


@pytest.mark.long
@pytest.mark.parametrize("page", some_weekly(TUTORIALS, 4))
def test_a_students_notebook_runs_in_jupyter(folder, tmp_path, page):
    client = pytest.importorskip("nbclient", reason="needs nbclient: pip install -e .[dev]")
    notebook = nbformat.read(folder / "students" / f"{page}.ipynb", as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "version"),
    some_weekly([(TUTORIALS[0], "students"), *((page, "solved") for page in TUTORIALS)], 4),
)
def test_it_runs_in_marimo(folder, tmp_path, page, version):
    pytest.importorskip("marimo", reason="needs marimo: pip install -e .[notebook]")
    source, target = folder / version / f"{page}.ipynb", tmp_path / "notebook.py"
    marimo = [sys.executable, "-m", "marimo", "--quiet"]
    run([*marimo, "convert", str(source), "-o", str(target)], tmp_path)
    run([sys.executable, str(target)], tmp_path)  # raises where a cell fails, or names clash
