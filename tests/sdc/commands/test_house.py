"""Sets of files, what stays in the house of them, and what an ended process leaves."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvxprivacy import files
from cvxprivacy.files import file_sum, whole_file, whole_files
from cvxprivacy_sdc.dossier import provenance, tradeoff
from cvxprivacy_sdc.formats.house import checked_set
from cvxprivacy_sdc.statements import outputs
from tests.lengths import rest_at_length
from tests.sdc.audits import owner_only
from tests.sdc.commands.runner import (
    OUTPUTS,
    ROOT,
    RUN,
    SEX,
    command,
    contents,
    loaded,
    people,
    refused,
    report,
    say,
    write,
)  # fmt: skip

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="files without a name are of Linux")
SET = (*OUTPUTS, "--report", "a.html", "--report", "a.json")
NAMES = ("o.csv", "p.json", "c.json", "r.toml", "a.html", "a.json", "o.csv.house.json")
RELEASE = ("release", "t.csv", *SEX, *SET, "--no-untouched")
OTHER = (*RELEASE, "--budget", "0.2")  # of which every file is another one


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Curves are of no matter here."""
    monkeypatch.setattr(tradeoff, "SECONDS", 0.0)


def sums(names=NAMES):
    return {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in names}


# ---- the file that stays in the house ----------------------------------------------------


def test_a_set_is_listed_and_checked(here):
    say(*RELEASE)
    house = loaded("o.csv.house.json")
    assert owner_only("o.csv.house.json")
    assert house["schema"] == "cvxprivacy house 1"
    assert {entry["name"]: entry["sha256"] for entry in house["files"].values()} == sums(NAMES[:-1])
    text = say("verify", "p.json", "--table", "t.csv", "--problem", "r.toml").out
    assert "o.csv.house.json: the files of its set" in text
    assert "t.csv: the file itself, by its keyed SHA-256" in text
    write("u.csv", people().replace(",", ";"))
    assert (
        "u.csv: another file than"
        in say("verify", "p.json", "--table", "u.csv", "--delimiter", ";").out
    )
    write("o.csv", people())
    text = say("verify", "p.json", code=1).out
    assert "p.json: NOT of one set\n  o.csv.house.json: not of one set: o.csv\n" in text
    assert report("verify", "p.json", code=1)["p.json"]["verified"] is False
    Path("o.csv").unlink()  # it was handed on
    say("verify", "p.json")


def test_a_set_of_several_folders_is_listed_and_checked(here):
    for name in ("a", "b"):
        Path(name).mkdir()
    say("release", "t.csv", *SEX, "--out", "a/o.csv", "--certificate", "b/p.json")
    entries = loaded("a/o.csv.house.json")["files"]
    assert [entry["name"] for entry in entries.values()] == ["o.csv", "../b/p.json"]
    say("verify", "b/p.json")
    assert contents("b").keys() == {Path("b/p.json")}


def test_one_file_has_no_house_and_a_report_has(here):
    say("release", "t.csv", *SEX, "--out", "o.csv")
    assert contents().keys() == {Path("t.csv"), Path("o.csv")}
    say("audit", "t.csv", "--sensitive", "ill", "--key", "sex", "--report", "a.json")
    house, facts = loaded("a.json.house.json"), loaded("a.json")
    assert facts["input"]["file"] == house["table"]
    assert facts["input"]["house"] == "a.json.house.json"


def test_a_later_set_with_a_proof_of_the_same_name_is_checked(here):
    for name in ("o.csv", "n.csv"):
        say("release", "t.csv", *SEX, "--out", name, "--certificate", "p.json", "--force")
    assert "n.csv.house.json: the files" in say("verify", "p.json").out


@pytest.mark.long
def test_no_plain_sum_of_what_is_confidential_leaves_the_house(here):
    """One record is not known but for its sex and illness: each that there may be is tried."""
    say(*RELEASE)
    key = bytes.fromhex(loaded("o.csv.house.json")["key"])
    public = Path("a.json").read_text("utf-8") + Path("a.html").read_text("utf-8")
    lines, matches = Path("t.csv").read_text("utf-8").splitlines(), []
    for i, (sex, ill) in itertools.product(range(1, 301), itertools.product("MF", ("no", "yes"))):
        identity, age, _, _, note = lines[i].split(",")
        guess = [*lines[:i], f"{identity},{age},{sex},{ill},{note}", *lines[i + 1 :]]
        data = ("\n".join(guess) + "\n").encode()
        if hashlib.sha256(data).hexdigest() in public:
            matches.append(guess)
    assert matches == []
    for name in ("t.csv", "p.json", "c.json"):
        data = Path(name).read_bytes()
        assert hashlib.sha256(data).hexdigest() not in public
        assert hmac.new(key, data, hashlib.sha256).hexdigest() in public  # the house can check it
    assert sums()["o.csv"] in public
    assert "o.csv.house.json, which stays in the house" in public
    assert key.hex() not in public


# ---- a report reads what has no name yet -------------------------------------------------


def test_a_report_needs_no_temporary_folder(here, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for name in ("TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "mkstemp", "mkdtemp"):
        monkeypatch.setattr(tempfile, name, full)
    say(*RELEASE)
    facts = loaded("a.json")
    for section in ("letters", "measures", "changed", "loss"):
        assert facts[section] is not None
    assert [row for row in facts["left_out"] if "device" in row["why"]] == []
    assert contents().keys() == {Path(name) for name in ("t.csv", *NAMES)}


@pytest.mark.parametrize("ending", rest_at_length(["parquet", "sav", "csv.gz", "xlsx", "dta"], 2))
def test_every_format_is_read_before_it_has_its_name(here, ending, monkeypatch):
    frame, path = pd.read_csv("t.csv")[["age", "sex", "ill"]], f"r.{ending}"
    if ending in ("sav", "dta"):
        pyreadstat = pytest.importorskip("pyreadstat")
        getattr(pyreadstat, f"write_{ending}")(frame, path)
    else:
        {"csv.gz": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[ending](
            path, index=False
        )
    for name in ("_mkstemp_inner", "mkdtemp"):  # through which all temporary files are made
        monkeypatch.setattr(tempfile, name, None)
    say("release", path, *SEX, "--out", f"o.{ending}", "--report", "a.json", "--no-untouched")
    assert sum(row["records"] for row in loaded("a.json")["letters"]["rows"]) == 300
    names = {"t.csv", path, f"o.{ending}", "a.json", f"o.{ending}.house.json"}
    assert contents().keys() == {Path(name) for name in names}


@pytest.mark.parametrize("number", [5, 28])
def test_a_table_that_cannot_be_read_again_is_an_error(here, number, monkeypatch):
    def failing(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("cvxprivacy_sdc.dossier.tables.released_table", failing)
    refused(*RELEASE, pieces=["--out", "o.csv", os.strerror(number), "leave out --report"])


@pytest.mark.long
def test_what_is_not_read_again_is_said_with_its_reason(here, monkeypatch):
    monkeypatch.setattr(provenance, "MOST_BYTES", 1000)
    monkeypatch.setattr(provenance.Kept.unread, "__defaults__", (1000,))
    say(*RELEASE)
    (why,) = {r["why"] for r in loaded("a.json")["left_out"] if r["section"].startswith("Groups")}
    assert "bytes, too many to be read again" in why
    done = command(*BOTH_TO_A_DEVICE, cwd=here)
    assert done.returncode == 0
    (why,) = {r["why"] for r in loaded("b.json")["left_out"] if r["section"].startswith("Groups")}
    assert why == "the released table was written to a device, and cannot be read again"


BOTH_TO_A_DEVICE = ("release", "t.csv", *SEX, "--out", "/dev/stdout", "--report", "b.json",
                    "--no-untouched", "--ensure", "law")  # fmt: skip


# ---- processes that end ------------------------------------------------------------------

PAUSED = f"""
import time
from cvxprivacy_sdc.dossier import tables
def paused(*_, **__):
    print("measuring", flush=True)
    time.sleep(60)
tables.paired = paused
{RUN}
"""


@pytest.mark.long
@LINUX
@pytest.mark.parametrize(("sent", "ended"), [(signal.SIGKILL, -9), (signal.SIGHUP, 129)])
def test_a_process_that_ends_while_it_measures_leaves_named_parts(sent, ended, here):
    spare = here / "spare"
    spare.mkdir()
    before = contents()
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSED, *RELEASE], cwd=here, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(spare)},
    )  # fmt: skip
    assert process.stdout.readline() == b"measuring\n"
    process.send_signal(sent)
    process.communicate()
    assert process.returncode == ended
    assert contents(spare) == {}
    left = [path for path in Path().iterdir() if path not in before]
    assert all(".part." in path.name for path in left)
    assert sent == signal.SIGKILL or not left
    done = say(*RELEASE)
    assert done.err.count("a run is at work, or was ended") == len(left)
    assert {*Path().iterdir()} == {spare.relative_to(here), *before, *map(Path, NAMES), *left}


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no terminals that close")
def test_who_ignores_that_the_terminal_is_closed_goes_on(here):
    code = f"""
import atexit, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
atexit.register(lambda: print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN))
{RUN}
"""
    assert command("verify", "--help", cwd=ROOT, code=code).stdout.endswith("True\n")


def killed(place, *how, code=""):
    """Run a command that is killed where a file takes its name for the ``place``-th time."""
    stop = f"""
import os, signal
from cvxprivacy import files
take, count = files._take, iter(range(99))
def taking(*arguments):
    if next(count) == {place}:
        os.kill(os.getpid(), signal.SIGKILL)
    take(*arguments)
files._take = taking
{code}
{RUN}
"""
    return command(*how, code=stop).returncode


@pytest.mark.long
@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("place", rest_at_length([1, 0, 6], 1))
def test_a_set_that_was_cut_off_is_named_and_left_alone(place, force, here):
    if force:
        say(*OTHER)
    before = contents()
    assert killed(place, *RELEASE, *force) == -9
    after = contents()
    new = [name for name in NAMES if after.get(Path(name)) not in (None, before.get(Path(name)))]
    assert new == list(NAMES[:place])
    if Path("p.json").exists():
        assert "a run is at work, or was ended" in say("verify", "p.json", code=1).out
    parts = {path for path in Path().iterdir() if ".part." in path.name}
    assert len(parts) == len(NAMES) - place
    done = say(*RELEASE, "--force")
    assert done.err.count("a run is at work, or was ended") == len(parts)
    assert contents().keys() == {Path("t.csv"), *map(Path, NAMES), *parts}
    for part in parts:
        part.unlink()
    assert "the files of its set" in say("verify", "p.json").out


@pytest.mark.parametrize("place", rest_at_length([1, 0, 2], 1))
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_interruption_between_names_waits_until_all_are_taken(here, place, force, monkeypatch):
    how = ("release", "t.csv", *SEX, "--out", "o.csv", "--certificate", "p.json", "--no-untouched")
    if force:
        say(*how, "--budget", "0.2")
    before, take, count = contents(), files._take, iter(range(99))

    def taking(*arguments):
        if next(count) == place:
            raise KeyboardInterrupt
        take(*arguments)

    monkeypatch.setattr(files, "_take", taking)
    say(*how, *force, code=130)
    names = {Path(name) for name in ("t.csv", "o.csv", "p.json", "o.csv.house.json")}
    assert contents().keys() == names
    assert all(before.get(name) != contents()[name] for name in names - {Path("t.csv")})
    say("verify", "p.json")


# ---- two processes, and inputs -----------------------------------------------------------


@pytest.mark.long
def test_of_two_processes_with_one_name_one_is_refused(here):
    """Both see that nothing is there; then both write."""
    code = f"""
from pathlib import Path
import time
from cvxprivacy_sdc.commands import releasing
count = releasing.count
def counted(table, *more):
    Path("started" + table).touch()
    while len(list(Path().glob("started*"))) < 2:
        time.sleep(0.01)
    return count(table, *more)
releasing.count = counted
{RUN}
"""
    write("u.csv", people())
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, "release", table, *RELEASE[2:]], cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for table in ("t.csv", "u.csv")
    ]  # fmt: skip
    errors = [process.communicate()[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 2], errors
    assert "o.csv: was made by another process meanwhile" in errors[codes.index(2)]
    say("verify", "p.json", "--table", "t.csv", "--problem", "r.toml")
    started = {Path("startedt.csv"), Path("startedu.csv")}
    assert contents().keys() == {*map(Path, ("t.csv", "u.csv", *NAMES)), *started}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_a_name_that_was_taken_meanwhile_is_not_taken(several, links, here, monkeypatch):
    if not links:
        link = os.link

        def without(source, *arguments, **options):
            if not str(source).startswith("/proc"):
                raise PermissionError(1, "no hard links here", str(source))
            link(source, *arguments, **options)

        monkeypatch.setattr(os, "link", without)
    names = ("n.csv", "o.csv", "p.csv")[: 3 if several else 1]

    def written():
        with whole_files(replace=False) as opened:
            for name in names:
                opened.open(name).write("mine")
            write(names[-1], "theirs")

    with pytest.raises(FileExistsError) as error:
        written()
    assert error.value.filename.endswith(names[-1])
    assert contents().keys() == {Path("t.csv"), Path(names[-1])}
    assert Path(names[-1]).read_text() == "theirs"
    with whole_files(replace=False) as opened:
        opened.open("q.csv").write("mine")
    assert Path("q.csv").read_text() == "mine"


INPUTS = {
    "release": ("release", "t.csv", "--sensitive", "ill", "--key", "age,sex", "--budget", "0.1",
                "--group", "sex=g.csv", "--hierarchy", "age=h.csv", "--level", "age=1"),
    "audit": ("audit", "t.csv", "o.csv", "--sensitive", "ill", "--key", "age,sex",
              "--group", "sex=g.html", "--hierarchy", "age=h.json", "--level", "age=1"),
    "solve": ("solve", "p.toml"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["g.csv", "h.csv", "t.csv"])
@pytest.mark.parametrize("option", ["--out", "--certificate"])
def test_force_spares_what_a_release_reads(name, option, here):
    write("g.csv", "value,group\nM,a\nF,a\n")
    write("h.csv", "".join(f"{i};{i // 10}\n" for i in range(20, 60)))
    refused(*INPUTS["release"], option, name, "--force", pieces=[option, f"the input {name}"])


def test_force_spares_what_other_commands_read(here, kept):
    write("g.html", "value,group\nM,a\nF,a\n")
    write("h.json", "".join(f"{i};{i // 10}\n" for i in range(20, 60)))
    write("o.csv", people())
    for name in ("g.html", "h.json"):
        refused(*INPUTS["audit"], "--report", name, "--force", pieces=[f"the input {name}"])
    write("c.json", (kept / "c.json").read_bytes())
    refused("apply", "c.json", "t.csv", "--out", "c.json", "--force", pieces=["the input c.json"])
    text = (
        'formulation = "PrivacyDistortion"\nbudget = 0.1\n[source]\ntable = "t.csv"\n'
        'sensitive = "ill"\nkey = "sex"\ngroups = {{ sex = "g.html" }}\n'
        '[distortion]\nkind = "hamming"\n[output]\ncertificate = "{}"\n'
    )
    for name in ("g.html", "t.csv", "p.toml"):
        write("p.toml", text.format(name))
        refused(*INPUTS["solve"], "--force", pieces=[f"the input {name}"])


def test_a_house_that_is_there_is_replaced_only_with_force(here):
    write("o.csv.house.json", "old")
    refused(*RELEASE, pieces=["o.csv.house.json is there already", "--force"])
    say(*RELEASE, "--force")
    assert loaded("o.csv.house.json")["schema"] == "cvxprivacy house 1"


def test_a_link_is_no_output(here):
    """It may have come with the folder, and lead to any file of whoever writes."""
    for name, force in (("thesis.txt", ()), ("thesis.txt", ("--force",)), ("new.txt", ())):
        Path("thesis.txt").write_text("mine")
        Path("o.csv").unlink(missing_ok=True)
        Path("o.csv").symlink_to(name)
        refused(*RELEASE, *force, pieces=["o.csv is a link", "name the file itself"])
        with pytest.raises(OSError, match="is a link: name the file itself"), whole_file("o.csv"):
            pass
        assert Path("thesis.txt").read_text() == "mine"
        assert not Path("new.txt").exists()


def test_a_pipe_in_a_folder_is_not_waited_for(here):
    os.mkfifo("x.house.json")
    os.mkfifo("pipe")
    Path("o.csv").symlink_to("pipe")
    assert checked_set("p.json").problems == []
    refused(*RELEASE, pieces=["o.csv is a link"])


def manifest_with(**more):
    """Return a file of a set that names a proof, with other entries."""
    good = {
        "schema": "cvxprivacy house 1", "key": 64 * "0",
        "files": {"certificate": {"name": "p.json", "sha256": file_sum("p.json")}},
    }  # fmt: skip
    return json.dumps({**good, **more})


ENTRY = {"name": "p.json", "sha256": 64 * "0"}
NO_MANIFESTS = {
    "too deep": lambda: 200_000 * "[",
    "too long": lambda: manifest_with(note=(16 << 20) * " "),
    "of no files": lambda: manifest_with(files=[]),
    "of a NUL": lambda: manifest_with(files={"certificate": ENTRY, "out": {**ENTRY, "name": "\0"}}),
    "of no sum": lambda: manifest_with(files={"certificate": {"name": "p.json"}}),
    "of a short sum": lambda: manifest_with(files={"certificate": {**ENTRY, "sha256": "00"}}),
    "of a number": lambda: manifest_with(files={"certificate": {**ENTRY, "name": 1}}),
    "of no key": lambda: manifest_with(key=None),
    "of no table": lambda: manifest_with(table={"name": "t.csv"}),
    "of bytes": lambda: b"\xff\xfe",
}


@pytest.mark.parametrize("how", NO_MANIFESTS)
def test_a_file_that_is_no_manifest_is_of_no_set(how, here, kept):
    write("p.json", (kept / "p.json").read_bytes())
    write("e.house.json", NO_MANIFESTS[how]())
    say("verify", "p.json", "--table", "t.csv")
    assert checked_set("p.json").lines == []


@pytest.mark.parametrize("name", ["../secret", "{here}/secret", "link", "sub/../own", "..", "."])
def test_only_files_beside_a_manifest_are_read(name, here, kept, monkeypatch):
    """Their sums would tell an enemy what is in them."""
    inside = here / "inside"
    inside.mkdir()
    write("secret", "theirs")
    os.chdir(inside)
    write("p.json", (kept / "p.json").read_bytes())
    write("own", "mine")
    (inside / "sub").mkdir()
    Path("link").symlink_to("../secret")
    entry = {"name": name.format(here=here), "sha256": 64 * "0"}
    proof = {"name": "p.json", "sha256": file_sum("p.json")}
    write("e.house.json", manifest_with(files={"certificate": proof, "out": entry}))
    sums = []
    monkeypatch.setattr(
        "cvxprivacy_sdc.formats.house.file_sum", lambda p: sums.append(p) or file_sum(p)
    )
    assert len(checked_set("p.json").lines) == 1
    assert [path.name for path in sums] == ["p.json"]
    entry["name"] = "own"
    write("e.house.json", manifest_with(files={"certificate": proof, "out": entry}))
    assert checked_set("p.json").problems == ["e.house.json: not of one set: own"]


def hostile(rng, sentinel, token):
    """Return what an enemy may leave in a folder: the name of an entry, and what it is."""
    targets = ["o.csv", "p.json", "o.csv.house.json", "../outside/keys", str(sentinel), "a\nb", ""]
    parts = [f".{token}.part.{target}" for target in targets if "/" not in target]
    lines = [
        {"part": rng.choice([*parts, *targets]), "target": rng.choice(targets),
         "sha256": rng.choice(["", hashlib.sha256(b"theirs").hexdigest()])}
        for _ in range(rng.integers(0, 4))
    ]  # fmt: skip
    journal = {"schema": "cvxprivacy pending 1", "replace": bool(rng.integers(2)), "files": lines}
    names = [f".{token}.pending", *parts]
    return str(rng.choice(names)), json.dumps(journal)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.long) for i in (1, 2))])
def test_nothing_that_lies_in_a_folder_moves_a_file_outside(seed, here):
    """Journals, parts, links, pipes and folders of all names that a run uses or used."""
    rng, inside, outside = np.random.default_rng(seed), here / "inside", here / "outside"
    inside.mkdir()
    outside.mkdir()
    sentinel = outside / "keys"
    sentinel.write_text("mine")
    os.chdir(inside)
    for trial in range(100):
        for _ in range(rng.integers(1, 5)):
            name, text = hostile(rng, sentinel, rng.bytes(8).hex())
            kind = rng.integers(5)
            if kind == 0:
                Path(name).symlink_to(rng.choice([str(sentinel), "../outside", "../outside/new"]))
            elif kind == 1:
                os.mkfifo(name)
            elif kind == 2:
                Path(name).mkdir()
            else:
                Path(name).write_text(rng.choice([text, text[:40], "theirs"]))
        theirs = {path: path.lstat().st_ino for path in Path().iterdir()}
        assert len(files.leftovers(["o.csv", "p.json"])) <= len(theirs)
        with whole_files(replace=True) as opened:
            for name in ("o.csv", "p.json", "o.csv.house.json"):
                opened.open(name).write(f"{trial}")
        checked_set("p.json")
        assert {path: path.lstat().st_ino for path in Path().iterdir() if path in theirs} == theirs
        assert [p.name for p in outside.iterdir()] == ["keys"]
        assert sentinel.read_text() == "mine"
        for path in [*theirs, *map(Path, ("o.csv", "p.json", "o.csv.house.json"))]:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_a_file_is_written_where_there_is_one_alone(here):
    """As libraries use it: no journal, no house."""
    with whole_file("x.txt") as file:
        file.write("x")
    assert contents().keys() == {Path("t.csv"), Path("x.txt")}
    assert outputs.write_all([]) == {}
