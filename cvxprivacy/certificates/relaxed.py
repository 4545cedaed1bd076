"""A certificate whose two ends are proved of two programs."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.errors import InputError
from cvxprivacy.frozen import frozen
from cvxprivacy.verifier.differences import differences
from cvxprivacy.verifier.verify import TOLERANCE, digest, proof_of, status

__all__ = ["Relaxed"]


class Relaxed(Certificate):
    """Two ends of two programs: a release of listed outputs, and a bound for all of them.

    The document is that of the release, which proves the upper end alone; ``relaxation`` has its
    own, which proves the lower one.

    Attributes
    ----------
    relaxation : Certificate
        Of the program with Z at the encoder too.
    strategies : ndarray of int, shape (m, |Z|)
        What each listed output means for each z.
    """

    def __init__(self, listed: Certificate, relaxation: Certificate, strategies: Any) -> None:
        # the relaxed encoder may do what any strategy does, the listed ones are some of them:
        # lower(relaxation) ≤ optimum over all strategies ≤ upper(listed)
        ends = relaxation.lower, listed.upper
        verdict = status(
            *ends, TOLERANCE[listed.accuracy] * proof_of(listed.program.to_dict()).unit(ends[1])
        )
        if relaxation.status == "infeasible":  # and what has fewer releases is, too
            verdict = "infeasible"
        super().__init__(
            listed.program,
            listed.accuracy,
            verdict,
            *ends,
            listed.primal,
            listed.dual if listed.dual is not None and listed.dual.objective else None,
            listed.terms,
            listed.raw,
        )
        self.relaxation, self.strategies = relaxation, frozen(strategies)

    @property
    def residuals(self) -> dict[str, float]:
        """Return none: the two ends belong to two programs, and (P20) is about a pair of one."""
        return {}

    def _claims(self) -> Certificate:
        """Return what the document says: nothing from below."""
        upper = self.upper if self.primal is not None else math.inf
        # a lower end of the other program would not verify in a document of this one
        return Certificate(
            *(self.program, self.accuracy, "uncertified", -math.inf, upper),
            *(self.primal, None, self.terms, self.raw),
        )

    def document(self) -> dict[str, Any]:
        document = self._claims().recorded(self.table).document()
        document["strategies"] = self.strategies.tolist()
        document["sha256"] = digest(document)  # of what was just added, too
        return document

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write two proofs: of the upper end, and beside it, as ``….lower.json``, of the lower."""
        self.relaxation.to_json(self.beside(path))
        return super().to_json(path)

    @staticmethod
    def beside(path: str | os.PathLike[str]) -> Path:
        """Return where the proof of the lower end goes, beside that of the upper one."""
        return Path(path).with_suffix(".lower.json")

    def verify(self, work: float = 1.0) -> bool:
        return super().verify(work) and self.relaxation.verify(work)

    def differences(self, problem: Any) -> list[str]:
        """Return where the two programs are not those of ``problem``, over the same strategies."""
        if not getattr(problem, "cut", False):
            return ["outputs: generated, where the problem lists its own"]
        try:
            over, informed = problem.over(self.strategies), problem.informed
        except InputError as error:
            return [str(error)]
        return [
            *differences(self.program.to_dict(), over.program.to_dict()),
            *(f"lower end: {difference}" for difference in self.relaxation.differences(informed)),
        ]
