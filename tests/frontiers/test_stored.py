"""Frontiers in files: with their proofs, as the version before wrote them, and changed ones."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.frontiers import stored
from cvxprivacy.typing import Frontier
from cvxprivacy_verifier import verify
from tests.frontiers.instances import D5, counted, least_distortion, least_risk
from tests.lengths import some_at_length

DATA = Path(__file__).parents[1] / "data"
SOURCE = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
WRITTEN = {  # by the version before: the problem, and what its file proves at one number
    "convex": (
        cpv.PrivacyDistortion(SOURCE, cpv.hamming(2), budget=0.7),
        (0.15, 0.13981405458115387, 0.1290430941377208, -0.993525406499446),
    ),
    "monotone": (
        cpv.MinimumDistortion(SOURCE, cpv.hamming(2), [cpv.TCloseness(0.7)]),
        (0.06, 0.2818796418877343, 0.2603229553650527, -2.0236825397466434),
    ),
    "exponential": (
        cpv.MinimumDistortion(SOURCE, cpv.hamming(2), [cpv.MaximalLeakage(0.7)]),
        (0.31, 0.38014615008718444, 0.3801461498786535, -0.4296499501429203),
    ),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_files_of_the_version_before_are_read(kind):
    problem, (x, inner, outer, price) = WRITTEN[kind]
    path = DATA / f"frontier-{kind}.json"
    curve = Frontier.load(path, problem, verify=True)
    assert curve.inner(x) == pytest.approx(inner, rel=1e-12)
    assert curve.outer(x) == pytest.approx(outer, rel=1e-12)
    assert curve.price(x).lower == pytest.approx(price, rel=1e-12)
    assert curve.solution_at(x).certificate.verify()
    if kind == "monotone":
        with pytest.raises(cpv.InputError, match="pass the problem"):
            Frontier.load(path, verify=True)
        return
    plain = Frontier.load(path, verify=True)
    assert str(plain) == str(curve)
    assert plain.inner(x) == curve.inner(x)
    assert plain.outer(x) <= curve.outer(x)


@pytest.mark.parametrize(
    ("problem", "name"),
    some_at_length(
        [
            (least_risk(), "budget"),
            (least_distortion(cpv.MaximalLeakage(0.4), distortion=D5), "maximal_leakage"),
            (least_distortion(cpv.TCloseness(0.1), distortion=D5), "t_closeness"),
            pytest.param(
                least_risk(cpv.TCloseness(0.1), budget=0.3), "t_closeness", marks=pytest.mark.long
            ),
            (cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), 0.3), "budget"),
        ],
        1,
    ),
)
def test_a_frontier_is_kept_with_its_proofs(problem, name, tmp_path):
    curve = cpv.frontier(problem, name, tol=0.5 if name == "t_closeness" else 0.02)
    path = curve.save(tmp_path / "curve.json")
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    places = np.linspace(*curve.solved_range, 13)
    if curve.kind == "monotone":
        with pytest.raises(cpv.InputError, match="pass the problem"):
            Frontier.load(path, verify=True)
    plain = Frontier.load(path, verify=curve.kind != "monotone")
    assert np.array_equal(plain.inner(places), curve.inner(places))
    assert (plain.band, plain.edge) == (curve.band, curve.edge)
    assert (plain.outer(places) <= curve.outer(places)).all()
    assert str(plain) == str(curve)
    assert plain.to_frame().equals(curve.to_frame())
    for ask in (plain.documents, lambda: plain.release_at(places[-1])):
        with pytest.raises(cpv.InputError, match="pass problem=") as caught:
            ask()
        assert caught.value.argument == "problem"
    full = Frontier.load(path, problem, verify=True)
    assert np.array_equal(full.outer(places), curve.outer(places))
    assert full.solution_at(places[5]).upper == curve.solution_at(places[5]).upper
    assert full.documents() == curve.documents()
    assert all(verify.disagreements(document) == [] for document in curve.documents())
    again = full.save(tmp_path / "again.json")
    assert again.read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    curve = cpv.frontier(least_risk(), points=[0.2, 0.4, 0.6])
    return curve.save(tmp_path_factory.mktemp("kept") / "curve.json")


def changed(path: Path, tmp_path: Path, change) -> Path:
    body = json.loads(path.read_text(encoding="utf-8"))
    change(body)
    target = tmp_path / "changed.json"
    target.write_text(json.dumps(body), encoding="utf-8")
    return target


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["points"][1]["claim"].update(
            upper=0.9 * body["points"][1]["claim"]["upper"]
        ),
        lambda body: body["points"][1].update(x=0.3),
        lambda body: body["points"][1].update(x="1/3"),
        lambda body: body["points"][1]["dual"]["multipliers"].update(budget=9.0),
        lambda body: body["points"][1].update(program=body["points"][2]["program"]),
        lambda body: body["points"][1]["program"].update(units={"=": "nats"}),
    ],
    ids=["claim", "number", "fraction", "multiplier", "program", "units"],
)
def test_a_changed_point_is_found_out(kept, tmp_path, change):
    path = changed(kept, tmp_path, change)
    Frontier.load(path)  # is believed
    for expected in (None, least_risk()):
        with pytest.raises(cpv.InputError, match="fails") as caught:
            Frontier.load(path, expected, verify=True)
        assert (caught.value.argument, caught.value.where) == ("path", 1)


def test_a_moved_exponential_is_found_out(tmp_path):
    def move(body):
        body["points"][1].update(x=0.4 + 1e-9)

    path = changed(DATA / "frontier-exponential.json", tmp_path, move)
    with pytest.raises(cpv.InputError, match="its program is another"):
        Frontier.load(path, verify=True)


def test_a_point_of_another_problem_is_found_out(kept, tmp_path):
    """Its proof holds: of other data."""
    other = cpv.PrivacyDistortion(counted(4), D5, budget=0.4).solve().certificate.document()

    def exchange(body):
        part = stored.difference(body["program"], other["program"])
        body["points"][1].update({k: v for k, v in other.items() if k != "table"}, program=part)

    path = changed(kept, tmp_path, exchange)
    for problem in (None, least_risk()):
        with pytest.raises(cpv.InputError, match="fails: its program is another"):
            Frontier.load(path, problem, verify=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("points"),
        lambda body: body.update(schema="other"),
        lambda body: body.update(facts=None),
        lambda body: body["points"][0].update(x="inf"),
        lambda body: body["points"][0].update(x="1/0"),
        lambda body: body["points"][0]["claim"].update(lower="low"),
    ],
)
def test_what_is_no_frontier_is_refused(kept, tmp_path, change):
    with pytest.raises(cpv.InputError, match="is no frontier") as caught:
        Frontier.load(changed(kept, tmp_path, change))
    assert caught.value.argument == "path"


def test_other_files_are_refused(kept, tmp_path):
    with pytest.raises(cpv.InputError, match="another problem") as caught:
        Frontier.load(kept, cpv.PrivacyDistortion(counted(4), D5, budget=0.3))
    assert caught.value.argument == "problem"
    with pytest.raises(cpv.InputError, match="cannot be read"):
        Frontier.load(tmp_path / "nothing.json")
    (tmp_path / "text.json").write_text("not JSON", encoding="utf-8")
    with pytest.raises(cpv.InputError, match="is no frontier"):
        Frontier.load(tmp_path / "text.json")
    assert math.isfinite(Frontier.load(kept, least_risk(), verify=True).band)
