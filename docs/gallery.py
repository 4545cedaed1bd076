"""The gallery: each script of ``problems/`` and ``figures/`` is run, and shown with what it says.

A script's page is written from the script itself: its first line is the title, the rest of its
docstring the text, and below stand its picture, what it printed, and its code.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECTIONS = {
    "problems": (
        "Worked problems",
        "Each states a program, solves it, compares the answer with theory, and draws.",
    ),
    "figures": (
        "Figures of the papers",
        "Each sets the numbers that the paper prints beside those that are found here.",
    ),
}
PAGE = """# {title}

{body}

{result}

## The script

```{{literalinclude}} ../../{path}
:language: python
:start-at: {first}
```
"""
CARD = """:::{{grid-item-card}} {title}
:link: {stem}
:link-type: doc
{picture}:::
"""
PICTURE = ":img-top: {stem}.png\n:img-alt: The picture that {path} draws\n"


def scripts(root: Path) -> list[Path]:
    """Return the scripts, problems first."""
    return [path for folder in SECTIONS for path in sorted((root / folder).glob("*.py"))]


def run(path: Path, root: Path, folder: Path, changed: float) -> str:
    """Run a script on its quick setting, if it has one, and return what it printed.

    What is there already is kept, unless the script has changed since, or the package, at the time
    ``changed``.
    A script that refuses, as its data cannot be had, is run again next time.

    Raises
    ------
    RuntimeError
        For a script that breaks.
    """
    picture, printed = folder / f"{path.stem}.png", folder / f"{path.stem}.txt"
    if not printed.exists() or printed.stat().st_mtime < max(changed, path.stat().st_mtime):
        quick = ["--quick"] if "quick=False" in path.read_text(encoding="utf-8") else []
        done = subprocess.run(
            [sys.executable, str(path), *quick, "--out", str(picture)],
            capture_output=True, text=True, encoding="utf-8", cwd=root, check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "agg"},
        )  # fmt: skip
        if "Traceback" in done.stderr:
            raise RuntimeError(f"{path.name} breaks:\n{done.stderr}")
        if done.returncode:
            picture.unlink(missing_ok=True)
            printed.unlink(missing_ok=True)
            return f"It was not run for these pages.\n{done.stderr.strip()}"
        said = done.stdout.partition("\n")[2].rpartition("\npicture:")[0].strip("\n")
        printed.write_text(said, encoding="utf-8")
    return printed.read_text(encoding="utf-8")


def page(path: Path, root: Path, folder: Path, said: str) -> str:
    """Return a script's page."""
    source = path.read_text(encoding="utf-8")
    title, _, body = ast.get_docstring(ast.parse(source)).partition("\n")
    code = next(line for line in source.splitlines() if line.startswith(("import ", "from ")))
    drawn = (folder / f"{path.stem}.png").exists()
    picture = f"![The picture that the script draws]({path.stem}.png)\n\n" if drawn else ""
    result = f"{picture}```text\n{said}\n```"
    place = path.relative_to(root).as_posix()
    return PAGE.format(title=title.rstrip("."), body=body.strip(), result=result, path=place,
                       first=code)  # fmt: skip


def index(root: Path, drawn: Path) -> Iterator[str]:
    """Yield the lines of the page that shows all of them."""
    yield "# Gallery\n\nEvery script of the repository, run when these pages were made.\n"
    for folder, (heading, words) in SECTIONS.items():
        yield f"## {heading}\n\n{words}\n\n::::{{grid}} 1 2 2 3\n:gutter: 3\n"
        for path in sorted((root / folder).glob("*.py")):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            names = {"stem": path.stem, "path": path.relative_to(root).as_posix()}
            picture = PICTURE.format(**names) if (drawn / f"{path.stem}.png").exists() else ""
            yield CARD.format(title=said.partition("\n")[0].rstrip("."), picture=picture, **names)
        yield "::::\n"
    yield "```{toctree}\n:hidden:\n"
    yield from (path.stem for path in scripts(root))
    yield "```"


def write(root: Path, folder: Path) -> None:
    """Run the scripts, two at a time, and write the pages of those that have changed."""
    folder.mkdir(exist_ok=True)
    found = scripts(root)
    names = ["index", *(path.stem for path in found)]
    for old in {*folder.glob("*.md")} - {folder / f"{name}.md" for name in names}:
        old.unlink()
    code = [path for package in ("cvxprivacy", "sdc") for path in (root / package).rglob("*.py")]
    changed = max((path.stat().st_mtime for path in code), default=0.0)
    with ThreadPoolExecutor(2) as pool:
        printed = pool.map(lambda path: run(path, root, folder, changed), found)
        for path, said in zip(found, printed, strict=True):
            _changed(folder / f"{path.stem}.md", page(path, root, folder, said))
    _changed(folder / "index.md", "\n".join(index(root, folder)))


def _changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
