"""The interval of the mutual information: what it covers, and when there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cvxprivacy.model.information import miller_madow, mutual_information
from cvxprivacy_sdc.risk.estimators import estimated
from tests.lengths import some_weekly
from tests.sdc.audits import refusal


def coverage(law, records, tables, seed, draws=200):
    """Return how often the interval covers I of the law."""
    rng, truth, hits = np.random.default_rng(seed), mutual_information(law), 0
    for _ in range(tables):
        counts = rng.multinomial(records, law.ravel()).reshape(law.shape)
        result = estimated(counts, draws=draws, seed=rng)
        hits += result.lower <= truth <= result.upper
    return hits / tables


def test_the_interval_covers_what_it_says_it_covers():
    law = np.random.default_rng(4).dirichlet(np.full(24, 1.0)).reshape(3, 8)
    # three standard errors of 250 tables around 95 %
    assert 0.91 < coverage(law, 24 * 20, 250, seed=1) < 0.985
    independent = np.outer([0.3, 0.7], [0.1, 0.2, 0.3, 0.4])
    assert coverage(independent, 400, 100, seed=2) > 0.95


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "seed"), some_weekly([((2, 4), 1), ((3, 8), 2), ((7, 20), 3), ((7, 72), 4)], 1)
)
def test_coverage_by_records_per_cell(shape, seed):
    """What the docstring of ``estimated`` says of 10 and of 20 records per observed cell."""
    law = np.random.default_rng(seed).dirichlet(np.full(math.prod(shape), 1.0)).reshape(shape)
    for per_cell, least in ((10, 0.88), (20, 0.91)):
        assert coverage(law, per_cell * math.prod(shape), 200, seed) > least


def unequal(shape, seed):
    """Return a law of W × X whose cells are of very unequal masses, as those of people are."""
    law = np.outer(1.0 / np.arange(1, shape[0] + 1), 1.0 / np.arange(1, shape[1] + 1) ** 1.2)
    law = law * np.random.default_rng(seed).lognormal(0.0, 0.5, shape)
    return law / law.sum()


@pytest.mark.long
def test_the_corrected_estimate_is_the_middle_of_its_interval():
    """Less bias once it would lie outside: the second correction takes bias off, and adds none."""
    rng, law, errors = np.random.default_rng(6), unequal((15, 1500), 3), []
    for _ in range(8):
        counts = rng.multinomial(100_000, law.ravel()).reshape(law.shape)
        result = estimated(counts, draws=100, seed=rng)
        assert result.lower < result.corrected < result.upper
        assert result.corrected == pytest.approx((result.lower + result.upper) / 2)
        once = result.plugin - result.bias
        assert not result.lower <= once <= result.upper
        errors.append([once, result.corrected])
    once, twice = np.abs(np.mean(errors, axis=0) - mutual_information(law))
    assert twice < 0.8 * once
    assert estimated(counts).corrected == pytest.approx(errors[-1][0])  # without a bootstrap
    for counts in ([[40, 0], [0, 40]], [[20, 20], [20, 20]], [[80]]):  # cut at 0, or no spread
        result = estimated(counts, draws=50, seed=1)
        assert result.lower <= result.corrected <= result.upper


def test_a_negative_bias_is_corrected_upwards_and_says_so():
    result = estimated(np.diag([30, 40, 50]))
    assert result.bias < 0 < result.plugin < result.corrected
    assert "corrected upwards as fewer cells occur" in str(result)
    assert "upwards" not in str(estimated([[30, 10], [10, 30]]))


def test_redrawn_tables_are_measured_as_tables_are():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 60, (3, 5))
    result = estimated(counts, draws=400, seed=7)
    assert result == estimated(counts, draws=400, seed=7) != estimated(counts, draws=400, seed=8)
    rows, columns = np.nonzero(counts)
    size, values = counts.sum(), []
    for cells in np.random.default_rng(0).multinomial(size, counts[rows, columns] / size, 4000):
        table = np.zeros_like(counts)
        table[rows, columns] = cells
        values.append(mutual_information(table) - miller_madow(table))
    centre = 2 * result.plugin - result.bias - np.mean(values)
    half = 1.96 * np.std(values)
    assert (result.lower + result.upper) / 2 == pytest.approx(centre, abs=0.15 * half)
    assert (result.upper - result.lower) / 2 == pytest.approx(half, rel=0.15)
    wide = estimated(counts, draws=400, seed=7, level=0.99)
    assert wide.lower < result.lower < result.upper < wide.upper
    nats = estimated(counts, draws=400, seed=7, units="nats")
    assert nats.upper == pytest.approx(result.upper * math.log(2))


def test_intervals_that_are_not_given_say_why():
    few = estimated([[3, 1], [1, 3]], draws=100)
    assert few.lower is None
    assert few.note == "2.0 records per observed cell are too few for an interval"
    assert estimated([[8, 5], [5, 8]], draws=100).lower is None  # 6.5 each, covered 1 % at worst
    for counts in ([[18, 5], [5, 18]], [[30, 5], [5, 30]]):  # 11.5 and 17.5 each
        some = estimated(counts, draws=100, seed=1)
        assert some.lower is not None
        assert "covers less" in some.note
    rare = unequal((15, 400), 3)  # 22.1 records per cell, but few in most of them
    counts = np.random.default_rng(1).multinomial(100_000, rare.ravel()).reshape(rare.shape)
    assert "of bias that Miller and Madow's formula leaves" in estimated(counts, draws=100).note
    assert estimated([[300, 99], [99, 300]], draws=100, seed=1).note == ""
    none = estimated([[300, 1], [1, 300]])
    assert (none.lower, none.note) == (None, "")
    for wrong in ({"counts": [[0.5, 1]]}, {"draws": -1}, {"draws": 1}, {"level": 1.0}):
        (name,) = wrong
        refusal(name, estimated, **{"counts": [[1, 2]], **wrong})
