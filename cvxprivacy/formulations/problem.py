"""What every formulation is: a value that can be solved, looked at in CVXPY, and restated."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from cvxprivacy.criteria.stated_rules import at, refuse_untraced
from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.exact import Real
from cvxprivacy.frozen import Frozen, FrozenDict, frozen
from cvxprivacy.programs.expression import (
    Constraint,
    Expression,
    Worst,
    each_part,
    parts_of,
    refuse_nonconvex,
)
from cvxprivacy.programs.latex_symbols import displayed, plain, upright
from cvxprivacy.programs.parameter import Parameter, tracing
from cvxprivacy.results.solution import Solution
from cvxprivacy.settings import Settings, using
from cvxprivacy.solvers.driver import Outcome, checked
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.watch import Progress, Watch
from cvxprivacy.validation import one_of, text

__all__ = ["Formulation", "MadeOf", "Problem", "Restatable"]

MadeOf = tuple[Mapping[str, Any], Mapping[str, Any]]  # arguments, and added constraints, by name

_formulating: ContextVar[tuple[int, ...]] = ContextVar("formulating", default=())


class Variables:
    """The variables in CVXPY that a problem shares with what is made of it, by what they are of."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def one(self, of: Any, make: Callable[[], Any]) -> Any:
        """Return the variable of some letters, made when it is first asked for."""
        # of two threads that make it at once both get the one that is kept
        return self._made[of] if of in self._made else self._made.setdefault(of, make())


class Restatable(Frozen):
    """What was made of arguments, and of constraints that were added by name."""

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]  # a problem is what it was made of
    _added: Mapping[str, Any] = FrozenDict()  # constraints besides, by name
    _shared: Variables

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        self = super().__new__(cls)
        self._arguments, self._shared = (tuple(map(frozen, arguments)), frozen(named)), Variables()
        return self

    def __reduce__(self) -> Any:
        arguments, named = self._arguments
        return _made, (self._maker, arguments, dict(named), dict(self._added))

    @property
    def _maker(self) -> Callable[..., Self]:
        """What made the problem of its arguments: its class, or another way into it."""
        return type(self)

    def _compared(self) -> dict[str, Any]:
        stored = super()._compared()  # by place or by name, it is the same problem
        apart = ("_arguments", "_shared")
        return {name: value for name, value in stored.items() if name not in apart}

    def _remedy(self, name: str) -> str:
        return f"a problem is a value; problem.at({name}=…) returns another one"

    def at(self, **numbers: Real) -> Self:
        """Return the same problem with other numbers typed.

        Parameters
        ----------
        **numbers : float
            By the names of their constraints: ``problem.at(budget=0.2, leakage_cap=0.1)``; of a
            criterion with several numbers as in prices, ``problem.at(**{"both.p": 0.3})``.

        Raises
        ------
        InputError
            If the problem has no such number, or refuses the value.

        Examples
        --------
        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
        >>> [round(problem.at(budget=d).solve().value, 4) for d in (0.1, 0.2, 0.3)]
        [0.1733, 0.0956, 0.042]
        """
        made_of: MadeOf = self._typed(), self._added
        for name, value in numbers.items():
            made_of = self._retyped(made_of, name, value)
        return self._remade(*made_of)

    def _typed(self) -> dict[str, Any]:
        """Return the arguments that the problem was made of, by name."""
        arguments, named = self._arguments
        return inspect.signature(self._maker).bind(*arguments, **named).arguments

    def _remade(self, arguments: Mapping[str, Any], added: Mapping[str, Any]) -> Self:
        made: Self = _made(self._maker, (), arguments, added)
        made.__dict__["_shared"] = self._shared  # constraints in its variables are of these, too
        return made._stated() if added else made

    def _stated(self) -> Self:
        """Return the problem itself, once all that it states was looked at."""
        return self

    def _retyped(self, made_of: MadeOf, name: str, value: Real) -> MadeOf:
        """Return what a problem is made of with another number of this name."""
        arguments, added = made_of
        if name in arguments or name in inspect.signature(self._maker).parameters:
            return {**arguments, name: value}, added
        part = re.fullmatch(r"(\w+)\[(.+)\]", name)
        if part and isinstance(arguments.get(part[1]), Mapping) and part[2] in arguments[part[1]]:
            return {**arguments, part[1]: {**arguments[part[1]], part[2]: value}}, added
        problem = f"a {type(self).__name__} has no number of this name"
        raise InputError(name, problem, f"use {' or '.join(self._numbers()) or 'none'}")

    def _numbers(self) -> list[str]:
        """Return the names of the numbers that were typed."""
        declared = Parameter.of(type(self))
        return [name for name in declared if getattr(self, name, None) is not None]


def _made(
    maker: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    added: Mapping[str, Any],
) -> Any:
    problem = maker(*arguments, **named)
    return problem._with(_added=FrozenDict(added)) if added else problem


def _multiplier(name: str, row: Constraint, value: Any) -> Any:
    """Return a multiplier of a constraint, checked."""
    remedy = "pass one number, ≥ 0 for <=" + (", or one for each output" if row.per_output else "")
    signed = row.sense == "=="
    axes = (0, 1) if row.per_output else (0,)
    try:
        multiplier = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError("duals", f"{value!r} is no number", remedy, where=name) from None
    wrong = multiplier.ndim not in axes or not np.isfinite(multiplier).all()
    if wrong or (not signed and (multiplier < 0).any()):
        raise InputError("duals", f"{value!r} is no multiplier", remedy, where=name, value=value)
    return multiplier if multiplier.ndim else float(multiplier)


# ---- solved, and looked at in CVXPY -------------------------------------------------------


Answer = TypeVar("Answer", bound=Solution)
# what is minimised, and subject to what: under several laws, to one constraint for each
Formulation = tuple[Expression | Worst, Mapping[str, Constraint | Mapping[str, Constraint]]]


class Problem(Restatable, Generic[Answer]):
    """A formulation; subclasses say which program it is, and what a proof of it means.

    A problem is a value: what it was made of is copied and cannot change, ``at`` returns another
    one, and solving reads nothing that could have been moved.

    Attributes
    ----------
    units : {"bits", "nats"}
    minimised : bool
        Whether the least value is asked for, of a convex program; else the greatest.
    problem : cvxpy.Problem
        The same in CVXPY, in the paper's units.
    latex, latex_expanded, dual_latex : str
        The paper's statement, the same written out in the program's variables, and its dual.
    """

    units: str
    minimised: ClassVar[bool] = True  # else maximised

    @property
    def program(self) -> Any:
        """The canonical data, exact: a ``ChannelProgram`` or ``CovarianceProgram``."""
        raise NotImplementedError

    # ---- what a subclass states ----------------------------------------------------------

    def formulation(self) -> Formulation:
        """Return what is minimised, and the constraints by name: the paper's program."""
        raise NotImplementedError(f"{type(self).__name__} states no formulation")

    @cached_property
    def _formulated(self) -> Formulation:
        """What ``formulation`` returns, its numbers traced; one that leaves no trace is refused."""
        if id(self) in _formulating.get():
            problem = "it reads what is made of it, such as variables or program"
            remedy = "state it in quantities; add rows in variables by with_constraint"
            raise InputError("formulation", problem, remedy)
        token = _formulating.set((*_formulating.get(), id(self)))
        try:
            with tracing():
                stated: Any = self.formulation()
        finally:
            _formulating.reset(token)
        if not (isinstance(stated, tuple) and len(stated) == 2 and isinstance(stated[1], Mapping)):
            remedy = 'return the objective and constraints by name: self.risk, {"budget": …}'
            raise InputError("formulation", f"{type(stated).__name__} was returned", remedy)
        objective, constraints = stated
        rows = each_part(constraints)
        for name, part in {"objective": objective, **rows}.items():
            kind = (Expression | Worst) if part is objective else Constraint
            if not isinstance(part, kind):
                remedy = "state it in quantities: self.risk, self.distortion <= self.budget"
                raise InputError(name, f"a {type(part).__name__}", remedy, value=part)
        numbers = Parameter.typed(self)
        refuse_untraced(numbers, objective, rows)
        refuse_nonconvex(parts_of(objective).values(), rows)
        return objective, constraints

    def quantities(self) -> Mapping[str, Expression]:
        """Return what is reported of the release, by name."""
        raise NotImplementedError

    # ---- other problems ------------------------------------------------------------------

    def with_constraint(self, name: str, constraint: Any) -> Self:
        """Return the same problem with one more constraint, which its certificate covers.

        Parameters
        ----------
        name : str
            Its name among constraints, duals and prices.
        constraint : cvxpy constraint, Criterion, or comparison of the problem's quantities
            An affine ``<=`` or ``==`` in ``problem.variables``; a bound from above on ``max``,
            ``maximum``, ``abs``, ``norm1``, ``norm_inf`` or ``sum_largest`` of affine ones (from
            below on ``min``), each affine piece of which becomes a row, at most 1,024;
            ``problem.risk <= 0.1``; or any criterion.

        Raises
        ------
        InputError
            For a constraint that cannot be certified, or a name that is taken.

        Examples
        --------
        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
        >>> Q = problem.variables["Q"]
        >>> round(problem.with_constraint("mine", Q[0, 1] <= 0.01).solve().value, 4)
        0.1123
        >>> import cvxpy as cp
        >>> one_way = problem.with_constraint("worst move", cp.maximum(Q[0, 1], Q[1, 0]) <= 0.05)
        >>> solution = one_way.solve()  # D = 0.1, and twice the slope there
        >>> round(solution.value, 4), round(solution.prices["worst move"], 3)
        (0.1733, -1.811)
        """
        if text(name, "name") in self._taken():
            problem = f"there is a constraint {name!r} already"
            raise InputError("name", problem, "use another name", value=name)
        return self._remade(self._typed(), {**self._added, name: self._covered(name, constraint)})

    def _retyped(self, made_of: MadeOf, name: str, value: Real) -> MadeOf:
        if moved := at(made_of[1], name, value):
            return made_of[0], moved
        return super()._retyped(made_of, name, value)

    def _stated(self) -> Self:
        _ = self.program  # what cannot be compiled is refused now
        return self

    def _taken(self) -> set[str]:
        """Return the names of constraints, of their parts and of numbers."""
        raise NotImplementedError

    def _covered(self, name: str, constraint: Any) -> Any:
        """Return a constraint as data that a proof can hold."""
        raise NotImplementedError

    # ---- CVXPY in sight ------------------------------------------------------------------

    @cached_property
    def problem(self) -> Any:
        """The program in CVXPY: the paper's objective and constraints, in the paper's units.

        Its parameters hold the numbers that were typed.  Solving it, or giving them other values,
        changes nothing else; its value and multipliers are proved by nobody.
        """
        return self._in_cvxpy()

    def _in_cvxpy(self) -> Any:
        raise NotImplementedError

    @property
    def objective(self) -> Any:
        """The objective of ``problem``."""
        return self.problem.objective

    @property
    def constraints(self) -> Mapping[str, Any]:
        """The constraints of ``problem``, by name."""
        remedy = "problem.with_constraint(name, constraint) returns another problem"
        return FrozenDict({c.label: c for c in self.problem.constraints}, remedy)

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables of ``problem``, by name; what ``at`` and the like return has the same."""
        return FrozenDict({v.name(): v for v in self.problem.variables()})

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of ``problem``, by the names of the numbers that were typed."""
        return FrozenDict(self.problem.typed)

    # ---- in print ------------------------------------------------------------------------

    @property
    def latex(self) -> str:
        """The program in LaTeX, without delimiters."""
        raise NotImplementedError

    @property
    def latex_expanded(self) -> str:
        """The same, written out in the program's variables."""
        return self._written.expanded

    @property
    def dual_latex(self) -> str:
        """Its dual program in LaTeX; the multipliers are called as in ``solution.duals``."""
        return self._written.dual

    @property
    def _written(self) -> Any:
        """The program written out, and its dual: ``expanded`` and ``dual``."""
        raise NotImplementedError

    def _repr_latex_(self) -> str:
        return displayed(self.latex, upright(self._sizes()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._statement()}; {self._sizes()})"

    def _statement(self) -> str:
        """Return the program in one line."""
        raise NotImplementedError

    def _sizes(self) -> str:
        raise NotImplementedError

    def _sentence(self, lines: list[str], over: str = "") -> str:
        objective, _ = self._formulated
        such_that = f"  s.t.  {', '.join(lines)}" if lines else ""
        aim = "min" if self.minimised else "max"
        return plain(f"{aim} {objective.latex}{such_that}{over and f'  over {over}'}")

    # ---- solving -------------------------------------------------------------------------

    def solve(
        self,
        *,
        method: str = "auto",
        solver: str = "CLARABEL",
        accuracy: str = "default",
        solver_options: Mapping[str, Any] | None = None,
        settings: Settings | Iterable[Settings] = (),
        time_limit: float | None = None,
        progress: Callable[[Progress], object] | None = None,
        verbose: bool = False,
        certify: bool | str = True,
    ) -> Answer:
        """Solve the program and prove the optimum.

        Parameters
        ----------
        method : {"auto", "conic", "structured"}
            ``"structured"`` asks the package's own interior-point methods, ``"conic"`` the CVXPY
            solver, and ``"auto"`` the one after the other until the optimum is certified; the
            CVXPY solver first where ``solver`` or ``solver_options`` are given.
        solver : str
            Any installed CVXPY solver with the cones that the program needs.
        accuracy : {"default", "high"}
            ``certified`` means a gap of at most 1e-6, or 1e-9, in the unit of the objective: one
            nat of information; of distortion what the enclosure allows beyond the least cost, and
            at least the smallest step of d, so that a forbidding cost widens no tolerance.
        solver_options : mapping, optional
            Passed to the solver.
        settings : Settings or list of Settings, optional
            Numbers of the package's own methods, from :mod:`cvxprivacy.settings`.
        time_limit : float, optional
            Seconds after which no further step is begun; a CVXPY solver other than Clarabel and
            SCS ends its attempt first.  Then, and with a warning at the first Ctrl-C, the best
            enclosure that is proved so far is returned (``loose``), with the release that attains
            its upper end; of what is infeasible, what its numbers could be is left out.
        progress : callable, optional
            Called with a ``Progress`` at each step of the interior-point methods.
        verbose : bool
            Print these steps on standard error, and what the CVXPY solver prints.
        certify : {True, "warn", False}
            What to do without a finite enclosure, or without any feasible release: raise,
            warn, or return silently.

        Returns
        -------
        Solution
            Where several releases attain the optimum, one near the analytic centre of them all:
            what the interior-point method tends to.

        Raises
        ------
        InfeasibleError
            If no release is feasible; it carries the proof.
        CertificationError
            If no finite enclosure was proved; it carries the best bounds.

        Examples
        --------
        The optimum is known to within 1e-9:

        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
        >>> solution = problem.solve(accuracy="high")
        >>> solution.status, solution.gap < 1e-9
        ('certified', True)
        """
        one_of(certify, "certify", True, "warn", False)
        options = checked(method, solver, accuracy, solver_options)
        watch = Watch(time_limit, progress, bool(verbose))
        with using(settings):
            outcome = self._outcome({**options, "watch": watch})
        if watch.interrupted:
            warnings.warn("interrupted: what is proved so far is returned", stacklevel=2)
        certificate = outcome.certificate
        message = ""
        if certificate.status == "infeasible" and certify is not False:
            error = self._explained(certificate, watch.silent())
            message = str(error)
            if certify is True:
                raise error
        elif certificate.status == "uncertified":
            message = (
                f"nothing finite is proved: the value is in [{certificate.lower!r}, "
                f"{certificate.upper!r}] {certificate.units_in_words}; "
                f"the solver said: {'; '.join(outcome.log)}"
            )
            if certify is True:
                raise CertificationError(message, certificate)
        if message and certify == "warn":
            warnings.warn(message, stacklevel=2)
        return self._solution(outcome)

    def certify(
        self,
        candidate: Any,
        duals: Mapping[str, Any] | None = None,
        *,
        solve: bool = False,
        accuracy: str = "default",
    ) -> Answer:
        """Prove what a release of somebody else is worth, and how much better one may be.

        It comes from another solver, an iteration such as that of Blahut and Arimoto, or a table in
        a paper.  What is infeasible, such as digits that were rounded, is repaired; a note tells by
        how much.  The upper end is proved of what is then feasible.  The lower end is proved by
        multipliers: those that come with it, or the best ones at the candidate's own posteriors,
        which prove the optimum if the candidate attains it.

        Parameters
        ----------
        candidate : Channel, frame or array_like, shape (|X|, |X̂|); GaussianRelease or array_like
            p(x̂ | x): rows and columns by their labels, or in the order of the problem's inputs and
            outputs.  Of a Gaussian problem a release, or an error covariance, shape (|X|, |X|).
            Of water-filling also a level, or what it pours, shape (n,); of
            :class:`HammingWaterFilling` a level, or p(x̂ | x), of at most 2,000 letters.
        duals : mapping of str to float or array, optional
            Multipliers of the constraints, as in ``solution.duals``; one that is not named is 0.
        solve : bool
            Solve the problem, too, and take its lower end: the gap is then how far the candidate is
            from the optimum, to the accuracy of the solve.
        accuracy : {"default", "high"}
            What ``certified`` asks of the gap, as of :meth:`solve`.

        Returns
        -------
        Solution
            With the candidate, repaired, as its release; ``loose`` where its gap is wider than
            ``certified`` allows, ``uncertified`` where no repair made it feasible.

        Raises
        ------
        InputError
            For what is no release of this problem.

        Examples
        --------
        A matrix in two digits, of which nobody says how it was made.  No release tells 0.005 bits
        less, by proof (the optimum is 0.0956):

        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
        >>> answer = problem.certify([[0.81, 0.19], [0.2, 0.8]])
        >>> answer.status, round(answer.upper, 4), answer.gap < 0.005
        ('loose', 0.0989, True)
        """
        settings = checked("auto", "CLARABEL", accuracy, None)
        if not isinstance(duals, Mapping | None):
            remedy = "pass multipliers by the names of the constraints, as solution.duals has them"
            raise InputError("duals", f"a {type(duals).__name__}", remedy, value=duals)
        rows = self.program.constraints
        if duals is not None:  # those of matrices and entries follow from the others
            computed = self._taken() | {"0 ≼ Σ"}
            for name in duals:
                derived = name.partition(".")[0] in computed or name.startswith("Σ ≼ ")
                if name not in rows and not derived:
                    remedy = f"use {' or '.join(rows) or 'none'}"
                    raise InputError("duals", f"no constraint {name!r}", remedy, value=name)
            duals = {k: _multiplier(k, rows[k], v) for k, v in duals.items() if k in rows}
        # of the program itself, where a closed form has multipliers of its own kind
        best = self._programmed({**settings, "watch": None}).certificate.dual if solve else None
        further = [] if best is None else [best]
        outcome, moved = self._candidate(
            candidate, duals, {"accuracy": accuracy, "further": further}
        )
        solution = self._solution(outcome)
        if outcome.certificate.primal is None:
            note = "no repair made the candidate feasible"
        else:
            note = f"the candidate, whose entries were repaired by at most {moved:.2g}"
            note += ": the upper end is of what it became" if moved > 1e-2 else ""
        return solution._with(notes=[note, *solution.notes])

    def _candidate(
        self, candidate: Any, duals: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[Outcome, float]:
        """Return what a candidate proves, and by how much it was repaired."""
        raise NotImplementedError

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        """Run the solvers and the prover; ``family`` has what other bounds share, if it is kept."""
        raise NotImplementedError

    def _programmed(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        """Do the same, of ``program``, where a closed form proves a program of its own kind."""
        return self._outcome(options, family)

    def _explained(self, certificate: Any, watch: Watch | None = None) -> InfeasibleError:
        """Say in the user's words why nothing is feasible, and what would be if there is time."""
        raise NotImplementedError

    def _solution(self, outcome: Outcome) -> Answer:
        raise NotImplementedError
