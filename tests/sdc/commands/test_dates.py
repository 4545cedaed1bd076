"""Dates as key columns: calendar intervals in every format, and what is no date."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from cvxprivacy_sdc.formats.dates import SPELLINGS
from cvxprivacy_sdc.formats.table_files import open_table
from tests.lengths import rest_at_length
from tests.sdc.commands.runner import loaded, refused, report, say, write
from tests.sdc.commands.test_as_offices_have_it import lines_of, written

HEADER = ("id", "birth", "sex", "ill")
ROLES = ("--sensitive", "ill", "--key", "birth,sex", "--budget", 0.1, "--seed", 5)
LEVEL = ("--missing", "level")
BORN = date(1950, 1, 1)


def records(count=200, gaps=True):
    """Return records whose illness depends on the year of birth; one in 19 has none."""
    chance = random.Random(2)
    for i in range(count):
        birth, sex = BORN + timedelta(chance.randrange(50 * 365)), chance.choice("MF")
        ill = ["no", "yes"][chance.random() < (birth.year - 1940) / 70]
        yield i, None if gaps and i % 19 == 0 else birth, sex, ill


def text(spelled, table=None):
    """Return the table as text, with dates as they are spelled."""
    table = list(records()) if table is None else table
    lines = [(i, "" if day is None else spelled(day), *more) for i, day, *more in table]
    return "\n".join(",".join(map(str, line)) for line in [HEADER, *lines]) + "\n"


def column(name):
    """Return the released births of a file, as text or missing."""
    place, lines = HEADER.index("birth"), lines_of(name)[1:]
    return [None if line[place] in ("", None) else line[place] for line in lines]


WAYS = {
    "csv": date.isoformat,
    "de.csv": lambda day: f"{day:%d.%m.%Y}",
    "us.csv": lambda day: f"{day.month}/{day.day}/{day.year}",
    "uk.csv": lambda day: f"{day.day}-{day.month}-{day.year} 00:00",
    "compact.csv": lambda day: f"{day:%Y%m%d}",
    "slash.csv": lambda day: f"{day:%Y/%m/%d}",
}


def made(ending, table=None):
    """Write the table in a format, or as text with another spelling; return its name."""
    if ending in WAYS:
        return write(f"t.{ending}", text(WAYS[ending], table))
    if ending == "moments.parquet":
        moments = [
            (i, day and datetime(day.year, day.month, day.day, 23, 59), *more)
            for i, day, *more in records()
        ]
        return Path(written("parquet", HEADER, moments)).rename("t.moments.parquet").name
    if ending == "text.parquet":
        texts = [(i, day and day.isoformat(), *more) for i, day, *more in records()]
        return Path(written("parquet", HEADER, texts)).rename("t.text.parquet").name
    return written(ending, HEADER, list(records()) if table is None else table)


@pytest.mark.parametrize("ending", rest_at_length(
    ["de.csv", "parquet", "sav", "xlsx", "text.parquet", "moments.parquet", "dta", "xpt", "csv",
     "us.csv", "uk.csv", "compact.csv", "slash.csv"], 1,
))  # fmt: skip
def test_one_table_of_dates_in_every_format(ending, here):
    """One law, one seed, one released table: by text of ISO 8601, which is counted here."""
    write("iso.csv", text(date.isoformat))
    how = (*ROLES, *LEVEL, "--bins", "birth=5years", "--distortion", "birth=absolute,sex=hamming")
    outputs = ("--certificate", "p.json", "--channel", "c.json", "--problem-out", "r.toml")
    iso = report("release", "iso.csv", *how, "--out", "iso.o.csv")
    name = made(ending)
    other = report("release", name, *how, "--out", f"o.{ending}", *outputs)
    assert (other["lower"], other["upper"]) == (iso["lower"], iso["upper"])
    after = column("iso.o.csv")
    assert column(f"o.{ending}") == after
    bands = {f"{year}-{year + 4}" for year in range(1950, 2000, 5)}
    assert {*after} == bands | {None}
    before = [day and f"{day.year // 5 * 5}-{day.year // 5 * 5 + 4}" for _, day, *_ in records()]
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert 0 < changed <= iso["released"]["changed"]
    say("verify", "p.json", "--table", name, "--problem", "r.toml")
    say("verify", "p.json", "--table", "iso.csv")
    say("apply", "c.json", "iso.csv", "--seed", 5, "--out", "a.csv")
    assert column("a.csv") == after


@pytest.mark.parametrize(("unit", "label"), rest_at_length([
    ("quarter", "1987-Q1"), ("decade", "1980-1989"), ("month", "1987-02"), ("year", "1987"),
], 1))  # fmt: skip
@pytest.mark.parametrize("way", rest_at_length(["de.csv", "csv", "compact.csv"], 1))
def test_each_interval_is_counted_again_by_other_code(unit, label, way, here):
    table = [(i, date(1987, 2, 1 + i % 28) if day is None else day, *more)
             for i, day, *more in records()]  # fmt: skip
    name = made(way, table)
    how = ("--bins", f"birth={unit}", "--out", "o.csv", "--channel", "c.json")
    document = say("release", name, *ROLES, *how, "--json").out
    write("r.json", document)
    assert label in column("o.csv")
    recount = say("verify", "--table", name, "--released", "o.csv", "--report", "r.json").out
    assert "as r.json says" in recount
    lines = Path("o.csv").read_text().splitlines()  # another interval is another table
    i = next(i for i, line in enumerate(lines) if f",{label}," in line)
    j = next(j for j, line in enumerate(lines[1:], 1) if f",{label}," not in line)
    lines[i] = lines[i].replace(label, lines[j].split(",")[1])
    write("o.csv", "\n".join(lines) + "\n")
    say("verify", "--table", name, "--released", "o.csv", "--report", "r.json", code=1)


@pytest.mark.parametrize("unit", rest_at_length(["quarter", "year", "month", "decade"], 1))
@pytest.mark.parametrize(
    "ending", rest_at_length(["parquet", "xlsx", "dta", "moments.parquet", "text.parquet"], 1)
)
def test_so_it_is_in_other_formats(unit, ending, here):
    name, how = made(ending), ("--bins", f"birth={unit}", *LEVEL, "--out", f"o.{ending}")
    write("r.json", say("release", name, *ROLES, *how, "--json").out)
    how = ("verify", "--table", name, "--released", f"o.{ending}", "--report", "r.json")
    assert report(*how)[f"o.{ending}"]["verified"]


@pytest.mark.long
def test_years_are_read_again_as_what_they_are(here):
    """Years as text in a released file look like numbers: the audit knows better."""
    name = made("csv", [r for r in records() if r[1]])
    how = ("--bins", "birth=year")
    report("release", name, *ROLES, *how, "--out", "o.csv", "--channel", "c.json")
    roles = ("--sensitive", "ill", "--key", "birth,sex", *how, "--bootstrap", 0)
    plain, drawn = (report("audit", name, "o.csv", *roles, *more)
                    for more in ((), ("--channel", "c.json")))  # fmt: skip
    assert drawn["quality"]
    for part in ("classes", "information", "measures"):
        assert plain[part] == drawn[part]
    assert not [note for note in plain["notes"] if "binned" in note]


@pytest.mark.parametrize(("cell", "unit", "pieces"), [
    ("31.02.1987", "year", ["record 4", "'31.02.1987'", "day.month.year", "--na"]),
    ("03.02.87", "year", ["record 4", "'03.02.87'"]),
    ("unknown", "month", ["record 4", "'unknown'", "write dates as 1987-02-03"]),
    ("1987-02-03", "month", ["record 4", "'1987-02-03'", "as day.month.year is"]),
])  # fmt: skip
def test_what_is_no_date_is_refused_by_its_record(cell, unit, pieces, here):
    lines = text(WAYS["de.csv"], list(records(gaps=False))).splitlines()
    fields = lines[4].split(",")
    lines[4] = ",".join([fields[0], cell, *fields[2:]])
    write("t.csv", "\n".join(lines))
    refused("release", "t.csv", *ROLES, "--bins", f"birth={unit}", pieces=["'birth'", *pieces])


def test_which_is_the_month(here):
    """A column that does not tell is refused, unless it does not matter or was told before."""
    early = [(i, day.replace(day=1 + day.day % 12), *more)
             for i, day, *more in records(gaps=False)]  # fmt: skip
    write("march.csv", text(WAYS["us.csv"], early))
    pieces = ["march.csv, record ", "tells the day from the month", "write dates as 1987-02-03"]
    refused("release", "march.csv", *ROLES, "--bins", "birth=month", pieces=pieces)
    report("release", "march.csv", *ROLES, "--bins", "birth=Year", "--out", "y.csv")
    all_days = list(records(gaps=False))
    write("us.csv", text(WAYS["us.csv"], all_days))
    how = ("--bins", "birth=quarter", "--channel", "c.json", "--out", "o.csv")
    report("release", "us.csv", *ROLES, *how)
    assert loaded("c.json")["coding"]["reading"]["dates"] == {"birth": "month/day/year"}
    write("iso.csv", text(date.isoformat, early))
    for name in ("march.csv", "iso.csv"):
        say("apply", "c.json", name, "--seed", 1, "--out", f"a.{name}")
    assert column("a.march.csv") == column("a.iso.csv")


@pytest.mark.parametrize("ending", rest_at_length(["csv", "text.parquet", "xlsx"], 1))
def test_a_later_table_with_something_else_is_not_released(ending, here):
    report("release", made("parquet"), *ROLES, *LEVEL, "--bins", "birth=decade",
           "--channel", "c.json")  # fmt: skip
    table = [(i, "soon" if i == 7 else "1987-02-03", *more) for i, _, *more in records()]
    kind = ending.rpartition(".")[2]
    name = Path(written(kind, HEADER, table)).rename(f"later.{kind}").name
    where = [] if kind == "parquet" else [f"{name}, record 8"]
    refused("apply", "c.json", name, "--seed", 1, "--out", f"o.{kind}",
            pieces=["column 'birth'", "'soon'", "no date", *where])  # fmt: skip


def test_codes_of_what_is_missing_among_dates(here):
    lines = text(WAYS["de.csv"]).replace(",,", ",NA,")
    write("t.csv", lines)
    document = report("release", "t.csv", *ROLES, *LEVEL, "--bins", "birth=decade")
    assert any("birth (NA 11)" in note for note in document["notes"])
    refused("release", "t.csv", *ROLES, "--bins", "birth=decade", pieces=["'birth'", "missing"])


def test_bands_of_numbers_are_none_of_dates(here):
    pieces = ["'birth'", "of dates take calendar intervals", "--bins birth=year"]
    refused("release", made("csv"), *ROLES, "--bins", "birth=10", pieces=pieces)
    for ending in ("parquet", "csv"):
        pieces = ["birth", "month, quarter, year, decade, 5years"]
        refused("release", made(ending), *ROLES, "--bins", "birth=week", pieces=pieces)
    refused("release", made("parquet"), *ROLES, "--bins", "birth=10", pieces=["birth", "year"])
    refused("release", made("parquet"), *ROLES, "--bins", "sex=year", pieces=["'sex'", "no date"])
    write("t.csv", text(lambda day: day.year, list(records(gaps=False))))
    pieces = ["t.csv, record 1", "a year alone"]
    refused("release", "t.csv", *ROLES, "--bins", "birth=month", pieces=pieces)
    report("release", "t.csv", *ROLES, "--bins", "birth=decade")


@pytest.mark.parametrize(
    "ending", rest_at_length(["us.csv", "parquet", "text.parquet", "csv", "xlsx", "sav"], 1)
)
def test_intervals_are_chosen_for_few_cells(ending, here):
    """Cells and plan propose calendar intervals where exact days are too many."""
    name = made(ending)
    roles = ("--sensitive", "ill", "--key", "birth,sex", *LEVEL)
    document = report("release", name, *roles, "--budget", 0.1, "--cells", 12)
    assert "--bins birth=decade" in document["recoding"]["options"]
    assert document["recoding"]["cells"]["after"] <= 12
    planned = report("plan", name, "--sensitive", "ill", "--cells", 20)
    assert next(c for c in planned["columns"] if c["name"] == "birth")["dates"]
    assert planned["distortion"] == ["birth=ordinal", "sex=hamming"]
    assert "birth=" in planned["recoding"]["options"]
    assert "--bins birth=" in Path("plan.sh").read_text()
    say("solve", "plan.toml")


@pytest.mark.long
def test_a_report_names_the_intervals(here):
    name = made("csv")
    how = (*ROLES, *LEVEL, "--bins", "birth=decade", "--out", "o.csv", "--report", "b.json")
    report("release", name, *how, "--report", "b.html")
    assert loaded("b.json")["input"]["recodings"] == [{"column": "birth", "unit": "decade"}]
    assert "dates in calendar intervals: decade" in Path("b.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_frame_has_dates_where_text_is_dates(spelling, here):
    parts = {"year": "1987", "month": "02", "day": "13"}
    cell = spelling
    for part, digits in parts.items():
        cell = cell.replace(part, digits)
    write("t.csv", f"birth,other\n{cell},{cell} x\n")
    frame = open_table("t.csv").frame(dates=True)
    if spelling != "yearmonthday":  # which is a number
        assert [day.date() for day in frame["birth"]] == [date(1987, 2, 13)]
    assert frame["other"].dtype == "str"


@pytest.mark.parametrize("ending", rest_at_length(["csv", "parquet"], 1))
def test_too_many_days_are_answered_with_an_interval(ending, here):
    """Which is the finest of those that would do."""
    table = [(i, BORN + timedelta(i), "MF"[i % 7 % 2], ["no", "yes"][i % 3 % 2])
             for i in range(8_500)]  # fmt: skip
    pieces = ["8,500 observed cells of birth (8,500 levels)", "pass --bins birth=month"]
    roles = ("--sensitive", "ill", "--key", "birth", "--budget", 0.1)
    refused("release", made(ending, table), *roles, "--criterion", "KAnonymity=5", pieces=pieces)


@pytest.mark.parametrize(("zone", "hours"), rest_at_length([
    ("Europe/Berlin", 1), ("+05:00", 5), ("-03:00", -3), ("UTC", 0), ("Asia/Tokyo", 9),
], 1))  # fmt: skip
def test_moments_are_of_the_zone_of_their_column(zone, hours, here, monkeypatch):
    """The first and the last half hour of a year, whatever the machine's zone."""
    arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv("TZ", "America/New_York")
    zoned = arrow.timestamp("us", tz=zone)
    moments = [datetime(1960 + i // 2 % 4, *((1, 1, 0, 30) if i % 2 else (12, 31, 23, 30)))
               for i in range(160)]  # fmt: skip
    births = arrow.array([moment - timedelta(hours=hours) for moment in moments], zoned)
    ill = ["ny"[i // 2 % 4 > 1] for i in range(160)]
    made = arrow.table({"birth": births, "ill": ill, "after": births})
    file.write_table(made, "t.parquet")
    how = ("--sensitive", "ill", "--key", "birth", "--bins", "birth=year", "--budget", 0)
    outputs = ("--out", "o.parquet", "--channel", "c.json", "--certificate", "p.json")
    write("r.json", say("release", "t.parquet", *how, *outputs, "--json").out)
    years = [str(moment.year) for moment in moments]
    assert [line[0] for line in lines_of("o.parquet")[1:]] == years
    how = ("verify", "--table", "t.parquet", "--released", "o.parquet", "--report", "r.json")
    assert report(*how)["o.parquet"]["verified"]
    say("verify", "p.json", "--table", "t.parquet")
    say("apply", "c.json", "t.parquet", "--seed", 1, "--out", "a.parquet")
    assert [line[0] for line in lines_of("a.parquet")[1:]] == years


def test_zones_that_duckdb_cannot_tell_are_refused(here):
    arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    births = [datetime(1987 + i % 2, 2, 3) for i in range(20)]
    zones = {"a": "+05:30", "b": "UTC", "c": "Europe/Berlin"}
    columns = {
        name: arrow.array(births, arrow.timestamp("us", tz=tz)) for name, tz in zones.items()
    }
    file.write_table(arrow.table({**columns, "ill": ["n", "y"] * 10}), "t.parquet")
    for key, pieces in (("a", ["'a'", "'+05:30'"]), ("b,c", ["several", "'Europe/Berlin'"])):
        bins = [part for name in key.split(",") for part in ("--bins", f"{name}=year")]
        refused("release", "t.parquet", "--sensitive", "ill", "--key", key, "--budget", 0.1, *bins,
                pieces=["--bins", "without a zone", *pieces])  # fmt: skip


@pytest.mark.parametrize(("spelled", "unit"), rest_at_length([
    ("1987.0", "decade"), ("1987-02", "quarter"), ("1987", "year"),
], 1))  # fmt: skip
def test_years_and_months_alone_with_codes_of_what_is_missing(spelled, unit, here):
    """As pandas writes years where some are missing, and as months are."""
    table = list(records())
    cells = {"1987.0": lambda day: f"{day.year}.0", "1987": lambda day: day.year,
             "1987-02": lambda day: f"{day:%Y-%m}"}  # fmt: skip
    write("t.csv", text(cells[spelled], table).replace(",,", ",NA,"))
    write("iso.csv", text(date.isoformat, table))
    how = (*ROLES, *LEVEL, "--bins", f"birth={unit}")
    document = report("release", "t.csv", *how, "--out", "o.csv")
    assert any("birth (NA 11)" in note for note in document["notes"])
    report("release", "iso.csv", *how, "--out", "iso.o.csv")
    before = [None if cell == "NA" else cell for cell in column("o.csv")]
    assert before == column("iso.o.csv")
    write("r.json", json.dumps(document))
    say("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json")


def test_codes_of_what_is_missing_hide_no_other_cell(here):
    lines = text(WAYS["de.csv"]).replace(",,", ",NA,").replace("\n7,", "\n7,soon")
    write("t.csv", lines)
    refused("release", "t.csv", *ROLES, *LEVEL, "--bins", "birth=year",
            pieces=["record 8", "'soon", "no date"])  # fmt: skip


@pytest.mark.parametrize("spelled", rest_at_length(["1987-1987", "01987"], 1))
def test_an_interval_that_is_spelled_in_two_ways_is_denied(spelled, here):
    """Which could tell whose record was changed."""
    write("t.csv", text(WAYS["de.csv"], [(i, BORN.replace(year=1986 + i % 2), *more)
                                         for i, _, *more in records()]))  # fmt: skip
    how = (*ROLES, "--bins", "birth=year", "--out", "o.csv", "--json")
    write("r.json", say("release", "t.csv", *how).out)
    how = ("verify", "--table", "t.csv", "--released", "o.csv", "--report", "r.json")
    say(*how)
    write("o.csv", Path("o.csv").read_text().replace(",1987,", f",{spelled},", 1))
    refused(*how, pieces=["birth", f"'{spelled}'", "released, which"])


def test_dates_that_python_has_not_are_refused_by_their_column(here):
    arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    days = arrow.array([10**7 * (i == 5) + i for i in range(60)], arrow.int32())
    columns = {"birth": days.cast(arrow.date32()), "ill": ["n", "y"] * 30, "sex": ["M"] * 60}
    file.write_table(arrow.table(columns), "t.parquet")
    for more in ((), ("--cells", 10), ("--bins", "birth=decade")):
        refused("release", "t.parquet", *ROLES, *more, pieces=["'birth'", "after 9999"])
