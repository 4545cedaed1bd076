"""Parquet tables are released as text is."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from tests.lengths import rest_at_length
from tests.sdc.commands.runner import (
    BOTH,
    SEX,
    Terminal,
    loaded,
    refused,
    report,
    rows,
    say,
    write,
)  # fmt: skip


@pytest.mark.parametrize("ending", rest_at_length(["csv", "parquet"], 1))
def test_progress_is_shown_on_a_terminal_and_not_beside_json(ending, parquet):
    how = ("release", f"t.{ending}", *SEX, "--out", f"o.{ending}", "--force")
    shown = say(*how, stream=Terminal).err
    for piece in (f"reading t.{ending}", f"writing o.{ending}", "other columns", "100%"):
        assert piece in shown
    assert say(*how, "--json", stream=Terminal).err == say(*how).err == ""


def test_what_is_no_parquet_table(here):
    for path in ("none.parquet", write("bad.parquet", "sex,ill\n")):
        refused("release", path, *SEX, pieces=["TABLE: ", path, "that can be read"])


def test_parquet_is_released_as_text_is(parquet, here):
    results = {}
    for kind in ("csv", "parquet"):
        args = ("--seed", 1, "--out", f"o.{kind}", "--certificate", f"{kind}.p", "--channel",
                f"{kind}.c", "--json")  # fmt: skip
        done = say("release", f"t.{kind}", *BOTH, *args)
        assert done.err == ""
        results[kind] = json.loads(done.out)
    for name in ("records", "lower", "upper", "risk_before", "risk_before_bias"):
        assert results["csv"][name] == results["parquet"][name]
    assert loaded("csv.c")["matrix"] == loaded("parquet.c")["matrix"]
    new = parquet.read("o.parquet")
    assert new["id"] == list(range(300))  # whole numbers, in their order
    as_text = [tuple(map(str, record)) for record in zip(*new.values(), strict=True)]
    assert as_text == [tuple(row.values()) for row in rows("o.csv")]
    for proof, table in product(results, results):
        say("verify", f"{proof}.p", "--table", f"t.{table}")
        say("apply", f"{proof}.c", f"t.{table}", "--seed", 4, "--out", f"{proof}.{table}")
    assert parquet.read("csv.parquet") == parquet.read("parquet.parquet")
    assert Path("csv.csv").read_bytes() == Path("parquet.csv").read_bytes()
    for sex, information in (("MF"[parquet.columns["sex"][9] == "M"], "differ"), ("Q", "'Q'")):
        parquet.columns["sex"][9] = sex
        parquet.make("changed.parquet", parquet.columns)
        assert information in say("verify", "parquet.p", "--table", "changed.parquet", code=1).out
    refused("apply", "parquet.c", "changed.parquet", "--out", "n.parquet",
            pieces=["changed.parquet", "'Q'", "record 10"])  # fmt: skip
    refused("release", "t.parquet", *BOTH, "--out", "n.csv", pieces=["n.csv"])


@pytest.mark.parametrize("name", ["t[1].parquet", "t*.parquet", "t?.parquet"])
def test_a_parquet_name_is_no_pattern(name, parquet):
    parquet.make("t1.parquet", {"sex": ["M", "F"] * 9, "ill": ["n"] * 18})
    parquet.make(name, parquet.columns)
    say("release", name, *SEX, "--out", "o.parquet")
    assert parquet.read("o.parquet")["id"] == list(range(300))


@pytest.mark.parametrize("missing", ["refuse", "level", "drop"])
def test_nan_in_parquet_is_missing(missing, parquet):
    ages = [float("nan") if i % 7 == 0 else 20.0 + i % 3 for i in range(210)]
    parquet.make("n.parquet", {"age": ages, "ill": ["n", "y"] * 105})
    args = ("release", "n.parquet", "--sensitive", "ill", "--key", "age", "--budget", "0.1",
            "--missing", missing, "--out", "o.parquet", "--channel", "c.json")  # fmt: skip
    if missing == "refuse":
        refused(*args, pieces=["missing", "'age'"])
        return
    assert report(*args)["released"]["records"] == (180 if missing == "drop" else 210)


@pytest.mark.parametrize("letters", [[["M"], ["F"]], [{"a": 1}, {"a": 2}]])
def test_parquet_of_lists(letters, parquet):
    parquet.make("b.parquet", {"sex": letters * 60, "ill": ["n", "y", "y"] * 40})
    refused("release", "b.parquet", *SEX, "--out", "o.parquet", "--certificate", "p.json")
