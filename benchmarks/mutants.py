"""Break the packages in one place at a time, and see whether the suite notices.

    pip install pytest-cov
    OPENBLAS_NUM_THREADS=1 python -m pytest -q -n 2 --cov=cvxprivacy --cov=cvxprivacy_sdc \
        --cov=cvxprivacy_verifier --cov-context=test --cov-report= # into .coverage
    python benchmarks/mutants.py draw 60 mutants.json
    python benchmarks/mutants.py try mutants.json killed.json

``draw`` picks files at random, and in each an operator, a comparison, a number or a pair like
min and max, which it changes; lines that no test runs are not drawn. ``try`` changes one line after
the other, runs tests that pass through it (some at random, where they are many) until one fails,
and writes which mutants were killed. In another tree, with its own .coverage, the same mutants are
found by the text of their lines, in files of the same name.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cvxprivacy", "sdc/cvxprivacy_sdc", "verifier/cvxprivacy_verifier")
SWAPPED: dict[type, str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",  # codespell:ignore
    ast.And: "or", ast.Or: "and",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
MOST, SECONDS = 400, 240  # tests of one mutant, and how long they may take


def between(lines: list[str], left: ast.expr, right: ast.expr, new: str) -> tuple[int, str] | None:
    """Return the line with what stands between two operands of one line replaced."""
    if left.end_lineno != right.lineno:
        return None
    line = lines[right.lineno - 1].encode()
    middle = line[left.end_col_offset : right.col_offset].decode()
    operator = middle.strip(" ()")
    if not operator:
        return None
    before, after = line[: left.end_col_offset].decode(), line[right.col_offset :].decode()
    return right.lineno, before + middle.replace(operator, f" {new} ", 1) + after


def mutants(path: Path) -> list[tuple[int, str]]:
    """Return all changes of a module as number and new text of a line."""
    text = path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
            found.append(between(lines, node.left, node.right, SWAPPED[type(node.op)]))
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for i, op in enumerate(node.ops):
                found.append(between(lines, sides[i], sides[i + 1], SWAPPED[type(op)]))
        elif isinstance(node, ast.BoolOp):
            found.append(between(lines, *node.values[:2], SWAPPED[type(node.op)]))
        elif isinstance(node, (ast.Constant, ast.Name, ast.Attribute)):
            line = lines[node.lineno - 1].encode()
            new = None
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                new = repr(node.value + 1 if isinstance(node.value, int) else node.value * 1.5)
                before = line[: node.col_offset].decode()
            elif isinstance(node, ast.Name) and node.id in NAMES:
                new, before = NAMES[node.id], line[: node.col_offset].decode()
            elif isinstance(node, ast.Attribute) and node.attr in NAMES:
                new = NAMES[node.attr]
                before = line[: (node.end_col_offset or 0) - len(node.attr)].decode()
            if new is not None and node.end_lineno == node.lineno:
                after = line[node.end_col_offset :].decode()
                found.append((node.lineno, before + new + after))
    return [one for one in found if one is not None and one[1] != lines[one[0] - 1]]


class Coverage:
    """Which tests run a line, as pytest-cov wrote it."""

    def __init__(self, path: Path):
        self.data = sqlite3.connect(path)

    def tests(self, path: Path, number: int) -> list[str]:
        """Return the names of tests that run a line of a module."""
        query = (
            "SELECT context.context, line_bits.numbits FROM line_bits"
            " JOIN file ON file.id = line_bits.file_id"
            " JOIN context ON context.id = line_bits.context_id WHERE file.path = ?"
        )
        found = {
            name.rpartition("|")[0]  # of the phase: a name may have a bar of its own
            for name, bits in self.data.execute(query, (str(path),))
            if number // 8 < len(bits) and bits[number // 8] >> number % 8 & 1 and "::" in name
        }
        return sorted(found)


def draw(number: int, seed: int) -> list[dict[str, object]]:
    """Draw mutants, each of another file, of lines that a test runs."""
    chance, coverage = random.Random(seed), Coverage(ROOT / ".coverage")
    files = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
    chance.shuffle(files)
    drawn: list[dict[str, object]] = []
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        places = [m for m in mutants(path) if lines.count(lines[m[0] - 1]) == 1]
        chance.shuffle(places)
        for at, new in places[:20]:
            if coverage.tests(path, at):
                where = path.relative_to(ROOT).as_posix()
                drawn.append({"file": where, "old": lines[at - 1], "new": new})
                break
        if len(drawn) == number:
            break
    return drawn


def placed(mutant: dict[str, str]) -> tuple[Path, int] | None:
    """Return file and number of the line in this tree, or None where it is no more."""
    name = Path(mutant["file"]).name
    files = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
    files.sort(key=lambda p: (p != ROOT / mutant["file"], p.name != name))
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        if lines.count(mutant["old"]) == 1:
            return path, lines.index(mutant["old"]) + 1
    return None


def tried(mutant: dict[str, str], coverage: Coverage) -> str:
    """Return whether tests notice a mutant."""
    place = placed(mutant)
    if place is None:
        return "not in this tree"
    path, number = place
    tests = coverage.tests(path, number)
    if not tests:
        return "no test runs it"
    random.Random(mutant["new"]).shuffle(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests[:MOST]]
    # as the tree is, all of them are there: else pytest's refusal would count as a kill
    subprocess.run([*command, "--collect-only"], cwd=ROOT, capture_output=True, check=True)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[number - 1] = mutant["new"] + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "out of time"
    finally:
        path.write_text(text, encoding="utf-8")
    return "survived" if done.returncode == 0 else "killed"


def main() -> None:
    """Draw mutants, or try them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("number", type=int)
    drawing.add_argument("file", type=Path)
    drawing.add_argument("--seed", type=int, default=0)
    trying = commands.add_parser("try")
    trying.add_argument("file", type=Path)
    trying.add_argument("outcomes", type=Path)
    options = parser.parse_args()
    if options.command == "draw":
        options.file.write_text(json.dumps(draw(options.number, options.seed), indent=1))
        return
    coverage, outcomes = Coverage(ROOT / ".coverage"), []
    for mutant in json.loads(options.file.read_text()):
        outcome = tried(mutant, coverage)
        outcomes.append({**mutant, "outcome": outcome})
        print(f"{outcome:18} {mutant['file']}: {mutant['new'].strip()}", flush=True)
        options.outcomes.write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
