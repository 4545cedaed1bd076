"""Individual risk: closed forms, numerical integration, sums, values by hand, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import nbinom

from cvxprivacy.sdc.risk import individual_risk
from cvxprivacy.sdc.risk.individual import re_identification
from tests.engines import KINDS, converted
from tests.microdata.helpers import refusal

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
