"""What does it cost to tell nothing at all, and what can still be told?

A release that is independent of W leaks nothing in any measure: perfect privacy (Shannon 1949).  It
need not be a constant.  X has more values than W, so what of X does not move with W may be told;
how well, is a linear program: least distortion under I(W; X̂) = 0.

Confidential W: sex.  Key X: band of age and marital status, of the 32,561 records of the UCI Adult
data set, on which sex depends strongly (widowed, divorced).  Distortion: bands moved over all
bands, and marital status changed, in equal parts.

    minimise    E d(X, X̂)                                        over p(x̂ | x)
    subject to  p(w | x̂) = p(w)   for every x̂                    perfect privacy, or
                TV(p(w | x̂), p(w)) ≤ t   for every x̂              next to it

Learn: how much less than a constant perfect privacy costs, what of X survives it, and how fast the
cost falls where posteriors may move a little (the price dD/dt).

    CVXPRIVACY_DATA=folder python problems/perfect_privacy.py
                                                     # writes output/perfect_privacy.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv

BOUNDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)  # t


@dataclass
class Study:
    """The source, the perfectly private optimum, a constant's distortion, and optima at each t."""

    source: cpv.DiscreteSource
    solution: cpv.Solution
    constant: float
    relaxed: dict[float, cpv.Solution]

    @property
    def kept(self) -> float:
        """I(X; X̂) of the perfectly private release over H(X)."""
        joint = self.source.p_x[:, None] * self.solution.channel.matrix
        told = cpv.information.mutual_information(joint)
        return told / cpv.information.entropy(self.source.p_x)


def study(frame: pd.DataFrame, bounds: tuple[float, ...] = BOUNDS) -> Study:
    """Solve under perfect privacy, and next to it."""
    source = cpv.DiscreteSource.from_table(
        frame, sensitive="sex", key=["age", "marital-status"], bins={"age": 20}
    )
    kinds = {"age": "ordinal", "marital-status": "hamming"}
    error = cpv.per_attribute(kinds, source, weights={"age": 0.5, "marital-status": 0.5})
    relaxed = {
        t: cpv.MinimumDistortion(source, error, [cpv.TCloseness(t, "tv")]).solve() for t in bounds
    }
    solution = cpv.MinimumDistortion(source, error, [cpv.PerfectPrivacy()]).solve()
    return Study(source, solution, float((source.p_x @ error.matrix).min()), relaxed)


def report(result: Study) -> str:
    """Say what was proved, and what it costs."""
    source, solution = result.source, result.solution
    lines = [
        f"W = sex, X = (band of age, marital status): {source.records:,} records, "
        f"{len(source.w)} × {len(source.x)} cells",
        f"  I(W; X) = {source.information():.4f} bits",
        str(solution),
        f"  a constant costs {result.constant:.4f}; perfect privacy "
        f"{solution.upper / result.constant:.1%} of it, and keeps {result.kept:.1%} of H(X)",
        "",
        "  t (total variation)   distortion   price dD/dt",
        f"                 0        {solution.upper:.4f}",
    ]
    for t, point in result.relaxed.items():
        lines.append(f"              {t:4.2f}        {point.value:.4f}      "
                     f"{point.prices['t_closeness'] + 0.0:8.4f}")  # fmt: skip
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw the perfectly private release, and the cost of letting posteriors move."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 2, figsize=(14, 5.6), layout="constrained", width_ratios=(1.5, 1)
    )
    source, channel = result.source, result.solution.channel
    order = np.flatnonzero(source.p_x > 0)
    used = np.flatnonzero(source.p_x @ channel.matrix > 1e-6)
    ax = axes[0]
    image = ax.imshow(channel.matrix[np.ix_(order, used)], cmap="magma_r", vmin=0, aspect="auto")
    female = source.pmf[list(source.w).index("Female")] / source.p_x if "Female" in source.w else 0
    names = [f"{x[1]}, {x[0]}" for x in source.x]
    share = np.broadcast_to(female, source.p_x.shape)
    ax.set_yticks(range(len(order)), [f"{names[i]}: {share[i]:.0%} f" for i in order], fontsize=7)
    ax.set_xticks(range(len(used)), [names[i] for i in used], rotation=60, ha="right", fontsize=7)
    ax.set(xlabel="released", ylabel="true cell, and its share of women")
    ax.set_title("p(x̂ | x) under perfect privacy: every column mixes the sexes alike", fontsize=11)
    figure.colorbar(image, ax=ax)

    ax = axes[1]
    bounds = [0.0, *result.relaxed]
    values = [result.solution.upper, *(point.value for point in result.relaxed.values())]
    ax.plot(bounds, values, "o-", color="C0", label="every letter within t of p(w)")
    ax.axhline(result.constant, color="k", ls=":", label="a constant")
    ax.plot(0, values[0], "s", color="C3", ms=9, label="perfect privacy")
    ax.set(xlabel="t, total variation", ylabel="distortion E d(X, X̂)", ylim=(0, None))
    ax.set_title("what it costs (certified optima; lines guide the eye)", fontsize=11)
    ax.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/perfect_privacy.png"))
    out = parser.parse_args(arguments).out
    result = study(cpv.datasets.load_adult())
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
