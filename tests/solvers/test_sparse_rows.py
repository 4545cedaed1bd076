"""Linear programs with many rows of few letters: what Clarabel proposes, raised and proved."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import mechanisms
from cvxprivacy.solvers import sparse_rows
from cvxprivacy.solvers.watch import Watch
from tests import referee
from tests.lengths import some_at_length


def line(n: int, epsilon: float = 0.5, seed: int = 0, **options) -> cpv.MinimumDistortion:
    p = np.random.default_rng(seed).dirichlet(np.ones(n) * 3)
    d = cpv.absolute_error(list(range(n)))
    rule = cpv.LocalPrivacy(epsilon, metric=d)
    return cpv.MinimumDistortion(cpv.DiscreteSource.identical(p), d, [rule], **options)


@pytest.mark.parametrize("epsilon", some_at_length([0.2, 1.0], 1))
def test_it_ends_as_the_central_path_does(epsilon, monkeypatch):
    problem = line(32, epsilon)
    sparse = problem.solve()
    assert "sparse rows" in sparse.log[-1]
    referee.check(sparse)
    monkeypatch.setattr(sparse_rows, "pays", lambda program: False)
    path = problem.solve()
    assert "central path" in path.log[-1]
    assert sparse.status == path.status == "certified"
    assert sparse.lower <= path.upper
    assert path.lower <= sparse.upper
    assert sparse.prices["local_privacy"] == pytest.approx(path.prices["local_privacy"], rel=1e-3)


def test_on_a_line_it_is_the_geometric_mechanism_remapped():
    n, epsilon = 40, 0.4
    d = cpv.absolute_error(list(range(n)))
    source = cpv.DiscreteSource.identical(np.ones(n) / n)
    problem = cpv.MinimumDistortion(source, d, [cpv.LocalPrivacy(epsilon, metric=d)])
    solution = problem.solve()
    noise = mechanisms.truncated_geometric(n, epsilon)
    best = mechanisms.remap(noise, source, d).matrix
    cost = float((source.p_x[:, None] * best * d.matrix).sum())
    assert solution.lower - 1e-9 <= cost <= solution.upper + 1e-5


@pytest.mark.long
def test_rows_of_all_outputs_stand_beside_them():
    problem = line(32)
    mean = problem.source.p_x @ np.arange(32.0)
    further = cpv.PreserveMean(list(range(32)))
    solution = cpv.MinimumDistortion(
        problem.source, problem.alphabet.d, [*problem.criteria, further]
    ).solve()
    assert solution.status == "certified"
    assert solution.lower >= problem.solve().lower - 1e-9
    released = solution.channel.released_marginal @ np.arange(32.0)
    assert released == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_raised_keeps_every_ratio(seed):
    problem = line(30, 0.7, seed)
    rng = np.random.default_rng(seed)
    # far entries as a solver leaves them: noise, and below 0
    apart = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    channel = np.exp(-0.7 * apart) + rng.normal(size=(30, 30)) * 10.0 ** rng.uniform(-12, -6)
    channel /= channel.sum(axis=1, keepdims=True)
    raised = sparse_rows.raised(problem.program, channel)
    assert np.allclose(raised.sum(axis=1), 1, atol=1e-14)
    assert raised.min() > 0
    assert problem.program.violation(raised) <= 1e-15


def test_other_rows_are_left_to_repair():
    problem = cpv.MinimumDistortion(
        cpv.DiscreteSource(np.random.default_rng(1).dirichlet(np.ones(60)).reshape(2, 30)),
        cpv.hamming(30), [cpv.PointwiseMaximalLeakage(0.3)],
    )  # fmt: skip
    channel = np.full((30, 30), 1 / 30)
    assert sparse_rows.raised(problem.program, channel) is channel
    assert not sparse_rows.pays(problem.program)


def test_a_time_limit_ends_it():
    problem = line(40)
    channel, dual, words = sparse_rows.optimum(problem.program, Watch(1e-3))
    assert channel.shape == (40, 40)
    assert "Time" in words
    assert problem.solve(time_limit=1e-3).status in ("certified", "loose")
    assert set(dual.multipliers) == set(problem.program.constraints)
