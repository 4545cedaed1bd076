"""``cvxprivacy audit``: it says and writes what Python does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cvxprivacy as cpv
from tests.cli.runner import say
from tests.microdata.helpers import Page, audited, coarse, owner_only, people
from tests.test_architecture import ROOT


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().to_csv("t.csv", index=False)
    coarse(people()).to_csv("r.csv", index=False)
    return tmp_path


BOTH = ("audit", "t.csv", "r.csv", "--sensitive", "ill", "--key", "age,sex")


@pytest.mark.usefixtures("here")
def test_the_command_says_what_python_says():
    told = say(*BOTH, "--bootstrap", 0, "--criterion", "KAnonymity=10")
    assert told.out.strip() == str(audited(criteria=[cpv.KAnonymity(10)]))
    shown = say(*BOTH, "--bootstrap", 0, "--json", "--criterion", "TCloseness=0.05", code=1)
    document = json.loads(shown.out)
    assert "letters" not in document
    assert document["holds"] is False
    expected = audited(criteria=[cpv.TCloseness(0.05)])
    assert document["measures"]["I1"]["worst"] == expected.measures["I1"].worst
    alone = say("audit", "t.csv", "--sensitive", "ill", "--key", "age", "--bins", "age=20")
    assert "[20, 40)" not in alone.err
    assert "2 letters" in alone.out
    again = [say(*BOTH, "--seed", 3).out for _ in range(2)]
    assert again[0] == again[1]
    assert "at 95%" in again[0]


@pytest.mark.usefixtures("here")
def test_the_command_writes_for_the_owner_alone_and_says_so():
    told = say(*BOTH, "--html", "a.html", "--out", "a.json", "--criterion", "LDiversity=2.9",
               code=1)  # fmt: skip
    assert "BROKEN" in told.out
    for name in ("a.html", "a.json"):
        assert owner_only(name)
        assert f"{name}: the " in told.out
    assert told.out.count("only you can read it") == 2
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["letters"]
    Page(Path("a.html").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("more", "pieces"),
    [
        (("--key", "town"), ("--key", "town", "'age'")),
        (("--criterion", "Secrecy=1"), ("--criterion", "Secrecy")),
        (("--criterion", "LeakageCap=1"), ("--criterion", "per letter")),
        (("--criterion", "KAnonymity=none"), ("--criterion", "KAnonymity")),
        (("--bins", "age=ten"), ("--bins", "ten")),
        (("--bins", "sex=10"), ("sex",)),
        (("--bootstrap", "-5"), ("bootstrap",)),
        (("--html", "r.csv"), ("--html", "r.csv")),
        (("--out", "no/such/folder.json"), ("--out", "folder")),
        (("--units", "bans"), ("units",)),
    ],
)
def test_the_command_refuses_in_one_line(more, pieces):
    before = {p: p.read_bytes() for p in Path().iterdir()}
    told = say(*BOTH, *more, code=2)
    assert told.out == ""
    assert "Traceback" not in told.err
    for piece in pieces:
        assert piece in told.err
    assert {p: p.read_bytes() for p in Path().iterdir()} == before


@pytest.mark.usefixtures("here")
def test_tables_that_cannot_be_read():
    for args in (("audit", "none.csv"), ("audit", "t.csv", "none.csv")):
        told = say(*args, "--sensitive", "ill", "--key", "age", code=2)
        assert "none.csv" in told.err
    Path("w.csv").write_text("age,sex\n20,f\n", encoding="utf-8")
    told = say("audit", "t.csv", "w.csv", "--sensitive", "ill", "--key", "age,sex", code=2)
    assert "RELEASED: no column 'ill'" in told.err


@pytest.mark.usefixtures("here")
def test_the_command_loads_no_solver():
    code = (
        "import sys\nfrom cvxprivacy.cli import main\n"
        "try:\n    main(['audit', 't.csv', '--sensitive', 'ill', '--key', 'sex', '--bootstrap', "
        "'0'], prog_name='cvxprivacy')\nexcept SystemExit:\n    pass\n"
        "assert not {'cvxpy', 'matplotlib', 'jinja2', 'pooch'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("here")
def test_the_command_takes_an_order_and_names_the_tables():
    text = say(*BOTH, "--bootstrap", 0, "--ordered", "none,cold,flu").out
    assert "ordered distance" in text
    assert "ordered distance" not in say(*BOTH, "--bootstrap", 0).out
    assert "no order of its own" in say(*BOTH, "--bootstrap", 0, "--ordered", code=2).err
    Path("none.csv").write_text("age,sex,ill\n", encoding="utf-8")
    args = ("--sensitive", "ill", "--key", "age,sex")
    for tables, name in ((("t.csv", "none.csv"), "RELEASED"), (("none.csv", "t.csv"), "ORIGINAL")):
        assert f"cvxprivacy: {name}: no records" in say("audit", *tables, *args, code=2).err
    shown = say(*BOTH, "--bootstrap", 0, "--json", "--criterion", "TCloseness=0.05", code=1)
    document = json.loads(shown.out)
    expected = audited(criteria=[cpv.TCloseness(0.05)])
    assert document["criteria"][0]["letters"] == len(expected.verdicts[0].broken)
    assert "places" not in document["criteria"][0]
    assert expected.document()["criteria"][0]["places"] == expected.verdicts[0].broken.tolist()
    assert list(document["averages"]) == ["before", "t"]
    assert document["averages"]["before"]["title"] == "I(W; X)"
    device = say(*BOTH, "--bootstrap", 0, "--html", os.devnull).out
    assert "only you can read it" not in device
