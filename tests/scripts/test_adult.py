"""The scripts on the Adult table: each against an independent statement, and by name."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from tests import referee
from tests.scripts.oracles import information, letters, solved


def test_script_invariant_pram(run, tables):
    words = ("certified", "enclosure", "bias", "price of the floor", "two-step", "breaks")
    module, result, _ = run("problems/invariant_pram", words=words)
    source, counts = result.source, result.source.joint.sum(axis=0)
    assert source.records == counts.sum() == (32_561 if tables.real else 200)
    assert (source.x[0], source.x[8], source.x[-1]) == ("Preschool", "HS-grad", "Doctorate")
    for solution in result.solutions.values():
        referee.check(solution)
    values = [solution.value for solution in result.solutions.values()]
    assert values == sorted(values)
    assert result.solutions[1.0].value == pytest.approx(source.information(), abs=1e-9)

    # the same program in CVXPY's own words
    pmf, n = source.pmf, len(source.x)
    for floor in (0.3, module.FLOOR, 0.9):
        k = cp.Variable((n, n), nonneg=True)
        far = (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 2).astype(float)
        rules = [
            cp.sum(k, axis=1) == 1,
            source.p_x @ k == source.p_x,
            cp.diag(k) >= floor,
            cp.multiply(far, k) == 0,
        ]
        leakage = cp.sum(information(pmf @ k, source.p_w, source.p_x @ k))
        assert solved(cp.Minimize(leakage), rules) == pytest.approx(
            result.solutions[floor].value, abs=2e-6
        )

    # the price is the slope, and the enclosures of the sweep respect it
    step = 1e-3
    near = module.study(module.adult(), (module.FLOOR - step, module.FLOOR + step)).solutions
    low, high = (solution.value for solution in near.values())
    price = result.chosen.prices["keep_probability"]
    assert (high - low) / (2 * step) == pytest.approx(price, rel=0.01)

    # the classical matrices: invariant, legal where the script says so, never below the optimum
    for matrix in (result.two_steps(0.6), result.raised(0.6), result.mixed(0.6)):
        assert source.p_x @ matrix == pytest.approx(source.p_x, abs=1e-14)
        assert np.abs(matrix[result.levels > module.REACH]).max() == 0
    for matrix in (result.raised(0.6), result.mixed(0.6)):
        assert matrix.diagonal().min() == pytest.approx(0.6, abs=1e-9)
        assert result.leakage(matrix) >= result.chosen.lower

    # on the records themselves the table of education moves by sampling error alone
    released = result.chosen.channel.apply(module.adult()["education"].to_numpy(), seed=1)
    drawn = np.array([(released == level).sum() for level in source.x])
    matrix = result.chosen.channel.matrix
    spread = np.sqrt(counts @ (matrix * (1 - matrix)))
    assert drawn.sum() == counts.sum()
    assert (np.abs(drawn - counts) <= 4.5 * spread).all()
    assert (drawn != counts).any()


def test_script_worst_case_or_average(run, tables):
    words = ("certified", "TCloseness", "LeakageCap", "price", "ratio", "under the average")
    module, result, _ = run("problems/worst_case_or_average", words=words)
    source = result.source
    assert source.records == (32_561 if tables.real else 200)
    assert len(source.x) == 14
    pmf, p_w, p_x = source.pmf, source.p_w, source.p_x

    for t, pair in result.pairs.items():
        for solution in (pair.average, pair.worst):
            referee.check(solution)
        _, worst, _ = letters(source, pair.worst.channel.matrix)
        assert worst.max() <= t + 1e-9
        q, average, _ = letters(source, pair.average.channel.matrix)
        assert q @ average <= t + 1e-9
        assert q @ average == pytest.approx(min(t, source.information()), abs=1e-5)
        share, divergence = pair.letters(pair.average)
        assert share[share > 0] == pytest.approx(q, abs=1e-12)
        used = q * source.records >= 1
        assert divergence[share > 0][used] == pytest.approx(average[used], abs=1e-9)
        assert divergence.max() > t  # the average hides at least one letter
        assert pair.worst.lower >= pair.average.value  # proved: the promise costs something
    for side in ("average", "worst"):
        values = [getattr(pair, side).value for pair in result.pairs.values()]
        assert values == sorted(values, reverse=True)

    # both programs in CVXPY's own words, at the t that is drawn
    t, n = module.BOUND, len(source.x)
    decades = [module.DECADES.index(decade) for decade, _ in source.x]
    sexes = [sex for _, sex in source.x]
    d = np.array([[abs(decades[i] - decades[j]) + (sexes[i] != sexes[j]) for j in range(n)]
                  for i in range(n)])  # fmt: skip
    k = cp.Variable((n, n), nonneg=True)
    law, error = [cp.sum(k, axis=1) == 1], cp.Minimize(cp.sum(cp.multiply(p_x[:, None] * d, k)))
    per_letter = information(pmf @ k, p_w, p_x @ k)
    for optimum, rule in (
        (result.chosen.worst, per_letter <= t * (p_x @ k)),
        (result.chosen.average, cp.sum(per_letter) <= t),
    ):
        assert solved(error, [*law, rule]) == pytest.approx(optimum.value, abs=1e-5)

    # the prices are slopes in t
    step = 1e-3
    near = module.study(module.adult(), (t - step, t + step)).pairs.values()
    for side, name in (("average", "leakage_cap"), ("worst", "t_closeness")):
        low, high = (getattr(pair, side).value for pair in near)
        price = getattr(result.chosen, side).prices[name]
        assert (high - low) / (2 * step) == pytest.approx(price, rel=0.01)
