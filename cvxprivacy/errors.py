"""What can go wrong, by name.

Each error says what was given, where, and what to do instead; none is raised for a
solver's failure alone, because the certificate decides what is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "BrokenTableError",
    "CertificationError",
    "InfeasibleError",
    "InputError",
    "UnknownValueError",
    "UnseenValueWarning",
]


class _Kept:
    """An error that comes back whole from a worker process."""

    def __reduce__(self) -> Any:
        return _again, (type(self), self.args, self.__dict__)  # type: ignore[attr-defined]


def _again(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(_Kept, ValueError):
    """An argument that no program can be made of.

    Parameters
    ----------
    argument : str
        Name of the argument as the caller knows it.
    problem : str
        What is wrong, with the value found.
    remedy : str
        What to pass instead.
    where : optional
        Index, label or row of the offending value.
    value : optional
        The offending value.
    """

    def __init__(
        self, argument: str, problem: str, remedy: str, *, where: Any = None, value: Any = None
    ) -> None:
        self.argument, self.problem, self.remedy = argument, problem, remedy
        self.where, self.value = _python(where), _python(value)
        place = "" if where is None else f"[{_place(where)}]"
        super().__init__(f"{argument}{place}: {problem}; {remedy}")


class UnknownValueError(InputError):
    """A value of a table that the channel has no row for."""


class UnseenValueWarning(UserWarning):
    """Records have values without mass in the source: no proof covers what is released of them.

    Attributes
    ----------
    counts : dict
        How many records have each of these values.
    """

    def __init__(self, counts: Mapping[Any, int]) -> None:
        super().__init__(counts)  # its only argument, so that it is made again elsewhere
        self.counts = dict(counts)

    def __str__(self) -> str:
        records, some = sum(self.counts.values()), next(iter(self.counts))
        said = f"{records:,} records have values" if records > 1 else "1 record has a value"
        said += f" without mass in the source, such as {some!r}: the proof does not cover what is "
        return said + "released of them; make a channel from a table that has them"


class BrokenTableError(_Kept, ValueError):
    """A drawn table breaks criteria, and no merging of its groups was found that mends that.

    Where all groups may be merged there is none; where moves are forbidden, another order of
    merging might mend it.

    Attributes
    ----------
    criteria : list of str
        Those that are still broken.
    """

    def __init__(self, groups: int, criteria: Sequence[str]) -> None:
        self.criteria = list(criteria)
        rest = "the only group that is left" if groups == 1 else f"none of {groups:,} groups left"
        super().__init__(
            f"the drawn table breaks {', '.join(criteria)}, and {rest} can be merged with another; "
            "relax the criterion, or allow suppression"
        )


class InfeasibleError(_Kept, ValueError):
    """No release satisfies the constraints, and ``certificate`` proves it.

    Attributes
    ----------
    certificate : Certificate
        Multipliers with which the violated constraints add up to a contradiction.
    conflict : list of str
        Names of the constraints that contradict each other.
    extremes : dict of str to float
        The tightest value that each of their numbers could take, given the rest.
    """

    def __init__(
        self,
        message: str,
        certificate: Any,
        *,
        conflict: Sequence[str] = (),
        extremes: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.conflict, self.extremes = list(conflict), dict(extremes or {})


class CertificationError(_Kept, RuntimeError):
    """Nothing finite could be proved; the best bounds found are attached.

    Attributes
    ----------
    lower, upper : float
        Proved ends, possibly infinite, in the problem's units.
    certificate : Certificate
        What was proved, for inspection.
    """

    def __init__(self, message: str, certificate: Any) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.lower, self.upper = certificate.lower, certificate.upper


def _python(value: Any) -> Any:
    """Return a NumPy scalar as the Python object that it is, and so in a tuple."""
    if type(value) is tuple:
        return tuple(map(_python, value))
    scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if scalar else value


def _place(where: Any) -> str:
    return ", ".join(str(w) for w in where) if isinstance(where, tuple) else str(where)
