"""Both ends of a channel program, from its data, a primal and a dual alone.

* upper end: the channel meets the simple set in integers, every row in balls (linear rows in
  rationals where a ball cannot tell), and its objective bounds the minimum from above;
* lower end: Σ_s min_K {Σ_k ω_k Σ_v p(v,s) log(r/π) + p(s)(C_0 + Σ_j λ_j C_j)} − Σ_j λ_j b_j for
  any posteriors r and λ ≥ 0, as Φ_k ≥ Σ_v J_v log(r_v/π_v).  With the objective's weight 0 a
  positive value is a contradiction of the constraints.

Every number of the program is exact, or a ball whose two ends are both taken at their worst; the
multipliers are floats, and may be anything.  Needs the standard library and python-flint only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpz_mat

from cvxprivacy.verifier.balls import (
    PRECISION,
    Matrix,
    UnprovableError,
    ball,
    enclosure,
    exactly,
    number,
    total as _sum,
    whole,
)
from cvxprivacy.verifier.channel_data import ChannelData, cellwise, layers_of

__all__ = ["ChannelProof", "Evaluation"]

_CLIP = 1e4  # scores beyond e^±10000 prove nothing more


class ChannelProof(ChannelData):
    """The ends that a channel program's data prove."""

    def upper(self, primal: Mapping[str, Any]) -> Evaluation:
        """Evaluate a channel: ``numerators`` (n, m) over ``denominator``, in integers."""
        flint.ctx.prec = PRECISION
        numerators, denominator = primal["numerators"], primal["denominator"]
        if len(numerators) != self.n or any(len(row) != self.m for row in numerators):
            raise UnprovableError("the channel has another shape")
        if {type(k) for row in [*numerators, [denominator]] for k in row} != {int}:
            raise UnprovableError("the channel is not in whole numbers")
        return Evaluation(self, numerators, denominator)

    # ---- lower end -----------------------------------------------------------------------

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that arbitrary multipliers prove; what is no number counts as 0."""
        flint.ctx.prec = PRECISION
        program, m = self.program, self.m
        objective = 1 if dual.get("objective", 1) else 0
        parts = [(program["objective"], [arb(objective)] * m)]
        bound = objective * enclosure(program["objective"]["constant"])
        for name, row in program["rows"].items():
            lam = self._multipliers(row, dual["multipliers"].get(name, 0.0))
            parts.append((row["term"], lam))
            constant = enclosure(row["term"]["constant"]) - ball(0, row["radius"])
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
                full = None if same else cellwise(operator.mul, cost.tolist(), [lam] * self.n)
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
        count, bound = {"ratio": 2, "maximum": 1}[aux["kind"]], enclosure(aux["bound"])
        given = dual if isinstance(dual, list) and len(dual) == count else [None] * count
        spread = [[p] * self.m for p in self.mass]
        parts = [
            cellwise(lambda p, x: p * max(x, 0.0), spread, _table(d, self.n, self.m)) for d in given
        ]
        sums = [[_sum(column) for column in zip(*part, strict=True)] for part in parts]
        if aux["kind"] == "ratio":
            table = cellwise(lambda t, mu, eta: t + eta - mu, table, *parts)
            outside = [mu - bound * eta for mu, eta in zip(*sums, strict=True)]
            return table, _min([arb(0), *outside]) / self.total
        table = cellwise(lambda t, mu: t + mu, table, *parts)
        return table, bound * _min([-mu for mu in sums[0]]) / self.total

    def _least(self, table: Matrix) -> arb:
        """Return Σ_s min ⟨table[s], K[s]⟩ over rows of sum 1 within the entry bounds."""
        if self.boxes["lower"] is None and self.boxes["upper"] is None:
            return _sum(_min(row) for row in table)
        none = [[0] * self.m] * self.n
        low, below = self.boxes["lower"] or (none, 1)
        high, above = self.boxes["upper"] or ([[1] * self.m] * self.n, 1)
        value = arb(0)
        for g, a, b in zip(table, low, high, strict=True):
            if sum(a) > below or sum(b) < above:
                return arb.pos_inf()  # no row at all
            ends = [(fmpq(x, below), fmpq(y, above)) for x, y in zip(a, b, strict=True)]
            level, left = 0.0, 1 - sum(a) / below
            for x, room in sorted(
                (float(x), float(y - z)) for x, (z, y) in zip(g, ends, strict=True)
            ):
                level, left = x, left - room
                if left <= 0:
                    break
            nu = arb(_finite(level))  # any level is sound; this one is the best
            value += nu
            for x, (lo, hi) in zip(g, ends, strict=True):
                value += ((x - nu) * lo).min((x - nu) * hi)
        return value


class Evaluation:
    """A channel put into a program: what holds there, and what each term is worth.

    ``objective`` and ``terms`` are balls; ``violation`` is term − bound of each constraint (per
    output where it is); ``broken`` names what is not proved to hold, ``feasible`` if nothing.
    """

    def __init__(self, proof: ChannelData, numerators: Matrix, denominator: int) -> None:
        self.proof, self._k, self._den = proof, numerators, denominator
        program = proof.program
        self._channel = arb_mat(fmpz_mat(numerators)) / arb(denominator)
        self._phi: dict[str, list[arb]] = {}
        self.broken = self._simple()
        self.violation: dict[str, list[arb]] = {}
        for name, row in program["rows"].items():
            gaps = self.violation[name] = self._violation(row)
            surely_broken = row["sense"] == "<=" and any(v > 0 for v in gaps)
            proved = not surely_broken and (all(v <= 0 for v in gaps) or self._holds(row))
            self.broken += [] if proved else [name]
        for name, aux in program["auxiliaries"].items():
            gaps = self.violation[name] = self._auxiliary(aux)
            self.broken += [] if all(v <= 0 for v in gaps) else [name]
        self.feasible = not self.broken

    @cached_property
    def objective(self) -> arb:
        flint.ctx.prec = PRECISION
        return self._value(self.proof.program["objective"])

    @cached_property
    def terms(self) -> dict[str, arb]:
        flint.ctx.prec = PRECISION
        return {name: self._value(term) for name, term in self.proof.program["terms"].items()}

    def _simple(self) -> list[str]:
        """Rows of sum 1 and entries within their bounds, in integers."""
        den, broken = self._den, []
        if den <= 0 or any(sum(row) != den or min(row) < 0 for row in self._k):
            broken.append("channel")
        for name, sign in (("lower", 1), ("upper", -1)):
            for table, common in filter(None, [self.proof.boxes[name]]):
                pairs = (zip(k, b, strict=True) for k, b in zip(self._k, table, strict=True))
                if any(sign * (b * den - k * common) > 0 for row in pairs for k, b in row):
                    broken.append(name)
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
        """Decide J = π q exactly: a ball cannot tell no information from very little."""
        seen, reference = self.proof.view(view, self.proof.whole)
        mass = sum(reference)
        joint = (fmpz_mat(seen) * fmpz_mat(self._k)).tolist()
        for column in zip(*joint, strict=True):
            q = sum(column)
            if any(j * mass != r * q for j, r in zip(column, reference, strict=True)):
                return False
        return True

    def _columns(self, term: Mapping[str, Any]) -> list[arb]:
        """Return what each output contributes to a term (without its constant)."""
        proof, cost = self.proof, self.proof.cost(term)
        value = [arb(0)] * proof.m
        if cost is not None:
            products = cellwise(operator.mul, cost.tolist(), self._channel.tolist())
            value = [_sum(column) / proof.total for column in zip(*products, strict=True)]
        for view in term["weights"]:
            weighted = zip(value, proof.weights(term, view), self.phi(view), strict=True)
            value = [v + w * p for v, w, p in weighted]
        return value

    def _value(self, term: Mapping[str, Any]) -> arb:
        return _sum(self._columns(term)) + enclosure(term["constant"])

    def _violation(self, row: Mapping[str, Any]) -> list[arb]:
        value = self._columns(row["term"]) if row["per_output"] else [self._value(row["term"])]
        off = ball(0, row["radius"])
        gaps = [v - (arb(b) + off) for v, b in zip(value, self.proof.bounds(row), strict=True)]
        return [abs(g) for g in gaps] if row["sense"] == "==" else gaps

    def _holds(self, row: Mapping[str, Any]) -> bool:
        """Decide a linear row in rationals, where a ball cannot tell equality."""
        term, proof = row["term"], self.proof
        inexact = any(map(number, (row["radius"], term["cost_radius"], term["constant"][1])))
        if term["weights"] or inexact or term["cost"] is None:
            return False
        try:
            _, common = whole([row for layer in layers_of(term["cost"]) for row in layer])
        except UnprovableError:  # no common denominator
            return False
        cost = proof.weighted(term["cost"], proof.whole, lambda c: int(number(c) * common))
        products = cellwise(operator.mul, cost, self._k)
        value = [fmpq(sum(column)) for column in zip(*products, strict=True)]
        total = fmpq(sum(map(sum, proof.whole)) * self._den * common)
        if not row["per_output"]:
            value = [sum(value, fmpq(0)) + exactly(term["constant"][0]) * total]
        pairs = zip(value, (b * total for b in proof.bounds(row)), strict=True)
        return all(v == b if row["sense"] == "==" else v <= b for v, b in pairs)

    def _auxiliary(self, aux: Mapping[str, Any]) -> list[arb]:
        bound = operator.sub(*map(exactly, aux["bound"]))  # the least that is meant
        ends = [(max(column), min(column)) for column in zip(*self._k, strict=True)]
        if aux["kind"] == "maximum":  # u_y = max_s K; of a ratio a_y = min_s K
            ends = [(sum(high for high, _ in ends), self._den)]
        return [arb(high - bound * low) / self._den for high, low in ends]


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
        return float(x) if type(x) in (int, float) and math.isfinite(x) else 0.0
    except OverflowError:  # an integer beyond every float
        return 0.0


def _min(values: Sequence[arb]) -> arb:
    least = values[0]
    for value in values[1:]:
        least = least.min(value)
    return least
