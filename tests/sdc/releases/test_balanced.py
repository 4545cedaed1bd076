"""Balanced draws of whole tables, and on the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.release.test_balanced import named_people
from tests.sdc.commands.runner import refused, rows, say, write


def test_a_drawn_table_is_what_the_channel_makes():
    frame = named_people()
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="key")
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.3)
    how = {"seed": 4, "row_id": "id", "draw": "balanced"}
    channel = problem.solve().channel
    released = channel.apply(frame, **how)
    table = sdc.release_table(problem, frame, **how)
    pd.testing.assert_frame_equal(table.frame, released)
    assert table.counts.sizes.tolist() == [int((released["key"] == y).sum()) for y in source.x]
    assert (abs(table.counts.sizes - channel.released_marginal * 90) < 1 + 1e-9).all()


@pytest.mark.long
def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lines = [f"{rng.choice(['no', 'yes'])},{k}" for k in rng.choice(list("abcd"), 300)]
    write("t.csv", "\n".join(["ill,key", *lines]) + "\n")
    roles = ("release", "t.csv", "--sensitive", "ill", "--key", "key")
    out = say(*roles, "--budget", 0.3, "--out", "o.csv", "--channel", "c.json", "--seed", 3,
              "--draw", "balanced", "--report", "r.html").out  # fmt: skip
    assert "note: drawn together: every count is its expectation rounded up or down" in out
    assert "and what they became" in (tmp_path / "r.html").read_text(encoding="utf-8")
    say("apply", "c.json", "t.csv", "--out", "again.csv", "--seed", 3, "--draw", "balanced")
    assert rows("again.csv") == rows("o.csv")
    channel = cpv.Channel.load("c.json")
    table = pd.read_csv("o.csv")
    counts = np.array([(table["key"] == y).sum() for y in channel.outputs])
    assert (abs(counts - 300 * channel.released_marginal) < 1 + 1e-9).all()
    local = ("--criterion", "LocalPrivacy=1", "--out", "p.csv", "--draw", "balanced")
    refused(*roles, *local, pieces=["--draw: ", "pass --draw independent"])


def test_a_parquet_file_is_drawn_as_its_text(tmp_path, monkeypatch):
    """In memory: with records that lack a value, bins, and groups that are merged."""
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {"ill": rng.choice(["no", "yes"], 200), "age": rng.integers(20, 80, 200).astype(float)}
    )
    table.loc[::17, "age"] = np.nan
    table.to_csv("t.csv", index=False)
    table.to_parquet("t.parquet")
    how = ("--sensitive", "ill", "--key", "age", "--bins", "age=20", "--missing", "drop", "--seed",
           3, "--budget", 0.3, "--draw", "balanced")  # fmt: skip
    merged = ("--ensure", "table", "--criterion", "DeltaDisclosure=0.05")
    for name, further in {"law": (), "table": merged}.items():
        out = say("release", "t.csv", *how, *further, "--out", f"{name}.csv").out
        assert ("rounded up or down, before groups are merged;" in out) == bool(further)
        say("release", "t.parquet", *how, *further, "--out", f"{name}.parquet")
        text, binary = pd.read_csv(f"{name}.csv"), pd.read_parquet(f"{name}.parquet")
        assert text["age"].tolist() == binary["age"].tolist()
