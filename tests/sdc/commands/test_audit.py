"""``cvxprivacy audit``: it says and writes what Python does."""

from __future__ import annotations

from pathlib import Path

import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.sdc.audits import Page, audited, coarse, owner_only, people
from tests.sdc.commands.runner import RUN, command, loaded, refused, report, say, write


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().to_csv("t.csv", index=False)
    coarse(people()).to_csv("r.csv", index=False)
    return tmp_path


ROLES = ("--sensitive", "ill", "--key", "age,sex")
BOTH = ("audit", "t.csv", "r.csv", *ROLES)
PLAIN = (*BOTH, "--bootstrap", 0)


def test_the_command_says_what_python_says():
    printed = say(*PLAIN, "--criterion", "KAnonymity=10")
    assert printed.out.strip() == str(audited(criteria=[cpv.KAnonymity(10)]))
    document = report(*PLAIN, "--criterion", "TCloseness=0.05", code=1)
    expected = audited(criteria=[cpv.TCloseness(0.05)])
    assert "letters" not in document
    assert document["holds"] is False
    assert document["measures"]["I1"]["worst"] == expected.measures["I1"].worst
    assert document["criteria"][0]["letters"] == len(expected.verdicts[0].broken)
    assert "places" not in document["criteria"][0]
    assert list(document["averages"]) == ["before", "t"]
    assert document["averages"]["before"]["title"] == "I(W; X)"
    alone = say("audit", "t.csv", "--sensitive", "ill", "--key", "age", "--bins", "age=20")
    assert "2 letters" in alone.out
    again = [say(*BOTH).out for _ in range(2)]
    assert again[0] == again[1]
    assert "at 95%" in again[0]


def test_several_columns_each_by_itself():
    table = people().assign(debts=lambda t: t["age"] % 3 == 0)
    table.to_csv("t.csv", index=False)
    options = ("audit", "t.csv", "--sensitive", "ill,debts", "--key", "age,sex", "--each",
               "--bins", "age=20", "--bootstrap", 0, "--criterion", "LDiversity=1.88")  # fmt: skip
    how = {"key": ["age", "sex"], "bins": {"age": 20}, "criteria": [cpv.LDiversity(1.88)]}
    expected = sdc.audit_each(table, sensitive=["ill", "debts"], **how)
    assert [of.holds for of in expected.values()] == [False, True]
    assert say(*options, code=1).out.strip() == str(expected)
    document = report(*options, code=1)
    assert document["holds"] is False
    assert document["audits"]["ill"]["holds"] is False
    assert "letters" not in document["audits"]["ill"]
    say(*options[:-2])
    refused(*options, "--report", "a.html", pieces=("--report", "one confidential column"))
    refused(*options, "--ordered", "none,cold,flu", pieces=("no column", "audit their column"))


def test_uniqueness_in_the_population():
    options = ("audit", "t.csv", *ROLES, "--fraction", 0.2, "--bootstrap", 0)
    estimate = audited(people(), people()).uniqueness(0.2)
    assert say(*options).out.strip().endswith(str(estimate))
    assert report(*options)["uniqueness"] == estimate.document()
    assert str(estimate) in say(*options, "--each").out
    refused(*options[:-4], "--fraction", 2, pieces=("--fraction",))
    for fraction in ("nan", 1e-300):
        refused(*options[:-4], "--fraction", fraction, pieces=("--fraction", "at most 1"))


def test_wildcards():
    table = people()
    table.loc[::7, "sex"] = None
    table.to_csv("t.csv", index=False)
    options = ("audit", "t.csv", *ROLES, "--missing", "wildcard", "--bootstrap", 0)
    wild, level = (audited(table, table, missing=how) for how in ("wildcard", "level"))
    assert wild.measures["k"].average > level.measures["k"].average
    assert report(*options)["measures"]["k"]["average"] == wild.measures["k"].average
    options = ("release", "t.csv", *ROLES, "--budget", 0.1, "--missing", "wildcard", "--out", "o")
    refused(*options, pieces=("--missing",))


def test_figures_before_and_after_by_the_channel_that_wrote_the_table():
    release = ("release", "t.csv", *ROLES, "--bins", "age=20", "--budget", 0.1, "--seed", 2,
               "--criterion", "KeepProbability=0.6", "--ensure", "law", "--no-untouched",
               "--out", "o.csv", "--channel", "c.json")  # fmt: skip
    say(*release)
    options = ("audit", "t.csv", "o.csv", *ROLES, "--bins", "age=20", "--bootstrap", 0)
    channel = cpv.Channel.load("c.json")
    expected = sdc.quality(people(), channel.apply(people(), seed=2), channel)
    assert str(expected) in say(*options, "--channel", "c.json").out
    assert str(expected) in say(*options, "--channel", "c.json", "--each").out
    document = report(*options, "--channel", "c.json")
    assert document["quality"] == expected.document()
    assert document["quality"]["summary"]["one-way"]["determined"] == 4
    assert "quality" not in report(*options)
    refused("audit", "t.csv", *ROLES, "--channel", "c.json", pieces=("--channel", "RELEASED"))
    refused("audit", "t.csv", "r.csv", *ROLES, "--channel", "c.json", pieces=("RELEASED", "+, f)"))


def test_the_command_writes_for_the_owner_alone_and_says_so():
    printed = say(*BOTH, "--report", "a.html", "--report", "a.json",
                  "--criterion", "LDiversity=2.9", code=1)  # fmt: skip
    assert "BROKEN" in printed.out
    for name in ("a.html", "a.json"):
        assert owner_only(name)
        assert f"{name}: the report" in printed.out
    assert printed.out.count("only you can read it") == 3
    assert loaded("a.json")["verdict"]["may_be_released"] is False
    Page(Path("a.html").read_text(encoding="utf-8").replace("<br>", ""))


@pytest.mark.parametrize(
    ("more", "pieces"),
    [
        (("--key", "town"), ("--key", "town", "'age'")),
        (("--criterion", "Secrecy=1"), ("--criterion", "Secrecy")),
        (("--criterion", "KAnonymity=none"), ("--criterion", "KAnonymity")),
        (("--bins", "age=ten"), ("--bins", "ten")),
        (("--bins", "sex=10"), ("sex",)),
        (("--bootstrap", "-5"), ("bootstrap",)),
        (("--ordered",), ("no order of its own",)),
        (("--report", "r.csv"), ("--report", "r.csv")),
        (("--report", "no/such/folder.json"), ("--report", "folder")),
        (("--units", "bans"), ("units",)),
        (("--leakage", "gossip"), ("--leakage", "gossip", "chi-squared")),
        (("--leakage", "sibson"), ("--leakage", "sibson:NUMBER")),
        (("--leakage", "sibson:1"), ("--leakage: order of sibson: 1",)),
    ],
)
def test_the_command_refuses_in_one_line(more, pieces):
    refused(*BOTH, *more, pieces=pieces)


def test_tables_that_cannot_be_read_are_named():
    for args in (("none.csv",), ("t.csv", "none.csv")):
        refused("audit", *args, *ROLES, pieces=["none.csv"])
    write("w.csv", "age,sex\n20,f\n")
    refused("audit", "t.csv", "w.csv", *ROLES, pieces=["RELEASED: no column 'ill'"])
    write("empty.csv", "age,sex,ill\n")
    for tables, name in (
        (["t.csv", "empty.csv"], "RELEASED"),
        (["empty.csv", "t.csv"], "ORIGINAL"),
    ):
        refused("audit", *tables, *ROLES, pieces=[f"cvxprivacy: {name}: no records"])


def test_the_command_loads_no_solver(here):
    code = f"""import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
{RUN}"""
    done = command("audit", "t.csv", *ROLES, "--bootstrap", 0, code=code, cwd=here)
    assert done.returncode == 0, done.stderr
    assert not {"cvxpy", "matplotlib", "jinja2", "pooch"} & set(done.stderr.split())


def test_the_command_takes_measures_of_leakage():
    information = say(*PLAIN, "--leakage", "hockey-stick:1.5", "--leakage", "earth-mover").out
    measures = [cpv.leakage.HockeyStick(1.5), cpv.leakage.EarthMover()]
    assert information.strip() == str(audited(leakage=measures))
    assert "takes ill in the order cold, flu, none, which is the alphabet's" in information
    summary = report(*PLAIN)["measures"]["guessing probability"]
    expected = audited().measures["guessing probability"]
    assert summary["average"] == expected.average
    assert (summary["nothing"], summary["everything"]) == (expected.nothing, 1.0)
    assert summary["meaning"] == expected.leakage.meaning
    broken = say(*PLAIN, "--criterion", "PerLetter=0.01:total-variation", code=1).out
    assert "BROKEN  PerLetter(TotalVariation(), 0.01)" in broken


def test_the_command_takes_an_order():
    assert "ordered distance" in say(*PLAIN, "--ordered", "none,cold,flu").out
    assert "ordered distance" not in say(*PLAIN).out


@pytest.mark.parametrize("bins", ["-inf:1e-300000000:50", "1e-300000000"])
def test_a_huge_exponent_is_refused_where_it_is_typed(bins, here):
    how = ("--sensitive", "ill", "--key", "age", "--bins", f"age={bins}")
    refused("audit", "t.csv", *how, pieces=["--bins", repr(bins), "write a width"])
