"""``release --noise``: numbers released as numbers, with a proof of second moments."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy_sdc.commands.noise import rounded_to, unit_of
from tests.sdc.commands.runner import loaded, refused, report, rows, say, write
from tests.sdc.commands.test_dossier import VALIDATOR, board_text, readable

ASK = ("--sensitive", "tax", "--key", "income,rent", "--noise")
OUT = ("--out", "o.csv", "--certificate", "p.json", "--seed", 3)


def numbers(name, column):
    return np.array([float(row[column]) for row in rows(name)])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    income = rng.gamma(4, 8000, 2000).round()
    tax = (0.2 * income + rng.normal(0, 3000, 2000)).round()
    rent = (0.01 * income + rng.normal(300, 90, 2000)).round(2)
    lines = [
        f"{i},{a:.0f},{b:.0f},{c}"
        for i, (a, b, c) in enumerate(zip(income, tax, rent, strict=True))
    ]
    write("t.csv", "\n".join(["id,income,tax,rent", *lines]) + "\n")
    return tmp_path


def test_a_release_has_the_error_that_is_proved(here):
    summary = report("release", "t.csv", *ASK, "--budget", 0.3, *OUT)
    assert summary["status"] == "certified"
    names = ("income", "rent")
    data = {n: numbers("t.csv", n) for n in (*names, "tax")}
    import pandas as pd

    source = cpv.GaussianSource.from_table(
        pd.DataFrame(data), sensitive="tax", key=list(names), standardize=True
    )
    same = cpv.QuadraticGaussian(source, budget=0.6).solve()
    assert summary["upper"] == pytest.approx(same.upper, abs=1e-9)
    assert sum(summary["errors"][n]["share"] for n in names) == pytest.approx(0.6, abs=1e-6)
    for n in names:
        error = summary["errors"][n]
        moved = data[n] - numbers("o.csv", n)
        assert moved.std() == pytest.approx(error["deviation"], rel=0.08)
        assert error["deviation"] == pytest.approx(error["share"] ** 0.5 * data[n].std(), rel=1e-3)
        assert 100 <= error["deviation"] / error["unit"] < 1000
    for n in ("id", "tax"):
        assert [row[n] for row in rows("o.csv")] == [row[n] for row in rows("t.csv")]
    hundreds = all(re.fullmatch(r"-?\d+00|0", row["income"]) for row in rows("o.csv"))
    assert hundreds == (summary["errors"]["income"]["unit"] == 100)

    document = loaded("p.json")
    assert document["claim"]["upper"] == pytest.approx(summary["upper"])
    assert "verified, certified" in say("verify", "p.json").out
    assert stat.S_IMODE(Path("p.json").stat().st_mode) == 0o600
    first = Path("o.csv").read_bytes()
    say("release", "t.csv", *ASK, "--budget", 0.3, *OUT, "--force")
    assert Path("o.csv").read_bytes() == first


def test_the_caveat_is_said_and_a_column_left_bare_is_named(here):
    text = say("release", "t.csv", *ASK, "--budget", 0.2).out
    for piece in ("holds for second moments", "is not proved", "mean share", "not measured"):
        assert piece in text
    assert "almost as they are" not in text
    lines = Path("t.csv").read_text(encoding="utf-8").splitlines()
    more = [f"{line},{i * 7 % 1999}" for i, line in enumerate(lines[1:])]
    write("u.csv", "\n".join([lines[0] + ",size", *more]) + "\n")
    wide = ("--sensitive", "tax", "--key", "income,size", "--noise", "--budget", 0.2)
    assert re.search("almost as they are.*: size;", say("release", "u.csv", *wide).out)


def test_a_report_says_no_more_than_second_moments_prove(here):
    """What it counts is counted here by hand: correlations, and how far numbers are off."""
    say("release", "t.csv", *ASK, "--budget", 0.3, *OUT, "--report", "a.html", "--report", "a.json")
    facts, page = loaded("a.json"), Path("a.html").read_text(encoding="utf-8")
    VALIDATOR.validate(facts)
    readable(page)
    tax = numbers("t.csv", "tax")
    shares = []
    for name in ("o.csv", "t.csv"):  # R² of two: by the correlations alone
        a, b = (np.corrcoef(tax, numbers(name, n))[0, 1] for n in ("income", "rent"))
        c = np.corrcoef(numbers(name, "income"), numbers(name, "rent"))[0, 1]
        shares.append(100 * (a * a + b * b - 2 * a * b * c) / (1 - c * c))
    lines = board_text(page)
    counted = re.search(r"explain ([\d.]+) % of the variance of tax; .* rent ([\d.]+) %", lines)
    assert [float(share) for share in counted.groups()] == pytest.approx(shares, abs=0.0501)
    off = np.abs(numbers("t.csv", "income") - numbers("o.csv", "income")).mean()
    assert f"income: off by {off:,.0f} on average" in lines
    (check,) = facts["checks"]
    moved = [np.mean((numbers("t.csv", n) - numbers("o.csv", n)) ** 2) / numbers("t.csv", n).var()
             for n in ("income", "rent")]  # fmt: skip
    assert check["table"]["value"] == pytest.approx(np.mean(moved), rel=1e-4)
    assert check["law"]["value"] == pytest.approx(0.3, abs=1e-6)
    assert check["table"]["holds"] == (check["table"]["value"] <= 0.3)
    assert facts["verdict"]["may_be_released"] is True
    for piece in (
        "jointly Gaussian",
        "nothing is proved",
        "and no further",
        "copied columns tell of the confidential ones was not measured",
    ):
        assert piece in board_text(page), piece
    assert facts["files"]["stay"][:2] == ["t.csv (the original)", "p.json"]
    chosen = [point["x"] for point in facts["tradeoff"]["choices"] if point["chosen"]]
    assert chosen == [0.3]
    assert facts["tradeoff"]["chosen"]["value"] == pytest.approx(
        facts["program"]["upper"], rel=1e-5
    )
    say("release", "t.csv", *ASK, "--budget", 0.3, "--report", "b.json")
    priced = loaded("b.json")
    VALIDATOR.validate(priced)
    assert (priced["verdict"]["may_be_released"], priced["signatures"]) == (None, [])


@pytest.mark.long
def test_parquet_stays_parquet(here):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("duckdb", reason="the extra `tables` is not installed")
    pd.read_csv("t.csv").to_parquet("t.parquet")
    say("release", "t.parquet", *ASK, "--budget", 0.3, "--seed", 3, "--out", "o.parquet")
    say("release", "t.csv", *ASK, "--budget", 0.3, "--seed", 3, "--out", "o.csv")
    summary = pd.read_parquet("o.parquet")
    assert list(summary) == ["id", "income", "tax", "rent"]
    assert np.allclose(summary["income"], numbers("o.csv", "income"))
    assert summary["tax"].tolist() == pd.read_csv("t.csv")["tax"].tolist()


@pytest.mark.parametrize(
    "options",
    [
        ("--bins", "income=10"), ("--group", "income=g.csv"), ("--hierarchy", "income=h.csv"),
        ("--level", "income=1"), ("--top", "income=2"), ("--cells", 9), ("--weights", "rent"),
        ("--distortion", "income=ordinal"), ("--criterion", "RecordEntropy=5"),
        ("--leakage", "chi-squared"), ("--missing", "drop"), ("--encoder", "wx"),
        ("--channel", "c.json"), ("--problem-out", "r.toml"), ("--row-id", "id"),
    ],
    ids=lambda options: options[0],
)  # fmt: skip
def test_options_of_letters_are_refused_by_name(here, options):
    pieces = [f"{options[0]}: does not apply with --noise"]
    refused("release", "t.csv", *ASK, "--budget", 0.2, "--seed", 1, *options, "--out", "o.csv",
            pieces=pieces)  # fmt: skip


def test_what_cannot_be_released_as_numbers_is_refused(here):
    refused("release", "t.csv", *ASK, "--out", "o.csv", pieces=["--budget"])
    for budget in (0, 1.5, -1, "nan"):
        refused("release", "t.csv", *ASK, "--budget", budget, "--out", "o.csv", pieces=["--budget"])
    write("u.csv", "tax,income,rent\n1,2,3\n2,x,5\n")
    refused("release", "u.csv", *ASK, "--budget", 0.2, "--out", "o.csv", pieces=["record 2", "'x'"])
    write("u.csv", "tax,income,rent\n1,2,3\n2,,5\n3,4,9\n")
    refused("release", "u.csv", *ASK, "--budget", 0.2, "--out", "o.csv", pieces=["missing"])
    wrong = ("--sensitive", "tax", "--key", "height", "--noise", "--budget", 0.2)
    refused("release", "t.csv", *wrong, pieces=["--key", "'height'"])
    refused("release", "t.csv", *ASK, "--budget", 0.2, "--out", "o.parquet", pieces=["--out"])


def test_numbers_are_written_with_sensible_digits():
    assert (unit_of(1234.0, 1.0), unit_of(99.0, 1.0), unit_of(0.05, 1.0)) == (10, 0.1, 0.0001)
    assert unit_of(0.0, 1.0) == 1e-8
    assert rounded_to([1234.56, -0.4], 10.0) == [1230.0, 0.0]
    assert str(rounded_to([-0.004], 0.01)[0]) == "0.0"
