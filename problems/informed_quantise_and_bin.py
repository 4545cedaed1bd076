"""What do codes of short blocks gain whose encoder knows the side information too?

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013), Theorem 3: encoder and user know zⁿ.

    minimise    I(X; X̂ | Z)                                        over p(x̂ | x, z)
    subject to  E d(X, X̂) ≤ D                 d counts wrong bits

with source and design of quantise_and_bin.py.  Two random codes of n records are measured exactly:

* bins (-A3): 2^{n I(X, Z; X̂)} words x̂ⁿ from p(x̂); (xⁿ, zⁿ) is replaced by the likeliest word,
  whose bin J is sent, one of 2^{n I(X; X̂ | Z)}; the user takes the likeliest word of the bin;
* books: for each zⁿ a book of 2^{n I(X; X̂ | Z)} words from p(x̂ | z), the likeliest of which is
  sent by its number J.  There are no bins, and (36), H(X̂ⁿ | J, Zⁿ)/n → 0, holds with 0.

The converse (eqs. 29–35) holds step by step for each code, D its own distortion:

    rate ≥ H(J | Zⁿ)/n ≥ Σ I(X_i; X̂_i | Z_i)/n ≥ R(D)
    H(Wⁿ | J, Zⁿ)/n ≤ Σ H(W_i | X̂_i, Z_i)/n ≤ Γ(D)

Learn: that words fitted to zⁿ come to the region sooner than bins; that released letters, each by
itself, may look optimal while the index tells more than they do, which is what short blocks waste.

    python problems/informed_quantise_and_bin.py  # and writes output/informed_quantise_and_bin.png
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.reference import books_by_side_information, measure_code, quantise_and_bin
from cvxprivacy.study import claim, run

NOISE, P0, TARGET = 0.1, 0.25, 0.07  # from W to X, from X to Z, and D of the design
TO_X, TO_Z = (np.array([[1 - p, p], [p, 1 - p]]) for p in (NOISE, P0))
RATES = ["rate", "H(J|Zⁿ)/n", "ΣI(X_i;X̂_i|Z_i)/n", "R(D)"]
LEFT = ["H(Wⁿ|J,Zⁿ)/n", "ΣH(W_i|X̂_i,Z_i)/n", "Γ(D)"]
COLORS = {"bins": style.VERMILION, "books": style.GREEN}


def study(*, quick: bool = False):
    """Draw codes of both kinds, and solve for the region; ``quick`` takes fewer."""
    source = cpv.DiscreteSource(np.einsum("wx,xz->wxz", TO_X / 2, TO_Z))
    problems = [cpv.RateDistortionEquivocation(source, cpv.hamming(2), TARGET, minimize=kind,
                side_information="both") for kind in ("rate", "leakage")]  # fmt: skip
    design = problems[0].solve()
    least, leak = (cpv.frontier(each, tol=1e-3 if quick else 1e-4).outer for each in problems)
    joint = source.pmf.sum(axis=0)[:, :, None] * design.channel.matrix.reshape(2, 2, 2)
    rows = []
    for n, seed in product((2, 3, 5, 7) if quick else range(2, 11), range(4)):
        books = 2 * [books_by_side_information(joint.round(6), n, seed=seed)]  # words are sent
        bins = quantise_and_bin(joint.round(6), [[0, 0], [1, 1]], n, seed=seed)
        for name, pair in zip(COLORS, (bins, books), strict=True):
            c, word = (measure_code(source.pmf, 1 - np.eye(2), code) for code in pair)
            rows.append([name, n, c.distortion, c.rate, c.told, c.by_letters, c.equivocation,
                         c.left_by_letters, word.told - c.told])  # fmt: skip
    codes = pd.DataFrame(rows, columns=["code", "n", "D", *RATES[:3], *LEFT[:2], "H(X̂ⁿ|J,Zⁿ)/n"])
    codes["R(D)"], codes["Γ(D)"] = least(d := codes["D"].clip(upper=P0)), 1 - leak(d)
    return SimpleNamespace(design=design, least=least, leak=leak, codes=codes)


def report(result):
    """Compare the codes with the region, and with each other."""
    yield result.design
    codes, means = result.codes, result.codes.groupby(["code", "n"]).mean().round(4)
    yield f"\n{len(codes)} codes, means of four [bits per record]"
    yield from (means[["D", *RATES]], means[[*LEFT, "H(X̂ⁿ|J,Zⁿ)/n"]])
    closed = np.subtract(*(cpv.information.entropy([p, 1 - p]) for p in (P0, TARGET)))
    yield claim(f"R({TARGET:g}) [bits]", result.design, closed, "h(0.25) − h(D)")
    step, gain = -codes[RATES].diff(axis=1), codes[LEFT].diff(axis=1)
    yield claim("least step in the rates", np.nanmin(step).round(9), "≥ 0", "(29)–(31)")
    yield claim("least step in the equivocations", np.nanmin(gain).round(9), "≥ 0", "(32)–(35)")


def draw(result):
    """Draw the codes in the region, and how far inside they are."""
    figure, axes = style.panels("rate, $R(D)$", r"equivocation, $\Gamma(D)$", "distance to them")
    codes, fine = result.codes.rename(columns={LEFT[0]: "equivocation"}), np.linspace(0, P0, 100)
    bounds = result.least(fine), 1 - result.leak(fine)
    for ax, y, bound in zip(axes, ("rate", "equivocation"), bounds, strict=False):
        ax.plot([*fine, 0.4], [*bound, bound[-1]], color=style.BLUE)
        for (name, some), sign in zip(codes.groupby("code"), "os", strict=True):
            ax.scatter(some["D"], some[y], 2 * some["n"], COLORS[name], marker=sign, alpha=0.6)
        ax.set(xlabel="distortion [wrong bits]", ylabel=f"{y} [bits per record]", xlim=(0, 0.4))
    axes[1].text(0.4, 0.5, "larger signs: longer blocks", ha="right")
    for x, sign, (name, color) in zip((0.23, 0.12), "os", COLORS.items(), strict=True):
        axes[0].text(x, 0.58, name, color=color)
        some = codes[codes["code"] == name].groupby("n").mean(numeric_only=True)
        axes[2].plot(some["rate"] - some["R(D)"], sign + "-", ms=3, color=color)
        axes[2].plot(some["Γ(D)"] - some["equivocation"], sign + "--", ms=3, color=color)
    axes[2].text(2, 0.55, "solid: rate above $R(D)$,\ndashed: equivocation below Γ($D$)")
    axes[2].set(xlabel="block length $n$", ylabel="distance [bits per record]", ylim=(0, 0.65))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
