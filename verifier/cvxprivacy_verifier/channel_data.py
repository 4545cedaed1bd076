"""A channel program as the proofs read it: checked, in balls or in rationals.

What is read is (P1) and the data of (P13); masses and costs are divided by Σ law last of all (C6).
Every number of the program is exact, or a ball whose two ends are both taken at their worst.
Needs the standard library and python-flint only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any, Self

import flint
from flint import arb, arb_mat, fmpq

from .balls import (
    PRECISION,
    Matrix,
    UnprovableError,
    ball,
    enclosure,
    exactly,
    floor,
    integers,
    number,
    smallest,
    total as _sum,
)
from .costs import Layer, Part, integer_layers, layers_of, read
from .elimination import Elimination, elimination_of
from .fields import parts_of
from .measures import Measure, measure_of
from .weighted_cost import WeightedCost
from .work import BLOCK, affordable

__all__ = ["ChannelData"]

# A ball takes some hundred bytes in Python: blocks bound what is held of tables of n m entries.
_BLOCK = 500_000  # entries of a table at a time, of no more than ``BLOCK`` letters
_ROWS = 4_000_000  # entries of the rows that the parts of costs have in a block
KEPT = 2_000_000  # entries of costs that are kept from one end to the next
_RATIO = (1 + 2.0**-44) / (1 - 2.0**-44)  # of costs that are told apart
_USUAL = 1e9  # masses, and their inverses, with which costs keep their digits in floats


class ChannelData:
    """The exact program behind ``ChannelProgram.to_dict()``, checked while it is read."""

    kind = "channel"
    sign = 1  # −1 where the objective is maximised: what is proved is the least of −f

    def __init__(self, program: Mapping[str, Any]) -> None:
        flint.ctx.prec = PRECISION
        if program.get("kind") != self.kind:
            raise UnprovableError(f"no program of kind {program.get('kind')!r} is known")
        self.program = program
        # the one irrational number of the program's units: scores and values are multiplied by it
        nat: arb = {"nats": arb(1), "bits": 1 / arb(2).log()}[program["units"]]
        self.atoms: Matrix = program["law"]
        self.n, self.m = len(self.atoms[0]), program["outputs"]
        if type(self.m) is not int or not self.m > 0:
            raise UnprovableError("a number of outputs out of range")
        self._most = min(BLOCK, max(1, _BLOCK // self.m))  # letters of a block
        affordable(self._room())  # before any table is made
        plain = all(isinstance(a, int | float) for row in self.atoms for a in row)
        if not plain or any(not 0 <= a < math.inf for row in self.atoms for a in row):
            raise UnprovableError("the law has a negative or infinite atom")
        # the same law in whole numbers, for (C13); the factor cancels, as Σ law has it too
        self.integer_law, _ = integers(self.atoms)
        self.integer_total = sum(map(sum, self.integer_law))
        starts = range(0, self.n, self._most)
        self.blocks = [range(s, min(s + self._most, self.n)) for s in starts]
        # entry bounds as whole numbers over a common one, compared with integers k(s, y): (C8)
        boxes = ((k, program[k]) for k in ("lower", "upper"))
        self.boxes = {k: None if table is None else integers(table) for k, table in boxes}
        for table, _ in filter(None, self.boxes.values()):
            if len(table) != self.n or any(len(row) != self.m for row in table):
                raise UnprovableError("entry bounds of another shape")
        self.law = [[arb(a) for a in row] for row in self.atoms]
        self.mass = [_sum(column) for column in zip(*self.law, strict=True)]  # A p(s)
        self.total = _sum(self.mass)
        if not all(p > 0 for p in self.mass):
            raise UnprovableError("a letter without mass")
        self.views: dict[str, list[arb_mat]] = {}
        self.measures: dict[str, Measure] = {}
        for name, view in program["views"].items():
            if set(view) != {"labels", "reference", "measure"}:
                raise UnprovableError(f"view {name} has not labels, reference and measure alone")
            view_law, masses = self.view(name, self.law)
            self.views[name] = self.in_blocks(view_law, arb_mat)
            reference = [mass / _sum(masses) for mass in masses]  # π, of sum 1
            self.measures[name] = measure_of(view["measure"], reference, nat)
            if view["reference"] is not None and not self.measures[name].relative:
                raise UnprovableError(f"view {name} has a reference of its own")
        self._costs: dict[tuple[int, Any], WeightedCost] = {}
        self._kept: dict[tuple[int, Any, int], arb_mat] = {}
        # what is only reported is read as strictly: a document has no number that is none
        for term in program["terms"].values():
            self._read(term)
        self.objectives = parts_of(program["objective"])
        rows = [("objective", "<=", part) for part in self.objectives.values()]
        rows += [(name, row["sense"], row["term"]) for name, row in program["rows"].items()]
        for name, sense, term in rows:
            # α, β ≥ 0 of (P13), and linear equalities: without them a minorant is none
            negative = any(not w >= 0 for w in self._read(term))
            if sense not in ("<=", "==") or negative or (sense == "==" and term["weights"]):
                raise UnprovableError(f"{name} is not convex")
        for name, row in program["rows"].items():
            if type(row["per_output"]) is not bool:
                raise UnprovableError(f"{name} is neither one row nor one per output")
            if row["per_output"] and any(map(number, row["term"]["constant"])):
                raise UnprovableError(f"{name} has a constant for every output")
            ball(0, row["radius"])  # which is no negative number
        self.excesses = _excesses(program["auxiliaries"], self.mass, self.m)

    def rebounded(self, program: Mapping[str, Any]) -> Self | None:
        """Return the proof of a program that is this one but for bounds of rows; None of others.

        Of one made here, not of a file: what bounds may ask for is not counted again.  They are
        read where they are used; nothing else need be read a second time.
        """
        if _but_for_bounds(program) != _but_for_bounds(self.program):
            return None
        bounds = {name: row["bound"] for name, row in program["rows"].items()}
        rows = {name: {**row, "bound": bounds[name]} for name, row in self.program["rows"].items()}
        _ = self._steps  # which no bound moves either
        proof = copy(self)
        proof.program = {**self.program, "rows": rows}  # of the very terms that costs are kept by
        return proof

    def _room(self) -> int:
        """Return how many entries all tables have that the program asks for at one time."""
        program, letters, most = self.program, self.n + self.m, len(self.atoms) * self.n
        views, rows = program["views"].values(), program["rows"].values()
        objectives = parts_of(program["objective"]).values()
        self._parts([*objectives, *(row["term"] for row in rows)])
        many = len(program["rows"]) + len(program["terms"]) + len(views) + len(objectives) - 1
        sizes = self.m + many * (8 * self.m + len(views)) + len(rows)
        sizes += 16 * self.m * len(program["auxiliaries"])
        affordable(sizes)
        # |V| is the greatest label: one label of 10⁹ in a short file would make a table of as many
        for view in views:
            last = max(label for table in _tables(view) for row in table for label in row)
            if type(last) is not int or not 0 <= last < most:
                raise UnprovableError("a view has more labels than there are atoms")
            sizes += (1 + last) * letters
        return sizes

    def _parts(self, terms: list[Any]) -> None:
        """Refuse costs of too many parts: their rows are made for each block of letters."""
        # by identity: rows may share one cost, which is then made once
        parts = {id(t["cost"]): t["cost"]["parts"] for t in terms if isinstance(t["cost"], dict)}
        each = (min(len(part["table"]), self._most) for cost in parts.values() for part in cost)
        affordable(sum(each) * self.m, _ROWS)

    def view(self, name: str, law: Matrix) -> tuple[Matrix, list[Any]]:
        """Return p(v, s)·total and the reference masses of a view, for the law in some numbers."""
        tables = _tables(self.program["views"][name])
        if any(type(v) is not int or v < -1 for table in tables for row in table for v in row):
            raise UnprovableError(f"view {name} has a label that is no whole number ≥ −1")
        size = 1 + max(label for table in tables for row in table for label in row)
        none = law[0][0] * 0
        # p(v, s) of (P1), an atom with the label −1 being unseen
        view_law = [[none] * self.n for _ in range(size)]
        masses = [none] * size
        for rows in zip(tables[0], tables[-1], law, strict=True):
            for s, (v, r, atom) in enumerate(zip(*rows, strict=True)):
                if v >= 0:
                    view_law[v][s] += atom
                if r >= 0:
                    masses[r] += atom
        if not all(mass > 0 for mass in masses):  # π > 0: J/π is asked for
            raise UnprovableError(f"view {name} has a label of reference mass 0")
        return view_law, masses

    def in_blocks(self, rows: Matrix, kind: Callable[[Matrix], Any]) -> list[Any]:
        """Return rows of all letters as matrices, one for each block of letters."""
        return [kind([row[b.start : b.stop] for row in rows]) for b in self.blocks]

    def _read(self, term: Mapping[str, Any]) -> list[arb]:
        """Return all weights of a term, of which every number is one, used or not."""
        if not isinstance(term["weights"], dict):
            raise UnprovableError("weights that are no mapping")
        enclosure(term["constant"])
        ball(0, term["cost_radius"])
        if term["cost"] is not None:
            self.cost(term)
        return [w for view in term["weights"] for w in self.weights(term, view)]

    def weights(
        self, term: Mapping[str, Any], view: str, kind: Callable[[Any], Any] = ball
    ) -> list[Any]:
        """Return the weight of a view's information for each output, in balls or in rationals."""
        if view not in self.views:
            raise UnprovableError(f"no view {view!r}")
        weights = term["weights"][view]
        if not isinstance(weights, list):
            return [kind(weights)] * self.m
        if len(weights) != self.m:
            raise UnprovableError(f"weights of {view}")
        return [kind(w) for w in weights]

    def cost(self, term: Mapping[str, Any]) -> WeightedCost:
        """Return the weighted cost of a term that has one, with its radius."""
        key = id(term["cost"]), term["cost_radius"]
        if key not in self._costs:
            self._costs[key] = self._weighted(term["cost"], term["cost_radius"])
        return self._costs[key]

    def _weighted(self, cost: Any, radius: Any) -> WeightedCost:
        parts = layers_of(cost, self.n, self.m)
        if isinstance(cost, dict):
            _refuse_long(parts, self.m)
        layers = read(parts, ball, arb)
        # one table for all layers of atoms is multiplied by p(s), several each by their own atoms
        law = self.law if len(layers) > 1 else [self.mass]
        if number(radius):  # ± radius for every entry: one more layer, of a single ball
            layers = [*layers, [Part([[ball(0, radius)]], [0] * self.n, [0] * self.m)]]
            law = [*law, self.mass]
        return WeightedCost(layers, law)

    def integer_cost(self, cost: Any) -> tuple[WeightedCost, int]:
        """Return the weighted cost in whole numbers, and the denominator that they are over."""
        layers, common = integer_layers(layers_of(cost, self.n, self.m))
        law = self.integer_law
        if len(layers) == 1:
            law = [[sum(column) for column in zip(*law, strict=True)]]
        return WeightedCost(layers, law), common

    def block(self, term: Mapping[str, Any], letters: range) -> arb_mat:
        """Return the weighted cost of a block of letters; what is small is kept for next time."""
        key = id(term["cost"]), term["cost_radius"], letters.start
        block = self._kept.get(key)
        if block is None:
            block = self.cost(term).block(letters)
            if (len(self._kept) + 1) * len(self.blocks[0]) * self.m <= KEPT:
                self._kept[key] = block
        return block

    def bounds(self, row: Mapping[str, Any]) -> list[fmpq]:
        """Return the bound of a row, for each output if it is a row for each."""
        count, bound = self.m if row["per_output"] else 1, row["bound"]
        bounds = bound if isinstance(bound, list) else [bound] * count
        if len(bounds) != count:
            raise UnprovableError(f"{len(bounds)} bounds where {count} are needed")
        # most rows have one bound for all outputs; with its type, as True would pass for 1
        rationals = {b: exactly(b) for _, b in {(type(b), b) for b in bounds}}
        return [rationals[b] for b in bounds]

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged, given the upper end.

        What the enclosure allows beyond the objective's least cost: upper − Σ_s p(s) min_y C_0,
        and beyond what is leaked without a release.  At least the smallest step that there is, the
        least positive C_0(s, y) − min_y C_0(s, y), or of a measure, such as a nat; at most the
        greatest of a measure and the greatest such difference.  So no forbidding cost makes a wide
        enclosure look narrow (C16).
        """
        step, ceiling, least = self._steps
        room = floor(arb(upper) - least) if math.isfinite(upper) else math.inf
        return max(step, min(room, ceiling)) if math.isfinite(room) else max(step, ceiling)

    @cached_property
    def elimination(self) -> Elimination | None:
        """How the least of letters is found one attribute after the other, where that pays."""
        return elimination_of(self.program)

    @cached_property
    def _steps(self) -> tuple[float, float, arb]:
        """Return the smallest step of the objective, the greatest, and its least cost.

        That one in a ball: offsets that cancel between letters must not absorb the rest.
        """
        flint.ctx.prec = PRECISION
        scales = (_steps_of(self, part) for part in self.objectives.values())
        # of several objectives: what is small in any of them counts as small
        steps, ceilings, (least, *others) = zip(*scales, strict=True)
        for other in others:  # the greatest of several is below none of their least
            least = least.max(other)
        return min(steps), max(ceilings), least


def _but_for_bounds(program: Mapping[str, Any]) -> dict[str, Any]:
    rows = {name: {**row, "bound": None} for name, row in program["rows"].items()}
    return {**program, "rows": rows}


def _steps_of(data: ChannelData, term: Mapping[str, Any]) -> tuple[float, float, arb]:
    """Return the smallest step of an objective, the greatest, and its least cost."""
    least, small, large = ball(term["constant"][0]), [], [0.0]
    for view in term["weights"]:
        measure, weights = data.measures[view], data.weights(term, view)
        joint = [_sum(row) for row in data.view(view, data.law)[0]]
        share = _sum(joint) / data.total
        # more than 1 is no more where it makes up for the mass that a view does not see
        sizes = [w.min((w * share).max(arb(1))) for w in weights if w > 0]
        small += [float(size * measure.step) for size in sizes]
        large += [float(size * measure.unit) for size in sizes]
        if not measure.divergence:  # no release leaks less than none
            least += smallest(weights) * measure.value(joint) / data.total
    ceiling, steps, highest = max(large), [], max(large)
    term = {**term, "cost_radius": 0}  # which moves no step by more than itself
    most = data.boxes["upper"] and data.boxes["upper"][0]
    for letters in [] if term["cost"] is None else data.blocks:
        # of moves that are forbidden the places matter, else what there is to choose from
        block = data.block(term, letters).tolist() if most else data.cost(term).different(letters)
        for s, row in zip(letters, block, strict=True):
            # moves that are forbidden do not count, whatever they would cost
            weighted = [c for c, h in zip(row, most[s], strict=True) if h > 0] if most else row
            if not weighted:
                continue
            lowest = smallest(weighted)
            least += lowest / data.total
            mass = data.mass[s]
            if not 1 / _USUAL < mass < _USUAL:  # times which costs might leave the range of floats
                weighted, mass = [c / mass for c in weighted], arb(1)
            costs = list(map(float, weighted))
            low, high = min(costs), max(costs)
            vanished = low == high == 0 and not all(c.contains(0) for c in weighted)
            if vanished or not (math.isfinite(low) and math.isfinite(high)):
                raise UnprovableError("costs beyond the range of floats")
            # c − low ≤ 2⁻⁴⁴ (|c| + |low|) is rounding of both, hundreds of units of 2⁻⁵³
            rounded = low * (_RATIO if low > 0 else 1 / _RATIO)
            if above := [c for c in costs if c > rounded]:
                ends = (weighted[costs.index(c)] for c in (low, min(above), high))
                cheapest, next_one, dearest = (float(c / mass) for c in ends)
                steps.append(next_one - cheapest)
                ceiling = max(ceiling, highest + dearest - cheapest)
    step = min([*steps, *small], default=1.0)
    if not (math.isfinite(step) and math.isfinite(ceiling) and least.is_finite()):
        raise UnprovableError("the objective's scale is not finite")
    return step, ceiling, least


def _excesses(
    auxiliaries: Mapping[str, Any], mass: list[arb], m: int
) -> dict[str, tuple[list[arb], list[arb]]]:
    """Check auxiliaries; return a(s) p(s)·total and levels of those that are an excess."""
    excesses = {}
    for name, aux in auxiliaries.items():
        fields = {"kind", "bound"} | ({"share", "levels"} if aux["kind"] == "excess" else set())
        if aux["kind"] not in ("ratio", "maximum", "excess") or set(aux) != fields:
            raise UnprovableError("an auxiliary of unknown kind")
        if not enclosure(aux["bound"]) > 0:  # (P23)–(P25) take its side for granted
            raise UnprovableError("an auxiliary with a bound ≤ 0")
        if aux["kind"] == "excess":
            if (len(aux["share"]), len(aux["levels"])) != (len(mass), m):
                raise UnprovableError("an excess of another shape")
            weights = [ball(a) * p for a, p in zip(aux["share"], mass, strict=True)]
            excesses[name] = weights, list(map(ball, aux["levels"]))
    return excesses


def _refuse_long(parts: list[Layer], m: int) -> None:
    """Refuse tables without a common denominator, or whose sums fill memory over it."""
    (layer,), _ = integer_layers(parts)
    bits = max(c.bit_length() for part in layer for row in part.table for c in row)
    affordable(m * (1 + bits // 64))


def _tables(view: Mapping[str, Any]) -> list[Any]:
    """Return the labels of a view, and those of its reference if it has its own."""
    labels, reference = view["labels"], view["reference"]
    return [labels] if reference is None else [labels, reference]
