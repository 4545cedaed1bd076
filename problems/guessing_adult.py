"""Does the best release for mutual information also protect against guessing?

Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010) minimise I(W; X̂).  Others fear
other things: the attacker who guesses W (Smith, FoSSaCS 2009), who has gains of their own (Alvim et
al., CSF 2012), the largest posterior shift (Li, Li and Venkatasubramanian, ICDE 2007).  Each is a
convex and homogeneous function of the joint masses, so each has its own certified optimum under the
same distortion; here the release that is best for mutual information is measured by all of them,
and compared with the least that each could be.

Confidential W: marital status.  Key X: age in bands of ten, and sex, of the 32,561 records of the
UCI Adult data set.  Distortion: bands moved, as a share of all bands, plus 1 if sex changes.

    minimise    Σ_x̂ F(p(·, x̂))                                  over p(x̂ | x)
    subject to  E d(X, X̂) ≤ D                                    for each measure F, at several D

Learn: how near the release for one measure comes to the optimum of another; that inequalities
between measures leave much room; that guessing, which has only one guess to change, falls to its
floor max_w p(w) long before information is gone.

    python problems/guessing_adult.py         # prints, and writes output/guessing_adult.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

MEASURES = {
    "mutual information [nats]": cpv.leakage.MutualInformation(),
    "chi-squared": cpv.leakage.ChiSquared(),
    "squared Hellinger": cpv.leakage.SquaredHellinger(),
    "total variation": cpv.leakage.TotalVariation(),
    "guessing probability": cpv.leakage.GuessingProbability(),
    "Sibson, order 2": cpv.leakage.Sibson(2),
    "maximal leakage, exp": cpv.leakage.Maximal("W"),
}
INFORMATION, CHI, _, SHIFT, GUESS, SIBSON, MAXIMAL = MEASURES
SHARES, CHOSEN = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8), 0.2  # of the distortion of a constant


def study():
    """Solve for every measure at every distortion, and measure what is best for information."""
    source = cpv.DiscreteSource.from_table(
        cpv.datasets.load_adult(), sensitive="marital-status", key=["age", "sex"], bins={"age": 10}
    )
    error = cpv.per_attribute({"age": "ordinal", "sex": "hamming"}, source)
    constant = float((source.p_x @ error.matrix).min())
    optima = {
        (share, name): cpv.PrivacyDistortion(
            source, error, budget=share * constant, leakage=measure, units="nats"
        ).solve()
        for share in SHARES for name, measure in MEASURES.items()
    }  # fmt: skip

    def measured(joint):
        return pd.Series({name: measure.total(joint) for name, measure in MEASURES.items()})

    told = {s: measured(source.pmf @ optima[s, INFORMATION].channel.matrix) for s in SHARES}
    least = {s: {name: optima[s, name].upper for name in MEASURES} for s in SHARES}
    return SimpleNamespace(
        source=source, error=error, constant=constant, optima=optima,
        none=measured(source.p_w[:, None]), full=measured(source.pmf),
        told=pd.DataFrame(told).T, least=pd.DataFrame(least).T,
    )  # fmt: skip


def report(result):
    """Say what each measure is for the release that is best for mutual information."""
    source, none, full = result.source, result.none, result.full
    yield f"{source.records:,} records, {len(source.w)} × {len(source.x)} cells"
    yield result.optima[CHOSEN, GUESS]
    here, least = result.told.loc[CHOSEN], result.least.loc[CHOSEN]
    more = (result.told - result.least) / (full - none)
    yield f"\nat D = {CHOSEN * result.constant:.4f}, {CHOSEN:.0%} of what a constant costs"
    yield pd.DataFrame({
        "no release": none, "X itself": full, "its optimum": least, "best for information": here,
        "more [%]": 100 * more.loc[CHOSEN],
    }).round(4).round({"more [%]": 1})  # fmt: skip
    share, name = more.stack().idxmax()
    yield f"(more: of the range; at most {more.loc[share, name]:.1%}: {name}, at {share:.0%})"
    for what, found, most, where in (
        ("total variation", here[SHIFT], np.sqrt(here[INFORMATION] / 2), "√(I/2), Pinsker"),
        ("mutual information [nats]", here[INFORMATION], np.log1p(here[CHI]), "ln(1 + χ²)"),
        ("mutual information, order 1 [nats]", here[INFORMATION], 2 * np.log(here[SIBSON]),
         "order 2"),
        ("Sibson, order 2 [nats]", 2 * np.log(here[SIBSON]), np.log(here[MAXIMAL]), "order ∞"),
        ("guessing over its prior", here[GUESS] / none[GUESS], here[MAXIMAL], "Issa et al. 2020"),
    ):  # fmt: skip
        yield claim(what, found, ("≤", most), where)
    yield claim("least excess of another measure [of the range]",
                more.drop(index=0.0, columns=INFORMATION).to_numpy().min(), "≥ 0", "optimality",
                within=1e-7)  # fmt: skip
    yield claim("all optima at D = 0, off X itself", np.abs(result.least.loc[0.0] - full).max(),
                0.0, "data processing", within=1e-8)  # fmt: skip
    yield claim(f"guessing optimum at {SHARES[-1]:.0%} of a constant", result.least[GUESS].iloc[-1],
                source.p_w.max(), "max p(w)")  # fmt: skip
    silent = result.least.index[result.least[GUESS] <= none[GUESS] + 1e-6]
    yield (
        f"\nguessing gains nothing from {silent[0]:.0%} of a constant's D on" if len(silent) else ""
    )


def draw(result):
    """Draw every measure along the release for information, above the least it could be."""
    names = [name.partition(" [")[0] for name in MEASURES]
    figure, axes = style.panels(
        *names, "excess [% of $X$ itself]", height=3.7, rows=2, sharex=True, sharey=True
    )
    scale = 100 / (result.full - result.none)
    own, other = ((values - result.none) * scale for values in (result.least, result.told))
    budgets, last = result.constant * own.index, axes[7]
    for ax, name in zip(axes, MEASURES, strict=False):
        ax.plot(budgets, other[name], **style.PRACTICE, clip_on=False, zorder=3)
        ax.plot(budgets, own[name], **style.OPTIMUM, clip_on=False, zorder=3)
        ax.fill_between(budgets, own[name], other[name], color=style.VERMILION, alpha=0.2, lw=0)
    shades = {GUESS: style.PURPLE, MAXIMAL: style.GREEN, SHIFT: style.ORANGE}
    for place, (name, color) in enumerate(shades.items()):
        last.plot(budgets, other[name] - own[name], color=color)
        last.text(0.08, 0.85 - 0.12 * place, name, color=color, transform=last.transAxes)
    last.plot(budgets, (other - own).drop(columns=list(shades)), color=style.GREY, lw=0.7)
    last.text(0.08, 0.49, "others", color=style.GREY, transform=last.transAxes)
    axes[3].text(0.3, 0.7, "best for\ninformation", color=style.VERMILION,
                 transform=axes[3].transAxes)  # fmt: skip
    axes[3].text(0.04, 0.08, "its own\nleast", color=style.BLUE, transform=axes[3].transAxes)
    axes[0].set(xlim=(0, None), ylim=(0, 105))
    unit = "[share of bands moved + share of sexes changed]"
    figure.supxlabel(rf"distortion E $d(X,\hat X)$ {unit}", fontsize=8)
    for ax in axes[::4]:
        ax.set_ylabel("leaked [% of $X$ itself]")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
