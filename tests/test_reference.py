"""Random codes: against brute force, letter by letter, on unlike alphabets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from cvxprivacy import reference
from tests.scripts.oracles import plogp

D = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]])  # of three letters x and two x̂


def brute(pmf, d, code):
    """Return what a code does from a table of all (wⁿ, xⁿ, zⁿ), grouped by what is known."""
    n, rows = code.read.shape[2], []
    spaces = [list(itertools.product(range(size), repeat=n)) for size in pmf.shape]
    for w, (ix, x), (iz, z) in itertools.product(spaces[0], *map(enumerate, spaces[1:])):
        p, j = math.prod(pmf[each] for each in zip(w, x, z, strict=True)), code.sent[ix, iz]
        one = zip(w, x, z, code.read[j, iz], strict=True)
        rows += [{"i": i, "w": w, "x": x, "z": z, "j": j, "p": p, "w_i": a, "x_i": b, "z_i": c,
                  "x̂_i": y} for i, (a, b, c, y) in enumerate(one)]  # fmt: skip
    table = pd.DataFrame(rows)

    def h(*names):
        """Mean over i of the entropy of what is named."""
        return -plogp(table.groupby(["i", *names])["p"].sum()) / n

    expected, recorded, before = ("j", "z"), ("x̂_i", "z_i"), h("x_i", "z_i") - h("z_i")
    table["cost"] = table["p"] * d[table["x_i"], table["x̂_i"]]
    guesses = [table["p"] * d[table["x_i"], y] for y in range(d.shape[1])]
    costs = pd.concat(guesses, axis=1).groupby([table["i"], table["j"], table["z"]]).sum()
    return reference.CodeMeasures(
        rate=math.log2(len(code.read)) / n,
        told=(h(*expected) - h("z")) / n,
        of_letters=before - (h("x_i", *expected) - h(*expected)),
        by_letters=before - (h("x_i", *recorded) - h(*recorded)),
        distortion=table["cost"].sum() / n,
        best=costs.min(axis=1).sum() / n,
        equivocation=(h("w", *expected) - h(*expected)) / n,
        left_of_letters=h("w_i", *expected) - h(*expected),
        left_by_letters=h("w_i", *recorded) - h(*recorded),
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_code_does_what_its_joint_law_says(n):
    rng = np.random.default_rng(n)
    pmf = rng.dirichlet(np.full(12, 0.7)).reshape(2, 3, 2)
    code = reference.BlockCode(rng.integers(0, 4, (3**n, 2**n)), rng.integers(0, 2, (4, 2**n, n)))
    outcome = reference.measure_code(pmf, D, code)
    assert outcome == pytest.approx(brute(pmf, D, code), abs=1e-12)
    # the converse, for any code at all
    assert outcome.rate >= outcome.told >= outcome.of_letters - 1e-12
    assert outcome.of_letters >= outcome.by_letters - 1e-12
    assert outcome.equivocation <= outcome.left_of_letters + 1e-12
    assert outcome.left_of_letters <= outcome.left_by_letters + 1e-12
    assert outcome.best <= outcome.distortion + 1e-12


def chosen(book, law, words):
    """Return the place of the first of the likeliest words, for each sequence of letters."""
    scores = [[math.fsum(math.log(law[*a, u]) for a, u in zip(word, each, strict=True))
               for each in book] for word in words]  # fmt: skip
    return [[round(s, 9) for s in row].index(round(max(row), 9)) for row in scores]


@pytest.mark.parametrize("informed", [False, True])
def test_quantise_and_bin_takes_the_likeliest_words(informed):
    rng, n = np.random.default_rng(5), 3
    joint = rng.dirichlet(np.ones(12)).reshape(2, 2, 3)
    if not informed:  # p(u | x, z) = p(u | x)
        joint = joint.sum(axis=2)[..., None] * rng.dirichlet(np.ones(3), 2)[:, None]
    reading = np.array([[0, 0], [0, 1], [1, 1]])
    binned, full = reference.quantise_and_bin(joint, reading, n, seed=2)

    p_u, p_zu, p_xz = joint.sum(axis=(0, 1)), joint.sum(axis=0), joint.sum(axis=2)
    information = plogp(joint) - plogp(p_xz) - plogp(p_u)
    outcome = plogp(p_zu) - plogp(p_zu.sum(axis=1)) - plogp(p_u)
    assert len(full.read) == math.ceil(2 ** (n * information))
    assert len(binned.read) == math.ceil(2 ** (n * (information - outcome)))
    # the words and their bins, as they were drawn
    draw = np.random.default_rng([2, n])
    book = draw.choice(3, p=p_u, size=(len(full.read), n))
    bin_of = draw.permutation(len(book)) % len(binned.read)
    words = list(itertools.product((0, 1), repeat=n))
    pairs = [list(zip(x, z, strict=True)) for x in words for z in words]
    places = np.reshape(chosen(book, joint / p_u / p_xz[..., None], pairs), (8, 8))
    assert (full.sent == places).all()
    assert (binned.sent == bin_of[places]).all()
    if not informed:
        assert (full.sent == full.sent[:, :1]).all()
    for j in range(len(binned.read)):
        members = np.flatnonzero(bin_of == j)
        taken = members[chosen(book[members], p_zu / p_u, [[(a,) for a in z] for z in words])]
        assert (binned.read[j] == reading[book[taken], words]).all()
    assert (full.read[0] == reading[book[0], words]).all()

    # what a bin hides beside the word is what it leaves open (28b)
    pmf = rng.dirichlet(np.ones(2), 4).T.reshape(2, 2, 2) * p_xz
    some, all_ = (reference.measure_code(pmf, 1 - np.eye(2), code) for code in (binned, full))
    assert -1e-12 <= some.equivocation - all_.equivocation <= all_.told - some.told + 1e-12
    # with a bin for each word nothing is mistaken
    wide, same = reference.quantise_and_bin(joint, reading, n, seed=2, margin=outcome + 1)
    assert reference.measure_code(pmf, 1 - np.eye(2), wide)[1:] == pytest.approx(
        reference.measure_code(pmf, 1 - np.eye(2), same)[1:], abs=1e-12
    )


def test_every_z_has_a_book_of_its_own():
    joint = np.random.default_rng(6).dirichlet(np.ones(8)).reshape(2, 2, 2)
    joint[:, 1] = [[0.3, 0.0], [0.2, 0.0]]  # given z = 1, x̂ is 0
    code = reference.books_by_side_information(joint, 3, seed=1)
    words = np.array(list(itertools.product((0, 1), repeat=3)))
    assert (code.read[:, words == 1] == 0).all()
    assert 0 < code.read[:, words == 0].mean() < 1
    law = joint / joint.sum()
    p_zu, p_xz = law.sum(axis=0), law.sum(axis=2)
    information = plogp(law) + plogp(p_xz.sum(axis=0)) - plogp(p_xz) - plogp(p_zu)
    assert len(code.read) == math.ceil(2 ** (3 * information))
    value = np.maximum(law / np.where(p_zu > 0, p_zu, 1), 1e-300)
    for place, z in enumerate(words):
        pairs = [list(zip(x, z, strict=True)) for x in words]
        assert (code.sent[:, place] == chosen(code.read[:, place], value, pairs)).all()
