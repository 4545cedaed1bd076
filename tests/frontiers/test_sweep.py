"""Frontiers of many problems at once."""

from __future__ import annotations

import pytest

import cvxprivacy as cpv
from tests.frontiers.instances import counted, least_risk, records


def hospitals() -> dict[str, cpv.PrivacyDistortion]:
    return {
        name: cpv.PrivacyDistortion(counted(seed, (2, 4)), cpv.hamming(4), budget=0.1)
        for name, seed in (("north", 1), ("south", 2))
    }


def test_a_sweep_is_one_frontier_for_each(tmp_path, tasks):
    path = tmp_path / "sweep.jsonl"
    lines = []
    both = cpv.sweep(hospitals(), tol=0.02, checkpoint=path, progress=lines.append)
    assert list(both) == ["north", "south"]
    assert [line.split(",")[0] for line in lines][-1] == "2/2"
    assert {line.split(", ")[1] for line in lines} == {"north", "south"}
    assert any(line.endswith(" s left") for line in lines)
    count = len(tasks)
    for name, problem in hospitals().items():
        assert records(both[name]) == records(cpv.frontier(problem, tol=0.02))
    assert len(tasks) == 2 * count
    cpv.sweep(hospitals(), tol=0.02, checkpoint=path)
    assert len(tasks) == 2 * count
    assert both.complete
    assert both.band == max(both["north"].band, both["south"].band)
    frame = both.to_frame()
    assert frame["problem"].value_counts().to_dict() == {k: len(c.points) for k, c in both.items()}
    ax = both.plot()
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"north", "south"}
    head, north, south = str(both).splitlines()
    assert head.split() == ["problem", "budget", "optimum", "band", "solves", "points"]
    for name, line in (("north", north), ("south", south)):
        first, *_, last = both[name].points
        assert line.split()[0] == name
        assert f"{both[name].band:.1e}" in line
        assert f"{first.upper:.4g} to {last.upper:.4g}" in line
        assert line.endswith(f"{len(both[name].points)} certified")
    assert repr(both) == f"Sweep(2 frontiers, band {both.band:.2e})"
    with pytest.raises(cpv.InputError, match="belongs to another problem"):
        cpv.sweep(dict(reversed(hospitals().items())), tol=0.02, checkpoint=path)


def test_a_sweep_says_which_problem_is_short_of_its_tolerance():
    with pytest.warns(UserWarning, match="the band of '(north|south)' is"):
        both = cpv.sweep(hospitals(), tol=1e-3, max_solves=5)
    assert not both.complete


def test_a_sweep_says_which_problem_is_infeasible():
    strict = least_risk(cpv.KeepProbability(0.9), cpv.LeakageCap(0.01), budget=0.6)
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.sweep({"free": least_risk(budget=0.6), "strict": strict}, points=[0.6])
    assert any("strict" in note for note in caught.value.__notes__)
    for problems in ([], {}, ["north"], "north"):
        with pytest.raises(cpv.InputError) as refused:
            cpv.sweep(problems)
        assert refused.value.argument == "problems"


@pytest.mark.parametrize("points", [3, 0.1, "0.1", [[0.1]]])
def test_points_are_a_list_of_numbers(points):
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]), cpv.hamming(2), budget=0.1
    )
    with pytest.raises(cpv.InputError, match=r"points: .* is no list of numbers; pass a list"):
        cpv.frontier(problem, points=points)


@pytest.mark.parametrize("name", ["price", "lower", "status", "problem", "risk", "distortion"])
def test_no_column_of_a_frame_overwrites_another(name):
    """The number that moves stands in the first, whatever it is called."""
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    if name == "price":
        problem = cpv.PrivacyDistortion(source, cpv.hamming(2), price=0.5)
    else:
        problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.4)
        problem = problem.with_constraint(name, problem.rate <= 0.9)
    curve = cpv.frontier(problem, name, points=[0.25, 0.75])
    frame, point = curve.to_frame(), curve.points[0]
    assert frame.columns[0] == name
    assert frame[name].tolist() == [0.25, 0.75]
    assert len(set(frame.columns)) == len(frame.columns) == 5 + len(point.terms)
    results = {"lower": point.lower, "upper": point.upper, "price": point.price}
    for result, value in {**results, **{n: float(t) for n, t in point.terms.items()}}.items():
        column = f"{result}_of_optimum" if result == name else result
        assert frame[column][0] == pytest.approx(value, nan_ok=True)
    both = cpv.sweep({"a": problem, "b": problem}, name, points=[0.25, 0.75]).to_frame()
    assert both[name].tolist() == [0.25, 0.75] * 2
    assert both.iloc[:, 0].tolist() == ["a", "a", "b", "b"]


def test_what_can_move_is_named():
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(2), price=0.5)
    with pytest.raises(cpv.InputError, match="'budget' cannot move; use one of price"):
        cpv.frontier(problem)


def test_problems_are_solved_as_they_are_into_one_frame(tmp_path, monkeypatch):
    source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    fair = cpv.QuadraticGaussian(cpv.GaussianSource.scalar(rho=0.8), budget=0.5)
    problems = {
        "useful": cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1.0)]),
        "private": cpv.MinimumDistortion(source, cpv.hamming(2), [cpv.PerfectPrivacy()]),
        "none": cpv.PrivacyDistortion(
            source, cpv.hamming(2), 0.01, criteria=[cpv.LeakageCap(0.01)]
        ),
        "fair": fair,
    }
    path, lines = tmp_path / "c.jsonl", []
    frame = cpv.solve_all(problems, checkpoint=path, progress=lines.append, n_jobs=2)
    assert frame.index.tolist() == list(problems)
    assert frame["status"].tolist() == ["certified", "certified", "infeasible", "certified"]
    assert lines[-1].startswith("4/4, ")
    for label, problem in problems.items():
        if label != "none":
            solution = problem.solve()
            assert frame.loc[label, "value"] == solution.value
            assert frame.loc[label, "lower"] == solution.lower
    assert frame.loc["fair", "price of budget"] == pytest.approx(
        float(fair.solve().prices["budget"])
    )
    monkeypatch.setattr(type(fair), "solve", None)  # nothing is solved again
    again = cpv.solve_all(problems, checkpoint=path)
    assert again.equals(frame)
    with pytest.raises(cpv.InputError, match="belongs to another problem"):
        cpv.solve_all([fair], checkpoint=path)


def test_a_list_of_problems_is_swept_by_places():
    curves = cpv.sweep(list(hospitals().values()), points=[4.0, 6.0])
    assert list(curves) == [0, 1]
