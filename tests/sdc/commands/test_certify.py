"""``certify``: a channel of somebody else, in the problem of a file."""

from __future__ import annotations

import pytest

from tests.sdc.commands.runner import refused, report, say, write

PROBLEM = """formulation = "PrivacyDistortion"
budget = 5
[source]
counts = [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]]
w = ["none", "mild", "severe"]
x = [25, 40, 55, 70]
[distortion]
kind = "absolute_error"
[output]
certificate = "proof.json"
channel = "best.json"
"""
MATRIX = """age,25,40,55,70
25,0.81,0,0.08,0.11
40,0,1,0,0
55,0,0,1,0
70,0.19,0.16,0,0.65
"""


@pytest.fixture
def files(here):
    write("p.toml", PROBLEM)
    return write("k.csv", MATRIX)


def test_a_matrix_that_was_printed(files):
    optimum = report("solve", "p.toml")
    summary = report("certify", "p.toml", files, "--force", code=5)
    assert summary["status"] == "loose"
    assert summary["lower"] <= optimum["upper"] <= summary["upper"] + 1e-12
    assert summary["upper"] - summary["lower"] < 0.01
    assert "the candidate" in say("certify", "p.toml", files, "--force", code=5).out
    say("verify", "proof.json")
    nearer = report("certify", "p.toml", files, "--solve", "--force", code=5)
    assert nearer["lower"] == pytest.approx(optimum["lower"], abs=1e-6)


def test_what_solve_wrote_certifies_itself(files):
    optimum = report("solve", "p.toml")
    write("q.toml", PROBLEM.replace("proof", "other").replace("best", "again"))
    assert report("certify", "q.toml", "best.json")["upper"] == pytest.approx(optimum["upper"])
    turned = MATRIX.splitlines()
    write("t.csv", "\n".join([turned[0], *turned[:0:-1]]) + "\n")  # rows in another order
    first, second = (report("certify", "q.toml", f, "--force", code=5) for f in (files, "t.csv"))
    assert first["upper"] == second["upper"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("age,25,40\n25,1\n", ["lines of different lengths"]),
        ("", ["fewer than two"]),
        (MATRIX.replace("0.81", "much"), ["k.csv", "line 2", "much"]),
        (MATRIX.replace("0.81", "nan"), ["candidate", "nan"]),
        (MATRIX.replace("\n40,", "\n41,"), ["candidate", "'41' is no input"]),
        (MATRIX.replace("0.65", "0.95"), ["candidate", "a sum of 1.3"]),
    ],
)
def test_what_is_no_channel_is_refused(files, text, pieces):
    write("k.csv", text)
    refused("certify", "p.toml", files, pieces=pieces)
    refused("certify", "p.toml", "nothing.csv", pieces=["nothing.csv", "cannot be read"])
    refused("certify", "p.toml", "nothing.json", pieces=["nothing.json", "cannot be read"])
