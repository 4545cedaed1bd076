"""What does a bit of privacy cost?

592 students by eye colour and hair colour (Snee, The American Statistician 28(1), 1974).  Eyes are
confidential, W; hair is released, X; some students are listed under another hair colour, X̂.

    minimise    I(W; X̂)          what hair still says about eyes, in bits
    subject to  P(X̂ ≠ X) ≤ D     the share of students whose hair is changed        over p(x̂ | x)

Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. (3) and Theorem 1: R(D) is
convex and non-increasing.  Its slope is the price: one student in a hundred more removes −R'(D)/100
bits.  Read the other way (least D under I(W; X̂) ≤ b) its inverse is what the next bit costs.

Learn: that a curve can have a guarantee (chords of solved points lie above it, as releases can be
mixed, and the lines of their multipliers below, as the dual bound is affine in D); that the
multiplier of the budget *is* the slope; what the conditions of Karush, Kuhn and Tucker say: x → x̂
is used only if λ for the change plus what x̂ then tells, Σ_w p(w|x) log p(w|x̂)/p(w), is least.

    python problems/what_does_a_bit_cost.py   # prints, and writes output/what_does_a_bit_cost.png
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

HAIR, EYES = ["black", "brown", "red", "blond"], ["brown", "blue", "hazel", "green"]
STUDENTS = [[68, 119, 26, 7], [20, 84, 17, 94], [15, 54, 14, 10], [5, 29, 14, 16]]  # eyes × hair
SHARE, TOL = 0.1, 1e-4  # of the students, for the release that is looked at closely; bits


def study():
    """Solve for the curve in both directions, for one made of four points, and for one release."""
    source = cpv.DiscreteSource.from_counts(STUDENTS, w=EYES, x=HAIR, names=["eyes", "hair"])
    problem = cpv.PrivacyDistortion(source, cpv.hamming(HAIR), budget=SHARE)
    other = cpv.MinimumDistortion(source, cpv.hamming(HAIR), [cpv.LeakageCap(0.05)])
    curve, inverse = cpv.frontier(problem, tol=TOL), cpv.frontier(other, "leakage_cap", tol=1e-3)
    coarse = cpv.frontier(problem, points=np.linspace(*curve.solved_range, 4))
    return SimpleNamespace(source=source, curve=curve, inverse=inverse, coarse=coarse,
                           chosen=problem.solve(accuracy="high"))  # fmt: skip


def report(result):
    """Say what a bit costs, and check the optimality conditions from the release and its price."""
    source, curve, chosen = result.source, result.curve, result.chosen
    yield chosen
    yield f"\n{curve}\nhair tells {source.information():.4f} bits, bias ≈ {source.bias():.4f}\n"
    d = np.array([0.01, 0.05, 0.1, 0.2, 0.3, 0.4])
    steep = -np.array([curve.price(share).upper for share in d])  # bits per unit of D, at least
    table = np.transpose([d, curve.inner(d), steep / 100, source.records / 1000 / steep])
    names = ["D", "bits left", "1 % more removes ≥ [bits]", "0.001 bit more costs ≤ [students]"]
    yield pd.DataFrame(table, columns=names).round(4).to_string(index=False)
    a, b = max(pairwise(curve.points[1:-1]), key=lambda pair: pair[1].price - pair[0].price)
    yield f"kink: from D = {a.x:.4f} to {b.x:.4f} the price falls, {-a.price:.3f} to {-b.price:.3f}"
    channel, price, moved = chosen.channel.matrix, -chosen.prices["budget"], 1 - np.eye(len(HAIR))
    told = np.log2((joint := source.pmf @ channel) / np.outer(source.p_w, joint.sum(axis=0)))
    cost = (source.pmf / source.p_x).T @ told + price * moved  # Σ p(w|x) log p(w|x̂)/p(w) + λ
    reduced, p = cost - cost.min(axis=1, keepdims=True), source.p_x[:, None] * channel
    yield claim("Σ p(x, x̂) × reduced cost", (p * reduced).sum(), 0.0, "KKT")
    yield claim("reduced cost − dual", np.abs(reduced - chosen.duals["floor"]).max(), 0.0, "KKT")
    bits = result.inverse.outer(chosen.value), result.inverse.inner(chosen.value)
    yield claim("least D at the same bits", bits, SHARE, "eq. 3, inverse")


def draw(result):
    """Draw curve and lines, the price, and the optimality conditions."""
    figure, axes = style.panels("curve", "slope", r"$p(\hat x\,|\,x)$; with +: reduced cost")
    curve, coarse, ends = result.curve, result.coarse, result.curve.solved_range
    fine = np.linspace(*ends, 400)
    axes[0].fill_between(fine, coarse.outer(fine), coarse.inner(fine), color=style.SKY, alpha=0.4)
    for point in coarse.points:
        axes[0].axline((point.x, point.upper), slope=point.price, color=style.GREY, lw=0.8)
        axes[0].plot(point.x, point.upper, "*", ms=7, color=style.BLUE, clip_on=False)
    axes[0].plot(fine, curve.inner(fine), color=style.BLUE)
    axes[0].text(0.14, 0.11, "light: from 4 points,\nchords above and\nlines below")
    axes[0].set(ylabel="$I$(eyes; released hair) [bits]", ylim=(-0.005, 0.19))
    slopes = -np.array([[curve.price(x).lower, curve.price(x).upper] for x in fine[1:-1]])
    axes[1].fill_between(fine[1:-1], *slopes.T, color=style.VERMILION, lw=2)
    axes[1].plot(*np.transpose([(p.x, -p.price) for p in curve.points[1:-1]]), "k.", ms=2)
    axes[1].text(0.2, 1.2, "proved slope;\ndots: multipliers", color=style.VERMILION)
    axes[1].set(ylabel="price $-R'(D)$ [bits per unit of $D$]", ylim=(0, None))
    for ax in axes[:2]:
        ax.set(xlabel="$D$ [share of students changed]", xlim=ends)
    channel, reduced = result.chosen.channel.matrix, result.chosen.duals["floor"]
    axes[2].imshow(channel, vmin=0, vmax=1)
    for (x, y), share in np.ndenumerate(channel):
        said = f"{share:.2f}" if share > 1e-6 else f"+{reduced[x, y]:.2f}"
        color = style.ORANGE if share < 1e-6 else style.BLACK if share > 0.5 else "white"
        axes[2].text(y, x, said, ha="center", va="center", color=color)
    axes[2].set(xticks=range(4), yticks=range(4), xticklabels=HAIR, yticklabels=HAIR,
                xlabel=f"released hair, $D$ = {SHARE:g}", ylabel="hair")  # fmt: skip
    return figure


if __name__ == "__main__":
    run(study, report, draw)
