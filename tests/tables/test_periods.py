"""Calendar intervals of dates: their names, in every engine, and as letters of a source."""

from __future__ import annotations

import datetime as dt
import math

import narwhals as nw
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.errors import UnknownValueError
from cvxprivacy.tables import Periods, TableSchema
from tests.engines import KINDS, MEMORY, column, made
from tests.lengths import some_at_length

UNITS = ["month", "quarter", "year", "5years", "decade"]
RNG = np.random.default_rng(0)
DAYS = [dt.date(1960, 1, 1) + dt.timedelta(int(k)) for k in RNG.integers(0, 15_000, 80)]
DAYS = [None if i % 17 == 5 else day for i, day in enumerate(DAYS)]
SICK = ["ny"[int(RNG.random() < 0.5)] for _ in DAYS]
WRITTEN = {  # as a column has them
    "date": DAYS,
    "time": [day and dt.datetime(day.year, day.month, day.day, 23, 59) for day in DAYS],
    "text": [day and day.isoformat() for day in DAYS],
    "category": [day and f"{day.isoformat()}T12:00" for day in DAYS],
}


def name(day, unit):
    """Return the name of a day's interval, by the calendar and not by its months."""
    if day is None or unit == "month":
        return day and day.strftime("%Y-%m")
    if unit == "quarter":
        return f"{day.year}-Q{math.ceil(day.month / 3)}"
    years = {"year": 1, "5years": 5, "decade": 10}[unit]
    first = day.year - day.year % years
    return str(first) if years == 1 else f"{first}-{first + years - 1}"


def table(kind, of, **more):
    days = (of, WRITTEN[of]) if isinstance(of, str) else of
    return made(kind, {"born": days, "ill": ("text", SICK), **more})


@pytest.mark.parametrize("kind", some_at_length(KINDS, 3))
@pytest.mark.parametrize("of", WRITTEN)
def test_every_engine_counts_every_kind_of_date(kind, of):
    for unit in UNITS if kind in MEMORY else ("quarter", "5years"):
        source = cpv.DiscreteSource.from_table(
            table(kind, of), sensitive="ill", key="born", bins={"born": unit}, missing="level"
        )
        names = [name(day, unit) for day in DAYS]
        counts = {x: names.count(x) for x in names}
        assert dict(zip(source.x, np.rint(source.p_x * len(DAYS)), strict=True)) == counts
        assert source.levels["born"] == [*sorted({*names} - {None}), None]


@pytest.mark.parametrize("kind", some_at_length(KINDS, 3))
def test_years_as_numbers_are_years(kind):
    years = ("int", [None if day is None else day.year for day in DAYS])
    how = {"sensitive": "ill", "key": "born", "bins": {"born": "decade"}, "missing": "level"}
    one = cpv.DiscreteSource.from_table(table(kind, years), **how)
    other = cpv.DiscreteSource.from_table(table("polars", "date"), **how)
    assert (one.x, one.pmf.tolist()) == (other.x, other.pmf.tolist())
    with pytest.raises(cpv.InputError, match=r"^bins.*'born'.*has no month"):
        cpv.DiscreteSource.from_table(table(kind, years), **{**how, "bins": {"born": "month"}})


@pytest.mark.parametrize("kind", MEMORY)
@pytest.mark.parametrize("of", some_at_length(["date", "text"], 1))
def test_a_channel_keeps_its_intervals(kind, of, tmp_path):
    """Saved and read again, it releases a table of another kind by the same names."""
    source = cpv.DiscreteSource.from_table(
        table("polars", "time"), sensitive="ill", key="born", bins={"born": "5years"},
        missing="level",
    )  # fmt: skip
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.3)
    problem.solve().channel.save(tmp_path / "c.json")
    channel = cpv.Channel.load(tmp_path / "c.json")
    assert channel.schema.bins["born"] == Periods("5years")
    released, expected = (
        [None if v != v else v for v in column(channel.apply(frame, seed=1), "born")]
        for frame in (table(kind, of), table("polars", "date"))
    )
    assert released == expected
    names = [name(day, "5years") for day in DAYS]
    assert {*released} <= {*names}
    assert released != names
    later = made(kind, {"born": ("date", [dt.date(2031, 1, 1)]), "ill": ("text", ["n"])})
    with pytest.raises(UnknownValueError, match="'2030-2034'"):
        channel.apply(later, seed=1)


def test_distances_are_of_years():
    """Middles of five years are five years apart; of months a twelfth."""
    frame = table("polars", "date")
    for unit, apart in (("month", 1 / 12), ("quarter", 1 / 4), ("5years", 5.0), ("decade", 10.0)):
        source = cpv.DiscreteSource.from_table(
            frame, sensitive="ill", key="born", bins={"born": unit}, missing="drop"
        )
        d = cpv.per_attribute({"born": "absolute_error"}, source)
        costs = np.asarray(d.matrix, float)
        first = [Periods(unit).place(x) for x in source.x]
        expected = apart * np.abs(np.subtract.outer(first, first))
        assert np.allclose(costs, expected, rtol=1e-9)
        years = Periods(unit).years(source.x)
        assert np.allclose(np.diff(list(years.values())), apart * np.diff(first))


def test_names_are_places_and_back():
    for unit in UNITS:
        periods = Periods(unit)
        names = [name(day, unit) for day in DAYS]
        assert periods.named(DAYS) == names == periods.named(names)
        for label in {*names} - {None}:
            assert periods.label(periods.place(label)) == label
    for label in ("1987-13", "1987-Q5", "1981-1989", "1980-1988", 1987, None, "1987-02-03"):
        assert Periods("decade").place(label) is None
    assert Periods("month").place("1987-13") is None


@pytest.mark.parametrize(("values", "value"), [
    (["1987-02-03", "1987-02-31"], "1987-02-31"), (["3/2/1987"], "3/2/1987"),
    (["1987-02-03", "soon"], "soon"), (["1987-02-03", ""], ""),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["pandas", "duckdb"])
def test_text_that_is_no_date_is_refused(kind, values, value):
    frame = made(kind, {"born": ("text", values), "ill": ("text", ["n"] * len(values))})
    with pytest.raises(cpv.InputError, match="'born'.*is no date; write dates as") as error:
        cpv.DiscreteSource.from_table(frame, sensitive="ill", key="born", bins={"born": "year"})
    assert error.value.value == value
    assert error.value.where == (len(values) - 1 if kind == "pandas" else None)


def test_what_is_no_interval_is_refused():
    frame = table("pandas", "date")
    for spec in ("week", "0years", "years", "5 years"):
        with pytest.raises(cpv.InputError, match="bins"):
            cpv.DiscreteSource.from_table(frame, sensitive="ill", key="born", bins={"born": spec})
    with pytest.raises(cpv.InputError, match="pass month, quarter, year, decade, or years"):
        Periods("week")
    for spec in (10, "q4"):
        with pytest.raises(cpv.InputError, match="pass a calendar interval.*year"):
            cpv.DiscreteSource.from_table(frame, sensitive="ill", key="born", bins={"born": spec})


@pytest.mark.parametrize("of", ["polars", "duckdb"])
@pytest.mark.parametrize("year", some_at_length([-43, 0, 12_000], 1))
def test_years_that_have_no_four_digits_are_refused(of, year):
    """A name of theirs would be none, or before others that are earlier."""
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = pl.DataFrame({"born": [dt.date(1987, 2, 3)] * 3, "ill": ["n", "y", None]})
    frame = frame.with_columns(
        born=pl.when(pl.col("ill") == "n").then(pl.date(year, 3, 1)).otherwise("born")
    )
    if of == "duckdb":
        frame = duckdb.sql("FROM frame")
    schema = TableSchema(("born",), bins={"born": "decade"})
    with pytest.raises(cpv.InputError, match="'born': 1 dates before the year 1 or after 9999"):
        schema.check(nw.from_native(frame).lazy(), ["born"])


def test_not_a_time_is_missing_and_a_tail_is_no_time():
    pd = pytest.importorskip("pandas")
    assert Periods("year").named([pd.NaT, dt.date(1987, 2, 3)])[1] == "1987"
    Periods("year").check([pd.NaT, "1987-02-03 10:00", "1987-02-03T10"])
    with pytest.raises(cpv.InputError, match="no date"):
        Periods("year").check(["1987-02-03 to 1988-02-03"])


@pytest.mark.parametrize("kind", ["pandas", "duckdb"])
def test_no_records_are_no_other_type(kind):
    none = made(kind, {"born": ("text", []), "ill": ("text", [])})
    with pytest.raises(cpv.InputError, match="no records"):
        cpv.DiscreteSource.from_table(none, sensitive="ill", key="born", bins={"born": "year"})
