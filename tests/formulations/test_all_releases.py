"""What repeated releases satisfy together, recomputed from their channels in rationals.

Each criterion is evaluated by its definition on P(z, x̂ | w, x) = Π p(zᵢ | w, x) p(x̂ | w, x, z), and
may nowhere exceed its number; no lower end may exceed the cost of a release that satisfies it.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import cvxprivacy as cpv

mp.mp.dps = 40
BITS, OFF = mp.log(2), mp.mpf("1e-13")  # what a law that is rounded once to floats may be off


class GuessedAtMost(cpv.Criterion):
    """p(w | x̂) ≤ p for all w and x̂: a criterion of a user's own, who thinks of one release."""

    name = "guessed_at_most"
    p = cpv.Parameter(loosens="up", loosest=1.0)

    def constraints(self, release):
        mass = release.mass().each()
        values = range(len(release.p_w))
        return {str(w): release.mass(w).each() <= self.p * mass for w in values}


class Releases:
    """A law, earlier channels, and who sees what; all of them together for any last one."""

    def __init__(self, rng, saw_w=None):
        w, x, self.m = (int(k) for k in rng.integers(2, 4, 3))
        counts = rng.integers(0, 9, (w, x))
        counts[rng.integers(w), :] += 1
        counts[:, rng.integers(x)] += 1
        self.source = cpv.DiscreteSource.from_counts(counts)
        self.counts, self.records = counts, int(counts.sum())
        self.encoder = "wx" if rng.random() < 0.4 else "x"
        self.remember = bool(rng.random() < 0.5)
        self.after = []
        for _ in range(int(rng.integers(1, 3))):
            encoder = "wx" if (rng.random() < 0.3 if saw_w is None else saw_w) else "x"
            letters = list(itertools.product(range(w), range(x))) if encoder == "wx" else range(x)
            size, share = int(rng.integers(2, 4)), rng.uniform(0.02, 0.4)
            rows = (1 - share) * rng.dirichlet(np.ones(size)) + share * rng.dirichlet(
                np.ones(size), len(letters)
            )
            channel = cpv.Channel(
                rows / rows.sum(axis=1, keepdims=True), inputs=list(letters), outputs=range(size)
            )
            self.after.append(channel._with(encoder=encoder))
        self.sees = "wx" if "wx" in [self.encoder, *(c.encoder for c in self.after)] else "x"
        self.cells = list(zip(*(axis.tolist() for axis in np.nonzero(counts)), strict=True))
        self.z = {}  # p(z | w, x)
        for places in itertools.product(*(range(len(c.outputs)) for c in self.after)):
            label = places if len(places) > 1 else places[0]
            self.z[label] = {cell: self._chance(cell, places) for cell in self.cells}

    def _chance(self, cell, places):
        chance = Fraction(1)
        for channel, y in zip(self.after, places, strict=True):
            row = channel.matrix[channel.inputs.index(cell if channel.encoder == "wx" else cell[1])]
            exact = [Fraction(value) for value in row.tolist()]
            chance *= exact[y] / sum(exact)
        return chance

    def letter(self, cell, z):
        parts = (cell[0], cell[1]) if self.encoder == "wx" else (cell[1],)
        parts += (z,) if self.remember else ()
        return parts if len(parts) > 1 else parts[0]

    def together(self, rows):
        """Return P(z, x̂ | w, x) of the rows of the last release: {cell: [...]}."""
        return {
            cell: [
                chance[cell] * q for z, chance in self.z.items() for q in rows[self.letter(cell, z)]
            ]
            for cell in self.cells
        }

    def rows_of(self, channel):
        return {
            letter: [Fraction(q) / sum(map(Fraction, row)) for q in map(Fraction, row)]
            for letter, row in zip(channel.inputs, channel.matrix.tolist(), strict=True)
        }

    def rows(self, draw):
        letters = {self.letter(cell, z) for cell in self.cells for z in self.z}
        return {letter: [Fraction(q) for q in draw(letter)] for letter in sorted(letters, key=repr)}

    def x_of(self, letter):
        return letter if isinstance(letter, int) else letter[self.encoder == "wx"]

    def joint(self, rows):
        """Return p(w, x, (z, x̂)), exactly."""
        laws = self.together(rows)
        return {c: [Fraction(int(self.counts[c]), self.records) * p for p in laws[c]] for c in laws}

    def distortion(self, rows, d):
        cost = [Fraction(v) for v in d.ravel().tolist()]
        return sum(
            p * cost[c[1] * self.m + k % self.m] for c, law in self.joint(rows).items()
            for k, p in enumerate(law)
        )  # fmt: skip


def _summed(joint, axis):
    sums = {}
    for cell, law in joint.items():
        old = sums.get(cell[axis], [Fraction(0)] * len(law))
        sums[cell[axis]] = [a + b for a, b in zip(old, law, strict=True)]
    return sums


def _log(fraction):
    return mp.log(mp.mpf(fraction.numerator)) - mp.log(mp.mpf(fraction.denominator))


def _posteriors(table):
    """Return (q, p(v | output), p(v)) of each output with mass."""
    prior = [sum(law) for law in table.values()]
    for column in zip(*table.values(), strict=True):
        if q := sum(column):
            yield q, [j / q for j in column], prior


def _divergence(posterior, prior):
    pairs = [(p, r) for p, r in zip(posterior, prior, strict=True) if p]
    return sum(mp.mpf(p.numerator) / p.denominator * _log(p / r) for p, r in pairs)


def _real(number):
    if isinstance(number, mp.mpf):
        return number
    return mp.mpf(number.numerator) / number.denominator


def _of_w(of, rows):
    return list(_posteriors(_summed(of.joint(rows), 0)))


def _information(table):
    return sum(_real(q) * _divergence(p, r) for q, p, r in _posteriors(table))


def _laws(of, rows):
    laws = of.together(rows)
    return laws if of.sees == "wx" else {cell[1]: law for cell, law in laws.items()}


def local(of, rows, distance=lambda s, t: 1):
    worst = mp.mpf(0)
    for (s, a), (t, b) in itertools.permutations(_laws(of, rows).items(), 2):
        for p, q in zip(a, b, strict=True):
            if p:
                worst = max(worst, _log(p / q) / distance(s, t) if q else mp.inf)
    return worst


def metric(of, rows):
    return local(of, rows, lambda s, t: abs(s - t))


def maximal(of, rows):
    return _log(sum(map(max, zip(*_laws(of, rows).values(), strict=True)))) / BITS


def given_x(of, rows):
    total, joint = mp.mpf(0), of.joint(rows)
    for x in {cell[1] for cell in joint}:
        table = {cell[0]: law for cell, law in joint.items() if cell[1] == x}
        mass = sum(sum(law) for law in table.values())
        shares = {w: [p / mass for p in law] for w, law in table.items()}
        total += _real(mass) * _information(shares)
    return total / BITS


def anonymity(of, rows):
    joint = of.joint(rows)
    table = joint if of.sees == "wx" else _summed(joint, 1)
    return min(of.records * mp.exp(-_divergence(p, r)) for _, p, r in _posteriors(table))


def leakage(of, rows):
    return _information(_summed(of.joint(rows), 0)) / BITS


def greatest(measure):
    """Return the greatest of a function of p(w | z, x̂) and p(w), over all (z, x̂)."""
    return lambda of, rows: max(measure(p, r) for _, p, r in _of_w(of, rows))


def mean(measure):
    return lambda of, rows: sum(_real(q) * measure(p, r) for q, p, r in _of_w(of, rows))


def likeliest(p, r):
    return _real(max(p))


def ratio(p, r):
    return _real(max(a / b for a, b in zip(p, r, strict=True)))


def disclosure(p, r):
    return max(abs(_log(a / b)) if a else mp.inf for a, b in zip(p, r, strict=True))


def total_variation(p, r):
    return _real(sum(abs(a - b) for a, b in zip(p, r, strict=True))) / 2


def chi_squared(p, r):
    return _real(sum((a - b) ** 2 / b for a, b in zip(p, r, strict=True)))


def earth_mover(p, r):
    sums = [abs(sum(p[:i]) - sum(r[:i])) for i in range(1, len(p))]
    return _real(sum(sums)) / (len(p) - 1) if len(p) > 1 else mp.mpf(0)


def concentration(p, r):
    """Return 1/ℓ."""
    return mp.exp(sum(_real(a) * _log(a) for a in p if a))


def of_measure(kind, measure):
    return lambda number: kind(number, measure)


VALUES = {  # name: the criterion of a number, and its value for all releases together
    "local": (cpv.LocalPrivacy, local),
    "metric": (cpv.LocalPrivacy, metric),
    "maximal": (cpv.MaximalLeakage, maximal),
    "given x": (cpv.ConditionalLeakageCap, given_x),
    "record": (cpv.RecordEntropy, anonymity),
    "guessed": (GuessedAtMost, greatest(likeliest)),
    "leakage": (cpv.LeakageCap, leakage),
    "guessing": (of_measure(cpv.LeakageCap, "guessing-probability"), mean(likeliest)),
    "maximal of w": (of_measure(cpv.LeakageCap, "maximal-leakage"), mean(ratio)),
    "closeness": (cpv.TCloseness, greatest(lambda p, r: _divergence(p, r) / BITS)),
    "emd": (of_measure(cpv.TCloseness, "emd"), greatest(earth_mover)),
    "tv": (lambda t: cpv.PerLetter("tv", t), greatest(total_variation)),
    "chi2": (lambda t: cpv.PerLetter("chi2", t), greatest(chi_squared)),
    "diversity": (cpv.LDiversity, lambda of, rows: 1 / greatest(concentration)(of, rows)),
    "delta": (cpv.DeltaDisclosure, greatest(disclosure)),
    "information privacy": (cpv.LocalInformationPrivacy, greatest(disclosure)),
    "pointwise": (cpv.PointwiseMaximalLeakage, greatest(lambda p, r: mp.log(ratio(p, r)))),
}
AT_LEAST = {"record", "diversity"}
OF_CHANNELS = {"local", "metric", "maximal"}  # whatever the law, which is rounded


def _line(of):
    places = np.arange(of.counts.shape[1])
    return abs(places[:, None] - places)


def checked(seed, name):
    """Solve one random problem; return the solution, what is in excess, and how high its end is."""
    rng = np.random.default_rng([seed, [*VALUES].index(name)])
    kind, value = VALUES[name]
    sign = -1 if name in AT_LEAST else 1
    of = Releases(rng, saw_w=False if name == "metric" else None)
    if name == "metric":
        of.encoder = of.sees = "x"
    d = rng.random((of.counts.shape[1], of.m))
    constant = of.rows(lambda letter: np.eye(of.m)[0])
    loose = of.rows(lambda letter: rng.dirichlet(np.full(of.m, 0.3)) * 0.98 + 0.02 / of.m)
    least, most = (value(of, rows) for rows in (constant, loose))
    number = float(least + (most - least) * rng.uniform(0.1, 0.9)) + sign * 1e-6
    rule = kind(number) if name != "metric" else kind(number, metric=_line(of))
    options = {"encoder": of.encoder, "after": of.after, "remember": of.remember}
    feasible, budget = constant, math.inf
    if name == "given x":  # which binds where it is not d alone that is minimised
        feasible = of.rows(lambda letter: np.eye(of.m)[d[of.x_of(letter)].argmin()])
        ends = [float(of.distortion(rows, d)) for rows in (feasible, constant)]
        budget = ends[0] + 0.5 * (ends[1] - ends[0]) + 1e-6
        problem = cpv.PrivacyDistortion(of.source, d, budget, criteria=[rule], **options)
    else:
        problem = cpv.MinimumDistortion(of.source, d, [rule], **options)
    solution = problem.solve(certify="warn")
    assert solution.channel is not None, rule

    def excess(rows):
        return sign * (value(of, rows) - mp.mpf(number))

    def objective(rows):
        return leakage(of, rows) if math.isfinite(budget) else of.distortion(rows, d)

    values = [objective(feasible)]  # of releases that satisfy it
    for _ in range(3):
        wild = of.rows(lambda letter: rng.dirichlet(np.full(of.m, 0.2)))
        low, high = Fraction(0), Fraction(1)
        for _ in range(12):
            share = (low + high) / 2
            rows = {s: _mixed(share, wild[s], feasible[s]) for s in wild}
            inside = excess(rows) <= 0 and of.distortion(rows, d) <= budget
            low, high = (share, high) if inside else (low, share)
            values += [objective(rows)] if inside else []
    beyond = excess(of.rows_of(solution.channel)) / max(1, abs(number))
    return solution, beyond, mp.mpf(solution.lower) - min(_real(v) for v in values)


def _mixed(share, a, b):
    row = [share * p + (1 - share) * q for p, q in zip(a, b, strict=True)]
    return [p / sum(row) for p in row]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", [6, pytest.param(8, marks=pytest.mark.long)])
def test_what_is_certified_holds_of_all_releases_together(name, seed):
    solution, beyond, above = checked(seed, name)
    assert solution.status == "certified"
    assert beyond <= (0 if name in OF_CHANNELS else OFF)
    assert above <= 1e-12
