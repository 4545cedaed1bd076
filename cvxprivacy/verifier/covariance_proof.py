"""Both ends of a covariance program, from its data, a primal and a dual alone.

The program: Gaussian variables of joint covariance Γ, conditioned on those ``given`` (Z); the
error covariance Σ of those ``encoded`` (V) is to be chosen with 0 ≼ Σ ≼ Σ̄ = Cov(V | Z) and
Σ ≼ M for each further cap M.  A view A has the information

    Φ_A(Σ) = ½ log det R_A − ½ log det (S + B Σ Bᵀ),   S = Cov(A | V, Z),  B = Cov(A, V | Z) Σ̄⁻¹

about A, R_A = Cov(A) or Cov(A | Z); terms are sums of these and of ⟨C, Σ⟩.

* upper end: Σ = L M Lᵀ with 0 ≼ M ≼ L⁻¹ Σ̄ L⁻ᵀ proved by Cholesky factors in ball arithmetic (or
  by exact elimination, where balls cannot tell and everything is rational);
* lower end: for any Y ≻ 0, −½ log det X ≥ ½ (log det Y + m − tr Y X), and for P ≽ 0 with
  P + G ≽ 0, min ⟨G, Σ⟩ ≥ −tr P Σ̄.  Y = R⁻ᵀ Y' R⁻¹ and P = L⁻ᵀ N L⁻¹ are given in coordinates
  where nothing is ill-conditioned.

Everything given is rational (floats are); multipliers are those of the program in nats.  Needs
the standard library and python-flint only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat

from cvxprivacy.verifier.balls import (
    PRECISION,
    UnprovableError,
    ball,
    enclosure,
    exactly,
    number,
    total as _sum,
    whole,
)
from cvxprivacy.verifier.matrices import (
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
from cvxprivacy.verifier.work import EXACT, affordable

__all__ = ["CovarianceProof"]

MOST = 4096  # bits, beyond which positive definiteness is not asked further


class CovarianceProof:
    """The exact program behind ``CovarianceProgram.to_dict()``, and the ends it proves."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program = program
        size, views = len(program["covariance"]), program["views"]
        tables = sum(len(program[name]) for name in ("rows", "terms", "caps"))
        affordable((1 + len(views)) * size**3 // 6 + (1 + tables) * size**2)
        gamma = rational(program["covariance"])
        if gamma.ncols() != size or gamma != gamma.transpose():
            raise UnprovableError("the covariance is not symmetric")
        self.given, self.encoded = (_indices(program[k], size) for k in ("given", "encoded"))
        self.n = len(self.encoded)
        coupled = sum(gamma[i, j] != 0 for i in range(size) for j in range(i))
        self.gamma = gamma
        exact = (size <= EXACT or 2 * coupled <= size) and eliminable(gamma)
        terms = [program["objective"], *program["terms"].values()]
        terms += [row["term"] for row in program["rows"].values()]
        matrices = [t["cost"] for t in terms if t["cost"] is not None]
        for matrix in map(rational, [*matrices, *program["caps"].values()]):
            exact = exact and eliminable(matrix)
            if (matrix.nrows(), matrix.ncols()) != (self.n, self.n):
                raise UnprovableError("a cost or a cap of another shape")
            if matrix != matrix.transpose():
                raise UnprovableError("a cost or a cap that is not symmetric")
        self.exact = exact
        whole([[beta for term in terms for beta in term["weights"].values()]])  # which are added up
        for pair in [*((0, t["cost_radius"]) for t in terms), *(t["constant"] for t in terms)]:
            enclosure(pair)  # of numbers, and no radius is negative
        for name, row in program["rows"].items():
            number(row["bound"])
            if row["sense"] != "<=" or row["per_output"] is not False or number(row["radius"]) != 0:
                raise UnprovableError(f"{name} is no plain inequality")
        parts = {
            name: (_indices(view["of"], size), view["reference"]) for name, view in views.items()
        }
        for name, (of, reference) in parts.items():
            inside = [i in self.encoded for i in of]
            if reference not in ("marginal", "conditional") or (any(inside) and not all(inside)):
                raise UnprovableError(f"view {name} is neither encoded nor free of what is")
        start = PRECISION + 8 * size * (not self.exact)  # balls lose digits with every pivot
        for precision in (start, 2 * start, 4 * start, MOST):
            flint.ctx.prec = self.precision = precision
            if self._derived(parts):
                break
        else:
            raise UnprovableError("a covariance is not proved positive definite")
        if not semidefinite(gamma):  # no variables have it
            raise UnprovableError("the joint covariance is not proved positive semidefinite")
        for term in terms:  # all numbers are read, used or not
            for view, beta in term["weights"].items():
                self._positive(view, beta)

    def _derived(self, views: Mapping[str, tuple[list[int], str]]) -> bool:
        """Condition on Z, and lay out every view; False if a determinant is not known."""
        z, v = self.given, self.encoded
        if z and known_log_det(block(self.gamma, z, z)) is None:
            return False

        def conditional(a: list[int], b: list[int]) -> Any:
            own = block(self.gamma, a, b)
            if not z:
                return own if self.exact else arb_mat(own)
            left, right = block(self.gamma, a, z), block(self.gamma, z, b)
            return arb_mat(own) - arb_mat(left) * arb_mat(block(self.gamma, z, z)).solve(
                arb_mat(right)
            )

        self.bound = conditional(v, v)
        self.views: dict[str, tuple[Any, Any, arb]] = {}
        self._wholes: dict[str, Any] = {}
        if known_log_det(self.bound) is None:
            return False
        for name, (of, reference) in views.items():
            whole = conditional(of, of)
            inner = own = known_log_det(whole)
            if reference == "marginal" and z:
                own = known_log_det(block(self.gamma, of, of))
            if inner is None or own is None:
                return False
            if set(of) <= set(v):
                b: Any = fmpq_mat([[int(i == j) for j in v] for i in of])
                s: Any = fmpq_mat(len(of), len(of))
            else:
                cross = conditional(v, of)
                solved = self.bound.solve(cross)
                b = solved.transpose()
                s = minus(whole, times(b, cross))
            self.views[name], self._wholes[name] = (s, b, own / 2), whole
        self.caps = {name: rational(cap) for name, cap in self.program["caps"].items()}
        self.units: arb = {"nats": arb(1), "bits": arb(2).log()}[self.program["units"]]
        return True

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged, given the upper end.

        A nat of information, and of costs what the enclosure allows beyond 0: the upper end, at
        most ⟨C, Σ̄⟩.
        """
        term = self.program["objective"]
        nats = float(arb(sum(map(exactly, term["weights"].values()), fmpq(0))) / self.units)
        most = 0.0
        if term["cost"] is not None:
            most = float(abs(trace(times(rational(term["cost"]), self.bound))))
        room = abs(upper - float(enclosure(term["constant"])))
        value = nats + (min(most, room) if math.isfinite(room) else most)
        if not math.isfinite(value):
            raise UnprovableError("the objective has no scale")
        return value or most or 1.0

    # ---- for those who propose -----------------------------------------------------------

    def whole(self, view: str) -> Any:
        """Return Cov(A | Z)."""
        return self._wholes[view]

    def matrix(self, floats: Any) -> Any:
        """Return a matrix of floats as the proof has it."""
        found = rational(floats.tolist())
        return found if self.exact else arb_mat(found)

    @staticmethod
    def product(a: Any, b: Any, c: Any) -> Any:
        """Return a b c."""
        return times(times(a, b), c)

    @staticmethod
    def log_det(matrix: Any) -> arb:
        """Return log det of a matrix that is proved positive definite."""
        found = log_det(matrix)
        if found is None:
            raise UnprovableError("a matrix that is not proved positive definite")
        return found

    # ---- lower end -----------------------------------------------------------------------

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that arbitrary multipliers prove, in the program's units."""
        flint.ctx.prec = self.precision
        try:
            return self._lower(dual)
        except (ZeroDivisionError, ArithmeticError):
            return arb.neg_inf()

    def _lower(self, dual: Mapping[str, Any]) -> arb:
        program = self.program
        whole([[*dual["multipliers"].values()]])  # which are added up: over one denominator
        parts: list[tuple[Any, fmpq, arb]] = []  # term, weight in nats, bound in nats
        if dual.get("objective", 1):
            parts.append((program["objective"], fmpq(1), arb(0)))
        for name, row in program["rows"].items():
            weight = exactly(dual["multipliers"].get(name, 0))
            if weight > 0:
                parts.append((row["term"], weight, self._bound(row)))
        total, omega = arb(0), dict.fromkeys(self.views, fmpq(0))
        gradient: Any = fmpq_mat(self.n, self.n)
        for term, weight, bound in parts:
            total += arb(weight) * (self._nats(term, enclosure(term["constant"])) - bound)
            for view, beta in term["weights"].items():
                omega[view] += weight * self._positive(view, beta)
            if term["cost"] is not None:
                gradient = plus(gradient, self._cost(term, scaled(costs(term), weight)))
        weighted = {view: o for view, o in omega.items() if o != 0}
        given, above = dual["posteriors"], dual["parts"]
        posteriors = {v: self.factors(given[v], self.views[v][0].nrows()) for v in weighted}
        bounds = {k: self.factors(above[k], self.n) for k in above if k in self.caps}
        bounds[""] = self.factors(above[""], self.n)  # all are read before any proves nothing
        for view, o in weighted.items():
            s, b, reference = self.views[view]
            root, middle = posteriors[view]
            inverse = root.inv()
            y = times(times(inverse.transpose(), middle), inverse)
            own = log_det(middle)
            if own is None:
                return arb.neg_inf()
            own -= 2 * _sum(real(root[i, i]).log() for i in range(root.nrows()))
            inner = (own + s.nrows() - real(trace(times(y, s)))) / 2
            total += arb(o) * (reference + inner)
            pull = times(times(b.transpose(), y), b)
            half = o / 2 if isinstance(pull, fmpq_mat) else arb(o / 2)
            gradient = minus(gradient, pull * half)
        least = self._least(gradient, bounds)
        if least is None:
            return arb.neg_inf()
        return (total + least) / (self.units if program["objective"]["weights"] else 1)

    def _positive(self, view: str, beta: Any) -> fmpq:
        if view not in self.views or not number(beta) >= 0:
            raise UnprovableError(f"the weight {beta!r} of {view} makes no convex program")
        return exactly(beta)

    def _nats(self, term: Mapping[str, Any], value: arb) -> arb:
        """Return a term's number in nats: terms of information are in the program's units."""
        return value * self.units if term["weights"] else value

    def _cost(self, term: Mapping[str, Any], cost: Any) -> Any:
        if not term["weights"] or self.program["units"] == "nats":
            return cost
        return arb_mat(cost) * self.units

    def _bound(self, row: Mapping[str, Any]) -> arb:
        return self._nats(row["term"], ball(row["bound"]))

    def factors(self, given: Mapping[str, Any], size: int) -> tuple[Any, fmpq_mat]:
        """Return a lower triangular root with positive diagonal, and a symmetric middle."""
        root, middle = rational(given["root"]), rational(given["middle"])
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

    def _least(self, gradient: Any, given: Mapping[str, Any]) -> arb | None:
        """Return a proved lower bound of min ⟨G, Σ⟩, or None if the parts given prove none."""
        value = arb(0)
        for name, cap in self.caps.items():
            if name in given:
                root, part = given[name]
                if not semidefinite(part):
                    return None
                inverse = root.inv()
                p = times(times(inverse.transpose(), part), inverse)
                gradient = plus(gradient, p)
                value -= real(trace(times(p, cap)))
        root, part = given[""]
        inner = times(times(root.transpose(), gradient), root)
        if not semidefinite(part) or not semidefinite(plus(inner, part)):
            return None
        inverse = root.inv()
        own = times(times(inverse, self.bound), inverse.transpose())
        return value - real(trace(times(part, own)))

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
        own = times(times(inverse, proof.bound), inverse.transpose())
        if not semidefinite(middle):
            self.broken.append("0 ≼ Σ")
        if not semidefinite(minus(own, middle)):
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
            own = log_det(plus(s, times(times(b, self.sigma), b.transpose())))
            if own is None:  # it may be infinite, or only too large for these balls
                return arb.nan()
            information = (reference - own / 2) / self.proof.units
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


def _indices(given: Any, size: int) -> list[int]:
    found = list(given)
    if any(type(i) is not int or not 0 <= i < size for i in found) or len(set(found)) < len(found):
        raise UnprovableError(f"{given!r} do not number variables")
    return found
