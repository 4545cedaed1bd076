"""An install without extras: what needs none works, and what needs one says what to type.

Packages are hidden in a process of its own (``tests/light.py``); ``.ci/installed`` does the same
with what is built and installed.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from functools import cache

import pytest

from tests.docs.blocks import README, blocks
from tests.repository import ROOT
from tests.test_architecture import PACKAGE, imports_of, modules, tree_of

MODULES = {"python-flint": "flint", "scikit-learn": "sklearn"}
DEPENDENCIES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = DEPENDENCIES["optional-dependencies"]
FOR_WORK = {"test", "docs", "dev"}  # on the package itself

SOURCE = """import cvxprivacy as cpv
import numpy as np
source = cpv.DiscreteSource.from_counts([[4, 1, 2], [1, 5, 3]], x=["a", "b", "c"])
problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.3)
"""
GAUSSIAN = """import cvxprivacy as cpv
import numpy as np
law = cpv.GaussianSource([[2.0, 1.0], [1.0, 2.0]], sensitive=["w"], key=["x"], names=["w", "x"])
"""
WORKS = {
    "every public name": "import cvxprivacy as c; [getattr(c, name) for name in dir(c)]",
    "the README's example": next(b.text for b in blocks(README) if b.language == "python"),
    "what is shown": SOURCE + "solution = problem.solve()\n"
    "for value in (source, solution, solution.channel, cpv.frontier(problem, tol=0.1)):\n"
    "    assert '<' in value._repr_html_() and str(value)\n",
    "what Gaussian problems show": GAUSSIAN
    + "solution = cpv.QuadraticGaussian(law, 0.8).solve()\n"
    "for value in (law, solution, solution.release):\n"
    "    assert '<table>' in value._repr_html_() and str(value)\n"
    "assert solution.release.apply(np.zeros((3, 1)), seed=1).shape == (3, 1)\n",
    "files": SOURCE + "solution = problem.solve()\n"
    "loaded = cpv.Channel.load(solution.channel.save('channel.json'))\n"
    "assert loaded.apply(np.array(source.x), seed=1).shape == (3,)\n"
    "assert loaded.apply(['a', 'c'], seed=1, row_id=[7, 8]).shape == (2,)\n"
    "assert problem.certify(loaded).certificate.verify()\n"
    "assert problem.certify(loaded.matrix).certificate.verify()\n"
    "curve = cpv.frontier(problem, tol=0.1)\n"
    "from cvxprivacy.typing import Frontier\n"
    "assert len(Frontier.load(curve.save('curve.json'), problem).points) == len(curve.points)\n"
    "print(loaded.estimate({'a': 30, 'b': 40, 'c': 30}, method='em'))\n",
    "pictures": SOURCE + "solution = problem.solve()\n"
    "cpv.frontier(problem, tol=0.1).plot()\n"
    "from cvxprivacy import plotting\n"
    "plotting.channel(solution.channel); plotting.tradeoff([solution])\n",
    "a surface": SOURCE + "d = cpv.hamming(source.x)\n"
    "problem = cpv.RateDistortionEquivocation(source, d, 0.3, max_leakage=0.1)\n"
    "faces = cpv.surface(problem, ('budget', 'max_leakage'), tol=0.1)\n"
    "faces.plot(); print(faces.contains((0.3, 0.1, 1.0)), faces)\n",
    "a channel of a table": "import cvxprivacy as cpv\n"
    "from cvxprivacy.tables import TableSchema\n"
    "schema = TableSchema(key=('age',), sensitive=('ill',))\n"
    "cpv.Channel([[1.0]], inputs=[1], outputs=[1], schema=schema).save('c.json')\n",
}  # fmt: skip

FRAME = """import cvxprivacy as cpv
class Frame:
    columns = ("w", "x")
"""
SHOWN = SOURCE + "solution = problem.solve()\n"
REFUSED = {
    FRAME + "cpv.DiscreteSource.from_table(Frame(), sensitive='w', key='x')": "tables",
    FRAME + "cpv.GaussianSource.from_table(Frame(), sensitive='w', key='x')": "tables",
    FRAME + "cpv.Channel([[1.0]], inputs='a', outputs='a').apply(Frame())": "tables",
    SHOWN + "solution.channel.to_frame()": "tables",
    SOURCE + "cpv.frontier(problem, tol=0.1).to_frame()": "tables",
    "import cvxprivacy as c; c.datasets.load_bezzi()": "tables",
    "import cvxprivacy as c; c.datasets.load_adult()": "datasets",
    "import cvxprivacy as c; c.datasets._rda(b'')": "datasets",
}


def line(extra: str) -> str:
    return f"is not installed; install it with: pip install 'cvxprivacy[{extra}]'"


def imported(requirement: str) -> str:
    """Return the module that a requirement is imported as."""
    name = re.match(r"[\w-]+", requirement)[0]
    return MODULES.get(name, name.replace("-", "_"))


@cache
def brings(extra: str) -> set[str]:
    """Return the modules of the packages that an extra names, of its own or of others."""
    outcome: set[str] = set()
    for requirement in EXTRAS[extra]:
        name, others = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == "cvxprivacy":
            outcome |= set[str]().union(*map(brings, others.split(",")))
        else:
            outcome.add(imported(requirement))
    return outcome


HIDDEN = brings("all") | {"distributed"}


def answered(folder, hidden, **asked):
    """Return what a process says in which packages are hidden."""
    asked = {"hidden": sorted(hidden), "code": {}, "commands": {}, "examples": False, **asked}
    kept = {name: value for name, value in os.environ.items() if name != "CVXPRIVACY_DATA"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.light"], cwd=folder, input=json.dumps(asked),
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def working(tmp_path_factory):
    """Return how ends what needs no extra, where none is installed."""
    return answered(tmp_path_factory.mktemp("working"), HIDDEN, code=WORKS)


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """Return how ends what needs one."""
    return answered(tmp_path_factory.mktemp("light"), HIDDEN, code={code: code for code in REFUSED})


# ---- what needs no extra -----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", WORKS)
def test_what_needs_no_extra_works(name, working):
    assert working["code"][name] == ""


@pytest.mark.long
def test_examples_that_need_no_extra_hold(tmp_path):
    examples = answered(tmp_path, HIDDEN, examples=True)["examples"]
    assert not {name: text for name, text in examples.items() if text}
    assert len(examples) > 100


def test_an_install_is_light():
    names = {re.match(r"[\w-]+", d)[0] for d in DEPENDENCIES["dependencies"]}
    assert names == {
        "clarabel", "cvxprivacy-verifier", "cvxpy", "highspy", "joblib", "lazy-loader",
        "matplotlib", "numpy", "python-flint", "scipy", "scs", "threadpoolctl",
    }  # fmt: skip


# ---- what needs one ----------------------------------------------------------------------


@pytest.mark.parametrize("code", REFUSED, ids=lambda code: code.splitlines()[-1])
def test_what_needs_an_extra_says_what_to_type(code, light):
    assert light["code"][code].startswith("MissingPackageError: ")
    assert light["code"][code].endswith(line(REFUSED[code]))


FRAMES = {
    "pandas": "import pandas as pd; frame, column = pd.DataFrame({'x': [1]}), pd.Series([1])",
    "polars": "import polars as pl; frame, column = pl.DataFrame({'x': [1]}), pl.Series([1])",
    "pyarrow": "import pyarrow as p; frame, column = p.table({'x': [1]}), p.chunked_array([[1]])",
    "duckdb": "import duckdb; frame = column = duckdb.sql('SELECT 1 AS x')",
}
TAKEN = (
    "cpv.DiscreteSource(frame)",
    "cpv.Distortion(frame)",
    "problem.certify(frame)",
    "problem.solve().channel.apply(frame)",
    "problem.solve().channel.apply(column)",
    "problem.solve().channel.apply(['a'], seed=1, row_id=column)",
    "cpv.PreserveMean(column).constraints(problem.quantities)",
)


@pytest.mark.long
def test_a_frame_without_what_reads_it_is_refused_as_a_frame(tmp_path):
    cases = {
        f"{engine}: {use}": f"{SOURCE}{FRAMES[engine]}\n{use}" for engine in FRAMES for use in TAKEN
    }
    code = answered(tmp_path, {"narwhals"}, code=cases)["code"]
    wrong = {name: end for name, end in code.items() if not end.endswith(line("tables"))}
    assert not wrong


# ---- extras are complete, and have one owner ---------------------------------------------


def test_what_code_asks_for_is_in_the_extra_that_it_names():
    asked = []
    for path in modules("cvxprivacy"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "required":
                words = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
                asked += [words] if len(words) == 2 else []
    assert len(asked) >= 7
    for module, requirement in asked:
        (extra,) = re.findall(r"^cvxprivacy\[(\w+)\]$", requirement)
        assert module.split(".")[0] in brings(extra), (module, extra)


def test_packages_of_extras_are_imported_where_one_is_asked_for():
    """Elsewhere only after that, or for a type checker."""
    optional = brings("all") - {"marimo"}
    for path in modules("cvxprivacy"):
        if {name.split(".")[0] for name in imports_of(path)} & optional:
            assert str(path.relative_to(PACKAGE).with_suffix("")) in {"extras", "release/apply"}


def test_one_line_says_what_to_type():
    texts = {p.name: p.read_text(encoding="utf-8") for p in modules("cvxprivacy")}
    assert [name for name, text in texts.items() if "pip install" in text] == ["errors.py"]


def test_all_is_every_extra_of_a_user():
    assert brings("all") == set[str]().union(*map(brings, EXTRAS.keys() - FOR_WORK))
    for extra in FOR_WORK:
        assert brings("tables") <= brings(extra)
    assert brings("test") >= brings("all") - {"marimo"}
    assert brings("dev") >= brings("all") | brings("docs") | brings("test")
