"""Count what there is to read, and what one program and one release run through.

    python benchmarks/sizes.py [folder]         # by reading: files, lines, functions, options, …
    python benchmarks/sizes.py --trace          # the README's twelve lines up to solve, and CVXPY
    python benchmarks/sizes.py --trace-release  # the README's release of Adult

Three distributions are looked for in the folder: the core, what is of files and tables (``sdc``),
and the verifier.  Where files and tables are rooms of the core still, these are counted as ``sdc``.

*Code lines* carry a token that is neither comment nor docstring.  *Functions* are all ``def``s.
*Constants* are upper-case names that a module gives a number.  *Long* functions have eight
parameters or more, ``self`` and ``cls`` not counted, nor ``*`` and ``**``.  ``Any`` is counted
where it is used.  *Public* names are those of the stub ``__init__.pyi``, or of ``__all__``.

Traced are Python's calls into the packages, the verifier's among them.  Functions are distinct code
objects: methods, lambdas and comprehensions by themselves, bodies of modules and classes not.  A
program is traced when it has run once, so that nothing is imported while it is looked at; a release
is traced with its imports, and a file that is imported is entered.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "core": "cvxprivacy", "sdc": "sdc/cvxprivacy_sdc", "verifier": "verifier/cvxprivacy_verifier",
}  # fmt: skip
IN_CORE = ("cli", "microdata", "sdc")  # rooms of the core that are of files and tables
BESIDE = (
    "tests", "sdc/tests", "verifier/tests", "docs", "benchmarks", "problems", "figures",
)  # fmt: skip
COLUMNS = (
    "files", "lines", "code", "docstrings", "functions", "constants", "long", "Any", "public",
    "options",
)  # fmt: skip
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
MANY = 8  # parameters
RUNS = 5  # the median of their times is printed


# ---- by reading --------------------------------------------------------------------------


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of all docstrings."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *DEFS)) and ast.get_docstring(node):
            text = node.body[0]
            lines |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that have a token which is no comment."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = ((t.start[0], t.end[0]) for t in tokens if t.type not in SILENT)
    return {line for first, last in spans for line in range(first, last + 1)}


def is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    numeric = isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))
    return numeric and not isinstance(node.value, bool)


def constants(tree: ast.Module) -> int:
    """Return how many upper-case names a module gives a number."""
    count = 0
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:  # A = 1 and A, B = 1, 2
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            each = zip(target.elts, value.elts, strict=False) if both else [(target, value)]
            count += sum(
                isinstance(name, ast.Name) and name.id.isupper() and is_number(number)
                for name, number in each
            )
    return count


def parameters(node: Any) -> int:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in arguments)


def is_option(node: ast.AST) -> bool:
    """Tell whether a node calls ``click.option`` or ``option``."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func
    return "option" in (getattr(name, "attr", None), getattr(name, "id", None))


def of_module(path: Path) -> Counter[str]:
    """Return what a module counts."""
    text = path.read_text(encoding="utf-8")
    tree, said = ast.parse(text), Counter(files=1, lines=len(text.splitlines()))
    docstrings = docstring_lines(tree)
    said["docstrings"], said["code"] = len(docstrings), len(code_lines(text) - docstrings)
    said["constants"] = constants(tree)
    for node in ast.walk(tree):
        said["functions"] += isinstance(node, DEFS)
        said["long"] += isinstance(node, DEFS) and parameters(node) >= MANY
        said["Any"] += isinstance(node, ast.Name) and node.id == "Any"
        said["options"] += is_option(node)
    return said


def of_page(path: Path) -> Counter[str]:
    return Counter(files=1, lines=len(path.read_text(encoding="utf-8").splitlines()))


def public(package: Path) -> int:
    """Return how many names a package offers."""
    stub = package / "__init__.pyi"
    place = stub if stub.exists() else package / "__init__.py"
    if not place.exists():
        return 0
    names = 0
    for node in ast.parse(place.read_text(encoding="utf-8")).body:
        assigned = [ast.unparse(t) for t in getattr(node, "targets", [getattr(node, "target", "")])
                    if t]  # fmt: skip
        if place != stub:
            listed = "__all__" in assigned and isinstance(node.value, (ast.List, ast.Tuple))
            names += len(node.value.elts) if listed else 0
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            names += sum(alias.asname == alias.name for alias in node.names)  # x as x: exported
        else:
            names += len(assigned)
            names += isinstance(node, (*DEFS, ast.ClassDef))
    return names


def rooms(root: Path) -> Iterator[tuple[str, str, Counter[str]]]:
    """Yield distribution, room and what it counts, of each module."""
    for distribution, place in PACKAGES.items():
        package = root / place
        for path in sorted(package.rglob("*.py")):
            room = path.relative_to(package).parts[0].removesuffix(".py")
            inside = distribution == "core" and room in IN_CORE
            yield "sdc" if inside else distribution, room, of_module(path)
        yield distribution, "__init__", Counter(public=public(package))
    for place in BESIDE:
        for path in sorted((root / place).rglob("*")):
            if "_build" in path.parts or path.suffix not in (".py", ".md"):
                continue
            yield "beside", place, (of_module if path.suffix == ".py" else of_page)(path)


def sizes(root: Path) -> None:
    """Print a table of all rooms."""
    counted: dict[str, dict[str, Counter[str]]] = {}
    for distribution, room, said in rooms(root):
        counted.setdefault(distribution, {}).setdefault(room, Counter()).update(said)
    print(f"{'':<28}" + "".join(f"{name:>11}" for name in COLUMNS))

    def line(name: str, said: Counter[str]) -> None:
        print(f"{name:<28}" + "".join(f"{said[column]:>11,}" for column in COLUMNS))

    for distribution, each in counted.items():
        total = sum(each.values(), Counter())
        if not total:
            continue
        for room, said in sorted(each.items()) if distribution != "beside" else each.items():
            if any(said.values()):
                line(f"{distribution}: {room}", said)
        line(f"{distribution}, in all", total)
        print()
    packages = [s for d, each in counted.items() if d != "beside" for s in each.values()]
    line("the packages, in all", sum(packages, Counter()))


# ---- by running --------------------------------------------------------------------------


def section(root: Path, title: str) -> str:
    """Return the first block of code of a section of the README."""
    text = (root / "README.md").read_text(encoding="utf-8")
    return re.search(rf"^## {title}\n.*?```\w+\n(.*?)```", text, re.DOTALL | re.MULTILINE)[1]


def plain_solve(root: Path) -> str:
    """Return the README's lines up to the solve."""
    return section(root, "Twelve lines").partition("problem.solve()")[0] + "problem.solve()"


IN_CVXPY = """
import cvxpy as cp
import numpy as np

counts = np.array([[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]])
years = np.array([25, 40, 55, 70])
law = counts / counts.sum()
p_w, p_x = law.sum(axis=1), law.sum(axis=0)
d = np.abs(np.subtract.outer(years, years))
K = cp.Variable((4, 4), nonneg=True)  # p(x̂ | x)
apart = p_w[:, None] @ (p_x[None] @ K)  # p(w) p(x̂)
problem = cp.Problem(
    cp.Minimize(cp.sum(cp.rel_entr(law @ K, apart))),
    [cp.sum(K, axis=1) == 1, cp.sum(cp.multiply(p_x[:, None] * d, K)) <= 5.0],
)
problem.solve()
"""


class Trace:
    """Which files and functions of some folders are entered, and how deep their frames stand."""

    def __init__(self, folders: list[str]) -> None:
        self.folders = tuple(folder + os.sep for folder in folders)
        self.entered: set[Any] = set()
        self.deepest = self.depth = 0
        self.own: dict[str, bool] = {}

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        file = code.co_filename
        if file not in self.own:
            self.own[file] = file.startswith(self.folders)
        if not self.own[file]:
            return
        if event == "return":
            self.depth -= 1
            return
        self.entered.add(code)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def of(self, run: Callable[[], Any]) -> dict[str, int]:
        """Run something; return what was entered."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            run()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        functions = {code for code in self.entered if code.co_flags & inspect.CO_OPTIMIZED}
        return {
            "files": len({code.co_filename for code in self.entered}),
            "functions": len(functions),
            "frames": self.deepest,
        }


def folders(*names: str) -> list[str]:
    """Return where packages are, those that there are."""
    found = []
    for name in names:
        try:
            found.append(os.path.dirname(__import__(name).__file__))  # noqa: PTH120
        except ImportError:
            continue
    return found


def own_folders() -> list[str]:
    return folders("cvxprivacy", "cvxprivacy_sdc", "cvxprivacy_verifier")


def traced_program(program: str, where: list[str]) -> dict[str, Any]:
    """Run a program once, then timed, then traced."""
    code, times = compile(program, "<program>", "exec"), []
    exec(code, {})
    for _ in range(RUNS):
        begun = time.process_time()
        exec(code, {})
        times.append(time.process_time() - begun)
    return {**Trace(where).of(lambda: exec(code, {})), "seconds": statistics.median(times)}


def release(root: Path, folder: Path) -> list[str]:
    """Return the README's command, with its table in a folder."""
    data = Path(os.environ.get("CVXPRIVACY_DATA", ROOT.parent / "shared" / "data"))
    shutil.copy(data / "adult.csv", folder)
    block = section(root, "From a table to a released table").replace("\\\n", " ")
    return shlex.split(block.splitlines()[0].removeprefix("$ cvxprivacy "))


def traced_release(root: Path, how: str) -> dict[str, Any]:
    """Run the README's release, timed or traced."""
    said: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        words = release(root, folder)
        os.chdir(folder)
        opened: Counter[str] = Counter()

        def hear(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
                opened[os.path.realpath(os.fsdecode(arguments[0]))] += 1

        def run() -> None:
            (command,) = entry_points(group="console_scripts", name="cvxprivacy")
            try:
                command.load()(words, prog_name="cvxprivacy")
            except SystemExit as end:
                said["exit code"] = end.code or 0

        if how == "traced":
            where = own_folders()
            said |= Trace(where).of(run)
        else:
            sys.addaudithook(hear)
            begun = time.process_time()
            run()
            said["seconds"] = time.process_time() - begun
            said["input opened"] = opened[str(folder / "adult.csv")]
        os.chdir(root)
    return said


def apart(what: str, root: Path) -> dict[str, Any]:
    """Return what a process of its own says, in its last line."""
    words = [sys.executable, __file__, str(root), "--alone", what]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def alone(what: str, root: Path) -> dict[str, Any]:
    if what == "own":
        return traced_program(plain_solve(root), own_folders())
    if what == "cvxpy":
        return traced_program(IN_CVXPY, folders("cvxpy"))
    return traced_release(root, what)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT, help="root of a tree")
    parser.add_argument("--trace", action="store_true", help="the README's lines, and CVXPY's")
    parser.add_argument("--trace-release", action="store_true", help="the README's release")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    typed = parser.parse_args()
    root = typed.folder.resolve()
    if typed.alone:
        print(json.dumps(alone(typed.alone, root)))
    elif typed.trace:
        for title, what in (("the README's solve", "own"), ("the same in CVXPY", "cvxpy")):
            said = apart(what, root)
            print(
                f"{title}: {said['files']} files, {said['functions']:,} functions, "
                f"{said['frames']} frames deep, {1000 * said['seconds']:.1f} ms of processor time"
            )
    elif typed.trace_release:
        timed, traced = apart("timed", root), apart("traced", root)
        print(
            f"the README's release: {traced['files']} files, {traced['functions']:,} functions, "
            f"{timed['seconds']:.1f} s of processor time, "
            f"the table opened {timed['input opened']} times"
        )
    else:
        sizes(root)


if __name__ == "__main__":
    main()
