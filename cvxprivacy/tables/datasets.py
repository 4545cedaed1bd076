"""Public microdata: fetched once from their public homes, checked, and kept; not bundled.

===================  =================  ======================================================
``load_adult``       32,561 × 15        UCI *Adult*, file ``adult.data`` (Becker and Kohavi
                                        1996; CC BY 4.0), 1994 Census database
``load_census``      1,080 × 13         CASC reference microdata *Census*: Current Population
                                        Survey 1995
``load_tarragona``   834 × 13           CASC *Tarragona*: companies of that area, 1995
``load_bezzi``       12 × 3             Table 2 of Bezzi 2010, written here: an example's people
``load_eia``         4,092 × 15         CASC *EIA*: U.S. Energy Information Administration
===================  =================  ======================================================

The three of CASC come from R's sdcMicro, at one commit of its repository.  A set is looked for in
the folder that ``CVXPRIVACY_DATA`` names (``adult.csv``, ``census.csv``, …), then in the cache
(``CVXPRIVACY_CACHE``, else ``cvxprivacy`` in the system's folder of caches), then fetched.  What is
fetched must have the SHA-256 pinned here, and so must the bytes of the table that are parsed, from
wherever they come: everybody computes from the same.

``adult.csv`` is ``adult.data`` with the columns' names as first line (``age``, …, ``income``), no
blank after a comma, and without the empty last line; the others are R's frames as CSV, without
row names and without needless quotes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from cvxprivacy.errors import InputError
from cvxprivacy.extras import pd, required

__all__ = ["load_adult", "load_bezzi", "load_census", "load_eia", "load_tarragona"]

TIMEOUT = 60.0  # seconds
ADULT = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,"
    "sex,capital-gain,capital-loss,hours-per-week,native-country,income"
)
SDCMICRO = (
    "https://raw.githubusercontent.com/sdcTools/sdcMicro/"
    "ea3a1048e7f811f9afc806f2e85906cd974ce0ac/data/"
)


def _adult(data: bytes) -> bytes:
    """Name the columns of ``adult.data``, and drop its blanks and its last, empty line."""
    lines = data.decode("ascii").rstrip("\n").split("\n")
    return "\n".join([ADULT, *(line.replace(", ", ",") for line in lines), ""]).encode()


def _rda(data: bytes) -> bytes:
    """Write the one frame of an R data file as CSV."""
    rdata = required("rdata", "cvxprivacy[datasets]", "an R data file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.rda"
        path.write_bytes(data)
        (frame,) = rdata.read_rda(path).values()
    return frame.to_csv(index=False, lineterminator="\n").encode()


@dataclass(frozen=True)
class Home:
    """Where a data set lives, and the SHA-256 of what is fetched and of the CSV made of it."""

    url: str
    fetched: str
    table: str
    convert: Callable[[bytes], bytes]


HOMES = {
    "adult": Home(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb",
        _adult,
    ),
    "census": Home(
        SDCMICRO + "CASCrefmicrodata.rda",
        "147d0d7fa823a384e36c2297174560e32cdbe6e39803f22f797610fb1a2993d6",
        "40fb91564d4379274610e941161fd38729adb471bddb9c71d7c01ef142fd0f5b",
        _rda,
    ),
    "tarragona": Home(
        SDCMICRO + "Tarragona.rda",
        "e83def0648be5e47eaf202b4dd60dd6981591d0858fd249817b9a2cc97cf2aef",
        "d5f719a134a3476b2157d9675d1a2b211dbc06ad6109685ad1e4b7847cfa45a4",
        _rda,
    ),
    "eia": Home(
        SDCMICRO + "EIA.rda",
        "8b61ceb0d1fa01d024bd62171655601abed62ff70a5e9e6fd550c43a1f76695e",
        "4df54e21b3451e3c0b6081fa1c9ef5dbd8f09d484925ed2ade759b78b4869d1b",
        _rda,
    ),
}


def load_adult(*, complete: bool = False) -> pd.DataFrame:
    """Return UCI *Adult*: 32,561 records, 15 columns; ``?`` is read as missing.

    Parameters
    ----------
    complete : bool
        Only the 30,162 records without a missing value, as in Bezzi 2010, §4.

    Returns
    -------
    pandas.DataFrame
        A row for each person: numbers and text.

    Raises
    ------
    InputError
        If it is nowhere at hand and cannot be fetched, or is not the file that is pinned.

    Examples
    --------
    >>> people = load_adult()
    >>> people.shape[1], sorted(people["income"].unique())
    (15, ['<=50K', '>50K'])
    >>> complete = load_adult(complete=True)
    >>> bool(people.isna().any(axis=None)), bool(complete.isna().any(axis=None))
    (True, False)
    """
    frame = _frame("adult", na_values="?")
    return frame.dropna(ignore_index=True) if complete else frame


def load_bezzi() -> pd.DataFrame:
    """Return Table 2 of Bezzi 2010: name, height (cm) and diagnosis of twelve people.

    Returns
    -------
    pandas.DataFrame
        Twelve rows; the diagnosis is "Y" or "N".  It is in the package: nothing is fetched.

    Examples
    --------
    One of the four who are taller than 180 cm is ill, and none of the others:

    >>> people = load_bezzi()
    >>> tall = people["height"] > 180
    >>> int(tall.sum()), people.loc[people["diagnosis"] == "Y", "name"].tolist()
    (4, ['Erin'])
    """
    people = {
        "Timothy": (166, "N"), "Alice": (163, "N"), "Perry": (161, "N"), "Tom": (167, "N"),
        "Ron": (175, "N"), "Omer": (170, "N"), "Bob": (170, "N"), "Amber": (171, "N"),
        "Sonya": (181, "N"), "Leslie": (183, "N"), "Erin": (195, "Y"), "John": (191, "N"),
    }  # fmt: skip
    height, diagnosis = zip(*people.values(), strict=True)
    return pd.DataFrame({"name": list(people), "height": height, "diagnosis": diagnosis})


def load_census() -> pd.DataFrame:
    """Return CASC *Census*: 1,080 records, 13 amounts; errors as in :func:`load_adult`.

    Returns
    -------
    pandas.DataFrame
        A row for each person: whole numbers, most of them dollars a year.

    Examples
    --------
    Total income is the sum of earnings and other income, so that the covariance is singular:

    >>> people = load_census()
    >>> bool((people["PTOTVAL"] == people["PEARNVAL"] + people["POTHVAL"]).all())
    True
    """
    return _frame("census")


def load_tarragona() -> pd.DataFrame:
    """Return CASC *Tarragona*: 834 companies, 13 amounts; errors as in :func:`load_adult`.

    Returns
    -------
    pandas.DataFrame
        A row for each company: whole numbers, of which profits and funds may be negative.

    Examples
    --------
    >>> companies = load_tarragona()
    >>> companies.shape[1], bool((companies["SALES"] >= 0).all())
    (13, True)
    """
    return _frame("tarragona")


def load_eia() -> pd.DataFrame:
    """Return CASC *EIA*: 4,092 records, 15 columns; errors as in :func:`load_adult`.

    Returns
    -------
    pandas.DataFrame
        A row for each utility, state and month of 1996: revenue and sales of electricity to
        residential, commercial, industrial and other customers.

    Examples
    --------
    The parts of the revenue add up to the total in most rows:

    >>> utilities = load_eia()
    >>> parts = ["RESREVENUE", "COMREVENUE", "INDREVENUE", "OTHREVENUE"]
    >>> float((utilities[parts].sum(axis=1) - utilities["TOTREVENUE"]).abs().median())
    0.0
    """
    return _frame("eia")


def _frame(name: str, **reading: Any) -> pd.DataFrame:
    """Return a data set of the pinned content, fetched if need be."""
    home, folder = HOMES[name], os.environ.get("CVXPRIVACY_DATA")
    path = Path(folder) / f"{name}.csv" if folder else None
    table = None if path is None else _local(path, home)
    if table is None:
        table = home.convert(_fetched(name, home, path))
        if hashlib.sha256(table).hexdigest() != home.table:
            problem = f"{name}.csv, made of {home.url}, has another SHA-256 than is pinned"
            remedy = "put the table into the folder that CVXPRIVACY_DATA names, and report this"
            raise InputError("dataset", problem, remedy, value=home.url)
    return pd.read_csv(BytesIO(table), **reading)


def _local(path: Path, home: Home) -> bytes | None:
    """Return the user's copy of a table, if there is one; another than is pinned is refused."""
    try:
        table = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problem, remedy = f"{path}: {error.strerror or error}", "let it be read, or name another"
        raise InputError("CVXPRIVACY_DATA", problem, f"{remedy} folder", value=str(path)) from None
    if hashlib.sha256(table).hexdigest() == home.table:
        return table
    problem = f"{path} is not the {path.name} that is pinned (another SHA-256)"
    remedy = "mind its line ends, which must be those of Unix; or remove it to have the set "
    remedy += f"fetched, or get it from {home.url}"
    raise InputError("CVXPRIVACY_DATA", problem, remedy, value=str(path))


def _fetched(name: str, home: Home, local: Path | None) -> bytes:
    """Return what lies at a home, whole and unchanged, from the cache if it is there."""
    pooch = required("pooch", "cvxprivacy[datasets]", "a data set that is fetched")
    with tempfile.TemporaryDirectory() as spare, ExitStack() as quiet:
        log = pooch.get_logger()  # writes to standard error, by default
        quiet.callback(log.setLevel, log.level)
        log.setLevel("WARNING")
        try:
            cache = Path(os.environ.get("CVXPRIVACY_CACHE") or pooch.os_cache("cvxprivacy"))
            cache = cache.expanduser()
            cache.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:  # the latter where there is no home folder
            problem = f"{name}.csv is not kept, and fetched again next time ({error})"
            warnings.warn(f"{problem}: name a folder in CVXPRIVACY_CACHE", stacklevel=4)
            cache = Path(spare)
        kept = cache / home.url.rpartition("/")[2]
        web = pooch.HTTPDownloader(timeout=TIMEOUT)
        try:
            pooch.retrieve(home.url, home.fetched, fname=kept.name, path=cache, downloader=web)
            return kept.read_bytes()
        except OSError as error:  # as are all errors of requests
            problem = f"{name}.csv is not at hand, and {home.url} cannot be fetched ({error})"
            problem += f"; CVXPRIVACY_DATA has no {local}" if local else ""
            problem += f"; {kept} is damaged" if kept.exists() else ""
            remedy = f"go online, or set CVXPRIVACY_DATA to a folder that holds {name}.csv "
            remedy += "(as `python -m pydoc cvxprivacy.tables.datasets` describes it)"
            raise InputError("dataset", problem, remedy, value=home.url) from None
        except ValueError:
            problem = f"{home.url} has another SHA-256 than is pinned"
            remedy = "fetch again; if it stays so, the set was changed at its home: put the table "
            remedy += f"of the old one into the folder that CVXPRIVACY_DATA names, as {name}.csv"
            raise InputError("dataset", problem, remedy, value=home.url) from None
