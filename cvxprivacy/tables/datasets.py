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
(``CVXPRIVACY_CACHE``, else ``cvxprivacy`` in ``XDG_CACHE_HOME`` or ``~/.cache``), then fetched.
What is fetched must have the SHA-256 pinned here, and so must the bytes that are read, from
wherever they come: everybody computes from the same.

``adult.csv`` is ``adult.data`` with the columns' names as first line (``age``, …, ``income``), no
blank after a comma, and without the empty last line; the others are R's frames as CSV, without
row names and without needless quotes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file

if TYPE_CHECKING:
    import pandas as pd

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
    try:
        import rdata
    except ImportError:
        remedy = (
            "install it with: pip install 'cvxprivacy[datasets]', or put the CSV into the folder "
            "that CVXPRIVACY_DATA names"
        )
        raise InputError("dataset", "an R data file needs the package rdata", remedy) from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.rda"
        path.write_bytes(data)
        (frame,) = rdata.read_rda(path).values()
    return frame.to_csv(index=False, lineterminator="\n").encode()


@dataclass(frozen=True)
class Home:
    """Where a data set lives, and what it must be.

    Attributes
    ----------
    file : str
        Its name as a CSV file.
    url : str
    fetched : str
        SHA-256 of what is fetched.
    table : str
        SHA-256 of the CSV file that is made of it.
    convert : callable
        From the one to the other.
    """

    file: str
    url: str
    fetched: str
    table: str
    convert: Callable[[bytes], bytes]


HOMES = {
    "adult": Home(
        "adult.csv",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb",
        _adult,
    ),
    "census": Home(
        "census.csv",
        SDCMICRO + "CASCrefmicrodata.rda",
        "147d0d7fa823a384e36c2297174560e32cdbe6e39803f22f797610fb1a2993d6",
        "40fb91564d4379274610e941161fd38729adb471bddb9c71d7c01ef142fd0f5b",
        _rda,
    ),
    "tarragona": Home(
        "tarragona.csv",
        SDCMICRO + "Tarragona.rda",
        "e83def0648be5e47eaf202b4dd60dd6981591d0858fd249817b9a2cc97cf2aef",
        "d5f719a134a3476b2157d9675d1a2b211dbc06ad6109685ad1e4b7847cfa45a4",
        _rda,
    ),
    "eia": Home(
        "eia.csv",
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

    Raises
    ------
    InputError
        If it is nowhere at hand and cannot be fetched, or is not the file that is pinned.
    """
    frame = _plain("adult", na_values="?")
    return frame.dropna(ignore_index=True) if complete else frame


def load_bezzi() -> pd.DataFrame:
    """Return Table 2 of Bezzi 2010: name, height (cm) and diagnosis of twelve people."""
    import pandas as pd

    people = {
        "Timothy": (166, "N"), "Alice": (163, "N"), "Perry": (161, "N"), "Tom": (167, "N"),
        "Ron": (175, "N"), "Omer": (170, "N"), "Bob": (170, "N"), "Amber": (171, "N"),
        "Sonya": (181, "N"), "Leslie": (183, "N"), "Erin": (195, "Y"), "John": (191, "N"),
    }  # fmt: skip
    height, diagnosis = zip(*people.values(), strict=True)
    return pd.DataFrame({"name": list(people), "height": height, "diagnosis": diagnosis})


def load_census() -> pd.DataFrame:
    """Return CASC *Census*: 1,080 records, 13 amounts; errors as in :func:`load_adult`."""
    return _plain("census")


def load_tarragona() -> pd.DataFrame:
    """Return CASC *Tarragona*: 834 companies, 13 amounts; errors as in :func:`load_adult`."""
    return _plain("tarragona")


def load_eia() -> pd.DataFrame:
    """Return CASC *EIA*: 4,092 records, 15 columns; errors as in :func:`load_adult`."""
    return _plain("eia")


def _plain(name: str, **reading: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(BytesIO(_table(name)), **reading)


def _table(name: str) -> bytes:
    """Return a CSV file of the pinned content, fetched if need be."""
    home, seen = HOMES[name], list[str]()
    folder = os.environ.get("CVXPRIVACY_DATA")
    if folder:
        own = Path(folder) / home.file
        try:
            data = own.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            seen.append(f"CVXPRIVACY_DATA has no {own}")
        except OSError as error:
            problem = f"{own}: {error.strerror or error}"
            remedy = "let it be read, or name another folder"
            raise InputError("CVXPRIVACY_DATA", problem, remedy, value=str(own)) from None
        else:
            if _digest(data) == home.table:
                return data
            problem = f"{own} is not the {home.file} that is pinned (another SHA-256)"
            remedy = (
                "mind its line ends, which must be those of Unix; or remove it to have the set "
                f"fetched, or get it from {home.url}"
            )
            raise InputError("CVXPRIVACY_DATA", problem, remedy, value=str(own))
    try:
        kept = _cache() / home.file
        data = kept.read_bytes()
        if _digest(data) == home.table:
            return data
        seen.append(f"{kept} is damaged")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, RuntimeError) as error:  # the latter where there is no home folder
        kept = None
        seen.append(f"no cache: {error}")
    table = home.convert(_fetched(home, seen))
    if _digest(table) != home.table:
        problem = f"{home.file}, made of {home.url}, has another SHA-256 than is pinned"
        remedy = "put the table into the folder that CVXPRIVACY_DATA names, and report this"
        raise InputError("dataset", problem, remedy, value=home.url)
    try:
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(kept, binary=True) as file:
                file.write(table)
    except OSError as error:
        seen.append(f"{kept}: {error.strerror or error}")
        kept = None
    if kept is None:
        said = f"{home.file} is not kept, and fetched again next time ({seen[-1]})"
        warnings.warn(f"{said}: name a folder in CVXPRIVACY_CACHE", stacklevel=4)
    return table


def _cache() -> Path:
    own = os.environ.get("CVXPRIVACY_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cvxprivacy"


def _fetched(home: Home, seen: Sequence[str]) -> bytes:
    """Return what lies at a home, whole and unchanged; ``seen`` says what was wrong nearer by."""
    try:
        with urllib.request.urlopen(home.url, timeout=TIMEOUT) as answer:
            data: bytes = answer.read()
    except (OSError, HTTPException, ValueError) as error:
        said = f"{error.code} {error.reason}" if isinstance(error, HTTPError) else error
        problem = f"{home.file} is not at hand, and {home.url} cannot be fetched ({said})"
        problem += "".join(f"; {wrong}" for wrong in seen)
        remedy = (
            f"go online, or set CVXPRIVACY_DATA to a folder that holds {home.file} "
            "(as `python -m pydoc cvxprivacy.tables.datasets` describes it)"
        )
        raise InputError("dataset", problem, remedy, value=home.url) from None
    if _digest(data) != home.fetched:
        problem = f"{home.url} has another SHA-256 than is pinned"
        remedy = (
            "fetch again; if it stays so, the set was changed at its home: put the table of the "
            f"old one into the folder that CVXPRIVACY_DATA names, as {home.file}"
        )
        raise InputError("dataset", problem, remedy, value=home.url)
    return data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
