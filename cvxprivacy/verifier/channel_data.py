"""A channel program as the proofs read it: checked, in balls or in rationals.

Every number of the program is exact, or a ball whose two ends are both taken at their worst.
Needs the standard library and python-flint only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import flint
from flint import arb, arb_mat, fmpq

from cvxprivacy.verifier.balls import (
    PRECISION,
    Matrix,
    UnaffordableError,
    UnprovableError,
    affordable,
    ball,
    enclosure,
    exactly,
    number,
    total as _sum,
    whole,
)

__all__ = ["ChannelData", "cellwise", "layers_of"]

_PRODUCTS = 200_000_000  # |V| n m of a view


class ChannelData:
    """The exact program behind ``ChannelProgram.to_dict()``, checked while it is read."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        flint.ctx.prec = PRECISION
        if program.get("kind") != "channel":
            raise UnprovableError(f"no program of kind {program.get('kind')!r} is known")
        self.program = program
        self.units: arb = {"nats": arb(1), "bits": arb(2).log()}[program["units"]]
        self.atoms: Matrix = program["law"]
        self.n, self.m = len(self.atoms[0]), program["outputs"]
        if type(self.m) is not int or not self.m > 0:
            raise UnprovableError("a number of outputs out of range")
        affordable(self._work())
        plain = all(isinstance(a, int | float) for row in self.atoms for a in row)
        if not plain or any(not 0 <= a < math.inf for row in self.atoms for a in row):
            raise UnprovableError("the law has a negative or infinite atom")
        self.whole, _ = whole(self.atoms)  # the same law in whole numbers
        boxes = ((k, program[k]) for k in ("lower", "upper"))
        self.boxes = {k: None if table is None else whole(table) for k, table in boxes}
        for table, _ in filter(None, self.boxes.values()):
            if len(table) != self.n or any(len(row) != self.m for row in table):
                raise UnprovableError("entry bounds of another shape")
        self.mass = [_sum(map(arb, column)) for column in zip(*self.atoms, strict=True)]
        self.total = _sum(self.mass)
        if not all(p > 0 for p in self.mass):
            raise UnprovableError("a letter without mass")
        self.views: dict[str, tuple[arb_mat, list[arb]]] = {}
        for name in program["views"]:
            seen, masses = self.view(name, [[arb(a) for a in row] for row in self.atoms])
            self.views[name] = arb_mat(seen), [mass / _sum(masses) for mass in masses]
        self._costs: dict[tuple[int, Any], arb_mat | None] = {}
        for term in program["terms"].values():
            self._read(term)
        rows = [("objective", "<=", program["objective"])]
        rows += [(name, row["sense"], row["term"]) for name, row in program["rows"].items()]
        for name, sense, term in rows:
            negative = any(not w >= 0 for w in self._read(term))
            if sense not in ("<=", "==") or negative or (sense == "==" and term["weights"]):
                raise UnprovableError(f"{name} is not convex")
        for name, row in program["rows"].items():
            if type(row["per_output"]) is not bool:
                raise UnprovableError(f"{name} is neither one row nor one per output")
            if row["per_output"] and any(map(number, row["term"]["constant"])):
                raise UnprovableError(f"{name} has a constant for every output")
            ball(0, row["radius"])  # which is no negative number
        for aux in program["auxiliaries"].values():
            if aux["kind"] not in ("ratio", "maximum") or not enclosure(aux["bound"]) > 0:
                raise UnprovableError("an auxiliary of unknown kind, or with a bound ≤ 0")

    def _work(self) -> int:
        """Return how many entries all tables have that the program asks for."""
        program, letters, most = self.program, self.n + self.m, len(self.atoms) * self.n
        views, rows = program["views"].values(), program["rows"].values()
        many = len(program["rows"]) + len(program["terms"]) + len(views)
        dense = 1 + 2 * len(program["auxiliaries"])
        sizes = self.n * self.m * dense + many * (8 * self.m + len(views)) + len(rows)
        affordable(sizes)
        for view in views:
            tables = _tables(view)
            last = max(label for table in tables for row in table for label in row)
            if type(last) is not int or not 0 <= last < most:
                raise UnprovableError("a view has more labels than there are atoms")
            sizes += (1 + last) * letters
            if (1 + last) * self.n * self.m > _PRODUCTS:
                raise UnaffordableError("a view of more letters than can be multiplied")
        return sizes

    def view(self, name: str, law: Matrix) -> tuple[Matrix, list[Any]]:
        """Return p(v, s)·total and the reference masses of a view, for the law in some numbers."""
        tables = _tables(self.program["views"][name])
        if any(type(v) is not int or v < -1 for table in tables for row in table for v in row):
            raise UnprovableError(f"view {name} has a label that is no whole number ≥ −1")
        size = 1 + max(label for table in tables for row in table for label in row)
        none = law[0][0] * 0
        seen = [[none] * self.n for _ in range(size)]
        masses = [none] * size
        for rows in zip(tables[0], tables[-1], law, strict=True):
            for s, (v, r, atom) in enumerate(zip(*rows, strict=True)):
                if v >= 0:
                    seen[v][s] += atom
                if r >= 0:
                    masses[r] += atom
        if not all(mass > 0 for mass in masses):
            raise UnprovableError(f"view {name} has a label of reference mass 0")
        return seen, masses

    def _read(self, term: Mapping[str, Any]) -> list[arb]:
        """Return all weights of a term, of which every number is one, used or not."""
        if not isinstance(term["weights"], dict):
            raise UnprovableError("weights that are no mapping")
        enclosure(term["constant"])
        ball(0, term["cost_radius"])
        self.cost(term)
        return [w for view in term["weights"] for w in self.weights(term, view)]

    def weights(self, term: Mapping[str, Any], view: str) -> list[arb]:
        """Return the weight of a view's information for each output."""
        if view not in self.views:
            raise UnprovableError(f"no view {view!r}")
        weights = term["weights"][view]
        if not isinstance(weights, list):
            return [ball(weights)] * self.m
        if len(weights) != self.m:
            raise UnprovableError(f"weights of {view}")
        return [ball(w) for w in weights]

    def weighted(self, cost: Any, law: Matrix, kind: Callable[[Any], Any]) -> Matrix:
        """Return Σ_l law[l, s] C(l, s, y), which multiplies K(s, y); ``kind`` reads a cost."""
        layers = layers_of(cost)
        if len(layers) == 1:
            law = [[sum(column, law[0][0] * 0) for column in zip(*law, strict=True)]]
        numbers = {c: kind(c) for layer in layers for row in layer for c in row}
        table = [[law[0][0] * 0] * self.m] * self.n
        for masses, layer in zip(law, layers, strict=True):
            spread = [[p] * self.m for p in masses]
            table = cellwise(lambda t, p, c: t + p * numbers[c], table, spread, layer)
        return table

    def cost(self, term: Mapping[str, Any]) -> arb_mat | None:
        """Return the weighted cost with its radius, or None if there is none."""
        key = id(term["cost"]), term["cost_radius"]
        if key not in self._costs:
            table = None
            if term["cost"] is not None:
                law = [[arb(a) for a in row] for row in self.atoms]
                table = self.weighted(term["cost"], law, ball)
            if table is not None and number(term["cost_radius"]):
                off = ball(0, term["cost_radius"])
                table = cellwise(lambda t, p: t + p * off, table, [[p] * self.m for p in self.mass])
            self._costs[key] = None if table is None else arb_mat(table)
        return self._costs[key]

    def bounds(self, row: Mapping[str, Any]) -> list[fmpq]:
        """Return the bound of a row, for each output if it is a row for each."""
        count, bound = self.m if row["per_output"] else 1, row["bound"]
        bounds = bound if isinstance(bound, list) else [bound] * count
        if len(bounds) != count:
            raise UnprovableError(f"{len(bounds)} bounds where {count} are needed")
        known = {b: exactly(b) for b in bounds}
        return [known[b] for b in bounds]

    def unit(self, upper: float) -> float:
        """Return the size by which a gap is judged, given the upper end.

        What the enclosure allows beyond the objective's least cost: upper − Σ_s p(s) min_y C_0.
        At least the smallest step that there is, the least positive C_0(s, y) − min_y C_0(s, y)
        or a nat of the view of least weight; at most a nat of the weightiest and the greatest
        such difference.  So no forbidding cost makes a wide enclosure look narrow.
        """
        step, ceiling, least = self._steps
        room = upper - least
        return max(step, min(room, ceiling)) if math.isfinite(room) else max(step, ceiling)

    @cached_property
    def _steps(self) -> tuple[float, float, float]:
        """Return the smallest step of the objective, the greatest, and its least cost."""
        flint.ctx.prec = PRECISION
        term = self.program["objective"]
        weights = [float(w) for w in self._read(term)]
        nats = [w / float(self.units) for w in weights if w > 0]
        ceiling, steps, least = max(nats, default=0.0), [], float(enclosure(term["constant"]))
        cost = self.cost({**term, "cost_radius": 0})
        high = self.program["upper"] or [[1] * self.m] * self.n
        for s, row in enumerate([] if cost is None else cost.tolist()):
            own = [float(c / self.mass[s]) for c, h in zip(row, high[s], strict=True) if h]
            low = min(own, default=0.0)
            least += low * float(self.mass[s] / self.total)
            gaps = [c - low for c in own if c - low > 2.0**-44 * (abs(c) + abs(low))]
            steps += gaps
            ceiling = max(ceiling, max(nats, default=0.0) + max(gaps, default=0.0))
        found = min([*steps, *nats], default=1.0), ceiling, least
        if not all(map(math.isfinite, found)):
            raise UnprovableError("the objective's scale is not finite")
        return found


def _tables(view: Mapping[str, Any]) -> list[Any]:
    """Return the labels of a view, and those of its reference if it has its own."""
    labels, reference = view["labels"], view["reference"]
    return [labels] if reference is None else [labels, reference]


def cellwise(function: Callable[..., Any], *tables: Matrix) -> Matrix:
    """Return a function of the entries of tables of one shape, entry by entry."""
    pairs = [list(zip(*rows, strict=True)) for rows in zip(*tables, strict=True)]
    return [[function(*cell) for cell in row] for row in pairs]


def layers_of(cost: Any) -> Any:
    """Return a cost as one table for each layer of atoms, or one for all."""
    return cost if isinstance(cost[0][0], list) else [cost]
