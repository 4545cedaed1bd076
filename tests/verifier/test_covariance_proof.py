"""Covariance programs: a referee of their own, and a proof that believes nothing it is offered.

``check`` recomputes the optimality conditions of a solved program in extended precision, by
formulas of its own: Cov(A | X̂, Z) from the joint law of A and X̂, never from S + B Σ Bᵀ.  The
rest offers garbage to ``covariance_proof.py``: whatever comes out must contain a
minimum that is known beforehand.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.programs.covariance import CovarianceProgram, GaussianView
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.solvers.driver import solve_gaussian
from cvxprivacy.typing import GaussianSolution
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import UnprovableError, ceil, floor
from tests.lengths import some_at_length
from tests.verifier.documents import Document, leaves, put, run, signed

INF = math.inf
LONG = np.longdouble
# what the verifier takes for "not a certificate"
REFUSED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


# ---- the referee -------------------------------------------------------------------------


def long(rows: Any) -> np.ndarray:
    """Return numbers of any kind in extended precision."""

    def one(value: Any) -> Any:
        exact = Fraction(value)
        high = float(exact)
        return LONG(high) + LONG(float(exact - Fraction(high)))

    return np.array([[one(v) for v in row] for row in rows], dtype=LONG)


def chol(a: np.ndarray) -> np.ndarray:
    root = np.zeros_like(a)
    for j in range(len(a)):
        pivot = a[j, j] - root[j, :j] @ root[j, :j]
        assert pivot > 0, f"not positive definite: pivot {j} is {pivot}"
        root[j, j] = np.sqrt(pivot)
        root[j + 1 :, j] = (a[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    return root


def forward(root: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve root · x = b."""
    x = np.array(b)
    for i in range(len(root)):
        x[i] = (x[i] - root[i, :i] @ x[:i]) / root[i, i]
    return x


def log_det(a: np.ndarray) -> float:
    return 2 * np.log(chol(a).diagonal()).sum()


def unit(program: CovarianceProgram) -> float:
    return math.log(2.0) if program.units == "bits" else 1.0


class Referee:
    """A program in extended precision; Σ = L₀ M L₀ᵀ with L₀ L₀ᵀ = Cov(V | Z)."""

    def __init__(self, program: CovarianceProgram) -> None:
        self.program, z = program, list(program.given)
        gamma = long(program.covariance)
        law = gamma
        if z:
            half = forward(chol(gamma[np.ix_(z, z)]), gamma[z])
            law = gamma - half.T @ half
        v = list(program.encoded)
        self.root = chol(law[np.ix_(v, v)])
        self.whitened, self.reference = {}, {}
        for name, view in program.views.items():
            of = list(view.of)
            ours = chol(law[np.ix_(of, of)])
            across = forward(self.root, law[np.ix_(v, of)])
            self.whitened[name] = ours, forward(ours, across.T)  # L_A and T = L_A⁻¹ Cov(A, V) L₀⁻ᵀ
            above = gamma if view.reference == "marginal" else law
            self.reference[name] = log_det(above[np.ix_(of, of)]) - log_det(law[np.ix_(of, of)])
        condition = np.linalg.cond(np.array(gamma, float))
        self.room = 1e-12 + 100 * float(np.finfo(LONG).eps) * condition

    def middle(self, sigma: np.ndarray) -> np.ndarray:
        left = forward(self.root, sigma)
        return forward(self.root, left.T).T

    def cost(self, term: Expression) -> np.ndarray:
        if term.cost is None:
            return np.zeros_like(self.root)
        return self.root.T @ np.asarray(term.cost, dtype=LONG) @ self.root

    def left(self, view: str, middle: np.ndarray) -> np.ndarray:
        """Return L_A⁻¹ Cov(A | X̂, Z) L_A⁻ᵀ, what X̂ explains being T (I − M) Tᵀ."""
        _, t = self.whitened[view]
        return np.eye(len(t)) - t @ (np.eye(len(middle)) - middle) @ t.T

    def value(self, term: Expression, middle: np.ndarray) -> float:
        value = LONG(term.constant) + (self.cost(term) * middle).sum()
        for view, weight in term.weights.items():
            information = (self.reference[view] - log_det(self.left(view, middle))) / 2
            value += LONG(float(weight)) * information / unit(self.program)
        return value

    def infeasible_by(self, middle: np.ndarray) -> float:
        """Return the largest relative violation of 0 ≼ Σ ≼ Σ̄, of a cap or of a row."""
        values = np.linalg.eigvalsh(np.array(middle, float))
        outcome = [-values[0], values[-1] - 1]
        for cap in self.program.caps.values():
            white = np.array(self.middle(np.asarray(cap, LONG)), float)
            gap = np.linalg.eigvalsh(white - np.array(middle, float))
            outcome.append(-gap[0] / np.abs(white).max())
        if max(outcome) > 1e-6:  # then terms may not be defined
            return float(max(outcome))
        for row in self.program.constraints.values():
            bound = LONG(float(row.bound))
            size = max(abs(bound), np.abs(self.cost(row.expression)).max() if row.linear else 1)
            outcome.append((self.value(row.expression, middle) - bound) / size)
        return float(max(outcome))


def check(solution: Any, *, status: str | None = "certified") -> None:
    """Raise AssertionError unless a Gaussian solution (or certificate) is what it says it is."""
    certificate = getattr(solution, "certificate", solution)
    program, judge = certificate.program, Referee(certificate.program)
    scale, per = verify.proof_of(program.to_dict()).unit(certificate.upper), unit(program)
    tolerance = {"default": 1e-6, "high": 1e-9}[certificate.accuracy] * scale
    if status is not None:
        assert certificate.status == status, certificate
    assert certificate.lower <= certificate.upper
    assert (certificate.gap <= tolerance) == (certificate.status == "certified")
    assert certificate.verify()

    # primal feasibility: 0 ≼ Σ ≼ Σ̄, caps, rows
    root, middle = long(certificate.primal.root), long(certificate.primal.middle)
    m = judge.middle(root @ middle @ root.T)
    m = (m + m.T) / 2
    assert judge.infeasible_by(m) <= judge.room, "infeasible"

    # what it says of itself: value and terms
    value = judge.value(program.objective, m)
    noise = 1e-12 * scale + 10 * judge.room * max(1.0, abs(float(value)))
    assert math.isclose(value, certificate.upper, rel_tol=1e-11, abs_tol=noise)
    near = 1e-18 / max(float(np.linalg.eigvalsh(m.astype(float))[0]), 1e-18)
    for name, term in program.terms.items():
        low, high = certificate.terms[name]
        size = 1 + float(np.abs(judge.cost(term)).max())
        ours = judge.value(term, m)
        room = noise * size + 3e-11 * abs(float(ours)) + near  # of Σ where it is near singular
        assert low - room <= ours <= high + room, name

    # dual feasibility: λ ≥ 0, N ≽ 0, Z = G + P ≽ 0; stationarity is ⟨Z, Σ⟩ = 0 and Y = Cov⁻¹
    dual = certificate.dual
    assert dual.objective == 1
    objective_unit = per if program.objective.weights else 1.0
    parts = [(program.objective, 1.0, 0.0)]
    slack = LONG(0)
    for name, row in program.constraints.items():
        lam, bound = float(dual.multipliers[name]), float(row.bound)
        assert lam >= 0
        parts.append((row.expression, lam, bound))
        inner = per if row.expression.weights else 1.0
        slack += lam * inner * (bound - judge.value(row.expression, m))
    gradient, omega, total = np.zeros_like(m), dict.fromkeys(program.views, LONG(0)), LONG(0)
    for term, lam, bound in parts:
        inner = per if term.weights else 1.0
        total += lam * inner * (term.constant - bound)
        gradient = gradient + lam * inner * judge.cost(term)
        for view, weight in term.weights.items():
            omega[view] += LONG(lam) * LONG(float(weight))
    largest = max(1.0, float(np.abs(gradient).max()), *map(float, omega.values()))
    divergence = LONG(0)
    for view, o in omega.items():
        if o == 0:
            continue
        ours, t = judge.whitened[view]
        r, y = map(long, dual.posteriors[view])
        change = forward(r, ours)
        y = change.T @ y @ change
        left, size = judge.left(view, m), len(t)
        total += o / 2 * (judge.reference[view] + log_det(y) + size)
        total -= o / 2 * np.trace(y @ (np.eye(size) - t @ t.T))
        gradient = gradient - o / 2 * t.T @ y @ t
        divergence += o / 2 * (np.trace(y @ left) - log_det(y) - log_det(left) - size)
    complementary = LONG(0)
    for name, (l_part, n_part) in dual.psd_multipliers.items():
        if name and name not in program.caps:
            continue
        values = np.linalg.eigvalsh(np.array(long(n_part), float))
        assert values[0] >= -1e-14 * max(values[-1], 1e-300), name  # exact ones may be singular
        change = forward(long(l_part), judge.root)
        p = change.T @ long(n_part) @ change
        above = judge.middle(np.asarray(program.caps[name], LONG)) if name else np.eye(len(m))
        gradient, total = gradient + p, total - (p * above).sum()
        complementary += (p * (above - m)).sum()
    noise += 100 * judge.room * largest
    reduced = np.linalg.eigvalsh(np.array((gradient + gradient.T) / 2, float))
    assert reduced[0] >= -noise, f"Z is not ≽ 0: {reduced[0]}"
    stationary = (gradient * m).sum()

    # these parts, all nonnegative, make the gap; and the dual makes the lower end
    assert math.isclose(total / objective_unit, certificate.lower, rel_tol=1e-9, abs_tol=noise)
    shares = [float(x) for x in (slack, divergence, complementary, stationary)]
    assert min(shares) >= -noise, shares
    assert math.isclose(
        sum(shares) / objective_unit, certificate.gap, rel_tol=1e-3, abs_tol=noise
    ), shares


# ---- programs whose minimum is known -----------------------------------------------------

FLAVOURS = (
    "leakage",
    "within",
    "rate",
    "side",
    "region",
    "caps",
    "priced",
    "distortion",
    "constant",
    "fractions",
    "balls",
)


def random_covariance(rng: np.random.Generator, size: int, condition: float = 1e3) -> np.ndarray:
    vectors = np.linalg.qr(rng.normal(size=(size, size)))[0]
    law = (vectors * np.geomspace(1.0, 1 / condition, size)) @ vectors.T
    scales = 10 ** rng.uniform(-0.5, 0.5, size)
    law = law * np.outer(scales, scales)
    return (law + law.T) / 2


def random_program(rng: np.random.Generator, flavour: str) -> CovarianceProgram:
    """Return a program that Σ = share · Σ̄ satisfies, strictly."""
    w, x = (int(k) for k in rng.integers(1, 4, size=2))
    z = 2 if flavour in ("side", "region") else 0
    if flavour == "balls":
        w, x = 5, 6
    gamma: Any = random_covariance(rng, w + x + z)
    if flavour == "fractions":
        gamma = [[Fraction(round(64 * v), 64) for v in row] for row in gamma.tolist()]
        for i in range(w + x):
            gamma[i][i] += 1
    v, hidden = tuple(range(w, w + x)), tuple(range(w))
    if flavour == "within":
        hidden = v[:1]
    floats = np.array([[float(a) for a in row] for row in gamma])
    share = rng.uniform(0.1, 0.9)
    distortion = Expression("distortion", cost=np.eye(x))
    risk, rate = Expression("risk", {"W": 1.0}), Expression("rate", {"V": 1.0})
    views = {"W": GaussianView(hidden), "V": GaussianView(v, "conditional")}
    program = CovarianceProgram(
        covariance=gamma,
        encoded=v,
        given=tuple(range(w + x, w + x + z)),
        views=views,
        objective=risk,
        terms={"risk": risk, "distortion": distortion},
        units=("bits", "nats")[int(rng.integers(2))] if flavour != "distortion" else "nats",
    )
    judge = Referee(program)
    inner = share * np.eye(x, dtype=LONG)
    budget = distortion <= float(judge.value(distortion, inner)) * 1.01
    leak = risk <= float(judge.value(risk, inner)) * rng.uniform(1.02, 1.5) + 1e-3
    if flavour == "rate":
        return replace(program, objective=rate, constraints={"budget": budget})
    if flavour == "region":
        return replace(program, objective=rate, constraints={"budget": budget, "leakage": leak})
    if flavour == "caps":
        cap = floats[np.ix_(v, v)] * rng.uniform(0.3, 1.1) + 0.1 * np.eye(x)
        return replace(program, constraints={"budget": budget}, caps={"cap": cap})
    if flavour == "priced":
        return replace(program, objective=risk + 10 ** rng.uniform(-1, 0) * distortion)
    if flavour == "distortion":
        cap = rate <= float(judge.value(rate, inner))
        return replace(program, objective=distortion, constraints={"rate": cap})
    if flavour == "constant":
        near = Expression("near", cost=np.diag(rng.uniform(0.5, 2, x)), constant=-0.25)
        bound = near <= float(judge.value(near, inner)) + 0.01
        shifted = Expression(
            "shifted", {"W": 0.5, "V": 0.25}, constant=0.125, constant_radius=1e-15
        )
        return replace(program, objective=shifted, constraints={"budget": bound, "leakage": leak})
    return replace(program, constraints={"budget": budget})


@dataclass(eq=False)
class Case:
    """A program, its proof, and what is known of its minimum."""

    program: CovarianceProgram
    lower: float
    upper: float
    certificate: Certificate

    @cached_property
    def proof(self) -> Any:
        return verify.proof_of(self.program.to_dict())

    @cached_property
    def judge(self) -> Referee:
        return Referee(self.program)

    @property
    def slack(self) -> float:
        return 1e-11 * max(1.0, self.proof.unit(self.upper))


def plainly(program: CovarianceProgram) -> float:
    """Return the minimum as CVXPY has it of Σ itself, in plain coordinates and units."""
    gamma = np.array([[float(a) for a in row] for row in program.covariance])
    z, v = list(program.given), list(program.encoded)
    law = gamma
    if z:
        law = gamma - gamma[:, z] @ np.linalg.solve(gamma[np.ix_(z, z)], gamma[z])
    bar = law[np.ix_(v, v)]
    sigma = cp.Variable(bar.shape, PSD=True)

    def term(t: Expression) -> Any:
        value = t.constant + (0 if t.cost is None else cp.trace(t.cost @ sigma))
        for name, weight in t.weights.items():
            of = list(program.views[name].of)
            b = np.linalg.solve(bar, law[np.ix_(v, of)]).T
            s = law[np.ix_(of, of)] - b @ law[np.ix_(v, of)]
            above = gamma if program.views[name].reference == "marginal" else law
            before = np.linalg.slogdet(above[np.ix_(of, of)])[1]
            inside = (s + s.T) / 2 + b @ sigma @ b.T
            value = value + weight * (before - cp.log_det(inside)) / 2 / unit(program)
        return value

    rows = [bar - sigma >> 0, *(np.array(c) - sigma >> 0 for c in program.caps.values())]
    rows += [term(row.expression) <= float(row.bound) for row in program.constraints.values()]
    problem = cp.Problem(cp.Minimize(term(program.objective)), rows)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@cache
def case_of(seed: int, flavour: str) -> Case:
    """Return a program with the truth that two routes and the referee agree on."""
    program = random_program(np.random.default_rng([seed, FLAVOURS.index(flavour)]), flavour)
    certificate = solve_gaussian(program, accuracy="high").certificate
    assert certificate.primal is not None
    assert certificate.dual is not None
    check(certificate, status=None)
    judge = Referee(program)
    root, middle = long(certificate.primal.root), long(certificate.primal.middle)
    value = float(judge.value(program.objective, judge.middle(root @ middle @ root.T)))
    assert certificate.lower - 1e-11 <= value
    assert certificate.gap <= 1e-6 * max(1.0, abs(value))
    other = plainly(program)
    assert math.isclose(other, value, rel_tol=1e-4, abs_tol=1e-5), (flavour, other, value)
    return Case(program, certificate.lower, value, certificate)


@pytest.mark.parametrize("flavour", some_at_length(FLAVOURS, 5))
def test_two_routes_give_one_value(flavour: str) -> None:
    """``case_of`` holds the assertions; here the value is also certified."""
    assert case_of(0, flavour).certificate.status == "certified"


@pytest.mark.long
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_proof_is_as_tight_in_either_unit(flavour: str) -> None:
    """What is one nat is 1/ln 2 bits, and what is a distortion is what it is."""
    program = case_of(1, flavour).program
    results = {}
    for units in ("nats", "bits"):
        objective, rows = program.objective, {}
        size = unit(replace(program, units=units)) / unit(program)  # of the old unit, in the new

        def scaled(term: Expression, size: float = size) -> Expression:
            if not term.weights:
                return term
            cost = None if term.cost is None else term.cost / size
            return replace(term, cost=cost, constant=term.constant / size)

        for name, row in program.constraints.items():
            bound = row.bound / Fraction(size) if row.expression.weights else row.bound
            rows[name] = Constraint(scaled(row.expression), "<=", bound)
        same = replace(program, objective=scaled(objective), constraints=rows, units=units)
        results[units] = solve_gaussian(same).certificate
        check(results[units])
    per = math.log(2) if program.objective.weights else 1.0
    assert math.isclose(
        results["nats"].upper, results["bits"].upper * per, rel_tol=1e-6, abs_tol=2e-6
    )


# ---- garbage -----------------------------------------------------------------------------

FACTORS = tuple(10.0**-k for k in range(14, -1, -2))
BAD: tuple[Any, ...] = (
    *(math.nan, INF, -INF, 1e300, -1e300, 1e-300, 0.0),
    *("1/3", "nan", "-7/2", "inf", "a", "1/0", "", None, True, [], 10**400, -(10**400)),
)


def bad_matrices(rng: np.random.Generator, best: Any) -> Iterator[Any]:
    """Yield wrong versions of a symmetric or triangular matrix, as a document holds them."""
    a = np.array([[float(Fraction(x)) for x in row] for row in best])
    size = len(a)
    while True:
        for bad in BAD:
            one = copy.deepcopy(a.tolist())
            i, j = (int(k) for k in rng.integers(size, size=2))
            one[i][j] = bad
            if rng.random() < 0.5:
                one[j][i] = bad
            yield one
        yield from ((-a).tolist(), (0 * a).tolist(), np.eye(size).tolist(), a.T.tolist())
        order = rng.permutation(size)
        yield from (a[order].tolist(), a[np.ix_(order, order)].tolist())
        yield from ([], [[]], None, "a", a[:-1].tolist(), a[:, 1:].tolist(), a.ravel().tolist())
        yield from ([*a.tolist()[:-1], a.tolist()[-1][:-1]], np.eye(size + 1).tolist())
        for factor in FACTORS:
            noise = rng.normal(size=a.shape)
            yield (a + factor * noise).tolist()
            yield (a + factor * (noise + noise.T)).tolist()
            yield (a * (1 + factor * rng.normal())).tolist()
            yield (a + factor * rng.normal() * np.eye(size)).tolist()
        for scale in (1e-9, 1e-3, 1.0, 1e3, 1e9):
            noise = rng.normal(size=a.shape)
            yield (scale * noise @ noise.T).tolist()
            yield (scale * np.tril(np.abs(noise))).tolist()
            yield (scale * a).tolist()
        tilted = a.copy()
        tilted[0, -1] = math.nextafter(tilted[0, -1], INF)
        yield tilted.tolist()
        yield [[str(Fraction(x)) for x in row] for row in a.tolist()]


def bad_numbers(rng: np.random.Generator, best: float) -> Iterator[Any]:
    while True:
        yield from BAD
        yield from (-best, best, [best], 0)
        for factor in FACTORS:
            yield best + factor * rng.normal()
            yield best * (1 + factor * rng.normal())
        for scale in (1e-6, 1.0, 1e3, 1e9, 1e18):
            yield scale * float(rng.exponential())


def bad_pairs(rng: np.random.Generator, pair: Any) -> Iterator[Any]:
    """Yield wrong versions of a root and its middle."""
    roots, middles = bad_matrices(rng, pair["root"]), bad_matrices(rng, pair["middle"])
    for turn in itertools.count():
        yield {
            "root": next(roots) if turn % 3 else pair["root"],
            "middle": next(middles) if turn % 3 != 1 else pair["middle"],
        }
        if turn % 40 == 0:
            yield from ({}, {"root": pair["root"]}, {"middle": pair["middle"]}, None, [])


def bad_duals(rng: np.random.Generator, dual: Document) -> Iterator[Document]:
    """Yield wrong multipliers: each kind is wrong in turn, or all are."""
    rows = {k: bad_numbers(rng, float(x)) for k, x in dual["multipliers"].items()}
    posteriors = {k: bad_pairs(rng, pair) for k, pair in dual["posteriors"].items()}
    parts = {k: bad_pairs(rng, pair) for k, pair in dual["parts"].items()}
    for turn in itertools.count():
        what = turn % 4
        wrong = copy.deepcopy(dual)
        for kind, streams in (("multipliers", rows), ("posteriors", posteriors), ("parts", parts)):
            if what in (3, ("multipliers", "posteriors", "parts").index(kind)):
                wrong[kind] = {k: next(stream) for k, stream in streams.items()}
        yield wrong
        if turn % 50 == 0:
            for kind in ("multipliers", "posteriors", "parts"):
                yield {**copy.deepcopy(dual), kind: {}}
                yield {k: x for k, x in dual.items() if k != kind}


def campaign(case: Case, pairs: int, seed: int) -> tuple[int, int]:
    """Offer ``pairs`` of garbage; return how many had something proved of them all the same."""
    rng = np.random.default_rng(seed)
    assert case.certificate.dual is not None
    assert case.certificate.primal is not None
    duals = bad_duals(rng, case.certificate.dual.to_dict())
    primals = bad_pairs(rng, case.certificate.primal.to_dict())
    proof, low, high = case.proof, case.lower - case.slack, case.upper + case.slack
    bounded = feasible = 0
    for _ in range(pairs):
        dual, primal = next(duals), next(primals)
        try:
            lower = floor(proof.lower(dual))
            bounded += lower > -INF
            assert lower <= high, (lower, high, dual)
            # without the objective it must not be called a contradiction
            assert not proof.lower({**dual, "objective": 0}) > 0, dual
        except REFUSED:
            pass
        try:
            evaluation = proof.upper(primal)
            if not evaluation.feasible:
                continue
            upper = ceil(evaluation.objective)
        except REFUSED:
            continue
        feasible += 1
        assert upper >= low, (upper, low, primal)
        root, middle = long(primal["root"]), long(primal["middle"])
        m = case.judge.middle(root @ middle @ root.T)
        assert case.judge.infeasible_by((m + m.T) / 2) <= case.judge.room, primal
    return bounded, feasible


@pytest.mark.parametrize("flavour", some_at_length(FLAVOURS, 5))
def test_garbage_proves_nothing_false(flavour: str) -> None:
    values = [campaign(case_of(seed, flavour), 90, seed) for seed in range(2)]
    assert sum(bounded for bounded, _ in values) > 8  # some of the garbage did prove something
    assert sum(feasible for _, feasible in values) > 2


@pytest.mark.long
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_garbage_proves_nothing_false_at_length(flavour: str) -> None:
    for seed in range(4):
        campaign(case_of(seed, flavour), 200, 100 + seed)


def test_multipliers_of_another_program_stay_sound() -> None:
    rng = np.random.default_rng(8)
    base = random_program(rng, "leakage")
    cases = []
    for factor in (0.3, 0.7, 1.0):
        row = base.constraints["budget"]
        program = replace(
            base,
            constraints={"budget": Constraint(row.expression, "<=", row.bound * Fraction(factor))},
        )
        certificate = solve_gaussian(program, accuracy="high").certificate
        cases.append(Case(program, certificate.lower, certificate.upper, certificate))
    for one, other in itertools.permutations(cases, 2):
        lower = floor(one.proof.lower(other.certificate.dual.to_dict()))
        assert lower <= one.upper + one.slack
    tight, loose = cases[0], cases[-1]
    outcome = loose.proof.upper(tight.certificate.primal.to_dict())
    assert outcome.feasible
    assert ceil(outcome.objective) >= loose.lower
    assert not tight.proof.upper(loose.certificate.primal.to_dict()).feasible
    for case in cases:
        other = case_of(0, "region")
        with pytest.raises(REFUSED):
            raise_unless_bounded(case.proof, other.certificate.dual.to_dict())


def raise_unless_bounded(proof: Any, dual: Document) -> None:
    if not proof.lower(dual) > -1e300:
        raise ValueError


# ---- exactly on the boundary -------------------------------------------------------------

EXACT = [
    [Fraction(2), Fraction(1, 3), Fraction(1, 7)],
    [Fraction(1, 3), Fraction(1), Fraction(1, 5)],
    [Fraction(1, 7), Fraction(1, 5), Fraction(1, 2)],
]


def boundary(budget: Fraction, gamma: Any = EXACT) -> Any:
    """Return the proof of W = V0, X = (V1, V2) with tr Σ ≤ budget."""
    risk = Expression("risk", {"W": 1.0})
    program = CovarianceProgram(
        covariance=gamma,
        encoded=(1, 2),
        given=(),
        views={"W": GaussianView((0,))},
        objective=risk,
        constraints={"budget": Expression("distortion", cost=np.eye(2)) <= budget},
        units="nats",
    )
    return verify.proof_of(program.to_dict())


def text(rows: Any) -> list[list[str]]:
    return [[str(Fraction(x)) for x in row] for row in rows]


IDENTITY = text(np.eye(2, dtype=int).tolist())


def at(sigma: Any) -> Document:
    return {"root": IDENTITY, "middle": text(sigma)}


def test_sigma_may_touch_its_bound_and_pass_it_by_nothing() -> None:
    proof, bar = boundary(Fraction(2)), [row[1:] for row in EXACT[1:]]
    evaluation = proof.upper(at(bar))
    assert evaluation.feasible
    assert abs(evaluation.objective) < 1e-30
    for k in (10, 60, 200, 1000):
        tiny = Fraction(1, 2**k)
        for i, j in ((0, 0), (1, 1)):
            above = copy.deepcopy(bar)
            above[i][j] += tiny
            assert proof.upper(at(above)).broken == ["Σ ≼ Cov(V | Z)"], k
        tilted = copy.deepcopy(bar)
        tilted[0][1] += tiny
        tilted[1][0] += tiny
        assert not proof.upper(at(tilted)).feasible
        shrunk = [[x * (1 - tiny) for x in row] for row in bar]
        assert proof.upper(at(shrunk)).feasible


def test_sigma_may_be_singular_and_indefinite_by_nothing() -> None:
    proof = boundary(Fraction(2))
    a = Fraction(1, 10)
    assert proof.upper(at([[a, a], [a, a]])).feasible
    assert proof.upper(at([[a, 0], [0, 0]])).feasible
    for k in (10, 60, 200, 1000):
        tiny = Fraction(1, 2**k)
        assert proof.upper(at([[a, a + tiny], [a + tiny, a]])).broken == ["0 ≼ Σ"]
        assert "0 ≼ Σ" in proof.upper(at([[a, tiny], [tiny, 0]])).broken
        assert "0 ≼ Σ" in proof.upper(at([[a, 0], [0, -tiny]])).broken


def test_a_budget_is_met_exactly_or_not_at_all() -> None:
    sigma = [[Fraction(1, 3), Fraction(1, 50)], [Fraction(1, 50), Fraction(1, 7)]]
    trace = Fraction(1, 3) + Fraction(1, 7)
    assert boundary(trace).upper(at(sigma)).feasible
    for k in (10, 60, 200, 1000):
        assert boundary(trace - Fraction(1, 2**k)).upper(at(sigma)).broken == ["budget"]
        assert boundary(trace + Fraction(1, 2**k)).upper(at(sigma)).feasible


def test_nothing_at_all_is_released_at_sigma_zero_only() -> None:
    """Σ = 0 gives I(W; X) = ½ log(Γ_00 / S), in rationals inside the logarithm."""
    outcome = boundary(Fraction(0)).upper(at([[0, 0], [0, 0]]))
    assert outcome.feasible
    det = EXACT[1][1] * EXACT[2][2] - EXACT[1][2] ** 2
    b = [
        (EXACT[0][1] * EXACT[2][2] - EXACT[0][2] * EXACT[1][2]) / det,
        (EXACT[0][2] * EXACT[1][1] - EXACT[0][1] * EXACT[1][2]) / det,
    ]
    s = EXACT[0][0] - b[0] * EXACT[0][1] - b[1] * EXACT[0][2]
    truth = math.log(EXACT[0][0] / s) / 2
    assert math.isclose(float(outcome.objective), truth, rel_tol=1e-14)
    assert ceil(outcome.objective) >= truth * (1 - 1e-15)


@pytest.mark.parametrize("size", [2, 8, 9, 12])
def test_beyond_order_eight_balls_refuse_what_they_cannot_tell(size: int) -> None:
    gamma = np.eye(size) + np.full((size, size), 0.25)
    program = CovarianceProgram(
        covariance=gamma.tolist(),
        encoded=tuple(range(1, size)),
        given=(),
        views={"W": GaussianView((0,))},
        objective=Expression("risk", {"W": 1.0}),
        units="nats",
    )
    proof, bar = verify.proof_of(program.to_dict()), gamma[1:, 1:]
    identity = np.eye(size - 1).tolist()
    on = proof.upper({"root": identity, "middle": bar.tolist()})
    assert on.feasible == (size <= 8)
    inside = proof.upper({"root": identity, "middle": ((1 - 2.0**-40) * bar).tolist()})
    assert inside.feasible
    outside = proof.upper({"root": identity, "middle": ((1 + 2.0**-50) * bar).tolist()})
    assert not outside.feasible


def test_an_indefinite_covariance_has_no_proof() -> None:
    for gamma in (
        [[1, 0, 0], [0, 1, 2], [0, 2, 1]],
        [[1, 0, 0], [0, 1, 1], [0, 1, 1]],
        [[1, 0, 0], [0, 0, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[-1, 0, 0], [0, 1, 0], [0, 0, 1]],
    ):
        with pytest.raises(UnprovableError):
            boundary(Fraction(1), gamma)


# ---- the objective in its own units ------------------------------------------------------


@pytest.mark.parametrize("units", ["nats", "bits"])
def test_a_distortion_is_no_information_and_has_no_units_of_it(units: str) -> None:
    """The least distortion at rate r is reverse water-filling: here n · 2^(−2r/n)."""
    rate = Expression("rate", {"V": 1.0}) <= 1.0
    program = CovarianceProgram(
        covariance=[[1.0, 0.0], [0.0, 1.0]],
        encoded=(0, 1),
        given=(),
        views={"V": GaussianView((0, 1), "conditional")},
        objective=Expression("distortion", cost=np.eye(2)),
        constraints={"rate": rate},
        units=units,
    )
    truth = 2 * math.exp(-1.0 if units == "nats" else -math.log(2))
    certificate = solve_gaussian(program).certificate
    assert certificate.lower <= truth * (1 + 1e-12)
    assert certificate.upper >= truth * (1 - 1e-12)
    assert certificate.status == "certified"


def test_no_lower_end_of_a_distortion_is_above_it_in_bits() -> None:
    """With no rows at all, tr P Σ̄ of P = 0 proves min tr (I + cI) Σ + ¼ ≥ ¼, and no more."""
    program = CovarianceProgram(
        covariance=[[1.0]],
        encoded=(0,),
        given=(),
        views={},
        objective=Expression("distortion", cost=np.eye(1), constant=0.25),
        units="bits",
    )
    proof = verify.proof_of(program.to_dict())
    one, none = [[1.0]], [[0.0]]
    dual = {"multipliers": {}, "posteriors": {}, "parts": {"": {"root": one, "middle": none}}}
    assert floor(proof.lower({**dual, "objective": 1})) <= 0.25
    assert ceil(proof.upper({"root": one, "middle": none}).objective) == 0.25


# ---- programs that are none --------------------------------------------------------------


def two() -> CovarianceProgram:
    return CovarianceProgram(
        covariance=[[1.0, 0.0, 0.25], [0.0, 1.0, 0.5], [0.25, 0.5, 1.0]],
        encoded=(0, 1),
        given=(),
        views={"W": GaussianView((2,))},
        objective=Expression("risk", {"W": 1.0}),
        constraints={"budget": Expression("distortion", cost=np.eye(2)) <= 0.5},
        caps={"cap": np.diag([0.5, 0.75])},
        terms={"distortion": Expression("distortion", cost=np.eye(2))},
        units="nats",
    )


def written() -> Document:
    outcome = json.loads(json.dumps(solve_gaussian(two()).certificate.document()))
    assert verify.disagreements(outcome) == []
    return outcome


@pytest.fixture(scope="module")
def document() -> Document:
    return written()


ROW = ("program", "rows", "budget")
TERM = (*ROW, "term")
# Beside what is refused in words of its own: see test_verdicts.
NO_PROGRAM: dict[str, Callable[[Document], None]] = {
    "no kind": put("program", "kind", value="gaussian"),
    "covariance by the last place": put("program", "covariance", 0, 1, value=5e-324),
    "covariance nan": put("program", "covariance", 0, 0, value=math.nan),
    "covariance null": put("program", "covariance", 0, 0, value=None),
    "covariance true": put("program", "covariance", 0, 0, value=True),
    "covariance text": put("program", "covariance", 0, 0, value="one"),
    "covariance divided by zero": put("program", "covariance", 0, 0, value="1/0"),
    "covariance singular": put("program", "covariance", 2, value=[0.25, 0.5, 0.3125]),
    "encoded none": put("program", "encoded", value=[]),
    "encoded float": put("program", "encoded", value=[0, 1.0]),
    "encoded and given": put("program", "given", value=[1]),
    "view given": put("program", "given", value=[2]),
    "weight nan": put("program", "objective", "weights", "W", value=math.nan),
    "weight list": put("program", "objective", "weights", "W", value=[1.0]),
    "constant nan": put("program", "objective", "constant", value=[math.nan, 0.0]),
    "cost nan": put(*TERM, "cost", 0, 0, value=math.nan),
    "cost radius": put(*TERM, "cost_radius", value=0.5),
    "term radius": put("program", "terms", "distortion", "cost_radius", value=0.5),
    "bound nan": put(*ROW, "bound", value="nan"),
    "bound null": put(*ROW, "bound", value=None),
    "cap asymmetric below": put("program", "caps", "cap", 1, 0, value=1e-9),
    "cap nan": put("program", "caps", "cap", 0, 0, value=math.nan),
    "rows list": put("program", "rows", value=[]),
    "caps null": put("program", "caps", value=None),
}


@pytest.mark.parametrize("kind", NO_PROGRAM)
def test_what_is_no_covariance_program_is_refused(kind: str, document: Document) -> None:
    wrong = copy.deepcopy(document)
    NO_PROGRAM[kind](wrong)
    assert verify.disagreements(signed(wrong)), kind


def test_an_asymmetric_cost_proves_nothing_false() -> None:
    """Tr CΣ is that of (C + Cᵀ)/2: −98 at Σ = 11ᵀ, where the lower triangle of C says ≥ 0."""
    cost = np.array([[1.0, -100.0], [0.0, 1.0]])
    program = replace(
        two(), objective=Expression("tilted", cost=cost), constraints={}, caps={}, terms={}
    )
    one, none = np.eye(2).tolist(), np.zeros((2, 2)).tolist()
    dual = {"multipliers": {}, "posteriors": {}, "parts": {"": {"root": one, "middle": none}}}
    try:
        lower = floor(verify.proof_of(program.to_dict()).lower({**dual, "objective": 1}))
    except REFUSED:
        return
    assert lower <= -98 + 1e-9


def test_an_asymmetric_cap_proves_nothing_false() -> None:
    """The upper triangle of a cap is part of it."""
    program = replace(two(), constraints={}, caps={"cap": np.array([[0.5, -0.4], [0.0, 0.5]])})
    sigma = np.diag([0.4, 0.4]).tolist()
    try:
        proof = verify.proof_of(program.to_dict())
        outcome = proof.upper({"root": np.eye(2).tolist(), "middle": sigma})
    except REFUSED:
        return
    assert not outcome.feasible  # its symmetric part is [[.5, −.2], [−.2, .5]]


# ---- documents ---------------------------------------------------------------------------

INDECENT: dict[str, Callable[[Document], None]] = {
    "no primal": lambda d: d.pop("primal"),
    "no dual": lambda d: d.pop("dual"),
    "primal null": put("primal", value=None),
    "dual null": put("dual", value=None),
    "primal middle": put("primal", "middle", 0, 0, value=0.75),
    "primal nan": put("primal", "middle", 0, 0, value=math.nan),
    "primal huge": put("primal", "middle", 0, 0, value=10**400),
    "primal no root": lambda d: d["primal"].pop("root"),
    "multipliers none": put("dual", "multipliers", value={}),
    "multiplier wrong": put("dual", "multipliers", "budget", value=1e3),
    "multiplier nan": put("dual", "multipliers", "budget", value=math.nan),
    "posterior root": put("dual", "posteriors", "W", "root", value=[[0.0]]),
    "part zero": put("dual", "parts", "", "middle", value=[[0.0, 0.0], [0.0, 0.0]]),
    "objective left out": put("dual", "objective", value=0),
    "claim infeasible": put("claim", "status", value="infeasible"),
    "claim loose": put("claim", "status", value="loose"),
    "claim null": put("claim", "upper", value=None),
    "claim term": put("claim", "terms", "distortion", value=[0.0, 0.25]),
    "claim term unknown": put("claim", "terms", "other", value=[0.0, 1.0]),
    "budget less": put(*ROW, "bound", value="1/4"),
    "budget more": put(*ROW, "bound", value="1"),
    "budget gone": put("program", "rows", value={}),
    "covariance another": put("program", "covariance", 2, 2, value=1.125),
    "weight another": put("program", "objective", "weights", "W", value=0.5),
    "units others": put("program", "units", value="bits"),
    "cap less": put("program", "caps", "cap", 0, 0, value=0.125),
}


@pytest.mark.parametrize("kind", INDECENT)
def test_a_changed_document_does_not_verify(kind: str, document: Document) -> None:
    wrong = copy.deepcopy(document)
    INDECENT[kind](wrong)
    assert verify.disagreements(signed(wrong)), kind
    assert any(
        "sha256" in message or "schema" in message for message in verify.disagreements(wrong)
    )


def test_each_end_is_believed_by_itself_alone(document: Document) -> None:
    for side, toward in (("lower", INF), ("upper", -INF)):
        wrong = copy.deepcopy(document)
        wrong["claim"][side] = math.nextafter(wrong["claim"][side], toward)
        message = verify.disagreements(signed(wrong))
        assert len(message) == 1
        assert "is claimed" in message[0]
    modest = copy.deepcopy(document)
    modest["claim"]["lower"] -= 1e-9
    modest["claim"]["upper"] += 1e-9
    assert verify.disagreements(signed(modest)) == []


def test_a_right_lower_end_does_not_carry_a_wrong_upper_one() -> None:
    case = case_of(0, "leakage")
    document = json.loads(json.dumps(case.certificate.document()))
    wrong = copy.deepcopy(document)
    wrong["primal"] = {  # Σ = Σ̄ / 1000 costs more than is claimed
        "root": document["primal"]["root"],
        "middle": (np.eye(case.program.n) / 1000).tolist(),
    }
    message = verify.disagreements(signed(wrong))
    assert any("the value" in line for line in message)
    honest = copy.deepcopy(wrong)
    proved = verify.recompute(honest)
    honest["claim"] = {k: proved[k] for k in ("status", "lower", "upper", "terms")}
    assert proved["status"] == "loose"
    assert proved["lower"] == document["claim"]["lower"]
    assert verify.disagreements(signed(honest)) == []


def garbled(rng: np.random.Generator, document: Document, parts: tuple[str, ...]) -> Document:
    """Return a document with one to three things in it replaced, signed anew."""
    wrong = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        part = parts[int(rng.integers(len(parts)))]
        outcome = list(leaves(wrong[part])) if isinstance(wrong[part], dict) else []
        if not outcome:
            continue
        *above, last = outcome[int(rng.integers(len(outcome)))]
        here = wrong[part]
        for key in above:
            here = here[key]
        old = here[last]
        if isinstance(old, float) and rng.random() < 0.7:
            here[last] = old * (1 + 10 ** rng.uniform(-15, 1) * rng.normal())
        elif rng.random() < 0.3 and isinstance(here, dict):
            del here[last]
        else:
            here[last] = BAD[int(rng.integers(len(BAD)))]
    return signed(wrong)


@pytest.mark.parametrize("flavour", some_at_length(["leakage", "region", "caps", "balls"], 2))
def test_a_garbled_document_that_verifies_is_true(flavour: str) -> None:
    case = case_of(0, flavour)
    document = json.loads(json.dumps(case.certificate.document()))
    rng = np.random.default_rng(3)
    verified = 0
    for _ in range(120):
        wrong = garbled(rng, document, ("primal", "dual", "claim"))
        if verify.disagreements(wrong):
            continue
        verified += 1
        assert float(wrong["claim"]["lower"]) <= case.upper + case.slack
        assert float(wrong["claim"]["upper"]) >= case.lower - case.slack
    assert verified < 100


def test_no_garbage_raises_anything_but_a_disagreement(document: Document) -> None:
    rng = np.random.default_rng(4)
    parts = ("program", "primal", "dual", "claim")
    for _ in range(400):
        outcome = verify.disagreements(garbled(rng, document, parts))
        assert all(isinstance(line, str) for line in outcome)


# ---- files -------------------------------------------------------------------------------


def side() -> GaussianSolution:
    source = cpv.GaussianSource.scalar(Fraction(9, 10), rho_xz=Fraction(4, 5))
    return cpv.GaussianEquivocation(
        source, 0.125, max_leakage=1.5, side_information="both", units="bits"
    ).solve()


def test_the_file_says_what_the_certificate_says(tmp_path: Path) -> None:
    certificate = side().certificate
    path = certificate.to_json(tmp_path / "proof.json")
    read = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert read == certificate.document()
    assert verify.disagreements(read) == []
    assert verify.recompute(read)["lower"] == certificate.lower
    done = run(str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"verified, {certificate.status}" in done.stdout
    read["claim"]["lower"] += 1e-3
    path.write_text(json.dumps(signed(read)))
    done = run(str(path))
    assert done.returncode == 1
    assert "NOT verified" in done.stdout
    assert "is claimed" in done.stdout


@pytest.mark.parametrize(
    "where",
    [
        ("dual", "multipliers", "budget"),
        ("program", "rows", "budget", "bound"),
    ],
)
def test_a_short_file_does_not_ask_for_all_memory(
    where: tuple[Any, ...], document: Document, tmp_path: Path
) -> None:
    """Fraction("1e999999999") is a short text and a very long number."""
    wrong = copy.deepcopy(document)
    put(*where, value="1e99999999")(wrong)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(signed(wrong)))
    try:
        done = run(str(path), limit=10)
    except subprocess.TimeoutExpired:
        pytest.fail("the verifier hangs on a short file")
    assert done.returncode == 1
    assert "NOT verified" in done.stdout


# ---- contradictions ----------------------------------------------------------------------


def infeasible(**limits: Any) -> tuple[cpv.GaussianEquivocation, cpv.InfeasibleError]:
    problem = cpv.GaussianEquivocation(**limits)
    with pytest.raises(cpv.InfeasibleError) as caught:
        problem.solve()
    return problem, caught.value


MARKOV = cpv.GaussianSource.scalar(Fraction(9, 10), rho_xz=Fraction(4, 5))
I_WZ = -0.5 * math.log(1 - 0.72**2)


@pytest.mark.parametrize("cap", some_at_length([0.0, 0.1, 0.3, I_WZ * (1 - 1e-6)], 2))
@pytest.mark.parametrize("budget", [0.01, 0.3, 5.0])
def test_no_leakage_below_what_z_tells_already(cap: float, budget: float) -> None:
    _, error = infeasible(
        source=MARKOV, budget=budget, max_leakage=cap, side_information="both", units="nats"
    )
    assert error.certificate.status == "infeasible"
    assert error.certificate.verify()
    assert "max_leakage" in error.conflict
    assert (error.certificate.lower, error.certificate.upper) == (INF, INF)
    truth = -0.5 * math.log(1 - 0.81 + 0.81 * min(budget, 1 - 0.64))
    assert math.isclose(error.extremes["max_leakage"], truth, abs_tol=1e-6)


def test_a_cap_above_what_z_tells_is_feasible() -> None:
    for factor in (1 + 1e-6, 1.5):
        problem = cpv.GaussianEquivocation(
            MARKOV, 5.0, max_leakage=I_WZ * factor, side_information="both", units="nats"
        )
        check(problem.solve())


def test_what_has_no_part_in_a_contradiction_is_not_named() -> None:
    """No budget is at fault where the cap is below I(W; Z)."""
    _, error = infeasible(
        source=MARKOV, budget=5.0, max_leakage=0.1, side_information="both", units="nats"
    )
    assert error.conflict == ["max_leakage"]


@pytest.mark.parametrize("units", ["nats", "bits"])
def test_a_rate_below_the_rate_of_the_budget(units: str) -> None:
    per = math.log(2) if units == "bits" else 1.0
    source = cpv.GaussianSource(np.diag([1.0, 4.0, 1.0, 0.25]), sensitive=[0], key=[1, 2, 3])
    _, error = infeasible(
        source=source, budget=0.75, max_rate=0.5 / per, minimize="leakage", units=units
    )
    assert error.certificate.verify()
    assert sorted(error.conflict) == ["budget", "max_rate"]
    # reverse water-filling: all at D = .75; and at rate ½ nat, 4 → 4/e, the rest as they are
    rate = (math.log(4 / 0.25) + math.log(1 / 0.25) + math.log(0.25 / 0.25)) / 2
    assert math.isclose(error.extremes["max_rate"] * per, rate, abs_tol=2e-6)
    assert math.isclose(error.extremes["budget"], 4 / math.e + 1.25, abs_tol=1e-5)


def test_a_contradiction_cannot_be_forged() -> None:
    """Multipliers that refute one budget do not refute one that can be met."""
    problem, error = infeasible(
        source=MARKOV, budget=0.1, max_rate=0.1, minimize="leakage",
        side_information="both", units="nats",
    )  # fmt: skip
    document = json.loads(json.dumps(error.certificate.document()))
    assert verify.disagreements(document) == []
    least = 0.5 * math.log(0.36 / 0.1)
    for bound, refuted in ((0.05, True), (least * (1 + 1e-9), False), (least * 2, False)):
        moved = copy.deepcopy(document)
        moved["program"]["rows"]["max_rate"]["bound"] = str(Fraction(bound))
        assert (verify.disagreements(signed(moved)) == []) == refuted
    program = replace(
        problem.program,
        constraints={**problem.program.constraints, "max_rate": problem.rate <= least * 1.01},
    )
    proof = verify.proof_of(program.to_dict())
    assert error.certificate.dual is not None
    duals = bad_duals(np.random.default_rng(5), error.certificate.dual.to_dict())
    for _ in range(400):
        try:
            assert not proof.lower(next(duals)) > 0
        except REFUSED:
            continue
    for change in (
        put("dual", "multipliers", value={}),
        put("dual", "parts", value={}),
        put("dual", "objective", value=1),
        put("claim", "status", value="certified"),
        put("claim", "lower", value=0.0),
        put("claim", "upper", value=1.0),
    ):
        wrong = copy.deepcopy(document)
        change(wrong)
        if wrong["claim"] != {**document["claim"], "lower": 0.0}:  # which is only modest
            assert verify.disagreements(signed(wrong))


@pytest.mark.parametrize("limit", [None, 0.05])
def test_a_lower_end_holds_for_every_cost_within_the_radius(limit: float | None) -> None:
    def solved(cost: float, radius: float) -> Certificate:
        risk, d = (
            Expression("risk", {"W": 1.0}),
            Expression("d", cost=np.array([[cost]]), cost_radius=radius),
        )
        program = CovarianceProgram(
            covariance=[[1, 0.5], [0.5, 1]],
            encoded=(1,),
            given=(),
            units="nats",
            views={"W": GaussianView((0,))},
            objective=risk if limit else risk + d,
            constraints={"d": d <= limit} if limit else {},
        )
        return solve_gaussian(program, accuracy="high").certificate

    assert solved(0.1, 2.0**-10).lower <= solved(0.1 - 2.0**-10, 0.0).upper
    assert solved(0.1, 0.0).lower > solved(0.1 - 2.0**-10, 0.0).upper  # a lapse would be seen
