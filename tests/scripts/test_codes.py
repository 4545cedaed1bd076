"""The scripts on codes of several records, and on what a bit costs."""

from __future__ import annotations

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.reference import books_by_side_information, measure_code, quantise_and_bin
from tests import referee
from tests.lengths import rest_at_length
from tests.scripts.oracles import h, star
from tests.test_reference import brute

Q, P0, D = 0.1, 0.25, 0.07
LAW = np.einsum("wx,xz->wxz", [[1 - Q, Q], [Q, 1 - Q]], [[1 - P0, P0], [P0, 1 - P0]]) / 2


def check_region(result, rate, ends):
    """Compare what bounds the codes with closed forms, as far as these go."""
    d = np.linspace(0.001, ends, 30)
    exact = [rate(x) for x in d]
    assert (result.least(d) <= exact).all()
    assert result.least(d) == pytest.approx(exact, abs=2e-3)
    assert 1 - result.leak(0.0) == pytest.approx(h(Q), abs=2e-3)
    assert 1 - result.leak(P0) == pytest.approx(h(star(Q, P0)), abs=2e-3)
    for row in result.codes.itertuples():  # what is sent cannot tell less of W than nothing
        assert h(Q) - 1e-12 <= row[list(result.codes).index("H(Wⁿ|J,Zⁿ)/n") + 1]
    assert (result.codes["H(Wⁿ|J,Zⁿ)/n"] <= h(star(Q, P0)) + 1e-12).all()


@pytest.mark.long
def test_script_quantise_and_bin(run):
    ran = run("problems/quantise_and_bin", "--quick")
    assert ran.differing == set()
    result = ran.result
    referee.check(result.design)
    assert result.design.rate == pytest.approx(h(star(P0, D)) - h(D), abs=1e-6)
    # constant strategies up to where the chord begins
    check_region(result, lambda d: h(star(P0, d)) - h(d), 0.088)

    # U is X through noise of D, read as it is: a code of three letters, from its joint law
    used = np.flatnonzero(result.design.channel.released_marginal > 1e-3)
    reading = np.array([result.design.channel.decoder.table[u] for u in used])
    assert sorted(reading.tolist()) == [[0, 0], [1, 1]]
    noisy = np.where(reading[:, 0] == np.arange(2)[:, None], 1 - D, D)
    joint = np.einsum("xz,xu->xzu", LAW.sum(axis=0), noisy)
    for margin in (0.0, 0.1):
        codes = quantise_and_bin(joint, reading, 3, seed=1, margin=margin)
        code, word = (brute(LAW, 1 - np.eye(2), each) for each in codes)
        row = result.codes[result.codes["margin"] == margin].query("n == 3").iloc[1]
        theory = [code.rate, code.told, code.of_letters, code.distortion, code.best,
                  word.distortion, code.equivocation, code.left_of_letters,
                  word.told - code.told]  # fmt: skip
        names = ["rate", "H(J|Zⁿ)/n", "ΣI(X_i;U_i|Z_i)/n", "D", "D*", "word's D",
                 "H(Wⁿ|J,Zⁿ)/n", "ΣH(W_i|U_i,Z_i)/n", "H(Uⁿ|J,Zⁿ)/n"]  # fmt: skip
        assert row[names].tolist() == pytest.approx(theory, abs=1e-12)
        for d in ("D*", "D"):  # the converse, each bound solved for anew
            for kind, name in (("rate", f"R({d})"), ("leakage", f"Γ({d})")):
                solved = at(row[d], kind, "decoder")
                assert (row[name] if kind == "rate" else 1 - row[name]) <= solved.upper + 1e-9
                assert row[name] == pytest.approx(
                    solved.value if kind == "rate" else 1 - solved.value, abs=2e-4
                )

    # blocks this short are far inside, and a margin makes mistakes rare
    long = result.codes[result.codes["n"] >= 3]
    assert (long["rate"] - long["R(D)"]).min() > 0.1
    assert (long["Γ(D)"] - long["H(Wⁿ|J,Zⁿ)/n"]).min() > 0.05
    unknown = long.groupby("margin")["H(Uⁿ|J,Zⁿ)/n"].mean()
    assert unknown[0.1] < 0.5 * unknown[0.0]

    # record by record: on the boundary, from the channel's own words
    law = np.einsum("wxz,xu->wuz", LAW, result.design.channel.matrix)
    left = cpv.information.entropy(law.ravel()) - cpv.information.entropy(law.sum(axis=0).ravel())
    assert left == pytest.approx(float(result.design.equivocation), abs=1e-9)


def at(d, kind, who):
    """Solve at this distortion."""
    source = cpv.DiscreteSource(LAW)
    return cpv.RateDistortionEquivocation(
        source, cpv.hamming(2), min(float(d), P0), minimize=kind, side_information=who
    ).solve()


@pytest.mark.long
def test_script_informed_quantise_and_bin(run):
    ran = run("problems/informed_quantise_and_bin", "--quick")
    assert ran.differing == set()
    result = ran.result
    referee.check(result.design)
    assert result.design.value == pytest.approx(h(P0) - h(D), abs=1e-6)
    check_region(result, lambda d: h(P0) - h(d), P0)

    # X given X̂ and Z: noise of D, whatever Z
    joint = LAW.sum(axis=0)[:, :, None] * result.design.channel.matrix.reshape(2, 2, 2)
    assert joint.sum(axis=1)[0, 1] + joint.sum(axis=1)[1, 0] == pytest.approx(D)
    names = ["rate", "H(J|Zⁿ)/n", "ΣI(X_i;X̂_i|Z_i)/n", "D", "H(Wⁿ|J,Zⁿ)/n",
             "ΣH(W_i|X̂_i,Z_i)/n", "H(X̂ⁿ|J,Zⁿ)/n"]  # fmt: skip
    bins = quantise_and_bin(joint.round(6), [[0, 0], [1, 1]], 3, seed=2)
    book = books_by_side_information(joint.round(6), 3, seed=2)
    for name, pair in (("bins", bins), ("books", (book, book))):
        code, word = (brute(LAW, 1 - np.eye(2), each) for each in pair)
        row = result.codes[result.codes["code"] == name].query("n == 3").iloc[2]
        theory = [code.rate, code.told, code.by_letters, code.distortion, code.equivocation,
                  code.left_by_letters, word.told - code.told]  # fmt: skip
        assert row[names].tolist() == pytest.approx(theory, abs=1e-12)
        assert row["R(D)"] == pytest.approx(at(row["D"], "rate", "both").value, abs=2e-3)
        assert row["Γ(D)"] == pytest.approx(1 - at(row["D"], "leakage", "both").value, abs=2e-3)

    # of one rate, a book for each z comes nearer than bins, and its letters look optimal
    means = result.codes.groupby(["code", "n"]).mean()
    bins, books = means.loc["bins"], means.loc["books"]
    assert (bins["rate"] == books["rate"]).all()
    assert (books["D"] < bins["D"]).all()
    assert (books["H(X̂ⁿ|J,Zⁿ)/n"] == 0).all()
    assert books["ΣI(X_i;X̂_i|Z_i)/n"][7] - books["R(D)"][7] < 0.02
    assert measure_code(LAW, 1 - np.eye(2), book).best <= code.distortion + 1e-12


# ---- the price of a bit ------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("constants", rest_at_length([{"TOL": 2e-3}, {}], 1))
def test_script_what_does_a_bit_cost(run, constants):
    ran = run("problems/what_does_a_bit_cost", **constants)
    assert ran.differing == set()
    result = ran.result

    # facts of the 592 students, known beforehand
    source = result.source
    assert source.records == 592
    assert source.p_x * 592 == pytest.approx([108, 286, 71, 127])
    assert source.p_w * 592 == pytest.approx([220, 215, 93, 64])

    curve, inverse, chosen = result.curve, result.inverse, result.chosen
    assert curve.band <= ran.module.TOL
    for point in curve.points[1::6]:
        referee.check(point.solution)
    referee.check(chosen)
    # everybody under the commonest hair colour tells nothing, and costs 1 − 286/592
    assert curve.points[-1].x <= 1 - 286 / 592 + 1e-12
    assert curve.points[-1].upper <= 1e-9
    assert curve.inner(0.0) == pytest.approx(source.information(), abs=1e-6)
    # a line of four points is below, a chord above
    shares = np.linspace(*curve.solved_range, 50)
    assert (result.coarse.outer(shares) <= curve.inner(shares) + 1e-12).all()
    assert (result.coarse.inner(shares) >= curve.outer(shares) - 1e-12).all()

    # the two programs are one curve: inverse functions, with inverse prices
    for share in (0.03, 0.1, 0.17):
        bits = (curve.inner(share) + curve.outer(share)) / 2
        assert inverse.outer(bits) - 2e-3 <= share <= inverse.inner(bits) + 2e-3
        forth, back = curve.price(share), inverse.price(bits)
        assert float(forth) * float(back) == pytest.approx(1.0, rel=0.1)

    # the optimality conditions, recomputed from the channel alone
    channel, price = chosen.channel.matrix, -chosen.prices["budget"]
    joint = source.pmf @ channel
    information = np.log2(joint / np.outer(source.p_w, joint.sum(axis=0)))
    cost = (source.pmf / source.p_x).T @ information + price * (1 - np.eye(4))
    reduced = cost - cost.min(axis=1, keepdims=True)
    assert reduced == pytest.approx(np.asarray(chosen.duals["floor"]), abs=1e-6)
    assert (channel * reduced).max() < 1e-7
    assert (reduced[channel < 1e-9] > 0.01).all()
    assert joint / joint.sum(axis=0) == pytest.approx(chosen.posteriors["W"], abs=1e-6)
    slope = (curve.inner(0.1 + 0.02) - curve.inner(0.1 - 0.02)) / 0.04
    assert -price == pytest.approx(slope, rel=0.02)
