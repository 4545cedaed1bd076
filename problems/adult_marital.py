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

    CVXPRIVACY_DATA=folder python problems/adult_marital.py      # writes output/adult_marital.png
    … --letters 300                                              # finer: minutes
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy.microdata.determinism import PriceOfDeterminism

W = "marital-status"
KEY = ["age", "sex", "race", "education"]
CRITERIA = [cpv.TCloseness(0.55), cpv.LDiversity(2.7)]
KINDS = ["no diploma", "high school", "associate", "bachelor", "higher"]
LAST_YEARS = [8, 10, 12, 13, 16]  # of education-num, for each kind
WIDTHS = (1, 2, 5, 10, 20, 40)  # of the bands of age, in years
LETTERS = 160  # greatest |X| that is tried: the time grows with its third power


@dataclass
class Study:
    """What was tried, and the coarsening that was certified."""

    uncoarsened: cpv.DiscreteSource
    tried: dict[int, tuple[int, str]]  # width of the bands → |X|, and what became of it
    source: cpv.DiscreteSource
    distance: cpv.Distortion
    price: PriceOfDeterminism
    audit: cpv.Audit  # of one drawn release
    seconds: float

    @property
    def solution(self) -> cpv.Solution:
        return self.price.randomised


def coarsened(table: pd.DataFrame) -> pd.DataFrame:
    """Keep white or not, and five kinds of education."""
    kind = np.searchsorted(LAST_YEARS, table["education-num"])
    education = pd.Categorical.from_codes(kind, KINDS, ordered=True)
    race = table["race"].where(table["race"] == "White", "other")
    return table[["age", "sex", W]].assign(race=race, education=education)


def hierarchies(source: cpv.DiscreteSource) -> dict[str, cpv.Hierarchy]:
    """Pairs of neighbouring levels, pairs of pairs, …, suppression; in sex and race at once."""
    found = {}
    for name in KEY:
        levels = source.levels[name]
        halved, width = [], 2
        while width < len(levels):
            halved.append([i // width for i in range(len(levels))])
            width *= 2
        found[name] = cpv.Hierarchy(levels, [*halved, ["*"] * len(levels)])
    return found


def study(letters: int = LETTERS) -> Study:
    """Coarsen until the optimum is certified."""
    table = cpv.datasets.load_adult(complete=True)
    uncoarsened = cpv.DiscreteSource.from_table(table, sensitive=W, key=KEY)
    kept, tried = coarsened(table), {}
    for width in WIDTHS:
        source = cpv.DiscreteSource.from_table(kept, sensitive=W, key=KEY, bins={"age": width})
        size = len(source.x)
        if size > letters:
            tried[width] = size, "not tried"
            continue
        kinds = {"age": "ordinal", "sex": "hamming", "race": "hamming", "education": "ordinal"}
        distance = cpv.per_attribute(kinds, source)
        start = time.perf_counter()
        price = cpv.price_of_determinism(
            source, distance, CRITERIA, hierarchies=hierarchies(source), certify="warn"
        )
        seconds = time.perf_counter() - start
        tried[width] = size, price.randomised.status
        if price.randomised.status == "certified":
            break
    else:
        raise SystemExit(f"nothing was certified with at most {letters} letters: {tried}")
    released = price.randomised.channel.apply(kept, seed=1)
    audit = cpv.audit(kept, released, key=KEY, sensitive=W, bins={"age": width}, criteria=CRITERIA)
    return Study(uncoarsened, tried, source, distance, price, audit, seconds)


def report(result: Study) -> str:
    """Say what was certified, and what it costs whom."""
    full, source, solution = result.uncoarsened, result.source, result.solution
    fixed = result.price.deterministic
    lines = [
        f"W = {W}, X = {', '.join(KEY)}: {full.records:,} records, |X| = {len(full.x):,} observed "
        "combinations",
        "coarsened to white or not, five kinds of education, and ages in bands:",
        *(
            f"  bands of {width:>2} years   |X| = {size:>5,}   {fate}"
            for width, (size, fate) in result.tried.items()
        ),
        "",
        str(solution),
        f"  {result.seconds:.0f} s, with the search of the hierarchies",
        "",
        f"I(W; X) = {full.information():.4f} bits uncoarsened and {source.information():.4f} "
        f"coarsened, I(W; X̂) = {float(solution.risk):.4f} released",
        "share of what each attribute could lose:",
    ]
    for name in KEY:
        lines.append(f"  {name:<10} {float(solution.terms[f'distortion of {name}']):.4f}")
    lines += [
        "",
        str(result.price),
        f"  its levels: {', '.join(f'{n} {v}' for n, v in fixed.levels.items())} "
        f"(of {', '.join(str(len(h.levels) - 1) for h in hierarchies(source).values())}); "
        f"{fixed.evaluated} of {fixed.nodes} combinations looked at",
        f"  it keeps I(W; X̃) = {fixed.information:.4f} bits",
        "",
        "the promises hold of the law of the release, many with equality; in one drawn table:",
    ]
    for verdict in result.audit.verdicts:
        share = verdict.records / result.audit.released.records
        lines.append(
            f"  {verdict.criterion!r}: {len(verdict.broken)} of {len(result.audit.letters)} "
            f"letters are beyond it, with {share:.1%} of the records"
        )
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw both measures of every letter before and after, and what levels cost."""
    import matplotlib.pyplot as plt

    solution, source = result.solution, result.source
    figure, axes = plt.subplots(1, 2, figsize=(14, 5.4), layout="constrained")
    ax = axes[0]
    after = source.joint @ solution.channel.matrix
    after = after[:, after.sum(axis=0) >= 1]  # letters that some record is expected in
    for joint, color, marker, label in (
        (source.joint, "#9a9a9a", "o", "cells x, as they are"),
        (after, "#0072B2", "s", "released letters x̂"),
    ):
        ax.scatter(
            cpv.one_symbol.i1(joint), cpv.one_symbol.i2(joint), s=3 + 600 * joint.sum(axis=0)
            / joint.sum(), color=color, marker=marker, alpha=0.6, label=label, linewidths=0,
        )  # fmt: skip
    most = source.entropy() - np.log2(CRITERIA[1].l)
    ax.axvline(CRITERIA[0].t, color="#B00020", lw=1.3, label="$t$")
    ax.axhline(most, color="#B00020", lw=1.3, ls="--", label=r"$H(W) - \log\,\ell$")
    ax.set(xlabel="$I_1$: what a letter tells, as surprise   [bits]")
    ax.set_ylabel("$I_2$: … as certainty gained   [bits]")
    ax.set_title("every letter keeps both promises (area: records)", fontsize=11)
    legend = ax.legend(fontsize=9.5)
    for handle in legend.legend_handles[:2]:
        handle.set_sizes([40])

    ax, at = axes[1], np.arange(len(KEY))
    place = {x: i for i, x in enumerate(source.x)}
    to = [place[group] for group in result.price.deterministic.groups]
    fixed = [
        float(source.p_x @ np.asarray(result.distance.parts[name])[np.arange(len(to)), to])
        for name in KEY
    ]
    free = [float(solution.terms[f"distortion of {name}"]) for name in KEY]
    ax.bar(
        at - 0.2,
        fixed,
        0.4,
        color="#c9c9c9",
        edgecolor="black",
        label="best levels of a hierarchy (exact)",
    )
    ax.bar(at + 0.2, free, 0.4, color="#0072B2", edgecolor="black",
           label="best randomisation (certified)")  # fmt: skip
    for i, pair in enumerate(zip(fixed, free, strict=True)):
        for side, value in zip((-0.2, 0.2), pair, strict=True):
            ax.annotate(f"{value:.3f}", (i + side, value), (0, 3), textcoords="offset points",
                        ha="center", fontsize=9)  # fmt: skip
    ax.set_xticks(at, KEY)
    ax.set_ylabel("expected error, as a share of the greatest")
    ax.set_title("what the promises cost each attribute", fontsize=11)
    ax.legend(fontsize=9.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Coarsen, solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/adult_marital.png"))
    parser.add_argument("--letters", type=int, default=LETTERS, help="greatest |X| that is tried")
    given = parser.parse_args(arguments)
    try:
        result = study(given.letters)
    except cpv.InputError as error:
        raise SystemExit(str(error)) from None
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
