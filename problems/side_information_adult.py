"""What does it cost that the users know everybody's sex?

The 32,561 records of the UCI Adult data set.  Confidential W: marital status.  Key X: age group
and education group, released as X̂.  Side information Z: sex, which the users have from elsewhere.
Distortion: groups moved, in age and in education together.

    Z known to       minimise, subject to E d(X, X̂) ≤ D
    nobody           I(W; X̂)       over p(x̂ | x)
    the user         I(W; U, Z)    over p(u | x), read as x̂ = f(u, z)
    user, encoder    I(W; X̂, Z)    over p(x̂ | x, z)

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013), Proposition 2 and Theorems 2 and 3.  Then
the worst case in place of the average: least E d(X, X̂) such that for every u and z

    D(p(w | u, z) ‖ p(w)) ≤ t

Learn: that no release takes back what a user knows already, I(W; Z); that on the average a
release made for users without Z does nearly as well against those with it; that its promise for
every single letter breaks, and what keeping it costs; and what a table looks like whose letters
mean one thing for a woman and another for a man.

    CVXPRIVACY_DATA=folder python problems/side_information_adult.py
                                            # writes output/side_information_adult.png
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv

MISSING = (
    "Set CVXPRIVACY_DATA to a folder that holds adult.csv: the public Adult data set of the UCI "
    "Machine Learning Repository (https://archive.ics.uci.edu/dataset/2/adult), its file "
    "adult.data with the column names as first row and the last column called income."
)
AGES = ("under 25", "25–39", "40–59", "60 and over")
DEGREES = ("no diploma", "high school", "some college", "degree")
BUDGETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)  # D, in groups moved
BUDGET = 0.4  # of the tables that are released
T = 0.5  # of t-closeness, in bits
DRAWS = 10  # released tables, for what is measured on them
KNOWN_TO = {None: "nobody", "decoder": "the user", "both": "user and encoder"}
COLORS = {None: "#444444", "decoder": "#D55E00", "both": "#0072B2"}
MARKERS = {None: "s", "decoder": "o", "both": "^"}


@dataclass
class Study:
    """The table, its source, and the optima."""

    frame: pd.DataFrame
    source: cpv.DiscreteSource
    error: cpv.Distortion
    average: dict[tuple[str | None, float], cpv.Solution]  # least leakage, by who knows Z and D
    worst: dict[str | None, cpv.Solution]  # least distortion under t-closeness
    refusal: cpv.InfeasibleError  # of a cap below I(W; Z)

    @property
    def budgets(self) -> list[float]:
        return sorted({budget for _, budget in self.average})

    @property
    def held(self) -> float:
        """I(W; Z), what the user knows before anything is released."""
        return cpv.information.mutual_information(self.source.law.sum(axis=1))

    def told(self, solution: cpv.Solution) -> np.ndarray:
        """p(w, u, z), or p(w, x̂, z), shape (|W|, m, |Z|)."""
        channel, law = solution.channel, self.source.pmf
        if channel.encoder == "xz":
            k = channel.matrix.reshape(*law.shape[1:], -1)
            return np.einsum("wxz,xzu->wuz", law, k)
        return np.einsum("wxz,xu->wuz", law, channel.matrix)

    def leakage(self, solution: cpv.Solution) -> float:
        """I(W; U, Z) of a release, read by a user who knows Z though it may not be made for one."""
        return cpv.information.mutual_information(
            self.told(solution).reshape(len(self.source.w), -1)
        )

    def letters(self, solution: cpv.Solution) -> tuple[np.ndarray, np.ndarray]:
        """Return p(u, z) and D(p(w | u, z) ‖ p(w)), 0 where less than a record is expected."""
        told = self.told(solution)
        share, found = told.sum(axis=0), np.zeros(told.shape[1:])
        for u, z in np.argwhere(share * self.source.records >= 1):
            found[u, z] = cpv.information.divergence(told[:, u, z], self.source.p_w)
        return share, found


@dataclass
class Measured:
    """What is counted on one released table, beside the original."""

    distortion: float
    leakage: float  # plug-in I(W; U, Z), or I(W; X̂) where nobody knows Z
    bias: float  # Miller–Madow


def adult() -> pd.DataFrame:
    """Read the Adult table, with age and education in four groups each."""
    folder = os.environ.get("CVXPRIVACY_DATA")
    path = Path(folder or ".") / "adult.csv"
    if not folder or not path.is_file():
        raise SystemExit(MISSING)
    frame = pd.read_csv(path)
    frame["age"] = pd.cut(frame["age"], [0, 25, 40, 60, 200], right=False, labels=AGES)
    years = pd.cut(frame["education-num"], [0, 9, 10, 13, 99], right=False, labels=DEGREES)
    return frame.assign(education=years)[["marital-status", "age", "education", "sex"]]


def study(frame: pd.DataFrame, budgets: tuple[float, ...] = BUDGETS) -> Study:
    """Solve for the least leakage at each D, and for the least distortion under t-closeness."""
    source = cpv.DiscreteSource.from_table(
        frame, sensitive="marital-status", key=["age", "education"], side="sex"
    )
    error = cpv.per_attribute(
        {"age": "ordinal", "education": "ordinal"}, source,
        weights={"age": len(AGES) - 1.0, "education": len(DEGREES) - 1.0},  # steps from end to end
    )  # fmt: skip
    average = {
        (who, budget): cpv.RateDistortionEquivocation(
            source, error, budget, minimize="leakage", side_information=who
        ).solve()
        for who in KNOWN_TO
        for budget in budgets
    }
    worst = {
        who: cpv.RateDistortionEquivocation(
            source, error, minimize="distortion", side_information=who,
            criteria=[cpv.TCloseness(T)],
        ).solve()
        for who in KNOWN_TO
    }  # fmt: skip
    return Study(frame, source, error, average, worst, refused(source, error))


def refused(source: cpv.DiscreteSource, error: cpv.Distortion) -> cpv.InfeasibleError:
    """Ask for less leakage than the user has already."""
    problem = cpv.RateDistortionEquivocation(
        source, error, minimize="distortion", max_leakage=0.1, side_information="decoder"
    )
    try:
        problem.solve()
    except cpv.InfeasibleError as refusal:
        return refusal
    raise AssertionError("a release cannot leak less than Z does")


def released(result: Study, solution: cpv.Solution, seed: int) -> pd.DataFrame:
    """Return the table as it is given away; a column U stands for age and education if Z is known.

    The fixed seed makes the report repeatable; draw the one of a real release afresh.
    """
    return solution.channel.apply(result.frame, seed=seed)


def decoded(table: pd.DataFrame, solution: cpv.Solution) -> pd.DataFrame:
    """Return the table as its user reads it."""
    decoder = solution.channel.decoder
    return table if decoder is None else decoder.apply(table)


def measured(result: Study, who: str | None, seed: int, budget: float = BUDGET) -> Measured:
    """Release the table once and count on it what was promised."""
    solution = result.average[who, budget]
    table = released(result, solution, seed)
    read = decoded(table, solution)
    place = {cell: i for i, cell in enumerate(result.source.x)}
    before, after = (
        [place[cell] for cell in zip(frame["age"], frame["education"], strict=True)]
        for frame in (result.frame, read)
    )
    columns = ["U"] if who == "decoder" else ["age", "education"]
    seen = pd.crosstab(
        table["marital-status"], [table[c] for c in columns + ["sex"] * (who is not None)]
    ).to_numpy()
    return Measured(
        float(result.error.matrix[before, after].mean()),
        cpv.information.mutual_information(seen),
        cpv.information.miller_madow(seen),
    )


def report(result: Study, draws: int = DRAWS) -> str:
    """Say in words what was proved, and what was measured on released tables."""
    source, held = result.source, result.held
    whole = cpv.information.mutual_information(source.law.reshape(len(source.w), -1))
    lines = [
        f"W = marital status, X = (age, education), Z = sex: {source.records:,} records, "
        f"{' × '.join(map(str, source.law.shape))} cells; bits",
        f"  I(W; Z) = {held:.4f}: what the user knows before anything is released",
        f"  I(W; X) = {source.information():.4f}, of which about {source.bias():.4f} is "
        f"small-sample bias (Miller–Madow);  I(W; X, Z) = {whole:.4f}",
        f"{result.average['decoder', BUDGET]}",
        "",
        "Least leakage on the average, and what a release made for users without Z tells one with:",
        "         least leakage, proved                  made for nobody,   in excess of",
        "  D      nobody   the user  user and encoder    read with Z        the least",
    ]
    for budget in result.budgets:
        nobody, user, both = (result.average[who, budget] for who in KNOWN_TO)
        naive = result.leakage(nobody)
        lines.append(
            f"  {budget:<4g}   {nobody.value:.4f}   {user.value:.4f}    {both.value:.4f}"
            f"              {naive:.4f}             {naive - user.value:.4f}"
        )
    nobody, user, both = (result.average[who, BUDGET].value for who in KNOWN_TO)
    lines += [
        "  No release takes back what sex tells by itself; max_leakage=0.1 is refused, with proof:",
        f"    {result.refusal}",
        f"  At D = {BUDGET:g} the users' knowledge costs {user - nobody:.4f} bits: I(W; Z), and "
        f"{user - nobody - held:.4f} beside it.  An encoder that knows",
        f"  sex too saves {user - both:.4f} of the {user - held:.4f} that the release adds.",
        "",
        f"On tables: {draws} releases at D = {BUDGET:g} (mean ± standard deviation)",
        "                     distortion                 leakage",
        "  Z known to         certified  measured           certified  measured (plug-in)  "
        "less bias (Miller–Madow)",
    ]
    for who, name in KNOWN_TO.items():
        solution = result.average[who, BUDGET]
        found = [measured(result, who, seed) for seed in range(draws)]
        d, leak = np.array([(m.distortion, m.leakage) for m in found]).T
        less = leak - [m.bias for m in found]
        lines.append(
            f"  {name:<17}  {float(solution.distortion):.4f}     {d.mean():.4f} ± {d.std():.4f}   "
            f"  {solution.value:.4f}     {leak.mean():.4f} ± {leak.std():.4f}     {less.mean():.4f}"
        )
    lines += [
        "  The certified leakage is that of this table's own frequencies, the plug-in of the "
        "original: what drawing the",
        "  release adds to it is small, and the correction, which is for tables drawn anew from a "
        "population, takes more off.",
        "",
        f"Every letter: D(p(w | u, z) ‖ p(w)) ≤ t = {T:g}",
        "                     distortion   price dD/dt   read with Z: worst letter, "
        "records above t",
    ]
    for who, name in KNOWN_TO.items():
        solution = result.worst[who]
        share, each = result.letters(solution)
        lines.append(
            f"  {name:<17}  {solution.value:.4f}       {solution.prices['t_closeness']:+.3f}"
            f"        {each.max():.2f} bits{' ' * 17}{share[each > T + 1e-6].sum():>5.1%}"
        )
    nobody, user, both = (result.worst[who].value for who in KNOWN_TO)
    alone = [cpv.information.divergence(column, source.p_w) for column in source.law.sum(axis=1).T]
    lines += [
        "  Sex alone has "
        + ", ".join(f"{each:.3f} ({z})" for z, each in zip(source.z, alone, strict=True))
        + f", so that no t below {max(alone):.3f} can be kept;",
        "  the promise made for users without Z is broken by a user with it, and keeping it costs "
        f"{user / nobody:.1f} times the distortion,",
        f"  or {both / nobody:.1f} times if the release may depend on sex.",
        "  Letters u made for the user, as the user reads them (at least one record expected):",
        f"    share   {'  '.join(f'{z:<24}' for z in source.z)}   worst divergence",
    ]
    share, each = result.letters(result.worst["decoder"])
    mass, table = share.sum(axis=1), result.worst["decoder"].channel.decoder.table
    for u in np.argsort(-mass):
        if mass[u] * source.records >= 1:
            said = [f"{', '.join(cell):<24}" for cell in table[u]]
            note = "   two meanings" if len(set(table[u])) > 1 else ""
            lines.append(f"    {mass[u]:6.2%}  {'  '.join(said)}   {each[u].max():.3f}{note}")
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw leakage against D, and what each letter tells."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(15, 5.4), layout="constrained")
    ax, budgets = axes[0], result.budgets
    for who, name in KNOWN_TO.items():
        solutions = [result.average[who, budget] for budget in budgets]
        label = f"{name} know{'' if who == 'both' else 's'} Z"
        ax.plot(
            budgets, [s.value for s in solutions], MARKERS[who] + "-", color=COLORS[who],
            mfc="none", ms=7, lw=1.2, label=label,
        )  # fmt: skip
    naive = [result.leakage(result.average[None, budget]) for budget in budgets]
    ax.plot(budgets, naive, "x", color=COLORS[None], ms=8, label="made for nobody, read with Z")
    ax.axhline(result.held, color="#999999", lw=0.8)
    ax.text(budgets[-1], result.held - 0.005, "I(W; Z)", fontsize=10, color="#555555", ha="right",
            va="top")  # fmt: skip
    ax.set(xlim=(0, None), ylim=(0, None), xlabel="distortion D   [groups moved per record]")
    ax.set_ylabel("leakage about marital status   [bits]")
    ax.set_title("on the average: certified least leakage (lines guide the eye)", fontsize=11)
    ax.legend(fontsize=10)

    ax = axes[1]
    for who, color, where in ((None, COLORS[None], 0), ("decoder", COLORS["decoder"], 1)):
        share, each = result.letters(result.worst[who])
        for z, marker in enumerate(("o", "D")):
            used = share[:, z] * result.source.records >= 1
            name = result.source.z[z]
            jitter = np.linspace(-0.16, 0.16, int(used.sum())) + where + (0.2 if z else -0.2)
            ax.scatter(
                jitter[np.argsort(np.argsort(each[used, z]))], each[used, z],
                s=1500 * share[used, z], marker=marker, color=color, alpha=0.55, lw=0,
            )  # fmt: skip
            ax.text(where + (0.2 if z else -0.2), -0.06, name, ha="center", fontsize=10)
    share, each = result.letters(result.worst[None])
    x, z = np.unravel_index(each.argmax(), each.shape)
    said = ", ".join([*result.worst[None].channel.outputs[x], result.source.z[z]])
    ax.text(-0.02, each.max(), said, fontsize=10, va="center")
    ax.axhline(T, color="k", lw=1)
    ax.text(0.5, T + 0.015, f"t = {T:g}", fontsize=10, ha="center")
    told = [result.worst[who].value for who in (None, "decoder")]
    ax.set_xticks(
        [0, 1],
        [f"made for users without Z\nE d = {told[0]:.3f}", f"made for users with Z\n"
         f"E d = {told[1]:.3f}"],
    )  # fmt: skip
    ax.set(xlim=(-0.5, 1.5), ylim=(-0.1, None))
    ax.set_ylabel("D(p(w | u, z) ‖ p(w))   [bits]")
    ax.set_title("every letter, as a user who knows Z reads it (area: share)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/side_information_adult.png"))
    parser.add_argument("--quick", action="store_true", help="fewer budgets and releases")
    given = parser.parse_args(arguments)
    result = study(adult(), (0.2, BUDGET) if given.quick else BUDGETS)
    print(report(result, 2 if given.quick else DRAWS), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
