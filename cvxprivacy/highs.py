"""HiGHS itself, for programs that go on from where they ended."""

from __future__ import annotations

from typing import Any

__all__ = ["quiet_highs"]


def quiet_highs(**options: Any) -> Any:
    """Return HiGHS, which prints nothing, with some options set.

    Parameters
    ----------
    **options
        By their names in HiGHS.
    """
    import highspy

    solver = highspy._Highs()  # type: ignore[attr-defined]  # Highs itself prints a banner
    for option, value in {"output_flag": False, **options}.items():
        solver.setOptionValue(option, value)
    return solver
