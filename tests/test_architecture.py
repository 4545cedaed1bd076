"""Layers, laziness, and that scripts run: what holds of the package as a whole."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "cvxprivacy"

# A room imports only from those above it in this list, for type checkers too.
ROOMS = [
    "errors",
    "exact",
    "frozen",
    "validation",
    "files",
    "certificates",
    "tables",
    "model",
    "programs",
    "proving",
    "criteria",
    "solvers",
    "release",
    "results",
    "formulations",
    "frontiers",
    "plotting",
    "reference",
    "microdata",
    "cli",
    "__main__",
]


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it, for whatever reason."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
            found |= inner or {node.module}
    return found


def modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if p != PACKAGE / "__init__.py"]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path) for path in modules()}


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_room_imports_only_from_those_above_it(path):
    rank = ROOMS.index(dotted(path).split(".")[1])
    for name in imports_of(path) & MODULES:
        assert ROOMS.index(name.split(".")[1]) <= rank, f"{dotted(path)} imports {name}"


def test_no_modules_import_each_other():
    graph = {dotted(path): imports_of(path) & MODULES for path in modules()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_certificates_need_only_the_standard_library_and_flint():
    for path in (PACKAGE / "certificates").glob("*.py"):
        for name in imports_of(path):
            known = name.split(".")[0] in {"flint", *sys.stdlib_module_names}
            assert known or name.startswith("cvxprivacy.certificates"), f"{path.name}: {name}"
        source = path.read_text(encoding="utf-8")
        assert "__import__" not in source
        assert "importlib" not in source


def test_only_the_conic_statements_import_cvxpy():
    users = {p.name for p in modules() if any(n.split(".")[0] == "cvxpy" for n in imports_of(p))}
    paper = {"paper_channel.py", "paper_covariance.py", "paper_problem.py"}
    assert users == {"cvxpy_channel.py", "cvxpy_covariance.py", "cvxpy_run.py", *paper}


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_is_lazy():
    heavy = {"cvxpy", "matplotlib", "scipy", "numpy", "flint", "pandas"}
    assert not heavy & loaded_after("import cvxprivacy, cvxprivacy.certificates")
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


def script(path: Path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def test_every_script_is_tested():
    scripts = {p.stem for p in (ROOT / "problems").glob("*.py")}
    scripts |= {p.stem for p in (ROOT / "figures").glob("*.py")}
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").glob("test_*.py"))
    tested = set(re.findall(r"^def test_script_(\w+)", sources, re.MULTILINE))
    assert scripts == tested


def test_script_cholesterol(tmp_path, capsys):
    pytest.importorskip("sklearn", reason="the extra `examples` is not installed")
    module = script(ROOT / "problems" / "cholesterol.py")
    results = module.main(["--out", str(tmp_path / "deep" / "picture.png")])
    assert (tmp_path / "deep" / "picture.png").stat().st_size > 10_000
    text = capsys.readouterr().out
    weight, cholesterol = results
    for result in results:
        referee.check(result.chosen)
        curve = result.curve
        assert curve.complete
        assert curve.band <= 1e-3
        for point in curve.points[1:-1]:  # the ends are closed, not solved
            referee.check(point.solution)
        shares = np.linspace(0, curve.points[-1].x / result.variance, 201)
        inner, outer = (side(shares * result.variance) for side in (curve.inner, curve.outer))
        assert (outer <= inner).all()
        assert (inner <= outer + 1e-3).all()
        assert (np.diff(inner) <= 0).all()
        assert (inner <= result.upper_bound(shares) + 1e-9).all()  # the optimum is below the chord
        known = curve.solution_at(module.SHARE * result.variance)
        assert known.lower <= result.chosen.upper
        assert result.chosen.lower <= known.upper <= result.chosen.upper + 1e-3
    # facts of the 442 patients, known beforehand
    assert weight.source.records == 442
    assert weight.source.information() == pytest.approx(0.134, abs=5e-4)
    assert cholesterol.source.information() == pytest.approx(0.937, abs=5e-4)
    assert weight.source.bias() == pytest.approx(0.044, abs=5e-4)
    assert weight.chosen.value / weight.source.information() == pytest.approx(0.35, abs=0.005)
    assert cholesterol.chosen.value / cholesterol.source.information() == pytest.approx(
        0.68, abs=0.005
    )
    for piece in ("certified", "enclosure", "risk before", "risk after", "price", "MIUB", "bias"):
        assert piece in text
