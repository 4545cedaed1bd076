"""Both ends of a channel program, from its data, a primal and a dual alone.

* upper end: the channel meets the simple set in integers, every row in balls (linear rows in
  rationals where a ball cannot tell), and its objective bounds the minimum from above (C12);
* lower end (C6): Σ_s min_K {Σ_k ω_k Σ_v p(v,s) s_k(v) + p(s)(C_0 + Σ_j λ_j C_j)} − Σ_j λ_j b_j for
  any λ ≥ 0 and any scores s_k of the set that Φ_k = sup ⟨s, J_k⟩ is over, such as log(r/π) for any
  posterior r where Φ_k is information.  With the objective's weight 0 a positive value is a
  contradiction of the constraints (C7).  Of the worst of several objectives the upper end is the
  greatest, and the lower end that of any mean of them (P26).

Every number of the program is exact, or a ball whose two ends are both taken at their worst; the
multipliers are floats, and may be anything.  Needs the standard library and python-flint only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpz, fmpz_mat

from .balls import (
    PRECISION,
    Matrix,
    UnprovableError,
    ball,
    enclosure,
    exactly,
    number,
    smallest,
    total as _sum,
)
from .channel_data import KEPT, ChannelData
from .elimination import lesser
from .measures import Measure
from .multipliers import (
    AuxiliaryMultipliers,
    ExcessMultipliers,
    finite,
    float_table,
)
from .weighted_cost import WeightedCost

__all__ = ["ChannelProof", "Evaluation"]

Slope = tuple[list[arb_mat], arb_mat]  # p(v, s) in blocks of letters, and what multiplies it
Priced = tuple[Mapping[str, Any], list[arb]]  # a term, and its multiplier for each output


class ChannelProof(ChannelData):
    """The ends that a channel program's data prove."""

    def upper(self, primal: Mapping[str, Any]) -> Evaluation:
        """Evaluate a channel in whole numbers: of each letter what is not 0.

        ``numerators`` over ``denominator``, each at its place in ``outputs``, which increase.
        """
        flint.ctx.prec = PRECISION  # each time: other code may have changed what is one for all
        outputs, numerators = primal["outputs"], primal["numerators"]
        if len(outputs) != self.n or len(numerators) != self.n:
            raise UnprovableError("the channel has another shape")
        for places, row in zip(outputs, numerators, strict=True):
            # types, not values: 0.5 or True would pass for a number in a comparison
            if {*map(type, places), *map(type, row)} != {int} or len(places) != len(row):
                raise UnprovableError("the channel is not in whole numbers, each with its output")
            if not all(map(operator.lt, [-1, *places], [*places, self.m])) or min(row) <= 0:
                raise UnprovableError("the channel has outputs out of order, or no positive number")
        if type(primal["denominator"]) is not int:
            raise UnprovableError("the channel is not in whole numbers")
        return Evaluation(self, outputs, numerators, primal["denominator"])

    # ---- lower end -----------------------------------------------------------------------

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return the bound that arbitrary multipliers prove; what is no number counts as 0."""
        flint.ctx.prec = PRECISION
        program, m = self.program, self.m
        objective = 1 if dual.get("objective", 1) else 0  # 0: without the objective (C7)
        # the Lagrangian's terms with their multipliers, and what of it does not depend on K
        parts, bound = [], arb(0)
        for name, share in self._shares(dual.get("shares")).items():
            term, weight = self.objectives[name], objective * arb(share)
            parts.append((term, [weight] * m))  # w_i of (C5)
            bound += weight * enclosure(term["constant"])
        for name, row in program["rows"].items():
            lam = self._multipliers(row, dual["multipliers"].get(name, 0.0))
            parts.append((row["term"], lam))
            # c_j − b_j, a ball of all bounds that are meant: the lower end takes the worst of them
            constant = enclosure(row["term"]["constant"]) - ball(0, row["radius"])
            # strict=False: a row that is not per output has one bound, and counts once
            for x, b in zip(lam, self.bounds(row), strict=False):
                bound += 0 if x.is_zero() else x * (constant - arb(b))
        slopes = []  # of the information, by what a view sees
        for view, blocks in self.views.items():
            omega = [arb(0)] * m
            for term, lam in parts:
                if view in term["weights"]:
                    beta = self.weights(term, view)
                    omega = [o + x * b for o, x, b in zip(omega, lam, beta, strict=True)]  # (P14)
            if not all(o.is_zero() for o in omega):  # else a view is only reported
                measure = self.measures[view]
                scores = float_table(dual["scores"].get(view), measure.rows, m)
                slope = _slopes(scores, measure, omega)
                slopes += [] if slope == 0 * slope else [(blocks, slope)]
        # costs that count: a product with a multiplier of 0 would cost as much as any other
        priced = [
            (term, lam)
            for term, lam in parts
            if term["cost"] is not None and not all(x.is_zero() for x in lam)
        ]
        if self.elimination is None or not (slopes or priced):
            beside, least = self._least_of_entries(slopes, priced, dual)
            bound += beside
        else:
            least = self._least_of_letters(slopes, parts)
        return bound + least / self.total  # (C6)

    def _least_of_entries(
        self, slopes: list[Slope], parts: list[Priced], dual: Mapping[str, Any]
    ) -> tuple[arb, arb]:
        """Return what auxiliaries add to c of (C5), and Σ_s min of the rest, entry by entry."""
        priced = []
        for term, lam in parts:
            if (each := self.cost(term).by_letter) is None:
                priced.append((term, lam))
            else:  # a view of one label, as it were
                slopes = [*slopes, (self.in_blocks([each], arb_mat), arb_mat([lam]))]
        auxiliaries = [
            (ExcessMultipliers if name in self.excesses else AuxiliaryMultipliers)(
                self, name, dual["auxiliaries"].get(name)
            )
            for name in self.program["auxiliaries"]
        ]
        least = arb(0)
        beside = slopes or auxiliaries or any(self.boxes.values())
        alone = not beside and len(priced) == 1 and _uniform(priced[0][1])  # no place matters
        for at, letters in enumerate(self.blocks) if beside or priced else []:  # else all cost 0
            if alone:
                term, (level, *_) = priced[0]
                costs = self.cost(term).different(letters)
                least += self._least([[c * level for c in row] for row in costs], letters)
                continue
            g = arb_mat(len(letters), self.m)  # (C5), of a block of letters
            for blocks, slope in slopes:
                g += blocks[at].transpose() * slope  # the product of (C19), by FLINT
            for term, lam in priced:
                g += self._priced(term, lam, letters)
            table = g.tolist()
            for multipliers in auxiliaries:
                multipliers.add_to(table, letters)
            least += self._least(table, letters)  # min over 𝒬, letter by letter
        return _sum(multipliers.outside() for multipliers in auxiliaries), least

    def _least_of_letters(self, slopes: list[Slope], parts: list[Priced]) -> arb:
        """Return a lower end of Σ_s min of the same, one attribute after the other (C22).

        In whole numbers of 2^−k, rounded down: sums of balls take ten times as long.
        """
        elimination, off = self.elimination, arb(0)
        shared: dict[Any, list[Matrix]] = {}
        assert elimination is not None
        for term, (multiplier, *_) in parts:  # one for all outputs
            if term["cost"] is not None:
                off += multiplier * ball(0, term["cost_radius"])
                for part in self.cost(term).parts:
                    key = tuple(part.rows), tuple(part.columns)
                    table = [[multiplier * c for c in row] for row in part.table]
                    shared.setdefault(key, []).append(table)
        # some have values that others lack, which no letter and no output has
        added = [
            [list(map(_sum, zip(*rows, strict=False))) for rows in zip(*tables, strict=False)]
            for tables in map(shared.__getitem__, elimination.order)
        ]
        scores = [row for _, slope in slopes for row in slope.tolist()]
        entries = [x for rows in (scores, *added) for row in rows for x in row]
        if not all(x.is_finite() for x in entries):
            return arb.neg_inf()
        k = PRECISION - max((_exponent(x) for x in entries), default=0)
        tables = [[_floored(row, k) for row in rows].__getitem__ for rows in added]
        least, levels = arb(0), elimination.prepared()
        for letters in elimination.classes.values():
            at, place = divmod(letters[0], self._most)
            values = arb_mat(1, self.m)
            for blocks, slope in slopes:
                labels = range(blocks[at].nrows())
                likelihood = [blocks[at][v, place] / self.mass[letters[0]] for v in labels]
                values += arb_mat([likelihood]) * slope
            ends = elimination.least(_floored(values.entries(), k), letters, tables, levels, lesser)
            least += _sum(self.mass[s] * value for s, value in ends)
        return least * arb(2) ** -k + self.total * off

    def _shares(self, dual: Any) -> dict[str, fmpq]:
        """Return weights ≥ 0 of sum 1 of the objectives, exactly; the first has the rest (C3)."""
        first, *others = self.objectives
        weights = dual if isinstance(dual, dict) else {}
        shares = {name: max(exactly(finite(weights.get(name))), fmpq(0)) for name in others}
        total = sum(shares.values(), fmpq(0))
        # in rationals: weights of a sum above 1 would bound more than the greatest
        if total > 1:
            return {first: fmpq(0), **{name: share / total for name, share in shares.items()}}
        return {first: 1 - total, **shares}

    def _priced(self, term: Mapping[str, Any], lam: list[arb], letters: range) -> arb_mat:
        """Return a cost times its multiplier for each output."""
        block = self.block(term, letters)
        if _uniform(lam):  # nearly always; FLINT scales a matrix far faster
            return block * lam[0]
        return arb_mat([list(map(operator.mul, row, lam)) for row in block.tolist()])

    def _multipliers(self, row: Mapping[str, Any], value: Any) -> list[arb]:
        """Return λ per output (the same for all, unless the row is per output)."""
        if isinstance(value, list) and not (row["per_output"] and len(value) == self.m):
            value = 0.0
        lam = [arb(finite(x)) for x in (value if isinstance(value, list) else [value] * self.m)]
        return lam if row["sense"] == "==" else [x if x > 0 else arb(0) for x in lam]  # (C3)

    def _least(self, table: Matrix, letters: range) -> arb:
        """Return Σ_s min ⟨table[s], K[s]⟩ over rows of sum 1 within the entry bounds (P22)."""
        if self.boxes["lower"] is None and self.boxes["upper"] is None:
            return _sum(map(smallest, table))
        low, below = self.boxes["lower"] or ([[0] * self.m] * self.n, 1)
        high, above = self.boxes["upper"] or ([[1] * self.m] * self.n, 1)
        low, high = low[letters.start : letters.stop], high[letters.start : letters.stop]
        value = arb(0)
        for g, a, b in zip(table, low, high, strict=True):
            if sum(a) > below or sum(b) < above:
                return arb.pos_inf()  # no row at all
            # exact levels: with multipliers of 10⁶ a float's level lost 10⁻¹⁰ of what they prove
            ends = [(fmpq(x, below), fmpq(y, above)) for x, y in zip(a, b, strict=True)]
            nu, left = arb(0), 1 - fmpq(sum(a), below)
            for x, room in sorted((x.lower(), y - z) for x, (z, y) in zip(g, ends, strict=True)):
                nu, left = x, left - room  # any level is sound: this one is the best
                if left <= 0:
                    break
            value += nu
            # the right side of (P22), of each entry the end where it is least
            for x, (lo, hi) in zip(g, ends, strict=True):
                value += ((x - nu) * lo).min((x - nu) * hi)
        return value


class Evaluation:
    """A channel put into a program: what holds there, and what each term is worth.

    ``objective`` and ``terms`` are balls; ``violation`` is term − bound of each constraint (per
    output where it is); ``broken`` names what is not proved to hold, ``feasible`` if nothing.
    """

    def __init__(
        self, proof: ChannelData, outputs: Sequence[list[int]], numerators: Matrix, denominator: int
    ) -> None:
        self.proof, self._outputs, self._k, self._den = proof, outputs, numerators, denominator
        program = proof.program
        self._phi: dict[str, list[arb]] = {}
        self._exact: dict[str, list[fmpq]] = {}
        self.broken = self._simple()
        self.violation: dict[str, list[arb]] = {}
        for name, row in program["rows"].items():
            gaps = self.violation[name] = self._violation(row)
            # rationals are for what balls leave open, and take longer
            surely_broken = row["sense"] == "<=" and any(v > 0 for v in gaps)
            proved = not surely_broken and (all(v <= 0 for v in gaps) or self._holds(row))
            self.broken += [] if proved else [name]
        for name, aux in program["auxiliaries"].items():
            excess = self.proof.excesses.get(name)
            gaps = self._auxiliary(aux) if excess is None else [self._excess(aux, *excess)]
            self.violation[name] = gaps
            # a ball that touches 0 from above is no proof: repair then mixes in more of K₀ (C11)
            self.broken += [] if all(v <= 0 for v in gaps) else [name]
        self.feasible = not self.broken

    @cached_property
    def objective(self) -> arb:
        flint.ctx.prec = PRECISION
        first, *others = map(self._value, self.proof.objectives.values())
        # the greatest, max_i of (C12): which it is need not be known
        for value in others:
            first = first.max(value)
        return first if self.proof.sign > 0 else -first

    @cached_property
    def terms(self) -> dict[str, arb]:
        flint.ctx.prec = PRECISION
        return {name: self._value(term) for name, term in self.proof.program["terms"].items()}

    def _simple(self) -> list[str]:
        """Rows of sum 1 and entries within their bounds, in integers."""
        den, broken = self._den, []  # (C8): no rounding, so that nothing need be almost 1
        if den <= 0 or any(sum(row) != den for row in self._k):
            broken.append("channel")
        for name, sign in (("lower", 1), ("upper", -1)):
            for table, common in filter(None, [self.proof.boxes[name]]):
                # ℓ ≤ k/N ≤ u, times both denominators
                pairs = (zip(self._row(s), b, strict=True) for s, b in enumerate(table))
                if any(sign * (b * den - k * common) > 0 for row in pairs for k, b in row):
                    broken.append(name)
        return broken

    def _row(self, s: int) -> list[int]:
        """Return all numerators of a letter."""
        row = [0] * self.proof.m
        for y, k in zip(self._outputs[s], self._k[s], strict=True):
            row[y] = k
        return row

    def _joint(self, blocks: Sequence[Any], kind: Callable[[fmpz_mat], Any], zero: Any) -> Matrix:
        """Return Σ_s p(v, s) K(s, y), times the denominator, of a view in blocks of letters."""
        joint = [[zero] * self.proof.m for _ in range(blocks[0].nrows())]
        for block, (used, rows) in zip(blocks, self._used(), strict=True):
            for sums, products in zip(joint, (block * kind(rows)).tolist(), strict=True):
                for y, x in zip(used, products, strict=True):
                    sums[y] += x
        return joint

    @cached_property
    def _few(self) -> list[tuple[list[int], fmpz_mat]]:
        """What is used, kept for the next cost or view where that takes little room."""
        return list(self._blocks())

    def _used(self) -> Iterable[tuple[list[int], fmpz_mat]]:
        """Return the outputs that each block of letters uses, and its numerators there."""
        return self._few if self.proof.n * self.proof.m <= KEPT else self._blocks()

    def _blocks(self) -> Iterator[tuple[list[int], fmpz_mat]]:
        for letters in self.proof.blocks:
            # no other outputs: channels of thousands of letters are sparse
            used = sorted({y for s in letters for y in self._outputs[s]})
            place = {y: i for i, y in enumerate(used)}
            rows = [[0] * len(used) for _ in letters]
            for row, s in zip(rows, letters, strict=True):
                for y, k in zip(self._outputs[s], self._k[s], strict=True):
                    row[place[y]] = k
            yield used, fmpz_mat(rows)

    def phi(self, view: str) -> list[arb]:
        """Return Φ_k(y) for every output, in the program's units."""
        if view not in self._phi:
            measure, scale = self.proof.measures[view], self.proof.total * self._den
            joint = self._joint(self.proof.views[view], arb_mat, arb(0))
            # of J times A N, divided afterwards: F is homogeneous (P6)
            self._phi[view] = [measure.value(c) / scale for c in zip(*joint, strict=True)]
        return self._phi[view]

    def _rational_phi(self, view: str) -> list[fmpq]:
        """Return Φ_k(y) for every output in rationals, or raise ``UnprovableError``."""
        if view not in self._exact:
            proof, measure = self.proof, self.proof.measures[view]
            view_law, masses = proof.view(view, proof.integer_law)
            # whole numbers: no fraction is reduced before the last step
            joint = self._joint(proof.in_blocks(view_law, fmpz_mat), fmpz_mat, fmpz(0))
            phi = [measure.exactly(column, masses) for column in zip(*joint, strict=True)]
            scale = proof.integer_total * self._den
            self._exact[view] = [x / scale for x in phi if x is not None]
        if len(self._exact[view]) < self.proof.m:
            raise UnprovableError(f"what is leaked to {view} is not known to be rational")
        return self._exact[view]

    def _spent(self, cost: WeightedCost, zero: Any, per_output: bool) -> list[Any]:
        """Return ⟨cost, K⟩ times the denominator, in one number or in one for each output."""
        if per_output and (each := cost.by_letter) is not None:
            kind = arb_mat if isinstance(zero, arb) else fmpz_mat
            return self._joint(self.proof.in_blocks([each], kind), kind, zero)[0]
        if not per_output:
            return [cost.total(list(zip(self._outputs, self._k, strict=True)), zero)]
        value = [zero] * self.proof.m
        for s, (outputs, row) in enumerate(zip(self._outputs, self._k, strict=True)):
            for mass, costs in cost.of(s, outputs):
                products = map(operator.mul, costs, row)
                for y, product in zip(outputs, products, strict=True):
                    value[y] += mass * product
        return value

    def _columns(self, term: Mapping[str, Any], per_output: bool) -> list[arb]:
        """Return a term without its constant, or what each output contributes to it."""
        proof = self.proof
        value = [arb(0)] * (proof.m if per_output else 1)
        if term["cost"] is not None:
            spent = self._spent(proof.cost(term), arb(0), per_output)
            value = [v / (proof.total * self._den) for v in spent]  # by A N, as in (C12)
        for view in term["weights"]:
            informed = list(map(operator.mul, proof.weights(term, view), self.phi(view)))
            added = informed if per_output else [_sum(informed)]
            value = list(map(operator.add, value, added))
        return value

    def _value(self, term: Mapping[str, Any]) -> arb:
        value = self._columns(term, False)[0] + enclosure(term["constant"])
        if term["weights"] and value.contains(arb(float(value.mid()))):  # it may be this very one
            # a float in the ball: the value may be that float, and the claim without any width
            value = arb((self._rational(term, False) or [value])[0])
        return value

    def _violation(self, row: Mapping[str, Any]) -> list[arb]:
        term, many = row["term"], row["per_output"]
        value = self._columns(term, True) if many else [self._value(term)]
        off = ball(0, row["radius"])  # v ≤ 0 must hold for every bound that is meant
        gaps = [v - (arb(b) + off) for v, b in zip(value, self.proof.bounds(row), strict=True)]
        return [abs(g) for g in gaps] if row["sense"] == "==" else gaps

    def _holds(self, row: Mapping[str, Any]) -> bool:
        """Decide a row in rationals, where a ball cannot tell equality (C13)."""
        # a bound that is only known to a radius is equal to nothing
        value = None if number(row["radius"]) else self._rational(row["term"], row["per_output"])
        if value is None:
            return False
        pairs = zip(value, self.proof.bounds(row), strict=True)
        return all(v == b if row["sense"] == "==" else v <= b for v, b in pairs)

    def _rational(self, term: Mapping[str, Any], per_output: bool) -> list[fmpq] | None:
        """Return a term, or what each output contributes to it, in rationals if it is rational."""
        proof, value = self.proof, [fmpq(0)] * self.proof.m
        if self._den <= 0 or any(map(number, (term["cost_radius"], term["constant"][1]))):
            return None
        try:
            for view in term["weights"]:
                weighted = map(
                    operator.mul, proof.weights(term, view, exactly), self._rational_phi(view)
                )
                value = list(map(operator.add, value, weighted))
            value = value if per_output else [sum(value, exactly(term["constant"][0]))]
            if term["cost"] is not None:
                cost, common = proof.integer_cost(term["cost"])
                scale = proof.integer_total * self._den * common
                spent = (fmpq(x, scale) for x in self._spent(cost, 0, per_output))  # (C13)
                value = list(map(operator.add, value, spent))
        except UnprovableError:  # no common denominator either
            return None
        return value

    def _excess(self, aux: Mapping[str, Any], weights: list[arb], levels: list[arb]) -> arb:
        excesses, scale = [-level for level in levels], self.proof.total * self._den
        for weight, outputs, row in zip(weights, self._outputs, self._k, strict=True):
            for y, k in zip(outputs, row, strict=True):
                excesses[y] += weight * k / scale
        return _sum(x.max(arb(0)) for x in excesses) - enclosure(aux["bound"])  # least u of (P25)

    def _auxiliary(self, aux: Mapping[str, Any]) -> list[arb]:
        # at the channel itself the best auxiliaries are its extremes: a_y = min, u_y = max
        bound = operator.sub(*map(exactly, aux["bound"]))  # the least that is meant
        columns: list[list[int]] = [[] for _ in range(self.proof.m)]
        for outputs, row in zip(self._outputs, self._k, strict=True):
            for y, k in zip(outputs, row, strict=True):
                columns[y].append(k)
        n = self.proof.n
        ends = [(max(c, default=0), min(c) if len(c) == n else 0) for c in columns]
        if aux["kind"] == "maximum":  # u_y = max_s K; of a ratio a_y = min_s K
            ends = [(sum(high for high, _ in ends), self._den)]
        return [arb(high - bound * low) / self._den for high, low in ends]


def _slopes(scores: Matrix, measure: Measure, omega: list[arb]) -> arb_mat:
    """Return what untrusted scores come to in the measure's set, times their weights ω(y)."""
    none = [arb(0)] * len(measure.reference)
    # the map (C2) is skipped where ω(y) = 0: its exponentials would be multiplied by 0
    columns = [
        none if w.is_zero() else [w * s for s in measure.inside(column)]
        for w, column in zip(omega, zip(*scores, strict=True), strict=True)
    ]
    return arb_mat(columns).transpose()


def _exponent(value: arb) -> int:
    """Return k so that a ball is below 2^k in absolute value."""
    middle, exponent = value.abs_upper().man_exp()
    return int(exponent) + int(middle).bit_length()


def _floored(balls: Iterable[arb], k: int) -> list[int]:
    """Return the lower ends in whole numbers of 2^−k, rounded down."""
    ends = (
        (int(middle), int(exponent) + k)
        for middle, exponent in (x.lower().man_exp() for x in balls)
    )
    return [middle << shift if shift >= 0 else middle >> -shift for middle, shift in ends]


def _uniform(lam: list[arb]) -> bool:
    """Tell whether a multiplier is one for all outputs."""
    return all(x == lam[0] for x in lam)
