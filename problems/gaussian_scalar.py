"""What does the optimal noise do that plain noise does not?

The smallest case in which everything is known in closed form (Rebollo-Monedero, Forné and
Domingo-Ferrer, IEEE TKDE 22(11), 2010, §5, eqs. 7 to 9): one confidential attribute W and one
key attribute X, jointly Gaussian with correlation ρ = 0.95, Var X = 1.  No data are needed.

    minimise    I(W; X̂)
    subject to  E (X − X̂)² ≤ D                                   over p(x̂ | x)

For Gaussians only the variance of the error matters, and the program is one over covariances Σ:

    minimise    −½ log(1 − (1 − Σ) ρ²)    subject to    0 ≤ Σ ≤ Var X = 1,  Σ ≤ D

so that R(D) = −½ log(1 − (1 − D) ρ²), the price is −dR/dD = ½ ρ² / (1 − (1 − D) ρ²), and the
optimal release is X̂ = (1 − D) X + N with Var N = D (1 − D): it shrinks, and adds less noise.

The plain rule X̂ = X + N with Var N = D has the same mean squared error D.  It leaks
−½ log(1 − ρ² / (1 + D)), which is more, and is not 0 however great D is.

Learn: that "covariance program" and closed form agree as far as the proof reaches; that the
optimal error is uncorrelated with what is released (X̂ is the best estimate of X that can be made
from X̂) while the plain error is uncorrelated with the original; and what shrinking is worth.

    python problems/gaussian_scalar.py        # prints, and writes output/gaussian_scalar.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

import cvxprivacy as cpv

RHO = 0.95
BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # D / Var X
TABLE = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
BUDGET = 0.5  # of the release that is simulated
RECORDS = 100_000
NATS = np.log(2.0)  # nats in a bit


@dataclass
class Sample:
    """Drawn triples of W, X and X̂ under one rule."""

    w: np.ndarray
    x: np.ndarray
    released: np.ndarray

    @property
    def error(self) -> float:
        """Mean squared error, E (X − X̂)²."""
        return float(((self.x - self.released) ** 2).mean())

    @property
    def slope(self) -> float:
        """Regression of X on X̂: the best estimate of X is this times X̂."""
        return float(np.cov(self.x, self.released)[0, 1] / self.released.var(ddof=1))

    def correlation(self, other: np.ndarray) -> float:
        """Return the correlation of the error X − X̂ with another variable."""
        return float(np.corrcoef(self.x - self.released, other)[0, 1])

    def leakage(self) -> float:
        """I(W; X̂) in bits, from the sample correlation: right for Gaussians."""
        return float(-np.log2(1 - np.corrcoef(self.w, self.released)[0, 1] ** 2) / 2)

    def leakage_by_neighbours(self) -> float:
        """I(W; X̂) = h(W) + h(X̂) − h(W, X̂) in bits, estimated without assuming a law."""
        h = cpv.information.differential_entropy
        return h(self.w) + h(self.released) - h(np.column_stack([self.w, self.released]))


@dataclass
class Study:
    """The source, a solution per budget, and the closed forms."""

    rho: float
    source: cpv.GaussianSource
    solutions: dict[float, cpv.GaussianSolution]
    optimal: Sample
    plain: Sample

    @property
    def chosen(self) -> cpv.GaussianSolution:
        return self.solutions[BUDGET]

    def closed(self, d: Any) -> Any:
        """R(D) in bits, eqs. 7 and 8, for d = D / Var X ≤ 1."""
        return -np.log2(1 - (1 - d) * self.rho**2) / 2

    def price(self, d: Any) -> Any:
        """−dR/dD in bits per unit of D."""
        return self.rho**2 / (1 - (1 - d) * self.rho**2) / 2 / NATS

    def added(self, d: Any) -> Any:
        """I(W; X + N) in bits for independent noise of variance D."""
        return self.closed(d / (1 + d))  # X + N is what the optimum at this D releases, unshrunk

    def upper_bound(self, d: Any) -> Any:
        """MIUB: (1 − d) I(W; X), release x or the mean by chance (eq. 9)."""
        return (1 - d) * self.closed(0.0)

    def crossing(self) -> float:
        """Return the D from which plain noise leaks more than the MIUB."""
        return float(brentq(lambda d: self.added(d) - self.upper_bound(d), 0.1, 1.0))


def simulate(source: cpv.GaussianSource, solution: cpv.GaussianSolution) -> tuple[Sample, Sample]:
    """Draw records; release them by the optimum, and by adding noise of the same D."""
    generator = np.random.default_rng(5)
    w, x = generator.multivariate_normal(source.mean, source.covariance, RECORDS).T
    released = solution.release.apply(x[:, None], seed=1)[:, 0]
    noise = np.sqrt(BUDGET) * generator.standard_normal(RECORDS)
    return Sample(w, x, released), Sample(w, x, x + noise)


def study(rho: float = RHO, budgets: tuple[float, ...] = BUDGETS) -> Study:
    """Solve the covariance program at several budgets."""
    source = cpv.GaussianSource.scalar(rho)
    every = sorted({*budgets, *TABLE, BUDGET})
    solutions = {d: cpv.QuadraticGaussian(source, budget=d).solve() for d in every}
    return Study(rho, source, solutions, *simulate(source, solutions[BUDGET]))


def report(result: Study) -> str:
    """Say in words what was proved, and what the sample shows."""
    lines = [
        f"ρ = {result.rho:g}, Var X = 1: I(W; X) = {result.source.information():.4f} bits",
        f"{result.chosen}",
        "",
        "                                                                      risk of other rules",
        "        R(D) [bits]                             price −dR/dD          plain   times the   "
        "chord",
        "   D    closed form  certified enclosure        program   closed      noise   optimum     "
        "(MIUB)",
    ]
    for d in TABLE:
        solution, closed, added = result.solutions[d], result.closed(d), result.added(d)
        proved = f"[{solution.lower:z.8f}, {solution.upper:z.8f}]"
        slope = f"{-solution.prices['budget']:7.4f}" if d < 1 else "      –"
        times = f"{added / closed:5.2f}" if d < 1 else "    ∞"
        lines.append(
            f"  {d:4.2f}  {closed:z11.8f}  {proved}   {slope}  {result.price(d):7.4f}    "
            f"{added:7.4f}     {times}     {result.upper_bound(d):z7.4f}"
        )
    d, one, two = BUDGET, result.optimal, result.plain
    least, more = result.closed(d), result.added(d)
    lines += [
        "  (at D = Var X the curve has a corner: beyond it a unit of D buys nothing, so that any",
        "  number from 0 to the closed form's is a slope)",
        "",
        f"what the two rules release at D = {d:g}: {RECORDS:,} simulated records (and the theory)",
        "                                              optimal release      plain noise",
    ]
    rows = {
        "variance of the noise that is added": (
            (result.chosen.release.noise[0, 0], d * (1 - d)), (d, d)),
        "mean squared error E (X − X̂)²": ((one.error, d), (two.error, d)),
        "Var X̂": ((one.released.var(), 1 - d), (two.released.var(), 1 + d)),
        "regression of X on X̂": ((one.slope, 1), (two.slope, 1 / (1 + d))),
        "correlation of X − X̂ with X̂": (
            (one.correlation(one.released), 0),
            (two.correlation(two.released), -np.sqrt(d / (1 + d)))),
        "correlation of X − X̂ with X": (
            (one.correlation(one.x), np.sqrt(d)), (two.correlation(two.x), 0)),
        "I(W; X̂) [bits], by correlation": ((one.leakage(), least), (two.leakage(), more)),
        "I(W; X̂) [bits], by nearest neighbours": (
            (one.leakage_by_neighbours(), least), (two.leakage_by_neighbours(), more)),
    }  # fmt: skip
    for name, pairs in rows.items():
        said = "     ".join(f"{found:z7.4f} ({true:z.4f})" for found, true in pairs)
        width = 40 + name.count("\N{COMBINING CIRCUMFLEX ACCENT}")  # which takes no room
        lines.append(f"  {name:<{width}}  {said}")
    lines += [
        f"at the same D = {d:g} plain noise leaks {more - least:.4f} bits more, "
        f"{more / least:.2f} times the optimum",
        f"to leak as little, plain noise must have variance D / (1 − D) = {d / (1 - d):.4g}: "
        f"{1 / (1 - d):.3g} times the distortion;",
        "  multiplied by 1 − D it then is the optimal release: shrinking reveals nothing more or",
        f"  less, as anyone can undo it, and takes the error from {d / (1 - d):.4g} to {d:g}",
        f"from D = {result.crossing():.3f} on even the chord is lower: releasing x or the mean by "
        "chance reveals less",
        "  than plain noise does",
        "in one dimension that is all; with several attributes the noise also has a best direction",
        "  (census_income.py, colored_source.py)",
    ]
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw R(D) between the other rules, its price, and X against X̂ under both rules."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15.5, 4.8), layout="constrained")
    fine = np.linspace(0, 1, 300)
    ax = axes[0]
    some = [result.solutions[d] for d in BUDGETS]
    cpv.plotting.tradeoff(some, ax, color="C0", label="covariance program, certified")
    ax.plot(fine, result.closed(fine), color="C0", lw=1.5, label="closed form R(D)")
    ax.plot(fine, result.added(fine), color="C1", ls="--", label="plain noise of variance D")
    ax.plot(fine, result.upper_bound(fine), "k:", label="release x, or the mean (MIUB)")
    ax.annotate("", (BUDGET, result.closed(BUDGET)), (BUDGET, result.added(BUDGET)),
                arrowprops={"arrowstyle": "<->", "color": "0.3"})  # fmt: skip
    more = result.added(BUDGET) - result.closed(BUDGET)
    ax.annotate(f"{more:.2f} bits", (BUDGET, result.closed(BUDGET) + 0.45 * more), (5, 0),
                textcoords="offset points", fontsize=9)  # fmt: skip
    ax.set(xlabel="distortion D / Var X", ylabel="risk I(W; X̂) [bits]", xlim=(0, 1.01))
    ax.set_ylim(0, 1.05 * result.closed(0.0))
    ax.set_title("risk of three rules at the same distortion", fontsize=10)
    ax.legend(loc="upper right", fontsize=9)

    ax = axes[1]
    inner = [d for d in BUDGETS if d < 1]
    ax.plot(fine, result.price(fine), color="C0", lw=1.5, label="closed form")
    prices = [-result.solutions[d].prices["budget"] for d in inner]
    ax.plot(inner, prices, "o", ms=5, color="C0", label="multiplier of the program")
    ax.set(xlabel="distortion D / Var X", xlim=(0, 1.01), ylim=(0, None))
    ax.set_ylabel("price −dR/dD [bits per unit of variance]")
    ax.set_title("what the next unit of distortion removes", fontsize=10)
    ax.legend(fontsize=9)

    ax = axes[2]
    span = np.array([-3.6, 3.6])
    for sample, color, mark, name in (
        (result.plain, "C1", "^", "plain"), (result.optimal, "C0", "o", "optimal"),
    ):  # fmt: skip
        some_x, some_y = sample.released[:500], sample.x[:500]
        ax.plot(some_x, some_y, mark, ms=3, color=color, alpha=0.4, mec="none")
        slope = sample.slope
        label = f"{name} release: best estimate = {slope:.2f} X̂"
        ax.plot(span, slope * span, color=color, lw=2, label=label)
    ax.set(xlabel="released X̂ [s.d. of X]", ylabel="original X [s.d. of X]")
    ax.set(xlim=span, ylim=(-3.6, 5.2))
    ax.set_title(f"500 of the simulated records, D = {BUDGET:g}", fontsize=10)
    ax.legend(loc="upper left", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/gaussian_scalar.png"))
    out = parser.parse_args(arguments).out
    result = study()
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
