"""``solve``: a problem file does what ``release`` does, and is what it wrote."""

from __future__ import annotations

import math
import os
import re
import shutil
import stat
import tomllib
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from tests.lengths import rest_at_length
from tests.sdc.commands.runner import (
    BOTH,
    OUTPUTS,
    RUN,
    SEX,
    command,
    loaded,
    people,
    refused,
    report,
    say,
    write,
)  # fmt: skip

PROBLEM = """formulation = "PrivacyDistortion"
budget = 0.1
[source]
table = "t.csv"
sensitive = "ill"
key = ["age", "sex"]
bins = { age = 10 }
[distortion]
attributes = { age = "ordinal", sex = "hamming" }
[output]
certificate = "s.json"
channel = "s.c"
"""


@pytest.mark.long
def test_a_problem_file_is_what_release_does(here):
    write("p.toml", PROBLEM)
    done = command("solve", "p.toml", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "certified" in done.stdout
    assert stat.S_IMODE(Path("s.json").stat().st_mode) == 0o600
    summary = report("solve", "p.toml", "--force")
    how = ("--distortion", "age=ordinal,sex=hamming", *OUTPUTS, "--seed", 1)
    other = report("release", "t.csv", *BOTH, *how)
    for name in ("status", "lower", "upper", "terms", "prices"):
        assert summary[name] == other[name]
    assert summary["channel"]["matrix"] == loaded("c.json")["matrix"]
    say("verify", "s.json", "--table", "t.csv")
    say("apply", "s.c", "t.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()


STOPPED = 'criteria = [{ kind = "TCloseness", t = 0.01 }]\n[solve]\nmethod = "conic"\n'

STOPPED += "solver_options = { max_iter = 1 }\n"


def test_a_loose_optimum_has_an_exit_code_of_its_own(here, monkeypatch):
    text = PROBLEM.replace('"PrivacyDistortion"', '"MinimumDistortion"')
    text = re.sub("budget = .*\n", STOPPED.split("[solve]")[0], text)
    write("p.toml", text + "[solve]" + STOPPED.split("[solve]")[1])
    summary = report("solve", "p.toml", code=5)
    assert (summary["status"], summary["value_units"], summary["units"]) == ("loose", None, "bits")
    assert summary["lower"] < summary["upper"] < math.inf
    assert "MinimumDistortion: loose" in say("solve", "p.toml", "--force", code=5).out
    assert loaded("s.json")["claim"]["status"] == "loose"
    assert Path("s.c").is_file()

    solve = cpv.MinimumDistortion.solve

    def stopped(self, **_):
        return solve(self, method="conic", solver_options={"max_iter": 1})

    monkeypatch.setattr(cpv.MinimumDistortion, "solve", stopped)
    how = ("release", "t.csv", *BOTH[:-2], "--criterion", "TCloseness=0.01", *OUTPUTS, "--seed", 1,
           "--ensure", "law", "--force")  # fmt: skip
    assert report(*how, code=5)["status"] == "loose"
    assert "MinimumDistortion: loose" in say(*how, code=5).out
    assert all(Path(name).is_file() for name in OUTPUTS[1::2])
    monkeypatch.setattr(cpv.MinimumDistortion, "solve", solve)
    assert report(*how)["status"] == "certified"


def test_what_is_not_proved_ends_so_even_where_it_only_warns(here):
    """Those who ask for no error in [solve] still see the status in the exit code."""
    write("p.toml", PROBLEM.split("[output]")[0].replace("0.1", "0.1\ncriteria = [{ kind = "
          '"LeakageCap", b = 0.0 }]') + "[solve]\ncertify = false\n")  # fmt: skip
    assert report("solve", "p.toml", code=3)["status"] == "infeasible"


@pytest.mark.parametrize(("old", "new", "line", "pieces"), [
    ("0.1", "-1", 2, ["budget"]), ("budget", "bugdet", 2, ["bugdet"]),
    ("[source]", "[source", 3, []), ('"t.csv"', '"none.csv"', 4, ["source.table"]),
    ('"ill"', '"il"', 5, ["source.sensitive", "'il'"]), ('"ordinal"', '"nope"', 9, ["age", "nope"]),
    ("[output]", '[solve]\nsolver = "NOPE"\n[output]', 11, ["solver", "NOPE"]),
    *(('"s.c"', f'"{name}"', 12, ["output.channel", name]) for name in
      ("no/c", "p.toml", "t.csv", "s.json")),
])  # fmt: skip
def test_a_problem_file_is_refused_on_its_line(old, new, line, pieces, here):
    write("p.toml", PROBLEM.replace(old, new, 1))
    refused("solve", "p.toml", pieces=["p.toml", f"line {line}", *pieces])


@pytest.mark.long
def test_a_problem_file_may_have_as_many_letters_as_a_release(here):
    write("t.csv", "age,sex,ill\n" + "".join(f"{i},a{i},{i % 2}\n" for i in range(5000)))
    write("p.toml", PROBLEM.replace("bins = { age = 10 }\n", ""))
    code = f"import resource as r; r.setrlimit(r.RLIMIT_CPU, (9, 9)); {RUN}"
    done = command("solve", "p.toml", code=code, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert "5,000" in done.stderr


PLACES = {  # the table and the problem file, as typed in one folder
    "r.toml": "t.csv", "deep/r.toml": "../t.csv", "link/r.toml": "../t.csv",
    "deep/../r.toml": "t.csv",
}  # fmt: skip


# the problem file, and whether its folder is typed too
WRITTEN = [(path, i % 2 == 0) for i, path in enumerate(PLACES)]


@pytest.mark.long
@pytest.mark.parametrize(("path", "full"), rest_at_length(WRITTEN, 1))
def test_the_problem_written_is_the_one_typed(path, full, here):
    Path("deep").mkdir()
    Path("link").symlink_to("deep")
    how = ("--distortion", "age=0.1*ordinal,sex=3*hamming", "--criterion", "KeepProbability=0.3",
           "--criterion", "PreserveMarginal", "--criterion", "TCloseness=0.1", "--units", "nats",
           "--bins", "age=-inf:30:45:inf", "--na", "none", "--na", "?",
           "--delimiter", ",", "--encoding", "utf-8", "--missing", "level")  # fmt: skip
    place = here if full else Path()
    typed = ("--sensitive", "ill", "--key", "age,sex", "--budget", "0.30000000000000004")
    other = report("release", place / "t.csv", *typed, *how, "--certificate", "p.json",
                   "--problem-out", place / path)  # fmt: skip
    data = tomllib.loads(Path(path).read_text("utf-8"))
    assert data["source"]["table"] == PLACES[path]
    assert data["budget"] == 0.1 + 0.2
    assert (data["source"]["na"], data["source"]["delimiter"]) == (["none", "?"], ",")
    assert data["source"]["bins"] == {"age": [-np.inf, 30, 45, np.inf]}
    assert data["distortion"]["weights"] == {"age": 0.1, "sex": 3.0}
    assert [rule["kind"] for rule in data["criteria"]] == [
        "KeepProbability", "PreserveMarginal", "TCloseness"
    ]  # fmt: skip
    for options in ((), ("--table", "t.csv")):
        text = say("verify", "p.json", "--problem", path, *options).out
        assert text.endswith(f"{path}: the proof is of this problem\n")
    solved = report("solve", path)
    for name in ("status", "lower", "upper", "terms", "prices", "units"):
        assert solved[name] == other[name]
    shutil.copy("t.csv", "moved.csv")
    Path("t.csv").unlink()
    refused("verify", "p.json", "--problem", path, pieces=["source.table"])
    say("verify", "p.json", "--problem", path, "--table", "moved.csv")


def test_no_problem_file_can_hold_a_name_that_is_no_text(here):
    name = os.fsdecode(b"\xff.csv")
    shutil.copy("t.csv", name)
    refused("release", name, *SEX, "--problem-out", "r.toml", pieces=["--problem-out", "UTF-8"])


def test_a_problem_file_says_how_its_table_is_read(here):
    write("t.csv", people().replace(",", ";").replace("yes", "–").encode("cp1252"))
    reading = 'delimiter = ";"\nencoding = "cp1252"\nna = ["?"]\n[distortion]'
    write("p.toml", PROBLEM.replace("[distortion]", reading))
    assert report("solve", "p.toml")["status"] == "certified"
    say("verify", "s.json", "--problem", "p.toml", "--table", "t.csv")
