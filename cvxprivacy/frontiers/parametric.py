"""A problem of which one number is free: what is solved at each value, and how.

All that the curves need of a problem and its program is in this module.  Everything here runs in
a worker, and returns what JSON can hold.  Mixtures share time between solved releases.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from cvxprivacy.certificates.bounds import BestBounds, Prover
from cvxprivacy.certificates.certificate import Certificate, units_in_words
from cvxprivacy.certificates.exact_channel import ExactChannel
from cvxprivacy.certificates.stored import restored
from cvxprivacy.criteria import Criterion, PerfectPrivacy
from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.exact import Real, array, fractions
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers.curve import CONCAVE, CONVEX, EXPONENTIAL, MONOTONE, Axis, Number
from cvxprivacy.frontiers.stored import digest, to_json
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.compiler import is_centred
from cvxprivacy.programs.covariance import ErrorCovariance
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Worst, indexed
from cvxprivacy.programs.extremes import least_value
from cvxprivacy.programs.latex_symbols import tex
from cvxprivacy.programs.parameter import Parameter
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome, checked, solve, solve_gaussian
from cvxprivacy.solvers.family import Family
from cvxprivacy.validation import text
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil
from cvxprivacy_verifier.costs import tabled
from cvxprivacy_verifier.fields import parts_of

__all__ = ["ParametricProblem", "Shares", "mixed_at", "mixture", "offer", "refuse_nothing"]

FEW = 100  # equalities up to which releases that reveal nothing are searched exactly

_families = threading.local()  # of a worker, by digest: some backends work in threads
_MOST_FAMILIES = 4


class ParametricProblem:
    """A problem, and the name of the number that moves; ``digest`` is of all that does not."""

    def __init__(self, problem: Problem, parameter: str, accuracy: str = "default") -> None:
        if not isinstance(problem, Problem):
            remedy = "pass a problem such as PrivacyDistortion(...)"
            raise InputError("problem", f"a {type(problem).__name__}", remedy)
        if not isinstance(problem, ChannelProblem | CovarianceProblem):
            wrong = f"a {type(problem).__name__} has a closed form and no curve"
            raise InputError("problem", wrong, "pass its channel_problem()")
        if not problem.minimised:
            wrong = "a greatest value, which is no convex function of its numbers"
            remedy = "solve at each number: problem.at(…).solve()"
            raise InputError("problem", wrong, remedy)
        text(parameter, "parameter", 'pass one such as "budget"; numbers go in points=[…]')
        self._options = checked("auto", "CLARABEL", accuracy, None)
        self._problem = cast(Any, problem.at())  # as it was made, without a solver's model
        self.parameter, self.accuracy = parameter, accuracy
        if getattr(self._problem, "cut", False):
            wrong = f"only {self._problem.alphabet.m:,} of its strategies are listed"
            remedy = "raise most_strategies: a cut list proves nothing from below"
            raise InputError("problem", wrong, remedy)
        program = self._program = self._problem.program
        group = self._group(parameter)
        constraint = program.constraints.get(group[0])
        if constraint is not None and any(symbol.function for symbol in constraint.derivatives):
            constraint = None  # its bound is e to a power of the number
        if constraint is not None and constraint.relation == r"\ge":
            wrong, remedy = f"{parameter!r} is a least value", "move max_leakage = H(W) − E instead"
            raise InputError("parameter", wrong, remedy, value=parameter)
        if constraint is not None and constraint.sense == "<=" and not constraint.per_output:
            self.axis = Axis(CONVEX, program.units, rows=group)
            x = float(constraint.bound)
            fixed = self._fixed_part(x)
            if {*fixed["off by"]} != {"0"} or fixed != self._fixed_part(x / 2 if x else 1.0):
                wrong, remedy = f"{parameter!r} moves more than a bound", "use a constraint's bound"
                raise InputError("parameter", wrong, remedy, value=parameter)
        elif (weighed := self._weighed(parameter)) is not None:
            self.axis = Axis(CONCAVE, program.units, rows=(weighed,))
            fixed = self._fixed_part(1.0)  # the digest is the same whatever number was typed
        else:
            criterion = self._criterion
            if criterion is None or criterion.loosest is None or criterion.loosens is None:
                raise self._cannot_move(criterion)
            auxiliary = getattr(program, "auxiliaries", {}).get(parameter)
            maximum = auxiliary is not None and auxiliary.kind == "maximum"
            moves = {} if auxiliary is None else auxiliary.derivatives
            maximum = maximum and all(s.function == "exp" and d == 1 for s, d in moves.items())
            kind = EXPONENTIAL if maximum else MONOTONE
            self.axis = Axis(kind, program.units, criterion.loosens == "down", group)
            alike = _canonical(criterion)  # the digest is the same whatever number was typed
            self.loosest = (
                min(alike, criterion.loosest)
                if self.axis.falling
                else max(alike, criterion.loosest)
            )
            fixed = self._fixed_part(alike)
        self.digest = digest([parameter, accuracy, fixed])

    def _weighed(self, parameter: str) -> str | None:
        """Return the term that a number weighs in the objective, where it does nothing else."""
        program, groups = self._program, getattr(self._problem, "rules", {})
        rules = [rule for group in groups.values() for rule in group.values()]
        rules += [*program.constraints.values()]
        if any(symbol.name == parameter for rule in rules for symbol in rule.derivatives):
            return None
        if isinstance(program.objective, Worst):
            return None
        derivatives = program.objective.derivatives.items()
        slopes = [(s.function, slope) for s, slope in derivatives if s.name == parameter]
        if len(slopes) != 1 or slopes[0][0]:  # neither its logarithm nor its exponential
            return None
        stated = _unnamed(slopes[0][1])
        return next((k for k, t in program.terms.items() if _unnamed(t) == stated), None)

    def _cannot_move(self, criterion: Criterion | OneNumber | None) -> InputError:
        remedy = f"use one of {', '.join(self._movable()) or 'none'}"
        numbers = [*Parameter.typed(criterion)] if isinstance(criterion, Criterion) else []
        if len(numbers) == 1:
            remedy += f", or declare {numbers[0]} = Parameter(loosens=…, loosest=…)"
        wrong = f"{self.parameter!r} cannot move"
        return InputError("parameter", wrong, remedy, value=self.parameter)

    def _group(self, parameter: str) -> tuple[str, ...]:
        """Return the constraints of a name: one, or one for each of several laws, or of each w."""
        if not self._discrete:
            return (parameter,)
        laws, rules = self._problem.alphabet.laws, self._problem.rules.get(parameter, {})
        names = [n for n in (indexed(parameter, k) for k in laws) if n in self._program.constraints]
        if not names and is_centred(rules.values()):
            names = list(rules)
        return tuple(names) or (parameter,)

    def _criteria(self) -> Mapping[str, Any]:
        return self._problem._criteria() if self._discrete else {}

    def _movable(self) -> list[str]:
        rows, criteria = self._program.constraints.items(), dict(self._criteria())
        names = [name for name, row in rows if row.sense == "<=" and not row.per_output]
        names = [name for name in names if not getattr(criteria.get(name), "numbers", ())]
        for name, criterion in [*criteria.items()]:
            criteria |= {f"{name}.{key}": OneNumber(criterion, key) for key in criterion.numbers}
        names += [name for name, c in criteria.items() if c.loosest is not None]
        names += [name for name in self._problem._numbers() if self._weighed(name) is not None]
        return list(dict.fromkeys(names))

    def _fixed_part(self, x: Number) -> dict[str, Any]:
        """Return the program at x without the right-hand side itself."""
        fixed = self.document(x)
        if self._discrete:  # one row or column that stands for all is the same as all
            terms = [row["term"] for row in fixed["rows"].values()]
            terms += [*parts_of(fixed["objective"]).values(), *fixed["terms"].values()]
            for term in terms:
                if isinstance(term["cost"], list):
                    term["cost"] = tabled(term["cost"], self._program.n, self._program.m)
        if self.axis.kind not in (MONOTONE, CONCAVE):
            part = "rows" if self.axis.kind == CONVEX else "auxiliaries"
            bounds = [fixed[part][row].pop("bound") for row in self.axis.rows]
            if self.axis.kind == CONVEX:
                fixed["off by"] = [str(Fraction(bound) - Fraction(x)) for bound in bounds]
        return fixed

    @property
    def _discrete(self) -> bool:
        return isinstance(self._problem, ChannelProblem)

    def at(self, x: Number) -> Any:
        """Return the problem at x."""
        return self._problem.at(**{self.parameter: x})

    def document(self, x: Number | None = None) -> dict[str, Any]:
        """Return the program at x, by default at the problem's own number, as proofs have it."""
        program = self._program if x is None else self.at(x).program
        return cast(dict[str, Any], program.to_dict())

    @property
    def facts(self) -> dict[str, Any]:
        """What a frontier says of its problem."""
        constraint = self._program.constraints.get(self.parameter)
        return {
            "parameter": self.parameter,
            "kind": self.axis.kind,
            "falling": self.axis.falling,
            "rows": list(self.axis.rows),
            "accuracy": self.accuracy,
            "digest": self.digest,
            "units": self.axis.units,
            "title": type(self._problem).__name__,
            "abscissa": "" if constraint is None else constraint.expression.latex,
            "ordinate": self._ordinate,
            "unit": units_in_words(self._program),
        }

    @property
    def _ordinate(self) -> str:
        """The objective in LaTeX, with the name of the number that weighs."""
        latex = cast(str, self._program.objective.latex)
        if self.axis.kind != CONCAVE:
            return latex
        weight = tex(float(getattr(self._problem, self.parameter)))
        return latex.replace(rf"{weight}\,", r"\lambda\,")

    @property
    def unit(self) -> float:
        """A nat of information, or the span of the distortion that is minimised."""
        return float(BestBounds(self._program).proof.unit(math.inf))

    # ---- at one number -------------------------------------------------------------------

    def _solve(self, problem: Any, primal: Any = None, dual: Any = None) -> Outcome:
        """Solve a problem of the family, unless what is offered is proved to be optimal."""
        if offered := primal is not None or dual is not None:
            bounds = BestBounds(problem.program, self.accuracy)
            offer(bounds, primal, dual)
            if bounds.status == "certified":
                return Outcome(bounds.certificate())
        kept = self.axis.kind == CONVEX and self._discrete
        family = self._family() if kept else None
        outcome: Outcome = problem._programmed(self._options, family)
        certificate = outcome.certificate
        if not offered or certificate.status in ("certified", "infeasible"):
            return outcome
        offer(bounds, certificate.primal, certificate.dual)
        return replace(outcome, certificate=bounds.certificate())

    def _family(self) -> Family:
        """Return what the programs at all numbers share, made once a worker."""
        families: dict[str, Family] = _families.__dict__
        if self.digest not in families:
            while len(families) >= _MOST_FAMILIES:
                families.pop(next(iter(families)))
            families[self.digest] = Family(self._program)
        return families[self.digest]

    def record(self, x: Number, primal: Any = None, dual: Any = None) -> dict[str, Any]:
        """Return all that is known at x, as JSON can hold it."""
        problem = self.at(x)
        outcome = self._solve(problem, primal, dual)
        certificate = outcome.certificate
        price = problem._solution(outcome).unproved_prices.get(self.parameter)
        return {
            "x": to_json(x),
            "price": None if price is None else to_json(float(price)),
            "edges": outcome.edges,
            "raw": certificate.raw,
            **certificate.answer(),
        }

    def solution(self, x: Number, record: Mapping[str, Any]) -> Solution:
        """Return the solution of which a record at x was made."""
        problem = self.at(x)
        certificate = restored(record, problem.program)
        return cast(Solution, problem._solution(Outcome(certificate, [], list(record["edges"]))))

    def mixed(self, x: Number, primals: Shares, duals: Iterable[Any], most: float) -> Solution:
        """Return what is proved at x of a release that draws from several."""
        return mixed_at(self.at(x), self.accuracy, primals, duals, most)

    def proved(self, x: Number, duals: Iterable[Any]) -> float:
        """Return the greatest lower bound at x that any of these multipliers prove."""
        bounds = BestBounds(self.at(x).program)
        for dual in duals:
            offer(bounds, None, dual)
        return bounds.lower

    def strongest(self, x: Number, duals: Iterable[Any]) -> list[Any]:
        """Return the two multipliers that prove most at x, in floats; the better is the last."""
        program = self.at(x).program
        return sorted(duals, key=lambda dual: dual.cleaned(program).lower_bound(program))[-2:]

    def chords(self, x: Number, places: Sequence[tuple[Number, Any]]) -> list[Any]:
        """Return the mixture of the multipliers on both sides of x, which prove their chord there.

        The objective is that of both sides, mixed; each side's minorants are ω_k times scores, and
        their sum is ω_k(x) times a mixture of scores, which is a score: these are a convex set.
        """
        at = {float(place): dual for place, dual in places if dual is not None and dual.objective}
        left = max((place for place in at if place < x), default=None)
        right = min((place for place in at if place > x), default=None)
        if not self._discrete or left is None or right is None:
            return []
        share = (float(x) - left) / (right - left)
        sides = [
            (at[place].cleaned(self.at(place).program), self.at(place).program, part)
            for place, part in ((left, 1 - share), (right, share))
        ]
        scores = {}
        for view in self._program.views:
            weights = [part * dual.weights(program)[view] for dual, program, part in sides]
            total = np.maximum(sum(weights, np.zeros(self._program.m)), np.finfo(float).tiny)
            scores[view] = sum(
                weight / total * dual.slopes(program, view)
                for weight, (dual, program, _) in zip(weights, sides, strict=True)
            )
        (first, _, one), (second, _, other) = sides
        multipliers = {
            name: one * np.asarray(first.multipliers[name], float)
            + other * np.asarray(second.multipliers[name], float)
            for name in first.multipliers
        }
        auxiliaries = {
            name: [
                one * a + other * b for a, b in zip(parts, second.auxiliaries[name], strict=True)
            ]
            for name, parts in first.auxiliaries.items()
        }
        return [Dual(scores, multipliers, auxiliaries)]

    def allows(self, x: Number, primal: Any) -> bool:
        """Tell whether a release is proved to be feasible at x."""
        proof = verify.proof_of(self.document(x))
        return bool(proof.upper(primal.to_dict()).feasible)

    # ---- where the constraint is all that matters, and where it does not -------------------

    def _split(self) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        """Return the constraints that move, the greatest of their left-hand sides, the others."""
        rows = self._program.constraints
        moving = {name: rows[name] for name in self.axis.rows}
        others = {name: row for name, row in rows.items() if name not in moving}
        lefts = {name: row.expression for name, row in moving.items()}
        return moving, Worst(lefts) if len(lefts) > 1 else lefts[self.parameter], others

    def _solved(self, program: Any) -> Certificate:
        """Solve another program of the same variables; say why if nothing is feasible."""
        run: Any = solve if self._discrete else solve_gaussian
        certificate: Certificate = run(program, accuracy=self.accuracy).certificate
        refuse_nothing(self._problem, certificate, self.axis.rows)
        return certificate

    def least_bound(self) -> tuple[float, float, Any]:
        """Enclose the least right-hand side that is feasible; return a release that has it too.

        It is None where a closed form knows the bound.
        """
        moving, left, others = self._split()
        alone = len(moving) == 1 and not others and not getattr(self._program, "auxiliaries", {})
        if alone and moving[self.parameter].linear:
            least = 0.0  # ⟨C, Σ⟩ ≥ 0
            if self._discrete:
                least = least_value(self._program, left)
            return least, least, None
        program = replace(self._program, objective=left, constraints=others)
        certificate = self._solved(program)
        return certificate.lower, certificate.upper, certificate.primal

    def without_constraint(self) -> Certificate:
        """Solve as if the constraint were not there."""
        if self.axis.kind != CONVEX:
            free = self.at(self.loosest)
            certificate = self._solve(free).certificate
            refuse_nothing(free, certificate)
            return certificate
        moving, _, others = self._split()
        rows = dict(others)
        for name, row in moving.items():
            if self._discrete and row.linear:  # then the cheapest constant is found
                costs = (self._program.cost(row.expression, some) for some in self._program.blocks)
                most = max(float(cost.max()) for cost in costs) + float(row.expression.constant)
                rows[name] = replace(row, bound=Fraction(most) + 1)
        return self._solved(replace(self._program, constraints=rows))

    def tightest_optimum(self, optimum: Certificate) -> Any:
        """Return an optimal release of the least left-hand side, where that can be searched.

        Of a linear objective the optima are a face; without information they satisfy J = π q,
        where only constant releases do unless some combination of letters looks the same to the
        view.
        """
        program = self._program
        if not self._discrete or optimum.gap > 1e-12 * abs(optimum.upper):
            return None
        if len(program.objectives) > 1 or not program.dense:
            return None
        views = [program.view_matrix(view).toarray() for view in program.objective.weights]
        dependent = all(np.linalg.matrix_rank(view / program.mass) < program.n for view in views)
        equalities = program.n + sum(program.m * (len(view) - 1) for view in views)
        if views and not (dependent and equalities <= FEW):
            return None
        _, left, others = self._split()
        rows = {**others, "the optimum": program.objective <= optimum.upper}
        return self._solved(replace(program, objective=left, constraints=rows)).primal

    def left_side(self, primal: Any) -> float:
        """Return the constraint's left-hand side at a release, rounded up."""
        _, left, _ = self._split()
        program = replace(self._program, objective=left, constraints={})
        cost = verify.proof_of(program.to_dict())
        return ceil(cost.upper(primal.to_dict()).objective)

    @property
    def _criterion(self) -> Any:
        """The criterion that is named, or one of the several numbers of one."""
        name, _, key = self.parameter.rpartition(".")
        criteria = self._criteria()
        if key in getattr(criteria.get(name), "numbers", {}):
            return OneNumber(criteria[name], key)
        return criteria.get(self.parameter)

    @property
    def tightest(self) -> float:
        """The tightest number that a criterion can have."""
        tightest: float | None = self._criterion.tightest([*self._problem.alphabet.laws.values()])
        if tightest is None:
            wrong = f"{self._criterion!r} does not say how tight it can be"
            raise InputError("between", wrong, "pass between=(lo, hi)")
        return tightest

    def revealing_nothing(self) -> Any:
        """Return the best release that reveals nothing, where ``tightest`` allows no other."""
        if not self._criterion.only_perfect_when_tightest:
            return None
        other = self.at(self.loosest).with_constraint("nothing revealed", PerfectPrivacy())
        return other.solve(accuracy=self.accuracy, certify=False).certificate.primal

    def infeasible(self, x: Number, certificate: Certificate) -> InfeasibleError:
        """Say in the user's words why nothing is feasible at x."""
        return cast(InfeasibleError, self.at(x)._explained(certificate))


def _unnamed(expression: Any) -> dict[str, Any]:
    """Return what an expression is, whatever it is called."""
    return {**expression.to_dict(), "name": ""}


@dataclass(frozen=True, repr=False)
class OneNumber:
    """One of the several numbers of a criterion, which moves while the others stay."""

    criterion: Criterion
    key: str
    only_perfect_when_tightest = False

    @property
    def declared(self) -> Parameter:
        return Parameter.typed(self.criterion)[self.key]

    @property
    def loosens(self) -> str | None:
        return self.criterion._loosens(self.key)

    @property
    def loosest(self) -> float | None:
        loosest = self.declared.loosest if self.loosens else None
        return loosest(float(self.criterion.numbers[self.key])) if callable(loosest) else loosest

    def tightest(self, laws: Sequence[Any]) -> float | None:
        """Return 0, or its least value, of a number that may be that and loosens up."""
        least = max(0.0, self.declared.least)
        return least if self.loosens == "up" and (least or self.declared.zero) else None

    def at(self, value: Real) -> OneNumber:
        return replace(self, criterion=self.criterion.with_number(self.key, value))

    def __repr__(self) -> str:
        return f"{self.key} of {self.criterion!r}"


def _canonical(criterion: Criterion | OneNumber) -> float:
    """Return a loosest number that is the same whatever number was typed."""
    if isinstance(criterion, OneNumber):
        depends = callable(criterion.declared.loosest)
    else:
        depends = any(callable(p.loosest) for p in Parameter.of(type(criterion)).values())
    return float((criterion.at(1.0) if depends else criterion).loosest or 0.0)


def refuse_nothing(problem: Any, certificate: Certificate, moved: Sequence[str] = ()) -> None:
    """Raise what ``solve()`` raises where no release is known.

    ``certificate`` is of the problem's program without the constraints ``moved``: a contradiction
    in it is one whatever their bounds are.
    """
    if certificate.status == "infeasible":
        multipliers = {**dict.fromkeys(moved, 0.0), **certificate.dual.multipliers}
        bounds = BestBounds(problem.program, certificate.accuracy)
        bounds.take_dual(replace(certificate.dual, multipliers=multipliers))
        raise problem._explained(bounds.certificate())
    if certificate.primal is None:
        message = "no release was found, and it is not proved that there is none"
        raise CertificationError(message, certificate)


def mixed_at(
    problem: Any, accuracy: str, primals: Shares, duals: Iterable[Any], most: float
) -> Solution:
    """Return what is proved of a problem by a release that draws from several."""
    certificate = mixture(problem.program, accuracy, primals, duals, most)
    return cast(Solution, problem._solution(Outcome(certificate)))


# ---- mixtures of what was solved ----------------------------------------------------------


ROUNDING = 1e-13  # of a value: what a mixture on the grid of floats may cost
INWARD = (None, 100, 76, 52, 28)  # bits of the share that goes back where a ball cannot tell

Shares = Sequence[tuple[Any, Fraction]]


def offer(bounds: BestBounds, primal: Any, dual: Any) -> None:
    """Prove what a primal and a dual are worth, as they are."""
    if primal is not None:
        evaluation = bounds.proof.upper(primal.to_dict())
        if evaluation.feasible:
            bounds.take_primal(primal, evaluation)
    if dual is not None and dual.objective:
        bounds.take_dual(dual.cleaned(bounds.program) if hasattr(dual, "cleaned") else dual)


def mixture(
    program: Any, accuracy: str, primals: Shares, duals: Iterable[Any], most: float
) -> Certificate:
    """Return what is proved of a release that draws from several, with shares ≥ 0 of sum one.

    By convexity it achieves ``most``, the mixture of the values.  A channel is rounded to integers
    over 2⁵² where that costs no more than rounding, and kept exact elsewhere.  Where a ball cannot
    tell it to be feasible it goes back, by a share of 2⁻¹⁰⁰ first, towards the first of them.  The
    lower end is the best that any of the multipliers ``duals`` prove.
    """
    discrete = isinstance(program, ChannelProgram)
    bounds = Prover(program, accuracy) if discrete else BestBounds(program, accuracy)
    (first, _), *others = primals
    if isinstance(bounds, Prover) and others:
        bounds.keep(first)
        bounds.offer_channel(sum(float(share) * primal.matrix for primal, share in primals))
    for bits in INWARD if others else INWARD[:1]:
        if bounds.upper <= most + ROUNDING * abs(most):
            break
        kept = 1 - Fraction(1, 2**bits) if bits else Fraction(1)
        moved = [(primal, kept * share) for primal, share in others]
        shares = [(first, 1 - sum((share for _, share in moved), Fraction(0))), *moved]
        offer(bounds, _channel(shares) if discrete else _covariance(shares), None)
    for dual in duals:
        offer(bounds, None, dual)
    return bounds.certificate()


def _channel(shares: Shares) -> ExactChannel:
    """Return a mixture of channels, exactly."""
    denominator = math.lcm(*(primal.denominator * share.denominator for primal, share in shares))
    numerators = sum(
        primal.numerators.astype(object)
        * (denominator // (primal.denominator * share.denominator) * share.numerator)
        for primal, share in shares
    )
    common = math.gcd(denominator, *numerators.ravel().tolist())
    return ExactChannel(numerators // common, denominator // common)


def _covariance(shares: Shares) -> ErrorCovariance:
    """Return a mixture of error covariances, exactly."""
    primals = [primal for primal, _ in shares]
    roots, middles = (
        [fractions(array(getattr(primal, part))) for primal in primals]
        for part in ("root", "middle")
    )
    root = roots[0]
    if any((other != root).any() for other in roots):
        middles = [r @ m @ r.T for r, m in zip(roots, middles, strict=True)]
        root = fractions(np.eye(len(root)))
    mixed = sum(share * m for (_, share), m in zip(shares, middles, strict=True))
    return ErrorCovariance(root.tolist(), mixed.tolist())
