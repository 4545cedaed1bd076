"""The best proved bounds of a program's minimum, kept while candidates are offered."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.exact_channel import ExactChannel
from cvxprivacy.certificates.repair import Feasible, repair
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.dual import Dual
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import ceil, floor
from cvxprivacy_verifier.channel_proof import Evaluation

__all__ = ["BestBounds", "Prover"]


class BestBounds:
    """The best proved end of each kind, kept separately; subclasses offer candidates.

    Nothing that a solver says about its own success is looked at: any multipliers prove a bound
    (C4), any channel that is proved feasible another (C12).  Of a program that differs in bounds
    alone there may be a proof already, ``similar``.
    """

    def __init__(self, program: Any, accuracy: str = "default", similar: Any = None) -> None:
        self.program, self.accuracy = program, accuracy
        # the verifier's own proof, of what a file would hold: what is claimed here will verify
        document = program.to_dict()
        proof = None if similar is None else similar.rebounded(document)
        self.proof = verify.proof_of(document) if proof is None else proof
        self.lower, self.upper = -math.inf, math.inf
        self.dual: Any = None
        self.primal: Any = None
        self.terms: dict[str, tuple[float, float]] = {}
        self.raw = {"primal": 0.0, "dual": 0.0}

    @property
    def tolerance(self) -> float:
        """The gap that certifies, by the best upper end so far."""
        return self.tolerance_of(self.upper)

    def tolerance_of(self, upper: float) -> float:
        """Return the gap that would certify, by an upper end."""
        return verify.TOLERANCE[self.accuracy] * self.proof.unit(upper)  # (C16)

    @property
    def status(self) -> str:
        if self.dual is not None and not self.dual.objective:
            return "infeasible"
        return verify.status(self.lower, self.upper, self.tolerance)

    def take_dual(self, dual: Any, violation: float = 0.0) -> bool:
        """Prove the bound of ``dual``; True if it is the best so far (or a contradiction)."""
        bound = floor(self.proof.lower(dual.to_dict()))  # (C6), rounded down: (C15)
        if not dual.objective:
            if bound > 0:  # every feasible release would have the value 0 at most: (C7)
                # the least of nothing is ∞, and so both ends are
                self.lower, self.upper, self.primal = math.inf, math.inf, None
                self.dual = self._pruned(dual)
            return bound > 0
        # the two ends need not come from one solve: each is proved by itself
        if bound > self.lower or self.dual is None:
            self.lower, self.dual = bound, dual
            self.raw["dual"] = violation
            return True
        return False

    def take_primal(self, primal: Any, evaluation: Any, violation: float = 0.0) -> bool:
        """Keep a feasible point whose evaluation proves the least upper end so far."""
        upper = ceil(evaluation.objective)  # (C12), rounded up: (C15)
        if not upper < self.upper:
            return False
        self.upper, self.primal = upper, primal
        self.raw["primal"] = violation
        self.terms = {k: (floor(v), ceil(v)) for k, v in evaluation.terms.items()}
        return True

    def _pruned(self, dual: Any) -> Any:
        """Drop rows from a contradiction while one remains: what is left conflicts."""
        # the least multipliers first: what a solver left of them may be nothing but rounding
        for name in sorted(dual.multipliers, key=lambda k: np.abs(dual.multipliers[k]).max()):
            fewer = {**dual.multipliers, name: np.zeros_like(dual.multipliers[name])}
            dual = self._shorter(dual, replace(dual, multipliers=fewer))
        return dual

    def _shorter(self, dual: Any, shorter: Any) -> Any:
        """Return the shorter one of two, if that still proves a contradiction by (C7)."""
        return shorter if floor(self.proof.lower(shorter.to_dict())) > 0 else dual

    def certificate(self) -> Certificate:
        return Certificate(
            self.program,
            self.accuracy,
            self.status,
            self.lower,
            self.upper,
            self.primal,
            self.dual,
            self.terms,
            self.raw,
        )


class Prover(BestBounds):
    """The ends of a channel program."""

    def __init__(
        self, program: ChannelProgram, accuracy: str = "default", similar: Any = None
    ) -> None:
        super().__init__(program, accuracy, similar)
        self.strictly_feasible: list[Feasible] = []  # K₀ of (C11)
        # channels that may be such, proved when one is asked for; those that are not are dropped
        self.candidates: list[Matrix] = []

    def offer_dual(self, dual: Dual) -> bool:
        """Prove the bound of ``dual``; True if it is the best so far (or a contradiction)."""
        # cleaned here as the proof would clean it (C3), so that a file shows what was used
        return self.take_dual(dual.cleaned(self.program), dual.violation(self.program))

    def _pruned(self, dual: Dual) -> Dual:
        """Drop auxiliaries from a contradiction too."""
        for name, sides in dual.auxiliaries.items():
            fewer = {**dual.auxiliaries, name: [np.zeros_like(side) for side in sides]}
            dual = self._shorter(dual, replace(dual, auxiliaries=fewer))
        return super()._pruned(dual)

    def offer_channel(self, channel: Matrix | ExactChannel) -> bool:
        """Repair ``channel`` and prove its objective; True if it is the best so far."""
        repaired = repair(self.program, self.proof, channel, self._inside, self._certifies)
        if repaired is None:
            return False
        exact, evaluation = repaired
        # what is reported of the solver is how far its own channel was from feasible
        raw = channel.matrix if isinstance(channel, ExactChannel) else channel
        return self.take_primal(exact, evaluation, self.program.violation(raw))

    def keep(self, channel: Matrix | ExactChannel) -> bool:
        """Keep a channel in which rows are to hold strictly, to mix others with, if they hold."""
        feasible = repair(self.program, self.proof, channel, lambda: self.strictly_feasible)
        self.strictly_feasible += [] if feasible is None else [feasible]
        return feasible is not None

    def _inside(self) -> Iterator[Feasible]:
        """Yield channels to mix with, the newest first: its room is as small as what it costs."""
        tried: set[int] = set()
        while True:
            fresh = [f for f in self.strictly_feasible if id(f) not in tried]
            if fresh:  # another search may have added some
                tried.add(id(fresh[-1]))
                yield fresh[-1]
            elif self.candidates:
                candidate = self.candidates[-1]
                self.keep(candidate)
                self.candidates = [other for other in self.candidates if other is not candidate]
            else:
                return

    def _certifies(self, evaluation: Evaluation) -> bool:
        """Tell whether an upper end is near enough to the lower one."""
        upper = ceil(evaluation.objective)
        return verify.status(self.lower, upper, self.tolerance_of(upper)) == "certified"

    def offer_posteriors(self) -> bool:
        """Offer the best dual with the best channel's own posteriors; True if that certifies.

        Where a cone's dual is inaccurate, the posteriors of the primal may be better.
        """
        if self.primal is None or self.dual is None or not self.dual.objective:
            return False
        scores = {}
        for name, view in self.program.views.items():
            # at its own posteriors the minorant touches, as (P21) asks: (C1) is 0 there
            joint = self.program.joint(self.primal.matrix, name)
            scores[name] = view.measure.scores(joint, self.program.reference(name))
        self.offer_dual(replace(self.dual, scores=scores))
        return self.status == "certified"
