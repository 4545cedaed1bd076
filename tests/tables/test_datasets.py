"""Public data sets: fetched, checked, kept; and what happens when that fails."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.errors import MissingPackageError
from cvxprivacy.tables import datasets
from tests.public_tables import real_folder

RAW = b"39, State-gov\n50, Private\n\n"
CSV = b"age,workclass\n39,State-gov\n50,Private\n"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def converted(data):
    return b"age,workclass\n" + data.rstrip(b"\n").replace(b", ", b",") + b"\n"


class Site:
    """A home on this machine; ``answer`` is what it sends, ``asked`` counts requests."""

    def __init__(self):
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked += 1
                status, body, promised = site.answer
                self.send_response(status)
                self.send_header("Content-Length", str(promised))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.asked, self.answer = 0, (200, RAW, len(RAW))
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/adult.data"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Let *Adult* be a small table whose home is this machine."""
    for name in ("CVXPRIVACY_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path / "deep" / "cache"))
    site = Site()
    home = datasets.Home(site.url, sha(RAW), sha(CSV), converted)
    monkeypatch.setitem(datasets.HOMES, "adult", home)
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def kept(tmp_path):
    """Where the fetched file is kept."""
    return tmp_path / "deep" / "cache" / "adult.data"


def refusal():
    with pytest.raises(cpv.InputError) as raised:
        cpv.datasets.load_adult()
    return raised.value


def test_fetched_once_and_kept_and_a_spoilt_copy_is_fetched_again(site, kept):
    frame = cpv.datasets.load_adult()
    assert frame.to_dict("list") == {"age": [39, 50], "workclass": ["State-gov", "Private"]}
    assert kept.read_bytes() == RAW
    assert list(kept.parent.iterdir()) == [kept]
    site.answer = (500, b"", 0)
    assert cpv.datasets.load_adult().equals(frame)
    assert site.asked == 1
    kept.write_bytes(RAW[:-5])
    assert f"{kept} is damaged" in str(refusal())
    site.answer = (200, RAW, len(RAW))
    assert cpv.datasets.load_adult().equals(frame)
    assert kept.read_bytes() == RAW


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        ((200, RAW.replace(b"50", b"51"), len(RAW)), ("SHA-256", "pinned", "adult.csv")),
        ((200, RAW[:10], len(RAW)), ("cannot be fetched", "IncompleteRead", "CVXPRIVACY_DATA")),
        ((404, b"gone", 4), ("cannot be fetched", "404", "go online", "CVXPRIVACY_DATA")),
    ],
    ids=["changed", "half", "gone"],
)
def test_what_does_not_arrive_whole_leaves_nothing(site, kept, answer, pieces):
    site.answer = answer
    error = refusal()
    assert (error.argument, error.value) == ("dataset", site.url)
    for piece in pieces:
        assert piece in str(error)
    assert list(kept.parent.iterdir()) == []
    site.answer = (200, RAW, len(RAW))
    assert len(cpv.datasets.load_adult()) == 2  # nothing stands in the way of the next attempt


@pytest.mark.usefixtures("site")
def test_a_conversion_that_went_wrong_is_refused(monkeypatch):
    home = replace(datasets.HOMES["adult"], convert=lambda data: data)
    monkeypatch.setitem(datasets.HOMES, "adult", home)
    assert "made of" in str(refusal())


@pytest.mark.usefixtures("site")
def test_offline(monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/adult.data"
    monkeypatch.setitem(datasets.HOMES, "adult", replace(datasets.HOMES["adult"], url=url))
    assert f"{url} cannot be fetched" in str(refusal())


def test_a_folder_of_ones_own_comes_first(site, tmp_path, monkeypatch):
    ours = tmp_path / "own" / "adult.csv"
    monkeypatch.setenv("CVXPRIVACY_DATA", str(ours.parent))
    ours.parent.mkdir()
    ours.write_bytes(CSV)
    assert len(cpv.datasets.load_adult()) == 2
    for other in (CSV + b"1,x\n", CSV.replace(b"\n", b"\r\n")):
        ours.write_bytes(other)
        error = refusal()
        assert (error.argument, error.value) == ("CVXPRIVACY_DATA", str(ours))
        assert "line ends" in str(error)
    ours.unlink()
    ours.mkdir()  # a folder cannot be read, whoever asks
    assert refusal().value == str(ours)
    ours.rmdir()
    assert site.asked == 0
    site.answer = (404, b"", 0)
    assert f"CVXPRIVACY_DATA has no {ours}" in str(refusal())
    site.answer = (200, RAW, len(RAW))  # a folder without it does not forbid fetching
    assert len(cpv.datasets.load_adult()) == 2
    assert list(ours.parent.iterdir()) == []


def test_where_nothing_can_be_kept(site, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="CVXPRIVACY_CACHE"):
        assert len(cpv.datasets.load_adult()) == 2
    monkeypatch.setenv("CVXPRIVACY_CACHE", "~/cache")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # there is no home folder
    with pytest.warns(UserWarning, match="home directory"):
        assert len(cpv.datasets.load_adult()) == 2
    assert site.asked == 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders of caches")
@pytest.mark.usefixtures("site")
def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("CVXPRIVACY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "system"))
    cpv.datasets.load_adult()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CVXPRIVACY_CACHE", "~/kept")
    cpv.datasets.load_adult()
    places = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("adult.data")}
    assert places == {"system/cvxprivacy/adult.data", "kept/adult.data"}


def test_the_twelve_people():
    people = cpv.datasets.load_bezzi()
    assert people.shape == (12, 3)
    assert people.loc[people["diagnosis"] == "Y", "name"].tolist() == ["Erin"]
    assert people["height"].between(161, 195).all()


# ---- the real ones, or a sample ----------------------------------------------------------


def test_adult_and_its_complete_records(tables):
    adult = cpv.datasets.load_adult()
    assert adult.shape == (32_561 if tables.real else 200, 15)
    missing = adult.isna().sum()
    missing = missing[missing > 0].to_dict()
    assert missing.keys() == {"workclass", "occupation", "native-country"}
    if tables.real:
        assert list(missing.values()) == [1836, 1843, 583]
    complete = cpv.datasets.load_adult(complete=True)
    assert complete.shape == (30_162 if tables.real else 190, 15)
    assert complete.index.tolist() == list(range(len(complete)))
    assert complete.notna().all(axis=None)


@pytest.mark.real
def test_the_three_of_casc():
    real_folder("census", "tarragona", "eia")
    census = cpv.datasets.load_census()
    assert census.shape == (1080, 13)
    assert (census["PTOTVAL"] == census["PEARNVAL"] + census["POTHVAL"]).all()
    assert cpv.datasets.load_tarragona().shape == (834, 13)
    eia = cpv.datasets.load_eia()
    assert eia.shape == (4092, 15)
    assert eia["STATE"].nunique() == 51


def test_the_conversion_of_adult_is_between_the_two_pinned_files(tables):
    """The file of UCI, made again from the table, has the pinned SHA-256, and leads back."""
    home = datasets.HOMES["adult"]
    table = (tables.folder / "adult.csv").read_bytes()
    lines = table.decode().rstrip("\n").split("\n")[1:]
    raw = "\n".join([*(line.replace(",", ", ") for line in lines), "", ""]).encode()
    assert home.convert(raw) == table
    if tables.real:
        assert sha(raw) == home.fetched


def test_an_r_file_becomes_its_table(tmp_path):
    rdata = pytest.importorskip("rdata", reason="the extra `datasets` is not installed")
    frame = pd.DataFrame({"YEAR": [96, 97], "SALES": [1.5, 2.0]})
    frame.insert(1, "NAME", pd.Series(['A, "B" Co', "C"], dtype=object))
    frame.index = pd.RangeIndex(1, 3)
    rdata.write_rda(tmp_path / "x.rda", {"EIA": frame})
    expected = b'YEAR,NAME,SALES\n96,"A, ""B"" Co",1.5\n97,C,2.0\n'
    assert datasets._rda((tmp_path / "x.rda").read_bytes()) == expected


def test_without_the_reader_of_r_files_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(MissingPackageError, match=r"cvxprivacy\[datasets\]"):
        datasets._rda(b"")


@pytest.mark.long
@pytest.mark.parametrize("name", list(datasets.HOMES))
def test_the_homes_still_have_them(name, tmp_path, monkeypatch):
    """On the network only."""
    monkeypatch.delenv("CVXPRIVACY_DATA", raising=False)
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path))
    if datasets.HOMES[name].convert is datasets._rda:
        pytest.importorskip("rdata", reason="the extra `datasets` is not installed")
    try:
        assert len(datasets._frame(name)) > 800
    except cpv.InputError as error:
        if "cannot be fetched" not in str(error):
            raise
        pytest.skip(str(error))
