"""Which noise hides incomes best, and what does a Gaussian bound say about real ones?

Persons of the 1995 Current Population Survey: the reference microdata "Census" of the CASC
project, 1,080 persons and 13 numeric attributes.

Confidential W: taxable income (TAXINC) and wages (WSALVAL).  Key X, released as X̂: adjusted
gross income, the employer's health contribution, federal and state tax, total income, interest.
Left out are columns that are W under another name, as no noise on the rest would protect it:
earnings (PEARNVAL and ERNVAL are the wages themselves for 94 % and 85 % of the persons), payroll
deduction (FICA is 7.65 % of the wages for 80 %), other income (POTHVAL = PTOTVAL − PEARNVAL for
all, so that together with total income it returns the earnings); and the survey's weight
(AFNLWGT), which is no property of a person.

    minimise    h(W) − ½ log det 2πe (Σ_W|X + B Σ Bᵀ),   B = Σ_WX Σ_X⁻¹
    subject to  Σ_i Σ_ii / Var X_i ≤ D                           over 0 ≼ Σ ≼ Σ_X

Σ = Cov(X − X̂) is the covariance of the error.  The attributes are standardised by the weights
1 / Var X_i in the distortion, so that D = 6 is all that there is, while the release works on
dollars.  (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. 6.)

What the value means.  With the h(W) of a Gaussian it is the risk if W and X were jointly
Gaussian.  Incomes are not; then it is neither an upper nor a lower bound.  With the true h(W) it
is a lower bound: no release of any kind with this error leaks less.  Here h(W) is estimated from
the records by nearest neighbours, so that the bound is as good as that estimate.

Learn: that the best "noise" mostly withholds the few combinations of attributes that speak of W
and draws little at random; how plain noise compares when the comparison is fair; and how far to
trust a Gaussian number on a table that is not.

    CVXPRIVACY_DATA=folder python problems/census_income.py  # writes output/census_income.png
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import cvxprivacy as cpv

MISSING = (
    "Set CVXPRIVACY_DATA to a folder that holds census.csv: the public Census reference microdata "
    "of the CASC project, 1,080 x 13, as CASCrefmicrodata in the R package sdcMicro "
    "(https://cran.r-project.org/package=sdcMicro), with the column names as first row."
)
SENSITIVE = ("TAXINC", "WSALVAL")
KEYS = {
    "AGI": "adjusted gross income",
    "EMCONTRB": "employer's health contribution",
    "FEDTAX": "federal income tax",
    "PTOTVAL": "total income",
    "STATETAX": "state income tax",
    "INTVAL": "interest",
}
PAIR = ("AGI", "PTOTVAL")  # whose ellipses are drawn
SHARES = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.68)  # D / 6
SHARE = 0.2  # for the release that is applied
RELEASES = 5  # of the table, for what is measured on it


@dataclass
class Rule:
    """A way to release: its error as released, and as the best estimate from it has it."""

    name: str
    error: np.ndarray
    left: np.ndarray
    apply: Callable[..., pd.DataFrame]


@dataclass
class Study:
    """The table, its moments, and at each share of the variance the optimum."""

    frame: pd.DataFrame
    source: cpv.GaussianSource
    entropy: float
    solutions: dict[float, cpv.GaussianSolution]
    bounds: dict[float, cpv.GaussianSolution]

    @property
    def chosen(self) -> cpv.GaussianSolution:
        return self.solutions[SHARE]

    @cached_property
    def own(self) -> np.ndarray:
        """Σ_X."""
        return self.source.block(self.source.x, self.source.x)

    @property
    def variances(self) -> np.ndarray:
        return self.own.diagonal()

    def distortion(self, sigma: np.ndarray) -> np.ndarray:
        """Return each attribute's share of its own variance."""
        return sigma.diagonal() / self.variances

    def leakage(self, sigma: np.ndarray) -> float:
        """I(W; X̂) in bits for Gaussians, if X̂ leaves the error covariance Σ to its reader."""
        w, x = self.source.w, self.source.x
        law, b = self.source.block(w, w), np.linalg.solve(self.own, self.source.block(x, w)).T
        after = law - b @ (self.own - sigma) @ b.T  # Σ_W|X + B Σ Bᵀ
        return float(np.linalg.slogdet(law)[1] - np.linalg.slogdet(after)[1]) / 2 / np.log(2)

    def left(self, noise: np.ndarray) -> np.ndarray:
        """Return Cov(X | X + N), the error of the best linear estimate from noisy records."""
        return self.own - self.own @ np.linalg.solve(self.own + noise, self.own)

    def uncorrelated(self, size: float) -> np.ndarray:
        """Return independent noise of this share of each attribute's variance."""
        return size * np.diag(self.variances)

    def correlated(self, size: float) -> np.ndarray:
        """Return noise with the correlations of the data."""
        return size * self.own

    def matched(self, noise: Callable[[float], np.ndarray], share: float) -> np.ndarray:
        """Return noise so great that the best estimate from X + N still errs by D in total."""
        total = share * len(self.variances)

        def excess(size: float) -> float:
            return float(self.distortion(self.left(noise(size))).sum()) - total

        return noise(brentq(excess, 1e-9, 1e9))

    def rules(self) -> list[Rule]:
        """Return the optimum, and both kinds of noise in both comparisons."""
        sigma = self.chosen.error_covariance
        found = [Rule("the optimal release", sigma, sigma, self.chosen.release.apply)]
        for name, kind in {
            "uncorrelated noise": self.uncorrelated, "noise correlated as X": self.correlated,
        }.items():  # fmt: skip
            raw, fair = kind(SHARE), self.matched(kind, SHARE)
            found.append(Rule(f"{name}, as it is", raw, self.left(raw), self._adding(raw)))
            found.append(
                Rule(f"{name}, best guess", self.left(fair), self.left(fair), self._adding(fair))
            )
        return found

    def _adding(self, noise: np.ndarray) -> Callable[..., pd.DataFrame]:
        def apply(frame: pd.DataFrame, *, seed: int) -> pd.DataFrame:
            drawn = np.random.default_rng(seed).multivariate_normal(
                np.zeros(len(noise)), noise, size=len(frame)
            )
            return frame.assign(**{name: frame[name] + drawn[:, i] for i, name in enumerate(KEYS)})

        return apply

    def measured(self, released: pd.DataFrame) -> float:
        """I(W; Ŵ) in bits on a released table, Ŵ the best linear estimate of W from it.

        By nearest neighbours, h(W) + h(Ŵ) − h(W, Ŵ): no law is assumed.  Ŵ is a function of X̂,
        so that I(W; X̂) itself is no less.
        """
        w = self.frame[list(SENSITIVE)].to_numpy(float)
        x = released[list(KEYS)].to_numpy(float)
        x = np.column_stack([np.ones(len(x)), x / x.std(axis=0)])
        guess = x @ np.linalg.lstsq(x, w, rcond=None)[0]
        w, guess = (v @ np.linalg.inv(np.linalg.cholesky(np.cov(v.T))).T for v in (w, guess))
        parts = (w, guess, np.column_stack([w, guess]))
        first, second, both = map(cpv.information.differential_entropy, parts)
        return first + second - both


def census() -> pd.DataFrame:
    """Read the Census table."""
    folder = os.environ.get("CVXPRIVACY_DATA")
    path = Path(folder or ".") / "census.csv"
    if not folder or not path.is_file():
        raise SystemExit(MISSING)
    return pd.read_csv(path)


def study(frame: pd.DataFrame, shares: tuple[float, ...] = SHARES) -> Study:
    """Solve for the least risk at several shares of the variance."""
    source = cpv.GaussianSource.from_table(frame, sensitive=SENSITIVE, key=list(KEYS))
    entropy = cpv.information.differential_entropy(frame[list(SENSITIVE)])
    weights = 1 / source.block(source.x, source.x).diagonal()

    def solve(share: float, entropy: float | None = None) -> cpv.GaussianSolution:
        budget = share * len(weights)
        return cpv.QuadraticGaussian(source, budget, weights=weights, entropy=entropy).solve()

    return Study(
        frame,
        source,
        entropy,
        {share: solve(share) for share in shares},
        {share: solve(share, entropy) for share in shares},
    )


def meaning(result: Study, measured: float, released: pd.DataFrame) -> list[str]:
    """Say what the value is under the Gaussian law, under the true one, and on this table."""
    before, solution, keys = result.source.information(), result.chosen, list(KEYS)
    shuffled = [
        released.assign(**released[keys].sample(frac=1, random_state=i).reset_index(drop=True))
        for i in range(RELEASES)
    ]
    nothing = np.mean([result.measured(table) for table in shuffled])
    return [
        f"what that says, at D = {SHARE:.0%}",
        f"  before                              I(W; X) = {before:.4f} bits, "
        "were W and X jointly Gaussian",
        f"  if they were, the least risk is     {solution.value:.4f} bits = "
        f"{solution.value / before:.0%} of it, and the release reaches it",
        f"  for the true law, any release has   {result.bounds[SHARE].lower:.4f} bits at least, "
        "with h(W) as estimated",
        f"  this release, on this table, has    {measured:.2f} bits or more, measured by nearest "
        "neighbours",
        f"                                      (mean of {RELEASES} draws; of shuffled records "
        f"they say {nothing:z.2f}, not 0)",
        "  so the Gaussian value is a design criterion here, and no promise",
    ]


def compared(result: Study, rules: list[Rule], measured: list[float]) -> list[str]:
    """Put the optimum beside two kinds of noise, in a fair comparison and in an unfair one."""
    release, size = result.chosen.release, len(KEYS)
    lines = [
        "rules with the same D                error as    error of best   Gaussian   measured",
        "                                     released    linear guess    risk       risk",
    ]
    for rule, seen in zip(rules, measured, strict=True):
        error, left = (result.distortion(v).sum() / size for v in (rule.error, rule.left))
        lines.append(
            f"  {rule.name:<37}{error:5.1%}         {left:5.1%}       "
            f"{result.leakage(rule.left):.4f}      {seen:.2f}"
        )
    drawn = result.distortion(release.noise).sum() / (SHARE * size)
    first, second, third = 1 - np.sort(np.linalg.eigvals(release.gain).real)[:3]
    return [
        *lines,
        "  Unfair: noise as it is.  Whoever knows the rule makes the best linear guess of X, which",
        "  errs less and reveals the same.  Fair: the same error after the best guess, which for",
        "  the optimal release is the release itself.",
        f"  Only {drawn:.1%} of the optimum's error is drawn at random.  W has two attributes, so",
        f"  two combinations of X are withheld: {first:.1%} and {second:.1%} of their variance, "
        f"and {abs(third):.1%} of any other.",
    ]


def placed(result: Study, plain: np.ndarray) -> list[str]:
    """Say what error each attribute bears."""
    sigma = result.chosen.error_covariance
    shares, others = result.distortion(sigma), result.distortion(plain)
    lines = [
        "where the error goes: share of the attribute's variance, and dollars",
        "                                             uncorrelated (fair)           optimum",
    ]
    for i, (name, said) in enumerate(KEYS.items()):
        lines.append(
            f"  {name:<9} {said:<32} {others[i]:10.1%}             {shares[i]:10.1%}"
            f"   ± {np.sqrt(sigma[i, i]):,.0f}"
        )
    return lines


def curve(result: Study) -> list[str]:
    """Say the least risk at every D."""
    lines = [
        "the curve",
        "         Gaussian                true law, with h(W)     uncorrelated noise (Gaussian)",
        "  D / 6  least risk [bits]       any release [bits]      best guess   as it is",
    ]
    for share, found in result.solutions.items():
        low = result.bounds[share].lower
        bound = f"at least {low:.4f}" if low > 0 else "nothing is proved"
        raw = result.left(result.uncorrelated(share))
        fair = result.left(result.matched(result.uncorrelated, share))
        lines.append(
            f"  {share:5.0%}  [{found.lower:z.6f}, {found.upper:z.6f}]    {bound:<17}       "
            f"{result.leakage(fair):.4f}       {result.leakage(raw):.4f}"
        )
    return lines


def applied(result: Study, released: pd.DataFrame) -> list[str]:
    """Check a released table against the moments that were promised."""
    keys, sigma = list(KEYS), result.chosen.error_covariance
    moved = (result.frame[keys] - released[keys]).to_numpy()
    noise = result.chosen.release.noise.diagonal()
    errors = np.abs(moved.mean(axis=0)) / np.sqrt(noise / len(moved))
    scale = np.sqrt(np.outer(sigma.diagonal(), sigma.diagonal()))
    off = np.abs(np.cov(moved.T) - sigma) / scale
    kept = [c for c in result.frame if c not in keys]
    same = released[kept].equals(result.frame[kept])
    worst = (released[keys] < 0).mean().idxmax()
    return [
        f"the release, applied once to the {len(moved):,} records",
        f"  means of X̂ are those of X to {errors.max():.1f} standard errors at most "
        f"(${np.abs(moved.mean(axis=0)).max():.0f})",
        f"  Cov(X − X̂) is Σ to {off.max():.3f} at most, in units of √(Σ_ii Σ_jj)",
        f"  the other columns are {'as they were' if same else 'CHANGED'}",
        f"  only second moments are kept: {worst} is never negative, its release is for "
        f"{(released[worst] < 0).mean():.0%} of the persons",
    ]


def report(result: Study) -> str:
    """Say in words what was proved, and what the table shows."""
    frame, solution, rules = result.frame, result.chosen, result.rules()
    gaussian = result.entropy + solution.value - result.bounds[SHARE].value
    others = ", ".join(
        f"{cpv.information.differential_entropy(frame[list(SENSITIVE)], neighbours=k):.2f}"
        for k in (1, 10, 30)
    )
    tables = [[rule.apply(frame, seed=i) for i in range(RELEASES)] for rule in rules]
    measured = [float(np.mean([result.measured(table) for table in some])) for some in tables]
    return "\n".join(
        [
            f"W = {', '.join(SENSITIVE)}; X = {', '.join(KEYS)}: {len(frame):,} persons",
            f"  h(W) = {result.entropy:.2f} bits by 3 nearest neighbours ({others} by 1, 10, 30); "
            f"of a Gaussian {gaussian:.2f}:",
            f"  the lower bound for the true law lies {gaussian - result.entropy:.2f} bits below "
            "the Gaussian value",
            f"{solution}",
            f"  (errors count in the variances of their attributes: D = {SHARE:.0%} of "
            f"{len(KEYS)})",
            "",
            *meaning(result, measured[0], tables[0][0]),
            "",
            *compared(result, rules, measured),
            "",
            *placed(result, rules[2].error),
            "",
            *applied(result, tables[0][0]),
            "",
            *curve(result),
        ]
    )


def ellipse(covariance: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the one-standard-deviation ellipse of two variables, in units of their scales."""
    angle = np.linspace(0, 2 * np.pi, 200)
    root = np.linalg.cholesky(covariance) / scales[:, None]
    return root @ np.array([np.cos(angle), np.sin(angle)])


def draw(result: Study, path: Path) -> None:
    """Draw risk against D, each attribute's distortion, and Σ inside Σ_X."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(16, 5), layout="constrained")
    size, rules = len(KEYS), result.rules()
    optimal, plain = rules[0].error, rules[2].error
    colors = {"optimal": "C0", "plain": "C1"}

    ax = axes[0]
    shares = np.array(list(result.solutions))
    fine = np.geomspace(0.01, shares.max(), 60)
    raw = [result.leakage(result.left(result.uncorrelated(s))) for s in fine]
    fair = [result.leakage(result.left(result.matched(result.uncorrelated, s))) for s in fine]
    ax.plot(fine, raw, color="C1", ls=":", label="uncorrelated noise, as it is")
    ax.plot(fine, fair, color="C1", ls="--", label="uncorrelated noise, best linear guess (fair)")
    some = list(result.solutions.values())
    cpv.plotting.tradeoff(some, ax, per=(size, 1.0), color="C0", label="optimum, if Gaussian")
    seen = [np.mean([result.measured(s.release.apply(result.frame, seed=i))
                     for i in range(RELEASES)]) for s in some]  # fmt: skip
    ax.plot(shares, np.maximum(seen, 0), "x", ms=6, color="k",
            label="its release, measured on the table")  # fmt: skip
    low = np.maximum([b.lower for b in result.bounds.values()], 0)
    ax.plot(shares, low, color="0.45", ls="-.", label="no release is below (true law, estimated h)")
    ax.set(xlabel=f"distortion D / {size} [share of the variance]", ylabel="risk I(W; X̂) [bits]")
    ax.set(xlim=(0, 0.7), ylim=(0, None))
    ax.set_title("risk about taxable income and wages", fontsize=10)
    ax.legend(fontsize=8.5)

    ax = axes[1]
    places = np.arange(size)
    for shift, sigma, key, name in (
        (-0.2, optimal, "optimal", "optimum"), (0.2, plain, "plain", "uncorrelated noise (fair)"),
    ):  # fmt: skip
        ax.barh(places + shift, result.distortion(sigma), 0.4, color=colors[key], label=name)
    ax.set_yticks(places, [f"{said}\n({name})" for name, said in KEYS.items()], fontsize=9)
    ax.set(xlabel="error variance / variance of the attribute")
    ax.set_title(f"where D = {SHARE:.0%} goes", fontsize=10)
    ax.set_ylim(size - 0.4, -1.35)
    ax.legend(fontsize=9, loc="upper right")

    ax = axes[2]
    at = [list(KEYS).index(name) for name in PAIR]
    scales = np.sqrt(result.variances[at])
    for sigma, color, style, name in (
        (result.own, "0.4", "-", "Σ_X, the data"),
        (plain, "C1", "--", "Σ of uncorrelated noise (fair)"),
        (optimal, "C0", "-", "Σ of the optimum"),
    ):
        ax.plot(*ellipse(sigma[np.ix_(at, at)], scales), style, color=color, lw=2, label=name)
    ax.set_aspect("equal")
    ax.set(
        xlabel=f"{KEYS[PAIR[0]]} [s.d.]",
        ylabel=f"{KEYS[PAIR[1]]} [s.d.]",
        xlim=(-1.25, 1.25),
        ylim=(-1.1, 1.7),
    )
    ax.set_title(f"Σ inside Σ_X at D = {SHARE:.0%} (one s.d.)", fontsize=10)
    ax.legend(fontsize=9, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/census_income.png"))
    out = parser.parse_args(arguments).out
    result = study(census())
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
