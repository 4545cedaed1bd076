"""What does it cost to protect every released letter, and not only the average?

Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010) measure risk by the average
I(W; X̂) = E D(p(w | X̂) ‖ p(w)).  Their §4.3 says what that leaves out: t-closeness bounds the
maximum of the same divergence over the released letters x̂, an average "may not address worst
cases properly", and the price of the worst case is a poorer average.  Bezzi (Transactions on
Data Privacy 3, 2010) bounds each letter's divergence in eq. 8; he notes that a bound on the
average (eq. 13) is necessary and not sufficient for one on each letter (eq. 14), and in his
conclusions expects that optimising under conditions on each letter is difficult.  Over randomised
releases they are convex constraints, so both problems are solved here, with proof.

Confidential W: marital status.  Key X: age in decades, and sex, of the 32,561 records of the UCI
Adult data set.  Distortion: decades moved, plus 1 if sex changes.

    minimise    E d(X, X̂)                                        over p(x̂ | x)
    subject to  I(W; X̂)                ≤ t                       the average, or
                D(p(w | x̂) ‖ p(w))    ≤ t   for every x̂          the worst case

Learn: how badly an average hides the worst case, what the stronger promise costs in distortion,
and what one more bit of leakage would buy under each (the price dD/dt).

    python problems/worst_case_or_average.py  # prints, and writes output/worst_case_or_average.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

DECADES = ("<20", "20s", "30s", "40s", "50s", "60s", "70+")
BOUNDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5)  # t, in bits
BOUND, NEXT = 0.2, (0.15, 0.3)  # whose letters are drawn, and its neighbours
RULES = {"average": cpv.LeakageCap, "worst case": cpv.TCloseness}
COLORS = {"average": style.BLUE, "worst case": style.GREEN}


def letters(source, solution):
    """p(x̂) and D(p(w | x̂) ‖ p(w)); 0 where less than a record is expected, a trace of solvers."""
    joint = source.pmf @ solution.channel.matrix
    share = joint.sum(axis=0)
    return share, np.where(share * source.records >= 1, cpv.one_symbol.i1(joint), 0.0)


def study():
    """Solve both problems at several t; and the least average risk at the worst case's E d."""
    frame = cpv.datasets.load_adult()
    frame["decade"] = pd.cut(frame["age"], [0, *range(20, 80, 10), 200], right=False,
                             labels=DECADES)  # fmt: skip
    source = cpv.DiscreteSource.from_table(frame, sensitive="marital-status", key=["decade", "sex"])
    kinds = {"decade": cpv.absolute_error(range(len(DECADES))), "sex": "hamming"}
    error = cpv.per_attribute(kinds, source, inputs={"decade": DECADES})
    optima = {
        (name, t): cpv.MinimumDistortion(source, error, [rule(t)]).solve()
        for t in BOUNDS for name, rule in RULES.items()
    }  # fmt: skip
    spent = optima["worst case", BOUND].value
    least = cpv.PrivacyDistortion(source, error, budget=spent).solve()
    return SimpleNamespace(source=source, error=error, optima=optima, least=least)


def report(result):
    """Compare both promises with what the papers say of them, and with each other."""
    source, rows = result.source, {}
    yield (
        f"{source.records:,} records, {len(source.w)} × {len(source.x)} cells, I(W; X) = "
        f"{source.information():.4f} bits, of which about {source.bias():.4f} is bias"
    )
    for name in RULES:
        optimum = result.optima[name, BOUND]
        yield optimum
        share, each = letters(source, optimum)
        parts = [float(optimum.terms[f"distortion of {key}"]) for key in ("decade", "sex")]
        ends = [result.optima[name, t].value - optimum.value for t in NEXT]
        chords = tuple(end / (t - BOUND) for end, t in zip(ends, NEXT, strict=True))
        (price,) = optimum.prices.values()
        every = cpv.one_symbol.i1(source.pmf @ optimum.channel.matrix)  # traces of solvers, too
        bound = (
            (">", BOUND) if name == "average" else ("≤", BOUND + 1e-7)
        )  # eq. 13 is not sufficient
        yield claim(f"{name}: decades + sexes changed", sum(parts), float(optimum.distortion),
                    "E d", within=1e-9)  # fmt: skip
        yield claim(f"{name}: I(W; X̂) [bits]", float(optimum.risk), f"≤ {BOUND:g}",
                    "Bezzi eq. 13", within=1e-9)  # fmt: skip
        most = each.max() if name == "average" else np.nanmax(every)
        yield claim(f"{name}: greatest divergence [bits]", most, bound, "Bezzi eq. 14")
        yield claim(f"{name}: slopes to t = {NEXT[0]}, {NEXT[1]} [1/bit]", chords, price, "price")
    worst, least = result.optima["worst case", BOUND], result.least
    yield claim("least I(W; X̂) at its E d [bits]", least, ("<", float(worst.risk)),
                "§4.3", "the worst case costs a poorer average")  # fmt: skip
    for t in BOUNDS:
        average, worst = (result.optima[name, t] for name in RULES)
        share, each = letters(source, average)
        rows[t] = {
            "average": average.value, "worst case": worst.value,
            "dD/dt, average": average.prices["leakage_cap"],
            "dD/dt, worst": worst.prices["t_closeness"],
            "worst letter": " ".join(source.x[each.argmax()]), "[bits]": each.max(),
            "above t [%]": 100 * share[each > t].sum(),
        }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, orient="index").round(4).round({"above t [%]": 1})
    yield "\nE d by t; last, under the average cap: its worst letter, and the records above t"
    yield table


def draw(result):
    """Draw distortion against t for both, and what each letter reveals at one t."""
    figure, (left, right) = style.panels(
        "distortion under both promises",
        f"divergence of each letter at $t$ = {BOUND:g}",
        height=2.9,
    )
    curves = {name: [result.optima[name, t].value for t in BOUNDS] for name in RULES}
    left.fill_between(BOUNDS, *curves.values(), color=style.GREEN, alpha=0.15, lw=0)
    places = np.arange(len(result.source.x))
    looks = (-0.2, None), (0.2, "////")
    for (name, curve), (shift, hatch) in zip(curves.items(), looks, strict=True):
        star = {**style.OPTIMUM, "color": COLORS[name], "clip_on": False, "zorder": 3}
        left.plot(BOUNDS, curve, **star)
        _, each = letters(result.source, result.optima[name, BOUND])
        right.bar(places + shift, each, 0.4, color=COLORS[name], hatch=hatch, ec="white")
    left.axvline(result.source.information(), **style.BOUND)
    right.axhline(BOUND, **style.BOUND)
    right.set_xticks(places, [f"{age} {sex[0]}" for age, sex in result.source.x], rotation=90)
    for ax, x, y, said, color in (
        (left, 0.52, 0.65, "$I(W;X)$: the average\nallows $X$ itself", style.BLACK),
        (left, 0.54, 0.37, "worst case:\neach letter $\\leq t$\nshaded: extra cost", style.GREEN),
        (left, 0.09, 0.25, "average:\n$I(W;\\hat X)\\leq t$", style.BLUE),
        (right, 0.03, 0.36, "$t$", style.BLACK),
        (right, 0.25, 0.85, "best under the average", style.BLUE),
        (right, 0.25, 0.76, "best under the worst case, hatched", style.GREEN),
    ):
        ax.text(x, y, said, color=color, transform=ax.transAxes)
    left.set(xlabel="$t$ [bits]", ylabel=r"E $d(X,\hat X)$ [decades + sexes changed]",
             xlim=(0, None), ylim=(0, None))  # fmt: skip
    right.set(xlabel=r"released letter $\hat x$: decade, sex (no bar: not released)",
              ylabel=r"$D(p(w\,|\,\hat x)\,\|\,p(w))$ [bits]")  # fmt: skip
    return figure


if __name__ == "__main__":
    run(study, report, draw)
