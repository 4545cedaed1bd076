"""A channel program in rationals, from design to both ends of its minimum."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

from tests.second_checker.measures import Measure
from tests.second_checker.numbers import (
    ONE,
    ZERO,
    Matrix,
    Pair,
    exact,
    guessed,
    guessed_table,
    need,
    plus,
    spread,
    table,
    times,
    unit_of,
)


class Channel:
    def __init__(self, program: Any) -> None:
        self.bits = program["units"]
        unit_of(self.bits)
        law = [[exact(x) for x in row] for row in program["law"]]
        self.n, self.m = len(law[0]), program["outputs"]
        need(type(self.m) is int and self.m > 0, "a number of outputs")
        total = sum(map(sum, law))
        need(all(len(r) == self.n and min(r) >= 0 for r in law) and total > 0, "no law")
        self.law = [[x / total for x in row] for row in law]
        self.p = [sum(column) for column in zip(*self.law, strict=True)]
        need(all(self.p), "a letter without mass")
        self.views = {name: self.view(view) for name, view in program["views"].items()}
        self.low = self.bounds(program["lower"], ZERO)
        self.high = self.bounds(program["upper"], ONE)
        stated = program["objective"]
        parts = stated["worst"] if {*stated} == {"worst"} else {"": stated}
        self.objectives = {k: self.term(part, convex=True) for k, part in parts.items()}
        need(self.objectives, "no objective")
        self.reported = program["terms"]
        self.rows: dict[str, Any] = {}
        for name, row in program["rows"].items():
            term, many = self.term(row["term"], convex=True), row["per_output"]
            need(type(many) is bool, "per_output")
            need(row["sense"] == "<=" or (row["sense"] == "==" and not term[0]), "not convex")
            need(not many or term[2] == (0, 0), "a constant for every output")
            bound = (
                row["bound"]
                if isinstance(row["bound"], list)
                else [row["bound"]] * (self.m if many else 1)
            )
            need(len(bound) == (self.m if many else 1), "bounds")
            self.rows[name] = term, row["sense"], many, [spread([b, row["radius"]]) for b in bound]
        self.auxiliaries, self.excesses = {}, {}
        for k, a in program["auxiliaries"].items():
            if a["kind"] == "excess":
                masses = [x * p for x, p in zip(map(exact, a["share"]), self.p, strict=True)]
                levels = [exact(x) for x in a["levels"]]
                need(len(levels) == self.m, "levels")
                self.excesses[k] = masses, levels, spread(a["bound"])
            else:
                self.auxiliaries[k] = a["kind"], spread(a["bound"])
        kinds = {kind for kind, _ in self.auxiliaries.values()}
        need(kinds <= {"ratio", "maximum"}, "an auxiliary of no kind")

    def bounds(self, argument: Any, default: Fraction) -> Matrix:
        outcome = table(argument, self.n, self.m) if argument is not None else None
        outcome = outcome or [[default] * self.m] * self.n
        clip, end = (max, ZERO) if default == ZERO else (min, ONE)
        return [[clip(x, end) for x in row] for row in outcome]

    def view(self, view: Any) -> tuple[Matrix, Measure]:
        need({*view} == {"labels", "reference", "measure"}, "another key of a view")
        labels = view["labels"]
        centred = view["measure"]["kind"] == "relative entropy"
        need(view["reference"] is None or not centred, "a reference of its own")
        reference = labels if view["reference"] is None else view["reference"]
        for place in (labels, reference):
            shape = [len(row) for row in place]
            need(shape == [self.n] * len(self.law), "labels of another shape")
            need(all(type(v) is int and v >= -1 for r in place for v in r), "a label")
        size = 1 + max(v for place in (labels, reference) for row in place for v in row)
        need(size <= len(self.law) * self.n, "too many labels")
        recorded, pi = [[ZERO] * self.n for _ in range(size)], [ZERO] * size
        for i, s in product(range(len(self.law)), range(self.n)):
            if labels[i][s] >= 0:
                recorded[labels[i][s]][s] += self.law[i][s]
            if reference[i][s] >= 0:
                pi[reference[i][s]] += self.law[i][s]
        need(all(pi), "a label of reference mass 0")
        return recorded, Measure(view["measure"], [x / sum(pi) for x in pi], self.bits)

    def term(self, term: Any, convex: bool = False) -> tuple[Any, Matrix, Pair, Fraction, Any]:
        """Return weights, cost times mass, constant, radius, and the cost by itself."""
        weights = {}
        for view, w in term["weights"].items():
            need(view in self.views, "no such view")
            argument = [exact(x) for x in w] if isinstance(w, list) else [exact(w)] * self.m
            need(len(argument) == self.m and not (convex and min(argument) < 0), "weights")
            weights[view] = argument
        cost, zero = term["cost"], [[ZERO] * self.m] * self.n
        if cost is None:
            return weights, zero, spread(term["constant"]), ZERO, None
        radius = exact(term["cost_radius"])
        need(radius >= 0, "a negative radius")
        if isinstance(cost, dict):
            layers = [self.added(cost)]
        else:
            layers = cost if isinstance(cost[0][0], list) else [cost]
            layers = [table(self.repeated(layer), self.n, self.m) for layer in layers]
        need(len(layers) in (1, len(self.law)), "layers of cost")
        atoms = self.law if len(layers) > 1 else [self.p]
        pairs = list(zip(atoms, layers, strict=True))
        values = [[sum(a[s] * c[s][y] for a, c in pairs) for y in range(self.m)]
                 for s in range(self.n)]  # fmt: skip
        mean = [[x / p for x in row] for p, row in zip(self.p, values, strict=True)]
        return weights, values, spread(term["constant"]), radius, mean

    def repeated(self, rows: Any) -> Any:
        """Return a table of all letters and outputs, where one row or one column stands for all."""
        need(isinstance(rows, list) and all(isinstance(row, list) for row in rows), "no table")
        rows = [row * self.m if len(row) == 1 else row for row in rows]
        return rows * self.n if len(rows) == 1 else rows

    def added(self, cost: Any) -> Matrix:
        """Return the table of a cost by parts: the entries that each part has for s and y."""
        need({*cost} == {"parts"} and cost["parts"], "no parts")
        total = [[ZERO] * self.m for _ in range(self.n)]
        for part in cost["parts"]:
            need({*part} == {"table", "rows", "columns"}, "no part")
            rows, columns = part["rows"], part["columns"]
            need((len(rows), len(columns)) == (self.n, self.m), "places")
            ours = table(part["table"], len(part["table"]), len(part["table"][0]))
            need(all(type(i) is int and i >= 0 for i in (*rows, *columns)), "no place")
            for s, y in product(range(self.n), range(self.m)):
                total[s][y] += ours[rows[s]][columns[y]]
        return total

    def upper(self, primal: Any) -> Any:
        """Return the objective at a channel and every term, in pairs; infeasible is refused."""
        need(type(primal["denominator"]) is int and primal["denominator"] > 0, "a denominator")
        listed = list(zip(primal["outputs"], primal["numerators"], strict=True))
        need(len(listed) == self.n, "letters")
        channel = [[ZERO] * self.m for _ in listed]
        for row, (places, ours) in zip(channel, listed, strict=True):
            need(all(type(x) is int for x in (*places, *ours)), "no whole number")
            need(places == sorted({*places} & {*range(self.m)}), "outputs out of order")
            for y, k in zip(places, ours, strict=True):
                need(k > 0, "a numerator")
                row[y] = Fraction(k, primal["denominator"])
        self.feasible(channel)
        terms = {k: self.value(self.term(t), channel) for k, t in self.reported.items()}
        return self.attained(channel), terms

    def attained(self, channel: Matrix) -> Pair:
        """Return the objective at a channel: the greatest, where there are several."""
        values = [self.value(part, channel) for part in self.objectives.values()]
        low, high = zip(*values, strict=True)
        return max(low), max(high)

    def feasible(self, channel: Matrix) -> None:
        for k, low, high in zip(channel, self.low, self.high, strict=True):
            need(sum(k) == 1, "a row's sum")
            cells = zip(k, low, high, strict=True)
            need(all(lo <= x <= hi for x, lo, hi in cells), "an entry out of its bounds")
        for name, (term, sense, many, bounds) in self.rows.items():
            values = self.columns(term, channel) if many else [self.value(term, channel)]
            for (low, high), (b_low, b_high) in zip(values, bounds, strict=True):
                need(high <= b_low, name)
                need(sense == "<=" or low >= b_high, name)
        for name, (kind, (bound, _)) in self.auxiliaries.items():
            columns = list(zip(*channel, strict=True))
            if kind == "ratio":
                need(all(max(c) <= bound * min(c) for c in columns), name)
            else:
                need(sum(map(max, columns)) <= bound, name)
        for name, (masses, levels, (bound, _)) in self.excesses.items():
            columns = list(zip(*channel, strict=True))
            outcome = [sum(a * k for a, k in zip(masses, c, strict=True)) for c in columns]
            need(sum(max(x - b, ZERO) for x, b in zip(outcome, levels, strict=True)) <= bound, name)

    def columns(self, term: Any, channel: Matrix) -> list[Pair]:
        weights, cost, _, radius, _ = term
        values = []
        for y in range(self.m):
            pairs = zip(cost, channel, strict=True)
            value = sum((c[y] * k[y] for c, k in pairs if c[y] and k[y]), ZERO)
            off = radius and radius * sum(p * k[y] for p, k in zip(self.p, channel, strict=True))
            values.append((value - off, value + off))
        for view, w in weights.items():
            for y in range(self.m):
                if w[y]:
                    values[y] = plus(values[y], times(w[y], self.phi(view, channel, y)))
        return values

    def value(self, term: Any, channel: Matrix) -> Pair:
        return plus(term[2], *self.columns(term, channel))

    def phi(self, view: str, channel: Matrix, y: int) -> Pair:
        recorded, measure = self.views[view]
        held = [k[y] for k in channel]
        joint = [
            sum((a * k for a, k in zip(row, held, strict=True) if a and k), ZERO)
            for row in recorded
        ]
        return measure.value(joint)

    def lower(self, dual: Any) -> Any:
        """Return a number that no feasible channel's Lagrangian is below; ∞ if there is none."""
        parts, constant = [], ZERO
        kinds = ("scores", "multipliers", "auxiliaries")
        argument = {kind: dual.get(kind) for kind in kinds}
        scored, priced, bounded = (x if isinstance(x, dict) else {} for x in argument.values())
        if dual.get("objective", 1):
            first, *others = self.objectives
            information = dual.get("shares")
            information = information if isinstance(information, dict) else {}
            means = {k: max(guessed(information.get(k, 0)), ZERO) for k in others}
            full = max(sum(means.values(), ZERO), ONE)
            means = {k: x / full for k, x in means.items()}
            means[first] = ONE - sum(means.values(), ZERO)
            for k, mean in means.items():
                parts.append((self.objectives[k], [mean] * self.m))
                constant += times(mean, self.objectives[k][2])[0]
        for name, (term, sense, many, bounds) in self.rows.items():
            lam = priced.get(name, 0)
            wrong = isinstance(lam, list) and not (many and len(lam) == self.m)
            lam = (
                [ZERO] if wrong else [guessed(x) for x in (lam if isinstance(lam, list) else [lam])]
            )
            lam = [x if sense == "==" else max(x, ZERO) for x in lam]
            lam = lam if len(lam) == self.m else lam * self.m
            parts.append((term, lam))
            for x, bound in zip(lam if many else lam[:1], bounds, strict=True):
                constant += plus(times(x, term[2]), times(-x, bound))[0]
        g = [[ZERO] * self.m for _ in range(self.n)]
        for term, lam in parts:
            for s, y in product(range(self.n), range(self.m)):
                if lam[y] and (term[1][s][y] or term[3]):
                    g[s][y] += lam[y] * term[1][s][y] - abs(lam[y]) * term[3] * self.p[s]
        for view, (recorded, measure) in self.views.items():
            scores = guessed_table(scored.get(view), measure.rows, self.m)
            zero = [ZERO] * self.m
            for y in range(self.m):
                omega = sum(lam[y] * term[0].get(view, zero)[y] for term, lam in parts)
                if omega:
                    for v, least in enumerate(measure.below([row[y] for row in scores])):
                        least *= omega
                        for s, mass in enumerate(recorded[v]):
                            if mass:
                                g[s][y] += mass * least
        for name, (kind, (_, bound)) in self.auxiliaries.items():
            count = 2 if kind == "ratio" else 1
            argument = bounded.get(name)
            argument = (
                argument
                if isinstance(argument, list) and len(argument) == count
                else [None] * count
            )
            mu, eta = [guessed_table(x, self.n, self.m) for x in (argument * 2)[:2]]
            sums: Matrix = [[], []]
            for y in range(self.m):
                a, b = ([p * max(row[y], ZERO) for p, row in zip(self.p, t, strict=True)]
                        for t in (mu, eta))  # fmt: skip
                sums[0].append(sum(a)), sums[1].append(sum(b))
                for s in range(self.n):
                    g[s][y] += b[s] - a[s] if kind == "ratio" else a[s]
            if kind == "ratio":  # a ≥ 0, Σ a ≤ 1
                constant += min(0, *(x - bound * z for x, z in zip(*sums, strict=True)))
            else:  # u ≥ 0, Σ u ≤ bound
                constant -= bound * max(sums[0])
        for name, (masses, levels, (_, bound)) in self.excesses.items():
            (mu,) = guessed_table(bounded.get(name), 1, self.m)
            mu = [max(x, ZERO) for x in mu]
            for s, y in product(range(self.n), range(self.m)):
                g[s][y] += masses[s] * mu[y]
            constant -= sum(x * b for x, b in zip(mu, levels, strict=True)) + bound * max(mu)
        for row, low, high in zip(g, self.low, self.high, strict=True):
            left = 1 - sum(low)
            boxed = all(a <= b for a, b in zip(low, high, strict=True))
            if left < 0 or sum(high) < 1 or not boxed:
                return math.inf
            for x, a, b in sorted(zip(row, low, high, strict=True)):
                more = min(left, b - a)
                constant, left = constant + x * (a + more), left - more
        return constant

    def unit(self, upper: Any) -> Fraction:
        """Return what the gap of a certified document is small against.

        What is allowed beyond the least cost; at least the least step of the objective, at most
        the greatest.
        """
        steps, ceilings, leasts = zip(*map(self.steps, self.objectives.values()), strict=True)
        return max(min(steps), min(upper - max(leasts), max(ceilings)))

    def steps(self, term: Any) -> tuple[Fraction, Fraction, Fraction]:
        """Return the least step of an objective, the greatest, and its least cost."""
        weights, _, constant, _, cost = term
        sizes = []
        for k, w in weights.items():
            recorded, measure = self.views[k]
            share = sum(map(sum, recorded))
            sizes += [(min(x, max(x * share, ONE)), measure) for x in w if x > 0]
        nats, highest = [x * m.step for x, m in sizes], [x * m.unit for x, m in sizes]
        steps, least = [], sum(constant) / 2
        for name, w in weights.items():
            recorded, measure = self.views[name]
            if not measure.divergence:
                least += min(w) * measure.value([sum(row) for row in recorded])[0]
        for p, row, high in zip(self.p, cost or [], self.high, strict=False):
            open_ = [c for c, h in zip(row, high, strict=True) if h > 0]
            low = min(open_, default=ZERO)
            least += p * low
            steps += [c - low for c in open_ if c - low > (abs(c) + abs(low)) / 2**44]
        ceiling = max(highest, default=ZERO) + max(steps, default=ZERO) or ONE
        return min([*steps, *nats], default=ONE), ceiling, least
