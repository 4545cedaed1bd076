"""What does a patient's cholesterol leak through their weight?

The motivating example of Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010,
§6.1: "plasma concentration of LDL cholesterol in adults … and their weight"), on the 442 real
patients of the diabetes study of Efron, Hastie, Johnstone and Tibshirani (2004).

Confidential W: LDL cholesterol, in quartiles.  Key X: body mass index, in deciles; beside it
total cholesterol, which is nearly the same thing.  Released X̂: a bin's mean, or the overall mean.

    minimise    I(W; X̂)
    subject to  E (X − X̂)² ≤ D                                   over p(x̂ | x)

Learn: what a certificate is; how much risk a little distortion removes; that the price of the next
unit is the slope of the curve; how much the simple rule "release x, or the mean" leaks beyond it.

    python problems/cholesterol.py            # prints, and writes output/cholesterol.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

COLORS, KEYS = (style.BLUE, style.GREEN), {"bmi": "body mass index", "s1": "total cholesterol"}
TOL = 1e-3  # bits between what is achieved and what is proved, at every budget
SHARE = 0.1  # D / Var X of the release that is printed


def solved(patients, key):
    """Solve for one key attribute at one budget, then enclose its whole curve."""
    bins = pd.qcut(patients[key], 10, labels=False)
    mean_of = patients[key].groupby(bins).mean()  # what a bin stands for
    quartile = pd.qcut(patients["s2"], 4, labels=False)
    table = pd.DataFrame({"LDL quartile": quartile, key: bins.map(mean_of)})
    source = cpv.DiscreteSource.from_table(table, sensitive="LDL quartile", key=key)
    x = np.array(source.x)
    mean = source.p_x @ x
    variance = source.p_x @ (x - mean) ** 2
    error = cpv.squared_error(x, outputs=np.sort([*x, mean]))
    problem = cpv.PrivacyDistortion(source, error, budget=SHARE * variance)
    return SimpleNamespace(source=source, variance=variance, chosen=problem.solve(),
                           curve=cpv.frontier(problem, tol=TOL))  # fmt: skip


def study():
    """Read the table, unscaled, and solve for both key attributes."""
    patients = load_diabetes(as_frame=True, scaled=False).frame
    return {name: solved(patients, key) for key, name in KEYS.items()}


def report(result):
    """Say in words what is proved, and compare with the simple rule and the slope of the curve."""
    for name, each in result.items():
        before, best, var = each.source.information(), each.chosen.value, each.variance
        yield f"X = {name}: {each.source.records} patients, variance {var:.4g}"
        yield each.chosen
        yield f"""\
  risk before          I(W; X) = {before:.4f} bits, of which {each.source.bias():.4f} is likely bias
  risk after           {best:.4f} bits = {best / before:.0%} of it, for {SHARE:.0%} of the variance
  all budgets          proved to {each.curve.band:.1e} bits by {len(each.curve.points)} points"""
        simple = (1 - SHARE) * before
        why = f"that rule leaks {simple / best:.2f} times the optimum"
        yield claim(f"R of {name} [bits]", each.chosen, ("≤", simple), "MIUB, eq. 9", why)
        slope, price = each.curve.price(SHARE * var), each.chosen.prices["budget"]
        yield claim(f"slope, {name}", (slope.lower, slope.upper), price, "bits/unit²", within=0)


def draw(result):
    """Draw the optimal channel of each key attribute, and both trade-offs on one axis."""
    titles = [rf"$\hat X$ of {name}" for name in result]
    figure, axes = style.panels(*titles, r"least $R=I(W;\hat X)$ at every $D$", height=2.4)
    for ax, each, unit in zip(axes, result.values(), ("kg/m²", "mg/dL"), strict=False):
        channel = each.chosen.channel
        image = ax.imshow(channel.matrix, vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(range(0, 11, 3), [f"{x:.0f}" for x in channel.outputs[::3]])
        ax.set_yticks(range(0, 10, 3), [f"{x:.0f}" for x in channel.inputs[::3]])
        ax.set(xlabel=rf"released $\hat x$ [{unit}]", ylabel=f"original $x$ [{unit}]")
    scale = axes[0].inset_axes((0.08, 0.16, 0.4, 0.05))
    figure.colorbar(image, cax=scale, orientation="horizontal", ticks=(0, 1))
    scale.set_title(r"$p(\hat x\,|\,x)$", color="white", loc="center")
    scale.tick_params(colors="white")
    ax, places = axes[2], ((0.16, 0.31), (0.235, 0.13))
    for (name, each), color, at in zip(result.items(), COLORS, places, strict=True):
        before, d = each.source.information(), np.linspace(0, each.curve.points[-1].x, 300)
        ax.plot(d / each.variance, each.curve.inner(d) / before, color=color)
        ax.plot(SHARE, each.chosen.value / before, "*", color=color, ms=8)
        ax.text(*at, name.split()[-1], color=color)
    ax.plot([0, 1], [1, 0], **style.BOUND)
    ax.text(0.47, 0.6, "release $x$, or the\nmean (MIUB)")
    ax.set(xlabel="distortion $D$ [Var $X$]", ylabel="risk $R/I(W;X)$", xlim=(0, 1), ylim=(0, 1))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
