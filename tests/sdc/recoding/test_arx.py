"""Adult as ARX recodes it: levels and losses that the tests of ARX expect of its optimum.

Facts are of arx-deidentifier/arx at aacd487f, src/test/org/deidentifier/arx/test (Apache 2.0): the
classes TestAnonymizationKAnonymity, …LDiversity, …TCloseness, …OrderedDistanceTCloseness,
…Combinations and …BLikeness.  Its data/adult.csv has the 30,162 complete records of *Adult*.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from tests.lengths import some_at_length, some_weekly
from tests.public_tables import real_folder

KEYS = [
    *("sex", "age", "race", "marital-status", "education", "native-country"),
    *("workclass", "occupation", "salary-class"),
]
SPOUSE = {"Married-AF-spouse": "present", "Married-civ-spouse": "present"}
SCHOOL = {
    "Graduate": ["Doctorate", "Masters"],
    "High School": ["10th", "11th", "12th", "7th-8th", "9th", "HS-grad"],
    "Primary School": ["1st-4th", "5th-6th", "Preschool"],
    "Professional Education": ["Assoc-acdm", "Assoc-voc", "Prof-school"],
    "Undergraduate": ["Bachelors", "Some-college"],
}
STAGE = {"High School": "Secondary", "Primary School": "Primary"}
CONTINENT = {
    "Africa": ["South"],
    "Asia": [
        *("Cambodia", "China", "Hong", "India", "Iran", "Japan", "Laos", "Philippines"),
        *("Taiwan", "Thailand", "Vietnam"),
    ],
    "Europe": [
        *("England", "France", "Germany", "Greece", "Holand-Netherlands", "Hungary", "Ireland"),
        *("Italy", "Poland", "Portugal", "Scotland", "Yugoslavia"),
    ],
    "South America": ["Columbia", "Ecuador", "Nicaragua", "Peru", "Trinadad&Tobago"],
}
WORK = {
    "Government": ["Federal-gov", "Local-gov", "State-gov"],
    "Unemployed": ["Never-worked", "Without-pay"],
}
TRADE = {
    "Nontechnical": ["Exec-managerial", "Handlers-cleaners", "Sales"],
    "Technical": ["Craft-repair", "Machine-op-inspct", "Prof-specialty", "Tech-support"],
}


def grouped(letters, groups, others):
    place = {letter: name for name, those in groups.items() for letter in those}
    return [place.get(letter, others) for letter in letters]


@cache
def adult():
    frame = pd.read_csv(real_folder("adult") / "adult.csv")
    frame = frame[(frame != "?").all(axis=1)].rename(columns={"income": "salary-class"})
    return frame[KEYS].reset_index(drop=True)


@cache
def hierarchies():
    frame, ages = adult(), range(1, 101)
    letters = {name: sorted(frame[name].unique()) for name in KEYS}
    letters["workclass"] = sorted({*letters["workclass"], "Never-worked"})
    schools = grouped(letters["education"], SCHOOL, "")
    levels = {
        "age": [[(age - 1) // width for age in ages] for width in (5, 10, 20)],
        "marital-status": [[SPOUSE.get(v, "not") for v in letters["marital-status"]]],
        "education": [schools, [STAGE.get(v, "Higher") for v in schools]],
        "native-country": [grouped(letters["native-country"], CONTINENT, "North America")],
        "workclass": [grouped(letters["workclass"], WORK, "Non-Government")],
        "occupation": [grouped(letters["occupation"], TRADE, "Other")],
    }
    results = {}
    for name in KEYS:
        those = list(ages) if name == "age" else letters[name]
        results[name] = sdc.Hierarchy(those, [*levels.get(name, []), ["*"] * len(those)])
    return results


@cache
def source_of(sensitive):
    key = [name for name in KEYS if name != sensitive]
    return cpv.DiscreteSource.from_table(adult(), sensitive=sensitive, key=key)


def recoded(sensitive, criteria, **options):
    key = [name for name in KEYS if name != sensitive]
    named = {name: hierarchies()[name] for name in key}
    return sdc.full_domain(source_of(sensitive), named, criteria, **options)


NUE, JOB = "non-uniform entropy", "occupation"
TV, EMD = cpv.TCloseness(0.2, "tv"), cpv.TCloseness(0.2, "emd")
QUICK = [
    (None, [cpv.KAnonymity(5)], 0, NUE, 407289.5388925293, [1, 2, 1, 1, 3, 2, 2, 1, 1]),
    (None, [cpv.KAnonymity(100)], 0, NUE, 453196.8932458743, [0, 4, 1, 1, 3, 2, 2, 1, 1]),
    (JOB, [cpv.LDiversity(5)], 0, NUE, 324620.5269918692, [1, 1, 1, 1, 3, 2, 2, 1]),
    (JOB, [sdc.RecursiveDiversity(4, 5)], 0, NUE, 324620.5269918692, [1, 1, 1, 1, 3, 2, 2, 1]),
    (JOB, [TV, cpv.KAnonymity(5)], 0, "discernibility", 456853172, [1, 4, 1, 1, 3, 2, 2, 1]),
    (
        *(JOB, [cpv.TCloseness(0.1, "emd"), cpv.KAnonymity(5)], 0, "discernibility"),
        *(97868020, [1, 1, 1, 2, 3, 2, 2, 1]),
    ),
    (JOB, [EMD, cpv.KAnonymity(100)], 0, "discernibility", 162312130, [1, 4, 1, 1, 1, 2, 2, 1]),
]
SUPPRESSING = [
    (JOB, [cpv.LDiversity(5)], 0.04, NUE, 228878.2039109517, [1, 0, 1, 1, 2, 2, 2, 1]),
    (
        *(JOB, [sdc.RecursiveDiversity(4, 5)], 0.05, NUE),
        *(209764.96161974416, [1, 0, 1, 1, 2, 2, 2, 0]),
    ),
]


@pytest.mark.parametrize("case", some_at_length(range(len(QUICK)), 3))
def test_the_optimum_without_suppression_is_that_of_arx(case):
    agrees(*QUICK[case])


@pytest.mark.long
@pytest.mark.parametrize("case", some_weekly(range(len(SUPPRESSING)), 1))
def test_the_optimum_with_suppression_is_that_of_arx(case):
    agrees(*SUPPRESSING[case])


def agrees(sensitive, criteria, limit, keep, loss, levels):
    best = recoded(sensitive, criteria, suppress=limit, keep=keep)
    assert list(best.levels.values()) == levels
    assert best.score == pytest.approx(loss, rel=1e-11)
    assert best.share_suppressed <= limit


# ---- as if nothing were suppressed, which ARX has too: the best is a minimal node -----------


@cache
def column(name, level):
    return adult()[name].map(hierarchies()[name].mapping(level))


def squares(levels):
    values = pd.concat([column(*at) for at in levels.items()], axis=1)
    return int((values.groupby([*levels], observed=True).size() ** 2).sum())


@cache
def lost(name, level):
    """Return −Σ log2 p(value | group) over the records of a column."""
    before, after = adult()[name].value_counts(), column(name, level).value_counts()
    return after @ np.log2(after) - before @ np.log2(before)


def uncertainty(levels):
    return sum(lost(*at) for at in levels.items())


UNSUPPRESSED = [
    (None, [cpv.KAnonymity(100)], 0.04, uncertainty, 379417.3460570988, "111132211"),
    (JOB, [sdc.RecursiveDiversity(4, 5)], 0.05, uncertainty, 198181.4042332967, "10112220"),
    (JOB, [TV, cpv.KAnonymity(100)], 0.04, squares, 311880088, "14103221"),
    (JOB, [EMD, cpv.KAnonymity(100)], 0.04, squares, 19937246, "10123221"),
]


@pytest.mark.long
@pytest.mark.parametrize("case", some_weekly(range(len(UNSUPPRESSED)), 1))
def test_the_best_minimal_node_is_that_of_arx(case):
    sensitive, criteria, limit, cost, loss, levels = UNSUPPRESSED[case]
    best = recoded(sensitive, criteria, suppress=limit, keep="discernibility")
    costs = {"".join(map(str, node.values())): cost(node) for node in best.minimal}
    assert costs[levels] == pytest.approx(loss, rel=1e-11)
    assert costs[levels] == min(costs.values())


# ---- loss, of which ARX takes the geometric mean over columns ------------------------------

LIKENESS = [
    (3, False, 0.5, 0.34883856157237925, "03002010"),
    (2, True, 0, 0.759176305345683, "14113220"),
]


@pytest.mark.long
@pytest.mark.parametrize("case", some_weekly(range(len(LIKENESS)), 1))
def test_likeness_suppresses_the_records_that_arx_does(case):
    beta, enhanced, limit, loss, levels = LIKENESS[case]
    rule = sdc.BetaLikeness(beta, enhanced=enhanced)
    best = recoded(JOB, [rule], suppress=limit, keep="loss")
    assert "".join(map(str, best.levels.values())) == levels
    lost, losses = best.share_suppressed, []
    kept = best.channel.apply(adult(), seed=0)
    for name, level in best.levels.items():
        named = hierarchies()[name]
        leaves = pd.Series(named.levels[level]).value_counts()
        shares = (kept[name].map(leaves) - 1) / (len(named.letters) - 1)
        losses.append(shares.fillna(1.0).mean())
    assert best.score == pytest.approx(np.mean(losses), rel=1e-9)
    assert np.prod(np.add(losses, 1)) ** (1 / len(losses)) - 1 == pytest.approx(loss, rel=1e-9)
    assert lost <= limit
