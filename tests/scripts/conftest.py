"""One way to run a script of problems/ or figures/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from cvxprivacy import study
from tests import pictures
from tests.repository import ROOT, script


@dataclass(frozen=True)
class Ran:
    """A script that has run: what it computed, what it claims, what it printed."""

    module: ModuleType
    result: Any
    claims: dict[str, study.Claim]  # by what they speak of
    text: str

    @property
    def differing(self) -> set[str]:
        """What does not agree with the papers."""
        return {what for what, claim in self.claims.items() if not claim.agrees}


@pytest.fixture
def run(tmp_path, capsys):
    """Run a script; no claim may differ without saying why, and its picture has the house style.

    A script that has no ``--quick`` is made quick by other values of its constants.
    """

    def run(path, *arguments, **constants):
        module, picture = script(ROOT / f"{path}.py"), tmp_path / "deep" / "picture.png"
        for name, value in constants.items():
            assert name in vars(module)
            setattr(module, name, value)
        outcome = study.run(
            module.study, module.report, module.draw, [*arguments, "--out", str(picture)]
        )
        assert picture.read_bytes()[:4] == b"\x89PNG"
        pictures.check(outcome.figure)
        text = capsys.readouterr().out
        assert not re.search(r"\b(?i:nan)\b|-0\.0000 |\bNone\b", text), text
        for claim in outcome.claims:
            assert claim.agrees or claim.why, claim
        claims = {claim.what: claim for claim in outcome.claims}
        assert len(claims) == len(outcome.claims), "two claims of one name"
        return Ran(module, outcome.result, claims, text)

    return run
