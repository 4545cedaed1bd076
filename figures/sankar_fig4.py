"""Fig. 4 of Sankar et al. 2013: a categorical source, what is released of it, and its U-P region.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013, Example 1.  Everything is both private and public (W = X), each
change of a letter costs the same, and the user sees X̂ alone.

    minimise    I(X; X̂)                                              over p(x̂ | x)
    subject to  Pr(X ≠ X̂) ≤ D

    p(x̂) ∝ (p(x̂) − λ)⁺,  D = Σ_x min(p(x), λ) − λ,   (eqs. 16–17)
    Γ(D) = −(1 − D) log(1 − D) − (K − 1) λ log λ − Σ_{p ≤ λ} p log p   (eq. 18)

Drawn: on the left the law of what is released as D grows; on the right the region of achievable
(D, E), E ≤ Γ(D), and the rate R(D) = H(X) − Γ(D).  Lines are the closed form, marks are certified
optima over all channels, which know nothing of water levels.

Learn: outlier suppression is what minimises leakage; letters disappear in the order of their
rarity, each at the D that its probability foretells; and Γ is concave: its slope log((1 − D)/λ),
the privacy bought by the next unit of distortion, falls as the water rises.

    python figures/sankar_fig4.py             # prints, and writes output/sankar_fig4.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

import cvxprivacy as cpv

PERCENT = (40, 25, 15, 10, 5, 3, 2)  # chosen here: the text at hand has lost the paper's law
PMF = tuple(each / 100 for each in PERCENT)
LETTERS = "abcdefg"
SHOWN = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)  # D on the left
SOLVED = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.58)  # D of the channel programs
FINE = 121  # points of the lines


@dataclass
class Both:
    """One D, solved in closed form and as a channel program."""

    closed: cpv.Solution
    program: cpv.Solution


@dataclass
class Study:
    """Everything that is drawn, in bits."""

    shown: dict[float, cpv.Solution]
    solved: dict[float, Both]
    lines: dict[float, cpv.Solution]
    limits: dict[str, float]  # D at which a letter vanishes

    @property
    def entropy(self) -> float:
        """H(X)."""
        return cpv.information.entropy(PMF)


def closed(budget: float) -> cpv.HammingWaterFilling:
    """State the closed form at D, in decimals: at D = 0.4 a letter vanishes exactly."""
    exact = Fraction(str(budget))
    return cpv.HammingWaterFilling.from_counts(PERCENT, exact, x=LETTERS)


def vanishes(letter: int) -> float:
    """Return the D whose water level is the letter's probability."""
    level = PERCENT[letter]
    return (sum(min(p, level) for p in PERCENT) - level) / 100


def study(*, quick: bool = False) -> Study:
    """Solve everything; ``quick`` solves fewer programs."""
    budgets = SOLVED[1::3] if quick else SOLVED
    return Study(
        shown={budget: closed(budget).solve() for budget in SHOWN},
        solved={
            budget: Both(
                closed(budget).solve(), closed(budget).channel_problem().solve(accuracy="high")
            )
            for budget in budgets
        },
        lines={
            float(budget): closed(budget).solve()
            for budget in np.linspace(0, 1 - PMF[0], 31 if quick else FINE)
        },
        limits={letter: vanishes(i) for i, letter in enumerate(LETTERS)},
    )


def released(solution: cpv.Solution) -> np.ndarray:
    """Return p(x̂) of all letters, those never released included."""
    release = solution.release
    law = dict(zip(release.outputs, release.released_marginal.tolist(), strict=True))
    return np.array([law.get(letter, 0.0) for letter in LETTERS])


def report(result: Study) -> str:
    """Compare with what the paper says."""
    gone = {budget: LETTERS[len(s.release.kept) :] or "none" for budget, s in result.shown.items()}
    lines = [
        "Fig. 4 of Sankar et al. 2013 (bits)",
        "",
        "paper: the first subplot shows increased suppression of outliers as D grows",
        f"here:  p = {PMF} on {', '.join(LETTERS)}; the alphabet and law of the paper's figure are "
        "lost in the text at hand",
        "       letters that are never released: "
        + "; ".join(f"D = {budget:g}: {letters}" for budget, letters in gone.items() if budget),
        "       a letter of probability p vanishes at D = Σ min(p(x), p) − p: "
        + ", ".join(f"{x} {d:.3g}" for x, d in reversed(result.limits.items()) if x not in "ab"),
        "why:   the same.  (Of the two likeliest letters b stays until D = 1 − p(a) = "
        f"{1 - PMF[0]:g}, where all is lost)",
        "",
        "paper: the law of X̂ is “flattened”",
        "here:  not of the letters that are kept: H(X̂) falls from "
        f"{result.entropy:.4f} to "
        f"{cpv.information.entropy(released(result.shown[SHOWN[-1]])):.4f} at D = {SHOWN[-1]:g}, "
        "and p(x̂ = a) rises from "
        f"{PMF[0]:g} to {released(result.shown[SHOWN[-1]])[0]:.3f}",
        "why:   p(x̂) ∝ (p(x̂) − λ)⁺ cuts the tail off and makes the rest steeper.  What is flat is "
        "p(x | x̂): it is λ for every kept x ≠ x̂",
        "",
        "paper: the second subplot shows the whole U-P region, E ≤ Γ(D) of eq. (18)",
        "here:       D    Γ(D), closed form    Γ(D), proved by the channel program    R(D)",
    ]
    for budget, both in result.solved.items():
        least, most = (result.entropy - end for end in (both.program.upper, both.program.lower))
        lines.append(
            f"         {budget:.2f}        {float(both.closed.equivocation):.9f}        "
            f"[{least:.9f}, {most:.9f}]         {both.closed.value:.9f}"
        )
    both = result.solved.values()
    apart = sum(b.closed.lower > b.program.upper or b.program.lower > b.closed.upper for b in both)
    first = max(b.closed.gap for b in both)
    second = max(b.program.gap for b in both)
    lines.append(
        f"why:   the same: {len(both) - apart} of {len(both)} pairs of enclosures overlap; they "
        f"are at most {first:.0e} and {second:.0e} wide"
    )
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw the released laws, and the region."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    ax, places = axes[0], np.arange(len(LETTERS))
    width = 0.8 / len(result.shown)
    colors = plt.get_cmap("viridis_r")(np.linspace(0.08, 0.95, len(result.shown)))
    for i, ((budget, solution), color) in enumerate(zip(result.shown.items(), colors, strict=True)):
        law, at = released(solution), places + (i - (len(result.shown) - 1) / 2) * width
        kept = len(solution.release.kept)
        label = "D = 0: p(x)" if budget == 0 else f"D = {budget:g}: {kept} letters"
        ax.bar(at[law > 0], law[law > 0], 0.92 * width, color=color, label=label)
        for place in at[law == 0]:
            ax.plot(place, 0, "x", color=color, ms=5, mew=1.4, clip_on=False, zorder=5)
    ax.set_xticks(places, [f"{x}\np = {p:g}" for x, p in zip(LETTERS, PMF, strict=True)])
    ax.set(ylabel="probability p(x̂) of the released letter", ylim=(0, None))
    ax.legend(fontsize=9.5, title="crosses: never released", title_fontsize=9.5)
    ax.set_title("rare letters are suppressed, the rarest first", fontsize=11)

    ax = axes[1]
    budgets = np.array(list(result.lines))
    gamma = np.array([float(s.equivocation) for s in result.lines.values()])
    rate = np.array([s.value for s in result.lines.values()])
    top, end = result.entropy, 0.7
    fine, edge = np.append(budgets, end), np.append(gamma, top)
    ax.fill_between(fine, edge, color="#0072B2", alpha=0.18, lw=0, label="achievable (D, E)")
    ax.plot(fine, edge, color="#0072B2", lw=1.6, label="Γ(D), closed form")
    ax.plot(fine, np.append(rate, 0.0), "--", color="#D55E00", lw=1.6, label="R(D) = H(X) − Γ(D)")
    ax.axhline(top, color="black", lw=0.8, ls=":")
    ax.text(end - 0.01, top + 0.03, "H(X)", ha="right", fontsize=10)
    solved = list(result.solved)
    values = [both.program.value for both in result.solved.values()]
    ax.plot(
        solved, [top - v for v in values], "o", ms=6, mfc="none", color="black",
        label="certified channel programs",
    )  # fmt: skip
    ax.plot(solved, values, "o", ms=6, mfc="none", color="black")
    for letter, budget in result.limits.items():
        if letter not in "ab":
            ax.plot([budget] * 2, [0.98, 1], "k", lw=1.2, transform=ax.get_xaxis_transform())
            ax.text(budget, 0.935, letter, ha="center", fontsize=9.5, color="#444444",
                    transform=ax.get_xaxis_transform())  # fmt: skip
    ax.set(xlim=(0, end), ylim=(0, 1.12 * top), xlabel="distortion D = Pr(X ≠ X̂)")
    ax.set_ylabel("equivocation E, rate R   [bits per record]")
    ax.legend(fontsize=9.5, loc="center right")
    ax.set_title("the U-P region (letters at the top: where each vanishes)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Compute, compare, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/sankar_fig4.png"))
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems")
    given = parser.parse_args(arguments)
    result = study(quick=given.quick)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
