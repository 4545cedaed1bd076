"""``verify``: a proof, its table and its question."""

from __future__ import annotations

import copy
import json
import re
import stat
from pathlib import Path

import numpy as np
import pandas
import pytest

import cvxprivacy as cpv
from cvxprivacy.results.recount import agreement
from cvxprivacy.solvers.driver import solve
from cvxprivacy_sdc.statements.problemfile import read
from cvxprivacy_verifier.statement import stated
from cvxprivacy_verifier.verify import digest, recompute
from tests.lengths import some_at_length
from tests.primals import listed
from tests.sdc.commands.runner import (
    OUTPUTS,
    SEX,
    command,
    loaded,
    people,
    refused,
    report,
    say,
    write,
)  # fmt: skip

QUESTIONS = [  # what is changed in the problem, and what is different then
    ("budget = 0.1", "budget = 0.2", 'row "budget": bound 0.1, where the problem has 0.2'),
    ('kind = "hamming"', 'attributes = { age = "ordinal", sex = "hamming" }', 'row "budget": cost'),
    ("age = 10.0", "age = 20.0", "letters 8, where the problem has 4"),
    ('"x"', '"wx"', "letters 8, where the problem has 16"),
    ('"bits"', '"nats"', "units bits, where the problem has nats"),
    ('["ill"]', '["note"]', "atoms of a letter 2, where the problem has 300"),
    ("budget = 0.1\n", "price = 1\n", 'row "budget" is not in the problem'),
    (
        "[distortion]",
        '[[criteria]]\nkind = "TCloseness"\nt = 0.5\n[distortion]',
        'row "t_closeness" is miss',
    ),
]


@pytest.mark.parametrize(("old", "new", "different"), some_at_length(QUESTIONS, 4))
def test_a_proof_of_another_question(old, new, different, kept, here):
    text = (kept / "r.toml").read_text("utf-8")
    assert text.count(old) == 1
    write("other.toml", text.replace(old, new))
    message = say("verify", kept / "p.json", "--problem", "other.toml", code=1).out
    assert message.startswith(f"{kept / 'p.json'}: NOT a proof of other.toml\n  other.toml: ")
    assert f"other.toml: {different}" in message
    assert "  what it proves:\n    proved: " in message
    say("verify", kept / "p.json", "--problem", kept / "r.toml")


def forged(document):
    """Return resealed documents that prove what they claim, of other questions."""
    rows, objective = document["program"]["rows"], document["program"]["objective"]
    released = listed([[1]] * len(document["primal"]["numerators"]), 1)
    nothing = {**objective, "weights": {}}
    yield "objective", {"objective": nothing}, None, ['information about "W" has weight 0']
    yield "budget", {"rows": {}}, released, ['row "budget" is missing']
    moved = {"budget": {**rows["budget"], "bound": "9"}}
    yield "bound", {"rows": moved}, released, ['row "budget": bound 9, where the problem has 0.1']


def test_a_resealed_proof_of_another_question_is_told(kept, here):
    for name, changes, primal, pieces in forged(loaded(kept / "p.json")):
        document = loaded(kept / "p.json")
        document["program"] |= changes
        prices, rows = document["dual"]["multipliers"], document["program"]["rows"]
        document["dual"]["multipliers"] = {name: prices[name] for name in rows}
        document["primal"] = primal or document["primal"]
        proved = recompute(document)
        document["claim"] = {k: proved[k] for k in ("status", "lower", "upper", "terms")}
        document["sha256"] = digest(document)
        assert proved["upper"] < 1e-9, name
        write("p.json", json.dumps(document))
        assert say("verify", "p.json").out.startswith("p.json: verified, ")
        asked = ("verify", "p.json", "--table", kept / "t.csv", "--problem", kept / "r.toml")
        text = say(*asked, code=1).out
        assert text.startswith(f"p.json: NOT a proof of {kept / 'r.toml'}\n")
        assert [piece for piece in pieces if piece not in text] == []
        one = report(*asked, code=1)["p.json"]
        assert not one["verified"]
        assert one["claim"] == {}
        assert one["statement"] == stated(document)
        assert [piece for piece in pieces if piece not in " ".join(one["problems"])] == []


def test_a_record_of_other_columns_is_told(kept, here):
    """The record of the table is no part of what is proved, but says what the letters mean."""
    document = loaded(kept / "p.json")
    document["table"]["sensitive"] = ["note"]
    document["table"]["letters"][0] = ["yes", "no"]
    document["sha256"] = digest(document)
    write("p.json", json.dumps(document))
    assert 'sensitive "note"' in say("verify", "p.json").out
    text = say("verify", "p.json", "--problem", kept / "r.toml", code=1).out
    assert 'record of the table: its "sensitive" is not the problem\'s' in text
    assert 'record of the table: its "letters" is not the problem\'s' in text
    say("verify", kept / "p.json", "--problem", kept / "r.toml")


def test_the_statement_is_in_the_json(kept, here):
    one = report("verify", kept / "p.json")[str(kept / "p.json")]
    assert one["statement"] == stated(loaded(kept / "p.json"))
    assert 'minimised: 1 × information about "W" (2 values), in bits' in one["statement"]
    text = say("verify", kept / "p.json").out.splitlines()
    assert text[1:-1] == [f"  {line}" for line in one["statement"]]
    assert text[-1].startswith("o.csv.house.json: the files of its set")


@pytest.mark.long
def test_a_problem_of_generated_letters(here):
    law = np.random.default_rng(0).integers(1, 9, (2, 3, 4)).tolist()
    text = f"""formulation = "RateDistortionEquivocation"
budget = 0.3
side_information = "decoder"
most_strategies = 8
[source]
counts = {law}
[distortion]
kind = "hamming"
"""
    write("p.toml", text + '[output]\ncertificate = "s.json"\n')
    say("solve", "p.toml", code=5)
    assert stat.S_IMODE(Path("s.lower.json").stat().st_mode) == 0o600
    message = say("verify", "s.json", "--problem", "p.toml").out
    assert "problem, over the strategies that were generated" in message
    message = say("verify", "s.lower.json", "--problem", "p.toml").out
    assert "the lower end is one of this problem: with Z at the encoder too" in message
    below = report("verify", "s.lower.json", "--problem", "p.toml")["s.lower.json"]
    assert (below["claim"]["status"], below["claim"]["upper"]) == ("uncertified", "inf")
    write("q.toml", text.replace("0.3", "0.2"))
    for name in ("s.json", "s.lower.json"):
        message = say("verify", name, "--problem", "q.toml", code=1).out
        assert 'row "budget": bound 0.3, where the problem has 0.2' in message
    honest = json.loads(Path("s.json").read_text(encoding="utf-8"))
    for forged, word in forgeries_of_strategies(honest):
        write("f.json", json.dumps(forged))
        say("verify", "f.json")  # true of the program that is in it
        assert word in say("verify", "f.json", "--problem", "p.toml", code=1).out


def of_the_list_alone(strategies):
    """Return a true proof that no release of a few strategies has less, or that none is feasible.

    It was verified as one of the problem, whose optimum is less.
    """
    problem = read("p.toml", table=None).problem
    document = solve(problem.over(strategies).program).certificate.document()
    document = {**document, "strategies": strategies}
    return {**json.loads(json.dumps(document)), "sha256": digest(document)}


def forgeries_of_strategies(honest):
    """Yield proofs of other programs, sealed anew, and a word of why each is no proof of p.toml."""

    def ended(end):
        return end if np.isfinite(end) else str(end)

    def sealed(change):
        other = copy.deepcopy(honest)
        change(other)
        try:
            claims = recompute(other)
        except ValueError:  # its release breaks the budget now: one that does not would be found
            for part in ("primal", "dual"):
                other[part] = None
            claims = recompute(other)
        other["claim"] = {
            "status": claims["status"], "lower": ended(claims["lower"]),
            "upper": ended(claims["upper"]), "terms": claims["terms"],
        }  # fmt: skip
        other["sha256"] = digest(other)
        return other

    def cost(document):
        return document["program"]["rows"]["budget"]["term"]["cost"]

    def cheaper(other):  # every move is for nothing: a rate of 0 would do
        cost(other)[:] = np.zeros_like(np.array(cost(other), float)).tolist()

    def nudged(other):
        place = cost(other)[0][0]
        place[:] = [np.nextafter(float(x), -1) if float(x) else x for x in place]

    def permuted(other):
        for atom in cost(other):
            for row in atom:
                row.reverse()

    def without(other):
        other.pop("strategies")

    def swapped(other):
        other["strategies"] = other["strategies"][::-1]

    def outside(other):
        other["strategies"][0][0] = 3

    def doubled(other):
        other["strategies"][1] = other["strategies"][0]

    def one_less(other):
        row = next(row for row in cost(other)[0] if any(float(x) for x in row))
        place = next(i for i, x in enumerate(row) if float(x))
        row[place] = 0

    def forbidding(other):  # a strategy is banned: another program
        entries = np.ones((len(other["program"]["law"][0]), other["program"]["outputs"]))
        entries[0, 0] = 0
        other["program"]["upper"] = entries.tolist()

    yield sealed(cheaper), "cost"
    yield sealed(nudged), "cost"
    yield sealed(permuted), "cost"
    yield sealed(without), "letters"
    yield sealed(swapped), "cost"
    yield sealed(outside), "strategies"
    yield sealed(doubled), "twice"
    yield sealed(one_less), "cost"
    yield sealed(forbidding), "upper bound"
    yield of_the_list_alone(honest["strategies"]), "of the strategies that are listed"
    yield of_the_list_alone([[0, 0, 0, 0]]), "of the strategies that are listed"


COPIES = {
    "t.tsv": lambda text: text.replace(",", "\t"),
    "t.tab": lambda text: text.replace(",", "\t").replace("\n", "\r\n"),
    "semicolons.csv": lambda text: text.replace(",", ";"),
    "bars.txt": lambda text: text.replace(",", "|"),
    "quoted.csv": lambda text: re.sub(r"\b(no|yes|M|F)\b", r'"\1"', text),
    "mark.csv": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "wide.csv": lambda text: text.encode("utf-16"),
    "wide.tsv": lambda text: text.replace(",", "\t").encode("utf-16"),
}


@pytest.mark.parametrize("name", some_at_length(COPIES, 2))
def test_a_copy_with_the_same_cells_is_the_same_table(name, kept, here):
    verify = ["verify", kept / "p.json", "--table", write(name, COPIES[name](people()))]
    say(*verify, "--problem", kept / "r.toml")
    assert "300 records, counted again: the proof's counts" in say(*verify).out
    changed = people().replace(",yes,", ",no,", 1)
    write(name, COPIES[name](changed))
    information = say(*verify, code=1).out
    assert f"{name}: 2 cells differ: " in information
    if name == "bars.txt":  # what is named is not guessed
        write(name, COPIES[name](people()))
        say(*verify, "--delimiter", "|")
        assert "no column" in say(*verify, "--delimiter", ";", code=1).out


def test_a_proof_of_a_tsv_in_another_encoding_is_tied_to_its_copies(here):
    text = people().replace("no", "né")
    write("t.tsv", text.replace(",", "\t").encode("latin-1"))
    how = ("--encoding", "latin-1", *SEX, "--certificate", "p.json")
    say("release", "t.tsv", *how)
    write("copy.csv", text)
    write("semi.csv", text.replace(",", ";").encode("latin-1"))
    for name in ("t.tsv", "copy.csv", "semi.csv"):
        assert "300 records, counted again" in say("verify", "p.json", "--table", name).out
    assert "NOT verified" in say(
        "verify", "p.json", "--table", "copy.csv", "--encoding", "latin-1", code=1
    ).out  # fmt: skip
    refused("verify", "p.json", "--table", "none.csv", pieces=["none.csv"])
    bare = write("bare.csv", "age,id\n1,2\n")
    assert "no column 'ill'" in say("verify", "p.json", "--table", bare, code=1).out


@pytest.mark.parametrize(
    "reading", [{"delimiter": [","]}, {"delimiter": 5}, {"numbers": 3}, {"na": 1}, {"more": 1}]
)
def test_a_reading_that_no_table_had_is_not_followed(reading, kept, here):
    document = loaded(kept / "p.json")
    document["table"]["reading"].update(reading)
    del document["sha256"]
    document["sha256"] = digest(document)
    write("p.json", json.dumps(document))
    assert "counted again" in say("verify", "p.json", "--table", kept / "t.csv").out


def test_weights_are_compared_up_to_the_order_of_a_sum(here):
    pytest.importorskip("duckdb", reason="the extra `tables` is not installed")
    frame = pandas.read_csv("t.csv").assign(weight=np.random.default_rng(0).random(300))
    frame.to_csv("w.csv", index=False)
    say("release", "w.csv", *SEX, "--weights", "weight", *OUTPUTS[2:])
    frame.to_parquet("w.parquet", index=False)  # DuckDB adds them in another order
    say("verify", "p.json", "--table", "w.parquet", "--problem", "r.toml")
    frame.assign(weight=frame["weight"] * (1 + 1e-7 * (frame["id"] == 3))).to_csv(
        "other.csv", index=False
    )
    other = ("verify", "p.json", "--problem", "r.toml", "--table", "other.csv")
    assert "cells differ" in say(*other, code=1).out
    text = say("verify", "p.json", "--table", "w.csv").out
    information = (
        "300 records, counted again: the proof's counts, weights agree to 1e-12 of their sum"
    )
    assert information in text
    document = loaded("p.json")
    assert agreement(document) == information
    with pytest.raises(cpv.InputError, match="not counted from a table"):
        agreement({**document, "table": None})


def test_a_proof_that_was_tampered_with(kept, here):
    text, document = (kept / "p.json").read_text("utf-8"), loaded(kept / "p.json")
    document["claim"]["upper"] /= 2
    write("claim.json", json.dumps(document))
    write("law.json", text.replace('"records": 300', '"records": 9'))
    for name, pieces in (("claim.json", ["sha256", "is proved"]), ("law.json", ["sha256"])):
        done = command("verify", name, cwd=here)
        assert done.returncode == 1
        assert all(piece in done.stdout for piece in ["NOT verified", *pieces])
    message = report("verify", kept / "p.json", "law.json", code=1)
    assert [one["verified"] for one in message.values()] == [True, False]
    refused("verify", "none.json", pieces=["none.json"])
    for nothing in ("", "{", "[]", "a,b\n1,2\n", "[" * 9999, b"\xff\0\x01"):
        refused("verify", write("p.json", nothing), pieces=["p.json"])


@pytest.mark.parametrize(("column", "new"), [(1, "5"), (1, "99"), (1, "old"), (2, "Q"), (2, "")])
def test_a_changed_record_fails_whatever_it_holds(column, new, kept, here):
    lines = [line.split(",") for line in people().split("\n")]
    lines[4][column] = new
    write("changed.csv", "\n".join(map(",".join, lines)))
    printed = say("verify", kept / "p.json", "--table", "changed.csv", code=1)
    assert "NOT verified\n  changed.csv: " in printed.out
