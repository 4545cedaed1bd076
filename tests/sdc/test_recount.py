"""Released tables counted again: as the package says of honest ones, and not of those that lie."""

from __future__ import annotations

import copy
import csv
import itertools
import json
import random
import sys
from pathlib import Path

import pytest

from benchmarks.sdc.released_tables import campaign
from cvxprivacy_sdc import recount
from cvxprivacy_sdc.recount import recounted
from tests.lengths import some_at_length
from tests.sdc.commands.runner import people, refused, report, rows, say, write
from tests.test_architecture import imports_of

KEY = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10")
CRITERIA = [
    ("TCloseness=0.05", "KAnonymity=20"), ("TCloseness=0.1:tv", "LDiversity=1.6"),
    ("TCloseness=0.1:emd", "DeltaDisclosure=0.6"), ("PointwiseMaximalLeakage=0.3",),
    ("LocalInformationPrivacy=0.5", "KAnonymity=31"), ("LeakageCap=0.02", "LDiversity=1.9"),
    ("LeakageCap=0.6:guessing-probability", "PerLetter=0.2:total-variation"), ("PerfectPrivacy",),
]  # fmt: skip
HOW = [
    (), ("--missing", "drop"), ("--missing", "level"), ("--encoder", "wx"), ("--units", "nats"),
    ("--draw", "balanced"), ("--ensure", "table"), ("--suppress", "0.3"),
]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def with_gaps(chance, text):
    """Miss an age or an illness here and there, and have a few notes, most of them one."""
    head, *lines = text.splitlines()
    cells = [line.split(",") for line in lines]
    for row in cells:
        for place in (1, 3):
            row[place] = "" if chance.random() < 0.03 else row[place]
    return "\n".join([head, *map(",".join, cells)]) + "\n"


def drawn(seed, criteria, how=(), key=KEY):
    chance = random.Random(seed)
    text = people(chance.randrange(60, 400))
    write("t.csv", with_gaps(chance, text) if "--missing" in how else text)
    typed = [part for rule in criteria for part in ("--criterion", rule)]
    asked = ("release", "t.csv", *key, *typed, *how, "--seed", seed, "--no-untouched")
    return report(*asked, "--out", "o.csv", "--force", code=None)


CASES = [(seed, CRITERIA[seed % 8], HOW[(seed + seed // 8) % 8]) for seed in range(16)]


@pytest.mark.parametrize(("seed", "criteria", "how"), some_at_length(CASES, 4))
def test_random_tables_are_as_the_package_says(seed, criteria, how, here):
    document = drawn(seed, criteria, how)
    outcome = recounted("t.csv", "o.csv", document)
    assert outcome.problems == []
    assert len(outcome.lines) == 1 + len(criteria)
    for line, check in zip(outcome.lines[1:], document["checks"], strict=True):
        holds = {True: "holds", False: "broken"}[check["table"]["holds"]]
        assert line.startswith(f"{check['criterion']}: {holds}")


@pytest.mark.long
def test_random_tables_of_a_campaign_are_as_their_reports_say():
    """Whole counts of both encoders and mended draws are among them."""
    cases = [*itertools.islice(campaign(0), 12)]
    assert [case for case in cases if case.problems] == []
    kinds = {case.kind.partition(":")[0] for case in cases}
    assert {"whole counts, blind", "whole counts, encoder wx", "mended"} <= kinds


def test_bands_groups_weights_and_what_is_asked_of_both(here):
    """W in bands, a key of text put together, weights; a cap on what who knows x is told."""
    chance = random.Random(3)
    towns = [chance.choice(["Rome", "Paris", "Lyon", "Nice", "Oslo"]) for _ in range(300)]
    lines = [f"{town},{chance.randrange(90)},{chance.random():.3f}" for town in towns]
    write("t.csv", "\n".join(["town,pay,weight", *lines]) + "\n")
    for more in (
        ("--top", "town=2", "--criterion", "ConditionalLeakageCap=0.02", "--encoder", "wx"),
        ("--weights", "weight", "--criterion", "TCloseness=0.02"),
    ):
        how = ("--sensitive", "pay", "--key", "town", "--bins", "pay=30",
               "--criterion", "LeakageCap=0.01", *more)  # fmt: skip
        document = report("release", "t.csv", *how, "--seed", 1, "--out", "o.csv", "--force",
                          code=None)  # fmt: skip
        outcome = recounted("t.csv", "o.csv", document)
        assert outcome.problems == []
        assert "told here" not in "".join(outcome.lines)


def test_the_entropy_of_a_record_by_hand(here):
    """Of a's 4 and b's 2 records, 3 and 1 become a: as uncertain as among 4 · 3^(-3/4) · …."""
    write("t.csv", "x,w\n" + "a,0\n" * 4 + "b,1\n" * 2)
    write("o.csv", "x,w\n" + "a,0\n" * 3 + "b,0\n" + "a,1\n" + "b,1\n")
    value = min(4 * (4 / 3) ** 0.75 * 2**0.25, 2 * 4**0.5 * 2**0.5)
    coding = {"key": ["x"], "sensitive": ["w"], "weights": None, "bins": [], "missing": "refuse",
              "reading": {}}  # fmt: skip
    for k, holds in ((value - 1e-9, True), (value + 1e-9, False)):
        check = {"kind": "RecordEntropy", "criterion": f"RecordEntropy({k:g})", "per_group": True,
                 "standing": "", "law": None,
                 "table": {"holds": holds, "groups": 1 - holds, "records": (1 - holds) * 2,
                           "value": value, "bound": k}}  # fmt: skip
        rule = {"kind": "RecordEntropy", "k": k}
        outcome = recounted("t.csv", "o.csv", {
            "asked": {"coding": coding, "encoder": "x", "criteria": [rule], "distortion": {}},
            "drawn": {"groups": 2, "smallest": 2, "risk": 0.04411, "distortion": 1 / 3},
            "released": {"records": 6, "changed": 2}, "checks": [check], "units": "bits",
        })  # fmt: skip
        assert [p for p in outcome.problems if "I(W" not in p] == []


# ---- lies --------------------------------------------------------------------------------


def _flip(document):
    document["checks"][0]["table"]["holds"] = not document["checks"][0]["table"]["holds"]


LIES = [
    (_flip, "TCloseness(0.05): holds is reported, broken by"),
    (lambda d: d["checks"][0].update(standing="holds"), "holds is reported, broken by"),
    (lambda d: d["checks"][0].update(table=None), "TCloseness(0.05): nothing is reported"),
    (lambda d: d["checks"][0]["table"].update(groups=0), "TCloseness(0.05), groups: 0 is"),
    (lambda d: d["checks"][0]["table"].update(value=0.05), "at its worst: 0.05 is reported"),
    (lambda d: d["checks"][1].update(kind="KAnonymity"), "what was asked is"),
    (lambda d: d["checks"][1]["table"].update(bound=50), "what was asked is"),
    (lambda d: d["checks"][1].update(criterion="RecordEntropy(200)"), "what was asked is"),
    (lambda d: d["checks"][1].update(criterion="DeltaDisclosure(20)"), "what was asked is"),
    (lambda d: [d["checks"][1][of].update(bound=None) for of in ("law", "table")], "what was"),
    (lambda d: d["checks"].pop(), "1 verdicts on the 2"),
    (lambda d: d["released"].update(changed=1), "changed records: 1 is reported"),
    (lambda d: d["drawn"].update(smallest=20), "records of the least group: 20 is reported"),
    (lambda d: d["drawn"].update(groups=3), "groups: 3 is reported"),
    (lambda d: d["drawn"].update(risk=0.0), "I(W; X̂) of the table: 0 is reported"),
    (lambda d: d["drawn"].update(distortion=0.0), "distortion: 0 is reported"),
]


def test_every_lie_of_a_report_is_denied(here):
    honest = drawn(2, ("TCloseness=0.05", "RecordEntropy=20"), ("--ensure", "law"))
    assert honest["checks"][0]["table"]["holds"] is False
    assert recounted("t.csv", "o.csv", honest).problems == []
    for lie, denial in LIES:
        document = copy.deepcopy(honest)
        lie(document)
        problems = recounted("t.csv", "o.csv", document).problems
        assert any(denial in problem for problem in problems), (denial, problems)


def test_a_record_that_was_altered_is_noticed(here):
    document = drawn(2, ("TCloseness=0.05", "KAnonymity=20"))
    write("report.json", json.dumps(document))
    how = ("verify", "--table", "t.csv", "--released", "o.csv", "--report", "report.json")
    assert "o.csv: counted again, and as report.json says" in say(*how).out
    honest = rows("o.csv")
    for change in ({"sex": "F"}, {"ill": "yes"}, {"note": "seen"}):
        altered = copy.deepcopy(honest)
        row = next(row for row in altered if {**row, **change} != row)
        row.update(change)
        with Path("o.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*row])
            writer.writeheader()
            writer.writerows(altered)
        printed = say(*how, code=1).out
        assert "o.csv: NOT as report.json says" in printed
        assert ("1 records differ in columns" in printed) == ("sex" not in change)
        assert not report(*how, code=1)["o.csv"]["verified"]


# ---- what is refused ----------------------------------------------------------------------


def test_what_cannot_be_counted_is_refused_in_words(here):
    document = drawn(2, ("KAnonymity=20",))
    write("report.json", json.dumps(document))
    text = Path("o.csv").read_text("utf-8")
    write("fewer.csv", "".join(text.splitlines(keepends=True)[:-1]))
    write("more.csv", text + text.splitlines(keepends=True)[-1])
    write("other.csv", text.replace("age", "years", 1))
    write("bare.csv", "\n".join(line.replace("[", "(") for line in text.splitlines()))
    write("law.json", json.dumps({"checks": []}))
    how = ("verify", "--table", "t.csv", "--report", "report.json", "--released")
    for name, piece in (
        ("fewer.csv", "fewer records"), ("more.csv", "more records"),
        ("other.csv", "has the columns"), ("bare.csv", "which is no band"),
        ("none.csv", "No such file"),
    ):  # fmt: skip
        refused(*how, name, pieces=["--released", piece])
    law = ("verify", "--table", "t.csv", "--released", "o.csv", "--report", "law.json")
    refused(*law, pieces=["release --out --json"])
    refused("verify", "--released", "o.csv", pieces=["--table", "--report"])
    refused("verify", pieces=["PROOF"])
    document["asked"]["coding"]["reading"]["format"] = "parquet"
    write("report.json", json.dumps(document))
    refused(*how, "o.csv", pieces=["t.csv is no table of Parquet"])
    with pytest.raises(ValueError, match="delimited text alone is counted"):
        recounted("t.csv", "o.csv", document)
    document["asked"]["coding"]["reading"]["format"] = "spss"
    write("report.json", json.dumps(document))
    refused(*how, "o.csv", pieces=["nothing reads SPSS but what writes it", ".csv"])


def test_it_shares_nothing_with_what_it_checks():
    names = {name.split(".")[0] for name in imports_of(Path(recount.__file__))}
    assert names <= {"flint", *sys.stdlib_module_names}
