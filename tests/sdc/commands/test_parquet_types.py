"""Parquet comes back as it came: types, nullability, metadata, row groups, codecs."""

from __future__ import annotations

import errno
import io
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pytest

import cvxprivacy as cpv
from cvxprivacy.tables import TableSchema
from cvxprivacy_sdc.formats.parquet import ParquetTable
from tests.lengths import some_at_length
from tests.sdc.commands.runner import report, say

WHY = "the extra `engines` is not installed"
pytest.importorskip("duckdb", reason=WHY)
pa = pytest.importorskip("pyarrow", reason=WHY)
pq = pytest.importorskip("pyarrow.parquet", reason=WHY)
pd = pytest.importorskip("pandas", reason=WHY)

HOW = ("--sensitive", "w", "--budget", "0.1", "--seed", 1)
MOMENT = datetime(2026, 3, 29, 1, 30, 0, 125)
WORDS = ["uno", "due", None]
TYPES = {  # every type of Arrow that Parquet holds, and three values of it
    **{kind: (getattr(pa, kind)(), [1, 0, None])
       for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{kind: (getattr(pa, kind)(), [0.5, -1.5, None])
       for kind in ("float16", "float32", "float64")},
    "nan": (pa.float64(), [float("nan"), 1.0, None]),
    "null": (pa.null(), [None] * 3),
    "bool": (pa.bool_(), [True, False, None]),
    **{kind: (getattr(pa, kind)(), WORDS) for kind in ("string", "large_string", "string_view")},
    **{kind: (getattr(pa, kind)(), [b"\0", b"", None])
       for kind in ("binary", "large_binary", "binary_view")},
    "fixed binary": (pa.binary(2), [b"ab", b"\0\1", None]),
    "decimal32": (pa.decimal32(5, 2), [Decimal("1.50"), Decimal("-2.25"), None]),
    "decimal128": (pa.decimal128(20, 3), [Decimal("1.500"), Decimal(10) ** 15, None]),
    "decimal256": (pa.decimal256(60, 3), [Decimal("1.500"), Decimal(10) ** 40, None]),
    "date32": (pa.date32(), [date(2026, 1, 2), date(1582, 10, 4), None]),
    "date64": (pa.date64(), [date(2026, 1, 2), date(1970, 1, 1), None]),
    "time32": (pa.time32("ms"), [time(1, 2), time(23, 59), None]),
    "time64": (pa.time64("ns"), [time(1, 2), time(23, 59), None]),
    **{f"timestamp[{unit}, {zone}]": (pa.timestamp(unit, zone), [MOMENT.replace(microsecond=0)] * 3)
       for unit in ("s", "ms", "us", "ns") for zone in (None, "Europe/Paris", "UTC", "+05:30")},
    "duration": (pa.duration("us"), [timedelta(days=1), timedelta(0), None]),
    "list": (pa.list_(pa.int8()), [[1, None], [], None]),
    "large list": (pa.large_list(pa.field("x", pa.large_string())), [["a"], [], None]),
    "fixed list": (pa.list_(pa.int16(), 2), [[1, 2], [3, None], None]),
    "struct": (pa.struct([pa.field("a", pa.int8(), False), ("b", pa.timestamp("ms", "UTC"))]),
               [{"a": 1, "b": MOMENT}, {"a": 2, "b": None}, None]),
    "map": (pa.map_(pa.string(), pa.float32()), [[("k", 1.5)], [], None]),
    "categories": (pa.dictionary(pa.int32(), pa.string()), WORDS),
    "large categories": (pa.dictionary(pa.int32(), pa.large_string()), WORDS),
    "ordered": (pa.dictionary(pa.int32(), pa.string(), ordered=True), WORDS),
    "uuid": (pa.uuid(), [bytes(range(16)), bytes(16), None]),
    "json": (pa.json_(), ['{"a": 1}', "[]", None]),
}  # fmt: skip


def made(columns, records=60, **more):
    """Write a table with a key, a confidential column, and columns of these types."""
    fields, arrays = [pa.field("k", pa.string()), pa.field("w", pa.string())], []
    arrays.append(pa.array(["ab"[i * i % 7 % 2] for i in range(records)]))
    arrays.append(pa.array(["yn"[i % 3 > 0] for i in range(records)]))
    for i, (name, (kind, values)) in enumerate(columns.items()):
        nullable = None in values
        fields.append(pa.field(name, kind, nullable, {"origin": f"file {i}"}))
        arrays.append(pa.array([values[i % 3] for i in range(records)], type=kind))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, {"made by": "a test"}))
    pq.write_table(table, "t.parquet", **{"row_group_size": 25, "compression": "zstd", **more})
    return pq.ParquetFile("t.parquet")


def compared(before, after, key):
    """Assert that all is as it was, but the values of the key."""
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    for one, other in zip(before.schema_arrow, after.schema_arrow, strict=True):
        assert one.equals(other, check_metadata=True)
    groups = [
        [(f.metadata.row_group(i).num_rows, f.metadata.row_group(i).column(0).compression)
         for i in range(f.num_row_groups)] for f in (before, after)
    ]  # fmt: skip
    assert groups[0] == groups[1]
    old, new = before.read(), after.read()
    for name in set(old.column_names) - set(key):
        assert repr(old[name].to_pylist()) == repr(new[name].to_pylist()), name
        assert str(old[name].type) == str(new[name].type)


def test_every_type_is_copied_as_it_is(here):
    before = made(TYPES)
    document = report(
        "release", "t.parquet", *HOW, "--key", "k", "--no-untouched", "--out", "o.parquet"
    )
    after = pq.ParquetFile("o.parquet")
    compared(before, after, ["k"])
    assert not [note for note in document["notes"] if "t.parquet" in note]
    assert before.read()["k"] != after.read()["k"]


KEYS = ["int8", "uint32", "float16", "float32", "bool", "string", "large_string", "decimal128",
        "date32", "timestamp[us, Europe/Paris]", "timestamp[ms, None]", "categories", "ordered",
        "large categories"]  # fmt: skip


@pytest.mark.parametrize(("name", "missing"), some_at_length(
    [(name, missing) for name in KEYS for missing in ("level", "drop")], 13,
))  # fmt: skip
def test_a_key_column_keeps_its_type(name, missing, here):
    kind, values = TYPES[name]
    if name.startswith("timestamp"):
        values = [MOMENT.replace(microsecond=0), MOMENT.replace(microsecond=0, year=2020), None]
    before = made({"x": (kind, values), "row": (pa.int16(), [1, 2, 3])})
    say("release", "t.parquet", *HOW, "--key", "x", "--missing", missing, "--out", "o.parquet")
    old, new = before.read(), pq.read_table("o.parquet")
    expected = old.schema
    if name == "ordered":  # as its categories first stand, so that no order was declared
        expected = expected.set(2, expected.field("x").with_type(TYPES["categories"][0]))
    assert new.schema.equals(expected, check_metadata=True)
    kept = [i for i, v in enumerate(old["x"].to_pylist()) if v is not None or missing == "level"]
    assert new["row"].to_pylist() == [old["row"][i].as_py() for i in kept]
    assert new["w"].to_pylist() == [old["w"][i].as_py() for i in kept]
    assert set(new["x"].to_pylist()) <= set(old["x"].to_pylist())
    changed = [i for i, k in enumerate(kept) if new["x"][i] != old["x"][k]]
    assert changed


def test_numbers_put_into_bands_become_text(here):
    """Of large text where the column is, with the metadata of its field."""
    before = made({"x": (pa.int16(), [1, 12, 23])})
    say("release", "t.parquet", *HOW, "--key", "x", "--bins", "x=10", "--out", "o.parquet")
    field = pq.read_schema("o.parquet").field("x")
    assert (field.type, field.nullable, field.metadata) == (
        pa.string(),
        False,
        {b"origin": b"file 0"},
    )
    assert before.schema_arrow.field("x").metadata == field.metadata


def test_a_pandas_frame_comes_back(here):
    """Its index, categories and zones; what pandas is document of a column in bands is true."""
    n = 60
    frame = pd.DataFrame({
        "size": pd.Categorical([["s", "m", "l"][i % 3] for i in range(n)],
                               ["xs", "s", "m", "l"], ordered=True),
        "town": pd.Categorical([["Rom", "Ulm"][i % 2] for i in range(n)], ["Ulm", "Rom", "Bonn"]),
        "age": [20 + i % 30 for i in range(n)],
        "w": [i % 3 > 0 for i in range(n)],
        "when": pd.date_range("2026-03-01", periods=n, freq="D", tz="Europe/Paris"),
    }, index=pd.Index([f"r{i}" for i in range(n)], name="person"))  # fmt: skip
    frame.to_parquet("t.parquet")
    say("release", "t.parquet", *HOW, "--key", "town,age", "--bins", "age=10", "--out", "o.parquet")
    again = pd.read_parquet("o.parquet")
    others = ["size", "w", "when"]
    pd.testing.assert_frame_equal(again[others], frame[others])
    assert list(again["town"].dtype.categories) == ["Rom", "Ulm"]  # sorted, and no others
    assert set(again["age"]) == {"[20, 30)", "[30, 40)", "[40, 50)"}
    document = json.loads(pq.read_schema("o.parquet").metadata[b"pandas"])
    entry = next(c for c in document["columns"] if c["name"] == "age")
    text = pa.Table.from_pandas(pd.DataFrame({"age": ["[20, 30)"]})).schema.pandas_metadata
    assert entry == text["columns"][0]
    entry = next(c for c in document["columns"] if c["name"] == "town")
    assert entry["metadata"] == {"num_categories": 2, "ordered": False}


@pytest.mark.parametrize("dropped", [False, True])
def test_an_index_that_counts_records(dropped, here):
    pd.DataFrame({
        "k": [None if dropped and i == 5 else "ab"[i % 2] for i in range(40)],
        "w": [i % 3 > 0 for i in range(40)],
    }).to_parquet("t.parquet")  # fmt: skip
    say("release", "t.parquet", *HOW, "--key", "k", "--missing", "drop", "--out", "o.parquet")
    again = pd.read_parquet("o.parquet")
    assert list(again.index) == list(range(40 - dropped))
    document = json.loads(pq.read_schema("o.parquet").metadata[b"pandas"])
    assert bool(document["index_columns"]) is not dropped


def test_old_timestamps_and_codecs_of_columns_stay(here):
    """Of Spark: INT96, another codec, an item that is called so."""
    columns = {"at": (pa.timestamp("ns"), [MOMENT, None, MOMENT]),
               "list": (pa.list_(pa.int8()), [[1], [], None])}  # fmt: skip
    codecs = {"k": "gzip", "w": "none", "at": "snappy", "list.list.item": "zstd"}
    before = made(columns, use_deprecated_int96_timestamps=True, use_compliant_nested_type=False,
                  compression=codecs)  # fmt: skip
    say("release", "t.parquet", *HOW, "--key", "k", "--out", "o.parquet")
    after = pq.ParquetFile("o.parquet")
    compared(before, after, ["k"])
    for i in range(4):
        for of in ("path", "physical_type"):
            assert getattr(before.schema.column(i), of) == getattr(after.schema.column(i), of)
        codec = (f.metadata.row_group(0).column(i).compression for f in (before, after))
        assert len(set(codec)) == 1


def test_names_that_duckdb_cannot_tell_apart(here):
    table = pa.table({"k": ["a", "b"] * 20, "K": [1, 2] * 20, "": [3, 4] * 20, "w": ["y"] * 40})
    pq.write_table(table, "t.parquet")
    say("release", "t.parquet", *HOW, "--key", "k", "--out", "o.parquet")
    new = pq.read_table("o.parquet")
    assert new.column_names == table.column_names
    assert new.drop(["k"]) == table.drop(["k"])


def test_large_row_groups_are_written_in_pieces(here, monkeypatch):
    from cvxprivacy_sdc.formats import parquet

    before = made({"x": (pa.int64(), [1, 2, 3])}, records=100, row_group_size=100)
    monkeypatch.setattr(parquet, "BATCH", 10)
    monkeypatch.setattr(parquet, "GROUP", 500)
    document = report("release", "t.parquet", *HOW, "--key", "k", "--out", "o.parquet")
    assert any("are written in pieces" in note for note in document["notes"])
    assert pq.ParquetFile("o.parquet").num_row_groups > 2
    assert pq.read_table("o.parquet").drop(["k"]) == before.read().drop(["k"])


def test_a_disk_that_is_full_is_told_though_a_row_group_is_written_behind(tmp_path):
    """Writing goes on beside the draws: its failure is that of the release, whichever group's."""

    class Full(io.BytesIO):
        room = 0

        def write(self, data):
            if self.tell() + len(data) > self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    table = pa.table({"x": ["a", "b"] * 500, "n": list(range(1000))})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=200)
    channel = cpv.Channel(
        [[0.9, 0.1], [0.2, 0.8]], inputs="ab", outputs="ab", schema=TableSchema(key=("x",))
    )
    path, fine = tmp_path / "t.parquet", io.BytesIO()
    assert ParquetTable(path).release(channel, fine, ["x"], seed=1)["records"] == 1000
    again = pq.ParquetFile(fine)
    assert again.num_row_groups == 5
    released = again.read()
    assert released["n"].to_pylist() == list(range(1000))
    assert released["x"].to_pylist() == channel.apply(table, seed=1)["x"].to_pylist()
    for room in (600, len(fine.getvalue()) // 2):
        file = Full()
        file.room = room
        with pytest.raises(OSError, match="No space left"):
            ParquetTable(path).release(channel, file, ["x"], seed=1)


def test_a_date_after_the_last_year_is_copied(tmp_path):
    """Python has none after 9999; whether it tells of the confidential column is not said."""
    days = pa.array([10**7, 3, None] * 10, pa.int32()).cast(pa.date32())
    table = pa.table({"w": ["a", "b", "b"] * 10, "key": ["u", "v"] * 15, "far": days})
    pq.write_table(table, tmp_path / "t.parquet")
    say("release", tmp_path / "t.parquet", *HOW, "--key", "key", "--out", tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet")["far"].equals(table["far"])
