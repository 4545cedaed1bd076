"""A little of each campaign of attacks here, somewhat more of it in the long suite."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cvxprivacy_verifier import verify
from tests import attacks, forgeries, malformed
from tests.claims import claimed
from tests.lengths import some_weekly
from tests.tally import Tally

WHOLE = {"forge": 100_000, "lie": 10_000, "gaussian": 2_000, "malformed": 2_000}

posix = pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX's")


def passed(name: str, count: int) -> Tally:
    tally = attacks.campaign(name, count)
    assert not tally.false, "\n".join(tally.false[:20])
    return tally


def test_no_forgery_is_false() -> None:
    tally = passed("forge", WHOLE["forge"] // 2500)
    assert tally.verified >= tally.tried // 4  # the attack is on the proof, not on the format
    assert len(tally.refusals) >= 3


@pytest.mark.long
def test_no_forgery_is_false_at_length() -> None:
    assert passed("forge", WHOLE["forge"] // 150).verified >= WHOLE["forge"] // 600


def test_no_lie_is_believed() -> None:
    tally = passed("lie", WHOLE["lie"] // 400)
    assert tally.refusals["certified"] < tally.tried  # some lies do harm


@pytest.mark.long
def test_no_lie_is_believed_at_length() -> None:
    tally = passed("lie", WHOLE["lie"] // 100)
    assert tally.refusals["certified"] < tally.tried
    assert tally.refusals["uncertified"] >= 1


@pytest.mark.long
def test_an_order_or_a_unit_changes_no_value_at_length() -> None:
    assert passed("gaussian", WHOLE["gaussian"] // 50).verified >= 35


@posix
@pytest.mark.long
def test_no_file_starves_the_verifier_at_length() -> None:
    tally = passed("malformed", len(malformed.KINDS))  # of each one, every twentieth of them large
    assert tally.largest[0] <= malformed.SPACE


@posix
@pytest.mark.parametrize("name", some_weekly(malformed.KINDS, 13))
@pytest.mark.long
def test_no_large_file_starves_the_verifier(name: str) -> None:
    import numpy as np

    outcome = malformed.offered(np.random.default_rng(0), name, int(0.95 * malformed.MOST))
    assert not outcome.starved, outcome
    assert outcome.bytes <= malformed.SPACE


@pytest.mark.long
@posix
def test_columns_that_stand_for_all_outputs_are_never_written_out(tmp_path: Path) -> None:
    """A file of L n numbers asks for L n m costs: half a gigabyte of them here, were all made."""
    letters = 1500
    law = [[1.0] * letters, [2.0] * letters]
    cost = [[[float(i % k)] for i in range(letters)] for k in (3, 5)]
    view = {"labels": [[0] * letters, [1] * letters], "reference": None}
    view["measure"] = malformed.INFORMATION
    more = {"law": law, "views": {"W": view}, "objective": malformed.term(cost=cost)}
    path = tmp_path / "proof.json"
    path.write_bytes(malformed.written(malformed.channel(letters, letters, **more)))
    code, _, memory, text = malformed.watched(path)
    assert code == 1  # what is claimed is not what is proved
    assert "Traceback" not in text
    assert memory < 2**28


# ---- the attacks themselves --------------------------------------------------------------


def honest(name: str) -> dict[str, Any]:
    outcome = (d for n, d in forgeries.pool(0, 65) if n == name)
    return copy.deepcopy(next(d for d in outcome if d["claim"]["status"] == "certified"))


@pytest.mark.parametrize("name", ["binary", "scalar", "region", "quadratic_gaussian"])
def test_a_lower_end_that_is_too_high_is_noticed(name: str) -> None:
    """The judge of forgeries sees what a verifier that believed too much would let pass."""
    document = honest(name)
    assert forgeries.falsehood(document, document) == ""
    wrong = copy.deepcopy(document)
    above = float(document["claim"]["upper"]) + 1e-9
    wrong["claim"] |= {"lower": above, "upper": above + 1e-9}
    assert forgeries.falsehood(wrong, document)
    wrong["claim"] = {**document["claim"], "status": "infeasible", "lower": "inf", "upper": "inf"}
    assert forgeries.falsehood(wrong, document)
    wrong["claim"] = copy.deepcopy(document["claim"])
    term = next(iter(wrong["claim"]["terms"]))
    wrong["claim"]["terms"][term] = [x + 1e-9 for x in wrong["claim"]["terms"][term]]
    assert forgeries.falsehood(wrong, document)


def test_a_feasible_point_refutes_a_bound_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the second checker believed the same."""
    for name in ("binary", "scalar"):
        document = honest(name)
        above = float(document["claim"]["upper"]) + 1e-9
        wrong = copy.deepcopy(document)
        wrong["claim"] |= {"lower": above, "upper": above}
        with monkeypatch.context() as patch:
            text = (above, above, wrong["claim"]["status"], {})
            patch.setattr(forgeries.second_checker, "judged", lambda *_, text=text: text)
            assert "feasible point" in forgeries.falsehood(wrong, document)


def test_a_verifier_that_trusts_multipliers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the sign of a multiplier as it is given, and forgeries are false."""
    monkeypatch.setattr(
        verify.ChannelProof,
        "_multipliers",
        lambda self, row, value: [verify.arb(value if isinstance(value, float) else 0)] * self.m,
    )
    document = honest("binary")
    document["dual"]["multipliers"]["budget"] *= -1
    document["program"]["rows"]["budget"]["bound"] = "5/1"
    wrong = claimed(document)
    assert verify.disagreements(wrong) == []
    assert forgeries.falsehood(wrong, honest("binary"))


def test_a_file_that_starves_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome_of(code: int, text: str = "") -> str:
        return malformed.Seen("", 0, code, 0.0, 0, text).starved

    assert not any(map(outcome_of, (0, 1, 2)))
    assert outcome_of(-9) == "ended by -9"
    assert outcome_of(-6) == "ended by -6"
    assert outcome_of(1, "Traceback (most recent call last)") == "traceback"
    assert outcome_of(1, "not a certificate: MemoryError:") == "out of memory"
    path = tmp_path / "proof.json"
    path.write_text(json.dumps({}))
    code, _, memory, _ = malformed.watched(path)
    assert code == 1
    assert 2**20 < memory < malformed.SPACE


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert attacks.main(["forge", "--count", "20", "--seed", "3", "--first", "100"]) == 0
    assert capsys.readouterr().out.startswith("forge: 20 tried, ")


def test_false_ones_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(attacks.CAMPAIGNS, "forge", lambda *_: Tally(1, 1, ["trial 0: wrong"]))
    assert attacks.main(["forge", "--count", "1"]) == 1
    assert capsys.readouterr().out == "trial 0: wrong\nforge: 1 tried, 1 verified, 1 false\n"
