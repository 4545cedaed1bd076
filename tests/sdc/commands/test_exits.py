"""What the process itself does: what it loads, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cvxprivacy_sdc.statements.exits import Commands
from tests.lengths import rest_at_length
from tests.sdc.commands.runner import OUTPUTS, SEX, command, contents, refused, say


@pytest.mark.long
def test_the_main_refusals_of_the_real_command(here):
    Path("link").symlink_to("o.csv")
    for args in (("none.csv", *SEX), (".", *SEX), ("link", *SEX), ("t.csv",), ("t.csv", *SEX[:-2]),
                 ("t.csv", *SEX, "--out", "t.csv"), ("none.parquet", *SEX)):  # fmt: skip
        refused("release", *OUTPUTS, *args)
    for args in (("none.csv", *SEX), ("t.csv",)):
        before = contents()
        done = command("release", *OUTPUTS, *args, cwd=here)
        assert (done.returncode, done.stdout, contents()) == (2, "", before), args
        assert done.stderr.strip()


@pytest.mark.long
@pytest.mark.parametrize("encoding", rest_at_length(["ascii", "cp1252"], 1))
def test_a_console_without_the_letters_gets_the_report_all_the_same(encoding, here):
    done = command("release", "t.csv", *SEX, cwd=here, env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, "")
    assert "risk after" in done.stdout


ONE_AFTER_ANOTHER = """
import json, sys
from contextlib import redirect_stdout
from io import StringIO
from cvxprivacy_sdc.commands import main
for args in json.loads(sys.argv[1]):
    with redirect_stdout(StringIO()) as said:
        try:
            main(args, prog_name="cvxprivacy")
        except SystemExit as done:
            code = done.code
    assert said.getvalue()
    print(json.dumps([args, code, [*sys.modules]]), file=sys.stderr)
"""


def test_help_and_verify_load_neither_solver_nor_plots(kept, here):
    helps = [["--help"], *([c, "--help"] for c in ("apply", "attack", "verify", "solve"))]
    verify = ["verify", str(kept / "p.json")]
    others = [  # the help of release lists criteria and measures
        ["release", "--help"], verify, [*verify, "--table", str(kept / "t.csv")],
        [*verify, "--problem", str(kept / "r.toml")],
        ["apply", str(kept / "c.json"), "t.csv", "--out", "o.csv"],
    ]  # fmt: skip
    for commands, heavy in (
        ([*helps, ["--version"]], {"cvxpy", "matplotlib", "numpy", "pandas", "scipy"}),
        (others, {"cvxpy", "matplotlib"}),
    ):
        done = command(json.dumps(commands), code=ONE_AFTER_ANOTHER, cwd=here)
        assert done.returncode == 0
        ended = [json.loads(line) for line in done.stderr.splitlines()]
        assert [args for args, _, _ in ended] == commands
        for args, code, loaded in ended:
            assert code == 0, args
            assert "click" in loaded
            assert not heavy & set(loaded), args


@pytest.mark.parametrize("command", ["release", "apply", "attack", "audit"])
def test_options_stand_under_headings(command):
    _, other = say(command, "--help").out.split("\nOther:\n")
    options = re.findall(r"^  (?:-h, )?(--\w+)", other.split("\n\n")[0], re.MULTILINE)
    assert options == ["--json", "--help"]


def test_the_help_lists_the_exit_code_of_a_loose_optimum():
    text = say("-h").out.split()
    assert re.search(
        r"; 5 the release is made, but proved to be optimal only loosely;", " ".join(text)
    )


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "f"), 2, "f: Permission denied"),
        (BrokenPipeError(), 0, ""),
        (RuntimeError("why"), 70, "this should not have happened: RuntimeError: why (set CVXPRIV"),
    ],
)
def test_every_failure_is_one_line_and_a_code(error, code, text, monkeypatch):
    def fail():
        raise error

    group = Commands(commands=[click.Command("fail", callback=fail)])
    done = CliRunner().invoke(group, ["fail"])
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(f"cvxprivacy: {text}" if text else "")
    assert len(done.stderr.splitlines()) == bool(text)
    monkeypatch.setenv("CVXPRIVACY_TRACEBACK", "1")
    done = CliRunner().invoke(group, ["fail"])
    assert done.exit_code == (1 if code == 70 else code)
    assert (done.exception is error) == (code == 70)
