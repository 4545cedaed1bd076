"""Fig. 4 of Sankar et al. 2013: a categorical source, what is released of it, and its U-P region.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013, Example 1.  Everything is both private and public (W = X), each
change of a letter costs the same, and the user sees X̂ alone.

    minimise    I(X; X̂)                                              over p(x̂ | x)
    subject to  Pr(X ≠ X̂) ≤ D

    p(x̂) ∝ (p(x̂) − λ)⁺,  D = Σ_x min(p(x), λ) − λ,  p(x | x̂) = λ for kept x ≠ x̂   (eqs. 16–17)
    Γ(D) = −(1 − D) log(1 − D) − (K − 1) λ log λ − Σ_{p ≤ λ} p log p               (eq. 18)

with K letters kept, and certified optima over all channels, which know nothing of water levels.

Learn: outlier suppression is what minimises leakage; letters disappear in the order of their
rarity, each at the D that its probability foretells; what becomes flat is p(x | x̂), while p(x̂)
becomes steeper; and Γ is concave: its slope, the price log((1 − D)/λ), falls as the water rises.

    python figures/sankar_fig4.py             # prints, and writes output/sankar_fig4.png
"""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

PERCENT, LETTERS = (40, 25, 15, 10, 5, 3, 2), "abcdefg"  # chosen: the text at hand lacks the law
PMF, CHOSEN = np.array(PERCENT) / 100, 0.3
COLOURS = {0.0: style.GREY, 0.1: style.ORANGE, 0.2: style.GREEN, 0.3: style.BLUE,
           0.4: style.PURPLE, 0.5: style.VERMILION}  # fmt: skip
PLACES = ((6.2, 0.019), (6.2, 0.0037), (2.4, 0.014), (1.4, 0.045), (0.4, 0.085), (0.2, 0.7))
SOLVED = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.58)  # D of channel programs


def water(budget):
    """State the closed form at D, in decimals: at D = 0.4 a letter vanishes exactly."""
    return cpv.HammingWaterFilling.from_counts(PERCENT, Fraction(str(budget)), x=LETTERS)


def study():
    """Solve all in closed form, and some as channel programs."""
    closed = {float(d): water(d).solve() for d in {*np.linspace(0, 0.6, 121).round(3), *SOLVED}}
    programs = {d: water(d).channel_problem().solve(accuracy="high") for d in SOLVED}
    vanish = [float(np.minimum(PMF, p).sum() - p) for p in PMF]
    table = pd.DataFrame({"p(x)": PMF, "gone at D": vanish}, index=list(LETTERS))
    for d in COLOURS:
        law = closed[d].release.released_marginal
        table[f"D = {d:g}"] = np.pad(law, (0, len(PMF) - len(law)))
    channel = closed[CHOSEN].release.matrix
    changed = 1 - np.pad(np.diag(channel), (0, len(PMF) - channel.shape[1]))
    posterior = PMF[:, None] * channel / (PMF @ channel)
    return SimpleNamespace(closed=dict(sorted(closed.items())), programs=programs, table=table,
                           changed=changed, posterior=posterior)  # fmt: skip


def report(result):
    """Compare with the paper."""
    entropy, before = cpv.information.entropy, cpv.information.entropy(PMF)
    yield "p(x̂) as D grows:"
    yield result.table.round(4)
    yield f"changed at D = {CHOSEN:g}, by letter: {result.changed.round(3).tolist()}\n"
    yield (program := result.programs[CHOSEN])
    for d, each in result.programs.items():
        gamma, exact = (before - each.upper, before - each.lower), result.closed[d].equivocation
        yield claim(f"Γ({d:g}) [bits]", gamma, float(exact), "eq. 18", within=1e-9)
    level, kept = float(water(CHOSEN).level), result.posterior.shape[1]
    flat = result.posterior[:kept][~np.eye(kept, dtype=bool)]
    what = f"p(x | x̂) of kept x ≠ x̂, D = {CHOSEN:g}"
    yield claim(what, (flat.min(), flat.max()), level, "eq. 17", within=1e-12)
    first, last = (result.table[f"D = {d:g}"] for d in (min(COLOURS), max(COLOURS)))
    why = f"p(a)/p(b) is {last.a / last.b:.2f}, of {first.a / first.b:.2f}: p − λ is steeper than p"
    what, h0, h1 = f"H(X̂) at D = {max(COLOURS):g}", entropy(first), entropy(last)
    yield claim(f"{what} [bits], {h0:.4f} at 0", h1, "“flattening”", "after (18)", why,
                agrees=h1 > h0)  # fmt: skip
    price, slope = -program.prices["budget"], np.log2((1 - CHOSEN) / level)
    why = f"it is log((1 − D)/λ) = {slope:.6g}; λ is a probability"
    yield claim(f"multiplier of D at {CHOSEN:g} [bits]", price, f"λ = {level:.4f}", "after (18)",
                why, agrees=abs(price - level) < 1e-3)  # fmt: skip


def draw(result):
    """Draw the released laws, the posterior, and the region."""
    figure, (left, middle, right) = style.panels(
        "law of what is released", rf"$p(x\,|\,\hat x)$, $D$ = {CHOSEN:g}", "utility and privacy",
        width_ratios=(1.2, 0.7, 1.1))  # fmt: skip
    for (d, colour), place in zip(COLOURS.items(), PLACES, strict=True):
        law = result.table[f"D = {d:g}"]
        law = law[law > 0]
        left.semilogy(law.index, law, ".-", color=colour)
        left.text(*place, f"$D$ = {d:g}", color=colour)
    left.set(xlabel="letter", ylabel=r"probability $p(\hat x)$", xlim=(-0.3, 7.8))
    middle.imshow(result.posterior, vmin=0, vmax=1, cmap=style.MAP, aspect="auto")
    for (x, y), p in np.ndenumerate(result.posterior):
        said, colour = f"{p:.2f}".lstrip("0"), "black" if p > 0.4 else "white"
        middle.text(y, x, said, ha="center", va="center", color=colour)
    middle.set(xlabel=r"released $\hat x$", ylabel="original $x$")
    middle.set(
        xticks=range(y + 1), xticklabels=LETTERS[: y + 1], yticks=range(7), yticklabels=LETTERS
    )
    budgets, values = list(result.closed), np.array([s.value for s in result.closed.values()])
    solved = np.array([s.value for s in result.programs.values()])
    before = cpv.information.entropy(PMF)
    right.fill_between(budgets, before - values, color=style.LIGHT, alpha=0.4, lw=0)
    right.plot(budgets, before - values, color=style.GREEN)
    right.plot(budgets, values, color=style.BLUE)
    right.plot(SOLVED, before - solved, "*", color=style.GREEN)
    right.plot(SOLVED, solved, "*", color=style.BLUE, clip_on=False)
    right.text(0.33, 1.85, "Γ($D$)", color=style.GREEN, ha="right")
    right.text(0.08, 1.85, "$R(D)$", color=style.BLUE)
    right.text(0.4, 1.2, "reached")
    right.set(
        xlabel=r"distortion $D$ = Pr($X \neq \hat X$)",
        ylabel="equivocation, rate [bits]",
        xlim=(0, 0.6),
        ylim=(0, 2.4),
    )
    return figure


if __name__ == "__main__":
    run(study, report, draw)
