"""Fig. 3 of Sankar et al. 2013: the rate-distortion-equivocation region, and utility–privacy in it.

Sankar, Rajagopalan and Poor, *Utility–Privacy Tradeoffs in Databases: An Information-Theoretic
Approach*, IEEE TIFS 8(6), 2013, Proposition 2 and Theorem 1.  The achievable (R, D, E) are all with

    R ≥ I(X; X̂),   D ≥ E d(X, X̂),   E ≤ H(W | X̂)          for some p(x̂ | x)

The boundary is traced by least rates under E d ≤ D and I(W; X̂) ≤ H(W) − E: R(D) where E is free,
and Γ(D), the greatest E, where the rate is.  The paper's figure is a sketch without a source.  Here
X = (A, B) is two fair bits, W (the paper's Y) is A with an error of probability q, and d counts
wrong bits, D_A of them in A.  With a ∗ b = a(1 − b) + b(1 − a) all is known in closed form:

    R(D, E) = 2 − h(D_A) − h(D − D_A),   D_A = max(D/2, a),   h(q ∗ a) = E        (D − D_A ≤ ½)
    R(D) = 2 − 2 h(D/2) for D ≤ 1,       Γ(D) = h(q ∗ D) for D ≤ ½, 1 beyond

Learn: what each of the three costs in the others; that the code of least rate is not the most
private one (Remark 4), and which bit each of the two spends its errors on.

    python figures/sankar_fig3.py             # prints, and writes output/sankar_fig3.png
"""

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import entr

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

Q, CHOSEN = 0.1, 0.4  # probability of an error in W; D of which more is said
SLICES, MORE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8), (0.02, 0.05, 0.15, 0.25, 0.7, 0.9, 1.0)
STEPS, MARGIN = (0.25, 0.5, 0.75, 1.0), 1e-6  # between the ends; from Γ(D), in bits


def h(p):
    """Binary entropy in bits."""
    return (entr(p) + entr(1 - np.asarray(p))) / np.log(2)


def seen(a):
    """h(q ∗ a), what is unknown of W if A is told with this error."""
    a = np.minimum(a, 0.5)
    return h(Q * (1 - a) + a * (1 - Q))


def rate(d, equivocation=0.0):
    """R(D, E), or R(D)."""
    a = d / 2
    if equivocation > seen(a):
        a = brentq(lambda a: seen(a) - equivocation, 0, 0.5, xtol=1e-15)
    return float(2 - h(min(a, 0.5)) - h(np.clip(d - a, 0, 0.5)))


def study():
    """Solve for R(D), Γ(D) and the rates between."""
    law = [[(1 - Q if w == a else Q) / 4 for a, _ in np.ndindex(2, 2)] for w in (0, 1)]
    source = cpv.DiscreteSource(law, w=[0, 1], x=list(np.ndindex(2, 2)))
    error = cpv.per_attribute({"A": cpv.hamming(2), "B": cpv.hamming(2)})
    rows = []

    def solve(point, d, kind, cap=None):
        problem = cpv.RateDistortionEquivocation(source, error, d, minimize=kind, max_leakage=cap)
        solution = problem.solve()
        held = 1 - (cap or float(solution.leakage))
        off = solution.value - rate(d, held if cap else 0) if kind == "rate" else seen(d) - held
        wrong = float(solution.terms["distortion of B"])
        rows.append((point, d, held, float(solution.rate), wrong, off, solution))
        return float(solution.leakage)

    for d in SLICES + MORE:
        most, least = solve("R(D)", d, "rate"), solve("Γ(D)", d, "leakage") + MARGIN
        for step in STEPS if d in SLICES else ():
            solve("R(D, E)", d, "rate", most + step * (least - most))
    return pd.DataFrame(rows, columns=["point", "D", "E", "R", "wrong B", "off", "solved"])


def report(result):
    """Compare with the closed forms, and with Remark 4."""
    for point, off in result.groupby("point").off:
        what = f"{point} at {len(off)} points, farthest off [bits]"
        yield claim(what, off.abs().to_numpy().max(), 0.0, "closed form", within=1e-6)
    ends = result.groupby(["point", "D"]).last()
    ends = {"of least rate": ends.loc["R(D)"], "most private": ends.loc["R(D, E)"]}
    yield f"\nrate, E and wrong bits in B, of D; the most private code is {MARGIN:g} below Γ(D)"
    yield pd.concat(ends, axis=1, join="inner").drop(columns=["off", "solved"], level=1).round(4)
    first, last = (end.loc[CHOSEN] for end in ends.values())
    at, why = f", D = {CHOSEN:g} [bits]", "it first reveals what of X is “orthogonal to” W"
    yield claim(f"Γ(D) above E of the least rate{at}", last.E - first.E, "> 0", "Remark 4")
    yield claim(f"rate of Γ(D) above R(D){at}", last.R - first.R, "> 0", "Remark 4")
    yield claim("its wrong bits in B", last["wrong B"], 0.0, "Remark 4", why, within=1e-4)
    yield last.solved


def draw(result):
    """Draw the region, its projection, and its sections."""
    figure, (page, flat, cut) = style.panels("least rate; dots: certified",
        "at any rate; grey: reached", "at fixed $D$", width_ratios=(1.5, 1, 1))  # fmt: skip
    page.axis("off")
    space = figure.add_subplot(page.get_subplotspec(), projection="3d", elev=24, azim=-50)
    fine = np.linspace(0, 1, 41)
    levels = 0.4 + fine[:, None] * (seen(fine) - 0.4)
    heights = np.vectorize(rate)(fine, levels)
    space.plot_surface(np.tile(fine, (41, 1)), levels, heights, cmap=style.MAP, alpha=0.5, lw=0)
    for point, wrong, colour in (("Γ(D)", fine, style.GREEN), ("R(D)", fine / 2, style.BLUE)):
        some = result[result.point == point]
        flat.plot(fine, seen(wrong), color=colour)
        flat.plot(some.D, some.E, "*", color=colour, clip_on=False)
        space.plot(fine, seen(wrong), np.vectorize(rate)(fine, seen(wrong) - 1e-12), color=colour)
    for d, some in result[result.D.isin(SLICES) & (result.point != "Γ(D)")].groupby("D"):
        e = np.linspace(0.4, seen(d), 300)
        space.plot(some.D, some.E, some.R, ".-", color=style.BLACK, ms=3, lw=0.6)
        cut.plot([*e, e[-1]], [*np.vectorize(rate)(d, e), 2], color=style.GREY, lw=0.8)
        colours = [style.BLUE, *[style.GREY] * (len(some) - 2), style.GREEN]
        cut.scatter(some.E, some.R, 40, colours, marker="*", lw=0, zorder=3)
        cut.text(0.41, rate(d) + 0.02, f"$D$ = {d:g}")
    flat.fill_between(fine, seen(fine), color=style.LIGHT, alpha=0.4, lw=0)
    flat.text(0.06, 0.93, "Γ($D$)", color=style.GREEN)
    flat.text(0.3, 0.57, "code of least rate,\n$R(D)$", color=style.BLUE)
    error, hidden = "distortion $D$ [wrong bits]", "equivocation $E$ [bits]"
    for ax in (space, flat):
        ax.set(xlabel=error, ylabel=hidden, xlim=(0, 1), ylim=(0.4, 1.02))
    cut.set(xlabel=hidden, ylabel="least rate [bits]", xlim=(0.4, 1.02), ylim=(0, 1.7))
    space.set(zlabel="rate $R$ [bits]", xticks=(0, 0.5, 1), yticks=(0.4, 0.7, 1), zticks=(0, 1, 2))
    space.set_box_aspect(None, zoom=0.8)
    return figure


if __name__ == "__main__":
    run(study, report, draw)
