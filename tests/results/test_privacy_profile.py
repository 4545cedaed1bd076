"""The least ε and δ of a channel, against definitions in rationals and closed forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cvxprivacy as cpv
from cvxprivacy import mechanisms
from cvxprivacy.release.draws import numerators

LINE = cpv.absolute_error(range(4))


def drawn(seed: int, shape: tuple[int, int]) -> cpv.Channel:
    """A channel with small entries, and ones that are alike, in multiples of 2⁻⁵²."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(shape[1], 0.3), size=shape[0])
    matrix[rng.integers(shape[0])] = matrix[0]
    matrix = numerators(0.999 * matrix + 0.001 / shape[1]) / 2.0**52
    return cpv.Channel(matrix, inputs=range(shape[0]), outputs=range(shape[1]))


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 7))
def test_epsilon_is_the_greatest_log_ratio(seed, n, m):
    channel = drawn(seed, (n, m))
    metric = np.abs(np.subtract.outer(range(n), range(n)))
    for distances in (None, metric):
        profile = cpv.PrivacyProfile(channel, metric=distances)
        rows = channel.matrix
        best = max(
            math.log(a / b) / (1 if distances is None else int(metric[i, j]))
            for i, j in itertools.permutations(range(n), 2)
            for a, b in zip(rows[i], rows[j], strict=True)
        )
        assert profile.epsilon == pytest.approx(max(best, 0), abs=1e-10)
        assert profile.epsilon.upper - profile.epsilon.lower <= 1e-14


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 7), st.floats(0, 5))
def test_delta_is_the_greatest_excess(seed, n, m, epsilon):
    channel = drawn(seed, (n, m))
    k = channel.matrix
    metric = np.abs(np.subtract.outer(range(n), range(n)))
    for distances in (None, metric):
        profile = cpv.PrivacyProfile(channel, metric=distances)
        best = 0.0
        for i, j in itertools.permutations(range(n), 2):
            factor = math.exp(epsilon * (1 if distances is None else metric[i, j]))
            best = max(best, math.fsum(np.maximum(k[i] - factor * k[j], 0)))
        delta = profile.delta(epsilon)
        assert delta.lower - 1e-14 <= best <= delta.upper + 1e-14
        assert delta.upper - delta.lower < 1e-12


def test_delta_without_epsilon_is_the_total_variation_exactly():
    """Of multiples of 2⁻⁵², so that rationals decide it."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(2**20, rng.dirichlet(np.ones(6)), size=4)
    channel = cpv.Channel(counts / 2.0**20, inputs=range(4), outputs=range(6))
    exact = max(
        sum(Fraction(max(int(a - b), 0), 2**20) for a, b in zip(*pair, strict=True))
        for pair in itertools.permutations(counts, 2)
    )
    delta = cpv.PrivacyProfile(channel).delta(0)
    assert Fraction(delta.lower) <= exact <= Fraction(delta.upper)


def test_randomised_response_in_closed_form():
    k, typed = 5, 1.3
    profile = cpv.PrivacyProfile(mechanisms.randomised_response(range(k), typed))
    for epsilon in (0, 0.4, 1.2, typed, 3):
        expected = max(math.exp(typed) - math.exp(epsilon), 0) / (math.exp(typed) + k - 1)
        assert profile.delta(epsilon) == pytest.approx(expected, abs=1e-12)
    assert profile.delta(typed).upper == 0


def test_what_tells_inputs_apart_for_certain_has_no_epsilon():
    channel = cpv.Channel([[0.5, 0.5, 0], [0.5, 0, 0.5]], inputs="ab", outputs="xyz")
    profile = cpv.PrivacyProfile(channel)
    assert profile.epsilon.lower == math.inf
    for epsilon in (0, 1, 600):
        assert profile.delta(epsilon) == pytest.approx(0.5)


def test_equal_rows_have_no_epsilon_to_speak_of():
    channel = cpv.Channel([[0.3, 0.7, 0]] * 3, inputs="abc", outputs="xyz")
    profile = cpv.PrivacyProfile(channel)
    assert (profile.epsilon.lower, profile.epsilon.upper, profile.delta(0).upper) == (0, 0, 0)
    alone = cpv.Channel([[0.3, 0.7]], inputs="a", outputs="xy")
    assert cpv.PrivacyProfile(alone).epsilon.upper == 0


def test_inputs_at_no_distance_must_have_equal_rows():
    metric = [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    matrix = [[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]]
    near = cpv.Channel(matrix, inputs="abc", outputs="xy")
    assert cpv.PrivacyProfile(near, metric=metric).epsilon == pytest.approx(math.log(2))
    far = cpv.Channel([[0.5, 0.5], [0.4, 0.6], [0.25, 0.75]], inputs="abc", outputs="xy")
    assert cpv.PrivacyProfile(far, metric=metric).epsilon == math.inf


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.2), (0.7, 0.1)])
def test_a_certified_release_keeps_its_own_delta(epsilon, delta):
    """The criterion and the profile are two statements of one thing."""
    source = cpv.DiscreteSource.identical([0.5, 0.25, 0.125, 0.125])
    rule = cpv.LocalPrivacy(epsilon, delta=delta)
    solution = cpv.MinimumDistortion(source, cpv.hamming(4), [rule]).solve()
    achieved = cpv.PrivacyProfile(solution.channel).delta(epsilon)
    assert achieved.lower <= delta
    assert achieved == pytest.approx(delta, abs=1e-6)  # and uses all of it


def test_an_optimum_under_a_metric_uses_all_of_its_epsilon():
    source = cpv.DiscreteSource.identical([0.25] * 4)
    rule = cpv.LocalPrivacy(1, metric=LINE)
    solution = cpv.MinimumDistortion(source, LINE, [rule]).solve()
    profile = cpv.PrivacyProfile(solution.channel, metric=LINE)
    assert profile.epsilon.lower <= 1
    assert profile.epsilon == pytest.approx(1, abs=1e-6)


def test_the_curve_is_drawn_from_zero_to_its_own_epsilon():
    import matplotlib.pyplot as plt

    profile = cpv.PrivacyProfile(mechanisms.randomised_response("ab", 1.0))
    figure, ax = plt.subplots()
    assert profile.plot(ax, label="response") is ax
    x, y = ax.lines[0].get_data()
    assert (x[0], y[-1]) == (0, 0)
    assert x[-1] == pytest.approx(1.0)
    assert y[0] == pytest.approx((math.e - 1) / (math.e + 1))
    assert (np.diff(y) <= 0).all()
    profile.plot(most=0.5)
    assert ax.lines[1].get_xdata()[-1] == 0.5
    plt.close(figure)


def test_what_is_no_channel_or_metric_is_refused():
    channel = mechanisms.randomised_response("abc", 1.0)
    with pytest.raises(cpv.InputError, match="a list"):
        cpv.PrivacyProfile([[1.0]])
    with pytest.raises(cpv.InputError, match=r"shape \(3, 3\)"):
        cpv.PrivacyProfile(channel, metric=LINE)
    with pytest.raises(cpv.InputError, match="not symmetric"):
        cpv.PrivacyProfile(channel, metric=[[0, 1, 1], [2, 0, 1], [1, 1, 0]])
    for epsilon in (-1, math.nan, 701, "1"):
        with pytest.raises(cpv.InputError, match="epsilon"):
            cpv.PrivacyProfile(channel).delta(epsilon)


def test_a_huge_distance_takes_no_digits_from_delta():
    channel = cpv.Channel([[0.7, 0.3], [0, 1]], inputs="ab", outputs="ab")
    far = [[0, 1e150], [1e150, 0]]
    for distances in (far, None):
        delta = cpv.PrivacyProfile(channel, metric=distances).delta(100)
        assert 0.7 - 1e-12 < delta.lower <= delta.upper < 0.7 + 1e-12
