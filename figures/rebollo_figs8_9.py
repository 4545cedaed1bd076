"""Figs. 8 and 9 of Rebollo-Monedero et al. 2010: MDAV and μ-Approx beside both optima.

IEEE TKDE 22(11), 2010, §6.2: W and X jointly Gaussian, ρ = 0.95, unit variances; each x of 2¹⁵
records is replaced by the mean x̂ of its group of at least k (microaggregation).

Drawn against E (X − X̂)²: the risk I(W; X̂) of the groups by integration, and as the paper estimates
it (records, steps of 0.15); the bounds QGLB and MIUB; the certified Gaussian release, which reaches
the QGLB; the groups of k that err least (Hansen and Mukherjee 2003); two groups with any cut.

Learn: what each of three groupings loses, a tenth to two fifths of the gap between the bounds; and
where the methods end, at 0.44 Var X of the k tried: beyond are very uneven groups, or one.

    python figures/rebollo_figs8_9.py         # prints, and writes output/rebollo_figs8_9.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import norm

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run
from cvxprivacy_sdc import partitions  # pip install cvxprivacy-sdc
from cvxprivacy_sdc.risk import estimated_leakage

RHO, STEP, PLACES = 0.95, 0.15, (0.05, 0.15, 0.3, 0.5, 0.7, 0.9)  # D of the optimal releases
SHARES = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.26, 0.3, 0.34, 0.38, 0.5)  # k/n
METHODS = {  # how to group, colour and marker, place of the label
    "MDAV": (partitions.mdav, style.MASKINGS["MDAV"], (0.23, 0.061)),
    "μ-Approx": (partitions.mu_approx, style.MASKINGS["μ-Approx"], (0.13, 0.081)),
    "least error": (partitions.hansen_mukherjee, (style.PURPLE, "+"), (0.23, 0.0555)),
}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(200)  # of W


def qglb(d):
    """The lower bound on R(D) in nats (eq. 8)."""
    return -np.log(1 - (1 - d) * RHO**2) / 2


def measured(cuts, groups):
    """E (X − X̂)² and I(W; X̂) of the Gaussian law, where X between two cuts is of a group."""
    cuts = np.array([-np.inf, *cuts, np.inf])
    below = ndtr((cuts - RHO * NODES[:, None]) / np.sqrt(1 - RHO**2))  # P(X ≤ cut | w)
    joint = np.diff(below, axis=1) * WEIGHTS[:, None] / WEIGHTS.sum()
    joint = joint @ np.eye(max(groups) + 1)[groups]
    first = np.bincount(groups, -np.diff(norm.pdf(cuts)))  # E X on the group
    error = 1 - (first**2 / joint.sum(axis=0)).sum()
    return error, cpv.information.mutual_information(joint, units="nats")


def of_sample(x, labels):
    """The same of a sample's groups, cut half-way between neighbours."""
    x, labels = x[np.argsort(x)], labels[np.argsort(x)]
    ends = np.flatnonzero(np.diff(labels)) + 1
    return measured((x[ends - 1] + x[ends]) / 2, labels[[0, *ends]])


def study(*, quick: bool = False, seed: int = 20100822):
    """Group, measure and solve; ``quick`` takes fewer records and groupings."""
    records, rows = 2**12 if quick else 2**15, []
    x, noise = np.random.default_rng(seed).standard_normal((2, records))
    w = RHO * x + np.sqrt(1 - RHO**2) * noise
    for share in SHARES[1::3] if quick else SHARES:
        for method, (partition, *_) in METHODS.items():
            labels = partition(x, round(share * records))
            released = partitions.means(x[:, None], labels)[:, 0]
            guess = estimated_leakage(w, released, step=STEP, units="nats")
            seen = (((x - released) ** 2).mean() / x.var(), guess.value, guess.standard_error)
            rows.append((share, method, labels.max() + 1, *of_sample(x, labels), *seen))
    names = ("k/n", "method", "groups", "D", "R", "D seen", "R seen", "error")
    table = pd.DataFrame(rows, columns=names).query("groups > 1")
    table["above"] = table["R"] - qglb(table["D"])
    table["of gap"] = table["above"] / ((1 - table["D"]) * qglb(0) - qglb(table["D"]))
    law, two = cpv.GaussianSource.scalar(RHO), [measured([c], [0, 1]) for c in np.arange(80) / 20]
    optima = [cpv.QuadraticGaussian(law, d, units="nats").solve() for d in PLACES]
    return SimpleNamespace(table=table, optima=optima, two=np.array(two))


def report(result):
    """Compare with what the paper says."""
    table, half = result.table, result.optima[PLACES.index(0.5)]
    shown = table.pivot(index="k/n", columns="method", values=["D", "above"]).round(3)
    yield f"{half}\n\nD, and risk above eq. 8 [nats]\n{shown.to_string(na_rep='')}"
    yield claim("R(0.5) of the optimal release [nats]", half, float(qglb(0.5)), "eq. 8")
    yield claim("least excess of groups [nats]", table["above"].min(), "≥ 0", "Thm. 2")
    part = table.groupby("method")["of gap"].agg(["min", "max"])
    said = {name: f"{low:.0%} to {high:.0%}" for name, low, high in part.itertuples()}
    for name, above in table.groupby("method")["above"].max()[["MDAV", "μ-Approx"]].items():
        why = f"at most {above:.3f} nats; near: < 10%; groups of least error {said['least error']}"
        yield claim(f"{name}: share of the gap above eq. 8", said[name], "near-optimality", "§6.2",
                    why, agrees=part["max"][name] < 0.1)  # fmt: skip
    low, *_, high = sorted(table["R seen"] - table["R"])
    yield f"\nestimates in steps of {STEP:g} are {low:.3f} to {high:.3f} nats off"


def draw(result):
    """Draw both figures, and what is leaked above the bound."""
    figure, axes = style.panels("Fig. 8: MDAV", "Fig. 9: μ-Approx", "above the QGLB", height=2.8)
    table, (*_, last), two = result.table.set_index("method"), axes, result.two.T
    fine, sign = np.linspace(0, 1, 300), {"ls": "", "mfc": "none", "ms": 5, "clip_on": False}
    for ax, method in zip(axes, ("MDAV", "μ-Approx"), strict=False):
        ax.plot(fine, (1 - fine) * qglb(0), fine, qglb(fine), **style.BOUND)
        ax.plot(PLACES, [s.value for s in result.optima], "*", color=style.BLUE, ms=7)
        for each, y, more in (("least error", 1, ""), (method, 1.1, r", $\times$ as estimated")):
            color, marker = METHODS[each][1]
            ax.plot(*table.loc[each, ["D", "R"]].to_numpy().T, marker, color=color, **sign)
            ax.text(0.27, y, each + more, color=color)
        ax.plot(*table.loc[method, ["D seen", "R seen"]].to_numpy().T, "x", ms=3, color=color)
        ax.set(ylim=(0, 1.2), ylabel="risk $R$ [nats]")
    for method, (_, (color, marker), place) in METHODS.items():
        last.plot(*table.loc[method, ["D", "above"]].to_numpy().T, marker, color=color, **sign)
        last.text(*place, method, color=color)
    last.plot(two[0], two[1] - qglb(two[0]), color=style.ORANGE)
    last.plot(PLACES, [0] * len(PLACES), "*", color=style.BLUE, ms=7, clip_on=False)
    last.set(ylabel="excess of $R$ [nats]", ylim=(0, None))
    for i, x, y, said, color in (
        (0, 0.5, 0.66, "MIUB, eq. (9)", style.BLACK), (0, 0.02, 0.16, "QGLB, eq. (8)", style.BLACK),
        (0, 0.02, 0.06, "optimal release", style.BLUE), (1, 0.5, 0.66, "MIUB", style.BLACK),
        (2, 0.6, 0.051, "two groups,\nany cut", style.ORANGE)):  # fmt: skip
        axes[i].text(x, y, said, color=color)
        axes[i].set(xlim=(0, 1), xlabel="distortion $D$ [Var $X$]")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
