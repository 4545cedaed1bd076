"""``cvxprivacy attack``: what the columns that a release copies reveal together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.sdc.commands.runner import refused, report, say

ROLES = ("--sensitive", "ill", "--key", "sex")
WORDS = "town and title determine sex in 600 of 600 records"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table in which the title and the town together are the sex; neither is by itself."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex, town = rng.integers(0, 2, (2, 600))
    pd.DataFrame({
        "ill": np.where(rng.random(600) < 0.3 + 0.4 * sex, "yes", "no"),
        "sex": np.array(["F", "M"])[sex],
        "town": np.array(["Ayr", "Ely"])[town], "title": sex ^ town,
    }).to_csv("t.csv", index=False)  # fmt: skip
    return "t.csv"


def test_a_key_is_guessed_from_copied_columns(table):
    document = report("attack", table, *ROLES)
    assert [d["words"] for d in document["dependencies"]] == [WORDS]
    sex = next(g for g in document["guesses"] if g["target"] == "sex")
    assert sex["of_all"]["lower"] > 0.9 > sex["of_all"]["without"] / sex["of_all"]["records"]
    assert sex["of_changed"] is None  # nothing is released
    assert WORDS in say("attack", table, *ROLES).out
    assert report("attack", table, *ROLES, "--drop", "town")["dependencies"] == []


def test_a_channel_names_the_columns_and_what_it_changes_is_guessed(table):
    asked = (*ROLES, "--budget", 0.2, "--drop", "town", "--seed", 1)
    say("release", table, *asked, "--out", "o.csv", "--channel", "c.json")
    document = report("attack", table, "--channel", "c.json")
    assert (document["key"], document["sensitive"]) == (["sex"], ["ill"])
    assert document["dependencies"] == []  # the town is left out, as it was at first
    every = report("release", table, *asked, "--attack")["joint_disclosure"]
    assert document["guesses"] == every["guesses"]
    assert any(guess["of_changed"] for guess in every["guesses"])
    refused("attack", table, "--channel", "c.json", *ROLES, pieces=["--channel: with --sensitive"])


def test_the_roles_are_asked_for(table):
    refused("attack", table, "--key", "sex", pieces=["--sensitive: none, without --channel"])
    refused("attack", table, *ROLES[:2], pieces=["--key: none, without --channel"])


def test_a_release_does_not_attack_unless_asked(table):
    how = (*ROLES, "--budget", 0.2, "--seed", 1)
    assert report("release", table, *how)["joint_disclosure"] is None
    assert WORDS not in say("release", table, *how, "--out", "o.csv").out
    assert WORDS in say("release", table, *how, "--out", "a.csv", "--attack").out
    assert Path("a.csv").read_bytes() == Path("o.csv").read_bytes()
    refused("release", table, *how, "--attack", "--no-untouched",
            pieces=["--attack: with --no-untouched"])  # fmt: skip
