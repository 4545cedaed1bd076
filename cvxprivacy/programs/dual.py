"""Untrusted multipliers of a channel program, and the bound (P17) that they prove, in floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.exact import FloatArray, floats
from cvxprivacy.frozen import FrozenFields
from cvxprivacy.programs.channel import ChannelProgram
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

    def weighed(self, program: ChannelProgram) -> list[tuple[float, Expression]]:
        """Return what is minimised with its weights, of the worst of several of sum 1 (P26)."""
        first, *others = program.objectives
        shares = {name: self.shares.get(name, 0.0) for name in others}
        total = sum(shares.values())
        shares = {name: share / max(total, 1.0) for name, share in shares.items()}
        shares[first] = max(1.0 - total, 0.0)
        return [(self.objective * s, program.objectives[name]) for name, s in shares.items()]

    def violation(self, program: ChannelProgram) -> float:
        """Return the largest amount by which a multiplier has the wrong sign."""
        signed = {name: row for name, row in program.constraints.items() if row.sense == "<="}
        worst = 0.0
        for name, row in signed.items():
            lam = _as(self.multipliers.get(name), (program.m,) if row.per_output else ())
            worst = max(worst, float(np.max(-lam)))
        for name, aux in program.auxiliaries.items():
            shapes = aux.shapes(program.n, program.m)
            for part, shape in zip(self.auxiliaries.get(name, ()), shapes, strict=False):
                worst = max(worst, float(np.max(-_as(part, shape))))
        return worst

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
        g, c = np.zeros((program.n, program.m)), 0.0
        for share, part in self.weighed(program):
            g = g + share * program.mass[:, None] * program.cost(part)
            c += share * float(part.constant)
        for view, omega in self.weights(program).items():
            if not omega.any():
                continue
            slopes = omega * self.slopes(program, view) * program.unit(view)
            g = g + np.asarray(program.view_matrix(view).T @ slopes)
        for name, row in program.constraints.items():
            lam = np.asarray(self.multipliers[name], dtype=float)
            g = g + program.mass[:, None] * (lam * program.cost(row.expression))
            c = c + float((lam * (float(row.expression.constant) - row.bounds(program.m))).sum())
        for name, aux in program.auxiliaries.items():
            if isinstance(aux, Excess):
                (mu,) = self.auxiliaries[name]
                g = g + (floats(aux.share) * program.mass)[:, None] * mu  # (P25)
                c -= float(mu @ floats(aux.levels)) + float(aux.bound) * float(np.max(mu))
                continue
            duals = [program.mass[:, None] * np.asarray(a, float) for a in self.auxiliaries[name]]
            if aux.kind == "ratio":
                mu, eta = duals
                g = g + eta - mu
                c += min(0.0, float((mu - aux.bound * eta).sum(axis=0).min()))  # (P23)
            else:
                (mu,) = duals
                g = g + mu
                c -= aux.bound * float(mu.sum(axis=0).max())  # (P24)
        return g, c

    def lower_bound(self, program: ChannelProgram) -> float:
        """Return the dual bound in floats (P17); the certificate proves it in balls."""
        g, c = self.minorant(program)
        return float((g * program.least(g)[0]).sum() + c)

    def residuals(self, program: ChannelProgram, channel: FloatArray) -> dict[str, float]:
        """Return complementarity and stationarity, which add up to the gap (P20)."""
        stationarity = 0.0
        for view, omega in self.weights(program).items():
            if omega.any():
                slopes = self.slopes(program, view) * program.unit(view)
                minorant = (program.joint(channel, view) * slopes).sum(axis=0)
                phi = program.information(channel, view)
                stationarity += float((omega * (phi - minorant)).sum())
        g, constant = self.minorant(program)
        # f₀ − L at this channel: stationarity, and the slack of rows and auxiliaries times λ, μ, η
        slack = program.attained(channel) - float((g * channel).sum()) - constant
        entries = float((g * (channel - program.least(g)[0])).sum())
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
