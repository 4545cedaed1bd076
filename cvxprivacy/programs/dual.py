"""Untrusted multipliers of a channel program, and the bound (P17) that they prove, in floats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.exact import FloatArray, floats, is_sparse
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.programs.channel import ChannelProgram, IntArray, Matrix
from cvxprivacy.programs.expression import Expression
from cvxprivacy.programs.side_conditions import Excess

__all__ = ["Dual"]


@dataclass(frozen=True, eq=False)
class Dual(FrozenFields):
    """Untrusted multipliers of a channel program; whatever they are, they prove a bound.

    Attributes
    ----------
    scores : mapping of str to (|V|, m) array
        What tells the scores of view k for each y: log(r_k(v | y) / π_k(v)) up to a constant, r_k
        the posterior, where its leakage is information.
    multipliers : mapping of str to float or (m,) array
        λ_j of each row.
    auxiliaries : mapping of str to sequence of (n, m) arrays
        (μ, η) of a ``ratio``, (μ,) of a ``maximum``; (μ,), shape (m,), of an ``excess``.
    objective : {1, 0}
        Weight of the objective; 0 states a contradiction of the constraints.
    shares : mapping of str to float
        How much of that weight each but the first has, where the objective is the worst of
        several; what is left of 1 is the first's.
    """

    scores: Mapping[str, FloatArray]
    multipliers: Mapping[str, npt.ArrayLike]
    auxiliaries: Mapping[str, Sequence[FloatArray]] = field(default_factory=dict)
    objective: int = 1
    shares: Mapping[str, float] = field(default_factory=dict)

    def cleaned(self, program: ChannelProgram) -> Dual:
        """Return multipliers a proof can use: finite, of the right shape and sign (C3)."""
        scores = {
            k: _as(self.scores.get(k), (v.measure.rows(v.size), program.m))
            for k, v in program.views.items()
        }
        multipliers: dict[str, npt.ArrayLike] = {}
        for name, row in program.constraints.items():
            lam = _as(self.multipliers.get(name), (program.m,) if row.per_output else ())
            multipliers[name] = lam if row.sense == "==" else np.maximum(lam, 0.0)
        auxiliaries = {}
        for name, aux in program.auxiliaries.items():
            shapes = aux.shapes(program.n, program.m)
            arrays = list(self.auxiliaries.get(name, ()))
            arrays = arrays if len(arrays) == len(shapes) else [np.zeros(0)] * len(shapes)
            pairs = zip(arrays, shapes, strict=True)
            auxiliaries[name] = [np.maximum(_as(a, shape), 0.0) for a, shape in pairs]
        _, *others = program.objectives
        shares = {name: max(float(_as(self.shares.get(name), ())), 0.0) for name in others}
        return Dual(scores, multipliers, auxiliaries, 1 if self.objective else 0, shares)

    def shares_of(self, program: ChannelProgram) -> dict[str, float]:
        """Return the weights of what is minimised, of the worst of several of sum 1 (P26)."""
        first, *others = program.objectives
        shares = {name: self.shares.get(name, 0.0) for name in others}
        total = sum(shares.values())
        shares = {name: share / max(total, 1.0) for name, share in shares.items()}
        return {first: max(1.0 - total, 0.0), **shares}

    def weighed(self, program: ChannelProgram) -> list[tuple[float, Expression]]:
        """Return what is minimised with its weights."""
        shares = self.shares_of(program).items()
        return [(self.objective * s, program.objectives[name]) for name, s in shares]

    def violation(self, program: ChannelProgram) -> float:
        """Return the largest amount by which a multiplier has the wrong sign."""
        parts = [
            _as(self.multipliers.get(name), (program.m,) if row.per_output else ())
            for name, row in program.constraints.items()
            if row.sense == "<="
        ]
        for name, aux in program.auxiliaries.items():
            shapes = aux.shapes(program.n, program.m)
            parts += map(_as, self.auxiliaries.get(name, ()), shapes)
        return max([0.0, *(float(np.max(-part)) for part in parts)])

    def weights(self, program: ChannelProgram) -> dict[str, FloatArray]:
        """Return ω_k(y) = α_k(y) + Σ_j λ_j β_jk(y) by view, shape (m,) (P14)."""
        omega = {view: np.zeros(program.m) for view in program.views}
        for share, part in self.weighed(program):
            for view, weight in part.columns(program.m).items():
                omega[view] = omega[view] + share * weight
        for name, row in program.constraints.items():
            for view, weight in row.expression.columns(program.m).items():
                omega[view] = omega[view] + np.asarray(self.multipliers[name]) * weight
        return omega

    def slopes(self, program: ChannelProgram, view: str) -> FloatArray:
        """Return the scores of a view in the set that its measure allows, shape (|V|, m) (C2).

        log(r(v|y)/π(v)) in nats for information.
        """
        scores = np.asarray(self.scores[view], dtype=float)
        return program.views[view].measure.inside(scores, program.reference(view))

    def minorant(self, program: ChannelProgram) -> tuple[FloatArray, float]:
        """Return (G, c): objective ≥ ⟨G, K⟩ + c at every feasible channel K, in floats (P16).

        G(s, y) = Σ_k ω_k(y) Σ_v p(v, s) s_k(v, y) + p(s)(C_0 + Σ_j λ_j C_j)(s, y), for any scores
        that the measures allow and any λ ≥ 0 (either sign on equalities): (P15) times p(s), as it
        multiplies K.
        """
        (g,) = (table for _, table in self.tables(program, [np.arange(program.n)]))
        return g, self.constant(program)

    def tables(
        self, program: ChannelProgram, blocks: Iterable[IntArray] | None = None
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield G of (P16) for blocks of letters, by default those of the program."""
        slopes = [
            (program.view_matrix(view).T.tocsr(), omega * self.slopes(program, view), view)
            for view, omega in self.weights(program).items()
            if omega.any()
        ]
        priced: list[tuple[Any, Expression]] = list(self.weighed(program))
        for name, row in program.constraints.items():
            priced.append((np.asarray(self.multipliers[name], dtype=float), row.expression))
        for letters in program.blocks if blocks is None else blocks:
            mass = program.mass[letters, None]
            g = np.zeros((len(letters), program.m))
            for lam, term in priced:
                if term.cost is not None and np.any(lam):
                    g += mass * (lam * program.cost(term, letters))
            for likelihood, slope, view in slopes:
                g += likelihood[letters] @ (slope * program.unit(view))
            for name, aux in program.auxiliaries.items():
                g += self._beside(name, aux, program, letters)
            yield letters, g

    def _beside(
        self, name: str, aux: Any, program: ChannelProgram, letters: IntArray
    ) -> FloatArray:
        """Return what an auxiliary adds to G."""
        mass = program.mass[letters, None]
        if isinstance(aux, Excess):
            (mu,) = self.auxiliaries[name]
            return floats(aux.share)[letters, None] * mass * mu  # (P25)
        duals = [mass * np.asarray(a, float)[letters] for a in self.auxiliaries[name]]
        return duals[1] - duals[0] if aux.kind == "ratio" else duals[0]  # (P23), (P24)

    def constant(self, program: ChannelProgram) -> float:
        """Return c of (P16)."""
        c = 0.0
        for share, part in self.weighed(program):
            c += share * float(part.constant)
        for name, row in program.constraints.items():
            lam = np.asarray(self.multipliers[name], dtype=float)
            c += float((lam * (float(row.expression.constant) - row.bounds(program.m))).sum())
        for name, aux in program.auxiliaries.items():
            if isinstance(aux, Excess):
                (mu,) = self.auxiliaries[name]
                c -= float(mu @ floats(aux.levels)) + float(aux.bound) * float(np.max(mu))
                continue
            duals = [program.mass[:, None] * np.asarray(a, float) for a in self.auxiliaries[name]]
            if aux.kind == "ratio":
                mu, eta = duals
                c += min(0.0, float((mu - aux.bound * eta).sum(axis=0).min()))  # (P23)
            else:
                (mu,) = duals
                c -= aux.bound * float(mu.sum(axis=0).max())  # (P24)
        return c

    def lower_bound(self, program: ChannelProgram) -> float:
        """Return the dual bound in floats (P17); the certificate proves it in balls."""
        bounded = program.floor is not None or program.ceiling is not None
        least = sum(
            float((g * program.least(g)[0]).sum() if bounded else g.min(axis=1).sum())
            for _, g in self.tables(program)
        )
        return least + self.constant(program)

    def thresholds(self, program: ChannelProgram) -> FloatArray:
        """Return ν(s) of (P22), shape (n,)."""
        return np.concatenate([program.least(g)[1] for _, g in self.tables(program)])

    def residuals(self, program: ChannelProgram, channel: Matrix) -> dict[str, float]:
        """Return complementarity and stationarity, which add up to the gap (P20)."""
        stationarity = 0.0
        for view, omega in self.weights(program).items():
            if omega.any():
                slopes = self.slopes(program, view) * program.unit(view)
                minorant = (program.joint(channel, view) * slopes).sum(axis=0)
                phi = program.information(channel, view)
                stationarity += float((omega * (phi - minorant)).sum())
        value = entries = 0.0
        for letters, g in self.tables(program):
            some = channel[letters]
            value += float((some * g).sum())
            if is_sparse(some):  # rows of sum 1 without bounds: the least of g is ν
                entries += float((some * (g - g.min(axis=1, keepdims=True))).sum())
            else:
                entries += float((g * (some - program.least(g)[0])).sum())
        # f₀ − L at this channel: stationarity, and the slack of rows and auxiliaries times λ, μ, η
        slack = program.attained(channel) - value - self.constant(program)
        return {"complementarity": entries + slack - stationarity, "stationarity": stationarity}

    def to_dict(self) -> dict[str, Any]:
        return {
            "scores": {k: np.asarray(v, float).tolist() for k, v in self.scores.items()},
            "multipliers": {k: np.asarray(v, float).tolist() for k, v in self.multipliers.items()},
            "auxiliaries": {
                k: [np.asarray(a, float).tolist() for a in v] for k, v in self.auxiliaries.items()
            },
            "objective": self.objective,
            **({"shares": dict(self.shares)} if self.shares else {}),
        }


def _as(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return ``values`` as finite floats of ``shape``, zeros where they are not."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return np.zeros(shape)
    if array.shape != shape:
        return np.zeros(shape)
    return np.where(np.isfinite(array), array, 0.0)
