"""How far off must an address be that hides in its neighbourhood?

Metric privacy (Chatzikokolakis et al., PETS 2013; on maps, Andrés et al., CCS 2013): homes k blocks
apart are told apart by a factor e^(ε k) at most.  A made-up city of 6 × 6 blocks; d along streets.

    minimise    E d(X, X̂)                                        over p(x̂ | x)
    subject to  p(x̂ | x) ≤ e^(ε d(x, x')) p(x̂ | x')              for neighbours, so for all

Beside the optimum stands what is used: Laplace noise on the lattice of blocks, cut off at the edge,
and the exponential mechanism.  Remapped, each released block is replaced by the one that costs
least, where people live as they do.  On a line such noise is then optimal, whatever the law (Ghosh,
Roughgarden, Sundararajan 2012); elsewhere no mechanism is (Brenner and Nissim, FOCS 2010).

Learn: that a remap has back most of what the noise costs beyond need, and how little is left; how
much of its ε a mechanism leaves unused whose rows are normalised one by one.

    python problems/city_grid.py        # prints, and writes output/city_grid.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import mechanisms, style
from cvxprivacy.study import claim, run

SIDE, EPSILONS, CHOSEN = 6, (0.25, 0.5, 0.75, 1.0, 1.5, 2.0), 0.75
CENTRES = ((1.4, 1.6, 8.0, 1.1), (4.1, 3.8, 6.0, 0.8))  # row, column, people there, width
COUNTRY, BAR = 0.25, (0, -0.12, 1, 0.05)  # people in every block; where a scale is drawn
NOISE, REMAPPED, EXPONENTIAL = "Laplace", "Laplace, remapped", "exponential, remapped"


def study():
    """Return the optimum by ε, the mechanisms in use, and what each costs."""
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    people = COUNTRY + sum(n * np.exp(-((row - r) ** 2 + (column - c) ** 2) / (2 * width**2))
                           for r, c, n, width in CENTRES)  # fmt: skip
    blocks = list(zip(row.tolist(), column.tolist(), strict=True))
    source = cpv.DiscreteSource.identical(people / people.sum(), x=blocks)
    streets = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    d = cpv.Distortion(streets, inputs=blocks, outputs=blocks)
    optima, used, spent = {}, {}, {}
    for e in EPSILONS:
        optima[e] = cpv.MinimumDistortion(source, d, [cpv.LocalPrivacy(e, metric=d)]).solve()
        made = {NOISE: mechanisms.planar_laplace((SIDE, SIDE), e, distance="city"),
                "exponential": mechanisms.exponential(d, e)}  # fmt: skip
        for name, channel in made.items():
            spent[name, e] = cpv.PrivacyProfile(channel, metric=d).epsilon
            used[name, e] = channel
            used[f"{name}, remapped", e] = mechanisms.remap(channel, source, d)
    costs = {at: source.p_x @ (each.matrix * streets).sum(axis=1) for at, each in used.items()}
    costs |= {("optimum", e): best.value for e, best in optima.items()}
    cost = pd.Series(costs).unstack(0)
    return SimpleNamespace(source=source, optima=optima, used=used, spent=spent, cost=cost)


def report(result):
    """Set what is used beside what is possible."""
    yield f"E d [blocks] by ε for a block\n{result.cost.to_string(float_format='{:.4f}'.format)}"
    for e, best in result.optima.items():
        a, cost = np.exp(-e), result.cost.loc[e]
        yield claim(f"ε that the noise has, of {e:g}", result.spent[NOISE, e], ("≤", e), "Andrés")
        yield claim(f"its E d at {e:g}", cost[NOISE], ("≤", 4 * a / (1 - a * a)), "not cut off")
        yield claim(f"remapped at {e:g}", cost[REMAPPED], ("≥", best.lower), "the optimum")
    most = (result.cost[REMAPPED] / result.cost["optimum"]).max() - 1
    left = [1 - result.spent["exponential", e] / e for e in EPSILONS]
    yield f"\nremapped, the noise costs at most {most:.1%} more than the optimum; of its ε"
    yield f"the exponential mechanism leaves {min(left):.0%} to {max(left):.0%} unused"


def draw(result):
    """Draw where people live, where one home is released, and what it costs."""
    source, home = result.source, (SIDE - 2, SIDE // 2 - 1)
    titles = ("people", "optimum", REMAPPED, "what it costs")
    figure, (*maps, ax) = style.panels(*titles, height=2.3, width_ratios=(1, 1, 1, 1.5))
    rows = [each.matrix[each.inputs.index(home)][[each.outputs.index(x) for x in source.x]]
            for each in (result.optima[CHOSEN].channel, result.used[REMAPPED, CHOSEN])]  # fmt: skip
    for place, row, top in zip(maps, [source.p_x, *rows], [None, *[np.max(rows)] * 2], strict=True):
        image = place.imshow(row.reshape(SIDE, SIDE), cmap=style.MAP, vmin=0, vmax=top)
        place.plot(*home[::-1], "o", ms=6, color="#FFFFFF", mew=1.2, mfc="none")
        place.set(xticks=[], yticks=[])
        label = "$p(x)$" if top is None else rf"$p(\hat x\,|\,$home$)$, $\varepsilon$ = {CHOSEN:g}"
        ticks, bar = np.multiply((0.25, 0.75), image.norm.vmax), place.inset_axes(BAR)
        figure.colorbar(image, bar, orientation="horizontal", label=label, ticks=ticks.round(2))
    for name, look, x, y in (
        (EXPONENTIAL, {**style.PRACTICE, "color": style.PURPLE, "marker": "s"}, 0.54, 0.54),
        (NOISE, {**style.PRACTICE, "ls": ":", "mfc": "none"}, 0.12, 0.86),
        (REMAPPED, style.PRACTICE, 0.51, 0.34), ("optimum", style.OPTIMUM, 0.05, 0.29),
    ):  # fmt: skip
        ax.plot(result.cost[name], **look)
        text = "remapped" if name == REMAPPED else name.replace(", ", ",\n")
        ax.text(x, y, text, color=look["color"], transform=ax.transAxes)
    ax.set(xlabel=r"$\varepsilon$ for a block", ylabel=r"E $d(X,\hat X)$ [blocks]", ylim=(0, None))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
