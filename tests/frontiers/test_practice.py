"""Channels in use beside a frontier: evaluated as they are, and never below what is proved."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy import mechanisms, style
from cvxprivacy.typing import Frontier
from tests.frontiers.instances import counted, entropy, gaussian

HAMMING = cpv.hamming(5)
SOURCE = counted()  # W of three values, X of five


@pytest.fixture(scope="module")
def curve() -> Frontier:
    return cpv.frontier(cpv.PrivacyDistortion(SOURCE, HAMMING, budget=0.3), tol=1e-2)


def response(epsilon: float) -> cpv.Channel:
    return mechanisms.randomised_response(SOURCE.x, epsilon)


def test_a_channel_is_evaluated_on_the_law_of_the_frontier(curve):
    frame = curve.compare({f"ε = {e}": response(e) for e in (0.5, 1, 2)})
    assert list(frame.columns) == ["budget", "value", "lower", "upper", "breaks"]
    for e, (_, row) in zip((0.5, 1, 2), frame.iterrows(), strict=True):
        matrix = response(e).matrix
        distortion = float(SOURCE.p_x @ (matrix * HAMMING.matrix).sum(axis=1))
        learned = cpv.information.mutual_information(SOURCE.pmf @ matrix)
        assert row["budget"] == pytest.approx(distortion, abs=1e-12)
        assert row["value"] == pytest.approx(learned, abs=1e-12)
        assert row["lower"] <= row["upper"]
        assert row["lower"] <= row["value"]
        assert row["breaks"] == ""


def test_randomised_response_is_on_the_frontier_of_a_fair_bit():
    source = cpv.DiscreteSource.identical([0.5, 0.5])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    channel = mechanisms.randomised_response(range(2), math.log(4))
    row = cpv.frontier(problem, points=[0.2]).compare([channel]).loc["channel 1"]
    assert row["budget"] == pytest.approx(0.2)
    assert row["value"] == pytest.approx(1 - entropy(0.2))
    assert row["lower"] == pytest.approx(row["value"], abs=1e-6)


def test_names_come_from_mappings_and_pairs(curve):
    one, two = response(1), response(2)
    for channels in ({"a": one, "b": two}, [("a", one), ("b", two)]):
        assert curve.compare(channels).index.tolist() == ["a", "b"]
    assert curve.compare([one, two]).index.tolist() == ["channel 1", "channel 2"]
    assert curve.compare(one).index.tolist() == ["channel 1"]
    assert curve.compare([]).empty


def test_rows_and_columns_go_by_labels(curve):
    channel = response(1)
    shuffled = cpv.Channel(
        channel.matrix[::-1, ::-1], inputs=channel.inputs[::-1], outputs=channel.outputs[::-1]
    )
    ours, theirs = (curve.compare({"": each}).iloc[0] for each in (channel, shuffled))
    assert ours.equals(theirs)


@pytest.mark.parametrize("metric", [None, cpv.absolute_error(range(5))])
def test_the_least_epsilon_is_the_number_of_local_privacy(metric):
    rule = cpv.LocalPrivacy(1.0, metric=metric)
    error = cpv.absolute_error(range(5))
    problem = cpv.MinimumDistortion(SOURCE, error, [rule])
    curve = cpv.frontier(problem, "local_privacy", points=[0.5, 1.0, 1.5])
    channels = {
        e: mechanisms.remap(mechanisms.truncated_geometric(SOURCE.x, e), SOURCE, error)
        for e in (0.5, 1.0)
    }
    for e, (name, row) in zip(channels, curve.compare(channels).iterrows(), strict=True):
        profile = cpv.PrivacyProfile(channels[e], metric=rule.metric)
        assert name == str(e)
        assert row["local_privacy"] == profile.epsilon.upper
        assert row["breaks"] == ""
        assert row["lower"] <= row["value"]


def test_what_it_breaks_besides_is_named():
    rules = [cpv.LocalPrivacy(0.5), cpv.TCloseness(1e-3)]
    problem = cpv.PrivacyDistortion(SOURCE, HAMMING, budget=0.6, criteria=rules)
    curve = cpv.frontier(problem, points=[0.6, 0.7])
    frame = curve.compare({"open": response(3), "shut": response(1e-3)})
    assert frame["breaks"].tolist() == ["t_closeness, local_privacy", ""]
    figure, ax = plt.subplots()
    curve.plot(ax, compare={"open": response(3), "shut": response(1e-3)})
    fills = [line.get_markerfacecolor() for line in ax.lines[-2:]]
    assert fills == ["none", style.VERMILION]
    plt.close(figure)


def test_the_picture_has_a_point_and_a_name_for_each(curve):
    figure, ax = plt.subplots()
    channels = {"half": response(0.5), "two": response(2)}
    curve.plot(ax, per=(2.0, 4.0), compare=channels)
    frame = curve.compare(channels)
    points = np.array([np.ravel(line.get_xydata()) for line in ax.lines[-2:]])
    assert points == pytest.approx(frame[["budget", "value"]].to_numpy() / (2, 4))
    assert [text.get_text() for text in ax.texts] == ["half", "two"]
    assert {line.get_color() for line in ax.lines[-2:]} == {style.VERMILION}
    plt.close(figure)


def test_what_cannot_be_compared_is_refused(curve, tmp_path):
    subsets = mechanisms.subset_selection(SOURCE.x, 1.0, size=2)
    with pytest.raises(cpv.InputError, match=r"\(0, 1\).*mechanisms.remap"):
        curve.compare({"subsets": subsets})
    letters = mechanisms.remap(subsets, SOURCE, HAMMING)
    assert curve.compare({"subsets": letters})["breaks"].item() == ""
    short = mechanisms.randomised_response(range(4), 1.0)
    with pytest.raises(cpv.InputError, match=r"channels\[channel 1\]: no input 4"):
        curve.compare([short])
    long = cpv.Channel(np.ones((6, 1)), inputs=range(6), outputs=[0])
    with pytest.raises(cpv.InputError, match=r"channels\[long\]: an input 5"):
        curve.compare({"long": long})
    for wrong in ("abc", 3, [None], {"a": [[1.0]]}, [("a", response(1)), ("a", response(2))]):
        with pytest.raises(cpv.InputError, match="channels"):
            curve.plot(compare=wrong)
    loaded = Frontier.load(curve.save(tmp_path / "curve.json"))
    assert loaded.compare([]).empty
    with pytest.raises(cpv.InputError, match=r"Frontier.load"):
        loaded.compare([response(1)])


def test_a_number_that_channels_have_none_of_is_refused():
    under_t = cpv.MinimumDistortion(SOURCE, HAMMING, [cpv.TCloseness(0.1)])
    with pytest.raises(cpv.InputError, match="t_closeness"):
        cpv.frontier(under_t, "t_closeness", points=[0.1]).compare([response(1)])
    law = np.random.default_rng(1).dirichlet(np.ones(12)).reshape(2, 3, 2)
    known_to_the_user = cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(law), cpv.hamming(3), 0.3, side_information="decoder"
    )
    letters = mechanisms.randomised_response(range(3), 1.0)
    with pytest.raises(cpv.InputError, match="decoder"):
        cpv.frontier(known_to_the_user, points=[0.3]).compare([letters])
    source = gaussian(1)
    noise = cpv.frontier(cpv.QuadraticGaussian(source, 0.1), points=[0.1])
    with pytest.raises(cpv.InputError, match="QuadraticGaussian"):
        noise.compare([response(1)])


def test_of_several_laws_the_worst_counts():
    other = cpv.DiscreteSource(SOURCE.pmf[:, ::-1])
    problem = cpv.PrivacyDistortion(SOURCE, cpv.absolute_error(range(5)), 1.0, laws=[other])
    channel = mechanisms.exponential(cpv.absolute_error(range(5)), 1.0)
    row = cpv.frontier(problem, points=[1.0]).compare([channel]).iloc[0]
    errors = (channel.matrix * np.abs(np.subtract.outer(range(5), range(5)))).sum(axis=1)
    worst = max(float(law.p_x @ errors) for law in (SOURCE, other))
    assert row["budget"] == pytest.approx(worst, abs=1e-12)


def test_a_channel_without_any_epsilon_is_not_drawn():
    problem = cpv.MinimumDistortion(SOURCE, HAMMING, [cpv.LocalPrivacy(1.0)])
    curve = cpv.frontier(problem, "local_privacy", points=[1.0])
    untouched = cpv.Channel(np.eye(5), inputs=SOURCE.x, outputs=SOURCE.x)
    row = curve.compare({"untouched": untouched}).iloc[0]
    assert (row["local_privacy"], row["value"]) == (math.inf, 0)
    figure, ax = plt.subplots()
    curve.plot(ax, compare={"untouched": untouched})
    assert not ax.texts
    plt.close(figure)
