"""From the number typed to the number proved, of Gaussian problems.

The same law in another order, or in other units, is the same problem: its enclosures overlap, and
contain the value where a closed form knows it, however nearly singular it is.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from flint import arb, ctx, fmpq
from threadpoolctl import threadpool_info, threadpool_limits

import cvxprivacy as cpv
from cvxprivacy.certificates import verify
from cvxprivacy.certificates.covariance_proof import semidefinite
from cvxprivacy.model.gaussian import entropy
from cvxprivacy.model.matrices import rationals
from cvxprivacy.solvers import driver
from tests.test_bad_input import refused

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


def exactly(value: Any) -> arb:
    return arb(fmpq(*value.as_integer_ratio()))


def contains(solution: Any, truth: arb) -> None:
    assert exactly(solution.lower) <= truth.upper(), (solution, truth)
    assert truth.lower() <= exactly(solution.upper), (solution, truth)


# ---- the same problem in another order, and in other units -------------------------------


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
    found, truth = [], None
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
            found.append(
                Q(source, total, weights=[1 / factors[i] ** 2 for i in order], units=units)
            )
        elif form == "attributes":
            chosen = range(x) if capped < 2 else [x - 1]
            limits = {f"x{i}": share * sizes[i] * factors[i] ** 2 for i in chosen if sizes[i]}
            found.append(Q(source, limits, units=units))
        elif form == "entropy":
            weights = [1 / factors[i] ** 2 for i in order]
            found.append(Q(source, total, weights=weights, entropy=capped, units=units))
        else:
            options: dict[str, Any] = {"minimize": form, "units": units}
            if form == "leakage":
                options["max_rate"] = 6 + capped
            found.append(E(source, total * factors[0] ** 2, **options))
    if kind == "copies" and w == 1 and form == "trace":
        with ctx.workprec(200):  # −½ log(1 − (1 − d)ρ²)
            law = law_of([hidden[0], rows[0]])
            square = law[0][1] ** 2 / (law[0][0] * law[1][1])
            truth = -exactly(1 - (1 - share) * square).log() / 2
            truth = truth / arb(2).log() if units == "bits" else truth
    return found, truth


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


@pytest.mark.parametrize("seed", range(30))
def test_orders_and_units_change_no_value(seed: int) -> None:
    one_value([1, seed])


@pytest.mark.long
def test_orders_and_units_change_no_value_at_length() -> None:
    statuses: list[str] = []
    for seed in range(300):
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


# ---- entropies ---------------------------------------------------------------------------


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
        own = det.log() / 2 / (arb(2).log() if units == "bits" else 1)
        moved = exactly(F(h)) - own
        assert other.status == "certified"
        assert exactly(other.lower) <= (exactly(plain.upper) + moved).upper()
        assert exactly(other.upper) >= (exactly(plain.lower) + moved).lower()
        assert abs(exactly(other.upper) - exactly(plain.upper) - moved) < 1e-9
        assert abs(entropy(source.law([0, 1], [0, 1]), units) - own) < 1e-28
    term = other.certificate.program.terms["risk"]
    assert 0 < term.constant_radius < F(1, 10**28)
    assert math.isclose(E(source, 0.5, units=units).entropy, float(own), rel_tol=1e-15)


# ---- numbers as they are typed -----------------------------------------------------------


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
    assert (filling.gains, filling.offsets, filling.total) == ((truth,), (1 / truth,), truth)
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


# ---- covariances that are none -----------------------------------------------------------


@pytest.mark.parametrize("over", [4e-10, 2.0**-52, F(1, 10**30)])
def test_an_indefinite_covariance_is_refused_with_a_remedy(over: Any) -> None:
    law = [[1, 1 + over], [1 + over, 1]]
    with pytest.raises(cpv.InputError, match="indefinite") as caught:
        S(law, sensitive=[0], key=[1])
    least = caught.value.value
    assert -2 * float(over) <= least <= -float(over) / 2
    for piece in ("multiply its diagonal by 1.", "from_table"):
        assert piece in str(caught.value)
    factor = float(str(caught.value).split("diagonal by ")[1].split()[0])
    lifted = [[float(law[i][j]) * (factor if i == j else 1) for j in (0, 1)] for i in (0, 1)]
    assert S(lifted, sensitive=[0], key=[1]).w == (0,)


def test_rounded_moments_of_dependent_columns_are_refused_and_a_tables_are_exact() -> None:
    rng = np.random.default_rng(0)
    refusals = 0
    for _ in range(20):
        columns = rng.integers(-999, 999, size=(3, 50)).astype(float)
        data = np.vstack([columns, columns[0] + 2 * columns[1] - columns[2]])
        law, names = np.cov(data), list("wabc")
        if semidefinite(rationals((law + law.T) / 2)):
            assert S(law, sensitive=[0], key=[1, 2, 3]).w == (0,)
        else:
            refusals += 1
            refused(
                lambda law=law: S(law, sensitive=[0], key=[1, 2, 3]), "covariance", "indefinite"
            )
        table = pd.DataFrame(dict(zip(names, data, strict=True)))
        source = S.from_table(table, sensitive="w", key=["a", "b", "c"])
        assert len(source.basis) == 3
        assert not source.information() < math.inf  # a, b and c determine w
        assert np.allclose(source.covariance, law, rtol=1e-12)
    assert refusals > 0


def test_a_variance_of_nothing_has_no_covariance() -> None:
    refused(lambda: S([[0, 1], [1, 1]], sensitive=[0], key=[1]), "covariance", "indefinite")


def test_two_entries_that_differ_by_rounding_have_their_mean_in_any_order() -> None:
    a, b = 0.5, math.nextafter(0.5, 1)
    one, two = (S([[1, p], [q, 1]], sensitive=[0], key=[1]) for p, q in ((a, b), (b, a)))
    assert one.exact == two.exact
    assert one.exact[0][1] == (F(a) + F(b)) / 2


# ---- tables ------------------------------------------------------------------------------


def test_moments_of_floats_are_exact() -> None:
    """Columns of any exponents, 0 and negative numbers too; dependent ones are known to be."""
    rng = np.random.default_rng(3)
    size = 40
    a = rng.normal(size=size) * 10.0 ** rng.integers(-200, 100, size=size)
    b = np.round(rng.normal(size=size) * 2**20) / 2**10
    table = pd.DataFrame(
        {"w": rng.normal(size=size), "a": a, "b": b, "c": 3 * b - 0.25, "d": 2 * a}
    )
    table.loc[0, "a"] = table.loc[0, "d"] = 0.0
    names = list("wabcd")
    source = S.from_table(table, sensitive="w", key=names[1:])
    columns = {n: [F(v) for v in table[n].tolist()] for n in names}
    for i, one in enumerate(names):
        for j, two in enumerate(names):
            total = sum(map(lambda u, v: u * v, columns[one], columns[two]))
            rest = sum(columns[one]) * sum(columns[two]) / size
            assert source.exact[i][j] == (total - rest) / (size - 1)
    assert len(source.basis) == 2
    unit = S.from_table(table, sensitive="w", key=names[1:], standardise=True)
    assert len(unit.basis) == 2
    assert np.allclose(unit.covariance.diagonal(), 1, rtol=1e-14)
    for i, s in enumerate(unit.scale.tolist()):
        assert unit.exact[i][0] * F(s) * F(float(unit.scale[0])) == source.exact[i][0]
    shrunk = S.from_table(table[["w", "b", "c"]], sensitive="w", key=["b", "c"], shrinkage="oas")
    assert len(shrunk.basis) == 2


def test_decimals_of_a_table_are_decimals() -> None:
    texts = {"w": ["0.1", "0.2", "0.4"], "a": ["0.1", "0.3", "0.9"], "b": ["0.2", "0.5", "1.3"]}
    table = pl.DataFrame({n: [Decimal(v) for v in texts[n]] for n in texts})
    source = S.from_table(table, sensitive="w", key=["a", "b"])
    assert source.exact[0][1] == F(19, 300)
    assert source.names == ("w", "a", "b")


# ---- closed forms ------------------------------------------------------------------------


def reflected(powers: list[Fraction]) -> list[list[Fraction]]:
    """Return a covariance of these eigenvalues: Q diag Q of a rational reflection Q."""
    size = len(powers)
    v = [F(k + 1) for k in range(size)]
    square = sum(x * x for x in v)
    q = [[int(i == j) - 2 * v[i] * v[j] / square for j in range(size)] for i in range(size)]
    return [[sum(q[i][k] * powers[k] * q[k][j] for k in range(size)) for j in range(size)]
            for i in range(size)]  # fmt: skip


@pytest.mark.parametrize("least", [F(1, 7), F(1, 10**9), F(1, 2**80), F(1, 10**60)])
@pytest.mark.parametrize("share", [F(1, 1000), F(1, 3), F(2)])
def test_reverse_water_filling_is_of_the_covariance_itself(
    least: Fraction, share: Fraction
) -> None:
    """Floats do not know the least eigenvalue: the value, ½ Σ log λ/D, changes with it."""
    powers = [least, F(2, 3), F(5)]
    budget = share * sum(powers)
    solution = cpv.ReverseWaterFilling(reflected(powers), budget, units="nats").solve(certify=False)
    level = cpv.ReverseWaterFilling(powers, budget).level
    with ctx.workprec(400):
        truth = sum((exactly(p / min(p, level or p)).log() for p in powers), arb(0)) / 2
        contains(solution, truth)
    assert solution.status == "certified"
    assert solution.certificate.program.covariance == tuple(map(tuple, reflected(powers)))


def test_the_closed_bound_is_below_the_value() -> None:
    for seed in range(30):
        rng = np.random.default_rng([4, seed])
        w, x = (int(k) for k in rng.integers(1, 5, size=2))
        a = rng.normal(size=(w + x, w + x)) * 10 ** rng.uniform(-3, 0, w + x)[:, None]
        source = S((a @ a.T + a @ a.T) / 2, sensitive=range(w), key=range(w, w + x))
        budget = float(rng.uniform(0.01, 1)) * float(np.trace(source.block(source.x, source.x)))
        units = ("bits", "nats")[seed % 2]
        bound = cpv.closed_gaussian_bound(source, budget, units=units)
        solution = Q(source, budget, units=units).solve(accuracy="high", certify=False)
        assert bound <= solution.upper
        if w == x == 1:
            assert math.isclose(bound, solution.lower, abs_tol=1e-11)


# ---- solvers that fail -------------------------------------------------------------------


@pytest.mark.parametrize(
    "left", [math.nan, math.inf, 1e300, None, "shape"], ids=["nan", "inf", "huge", "none", "shape"]
)
@pytest.mark.parametrize("method", ["conic", "auto"])
def test_whatever_a_solver_leaves_is_survived(
    monkeypatch: pytest.MonkeyPatch, left: Any, method: str
) -> None:
    def solve(self: cp.Problem, **options: Any) -> None:
        for one in [*self.variables(), *(v for c in self.constraints for v in c.dual_variables)]:
            shape = (2, 5) if left == "shape" else one.shape
            one.save_value(
                None if left is None else np.full(shape, 0.0 if left == "shape" else left)
            )

    monkeypatch.setattr(cp.Problem, "solve", solve)
    monkeypatch.setattr(
        "cvxprivacy.solvers.covariance.central_path",
        lambda white, *rest: (np.full((white.program.n,) * 2, np.nan), {"budget": math.nan}),
    )
    source = S(np.eye(4) + 0.5, sensitive=[0], key=[1, 2, 3])
    problems: list[Callable[[], Any]] = [
        lambda: Q(source, 0.5),
        lambda: Q(source, 0.5, cap=np.eye(3)),
        lambda: Q(source, {"V1": 0.1, "V2": 0.2}),
        lambda: E(source, 0.5, max_leakage=0.3),
        lambda: E(source, 0.5, minimize="leakage", max_rate=1.0),
    ]
    for problem in problems:
        solution = problem().solve(method=method, certify=False)
        assert solution.status in ("loose", "uncertified", "certified")
        assert -math.inf <= solution.lower <= solution.upper <= math.inf


def test_a_solve_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> dict[str, int]:
        pools = (p for p in threadpool_info() if p["user_api"] == "blas")
        return {p["filepath"]: p["num_threads"] for p in pools}

    seen, told = [], verify.proof_of

    def proof_of(program: Any) -> Any:
        seen.append(threads())
        return told(program)

    source = cpv.DiscreteSource(np.eye(2) / 2)
    for _ in range(2):  # the second time with all libraries loaded
        with threadpool_limits(2, user_api="blas"):
            before = threads()
            monkeypatch.setattr(verify, "proof_of", proof_of)
            Q(S.scalar(0.5), 0.5).solve()
            cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.1).solve()
            with pytest.raises(cpv.InputError):
                driver.solve_gaussian(Q(S.scalar(0.5), 0.5, cap=[[1]]).program, method="structured")
            monkeypatch.undo()
            assert {path: threads()[path] for path in before} == before
    assert 2 in before.values()  # some were built for one thread
    assert all(found[path] == 1 for found in seen for path in before if path in found)
    assert len(seen) >= 4


# ---- nothing changes afterwards ----------------------------------------------------------


def test_arrays_of_sources_and_releases_cannot_be_written_to() -> None:
    table = pd.DataFrame({"w": [0.0, 1, 2, 4], "x": [1.0, 0, 3, 3], "z": [2.0, 2, 1, 0]})
    source = S.from_table(table, sensitive="w", key="x", side="z", standardise=True)
    assert np.allclose(source.conditional().scale, source.scale[:2])
    release = E(source, 0.2, side_information="both").solve().release
    problem = cpv.ReverseWaterFilling([[2, 1], [1, 2]], 1)
    for one in (source, source.conditional(), release, problem, problem.source):
        arrays = [value for value in vars(one).values() if isinstance(value, np.ndarray)]
        assert arrays
        assert not any(value.flags.writeable for value in arrays)


def test_all_is_pickled_and_copied_before_and_after_a_solve() -> None:
    law = [[2, 1, 1, 2], [1, 2, 1, 2], [1, 1, 2, 3], [2, 2, 3, 5]]
    source = S(law, sensitive=[0], key=[2, 3], side=[1])
    for problem in (
        Q(source, F(1, 3), entropy=1),
        E(source, 0.5, side_information="both"),
        cpv.ReverseWaterFilling([[2, 1], [1, 2]], 1),
    ):
        for again in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
            one, two = problem.solve(), again.solve()
            assert (one.lower, one.upper) == (two.lower, two.upper)
            assert one.certificate.residuals
            kept = pickle.loads(pickle.dumps(one))
            assert kept.certificate.document() == one.certificate.document()


def test_a_key_may_tell_nothing_beyond_what_the_user_knows() -> None:
    """W = Z + N₁ and X = Z + N₂: the regression of W on X given Z is 0, and a ball around it."""
    z = Fraction(1, 3)
    gamma = [[z + Fraction(1, 7), z, z], [z, z + Fraction(1, 11), z], [z, z, z]]
    source = cpv.GaussianSource(gamma, sensitive=[0], key=[1], side=[2])
    for known in ("decoder", "both"):
        solution = cpv.GaussianEquivocation(
            source, Fraction(1, 50), side_information=known, minimize="leakage", units="nats"
        ).solve()
        assert solution.status == "certified"
        held = np.log1p(float(z * 7)) / 2  # I(W; Z)
        assert solution.lower - 1e-12 <= held <= solution.upper + 1e-12
