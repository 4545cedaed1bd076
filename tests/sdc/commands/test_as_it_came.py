"""Tables come back as they came, but for what is released, however their writers leave them."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from datetime import date, datetime, time
from pathlib import Path

import pytest

from tests.lengths import some_at_length
from tests.sdc.commands.runner import loaded, refused, report, say, write

KEY = ("--sensitive", "w", "--key", "k,n", "--budget", "0.2", "--seed", 3)


def people(records=60):
    """Return records k, n, w: decimals of which most are written short, text in quotes."""
    numbers = ["30", "40", "7.5", "30.0"]
    return [
        ("ab"[i * i % 5 % 2], numbers[i % 7 % 4], "yn"[(i * i + i // 3) % 3 > 0])
        for i in range(records)
    ]


def lines(header, named=True, between=","):
    """Return lines as R writes them: text in quotes, numbers without, names of rows."""
    rows = [
        [f'"{i + 1}"'] * named + [f'"{k}"', n, f'"{w}"'] for i, (k, n, w) in enumerate(people())
    ]
    return [header, *(between.join(row) for row in rows)]


WRITERS = {  # as a text, with what is to be typed, and how the first column is called
    "write.csv": (lines('"","k","n","w"'), (), "#1"),
    "to_csv": ([line.replace('"', "") for line in lines(",k,n,w")], (), "#1"),
    "write.table": (lines('"k" "n" "w"', between=" "), (), "#1"),
    "write.table, commas": (lines('"k","n","w"'), (), "#1"),
    "blank lines": (["", "", *lines('"r","k","n","w"')], (), "r"),
    "comments": (["# a, b", *lines("r,k,n,w")[:9], "#", *lines("")[9:]], ("--comment", "#"), "r"),
}
REMARKS = {
    "write.csv": "column 1 has no name, and is called #1 here",
    "to_csv": "column 1 has no name, and is called #1 here",
    "write.table": "the header is one field short",
    "write.table, commas": "the header is one field short",
    "comments": "lines of comment are copied as they are: read what they tell",
}


@pytest.mark.parametrize("name", some_at_length(list(WRITERS), 3))
def test_text_with_names_of_rows_blank_lines_and_comments(name, here):
    """It is released, verified and released again; every line but its key is as it was."""
    text, typed, first = WRITERS[name]
    write("t.csv", "\n".join(text) + "\n")
    outputs = ("--out", "o.csv", "--certificate", "p.json", "--channel", "c.json",
               "--problem-out", "r.toml", "--report", "b.json")  # fmt: skip
    document = report("release", "t.csv", *KEY, *typed, *outputs)
    assert [n for n in document["notes"] if n.endswith(REMARKS.get(name, "")) or REMARKS[name] in n]
    assert document["released"]["changed"] > 0
    assert [leak["column"] for leak in document["untouched"]] == [first]
    new = Path("o.csv").read_text().splitlines()
    assert len(new) == len(text)
    start = next(i for i, line in enumerate(text) if line and not line.startswith("# "))
    assert new[: start + 1] == text[: start + 1]
    between = " " if name == "write.table" else ","
    for before, after in zip(text[start + 1 :], new[start + 1 :], strict=True):
        old, now = before.split(between), after.split(between)
        assert [old[0], old[3:]] == [now[0], now[3:]]
        if name != "to_csv":
            assert now[1:3] == [] or now[1] in ('"a"', '"b"')
        assert now[1:3] == [] or now[2] in ("40", "7.5", "30")
    write("r.json", json.dumps(document))
    say("verify", "p.json", "--table", "t.csv", "--problem", "r.toml")
    say("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json")
    say("apply", "c.json", "t.csv", "--seed", 3, "--out", "again.csv")
    assert Path("again.csv").read_bytes() == Path("o.csv").read_bytes()
    assert loaded("b.json")["input"]["columns"][0]["column"] == first


def test_a_column_without_a_name_is_named_by_its_place(here):
    write("t.csv", "\n".join(lines('"","k","n","w"')) + "\n")
    how = ("--sensitive", "w", "--key", "k", "--budget", "0.1", "--seed", 1)
    say("release", "t.csv", *how, "--row-id", "#1", "--out", "o.csv")
    text = say("release", "t.csv", "--sensitive", "#4", "--key", "k", "--budget", "0.1", code=2).err
    assert "no column '#4'; use one of '#1', 'k', 'n', 'w'" in text
    write("k.csv", "\n".join(lines('"r","","n","w"')) + "\n")
    say("release", "k.csv", "--sensitive", "w", "--key", "#2", "--budget", "0.1", "--out", "n.csv")
    assert Path("n.csv").read_text().startswith('"r","","n","w"\n"1","')


def test_a_comment_is_of_text_alone(here):
    refused("release", "t.csv", *KEY, "--comment", "", pieces=["--comment: ''", "such as #"])


# ---- how released cells are written ------------------------------------------------------


def spelled(records):
    """Return how each value of a column is written: by its number, or its text without quotes."""
    forms: dict[object, set[str]] = {}
    for field in records:
        bare = field.strip('"')
        try:
            forms.setdefault(float(bare.replace(",", ".")), set()).add(field)
        except ValueError:
            forms.setdefault(bare, set()).add(field)
    return forms


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "sav", "dta", "xpt"])
def test_changed_and_kept_records_are_written_alike(ending, here):
    """By the spelling of a released value nobody sees whether it is the record's own."""
    pd = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    rows = [(k, n, w) for k, n, w in people(120)]
    frame = pd.DataFrame(rows, columns=["k", "n", "w"]).astype({"n": float})
    if ending == "csv":
        marks = ['"' * (i % 3 > 0) for i in range(len(rows))]
        text = [f"{m}{k}{m},{n},{w}" for m, (k, n, w) in zip(marks, rows, strict=True)]
        write("t.csv", "\n".join(["k,n,w", *text]) + "\n")
    elif ending == "parquet":
        pytest.importorskip("duckdb", reason="the extra `engines` is not installed")
        frame.to_parquet("t.parquet")
    elif ending == "xlsx":
        openpyxl = pytest.importorskip("openpyxl", reason="cvxprivacy-sdc[files] is not installed")
        book = openpyxl.Workbook()
        book.active.append(["k", "n", "w"])
        for i, (k, n, w) in enumerate(rows):
            book.active.append([k, float(n), w])
            book.active.cell(i + 2, 2).number_format = ["0.0", "General", "0.0"][i % 3]
            book.active.cell(i + 2, 1).font = openpyxl.styles.Font(bold=i % 2 > 0)
        book.save("t.xlsx")
    else:
        pyreadstat = pytest.importorskip(
            "pyreadstat", reason="cvxprivacy-sdc[files] is not installed"
        )
        kind = "xport" if ending == "xpt" else ending
        getattr(pyreadstat, f"write_{kind}")(frame, f"t.{ending}")
    document = report("release", f"t.{ending}", *KEY, "--out", f"o.{ending}")
    assert document["released"].get("changed", 11) > 10  # streams are not compared
    if ending == "csv":
        lines = Path("o.csv").read_text().splitlines()[1:]
        assert spelled(line.split(",")[0] for line in lines) == {"a": {'"a"'}, "b": {'"b"'}}
        assert spelled(line.split(",")[1] for line in lines) == {
            40.0: {"40"}, 7.5: {"7.5"}, 30.0: {"30"}
        }  # fmt: skip
    elif ending == "xlsx":
        cells = list(openpyxl.load_workbook("o.xlsx").active.iter_rows(min_row=2))
        assert len({(c.data_type, c.number_format, c.font.b, c.style_id) for c, *_ in cells}) == 1
        assert len({(c.data_type, c.number_format, c.font.b, c.style_id) for _, c, _ in cells}) == 1
    elif ending == "parquet":
        assert set(pd.read_parquet("o.parquet")["n"]) == {40.0, 7.5, 30.0}


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_are_written_as_the_table_writes_them(decimal, here):
    rows = [(str(n).replace(".", decimal), w) for _, n, w in people()]
    write(
        "t.csv", "".join(f"{a};{b}\n" for a, b in [("n", "w"), *rows, ("30" + decimal + "0", "y")])
    )
    how = ("--sensitive", "w", "--key", "n", "--budget", "0.1", "--decimal", decimal)
    say("release", "t.csv", *how, "--out", "o.csv")
    with Path("o.csv").open(newline="") as file:
        released = {row[0] for row in list(csv.reader(file, delimiter=";"))[1:]}
    most = max(["30", f"30{decimal}0"], key=[a for a, _ in rows].count)
    assert released == {"40", f"7{decimal}5", most}


def test_missing_cells_are_written_as_most_are(here):
    """R's NA stands without quotes among text in quotes."""
    rows = [(f'"{k}"' if i % 6 else "NA", f'"{w}"') for i, (k, _, w) in enumerate(people(90))]
    write("t.csv", "".join(f"{a},{b}\n" for a, b in [('"k"', '"w"'), *rows]))
    how = ("--sensitive", "w", "--key", "k", "--budget", "0.2", "--na", "", "--na", "NA")
    say("release", "t.csv", *how, "--missing", "level", "--out", "o.csv")
    released = [line.split(",")[0] for line in Path("o.csv").read_text().splitlines()[1:]]
    assert set(released) == {'"a"', '"b"', "NA"}


# ---- workbooks ---------------------------------------------------------------------------


@pytest.fixture
def workbook(here):
    """Return a workbook with names of rows, formats, widths, a comment and another sheet."""
    openpyxl = pytest.importorskip("openpyxl", reason="cvxprivacy-sdc[files] is not installed")
    pytest.importorskip("python_calamine", reason="cvxprivacy-sdc[files] is not installed")
    book = openpyxl.Workbook()
    sheet, other = book.active, book.create_sheet("codes")
    sheet.title = "Survey 2026"
    for column, title in zip("BCDEF", [None, "k", "when", "w", 2026], strict=True):
        sheet[f"{column}3"] = title
        sheet[f"{column}3"].font = openpyxl.styles.Font(bold=True, color="FF0000")
        sheet[f"{column}3"].fill = openpyxl.styles.PatternFill("solid", fgColor="DDDDDD")
    for i, (k, _, w) in enumerate(people()):
        cells = [i + 1, k, date(2026, 1, 1 + i % 28), w, i / 8]
        for column, value in zip("BCDEF", cells, strict=True):
            sheet[f"{column}{i + 4}"] = value
        sheet[f"D{i + 4}"].number_format = "dd/mm/yyyy"
        sheet[f"F{i + 4}"].number_format = "0.00%"
    sheet["F9"], sheet["F9"].data_type = "#N/A", "e"
    sheet["F10"] = "  "
    sheet.column_dimensions["C"].width = 31
    sheet.column_dimensions["D"].width = 19
    sheet["C5"].comment = openpyxl.comments.Comment("was b", "me")
    other["A1"] = "who"
    book.save("t.xlsx")
    return book


OF_SHEET = ("--sensitive", "w", "--key", "k", "--budget", "0.2", "--sheet", "Survey 2026")


def test_a_sheet_keeps_its_name_formats_widths_and_header(workbook):
    import openpyxl

    document = report("release", "t.xlsx", *OF_SHEET, "--out", "o.xlsx")
    for piece in ("column 1 has no name", "comments and other sheets are not in it"):
        assert any(piece in note for note in document["notes"])
    new = openpyxl.load_workbook("o.xlsx")
    assert new.sheetnames == ["Survey 2026"]
    rows = list(new.active.iter_rows())
    assert [c.value for c in rows[0]] == [None, "k", "when", "w", 2026]
    assert {(c.font.b, c.font.color.rgb, c.fill.fgColor.rgb) for c in rows[0]} == {
        (True, "00FF0000", "00DDDDDD")
    }
    before = list(workbook["Survey 2026"].iter_rows(min_row=4, min_col=2))
    for old, now in zip(before, rows[1:], strict=True):
        for i in (0, 2, 3, 4):
            value = old[i].value
            assert now[i].value == (value if i != 2 else datetime.combine(value, time()))
            assert now[i].number_format == old[i].number_format
            assert now[i].data_type == old[i].data_type
    widths = new.active.column_dimensions
    assert (widths["C"].width, widths["B"].width) == (19, 13)  # the key's told its longest value
    assert not [c for row in rows for c in row if c.comment]
    say("release", "t.xlsx", *OF_SHEET, "--out", "o.csv")
    assert Path("o.csv").read_text().startswith(",k,when,w,2026\n1,")


def changed_part(piece, other, name="xl/worksheets/sheet1.xml"):
    """Put other bytes into a part of the workbook: its first sheet."""
    with zipfile.ZipFile("t.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert parts[name].count(piece) == 1
    parts[name] = parts[name].replace(piece, other)
    with zipfile.ZipFile("t.xlsx", "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


def test_that_formulas_are_to_be_computed_may_be_said_in_single_quotes(workbook):
    workbook["Survey 2026"]["F7"] = "=F6*2"
    workbook.calculation.fullCalcOnLoad = True
    workbook.save("t.xlsx")
    changed_part(b"<f>F6*2</f><v />", b"<f>F6*2</f><v>0</v>")
    changed_part(b'fullCalcOnLoad="1"', b"fullCalcOnLoad = '1'", "xl/workbook.xml")
    pieces = ["F7 of sheet 'Survey 2026'", "formula of 0 that is to be computed"]
    refused("release", "t.xlsx", *OF_SHEET, "--out", "o.xlsx", pieces=pieces)


@pytest.mark.parametrize("stored", [False, True])
def test_a_formula_without_its_value_is_refused(stored, workbook):
    """By its address; as XlsxWriter writes them, 0 stands where a value is to be computed."""
    workbook["Survey 2026"]["F7"] = "=F6*2"
    workbook.calculation.fullCalcOnLoad = stored
    workbook.save("t.xlsx")
    if stored:
        changed_part(b"<f>F6*2</f><v />", b"<f>F6*2</f><v>0</v>")
    why = "formula of 0 that is to be computed" if stored else "formula without a stored value"
    pieces = ["F7 of sheet 'Survey 2026'", why, "save it"]
    refused("release", "t.xlsx", *OF_SHEET, "--out", "o.xlsx", pieces=pieces)


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("value", [(b"", b"0.5"), (b' t="str"', b"")])
def test_a_formula_with_its_value_is_that(value, anew, workbook):
    """Also if that is the empty text, and in a workbook that is to be computed anew."""
    import openpyxl

    workbook["Survey 2026"]["F7"] = "=F6*2"
    workbook.calculation.fullCalcOnLoad = anew
    workbook.save("t.xlsx")
    changed_part(b"<f>F6*2</f><v />", b"<f>F6*2</f><v>" + value[1] + b"</v>")
    with zipfile.ZipFile("t.xlsx") as archive:
        style = re.search(rb'<c r="F7"( s="\d+")', archive.read("xl/worksheets/sheet1.xml"))[1]
    changed_part(b'<c r="F7"' + style, b'<c r="F7"' + style + value[0])
    say("release", "t.xlsx", *OF_SHEET, "--out", "o.xlsx")
    assert openpyxl.load_workbook("o.xlsx").active["E5"].value == (0.5 if value[1] else None)


ODS = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content office:version="1.2"
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">
<office:body><office:spreadsheet><table:table table:name="Survey">{}</table:table>
</office:spreadsheet></office:body></office:document-content>"""


def ods(cell):
    """Write a sheet of which the second of the columns has one formula."""

    def row(*texts, last=""):
        made = "".join(
            f'<table:table-cell office:value-type="string"><text:p>{t}</text:p></table:table-cell>'
            for t in texts
        )
        return f"<table:table-row>{made}{last}</table:table-row>"

    body = [row("k", "w", "n"), *(row(k, w, "1") for k, _, w in people())]
    body.insert(3, row("a", "y", last=cell))
    with zipfile.ZipFile("t.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", '<manifest:manifest xmlns:manifest="urn:oasis:'
            'names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/"'
            ' manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/>'
            "</manifest:manifest>")  # fmt: skip
        archive.writestr("content.xml", ODS.format("".join(body)))


def test_a_formula_of_an_ods_sheet_has_its_value_or_is_refused(here):
    pytest.importorskip("python_calamine", reason="cvxprivacy-sdc[files] is not installed")
    how = ("release", "t.ods", "--sensitive", "w", "--key", "k", "--budget", "0.2")
    ods('<table:table-cell table:formula="of:=[.A1]*2"/>')
    pieces = ["C4 of sheet 'Survey' is a formula without a stored value", "save it"]
    refused(*how, pieces=pieces)
    ods('<table:table-cell table:formula="of:=2" office:value-type="float" office:value="2"/>')
    say(*how, "--out", "o.csv")
    assert Path("o.csv").read_text().splitlines()[3].endswith(",y,2")
