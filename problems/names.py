"""Do rare names vanish from a release, and can they be guessed from it?

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013, Example 1): "the probability of guessing that
Sankar was in the original database given one only sees Smith, Johnson, and Poor … is the same as
the probability of Sankar in the original database".  Here with a million names.

Confidential W = key X: the name.  Released X̂: a name.  Every change of a name costs the same.

    minimise    I(X; X̂)
    subject to  Pr(X ≠ X̂) ≤ D                                    over p(x̂ | x)

The optimum is a water level λ: a name is kept with probability (1 − λ/p(x))⁺, else another is
drawn from p(x̂) ∝ (p(x̂) − λ)⁺.  Names with p(x) ≤ λ vanish.

The names are made up: the name of rank k has probability ∝ 1/(k + 2.7), a Zipf–Mandelbrot law.
``--table CSV --column NAME`` takes the values of a column instead, whose counts are the law.

Learn: what outlier suppression is the optimum of; that one number, λ, releases a million letters
without a matrix of a million million entries; that the proof costs no more than the answer; and
what an attacker gains who sees the release: 1 − D for a name that is kept, nothing for the others.

    python problems/names.py                  # prints, and writes output/names.png
    python problems/names.py --table adult.csv --column native-country
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency

import cvxprivacy as cpv

SHIFT = 2.7  # of the Zipf–Mandelbrot law
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)  # of 1 − max p, from where on all is lost
SHARE = 0.3  # for the release that is attacked
COLORS = {0.1: "#0072B2", 0.3: "#D55E00", 0.7: "#009E73"}  # of the laws that are drawn


@dataclass
class Group:
    """Names of neighbouring ranks, and what is learned about one of them, measured and exact."""

    ranks: range
    kept: bool
    prior: float  # p(x), the mean of the group
    exact: float  # p(x | x̂) at the most telling x̂
    seen: float  # the same, measured
    error: float  # its standard error


@dataclass
class Study:
    """A law of names, most frequent first, its releases, and records that went through one."""

    title: str
    law: np.ndarray
    names: list[str]
    most: float  # 1 − max p
    problems: dict[float, cpv.HammingWaterFilling]
    solutions: dict[float, cpv.Solution]
    original: np.ndarray  # ranks, from 0
    released: np.ndarray

    @property
    def chosen(self) -> cpv.Solution:
        return self.solutions[SHARE]

    @property
    def budget(self) -> float:
        """D of the release that is attacked."""
        return float(self.problems[SHARE].budget)

    @property
    def left(self) -> int:
        """How many names that release still has; they are the first ones."""
        return len(self.chosen.release.kept)

    @property
    def halves(self) -> tuple[slice, slice]:
        """Records to learn from, and records to test on."""
        half = len(self.original) // 2
        return slice(0, half), slice(half, None)


def zipf(names: int) -> np.ndarray:
    """Return the Zipf–Mandelbrot law of exponent 1."""
    law = 1.0 / (np.arange(1.0, names + 1) + SHIFT)
    return law / law.sum()


def study(
    law: np.ndarray,
    original: np.ndarray,
    title: str,
    names: list[str],
    make: Callable[..., cpv.HammingWaterFilling] = cpv.HammingWaterFilling,
) -> Study:
    """Solve at several D, and send the records through one of the releases."""
    share = law / law.sum()
    most = 1 - float(share[0])
    problems = {part: make(law, part * most) for part in SHARES}
    solutions = {part: problem.solve() for part, problem in problems.items()}
    released = solutions[SHARE].release.apply(original, seed=2)
    return Study(title, share, names, most, problems, solutions, original, released)


def made_up(names: int, records: int) -> Study:
    """Draw records from the Zipf–Mandelbrot law."""
    law = zipf(names)
    original = np.random.default_rng(1).choice(names, records, p=law)
    title = f"{names:,} made-up names, p ∝ 1/(rank + {SHIFT}), {records:,} records drawn"
    return study(law, original, title, [f"name {k + 1:,}" for k in range(names)])


def column(path: Path, name: str) -> Study:
    """Take the law of a column's values, and its records."""
    values = pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False)[name]
    counts = values.value_counts()
    ranks = values.map({value: rank for rank, value in enumerate(counts.index)})
    original = np.random.default_rng(1).permutation(ranks.to_numpy())  # halves must be alike
    title = f"{name} in {path.name}: {len(counts):,} values, {len(values):,} records"
    make = cpv.HammingWaterFilling.from_counts
    return study(counts.to_numpy(float), original, title, list(counts.index), make)


# ---- the attack --------------------------------------------------------------------------


def edges(first: int, last: int, groups: int) -> list[range]:
    """Return ranges of ranks first … last − 1 whose ends are in geometric progression."""
    at = np.geomspace(first + 1, last + 1, groups + 1).round().astype(int) - 1
    return [range(a, b) for a, b in pairwise(at) if a < b]


def vanished(result: Study) -> list[range]:
    """Return ranges of vanished names, fewer where there are few records of them."""
    records = int((result.original >= result.left).sum())
    return edges(result.left, len(result.law), int(np.clip(records / 60, 1, 8)))


def groups(result: Study) -> list[Group]:
    """Measure what x̂ tells about names that are kept, and about names that vanish.

    Of a kept name the most telling x̂ is the name itself.  Of vanished ones it is unknown, if
    anything is to be learned at all: half of the records say which x̂ come with more than their
    share of the group, and the other half says what these are worth.
    """
    found, size = [], len(result.law)
    for ranks in edges(0, result.left, 10):
        seen = (result.released >= ranks.start) & (result.released < ranks.stop)
        right = (result.original == result.released)[seen]
        found.append(_group(result, ranks, True, 1 - result.budget, right))
    learn, test = result.halves
    shown = np.bincount(result.released[learn], minlength=size)
    for ranks in vanished(result):
        inside = (result.original >= ranks.start) & (result.original < ranks.stop)
        hits = np.bincount(result.released[learn], inside[learn], minlength=size)
        telling = hits > shown * inside[learn].mean()
        right = inside[test][telling[result.released[test]]]
        exact = float(result.law[ranks.start : ranks.stop].sum())
        found.append(_group(result, ranks, False, exact, right))
    return found


def _group(result: Study, ranks: range, kept: bool, exact: float, right: np.ndarray) -> Group:
    """Turn what is known of a group of vanished names into what is known of one of them."""
    prior = float(result.law[ranks.start : ranks.stop].mean())
    names = 1 if kept else len(ranks)
    seen = float(right.mean()) if len(right) else np.nan
    error = (exact * (1 - exact) / max(len(right), 1)) ** 0.5
    return Group(ranks, kept, prior, exact / names, seen / names, error / names)


def guesses(result: Study) -> dict[str, tuple[int, float]]:
    """Count the test records whose vanished name an attacker names, and how many are expected.

    The attackers are told that the name has vanished, but for the first, who is not.
    """
    learn, test = result.halves
    left, release = result.left, result.chosen.release
    original, released = result.original[test], result.released[test]
    gone = original >= left
    some = edges(0, left, 20)  # released letters to look at: the likeliest x is always the same
    likeliest = {left + int(release.posterior_of(r.start)[left:].argmax()) for r in some}
    (guess,) = likeliest
    blind = left + int(result.law[left:].argmax())
    best = np.full(len(result.law), blind)
    pairs = pd.DataFrame({"x": result.original[learn], "x_hat": result.released[learn]})
    pairs = pairs[pairs["x"] >= left].value_counts().reset_index()
    once = pairs.drop_duplicates("x_hat")  # the commonest x comes first
    best[once["x_hat"].to_numpy()] = once["x"].to_numpy()

    def tried(guessed: np.ndarray | int, expected: float) -> tuple[int, float]:
        return int((original == guessed)[gone].sum()), expected

    one = float(result.law[blind] / result.law[left:].sum()) * int(gone.sum())
    return {
        "p(x | x̂), the likeliest of all names": tried(released, 0.0),
        "p(x | x̂), the likeliest vanished name": tried(guess, one),
        "p(x), the likeliest vanished name, x̂ unseen": tried(blind, one),
        "the vanished name seen most often with x̂": tried(best[released], np.nan),
    }


def independence(result: Study) -> str:
    """Test whether vanished names and x̂ are independent."""
    gone = result.original >= result.left
    rows = [r.start for r in vanished(result)]
    rows = np.searchsorted(rows, result.original[gone], side="right")
    columns = np.minimum(result.released[gone], 40)  # the forty most frequent, and the others
    table = pd.crosstab(rows, columns).to_numpy()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    table = table[:, expected.min(axis=0) >= 5]
    if min(table.shape) < 2:
        return "too few records for a test"
    found = chi2_contingency(table)
    return (
        f"χ² = {found.statistic:.1f} at {found.dof} degrees of freedom, p-value {found.pvalue:.2f}"
    )


def exactly(result: Study) -> dict[str, bool]:
    """Check in fractions, by Bayes' rule, that a vanished name is as likely after as before."""
    problem, release = result.problems[SHARE], result.chosen.release
    level, total = problem.level, problem.total
    some = np.unique(np.linspace(result.left, len(result.law) - 1, 1000).astype(int)).tolist()
    prior = {x: Fraction(float(problem.law[x])) / total for x in (0, *some)}
    posterior = release.posterior_of(0, exact=True)
    shown = (prior[0] - level) / (1 - release.distortion - level)  # p(x̂), x̂ the first name
    rows = {x: release.row(x, exact=True) for x in some[:: max(len(some) // 3, 1)]}
    return {
        f"p(x | x̂) = p(x) for {len(some):,} of the vanished names": all(
            posterior[x] == prior[x] for x in some
        ),
        "p(x) p(x̂ | x) = p(x̂) p(x | x̂)": all(
            prior[x] * row[0] == shown * posterior[x] for x, row in rows.items()
        ),
        "rows sum to 1": all(sum(row) == 1 for row in rows.values()),
        "Pr(X ≠ X̂) = D": release.distortion == problem.budget,
    }


# ---- what it says ------------------------------------------------------------------------


def report(result: Study) -> str:
    """Say in words what was proved, and what was measured."""
    before = cpv.information.entropy(result.law)
    lines = [
        f"{result.title}: H(X) = {before:.4f} bits",
        "",
        "the optimum at several D (bits; the enclosure is proved)",
        "       D   names left          λ   least I(X; X̂), enclosed                   gap"
        "  equivocation  0.01 of D saves",
    ]
    for share, solution in result.solutions.items():
        level = float(result.problems[share].level)
        ends = f"[{solution.lower:.13f}, {solution.upper:.13f}]"
        budget, price = float(result.problems[share].budget), solution.prices["budget"]
        lines.append(
            f"  {budget:.4f} {len(solution.release.kept):12,} {level:10.3g}   {ends:<37} "
            f"{solution.gap:.1e}       {float(solution.equivocation):7.4f}"
            f"           {-price / 100:.4f}"
        )
    changed = float((result.original != result.released).mean())
    error = (result.budget * (1 - result.budget) / len(result.original)) ** 0.5
    last = result.released.max()
    lines += [
        "",
        f"the release at D = {result.budget:.4f} has {result.left:,} of {len(result.law):,} names",
        f"  changed records    {changed:.4f}, {abs(changed - result.budget) / error:.1f} standard "
        "errors from D",
        f"  rarest name seen   {result.names[last]!r} of rank {last + 1:,}; none of the vanished: "
        f"{'yes' if last < result.left else 'NO'}",
    ]
    if result.left < len(result.law):
        lines += attacked(result)
    else:
        lines.append("  no name vanishes")
    return "\n".join(lines)


def attacked(result: Study) -> list[str]:
    """Say what an attacker learns from the release."""
    lines = [
        "",
        "what x̂ tells about one name: p(x) before, and p(x | x̂) at the most telling x̂",
        "  ranks                    names  fate          before        after     measured",
    ]
    for g in groups(result):
        ranks = f"{g.ranks.start + 1:,}–{g.ranks.stop:,}"
        fate = "kept" if g.kept else "vanished"
        lines.append(
            f"  {ranks:<20} {len(g.ranks):9,}  {fate:<9} {g.prior:10.3g}   {g.exact:10.3g}   "
            f"{g.seen:10.3g} ± {g.error:.2g}"
        )
    _, test = result.halves
    gone = int((result.original[test] >= result.left).sum())
    lines += [
        "",
        f"guessing the {gone:,} test records whose name vanished; told that it did, but for the "
        "first line",
    ]
    for rule, (right, expected) in guesses(result).items():
        said = "" if np.isnan(expected) else f"   expected {expected:.1f}"
        lines.append(f"  from {rule:<45} right {right:>6,}{said}")
    lines += [f"  are vanished names and x̂ independent?  {independence(result)}", "  in fractions:"]
    lines += [f"    {claim:<58} {'yes' if ok else 'NO'}" for claim, ok in exactly(result).items()]
    return lines


def draw(result: Study, path: Path) -> None:
    """Draw the laws of the releases, and what is learned about one name."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    ax, size = axes[0], len(result.law)
    ranks = np.unique(np.geomspace(1, size, 500).round().astype(int)) - 1
    ax.loglog(ranks + 1, result.law[ranks], color="black", lw=1.5, label="original, p(x)")
    for share, color in COLORS.items():
        release = result.solutions[share].release
        law, left = release.released_marginal, len(release.kept)
        shown = np.append(ranks[ranks < left - 1], left - 1)
        level = float(result.problems[share].level)
        ax.loglog(
            shown + 1, law[shown], color=color,
            label=f"released, D = {share * result.most:.2f}: {left:,} names",
        )  # fmt: skip
        ax.plot([1, size], [level, level], ":", color=color, lw=1)
    ax.set(xlabel="rank of the name", ylabel="probability", xlim=(1, size))
    ax.set_ylim(bottom=result.law[-1] / 10)
    ax.legend(title="dotted: the water level λ", fontsize=9, title_fontsize=9, loc="upper right")
    ax.set_title("names under the water vanish", fontsize=11)

    ax = axes[1]
    left, top = result.left, 1 - result.budget
    ax.loglog(ranks + 1, result.law[ranks], color="black", lw=1.5, label="before: p(x)")
    ax.plot([1, left], [top, top], color=COLORS[SHARE], lw=1.5, label="after: greatest p(x | x̂)")
    after = ranks[ranks >= left]
    ax.plot(after + 1, result.law[after], color=COLORS[SHARE], lw=4, alpha=0.45)
    ax.plot([left, left], [result.law[min(left, size - 1)], top], ":", color=COLORS[SHARE], lw=1)
    measured = [g for g in groups(result) if np.isfinite(g.seen) and g.seen > 0]
    ax.errorbar(
        [((g.ranks.start + 1) * g.ranks.stop) ** 0.5 for g in measured],
        [g.seen for g in measured],
        yerr=[[min(2 * g.error, g.seen) for g in measured], [2 * g.error for g in measured]],
        fmt="o", ms=5, color="#0072B2", capsize=3, label="after, measured, ± 2 standard errors",
    )  # fmt: skip
    ax.set(xlabel="rank of the name", ylabel="probability that a record is this name")
    ax.set(xlim=(1, size), ylim=(result.law[-1] / 10, 2))
    ax.legend(fontsize=9, loc="lower left")
    ax.set_title(f"what the release tells at D = {result.budget:.2f}", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, release, attack, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/names.png"))
    parser.add_argument("--table", type=Path, help="a CSV file whose column is the data")
    parser.add_argument("--column", help="its name")
    parser.add_argument("--names", type=int, default=1_000_000, help="number of made-up names")
    parser.add_argument("--records", type=int, default=1_000_000, help="and of their records")
    given = parser.parse_args(arguments)
    if (given.table is None) != (given.column is None):
        parser.error("--table and --column go together")
    if given.table is not None:
        result = column(given.table, given.column)
    else:
        result = made_up(given.names, given.records)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
