"""Fig. 6 of Rebollo-Monedero et al. 2010: bounds, steepest descent, and the certified optimum.

*From t-Closeness-Like Privacy to Postrandomization via Information Theory*, IEEE TKDE 22(11), 2010,
§6.1: W and X jointly Gaussian, ρ = 0.95, unit variances, sampled on 31 × 31 points of [−3, 3]².

    minimise    I(W; X̂)                      R(D), or with a price λ on information
    subject to  E (X − X̂)² ≤ D               minimise  C = E (X − X̂)² + λ I(W; X̂)

Drawn: the bounds for Gaussian laws (QGLB, eq. 8; MIUB, eq. 9), the certified optimum of the sampled
one, and the paper's descent at the λ of D = 0.25, 0.5, 0.75: 32,000 steps of 1e-4 from a mixture of
"release x" and "release the mean", entries below 0 reset to 0, rows renormalised; and variants.

Learn: "close" needs a scale; here it is the gap between the bounds.  Printed steps are slow in both
ways, longer ones jitter (rounding moves their ends); and resetting does not keep an optimum: there
a step lifts a row's support evenly, and renormalising shrinks it in proportion.

    python figures/rebollo_fig6.py            # prints, and writes output/rebollo_fig6.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.reference import mixture_of_trivial_rules, projected_descent
from cvxprivacy.study import claim, run

RHO, OTHERS, SHARES = 0.95, (0.5, 0.8), (0.25, 0.5, 0.75)  # shares: D for which λ is chosen
WAYS = {  # how to descend, colour, place of the label
    "reset, 1e-4": ({"step": 1e-4}, style.VERMILION, (4e4, 9.2)),
    "reset, 1e-3": ({"step": 1e-3}, style.ORANGE, (4e4, 6.6)),
    "projected, 1e-4": ({"step": 1e-4, "exact": True}, style.SKY, (4e4, 11.8)),
    "projected, 1e-3": ({"step": 1e-3, "exact": True}, style.GREEN, (4e4, 2)),
    "reset, from the optimum": ({"step": 1e-4}, style.PURPLE, (14, 2)),
}
PRINTED, LONGER, EXACT, BOTH, AWAY = WAYS
ABOVE, GAP, EXCESS = "R above eq. 8 [nats]", "gap of the bounds", "C above optimum [%]"


def qglb(d, rho=RHO):
    """The lower bound on R(D) in nats (eq. 8)."""
    return -np.log(1 - (1 - np.minimum(d, 1)) * rho**2) / 2


def gap(d, rho=RHO):
    """MIUB − QGLB in nats (eqs. 9 and 8)."""
    return (1 - d) * qglb(0, rho) - qglb(d, rho)


def study(*, quick: bool = False):
    """Solve and descend; ``quick`` takes a wider band, fewer iterations and one other ρ."""
    stops = np.unique([0, *np.geomspace(10, 1_000 if quick else 32_000, 40).astype(int)])
    paths = {}
    for rho in (0.8, RHO) if quick else (*OTHERS, RHO):
        source = cpv.GaussianSource.scalar(rho).discretise(31, 3.0)
        error = cpv.squared_error(source.x)
        for aim in SHARES:
            price = 2 * (1 / rho**2 - 1 + aim)
            best = cpv.PrivacyDistortion(source, error, price=price, units="nats").solve()
            for way in WAYS if rho == RHO else (PRINTED, BOTH):
                start = mixture_of_trivial_rules(source.x, source.p_x, aim)
                channel, path = best.channel.matrix if way == AWAY else start, []
                for some in np.diff(stops, prepend=0):
                    r, d, channel = projected_descent(source.pmf, error.matrix, price, channel,
                                                      iterations=some, **WAYS[way][0])  # fmt: skip
                    excess = 100 * (d + price * r) / best.upper - 100
                    path.append((d, r, r - qglb(d, rho), gap(d, rho), excess))
                paths[rho, way, aim] = np.array(path)
    law = cpv.GaussianSource.scalar(RHO)
    bounds = [cpv.QuadraticGaussian(law, d, units="nats").solve() for d in SHARES]
    sampled = cpv.PrivacyDistortion(source, error, budget=0.5, units="nats")
    curve = cpv.frontier(sampled, tol=1e-2 if quick else 1e-3, points=SHARES)
    return SimpleNamespace(source=source, bounds=bounds, curve=curve, paths=paths, stops=stops)


def report(result):
    """Compare with what the paper says."""
    source, half = result.source, result.curve.solution_at(0.5)
    ends = pd.DataFrame({k: p[-1] for k, p in result.paths.items()}, ("D", "R", ABOVE, GAP, EXCESS))
    found = ends.T.rename_axis(["ρ", "steps", "D of λ"]).unstack()
    yield f"{half}\n\nafter {result.stops[-1]:,} iterations (close: below 10 % of the bounds' gap)"
    yield found[[ABOVE, EXCESS]].to_string(float_format="{:.3f}".format)
    for d, bound, known in zip(SHARES, result.bounds, ("0.72", "1.22", "1.72"), strict=True):
        yield claim(f"λ at D = {d:g}", -1 / bound.prices["budget"], known, "§6.1")
    why = f"cut at ±3, X has variance {source.p_x @ np.square(source.x):.3f}"
    yield claim("R(0.5), Gaussian [nats]", result.bounds[1], "≈ 0.3", "§6.1")
    yield claim("R(0.5), sampled [nats]", half, "≈ 0.3", "§6.1", why)
    yield claim("I(W; X) [nats]", qglb(0), "≈ 1.2", "§6.1")
    part = 100 * found[ABOVE] / found[GAP]
    share, cost = (table.loc[RHO].round().astype(int).astype(str).agg(", ".join, axis=1) + " %"
                   for table in (part, found[EXCESS]))  # fmt: skip
    why = f"C is {cost[PRINTED]} above its optimum; from there, such steps lead {cost[AWAY]} up"
    close, said = (part < 10).all(axis=1).loc[RHO], ("very close", "§6.1")
    yield claim("printed: share of gap", share[PRINTED], *said, why, agrees=close[PRINTED])
    why = f"C: {cost[BOTH]}; either change alone leaves {cost[LONGER]} or {cost[EXACT]}"
    yield claim("projected: share of gap", share[BOTH], *said, why, agrees=close[BOTH])
    gaps = [gap(np.linspace(0, 1, 1001), rho).max() for rho in found.index.unique(0)]
    yield claim("greatest gap, by ρ", ", ".join(f"{each:.3f}" for each in gaps), "wider for high ρ",
                "§6.1", agrees=gaps == sorted(gaps))  # fmt: skip
    yield f"\n“similarity” at ρ = 0.8 (§6.1): {part.loc[0.8, PRINTED].round().tolist()} % of gap"


def draw(result):
    """Draw R against D, and how the cost of the descents falls."""
    titles = ("bounds, optimum, descents as in (b)", r"cost at $\lambda\approx 1.22$")
    (figure, (ax, right)), fine = style.panels(*titles, height=2.8), np.linspace(0, 1, 300)
    ax.plot(fine, (1 - fine) * qglb(0), fine, qglb(fine), **style.BOUND, zorder=3)
    ax.plot(fine, result.curve.inner(np.minimum(fine, result.curve.points[-1].x)), color=style.BLUE)
    for (rho, way, _), path in result.paths.items():
        if rho == RHO and way in (PRINTED, BOTH):
            ax.plot(*path.T[:2], color=WAYS[way][1], lw=0.8, marker="o", ms=4, markevery=[-1])
            ax.plot(*path.T[:2, 0], "o", ms=4, mfc="white", color=style.GREY)
    ax.plot(SHARES, result.curve.inner(SHARES), "*", ms=8, color=style.BLUE, zorder=4)
    ax.text(0.5, 0.66, "MIUB, eq. (9)")
    ax.text(0.71, 0.275, "start", color=style.GREY, ha="right", va="center")
    ax.annotate("QGLB, eq. (8)", (0.17, 0.695), (0.02, 0.4), arrowprops={"arrowstyle": "-"})
    ax.text(0.02, 0.15, "certified optimum\nof the sampled law", color=style.BLUE)
    ax.set(xlabel="distortion $D$ [Var $X$]", ylabel="risk $R$ [nats]", xlim=(0, 1), ylim=(0, 1.2))
    for way, (_, color, place) in WAYS.items():
        right.semilogx(result.stops[1:], result.paths[RHO, way, 0.5][1:, 4], color=color, subs=[])
        right.text(*place, way, color=color)
    right.set(xlabel="iterations", xlim=(10, 9e5))
    right.set(ylabel="$C$ above its optimum [%]", ylim=(0, None))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
