"""What was proved about a program, or of two that enclose it, and the document that proves it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Self

from cvxprivacy.errors import InputError
from cvxprivacy.files import whole_file, whole_files
from cvxprivacy.frozen import Frozen, frozen
from cvxprivacy.programs.expression import first_part
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.differences import differences
from cvxprivacy_verifier.verify import TOLERANCE, digest, proof_of, status
from cvxprivacy_verifier.work import allowing

__all__ = ["Certificate", "Relaxed", "refuse_other", "units_in_words"]


class Certificate(Frozen):
    """A proved enclosure of a program's minimum, with all that is needed to prove it again.

    Attributes
    ----------
    status : {"certified", "loose", "infeasible", "uncertified"}
        ``certified`` is a gap within the accuracy that was asked for, ``loose`` a wider one.
    lower, upper : float
        Proved ends, in ``value_units``.
    terms : dict of str to (float, float)
        Enclosures of the named quantities at the released channel.
    primal : ExactChannel, ErrorCovariance or None
        The release, repaired so that it is feasible exactly; its value is the upper end.
    dual : Dual, CovarianceDual or None
        The multipliers, of which the lower end follows.
    table : dict or None
        How the law was counted, for :func:`cvxprivacy.results.recount.recount`.

    Examples
    --------
    The enclosure of R(0.2) = 1 − h(0.32), proved a second time from the document's text alone:

    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    >>> certificate = problem.solve().certificate
    >>> certificate.verify()
    True
    >>> truth = 1 - cpv.information.entropy([0.32, 0.68])
    >>> certificate.lower - 1e-15 <= truth <= certificate.upper + 1e-15, certificate.gap < 1e-6
    (True, True)

    It is a proof of that problem and of no other:

    >>> certificate.proves(problem), certificate.differences(problem.at(budget=0.3))
    (True, ['row "budget": bound 0.2, where the problem has 0.3'])
    """

    def __init__(
        self,
        program: Any,
        accuracy: str,
        status: str,
        lower: float,
        upper: float,
        primal: Any,
        dual: Any,
        terms: Mapping[str, tuple[float, float]],
        raw: Mapping[str, float],
    ) -> None:
        self.program, self.accuracy, self.status = program, accuracy, status
        self.lower, self.upper = lower, upper
        self.primal, self.dual, self.terms = primal, dual, frozen(terms)
        self.raw = frozen(raw)
        self.table: Mapping[str, Any] | None = None

    def recorded(self, table: Mapping[str, Any] | None) -> Self:
        """Return the same certificate with a record of how its law was counted.

        Parameters
        ----------
        table : mapping or None
            Columns, bins, groups and what else a recount needs.
        """
        return self._with(table=frozen(table))

    def __repr__(self) -> str:
        ends = f"[{self.lower!r}, {self.upper!r}]"
        return f"Certificate({self.status}, value in {ends} {self.units_in_words})"

    @property
    def units_in_words(self) -> str:
        """What the value is in: units of information, of another measure, or of distortion."""
        return self.value_units or units_in_words(self.program)

    @property
    def value_units(self) -> str | None:
        """Units of ``lower`` and ``upper``: of information, or None where they hold distortion."""
        return value_units(self.program)

    @property
    def attained(self) -> float:
        """What the release is worth, rounded to the worse side."""
        return self.upper

    @property
    def gap(self) -> float:
        """The width of the enclosure, upper − lower."""
        return self.upper - self.lower

    @cached_property
    def residuals(self) -> dict[str, float]:
        """The optimality conditions, in the program's units; empty unless both ends are finite.

        ``primal``, ``dual``
            Largest violation of a constraint by the solver's channel, and of a sign by its
            multipliers, before the repair; after it both are proved to be 0.
        ``complementarity``
            Σ K(s, y)(G(s, y) − ν(s)) + Σ_j λ_j (b_j − f_j) and the same for auxiliaries (P20):
            slack times multiplier, at the certificate's own primal and dual.
        ``stationarity``
            Σ_k Σ_y ω_k(y) q(y) KL(p(v | y) ‖ r(v | y)) (C1): how far the posteriors of the dual
            are from those of the channel (Gaussian ones, of a covariance program).

        The last two are nonnegative, up to the rounding of floats, and add up to the gap.
        """
        if self.primal is None or self.dual is None or not self.dual.objective:
            return {}  # (P20) is about a pair; a contradiction has no primal
        return {**self.raw, **self.dual.residuals(self.program, self.primal.matrix)}

    # ---- the document --------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Return what a proof file holds: program, primal, dual, and the claims."""
        body: dict[str, Any] = {
            "schema": verify.SCHEMA,
            "software": f"cvxprivacy {_version()}",
            "table": self.table,
            "program": _finite(self.program.to_dict()),
            **self.answer(),
        }
        # no proof rests on the digest: it tells a damaged file from one that never verified
        body["sha256"] = verify.digest(body)
        return body

    def answer(self) -> dict[str, Any]:
        """Return the part of the document that is not the problem: primal, dual and claims."""
        return _finite(
            {
                "accuracy": self.accuracy,
                "primal": None if self.primal is None else self.primal.to_dict(),
                "dual": None if self.dual is None else self.dual.to_dict(),
                "claim": {
                    "status": self.status,
                    "lower": _end(self.lower),
                    "upper": _end(self.upper),
                    "terms": {k: [_end(x) for x in ends] for k, ends in self.terms.items()},
                },
            }
        )

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the proof, whole or not at all, readable by its owner only.

        The file contains the joint law of the confidential attribute, so it discloses what
        the release protects: keep it with the original table.

        Parameters
        ----------
        path : path
            Where to; a file that is there is replaced.
        """
        with whole_file(path, private=True) as file:
            self.write(file)
        return Path(path)

    def write(self, file: IO[str]) -> None:
        """Write the proof into an open file.

        Parameters
        ----------
        file : text file
            Open for writing.
        """
        json.dump(self.document(), file, ensure_ascii=False, allow_nan=False)

    def verify(self, work: float = 1.0) -> bool:
        """Prove everything again from the document's text, trusting none of its claims.

        Parameters
        ----------
        work : float
            Allow so many times the usual work, which is about ten minutes.

        Raises
        ------
        ValueError
            If a claim is not proved; the message lists which.
        """
        # through the text, as a reader of the file would have it: JSON keeps floats exactly
        document = json.loads(json.dumps(self.document(), allow_nan=False))
        with allowing(work):
            problems: Sequence[str] = verify.disagreements(document)
        if problems:
            raise ValueError("not verified: " + "; ".join(problems))
        return True

    # ---- the question ----------------------------------------------------------------------

    def proves(self, problem: Any) -> bool:
        """Tell whether this is a proof of ``problem``: of the very program that it states.

        A certificate proves its own program, and :meth:`verify` can say no more.

        Parameters
        ----------
        problem : ChannelProblem or CovarianceProblem
            The problem that is asked about; it need not have been solved.
        """
        return not self.differences(problem)

    def differences(self, problem: Any) -> list[str]:
        """Return where the program that was proved is not the one that ``problem`` states.

        All exact data are compared: units, sizes, law, views, objective, rows, bounds of entries,
        auxiliaries and terms.

        Parameters
        ----------
        problem : ChannelProblem or CovarianceProblem
            The problem that is asked about.
        """
        if getattr(problem, "cut", False):  # its program is of those to begin with
            return ["outputs: a list of some strategies, where the problem's are generated"]
        stated = getattr(problem, "exact_program", None)
        if not isinstance(stated, type(self.program)):  # this is no closed form's
            stated = problem.program
        if self.program is stated:  # most often: no need to compare millions of numbers
            return []
        return differences(self.program.to_dict(), stated.to_dict())


def refuse_other(certificate: Certificate, problem: Any, argument: str) -> None:
    """Refuse what is handed in beside a problem and proves something else.

    Raises
    ------
    InputError
        With the first difference between the two programs.
    """
    if apart := certificate.differences(problem):
        raise InputError(argument, f"of another problem: {apart[0]}", "pass this problem's own")


def value_units(program: Any) -> str | None:
    """Return the units of information of a program's objective, or None if it has distortion in it.

    A price of information, as in E d + λ I, is in units of d: so is that objective.
    """
    objective = first_part(program.objective)
    if not objective.weights or objective.cost is not None:
        return None
    measures = (getattr(program.views[view], "measure", None) for view in objective.weights)
    if any(measure is not None and not measure.in_units for measure in measures):
        return None
    return program.units


def units_in_words(program: Any) -> str:
    """Return what the objective of a program is in."""
    objective, units = first_part(program.objective), value_units(program)
    if units is not None:
        return units
    # the name of a sum tells its parts, of which only the first may have a unit of its own
    first, *others = objective.name.split(" + ")
    if objective.cost is not None and (first != "distortion" or (others and not objective.weights)):
        return "units of the objective" if others else f"units of {first}"
    if not objective.weights or objective.cost is not None:
        return "units of distortion"  # a price λ of information, as in E d + λ I, is in them too
    named = dict.fromkeys(program.views[view].measure.name for view in objective.weights)
    return f"units of {' and '.join(named)}"


def _end(end: float) -> float | str:
    """Return an end as JSON can hold it: infinities as strings."""
    return end if math.isfinite(end) else str(end)


def _finite(value: Any) -> Any:
    """Replace floats that JSON cannot hold (only multipliers can have them) by 0.

    The proof counts such multipliers as 0 anyway (C3).
    """
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        kinds = {*map(type, value)}
        if kinds <= {int, str} or (kinds == {float} and all(map(math.isfinite, value))):
            return value  # nearly always
        return [_finite(item) for item in value]
    return 0.0 if isinstance(value, float) and not math.isfinite(value) else value


def _version() -> str:
    try:
        return metadata.version("cvxprivacy")
    except metadata.PackageNotFoundError:
        return "(not installed)"


# ---- two programs whose optima enclose one ------------------------------------------------


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
        with whole_files() as files:
            self.relaxation.write(files.open(self.beside(path), private=True))
            self.write(files.open(path, private=True))
        return Path(path)

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
