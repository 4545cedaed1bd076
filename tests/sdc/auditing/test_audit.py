"""The audit of a released table: by hand, of every kind of frame, and the two tables compared."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.criteria.counts import disclosure, entropy_diversity, leaked
from cvxprivacy.leakage import EarthMover
from cvxprivacy.model.information import miller_madow, mutual_information
from cvxprivacy.tables import TableSchema
from cvxprivacy_sdc.auditing import measures
from cvxprivacy_sdc.risk import individual_risk
from tests.engines import KINDS, LAZY, collected, column, converted, duckdb, pa
from tests.leakage.measures import MEASURES
from tests.lengths import rest_at_length
from tests.public_tables import real_folder
from tests.repository import ROOT, script
from tests.sdc.audits import (
    CRITERIA,
    audited,
    coarse,
    owner_only,
    people,
    refusal,
)
from tests.tables import test_periods as periods

# ---- what is measured --------------------------------------------------------------------


def test_measures_that_are_asked_for():
    """The counts of a letter are (3, 1, 1) and (2, 2, 0)."""
    frame = pd.DataFrame({"age": [*"aaaaabbbb"], "ill": [*"xxxyzxxyy"]})
    result = sdc.audit(frame, key="age", sensitive="ill")
    assert result.letters == ["a", "b"]
    cases = {1: [3 / 5, 2 / 4], 2: [3 / 2, 1], 3: [3, math.inf], 4: [math.inf, math.inf]}
    for l, values in cases.items():  # noqa: E741
        measure = result.measure(f"c at l={l}")
        assert measure.values.tolist() == values
        assert measure.worst == max(values)
    alpha = result.measure("alpha")
    assert alpha.values.tolist() == [0.6, 0.5]
    assert (alpha.worst, alpha.average, alpha.letters) == (0.6, 5 / 9, 1)
    assert result.worst("alpha") == ["a", "b"]
    assert result.per_record("c at l=1").tolist() == [0.6] * 5 + [0.5] * 4
    assert result.measure("k") is result.measures["k"]
    for name in ("c at l=0", "c at l=", "c at l=2.5", "beta at l=2", 3):
        assert "alpha" in str(refusal("measure", result.measure, name))


def test_several_columns_each_by_itself():
    table = people().assign(pay=lambda t: t["age"] * 10, debts=lambda t: t["age"] % 3)
    released = coarse(table)
    how = {"key": ["age", "sex"], "criteria": CRITERIA, "missing": "wildcard"}
    orders = {"ill": ["none", "cold", "flu"], "pay": None}
    audits = sdc.audit_each(
        table, released, sensitive=["ill", "pay", "debts"], bins={"pay": 200},
        groups={"debts": {0: "none", 1: "some", 2: "some"}}, ordered=orders, **how,
    )  # fmt: skip
    alone = {
        "ill": sdc.audit(table, released, sensitive="ill", ordered=orders["ill"], **how),
        "pay": sdc.audit(table, released, sensitive="pay", bins={"pay": 200}, **how),
        "debts": sdc.audit(
            table, released, sensitive="debts", groups={"debts": {0: "none", 1: "some", 2: "some"}},
            **how,
        ),
    }  # fmt: skip
    assert list(audits) == list(alone)
    assert len(audits) == 3
    for name, of in alone.items():
        assert audits[name].document() == of.document()
    distances = [of.measures["I1"].worst for of in alone.values()]
    assert audits.worst("I1") == max(distances)
    assert audits.worst("c at l=4") == math.inf
    assert audits.worst("entropy l") == min(of.measures["entropy l"].worst for of in alone.values())
    assert audits.holds == all(of.holds for of in alone.values())
    row = next(line for line in str(audits).splitlines() if "divergence I1" in line)
    assert row.split()[-3:] == [f"{value:.4g}" for value in distances]
    ordered = next(line for line in str(audits).splitlines() if "ordered distance" in line)
    assert ordered.split().count("–") == 1  # of debts, which are in no order
    joint = sdc.audit(table, released, sensitive=["ill", "debts"], key=["age", "sex"])
    assert len(joint.released.w) > 4
    both = {"sensitive": ["ill", "debts"], "key": "sex"}
    refusal("ordered", sdc.audit_each, table, **both, ordered=["none", "cold", "flu"])
    refusal("ordered", sdc.audit_each, table, **both, ordered={"sex": True})
    refusal("bins", sdc.audit_each, table, **both, bins={"wage": 10})
    refusal("sensitive", sdc.audit_each, table, key="sex", sensitive=["ill", "ill"])
    refusal("sensitive", sdc.audit_each, table, key="sex", sensitive=["ill", "wage"])
    refusal("column", audits.__getitem__, "wage")
    assert "ill" in audits
    assert "wage" not in audits
    assert audits.get("wage") is None
    for argument in ("bins", "groups"):
        refusal(argument, sdc.audit_each, table, **both, **{argument: 3})
    assert sdc.audit_each(table, key="sex", sensitive="ill")["ill"].letters == ["f", "m"]


def test_class_sizes_of_what_is_released():
    """Classes of three and two; of six records one was suppressed, and one has not W of most."""
    frame = pd.DataFrame({"age": [*"aaabbc"], "ill": [*"xyxyyx"]})
    result = sdc.audit(frame, frame[:5], key="age", sensitive="ill")
    of = result.classes
    assert (of.number, of.least, of.greatest, of.suppressed) == (2, 2, 3, 1)
    assert (of.average, of.normalised) == (2.5, 1.25)
    assert (of.discernibility, of.classification) == (9 + 4 + 6, 2 / 6)
    words = "2 to 3 records, 2.5 on average, 1.25 times the least; 1 suppressed"
    assert result.facts["classes"] == words
    assert "discernibility 19; classification metric 0.3333" in str(result)
    assert result.document()["classes"]["discernibility"] == 19
    mistakes = 1 - result.measures["guessing probability"].average  # of those released
    assert of.classification == pytest.approx((5 * mistakes + 1) / 6)
    alone = sdc.audit(frame, key="age", sensitive="ill").classes
    assert (alone.suppressed, alone.discernibility) == (0, 9 + 4 + 1)
    assert sdc.audit(frame[:5], frame, key="age", sensitive="ill").classes.suppressed == 0


def test_missing_key_values_as_wildcards():
    """Five records, of which one withholds its sex: it may be in either class of its age."""
    frame = pd.DataFrame({
        "age": [1, 1, 1, 2, 2], "sex": ["f", "m", None, "f", "f"], "ill": [*"xyxyy"],
        "w": [10.0, 20.0, 30.0, 2.0, 3.0],
    })  # fmt: skip
    how = {"key": ["age", "sex"], "sensitive": "ill", "criteria": [cpv.KAnonymity(2)]}
    level = sdc.audit(frame, **how, missing="level")
    assert level.measures["k"].worst == 1
    assert not level.holds
    wild = sdc.audit(frame, **how, missing="wildcard")
    assert dict(zip(wild.letters, wild.measures["k"].values, strict=True)) == {
        (1, "f"): 2, (1, "m"): 2, (1, None): 3, (2, "f"): 2,
    }  # fmt: skip
    assert wild.per_record("individual risk").tolist() == [1 / 2, 1 / 2, 1 / 3, 1 / 2, 1 / 2]
    assert wild.re_identified == pytest.approx(7 / 3)
    assert wild.measures["k"].records == 4
    assert wild.holds
    lines = str(wild).splitlines()
    titles = "k-anonymity: records (wildcards)", "individual risk: 1/k (wildcards)"
    for piece in ("KAnonymity(2): every letter satisfies it, where a missing value", *titles):
        assert sum(piece in line for line in lines) == 1
    assert "wildcards" not in str(level)
    conventions = [of.document()["released"]["missing"] for of in (level, wild)]
    assert conventions == ["level", "wildcard"]
    broken = sdc.audit(frame, **{**how, "criteria": [cpv.KAnonymity(3)]}, missing="wildcard")
    assert "3 letters break it, where a missing value matches every value" in str(broken)
    rule = cpv.RecordEntropy(2)  # which groups of two satisfy, and not those that two may be in
    open_ = sdc.audit(frame, **{**how, "criteria": [rule]}, missing="wildcard")
    assert open_.verdicts[0].holds is None
    assert "RecordEntropy(2): it cannot be decided on the released table alone" in str(open_)
    twice = pd.concat([frame, frame])
    held = sdc.audit(twice, **{**how, "criteria": [rule]}, missing="wildcard")
    assert "RecordEntropy(2): every letter satisfies it\n" in str(held)
    assert (
        wild.measures["distinct l"].values.tolist() == level.measures["distinct l"].values.tolist()
    )
    weighted = sdc.audit(frame, **how, missing="wildcard", weights="w")
    risks = individual_risk(frame, how["key"], "w", missing="wildcard")
    assert weighted.per_record("individual risk") == pytest.approx(risks.per_record())
    assert risks.population.tolist() == [40, 50, 60, 5]
    assert "wildcard" in str(refusal("missing", sdc.audit, frame, **how, missing="joker"))
    refusal("missing", cpv.DiscreteSource.from_table, frame, key="sex", sensitive="ill",
            missing="wildcard")  # fmt: skip


def test_every_measure_is_of_the_counts():
    result = audited(criteria=CRITERIA)
    table = coarse(people())
    letters = list(zip(table["age"], table["sex"], strict=True))
    assert sorted(result.letters) == sorted(set(letters))
    counts = Counter(zip(table["ill"], letters, strict=True))
    joint = np.array([[counts[w, x] for x in result.letters] for w in result.released.w])
    assert (result.released.joint == joint).all()
    p, prior = joint / joint.sum(axis=0), joint.sum(axis=1, keepdims=True) / joint.sum()
    expected = {
        "k": joint.sum(axis=0),
        "individual risk": 1 / joint.sum(axis=0),
        "distinct l": measures.distinct_diversity(joint),
        "entropy l": entropy_diversity(joint),
        "c at l=2": measures.recursive_diversity(joint, 2),
        "c at l=3": measures.recursive_diversity(joint, 3),
        "I1": cpv.one_symbol.i1(joint), "I2": cpv.one_symbol.i2(joint),
        "I3": cpv.one_symbol.i3(joint), "I4": cpv.one_symbol.i4(joint),
        "equal distance": np.abs(p - prior).sum(axis=0) / 2,
        "chi-squared": ((p - prior) ** 2 / prior).sum(axis=0),
        "squared Hellinger": ((np.sqrt(p) - np.sqrt(prior)) ** 2).sum(axis=0),
        "guessing probability": p.max(axis=0),
        "Sibson 2": np.sqrt((p**2 / prior).sum(axis=0)),
        "maximal leakage": (p / prior).max(axis=0),
        "delta": disclosure(joint),
        "delta observed": disclosure(joint, observed=True),
        "beta": measures.likeness(joint),
        "enhanced beta": measures.likeness(joint, enhanced=True),
    }  # fmt: skip
    assert set(result.measures) == set(expected)  # ill is not in order: no ordered distance
    sizes = joint.sum(axis=0)
    for name, values in expected.items():
        measure = result.measures[name]
        assert measure.values == pytest.approx(values, abs=1e-12)
        low = name in ("k", "distinct l", "entropy l")
        assert measure.worst == pytest.approx(min(values) if low else max(values), abs=1e-12)
        at = np.isclose(values, measure.worst, rtol=1e-9)
        assert (measure.letters, measure.records) == (at.sum(), sizes[at].sum())
        order = [result.letters.index(x) for x in result.worst(name, 9)]
        ranked = sorted(
            range(len(sizes)), key=lambda i: (values[i] * (1 if low else -1), -sizes[i])
        )
        assert order == ranked or name in ("distinct l", "c at l=2", "c at l=3")  # ties
        assert measure.average == pytest.approx((values * sizes).sum() / sizes.sum(), abs=1e-9)
    assert result.after.plugin == pytest.approx(mutual_information(joint), abs=1e-12)
    assert result.after.bias == pytest.approx(miller_madow(joint), abs=1e-12)
    before = cpv.DiscreteSource.from_table(people(), sensitive="ill", key=["age", "sex"])
    assert result.before.plugin == pytest.approx(before.information(), abs=1e-12)
    assert result.greatest_diversity == pytest.approx(2 ** before.entropy())


@pytest.mark.parametrize("reference", ["released", "original"])
def test_what_leaks_lies_between_nothing_and_everything(reference):
    """Every measure in all, beside none, the original and W itself, by other definitions."""
    table, order = people(), ["none", "flu", "cold"]
    result = audited(
        table, reference=reference, ordered=order, leakage=[one for one, _ in MEASURES.values()]
    )
    w = result.released.w
    assert w != order
    leaks = {of.name: of for of in result.leaks}
    for measure, definition in MEASURES.values():
        outcome = leaks[measure.name]
        at = [w.index(value) for value in (order if measure.ordered else w)]
        after, before = (of.joint[at] / of.joint.sum() for of in (result.released, result.original))
        prior = after.sum(axis=1)
        unit = 1 / math.log(2) if measure.in_units else 1.0
        laws = {
            "average": after, "original": before, "nothing": prior[:, None],
            "everything": np.diag(prior),
        }  # fmt: skip
        for name, law in laws.items():
            assert getattr(outcome, name) == pytest.approx(definition(law) * unit, abs=1e-9), name
        assert outcome.nothing <= outcome.average + 1e-12 <= outcome.original + 1e-9


def test_the_order_of_w_is_that_of_criteria_too():
    table = pd.DataFrame({"x": [0, 0, 0, 1, 1, 1], "w": [1, 2, 3] * 2})
    some = table[table["w"] != 2]  # (1/2, 0, 1/2) is 1/6 from (1/3, 1/3, 1/3)
    rule = cpv.TCloseness(0.2, "emd")
    how = {"key": "x", "sensitive": "w", "criteria": [rule], "reference": "original"}
    result = sdc.audit(table, some, **how)
    assert result.measures["ordered distance"].worst == pytest.approx(1 / 6)
    assert result.holds
    assert not any("order" in note for note in result.notes)
    named = {1: "low", 2: "mid", 3: "high"}
    texts = [one.assign(w=one["w"].map(named)) for one in (table, some)]
    assert sdc.audit(*texts, **how, ordered=list(named.values())).holds
    alphabet = sdc.audit(*texts, **how)  # high, low, mid: 1/4
    assert not alphabet.holds
    assert "in the order high, low, mid, which is the alphabet's" in str(alphabet)


def test_a_measure_that_is_none_is_refused():
    for wrong in (cpv.leakage.ChiSquared, "gossip", [3]):
        refusal("leakage", audited, leakage=wrong)
    refusal("matrix", audited, leakage=cpv.leakage.Gain([[1, 0]]))
    two = [cpv.leakage.Gain(np.eye(3)), cpv.leakage.Gain(-np.eye(3))]
    result = audited(leakage=two)
    assert [of.name for of in result.leaks[2:]] == ["gain of 3 guesses", "gain of 3 guesses[2]"]
    assert result.leaks[2].average > 0 > result.leaks[3].average
    assert [of.name for of in audited(leakage=()).leaks] == ["I1", "equal distance"]


def test_an_original_of_other_values_is_not_measured_beside():
    table = people()
    fewer = coarse(table)[table["ill"] != "flu"]
    result = audited(table, fewer)
    assert all(math.isnan(of.original) for of in result.leaks)
    assert result.document()["measures"]["I1"]["original"] is None
    assert "original " not in str(result)
    many = pd.DataFrame({"x": [0, 1] * 1500, "w": range(3000)})
    (first, *_) = sdc.audit(many, key="x", sensitive="w").leaks
    assert math.isnan(first.everything)
    assert first.average == pytest.approx(1.0)


def test_verdicts_name_the_letters_that_break():
    result = audited(criteria=CRITERIA)
    i1, sizes = result.measures["I1"].values, result.measures["k"].values
    t, diverse, k = result.verdicts
    assert t.broken.tolist() == np.flatnonzero(i1 > 0.05).tolist()
    assert t.records == sizes[i1 > 0.05].sum() > 0
    assert diverse.holds == (result.measures["entropy l"].worst >= 2.0)
    assert k.holds
    assert not result.holds
    assert audited(criteria=[cpv.KAnonymity(10)]).holds
    assert result.averages["t"].bound == 0.05
    most = result.released.entropy() - math.log2(2.0)
    assert result.averages["H(W) − log ℓ"].bound == pytest.approx(most)
    assert result.averages["I(W; X)"].bound == result.before.plugin
    assert "5 criteria: broken" in repr(audited(criteria=[*CRITERIA, *CRITERIA[:2]]))
    text = str(result)
    for piece in ("BROKEN  TCloseness(0.05)", "holds   KAnonymity(10)", "ℓ_t", "ℓ_max", "bias"):
        assert piece in text
    strict = audited(criteria=[*CRITERIA, cpv.TCloseness(0.01), cpv.LDiversity(1.5)])
    assert strict.averages["t"].bound == 0.01
    assert strict.averages["H(W) − log ℓ"].bound == pytest.approx(most)


def test_a_table_as_it_stands_and_units():
    result = sdc.audit(people(), key="sex", sensitive="ill")
    assert result.original is result.released
    assert result.averages == {}
    assert result.before is result.after
    assert "X̃" not in str(result)
    nats = sdc.audit(people(30), key="age", sensitive="ill", units="nats")
    bits = sdc.audit(people(30), key="age", sensitive="ill")
    for name in ("I1", "I2", "I3", "I4"):
        assert nats.measures[name].values == pytest.approx(bits.measures[name].values * math.log(2))
    assert any(f"{nats.after.plugin:.4f} nats" in note for note in nats.notes)
    assert not any("bits" in note for note in nats.notes)


@pytest.mark.real
def test_four_groups_of_the_paper():
    real_folder("adult")
    result = sdc.audit(
        cpv.datasets.load_adult(complete=True), key="age", sensitive="marital-status",
        bins={"age": (-math.inf, 26, 51, 76, math.inf)},
        criteria=[cpv.TCloseness(0.55), cpv.LDiversity(2.7)],
    )  # fmt: skip
    assert result.greatest_diversity == pytest.approx(3.530, abs=5e-4)
    t, diverse = result.verdicts
    assert [result.letters[i] for i in t.broken] == ["< 26", "≥ 76"]
    assert [result.letters[i] for i in diverse.broken] == ["< 26"]
    assert all(c.holds for c in result.averages.values())
    i1 = dict(zip(result.letters, result.measures["I1"].values, strict=True))
    assert [i1["< 26"], i1["≥ 76"]] == pytest.approx([0.86, 0.86], abs=5e-3)
    assert result.measures["entropy l"].worst == pytest.approx(1.78, abs=5e-3)


@pytest.mark.long
@pytest.mark.real
def test_pycanon_itself(tmp_path):
    """The numbers stated in test_measures.py, from pycanon in an environment of its own."""
    adult = real_folder("adult") / "adult.csv"
    module = script(ROOT / "benchmarks" / "sdc" / "pycanon_audit.py")
    try:
        python = module.environment(tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"pycanon 1.3.5 cannot be installed here: {error}")
    for key, sensitive in module.CASES[1:]:
        theirs = module.pycanon(python, adult, key, sensitive)
        ours = module.ours(adult, key, sensitive)
        for name, value in ours["found"].items():
            assert theirs["found"][name] == pytest.approx(value, rel=1e-12), (sensitive, name)


# ---- frames and records ------------------------------------------------------------------


@pytest.mark.long
def test_every_kind_of_frame_says_the_same():
    table = people()
    days = [datetime.date(2026, 1, 1 + i % 3) for i in range(300)]
    table["seen"] = pd.Series(days, dtype=pd.ArrowDtype(pa.date32()))
    table["sex"] = table["sex"].where(table.index % 7 > 0, None)
    how = {"key": ["age", "sex", "seen"], "sensitive": "ill", "bins": {"age": 20},
           "missing": "level"}  # fmt: skip
    expected = None
    for kind in KINDS:
        frame = converted(kind, table)
        result = sdc.audit(frame, frame, **how)
        expected = expected or result
        assert result.letters == expected.letters, kind
        for name, measure in result.measures.items():
            assert measure.values == pytest.approx(expected.measures[name].values), (kind, name)
        some = [x for x in result.letters if x[1] is None][:2] + result.worst("I1", 2)
        rows = result.records(some)
        assert kind in ("pandas", "dask") or type(rows) is type(frame), kind  # its own flavour
        if kind == "pandas":
            first = column(rows, "id")
        assert sorted(column(rows, "id")) == first, kind
        if kind in LAZY:
            assert "lazy" in str(refusal("released", result.per_record))
        else:
            assert result.per_record().tolist() == pytest.approx(expected.per_record().tolist())
    sizes = expected.measures["k"].values
    assert len(first) == sum(sizes[expected.letters.index(x)] for x in dict.fromkeys(some))


@pytest.mark.parametrize("key", rest_at_length([["x", "y"], ["x"]], 1))
def test_records_of_thousands_of_letters(key):
    table = pd.DataFrame({"x": np.arange(3000), "y": np.arange(3000) % 3, "w": np.arange(3000) % 2})
    for kind in KINDS:
        result = sdc.audit(converted(kind, table), key=key, sensitive="w")
        assert len(collected(result.records(result.letters[:2500]))) == 2500, kind


def test_records_and_values_by_record():
    table = people()
    result = audited(table)
    worst = result.worst("I1", 2)
    rows = result.records(worst)
    letters = list(zip(coarse(table)["age"], table["sex"], strict=True))
    assert rows["id"].tolist() == [i for i, x in enumerate(letters) if x in worst]
    value = dict(zip(result.letters, result.measures["I2"].values, strict=True))
    assert result.per_record("I2").tolist() == [value[x] for x in letters]
    refusal("measure", result.worst, "secrecy")
    for letters in ("a", -1, 0, 1.5):
        refusal("letters", result.worst, "I1", letters)
    for letter in ("20+", ["20+", "f"]):
        error = refusal("letters", result.records, [worst[0], letter])
        assert (error.where, error.value) == (1, letter)


def test_records_of_decimals_and_of_a_table_that_has_changed():
    table = pd.DataFrame(
        {"x": [Decimal("1.10"), Decimal("1.1"), Decimal("2")] * 8, "w": list("aab") * 8}
    )
    result = sdc.audit(table, key="x", sensitive="w")
    assert len(result.records(result.letters)) == 24
    assert len(result.records(result.worst("k", 1))) == result.measures["k"].worst
    table.loc[0, "x"] = Decimal("2")  # behind the audit's back
    assert "changed since" in str(refusal("released", result.records, [1.1]))
    x = pa.array([Decimal("1.10"), Decimal("2.00"), None] * 8, pa.decimal128(10, 2))
    relation = duckdb.connect().from_arrow(pa.table({"x": x, "w": list("aab") * 8}))
    result = sdc.audit(relation, key="x", sensitive="w", missing="level")
    assert [len(result.records([x]).fetchall()) for x in result.letters] == [8, 8, 8]


def test_missing_values():
    table = people()
    table["sex"] = table["sex"].where(table.index % 7 > 0, None)
    refusal("key", audited, table)
    assert ("20+", None) in audited(table, missing="level").letters
    dropped = audited(table, missing="drop")
    assert dropped.released.records == 257
    assert np.isnan(dropped.per_record()).tolist() == [i % 7 == 0 for i in range(300)]
    assert len(dropped.records(dropped.letters)) == 257
    gaps = people().assign(ill=lambda t: t["ill"].where(t.index % 5 > 0, None))
    result = sdc.audit(gaps, key="sex", sensitive="ill", missing="drop")
    assert len(result.records(result.letters)) == 240
    assert np.isnan(result.per_record()).tolist() == [i % 5 == 0 for i in range(300)]
    assert any("60 records with missing values" in note for note in result.notes)


def test_more_letters_than_a_program_could_use():
    table = pd.DataFrame({"zip": range(12_000), "ill": ["yes", "no", "no"] * 4_000})
    result = sdc.audit(table, key="zip", sensitive="ill", bootstrap=50)
    assert result.measures["k"].records == 12_000
    assert result.after.lower is None
    assert any("too few for an interval" in note for note in result.all_notes)


# ---- the two tables against each other ---------------------------------------------------


def test_what_the_release_did_to_columns_and_records():
    table = people()
    assert not any("suppressed" in note or "changed" in note for note in audited(table).notes)
    gone = audited(table, coarse(table).drop(columns="sex"))
    assert "suppressed in the release: sex" in gone.notes
    assert gone.letters == ["20+", "40+"]
    fewer = audited(table, coarse(table)[10:])
    assert "290 records of 300 are released" in fewer.notes
    twice = audited(table, pd.concat([coarse(table)] * 2))
    assert "the release has 600 records, the original 300" in twice.notes
    swapped = coarse(table).assign(ill=["flu"] * 3 + table["ill"].tolist()[3:])
    assert "ill itself was changed" in audited(table, swapped).notes
    refusal("released", audited, table, table[["ill"]])
    refusal("released", audited, table, table[["age"]])
    missing = audited(table, coarse(table).assign(sex=[None, *table["sex"][1:]]), missing="drop")
    assert not any("are released" in note or "changed" in note for note in missing.notes)


def test_bins_are_of_numbers_only():
    table = people()
    both = audited(table, table, bins={"age": 20})
    assert [x[0] for x in both.letters] == ["[20, 40)"] * 2 + ["[40, 60)"] * 2
    assert len(both.original.x) == 4
    text = audited(table, coarse(table), bins={"age": 20})
    assert text.measures["I1"].values == pytest.approx(both.measures["I1"].values)
    starred = table.assign(age=["*", *map(str, table["age"][1:])])
    notes = audited(table, starred, bins={"age": 20}).notes
    assert any("age holds text in the release, such as '*'" in note for note in notes)
    labels = table.assign(age=[f"[{a // 20 * 20}, {a // 20 * 20 + 20})" for a in table["age"]])
    assert not any("holds text" in n for n in audited(table, labels, bins={"age": 20}).notes)


def test_bands_of_a_width_cover_both_tables():
    table = people()
    older = table.assign(age=table["age"] + 35)
    result = audited(table, older, bins={"age": 20})
    assert {x[0] for x in result.letters} == {"[40, 60)", "[60, 80)", "[80, 100)"}
    assert {x[0] for x in result.original.x} == {"[20, 40)", "[40, 60)"}
    error = refusal("bins", audited, table, older, bins={"age": [20, 40, 60]})
    assert "in the released table" in str(error)


def test_more_information_than_before_is_seen_not_judged():
    table = pd.DataFrame({"x": [0] * 50, "w": list("ab") * 25})
    drawn = table.assign(x=np.random.default_rng(2).integers(0, 2, 50))
    result = sdc.audit(table, drawn, key="x", sensitive="w", criteria=[cpv.KAnonymity(2)])
    assert not result.averages["I(W; X)"].holds
    assert result.holds
    assert "BROKEN" not in str(result)
    assert "seen    on average, I(W; X̃)" in str(result)
    assert "sampling, or X̃ uses W" in str(result)
    for other in (drawn[1:], drawn.assign(w="a")):  # no comparison of like with like
        assert "I(W; X)" not in sdc.audit(table, other, key="x", sensitive="w").averages
    assert "kept" not in sdc.audit(people(30), people(30), key="age", sensitive="ill").facts
    same = audited(people(), people(), bins={"age": 20})
    assert same.facts["kept"] == "100.0% of I(W; X), both corrected"


def test_what_suppression_hides():
    table = pd.DataFrame({"x": [0, 0, 1, 1] * 5, "w": list("abcc") * 5})
    released = table[table["w"] != "c"]
    how = {"key": "x", "sensitive": "w", "criteria": [cpv.TCloseness(0.1)]}
    blind = sdc.audit(table, released, **how)
    assert blind.holds
    assert "w c: vanished in the release, 10 records" in blind.notes
    information = sdc.audit(table, released, **how, reference="original")
    assert information.measures["I1"].worst == pytest.approx(
        1.0
    )  # of (¼, ¼, ½) only a and b are left
    assert not information.holds
    assert information.measures["delta"].worst == math.inf
    assert information.measures["equal distance"].worst == pytest.approx(0.5)
    strange = table.replace("c", "d")
    error = refusal("reference", sdc.audit, table, strange, **how, reference="original")
    assert "'d'" in str(error)
    assert "w d: new in the release, 10 records" in sdc.audit(table, strange, **how).notes
    fewer = table.drop(index=[0, 1, 5])  # one a of five, two b
    assert "w b: 3 records of 5 are released, the least share" in sdc.audit(
        table, fewer, **how).notes  # fmt: skip
    counts = sdc.audit(table, fewer, key="x", sensitive="w", criteria=[cpv.KAnonymity(k=8)])
    assert "1 letter breaks it, with 7 records: 0" in str(counts)
    both = sdc.audit(table, fewer, key="x", sensitive="w", criteria=[cpv.KAnonymity(k=99)])
    assert "2 letters break it, with 17 records: 0, 1" in str(both)
    coded = table.assign(w=table["w"].map({"a": 1, "b": 2, "c": 3}))
    notes = sdc.audit(coded, coded.astype({"w": str}), key="x", sensitive="w").notes
    assert any("w is int in the original and str" in note for note in notes)


# ---- the order of W ----------------------------------------------------------------------

STEPS = pd.DataFrame({
    "x": [0] * 6 + [1] * 6,
    "w": ["low", "low", "mid", "low", "low", "mid", "high", "high", "mid", "mid", "high", "high"],
})  # fmt: skip
ORDER = ["low", "mid", "high"]


def ordered_distance(*tables, **options):
    result = sdc.audit(*tables, key="x", sensitive="w", **options)
    return result.measures["ordered distance"].values.tolist()


@pytest.mark.parametrize(
    ("w", "order"),
    [
        (STEPS["w"].map({"low": 1, "mid": 2, "high": 3}), True),
        (STEPS["w"].map({"low": 1.5, "mid": 2.5, "high": 9.0}), True),
        (STEPS["w"].astype(pd.CategoricalDtype(ORDER, ordered=True)), True),
        (STEPS["w"].astype(pd.CategoricalDtype(ORDER)), False),
        (STEPS["w"], False),  # the alphabet is no order
    ],
)
def test_what_is_in_order(w, order):
    table = STEPS.assign(w=w)
    expected = ordered_distance(STEPS, ordered=ORDER)
    if order:
        assert ordered_distance(table) == pytest.approx(expected)
        result = sdc.audit(table, key="x", sensitive="w", ordered=False)
        joint = result.released.joint
        assert leaked(EarthMover(), joint) == pytest.approx(expected)
    else:
        refusal("ordered", sdc.audit, table, key="x", sensitive="w", ordered=True)
        result = sdc.audit(table, key="x", sensitive="w")
    assert "ordered distance" not in result.measures


def test_orders_that_are_refused():
    how = {"key": "x", "sensitive": "w"}
    for wrong in ("low,mid,high", ["low", "mid"], 3, ["low", "low", "mid", "high"]):
        refusal("ordered", sdc.audit, STEPS, **how, ordered=wrong)
    numbers = STEPS.assign(w=STEPS["w"].map({"low": 0, "mid": 1, "high": 2}))
    gap = numbers.assign(w=numbers["w"].where(numbers.index > 0))
    refusal("ordered", sdc.audit, gap, **how, missing="level", ordered=True)
    two = numbers.assign(v=list("ab") * 6)
    refusal("ordered", sdc.audit, two, key="x", sensitive=["w", "v"], ordered=True)


def test_the_order_of_the_original_is_kept():
    table = pd.DataFrame({"x": [0] * 6 + [1] * 6, "w": [5, 15, 105, 5, 15, 25] * 2})
    table.loc[6:, "w"] += 10
    text = table.assign(w=[f"[{v // 10 * 10}, {v // 10 * 10 + 10})" for v in table["w"]])
    expected = ordered_distance(table, bins={"w": 10})
    assert ordered_distance(table, text, bins={"w": 10}) == pytest.approx(expected)
    steps = STEPS.assign(w=pd.Categorical(STEPS["w"], ORDER, ordered=True))
    assert ordered_distance(steps, STEPS) == pytest.approx(ordered_distance(steps))
    recorded = ordered_distance(steps, STEPS[STEPS["w"] != "mid"], reference="original")
    assert max(recorded) == pytest.approx(
        0.5 * (1 / 3 + 2 / 3)
    )  # of ⅓ each: ⅓ from low, ⅔ from mid
    codes = pa.array([ORDER.index(w) for w in STEPS["w"]], pa.int8())
    w = pa.DictionaryArray.from_arrays(codes, pa.array(ORDER), ordered=True)
    arrow = pa.table({"x": STEPS["x"], "w": w})
    assert ordered_distance(arrow) == pytest.approx(ordered_distance(steps))


# ---- refused, and written down -----------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("key", ["age", "town"]), ("criteria", ["k=3"]),
        ("criteria", cpv.KAnonymity(2)), ("missing", "guess"), ("bootstrap", -1),
        ("bootstrap", 1), ("units", "hartleys"), ("seed", -1), ("seed", "a"),
        ("reference", "theirs"),
    ],
)  # fmt: skip
def test_what_cannot_be_audited(argument, value):
    refusal(argument, audited, **{argument: value})


def test_errors_say_which_table():
    table = people()
    refusal("released", audited, table, table[:0])
    refusal("original", audited, table[:0], table)
    gap = table.assign(sex=table["sex"].where(table.index > 0, None))
    error = refusal("key", audited, table, gap)
    assert "in the released table" in str(error)
    assert error.where == 0
    refusal("original", sdc.audit, table["age"], key="age", sensitive="ill")


def test_the_json_document(tmp_path):
    result = audited(criteria=CRITERIA, bootstrap=50, seed=1)
    result.to_json(tmp_path / "audit.json")
    assert owner_only(tmp_path / "audit.json")
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(result.document()))
    assert document["schema"] == "cvxprivacy audit 1"
    assert [c["holds"] for c in document["criteria"]] == [v.holds for v in result.verdicts]
    assert document["criteria"][0]["places"] == result.verdicts[0].broken.tolist()
    assert document["information"]["after"]["upper"] == result.after.upper
    assert document["information"]["before"]["corrected"] == result.before.corrected
    assert TableSchema.from_dict(document["released"]).key == ("age", "sex")
    for i, letter in enumerate(document["letters"]):
        assert tuple(letter["letter"]) == result.letters[i]
        assert letter["counts"] == result.released.joint[:, i].tolist()
        assert letter["I1"] == result.measures["I1"].values[i]
    # infinite measures are still JSON
    endless = sdc.audit(people(), key="age", sensitive="ill").to_json(tmp_path / "endless.json")
    document = json.loads(endless.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert document["measures"]["delta"]["worst"] == {"float": "inf"}


def test_control_characters_do_not_reach_the_terminal():
    table = pd.DataFrame({"x": ["\x1b[31mred\x07", "b"] * 50, "w": list("abcd") * 25})
    text = str(sdc.audit(table, key="x", sensitive="w", criteria=[cpv.KAnonymity(1000)]))
    assert r"\x1b[31mred\x07" in text
    assert "\x1b" not in text


def test_an_audit_bins_what_was_released():
    """The original against itself, and against its intervals: the same groups."""
    before = periods.table("pandas", "date")
    names = [periods.name(day, "year") for day in periods.DAYS]
    how = {"sensitive": "ill", "key": "born", "bins": {"born": "year"}, "missing": "level"}
    same = sdc.audit(before, before, **how)
    for years in (("text", names), ("int", [n and int(n) for n in names])):
        after = periods.table("pandas", years)
        audited = sdc.audit(before, after, **how)
        assert audited.letters == same.letters
        assert not [note for note in audited.notes if "binned" in note]
    strange = periods.table("pandas", ("text", ["*", *names[1:]]))
    assert any("'*'" in note for note in sdc.audit(before, strange, **how).notes)
