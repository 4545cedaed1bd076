"""The exact program behind a document of a covariance program: what is derived before any proof.

Σ̄ = Cov(V | Z), S and B of each view, (G3) and (G4) of ``docs/theory/covariance.md``, are rational
where exact elimination is worth its time, and balls elsewhere.  Needs the standard library and
python-flint only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat

from cvxprivacy.verifier.balls import (
    PRECISION,
    UnprovableError,
    enclosure,
    exactly,
    integers,
    number,
)
from cvxprivacy.verifier.matrices import (
    block,
    eliminable,
    known_log_det,
    log_det,
    minus,
    rational,
    semidefinite,
    times,
    trace,
)
from cvxprivacy.verifier.work import EXACT, affordable

__all__ = ["CovarianceData"]

MOST = 4096  # bits, beyond which positive definiteness is not asked further
LOST = 8  # bits for what balls lose with every pivot, to begin with; more are tried if needed


class CovarianceData:
    """The exact program behind ``CovarianceProgram.to_dict()``."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program = program
        size, views = len(program["covariance"]), program["views"]
        tables = sum(len(program[name]) for name in ("rows", "terms", "caps"))
        affordable((1 + len(views)) * size**3 // 6 + (1 + tables) * size**2)
        self.gamma = rational(program["covariance"])
        if self.gamma.ncols() != size or self.gamma != self.gamma.transpose():
            raise UnprovableError("the covariance is not symmetric")
        self.side, self.encoded = (_indices(program[k], size) for k in ("given", "encoded"))
        self.n = len(self.encoded)
        terms = [program["objective"], *program["terms"].values()]
        terms += [row["term"] for row in program["rows"].values()]
        self.exact = self._eliminable(terms)
        self._read_numbers(terms)
        self._derive_all({name: self._part(name, view) for name, view in views.items()})
        if not semidefinite(self.gamma):  # no variables have it
            raise UnprovableError("the joint covariance is not proved positive semidefinite")
        for term in terms:  # all numbers are read, used or not
            for view, beta in term["weights"].items():
                self._positive(view, beta)

    # ---- the program, read and derived ---------------------------------------------------

    def _eliminable(self, terms: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether all that is derived stays rational; refuse costs and caps that are none."""
        gamma, size = self.gamma, self.gamma.nrows()
        coupled = sum(gamma[i, j] != 0 for i in range(size) for j in range(i))
        # rationals grow with every pivot: few variables, or hardly coupled ones
        exact = (size <= EXACT or 2 * coupled <= size) and eliminable(gamma)
        matrices = [t["cost"] for t in terms if t["cost"] is not None]
        for matrix in map(rational, [*matrices, *self.program["caps"].values()]):
            exact = exact and eliminable(matrix)
            if (matrix.nrows(), matrix.ncols()) != (self.n, self.n):
                raise UnprovableError("a cost or a cap of another shape")
            if matrix != matrix.transpose():
                raise UnprovableError("a cost or a cap that is not symmetric")
        return exact

    def _read_numbers(self, terms: Sequence[Mapping[str, Any]]) -> None:
        """Refuse weights, radii, constants and bounds that are no numbers of a convex program."""
        # weights are added up: over one denominator
        integers([[beta for term in terms for beta in term["weights"].values()]])
        for pair in [*((0, t["cost_radius"]) for t in terms), *(t["constant"] for t in terms)]:
            enclosure(pair)  # of numbers, and no radius is negative
        for name, row in self.program["rows"].items():
            number(row["bound"])
            if row["sense"] != "<=" or row["per_output"] is not False or number(row["radius"]) != 0:
                raise UnprovableError(f"{name} is no plain inequality")

    def _part(self, name: str, view: Mapping[str, Any]) -> tuple[list[int], str]:
        """Return the variables of a view and its reference."""
        of, reference = _indices(view["of"], self.gamma.nrows()), view["reference"]
        inside = [i in self.encoded for i in of]
        # (G4) is for an A within V or with nothing of V: of a mixture, S would be singular
        if reference not in ("marginal", "conditional") or (any(inside) and not all(inside)):
            raise UnprovableError(f"view {name} is neither encoded nor free of what is")
        return of, reference

    def _derive_all(self, views: Mapping[str, tuple[list[int], str]]) -> None:
        """Derive Σ̄ and all views at the least precision that proves their determinants."""
        start = PRECISION + LOST * self.gamma.nrows() * (not self.exact)
        for precision in (start, 2 * start, 4 * start, MOST):
            flint.ctx.prec = self.precision = precision
            if self._derived(views):
                return
        raise UnprovableError("a covariance is not proved positive definite")

    def _derived(self, views: Mapping[str, tuple[list[int], str]]) -> bool:
        """Condition on Z, and lay out every view; False if a determinant is not known."""
        z, v = self.side, self.encoded
        if z and known_log_det(block(self.gamma, z, z)) is None:
            return False
        self.bound = self._conditional(v, v)  # Σ̄
        self.views: dict[str, tuple[Any, Any, arb]] = {}
        self._covariances: dict[str, Any] = {}
        if known_log_det(self.bound) is None:
            return False
        for name, (of, reference) in views.items():
            covariance = self._conditional(of, of)
            conditional = log_det_r = known_log_det(covariance)
            if reference == "marginal" and z:
                log_det_r = known_log_det(block(self.gamma, of, of))
            if conditional is None or log_det_r is None:
                return False
            s, b = self._view(of, covariance)
            self.views[name], self._covariances[name] = (s, b, log_det_r / 2), covariance
        self.caps = {name: rational(cap) for name, cap in self.program["caps"].items()}
        self.units: arb = {"nats": arb(1), "bits": arb(2).log()}[self.program["units"]]
        return True

    def _conditional(self, a: list[int], b: list[int]) -> Any:
        """Return Cov(A, B | Z) = Γ_AB − Γ_AZ Γ_ZZ⁻¹ Γ_ZB, (G3)."""
        marginal, z = block(self.gamma, a, b), self.side
        if not z:
            return marginal if self.exact else arb_mat(marginal)
        left, right = block(self.gamma, a, z), block(self.gamma, z, b)
        return arb_mat(marginal) - arb_mat(left) * arb_mat(block(self.gamma, z, z)).solve(
            arb_mat(right)
        )

    def _view(self, of: list[int], covariance: Any) -> tuple[Any, Any]:
        """Return S and B of a view, (G4), from Cov(A | Z)."""
        v = self.encoded
        if set(of) <= set(v):  # A is part of V: B selects it, and V leaves nothing of it
            return fmpq_mat(len(of), len(of)), fmpq_mat([[int(i == j) for j in v] for i in of])
        cross = self._conditional(v, of)
        b = self.bound.solve(cross).transpose()  # Cov(A, V | Z) Σ̄⁻¹
        return minus(covariance, times(b, cross)), b

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged, given the upper end.

        A nat of information, and of costs what the enclosure allows beyond 0: the upper end, at
        most ⟨C, Σ̄⟩.
        """
        term = self.program["objective"]
        nats = float(arb(sum(map(exactly, term["weights"].values()), fmpq(0))) / self.units)
        most = 0.0  # ⟨C, Σ̄⟩
        if term["cost"] is not None:
            most = float(abs(trace(times(rational(term["cost"]), self.bound))))
        room = abs(upper - float(enclosure(term["constant"])))  # of costs, which are ≥ 0
        value = nats + (min(most, room) if math.isfinite(room) else most)
        if not math.isfinite(value):
            raise UnprovableError("the objective has no scale")
        return value or most or 1.0

    def _positive(self, view: str, beta: Any) -> fmpq:
        """Return a weight ≥ 0 of a view there is: others make no convex program."""
        if view not in self.views or not number(beta) >= 0:
            raise UnprovableError(f"the weight {beta!r} of {view} makes no convex program")
        return exactly(beta)

    # ---- for those who propose -----------------------------------------------------------

    def covariance(self, view: str) -> Any:
        """Return Cov(A | Z)."""
        return self._covariances[view]

    def matrix(self, floats: Any) -> Any:
        """Return a matrix of floats as the proof has it."""
        exact = rational(floats.tolist())
        return exact if self.exact else arb_mat(exact)

    @staticmethod
    def product(a: Any, b: Any, c: Any) -> Any:
        """Return a b c."""
        return times(times(a, b), c)

    @staticmethod
    def log_det(matrix: Any) -> arb:
        """Return log det of a matrix that is proved positive definite."""
        value = log_det(matrix)
        if value is None:
            raise UnprovableError("a matrix that is not proved positive definite")
        return value


def _indices(values: Any, size: int) -> list[int]:
    numbers = list(values)
    within = all(type(i) is int and 0 <= i < size for i in numbers)
    if not within or len(set(numbers)) < len(numbers):
        raise UnprovableError(f"{values!r} do not number variables")
    return numbers
