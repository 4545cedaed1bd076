"""What does it cost to tell nothing at all, and what can still be told?

A release that is independent of W leaks nothing in any measure: perfect privacy (Shannon 1949).  It
need not be a constant.  X has more values than W, so what of X does not move with W may be told;
how well, is a linear program: least distortion under I(W; X̂) = 0.

Confidential W: sex.  Key X: band of age and marital status, of the 32,561 records of the UCI Adult
data set, on which sex depends strongly (widowed, divorced).  Distortion: bands moved, as a share of
all bands, plus 1 if marital status changes.

    minimise    E d(X, X̂)                                        over p(x̂ | x)
    subject to  p(w | x̂) = p(w)   for every x̂                    perfect privacy, or
                TV(p(w | x̂), p(w)) ≤ t   for every x̂              next to it

Learn: how much less than a constant perfect privacy costs, what of X survives it (at most H(X | W),
as W – X – X̂ gives I(X; X̂) = I(X; X̂ | W)), and how fast the cost falls where posteriors may move a
little (the price dD/dt).

    python problems/perfect_privacy.py        # prints, and writes output/perfect_privacy.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

BOUNDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)  # t
RARE = 1e-3  # cells and letters of fewer records are not drawn


def study():
    """Solve under perfect privacy, and next to it."""
    source = cpv.DiscreteSource.from_table(
        cpv.datasets.load_adult(), sensitive="sex", key=["age", "marital-status"], bins={"age": 20}
    )
    error = cpv.per_attribute({"age": "ordinal", "marital-status": "hamming"}, source)
    rules = {0.0: cpv.PerfectPrivacy(), **{t: cpv.TCloseness(t, "tv") for t in BOUNDS}}
    optima = {t: cpv.MinimumDistortion(source, error, [rule]).solve() for t, rule in rules.items()}
    constant = float((source.p_x @ error.matrix).min())
    return SimpleNamespace(source=source, error=error, optima=optima, constant=constant)


def report(result):
    """Say what was proved, and what it costs."""
    source, optimum = result.source, result.optima[0.0]
    yield (
        f"{source.records:,} records, {len(source.w)} × {len(source.x)} cells, "
        f"I(W; X) = {source.information():.4f} bits"
    )
    yield optimum
    joint = source.pmf @ optimum.channel.matrix
    moved = np.abs(joint - np.outer(source.p_w, joint.sum(axis=0))).max()
    kept = cpv.information.mutual_information(source.p_x[:, None] * optimum.channel.matrix)
    whole, most = (cpv.information.entropy(source.p_x),
                   cpv.information.conditional_entropy(source.pmf.T))  # fmt: skip
    parts = [optimum.terms[f"distortion of {name}"] for name in ("age", "marital-status")]
    yield claim("I(W; X̂), proved at most [bits]", optimum.risk.upper, 0.0, "Shannon 1949")
    yield claim("greatest |p(w, x̂) − p(w) p(x̂)|", moved, 0.0, "independence", within=1e-12)
    yield claim("I(X; X̂) [bits]", kept, ("≤", most), "H(X | W)")
    yield claim("E d of age + of marital status", sum(map(float, parts)), float(optimum.distortion),
                "E d", within=1e-9)  # fmt: skip
    yield claim("E d, perfectly private", optimum, ("≤", result.constant), "a constant")
    low, t, high = BOUNDS[1:4]
    values = {each: solution.value for each, solution in result.optima.items()}
    chords = tuple((values[end] - values[t]) / (end - t) for end in (low, high))
    price = result.optima[t].prices["t_closeness"]
    yield claim(f"slopes from t = {t:g} to {low:g}, {high:g}", chords, price, "price")
    yield (
        f"\nperfect privacy costs {optimum.upper / result.constant:.1%} of a constant's E d, and "
        f"keeps {kept / whole:.1%} of H(X)\n\nE d by t (total variation)"
    )
    table = pd.DataFrame({"E d": values, "price dD/dt": {
        t: result.optima[t].prices["t_closeness"] for t in BOUNDS}})  # fmt: skip
    table.insert(1, "of a constant", table["E d"] / result.constant)
    yield table.to_string(float_format="{:.4f}".format, na_rep="")


def draw(result):
    """Draw the perfectly private release, and the cost of letting posteriors move."""
    source, matrix = result.source, result.optima[0.0].channel.matrix
    figure, (left, right) = style.panels(
        r"$p(\hat x\,|\,x)$ under perfect privacy", "what it costs", height=4.2,
        width_ratios=(1.4, 1),
    )  # fmt: skip
    rows = np.flatnonzero(source.p_x >= RARE)
    used = np.flatnonzero(source.p_x @ matrix >= RARE)
    image = left.imshow(matrix[np.ix_(rows, used)], vmin=0, vmax=1, cmap=style.MAP, aspect="auto")
    women = source.pmf[list(source.w).index("Female")] / source.p_x
    names = [f"{age} {status.replace('-spouse', '')}" for age, status in source.x]
    left.set_yticks(range(len(rows)), [f"{names[i]}: {women[i]:.0%}" for i in rows])
    left.set_xticks(range(len(used)), [names[i] for i in used], rotation=90)
    left.set(xlabel=r"released $\hat x$", ylabel="true cell $x$, and its share of women")
    scale = figure.colorbar(image, cax=left.inset_axes((0.6, 0.9, 0.33, 0.03)),
                            orientation="horizontal")  # fmt: skip
    scale.ax.tick_params(colors="white")
    right.plot(list(result.optima), [s.value for s in result.optima.values()], **style.OPTIMUM)
    right.axhline(result.constant, **style.BOUND)
    right.set(xlabel="$t$ [total variation]", ylim=(0, None),
              ylabel=r"E $d(X,\hat X)$ [share of bands + statuses changed]")  # fmt: skip
    for x, y, said, color in (
        (0.4, 0.9, "release a constant", style.BLACK),
        (0.1, 0.57, "perfect privacy", style.BLUE),
        (0.4, 0.3, "every letter\nwithin $t$ of $p(w)$", style.BLUE),
    ):
        right.text(x, y, said, color=color, transform=right.transAxes)
    return figure


if __name__ == "__main__":
    run(study, report, draw)
