"""``cvxprivacy compare``: the comparison as text, table, picture and JSON."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.sdc.audits import WHY, wealth
from tests.sdc.commands.runner import refused, report, rows, say

masking = pytest.importorskip(
    "cvxprivacy_sdc.masking", reason="the extra `masking` is not installed"
)

SMALL = ("--sensitive", "pay", "--key", "a,b")


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wealth(200).to_csv("people.csv", index=False)


def test_the_command():
    wealth(200).assign(a=0.0, b=500.0).to_csv("masked.csv", index=False)
    text = say("compare", "people.csv", *SMALL, "--method", "mdav=3,20", "--method",
               "scaled-noise=0.5", "--masked", "mine=masked.csv", "--out", "found.csv", "--picture",
               "plane.svg").out  # fmt: skip
    for piece in ("mdav", "scaled-noise", "mine", "optimal channel", "certified", "found.csv"):
        assert piece in text
    outcome = rows("found.csv")
    assert [r["method"] for r in outcome[:4]] == ["mdav", "mdav", "scaled-noise", "mine"]
    assert [r["setting"] for r in outcome[:3]] == ["3", "20", "0.5"]
    assert float(outcome[3]["risk [bits]"]) == pytest.approx(0.0, abs=1e-12)
    expected = sdc.compare(
        pd.read_csv("people.csv"), {"mdav": masking.MDAV(20)}, sensitive="pay", key=["a", "b"]
    ).points[0]  # fmt: skip
    assert float(outcome[1]["excess"]) == pytest.approx(expected.excess)
    assert "<svg" in Path("plane.svg").read_text(encoding="utf-8")[:2000]


@pytest.mark.long
def test_the_command_as_json():
    """A method named twice is one curve."""
    how = ("--method", "rank-swapping=5", "--method", "rank-swapping=9", "--units", "nats")
    document = report("compare", "people.csv", *SMALL, *how)
    assert document["units"] == "nats"
    assert document["records"] == 200
    assert [p["setting"] for p in document["points"][:2]] == ["5", "9"]
    assert all(f["lower"] <= f["upper"] for f in document["frontier"])
    assert all(f["status"] == "certified" for f in document["frontier"])
    assert document["qglb"]


@pytest.mark.long
def test_the_command_measures_in_other_measures():
    typed = ("--leakage", "guessing-probability", "--leakage", "hockey-stick:1.5")
    document = report("compare", "people.csv", *SMALL, "--method", "mdav=20", *typed)
    expected = sdc.compare(
        pd.read_csv("people.csv"), {"mdav": masking.MDAV(20)}, sensitive="pay", key=["a", "b"],
        leakage=[cpv.leakage.GuessingProbability(), cpv.leakage.HockeyStick(1.5)],
    )  # fmt: skip
    for name, value in expected.points[0].measures.items():
        assert document["points"][0][name] == pytest.approx(value)
        assert expected.measures[name].meaning in document["leakage"][name]["meaning"]
    information = say("compare", "people.csv", *SMALL, "--method", "mdav=20", *typed).out
    assert "the probability of guessing W right from x̂; 0.335 if nothing is released" in information


@pytest.mark.long
def test_a_parquet_table():
    duckdb = pytest.importorskip("duckdb", reason=WHY)
    duckdb.sql("COPY (FROM 'people.csv') TO 'people.parquet'")  # pandas 2 rounds as it reads
    one, other = (
        report("compare", f"people.{kind}", *SMALL, "--method", "mdav=20")
        for kind in ("csv", "parquet")
    )
    assert one == other


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--method", "mdav"), "--method: 'mdav'; write it like mdav=3,10,30"),
        (("--method", "median=3"), "--method: 'median' is unknown; use one of mdav,"),
        (("--method", "mdav=three"), "--method: 'three' of mdav is no number"),
        (("--method", "mdav=999"), "--method[mdav]: k: groups of 999 from 200 samples"),
        (("--method", "mdav=2.5"), "--method[mdav]: k: 2.5"),
        (("--masked", "mine=nowhere.csv"), "nowhere.csv"),
        (("--picture", "plane.doc"), "--picture: plane.doc is no kind of picture"),
        (("--out", "no/such/folder.csv"), "there is no folder"),
        (("--out", "people.csv"), "--out: people.csv is the input"),
        (("--cells", "1"), "--cells: 1"),
        (("--leakage", "gossip"), "--leakage: 'gossip' is no measure of leakage"),
        (("--sensitive", "b"), "--key: column 'b' is confidential, too"),
        (("--key", "name"), "TABLE[0, name]: 'x' is no number"),
        (("--key", "zz"), "no column 'zz'; use one of 'pay', 'a', 'b', 'name'"),
    ],
)
def test_the_command_refuses(options, text):
    refused("compare", "people.csv", *SMALL, *options, pieces=[text])
