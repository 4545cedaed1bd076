"""The scripts on rate, distortion and equivocation: closed forms, brute force, records."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.test_architecture import ROOT, script

BITS = math.log(2.0)


def ran(folder, name, tmp_path, capsys, *arguments):
    """Run a script; return its module, its result and what it printed."""
    module = script(ROOT / folder / f"{name}.py")
    picture = tmp_path / "deep" / f"{name}.png"
    result = module.main([*arguments, "--out", str(picture)])
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size > 30_000
    text = capsys.readouterr().out
    assert str(picture) in text
    for piece in ("nan", "-0.0000 "):
        assert piece not in text
    return module, result, text


def plogp(masses):
    """Σ p log₂ p, one by one."""
    return math.fsum(p * math.log2(p) for p in np.ravel(masses).tolist() if p > 0)


def h(p):
    return -plogp([p, 1 - p])


def star(a, b):
    return a * (1 - b) + b * (1 - a)


# ---- the doubly symmetric binary source --------------------------------------------------


def test_script_doubly_symmetric_binary(tmp_path, capsys):
    module, result, text = ran("problems", "doubly_symmetric_binary", tmp_path, capsys)
    assert "lie in all of the proved enclosures" in text
    assert "NOT ALL" not in text
    p0 = 0.25

    # what is known of it in nats: rates at D = .05, .1, .2
    known = {
        "decoder": (0.3896535340, 0.2850078694, 0.0950026231),
        "both": (0.3638199013, 0.2372521712, 0.0619327211),
    }
    for who, values in known.items():
        rates = {p.budget: p.rate for p in result.of(who)}
        for d, nats in zip((0.05, 0.1, 0.2), values, strict=True):
            assert rates[d].lower - 1e-9 <= nats / BITS <= rates[d].upper + 1e-9
    assert pytest.approx(0.0880207, abs=5e-8) == module.D_C

    fine = np.linspace(1e-4, p0 - 1e-4, 200_001)
    coded = np.array([h(star(p0, d)) - h(d) for d in fine[::100]])
    for point in result.points:
        d, who = point.budget, point.known_to
        for solution in (point.rate, point.leakage):
            referee.check(solution)
        if who is None:
            closed = 1 - h(d)
        elif who == "both":
            closed = h(p0) - h(d)
        else:  # the best of all time-sharings of a code at some D' ≤ D with "take z"
            from_ = fine[::100]
            here = from_ <= d
            shared = coded[here] * (p0 - d) / (p0 - from_[here])
            closed = min(shared.min(), h(star(p0, d)) - h(d))
            closed = closed if d < p0 else 0.0
        told = 0.0 if who is None else 1 - h(p0)
        slack = 1e-5 if who == "decoder" and d > module.D_C else 1e-9  # the grid of D'
        assert point.rate.lower - 1e-9 <= closed <= point.rate.upper + slack
        assert point.leakage.lower - 1e-9 <= closed + told <= point.leakage.upper + slack
        # W = X: one release is best in both
        assert float(point.rate.leakage) == pytest.approx(point.leakage.value, abs=2e-7)
        assert float(point.leakage.rate) == pytest.approx(point.rate.value, abs=2e-7)
        assert max(map(abs, point.errors)) < 1e-7

    # time-sharing: beyond D_c the constants err D_c of the time, the followers p0
    for point in result.of("decoder"):
        kinds, d = point.strategies(), point.budget
        constant, error = kinds[module.CONSTANT]
        follow, wrong = kinds[module.FOLLOW]
        assert constant + follow == pytest.approx(1.0, abs=1e-4)
        share = min(max((d - module.D_C) / (p0 - module.D_C), 0.0), 1.0)
        assert follow == pytest.approx(share, abs=2e-3)
        assert module.follows(d) == pytest.approx(share, abs=1e-12)
        if share > 0.01:
            assert wrong == pytest.approx(p0, abs=1e-6)
        if share < 0.99:
            assert error == pytest.approx(min(d, module.D_C), abs=1e-3)
            slope = (module.rate(d + 1e-6, "decoder") - module.rate(d - 1e-6, "decoder")) / 2e-6
            assert point.rate.prices["budget"] == pytest.approx(slope, rel=2e-3)

    # who pays: with Z at both, the total leakage is that without Z
    by = {who: {p.budget: p.leakage for p in result.of(who)} for who in module.KNOWN_TO}
    for d, user in by["decoder"].items():
        assert by["both"][d].value == pytest.approx(by[None][d].value, abs=1e-7)
        if d < p0:
            assert user.lower > by["both"][d].upper + 1e-3


# ---- Adult -------------------------------------------------------------------------------


@pytest.fixture
def adult():
    """Skip where the public table is not at hand."""
    folder = os.environ.get("CVXPRIVACY_DATA")
    if not folder or not (Path(folder) / "adult.csv").is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")


@pytest.mark.parametrize("folder", [None, "empty"])
def test_without_the_table_the_script_says_what_to_set(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("CVXPRIVACY_DATA", raising=False)
    if folder:
        monkeypatch.setenv("CVXPRIVACY_DATA", str(tmp_path))
    module = script(ROOT / "problems" / "side_information_adult.py")
    with pytest.raises(SystemExit, match=r"Set CVXPRIVACY_DATA .* adult\.csv"):
        module.main(["--out", str(tmp_path / "x.png")])
    assert not (tmp_path / "x.png").exists()


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
@pytest.mark.usefixtures("adult")
def test_script_side_information_adult(tmp_path, capsys):
    module, result, text = ran("problems", "side_information_adult", tmp_path, capsys, "--quick")
    for piece in ("certified", "refused, with proof", "Miller–Madow", "price dD/dt", "two mean"):
        assert piece in text
    source, law = result.source, result.source.pmf
    assert source.records == 32_561
    assert law.shape == (7, 16, 2)
    held = leaked(law.sum(axis=1))
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

    # with Z at both, in CVXPY's own words
    _, nx, nz = law.shape
    k = [cp.Variable((nx, nx), nonneg=True) for _ in range(nz)]
    joint = [law[:, :, z] @ k[z] for z in range(nz)]
    leakage = sum(cp.sum(cp.rel_entr(j, cp.outer(source.p_w, cp.sum(j, axis=0)))) for j in joint)
    error = sum(cp.sum(cp.multiply(law[:, :, z].sum(axis=0)[:, None] * d, k[z])) for z in range(nz))
    rules = [*(cp.sum(each, axis=1) == 1 for each in k), error <= module.BUDGET]
    problem = cp.Problem(cp.Minimize(leakage / BITS), rules)
    problem.solve(solver="CLARABEL")
    assert problem.value == pytest.approx(result.average["both", module.BUDGET].value, abs=2e-6)

    # a cap below what the user has is refused; the message says from where on it would do
    assert result.refusal.conflict == ["max_leakage"]
    assert result.refusal.extremes["max_leakage"] == pytest.approx(held, abs=1e-5)
    assert result.refusal.certificate.verify()
    assert "max_leakage would have to be at least 0.163" in str(result.refusal)

    # the worst case: every (u, z) keeps it if made so, and not if Z was forgotten
    for who, solution in result.worst.items():
        referee.check(solution)
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
    assert table["U"].isin(two).mean() == pytest.approx(0.10, abs=0.01)
    for who in module.KNOWN_TO:
        solution = result.average[who, module.BUDGET]
        channel, p = solution.channel, solution.channel.matrix
        squared = 0.0  # E d², which bounds the variance of a record's error
        for (i, u), z in itertools.product(np.ndindex(*p.shape), range(nz)):
            x, own = channel.inputs[i], source.z[z]
            if channel.encoder == "xz":
                x, of = x
                if of != own:
                    continue
            y = channel.outputs[u] if channel.decoder is None else channel.decoder(u, own)
            at, to = source.x.index(x), source.x.index(y)
            squared += law[:, at, z].sum() * p[i, u] * d[at, to] ** 2
        spread = math.sqrt(squared / source.records)
        measured = module.measured(result, who, seed=7)
        assert measured.distortion == pytest.approx(float(solution.distortion), abs=5 * spread)
        assert measured.leakage == pytest.approx(solution.value, abs=4e-3)
        assert 0 < measured.bias < 4e-3


# ---- quantise and bin --------------------------------------------------------------------


def brute(book, bin_of, reading, noise, p0):
    """Return what a code does, by visiting every (w, x, z) of it."""
    n = book.shape[1]
    said = [[int(reading[u][0]) for u in word] for word in book]  # x̂ does not depend on z
    words = list(itertools.product((0, 1), repeat=n))

    def apart(a, b):
        return sum(i != j for i, j in zip(a, b, strict=True))

    def nearest(word, among):
        return min(among, key=lambda k: (apart(said[k], word), k))

    law = {}  # (w, j, z) → mass
    seen = {}  # (j, z) → mass
    bits = {}  # (j, z, i) → mass of x_i = 1
    wrong = word_wrong = mistaken = 0.0
    for x in words:
        k = nearest(x, range(len(said)))
        j = int(bin_of[k])
        members = [i for i in range(len(said)) if bin_of[i] == j]
        for z in words:
            p = 2.0**-n * p0 ** apart(x, z) * (1 - p0) ** (n - apart(x, z))
            taken = nearest(z, members)
            wrong += p * apart(said[taken], x) / n
            word_wrong += p * apart(said[k], x) / n
            mistaken += p * (taken != k)
            seen[j, z] = seen.get((j, z), 0.0) + p
            for i in range(n):
                bits[j, z, i] = bits.get((j, z, i), 0.0) + p * x[i]
            for w in words:
                mass = p * noise ** apart(w, x) * (1 - noise) ** (n - apart(w, x))
                law[w, j, z] = law.get((w, j, z), 0.0) + mass
    best = sum(min(one, seen[j, z] - one) for (j, z, _), one in bits.items()) / n
    h_jz, h_jwz = -plogp(list(seen.values())), -plogp(list(law.values()))
    return {
        "told": (h_jz - n) / n, "equivocation": (h_jwz - h_jz) / n, "distortion": wrong,
        "before": word_wrong, "mistaken": mistaken, "best": best,
    }  # fmt: skip


def test_script_quantise_and_bin(tmp_path, capsys):
    module, result, text = ran("problems", "quantise_and_bin", tmp_path, capsys, "--quick")
    assert "outside the region: 0" in text
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


# ---- Fig. 3 of Sankar et al. -------------------------------------------------------------


def test_script_sankar_fig3(tmp_path, capsys):
    module, result, text = ran("figures", "sankar_fig3", tmp_path, capsys, "--quick")
    for piece in ("paper:", "here:", "why:", "Remark 4"):
        assert piece in text
    q = module.Q
    split = np.linspace(0, 0.5, 5001)
    unknown = np.array([h(star(q, a)) for a in split])
    own = np.array([h(a) for a in split])

    def least(d, equivocation):
        """R(D, E): the best of all ways to split the wrong bits between A and B."""
        free = (split <= d) & (unknown >= equivocation)
        rest = np.minimum(d - split[free], 0.5)
        return (2 - own[free] - np.interp(rest, split, own)).min()

    for d, corner in result.corners.items():
        for solution in (corner.rate, corner.leakage):
            referee.check(solution)
        for solution, closed in (
            (corner.rate, 2 - 2 * h(min(d / 2, 0.5))),
            (corner.leakage, 1 - h(star(q, min(d, 0.5)))),
        ):
            assert solution.lower - 1e-12 <= closed <= solution.upper + 1e-12
        assert corner.rate.value == pytest.approx(least(d, 0.0), abs=1e-5)
        assert module.rate(d) == pytest.approx(2 - 2 * h(min(d / 2, 0.5)), abs=1e-12)

    for d, found in result.surface.items():
        corner = result.corners[d]
        # Remark 4: neither end is the other's
        assert corner.private == pytest.approx(h(star(q, d / 2)), abs=1e-3)
        assert corner.private < corner.gamma - 0.01
        assert found[-1].solution.lower > corner.rate.upper + 0.05
        assert found[-1].cap == pytest.approx(corner.leakage.value + module.MARGIN, abs=1e-12)
        rates = [corner.rate.value]
        for each in found:
            referee.check(each.solution)
            closed = module.rate(d, each.equivocation)
            assert each.solution.lower - 1e-9 <= closed <= each.solution.upper + 1e-9
            assert least(d, each.equivocation) == pytest.approx(closed, abs=2e-3)
            assert float(each.solution.leakage) <= each.cap + 1e-12
            rates.append(each.solution.value)
        assert rates == sorted(rates)
        # where the errors are: even for the rate, in A alone for privacy
        even = [float(corner.rate.terms[f"distortion of {bit}"]) for bit in "AB"]
        assert even == pytest.approx([d / 2, d / 2], abs=1e-3)
        first, second = (float(found[-1].solution.terms[f"distortion of {bit}"]) for bit in "AB")
        assert first == pytest.approx(min(d, 0.5), abs=2e-3)
        assert first + second == pytest.approx(d, abs=1e-6)
        # the price is the slope
        each = found[0]
        step = 1e-4
        low, high = (module.rate(d, each.equivocation + s) for s in (-step, step))
        slope = -each.solution.prices["max_leakage"]
        assert (high - low) / (2 * step) == pytest.approx(slope, rel=1e-3)

    # in CVXPY's own words
    d, each = 0.4, result.surface[0.4][0]
    cells = [(a, b) for a in (0, 1) for b in (0, 1)]
    law = np.array([[(1 - q if w == a else q) / 4 for a, _ in cells] for w in (0, 1)])
    wrong = np.array([[(a != c) + (b != e) for c, e in cells] for a, b in cells])
    k = cp.Variable((4, 4), nonneg=True)
    out = cp.sum(k, axis=0) / 4
    rate = cp.sum(cp.rel_entr(k / 4, cp.outer(np.full(4, 0.25), out))) / BITS
    leakage = cp.sum(cp.rel_entr(law @ k, cp.outer([0.5, 0.5], out))) / BITS
    rules = [cp.sum(k, axis=1) == 1, cp.sum(cp.multiply(wrong / 4, k)) <= d, leakage <= each.cap]
    problem = cp.Problem(cp.Minimize(rate), rules)
    problem.solve(solver="CLARABEL")
    assert problem.value == pytest.approx(each.solution.value, abs=1e-5)
