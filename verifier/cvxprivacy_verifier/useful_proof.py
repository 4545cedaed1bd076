r"""Both ends of the most useful release under a rule of every letter.

    maximise  Σ_y μ(c_y)   over any number of outputs y with c_y(s) = p(y | s),  c_y ∈ 𝒞,
              Σ_y c_y = 1,  Σ_y ⟨C_j(y), p c_y⟩ ≤ b_j

The cone 𝒞 = {c ≥ 0: ⟨a_i, p c⟩ ≤ 0, c(s) ≤ γ c(s')} is one for all outputs, and μ, a sum of
measures, is convex and homogeneous.  So every c_y may be split into extreme rays of 𝒞 at no loss:

* lower end: any channel whose columns are in 𝒞, as of every channel program;
* upper end: for any λ and any κ_j ≥ 0, Σ_s λ(s) + Σ_j κ_j b_j + t, where t is the greatest
  (μ(r) − Σ_j κ_j ⟨C_j(y), p r⟩ − ⟨λ, r⟩)/⟨p, r⟩ of any ray r and output y.  It is enough to look at
  vertices of a set that holds the rays: {1, γ}ⁿ where there is γ alone (beyond 20 letters they are
  bounded by ``corners``), else {c ∈ 𝒞: ⟨p, c⟩ = 1}, whose vertices are found from every choice of
  rows and of as many letters and one more.

Rows are rational there, each radius at its worst: that makes 𝒞 wider, which is sound.  Nothing of a
document says which rays there are.  What is proved is (U3)–(U7) of ``docs/theory/useful.md``.
Needs the standard library and python-flint only.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import combinations, permutations, product
from typing import Any

import flint
from flint import arb, arb_mat, fmpq, fmpq_mat

from .balls import (
    PRECISION,
    Matrix,
    UnaffordableError,
    UnprovableError,
    ball,
    enclosure,
    exactly,
    number,
)
from .channel_proof import ChannelProof, Priced
from .corners import Corners, by_mass
from .costs import layers_of
from .multipliers import finite
from .work import LISTED, affordable

__all__ = ["UsefulProof"]

_LEAST_RATIO = 1 + arb(2) ** -34  # M divides by γ − 1; a greater γ makes 𝒞 wider, which is sound


class UsefulProof(ChannelProof):
    """The ends that a program proves whose objective is maximised, one output at a time."""

    kind, sign = "useful", -1

    def __init__(self, program: Mapping[str, Any]) -> None:
        super().__init__(program)
        if any(self.boxes.values()) or len(self.objectives) > 1:
            raise UnprovableError("bounds of entries, or several objectives")
        (self._objective,) = self.objectives.values()
        weights = self._objective["weights"].values()
        constant = self._objective["constant"]
        if self._objective["cost"] is not None or any(map(number, constant)):
            raise UnprovableError("an objective that is no measure alone")
        if any(isinstance(weight, list) for weight in weights):
            raise UnprovableError("weights that differ between outputs")
        if any(aux["kind"] != "ratio" for aux in program["auxiliaries"].values()):
            raise UnprovableError("a rule that is not of every letter")
        self._each: dict[str, Any] = {}  # rows of every output, and of all of them together
        self._all: dict[str, Any] = {}
        for name, row in program["rows"].items():
            if row["term"]["weights"]:
                raise UnprovableError(f"row {name} is not linear")
            (self._each if row["per_output"] else self._all)[name] = row
        # γ: the least of several, each of which bounds every pair
        ratios = [enclosure(aux["bound"]) for aux in program["auxiliaries"].values()]
        self.ratio: arb | None = reduce(arb.min, ratios) if ratios else None

    # ---- the upper end -------------------------------------------------------------------

    def lower(self, dual: Mapping[str, Any]) -> arb:
        """Return a lower end of −Σ μ(c_y): what λ and κ prove, whatever they are."""
        flint.ctx.prec = PRECISION
        if not dual["objective"]:  # a contradiction of the rows is one of a convex program
            return arb.neg_inf()
        letters = self._letters(dual.get("letters"))
        bound, priced = reduce(operator.add, letters), []
        for name, row in self._all.items():
            kappa = self._multipliers(row, dual["multipliers"].get(name, 0.0))[0]
            if not kappa.is_zero():
                constant = enclosure(row["term"]["constant"]) - ball(0, row["radius"])
                bound += kappa * (arb(self.bounds(row)[0]) - constant)
                priced.append((row["term"], [kappa] * self.m))
        # what is linear in a ray: its mass, what λ is worth, J of each view, and its costs
        table = [self.mass, [self.total * x for x in letters]]
        places = []
        for view, weight in self._objective["weights"].items():
            rows, _ = self.view(view, self.law)
            places.append((ball(weight), self.measures[view], len(table), len(table) + len(rows)))
            table += rows
        start = len(table)
        table += self._by_output(priced)
        most = arb.neg_inf()
        if self.corners is not None:
            for prices in self._price_lists(letters, table[start:]):
                worth = self.corners.dearest(prices)[0]
                most = most.max(worth.max(worth / self.corners.ratio))  # as 1 ≤ ⟨p, r⟩ ≤ γ
            return -(bound + most)
        for values in self._corners(table) if self.plain else self._vertices(table):
            worth = -values[1]
            for weight, measure, first, last in places:
                worth += weight * measure.value(values[first:last])
            if priced:
                worth -= reduce(arb.min, values[start:])  # of the cheapest output
            most = most.max(worth / values[0])
        return -(bound + most)  # (U4)

    @property
    def plain(self) -> bool:
        """Whether γ is all that 𝒞 is made of."""
        return self.ratio is not None and not self._each

    @cached_property
    def corners(self) -> Corners | None:
        """What bounds corners that are too many to look at."""
        if not self.plain or self.n <= LISTED:
            return None
        assert self.ratio is not None
        if len(self._objective["weights"]) == 1:
            ((view, weight),) = self._objective["weights"].items()
            law, reference = self.view(view, self.integer_law)
            told, mass = by_mass(self.measures[view]), self.integer_mass
            columns = list(zip(*law, strict=True))
            alone = all(sum(map(bool, line)) == 1 for line in (*law, *columns))
            # M is of J = p r beside π = p: neither of a part of the law, nor of another reference
            entire = reference == list(map(sum, law)) and mass == list(map(sum, columns))
            if told is not None and alone and entire:
                masses = [fmpq(x, self.integer_total) for x in mass]
                ratio = self.ratio.max(_LEAST_RATIO)
                return Corners(masses, ratio, ball(weight) * told[0], told[1])
        problem = f"{self.n} letters, where {LISTED} are the most, unless mutual information, χ² or"
        raise UnaffordableError(f"{problem} the total variation of the letters themselves is told")

    def _price_lists(self, letters: list[arb], costs: Matrix) -> Iterator[list[arb]]:
        """Yield what a letter costs, of outputs that cost otherwise each once."""
        yield from (
            [x + c / self.total for x, c in zip(letters, row, strict=True)] for row in costs
        )
        if not costs:
            yield letters

    def _letters(self, values: Any) -> list[arb]:
        """Return λ; what is no table of it counts as 0."""
        if not isinstance(values, list) or len(values) != self.n:
            return [arb(0)] * self.n
        return [arb(finite(x)) for x in values]

    def _by_output(self, priced: list[Priced]) -> Matrix:
        """Return Σ_j κ_j C_j(s, y) times masses, of outputs that cost otherwise each once."""
        if not priced:
            return []
        parts = [
            part
            for term, _ in priced
            for layer in layers_of(term["cost"], self.n, self.m)
            for part in layer
        ]
        # as they stand: sums of floats are rounded, and texts would be put one behind the other
        rows = ([row[c] for c in part.columns] for part in parts for row in part.table)
        columns = zip(*rows, strict=True)
        different = {column: y for y, column in enumerate(columns)}.values()
        costs = [row for letters in self.blocks for row in self._block_of(priced, letters).tolist()]
        return [[row[y] for row in costs] for y in different]

    def _block_of(self, priced: list[Priced], letters: range) -> arb_mat:
        return reduce(operator.add, (self._priced(*pair, letters) for pair in priced))

    # ---- rays ----------------------------------------------------------------------------

    def _corners(self, table: Matrix) -> Iterator[list[arb]]:
        """Yield a table times every r of {1, γ}ⁿ: c is its least entry times a mean of such."""
        assert self.ratio is not None
        steps = [[x * (self.ratio - 1) for x in column] for column in zip(*table, strict=True)]
        half = self.n // 2  # two lists of sums, of which every pair is added up
        ones = _sums([reduce(operator.add, row) for row in table], steps[:half])
        for more in _sums([arb(0)] * len(table), steps[half:]):
            for sums in ones:
                yield list(map(operator.add, sums, more))

    def _vertices(self, table: Matrix) -> Iterator[list[arb]]:
        """Yield a table times every vertex of {c ∈ 𝒞: ⟨p, c⟩ = 1}, or of a wider cone's."""
        for support, entries in self.vertices:
            pairs = [(s, arb(x)) for s, x in zip(support, entries, strict=True)]
            yield [reduce(operator.add, (row[s] * x for s, x in pairs)) for row in table]

    @cached_property
    def vertices(self) -> list[tuple[tuple[int, ...], tuple[fmpq, ...]]]:
        """Letters and entries of every vertex, exactly.

        Of k letters it is the one solution of ⟨p, c⟩ = 1 and of k − 1 of its rows that hold with
        equality (U5): rows of full rank go on to a basis.
        """
        rows, mass = self._rows, [fmpq(x) for x in self.integer_mass]
        vertices: dict[tuple[tuple[int, ...], tuple[fmpq, ...]], None] = {}
        room = 0
        for k in range(1, min(len(rows) + 1, self.n) + 1):
            right = fmpq_mat(k, 1, [1] + [0] * (k - 1))
            for support, tight in product(
                combinations(range(self.n), k), combinations(range(len(rows)), k - 1)
            ):
                square = [mass, *(rows[i] for i in tight)]
                try:
                    solved = fmpq_mat([[row[s] for s in support] for row in square]).solve(right)
                except ZeroDivisionError:  # several solutions, or none: no basis
                    continue
                entries = tuple(solved.entries())
                if min(entries) > 0 and all(_product(row, support, entries) <= 0 for row in rows):
                    vertices[support, entries] = None
                    affordable(room := room + 2 * k)  # choices are counted, not what they come to
        return list(vertices)

    @property
    def integer_mass(self) -> list[int]:
        """p(s) in whole numbers."""
        return [sum(column) for column in zip(*self.integer_law, strict=True)]

    @cached_property
    def _rows(self) -> list[list[fmpq]]:
        """What ⟨·, c⟩ ≤ 0 is of every c of 𝒞, exactly: a times p, less what it may be off by."""
        mass = self.integer_mass
        rows = []
        for name, row in self._each.items():
            term = row["term"]
            weighted, common = self.integer_cost(term["cost"])
            each, off = weighted.by_letter, exactly(term["cost_radius"])
            if each is None or number(row["radius"]) or any(x != 0 for x in self.bounds(row)):
                raise UnprovableError(f"row {name} is not the same for all outputs, or not ≤ 0")
            for sign in (1, -1) if row["sense"] == "==" else (1,):
                pairs = zip(each, mass, strict=True)
                rows.append([fmpq(sign * a) / common - off * p for a, p in pairs])
        if self.ratio is not None:
            most = _exactly_above(self.ratio)
            for s, other in permutations(range(self.n), 2):
                row = [fmpq(0)] * self.n
                row[s], row[other] = fmpq(1), -most
                rows.append(row)
        return rows


def _sums(start: list[arb], steps: list[list[arb]]) -> list[list[arb]]:
    """Return a start with every choice of steps."""
    sums = [start]
    for step in steps:
        sums += [list(map(operator.add, values, step)) for values in sums]
    return sums


def _product(row: list[fmpq], support: Sequence[int], entries: Sequence[fmpq]) -> fmpq:
    return reduce(operator.add, (row[s] * x for s, x in zip(support, entries, strict=True)))


def _exactly_above(value: arb) -> fmpq:
    """Return a rational at or above every number of a ball."""
    mantissa, exponent = value.upper().man_exp()
    return fmpq(mantissa) * fmpq(2) ** int(exponent)
