"""The guided way: what is proposed and why, at a terminal and by options, and that it runs."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from cvxprivacy_sdc.commands import main, proposals
from cvxprivacy_sdc.statements import problemfile
from cvxprivacy_sdc.statements.statement import table_source
from tests.lengths import some_weekly
from tests.public_tables import real_folder
from tests.sdc.commands.runner import (
    ROOT,
    contents,
    loaded,
    people,
    refused,
    report,
    rows,
    say,
    write,
)

MODULE = sys.modules["cvxprivacy_sdc.commands.plan"]
NAMES = "name,ill\n" + "".join(f"n{i},{i % 2}\n" for i in range(9))
QUICK = ("--key", "sex", "--criterion", "none")


def ran(script, folder, *more):
    """Run a command file from another folder, as an office does; return what it printed."""
    if shutil.which("sh") is None:
        pytest.skip("needs a shell")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", str(script), *more], cwd=folder, capture_output=True, text=True, check=False,
        encoding="utf-8", env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def at_terminal(here, monkeypatch):
    """Answer at a terminal, a line each; what is printed and how it ended are returned."""
    monkeypatch.setattr(MODULE, "_at_terminal", lambda: True)

    def session(*lines, arguments=("t.csv",)):
        text = "".join(f"{line}\n" for line in lines)
        return CliRunner().invoke(main, ["plan", *arguments], input=text)

    return session


@pytest.mark.long
def test_what_is_written_by_options_runs_unchanged(here):
    Path("an office's").mkdir()
    shutil.move("t.csv", "an office's/the table.csv")
    printed = say(
        *("plan", "an office's/the table.csv", *QUICK, "--sensitive", "ill", "--budget", "0.07"),
        *("--out", "an office's/what leaves.csv", "--plan", "an office's/my plan", "--yes"),
    ).out
    assert "2. Which columns could a stranger know? sex\n   as the option says" in printed
    solved = report("solve", "an office's/my plan.toml")
    away = here / "elsewhere"
    away.mkdir()
    answer = ran(here / "an office's" / "my plan.sh", away)
    assert "risk after" in answer
    assert [*away.iterdir()] == []
    released = rows("an office's/what leaves.csv")
    assert len(released) == 300
    assert [row["ill"] for row in released] == [
        row["ill"] for row in rows("an office's/the table.csv")
    ]
    proof = "an office's/what leaves.csv.proof.json"
    say(
        "verify",
        proof,
        "--problem",
        "an office's/my plan.toml",
        "--table",
        "an office's/the table.csv",
    )
    claim = loaded(proof)["claim"]
    assert solved["status"] == claim["status"] == "certified"
    # what is printed is what is written, from where one stands
    shown = printed.split("the command:\n")[1].split("an office's/my plan.toml:")[0]
    typed = shlex.split(shown.replace("\\\n", " "))
    for name in ("what leaves.csv", "what leaves.csv.proof.json", "what leaves.csv.house.json"):
        Path("an office's", name).unlink()
    say(*typed[1:])
    assert loaded(proof)["claim"] == claim


def test_a_session_at_a_terminal(at_terminal, here):
    done = at_terminal("nothing", "ill", "note", "age, sex", "soon", "none", "much", "0.03",
                       "t.csv", "r.csv", arguments=("t.csv", "--row-id", "id"))  # fmt: skip
    assert done.exit_code == 0, done.output
    for piece in (
        "1. Which column is confidential? [ill]: nothing\nError: --sensitive: no column 'nothing'",
        "2. Which columns could a stranger know? [age, sex]: note\nError: --key: 'note' has 300",
        "Error: --criterion: 'soon' is unknown",
        "Error: --budget: 'much'; pass a number, such as 0.05",
        "Error: --out: t.csv is the input t.csv",
        "plan.sh: the command, for `sh`, from any folder; it has the seed",
    ):
        assert piece in done.output, (piece, done.output)
    assert "--seed '…'" in done.output  # which is in the file alone
    private = stat.S_IMODE(Path("plan.sh").stat().st_mode) == 0o600
    assert private or sys.platform == "win32"
    problem = tomllib.loads(Path("plan.toml").read_text(encoding="utf-8"))
    assert problem["budget"] == 0.03
    assert problem["source"]["key"] == ["age", "sex"]
    assert report("solve", "plan.toml")["status"] == "certified"
    ran("plan.sh", here)
    first = Path("r.csv").read_bytes()
    for path in here.glob("r.csv*"):
        path.unlink()
    ran("plan.sh", here)
    assert Path("r.csv").read_bytes() == first  # its seed is in the command


@pytest.mark.long
def test_proposals_are_taken_where_nobody_sits(here):
    facts = report("plan", "t.csv")
    answers = {a["question"]: a for a in facts["answers"]}
    assert [a["answer"] for a in answers.values()][:2] == ["ill", "age, sex"]
    assert {a["by"] for a in answers.values()} == {"proposal"}
    assert len(answers) == 5
    assert all(a["why"] for a in answers.values())
    counted = {c["name"]: (c["values"], c["missing"]) for c in facts["columns"]}
    assert counted == {
        "id": (300, 0),
        "age": (40, 0),
        "sex": (2, 0),
        "ill": (2, 0),
        "note": (300, 0),
    }
    assert facts["groups"]["all"] <= 15  # 20 records to a cell
    assert {*facts["files"].values()} == {"plan.toml", "plan.sh"}
    # every enclosure holds the optimum as it is solved for anew, and the bend is where they say
    problem = problemfile.read("plan.toml", table=table_source).problem
    heights = []
    for row in facts["curve"]:
        optimum = problem.at(budget=row["budget"]).solve(accuracy="high")
        assert row["lower"] <= optimum.upper
        assert optimum.lower <= row["upper"]
        assert 0 <= row["kept"] <= 1
        heights.append((row["budget"], optimum.value))
    (b0, v0), *inner, (b1, v1) = heights
    depths = {b: v0 + (v1 - v0) * (b - b0) / (b1 - b0) - v for b, v in inner}
    assert facts["bend"]["at"]["budget"] == max(depths, key=depths.get)
    assert facts["bend"]["depth"] == pytest.approx(max(depths.values()), abs=1e-5)
    assert facts["bend"]["depth"] <= max(depths.values()) + 1e-12


@pytest.mark.long
def test_a_key_of_few_cells_is_left_as_it_is(here):
    facts = report("plan", "t.csv", *QUICK, "--key", "age", "--cells", "80")
    assert facts["recoding"] == {}
    assert "--bins" not in facts["command"]
    assert facts["distortion"] == ["sex=hamming", "age=ordinal"]


@pytest.mark.long
def test_bins_that_are_typed_may_have_more_cells_than_would_be_chosen(here):
    arguments = ("--key", "age", "--bins", "age=1", "--criterion", "none")
    facts = report("plan", "t.csv", *arguments)
    assert facts["groups"]["all"] == 40
    refused("plan", "t.csv", *arguments, "--cells", "15", "--force", "--yes", pieces=["--cells"])


@pytest.mark.long
def test_what_is_left_out_of_the_table_is_left_out_by_the_command(here):
    names = next(iter(rows("t.csv"))).keys()
    [dropped, *_] = [name for name in names if name not in ("sex", "ill", "id")]
    how = (*QUICK, "--sensitive", "ill", "--budget", "0.07", "--out", "o.csv", "--yes")
    printed = say("plan", "t.csv", *how, "--drop", dropped.upper()).out
    assert f"5. What leaves the house without {dropped}, all other columns as they are?" in printed
    ran(here / "plan.sh", here, "--report", "board.html")
    assert rows("o.csv")[0].keys() == names - {dropped}
    assert "May be released" in Path("board.html").read_text(encoding="utf-8")


def test_a_key_column_cannot_be_left_out(here):
    how = (*QUICK, "--sensitive", "ill", "--budget", "0.07", "--yes")
    refused("plan", "t.csv", *how, "--drop", "sex", pieces=["--drop: 'sex' is of the key"])
    assert not Path("plan.sh").exists()


@pytest.mark.long
def test_a_second_plan_replaces_the_first_only_by_force_and_a_released_table_never(here):
    say("plan", "t.csv", *QUICK, "--yes")
    refused("plan", "t.csv", *QUICK, "--yes", pieces=["--plan: plan.toml is there already"])
    say("plan", "t.csv", *QUICK, "--yes", "--force")
    write("t.released.csv", "")
    there = "--out: t.released.csv is there already"
    refused("plan", "t.csv", *QUICK, "--yes", "--force", pieces=[there])


@pytest.mark.long
def test_how_a_table_is_read_is_in_both_files(here):
    lines = people().replace(",", ";").replace('"', "").splitlines()
    lines[1] = lines[1].replace(";M;", ";?;").replace(";F;", ";?;")
    write("odd name", "\n".join(["# of last year", *lines, ""]))
    printed = say("plan", "odd name", "--criterion", "none", "--na", "?", "--comment", "#", "--out",
                  "o.csv", "--key", "sex", "--delimiter", ";").out  # fmt: skip
    assert "missing values of sex: a letter of their own" in printed
    assert report("solve", "plan.toml")["status"] == "certified"
    ran("plan.sh", here)
    assert Path("o.csv").read_text(encoding="utf-8").startswith("# of last year\nid;age;sex;ill")


def test_numbers_that_are_confidential_are_put_into_bands(here):
    lines = [f"{i % 60},{(i * 7) % 41 + i % 60},{i % 3}" for i in range(240)]
    write("pay.csv", "\n".join(["hours,salary,Sector", *lines]))
    facts = report("plan", "pay.csv", "--criterion", "none")
    assert [a["answer"] for a in facts["answers"]][:2] == ["salary", "Sector"]
    assert "its name says 'salary'" in facts["answers"][0]["why"]
    assert "salary=q5" in facts["command"]
    assert facts["distortion"] == ["Sector=ordinal"]


@pytest.mark.parametrize(
    ("table", "arguments", "pieces"),
    [
        ("age\n1\n2\n", (), ["TABLE: 1 column"]),
        ("age,ill\n", (), ["TABLE: no records"]),
        ("age,ill\n" + "1,no\n" * 9, (), ["TABLE: every column is constant"]),
        (NAMES, (), ["--key: no column beside"]),
        (NAMES, ("--key", "name"),
         ["--key: no column beside ill"]),
        (None, ("--key", "note"), ["--key: 'note' has 300 values in 300 records"]),
        (None, ("--key", "ill"), ["--key: 'ill' is confidential"]),
        (None, ("--sensitive", "wealth"), ["--sensitive: no column 'wealth'", "'age'"]),
        (None, (*QUICK, "--budget", "-1"), ["--budget"]),
        (None, (*QUICK, "--budget", "x"), ["--budget: 'x'"]),
        (None, ("--criterion", "Peace=1"), ["--criterion: 'Peace' is unknown"]),
        (None, (*QUICK, "--out", "o.parquet"), ["--out: o.parquet would hold text"]),
        (None, (*QUICK, "--out", "t.csv"), ["--out: t.csv is the input"]),
        (None, ("--row-id", "person"), ["--row-id: no column 'person'"]),
        (None, ("--row-id", "age"), ["--row-id: 'age' has 40 values in 300 records"]),
        (None, ("--plan", "none/p"), ["--plan: none/p.toml: there is no folder"]),
        ("age,ill\n" + "1,no\n2,no\n1,yes\n2,yes\n" * 9, (),
         ["--key: no budget lowers what it tells"]),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_by_name(table, arguments, pieces, here):
    if table is not None:
        write("t.csv", table)
    refused("plan", "t.csv", "--yes", *arguments, pieces=pieces)


def test_a_promise_that_no_release_keeps_is_said(here):
    arguments = ("--key", "sex", "--criterion", "TCloseness=0.001", "--budget", "0.001")
    refused("plan", "t.csv", "--yes", *arguments, pieces=["cannot hold together"], code=3)


@pytest.mark.parametrize(
    "answers", [(), ("ill",), ("ill", "age, sex"), ("ill", "age, sex", "none")]
)
def test_who_leaves_a_session_leaves_nothing_behind(answers, at_terminal):
    before = contents()
    done = at_terminal(*answers)
    assert done.exit_code == 130
    assert done.stderr.endswith("cvxprivacy: interrupted\n")
    assert contents() == before


def test_half_a_curve_is_no_curve(here, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cvxprivacy.frontiers.parametric.ParametricProblem.record", stopped)
    before = contents()
    assert "interrupted" in say("plan", "t.csv", *QUICK, "--yes", code=130).err
    assert contents() == before


def test_round_numbers_reach_both_ends():
    for first, last in ((0.0, 1.2), (0.0, 3e-7), (0.0123456, 0.4), (7.0, 1e4), (0.3, 0.30001)):
        numbers = proposals.round_numbers(first, last)
        assert numbers[0] >= first
        assert numbers[0] - first <= 1e-3 * first
        assert numbers[-1] >= last
        assert numbers == sorted(set(numbers))
        assert 2 <= len(numbers) <= 2 + proposals.STEPS


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "options"),  # of the last two no whole counts are designed, which takes a minute
    some_weekly(
        [("census", ()), ("adult", ("--criterion", "none")), ("eia", ("--criterion", "none"))], 1
    ),
)
def test_plans_of_public_tables_run_unchanged(name, options, here):
    table = real_folder(name) / f"{name}.csv"
    say("plan", table, *options, "--yes")
    assert report("solve", "plan.toml")["status"] == "certified"
    assert "BROKEN" not in ran(here / "plan.sh", "/")
    assert len(rows(f"{name}.released.csv")) == len(rows(table))


@pytest.mark.long
@pytest.mark.parametrize("leaves", [False, True], ids=["answered", "Ctrl-C"])
def test_a_real_terminal_is_asked(leaves, here):
    fcntl, pty, termios = (
        pytest.importorskip(name, reason="a system without terminals of its own")
        for name in ("fcntl", "pty", "termios")
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def sits_there():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a job in the background ignores

    child = subprocess.Popen(
        [sys.executable, "-m", "cvxprivacy_sdc", "plan", "t.csv"], cwd=here, env=environment,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=sits_there,
    )  # fmt: skip
    os.close(theirs)
    answers = [b"\n", b"sex\n", b"\x03" if leaves else b"none\n", b"\n", b"\n", b"\n"]
    printed = b""
    with suppress(OSError):  # the other end is closed
        for _ in range(100):
            if not select.select([ours], [], [], 3.0)[0]:
                if leaves and len(answers) < 4:  # pressed before the prompt was listening
                    os.write(ours, b"\x03")
                continue
            if not (part := os.read(ours, 4096)):
                break
            printed += part
            if answers and printed.endswith(b"]: "):
                os.write(ours, answers.pop(0))
    os.close(ours)  # who still waits for an answer is hung up on
    assert child.wait(60) == (130 if leaves else 0), printed.decode()
    assert (b"interrupted" in printed) == leaves
    assert {*here.iterdir()} - {here / "t.csv"} == (
        set() if leaves else {here / "plan.toml", here / "plan.sh"}
    )


@pytest.mark.parametrize(("hidden", "others", "idle"), [
    ("Einkommen_netto", ("Geburtsdatum", "Geschlecht", "PLZ", "StaatsangehoerigkeitCode"), "Größe"),
    ("salaire", ("âge", "date_naissance", "code_postal", "Nationalité"), "taille"),
    ("diagnostico", ("edad", "sexo", "nivel_educacion", "OCUPACIÓN"), "altura"),
    ("Vermoegen", ("Altersklasse", "Bildungsabschluss", "Wohnort", "Beruf"), "statement"),
])  # fmt: skip
def test_columns_have_names_in_other_languages(hidden, others, idle):
    columns = {n: proposals.ColumnFacts(n, False, 3, 0, 90) for n in (idle, *others, hidden, "x")}
    name, why = proposals.confidential([*columns.values()])
    assert name == hidden
    assert why.startswith("its name says")
    for each in others:
        information = dict.fromkeys(columns, 0.1)
        named, _ = proposals.knowable([columns[each], columns[idle]], information)
        assert list(named) == [each]
