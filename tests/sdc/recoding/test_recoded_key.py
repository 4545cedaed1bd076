"""A key recoded to few cells: what is chosen, what it loses, and that asking for it is the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.lengths import some_at_length
from tests.refusals import refused
from tests.tables import test_periods as periods

INF = math.inf


def people(records=600, seed=5):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 12, records)
    town = rng.choice(["A", "B", "C", "D", "E"], records, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    job = rng.choice(["nurse", "doctor", "clerk", "clerk2"], records)
    chance = 0.15 + 0.5 * ((age >= 4) & (age < 8)) + 0.2 * (town == "B") + 0.1 * (job == "nurse")
    ill = np.where(rng.random(records) < chance, "yes", "no")
    return pd.DataFrame({"ill": ill, "age": age, "town": town, "job": job})


FRAME = people()
JOBS = sdc.Hierarchy(
    ["nurse", "doctor", "clerk", "clerk2"],
    [["care", "care", "office", "office"], ["*", "*", "*", "*"]],
)
ASK = {"sensitive": "ill", "key": ["age", "town", "job"], "hierarchies": {"job": JOBS}}


def asked_for(choice, frame=FRAME, **more):
    """Return the source of the recodings that were chosen, asked for one by one."""
    levels = {name: JOBS.mapping(level) for name, level in choice.levels.items()}
    return cpv.DiscreteSource.from_table(
        frame, sensitive="ill", key=["age", "town", "job"], bins=choice.bins,
        groups={**levels, **choice.top}, **more,
    )  # fmt: skip


@pytest.mark.parametrize("cells", some_at_length([2, 3, 5, 12, 40, 100, 10_000], 3))
def test_the_key_has_few_cells_and_asking_for_it_is_the_same(cells):
    choice = sdc.recoded_key(FRAME, cells=cells, **ASK)
    source = asked_for(choice)
    assert len(source.x) <= cells
    assert source.x == choice.source.x
    assert (source.law == choice.source.law).all()
    assert choice.after <= choice.before + 1e-12
    fine = cpv.DiscreteSource.from_table(FRAME, sensitive="ill", key=ASK["key"])
    assert choice.cells == len(fine.x)
    assert choice.before == pytest.approx(fine.information(), abs=1e-12)
    assert choice.bias == pytest.approx(fine.bias(), abs=1e-12)
    if cells == 10_000:
        assert choice.unchanged == ("age", "town")
        assert (choice.levels, choice.after) == ({"job": 0}, pytest.approx(choice.before))


def test_more_cells_lose_less():
    lost = [sdc.recoded_key(FRAME, cells=n, **ASK).after for n in (3, 6, 12, 24, 48, 96)]
    assert lost == sorted(lost)


def test_one_number_has_the_best_intervals():
    source = cpv.DiscreteSource.from_table(FRAME, sensitive="ill", key="age")
    for cells in (1, 2, 3, 4):
        choice = sdc.recoded_key(FRAME, sensitive="ill", key="age", cells=cells)
        best = sdc.optimal_intervals(source, groups=cells)
        assert choice.after == pytest.approx(best.information, abs=1e-12)
    two = pd.DataFrame({"ill": [0, 0, 1, 1] * 5, "age": [1, 2, 8, 9] * 5})
    choice = sdc.recoded_key(two, sensitive="ill", key="age", cells=3)
    assert len(choice.source.x) == 2  # a third cell would tell no more
    assert (choice.bins, choice.after) == ({"age": [-INF, 8.0, INF]}, pytest.approx(1))


@pytest.mark.long
def test_it_is_near_the_best_of_all_recodings():
    """All pairs of up to three edges of age, all levels of job, all numbers of towns."""
    frame = people(300, seed=8).query("age < 7")
    values = sorted(set(frame["age"]))
    cuts = [c for k in range(4) for c in itertools.combinations(values[1:], k)]
    best = 0.0
    for cut, top, level in itertools.product(cuts, (1, 2, 3), range(3)):
        age = np.searchsorted(cut, frame["age"], side="right")
        common = [*frame["town"].value_counts().index[:top]]
        town = frame["town"].where(frame["town"].isin(common), "other")
        job = frame["job"].map(JOBS.mapping(level))
        key = age.astype(str) + town + job
        if key.nunique() <= 10:
            table = pd.crosstab(frame["ill"], key).to_numpy()
            best = max(best, cpv.information.mutual_information(table / table.sum()))
    choice = sdc.recoded_key(frame, cells=10, **ASK)
    assert best * 0.95 <= choice.after  # a local search, of edges that are more than three too


def test_recodings_that_are_given_stay():
    choice = sdc.recoded_key(FRAME, cells=20, bins={"age": [0, 6, 12]}, groups={"town": 2}, **ASK)
    assert set(choice.source.levels["age"]) == {"[0, 6)", "[6, 12)"}
    assert set(choice.source.levels["town"]) == {"A", "B", "other"}
    assert (choice.bins, choice.top) == ({}, {})


def test_weights_and_missing_values():
    frame = FRAME.assign(weight=np.linspace(0, 2, len(FRAME)))
    frame["age"] = frame["age"].where(frame["age"] != 3)
    for missing in ("level", "drop"):
        choice = sdc.recoded_key(frame, cells=12, weights="weight", missing=missing, **ASK)
        assert len(choice.source.x) <= 12
        assert (None in choice.source.levels["age"]) == (missing == "level")
        same = asked_for(choice, frame, weights="weight", missing=missing)
        assert np.allclose(same.law, choice.source.law, rtol=1e-12)
    fine = cpv.DiscreteSource.from_table(
        frame, sensitive="ill", key=ASK["key"], weights="weight", missing="drop"
    )
    assert choice.before == pytest.approx(fine.information(), abs=1e-12)
    assert choice.bias == pytest.approx(fine.bias(), abs=1e-12)


def test_numbers_of_many_values_are_cut_by_quantiles_first():
    rng = np.random.default_rng(0)
    size = rng.normal(size=3000)
    frame = pd.DataFrame({"ill": size > 0.3, "size": size})
    choice = sdc.recoded_key(frame, sensitive="ill", key="size", cells=2)
    assert choice.bins["size"][1] == pytest.approx(0.3, abs=0.02)
    assert choice.cells == 200


def test_what_cannot_be_is_refused():
    refused(lambda: sdc.recoded_key(FRAME, cells=0, **ASK), "cells", value=0)
    error = refused(lambda: sdc.recoded_key(FRAME, cells=1, **ASK), "cells", value=1)
    assert "2 observed cells" in str(error)  # the most common town, and the others
    other = {"job": sdc.Hierarchy.suppression(["nurse", "clerk"])}
    refused(lambda: sdc.recoded_key(FRAME, cells=9, **ASK | {"hierarchies": other}), "groups",
            "'clerk2', 'doctor'", value="job")  # fmt: skip


def test_chance_is_what_the_same_choice_shows_of_a_shuffled_column():
    """By other shuffles: the choice gains thrice what Miller and Madow's formula knows of."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"ill": rng.integers(0, 3, 400), "age": rng.integers(0, 60, 400),
                          "town": rng.integers(0, 12, 400)})  # fmt: skip
    choice = sdc.recoded_key(frame, sensitive="ill", key=["age", "town"], cells=12)
    others = []
    for _ in range(8):
        frame = frame.assign(ill=rng.permutation(frame["ill"]))
        others.append(sdc.recoded_key(frame, sensitive="ill", key=["age", "town"], cells=12).after)
    spread = np.std(others)
    assert choice.chance == pytest.approx(np.mean(others), abs=2 * spread)
    assert choice.after == pytest.approx(choice.chance, abs=4 * spread)  # nothing is there
    assert choice.source.bias() < choice.chance / 2


def test_a_key_of_few_cells_has_intervals_of_dates():
    """Of as many cells as there are decades, decades: with more, something finer."""
    frame = periods.table("pandas", "date")
    for cells, least in ((6, 5), (12, 8)):
        recoding = sdc.recoded_key(frame, sensitive="ill", key="born", cells=cells, missing="level")
        assert least <= len(recoding.source.x) <= cells
        assert recoding.bins["born"] in ("decade", "5years")
    assert sdc.recoded_key(frame, sensitive="ill", key="born", cells=80, missing="drop").bins == {}
