"""Released tables of other formats than text counted again: as text is, and lies are seen."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.lengths import rest_at_length
from tests.sdc.commands.runner import refused, report, say, write
from tests.sdc.commands.test_as_offices_have_it import lines_of, written

HEADER = ("id", "age", "town", "dose", "pay")
ENDINGS = ["parquet", "xlsx", "dta"]
HOW = {
    "missing level": ("--bins", "age=q4", "--missing", "level", "--top", "town=2"),
    "missing drop": ("--bins", "age=-inf:30:inf", "--missing", "drop", "--drop", "id"),
    "weights": ("--bins", "age=20", "--weights", "dose", "--criterion", "LDiversity=1.5"),
    "bands": ("--bins", "age=10", "--criterion", "TCloseness=0.3:emd"),
    "as it is": ("--key", "dose", "--criterion", "KAnonymity=3"),
}


def records(gaps):
    """Return records of whole numbers, text and halves; pay, 9 to 12, depends on age."""
    chance = random.Random(4)
    for i in range(160):
        age, town = chance.randrange(20, 60), chance.choice(["Ulm", "Bonn", "Trier", "Hof"])
        if gaps and i % 13 == 0:
            age = None
        pay = 9 + min(3, chance.randrange(1, (age or 40) // 9))
        yield i, age, town, chance.randrange(1, 9) / 2, pay


def drawn(ending, how):
    """Release the table in a format, and keep the report."""
    table = list(records("--missing" in how))
    if ending == "csv":
        table = [["" if cell is None else cell for cell in row] for row in table]
    name = written(ending, HEADER, table)
    key = () if "--key" in how else ("--key", "age,town")
    asked = ("--sensitive", "pay", *key, "--budget", 0.15, "--seed", 3, *how, "--no-untouched")
    write(f"{ending}.json", say("release", name, *asked, "--out", f"o.{ending}", "--json").out)


def counted(ending, released=None, code=0):
    name = released or f"o.{ending}"
    how = ("verify", "--table", f"t.{ending}", "--released", name, "--report", f"{ending}.json")
    return report(*how, code=code)[name]


@pytest.mark.parametrize("ending", rest_at_length(ENDINGS, 1))
@pytest.mark.parametrize("how", rest_at_length(list(HOW), 1))
def test_it_is_counted_as_text_is(ending, how, here):
    """What is said of the table is what is said of the same table as text."""
    for kind in (ending, "csv"):
        drawn(kind, HOW[how])
    one, other = counted(ending), counted("csv")
    assert one["verified"]
    assert one["statement"] == other["statement"]
    assert one["statement"][0].startswith("147 records" if "drop" in how else "160 records")


@pytest.mark.parametrize("ending", rest_at_length(ENDINGS, 1))
@pytest.mark.parametrize("column", rest_at_length(["age", "id", "town", "pay"], 2))
def test_a_cell_that_is_not_as_it_was_is_seen(ending, column, here):
    """Of the key it changes figures; of another column it was to be copied."""
    drawn(ending, ("--bins", "age=20"))
    header, *lines = lines_of(f"o.{ending}")
    place = header.index(column)
    donor = next(line[place] for line in lines if line[place] != lines[0][place])
    lines[0] = [*lines[0][:place], donor, *lines[0][place + 1 :]]
    Path(f"t.{ending}").rename("kept")
    Path(written(ending, HEADER, lines)).rename(f"forged.{ending}")
    Path("kept").rename(f"t.{ending}")
    result = counted(ending, f"forged.{ending}", code=1)
    assert not result["verified"]
    copied = "1 records differ in columns that are to be copied" in result["problems"]
    assert copied == (column in ("pay", "id"))


def released(header, table, *how, key="x,sex"):
    """Release a table of Parquet or, of a frame, of Stata; count it again."""
    name = written("parquet", header, table) if header else "t.dta"
    ending = name.rpartition(".")[2]
    asked = ("--sensitive", "ill", "--key", key, "--budget", 0.1, "--seed", 3, *how)
    write(f"{ending}.json", say("release", name, *asked, "--out", f"o.{ending}", "--json").out)
    assert counted(ending)["verified"]


def test_texts_that_look_like_numbers_are_texts(here):
    """1 and 1.0 are two, and a text without its last letters is another one."""
    header = ("x", "sex", "ill", "note")
    table = [
        ("1.0"[: 1 + i % 3 // 2 * 2], "MF"[i % 2], "ny"[i // 3 % 2], "v2.0") for i in range(90)
    ]
    released(header, table)
    lines = [[*line[:3], "v2"] for line in lines_of("o.parquet")[1:]]
    Path("t.parquet").rename("kept")
    Path(written("parquet", header, lines)).rename("forged.parquet")
    Path("kept").rename("t.parquet")
    assert not counted("parquet", "forged.parquet", code=1)["verified"]


@pytest.mark.parametrize("twin", rest_at_length(["X", "x"], 1))
def test_columns_of_one_name_in_parquet(twin, here):
    table = [("ab"[i % 2], "MF"[i % 3 % 2], "ny"[i // 3 % 2], "cd"[i % 5 % 2]) for i in range(90)]
    released(("x", "sex", "ill", twin), table, "--drop", "sex", key=f"{twin}#2")


@pytest.mark.parametrize("how", rest_at_length(["bins", "top"], 1))
def test_numbers_of_single_precision_are_what_they_look_like(how, here):
    """0.7 is in the last band, although the float that is nearest to it is below."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyreadstat")
    tenths = [i % 10 / 10 for i in range(120)]
    table = {"x": tenths, "sex": ["M", "F", "F"] * 40, "ill": ["n", "y", "y", "n"] * 30}
    pd.DataFrame(table).astype({"x": "float32"}).to_stata("t.dta", write_index=False)
    released(None, None, f"--{how}", {"bins": "x=0:0.3:0.7:1", "top": "x=3"}[how])


def test_a_sheet_too_many_is_denied(here):
    openpyxl = pytest.importorskip("openpyxl")
    drawn("xlsx", ("--key", "dose"))
    assert counted("xlsx")["verified"]
    book = openpyxl.load_workbook("o.xlsx")
    book.create_sheet("more").append(["id", 7])
    book.save("more.xlsx")
    how = ("verify", "--table", "t.xlsx", "--released", "more.xlsx", "--report", "xlsx.json")
    refused(*how, pieces=["'more'", "one is released"])


@pytest.mark.parametrize("ending", rest_at_length(["dta", "parquet", "xlsx"], 1))
def test_what_is_no_table_is_refused(ending, here):
    drawn(ending, ("--key", "dose"))
    write(f"no.{ending}", "no")
    for pair in ((f"t.{ending}", f"no.{ending}"), (f"no.{ending}", f"o.{ending}")):
        how = ("--table", pair[0], "--released", pair[1], "--report", f"{ending}.json")
        refused("verify", *how, pieces=["--released: ", "pass the original"])
