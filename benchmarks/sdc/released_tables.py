"""Release random tables as `release` does by default, and let the verifier count each again.

    python -m benchmarks.sdc.released_tables [HOW_MANY [FIRST]]

Small tables under random criteria: whole counts, blind and by encoder wx, and draws that are
mended. What the report of each says is decided again by `cvxprivacy_sdc.recount`, which
shares nothing with what designs and draws. Printed is what became of them, and each that is denied.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from cvxprivacy_sdc.commands import main
from cvxprivacy_sdc.recount import recounted


@dataclass(frozen=True)
class Case:
    """A release, what became of it, and what of its report is denied."""

    typed: tuple[str, ...]
    kind: str
    problems: tuple[str, ...]


def table(chance: random.Random) -> str:
    """Return delimited text: W depends on age and town, some cells are missing."""
    towns, values = ["Rome", "Oslo", "Nice"][: chance.randint(1, 3)], chance.randint(2, 3)
    missing, skew = chance.choice([0, 0, 0.03]), chance.uniform(0.2, 3)
    lines = ["id,age,town,w,weight"]
    for i in range(chance.randint(20, 160)):
        age, town = chance.randrange(20, 60), chance.choice(towns)
        leaning = [1 + skew * ((age // 10 + towns.index(town) + v) % values) for v in range(values)]
        w = "abc"[chance.choices(range(values), leaning)[0]]
        cells = ["" if chance.random() < missing else cell for cell in (str(age), town, w)]
        lines.append(",".join([str(i), *cells, f"{chance.uniform(1, 3):.2f}"]))
    return "\n".join(lines) + "\n"


def criteria(chance: random.Random) -> list[str]:
    """Return one to three criteria as they are typed."""
    some = [
        f"KAnonymity={chance.randint(2, 20)}",
        f"TCloseness={chance.uniform(0.01, 0.3):.3f}",
        f"TCloseness={chance.uniform(0.03, 0.3):.3f}:{chance.choice(['tv', 'emd'])}",
        f"LDiversity={chance.uniform(1.1, 1.9):.2f}",
        f"DeltaDisclosure={chance.uniform(0.2, 1.5):.2f}",
        f"PointwiseMaximalLeakage={chance.uniform(0.1, 0.8):.2f}",
        f"LocalInformationPrivacy={chance.uniform(0.2, 1.2):.2f}",
        f"LeakageCap={chance.uniform(0.005, 0.1):.3f}",
        f"LeakageCap={chance.uniform(0.5, 0.8):.2f}:guessing-probability",
        f"PerLetter={chance.uniform(0.05, 0.3):.2f}:total-variation",
        "LocalPrivacy=4",
    ]
    likely = [4, *[1] * (len(some) - 2), 0.3]
    chosen = dict.fromkeys(chance.choices(some, likely, k=chance.choice([1, 1, 2, 3])))
    return [part for rule in chosen for part in ("--criterion", rule)]


def options(chance: random.Random) -> list[str]:
    """Return what is asked besides: mostly nothing, or another encoder."""
    more = [
        (10, []), (6, ["--encoder", "wx"]), (1, ["--draw", "balanced"]), (1, ["--units", "nats"]),
        (1, ["--weights", "weight"]), (2, ["--suppress", "0.4"]), (1, ["--row-id", "id"]),
    ]  # fmt: skip
    chosen = chance.choices([part for _, part in more], [weight for weight, _ in more])[0]
    return [*chosen, "--missing", chance.choice(["drop", "level"])]


def released(seed: int) -> Case:
    """Release the table of a seed in the present folder, and count it again."""
    chance = random.Random(seed)
    Path("t.csv").write_text(table(chance), encoding="utf-8")
    key = ("--key", "age,town", "--bins", f"age={chance.choice([10, 10, 20])}")
    asked = ("--sensitive", "w", *key, *criteria(chance), *options(chance))
    typed = ("release", "t.csv", *asked, "--seed", str(seed), "--no-untouched")
    out, code = StringIO(), 0
    try:
        with redirect_stdout(out), redirect_stderr(StringIO()):
            main([*typed, "--time-limit", "20", "--out", "o.csv", "--force", "--json"])
    except SystemExit as done:
        code = int(done.code or 0)
    document = json.loads(out.getvalue())
    if error := document.get("error"):
        expected = error["kind"] in ("infeasible", "input")
        words = error["message"] if error["kind"] == "input" or not expected else "or unmendable"
        return Case(typed, f"refused, {error['kind']}: {words}", () if expected else (words,))
    problems = recounted("t.csv", "o.csv", document).problems
    if code == 0:  # nothing that is asked of single groups is broken
        problems += [f"{c['criterion']} breaks" for c in document["checks"] if c["breaks"]]
    return Case(typed, _kind(document), tuple(problems))


def _kind(document: dict[str, Any]) -> str:
    if (designed := document.get("designed")) is not None:
        encoder = document["asked"]["encoder"]
        return "whole counts, " + ("blind" if designed["blind"] else f"encoder {encoder}")
    how = "mended" if "merged" in document else "drawn, and breaks nothing"
    return f"{how}: {document['undesigned']['reason']}"


def campaign(first: int) -> Iterator[Case]:
    """Yield what becomes of the tables of seeds, one after the other."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        yield from map(released, itertools.count(first))


if __name__ == "__main__":
    many, first = (*map(int, sys.argv[1:]), *[1000, 0][len(sys.argv) - 1 :])
    began, kinds, tables = time.monotonic(), Counter[str](), 0
    for case in campaign(first):
        kinds[case.kind] += 1
        kinds["denied"] += bool(case.problems)
        tables += not case.kind.startswith("refused")
        if case.problems:
            print("DENIED", *case.typed, *case.problems, sep="\n  ", flush=True)
        if tables == many:
            break
        if kinds.total() % 100 == 0:
            print(f"{tables:,} tables, {time.monotonic() - began:.0f} s", dict(kinds), flush=True)
    print(f"{tables:,} tables, {kinds['denied']} denied, {time.monotonic() - began:.0f} s")
    for kind, count in kinds.most_common():
        print(f"  {count:5d}  {kind}")
