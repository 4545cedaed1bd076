"""What does a bit of privacy cost?

592 students by eye colour and hair colour (Snee, The American Statistician 28(1), 1974).  Eyes are
confidential, W; hair is released, X; some students are listed under another hair colour, X̂.

    minimise    I(W; X̂)          what hair still says about eyes, in bits
    subject to  P(X̂ ≠ X) ≤ D     the share of students whose hair is changed        over p(x̂ | x)

Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. (3) and Theorem 1: R(D) is
convex and non-increasing.  Its slope is the price: one more student in a hundred changed removes
−R'(D)/100 bits.  Read the other way (least D under I(W; X̂) ≤ b) the price is the inverse, and is
what the title asks: the share of students that the next bit costs.

Learn
-----
* a curve with a guarantee: chords of solved points lie above it, since releases can be mixed;
  the line of each point's multiplier lies below it, since the dual bound is affine in D.  Where
  lines and chords are farthest apart the next point is solved;
* the multiplier of the budget *is* the slope of the curve: the price of the number you typed.
  Where the set of moves in use changes, the curve may have a kink and the price jumps;
* the optimality conditions (Karush, Kuhn, Tucker) as a picture: a move x → x̂ is made only if its
  reduced cost is zero.  Moving hair x to x̂ costs λ for the change plus what x̂ then tells,
  Σ_w p(w|x) log p(w|x̂)/p(w); each hair colour uses only its cheapest moves.

    python problems/what_does_a_bit_cost.py   # prints, and writes output/what_does_a_bit_cost.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import cvxprivacy as cpv

# ---- data --------------------------------------------------------------------------------

HAIR = ("black", "brown", "red", "blond")
EYES = {  # students, by hair
    "brown": (68, 119, 26, 7),
    "blue": (20, 84, 17, 94),
    "hazel": (15, 54, 14, 10),
    "green": (5, 29, 14, 16),
}
SHARE = 0.1  # of the students, for the release that is looked at closely
TOL = 1e-4  # bits
BLUE, RED, GREY = "#0072B2", "#D55E00", "#777777"


@dataclass
class Study:
    """The curve in both directions, a coarse one that shows how it is made, and one release."""

    source: cpv.DiscreteSource
    curve: cpv.Frontier  # least leakage at a budget
    inverse: cpv.Frontier  # least distortion at a leakage
    coarse: cpv.Frontier
    chosen: cpv.Solution

    @property
    def reduced(self) -> np.ndarray:
        """Reduced cost of each move x → x̂, in bits per student of hair x: ≥ 0 at an optimum."""
        return np.asarray(self.chosen.duals["floor"])

    def residuals(self) -> dict[str, float]:
        """Return the optimality conditions, each computed from the solution's parts."""
        solution, budget = self.chosen, SHARE
        channel, p_x, p_w = solution.channel.matrix, self.source.p_x, self.source.p_w
        price = -solution.prices["budget"]
        told = np.log2(solution.posteriors["W"] / p_w[:, None])  # log p(w|x̂)/p(w)
        given = self.source.pmf / p_x  # p(w|x)
        cost = given.T @ told + price * (1 - np.eye(len(HAIR)))
        spent = float(p_x @ (channel * (1 - np.eye(len(HAIR)))).sum(axis=1))
        least = cost.min(axis=1, keepdims=True)
        joint = given @ (p_x[:, None] * channel)
        return {
            "primal: P(X̂ ≠ X) − D": spent - budget,
            "dual: least multiplier": min(price, 0.0),
            "stationarity: posteriors of the dual − of the release": float(
                np.abs(joint / joint.sum(axis=0) - solution.posteriors["W"]).max()
            ),
            "complementarity: price × unspent budget": price * (budget - spent),
            "complementarity: Σ p(x̂|x) × reduced cost": float(
                (p_x[:, None] * channel * (cost - least)).sum()
            ),
        }


def study() -> Study:
    """Solve everything."""
    source = cpv.DiscreteSource.from_counts(
        list(EYES.values()), w=list(EYES), x=HAIR, names=["eyes", "hair"]
    )
    problem = cpv.PrivacyDistortion(source, cpv.hamming(HAIR), budget=SHARE)
    other = cpv.MinimumDistortion(source, cpv.hamming(HAIR), [cpv.LeakageCap(0.05)])
    curve = cpv.frontier(problem, tol=TOL)
    first, last = curve.solved_range
    return Study(
        source=source,
        curve=curve,
        inverse=cpv.frontier(other, "leakage_cap", tol=1e-3),
        coarse=cpv.frontier(problem, points=np.linspace(first, last, 4)),
        chosen=problem.solve(accuracy="high"),
    )


def report(result: Study) -> str:
    """Say what a bit costs."""
    source, curve, inverse = result.source, result.curve, result.inverse
    before = source.information()
    lines = [
        f"{source.records} students: hair tells {before:.4f} bits about eyes, of which about "
        f"{source.bias():.4f} is small-sample bias",
        f"{curve}",
        "",
        "changed   bits left           one more student in 100    the next 0.001 bit costs",
    ]
    for share in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4):
        price = curve.price(share)
        low, high = -price.upper / 100, -price.lower / 100
        few, many = (source.records / 1e5 / removed for removed in (high, low))
        lines.append(
            f"  {share:4.0%}    {curve.outer(share):.5f}–{curve.inner(share):.5f}    removes "
            f"{low:.5f}–{high:.5f}    {few:.2f} to {many:.2f} students"
        )
    places = [point for point in curve.points if np.isfinite(point.price)]
    left, right = max(pairwise(places), key=lambda pair: pair[1].price - pair[0].price)
    lines.append(
        f"a kink: between D = {left.x:.4f} and {right.x:.4f} the price falls from "
        f"{-left.price:.3f} to {-right.price:.3f}"
    )
    lines += ["", "the same curve, read the other way: to leave at most"]
    for left in (0.75, 0.5, 0.25, 0.1):
        bits = left * before
        low, high = inverse.outer(bits), inverse.inner(bits)
        lines.append(f"  {left:4.0%} of the bits, {low:.2%} to {high:.2%} of the students change")
    lines += [
        "",
        f"the release at D = {SHARE:.0%}: {result.chosen.status}, price "
        f"{result.chosen.prices['budget']:.4f} bits per unit of D",
        *(f"  {name:<55}{value:+.1e}" for name, value in result.residuals().items()),
    ]
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw curve and lines, the price, and the optimality conditions."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 3, figsize=(16, 5), layout="constrained", width_ratios=(1.1, 1, 1.1)
    )
    curve, coarse = result.curve, result.coarse
    first, last = curve.points[0].x, curve.points[-1].x
    fine = np.linspace(first, last, 400)

    ax = axes[0]
    top = max(point.upper for point in coarse.points)
    for point in coarse.points[1:]:
        line = point.upper + point.price * (fine - point.x)
        ax.plot(fine, np.where(line > -0.1 * top, line, np.nan), color=GREY, lw=0.9)
    ax.fill_between(
        fine, coarse.outer(fine), coarse.inner(fine), color=BLUE, alpha=0.2, lw=0,
        label="from 4 points: chords above, lines below",
    )  # fmt: skip
    ax.plot(fine, curve.inner(fine), color=BLUE, lw=1.8,
            label=f"from {len(curve.points)}: band ≤ {curve.band:.0e} bits")  # fmt: skip
    ax.plot([p.x for p in coarse.points], [p.upper for p in coarse.points], "o", color=BLUE)
    ax.set(xlabel="share of students changed, D", ylabel="I(eyes; released hair)   [bits]")
    ax.set(xlim=(first, last), ylim=(-0.02 * top, 1.05 * top))
    ax.legend(fontsize=9.5)
    ax.set_title("a curve with a guarantee", fontsize=11)

    ax = axes[1]
    inner = np.linspace(first, last, 300)[1:-1]
    slopes = [curve.price(x) for x in inner]
    ax.fill_between(
        inner, [-p.upper for p in slopes], [-p.lower for p in slopes], color=RED, alpha=0.35,
        lw=0, label="slope, proved from the curve",
    )  # fmt: skip
    shown = curve.points[1:-1]
    ax.plot([p.x for p in shown], [-p.price for p in shown], ".", color="#000000", ms=5,
            label="multiplier of the budget")  # fmt: skip
    ax.set(xlabel="share of students changed, D", ylabel="price −R'(D)   [bits per unit of D]")
    ax.set(xlim=(first, last), ylim=(0, 1.15 * max(-p.price for p in shown)))
    ax.legend(fontsize=9.5)
    ax.set_title("its slope is the price", fontsize=11)

    ax = axes[2]
    channel, reduced = result.chosen.channel.matrix, result.reduced
    ax.imshow(channel, cmap="Blues", vmin=0, vmax=1)
    for (x, y), share in np.ndenumerate(channel):
        used = share > 1e-6
        said = f"p = {share:.3f}\ncost 0" if used else f"p = 0\ncost +{reduced[x, y]:.3f}"
        ax.text(y, x, said, ha="center", va="center", fontsize=10,
                color="white" if share > 0.6 else RED if not used else "black")  # fmt: skip
    ax.set_xticks(range(len(HAIR)), HAIR)
    ax.set_yticks(range(len(HAIR)), HAIR)
    ax.set(xlabel="released hair", ylabel="hair")
    ax.set_title(f"KKT at D = {SHARE:.0%}: only moves of reduced cost 0", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/what_does_a_bit_cost.png"))
    out = parser.parse_args(arguments).out
    result = study()
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
