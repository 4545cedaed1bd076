"""Do rare names vanish from a release, and can they be guessed from it?

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013, Example 1): "the probability of guessing that
Sankar was in the original database given one only sees Smith, Johnson, and Poor … is the same as
the probability of Sankar in the original database".  Here with a million names.

Confidential W = key X: the name.  Released X̂: a name.  Every change of a name costs the same.

    minimise  I(X; X̂)   subject to  Pr(X ≠ X̂) ≤ D                over p(x̂ | x)

The optimum is a water level λ: a name is kept with probability (1 − λ/p(x))⁺, else another is
drawn from p(x̂) ∝ (p(x̂) − λ)⁺.  Names with p(x) ≤ λ vanish.

The names are made up: the name of rank k has probability ∝ 1/(k + 2.7), a Zipf–Mandelbrot law.
``--table CSV --column NAME`` takes the values of a column instead, whose counts are the law.

Learn: what outlier suppression is the optimum of; that one number, λ, releases a million letters
without a matrix of a million million entries; and what an attacker gains who sees the release:
nothing about names that vanish, but 1 − D where a kept name is read, however rare it is.

    python problems/names.py                  # prints, and writes output/names.png
    python problems/names.py --table adult.csv --column native-country
"""

from itertools import pairwise
from types import SimpleNamespace
from typing import Annotated

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

SHIFT, SHARE = 2.7, 0.3  # of the Zipf–Mandelbrot law; D / (1 − max p) of what is attacked
SHARES = (0.05, 0.1, 0.2, SHARE, 0.5, 0.7, 0.9)  # all is lost from D = 1 − max p on


def groups(left, original, size):
    """Return (a, b), ranks a … b − 1 from 0: ten of kept names, and at most eight of vanished."""
    some = int(np.clip((original >= left).sum() / 60, 1, 8))
    ends = *np.geomspace(1, left + 1, 10, False), *np.geomspace(left + 1, size + 1, some + 1)
    return [(a - 1, b - 1) for a, b in pairwise(round(end) for end in ends) if a < b]


def learned(law, left, budget, original, released):
    """Tabulate what x̂ tells about one name, exactly and measured on the records.

    Of a kept name the most telling x̂ is the name itself.  Of vanished ones it is unknown, if
    anything is to be learned at all: half of the records say which x̂ come with more than their
    share of the group, and the other half says what these are worth.
    """
    half, size, rows = len(original) // 2, len(law), []
    shown = np.bincount(released[:half], minlength=size)
    for a, b in groups(left, original, size):
        inside, names = (original >= a) & (original < b), b - a
        if b <= left:
            right = (original == released)[(released >= a) & (released < b)]
            exact, names = 1 - budget, 1
        else:
            hits = np.bincount(released[:half], inside[:half], minlength=size)
            telling = hits > shown * inside[:half].mean()
            right, exact = inside[half:][telling[released[half:]]], law[a:b].sum()
        seen = max(len(right), 1)
        found = np.array([exact, right.sum() / seen, (exact * (1 - exact) / seen) ** 0.5])
        own = (original == released)[inside].mean() if inside.any() else 0.0
        rows.append([a + 1, b, own, law[a:b].mean(), *found / names])
    names = ["first", "last", "kept by", "p(x)", "p(x|x̂)", "measured", "±"]
    return pd.DataFrame(rows, columns=names)


def study(
    *, quick: bool = False, table: Annotated[str | None, "a CSV file"] = None, column: str = "name"
):
    """Solve at several D, and send records through one of the releases."""
    rng, make = np.random.default_rng(1), cpv.HammingWaterFilling
    if table is None:
        names = pd.RangeIndex(1, 20_001 if quick else 1_000_001)
        masses = 1 / (names.to_numpy() + SHIFT)
        masses /= masses.sum()
        original = rng.choice(len(names), 200_000 if quick else 1_000_000, p=masses)
    else:
        try:
            values = pd.read_csv(table, usecols=[column], dtype=str, keep_default_na=False)[column]
        except ValueError as error:
            raise cpv.InputError("--table", f"{error}", "name a CSV and its --column") from None
        counts, make = values.value_counts(), cpv.HammingWaterFilling.from_counts
        names, masses = counts.index, counts.to_numpy(float)
        original = rng.permutation(names.get_indexer(values))  # halves must be alike
    law = masses / masses.sum()
    problems = {share: make(masses, share * (1 - law[:1].sum())) for share in SHARES}
    solved = {share: (problem, problem.solve()) for share, problem in problems.items()}
    problem, release = problems[SHARE], solved[SHARE][1].release
    released, left, d = release.apply(original, seed=2), len(release.kept), float(problem.budget)
    places = np.unique(np.geomspace(left, len(law), 50, dtype=int))[:-1]
    gone = [abs(release.row(x) / release.released_marginal - 1).max() for x in places.tolist()]
    return SimpleNamespace(
        law=law, names=names, solved=solved, left=left, gone=gone, budget=d,
        learned=learned(law, left, d, original, released), original=original, released=released,
    )  # fmt: skip


def report(result):
    """Say what is proved, what is measured, and what the paper promises."""
    yield result.solved[SHARE][1]
    rows = [(float(p.budget), len(s.release.kept), float(p.level), s.value, s.gap)
            for p, s in result.solved.values()]  # fmt: skip
    names = ["D", "names left", "λ", "I(X; X̂) [bits]", "gap"]
    yield pd.DataFrame(rows, columns=names).to_string(index=False)
    law, d, told, last = result.law, result.budget, result.learned, result.released.max()
    yield f"\nD = {d:.4f}: {result.left:,} of {len(law):,} names are left; the rarest that is seen"
    yield f"is {result.names[last]}, of rank {last + 1:,}.  The most that an x̂ tells of one name:"
    yield told.to_string(index=False, float_format="{:.3g}".format)
    off = ((told["measured"] - told["p(x|x̂)"]).abs() / told["±"]).max()
    changed = (result.original != result.released).mean()
    yield claim("changed records", changed, d, "(13)", within=2 / len(result.original) ** 0.5)
    yield claim("greatest |measured − exact| [standard errors]", off, "≤ 4", "(17)")
    rare = told[told["last"] <= result.left].iloc[-1]
    why = (f"{rare['kept by']:.0%} of their bearers keep such names, and by (17) a name that is "
           "read is the true one with probability 1 − D, however rare; it is p(x), as before, only "
           "for names that vanish")  # fmt: skip
    what, found = f"p(x|x̂) of kept names of p(x) ≈ {rare['p(x)']:.2g}", rare["measured"]
    private = found < 2 * rare["p(x)"]
    yield claim(what, found, "privacy to all", "Example 1", why, agrees=private)
    if off := result.gone:
        yield claim("vanished: greatest |p(x|x̂)/p(x) − 1|", max(off), 0.0, "Example 1")


def draw(result):
    """Draw the laws of the releases, and what is learned about one name."""
    figure, axes = style.panels("rare names vanish", f"what is told at $D$ = {result.budget:.2f}")
    law, size, told, least = result.law, len(result.law), result.learned, result.law[-1] / 10
    ranks = np.unique(np.geomspace(1, size, 500).round().astype(int))
    for ax in axes:
        ax.loglog(ranks, law[ranks - 1], color=style.BLACK)
        ax.set(xlabel="rank of the name", ylabel="probability", xlim=(1, size), ylim=(least, 2))
    for place, share in enumerate((0.1, SHARE, 0.7)):
        color, (problem, solution) = style.PALETTE[place], result.solved[share]
        marginal = solution.release.released_marginal
        shown = np.append(ranks[ranks < len(marginal)], len(marginal))
        said = f"$D$ = {float(problem.budget):.2f}: {len(marginal):,} names"
        axes[0].plot(
            shown, marginal[shown - 1], color=color, ls=("-", "--", "-.")[place], label=said
        )
        axes[0].axhline(float(problem.level), color=color, ls=":", lw=0.8)
    said = r"black: before; dotted: water level $\lambda$"
    axes[0].legend(title=said, labelcolor="linecolor", loc="upper right")
    top, left, x = 1 - result.budget, result.left, (told["first"] * told["last"]) ** 0.5
    axes[1].plot([1, left, left], [top, top, law[left - 1]], color=style.VERMILION)
    axes[1].plot(x, told["measured"], "o", ms=4, color=style.VERMILION, mfc="white")
    said = r"after: greatest $p(x\,|\,\hat x)$"
    axes[1].text(size**0.25, top * least**0.1, said, color=style.VERMILION)
    axes[1].text(size**0.25, top * least**0.2, "circles: measured", color=style.VERMILION)
    axes[1].text(1.5, law[0] * least**0.3, "before: $p(x)$")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
