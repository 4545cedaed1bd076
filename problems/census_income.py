"""Which noise hides incomes best, and what does a Gaussian bound say about real ones?

Persons of the 1995 Current Population Survey: the reference microdata "Census" of the CASC
project, 1,080 persons.  Confidential W: taxable income (TAXINC) and wages (WSALVAL).  Key X: six
amounts.  Left out are columns that are W under another name, as no noise on the rest would protect
it: earnings (PEARNVAL and ERNVAL are the wages for 94 % and 85 % of the persons), payroll deduction
(FICA is 7.65 % of the wages for 80 %), other income (POTHVAL = PTOTVAL − PEARNVAL for all).

    minimise    h(W) − ½ log det 2πe (Σ_W|X + B Σ Bᵀ),   B = Σ_WX Σ_X⁻¹
    subject to  tr Σ ≤ D                                         over 0 ≼ Σ ≼ Σ_X

Σ = Cov(X − X̂) is the covariance of the error, amounts in their standard deviations, so that D = 6
is all that there is (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. 6).
With the h(W) of a Gaussian the value is the risk if W and X were jointly Gaussian.  Incomes are
not; then it is neither an upper nor a lower bound.  With the true h(W) it is a lower bound for
any law (Theorem 2); here h(W) is estimated from the records by nearest neighbours, so that the
bound is as good as that estimate.

Learn: that the best "noise" mostly withholds the few combinations of attributes that speak of W
and draws little at random; how plain noise compares when the comparison is fair; and how far to
trust a Gaussian number on a table that is not.

    python problems/census_income.py          # prints, and writes output/census_income.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run
from cvxprivacy_sdc.risk import estimated_leakage  # pip install cvxprivacy-sdc

SENSITIVE = ["TAXINC", "WSALVAL"]
KEYS = {"AGI": "adjusted gross\nincome", "EMCONTRB": "employer's health\ncontribution",
        "FEDTAX": "federal tax", "PTOTVAL": "total income", "STATETAX": "state tax",
        "INTVAL": "interest"}  # fmt: skip
PAIR = [0, 3]  # gross and total income, whose ellipses are drawn
SHARES = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.68)  # D / 6
SHARE, RELEASES = 0.2, 5  # for the rules that are compared, each drawn so many times


def left(own, noise):
    """Return Cov(X | X + N), the error of the best linear guess from noisy records."""
    return own - own @ np.linalg.solve(own + noise, own)


def matched(own, noise, share):
    """Return such a multiple of a noise that the best guess from X + N still errs by D in total."""
    return noise * brentq(lambda size: left(own, size * noise).trace() / 6 - share, 1e-9, 1e9)


def revealed(source, noise):
    """I(W; X + N) in bits for Gaussians."""
    law = source.covariance.copy()
    law[np.ix_(source.x, source.x)] += noise
    w, x, both = (np.linalg.slogdet(law[np.ix_(at, at)])[1]
                  for at in (source.w, source.x, source.w + source.x))  # fmt: skip
    return (w + x - both) / np.log(4)


def measured(w, x):
    """I(W; Ŵ) in bits by nearest neighbours; Ŵ, the best linear guess, tells no more than X̂."""
    x = np.column_stack([np.ones(len(x)), x])
    return estimated_leakage(w, x @ np.linalg.lstsq(x, w, rcond=None)[0], method="neighbours").value


def study():
    """Solve at several shares of the variance, and set noise with the same error beside it."""
    census = cpv.datasets.load_census()
    census /= census.std()
    source = cpv.GaussianSource.from_table(census, sensitive=SENSITIVE, key=list(KEYS))
    w, x = census[SENSITIVE].to_numpy(), census[list(KEYS)].to_numpy()
    own, entropy = source.block(source.x, source.x), cpv.information.differential_entropy(w)

    def seen(release):
        return np.mean([measured(w, release(np.random.default_rng(i))) for i in range(RELEASES)])

    def added(noise):
        return lambda rng: x + rng.multivariate_normal(np.zeros(6), noise, len(x))

    solutions, bounds, curve = {}, {}, {}
    for share in SHARES:
        solutions[share] = found = cpv.QuadraticGaussian(source, 6 * share).solve()
        bounds[share] = cpv.QuadraticGaussian(source, 6 * share, entropy=entropy).solve()
        curve[share] = {
            "optimum if Gaussian": found.value,
            "optimum measured": seen(lambda rng, rule=found.release: rule.apply(x, seed=rng)),
            "any law, at least": max(bounds[share].lower, 0),
            "noise, guessed": revealed(source, matched(own, np.eye(6), share)),
            "noise, as it is": revealed(source, share * np.eye(6)),
        }
    rules = {"optimal release": [SHARE, *list(curve[SHARE].values())[:2]]}
    for kind, shape in (("uncorrelated noise", np.eye(6)), ("noise correlated as X", own)):
        for said, noise in (("as it is", SHARE * shape), ("guessed", matched(own, shape, SHARE))):
            risks = revealed(source, noise), seen(added(noise))
            rules[f"{kind}, {said}"] = [left(own, noise).trace() / 6, *risks]
    return SimpleNamespace(
        source=source, own=own, entropy=entropy, solutions=solutions, bounds=bounds,
        curve=pd.DataFrame(curve).T, nothing=measured(w, np.random.default_rng(0).permutation(x)),
        rules=pd.DataFrame(rules, ["error of best guess", "if Gaussian", "measured"]).T,
        fair=left(own, matched(own, np.eye(6), SHARE)),
    )  # fmt: skip


def report(result):
    """Say what is proved, and what the table shows."""
    source, best, rules = result.source, result.solutions[SHARE], result.rules
    law = 2 * np.pi * np.e * source.block(source.w, source.w)
    yield f"W = {', '.join(SENSITIVE)}; X = {', '.join(KEYS)}: {source.records:,} persons"
    yield best
    yield f"\nrules at D = {SHARE:.0%} of the variance; X itself: {source.information():.2f} bits"
    yield rules.round(4)
    yield "guessed: so much noise that the best linear guess of X errs by D; as it is, it errs less"
    yield f"measured: at least, by nearest neighbours (of shuffled records {result.nothing:.2f})"
    short = np.linalg.slogdet(law)[1] / np.log(4) - result.entropy
    yield f"of any law with these moments and this h(W), {short:.2f} bits below a Gaussian's, the"
    yield f"risk is at least {result.bounds[SHARE].lower:.4f} bits (Theorem 2)"
    for name, risk in rules["if Gaussian"].filter(like="guessed").items():
        yield claim(f"{name} [bits]", risk, ("≥", best.lower), "eq. 6")
    held = 1 - np.sort(np.linalg.eigvals(best.release.gain).real)
    yield claim("withheld of a third combination of X", held[2], 0.0, "rank B = 2", within=1e-3)
    drawn = best.release.noise.trace() / 6 / SHARE
    yield f"\nwithheld of two: {held[0]:.1%}, {held[1]:.1%}; drawn at random: {drawn:.1%} of it"
    yield "\nrisk by D / 6 [bits]"
    yield result.curve.round(4)


def draw(result):
    """Draw risk against D, each attribute's distortion, and Σ inside Σ_X."""
    titles = r"risk $I(W;\hat X)$", f"where $D$ = {SHARE:.0%} goes", r"$\Sigma$ inside $\Sigma_X$"
    figure, axes = style.panels(*titles, height=2.7, width_ratios=(1.3, 1, 1))
    noise, best = style.PRACTICE | {"ms": 3}, style.OPTIMUM | {"ms": 5, "clip_on": False}
    seen = {"color": style.GREY, "ls": "", "marker": "x", "ms": 4, "mew": 1}
    signs = best, seen, style.BOUND, noise, noise | {"mfc": "white"}
    for name, how in zip(result.curve, signs, strict=True):
        axes[0].plot(result.curve[name], **how, label=name)
    axes[0].legend(loc="upper right", borderaxespad=0)
    axes[0].set(xlabel="$D$ / 6 [share of the variance]", ylabel="risk [bits]", ylim=(0, 4))
    optimum, angle = result.solutions[SHARE].error_covariance, np.linspace(0, 2 * np.pi, 200)
    for sigma, how in ((optimum, best), (result.fair, noise), (result.own, style.BOUND)):
        root = np.linalg.cholesky(sigma[np.ix_(PAIR, PAIR)])
        axes[2].plot(*root @ [np.cos(angle), np.sin(angle)], color=how["color"])
        if sigma is not result.own:
            axes[1].plot(sigma.diagonal(), list(KEYS.values()), **how | {"ls": ""})
    axes[1].text(0.29, 3.9, "optimum", color=style.BLUE)
    axes[1].text(0.29, 4.4, "noise", color=style.VERMILION)
    axes[2].text(-1, 0.9, r"$\Sigma_X$")
    axes[1].set(xlabel="error [share of the variance]", xlim=(0, None), ylim=(5.5, -0.5))
    axes[2].set(xlabel="adjusted gross income [s.d.]", ylabel="total income [s.d.]")
    axes[2].set_aspect("equal", anchor="N")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
