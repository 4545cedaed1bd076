"""Gaussian releases: Theorem 2 by simulation, and tables that come back in their own flavour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import cvxprivacy as cpv
from tests.formulations.gaussian import E, Q, S, random_law, random_source, solved, trace
from tests.lengths import some_at_length
from tests.model.test_gaussian import FLAVOURS, census
from tests.refusals import UNSAID, refused

N = 200_000


def sample(source: cpv.GaussianSource, seed: int) -> np.ndarray:
    """Draw records of a law that may be singular."""
    values, vectors = np.linalg.eigh(source.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    noise = np.random.default_rng(seed).standard_normal((N, len(values)))
    return noise @ root.T + source.mean


def simulated(source: cpv.GaussianSource, problem: cpv.CovarianceProblem) -> tuple[Any, ...]:
    """Return the solution, the records, and what is released of them."""
    solution = solved(problem, accuracy="default")
    data = sample(source, 1)
    recorded = [source.names.index(name) for name in solution.release.inputs]
    return solution, data, solution.release.apply(data[:, recorded], seed=2)


def information(one: np.ndarray, other: np.ndarray) -> float:
    """Return I of two samples of Gaussians, in nats."""
    law = np.cov(one, other, rowvar=False)
    k = one.shape[1]
    parts = (law[:k, :k], law[k:, k:], law)
    a, b, c = (np.linalg.slogdet(part)[1] for part in parts)
    return float(a + b - c) / 2


def released_as_told(source: cpv.GaussianSource, solution: Any, data: Any, out: Any) -> None:
    """Cov(X − X̂) = Σ, E[X | X̂] = X̂, and E X̂ = E X."""
    x = data[:, source.x]
    law = source.block(source.x, source.x)
    size = np.sqrt(law.diagonal())
    room = 6 / math.sqrt(N)
    error = x - out
    outcome = np.cov(error, rowvar=False).reshape(law.shape)
    assert (np.abs(outcome - solution.error_covariance) <= room * np.outer(size, size)).all()
    assert np.trace(outcome) <= float(solution.distortion) + 3 * room * np.trace(law)
    assert (np.abs(out.mean(axis=0) - source.mean[list(source.x)]) <= room * size).all()
    # the error has nothing to do with what is released: the regression of X on X̂ is I
    across = (error - error.mean(axis=0)).T @ (out - out.mean(axis=0)) / N
    assert (np.abs(across) <= room * np.outer(size, size)).all()


def test_the_release_has_the_error_covariance_and_the_leakage() -> None:
    rng = np.random.default_rng(3)
    law = random_law(rng, 5, 30)
    source = S(law, sensitive=[0, 1], key=[2, 3, 4], mean=[5, -3, 100, 20, -7])
    for share in (0.05, 0.6):
        problem = Q(source, share * trace(source), units="nats")
        solution, data, out = simulated(source, problem)
        released_as_told(source, solution, data, out)
        # some direction may not be released at all: there, a little noise tells nothing
        blurred = out + 1e-6 * np.random.default_rng(4).standard_normal(out.shape)
        assert abs(information(data[:, source.w], blurred) - solution.value) <= 0.01


def test_the_release_given_z() -> None:
    source = random_source(13, 2, 2, 2, condition=30)
    value = source.conditional()
    problem = E(
        source, 0.3 * trace(value), minimize="leakage", side_information="both", units="nats"
    )
    solution, data, out = simulated(source, problem)
    assert solution.release.inputs == tuple(source.names[i] for i in source.x + source.z)
    released_as_told(source, solution, data, out)
    z = data[:, source.z]
    error = data[:, source.x] - out  # nor has it to do with Z
    across = (error - error.mean(axis=0)).T @ (z - z.mean(axis=0)) / N
    size = np.sqrt(source.covariance.diagonal())
    both = np.outer(size[list(source.x)], size[list(source.z)])
    assert (np.abs(across) <= 6 / math.sqrt(N) * both).all()
    noise = 1e-6 * np.random.default_rng(4).standard_normal(out.shape)
    held = np.hstack([out + noise, z])
    assert abs(information(data[:, source.w], held) - solution.value) <= 0.01


def test_the_release_of_an_encoder_that_sees_w() -> None:
    source = random_source(14, 2, 2, condition=30)
    problem = E(
        source, 0.2 * trace(source), minimize="leakage", encoder="wx", max_rate=2.5, units="nats"
    )
    solution, data, out = simulated(source, problem)
    assert solution.release.inputs == tuple(source.names[i] for i in source.w + source.x)
    released_as_told(source, solution, data, out)
    blurred = out + 1e-6 * np.random.default_rng(4).standard_normal(out.shape)
    assert information(data[:, source.w], blurred) <= solution.leakage.upper + 0.01


def test_the_release_where_a_column_is_a_sum_of_others() -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.integers(-40, 40, (400, 3)), columns=["a", "b", "w"])
    table["w"] += table["a"]
    table["c"] = table["a"] + table["b"]
    source = S.from_table(table, sensitive="w", key=["a", "b", "c"])
    assert [source.names[source.x[i]] for i in source.basis] == ["a", "b"]
    solution, data, out = simulated(source, Q(source, 300.0, units="nats"))
    released_as_told(source, solution, data, out)
    assert np.allclose(out[:, 2], out[:, 0] + out[:, 1], atol=1e-9)
    assert abs(information(data[:, source.w], out[:, :2]) - solution.value) <= 0.01


@pytest.mark.parametrize("condition", some_at_length([1e2, 1e6, 1e12], 1))
def test_gain_and_noise_make_the_error_covariance(condition: float) -> None:
    """(I − A) Σ_X = Cov(X̂, X) = Cov(X̂) and Cov(N') ≽ 0, however ill-conditioned."""
    for seed in range(3):
        source = random_source(seed, 3, 6, condition=condition)
        solution = Q(source, 0.05 * trace(source)).solve(accuracy="high")
        x = source.block(source.x, source.x)
        x = np.tril(x) + np.tril(x, -1).T
        gain, noise = solution.release.gain, solution.release.noise
        others = np.eye(6) - gain
        error = others @ x @ others.T + noise
        assert np.allclose(error, solution.error_covariance, atol=1e-9 * np.abs(x).max())
        assert np.trace(error) <= 0.05 * trace(source) * (1 + 1e-9)
        assert np.linalg.eigvalsh(noise)[0] >= -1e-12 * np.abs(x).max()
        assert np.allclose(gain @ x @ gain.T + noise, gain @ x, atol=1e-9 * np.abs(x).max())


@pytest.fixture(scope="module")
def release() -> cpv.GaussianRelease:
    source = S.from_table(census(), sensitive="income", key=["hours", "age"])
    return Q(source, 300.0).solve().release


def test_a_frame_comes_back_whole(release: cpv.GaussianRelease) -> None:
    table = census().set_index(pd.Index(range(100, 160), name="id"))
    out = release.apply(table, seed=5)
    assert isinstance(out, pd.DataFrame)
    assert out.index.equals(table.index)
    assert out.index.name == "id"
    assert list(out.columns) == list(table.columns)
    assert out[["note", "income"]].equals(table[["note", "income"]])
    assert not np.allclose(out["age"], table["age"])
    assert release.apply(table, seed=5).equals(out)
    assert not release.apply(table, seed=6).equals(out)
    shuffled = table[["income", "hours", "note", "age"]]
    assert release.apply(shuffled, seed=5)[list(table.columns)].equals(out)
    table_before = census().set_index(pd.Index(range(100, 160), name="id"))
    assert table.equals(table_before)  # and is not written into
    plain = release.apply(table[["hours", "age"]].to_numpy(), seed=5)
    assert np.array_equal(plain, out[["hours", "age"]].to_numpy())


@pytest.mark.parametrize(
    "index",
    [pd.Index([1] * 60), pd.MultiIndex.from_arrays([range(60), ["a"] * 60])],
    ids=["repeated", "many levels"],
)
def test_any_index(release: cpv.GaussianRelease, index: pd.Index) -> None:
    out = release.apply(census().set_axis(index), seed=5)
    assert out.index.equals(index)
    assert np.array_equal(out["age"], release.apply(census(), seed=5)["age"])


def test_names_that_are_no_strings_stay_so() -> None:
    table = census().rename(columns={"age": 0, "hours": 1, "note": 2})
    source = S.from_table(table, sensitive="income", key=[1, 0])
    out = Q(source, 300.0).solve().release.apply(table, seed=5)
    assert list(out.columns) == list(table.columns) == [2, 0, "income", 1]


@pytest.mark.parametrize("flavour", ["polars", "pyarrow", "nullable", "narrow"])
def test_every_flavour_comes_back_in_its_own(release: cpv.GaussianRelease, flavour: str) -> None:
    frame = FLAVOURS[flavour](census())
    out = release.apply(frame, seed=5)
    assert type(out) is type(frame)
    names = out.column_names if flavour == "pyarrow" else list(out.columns)
    assert names == ["note", "age", "income", "hours"]
    truth = release.apply(census(), seed=5)
    assert np.allclose(np.asarray(out["age"], float), truth["age"])
    assert np.asarray(out["note"]).tolist() == census()["note"].tolist()


def test_a_generator_moves_on(release: cpv.GaussianRelease) -> None:
    values = np.ones((3, 2))
    chance = np.random.default_rng(5)
    first, second = release.apply(values, seed=chance), release.apply(values, seed=chance)
    assert np.array_equal(first, release.apply(values, seed=np.random.default_rng(5)))
    assert not np.array_equal(first, second)


def test_one_record_or_many(release: cpv.GaussianRelease) -> None:
    one = release.apply([20.0, 30.0], seed=5)
    assert one.shape == (2,)
    many = release.apply([[20.0, 30.0]], seed=5)
    assert np.array_equal(many, [one])
    assert release.apply(np.ones((0, 2)), seed=5).shape == (0, 2)
    assert len(release.apply(census().iloc[:0], seed=5)) == 0


def test_the_release_reads_w_and_z_where_the_encoder_does() -> None:
    table = census()
    source = S.from_table(table, sensitive="income", key="age", side="hours")
    both = E(source, 20.0, side_information="both", encoder="wx").solve().release
    assert (both.inputs, both.outputs) == (("income", "age", "hours"), ("age",))
    out = both.apply(table, seed=1)
    assert out.drop(columns="age").equals(table.drop(columns="age"))
    refused(lambda: both.apply(table[["age", "hours"]], seed=1), "values", "'income'")


def test_a_standardised_release_is_in_the_units_of_the_table() -> None:
    rng = np.random.default_rng(31)
    base = rng.normal(size=(20_000, 2))
    table = pd.DataFrame({"w": base.sum(axis=1) * 7 + 3, "x": base[:, 0] * 15 + 25})
    source = S.from_table(table, sensitive="w", key="x", standardize=True)
    solution = Q(source, 0.5).solve()
    released = solution.release.apply(table, seed=1)
    error = (table["x"] - released["x"]) / table["x"].std()
    assert (error**2).mean() == pytest.approx(0.5, abs=0.02)
    assert released["x"].mean() == pytest.approx(25, abs=0.5)
    with pytest.raises(cpv.InputError, match="no side information|there is none"):
        source.conditional()


REFUSED: list[tuple[Any, Any, str, Any, Any]] = [
    *(([[1.0, 2.0]], seed, "seed", UNSAID, None) for seed in (-1, "a", 1.5)),  # it may be secret
    ([[1.0]], 1, "values", UNSAID, None),
    (1.0, 1, "values", UNSAID, None),
    ([[1.0, math.nan]], 1, "values", math.nan, (0, 1)),
    ("text", 1, "values", UNSAID, None),
    (pl.from_pandas(census()).lazy(), 1, "values", UNSAID, None),
    (census().drop(columns="age"), 1, "values", "age", None),
    (census().assign(age="old"), 1, "values", "old", (0, "age")),
    (census().assign(age=[1.0, 2, 3, None] * 15), 1, "values", math.nan, (3, "age")),
]


@pytest.mark.parametrize(("values", "seed", "argument", "value", "where"), REFUSED)
def test_what_cannot_be_released(
    release: cpv.GaussianRelease, values: Any, seed: Any, argument: str, value: Any, where: Any
) -> None:
    refused(lambda: release.apply(values, seed=seed), argument, value=value, where=where)


# ---- rounded to a step ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.5, [0.25, 2.0], (8, 1e-3)])
def test_a_step_rounds_what_is_released_without_it(release: cpv.GaussianRelease, step: Any) -> None:
    table = census()
    free, rounded = (release.apply(table, seed=5, step=s) for s in (None, step))
    for name, each in zip(release.outputs, np.broadcast_to(step, 2), strict=True):
        multiples = np.rint(free[name] / each)
        assert np.array_equal(rounded[name], multiples * each)
        assert (np.abs(rounded[name] - free[name]) <= each / 2).all()
        assert rounded[name].nunique() < free[name].nunique() or each < 0.01
    others = [name for name in table if name not in release.outputs]
    assert rounded[others].equals(table[others])
    plain = table[list(release.inputs)].to_numpy()
    assert np.array_equal(release.apply(plain, seed=5, step=step), rounded[list(release.outputs)])
    one = release.apply(plain[0], seed=5, step=step)
    assert np.array_equal(one, release.apply(plain[:1], seed=5, step=step)[0])


def test_a_rounded_zero_has_no_sign() -> None:
    release = cpv.ReverseWaterFilling([4, 1], budget=1.25).solve().release
    released = release.apply(np.zeros((200, 2)), seed=1, step=50.0)
    assert not released.any()
    assert not np.signbit(released).any()


@pytest.mark.parametrize(
    ("step", "value", "where"),
    [(5e-324, 5e-324, None), (1e-17, 1e-17, None), ([1.0, 1e-15], 1e-15, 1)],
)
def test_a_step_that_rounds_nothing_is_refused(
    release: cpv.GaussianRelease, step: Any, value: float, where: int | None
) -> None:
    """It would leave the last bits as they are, or make infinities of numbers."""
    refused(lambda: release.apply(census(), seed=1, step=step), "step", value=value, where=where)


STEPS: list[tuple[Any, Any, Any]] = [
    (0.0, 0.0, None), (-1.0, -1.0, None), (math.nan, math.nan, None), (math.inf, math.inf, None),
    ([1.0, 0.0], 0.0, 1), ([1.0, -2.0], -2.0, (1,)), ([1.0], UNSAID, None),
    ([[1.0, 1.0]], UNSAID, None), ("wide", UNSAID, None), ([], UNSAID, None),
]  # fmt: skip


@pytest.mark.parametrize(("step", "value", "where"), STEPS)
@pytest.mark.parametrize("records", [60, 0])
def test_what_is_no_step(
    release: cpv.GaussianRelease, step: Any, value: Any, where: Any, records: int
) -> None:
    values = census().iloc[:records]
    refused(lambda: release.apply(values, seed=1, step=step), "step", value=value, where=where)
