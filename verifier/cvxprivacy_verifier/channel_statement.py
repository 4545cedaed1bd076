"""What a channel program asks, in plain words, from its data alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from .costs import Part, integer_layers, layers_of, rows_of
from .elimination import greater, lesser, saving
from .fields import MAXIMISED, parts_of
from .wording import (
    INFORMATION,
    MOST_VIEWS,
    Table,
    constant,
    exact,
    extremes,
    information_terms,
    many,
    measured,
    minimised,
    positive,
    quoted,
    radius_of,
    ranged,
    together,
    units_of,
    used_views,
    written,
)

__all__ = ["channel_words"]


def channel_words(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    """Return what is minimised, over which channels, subject to what."""
    words, parts = _Words(program), parts_of(program["objective"])
    rows, auxiliaries = program["rows"], program["auxiliaries"]
    constraints = [
        *together((name, *words.row(row)) for name, row in rows.items()),
        *(f"subject to {quoted(k)}: {words.auxiliary(aux)}" for k, aux in auxiliaries.items()),
        *words.entry_bounds(),
    ]
    # of counts the sum is how many records: a reader may know that number
    masses = [exact(atom) for atoms in words.law for atom in atoms if atom]
    unit = units_of({"program": program})
    texts = [words.term(part) for part in parts.values()]
    if (alike := words.alike(parts)) is not None:
        texts = [f"the greatest of {len(texts):,}, each of a view of its own name: {alike}"]
    elif len(texts) > 1:
        named = [f"{quoted(name)}: {text}" for name, text in zip(parts, texts, strict=True)]
        texts = [f"the greatest of {len(texts):,}, {'; '.join(named)}"]
    matters = any(map(words.matters, parts.values()))
    how, outputs = "minimised", many(words.m, "output")
    if program["kind"] in MAXIMISED:  # (U1): an output as often as one likes
        how, outputs = "maximised", f"{outputs}, or more of the same"
    return [
        minimised(texts[0], matters, unit, infeasible, how),
        f"over: all channels from {many(words.n, 'letter')} to {outputs}; the "
        f"law has {many(len(masses), 'atom')}, of mass {written(sum(masses))} in all",
        *(constraints or ["subject to: nothing, every channel is allowed"]),
        *words.views([view for view in program["views"] if view in used_views(program)]),
    ]


class _Words:
    """The words of a channel program."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program, self.law, self.units = program, program["law"], program["units"]
        self._summaries: dict[int, tuple[Fraction, Fraction, int, int]] = {}
        self.n, self.m = len(self.law[0]), int(program["outputs"])
        self.sizes = {}
        for name, view in program["views"].items():
            labels = [*view["labels"], *(view["reference"] or ())]
            self.sizes[name] = 1 + max(label for row in labels for label in row)
        self.measures = {k: measured(view["measure"]) for k, view in program["views"].items()}

    def term(self, term: Mapping[str, Any]) -> str:
        parts = self.weighed(term)
        costs = self.costs(term)
        if costs:
            free = self.free(term["cost"]) if len(costs) > 1 else ""
            off = radius_of(term["cost_radius"])
            parts.append(f"expected cost of {ranged(costs, 6)}{off}{free}")
        return " + ".join([*parts, *constant(term["constant"])])

    def alike(self, parts: Mapping[str, Any]) -> str | None:
        """Return what several objectives all are, each of the one view that is called as it is."""
        if len(parts) < 2 or any(list(part["weights"]) != [name] for name, part in parts.items()):
            return None
        texts = {
            self.term(part).replace(f"of {quoted(name)} ", "of it ") for name, part in parts.items()
        }
        return texts.pop() if len(texts) == 1 else None

    def weighed(self, term: Mapping[str, Any]) -> list[str]:
        return information_terms(term["weights"], self.sizes, "value", self.measures)

    def matters(self, term: Mapping[str, Any]) -> bool:
        """Tell whether a term can depend on what is released."""
        # a cost that is the same for all outputs is a constant, and so is a measure of one label
        informed = (self.varies(v) and positive(w) for v, w in dict(term["weights"]).items())
        return any(informed) or any(len(set(row)) > 1 for row in self._letters(term["cost"]))

    def varies(self, view: str) -> bool:
        """Tell whether what is leaked to a view can depend on what is released, for some law."""
        data = self.program["views"][view]["measure"]
        if self.sizes[view] == 1:
            return False
        if data["kind"] == "gain":  # one guess is the best whatever is seen
            gains = [[exact(gain) for gain in row] for row in data["matrix"]]
            return [max(column) for column in zip(*gains, strict=True)] not in gains
        if data["kind"] == "transport":
            return any(exact(c) for row in data["ground"] for c in row)
        if data["kind"] == "hockey-stick":  # no posterior is above 1
            # J ≤ q, so that J − γ π q > 0 for some v if and only if γ min π < 1
            masses = self.masses(view)
            return exact(data["gamma"]) * min(masses) < sum(masses)
        return True

    def masses(self, view: str) -> list[Fraction]:
        """Return the reference masses of a view."""
        data, masses = self.program["views"][view], [Fraction(0)] * self.sizes[view]
        for labels, atoms in zip(data["reference"] or data["labels"], self.law, strict=True):
            for label, atom in zip(labels, atoms, strict=True):
                if label >= 0:
                    masses[label] += exact(atom)
        return masses

    def _letters(self, cost: Any) -> Iterable[list[Any]]:
        """Yield what each output costs a letter, all its atoms together, in some unit."""
        if cost is None:
            return
        if isinstance(cost, dict):
            yield from self._added(cost)[0]
            return
        for atoms, layers in zip(zip(*self.law, strict=True), self._layers(cost), strict=True):
            if not layers[1:]:
                yield [exact(c) if isinstance(c, str) else c for c in layers[0]]
                continue
            pairs = zip(map(exact, atoms), layers, strict=True)
            rows = [[p * exact(c) for c in row] for p, row in pairs if p]
            yield [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]

    def costs(self, term: Mapping[str, Any]) -> set[Fraction]:
        """Return the least and the greatest cost of moves that have mass; none without a cost."""
        cost = term["cost"]
        if cost is None:
            return set()
        if isinstance(cost, dict):
            return set(self._summary(cost)[:2])
        return set(extremes(entry for _, row in self._costs(cost) for entry in row))

    def _summary(self, cost: Any) -> tuple[Fraction, Fraction, int, int]:
        """Return of a cost by parts its ends, how many moves it has for 0, and on the diagonal."""
        key = id(cost)
        if key not in self._summaries:
            (layer,), common = integer_layers(layers_of(cost, self.n, self.m))
            low, high, count, diagonal = self._by_attribute(layer) or self._by_row(layer)
            ends = Fraction(low, common), Fraction(high, common)
            self._summaries[key] = (*ends, count, diagonal)
        return self._summaries[key]

    def _by_row(self, layer: list[Part]) -> tuple[int, int, int, int]:
        ends, count, diagonal = [], 0, 0
        for s, row in enumerate(rows_of(layer)):
            ends += [min(row), max(row)]
            count, diagonal = count + row.count(0), diagonal + (row[s : s + 1] == [0])
        return min(ends), max(ends), count, diagonal

    def _by_attribute(self, layer: list[Part]) -> tuple[int, int, int, int] | None:
        """Return the same without going through all moves, where that is possible (C22)."""
        if any(cost < 0 for part in layer for row in part.table for cost in row):
            return None  # a sum of 0 may then have other terms than 0
        elimination = saving([(part.rows, part.columns) for part in layer], self.n, self.m)
        if elimination is None:
            return None
        parts = [layer[i] for i in elimination.chosen]
        levels, letters = elimination.prepared(), list(range(self.n))
        costs = [part.table.__getitem__ for part in parts]
        free = [[[not cost for cost in row] for row in part.table].__getitem__ for part in parts]

        def sums(start: int, *how: Any) -> list[int]:
            return [x for _, x in elimination.least([start] * self.m, letters, *how)]

        low, high = (sums(0, costs, levels, end) for end in (lesser, greater))
        zeros = sums(1, free, levels, partial(map, operator.add), operator.mul)
        square = range(min(self.n, self.m))
        diagonal = sum(not any(p.table[p.rows[s]][p.columns[s]] for p in layer) for s in square)
        return min(low), max(high), sum(zeros), diagonal

    def _added(self, cost: Any) -> tuple[Iterable[list[int]], int]:
        """Return the rows of a cost by parts, in whole numbers over a common one."""
        (layer,), common = integer_layers(layers_of(cost, self.n, self.m))
        return rows_of(layer), common

    def _costs(self, cost: Table) -> Iterable[tuple[int, list[Any]]]:
        """Yield each letter with the costs of its moves, for every atom that has mass."""
        for s, layers in enumerate(self._layers(cost)):
            for i, row in enumerate(layers):
                if len(layers) == 1 or self.law[i][s] > 0:
                    yield s, row

    def _layers(self, cost: Table) -> Iterable[tuple[list[Any], ...]]:
        """Yield of each letter the costs in each layer of atoms, or in all."""
        return zip(*map(rows_of, layers_of(cost, self.n, self.m)), strict=True)

    def free(self, cost: Any) -> str:
        """Say which moves cost nothing: a permuted cost has the same range."""
        if isinstance(cost, dict):
            _, _, count, diagonal = self._summary(cost)
            return f" (0 for {self.counted(count, diagonal)})" if count else ""
        texts = {c for _, row in self._costs(cost) for c in row if isinstance(c, str)}
        zeros = {0, *(c for c in texts if not exact(c))}
        count = diagonal = 0
        for s, (masses, layers) in enumerate(
            zip(zip(*self.law, strict=True), self._layers(cost), strict=True)
        ):
            rows = [z for i, z in enumerate(layers) if not layers[1:] or masses[i] > 0]
            costless = [all(c in zeros for c in column) for column in zip(*rows, strict=True)]
            count += sum(costless)
            diagonal += costless[s : s + 1] == [True]
        return f" (0 for {self.counted(count, diagonal)})" if count else ""

    def among(self, places: set[tuple[int, int]]) -> str:
        """Say how many of all moves these are, and how many lead from a letter to its number."""
        return self.counted(len(places), sum(s == y for s, y in places))

    def counted(self, count: int, diagonal: int) -> str:
        """Say how many moves, of which some lead from a letter to its number."""
        text = f"{count:,} of {many(self.n * self.m, 'move')}"
        if self.n != self.m:
            return text
        if diagonal == count == self.n:
            return f"{text}: each letter i to output i"
        return f"{text}, {diagonal:,} of them from a letter i to output i"

    def row(self, row: Mapping[str, Any]) -> tuple[str, str, list[Any]]:
        """Return left side, right side around the bound, and bounds."""
        term, bounds = row["term"], row["bound"]
        bounds = bounds if isinstance(bounds, list) else [bounds]
        weighed, costs = self.weighed(term), self.costs(term)
        off, sense = radius_of(row["radius"]), {"<=": "<=", "==": "="}[row["sense"]]
        kinds = {self.program["views"][view]["measure"]["kind"] for view in term["weights"]}
        unit = f" {self.units}" if kinds <= INFORMATION and kinds and len(costs) < 2 else ""
        if not row["per_output"]:
            unit = "" if costs else unit
            return self.term(term) or "nothing", f"{sense} {{}}{off}{unit}", bounds
        each = f"for each of the {many(self.m, 'output')}, "
        # one cost for all letters is C q(y): a criterion such as Φ(y) ≤ t q(y) reads so
        if len(costs) != 1:
            return each + (self.term(term) or "nothing"), f"{sense} {{}}{off}{unit}", bounds
        (cost,), radius = costs, radius_of(term["cost_radius"])  # C q(y), for each output y
        if not weighed:
            left = f"{each}{written(cost)}{radius} × its probability"
            return left, f"{sense} {{}}{off}", bounds
        share = f"{sense} {written(-cost)}{radius}{unit} × its probability"
        more = f" + {{}}{off}{unit}" if any(map(exact, bounds)) or off else ""
        return each + " + ".join(weighed), share + more, bounds

    def auxiliary(self, auxiliary: Mapping[str, Any]) -> str:
        value, radius = auxiliary["bound"]
        bound = f"{written(value)}{radius_of(radius)}"
        if auxiliary["kind"] == "ratio":
            return f"p(y | s) <= c p(y | s') for all letters s, s' and outputs y, c = {bound}"
        if auxiliary["kind"] == "excess":
            levels, shares = ranged(auxiliary["levels"]), set(map(exact, auxiliary["share"]))
            part = "" if shares == {1} else f", each letter's mass times {ranged(shares)}"
            above = f"above its level ({levels}{part})"
            return f"the sum over outputs of their probability {above} <= {bound}"
        return f"the sum over outputs y of the greatest p(y | s) of any letter s <= {bound}"

    def entry_bounds(self) -> list[str]:
        """Say which single moves are bounded."""
        if self.program["lower"] is None and self.program["upper"] is None:
            return []
        low = self.program["lower"] or [[0] * self.m] * self.n
        high = self.program["upper"] or [[1] * self.m] * self.n
        kinds: dict[str, dict[tuple[int, int], Any]] = {}
        for s, bounds in enumerate(zip(low, high, strict=True)):
            for y, (a, b) in enumerate(zip(*bounds, strict=True)):
                least, most = exact(a), exact(b)
                if not most:
                    kinds.setdefault("forbidden", {})[s, y] = b
                elif least == most:
                    kinds.setdefault("fixed at", {})[s, y] = a
                else:
                    if least > 0:
                        kinds.setdefault("with a floor of", {})[s, y] = a
                    if most < 1:
                        kinds.setdefault("with a cap of", {})[s, y] = b
        return [
            f"subject to moves {kind}{'' if kind == 'forbidden' else f' {ranged(places.values())}'}"
            f": {self.among(set(places))}"
            for kind, places in kinds.items()
        ]

    # ---- views ---------------------------------------------------------------------------

    def views(self, names: Sequence[str]) -> list[str]:
        """Say what each view sees, and what the letters themselves tell about it."""
        lines = [f"where {quoted(name)} is {self.view(name)}" for name in names[:MOST_VIEWS]]
        if len(names) > MOST_VIEWS:
            more = many(len(names) - MOST_VIEWS, "more view")
            lines.append(f"where {more} are not described here")
        return lines

    def view(self, name: str) -> str:
        view = self.program["views"][name]
        if view["measure"]["kind"] == "relative entropy":
            return " and ".join(self._label(view["labels"], v) for v in (0, 1))
        labels, reference = view["labels"], view["reference"] or view["labels"]
        # relative to the greatest atom, in floats: words need no proof, and must not overflow
        top, share = max(atom for atoms in self.law for atom in atoms), [0.0, 0.0]
        joint: dict[tuple[int, int], float] = {}
        prior = [0.0] * self.sizes[name]
        for rows in zip(labels, reference, self.law, strict=True):
            for s, (v, r, atom) in enumerate(zip(*rows, strict=True)):
                mass = atom / top
                share[v >= 0] += mass
                if mass and v >= 0:
                    joint[v, s] = joint.get((v, s), 0.0) + mass
                if mass and r >= 0:
                    prior[r] += mass
        information = _information(joint, prior) / sum(share)
        information /= math.log(2) if self.units == "bits" else 1
        part = f", known of {share[1] / sum(share):.4g} of the mass" if share[0] else ""
        if len(joint) == len({s for _, s in joint}) == len({v for v, _ in joint}):
            return f"the letter itself{part}: {information:.6g} {self.units}"
        text = f"a label with {many(len(prior), 'value')}{part}"
        return f"{text}; the letters themselves tell {information:.6g} {self.units} about it"

    def _label(self, labels: Sequence[Sequence[int]], label: int) -> str:
        """Say which letters have a label, and with what share of the mass."""
        top = max(atom for atoms in self.law for atom in atoms)
        share, everything, letters = 0.0, 0.0, set()
        for row, atoms in zip(labels, self.law, strict=True):
            for s, (v, atom) in enumerate(zip(row, atoms, strict=True)):
                everything += atom / top
                if v == label and atom:
                    share += atom / top
                    letters.add(s)
        places = sorted(letters)
        which = f"letter {places[0]}" if len(places) == 1 else f"{len(places):,} letters"
        return f"label {label}, {which} with {share / everything:.4g} of the mass"


def _information(joint: Mapping[tuple[int, int], float], prior: Sequence[float]) -> float:
    """Return what a release of the very letters tells, in nats: no other one tells more."""
    masses: dict[int, float] = {}
    for (_, s), mass in joint.items():
        masses[s] = masses.get(s, 0.0) + mass
    if any(not prior[v] for v, _ in joint):
        return math.inf  # a reference less than any float
    total, entries = sum(prior), joint.items()
    terms = (mass * math.log(mass / masses[s] / (prior[v] / total)) for (v, s), mass in entries)
    return max(math.fsum(terms), 0.0)
