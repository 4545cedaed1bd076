"""Entropies and informations against numbers worked by hand, plain loops and identities."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import cvxprivacy as cpv
from cvxprivacy.model.information import (
    conditional_entropy,
    divergence,
    entropy,
    miller_madow,
    mutual_information,
    nat,
)

MASS = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
# Of A and B: A = 0 is certain if B = 0, and a fair coin if B = 1; B is a fair coin.
SKEW = [[0.5, 0.25], [0.0, 0.25]]


def joints(rows: int = 4, columns: int = 4) -> st.SearchStrategy[np.ndarray]:
    shapes = st.tuples(st.integers(1, rows), st.integers(1, columns))
    arrays = shapes.flatmap(lambda shape: hnp.arrays(float, shape, elements=MASS))
    return arrays.filter(lambda a: a.sum() > 0)


def laws(size: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(float, size, elements=MASS).filter(lambda a: a.sum() > 0)


def h(*p: float) -> float:
    return -sum(q * math.log2(q) for q in p if q > 0)


# ---- numbers known beforehand ------------------------------------------------------------


def test_entropy_by_hand():
    assert entropy([1 / 8] * 8) == pytest.approx(3.0, abs=1e-14)
    assert entropy([0.5, 0.25, 0.125, 0.125]) == pytest.approx(1.75, abs=1e-14)
    assert entropy([0.25, 0.75]) == pytest.approx(2 - 0.75 * math.log2(3), abs=1e-14)
    assert entropy([[0.25, 0.25], [0.25, 0.25]]) == pytest.approx(2.0, abs=1e-14)
    assert entropy([0, 1, 0]) == 0.0
    assert math.copysign(1.0, entropy([1])) == 1.0


def test_counts_are_read_as_the_law_they_make():
    assert entropy([6, 2]) == pytest.approx(entropy([0.75, 0.25]), abs=1e-14)
    assert mutual_information([[40, 10], [10, 40]]) == pytest.approx(1 - h(0.2, 0.8), abs=1e-14)
    assert divergence([3, 1], [10, 30]) == pytest.approx(0.5 * math.log2(3), abs=1e-14)


def test_divergence_by_hand_in_both_directions():
    assert divergence([0.5, 0.5], [0.25, 0.75]) == pytest.approx(1 - 0.5 * math.log2(3), abs=1e-14)
    assert divergence([0.25, 0.75], [0.5, 0.5]) == pytest.approx(0.75 * math.log2(3) - 1, abs=1e-14)
    assert divergence([1, 0], [0.25, 0.75]) == pytest.approx(2.0, abs=1e-14)
    assert divergence([0.25, 0.75], [1, 0]) == math.inf


def test_conditional_entropy_is_of_rows_given_columns():
    assert conditional_entropy(SKEW) == pytest.approx(0.5, abs=1e-14)
    assert conditional_entropy(np.transpose(SKEW)) == pytest.approx(
        0.75 * h(2 / 3, 1 / 3), abs=1e-14
    )


def test_mutual_information_by_hand():
    assert mutual_information(SKEW) == pytest.approx(h(0.75, 0.25) - 0.5, abs=1e-14)
    assert mutual_information(np.eye(5)) == pytest.approx(math.log2(5), abs=1e-14)
    erasure = 0.5 * np.array([[0.7, 0.3, 0.0], [0.0, 0.3, 0.7]])
    assert mutual_information(erasure) == pytest.approx(0.7, abs=1e-14)
    assert mutual_information([[0.1, 0.2, 0.7]]) == pytest.approx(0.0, abs=1e-15)
    assert 0.0 <= mutual_information(np.outer([0.05, 0.35, 0.6], [1 / 3, 1 / 6, 1 / 2])) <= 1e-15


def test_miller_madow_by_hand():
    # 4 occupied cells, 2 occupied rows, 2 occupied columns, 10 records
    table = [[3, 1, 0], [2, 4, 0], [0, 0, 0]]
    assert miller_madow(table, units="nats") == pytest.approx(1 / 20, abs=1e-15)
    assert miller_madow(table) == pytest.approx(1 / (20 * math.log(2)), abs=1e-15)
    # 5 cells, 2 rows, 3 columns, 7 records
    assert miller_madow([[1, 2, 1], [0, 1, 2]], units="nats") == pytest.approx(1 / 14, abs=1e-15)
    # a function of the other has less plug-in information than it should, on average
    assert miller_madow([[2, 0], [0, 3]], units="nats") == pytest.approx(-1 / 10, abs=1e-15)


def test_miller_madow_is_what_independent_pairs_show_on_average():
    rng = np.random.default_rng(7)
    law = np.outer([0.2, 0.3, 0.5], [0.25, 0.25, 0.3, 0.2]).ravel()
    tables = rng.multinomial(2000, law, size=400).reshape(-1, 3, 4)
    average = np.mean([mutual_information(t, units="nats") for t in tables])
    assert average == pytest.approx(miller_madow(tables[0], units="nats"), rel=0.1)


# ---- identities --------------------------------------------------------------------------


@settings(max_examples=60)
@given(joints())
def test_mutual_information_is_a_sum_over_cells(joint):
    p = joint / joint.sum()
    total = sum(
        p[i, j] * math.log2(p[i, j] / (p[i].sum() * p[:, j].sum()))
        for i, j in np.argwhere(p > 0).tolist()
    )
    assert mutual_information(joint) == pytest.approx(total, abs=1e-12)
    assert mutual_information(joint) >= -1e-12


@settings(max_examples=60)
@given(joints())
def test_mutual_information_is_symmetric_and_below_both_entropies(joint):
    information = mutual_information(joint)
    assert information == pytest.approx(mutual_information(joint.T), abs=1e-12)
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    assert information <= min(entropy(rows), entropy(columns)) + 1e-12
    assert information == pytest.approx(divergence(joint, np.outer(rows, columns)), abs=1e-12)


@settings(max_examples=60)
@given(joints())
def test_chain_rule(joint):
    p = joint / joint.sum()
    mean = sum(
        p[:, j].sum() * h(*(p[:, j] / p[:, j].sum())) for j in range(p.shape[1]) if p[:, j].any()
    )
    assert conditional_entropy(joint) == pytest.approx(mean, abs=1e-12)
    assert entropy(joint) == pytest.approx(entropy(p.sum(axis=0)) + mean, abs=1e-12)
    assert mutual_information(joint) == pytest.approx(entropy(p.sum(axis=1)) - mean, abs=1e-12)


@settings(max_examples=60)
@given(joints(columns=5), st.integers(0, 4), st.integers(0, 4))
def test_merging_letters_never_reveals_more(joint, one, other):
    one, other = one % joint.shape[1], other % joint.shape[1]
    if one == other:
        return
    merged = np.delete(joint, other, axis=1)
    merged[:, one - (other < one)] += joint[:, other]
    assert mutual_information(merged) <= mutual_information(joint) + 1e-12


@settings(max_examples=60)
@given(joints(), st.floats(0.05, 0.95))
def test_splitting_a_letter_at_random_changes_nothing(joint, share):
    split = np.hstack([joint[:, :1] * share, joint[:, :1] * (1 - share), joint[:, 1:]])
    assert mutual_information(split) == pytest.approx(mutual_information(joint), abs=1e-12)


@settings(max_examples=60)
@given(st.integers(1, 5).flatmap(lambda n: st.tuples(laws(n), laws(n))))
def test_gibbs_inequality(pair):
    p, q = pair
    assert divergence(p, p) == 0.0
    assert divergence(p, q) >= -1e-12
    assert math.isinf(divergence(p, q)) == bool(((q == 0) & (p > 0)).any())
    uniform = np.ones(len(p))
    assert divergence(p, uniform) == pytest.approx(math.log2(len(p)) - entropy(p), abs=1e-12)


@settings(max_examples=40)
@given(joints())
def test_a_nat_is_1_44_bits(joint):
    ln2 = 0.693147180559945309
    for quantity in (entropy, conditional_entropy, mutual_information, miller_madow):
        bits, nats = quantity(joint, units="bits"), quantity(joint, units="nats")
        assert nats == pytest.approx(bits * ln2, rel=1e-12, abs=1e-12)
        assert quantity(joint) == bits
    p = joint.sum(axis=1)
    bits, nats = (divergence(p, np.ones(len(p)), units=u) for u in ("bits", "nats"))
    assert nats == pytest.approx(bits * ln2, abs=1e-12)


# ---- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-0.25, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("quantity", "argument"),
    [(entropy, "pmf"), (conditional_entropy, "joint"), (mutual_information, "joint")],
)
def test_a_broken_mass_is_named(quantity, argument, value):
    with pytest.raises(cpv.InputError) as caught:
        quantity([[0.5, 0.25], [0.25, value]])
    assert caught.value.argument == argument
    assert caught.value.where == (1, 1)
    assert str(caught.value).startswith(f"{argument}[1, 1]: {value!r} ")
    assert "nonnegative" in str(caught.value)


@pytest.mark.parametrize(
    ("quantity", "arguments", "message"),
    [
        *[(entropy, (empty,), "^pmf.*positive") for empty in ([0.0, 0.0], [], [[0.0], [0.0]])],
        *[(quantity, (bad,), r"^joint.*\(\|A\|, \|B\|\)")
          for quantity in (mutual_information, conditional_entropy)
          for bad in ([0.5, 0.5], np.ones((2, 2, 2)), 1.0)],
        *[(miller_madow, (bad,), "^counts") for bad in (
            [3, 1], [[0, 0], [0, 0]], [[math.nan, 1], [1, 1]], [[3, -1], [1, 1]], [[math.inf, 1]])],
        *[(quantity, (bad,), "^(pmf|joint)")
          for quantity in (entropy, conditional_entropy, mutual_information)
          for bad in (["a", "b"], [[1.0, 2.0], [3.0]])],
        (divergence, ([-1, 2], [1, 1]), r"^p\[0\]: -1\.0 "),
        (divergence, ([1, 1], [1, math.nan]), r"^q\[1\]: nan "),
        (divergence, ([1, 1], [1, 1, 1]), r"^q.*\(3,\).*\(2,\)"),
    ],
)  # fmt: skip
def test_what_is_no_law_is_refused(quantity, arguments, message):
    with pytest.raises(cpv.InputError, match=message):
        quantity(*arguments)


@pytest.mark.parametrize("units", ["bit", "Nats", "", None, 2])
def test_units_are_bits_or_nats(units):
    for call in (
        lambda: nat(units),
        lambda: entropy([1, 1], units=units),
        lambda: divergence([1, 1], [1, 1], units=units),
        lambda: conditional_entropy(SKEW, units=units),
        lambda: mutual_information(SKEW, units=units),
        lambda: miller_madow([[1, 1]], units=units),
    ):
        with pytest.raises(cpv.InputError) as caught:
            call()
        assert caught.value.argument == "units"
        assert repr(units) in str(caught.value)
        assert '"bits" or "nats"' in str(caught.value)


@pytest.mark.parametrize("seed", range(6))
def test_masses_whose_products_are_no_floats(seed):
    """Against the definition in 400 digits: of laws with masses from 1e-300 to 1."""
    rng = np.random.default_rng(seed)
    law = 10.0 ** rng.uniform(-300, 0, (3, 3)) * (rng.random((3, 3)) < 0.7) + np.diag([1, 0, 0])
    law[1, 1] = 1e-170
    law /= law.sum()
    with mpmath.workdps(400):
        p = [[mpmath.mpf(x) for x in row] for row in law.tolist()]
        total = mpmath.fsum(map(mpmath.fsum, p))
        p = [[x / total for x in row] for row in p]
        w, x = [mpmath.fsum(row) for row in p], [mpmath.fsum(c) for c in zip(*p, strict=True)]
        terms = [[a * mpmath.log(a / (w[i] * x[j]), 2) if a else mpmath.mpf(0)
                  for j, a in enumerate(row)] for i, row in enumerate(p)]  # fmt: skip
        exact = float(mpmath.fsum(map(mpmath.fsum, terms)))
        surprise = [float(mpmath.fsum(c) / x[j]) if x[j] else math.nan
                    for j, c in enumerate(zip(*terms, strict=True))]  # fmt: skip
    source = cpv.DiscreteSource(law)
    for value in (cpv.information.mutual_information(law), source.information(),
                  cpv.information.sibson_information(law, 1),
                  cpv.leakage.MutualInformation().total(law) / math.log(2)):  # fmt: skip
        assert value == pytest.approx(exact, rel=1e-11, abs=1e-16)
    for measured in (cpv.one_symbol.i1(law), cpv.one_symbol.i2(law), cpv.one_symbol.i3(law)):
        there = law.sum(axis=0) > 0
        mean = measured[there] @ law.sum(axis=0)[there]
        assert mean == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert cpv.one_symbol.i1(law) == pytest.approx(surprise, rel=1e-9, abs=1e-15, nan_ok=True)
    assert np.isfinite(cpv.one_symbol.i4(law)[law.sum(axis=0) > 0]).all()


def test_a_pair_that_hardly_ever_differs():
    law = [[1e-170, 0], [0, 1]]
    assert cpv.information.mutual_information(law) == pytest.approx(
        1e-170 * math.log2(1e170), rel=0.01
    )
    assert cpv.information.sibson_information(law, 2) == pytest.approx(2e-85 / math.log(2))
    assert cpv.information.divergence([1, 1], [1, 5e-324]) == 536  # ½ log₂ ½ + ½ log₂ 2¹⁰⁷³
    assert cpv.information.mutual_information([[1e308, 1e308], [1e308, 0]]) == pytest.approx(
        cpv.information.mutual_information([[1, 1], [1, 0]])
    )
    assert cpv.information.mutual_information([[5e-324, 0], [0, 5e-324]]) == 1
    for least in (1e-170, 5e-324):  # of two values told apart, however rare one is
        assert cpv.leakage.measures([least, 1], np.eye(2))["chi-squared"] == pytest.approx(1)


def test_the_iteration_of_blahut_and_arimoto_does_not_leave_the_floats():
    """An output that is worth nothing loses its mass step by step, down to the least float."""
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25)
    d = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    rates, least = [], 1.0
    for _ in range(3000):
        channel = q * 2.0 ** (-0.7 * d)
        channel /= channel.sum(axis=1, keepdims=True)
        q = p @ channel
        if 0 < q.min() < 1e-300:
            rates.append(cpv.information.mutual_information(p[:, None] * channel))
        least = min(least, q.min())
    assert least < 1e-322
    budget = float(p @ (channel * d).sum(axis=1))
    best = cpv.PrivacyDistortion(cpv.DiscreteSource.identical(p), d, budget).solve()
    assert rates == pytest.approx([best.value] * len(rates), abs=1e-6)
