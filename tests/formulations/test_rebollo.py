"""What Rebollo-Monedero et al. 2010 state of R(D) and of its bounds, on laws small enough to see.

§2 (attacks), §4.3 (order of criteria), §4.4 (overfitting, eq. 4, location privacy), Theorems 1 and
2, Proposition 3, Lemma 4 and Proposition 5.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.model.information import divergence, entropy, mutual_information
from tests import referee
from tests.lengths import rest_at_length, some_at_length


def ends_of(source, d):
    """Return the least and the greatest distortion that matter."""
    problem = cpv.PrivacyDistortion(source, d, price=1.0)
    return problem.least_distortion, problem.greatest_distortion


def test_diverse_groups_may_be_similar_or_skewed():
    """§2: both attacks pass l-diversity and not t-closeness."""
    everyone = np.full(6, 1 / 6)  # values in similar pairs: (0, 1), (2, 3), (4, 5)
    similar, skewed = np.array([0.5, 0.5, 0, 0, 0, 0]), np.array([0.75] + [0.05] * 5)
    for group, values, least in ((similar, 2, math.log(3)), (skewed, 6, 0.8)):
        assert np.count_nonzero(group) == values
        assert math.exp(entropy(group, units="nats")) >= 2 - 1e-12  # entropy 2-diverse
        assert divergence(group, everyone, units="nats") >= least - 1e-12
        pairs = group.reshape(3, 2).sum(axis=1)  # what is told of the pair: no more, by merging
        information = divergence(pairs, np.full(3, 1 / 3), units="nats")
        assert 0 < information <= divergence(group, everyone, units="nats") + 1e-12
    assert divergence(similar.reshape(3, 2).sum(axis=1), np.full(3, 1 / 3)) == pytest.approx(
        math.log2(3)
    )  # all that there is to know of the pair


def test_average_is_below_t_closeness_is_below_disclosure():
    """§4.3: an average over averages, a maximum over averages, a maximum over a maximum."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        joint = rng.dirichlet(np.full(20, 0.5)).reshape(4, 5)
        w, y = joint.sum(axis=1), joint.sum(axis=0)
        each = [divergence(column, w, units="nats") for column in (joint / y).T]
        delta = np.abs(np.log(joint / np.outer(w, y))).max()
        assert mutual_information(joint, units="nats") < max(each) < delta


@pytest.mark.long
def test_a_rule_that_reads_w_needs_more_records():
    """§4.4: fitted to 50 records it breaks its budget under the true law, which p(x̂ | x) keeps."""
    rng, x, budget = np.random.default_rng(7), np.arange(6), 0.5
    pmf = np.exp(-((x - np.arange(1.0, 5.0)[:, None]) ** 2) / 2)
    pmf /= pmf.sum()
    d = (x[:, None] - x) ** 2.0
    broken = {}
    for records in (50, 2000):
        results = {"x": [], "wx": []}
        for _ in range(5):
            source = cpv.DiscreteSource.from_counts(
                rng.multinomial(records, pmf.ravel()).reshape(pmf.shape)
            )
            for encoder in results:
                problem = cpv.PrivacyDistortion(source, d, budget=budget, encoder=encoder)
                channel = problem.solve(certify=False).channel.matrix
                channel = channel.reshape(-1, 6, 6)  # one for all w, or one for each
                results[encoder].append((pmf[:, :, None] * channel * d).sum() - budget)
        broken[records] = {encoder: np.mean(errors) for encoder, errors in results.items()}
    assert broken[50]["wx"] > 0.2 > 0.1 > abs(broken[50]["x"])
    assert max(map(abs, broken[2000].values())) < 0.03


@pytest.mark.parametrize("size", some_at_length([3, 4, 5], 1))
def test_more_indices_than_reconstructions_change_nothing(size):
    """Eq. 4, the second form of eq. 5, and Proposition 3."""
    rng = np.random.default_rng(size)
    pmf, d = rng.dirichlet(np.ones(2 * size)).reshape(2, size), rng.random((size, size))
    for law in (pmf, np.diag(pmf.sum(axis=0))):  # the latter: W = X
        source = cpv.DiscreteSource(law)
        low, high = ends_of(source, d)
        budget = 0.9 * low + 0.1 * high
        solved = []
        for copies in (1, 3):  # x̂(q) = q // 3
            rule = np.repeat(d, copies, axis=1)
            problem = cpv.PrivacyDistortion(source, rule, budget=budget, units="nats")
            solved.append(problem.solve(accuracy="high"))
            referee.check(solved[-1])
        one, three = solved
        assert one.upper > 1e-3
        assert max(one.lower, three.lower) <= min(one.upper, three.upper)
        merged = three.channel.matrix.reshape(size, size, 3).sum(axis=2)
        assert mutual_information(law @ merged, units="nats") <= three.upper + 1e-12


def test_the_mean_given_the_index_errs_least():
    """Proposition 3, its last part: x̂(Q) = E[X | Q] never raises D, nor any function of Q, I."""
    rng, x = np.random.default_rng(4), np.linspace(-1, 1, 6)
    for _ in range(200):
        pmf = rng.dirichlet(np.ones(18)).reshape(3, 6)
        channel, guess = rng.dirichlet(np.ones(5), size=6), rng.normal(size=5)
        p = pmf.sum(axis=0)
        mean = (p * x) @ channel / (p @ channel)
        errors = [(p[:, None] * channel * (x[:, None] - y) ** 2).sum() for y in (guess, mean)]
        assert errors[1] <= errors[0]
        merged = channel @ np.eye(3)[[0, 0, 1, 1, 2]]
        assert mutual_information(pmf @ merged) <= mutual_information(pmf @ channel) + 1e-12


def test_what_is_released_is_the_mean_given_it():
    """Proposition 3: free to choose its letters, an optimal rule releases E[X | X̂]."""
    x = np.array([-1.0, 0.0, 2.0])
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]], x=x.tolist())
    values = np.linspace(-1, 2, 61)
    error = cpv.squared_error(x, outputs=values)
    solution = cpv.PrivacyDistortion(source, error, budget=0.3, units="nats").solve(accuracy="high")
    q = source.p_x @ solution.channel.matrix
    mean = (source.p_x * x) @ solution.channel.matrix / np.where(q > 0, q, 1)
    used = q > 1e-3
    # 0.05 between letters: what is lost to the nearest is at most a 40th of a unit
    assert np.abs(mean - values)[used].max() < 0.03


def test_location_privacy():
    """§4.4: W a user, X a place; the risk averages D(p(x̂ | w) ‖ p(x̂)) over the users."""
    cells = np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2).astype(float)
    homes = np.array([(0.5, 0.5), (0.5, 2.5), (2.5, 0.5), (2, 2)])
    pmf = np.exp(-((cells - homes[:, None]) ** 2).sum(axis=2) / 2)
    pmf /= 4 * pmf.sum(axis=1, keepdims=True)
    users, places = ["A", "B", "C", "D"], [tuple(cell) for cell in cells.astype(int).tolist()]
    source = cpv.DiscreteSource(pmf, w=users, x=places, names=("user", "cell"))
    error = cpv.squared_error(cells)
    before = source.information()
    for budget in (0.5, 1.0):
        solution = cpv.PrivacyDistortion(source, error.matrix, budget=budget).solve()
        referee.check(solution)
        joint = source.pmf @ solution.channel.matrix
        each = [divergence(row / row.sum(), joint.sum(axis=0)) for row in joint]
        assert source.p_w @ each == pytest.approx(solution.value, abs=1e-7)
        deviation = cells - source.p_x @ cells
        variance = source.p_x @ (deviation**2).sum(axis=1)
        assert solution.value < (1 - budget / variance) * before  # MIUB
        assert min(each) > 0


@pytest.mark.long
def test_theorem_1_on_solved_values():
    """R(D) is non-increasing and convex, as far as the enclosures reach."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        pmf, d = rng.dirichlet(np.ones(12)).reshape(3, 4), rng.random((4, 5))
        source = cpv.DiscreteSource(pmf)
        solved = [
            cpv.PrivacyDistortion(source, d, budget=b, units="nats").solve(accuracy="high")
            for b in np.linspace(*ends_of(source, d), 7)
        ]
        low, high = (np.array([getattr(s, end) for s in solved]) for end in ("lower", "upper"))
        assert (high - low).max() < 1e-8
        assert (low[1:] <= high[:-1]).all()
        assert (low[1:-1] <= (high[:-2] + high[2:]) / 2).all()
        assert (high[1:-1] < (low[:-2] + low[2:]) / 2).any()  # and bent, not straight


X = np.arange(-20, 21) / 5
DENSITIES = {  # of X on 41 points, of the noise in W = X + N
    "two humps, Gaussian noise": (np.exp(-((abs(X) - 1) ** 2) / 0.1), lambda w: np.exp(-2 * w**2)),
    "Laplace, Laplace noise": (np.exp(-abs(X) * 2**0.5), lambda w: np.exp(-abs(w) * 8**0.5)),
    "Gaussian, Gaussian noise": (np.exp(-(X**2) / 2), lambda w: np.exp(-2 * w**2)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", rest_at_length(DENSITIES, 1))
def test_theorem_2_for_any_law(name):
    """Eqs. 7 and 10: releases of laws with a density leak at least the QGLB, Gaussian or not.

    W has a density, of which h(W) is integrated; the release is optimal for W in cells, and its
    I(W; X̂) is that of W itself.
    """
    p, noise = DENSITIES[name]
    p, w = p / p.sum(), (np.arange(4000) + 0.5) / 200 - 10  # 200 points in every unit
    value = noise(w[:, None] - X)
    value *= 200 / value.sum(axis=0)  # p(w | x)
    density = value @ p
    ours = -(density * np.log(density)).sum() / 200
    covariance = (w @ value * X) @ p / 200
    moments = [[(density * w**2).sum() / 200, covariance], [covariance, p @ X**2]]
    gaussian = cpv.GaussianSource(moments, sensitive=[0], key=[1])
    cells = value.reshape(200, 20, -1).sum(axis=1) * p / 200
    source = cpv.DiscreteSource(cells / cells.sum(), x=X.tolist())
    apart = []
    for share in (0.1, 0.5, 0.8):
        d = share * (p @ X**2)
        bound = cpv.QuadraticGaussian(gaussian, d, units="nats", entropy=ours).solve()
        (var_w, _), (_, var_x) = moments
        rho2 = covariance**2 / (var_w * var_x)  # eq. 7
        scalar = ours - math.log(2 * math.pi * math.e * (1 - (1 - share) * rho2) * var_w) / 2
        assert bound.lower == pytest.approx(scalar, abs=1e-9)
        best = cpv.PrivacyDistortion(source, cpv.squared_error(X), budget=d, units="nats").solve()
        joint = value * p @ best.channel.matrix / 200
        risk = mutual_information(joint / joint.sum(), units="nats")
        assert best.lower - 1e-9 <= risk  # cells tell less than W itself
        apart.append(risk - bound.lower)
    assert min(apart) > -1e-6
    if "Gaussian, Gaussian" in name:
        assert max(apart) < 1e-4
    else:
        assert min(apart) > 0.003
        assert max(apart) > 0.015


def test_theorem_2_law_of_the_noise():
    """X̂ = (I − A) X + A Z, Cov Z = (I − A) Σ_X A⁻ᵀ as printed, where Σ is regular."""
    law = np.array([[3, 0.5, 1, 0.4], [0.5, 2, 0.3, 0.8], [1, 0.3, 1, 0.2], [0.4, 0.8, 0.2, 1]])
    source, ours = cpv.GaussianSource(law, sensitive=[0, 1], key=[2, 3]), law[2:, 2:]
    for budget in (1.5, 1.8):
        solution = cpv.QuadraticGaussian(source, budget).solve(accuracy="high")
        a = solution.error_covariance @ np.linalg.inv(ours)
        printed = (np.eye(2) - a) @ ours @ np.linalg.inv(a).T
        assert solution.release.noise == pytest.approx(a @ printed @ a.T, abs=1e-9)
        assert solution.release.gain == pytest.approx(np.eye(2) - a, abs=1e-9)


def test_lemma_4_levels_lie_between_its_ends():
    """0 < t < Σ y: μ < λ₁, and μ > 1 / (1 / λ_r + max y)."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        size = int(rng.integers(1, 8))
        gains, caps = -np.sort(-rng.uniform(0.1, 5, size)), rng.uniform(0, 2, size)
        total = rng.uniform(0.01, 0.99) * caps.sum()
        mu = 1 / float(cpv.BoxWaterFilling(gains, caps, total).level)
        assert 1 / (1 / gains[-1] + caps.max()) < mu < gains[0]


@pytest.mark.parametrize(("m", "n"), some_at_length([(2, 2), (2, 3), (3, 3)], 1))
def test_proposition_5_is_attained_where_y_is_diagonal(m, n):
    """VᵀΣ_X V diagonal: the closed bound is the QGLB, also beyond λ_min(Σ_X)."""
    rng = np.random.default_rng(10 * m + n)
    v = np.linalg.qr(rng.normal(size=(n, n)))[0]
    s, y = np.diag(rng.uniform(0.5, 2, m)), v @ np.diag(rng.uniform(0.2, 3, n)) @ v.T
    root = np.zeros((m, n))
    root[:, :m] = np.diag(rng.uniform(0.5, 3, m))
    b = np.sqrt(s) @ root @ v.T  # BᵀS⁻¹B = VΛVᵀ
    law = np.block([[s + b @ y @ b.T, b @ y], [(b @ y).T, y]])
    source = cpv.GaussianSource((law + law.T) / 2, sensitive=range(m), key=range(m, m + n))
    beyond = 0
    for share in (0.3, 0.6, 0.9):
        budget = share * np.trace(y)
        closed = cpv.closed_gaussian_bound(source, budget, units="nats")
        solution = cpv.QuadraticGaussian(source, budget, units="nats").solve(accuracy="high")
        assert solution.lower - 1e-8 <= closed <= solution.upper + 1e-8
        beyond += budget > np.linalg.eigvalsh(y)[0]
    assert beyond >= 2
