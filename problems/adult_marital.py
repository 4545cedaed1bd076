"""What must be given up so that no combination of age, sex, race and education betrays a marriage?

UCI Adult, its 30,162 complete records, with the criteria of Bezzi (Transactions on Data Privacy 3,
2010, §4).  Confidential W: marital status, seven values.  Key X: age, sex, race and education.

    minimise    E d(X, X̂),   d = Σ over the four attributes, each in [0, 1]    over p(x̂ | x)
    subject to  I1(x̂) = D(p(w|x̂) ‖ p(w)) ≤ t = 0.55 bits         for every x̂     (t-closeness)
                H(W | x̂) ≥ log2 ℓ, ℓ = 2.7                       for every x̂     (ℓ-diversity)

d is |rank x − rank x̂| / (levels − 1) for age and education, and 0 or 1 for sex and race.  The
3,152 observed combinations are more than the conic solver can take, so they are coarsened, the
finest first, until it certifies the optimum: bands of age, white or not, five kinds of education.

The best full-domain generalisation is found beside it: one level of a hierarchy per attribute, all
combinations searched, each group released as its best letter.

Learn: how a promise per released letter scales to several attributes; which attribute the optimum
perturbs, and which it spares; and what levels of hierarchies cost.

    python problems/adult_marital.py          # prints, and writes output/adult_marital.png
    python problems/adult_marital.py --letters 300      # finer: minutes
"""

from types import SimpleNamespace
from typing import Annotated

import numpy as np
import pandas as pd

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc  # pip install cvxprivacy-sdc
from cvxprivacy import one_symbol, style
from cvxprivacy.study import claim, run

W, KEY = "marital-status", ["age", "sex", "race", "education"]
T, L = 0.55, 2.7
CRITERIA = [cpv.TCloseness(T), cpv.LDiversity(L)]
KINDS = ["no diploma", "high school", "associate", "bachelor", "higher"]
LAST_YEARS = [8, 10, 12, 13, 16]  # of education-num, for each kind
WIDTHS = (1, 2, 5, 10, 20, 40)  # of the bands of age, in years


def coarsened(table):
    """Keep white or not, and five kinds of education."""
    kind = np.searchsorted(LAST_YEARS, table["education-num"])
    education = pd.Categorical.from_codes(kind, KINDS, ordered=True)
    race = table["race"].where(table["race"] == "White", "other")
    return table[["age", "sex", W]].assign(race=race, education=education)


def halved(levels):
    """Pairs of neighbouring levels, pairs of pairs, …, suppression."""
    widths = 2 ** np.arange(1, np.ceil(np.log2(len(levels))))
    groups = [[int(i // width) for i in range(len(levels))] for width in widths]
    return sdc.Hierarchy(levels, [*groups, ["*"] * len(levels)])


def study(*, letters: Annotated[int, "greatest |X| that is tried"] = 160, quick: bool = False):
    """Coarsen until the optimum is certified; ``quick`` tries at most 60 letters."""
    table, letters = cpv.datasets.load_adult(complete=True), min(letters, 60) if quick else letters
    uncoarsened = cpv.DiscreteSource.from_table(table, sensitive=W, key=KEY)
    kept, tried = coarsened(table), {}
    for width in WIDTHS:
        columns = {"key": KEY, "sensitive": W, "bins": {"age": width}}
        source = cpv.DiscreteSource.from_table(kept, **columns)
        tried[width] = f"|X| = {len(source.x):,}", "not tried"
        if len(source.x) > letters:
            continue
        kinds = {"age": "ordinal", "sex": "hamming", "race": "hamming", "education": "ordinal"}
        distance = cpv.per_attribute(kinds, source)
        hierarchies = {name: halved(source.levels[name]) for name in KEY}
        price = sdc.price_of_determinism(
            source, distance, CRITERIA, hierarchies=hierarchies, certify="warn"
        )
        tried[width] = f"|X| = {len(source.x):,}", price.randomised.status
        if price.randomised.status == "certified":
            break
    else:
        raise cpv.InputError("letters", f"{letters}: nothing was certified", "allow more letters")
    place = {x: i for i, x in enumerate(source.x)}
    to = [place[group] for group in price.deterministic.groups]
    shares = {}
    for name, part in distance.parts.items():
        fixed = source.p_x @ np.asarray(part)[np.arange(len(to)), to]
        shares[name] = fixed, float(price.randomised.terms[f"distortion of {name}"])
    shares = pd.DataFrame(shares, ["best levels", "best randomisation"]).T
    released = price.randomised.channel.apply(kept, seed=1)
    audit = sdc.audit(kept, released, criteria=CRITERIA, **columns)
    return SimpleNamespace(uncoarsened=uncoarsened, tried=tried, source=source, price=price,
                           shares=shares, audit=audit)  # fmt: skip


def report(result):
    """Say what was certified, what it costs which attribute, and whether the promises are kept."""
    full, source, price = result.uncoarsened, result.source, result.price
    fixed, best = price.deterministic, price.randomised
    yield f"{full.records:,} records, |X| = {len(full.x):,} observed combinations; coarsened to"
    for width, (size, fate) in result.tried.items():
        yield f"  bands of {width:>2} years   {size:<12} {fate}"
    yield f"\n{best}\n\n{price}"
    levels = ", ".join(f"{name} {level}" for name, level in fixed.levels.items())
    yield f"  levels: {levels}; {fixed.evaluated} of {fixed.nodes} combinations looked at"
    yield "\nshare of what each attribute could lose"
    yield result.shares.round(4).to_string()
    joint = source.pmf @ best.channel.matrix
    i1, i2 = one_symbol.i1(joint), one_symbol.i2(joint)
    information = float(best.risk)
    yield claim("sum of the certified shares", result.shares.iloc[:, 1].sum(), best.value, "E d")
    yield claim("greatest I1(x̂) [bits]", np.nanmax(i1), f"≤ {T:g}", "eq. 14", within=1e-9)
    yield claim("least ℓ of x̂", 2 ** (source.entropy() - np.nanmax(i2)), f"≥ {L:g}", "eq. 14",
                within=1e-9)  # fmt: skip
    bound = source.entropy() - np.log2(L)
    yield claim("I(W; X̂) [bits]", information, ("≤", bound), "eq. 11")
    yield claim("I(W; X̂), and I(W; X) coarsened", information, ("≤", source.information()),
                "eq. 4")  # fmt: skip
    yield f"\nI(W; X) uncoarsened {full.information():.4f}, by levels {fixed.information:.4f} bits"
    yield "the promises hold of the law of the release, many with equality; of one drawn table:"
    for verdict in result.audit.verdicts:
        share = verdict.records / result.audit.released.records
        yield (f"  {verdict.criterion!r}: {len(verdict.broken)} of {len(result.audit.letters)} "
               f"letters are beyond it, with {share:.1%} of the records")  # fmt: skip


def draw(result):
    """Draw both measures of every letter before and after, and what levels cost."""
    titles = "what a combination tells (area: records)", "what the promises cost"
    figure, (left, right) = style.panels(*titles, height=3.1, width_ratios=(1.35, 1))
    source = result.source
    after = source.pmf @ result.price.randomised.channel.matrix
    after = after[:, after.sum(axis=0) * source.records >= 1]  # some record is expected there
    signs = ((source.pmf, "o", style.GREY, 800), (after, "*", style.BLUE, 1600))
    for (joint, marker, color, size), y in zip(signs, (1.2, -0.3), strict=True):
        area = 6 + size * joint.sum(axis=0)
        left.scatter(one_symbol.i1(joint), one_symbol.i2(joint), s=area, color=color,
                     marker=marker, alpha=0.6, linewidths=0, zorder=2)  # fmt: skip
        left.text(0.09, y, "as they are" if y > 0 else "released", color=color)
    left.axvline(T, **style.BOUND, zorder=1)
    left.axhline(most := source.entropy() - np.log2(L), **style.BOUND, zorder=1)
    left.text(0.5, 1.6, f"$t$ = {T:g}", ha="right")
    left.text(6, most - 0.04, rf"$H(W)-\log\,\ell$," f"\n$\\ell$ = {L:g}", ha="right", va="top")
    left.set(xscale="log", xlabel="$I_1$, surprise [bits]", ylabel="$I_2$, certainty gained [bits]")
    left.set_xticks(ticks := [0.1, 0.2, 0.5, 1, 2, 5], [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    at, colors = np.arange(len(KEY)), (style.VERMILION, style.BLUE)
    for side, name, color in zip((-0.2, 0.2), result.shares, colors, strict=True):
        bars = right.barh(at + side, result.shares[name], 0.38, color=color)
        right.bar_label(bars, fmt="%.3f", padding=2, color=color)
        right.text(0.08, 2 + side, name, color=color, va="center")
    right.set_yticks(at, KEY)
    right.invert_yaxis()
    right.set(xlabel="expected error [share of the greatest]")
    right.margins(x=0.2)
    return figure


if __name__ == "__main__":
    run(study, report, draw)
