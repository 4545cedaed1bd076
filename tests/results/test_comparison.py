"""Channels compared: closed forms, pairs of which the answer is known, and proofs that are none."""

from __future__ import annotations

import itertools
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import plotting
from cvxprivacy.results import comparison
from cvxprivacy.typing import ChannelComparison
from tests.lengths import rest_at_length
from tests.refusals import refused


def symmetric(p, size=2):
    """Which errs with probability p, to any other value alike."""
    return [[1 - p if i == j else p / (size - 1) for j in range(size)] for i in range(size)]


def erasure(e):
    return [[1 - e, Fraction(0), e], [Fraction(0), 1 - e, e]]


def law(rng, inputs, outputs, zeros=0.0):
    """Rows in thousandths, as rationals that no float is."""
    rows = []
    for _ in range(inputs):
        weights = rng.dirichlet(np.ones(outputs)) * (rng.random(outputs) >= zeros)
        weights = weights if weights.any() else np.ones(outputs)
        rows.append(rng.multinomial(997, weights / weights.sum()))
    return np.array([[Fraction(int(k), 997) for k in row] for row in rows], dtype=object)


def holds(answer, a, b):
    """Whether what an answer says is so, by sums of its own."""
    a, b = (np.array(x, dtype=object) for x in (a, b))
    g = answer.garbling
    if answer.verdict:
        product = [
            [sum(b[x, u] * g[u, y] for u in range(b.shape[1])) for y in range(a.shape[1])]
            for x in range(len(a))
        ]
        return (g >= 0).all() and all(sum(row) == 1 for row in g) and product == a.tolist()
    gains = [
        sum(
            max(
                sum(
                    p * worth * c[x, y]
                    for x, (p, worth) in enumerate(zip(answer.prior, guess, strict=True))
                )
                for guess in answer.gain
            )
            for y in range(c.shape[1])
        )
        for c in (a, b)
    ]
    assert sum(answer.prior) == 1
    return (answer.prior >= 0).all() and gains[0] - gains[1] == answer.margin > 0


@pytest.mark.parametrize("size", [2, 3, 5])
def test_symmetric_channels_are_ordered_by_their_noise(size):
    noises = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)]
    for less, more in itertools.combinations(noises, 2):
        a, b = symmetric(more, size), symmetric(less, size)
        assert cpv.compare_channels(a, b).verdict is True
        other = cpv.compare_channels(b, a)
        assert other.verdict is False
        # the noisier one is as near as it comes: rows differ by the difference of the noise
        assert other.deficiency.lower <= more - less <= other.deficiency.upper
        assert other.deficiency.upper - other.deficiency.lower < 1e-9


def test_an_erasure_is_at_least_as_telling_up_to_twice_the_noise():
    for p, e in itertools.product(
        [Fraction(1, 10), Fraction(1, 5), Fraction(3, 10)], [Fraction(k, 20) for k in range(20)]
    ):
        a, b = symmetric(p), erasure(e)
        for answer, first, second, expected in (
            (cpv.compare_channels(a, b), a, b, e <= 2 * p),
            (cpv.compare_channels(b, a), b, a, False),
        ):
            assert answer.verdict is expected
            assert holds(answer, first, second)


def test_by_the_least_of_steps():
    """A thousandth beyond the boundary is told from it."""
    p = Fraction(1, 5)
    assert cpv.compare_channels(symmetric(p), erasure(2 * p)).verdict is True
    assert cpv.compare_channels(symmetric(p), erasure(2 * p + Fraction(1, 10**6))).verdict is False


@pytest.mark.parametrize("pairs", rest_at_length([40, 250], 1))
def test_pairs_that_were_made_by_a_garbling(pairs):
    rng = np.random.default_rng(0)
    for _ in range(pairs):
        inputs, outputs, last = rng.integers(2, 6, size=3)
        zeros = rng.choice([0.0, 0.4])
        b = law(rng, inputs, outputs, zeros)
        a = b @ law(rng, outputs, last, zeros)
        answer = cpv.compare_channels(a, b)
        assert answer.verdict is True
        assert holds(answer, a, b)
        assert answer.deficiency.upper == 0


@pytest.mark.parametrize("pairs", rest_at_length([30, 250], 1))
def test_pairs_that_a_gain_separates(pairs):
    """One that adds noise to A: were A a garbling of that, A's own gain would not fall."""
    rng = np.random.default_rng(1)
    separated = 0
    while separated < pairs:
        inputs, outputs, last = rng.integers(2, 6, size=3)
        a, b = law(rng, inputs, outputs), law(rng, inputs, last)
        gain = rng.integers(0, 10, size=(3, inputs)) * Fraction(1, 9)
        prior = law(rng, 1, inputs)[0]
        worth = [sum((gain * prior @ c).max(axis=0)) for c in (a, b)]
        a, b = (a, b) if worth[0] > worth[1] else (b, a)
        if worth[0] == worth[1]:
            continue
        separated += 1
        answer = cpv.compare_channels(a, b)
        assert answer.verdict is False
        assert holds(answer, a, b)
        span = (gain.max(axis=0) - gain.min(axis=0)).max()
        assert abs(worth[0] - worth[1]) <= span * Fraction(answer.deficiency.upper)
        assert answer.deficiency.upper - answer.deficiency.lower < 1e-8


def test_what_is_a_garbling_but_for_rounding_is_undecided():
    """A copies outputs of B, so that its garbling has zeros, and floats miss it by an ulp."""
    rng = np.random.default_rng(3)
    b = rng.dirichlet(np.ones(4), size=4)
    g = np.array([[1, 0, 0], [0.3, 0.7, 0], [0, 0.1, 0.9], [0, 0, 1]])
    names = {"inputs": range(4)}
    a, b = cpv.Channel(b @ g, outputs=range(3), **names), cpv.Channel(b, outputs=range(4), **names)
    answer = cpv.compare_channels(a, b)
    assert answer.verdict is not True
    assert answer.deficiency.upper < 1e-14
    assert "e-1" in str(answer)


def test_channels_are_what_is_drawn_by_and_inputs_go_by_name():
    a = cpv.Channel([[0.9, 0.1], [0.2, 0.8]], inputs="xy", outputs="ab")
    b = cpv.Channel([[0.2, 0.8], [0.9, 0.1]], inputs="yx", outputs="cd")
    answer = cpv.compare_channels(a, b)
    assert answer.verdict is True
    assert answer.garbling.tolist() == [[1, 0], [0, 1]]
    twice = a.then(cpv.Channel([[0.7, 0.3], [0.4, 0.6]], inputs="ab", outputs="ab"))
    assert cpv.compare_channels(twice, a).verdict is True
    assert cpv.compare_channels(a, twice).verdict is False


def test_measures_agree_with_the_order():
    """Of a proved pair no measure of leakage is greater by A, whatever the prior."""
    rng = np.random.default_rng(5)
    b = law(rng, 4, 5)
    a = b @ law(rng, 5, 3)
    assert cpv.compare_channels(a, b).verdict is True
    for prior in rng.dirichlet(np.ones(4), size=20):
        for measure in (
            cpv.leakage.MutualInformation(),
            cpv.leakage.ChiSquared(),
            cpv.leakage.GuessingProbability(),
            cpv.leakage.Maximal(),
        ):
            less, more = (measure.total(prior[:, None] * c.astype(float)) for c in (a, b))
            assert less <= more + 1e-12


# ---- proofs that are none -----------------------------------------------------------------


def test_altered_garblings_prove_nothing():
    rng = np.random.default_rng(7)
    for _ in range(40):
        b = law(rng, 4, 4)
        a = b @ law(rng, 4, 3)
        garbling = np.array(cpv.compare_channels(a, b).garbling)
        row, (one, other) = rng.integers(4), rng.choice(3, size=2, replace=False)
        step = min(garbling[row, one], Fraction(1, 10**12))
        if not step:
            continue
        garbling[row, one] -= step
        garbling[row, other] += step
        forged = ChannelComparison(a, b, garbling=garbling)
        assert forged.verdict is None
        assert 0 == forged.deficiency.lower < forged.deficiency.upper


def test_altered_gains_prove_what_they_do_and_no_more():
    """Of a pair that is ordered no prior and gain is accepted."""
    rng = np.random.default_rng(8)
    b = law(rng, 3, 4)
    a = b @ law(rng, 4, 3)
    garbling = law(rng, 4, 3)
    for _ in range(200):
        gain, prior = law(rng, 3, 3) - law(rng, 3, 3), law(rng, 1, 3)[0]
        forged = ChannelComparison(a, b, garbling=garbling, prior=prior, gain=gain)
        assert forged.verdict is None
        assert forged.margin <= 0
        assert forged.deficiency.lower == 0
    true = cpv.compare_channels(b, a)
    turned = ChannelComparison(b, a, garbling=true.garbling, prior=true.prior, gain=-true.gain)
    assert turned.verdict is None or holds(turned, b, a)


def test_a_solver_that_fails_or_lies_decides_nothing(monkeypatch):
    class Answer:
        x, message = None, "no answer"

    a, b = symmetric(Fraction(1, 5)), erasure(Fraction(3, 5))
    monkeypatch.setattr(comparison, "linprog", lambda *arguments, **options: Answer)
    with pytest.warns(RuntimeWarning, match="no answer"):
        answer = cpv.compare_channels(a, b)
    assert answer.verdict is None
    assert 0 < answer.deficiency.upper <= 1
    lie = np.full((3, 2), 0.5), np.full((2, 2), 0.25)
    monkeypatch.setattr(comparison, "_proposed", lambda first, second: lie)
    assert cpv.compare_channels(a, b).verdict is None


def test_many_dependent_columns_are_left_undecided(monkeypatch):
    b = law(np.random.default_rng(2), 2, 3)
    a = b @ law(np.random.default_rng(3), 3, 2)
    monkeypatch.setattr(comparison, "_UNKNOWNS", 5)
    answer = cpv.compare_channels(a, b)
    assert answer.verdict is not True
    assert answer.deficiency.upper < 1e-9


FAIR = [[Fraction(1, 2), Fraction(1, 2)]] * 2


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: cpv.compare_channels([[0.5, 0.4]], FAIR), "a"),
        (lambda: cpv.compare_channels(FAIR, [[Fraction(1, 3), Fraction(1, 2)]] * 2), "b"),
        (lambda: cpv.compare_channels(FAIR, [[1, 0]] * 3), "b"),
        (lambda: cpv.compare_channels(FAIR, [[2, -1]] * 2), "b"),
        (lambda: cpv.compare_channels("A", FAIR), "a"),
        (lambda: ChannelComparison(FAIR, FAIR, garbling=[[1, 0]]), "garbling"),
        (
            lambda: ChannelComparison(FAIR, FAIR, garbling=[[1, 0], [0.5, 0.4]]),
            "garbling",
        ),
        (lambda: ChannelComparison(FAIR, FAIR, garbling=FAIR, prior=[Fraction(1, 2)] * 2), "gain"),
        (lambda: ChannelComparison(FAIR, FAIR, garbling=FAIR, gain=[[1, 0]]), "gain"),
        (
            lambda: ChannelComparison(FAIR, FAIR, garbling=FAIR, prior=[1, 0], gain=[[1, 0, 0]]),
            "gain",
        ),
        (
            lambda: ChannelComparison(FAIR, FAIR, garbling=FAIR, prior=[1, 1], gain=[[1, 0]]),
            "prior",
        ),
    ],
)
def test_what_is_no_channel_or_no_proof_is_refused(make, argument):
    with pytest.raises(cpv.InputError) as caught:
        make()
    assert caught.value.argument == argument


def test_very_large_channels_are_refused():
    many = np.eye(220)
    refused(lambda: cpv.compare_channels(many, many), "a", value=220**3)


def test_channels_of_other_inputs_are_refused():
    a = cpv.Channel([[1.0], [1.0]], inputs="xy", outputs="a")
    for inputs in ("xz", "xyz"):
        b = cpv.Channel([[1.0]] * len(inputs), inputs=inputs, outputs="a")
        with pytest.raises(cpv.InputError) as caught:
            cpv.compare_channels(a, b)
        assert caught.value.argument == "b"


# ---- the picture --------------------------------------------------------------------------


def test_zonotopes_lie_within_each_other_as_channels_are_ordered():
    figure, ax = plt.subplots()
    channels = {
        "erased": cpv.Channel([[0.6, 0, 0.4], [0, 0.6, 0.4]], inputs="ab", outputs="ab?"),
        "flipped": cpv.Channel([[0.8, 0.2], [0.2, 0.8]], inputs="ab", outputs="ab"),
        "none": cpv.Channel([[0.5, 0, 0.5]] * 2, inputs="ab", outputs="abc"),
    }
    regions = [patch.get_path() for patch in plotting.zonotopes(channels, ax).patches]
    for outer, inner in itertools.pairwise(regions):
        assert outer.contains_points(inner.vertices, radius=-1e-9).all()  # clockwise
        assert not inner.contains_points(outer.vertices, radius=-1e-9).all()
    assert [text.get_text() for text in ax.legend().get_texts()] == list(channels)
    plt.close(figure)


def test_what_has_no_zonotope_is_refused():
    three = cpv.Channel(np.eye(3), inputs="abc", outputs="abc")
    two = [cpv.Channel(np.eye(2), inputs=names, outputs="ab") for names in ("ab", "xy")]
    for channels, where in (
        ({}, None),
        (two, None),
        ({"A": three}, "A"),
        ({"A": np.eye(2)}, "A"),
        (dict(zip("AB", two, strict=True)), "B"),
    ):
        refused(lambda channels=channels: plotting.zonotopes(channels), "channels", where=where)
