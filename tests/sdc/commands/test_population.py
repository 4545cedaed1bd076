"""``audit --weights``: what it prints, writes and refuses."""

from __future__ import annotations

import random
import re

from tests.sdc.commands.runner import people, refused, report, say, write


def weighing():
    chance = random.Random(3)
    head, *lines = people().splitlines()
    return "\n".join([f"{head},w", *(f"{line},{chance.randrange(1, 9)}" for line in lines)]) + "\n"


def test_an_audit_with_weights(here):
    write("w.csv", weighing())
    roles = ("audit", "w.csv", "--sensitive", "ill", "--key", "age,sex", "--bins", "age=10")
    text = say(*roles, "--weights", "w").out
    assert re.search(r"weights +[0-9,]+ persons by w; records weigh as", text)
    assert re.search(r"re-identified +[0-9.]+ records expected.*estimate", text)
    document = report(*roles, "--weights", "w")
    assert document["weights"]["column"] == "w"
    assert "estimate" in document["individual_risk"]["model"]
    plain = report(*roles)
    assert document["measures"]["k"] == plain["measures"]["k"]
    assert document["measures"]["I1"]["worst"] != plain["measures"]["I1"]["worst"]
    refused(*roles, "--weights", "weight", pieces=("--weights", "'weight'", "'w'"))
    refused(*roles, "--weights", "note", pieces=("weights", "note"))
    say("audit", "w.csv", "t.csv", *roles[2:], "--weights", "w", code=2)
