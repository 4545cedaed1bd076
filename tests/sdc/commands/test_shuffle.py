"""``--shuffle`` in every format; and what a released file alone gives away."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvxprivacy_sdc.dossier.page import html
from cvxprivacy_sdc.formats import parquet
from cvxprivacy_sdc.formats.shuffle import Shuffle
from cvxprivacy_sdc.formats.table_files import open_table
from tests.lengths import rest_at_length, some_at_length
from tests.sdc.commands.runner import SEX, loaded, people, refused, report, rows, say, write

WHY = "the extras `engines` and `files` are not installed"
pa, pq, intruder, _ = (
    pytest.importorskip(name, reason=WHY)
    for name in ("pyarrow", "pyarrow.parquet", "tests.sdc.commands.intruder", "duckdb")
)
FORMATS, CODED = intruder.FORMATS, intruder.CODED
OTHERS = ("id", "age", "ill")  # copied


def by_town(records=300):
    """Return the people sorted by sex, which is the key."""
    header, *lines = people(records).splitlines()
    return "\n".join([header, *sorted(lines, key=lambda line: line.split(",")[2])]) + "\n"


def columns(path):
    """Return the copied columns of a table as they are read."""
    table = open_table(path)
    frame = table.frame(list(OTHERS))
    frame = frame.to_arrow_table().to_pandas() if hasattr(frame, "to_arrow_table") else frame
    return list(zip(*(frame[name].tolist() for name in OTHERS), strict=True))


def written(kind):
    """Write the sorted table in a format."""
    import pyreadstat

    write("t.csv", by_town())
    frame = pd.read_csv("t.csv")
    path = f"t.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, row_group_size=70)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    elif kind == "dta":
        pyreadstat.write_dta(frame, path)
    elif kind == "xpt":
        pyreadstat.write_xport(frame, path)
    elif kind.endswith("sav"):
        pyreadstat.write_sav(frame, path, compress=kind == "zsav")
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_records_are_released_in_the_order_that_the_manifest_keeps(kind, here):
    path, out = written(kind), f"o.{kind}"
    document = report("release", path, *SEX, "--seed", 3, "--shuffle", "--out", out)
    order = Shuffle.kept(out).order(300)
    before = columns(path)
    assert columns(out) == [before[i] for i in order]
    assert order.tolist() != list(range(300))
    assert Shuffle.kept(out).key == Shuffle.of(3).key
    assert document["order"]["shuffled"]
    assert {one["about"] for one in document["order"]["findings"] if not one["by"]} >= {"sex"}
    assert Path(f"{out}.house.json").stat().st_mode & 0o077 == 0
    say("release", path, *SEX, "--seed", 3, "--out", f"p.{kind}")  # the draws are the same
    if kind == "csv":
        plain, shuffled = (list(map(tuple, map(dict.values, rows(f)))) for f in ("p.csv", out))
        assert shuffled == [plain[i] for i in order]


def test_a_fresh_order_is_of_the_operating_system(here):
    written("csv")
    keys = set()
    for _ in range(2):
        say("release", "t.csv", *SEX, "--shuffle", "--out", "o.csv", "--force")
        keys.add(loaded("o.csv.house.json")["shuffle"])
    assert len(keys) == 2
    for records in (0, 1, 7, 1000):
        assert sorted(Shuffle("00" * 32).order(records)) == [*range(records)]
    places = Counter(int(Shuffle(f"{i:064x}").order(4)[0]) for i in range(2000))
    assert sum((n - 500) ** 2 / 500 for n in places.values()) < 16.3  # χ² of 3 degrees: p = 0.001


ODD = {
    "comments and blank lines": ("# a note\nk,w\na,1\n# of b\nb,2\n\nc,3\n", "utf-8"),
    "no last line end": ("k,w\r\na,1\r\nb,2\r\nc,3", "utf-8"),
    "quoted line ends": ('k,w\na,"1\n1"\n"b ""2""",2\nc,3\n', "utf-8"),
    "two bytes": ("\ufeffk,w\nä,1\n€,2\nc,3\n", "utf-16-le"),
    "escapes": ("k,w\nあ,1\nb,2\nい,3\n", "iso2022_jp"),
    "a mark": ("\ufeffk,w\nä,1\nb,2\nc,3\n", "utf-8"),
}


@pytest.mark.parametrize("name", ODD)
def test_all_but_the_order_of_lines_stays(name, here):
    text, encoding = ODD[name]
    write("odd.csv", text.encode(encoding))
    how = {"encoding": encoding, "comment": "#"}
    table = open_table("odd.csv", how)
    table.shuffle = Shuffle("07" * 32)
    order = table.shuffle.order(3).tolist()
    assert order != [0, 1, 2]
    with Path("o.csv").open("wb") as file:
        table.write(file, {}, None, None)
    again = open_table("o.csv", how)
    before, after = table.columns(), again.columns()
    assert after == {n: [cells[i] for i in order] for n, cells in before.items()}
    old, new = (Path(p).read_bytes().decode(encoding) for p in ("odd.csv", "o.csv"))
    assert Counter(new) == Counter(old)
    assert new.endswith("\n") == old.endswith("\n")
    if "#" in text:
        assert new.startswith("# a note\nk,w\n# of b\n\n")


def test_records_that_are_left_out_have_no_place(here):
    write("t.csv", by_town().replace(",M,", ",,", 40))
    say("release", "t.csv", *SEX, "--missing", "drop", "--shuffle", "--seed", 1, "--out", "o.csv")
    kept = [row["id"] for row in rows("t.csv") if row["sex"]]
    order = Shuffle.kept("o.csv").order(260)
    assert [row["id"] for row in rows("o.csv")] == [kept[i] for i in order]


def test_a_large_table_of_parquet_waits_in_files(here, monkeypatch):
    """Many row groups of what would be one; categories of copied columns tell no order."""
    n = 3000
    names = pa.DictionaryArray.from_arrays(pa.array(np.arange(n) % 7, pa.int8()), list("gfedcba"))
    table = pa.table({
        "i": np.arange(n), "town": names, "sex": ["MF"[i // 1500] for i in range(n)],
        "ill": ["ny"[i * i % 7 % 2] for i in range(n)], "many": [[i, None] for i in range(n)],
    })  # fmt: skip
    pq.write_table(table, "t.parquet")
    monkeypatch.setattr(parquet, "GROUP", table.nbytes // 10)
    monkeypatch.setattr(parquet, "BATCH", 500)
    say("release", "t.parquet", *SEX, "--drop", "ill", "--shuffle", "--out", "o.parquet")
    order, made = Shuffle.kept("o.parquet").order(n), pq.ParquetFile("o.parquet")
    assert made.num_row_groups >= 5
    for name in ("i", "town", "many"):
        assert made.read()[name].to_pylist() == table[name].take(order).to_pylist()
    for chunk in made.read()["town"].chunks:
        assert chunk.dictionary.to_pylist() == sorted(chunk.dictionary.to_pylist())


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx", "dta"])
def test_a_shuffled_table_is_counted_beside_its_original(kind, here):
    path, out = written(kind), f"o.{kind}"
    args = ("release", path, *SEX, "--seed", 3, "--shuffle", "--out", out, "--report", "r.json")
    write("r2.json", json.dumps(report(*args)))
    changed = loaded("r.json")["changed"]["any"]["records"]
    assert 0 < changed < 60  # beside one another, and not as they stand
    how = ("--table", path, "--released", out, "--report", "r2.json")
    assert "counted again, and as" in say("verify", *how).out
    manifest = loaded(f"{out}.house.json")
    other = write(f"{out}.house.json", json.dumps({**manifest, "shuffle": "00" * 32}))
    assert "records differ in columns that are to be copied" in say("verify", *how, code=1).out
    Path(other).unlink()
    refused("verify", *how, pieces=[f"{out} was shuffled", f"{out}.house.json"])


@pytest.mark.long
def test_next_month_and_noise_are_shuffled_too(here):
    written("csv")
    say("release", "t.csv", *SEX, "--channel", "c.json")
    line = "note: the order of records tells of sex"
    assert line in say("apply", "c.json", "t.csv", "--out", "n.csv").out
    text = say("apply", "c.json", "t.csv", "--out", "m.csv", "--shuffle").out
    assert line not in text
    assert "a running number or a time stamp undoes a shuffle" in text
    before, order = [row["id"] for row in rows("t.csv")], Shuffle.kept("m.csv").order(300)
    assert [row["id"] for row in rows("m.csv")] == [before[i] for i in order]
    header, *lines = by_town().splitlines()
    lines.sort(key=lambda line: line.split(",")[1])
    write("a.csv", "\n".join([header, *lines]) + "\n")
    noise = ("release", "a.csv", "--noise", "--sensitive", "id", "--key", "age", "--budget", 0.3)
    noise += ("--drop", "note")  # which tells the number
    for more, may in ((), False), (("--shuffle",), True):
        say(*noise, "--out", "o.csv", "--report", "r.json", "--force", *more)
        assert loaded("r.json")["verdict"]["may_be_released"] is may
    order = Shuffle.kept("o.csv").order(300)
    assert [row["id"] for row in rows("o.csv")] == [rows("a.csv")[i]["id"] for i in order]


def test_the_first_page_says_what_the_order_tells(here):
    written("csv")
    args = (
        "release",
        "t.csv",
        *SEX,
        "--out",
        "o.csv",
        "--report",
        "r.json",
        "--seed",
        1,
        "--force",
    )
    refused("release", "t.csv", *SEX, "--shuffle", pieces=["--shuffle", "--out"])
    printed = say(*args).out
    assert "note: the order of records tells of sex: records next to each other have the" in printed
    facts = loaded("r.json")
    (order,) = facts["leaks"]["orders"]
    assert order["line"].startswith("the order of records tells of sex:")
    assert facts["verdict"]["may_be_released"] is False
    assert "release it with --shuffle" in facts["verdict"]["words"]
    say(*args, "--shuffle")
    facts = loaded("r.json")
    assert facts["leaks"]["shuffled"]
    assert "The order of records: it is random, and secret." in html(facts)
    assert facts["verdict"]["may_be_released"] is True
    assert "--shuffle" in facts["input"]["command"]


@pytest.mark.parametrize(
    ("copies", "options", "may", "words"),
    [
        (1.0, (), False, "town2 is copied and tells 100% of sex"),
        (1.0, ("--no-untouched",), None, "nobody looked at what id, age, note and town2 tell of"),
        (1.0, ("--drop", "town2"), True, "may be released"),
        (0.93, (), False, "town2 is copied and tells 6"),
        (0.85, (), True, "may be released"),
    ],
)
def test_a_copy_of_the_key_turns_the_verdict(copies, options, may, words, here):
    """At .85 it tells .39 bits of about 1, which is said on the terminal."""
    header, *lines = people(2000).splitlines()
    chance = np.random.default_rng(1).permutation(len(lines)) < copies * len(lines)
    town = [line.split(",")[2] if copied else "FM"[line.split(",")[2] == "F"]
            for line, copied in zip(lines, chance, strict=True)]  # fmt: skip
    lines = [f"{line},{place}{place}" for line, place in zip(lines, town, strict=True)]
    write("t.csv", "\n".join([f"{header},town2", *lines]) + "\n")
    text = say("release", "t.csv", *SEX, "--out", "o.csv", "--report", "r.json", "--seed", 1,
               *options).out  # fmt: skip
    verdict = loaded("r.json")["verdict"]
    assert verdict["may_be_released"] is may
    assert words in verdict["words"]
    assert ("town2 is copied" in text) == (not options)


def copies_of(sex):
    """Return copies of a column in types of Arrow, of which some are not compared."""
    first = [date(2000 + (s == "M"), 1, 1) for s in sex]
    late = pa.array(first, pa.date32()).cast(pa.int32()).to_pylist()
    return {
        "number": pa.array([int(s == "M") for s in sex]), "list": pa.array([[s] for s in sex]),
        "struct": pa.array([{"sex": s} for s in sex]),
        "after 9999": pa.array([2932897, *late[1:]], pa.int32()).cast(pa.date32()),
    }  # fmt: skip


@pytest.mark.parametrize("kind", rest_at_length(["struct", "after 9999", "number", "list"], 2))
def test_a_copy_of_any_type_of_arrow_turns_the_verdict(kind, here):
    sex = np.random.default_rng(1).choice(list("MF"), 1000)
    ill = np.random.default_rng(2).choice(list("ny"), 1000)
    columns = {"sex": pa.array(sex), "ill": pa.array(ill), "copy": copies_of(sex)[kind]}
    pq.write_table(pa.table(columns), "t.parquet")
    for more, may in ((), False), (("--no-untouched",), None), (("--drop", "copy"), True):
        say("release", "t.parquet", *SEX, "--out", "o.parquet", "--report", "r.json", "--force",
            *more)  # fmt: skip
        assert loaded("r.json")["verdict"]["may_be_released"] is may, more


def test_a_copy_of_a_number_turns_the_verdict_of_noise(here):
    header, *lines = people(400).splitlines()
    text = "\n".join([f"{line},{int(line.split(',')[1]) * 12}" for line in lines])
    write("t.csv", f"{header},months\n{text}\n")
    args = ("release", "t.csv", "--noise", "--sensitive", "id", "--key", "age", "--budget", 0.3,
            "--out", "o.csv", "--report", "r.json", "--drop", "note", "--force",
            "--shuffle")  # fmt: skip
    assert "months is copied and tells 100% of age" in say(*args).out
    verdict = loaded("r.json")["verdict"]
    assert verdict["may_be_released"] is False
    say(*args, "--drop", "months")
    assert loaded("r.json")["verdict"]["may_be_released"] is True


# ---- what the released file alone gives away ----------------------------------------------

WAYS = [
    (kind, arranged, options, seed)
    for kind in FORMATS
    for arranged, options, seed in [
        ("sorted", (), 4), ("sorted", ("--shuffle",), 5), ("mixed", (), 5), ("mixed", (), 4),
        ("sorted", (), 5), ("sorted", ("--shuffle",), 4), ("mixed", ("--shuffle",), 5),
    ]
]  # fmt: skip


@pytest.mark.parametrize(("kind", "arranged", "options", "seed"), some_at_length(WAYS, 7))
def test_nothing_is_recovered_where_the_verdict_is_green(kind, arranged, options, seed, here):
    outcome = intruder.attack(kind, arranged, seed, *options)
    assert outcome.strings == []
    numbered = kind in CODED  # so that the lowest code is the key of the first record
    assert outcome.green == (bool(options) or (arranged == "mixed" and not numbered))
    assert (outcome.restored > 0.5) == (arranged == "sorted" and not options)
    assert (abs(outcome.deviations) < 4) == (outcome.green or arranged == "mixed")


@pytest.mark.parametrize("arranged", ["sorted", "mixed"])
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_are_in_no_order_of_appearance(ordered, arranged, here):
    """An order that was declared stays, if the categories do not happen to stand in it."""
    names, places = ["low", "high", "mid", "none", "unused"], np.arange(60) * 7 % 4
    places = np.sort(places) if arranged == "sorted" else places[::-1]
    column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), names, ordered=ordered)
    ill = pa.array(["ny"[i % 3 > 1] for i in range(60)])
    texts = {"levels": "low, high", "by": "us", "first": "LOW, High"}
    lists = {"_PL_ENUM_VALUES2": "3;low4;high", "unit": "a level", "codes": '["low", "high"]'}
    fields = [pa.field("sex", column.type, metadata=lists), pa.field("ill", pa.string())]
    table = pa.table([column, ill], schema=pa.schema(fields, texts))
    pq.write_table(table, "t.parquet", compression="none")
    text = say("release", "t.parquet", *SEX, "--out", "o.parquet").out
    assert (
        "metadata that name values of the key are left out: "
        "_PL_ENUM_VALUES2, codes, levels, first" in text
    )
    schema = pq.read_schema("o.parquet")
    assert (schema.field("sex").metadata, schema.metadata) == (
        {b"unit": b"a level"},
        {b"by": b"us"},
    )
    released = pq.read_table("o.parquet")["sex"]
    there = {*released.to_pylist()}
    declared = ordered and arranged == "mixed"
    expected = [n for n in names if n in there] if declared else sorted(there)
    assert released.chunk(0).dictionary.to_pylist() == expected
    assert released.type.ordered == declared
    assert b"unused" not in Path("o.parquet").read_bytes()


def test_no_width_or_label_is_of_a_value_that_is_not_released(here):
    pyreadstat = pytest.importorskip("pyreadstat", reason=WHY)
    frame = {
        "sex": ["M", "F"] * 150 + ["a long and rare value"],
        "ill": ["y", "n", "n"] * 100 + ["y"],
    }
    pyreadstat.write_sav(pd.DataFrame(frame), "t.sav")
    say("release", "t.sav", *SEX, "--top", "sex=1", "--seed", 2, "--out", "o.sav")
    data, kept = pyreadstat.read_sav("o.sav")
    longest = max(map(len, data["sex"]))
    assert kept.original_variable_types["sex"] == f"A{longest}" != "A21"
    assert kept.variable_storage_width["sex"] == longest
    codes = {"sex": [1.0, 2.0] * 150 + [3.0], "ill": frame["ill"]}
    labels = {"sex": {1.0: "male", 2.0: "female", 3.0: "told of one"}}
    pyreadstat.write_sav(pd.DataFrame(codes), "u.sav", variable_value_labels=labels)
    say(
        "release",
        "u.sav",
        *SEX,
        "--criterion",
        "KAnonymity=5",
        "--seed",
        2,
        "--out",
        "o.sav",
        "--force",
    )
    assert {*pyreadstat.read_sav("o.sav")[0]["sex"]} == {1.0, 2.0}
    kept = pyreadstat.read_sav("o.sav")[1].variable_value_labels
    assert kept == {"sex": {1.0: "male", 2.0: "female"}}
