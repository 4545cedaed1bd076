"""Information loss: hand-worked tables, the published numbers, bounds, and no NaN in a total."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial import cKDTree

from cvxprivacy_sdc.loss import categorical_loss, information_loss, probabilistic_loss
from tests.public_tables import real_folder
from tests.sdc.audits import refusal


def normal(z):
    """2 P(0 ≤ Z ≤ |z|)."""
    return math.erf(abs(z) / math.sqrt(2))


# ---- PIL by hand -------------------------------------------------------------------------

# Four records of two attributes, and a masking of them.
X = np.array([[0.0, 2.0], [2.0, 0.0], [4.0, 4.0], [6.0, 10.0]])
Y = np.array([[1.0, 1.0], [1.0, 1.0], [5.0, 7.0], [5.0, 8.0]])


def test_pil_of_a_tiny_table_by_hand():
    outcome = probabilistic_loss(X, Y)
    # means 3 and 4 against 3 and 17/4; variances: (9+1+1+9)/4 = 5, (4+16+0+36)/4 = 14
    assert outcome.means[0] == 0.0
    assert outcome.means[1] == pytest.approx(normal(0.25 / math.sqrt(14 / 4)))
    # fourth moments (81+1+1+81)/4 = 41, (16+256+0+1296)/4 = 392
    # variances after: 4 and (2·(13/4)² + (11/4)² + (15/4)²)/4 = (338+121+225)/64 = 171/16
    assert outcome.variances[0] == pytest.approx(normal((4 - 5) / math.sqrt((41 - 25) / 4)))
    after = 171 / 16
    assert outcome.variances[1] == pytest.approx(normal((after - 14) / math.sqrt((392 - 196) / 4)))
    # deviations (−3, −1, 1, 3) and (−2, −4, 0, 6): m11 = (6+4+0+18)/4 = 7
    # m22 = (36+16+0+324)/4 = 94, m13 = (24+64+0+648)/4 = 184, m31 = (54+4+0+162)/4 = 55
    # after: (−2, −2, 2, 2) and (−13, −13, 11, 15)/4: (26+26+22+30)/16 = 6.5
    spread = (94 - 49) / 4
    assert outcome.covariances[0, 1] == pytest.approx(normal((6.5 - 7) / math.sqrt(spread)))
    rho, r = 7 / math.sqrt(5 * 14), 6.5 / math.sqrt(4 * after)
    braces = (
        94 / 49 + (41 / 25 + 392 / 196 + 2 * 94 / (5 * 14)) / 4 - (55 / (7 * 5) + 184 / (7 * 14))
    )
    assert outcome.correlations[0, 1] == pytest.approx(
        normal((r - rho) / math.sqrt(rho**2 / 4 * braces))
    )
    assert outcome.correlations[0, 1] == outcome.correlations[1, 0]
    # quantiles of the first attribute: below 25 % 0, at 25 % 1, to 50 % 2, at it 3, then 4, 5, 6;
    # masked: 1 up to 50 %, there 3, then 5.  ε = 0.006; a quantile between records has density 0
    first = outcome.quantiles[:, 0]
    density = 1 / 4 / 0.012
    for i, q in enumerate(np.arange(1, 20) / 20):
        z = density / math.sqrt(q * (1 - q) / 4)
        if round(20 * q) % 5 == 0:
            assert first[i] == 0.0  # at 1/4 and 3/4 the density is 0, at 1/2 nothing has changed
        else:
            assert first[i] == pytest.approx(normal(1 * z)), q
    assert outcome.parts["PIL(mean)"] == pytest.approx(outcome.means.mean())
    assert outcome.parts["PIL(cov)"] == outcome.covariances[0, 1]
    assert outcome.total == pytest.approx(20 * sum(outcome.parts.values()))


def test_a_sample_of_another_size():
    outcome = probabilistic_loss(X[:, :1], Y[:1, :1])  # one record: 1
    assert outcome.means[0] == pytest.approx(normal(2 / math.sqrt(5 / 1)))
    assert outcome.variances[0] == pytest.approx(normal(5 / math.sqrt(16 / 1)))
    assert list(outcome.parts) == ["PIL(Q)", "PIL(mean)", "PIL(var)"]  # no pairs


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_density_of_the_interval(share):
    """With evenly spread records the interval holds 2ε/range of them."""
    x = np.arange(100_001.0)[:, None]
    moved = x + 30.0
    outcome = probabilistic_loss(x, moved)
    q = share
    z = 30.0 / math.sqrt(q * (1 - q) / len(x)) / 100_001
    at = round(share * 20) - 1
    assert outcome.quantiles[at, 0] == pytest.approx(normal(z), rel=6e-3)
    kernel = probabilistic_loss(x[::10], moved[::10], density="kernel")
    z = 30.0 / math.sqrt(q * (1 - q) / len(x[::10])) / 100_001
    assert kernel.quantiles[at, 0] == pytest.approx(normal(z), rel=0.02)


def test_statistics_without_variance():
    constant = np.full((10, 2), 3.0)
    assert probabilistic_loss(constant, constant).total == 0.0
    outcome = probabilistic_loss(constant, constant + np.array([0, 1]))
    assert outcome.means.tolist() == [0.0, 1.0]  # another mean of what has no variance: all is lost
    assert outcome.quantiles[:, 1].tolist() == [1.0] * 19
    assert outcome.variances.tolist() == [0.0, 0.0]
    assert outcome.correlations[0, 1] == 0.0
    two = np.array([[1.0], [-1.0]] * 5)  # fourth moment = variance²: its variance has none
    assert probabilistic_loss(two, two * 1.1).variances[0] == 1.0
    assert probabilistic_loss(two, -two).variances[0] == 0.0
    straight = np.column_stack([np.arange(9.0), 2 * np.arange(9.0)])  # ρ = 1
    assert probabilistic_loss(straight, straight * [1, 3]).correlations[0, 1] == 0.0
    bent = straight.copy()
    bent[0, 1] += 1
    assert probabilistic_loss(straight, bent).correlations[0, 1] == 1.0


@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 4),
    st.sampled_from(["normal", "ties", "heavy", "constant", "huge"]),
)  # fmt: skip
@settings(max_examples=120)
def test_bounds_and_no_nan(seed, n, p, kind):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    if kind == "ties":
        x = rng.integers(0, 3, (n, p)).astype(float)
    elif kind == "heavy":
        x = rng.standard_cauchy((n, p)) * 10.0 ** rng.integers(-8, 9, p)
    elif kind == "constant":
        x[:, 0] = rng.integers(0, 2)
    elif kind == "huge":
        x = x + 1e9
    y = x if seed % 3 == 0 else x * rng.integers(0, 2, (n, p)) + rng.integers(0, 2)
    for density in ("interval", "kernel") if n > 2 and kind == "normal" else ("interval",):
        new = probabilistic_loss(x, y, density=density)
        for part in new.parts.values():
            assert 0.0 <= part <= 1.0
        assert 0.0 <= new.total <= 100.0
    old = information_loss(x, y)
    assert np.isfinite(old.to_frame().to_numpy()).all()
    assert np.isfinite(old.total)
    assert np.isfinite(old.yancey)
    assert min(old.parts.values()) >= 0.0
    if seed % 3 == 0:
        assert new.total == old.total == old.yancey == 0.0


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_pil_does_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    x = rng.gamma(1.0, size=(60, 3))
    y = x + rng.normal(size=(60, 3)) * 0.3
    scale, shift = 10.0 ** rng.integers(-3, 4, 3), rng.normal(size=3)
    one, other = probabilistic_loss(x, y), probabilistic_loss(x * scale + shift, y * scale + shift)
    for name in ("means", "variances", "covariances", "correlations"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-6)
    # the interval's ends may take a record in or leave it
    assert one.parts["PIL(Q)"] == pytest.approx(other.parts["PIL(Q)"], abs=0.02)


def test_the_frame_of_measures_by_attribute():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3))
    loss = probabilistic_loss(x, x + rng.normal(size=(50, 3)))
    frame = loss.to_frame()
    assert frame.index.tolist() == loss.columns == ["x0", "x1", "x2"]
    assert frame["PIL(var)"].tolist() == loss.variances.tolist()
    others = [(loss.covariances[0, 1] + loss.covariances[0, 2]) / 2]
    assert frame["PIL(cov)"].tolist()[:1] == pytest.approx(others)
    assert frame.mean().to_dict() == pytest.approx(loss.parts)


def with_correlations(size, seed=0):
    """Return records of a normal population: |ρ| = .98 and .95 of pairs, and .1 of others."""
    law = np.array([[1, 0.98, 0.1, 0.1], [0.98, 1, 0.1, 0.1], [0.1, 0.1, 1, -0.95],
                    [0.1, 0.1, -0.95, 1]])  # fmt: skip
    return np.random.default_rng(seed).multivariate_normal(np.zeros(4), law, size)


@pytest.mark.long
@pytest.mark.parametrize("size", [150, 1080])
def test_parts_of_a_simple_random_sample_are_uniform(size):
    """§4.1, and against Remark 4.1: pil(r) is so for |ρ| near 1, too."""
    x, rng = with_correlations(size), np.random.default_rng(1)
    drawn = [probabilistic_loss(x, x[rng.integers(0, size, size)]) for _ in range(300)]
    near, far = ([0, 2], [1, 3]), ([0, 0, 1, 1], [2, 3, 2, 3])
    parts = [("means", ...), ("variances", ...)]
    parts += [(name, at) for name in ("covariances", "correlations") for at in (near, far)]
    for name, at in parts:
        values = np.array([getattr(loss, name)[at] for loss in drawn])
        assert values.mean() == pytest.approx(0.5, abs=0.05), name
        assert (values > 0.95).mean() == pytest.approx(0.05, abs=0.025), name


def test_noise_is_no_sampling_where_attributes_are_close():
    """Remark 4.1: what it saw is due to masking, as the variance near ±1 is small, and right."""
    x, rng = with_correlations(1080), np.random.default_rng(1)
    outcome = probabilistic_loss(x, x + 0.16 * rng.normal(size=x.shape))
    assert outcome.correlations[[0, 2], [1, 3]].min() > 0.95
    assert outcome.covariances[[0, 2], [1, 3]].max() < 0.6


def test_expression_6_is_small_where_covariances_are_lost():
    """Remark 4.2: PIL(m₁₁) in [.75, 1] beside expression (6) in [0, .25]."""
    x = with_correlations(1080)[:, :3]
    y = 0.7 * x + 0.1 * np.random.default_rng(1).normal(size=x.shape)
    y[:, 2] += 0.3 * y[:, 0]
    old, new = information_loss(x, y), probabilistic_loss(x, y)
    rows, columns = np.triu_indices(3, 1)
    off = np.abs(np.corrcoef(x.T) - np.corrcoef(y.T))[rows, columns]
    assert old.parts["IL5"] / 2 == pytest.approx(off.sum() / (3 * 2))
    assert 0.75 < new.parts["PIL(cov)"] <= 1
    assert 0 < old.parts["IL5"] / 2 < 0.25


def test_half_the_l1_norm_of_densities_is_another_loss_than_pil_of_quantiles():
    """Remark 4.3: they are not equivalent; each is near 1 or above ½ where the other is small."""

    def half_l1(one, other, bins):
        shares = [np.histogram(part, bins, (-0.5, 1.5))[0] / len(part) for part in (one, other)]
        return np.abs(shares[0] - shares[1]).sum() / 2

    def pil(one, other):
        return probabilistic_loss(one[:, None], other[:, None], density="kernel").parts["PIL(Q)"]

    many, few = (np.arange(0.5, size) / size for size in (10_000, 100))
    assert half_l1(many, many + 0.02, 200) == pytest.approx(0.02, abs=1e-9)
    assert pil(many, many + 0.02) > 0.95
    teeth = np.floor(25 * few) / 25 + (few * 25 % 1) / 50  # density 2 and 0 in turn
    assert half_l1(few, teeth, 100) == pytest.approx(0.5)
    assert pil(few, teeth) < 0.2


# ---- the published numbers ---------------------------------------------------------------


@pytest.mark.real
def test_micmul3_of_table_3():
    """Mateo-Sanz et al. 2005, Table 3: all attributes at once, k = 3, and rescaled."""
    masking = pytest.importorskip("cvxprivacy_sdc.masking")
    census = pd.read_csv(real_folder("census") / "census.csv")

    def parts(masked):
        return list(probabilistic_loss(census, masked).parts.values())

    masked = masking.MDAV(k=3).fit_transform(census)
    assert parts(masked)[1:] == pytest.approx([0.0, 0.7004, 0.1846, 0.5341], abs=1e-3)
    scaled = masking.rescale(census, masked)
    assert parts(scaled)[1:] == pytest.approx([0.0, 0.0, 0.3631, 0.5341], abs=1e-3)
    three = masking.MDAV(k=7, groups=3).fit_transform(census)
    assert parts(three)[1:] == pytest.approx([0.0, 0.4403, 0.3022, 0.3309], abs=2e-3)  # ties
    swapped = parts(masking.RankSwapping(7, random_state=0).fit_transform(census))
    assert swapped[:3] == [0.0, 0.0, 0.0]
    assert swapped[3:] == pytest.approx([0.4540, 0.5933], abs=0.1)


# ---- Table 1 -----------------------------------------------------------------------------


def test_table_1_by_hand():
    outcome = information_loss(X, Y)
    table = outcome.table
    assert table["X"]["mean square error"] == pytest.approx(np.mean((X - Y) ** 2))
    assert table["X"]["mean absolute error"] == pytest.approx(np.mean(np.abs(X - Y)))
    # two originals are 0 and were changed: 100 % each; else 1/2, 1/4, 1/6; 1/2, 3/4, 2/10
    variation = (2 + 1 / 2 + 1 / 4 + 1 / 6 + 1 / 2 + 3 / 4 + 2 / 10) / 8
    assert table["X"]["mean variation"] == pytest.approx(variation)
    assert table["mean"]["mean variation"] == pytest.approx((0 + 0.25 / 4) / 2)
    after = 171 / 16
    assert table["S"]["mean variation"] == pytest.approx((1 / 5 + (14 - after) / 14) / 2)
    assert table["S"]["mean square error"] == pytest.approx((1 + (14 - after) ** 2) / 2)
    assert table["V"]["mean variation"] == pytest.approx(0.5 / 7)
    rho, r = 7 / math.sqrt(70), 6.5 / math.sqrt(4 * after)
    assert table["R"]["mean absolute error"] == pytest.approx(abs(rho - r))
    assert outcome.parts["IL5"] / 2 == pytest.approx(
        abs(rho - r) / 2
    )  # expression (6), p(p − 1) = 2
    # two attributes: components (1, 1)/√2 and (1, −1)/√2 whatever ρ, of variance 1 ± ρ
    half = math.sqrt(0.5)
    rf = [(math.sqrt(1 + s * rho) - math.sqrt(1 + s * r)) * half for s in (1, -1)]
    shares = [(1 + rho) / 2, (1 - rho) / 2]
    errors = sum(w * 2 * abs(e) for w, e in zip(shares, rf, strict=True)) / 4
    assert table["RF"]["mean absolute error"] == pytest.approx(errors)
    assert table["C"]["mean absolute error"] == pytest.approx(abs(rho - r) / 2)
    assert max(table["F"].values()) == pytest.approx(0.0, abs=1e-12)
    s = X.std(axis=0)
    assert outcome.yancey == pytest.approx(np.mean(np.abs(X - Y) / (math.sqrt(2) * s)))
    assert outcome.parts == {
        "IL1": table["X"]["mean variation"],
        "IL2": table["mean"]["mean variation"],
        "IL3": table["S"]["mean variation"],
        "IL4": table["V"]["mean variation"],
        "IL5": table["R"]["mean absolute error"],
    }
    assert outcome.total == pytest.approx(20 * sum(outcome.parts.values()))
    assert outcome.to_frame().loc["X", "mean variation"] == pytest.approx(variation)


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_what_is_bounded_and_what_does_not_change_with_units(seed):
    """§§2, 3: mean variations keep; of R and C errors are bounded, of X, V and S they grow."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, size=(60, 3)) @ rng.uniform(size=(3, 3))
    y = x + rng.normal(size=x.shape)
    one, other = (
        information_loss(x * s, y * s).table for s in (1.0, 10.0 ** rng.integers(-3, 5, 3))
    )
    for name, row in one.items():
        assert other[name]["mean variation"] == pytest.approx(row["mean variation"], rel=1e-6)
    far = information_loss(x, 1e6 * np.column_stack([y[:, 0], -y[:, 1], y[:, 2]])).table
    assert far["R"]["mean absolute error"] <= 2.0
    assert far["C"]["mean absolute error"] <= 1.0
    assert min(far[name]["mean absolute error"] for name in ("X", "S")) > 1e3


def test_a_synthetic_record_is_paired_with_the_nearest_original():
    """§2: three lines, and the paired table is compared."""
    x = with_correlations(400)
    made = np.random.default_rng(1).multivariate_normal(x.mean(axis=0), np.cov(x.T), len(x))
    nearest = cKDTree(x / x.std(axis=0)).query(made / x.std(axis=0))[1]
    assert information_loss(x[nearest], made).yancey < information_loss(x, made).yancey / 2


def test_components_are_compared_whatever_their_sign():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4))
    y = x + 1e-6 * rng.normal(size=x.shape)
    table = information_loss(x, y).table
    for name in ("RF", "F", "C"):  # a component with the other sign would be off by about 1
        assert table[name]["mean absolute error"] < 1e-4
    for seed in range(20):  # eigenvectors have a sign of their own each time
        z = np.random.default_rng(seed).normal(size=(50, 3)) @ np.diag([3.0, 2.0, 1.0])
        turned = information_loss(z, z[:, ::-1] * [1, 1, 1])
        r = [np.linalg.eigh(np.corrcoef(a.T))[1][:, ::-1] for a in (z, z[:, ::-1])]
        r[1] = r[1] * np.where((r[0] * r[1]).sum(axis=0) < 0, -1, 1)
        shares = np.linalg.eigvalsh(np.corrcoef(z.T))[::-1] / 3
        expected = (shares * np.abs(r[0] - r[1])).mean()
        assert turned.table["F"]["mean absolute error"] == pytest.approx(expected, abs=1e-9)


def test_what_is_rounding_is_no_error():
    x = np.random.default_rng(0).normal(size=(30, 2)) + 1.0
    table = information_loss(x, x + 1e-14).table
    assert table["X"]["mean absolute error"] > 0.0
    for name in ("mean", "S", "V", "R"):
        assert table[name]["mean absolute error"] == 0.0


def test_one_attribute_has_no_pairs():
    outcome = information_loss(X[:, :1], Y[:, :1])
    assert list(outcome.parts) == ["IL1", "IL2", "IL3"]
    assert "V" not in outcome.table
    assert outcome.total == pytest.approx(100 * np.mean(list(outcome.parts.values())))


def test_an_original_zero():
    zero, one = np.zeros((4, 1)), np.array([[0.0], [0.0], [0.0], [2.0]])
    outcome = information_loss(zero, one)
    assert outcome.parts == {"IL1": 0.25, "IL2": 1.0, "IL3": 1.0}
    assert outcome.yancey == 0.25
    assert information_loss(zero, zero).total == 0.0


# ---- categorical -------------------------------------------------------------------------


def test_categorical_losses_by_hand():
    x = pd.DataFrame({"a": ["u", "u", "v", "v"], "b": [1, 2, 3, 3]})
    y = pd.DataFrame({"a": ["u", "v", "v", "u"], "b": [1, 2, 3, 2]})
    outcome = categorical_loss(x, y, orders={"b": [1, 2, 3]})
    assert outcome.changed.tolist() == [0.5, 0.25]
    assert outcome.marginals.tolist() == [0.0, 0.25]
    # a: independent of what is released; b: 2 is released for 2 and for 3
    assert outcome.uncertainty == pytest.approx([1.0, 0.5 / 1.5])
    # (u,1) (u,2) (v,3) (v,3) against (u,1) (v,2) (v,3) (u,2): one (v,3) became (v,2)
    assert outcome.tables[0, 1] == 0.25
    assert outcome.ranks == {"b": 0.25 / 2}
    assert outcome.parts["tables"] == 0.25
    assert outcome.total == pytest.approx(100 * np.mean(list(outcome.parts.values())))


@given(st.integers(0, 10**6), st.integers(1, 60))
@settings(max_examples=60)
def test_categorical_losses_are_bounded(seed, n):
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({c: rng.choice(["p", "q", None], n) for c in "ab"})
    y = pd.DataFrame({c: rng.choice(["p", "q", "r", None], n) for c in "ab"})
    outcome = categorical_loss(x, y, orders={"a": [None, "p", "q", "r"]})
    assert all(0 <= part <= 1 for part in outcome.parts.values())
    assert categorical_loss(x, x).total == 0.0
    recoded = x.replace({"p": "s", "q": "t"})  # all changed, nothing lost
    assert categorical_loss(x, recoded).uncertainty.max() == pytest.approx(0.0, abs=1e-12)


# ---- what cannot be measured -------------------------------------------------------------


FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


@pytest.mark.parametrize("measure", [probabilistic_loss, information_loss])
def test_tables_that_do_not_fit(measure):
    text, gap = FRAME.assign(c="x"), FRAME.assign(b=[1.0, None])
    assert refusal("masked", measure, FRAME, FRAME[["a"]]).value == "b"
    assert refusal("original", measure, text, FRAME).where == (0, "c")
    assert refusal("masked", measure, FRAME, gap).where == (1, "b")
    refusal("masked", measure, np.zeros((3, 2)), np.zeros((3, 1)))
    refusal("original", measure, np.zeros((0, 2)), np.zeros((3, 2)))
    refusal("original", measure, FRAME[:0], FRAME)
    refusal("original", measure, FRAME[[]], FRAME)
    refusal("original", measure, FRAME, FRAME, ["a", "a"])
    swapped = FRAME[["b", "a"]]
    assert measure(FRAME, swapped).total == 0.0  # columns are matched by name
    assert measure(FRAME.assign(c=[0, 9]), FRAME, ["a", "b"]).total == 0.0


def test_what_else_is_refused():
    refusal("masked", information_loss, FRAME, FRAME[:1])
    refusal("density", probabilistic_loss, FRAME, FRAME, density="histogram")
    refusal("original", categorical_loss, [["a"]], [["a"]])
    refusal("masked", categorical_loss, FRAME, FRAME[["a"]])
    refusal("masked", categorical_loss, FRAME, FRAME[:1])
    refusal("original", categorical_loss, FRAME[:0], FRAME[:0])
    refusal("orders", categorical_loss, FRAME, FRAME, orders={"z": []})
    error = refusal("orders", categorical_loss, FRAME, FRAME, orders={"a": [1.0]})
    assert (error.where, error.value) == ("a", 2.0)
