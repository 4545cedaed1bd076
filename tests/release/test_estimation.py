"""The original law, estimated from what was released: closed forms, enumeration, simulation."""

from __future__ import annotations

import collections
import itertools
import math
import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chi2, norm

import cvxprivacy as cpv
from cvxprivacy import InputError
from cvxprivacy.release import estimation
from cvxprivacy.release.estimation import estimate
from cvxprivacy.tables import TableSchema
from tests.engines import KINDS, converted, pd
from tests.lengths import some_at_length
from tests.release.test_decoder import people, problem

# Asymmetric, so that a transposed channel is seen; the wide one has two outputs more than inputs.
SQUARE = np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.1, 0.6]])
WIDE = np.array([[0.6, 0.1, 0.1, 0.2, 0.0], [0.0, 0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6]])
LAW = np.array([0.5, 0.2, 0.3])


def loglik(k: np.ndarray, n: np.ndarray, p: np.ndarray) -> float:
    q, r = n / n.sum(), p @ k
    return float(q[n > 0] @ np.log(r[n > 0]))


def warner(theta: float) -> np.ndarray:
    return np.array([[theta, 1 - theta], [1 - theta, theta]])


@st.composite
def problems(draw):
    """Draw a channel of full support, at times poorly conditioned or of low rank, and counts."""
    rows = draw(st.integers(1, 5))
    columns = max(rows + draw(st.integers(-2, 3)), 1)
    k = draw(hnp.arrays(float, (rows, columns), elements=st.floats(0.01, 1)))
    n = draw(hnp.arrays(float, columns, elements=st.integers(0, 50)))
    assume(n.any())
    return k / k.sum(axis=1, keepdims=True), n


# ---- moments -----------------------------------------------------------------------------


@given(st.floats(0.55, 1), st.integers(1, 400), st.data())
def test_warners_randomised_response(theta, records, data):
    yes = data.draw(st.integers(0, records))
    outcome = estimate(warner(theta), [yes, records - yes])
    q = yes / records
    assert outcome.law[0] == pytest.approx((q - (1 - theta)) / (2 * theta - 1), abs=1e-12)
    variance = q * (1 - q) / records / (2 * theta - 1) ** 2
    assert outcome.covariance == pytest.approx(variance * np.array([[1, -1], [-1, 1]]), abs=1e-12)
    assert outcome.standard_errors == pytest.approx([math.sqrt(variance)] * 2, abs=1e-9)
    assert outcome.method == "moment"
    assert outcome.gap is None
    assert outcome.records == records


@pytest.mark.parametrize("k", [SQUARE, WIDE])
@pytest.mark.parametrize("method", ["moment", "em"])
def test_the_exact_released_law_gives_the_original(k, method):
    outcome = estimate(k, LAW @ k * 1e6, method=method)
    assert outcome.law == pytest.approx(LAW, abs=1e-7)
    if len(k) == k.shape[1]:  # the trap: p solves pK = q, not Kp = q
        assert np.abs(np.linalg.solve(k, LAW @ k) - LAW).max() > 0.03


@pytest.mark.parametrize("k", [SQUARE, WIDE])
def test_moments_are_unbiased_over_every_table(k):
    records, q = 4, LAW @ k
    mean, second, text = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
    for n in itertools.product(range(records + 1), repeat=k.shape[1]):
        if sum(n) != records:
            continue
        ways = math.factorial(records) / math.prod(map(math.factorial, n))
        chance = ways * float(np.prod(q ** np.array(n)))
        outcome = estimate(k, n)
        mean += chance * outcome.law
        second += chance * np.outer(outcome.law, outcome.law)
        text += chance * outcome.covariance
    assert mean == pytest.approx(LAW, abs=1e-12)
    true = second - np.outer(mean, mean)
    assert text == pytest.approx(true * (records - 1) / records, abs=1e-12)


@pytest.mark.parametrize("method", ["moment", "em"])
def test_an_output_split_at_random_says_nothing_new(method):
    n = np.array([50.0, 30, 20, 10, 40])
    full = estimate(WIDE, n, method=method)
    parts = np.c_[WIDE[:, :1] * 0.3, WIDE[:, :1] * 0.7, WIDE[:, 1:], np.zeros(3)]
    split = estimate(parts, [12, 38, *n[1:], 0], method=method)
    assert split.law == pytest.approx(full.law, abs=1e-10)
    assert split.covariance == pytest.approx(full.covariance, abs=1e-10)


# ---- maximum likelihood ------------------------------------------------------------------


@given(problems(), st.integers(1, 30), st.data())
def test_the_gap_bounds_the_shortfall(problem, iterations, data):
    k, n = problem
    best = estimate(k, n, method="em")
    assert best.gap <= 1e-9
    assert (best.law >= 0).all()
    assert best.law.sum() == pytest.approx(1, abs=1e-12)
    other = data.draw(hnp.arrays(float, len(k), elements=st.floats(0.001, 1)))
    other /= other.sum()
    assert loglik(k, n, other) <= loglik(k, n, best.law) + best.gap + 1e-12
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():  # EM alone, cut short
        patch.setattr(estimation, "_interior", lambda k, q: np.full(len(k), 1 / len(k)))
        warnings.simplefilter("ignore")
        early = estimate(k, n, method="em", iterations=iterations)
        later = estimate(k, n, method="em", iterations=iterations + 1)
    assert loglik(k, n, best.law) - loglik(k, n, early.law) <= early.gap + 1e-12
    assert loglik(k, n, early.law) <= loglik(k, n, later.law) + 1e-9  # what is trimmed: ≤ 1e-9


def test_em_alone_comes_to_the_same_law(monkeypatch):
    n = np.array([50.0, 30, 20, 10, 40])
    wanted = estimate(WIDE, n, method="em")
    monkeypatch.setattr(estimation, "_interior", lambda k, q: np.full(len(k), 1 / len(k)))
    with pytest.warns(UserWarning, match="after 1 EM steps") as warned:
        step = estimate(WIDE, n, method="em", iterations=1)
    posterior = WIDE / WIDE.sum(axis=0)  # p(x | x̂) if p is even
    assert step.law == pytest.approx(posterior @ n / n.sum(), abs=1e-12)
    assert step.gap > 1e-9
    assert warned[0].filename == __file__
    outcome = estimate(WIDE, n, method="em", tolerance=1e-13)
    assert outcome.law == pytest.approx(wanted.law, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_em_against_a_conic_solver(seed):
    generator = np.random.default_rng(seed)
    rows, columns = generator.integers(2, 9, 2)
    k = generator.dirichlet(np.full(columns, 0.5), rows)
    n = generator.multinomial(200, generator.dirichlet(np.full(columns, 0.7)))
    p = cp.Variable(rows, nonneg=True)
    recorded = n > 0
    value = (n[recorded] / 200) @ cp.log(p @ k[:, recorded])
    best = cp.Problem(cp.Maximize(value), [cp.sum(p) == 1]).solve(solver=cp.CLARABEL)
    outcome = estimate(k, n, method="em")
    assert loglik(k, n, outcome.law) == pytest.approx(best, abs=1e-6)
    assert loglik(k, n, outcome.law) >= best - outcome.gap - 1e-7  # the solver's own tolerance


def test_a_share_at_zero_has_no_error_and_the_others_are_given_it():
    n = [40, 1, 59]  # fewer of letter 1 than the others alone would turn into it
    assert estimate(SQUARE, n).law[1] < 0
    outcome, without = estimate(SQUARE, n, method="em"), [0, 2]
    alone = estimate(SQUARE[without], n, method="em")
    assert outcome.law[1] == 0
    assert outcome.law[without] == pytest.approx(alone.law, abs=1e-9)
    assert np.isnan(outcome.covariance[1]).all()
    assert np.isnan(outcome.covariance[:, 1]).all()
    assert outcome.covariance[np.ix_(without, without)] == pytest.approx(alone.covariance, abs=1e-9)
    assert "1 shares at zero" in str(outcome)


def test_a_sure_letter_among_several_has_no_error_either():
    moment = estimate(warner(0.8), [95, 5])
    assert moment.law == pytest.approx([1.25, -0.25], abs=1e-12)  # nothing is clipped
    assert "1 shares below zero" in str(moment)
    outcome = estimate(warner(0.8), [95, 5], method="em")
    assert outcome.law.tolist() == [1, 0]
    assert np.isnan(outcome.standard_errors).all()
    assert "chosen among many" not in str(outcome)
    assert estimate([[0.5, 0.5]], [3, 4], method="em").standard_errors.tolist() == [0]


def test_the_information_is_the_likelihoods_curvature():
    n = np.array([70.0, 60, 50, 40, 80])
    outcome = estimate(WIDE, n, method="em")
    basis, step = np.array([[1, -1, 0], [0, 1, -1.0]]), 1e-4  # moves that keep the sum

    def at(move: np.ndarray) -> float:
        return n.sum() * loglik(WIDE, n, outcome.law + move @ basis * step)

    e = np.eye(2)
    curvature = np.array(
        [[at(a + b) - at(a - b) - at(b - a) + at(-a - b) for a in e] for b in e]
    ) / (4 * step**2)  # fmt: skip
    wanted = basis.T @ np.linalg.inv(-curvature) @ basis
    assert outcome.covariance == pytest.approx(wanted, rel=1e-4)


# ---- what the released law does not determine --------------------------------------------


def test_equal_rows_are_told_apart_by_nobody():
    k = SQUARE[[0, 0, 2]]
    with pytest.raises(InputError, match=r"rank is 2 where \|X\| = 3.*use method=\"em\"") as caught:
        estimate(k, [50, 20, 30])
    assert caught.value.value == 2
    outcome = estimate(k, [50, 20, 30], method="em")
    merged = estimate(k[1:], [50, 20, 30], method="em")
    assert outcome.law[:2].sum() == pytest.approx(merged.law[0], abs=1e-7)
    assert np.isnan(outcome.standard_errors[:2]).all()
    assert outcome.standard_errors[2] == pytest.approx(merged.standard_errors[1], rel=1e-6)
    assert "2 shares chosen among many" in str(outcome)


def test_fewer_outputs_than_inputs():
    with pytest.raises(InputError, match="rank is 2"):
        estimate(SQUARE[:, :2] / SQUARE[:, :2].sum(axis=1, keepdims=True), [3, 4])
    outcome = estimate([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]], [60, 40], method="em")
    assert outcome.law @ [0.8, 0.2, 0.5] == pytest.approx(0.6, abs=1e-7)
    assert np.isnan(outcome.covariance).all()
    nothing = estimate(np.full((3, 2), 0.5), [1, 2], method="em")
    assert np.isnan(nothing.standard_errors).all()
    assert nothing.gap < 1e-13
    # only x = 0 never releases the third output
    sure = estimate([[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]], [40, 60, 0], method="em")
    assert sure.law == pytest.approx([1, 0, 0], abs=1e-9)


def test_a_rare_output_that_was_not_seen_tells_nothing():
    rare = [[1 - 1e-6, 1e-6], [1, 0]]
    with pytest.raises(InputError, match="rank is 1"):
        estimate(rare, [100, 0])
    assert estimate(rare, [100, 1]).law.sum() == pytest.approx(1)
    k = np.array([[0, 1e-241, 1.0], [0.5, 0, 0.5], [1, 1e-315, 1e-164]])
    assert estimate(k, [1e-135, 0, 1e-20], method="em").law.sum() == pytest.approx(1)


# ---- simulation --------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("k", "method"), [(SQUARE, "moment"), (WIDE, "moment"), (WIDE, "em")])
def test_coverage_bias_and_bootstrap(k, method):
    runs, records = 600, 1500
    tables = np.random.default_rng(20).multinomial(records, LAW @ k, size=runs)
    values = [estimate(k, n, method=method) for n in tables]
    laws = np.array([e.law for e in values])
    errors = np.array([e.standard_errors for e in values])
    # the intervals of 95 % hold the truth as often as they say
    hits = (np.abs(laws - LAW) <= norm.ppf(0.975) * errors).mean(axis=0)
    assert np.abs(hits - 0.95).max() < 4 * math.sqrt(0.95 * 0.05 / runs)
    # no bias that so many runs would show
    true = estimate(k, records * (LAW @ k), method=method).covariance
    z = (laws.mean(axis=0) - LAW) / np.sqrt(true.diagonal() / runs)
    assert np.abs(z).max() < 4
    # and the covariance is that of the runs: χ² for each variance, and for a whole move
    for move in (*np.eye(3), np.array([1, -2, 0.5])):
        ratio = (laws @ move).var(ddof=1) / (move @ true @ move) * (runs - 1)
        assert chi2.ppf(1e-4, runs - 1) < ratio < chi2.ppf(1 - 1e-4, runs - 1)


# ---- invariance and input ----------------------------------------------------------------


@given(problems(), st.randoms(use_true_random=False), st.floats(0.01, 100))
def test_order_and_scale_do_not_matter(problem, shuffle, scale):
    k, n = problem
    rows, columns = list(range(len(k))), list(range(k.shape[1]))
    shuffle.shuffle(rows)
    shuffle.shuffle(columns)
    one = estimate(k, n, method="em")
    two = estimate(k[rows][:, columns], scale * n[columns], method="em")
    assert loglik(k, n, one.law) == pytest.approx(loglik(k[rows], n, two.law), abs=1e-9)
    assert two.records == pytest.approx(scale * one.records)
    if np.linalg.svd(k, compute_uv=False).min() > 1e-2 and len(k) <= k.shape[1]:
        a, b = estimate(k, n), estimate(k[rows][:, columns], scale * n[columns])
        assert b.law == pytest.approx(a.law[rows], abs=1e-9)
        assert b.covariance * scale == pytest.approx(a.covariance[np.ix_(rows, rows)], abs=1e-8)


@given(
    hnp.arrays(float, (3, 3), elements=st.one_of(st.just(0.0), st.floats(0, 1))),
    hnp.arrays(float, 3, elements=st.one_of(st.just(0.0), st.floats(1e-15, 1e15))),
    st.sampled_from(["moment", "em"]),
)
def test_anything_goes_or_is_refused(k, n, method):
    total = k.sum(axis=1, keepdims=True)
    assume((total > 1e-300).all())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            outcome = estimate(k / total, n, method=method, iterations=50)
        except InputError:
            return
        assert np.isfinite(outcome.law).all()
        assert len(str(outcome).splitlines()) >= 5


def test_letters_and_their_table():
    letters = [("no", 1), "yes", None]
    outcome = estimate(SQUARE, [30, 50, 20], letters=letters)
    frame = outcome.to_frame()
    assert frame.index.tolist() == letters
    assert frame.columns.tolist() == ["share", "standard error", "count"]
    assert frame["share"].tolist() == outcome.law.tolist()
    assert frame["count"].sum() == pytest.approx(100)
    assert repr(outcome) == "Estimate(moment, 3 letters, 100 records)"
    assert str(outcome).startswith(repr(outcome))
    assert estimate(SQUARE, [30, 50, 20]).letters == [0, 1, 2]
    many = estimate(np.eye(500), np.ones(500), method="em")
    assert len(str(many).splitlines()) < 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrix": SQUARE[0]}, "matrix: shape"),
        ({"matrix": SQUARE.T}, r"matrix\[0\]: the row sums to 1.05"),
        ({"matrix": -SQUARE}, "negative"),
        ({"counts": [1, -1, 2]}, r"counts\[1\]: -1.0 is negative"),
        ({"counts": [1, math.nan, 2]}, "not finite"),
        ({"counts": [0, 0, 0]}, "no mass"),
        ({"counts": [1e308, 1e308, 0]}, "out of range"),
        ({"counts": [1, 2]}, r"shape \(2,\); pass 3 numbers"),
        ({"counts": [[1, 2, 3]]}, "shape"),
        ({"letters": ["a", "b"]}, "letters: 2 labels"),
        ({"letters": ["a", "b", "a"]}, "distinct"),
        ({"method": "bayes"}, "method: 'bayes' is unknown"),
        ({"method": "em", "tolerance": -1}, "tolerance"),
        ({"method": "em", "iterations": 0}, "iterations"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        estimate(**{"matrix": SQUARE, "counts": [5, 6, 7], **arguments})


@pytest.mark.parametrize("method", ["moment", "em"])
def test_records_that_the_channel_cannot_have_released(method):
    with pytest.raises(InputError, match=r"counts\[2\]: 7 records.*never releases") as caught:
        estimate([[0.5, 0.5, 0], [0.1, 0.9, 0]], [5, 6, 7], method=method)
    assert caught.value.where == 2


# ---- released tables -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", some_at_length(KINDS, 3))
def test_a_released_table_is_counted_by_its_engine(kind):
    """Of key columns, and of letters u that a decoder reads."""
    for case in ("both", "decoder"):
        channel = problem(side_information=case).solve().channel
        released = channel.apply(people(3000), seed=5)
        u, (key, *more) = channel.decoder is not None, channel.schema.key
        letters = released["U"] if u else zip(released[key], released[more[0]], strict=True)
        counts = collections.Counter(letters)
        outcome = channel.estimate(converted(kind, released), method="em")
        assert outcome.records == 3000
        assert outcome.letters == channel.inputs
        for expected in (counts, [counts[y] for y in channel.outputs]):
            assert outcome.law == pytest.approx(
                channel.estimate(expected, method="em").law, abs=1e-12
            )


def test_what_the_channel_has_not_released_is_refused():
    options = {"inputs": "ab", "outputs": "ab"}
    frame = pd.DataFrame({"x": ["a", "b", "c"]})
    for weights in (None, "weight"):
        schema = TableSchema(key=("x",), weights=weights)
        channel = cpv.Channel(warner(0.9), schema=schema, **options)
        for released in ({"c": 1}, frame, frame[[]], 5, pd.Series([3, 4])):
            with pytest.raises(InputError) as caught:
                channel.estimate(released)
            assert caught.value.argument == "released"
