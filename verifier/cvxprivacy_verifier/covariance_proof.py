"""Both ends of a covariance program, from its data, a primal and a dual alone.

The program: Gaussian variables of joint covariance Γ, conditioned on Z (``given``); the error
covariance Σ of V (``encoded``) is to be chosen with 0 ≼ Σ ≼ Σ̄ = Cov(V | Z) and Σ ≼ M for each
further cap M.  A view A has the information

    Φ_A(Σ) = ½ log det R_A − ½ log det (S + B Σ Bᵀ),   S = Cov(A | V, Z),  B = Cov(A, V | Z) Σ̄⁻¹

about A, R_A = Cov(A) or Cov(A | Z); terms are sums of these and of ⟨C, Σ⟩.

* upper end: Σ = L M Lᵀ with 0 ≼ M ≼ L⁻¹ Σ̄ L⁻ᵀ proved by Cholesky factors in ball arithmetic (or
  by exact elimination, where balls cannot tell and everything is rational);
* lower end, (G7): for any Y ≻ 0, −½ log det X ≥ ½ (log det Y + m − tr Y X), and for P ≽ 0 with
  P + G ≽ 0, min ⟨G, Σ⟩ ≥ −tr P Σ̄.  Y = R⁻ᵀ Y' R⁻¹ and P = L⁻ᵀ N L⁻¹ are stated in coordinates
  where nothing is ill-conditioned.

Every number of a document is rational (floats are); multipliers are those of the program in nats.
Equations (G1) to (G9) are derived in ``docs/theory/covariance.md``.  Needs the standard library and
python-flint only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat

from .balls import (
    PRECISION,
    UnprovableError,
    ball,
    enclosure,
    exactly,
    integers,
    number,
    total as _sum,
)
from .matrices import (
    block,
    eliminable,
    known_log_det,
    log_det,
    minus,
    plus,
    rational,
    real,
    scaled,
    semidefinite,
    times,
    trace,
)
from .work import EXACT, affordable

__all__ = ["CovarianceData", "CovarianceProof"]

MOST = 4096  # bits, beyond which positive definiteness is not asked further
LOST = 8  # bits for what balls lose with every pivot, to begin with; more are tried if needed


class CovarianceData:
    """The exact program behind ``CovarianceProgram.to_dict()``, derived before any proof.

    Σ̄ = Cov(V | Z), S and B of each view, (G3) and (G4), are rational where exact elimination is
    worth its time, and balls elsewhere.
    """

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


# ---- both ends ----------------------------------------------------------------------------


class CovarianceProof(CovarianceData):
    """The exact program behind ``CovarianceProgram.to_dict()``, and the ends it proves."""

    # ---- lower end -----------------------------------------------------------------------

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that arbitrary multipliers prove, in the program's units."""
        flint.ctx.prec = self.precision
        try:
            return self._lower(dual)
        except (ZeroDivisionError, ArithmeticError):
            return arb.neg_inf()

    def _lower(self, dual: Mapping[str, Any]) -> arb:
        integers([[*dual["multipliers"].values()]])  # which are added up: over one denominator
        minorant = self.minorant(dual)
        if minorant is None:
            return arb.neg_inf()
        total, gradient, bounds = minorant
        least = self._least(gradient, bounds)
        if least is None:
            return arb.neg_inf()
        return (total + least) / (self.units if self.program["objective"]["weights"] else 1)  # (G7)

    def minorant(
        self, dual: Mapping[str, Any]
    ) -> tuple[arb, Any, dict[str, tuple[Any, fmpq_mat]]] | None:
        """Return the constant and G of (G6), and the factors of bounds; None without a Y ≻ 0."""
        total, omega, gradient = self._linear_part(self._weighted(dual))
        weighted = {view: o for view, o in omega.items() if o != 0}
        posteriors, bounds = self._read_factors(dual, weighted)
        for view, o in weighted.items():
            root, middle = posteriors[view]
            minorant = self._minorant(view, root, middle)
            if minorant is None:
                return None
            constant, slope = minorant
            total += arb(o) * constant
            half = o / 2 if isinstance(slope, fmpq_mat) else arb(o / 2)
            gradient = minus(gradient, slope * half)  # (G6), its last sum
        return total, gradient, bounds

    def _weighted(self, dual: Mapping[str, Any]) -> list[tuple[Any, fmpq, arb]]:
        """Return each term with its weight, 1 or λ_j, and its bound, 0 or b_j, in nats."""
        parts: list[tuple[Any, fmpq, arb]] = []
        if dual.get("objective", 1):
            parts.append((self.program["objective"], fmpq(1), arb(0)))
        for name, row in self.program["rows"].items():
            weight = exactly(dual["multipliers"].get(name, 0))
            if weight > 0:  # a multiplier below 0 counts as 0
                parts.append((row["term"], weight, self._bound(row)))
        return parts

    def _linear_part(
        self, parts: Sequence[tuple[Any, fmpq, arb]]
    ) -> tuple[arb, dict[str, fmpq], Any]:
        """Return γ_0 + Σ λ_j (γ_j − b_j), ω, and C_0 + Σ λ_j C_j, the first sums of (G6), (G7)."""
        total, omega = arb(0), dict.fromkeys(self.views, fmpq(0))
        gradient: Any = fmpq_mat(self.n, self.n)
        for term, weight, bound in parts:
            total += arb(weight) * (self._nats(term, enclosure(term["constant"])) - bound)
            for view, beta in term["weights"].items():
                omega[view] += weight * self._positive(view, beta)
            if term["cost"] is not None:
                gradient = plus(gradient, self._cost(term, scaled(costs(term), weight)))
        return total, omega, gradient

    def _read_factors(
        self, dual: Mapping[str, Any], weighted: Mapping[str, fmpq]
    ) -> tuple[dict[str, tuple[Any, fmpq_mat]], dict[str, tuple[Any, fmpq_mat]]]:
        """Return R, Y' of each view and L, N of each bound: all, before any proves nothing."""
        posteriors, parts = dual["posteriors"], dual["parts"]
        of_views = {
            view: self.factors(posteriors[view], self.views[view][0].nrows()) for view in weighted
        }
        of_bounds = {k: self.factors(parts[k], self.n) for k in parts if k in self.caps}
        of_bounds[""] = self.factors(parts[""], self.n)
        return of_views, of_bounds

    def _minorant(self, view: str, root: Any, middle: fmpq_mat) -> tuple[arb, Any] | None:
        """Return the constant and BᵀYB of a view's minorant (G5); None unless Y ≻ 0 is proved."""
        s, b, reference = self.views[view]
        inverse = root.inv()
        y = times(times(inverse.transpose(), middle), inverse)  # (G9)
        log_det_y = log_det(middle)
        if log_det_y is None:
            return None
        log_det_y -= 2 * _sum(real(root[i, i]).log() for i in range(root.nrows()))
        inner = (log_det_y + s.nrows() - real(trace(times(y, s)))) / 2
        return reference + inner, times(times(b.transpose(), y), b)

    def _nats(self, term: Mapping[str, Any], value: arb) -> arb:
        """Return a term's number in nats: terms of information are in the program's units."""
        return value * self.units if term["weights"] else value

    def _cost(self, term: Mapping[str, Any], cost: Any) -> Any:
        if not term["weights"] or self.program["units"] == "nats":
            return cost
        return arb_mat(cost) * self.units

    def _bound(self, row: Mapping[str, Any]) -> arb:
        return self._nats(row["term"], ball(row["bound"]))

    def factors(self, document: Mapping[str, Any], size: int) -> tuple[Any, fmpq_mat]:
        """Return a lower triangular root with positive diagonal, and a symmetric middle."""
        root, middle = rational(document["root"]), rational(document["middle"])
        for matrix in (root, middle):
            if (matrix.nrows(), matrix.ncols()) != (size, size):
                raise UnprovableError("a factor of another shape")
        if middle != middle.transpose():
            raise UnprovableError("a factor that is not symmetric")
        above = any(root[i, j] != 0 for i in range(size) for j in range(i + 1, size))
        if above or not all(root[i, i] > 0 for i in range(size)):
            raise UnprovableError("a root that is not triangular with a positive diagonal")
        exact = self.exact and eliminable(root) and eliminable(middle)
        return root if exact else arb_mat(root), middle

    def _least(self, gradient: Any, bounds: Mapping[str, tuple[Any, fmpq_mat]]) -> arb | None:
        """Return a proved lower bound of min ⟨G, Σ⟩, or None if the factors prove none."""
        value = arb(0)
        for name, cap in self.caps.items():
            if name in bounds:
                root, part = bounds[name]
                if not semidefinite(part):
                    return None
                inverse = root.inv()
                p = times(times(inverse.transpose(), part), inverse)  # P_c ≽ 0, (G9)
                gradient = plus(gradient, p)
                value -= real(trace(times(p, cap)))
        root, part = bounds[""]
        whitened = times(times(root.transpose(), gradient), root)
        # P ≽ 0 and P + G ≽ 0 by congruence: N ≽ 0 and N + LᵀGL ≽ 0
        if not semidefinite(part) or not semidefinite(plus(whitened, part)):
            return None
        inverse = root.inv()
        white_bound = times(times(inverse, self.bound), inverse.transpose())  # I but for rounding
        return value - real(trace(times(part, white_bound)))  # (G8)

    # ---- upper end -----------------------------------------------------------------------

    def upper(self, primal: Mapping[str, Any]) -> CovarianceEvaluation:
        """Evaluate Σ = L M Lᵀ: ``root`` L and ``middle`` M."""
        flint.ctx.prec = self.precision
        root, middle = self.factors(primal, self.n)
        return CovarianceEvaluation(self, root, middle)


class CovarianceEvaluation:
    """An error covariance put into a program: what holds there, and what each term is worth."""

    def __init__(self, proof: CovarianceProof, root: Any, middle: fmpq_mat) -> None:
        self.proof = proof
        self.sigma = times(times(root, middle), root.transpose())
        self.broken: list[str] = []
        inverse = root.inv()
        white_bound = times(times(inverse, proof.bound), inverse.transpose())
        if not semidefinite(middle):
            self.broken.append("0 ≼ Σ")
        if not semidefinite(minus(white_bound, middle)):  # M ≼ L⁻¹Σ̄L⁻ᵀ, the exact Σ̄
            self.broken.append("Σ ≼ Cov(V | Z)")
        for name, cap in proof.caps.items():
            if not semidefinite(minus(cap, self.sigma)):
                self.broken.append(name)
        self.violation = {}
        if not self.broken:
            for name, row in proof.program["rows"].items():
                self.violation[name] = self._value(row["term"]) - ball(row["bound"])
                if not (self.violation[name] <= 0 or self._holds(row)):
                    self.broken.append(name)
        self.feasible = not self.broken

    def _holds(self, row: Mapping[str, Any]) -> bool:
        """Tell in rationals whether a linear row holds, where a ball around it cannot."""
        term = row["term"]
        radii = map(number, (term["constant"][1], term["cost_radius"]))
        if term["weights"] or any(radii) or term["cost"] is None:
            return False
        value = trace(times(rational(term["cost"]), self.sigma))
        value = value + exactly(term["constant"][0])
        return isinstance(value, fmpq) and bool(value <= exactly(row["bound"]))

    @property
    def objective(self) -> arb:
        return self._value(self.proof.program["objective"])

    @property
    def terms(self) -> dict[str, arb]:
        return {name: self._value(term) for name, term in self.proof.program["terms"].items()}

    def _value(self, term: Mapping[str, Any]) -> arb:
        value = enclosure(term["constant"])
        for view, weight in term["weights"].items():
            s, b, reference = self.proof.views[view]
            log_det_x = log_det(plus(s, times(times(b, self.sigma), b.transpose())))
            if log_det_x is None:  # it may be infinite, or only too large for these balls
                return arb.nan()
            information = (reference - log_det_x / 2) / self.proof.units  # Φ of (G2)
            value += arb(self.proof._positive(view, weight)) * information
        if term["cost"] is not None:
            value += real(trace(times(costs(term), self.sigma)))
        return value


def costs(term: Mapping[str, Any]) -> Any:
    """Return the cost of a term exactly, or in balls of its radius."""
    middle, radius = rational(term["cost"]), ball(0, term["cost_radius"])
    if radius.is_zero():
        return middle
    return arb_mat([[arb(x) + radius for x in row] for row in middle.tolist()])
