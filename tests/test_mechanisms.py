"""Mechanisms of the literature: closed forms, their ε, and where theory calls them optimal."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog
from scipy.special import rel_entr

import cvxprivacy as cpv
from cvxprivacy import mechanisms
from cvxprivacy.errors import UnknownValueError
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.practice import places_of
from tests.lengths import rest_at_length

EPSILONS = st.one_of(st.floats(0.05, 8), st.floats(1e-300, 690), st.fractions(Fraction(1, 9), 9))
NEAR = 1e-11


def city(rows: int, columns: int) -> np.ndarray:
    """Distances |Δr| + |Δc| of all cells, as the definition has it."""
    cells = list(itertools.product(range(rows), range(columns)))
    return np.array([[abs(a - c) + abs(b - d) for c, d in cells] for a, b in cells], float)


def euclidean(rows: int, columns: int) -> np.ndarray:
    cells = list(itertools.product(range(rows), range(columns)))
    return np.array([[math.hypot(a - c, b - d) for c, d in cells] for a, b in cells])


def line(count: int) -> np.ndarray:
    return city(1, count)


def test_randomised_response_is_its_formula():
    epsilon, k = 0.7, 5
    channel = mechanisms.randomised_response("abcde", epsilon)
    e = math.exp(epsilon)
    other = 1 / (e + k - 1)
    assert channel.inputs == channel.outputs == list("abcde")
    assert channel.matrix == pytest.approx(np.full((k, k), other) + (e - 1) * other * np.eye(k))


@pytest.mark.parametrize("size", [1, 2, 4, None])
def test_subset_selection_is_its_formula(size):
    epsilon, k = 1.1, 5
    channel = mechanisms.subset_selection(range(k), epsilon, size=size)
    size = size or 2  # k/(e^ε + 1) = 1.25, and 2 tells more than 1
    held = [x in y for x, y in itertools.product(range(k), channel.outputs)]
    inside = math.comb(k - 1, size - 1) * math.exp(epsilon) + math.comb(k - 1, size)
    expected = np.where(np.reshape(held, (k, -1)), math.exp(epsilon), 1) / inside
    assert channel.outputs == list(itertools.combinations(range(k), size))
    assert channel.matrix == pytest.approx(expected)


def test_rappor_is_its_formula():
    epsilon = 1.3
    channel = mechanisms.rappor("abc", epsilon)
    kept = 1 / (1 + math.exp(-epsilon / 2))
    for i, y in itertools.product(range(3), range(8)):
        bits = channel.outputs[y]
        agree = sum(bit == (j == i) for j, bit in enumerate(bits))
        assert channel.matrix[i, y] == pytest.approx(kept**agree * (1 - kept) ** (3 - agree))


def test_truncated_geometric_is_its_formula():
    epsilon, n = 0.6, 7
    matrix = mechanisms.truncated_geometric(n, epsilon).matrix
    a = math.exp(-epsilon)
    for i, j in itertools.product(range(n), range(n)):
        inside = (1 - a) if 0 < j < n - 1 else 1
        assert matrix[i, j] == pytest.approx(inside / (1 + a) * a ** abs(i - j))


def test_exponential_is_its_formula():
    d, epsilon = np.array([[0, 1, 4], [1, 0, 2]]), 0.8
    channel = mechanisms.exponential(cpv.Distortion(d, inputs="ab", outputs="xyz"), epsilon)
    weights = np.exp(-epsilon / 2 * d)
    assert (channel.inputs, channel.outputs) == (list("ab"), list("xyz"))
    assert channel.matrix == pytest.approx(weights / weights.sum(axis=1, keepdims=True))


def test_planar_laplace_cuts_off_the_noise_of_the_lattice():
    """Summed cell by cell over a wide part of the lattice."""
    epsilon, rows, columns, reach = 1.4, 2, 3, 30
    steps = list(itertools.product(range(-reach, reach + 1), repeat=2))
    weight = {step: math.exp(-epsilon * math.hypot(*step)) for step in steps}
    total, expected = math.fsum(weight.values()), np.zeros((rows, columns, rows, columns))
    for r, c in itertools.product(range(rows), range(columns)):
        for (down, across), mass in weight.items():
            y = min(max(r + down, 0), rows - 1), min(max(c + across, 0), columns - 1)
            expected[(r, c, *y)] += mass / total
    channel = mechanisms.planar_laplace((rows, columns), epsilon)
    assert channel.matrix == pytest.approx(expected.reshape(6, 6), abs=1e-12)


def test_city_noise_on_a_line_is_geometric():
    channel = mechanisms.planar_laplace((1, 6), 0.4, distance="city", letters="abcdef")
    other = mechanisms.truncated_geometric("abcdef", 0.4)
    assert channel.inputs == other.inputs
    assert channel.matrix == pytest.approx(other.matrix, abs=1e-12)
    assert mechanisms.planar_laplace((6, 1), 0.4, distance="city").matrix == pytest.approx(
        other.matrix, abs=1e-12
    )


# ---- the ε that is typed is the ε that is drawn ---------------------------------------------


def makers(size: int, epsilon) -> dict[str, tuple[cpv.Channel, object]]:
    """Return each mechanism with its metric."""
    letters, grid = range(size), (2, size)
    made = {
        "response": (mechanisms.randomised_response(letters, epsilon), None),
        "subsets": (mechanisms.subset_selection(letters, epsilon), None),
        "bits": (mechanisms.rappor(letters, epsilon), None),
        "geometric": (mechanisms.truncated_geometric(size, epsilon), line(size)),
        "exponential": (mechanisms.exponential(line(size), epsilon), line(size)),
    }
    if epsilon >= 0.05:
        made["planar"] = mechanisms.planar_laplace(grid, epsilon), euclidean(*grid)
        city_noise = mechanisms.planar_laplace(grid, epsilon, distance="city")
        made["city"] = city_noise, city(*grid)
    return made


def worst_ratio(channel: cpv.Channel, metric) -> float:
    """Return ε of the stored matrix as the definition has it, in floats."""
    k, best = channel.matrix, 0.0
    for i, j in itertools.permutations(range(len(k)), 2):
        distance = 1.0 if metric is None else metric[i, j]
        best = max(best, float(np.max(np.log(k[i]) - np.log(k[j]))) / distance)
    return best


@given(st.integers(2, 6), EPSILONS)
def test_no_mechanism_exceeds_its_epsilon(size, epsilon):
    for name, (channel, metric) in makers(size, epsilon).items():
        profile = cpv.PrivacyProfile(channel, metric=metric)
        assert profile.epsilon.upper <= epsilon, name
        assert profile.delta(epsilon) == 0
        assert worst_ratio(channel, metric) == pytest.approx(profile.epsilon, rel=1e-9, abs=1e-14)
        scaled = channel.matrix * 2.0**52  # what is stored is what is drawn
        assert (scaled == np.rint(scaled)).all()
        assert (scaled.sum(axis=1) == 2.0**52).all()
        if 0.05 <= epsilon <= 8 and name not in ("exponential", "planar"):  # all is used
            assert profile.epsilon >= epsilon * (1 - 1e-6), name


@pytest.mark.parametrize("epsilon", rest_at_length([0.3, 2.0], 1))
def test_each_mechanism_keeps_the_criterion_of_the_package(epsilon):
    """By exact rows of a program whose rule is LocalPrivacy, without repair."""
    for name, (channel, metric) in makers(3, epsilon).items():
        n, outputs = len(channel.inputs), channel.outputs
        law = np.arange(1, n + 1) / (n * (n + 1) / 2)
        source = cpv.DiscreteSource.identical(law, x=channel.inputs)
        free = cpv.Distortion(np.ones((n, len(outputs))), outputs=outputs)

        def breaks(factor, source=source, free=free, channel=channel, metric=metric):
            rule = cpv.LocalPrivacy(factor * epsilon, metric=metric)
            problem = cpv.PrivacyDistortion(source, free, budget=2, criteria=[rule])
            family = ParametricProblem(problem, "budget")
            ((_, place),) = places_of(family, {"": channel}, "")
            return place.breaks

        assert breaks(1) == [], name
        assert breaks(0.4), name


def test_exponential_of_the_naive_kind_has_twice_the_epsilon_at_most():
    """What is normalised on the grid alone is not private for its own rate."""
    d = euclidean(6, 6)
    naive = np.exp(-1.0 * d)
    naive /= naive.sum(axis=1, keepdims=True)
    channel = cpv.Channel(naive, inputs=range(36), outputs=range(36))
    profile = cpv.PrivacyProfile(channel, metric=d)
    assert 1.2 < profile.epsilon.lower <= profile.epsilon.upper <= 2
    honest = mechanisms.planar_laplace((6, 6), 1.0)
    assert cpv.PrivacyProfile(honest, metric=d).epsilon == pytest.approx(1, abs=1e-9)


# ---- where theory says that they are optimal ------------------------------------------------


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (4, 1.0), (6, 2.5)])
def test_randomised_response_is_optimal_for_hamming(k, epsilon):
    source = cpv.DiscreteSource.identical([Fraction(1, k)] * k)
    response = mechanisms.randomised_response(range(k), epsilon)
    problem = cpv.MinimumDistortion(source, cpv.hamming(k), [cpv.LocalPrivacy(epsilon)])
    curve = cpv.frontier(problem, "local_privacy", points=[epsilon])
    point = curve.compare({"response": response}).iloc[0]
    assert point["value"] == pytest.approx((k - 1) / (math.exp(epsilon) + k - 1))
    assert point["value"] == pytest.approx(curve.points[0].lower, abs=1e-7)
    assert point["value"] >= curve.points[0].lower


def greatest_information(k: int, epsilon: float) -> float:
    """Return max I(X; Y) in bits of a uniform letter under ε: the linear program over all rays."""
    rays = np.array(list(itertools.product([1.0, math.exp(epsilon)], repeat=k)))
    learned = rel_entr(rays / k, rays.mean(axis=1, keepdims=True) / k).sum(axis=1) / math.log(2)
    answer = linprog(-learned, A_eq=rays.T, b_eq=np.ones(k))
    return -answer.fun


@pytest.mark.parametrize("k", [2, 3, 5, 7])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_subset_selection_tells_most(k, epsilon):
    most = greatest_information(k, epsilon)
    law = np.full((k, 1), 1 / k)
    learned = {
        name: cpv.information.mutual_information(law * channel.matrix)
        for name, (channel, metric) in makers(k, epsilon).items()
        if metric is None
    }
    assert learned["subsets"] == pytest.approx(most, abs=1e-9)
    assert max(learned["response"], learned["bits"]) <= most + 1e-9
    if k == 2:
        assert learned["response"] == pytest.approx(most, abs=1e-9)
    for size in range(1, k):
        other = mechanisms.subset_selection(range(k), epsilon, size=size)
        assert cpv.information.mutual_information(law * other.matrix) <= most + 1e-9


@pytest.mark.parametrize("law", [[1] * 6, [5, 1, 1, 2, 8, 3]])
@pytest.mark.parametrize("power", [1, 2])
def test_the_truncated_geometric_is_universally_optimal(law, power):
    """Ghosh, Roughgarden and Sundararajan: after a remap, whatever law and loss."""
    source = cpv.DiscreteSource.identical([Fraction(mass, sum(law)) for mass in law])
    loss = cpv.Distortion(line(6) ** power)
    problem = cpv.MinimumDistortion(source, loss, [cpv.LocalPrivacy(1.0, metric=line(6))])
    optimum = problem.solve()
    for epsilon in (0.8, 0.9, 1.0):
        noisy = mechanisms.truncated_geometric(6, epsilon)
        letter = mechanisms.remap(noisy, source, loss)
        achieved = float(source.p_x @ (letter.matrix * loss.matrix).sum(axis=1))
        assert achieved >= optimum.lower - 1e-12
    assert achieved == pytest.approx(optimum.value, abs=1e-6)


@pytest.mark.parametrize("distance", ["city", "euclidean"])
def test_planar_laplace_is_no_better_than_the_optimum(distance):
    metric = (city if distance == "city" else euclidean)(3, 3)
    source = cpv.DiscreteSource.identical(np.array([4, 1, 2, 1, 8, 1, 2, 1, 4]) / 24)
    problem = cpv.MinimumDistortion(source, metric, [cpv.LocalPrivacy(1.0, metric=metric)])
    optimum = problem.solve()
    for channel in (
        mechanisms.planar_laplace((3, 3), 1.0, distance=distance, letters=source.x),
        mechanisms.exponential(metric, 1.0),
    ):
        letter = mechanisms.remap(channel, source, metric)
        achieved = float(source.p_x @ (letter.matrix * metric).sum(axis=1))
        assert achieved >= optimum.lower
        assert cpv.PrivacyProfile(letter, metric=metric).epsilon.upper <= 1.0


# ---- remap ------------------------------------------------------------------------------------


@given(st.integers(0, 1000))
def test_no_function_of_the_output_costs_less(seed):
    rng = np.random.default_rng(seed)
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(6)).reshape(2, 3), x="abc")
    cost = rng.uniform(size=(2, 3, 2))
    channel = cpv.Channel(rng.dirichlet(np.ones(4), size=3), inputs="abc", outputs=range(4))
    letter = mechanisms.remap(channel, source, cost)
    best = np.einsum("wx,xy,wxz->yz", source.pmf, channel.matrix, cost).min(axis=1).sum()
    achieved = np.einsum("wx,xz,wxz->", source.pmf, letter.matrix, cost)
    assert achieved == pytest.approx(best, abs=NEAR)


def test_remap_goes_by_labels_and_keeps_inputs_without_mass():
    source = cpv.DiscreteSource.identical([0.2, 0.8], x=["c", "a"])
    channel = mechanisms.randomised_response("abc", 2.0)
    letter = mechanisms.remap(channel, source, cpv.hamming(source.x))
    assert (letter.inputs, letter.outputs) == (list("abc"), ["c", "a"])
    assert letter.p_input.tolist() == [0.8, 0, 0.2]
    assert letter.matrix[1].sum() == 1


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 700, "1", True, None])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    for call in (
        lambda: mechanisms.randomised_response("ab", epsilon),
        lambda: mechanisms.subset_selection("ab", epsilon),
        lambda: mechanisms.rappor("ab", epsilon),
        lambda: mechanisms.truncated_geometric(3, epsilon),
        lambda: mechanisms.planar_laplace((2, 2), epsilon),
        lambda: mechanisms.exponential(line(3), epsilon),
    ):
        with pytest.raises(cpv.InputError) as refused:
            call()
        assert refused.value.argument == "epsilon"


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: mechanisms.randomised_response([], 1), "letters"),
        (lambda: mechanisms.randomised_response(3, 1), "letters"),
        (lambda: mechanisms.randomised_response("aa", 1), "letters"),
        (lambda: mechanisms.subset_selection("abc", 1, size=0), "size"),
        (lambda: mechanisms.subset_selection("abc", 1, size=3), "size"),
        (lambda: mechanisms.subset_selection(range(20_000), 1, size=10_000), "letters"),
        (lambda: mechanisms.rappor(range(13), 1), "letters"),
        (lambda: mechanisms.rappor(range(100_000), 1), "letters"),
        (lambda: mechanisms.truncated_geometric(0, 1), "values"),
        (lambda: mechanisms.truncated_geometric(2.5, 1), "values"),
        (lambda: mechanisms.truncated_geometric("aa", 1), "values"),
        (lambda: mechanisms.planar_laplace(3, 1), "shape"),
        (lambda: mechanisms.planar_laplace((0, 3), 1), "shape"),
        (lambda: mechanisms.planar_laplace((2, 3), 0.01), "epsilon"),
        (lambda: mechanisms.planar_laplace((2, 3), 1, distance="taxi"), "distance"),
        (lambda: mechanisms.planar_laplace((2, 3), 1, letters="abc"), "letters"),
        (lambda: mechanisms.planar_laplace((10**6, 10**6), 1), "shape"),
        (lambda: mechanisms.exponential([[0, -1], [1, 0]], 1), "distances"),
        (lambda: mechanisms.exponential(np.ones((2, 2, 2)), 1), "distances"),
        (lambda: mechanisms.remap([[1]], None, None), "channel"),
        (lambda: mechanisms.remap(mechanisms.rappor("a", 1), None, None), "source"),
    ],
)  # fmt: skip
def test_what_makes_no_mechanism_is_refused(call, argument):
    with pytest.raises(cpv.InputError) as refused:
        call()
    assert refused.value.argument == argument
    assert refused.value.remedy


def test_a_letter_without_a_row_is_named():
    source = cpv.DiscreteSource.identical([0.5, 0.5], x="ab")
    channel = mechanisms.randomised_response("ac", 1)
    with pytest.raises(UnknownValueError, match="no input 'b'"):
        mechanisms.remap(channel, source, cpv.hamming("ab"))
