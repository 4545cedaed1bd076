"""The files that disclosure officers have: one table in every format, and what cannot be read."""

from __future__ import annotations

import gzip
import sys
import zipfile
from contextlib import chdir
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy_sdc.formats.storage_types import stored_as
from cvxprivacy_sdc.formats.table_files import open_table
from tests.sdc.commands.runner import loaded, people, refused, report, rows, say, write

WHY = "cvxprivacy-sdc[files] is not installed"
pyreadstat = pytest.importorskip("pyreadstat", reason=WHY)
pytest.importorskip("python_calamine", reason=WHY)
openpyxl = pytest.importorskip("openpyxl", reason=WHY)

ROLES = ("--sensitive", "ill", "--key", "age,sex,dose", "--bins", "age=10", "--budget", "0.1")
FIXED = ("--seed", 5, "--row-id", "id")
LABELS = {"age": "Age in years", "sex": "Sex of the person"}
CODES = {"sex": {1: "male", 2: "female", 9: "not told"}}


@pytest.fixture
def frame(here):
    return framed()


def framed():
    """Return a table with text, whole numbers, decimals and gaps, as every format has them."""
    frame = pd.read_csv("t.csv")
    frame["dose"] = [(0.5, 1.25, 2.0)[i % 3] for i in range(len(frame))]
    frame["left"] = [None if i % 5 == 0 else i / 8 for i in range(len(frame))]
    return frame


def written(frame):
    """Write the table in every format; return each with the options that it needs."""
    frame.to_csv("f.csv", index=False)
    frame.to_csv("f.tsv", index=False, sep="\t")
    frame.to_csv("semi.csv", index=False, sep=";", decimal=",")
    write("z.csv.gz", gzip.compress(Path("f.csv").read_bytes()))
    frame.to_excel("f.xlsx", index=False)
    narrow = frame.astype({"id": "int16", "age": "int8"})
    pyreadstat.write_dta(narrow, "f.dta", column_labels=LABELS, version=14)
    for name in ("f.sav", "f.zsav"):
        pyreadstat.write_sav(
            frame, name, column_labels=LABELS, compress=name.endswith("zsav"),
            variable_measure={"age": "scale"}, variable_format={"left": "F10.3"},
        )  # fmt: skip
    pyreadstat.write_xport(frame, "f.xpt", column_labels=LABELS)
    plain = ("f.csv", "f.tsv", "z.csv.gz", "f.xlsx", "f.dta", "f.sav", "f.zsav", "f.xpt")
    return dict.fromkeys(plain, ()) | {"semi.csv": ("--decimal", ",")}


def values(path, reading=None, names=("id", "age", "sex", "dose", "ill", "left")):
    """Return the records of a file, as they are counted."""
    frame = open_table(path, reading or {}).frame(list(names)).astype(object)
    frame = frame.where(frame.notna(), None)
    return list(frame.itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def in_every_format(tmp_path_factory):
    """Release one table in every format, once: the folder, the files, and what is said of each."""
    folder = tmp_path_factory.mktemp("formats")
    with chdir(folder):
        write("t.csv", people())
        files, outcome = written(framed()), {}
        for name, options in files.items():
            how = ("--out", f"o.{name}", "--certificate", f"{name}.p", "--channel", f"{name}.c")
            outcome[name] = report("release", name, *ROLES, *FIXED, *how, *options)
    return folder, files, outcome


@pytest.mark.long
def test_one_table_in_every_format(in_every_format, monkeypatch):
    """Counts, optimum and released values are the same; each format's proof is of every file."""
    folder, files, summary = in_every_format
    monkeypatch.chdir(folder)
    released = {}
    for name, options in files.items():
        released[name] = values(f"o.{name}", {"decimal": ","} if options else {})
        assert loaded(f"{name}.p")["program"]["law"] == loaded("f.csv.p")["program"]["law"]
        say("verify", f"{name}.p", "--table", "f.csv")
        say("verify", "f.csv.p", "--table", name)
    kept = ("records", "lower", "upper", "risk_before", "terms", "prices")
    for name, document in summary.items():
        assert {k: document[k] for k in kept} == {k: summary["f.csv"][k] for k in kept}, name
        assert document["released"]["changed"] == summary["f.csv"]["released"]["changed"] > 0
        assert released[name] == released["f.csv"], name
    assert {age for _, age, *_ in released["f.csv"]} <= {
        f"[{a}, {a + 10})" for a in (20, 30, 40, 50)
    }
    assert {r[3] for r in released["f.sav"]} == {0.5, 1.25, 2}  # still numbers
    assert gzip.decompress(Path("o.z.csv.gz").read_bytes()) == Path("o.f.csv").read_bytes()
    for name, options in files.items():  # a channel of one format, a table of another
        say("apply", "f.csv.c", name, *FIXED, "--out", f"a.{name}", *options)
        assert values(f"a.{name}", {"decimal": ","} if options else {}) == released["f.csv"]


@pytest.mark.long
def test_what_is_not_released_stays_as_it_is(in_every_format, monkeypatch):
    """Outside the key, a semicolon file keeps its bytes, the packages' files their cells."""
    folder, files, _ = in_every_format
    monkeypatch.chdir(folder)
    for name, options in files.items():
        reading = {"decimal": ","} if options else {}
        others = ("id", "ill", "left", "note")
        assert values(f"o.{name}", reading, others) == values(name, reading, others)
    before, after = (Path(n).read_bytes().splitlines() for n in ("semi.csv", "o.semi.csv"))
    for one, other in zip(before, after, strict=True):
        assert [one.split(b";")[i] for i in (0, 3, 4, 6)] == [
            other.split(b";")[i] for i in (0, 3, 4, 6)
        ]
    assert {line.split(b";")[5] for line in after[1:]} == {b"0,5", b"1,25", b"2,0"}


def coded(path):
    """Write a survey of codes: labels, a declared missing value, an untouched date."""
    n = 200
    frame = pd.DataFrame({
        "sex": [9.0 if i % 20 == 0 else 1.0 + (i * i) % 3 % 2 for i in range(n)],
        "age": [20.0 + i % 37 for i in range(n)],
        "ill": ["ny"[i * i % 3 > 0] for i in range(n)],
        "day": [date(2020, 1, 1 + i % 28) for i in range(n)],
    })  # fmt: skip
    if path.endswith("dta"):
        sex = [("a" if v == 9 else int(v)) for v in frame["sex"]]
        frame["sex"] = pd.Series(sex, dtype=object)
        labels = {"sex": {1: "male", 2: "female"}}
        pyreadstat.write_dta(frame, path, column_labels=LABELS, variable_value_labels=labels,
                             missing_user_values={"sex": ["a"]}, file_label="A survey")  # fmt: skip
    else:
        pyreadstat.write_sav(
            frame, path, column_labels=LABELS, variable_value_labels=CODES, file_label="A survey",
            missing_ranges={"sex": [9], "age": [{"lo": 90, "hi": 99}]}, note="asked by post",
            variable_measure={"sex": "nominal", "age": "scale"}, variable_format={"age": "F3.0"},
        )  # fmt: skip
    return path


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_codes_labels_and_missing_values_are_kept(ending, here):
    path = coded(f"s.{ending}")
    key = ("--sensitive", "ill", "--key", "sex,age", "--budget", "0.2", "--bins", "age=10")
    refused("release", path, *key, "--out", f"o.{ending}", pieces=["missing", "'sex'"])
    how = (*key, "--missing", "level", "--seed", 1)
    text = say("release", path, *how, "--out", f"o.{ending}").out
    assert f"o.{ending}: values are codes, and their labels are kept" in text
    assert f"o.{ending}: now text, without labels of values: age" in text
    read = pyreadstat.read_dta if ending == "dta" else pyreadstat.read_sav
    (old, before), (new, after) = (read(p, user_missing=True) for p in (path, f"o.{ending}"))
    assert after.column_names_to_labels == before.column_names_to_labels
    assert after.file_label == before.file_label == "A survey"
    assert after.variable_value_labels == before.variable_value_labels
    assert after.variable_measure["sex"] == before.variable_measure["sex"]
    assert after.missing_ranges == {k: v for k, v in before.missing_ranges.items() if k != "age"}
    assert after.original_variable_types["sex"] == before.original_variable_types["sex"]
    assert after.notes == before.notes
    assert list(new["day"]) == list(old["day"])
    codes = {v for v in new["sex"] if v == v and v is not None}
    assert codes == {1, 2}  # 9 and .a are missing: released as the system's missing value
    assert 0 < new["sex"].isna().sum() < len(new)
    assert set(new["age"]) == {"[20, 30)", "[30, 40)", "[40, 50)", "[50, 60)"}
    text = say("release", path, *how, "--out", "o.csv").out
    assert "o.csv: values are codes; their labels are not in it" in text
    assert {r["sex"] for r in rows("o.csv")} == {"1", "2", ""}
    assert {r["day"] for r in rows("o.csv")} == {f"2020-01-{d:02}" for d in range(1, 29)}


def test_a_suppressed_value_is_written_as_missing(here):
    """A letter with None in a column: the format's missing value."""
    from cvxprivacy.release.channel import Channel
    from cvxprivacy.tables.schema import TableSchema

    data = pd.DataFrame({"sex": [1.0, 2.0] * 20, "town": ["x", "y"] * 20})
    data.to_csv("s.csv", index=False)
    data.to_excel("s.xlsx", index=False)
    data.to_parquet("s.parquet")
    pyreadstat.write_sav(data, "s.sav")
    pyreadstat.write_dta(data, "s.dta")
    inputs, outputs = [(1, "x"), (2, "y")], [(1, None), (None, "y")]
    schema = TableSchema(key=("sex", "town"))
    channel = Channel([[1.0, 0.0], [0.0, 1.0]], inputs=inputs, outputs=outputs, schema=schema)
    for name in ("s.csv", "s.xlsx", "s.sav", "s.dta", "s.parquet"):
        opened = open_table(name, {"na": ["NA"]} if name == "s.csv" else {}, out=f"o.{name}")
        with Path(f"o.{name}").open("wb") as file:
            opened.release(channel, file, ["sex", "town"], 1)
        if name == "s.parquet":
            table = pd.read_parquet("o.s.parquet")
            cells = [[None if v != v else v for v in row] for row in table.values.tolist()]
            assert cells == [[1, None], [None, "y"]] * 20
            continue
        reading = {"na": ["NA"]} if name == "s.csv" else {}
        assert values(f"o.{name}", reading, ("sex", "town")) == [(1, None), (None, "y")] * 20
    assert Path("o.s.csv").read_text().splitlines()[1:3] == ["1.0,NA", "NA,y"] or (
        Path("o.s.csv").read_text().splitlines()[1:3] == ["1,NA", "NA,y"]
    )


@pytest.mark.long
def test_a_sheet_is_named_where_there_are_several(frame):
    with pd.ExcelWriter("two.xlsx") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        pd.DataFrame({"read": ["me"]}).to_excel(book, sheet_name="about", index=False)
    how = ("release", "two.xlsx", *ROLES, *FIXED)
    refused(*how, pieces=["--sheet: two.xlsx has the sheets 'data', 'about'", "--sheet NAME"])
    refused(*how, "--sheet", "Data", pieces=["no sheet 'Data'", "choose from 'data', 'about'"])
    outputs = ("--out", "o.xlsx", "--certificate", "p.json", "--channel", "c.json",
               "--problem-out", "r.toml")  # fmt: skip
    text = say(*how, "--sheet", "data", *outputs).out
    assert "o.xlsx: values alone, in one sheet" in text
    assert loaded("p.json")["table"]["reading"]["sheet"] == "data"
    say("verify", "p.json", "--table", "two.xlsx", "--problem", "r.toml")  # read as recorded
    say("solve", "r.toml")
    say("apply", "c.json", "two.xlsx", *FIXED, "--out", "a.csv")
    assert values("a.csv") == values("o.xlsx")
    frame.to_excel("next.xlsx", sheet_name="december", index=False)  # its only sheet
    say("apply", "c.json", "next.xlsx", *FIXED, "--out", "n.xlsx")
    assert values("n.xlsx") == values("o.xlsx")


def test_text_in_a_workbook_is_no_formula(here):
    book = openpyxl.Workbook()
    book.active.append(["sex", "ill", "note"])
    for i in range(30):
        book.active.append(["MF"[i % 2], "ny"[i % 3 > 0], "x"])
        book.active.cell(i + 2, 3).value = "=1+1"
        book.active.cell(i + 2, 3).data_type = "s"
    book.save("f.xlsx")
    say("release", "f.xlsx", "--sensitive", "ill", "--key", "sex", "--budget", "0.1",
        "--out", "o.xlsx")  # fmt: skip
    assert {c.data_type for c in openpyxl.load_workbook("o.xlsx").active["C"]} == {"s"}


@pytest.mark.long
def test_a_decimal_comma_is_no_guess(frame):
    files = written(frame)
    assert files["semi.csv"] == ("--decimal", ",")
    how = ("release", "semi.csv", *ROLES, *FIXED)
    refused(*how, pieces=["record 1", "'dose' has '0,5'", "--decimal ,", "--decimal ."])
    refused(*how, "--decimal", "!", pieces=["--decimal: '!'"])
    refused(*how, "--decimal", ",", "--delimiter", ",", pieces=["--decimal: ','", "delimiter"])
    outputs = ("--certificate", "p.json", "--problem-out", "r.toml", "--channel", "c.json")
    assert report(*how, "--decimal", ",", *outputs)["records"] == len(frame)
    reading = loaded("p.json")["table"]["reading"]
    assert (reading["decimal"], reading["delimiter"]) == (",", ";")
    say("verify", "p.json", "--table", "semi.csv", "--problem", "r.toml")
    say("apply", "c.json", "semi.csv", *FIXED, "--out", "o.csv")
    assert 'decimal = ","' in Path("r.toml").read_text()
    say("solve", "r.toml")
    texts = report(*how, "--decimal", ".", "--key", "note", "--missing", "level")
    assert texts["records"] == len(frame)


@pytest.mark.parametrize(
    ("header", "text"),
    [("a;b", ";"), ("a\tb", "\t"), ("a|b", "|"), ("a,b;c", ","), ('"a,b";c', ";"), ("ab", ",")],
)
def test_a_header_tells_the_delimiter(header, text, here):
    assert open_table(write("f.csv", header + "\n")).delimiter == text


def broken(name, keep):
    write(f"b{Path(name).suffix}", Path(name).read_bytes()[:keep])
    return f"b{Path(name).suffix}"


@pytest.mark.parametrize("name", ["f.sav", "f.zsav", "f.dta", "f.xpt", "f.xlsx", "z.csv.gz"])
def test_what_cannot_be_read(name, frame):
    written(frame)
    size = Path(name).stat().st_size
    for path in (f"none{Path(name).suffix}", broken(name, size // 2), broken(name, 0)):
        refused(
            "release", path, *ROLES, "--out", "o.csv" + ".gz" * name.endswith("gz"), pieces=[path]
        )
    path = write(f"t{Path(name).suffix}", Path("f.csv").read_bytes())
    refused("release", path, *ROLES, "--out", "o.csv" + ".gz" * name.endswith("gz"), pieces=[path])


@pytest.mark.parametrize(
    ("name", "module"), [("f.xlsx", "python_calamine"), ("f.sav", "pyreadstat"),
                         ("f.dta", "pyreadstat"), ("f.xpt", "pyreadstat")],
)  # fmt: skip
def test_a_library_that_is_not_there_is_named(name, module, frame, monkeypatch):
    written(frame)
    monkeypatch.setitem(sys.modules, module, None)
    package = module.replace("_", "-")
    pieces = [f"needs {package}", "pip install 'cvxprivacy-sdc[files]'"]
    refused("release", name, *ROLES, pieces=pieces)


@pytest.mark.parametrize(
    ("name", "out", "pieces"),
    [
        ("f.sav", "o.dta", ["f.sav cannot be written as Stata", ".sav or .zsav, .xlsx, .csv"]),
        ("f.dta", "o.xpt", ["f.dta cannot be written as SAS", "choose .dta, .xlsx, .csv"]),
        ("f.xpt", "o.sas7bdat", [".sas7bdat is read and not written", "choose .xpt"]),
        ("f.xlsx", "o.xls", [".xls is read and not written", "choose .xlsx, .csv or .parquet"]),
        ("f.xlsx", "o.sav", ["f.xlsx cannot be written as SPSS"]),
        ("f.csv", "o.xlsx", ["o.xlsx would hold text, as f.csv does"]),
        ("f.xlsx", "o.parquet.gz", ["Parquet inside gzip"]),
    ],
)
def test_formats_that_cannot_be_written(name, out, pieces, frame):
    written(frame)
    refused("release", name, *ROLES, "--out", out, pieces=pieces)


def test_columns_of_a_workbook_have_names_of_their_own(here):
    for header, piece in ((["sex", None, "#2"], "second that is named '#2'"),
                          (["sex", "sex", "sex#1"], "second that is named 'sex#1'")):  # fmt: skip
        book = openpyxl.Workbook()
        book.active.append(header)
        book.active.append(["M", "x", "n"])
        book.save("f.xlsx")
        refused("release", "f.xlsx", *ROLES, pieces=["f.xlsx", piece])


@pytest.mark.long
def test_other_commands_read_them_too(frame):
    files = written(frame)
    audit = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10", "--bootstrap", 0)
    expected = report("audit", "f.csv", *audit)
    for name, options in files.items():
        assert report("audit", name, *audit, *options) == expected, name
    expected = report("audit", "f.csv", "f.csv", *audit)
    assert report("audit", "f.sav", "semi.csv", *audit, "--decimal", ",") == expected


def test_files_are_replaced_with_force_alone(here):
    how = ("release", "t.csv", "--sensitive", "ill", "--key", "sex", "--budget", "0.1")
    for option, name in (("out", "o.csv"), ("certificate", "p.json"), ("channel", "c.json"),
                         ("problem-out", "r.toml")):  # fmt: skip
        write(name, "precious")
        refused(
            *how, f"--{option}", name, pieces=[f"--{option}: {name} is there already", "--force"]
        )
        assert Path(name).read_text() == "precious"
        say(*how, f"--{option}", name, "--force")
        assert Path(name).read_text() != "precious"
    audit = ("audit", "t.csv", "--sensitive", "ill", "--key", "sex", "--bootstrap", 0)
    for name in ("a.html", "a.json"):
        write(name, "precious")
        refused(*audit, "--report", name, pieces=[f"--report: {name} is there already", "--force"])
        say(*audit, "--report", name, "--force")
        assert Path(name).read_text() != "precious"
    refused("apply", "c.json", "t.csv", "--out", "o.csv", pieces=["--out: o.csv is there already"])
    refused(*how, "--out", "t.csv", "--force", pieces=["is the input"])  # not even then
    say(*how, "--out", "/dev/null")
    write("r.toml", Path("r.toml").read_text() + '\n[output]\nchannel = "c.json"\n')
    refused("solve", "r.toml", pieces=["r.toml, line", "c.json is there already", "--force"])
    say("solve", "r.toml", "--force")


def test_dates_of_a_workbook_stay_dates(here):
    frame = pd.DataFrame({"day": [date(2020, 1, 1 + i % 3) for i in range(60)],
                          "seen": [date(2021, 5, 1 + i % 28) for i in range(60)],
                          "ill": ["ny"[i * i % 4 > 1] for i in range(60)]})  # fmt: skip
    frame.to_excel("d.xlsx", index=False)
    frame.to_csv("d.csv", index=False)
    key = ("--sensitive", "ill", "--key", "day", "--budget", "0.1", "--seed", 3)
    outcome = [
        report("release", f"d.{e}", *key, "--out", f"o.{e}")["lower"] for e in ("csv", "xlsx")
    ]
    assert outcome[0] == outcome[1]
    names = ("day", "seen", "ill")
    assert values("o.xlsx", {}, names) == values("o.csv", {}, names)
    cells = openpyxl.load_workbook("o.xlsx").active
    assert all(cell.is_date for column in "AB" for cell in cells[column][1:])


@pytest.mark.parametrize(
    ("table", "out"), [("f.csv", "o.tsv"), ("f.tsv", "o.csv"), ("f.csv", "o.tab")]
)
def test_a_table_is_not_called_what_it_is_not(table, out, frame):
    written(frame)
    pieces = [f"{out} would have", "give both the same ending"]
    refused("release", table, *ROLES, "--out", out, pieces=pieces)


def test_a_workbook_keeps_all_digits_of_a_number(here):
    """17, of numbers that differ in the last alone."""
    numbers = [0.1, 0.10000000000000002, 0.30000000000000004, 1e23, 5e-324, 2.0**53 + 2, -1 / 3]
    frame = pd.DataFrame({"k": numbers * 6, "c": [*numbers[::-1]] * 6, "ill": ["n", "y"] * 21})
    frame.to_stata("f.dta", write_index=False)
    for table, out in (("f.dta", "o.xlsx"), ("o.xlsx", "again.xlsx")):
        say("release", table, "--sensitive", "ill", "--key", "k", "--budget", 0, "--seed", 1,
            "--no-untouched", "--out", out, code=None)  # fmt: skip
        book = pd.read_excel(out, engine="calamine")
        assert sorted(book["k"]) == sorted(frame["k"])
        assert book["c"].tolist() == frame["c"].tolist()


def test_a_workbook_that_would_not_fit_into_memory_is_refused(here):
    book = openpyxl.Workbook()
    for row in (["age", "ill"], [1, "n"], [2, "y"]):
        book.active.append(row)
    book.active["XFD1048576"] = "lost"
    book.save("far.xlsx")
    ask = ("--sensitive", "ill", "--key", "age")
    refused("audit", "far.xlsx", *ask, pieces=["XFD1048576 is far from the others", "delete"])
    with zipfile.ZipFile("bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(80 << 20))
    refused("audit", "bomb.xlsx", *ask, pieces=["inflate to over 67 MB", "200 times the size"])


ASK = ("--sensitive", "ill", "--key", "age")
SHEET = "xl/worksheets/sheet1.xml"
PLACE = b'r="XFD1048576"'
FAR = {  # each with what another writer puts in its place
    "in single quotes": (PLACE, b"r='XFD1048576'"),
    "spaced": (PLACE, b'r = "XFD1048576"'),
    "in lower case": (PLACE, b'r="xfd1048576"'),
    "with an entity": (PLACE, b'r="&#88;FD1048576"'),
    "by its row": (b"<c " + PLACE, 15 * b"<c/>" + b"<c"),
    "elsewhere": (SHEET.encode(), b"xl/media/picture.bin"),
}


def changed(path, old, new):
    """Put other bytes into all parts of a workbook, and into their names."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name.replace(old.decode(), new.decode()), data.replace(old, new))


def small(path, far=None):
    book = openpyxl.Workbook()
    for row in (["age", "ill"], [1, "n"], [2, "y"]):
        book.active.append(row)
    if far:
        book.active[far] = "lost"
    book.save(path)


@pytest.mark.parametrize("how", FAR)
def test_a_far_cell_is_refused_however_it_is_spelled(how, here):
    small("far.xlsx", "XFD1048576")
    changed("far.xlsx", *FAR[how])
    far = "P1048576" if how == "by its row" else "XFD1048576"
    refused("audit", "far.xlsx", *ASK, pieces=[f"{far} is far from the others", "delete"])


BROKEN = {  # bytes of the local header and of the directory, and what is put there of a sheet
    "of another size": (24, (99).to_bytes(4, "little")),
    "encrypted": (8, b"\1\0"),
    "of another compression": (10, (12).to_bytes(2, "little")),
    "of none that is known": (10, (77).to_bytes(2, "little")),
    "of another sum": (16, bytes(4)),
    "too short": (20, (9).to_bytes(4, "little")),
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_archive_that_lies_is_refused_by_its_name(how, here):
    small("lie.xlsx")
    data, (at, new) = bytearray(Path("lie.xlsx").read_bytes()), BROKEN[how]
    entry = data.rindex(b"PK\1\2", 0, data.rindex(SHEET.encode()))
    data[entry + at : entry + at + len(new)] = new
    write("lie.xlsx", bytes(data))
    refused("audit", "lie.xlsx", *ASK, pieces=["lie.xlsx: a broken archive", "export the table"])


def test_what_inflates_is_counted_whatever_the_directory_says(here):
    with zipfile.ZipFile("bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bin", bytes(80 << 20))
    data = bytearray(Path("bomb.xlsx").read_bytes())
    entry = data.rindex(b"PK\1\2")
    data[entry + 24 : entry + 28] = (5).to_bytes(4, "little")
    write("bomb.xlsx", bytes(data))
    refused("audit", "bomb.xlsx", *ASK, pieces=["inflate to over 67 MB"])


@pytest.mark.parametrize("place", ["<sheetData>", "elsewhere"])
def test_a_workbook_with_entities_or_broken_xml_is_refused(place, here):
    """A part without the name of one may be a picture; not where it has the mark of a sheet."""
    start = b"<worksheet "
    bomb = b'<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>' + start
    for old, new, why in ((start, bomb, "a DOCTYPE"), (b"</worksheet>", b"", "no element")):
        small("bad.xlsx")
        changed("bad.xlsx", old, new)
        if place == "elsewhere":
            changed("bad.xlsx", *FAR["elsewhere"])
        refused("audit", "bad.xlsx", *ASK, pieces=["bad.xlsx: a broken", why, "save the workbook"])


def test_a_picture_and_a_part_that_is_no_xml_are_no_sheets(here):
    frame = framed()
    frame.to_excel("f.xlsx", index=False)
    with zipfile.ZipFile("f.xlsx", "a") as archive:
        archive.writestr("xl/media/image1.png", b"\x89PNG<!DOCTYPE c>" + bytes(99))
        archive.writestr("xl/calcChain.xml", '<calcChain><c r="XFD1048576" i="1"/></calcChain>')
    assert len(open_table("f.xlsx").frame(["age"])) == len(frame)


def test_what_stata_cannot_hold_is_refused_before_any_work(here, monkeypatch):
    """A reserved name, which other programs write."""
    frame = pd.DataFrame({"age": [1, 2] * 6, "ill": ["n", "y"] * 6, "_xyzw": [0.5] * 12})
    frame.to_stata("f.dta", write_index=False)
    write("f.dta", Path("f.dta").read_bytes().replace(b"_xyzw", b"_cons"))
    ask = ("release", "f.dta", "--sensitive", "ill", "--key", "age", "--budget", 0.1)
    say(*ask, "--drop", "_cons", "--out", "dropped.dta", "--no-untouched", code=None)
    monkeypatch.setattr(cpv.PrivacyDistortion, "solve", None)
    pieces = ["o.dta cannot be written", "reserved word", "choose .csv"]
    refused(*ask, "--out", "o.dta", pieces=pieces)


def test_numbers_of_stata_are_whole_where_they_can_be(here):
    """Storage types stay; noise makes numbers of them, which is said."""
    frame = pd.DataFrame(
        {"age": [20, 31, 44, 58] * 10, "dose": [0.5, 2] * 20, "w": [1, 2, 4, 3] * 10}
    )
    narrow = frame.astype({"age": "int8", "dose": "float32", "w": "int8"})
    narrow.to_stata("f.dta", write_index=False)
    ask = ("release", "f.dta", "--sensitive", "w", "--key", "age", "--seed", 1)
    text = say(*ask, "--budget", 0.1, "--no-untouched", "--out", "o.dta", code=None).out
    assert "stored as" not in text
    assert pd.read_stata("o.dta").dtypes.to_dict() == narrow.dtypes.to_dict()
    text = say(*ask, "--noise", "--budget", 0.3, "--out", "n.dta", code=None).out
    assert "stored as long or double, as what is released needs it: age" in text
    noisy = pd.read_stata("n.dta")
    assert noisy["age"].dtype == "float64"
    assert (noisy["age"] != frame["age"]).all()
    assert noisy["w"].tolist() == frame["w"].tolist()


@pytest.mark.parametrize("version", [8, 10, 12, 13, 14, 15])
def test_storage_types_of_stata_hold_numbers_and_missing_values(version, here):
    """In each format, read by pandas: all values and letters stay, and no type is too narrow."""
    pyreadstat = pytest.importorskip("pyreadstat", reason=WHY)
    ends = {"int8": (-127, 100), "int16": (-32_767, 32_740), "int32": (-(2**31) + 1, 2**31 - 28)}
    columns = {f"of_{n}": [*map(float, of), 0.0, None, "a", "z"] for n, of in ends.items()}
    single = [float(np.float32(v)) for v in (0.1, -1.7e38, 1e-30)]
    columns |= {"single": [*single, None, "a", "z"], "text": ["ü", "", *"bcde"]}
    columns |= {"wide": [0.1, 2.0, 3.0, None, "a", "z"], "large": [101.0, 2.0, 3.0, None, "a", "z"]}
    data = pd.DataFrame(columns, dtype=object)
    letters = {name: ["a", "z"] for name in columns if name != "text"}
    pyreadstat.write_dta(data, "t.dta", version=version, missing_user_values=letters,
                         file_label="a <map> </header> <K>")  # fmt: skip
    kinds = ["int8", "int16", "int32", "float", "string", "float", "int8"]
    content, stored = stored_as(Path("t.dta").read_bytes(), kinds)
    Path("n.dta").write_bytes(content)
    before, after = (
        pd.read_stata(name, convert_missing=True).map(lambda v: getattr(v, "string", v))
        for name in ("t.dta", "n.dta")
    )
    assert before.to_numpy().tolist() == after.to_numpy().tolist()
    assert stored == [*kinds[:4], stored[4], "double", "double"]
    assert len(content) < Path("t.dta").stat().st_size
    assert stored_as(content, kinds)[0] == content
