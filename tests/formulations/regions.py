"""Regions with side information, and their releases played on the joint law written out in full."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.typing import Solution
from tests import referee

CASES = (None, "decoder", "both")


ENCODERS = ("x", "wx")


pd = pytest.importorskip("pandas", reason="the extra `examples` is not installed")


def entropy(masses) -> float:
    masses = np.asarray(masses, float).ravel()
    masses = masses[masses > 0]
    return float(-(masses * np.log(masses)).sum())


def information(joint: np.ndarray, a: str, b: str, value: str = "") -> float:
    """Return I(A; B | C) in nats of a law over the axes w, x, z, u."""

    def h(letters: str) -> float:
        gone = tuple(i for i, name in enumerate("wxzu") if name not in letters)
        return entropy(joint.sum(axis=gone))

    return h(a + value) + h(b + value) - h(value) - h(a + b + value)


class Played:
    """A solution's release played on the source: p(w, x, z, u), and the x̂ of every u and z."""

    def __init__(self, problem: cpv.RateDistortionEquivocation, solution: Solution) -> None:
        self.problem, source, channel = problem, problem.source, solution.channel
        self.unit = math.log(2.0) if problem.units == "bits" else 1.0
        law = source.law if source.law.ndim == 3 else source.law[:, :, None]
        zs = source.z if source.z is not None else [None]
        place = {label: i for i, label in enumerate(channel.inputs)}
        self.joint = np.zeros((*law.shape, channel.matrix.shape[1]))
        for w, x, z in np.ndindex(law.shape):
            axes = {"w": source.w[w], "x": source.x[x], "z": zs[z]}
            label = tuple(axes[name] for name in channel.encoder)
            row = channel.matrix[place[label if len(label) > 1 else label[0]]]
            self.joint[w, x, z] = law[w, x, z] / law.sum() * row
        self.letters = problem.alphabet.d.outputs
        self.hat = np.tile(np.arange(len(self.letters))[:, None], (1, len(zs)))
        if channel.decoder is not None:
            used = range(len(channel.outputs))
            read = [[self.letters.index(channel.decoder(u, z)) for z in zs] for u in used]
            self.hat = np.array(read)

    @property
    def released(self) -> np.ndarray:
        """p(w, x, z, x̂)."""
        outcome = np.zeros((*self.joint.shape[:3], len(self.letters)))
        for u, z in np.ndindex(self.hat.shape):
            outcome[:, :, z, self.hat[u, z]] += self.joint[:, :, z, u]
        return outcome

    def expected(self, matrix) -> float:
        """Return E m(X, X̂) or E m(W, X, X̂)."""
        matrix = np.asarray(matrix, float)
        matrix = np.broadcast_to(matrix, (self.joint.shape[0], *matrix.shape[-2:]))
        return float((self.released.sum(axis=2) * matrix).sum())

    @property
    def terms(self) -> dict[str, float]:
        joint, side = self.joint, self.problem.side_information
        s = "wx" if self.problem.encoder == "wx" else "x"
        rate = information(joint, s, "u", "z" if side else "")
        leakage = information(joint, "w", "uz" if side else "u")
        return {
            "rate": rate / self.unit,
            "leakage": leakage / self.unit,
            "equivocation": (entropy(joint.sum(axis=(1, 2, 3))) - leakage) / self.unit,
            "distortion": self.expected(self.problem.alphabet.d.matrix),
        }

    def cells(self):
        """Yield p(w, x | u), or p(w, x | u, z) and z where the user knows it, of what occurs."""
        side = self.problem.side_information is not None
        table = self.joint if side else self.joint.sum(axis=2, keepdims=True)
        for z, u in itertools.product(range(table.shape[2]), range(table.shape[3])):
            mass = table[:, :, z, u].sum()
            if mass > 1e-9:
                yield table[:, :, z, u] / mass, z

    def excess(self, criterion: cpv.Criterion) -> float:
        """Return by how much a criterion is broken in some cell; negative if in none."""
        p_w = self.joint.sum(axis=(1, 2, 3))
        before = self.joint.sum(axis=3)
        if self.problem.side_information is None:
            before = before.sum(axis=2, keepdims=True)
        worst = -math.inf
        for cell, z in self.cells():
            w = cell.sum(axis=1)
            learned = sum(a * math.log(a / b) for a, b in zip(w, p_w, strict=True) if a > 0)
            if isinstance(criterion, cpv.TCloseness):
                off = learned / self.unit - criterion.t
            elif isinstance(criterion, cpv.LDiversity):
                off = math.log(criterion.l) - entropy(w)
            elif isinstance(criterion, cpv.DeltaDisclosure):
                met = p_w > 0
                off = np.abs(np.log(np.maximum(w[met], 1e-300) / p_w[met])).max() - criterion.delta
            else:  # H(record | u, z) = H(s | u, z) + Σ p(s | u, z) log(records with s and z)
                records = self.problem.source.records * before[:, :, z]
                s, n = cell, records
                if self.problem.encoder == "x":
                    s, n = cell.sum(axis=0), records.sum(axis=0)
                on = s > 0
                off = math.log(criterion.k) - entropy(s) - (s[on] * np.log(n[on])).sum()
            worst = max(worst, float(off))
        return worst


def agree(problem, solution, tolerance: float = 1e-9) -> Played:
    """Compare every term with the law written out."""
    played = Played(problem, solution)
    for name, value in played.terms.items():
        assert value == pytest.approx(float(solution.terms[name]), abs=tolerance), name
    return played


def solved(problem, accuracy: str = "high", *, by_hand: bool = False) -> Solution:
    """Solve, referee (beside CVXPY, if asked), recompute."""
    solution = problem.solve(accuracy=accuracy)
    referee.check(solution, problem=problem if by_hand else None)
    agree(problem, solution)
    return solution


def rde(source, distortion, *args, **options) -> cpv.RateDistortionEquivocation:
    return cpv.RateDistortionEquivocation(source, distortion, *args, **{"units": "nats", **options})


def random_law(rng: np.random.Generator, w: int, x: int, z: int, alpha: float = 1.0) -> np.ndarray:
    return rng.dirichlet(np.full(w * x * z, alpha)).reshape(w, x, z)


def costs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return d(x, x̂) or d(w, x, x̂), least where x̂ is x."""
    off = np.arange(shape[-2])[:, None] != np.arange(shape[-1])
    return rng.random(shape) * 0.5 + off


def holed(rng: np.random.Generator) -> np.ndarray:
    """Return a law of 3 × 5 × 4: a w, an x and a z without mass, a w that no z₀ has."""
    law = np.zeros((4, 5, 3))
    law[np.ix_([0, 2, 3], [0, 1, 3, 4], [0, 2])] = random_law(rng, 3, 4, 2)
    law[0, :, 0] = 0.0
    law[:, 3, 2] = 0.0
    return law / law.sum()


def between(problem_of, share: float) -> float:
    """Return a budget between the least and the greatest distortion."""
    ends = problem_of(minimize="distortion")
    low, high = ends.least_distortion, ends.greatest_distortion
    assert high - low > 1e-3
    return (1 - share) * low + share * high


def h(p: float) -> float:
    return entropy([p, 1 - p])


def star(a: float, b: float) -> float:
    return a * (1 - b) + b * (1 - a)


def people(records: int = 500, seed: int = 31):
    rng = np.random.default_rng(seed)
    town = rng.choice(["A", "B"], records, p=[0.6, 0.4])
    ill = np.where(rng.random(records) < 0.6, np.where(town == "A", "flu", "no"), "hiv")
    rich = np.where(rng.random(records) < 0.7, town == "B", rng.random(records) < 0.5)
    age = rng.choice([20, 30], records) + 10 * (ill == "flu")
    return pd.DataFrame(
        {
            "id": np.arange(records),
            "age": age,
            "ill": ill,
            "sex": np.where(rng.random(records) < 0.8, np.where(rich, "m", "f"), "m"),
            "income": np.where(rich, "high", "low"),
            "town": town,
        }
    )


ASKED = {"sensitive": ["ill", "income"], "key": ["age", "sex"], "side": "town"}
