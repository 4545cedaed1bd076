"""Individual risk: closed forms, numerical integration, sums, values by hand, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import nbinom

from cvxprivacy_sdc.risk import individual_risk, wildcards
from cvxprivacy_sdc.risk.individual import re_identification
from cvxprivacy_sdc.risk.wildcards import matched
from tests.engines import KINDS, converted
from tests.sdc.audits import refusal

RATIOS = (1 + 1e-9, 1.001, 1.3, 1.99, 2.0, 2.5, 10.0, 1e3, 1e6)


@pytest.mark.parametrize("ratio", RATIOS[2:])
def test_the_closed_forms_of_mu_argus(ratio):
    p, q = 1 / ratio, 1 - 1 / ratio
    log = math.log(p)
    outcome = re_identification([1, 2, 3], [ratio, 2 * ratio, 3 * ratio])
    closed = [
        -p / q * log,
        p / q**2 * (p * log + q),
        p / (2 * q**3) * (q * (3 * q - 2) - 2 * p**2 * log),
    ]
    assert outcome == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("records", [1, 2, 3, 4, 7, 29, 30, 31, 100, 1000])
@pytest.mark.parametrize("ratio", RATIOS[:-1])
def test_the_integral(records, ratio):
    """E 1/F = ∫₀¹ E tᶠ⁻¹ dt = ∫₀¹ pᶠ tᶠ⁻¹ (1 − qt)⁻ᶠ dt, with t = e⁻ᵛ."""
    p, q = 1 / ratio, (ratio - 1) / ratio

    def integrand(v):  # 1 − qt = p + q(1 − t), without cancellation
        return math.exp(records * (math.log(p) - v - math.log(p - q * math.expm1(-v))))

    ends = sorted({0.0, p / 10, p, 10 * p, 1.0, 60.0})
    pieces = [quad(integrand, a, b, epsabs=1e-17, limit=400)[0] for a, b in pairwise(ends)]
    assert re_identification([records], [records * ratio])[0] == pytest.approx(
        sum(pieces), rel=1e-7
    )


@pytest.mark.parametrize("records", [1, 3, 12])
def test_the_posterior_itself(records):
    """Σ_h P(F = h)/h of the negative binomial, summed."""
    for ratio in (1.2, 4.0, 50.0):
        h = np.arange(records, int(records * ratio * 60) + 200)
        law = nbinom.pmf(h - records, records, 1 / ratio)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        expected = (law / h).sum()
        assert re_identification([records], [records * ratio])[0] == pytest.approx(expected)


def test_values_by_hand():
    """Eight records as in the examples of sdcMicro, from log(F̂)/(F̂ − 1) and its like for f = 2."""
    f = [2, 2, 2, 1, 1, 1, 1, 2]
    weights = [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    expected = [0.017, 0.022, 0.022, 0.177, 0.012, 0.297, 0.402, 0.017]
    assert re_identification(f, weights).round(3).tolist() == expected


def test_risks_are_between_those_of_the_population_and_of_the_sample():
    """Jensen: E 1/F ≥ 1/E F = 1/F̂; and F ≥ f."""
    f = np.repeat([1, 2, 5, 40, 5000], 5).astype(float)
    sizes = f * np.tile([1.0, 1.01, 3.0, 100.0, 1e7], 5)
    risk = re_identification(f, sizes)
    assert (risk >= 1 / sizes * (1 - 1e-12)).all()
    assert (risk <= 1 / f * (1 + 1e-12)).all()
    assert (np.diff(risk.reshape(5, 5), axis=1) < 0).all()
    assert re_identification([3, 1], [3, 0.5]) == pytest.approx([1 / 3, 1])  # F is at least f
    assert re_identification([3, 1]).tolist() == [1 / 3, 1]


def people():
    return pd.DataFrame(
        {
            "age": [31, 35, 31, 47, 47, 52], "sex": list("ffmmmf"),
            "w": [10.0, 20.0, 7.0, 2.0, 3.0, 1.0], "note": list("abcdef"),
        }
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_classes_of_every_kind_of_frame(kind):
    outcome = individual_risk(converted(kind, people()), ["age", "sex"], "w", bins={"age": 10})
    assert dict(zip(outcome.letters, outcome.records.tolist(), strict=True)) == {
        ("[30, 40)", "f"): 2, ("[30, 40)", "m"): 1, ("[40, 50)", "m"): 2, ("[50, 60)", "f"): 1,
    }  # fmt: skip
    assert outcome.population.tolist() == [30.0, 7.0, 5.0, 1.0]
    assert outcome.risk == pytest.approx(re_identification([2, 1, 2, 1], [30, 7, 5, 1]))
    assert outcome.expected == pytest.approx([2, 1, 2, 1] @ outcome.risk)
    assert outcome.worst(1) == [("[50, 60)", "f")]


def test_records_and_the_table_as_a_whole():
    outcome = individual_risk(people(), ["age", "sex"], "w", bins={"age": 10}, threshold=0.3)
    by_record = outcome.per_record()
    assert by_record[[0, 1]].tolist() == [outcome.risk[0]] * 2
    assert by_record.sum() == pytest.approx(outcome.expected)
    assert outcome.rate == pytest.approx(by_record.mean())
    assert outcome.above == (by_record > 0.3).sum() == 2
    assert outcome.per_record(sample=True).tolist() == [0.5, 0.5, 1, 0.5, 0.5, 1]
    text, document = str(outcome), outcome.document()
    assert "an estimate under a model, no bound (Benedetti and Franconi 1998)" in text
    assert "43 persons (Σ w)" in text
    assert "estimate" in document["model"]
    assert document["classes"][1]["population"] == 7.0
    plain = individual_risk(people(), ["age", "sex"], bins={"age": 10})
    assert (plain.risk == plain.sample).all()
    assert (plain.expected, plain.document()["model"]) == (4.0, None)
    assert "too high for a sample" in str(plain)


def test_missing_values_and_refusals():
    table = people()
    table.loc[2, "sex"] = None
    refusal("key", individual_risk, table, ["age", "sex"])
    dropped = individual_risk(table, ["sex"], "w", missing="drop")
    assert np.isnan(dropped.per_record()).tolist() == [False, False, True, False, False, False]
    assert dropped.records.tolist() == [3, 2]
    level = individual_risk(table, "sex", "w", missing="level")
    assert level.letters == ["f", "m", None]
    refusal("weights", individual_risk, people().assign(w=-1.0), "sex", "w")
    refusal("weights", individual_risk, people(), "sex", "note")
    refusal("weights", individual_risk, people(), "sex", "weight")
    refusal("threshold", individual_risk, people(), "sex", threshold=1.0)
    refusal("classes", level.worst, 0)
    refusal("records", re_identification, [0, 1])
    refusal("records", re_identification, [1.5])
    refusal("population", re_identification, [1, 2], [3])
    polars = pytest.importorskip("polars", reason="the extra `tables` is not installed")
    lazy = individual_risk(polars.from_pandas(people()).lazy(), "sex")
    refusal("frame", lazy.per_record)


# ---- missing values as wildcards ---------------------------------------------------------

WEIGHTS = [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0]
ABC = {"A": [2, 3, 2, 2, 3, 3, 1, 2], "B": [3, 3, 3, 3, 3, 3, 4, 3]}
NONE = [None] * 8
# What sdcMicro's own tests expect (tests/testthat/test_freqCalc.R): key, fk, Fk
COUNTED = [
    (
        ABC | {"C": [1, 3, 1, 2, 1, 1, 1, 1]},
        [3, 1, 3, 1, 2, 2, 1, 3], [108, 45.5, 108, 17, 100, 100, 123.5, 108],
    ),
    (
        ABC | {"C": [1, 3, None, 2, 1, 1, None, 1]},
        [3, 1, 4, 2, 2, 2, 1, 3], [108, 45.5, 125, 56, 100, 100, 123.5, 108],
    ),
    (
        {"A": [2, 3, None, 2, 3, 3, 1, 2], "B": [3, 3, None, 3, 3, 3, 4, 3], "C": NONE},
        [4, 4, 8, 4, 4, 4, 2, 4], [125, 184.5, 394, 125, 184.5, 184.5, 162.5, 125],
    ),
    (
        {"A": [2, 3, None, 2, 1, None, 1, 2]},
        [5, 3, 8, 5, 4, 8, 4, 5], [133, 92.5, 394, 133, 262.5, 394, 262.5, 133],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("key", "matches", "population"), COUNTED)
@pytest.mark.parametrize("kind", ["pandas", *KINDS[1:2]])
def test_wildcards_as_sdc_micro_counts_them(kind, key, matches, population):
    table = pd.DataFrame(key, dtype=object).assign(w=WEIGHTS)
    table[list(key)] = table[list(key)].astype("Int64")
    columns = list(key)
    risks = individual_risk(converted(kind, table), columns, "w", missing="wildcard")
    assert (1 / risks.per_record(sample=True)).round(9).tolist() == matches
    assert risks.per_record() == pytest.approx(re_identification(matches, population), rel=1e-12)
    assert risks.records.sum() == 8
    assert risks.persons == 394
    assert "394 persons" in str(risks)
    assert ("every value" in str(risks)) == (table[columns].isna().any(axis=None))
    assert risks.document()["classes"][0]["matches"] == risks.matches[0]
    assert risks.expected == pytest.approx(risks.per_record().sum())
    plain = individual_risk(table, columns, missing="wildcard")
    assert plain.per_record().tolist() == (1 / np.array(matches)).tolist()
    assert plain.persons is None


def test_the_risks_of_sdc_micro_with_wildcards():
    """Its own tests (tests/testthat/test_indivRisk.R, exact)."""
    key = {"A": [2, 3, 2, 2, 3, 3, 1, None], "B": ABC["B"], "C": [1, 3, None, 2, 1, 1, None, 1]}
    table = pd.DataFrame(key).assign(w=WEIGHTS)
    risks = individual_risk(table, ["A", "B", "C"], "w", missing="wildcard")
    f = (1 / risks.per_record(sample=True)).round(9)
    assert f.tolist() == [3, 1, 4, 2, 3, 3, 1, 5]
    expected = [0.013552968, 0.085791288, 0.010504889, 0.032466112, 0.009756889]
    expected += [0.009756889, 0.039316254, 0.005962551]
    assert risks.per_record() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("patterns", [1, 1_000])
@pytest.mark.parametrize("seed", range(20))
def test_wildcards_by_comparing_all_pairs(seed, patterns, monkeypatch):
    monkeypatch.setattr(wildcards, "_PATTERNS", patterns)  # beyond which they are not paired
    rng = np.random.default_rng(seed)
    columns, many = int(rng.integers(1, 6)), int(rng.integers(1, 60))
    rows = rng.integers(0, 3, (many, columns)).astype(object)
    rows[rng.random(rows.shape) < rng.choice([0.1, 0.5])] = None
    letters = list(dict.fromkeys(map(tuple, rows.tolist())))
    masses = rng.integers(1, 9, len(letters)).astype(float)
    expected = [
        sum(
            mass
            for other, mass in zip(letters, masses, strict=True)
            if all(a is None or b is None or a == b for a, b in zip(letter, other, strict=True))
        )
        for letter in letters
    ]
    alone = [letter[0] for letter in letters] if columns == 1 else letters
    assert matched(alone, columns, masses).tolist() == expected


def test_wildcards_of_more_values_than_a_number_tells_apart():
    """40 columns of 20 values: 20⁴⁰ combinations."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 20, (60, 40)).astype(object)
    rows[30:] = rows[:30]
    rows[30:][rng.random((30, 40)) < 0.2] = None
    assert matched(list(map(tuple, rows.tolist())), 40, np.ones(60)).tolist() == [2.0] * 60


def test_a_convention_that_is_none_is_refused():
    assert "wildcard" in str(refusal("missing", individual_risk, people(), "sex", missing="any"))
