"""What does a patient's cholesterol leak through their weight?

The motivating example of Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010,
§6.1: "plasma concentration of LDL cholesterol in adults … and their weight"), on the 442 real
patients of the diabetes study that scikit-learn carries (Efron, Hastie, Johnstone and
Tibshirani, Least Angle Regression, 2004).

Confidential W: LDL cholesterol, in quartiles.  Key X: body mass index, in deciles; beside it
total cholesterol, which is nearly the same thing.  Released X̂: a bin mean, or the overall mean.

    minimise    I(W; X̂)
    subject to  E (X − X̂)² ≤ D                                   over p(x̂ | x)

Learn: what a certificate is, how much risk a little distortion removes, what the next unit
costs (the price is the slope of the curve), and how far the simple rule "release x, or the
mean" (MIUB, eq. 9) is from the optimum.

    python problems/cholesterol.py            # prints, and writes output/cholesterol.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import cvxprivacy as cpv

KEYS = {"bmi": "body mass index", "s1": "total cholesterol"}
TOL = 1e-3  # bits between what is achieved and what is proved, at every budget
SHARE = 0.1  # of the variance, for the release that is printed


@dataclass
class Study:
    """One key attribute: its source, its variance between bins, one release, and all budgets."""

    name: str
    source: cpv.DiscreteSource
    variance: float
    chosen: cpv.Solution
    curve: cpv.Frontier

    def upper_bound(self, share: float) -> float:
        """MIUB: (1 − d) I(W; X), d = D / Var X (eq. 9)."""
        return (1 - share) * self.source.information()


def patients() -> pd.DataFrame:
    """Read the study's table, unscaled."""
    frame: pd.DataFrame = load_diabetes(as_frame=True, scaled=False).frame
    return frame


def study(frame: pd.DataFrame, key: str) -> Study:
    """Solve the privacy–distortion problem of one key attribute, then enclose its whole curve."""
    bins = pd.qcut(frame[key], 10, labels=False)
    mean_of = frame[key].groupby(bins).mean()  # what a bin stands for
    quartile = pd.qcut(frame["s2"], 4, labels=False)
    table = pd.DataFrame({"LDL quartile": quartile, key: bins.map(mean_of)})
    source = cpv.DiscreteSource.from_table(table, sensitive="LDL quartile", key=key)
    means = np.array(source.x)
    mean = float(source.p_x @ means)
    variance = float(source.p_x @ (means - mean) ** 2)
    error = cpv.squared_error(means, outputs=np.sort([*means, mean]))
    problem = cpv.PrivacyDistortion(source, error, budget=SHARE * variance)
    curve = cpv.frontier(problem, tol=TOL)
    return Study(KEYS[key], source, variance, problem.solve(), curve)


def report(result: Study) -> str:
    """Say in words what was proved."""
    source, solution = result.source, result.chosen
    before, bias = source.information(), source.bias()
    bound = result.upper_bound(SHARE)
    price = solution.prices["budget"]
    return "\n".join(
        [
            f"X = {result.name}: {source.records} patients, "
            f"{len(source.w)} classes of LDL, {len(source.x)} of X, variance {result.variance:.4g}",
            f"{solution}",
            f"  risk before          I(W; X) = {before:.4f} bits, "
            f"of which about {bias:.4f} is small-sample bias (Miller–Madow)",
            f"  risk after           {float(solution.risk):.4f} bits = "
            f"{solution.value / before:.0%} of it, for {SHARE:.0%} of the variance",
            f"  price of distortion  {price:.4g} bits per squared unit: the next 1 % of the "
            f"variance buys {-price * result.variance / 100:.4f} bits",
            f"  simple rule (MIUB)   {bound:.4f} bits, {bound - solution.value:.4f} "
            f"({bound / solution.value:.2f} times) above the optimum",
            f"  all budgets          {len(result.curve.points)} solved: what is achieved is within "
            f"{result.curve.band:.1e} bits of what is proved, everywhere",
        ]
    )


def draw(results: list[Study], path: Path) -> None:
    """Draw the optimal channel of each study, and both trade-offs on one axis."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    for ax, result in zip(axes, results, strict=False):
        cpv.plotting.channel(result.chosen.channel, ax)
        ax.set_title(f"release of {result.name}, D = {SHARE:.0%} of its variance", fontsize=10)
    ax = axes[-1]
    for result in results:
        per = (result.variance, result.source.information())
        result.curve.plot(ax, per=per, label=result.name)
    ax.plot([0, 1], [1, 0], "k--", lw=1, label="release x, or the mean (MIUB)")
    ax.set(xlabel="distortion D / Var X", ylabel="risk I(W; X̂) / I(W; X)", xlim=(0, 1))
    ax.set_ylim(bottom=0)
    ax.legend()
    ax.set_title(f"least risk at every D, proved to within {TOL:g} bits", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> list[Study]:
    """Solve, print, draw; return the studies."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/cholesterol.png"))
    out = parser.parse_args(arguments).out
    frame = patients()
    results = [study(frame, key) for key in KEYS]
    for result in results:
        print(report(result), end="\n\n")
    draw(results, out)
    print(f"picture: {out}")
    return results


if __name__ == "__main__":
    main()
