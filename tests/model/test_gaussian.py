"""Gaussian sources: exact moments of tables, ranks in rationals, and what is no covariance."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cvxprivacy as cpv
from cvxprivacy.model.matrices import rationals
from cvxprivacy_verifier import matrices as verified
from cvxprivacy_verifier.covariance_proof import semidefinite
from tests.formulations.gaussian import LN2, Q, S, check
from tests.refusals import UNSAID, refused


def test_rank_is_decided_in_rationals() -> None:
    """A column that is a sum but for the last place is no sum."""
    for k in (20, 60, 200):
        tiny = Fraction(1, 2**k)
        law = [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 2 + tiny]]
        near = S(law, sensitive=[2], key=[0, 1, 3])
        assert near.basis == (0, 1, 2)
        law[3][3] = 2
        assert S(law, sensitive=[2], key=[0, 1, 3]).basis == (0, 1)


TWO = [[1.0, 0.5], [0.5, 1.0]]


def source_of(law: Any = TWO, **options: Any) -> cpv.GaussianSource:
    return S(law, **{"sensitive": [0], "key": [1], **options})


NAN = math.nan
REFUSED: list[tuple[dict[str, Any], str, Any, Any]] = [
    ({"law": [[1.0, 0.5], [0.25, 1.0]]}, "covariance", 0.5, (0, 1)),
    ({"law": [[1, 2], [2, 1]]}, "covariance", -1.0, None),
    ({"law": [[0, 1], [1, 1]]}, "covariance", UNSAID, None),
    ({"law": [[-1.0, 0.0], [0.0, 1.0]]}, "covariance", -1.0, (0, 0)),
    *(
        ({"law": [[1.0, v], [v, 1.0]]}, "covariance", v, (0, 1))
        for v in (math.nan, math.inf, -math.inf)
    ),
    *(
        ({"law": law}, "covariance", UNSAID, None)
        for law in ([], [[]], [1, 2], [[1, 2], [3]], np.ones((2, 3)), "ab", None, {"a": 1}, 1.0)
    ),
    ({"law": np.ones((2, 2, 2))}, "covariance", UNSAID, None),
    ({"law": [[1, 0], ["a", 1]]}, "covariance", "a", (1, 0)),
    ({"law": [[1, 0], [10**400, 1]]}, "covariance", UNSAID, (1, 0)),
    ({"law": np.diag([1.0, 0.0])}, "key", UNSAID, None),
    *(({"sensitive": [v]}, "sensitive", v, None) for v in (7, "age", -1, 0.0, None)),
    *(({"sensitive": v}, "sensitive", UNSAID, None) for v in (None, 1.5, [], [0, 0])),
    *(({"key": v}, "key", UNSAID, None) for v in ([], [2], None, [1, 1])),
    *(({"side": v}, "side", UNSAID, None) for v in ([1], [0], ["q"])),
    *(({"names": v}, "names", UNSAID, None) for v in (["a"], ["a", "a"], 3)),
    *(({"mean": v}, "mean", UNSAID, None) for v in ([0], "ab")),
    ({"mean": [0, NAN]}, "mean", NAN, (1,)),
    *(({"records": v}, "records", v, None) for v in (0, 2.5, "many")),
    ({"law": np.eye(3), "sensitive": [0, 1], "key": [1, 2]}, "sensitive", UNSAID, None),
]


@pytest.mark.parametrize(("options", "argument", "value", "where"), REFUSED)
def test_what_is_no_source(options: dict[str, Any], argument: str, value: Any, where: Any) -> None:
    refused(lambda: source_of(**options), argument, value=value, where=where)


def test_an_asymmetry_names_both_entries_and_rounding_is_none() -> None:
    with pytest.raises(cpv.InputError, match=r"0.5 at \(0, 1\).*0.25 at \(1, 0\)"):
        source_of([[1.0, 0.5], [0.25, 1.0]])
    source_of([[1.0, 0.5], [0.5 * (1 + 1e-14), 1.0]])


@pytest.mark.parametrize("value", [1, -1, 1.5, NAN, "a", 1j, None])
def test_what_is_no_correlation_or_deviation(value: Any) -> None:
    refused(lambda: S.scalar(value), "rho", value=value)
    if value is not None:
        refused(lambda: S.scalar(0.5, rho_xz=value), "rho_xz", value=value)
    value = {1: 0, 1.5: math.inf}.get(value, value)  # which are deviations
    for name in ("sigma_w", "sigma_x"):
        refused(lambda name=name: S.scalar(0.5, **{name: value}), name, value=value)


def test_numbers_and_places_may_be_numpys() -> None:
    for rho in (np.float64(0.5), np.float32(0.5), Fraction(1, 2)):
        assert S.scalar(rho).exact[0][1] == Fraction(1, 2)
    assert source_of(sensitive=np.array([0]), key=np.array([1])).w == (0,)
    assert source_of(sensitive=np.int64(0), key=np.int64(1)).x == (1,)
    assert source_of(np.eye(3), sensitive=[1], key=[1, 2]).w == (1,)  # W may be part of X


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        np.matrix,
        pd.DataFrame,
        lambda law: np.array(law, np.float32),
        lambda law: [list(map(np.float32, row)) for row in law],
        lambda law: [np.array(row) for row in law],
        lambda law: tuple(map(tuple, law)),
        lambda law: [[Fraction(v) for v in row] for row in law],
        lambda law: np.array([[Fraction(v) for v in row] for row in law]),
        lambda law: pd.DataFrame(law, columns=["w", "x"], index=["w", "x"]),
    ],
)
def test_a_covariance_may_come_in_any_kind_of_array(make: Callable[[Any], Any]) -> None:
    source = source_of(make(TWO))
    assert source.exact == ((1, Fraction(1, 2)), (Fraction(1, 2), 1))
    assert all(type(v) is Fraction for row in source.exact for v in row)


def census(size: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(12)
    table = pd.DataFrame(rng.integers(-30, 50, (size, 3)), columns=["age", "hours", "income"])
    table["income"] += 2 * table["age"]
    table["note"] = [f"n{i}" for i in range(size)]
    return table[["note", "age", "income", "hours"]]


FLAVOURS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda t: t,
    "polars": pl.from_pandas,
    "lazy": lambda t: pl.from_pandas(t).lazy(),
    "pyarrow": lambda t: pa.Table.from_pandas(t, preserve_index=False),
    "nullable": lambda t: t.convert_dtypes(),
    "narrow": lambda t: t.astype({"age": "int8", "hours": "int8"}),
}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_moments_of_whole_numbers_are_exact(flavour: str) -> None:
    table = census()
    source = S.from_table(
        FLAVOURS[flavour](table), sensitive="income", key=["age", "hours"], side=None
    )
    names = ["income", "age", "hours"]
    assert source.names == tuple(names)
    assert source.records == len(table)
    data = table[names].to_numpy()
    assert np.allclose(source.covariance, np.cov(data, rowvar=False), rtol=1e-12)
    assert np.allclose(source.mean, data.mean(axis=0))
    size = len(data)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            one, two = ([Fraction(v) for v in table[n].tolist()] for n in (a, b))
            product = sum(u * v for u, v in zip(one, two, strict=True))
            assert source.exact[i][j] == (product - sum(one) * sum(two) / size) / (size - 1)


def test_columns_are_named_by_anything_that_names_them() -> None:
    table = census().rename(columns={"age": 0, "income": 1})
    source = S.from_table(table, sensitive=1, key=[0, "hours"])
    assert source.names == ("1", "0", "hours")
    assert S.from_table(table, sensitive=[1], key=(0,)).x == (1,)
    same = S.from_table(census(), sensitive="age", key=["age", "hours"])
    assert same.w == (0,)
    assert same.x == (0, 1)


def test_shrinkage_keeps_the_total_variance_and_shrinks() -> None:
    sklearn = pytest.importorskip("sklearn.covariance")
    table = census(12)
    data = table[["income", "age", "hours"]].to_numpy(float)
    plain = np.cov(data, rowvar=False)
    for name, kind in (("ledoit-wolf", sklearn.LedoitWolf), ("oas", sklearn.OAS)):
        source = S.from_table(table, sensitive="income", key=["age", "hours"], shrinkage=name)
        assert math.isclose(np.trace(source.covariance), np.trace(plain), rel_tol=1e-12)
        ratio = source.covariance[0, 1] / plain[0, 1]
        assert math.isclose(ratio, 1 - kind().fit(data).shrinkage_, rel_tol=1e-9)
        assert np.ptp(np.linalg.eigvalsh(source.covariance)) < np.ptp(np.linalg.eigvalsh(plain))
        check(Q(source, 50.0).solve())
    for bad in ("lw", True, 0.1):
        refused(
            lambda b=bad: S.from_table(table, sensitive="income", key="age", shrinkage=b),
            "shrinkage", repr(bad), "ledoit-wolf",
        )  # fmt: skip


TABLES: list[tuple[Callable[[Any], Any], str, Any]] = [
    (lambda t: t.assign(age=1), "'age'", None),
    (lambda t: t.assign(age="old"), "'age'.*String", None),
    (lambda t: t.assign(age=t.age > 3), "'age'.*Boolean", None),
    (lambda t: t.assign(age=pd.Timestamp("2020-01-01")), "'age'.*Datetime", None),
    (lambda t: t.assign(age=t.age.astype("category")), "'age'.*Categorical", None),
    (lambda t: t.drop(columns="age"), "'age'.*note, income, hours", None),
    (lambda t: t.iloc[:1], "1 records", None),
    (lambda t: t.iloc[:0], "0 records", None),
    (lambda t: t.assign(age=[math.inf, *t.age[1:]]), "not finite", None),
    (lambda t: t.to_numpy(), "ndarray", None),
    (lambda t: t.to_dict("list"), "dict", None),
    (lambda t: None, "NoneType", None),
    (lambda t: t.assign(age=t.age.where(t.index != 7)), "missing.*'age'", 7),
    (lambda t: pl.from_pandas(t.assign(age=t.age.where(t.index != 7))), "missing.*'age'", 7),
    (lambda t: t.assign(age=t.age.where(t.index != 7)).convert_dtypes(), "missing.*'age'", 7),
]


@pytest.mark.parametrize(("change", "text", "where"), TABLES)
def test_tables_without_moments(change: Callable[[Any], Any], text: str, where: Any) -> None:
    with pytest.raises(cpv.InputError, match=text) as caught:
        S.from_table(change(census()), sensitive="income", key=["age", "hours"])
    assert (caught.value.argument, caught.value.where) == ("frame", where)


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        ({"sensitive": ["age", "income"], "key": ["age", "hours"]}, "altogether"),
        ({"sensitive": "income", "key": ["age", "age"]}, "twice"),
        ({"sensitive": "income", "key": ["age"], "side": "age"}, "side"),
        ({"sensitive": [], "key": ["age"]}, "no column"),
    ],
)
def test_columns_in_two_roles(roles: dict[str, Any], text: str) -> None:
    with pytest.raises(cpv.InputError, match=text):
        S.from_table(census(), **roles)


def test_what_a_source_says_of_itself() -> None:
    table = census()
    table["sum"] = table["age"] + table["hours"]
    source = S.from_table(table, sensitive="income", key=["age", "hours", "sum"])
    assert repr(source) == "GaussianSource(W: 1, X: 3 of rank 2, 60 records)"
    assert "Z: 1" in repr(S.scalar(0.5, rho_xz=0.5))
    problem = Q(source, 100.0)
    assert "rank 2" in repr(problem)
    assert r"\min_{\Sigma}" in problem.latex
    text = str(problem.solve())
    assert "need not be Gaussian" in text or "Gaussian variables" in text
    with pytest.raises(AttributeError, match="release"):
        _ = problem.solve().channel


def test_information_is_that_of_the_formula() -> None:
    for rho in (0.0, 0.3, -0.99):
        for units, per in (("nats", 1.0), ("bits", LN2)):
            truth = -0.5 * math.log(1 - rho**2) / per
            assert math.isclose(S.scalar(rho).information(units=units), truth, abs_tol=1e-14)


def test_the_source_given_z_is_exact() -> None:
    law = [[Fraction(v) for v in row] for row in ([3, 1, 1], [1, 2, 1], [1, 1, 1])]
    value = S(law, sensitive=[0], key=[1], side=[2], mean=[1, 2, 3]).conditional()
    assert value.exact == ((2, 0), (0, 1))
    assert value.mean.tolist() == [1, 2]
    assert value.names == ("V0", "V1")


@pytest.mark.parametrize("over", [4e-10, 2.0**-52, Fraction(1, 10**30)])
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


def test_two_entries_that_differ_by_rounding_have_their_mean_in_any_order() -> None:
    a, b = 0.5, math.nextafter(0.5, 1)
    one, two = (S([[1, p], [q, 1]], sensitive=[0], key=[1]) for p, q in ((a, b), (b, a)))
    assert one.exact == two.exact
    assert one.exact[0][1] == (Fraction(a) + Fraction(b)) / 2


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
    columns = {n: [Fraction(v) for v in table[n].tolist()] for n in names}
    for i, one in enumerate(names):
        for j, two in enumerate(names):
            total = sum(map(lambda u, v: u * v, columns[one], columns[two]))
            others = sum(columns[one]) * sum(columns[two]) / size
            assert source.exact[i][j] == (total - others) / (size - 1)
    assert len(source.basis) == 2
    unit = S.from_table(table, sensitive="w", key=names[1:], standardize=True)
    assert len(unit.basis) == 2
    assert np.allclose(unit.covariance.diagonal(), 1, rtol=1e-14)
    for i, s in enumerate(unit.scale.tolist()):
        assert unit.exact[i][0] * Fraction(s) * Fraction(float(unit.scale[0])) == source.exact[i][0]
    shrunk = S.from_table(table[["w", "b", "c"]], sensitive="w", key=["b", "c"], shrinkage="oas")
    assert len(shrunk.basis) == 2


def test_decimals_of_a_table_are_decimals() -> None:
    texts = {"w": ["0.1", "0.2", "0.4"], "a": ["0.1", "0.3", "0.9"], "b": ["0.2", "0.5", "1.3"]}
    table = pl.DataFrame({n: [Decimal(v) for v in texts[n]] for n in texts})
    source = S.from_table(table, sensitive="w", key=["a", "b"])
    assert source.exact[0][1] == Fraction(19, 300)
    assert source.names == ("w", "a", "b")


def test_a_grid_may_have_points_of_z() -> None:
    law = S([[4, 1, 1.2], [1, 1, 0.5], [1.2, 0.5, 9]], sensitive=[0], key=[1], side=[2],
            mean=[1, 2, 3], names=["W", "X", "Z"])  # fmt: skip
    grid = law.discretise(41, 6, z_points=3)
    assert grid.names == ("W", "X", "Z")
    assert grid.z == pytest.approx([3 - 27**0.5, 3, 3 + 27**0.5])
    w, x, z = (np.array(axis) for axis in (grid.w, grid.x, grid.z))
    assert (w[20], x[20]) == pytest.approx((1, 2))
    values = np.stack(np.meshgrid(w, x, z, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = grid.pmf.ravel()
    mean = mass @ values
    assert mean == pytest.approx([1, 2, 3], abs=1e-6)
    assert (values - mean).T @ (mass[:, None] * (values - mean)) == pytest.approx(
        law.covariance, abs=1e-5
    )
    for order, moment in ((4, 3), (5, 0)):  # of N(0, 1)
        assert mass @ ((values[:, 2] - 3) / 3) ** order == pytest.approx(moment, abs=1e-9)
    value = law.conditional()  # W and X at each z have one covariance
    for k in range(3):
        at = grid.pmf[:, :, k] / grid.pmf[:, :, k].sum()
        spread = at.sum(axis=0) @ x**2 - (at.sum(axis=0) @ x) ** 2
        assert spread == pytest.approx(value.covariance[1, 1], abs=1e-6)
        assert at.sum(axis=0) @ x == pytest.approx(2 + 0.5 / 9 * (z[k] - 3), abs=1e-6)
    plain = law.discretise(9, 3)
    assert (plain.z, plain.names) == (None, ("W", "X"))
    for wrong in (-1, 2.5):
        with pytest.raises(cpv.InputError):
            law.discretise(9, z_points=wrong)  # type: ignore[arg-type]
    with pytest.raises(cpv.InputError, match="Z"):
        S.scalar(0.5).discretise(9, z_points=3)


def test_a_covariance_of_which_it_is_undecided_is_refused_as_that(monkeypatch: Any) -> None:
    monkeypatch.setattr(verified, "PATIENT", 1)
    law = [[1, 1], [1, 1]]
    error = refused(lambda: S(law, sensitive=[0], key=[1]), "covariance", "undecided")
    assert "indefinite" not in str(error)
    factor = float(str(error).split("diagonal times ")[1].split(";")[0])
    assert S([[factor, 1], [1, factor]], sensitive=[0], key=[1]).w == (0,)
    # how far one is from semidefinite takes no determinant that patience alone would compute
    over = Fraction(1, 10**30)
    law = [[1, 1 + over], [1 + over, 1]]
    refused(lambda: S(law, sensitive=[0], key=[1]), "covariance", "indefinite")


def test_correlated_variables_that_balls_of_few_bits_cannot_decide_are_definite() -> None:
    # of ρ^|i−j| no eigenvalue is below (1 − ρ)/(1 + ρ), .0526 for ρ = .9
    for rho, size in ((0.9, 120), (0.99, 100)):
        places = np.arange(size)
        law = rho ** np.abs(places[:, None] - places)
        assert S(law, sensitive=[0], key=[*range(1, size)]).basis == tuple(range(size - 1))
    law[0, 1] = law[1, 0] = 1.0001  # a correlation above 1
    refused(lambda: S(law, sensitive=[0], key=[*range(1, size)]), "covariance", "indefinite")
