"""How little can education reveal about income, if no table of education may change?

A statistical office perturbs one attribute by post-randomisation (PRAM): every record's
education x is replaced by a random x̂ drawn from row x of a published matrix p(x̂ | x).  Here the
matrix is designed, for the 32,561 records of the UCI Adult data set, by a convex program instead
of by hand.

Confidential W: income, at most or above 50,000 dollars.  Key X: education, sixteen ordered levels.

    minimise    I(W; X̂)                                          over p(x̂ | x)
    subject to  p(x̂ = x)      = p(x)      the table of education stays unbiased (invariant PRAM)
                p(x̂ = x | x) ≥ 0.6        every value is kept with at least this probability
                p(x̂ | x)      = 0         if x̂ is more than two levels away from x

The classical way to an invariant matrix is the two-step construction of Gouweleeuw, Kooiman,
Willenborg and de Wolf (Journal of Official Statistics 14, 1998): take any matrix P, follow it by
its Bayes inverse Q(x | y) = p(x) P(y | x) / Σ_x' p(x') P(y | x'), and release with R = P Q.

Learn: how release rules are stated as constraints, what "exactly preserved" means when it is
checked in fractions, what a stricter floor costs in bits, and how much a matrix made by the
classical recipe leaves on the table.

    CVXPRIVACY_DATA=folder python problems/invariant_pram.py  # writes output/invariant_pram.png
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv

MISSING = (
    "Set CVXPRIVACY_DATA to a folder that holds adult.csv: the public Adult data set of the UCI "
    "Machine Learning Repository (https://archive.ics.uci.edu/dataset/2/adult), its file "
    "adult.data with the column names as first row and the last column called income."
)
FLOORS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FLOOR = 0.6  # for the release that is printed
REACH = 2  # levels that a record may move


@dataclass
class Study:
    """The source, the levels that each move crosses, and a solution per floor."""

    source: cpv.DiscreteSource
    levels: np.ndarray
    solutions: dict[float, cpv.Solution]

    @property
    def chosen(self) -> cpv.Solution:
        return self.solutions[FLOOR]

    def leakage(self, matrix: np.ndarray) -> float:
        """I(W; X̂) in bits if education is released with this matrix."""
        return cpv.information.mutual_information(self.source.joint @ matrix)

    def two_steps(self, keep: float) -> np.ndarray:
        """R = P Q, where P keeps x with this probability, else goes to a neighbouring level.

        Both steps move one level at most, so R moves two at most: no move is forbidden.
        """
        near = (self.levels == 1).astype(float)
        p = keep * np.eye(len(near)) + (1 - keep) * near / near.sum(axis=1, keepdims=True)
        joint = self.source.p_x[:, None] * p
        return p @ (joint / joint.sum(axis=0)).T

    def raised(self, floor: float) -> np.ndarray:
        """R of the least such ``keep`` whose every diagonal entry is at least the floor."""
        low, high = 0.0, 1.0
        for _ in range(50):
            keep = (low + high) / 2
            if self.two_steps(keep).diagonal().min() >= floor:
                high = keep
            else:
                low = keep
        return self.two_steps(high)

    def mixed(self, floor: float) -> np.ndarray:
        """(1 − a) I + a R, also invariant: the best ``keep``, the greatest a under the floor."""
        found = []
        for keep in np.arange(0, 1, 0.05):
            step = self.two_steps(keep)
            a = min(1.0, (1 - floor) / (1 - step.diagonal().min()))
            found.append((1 - a) * np.eye(len(step)) + a * step)
        return min(found, key=self.leakage)


def adult() -> pd.DataFrame:
    """Read the Adult table, with education as an ordered attribute."""
    folder = os.environ.get("CVXPRIVACY_DATA")
    path = Path(folder or ".") / "adult.csv"
    if not folder or not path.is_file():
        raise SystemExit(MISSING)
    frame = pd.read_csv(path)
    years = frame.groupby("education")["education-num"].first().sort_values()
    frame["education"] = pd.Categorical(frame["education"], list(years.index), ordered=True)
    return frame


def study(frame: pd.DataFrame, floors: tuple[float, ...] = FLOORS) -> Study:
    """Design the matrix at several floors."""
    source = cpv.DiscreteSource.from_table(frame, sensitive="income", key="education")
    rank = {level: i for i, level in enumerate(source.x)}
    changed = cpv.hamming(source.x)  # E d is the share of changed records; all may change

    def solve(floor: float) -> cpv.Solution:
        rules = [
            cpv.PreserveMarginal(),
            cpv.KeepProbability(floor),
            cpv.ForbiddenMoves(lambda x, y: abs(rank[x] - rank[y]) > REACH),
        ]
        return cpv.PrivacyDistortion(source, changed, criteria=rules).solve()

    places = np.arange(len(source.x))
    levels = np.abs(places[:, None] - places)
    return Study(source, levels, {floor: solve(floor) for floor in floors})


def exactly(result: Study) -> dict[str, bool]:
    """Check the chosen matrix in fractions, from the counts and its own whole numbers."""
    primal = result.chosen.certificate.primal
    counts = [int(n) for n in result.source.joint.sum(axis=0)]
    places = range(len(counts))
    matrix = [[Fraction(int(k), primal.denominator) for k in row] for row in primal.numerators]
    released = [sum(n * row[j] for n, row in zip(counts, matrix, strict=True)) for j in places]
    return {
        "every row is a law: entries ≥ 0, sum = 1": all(
            sum(row) == 1 and min(row) >= 0 for row in matrix
        ),
        "expected counts of education = the counts": released == counts,
        f"every diagonal entry ≥ {FLOOR:g} (as a floating-point number)": all(
            matrix[i][i] >= Fraction(FLOOR) for i in places
        ),
        f"every move over more than {REACH} levels = 0": all(
            matrix[i][j] == 0 for i, j in np.argwhere(result.levels > REACH)
        ),
    }


def report(result: Study) -> str:
    """Say in words what was proved."""
    source, solution = result.source, result.chosen
    before, bias = source.information(), source.bias()
    table = source.joint @ solution.channel.matrix
    after = cpv.information.miller_madow(table)
    price = solution.prices["keep_probability"]
    saved = before - solution.value
    lines = [
        f"W = income, X = education: {source.records:,} records, {len(source.x)} levels",
        f"{solution}",
        f"  risk before         I(W; X) = {before:.4f} bits, "
        f"of which about {bias:.4f} is small-sample bias (Miller–Madow)",
        f"  risk after          I(W; X̂) = {solution.value:.4f} bits = "
        f"{solution.value / before:.0%} of it; {float(solution.distortion):.0%} of the records "
        "change",
        f"                      (estimated from a released table: about {after:.4f} more, by bias)",
        f"  price of the floor  keeping values with one more percentage point of probability "
        f"costs {price / 100:.5f} bits",
        "  checked in fractions, whatever the solver did:",
    ]
    lines += [
        f"    {claim:<55}  {'yes' if holds else 'NO'}" for claim, holds in exactly(result).items()
    ]
    lines += [
        "  invariant matrices made by the two-step construction:",
        "                                                     I(W; X̂)  removed  least kept",
    ]
    rows = {
        "the optimum": solution.channel.matrix,
        f"P keeps with {FLOOR:g}": result.two_steps(FLOOR),
        "P keeps so often that R keeps the floor": result.raised(FLOOR),
        "R and no change, mixed to keep the floor": result.mixed(FLOOR),
    }
    for name, matrix in rows.items():
        risk, least = result.leakage(matrix), float(matrix.diagonal().min())
        broken = "" if least >= FLOOR - 1e-9 else "  breaks the floor"
        lines.append(
            f"    {name:<46}  {risk:.4f}  {(before - risk) / saved:>7.0%}  {least:>10.1%}{broken}"
        )
    lines.append("    (removed: share of the risk that the optimum removes)")
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw the optimal matrix, and the least leakage against the floor."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(14, 6), layout="constrained")
    ax = cpv.plotting.channel(result.chosen.channel, axes[0], ticks=len(result.source.x))
    ax.tick_params(axis="x", rotation=90)
    ax.set(xlabel="released education x̂", ylabel="original education x")
    ax.set_title(f"the optimal matrix at the floor {FLOOR:g}", fontsize=11)

    ax = axes[1]
    floors = np.array(list(result.solutions))
    value, lower, slope = np.array(
        [(s.value, s.lower, s.prices["keep_probability"]) for s in result.solutions.values()]
    ).T
    fine = np.linspace(floors.min(), floors.max(), 400)
    known = np.isfinite(slope)  # at a floor of 1 nothing can move, and no slope is proved
    lines = lower[known, None] + slope[known, None] * (fine - floors[known, None])
    outer = lines.max(axis=0)
    ax.fill_between(fine, outer, np.interp(fine, floors, value), alpha=0.35)
    ax.plot(floors, value, "o", ms=5, label="optimum (dots), proved from both sides (band)")
    classical: dict[str, Callable[[float], np.ndarray]] = {
        "two steps, mixed with no change": result.mixed,
        "two steps, P raised to keep the floor": result.raised,
    }
    some = np.linspace(floors.min(), floors.max(), 29)
    for style, (label, rule) in zip(("C1--", "C3:"), classical.items(), strict=True):
        ax.plot(some, [result.leakage(rule(floor)) for floor in some], style, label=label)
    ax.axhline(result.source.information(), color="k", lw=0.8)
    ax.annotate("no change", (floors.min(), result.source.information()), (0, 3),
                textcoords="offset points", fontsize=9)  # fmt: skip
    ax.set(xlabel="floor p: every value is kept with at least this probability")
    ax.set_ylabel("risk I(W; X̂) [bits]")
    ax.set_title("what the floor costs (the axis does not start at 0)", fontsize=11)
    ax.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/invariant_pram.png"))
    out = parser.parse_args(arguments).out
    result = study(adult())
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
