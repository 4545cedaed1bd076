"""Hierarchies: coarser and coarser groupings, as channels, and what is none."""

from __future__ import annotations

import math

import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.sdc.audits import refusal


def test_hierarchies_are_channels():
    ages = sdc.Hierarchy.intervals([17, 29, 30, 64], 10, 20)
    assert [len(set(level)) for level in ages.levels] == [4, 4, 3, 1]
    assert ages.levels[1] == ["[10, 20)", "[20, 30)", "[30, 40)", "[60, 70)"]
    channel = ages.channel(2)
    assert channel.outputs == ["[0, 20)", "[20, 40)", "[60, 80)"]
    assert channel.matrix.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert channel.apply([64, 17, 30], seed=0).tolist() == ["[60, 80)", "[0, 20)", "[20, 40)"]
    assert ages.channel(0).outputs == [17, 29, 30, 64]
    edges = sdc.Hierarchy.intervals([1, 5, 9], (-math.inf, 4, math.inf), suppress=False)
    assert edges.levels[1:] == [["< 4", "≥ 4", "≥ 4"]]
    towns = sdc.Hierarchy.tree(
        {"Paris": ("France", "Europe"), "Lyon": ("France", "Europe"), "Rome": ("Italy", "Europe")}
    )
    assert repr(towns) == "Hierarchy(3 → 2 → 1 groups)"
    assert sdc.Hierarchy.suppression("ab").channel(1).outputs == ["*"]


H = sdc.Hierarchy


@pytest.mark.parametrize(
    ("argument", "make", "arguments", "where"),
    [
        ("levels", H, ([1, 2, 3], [["a", "a", "b"], ["c", "d", "d"]]), 2),  # parts 1 and 2
        ("levels", H, ([1, 2], [["a"]]), 1), ("letters", H, ([1, 1], []), 1),
        ("levels", H, (["a", "b"], [3]), 1), ("levels", H, (["a", "b"], [[[1], [1]]]), 1),
        ("levels", H, (["a", "b"], ["ab"]), 1), ("letters", H.suppression, ([],), None),
        ("letters", H.suppression, (7,), None), ("levels", H.intervals, ([1, 9], (0, 5)), 1),
        ("letters", H.intervals, ([1, None], 5), (1,)), ("letters", H.intervals, ([], 10), None),
        ("level", H.suppression([1, 2]).channel, (2,), None), ("paths", H.tree, (["a"],), None),
        ("paths", H.tree, ({"a": ("b",), "c": ("b", "d")},), None),
        ("paths", H.tree, ({"a": "xy", "b": "xz"},), "a"), ("paths", H.tree, ({"a": 3},), "a"),
    ],
)  # fmt: skip
def test_what_is_no_hierarchy(argument, make, arguments, where):
    assert refusal(argument, make, *arguments).where == where


def test_bands_that_do_not_nest():
    """The message names two letters that are parted."""
    assert "5 and 7 share" in str(refusal("levels", H.intervals, [5, 7], 5, 7))


# ---- files -------------------------------------------------------------------------------


def test_a_hierarchy_as_arx_writes_it(tmp_path):
    path = tmp_path / "towns.csv"
    path.write_text("\ufeffParis;France;*\nLyon;France;*\n\nRome ;Italy;*\n", encoding="utf-8")
    towns = H.from_csv(path)
    assert towns.levels == [["Paris", "Lyon", "Rome"], ["France", "France", "Italy"], ["*"] * 3]
    assert towns.mapping(1) == {"Paris": "France", "Lyon": "France", "Rome": "Italy"}
    assert towns.described() == "0 (3 groups), 1 (2 groups), 2 (1 group)"
    with pytest.raises(cpv.InputError, match="^level: 3; the levels are 0"):
        towns.mapping(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;x\nb;x\na;x\n", "line 3.*'a' is in line 1 too"),
        ("a;x\nb\n", "line 2.*one field alone"),
        ("a;\n", "line 1.*no group for 'a'"),
        ("a,x\n", "line 1.*one field alone"),
        ("", "has no line"),
        ("a;x;u\nb;x;v\n", "level 2.*'a' and 'b' share 'x'"),
        (b"\xff", "is not UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused(tmp_path, text, message):
    path = tmp_path / "h.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(cpv.InputError, match=f"(?s)^hierarchy.*{message}"):
        H.from_csv(path)
