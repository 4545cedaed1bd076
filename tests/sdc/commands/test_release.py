"""``release`` and ``apply``: what they write, what they refuse, what they leave behind."""

from __future__ import annotations

import json
import random
import re
import shutil
import stat
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.stats import chi2

import cvxprivacy as cpv
from cvxprivacy_sdc.commands import main
from cvxprivacy_sdc.statements import statement
from tests.lengths import rest_at_length, some_at_length
from tests.public_tables import SAMPLE
from tests.sdc.commands.runner import (
    BOTH,
    OUTPUTS,
    ROOT,
    RUN,
    SEX,
    Terminal,
    command,
    left_open,
    loaded,
    people,
    refused,
    report,
    rows,
    say,
    write,
)  # fmt: skip


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Run the how-to's command on a sample of Adult: tests/docs/test_pages.py does on all of it."""
    folder = tmp_path_factory.mktemp("adult")
    shutil.copy(SAMPLE, folder)
    page = (ROOT / "docs" / "howto" / "table_to_dossier.md").read_text(encoding="utf-8")
    text = re.search(r"\$ cvxprivacy (release(?:[^\n]*\\\n)*[^\n]*)", page)[1]
    words = text.replace("\\\n", " ").split()
    return folder, words, command(*words, cwd=folder)


def test_a_measure_that_tells_nothing_is_said_to(here):
    """Most are well in both cells, so that nobody guesses better than without the key."""
    counts = {("no", "a"): 60, ("yes", "a"): 20, ("no", "b"): 50, ("yes", "b"): 40}
    lines = [f"{ill},{cell}" for (ill, cell), count in counts.items() for _ in range(count)]
    write("well.csv", "\n".join(["ill,key", *lines]) + "\n")
    roles = "--sensitive", "ill", "--key", "key", "--budget", 0.1
    nothing = "note: in {}, key itself tells no more about ill than no release does"
    for measure, text in (("guessing-probability", True), ("total-variation", False)):
        outcome = say("release", "well.csv", *roles, "--leakage", measure).out
        assert (nothing.format(measure.replace("-", " ")) in outcome) == text


def test_a_negative_bias_is_no_negative_share(here):
    """ill, key and twin tell the same: 2 cells for 2 + 2 values, so the formula is negative."""
    lines = [f"{i % 2},{i % 2},{'ab'[i % 2]}" for i in range(200)]
    write("same.csv", "\n".join(["ill,key,twin", *lines]) + "\n")
    text = say("release", "same.csv", "--sensitive", "ill", "--key", "key", "--budget", 0.1).out
    short = "as fewer cells occur than values of both less one"
    assert f"risk before      1 bits, too low by about 0.0036 (Miller–Madow), {short}" in text
    assert re.search(
        r"twin +1.0000 bits \(0.9\d+ to 1.0\d+; bias 0.0000 taken off; 2 values\)", text
    )
    assert "-0.00" not in text


def test_the_notes_of_a_report_are_in_its_units(here):
    few = ["release", write("few.csv", "ill,key\na,1\na,1\na,1\nb,2\nb,1\n"), "--sensitive", "ill"]
    notes = report(*few, "--key", "key", "--budget", 0.1, "--units", "nats")["notes"]
    assert [note for note in notes if "plug-in risk" in note and " nats " in note]
    lines = [f"{i % 2},{i % 3},{i * i % 211 + i % 2 * 99}" for i in range(300)]
    few = ("release", write("few.csv", "\n".join(["ill,key,grade", *lines])), "--sensitive", "ill")
    text = say(*few, "--key", "key", "--budget", 0.1).out
    assert re.search(r"grade +at least .* values in 20 intervals\)", text)
    (grade,) = report(*few, "--key", "key", "--budget", 0.1)["untouched"]
    assert (grade["intervals"], grade["kind"]) == (20, "drop")
    assert grade["words"] in text
    notes = report("release", "t.csv", *SEX)["notes"]
    assert [note for note in notes if note.startswith("drop id and note: each has fewer")]


def test_a_seed_decides_the_draw_and_none_is_a_fresh_one(kept, here):
    texts = []
    for seed in (("--seed", 1), ("--seed", 2), (), ()):
        say("apply", kept / "c.json", "t.csv", *seed, "--out", "n.csv", "--force")
        texts.append(Path("n.csv").read_bytes())
    assert texts[0] == (kept / "o.csv").read_bytes()
    assert len(set(texts)) == 4
    for name in ("p.json", "c.json"):
        assert stat.S_IMODE((kept / name).stat().st_mode) == 0o600


@pytest.mark.long
def test_the_report_says_what_the_user_must_know(released, monkeypatch):
    folder, words, done = released
    assert (done.returncode, done.stderr) == (0, "")
    names = ("risk before", "risk after", "distortion of age", "distortion of sex", "budget")
    before, after, age, sex, price = (
        float(re.search(rf"{name} +([-+]?\d[\d.e+-]*)", done.stdout)[1]) for name in names
    )
    assert after < before / 2
    assert age + sex == pytest.approx(0.1, abs=1e-6)
    assert price < 0
    records = f"{len(rows(folder / 'adult.csv')):,} records"
    for piece in (records, "certified", "enclosure", "small-sample bias", "education-num",
                  "note: drop or coarsen relationship (1.0", "tells more bits"):  # fmt: skip
        assert piece in done.stdout
    assert re.search(r"by itself:\n  (\S+)", done.stdout)[1] == "relationship"  # greatest first

    monkeypatch.chdir(folder)
    summary = report(*words, "--force")
    terms, price_said = summary["terms"], summary["prices"]["budget"]
    shown = [summary["risk_before"], terms["risk"][1], terms["distortion of age"][1], price_said]
    assert shown == pytest.approx([before, after, age, price], 1e-4)
    assert summary["lower"] <= terms["risk"][1] <= summary["upper"] + 1e-12
    assert f"{summary['released']['changed']:,} of them changed" in done.stdout
    assert any("relationship" in note for note in summary["notes"])


def test_the_released_table_follows_the_channel_and_all_else_is_copied(released):
    folder, _, _ = released
    old, new = rows(folder / "adult.csv"), rows(folder / "released.csv")
    assert len(old) == len(new) == 200
    strip = re.compile(rb'^(?:"[^"]*"|[^,]*)((?:,[^,]*){8}),[^,]*(.*)$', re.M)  # age 1st, sex 10th
    first, second = (strip.sub(rb"\1\2", (folder / f"{n}.csv").read_bytes())
                     for n in ("adult", "released"))  # fmt: skip
    assert first == second

    channel = loaded(folder / "channel.json")
    inputs, outputs = (list(map(tuple, channel[side])) for side in ("inputs", "outputs"))
    recorded = {letter: Counter() for letter in inputs}
    for a, b in zip(old, new, strict=True):
        decade = int(a["age"]) // 10 * 10
        recorded[f"[{decade}, {decade + 10})", a["sex"]][b["age"], b["sex"]] += 1
    for letter, row in zip(inputs, channel["matrix"], strict=True):
        counts = np.array([recorded[letter][y] for y in outputs], float)
        expected = counts.sum() * np.array(row)
        assert counts[expected > 0].sum() == recorded[letter].total()
        few = expected < 5  # pooled
        pairs = [*zip(counts[~few], expected[~few], strict=True)]
        pairs += [(counts[few].sum(), max(expected[few].sum(), 1))]
        off = sum((recorded - wanted) ** 2 / wanted for recorded, wanted in pairs)
        assert len(pairs) == 1 or chi2.sf(off, len(pairs) - 1) > 1e-4, letter


FILES = {  # what stands in the file, what the message says
    "ragged": ("sex,ill\nM,no\nF\n", ["line 3", "1 field where the header has 2"]),
    "latin-1": ("sex,ill\nM,né\n".encode("latin-1"), ["line 2", "0xe9", "--encoding"]),
    "no such key": ("sx,ill\nM,no\n", ["no column 'sex'", "sx"]),
    "header only": ("sex,ill\n", ["no records"]),
    "circumflexes": ("sex^ill\nM^no\n", ["no column 'ill'"]),
    "missing": ("sex,ill\n,no\nM,yes\n", ["missing", "'sex'"]),
    "1e5 levels": ("sex,ill\n" + "".join(f"a{i},{i % 2}\n" for i in range(100_000)),
                   ["100,000", "bins", "'sex'"]),
    "5e3 levels": ("sex,ill\n" + "".join(f"a{i % 5000},{i % 2}\n" for i in range(9000)),
                   ["5,000", "--key", "4,000", "sex (5,000 levels)"]),
}  # fmt: skip


def test_too_many_cells_are_refused_with_bands_that_would_do(here):
    rows = [f"{i % 2500 + 0.5},{i // 2500 % 2},{i % 3}" for i in range(9000)]
    write("f.csv", "pay,sex,ill\n" + "\n".join(rows))
    cells = "5,000 observed cells of pay (2,500 levels) × sex (2 levels)"
    messages = [cells, "--bins pay=5,"]  # with 2 there would be 1,250 intervals
    roles = ("--sensitive", "ill", "--key", "sex,pay", "--budget", "0.1")
    refused("release", "f.csv", *roles, *OUTPUTS, pieces=messages)


@pytest.mark.parametrize("name", FILES)
def test_a_malformed_table(name, here):
    write("f.csv", FILES[name][0])
    refused("release", "f.csv", *SEX, *OUTPUTS, pieces=FILES[name][1])


OPTIONS = [  # option, value, what the message says
    ("--bins", "age=", "'age='"), ("--bins", "age=x", "'x' for 'age'"),
    *(("--bins", f"age={v}", f"{v}.0 is out of range") for v in ("0", "-1")),
    ("--bins", "age=nan", "nan is out of range"), ("--bins", "age=3:2", "edges [3.0, 2.0]"),
    ("--bins", "age=30:40", "lie outside [30, 40)"), ("--bins", "age=1e-9", "intervals"),
    ("--bins", "age=10,age=20", "'age' twice"),
    ("--bins", "age", "age=10"), ("--bins", "=3", "age=10"), ("--bins", "nope=3", "nope"),
    ("--bins", "sex=10", "no number"), ("--bins", "id=10", "id"),
    *(("--distortion", f"age=ordinal,sex={v}", f"'{v}' ") for v in
      ("foo", "-1*hamming", "e*hamming", "nan*hamming")),
    ("--distortion", "age=ordinal,sex=", "'sex='"), ("--distortion", "sex=a,sex=b", "'sex' twice"),
    ("--distortion", "age=ordinal,sex=absolute_error", "no numbers"),
    ("--distortion", "sex=hamming", "age"), ("--distortion", "age", "age=ordinal"),
    ("--distortion", "nope=ordinal", "key column"),
    *(("--criterion", v, v.split("=")[0]) for v in ("Foo", "Foo=1", "tclosenes=1", "TCloseness",
      "TCloseness=", "TCloseness=x", "PreserveMarginal=1", "ForbiddenMoves=1")),
    *(("--criterion", f"TCloseness={v}", v) for v in ("-1", "nan")),
    *(("--criterion", v, f"{v!r}; did you mean {w}?") for v, w in (
        ("KAnonymity:5", "KAnonymity=5"), ("tcloseness:0.2:emd", "TCloseness=0.2:emd"),
        ("PerfectPrivacy:kl", "PerfectPrivacy"), ("PerLetter:", "PerLetter=NUMBER"))),
    ("--leakage", "nope", "nope"), ("--leakage", "sibson", "sibson:NUMBER"),
    ("--leakage", "gain", "guessing-probability"),
    ("--leakage", "f-information", "did you mean 'mutual-information'?"),
    *(("--criterion", v, w) for v, w in (("TCloseness=1:far", "far"), ("PerLetter=1", "measure"),
      ("PerLetter=1:nope", "nope"), ("PerLetter=1:sibson", "sibson:NUMBER"),
      ("PerLetter=1:sibson:x", "'x'"), ("PerLetter=1:chi-squared:2", "write chi-squared"),
      ("RecordEntropy=3:emd", "emd"), ("PerLetter=1:sibson:1", "> 1"))),
    ("--criterion", "RecordEntropy=0.5", "0.5"), ("--criterion", "RecordEntropy=1000", "300"),
    ("--criterion", "KAnonymity=1000", "300"),
    ("--criterion", "KeepProbability=2", "2"), ("--criterion", "LDiversity=3", "2"),
    *(("--budget", v, v) for v in ("-1", "nan", "inf", "x")),
    *(("--seed", v, v) for v in ("-1", "1.5", "x")),
    ("--missing", "foo", "level"), ("--encoder", "y", "wx"), ("--units", "x", "nats"),
    ("--weights", "nope", "nope"), ("--weights", "ill", "ill"),
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
    base = [part for part in BOTH if option != "--bins" or part not in ("--bins", "age=10")]
    refused("release", "t.csv", *base, *OUTPUTS, option, value, pieces=[piece])
    if value in ("nope", "-1"):  # refused even where nothing is drawn
        refused("release", "t.csv", *base, option, value, pieces=[piece])


def test_of_a_table_no_law_is_asked(here):
    how = ("release", "t.csv", *BOTH, "--criterion", "KAnonymity=5", "--ensure", "law")
    refused(*how, "--seed", 1, "--out", "o.csv", pieces=["KAnonymity(5)", "--ensure table"])
    assert not Path("o.csv").exists()


@pytest.mark.parametrize("encoder", rest_at_length(["x", "wx"], 1))
def test_whole_counts_are_designed_stored_and_released_again(encoder, here):
    asked = ("--criterion", "KAnonymity=30", "--criterion", "TCloseness=0.05")
    how = ("release", "t.csv", *RARE, *asked, "--encoder", encoder, "--seed", 1)
    files = ("--out", "o.csv", "--channel", "c.json", "--report", "r.html", "--problem-out",
             "p.toml", "--certificate", "p.json")  # fmt: skip
    summary = report(*how, *files)
    assert [c["criterion"] for c in summary["checks"]] == ["KAnonymity(30)", "TCloseness(0.05)"]
    assert all(c["table"]["holds"] and c["law"]["holds"] for c in summary["checks"])
    assert all(c["table"]["value"] == c["law"]["value"] for c in summary["checks"])
    designed = summary["designed"]
    assert designed["blind"] is (encoder == "x")
    assert designed["lower"] <= designed["distortion"] == summary["drawn"]["distortion"]
    moved = sum(a != b for a, b in zip(rows("t.csv"), rows("o.csv"), strict=True) if
                (a["sex"] != b["sex"] or band(a["age"]) != b["age"]))  # fmt: skip
    assert moved == summary["released"]["changed"] == round(300 * designed["distortion"])
    sizes = Counter((row["age"], row["sex"]) for row in rows("o.csv"))
    assert min(sizes.values()) >= 30
    assert audited("o.csv", code=0) == {"TCloseness(0.05)": (0, 0)}
    say("apply", "c.json", "t.csv", "--seed", 1, "--out", "again.csv")
    assert Path("again.csv").read_bytes() == Path("o.csv").read_bytes()
    say("verify", "p.json", "--table", "t.csv", "--problem", "p.toml")
    write("fewer.csv", "".join(people().splitlines(keepends=True)[:-1]))
    pieces = ["table that was counted"]
    refused("apply", "c.json", "fewer.csv", "--seed", 1, "--out", "f.csv", pieces=pieces)
    write("report.json", json.dumps(summary))
    again = ("verify", "--table", "t.csv", "--released", "o.csv", "--report", "report.json")
    assert "counted again, and as report.json says" in say(*again).out


def test_a_budget_and_groups_are_kept_by_the_table(here):
    asked = ("--criterion", "KAnonymity=25", "--budget", 0.3, "--ensure", "table")
    summary = report("release", "t.csv", *RARE, *asked, "--seed", 1, "--out", "o.csv")
    assert "undesigned" not in summary
    assert {check["standing"] for check in summary["checks"]} == {"holds"}
    words = summary["designed"]["words"]
    leaks = re.search(r"I\(W; X̂\) is (\S+) bits; no table within the budget tells less than", words)
    assert float(leaks[1]) == pytest.approx(summary["drawn"]["risk"], rel=1e-5)
    assert summary["designed"]["value"] == pytest.approx(summary["drawn"]["risk"], rel=1e-12)
    assert min(Counter((row["age"], row["sex"]) for row in rows("o.csv")).values()) >= 25


def test_a_budget_that_is_spent_to_the_last_record_holds(here):
    """Of whole counts the law is the table, so that nothing about it is unproved."""
    write("s.csv", "\n".join(["ill,age", *["no,20"] * 5, *["yes,20"] * 2, *["yes,30"] * 3]) + "\n")
    roles = "--sensitive", "ill", "--key", "age", "--encoder", "wx", "--ensure", "table"
    summary = report("release", "s.csv", *roles, "--budget", 0.3, "--seed", 1, "--out", "o.csv")
    [check] = summary["checks"]
    assert (check["table"]["value"], check["law"]["holds"], check["standing"]) == (
        0.3,
        True,
        "holds",
    )
    assert not any("merged" in note for note in summary["notes"])


@pytest.mark.parametrize(("how", "why"), rest_at_length([
    (("--draw", "balanced"), "balanced"), (("--time-limit", 1e-4), "no time"),
], 1))  # fmt: skip
def test_groups_of_k_where_the_table_is_drawn(how, why, here):
    code = 5 if why == "no time" else None  # the law is loose then
    asked = ("--criterion", "KAnonymity=25", "--criterion", "TCloseness=0.08")
    summary = report(
        "release", "t.csv", *RARE, *asked, *how, "--seed", 1, "--out", "o.csv", code=code
    )
    assert "designed" not in summary
    assert summary["undesigned"]["reason"] == why
    check = next(c for c in summary["checks"] if c["criterion"] == "KAnonymity(25)")
    assert check["standing"] == "holds"
    assert check["table"]["value"] >= 25
    sizes = Counter((row["age"], row["sex"]) for row in rows("o.csv"))
    assert min(sizes.values()) == check["table"]["value"]
    printed = say(
        "release", "t.csv", *RARE, *asked, *how, "--seed", 1, "--out", "o2.csv", code=code
    )
    assert "KAnonymity(25)" in printed.out
    assert f"note: {summary['undesigned']['words']}" in printed.out


def test_of_too_many_cells_groups_alone_are_asked_for(here, monkeypatch):
    """No program has room for record entropy of them; the law is free, and its proof says so."""
    monkeypatch.setattr(statement, "MOST_ENTRIES", 20)
    how, of_law = ("release", "t.csv", *RARE, "--seed", 1), ("--criterion", "TCloseness=0.1")
    refused(*how, "--criterion", "KAnonymity=30", *of_law, pieces=["about 4 can be solved for"])
    files = ("--out", "o.csv", "--certificate", "p.json", "--problem-out", "p.toml")
    summary = report(*how, "--criterion", "KAnonymity=30", *files)
    assert (summary["upper"], summary["designed"]["status"]) == (0, "proved optimal")
    assert min(Counter((row["age"], row["sex"]) for row in rows("o.csv")).values()) >= 30
    assert any(note.endswith("its problem file ask for nothing") for note in summary["notes"])
    say("verify", "p.json", "--table", "t.csv", "--problem", "p.toml")
    say("solve", "p.toml")


def test_each_of_two_of_a_kind_is_checked(here):
    asked = ("--criterion", "KAnonymity=30", "--criterion", "KAnonymity=5")
    summary = report("release", "t.csv", *RARE, *asked, "--seed", 1, "--out", "o.csv")
    assert [c["criterion"] for c in summary["checks"]] == ["KAnonymity(30)", "KAnonymity(5)"]
    assert min(Counter((row["age"], row["sex"]) for row in rows("o.csv")).values()) >= 30


def test_whole_counts_of_parquet_are_released_and_applied(here):
    frame = pandas.read_csv("t.csv")
    frame.to_parquet("t.parquet", index=False)
    how = (*RARE, "--criterion", "TCloseness=0.05", "--seed", 1)
    summary = report("release", "t.parquet", *how, "--out", "o.parquet", "--channel", "c.json")
    assert summary["designed"]["blind"]
    say("apply", "c.json", "t.parquet", "--seed", 1, "--out", "again.parquet")
    again, first = (pandas.read_parquet(name) for name in ("again.parquet", "o.parquet"))
    assert again.equals(first)


def every_criterion():
    from cvxprivacy_sdc.commands.release import _criteria

    return [typed for typed, _ in _criteria() if "DistinctDiversity" not in typed]


@pytest.mark.parametrize("typed", some_at_length(every_criterion(), 3))
@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_every_criterion_goes_through_a_release(typed, encoder, here):
    """Its table is designed, or drawn and mended, or refused, and nothing fails otherwise."""
    how = ("release", "t.csv", *RARE, "--criterion", typed, "--encoder", encoder, "--seed", 1)
    code = main_code(*how, "--no-untouched", "--time-limit", 20, "--out", "o.csv")
    assert code in (0, 2, 3, 5)
    assert Path("o.csv").exists() == (code in (0, 5))


def test_a_cap_whatever_the_prior_is_drawn_and_not_designed(here):
    how = ("release", "t.csv", *SEX[:4], "--criterion", "CapacityCap=0.05", "--seed", 1)
    assert "designed" not in report(*how, "--out", "o.csv", code=None)


def test_a_sequel_is_asked_for_no_groups(here):
    first = ("release", "t.csv", *RARE, "--budget", 0.1, "--seed", 1, "--row-id", "id")
    say(*first, "--out", "o.csv", "--channel", "c.json")
    again = ("--after", "o.csv", "--after-channel", "c.json", "--criterion", "KAnonymity=5")
    how = ("release", "t.csv", *RARE, *again, "--budget", 0.1, "--seed", 2, "--row-id", "id")
    refused(*how, "--out", "o2.csv", pieces=["KAnonymity(5)", "--after"])


def test_floors_of_whole_counts_are_kept_by_them(here):
    how = ("release", "t.csv", *RARE, "--criterion", "KeepProbability=0.8", "--seed", 1)
    (check,) = report(*how, "--out", "o.csv")["checks"]
    assert check["law"]["holds"] is True
    assert check["standing"].startswith("holds by the randomisation")


def main_code(*args):
    """Return how the command ends."""
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in args], prog_name="cvxprivacy")
    return done.value.code or 0


def band(age):
    low = int(float(age)) // 10 * 10
    return f"[{low}, {low + 10})"


@pytest.mark.long
def test_criteria_that_exclude_each_other(here):
    both = ("--criterion", "TCloseness=0", "--criterion", "KeepProbability=1")
    args = ("release", "t.csv", *SEX[:-2], *both)
    remedies = [
        "t_closeness would have to be at least about 0.",
        "keep_probability would have to be at",
    ]
    refused(*args, *OUTPUTS, code=3, pieces=remedies)
    error = report(*args, code=3)["error"]
    assert error["kind"] == "infeasible"
    assert set(error["extremes"]) == {"t_closeness", "keep_probability"}
    assert report(*args, "--weights", "nope", code=2)["error"]["kind"] == "input"


@pytest.mark.parametrize("text", ["M,no\nF,no\n", "M,no\nM,yes\n", "M,no\n"])
def test_a_column_of_one_value_has_nothing_to_hide_and_nothing_is_changed(text, here):
    write("f.csv", "sex,ill\n" + text * 50)
    summary = report("release", "f.csv", *SEX, *OUTPUTS, "--seed", 1)
    assert summary["risk_before"] == summary["lower"] == summary["upper"] == 0
    assert summary["status"] == "certified"
    say("verify", "p.json", "--table", "f.csv")
    assert Path("o.csv").read_bytes() == Path("f.csv").read_bytes()


@pytest.mark.parametrize("missing", ["level", "drop"])
def test_missing_values(missing, here):
    holed = re.sub(r"^(\d*[05]),\d+", r"\1,?", people(), flags=re.M)
    write("m.csv", re.sub(r"^(\d*7),(\d+),\w,", r"\1,\2,?,", holed, flags=re.M))
    args = ("release", "m.csv", *BOTH, "--na", "?", *OUTPUTS)
    refused(*args, pieces=["missing", "--missing level", "--missing drop", "--na"])
    summary = report(*args, "--missing", missing, "--seed", 1)
    say("verify", "p.json", "--table", "m.csv")
    say("apply", "c.json", "m.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()
    write("q.csv", "age,sex\n?,M\n25,M\n25,Q\n")
    refused("apply", "c.json", "q.csv", "--out", "x.csv", pieces=["q.csv, record 3", "'Q'"])
    old, new = rows("m.csv"), rows("o.csv")
    values = [row for row in old if "?" not in (row["age"], row["sex"])]
    assert summary["records"] == summary["released"]["records"] == len(new)
    assert summary["dropped"] == summary["released"]["dropped"] == len(old) - len(new)
    assert ("?" in {row["age"] for row in new}) == (missing == "level")
    for column in ("id", "ill", "note"):
        kept = old if missing == "level" else values
        assert [row[column] for row in kept] == [row[column] for row in new]


@pytest.mark.parametrize(
    ("mark", "end", "delimiter", "encoding"),
    some_at_length([*product([b"", b"\xef\xbb\xbf"], [b"\n", b"\r\n"], ",;\t", ["utf-8"]),
     *product([b""], [b"\r\n"], ",;\t", ["latin-1"])], 5),
)  # fmt: skip
def test_bytes_outside_the_key_columns_stay(mark, end, delimiter, encoding, here):
    lines = [[f'"é ""{i}"", {i}"' if i % 3 else f"ü{i}", "ny"[i % 7 > i % 2], "MF"[i % 2]]
             for i in range(80)]  # fmt: skip
    text = [delimiter.join(f).encode(encoding) for f in [['"no, te"', "ill", "sex"], *lines]]
    ending = "tsv" if delimiter == "\t" else "csv"
    name = write(f"f.{ending}", mark + end.join([*text, b"", b""]))
    how = ["--delimiter", ";"] * (delimiter == ";")
    how += ["--encoding", encoding] * (encoding != "utf-8")
    outputs = [f"o.{ending}" if word == "o.csv" else word for word in OUTPUTS]
    say("release", name, *SEX, *how, *outputs, "--no-untouched", "--seed", 1)
    say("verify", "p.json", "--table", name)
    say("apply", "c.json", name, "--out", f"n.{ending}", "--seed", 1)  # read as the first was
    old, new = Path(name).read_bytes(), Path(f"o.{ending}").read_bytes()
    assert Path(f"n.{ending}").read_bytes() == new
    last = re.compile(rb"(?<=[;,\t])[MF](?=\r?\n)")
    assert last.sub(b"", new) == last.sub(b"", old)
    assert len(last.findall(new)) == 80


@pytest.mark.parametrize("name", rest_at_length(['h"i', "c=d", "a,b", "j:k", "e f", " g"], 1))
def test_any_name_of_a_column_can_be_typed(name, here):
    quoted = '"' + name.replace('"', '""') + '"'
    write("f.csv", f"{quoted},ill\n" + "".join(f"{i % 7},{'ny'[i % 3 > 1]}\n" for i in range(90)))
    key = ("--sensitive", "ill", "--key", name, "--budget", "0.1")
    bins, measure = ("--bins", f"{name}=2"), ("--distortion", f"{name}=2*ordinal")
    for options in ((), (*bins, *measure)):
        say("release", "f.csv", *key, *options, *OUTPUTS, "--force")
        say("verify", "p.json", "--table", "f.csv")
        text = say("verify", "p.json", "--problem", "r.toml").out
        assert text.endswith("r.toml: the proof is of this problem\n")
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
         ("PreserveMarginal",), ("RecordEntropy", 100)]  # fmt: skip
MEASURED = [
    ("TCloseness=0.2:emd", cpv.TCloseness(0.2, "emd")),
    ("TCloseness=0.2:tv", cpv.TCloseness(0.2, "tv")),
    (
        "LeakageCap=0.7:guessing-probability",
        cpv.LeakageCap(0.7, leakage=cpv.leakage.GuessingProbability()),
    ),
    ("PerLetter=0.1:hockey-stick:1.5", cpv.PerLetter(cpv.leakage.HockeyStick(1.5), 0.1)),
    ("PerfectPrivacy", cpv.PerfectPrivacy()),
]

TYPED = [  # what is typed, and the arguments that it stands for
    (["--encoder", "wx", "--units", "nats"], {"encoder": "wx", "units": "nats"}),
    (["--weights", "weight"], {"weights": "weight"}),
    (["--prior", "any"], {"prior": "any"}),
    (["--leakage", "chi-squared"], {"leakage": cpv.leakage.ChiSquared()}),
    (["--leakage", "hockey-stick:1.5"], {"leakage": cpv.leakage.HockeyStick(1.5)}),
    (["--leakage", "power-divergence:1.5"], {"leakage": cpv.leakage.PowerDivergence(1.5)}),
    (["--leakage", "vincze-le-cam"], {"leakage": cpv.leakage.VinczeLeCam()}),
    (["--leakage", "jensen-shannon"], {"leakage": cpv.leakage.JensenShannon()}),
    *((["--criterion", typed], {"criteria": [rule]}) for typed, rule in MEASURED),
    *((["--criterion", "=".join(map(str, rule))], {"criteria": [getattr(cpv, rule[0])(*rule[1:])]})
      for rule in RULES),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("budget", rest_at_length([0.9, None], 1))
@pytest.mark.parametrize(
    ("typed", "options"), some_at_length(TYPED, 7), ids=lambda value: str(value)[:40]
)
def test_an_option_is_the_librarys_argument(typed, options, budget, here):
    frame = pandas.read_csv("t.csv")
    frame["weight"] = (frame["id"] % 5 + 1) / 4
    frame.to_csv("w.csv", index=False)
    options, key = dict(options), {"key": ["age", "sex"], "bins": {"age": 10}}
    if budget is None and {"leakage", "prior"} & options.keys():
        rule = ("--criterion", "LDiversity=1.8")
        refused("release", "w.csv", *BOTH[:-2], *typed, *rule, *OUTPUTS, pieces=["--budget"])
        return
    key["weights"] = options.pop("weights", None)
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", **key)
    if budget is None:
        problem, more = cpv.MinimumDistortion, ["--criterion", "LDiversity=1.8"]
        options["criteria"] = [*options.get("criteria", ()), cpv.LDiversity(1.8)]
    else:
        problem, more, options["budget"] = cpv.PrivacyDistortion, ["--budget", budget], budget
    solution = problem(source, cpv.hamming(source.x), **options).solve()
    how = (*typed, *more, *OUTPUTS, "--seed", 1, "--ensure", "law")
    summary = report("release", "w.csv", *BOTH[:-2], *how)
    assert summary["risk_before"] == source.information(units=summary["units"])
    assert summary["status"] == solution.status == "certified"
    assert [summary["lower"], summary["upper"]] == [solution.lower, solution.upper]
    if "leakage" in options:
        answer = summary["leakage"]
        assert answer["after"] == float(solution.risk)
        assert answer["none"] - 1e-9 <= answer["after"] <= answer["before"]
        assert summary["terms"]["information"] == list(solution.certificate.terms["information"])
    assert loaded("c.json")["matrix"] == solution.channel.matrix.tolist()
    say("verify", "p.json", "--table", "w.csv", "--problem", "r.toml")
    say("apply", "c.json", "w.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()
    if "wx" in typed:
        write("n.csv", people().replace("ill", "il"))
        refused("apply", "c.json", "n.csv", "--out", "x.csv", pieces=["'ill'"])


def counted_given_x(name="o.csv"):
    """Return I(W; X, X̂), and the share of records that are sure, by the rows of two tables."""
    cells = [(row["ill"], f"{int(row['age']) // 10}{row['sex']}") for row in rows("t.csv")]
    released = [row["age"] + row["sex"] for row in rows(name)]
    pairs = Counter((w, x, y) for (w, x), y in zip(cells, released, strict=True))
    groups, ill = Counter(), Counter()
    for (w, x, y), count in pairs.items():
        groups[x, y] += count
        ill[w] += count
    n = len(cells)
    information = sum(
        k / n * np.log2(k * n / (groups[x, y] * ill[w])) for (w, x, y), k in pairs.items()
    )
    sure = sum(k for (x, y), k in groups.items()
               if max(pairs[w, x, y] for w in ill) * 20 >= k * 19) / n  # fmt: skip
    return information, sure


@pytest.mark.parametrize("merge", rest_at_length([False, True], 1))
def test_what_an_encoder_of_w_tells_who_knows_the_key_is_told(merge, here):
    """On the law by its certificate's own channel, and on the table by its rows."""
    how = [*BOTH, "--encoder", "wx", "--seed", 1, "--out", "o.csv", "--report", "a.json"]
    how += ["--criterion", "RecordEntropy=30", "--ensure", "table"] if merge else []
    summary = report("release", "t.csv", *how, "--channel", "c.json", "--report", "a.html")
    informed = summary["informed"]
    assert informed["before"] == pytest.approx(summary["risk_before"], abs=1e-9)
    assert informed["after"] > informed["before"] > summary["released_law"]["risk"]
    cautions = [note for note in summary["notes"] if note.startswith("the randomisation saw ill")]
    assert len(cautions) == 1
    assert merge or cautions == [informed["caution"]]
    information, sure = counted_given_x()
    assert informed["table"]["after"] == pytest.approx(information, abs=1e-9)
    assert informed["table"]["sure"] == pytest.approx(sure, abs=1e-9)
    if not merge:
        assert "merged" not in summary
        low, high = summary["terms"]["informed_risk"]
        assert low <= informed["after"] <= high
    text = say("release", "t.csv", *how, "--force", "--report", "a.html").out
    assert "  who knows age, sex " in text
    assert "who knows age, sex, of the table that was drawn: learns" in text
    assert text.count(cautions[0]) == 1
    if "merged" in summary:
        assert "who knows age, sex, of the randomisation after groups were merged: learns" in text
    facts = loaded("a.json")
    assert informed["caution"] in facts["cautions"]
    assert facts["figures"]["informed"]["after"] == float(f"{informed['after']:.4g}")
    assert f"{informed['after']:.4g} bits" in Path("a.html").read_text(encoding="utf-8")
    assert "may learn more than from" in Path("a.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_a_cap_on_what_is_told_to_who_knows_the_key_is_typed_proved_and_judged(here):
    how = [*BOTH, "--encoder", "wx", *OUTPUTS, "--seed", 1, "--ensure", "law"]
    how += ["--criterion", "ConditionalLeakageCap=0.02"]
    printed = say("release", "t.csv", *how, code=None).out
    summary = report("release", "t.csv", *how, "--force", code=None)
    assert summary["informed"]["after"] <= summary["informed"]["before"] + 0.02 + 1e-9
    assert summary["prices"]["conditional_leakage_cap"] < 0
    (check,) = (c for c in summary["checks"] if c["name"] == "conditional_leakage_cap")
    assert check["law"]["holds"] is True
    information, _ = counted_given_x()
    assert check["table"]["value"] == pytest.approx(information - summary["risk_before"], abs=1e-6)
    assert check["table"]["holds"] is (check["table"]["value"] <= 0.02)
    assert "ConditionalLeakageCap(0.02)" in printed
    say("verify", "p.json", "--table", "t.csv", "--problem", "r.toml")
    blind = [*how[:-2], "--encoder", "x", "--criterion", "ConditionalLeakageCap=0.02"]
    note = "conditional_leakage_cap binds nothing: I(W; X̂ | X) is 0 for every release"
    assert note in report("release", "t.csv", *blind, "--force", code=None)["notes"]


def test_the_order_that_the_earth_mover_takes_is_said(here):
    note = "the earth mover's distance takes ill in the order"
    typed = ("release", "t.csv", *SEX, "--leakage", "earth-mover", "--seed", 1)
    assert any(note in text for text in report(*typed)["notes"])
    assert say(*typed).out.count(note) == 1
    assert note not in say("release", "t.csv", *SEX, "--leakage", "chi-squared", "--seed", 1).out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_values_without_mass_are_said_in_one_line(ending, here):
    """A record of weight 0 is released, but its sex has no mass in the law that is proved."""
    frame = pandas.read_csv("t.csv").assign(weight=1.0)
    frame.loc[len(frame)] = [300, 30, "X", "no", "n", 0.0]
    write_frame = frame.to_csv if ending == "csv" else frame.to_parquet
    write_frame(f"w.{ending}", index=False)
    outputs = [f"o.{ending}" if part == "o.csv" else part for part in OUTPUTS]
    how = ("release", f"w.{ending}", *SEX, "--weights", "weight", *outputs, "--seed", 1)
    note = "1 record has a value without mass in the source: the proof does not cover"
    printed = say(*how)
    assert printed.err == ""
    assert [line for line in printed.out.splitlines() if line.startswith(f"note: {note}")]
    next_month = ("apply", "c.json", f"w.{ending}", "--seed", 1, "--out", f"n.{ending}")
    printed = say(*next_month)
    assert printed.err == ""
    assert printed.out.splitlines()[1].startswith(f"note: {note}")
    assert report(*next_month, "--force")["notes"][0].startswith(note)
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
        how = ("--seed", seed, "--row-id", "id", "--force")
        say("apply", "c.json", "next.csv", "--out", "n.csv", *how)
        after = {row["id"]: (row["age"], row["sex"]) for row in rows("n.csv")}
        stayed = before.keys() & after.keys()
        assert (len(after), len(stayed)) == (300, 250)
        assert all(before[i] == after[i] for i in stayed) is same
    write("twice.csv", "\n".join([header, *lines, lines[0]]))
    twice = ("apply", "c.json", "twice.csv", "--row-id", "id", "--seed", 5)
    refused(*twice, "--out", "n2.csv", pieces=["'0'"])


NEXT = ("--criterion", "TCloseness=0.05", "--criterion", "KAnonymity=20")


@pytest.mark.parametrize("how", [(), ("--row-id", "id"), ("--draw", "balanced")])
def test_next_month_is_merged_until_it_keeps_what_is_asked(kept, how, here):
    shutil.copy(kept / "c.json", "c.json")
    write("next.csv", "\n".join(people().splitlines()[:241]) + "\n")
    drawn = ("apply", "c.json", "next.csv", "--seed", 5, *how)
    say(*drawn, "--out", "d.csv")
    summary = report(*drawn, *NEXT, "--out", "n.csv")
    audit = (
        "audit",
        "next.csv",
        "n.csv",
        *RARE,
        "--criterion",
        "TCloseness=0.05",
        "--bootstrap",
        0,
    )
    report(*audit, "--criterion", "KAnonymity=20", code=0)
    sizes = Counter((row["age"], row["sex"]) for row in rows("n.csv"))
    assert (len(sizes), min(sizes.values())) == (summary["groups"], summary["smallest"])
    assert summary["smallest"] >= 20
    assert all(check["table"]["holds"] for check in summary["checks"])
    assert not all(check["drawn"]["holds"] for check in summary["checks"])
    apart = sum((a["age"], a["sex"]) != (b["age"], b["sex"])
                for a, b in zip(rows("d.csv"), rows("n.csv"), strict=True))  # fmt: skip
    assert apart == sum(move["records"] for move in summary["merged"])
    assert summary["changed_at_least"] <= summary["changed"]
    text = say(*drawn, *NEXT, "--out", "again.csv").out
    assert Path("again.csv").read_bytes() == Path("n.csv").read_bytes()
    assert f"; {summary['changed']} records are changed in all; no merging of these" in text
    assert "nothing that was asked of the first table is checked" not in text
    free = report(*drawn, "--criterion", "KAnonymity=1", "--out", "f.csv")
    assert free["merged"] == []
    assert Path("f.csv").read_bytes() == Path("d.csv").read_bytes()


def test_next_month_that_cannot_be_ensured_is_refused_in_words(kept, here):
    shutil.copy(kept / "c.json", "c.json")
    write("bare.csv", "id,age,sex\n1,25,F\n")
    write("other.csv", "id,age,sex,ill\n1,25,F,no\n2,25,Q,no\n")
    how = ("apply", "c.json", "t.csv", "--out", "n.csv", "--seed", 1)
    refused(*how, "--criterion", "LocalPrivacy=2", pieces=["--criterion", "on a table"])
    for table, pieces in (("bare.csv", ["confidential column", "'ill'"]), ("other.csv", ["'Q'"])):
        refused("apply", "c.json", table, *how[3:], *NEXT, pieces=pieces)
    refused(*how, "--criterion", "LDiversity=1.999", pieces=["LDiversity"], code=3)


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
    how = ("--delimiter", ";", "--na", "n/a", "--na", "", "--encoding", "latin-1", "--decimal", ".")
    say("release", "f.csv", *key, *how, *OUTPUTS)
    write("n.csv", "amount;x;code\n2;é;8\n2;ü;8\n;ö;07\n".encode("latin-1"))  # all code numbers
    say("apply", "c.json", "n.csv", "--out", "r.csv")
    assert re.findall(";(.);", Path("r.csv").read_bytes().decode("latin-1")) == ["x", *"éüö"]
    write("n.csv", "amount,x,code\n2,é,8\n")
    refused("apply", "c.json", "n.csv", "--out", "r2.csv", pieces=["--delimiter"])
    say("apply", "c.json", "n.csv", "--out", "r2.csv", "--delimiter", ",", "--encoding", "utf-8")
    assert "é" in Path("r2.csv").read_text(encoding="utf-8")


def test_steps_are_shown_on_a_terminal_alone(here):
    shown = say("release", "t.csv", *BOTH, stream=Terminal).err
    assert "solving: step   0  gap" in shown
    assert shown.split("solving: ")[-1].split("\r\x1b[K")[1]  # the line is cleared
    assert "solving" not in say("release", "t.csv", *BOTH).err
    assert "solving" not in say("release", "t.csv", *BOTH, "--json", stream=Terminal).err


def test_a_time_limit_leaves_the_best_that_is_proved(here, monkeypatch):
    for seconds in ("0", "nan"):
        messages = [f"--time-limit: {float(seconds)!r}", "> 0"]
        refused("release", "t.csv", *BOTH, "--time-limit", seconds, pieces=messages)
    words = " ".join(say("release", "--help").out.split())
    for piece in ("Seconds after which", "status loose, exit code 5", "Ctrl-C does the same"):
        assert piece in words
    assert "certified" in say("release", "t.csv", *BOTH, "--time-limit", "60").out
    monkeypatch.setattr("cvxprivacy.solvers.watch.Watch.left", 0.0)
    assert "loose" in say("release", "t.csv", *BOTH, "--time-limit", "60", code=5).out


@pytest.mark.long
def test_an_interrupt_releases_what_is_proved_and_says_so_in_a_line(here):
    write("t.csv", "sex,ill\nM,yes\nF,no\nM,no\nF,yes\nM,yes\n")
    stop = "w.Watch.step = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)"
    code = f"import cvxprivacy.solvers.watch as w; {stop}; {RUN}"
    done = command("release", "t.csv", *SEX, "--out", "o.csv", code=code, cwd=here)
    assert done.returncode == 5
    assert done.stderr.splitlines()[0] == (
        "cvxprivacy: interrupted: what is proved so far is returned"
    )
    assert Path("o.csv").exists()


# ---- the drawn table ---------------------------------------------------------------------

RARE = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10")
ASKED = ("--criterion", "RecordEntropy=30", "--criterion", "TCloseness=0.05")


def audited(name, code):
    """Return what the audit of a released file says of the last one asked, and how it ended."""
    how = ("audit", "t.csv", name, *RARE, *ASKED[2:], "--bootstrap", 0)
    (entry,) = report(*how, code=code)["criteria"]
    return {entry["criterion"]: (entry["letters"], entry["records"])}


def test_a_table_that_breaks_what_was_asked_is_told_and_mended(here):
    """Its law does not; an audit of the file counts the same groups, and who joins the rows."""
    how = ("release", "t.csv", *RARE, *ASKED, "--seed", 1)
    law = (*how, "--ensure", "law")
    summary = report(*law, "--out", "o.csv", "--problem-out", "r.toml")
    assert summary["status"] == "certified"
    counted = {
        c["criterion"]: (c["table"]["groups"], c["table"]["records"]) for c in summary["checks"]
    }
    entropy = counted.pop("RecordEntropy(30)")
    sizes = Counter((row["age"], row["sex"]) for row in rows("o.csv"))
    broken = [y for y, k in left_open().items() if k < 30 - 1e-9]
    assert entropy == (len(broken), sum(sizes[y] for y in broken))
    assert counted == audited("o.csv", code=1)
    assert entropy[0]
    assert all(groups for groups, _ in counted.values())
    assert any("--ensure table" in note for note in summary["notes"])
    assert "merged" not in summary
    text = say(*law, "--out", "o2.csv").out
    assert (
        "what was asked, on the randomisation (proved) and on the table that is released:" in text
    )
    assert "BROKEN by" in text
    assert Path("o2.csv").read_bytes() == Path("o.csv").read_bytes()

    mended = report(*how, "--out", "m.csv")
    assert audited("m.csv", code=0) == dict.fromkeys(counted, (0, 0))
    assert all(c["table"]["holds"] for c in mended["checks"])
    assert mended["merged"]["risk"] <= mended["terms"]["risk"][1]
    moved = sum(a["age"] != b["age"] or a["sex"] != b["sex"]
                for a, b in zip(rows("o.csv"), rows("m.csv"), strict=True))  # fmt: skip
    assert moved == mended["merged"]["records"]
    assert "groups of" in say(*how, "--out", "m2.csv", "--ensure", "table").out
    assert Path("m2.csv").read_bytes() == Path("m.csv").read_bytes()


def with_gaps(text):
    """Miss an age in every 17th record, and an illness in every 23rd."""
    head, *lines = text.splitlines()
    kept = [line.split(",") for line in lines]
    for i, line in enumerate(kept):
        line[1] = "" if i % 17 == 0 else line[1]
        line[3] = "" if i % 23 == 0 else line[3]
    return "\n".join([head, *map(",".join, kept)]) + "\n"


@pytest.mark.parametrize(
    ("how", "drawn"),
    some_at_length([
        ((), ()), ((), ("--draw", "balanced")), ((), ("--row-id", "id")),
        ((), ("--draw", "balanced", "--row-id", "id")),
        (("--encoder", "wx"), ()), (("--suppress", 0.4), ()), (("--missing", "level"), ()),
        (("--missing", "drop"), ()), (("--missing", "drop"), ("--draw", "balanced")),
    ], 3),
)  # fmt: skip
def test_the_channel_of_a_mended_table_releases_it_again(how, drawn, here):
    """To the last byte, merged groups included; and its law is that of what was released."""
    write("t.csv", with_gaps(people()) if "--missing" in how else people())
    asked = (*RARE, *ASKED, *how, "--ensure", "table", "--certificate", "p.json")
    seed = ("--seed", 1, *drawn, "--out")
    summary = report("release", "t.csv", *asked, *seed, "o.csv", "--channel", "c.json", code=None)
    assert summary["merged"]["records"]
    assert any("the channel that is kept merges" in note for note in summary["notes"])
    again = report("apply", "c.json", "t.csv", *seed, "again.csv")
    assert Path("again.csv").read_bytes() == Path("o.csv").read_bytes()
    assert any("groups that broke what was asked" in note for note in again["notes"])
    say("verify", "p.json", "--table", "t.csv")
    channel = cpv.Channel.load("c.json")
    letters = {tuple("" if part is None else part for part in y) for y in channel.outputs}
    assert {(row["age"], row["sex"]) for row in rows("o.csv")} <= letters
    released = pandas.read_csv("o.csv", dtype=object, keep_default_na=False, na_values=[""])
    assert channel.estimate(released, method="em").records == len(released)


def test_a_mended_table_of_arrow_is_released_again(parquet):
    how = ("t.parquet", "--seed", 1, "--out")
    report("release", *how, "o.parquet", *RARE, *ASKED, "--ensure", "table", "--channel", "c.json")
    say("apply", "c.json", *how, "again.parquet")
    assert Path("again.parquet").read_bytes() == Path("o.parquet").read_bytes()


def test_what_is_checked_is_what_is_written_record_by_name_too(here):
    """Whatever columns are read for the report, by name or by place."""
    for name, more in (("o.csv", ()), ("n.csv", ("--no-untouched",))):
        named = ("--row-id", "id", "--seed", 3, "--criterion", "RecordEntropy=30")
        how = (*named, *more, "--ensure", "law")
        summary = report("release", "t.csv", *RARE, *how, "--out", name)
        left, table = left_open(name), summary["checks"][0]["table"]
        assert table["value"] == pytest.approx(min(left.values()))
        assert table["groups"] == sum(k < 30 - 1e-9 for k in left.values())
    assert Path("o.csv").read_bytes() == Path("n.csv").read_bytes()


def test_what_cannot_be_mended_ends_with_the_code_of_what_is_infeasible(here, monkeypatch):
    from cvxprivacy_sdc.releases import merging

    monkeypatch.setattr(merging._Groups, "merge", lambda self, group: False)
    how = ("release", "t.csv", *RARE, *ASKED, "--seed", 1, "--out", "o.csv", "--ensure", "table")
    refused(*how, code=3, pieces=["the drawn table breaks", "RecordEntropy(30)"])


@pytest.mark.parametrize(
    ("options", "pieces"),
    [
        (["--ensure", "table", *ASKED], ["--ensure", "--out"]),
        (["--criterion", "LeakageCap=0.1:guess"], ["--criterion", "guessing-probability"]),
        (["--budget", "0.1", "--suppress", "height=1"], ["--suppress", "'height'"]),
        (["--budget", "0.1", "--suppress", "cheap"], ["--suppress", "'cheap'"]),
        (["--budget", "0.1", "--suppress", "-1"], ["--suppress", "-1"]),
        (["--budget", "0.1", "--distortion", "ordinal"], ["--distortion", "age=ordinal"]),
    ],
)
def test_refused_words(options, pieces, here):
    refused("release", "t.csv", *RARE, *options, pieces=pieces)


@pytest.mark.long
def test_the_least_distortion_under_a_cap(here):
    capped = ("--criterion", "LeakageCap=0.01")
    summary = report("release", "t.csv", *RARE, *capped, *OUTPUTS, "--ensure", "table")
    assert summary["terms"]["risk"][1] <= 0.01 + 1e-9
    source = cpv.DiscreteSource.from_table(
        pandas.read_csv("t.csv"), sensitive="ill", key=["age", "sex"], bins={"age": 10}
    )
    least = cpv.MinimumDistortion(source, cpv.hamming(source.x), [cpv.LeakageCap(0.01)]).solve()
    assert summary["lower"] == pytest.approx(least.lower)
    (check,) = summary["checks"]
    assert (check["name"], check["per_group"]) == ("leakage_cap", False)
    assert check["table"]["holds"]
    leaks = report("audit", "t.csv", "o.csv", *RARE, "--bootstrap", 0)["information"]["after"]
    assert leaks["plugin"] == pytest.approx(check["table"]["value"])
    assert leaks["plugin"] <= 0.01
    same = report("release", "t.csv", *RARE, *capped, "--distortion", "hamming")
    assert same["lower"] == summary["lower"]
    guess = report("release", "t.csv", *RARE, "--criterion", "LeakageCap=0.55:guessing-probability")
    assert "guessing" in guess["terms"] or guess["lower"] > 0


@pytest.mark.long
def test_whatever_the_prior_the_capacity_is_minimised_or_capped(here):
    text = say("release", "t.csv", *RARE, "--budget", 0.2, "--prior", "any", *OUTPUTS).out
    say("verify", "p.json", "--table", "t.csv", "--problem", "r.toml")
    source = cpv.DiscreteSource.from_table(
        pandas.read_csv("t.csv"), sensitive="ill", key=["age", "sex"], bins={"age": 10}
    )
    d, channel = cpv.hamming(source.x), cpv.Channel.load("c.json")
    learnt = cpv.capacity(channel, source).value
    by_table = cpv.information.mutual_information(source.pmf @ channel.matrix)
    assert by_table < float(learnt)
    most = float(re.search(r"whatever prior +at most ([0-9.]+) bits", text)[1])
    assert learnt.upper <= most < learnt.upper + 1e-3
    summary = report("release", "t.csv", *RARE, "--criterion", "CapacityCap=0.01")
    least = cpv.MinimumDistortion(source, d, [cpv.CapacityCap(0.01)]).solve()
    assert summary["lower"] == pytest.approx(least.lower)
    how = ("--criterion", "LeakageCap=0.1", "--prior", "any")
    refused("release", "t.csv", *RARE, *how, pieces=["--prior", "CapacityCap"])
    how = ("--budget", 0.2, "--leakage", "chi-squared", "--prior", "any")
    refused("release", "t.csv", *RARE, *how, pieces=["--prior", "leave out --leakage"])


@pytest.mark.parametrize("cost", rest_at_length(["age=0.05", "0.05"], 1))
def test_suppressed_values_are_missing_ones_and_come_back_from_the_problem_file(cost, here):
    how = ("--suppress", cost, "--budget", 0.2, "--missing", "refuse", *OUTPUTS, "--seed", 1)
    summary = report("release", "t.csv", *RARE, *how)
    say("verify", "p.json", "--table", "t.csv", "--problem", "r.toml")
    released = rows("o.csv")
    empty = Counter(name for row in released for name in ("age", "sex") if not row[name])
    assert empty["age"]
    assert (empty["sex"] > 0) == (cost == "0.05")
    shares = {c["column"]: c["suppressed"] for c in summary["changes"]}
    assert shares["age"] == pytest.approx(empty["age"] / 300)
    assert shares["sex"] == pytest.approx(empty["sex"] / 300)
    assert report("solve", "r.toml")["lower"] == pytest.approx(summary["lower"])
    plain = report("release", "t.csv", *RARE, "--budget", 0.2)
    assert summary["upper"] < plain["lower"]  # more may be done with the same budget
    say("apply", "c.json", "t.csv", "--seed", 1, "--out", "n.csv")
    assert Path("n.csv").read_bytes() == Path("o.csv").read_bytes()


def test_a_column_of_two_values_in_ten_records_is_told_for_what_it_is(here):
    """There are too few records, and not too many values."""
    write("f.csv", "sex,ill,a\n" + "".join(f"{'MF'[i % 2]},{i % 9},{i % 3}\n" for i in range(10)))
    text = say("release", "f.csv", "--sensitive", "ill", "--key", "a", "--budget", "0.1").out
    assert re.search(r"\n  sex +cannot be told: too few records for each value \(2 values\)", text)
    assert "too many" not in text


def test_the_help_lists_everything_that_may_be_asked_for():
    from cvxprivacy import criteria, leakage

    message = say("release", "--help").out
    unlisted = {"Criterion", "ForbiddenMoves", "PreserveMean", "Linear"}  # of matrices and values
    for name in set(criteria.__all__) - unlisted:
        examples = getattr(criteria, name).words.examples
        assert examples
        assert all(text.partition("=")[0] == name and text in message for text in examples)
    plain = " ".join(message.split())
    for measure in leakage.MEASURES.values():
        assert (
            measure.__name__ in ("Gain", "FInformation")
            or " ".join(measure.meaning.split()) in plain
        )
    for name in ("hamming", "ordinal", "absolute_error", "squared_error"):
        assert re.search(rf"^  {name} ", message, re.MULTILINE)
