"""Does the best release for mutual information also protect against guessing?

Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010) minimise I(W; X̂).  Others fear
other things: the attacker who guesses W (Smith, FoSSaCS 2009), who has gains of their own (Alvim et
al., CSF 2012), the largest posterior shift (Li, Li and Venkatasubramanian, ICDE 2007).  Each is a
convex and homogeneous function of the joint masses, so each has its own certified optimum under the
same distortion; here the release that is best for mutual information is measured by all of them,
and compared with the least that each could be.

Confidential W: marital status.  Key X: age in bands of ten, and sex, of the 32,561 records of the
UCI Adult data set.  Distortion: bands moved over all bands, and sex changed, in equal parts.

    minimise    Σ_x̂ F(p(·, x̂))                                  over p(x̂ | x)
    subject to  E d(X, X̂) ≤ D                                    for each measure F, at several D

Learn: how near the release for one measure comes to the optimum of another; that guessing, which
has only one guess to change, falls to its floor max_w p(w) long before information is gone.

    CVXPRIVACY_DATA=folder python problems/guessing_adult.py
                                                     # writes output/guessing_adult.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv

MEASURES = {
    "mutual information [nats]": cpv.leakage.MutualInformation(),
    "chi-squared": cpv.leakage.ChiSquared(),
    "squared Hellinger": cpv.leakage.SquaredHellinger(),
    "total variation": cpv.leakage.TotalVariation(),
    "guessing probability": cpv.leakage.GuessingProbability(),
    "Sibson, order 2": cpv.leakage.Sibson(2),
    "maximal leakage, exp": cpv.leakage.MaximalLeakageOf("W"),
}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)  # of the distortion of a constant
CHOSEN = 0.2  # whose numbers are printed


@dataclass
class Point:
    """At one D: the optimum of each measure, and what the release for information has of it."""

    budget: float
    optima: dict[str, cpv.Solution]
    values: dict[str, float]

    def excess(self, name: str, none: float, full: float) -> float:
        """Return what is leaked beyond the optimum, as a share of all that could be."""
        return (self.values[name] - self.optima[name].upper) / (full - none)


@dataclass
class Study:
    """The source, each measure without a release and of X itself, and the points by share."""

    source: cpv.DiscreteSource
    none: dict[str, float]
    full: dict[str, float]
    points: dict[float, Point]


def study(frame: pd.DataFrame, shares: tuple[float, ...] = SHARES) -> Study:
    """Solve for every measure at every distortion."""
    source = cpv.DiscreteSource.from_table(
        frame, sensitive="marital-status", key=["age", "sex"], bins={"age": 10}
    )
    kinds = {"age": "ordinal", "sex": "hamming"}
    error = cpv.per_attribute(kinds, source, weights={"age": 0.5, "sex": 0.5})
    most = float((source.p_x @ error.matrix).min())
    prior = source.p_w[:, None]
    points = {}
    for share in shares:
        optima = {
            name: cpv.PrivacyDistortion(
                source, error, budget=share * most, leakage=measure, units="nats"
            ).solve()
            for name, measure in MEASURES.items()
        }
        joint = source.pmf @ next(iter(optima.values())).channel.matrix
        values = {name: measure.total(joint) for name, measure in MEASURES.items()}
        points[share] = Point(share * most, optima, values)
    return Study(
        source,
        {name: measure.total(prior) for name, measure in MEASURES.items()},
        {name: measure.total(source.pmf) for name, measure in MEASURES.items()},
        points,
    )


def report(result: Study) -> str:
    """Say what each measure is for the release that is best for mutual information."""
    source, point = result.source, result.points[CHOSEN]
    lines = [
        f"W = marital status, X = (band of age, sex): {source.records:,} records, "
        f"{len(source.w)} × {len(source.x)} cells",
        str(point.optima["guessing probability"]),
        "",
        f"at D = {point.budget:.4f}, {CHOSEN:.0%} of what a constant costs",
        "  measure                     no release   X itself    its optimum   best for information",
    ]
    for name in MEASURES:
        none, full = result.none[name], result.full[name]
        lines.append(
            f"  {name:<26} {none:11.4f} {full:10.4f}    {point.optima[name].upper:11.4f}  "
            f"{point.values[name]:12.4f}, {point.excess(name, none, full):6.1%} of the range more"
        )
    worst = max(
        (p.excess(name, result.none[name], result.full[name]), share, name)
        for share, p in result.points.items()
        for name in MEASURES
    )
    guess = "guessing probability"
    silent = [
        share for share, p in result.points.items()
        if p.optima[guess].upper <= result.none[guess] + 1e-6
    ]  # fmt: skip
    lines.append(
        f"  over all D the release for information is at most {worst[0]:.1%} of the range above an "
        f"optimum: {worst[2]}, at {worst[1]:.0%};"
    )
    if silent:
        lines.append(
            f"  a release made against guessing leaves no more than the prior's own guess from "
            f"{min(silent):.0%} of a constant's D on"
        )
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw every measure along the release for information, and the least that each could be."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(9.5, 6), layout="constrained")
    budgets = [point.budget for point in result.points.values()]
    for i, name in enumerate(MEASURES):
        none, full = result.none[name], result.full[name]

        def scaled(values: list[float], none: float = none, full: float = full) -> np.ndarray:
            return 100 * (np.array(values) - none) / (full - none)

        own = scaled([point.optima[name].upper for point in result.points.values()])
        other = scaled([point.values[name] for point in result.points.values()])
        ax.plot(budgets, other, "o-", color=f"C{i}", label=name)
        ax.plot(budgets, own, "--", color=f"C{i}", lw=1.2)
        ax.fill_between(budgets, own, other, color=f"C{i}", alpha=0.12)
    ax.plot([], [], "k--", lw=1.2, label="the least that each could be")
    ax.set(xlabel="distortion E d(X, X̂)", xlim=(0, None), ylim=(0, None))
    ax.set_ylabel("leaked, in % of what X itself leaks beyond no release")
    ax.set_title("one release, best for mutual information, in seven measures", fontsize=12)
    ax.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/guessing_adult.png"))
    out = parser.parse_args(arguments).out
    result = study(cpv.datasets.load_adult())
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
