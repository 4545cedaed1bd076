"""What can go wrong, by name.

Each error says what was given, where, and what to do instead; none is raised for a
solver's failure alone, because the certificate decides what is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "CertificationError",
    "InfeasibleError",
    "InputError",
    "MissingPackageError",
    "UnknownValueError",
    "UnseenValueWarning",
]


class Pickled:
    """An error that comes back whole from a worker process."""

    def __reduce__(self) -> Any:
        return _again, (type(self), self.args, self.__dict__)  # type: ignore[attr-defined]


def _again(kind: type[Exception], args: tuple[Any, ...], state: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(Pickled, ValueError):
    """An argument that no program can be made of; a ``ValueError``.

    Attributes
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

    Examples
    --------
    A probability is negative: the error says where, and which one.

    >>> import cvxprivacy as cpv
    >>> try:
    ...     cpv.DiscreteSource([[0.5, -0.1], [0.2, 0.4]])
    ... except cpv.InputError as error:
    ...     print(error.argument, error.where, error.value)
    pmf (0, 1) -0.1

    Others say what to do instead:

    >>> try:
    ...     cpv.DiscreteSource([[0.5, 0.1], [0.2, 0.4]])
    ... except cpv.InputError as error:
    ...     print(error)
    pmf: the entries sum to 1.2, off 1 by more than 1e-09; normalise it yourself, or use ...
    """

    def __init__(
        self, argument: str, problem: str, remedy: str, *, where: Any = None, value: Any = None
    ) -> None:
        self.argument, self.problem, self.remedy = argument, problem, remedy
        self.where, self.value = _python(where), _python(value)
        place = "" if where is None else f"[{_place(where)}]"
        super().__init__(f"{argument}{place}: {problem}; {remedy}")


class UnknownValueError(InputError):
    """A value of a table that the channel has no row for.

    Its attributes are those of :class:`InputError`.

    Examples
    --------
    A channel was made for two letters, and a record has a third:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.errors import UnknownValueError
    >>> channel = cpv.Channel([[0.9, 0.1], [0.2, 0.8]], inputs="ab", outputs="ab")
    >>> try:
    ...     channel.apply(["a", "c"], seed=1)
    ... except UnknownValueError as error:
    ...     print(error.problem, error.where, error.value)
    'c' is no input of the channel 1 c
    """


class UnseenValueWarning(UserWarning):
    """Records have values without mass in the source: no proof covers what is released of them.

    Attributes
    ----------
    counts : dict
        How many records have each of these values.

    Examples
    --------
    The source lists the letter c, which has no mass; two records have it:

    >>> import warnings
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1, 0.0], [0.1, 0.4, 0.0]], x=["a", "b", "c"])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.2).solve()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     released = solution.channel.apply(["a", "c", "c"], seed=1)
    >>> caught[0].message.counts
    {'c': 2}
    """

    def __init__(self, counts: Mapping[Any, int]) -> None:
        super().__init__(counts)  # its only argument, so that it is made again elsewhere
        self.counts = dict(counts)

    def __str__(self) -> str:
        records = sum(self.counts.values())
        text = f"{records:,} records have values" if records > 1 else "1 record has a value"
        text += " without mass in the source: the proof does not cover what is released of them; "
        return text + "make a channel from records that have them"


class MissingPackageError(Pickled, ImportError):
    """A package that an extra brings is not installed; an ``ImportError``.

    Attributes
    ----------
    package : str
        What is missing, as its index calls it.
    requirement : str
        What to install, such as ``cvxprivacy[tables]``.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.errors import MissingPackageError
    >>> print(MissingPackageError("pandas", "cvxprivacy[tables]", "a table"))
    a table needs pandas, which is not installed; install it with: pip install 'cvxprivacy[tables]'
    """

    def __init__(self, package: str, requirement: str, need: str) -> None:
        package = {"sklearn": "scikit-learn"}.get(package, package.replace("_", "-"))
        self.package, self.requirement = package, requirement
        line = f"pip install '{requirement}'"
        super().__init__(f"{need} needs {package}, which is not installed; install it with: {line}")


class InfeasibleError(Pickled, ValueError):
    """No release satisfies the constraints, and ``certificate`` proves it.

    Attributes
    ----------
    certificate : Certificate
        Multipliers with which the violated constraints add up to a contradiction.
    conflict : list of str
        Names of the constraints that contradict each other.
    extremes : dict of str to float
        The tightest value that each of their numbers could take, given the rest: to three digits,
        on the side that can hold, where the message says "about".  Where strategies are generated,
        what it would be if the encoder knew Z too, as the message says: a bound of it.

    Examples
    --------
    A bit that is kept with probability 0.9, where W differs from X with probability 0.2, tells
    1 − h(0.8 · 0.1 + 0.2 · 0.9) = 0.1733 bits about W, so that a cap of 0.05 cannot hold:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> rules = [cpv.LeakageCap(0.05), cpv.KeepProbability(0.9)]
    >>> try:
    ...     cpv.MinimumDistortion(source, cpv.hamming(2), rules).solve()
    ... except cpv.InfeasibleError as error:
    ...     print(error.conflict, round(error.extremes["leakage_cap"], 4))
    ...     print(error.certificate.verify())
    ['leakage_cap', 'keep_probability'] 0.1733
    True
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


class CertificationError(Pickled, RuntimeError):
    """Nothing finite could be proved; the best bounds found are attached.

    Attributes
    ----------
    lower, upper : float
        Proved ends, possibly infinite, in the problem's units.
    certificate : Certificate
        What was proved, for inspection.

    Examples
    --------
    A solver that is stopped after one step finds no release; what its multipliers prove is kept:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.PrivacyDistortion(
    ...     source, cpv.hamming(2), budget=0.2, criteria=[cpv.TCloseness(0.0957)]
    ... )
    >>> try:
    ...     problem.solve(method="conic", solver_options={"max_iter": 1})
    ... except cpv.CertificationError as error:
    ...     print(error.lower <= 0.0957, error.upper)
    True inf
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
