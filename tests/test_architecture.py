"""Layers, laziness, and that scripts run: what holds of the package as a whole."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import cvxprivacy as cpv
from tests.repository import ROOT, loaded_after, scripts

PACKAGE = ROOT / "cvxprivacy"
FOLDERS = {"cvxprivacy": ROOT, "cvxprivacy_sdc": ROOT / "sdc"}  # each with its package inside
VERIFIER = ROOT / "verifier" / "cvxprivacy_verifier"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it, for whatever reason."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
            names |= inner or {node.module}
    return names


def modules(*packages: str) -> list[Path]:
    """Return the files of packages, by default of all, but for what lists their public names."""
    roots = [FOLDERS[package] / package for package in packages or FOLDERS]
    return [p for root in roots for p in sorted(root.rglob("*.py")) if p != root / "__init__.py"]


def dotted(path: Path) -> str:
    folder = FOLDERS["cvxprivacy" if path.is_relative_to(PACKAGE) else "cvxprivacy_sdc"]
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path) for path in modules()}


def graph() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    return {dotted(path): imports_of(path) & MODULES for path in modules()}


def drawing() -> list[str]:
    """Return the rooms of both packages, a floor a line: each imports from lines below it alone."""
    rooms: dict[str, set[str]] = {}
    for name, imported in graph().items():
        room = ".".join(name.split(".")[:2])
        rooms.setdefault(room, set()).update(".".join(each.split(".")[:2]) for each in imported)
    floors: dict[str, int] = {}
    below = {room: imported - {room} for room, imported in rooms.items()}
    for room in TopologicalSorter(
        below
    ).static_order():  # raises CycleError, which names the circle
        floors[room] = 1 + max((floors[each] for each in below[room]), default=-1)
    lines = []
    for package in sorted({room.split(".")[0] for room in floors}, reverse=True):
        heights: dict[int, list[str]] = {}
        for room, height in sorted(floors.items()):
            if room.startswith(f"{package}.") and not room.endswith("__main__"):
                heights.setdefault(height, []).append(room.split(".")[1])
        lines += [package, *(f"  {', '.join(heights[h])}" for h in sorted(heights, reverse=True))]
    return lines


def test_imports_go_down_and_never_in_a_circle():
    list(TopologicalSorter(graph()).static_order())  # raises CycleError, which names the circle
    page = (ROOT / "docs" / "reference" / "design.md").read_text(encoding="utf-8")
    assert "\n".join(drawing()) + "\n```" in page, "\n".join(drawing())


def test_cvxprivacy_knows_nothing_of_cvxprivacy_sdc():
    for path in modules("cvxprivacy"):
        assert not any(name.split(".")[0] == "cvxprivacy_sdc" for name in imports_of(path)), path


def test_the_verifier_needs_only_the_standard_library_and_flint():
    siblings = {path.stem for path in VERIFIER.glob("*.py")}
    for path in VERIFIER.glob("*.py"):
        for name in imports_of(path):
            expected = name.split(".")[0] in {"flint", *sys.stdlib_module_names, *siblings}
            assert expected, f"{path.name}: {name}"
        source = path.read_text(encoding="utf-8")
        assert "__import__" not in source
        assert "importlib" not in source


def test_only_the_conic_statements_import_cvxpy():
    users = {p for p in modules() if any(n.split(".")[0] == "cvxpy" for n in imports_of(p))}
    paper_table = FOLDERS["cvxprivacy_sdc"] / "cvxprivacy_sdc" / "whole_counts" / "paper_table.py"
    folders = {path.parent for path in users - {paper_table}}
    # a measure states its own cone
    assert folders == {PACKAGE / "leakage", PACKAGE / "solvers" / "conic"}


def test_importing_is_lazy():
    heavy = {"cvxpy", "matplotlib", "scipy", "numpy", "flint", "pandas"}
    assert not heavy & loaded_after("import cvxprivacy, cvxprivacy_verifier")
    assert not {"cvxpy", "matplotlib"} & loaded_after(
        "import cvxprivacy as c; s = c.DiscreteSource([[0.5, 0.5]]);"
        "c.PrivacyDistortion(s, c.hamming(2), budget=0)"
    )


def test_every_public_name_exists():
    for name in cpv.__all__:
        assert getattr(cpv, name) is not None
    assert set(cpv.__all__) <= set(dir(cpv))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cpv.no_such_name


# ---- scripts -----------------------------------------------------------------------------


def test_scripts_are_short():
    """A problem has at most 100 lines, a figure 130, a study of a data set 160."""
    for path in scripts():
        text = path.read_text(encoding="utf-8")
        limit = {"problems": 100, "figures": 130}[path.parent.name]
        if path.stem == "names" or re.search(r"datasets\.load_(adult|census)", text):
            limit = 160
        assert len(text.splitlines()) <= limit, f"{path.name}: {len(text.splitlines())} lines"
        assert "argparse" not in text
        assert "savefig" not in text


def test_every_script_is_tested():
    tests = sorted((ROOT / "tests").glob("**/scripts/*.py"))
    sources = "".join(path.read_text(encoding="utf-8") for path in tests)
    tested = set(re.findall(r"^def test_script_(\w+)", sources, re.MULTILINE))
    assert {path.stem for path in scripts()} == tested


def classes() -> list[tuple[Path, ast.ClassDef]]:
    trees = ((path, tree_of(path)) for path in modules())
    return [(p, n) for p, tree in trees for n in tree.body if isinstance(n, ast.ClassDef)]


def lines_of_code(node: ast.Module | ast.ClassDef) -> int:
    """Count the lines up to the last one, without those of docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [n for n in ast.walk(node) if isinstance(n, documented) and ast.get_docstring(n)]
    text = sum(n.body[0].end_lineno - n.body[0].lineno + 1 for n in nodes)
    return node.body[-1].end_lineno - getattr(node, "lineno", 1) + 1 - text


def test_formulations_fit_on_a_slide():
    """All that is the paper's; bases hold what is not."""
    bases = {"channel", "covariance", "problem", "categorical", "strategies"}
    bases |= {"filling", "rays", "spectral", "table"}
    for path, node in classes():
        if path.parent.name == "formulations" and path.stem not in bases:
            length = lines_of_code(node)
            assert length <= 60, f"{node.name}: {length} lines"


BANNED = {
    *("found", "given", "told", "seen", "said", "own", "known", "whole", "rest", "lacks"),
    *("give", "bend", "stiff", "pull", "following"),
}
PUBLIC = {  # what users and documents call them
    ("CovarianceProgram", "given"),
    ("CovarianceProblem", "given"),
    ("FillingProblem", "given"),
    ("CodeMeasures", "told"),
    ("Groups", "rest"),
}


def identifiers(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what a tree assigns or defines, each with the class that it is in."""
    places: list[tuple[ast.AST, str]] = [(tree, "")]
    for parent, owner in places:  # which grows
        for node in ast.iter_child_nodes(parent):
            kind = type(node)
            if kind is ast.ClassDef or kind is ast.FunctionDef:
                yield owner, node.name
            elif kind is ast.arg:
                yield owner, node.arg
            elif kind is ast.Name:
                if isinstance(node.ctx, ast.Store):
                    yield owner, node.id
                continue
            elif kind is ast.Attribute and isinstance(node.ctx, ast.Store):
                yield owner, node.attr
            elif kind is ast.Constant:
                continue
            places.append((node, node.name if kind is ast.ClassDef else owner))


def test_names_say_what_things_are():
    """Nouns for things, the field's verbs for what is done."""
    for path in modules():
        for owner, name in identifiers(tree_of(path)):
            banned = name.strip("_") in BANNED and (owner, name) not in PUBLIC
            assert not banned, f"{dotted(path)}: {name} of {owner or 'the module'}"


def test_names_in_tests_say_what_things_are():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        names = {name for _, name in identifiers(ast.parse(path.read_text(encoding="utf-8")))}
        assert not {name for name in names if name.strip("_") in BANNED}, path


def test_what_a_problem_shows_is_documented():
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    for problem in (
        cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2),
        cpv.RateDistortionEquivocation(source, cpv.hamming(2), 0.2),
        cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.5), 0.2),
        cpv.HammingWaterFilling([0.5, 0.3, 0.2], 0.2),
        cpv.ReverseWaterFilling([1.0, 2.0], 0.5),
    ):
        text = "".join(kind.__doc__ or "" for kind in type(problem).__mro__)
        for name in dir(problem):
            if not name.startswith("_"):
                ours = any(getattr(vars(k).get(name), "__doc__", 0) for k in type(problem).__mro__)
                word = re.search(rf"\b{name}\b", text)
                assert ours or word, f"{type(problem).__name__}.{name}"
