"""Formats of dates and times of SPSS, Stata and SAS: each is read as dates or refused by name."""

from __future__ import annotations

import random
import re
import warnings
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from cvxprivacy.errors import InputError
from cvxprivacy_sdc.formats.number_formats import number_format
from cvxprivacy_sdc.formats.table_files import open_table
from tests.lengths import rest_at_length
from tests.sdc.commands.runner import ROOT, loaded, refused, report, say, write

WHY = "cvxprivacy-sdc[files] is not installed"
pyreadstat = pytest.importorskip("pyreadstat", reason=WHY)
pd = pytest.importorskip("pandas", reason=WHY)


def listed():
    """Return the formats of each package, by what its numbers are."""
    lines = (ROOT / "tests" / "sdc" / "data" / "number_formats.txt").read_text(encoding="utf-8")
    groups = re.findall(r"^(\w+) (\w+): (.*(?:\n +.*)*)", lines, re.MULTILINE)
    return {(of, what): ["" if name == "none" else name for name in names.split()]
            for of, what, names in groups}  # fmt: skip


FORMATS = listed()
DATES = {
    "sas": FORMATS["sas", "days"] + FORMATS["sas", "seconds"],
    "spss": FORMATS["spss", "seconds"],
    "stata": FORMATS["stata", "units"],
}
KINDS = {"sas": "xpt", "spss": "sav", "stata": "dta"}
WRITERS = {"sas": "write_xport", "spss": "write_sav", "stata": "write_dta"}
MONTHS = {"quarter": 3, "year": 12, "5years": 60, "decade": 120, "month": 1}


def moments(count, seed=1):
    """Return random moments of four centuries, some at an end of a year, day or month."""
    chance = random.Random(seed)
    for i in range(count):
        moment = datetime(1600 + chance.randrange(500), 1, 1)
        moment += timedelta(chance.randrange(366), chance.randrange(86_400))
        ends = [moment, datetime(moment.year, 1, 1), datetime(moment.year, 12, 31, 23, 59, 59)]
        yield ends[i % 5 % 3]


def stored(package, name, moment):
    """Return the number that a package stores, and the day that it is."""
    if package == "spss" or name.rstrip("0123456789.") in FORMATS["sas", "seconds"]:
        epoch = date(1582, 10, 14) if package == "spss" else date(1960, 1, 1)
        seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
        return (moment.date() - epoch).days * 86_400 + seconds, moment.date()
    unit = name.replace("-", "").replace("%d", "%td")[2] if package == "stata" else "d"
    years = moment.year - 1960
    if unit == "c":
        return (moment - datetime(1960, 1, 1)) // timedelta(milliseconds=1), moment.date()
    if unit == "w":  # of which the last one has what is left of the year
        return 52 * years + min((moment.timetuple().tm_yday - 1) // 7, 51), moment.date()
    if unit in "mqh":
        parts = {"m": 12, "q": 4, "h": 2}[unit]
        return parts * years + (moment.month - 1) * parts // 12, moment.date()
    return (moment.date() - date(1960, 1, 1)).days, moment.date()


def shortest(package, name):
    """Return the months of the shortest calendar interval that a format shows."""
    base = name.rstrip("0123456789.")
    if package == "stata":
        unit = name.replace("-", "").replace("%d", "%td")[2]
        return {"w": 12, "q": 3, "h": 6}.get(unit, 1)
    if base in ("QYR", "QTR", "QTRR") or base.startswith("YYQ"):
        return 3
    return 12 if base in ("WKYR", "YEAR", "DTYEAR") else 1


def label(day, unit):
    """Return the name of the calendar interval of a day."""
    if unit == "month":
        return f"{day:%Y-%m}"
    if unit == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    years = MONTHS[unit] // 12
    first = day.year // years * years
    return f"{day.year}" if years == 1 else f"{first}-{first + years - 1}"


def written(package, formats, columns, **more):
    """Write a table with a column of each format; return its name."""
    name = f"t.{KINDS[package]}"
    frame = pd.DataFrame({f"x{i}": column for i, column in enumerate(columns)})
    shown = {f"x{i}": name for i, name in enumerate(formats) if name}
    getattr(pyreadstat, WRITERS[package])(frame, name, variable_format=shown, **more)
    return name


def named(table, place, unit):
    """Return the calendar intervals of a column, in which the reader puts it."""
    from cvxprivacy.tables.periods import Periods

    frame = table.frame([f"x{place}"], binned={f"x{place}": unit})
    days = [None if v is pd.NaT or v is pd.NA else v for v in frame[f"x{place}"].tolist()]
    return Periods(unit).named(days)


@pytest.mark.parametrize("package", KINDS)
def test_numbers_of_every_format_of_dates_are_those_dates(package, here):
    """Counted back from dates by each package's definition, and never taken for years."""
    assert compared(package, 24, seed=1) >= 3 * 24 * len(DATES[package])


def compared(package, count, seed):
    """Compare so many dates in each format with how they are read; return how many labels."""
    formats, chosen = DATES[package], list(moments(count, seed))
    pairs = [[stored(package, name, moment) for moment in chosen] for name in formats]
    name = written(package, formats, [[number for number, _ in column] for column in pairs])
    table, labels = open_table(name), 0
    for i, of in enumerate(formats):
        for unit, months in MONTHS.items():
            if months % shortest(package, of):
                with pytest.raises(InputError, match=f"shows no {unit}; take .*year") as error:
                    named(table, i, unit)
                assert error.value.value == of
                continue
            assert named(table, i, unit) == [label(day, unit) for _, day in pairs[i]], of
            labels += count
    return labels


@pytest.mark.parametrize("package", KINDS)
def test_every_other_format_of_dates_and_times_is_refused_by_name(package, here):
    """Though all of its numbers may be taken for years."""
    formats = FORMATS[package, "refused"]
    table = open_table(written(package, formats, [[1965.0, 1980.0]] * len(formats)))
    for i, name in enumerate(formats):
        for unit in ("year", "decade", "month"):
            with pytest.raises(InputError) as error:
                named(table, i, unit)
            assert f"the format {name} of column 'x{i}' is not one of dates" in str(error.value)
            assert "or of plain numbers if these are years" in str(error.value)
        assert table.frame([f"x{i}"])[f"x{i}"].tolist() == [1965, 1980]  # of which all else is made


@pytest.mark.parametrize("package", KINDS)
def test_plain_numbers_are_years(package, here):
    formats = FORMATS[package, "plain"]
    table = open_table(written(package, formats, [[1965.0, 1980.0]] * len(formats)))
    for i in range(len(formats)):
        assert named(table, i, "decade") == ["1960-1969", "1980-1989"]
        with pytest.raises(InputError, match="'1965', which is a year alone"):
            named(table, i, "month")


def test_formats_are_those_of_pandas_and_pyreadstat(here):
    """What they take for dates is what is taken for dates here, by their own lists and readers.

    Two differ between them: numbers of DTDATE are moments, which pyreadstat takes for days, and TOD
    is shown of times as of moments.  pyreadstat takes seconds of %tC for plain ones.
    """
    from pandas.io.sas import sas_constants

    assert {*sas_constants.sas_date_formats} <= {*FORMATS["sas", "days"]}
    assert {*sas_constants.sas_datetime_formats} <= {*FORMATS["sas", "seconds"], "TOD"}
    chosen, agreed = [m for m in moments(9) if m.year > 1700], {}
    days = [moment.date() for moment in chosen]
    for package in KINDS:
        others = FORMATS[package, "refused"] + FORMATS[package, "plain"]
        names = [name for name in DATES[package] + others if name not in ("DTDATE", "%tC")]
        columns = [
            [stored(package, name, moment)[0] if name in DATES[package] else 1965
             for moment in chosen] for name in names
        ]  # fmt: skip
        path, reader = written(package, names, columns), WRITERS[package].replace("write", "read")
        read = {"pyreadstat": getattr(pyreadstat, reader)(path, dates_as_pandas_datetime=True)[0]}
        if package == "stata":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of %tC, which pandas does not convert either
                read["pandas"] = pd.read_stata(path)
        for library, frame in read.items():
            for column, name in zip(frame, names, strict=True):
                if frame[column].dtype.kind == "M" and "%ty" not in name.replace("-", ""):
                    assert number_format(package, name).date_of is not None, name
                    assert [v.year for v in frame[column]] == [day.year for day in days], name
                    agreed[package, library] = agreed.get((package, library), 0) + 1
    least = {("sas", "pyreadstat"): 30, ("spss", "pyreadstat"): 7, ("stata", "pyreadstat"): 5,
             ("stata", "pandas"): 14}  # fmt: skip
    assert all(agreed[pair] >= number for pair, number in least.items())


@pytest.mark.parametrize("kind", ["float32", "int16", "int8"])
def test_days_are_days_however_they_are_stored(kind, here):
    """Stata's own type of new variables is float."""
    numbers = [1, 100, 127 if kind == "int8" else 9000, -3, -127]
    pd.DataFrame({"x0": numbers}).astype(kind).to_stata("t.dta", write_index=False)
    data = Path("t.dta").read_bytes()
    shown = re.search(rb"%[0-9]+.0g\0", data)[0]
    Path("t.dta").write_bytes(data.replace(shown, b"%td".ljust(len(shown), b"\0")))
    name = "t.dta"
    days = [date(1960, 1, 1) + timedelta(number) for number in numbers]
    assert named(open_table(name), 0, "month") == [f"{day:%Y-%m}" for day in days]
    assert open_table(name).columns()["x0"] == [day.isoformat() for day in days]


def test_missing_values_among_dates_stay_missing(here):
    """Stata's letters, and what SPSS declares."""
    numbers = [1965, "a", None, "z", -1]
    name = written("stata", ["%td", "%tm"], [pd.Series(numbers, dtype=object)] * 2,
                   missing_user_values={"x0": ["a", "z"], "x1": ["a", "z"]})  # fmt: skip
    assert named(open_table(name), 0, "year") == ["1965", None, None, None, "1959"]
    assert named(open_table(name), 1, "year") == ["2123", None, None, None, "1959"]
    seconds = [stored("spss", "DATE11", datetime(1987, 2, 3))[0], 1965, 9_999_999_999]
    name = written("spss", ["MOYR8"], [seconds],
                   missing_ranges={"x0": [{"lo": 1900, "hi": 2000}, 9_999_999_999]})  # fmt: skip
    assert named(open_table(name), 0, "month") == ["1987-02", None, None]


@pytest.mark.parametrize(("package", "of", "number"), [
    ("stata", "%td", 2_936_550), ("stata", "%td", -0.5), ("stata", "%tm", 96_480),
    ("sas", "DATE9", 1e300), ("stata", "%tq", -0.25), ("sas", "DATETIME20", -1e12),
    ("spss", "DATE11", 1e15),
])  # fmt: skip
def test_what_is_outside_of_the_calendar_is_no_date(package, of, number, here):
    """As are parts of a day before the epoch, which programs round to different days."""
    table = open_table(written(package, [of], [[1.0, number]]))
    with pytest.raises(InputError, match="record 2.*no date"):
        named(table, 0, "year")


def test_a_moment_is_on_its_day_to_the_last_bit(here):
    """A double next below midnight is on the day before, though its microseconds round up."""
    midnight = (datetime(2000, 1, 1) - datetime(1960, 1, 1)).total_seconds()
    below = midnight - 2.0**-22
    assert below < midnight
    numbers = [below, midnight, -(2.0**-40)]
    table = open_table(written("sas", ["DATETIME22.3", "DTDATE9"], [numbers] * 2))
    assert named(table, 0, "year") == named(table, 1, "year") == ["1999", "2000", "1959"]


# ---- as they are released ----------------------------------------------------------------


def people(package, of, days, **more):
    """Write a table of births and of who is ill; return its name."""
    numbers = [stored(package, of, datetime(day.year, day.month, day.day))[0] for day in days]
    frame = pd.DataFrame({"birth": numbers, "ill": ["nyy"[i % 3] for i in range(len(days))]})
    name = f"t.{KINDS[package]}"
    getattr(pyreadstat, WRITERS[package])(frame, name, variable_format={"birth": of}, **more)
    return name


BORN = [date(1965, 3, 2), date(1971, 7, 1), date(1980, 12, 31)] * 20
HOW = ("--sensitive", "ill", "--key", "birth", "--budget", 0, "--seed", 1)


@pytest.mark.parametrize(("package", "of"), rest_at_length([
    ("stata", "%d"), ("sas", "MONYY7"), ("spss", "QYR8"), ("stata", "%tw"), ("stata", "%-td"),
    ("stata", "%tm"), ("stata", "%tq"), ("stata", "%th"), ("stata", "%tc"), ("spss", "WKYR10"),
    ("spss", "MOYR8"), ("sas", "DTDATE9"), ("sas", "WEEKDATE29"),
], 3))  # fmt: skip
def test_a_released_column_of_years_has_no_format_of_dates(package, of, here):
    """It is text, and counted again by other code where another library reads the format."""
    name, out = people(package, of, BORN), f"o.{KINDS[package]}"
    labels = [f"{day.year // 10 * 10}-{day.year // 10 * 10 + 9}" for day in BORN]
    how = ("--bins", "birth=decade", "--out", out, "--json")
    write("r.json", say("release", name, *HOW, *how).out)
    read = getattr(pyreadstat, WRITERS[package].replace("write", "read"))
    frame, meta = read(out)
    assert frame["birth"].tolist() == labels
    assert meta.readstat_variable_types["birth"] == "string"
    kept = (meta.original_variable_types["birth"] or "").strip("%-$0123456789.")
    assert kept.upper() in ("", "S", "A")
    if package == "stata":
        count = report("verify", "--table", name, "--released", out, "--report", "r.json")
        assert count[out]["verified"]
        forged = pd.DataFrame({"birth": [*labels[1:], labels[0]], "ill": frame["ill"]})
        pyreadstat.write_dta(forged, "f.dta")
        how = ("--table", name, "--released", "f.dta", "--report", "r.json")
        assert not report("verify", *how, code=1)["f.dta"]["verified"]


@pytest.mark.parametrize("of", ["%td", "%tq", "%tw"])
def test_a_released_column_of_dates_keeps_its_unit(of, here):
    """Its numbers are some of those that were there, in its own format; in text they are dates."""
    name = people("stata", of, BORN)
    say("release", name, *HOW[:-4], "--budget", 0.3, "--seed", 1, "--out", "o.dta")
    before, after = (pyreadstat.read_dta(file, disable_datetime_conversion=True)
                     for file in (name, "o.dta"))  # fmt: skip
    assert after[1].original_variable_types["birth"] == of
    assert {*after[0]["birth"]} <= {*before[0]["birth"]}
    assert after[0]["birth"].tolist() != before[0]["birth"].tolist()
    say("release", name, *HOW, "--out", "o.csv")
    assert [row.split(",")[0] for row in Path("o.csv").read_text().split()[1:]] == [
        str(number_format("stata", of).cell(number)) for number in before[0]["birth"]
    ]


def test_a_date_that_a_later_table_has_not_is_text_with_all_others(here):
    """And not a date among numbers of days."""
    name = people("stata", "%td", BORN)
    how = ("--channel", "c.json", "--budget", 0.5)
    say("release", name, *HOW[:-4], "--seed", 1, *how)
    outputs = [v[0] if isinstance(v, list) else v for v in loaded("c.json")["outputs"]]
    assert "1965-03-02" in outputs
    people("stata", "%td", [BORN[1]] * 60)
    say("apply", "c.json", name, "--seed", 1, "--out", "o.dta")
    assert {*pyreadstat.read_dta("o.dta")[0]["birth"]} <= {day.isoformat() for day in BORN}


def test_a_second_count_takes_no_number_of_days_for_a_year(here):
    """A report of plain numbers does not pass for a table of the same numbers as days."""
    name = people("stata", "%td", BORN)
    frame, _ = pyreadstat.read_dta(name, disable_datetime_conversion=True)
    for of in ("%9.0g", "%tb", "%td"):
        pyreadstat.write_dta(frame, "t.dta", variable_format={"birth": of})
        if of == "%9.0g":
            how = ("--bins", "birth=decade", "--out", "o.dta")
            write("r.json", say("release", "t.dta", *HOW, *how, "--json").out)
        how = ("verify", "--table", "t.dta", "--released", "o.dta", "--report", "r.json")
        if of == "%tb":
            refused(*how, pieces=["numbers of 'birth' are %tb, and no years"])
        else:
            report(*how, code=0 if of == "%9.0g" else 1)


@pytest.mark.parametrize(("of", "pieces"), [
    ("%tC", ["t.dta: the format %tC of column 'birth' is not one of dates", "give it a format"]),
    ("%tbnyse", ["%tbnyse"]), ("%tq", ["the format %tq of column 'birth' shows no month",
    "take quarter or year"]),
])  # fmt: skip
def test_a_format_is_refused_in_one_line(of, pieces, here):
    frame = pd.DataFrame({"birth": [1965, 1980] * 20, "ill": ["n", "y", "y", "n"] * 10})
    pyreadstat.write_dta(frame, "t.dta", variable_format={"birth": of})
    unit = "month" if of == "%tq" else "year"
    refused("release", "t.dta", *HOW, "--bins", f"birth={unit}", "--out", "o.dta", pieces=pieces)


# ---- what other formats have -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["duration", "period", "time"])
def test_parquet_numbers_that_are_no_numbers_are_refused(kind, here):
    """DuckDB reads Arrow's durations and pandas' periods as numbers."""
    pytest.importorskip("duckdb")
    arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ill = ["n", "y", "y", "n"] * 10
    if kind == "period":
        births = pd.PeriodIndex.from_ordinals([1965, 1980] * 20, freq="M")
        pd.DataFrame({"birth": births, "ill": ill}).to_parquet("t.parquet")
    else:
        of = arrow.duration("s") if kind == "duration" else arrow.time32("s")
        births = arrow.array([1965, 1980] * 20, of)
        file.write_table(arrow.table({"birth": births, "ill": ill}), "t.parquet")
    name = {"duration": "duration[s]", "period": "pandas.period", "time": "Time"}[kind]
    refused("release", "t.parquet", *HOW, "--bins", "birth=year", "--out", "o.parquet",
            pieces=["'birth'", name])  # fmt: skip


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_a_second_count_takes_no_duration_for_a_year(ending, here):
    """A report of plain numbers does not pass for a table of as many days or seconds."""
    births, ill = [1965, 1980] * 20, ["n", "y", "y", "n"] * 10
    if ending == "parquet":
        pytest.importorskip("duckdb")
        arrow, file = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        for name, of in (("t", arrow.int64()), ("f", arrow.duration("s"))):
            file.write_table(
                arrow.table({"birth": arrow.array(births, of), "ill": ill}), f"{name}.parquet"
            )
    else:
        openpyxl = pytest.importorskip("openpyxl", reason=WHY)
        for name in "tf":
            book = openpyxl.Workbook()
            for row in [("birth", "ill"), *zip(births, ill, strict=True)]:
                book.active.append(row)
            for row in range(2, 42 if name == "f" else 2):
                book.active.cell(row, 1).number_format = "[h]:mm"
            book.save(f"{name}.xlsx")
    how = ("--bins", "birth=decade", "--out", f"o.{ending}", "--json")
    write("r.json", say("release", f"t.{ending}", *HOW, *how).out)
    how = ("--released", f"o.{ending}", "--report", "r.json")
    report("verify", "--table", f"t.{ending}", *how)
    pieces = {"parquet": ["numbers of 'birth' are duration[s], and no years"],
              "xlsx": ["'1965 days, 0:00:00' of 'birth' does not tell its decade"]}  # fmt: skip
    refused("verify", "--table", f"f.{ending}", *how, pieces=pieces[ending])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("of", ["duration", "time"])
def test_durations_and_times_of_frames_are_refused(kind, of):
    import cvxprivacy as cpv

    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    dtype = pl.Duration("ms") if of == "duration" else pl.Time
    scale = 1 if of == "duration" else 1_000  # of a time to nanoseconds, which pandas has not
    births = (pl.Series([1965, 1980] * 4) * scale).cast(dtype)
    frame = pl.DataFrame({"birth": births, "ill": list("nyynnyyy")})
    frame = {"pandas": frame.to_pandas, "polars": lambda: frame, "pyarrow": frame.to_arrow}[kind]()
    with pytest.raises(cpv.InputError, match="'birth'.*(Duration|Time|time)"):
        cpv.DiscreteSource.from_table(frame, sensitive="ill", key="birth", bins={"birth": "year"})


@pytest.mark.parametrize(("shown", "names"), [
    ("yyyy", ["1905", "1965"]), ("[$-407]mmmm yy;@", ["1905", "1965"]), ("0", None),
    ('0 "years"', None), ("General", None), ("e", "'e'"), ("[h]:mm", "no date"), ("bbbb", "'bbbb'"),
])  # fmt: skip
def test_numbers_of_a_workbook_are_what_they_are_shown_as(shown, names, here):
    """1965 as a date is 18 May 1905, and 23780 is 7 February 1965."""
    openpyxl = pytest.importorskip("openpyxl", reason=WHY)
    pytest.importorskip("python_calamine", reason=WHY)
    book = openpyxl.Workbook()
    for row in [("x0",), (1965,), (23_780 if isinstance(names, list) else 1980,)]:
        book.active.append(row)
    for row in (2, 3):
        book.active.cell(row, 1).number_format = shown
    book.save("t.xlsx")
    if isinstance(names, str):
        with pytest.raises(InputError, match=f"t.xlsx, record 1.*{names}"):
            named(open_table("t.xlsx"), 0, "year")
        return
    assert named(open_table("t.xlsx"), 0, "year") == (names or ["1965", "1980"])


def test_a_workbook_may_count_from_1904(here):
    openpyxl = pytest.importorskip("openpyxl", reason=WHY)
    pytest.importorskip("python_calamine", reason=WHY)
    book = openpyxl.Workbook()
    book.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
    for row in [("x0",), (date(1905, 5, 19),), (datetime(1999, 12, 31, 23, 59),)]:
        book.active.append(row)
    book.save("t.xlsx")
    assert named(open_table("t.xlsx"), 0, "month") == ["1905-05", "1999-12"]
