"""What a frontier writes for a picture, compared with what the package knows."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.frontiers.picture import categorical_document
from cvxprivacy.typing import Frontier
from tests.frontiers.instances import D5, H5, THREE, counted, least_distortion, least_risk
from tests.lengths import some_at_length

SCHEMA = files("cvxprivacy.frontiers").joinpath("schema.json").read_text(encoding="utf-8")
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA))
SOLVED = {
    "convex": lambda: cpv.frontier(least_risk(), points=[0.1, 0.5, 0.9]),
    "exponential": lambda: cpv.frontier(
        least_distortion(cpv.MaximalLeakage(0.4), distortion=D5), "maximal_leakage", tol=0.1
    ),
    "monotone": lambda: cpv.frontier(
        least_distortion(cpv.TCloseness(0.1), distortion=D5), "t_closeness", tol=0.5
    ),
    "falling": lambda: cpv.frontier(
        least_risk(cpv.LDiversity(1.5), budget=0.9), "l_diversity", tol=0.6
    ),
    "gaussian": lambda: cpv.frontier(cpv.QuadraticGaussian(THREE, 0.3), points=[0.3, 1.0, 2.0]),
    "criteria": lambda: cpv.frontier(
        least_risk(
            cpv.TCloseness(0.4),
            cpv.KeepProbability(0.2),
            cpv.LocalPrivacy(4.0),
            cpv.MarginalDistance(0.3),
        ),
        points=[0.7, 0.9],
    ),
    "forbidden": lambda: cpv.frontier(
        least_risk(cpv.ForbiddenMoves(np.eye(5)[::-1] * (1 - np.eye(5)) > 0)), points=[0.7]
    ),
}


@pytest.fixture(scope="module", params=some_at_length(SOLVED, 4))
def solved(request, tmp_path_factory):
    """A frontier, and what it wrote."""
    curve = SOLVED[request.param]()
    path = curve.to_json(tmp_path_factory.mktemp("picture") / "picture.json")
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600  # it holds the joint law
    return curve, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.long
def test_pictures_follow_their_schema(solved):
    _, picture = solved
    VALIDATOR.check_schema(VALIDATOR.schema)
    VALIDATOR.validate(picture)
    assert picture["schema"] == VALIDATOR.schema["properties"]["schema"]["const"]


def test_points_are_the_frontiers(solved):
    curve, picture = solved
    assert picture["kind"] == curve.kind
    assert [point["x"] for point in picture["points"]] == [float(p.x) for p in curve.points]
    for point, expected in zip(picture["points"], curve.points, strict=True):
        ends = (expected.lower, expected.upper)
        assert (point["lower"], point["upper"]) == tuple(
            end if math.isfinite(end) else None for end in ends
        )
        if point["upper"] is None:
            continue
        release = expected.solution
        if "error_covariance" in point:
            assert np.array_equal(point["error_covariance"], release.error_covariance)
        else:
            assert np.array_equal(point["channel"], release.channel.matrix)
        if picture["kind"] == "convex":
            assert point["slope"] == release.duals[curve.parameter]
            assert point["price"] == pytest.approx(-point["slope"], abs=1e-12)


def test_corners_make_the_inner_curve(solved):
    curve, picture = solved
    for corner in picture["corners"]:
        assert picture["points"][corner["point"]]["upper"] == curve.inner(corner["x"])
    assert (picture["corners"][0]["x"], picture["corners"][-1]["x"]) == curve.solved_range


def test_slacks_are_those_of_the_program(solved):
    """Every constraint is met, and the multiplier of one with slack is nothing."""
    _, picture = solved
    names = [constraint["name"] for constraint in picture["constraints"]]
    for point in picture["points"]:
        if point["upper"] is None:
            continue
        assert list(point["constraints"]) == names
        for constraint in point["constraints"].values():
            slack = numbers(constraint["slack"])
            assert slack.min(initial=0.0) >= -1e-12
            assert np.allclose(numbers(constraint["bound"]) - numbers(constraint["value"]), slack)
            if constraint["multiplier"] is not None and point["x"] > 0:  # at t = 0 no prices are
                assert (np.abs(slack * numbers(constraint["multiplier"])) < 1e-4).all()


def numbers(value) -> np.ndarray:
    """Numbers of any depth, without None."""
    flat = np.array(value, dtype=object).ravel().tolist()
    return np.array([x for x in flat if x is not None], dtype=float)


def test_slack_of_criteria_is_that_of_their_definitions():
    source = counted()
    picture = as_written(SOLVED["criteria"]())
    for point in picture["points"]:
        channel, joint = np.array(point["channel"]), np.array(picture["model"]["joint"])
        assert np.allclose(joint, source.pmf)
        information = joint @ channel
        q = information.sum(axis=0)
        far = (information / q * np.log2(information / q / joint.sum(axis=1)[:, None])).sum(axis=0)
        slack = {name: c["slack"] for name, c in point["constraints"].items()}
        assert np.array(slack["t_closeness"]) / q == pytest.approx(0.4 - far, abs=1e-9)
        assert numbers(slack["keep_probability"]) == pytest.approx(np.diag(channel) - 0.2)
        worst = channel.max(axis=0) - math.exp(4.0) * channel.min(axis=0)
        assert slack["local_privacy"] == pytest.approx(-worst)
        moved = np.maximum(joint.sum(axis=0) @ channel - joint.sum(axis=0), 0).sum()
        assert slack["marginal_distance"] == pytest.approx(0.3 - moved)
        cost = (joint.sum(axis=0)[:, None] * channel * picture["model"]["distortion"]).sum()
        assert slack["budget"] == pytest.approx(point["x"] - cost, abs=1e-12)


def as_written(curve: Frontier, **options) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = curve.to_json(Path(folder) / "picture.json", **options)
        return json.loads(path.read_text(encoding="utf-8"))


def test_words_and_references_are_kept():
    curve = SOLVED["convex"]()
    words = {"parameter": "error", "price": "what it saves"}
    picture = as_written(curve, title="T", words=words, references={"line": lambda x: 2 * x})
    assert picture["title"] == "T"
    assert picture["words"] == {"unit": "", "value": "I(W; X̂), bits", **words}
    (line,) = picture["references"]
    assert np.allclose(2 * np.array(line["x"]), line["y"])
    assert r"\le \text{budget}" in picture["latex"]


@pytest.mark.parametrize(
    ("problem", "name"),
    some_at_length(
        [
            (least_distortion(cpv.LeakageCap(0.1), distortion=D5), "leakage_cap"),
            (least_distortion(cpv.TCloseness(0.125), distortion=D5), "t_closeness"),
            (least_distortion(cpv.MaximalLeakage(0.4), distortion=D5), "maximal_leakage"),
            (cpv.QuadraticGaussian(THREE, 0.3), "budget"),
            (cpv.GaussianEquivocation(THREE, 2.4, max_rate=1.0), "max_rate"),
        ],
        2,
    ),
)
def test_the_number_that_moves_has_its_name(problem, name):
    picture = as_written(cpv.frontier(problem, name, points=[0.25, 0.5]))
    words = name.replace("_", " ")
    assert rf"\le \text{{{words}}}" in picture["latex"]
    assert "0.25" not in picture["latex"]
    (text,) = (c["words"] for c in picture["constraints"] if c["name"] == name)
    assert words in text
    assert "0.25" not in text


def test_no_other_number_has_its_name():
    chi = least_distortion(cpv.PerLetter(cpv.leakage.ChiSquared(), 2), distortion=D5)
    sibson = least_distortion(cpv.LeakageCap(2, leakage=cpv.leakage.Sibson(2)), distortion=D5)
    plain = least_risk()
    longer = plain.with_constraint("50% of_it", plain.distortion <= 0.75)
    for problem, name, points, kept, words in (
        (chi, "per_letter", [2, 3], r"\chi^2(", "chi-squared is at most per letter"),
        (sibson, "leakage_cap", [2, 3], "F_{2}(", "(Sibson 2)"),
        (longer, "budget", [0.7, 0.9], r"\le 0.75", "≤ 0.75 holds"),
        (longer, "50% of_it", [0.7, 0.8], r"\le \text{50}\%\text{ of it}", "≤ 50% of it"),
    ):
        picture = as_written(cpv.frontier(problem, name, points=points))
        assert kept in picture["latex"]
        assert any(words in constraint["words"] for constraint in picture["constraints"])


def test_the_number_that_moves_has_its_name_where_w_is_x():
    source = cpv.DiscreteSource.identical([0.5, 0.3, 0.2])
    rule = cpv.PointwiseMaximalLeakage(0.5)
    problem = cpv.MinimumDistortion(source, cpv.hamming(3), [rule])
    picture = as_written(cpv.frontier(problem, rule.name, points=[0.25, 0.5]))
    assert r"e^{\text{pointwise maximal leakage}} \, p(x)" in picture["latex"]


def test_floats_are_named_in_few_digits():
    grid = (np.arange(3) / 10 - 0.7).tolist()
    assert len(str(grid[2])) > 10
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource(np.full((2, 3), 1 / 6), x=grid), cpv.squared_error(grid), budget=0.01
    )
    assert as_written(cpv.frontier(problem, points=[0.0]))["model"]["x"] == ["-0.7", "-0.6", "-0.5"]


def test_letters_without_mass_are_left_out():
    source = cpv.DiscreteSource([[0.4, 0.0, 0.1], [0.0, 0.0, 0.0], [0.1, 0.0, 0.4]], x=list("abc"))
    problem = cpv.PrivacyDistortion(source, cpv.hamming(list("abc")), budget=0.2)
    model = as_written(cpv.frontier(problem, points=[0.1, 0.2]))["model"]
    assert model["x"] == ["a", "c"]
    assert model["outputs"] == ["a", "b", "c"]
    assert model["joint"] == [[0.4, 0.1], [0.1, 0.4]]
    assert model["distortion"] == [[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"encoder": "wx"}, "encoder"),
        ({"laws": [counted(4)]}, "laws"),
    ],
)
def test_what_is_no_release_of_x_is_refused(tmp_path, options, argument):
    problem = cpv.PrivacyDistortion(counted(), H5, budget=0.2, **options)
    curve = cpv.frontier(problem, points=[0.2, 0.4])
    with pytest.raises(cpv.InputError, match="use save") as caught:
        curve.to_json(tmp_path / "picture.json")
    assert caught.value.argument == argument
    assert not list(tmp_path.iterdir())


def test_side_information_is_refused(tmp_path):
    pmf = np.random.default_rng(0).dirichlet(np.ones(8)).reshape(2, 2, 2)
    problem = cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(pmf), cpv.hamming(2), 0.2, side_information="both", minimize="leakage"
    )
    with pytest.raises(cpv.InputError) as caught:
        cpv.frontier(problem, points=[0.2]).to_json(tmp_path / "picture.json")
    assert (caught.value.argument, caught.value.value) == ("side_information", "both")


def test_wrong_arguments_are_refused(tmp_path):
    curve, path = SOLVED["convex"](), tmp_path / "picture.json"
    with pytest.raises(cpv.InputError) as caught:
        curve.to_json(path, words={"colour": "blue"})
    assert (caught.value.argument, caught.value.where) == ("words", "colour")
    with pytest.raises(cpv.InputError) as caught:
        curve.to_json(path, references={"pole": lambda x: math.inf})
    assert (caught.value.argument, caught.value.where) == ("references", "pole")
    plain = Frontier.load(curve.save(tmp_path / "curve.json"))
    with pytest.raises(cpv.InputError, match="pass problem=") as caught:
        plain.to_json(path)
    assert caught.value.argument == "problem"
    assert not path.exists()


def test_a_water_level_is_pictured():
    law = [0.4, 0.3, 0.2, 0.1]
    problem = cpv.HammingWaterFilling(law, 0.1)
    picture = categorical_document(problem, [0.5, 0.05, 0.2], title="Levels")
    VALIDATOR.validate(picture)
    assert [point["x"] for point in picture["points"]] == [0.05, 0.2, 0.5]
    for point in picture["points"]:
        covered = sum(min(p, point["level"]) for p in law) - point["level"]
        assert covered == pytest.approx(point["x"])
        assert point["lower"] <= problem.at(budget=point["x"]).solve().value <= point["upper"]
        for budget in (0.1, 0.3, 0.45):  # its line is below the optimum everywhere
            line = point["lower"] - point["slope"] * (budget - point["x"])
            assert line <= problem.at(budget=budget).solve().value + 1e-12
    with pytest.raises(cpv.InputError) as caught:
        categorical_document(problem, [0.0])
    assert caught.value.argument == "points"
