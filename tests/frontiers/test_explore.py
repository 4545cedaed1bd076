"""Long work: workers, interrupts, limits and checkpoints change no point of a curve."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys

import joblib
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.frontiers import parametric, sweep
from cvxprivacy.settings import InteriorPoint, using
from cvxprivacy.solvers.conic import channel as cvxpy_channel
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy_verifier import verify
from tests.frontiers.instances import check_exactly, grid, records
from tests.repository import ROOT, loaded_after


@pytest.mark.long
def test_the_number_of_workers_changes_nothing():
    one, two = (cpv.frontier(grid(5), tol=2e-2, n_jobs=jobs) for jobs in (1, 2))
    assert records(one) == records(two)
    assert one.band == two.band
    with joblib.parallel_config(backend="threading", n_jobs=3):
        threads = cpv.frontier(grid(5), tol=2e-2)
    assert records(one) == records(threads)


@pytest.mark.long
def test_a_dask_cluster_gives_the_same_points():
    distributed = pytest.importorskip("distributed")
    one = cpv.frontier(grid(7), tol=5e-3)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        many = cpv.frontier(grid(7), tol=5e-3, n_jobs=-1)
    assert records(one) == records(many)


def test_workers_keep_to_one_blas_thread(monkeypatch):
    from threadpoolctl import threadpool_info

    threads = []
    work = sweep.solve_task

    def spy(problem, task):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return work(problem, task)

    monkeypatch.setattr(sweep, "solve_task", spy)
    cpv.frontier(grid(5), points=[0.3])
    assert set(threads) == {1}


def test_workers_keep_few_models(monkeypatch):
    made = []

    class Counted(cvxpy_channel.ConicModel):
        def __init__(self, *value, **options):
            made.append(value)
            super().__init__(*value, **options)

    monkeypatch.setattr(cvxpy_channel, "ConicModel", Counted)
    for budget in range(6):  # of other laws: each has a model of its own
        with using(InteriorPoint(most_numbers=10)):  # no central path fits
            curve = cpv.frontier(grid(4, rho=0.5 + budget / 20), points=[0.3, 0.5])
        assert [point.status for point in curve.points] == ["certified"] * 2
        assert len(made) == budget + 1  # which both points share
        assert len(parametric._families.__dict__) <= parametric._MOST_FAMILIES


@pytest.mark.long
def test_a_curve_by_the_central_path_makes_no_conic_model():
    code = (
        "import cvxprivacy as c; s = c.DiscreteSource([[0.4, 0.1], [0.1, 0.4]]);"
        "p = c.PrivacyDistortion(s, c.hamming(2), budget=0.2); f = c.frontier(p, tol=1e-2);"
        "assert f.complete and f.solution_at(0.21).status == 'loose' and f.solves > 5"
    )
    assert "cvxpy" not in loaded_after(code)


@pytest.mark.parametrize("after", [1, 9])
def test_an_interrupt_returns_what_is_proved(tasks, after):
    def stop(_):
        if len(tasks) == after:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted: the band is .*, asked was 0.001"):
        curve = cpv.frontier(grid(7), tol=1e-3, progress=stop)
    assert not curve.complete  # one end alone has no band, and is not complete either
    assert len(curve.points) == after
    assert "(asked: 0.001)" in str(curve)
    if after > 1:
        assert 1e-3 < curve.band < 0.1
        check_exactly(curve, 30)


def test_a_limit_of_solves_is_said():
    with pytest.warns(UserWarning, match="stopped after 12 solves: the band is"):
        curve = cpv.frontier(grid(7), tol=1e-4, max_solves=12)
    assert curve.solves == 12
    assert not curve.complete
    assert curve.band < 0.012  # the widest gaps came first


def test_progress_names_solves_and_band(capsys):
    lines = []
    curve = cpv.frontier(grid(5), tol=2e-2, progress=lines.append)
    assert len(lines) == len(curve.points)
    assert lines[-1] == f"budget: {curve.solves} solves, band {curve.band:.2e} of 0.02"
    assert any(line.endswith(" s left") for line in lines[:-1])
    cpv.frontier(grid(5), tol=2e-2, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert lines[-1] in printed.err
    assert printed.err.endswith("\n")


# ---- checkpoints -----------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import cvxprivacy as cpv
from tests.frontiers.instances import grid
lines = []
def stop(line):
    lines.append(line)
    if len(lines) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
cpv.frontier(grid(7), tol=1e-2, checkpoint=sys.argv[1], progress=stop)
"""


@pytest.mark.long
def test_a_killed_run_resumes_without_solving_again(tmp_path, tasks):
    path = tmp_path / "points.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, env=environment, check=False
    )
    assert process.returncode == -signal.SIGKILL
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + 5
    with path.open("a", encoding="utf-8") as file:
        file.write('{"task": [0, 0.4')  # what a crash may leave of a line
    resumed = cpv.frontier(grid(7), tol=1e-2, checkpoint=path)
    again = len(tasks)
    tasks.clear()
    fresh = cpv.frontier(grid(7), tol=1e-2)
    assert again == len(tasks) - 5 > 0
    assert records(resumed) == records(fresh)
    assert resumed.solves == fresh.solves
    tasks.clear()
    finer = cpv.frontier(grid(7), tol=5e-3, checkpoint=path)  # goes on from there
    assert len(tasks) == len(finer.points) - len(fresh.points)
    # the problem's own value of the budget does not matter, anything else does
    tasks.clear()
    cpv.frontier(grid(7).at(budget=0.7), tol=1e-2, checkpoint=path)
    assert tasks == []
    for other, options in (
        (grid(7, rho=0.8), {}),
        (grid(5), {}),
        (grid(7), {"accuracy": "high"}),
        (grid(7, units="bits"), {}),
    ):
        with pytest.raises(cpv.InputError, match="belongs to another problem") as caught:
            cpv.frontier(other, tol=1e-2, checkpoint=path, **options)
        assert caught.value.argument == "checkpoint"


def test_a_checkpoint_is_private_and_cannot_be_changed(tmp_path):
    path = tmp_path / "points.jsonl"
    path.touch(mode=0o644)
    cpv.frontier(grid(5), points=[0.3, 0.4], checkpoint=path)
    assert path.stat().st_mode & 0o077 == 0
    lines = path.read_text().split("\n")
    lines[2] = lines[2].replace('"lower": ', '"lower": 9', 1)
    path.write_text("\n".join(lines))
    with pytest.raises(cpv.InputError, match=r"line 3 .*changed"):
        cpv.frontier(grid(5), points=[0.3, 0.4], checkpoint=path)


def test_a_checkpoint_of_other_certificates_is_refused(tmp_path):
    path = tmp_path / "points.jsonl"
    cpv.frontier(grid(5), points=[0.3], checkpoint=path)
    text = path.read_text()
    assert verify.SCHEMA in text.split("\n")[0]
    path.write_text(text.replace(verify.SCHEMA, "cvxprivacy/certificate/2", 1))
    with pytest.raises(cpv.InputError, match="certificate/2"):
        cpv.frontier(grid(5), points=[0.3], checkpoint=path)


@pytest.mark.parametrize(
    "text", ["my notes", "my notes\nmore\n", '{"schema": "x"}\n', "[]\n", json.dumps({}) + "\n"]
)
def test_what_is_no_checkpoint_is_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(cpv.InputError) as caught:
        cpv.frontier(grid(5), points=[0.3], checkpoint=path)
    assert caught.value.argument == "checkpoint"
    assert path.read_text(encoding="utf-8") == text


def test_a_checkpoint_in_no_folder_is_refused(tmp_path):
    for path in (tmp_path / "no" / "folder", tmp_path):
        with pytest.raises(cpv.InputError, match="cannot be opened"):
            cpv.frontier(grid(5), points=[0.3], checkpoint=path)


def test_an_interrupted_solve_is_no_point(monkeypatch, tmp_path):
    """It ends the search; what was proved before is kept, and what was cut off solved again."""
    law = np.random.default_rng(2).dirichlet(np.ones(12)).reshape(3, 4)
    d = np.abs(np.subtract.outer(range(4), range(4))) / 3
    problem = cpv.PrivacyDistortion(cpv.DiscreteSource(law), d, budget=0.1)
    honest, paths = interior.central_path, []

    def interrupted(program):
        paths.append(program)
        for iterate in honest(program):
            if len(paths) == 2 and iterate.number == 4:
                raise KeyboardInterrupt
            yield iterate

    options = {"points": [0.05, 0.1, 0.15], "checkpoint": tmp_path / "points.jsonl"}
    with monkeypatch.context() as patch:
        patch.setattr(interior, "central_path", interrupted)
        curve = cpv.frontier(problem, **options)
    assert len(paths) == 2
    assert "loose" not in {point.status for point in curve.points}
    full = cpv.frontier(problem, **options)
    assert {point.status for point in full.points} == {"certified"}
    assert len(full.points) > len(curve.points)
