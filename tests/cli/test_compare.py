"""``cvxprivacy compare``: the comparison as text, table, picture and JSON."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest
from click.testing import CliRunner

import cvxprivacy as cpv
from cvxprivacy.cli import main
from tests.microdata.helpers import WHY, wealth

masking = pytest.importorskip(
    "cvxprivacy.microdata.masking", reason="the extra `masking` is not installed"
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    wealth(200).to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


SMALL = ("--sensitive", "pay", "--key", "a,b", "--cells", "9", "--classes", "3")


def test_the_command(table, tmp_path):
    masked = tmp_path / "masked.csv"
    wealth(200).assign(a=0.0, b=500.0).to_csv(masked, index=False)
    out, picture = tmp_path / "found.csv", tmp_path / "plane.svg"
    done = run(table, *SMALL, "--method", "mdav=3,20", "--method", "scaled-noise=0.5",
               "--masked", f"mine={masked}", "--out", out, "--picture", picture)  # fmt: skip
    assert done.exit_code == 0, done.output
    for piece in ("mdav", "scaled-noise", "mine", "optimal channel", "certified", str(out)):
        assert piece in done.output
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [r["method"] for r in rows[:4]] == ["mdav", "mdav", "scaled-noise", "mine"]
    assert [r["setting"] for r in rows[:3]] == ["3", "20", "0.5"]
    assert float(rows[3]["risk [bits]"]) == pytest.approx(0.0, abs=1e-12)
    frame = pd.read_csv(table)
    expected = cpv.compare(
        frame, {"mdav": masking.MDAV(20)}, sensitive="pay", key=["a", "b"], cells=9, classes=3
    ).points[0]
    assert float(rows[1]["excess"]) == pytest.approx(expected.excess)
    assert "<svg" in picture.read_text(encoding="utf-8")[:2000]


def test_a_method_named_twice_is_one_curve(table):
    done = run(table, *SMALL, "--method", "mdav=3", "--method", "mdav=20", "--json")
    points = json.loads(done.output)["points"]
    assert [p["setting"] for p in points[:2]] == ["3", "20"]


def test_the_command_as_json(table):
    done = run(table, *SMALL, "--method", "rank-swapping=5", "--units", "nats", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert document["units"] == "nats"
    assert document["records"] == 200
    assert document["points"][0]["setting"] == "5"
    assert all(f["lower"] <= f["upper"] for f in document["frontier"])
    assert all(f["status"] == "certified" for f in document["frontier"])
    assert document["qglb"]


def test_a_parquet_table(table, tmp_path):
    pytest.importorskip("duckdb", reason=WHY)
    path = tmp_path / "people.parquet"
    pd.read_csv(table).to_parquet(path)
    one, other = (run(t, *SMALL, "--method", "mdav=20", "--json") for t in (table, path))
    assert other.exit_code == 0, other.output
    assert json.loads(one.output) == json.loads(other.output)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--method", "mdav"), "--method: 'mdav'; write it like mdav=3,10,30"),
        (("--method", "median=3"), "--method: 'median' is unknown; use one of mdav,"),
        (("--method", "mdav=three"), "--method: 'three' of mdav is no number"),
        (("--method", "mdav=999"), "--method[mdav]: k: groups of 999 from 200 samples"),
        (("--method", "mdav=2.5"), "--method[mdav]: k: 2.5"),
        (("--masked", "mine=nowhere.csv"), "nowhere.csv"),
        (("--picture", "plane.doc"), "--picture: plane.doc is no kind of picture"),
        (("--out", "no/such/folder.csv"), "there is no folder"),
        (("--cells", "1"), "--cells: 1"),
        (("--seed", "-1"), "--seed: -1"),
        (("--sensitive", "b"), "--key: column 'b' is confidential, too"),
        (("--key", "name"), "TABLE[0, name]: 'x' is no number"),
        (("--key", "zz"), "no column 'zz'; there are pay, a, b, name"),
    ],
)
def test_the_command_refuses(table, options, said):
    done = run(table, *SMALL, *options)
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_the_command_does_not_write_over_its_input(table):
    before = table.read_bytes()
    done = run(table, *SMALL, "--method", "mdav=3", "--out", table)
    assert done.exit_code == 2
    assert table.read_bytes() == before
