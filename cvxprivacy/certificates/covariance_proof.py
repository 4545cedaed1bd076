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
from collections.abc import Mapping, Sequence
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat

from cvxprivacy.certificates.balls import (
    PRECISION,
    Matrix,
    UnprovableError,
    affordable,
    ball,
    enclosure,
    exactly,
    number,
    total as _sum,
)

__all__ = ["CovarianceProof", "basis", "cholesky", "definite", "log_det", "semidefinite"]

MOST = 4096  # bits, beyond which positive definiteness is not asked further
EXACT = 8  # variables up to which what is rational stays so, unless they are hardly coupled

BURDEN = 10**10  # of exact elimination, which takes minutes beyond


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
        self.exact = (size <= EXACT or 2 * coupled <= size) and _burden(gamma) <= BURDEN
        terms = [program["objective"], *program["terms"].values()]
        terms += [row["term"] for row in program["rows"].values()]
        matrices = [t["cost"] for t in terms if t["cost"] is not None]
        for matrix in map(rational, [*matrices, *program["caps"].values()]):
            if (matrix.nrows(), matrix.ncols()) != (self.n, self.n):
                raise UnprovableError("a cost or a cap of another shape")
            if matrix != matrix.transpose():
                raise UnprovableError("a cost or a cap that is not symmetric")
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
        if z and _known(_part(self.gamma, z, z)) is None:
            return False

        def conditional(a: list[int], b: list[int]) -> Any:
            own = _part(self.gamma, a, b)
            if not z:
                return own if self.exact else arb_mat(own)
            left, right = _part(self.gamma, a, z), _part(self.gamma, z, b)
            return arb_mat(own) - arb_mat(left) * arb_mat(_part(self.gamma, z, z)).solve(
                arb_mat(right)
            )

        self.bound = conditional(v, v)
        self.views: dict[str, tuple[Any, Any, arb]] = {}
        self._wholes: dict[str, Any] = {}
        if _known(self.bound) is None:
            return False
        for name, (of, reference) in views.items():
            whole = conditional(of, of)
            inner = own = _known(whole)
            if reference == "marginal" and z:
                own = _known(_part(self.gamma, of, of))
            if inner is None or own is None:
                return False
            if set(of) <= set(v):
                b: Any = fmpq_mat([[int(i == j) for j in v] for i in of])
                s: Any = fmpq_mat(len(of), len(of))
            else:
                cross = conditional(v, of)
                solved = self.bound.solve(cross)
                b = solved.transpose()
                s = _minus(whole, _times(b, cross))
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
            most = float(abs(_trace(_times(rational(term["cost"]), self.bound))))
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
        return _times(_times(a, b), c)

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
                gradient = _plus(gradient, self._cost(term, _scaled(costs(term), weight)))
        weighted = {view: o for view, o in omega.items() if o != 0}
        given, above = dual["posteriors"], dual["parts"]
        posteriors = {v: self.factors(given[v], self.views[v][0].nrows()) for v in weighted}
        bounds = {k: self.factors(above[k], self.n) for k in above if k in self.caps}
        bounds[""] = self.factors(above[""], self.n)  # all are read before any proves nothing
        for view, o in weighted.items():
            s, b, reference = self.views[view]
            root, middle = posteriors[view]
            inverse = root.inv()
            y = _times(_times(inverse.transpose(), middle), inverse)
            own = log_det(middle)
            if own is None:
                return arb.neg_inf()
            own -= 2 * _sum(_real(root[i, i]).log() for i in range(root.nrows()))
            inner = (own + s.nrows() - _real(_trace(_times(y, s)))) / 2
            total += arb(o) * (reference + inner)
            pull = _times(_times(b.transpose(), y), b)
            half = o / 2 if isinstance(pull, fmpq_mat) else arb(o / 2)
            gradient = _minus(gradient, pull * half)
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
        burden = max(_burden(root), _burden(middle))
        return root if self.exact and burden <= BURDEN else arb_mat(root), middle

    def _least(self, gradient: Any, given: Mapping[str, Any]) -> arb | None:
        """Return a proved lower bound of min ⟨G, Σ⟩, or None if the parts given prove none."""
        value = arb(0)
        for name, cap in self.caps.items():
            if name in given:
                root, part = given[name]
                if not semidefinite(part):
                    return None
                inverse = root.inv()
                p = _times(_times(inverse.transpose(), part), inverse)
                gradient = _plus(gradient, p)
                value -= _real(_trace(_times(p, cap)))
        root, part = given[""]
        inner = _times(_times(root.transpose(), gradient), root)
        if not semidefinite(part) or not semidefinite(_plus(inner, part)):
            return None
        inverse = root.inv()
        own = _times(_times(inverse, self.bound), inverse.transpose())
        return value - _real(_trace(_times(part, own)))

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
        self.sigma = _times(_times(root, middle), root.transpose())
        self.broken: list[str] = []
        inverse = root.inv()
        own = _times(_times(inverse, proof.bound), inverse.transpose())
        if not semidefinite(middle):
            self.broken.append("0 ≼ Σ")
        if not semidefinite(_minus(own, middle)):
            self.broken.append("Σ ≼ Cov(V | Z)")
        for name, cap in proof.caps.items():
            if not semidefinite(_minus(cap, self.sigma)):
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
        value = _trace(_times(rational(term["cost"]), self.sigma))
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
            own = log_det(_plus(s, _times(_times(b, self.sigma), b.transpose())))
            if own is None:  # it may be infinite, or only too large for these balls
                return arb.nan()
            information = (reference - own / 2) / self.proof.units
            value += arb(self.proof._positive(view, weight)) * information
        if term["cost"] is not None:
            value += _real(_trace(_times(costs(term), self.sigma)))
        return value


# ---- numbers and matrices ----------------------------------------------------------------


def rational(rows: Any) -> fmpq_mat:
    """Return a matrix of a document exactly."""
    if not rows or {type(row) for row in rows} != {list} or len({len(row) for row in rows}) != 1:
        raise UnprovableError("a matrix without entries, or ragged")
    return fmpq_mat([[exactly(x) for x in row] for row in rows])


def costs(term: Mapping[str, Any]) -> Any:
    """Return the cost of a term exactly, or in balls of its radius."""
    middle, radius = rational(term["cost"]), ball(0, term["cost_radius"])
    if radius.is_zero():
        return middle
    return arb_mat([[arb(x) + radius for x in row] for row in middle.tolist()])


def _scaled(matrix: Any, factor: fmpq) -> Any:
    return matrix * (factor if isinstance(matrix, fmpq_mat) else arb(factor))


def _indices(given: Any, size: int) -> list[int]:
    found = list(given)
    if any(type(i) is not int or not 0 <= i < size for i in found) or len(set(found)) < len(found):
        raise UnprovableError(f"{given!r} do not number variables")
    return found


def _part(matrix: fmpq_mat, rows: Sequence[int], columns: Sequence[int]) -> fmpq_mat:
    return fmpq_mat([[matrix[i, j] for j in columns] for i in rows])


def _same(a: Any, b: Any) -> tuple[Any, ...]:
    """Return two matrices of one kind: rational if both are, else in balls."""
    if isinstance(a, fmpq_mat) and isinstance(b, fmpq_mat):
        return a, b
    return tuple(x if isinstance(x, arb_mat) else arb_mat(x) for x in (a, b))


def _times(a: Any, b: Any) -> Any:
    a, b = _same(a, b)
    return a * b


def _plus(a: Any, b: Any) -> Any:
    a, b = _same(a, b)
    return a + b


def _minus(a: Any, b: Any) -> Any:
    a, b = _same(a, b)
    return a - b


def _trace(matrix: Any) -> Any:
    return sum((matrix[i, i] for i in range(1, matrix.nrows())), matrix[0, 0])


def _real(value: Any) -> arb:
    return value if isinstance(value, arb) else arb(value)


def cholesky(matrix: Any) -> Matrix | None:
    """Return the rows of a Cholesky factor in balls; None unless its diagonal is proved > 0."""
    rows, left = _factor(matrix)
    return rows if left is None else None


def _factor(matrix: Any) -> tuple[Matrix, arb | None]:
    """Return rows of a Cholesky factor, and the first pivot that is not proved > 0, if any."""
    size = matrix.nrows()
    entries = matrix if isinstance(matrix, arb_mat) else arb_mat(matrix)
    rows: Matrix = []
    for i in range(size):
        row: list[arb] = []
        for j in range(i + 1):
            other = rows[j] if j < i else row
            left = entries[i, j] - _sum(a * b for a, b in zip(row, other, strict=False))
            if j < i:
                row.append(left / rows[j][j])
            elif left > 0:
                row.append(left.sqrt())
            else:
                return rows, left
        rows.append(row)
    return rows, None


def log_det(matrix: Any) -> arb | None:
    """Return log det of a symmetric matrix proved positive definite, else None."""
    rows = cholesky(matrix)
    return None if rows is None else 2 * _sum(row[-1].log() for row in rows)


def _known(matrix: Any) -> arb | None:
    """Return log det if it is known to 64 bits after the point, so that factors are worth much."""
    found = log_det(matrix)
    return None if found is None or found.rad() > 2.0**-64 else found


def semidefinite(matrix: Any) -> bool:
    """Tell whether a symmetric matrix is proved positive semidefinite.

    By a Cholesky factor in balls; a rational one that is only just so, exactly: it is if and only
    if the part whose columns are a basis of all columns is positive definite.
    """
    if isinstance(matrix, fmpq_mat):  # variables that are exactly 0 have no say
        rows = matrix.tolist()
        some = [i for i, row in enumerate(rows) if any(x != 0 for x in row)]
        if not some:
            return True
        matrix = _part(matrix, some, some)
    _, left = _factor(matrix)
    if left is None:
        return True
    if not isinstance(matrix, fmpq_mat) or left < 0:
        return False
    if _burden(matrix) > BURDEN:
        return False
    return definite(_part(matrix, *[basis(matrix)] * 2))


def _burden(matrix: fmpq_mat) -> int:
    """Return the size of the numbers that exact elimination multiplies, times their count.

    Of what is beyond ``BURDEN``, only that it is.
    """
    entries, count = [x for row in matrix.tolist() for x in row], matrix.nrows() ** 4
    bits, common = max(int(x.p).bit_length() for x in entries), 1
    for denominator in {int(x.q) for x in entries}:
        common = math.lcm(common, denominator)
        if count * common.bit_length() > BURDEN:
            break
    return count * (bits + common.bit_length())


def basis(matrix: fmpq_mat) -> list[int]:
    """Return the first columns that the others are combinations of."""
    reduced, rank = matrix.rref()
    columns = range(matrix.ncols())
    return [next(j for j in columns if reduced[i, j] != 0) for i in range(rank)]


def definite(matrix: fmpq_mat) -> bool:
    """Tell whether a rational symmetric matrix is positive definite.

    Where balls do not know the sign of a pivot, it is that of a determinant.
    """
    precision = PRECISION
    while True:
        with flint.ctx.workprec(precision):
            rows, left = _factor(matrix)
        if left is None or left < 0:
            return left is None
        some = range(len(rows) + 1)
        if _part(matrix, some, some).det() <= 0:
            return False
        precision *= 4
