"""Tables as offices have them: names twice, codes of what is missing, columns that are to go."""

from __future__ import annotations

import csv
import gzip
import json
import random
import shutil
from pathlib import Path

import pytest

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.dossier.page import html
from cvxprivacy_sdc.formats.delimited import CODES, addresses
from cvxprivacy_sdc.formats.table_files import open_table
from cvxprivacy_sdc.statements.columns import column_of
from tests.lengths import rest_at_length, some_at_length
from tests.sdc.commands.runner import loaded, refused, report, rows, say, write

WHY = "cvxprivacy-sdc[files] is not installed"
HOW = ("--sensitive", "ill", "--key", "sex", "--budget", "0.1", "--seed", 5)


def records(count=120):
    """Return records of id, sex, age, ill, note: illness depends on age and sex."""
    chance = random.Random(3)
    for i in range(count):
        age, sex = chance.randrange(20, 60), chance.choice("MF")
        yield i, sex, age, ["no", "yes"][chance.random() < age / 70 + 0.1 * (sex == "M")], f"n{i}"


def written(ending, header=("id", "sex", "age", "ill", "note"), table=None):
    """Write a table in a format; return its name."""
    table = list(records()) if table is None else table
    name = f"t.{ending}"
    if ending in ("csv", "csv.gz"):
        text = "\n".join(",".join(map(str, row)) for row in [header, *table]) + "\n"
        return write(name, gzip.compress(text.encode()) if ending.endswith("gz") else text)
    if ending == "xlsx":
        openpyxl = pytest.importorskip("openpyxl", reason=WHY)
        pytest.importorskip("python_calamine", reason=WHY)
        book = openpyxl.Workbook()
        for row in [header, *table]:
            book.active.append(list(row))
        book.active.column_dimensions["E"].width = 31
        book.save(name)
        return name
    columns = list(zip(*table, strict=True))
    if ending == "parquet":
        pytest.importorskip("duckdb", reason="the extra `engines` is not installed")
        arrow, file = (pytest.importorskip(n, reason="the extra `engines` is not installed")
                       for n in ("pyarrow", "pyarrow.parquet"))  # fmt: skip
        made = arrow.Table.from_arrays([arrow.array(c) for c in columns], names=list(header))
        file.write_table(made, name)
        return name
    pyreadstat, pd = (pytest.importorskip(n, reason=WHY) for n in ("pyreadstat", "pandas"))
    frame = pd.DataFrame(dict(zip(header, columns, strict=True)))
    labels = {"sex": "Sex of the person", "note": "What was noted"}
    kind = "xport" if ending == "xpt" else ending
    getattr(pyreadstat, f"write_{kind}")(frame, name, column_labels=labels)
    return name


def lines_of(path):
    """Return the header and the records of a file of any format, as its own library reads it."""
    path = Path(path)
    if path.name.endswith((".csv", ".gz")):
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        return list(csv.reader(text.decode().splitlines()))
    if path.suffix == ".xlsx":
        import openpyxl

        return [
            list(row) for row in openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        ]
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        made = pq.ParquetFile(path).read()
        columns = [column.to_pylist() for column in made.columns]
        return [made.column_names, *map(list, zip(*columns, strict=True))]
    import pyreadstat

    kind = {"xpt": "xport"}.get(path.suffix[1:], path.suffix[1:])
    frame, _ = getattr(pyreadstat, f"read_{kind}")(path)
    return [list(frame.columns), *frame.values.tolist()]


ENDINGS = ["csv", "csv.gz", "xlsx", "parquet", "sav", "dta", "xpt"]


# ---- columns of one name -----------------------------------------------------------------


TWICE = ("id", "Note", "age", "ill", "Note")


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_a_name_that_is_there_twice_is_called_by_its_place(ending, here):
    """The header stays; each column is reached; the bare name is refused with both."""
    name = written(ending, TWICE)
    roles = ("--sensitive", "ill", "--budget", 0.1, "--seed", 2)
    pieces = ["--key: 'note' is the name of 2 columns; write 'Note#1' or 'Note#2'"]
    refused("release", name, *roles, "--key", "note", pieces=pieces)
    document = report(
        "release", name, *roles, "--key", "note#1,age", "--bins", "age=10", "--out", f"o.{ending}",
        "--certificate", "p.json", "--channel", "c.json", "--problem-out", "r.toml",
    )  # fmt: skip
    assert "'note#1' is taken as the column 'Note#1'" in document["notes"]
    before, after = lines_of(name), lines_of(f"o.{ending}")
    assert after[0] == list(TWICE)
    assert [[r[0], r[3], r[4]] for r in after] == [[r[0], r[3], r[4]] for r in before]
    assert [r[1] for r in after] != [r[1] for r in before]
    say("verify", "p.json", "--table", name, "--problem", "r.toml")
    say("apply", "c.json", name, "--seed", 2, "--out", f"a.{ending}")
    assert lines_of(f"a.{ending}") == after
    audit = ("audit", name, "--sensitive", "ill", "--key", "Note#1", "--bootstrap", 0)
    assert report(*audit)["measures"]


def test_a_recount_by_other_code_knows_them_too(here):
    written("csv", TWICE)
    how = ("--sensitive", "ill", "--key", "Note#1", "--budget", 0.3, "--seed", 2, "--drop", "id")
    document = report("release", "t.csv", *how, "--out", "o.csv")
    write("r.json", json.dumps(document))
    say("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json")
    lines = Path("o.csv").read_text().splitlines()
    write("o.csv", "\n".join([lines[0], lines[1][:-1] + "x", *lines[2:]]) + "\n")
    text = say("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json", code=1)
    assert "1 records differ in columns that are to be copied" in text.out


def test_a_workbook_released_as_text_keeps_its_names(here):
    written("xlsx", TWICE)
    how = ("--sensitive", "ill", "--key", "Note#1", "--budget", 0.3, "--out", "o.csv")
    say("release", "t.xlsx", *how)
    assert Path("o.csv").read_text().startswith("id,Note,age,ill,Note\n")


def test_names_of_parquet_that_differ_in_case(here):
    written("parquet", ("k", "K", "age", "ill", "note"))
    roles = ("--sensitive", "ill", "--budget", 0.3, "--seed", 2)
    assert open_table("t.parquet").header == ["k", "K#2", "age", "ill", "note"]
    say("release", "t.parquet", *roles, "--key", "K#2", "--out", "o.parquet")
    before, after = lines_of("t.parquet"), lines_of("o.parquet")
    assert after[0] == before[0]
    assert [r[0] for r in after] == [r[0] for r in before]
    refused("release", "t.parquet", *roles, "--key", "K", pieces=["write 'k' or 'K#2'"])


# ---- names as they are typed -------------------------------------------------------------


def test_a_name_that_is_made_is_no_other_columns():
    """DuckDB takes K#2 and k#2 for one."""
    assert addresses(["K", "k", "K#3"], fold=True) == ["K", "k#2", "K#3"]
    with pytest.raises(InputError, match="second that is named 'K#2'"):
        addresses(["K", "k", "K#2"], fold=True)


def test_one_rule_for_every_name():
    header = ["age", " Income ", "Street", "a", "A"]
    assert column_of("AGE", header, "--key") == "age"
    assert column_of("income", header, "--key") == " Income "
    assert column_of("A", header, "--key") == "A"
    for name, piece in (
        ("incme", "did you mean ' Income '?"),
        ("ages", "did you mean 'age'?"),
        ("xyz", "use one of 'age', ' Income '"),
        ("", "use one of"),
    ):
        with pytest.raises(InputError, match="--key") as caught:
            column_of(name, header, "--key")
        assert piece in str(caught.value)
    with pytest.raises(InputError, match="2 columns; write 'a' or 'A'"):
        column_of(" a ", header, "--key")
    with pytest.raises(InputError, match="…"):
        column_of("zz", [f"column {i}" for i in range(99)], "--key")


def test_case_is_nothing_in_every_option(here):
    """What is typed otherwise is the same release, and is told once for each name."""
    written("csv")
    plain = ("--sensitive", "ill", "--key", "sex,age", "--bins", "age=10", "--row-id", "id",
             "--distortion", "sex=hamming,age=ordinal", "--suppress", "age=0.5", "--drop",
             "note")  # fmt: skip
    other = ("--sensitive", "ILL", "--key", "Sex, AGE", "--bins", "Age=10", "--row-id", "Id",
             "--distortion", "SEX=Hamming,AGE=Ordinal", "--suppress", "Age=0.5", "--drop",
             "Note")  # fmt: skip
    more = ("--budget", 0.1, "--seed", 5)
    say("release", "t.csv", *plain, *more, "--out", "a.csv")
    text = say("release", "t.csv", *other, *more, "--out", "b.csv", "--report", "b.json").out
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert text.count("note: 'AGE' is taken as the column 'age'") == 1
    assert "'ILL' is taken as the column 'ill'" in loaded("b.json")["input"]["notes"]
    audit = ("audit", "t.csv", "--bootstrap", 0, "--sensitive")
    assert (
        report(*audit, "ill", "--key", "sex")["measures"]
        == (report(*audit, "Ill", "--key", "SEX")["measures"])
    )


def test_bins_of_a_confidential_column_stay_out_of_the_report_whatever_their_case(here):
    written("csv")
    how = ("--sensitive", "age", "--key", "sex", "--bins", "AGE=20:37:60", "--budget", 0.1)
    say("release", "t.csv", *how, "--report", "b.json")
    assert "37" not in loaded("b.json")["input"]["command"]


def test_another_case_in_the_released_table_is_no_suppression(here):
    written("csv")
    write("r.csv", Path("t.csv").read_text().replace("sex", "SEX", 1))
    pieces = ["RELEASED", "r.csv has 'SEX', where the original has 'sex'"]
    refused("audit", "t.csv", "r.csv", "--sensitive", "ill", "--key", "sex", pieces=pieces)


# ---- what is missing ---------------------------------------------------------------------


def coded(ending):
    """Write a table whose ages and incomes have codes, and whose text has them, too."""
    table = [
        (i, ["NA", "M", "F"][i % 3], [age, "NA", "."][max(i % 9 - 6, 0)], ill, ["?", "x"][i % 2])
        for i, _, age, ill, _ in records()
    ]
    return written(ending, table=table)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_usual_codes_are_missing_where_a_column_is_of_numbers(ending, here):
    """They are told with their counts; text has its own letters; what is recorded reads alike."""
    name = coded(ending)
    roles = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10", "--budget", 0.1)
    refused("release", name, *roles, pieces=["26 missing values in column 'age'", "--na"])
    how = (*roles, "--missing", "level", "--seed", 3)
    outputs = ("--out", f"o.{ending}", "--certificate", "p.json", "--channel", "c.json",
               "--problem-out", "r.toml", "--report", "b.json")  # fmt: skip
    document = report("release", name, *how, *outputs)
    (line,) = [n for n in document["notes"] if "taken as missing" in n]
    assert line.startswith(f"{name}: ")
    assert "age (NA 13, . 13)" in line.replace(". 13, NA 13", "NA 13, . 13")
    assert "sex" not in line
    assert "note" not in line
    assert loaded("b.json")["left_out"] == []  # the released table was read again
    assert set(loaded("p.json")["table"]["reading"]["codes"]["age"]) == {"NA", "."}
    sexes = {row[1] for row in lines_of(f"o.{ending}")[1:]}
    assert sexes == {"NA", "M", "F"}  # letters of their own
    ages = {row[2] for row in lines_of(f"o.{ending}")[1:]}
    assert len(ages & {"NA", ".", None}) == 1
    say("verify", "p.json", "--table", name, "--problem", "r.toml")
    text = say("apply", "c.json", name, "--seed", 3, "--out", f"a.{ending}").out
    assert "taken as missing" in text
    assert lines_of(f"a.{ending}") == lines_of(f"o.{ending}")


def test_a_recount_takes_the_same_codes(here):
    coded("csv")
    how = ("--sensitive", "ill", "--key", "age", "--bins", "age=10", "--budget", 0.1)
    for missing in ("level", "drop"):
        document = report("release", "t.csv", *how, "--missing", missing, "--out", "o.csv",
                          "--force")  # fmt: skip
        write("r.json", json.dumps(document))
        say("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json")


def test_na_says_what_is_missing_and_nothing_else_is(here):
    coded("csv")
    how = ("--sensitive", "ill", "--key", "age", "--budget", 0.1, "--missing", "level")
    levels = report("release", "t.csv", *how, "--na", "NA", "--channel", "c.json")
    assert not [note for note in levels["notes"] if "taken as missing" in note]
    assert "codes" not in loaded("c.json")["coding"]["reading"]
    kept = open_table("t.csv", recorded=loaded("c.json")["coding"]["reading"])
    assert kept.frame(["age"])["age"].isna().sum() == 13  # and the point is no missing one


def test_decimal_commas_beside_codes_are_no_text(here):
    lines = [f"{('1,5', 'NA', '2,25', '.')[i % 4]};{i % 2}" for i in range(40)]
    write("k.csv", "pay;ill\n" + "\n".join(lines) + "\n")
    how = ("release", "k.csv", "--sensitive", "ill", "--key", "pay", "--budget", 0.1)
    refused(*how, pieces=["'1,5': a number with a decimal comma, or text", "--decimal ,"])
    assert "taken as missing" in say(*how, "--decimal", ",", "--missing", "level").out


@pytest.mark.parametrize("code", CODES)
def test_a_code_alone_makes_no_column_of_numbers(code, here):
    """Of codes and nothing else, or beside text, it is text as it stands."""
    write("t.csv", f"a,b,c,d\n1,{code},{code},-99\n{code},{code},x,1\n2.5,,y,2\n")
    opened = open_table("t.csv")
    frame = opened.frame()
    assert frame["a"].isna().tolist() == [False, True, False]
    assert frame["a"].sum() == 3.5
    assert frame["b"].tolist()[:2] == [code, code]
    assert frame["c"].tolist() == [code, "x", "y"]
    assert frame["d"].sum() == -96  # a number is no code
    assert opened.taken == {"a": {code: 1}}
    assert code in say("audit", "--help").out


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "sav", "dta", "xpt"])
def test_all_columns_with_gaps_are_named_at_once(ending, here):
    """With their counts and options, and no place in a frame."""
    table = [
        (i, (i % 5 and sex) or None, (i % 7 and age) or None, (i % 9 and ill) or None)
        for i, sex, age, ill, _ in records()
    ]
    if ending == "csv":
        table = [["" if cell is None else cell for cell in row] for row in table]
    name = written(ending, ("id", "sex", "age", "ill"), table)
    roles = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10", "--budget", 0.1)
    gaps = (
        "--sensitive: 14 missing values in column 'ill', 18 in 'age' (--key), 24 in 'sex' (--key)"
    )
    refused("release", name, *roles, pieces=[f"{gaps}; pass --missing level"])
    report("release", name, *roles, "--missing", "level")


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_what_the_file_declares_as_missing_is_told_and_stays(ending, here):
    pyreadstat, pd = (pytest.importorskip(n, reason=WHY) for n in ("pyreadstat", "pandas"))
    table = list(records())
    ages = [99.0 if i % 10 == 0 else float(r[2]) for i, r in enumerate(table)]
    frame = pd.DataFrame({"age": ages, "sex": [r[1] for r in table], "ill": [r[3] for r in table]})
    if ending == "sav":
        pyreadstat.write_sav(frame, "t.sav", missing_ranges={"age": [{"lo": 98, "hi": 99}]})
        declared = "t.sav: SPSS declares as missing, and --missing is of: age (99 12)"
    else:
        frame["age"] = pd.Series(["a" if v == 99 else int(v) for v in ages], dtype=object)
        pyreadstat.write_dta(frame, "t.dta", missing_user_values={"age": ["a"]})
        declared = "t.dta: Stata declares as missing, and --missing is of: age (a 12)"
    refused("release", f"t.{ending}", "--sensitive", "ill", "--key", "age", "--budget", 0.1,
            pieces=["12 missing values in column 'age'", "--missing"])  # fmt: skip
    document = report("release", f"t.{ending}", *HOW, "--out", f"o.{ending}")
    assert declared in document["notes"]
    read = getattr(pyreadstat, f"read_{ending}")
    before, after = (read(f"{x}.{ending}", user_missing=True) for x in "to")
    assert list(after[0]["age"]) == list(before[0]["age"])
    assert after[1].missing_ranges == before[1].missing_ranges
    audit = ("audit", f"t.{ending}", "--sensitive", "ill", "--key", "age", "--bootstrap", 0)
    assert declared in say(*audit, "--missing", "level").out


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_a_board_reads_what_codes_are_called(ending, here):
    pyreadstat = pytest.importorskip("pyreadstat", reason="cvxprivacy-sdc[files] is not installed")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": [1, 2] * 60, "ill": [i // 7 % 2 for i in range(120)]})
    labels = {"sex": {1: "male", 2: "female"}}
    getattr(pyreadstat, f"write_{ending}")(frame, f"t.{ending}", variable_value_labels=labels)
    say(
        "release",
        f"t.{ending}",
        *HOW,
        "--no-untouched",
        "--out",
        f"o.{ending}",
        "--report",
        "a.json",
    )
    keys = {row["key"][0] for row in loaded("a.json")["letters"]["rows"]}
    assert keys == {"male (1)", "female (2)"}


# ---- columns that are not released -------------------------------------------------------


@pytest.mark.parametrize("ending", some_at_length(ENDINGS, 3))
def test_columns_are_left_out_in_every_format(ending, here):
    """All others are as they are without --drop; a second table is released alike."""
    name = written(ending)
    say("release", name, *HOW, "--out", f"entire.{ending}")
    document = report("release", name, *HOW, "--drop", "note,id", "--out", f"o.{ending}",
                      "--channel", "c.json", "--report", "b.json")  # fmt: skip
    entire, after = lines_of(f"entire.{ending}"), lines_of(f"o.{ending}")
    assert after == [[row[1], row[2], row[3]] for row in entire]
    assert document["columns_dropped"] == ["id", "note"]
    assert "not in the released table: id, note" in document["notes"]
    assert [leak["column"] for leak in document["untouched"]] == ["age"]
    parts = {row["column"]: row["part"] for row in loaded("b.json")["input"]["columns"]}
    assert parts == {
        "id": "not in the released table", "sex": "key, released in perturbed form",
        "age": "copied as it is", "ill": "confidential, copied",
        "note": "not in the released table",
    }  # fmt: skip
    say("release", name, *HOW, "--keep-columns", "age", "--out", f"k.{ending}")
    assert lines_of(f"k.{ending}") == after
    text = say("apply", "c.json", name, "--seed", 5, "--out", f"a.{ending}").out
    assert "not in the released table: id, note" in text
    assert lines_of(f"a.{ending}") == after
    say("apply", "c.json", name, "--seed", 5, "--keep-columns", "NOTE", "--out", f"n.{ending}")
    assert lines_of(f"n.{ending}") == [[row[1], row[3], row[4]] for row in entire]
    say("apply", "c.json", name, "--seed", 5, "--drop", "age", "--out", f"d.{ending}")
    assert lines_of(f"d.{ending}") == [[row[1], row[3]] for row in entire]  # and what was before


@pytest.mark.parametrize("title", ["Note", " note", "note,note"])
def test_what_was_left_out_does_not_come_back_by_another_spelling(title, here):
    name = written("csv")
    say("release", name, *HOW, "--drop", "note", "--out", "o.csv", "--channel", "c.json")
    head, body = Path(name).read_text(encoding="utf-8").split("\n", 1)
    assert "note" in head.split(",")
    again, more = ",".join(n if n != "note" else title for n in head.split(",")), ""
    if "," in title:
        more = ",x"
    lines = [f"{line}{more}" for line in body.splitlines()]
    write("next.csv", "\n".join([again, *lines]) + "\n")
    how = ("apply", "c.json", "next.csv", "--seed", 5, "--out", "n.csv")
    refused(*how, pieces=["--drop: 'note' was left out of the first table"])
    assert not Path("n.csv").exists()
    write("less.csv", "\n".join([head.replace("note", "fullname"), *body.splitlines()]) + "\n")
    answer = say("apply", "c.json", "less.csv", "--seed", 5, "--out", "l.csv")
    assert "'note', left out of the first table, is not here" in answer.out + answer.err


def test_a_header_without_a_column_is_no_comment(here):
    write("c.csv", "id,#x,age,ill\n" + "".join(f"{i},a,{i % 3},{i % 2}\n" for i in range(40)))
    how = ("--comment", "#", "--sensitive", "ill", "--key", "age", "--budget", 0.1)
    say("release", "c.csv", *how, "--no-untouched", "--drop", "id", "--out", "o.csv")
    assert Path("o.csv").read_text().startswith('"#x",age,ill\n')
    say("audit", "o.csv", "--comment", "#", "--sensitive", "ill", "--key", "age")


def test_what_other_programs_know_of_a_dropped_parquet_column_goes_with_it(parquet, here):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    file = pytest.importorskip("pyarrow.parquet", reason="the extra `tables` is not installed")
    table = arrow.table(parquet.columns)
    metadata = {b"spark": b"values of note: SECRET", b"pandas": b"{}"}
    file.write_table(table.replace_schema_metadata(metadata), "t.parquet")
    document = report("release", "t.parquet", *HOW, "--drop", "id", "--out", "o.parquet")
    assert b"SECRET" not in Path("o.parquet").read_bytes()
    assert any("left out, too: spark" in note for note in document["notes"])
    report("release", "t.parquet", *HOW, "--out", "w.parquet")
    assert b"SECRET" in Path("w.parquet").read_bytes()


def test_columns_of_a_workbook_keep_their_widths(here):
    name = written("xlsx")
    import openpyxl

    say("release", name, *HOW, "--drop", "id", "--out", "o.xlsx")
    assert openpyxl.load_workbook("o.xlsx").active.column_dimensions["D"].width == 31


def test_what_else_pandas_knows_of_a_parquet_table_is_right(parquet, here):
    import pandas as pd

    frame = pd.read_parquet("t.parquet").astype({"id": str}).set_index("id")
    frame["sex"] = frame["sex"].astype("category")
    frame.to_parquet("i.parquet")
    for drop in ("note", "id"):
        say("release", "i.parquet", *HOW, "--drop", drop, "--out", "o.parquet", "--force")
        after = pd.read_parquet("o.parquet")
        assert list(after.columns) == [n for n in frame.columns if n != drop]
        assert (after.index.name == "id") == (drop != "id")
        assert after["sex"].dtype == "category"


@pytest.mark.parametrize("ending", rest_at_length(["csv", "xlsx", "parquet"], 1))
def test_the_confidential_column_may_be_left_out(ending, here):
    """Its proof and its report are those of the whole table; an audit asks for it."""
    name = written(ending)
    outputs = ("--out", f"o.{ending}", "--certificate", "p.json", "--report", "b.json")
    document = report("release", name, *HOW, "--drop", "ill", *outputs)
    assert [note for note in document["notes"] if note.startswith("ill is confidential and not")]
    assert "ill" not in lines_of(f"o.{ending}")[0]
    entire = report("release", name, *HOW, "--out", f"w.{ending}", "--report", "w.json")
    assert document["lower"] == entire["lower"]
    assert document["checks"] == entire["checks"]
    mine, theirs = loaded("b.json"), loaded("w.json")
    for section in ("letters", "measures", "changed", "loss"):
        assert mine[section] == theirs[section], section
    page = html(mine)
    assert "ill is not in the released table" in page
    assert "copied as it is: nothing here" not in page
    say("verify", "p.json", "--table", name)
    text = say("release", name, *HOW, "--drop", "ill").out
    assert "ill itself is copied as it is" not in text
    audit = ("audit", name, f"o.{ending}", "--sensitive", "ill", "--key", "sex")
    refused(*audit, pieces=["RELEASED: no column 'ill'"])
    if ending == "csv":
        write("r.json", json.dumps(document))
        say("verify", "--table", name, "--released", "o.csv", "--report", "r.json")
        denied = {**document, "columns_dropped": []}
        write("r.json", json.dumps(denied))
        pieces = ["o.csv has the columns", "and not"]
        refused("verify", "--table", name, "--released", "o.csv", "--report", "r.json",
                pieces=pieces)  # fmt: skip


def test_nothing_is_read_off_from_a_column_that_is_not_there(here):
    """Here sex is W by another name."""
    lines = [f"{i},{'MF'[i % 2]},{'yn'[i % 2]}" for i in range(200)]
    write("t.csv", "\n".join(["id,sex,ill", *lines]) + "\n")
    for drop, there in (((), True), (("--drop", "ill"), False)):
        document = report("release", "t.csv", *HOW, *drop, "--attack")["joint_disclosure"]
        read_off = [d for d in document["dependencies"] if "ill" in d["columns"]]
        assert bool(read_off) == there


def test_records_and_columns_go_together(here):
    written("csv", table=[(i, s if i % 7 else "", a, w, n) for i, s, a, w, n in records()])
    how = (*HOW, "--missing", "drop", "--drop", "ill,id", "--ensure", "table", "--criterion",
           "KAnonymity=5")  # fmt: skip
    document = report("release", "t.csv", *how, "--out", "o.csv", "--report", "b.json")
    assert document["dropped"] == 18
    assert loaded("b.json")["left_out"] == []
    before = [row for row in rows("t.csv") if row["sex"]]
    assert [(r["age"], r["note"]) for r in rows("o.csv")] == [(r["age"], r["note"]) for r in before]
    write("r.json", json.dumps(document))
    say("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json")


def test_a_sequel_needs_the_names_of_records(here):
    """Which an earlier table may lack; the later one may leave out what it likes."""
    written("csv")
    how = ("--sensitive", "ill", "--key", "sex", "--budget", 0.2, "--row-id", "id")
    first = (*how, "--seed", 1, "--channel", "c.json", "--out", "o.csv")
    text = say("release", "t.csv", *first, "--drop", "note,ill").out
    assert "no later release" not in text
    after = ("--after", "o.csv", "--after-channel", "c.json")
    say("release", "t.csv", *how, "--seed", 2, *after, "--drop", "note", "--out", "s.csv")
    assert Path("s.csv").read_text().startswith("id,sex,age,ill\n")
    shutil.copy("o.csv", "kept.csv")
    text = say("release", "t.csv", *first, "--drop", "id", "--force").out
    assert "without id no later release can be matched with this one" in text
    refused("release", "t.csv", *how, "--seed", 2, *after, pieces=["--after o.csv: no column 'id'"])


def test_numbers_with_noise_leave_columns_out_too(here):
    written("csv", table=[(i, i % 7 + 0.5, a, a * 2 + i % 3, n) for i, _, a, _, n in records()])
    how = ("--sensitive", "ill", "--key", "age", "--noise", "--budget", 0.2, "--seed", 3)
    document = report("release", "t.csv", *how, "--drop", "note,ill", "--out", "o.csv")
    assert list(rows("o.csv")[0]) == ["id", "sex", "age"]
    assert "not in the released table: ill, note" in document["notes"]
    assert document["columns_dropped"] == ["ill", "note"]


@pytest.mark.parametrize(
    ("typed", "pieces"),
    [
        (("--drop", "sex"), ["--drop: 'sex' is of the key"]),
        (("--drop", "nots"), ["--drop: no column 'nots'; did you mean 'note'?"]),
        (("--keep-columns", "xyz"), ["--keep-columns: no column 'xyz'; use one of"]),
        (("--drop", "id", "--keep-columns", "age"), ["--drop: with --keep-columns"]),
    ],
)
def test_columns_that_cannot_be_left_out(typed, pieces, here):
    written("csv")
    refused("release", "t.csv", *HOW, *typed, "--out", "o.csv", pieces=pieces)
    say("release", "t.csv", *HOW, "--channel", "c.json")
    refused("apply", "c.json", "t.csv", *typed, "--out", "o.csv", pieces=pieces)


def test_a_key_keeps_its_name(here):
    """Without the first of two, the second would be the only one."""
    written("csv", TWICE)
    how = ("--sensitive", "ill", "--key", "Note#2", "--budget", 0.3, "--drop", "Note#1")
    refused("release", "t.csv", *how, pieces=["'Note#2' would be called 'Note'", "without Note#1"])
    written("csv", ("", "sex", "age", "ill", ""))
    how = ("--sensitive", "ill", "--key", "#5", "--budget", 0.3, "--drop", "sex")
    refused("release", "t.csv", *how, pieces=["'#5' would be called '#4'"])


def test_what_the_first_release_kept_alone_stays_alone(here):
    """A column that is new next month is not in it; one that is gone is not asked for."""
    written("csv")
    say("release", "t.csv", *HOW, "--keep-columns", "age", "--channel", "c.json")
    lines = Path("t.csv").read_text().splitlines()
    more = [f"{line},{'name' if i == 0 else i}" for i, line in enumerate(lines)]
    write("next.csv", "\n".join(more).replace("age", "years", 1) + "\n")
    say("apply", "c.json", "next.csv", "--seed", 5, "--out", "o.csv")
    assert Path("o.csv").read_text().startswith("sex,ill\n")
