"""The stages of solving a channel program.

Presolve, then the central path, of few entries where there are many, then the conic solver.  What
cannot be solved is refused before anything is made of it.
Equations are those of ``docs/theory/entries.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.errors import InputError
from cvxprivacy.exact import FloatArray, array, fractions
from cvxprivacy.leakage import Leakage
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.side_conditions import Auxiliary, Excess
from cvxprivacy.settings import InteriorPoint, Stages
from cvxprivacy.solvers import entry_rows, presolve, sparse_rows
from cvxprivacy.solvers.entries import generation as entry_generation
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.presolve import FacialReduction
from cvxprivacy.solvers.task import UNUSABLE, Minimise, Outcome, Task, attempts
from cvxprivacy_verifier.balls import UnaffordableError
from cvxprivacy_verifier.verify import TOLERANCE

__all__ = ["ChannelTask", "prover_of", "refuse_foreign", "refuse_too_large"]

_BROKEN = 1e-9  # residual of rows below which no contradiction is looked for
_HOLDS = 1e-13  # violation with which a row counts as satisfied: rounding of sums
_FACTOR = 1e12  # e^ε, above which ratios forbid no more than entries below 1e-12 of others
_FEASIBLE = -1e-7  # least violation below which phase one has shown that something is feasible


class Candidate(Protocol):
    """What a method has come to: a step on all entries, or a point of a path."""

    @property
    def stage(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def gap(self) -> float: ...

    @property
    def progress(self) -> float: ...

    @property
    def breach(self) -> float: ...

    def proposal(self, objective: int = 1) -> tuple[FloatArray, Dual]: ...


class ChannelTask(Task):
    """A channel program to be solved, of a family if what that shares is kept."""

    def __init__(
        self,
        program: ChannelProgram,
        options: Mapping[str, Any],
        family: Family | None = None,
    ) -> None:
        super().__init__(options)
        self.settings = Stages.current()
        self.foreign = interior.foreign_measures(program)
        if self.method == "structured":
            refuse_foreign(self.foreign)
        if self.method == "conic" or self.foreign:
            refuse_conic(program)
        else:
            refuse_too_large(program, self.settings.never_refused)
        self.program, self._family = program, family
        self.prover = prover_of(program, self.accuracy, family)
        self.channel: FloatArray | None = None
        self.best: Candidate | None = None  # of least estimated gap
        self.steps = self.before = 0  # of all paths, and of those before this one
        self.stage, self.first = interior.Iterate.stage, 0  # and steps of the stages before it
        self.gaps: list[float] = []
        self.newest: Candidate | None = None
        self.before_rounds: Candidate | None = None  # the last step on all entries
        self.offered: Candidate | None = None
        self.inside = 0  # channels that were kept to mix others with
        rows = program.constraints.values()
        linear = all(r.linear and r.sense == "<=" and not r.per_output for r in rows)
        # for one plain row, repair knows a strictly feasible channel in closed form
        self.plain = len(rows) <= 1 and linear and not program.auxiliaries
        self.has_interior = self.plain

    # ---- presolve ------------------------------------------------------------------------

    def presolve(self, minimise: Minimise) -> bool:
        """Try contradictions, closed forms and facial reduction."""
        for dual in presolve.contradictions(self.program):
            if self.prover.offer_dual(dual):
                self.report("closed form: infeasible")
                return True
        if (pair := presolve.constant(self.program)) is not None:
            self.prover.offer_channel(pair[0])
            self.prover.offer_dual(pair[1])
            if self.sharp:
                self.report("closed form: no constraint binds")
                return True
        return (
            self._of_smaller_factors(minimise)
            or self._of_less_weight(minimise)
            or self._reduced(minimise)
        )

    def _of_smaller_factors(self, minimise: Minimise) -> bool:
        """Solve with smaller factors, and totals, where theirs are beyond what floats can weigh.

        True if that certifies.
        """
        program = self.program
        pairs = {name: _weighable(aux, program) for name, aux in program.auxiliaries.items()}
        if all(share == 1 for _, share in pairs.values()):
            return False
        auxiliaries = {name: aux for name, (aux, _) in pairs.items()}
        inner = minimise(ChannelTask(replace(program, auxiliaries=auxiliaries), self.options))
        self.log += inner.log
        if inner.certificate.primal is not None:  # the inner rules are stricter
            self.prover.offer_channel(inner.certificate.primal)
        if (dual := inner.certificate.dual) is not None:
            # what multiplies the factor is smaller by as much as that is greater: G of (P16) loses
            # a price times an entry that is the least, or a share of 1/_FACTOR of others
            kept = {
                name: [*parts[:-1], np.asarray(parts[-1]) * pairs[name][1]]
                for name, parts in dual.auxiliaries.items()
            }
            self.prover.offer_dual(replace(dual, auxiliaries=kept))
        return self.sharp

    def _of_less_weight(self, minimise: Minimise) -> bool:
        """Solve with less of a price of information that is far above all costs.

        Where nothing is told at that price, nothing is at a greater one; true if that certifies.
        """
        program, objective = self.program, self.program.objective
        if not isinstance(objective, Expression) or objective.cost is None or not program.dense:
            return False
        most = self.settings.price_limit * float(np.ptp(program.cost(objective)))
        if not 0 < most < max(program.sizes(objective), default=0.0):
            return False
        share = Fraction(most / max(program.sizes(objective)))
        weights = {k: fractions(array(w)) * share for k, w in objective.weights.items()}
        lighter = replace(program, objective=replace(objective, weights=weights))
        inner = minimise(ChannelTask(lighter, self.options))
        self.log += inner.log
        if inner.certificate.primal is not None:
            self.prover.offer_channel(inner.certificate.primal)
        if (dual := inner.certificate.dual) is not None:
            # in balance: what weighs more has less of a score
            fewer = {view: s * float(share) for view, s in dual.scores.items() if view in weights}
            self.prover.offer_dual(replace(dual, scores={**dual.scores, **fewer}))
        _offer_trivial(self.prover)
        if not self.sharp:  # what tells nothing at all, if that is not the same for all letters
            information = replace(
                objective, cost=None, cost_radius=0, constant=0, constant_radius=0
            )
            rows = {**program.constraints, "nothing": Constraint(information, "<=", Fraction(0))}
            silent = replace(program, objective=replace(objective, weights={}), constraints=rows)
            inner = minimise(ChannelTask(silent, self.options))
            if inner.certificate.primal is not None:
                self.prover.offer_channel(inner.certificate.primal)
        return self.sharp

    def _reduced(self, minimise: Minimise) -> bool:
        """Solve the smaller programs of rows without interior, or with hardly any.

        True if that certifies.
        """
        for reduction in presolve.facial_reductions(self.program):
            place = "is next to" if reduction.near else "leaves"
            self.report(f"closed form: {reduction.name} {place} a face")
            inner = minimise(ChannelTask(reduction.program, self.options))
            self.log += inner.log
            if not reduction.near:
                self.edges += [*([reduction.name] if reduction.edge else []), *inner.edges]
            _offer_face(self.prover, reduction, inner)
        return self.sharp

    @property
    def sharp(self) -> bool:
        """Whether all is settled, of small programs to digits of the value that there is.

        A nat may be far more than that, where letters are rare or bounds next to those of no use.
        """
        prover, program = self.prover, self.program
        if prover.status != "certified" or program.n**2 * program.m > self.settings.small_work:
            return self.settled
        return prover.upper - prover.lower <= TOLERANCE[self.accuracy] * abs(prover.upper)

    # ---- the central path ----------------------------------------------------------------

    def structured(self) -> bool:
        """Follow the central path until what it proves is good enough."""
        prover = self.prover
        if self.watch.stopped or self.foreign:
            return bool(self.watch.stopped)
        for linear in (sparse_rows, entry_rows):
            answer = linear.optimum(self.program, self.watch) if linear.pays(self.program) else None
            if answer is not None:
                channel, dual, words = answer
                self.report(words)
                prover.offer_dual(dual)
                prover.offer_channel(channel)
                if self.sharp or self.watch.stopped:
                    return True
        with np.errstate(all="ignore"):
            failure = _follow(_points(self), self._taken)
            if not self.sharp:
                # a gap that would do, and no proof of it: repair needs a channel to mix with
                near = self.best is not None and self.best.gap <= prover.tolerance
                self.salvage()
                if near and not (self.plain or self.settled or self.watch.stopped):
                    stricter = presolve.tightened(self.program, self.settings.stricter)
                    _follow(interior.central_path(ScaledProgram(stricter)), self._mixed)
        width = prover.upper - prover.lower
        proved = "infeasible" if prover.status == "infeasible" else f"gap {width:.1e}"
        self.report(f"{self.stage}: {failure or f'{self.steps} steps, {proved}'}")
        if self.settled or self.method == "structured" or self.watch.stopped:
            return True
        if large := conic_size(self.program) > self.settings.conic_up_to:
            self.report(f"no conic solver is asked: {_conic_room(self.program)}")
        return large

    def _taken(self, iterate: Candidate) -> bool:
        """Tell of a point and offer what it may prove; True if the path need not go on."""
        if iterate.stage != self.stage:
            if self.newest is not None:
                self.before_rounds = self.newest
                self.first += self.steps + 1
                self.report(f"{self.stage}: {self.first} steps on all")
                self.gaps.clear()
            self.stage = iterate.stage
        self.steps = self.before + iterate.number
        self.gaps.append(iterate.gap)
        if self.best is None or iterate.gap < self.best.gap:
            self.best = iterate
        self.newest = iterate
        self.watch.step(self.first + self.steps, iterate.progress, self.prover.tolerance)
        return self._contradicted(iterate) or self._enclosed(iterate) or bool(self.watch.stopped)

    def salvage(self) -> None:
        """Offer the point of least gap, and the newest channel: each may give the better end.

        Once: a proof of a large program takes a minute.
        """
        best, newest, start = self.best, self.newest, self.before_rounds
        self.best = self.newest = self.before_rounds = None
        # within a round of entries no gap is known, and the newest point is all there is
        bounded = best is not None and best.gap < np.inf
        if best is not None and bounded:
            self._offer(best)
        if newest is not None and not (bounded and newest is best):
            channel, dual = newest.proposal()
            self.prover.offer_channel(channel)
            if not bounded:
                self.prover.offer_dual(dual)
        if start is not None and not bounded:
            channel, dual = start.proposal()
            self.prover.offer_channel(channel)
            self.prover.offer_dual(dual)

    def _contradicted(self, iterate: Candidate) -> bool:
        """Offer the multipliers without the objective, where they might prove a contradiction."""
        if iterate.breach < _BROKEN:
            return False
        # on the way to infinity the multipliers of rows outgrow the objective: a ray of the dual
        ray = iterate.proposal(objective=0)[1].cleaned(self.program)
        return ray.lower_bound(self.program) > 0 and self.prover.offer_dual(ray)

    def _enclosed(self, iterate: Candidate) -> bool:
        """Offer a point that is near enough; before that, points well inside, to repair others by.

        Small programs are followed further than was asked, as far as steps gain: prices are off
        by the root of the gap.  True if what is proved will do.
        """
        program, settings = self.program, self.settings
        goal, gap = self.prover.tolerance, iterate.gap
        before = self.gaps[-1 - settings.patience : -1]
        # a step that gains less is not worth its time
        slow = len(before) == settings.patience and gap > max(0.1 * before[0], 0.5 * before[-1])
        patient = not (slow and gap <= goal)
        margin = settings.margin if patient and not self.plain else 1.0
        cheap = program.n**2 * program.m <= settings.small_work
        if patient and cheap:
            goal = min(goal, settings.small_gap * program.scale)
        if gap <= goal and cheap and not (slow and gap > settings.stalled * before[0]):
            # all that may be more than the value itself
            value = abs(program.attained(iterate.proposal()[0]))
            goal = min(goal, TOLERANCE[self.accuracy] * value)
        if gap > goal or gap > margin * self.goal():
            if not self.plain:
                self._keep_inside(iterate)
            return False
        assert self.best is not None
        self._offer(iterate if self.best is self.offered else self.best)
        return self.certified or gap < 1e-3 * goal

    def goal(self) -> float:
        """Return the gap that would certify: the newest point, where no upper end is proved yet."""
        goal: float = self.prover.tolerance
        if self.prover.primal is not None or self.newest is None:
            return goal
        value = self.program.attained(self.newest.proposal()[0])
        return min(goal, self.prover.tolerance_of(value))

    def _offer(self, iterate: Candidate) -> None:
        self.offered = iterate
        channel, dual = iterate.proposal()
        self.channels = [*self.channels[-2:], channel]
        self.prover.offer_dual(dual)
        self.prover.offer_channel(channel)

    def _keep_inside(self, iterate: Candidate) -> None:
        """Keep a channel in which all rows hold strictly, a few on the way to the optimum."""
        prover, scale, most = self.prover, self.program.scale, self.settings.interior_points
        if self.inside < most and iterate.gap < scale * 10.0 ** (1 - 2 * self.inside):
            channel = iterate.proposal()[0]
            if self.program.violation(channel) <= _HOLDS:
                prover.candidates.append(channel)
                self.inside += 1
                self.has_interior = True

    def _mixed(self, iterate: Candidate) -> bool:
        """Offer the last channel mixed with one near the optimum of stricter rows.

        The path's own points have little room for what they lose: 1 in as many parts as entries.
        """
        if iterate.gap > self.settings.stricter * self.program.scale:
            return bool(self.watch.stopped)
        if self.prover.keep(iterate.proposal()[0]):
            self.prover.offer_channel(self.channels[-1])
        return True

    # ---- attempts ------------------------------------------------------------------------

    @cached_property
    def _model(self) -> Any:
        return _conic(self.program) if self._family is None else self._family.model(self.program)

    def propose(self, settings: Mapping[str, Any]) -> None:
        self.run(self._model, settings)
        self.channel = self._model.channel()
        if self.channel is not None:
            self.channels.append(self.channel)

    def prove(self) -> None:
        """Offer the solver's multipliers and channel, then the channel's own posteriors."""
        dual = self._model.dual()
        if dual is not None:
            self.prover.offer_dual(dual)
        if self.channel is not None:
            self.prover.offer_channel(self.channel)
        if not self.certified:
            self.prover.offer_posteriors()

    # ---- phase one -----------------------------------------------------------------------

    def phase_one(self, minimise: Minimise) -> None:
        self.has_interior = True  # or what follows found none: it is tried once
        if not self._strictly_feasible():
            self._least_bound(minimise)
        if self.prover.primal is None:
            self._contradiction()

    def _strictly_feasible(self) -> bool:
        """Offer a channel that satisfies the rows strictly, as strictly as can be."""
        for share in (*presolve.TIGHTENINGS, 0.0):
            if self.watch.stopped:
                return False
            if share:
                model = _conic(presolve.tightened(self.program, share))
                status = model.spread(self.solver, self.solver_options)
                self.report(f"{self.solver} strictly feasible by {share:g}: {status}")
            else:  # hardly any room: what the solver finds in the middle of it
                model = _conic(replace(self.program, objective=Expression("nothing")))
                self.run(model, {}, "feasible")
            channel = model.channel()
            if channel is None:
                continue
            # no mass at all rather than next to none
            rare = self.program.mass @ channel < self.settings.unused
            for candidate in (np.where(rare, 0.0, channel), channel):
                if self.prover.keep(candidate):
                    self.prover.offer_channel(self.prover.strictly_feasible[-1].channel)
                    return True
        return False

    def _least_bound(self, minimise: Minimise) -> None:
        """Minimise an information row whose bound may be next to the least there is."""
        constraints = self.program.constraints
        for name, row in constraints.items():
            if not row.expression.weights or row.per_output or self.watch.stopped:
                continue
            others = {key: other for key, other in constraints.items() if key != name}
            program = replace(self.program, objective=row.expression, constraints=others)
            least = minimise(ChannelTask(program, {**self.options, "accuracy": "high"}))
            primal = least.certificate.primal
            self.report(f"the least {name}: {least.certificate.status}")
            if primal is not None and self.prover.offer_channel(primal):
                self.prover.keep(primal)
                return

    def _contradiction(self) -> None:
        """Try to prove, from the least violation that is possible, that nothing is feasible.

        By (P18) there are multipliers that do, if it is so; phase one has them in its own dual.
        """
        for settings in attempts(self.solver):
            if self.watch.stopped:
                return
            model = _conic(self.program, phase_one=True)
            self.run(model, settings, "phase one")
            dual, violation = model.dual(), model.variables["tau"].value
            if dual is not None and any(map(self.prover.offer_dual, _fewer_auxiliaries(dual))):
                return
            if violation is not None and violation < _FEASIBLE:
                return  # something is feasible; otherwise a sharper answer might tell

    def outcome(self) -> Outcome:
        if self.prover.status != "infeasible":
            _offer_trivial(self.prover)
        return super().outcome()


def _weighable(aux: Auxiliary, program: ChannelProgram) -> tuple[Auxiliary, float]:
    """Return a stricter auxiliary of a factor of at most ``_FACTOR``, and by what it is smaller."""
    factor = float(aux.bound)
    if isinstance(aux, Excess):
        j = aux.pair[1] if aux.pair else None
        factor = 0.0 if j is None else -float(aux.share[j]) * float(program.mass[j])
    if factor <= _FACTOR * (1 + 1e-9):  # as one that was reduced is, but for its rounding
        return aux, 1.0
    share = _FACTOR / factor
    if not isinstance(aux, Excess):
        return replace(aux, bound=_FACTOR, radius=0.0), share
    shares = fractions(aux.share).copy()
    shares[j] *= Fraction(share)
    return replace(aux, share=array(shares), radius=0.0), share


def _offer_face(prover: Prover, reduction: FacialReduction, inner: Outcome) -> None:
    """Offer the optimum of a smaller program, and what its multipliers prove."""
    primal, dual = inner.certificate.primal, inner.certificate.dual
    if primal is not None:
        prover.offer_channel(primal)
        if reduction.near:
            prover.keep(primal)
    for channel in [] if reduction.near else inner.channels:
        if prover.status != "certified":  # exact here, where the face had its moves in floats
            prover.offer_channel(channel)
    # in order of rising λ, until a proof is no better than the one before (E20)
    for lifted in [] if dual is None else reduction.duals(dual):
        better = prover.offer_dual(lifted)
        if prover.status in ("certified", "infeasible") or (dual.objective and not better):
            return


def _offer_trivial(prover: Prover) -> None:
    """Offer what needs no solver, where it has a better end: no enclosure is wider than that.

    From below what is told without a release, at the least cost; from above releases that tell
    nothing, and those of least cost.
    """
    program, silent = prover.program, presolve.zero_multipliers(prover.program)
    for part in program.objectives:  # the worst of several is no less than any
        alone = replace(silent, shares={part: 1.0})
        if not prover.lower > alone.lower_bound(program):
            prover.offer_dual(alone)
    for channel in presolve.trivial(program, prover.upper):
        prover.offer_channel(channel)
    if prover.primal is None:
        prover.offer_channel(np.full((program.n, program.m), 1.0 / program.m))


def _conic(program: ChannelProgram, *, phase_one: bool = False) -> Any:
    from cvxprivacy.solvers.conic.channel import ConicModel

    return ConicModel(program, phase_one=phase_one)


def _follow(path: Iterator[Candidate], enough: Callable[[Candidate], bool]) -> str:
    """Go along a path until it is enough; return what ended it before, if anything did."""
    while True:
        try:
            iterate = next(path, None)
        except (*UNUSABLE, MemoryError) as error:
            return str(error)
        if iterate is None or enough(iterate):
            return ""


def _points(task: ChannelTask) -> Iterator[Candidate]:
    """Yield points of the path, of a growing set of entries or of all."""
    program, settings, size = task.program, task.settings, task.program.n * task.program.m
    if size > settings.few_entries_beyond and entry_generation.suits(program):
        alone = size > settings.all_entries_up_to or not interior.fits(program)
        # to half of the tolerance: a proof of so many entries is made once, and loses a little
        yield from entry_generation.rounds(
            program, lambda: 0.5 * task.goal(), alone, lambda: bool(task.watch.stopped)
        )
        if alone:
            return
        if task.stage == interior.Iterate.stage:  # of few entries
            task.before = task.steps + 1
            task.gaps.clear()
    if not interior.fits(program):
        raise MemoryError("too large")
    yield from interior.central_path(ScaledProgram(program))


def _fewer_auxiliaries(dual: Dual) -> Iterator[Dual]:
    """Yield multipliers without those of the auxiliaries, without those of each, and as they are.

    A factor e^ε makes much of what a solver left there by rounding.
    """
    auxiliaries = dual.auxiliaries
    if auxiliaries:
        yield replace(dual, auxiliaries={})
    for name in auxiliaries if len(auxiliaries) > 1 else ():
        yield replace(dual, auxiliaries={k: v for k, v in auxiliaries.items() if k != name})
    yield dual


# ---- what is refused before ---------------------------------------------------------------


def conic_size(program: ChannelProgram) -> int:
    """Return how many coefficients a conic model has: of joint laws, of rows, of row sums."""
    views = {name for part in program.objectives.values() for name in part.weights}
    views |= {name for row in program.constraints.values() for name in row.expression.weights}
    rows = sum(row.expression.cost is not None for row in program.constraints.values())
    rows += sum(1 + 2 * (aux.kind == "ratio") for aux in program.auxiliaries.values())
    joint = sum(program.view_matrix(view).nnz for view in views)
    return int(program.m * (joint + (1 + rows) * program.n))


def _conic_room(program: ChannelProgram) -> str:
    return f"its model would take about {2000 * conic_size(program) / 2**30:.1f} GiB"


def refuse_conic(program: ChannelProgram) -> None:
    """Refuse a program of which there is no room for the conic model."""
    settings = Stages.current()
    if conic_size(program) <= settings.conic_refused_beyond:
        return
    side = int((settings.conic_refused_beyond / conic_size(program) * program.n * program.m) ** 0.5)
    problem = f"{program.n:,} letters to release as {program.m:,}: {_conic_room(program)}"
    remedy = f"about {side:,} of each fit: put letters together"
    if not interior.foreign_measures(program):
        remedy += ', or leave method="auto"'
    raise InputError("problem", problem, remedy)


def refuse_foreign(measures: list[Leakage]) -> None:
    """Refuse measures of which the central path knows no derivatives."""
    if measures:
        problem = f"{measures[0]!r} states neither a Hessian nor a linear program"
        remedy = 'use "auto" or "conic", or make it leakage.Smooth or leakage.Polyhedral'
        raise InputError("method", problem, remedy, value="structured")


def refuse_too_large(program: ChannelProgram, many: int) -> None:
    """Refuse more entries than there is room for; up to ``many`` there is."""
    n, m = program.n, program.m
    if n * m <= many or interior.fits(program):
        return
    most = InteriorPoint.current().most_numbers
    if entry_generation.suits(program):
        if (needed := entry_generation.table_size(program)) <= most:  # (E13)
            return
    else:
        needed = interior.block_size(program)
    side = int((most / needed * n * m) ** 0.5)  # what is needed grows as n m
    problem = f"{n:,} letters to release as {m:,}, which takes {8 * needed / 2**30:.1f} GiB"
    remedy = f"about {side:,} of each fit: put letters together, or list fewer outputs"
    raise InputError("problem", problem, remedy)


def prover_of(program: ChannelProgram, accuracy: str, family: Family | None = None) -> Prover:
    """Return the prover, or refuse a program that no proof would be read of."""
    try:
        return Prover(program, accuracy, None if family is None else family.proof)
    except UnaffordableError as error:
        sizes = f"{program.n:,} letters to release as {program.m:,}"
        problem = f"{sizes} are more than a proof holds ({error})"
        remedy = "put letters or hidden values together, list fewer outputs, or state fewer rows"
        raise InputError("problem", problem, remedy) from error
