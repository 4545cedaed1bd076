"""What does the optimal noise do that plain noise does not?

The case in which all is known in closed form (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE
TKDE 22(11), 2010, §5, eqs. 7–9): W and X jointly Gaussian, correlation ρ = 0.95, Var X = 1.

    minimise  I(W; X̂)   subject to  E (X − X̂)² ≤ D                  over p(x̂ | x)

For Gaussians only the variance Σ of the error matters: −½ log(1 − (1 − Σ) ρ²) is minimised under
0 ≤ Σ ≤ 1 and Σ ≤ D.  So R(D) = −½ log(1 − (1 − D) ρ²), the price is ½ ρ² / (1 − (1 − D) ρ²), and
the optimal release is X̂ = (1 − D) X + N with Var N = D (1 − D): it shrinks, and adds less noise.
The plain rule X̂ = X + N, Var N = D, has the same error.  It leaks −½ log(1 − ρ² / (1 + D)): more.

Learn: that covariance program and closed form agree as far as the proof reaches; that shrinking
costs no risk, as anyone can undo it; that what is optimally released is the best guess of X.

    python problems/gaussian_scalar.py        # prints, and writes output/gaussian_scalar.png
"""

from types import SimpleNamespace

import numpy as np

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

RHO, RECORDS = 0.95, 100_000
BUDGETS, CHOSEN = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9), 0.5  # D / Var X


def closed(d):
    """R(D) in bits (eqs. 7 and 8)."""
    return -np.log2(1 - (1 - d) * RHO**2) / 2


def added(d):
    """I(W; X + N) in bits: X + N is what the optimum at d / (1 + d) releases, unshrunk."""
    return closed(d / (1 + d))


def slope(x, released):
    """Best estimate of X from X̂, per X̂."""
    return np.cov(x, released)[0, 1] / released.var()


def study(*, seed: int = 1):
    """Return certified optima by D, and (W, X, X̂) of records under two rules."""
    source = cpv.GaussianSource.scalar(RHO)
    optima = {d: cpv.QuadraticGaussian(source, budget=d).solve() for d in BUDGETS}
    rng = np.random.default_rng(seed)
    w, x = rng.multivariate_normal(source.mean, source.covariance, RECORDS).T
    released = optima[CHOSEN].release.apply(x[:, None], seed=rng)[:, 0]
    plain = x + np.sqrt(CHOSEN) * rng.standard_normal(RECORDS)
    records = {"optimal": (w, x, released), "plain": (w, x, plain)}
    return SimpleNamespace(optima=optima, records=records)


def report(result):
    """Compare the program with the closed forms, and the records with both."""
    yield result.optima[CHOSEN]
    for budget, solution in result.optima.items():
        price = RHO**2 / (1 - (1 - budget) * RHO**2) / np.log(4)
        yield claim(f"R({budget:g}) [bits]", solution, closed(budget), "eq. 8", within=1e-9)
        yield claim(f"price at {budget:g}", -solution.prices["budget"], price, "−dR/dD")
    d, noise = CHOSEN, result.optima[CHOSEN].release.noise[0, 0]
    yield claim("variance of the optimal noise", noise, d * (1 - d), "Fig. 5")
    theory = {"optimal": (1.0, closed(d)), "plain": (1 / (1 + d), added(d))}
    for name, (w, x, released) in result.records.items():
        yield f"\n{RECORDS:,} records, {name} release at D = {d:g}"
        risk = -np.log2(1 - np.corrcoef(w, released)[0, 1] ** 2) / 2
        best, leaked = theory[name]
        yield claim(f"{name}: E[X | X̂] / X̂", slope(x, released), best, "theory", within=0.02)
        yield claim(f"{name}: I(W; X̂) [bits]", risk, leaked, "theory", within=0.02)
    yield f"\nat D = {d:g} plain noise leaks {added(d) / closed(d):.2f} times the optimum"


def draw(result):
    """Draw R(D) below the other rules, and X against X̂ under both."""
    figure, (left, right) = style.panels("risk at equal distortion", f"records at $D$ = {CHOSEN:g}")
    fine = np.linspace(0, 1, 300)
    left.plot(fine, (1 - fine) * closed(0.0), **style.BOUND)
    left.plot(fine, added(fine), color=style.VERMILION)
    left.plot(fine, closed(fine), color=style.BLUE)
    left.plot(BUDGETS, [s.value for s in result.optima.values()], "*", color=style.BLUE)
    left.text(0.42, 1.02, "MIUB, eq. (9)")
    left.text(0.7, 0.6, "plain noise", color=style.VERMILION)
    left.text(0.02, 0.3, "optimum: closed\nform, certified", color=style.BLUE)
    left.set(xlabel="distortion $D$ [Var $X$]", ylabel=r"risk $I(W;\hat X)$ [bits]", xlim=(0, 1))
    colors = {"optimal": style.BLUE, "plain": style.VERMILION}
    for place, (name, (_, x, released)) in enumerate(result.records.items()):
        right.plot(released[:400], x[:400], ".", ms=3, color=colors[name], alpha=0.5, mec="none")
        right.axline((0, 0), slope=slope(x, released), color=colors[name])
        said = rf"{name}: E[$X\,|\,\hat X$] = {slope(x, released):.2f} $\hat X$"
        right.text((-3.8, 0.2)[place], (3.3, -3.6)[place], said, color=colors[name])
    right.set(xlabel=r"released $\hat X$", ylabel="original $X$", xlim=(-4, 4), ylim=(-4, 4))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
