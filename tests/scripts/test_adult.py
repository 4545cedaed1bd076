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


def test_script_guessing_adult(run, tables):
    words = ("certified", "guessing probability", "best for information", "of the range more")
    module, result, _ = run("problems/guessing_adult", words=words)
    source = result.source
    assert source.records == (32_561 if tables.real else 200)
    pmf = source.pmf
    for share, point in result.points.items():
        for name, solution in point.optima.items():
            referee.check(solution)
            assert point.values[name] >= solution.lower - 1e-9
            assert solution.upper >= result.none[name] - 1e-6
        best = point.optima["mutual information [nats]"]
        assert point.values["mutual information [nats]"] == pytest.approx(best.upper, abs=1e-9)
        joint = pmf @ best.channel.matrix
        assert point.values["guessing probability"] == pytest.approx(joint.max(axis=0).sum())
        sibson = np.sqrt((joint**2 / source.p_w[:, None]).sum(axis=0)).sum()
        assert point.values["Sibson, order 2"] == pytest.approx(sibson)
        if share == module.CHOSEN:  # the same program in CVXPY's own words
            d = np.asarray(best.certificate.program.constraints["budget"].expression.costs)
            k = cp.Variable(d.shape, nonneg=True)
            spent = cp.sum(cp.multiply(source.p_x[:, None] * d, k))
            rules = [cp.sum(k, axis=1) == 1, spent <= point.budget]
            guessed = cp.sum(cp.max(pmf @ k, axis=0))
            other = solved(cp.Minimize(guessed), rules)
            assert other == pytest.approx(point.optima["guessing probability"].upper, abs=2e-6)
    for name in module.MEASURES:
        values = [point.optima[name].upper for point in result.points.values()]
        assert values == sorted(values, reverse=True)
        assert values[0] == pytest.approx(result.full[name], abs=1e-9)  # D = 0: X itself


def test_script_perfect_privacy(run, tables):
    words = ("certified", "PerfectPrivacy", "a constant", "keeps")
    _, result, _ = run("problems/perfect_privacy", words=words)
    source, solution = result.source, result.solution
    referee.check(solution)
    joint = source.pmf @ solution.channel.matrix
    assert np.allclose(joint, np.outer(source.p_w, joint.sum(axis=0)), atol=1e-15)
    assert solution.risk.upper == 0.0  # exactly, as proved
    assert solution.upper <= result.constant
    # the least distortion is a linear program in the release
    d = solution.certificate.program.objective.costs
    k = cp.Variable(d.shape, nonneg=True)
    rules = [cp.sum(k, axis=1) == 1]
    rules += [source.pmf @ k == source.p_w[:, None] @ cp.reshape(source.p_x @ k, (1, -1), "C")]
    spent = cp.sum(cp.multiply(source.p_x[:, None] * d, k))
    assert solved(cp.Minimize(spent), rules) == pytest.approx(solution.upper, abs=2e-6)
    values = [point.value for point in result.relaxed.values()]
    assert values == sorted(values, reverse=True)
    assert values[0] <= solution.upper + 1e-9
