"""The conic statement of a covariance program, in CVXPY, in whitened coordinates.

Σ = L M Lᵀ with Σ̄ = L Lᵀ: 0 ≼ M ≼ I; each view likewise, S' + T'M T'ᵀ = R⁻¹(S + BΣBᵀ)R⁻ᵀ with
R Rᵀ = Cov(A | Z), so that it is I at M = I.  At a condition number of 1e12 the plain form
returns points that are infeasible by more than any certificate allows; this one does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import cvxpy as cp
import numpy as np

from cvxprivacy.certificates.covariance import CovarianceProof
from cvxprivacy.certificates.factors import floats, root_of
from cvxprivacy.programs import CovarianceDual, CovarianceProgram, Row, Term
from cvxprivacy.programs.channel import FloatArray

__all__ = ["LogDetModel", "Whitened"]


class Whitened:
    """A covariance program in floats, in coordinates in which nothing is ill-conditioned.

    Attributes
    ----------
    root : (n, n) array
        L, lower triangular.
    views : mapping of str to (R, S', T')
    reference : mapping of str to float
        log det R_A − log det Cov(A | Z), in nats: 0 unless A depends on Z.
    """

    def __init__(self, program: CovarianceProgram, proof: CovarianceProof) -> None:
        self.program, self.proof = program, proof
        self.nat = float(1 / proof.units)
        self.root, inverse = root_of(proof.bound)
        self.views: dict[str, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self.reference: dict[str, float] = {}
        for name, (s, b, reference) in proof.views.items():
            whole = proof.whole(name)
            root, own = root_of(whole)
            s_white = floats(proof.product(own, s, own.transpose()))
            spread = floats(proof.product(own, b, self.exact_root()))
            self.views[name] = root, (s_white + s_white.T) / 2, spread
            self.reference[name] = float(2 * reference - proof.log_det(whole))
        self.inverse = inverse
        self.caps = {
            name: floats(proof.product(inverse, cap, inverse.transpose()))
            for name, cap in proof.caps.items()
        }

    def exact_root(self) -> Any:
        """Return L as the matrix of the proof."""
        return self.proof.exactly(self.root)

    def cost(self, term: Term) -> FloatArray:
        """Return LᵀCL."""
        if term.cost is None:
            return np.zeros((self.program.n, self.program.n))
        cost = np.asarray(term.cost, float)
        white = self.root.T @ cost @ self.root
        return (white + white.T) / 2

    def spread(self, view: str, middle: FloatArray) -> FloatArray:
        """Return R⁻¹(S + BΣBᵀ)R⁻ᵀ at Σ = L M Lᵀ."""
        _, s, t = self.views[view]
        found = s + t @ middle @ t.T
        return (found + found.T) / 2

    def value(self, term: Term, middle: FloatArray) -> float:
        """Return a term at Σ = L M Lᵀ, in the program's units; ∞ where it has none."""
        value = term.constant + float((self.cost(term) * middle).sum())
        for view, weight in term.weights.items():
            sign, log_det = np.linalg.slogdet(self.spread(view, middle))
            if sign <= 0:
                return np.inf
            value += float(weight) * self.nat * (self.reference[view] - log_det) / 2
        return value

    def dual(
        self,
        middle: FloatArray,
        multipliers: Mapping[str, float],
        parts: Mapping[str, FloatArray] | None = None,
        objective: int = 1,
    ) -> CovarianceDual:
        """Return multipliers whose posteriors are those of M, and the best part for them.

        ``multipliers`` are those of the program in nats, ``parts`` those of the caps.
        """
        program = self.program
        lam = {name: max(float(multipliers.get(name, 0.0)), 0.0) for name in program.rows}
        gradient, size = np.zeros((program.n, program.n)), 0.0
        omega = dict.fromkeys(self.views, 0.0)
        terms = [(program.objective, float(objective))]
        terms += [(row.term, lam[name]) for name, row in program.rows.items()]
        for term, weight in terms:
            pull = weight * self.cost(term) / (self.nat if term.weights else 1.0)
            gradient, size = gradient + pull, size + float(np.abs(pull).max())
            for view, beta in term.weights.items():
                omega[view] += weight * float(beta)
        posteriors = {}
        for view, (root, _, t) in self.views.items():
            if omega[view] == 0:
                continue
            y = np.linalg.inv(self.spread(view, middle))
            y = (y + y.T) / 2
            posteriors[view] = (root, y)
            pull = omega[view] / 2 * (t.T @ y @ t)
            gradient, size = gradient - pull, size + float(np.abs(pull).max())
        found = {name: (self.root, self.part(-part, 0.0)) for name, part in (parts or {}).items()}
        gradient = (gradient + gradient.T) / 2 + sum((p for _, p in found.values()), 0.0)
        found[""] = self.root, self.part(gradient, size)
        return CovarianceDual(lam, posteriors, found, objective)

    def part(self, gradient: FloatArray, size: float) -> FloatArray:
        """Return N = (−G)₊, a little more, so that N and N + G are proved semidefinite.

        ``size`` is that of the terms of G, which may be far above that of their sum.
        """
        values, vectors = np.linalg.eigh(-gradient)
        part = (vectors * np.maximum(values, 0.0)) @ vectors.T
        jitter = 2.0**-49 * self.program.n * (size + np.abs(values).max() + 2.0**-900)
        return (part + part.T) / 2 + jitter * np.eye(self.program.n)


class LogDetModel:
    """A covariance program as an ordinary ``cp.Problem`` with named constraints.

    Attributes
    ----------
    problem : cp.Problem
    variables : dict of str to cp.Variable
        ``M`` (n, n), the whitened error covariance, and ``tau`` in phase one.
    constraints : dict of str to cp.Constraint
        ``0 ≼ Σ``, ``Σ ≼ Cov(V | Z)``, each cap and each row under its own name.
    phase_one : bool
        Minimise the largest scaled violation τ of the rows instead.
    """

    def __init__(self, white: Whitened, *, phase_one: bool = False) -> None:
        self.white, self.phase_one = white, phase_one
        program, n = white.program, white.program.n
        m = cp.Variable((n, n), symmetric=True, name="M")
        self.variables = {"M": m}
        self.constraints: dict[str, cp.Constraint] = {}
        self._log_dets: dict[str, Any] = {}
        self._scales: dict[str, float] = {}
        self._name("0 ≼ Σ", m >> 0)
        self._name("Σ ≼ Cov(V | Z)", np.eye(n) - m >> 0)
        for name, cap in white.caps.items():
            self._name(name, cap - m >> 0)
        slack: Any = 0.0
        objective = self._expression(program.objective)
        if phase_one:
            slack = objective = self.variables["tau"] = cp.Variable(name="tau")
            self._name("bounded", slack >= -1.0)
        for name, row in program.rows.items():
            scale = self._scales[name] = self._scale(row)
            bound = float(row.bounds(1)) / (white.nat if row.term.weights else 1.0)
            self._name(name, (self._expression(row.term) - bound) / scale <= slack)
        self.problem = cp.Problem(cp.Minimize(objective), list(self.constraints.values()))

    def _name(self, name: str, constraint: cp.Constraint) -> None:
        constraint.set_label(name)
        self.constraints[name] = constraint

    def _scale(self, row: Row) -> float:
        if row.term.weights:
            return 1.0
        return float(np.trace(self.white.cost(row.term))) or 1.0

    def _expression(self, term: Term) -> Any:
        """Return a term in nats if it has information, else in its own unit."""
        white = self.white
        unit = 1.0 if not term.weights else 1.0 / white.nat
        value: Any = term.constant * unit
        if term.cost is not None:
            value = value + cp.sum(cp.multiply(white.cost(term) * unit, self.variables["M"]))
        for view, weight in term.weights.items():
            if view not in self._log_dets:
                _, s, t = white.views[view]
                self._log_dets[view] = cp.log_det(s + t @ self.variables["M"] @ t.T)
            log_det = self._log_dets[view]
            value = value + float(weight) * (white.reference[view] - log_det) / 2
        return value

    def solve(self, solver: str, options: Mapping[str, Any], *, verbose: bool = False) -> str:
        """Run one solver once; return what it said of itself, for the log."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.problem.solve(solver=solver, verbose=verbose, **options)
        except (cp.SolverError, ValueError, ArithmeticError, KeyError) as error:
            return f"{type(error).__name__}: {error}".splitlines()[0][:200]
        except BaseException as error:  # a panic of Rust is no Exception
            if type(error).__name__ != "PanicException":
                raise
            return f"{type(error).__name__}: {error}"
        return str(self.problem.status)

    @property
    def middle(self) -> FloatArray | None:
        """M with its eigenvalues in [0, 1], or None without one."""
        value = self.variables["M"].value
        if value is None or not np.isfinite(value).all():
            return None
        values, vectors = np.linalg.eigh((value + value.T) / 2)
        return (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T

    @property
    def multipliers(self) -> dict[str, float]:
        """λ of each row, of the program in nats."""
        found = {}
        for name, scale in self._scales.items():
            value = self.constraints[name].dual_value
            found[name] = 0.0 if value is None else float(value) / scale
        return found

    @property
    def parts(self) -> dict[str, FloatArray]:
        """The multiplier of each cap, in whitened coordinates."""
        found = {}
        for name in self.white.caps:
            value = self.constraints[name].dual_value
            found[name] = np.zeros_like(self.white.root) if value is None else np.array(value)
        return found
