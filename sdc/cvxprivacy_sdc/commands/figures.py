"""``cvxprivacy figures``: the worked problems and the papers' figures, listed and run."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import click

from cvxprivacy.errors import InputError

__all__ = ["figures"]

FOLDERS = ("figures", "problems")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Run all of them.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="output",
    show_default=True,
    help="Folder for the pictures.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["png", "pdf", "svg"]),
    default="png",
    show_default=True,
    help="Of the pictures; text stays text in pdf and svg.",
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder that holds figures/ and problems/; by default where you are, or a folder above.",
)
def figures(
    names: tuple[str, ...], everything: bool, out: Path, kind: str, root: Path | None
) -> None:
    """Run the scripts NAME of figures/ and problems/, or list them all."""
    scripts = _scripts(root)
    if not names and not everything:
        for name, path in scripts.items():
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            click.echo(f"{path.parent.name}/{name:<24} {docstring.partition(chr(10))[0]}")
        return
    for name in names:
        if name not in scripts:
            remedy = f"use one of {', '.join(scripts)}"
            raise InputError("NAME", f"no script {name!r}", remedy, value=name)
    out.mkdir(parents=True, exist_ok=True)
    failed = {}
    chosen = list(scripts) if everything else list(names)
    bar = click.progressbar(
        chosen, label="running", file=sys.stderr, item_show_func=lambda name: name
    )
    with bar:
        for name in bar:
            done = subprocess.run(
                [sys.executable, str(scripts[name]), "--out", str(out / f"{name}.{kind}")],
                capture_output=True, text=True, check=False, encoding="utf-8",
            )  # fmt: skip
            click.echo(done.stdout, nl=False)
            if done.returncode:
                failed[name] = (done.stderr.strip().splitlines() or ["no message"])[-1]
    for name, message in failed.items():
        click.echo(f"cvxprivacy: {name} failed: {message}", err=True)
    if failed:
        sys.exit(1)


def _scripts(root: Path | None) -> dict[str, Path]:
    """Return the scripts of a checkout of the project by their names."""
    here = Path.cwd()
    for folder in [root] if root else [here, *here.parents, Path(__file__).parents[3]]:
        if any((folder / name).is_dir() for name in FOLDERS) and (folder / "cvxprivacy").is_dir():
            return {
                path.stem: path for name in FOLDERS for path in sorted((folder / name).glob("*.py"))
            }
    remedy = "run it in a checkout of the project, or pass --root"
    raise InputError("--root", "no folder figures/ or problems/ here", remedy)
