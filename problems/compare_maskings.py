"""What do the masking methods in use leak beyond the optimum?

Persons of the 1995 Current Population Survey: the reference microdata "Census" of the CASC
project, 1,080 persons.  Confidential W: taxable income (TAXINC).  Key X, masked as X̂: total
income, state income tax and interest, which together nearly tell it.

Six methods of statistical disclosure control, each over its parameter, and beside them

    minimise    I(W; X̂)
    subject to  E Σ_j (X_j − X̂_j)² / Var X_j ≤ 3 D              over p(x̂ | x)

certified for X cut into 64 cells and W into 8 classes.  The frontier is proved for releases that
see X's cell alone; a method's mark is counted from one table, cut likewise, and can lie on either
side by sampling or because the method used more than the cell (Rebollo-Monedero, Forné and
Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. 3 and §6.2; methods and losses: Mateo-Sanz,
Domingo-Ferrer and Sebé, Data Mining and Knowledge Discovery 11, 2005).

Learn: that groups of k hide who it is, and hardly what they earn; that swapping costs more than it
hides; that noise is the best of the simple methods, if not near the optimum; and that the usual
picture of linked records against information loss shows none of this.

    CVXPRIVACY_DATA=folder python problems/compare_maskings.py  # and output/compare_maskings.png
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy.microdata.masking import (
    MDAV,
    AdditiveNoise,
    HansenMukherjee,
    MuApprox,
    RankSwapping,
)

MISSING = (
    "Set CVXPRIVACY_DATA to a folder that holds census.csv: the public Census reference microdata "
    "of the CASC project, 1,080 x 13, as CASCrefmicrodata in the R package sdcMicro "
    "(https://cran.r-project.org/package=sdcMicro), with the column names as first row."
)
SENSITIVE = "TAXINC"
KEYS = {"PTOTVAL": "total income", "STATETAX": "state income tax", "INTVAL": "interest"}
SIZES = (3, 10, 30, 100, 200)
METHODS = {
    "MDAV": [MDAV(k) for k in SIZES],
    "μ-Approx": [MuApprox(k) for k in SIZES],
    "individual ranking": [HansenMukherjee(k) for k in SIZES],
    "rank swapping": [RankSwapping(p, random_state=0) for p in (1, 3, 7, 15, 30, 60)],
    "noise": [AdditiveNoise(s, random_state=0) for s in (0.1, 0.2, 0.4, 0.6, 0.8)],
    "correlated noise": [
        AdditiveNoise(s, correlated=True, random_state=0) for s in (0.1, 0.2, 0.4, 0.6, 0.8)
    ],
}
AT = 0.2  # the distortion at which methods are compared in words


def census() -> pd.DataFrame:
    """Read the Census table."""
    folder = os.environ.get("CVXPRIVACY_DATA")
    path = Path(folder or ".") / "census.csv"
    if not folder or not path.is_file():
        raise SystemExit(MISSING)
    return pd.read_csv(path)


def study(frame: pd.DataFrame, *, quick: bool = False) -> cpv.Comparison:
    """Compare; ``quick`` takes two settings of each method and fewer cells."""
    methods = {name: curve[1::2] for name, curve in METHODS.items()} if quick else METHODS
    cells, classes = (24, 5) if quick else (64, 8)
    return cpv.compare(
        frame, methods, sensitive=SENSITIVE, key=list(KEYS), cells=cells, classes=classes
    )


def curve(result: cpv.Comparison, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the distortions and risks of a method, the distortions increasing."""
    points = sorted((p.cut, p.risk) for p in result.points if p.method == name)
    x, y = np.array(points).T
    return x, y


def report(result: cpv.Comparison) -> str:
    """Say what was found."""
    points = [p for p in result.points if p.method in METHODS]
    least = min(points, key=lambda p: p.excess)
    lines = [
        f"W = {SENSITIVE}, taxable income; X = {', '.join(KEYS)}",
        str(result),
        "",
        f"at a distortion of {AT:.0%} of the variance (between the nearest settings):",
        f"  the certified optimum leaks          {float(result.lower(AT)):.3f} to "
        f"{float(result.upper(AT)):.3f} bits of {result.information:.3f}",
    ]
    for name in dict.fromkeys(p.method for p in points):
        x, y = curve(result, name)
        if x[0] <= AT <= x[-1]:
            risk = float(np.interp(AT, x, y))
            times = risk / float(result.upper(AT))
            lines.append(f"  {name:<35}  {risk:.3f} bits, {times:.1f} times the optimum")
    lines += [
        f"  releasing the cell, or the mean      {float(result.chord(AT)):.3f} bits (MIUB)",
        f"the least excess of any method is {least.excess:.3f} bits ({least.method}, "
        f"{least.setting}); all are counted from one table each, bias included",
    ]
    return "\n".join(lines)


def draw(result: cpv.Comparison, path: Path) -> None:
    """Draw the plane of risk and distortion, and the usual map of linkage and loss."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(15, 6), layout="constrained")
    result.draw(axes[0])
    axes[0].legend(fontsize=9, loc="upper right")
    axes[0].set_title("what is learnt of taxable income, and what it costs", fontsize=11)
    ax = axes[1]
    names = [*dict.fromkeys(p.method for p in result.points if p.method in METHODS)]
    for i, name in enumerate([*names, "optimal channel"]):
        points = [p for p in result.points if p.method == name]
        color, mark = (f"C{i}", "osD^v<>P"[i]) if name in METHODS else ("0.1", ".")
        ax.plot([p.pil for p in points], [p.linkage for p in points], mark + "-", ms=5.5,
                color=color, label=name)  # fmt: skip
    ax.set(xlabel="probabilistic information loss PIL", ylabel="records linked to their own")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(left=0)
    ax.set_title("the usual picture of the same tables", fontsize=11)
    ax.legend(fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> cpv.Comparison:
    """Compare, print, draw; return the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/compare_maskings.png"))
    parser.add_argument("--quick", action="store_true", help="fewer settings and cells")
    given = parser.parse_args(arguments)
    result = study(census(), quick=given.quick)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
