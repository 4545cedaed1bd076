"""How close do codes of short blocks come to the rate-distortion-equivocation region?

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013) prove Theorem 2 with a *quantise-and-bin* code
for n records at once: draw 2^{n I(X; U)} words uⁿ from p(u), replace xⁿ by the likeliest word,
deal the words into 2^{n I(X; U | Z)} bins, and send the number J of the bin; a user who knows zⁿ
takes the likeliest word of the bin and reads x̂_i = f(u_i, z_i).  p(u | x) and f are those of

    minimise    I(X; U | Z)                                        over p(u | x), f
    subject to  E d(X, X̂) ≤ D                 d counts wrong bits

for X = W + noise, Z = X + noise (mod 2), W a fair bit.  Each code is measured exactly, by visiting
all 2ⁿ words of W, X and Z: D is its own distortion, D* that of the best reader of J and zⁿ, and
with U_i = (J, zⁿ of the other records) each step of the converse may cost something:

    rate ≥ H(J | Zⁿ)/n ≥ Σ I(X_i; U_i | Z_i)/n ≥ R(D*) ≥ R(D)
    H(Wⁿ | J, Zⁿ)/n ≤ Σ H(W_i | U_i, Z_i)/n ≤ Γ(D*) ≤ Γ(D)

Learn: that the region is a limit for long blocks, and what each step costs short ones.  Privacy and
distortion need no blocks: p(u | x) record by record has distortion D and equivocation Γ(D).

    python problems/quantise_and_bin.py       # prints, and writes output/quantise_and_bin.png
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.reference import measure_code, quantise_and_bin
from cvxprivacy.study import claim, run

NOISE, P0, TARGET = 0.1, 0.25, 0.07  # from W to X, from X to Z, and D of the design
TO_X, TO_Z = (np.array([[1 - p, p], [p, 1 - p]]) for p in (NOISE, P0))
RATES = ["rate", "H(J|Zⁿ)/n", "ΣI(X_i;U_i|Z_i)/n", "R(D*)", "R(D)"]
LEFT = ["H(Wⁿ|J,Zⁿ)/n", "ΣH(W_i|U_i,Z_i)/n", "Γ(D*)", "Γ(D)"]
LOST = ["unused rate", "step to single records", "off the boundary", "words mistaken"]


def study(*, quick: bool = False):
    """Draw codes, with a margin in the rate of the bins and without; ``quick`` takes fewer."""
    source = cpv.DiscreteSource(np.einsum("wx,xz->wxz", TO_X / 2, TO_Z))
    problems = [cpv.RateDistortionEquivocation(source, cpv.hamming(2), TARGET, minimize=kind,
                side_information="decoder") for kind in ("rate", "leakage")]  # fmt: skip
    design = problems[0].solve()
    least, leak = (cpv.frontier(each, tol=1e-4).outer for each in problems)
    used = np.flatnonzero(design.channel.released_marginal > 1e-3)
    joint = source.pmf.sum(axis=0)[:, :, None] * design.channel.matrix[:, None, used]
    reading = [design.channel.decoder.table[u] for u in used]
    rows = []
    for n, seed, margin in product((2, 3, 5, 7) if quick else range(2, 11), range(4), (0, 0.1)):
        codes = quantise_and_bin(joint.round(6), reading, n, seed=seed, margin=margin)  # so that
        j, u = (measure_code(source.pmf, 1 - np.eye(2), code) for code in codes)  # equals tie
        rows.append([margin, n, u.distortion, j.distortion, j.best, *j[:3], j.equivocation,
                     j.left_of_letters, u.told - j.told])  # fmt: skip
    names = ["margin", "n", "word's D", "D", "D*", *RATES[:3], *LEFT[:2], "H(Uⁿ|J,Zⁿ)/n"]
    codes = pd.DataFrame(rows, columns=names)
    for d in ("D*", "D"):
        codes[f"R({d})"], codes[f"Γ({d})"] = least(x := codes[d].clip(upper=P0)), 1 - leak(x)
    return SimpleNamespace(design=design, least=least, leak=leak, codes=codes)


def report(result):
    """Say how far inside the codes are, and why."""
    yield result.design
    codes, means = result.codes, result.codes.groupby(["margin", "n"]).mean().round(4)
    yield f"\n{len(codes)} codes, means of four; margin: added to the rate of the bins [bits]"
    yield from (means[["word's D", "D", "D*", *RATES]], means[[*LEFT, "H(Uⁿ|J,Zⁿ)/n"]])
    step, gain = -codes[RATES].diff(axis=1), codes[LEFT].diff(axis=1)
    yield claim("least step in the rates", np.nanmin(step).round(9), "≥ 0", "(19)–(23)")
    yield claim("least step in the equivocations", np.nanmin(gain).round(9), "≥ 0", "(24)–(26)")
    fair, gamma = float(result.design.equivocation), 1 - result.leak(TARGET)
    yield claim("record by record: equivocation", fair, gamma, "(11b)", within=1e-4)


def draw(result):
    """Draw the codes in the region, and the parts of the rate that is lost."""
    figure, axes = style.panels("rate, $R(D)$", "Γ($D$); star: record by record", "lost, no margin")
    codes, fine = result.codes.rename(columns={LEFT[0]: "equivocation"}), np.linspace(0, P0, 100)
    bounds = {"rate": result.least(fine), "equivocation": 1 - result.leak(fine)}
    for ax, (y, bound), at in zip(axes, bounds.items(), ((0.43, 0.66), (0.69, 0.62)), strict=False):
        ax.plot([*fine, 0.4], [*bound, bound[-1]], color=style.BLUE)
        dots = ax.scatter(codes["D"], codes[y], 9, codes["n"], cmap=style.MAP)
        ax.set(xlabel="distortion [wrong bits]", ylabel=f"{y} [bits per record]", xlim=(0, 0.4))
        ax.text(0.4, at[0], "no margin", ha="right")
        ax.text(0.4, at[1], "margin 0.1", ha="right")
    figure.colorbar(dots, ax=axes[1], label="block length $n$")
    axes[1].plot(TARGET, float(result.design.equivocation), **style.OPTIMUM)
    means = codes[codes["margin"] == 0].groupby("n")[RATES].mean()
    for left, color, hatch in zip(RATES[:0:-1], style.PALETTE[2:], "x/.-", strict=False):
        axes[2].bar(means.index, means["rate"] - means[left], color=color, hatch=3 * hatch)
    axes[2].legend(LOST[::-1])
    axes[2].set(xlabel="block length $n$", ylabel="lost rate [bits per record]", ylim=(0, 0.8))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
