"""Fig. 3 of Sankar et al. 2013: the rate-distortion-equivocation region, and utility–privacy in it.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013, Proposition 2 and Theorem 1.  The achievable (R, D, E) are all with

    R ≥ I(X; X̂),   D ≥ E d(X, X̂),   E ≤ H(W | X̂)          for some p(x̂ | x)

Its boundary is traced here by

    minimise    I(X; X̂)                                     over p(x̂ | x)
    subject to  E d(X, X̂) ≤ D,  I(W; X̂) ≤ L,  E = H(W) − L

with R(D) where L is free, and Γ(D) = H(W) less the least leakage where the rate is.  The paper's
figure is a sketch without a source.  This one: X = (A, B), two fair bits; W (the paper's private
Y) is A with an error of probability q; d counts wrong bits, D_A of them in A and D_B in B.  With
a ∗ b = a(1 − b) + b(1 − a) all is known in closed form:

    R(D, E) = 2 − h(D_A) − h(D_B),   D_A = max(D/2, a),   D_B = min(D − D_A, ½),   h(q ∗ a) = E
    R(D) = 2 − 2 h(D/2) for D ≤ 1,   Γ(D) = h(q ∗ D) for D ≤ ½, 1 beyond

(A and B are independent, so I(X; X̂) ≥ I(A; X̂) + I(B; X̂); and H(A | X̂) and H(W | X̂) are concave
in the posterior of A.)

Learn: what each of rate, distortion and equivocation costs in the others; that the code of least
rate is not the most private one, nor the other way round (Remark 4), and which bit each of them
spends its errors on.

    python figures/sankar_fig3.py             # prints, and writes output/sankar_fig3.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr

import cvxprivacy as cpv

Q = 0.1  # of an error in W
BUDGETS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SLICES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)  # D of the surface
STEPS = (0.25, 0.5, 0.75, 1.0)  # from the rate-optimal equivocation to Γ(D)
MARGIN = 1e-6  # bits by which the last cap is above the least leakage


def h(p: float | np.ndarray) -> float | np.ndarray:
    """Binary entropy in bits."""
    return (entr(p) + entr(1 - np.asarray(p))) / np.log(2)


def seen(a: float | np.ndarray) -> float | np.ndarray:
    """h(q ∗ a), what is unknown of W if A is told with this error."""
    return h(Q * (1 - a) + a * (1 - Q))


def rate(d: float, equivocation: float = 0.0) -> float:
    """R(D, E), or R(D)."""
    a = d / 2
    if equivocation > seen(a):
        a = brentq(lambda a: seen(a) - equivocation, 0, 0.5, xtol=1e-15)
    return float(2 - h(min(a, 0.5)) - h(np.clip(d - a, 0, 0.5)))


def gamma(d: float) -> float:
    """Γ(D)."""
    return float(seen(min(d, 0.5)))


@dataclass
class Corner:
    """The two ends of the boundary at one D."""

    budget: float
    rate: cpv.Solution  # R(D)
    leakage: cpv.Solution  # H(W) − Γ(D)

    @property
    def gamma(self) -> float:
        return 1 - self.leakage.value

    @property
    def private(self) -> float:
        """Equivocation of the rate-optimal code."""
        return float(self.rate.equivocation)


@dataclass
class Capped:
    """The least rate at one D and one cap on the leakage."""

    budget: float
    cap: float
    solution: cpv.Solution

    @property
    def equivocation(self) -> float:
        return 1 - self.cap


@dataclass
class Study:
    """The boundary curves, and the surface between them."""

    problem: cpv.RateDistortionEquivocation  # of the first point
    corners: dict[float, Corner]
    surface: dict[float, list[Capped]]


def source() -> cpv.DiscreteSource:
    """X = (A, B), W = A or not."""
    cells = [(a, b) for a in (0, 1) for b in (0, 1)]
    law = [[(1 - Q if w == a else Q) / 4 for a, _ in cells] for w in (0, 1)]
    return cpv.DiscreteSource(law, w=[0, 1], x=cells)


def study(*, quick: bool = False) -> Study:
    """Solve everything; ``quick`` takes fewer budgets and caps."""
    law = source()
    error = cpv.per_attribute({"A": cpv.hamming(2), "B": cpv.hamming(2)})

    def problem(budget: float, kind: str, **bounds: float) -> cpv.RateDistortionEquivocation:
        return cpv.RateDistortionEquivocation(law, error, budget, minimize=kind, **bounds)

    slices, steps = (SLICES[1:6:2], STEPS[1::2]) if quick else (SLICES, STEPS)
    budgets = sorted({*BUDGETS[2::3], *slices}) if quick else BUDGETS
    corners = {
        d: Corner(d, *(problem(d, kind).solve() for kind in ("rate", "leakage"))) for d in budgets
    }
    surface = {}
    for d in slices:
        most, least = 1 - corners[d].private, corners[d].leakage.value + MARGIN
        caps = [most + step * (least - most) for step in steps]
        surface[d] = [Capped(d, cap, problem(d, "rate", max_leakage=cap).solve()) for cap in caps]
    return Study(
        problem(slices[0], "rate", max_leakage=surface[slices[0]][0].cap), corners, surface
    )


def report(result: Study) -> str:
    """Compare with what the paper says."""
    corners = list(result.corners.values())
    capped = [each for found in result.surface.values() for each in found]
    ends = max(
        abs(off)
        for c in corners
        for off in (c.rate.value - rate(c.budget), c.gamma - gamma(c.budget))
    )
    inner = max(abs(c.solution.value - rate(c.budget, c.equivocation)) for c in capped)
    lines = [
        "Fig. 3 of Sankar et al. 2013 (bits; W is the paper's Y)",
        f"  X = (A, B) fair bits, W = A with an error of probability {Q:g}, d counts wrong bits",
        f"  {result.problem!r}",
        "",
        "paper: the region of all (R, D, E) has the boundaries R(D) and Γ(D) (Theorem 1); over all "
        "rates it is the",
        "       utility–privacy region (Proposition 1); one of the three fixes the trade-off of "
        "the other two",
        f"here:  {2 * len(corners)} programs on R(D) and Γ(D) are within {ends:.0e} of the closed "
        f"forms, {len(capped)} on the surface",
        f"       between them within {inner:.0e}",
        "why:   the figure is a sketch and has no source; this one was chosen because its surface "
        "is known",
        "",
        "paper: R(D) and Γ(D) may need different codes (Remark 4)",
        "here:          code of least rate          code of greatest equivocation",
        "       D       R(D)     equivocation below     Γ(D)     rate (closed)      above",
        "                                     Γ(D)                                 R(D)",
    ]
    for d, found in result.surface.items():
        c, end = result.corners[d], found[-1].solution.value
        lines.append(
            f"       {d:<5g}   {c.rate.value:.4f}   {c.private:.4f}       {c.gamma - c.private:.4f}"
            f"    {c.gamma:.4f}   {end:.4f} ({rate(d, gamma(d)):.4f})    {end - c.rate.value:.4f}"
        )
    lines += [
        f"       (The rate is the least at an equivocation {MARGIN:.0e} below Γ(D), that in "
        "parentheses at Γ(D): the last",
        "       millionth is dear where Γ(D) = H(W).)",
        "why:   the rate does not care which bit is wrong and spreads the errors evenly; W depends "
        "on A alone",
        "",
        'paper: least leakage "will first reveal that part of X that is orthogonal to Y", for '
        "additional precision",
        "here:          wrong bits in A, in B",
        "       D       least rate         greatest equivocation   price of equivocation, half-way "
        "[bits of rate per bit]",
    ]
    for d, found in result.surface.items():
        c, end, middle = result.corners[d], found[-1].solution, found[len(found) // 2 - 1].solution
        pairs = [[float(s.terms[f"distortion of {bit}"]) for bit in "AB"] for s in (c.rate, end)]
        first, second = (", ".join(f"{abs(p):.4f}" for p in pair) for pair in pairs)
        lines.append(
            f"       {d:<5g}   {first}     {second}          {-middle.prices['max_leakage']:.3f}"
        )
    lines += [
        "why:   the same: B is told without error until A is wrong half of the time, where W is "
        "hidden altogether",
    ]  # fmt: skip
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw the region, its projection, and its sections."""
    import matplotlib.pyplot as plt

    blue, orange, grey = "#0072B2", "#D55E00", "#555555"
    figure = plt.figure(figsize=(17, 5.4), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=(1.25, 1, 1))
    corners = sorted(result.corners.values(), key=lambda c: c.budget)
    budgets = np.array([c.budget for c in corners])

    ax = figure.add_subplot(grid[0], projection="3d")
    fine = np.linspace(0.0, 1.0, 41)
    share = np.linspace(0, 1, 21)[:, None]
    low, high = seen(fine / 2), np.array([gamma(d) for d in fine])
    low = np.minimum(low, high)
    levels = low + share * (high - low)
    heights = np.array([[rate(d, e) for d, e in zip(fine, row, strict=True)] for row in levels])
    ax.plot_surface(np.tile(fine, (2, 1)), np.vstack([np.full_like(low, 0.4), low]),
                    np.tile(heights[0], (2, 1)), color=blue, alpha=0.2, lw=0)  # fmt: skip
    ax.plot_surface(np.tile(fine, (21, 1)), levels, heights, color=orange, alpha=0.3, lw=0)
    ax.plot(fine, low, heights[0], color=blue, lw=2, label="R(D), least rate")
    ax.plot(fine, high, heights[-1], color=orange, lw=2, label="Γ(D), greatest equivocation")
    for d, found in result.surface.items():
        c = result.corners[d]
        points = [(c.private, c.rate.value), *((p.equivocation, p.solution.value) for p in found)]
        e, r = np.array(points).T
        ax.plot(np.full_like(e, d), e, r, "o-", color="k", ms=3, lw=0.7)
    ax.set(xlim=(0, 1), ylim=(0.4, 1), zlim=(0, 2), xlabel="distortion D")
    ax.set(ylabel="equivocation E [bits]", zlabel="rate R [bits]")
    ax.view_init(elev=24, azim=-50)
    ax.set_title("(a) the region is all that lies above this surface", fontsize=11)
    ax.legend(fontsize=9.5, loc="upper right", title="sheets: closed form; marks: certified",
              title_fontsize=9.5)  # fmt: skip

    ax = figure.add_subplot(grid[1])
    ax.fill_between(fine, high, 0, color=orange, alpha=0.15, lw=0)
    ax.plot(fine, high, color=orange, lw=1.6)
    ax.plot(fine, low, "--", color=blue, lw=1.6)
    ends = {"Γ(D)": [c.gamma for c in corners], "code of least rate": [c.private for c in corners]}
    for (name, values), color, marker in zip(ends.items(), (orange, blue), "os", strict=True):
        ax.plot(budgets, values, marker, color=color, ms=6, mfc="white", label=name, clip_on=False)
    ax.text(0.62, 0.62, "utility–privacy region", fontsize=11, color=grey, ha="center")
    ax.set(xlim=(0, 1), ylim=(0.4, 1.02), xlabel="distortion D   [wrong bits per record]")
    ax.set_ylabel("equivocation H(W | X̂)   [bits per record]")
    ax.set_title("(b) utility and privacy, at any rate", fontsize=11)
    ax.legend(fontsize=9.5, loc="lower right", title="lines: closed form; marks: certified",
              title_fontsize=9.5)  # fmt: skip

    ax = figure.add_subplot(grid[2])
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(result.surface)))
    for (d, found), color in zip(result.surface.items(), shades, strict=True):
        c, most = result.corners[d], gamma(d)
        e = np.linspace(0.4, most, 300)
        ax.plot(e, [rate(d, x) for x in e], color=color, lw=1.3)
        ax.plot([most, most], [rate(d, most), 2], color=color, lw=1.3)
        ax.plot([c.private], [c.rate.value], "s", color=color, ms=5.5, mfc="white")
        ax.plot([p.equivocation for p in found], [p.solution.value for p in found], "o",
                color=color, ms=5)  # fmt: skip
        ax.text(0.405, c.rate.value + 0.015, f"D = {d:g}", fontsize=9.5, color=color)
    ax.set(xlim=(0.4, 1.02), ylim=(0, 1.6), xlabel="equivocation E   [bits per record]")
    ax.set_ylabel("least rate R(D, E)   [bits per record]")
    ax.set_title("(c) rate and privacy at fixed D (the region is above)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Compute, compare, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/sankar_fig3.png"))
    parser.add_argument("--quick", action="store_true", help="fewer budgets and caps")
    given = parser.parse_args(arguments)
    result = study(quick=given.quick)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
