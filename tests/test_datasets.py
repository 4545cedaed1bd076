"""Public data sets: fetched, checked, kept; and what happens when that fails."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.tables import datasets

RAW = b"39, State-gov\n50, Private\n\n"
CSV = b"age,workclass\n39,State-gov\n50,Private\n"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def converted(data):
    rows = data.decode().rstrip("\n").split("\n")
    return "\n".join(["age,workclass", *(r.replace(", ", ",") for r in rows), ""]).encode()


class Site:
    """A home on this machine; ``answers`` says what it sends, ``asked`` counts requests."""

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

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Let *Adult* be a small table whose home is this machine."""
    for name in ("CVXPRIVACY_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path / "deep" / "cache"))
    site = Site()
    home = datasets.Home("adult.csv", site.url, sha(RAW), sha(CSV), converted)
    monkeypatch.setitem(datasets.HOMES, "adult", home)
    yield site
    site.stop()


def kept(tmp_path):
    return sorted(p for p in tmp_path.rglob("*") if p.is_file())


def test_fetched_once_and_kept(site, tmp_path):
    frame = cpv.datasets.load_adult()
    assert frame.to_dict("list") == {"age": [39, 50], "workclass": ["State-gov", "Private"]}
    assert kept(tmp_path) == [tmp_path / "deep" / "cache" / "adult.csv"]
    assert kept(tmp_path)[0].read_bytes() == CSV
    site.answer = (500, b"", 0)
    assert cpv.datasets.load_adult().equals(frame)
    assert site.asked == 1


def test_a_spoilt_copy_is_fetched_again(site, tmp_path):
    cpv.datasets.load_adult()
    kept(tmp_path)[0].write_bytes(CSV[:-5])
    assert len(cpv.datasets.load_adult()) == 2
    assert site.asked == 2
    assert kept(tmp_path)[0].read_bytes() == CSV


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        ((200, RAW.replace(b"50", b"51"), len(RAW)), ("SHA-256", "pinned", "adult.csv")),
        ((200, RAW[:10], len(RAW)), ("cannot be fetched", "IncompleteRead", "CVXPRIVACY_DATA")),
        ((404, b"gone", 4), ("cannot be fetched", "404", "CVXPRIVACY_DATA")),
        ((200, b"", 0), ("SHA-256",)),
    ],
    ids=["changed", "half", "gone", "empty"],
)
def test_what_does_not_arrive_whole_leaves_nothing(site, tmp_path, answer, pieces):
    site.answer = answer
    with pytest.raises(cpv.InputError) as raised:
        cpv.datasets.load_adult()
    for piece in (*pieces, site.url):
        assert piece in str(raised.value)
    assert kept(tmp_path) == []
    site.answer = (200, RAW, len(RAW))
    assert len(cpv.datasets.load_adult()) == 2  # nothing stands in the way of the next attempt


def test_a_conversion_that_went_wrong_is_not_kept(site, tmp_path, monkeypatch):
    home = replace(datasets.HOMES["adult"], convert=lambda data: data)
    monkeypatch.setitem(datasets.HOMES, "adult", home)
    with pytest.raises(cpv.InputError, match="made of"):
        cpv.datasets.load_adult()
    assert kept(tmp_path) == []


def test_offline(site, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/adult.data"
    monkeypatch.setitem(datasets.HOMES, "adult", replace(datasets.HOMES["adult"], url=url))
    with pytest.raises(cpv.InputError) as raised:
        cpv.datasets.load_adult()
    for piece in ("adult.csv", url, "cannot be fetched", "go online", "CVXPRIVACY_DATA"):
        assert piece in str(raised.value)


def test_a_folder_of_ones_own_comes_first(site, tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("CVXPRIVACY_DATA", str(own))
    (own / "adult.csv").write_bytes(CSV)
    assert len(cpv.datasets.load_adult()) == 2
    assert site.asked == 0
    (own / "adult.csv").write_bytes(CSV + b"1,x\n")
    with pytest.raises(cpv.InputError, match="not the adult.csv that is pinned"):
        cpv.datasets.load_adult()
    (own / "adult.csv").unlink()  # a folder without it does not forbid fetching
    assert len(cpv.datasets.load_adult()) == 2
    assert site.asked == 1
    assert list(own.iterdir()) == []


def test_a_cache_that_cannot_be_written(site, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="CVXPRIVACY_CACHE"):
        assert len(cpv.datasets.load_adult()) == 2
    assert site.asked == 1


def test_without_a_home_folder(site, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CVXPRIVACY_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.warns(UserWarning, match="home directory"):
        assert len(cpv.datasets.load_adult()) == 2


def test_what_was_wrong_nearer_by_is_said(site, tmp_path, monkeypatch):
    site.answer = (404, b"", 0)
    kept = tmp_path / "deep" / "cache" / "adult.csv"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(CSV[:-5])
    monkeypatch.setenv("CVXPRIVACY_DATA", str(tmp_path / "none"))
    with pytest.raises(cpv.InputError) as raised:
        cpv.datasets.load_adult()
    assert f"{kept} is damaged" in str(raised.value)
    assert f"CVXPRIVACY_DATA has no {tmp_path / 'none' / 'adult.csv'}" in str(raised.value)


def test_files_that_are_not_as_pinned_or_cannot_be_read(site, tmp_path, monkeypatch):
    monkeypatch.setenv("CVXPRIVACY_DATA", str(tmp_path))
    (tmp_path / "adult.csv").write_bytes(CSV.replace(b"\n", b"\r\n"))
    with pytest.raises(cpv.InputError, match="line ends"):
        cpv.datasets.load_adult()
    (tmp_path / "adult.csv").unlink()
    (tmp_path / "adult.csv").mkdir()  # a folder cannot be read, whoever asks
    with pytest.raises(cpv.InputError, match="^CVXPRIVACY_DATA: "):
        cpv.datasets.load_adult()


def test_what_is_parsed_is_what_was_hashed(site, monkeypatch):
    cpv.datasets.load_adult()
    digest = datasets._digest

    def swapped(data):
        for path in Path(os.environ["CVXPRIVACY_CACHE"]).iterdir():
            path.write_bytes(b"age\n0\n")  # another process writes between hash and parse
        return digest(data)

    monkeypatch.setattr(datasets, "_digest", swapped)
    assert len(cpv.datasets.load_adult()) == 2


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("CVXPRIVACY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets._cache() == tmp_path / "cvxprivacy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert datasets._cache() == tmp_path / ".cache" / "cvxprivacy"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("CVXPRIVACY_CACHE", "~/kept")
    assert datasets._cache() == tmp_path / "kept"


def test_the_twelve_people_need_no_network(monkeypatch):
    monkeypatch.setattr(datasets.urllib.request, "urlopen", None)
    people = cpv.datasets.load_bezzi()
    assert people.shape == (12, 3)
    assert people.loc[people["diagnosis"] == "Y", "name"].tolist() == ["Erin"]
    assert people["height"].between(161, 195).all()


# ---- the real ones -----------------------------------------------------------------------


@pytest.fixture
def folder():
    found = os.environ.get("CVXPRIVACY_DATA")
    if not found or any(not (Path(found) / h.file).is_file() for h in datasets.HOMES.values()):
        pytest.skip("CVXPRIVACY_DATA does not name a folder with the four data sets")
    return Path(found)


@pytest.mark.usefixtures("folder")
def test_the_four_sets():
    adult = cpv.datasets.load_adult()
    assert adult.shape == (32_561, 15)
    missing = adult.isna().sum()
    assert missing[missing > 0].to_dict() == {
        "workclass": 1836, "occupation": 1843, "native-country": 583,
    }  # fmt: skip
    complete = cpv.datasets.load_adult(complete=True)
    assert complete.shape == (30_162, 15)
    assert complete.index.tolist() == list(range(30_162))
    census = cpv.datasets.load_census()
    assert census.shape == (1080, 13)
    assert (census["PTOTVAL"] == census["PEARNVAL"] + census["POTHVAL"]).all()
    assert cpv.datasets.load_tarragona().shape == (834, 13)
    eia = cpv.datasets.load_eia()
    assert eia.shape == (4092, 15)
    assert eia["STATE"].nunique() == 51


def test_the_conversion_of_adult_is_between_the_two_pinned_files(folder):
    """The file of UCI, made again from the table, has the pinned SHA-256, and leads back."""
    home = datasets.HOMES["adult"]
    table = (folder / "adult.csv").read_bytes()
    rows = table.decode().rstrip("\n").split("\n")[1:]
    raw = "\n".join([*(row.replace(",", ", ") for row in rows), "", ""]).encode()
    assert sha(raw) == home.fetched
    assert home.convert(raw) == table
    assert sha(table) == home.table


def test_an_r_file_becomes_its_table(tmp_path):
    rdata = pytest.importorskip("rdata", reason="the extra `datasets` is not installed")
    frame = pd.DataFrame({"YEAR": [96, 97], "SALES": [1.5, 2.0]})
    frame.insert(1, "NAME", pd.Series(['A, "B" Co', "C"], dtype=object))
    frame.index = pd.RangeIndex(1, 3)
    rdata.write_rda(tmp_path / "x.rda", {"EIA": frame})
    expected = b'YEAR,NAME,SALES\n96,"A, ""B"" Co",1.5\n97,C,2.0\n'
    assert datasets._rda((tmp_path / "x.rda").read_bytes()) == expected


def test_without_the_reader_of_r_files_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rdata", None)
    with pytest.raises(cpv.InputError, match=r"cvxprivacy\[datasets\]"):
        datasets._rda(b"")


@pytest.mark.long
@pytest.mark.parametrize("name", list(datasets.HOMES))
def test_the_homes_still_have_them(name, tmp_path, monkeypatch):
    """On the network only."""
    home = datasets.HOMES[name]
    monkeypatch.delenv("CVXPRIVACY_DATA", raising=False)
    monkeypatch.setenv("CVXPRIVACY_CACHE", str(tmp_path))
    if home.convert is datasets._rda:
        pytest.importorskip("rdata", reason="the extra `datasets` is not installed")
    try:
        found = datasets._table(name)
    except cpv.InputError as error:
        if "cannot be fetched" in str(error):
            pytest.skip(str(error))
        raise
    assert sha(found) == home.table
