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
    for problems in ([], {}):
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
