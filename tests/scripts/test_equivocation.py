"""The scripts on rate, distortion and equivocation: closed forms, brute force, records."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee


def plogp(masses):
    """Σ p log₂ p, one by one."""
    return math.fsum(p * math.log2(p) for p in np.ravel(masses).tolist() if p > 0)


def h(p):
    return -plogp([p, 1 - p])


def star(a, b):
    return a * (1 - b) + b * (1 - a)


# ---- Adult -------------------------------------------------------------------------------


def told(source, solution):
    """Return p(w, y, z) of a release, record type by record type."""
    law, channel = source.pmf, solution.channel
    rows = dict(zip(channel.inputs, channel.matrix, strict=True))
    found = np.zeros((len(source.w), channel.matrix.shape[1], len(source.z)))
    for (w, x, z), mass in np.ndenumerate(law):
        label = (source.x[x], source.z[z]) if channel.encoder == "xz" else source.x[x]
        found[w, :, z] += mass * rows[label]
    return found


def leaked(joint):
    """I(first; rest) in bits."""
    first = joint.sum(axis=tuple(range(1, joint.ndim)))
    return plogp(joint) - plogp(first) - plogp(joint.sum(axis=0))


@pytest.mark.long
def test_script_side_information_adult(run, tables):
    words = ("certified", "refused, with proof", "Miller–Madow", "price dD/dt", "two mean")
    module, result, _ = run("problems/side_information_adult", "--quick", words=words)
    source, law = result.source, result.source.pmf
    assert source.records == (32_561 if tables.real else 200)
    assert law.shape == (7 if tables.real else 6, 16, 2)
    held = leaked(law.sum(axis=1))
    if tables.real:
        assert held == pytest.approx(0.1634, abs=5e-5)
    assert result.held == pytest.approx(held, abs=1e-12)

    d = np.array([[abs(module.AGES.index(a) - module.AGES.index(b))
                   + abs(module.DEGREES.index(s) - module.DEGREES.index(t))
                   for b, t in source.x] for a, s in source.x])  # fmt: skip
    assert (result.error.matrix == d).all()

    # nobody, the user, user and encoder: what each release tells, and its error, from the channel
    for (who, budget), solution in result.average.items():
        referee.check(solution)
        joint = told(source, solution)
        read = joint if who else joint.sum(axis=2)
        assert solution.value == pytest.approx(leaked(read), abs=1e-9)
        assert result.leakage(solution) == pytest.approx(leaked(joint), abs=1e-9)
        assert float(solution.distortion) <= budget
    for budget in result.budgets:
        nobody, user, both = (result.average[who, budget] for who in module.KNOWN_TO)
        assert held < both.lower < both.value < user.lower < user.value
        assert user.lower <= result.leakage(nobody)
        assert nobody.value < user.value - held  # the letters of X̂ and sex work together

    # a cap below what the user has is refused; the message says from where on it would do
    assert result.refusal.conflict == ["max_leakage"]
    assert result.refusal.extremes["max_leakage"] == pytest.approx(held, abs=1e-5)
    assert result.refusal.certificate.verify()
    least = re.search(r"max_leakage would have to be at least ([\d.]+)", str(result.refusal))
    assert float(least[1]) == pytest.approx(held, abs=1e-4)

    # the worst case: every (u, z) keeps it if made so, and not if Z was forgotten
    for who, solution in result.worst.items():
        # on the sample, whose cells often have a single record, CVXPY's solver stops a bit early
        loose = not tables.real and solution.gap < 2e-5
        referee.check(solution, status=solution.status if loose else "certified")
        joint = told(source, solution)
        q = joint.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(joint > 0, joint / (source.p_w[:, None, None] * q), 1.0)
            each = np.where(q > 0, (joint * np.log2(ratio)).sum(axis=0) / q, 0.0)
        share, found = result.letters(solution)
        used = share * source.records >= 1
        assert found[used] == pytest.approx(each[used], abs=1e-9)
        if who is None:
            assert share[found > module.T].sum() > 0.1
            plain = joint.sum(axis=2)
            alone = [cpv.information.divergence(c, source.p_w) for c in plain.T if c.sum() > 1e-6]
            assert max(alone) <= module.T + 1e-6
        else:
            assert each.max() <= module.T + 1e-9
    nobody, user, both = (result.worst[who] for who in module.KNOWN_TO)
    assert nobody.value < both.lower < both.value < user.lower

    # on the records: letter by letter as the decoder says, and as often as the channel says
    solution = result.worst["decoder"]
    table = module.released(result, solution, seed=3)
    read = module.decoded(table, solution)
    assert list(table.columns) == ["marital-status", "U", "sex"]
    for column in ("marital-status", "sex"):
        assert (read[column] == result.frame[column]).all()
    decoder = solution.channel.decoder
    first = read.assign(U=table["U"])[["U", "sex", "age", "education"]].head(500)
    for u, z, *cell in first.to_numpy():
        assert decoder(u, z) == tuple(cell)
    two = [u for u, rule in enumerate(decoder.table) if rule[0] != rule[1]]
    mass = told(source, solution)[:, two].sum()
    assert table["U"].isin(two).mean() == pytest.approx(
        mass, abs=5 * (mass / source.records) ** 0.5
    )
    if tables.real:
        assert mass == pytest.approx(0.10, abs=0.01)
    for who in module.KNOWN_TO:
        solution = result.average[who, module.BUDGET]
        # d² ≤ 6 d bounds the variance of a record's error
        spread = math.sqrt(d.max() * float(solution.distortion) / source.records)
        measured = module.measured(result, who, seed=7)
        assert measured.distortion == pytest.approx(float(solution.distortion), abs=5 * spread)
        if tables.real:
            assert measured.leakage == pytest.approx(solution.value, abs=4e-3)
            assert 0 < measured.bias < 4e-3


# ---- quantise and bin --------------------------------------------------------------------


def brute(book, bin_of, reading, noise, p0):
    """Return what a code does, by visiting every (w, x, z) of it."""
    n = book.shape[1]
    words = np.array(list(itertools.product((0, 1), repeat=n)))
    said = reading[book][..., 0]  # x̂ does not depend on z
    far, to = ((words[:, None] != others).sum(axis=2) for others in (words, said))

    def flipped(p):
        return p**far * (1.0 - p) ** (n - far)

    xz = flipped(p0) / 2**n
    nearest = to.argmin(axis=1)  # the first of several
    j = bin_of[nearest]
    taken = np.where(bin_of == j[:, None, None], to, n + 1).argmin(axis=2)  # by x and z
    law = np.zeros((len(words), max(bin_of) + 1, len(words)))  # w, j, z
    ones = np.zeros((*law.shape[1:], n))  # j, z, i: mass of x_i = 1
    for x, word in enumerate(words):
        law[:, j[x]] += np.outer(flipped(noise)[x], xz[x])
        ones[j[x]] += np.outer(xz[x], word)
    jz = law.sum(axis=0)
    return {
        "told": -(plogp(jz) + n) / n,
        "equivocation": (plogp(jz) - plogp(law)) / n,
        "distortion": (xz * np.take_along_axis(to, taken, axis=1)).sum() / n,
        "before": (xz * to.min(axis=1)[:, None]).sum() / n,
        "mistaken": (xz * (taken != nearest[:, None])).sum(),
        "best": np.minimum(ones, jz[..., None] - ones).sum() / n,
    }


def test_script_quantise_and_bin(run):
    words = ["outside the region: 0"]
    module, result, _ = run("problems/quantise_and_bin", "--quick", words=words)
    design, q, p0 = result.design, module.NOISE, module.P0
    referee.check(design.solution)
    d = module.TARGET
    assert design.rate == pytest.approx(h(star(p0, d)) - h(d), abs=1e-6)
    assert design.quantised == pytest.approx(1 - h(d), abs=1e-12)
    assert sorted(design.reading.tolist()) == [[0, 0], [1, 1]]

    # short codes, by brute force
    for n, seed in ((1, 0), (2, 1), (3, 0), (4, 2)):
        book, bin_of = module.drawn(design, n, seed)
        assert book.shape == (math.ceil(2 ** (n * design.quantised)), n)
        code = module.coded(design, book, bin_of)
        assert code.bins == math.ceil(2 ** (n * design.rate))
        for name, value in brute(book, bin_of, design.reading, q, p0).items():
            assert getattr(code, name) == pytest.approx(value, abs=1e-12), (n, name)

    # the converse: no code is outside, at its own distortion or at that of its best reader
    for point in result.points:
        c = point.code
        for solution in (point.rate, point.leakage, point.best_rate, point.best_leakage):
            referee.check(solution, verify=False)
        assert c.rate >= c.told - 1e-12
        assert c.told >= point.best_rate.lower - 1e-9
        assert c.best <= c.distortion + 1e-12
        assert point.best_rate.upper >= point.rate.lower
        assert c.equivocation <= 1 - point.best_leakage.lower + 1e-9
        assert c.equivocation <= 1 - point.leakage.lower + 1e-9
        # what J tells about X, it cannot tell less of W than nothing, nor more
        assert h(q) - 1e-12 <= c.equivocation <= h(star(q, p0)) + 1e-12
        assert sum(point.parts) == pytest.approx(c.rate - point.rate.value, abs=1e-12)
        assert min(point.parts) >= -1e-7
        assert min(point.below) >= -1e-7
    long = [p for p in result.points if p.code.n >= 3]
    assert min(sum(p.parts) for p in long) > 0.1  # blocks this short are far inside
    assert min(p.below[0] for p in long) > 0.05
    # the boundary: constant strategies up to where the chord begins, nothing beyond p0
    for at, rate, leakage in result.boundary:
        if 0 < at < 0.088:
            assert rate.value == pytest.approx(h(star(p0, at)) - h(at), abs=1e-6)
        if at in (0.0, p0):
            unknown = h(q) if at == 0 else h(star(q, p0))
            assert leakage.value == pytest.approx(1 - unknown, abs=1e-6)

    # record by record: on the boundary
    fair = design.solution
    gamma = 1 - module.least(design.source, d, "leakage").value
    assert float(fair.equivocation) == pytest.approx(gamma, abs=1e-6)
    law = np.einsum("wxz,xu->wuz", design.source.pmf, fair.channel.matrix)
    assert plogp(law.sum(axis=0)) - plogp(law) == pytest.approx(gamma, abs=1e-6)
