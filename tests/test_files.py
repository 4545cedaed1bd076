"""Files where the system is another: one that removes and renames no open file, other drives."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

import cvxprivacy as cpv
from cvxprivacy import files
from cvxprivacy.frontiers.explore import Checkpoint

LISTED = Path("/proc/self/fd")


def is_open(path: str | os.PathLike[str]) -> bool:
    """Tell whether this process holds a file open."""
    if not os.path.lexists(path):
        return False
    wanted = Path(path).stat()
    for entry in LISTED.iterdir():
        try:
            status = entry.stat()
        except OSError:
            continue
        if (status.st_dev, status.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Return a folder of a system that has no users, no modes, and renames no open file."""
    if not LISTED.is_dir():
        pytest.skip("what is open is read from /proc")
    monkeypatch.chdir(tmp_path)
    for name in ("geteuid", "fchmod"):
        monkeypatch.delattr(os, name, raising=False)

    def refusing(name, original):
        def call(path, *arguments, **named):
            others = [a for a in arguments if isinstance(a, str | os.PathLike)]
            for each in (path, *others):
                if is_open(each):
                    raise PermissionError(errno.EACCES, f"{name}: is in use", os.fspath(each))
            return original(path, *arguments, **named)

        return call

    for owner, name in ((Path, "unlink"), (Path, "replace"), (Path, "rename"), (os, "link")):
        monkeypatch.setattr(owner, name, refusing(name, getattr(owner, name)))
    original = os.open

    def opened(path, *arguments, **named):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "is a folder", os.fspath(path))
        return original(path, *arguments, **named)

    monkeypatch.setattr(os, "open", opened)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def write(texts: dict[str, list[str]], *, replace: bool = True) -> None:
    with files.whole_files(replace=replace) as opened:
        for name, lines in texts.items():
            opened.open(name).writelines(lines)


def test_the_simulation_refuses_what_it_should(elsewhere):
    with Path("a.txt").open("w", encoding="utf-8") as file:
        file.write("a")
        with pytest.raises(PermissionError):
            Path("a.txt").unlink()
    Path("a.txt").unlink()
    with pytest.raises(PermissionError):
        os.open(elsewhere, os.O_RDONLY)


@pytest.mark.parametrize("names", [["a.txt"], ["a.txt", "b.txt", "c.txt"]])
@pytest.mark.parametrize("replace", [True, False])
def test_files_take_their_names_together(elsewhere, names, replace):
    for _ in range(2 if replace else 1):
        write({key: ["one\n", "two\r\n"] for key in names}, replace=replace)
    assert contents(elsewhere) == dict.fromkeys(names, b"one\ntwo\r\n")
    if not replace:
        with pytest.raises(FileExistsError):
            write({key: ["other"] for key in names}, replace=False)
        assert contents(elsewhere) == dict.fromkeys(names, b"one\ntwo\r\n")


@pytest.mark.parametrize("names", [["a.txt"], ["a.txt", "b.txt"]])
def test_an_exception_leaves_nothing(elsewhere, names):
    Path("a.txt").write_text("old", encoding="utf-8")
    with pytest.raises(TypeError):
        write({key: ["new", None] for key in names})
    assert contents(elsewhere) == {"a.txt": b"old"}


def test_an_error_between_two_names_says_which_files_are_new(elsewhere, monkeypatch):
    def failing(part, target, replace):
        if target.name == "b.txt":
            raise OSError(errno.EIO, "broken disk", str(target))
        take(part, target, replace)

    take = files._take
    monkeypatch.setattr(files, "_take", failing)
    write({"a.txt": ["old"]})
    with pytest.raises(OSError, match=r"broken disk, after a\.txt had been replaced"):
        write({"a.txt": ["a"], "b.txt": ["b"]})
    assert contents(elsewhere) == {"a.txt": b"a"}
    with pytest.raises(OSError, match=r"broken disk: "):
        write({"c.txt": ["c"], "b.txt": ["b"]}, replace=False)
    assert contents(elsewhere) == {"a.txt": b"a"}  # c.txt was not there before


@pytest.mark.parametrize("link", [False, True])
def test_a_part_that_is_removed_or_replaced_is_an_error(tmp_path, monkeypatch, link):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("old", encoding="utf-8")
    Path("other").write_text("other", encoding="utf-8")
    opened = files.WholeFiles(replace=True)
    part = Path(opened.open("a.txt").name)
    part.unlink()
    if link:
        part.symlink_to("other")
    with pytest.raises(OSError, match="removed or replaced"):
        opened.finish()
    opened.close()
    assert contents(tmp_path) == {"a.txt": b"old", "other": b"other"}


def test_windows_writes_the_line_ends_that_are_given(monkeypatch):
    """Of all systems it alone has a flag for that."""
    monkeypatch.setattr(os, "O_BINARY", 0x8000, raising=False)
    monkeypatch.delattr(os, "O_NOFOLLOW", raising=False)
    windows = {"__name__": "cvxprivacy.files_of_windows"}
    exec(compile(Path(files.__file__).read_text(encoding="utf-8"), "files", "exec"), windows)
    assert (windows["BINARY"], windows["NO_LINK"]) == (0x8000, 0)


def test_files_of_two_drives_make_one_set(elsewhere, monkeypatch):
    for name in ("c", "d"):
        Path(name).mkdir()

    def relpath(path, start=os.curdir):
        drives = {Path(os.path.realpath(p)).parts[len(elsewhere.parts)] for p in (path, start)}
        if len(drives) > 1:
            raise ValueError("path is on mount 'c:', start on mount 'd:'")
        return original(path, start)

    original = os.path.relpath
    monkeypatch.setattr(os.path, "relpath", relpath)
    write({"c/a.txt": ["a"], "d/b.txt": ["b"]})
    assert contents(elsewhere / "c") == {"a.txt": b"a"}
    assert contents(elsewhere / "d") == {"b.txt": b"b"}
    assert files.relative(elsewhere / "c" / "a.txt", elsewhere / "c") == "a.txt"
    far = elsewhere / "c" / "a.txt"
    assert files.relative(far, elsewhere / "d") == far.as_posix()


def test_paths_that_are_kept_have_slashes(monkeypatch):
    monkeypatch.setattr(os.path, "relpath", lambda path, start: "..\\here\\t.csv")
    monkeypatch.setattr(files, "Path", __import__("pathlib").PureWindowsPath)
    assert files.relative("C:\\here\\t.csv", "C:\\there") == "../here/t.csv"


def test_a_checkpoint_is_taken_up(elsewhere):
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2), budget=0.1
    )
    first = cpv.frontier(problem, points=[0.05, 0.1, 0.2], checkpoint="c.jsonl")
    lines = Path("c.jsonl").read_bytes().splitlines(keepends=True)
    assert all(line.endswith(b"\n") and not line.endswith(b"\r\n") for line in lines)
    assert json.loads(lines[0])
    again = cpv.frontier(problem, points=[0.05, 0.1, 0.2], checkpoint="c.jsonl")
    assert [p.upper for p in again.points] == [p.upper for p in first.points]
    Checkpoint(None, []).close()


def test_channels_and_proofs_are_written_and_read(elsewhere):
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2), budget=0.1
    )
    solution = problem.solve()
    for _ in range(2):
        solution.channel.save("channel.json")
        solution.certificate.to_json("proof.json")
    assert cpv.Channel.load("channel.json") == solution.channel
    document = cpv.verifier.verify.read_document("proof.json")
    assert cpv.verifier.verify.disagreements(document) == []
    assert sorted(contents(elsewhere)) == ["channel.json", "proof.json"]


def test_a_path_that_leads_out_of_the_devices_is_of_a_file(tmp_path):
    assert files.is_device("/dev/null")
    assert not files.is_device("/dev/../tmp/o.csv")
    assert not files.is_device(f"/dev/..{tmp_path}/o.csv")
