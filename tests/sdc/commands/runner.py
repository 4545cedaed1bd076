"""Commands as a user types them, and small tables for them."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

from cvxprivacy_sdc.commands import main

ROOT = Path(__file__).parents[3]
OUTPUTS = (
    "--out", "o.csv", "--certificate", "p.json", "--channel", "c.json", "--problem-out", "r.toml"
)  # fmt: skip
SEX = ("--sensitive", "ill", "--key", "sex", "--budget", "0.1")
BOTH = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10", "--budget", "0.1")
RUN = "from cvxprivacy_sdc.commands import main; main(prog_name='cvxprivacy')"


def command(*args, code=None, env=None, **options):
    """Run the real command, or Python code; never a traceback."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [sys.executable, *(("-c", code) if code else ("-m", "cvxprivacy_sdc")), *map(str, args)],
        capture_output=True, text=True, check=False, encoding="utf-8", errors="replace",
        env=environment, **options,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "should not have happened" not in done.stderr
    return done


class Terminal(StringIO):
    def isatty(self):
        return True


def say(*args, code=0, stream=StringIO):
    """Run the command in this process; of ``code`` None it may refuse a table, and no more."""
    out, err, ended = StringIO(), stream(), 0
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    kept = {number: signal.getsignal(number) for number in numbers}
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(a) for a in args], prog_name="cvxprivacy")
        except SystemExit as done:
            ended = done.code or 0
    for number, handler in kept.items():
        signal.signal(number, handler)
    assert "should not have happened" not in err.getvalue(), err.getvalue()
    assert ended in ((0, 1) if code is None else (code,)), (ended, err.getvalue(), out.getvalue())
    return SimpleNamespace(out=out.getvalue(), err=err.getvalue())


def report(*args, code=0):
    """Return the one JSON document that is printed, of what JSON has: no NaN, no Infinity."""
    return json.loads(say(*args, "--json", code=code).out, parse_constant=int)


def refused(*args, pieces=(), code=2):
    """One line that says why, and nothing written."""
    before = contents()
    printed = say(*args, code=code)
    assert contents() == before
    assert printed.out == ""
    lines = printed.err.strip().splitlines()
    while lines[0].startswith("cvxprivacy: note: "):  # what was taken, which may be why
        lines.pop(0)
    assert len(lines) == 1 or (lines[0].startswith("Usage:") and lines[-1].startswith("Error:"))
    assert [piece for piece in pieces if piece not in printed.err] == [], printed.err


def contents(folder="."):
    return {p: p.is_file() and p.read_bytes() for p in sorted(Path(folder).rglob("*"))}


def people(records=300):
    """Make a table in which illness depends on age and sex."""
    chance, lines = random.Random(7), ["id,age,sex,ill,note"]
    for i in range(records):
        age, sex = chance.randrange(20, 60), chance.choice("MF")
        ill = chance.random() < (age - 10) / 70 + 0.2 * (sex == "M")
        lines.append(f'{i},{age},{sex},{["no", "yes"][ill]},"n {i}"')
    return "\n".join(lines) + "\n"


def write(name, text):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def loaded(name):
    return json.loads(Path(name).read_text(encoding="utf-8"))


def rows(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def left_open(name="o.csv"):
    """Return 2^H of the record that each released group came from, by the rows of two tables."""
    before = [(int(row["age"]) // 10, row["sex"]) for row in rows("t.csv")]
    after = [(row["age"], row["sex"]) for row in rows(name)]
    chances: dict = {}
    for (x, y), n in Counter(zip(before, after, strict=True)).items():
        alike = before.count(x)
        chances.setdefault(y, []).extend([n / alike / after.count(y)] * alike)
    return {y: math.exp(-sum(p * math.log(p) for p in each)) for y, each in chances.items()}
