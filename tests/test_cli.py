"""The commands as a user types them: what they write, what they refuse, what they leave behind."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import tomllib
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy.stats import chi2

import cvxprivacy as cpv
from cvxprivacy.certificates.statement import stated
from cvxprivacy.certificates.verify import digest, recompute
from cvxprivacy.cli import main
from cvxprivacy.results.recount import recounted
from tests.lengths import rest_at_length
from tests.test_architecture import ROOT

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
OUTPUTS = (
    "--out",
    "o.csv",
    "--certificate",
    "p.json",
    "--channel",
    "c.json",
    "--problem-out",
    "r.toml",
)
SEX = ("--sensitive", "ill", "--key", "sex", "--budget", "0.1")
BOTH = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10", "--budget", "0.1")
RUN = "from cvxprivacy.cli import main; main(prog_name='cvxprivacy')"


def command(*args, code=None, env=None, **options):
    """Run the real command, or Python code; never a traceback."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [sys.executable, *(("-c", code) if code else ("-m", "cvxprivacy")), *map(str, args)],
        capture_output=True, text=True, check=False, encoding="utf-8", errors="replace",
        env=environment, **options,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "should not have happened" not in done.stderr
    return done


def say(*args, code=0):
    """Run the command in this process."""
    out, err, ended, kept = StringIO(), StringIO(), 0, signal.getsignal(signal.SIGTERM)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(a) for a in args], prog_name="cvxprivacy")
        except SystemExit as done:
            ended = done.code or 0
    signal.signal(signal.SIGTERM, kept)
    assert "should not have happened" not in err.getvalue()
    assert ended == code, (ended, err.getvalue(), out.getvalue())
    return SimpleNamespace(out=out.getvalue(), err=err.getvalue())


def report(*args, code=0):
    return json.loads(say(*args, "--json", code=code).out)


def refused(*args, pieces=(), code=2):
    """One line that says why, and nothing written."""
    before = contents()
    said = say(*args, code=code)
    assert contents() == before
    assert said.out == ""
    lines = said.err.strip().splitlines()
    assert len(lines) == 1 or (lines[0].startswith("Usage:") and lines[-1].startswith("Error:"))
    assert [piece for piece in pieces if piece not in said.err] == [], said.err


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


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("t.csv", people())
    return tmp_path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Release a small table once, for those who only need what it leaves."""
    folder = tmp_path_factory.mktemp("kept")
    write(folder / "t.csv", people())
    outputs = [part if part.startswith("--") else str(folder / part) for part in OUTPUTS]
    say("release", folder / "t.csv", *BOTH, "--seed", 1, *outputs)
    return folder


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Run the README's command on the Adult table."""
    table = Path(os.environ.get("CVXPRIVACY_DATA", "")) / "adult.csv"
    if not table.is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")
    folder = tmp_path_factory.mktemp("adult")
    shutil.copy(table, folder)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.search(r"\$ cvxprivacy (release(?:[^\n]*\\\n)*[^\n]*)", readme)[1]
    words = text.replace("\\\n", " ").split()
    return folder, words, command(*words, cwd=folder)


def test_a_negative_bias_is_no_negative_share(here):
    """ill, key and twin tell the same: 2 cells for 2 + 2 values, so the formula is negative."""
    lines = [f"{i % 2},{i % 2},{'ab'[i % 2]}" for i in range(200)]
    write("same.csv", "\n".join(["ill,key,twin", *lines]) + "\n")
    said = say("release", "same.csv", "--sensitive", "ill", "--key", "key", "--budget", 0.1).out
    short = "as fewer cells occur than values of both less one"
    assert f"risk before      1 bits, too low by about 0.0036 (Miller–Madow), {short}" in said
    assert f"twin                 1.0000 bits (too low by about 0.0036, {short}; 2 values)" in said
    assert "-0.00" not in said


def test_the_notes_of_a_report_are_in_its_units(here):
    few = ["release", write("few.csv", "ill,key\na,1\na,1\na,1\nb,2\nb,1\n"), "--sensitive", "ill"]
    notes = report(*few, "--key", "key", "--budget", 0.1, "--units", "nats")["notes"]
    assert [note for note in notes if "plug-in risk" in note and " nats " in note]


def test_the_report_says_what_the_user_must_know(released):
    folder, words, done = released
    assert (done.returncode, done.stderr) == (0, "")
    names = ("risk before", "risk after", "distortion of age", "distortion of sex", "budget")
    before, after, age, sex, price = (
        float(re.search(rf"{name} +([-+]?\d[\d.e+-]*)", done.stdout)[1]) for name in names
    )
    assert before == pytest.approx(0.4758, abs=1e-4)
    assert after < before / 2
    assert age + sex == pytest.approx(0.1, abs=1e-6)
    assert price < 0
    for piece in ("32,561 records", "certified", "enclosure", "small-sample bias", "education-num",
                  "note: columns left as they are reveal more", "relationship (1.05)"):  # fmt: skip
        assert piece in done.stdout
    assert re.search(r"by itself:\n  (\S+)", done.stdout)[1] == "relationship"  # greatest first

    said = json.loads(command(*words, "--json", cwd=folder).stdout)
    terms, price_said = said["terms"], said["prices"]["budget"]
    shown = [said["risk_before"], terms["risk"][1], terms["distortion of age"][1], price_said]
    assert shown == pytest.approx([before, after, age, price], 1e-4)
    assert said["lower"] <= terms["risk"][1] <= said["upper"] + 1e-12
    assert f"{said['released']['changed']:,} of them changed" in done.stdout
    assert any("relationship" in note for note in said["notes"])


def test_the_released_table_follows_the_channel_and_all_else_is_copied(released):
    folder, _, _ = released
    old, new = rows(folder / "adult.csv"), rows(folder / "released.csv")
    assert len(old) == len(new) == 32_561
    strip = re.compile(rb'^(?:"[^"]*"|[^,]*)((?:,[^,]*){8}),[^,]*(.*)$', re.M)  # age 1st, sex 10th
    first, second = (strip.sub(rb"\1\2", (folder / f"{n}.csv").read_bytes())
                     for n in ("adult", "released"))  # fmt: skip
    assert first == second

    channel = loaded(folder / "channel.json")
    inputs, outputs = (list(map(tuple, channel[side])) for side in ("inputs", "outputs"))
    seen = {letter: Counter() for letter in inputs}
    for a, b in zip(old, new, strict=True):
        decade = int(a["age"]) // 10 * 10
        seen[f"[{decade}, {decade + 10})", a["sex"]][b["age"], b["sex"]] += 1
    for letter, row in zip(inputs, channel["matrix"], strict=True):
        counts = np.array([seen[letter][y] for y in outputs], float)
        expected = counts.sum() * np.array(row)
        assert counts[expected > 0].sum() == seen[letter].total()
        few = expected < 5  # pooled
        pairs = [*zip(counts[~few], expected[~few], strict=True)]
        pairs += [(counts[few].sum(), max(expected[few].sum(), 1))]
        off = sum((seen - wanted) ** 2 / wanted for seen, wanted in pairs)
        assert chi2.sf(off, len(pairs) - 1) > 1e-4, letter


@pytest.mark.long
def test_a_seed_decides_the_file_and_a_proof_is_verified_with_its_table(released):
    folder, _, _ = released
    for name, seed in (("1.csv", ["--seed", 1]), ("2.csv", ["--seed", 2]), ("3.csv", [])):
        done = command("apply", "channel.json", "adult.csv", *seed, "--out", name, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
    texts = [(folder / name).read_bytes() for name in ("released.csv", "1.csv", "2.csv", "3.csv")]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3
    for name in ("proof.json", "channel.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    lines = (folder / "adult.csv").read_bytes().split(b"\n")
    lines[5] = lines[5].replace(b"Female", b"Male")
    write(folder / "changed.csv", b"\n".join(lines))
    for options, code, pieces in (
        ((), 0, ["verified, certified"]),
        (("--table", "adult.csv"), 0, ["verified, certified", "32,561 records, counted again"]),
        (("--problem", "release.toml"), 0, ["\nrelease.toml: the proof is of this problem\n"]),
        (("--problem", "release.toml", "--table", "changed.csv"), 1, ["2 cells differ"]),
        (("--table", "changed.csv"), 1, ["NOT verified\n  changed.csv: 2 cells differ: ",
                                         "[20, 30)", "marital-status"]),
    ):  # fmt: skip
        done = command("verify", "proof.json", *options, cwd=folder)
        assert (done.returncode, done.stderr) == (code, "")
        assert all(piece in done.stdout for piece in pieces), done.stdout


QUESTIONS = [  # what is changed in the problem, and what is different then
    ("budget = 0.1", "budget = 0.2", 'row "budget": bound 0.1, where the problem has 0.2'),
    ("age = 1.0", "age = 3.0", 'row "budget": cost: 288 of 324 differ'),
    ("age = 10.0", "age = 20.0", "letters 18, where the problem has 10"),
    ('"x"', '"wx"', "letters 18, where the problem has "),
    ('"bits"', '"nats"', "units bits, where the problem has nats"),
    ('["marital-status"]', '["income"]', "atoms of a letter 7, where the problem has 2"),
    ("budget = 0.1\n", "price = 1\n", 'row "budget" is not in the problem'),
    (
        "[solve]",
        '[[criteria]]\nkind = "TCloseness"\nt = 0.5\n[solve]',
        'row "t_closeness" is missing',
    ),
]


@pytest.mark.parametrize(("old", "new", "different"), rest_at_length(QUESTIONS, 3))
def test_a_proof_of_another_question(old, new, different, released):
    folder, _, _ = released
    text = (folder / "release.toml").read_text("utf-8")
    assert text.count(old) == 1
    write(folder / "other.toml", text.replace(old, new))
    done = command("verify", "proof.json", "--problem", "other.toml", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("proof.json: NOT a proof of other.toml\n  other.toml: ")
    assert f"other.toml: {different}" in done.stdout
    assert "  what it proves:\n    proved: " in done.stdout


def forged(document):
    """Return resealed documents that prove what they claim, of other questions."""
    rows, objective = document["program"]["rows"], document["program"]["objective"]
    everywhere = [[1 << 52] + [0] * (len(row) - 1) for row in document["primal"]["numerators"]]
    released = {"numerators": everywhere, "denominator": 1 << 52}
    nothing = {**objective, "weights": {}}
    yield "objective", {"objective": nothing}, None, ['information about "W" has weight 0']
    yield "budget", {"rows": {}}, released, ['row "budget" is missing']
    moved = {"budget": {**rows["budget"], "bound": "9"}}
    yield "bound", {"rows": moved}, released, ['row "budget": bound 9, where the problem has 0.1']


def test_a_resealed_proof_of_another_question_is_told(kept, here):
    for name, changes, primal, pieces in forged(loaded(kept / "p.json")):
        document = loaded(kept / "p.json")
        document["program"] |= changes
        document["primal"] = primal or document["primal"]
        proved = recompute(document)
        document["claim"] = {k: proved[k] for k in ("status", "lower", "upper", "terms")}
        document["sha256"] = digest(document)
        assert proved["upper"] < 1e-9, name
        write("p.json", json.dumps(document))
        assert say("verify", "p.json").out.startswith("p.json: verified, ")
        asked = ("verify", "p.json", "--table", kept / "t.csv", "--problem", kept / "r.toml")
        said = say(*asked, code=1).out
        assert said.startswith(f"p.json: NOT a proof of {kept / 'r.toml'}\n")
        assert [piece for piece in pieces if piece not in said] == []
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
    said = say("verify", "p.json", "--problem", kept / "r.toml", code=1).out
    assert 'record of the table: its "sensitive" is not the problem\'s' in said
    assert 'record of the table: its "letters" is not the problem\'s' in said
    say("verify", kept / "p.json", "--problem", kept / "r.toml")


def test_the_statement_is_in_the_json(kept, here):
    one = report("verify", kept / "p.json")[str(kept / "p.json")]
    assert one["statement"] == stated(loaded(kept / "p.json"))
    assert 'minimised: 1 × information about "W" (2 values), in bits' in one["statement"]
    said = say("verify", kept / "p.json").out.splitlines()
    assert said[1:] == [f"  {line}" for line in one["statement"]]


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
    said = say("verify", "s.json", "--problem", "p.toml").out
    assert "problem; its letters were generated, and all else is as stated" in said
    said = say("verify", "s.lower.json", "--problem", "p.toml").out
    assert "problem, and of its lower end: Z is at the encoder too" in said
    write("q.toml", text.replace("0.3", "0.2"))
    for name in ("s.json", "s.lower.json"):
        said = say("verify", name, "--problem", "q.toml", code=1).out
        assert 'row "budget": bound 0.3, where the problem has 0.2' in said


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


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_with_the_same_cells_is_the_same_table(name, kept, here):
    verify = ["verify", kept / "p.json", "--table", write(name, COPIES[name](people()))]
    say(*verify, "--problem", kept / "r.toml")
    assert "300 records, counted again: the proof's counts" in say(*verify).out
    changed = people().replace(",yes,", ",no,", 1)
    write(name, COPIES[name](changed))
    told = say(*verify, code=1).out
    assert f"{name}: 2 cells differ: " in told
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
    for copy in ("t.tsv", "copy.csv", "semi.csv"):
        assert "300 records, counted again" in say("verify", "p.json", "--table", copy).out
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
    frame = pandas.read_csv("t.csv").assign(weight=lambda t: (t["id"] % 7 + 1) / 10)
    frame.to_csv("w.csv", index=False)
    say("release", "w.csv", *SEX, "--weights", "weight", *OUTPUTS[2:])
    frame[::-1].to_csv("w.csv", index=False)
    say("verify", "p.json", "--table", "w.csv", "--problem", "r.toml")
    frame.assign(weight=frame["weight"] * (1 + 1e-9 * (frame["id"] == 3))).to_csv(
        "other.csv", index=False
    )
    other = ("verify", "p.json", "--problem", "r.toml", "--table", "other.csv")
    assert "cells differ" in say(*other, code=1).out
    said = say("verify", "p.json", "--table", "w.csv").out
    told = "300 records, counted again: the proof's counts, weights agree to 1e-12 of their sum"
    assert told in said
    document = loaded("p.json")
    assert recounted(document) == told
    with pytest.raises(cpv.InputError, match="not counted from a table"):
        recounted({**document, "table": None})


def test_a_proof_that_was_tampered_with(kept, here):
    text, document = (kept / "p.json").read_text("utf-8"), loaded(kept / "p.json")
    document["claim"]["upper"] /= 2
    write("claim.json", json.dumps(document))
    write("law.json", text.replace('"records": 300', '"records": 9'))
    for name, pieces in (("claim.json", ["sha256", "is proved"]), ("law.json", ["sha256"])):
        done = command("verify", name, cwd=here)
        assert done.returncode == 1
        assert all(piece in done.stdout for piece in ["NOT verified", *pieces])
    said = report("verify", kept / "p.json", "law.json", code=1)
    assert [one["verified"] for one in said.values()] == [True, False]
    refused("verify", "none.json", pieces=["none.json"])
    for nothing in ("", "{", "[]", "a,b\n1,2\n", "[" * 9999, b"\xff\0\x01"):
        refused("verify", write("p.json", nothing), pieces=["p.json"])


@pytest.mark.parametrize(("column", "new"), [(1, "5"), (1, "99"), (1, "old"), (2, "Q"), (2, "")])
def test_a_changed_record_fails_whatever_it_holds(column, new, kept, here):
    lines = [line.split(",") for line in people().split("\n")]
    lines[4][column] = new
    write("changed.csv", "\n".join(map(",".join, lines)))
    said = say("verify", kept / "p.json", "--table", "changed.csv", code=1)
    assert "NOT verified\n  changed.csv: " in said.out


FILES = {  # what stands in the file, what the message says
    "ragged": ("sex,ill\nM,no\nF\n", ["line 3", "1 field where the header has 2"]),
    "unclosed": ('sex,ill\nM,no\nF,"yes\n', ["line 3", "never closed"]),
    "latin-1": ("sex,ill\nM,né\n".encode("latin-1"), ["line 2", "0xe9", "--encoding"]),
    "binary": (b"PK\x03\x04\0\0\xff\xfe", ["f.csv"]),
    "twice": ("sex,ill,sex\nM,no,F\n", ["line 1", "second that is named 'sex'"]),
    "no such key": ("sx,ill\nM,no\n", ["no column 'sex'", "sx"]),
    "empty": ("", ["f.csv", "empty"]),
    "header only": ("sex,ill\n", ["no records"]),
    "semicolons": ("sex;ill\nM;no\n", ["no column 'ill'", "--delimiter"]),
    "missing": ("sex,ill\n,no\nM,yes\n", ["missing", "'sex'"]),
    "1e5 levels": ("sex,ill\n" + "".join(f"a{i},{i % 2}\n" for i in range(100_000)),
                   ["100,000", "bins", "'sex'"]),
    "1e3 levels": ("sex,ill\n" + "".join(f"a{i % 1000},{i % 2}\n" for i in range(3000)),
                   ["1,000", "--key", "500"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_malformed_table(name, here):
    write("f.csv", FILES[name][0])
    refused("release", "f.csv", *SEX, *OUTPUTS, pieces=FILES[name][1])


OPTIONS = [  # option, value, what the message says
    *(("--bins", f"age={v}", "age") for v in
      ("", "x", "0", "-1", "nan", "inf", "3:2", "1:nan:3", "30:40", "1e-9", "10,age=20")),
    ("--bins", "age", "age=10"), ("--bins", "=3", "age=10"), ("--bins", "nope=3", "nope"),
    ("--bins", "sex=10", "no number"), ("--bins", "id=10", "id"),
    *(("--distortion", f"age=ordinal,sex={v}", "") for v in ("", "foo", "absolute_error",
      "-1*hamming", "e*hamming", "nan*hamming", "hamming,sex=ordinal")),
    ("--distortion", "sex=hamming", "age"), ("--distortion", "age", "age=ordinal"),
    ("--distortion", "nope=ordinal", "key column"),
    *(("--criterion", v, v.split("=")[0]) for v in ("Foo", "Foo=1", "tcloseness=1", "TCloseness",
      "TCloseness=", "TCloseness=x", "PreserveMarginal=1", "ForbiddenMoves=1")),
    *(("--criterion", f"TCloseness={v}", v) for v in ("-1", "nan")),
    ("--criterion", "KAnonymity=0.5", "0.5"), ("--criterion", "KAnonymity=1000", "300"),
    ("--criterion", "KeepProbability=2", "2"), ("--criterion", "LDiversity=3", "2"),
    *(("--budget", v, v) for v in ("-1", "nan", "inf", "x")),
    *(("--seed", v, v) for v in ("-1", "1.5", "x")),
    ("--missing", "foo", "level"), ("--encoder", "y", "wx"), ("--units", "x", "nats"),
    ("--accuracy", "x", "high"), ("--weights", "nope", "nope"), ("--weights", "ill", "ill"),
    ("--weights", "note", "note"), ("--row-id", "id", "--seed"),
    ("--delimiter", "", "delimiter"), ("--delimiter", "ab", "ab"), ("--delimiter", ";", "--delim"),
    ("--encoding", "nope", "nope"), ("--encoding", "utf-16", "utf-16"),
    ("--na", "no", "missing"), ("--key", "nope", "nope"), ("--key", "ill", "ill"),
    ("--sensitive", "", "''"), ("--sensitive", "sex", "sex"), ("--nope", "1", "--nope"),
    ("--out", "t.csv", "input"), ("--out", "./d/../t.csv", "input"), ("--out", "link", "input"),
    ("--problem-out", "t.csv", "input"), ("--problem-out", "no/r", "no"),
    ("--problem-out", "c.json", "--channel"), ("--problem-out", "d", "d"),
    ("--out", "no/o.csv", "no"), ("--out", "d", "d"), ("--out", "./p.json", "--out"),
    ("--channel", "d/../p.json", "--certificate"), ("--out", "o.parquet", "o.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value", "piece"), OPTIONS)
def test_a_bad_option(option, value, piece, here):
    Path("d").mkdir()
    Path("link").symlink_to("t.csv")
    refused("release", "t.csv", *BOTH, *OUTPUTS, option, value, pieces=[piece])
    if value in ("nope", "-1"):  # refused even where nothing is drawn
        refused("release", "t.csv", *BOTH, option, value, pieces=[piece])


def test_the_main_refusals_of_the_real_command(here):
    Path("link").symlink_to("o.csv")
    for args in (("none.csv", *SEX), (".", *SEX), ("link", *SEX), ("t.csv",), ("t.csv", *SEX[:-2]),
                 ("t.csv", *SEX, "--out", "t.csv"), ("none.parquet", *SEX)):  # fmt: skip
        before = contents()
        done = command("release", *OUTPUTS, *args, cwd=here)
        assert (done.returncode, done.stdout, contents()) == (2, "", before), args
        assert done.stderr.strip()


def test_criteria_that_exclude_each_other(here):
    both = ("--criterion", "TCloseness=0", "--criterion", "KeepProbability=1")
    args = ("release", "t.csv", *SEX[:-2], *both)
    remedies = ["t_closeness would have to be at least 0.", "keep_probability would have to be at"]
    refused(*args, *OUTPUTS, code=3, pieces=remedies)
    error = report(*args, code=3)["error"]
    assert error["kind"] == "infeasible"
    assert set(error["extremes"]) == {"t_closeness", "keep_probability"}
    assert report(*args, "--weights", "nope", code=2)["error"]["kind"] == "input"


@LINUX
@pytest.mark.parametrize("full", OUTPUTS[::2])
def test_a_full_disk_leaves_nothing_and_is_named(full, here):
    outputs = [part for pair in zip(OUTPUTS[::2], OUTPUTS[1::2], strict=True) for part in
               (pair if pair[0] != full else (full, "/dev/full"))]  # fmt: skip
    refused("release", "t.csv", *SEX, *outputs, pieces=["/dev/full", "space"])


@pytest.mark.parametrize("text", ["M,no\nF,no\n", "M,no\nM,yes\n", "M,no\n"])
def test_a_column_of_one_value_has_nothing_to_hide_and_nothing_is_changed(text, here):
    write("f.csv", "sex,ill\n" + text * 50)
    said = report("release", "f.csv", *SEX, *OUTPUTS, "--seed", 1)
    assert said["risk_before"] == said["lower"] == said["upper"] == 0
    assert said["status"] == "certified"
    say("verify", "p.json", "--table", "f.csv")
    assert Path("o.csv").read_bytes() == Path("f.csv").read_bytes()


@pytest.mark.parametrize("missing", ["level", "drop"])
def test_missing_values(missing, here):
    holed = re.sub(r"^(\d*[05]),\d+", r"\1,?", people(), flags=re.M)
    write("m.csv", re.sub(r"^(\d*7),(\d+),\w,", r"\1,\2,?,", holed, flags=re.M))
    args = ("release", "m.csv", *BOTH, "--na", "?", *OUTPUTS)
    refused(*args, pieces=["missing", "level", "drop"])
    said = report(*args, "--missing", missing, "--seed", 1)
    say("verify", "p.json", "--table", "m.csv")
    say("apply", "c.json", "m.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()
    old, new = rows("m.csv"), rows("o.csv")
    whole = [row for row in old if "?" not in (row["age"], row["sex"])]
    assert said["records"] == said["released"]["records"] == len(new)
    assert said["dropped"] == said["released"]["dropped"] == len(old) - len(new)
    assert ("?" in {row["age"] for row in new}) == (missing == "level")
    for column in ("id", "ill", "note"):
        kept = old if missing == "level" else whole
        assert [row[column] for row in kept] == [row[column] for row in new]


@pytest.mark.parametrize(
    ("mark", "end", "delimiter", "encoding"),
    [*product([b"", b"\xef\xbb\xbf"], [b"\n", b"\r\n"], ",;\t", ["utf-8"]),
     *product([b""], [b"\r\n"], ",;\t", ["latin-1"])],
)  # fmt: skip
def test_bytes_outside_the_key_columns_stay(mark, end, delimiter, encoding, here):
    lines = [[f'"é ""{i}"", {i}"' if i % 3 else f"ü{i}", "ny"[i % 7 > i % 2], "MF"[i % 2]]
             for i in range(80)]  # fmt: skip
    text = [delimiter.join(f).encode(encoding) for f in [['"no, te"', "ill", "sex"], *lines]]
    name = write("f.tsv" if delimiter == "\t" else "f.csv", mark + end.join([*text, b"", b""]))
    how = ["--delimiter", ";"] * (delimiter == ";")
    how += ["--encoding", encoding] * (encoding != "utf-8")
    say("release", name, *SEX, *how, *OUTPUTS, "--no-untouched", "--seed", 1)
    say("verify", "p.json", "--table", name)
    say("apply", "c.json", name, "--out", "n.csv", "--seed", 1)  # read as the first was
    old, new = Path(name).read_bytes(), Path("o.csv").read_bytes()
    assert Path("n.csv").read_bytes() == new
    last = re.compile(rb"(?<=[;,\t])[MF](?=\r?\n)")
    assert last.sub(b"", new) == last.sub(b"", old)
    assert len(last.findall(new)) == 80


@pytest.mark.parametrize("name", ["a,b", "c=d", "e f", " g", 'h"i', "j:k"])
def test_any_name_of_a_column_can_be_typed(name, here):
    quoted = '"' + name.replace('"', '""') + '"'
    write("f.csv", f"{quoted},ill\n" + "".join(f"{i % 7},{'ny'[i % 3 > 1]}\n" for i in range(90)))
    key = ("--sensitive", "ill", "--key", name, "--budget", "0.1")
    bins, measure = ("--bins", f"{name}=2"), ("--distortion", f"{name}=2*ordinal")
    for options in ((), bins, measure, (*bins, *measure)):
        say("release", "f.csv", *key, *options, *OUTPUTS)
        say("verify", "p.json", "--table", "f.csv")
        said = say("verify", "p.json", "--problem", "r.toml").out
        assert said.endswith("r.toml: the proof is of this problem\n")
        assert rows("o.csv")[0].keys() == {name, "ill"}


@pytest.mark.parametrize(
    "options", [(), ("--row-id", "account", "--seed", 1), ("--key", "account")]
)
def test_account_numbers_longer_than_a_machine_word(options, here):
    lines = [f"{10**20 + i},{'MF'[i % 2]},{'ny'[i % 5 > i % 2]}" for i in range(60)]
    write("f.csv", "\n".join(["account,sex,ill", *lines]))
    say("release", "f.csv", *SEX, *options, *OUTPUTS)


RULES = [("LeakageCap", 0.01), ("TCloseness", 0.05), ("LDiversity", 1.9), ("DeltaDisclosure", 0.3),
         ("LocalPrivacy", 0.5), ("MaximalLeakage", 0.2), ("KeepProbability", 0.1),
         ("PreserveMarginal",), ("KAnonymity", 100)]  # fmt: skip
TYPED = [  # what is typed, and the arguments that it stands for
    *((["--criterion", "=".join(map(str, rule))], {"criteria": [getattr(cpv, rule[0])(*rule[1:])]})
      for rule in RULES),
    (["--encoder", "wx", "--units", "nats"], {"encoder": "wx", "units": "nats"}),
    (["--weights", "weight"], {"weights": "weight"}),
]  # fmt: skip


@pytest.mark.parametrize("budget", [None, 0.9])
@pytest.mark.parametrize(("typed", "options"), TYPED, ids=lambda given: str(given)[:40])
def test_an_option_is_the_librarys_argument(typed, options, budget, here):
    frame = pandas.read_csv("t.csv")
    frame["weight"] = (frame["id"] % 5 + 1) / 4
    frame.to_csv("w.csv", index=False)
    options, key = dict(options), {"key": ["age", "sex"], "bins": {"age": 10}}
    key["weights"] = options.pop("weights", None)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", **key)
    if budget is None:
        problem, more = cpv.MinimumDistortion, ["--criterion", "LDiversity=1.8"]
        options["criteria"] = [*options.get("criteria", ()), cpv.LDiversity(1.8)]
    else:
        problem, more, options["budget"] = cpv.PrivacyDistortion, ["--budget", budget], budget
    solution = problem(source, cpv.hamming(source.x), **options).solve()
    said = report("release", "w.csv", *BOTH[:-2], *typed, *more, *OUTPUTS, "--seed", 1)
    assert said["risk_before"] == source.information(units=said["units"])
    assert said["status"] == solution.status == "certified"
    assert [said["lower"], said["upper"]] == [solution.lower, solution.upper]
    assert loaded("c.json")["matrix"] == solution.channel.matrix.tolist()
    say("verify", "p.json", "--table", "w.csv", "--problem", "r.toml")
    say("apply", "c.json", "w.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()
    if "wx" in typed:
        write("n.csv", people().replace("ill", "il"))
        refused("apply", "c.json", "n.csv", "--out", "x.csv", pieces=["'ill'"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_values_without_mass_are_said_in_one_line(ending, here):
    """A record of weight 0 is released, but its sex has no mass in the law that is proved."""
    frame = pandas.read_csv("t.csv").assign(weight=1.0)
    frame.loc[len(frame)] = [300, 30, "X", "no", "n", 0.0]
    write_frame = frame.to_csv if ending == "csv" else frame.to_parquet
    write_frame(f"w.{ending}", index=False)
    outputs = [f"o.{ending}" if part == "o.csv" else part for part in OUTPUTS]
    how = ("release", f"w.{ending}", *SEX, "--weights", "weight", *outputs, "--seed", 1)
    note = "1 record has a value without mass in the source, such as 'X': the proof does not cover"
    said = say(*how)
    assert said.err == ""
    assert [line for line in said.out.splitlines() if line.startswith(f"note: {note}")]
    assert [n for n in report(*how)["notes"] if n.startswith(note)]
    next_month = ("apply", "c.json", f"w.{ending}", "--seed", 1, "--out", f"n.{ending}")
    said = say(*next_month)
    assert said.err == ""
    assert said.out.splitlines()[1].startswith(f"note: {note}")
    assert report(*next_month)["notes"][0].startswith(note)
    frame.iloc[:-1].to_csv("t2.csv", index=False)
    assert "without mass" not in say("apply", "c.json", "t2.csv", "--out", "n2.csv").out


def test_a_record_that_stays_meets_the_same_draw_next_month(here):
    say("release", "t.csv", *BOTH, *OUTPUTS, "--seed", 5, "--row-id", "id")
    header, *lines = people().splitlines()
    mixed = lines[50:] + [f'x{i},{20 + i % 40},{"MF"[i % 2]},no,"new"' for i in range(50)]
    random.Random(2).shuffle(mixed)
    write("next.csv", "\n".join([header, *mixed]))
    before = {row["id"]: (row["age"], row["sex"]) for row in rows("o.csv")}
    for seed, same in ((5, True), (6, False)):
        say("apply", "c.json", "next.csv", "--out", "n.csv", "--seed", seed, "--row-id", "id")
        after = {row["id"]: (row["age"], row["sex"]) for row in rows("n.csv")}
        stayed = before.keys() & after.keys()
        assert (len(after), len(stayed)) == (300, 250)
        assert all(before[i] == after[i] for i in stayed) is same
    write("twice.csv", "\n".join([header, *lines, lines[0]]))
    refused(
        "apply",
        "c.json",
        "twice.csv",
        "--out",
        "n2.csv",
        "--row-id",
        "id",
        "--seed",
        5,
        pieces=["'0'"],
    )


def test_next_month_is_refused(kept, here):
    shutil.copy(kept / "c.json", "c.json")
    write("next.csv", "sex\nM\n")
    for args, piece in ((("c.json", "next.csv", "--out", "n.csv"), "'age'"),
                        (("c.json", "t.csv", "--out", "./t.csv"), "input"),
                        (("c.json", "t.csv", "--out", "./c.json"), "input"),
                        (("c.json", "t.csv"), "--out"), (("none", "t.csv", "--out", "n"), "none"),
                        (("t.csv", "t.csv", "--out", "n.csv"), "channel")):  # fmt: skip
        refused("apply", *args, pieces=[piece])
    for line, piece in (("M,25,Q", "'Q'"), ("M,99,F", "99"), ("M,,F", ""), ("M,old,F", "'old'")):
        write("next.csv", f"a,age,sex\nM,25,F\n{line}\n")
        pieces = ["next.csv", "record 2", piece]
        refused("apply", "c.json", "next.csv", "--out", "n.csv", pieces=pieces)


def test_next_month_is_read_as_the_first(here):
    cells = [("07", "1,5", "no"), ("A", "2", "yes"), ("07", "n/a", "no"), ("8", "2", "no")] * 9
    write("f.csv", "\n".join(map(";".join, [("code", "amount", "ill"), *cells])))
    key = ("--sensitive", "ill", "--key", "code,amount", "--budget", "0.2", "--missing", "level")
    how = ("--delimiter", ";", "--na", "n/a", "--na", "", "--encoding", "latin-1")
    say("release", "f.csv", *key, *how, *OUTPUTS)
    write("n.csv", "amount;x;code\n2;é;8\n2;ü;8\n;ö;07\n".encode("latin-1"))  # all code numbers
    say("apply", "c.json", "n.csv", "--out", "r.csv")
    assert re.findall(";(.);", Path("r.csv").read_bytes().decode("latin-1")) == ["x", *"éüö"]
    write("n.csv", "amount,x,code\n2,é,8\n")
    refused("apply", "c.json", "n.csv", "--out", "r2.csv", pieces=["--delimiter"])
    say("apply", "c.json", "n.csv", "--out", "r2.csv", "--delimiter", ",", "--encoding", "utf-8")
    assert "é" in Path("r2.csv").read_text(encoding="utf-8")


@pytest.fixture
def parquet(here):
    _, arrow, file = (pytest.importorskip(name, reason="the extra `tables` is not installed")
                      for name in ("duckdb", "pyarrow", "pyarrow.parquet"))  # fmt: skip
    columns = {name: [row[name] for row in rows("t.csv")] for name in rows("t.csv")[0]}
    columns |= {name: list(map(int, columns[name])) for name in ("id", "age")}
    file.write_table(arrow.table(columns), "t.parquet")
    return SimpleNamespace(
        make=lambda path, columns: file.write_table(arrow.table(columns), path),
        read=lambda path: file.read_table(path).to_pydict(),
        columns=columns,
    )


def test_parquet_is_released_as_text_is(parquet, here):
    found = {}
    for kind in ("csv", "parquet"):
        args = ("--seed", 1, "--out", f"o.{kind}", "--certificate", f"{kind}.p", "--channel",
                f"{kind}.c", "--json")  # fmt: skip
        done = command("release", f"t.{kind}", *BOTH, *args, cwd=here)
        assert (done.returncode, done.stderr) == (0, "")
        found[kind] = json.loads(done.stdout)
    for name in ("records", "lower", "upper", "risk_before", "risk_before_bias"):
        assert found["csv"][name] == found["parquet"][name]
    assert loaded("csv.c")["matrix"] == loaded("parquet.c")["matrix"]
    new = parquet.read("o.parquet")
    assert new["id"] == list(range(300))  # whole numbers, in their order
    as_text = [tuple(map(str, record)) for record in zip(*new.values(), strict=True)]
    assert as_text == [tuple(row.values()) for row in rows("o.csv")]
    for proof, table in product(found, found):
        say("verify", f"{proof}.p", "--table", f"t.{table}")
        say("apply", f"{proof}.c", f"t.{table}", "--seed", 4, "--out", f"{proof}.{table}")
    assert parquet.read("csv.parquet") == parquet.read("parquet.parquet")
    assert Path("csv.csv").read_bytes() == Path("parquet.csv").read_bytes()
    for sex, told in (("MF"[parquet.columns["sex"][9] == "M"], "differ"), ("Q", "'Q'")):
        parquet.columns["sex"][9] = sex
        parquet.make("changed.parquet", parquet.columns)
        assert told in say("verify", "parquet.p", "--table", "changed.parquet", code=1).out
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


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Make a table that takes a moment to write."""
    header, *lines = people().replace('"', "").splitlines()
    text = "\n".join([header, *(line + "." * 60 for line in lines * 200), ""])
    return write(tmp_path_factory.mktemp("large") / "t.csv", text)


def bytes_written(process, folder):
    """Return how much of a file of this folder, named or not, the process has written."""
    with suppress(OSError):
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            if str(link.readlink()).startswith(f"{folder}/") and (size := link.stat().st_size):
                return size
    return 0


@LINUX
@pytest.mark.parametrize(("sent", "ended", "code"), rest_at_length([
    (signal.SIGTERM, 143, RUN), (signal.SIGINT, 130, RUN), (signal.SIGKILL, -9, RUN),
    (signal.SIGTERM, 143, f"import os; del os.O_TMPFILE; {RUN}"),
], 1))  # fmt: skip
def test_a_killed_command_leaves_what_stood_there(sent, ended, code, large, kept, here):
    killed, before = 0, contents()
    for megabytes in (0, 1, 3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, "apply", kept / "c.json", large, "--out", "o.csv"],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, cwd=here,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        while process.poll() is None and bytes_written(process, here) <= megabytes * 1e6:
            time.sleep(0.001)
        process.send_signal(sent)
        assert b"Traceback" not in process.communicate()[1]
        after = contents()
        if after == before:
            killed += 1
            assert process.returncode == ended
        else:  # it had ended before: the file is whole, and alone
            assert after.keys() - before.keys() <= {Path("o.csv")}
            assert len(rows("o.csv")) == 60_000
        write("o.csv", "old")
        before = contents()
    assert killed


@LINUX
def test_an_error_halfway_leaves_what_stood_there(large, kept, here):
    code = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (10**6, 10**6)); {RUN}"
    for _ in range(2):
        before = contents()
        done = command("apply", kept / "c.json", large, "--out", "o.csv", cwd=here, code=code)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"cvxprivacy: .*too large\n", done.stderr)
        assert contents() == before
        write("o.csv", "old")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_console_without_the_letters_gets_the_report_all_the_same(encoding, here):
    done = command("release", "t.csv", *SEX, cwd=here, env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, "")
    assert "risk after" in done.stdout


def test_help_and_verify_load_neither_solver_nor_plots(kept, here):
    helps = [[], *([c] for c in ("release", "apply", "verify", "solve", "figures"))]
    verify = ["verify", kept / "p.json"]
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
    for args in (*([*c, "--help"] for c in helps), ["--version"], verify,
                 [*verify, "--table", kept / "t.csv"], [*verify, "--problem", kept / "r.toml"],
                 ["apply", kept / "c.json", "t.csv", "--out", "o.csv"]):  # fmt: skip
        done = command(*args, code=code + RUN, cwd=here)
        loaded = set(done.stderr.split())
        assert done.returncode == 0
        assert done.stdout
        assert "click" in loaded
        assert not {"cvxpy", "matplotlib"} & loaded, args
        assert "--help" not in args or not {"numpy", "pandas", "scipy"} & loaded, args


PROBLEM = """formulation = "PrivacyDistortion"
budget = 0.1
[source]
table = "t.csv"
sensitive = "ill"
key = ["age", "sex"]
bins = { age = 10 }
[distortion]
attributes = { age = "ordinal", sex = "hamming" }
[output]
certificate = "s.json"
channel = "s.c"
"""


def test_a_problem_file_is_what_release_does(here):
    write("p.toml", PROBLEM)
    done = command("solve", "p.toml", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert "certified" in done.stdout
    assert stat.S_IMODE(Path("s.json").stat().st_mode) == 0o600
    said = report("solve", "p.toml")
    how = ("--distortion", "age=ordinal,sex=hamming", *OUTPUTS, "--seed", 1)
    other = report("release", "t.csv", *BOTH, *how)
    for name in ("status", "lower", "upper", "terms", "prices"):
        assert said[name] == other[name]
    assert said["channel"]["matrix"] == loaded("c.json")["matrix"]
    say("verify", "s.json", "--table", "t.csv")
    say("apply", "s.c", "t.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()


STOPPED = 'criteria = [{ kind = "TCloseness", t = 0.01 }]\n[solve]\nmethod = "conic"\n'
STOPPED += "solver_options = { max_iter = 1 }\n"


def test_a_loose_optimum_has_an_exit_code_of_its_own(here, monkeypatch):
    text = PROBLEM.replace('"PrivacyDistortion"', '"MinimumDistortion"')
    text = re.sub("budget = .*\n", STOPPED.split("[solve]")[0], text)
    write("p.toml", text + "[solve]" + STOPPED.split("[solve]")[1])
    said = report("solve", "p.toml", code=5)
    assert (said["status"], said["value_units"], said["units"]) == ("loose", None, "bits")
    assert said["lower"] < said["upper"] < math.inf
    assert "MinimumDistortion: loose" in say("solve", "p.toml", code=5).out
    assert loaded("s.json")["claim"]["status"] == "loose"
    assert Path("s.c").is_file()

    solve = cpv.MinimumDistortion.solve

    def stopped(self, **_):
        return solve(self, method="conic", solver_options={"max_iter": 1})

    monkeypatch.setattr(cpv.MinimumDistortion, "solve", stopped)
    how = ("release", "t.csv", *BOTH[:-2], "--criterion", "TCloseness=0.01", *OUTPUTS, "--seed", 1)
    assert report(*how, code=5)["status"] == "loose"
    assert "MinimumDistortion: loose" in say(*how, code=5).out
    assert all(Path(name).is_file() for name in OUTPUTS[1::2])
    monkeypatch.setattr(cpv.MinimumDistortion, "solve", solve)
    assert report(*how)["status"] == "certified"


def test_what_is_not_proved_ends_so_even_where_it_only_warns(here):
    """Those who ask for no error in [solve] still see the status in the exit code."""
    write("p.toml", PROBLEM.split("[output]")[0].replace("0.1", "0.1\ncriteria = [{ kind = "
          '"LeakageCap", b = 0.0 }]') + "[solve]\ncertify = false\n")  # fmt: skip
    assert report("solve", "p.toml", code=3)["status"] == "infeasible"


def test_the_help_lists_the_exit_code_of_a_loose_optimum():
    said = say("-h").out.split()
    assert re.search(
        r"; 5 the release is made, but proved to be optimal only loosely;", " ".join(said)
    )


@pytest.mark.parametrize(("old", "new", "line", "pieces"), [
    ("0.1", "-1", 2, ["budget"]), ("budget", "bugdet", 2, ["bugdet"]),
    ("[source]", "[source", 3, []), ('"t.csv"', '"none.csv"', 4, ["source.table"]),
    ('"ill"', '"il"', 5, ["source.sensitive", "'il'"]), ('"ordinal"', '"nope"', 9, ["age", "nope"]),
    ("[output]", '[solve]\nsolver = "NOPE"\n[output]', 11, ["solver", "NOPE"]),
    *(('"s.c"', f'"{name}"', 12, ["output.channel", name]) for name in
      ("no/c", "p.toml", "t.csv", "s.json")),
])  # fmt: skip
def test_a_problem_file_is_refused_on_its_line(old, new, line, pieces, here):
    write("p.toml", PROBLEM.replace(old, new, 1))
    refused("solve", "p.toml", pieces=["p.toml", f"line {line}", *pieces])


def test_a_problem_file_may_have_as_many_letters_as_a_release(here):
    write("t.csv", "age,sex,ill\n" + "".join(f"{i},a{i},{i % 2}\n" for i in range(3000)))
    write("p.toml", PROBLEM.replace("bins = { age = 10 }\n", ""))
    code = f"import resource as r; r.setrlimit(r.RLIMIT_CPU, (9, 9)); {RUN}"
    done = command("solve", "p.toml", code=code, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert "3,000" in done.stderr


PLACES = {  # the table and the problem file, as typed in one folder
    "r.toml": "t.csv", "deep/r.toml": "../t.csv", "link/r.toml": "../t.csv",
    "deep/../r.toml": "t.csv", "file.toml": "t.csv",
}  # fmt: skip


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("whole", [False, True])
def test_the_problem_written_is_the_one_typed(path, whole, here):
    Path("deep").mkdir()
    Path("link").symlink_to("deep")
    Path("file.toml").symlink_to("deep/there.toml")
    how = ("--distortion", "age=0.1*ordinal,sex=3*hamming", "--criterion", "KeepProbability=0.3",
           "--criterion", "PreserveMarginal", "--criterion", "TCloseness=0.1", "--units", "nats",
           "--accuracy", "high", "--bins", "age=-inf:30:45:inf", "--na", "none", "--na", "?",
           "--delimiter", ",", "--encoding", "utf-8", "--missing", "level")  # fmt: skip
    place = here if whole else Path()
    typed = ("--sensitive", "ill", "--key", "age,sex", "--budget", "0.30000000000000004")
    other = report("release", place / "t.csv", *typed, *how, "--certificate", "p.json",
                   "--problem-out", place / path)  # fmt: skip
    data = tomllib.loads(Path(path).read_text("utf-8"))
    assert data["source"]["table"] == PLACES[path]
    assert data["budget"] == 0.1 + 0.2
    assert data["source"]["bins"] == {"age": [-np.inf, 30, 45, np.inf]}
    assert data["distortion"]["weights"] == {"age": 0.1, "sex": 3.0}
    assert [rule["kind"] for rule in data["criteria"]] == [
        "KeepProbability", "PreserveMarginal", "TCloseness"
    ]  # fmt: skip
    for options in ((), ("--table", "t.csv")):
        said = say("verify", "p.json", "--problem", path, *options).out
        assert said.endswith(f"{path}: the proof is of this problem\n")
    solved = report("solve", path)
    for name in ("status", "lower", "upper", "terms", "prices", "units"):
        assert solved[name] == other[name]
    shutil.copy("t.csv", "moved.csv")
    Path("t.csv").unlink()
    refused("verify", "p.json", "--problem", path, pieces=["source.table"])
    say("verify", "p.json", "--problem", path, "--table", "moved.csv")


def test_no_problem_file_can_hold_a_name_that_is_no_text(here):
    name = os.fsdecode(b"\xff.csv")
    shutil.copy("t.csv", name)
    refused("release", name, *SEX, "--problem-out", "r.toml", pieces=["--problem-out", "UTF-8"])


def test_a_problem_file_says_how_its_table_is_read(here):
    write("t.csv", people().replace(",", ";").replace("yes", "–").encode("cp1252"))
    reading = 'delimiter = ";"\nencoding = "cp1252"\nna = ["?"]\n[distortion]'
    write("p.toml", PROBLEM.replace("[distortion]", reading))
    assert report("solve", "p.toml")["status"] == "certified"
    say("verify", "s.json", "--problem", "p.toml", "--table", "t.csv")


def test_figures_are_listed_and_run(here):
    listed = command("figures", cwd=here).stdout
    scripts = [p.stem for name in ("figures", "problems") for p in (ROOT / name).glob("*.py")]
    assert sorted(re.findall(r"^\w+/(\w+) +\S", listed, re.M)) == sorted(scripts)
    refused("figures", "nope", pieces=["'nope'", scripts[0]])
    environment = {"CVXPRIVACY_DATA": str(here)}
    done = command("figures", "invariant_pram", "--out", "a", cwd=here, env=environment)
    assert done.returncode == 1
    assert "invariant_pram failed: Set CVXPRIVACY_DATA" in done.stderr
    shutil.copytree(ROOT / "cvxprivacy", "site/cvxprivacy")
    done = command("figures", cwd=here, env={"PYTHONPATH": str(here / "site")})
    assert (done.returncode, done.stdout) == (2, "")
    assert "--root" in done.stderr
    done = command("figures", "gaussian_scalar", "--out", "deep/er", cwd=here)
    assert done.returncode == 0
    assert "certified" in done.stdout
    assert Path("deep/er/gaussian_scalar.png").stat().st_size > 10_000
