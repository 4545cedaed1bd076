"""Population uniqueness: the numbers of ARX, definitions by loops, known populations, refusals."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, nbinom

from cvxprivacy_sdc.risk import PopulationUniqueness, population_uniqueness, uniqueness
from tests.engines import KINDS, converted
from tests.public_tables import real_folder
from tests.sdc.audits import refusal

KEY = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass",
       "occupation", "income"]  # fmt: skip


@pytest.fixture(scope="module")
def adult():
    """Adult's complete records, which ARX's own tests read."""
    table = pd.read_csv(real_folder("adult") / "adult.csv")
    return table.replace("?", np.nan).dropna(subset=KEY)


@pytest.mark.real
def test_the_numbers_of_arx(adult):
    """ARX's tests (TestRiskMetrics.java) compare four digits, and the average risk as a double."""
    tenth = population_uniqueness(adult, KEY, fraction=0.1)
    assert (tenth.records, tenth.classes) == (30_162, 19_502)
    assert tenth.classes / tenth.records == 0.6465751607983555
    assert tenth.sample == 0.5142895033485844
    assert tenth.model == "pitman"
    assert tenth.dankar == pytest.approx(0.27684993883653597, rel=1e-6)
    assert tenth.zayatz == pytest.approx(0.3207402393466189, rel=1e-9)
    hundredth = population_uniqueness(adult, KEY, fraction=0.01)
    assert hundredth.dankar == pytest.approx(0.1446083531167384, rel=1e-6)
    fifth = population_uniqueness(adult, KEY, fraction=0.2)
    assert fifth.zayatz == pytest.approx(0.3577099234829125, rel=1e-9)
    assert population_uniqueness(adult, KEY, fraction=1).dankar == 0.5142895033485844


@pytest.mark.real
def test_samples_of_a_population_that_is_known(adult):
    """Of Adult 51.4 % are unique; of its samples many more are, and the rule comes near."""
    truth = population_uniqueness(adult, KEY, fraction=1).sample
    for fraction, model, near in ((0.1, "pitman", 0.03), (0.2, "snb", 0.05), (0.5, "snb", 0.02)):
        sample = adult.sample(frac=fraction, random_state=1)
        estimate = population_uniqueness(sample, KEY, fraction=fraction)
        assert estimate.model == model
        assert abs(estimate.dankar - truth) < near < estimate.sample - truth
        assert estimate.population == pytest.approx(len(adult), rel=1e-3)


def test_all_unique_and_none():
    """ARX's example (testDecisionRule): seven records that all differ, and two classes of them."""
    alone = PopulationUniqueness.of_sizes([1] * 7, 0.2)
    assert (alone.zayatz, alone.dankar, alone.model) == (1.0, 1.0, "zayatz")
    assert math.isnan(alone.pitman)
    assert math.isnan(alone.snb)
    assert PopulationUniqueness.of_sizes([1] * 7, 0.1).dankar == 1.0
    assert "does not fit" in str(alone)
    assert alone.document()["pitman"] is None
    groups = PopulationUniqueness.of_sizes([3, 4], 0.1)
    assert (groups.sample, groups.dankar, groups.zayatz, groups.snb) == (0, 0, 0, 0)


def test_zayatz_by_hand():
    """Three records of ten: h(1) = 3/10, and one of two is drawn with 2 · 3 · 7/(10 · 9) = 7/15."""
    estimate = PopulationUniqueness.of_sizes([2, 1], 0.3)
    assert estimate.zayatz == pytest.approx((0.3 / (0.3 + 7 / 15)) / 3)


@pytest.mark.parametrize("seed", range(3))
def test_pitman_is_the_greatest_of_the_likelihood(seed):
    """A Chinese restaurant, and the sampling formula factor by factor."""
    rng, theta, alpha, sizes = np.random.default_rng(seed), 6.0, 0.5, []
    for n in range(400):
        seats = [theta + alpha * len(sizes), *(size - alpha for size in sizes)]
        table = int(rng.choice(len(seats), p=np.array(seats) / (theta + n)))
        if table:
            sizes[table - 1] += 1
        else:
            sizes.append(1)

    def negative(at):
        alpha = 1 / (1 + math.exp(-at[1]))
        theta = math.exp(at[0]) - alpha
        value = sum(math.log(theta + i * alpha) for i in range(1, len(sizes)))
        value -= sum(math.log(theta + i) for i in range(1, sum(sizes)))
        return -value - sum(math.log(j - alpha) for size in sizes for j in range(1, size))

    best = minimize(negative, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9}).x
    alpha = 1 / (1 + math.exp(-best[1]))
    theta, population = math.exp(best[0]) - alpha, 400 / 0.05
    expected = math.gamma(theta + 1) / math.gamma(theta + alpha) * population**alpha
    estimate = PopulationUniqueness.of_sizes(sizes, 0.05)
    assert estimate.pitman * population == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("a", [0.2, 1.5])
@pytest.mark.parametrize("beta", [0.1, 0.6])
@pytest.mark.parametrize("share", [0.15, 0.7])
def test_the_moments_of_the_slide_negative_binomial(a, beta, share, monkeypatch):
    """What is expected of a population of 1,000 classes, summed, leads back to its uniques."""
    monkeypatch.setattr(uniqueness, "_shlosser", lambda *_: 1000.0)
    people = np.arange(1, 2_000)
    law = nbinom.pmf(people - 1, a, beta)
    observed = [1000 * float(law @ binom.pmf(i, people, share)) for i in (1, 2)]
    count = np.array([*observed, 50.0])
    size = np.array([1.0, 2.0, 10.0])
    unique = uniqueness._slide_negative_binomial(size, count, share)
    assert unique * float(size @ count) / share == pytest.approx(1000 * beta**a, rel=1e-6)


def test_large_classes_take_no_model_away():
    """(1 + π)^i of 20,000 records is no float; unseen is such a class next to never."""
    sizes = np.repeat([1, 2, 3, 5], [40, 25, 20, 10])
    for share in (0.15, 0.5):
        estimate = PopulationUniqueness.of_sizes([*sizes, 20_000], share)
        few = PopulationUniqueness.of_sizes([*sizes, 900], share)
        persons = estimate.snb * estimate.population
        assert persons == pytest.approx(few.snb * few.population, rel=1e-6)
        assert estimate.model == "snb"


def test_where_all_persons_are_there_no_model_is_needed():
    estimate = PopulationUniqueness.of_sizes([1, 1, 2, 3], 1)
    assert [estimate.zayatz, estimate.pitman, estimate.snb, estimate.dankar] == [2 / 7] * 4


def test_shlosser_finds_the_classes_of_a_population():
    rng = np.random.default_rng(5)
    persons = rng.geometric(0.2, 4_000)
    size, count = np.unique(rng.binomial(persons, 0.5), return_counts=True)
    classes = uniqueness._shlosser(size[1:].astype(float), count[1:].astype(float), 0.5)
    assert classes == pytest.approx(4_000, rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_of_every_kind_of_frame(kind):
    table = pd.DataFrame({"age": [21, 25, 34, 41, 52, 58], "sex": list("ffmmff")})
    estimate = population_uniqueness(
        converted(kind, table), ["age", "sex"], fraction=0.5, bins={"age": 10}
    )
    assert estimate == PopulationUniqueness.of_sizes([2, 1, 1, 2], 0.5)
    assert estimate.document()["assumed"].keys() == {"zayatz", "pitman", "snb"}
    assert "2 of one record: 0.3333 of the sample" in str(estimate)


def test_refusals():
    table = pd.DataFrame({"age": [20, 30, None]})
    refusal("key", population_uniqueness, table, "age", fraction=0.1)
    assert population_uniqueness(table, "age", fraction=0.1, missing="drop").records == 2
    for fraction in (0, 1.1, -0.5, math.nan, "a tenth", 1e-300, 5e-324):
        refusal("fraction", PopulationUniqueness.of_sizes, [1, 2], fraction)
    for sizes in ([0, 1], [1.5], [], [[1]]):
        refusal("sizes", PopulationUniqueness.of_sizes, sizes, 0.5)
