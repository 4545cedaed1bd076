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

import pandas as pd
import pytest

import cvxprivacy as cpv
from tests.cli.test_certify import MATRIX, PROBLEM
from tests.docs.blocks import README, blocks
from tests.test_architecture import PACKAGE, ROOT, imports_of, modules, tree_of

MODULES = {"python-calamine": "python_calamine", "scikit-learn": "sklearn"}
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
    "assert len(cpv.Frontier.load(curve.save('curve.json'), problem).points) == len(curve.points)\n"
    "print(loaded.estimate({'a': 30, 'b': 40, 'c': 30}, method='em'))\n",
    "pictures": SOURCE + "solution = problem.solve()\n"
    "cpv.frontier(problem, tol=0.1).plot()\n"
    "cpv.plotting.channel(solution.channel); cpv.plotting.tradeoff([solution])\n",
    "a surface": SOURCE + "d = cpv.hamming(source.x)\n"
    "problem = cpv.RateDistortionEquivocation(source, d, 0.3, max_leakage=0.1)\n"
    "faces = cpv.surface(problem, ('budget', 'max_leakage'), tol=0.1)\n"
    "faces.plot(); print(faces.contains((0.3, 0.1, 1.0)), faces)\n",
    "a channel of a table": "import cvxprivacy as cpv\n"
    "schema = cpv.TableSchema(key=('age',), sensitive=('ill',))\n"
    "cpv.Channel([[1.0]], inputs=[1], outputs=[1], schema=schema).save('c.json')\n",
    "leakage of arrays": "from cvxprivacy.sdc.risk import estimated_leakage\n"
    "assert estimated_leakage([0, 0, 1, 1], [1.0, 1.2, 3.0, 3.1]).value > 0\n",
}  # fmt: skip
COMMANDS = {
    "solve": (["solve", "p.toml", "--force"], 0),
    "certify": (["certify", "p.toml", "k.csv", "--force"], 5),
    "verify": (["verify", "proof.json"], 0),
    "verify of a problem": (["verify", "proof.json", "--problem", "p.toml"], 0),
    "help": (["release", "--help"], 0),
}

FRAME = """import cvxprivacy as cpv
class Frame:
    columns = ("w", "x")
"""
TABLE = ["t.csv", "--sensitive", "ill", "--key", "age"]
SHOWN = SOURCE + "solution = problem.solve()\n"
REFUSED = {
    FRAME + "cpv.DiscreteSource.from_table(Frame(), sensitive='w', key='x')": "tables",
    FRAME + "cpv.GaussianSource.from_table(Frame(), sensitive='w', key='x')": "tables",
    FRAME + "cpv.audit(Frame(), sensitive='w', key='x')": "tables",
    FRAME + "cpv.compare(Frame(), {}, sensitive='w', key='x')": "tables",
    FRAME + "cpv.recoded_key(Frame(), sensitive='w', key='x', cells=9)": "tables",
    FRAME + "cpv.untouched(Frame(), cpv.TableSchema(key=('x',), sensitive=('w',)))": "tables",
    FRAME + "cpv.Channel([[1.0]], inputs='a', outputs='a').apply(Frame())": "tables",
    SHOWN + "solution.channel.to_frame()": "tables",
    SOURCE + "cpv.frontier(problem, tol=0.1).to_frame()": "tables",
    "import cvxprivacy as c; c.datasets.load_bezzi()": "tables",
    "import cvxprivacy as c; c.datasets.load_adult()": "datasets",
    "import cvxprivacy as c; c.datasets._rda(b'')": "datasets",
    "import cvxprivacy.sdc.masking": "masking",
    "from cvxprivacy.sdc.risk import probabilistic_linkage as p; p([[1.0]], [[2.0]])": "linkage",
    "from cvxprivacy.cli.dossier.page import html; html({})": "report",
    "from cvxprivacy.cli.dossier.page import mathml; mathml('x')": "report",
}
REFUSED_COMMANDS = {
    "tables": [
        ["release", *TABLE, "--budget", "0.1"],
        ["apply", "c.json", "t.csv", "--out", "o.csv"],
        ["audit", *TABLE],
        ["compare", *TABLE, "--masked", "m=t.csv"],
        ["verify", "t.json", "--table", "t.csv"],
        ["solve", "t.toml"],
    ],
    "report": [
        ["release", *TABLE, "--budget", "0.1", "--report", "r.html"],
        ["audit", *TABLE, "--report", "r.html"],
    ],
    "engines": [["release", "t.parquet", *TABLE[1:], "--budget", "0.1"]],
    "files": [
        ["release", "t.xlsx", *TABLE[1:], "--budget", "0.1"],
        ["release", "t.sav", *TABLE[1:], "--budget", "0.1"],
    ],
    "masking": [["compare", *TABLE, "--method", "mdav=3"]],
}


def line(extra: str) -> str:
    return f"is not installed; install it with: pip install 'cvxprivacy[{extra}]'"


@cache
def brings(extra: str) -> set[str]:
    """Return the modules of the packages that an extra names, of its own or of others."""
    outcome: set[str] = set()
    for requirement in EXTRAS[extra]:
        name, others = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        if name == "cvxprivacy":
            outcome |= set[str]().union(*map(brings, others.split(",")))
        else:
            outcome.add(MODULES.get(name, name))
    return outcome


HIDDEN = brings("all") | {"distributed"}


def answered(folder, hidden, **asked):
    """Return what a process says in which packages are hidden."""
    asked = {"hidden": sorted(hidden), "code": {}, "commands": {}, "examples": False, **asked}
    done = subprocess.run(
        [sys.executable, "-m", "tests.light"], cwd=folder, input=json.dumps(asked),
        env={k: v for k, v in os.environ.items() if k != "CVXPRIVACY_DATA"},
        capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make what the commands read."""
    folder = tmp_path_factory.mktemp("light")
    texts = {
        "p.toml": PROBLEM, "k.csv": MATRIX, "t.csv": "age,ill\n1,no\n2,yes\n3,no\n",
        "t.toml": PROBLEM.replace("counts", 'table = "t.csv"\nsensitive = "ill"\nkey = "age"\n#')
        .replace("w =", "#").replace("x =", "#"),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("t.parquet", "t.xlsx", "t.sav"):
        (folder / name).write_bytes(b"")
    counted = cpv.DiscreteSource.from_table(
        pd.read_csv(folder / "t.csv"), sensitive="ill", key="age"
    )
    solution = cpv.PrivacyDistortion(counted, cpv.hamming(counted.x), 0.3).solve()
    solution.certificate.to_json(folder / "t.json")
    return folder


@pytest.fixture(scope="module")
def working(folder):
    """Return how ends what needs no extra, where none is installed."""
    commands = {name: words for name, (words, _) in COMMANDS.items()}
    return answered(folder, HIDDEN, code=WORKS, commands=commands)


@pytest.fixture(scope="module")
def light(folder):
    """Return how ends what needs one."""
    commands = {
        f"{extra} {i}": words
        for extra, refused in REFUSED_COMMANDS.items()
        for i, words in enumerate(refused)
    }
    channel = {"a channel of a table": WORKS["a channel of a table"]}  # which `apply` reads
    code = channel | {code: code for code in REFUSED}
    return answered(folder, HIDDEN, code=code, commands=commands)


# ---- what needs no extra -----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", WORKS)
def test_what_needs_no_extra_works(name, working):
    assert working["code"][name] == ""


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_need_no_extra_work(name, working):
    assert working["commands"][name] == [COMMANDS[name][1], ""]


@pytest.mark.long
def test_examples_that_need_no_extra_hold(tmp_path):
    examples = answered(tmp_path, HIDDEN, examples=True)["examples"]
    assert not {name: text for name, text in examples.items() if text}
    assert len(examples) > 100


def test_an_install_is_light():
    names = {re.match(r"[\w-]+", d)[0] for d in DEPENDENCIES["dependencies"]}
    assert names == {
        "clarabel", "click", "cvxprivacy-verifier", "cvxpy", "highspy", "joblib", "lazy-loader",
        "matplotlib", "numpy", "python-flint", "scipy", "scs", "threadpoolctl",
    }  # fmt: skip


# ---- what needs one ----------------------------------------------------------------------


@pytest.mark.parametrize("code", REFUSED, ids=lambda code: code.splitlines()[-1])
def test_what_needs_an_extra_says_what_to_type(code, light):
    assert light["code"][code].startswith("MissingPackageError: ")
    assert light["code"][code].endswith(line(REFUSED[code]))


@pytest.mark.parametrize("extra", REFUSED_COMMANDS)
def test_commands_that_need_an_extra_say_what_to_type(extra, light):
    for i, words in enumerate(REFUSED_COMMANDS[extra]):
        code, message = light["commands"][f"{extra} {i}"]
        assert (code, message.count("\n")) == (2, 1), (words, message)
        assert message.startswith("cvxprivacy: ")
        assert message.endswith(line(extra) + "\n"), words


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
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "required":
                words = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
                asked += [words] if len(words) == 2 else []
    assert len(asked) >= 10
    for module, extra in asked:
        assert module.split(".")[0] in brings(extra), (module, extra)


def test_packages_of_extras_are_imported_where_one_is_asked_for():
    """Elsewhere only after that, or for a type checker."""
    optional = brings("all") - {"marimo"}
    after = {
        *("sdc/masking/numeric", "sdc/masking/pram", "sdc/risk/linkage", "microdata/combined"),
        *("release/apply", "cli/memory_table", "cli/parquet"),
    }
    for path in modules():
        if {name.split(".")[0] for name in imports_of(path)} & optional:
            assert str(path.relative_to(PACKAGE).with_suffix("")) in {"extras"} | after


def test_one_line_says_what_to_type():
    texts = {p.name: p.read_text(encoding="utf-8") for p in modules()}
    assert [name for name, text in texts.items() if "pip install" in text] == ["errors.py"]


def test_all_is_every_extra_of_a_user():
    assert brings("all") == set[str]().union(*map(brings, EXTRAS.keys() - FOR_WORK))
    for extra in FOR_WORK:
        assert brings("tables") <= brings(extra)
    assert brings("test") >= brings("all") - {"marimo"}
    assert brings("dev") >= brings("all") | brings("docs") | brings("test")
