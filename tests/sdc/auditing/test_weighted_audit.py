"""An audit of records with survey weights: what is of the weighted law, and what is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.model.information import miller_madow
from cvxprivacy_sdc.auditing.pairing import COUNTED
from cvxprivacy_sdc.risk import individual_risk
from tests.engines import KINDS, converted
from tests.lengths import rest_at_length
from tests.sdc.audits import audited, coarse, people, refusal

OF_RECORDS = ("k", "individual risk", "distinct l")


def weighing(seed=1):
    table = people()
    return table.assign(w=np.random.default_rng(seed).integers(1, 6, len(table)))


def repeated(table):
    return table.loc[table.index.repeat(table["w"])].reset_index(drop=True)


@pytest.mark.parametrize("reference", ["released", "original"])
def test_a_weight_is_so_many_persons(reference):
    """Whole weights: the law is that of a table which has each record so many times."""
    table = weighing()
    criteria = [cpv.TCloseness(0.05), cpv.LDiversity(2.8), cpv.DeltaDisclosure(0.5)]
    options = {"criteria": criteria, "reference": reference}
    outcome = audited(table, coarse(table), weights="w", **options)
    larger = audited(repeated(table), coarse(repeated(table)), **options)
    plain = audited(table, coarse(table), **options)
    assert outcome.letters == larger.letters == plain.letters
    for name, measure in outcome.measures.items():
        other = plain if name in OF_RECORDS else larger
        if name != "individual risk":
            assert measure.values == pytest.approx(other.measures[name].values), name
            assert measure.average == pytest.approx(other.measures[name].average), name
        assert measure.sizes.tolist() == plain.measures[name].sizes.tolist()
    for verdict, other in zip(outcome.verdicts, larger.verdicts, strict=True):
        assert verdict.broken.tolist() == other.broken.tolist()
        assert verdict.records == plain.measures["k"].values[verdict.broken].sum()
    assert any(verdict.broken.size for verdict in outcome.verdicts)
    for name in ("before", "after"):
        assert getattr(outcome, name).plugin == pytest.approx(getattr(larger, name).plugin)
    for name, condition in outcome.averages.items():
        assert condition.bound == pytest.approx(larger.averages[name].bound)
        assert condition.value == pytest.approx(larger.averages[name].value)
    assert outcome.greatest_diversity == pytest.approx(larger.greatest_diversity)
    for leak, other in zip(outcome.leaks, larger.leaks, strict=True):
        assert leak.original == pytest.approx(other.original)
        assert leak.everything == pytest.approx(other.everything)


def test_the_bias_is_of_the_effective_number_of_records():
    table = weighing()
    outcome = audited(table, coarse(table), weights="w", bootstrap=50)
    weights = table["w"].to_numpy(float)
    kish = weights.sum() ** 2 / (weights**2).sum()
    law = outcome.laws.released
    assert law.effective == pytest.approx(kish)
    assert outcome.after.bias == pytest.approx(miller_madow(law.joint, records=kish))
    assert outcome.after.lower is None
    assert "no interval is given of weighted records" in str(outcome)
    ones = audited(table.assign(w=1), coarse(table).assign(w=1), weights="w")
    plain = audited(table, coarse(table))
    assert ones.after.bias == pytest.approx(plain.after.bias)
    for name in set(plain.measures) - {"individual risk"}:
        assert ones.measures[name].values == pytest.approx(plain.measures[name].values)
    assert ones.measures["individual risk"].values == pytest.approx(1 / plain.measures["k"].values)


def test_k_anonymity_is_of_records():
    """A record of weight 100 is one record still."""
    table = weighing().assign(w=100.0)
    table.loc[0, "sex"] = "x"
    rules = [cpv.KAnonymity(2), cpv.RecordEntropy(2)]
    outcome = audited(table, table, weights="w", criteria=rules)
    assert [verdict.holds for verdict in outcome.verdicts] == [False, None]
    assert outcome.measures["k"].worst == 1


def test_the_risk_of_each_record():
    table = weighing()
    outcome = audited(table, coarse(table), weights="w")
    alone = individual_risk(coarse(table), ["age", "sex"], "w")
    assert outcome.re_identified == pytest.approx(alone.expected)
    assert outcome.per_record("individual risk") == pytest.approx(alone.per_record())
    assert outcome.measures["individual risk"].average == pytest.approx(alone.rate)
    assert outcome.worst("individual risk", 3) == alone.worst(3)
    plain = audited(table, coarse(table))
    assert plain.re_identified == pytest.approx(len(plain.letters))  # Σ f/f
    assert plain.per_record("individual risk") == pytest.approx(1 / plain.per_record("k"))
    text = str(outcome)
    assert f"{alone.expected:.4g} records expected" in text
    assert "an estimate under a model, no bound (Benedetti and Franconi 1998)" in text
    assert "individual risk: estimate of E 1/F" in text
    assert "too high where the table is a sample" in str(plain)


def test_documents_say_which_measure_is_of_what(tmp_path):
    table = weighing()
    outcome = audited(table, coarse(table), weights="w")
    document = json.loads(outcome.to_json(tmp_path / "a.json").read_text(encoding="utf-8"))
    assert document["weights"] == {
        "column": "w", "effective": outcome.laws.released.effective, "measures": COUNTED,
        "population": float(table["w"].sum()),
    }  # fmt: skip
    assert "estimate" in document["individual_risk"]["model"]
    assert document["individual_risk"]["expected"] == outcome.re_identified
    sizes = coarse(table).groupby(["age", "sex"])["w"].sum()
    for row in document["letters"]:
        assert row["population"] == sizes[tuple(row["letter"])]
        assert sum(row["counts"]) == row["k"]
    plain = audited(table, coarse(table)).document()
    assert "weights" not in plain
    assert "population" not in plain["letters"][0]
    assert plain["individual_risk"]["model"] is None
    page = outcome._repr_html_()
    assert "records weigh as" in page


@pytest.mark.parametrize("kind", rest_at_length(KINDS, 5))
def test_every_kind_of_frame(kind):
    table = weighing()
    tables = [converted(kind, of) for of in (table, coarse(table))]
    outcome = audited(*tables, weights="w")
    expected = audited(table, coarse(table), weights="w")
    assert outcome.letters == expected.letters
    for name, measure in expected.measures.items():
        assert outcome.measures[name].values == pytest.approx(measure.values)


def test_weights_that_are_refused():
    table = weighing()
    released = coarse(table)

    def refused(argument, table=table, released=released, weights="w"):
        return refusal(argument, audited, table, released, weights=weights)

    refused("weights", weights="weight")
    assert "released" in str(refused("weights", released=released.drop(columns="w")))
    refused("weights", weights="id", table=table.assign(id=-1))
    refused("weights", weights="age")
    refused("weights", released=released.assign(w="heavy"))
    idle = table.assign(w=np.where(table["sex"] == "f", 0, table["w"]))
    assert "weighs 0" in str(refused("weights", table=idle))
    assert "weighs 0" in str(refused("weights", released=coarse(idle)))
    missing = table.assign(w=table["w"].where(table["sex"] == "f"))
    refused("weights", table=missing)
