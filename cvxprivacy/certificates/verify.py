"""Recompute both ends of a proof from program, primal and dual alone.

``python -m cvxprivacy.certificates.verify proof.json`` forgets every number that a certificate
claims and proves its own ends in ball arithmetic (128 bits) from the program's data, a channel
in integers over a common denominator, and multipliers that may be anything:

* upper end: the channel meets the simple set in integers, every row in balls (linear rows in
  rationals where a ball cannot tell), and its objective bounds the minimum from above;
* lower end: Σ_s min_K {Σ_k ω_k Σ_v p(v,s) log(r/π) + p(s)(C_0 + Σ_j λ_j C_j)} − Σ_j λ_j b_j for
  any posteriors r and λ ≥ 0, as Φ_k ≥ Σ_v J_v log(r_v/π_v).  With the objective's weight 0 a
  positive value is a contradiction of the constraints.

Solving uses the same functions.  Needs the standard library and python-flint only.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat, fmpz_mat

SCHEMA = "cvxprivacy/certificate/1"
TOLERANCE = {"default": 1e-6, "high": 1e-9}
PRECISION = 128
_OUTPUTS = 1_000_000  # a short file must not ask for all memory
_CLIP = 1e4  # scores beyond e^±10000 prove nothing more

_MALFORMED = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, MemoryError, RecursionError),
)

FIELDS = {"schema", "software", "accuracy", "table"}
FIELDS |= {"program", "primal", "dual", "claim", "sha256"}
_NUMBER = re.compile(r"-?\d{1,2000}(/\d{1,2000})?")

Matrix = list[list[Any]]


class UnprovableError(ValueError):
    """The data are no program, no channel or no multipliers."""


def floor(ball: arb) -> float:
    """Return a float at or below every number of the ball; −inf if there is none."""
    return _outward(ball.lower(), -math.inf)


def ceil(ball: arb) -> float:
    """Return a float at or above every number of the ball; +inf if there is none."""
    return _outward(ball.upper(), math.inf)


def _outward(end: arb, side: float) -> float:
    if end.is_nan():
        return side
    value = float(end)
    if math.isnan(value):
        return side
    for _ in range(4):
        ball = arb(value)
        if (ball <= end) if side < 0 else (ball >= end):
            return value
        value = math.nextafter(value, side)
    return side


def status(lower: float, upper: float, tolerance: float) -> str:
    """Return what a pair of proved ends amounts to; ``tolerance`` is in their units."""
    if not (math.isfinite(lower) and math.isfinite(upper) and lower <= upper):
        return "uncertified"
    return "certified" if upper - lower <= tolerance else "loose"


def decode(end: Any) -> float:
    """Return an end of a claim exactly, or raise ``UnprovableError``."""
    if end in ("inf", "-inf") or (isinstance(end, float) and math.isfinite(end)):
        return float(end)
    raise UnprovableError(f"{end!r} is no end of an enclosure")


def _ball(number: float, radius: float) -> arb:
    if not (math.isfinite(number) and math.isfinite(radius) and radius >= 0):
        raise UnprovableError(f"{number!r} ± {radius!r} is no number")
    return arb(number, radius) if radius else arb(number)


class ChannelProof:
    """The exact program behind ``ChannelProgram.to_dict()``, and the ends it proves."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        flint.ctx.prec = PRECISION
        if program.get("kind") != "channel":
            raise UnprovableError(f"no program of kind {program.get('kind')!r} is known")
        self.program = program
        self.units: arb = {"nats": arb(1), "bits": arb(2).log()}[program["units"]]
        self.atoms: Matrix = program["law"]
        self.n, self.m = len(self.atoms[0]), int(program["outputs"])
        if any(not (math.isfinite(a) and a >= 0) for row in self.atoms for a in row):
            raise UnprovableError("the law has a negative or infinite atom")
        self.mass = [_sum(map(arb, column)) for column in zip(*self.atoms, strict=True)]
        self.total = _sum(self.mass)
        if not all(p > 0 for p in self.mass) or not 0 < self.m <= _OUTPUTS:
            raise UnprovableError("a letter without mass, or a number of outputs out of range")
        self.views: dict[str, tuple[arb_mat, list[arb]]] = {}
        for name in program["views"]:
            seen, masses = self.view(name, arb)
            self.views[name] = arb_mat(seen), [mass / _sum(masses) for mass in masses]
        self._costs: dict[tuple[int, float], arb_mat | None] = {}
        rows = [("objective", "<=", program["objective"])]
        rows += [(name, row["sense"], row["term"]) for name, row in program["rows"].items()]
        for name, sense, term in rows:
            negative = any(not w >= 0 for view in term["weights"] for w in self.weights(term, view))
            if sense not in ("<=", "==") or negative or (sense == "==" and term["weights"]):
                raise UnprovableError(f"{name} is not convex")
        for name, row in program["rows"].items():
            if row["per_output"] and any(row["term"]["constant"]):
                raise UnprovableError(f"{name} has a constant for every output")
        for aux in program["auxiliaries"].values():
            if aux["kind"] not in ("ratio", "maximum"):
                raise UnprovableError(f"no auxiliary of kind {aux['kind']!r} is known")

    # ---- the program, in balls or in rationals -------------------------------------------

    def view(self, name: str, number: Any) -> tuple[Matrix, list[Any]]:
        """Return p(v, s)·total and the reference masses of a view."""
        view = self.program["views"][name]
        labels = view["labels"]
        tables = [labels, view["reference"] or labels]
        if any(type(v) is not int or v < -1 for table in tables for row in table for v in row):
            raise UnprovableError(f"view {name} has a label that is no whole number ≥ −1")
        size = 1 + max(label for table in tables for row in table for label in row)
        if size > len(self.atoms) * self.n:
            raise UnprovableError(f"view {name} has more labels than there are atoms")
        seen = [[number(0)] * self.n for _ in range(size)]
        masses = [number(0)] * size
        for rows in zip(*tables, self.atoms, strict=True):
            for s, (v, r, atom) in enumerate(zip(*rows, strict=True)):
                if atom and v >= 0:
                    seen[v][s] += number(atom)
                if atom and r >= 0:
                    masses[r] += number(atom)
        if not all(mass > 0 for mass in masses):
            raise UnprovableError(f"view {name} has a label of reference mass 0")
        return seen, masses

    def weights(self, term: Mapping[str, Any], view: str) -> list[float]:
        if view not in self.views:
            raise UnprovableError(f"no view {view!r}")
        weights = term["weights"].get(view, 0.0)
        weights = weights if isinstance(weights, list) else [weights] * self.m
        if len(weights) != self.m or not all(map(math.isfinite, weights)):
            raise UnprovableError(f"weights of {view}")
        return weights

    def weighted(self, cost: Any, number: Any) -> Matrix:
        """Return Σ_l law[l, s] C(l, s, y), which multiplies K(s, y)."""
        layers = cost if isinstance(cost[0][0], list) else [cost]
        atoms = [[number(a) for a in row] for row in self.atoms]
        if len(layers) == 1:
            atoms = [[sum(column, number(0)) for column in zip(*atoms, strict=True)]]
        table = [[number(0)] * self.m] * self.n
        for masses, layer in zip(atoms, layers, strict=True):
            if not all(math.isfinite(c) for row in layer for c in row):
                raise UnprovableError("an infinite cost")
            spread = [[p] * self.m for p in masses]
            table = _map(lambda t, p, c: t + p * number(c), table, spread, layer)
        return table

    def cost(self, term: Mapping[str, Any]) -> arb_mat | None:
        """Return the weighted cost with its radius, or None if there is none."""
        key = id(term["cost"]), term["cost_radius"]
        if key not in self._costs:
            table = None if term["cost"] is None else self.weighted(term["cost"], arb)
            if table is not None and term["cost_radius"]:
                off = _ball(0.0, term["cost_radius"])
                table = _map(lambda t, p: t + p * off, table, [[p] * self.m for p in self.mass])
            self._costs[key] = None if table is None else arb_mat(table)
        return self._costs[key]

    def bounds(self, row: Mapping[str, Any]) -> list[fmpq]:
        count, bound = self.m if row["per_output"] else 1, row["bound"]
        bounds = bound if isinstance(bound, list) else [bound] * count
        if len(bounds) != count:
            raise UnprovableError(f"{len(bounds)} bounds where {count} are needed")
        if not all(isinstance(b, str) and _NUMBER.fullmatch(b) for b in bounds):
            raise UnprovableError("a bound that is no fraction")
        return [_rational(Fraction(b)) for b in bounds]

    def scale(self) -> float:
        """Return one unit of the objective: a nat of information plus the span of costs."""
        term = self.program["objective"]
        information = max((max(self.weights(term, view)) for view in term["weights"]), default=0.0)
        flat = [] if term["cost"] is None else list(_flatten(term["cost"]))
        span = max(flat) - min(flat) if flat else 0.0
        scale = float(arb(information) / self.units) + span or 1.0
        if not math.isfinite(scale):
            raise UnprovableError("the objective's scale is not finite")
        return scale

    def upper(self, primal: Mapping[str, Any]) -> Evaluation:
        """Evaluate a channel: ``numerators`` (n, m) over ``denominator``, in integers."""
        numerators: Matrix = [[int(k) for k in row] for row in primal["numerators"]]
        if len(numerators) != self.n or any(len(row) != self.m for row in numerators):
            raise UnprovableError("the channel has another shape")
        return Evaluation(self, numerators, int(primal["denominator"]))

    # ---- lower end -----------------------------------------------------------------------

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that arbitrary multipliers prove; what is no number counts as 0."""
        program, m = self.program, self.m
        objective = 1 if dual.get("objective", 1) else 0
        parts = [(program["objective"], [arb(objective)] * m)]
        bound = objective * _ball(*program["objective"]["constant"])
        for name, row in program["rows"].items():
            lam = self._multipliers(row, dual["multipliers"].get(name, 0.0))
            parts.append((row["term"], lam))
            constant = _ball(*row["term"]["constant"]) - _ball(0.0, row["radius"])
            for x, b in zip(lam, self.bounds(row), strict=False):
                bound += 0 if x.is_zero() else x * (constant - arb(b))
        g = arb_mat(self.n, m)
        for view, (matrix, reference) in self.views.items():
            omega = [arb(0)] * m
            for term, lam in parts:
                if view in term["weights"]:
                    beta = self.weights(term, view)
                    omega = [o + x * b for o, x, b in zip(omega, lam, beta, strict=True)]
            if not all(o.is_zero() for o in omega):
                scores = _table(dual["scores"].get(view), len(reference), m, _CLIP)
                g += matrix.transpose() * _log_posterior(scores, reference, omega) / self.units
        for term, lam in parts:
            cost = self.cost(term)
            if cost is not None and not all(x.is_zero() for x in lam):
                same = all(x == lam[0] for x in lam)
                full = None if same else _map(operator.mul, cost.tolist(), [lam] * self.n)
                g += cost * lam[0] if full is None else arb_mat(full)
        table = g.tolist()
        for name, aux in program["auxiliaries"].items():
            table, value = self._auxiliary(aux, dual["auxiliaries"].get(name), table)
            bound += value
        return bound + self._least(table) / self.total

    def _multipliers(self, row: Mapping[str, Any], value: Any) -> list[arb]:
        """Return λ per output (the same for all, unless the row is per output)."""
        if isinstance(value, list) and not (row["per_output"] and len(value) == self.m):
            value = 0.0
        lam = [arb(_finite(x)) for x in (value if isinstance(value, list) else [value] * self.m)]
        return lam if row["sense"] == "==" else [x if x > 0 else arb(0) for x in lam]

    def _auxiliary(self, aux: Mapping[str, Any], dual: Any, table: Matrix) -> tuple[Matrix, arb]:
        """Add an auxiliary's multipliers to the table; return it and what is left outside."""
        count, bound = {"ratio": 2, "maximum": 1}[aux["kind"]], _ball(*aux["bound"])
        given = dual if isinstance(dual, list) and len(dual) == count else [None] * count
        spread = [[p] * self.m for p in self.mass]
        parts = [
            _map(lambda p, x: p * max(x, 0.0), spread, _table(d, self.n, self.m)) for d in given
        ]
        sums = [[_sum(column) for column in zip(*part, strict=True)] for part in parts]
        if aux["kind"] == "ratio":
            table = _map(lambda t, mu, eta: t + eta - mu, table, *parts)
            outside = [mu - bound * eta for mu, eta in zip(*sums, strict=True)]
            return table, _min([arb(0), *outside]) / self.total
        table = _map(lambda t, mu: t + mu, table, *parts)
        return table, bound * _min([-mu for mu in sums[0]]) / self.total

    def _least(self, table: Matrix) -> arb:
        """Return Σ_s min ⟨table[s], K[s]⟩ over rows of sum 1 within the entry bounds."""
        low, high = self.program["lower"], self.program["upper"]
        if low is None and high is None:
            return _sum(_min(row) for row in table)
        low = low or [[0.0] * self.m] * self.n
        high = high or [[1.0] * self.m] * self.n
        value = arb(0)
        for g, a, b in zip(table, low, high, strict=True):
            if sum(map(Fraction, a)) > 1 or sum(map(Fraction, b)) < 1:
                return arb.pos_inf()  # no row at all
            level, left = 0.0, 1.0 - sum(a)
            for x, lo, hi in sorted(zip(map(float, g), a, b, strict=True), key=lambda t: t[0]):
                level, left = x, left - (hi - lo)
                if left <= 0:
                    break
            nu = arb(_finite(level))  # any level is sound; this one is the best
            value += nu
            for x, lo, hi in zip(g, a, b, strict=True):
                value += ((x - nu) * lo).min((x - nu) * hi)
        return value


class Evaluation:
    """A channel put into a program: what holds there, and what each term is worth.

    ``objective`` and ``terms`` are balls; ``violation`` is term − bound of each constraint (per
    output where it is); ``broken`` names what is not proved to hold, ``feasible`` if nothing.
    """

    def __init__(self, proof: ChannelProof, numerators: Matrix, denominator: int) -> None:
        self.proof, self._k, self._den = proof, numerators, denominator
        program = proof.program
        self._channel = arb_mat(fmpz_mat(numerators)) / arb(denominator)
        self._phi: dict[str, list[arb]] = {}
        self.broken = self._simple()
        self.violation: dict[str, list[arb]] = {}
        for name, row in program["rows"].items():
            gaps = self.violation[name] = self._violation(row)
            surely_broken = row["sense"] == "<=" and any(v > 0 for v in gaps)
            proved = not surely_broken and (all(v <= 0 for v in gaps) or self._exactly(row))
            self.broken += [] if proved else [name]
        for name, aux in program["auxiliaries"].items():
            gaps = self.violation[name] = self._auxiliary(aux)
            if not all(v <= 0 for v in gaps):
                self.broken.append(name)
        self.feasible = not self.broken

    @cached_property
    def objective(self) -> arb:
        return self._value(self.proof.program["objective"])

    @cached_property
    def terms(self) -> dict[str, arb]:
        return {name: self._value(term) for name, term in self.proof.program["terms"].items()}

    def _simple(self) -> list[str]:
        """Rows of sum 1 and entries within their bounds, in integers."""
        den, program, broken = self._den, self.proof.program, []
        if den <= 0 or any(sum(row) != den or min(row) < 0 for row in self._k):
            broken.append("channel")
        for name, sign in (("lower", 1), ("upper", -1)):
            for row, bound in zip(self._k, program[name] or [], strict=bool(program[name])):
                if any(sign * (Fraction(b) * den - k) > 0 for k, b in zip(row, bound, strict=True)):
                    broken.append(name)
                    break
        return broken

    def phi(self, view: str) -> list[arb]:
        """Return Φ_k(y) for every output, in the program's units."""
        if view not in self._phi:
            matrix, reference = self.proof.views[view]
            scale = self.proof.total * self.proof.units
            columns = zip(*(matrix * self._channel).tolist(), strict=True)
            phi = [_divergence(column, reference) / scale for column in columns]
            if all(abs(value) < 2.0**-80 for value in phi) and self._independent(view):
                phi = [arb(0)] * self.proof.m
            self._phi[view] = phi
        return self._phi[view]

    def _independent(self, view: str) -> bool:
        """Decide J = π q in rationals: a ball cannot tell no information from very little."""
        seen, reference = self.proof.view(view, _rational)
        whole = sum(reference, fmpq(0))
        for column in zip(*(fmpq_mat(seen) * fmpq_mat(fmpz_mat(self._k))).tolist(), strict=True):
            q = sum(column, fmpq(0))
            if any(j * whole != r * q for j, r in zip(column, reference, strict=True)):
                return False
        return True

    def _columns(self, term: Mapping[str, Any]) -> list[arb]:
        """Return what each output contributes to a term (without its constant)."""
        proof, cost = self.proof, self.proof.cost(term)
        value = [arb(0)] * proof.m
        if cost is not None:
            products = _map(operator.mul, cost.tolist(), self._channel.tolist())
            value = [_sum(column) / proof.total for column in zip(*products, strict=True)]
        for view in term["weights"]:
            weighted = zip(value, proof.weights(term, view), self.phi(view), strict=True)
            value = [v + w * p for v, w, p in weighted]
        return value

    def _value(self, term: Mapping[str, Any]) -> arb:
        return _sum(self._columns(term)) + _ball(*term["constant"])

    def _violation(self, row: Mapping[str, Any]) -> list[arb]:
        value = self._columns(row["term"]) if row["per_output"] else [self._value(row["term"])]
        off = _ball(0.0, row["radius"])
        gaps = [v - (arb(b) + off) for v, b in zip(value, self.proof.bounds(row), strict=True)]
        return [abs(g) for g in gaps] if row["sense"] == "==" else gaps

    def _exactly(self, row: Mapping[str, Any]) -> bool:
        """Decide a linear row in rationals, where a ball cannot tell equality."""
        term, proof = row["term"], self.proof
        inexact = row["radius"] or term["cost_radius"] or term["constant"][1]
        if term["weights"] or inexact or term["cost"] is None:
            return False
        products = _map(operator.mul, proof.weighted(term["cost"], _rational), self._k)
        value = [sum(column, fmpq(0)) for column in zip(*products, strict=True)]
        total = sum((_rational(a) for atoms in proof.atoms for a in atoms), fmpq(0)) * self._den
        if not row["per_output"]:
            value = [sum(value, fmpq(0)) + _rational(term["constant"][0]) * total]
        pairs = zip(value, (b * total for b in proof.bounds(row)), strict=True)
        return all(v == b if row["sense"] == "==" else v <= b for v, b in pairs)

    def _auxiliary(self, aux: Mapping[str, Any]) -> list[arb]:
        bound, columns = _ball(*aux["bound"]), list(zip(*self._k, strict=True))
        if aux["kind"] == "ratio":  # a_y = min_s K
            return [(arb(max(c)) - bound * min(c)) / self._den for c in columns]
        return [arb(sum(max(c) for c in columns)) / self._den - bound]  # u_y = max_s K


def _divergence(joint: Sequence[arb], reference: Sequence[arb]) -> arb:
    """Enclose Σ_v J_v log(J_v / (π_v q)), q = Σ_v J_v, for J ≥ 0 known to lie in the balls."""
    q = _sum(joint)
    if q.is_zero():
        return q
    if q > 0 and all(j.is_zero() or j > 0 for j in joint):
        pairs = zip(joint, reference, strict=True)
        return _sum(j * (j / (p * q)).log() for j, p in pairs if not j.is_zero())
    value, top = arb(0), q.upper()  # some ball touches 0: Σ J log(J/q) − Σ J log π, by parts
    for j, p in zip(joint, reference, strict=True):
        high = j.upper()
        value -= (j if j > 0 else arb(0).union(high)) * p.log()
        if j > 0 and q > 0:
            value += j * (j / q).log()
        elif high > 0:  # 0 ≥ J log(J/q) ≥ J log(J/top), least at J = top/e or at the high end
            value += arb(0).union(high * (high / top).log() if high * 3 < top else -top)
    return value


def _log_posterior(scores: Matrix, reference: list[arb], omega: list[arb]) -> arb_mat:
    """Return ω(y)·log(r(v|y)/π(v)), r ∝ π e^score normalised in balls."""
    columns = []
    for w, column in zip(omega, zip(*scores, strict=True), strict=True):
        if w.is_zero() or min(column) == max(column):  # no weight, or r = π
            columns.append([arb(0)] * len(column))
            continue
        balls = [arb(x) for x in column]
        log_norm = _sum(p * b.exp() for p, b in zip(reference, balls, strict=True)).log()
        columns.append([w * (b - log_norm) for b in balls])
    return arb_mat(columns).transpose()


def _table(values: Any, rows: int, columns: int, limit: float = math.inf) -> Matrix:
    """Return a matrix of finite floats within ±limit, zeros if it has another shape."""
    fits = isinstance(values, list) and len(values) == rows
    if not fits or any(not isinstance(row, list) or len(row) != columns for row in values):
        return [[0.0] * columns] * rows
    return [[max(-limit, min(limit, _finite(x))) for x in row] for row in values]


def _finite(x: Any) -> float:
    try:
        return float(x) if isinstance(x, int | float) and math.isfinite(x) else 0.0
    except OverflowError:  # an integer beyond every float
        return 0.0


def _map(function: Callable[..., Any], *tables: Matrix) -> Matrix:
    pairs = [list(zip(*rows, strict=True)) for rows in zip(*tables, strict=True)]
    return [[function(*cell) for cell in row] for row in pairs]


def _sum(values: Iterable[arb]) -> arb:
    return sum(values, arb(0))


def _min(values: Sequence[arb]) -> arb:
    least = values[0]
    for value in values[1:]:
        least = least.min(value)
    return least


def _flatten(table: Any) -> Iterator[float]:
    for row in table:
        yield from _flatten(row) if isinstance(row, list) else (row,)


def _rational(x: float | Fraction) -> fmpq:
    return fmpq(*x.as_integer_ratio())


# ---- the document ------------------------------------------------------------------------


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its own digest, in canonical JSON."""
    body = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def proof_of(program: Mapping[str, Any]) -> Any:
    """Return the proof of a program of any kind."""
    from cvxprivacy.certificates.covariance import CovarianceProof
    from cvxprivacy.certificates.hamming_proof import HammingProof

    kinds = {"covariance": CovarianceProof, "hamming": HammingProof}
    return kinds.get(str(program.get("kind")), ChannelProof)(program)


def recompute(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims that program, primal and dual of a document prove by themselves."""
    proof = proof_of(document["program"])
    dual, primal = document["dual"], document["primal"]
    lower, upper, terms = -math.inf, math.inf, {}
    bound = arb.neg_inf() if dual is None else proof.lower(dual)
    tolerance = TOLERANCE[document["accuracy"]] * proof.scale()
    if dual is not None and not dual["objective"]:
        found = "infeasible" if bound > 0 else "uncertified"
        lower = math.inf if bound > 0 else lower
    else:
        lower = floor(bound)
        if primal is not None:
            evaluation = proof.upper(primal)
            if not evaluation.feasible:
                raise UnprovableError(f"the primal breaks {', '.join(evaluation.broken)}")
            upper = ceil(evaluation.objective)
            terms = {k: [floor(v), ceil(v)] for k, v in evaluation.terms.items()}
        found = status(lower, upper, tolerance)
    ends = {"lower": lower, "upper": upper, "terms": terms}
    return {"status": found, "tolerance": tolerance, **ends}


def disagreements(document: Mapping[str, Any]) -> list[str]:
    """Return every claim of a document that is not proved; an empty list is a verified one."""
    if document.get("schema") != SCHEMA:
        return [f"schema is {document.get('schema')!r}, not {SCHEMA!r}"]
    found = []
    try:
        if document.get("sha256") != digest(document):
            found.append("sha256 does not match: the file was changed after it was written")
        proved, claim = recompute(document), document["claim"]
        if set(document) != FIELDS or set(claim) != {"status", "lower", "upper", "terms"}:
            found.append("a field is unknown or missing")
        if claim["status"] != proved["status"]:
            found.append(f"status {claim['status']!r} is claimed, {proved['status']!r} is proved")
        ends = [("the value", claim["lower"], claim["upper"], proved["lower"], proved["upper"])]
        for name in {**claim["terms"], **proved["terms"]}:
            ends.append((name, *claim["terms"][name], *proved["terms"][name]))
        for name, low, high, lower, upper in ends:
            if not (decode(low) <= lower and upper <= decode(high)):
                found.append(f"{name} in [{low}, {high}] is claimed, [{lower}, {upper}] is proved")
        wide = decode(claim["upper"]) - decode(claim["lower"]) > proved["tolerance"]
        if claim["status"] == "certified" and wide:
            found.append("certified is claimed of ends too far apart")
    except _MALFORMED as error:
        found.append(f"not a certificate: {type(error).__name__}: {error}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def read_document(path: str) -> dict[str, Any]:
    """Return the JSON object that a file holds; OSError or ValueError if it holds none."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file, object_pairs_hook=_once)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    return document


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the files named; exit 0 if all are proved, 1 if one is not, 2 if unreadable."""
    paths = list(sys.argv[1:] if arguments is None else arguments)
    if not paths or paths[0] in ("-h", "--help"):
        print("usage: python -m cvxprivacy.certificates.verify PROOF.json …")
        return 0 if paths else 2
    code = 0
    for path in paths:
        try:
            document = read_document(path)
        except (OSError, ValueError, RecursionError) as error:
            print(f"{path}: unreadable: {error}", file=sys.stderr)
            return 2
        problems = disagreements(document)
        if problems:
            code = 1
            print(f"{path}: NOT verified", *problems, sep="\n  ")
        else:
            claim, units = document["claim"], document["program"]["units"]
            ends = f"[{claim['lower']}, {claim['upper']}]"
            print(f"{path}: verified, {claim['status']}, value in {ends} ({units})")
    return code


if __name__ == "__main__":
    sys.exit(main())
