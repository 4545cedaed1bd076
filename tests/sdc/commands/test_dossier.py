"""``--report``: the facts against independent counting, the schema, the verdict, and secrecy."""

from __future__ import annotations

import hashlib
import hmac
import math
import random
import re
import shlex
from contextlib import chdir
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.errors import InputError
from cvxprivacy_sdc.dossier import report_targets, schema, tradeoff
from cvxprivacy_sdc.dossier.board import check_facts, release_verdict
from cvxprivacy_sdc.dossier.facts import dossier_of, statement_rows
from cvxprivacy_sdc.dossier.page import figure, html, letters_svg, mathml, number, percent
from cvxprivacy_sdc.dossier.secrecy import Guard, typed_command
from cvxprivacy_sdc.dossier.tradeoff import curve
from cvxprivacy_sdc.releases.check import Check
from tests.lengths import rest_at_length
from tests.sdc.audits import Page, owner_only
from tests.sdc.commands.runner import BOTH, left_open, loaded, people, refused, report, say, write

FILES = ("--out", "o.csv", "--certificate", "p.json", "--problem-out", "r.toml")
REPORTS = ("--report", "a.html", "--report", "a.json")
RELEASE = ("release", "t.csv", *BOTH, *FILES, *REPORTS)
VALIDATOR = jsonschema.Draft202012Validator(
    schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


@pytest.fixture(autouse=True, scope="module")
def patient():
    """What a report holds must not depend on how fast the machine is; coarse curves will do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tradeoff, "SECONDS", math.inf)
        patch.setattr(tradeoff, "BAND", 0.2)
        patch.setattr(tradeoff, "FINE", 12)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Release and audit a table once: its folder."""
    folder = tmp_path_factory.mktemp("made")
    with chdir(folder):
        write("t.csv", people())
        asked = ("--criterion", "RecordEntropy=12", "--criterion", "TCloseness=0.4")
        say(*RELEASE, *asked, "--seed", 5)
        criterion = ("--criterion", "KAnonymity=2")
        roles = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10")
        names = ("--report", "b.html", "--report", "b.json")
        say("audit", "t.csv", "o.csv", *roles, *criterion, *names)
    return folder


@pytest.fixture
def facts(made):
    return loaded(made / "a.json")


class Whole(Page):
    """A page whose every element is closed, MathML and SVG too."""

    VOID = (*Page.VOID, "br")

    def __init__(self, text):
        super().__init__(text)
        assert self.open == []


def text_of(facts):
    return re.sub(r"\s+", " ", " ".join(Whole(html(facts)).pieces))


def board_text(page):
    """Return what a board reads, in one line: all but the annex."""
    body = page.partition("<body>")[2].partition('<section class="annex">')
    assert body[1]
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", body[0], flags=re.DOTALL)
    return re.sub(r"\s+", " ", text)


MATHEMATICS = re.compile(
    r"\b(?:laws?|letters?|channels?|nats|distortion|encoder|prior|posterior|I\()|\bW\b|\bX\b|X̂|[∀∈≼]"
)
PLURALS = re.compile(r"(?<![\d.,])1 (?:records|groups|columns|values|others|intervals|bits)\b")


def readable(page):
    """Refuse what a board member without mathematics cannot read, and bad plurals anywhere."""
    board = board_text(page)
    for pattern in (MATHEMATICS, re.compile(r"\de-\d"), re.compile(r"nan|None|[{}]")):
        assert not pattern.search(board), re.findall(f".{{50}}{pattern.pattern}.{{20}}", board)
    assert not PLURALS.search(re.sub(r"<[^>]+>", "", page))
    for head in re.findall(r'<th scope="col" class="n">([^<]*)</th>', page.partition("annex")[0]):
        assert re.search(r"\[\w+\]|record|values|share|number|table|chosen|allowed", head), head


# ---- what a board reads ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_board_can_read_the_page(made, name):
    readable((made / f"{name}.html").read_text("utf-8"))


def test_the_first_page_is_counted(made, facts):
    """By pandas alone: the best guess, the smallest group, what changed; and which file it is."""
    before, after = (pd.read_csv(made / name) for name in ("t.csv", "o.csv"))
    before["age"] = before["age"] // 10
    right = [t.groupby(["age", "sex"])["ill"].agg(lambda w: w.value_counts().iloc[0]).sum()
             for t in (after, before)]  # fmt: skip
    shares = [100 * n / 300 for n in (*right, before["ill"].value_counts().iloc[0])]
    lines = board_text((made / "a.html").read_text("utf-8"))
    guess = re.search(r"is right for ([\d.]+) % .* it is for ([\d.]+) %, .* for ([\d.]+) %", lines)
    assert [float(share) for share in guess.groups()] == pytest.approx(shares, abs=0.0501)
    smallest = after.groupby(["age", "sex"]).size().min()
    assert f"age and sex holds {smallest} record" in lines
    assert f"{facts['changed']['any']['records']} records of 300 (" in lines
    assert "ill stands in the file as it is" in lines
    assert "2 other columns" in lines
    digest = hashlib.sha256((made / "o.csv").read_bytes()).hexdigest()
    assert facts["files"] == {
        "released": {"name": "o.csv", "sha256": digest},
        "leaves": facts["verdict"]["may_be_released"],
        "stay": [
            "t.csv (the original)",
            "p.json",
            "r.toml",
            facts["input"]["house"],
            "this report",
        ],
    }
    page = (made / "a.html").read_text("utf-8")
    assert page.index(digest) < page.index("<h2>")  # on the first page


def test_nobody_signs_what_must_not_be_released(facts):
    where = '<div class="sign">'
    for may in (True, False, None):
        one = check(table=may, groups=3, records=21)
        facts["verdict"] = released([one]) if may is not None else {
            **facts["verdict"], "may_be_released": None
        }  # fmt: skip
        made_of = dossier_of("release", **{k: v for k, v in facts.items() if k in SECTIONS},
                             left_out={})  # fmt: skip
        assert bool(made_of["signatures"]) == (may is True)
        page = html({**facts, "signatures": made_of["signatures"],
                     "files": {**facts["files"], "leaves": may is True}})  # fmt: skip
        assert (where in page) == (may is True)
        assert ("has no approval" in page) == (may is not True)
        if may:  # beside the verdict
            assert page.index('class="verdict') < page.index(where) < page.index('class="facts"')


SECTIONS = ("verdict", "title", "cautions")


def test_numbers_on_the_page_are_read(facts):
    assert [number(v) for v in (-7.7e-15, 3e-17, 0.0, -0.25, 1234.5)] == [
        "0", "0", "0", "-0.25", "1,234",
    ]  # fmt: skip
    assert figure(1.0, "records") == "1 record"
    assert figure(0.1, "bits") == "0.1 bits"
    assert figure(1.0, "nats", "greatest log ratio") == "a factor of 2.72"
    assert figure(1.0, "nats") == "1 nats"  # of information
    assert [percent(v) for v in (0.0, 1e-6, 0.5)] == ["0.0 %", "less than 0.1 %", "50.0 %"]
    facts["uncertainty"]["rows"][0]["remainder"] = -7.7e-15
    facts["program"]["lower"] = -7.7e-15
    assert "e-15" not in text_of(facts)
    facts["tradeoff"]["chosen"]["value"] = 5.88e-23  # nothing is left to tell
    facts["tradeoff"]["choices"][-1]["value"] = 0.0
    readable(html(facts))


def test_the_named_points_are_optima(made, facts):
    """Solved anew, each by itself; the chosen one is that of the release."""
    curve, chosen = facts["tradeoff"], facts["tradeoff"]["chosen"]
    assert [point["name"] for point in curve["choices"]] == list("ABCDE")[: len(curve["choices"])]
    assert len(curve["choices"]) > 2
    assert [p["x"] for p in curve["choices"] if p["chosen"]] == [chosen["x"]]
    source = cpv.DiscreteSource.from_table(
        pd.read_csv(made / "t.csv"), sensitive="ill", key=["age", "sex"], bins={"age": 10}
    )
    rules = [cpv.RecordEntropy(12), cpv.TCloseness(0.4)]
    for point in (curve["choices"][0], curve["choices"][-1]):
        d = cpv.hamming(source.x)
        same = cpv.PrivacyDistortion(source, d, budget=point["x"], criteria=rules).solve()
        assert point["value"] == pytest.approx(same.value, rel=1e-4, abs=1e-6)


# ---- what it says, against independent counting ------------------------------------------


@pytest.mark.long
def test_files_are_told_by_their_sums(made, facts):
    def sums(name):
        return hashlib.sha256((made / name).read_bytes()).hexdigest()

    def keyed(name):
        key = bytes.fromhex(loaded(made / facts["input"]["house"])["key"])
        return hmac.new(key, (made / name).read_bytes(), hashlib.sha256).hexdigest()

    assert facts["input"]["file"] == {
        "name": "t.csv", "keyed_sha256": keyed("t.csv"),
    }  # fmt: skip
    rows = {row["name"]: row for row in facts["verification"]["files"]}
    plain = {name: row["sha256"] for name, row in rows.items()}
    assert plain == {"o.csv": sums("o.csv"), "p.json": None, "r.toml": sums("r.toml")}
    secret = {name: row["keyed_sha256"] for name, row in rows.items()}
    assert secret == {"o.csv": None, "p.json": keyed("p.json"), "r.toml": None}
    commands = facts["verification"]["commands"]
    assert commands[1:] == ["sha256sum o.csv", "sha256sum r.toml"]
    text = say("verify", made / "p.json", "--table", made / "t.csv").out
    assert "t.csv: the file itself, by its keyed SHA-256" in text


def test_where_no_table_was_drawn_none_is_judged(here):
    how = ("release", "t.csv", *BOTH[:-2], "--criterion", "KAnonymity=20")
    say(*how, "--criterion", "TCloseness=0.2", "--no-untouched", "--report", "a.json")
    document = loaded("a.json")
    assert document["undecided"] == ["KAnonymity(20)"]
    assert "KAnonymity(20): it is of a table, and none was drawn: not decided." in text_of(document)
    assert not any("in this table" in check["standing"] for check in document["checks"])
    assert document["signatures"] == []


def test_what_is_lost_is_that_of_the_file_and_its_channel(here):
    """A board sees what the release buys beside PRAM; of balanced draws nothing is computed."""
    how = ("release", "t.csv", *BOTH, "--seed", 2, "--no-untouched", "--out", "o.csv")
    say(*how, "--report", "a.json", "--report", "a.html", "--channel", "c.json")
    before, after = (pd.read_csv(name) for name in ("t.csv", "o.csv"))
    figures = sdc.quality(before, after, cpv.Channel.load("c.json"))
    lost = loaded("a.json")["quality"]
    assert lost["information"] == pytest.approx(figures.information)
    assert lost["pram_information"] == pytest.approx(figures.pram_information)
    for row in lost["rows"]:
        each = figures.summary[row["kind"]]
        assert row == {"kind": row["kind"], **{name: each[name] for name in row if name != "kind"}}
    assert [row["kind"] for row in lost["rows"]] == [*figures.summary]
    page = Path("a.html").read_text(encoding="utf-8")
    assert page.count("What is lost in what is released") == 1
    say(*how, "--draw", "balanced", "--report", "b.json", "--force")
    document = loaded("b.json")
    assert document["quality"] is None
    assert "Figures before and after" in {row["section"] for row in document["left_out"]}


@pytest.mark.long
def test_changes_groups_and_risks_are_counted(made, facts):
    before, after = (pd.read_csv(made / name) for name in ("t.csv", "o.csv"))
    band = [f"[{a // 10 * 10}, {a // 10 * 10 + 10})" for a in before["age"]]
    changed = {row["column"]: row["records"] for row in facts["changed"]["columns"]}
    unlike = {
        "age": np.array(band) != after["age"].to_numpy(),
        "sex": (before["sex"] != after["sex"]).to_numpy(),
    }
    assert changed == {name: int(flags.sum()) for name, flags in unlike.items()}
    either = unlike["age"] | unlike["sex"]
    assert facts["changed"]["any"]["records"] == int(either.sum()) > 0
    losses = {row["column"]: row for row in facts["loss"]["columns"]}
    for name, flags in unlike.items():
        assert losses[name]["changed"] == pytest.approx(flags.mean(), rel=1e-5)
    prior = after["ill"].value_counts(normalize=True)
    groups = after.groupby(["age", "sex"])["ill"]
    divergence = groups.apply(
        lambda w: sum(p * math.log2(p / prior[v]) for v, p in w.value_counts(True).items() if p)
    )
    information = {tuple(row["key"]): row for row in facts["letters"]["rows"]}
    assert {key: row["records"] for key, row in information.items()} == groups.size().to_dict()
    for key, row in information.items():
        assert row["risk"] == (float(f"{divergence[key]:.2g}") if row["records"] >= 10 else None)
    risks = [row["risk"] for row in facts["letters"]["rows"]]
    assert risks == sorted(risks, reverse=True)


def test_the_optimum_the_curve_and_the_price_are_those_of_the_problem(made, facts):
    proof = loaded(made / "p.json")["claim"]
    program = facts["program"]
    assert program["lower"] == pytest.approx(float(proof["lower"]), rel=1e-10)
    assert program["upper"] == pytest.approx(float(proof["upper"]), rel=1e-10)
    curve, chosen = facts["tradeoff"], facts["tradeoff"]["chosen"]
    assert chosen == {"x": 0.1, "value": pytest.approx(program["upper"], rel=1e-5)}
    for row in curve["curve"]:
        assert row["achieved"] >= row["proved"] - 1e-5
    near = next(row for row in curve["curve"] if row["x"] == chosen["x"])
    assert near["proved"] - 1e-5 <= program["lower"] <= program["upper"] <= near["achieved"] + 1e-5
    price = next(row for row in facts["prices"] if row["name"] == "the budget")
    points = {row["x"]: row["achieved"] for row in curve["curve"]}
    above, below = (f(x for x in points if (x > 0.1) is side and x != 0.1)
                    for f, side in ((min, True), (max, False)))  # fmt: skip
    slope = (points[above] - points[below]) / (above - below)
    assert price["price"] == pytest.approx(slope, rel=0.35)
    assert price["price"] < 0
    assert "allowing 0.01 more" in price["words"]


def test_unmodified_columns_come_with_advice(facts):
    rows = {row["column"]: row for row in facts["unmodified"]["rows"]}
    assert set(rows) == {"id", "note"}
    assert all(row["kind"] == "drop" for row in rows.values())
    assert any("drop id and note" in line for line in facts["cautions"])


def test_the_input_is_told_without_folder_and_seed(made, facts):
    summary = facts["input"]
    assert summary["records"] == 300
    assert {row["column"]: row["edges"] for row in summary["recodings"]} == {
        "age": [20, 30, 40, 50, 60]
    }
    assert summary["versions"]["numpy"] == np.__version__
    assert "--seed (kept out)" in summary["command"]
    assert summary["seed"]["given"]
    assert any("without --seed" in line for line in facts["cautions"])
    words = shlex.split(summary["command"].replace("(kept out)", "X"))
    assert words[:3] == ["cvxprivacy", "release", "t.csv"]


def test_a_seed_that_was_not_typed_is_fresh_and_secret(here):
    say("release", "t.csv", *BOTH, "--no-untouched", "--out", "o.csv", "--report", "a.json")
    facts = loaded("a.json")
    assert not facts["input"]["seed"]["given"]
    assert "fresh, of 128 bits" in text_of(facts)


@pytest.mark.long
def test_a_parquet_table_is_told_of_alike(parquet):
    say("release", "t.parquet", *BOTH, "--out", "o.parquet", "--report", "a.json", "--seed", 1)
    facts, after = loaded("a.json"), parquet.read("o.parquet")
    VALIDATOR.validate(facts)
    unlike = sum(a != b for a, b in zip(parquet.columns["sex"], after["sex"], strict=True))
    changed = {row["column"]: row["records"] for row in facts["changed"]["columns"]}
    assert changed["sex"] == unlike
    assert sum(row["records"] for row in facts["letters"]["rows"]) == 300


@pytest.mark.long
def test_records_left_out_keep_the_others_in_step(here):
    lines = Path("t.csv").read_text(encoding="utf-8").splitlines()
    lines[3] = lines[3].replace(",M,", ",,").replace(",F,", ",,")
    write("t.csv", "\n".join(lines) + "\n")
    say("release", "t.csv", *BOTH, "--missing", "drop", "--out", "o.csv", "--report", "a.json")
    facts = loaded("a.json")
    kept = pd.read_csv("t.csv").dropna(subset=["sex"]).reset_index()
    assert facts["input"]["left_out"] == 1
    sexes = pd.read_csv("o.csv")["sex"]
    changed = {row["column"]: row["records"] for row in facts["changed"]["columns"]}
    assert changed["sex"] == int((kept["sex"] != sexes).sum())


def test_verify_prints_what_the_report_says_it_does(made, facts, monkeypatch):
    monkeypatch.chdir(made)
    check = facts["verification"]
    assert check["verified"] is True
    first = check["commands"][0]
    assert first == "cvxprivacy verify p.json --table t.csv --problem r.toml"
    printed = say(*shlex.split(first)[1:]).out
    for line in check["says"]:
        assert line in printed


# ---- its form ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "b"])
def test_both_forms_say_the_same_and_need_nothing_else(made, name):
    facts, page = loaded(made / f"{name}.json"), (made / f"{name}.html").read_text("utf-8")
    VALIDATOR.check_schema(schema())
    VALIDATOR.validate(facts)
    for other in ({"more": 1}, {"kind": "plan"}, {"verdict": None}, {"cautions": [1]}):
        assert not VALIDATOR.is_valid({**facts, **other}), other
    assert page == html(facts)
    for file in (f"{name}.html", f"{name}.json"):
        assert owner_only(made / file)
    assert "http" not in page
    assert "<script" not in page
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", page)
    complete = Whole(page)
    for tag in ("link", "img", "iframe", "object", "embed"):
        assert complete.all(tag) == []
    assert {a["href"][0] for a in complete.all("use") if "href" in a} <= {"#"}
    assert complete.all("html") == [{"lang": "en"}]
    assert complete.tags.index(("h1", {})) < complete.tags.index(("h2", {}))
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in complete.all("svg"))
    ids = [attributes["id"] for _, attributes in complete.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not re.search(r"<(metadata|dc:|rdf:)", page)


def test_no_heading_stands_over_nothing(facts):
    below = re.findall(r"<h[23]>([^<]*)</h[23]>(.*?)(?=<h[123]|</body>)", html(facts), re.DOTALL)
    below = [part for part in below if not part[0].startswith("Annex")]
    assert [title for title, part in below if not re.sub(r"<[^>]+>", "", part).strip()] == []


def test_a_page_is_safe_from_what_tables_are_called(facts):
    facts["title"] = 'Release of <script>alert(1)</script>.csv "; } body { display: none'
    facts["undecided"].append("<b>&")
    page = html(facts)
    assert "<script" not in page
    assert "&lt;b&gt;&amp;" in page
    assert '"; }' not in page.split("</style>")[0].split("@page")[1].split("@bottom")[0]


def test_a_report_names_its_format_and_no_other_file(here):
    refused(*RELEASE[:-1], "a.txt", pieces=("--report", "a.txt", ".json"))
    refused("release", "t.csv", *BOTH, "--report", "a.json", "--report", "b.json",
            pieces=("--report", "two of format json"))  # fmt: skip
    refused(
        "release", "t.csv", *BOTH, "--out", "o.json", "--report", "o.json", pieces=("--report",)
    )
    assert report_targets(["a.json", "b.htm"]) == {"report": "a.json", "report, again": "b.htm"}
    with pytest.raises(InputError):
        report_targets(["table.csv"])


def test_a_report_that_cannot_be_written_leaves_no_release(here, monkeypatch):
    def full(facts):
        raise OSError(28, "No space left on device", "a.html")

    monkeypatch.setattr("cvxprivacy_sdc.dossier._page", full)
    refused("release", "t.csv", *BOTH, *FILES, *REPORTS, pieces=("a.html", "space"))


def test_programs_are_set_as_mathematics():
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    rules = [cpv.TCloseness(0.3, "emd"), cpv.LocalPrivacy(3), cpv.MaximalLeakage(1)]
    rows = statement_rows(cpv.MinimumDistortion(source, cpv.hamming(2), rules).latex)
    assert [row["left"] for row in rows] == [r"\min_{p(\hat x \mid x)}", r"\text{s.t.}", "", ""]
    for row in rows:
        set_row = mathml(row["right"])
        Whole(set_row)
        assert "\\" not in set_row
        assert "<mi>&</mi>" not in set_row
    assert "<munder" in mathml(rows[0]["left"])


# ---- the verdict -------------------------------------------------------------------------


def released(checks, status="certified"):
    return release_verdict(
        {
            "status": status,
            "released": {"records": 3},
            "undone": [],
            "order": {"refusals": [], "unseen": []},
        },
        checks,
        True,
    )


def check(law=True, table=True, groups=0, records=0, **more):
    asks = ("every released group has at least 100 records", "records", "records", True)
    how = {
        "law_of": "the randomisation",
        "per_group": True,
        "groups": groups,
        "records": records,
        **more,
    }
    return Check("k", "KAnonymity", "KAnonymity(100)", *asks, 100.0, None, law, 7.0, table, **how)


def test_the_verdict_turns_where_a_check_fails():
    assert released([check()])["may_be_released"] is True
    broken = released([check(), check(table=False, groups=3, records=21)])
    assert broken["may_be_released"] is False
    assert (
        "KAnonymity(100) is broken by 3 groups of the drawn table, with 21 records"
        in (broken["words"])
    )
    assert released([check(law=False, table=None)])["may_be_released"] is False
    assert released([check(table=None)])["may_be_released"] is True
    assert released([], status="uncertified")["may_be_released"] is False
    nothing = release_verdict({"status": "certified", "released": {}}, [check()], False)
    assert nothing["may_be_released"] is None


@pytest.mark.parametrize("law", [True, False, None])
@pytest.mark.parametrize("table", [True, False, None])
@pytest.mark.parametrize("on_average", [False, True])
def test_no_two_sentences_of_a_check_contradict_each_other(law, table, on_average):
    of = {"law_of": "the randomisation of all records", "because": "as is proved of a part"}
    one = check(law, table, 3, 21, on_average=on_average, **of)
    verdict = released([one])
    assert verdict["may_be_released"] is not one.refuses
    assert one.refuses == (not on_average and False in (law, table))
    plain = law is True and table is not False
    assert (one.sentence == "KAnonymity(100) holds") == plain
    assert ("holds" in verdict["words"]) == (plain or (bool(law) and on_average))
    for words in (one.sentence, one.caution, one.standing):
        assert ("chance" in words) <= (law is True and table is False and on_average)
        assert ("beyond" in words or "BROKEN" in words) <= (False in (law, table))
    if law is False and not one.breaks:  # which law is meant is said
        assert "the randomisation of all records" in one.sentence
        assert "the randomisation of all records" in one.standing


def test_what_was_asked_is_shown_as_it_stands(facts):
    one = check(table=False, groups=3, records=21)
    facts["checks"], facts["verdict"] = check_facts([one], None), released([one])
    facts["merged"] = {
        "groups": 3, "records": 21, "left": 9, "distortion_before": 0.1, "distortion_after": 0.125,
        "distortion": 0.12, "risk": 0.01, "ties": "the nearest of equal cost by the order of age",
    }  # fmt: skip
    facts["distortion_words"] = ["age: a tenth for each band"]
    VALIDATOR.validate(facts)
    text = text_of(facts)
    for piece in ("Must not be released", "BROKEN by 3 groups of 21 records", "leaves 9",
                  "3 groups, with 21 records, were merged",
                  "0.125", "the order of age", "a tenth for each band"):  # fmt: skip
        assert piece in text, piece


@pytest.mark.long
def test_a_drawn_table_is_judged_by_what_was_drawn(here):
    for k, may in ((2, True), (36, False)):
        say("release", "t.csv", *BOTH, "--criterion", f"RecordEntropy={k}", "--out", "o.csv",
            "--report", "a.json", "--seed", 1, "--force", "--ensure", "law")  # fmt: skip
        facts = loaded("a.json")
        sizes = pd.read_csv("o.csv").groupby(["age", "sex"]).size()
        left = pd.Series(left_open())
        budget, summary = facts["checks"]
        assert (budget["criterion"], budget["per_group"]) == ("budget 0.1", False)
        assert summary["table"]["groups"] == int((left < k - 1e-9).sum())
        assert summary["table"]["records"] == int(sizes[left < k - 1e-9].sum())
        assert summary["table"]["value"] == pytest.approx(left.min(), rel=1e-3)
        assert facts["verdict"]["may_be_released"] is may
        words = "May be released" if may else "Must not be released"
        assert words in text_of(facts)


def test_audits_are_judged_alike(here):
    roles = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=10")
    for k, may, code in ((2, True, 0), (200, False, 1)):
        say("audit", "t.csv", *roles, "--criterion", f"KAnonymity={k}", "--report", "a.json",
            "--force", code=code)  # fmt: skip
        assert loaded("a.json")["verdict"]["may_be_released"] is may
    say("audit", "t.csv", *roles, "--report", "a.json", "--force")
    facts = loaded("a.json")
    assert facts["verdict"]["may_be_released"] is None
    assert facts["asked"]["prior"] is None
    sizes = pd.read_csv("t.csv").assign(age=lambda t: t["age"] // 10).groupby(["age", "sex"]).size()
    assert sorted(row["records"] for row in facts["letters"]["rows"]) == sorted(sizes)
    write("fewer.csv", "".join(people().splitlines(keepends=True)[:-9]))
    say("audit", "t.csv", "fewer.csv", *roles, "--report", "a.json", "--force")
    assert "ill, in each of 291 records" in text_of(loaded("a.json"))


def test_a_key_that_tells_nothing_is_said_to(here):
    """Its information is a rounding error, of which no share is told."""
    write("even.csv", "sex,ill\n" + "M,y\nM,n\nF,y\nF,n\n" * 7 + "M,y\nF,y\n" * 3)
    say("audit", "even.csv", "--sensitive", "ill", "--key", "sex", "--report", "a.json")
    facts = loaded("a.json")
    assert facts["leaks"]["information"]["released"] == 0
    assert "sex tells nothing about ill." in text_of(facts)


@pytest.mark.long
def test_a_release_that_is_only_priced_approves_nothing(here):
    say("release", "t.csv", *BOTH, "--report", "a.json", "--report", "a.html")
    facts = loaded("a.json")
    VALIDATOR.validate(facts)
    assert facts["verdict"]["may_be_released"] is None
    assert facts["letters"] is None
    assert "no table was drawn" in text_of(facts)
    assert "pass --certificate proof.json" in facts["verification"]["note"]


# ---- secrecy -----------------------------------------------------------------------------

ILLNESSES = [f"PLANTED-illness-{i}" for i in range(7)]
SETTINGS = {
    "mended": ("--criterion", "TCloseness=0.3", "--criterion", "RecordEntropy=200",
               "--suppress", "0.3", "--ensure", "table"),
    "at most": ("--criterion", "LeakageCap=0.1", "--top", "sex=1"),
    "moved earth": ("--criterion", "TCloseness=0.4:emd"),
    "seen": ("--budget", "0.1", "--encoder", "wx"),
    "moved on average": ("--budget", "0.1", "--leakage", "earth-mover"),
    "information": ("--budget", "0.1"),
    "criteria": ("--criterion", "TCloseness=1.2", "--criterion", "LDiversity=1.2"),
    "every criterion": ("--criterion", "TCloseness=1.2", "--criterion", "LDiversity=1.2",
                        "--criterion", "DeltaDisclosure=3"),
}  # fmt: skip


COUNTS = [1373, 919, 677, 431, 293, 227, 80]


def planted():
    """Make a table of recognisable illnesses, each of a count that no other number has."""
    chance, rows = random.Random(3), []
    ill = [name for name, count in zip(ILLNESSES, COUNTS, strict=True) for _ in range(count)]
    for i, illness in enumerate(ill):
        age = min(59, 20 + chance.randrange(20) + 4 * ILLNESSES.index(illness))
        rows.append(f"PLANTED-record-{i},{age},{chance.choice('MF')},{illness}")
    chance.shuffle(rows)
    return "\n".join(["id,age,sex,illness", *rows]) + "\n"


def scanned(path):
    """Refuse any confidential value, any count of one, any record's name, folder, or seed."""
    text = Path(path).read_text(encoding="utf-8")
    assert "PLANTED" not in text, re.findall(r".{60}PLANTED.{30}", text)[:1]
    assert "illness-" not in text
    assert str(Path.cwd()) not in text
    assert "987654321" not in text
    message = text if path.endswith(".json") else " ".join(Whole(text).pieces)
    for count in COUNTS[:3]:
        for written in (str(count), f"{count:,}"):
            assert not re.search(rf"(?<![\w.,]){written}(?![\w.])", message), count


@pytest.mark.long
@pytest.mark.parametrize("setting", rest_at_length(SETTINGS, 2))
def test_no_report_of_a_release_names_a_confidential_value(here, setting):
    typed = SETTINGS[setting]
    write("s.csv", planted())
    say("release", here / "s.csv", "--sensitive", "illness", "--key", "age,sex", "--bins", "age=10",
        *typed, "--seed", "987654321", "--out", here / "o.csv", "--certificate", here / "p.json",
        *REPORTS, *([] if "--ensure" in typed else ["--ensure", "law"]))  # fmt: skip
    for name in ("a.html", "a.json"):
        scanned(name)
    readable(Path("a.html").read_text(encoding="utf-8"))
    assert loaded("a.json")["letters"]["rows"]


def test_no_report_of_an_audit_names_a_confidential_value(here):
    write("s.csv", planted())
    table = pd.read_csv("s.csv")
    table.assign(age=table["age"] // 20)[table["illness"] != ILLNESSES[6]].to_csv(
        "c.csv", index=False
    )
    roles = ("--sensitive", "illness", "--key", "age,sex")
    order = ("--ordered", ",".join(reversed(ILLNESSES)), "--na", ILLNESSES[5] + "x")
    for tables, more in ((("s.csv",), ()), (("s.csv", "c.csv"), ()), (("s.csv",), order)):
        say("audit", *tables, *roles, *more, "--criterion", "LDiversity=1.01", *REPORTS, "--force",
            code=int(loaded_code(tables, more)))  # fmt: skip
        for name in ("a.html", "a.json"):
            scanned(name)
        readable(Path("a.html").read_text(encoding="utf-8"))


def loaded_code(tables, more):
    """Say what code the audit ends with: 1 where the criterion is broken."""
    summary = report("audit", *tables, "--sensitive", "illness", "--key", "age,sex", *more,
                  "--bootstrap", 0)  # fmt: skip
    return summary["measures"]["entropy l"]["worst"] < 1.01


def test_bins_of_the_confidential_column_are_kept_out(here):
    say("release", "t.csv", "--sensitive", "age", "--key", "sex", "--bins", "age=0:33:47:61",
        "--budget", "0.1", "--out", "o.csv", "--certificate", "p.json", *REPORTS)  # fmt: skip
    facts = loaded("a.json")
    assert "age=(kept out)" in facts["input"]["command"]
    assert facts["input"]["recodings"] == [{"column": "age", "intervals": 3, "edges": None}]
    says = " ".join(facts["verification"]["says"])
    assert '"age" in 3 intervals (kept out)' in says
    for name in ("a.html", "a.json"):
        text = Path(name).read_text(encoding="utf-8")
        for secret in ("33, 47", "33:47", "[33", "47, 61", "0 to 61"):
            assert secret not in text


def test_a_guard_knows_values_from_what_reads_like_them():
    guard = Guard([("flu", 7), ("cold", None), (3.5, "M")], public=["M"])
    assert not guard.allows("flu: 3 records")
    assert not guard.allows("in order 7, 8")
    assert not guard.allows("missing: new in the release")
    assert guard.allows("influenza, 7.25 bits, 17 M 3.55")
    assert guard.allows("in order 7, 8", numbers=False)
    assert guard.kept(["fine", "cold"])[0] == "fine"
    assert "1 line names" in guard.kept(["fine", "cold"])[1]


def test_a_command_is_told_without_what_it_must_not_say():
    from cvxprivacy_sdc.commands import audit, release

    typed = ["release", "/home/me/t.csv", "--seed=4", "--bins=age=10,pay=5", "--no-untouched",
             "--na", "flu", "--out", "../secret/o.csv", "--json", "--budget", "0.1"]  # fmt: skip
    assert typed_command(typed, release, ["pay"]) == (
        "cvxprivacy release t.csv --seed (kept out) --bins 'age=10,pay=(kept out)' --no-untouched "
        "--na (kept out) --out o.csv --json --budget 0.1"
    )
    typed = ["audit", "a/t.csv", "--ordered", "flu,cold", "--unordered", "--", "b/o.csv"]
    assert typed_command(typed, audit, ["ill"]) == (
        "cvxprivacy audit t.csv --ordered (kept out) --unordered o.csv"
    )
    typed = ["audit", "t.csv", "--ordered", "--key", "age"]
    assert typed_command(typed, audit, []) == "cvxprivacy audit t.csv --ordered --key age"


def test_a_program_that_takes_long_is_not_solved_again_for_a_curve(monkeypatch):
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    solution, minimised = problem.solve(), ("the least leakage", "bits")
    assert curve(problem, solution, minimised, 0.3)[0]["solved"] > 3
    monkeypatch.setattr(tradeoff, "SECONDS", 99.0)
    none, why = curve(problem, solution, minimised, 0.3, seconds=100.0)
    assert none is None
    assert "100 seconds" in why


# ---- what boards were misled by ----------------------------------------------------------


@pytest.mark.long
def test_a_board_is_told_that_merging_cost_more_than_was_asked(here):
    how = ("release", "t.csv", "--sensitive", "ill", "--key", "age,sex", "--bins", "age=10",
           "--budget", "0.1", "--criterion", "RecordEntropy=45",
           "--criterion", "KeepProbability=0.5", "--seed", 3, "--out", "o.csv",
           "--channel", "c.json", "--report", "a.json", "--ensure", "table")  # fmt: skip
    document = report(*how)
    facts = loaded("a.json")
    assert document["merged"]["distortion"] > 0.1
    words = facts["verdict"]["words"]
    assert "RecordEntropy(45) holds" in words
    law = "the randomisation after groups were merged"
    assert f"budget 0.1 is exceeded by {law}" in words
    assert "KeepProbability(0.5) is not proved of this release" in words
    text = " ".join(facts["cautions"])
    assert f"budget 0.1: {law} is beyond it, as groups were merged" in text
    assert "by chance" not in text
    assert facts["figures"]["law"] == law
    assert facts["figures"]["distortion"] == pytest.approx(
        document["merged"]["distortion"], rel=1e-3
    )
    assert "moves" not in facts["merged"]  # of single records: they stay in the house
    say("apply", "c.json", "t.csv", "--seed", 3, "--out", "n.csv")
    drawn, released = pd.read_csv("n.csv"), pd.read_csv("o.csv")
    assert drawn.equals(released)  # what is kept merges, too


@pytest.mark.long
def test_a_key_that_became_constant_is_said_to_be(here):
    say("release", "t.csv", "--sensitive", "ill", "--key", "age,sex", "--bins", "age=10",
        "--criterion", "RecordEntropy=299", "--ensure", "table", "--out", "o.csv",
        "--report", "a.json", "--report", "a.html", "--seed", 1)  # fmt: skip
    facts = loaded("a.json")
    assert pd.read_csv("o.csv").groupby(["age", "sex"]).ngroups == facts["merged"]["left"] == 1
    assert any("the key became a constant" in text for text in facts["cautions"])
    assert facts["unmodified"]["released"] == pytest.approx(0, abs=1e-9)  # as on page 1


@pytest.mark.long
def test_a_weighted_table_is_weighted_throughout(here):
    frame = pd.read_csv("t.csv").assign(weight=lambda t: np.where(t["sex"] == "F", 1.0, 9.0))
    frame.to_csv("u.csv", index=False)
    say("release", "u.csv", "--sensitive", "ill", "--key", "age,sex", "--bins", "age=10",
        "--weights", "weight", "--budget", "0.1", "--out", "o.csv", "--report", "a.json",
        "--report", "a.html", "--seed", 1)  # fmt: skip
    facts = loaded("a.json")
    before, after = facts["uncertainty"]["rows"]
    assert facts["figures"]["before"] == before["counted"]
    released = pd.read_csv("o.csv")
    joint = released.pivot_table(index="ill", columns=["age", "sex"], values="weight",
                                 aggfunc="sum", fill_value=0).to_numpy()  # fmt: skip
    assert after["counted"] == pytest.approx(cpv.information.mutual_information(joint), rel=1e-4)
    assert facts["leaks"]["information"]["released"] == after["counted"]
    sizes = sorted(released.groupby(["age", "sex"]).size())
    assert sorted(row["records"] for row in facts["letters"]["rows"]) == sizes  # of records


def test_sums_on_the_page_add_up(facts):
    for row in facts["uncertainty"]["rows"]:
        left = row["counted"] - row["bias"] - row["remainder"]
        assert row["corrected"] == pytest.approx(max(left, 0), abs=1e-6)
    loss = facts["loss"]
    assert len(loss["parts"]) == 4
    assert loss["total"] == pytest.approx(100 * np.mean(list(loss["parts"].values())), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("ending", rest_at_length(["xlsx", "sav", "csv", "parquet"], 2))
def test_recoded_numbers_are_read_again_in_every_format(here, ending):
    frame = pd.read_csv("t.csv")[["age", "sex", "ill"]]
    path = f"r.{ending}"
    if ending == "sav":
        pytest.importorskip("pyreadstat", reason="cvxprivacy-sdc[files] is not installed")
        import pyreadstat

        pyreadstat.write_sav(frame, path)
    else:
        write = {"xlsx": frame.to_excel, "parquet": frame.to_parquet}.get(ending, frame.to_csv)
        write(path, index=False)
    say("release", path, "--sensitive", "ill", "--key", "age,sex", "--top", "age=3", "--budget",
        "0.1", "--out", f"o.{ending}", "--report", "a.json", "--ensure", "law")  # fmt: skip
    facts = loaded("a.json")
    (groups,) = facts["input"]["groups"]
    assert (groups["column"], len(groups["groups"]), groups["rest"]) == ("age", 3, "other")
    assert "--top age=3" in facts["input"]["command"]
    assert facts["letters"]["rows"]


def test_a_group_of_few_does_not_tell_its_divergence(here):
    """Of one record it is −log p(w): whoever knows the shares of W reads off W."""
    say("audit", "t.csv", "--sensitive", "ill", "--key", "age,sex", "--bootstrap", 0,
        "--report", "a.json")  # fmt: skip
    rows = loaded("a.json")["letters"]["rows"]
    assert any(row["records"] < 10 for row in rows)
    for row in rows:
        assert (row["risk"] is None) == (row["records"] < 10)
        assert row["risk"] is None or row["risk"] == float(f"{row['risk']:.2g}")


def test_no_measure_is_of_a_group_of_few(here):
    """Of five records k = 5 and ℓ = 2 tell a (4, 1): their composition."""
    roles = ("--sensitive", "ill", "--key", "age,sex", "--bins", "age=3")
    asked = ("--criterion", "TCloseness=0.1", "--bootstrap", 0)
    say("audit", "t.csv", *roles, *asked, "--report", "a.json", code=1)
    facts, table = loaded("a.json"), pd.read_csv("t.csv")
    table["age"] //= 3
    counts = table.groupby(["age", "sex", "ill"]).size().unstack(fill_value=0)
    large = counts[counts.sum(axis=1) >= 10]
    assert 0 < len(large) < len(counts)
    by_name = {row["measure"]: row for row in facts["measures"]["rows"]}
    (distinct,) = (row for name, row in by_name.items() if "distinct" in name)
    assert distinct["worst"] == (large > 0).sum(axis=1).min()
    (check,) = facts["checks"]
    assert check["table"]["value"] is None
    assert check["table"]["groups"] > 0
    (row,) = (row for name, row in by_name.items() if "I1" in name)
    prior = counts.sum() / counts.to_numpy().sum()
    shares = counts.div(counts.sum(axis=1), axis=0)
    divergence = (shares * np.log2(shares.div(prior) + (shares == 0))).sum(axis=1)
    worst = divergence[large.index].max()
    assert worst < divergence.max()
    assert row["worst"] == pytest.approx(worst, rel=0.05)


@pytest.mark.long
def test_a_copied_column_that_undoes_the_key_is_named(here):
    frame = pd.read_csv("t.csv").assign(title=lambda t: t["sex"].map({"F": "Ms", "M": "Mr"}))
    frame.to_csv("u.csv", index=False)
    summary = report("release", "u.csv", "--sensitive", "ill", "--key", "age,sex",
                     "--bins", "age=10", "--budget", "0.2",
                     "--out", "o.csv", "--report", "a.json")  # fmt: skip
    first = summary["undone"][0]
    assert (first["key"], first["column"]) == ("sex", "title")
    assert first["share"] == pytest.approx(1, abs=0.02)
    assert any("title is copied and tells" in note for note in loaded("a.json")["cautions"])


@pytest.mark.long
def test_what_copied_columns_tell_together_is_in_the_dossier(here):
    """The title and the town together are the sex; neither is by itself."""
    rng = np.random.default_rng(0)
    sex, town = rng.integers(0, 2, (2, 1200))
    frame = pd.DataFrame({
        "ill": np.where(rng.random(1200) < 0.3 + 0.4 * sex, "yes", "no"),
        "sex": np.array(["F", "M"])[sex],
        "town": np.array(["Ayr", "Ely"])[town], "title": sex ^ town,
    })  # fmt: skip
    frame.to_csv("u.csv", index=False)
    asked = ("release", "u.csv", "--sensitive", "ill", "--key", "sex", "--budget", "0.1",
             "--out", "o.csv", *REPORTS)  # fmt: skip
    report(*asked)
    assert loaded("a.json")["unmodified"]["together"] is None
    assert any("cvxprivacy attack" in line for line in loaded("a.json")["cautions"])
    asked = (*asked, "--attack", "--force")
    summary = report(*asked)
    assert summary["undone"] == []
    together = loaded("a.json")["unmodified"]["together"]
    words = "title and town determine sex in 1,200 of 1,200 records"
    assert words in together["lines"]
    assert any(row["why"] == words for row in together["proposals"])
    (guess,) = [g for g in summary["joint_disclosure"]["guesses"] if g["target"] == "sex"]
    assert guess["of_changed"]["lower"] > 0.9
    assert guess["words"] in together["lines"]
    assert any(line.startswith("leave out of the file") for line in loaded("a.json")["cautions"])
    page = Path("a.html").read_text(encoding="utf-8")
    assert words in page
    assert "To leave out of the file or to coarsen" in page
    assert words in say(*asked).out


@pytest.mark.long
def test_a_slow_machine_leaves_out_the_curve_alone(here, monkeypatch):
    """Whenever the time is over, the release and its report are made."""
    monkeypatch.setattr(tradeoff, "SECONDS", 0.0)
    for rule in (("--criterion", "TCloseness=0.1"), ("--budget", "0.1")):
        say("release", "t.csv", "--sensitive", "ill", "--key", "age,sex", "--bins", "age=10", *rule,
            "--out", "o.csv", *REPORTS, "--ensure", "law", "--force")  # fmt: skip
        facts = loaded("a.json")
        assert facts["tradeoff"] is None
        (why,) = (row["why"] for row in facts["left_out"] if row["section"] == "The trade-off")
        assert "this one took" in why
    ticks = iter(range(10**6))
    monkeypatch.setattr(tradeoff, "SECONDS", 2.5)
    monkeypatch.setattr(tradeoff.time, "monotonic", lambda: float(next(ticks)))
    source = cpv.DiscreteSource([[30, 10], [10, 30]] / np.array(80.0))
    rules = [cpv.TCloseness(0.05)]
    for problem in (
        cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1),
        cpv.MinimumDistortion(source, cpv.hamming(2), rules),
    ):
        outcome, why = curve(problem, problem.solve(), ("the least leakage", "bits"), 0.2)
        assert (outcome is None) == bool(why)


def test_what_is_withheld_is_not_drawn_as_nothing():
    """A small group at divergence 0 would look harmless."""
    rows = [{"key": ["a"], "records": 40, "risk": 0.2}, {"key": ["b"], "records": 30, "risk": 0.1}]
    letters = {"rows": rows, "bounds": {"records": None, "risk": None}, "unit": "bits",
               "average": 0.1, "columns": ["k"]}  # fmt: skip
    small = {"key": ["c"], "records": 3, "risk": None}
    plain = re.sub("of [0-9]+;", "", letters_svg(letters))
    with_small = letters_svg({**letters, "rows": [*rows, small]})
    assert re.sub("of [0-9]+;", "", with_small) == plain
    assert "of 73;" in with_small
    assert letters_svg({**letters, "rows": [small]}) == ""


@pytest.mark.long
def test_a_price_that_is_not_determined_is_no_number_of_a_dossier():
    source = cpv.DiscreteSource.identical([1 - 1e-40, 1e-40])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=5e-41)
    (row,) = tradeoff.prices(problem, problem.solve(), ("the risk", "bits"))
    assert row["price"] is None
    assert row["words"].startswith("the budget: what it costs is not determined, in [")
