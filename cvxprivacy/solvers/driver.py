"""Solving a channel program: candidates from closed forms and solvers, judged by the prover.

A solver only proposes.  Every proposal goes to the ``Prover``; attempts go on, from the
plainest settings to the most patient ones, until the proved gap is small enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.covariance import CovarianceProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Expression
from cvxprivacy.proving.certificate import Certificate, Prover
from cvxprivacy.proving.repair import repair
from cvxprivacy.solvers import interior, presolve
from cvxprivacy.solvers.threads import one_thread

if TYPE_CHECKING:
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

__all__ = ["METHODS", "Outcome", "attempts", "checked", "solve", "solve_gaussian"]

_CHEAP = 5e5  # size of a program whose central path is followed for a better gap than was asked
METHODS = ("auto", "conic", "structured")

_TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
_PLAIN: dict[str, list[dict[str, Any]]] = {
    "CLARABEL": [{}],
    "SCS": [{"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 20_000}],
}
_FREE = {**_TIGHT, "static_regularization_enable": False}
_PATIENT: dict[str, list[dict[str, Any]]] = {
    "CLARABEL": [  # less regularisation, smaller residuals: none is best on every program
        {**_FREE, "dynamic_regularization_eps": 1e-16, "dynamic_regularization_delta": 1e-10},
        {
            **_TIGHT,
            "static_regularization_constant": 1e-12,
            "static_regularization_proportional": 0.0,
        },
        {**_FREE, "max_step_fraction": 0.9},
        {**_TIGHT, "max_iter": 300},
    ],
    "SCS": [{"eps_abs": 1e-11, "eps_rel": 1e-11, "max_iters": 200_000}],
}


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


def attempts(solver: str, accuracy: str) -> Iterator[dict[str, Any]]:
    """Yield the settings to try, plain ones first unless high accuracy is asked for."""
    if accuracy == "default":
        yield from _PLAIN.get(solver, [{}])
        yield from _PATIENT.get(solver, [])
    else:
        yield from _PATIENT.get(solver, [])
        yield from _PLAIN.get(solver, [{}])


def checked(
    method: str, solver: str, accuracy: str, solver_options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the options of a solve, or say what is wrong with them."""
    if method not in METHODS:
        raise InputError("method", f"{method!r} is unknown", f"use one of {METHODS}")
    if accuracy not in ("default", "high"):
        raise InputError("accuracy", f"{accuracy!r} is unknown", 'use "default" or "high"')
    solver = solver.upper() if isinstance(solver, str) else solver
    if solver != "CLARABEL":  # which is always there, and CVXPY takes a second to import
        from cvxprivacy.solvers.cvxpy_run import installed_solvers

        if solver not in installed_solvers():
            known = ", ".join(installed_solvers())
            raise InputError("solver", f"{solver!r} is not installed", f"use one of {known}")
    if not isinstance(solver_options or {}, Mapping):
        remedy = "pass a mapping such as {'max_iter': 100}"
        raise InputError("solver_options", f"{solver_options!r}", remedy)
    return {
        "method": method,
        "solver": solver,
        "accuracy": accuracy,
        "solver_options": solver_options,
    }


@one_thread()
def solve(
    program: ChannelProgram,
    *,
    method: str = "auto",
    solver: str = "CLARABEL",
    accuracy: str = "default",
    solver_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
    model: Callable[[], ConicModel] | None = None,
) -> Outcome:
    """Minimise a channel program and prove what was found.

    Parameters
    ----------
    program : ChannelProgram
    method : {"auto", "conic"}
        ``"conic"`` asks the CVXPY solver alone; ``"auto"`` also follows the central path from
        what it found, where that is not good enough.
    solver : str
        A CVXPY solver with exponential cones.
    accuracy : {"default", "high"}
        Aim for a gap of 1e-6 or 1e-9 in the unit of the objective.
    solver_options : mapping, optional
        Passed to the solver on top of each attempt's own settings.
    model : callable, optional
        Returns the conic model of this program, if one is kept; called only when needed.
    """
    given = checked(method, solver, accuracy, solver_options)
    solver = given["solver"]
    if method == "structured":
        remedy = 'use "auto" or "conic"'
        raise InputError("method", "structured solves covariance programs only", remedy)
    prover = Prover(program, accuracy)
    log: list[str] = []
    for dual in presolve.contradictions(program):
        if prover.offer_dual(dual):
            return Outcome(prover.certificate(), ["closed form: infeasible"])
    if (pair := presolve.constant(program)) is not None:
        prover.offer_channel(pair[0])
        prover.offer_dual(pair[1])
        if prover.status == "certified":
            return Outcome(prover.certificate(), ["closed form: no constraint binds"])
    options, edges = dict(solver_options or {}), []
    if (edge := presolve.face(program)) is not None:
        log.append(f"closed form: {edge.name} leaves a face")
        edges += [edge.name] if edge.edge else []
        inner = solve(
            edge.program, method=method, solver=solver, accuracy=accuracy,
            solver_options=options, verbose=verbose,
        )  # fmt: skip
        log += inner.log
        edges += inner.edges
        if inner.certificate.primal is not None:
            prover.offer_channel(inner.certificate.primal)
        for channel in inner.channels:  # exact here, where the face had its rows in floats
            if prover.status != "certified":
                prover.offer_channel(channel)
        if inner.certificate.dual is not None and inner.certificate.dual.objective:
            prover.offer_dual(edge.dual(inner.certificate.dual))
        if prover.status == "certified":
            return Outcome(prover.certificate(), log, edges)
    prover.offer_dual(presolve.idle(program))
    polish = method == "auto"
    channels = _conic(prover, model, solver, accuracy, options, verbose, log, polish=polish)
    if prover.primal is None and prover.status != "infeasible":
        prover.offer_channel(np.full((program.n, program.m), 1.0 / program.m))
    return Outcome(prover.certificate(), log, edges, channels)


def _conic(
    prover: Prover,
    build: Callable[[], ConicModel] | None,
    solver: str,
    accuracy: str,
    options: dict[str, Any],
    verbose: bool,
    log: list[str],
    *,
    polish: bool,
) -> list[FloatArray]:
    """Try one setting after the other; return the channels that the solver proposed.

    With ``polish`` the central path is followed from what the solver found.
    """
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

    program = prover.program
    model = ConicModel(program) if build is None else build()
    channels: list[FloatArray] = []
    anchored = not _needs_anchor(program)
    for settings in attempts(solver, accuracy):
        both = {**settings, **options}
        said = model.solve(solver, both, verbose=verbose, user=bool(options))
        log.append(f"{solver} {settings or 'defaults'}: {said}")
        dual, channel = model.dual(), model.channel()
        if dual is not None:
            prover.offer_dual(dual)
        if channel is not None:
            channels.append(channel)
            prover.offer_channel(channel)
        if prover.status == "certified" or prover.offer_posteriors():
            if polish:
                _polish(prover, channel, log)
            break
        if polish and _polish(prover, channel, log):
            break
        if not anchored:
            anchored = True
            _anchor(prover, solver, options, log, "auto" if polish else "conic")
            if prover.primal is None and _contradicted(prover, solver, options, verbose, log):
                break
            if channel is not None:
                prover.offer_channel(channel)
            if prover.status == "certified" or (polish and _polish(prover, channel, log)):
                break
    return channels


def _polish(prover: Prover, channel: FloatArray | None, log: list[str]) -> bool:
    """Follow the central path from the best ends; True if what it finds certifies."""
    program, dual = prover.program, prover.dual
    start = channel if prover.primal is None else prover.primal.matrix
    goal = prover.tolerance
    if program.n**2 * program.m <= _CHEAP:  # milliseconds
        goal = min(goal, 1e-11 * program.scale)  # prices are off by the root of the gap
    if start is None or dual is None or not dual.objective or not interior.fits(program):
        return False
    before = prover.upper - prover.lower
    if before <= goal:
        return prover.status == "certified"
    with np.errstate(all="ignore"):
        for channel, multipliers in interior.follow(program, start, dual):
            prover.offer_dual(multipliers)
            prover.offer_channel(channel)
            if prover.upper - prover.lower <= goal:
                break
    log.append(f"central path: gap {before:.1e} → {prover.upper - prover.lower:.1e}")
    return prover.status == "certified"


def _needs_anchor(program: ChannelProgram) -> bool:
    """Tell whether closed-form anchors might not do: more than one plain linear row."""
    rows = program.constraints.values()
    plain = len(rows) <= 1 and all(row.linear and row.sense == "<=" for row in rows)
    return not plain or bool(program.auxiliaries)


def _contradicted(
    prover: Prover, solver: str, options: dict[str, Any], verbose: bool, log: list[str]
) -> bool:
    """Try to prove, from the least violation that is possible, that nothing is feasible."""
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

    for settings in (*_PLAIN.get(solver, [{}]), *_PATIENT.get(solver, [])):
        model = ConicModel(prover.program, phase_one=True)
        said = model.solve(solver, {**settings, **options}, verbose=verbose)
        log.append(f"{solver} phase one: {said}")
        dual, tau = model.dual(), model.variables["tau"].value
        if dual is not None and any(map(prover.offer_dual, _fewer(dual))):
            return True
        if tau is not None and tau < -1e-7:
            return False  # something is feasible; otherwise a sharper answer might tell
    return False


def _fewer(dual: Dual) -> Iterator[Dual]:
    """Yield multipliers without those of the auxiliaries, without those of each, and as they are.

    A factor e^ε makes much of what a solver left there by rounding.
    """
    given = dual.auxiliaries
    if given:
        yield replace(dual, auxiliaries={})
    for name in given if len(given) > 1 else ():
        yield replace(dual, auxiliaries={k: part for k, part in given.items() if k != name})
    yield dual


def _anchor(
    prover: Prover, solver: str, options: dict[str, Any], log: list[str], method: str
) -> None:
    """Find a channel that satisfies the rows strictly, as strictly as can be."""
    from cvxprivacy.solvers.cvxpy_channel import ConicModel

    for share in (0.1, 1e-2, 1e-3, 1e-5, 0.0):
        if share:
            model = ConicModel(presolve.tightened(prover.program, share))
            said = model.spread(solver, options)
        else:  # hardly any room: what the solver finds in the middle of it
            model = ConicModel(replace(prover.program, objective=Expression("nothing")))
            said = model.solve(solver, options)
        log.append(f"{solver} anchor at {share:g}: {said}")
        channel = model.channel()
        if channel is None:
            continue
        rare = prover.program.mass @ channel < 1e-6  # no mass at all rather than next to none
        for candidate in (np.where(rare, 0.0, channel), channel):
            found = repair(prover.program, prover.proof, candidate)
            if found is not None:
                prover.anchors.append(found[0])
                prover.offer_channel(found[0])
                return
    for (
        name,
        row,
    ) in prover.program.constraints.items():  # a bound that is next to the least there is
        if row.expression.weights and not row.per_output:
            rows = {key: other for key, other in prover.program.constraints.items() if key != name}
            least = solve(
                replace(prover.program, objective=row.expression, constraints=rows),
                method=method,
                solver=solver,
                accuracy="high",
                solver_options=options,
            )
            log.append(f"the least {name}: {least.certificate.status}")
            if least.certificate.primal is not None and prover.offer_channel(
                least.certificate.primal
            ):
                prover.anchors.append(least.certificate.primal)
                return


@one_thread()
def solve_gaussian(
    program: CovarianceProgram,
    *,
    method: str = "auto",
    solver: str = "CLARABEL",
    accuracy: str = "default",
    solver_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
    exact: Any = None,
) -> Outcome:
    """Minimise a covariance program and prove what was found; arguments as of :func:`solve`."""
    from cvxprivacy.solvers.covariance import solve_covariance

    if method == "structured" and program.caps:
        problem, remedy = "structured knows no cap Σ ≼ M", 'use "auto" or "conic"'
        raise InputError("method", problem, remedy)
    prover, log = solve_covariance(
        program,
        list(attempts(solver, accuracy)),
        method=method,
        solver=solver,
        accuracy=accuracy,
        options=solver_options,
        verbose=verbose,
        exact=exact,
    )
    return Outcome(prover.certificate(), log)
