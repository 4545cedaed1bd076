"""Keys recoded on the command line: groups, hierarchies, frequent values, quantiles, cells."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.lengths import rest_at_length
from tests.sdc.commands.runner import loaded, refused, report, rows, say, write

TOWNS = {"Paris": "France", "Lyon": "France", "Rome": "Italy", "Pisa": "Italy", "Oslo": "Norway"}
TABLE = "ill,age,town,zone,note\n" + "".join(
    f"{['no', 'yes'][(i * i % 7 + i % 3) % 5 > 1]},{20 + i * 7 % 40},"
    f"{[*TOWNS][(i * i + i // 7) % 5]},{i % 3},n{i}\n"
    for i in range(200)
)
ROLES = ("--sensitive", "ill", "--budget", 0.1, "--no-untouched")
TREE = "".join(f"{town};{land};*\n" for town, land in TOWNS.items())
HIERARCHY = ("--hierarchy", "town=towns.csv")
RECODED = (
    "--key", "age,town,zone", "--bins", "age=q3", *HIERARCHY, "--level", "town=1",
    "--group", "zone=zones.csv",
)  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("t.csv", TABLE)
    write("towns.csv", TREE)
    write("zones.csv", "value,group\n0,inner\n1,inner\n2,outer\n")
    return tmp_path


def test_a_release_is_of_groups_and_all_that_reads_it_groups_alike(here):
    outputs = ("--out", "o.csv", "--certificate", "p.json", "--channel", "c.json",
               "--problem-out", "sub/r.toml")  # fmt: skip
    Path("sub").mkdir()
    text = say("release", "t.csv", *ROLES, *RECODED, "--seed", 1, *outputs).out
    edges = re.search(r"^--bins (age=-inf:\d+:\d+:inf): quantiles", text)[1]
    released = rows("o.csv")
    assert {row["town"] for row in released} <= {"France", "Italy", "Norway"}
    assert {row["zone"] for row in released} == {"inner", "outer"}
    assert [row["note"] for row in released] == [row["note"] for row in rows("t.csv")]
    unchanged = sum(
        TOWNS[a["town"]] == b["town"] and ("outer" if a["zone"] == "2" else "inner") == b["zone"]
        for a, b in zip(rows("t.csv"), released, strict=True)
    )
    assert unchanged >= 180 - 15  # nine in ten, and what only age has changed

    say("verify", "p.json", "--table", "t.csv", "--problem", "sub/r.toml")
    assert '"town" in 3 groups' in say("verify", "p.json", "--table", "t.csv").out
    say("apply", "c.json", "t.csv", "--seed", 1, "--out", "o2.csv")
    assert Path("o2.csv").read_bytes() == Path("o.csv").read_bytes()
    say("solve", "sub/r.toml")

    typed = [part if part != "age=q3" else edges for part in RECODED]
    say("release", "t.csv", *ROLES, *typed, "--seed", 1, "--out", "o3.csv")
    assert Path("o3.csv").read_bytes() == Path("o.csv").read_bytes()

    write("u.csv", TABLE.replace("Rome", "Pisa"))  # of one group: the same table, so to speak
    say("verify", "p.json", "--table", "u.csv")
    write("u.csv", TABLE.replace("Rome", "Bern"))
    assert "'Bern'" in say("verify", "p.json", "--table", "u.csv", code=1).out
    refused("apply", "c.json", "u.csv", "--out", "o4.csv", pieces=["record ", "'Bern'"])
    refused("release", "u.csv", *ROLES, *RECODED, pieces=["--group", "'town'", "'Bern'"])


def test_a_proof_of_other_groups_is_not_of_the_problem(here):
    say("release", "t.csv", *ROLES, "--key", "town", *HIERARCHY, "--level", "town=1",
        "--certificate", "p.json", "--problem-out", "r.toml")  # fmt: skip
    write("towns.csv", TREE.replace("Pisa;Italy", "Pisa;Norway"))
    text = say("verify", "p.json", "--problem", "r.toml", code=1).out
    assert 'record of the table: its "groups" is not the problem\'s' in text
    plain = Path("r.toml").read_text(encoding="utf-8")
    write("r.toml", re.sub("(?m)^(hierarchy|level).*$", "", plain))
    assert '"groups"' in say("verify", "p.json", "--problem", "r.toml", code=1).out


def test_an_audit_groups_the_original_and_takes_groups_as_they_are(here):
    say("release", "t.csv", *ROLES, *RECODED, "--seed", 1, "--out", "o.csv")
    ask = ("--sensitive", "ill", *RECODED, "--bootstrap", 0)
    full = report("audit", "t.csv", *ask)
    again = report("audit", "t.csv", "t.csv", *ask)
    assert again["information"] == full["information"]
    summary = report("audit", "t.csv", "o.csv", *ask)
    assert summary["information"] != full["information"]
    assert not [note for note in summary["notes"] if "not grouped" in note]
    write("u.csv", Path("o.csv").read_text(encoding="utf-8").replace("Italy", "Elsewhere"))
    notes = say("audit", "t.csv", "u.csv", *ask).out
    assert "town holds other values in the release, such as 'Elsewhere': it is not grouped" in notes


def test_the_most_frequent_values(here):
    text = report("release", "t.csv", *ROLES, "--key", "town", "--top", "town=2", "--out", "o.csv",
                  "--certificate", "p.json")  # fmt: skip
    assert text["recoding"] == {"typed": ["town"]}  # nothing that was settled from the data
    (name, pairs, others), = loaded("p.json")["table"]["groups"]  # fmt: skip
    assert (name, len(pairs), others) == ("town", 2, "other")
    assert {row["town"] for row in rows("o.csv")} <= {*dict(pairs), "other"}


def test_a_problem_file_states_groups_in_every_way(here):
    Path("sub").mkdir()
    head = 'formulation = "PrivacyDistortion"\nbudget = 0.1\n[source]\ntable = "../t.csv"\n'
    head += 'sensitive = "ill"\nkey = ["town", "zone"]\n'
    tail = '[distortion]\nkind = "hamming"\n'
    values = []
    for text in (
        'groups = { zone = "../zones.csv" }\nhierarchy = { town = "../towns.csv" }\n'
        "level = { town = 1 }\n",
        'groups = { zone = { 0 = "inner", 1 = "inner", 2 = "outer" }, town = { '
        + ", ".join(f'{town} = "{land}"' for town, land in TOWNS.items()) + " } }\n",
    ):  # fmt: skip
        values.append(report("solve", write("sub/a.toml", head + text + tail))["upper"])
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    say(
        "solve",
        write("sub/a.toml", head + 'groups = { town = 2 }\nbins = { zone = "q2" }\n' + tail),
    )
    for text, piece in (
        ('hierarchy = { town = "../towns.csv" }\n', "0 (5 groups), 1 (3 groups), 2 (1 group)"),
        ('hierarchy = { town = "../no.csv" }\nlevel = { town = 1 }\n', "cannot be read"),
        ("level = { town = 1 }\n", "no hierarchy of 'town'"),
        ("groups = { town = 0 }\n", "line 7, source.groups.town"),
        ("groups = { town = true }\n", "source.groups.town"),
        ("groups = 5\n", "write a table"),
    ):
        refused("solve", write("sub/a.toml", head + text + tail), pieces=[piece, "a.toml, line "])


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        (HIERARCHY, ["--level", "--level town=NUMBER: 0 (5 groups), 1 (3 groups), 2 (1 group)"]),
        ((*HIERARCHY, "--level", "town=3"), ["--level[town]", "3; the levels are 0"]),
        ((*HIERARCHY, "--level", "town=x"), ["--level", "'x'"]),
        ((*HIERARCHY, "--level", "town=1", "--top", "town=2"), ["--hierarchy", "'town'"]),
        (("--level", "town=1"), ["--level", "--hierarchy town=FILE"]),
        (("--hierarchy", "town=no.csv"), ["--hierarchy", "no.csv cannot be read"]),
        (("--group", "town=no.csv"), ["--group", "no.csv cannot be read"]),
        (("--group", "town=zones.csv"), ["--group", "no group: 'Lyon', 'Oslo', 'Paris' and 2 mo"]),
        (("--group", "town=towns.csv"), ["--group", "towns.csv, line 1", "1 fields"]),
        (("--group", "town=twice.csv"), ["--group", "twice.csv, line 2", "'Rome'"]),
        (("--group", "town=gap.csv"), ["--group", "gap.csv, line 2", "no group for 'Pisa'"]),
        (("--group", "age=zones.csv"), ["--group", "'age'", "neither key"]),
        (("--group", "town"), ["--group", "education=groups.csv"]),
        (("--group", "city=zones.csv"), ["--group", "no column 'city'"]),
        (("--top", "town=0"), ["--top", "'0'"]),
        (("--top", "town=2", "--group", "town=zones.csv"), ["--top", "--group too"]),
        (("--bins", "age=q1", "--key", "age"), ["--bins[age]", "1 quantile"]),
        (("--bins", "town=q4"), ["record 1", "which is no number"]),
        (("--cells", 0), ["--cells", "0"]),
        (("--cells", 1), ["--cells", "2 observed cells"]),
        (("--cells", 9, "--level", "town=1"), ["--level", "no hierarchy"]),
    ],
)
def test_what_is_no_recoding_is_refused_in_one_line(here, options, pieces):
    write("twice.csv", "Rome,a\nRome,a\n")
    write("gap.csv", "Rome,a\nPisa,\n")
    refused("release", "t.csv", *ROLES, "--key", "town", *options, "--out", "o.csv", pieces=pieces)


@pytest.mark.long
@pytest.mark.parametrize("cells", rest_at_length([9, 500, 4, 30], 2))
def test_cells_are_at_most_as_many_and_the_options_printed_are_the_same_problem(here, cells):
    ask = ("release", "t.csv", *ROLES, "--key", "age,town,zone", *HIERARCHY, "--seed", 1)
    summary = report(*ask, "--cells", cells, "--out", "a.csv", "--problem-out", "a.toml")[
        "recoding"
    ]
    assert summary["cells"]["after"] <= min(cells, summary["cells"]["before"])
    assert summary["information"]["after"] <= summary["information"]["before"] + 1e-12
    pasted = report(
        *ask, *shlex.split(summary["options"]), "--out", "b.csv", "--problem-out", "b.toml"
    )
    assert pasted["risk_before"] == pytest.approx(summary["information"]["after"], abs=1e-12)
    for name in ("{}.csv", "{}.toml"):
        assert Path(name.format("a")).read_bytes() == Path(name.format("b")).read_bytes()
    text = say(*ask, "--cells", cells).out
    for piece in (summary["options"], "tells a little", "I(W; X) before", "lost    "):
        assert piece in text


def test_of_a_shuffled_column_the_choice_leaves_nothing_beyond_chance(here):
    """Ages that tell nothing: the cells that suit them best show what chance and choice show."""
    pytest.importorskip("latex2mathml", reason="the extra `report` is not installed")
    rng = np.random.default_rng(3)
    drawn = zip(rng.integers(0, 2, 600), rng.integers(20, 90, 600), strict=True)
    write("chance.csv", "ill,age\n" + "".join(f"{ill},{age}\n" for ill, age in drawn))
    ask = ("release", "chance.csv", "--sensitive", "ill", "--key", "age", "--budget", 0.1)
    document = report(*ask, "--cells", 12, "--no-untouched", "--report", "r.json")
    before, chance = document["risk_before"], document["risk_before_bias"]
    assert chance == document["recoding"]["bias"]["after"] == pytest.approx(before, rel=0.35)
    [row] = json.loads(Path("r.json").read_text())["uncertainty"]["rows"] or [{"bias": None}]
    assert row["bias"] is None
    text = say(*ask, "--cells", 12, "--no-untouched").out
    assert f"bits, about {chance:.2g} of it is chance, as shuffles with the same choice" in text
    pasted = shlex.split(document["recoding"]["options"])
    text = say(*ask, *pasted, "--no-untouched").out
    assert "unless the groups of age were chosen by these records" in text
    assert "unless" not in say(*ask, "--bins", "age=10", "--no-untouched").out


def test_a_parquet_table_has_the_same_cells(here):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("duckdb", reason="the extra `tables` is not installed")
    pd.read_csv("t.csv").to_parquet("t.parquet")
    ask = (*ROLES, "--key", "age,town,zone", *HIERARCHY, "--cells", 12)
    assert (
        report("release", "t.parquet", *ask)["recoding"]["options"]
        == report("release", "t.csv", *ask)["recoding"]["options"]
    )


def test_a_key_of_too_many_cells_is_told_of_the_choice(here):
    write(
        "wide.csv", "ill,a,b\n" + "".join(f"{i % 2},{i % 150},{i // 150}\n" for i in range(15000))
    )
    ask = ("release", "wide.csv", "--sensitive", "ill", "--key", "a,b", "--budget", 0.1)
    refused(*ask, pieces=["--key", "15,000 observed cells", "`release --cells 300`"])
    assert report(*ask, "--cells", 20, "--no-untouched")["recoding"]["cells"]["before"] == 15000
