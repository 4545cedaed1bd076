"""``release --holdout`` and ``audit --weights``: what they print, write and refuse."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import cvxprivacy as cpv
from cvxprivacy.release.draws import Draws
from tests.sdc.commands.runner import BOTH, OUTPUTS, people, refused, report, rows, say, write

HALF = ("release", "t.csv", *BOTH, "--seed", 1, "--holdout", 0.5, "--no-untouched")


def test_all_records_are_released_through_the_channel_of_a_part(here):
    text = say(*HALF, "--out", "o.csv", "--certificate", "p.json", "--channel", "c.json").out
    assert "population: channel designed on 150 records, measured on 150 others" in text
    assert re.search(r"at 95%, proved +I\(W; X̂\) is at most [0-9.]+ bits: Chernoff", text)
    assert "all 300 go through it" in text
    assert len(rows("o.csv")) == 300
    assert (cpv.Channel.load("c.json").p_input * 150).sum() == pytest.approx(150)
    assert say("verify", "p.json").out.startswith("p.json: verified, certified")
    assert "of mass 150 in all" in say("verify", "p.json").out
    assert "150 records, counted again" in say("verify", "p.json", "--table", "t.csv").out
    house = json.loads(Path("o.csv.house.json").read_text())
    assert house["split"]["share"] == 0.5
    for key in ("0" * 64, "no number"):  # another half of the records, or none
        Path("o.csv.house.json").write_text(
            json.dumps(house | {"split": {"share": 0.5, "key": key}})
        )
        assert "t.csv: " in say("verify", "p.json", "--table", "t.csv", code=1).out
    Path("o.csv.house.json").unlink()
    printed = say("verify", "p.json", "--table", "t.csv", code=1)
    assert "300 records, where the proof has 150" in printed.out + printed.err


@pytest.mark.long
def test_the_document_has_the_population(here):
    document = report(*HALF)
    summary = document["population"]
    assert summary["bound"] in summary["bounds"]
    assert summary["upper"] == summary["bounds"][summary["bound"]]
    assert summary["holdout"]["plugin"] < summary["upper"]
    assert summary["level"] == 0.95
    assert summary["design"]["plugin"] == pytest.approx(document["upper"])
    assert (
        summary["design"]["records"] + summary["holdout"]["records"] == document["records"] == 300
    )
    assert summary["distortion"]["design"] == pytest.approx(0.1)
    assert "independent draws" in summary["assumption"]
    assert any("designed on" in note for note in document["notes"])
    assert report(*HALF)["population"] == summary  # by the seed
    other = report("release", "t.csv", *BOTH, "--seed", 2, "--holdout", 0.5, "--no-untouched")
    assert other["population"]["holdout"] != summary["holdout"]
    nats = report(*HALF, "--units", "nats")["population"]
    assert nats["holdout"]["plugin"] == pytest.approx(summary["holdout"]["plugin"] * 0.693147, 1e-3)
    assert "population" not in report("release", "t.csv", *BOTH, "--no-untouched")


def test_no_file_tells_the_seed_nor_the_key_of_the_draws(here):
    seed = 271828182845904523536028747135266249775
    how = ("--holdout", 0.5, "--seed", seed, "--report", "a.json", "--report", "a.html")
    say("release", "t.csv", *BOTH, *OUTPUTS[:6], *how)
    key = Draws(seed)._secret()
    forms = [str(seed).encode(), hex(seed)[2:].encode(), key, key.hex().encode()]
    paths = [path for path in here.iterdir() if path.name != "t.csv"]
    assert len(paths) > 5
    for path in paths:
        assert not any(form in path.read_bytes() for form in forms), path.name
    split = json.loads(Path("o.csv.house.json").read_text())["split"]
    assert split["key"] == Draws(seed).derived("holdout").hex()  # not to be tried without scrypt


def test_criteria_and_measures_go_with_a_holdout(here):
    roles = ("--sensitive", "ill", "--key", "sex", "--seed", 1, "--no-untouched")
    closer = report("release", "t.csv", *roles, "--criterion", "TCloseness=0.01", "--holdout", 0.3)
    assert closer["population"]["holdout"]["records"] == 90
    chance = ("--budget", 0.1, "--leakage", "guessing-probability", "--holdout", 0.5)
    summary = report("release", "t.csv", *roles, *chance)
    assert 0 < summary["population"]["holdout"]["plugin"] < summary["population"]["upper"]
    missing = people().replace(",M,", ",,", 20)
    write("gaps.csv", missing)
    kept = report("release", "gaps.csv", *roles, "--budget", 0.1, "--missing", "drop",
                  "--holdout", 0.5, "--out", "o.csv")  # fmt: skip
    assert kept["dropped"] > 0
    assert kept["released"]["records"] == kept["records"]


def test_parquet_is_held_out_too(parquet):
    summary = report("release", "t.parquet", *BOTH, "--seed", 1, "--holdout", 0.5, "--no-untouched",
                   "--out", "o.parquet")  # fmt: skip
    assert summary["population"]["whole"]["records"] == summary["released"]["records"] == 300


@pytest.mark.parametrize(
    ("more", "pieces"),
    [
        (("--holdout", 0), ("--holdout", "0.5")),
        (("--holdout", 1), ("--holdout",)),
        (("--holdout", -0.5), ("--holdout",)),
        (("--holdout", "nan"), ("--holdout",)),
        (("--holdout", "half"), ("--holdout", "half")),
        (("--holdout", 0.001), ("--holdout", "of 300 records it holds 0 out")),
        (("--holdout", 0.5, "--weights", "id"), ("--holdout", "--weights")),
        (("--holdout", 0.5, "--encoder", "wx"), ("--holdout", "--encoder")),
        (("--holdout", 0.5, "--problem-out", "r.toml"), ("--holdout", "--problem-out")),
    ],
)
def test_what_does_not_go_with_a_holdout(here, more, pieces):
    refused("release", "t.csv", *BOTH, "--out", "o.csv", *more, pieces=pieces)


def test_one_record_cannot_be_held_out(here):
    write("one.csv", "id,age,sex,ill,note\n1,30,M,no,x\n")
    pieces = ("--holdout", "1 records")
    refused("release", "one.csv", *BOTH, "--holdout", 0.5, pieces=pieces)


# ---- audit --weights ---------------------------------------------------------------------


def weighing():
    chance = random.Random(3)
    head, *lines = people().splitlines()
    return "\n".join([f"{head},w", *(f"{line},{chance.randrange(1, 9)}" for line in lines)]) + "\n"


def test_an_audit_with_weights(here):
    write("w.csv", weighing())
    roles = ("audit", "w.csv", "--sensitive", "ill", "--key", "age,sex", "--bins", "age=10")
    text = say(*roles, "--weights", "w").out
    assert re.search(r"weights +[0-9,]+ persons by w; records weigh as", text)
    assert re.search(r"re-identified +[0-9.]+ records expected.*estimate", text)
    document = report(*roles, "--weights", "w")
    assert document["weights"]["column"] == "w"
    assert "estimate" in document["individual_risk"]["model"]
    plain = report(*roles)
    assert document["measures"]["k"] == plain["measures"]["k"]
    assert document["measures"]["I1"]["worst"] != plain["measures"]["I1"]["worst"]
    refused(*roles, "--weights", "weight", pieces=("--weights", "'weight'", "'w'"))
    refused(*roles, "--weights", "note", pieces=("weights", "note"))
    say("audit", "w.csv", "t.csv", *roles[2:], "--weights", "w", code=2)


def test_of_groups_that_were_merged_the_population_is_told_no_bound(here):
    asked = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=5", "--criterion",
             "TCloseness=0.02", "--holdout", 0.5, "--seed", 1, "--no-untouched")  # fmt: skip
    files = ("--out", "o.csv", "--report", "r.json")
    drawn = report("release", "t.csv", *asked, *files, code=None)
    assert not any("before groups were merged" in note for note in drawn["notes"])
    merged = report("release", "t.csv", *asked, *files, "--force", "--ensure", "table", code=None)
    assert merged["merged"]["groups"]
    assert any(note.startswith("the bound of the population's risk") for note in merged["notes"])
    facts = json.loads(Path("r.json").read_text())
    assert any("those held out too" in text for text in facts["cautions"])
    assert facts["leaks"]["population"]["merged"]
    assert merged["undesigned"]["words"] in facts["input"]["notes"]
