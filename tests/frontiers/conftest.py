"""What the tests of curves share."""

from __future__ import annotations

import pytest

from cvxprivacy.frontiers import sweep


@pytest.fixture
def tasks(monkeypatch) -> list:
    """What is worked on, as it comes."""
    done: list = []
    work = sweep.solve_task

    def spy(problem, task):
        done.append(task)
        return work(problem, task)

    monkeypatch.setattr(sweep, "solve_task", spy)
    return done
