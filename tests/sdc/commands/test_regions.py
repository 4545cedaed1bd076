"""Regions: problems written down."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.formulations.regions import ASKED, people, rde
from tests.lengths import rest_at_length
from tests.sdc.commands.runner import say

TOML = """
formulation = "RateDistortionEquivocation"
side_information = "{case}"
encoder = "{encoder}"
minimize = {{ rate = 1.0, leakage = 0.5 }}
budget = {{ age = 4.0, "age, sex" = 4.5 }}
max_leakage = {{ ill = 0.5, "ill, income" = 0.9 }}
units = "nats"
most_strategies = {most}

[source]
table = "t.csv"
sensitive = ["ill", "income"]
key = ["age", "sex"]
side = "town"

[distortion]
attributes = {{ age = "absolute_error", sex = "hamming" }}

[[criteria]]
kind = "LeakageCap"
b = 0.95

[solve]
accuracy = "high"

[output]
certificate = "proof.json"
channel = "channel.json"
"""


@pytest.mark.parametrize(
    ("case", "encoder", "most"),
    rest_at_length([("decoder", "wx", 20), ("both", "wx", 20), ("decoder", "x", 300)], 1),
)
def test_a_problem_written_down_is_solved_and_its_proof_verified(
    case, encoder, most, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = people()
    frame.to_csv("t.csv", index=False)
    (tmp_path / "p.toml").write_text(TOML.format(case=case, encoder=encoder, most=most))
    generated = (case, most) == ("decoder", 20)  # its lower end is that of an informed encoder
    text = say("solve", "p.toml", code=5 if generated else 0).out
    assert "RateDistortionEquivocation: " in text
    assert "leakage of ill, income" in text
    source = cpv.DiscreteSource.from_table(frame, **ASKED)
    measure = cpv.per_attribute({"age": "absolute_error", "sex": "hamming"}, source)
    problem = rde(
        source,
        measure,
        {"age": 4.0, ("age", "sex"): 4.5},
        minimize={"rate": 1.0, "leakage": 0.5},
        max_leakage={"ill": 0.5, ("ill", "income"): 0.9},
        side_information=case,
        encoder=encoder,
        most_strategies=most,
        criteria=[cpv.LeakageCap(0.95)],
    )
    solution = problem.solve(accuracy="high")
    referee.check(solution, status=solution.status)
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert float(proof["claim"]["upper"]) == solution.upper
    kept = cpv.Channel.load("channel.json")
    assert kept.encoder == solution.channel.encoder
    assert np.array_equal(kept.matrix, solution.channel.matrix)
    assert (kept.decoder is None) == (case == "both")
    if kept.decoder is not None:
        assert kept.decoder.table == solution.channel.decoder.table
    say("verify", "proof.json", "--table", "t.csv")
    frame.assign(town=np.roll(frame["town"], 1)).to_csv("u.csv", index=False)
    say("verify", "proof.json", "--table", "u.csv", code=1)
