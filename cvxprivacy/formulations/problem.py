"""What every formulation does: solve, prove, and say what happened."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.exact import Real
from cvxprivacy.frozen import Frozen, FrozenDict, frozen
from cvxprivacy.proving.certificate import Certificate
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome, checked

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["Problem"]


Answer = TypeVar("Answer", bound=Solution)


class Problem(Frozen, Generic[Answer]):
    """A formulation; subclasses say which program it is, and what a proof of it means.

    A problem is a value: what it was made of is copied and cannot change, ``at`` returns another
    one, and solving reads nothing that could have been moved.
    """

    units: str
    model: Any  # what ``problem`` shows; solving makes its own
    _given: tuple[tuple[Any, ...], dict[str, Any]]  # a problem is what it was made of

    def __new__(cls, *given: Any, **named: Any) -> Self:
        self = super().__new__(cls)
        self._given = tuple(map(frozen, given)), frozen(named)
        return self

    def __reduce__(self) -> Any:  # a problem is what it was made of
        given, named = self._given
        return _made, (self._maker, given, dict(named))

    @property
    def _maker(self) -> Callable[..., Self]:
        """What made the problem of its arguments: its class, or another way into it."""
        return type(self)

    def _remedy(self, name: str) -> str:
        return f"a problem is a value; problem.at({name}=…) returns another one"

    def at(self, **numbers: Real) -> Self:
        """Return the same problem with other numbers typed.

        Parameters
        ----------
        **numbers : float
            By the names of their constraints: ``problem.at(budget=0.2, leakage_cap=0.1)``.

        Raises
        ------
        InputError
            If the problem has no such number, or refuses the value.
        """
        typed = self._typed()
        for name, value in numbers.items():
            typed = {**typed, **self._retyped(typed, name, value)}
        return self._remade(typed)

    def _typed(self) -> dict[str, Any]:
        """Return the arguments that the problem was made of, by name."""
        given, named = self._given
        return inspect.signature(self._maker).bind(*given, **named).arguments

    def _remade(self, typed: Mapping[str, Any]) -> Self:
        bound = inspect.BoundArguments(inspect.signature(self._maker), dict(typed))  # type: ignore[arg-type]
        return self._maker(*bound.args, **bound.kwargs)

    def _retyped(self, typed: Mapping[str, Any], name: str, value: Real) -> dict[str, Any]:
        """Return the argument in which a number stands, with another number."""
        if name in inspect.signature(self._maker).parameters:
            return {name: value}
        part = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if part and isinstance(typed.get(part[1]), Mapping) and part[2] in typed[part[1]]:
            return {part[1]: {**typed[part[1]], part[2]: value}}
        problem = f"a {type(self).__name__} has no number of this name"
        raise InputError(name, problem, "use the name of one of its constraints")

    @property
    def problem(self) -> cp.Problem:
        return self.model.problem

    @property
    def constraints(self) -> Mapping[str, cp.Constraint]:
        remedy = "state a rule with criteria=Linear.from_cvxpy(constraint, problem)"
        return FrozenDict(self.model.constraints, remedy)

    @property
    def variables(self) -> Mapping[str, cp.Variable]:
        return FrozenDict(self.model.variables)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._statement()}; {self._sizes()})"

    def _statement(self) -> str:
        """Return the program in one line."""
        raise NotImplementedError

    def _sizes(self) -> str:
        raise NotImplementedError

    def solve(
        self,
        *,
        method: str = "auto",
        solver: str = "CLARABEL",
        accuracy: str = "default",
        solver_options: Mapping[str, Any] | None = None,
        verbose: bool = False,
        certify: bool | str = True,
    ) -> Answer:
        """Solve the program and prove the optimum.

        Parameters
        ----------
        method : {"auto", "conic", "structured"}
            ``"conic"`` asks the CVXPY solver alone; ``"auto"`` also the package's own
            interior-point methods.  ``"structured"``, one of these alone, is for covariance
            programs.
        solver : str
            Any installed CVXPY solver with the cones that the program needs.
        accuracy : {"default", "high"}
            ``certified`` means a gap of at most 1e-6, or 1e-9, in the unit of the objective: one
            nat of information; of distortion what the enclosure allows beyond the least cost, and
            at least the smallest step of d, so that a forbidding cost widens no tolerance.
        solver_options : mapping, optional
            Passed to the solver.
        verbose : bool
        certify : {True, "warn", False}
            What to do without a finite enclosure, or without any feasible release: raise,
            warn, or return silently.

        Returns
        -------
        Solution

        Raises
        ------
        InfeasibleError
            If no release is feasible; it carries the proof.
        CertificationError
            If no finite enclosure was proved; it carries the best bounds.
        """
        if not isinstance(certify, bool) and certify != "warn":
            raise InputError("certify", f"{certify!r}", 'use True, "warn" or False')
        options = checked(method, solver, accuracy, solver_options)
        outcome = self._outcome({**options, "verbose": verbose})
        certificate = outcome.certificate
        message = ""
        if certificate.status == "infeasible" and certify is not False:
            error = self._explained(certificate)
            message = str(error)
            if certify is True:
                raise error
        elif certificate.status == "uncertified":
            message = (
                f"nothing finite is proved: the value is in [{certificate.lower!r}, "
                f"{certificate.upper!r}] {certificate.value_units or 'units of distortion'}; "
                f"the solver said: {'; '.join(outcome.log)}"
            )
            if certify is True:
                raise CertificationError(message, certificate)
        if message and certify == "warn":
            warnings.warn(message, stacklevel=2)
        return (outcome.stated or self)._solution(outcome)

    def _outcome(self, options: Mapping[str, Any], model: Any = None) -> Outcome:
        """Run the solvers and the prover, with the solver's own model if one is at hand."""
        raise NotImplementedError

    def _explained(self, certificate: Certificate) -> InfeasibleError:
        """Say in the user's words why nothing is feasible."""
        raise NotImplementedError

    def _solution(self, outcome: Outcome) -> Answer:
        raise NotImplementedError


def _made(maker: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return maker(*given, **named)
