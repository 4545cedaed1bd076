"""What every solve is made of: its options, the settings to try, and the stages of the loop."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.solvers.watch import Watch
from cvxprivacy.validation import one_of

__all__ = [
    "UNUSABLE",
    "Minimise",
    "Outcome",
    "Task",
    "attempts",
    "checked",
    "refuse_choice",
    "reported",
]

UNUSABLE = (np.linalg.LinAlgError, ValueError, OverflowError, ZeroDivisionError)  # no numbers
_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}  # what solvers call a time limit
# Clarabel's own tolerances are 1e-8, and so is its regularisation, which keeps residuals from less
_TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
_FREE = {**_TIGHT, "static_regularization_enable": False}
_RIGID = {"static_regularization_constant": 1e-12, "static_regularization_proportional": 0.0}
Settings = list[dict[str, Any]]
# every proposal is proved, so that trying more settings can only narrow the enclosure
_SETTINGS: dict[str, tuple[Settings, Settings]] = {  # plain ones, and patient ones
    "CLARABEL": (
        [{}],
        [  # less regularisation, smaller residuals: none is best on every program
            {**_FREE, "dynamic_regularization_eps": 1e-16, "dynamic_regularization_delta": 1e-10},
            {**_TIGHT, **_RIGID},
            {**_FREE, "max_step_fraction": 0.9},
            {**_TIGHT, "max_iter": 300},
        ],
    ),
    "SCS": (
        [{"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 20_000}],
        [{"eps_abs": 1e-11, "eps_rel": 1e-11, "max_iters": 200_000}],
    ),
}

_logger = logging.getLogger("cvxprivacy")


def attempts(solver: str, accuracy: str = "default") -> Settings:
    """Return the settings to try, plain ones first unless high accuracy is asked for."""
    plain, patient = _SETTINGS.get(solver, ([{}], []))
    return plain + patient if accuracy == "default" else patient + plain


def checked(
    method: str = "auto",
    solver: str = "CLARABEL",
    accuracy: str = "default",
    solver_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the options of a solve, or say what is wrong with them."""
    one_of(method, "method", "auto", "conic", "structured")
    one_of(accuracy, "accuracy", "default", "high")
    solver = solver.upper() if isinstance(solver, str) else solver
    if solver != "CLARABEL":  # which is always there, and CVXPY takes a second to import
        from cvxprivacy.solvers.conic.run import installed_solvers

        one_of(solver, "solver", *installed_solvers(), problem="is not installed")
    if not isinstance(solver_options or {}, Mapping):
        remedy = "pass a mapping such as {'max_iter': 100}"
        raise InputError("solver_options", f"{solver_options!r}", remedy)
    names = ("method", "solver", "accuracy", "solver_options")
    return dict(zip(names, (method, solver, accuracy, solver_options), strict=True))


def refuse_choice(options: Mapping[str, Any], problem: str, remedy: str) -> None:
    """Refuse the choice of a solver where none is asked."""
    for name, usual in (("method", "auto"), ("solver", "CLARABEL"), ("solver_options", None)):
        value = options.get(name) or usual
        if value != usual:
            raise InputError(name, problem, remedy, value=value)


def reported(line: str) -> str:
    """Return a line of ``Outcome.log``, after sending it to the logger ``cvxprivacy``."""
    _logger.debug("%s", line)
    return line


@dataclass
class Outcome:
    """A certificate and what each attempt reported; the reports decide nothing.

    ``edges`` names the rows whose bounds are the least that is feasible; ``channels`` are the
    solver's own, before any repair; ``strategies`` are the outputs of the release, where they were
    generated while the program was solved.
    """

    certificate: Certificate
    log: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    channels: list[FloatArray] = field(default_factory=list)
    strategies: np.ndarray | None = None


class Task(ABC):
    """One solve: its options, a prover, what was reported, and the stages that the loop calls.

    ``has_interior`` tells that a strictly feasible point is at hand, or none is needed, to repair
    what a solver proposes.
    """

    prover: Any
    has_interior: bool

    def __init__(self, options: Mapping[str, Any]) -> None:
        names = checked(**{name: value for name, value in options.items() if name != "watch"})
        self.method, self.solver = names["method"], names["solver"]
        self.accuracy = names["accuracy"]
        self.solver_options = dict(names["solver_options"] or {})
        self.watched = options.get("watch") is not None  # else an interrupt is the caller's
        self.watch: Watch = options.get("watch") or Watch()
        self.options = {**names, "watch": self.watch} if self.watched else names
        self.log: list[str] = []
        self.edges: list[str] = []
        self.channels: list[FloatArray] = []

    # ---- the stages ----------------------------------------------------------------------

    @abstractmethod
    def presolve(self, minimise: Minimise) -> bool:
        """Try what needs no iterations; True if there is nothing left to try."""

    def structured(self) -> bool:
        """Follow the central path where no solver's point is needed; True if that is all."""
        return False

    @abstractmethod
    def propose(self, settings: Mapping[str, Any]) -> None:
        """Ask the conic solver."""

    @abstractmethod
    def prove(self) -> None:
        """Offer to the prover what the conic solver proposed."""

    def salvage(self) -> None:
        """Offer what the stage that was interrupted had come to."""
        return

    @abstractmethod
    def phase_one(self, minimise: Minimise) -> None:
        """Find a strictly feasible point, or prove that nothing is feasible."""

    def outcome(self) -> Outcome:
        return Outcome(self.prover.certificate(), self.log, self.edges, self.channels)

    # ---- what stages share ---------------------------------------------------------------

    @property
    def named(self) -> bool:
        """Whether the options name the conic solver, or something that only it knows."""
        chosen = self.solver != "CLARABEL" or bool(self.solver_options)
        return self.method == "conic" or (self.method == "auto" and chosen)

    @property
    def certified(self) -> bool:
        return self.prover.status == "certified"

    @property
    def settled(self) -> bool:
        """Whether an optimum is certified, or nothing is proved to be feasible."""
        return self.prover.status in ("certified", "infeasible")

    def report(self, line: str) -> None:
        self.log.append(reported(line))

    def run(self, model: Any, settings: Mapping[str, Any], label: str = "") -> None:
        """Run the conic solver once on a model, and report what it said."""
        user = bool(self.solver_options) and not label  # who should hear of a misspelled option
        both = {**settings, **self.solver_options}
        limit = _LIMITS.get(self.solver)
        if limit is not None and self.watch.limit is not None:
            both.setdefault(limit, max(self.watch.left, 1e-3))
        status = model.solve(self.solver, both, verbose=self.watch.verbose, user=user)
        self.report(f"{self.solver} {label or settings or 'defaults'}: {status}")


Minimise = Callable[[Task], Outcome]
