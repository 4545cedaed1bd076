"""``release --after``: which records are matched, what is drawn of them, and what is proved."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import cvxprivacy_sdc as sdc
from cvxprivacy.release.channel import Channel
from cvxprivacy_sdc.dossier import tradeoff
from tests.lengths import some_at_length
from tests.sdc.commands.runner import refused, report, say, write
from tests.sdc.commands.test_dossier import readable

ASKED = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=20", "--row-id", "id")
FIRST = (*ASKED, "--budget", "0.4", "--seed", "5")
SECOND = (*ASKED, "--budget", "0.2", "--seed", "5")
EARLIER = ("--after", "jan.csv", "--after-channel", "jan.json")
SET = (
    "--out", "feb.csv", "--certificate", "p.json", "--channel", "c.json", "--problem-out", "r.toml",
)  # fmt: skip


def people(records, start=0):
    chance, lines = random.Random(7 + start), ["id,age,sex,ill,note"]
    for i in range(start, start + records):
        age, sex = chance.randrange(20, 60), chance.choice("MF")
        ill = chance.random() < (age - 10) / 70 + 0.2 * (sex == "M")
        lines.append(f'p{i},{age},{sex},{["no", "yes"][ill]},"n {i}"')
    return lines


LINES = people(3000)
LATER = "\n".join([LINES[0], *LINES[101:], *people(40, 10_000)[1:]]) + "\n"


@pytest.fixture(scope="module")
def january(tmp_path_factory):
    folder = tmp_path_factory.mktemp("january")
    write(folder / "t.csv", "\n".join(LINES) + "\n")
    out, channel = folder / "jan.csv", folder / "jan.json"
    say("release", folder / "t.csv", *FIRST, "--no-untouched", "--out", out, "--channel", channel)
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.fixture(scope="module")
def february(tmp_path_factory, january):
    """What the release after it leaves, of the files that `here` has."""
    folder = tmp_path_factory.mktemp("february")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, content in january.items():
            write(name, content)
        write("f.csv", LATER)
        say(*sequel(*SET))
        return {p.name: p.read_bytes() for p in folder.iterdir() if p.name not in january}


@pytest.fixture
def released(here, february):
    for name, content in february.items():
        write(name, content)
    return here


@pytest.fixture
def here(tmp_path, monkeypatch, january):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tradeoff, "SECONDS", 0.0)
    for name, content in january.items():
        write(name, content)
    write("f.csv", LATER)
    return tmp_path


def sequel(*more, table="f.csv", asked=SECOND, earlier=EARLIER):
    return ("release", table, *asked, *earlier, "--no-untouched", *more)


def letters(name):
    table = pd.read_csv(name, dtype=str).set_index("id")
    return pd.Series(list(zip(table["age"], table["sex"], strict=True)), table.index)


# ---- what is drawn, and what is said ------------------------------------------------------


def test_a_set_is_released_counted_and_verified(here):
    facts = report(*sequel(*SET, "--report", "a.html", "--report", "a.json"))
    counts = facts["sequel"]
    assert (counts["matched"], counts["new"], counts["gone"], counts["changed"]) == (
        2900,
        40,
        100,
        0,
    )
    assert facts["released"]["records"] == 2940
    rows = {row["name"]: row for row in counts["told"]}
    together, apart = rows["all together"], rows["all together, were this one drawn by itself"]
    assert together["lower"] <= facts["upper"] <= together["upper"] + 1e-12
    assert max(rows["the earlier release"]["upper"], rows["this one"]["upper"]) < apart["upper"]
    assert together["upper"] < apart["lower"]
    assert all(0 <= row["upper"] - row["lower"] < 1e-12 for row in rows.values())
    assert counts["new_records"]["status"] == "certified"
    proof = report("verify", "p.json", "--table", "f.csv", "--problem", "r.toml")["p.json"]
    assert proof["verified"]
    new = report("verify", "p.new.json", "--table", "f.csv", "--problem", "r.new.toml")
    assert new["p.new.json"]["verified"]
    assert float(new["p.new.json"]["claim"]["upper"]) == counts["new_records"]["upper"]
    dossier = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert dossier["sequel"]["told"] == counts["told"]
    assert dossier["verification"]["verified"] is True
    commands = dossier["verification"]["commands"]
    assert "cvxprivacy verify p.json --table f.csv --problem r.toml" in commands
    assert "cvxprivacy verify p.new.json --table f.csv --problem r.new.toml" in commands
    assert any("nothing is proved" in line for line in dossier["cautions"])
    assert "--after jan.csv --after-channel jan.json" in dossier["input"]["command"]
    page = Path("a.html").read_text(encoding="utf-8")
    assert "Together with earlier releases" in page
    readable(page)
    assert "In all tables: 2,900 records; new: 40; gone: 100." in page


def test_both_letters_have_the_law_that_is_proved(released):
    """Of the same seed and names, whose numbers would else be those of the first release."""
    first, second, key = letters("jan.csv"), letters("feb.csv"), Channel.load("c.json")
    solved = Channel.load("jan.json")
    truth = pd.read_csv("f.csv").set_index("id")
    band = [f"[{20 * (age // 20)}, {20 * (age // 20 + 1)})" for age in truth["age"]]
    x = pd.Series(list(zip(band, truth["sex"], strict=True)), truth.index)
    both = x.index.intersection(first.index)
    assert len(both) == 2900
    value, degrees = 0.0, 0
    for letter in key.inputs:
        place = key.inputs.index(letter)
        chosen = second[both][(x[both] == letter[0]) & (first[both] == letter[1])]
        row = key.matrix[place]
        counts = np.array([(chosen == y).sum() for y in key.outputs])
        assert counts[row == 0].sum() == 0
        there = row * len(chosen) > 5
        value += ((counts - len(chosen) * row)[there] ** 2 / (len(chosen) * row)[there]).sum()
        degrees += int(there.sum())
    assert value < chi2.ppf(1 - 1e-6, degrees)
    alone = Channel.load("c.new.json")
    for letter in alone.inputs:
        if (x[~x.index.isin(both)] == letter).any():
            fresh = second[x.index[(x == letter) & ~x.index.isin(both)]]
            assert all(alone.matrix[alone.inputs.index(letter), alone.outputs.index(y)] > 0
                       for y in fresh)  # fmt: skip
    assert solved.inputs == alone.inputs


def test_order_and_months_do_not_matter(released):
    lines = Path("f.csv").read_text(encoding="utf-8").splitlines()
    write("g.csv", "\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    released = Path("jan.csv").read_text(encoding="utf-8").splitlines()
    write("turned.csv", "\n".join([released[0], *reversed(released[1:])]) + "\n")
    earlier = ("--after", "turned.csv", "--after-channel", "jan.json")
    facts = report(*sequel("--out", "b.csv", table="g.csv", earlier=earlier))
    assert (letters("feb.csv").sort_index() == letters("b.csv").sort_index()).all()
    assert any("was not checked" in note for note in facts["notes"])  # no house file beside it


def test_a_value_that_changed_is_told_and_not_proved(here):
    table = pd.read_csv("f.csv")
    matrix, labels = np.eye(4), Channel.load("jan.json")
    cells = labels.outputs
    sure = Channel(matrix, inputs=cells, outputs=cells, schema=labels.schema)
    sure.save("sure.json")
    original = pd.read_csv("t.csv")
    original["age"] = [f"[{20 * (age // 20)}, {20 * (age // 20 + 1)})" for age in original["age"]]
    original.to_csv("sure.csv", index=False)
    table.loc[:2, "sex"] = ["F" if sex == "M" else "M" for sex in table["sex"][:3]]
    table.to_csv("f.csv", index=False)
    earlier = ("--after", "sure.csv", "--after-channel", "sure.json")
    facts = report(*sequel("--out", "a.csv", earlier=earlier))
    assert (facts["sequel"]["changed"], facts["sequel"]["matched"]) == (3, 2897)
    assert any("3 records changed" in note for note in facts["notes"])


@pytest.mark.long
def test_several_earlier_tables(here):
    other = [*FIRST[:-1], "6"]
    write("half.csv", "\n".join(LINES[:1501]) + "\n")
    say("release", "half.csv", *other, "--no-untouched", "--out", "dec.csv", "--channel",
        "dec.json")  # fmt: skip
    earlier = (*EARLIER, "--after", "dec.csv", "--after-channel", "dec.json")
    facts = report(*sequel("--out", "a.csv", earlier=earlier))
    assert (facts["sequel"]["matched"], facts["sequel"]["partly"]) == (1400, 1500)
    assert facts["sequel"]["after"] == ["jan.csv", "dec.csv"]
    assert any("seed of its own" in note for note in facts["notes"])
    assert not any("not such as" in note for note in facts["notes"])
    Path("copy.csv").write_bytes(Path("jan.csv").read_bytes())  # one draw is not two
    copied = (*EARLIER, "--after", "copy.csv", "--after-channel", "jan.json")
    again = report(*sequel("--out", "b.csv", earlier=copied))
    assert any("not such as the channels draw" in note for note in again["notes"])


@pytest.mark.long
def test_all_are_matched_where_none_is_new(here):
    facts = report(*sequel(*SET, table="t.csv"))
    assert (facts["sequel"]["new"], facts["sequel"]["matched"]) == (0, 3000)
    assert not Path("p.new.json").exists()
    assert "certificate, new records" not in facts["files"]
    text = say(*sequel("--force", *SET, table="t.csv")).out
    assert "of a record that is new" not in text
    assert "3,000 records in all, 0 new, 0 gone" in text


@pytest.mark.parametrize("more", some_at_length([
    ["--encoder", "wx"],
    ["--criterion", "LeakageCap=0.3", "--units", "nats"],
    ["--suppress", "0.5", "--distortion", "age=ordinal,sex=hamming"],
    ["--leakage", "total-variation"],
    ["--untouched"],
], 1))  # fmt: skip
def test_other_options_go_with_it(here, more):
    facts = report(*sequel("--out", "a.csv", *more))
    assert facts["released"]["records"] == 2940
    assert facts["sequel"]["matched"] == 2900
    assert facts["released_law"]["name"] == "all releases together"


def test_least_distortion_under_a_criterion_of_all_releases(here):
    asked = (*ASKED, "--seed", "5", "--criterion", "LeakageCap=0.1")
    facts = report(*sequel("--out", "a.csv", "--certificate", "p.json", asked=asked))
    together = next(row for row in facts["sequel"]["told"] if row["name"] == "all together")
    assert together["upper"] <= 0.1 + 1e-12
    assert facts["checks"][0]["law"]["holds"] is True
    tight = (*ASKED, "--seed", "5", "--criterion", "LeakageCap=1e-6")
    refused(*sequel("--out", "b.csv", asked=tight), code=3)


@pytest.mark.long
def test_parquet(here):
    file = pytest.importorskip("pyarrow.parquet", reason="the extra `tables` is not installed")
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    pytest.importorskip("duckdb", reason="the extra `tables` is not installed")
    for name in ("f", "jan"):
        file.write_table(arrow.Table.from_pandas(pd.read_csv(f"{name}.csv")), f"{name}.parquet")
    say(*sequel("--out", "a.csv"))
    earlier = ("--after", "jan.parquet", "--after-channel", "jan.json")
    facts = report(*sequel("--out", "a.parquet", table="f.parquet", earlier=earlier))
    assert facts["sequel"]["matched"] == 2900
    made = file.read_table("a.parquet").to_pandas()
    assert (made["age"].to_numpy() == pd.read_csv("a.csv")["age"].to_numpy()).all()


# ---- what is refused ---------------------------------------------------------------------


def test_what_makes_no_sequel_is_refused(here):
    refused(*sequel(earlier=EARLIER[:2]), pieces=["--after", "1 table of 0 channels"])
    refused(*sequel(earlier=EARLIER[2:]), pieces=["--after", "0 tables of 1 channel"])
    refused(*sequel(earlier=2 * EARLIER), pieces=["--after", "one table twice", "independently"])
    asked = [part for part in SECOND if part not in ("--row-id", "id")]
    refused(*sequel(asked=asked), pieces=["--row-id", "none, with --after"])
    refused(*sequel("--noise"), pieces=["--noise"])
    refused(*sequel("--ensure", "table", "--out", "o.csv"), pieces=["--ensure table"])
    refused(*sequel("--out", "jan.csv", "--force"), pieces=["the input jan.csv"])
    refused(*sequel(earlier=("--after", "jan.csv", "--after-channel", "f.csv")),
            pieces=["--after-channel", "no channel"])  # fmt: skip
    refused(*sequel(earlier=("--after", "none.csv", "--after-channel", "jan.json")),
            pieces=["none.csv"])  # fmt: skip
    wider = [part.replace("age=20", "age=40") for part in SECOND]
    refused(*sequel(asked=wider), pieces=["--after-channel jan.json", "no input", "--bins"])
    fewer = [part.replace("age,sex", "age") for part in SECOND]
    refused(*sequel(asked=fewer), pieces=["--after-channel jan.json", "no input", "the key"])


def test_records_of_a_value_that_the_earlier_table_never_had_are_listed(here):
    lines = Path("f.csv").read_text(encoding="utf-8").splitlines()
    write("f.csv", "\n".join([*lines, "q1,30,X,no,n", "q2,31,X,yes,n", "q3,95,M,no,n"]) + "\n")
    pieces = ["--after-channel jan.json", "3 of 2,943 records", "'X') of q1, q2;", "'M') of q3",
              "put these records into a table of their own"]  # fmt: skip
    refused(*sequel("--out", "o.csv"), pieces=pieces)
    old, age, _, *others = lines[1].split(",")  # of whom something is out
    assert old in set(pd.read_csv("jan.csv", dtype=str)["id"])
    changed = [lines[0], ",".join([old, age, "X", *others]), *lines[2:]]
    write("f.csv", "\n".join(changed) + "\n")
    pieces = ["--top of that release; leave out those that are in jan.csv, 1: their values"]
    refused(*sequel("--out", "o.csv"), pieces=pieces)
    write("f.csv", "\n".join([*changed, "q1,30,X,no,n"]) + "\n")
    pieces = [f"of {old}", "of q1;", "put those that are not in jan.csv into a table", "csv, 1:"]
    refused(*sequel("--out", "o.csv"), pieces=pieces)
    write("f.csv", "\n".join(lines) + "\n")
    say(*sequel("--out", "o.csv"))


def edited(name, change):
    table = pd.read_csv(name, dtype=str)
    change(table)
    write("edited.csv", table.to_csv(index=False))
    return "edited.csv"


def test_records_that_are_not_named_each_by_itself_are_refused(here):
    def twice(table):
        table.loc[3, "id"] = table.loc[1, "id"]

    def gap(table):
        table.loc[2, "id"] = None

    def other(table):
        table.loc[4, "sex"] = "X"

    def strangers(table):
        table["id"] = "q" + table["id"]

    for change, pieces in (
        (twice, ["--after edited.csv, record 4", "'p1' names records 1 and 3"]),
        (gap, ["--after edited.csv, record 3", "a missing name"]),
        (other, ["--after edited.csv, record 5", "'X'", "pass the channel that released"]),
        (strangers, ["--row-id", "no record is in edited.csv, too"]),
    ):
        name = edited("jan.csv", change)
        refused(*sequel(earlier=("--after", name, "--after-channel", "jan.json")), pieces=pieces)
    for change, pieces in ((twice, ["--row-id", "names records"]), (gap, ["--row-id", "missing"])):
        refused(*sequel(table=edited("f.csv", change)), pieces=pieces)
    name = edited("jan.csv", lambda table: table.drop(columns="id", inplace=True))
    refused(*sequel(earlier=("--after", name, "--after-channel", "jan.json")),
            pieces=["--after edited.csv", "no column 'id'"])  # fmt: skip


def test_a_channel_that_did_not_draw_the_table_is_refused(here):
    say("release", "t.csv", *ASKED, "--budget", "0.3", "--seed", "5", "--no-untouched", "--channel",
        "other.json")  # fmt: skip
    other = ("--after", "jan.csv", "--after-channel", "other.json")
    refused(*sequel(earlier=other), pieces=["--after-channel other.json", "another channel"])
    house = json.loads(Path("jan.csv.house.json").read_text(encoding="utf-8"))
    write("jan.csv.house.json", json.dumps({**house, "merged": []}))
    refused(*sequel(), pieces=["--after jan.csv", "merged after the draw"])
    Path("jan.csv.house.json").unlink()
    document = json.loads(Path("jan.json").read_text(encoding="utf-8"))
    document["released_as"] = [document["outputs"][0]] * len(document["outputs"])
    write("jan.json", json.dumps(document))
    refused(*sequel(), pieces=["--after-channel jan.json", "merged after the draw"])


def test_a_sequel_of_a_sequel_is_refused(released):
    earlier = ("--after", "feb.csv", "--after-channel", "c.json")
    refused(*sequel(earlier=earlier), pieces=["--after-channel c.json", "a release before it"])
    refused("apply", "c.json", "f.csv", "--out", "x.csv", pieces=["channel", "release --after"])


def test_groups_that_only_read_the_same_are_refused(here):
    write("one.csv", "M,a\nF,b\n")
    write("two.csv", "M,b\nF,a\n")
    first, second = (
        (*ASKED, "--seed", "5", "--group", f"sex={name}.csv") for name in ("one", "two")
    )
    say("release", "t.csv", *first, "--budget", "0.4", "--no-untouched", "--out", "g.csv",
        "--channel", "g.json")  # fmt: skip
    earlier = ("--after", "g.csv", "--after-channel", "g.json")
    refused(*sequel("--budget", "0.2", asked=second, earlier=earlier),
            pieces=["--after-channel g.json", "other groups of 'sex'"])  # fmt: skip


# ---- forged documents --------------------------------------------------------------------


def test_a_proof_of_other_earlier_releases_is_no_proof_of_this_problem(released):
    question = ("--table", "f.csv", "--problem", "r.toml")
    alone = report("verify", "p.new.json", *question, code=1)["p.new.json"]
    assert any("letters" in line for line in alone["problems"])  # the earlier channel left out
    refusal = report("verify", "p.json", "--table", "f.csv", code=1)["p.json"]
    assert any("earlier releases" in line for line in refusal["problems"])
    kept = Channel.load("jan.json")
    turned = Channel(kept.matrix[[1, 0, 3, 2]], inputs=kept.inputs, outputs=kept.outputs,
                     schema=kept.schema)  # fmt: skip
    turned.save("jan.json")  # altered since
    altered = report("verify", "p.json", *question, code=1)["p.json"]
    assert any(line.startswith("r.toml: law") for line in altered["problems"])


def test_a_document_of_another_law_is_not_verified(released):
    document = json.loads(Path("p.json").read_text(encoding="utf-8"))
    law = document["program"]["law"]
    law[0], law[1] = law[1], law[0]
    write("forged.json", json.dumps(document))
    outcome = report("verify", "forged.json", "--problem", "r.toml", code=1)["forged.json"]
    assert not outcome["verified"]
    document = json.loads(Path("p.json").read_text(encoding="utf-8"))
    del document["table"]["earlier"]
    write("forged.json", json.dumps(document))
    outcome = report("verify", "forged.json", "--table", "f.csv", code=1)["forged.json"]
    assert not outcome["verified"]


def test_python_draws_the_same(released):
    together, alone, first = (Channel.load(f"{name}.json") for name in ("c", "c.new", "jan"))
    made = sdc.Sequel(together, alone, after=first, released=pd.read_csv("jan.csv"), row_id="id")
    released = made.apply(pd.read_csv("f.csv"), seed=5)
    assert released.equals(pd.read_csv("feb.csv"))


# ---- criteria of all releases --------------------------------------------------------------


def of_both(first, second):
    """Return p(z, x̂ | x) of two channels, the second of which remembers, a row for each x."""
    rows = dict(zip(second.inputs, second.matrix, strict=True))
    return np.array([
        np.concatenate([p * rows[x, z] for z, p in zip(first.outputs, chances, strict=True)])
        for x, chances in zip(first.inputs, first.matrix, strict=True)
    ])  # fmt: skip


def test_criteria_are_of_what_all_releases_tell_together(here):
    """At ε = 2 first, and 2.5 for both: the second alone would have been allowed 2.5 more."""
    asked = (*ASKED, "--seed", "5", "--no-untouched")
    first = ("--criterion", "LocalPrivacy=2", "--budget", "0.4", "--out", "a.csv")
    say("release", "t.csv", *asked, *first, "--channel", "a.json")
    rules = [f"--criterion={rule}" for rule in ("LocalPrivacy=2.5", "MaximalLeakage=1.4")]
    rules += ["--criterion=RecordEntropy=600", "--criterion=LDiversity=1.7"]
    earlier = ("--after", "a.csv", "--after-channel", "a.json", *rules)
    facts = report("release", "f.csv", *asked, *earlier, *SET)
    rows = of_both(Channel.load("a.json"), Channel.load("c.json"))
    assert np.log(rows.max(axis=0) / rows.min(axis=0)).max() <= 2.5 + 1e-12
    assert np.log2(rows.max(axis=0).sum()) <= 1.4 + 1e-12
    laws = {check["name"]: check["law"] for check in facts["checks"]}
    assert all(law["holds"] and law["of"] == "all releases together" for law in laws.values())
    assert 600 <= laws["record_entropy"]["value"] <= 2940
    assert laws["l_diversity"]["value"] >= 1.7
    assert facts["status"] == "certified"
    proof = report("verify", "p.json", "--table", "f.csv", "--problem", "r.toml")["p.json"]
    assert proof["verified"]


def test_local_privacy_that_the_first_release_exceeds_is_refused(here):
    pieces = ("epsilon", "of the earlier releases alone")
    refused(*sequel("--criterion", "LocalPrivacy=1", *SET), pieces=pieces)
