"""The frame of the scripts: what agrees, what is printed, what a bad command line says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.study import claim, run
from cvxprivacy.text import aligned
from tests import pictures


@pytest.mark.parametrize(
    ("here", "theirs", "agrees"),
    [
        (0.30006, "0.3", True),
        (0.35, "0.3", True),  # rounds to it on one side
        (0.3501, "0.3", False),
        (0.30006, "≈ 0.300", True),
        (0.30006, "0.3000", False),
        (0.30004, "0.3000", True),
        (-0.5862, "−0.5862", True),
        (-0.5862, "-.586", True),
        (0.5862, "−0.5862", False),
        (0.883, "88 %", True),
        (0.886, "88%", False),
        (1234.4, "1,234", True),
        (12, "12", True),
        (0.1, "≤ 0.1", True),
        (0.1 + 1e-12, "≤ 0.1", False),
        ((0.05, 0.2), "≤ 0.1", False),
        ((0.05, 0.2), "≥ 0.1", False),
        ((0.1, 0.2), "≥ 0.1", True),
        (0.1, "< 0.1", False),
        (0.0, "> 0", False),
        (1e-9, "> 0", True),
        (0.3, ("≤", 0.3), True),
        (0.3 + 1e-9, ("≤", 0.3), False),
        (0.3, ("<", 0.3), False),
        (0.3, (">", 0.29), True),
        (Enclosure(0.29, 0.31), 0.3, False),  # a proof must be as narrow as what it is held against
        (Enclosure(0.3, 0.3 + 1e-9), 0.3, True),
        (Enclosure(0.28, 0.32), "≈ 0.3", True),
        (Enclosure(-9, 9), "≈ 0.3", False),
        ((float("nan"), 0.05), "≤ 0.1", False),
        ((0.2, float("nan")), "≥ 0.1", False),
        ((0.2, 0.05), "≤ 0.1", False),
        ((0.25, 0.28), "0.3", True),  # a range may hold what rounds to it
        ((0.10, 0.24), "0.3", False),
        (1.0 + 9e-7, 1.0, True),
        (1.0 + 2e-6, 1.0, False),
        ("first, last", "first, last", True),
        ("first", "last", False),
        (float("nan"), "0.3", False),
        (float("nan"), "≤ 0.3", False),
    ],
)
def test_a_number_agrees_with_what_is_printed(here, theirs, agrees):
    assert claim("x", here, theirs, "§1").agrees is agrees


def test_within_and_said():
    assert claim("x", 1.0, 1.1, "eq. 1", within=0.2).agrees
    assert not claim("x", 1.0, "1.1", "eq. 1", within=0.05).agrees
    assert not claim("x", 0.2 - 1e-7, ("<", 0.2), "eq. 1", within=-1e-6).agrees
    assert claim("x", 3.0, "many", "§1", agrees=True).agrees
    with pytest.raises(cpv.InputError, match="'many' is not a number") as raised:
        claim("x", 3.0, "many", "§1")
    assert raised.value.argument == "theirs"


def test_what_is_printed_of_a_claim():
    assert claim("x", 0.123456789, "12 %", "§1").here == "12.35 %"
    assert claim("x", (0.1, 0.1 + 1e-12), 0.1, "§1").here == "0.1"
    assert claim("x", (0.1, 0.2), 0.1, "§1").here == "[0.1, 0.2]"
    solution = cpv.PrivacyDistortion(
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2), budget=0.2
    ).solve()
    assert claim("R", solution, solution.value, "eq. 3").agrees
    assert claim("R", solution, solution.lower - 1e-3, "eq. 3").agrees is False


def test_columns_are_aligned_past_combining_marks():
    lines = aligned([("X̂", "1"), ("XY", "2")])
    assert [line.index(number) for line, number in zip(lines, "12", strict=True)] == [5, 4]


def study(*, quick=False, seed: Annotated[int, "100 % of the draws"] = 1, of: str | None = None):
    """Return what was asked."""
    if of == "nothing":
        raise cpv.InputError("of", f"{of!r}", "pass something")
    return quick, seed, of


def report(result):
    """Say it."""
    yield "said first"
    yield pd.DataFrame({"a": [1]})
    yield claim("one [bits]", 1.0, "1", "§1")
    yield claim("two", 2.0, "3", "§2", "a reason " * 20)


def draw(result):
    """Draw nothing much."""
    figure, [ax] = style.panels("")
    ax.plot([0, 1], [0, 1], **style.BOUND)
    return figure


def test_the_frame(tmp_path, capsys):
    for name in ("a.png", "b/c.pdf", "d.SVG"):
        before = dict(plt.rcParams)
        path = tmp_path / name
        outcome = run(study, report, draw, ["--seed", "3", "--of", "x", "--out", str(path)])
        assert dict(plt.rcParams) == before
        assert outcome.result == (False, 3, "x")
        assert [c.agrees for c in outcome.claims] == [True, False]
        assert path.stat().st_size > 1000
        pictures.check(outcome.figure)
        text = capsys.readouterr().out
        assert text.startswith("The frame of the scripts")
        assert text.index("said first") < text.index("one [bits]") < text.index("a reason")
        assert max(map(len, text.splitlines()[:-1])) <= 100
        assert text.endswith(f"picture: {path}\n")
    pdf = (tmp_path / "b" / "c.pdf").read_bytes()
    assert b"CIDFontType2" in pdf  # TrueType
    assert b"Type3" not in pdf
    assert b"<text" in (tmp_path / "d.SVG").read_bytes()
    assert run(study, report, draw, ["--quick", "--out", str(tmp_path / "x.png")]).result[0]


def test_a_bad_command_line_is_one_line_and_no_file(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(study, report, draw, ["--seed", "-1", "--out", str(tmp_path / "x.png")])
    assert "--seed: -1 is negative; pass a whole number" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="of: 'nothing'"):
        run(study, report, draw, ["--of", "nothing", "--out", str(tmp_path / "x.png")])
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SystemExit):
        run(study, report, draw, ["--out", str(tmp_path / "folder.png")])
    (tmp_path / "folder.png").rmdir()
    with pytest.raises(SystemExit):
        run(study, report, draw, ["--out", str(tmp_path / "x.txt")])
    assert "x.txt is no file .png, .pdf, .svg" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(study, report, draw, ["--seed", "many"])
    assert list(tmp_path.iterdir()) == []
    assert not Path("output/test_study.png").exists()


def test_the_check_of_pictures_can_fail():
    with plt.rc_context(style.HOUSE):
        for fault, words in (
            (lambda f, ax: f.set_size_inches(5, 3), "5"),
            (lambda f, ax: (ax.text(0.5, 0.5, "one"), ax.text(0.5, 0.5, "two")), "lies on"),
            (lambda f, ax: f.text(0.9, 0.5, "far too long a label"), "leaves the page"),
            (lambda f, ax: ax.text(0.5, 0.5, "small", fontsize=5), "small"),
            (lambda f, ax: ax.plot([0, 1], [0, 1], color="#123456"), "#123456"),
        ):
            figure, [ax] = style.panels("")
            pictures.check(figure)
            fault(figure, ax)
            with pytest.raises(AssertionError, match=words):
                pictures.check(figure)
            plt.close(figure)
        figure, axes = style.panels("one", "two", "three", rows=2)
        assert [ax.get_title(loc="left") for ax in axes] == ["(a) one", "(b) two", "(c) three"]
        pictures.check(figure)
        plt.close(figure)
