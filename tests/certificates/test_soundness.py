"""No garbage proves anything false.

Programs of every kind meet multipliers and channels that are wrong in every way thought of.
The truth is known beforehand: from closed forms, or from enclosures by two solvers whose
channels are evaluated again here, in plain floats.  Whatever comes out must contain it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.certificates.repair import repair
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.side_conditions import Auxiliary
from cvxprivacy.solvers.conic import channel as cvxpy_channel
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy_verifier.balls import UnprovableError, ceil, floor
from cvxprivacy_verifier.channel_proof import ChannelProof, Evaluation
from tests.lengths import rest_at_length, some_at_length
from tests.primals import listed
from tests.referee import atoms_of, cost_of, reference_of, unit

INF = math.inf
FLAVOURS = (
    "leakage",
    "rate",
    "priced",
    "views",
    "per_output",
    "equality",
    "entries",
    "ratio",
    "maximum",
    "partial",
    "layers",
    "everything",
)
SCS = {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 3000}


# ---- programs ----------------------------------------------------------------------------


def random_law(rng: np.random.Generator, w: int, x: int, alpha: float) -> np.ndarray:
    law = rng.dirichlet(np.full(w * x, alpha)).reshape(w, x)
    return law[law.sum(axis=1) > 0][:, law.sum(axis=0) > 0]


def masses(law: np.ndarray) -> list[Fraction]:
    """Return p(s) exactly."""
    columns = [sum(map(Fraction, column)) for column in law.T.tolist()]
    total = sum(columns)
    return [column / total for column in columns]


def random_program(
    rng: np.random.Generator, flavour: str, size: tuple[int, int, int], alpha: float = 1.0
) -> ChannelProgram:
    """Return a feasible program: its bounds are met by a channel drawn first."""
    w, x, m = size
    law = random_law(rng, w, x, alpha)
    w, x = law.shape
    if flavour == "equality":
        m = x
    w_labels = np.tile(np.arange(w)[:, None], (1, x))
    views = {"W": View(w_labels), "X": View(np.tile(np.arange(x), (w, 1)))}
    p = law.sum(axis=0) / law.sum()
    d = rng.random((x, m))
    if rng.random() < 0.5:
        d = np.round(4 * d) / 4 * (np.arange(x)[:, None] != np.arange(m))
    distortion = Expression("distortion", cost=d)
    cheap = np.eye(m)[d.argmin(axis=1)]
    blind = np.tile(np.eye(m)[(p @ d).argmin()], (x, 1))
    share = rng.uniform(0.05, 0.95)
    inner = (1 - share) * cheap + share * blind
    least, most = float((p[:, None] * d * cheap).sum()), float((p[:, None] * d * blind).sum())
    budget = distortion <= least + share * (most - least) + 1e-9
    risk = Expression("risk", {"W": 1.0})
    units = "bits" if rng.random() < 0.5 else "nats"
    common: dict[str, Any] = {"law": law, "outputs": m, "views": views, "units": units}
    common["terms"] = {"risk": risk, "distortion": distortion}
    inside = ChannelProgram(objective=risk, **common)

    if flavour == "leakage":
        return ChannelProgram(objective=risk, constraints={"budget": budget}, **common)
    if flavour == "rate":
        return ChannelProgram(
            objective=Expression("rate", {"X": 1.0}), constraints={"budget": budget}, **common
        )
    if flavour == "priced":
        return ChannelProgram(objective=risk + 10 ** rng.uniform(-1, 1) * distortion, **common)
    if flavour == "views":
        cap = risk <= inside.value(risk, inner) * rng.uniform(1.0, 1.2) + 1e-3
        objective = Expression("rate", {"X": 1.0, "W": rng.random(m)}, constant=-0.25)
        return ChannelProgram(
            objective=objective, constraints={"budget": budget, "leakage": cap}, **common
        )
    if flavour == "per_output":
        t = rng.uniform(0.05, 0.9)
        close = Constraint(
            Expression("t", {"W": 1.0}, cost=np.full((x, m), -t)).each(),
            "<=",
            tuple(rng.choice([0.0, 1e-3], m)) if rng.random() < 0.5 else 0.0,
        )
        return ChannelProgram(objective=distortion, constraints={"t": close}, **common)
    if flavour == "equality":
        d = rng.random((x, m)) * (1 - np.eye(x))
        distortion = Expression("distortion", cost=d)
        exact, score = masses(law), np.arange(m) / 4.0
        most = float(p @ d @ p)
        rows = {"budget": distortion <= share * most}
        if rng.random() < 0.5:
            rows["kept"] = Constraint(
                Expression("kept", cost=np.ones((x, m))).each(), "==", tuple(exact)
            )
        else:
            mean = sum(q * Fraction(float(v)) for q, v in zip(exact, score, strict=True))
            rows["mean"] = Constraint(Expression("mean", cost=np.tile(score, (x, 1))), "==", mean)
        common["terms"] = {"distortion": distortion}
        return ChannelProgram(objective=risk, constraints=rows, **common)
    if flavour == "ratio":
        aux = {"ldp": Auxiliary("ratio", math.exp(rng.uniform(0.1, 3)), 1e-15)}
        return ChannelProgram(objective=distortion, auxiliaries=aux, **common)
    if flavour == "maximum":
        aux = {"leak": Auxiliary("maximum", 1 + rng.random() * (min(x, m) - 1), 1e-15)}
        return ChannelProgram(objective=distortion, auxiliaries=aux, **common)
    if flavour == "partial":
        labels = np.where(rng.random(law.shape) < 0.4, -1, w_labels)
        labels[0, 0] = w - 1  # so that the view has all w labels
        common["views"] = {"P": View(labels, w_labels), "W": views["W"]}
        objective = Expression("partial", {"P": 1.0}, cost=0.1 * d)
        return ChannelProgram(objective=objective, constraints={"budget": budget}, **common)
    if flavour == "layers":
        cost = rng.random((*law.shape, m))
        objective = Expression("both", {"W": 0.5}, cost=cost, cost_radius=1e-15, constant=1.0)
        return ChannelProgram(objective=objective, constraints={"budget": budget}, **common)

    # entry bounds: forbidden moves, floors and caps around a channel within them
    lower = np.round(64 * rng.random((x, m)) * rng.choice([0.0, 0.5 / m], (x, m))) / 64
    upper = np.minimum(1.0, lower + rng.choice([0.0, 0.25, 1.0], (x, m), p=[0.2, 0.2, 0.6]))
    upper[np.arange(x), rng.integers(m, size=x)] = 1.0
    room = upper - lower
    left = 1 - lower.sum(axis=1, keepdims=True)
    inner = lower + left * room / room.sum(axis=1, keepdims=True)
    common |= {"lower": lower, "upper": upper}
    room_for_both = 0.01
    budget = distortion <= float((p[:, None] * d * inner).sum()) + room_for_both
    if flavour == "entries":
        return ChannelProgram(objective=risk, constraints={"budget": budget}, **common)
    assert flavour == "everything"
    lower[:] = np.minimum(lower, 0.01 / m)
    upper[:] = np.maximum(upper, 0.8)
    blind = np.full((x, m), 1 / m)
    rows = {
        "budget": distortion <= float((p[:, None] * d * blind).sum()) + room_for_both,
        "leakage": risk <= 0.5,
        "t": Constraint(Expression("t", {"X": 1.0}, cost=np.full((x, m), -1.5)).each(), "<=", 0.0),
        "mean": Expression("mean", cost=np.tile(np.arange(m) * 1.0, (x, 1))) == Fraction(m - 1, 2),
    }
    auxiliaries = {
        "ldp": Auxiliary("ratio", 20.0, 1e-15),
        "leak": Auxiliary("maximum", 1 + 0.5 * (min(x, m) - 1), 1e-15),
    }
    objective = Expression("sum", {"W": 1.0, "X": 0.25}, cost=d)
    return ChannelProgram(objective=objective, constraints=rows, auxiliaries=auxiliaries, **common)


class Plain:
    """A program evaluated by itself in numpy on stacks of channels (batch, n, m)."""

    def __init__(self, program: ChannelProgram) -> None:
        self.program = program
        self.joints, self.pi = {}, {}
        for name, view in program.views.items():
            self.joints[name] = np.zeros((view.size, program.n))
            for a, s, mass in atoms_of(program):
                if view.labels[a, s] >= 0:
                    self.joints[name][view.labels[a, s], s] += mass
            self.pi[name] = reference_of(program, name)

    def columns(self, term: Expression, channels: np.ndarray) -> np.ndarray:
        value = np.einsum("sy,bsy->by", cost_of(self.program, term), channels)
        for view, weight in term.weights.items():
            joint = np.einsum("vs,bsy->bvy", self.joints[view], channels)
            other = self.pi[view][:, None] * joint.sum(axis=1, keepdims=True)
            ratio = np.where(joint > 0, joint / np.where(joint > 0, other, 1.0), 1.0)
            phi = (joint * np.log(ratio)).sum(axis=1)
            value = value + np.asarray(weight, float) * phi / unit(self.program)
        return value

    def value(self, term: Expression, channels: np.ndarray) -> np.ndarray:
        return self.columns(term, channels).sum(axis=1) + float(term.constant)

    def violation(self, channels: np.ndarray) -> np.ndarray:
        """Return the largest violation of any constraint, for each channel."""
        program = self.program
        parts = [abs(channels.sum(axis=2) - 1).max(axis=1), -channels.min(axis=(1, 2))]
        if program.lower is not None:
            parts.append((program.lower - channels).max(axis=(1, 2)))
        if program.upper is not None:
            parts.append((channels - program.upper).max(axis=(1, 2)))
        for row in program.constraints.values():
            value = self.columns(row.expression, channels)
            if not row.per_output:
                value = value.sum(axis=1, keepdims=True) + row.expression.constant
            many = row.bound if isinstance(row.bound, tuple) else (row.bound,)
            gap = value - np.array([float(b) for b in many])
            parts.append((abs(gap) if row.sense == "==" else gap).max(axis=1))
        top, low = channels.max(axis=1), channels.min(axis=1)
        for aux in program.auxiliaries.values():
            if aux.kind == "ratio":
                parts.append((top - aux.bound * low).max(axis=1))
            else:
                parts.append(top.sum(axis=1) - aux.bound)
        return np.max(parts, axis=0)


@dataclass(eq=False)
class Case:
    """A program, its proof object, and what is known of its minimum."""

    program: ChannelProgram
    lower: float = -INF
    upper: float = INF
    duals: tuple[Dual, ...] = ()
    channels: tuple[np.ndarray, ...] = ()

    @cached_property
    def prover(self) -> Prover:
        return Prover(self.program)

    @property
    def slack(self) -> float:
        """Room for the rounding of the evaluation in floats."""
        return 1e-11 * max(1.0, self.program.scale)


def referee(program: ChannelProgram, certificate: Any) -> float:
    """Return the objective at a certificate's channel, which must be feasible; in floats."""
    plain, channel = Plain(program), certificate.primal.matrix[None]
    assert plain.violation(channel)[0] <= 1e-12
    value = float(plain.value(program.objective, channel)[0])
    assert abs(value - certificate.upper) <= 1e-11 * max(1.0, program.scale)
    return value


def agreed(program: ChannelProgram) -> Case:
    """Return a program with the truth that two solvers and the referee agree on."""
    case = Case(program)
    for solver, options in (("CLARABEL", {}), ("SCS", SCS)):
        certificate = solve(program, solver=solver, solver_options=options).certificate
        assert certificate.status in ("certified", "loose", "uncertified")
        if certificate.dual is not None:
            case.duals += (certificate.dual,)
        if certificate.primal is not None:
            case.channels += (certificate.primal.matrix,)
            value = referee(program, certificate)
            assert certificate.lower <= value + case.slack
            case.upper = min(case.upper, value)
        case.lower = max(case.lower, certificate.lower)
    assert case.channels, "no truth without a channel"
    assert case.lower <= case.upper + case.slack  # the two enclosures intersect
    return case


def closed(p: float, share: float) -> Case:
    """Return a binary source under Hamming distortion: R(D) = h(p) − h(D)."""
    law, budget = np.diag([p, 1 - p]), share * min(p, 1 - p)
    program = cpv.PrivacyDistortion(cpv.DiscreteSource(law), cpv.hamming(2), budget=budget).program
    h = [-v * math.log2(v) - (1 - v) * math.log2(1 - v) for v in (p, budget)]
    certificate = solve(program).certificate
    assert certificate.dual is not None
    assert certificate.primal is not None
    duals, channels = (certificate.dual,), (certificate.primal.matrix,)
    return Case(program, h[0] - h[1], h[0] - h[1], duals, channels)


# ---- garbage -----------------------------------------------------------------------------

FACTORS = tuple(10.0**-k for k in range(12, -1, -1))
BAD = (math.nan, INF, -INF, 1e300, -1e300, 0.0)


def bad_tables(rng: np.random.Generator, best: np.ndarray) -> Iterator[Any]:
    """Yield wrong versions of a matrix, without end."""
    rows, columns = best.shape
    while True:
        yield from (np.full(best.shape, value) for value in BAD)
        one = best.copy()
        one[rng.integers(rows), rng.integers(columns)] = rng.choice(BAD)
        yield from (one, -best, best[rng.permutation(rows)], best[:, rng.permutation(columns)])
        yield from (best[:-1], best[:, 1:], best.T, best[:0], best.ravel(), best[None])
        for factor in FACTORS:
            noise = rng.normal(size=best.shape)
            yield best + factor * noise
            yield best * (1 + factor * noise)
        for scale in (1e-3, 1.0, 30.0, 1e3, 1e5):
            yield scale * rng.normal(size=best.shape)
        yield np.where(rng.random(best.shape) < 0.5, best, rng.choice(BAD))
        yield best


def bad_numbers(rng: np.random.Generator, best: Any) -> Iterator[Any]:
    """Yield wrong versions of a multiplier, without end."""
    best = np.asarray(best, dtype=float)
    while True:
        yield from (np.full(best.shape, value) for value in BAD)
        yield from (-best, np.zeros(7), np.zeros((2, 2)), best[..., None])
        if best.ndim:
            yield from (best[:-1], best[::-1], rng.permutation(best), best.sum())
        for factor in FACTORS:
            yield best + factor * rng.normal(size=best.shape)
            yield best * (1 + factor * rng.normal(size=best.shape))
        for scale in (1e-6, 1.0, 1e3, 1e9, 1e18):
            yield scale * rng.exponential(size=best.shape)
        yield best


def bad_duals(rng: np.random.Generator, case: Case) -> Iterator[Dual]:
    """Yield wrong multipliers; each part is wrong in turn, or right, or all are."""
    program = case.program
    blank = Dual({}, {}).cleaned(program)
    bests = [*case.duals, blank]
    scores = {v: [bad_tables(rng, np.asarray(b.scores[v])) for b in bests] for v in program.views}
    rows = {r: [bad_numbers(rng, b.multipliers[r]) for b in bests] for r in program.constraints}
    parts = {
        a: [[bad_tables(rng, np.asarray(t)) for t in b.auxiliaries[a]] for b in bests]
        for a in program.auxiliaries
    }
    for turn in itertools.count():
        i = int(rng.integers(len(bests)))
        what = turn % 4  # 0: scores only, 1: multipliers only, 2: auxiliaries only, 3: all
        best = bests[i]
        yield Dual(
            {v: next(s[i]) for v, s in scores.items()} if what in (0, 3) else best.scores,
            {r: next(s[i]) for r, s in rows.items()} if what in (1, 3) else best.multipliers,
            {a: [next(t) for t in s[i]] for a, s in parts.items()}
            if what in (2, 3)
            else best.auxiliaries,
        )


def bad_channels(rng: np.random.Generator, case: Case) -> Iterator[np.ndarray]:
    """Yield matrices of the channel's shape that are hardly channels."""
    n, m = case.program.n, case.program.m
    streams = [bad_tables(rng, best) for best in case.channels]
    while True:
        for stream in streams:
            table = next(stream)
            yield table if table.shape == (n, m) else np.eye(m)[rng.integers(m, size=n)]
        yield rng.dirichlet(np.full(m, 10.0 ** rng.integers(-2, 2)), size=n)


def raw(dual: Dual) -> dict[str, Any]:
    """Return multipliers as a file could hold them, uncleaned."""
    return {**dual.to_dict(), "objective": 1}


def campaign(case: Case, pairs: int, seed: int) -> int:
    """Offer ``pairs`` of garbage to the proof of one program; return how many were refuted."""
    rng = np.random.default_rng(seed)
    duals, channels = bad_duals(rng, case), bad_channels(rng, case)
    proof, prover = case.prover.proof, case.prover
    low, high = case.lower - case.slack, case.upper + case.slack
    for number in range(pairs):
        dual, channel = next(duals), next(channels)
        prover.lower, prover.upper, prover.dual, prover.primal = -INF, INF, None, None
        if number % 4:  # the proof alone, as the verifier calls it
            lower = floor(proof.lower(raw(dual)))
        else:
            prover.offer_dual(dual)
            lower = prover.lower
        assert lower <= high, (lower, case.upper, dual)
        if number % 4:
            with np.errstate(all="ignore"):
                scaled = np.nan_to_num(channel * 2.0**52, nan=0.0, posinf=0.0, neginf=0.0)
            if number % 2:  # make its rows sum to one, and nothing else
                scaled = np.abs(np.clip(scaled, -(2.0**60), 2.0**60))
                scaled = scaled / np.maximum(scaled.sum(axis=1, keepdims=True), 1.0) * 2.0**52
            numerators = [[int(k) for k in row] for row in scaled]
            if number % 2:
                for row in numerators:
                    row[int(np.argmax(row))] += 2**52 - sum(row)
            obtained = evaluated(proof, listed(numerators, 2**52))
            upper = ceil(obtained.objective) if obtained is not None else INF
        else:
            with np.errstate(all="ignore"):
                prover.offer_channel(channel)
            upper = prover.upper
            if prover.status == "certified":
                assert lower <= upper
                assert upper - lower <= prover.tolerance
        assert upper >= low, (upper, case.lower, channel)
    return pairs


def pool(seed: int, count: int, sizes: list[tuple[int, int, int]]) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    for number in range(count):
        flavour = FLAVOURS[number % len(FLAVOURS)]
        size = sizes[number % len(sizes)]
        yield agreed(random_program(rng, flavour, size, (0.1, 1.0, 10.0)[number % 3]))


SMALL = [(2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 3, 3), (2, 4, 3)]


def evaluated(proof: ChannelProof, primal: dict[str, Any]) -> Evaluation | None:
    """Return what a channel is worth if it is one that is feasible."""
    try:
        obtained = proof.upper(primal)
    except UnprovableError:
        return None
    return obtained if obtained.feasible else None


def test_garbage_proves_nothing_false() -> None:
    done = sum(
        campaign(case, 15, seed) for seed, case in enumerate(pool(1, len(FLAVOURS) + 4, SMALL))
    )
    done += sum(
        campaign(closed(p, share), 20, 7)
        for p, share in ((0.5, 0.3), (0.1, 0.9), (0.3, 0.05), (0.01, 0.5))
    )
    assert done == (len(FLAVOURS) + 4) * 15 + 4 * 20 == 320


@pytest.mark.long
def test_garbage_proves_nothing_false_at_length() -> None:
    done = sum(campaign(case, 100, seed) for seed, case in enumerate(pool(2, 36, SMALL)))
    middle = [(3, 6, 5), (4, 8, 8), (5, 5, 10)]
    done += sum(campaign(case, 100, seed) for seed, case in enumerate(pool(3, 12, middle)))
    large = [(10, 30, 30)]
    done += sum(campaign(case, 20, seed) for seed, case in enumerate(pool(4, 12, large)))
    for p, share in itertools.product((0.5, 0.3, 0.1, 0.01), (0.05, 0.3, 0.6, 0.95)):
        done += campaign(closed(p, share), 100, 11)
    assert done == 36 * 100 + 12 * 100 + 12 * 20 + 16 * 100


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("p", [0.5, 0.2, 0.01])
def test_the_binary_closed_form_is_enclosed(p: float, share: float) -> None:
    case = closed(p, share)
    prover = case.prover
    prover.offer_dual(case.duals[0])
    prover.offer_channel(case.channels[0])
    assert prover.status == "certified"
    assert prover.lower - 1e-12 <= case.lower <= prover.upper + 1e-12


@pytest.mark.parametrize("flavour", some_at_length(FLAVOURS, 5))
def test_two_solvers_enclose_one_value(flavour: str) -> None:
    """``known`` holds the assertions; here it must also have come close to the value."""
    case = agreed(random_program(np.random.default_rng(5), flavour, (3, 4, 4)))
    assert case.upper - case.lower <= 1e-5 * case.program.scale


def test_rows_multipliers_of_another_program_stay_sound() -> None:
    rng = np.random.default_rng(8)
    cases = [agreed(random_program(rng, "leakage", (2, 3, 3))) for _ in range(5)]
    for one, other in itertools.permutations(cases, 2):
        lower = floor(one.prover.proof.lower(raw(other.duals[0])))
        assert lower <= one.upper + one.slack


def test_strings_and_ragged_lists_are_no_multipliers() -> None:
    case = agreed(random_program(np.random.default_rng(9), "everything", (2, 3, 3)))
    proof = case.prover.proof
    blank = raw(Dual({}, {}).cleaned(case.program))
    zero = floor(proof.lower(blank))
    for junk in ("x", None, [], [[]], [[1.0], [1.0, 2.0]], {}, True, [["x"] * 3] * 3, [None] * 3):
        garbage = {
            "objective": 1,
            "scores": dict.fromkeys(blank["scores"], junk),
            "multipliers": dict.fromkeys(blank["multipliers"], junk),
            "auxiliaries": dict.fromkeys(blank["auxiliaries"], junk),
        }
        lower = floor(proof.lower(garbage))
        assert lower <= case.upper + case.slack
        if junk is not True:  # as a multiplier, true is 1
            assert lower == zero


def test_the_prover_takes_any_object_for_multipliers() -> None:
    case = agreed(random_program(np.random.default_rng(9), "ratio", (2, 3, 3)))
    for junk in ("x", None, [[1.0], [1.0, 2.0]], object()):
        case.prover.offer_dual(Dual({"W": junk}, {"none": junk}, {"ldp": [junk, junk]}))  # type: ignore
        assert case.prover.lower <= case.upper + case.slack


# ---- the bound in floats -----------------------------------------------------------------


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_bounds_in_balls_and_in_floats_agree(flavour: str) -> None:
    rng = np.random.default_rng(abs(hash_of(flavour)))
    for size in ((2, 2, 2), (2, 3, 4), (4, 6, 5)):
        program = random_program(rng, flavour, size)
        proof, n, m = ChannelProof(program.to_dict()), program.n, program.m
        for _ in range(5):
            scores = {k: rng.normal(scale=2, size=(v.size, m)) for k, v in program.views.items()}
            lam = {
                k: rng.exponential(size=m if r.per_output else ())
                * (rng.choice([-1, 1]) if r.sense == "==" else 1)
                for k, r in program.constraints.items()
            }
            aux = {
                k: [rng.exponential(size=(n, m)) for _ in range(1 + (a.kind == "ratio"))]
                for k, a in program.auxiliaries.items()
            }
            dual = Dual(scores, lam, aux)
            ball = proof.lower(dual.to_dict())
            size_of = 1e-9 * max(1.0, abs(float(ball.mid())))
            assert float(ball.rad()) <= size_of
            assert abs(float(ball.mid()) - dual.lower_bound(program)) <= size_of
            assert floor(ball) <= float(ball.mid()) <= ceil(ball)


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode()[:4], "little")


# ---- brute force -------------------------------------------------------------------------


def grid(m: int, steps: int) -> np.ndarray:
    """Return every row of a channel with m outputs in multiples of 1/steps."""
    points = [c for c in itertools.product(range(steps + 1), repeat=m - 1) if sum(c) <= steps]
    return np.array([(*c, steps - sum(c)) for c in points]) / steps


@pytest.mark.long
@pytest.mark.parametrize("outputs", rest_at_length([2, 3], 1))
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_no_channel_of_a_fine_grid_beats_a_proved_end(flavour: str, outputs: int) -> None:
    rng = np.random.default_rng(outputs + 10 * hash_of(flavour))
    rows = grid(outputs, 200 if outputs == 2 else 36)
    pairs = np.array(list(itertools.product(range(len(rows)), repeat=2)))
    channels = rows[pairs]
    recorded = 0
    for _ in range(3):
        program = random_program(rng, flavour, (2, 2, outputs))
        if flavour in ("equality", "everything"):  # equalities that the grid can meet
            even = np.array([[0.375, 0.125], [0.125, 0.375]])
            program = replace(program, law=even)
            if "kept" in program.constraints:
                kept = replace(program.constraints["kept"], bound=(Fraction(1, 2),) * 2)
                program = replace(program, constraints={**program.constraints, "kept": kept})
            if "mean" in program.constraints and flavour == "equality":
                mean = replace(program.constraints["mean"], bound=Fraction(1, 8))
                program = replace(program, constraints={**program.constraints, "mean": mean})
        case, plain = agreed(program), Plain(program)
        stacks = channels if program.m == outputs else grid(2, 200)[grid_pairs(201)]
        feasible = stacks[plain.violation(stacks) <= 1e-13]
        if len(feasible):
            least = plain.value(program.objective, feasible).min()
            assert case.lower <= least + 1e-9
            spacing = 0.2 if outputs == 3 else 0.05
            assert least <= case.upper + spacing * max(1.0, program.scale)  # the grid is fine
            recorded += 1
    assert recorded >= 2, "the grid met too few of these programs"


def grid_pairs(count: int) -> np.ndarray:
    return np.array(list(itertools.product(range(count), repeat=2)))


# ---- invariances -------------------------------------------------------------------------


def overlap(a: Any, b: Any, unit_of: float = 1.0) -> None:
    """Assert that two enclosures of one value meet (b in units of ``unit_of``)."""
    slack = 1e-12 * max(1.0, abs(a.lower))
    assert a.lower <= b.upper / unit_of + slack
    assert b.lower / unit_of <= a.upper + slack


@pytest.fixture(scope="module")
def example() -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(12)
    law = rng.dirichlet(np.ones(12)).reshape(3, 4)
    d = rng.random((4, 4)) * (1 - np.eye(4))
    return law, d, 0.35 * float((law.sum(axis=0) @ d).min())


def leakage(law: np.ndarray, d: np.ndarray, budget: float, **options: Any) -> Any:
    return cpv.PrivacyDistortion(cpv.DiscreteSource(law), d, budget=budget).solve(**options)


def test_a_permutation_changes_nothing(example: Any) -> None:
    law, d, budget = example
    there = leakage(law, d, budget)
    assert there.status == "certified"
    rng = np.random.default_rng(0)
    for _ in range(4):
        w, x, y = rng.permutation(3), rng.permutation(4), rng.permutation(4)
        here = leakage(law[w][:, x], d[x][:, y], budget)
        assert here.status == "certified"
        overlap(here, there)


def test_a_split_letter_changes_nothing(example: Any) -> None:
    law, d, budget = example
    there = leakage(law, d, budget)
    for x in range(4):
        for share in (0.5, 1e-3, 1e-9):
            halves = np.column_stack([law, share * law[:, x]])
            halves[:, x] -= halves[:, -1]
            here = leakage(halves, np.vstack([d, d[x]]), budget)
            assert here.status == "certified"
            overlap(here, there)
    twice = leakage(law, np.column_stack([d, d[:, 0]]), budget)  # nor does a second name
    overlap(twice, there)


@pytest.mark.parametrize("c", [1e12, 1e-12])
def test_the_unit_of_distortion_changes_nothing(example: Any, c: float) -> None:
    law, d, budget = example
    for solver in ("CLARABEL", "SCS"):
        there = leakage(law, d, budget)
        here = leakage(law, c * d, c * budget, solver=solver)
        assert here.status == "certified"
        overlap(there, here)
    source = cpv.DiscreteSource(law)
    caps = {"criteria": [cpv.LeakageCap(0.2)]}
    there = cpv.MinimumDistortion(source, d, **caps).solve()
    here = cpv.MinimumDistortion(source, c * d, **caps).solve()
    assert there.status == here.status == "certified"
    overlap(there, here, unit_of=c)


@pytest.mark.parametrize("c", [1e12, 1e-12])
@pytest.mark.parametrize("kind", ["ratio", "maximum"])
def test_the_unit_of_distortion_changes_nothing_with_auxiliaries(kind: Any, c: float) -> None:
    program = random_program(np.random.default_rng(3), kind, (2, 3, 3))
    scaled = replace(program, objective=c * program.objective, terms={})
    there, here = solve(program).certificate, solve(scaled).certificate
    assert there.status == here.status == "certified"
    overlap(there, here, unit_of=c)


# ---- solvers that fail or crash (lies are a campaign of tests/attacks.py) ----------------


class PanicException(BaseException):
    """What pyo3 calls a Rust panic."""


def raising(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def outcome(problem: Any) -> Any:
    """Return the solution, or the error in its place."""
    try:
        return problem.solve()
    except (cpv.CertificationError, cpv.InfeasibleError) as error:
        return error


def settle(problem: Any, truth: Any) -> str:
    """Solve; what is claimed must hold of the truth (a solution; None: nothing is feasible)."""
    obtained = outcome(problem)
    assert obtained.certificate.verify()
    if isinstance(obtained, cpv.InfeasibleError):
        assert truth is None, "a feasible problem was called infeasible"
        return "infeasible"
    if isinstance(obtained, cpv.CertificationError):
        assert obtained.upper == INF if truth is None else obtained.upper >= truth.lower
        assert truth is None or obtained.lower <= truth.upper
        return "uncertified"
    assert truth is not None, "an infeasible problem was solved"
    overlap(obtained, truth)
    tolerance = 1e-6 * problem.program.scale
    assert obtained.status == (
        "certified" if obtained.upper - obtained.lower <= tolerance else "loose"
    )
    return str(obtained.status)


def problems() -> Iterator[Any]:
    rng = np.random.default_rng(21)
    law = rng.dirichlet(np.ones(6)).reshape(2, 3)
    d = rng.random((3, 3)) * (1 - np.eye(3))
    source = cpv.DiscreteSource(law)
    most = float((law.sum(axis=0) @ d).min())
    cap = 0.3 * source.information()  # which binds: no closed form sees it either
    yield lambda: cpv.PrivacyDistortion(source, d, budget=0.4 * most)
    yield lambda: cpv.MinimumDistortion(source, d, criteria=[cpv.LeakageCap(cap)])
    yield lambda: cpv.PrivacyDistortion(
        source, d, budget=0.4 * most, criteria=[cpv.LeakageCap(1e-4)]
    )  # infeasible, but only jointly: no closed form sees it


PROBLEMS = list(problems())


@pytest.fixture(scope="module")
def truths() -> list[Any]:
    values: list[Any] = []
    for build in PROBLEMS:
        try:
            values.append(build().solve())
            assert values[-1].status == "certified"
        except cpv.InfeasibleError:
            values.append(None)
    assert [truth is None for truth in values] == [False, False, True]
    return values


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
@pytest.mark.parametrize(
    "status", some_at_length(["infeasible", "optimal", "unbounded", "", "user_limit"], 2)
)
def test_what_the_solver_says_of_itself_decides_nothing(
    status: str, number: int, truths: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = cvxpy_channel.ConicModel.solve

    def lying(self: Any, *args: Any, **options: Any) -> str:
        honest(self, *args, **options)
        return status

    monkeypatch.setattr(cvxpy_channel.ConicModel, "solve", lying)
    obtained = settle(PROBLEMS[number](), truths[number])
    assert obtained == ("infeasible" if truths[number] is None else "certified")

    # and nothing is proved by a solver that says so and does nothing
    monkeypatch.setattr(interior, "fits", lambda program: False)
    monkeypatch.setattr(cvxpy_channel.ConicModel, "solve", lambda *_, **__: status)
    obtained = settle(PROBLEMS[number](), truths[number])
    assert obtained in ("loose", "uncertified")


@pytest.mark.parametrize("number", some_at_length(range(len(PROBLEMS)), 2))
@pytest.mark.parametrize(
    "error",
    rest_at_length(
        [
            PanicException("index out of bounds"),
            cp.SolverError("no"),
            RuntimeError("no"),
            MemoryError(),
        ],
        2,
    ),
    ids=lambda e: type(e).__name__,
)
def test_a_crash_is_survived(
    error: BaseException, number: int, truths: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cp.Problem, "solve", raising(error))
    settle(PROBLEMS[number](), truths[number])  # the central path may do without the solver
    with monkeypatch.context() as patch:
        patch.setattr(interior, "fits", lambda program: False)
        assert settle(PROBLEMS[number](), truths[number]) in ("loose", "uncertified")
    monkeypatch.undo()

    honest, calls = cp.Problem.solve, itertools.count()

    def sometimes(self: Any, *args: Any, **options: Any) -> Any:
        if next(calls) == 0:
            raise error
        return honest(self, *args, **options)

    monkeypatch.setattr(cp.Problem, "solve", sometimes)  # the next attempt still counts
    obtained = settle(PROBLEMS[number](), truths[number])
    assert obtained == ("infeasible" if truths[number] is None else "certified")


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
def test_an_exit_is_no_crash(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp.Problem, "solve", raising(error()))
    with pytest.raises(error):
        PROBLEMS[0]().solve(method="conic")


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_an_interrupt_proves_nothing_false(
    number: int, truths: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cp.Problem, "solve", raising(KeyboardInterrupt()))
    problem = PROBLEMS[number]()
    solution = problem.solve(method="conic", certify=False)
    if solution.log[-1] == "stopped: interrupted":
        assert solution.status in ("loose", "uncertified")
    if truths[number] is not None:
        assert solution.lower <= truths[number].upper
        assert truths[number].lower <= solution.upper


def test_contradictions_with_wrong_multipliers_are_no_proof(truths: list[Any]) -> None:
    """A weight of 0 on the objective must never prove a feasible program infeasible."""
    rng = np.random.default_rng(4)
    offered = 0
    for flavour in FLAVOURS:
        case = agreed(random_program(rng, flavour, (2, 3, 3)))
        stream = bad_duals(rng, case)
        for _ in range(24):
            dual = replace(next(stream), objective=0)
            assert not case.prover.offer_dual(dual)
            assert case.prover.status != "infeasible"
            assert not case.prover.proof.lower({**dual.to_dict(), "objective": 0}) > 0
            offered += 1
    assert offered == 24 * len(FLAVOURS)


def test_entries_may_be_fixed_at_any_float() -> None:
    """0.1 is no multiple of 2⁻⁵²: it is fixed all the same."""
    program = random_program(np.random.default_rng(3), "leakage", (2, 3, 3))
    lower, upper = np.zeros((3, 3)), np.ones((3, 3))
    lower[0, 1] = upper[0, 1] = 0.1
    case = agreed(replace(program, lower=lower, upper=upper, constraints={}))
    assert case.upper - case.lower <= 1e-5 * program.scale


@pytest.mark.parametrize(
    "name", ["", "value", "objective", "mass", "floor", "cap", "view[W]", "joint[W]", "total[W]"]
)
def test_a_row_or_term_may_have_any_name(name: str) -> None:
    program = random_program(np.random.default_rng(3), "leakage", (2, 3, 3))
    risk, distortion = program.terms["risk"], program.terms["distortion"]
    fixed = {"lower": np.full((3, 3), 1 / 64), "upper": np.full((3, 3), 5 / 8)}
    program = replace(program, **fixed)
    inner = np.full((3, 3), 1 / 4)
    inner[np.arange(3), program.cost(distortion).argmin(axis=1)] = 1 / 2
    rows = {"budget": distortion <= program.value(distortion, inner), name: risk <= 0.25}
    program = replace(program, constraints=rows, terms={name: risk, "d": distortion})
    certificate = solve(program).certificate
    assert certificate.status == "certified"
    assert certificate.verify()
    plain = solve(
        replace(program, constraints={"budget": rows["budget"], "leak": rows[name]})
    ).certificate
    overlap(certificate, plain)


def test_a_label_that_no_atom_shows_costs_nothing() -> None:
    """Every atom of reference label 0 is unseen, so its posterior is 0, not π."""
    law = np.array([[0.1, 0.2], [0.4, 0.3]])
    view = View(np.array([[1, -1], [1, -1]]), np.array([[0, 0], [1, 1]]))
    objective = Expression("partial", {"P": 1.0}, cost=np.array([[0.0, 0.2], [0.3, 0.0]]))
    case = agreed(ChannelProgram(law, 2, {"P": view}, objective))
    assert case.upper - case.lower <= 1e-5 * case.program.scale


@pytest.mark.parametrize("flavour", some_at_length(FLAVOURS, 6))
def test_what_is_called_feasible_is(flavour: str) -> None:
    """Channels around the optimum, on a coarse grid, some with rows or signs that are wrong."""
    rng = np.random.default_rng(hash_of(flavour))
    case = agreed(random_program(rng, flavour, (2, 3, 3)))
    n, m, plain = case.program.n, case.program.m, Plain(case.program)
    best, den = case.channels[0], 2**20
    text = {True: 0, False: 0}
    for number in range(200):
        weight = rng.choice([0.0, 1e-3, 0.1, 1.0])
        mixed = (1 - weight) * best + weight * rng.dirichlet(np.ones(m), size=n)
        k = np.floor(mixed * den + rng.random((n, m))).astype(int)
        k[np.arange(n), k.argmax(axis=1)] += den - k.sum(axis=1)
        s, a, b = rng.integers(n), rng.integers(m), rng.integers(m)
        if number % 4 == 0:  # a negative entry in a row of the right sum
            k[s, a], k[s, b] = k[s, a] - den, k[s, b] + den
        if number % 4 == 1:
            k[s, a] += rng.choice([-1, 1]) * rng.integers(1, den)
        obtained = evaluated(case.prover.proof, listed(k.tolist(), den))
        text[obtained is not None] += 1
        if (k < 0).any() or (k.sum(axis=1) != den).any():
            assert obtained is None
            continue
        violation = plain.violation(k[None] / den)[0]
        if obtained is not None:
            assert violation <= 1e-12
            value = plain.value(case.program.objective, k[None] / den)[0]
            assert abs(value - float(obtained.objective.mid())) <= 1e-11
        elif flavour not in ("equality", "everything"):
            assert violation >= -1e-12
    assert text[False] >= 50
    assert text[True] >= (0 if flavour in ("equality", "everything") else 1)


@pytest.mark.parametrize("off", [0, 1, -1])
def test_an_equality_holds_from_both_sides(off: int) -> None:
    law = np.array([[0.25, 0.25], [0.25, 0.25]])
    view = View(np.array([[0, 0], [1, 1]]))
    mean = Expression("mean", cost=np.array([[0.0, 1.0], [0.0, 1.0]])) == Fraction(1, 2)
    program = ChannelProgram(law, 2, {"W": view}, Expression("risk", {"W": 1.0}), {"mean": mean})
    channel = listed([[4 + off, 4 - off], [4, 4]], 8)
    obtained = ChannelProof(program.to_dict()).upper(channel)
    assert obtained.feasible == (off == 0)
    assert obtained.broken == ([] if off == 0 else ["mean"])


def test_repair_never_returns_an_infeasible_channel() -> None:
    rng = np.random.default_rng(6)
    repaired = 0
    for flavour in FLAVOURS:
        case = agreed(random_program(rng, flavour, (2, 3, 3)))
        plain, stream = Plain(case.program), bad_channels(rng, case)
        for _ in range(40):
            obtained = repair(case.program, case.prover.proof, next(stream))
            if obtained is not None:
                exact, evaluation = obtained
                assert evaluation.feasible
                assert plain.violation(exact.matrix[None])[0] <= 1e-12
                assert ceil(evaluation.objective) >= case.lower
                repaired += 1
    assert repaired >= 200
