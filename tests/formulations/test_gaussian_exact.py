"""From the number typed to the number proved, of Gaussian problems."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import cvxprivacy as cpv
from cvxprivacy.model.matrices import entropy
from tests.formulations.gaussian import contains, exactly
from tests.lengths import rest_at_length
from tests.refusals import refused

Q, E, S = cpv.QuadraticGaussian, cpv.GaussianEquivocation, cpv.GaussianSource


F = Fraction


def law_of(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the covariance of combinations of independent standard normals."""
    return [[sum((a * b for a, b in zip(p, q, strict=True)), F(0)) for q in rows] for p in rows]


def overlap(solutions: list[Any]) -> None:
    lower, upper = (
        max(s.lower for s in solutions),
        min(s.upper for s in solutions),
    )
    assert lower <= upper, [(s.lower, s.upper) for s in solutions]


def random_problems(seed: Any) -> tuple[list[cpv.CovarianceProblem], arb | None]:
    """Return one problem four times: two orders, two scales; and its value where it is known."""
    rng = np.random.default_rng(seed)
    w, x = (int(k) for k in rng.integers(1, 4, size=2))
    kind = ("full", "singular", "nearly", "copies")[int(rng.integers(4))]
    latent = w + x

    def ratio(size: int = 9) -> Fraction:
        return F(int(rng.integers(-size, size + 1)), int(rng.integers(1, size)))

    hidden = [[ratio() for _ in range(latent)] for _ in range(w)]
    for i in range(w):  # noise of its own, so that W is regular and X does not determine it
        hidden[i] = [*hidden[i], *(F(int(i == j)) for j in range(w))]
    rows = [[ratio() for _ in range(latent)] + [F(0)] * w for _ in range(x)]
    for i in range(x):
        rows[i][i] += 20
    if kind != "full":
        mix = [ratio() for _ in range(x)]
        mix[0] = mix[0] or F(1)
        extra = [sum((c * row[k] for c, row in zip(mix, rows, strict=True)), F(0))
                 for k in range(latent + w)]  # fmt: skip
        if kind == "nearly":
            tiny = F(1, 3 * 2 ** int(rng.integers(4, 90)))
            extra = [v + tiny * ratio() for v in extra[:latent]] + [F(0)] * w
        if kind == "copies":
            extra = [3 * v for v in rows[0]]
            rows = rows[:1]
        rows.append(extra)
        x = len(rows)
    sizes = [sum((v * v for v in row), F(0)) for row in rows]
    share = F(int(rng.integers(1, 100)), 100)
    units = ("bits", "nats")[int(rng.integers(2))]
    form = ("trace", "attributes", "entropy", "rate", "leakage")[int(rng.integers(5))]
    capped = F(int(rng.integers(1, 30)), 10)
    outcome, truth = [], None
    for k in range(4):
        order = list(rng.permutation(x)) if k % 2 else list(range(x))
        hide = list(rng.permutation(w)) if k % 2 else list(range(w))
        factors = [F(int(rng.integers(1, 50)), int(rng.integers(1, 50))) for _ in range(x)]
        if k < 2 or form in ("rate", "leakage"):
            factors = [F(1)] * x
        if k >= 2 and form in ("rate", "leakage"):
            factors = [F(7, 3)] * x
        scaled = [[factors[i] * v for v in rows[i]] for i in order]
        names = [f"w{i}" for i in hide] + [f"x{i}" for i in order]
        source = S(
            law_of([hidden[i] for i in hide] + scaled),
            sensitive=range(w), key=range(w, w + x), names=names,
        )  # fmt: skip
        total = share * sum(sizes, F(0))
        if form == "trace":
            outcome.append(
                Q(source, total, weights=[1 / factors[i] ** 2 for i in order], units=units)
            )
        elif form == "attributes":
            chosen = range(x) if capped < 2 else [x - 1]
            limits = {f"x{i}": share * sizes[i] * factors[i] ** 2 for i in chosen if sizes[i]}
            outcome.append(Q(source, limits, units=units))
        elif form == "entropy":
            weights = [1 / factors[i] ** 2 for i in order]
            outcome.append(Q(source, total, weights=weights, entropy=capped, units=units))
        else:
            options: dict[str, Any] = {"minimize": form, "units": units}
            if form == "leakage":
                options["max_rate"] = 6 + capped
            outcome.append(E(source, total * factors[0] ** 2, **options))
    if kind == "copies" and w == 1 and form == "trace":
        with ctx.workprec(200):  # −½ log(1 − (1 − d)ρ²)
            law = law_of([hidden[0], rows[0]])
            square = law[0][1] ** 2 / (law[0][0] * law[1][1])
            truth = -exactly(1 - (1 - share) * square).log() / 2
            truth = truth / arb(2).log() if units == "bits" else truth
    return outcome, truth


def one_value(seed: Any) -> list[str]:
    problems, truth = random_problems(seed)
    solutions = []
    for problem in problems:
        solution = problem.solve(certify=False)
        if solution.status == "infeasible":
            assert isinstance(problem, E)  # a cap on the rate that the budget does not allow
        solutions.append(solution)
    statuses = [s.status for s in solutions]
    if "infeasible" in statuses:
        assert all(s.lower == math.inf or s.upper == math.inf for s in solutions), statuses
        return statuses
    overlap(solutions)
    if truth is not None:
        for solution in solutions:
            contains(solution, truth)
    assert solutions[0].certificate.verify()
    return statuses


@pytest.mark.parametrize("seed", rest_at_length(range(12), 3))
def test_orders_and_units_change_no_value(seed: int) -> None:
    one_value([1, seed])


@pytest.mark.long
def test_orders_and_units_change_no_value_at_length() -> None:
    statuses: list[str] = []
    for seed in range(40):
        statuses += one_value([2, seed])
    counts = {status: statuses.count(status) for status in set(statuses)}
    print(counts)
    assert counts["certified"] > 0.97 * len(statuses)


@pytest.mark.parametrize("power", [8, 11, 26, 52, 200])
def test_a_key_of_rank_two_however_nearly_of_rank_one(power: int) -> None:
    """X1 = (U + εV)/3, X2 = (U − εV)/7, X3 = V/11, W = U + 4V + N: ½ log(4/3) in any order."""
    e, zero = F(1, 3 * 2**power), F(0)
    rows = {
        "W": [F(1), F(4), F(1)],
        "X1": [F(1, 3), e / 3, zero],
        "X2": [F(1, 7), -e / 7, zero],
        "X3": [zero, F(1, 11), zero],
    }
    with ctx.workprec(200):
        truth = (arb(4) / 3).log() / 2
    for key in (["X1", "X2", "X3"], ["X2", "X1", "X3"], ["X3", "X1", "X2"]):
        names = ["W", *key]
        source = S(law_of([rows[n] for n in names]), sensitive=["W"], key=key, names=names)
        solution = Q(source, {"X3": F(1, 242)}, units="nats").solve(certify=False)
        contains(solution, truth)
        assert solution.status == "certified"
        error = solution.error_covariance
        place = key.index("X3")
        assert math.isclose(error[place, place], 1 / 242, rel_tol=1e-5)
        assert (np.linalg.eigvalsh(error) > -1e-12).all()


@pytest.mark.parametrize("power", [20, 40, 52])
@pytest.mark.parametrize("units", ["bits", "nats"])
def test_an_entropy_counts_from_that_of_the_very_covariance(power: int, units: str) -> None:
    """The value is the Gaussian one plus h − ½ log det 2πe Σ_W, whose digits floats have lost."""
    a = 1 - 2.0**-power
    law = [[1, a, 0.5], [a, 1, 0.5], [0.5, 0.5, 1]]
    source = S(law, sensitive=[0, 1], key=[2])
    plain = Q(source, 0.5, units=units).solve(accuracy="high")
    h = Decimal("-3.7")
    other = Q(source, 0.5, entropy=h, units=units).solve(accuracy="high")
    with ctx.workprec(300):
        det = exactly(1 - F(a) ** 2) * (2 * arb.pi() * arb(1).exp()) ** 2
        ours = det.log() / 2 / (arb(2).log() if units == "bits" else 1)
        moved = exactly(F(h)) - ours
        assert other.status == "certified"
        assert exactly(other.lower) <= (exactly(plain.upper) + moved).upper()
        assert exactly(other.upper) >= (exactly(plain.lower) + moved).lower()
        assert abs(exactly(other.upper) - exactly(plain.upper) - moved) < 1e-9
        assert abs(entropy(source.law([0, 1], [0, 1]), units) - ours) < 1e-28
    term = other.certificate.program.terms["risk"]
    assert 0 < term.constant_radius < F(1, 10**28)
    assert math.isclose(E(source, 0.5, units=units).entropy, float(ours), rel_tol=1e-15)


@pytest.mark.parametrize(
    ("typed", "truth"),
    [
        (Decimal("0.1"), F(1, 10)),
        (F(1, 3), F(1, 3)),
        (0.1, F(0.1)),
        (np.float32(0.1), F(float(np.float32(0.1)))),
        (2**53 + 1, F(2**53 + 1)),
        (np.int64(2**53 + 1), F(2**53 + 1)),
    ],
)
def test_a_number_is_the_one_that_was_typed(typed: Any, truth: Fraction) -> None:
    source = S(np.eye(2) * 2.0**60 + 1, sensitive=[0], key=[1])
    assert Q(source, typed).program.constraints["budget"].bound == truth
    assert Q(source, {"V1": typed}).program.constraints["budget[V1]"].bound == truth
    assert E(source, typed).program.constraints["budget"].bound == truth
    limited = E(source, 1, minimize="leakage", max_rate=typed)
    assert limited.program.constraints["max_rate"].bound == truth
    assert (
        F(Q(source, 1, weights=[typed]).program.constraints["budget"].expression.cost[0, 0])
        == truth
    )
    assert (
        F(Q(source, 1, weights=[[typed]]).program.constraints["budget"].expression.cost[0, 0])
        == truth
    )
    assert F(Q(source, 1, cap=[[typed]]).program.caps["cap"][0, 0]) == truth
    assert S([[typed]], sensitive=[0], key=[0]).exact == ((truth,),)
    assert cpv.ReverseWaterFilling([typed], typed).allocation == [truth]
    filling = cpv.BoxWaterFilling([typed], [typed], typed)
    assert (filling.gains, filling._offsets, filling.total) == ((truth,), (1 / truth,), truth)
    if truth < 1:
        assert S.scalar(typed).exact[0][1] == truth
        assert S.scalar(0.5, rho_xz=typed).exact[1][2] == truth
    assert S.scalar(0.5, sigma_w=typed, sigma_x=typed).exact[0][0] == truth**2


def test_a_document_holds_what_was_typed() -> None:
    solution = Q(S.scalar(F(1, 3)), Decimal("0.1"), cap=[[F(2, 3)]]).solve()
    program = solution.certificate.document()["program"]
    assert program["covariance"][0][1] == "1/3"
    assert program["rows"]["budget"]["bound"] == "1/10"
    assert program["caps"]["cap"] == [["2/3"]]
    assert solution.certificate.verify()


def test_weights_that_are_only_just_none_are_refused() -> None:
    source = S(np.eye(3), sensitive=[0], key=[1, 2])
    thin = [[1, F(1)], [F(1), 1]]
    assert Q(source, 0.5, weights=thin).solve().status == "certified"
    thick = [[1, 1 + F(1, 10**20)], [1 + F(1, 10**20), 1]]
    refused(lambda: Q(source, 0.5, weights=thick), "weights", "indefinite", "-1.", "diagonal")
    refused(lambda: Q(source, 0.5, cap=thin), "cap", "not positive definite")
    refused(lambda: Q(source, 0, weights=thin), "budget", "0 where some error counts nothing")
