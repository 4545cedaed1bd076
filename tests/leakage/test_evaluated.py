"""Measures as numbers, against definitions, limits, and what measures say of posteriors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr
from scipy.stats import wasserstein_distance

import cvxprivacy as cpv
from cvxprivacy.leakage import divergence
from tests.leakage.measures import MEASURES
from tests.refusals import refused

INFORMATION = cpv.information
GROUND = [[0, 1, 3], [0.5, 0, 0.25], [2, 2, 0]]


def power(p, q, a):
    return float((p**a * q ** (1 - a)).sum())


BY_HAND = {
    "kl": lambda p, q: rel_entr(p, q).sum(),
    "js": lambda p, q: jensenshannon(p, q) ** 2,
    "tv": lambda p, q: np.abs(p - q).sum() / 2,
    "hockey-stick:1.5": lambda p, q: np.maximum(p - 1.5 * q, 0).sum(),
    "chi2": lambda p, q: ((p - q) ** 2 / q).sum(),
    "hellinger": lambda p, q: 2 - 2 * np.sqrt(p * q).sum(),
    "le-cam": lambda p, q: ((p - q) ** 2 / (p + q)).sum(),
    "power:3": lambda p, q: (power(p, q, 3) - 1) / 6,
    "power:0.5": lambda p, q: (power(p, q, 0.5) - 1) / -0.25,
    "renyi:0": lambda p, q: -math.log(q[p > 0].sum()),
    "renyi:0.3": lambda p, q: math.log(power(p, q, 0.3)) / -0.7,
    "renyi:1": lambda p, q: rel_entr(p, q).sum(),
    "renyi:2": lambda p, q: math.log(power(p, q, 2)),
    "renyi:17": lambda p, q: math.log(power(p, q, 17)) / 16,
    "renyi:inf": lambda p, q: math.log((p / q).max()),
    "emd": lambda p, q: wasserstein_distance(range(len(p)), range(len(p)), p, q) / (len(p) - 1),
}
IN_UNITS = ("kl", "js", "renyi")


@pytest.mark.parametrize("kind", BY_HAND)
def test_divergences_are_their_definitions(kind):
    rng = np.random.default_rng(0)
    for size in (2, 3, 7):
        p, q = rng.dirichlet(np.ones(size), size=2)
        p[0] = 0.0
        p /= p.sum()
        nats = divergence(p, q, kind, units="nats")
        assert nats == pytest.approx(BY_HAND[kind](p, q), rel=1e-11, abs=1e-13)
        bits = divergence(7 * p, 3 * q, kind)
        unit = math.log(2) if kind.startswith(IN_UNITS) else 1.0
        assert bits * unit == pytest.approx(nats, rel=1e-12)
        assert divergence(q, q, kind) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((kind, math.inf) for kind in ("kl", "chi2", "power:1.5", "renyi:1", "renyi:2")),
        ("renyi:inf", math.inf),
        ("tv", 0.5),
        ("hockey-stick:1.5", 0.5),  # of (1/2 − 3/2)₊ nothing
        ("hellinger", 2 - math.sqrt(2)),
        ("js", 0.5 * (0.5 * math.log2(0.5 / 0.75) + 0.5 + math.log2(1 / 0.75))),
        ("le-cam", 0.25 / 1.5 + 0.5),
        ("power:0.5", 4 - 2 * math.sqrt(2)),
        ("renyi:0.5", 1.0),
        ("renyi:0", 0.0),
        ("emd", 0.5),
    ],
)
def test_what_q_lacks(kind, value):
    assert divergence([1, 1], [1, 0], kind) == pytest.approx(value, abs=1e-14)


def test_laws_with_nothing_in_common():
    p, q = [1, 0], [0, 1]
    for kind in ("kl", "chi2", "renyi:0", "renyi:0.5", "renyi:1", "renyi:2", "renyi:inf"):
        assert divergence(p, q, kind) == math.inf
    for kind, most in (("tv", 1), ("js", 1), ("hellinger", 2), ("le-cam", 2), ("power:0.5", 4)):
        assert divergence(p, q, kind) == pytest.approx(most, abs=1e-14)


def test_a_leakage_is_the_mean_of_divergences_from_the_prior():
    """Of each measure that is a divergence; of others there is none, and they say so."""
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(12)).reshape(3, 4)
    for measure, _ in MEASURES.values():
        if not measure.divergence:
            refused(lambda m=measure: divergence([1, 2], [2, 1], m), "kind", value=measure)
            continue
        prior, mass = joint.sum(axis=1), joint.sum(axis=0)
        each = [divergence(joint[:, y], prior, measure, units="nats") for y in range(4)]
        assert mass @ each == pytest.approx(measure.total(joint), rel=1e-11)


def test_measures_of_ones_own():
    p, q = [0, 0.5, 0.5], [1, 0, 0]
    assert divergence(p, q, cpv.leakage.EarthMover(GROUND)) == pytest.approx(1.25)
    lin = cpv.leakage.FInformation([(1, 1, 1, 0, 0.5, 0.5)])
    assert divergence(p, q, lin) == pytest.approx(math.log(2))
    stick = cpv.leakage.HockeyStick(Fraction(3, 2))
    assert divergence([0.8, 0.2], [0.5, 0.5], stick) == pytest.approx(0.05)


def test_orders_near_one_lose_no_digits():
    p, q = np.array([0.8, 0.2]), np.array([0.5, 0.5])
    nats = rel_entr(p, q).sum()
    joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    slope = (p * (np.log(p / q) - nats) ** 2).sum() / 2  # of D_α at 1
    for off in (1e-4, 1e-8, 1e-12, -1e-6, -1e-13):
        value = INFORMATION.renyi_divergence(p, q, 1 + off, units="nats")
        assert value == pytest.approx(nats + off * slope, abs=2 * off**2 + 1e-15)
        sibson = INFORMATION.sibson_information(joint, 1 + off, units="nats")
        assert sibson == pytest.approx(value, abs=1e-15)  # alike for each output


def test_orders_that_overflow():
    p, q = [0.5, 0.5], [1 - 1e-9, 1e-9]
    most = math.log2(0.5e9)
    for order in (1e3, 1e6, 1e300):
        value = INFORMATION.renyi_divergence(p, q, order)
        assert value == pytest.approx(most, abs=2 * most / order + 1e-9)
    joint = np.outer([1 - 1e-9, 1e-9], [1, 1]) * [[1, 0.5], [0.25, 1]]
    limit = INFORMATION.sibson_information(joint, math.inf)
    assert INFORMATION.sibson_information(joint, 1e8) == pytest.approx(limit, abs=1e-6)
    assert INFORMATION.sibson_information(np.eye(2), 1e-300) == pytest.approx(1.0)


def test_information_grows_with_the_order_from_mutual_to_maximal():
    rng = np.random.default_rng(2)
    orders = [0, 1e-3, 0.2, 0.5, 0.9, 1, 1.1, 2, 5, 50, math.inf]
    for _ in range(30):
        joint = rng.dirichlet(np.full(12, 0.5)).reshape(3, 4) * (rng.random((3, 4)) < 0.8)
        if not joint.any():
            continue
        joint /= joint.sum()
        values = [INFORMATION.sibson_information(joint, order) for order in orders]
        assert (np.diff(values) >= -1e-12).all()
        assert values[5] == pytest.approx(INFORMATION.mutual_information(joint), abs=1e-13)
        most = cpv.leakage.Maximal()
        assert values[-1] == pytest.approx(most.information(most.total(joint)), abs=1e-12)
        two = cpv.leakage.Sibson(2)
        assert values[7] == pytest.approx(two.information(two.total(joint)), abs=1e-12)
        half = joint.sum(axis=1, keepdims=True) ** 0.5 * joint**0.5
        by_hand = -math.log2((half.sum(axis=0) ** 2).sum())
        assert values[3] == pytest.approx(by_hand, abs=1e-12)


def test_information_of_orders_up_to_one_is_convex_in_the_channel():
    rng = np.random.default_rng(3)
    prior = np.array([0.2, 0.3, 0.5])[:, None]
    for order in (0.1, 0.5, 0.9, 1.0):
        for _ in range(30):
            one, other = rng.dirichlet(np.full(3, 0.3), size=(2, 3))
            values = [
                INFORMATION.sibson_information(prior * k, order)
                for k in (one, (one + other) / 2, other)
            ]
            assert values[1] <= (values[0] + values[2]) / 2 + 1e-12


def test_measures_of_a_channel_in_one_call():
    source = cpv.DiscreteSource([[0.4, 0.1, 0.05], [0.1, 0.05, 0.3]])
    channel = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.2).solve().channel
    values = cpv.leakage.measures(source.pmf, channel)
    joint = source.pmf @ channel.matrix
    assert values["mutual information"] == pytest.approx(INFORMATION.mutual_information(joint))
    assert len(values) == 9
    for measure in (cpv.leakage.ChiSquared(), cpv.leakage.Maximal()):
        assert values[measure.name] == measure.total(joint)
    two = [cpv.leakage.Sibson(2), cpv.leakage.MutualInformation()]
    some = cpv.leakage.measures(source.p_x, channel.matrix, leakage=two, units="nats")
    assert list(some) == ["Sibson 2", "mutual information"]
    itself = source.p_x[:, None] * channel.matrix
    assert some["mutual information"] == pytest.approx(
        INFORMATION.mutual_information(itself, units="nats")
    )


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("gossip", ["use one of mutual-information"]),
        ("chi-quared", ["did you mean 'chi-squared'"]),
        ("renyi", ["renyi:2"]),
        ("tv:2", ["tv"]),
        ("renyi:two", ["renyi:2"]),
        ("", []),
        (2, []),
    ],
)
def test_kinds_that_are_none(kind, pieces):
    refused(lambda: divergence([1, 1], [1, 1], kind), "kind", *pieces, value=kind)


def test_what_is_no_law_no_order_or_no_channel():
    refused(lambda: divergence([1, -1], [1, 1], "tv"), "p", where=(1,), value=-1.0)
    refused(lambda: divergence([1, 1], [1, 1, 1], "tv"), "q")
    refused(lambda: divergence([1, 1], [1, 1], "hockey-stick:0.5"), "kind", "gamma of")
    for order in (-1, math.nan, "2", np.array([1, 2])):
        refused(lambda x=order: INFORMATION.renyi_divergence([1], [1], x), "order")
        refused(lambda x=order: INFORMATION.sibson_information([[1]], x), "order")
    measures = cpv.leakage.measures
    refused(lambda: measures([0.5, 0.5], [[0.5, 0.4], [1, 0]]), "channel", where=0, value=0.9)
    refused(lambda: measures([0.5, 0.5], np.eye(3)), "prior")
    refused(lambda: measures([0.5, 0.5], np.eye(2), leakage="gossip"), "leakage", where=None)
