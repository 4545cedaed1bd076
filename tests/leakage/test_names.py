"""One vocabulary: the names of measures, wherever one is typed or passed."""

from __future__ import annotations

import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.leakage.base import NAMES, measure_of
from tests.refusals import refused

NUMBERS = {"HockeyStick": 1.5, "PowerDivergence": 2, "Sibson": 2}


def made(kind):
    measure = cpv.leakage.MEASURES[kind]
    return measure(NUMBERS[kind]) if kind in NUMBERS else measure()


@pytest.mark.parametrize("kind", NAMES)
def test_every_name_is_of_its_measure(kind):
    number = f":{NUMBERS[kind]}" if kind in NUMBERS else ""
    for name in (*NAMES[kind], kind):
        for typed in (name, name.upper(), name.replace("-", "_"), name.replace("-", " ")):
            assert repr(measure_of(typed + number, "leakage")) == repr(made(kind))


def test_no_name_is_of_two():
    names = [name for several in NAMES.values() for name in several]
    assert len({name.replace("-", "") for name in names}) == len(names)
    needing = {"Gain", "FInformation"}  # tables, which no text holds
    assert set(NAMES) == set(cpv.leakage.MEASURES) - needing


def test_a_name_is_as_good_as_the_measure():
    """In a problem, in criteria, in a divergence; of t-closeness the distance has its usual one."""
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    d, tv = cpv.hamming(2), cpv.leakage.TotalVariation()
    value = cpv.PrivacyDistortion(source, d, 0.1, leakage=tv).solve().value
    assert cpv.PrivacyDistortion(source, d, 0.1, leakage="tv").solve().value == value
    rules = [cpv.LeakageCap(0.1, "tv"), cpv.PerLetter("total-variation", 0.1)]
    for rule, other in zip(rules, (cpv.LeakageCap(0.1, tv), cpv.PerLetter(tv, 0.1)), strict=True):
        assert repr(rule) == repr(other)
    rule = cpv.TCloseness(0.1, "Total variation")
    assert (rule.distance, repr(rule)) == ("tv", "TCloseness(0.1, 'tv')")
    p, q = [0.8, 0.2], [0.5, 0.5]
    for long, short in (
        ("total-variation", "tv"),
        ("Jensen-Shannon", "js"),
        ("power:2", "power-divergence:2"),
    ):
        assert cpv.leakage.divergence(p, q, long) == cpv.leakage.divergence(p, q, short)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("totl-variation", ["did you mean 'total-variation'?"]),
        ("gossip", ["use one of mutual-information", "earth-mover"]),
        ("sibson", ["write sibson:NUMBER"]),
        ("sibson:x", ["'x' of sibson"]),
        ("sibson:1", ["order of sibson"]),
        ("tv:1", ["write total-variation"]),
        ("tv:", ["write total-variation"]),
        ("", ["use one of"]),
    ],
)
def test_what_names_none(text, pieces):
    refused(lambda: measure_of(text, "leakage"), "leakage", *pieces)
    refused(lambda: cpv.LeakageCap(0.1, text), "leakage")


def test_distances_and_distortions_that_are_none():
    refused(lambda: cpv.TCloseness(0.1, "chi2"), "distance", "use one of kl, tv, emd")
    source = cpv.DiscreteSource.from_table(
        pd.DataFrame({"a": [1, 2], "w": [0, 1]}), sensitive="w", key="a"
    )
    refused(lambda: cpv.per_attribute({"a": "ordnal"}, source), "distortions", "'ordinal'",
            where="a")  # fmt: skip
    one, other = (cpv.per_attribute({"a": name}, source) for name in ("Absolute-error", "l1"))
    assert (one.matrix == other.matrix).all()
