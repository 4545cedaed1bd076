"""The gallery's pages are those of the scripts that there are, and hide no script that breaks."""

from __future__ import annotations

import os

import pytest

from tests.repository import ROOT, script

gallery = script(ROOT / "docs" / "gallery.py")
HEAD = '"""A title.\n\nA text.\n"""\n\nimport sys\n\n'
RUNS = HEAD + 'print("A title")\nprint("two")\nprint("\\npicture: it")\n'
REFUSES = HEAD + 'sys.exit("dataset: go online")\n'


@pytest.fixture
def root(tmp_path):
    for folder in gallery.SECTIONS:
        (tmp_path / folder).mkdir()
    return tmp_path


def test_a_script_without_its_data_is_run_again(root):
    path, pages = root / "problems" / "one.py", root / "gallery"
    path.write_text(REFUSES)
    gallery.write(root, pages)
    assert "not run for these pages.\ndataset: go online" in (pages / "one.md").read_text()
    before = path.stat()
    path.write_text(RUNS)
    os.utime(path, (before.st_atime, before.st_mtime))  # its data came, it is no newer
    gallery.write(root, pages)
    assert "```text\ntwo\n```" in (pages / "one.md").read_text()


def test_a_script_that_breaks_stops_the_build(root):
    (root / "figures" / "one.py").write_text(HEAD + "1 / 0\n")
    with pytest.raises(RuntimeError, match=r"one.py breaks[\s\S]*ZeroDivisionError"):
        gallery.write(root, root / "gallery")


def test_a_script_that_is_gone_has_no_page(root):
    path = root / "problems" / "one.py"
    path.write_text(RUNS)
    gallery.write(root, root / "gallery")
    path.unlink()
    gallery.write(root, root / "gallery")
    assert [page.name for page in (root / "gallery").glob("*.md")] == ["index.md"]
