"""Files that are written whole, together, or not at all, whatever ends the command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cvxprivacy.files import whole_file
from tests.lengths import rest_at_length
from tests.sdc.commands.runner import (
    OUTPUTS,
    ROOT,
    RUN,
    SEX,
    command,
    contents,
    people,
    refused,
    rows,
    write,
)  # fmt: skip

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@LINUX
@pytest.mark.parametrize("full", OUTPUTS[::2])
def test_a_full_disk_leaves_nothing_and_is_named(full, here):
    outputs = [part for pair in zip(OUTPUTS[::2], OUTPUTS[1::2], strict=True) for part in
               (pair if pair[0] != full else (full, "/dev/full"))]  # fmt: skip
    refused("release", "t.csv", *SEX, *outputs, pieces=["/dev/full", "space"])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Make a table that takes a moment to write."""
    header, *lines = people().replace('"', "").splitlines()
    text = "\n".join([header, *(line + "." * 60 for line in lines * 100), ""])
    return write(tmp_path_factory.mktemp("large") / "t.csv", text)


def bytes_written(process, folder):
    """Return how much of a file of this folder, named or not, the process has written."""
    with suppress(OSError):
        for link in Path(f"/proc/{process.pid}/fd").iterdir():
            if str(link.readlink()).startswith(f"{folder}/") and (size := link.stat().st_size):
                return size
    return 0


@pytest.mark.long
@LINUX
@pytest.mark.parametrize(("sent", "ended"), rest_at_length([
    (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9),
], 1))  # fmt: skip
def test_a_killed_command_leaves_what_stood_there(sent, ended, large, kept, here):
    killed, before = 0, contents()
    for megabytes in (0, 1):
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, "apply", kept / "c.json", large, "--out", "o.csv",
             "--force"],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, cwd=here,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        while process.poll() is None and bytes_written(process, here) <= megabytes * 1e6:
            time.sleep(0.001)
        process.send_signal(sent)
        assert b"Traceback" not in process.communicate()[1]
        parts = [path for path in Path().iterdir() if ".part." in path.name]
        assert len(parts) <= (sent == signal.SIGKILL)  # which nothing can tidy up after
        for part in parts:
            part.unlink()
        after = contents()
        if after == before:
            killed += 1
            assert process.returncode == ended
        else:  # it had ended before: the file is whole, and alone
            assert after.keys() - before.keys() <= {Path("o.csv")}
            assert len(rows("o.csv")) == 30_000
        write("o.csv", "old")
        before = contents()
    assert killed


@pytest.mark.long
@LINUX
def test_an_error_halfway_leaves_what_stood_there(large, kept, here):
    code = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (10**6, 10**6)); {RUN}"
    for _ in range(2):
        before = contents()
        how = ("apply", kept / "c.json", large, "--out", "o.csv", "--force")
        done = command(*how, cwd=here, code=code)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"cvxprivacy: .*too large\n", done.stderr)
        assert contents() == before
        write("o.csv", "old")


@pytest.mark.parametrize("old", [None, "old"])
def test_an_exception_leaves_what_stood_there(old, here):
    if old is not None:
        write("o.csv", old)
    before = contents()
    with pytest.raises(TypeError), whole_file("o.csv") as file:
        file.writelines(["new", None])
    assert contents() == before
    with whole_file("o.csv") as file:
        file.write("new")
    assert Path("o.csv").read_text() == "new"
    assert contents().keys() == before.keys() | {Path("o.csv")}
