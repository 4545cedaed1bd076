"""Delimited text: what is not released is copied, what is malformed is refused by its line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import tracemalloc
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, note, settings, strategies as st

from cvxprivacy import InputError
from cvxprivacy_sdc.formats import delimited
from cvxprivacy_sdc.formats.delimited import DelimitedTable, as_numbers

ENCODINGS = [
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252",
    "gb18030", "cp1140",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("delimited")


def table(folder: Path, data: bytes, **options) -> DelimitedTable:
    path = folder / "table.csv"
    path.write_bytes(data)
    return DelimitedTable(path, **options)


def written(one: DelimitedTable, replacements=None, **options) -> bytes:
    return b"".join(one.rewritten(replacements or {}, **options))


def plain(cell: str, delimiter: str, *, alone: bool) -> str:
    """Return how the csv module writes a cell, quoted only if it must be."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([cell] if alone else [cell, "x"])
    return out.getvalue().removesuffix("\r\n" if alone else f"{delimiter}x\r\n")


def patch_chunk(size: int):
    """Read and write a few bytes at a time."""
    return mock.patch.object(delimited, "CHUNK", size)


# ---- files whose every piece is known ------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A table and the raw text of its parts; ``skipped`` are the blank lines after a record."""

    names: list[str]
    cells: list[list[str]]
    header: str
    raw: list[list[str]]
    ends: list[str]
    skipped: list[str]
    delimiter: str
    encoding: str
    mark: str
    titles: list[str]

    def without(self, gone: set[int], raw: list[list[str]], keep: list[bool]) -> bytes:
        """Return the file without columns, of which two at least are left."""

        def fewer(pieces: list[str]) -> list[str]:
            return [piece for i, piece in enumerate(pieces) if i not in gone]

        end = self.header[len(self.header.rstrip("\r\n")) :]
        header = self.delimiter.join(fewer(self.titles)) + end
        return replace(self, header=header).data([fewer(record) for record in raw], keep)

    def data(self, raw: list[list[str]] | None = None, keep: list[bool] | None = None) -> bytes:
        raw, keep = raw or self.raw, keep or [True] * len(self.cells)
        lines = [self.delimiter.join(r) + e for r, e in zip(raw, self.ends, strict=True)]
        text = self.header + "".join(
            line * kept + blank for line, kept, blank in zip(lines, keep, self.skipped, strict=True)
        )
        return (self.mark + text).encode(self.encoding)


@st.composite
def files(draw) -> File:
    delimiter = draw(st.sampled_from(",;\t|^] "))
    encoding = draw(st.sampled_from(ENCODINGS))
    marked = encoding in ("utf-8", "utf-16-le", "utf-16-be") and draw(st.booleans())
    width = draw(st.integers(1, 4))
    letters = st.sampled_from(["a", "b", "é", " ", "'", "\\", delimiter, ",", '"', "\n", "\r"])
    cell = st.text(letters, max_size=4)
    names = draw(st.lists(st.text(letters, min_size=1, max_size=3),
                          min_size=width, max_size=width, unique=True))  # fmt: skip
    cells = draw(st.lists(st.lists(cell, min_size=width, max_size=width), max_size=6))

    def shown(text: str) -> str:
        bare = plain(text, delimiter, alone=width == 1)
        return '"' + text.replace('"', '""') + '"' if bare == text and draw(st.booleans()) else bare

    end = st.sampled_from(["\n", "\r\n", "\r"])
    ends, skipped = [draw(end) for _ in cells], []
    for i, this in enumerate(ends):  # after a CR, an empty line's LF would be part of a CRLF
        between = (width > 1 or i == len(ends) - 1) and draw(st.integers(0, 2))
        skipped.append(("\r" if this == "\r" else draw(st.sampled_from(["\n", "\r\n"]))) * between)
    titles = list(map(shown, names))
    header = delimiter.join(titles) + draw(end)
    raw = [[shown(text) for text in record] for record in cells]
    if cells and not skipped[-1] and draw(st.booleans()):
        ends[-1] = ""
    mark = "\ufeff" * marked
    return File(names, cells, header, raw, ends, skipped, delimiter, encoding, mark, titles)


def opened(folder: Path, file: File, **options) -> DelimitedTable:
    note(repr(file.data()))
    return table(folder, file.data(), delimiter=file.delimiter, encoding=file.encoding, **options)


chunks = st.sampled_from([1, 2, 3, 7, 1 << 18])


@given(file=files(), chunk=chunks)
def test_without_replacements_the_bytes_are_the_files_own(folder, file, chunk):
    with patch_chunk(chunk):
        one = opened(folder, file)
        assert written(one) == file.data()
        assert one.header == file.names
        columns = one.columns()
    expected = {
        name: [record[i] or None for record in file.cells] for i, name in enumerate(file.names)
    }
    assert columns == expected
    assert list(columns) == file.names
    text = file.data().decode(file.encoding).removeprefix("\ufeff")
    records = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=file.delimiter) if r]
    assert records == [file.names, *file.cells]


@given(file=files(), chunk=chunks, data=st.data())
def test_only_the_cells_of_the_replaced_columns_change(folder, file, chunk, data):
    chosen = data.draw(st.sets(st.sampled_from(range(len(file.names)))))
    letters = st.sampled_from(["a", "é", " ", file.delimiter, '"', "\n", "\r"])
    new = {
        i: data.draw(st.lists(st.none() | st.text(letters, max_size=4),
                              min_size=len(file.cells), max_size=len(file.cells)))
        for i in chosen
    }  # fmt: skip
    keep = data.draw(st.none() | st.lists(st.booleans(), min_size=len(file.cells),
                                          max_size=len(file.cells)))  # fmt: skip
    raw = [
        [plain(new[j][i] or "", file.delimiter, alone=len(record) == 1) if j in new else text
         for j, text in enumerate(record)]
        for i, record in enumerate(file.raw)
    ]  # fmt: skip
    with patch_chunk(chunk):
        one = opened(folder, file)
        outcome = written(one, {file.names[j]: cells for j, cells in new.items()}, keep=keep)
        assert outcome == file.data(raw, keep)
        assert written(one) == file.data()  # the input stays as it is
    kept = [True] * len(file.cells) if keep is None else keep
    again = table(folder, outcome, delimiter=file.delimiter, encoding=file.encoding).columns()
    for j, name in enumerate(file.names):
        expected = new.get(j, [record[j] for record in file.cells])
        assert again[name] == [c or None for c, k in zip(expected, kept, strict=True) if k]


@given(file=files(), chunk=chunks, data=st.data())
def test_columns_are_left_out_and_all_else_is_as_it_was(folder, file, chunk, data):
    """Byte for byte outside the columns that are replaced or left out."""
    places = range(len(file.names))
    gone = data.draw(st.sets(st.sampled_from(places), max_size=len(places) - 1))
    chosen = data.draw(st.sets(st.sampled_from(places))) - gone
    keep = data.draw(st.lists(st.booleans(), min_size=len(file.cells), max_size=len(file.cells)))
    new = {i: [f"new {i}"] * len(file.cells) for i in chosen}
    alone = len(file.names) == 1
    raw = [
        [plain(new[j][i], file.delimiter, alone=alone) if j in new else text
         for j, text in enumerate(record)]
        for i, record in enumerate(file.raw)
    ]  # fmt: skip
    if not chosen:
        keep = [True] * len(file.cells)
    with patch_chunk(chunk):
        one = opened(folder, file)
        outcome = written(
            one, {file.names[j]: cells for j, cells in new.items()},
            keep=keep if chosen else None, without=[file.names[j] for j in gone],
        )  # fmt: skip
    if len(places) - len(gone) > 1 or not gone:
        assert outcome == file.without(gone, raw, keep)
    again = table(folder, outcome, delimiter=file.delimiter, encoding=file.encoding)
    assert again.header == [name for j, name in enumerate(file.names) if j not in gone]
    cells = again.columns()
    for j, name in enumerate(file.names):
        if j not in gone:
            expected = new.get(j, [record[j] for record in file.cells])
            assert cells[name] == [
                text or None for text, kept in zip(expected, keep, strict=True) if kept
            ]


def test_one_column_that_is_left_has_a_record_for_each(folder):
    one = table(folder, b'a,b\n1,\n\n2,x\n,""\n')
    assert written(one, without=["a"]) == b'b\n""\nx\n""\n'
    assert written(one, without=["b"]) == b'a\n1\n2\n""\n'


def test_a_first_field_is_never_a_comment(folder):
    one = table(folder, b"a,b\n1,#2\n# c\n3,4\n", comment="#")
    assert written(one, without=["a"]) == b'b\n"#2"\n# c\n4\n'
    new = {"a": ["#5", "6"]}
    assert written(one, new) == b'a,b\n"#5",#2\n# c\n6,4\n'


def test_names_that_are_there_twice(folder):
    """Each by its place among them; the header stays."""
    data = b'a,b,"a",\n1,2,3,4\n'
    one = table(folder, data)
    assert one.header == ["a#1", "b", "a#2", "#4"]
    assert written(one, {"a#2": ["x"]}) == b'a,b,"a",\n1,2,x,4\n'
    assert written(one, without=["a#1"]) == b'b,"a",\n2,3,4\n'
    short = table(folder, b'"a" "b"\n"r" 1 2\n', delimiter=" ")
    assert written(short, without=["#1"]) == b'"a" "b"\n1 2\n'
    with pytest.raises(InputError, match="one name is left"):  # above two columns, as if in full
        written(short, without=["a"])


@given(text=st.text(st.sampled_from('ab,"\r\n é;\ufeff\x85\u2028'), max_size=25), chunk=chunks)
@example(text='a,b\n1,2"\n', chunk=3)
@example(text='a,b\r\n"1\r",2\r\r', chunk=1)
@example(text='a\n\n""\n\n', chunk=1)
@example(text='a,b\n"1""",""""\n"",', chunk=1)
@example(text="a,b\n1,\ufeff2\n", chunk=1)
@example(text="a,a", chunk=1)
@example(text=";,;\n1,2\n", chunk=1)
def test_any_text_is_read_as_the_csv_module_reads_it_or_refused(folder, text, chunk):
    data = text.encode()
    records: list[list[str]] | None = None
    try:
        rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
        records = list(rows)
    except csv.Error:
        pass
    with patch_chunk(chunk):
        try:
            one = table(folder, data, na=["nothing"])
            columns = one.columns()
        except InputError:
            header = records[0] if records else []
            stray = re.search(r'(^|,|[\r\n])[^",\r\n]+"', text.removeprefix("\ufeff"))
            ragged = records and any(r and len(r) != len(header) for r in records)
            doubtful = len(set(header)) < len([n for n in header if n])
            assert records is None or not any(header) or ragged or doubtful or stray
            return
        assert records is not None
        while not any(records[0]):
            records.pop(0)
        named = [
            f"{name}#{i + 1}"
            for i, name in enumerate(records[0])
            if not name or records[0].count(name) > 1
        ]
        assert [name for name in one.header if name not in records[0]] in (named, ["#1", *named])
        if len(one.header) == 1:
            while not records[-1]:
                records.pop()
            records = [r or [""] for r in records]
        assert list(zip(*columns.values(), strict=True)) == [tuple(r) for r in records[1:] if r]
        assert written(one) == data
        new = written(one, {one.header[0]: ["z"] * len(columns[one.header[0]])})
    assert table(folder, new, na=["nothing"]).columns() == {
        **columns, one.header[0]: ["z"] * len(columns[one.header[0]])
    }  # fmt: skip


@settings(max_examples=40)
@given(data=st.binary(max_size=40), start=st.sampled_from(["", "a,é\n1,2\n", "a,b\n"]))
@pytest.mark.parametrize(
    "encoding", [*ENCODINGS, "utf-7", "cp932", "gbk", "iso2022_jp", "mac_arabic", "unicode_escape"]
)
@pytest.mark.filterwarnings("ignore:.*invalid.*escape:DeprecationWarning")
def test_any_bytes_are_copied_or_refused(folder, encoding, start, data):
    data = start.encode(encoding, "ignore") + data
    with patch_chunk(3):
        try:
            one = table(folder, data, encoding=encoding)
            one.columns()
        except InputError:
            return
        assert written(one) == data


# ---- cells -------------------------------------------------------------------------------


@pytest.mark.parametrize("old", ["x", '"x"', "y", '"y"', '"y, z"'])
def test_the_form_of_a_new_cell_does_not_tell_the_old_one(folder, old):
    one = table(folder, f"a,b\n{old},1\n".encode())
    assert written(one, {"a": ["x"]}) == b"a,b\nx,1\n"


def test_an_encoding_with_shifts_ends_unshifted(folder):
    one = table(folder, "a,b\n1,あ\n2,い".encode("iso2022_jp"), encoding="iso2022_jp")
    assert written(one) == one.path.read_bytes()
    assert written(one, {"a": ["う", "え"]}) == "a,b\nう,あ\nえ,い".encode("iso2022_jp")


def test_an_escape_that_does_not_end_is_refused(folder):
    data, path = b"a,b\n1,\x1b$" + b"\0" * 7, str(folder / "table.csv")
    with patch_chunk(3):  # what is pending overflows the decoder, but that of Python 3.13
        refused(lambda: table(folder, data, encoding="iso2022_jp").columns(), path,
                "line 2: ", "iso2022_jp", "--encoding")  # fmt: skip


def test_missing_cells(folder):
    one = table(folder, b'a,b\n?,1\nNA,2\n"NA",3\n,4\nx,5\nx,6\n', na=["?", "NA"])
    assert one.columns(["a"]) == {"a": [None, None, None, "", "x", "x"]}
    new = [None, None, "y", None, None, "z"]
    assert written(one, {"a": new}) == b"a,b\n?,1\n?,2\ny,3\n?,4\n?,5\nz,6\n"


def test_columns_come_in_the_order_asked_and_share_their_cells(folder):
    one = table(folder, b"a,b,c\n" + b"one,two,three\n" * 50)
    assert list(one.columns(["c", "a", "c"])) == ["c", "a"]
    assert one.columns([]) == {}
    cells = one.columns(["c"])["c"]
    assert cells == ["three"] * 50
    assert len({id(cell) for cell in cells}) == 1


def test_blank_lines(folder):
    several = table(folder, b"a,b\n\n1,2\n\r\n\n3,4\n\n\n")
    assert several.columns() == {"a": ["1", "3"], "b": ["2", "4"]}
    assert written(several, {"a": ["x", "y"]}) == b"a,b\n\nx,2\n\r\n\ny,4\n\n\n"
    single = table(folder, b"a\n\n1\n\r\n2\n\n\n")
    assert single.columns() == {"a": [None, "1", None, "2"]}
    assert written(single) == b"a\n\n1\n\r\n2\n\n\n"
    assert written(single, {"a": ["x", None, "y", None]}) == b'a\nx\n""\ny\r\n""\n\n\n'
    data = written(single, keep=[True, True, True, False])  # no record of it becomes a blank end
    assert data == b'a\n""\n1\n""\r\n\n\n'
    assert table(folder, data).columns() == {"a": [None, "1", None]}


def test_columns_without_a_name_are_called_by_their_place(folder):
    """As ``write.csv`` and ``to_csv`` leave them: their bytes stay."""
    data = b'"","k",""\n"1","a",2\n"2","b",3\n'
    one = table(folder, data)
    assert one.header == ["#1", "k", "#3"]
    assert one.columns(["#3", "#1"]) == {"#3": ["2", "3"], "#1": ["1", "2"]}
    assert written(one) == data
    assert written(one, {"#3": ["3", "2"]}) == b'"","k",""\n"1","a",3\n"2","b",2\n'
    assert one.remarks == ["column 1 has no name, and is called #1 here",
                           "column 3 has no name, and is called #3 here"]  # fmt: skip


@pytest.mark.parametrize("between", [b"", b"\n"])
def test_a_header_that_is_one_field_short(folder, between):
    """As ``write.table`` leaves it: the first field is the name of the record."""
    data = b'"k" "n"\n' + between + b'"1" "a" 2\n' + between + b'"2" "b" 3\n'
    one = table(folder, data, delimiter=" ")
    assert one.columns() == {"#1": ["1", "2"], "k": ["a", "b"], "n": ["2", "3"]}
    assert written(one) == data
    assert written(one, {"n": ["4", "5"]}) == data.replace(b" 2\n", b" 4\n").replace(b" 3", b" 5")
    assert written(one, keep=[False, True]) == b'"k" "n"\n' + between * 2 + b'"2" "b" 3\n'
    assert "one field short" in one.remarks[0]


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
def test_what_stands_before_the_header_and_comments_are_kept(folder, chunk):
    data = b'\n\r\n# by, "hand\n,\n#\na,b\n#x\n1,"2\n# inside"\n\n# "z\n3,4\n#,'
    with patch_chunk(chunk):
        one = table(folder, data, comment="#")
        assert one.columns() == {"a": ["1", "3"], "b": ["2\n# inside", "4"]}
        assert one.comments == 5
        assert written(one) == data
        assert written(one, {"a": ["5", "6"]}) == data.replace(b"1,", b"5,").replace(b"3,", b"6,")
        single = table(folder, b"#\n\na\n\n#\n1\n", comment="#")
        assert single.columns() == {"a": [None, "1"]}
        assert written(single, {"a": ["x", "y"]}) == b"#\n\na\nx\n#\ny\n"


@pytest.mark.parametrize("comment", ["", "\n", '"', "#,"])
def test_a_comment_begins_with_a_text(folder, comment):
    refused(lambda: table(folder, b"a\n", comment=comment), "comment", repr(comment), "such as #")


def test_cells_are_written_as_the_column_writes_them(folder):
    """Quoted where most are; a missing one as most are, in its own quotes; whatever was there."""
    one = table(folder, b'a,b\n"x",NA\n"y",1\nx,"NA"\n"z",NA\nNA,2\n', na=["", "NA"])
    spelled = one.spellings(["a", "b"])
    assert dict(spelled["a"].texts) == {"x": 2, "y": 1, "z": 1}
    new = {"a": ["x", None, "y", "x", "z"], "b": ["1", "2", None, "2", None]}
    text = written(one, new, spellings=spelled)
    assert text == b'a,b\n"x",1\nNA,2\n"y",NA\n"x",2\n"z",NA\n'


@pytest.mark.parametrize("data", [b"a,b", b"a,b\n", b"a,b\r\n\r\n", codecs.BOM_UTF8 + b'"a",b'])
def test_a_header_alone_is_a_table_without_records(folder, data):
    one = table(folder, data)
    assert one.columns() == {"a": [], "b": []}
    assert written(one) == written(one, {"b": []}, keep=[]) == data


def test_progress_is_told_every_byte(folder):
    one, information = table(folder, b"a,b\n" + b"1,2\n" * 200_000), []
    one.columns(["a"], progress=information.append)
    assert sum(information) == one.path.stat().st_size
    assert len(information) > 3


@pytest.mark.long
def test_memory_holds_only_what_is_asked_for(folder):
    one = table(folder, b"a,b\n" + b"".join(b"x,%d%s\n" % (i, b"." * 299) for i in range(20_000)))
    tracemalloc.start()
    try:
        cells = one.columns(["a"])["a"]
        assert len(cells) == 20_000
        assert sum(map(len, one.rewritten({"a": cells}))) == one.path.stat().st_size > 5_000_000
        assert tracemalloc.get_traced_memory()[1] < 4_500_000
    finally:
        tracemalloc.stop()


# ---- what is refused ---------------------------------------------------------------------

LONG = b"a,b\n1,2\n3," + b"x" * (csv.field_size_limit() + 1) + b"\n"
MALFORMED = {
    "nothing": (b"", "an empty file", "first line"),
    "blank": (b"\n\r\n,\n", "line 1: no header", "first line"),
    "nameless by a name": (b"\n,#1,b\n", "line 2: column 2 is the second that is named '#1'"),
    "two alike": (b'a,"a",a#2\n', "line 1: column 3 is the second that is named 'a#2'", "distinct"),
    "short": (b"a,b\n1,2\n\n3\n", "line 4: 1 field where the header has 2", "','"),
    "long": (b"a,b\r\n1,2,3,4\r\n", "line 2: 4 fields where the header has 2", "','"),
    "long later": (b"a,b\n1,2\n1,2,3\n", "line 3: 3 fields where the header has 2", "','"),
    "delimiters at ends": (b"a,b\n1,2,\n3,4,\n", "line 2: 3 fields where the header has 2", "','"),
    "decimal commas": (b"a,b\n1,5,2\n0,5,3\n1,5,4\n", "line 4: 3 fields", "'1' is there twice"),
    "longer yet": (b"a,b\nx,1,2\ny,1,2,3\n", "line 3: 4 fields where the header has 2", "','"),
    "short of names": (b"a,b\nx,1,2\n1,2\n", "line 3: 2 fields where the header has 2", "','"),
    "short and tall": (b'a,b\n"1\n2"\n', "lines 2 to 3: 1 field where", "','"),
    "two in one column": (b"a\n\n1\n1,2\n", "line 4: 2 fields where the header has 1", "','"),
    "stray": (b'a,b\n1,2\n3,5" pipe\n', "line 3: a quote inside a field", "double each quote"),
    "stray name": (b'a"b,c\n', "line 1: a quote inside a field", "double each quote"),
    "after": (b'a,b\n1,"2"3\n', "line 2: ',' expected after '\"'", "double each quote"),
    "open": (b'a,b\n1,2\n3,"4\n5,6\n', "line 3: a quote is opened and never closed", "quote"),
    "open until the next": (b'a,b\n1,"2\n3,"4"\n', "lines 2 to 3: ',' expected", "quote"),
    "too long": (LONG, f"line 3: a field of more than {csv.field_size_limit()} char", "quote"),
    "open for long": (b'a,b\n1,"' + b"2,3\n" * 50_000, "lines 2 to 327", "quote"),
    "NUL": (b"a,b\n1,2\n3,\0\n", "line 3: a NUL character", "export a binary file as text"),
    "latin-1": (b"a,b\r1,2\r\n\xe9t\xe9,3\n", "line 3: byte 0xe9 is not utf-8", "--encoding latin"),
    "cut short": (b"a,b\n1,2\n3,\xc3", "line 3: byte 0xc3 is not utf-8", "--encoding latin-1"),
    "zipped": (gzip.compress(b"a,b\n1,2\n", mtime=0), "line 1: byte 0x8b", "as text"),
    "UTF-16": ("a,b\n".encode("utf-16"), "mark of utf-16-le", "pass --encoding utf-16-le"),
    "UTF-32": ("a,b\n".encode("utf-32"), "mark of utf-32-le", "pass --encoding utf-32-le"),
    "no mark": ("a,b\n".encode("utf-16-be"), "line 1: a NUL character", "--encoding utf-16-le"),
}  # fmt: skip


def refused(call, argument: str, *pieces: str) -> None:
    """Assert that ``call`` raises an InputError about ``argument`` that says every piece."""
    with pytest.raises(InputError) as caught:
        call()
    error = caught.value
    assert error.argument == argument, str(error)
    for piece in pieces:
        assert piece in str(error)
    assert len(error.remedy) > 10
    assert "\n" not in str(error)


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused_by_its_line(folder, name, chunk):
    data, *pieces = MALFORMED[name]
    path = folder / "table.csv"
    with patch_chunk(max(chunk, len(data) // 1000)):
        refused(lambda: table(folder, data).columns([]), str(path), *pieces)
        refused(lambda: written(table(folder, data)), str(path), *pieces)


@pytest.mark.parametrize(
    ("data", "encoding", "pieces"),
    [
        (b"a,b\n1,2\n", "utf-16", ["no byte order mark", "utf-16-le or utf-16-be"]),
        ("a,b\n1,2\n\ud800".encode("utf-16", "surrogatepass"), "utf-16", ["line 3", "not utf-16"]),
        (codecs.BOM_UTF8 + b"a,b\n", "latin-1", ["mark of utf-8", "pass --encoding utf-8"]),
        ("a,b\n".encode("utf-16"), "cp1252", ["mark of utf-16-le", "--encoding utf-16-le"]),
        ("a,b\né,2\n".encode(), "ascii", ["line 2: byte 0xc3 is not ascii", "--encoding"]),
        (b"a,b\n1,2\n\x81,3\n", "cp1252", ["line 3: byte 0x81 is not cp1252", "--encoding"]),
        (b"a,b\n1,2\n\xee\xf9,3\n", "cp932", ["line 3: cp932 does not write", "UTF-8"]),
        (b"", "utf-16", ["an empty file"]),
        (b"a,b\n1,\x1b$B", "iso2022_jp", ["line 2: iso2022_jp does not write", "UTF-8"]),
        (b"a,b\n1,2\n+AGE-,3\n", "utf-7", ["line 3: utf-7 does not write", "UTF-8"]),
    ],
)
def test_bytes_that_the_encoding_does_not_have(folder, data, encoding, pieces):
    path = str(folder / "table.csv")
    refused(lambda: table(folder, data, encoding=encoding).columns(), path, *pieces)


@pytest.mark.parametrize(
    "encoding", ["utf-9", "", "rot13", "base64", "idna", "punycode", "a\0b", None, 8, b"utf-8"]
)
def test_an_unknown_encoding(folder, encoding):
    refused(lambda: table(folder, b"a\n", encoding=encoding), "encoding", repr(encoding), "latin-1")


@pytest.mark.parametrize("delimiter", ["", ",,", "\\t", '"', "\n", "\r", "\0", None, 9])
def test_a_delimiter_is_one_character(folder, delimiter):
    refused(lambda: table(folder, b"a\n", delimiter=delimiter), "delimiter", repr(delimiter), "one")


@pytest.mark.parametrize("na", ["NA", "", [], [None], [-9]])
def test_missing_texts_are_a_list_of_texts(folder, na):
    refused(lambda: table(folder, b"a\n", na=na), "na", repr(na), "in a list")


def test_what_is_no_readable_file(tmp_path):
    path = tmp_path / "none.csv"
    refused(lambda: DelimitedTable(path), str(path), "No such file", "that can be read")
    refused(lambda: DelimitedTable(tmp_path), str(tmp_path), "not a regular file")
    refused(lambda: DelimitedTable("a\0b"), "a\0b", "null")
    refused(lambda: DelimitedTable(path / "x"), str(path / "x"), "that can be read")
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        refused(lambda: DelimitedTable(path), str(path), "not a regular file")


def test_an_unreadable_file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b"a\n")
    with mock.patch.object(Path, "open", side_effect=PermissionError(13, "Permission denied")):
        refused(lambda: DelimitedTable(path), str(path), "Permission denied", "that can be read")


def test_a_line_without_end(folder):
    with mock.patch.object(delimited, "LONGEST", 10), patch_chunk(8):
        path = str(folder / "table.csv")
        refused(
            lambda: table(folder, b"a,b\n" + b"x" * 99).columns(),
            path,
            "line 2: more than 10 characters",
        )


@pytest.mark.parametrize("call", [lambda t: t.columns(["c"]), lambda t: written(t, {"c": ["1"]})])
def test_an_unknown_column(folder, call):
    path = str(folder / "table.csv")
    refused(lambda: call(table(folder, b"a,b\n1,2\n")), path, "no column 'c'", "from 'a', 'b'")
    refused(
        lambda: call(table(folder, b"a;b\n1;2\n")), path, "'a;b'", "another --delimiter than ','"
    )


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_entries_for_other_than_every_record(folder, count):
    one, path = table(folder, b"a,keep\n1,2\n3,4\n"), str(folder / "table.csv")
    problem = f"2 records, and {count} entries for"
    refused(lambda: written(one, {"a": ["x"] * count}), path, f"{problem} 'a'", "run again")
    refused(lambda: written(one, keep=[True] * count), path, f"{problem} keep", "run again")
    both = {"a": ["x", "y"], "keep": ["x"] * count}
    refused(lambda: written(one, both, keep=[True] * 2), path, f"{problem} 'keep'", "run again")


@pytest.mark.parametrize("cell", ["€", "a\0b", 5, 0.5, float("nan"), b"x"])
def test_a_new_cell_that_cannot_be_written(folder, cell):
    one = table(folder, b"a,b\n1,2\n", encoding="latin-1")
    refused(lambda: written(one, {"a": [cell]}), "replacements", repr(cell)[:3], "'a'", "latin-1")


def test_a_file_that_changes_meanwhile(folder):
    one = table(folder, b"a,b\n1,2\n")
    with one.path.open("ab") as file:
        file.write(b"3,4\n")
    refused(one.columns, str(one.path), "changed while it was read", "run again")
    one = table(folder, b"a,b\n1,2\n")
    status = one.path.stat()
    one.path.write_bytes(b"b,a\n1,2\n")
    os.utime(one.path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
    refused(lambda: written(one), str(one.path), "changed while it was read")
    one = table(folder, b"a,b\n" + b"1,2\n" * 200_000)
    half = one.rewritten({})
    next(half)
    next(half)
    with one.path.open("r+b") as file:
        file.truncate(400_000)
    refused(lambda: list(half), str(one.path), "changed while it was read")
    one.path.unlink()
    refused(one.columns, str(one.path), "No such file")


# ---- numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "outcome"),
    [
        ([], []),
        ([None], [None]),
        (["0", "-7", None, "12"], [0, -7, None, 12]),
        ([str(10**30 + 1)], [10**30 + 1]),
        (["1", "1.50", "-0.25", None], [1.0, 1.5, -0.25, None]),
        (["0.30000000000000004", "100.0"], [0.30000000000000004, 100.0]),
        (["0.000123456789012345"], [0.000123456789012345]),
    ],
)
def test_numbers(cells, outcome):
    numbers = as_numbers(cells)
    assert numbers == outcome
    assert [type(n) for n in numbers] == [type(f) for f in outcome]
    assert as_numbers(cells, strict=False) == outcome


@pytest.mark.parametrize(
    "text",
    ["007", "-0", "+1", "1e5", "1E5", ".5", "5.", "nan", "inf", "-inf", "1,5", "1_000", " 1", "1\n",
     "01.5", "", "-", "0x1", "½", "٣", "1.5.2", "9" * 5000, "1.0000000000000000001", "True",
     "12345678901234567.5"],
)  # fmt: skip
def test_text_that_only_resembles_a_number(text):
    assert as_numbers(["1", text]) is None
    assert as_numbers([text, None, "0.5"]) is None


@pytest.mark.parametrize("text", ["12345678901234567", "9007199254740993"])
def test_an_integer_that_no_float_tells_from_the_next_is_never_one(text):
    assert as_numbers([text]) == [int(text)]
    assert as_numbers([text, "0.5"]) is None


@pytest.mark.long
@given(st.lists(st.from_regex(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", fullmatch=True), max_size=4))
def test_numbers_are_equal_only_if_their_texts_are_worth_the_same(texts):
    from fractions import Fraction

    numbers = as_numbers(texts)
    if numbers is not None:
        for a, x in zip(texts, numbers, strict=True):
            for b, y in zip(texts, numbers, strict=True):
                assert (x < y) == (Fraction(a) < Fraction(b))


def test_finite_numbers_of_any_look_when_asked_for():
    cells = [" 007 ", "1e5", ".5", None, "+3", "-0"]
    assert as_numbers(cells, strict=False) == [7.0, 1e5, 0.5, None, 3.0, 0.0]
    assert repr(as_numbers([" 7", "8 "], strict=False)) == "[7, 8]"
    for text in ("nan", "inf", "1e999", "1_000", "x", "", "1,5", "9" * 5000):
        assert as_numbers(["1", text], strict=False) is None
