"""One way to run a script of problems/ or figures/."""

from __future__ import annotations

import re

import pytest

from tests.test_architecture import ROOT, script


@pytest.fixture
def run(tmp_path, capsys):
    """Run a script small: return its module, its result and what it printed."""

    def run(path, *arguments, words=()):
        module, picture = script(ROOT / f"{path}.py"), tmp_path / "deep" / "picture.png"
        if path.startswith("figures"):
            arguments, words = (*arguments, "--quick"), (*words, "paper:", "here:", "why:")
        result = module.main([*arguments, "--out", str(picture)])
        assert picture.read_bytes()[:4] == b"\x89PNG"
        assert picture.stat().st_size > 30_000
        text = capsys.readouterr().out
        for word in (*words, str(picture)):
            assert word in text
        wrong = r"\bnan\b|-0\.0000 |\bNOT?\b|\bCHANGED\b"  # what a script prints of a failed check
        assert not re.search(wrong, text), text
        return module, result, text

    return run
