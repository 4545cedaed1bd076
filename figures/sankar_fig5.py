"""Fig. 5 of Sankar et al. 2013: rate and leakage of Gaussian data, with and without a user's Z.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013, Example 2.  W (the paper's private Y), public X and the user's
side information Z are jointly Gaussian, W – X – Z Markov, unit variances.  X is coded into U;
the user estimates X from U and Z, and learns about W from them.

    minimise    rate I(X; U | Z), or leakage I(W; U, Z)                over Σ = Cov(X | U, Z)
    subject to  Σ ≤ D,  0 ≤ Σ ≤ 1 − ρ²_XZ

    R(D) = ½ log₂((1 − ρ²_XZ)/D),   L(D) = −½ log₂(1 − ρ²_WX + ρ²_WX D),   0 < D ≤ 1 − ρ²_XZ

Drawn: these closed forms, the certified curves of the covariance program, and, without Z, the
certified curves over all channels of the discretised data, which know nothing of Gaussian codes.

Learn: side information lowers the rate and not the privacy, except that the leakage cannot fall
below I(W; Z); a Gaussian code is best among all; and how fast a discretised program approaches
the continuous one: the span must grow with the number of points, and then faster than any power.

    python figures/sankar_fig5.py             # prints, and writes output/sankar_fig5.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import cvxprivacy as cpv

RHO_WX = (0.5, 0.8, 0.95)
RHO_XZ = (0.0, 0.5, 0.8)  # 0: no side information
SHARES = (0.05, 0.2, 0.45, 0.7, 1.0)  # of the greatest distortion, to compare both codes
LEAST = 0.01  # D; below it the rate grows without bound
TOL = 1e-2  # bits between what is achieved and what is proved, at every D
PLOTTED = (31, 4.0)  # points and span of the grid that is drawn, in standard deviations
SIZES = (11, 16, 21, 26, 31, 36)  # of the study of convergence
TEST = 0.3  # its D
COLORS = {0.0: "#000000", 0.5: "#0072B2", 0.8: "#D55E00"}  # of ρ_XZ; told apart in grey, too
MARKERS = {0.0: "o", 0.5: "^", 0.8: "s"}
LIGHT, GREEN = "#CCCCCC", "#009E73"  # of closed forms and of sampled data


def rate(budget: float, rho_xz: float = 0.0, variance: float = 1.0) -> float:
    """R(D) in bits."""
    return 0.5 * float(np.log2(variance * (1 - rho_xz**2) / budget))


def leakage(budget: float, rho_wx: float, variance: float = 1.0) -> float:
    """L(D) in bits, whatever ρ_XZ."""
    return -0.5 * float(np.log2(1 - rho_wx**2 + rho_wx**2 * budget / variance))


@dataclass
class Gaussian:
    """Both curves of the covariance program."""

    rho_wx: float
    rho_xz: float
    budgets: list[float]  # at which both are solved; the last is the greatest distortion
    rate: cpv.Frontier
    leakage: cpv.Frontier


@dataclass
class Sampled:
    """A certified optimum over the channels of discretised data, at distortion D."""

    kind: str  # "rate" or "leakage"
    rho_wx: float  # 0 for rates: they depend on X alone
    points: int
    span: float
    budget: float
    variance: float  # of X on the grid
    rho_grid: float  # correlation of W and X on the grid
    solution: cpv.Solution

    @property
    def gaussian(self) -> float:
        """The value of the continuous data."""
        return rate(self.budget) if self.kind == "rate" else leakage(self.budget, self.rho_wx)

    @property
    def matched(self) -> float:
        """The closed form with the moments of the grid."""
        if self.kind == "rate":
            return rate(self.budget, variance=self.variance)
        return leakage(self.budget, self.rho_grid, self.variance)

    @property
    def errors(self) -> tuple[float, float]:
        """Proved bounds of the discretised optimum less the Gaussian one."""
        return self.solution.lower - self.gaussian, self.solution.upper - self.gaussian

    @property
    def error(self) -> float:
        """The largest error that the enclosure allows."""
        return max(map(abs, self.errors))


@dataclass
class Study:
    """Everything that is drawn, in bits."""

    gaussian: list[Gaussian]
    grid: tuple[int, float]  # points and span of what is drawn
    sampled: cpv.Sweep  # its curves, by kind and ρ_WX
    growing: dict[tuple[str, float], list[Sampled]]  # more points on a wider span
    fixed: list[Sampled]  # more points, span 3


def gaussian(rho_wx: float, rho_xz: float, tol: float) -> Gaussian:
    """Enclose the least rate and the least leakage of the covariance program."""
    source = cpv.GaussianSource.scalar(rho_wx, rho_xz=rho_xz or None)
    budgets = [share * (1 - rho_xz**2) for share in SHARES]
    side = "both" if rho_xz else None
    problems = {
        kind: cpv.GaussianEquivocation(source, TEST, minimize=kind, side_information=side)
        for kind in ("rate", "leakage")
    }
    curves = cpv.sweep(problems, between=(LEAST, None), tol=tol, points=budgets)
    return Gaussian(rho_wx, rho_xz, budgets, curves["rate"], curves["leakage"])


def program(kind: str, rho_wx: float, points: int, span: float) -> cpv.PrivacyDistortion:
    """State the channel program on a grid."""
    source = cpv.GaussianSource.scalar(rho_wx).discretise(points, span)
    if kind == "rate":
        source = cpv.DiscreteSource.identical(source.p_x, x=source.x)
    return cpv.PrivacyDistortion(source, cpv.squared_error(source.x), budget=TEST)


def sampled(
    kind: str, rho_wx: float, points: int, span: float, accuracy: str = "default"
) -> Sampled:
    """Solve the channel program on a grid."""
    problem = program(kind, rho_wx, points, span)
    source = problem.source
    x = np.array(source.x)
    variance = float(source.p_x @ x**2)
    rho = 0.0
    if kind == "leakage":
        w = np.array(source.w)
        rho = float(w @ source.pmf @ x / np.sqrt(variance * (source.p_w @ w**2)))
    solution = problem.solve(accuracy=accuracy)
    return Sampled(kind, rho_wx, points, span, TEST, variance, rho, solution)


def study(*, quick: bool = False) -> Study:
    """Solve everything; ``quick`` takes a wider band, fewer and smaller grids."""
    sizes = SIZES[:3] if quick else SIZES
    tol, grid = (0.1, (21, 4.0)) if quick else (TOL, PLOTTED)
    lines = [("rate", 0.0), *(("leakage", rho) for rho in RHO_WX)]
    return Study(
        gaussian=[gaussian(rho_wx, rho_xz, tol) for rho_wx in RHO_WX for rho_xz in RHO_XZ],
        grid=grid,
        sampled=cpv.sweep(
            {line: program(*line, *grid) for line in lines}, between=(LEAST, None), tol=tol
        ),
        growing={
            line: [sampled(*line, n, 2 + (n - 1) / 10, "high") for n in sizes] for line in lines
        },
        fixed=[sampled("rate", 0.0, n, 3.0) for n in sizes],
    )


def orders(results: list[Sampled]) -> list[float]:
    """Return p of error ~ points^−p between successive sizes."""
    return [
        float(np.log(a.error / b.error) / np.log(b.points / a.points)) for a, b in pairwise(results)
    ]


def report(result: Study) -> str:
    """Compare with what the paper says."""
    solved = [point for g in result.gaussian for c in (g.rate, g.leakage) for point in c.points]
    off = max(
        abs(point.upper - closed(point.x))
        for g in result.gaussian
        for curve, closed in (
            (g.rate, lambda d, g=g: rate(d, g.rho_xz)),
            (g.leakage, lambda d, g=g: leakage(d, g.rho_wx)),
        )
        for point in curve.points
    )
    both = max(
        float(g.rate.solution_at(budget).leakage) - g.leakage.solution_at(budget).lower
        for g in result.gaussian
        for budget in g.budgets
    )
    band = max(curve.band for g in result.gaussian for curve in (g.rate, g.leakage))
    lines = [
        "Fig. 5 of Sankar et al. 2013 (bits; variances 1; W is the paper's Y)",
        "",
        "paper: R does not depend on ρ_XY, nor L on ρ_XZ, where the minimal-rate code is used",
        f"here:  {len(solved)} covariance programs with ρ_WX in {RHO_WX}, ρ_XZ in "
        f"{RHO_XZ} are within {off:.0e} of these",
        f"       closed forms, and enclose every curve to {band:.1e}; the rate-optimal code leaks "
        f"at most {both:.0e} more",
        "       than the least leakage",
        "why:   the same.  The values of ρ in the paper's figure are lost in the text at hand: "
        "these are chosen here",
        "",
        "paper: without Z, L falls to 0 at the greatest distortion; with Z it does not, by the "
        "correlation of Y and Z",
        "here:  " + "; ".join(
            f"ρ_WX {g.rho_wx:g}, ρ_XZ {g.rho_xz:g}: "
            f"{g.leakage.inner(g.budgets[-1]):.4f} at D = {g.budgets[-1]:.2f}"
            for g in result.gaussian if g.rho_wx == RHO_WX[1]
        ),
        "why:   the same: these are I(W; Z)",
        "",
        "paper: side information at both ends does no better than at the user (no rate loss)",
        "here:  by that theorem the package solves one program for both; it is not tested here",
        "",
        "paper: the optimal code is Gaussian",
        "here:  channels of discretised data, free in every entry, at "
        f"D = {TEST:g}; optimum less the Gaussian value, as proved:",
    ]  # fmt: skip
    for (kind, rho), results in result.growing.items():
        name = "least rate" if kind == "rate" else f"least leakage, ρ_WX = {rho:g}"
        lines.append(f"       {name}")
        for each, order in zip(results, [None, *orders(results)], strict=True):
            said = "" if order is None else f"   order {order:4.1f}"
            lines.append(
                f"         {each.points} points on ±{each.span:<3g}  "
                f"[{each.errors[0]:+.2e}, {each.errors[1]:+.2e}]   "
                f"with the grid's moments {each.solution.value - each.matched:+.1e}{said}"
            )
    last = result.fixed[-1]
    lines += [
        f"       the curves drawn, on {result.grid[0]} points, are enclosed to "
        f"{result.sampled.band:.1e}",
        f"       span fixed at ±3: {', '.join(f'{f.errors[1]:+.1e}' for f in result.fixed)}",
        "why:   most of the error is the variance that the cut tails take away, so it falls as "
        "the Gaussian tail does:",
        "       faster than every power of the number of points if the span grows with it (the "
        "order rises from size to",
        "       size, until the width of the enclosure is reached), and not at all if it does "
        f"not: on ±3 the variance is {last.variance:.4f}",
    ]
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw rate and leakage against D, and the error of discretisation."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(17, 5.4), layout="constrained")
    fine = np.linspace(LEAST / 2, 1, 400)
    for rho_xz in RHO_XZ:
        reach = fine[fine <= 1 - rho_xz**2]
        axes[0].plot(reach, [rate(d, rho_xz) for d in reach], color=LIGHT, lw=5, zorder=1)
    for rho in RHO_WX:
        values = [leakage(d, rho) for d in fine]
        axes[1].plot(fine, values, color=LIGHT, lw=5, zorder=1)
        axes[1].text(0.03, values[0] + 0.04, f"ρ_WX = {rho:g}", fontsize=10, color="#444444")
    for g in result.gaussian:
        style = {"color": COLORS[g.rho_xz], "marker": MARKERS[g.rho_xz], "ls": "", "ms": 7.5}
        style |= {"clip_on": False, "zorder": 4}
        greatest = g.budgets[-1]
        if g.rho_wx == RHO_WX[0]:
            label = f"covariance program, ρ_XZ = {g.rho_xz:g}"
            g.rate.plot(
                axes[0], color=style["color"],
                label=label if g.rho_xz else "covariance program, no Z",
            )  # fmt: skip
        end = f"greatest D for ρ_XZ = {g.rho_xz:g}, where L = I(W; Z)"
        end = end if g.rho_xz else "greatest D without Z, where L = 0"
        g.leakage.plot(axes[1], color=style["color"])
        axes[1].plot(
            greatest, g.leakage.inner(greatest), label=end if g.rho_wx == RHO_WX[0] else None,
            **style,
        )  # fmt: skip
    points, span = result.grid
    for (kind, _), curve in result.sampled.items():
        ax, label = axes[1], None
        if kind == "rate":
            ax, label = axes[0], f"channel program, no Z, {points} points on ±{span:g}"
        ax.plot(
            *np.array([(point.x, point.upper) for point in curve.points]).T, "x", color=GREEN,
            ms=7.5, mew=1.8, zorder=3, label=label,
        )  # fmt: skip
    for ax in axes[:2]:
        ax.set(xlim=(0, 1), xlabel="distortion D   [variance of X]")
    axes[0].legend(
        fontsize=9.5, title="grey: closed form; lines and crosses: certified", title_fontsize=9.5
    )
    axes[1].legend(fontsize=9.5, title="filled marks", title_fontsize=9.5)
    axes[0].set(ylim=(0, 3), ylabel="least rate R   [bits per record]")
    axes[0].set_title("rate: one curve for all ρ_WX", fontsize=11)
    axes[1].set(ylim=(0, 1.8), ylabel="least leakage L = I(W; U, Z)   [bits per record]")
    axes[1].set_title("leakage: one curve for all ρ_XZ", fontsize=11)

    ax = axes[2]
    styles = dict(zip(result.growing, ("#000000", "#0072B2", "#D55E00", "#CC79A7"), strict=True))
    for (kind, rho), results in result.growing.items():
        label = "rate" if kind == "rate" else f"leakage, ρ_WX = {rho:g}"
        marker = "s" if kind == "rate" else "o"
        ax.plot(
            [s.points for s in results], [s.error for s in results], marker + "-", ms=5.5,
            color=styles[kind, rho], label=label,
        )  # fmt: skip
        for s in results:
            least = min(map(abs, s.errors)) if s.errors[0] * s.errors[1] > 0 else 1e-9
            ax.plot([s.points] * 2, [least, s.error], color=styles[kind, rho], lw=4, alpha=0.4)
    ax.plot(
        [s.points for s in result.fixed], [s.error for s in result.fixed], "s--", ms=5.5,
        color="#777777", mfc="none", label="rate, on ±3 whatever n",
    )  # fmt: skip
    ax.set(yscale="log", ylim=(1e-8, 0.1), xlabel="points n of the grid, on ±(2 + (n − 1)/10)")
    ax.set_ylabel("|discretised − Gaussian optimum|   [bits]")
    ax.set_title(f"error of discretisation at D = {TEST:g}", fontsize=11)
    ax.legend(
        fontsize=9.5, loc="lower left", title="at most (marks), at least (bars)",
        title_fontsize=9.5,
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Compute, compare, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/sankar_fig5.png"))
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems")
    given = parser.parse_args(arguments)
    result = study(quick=given.quick)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
