"""Whole counts for a release: each reason against them, one law solved once, one time limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.errors import UnknownValueError
from cvxprivacy_sdc.releases import drawn_table, table_design
from cvxprivacy_sdc.releases.drawn_table import DrawnTable
from cvxprivacy_sdc.releases.table_design import Undesigned, whole_counts
from tests.sdc.audits import people

CLOSE = cpv.TCloseness(0.05)


def posed(table, criteria=(CLOSE,), *, encoder="x", width=20, **options):
    source = cpv.DiscreteSource.from_table(
        table, sensitive="ill", key=["age", "sex"], bins={"age": width}, **options
    )
    return cpv.MinimumDistortion(source, cpv.hamming(source.x), list(criteria), encoder=encoder)


class Doubled(cpv.ChannelProblem):
    """A formulation of one's own."""

    def formulation(self):
        return 2 * self.distortion, {"close": self.risk <= 0.02}


def budgeted(table, encoder):
    source, rules = posed(table).source, [CLOSE]
    how = {"budget": Fraction(3, 10), "criteria": rules, "encoder": encoder}
    return cpv.PrivacyDistortion(source, cpv.hamming(source.x), **how)


def released_letters(problem, table):
    """Return the letters of the table's own records."""
    letters = problem.source.schema.letters(nw.from_native(table), ("age", "sex"))
    return pd.DataFrame([map(str, pair) for pair in letters], columns=["age", "sex"])


def reason(problem, table, **how):
    drawn = DrawnTable.of(problem, problem.solve(), table, seed=1, ensure="table", **how)
    assert drawn.designed is None
    assert drawn.undesigned.words.startswith("the table was drawn, and not designed")
    return drawn.undesigned


def stopped(status):
    """Return what solves for no counts."""

    def solve(self, **how):
        answer = real(self, **how)
        return replace(answer, status=status, counts=None, channel=None)

    real = sdc.WholeCounts.solve
    return solve


@pytest.mark.parametrize("encoder", ["x", "wx"])
def test_a_budget_is_kept_by_the_table(encoder):
    table = people(300)
    problem = budgeted(table, encoder)
    drawn = sdc.release_table(problem, table, seed=1, ensure="table")
    assert drawn.designed is not None
    assert drawn.holds
    assert drawn.distortion <= Fraction(3, 10)
    check = next(check for check in drawn.checks if check.kind == "budget")
    assert check.holds
    assert drawn.designed.lower <= drawn.designed.value
    changed = (drawn.frame[["age", "sex"]].astype(str) != released_letters(problem, table)).any(
        axis=1
    )
    assert changed.sum() <= 90


def test_every_reason_is_told(monkeypatch):
    table = people(300)
    asked, reasons = posed(table), []
    reasons.append(reason(Doubled(asked.source, cpv.hamming(asked.source.x)), table))
    whatever = {"budget": 0.3, "prior": "any"}
    of_any = cpv.PrivacyDistortion(asked.source, cpv.hamming(asked.source.x), **whatever)
    reasons.append(reason(of_any, table))
    weighted = table.assign(weight=1.0 + table["id"] % 2)
    reasons.append(reason(posed(weighted, weights="weight"), weighted))
    local = reason(posed(table, [CLOSE, cpv.LocalPrivacy(4)]), table)
    assert "LocalPrivacy(4)" in local.words
    reasons += [local, reason(asked, table, draw="balanced"), reason(asked, table, time_limit=0)]
    reasons.append(reason(asked, pl.DataFrame(table).lazy()))
    with monkeypatch.context() as patch:
        patch.setattr(table_design, "_CELLS", 3)
        reasons.append(reason(asked, table))
        assert "3" in reasons[-1].words
    with monkeypatch.context() as patch:
        for status in ("infeasible by the solver's claim", "stopped"):
            patch.setattr(sdc.WholeCounts, "solve", stopped(status))
            reasons.append(reason(asked, table))
        late, solution = iter([0.0, 9.0]), asked.solve()
        clock = SimpleNamespace(monotonic=lambda: next(late))
        patch.setattr(table_design, "time", clock)
        reasons.append(whole_counts(asked, (), solution, seed=1, time_limit=8.0))
        assert "in 9 seconds" in reasons[-1].words
    few = people(200, seed=1)
    reasons.append(reason(posed(few, [cpv.DeltaDisclosure(0.1)], width=10), few))
    assert sorted(each.reason for each in reasons) == sorted(table_design._REASONS)
    assert not any("{" in each.words for each in reasons)


def test_a_table_that_is_designed_or_asked_nothing_has_no_reason():
    table = people(300)
    asked = posed(table)
    designed = sdc.release_table(asked, table, seed=1, ensure="table")
    assert designed.designed is not None
    assert designed.undesigned is None
    assert sdc.release_table(asked, table, seed=1).undesigned is None


def test_another_table_is_refused_before_counts_are_designed_or_drawn(monkeypatch):
    table = people(300)
    asked = posed(table)
    solution, other = asked.solve(), table.assign(ill=np.roll(table["ill"], 1))
    for name in ("whole_counts", "drawn_counts"):
        monkeypatch.setattr(drawn_table, name, None)
    how = {"seed": 1, "solution": solution, "ensure": "table"}
    with pytest.raises(cpv.InputError, match="other records of"):
        sdc.release_table(asked, other, **how)
    with pytest.raises(cpv.InputError, match="299 records, where the source has 300"):
        sdc.release_table(asked, table.iloc[1:], **how)
    with pytest.raises(UnknownValueError, match="plague"):
        sdc.release_table(asked, table.assign(ill="plague"), **how)


def test_side_information_that_nobody_uses_is_no_obstacle():
    table = people(200).assign(town=["a", "b"] * 100)
    released = sdc.release_table(posed(table, side="town"), table, seed=1, ensure="table")
    assert released.designed is not None
    assert released.frame["town"].equals(table["town"])


@pytest.mark.parametrize(("encoder", "programs"), [("x", 1), ("wx", 0)])
def test_the_law_is_solved_once(encoder, programs, monkeypatch):
    """And bounds what it bounded: a program that differs is solved anew."""
    table = people(300)
    asked = posed(table, encoder=encoder)
    solution, solved = asked.solve(), []
    solve = cpv.MinimumDistortion.solve

    def counted(self, **how):
        solved.append(self)
        return solve(self, **how)

    monkeypatch.setattr(cpv.MinimumDistortion, "solve", counted)
    counts = whole_counts(asked, (), solution, seed=1)
    assert len(solved) == programs
    anew = sdc.WholeCounts(asked.source, cpv.hamming(asked.source.x), [CLOSE], encoder=encoder)
    fresh = anew.solve(seed=1)
    assert len(solved) == 2 * programs + 1
    assert (counts.lower, counts.distortion) == (fresh.lower, fresh.distortion)
    if encoder == "x":
        assert counts.rounding.lower == fresh.rounding.lower == solution.lower
    both = posed(table, [CLOSE, cpv.RecordEntropy(20)], encoder=encoder)
    of_table, before = (cpv.KAnonymity(20),), len(solved)
    whole_counts(both, of_table, both.solve(), seed=1)
    assert len(solved) == before + 2 + programs
    with pytest.raises(cpv.InputError, match="law: of another problem"):
        anew.solve(law=both.solve())


def test_a_time_limit_is_of_law_and_counts_together(monkeypatch):
    table, limits = people(300), []
    asked = posed(table)
    solve = sdc.WholeCounts.solve

    def counted(self, **how):
        limits.append(how["time_limit"])
        return solve(self, **how)

    monkeypatch.setattr(sdc.WholeCounts, "solve", counted)
    released = sdc.release_table(asked, table, seed=1, ensure="table", time_limit=50)
    assert released.designed is not None
    assert 40 < limits[0] < 50
    sdc.release_table(asked, table, seed=1, ensure="table")
    assert limits[1] == table_design._SECONDS
    late = sdc.release_table(asked, table, seed=1, ensure="table", time_limit=1e-6)
    assert late.undesigned == Undesigned("no time")
    assert len(limits) == 2


# ---- criteria of tables ------------------------------------------------------------------


@pytest.mark.parametrize("draw", ["independent", "balanced"])
@pytest.mark.parametrize("stated", [(), (cpv.RecordEntropy(40),)])
def test_groups_of_k_are_asked_of_the_table(stated, draw):
    """With its relaxation in the problem the criterion stands in its place, else at the end."""
    table = people(300)
    asked = posed(table, [*stated, CLOSE])
    rules = [cpv.KAnonymity(40)]
    how = {"seed": 1, "ensure": "table", "draw": draw, "criteria": rules}
    released = sdc.release_table(asked, table, **how)
    names = ["KAnonymity(40)", "TCloseness(0.05)"]
    assert [check.stated for check in released.checks] == (names if stated else names[::-1])
    [check] = [check for check in released.checks if check.of_table]
    assert check.holds
    smallest = released.frame.groupby(["age", "sex"]).size().min()
    assert check.table == smallest >= 40
    assert (released.designed is None) is (draw == "balanced")


def test_criteria_of_tables_that_no_counts_take_are_mended():
    table = people(60, seed=3)
    rules = [sdc.DistinctDiversity(3)]
    how = {"seed": 1, "ensure": "table", "criteria": rules}
    released = sdc.release_table(posed(table, []), table, **how)
    assert released.undesigned.reason == "criterion"
    assert released.holds
    assert released.frame.groupby(["age", "sex"])["ill"].nunique().min() >= 3


def test_what_no_table_is_asked_is_refused():
    table = people(60)
    asked = posed(table)
    with pytest.raises(cpv.InputError, match=r"criteria\[0\]: LDiversity.*state it in the problem"):
        sdc.release_table(asked, table, seed=1, ensure="table", criteria=[cpv.LDiversity(2)])
    with pytest.raises(cpv.InputError, match="KAnonymity.5. is of a table, and no law keeps it"):
        sdc.release_table(asked, table, seed=1, criteria=[cpv.KAnonymity(5)])


@pytest.mark.long
def test_what_no_channel_satisfies_is_not_said_of_tables():
    """No channel of x keeps both rules; a table does, whose counts are less than one record off."""
    table = pd.DataFrame({"x": list("aaabbbbbbb"), "w": list("ppppppppqq")})
    source = cpv.DiscreteSource.from_table(table, sensitive="w", key="x")
    rules = [cpv.TCloseness(0.1, distance="emd")]
    problem = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.1, criteria=rules)
    with pytest.raises(cpv.InfeasibleError, match=r"^budget 0\.1 and TCloseness"):
        sdc.release_table(problem, table, seed=1)
    with pytest.raises(cpv.InfeasibleError, match="of channels that do not look") as caught:
        sdc.release_table(problem, table, seed=1, ensure="table")
    assert "whole counts, each less than a record off" in str(caught.value)
    assert caught.value.certificate.verify()
    assert sdc.WholeCounts(source, cpv.hamming(2), rules, budget=0.1).solve(seed=1).total == 1
    how = {"budget": 0.1, "criteria": rules, "encoder": "wx"}
    informed = cpv.PrivacyDistortion(source, cpv.hamming(source.x), **how)
    assert sdc.release_table(informed, table, seed=1, ensure="table").holds
