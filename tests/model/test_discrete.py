"""Sources: from a pmf, from counts, from a table, a Gaussian grid, and W = X."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import cvxprivacy as cpv
from cvxprivacy import exact
from tests import refusals

LAW = np.array([[0.1, 0.2, 0.3], [0.05, 0.15, 0.2]])
CUBE = np.arange(24.0).reshape(2, 3, 4)


# ---- from a pmf --------------------------------------------------------------------------


def test_rows_are_w_and_columns_are_x():
    source = cpv.DiscreteSource(LAW)
    assert source.p_w == pytest.approx([0.6, 0.4])
    assert source.p_x == pytest.approx([0.15, 0.35, 0.5])
    assert source.pmf == pytest.approx(LAW)
    assert source.joint == pytest.approx(LAW)
    assert (source.w, source.x, source.z) == ([0, 1], [0, 1, 2], None)
    assert source.names == ("W", "X")
    assert source.records is None
    assert source.bias() is None


def test_the_third_axis_is_z():
    source = cpv.DiscreteSource(CUBE / CUBE.sum(), w="ab", x="pqr", z="stuv")
    assert source.p_w == pytest.approx([66 / 276, 210 / 276])
    assert source.p_x == pytest.approx([60 / 276, 92 / 276, 124 / 276])
    assert source.joint == pytest.approx(CUBE.sum(axis=2) / 276)
    assert (source.w, source.x, source.z) == (list("ab"), list("pqr"), list("stuv"))
    assert source.names == ("W", "X", "Z")


def test_entropy_and_information_by_hand():
    source = cpv.DiscreteSource([[0.25, 0.25, 0.0], [0.0, 0.0, 0.5]])
    assert source.entropy() == pytest.approx(1.0, abs=1e-14)
    assert source.information() == pytest.approx(1.0, abs=1e-14)
    assert source.entropy(units="nats") == pytest.approx(math.log(2), abs=1e-14)
    assert source.information(units="nats") == pytest.approx(math.log(2), abs=1e-14)
    skew = cpv.DiscreteSource([[0.25, 0.0], [0.25, 0.5]])
    assert skew.entropy() == pytest.approx(2 - 0.75 * math.log2(3), abs=1e-14)
    assert skew.information() == pytest.approx(1.5 - 0.75 * math.log2(3), abs=1e-14)


def test_information_is_of_w_and_x_whatever_z_says():
    cube = np.zeros((2, 2, 2))
    cube[0, 0, 0] = cube[0, 1, 1] = cube[1, 0, 1] = cube[1, 1, 0] = 0.25  # z = w xor x
    assert cpv.DiscreteSource(cube).information() == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("off", [1e-10, -1e-10, 9e-10])
def test_a_rounded_sum_is_divided_out(off):
    source = cpv.DiscreteSource([[0.5, 0.25], [0.125, 0.125 + off]])
    assert abs(source.pmf.sum() - 1) < 1e-15
    assert source.p_w.sum() == pytest.approx(1.0, abs=1e-15)
    assert source.p_x[0] == pytest.approx(0.625 / (1 + off), abs=1e-15)


@pytest.mark.parametrize("off", [1e-8, -1e-8, 2e-9, -0.1, 99.0])
def test_a_sum_off_1_is_refused(off):
    with pytest.raises(cpv.InputError) as caught:
        cpv.DiscreteSource([[0.5, 0.25], [0.125, 0.125 + off]])
    assert caught.value.argument == "pmf"
    assert caught.value.value == pytest.approx(1 + off, abs=1e-12)
    assert repr(caught.value.value) in str(caught.value)
    assert "normalise" in caught.value.remedy
    assert "from_counts" in caught.value.remedy


@pytest.mark.parametrize(
    ("value", "word"),
    [(-0.1, "negative"), (math.nan, "finite"), (math.inf, "finite"), (-math.inf, "-inf")],
)
@pytest.mark.parametrize("where", [(0, 0), (1, 2)])
def test_a_broken_probability_is_named(value, word, where):
    law = LAW.copy()
    law[where] = value
    with pytest.raises(cpv.InputError) as caught:
        cpv.DiscreteSource(law)
    assert caught.value.argument == "pmf"
    assert caught.value.where == where
    assert str(caught.value).startswith(f"pmf[{where[0]}, {where[1]}]: {value!r} ")
    assert word in str(caught.value)
    assert "nonnegative" in str(caught.value)


NEGATIVE = CUBE / CUBE.sum()
NEGATIVE[1, 2, 3] = -0.5


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (NEGATIVE, r"^pmf\[1, 2, 3\]: -0\.5 "),
        *[(law, rf"^pmf: shape {re.escape(str(np.shape(law)))}.*\(\|W\|, \|X\|\)")
          for law in ([0.5, 0.5], 1.0, [[]], np.zeros((2, 0, 3)), np.full((1, 1, 1, 1), 1.0))],
        ("law", "^pmf: not numbers"),
        ([["a", "b"]], r"^pmf\[0, 0\]: 'a' is no number"),
        ([[0.5], [0.25, 0.25]], "^pmf: not numbers .*inhomogeneous"),
        (np.zeros((2, 2)), "^pmf: no mass"),
    ],
)  # fmt: skip
def test_what_is_no_law_is_refused(law, message):
    with pytest.raises(cpv.InputError, match=message):
        cpv.DiscreteSource(law)


# ---- labels ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *[({axis: list("abcde")}, rf"^{axis}: 5 labels; pass {size}")
          for axis, size in (("w", 2), ("x", 3), ("z", 4))],
        ({"x": ["a", "b", "a"]}, r"^x\[2\]: 'a' labels letters 0 and 2.*distinct"),
        ({"w": [["a"], ["b"]]}, "^w"),
        ({"names": ("income",)}, "^names.*pass 3"),
        ({"names": "income"}, "^names.*pass 3"),
        *[({"records": bad}, f"^records: {bad!r}")
          for bad in (0, -3, 2.5, math.nan, math.inf, "many")],
    ],
)  # fmt: skip
def test_labels_names_and_records_fit_the_law(options, message):
    with pytest.raises(cpv.InputError, match=message):
        cpv.DiscreteSource(CUBE / CUBE.sum(), **options)


def test_labels_of_an_axis_that_is_not_there():
    with pytest.raises(cpv.InputError, match="^z.*three axes"):
        cpv.DiscreteSource(LAW, z=["a"])
    assert cpv.DiscreteSource(LAW, names=("income", "age")).names == ("income", "age")


def test_repr_says_sizes_and_records():
    text = repr(cpv.DiscreteSource(LAW, names=("income", "age"), records=12_000))
    for piece in ("income: 2", "age: 3", "12,000 records"):
        assert piece in text
    assert "records" not in repr(cpv.DiscreteSource(LAW))


# ---- from counts -------------------------------------------------------------------------


def test_counts_are_kept_exactly():
    source = cpv.DiscreteSource.from_counts([[3, 0, 1], [2, 4, 0]], w="ab", x="pqr")
    assert source.records == 10
    assert source.law.tolist() == [[3, 0, 1], [2, 4, 0]]
    assert source.pmf.tolist() == [[0.3, 0.0, 0.1], [0.2, 0.4, 0.0]]
    assert source.p_w == pytest.approx([0.4, 0.6], abs=1e-15)
    assert (source.w, source.x) == (list("ab"), list("pqr"))
    assert source.bias(units="nats") == pytest.approx((4 - 2 - 3 + 1) / 20, abs=1e-15)


SHORT = "fewer cells occur than values of both less one"


@pytest.mark.parametrize("size", [2, 5])
def test_a_negative_bias_is_put_into_words(size):
    """W = X: the plug-in is H of the empirical law, expected to be (n − 1)/2N nats too low."""
    diagonal = cpv.DiscreteSource.from_counts(np.diag(np.full(size, 30)))
    off = (size - 1) / (2 * 30 * size) / math.log(2)
    assert diagonal.bias() == pytest.approx(-off)
    assert f"too low by about {off:.2g} (Miller–Madow), as {SHORT}" in str(diagonal)
    assert "is small-sample bias" not in str(diagonal)
    few = cpv.DiscreteSource.from_counts(np.diag(np.full(size, 3)))
    (note,) = few.noted(units="nats")
    assert (
        f"may be mostly bias, of which Miller and Madow's formula tells nothing, as {SHORT}" in note
    )
    assert "0.0000" not in note


def test_a_positive_bias_is_said_to_be_one():
    source = cpv.DiscreteSource.from_counts([[30, 20], [20, 30]])  # 4 cells, 4 values: just +1/2N
    assert "of which about 0.0072 is small-sample bias (Miller–Madow)" in str(source)
    (note,) = cpv.DiscreteSource.from_counts([[3, 2], [2, 3]]).notes
    assert "may be mostly bias, which Miller and Madow's formula understates with so few" in note
    chance = cpv.DiscreteSource.from_counts([[100, 101], [101, 100]])  # many, and no dependence
    assert chance.biased
    (note,) = chance.notes
    assert "no dependence beyond chance is visible" in note
    assert not source.biased
    none = cpv.DiscreteSource.from_counts([[30, 20], [0, 30]])  # 3 cells, 4 values: 0
    assert none.bias() == 0
    assert SHORT not in str(none)


def test_counts_of_three_axes():
    source = cpv.DiscreteSource.from_counts(CUBE, z="stuv", names=("a", "b", "c"))
    assert source.records == 276
    assert source.z == list("stuv")
    assert source.names == ("a", "b", "c")
    assert source.joint.tolist() == CUBE.sum(axis=2).tolist()
    assert source.bias(units="nats") == pytest.approx((6 - 2 - 3 + 1) / (2 * 276), abs=1e-15)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, 2], [3, 1.5]], r"^counts\[1, 1\]: 1\.5 is not a count.*whole"),
        ([[1, 2], [-3, 1]], r"^counts\[1, 0\]: -3\.0 is negative"),
        ([[1, math.nan]], r"^counts\[0, 1\]: nan"),
        ([[math.inf, 1]], r"^counts\[0, 0\]: inf"),
        ([[0, 0]], "^counts: no mass"),
        ([1, 2], r"^counts: shape \(2,\)"),
        ([["a", "b"]], r"^counts\[0, 0\]: 'a' is no number"),
        ([[0.4, 0.1], [0.1, 0.4]], r"^counts\[0, 0\]: 0\.4 is not a count.*pmf"),
    ],
)
def test_what_is_no_count_is_refused(counts, message):
    with pytest.raises(cpv.InputError, match=message):
        cpv.DiscreteSource.from_counts(counts)


@pytest.mark.parametrize(
    ("counts", "where", "value"),
    [
        ([[1e308, 1e308]], (0, 0), 1e308),
        ([[1, 2.0**53 + 2]], (0, 1), 2.0**53 + 2),
        ([[1], [2**53 + 1]], (1, 0), 2**53 + 1),
        (np.array([[1, 2**53 + 1]]), (0, 1), 2**53 + 1),
        (np.array([[2**53 + 1], [1]], dtype=np.uint64), (0, 0), 2**53 + 1),
        ([[Fraction(2**54 + 1), 1]], (0, 0), Fraction(2**54 + 1)),
        ([[1, Decimal(2**53 + 1)]], (0, 1), Decimal(2**53 + 1)),
    ],
)
def test_counts_beyond_what_floats_count_are_refused(counts, where, value):
    with pytest.raises(
        cpv.InputError, match=r"is more than 2\*\*53; scale the table down"
    ) as caught:
        cpv.DiscreteSource.from_counts(counts)
    assert caught.value.argument == "counts"
    assert (caught.value.where, caught.value.value) == (where, value)


def test_records_are_added_up_exactly():
    counts = [[2**53, 2**53 - 1], [1, 0]]
    assert cpv.DiscreteSource.from_counts(counts).records == 2**54
    counts = [[2**53, *[1] * 999]]  # in floats every 1 is lost
    assert cpv.DiscreteSource.from_counts(counts).records == 2**53 + 999


# ---- exact numbers -----------------------------------------------------------------------

THIRDS = [[Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 4), Fraction(1, 4)]]


def test_fractions_are_kept_exactly():
    source = cpv.DiscreteSource(THIRDS)
    assert source.law.tolist() == [[4, 2], [3, 3]]
    assert source.pmf == pytest.approx(np.array(THIRDS, float), abs=1e-16)
    assert source.records is None
    decimals = cpv.DiscreteSource([[Decimal("0.1"), Decimal("0.2")], [Decimal("0.7"), 0]])
    assert decimals.law.tolist() == [[1, 2], [7, 0]]
    frame = pd.DataFrame({"a": [Decimal("0.1")], "b": [Decimal("0.9")]}, index=["w"])
    assert cpv.DiscreteSource(frame).law.tolist() == [[1, 9]]
    assert cpv.DiscreteSource.identical([Fraction(1, 3)] * 3).law.tolist() == np.eye(3).tolist()


def test_what_floats_hold_stays_as_it_is():
    law = [[Fraction(1, 2), 0.25], [Decimal("0.125"), np.float32(0.125)]]
    assert cpv.DiscreteSource(law).law.tolist() == [[0.5, 0.25], [0.125, 0.125]]
    assert cpv.DiscreteSource([[1, 0], [0, False]]).law.tolist() == [[1, 0], [0, 0]]
    assert cpv.DiscreteSource.from_counts([[Fraction(3), Decimal(4)]]).law.tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("law", "where"),
    [
        ([[Fraction(1, 3**40), 1 - Fraction(1, 3**40)]], (0, 0)),
        ([[Fraction(1, 3), 0.1], [Fraction(1, 3), Fraction(7, 30)]], (0, 1)),
        (
            [[Fraction(1, 2), Fraction(1, 2) - Fraction(1, 10**18)], [Fraction(1, 10**18), 0]],
            (0, 1),
        ),
        ([[Decimal("1e-3000"), 1]], (0, 0)),
        ([[1, Decimal("1e-99999999999")]], (0, 1)),
    ],
)
def test_numbers_that_floats_would_round_are_refused(law, where):
    with pytest.raises(cpv.InputError) as caught:
        cpv.DiscreteSource(law)
    assert (caught.value.argument, caught.value.where) == ("pmf", where)
    assert caught.value.value == law[where[0]][where[1]]
    assert "round" in caught.value.remedy


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_of_other_classes_are_plain_ones():
    law = np.matrix([[0.5, 0.25], [0.125, 0.125]])
    assert type(cpv.DiscreteSource(law).law) is np.ndarray
    masked = np.ma.array([[5, 2], [1, 1]], mask=[[False, True], [False, False]])
    with pytest.raises(cpv.InputError, match=r"^counts\[0, 1\]: nan is out of range"):
        cpv.DiscreteSource.from_counts(masked)
    assert type(cpv.DiscreteSource.from_counts(masked.filled(3)).law) is np.ndarray


def test_a_law_is_a_copy_of_what_was_typed():
    typed = np.array([[0.5, 0.25], [0.125, 0.125]])
    typed.flags.writeable = False
    law = cpv.DiscreteSource(typed).law
    typed.flags.writeable = True
    typed[0, 0] = 9.0
    assert law[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        law[0, 0] = 0.0
    part = typed[:1]
    part.flags.writeable = False  # of what may be written to
    kept = exact.array(part)
    typed[0, 0] = 7.0
    assert kept[0, 0] == 9.0


@pytest.mark.parametrize("value", [10**400, Decimal("sNaN"), pd.NA, "a", Fraction(10**400, 7)])
def test_what_is_no_number_is_named_with_its_place(value):
    for table in ([[1, 2], [value, 1]], pd.DataFrame({"a": [1, value], "b": [2, 1]}, dtype=object)):
        with pytest.raises(
            cpv.InputError, match=r"^counts\[1, 0\]: .* is (no number|out of range)"
        ):
            cpv.DiscreteSource.from_counts(table)


def test_exact_numbers_are_checked_like_floats():
    for law, text in (
        ([[Fraction(1, 3), Fraction(1, 3)]], r"^pmf: the entries sum to 0\.6666.*from_counts"),
        ([[Fraction(4, 3), Fraction(-1, 3)]], r"^pmf\[0, 1\]: -0\.333.* is negative"),
        ([[Decimal("NaN"), 1]], r"^pmf\[0, 0\]: nan is not finite"),
        ([[1e308, 1e308]], "^pmf: the entries sum to inf"),
    ):
        with pytest.raises(cpv.InputError, match=text):
            cpv.DiscreteSource(law)
    with pytest.raises(cpv.InputError, match=r"^counts\[0, 1\]: 1/2 is not a count"):
        cpv.DiscreteSource.from_counts([[1, Fraction(1, 2)]])


# ---- from a frame ------------------------------------------------------------------------

COUNTS = pd.DataFrame([[3, 0, 1], [2, 4, 0]], index=["ill", "well"], columns=[1, 2, 3])


def test_a_pandas_frame_brings_its_labels():
    for source in (cpv.DiscreteSource.from_counts(COUNTS), cpv.DiscreteSource(COUNTS / 10)):
        assert (source.w, source.x) == (["ill", "well"], [1, 2, 3])
        assert source.names == ("W", "X")
        assert source.pmf == pytest.approx(COUNTS.to_numpy() / 10)
    named = COUNTS.rename_axis(index="health", columns="rooms")
    assert cpv.DiscreteSource.from_counts(named).names == ("health", "rooms")
    half = COUNTS.rename_axis(columns="rooms")
    assert cpv.DiscreteSource.from_counts(half).names == ("W", "rooms")
    problem = cpv.PrivacyDistortion(
        cpv.DiscreteSource.from_counts(named), cpv.ordinal([1, 2, 3]), budget=0.3
    )
    released = problem.solve().channel.apply([1, 2, 3] * 10, seed=1)
    assert set(released) <= {1, 2, 3}


def test_labels_that_are_given_win():
    source = cpv.DiscreteSource.from_counts(COUNTS, x=list("pqr"), names=("a", "b"))
    assert (source.w, source.x, source.names) == (["ill", "well"], list("pqr"), ("a", "b"))
    source = cpv.DiscreteSource(COUNTS / 10, w=[0, 1])
    assert (source.w, source.x) == ([0, 1], [1, 2, 3])
    for refused, message in (
        (lambda: cpv.DiscreteSource.from_counts(COUNTS, x=list("pq")), "^x: 2 labels; pass 3"),
        (lambda: cpv.DiscreteSource.from_counts(COUNTS, column_names="ab"), "^column_names: unkn"),
        (lambda: cpv.DiscreteSource.from_counts(COUNTS.set_axis(["i", "i"])), r"^w\[1\]: 'i' lab"),
    ):
        with pytest.raises(cpv.InputError, match=message):
            refused()


def test_a_crosstab_of_several_columns():
    people = cpv.datasets.load_bezzi().assign(sex=list("mfmmmmmfffff"))
    counted = pd.crosstab(people["diagnosis"], [people["height"], people["sex"]])
    source = cpv.DiscreteSource.from_counts(counted)
    table = cpv.DiscreteSource.from_table(people, sensitive="diagnosis", key=["height", "sex"])
    assert (source.w, source.x, source.names) == (table.w, table.x, table.names)
    assert source.law.tolist() == table.law.tolist()
    counted.columns.names = ["height", None]
    assert cpv.DiscreteSource.from_counts(counted).names == ("diagnosis", "X")


def test_a_frame_that_only_counts_has_no_labels():
    source = cpv.DiscreteSource(pd.DataFrame(LAW))
    assert (source.w, source.x, source.names) == ([0, 1], [0, 1, 2], ("W", "X"))
    part = pd.DataFrame(np.arange(9).reshape(3, 3)).loc[1:, 1:]  # still labels: 1 and 2
    source = cpv.DiscreteSource.from_counts(part)
    assert (source.w, source.x) == ([1, 2], [1, 2])


@pytest.mark.parametrize("flavour", ["polars", "pyarrow"])
def test_a_frame_without_an_index(flavour):
    module = pytest.importorskip(flavour, reason="the extra `tables` is not installed")
    make = module.DataFrame if flavour == "polars" else module.table
    source = cpv.DiscreteSource.from_counts(make({"30": [3, 2], "40": [0, 4]}))
    assert (source.w, source.x, source.names) == ([0, 1], ["30", "40"], ("W", "X"))
    assert source.law.tolist() == [[3, 0], [2, 4]]
    law = {"health": ["ill", "well"], "30": [0.3, 0.2], "40": [0.1, 0.4]}
    source = cpv.DiscreteSource(make(law))
    assert (source.w, source.x) == (["ill", "well"], ["30", "40"])
    assert source.names == ("health", "X")
    assert source.law.tolist() == [[0.3, 0.1], [0.2, 0.4]]
    with pytest.raises(cpv.InputError, match=r"^counts\[1, 0\]: 9007199254740993 is more"):
        cpv.DiscreteSource.from_counts(make({"30": [3, 2**53 + 1], "40": [0.0, 4.0]}))
    exact = make({"30": [Decimal("0.1"), Decimal("0.2")], "40": [Decimal("0.3"), Decimal("0.4")]})
    assert cpv.DiscreteSource(exact).law.tolist() == [[1, 3], [2, 4]]


# ---- from a distribution -----------------------------------------------------------------


class Distribution:
    """Stands in for a ``dit.Distribution``."""

    def __init__(self, law, names=None, alphabet=None, log=False):
        self.outcomes, self.pmf = tuple(law), np.array(list(law.values()))
        self.names, self.log = names, log
        if alphabet is not None:
            self.alphabet = alphabet

    def get_rv_names(self):
        return self.names

    def is_log(self):
        return self.log

    def copy(self, base):
        assert base == "linear"
        return Distribution(dict(zip(self.outcomes, 2.0**self.pmf, strict=True)), self.names)


def test_a_distribution_of_two_variables_is_taken_whole():
    law = {"0b": 0.25, "0a": 0.25, "1a": 0.5}
    source = cpv.DiscreteSource(Distribution(law, ("W", "key"), [("0", "1"), ("a", "b", "c")]))
    assert (source.w, source.x, source.names) == (["0", "1"], ["a", "b", "c"], ("W", "key"))
    assert source.law.tolist() == [[0.25, 0.25, 0], [0.5, 0, 0]]
    recorded = cpv.DiscreteSource(Distribution(law))
    assert (recorded.x, recorded.names) == (["b", "a"], ("W", "X"))
    logs = {k: math.log2(p) for k, p in law.items()}
    assert cpv.DiscreteSource(Distribution(logs, log=True)).law.tolist() == recorded.law.tolist()
    named = cpv.DiscreteSource(Distribution(law), w=["no", "yes"], names=("ill", "age"))
    assert (named.w, named.names) == (["no", "yes"], ("ill", "age"))


def test_a_distribution_of_three_variables_has_z():
    law = {(1, "a", True): 0.25, (0, "b", False): 0.75}
    source = cpv.DiscreteSource(
        Distribution(law, ("w", "x", "z"), [(0, 1), ("a", "b"), (False, True)])
    )
    assert (source.w, source.x, source.z) == ([0, 1], ["a", "b"], [False, True])
    assert source.names == ("w", "x", "z")
    assert source.law[1, 0, 1] == 0.25
    assert source.law[0, 1, 0] == 0.75


@pytest.mark.parametrize("law", [{"0": 0.5, "1": 0.5}, {1: 0.5, 2: 0.5}, {"0000": 1.0}, {}])
def test_other_distributions_are_refused(law):
    with pytest.raises(cpv.InputError, match="pass one of 2 or 3: see its marginal") as caught:
        cpv.DiscreteSource(Distribution(law))
    assert caught.value.argument == "pmf"


# ---- a Gaussian grid ---------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.8, -0.5, 0.0])
def test_the_grid_samples_the_bivariate_density(rho):
    source = cpv.DiscreteSource.gaussian(rho, points=5, span=2.0)
    assert source.w == source.x == [-2.0, -1.0, 0.0, 1.0, 2.0]
    inverse = np.linalg.inv([[1.0, rho], [rho, 1.0]])
    points = np.array([[(w, x) for x in source.x] for w in source.w])
    density = np.exp(-0.5 * np.einsum("wxi,ij,wxj->wx", points, inverse, points))
    assert source.pmf == pytest.approx(density / density.sum(), abs=1e-15)


@pytest.mark.parametrize("rho", [0.7, -0.7])
def test_the_grid_has_the_sign_and_the_information_of_the_correlation(rho):
    source = cpv.DiscreteSource.gaussian(rho)
    grid = np.array(source.x)
    assert (len(grid), grid[0], grid[15], grid[-1]) == (31, -3.0, 0.0, 3.0)
    covariance = grid @ source.pmf @ grid
    assert covariance / (source.p_x @ grid**2) == pytest.approx(rho, abs=0.03)
    assert source.information() == pytest.approx(-0.5 * math.log2(1 - 0.7**2), abs=0.02)


@pytest.mark.parametrize(
    "options",
    [
        *[{"rho": bad} for bad in (1.0, -1.0, math.nan)],
        *[{"points": bad} for bad in (1, 2.5, math.nan, math.inf)],
        *[{"span": bad} for bad in (0.0, -3.0, math.inf, math.nan)],
    ],
    ids=str,
)
def test_grids_that_make_no_density_are_refused(options):
    ((argument, bad),) = options.items()
    with pytest.raises(cpv.InputError) as caught:
        cpv.DiscreteSource.gaussian(**{"rho": 0.5, **options})
    assert caught.value.argument == argument
    assert repr(bad) in str(caught.value)


# ---- W = X -------------------------------------------------------------------------------


def test_identical_reveals_everything():
    source = cpv.DiscreteSource.identical([0.5, 0.25, 0.25], x=["a", "b", "c"])
    assert source.pmf.tolist() == [[0.5, 0, 0], [0, 0.25, 0], [0, 0, 0.25]]
    assert source.w == source.x == ["a", "b", "c"]
    assert source.information() == pytest.approx(1.5, abs=1e-14)
    assert source.information() == pytest.approx(source.entropy(), abs=1e-14)


def test_what_is_made_another_way_cannot_change_either():
    counted = cpv.DiscreteSource.from_counts([[1, 2], [3, 4]])
    for source in (cpv.DiscreteSource.identical([0.5, 0.5]), counted):
        with pytest.raises(AttributeError):
            source.records = 3


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ([[0.5, 0.5]], r"^pmf: shape.*\(\|X\|,\)"),
        ([0.5, 0.4], r"^pmf: .*0\.9"),
        (["a", "b"], r"^pmf\[0\]: 'a' is no number"),
        *[([0.5, 1.0, bad], rf"^pmf\[2\]: {bad!r} ") for bad in (-0.5, math.nan, math.inf)],
    ],
)
def test_identical_takes_a_law_of_one_axis(law, message):
    with pytest.raises(cpv.InputError, match=message):
        cpv.DiscreteSource.identical(law)
    with pytest.raises(cpv.InputError, match="^x: 1 labels|^w: 1 labels"):
        cpv.DiscreteSource.identical([0.5, 0.5], x=["a"])


def test_identical_takes_the_labels_of_a_series():
    series = pd.Series([0.5, 0.25, 0.25], index=["a", "b", "c"])
    source = cpv.DiscreteSource.identical(series)
    assert source.w == source.x == ["a", "b", "c"]
    assert source.names == ("X", "X")
    assert cpv.DiscreteSource.identical(series.rename_axis("city")).names == ("city", "city")
    assert cpv.DiscreteSource.identical(series, x=[1, 2, 3]).x == [1, 2, 3]
    assert cpv.DiscreteSource.identical(series.reset_index(drop=True)).x == [0, 1, 2]
    one = cpv.DiscreteSource.identical(Distribution({"a": 0.5, "b": 0.5}))
    assert (one.x, one.law.tolist()) == (["a", "b"], [[0.5, 0], [0, 0.5]])
    with pytest.raises(cpv.InputError, match="^pmf: a distribution of 2 random variables"):
        cpv.DiscreteSource.identical(Distribution({"ab": 1.0}))


# ---- shorter floats, and sparse arrays -------------------------------------------------------


FLOATS = np.array([[0.3, 0.1], [0.1, 0.5]], np.float32)


@pytest.mark.parametrize(
    "pmf",
    [
        FLOATS, [list(row) for row in FLOATS], pd.DataFrame(FLOATS), pl.DataFrame(FLOATS),
        pa.table({"a": FLOATS[:, 0], "b": FLOATS[:, 1]}), sparse.csr_array(FLOATS),
        sparse.coo_matrix(FLOATS),
    ],
    ids=["array", "list", "pandas", "polars", "pyarrow", "csr_array", "coo_matrix"],
)  # fmt: skip
def test_a_law_of_short_floats_sums_to_1_to_their_precision(pmf):
    """They sum to 1.0000000149: scaled by that, and told."""
    source = cpv.DiscreteSource(pmf)
    assert source.law.tolist() == FLOATS.astype(float).tolist()
    (note,) = [note for note in source.notes if "divided" in note]
    assert note == "the masses sum to 1.000000015, and each is divided by that"
    assert note in str(source)
    solution = cpv.PrivacyDistortion(source, cpv.hamming(2), 0.1).solve()
    assert solution.notes == [note]
    assert solution.certificate.verify()
    exact = [[Fraction(float(x)) for x in row] for row in FLOATS]
    total = sum(map(sum, exact))
    assert source.p_x[0] == pytest.approx(float((exact[0][0] + exact[1][0]) / total), abs=1e-16)


def test_other_laws_of_short_floats_and_what_is_further_off():
    assert cpv.DiscreteSource.identical(np.array([0.3, 0.6, 0.1], np.float32)).notes
    filling = cpv.HammingWaterFilling(np.array([0.3, 0.6, 0.1], np.float32), 0.1).solve()
    assert filling.notes == ["the masses sum to 1.000000037, and each is divided by that"]
    half = np.array([[0.3, 0.1], [0.1, 0.4995]], np.float16)
    assert "0.9995117" in cpv.DiscreteSource(half).notes[-1]
    for wrong in (FLOATS.tolist(), FLOATS * np.float32(1.001), FLOATS.astype(float)):
        refusals.refused(lambda pmf=wrong: cpv.DiscreteSource(pmf), "pmf", "off 1 by more than")


def test_sparse_arrays_are_what_they_store_and_zeros():
    law = np.array([[0.3, 0.0, 0.2], [0.0, 0.5, 0.0]])
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.dok_array):
        assert cpv.DiscreteSource(kind(law)) == cpv.DiscreteSource(law)
        counts = cpv.DiscreteSource.from_counts(kind(10 * law))
        assert counts == cpv.DiscreteSource.from_counts(10 * law)
        distortion = cpv.Distortion(kind(1 - np.eye(3)))
        assert distortion == cpv.Distortion(1 - np.eye(3))
