"""Tables 4–5 and Figs. 2–4 of Bezzi (Trans. Data Privacy 3, 2010): Adult, marital status, salary.

The 30,162 complete records of UCI Adult; confidential W: marital status, key X: age, sex, race and
education.  Sex, race and education are suppressed, and age is grouped:

    A2     two groups, [0, 50) and [50, 100)                        Fig. 2, Table 4
    A1     four, in steps of 25 years                               Fig. 3, Table 4
    A1*    four, by a heuristic search for the greatest I(X̃; W);    Fig. 4, Table 5
           here exactly, by dynamic programming over the cut points

under t-closeness, I1(x̃) ≤ t = 0.55 bits, and ℓ-diversity, I2(x̃) ≤ H(W) − log2 ℓ with ℓ = 2.7.
Table 4's hierarchies are searched whole.  The best randomisation under the same criteria, least
E |age − released age|, is certified.  The salary, which the paper sets aside for its small entropy,
is W as well: under the same t and ℓ, and under t and log2 ℓ that are the same shares of H(W).

Learn: the conditions on the average hold in all figures and decide nothing; an interval grouping
has an exact optimum; and a randomised release needs less distortion for the same promise.

    python figures/bezzi_fig2_4.py            # prints, and writes output/bezzi_fig2_4.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc  # pip install cvxprivacy-sdc
from cvxprivacy import information, one_symbol, style
from cvxprivacy.study import claim, run

W, SALARY, KEY = "marital-status", "income", ["age", "sex", "race", "education"]
T, L = 0.55, 2.7


def study(*, quick: bool = False):
    """Count, audit, search, solve; ``quick`` randomises age in steps of five years."""
    everybody, table = cpv.datasets.load_adult(), cpv.datasets.load_adult(complete=True)
    years = table.assign(age=table["age"] // 5 * 5) if quick else table
    count = cpv.DiscreteSource.from_table
    whole = count(table, sensitive=W, key=KEY)
    age, salary = (count(table, sensitive=w, key="age") for w in (W, SALARY))
    coarse, paid = (count(years, sensitive=w, key="age") for w in (W, SALARY))
    share, distance = salary.entropy() / age.entropy(), cpv.absolute_error(coarse.x)
    both = [cpv.TCloseness(T), cpv.LDiversity(L)]
    alike = [cpv.TCloseness(T * share), cpv.LDiversity(L**share)]
    levels = {name: sdc.Hierarchy.suppression(whole.levels[name]) for name in KEY}
    levels["age"] = sdc.Hierarchy.intervals(age.x, 25, 50)  # Table 4
    _, a1, a2, _ = levels["age"].levels
    four = sdc.optimal_intervals(age, both, groups=4).groups
    cases = {"A2": (W, a2, both), "A1": (W, a1, both), "best four": (W, four, both)}
    audits, old = {}, np.array(age.x) > 50
    for name, (w, groups, criteria) in {**cases, "A1, salary": (SALARY, a1, alike)}.items():
        bands = table["age"].map(dict(zip(age.x, groups, strict=True)))
        released = table[[w]].assign(age=bands)  # all else is suppressed
        audits[name] = sdc.audit(table, released, key=KEY, sensitive=w, criteria=criteria)
    return SimpleNamespace(
        table=table, whole=whole, age=age, salary=salary, audits=audits,
        everybody={w: information.entropy(everybody[w].value_counts()) for w in (W, SALARY)},
        at_51=information.mutual_information(age.joint @ np.array([old, ~old]).T),
        best=sdc.optimal_intervals(age, both), levels=sdc.full_domain(whole, levels, both),
        strict=sdc.optimal_intervals(age, [cpv.LDiversity(3)]),
        loose=sdc.optimal_intervals(salary, [cpv.TCloseness(T)]),
        price=sdc.price_of_determinism(coarse, distance, both),
        salaries=cpv.MinimumDistortion(paid, distance, alike).solve(),
    )  # fmt: skip


def measured(audit):
    """Return I1, I2 and ℓ of each group, and what it breaks."""
    values = {name: audit.measures[name].values for name in ("I1", "I2", "entropy l")}
    t, ell = (np.isin(range(len(audit.letters)), v.broken) for v in audit.verdicts)
    breaks = np.select([t & ell, t, ell], ["t ℓ", "t", "ℓ"], "–")
    return pd.DataFrame(values, audit.letters).round(3).assign(breaks=breaks)


def report(result):
    """Compare with what the paper says."""
    table, whole, age, h = result.table, result.whole, result.age, result.everybody
    before, top, most = whole.information(), age.information(), result.best.information
    columns = ["age", "sex", "race", "education", "occupation", W, SALARY]
    values = ", ".join(map(str, table[columns].nunique()))
    why = f"age goes from {age.x[0]} to {age.x[-1]}, and not every year occurs"
    yield claim("usable tuples", f"{len(table):,}", "30,162", "§4")
    yield claim("values by attribute", values, "74, 2, 5, 16, 14, 7, 2", "Table 4", why)
    why = f"2^1.85 is {2**1.85:.2f} and not 3.53; of all tuples H is {h[W]:.2f}, ℓ_max "
    why += f"{2 ** h[W]:.2f}, ℓ_t {2 ** (h[W] - T):.2f}: neither table gives all three"
    yield claim("H(W) [bits]", age.entropy(), "≈ 1.85", "§4", why)
    yield claim("ℓ_max", one_symbol.greatest_diversity(age.p_w), "≈ 3.53", "§4")
    equal = one_symbol.equivalent_diversity(age.p_w, T)
    why = f"2.42 belongs to H = {np.log2(2.42) + T:.3f}, and is off by {1 - 2.42 / L:.1%}"
    yield claim("ℓ_t of t = 0.55", equal, "2.42", "§4", why)
    yield claim("ℓ_t is off ℓ = 2.7 by", 1 - equal / L, "≈ 10 %", "§4", why)
    kept = result.strict.information
    said = f"{1 - kept / before:.0%}, of what age tells {1 - kept / top:.0%}"
    yield claim("lost at ℓ = 3", said, "most", "§4", agrees=kept < before / 2)
    groups = pd.concat({name: measured(audit) for name, audit in result.audits.items()})
    yield f"\n{groups.to_string()}"
    a2, a1, four, _ = result.audits.values()
    why = f"with 50 among the younger {result.at_51:.4f} are kept, {1 - result.at_51 / before:.0%} "
    why += f"lost.  I(X; W) = {before:.4f}, of {len(whole.x):,} cells, is about "
    why += f"{whole.bias():.2f} too high by bias (Miller–Madow), and so is what is lost"
    yield claim("A2: I(X̃; W) [bits]", a2.after.plugin, "0.09", "§4")
    yield claim("A2: lost", 1 - a2.after.plugin / before, "≈ 88 %", "§4", why)
    for name, theirs in (("A2", "–, –"), ("A1", "t ℓ, –, –, t")):
        broken = ", ".join(groups.loc[name, "breaks"])
        yield claim(f"{name}: its groups break", broken, theirs, "Figs. 2, 3")
    failing = [name for each in (a2, a1) for name, c in each.averages.items() if not c.holds]
    yield claim("A2, A1: conditions of eq. 13 broken", len(failing), "0", "Figs. 2, 3")
    why = f"ungrouped, age keeps {top:.4f} and breaks both; under both no intervals keep more than "
    why += f"here, four at most {four.after.plugin:.4f}.  Table 5's cut points are lost in the text"
    yield claim("A1*: most by any intervals [bits]", most, "0.34", "§4", why)
    yield claim("A1*: lost, at least", 1 - most / before, "≈ 55 %", "§4", "as before")
    minimal = [tuple(levels.values()) for levels in result.levels.minimal]
    why = f"another keeps more, sex alone: {result.levels.information:.4f}"
    yield claim("minimal in Table 4's hierarchies", f"{len(minimal)} of them", "A2", "§4", why,
                agrees=(2, 1, 1, 1) in minimal)  # fmt: skip
    yield f"\n§5, conditions per group make optimisation hard; in years:\n{result.price}"
    why = f"{h[SALARY]:.4f} of all tuples, with those that have missing values"
    yield claim("salary: H(W) [bits]", result.salary.entropy(), "≈ 0.80", "§4", why)
    limit, kept = 2 ** result.salary.entropy(), result.loose.information
    why = f"“limiting its effectiveness”; t = 0.55 leaves {kept / result.salary.information():.1%} "
    why += "of what age tells"
    yield claim("salary: greatest ℓ", limit, ("<", L), "§4", why)
    yield "\nsalary, t and log ℓ the same shares of H(W) as above:"
    yield result.salaries


def draw(result):
    """Draw Figs. 2–4 as the paper does, and the salary likewise."""
    names = "A2 (Fig. 2)", "A1 (Fig. 3)", "best four intervals (Fig. 4)", "A1, salary, scaled"
    titles = [f"{name}: {of}" for name in names for of in ("average", "groups")]
    figure, axes = style.panels(*titles, height=8, rows=4, width_ratios=(1, 1.6))
    looks = {"color": ["black", style.GREY, style.LIGHT, "white"], "hatch": ["", "////", "", ""]}
    for left, right, audit in zip(axes[::2], axes[1::2], result.audits.values(), strict=True):
        bounds = [c.bound for c in audit.averages.values()]
        bars = left.bar(range(4), [*bounds, audit.after.plugin], 0.7, ec="black", **looks)
        left.bar_label(bars, fmt="%.3f", padding=1)
        left.set_xticks(range(4), ["$I(W;X)$", "$t$", r"$H(W)-\log\,\ell$", r"$I(W;\tilde X)$"])
        left.margins(y=0.15)
        at = np.arange(len(audit.letters))
        for i, kind in enumerate(("I1", "I2")):
            heights = audit.measures[kind].values
            right.bar(at + 0.4 * i - 0.2, heights, 0.4, ec="black", label=f"$I_{i + 1}$",
                      color=looks["color"][i + 1], hatch=looks["hatch"][i + 1])  # fmt: skip
        right.axhline(0, color="black", lw=0.6)
        ends = sorted(zip(bounds[1:], ("$t$", r"$\ell$"), strict=True))
        for (bound, name), side in zip(ends, ("top", "bottom"), strict=True):  # however near
            right.axhline(bound, **style.BOUND)
            right.text(1.01, bound, name, transform=right.get_yaxis_transform(), va=side)
        right.set_xticks(at, audit.letters)
        right.set_xlabel("age [years]")
        for ax in (left, right):
            ax.set_ylabel("information [bits]")
    axes[1].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    return figure


if __name__ == "__main__":
    run(study, report, draw)
