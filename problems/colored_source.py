"""Is the best compression of a signal also its best protection?

X: 24 readings in a row of a stationary Gaussian signal, Cov(X_s, X_t) = 0.9^|s − t|, such as the
hourly load of a meter.  Most of its power, the eigenvalues σ_i² of Σ_X, is in slow variation.
First W = X is confidential, which is Shannon's rate–distortion problem:

    minimise    ½ Σ_i log (σ_i² / D_i)              one water level θ: D_i = min(θ, σ_i²)
    subject to  Σ_i D_i ≤ D,  0 ≤ D_i ≤ σ_i²

Then W = H X + V: moving averages of seven readings, with noise, which tell who is at home when.

    minimise    ½ log det Σ_W − ½ log det (Σ_V + H Σ Hᵀ)
    subject to  tr Σ ≤ D                                         over 0 ≼ Σ ≼ Σ_X

Both are of one form (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. 6).

Learn: that closed form and program prove the same number; that the optimal error of the second
fills where W is, not where X is weak; what a code made for X, and white noise, which the user
filters, tell more; how tight Proposition 5 is.

    python problems/colored_source.py         # prints, and writes output/colored_source.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.linalg import toeplitz
from scipy.optimize import brentq

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

MEMORY, NOISE, SHARE = 0.9, 0.2, 0.2  # correlation of neighbours, variance of V, D / tr Σ_X drawn
SHARES = (0.004, 0.02, 0.04, 0.06, 0.1, 0.15, SHARE, 0.3, 0.4, 0.5)
COLORS = {"made for X": style.VERMILION, "white, filtered": style.GREEN, "made for W": style.BLUE}


def study(*, quick: bool = False):
    """Solve both problems at several distortions; ``quick`` takes ten readings."""
    n, taps, m = (10, 4, 7) if quick else (24, 7, 18)  # readings, of an average, averages
    own, h = toeplitz(MEMORY ** np.arange(n)), (np.tri(m, n, taps - 1) - np.tri(m, n, -1)) / taps
    both, x, w = np.vstack([np.eye(n), h]), list(range(n)), list(range(n, n + m))
    law = both @ own @ both.T + np.diag([0.0] * n + [NOISE] * m)
    source, itself = (cpv.GaussianSource(law, key=x, sensitive=each) for each in (w, x))
    power, axes = np.linalg.eigh(own)
    points, rows = {}, {}
    for share in SHARES[::3] if quick else SHARES:
        code, best = (cpv.QuadraticGaussian(each, share * n).solve() for each in (itself, source))
        white = brentq(lambda v, d=share: (power * v / (power + v)).mean() - d, 1e-9, 1e9)
        filtered = axes * (power * white / (power + white)) @ axes.T
        errors = [code.error_covariance, filtered, best.error_covariance]
        left = np.linalg.slogdet(NOISE * np.eye(m) + h @ np.stack([own, *errors]) @ h.T)[1]
        bound = cpv.closed_gaussian_bound(source, share * n)
        rows[share] = [*(left[0] - left[1:]) / np.log(4), bound]
        spectra = [np.diag(axes.T @ sigma @ axes)[::-1] for sigma in errors]
        points[share] = SimpleNamespace(code=code, best=best, spectra=spectra)
    leaks = pd.DataFrame.from_dict(rows, "index", columns=[*COLORS, "closed bound"])
    return SimpleNamespace(own=own, power=power[::-1], source=source, points=points, leaks=leaks)


def report(result):
    """Compare program, closed forms and codes."""
    point, table = result.points[SHARE], result.leaks.round(4).rename_axis("D / tr Σ_X")
    yield f"{point.best}\n\nbits leaked, of {result.source.information():.4f} = I(W; X)\n{table}"
    filling = cpv.ReverseWaterFilling(result.own, SHARE * len(result.own))
    off = np.abs(point.spectra[0] - np.minimum(float(filling.level), result.power)).max()
    yield claim("R(D), W = X, by the program", point.code, filling.solve().value, "closed form")
    yield claim("its errors − min(θ, σ_i²), greatest", off, 0.0, "water-filling")
    above = (result.leaks["made for W"] - result.leaks["closed bound"]).to_numpy().min().round(9)
    yield claim("optimum for W − closed bound, least", above, "≥ 0", "Proposition 5")


def draw(result):
    """Draw the spectra of the errors, one signal and two releases, and the trade-off."""
    point, places = result.points[SHARE], np.arange(len(result.own)) + 1
    leaks = result.leaks / result.source.information()
    figure, axes = style.panels(f"error at {SHARE:g} tr $\\Sigma_X$", "signal, released", "leakage")
    axes[0].step(places, result.power, color=style.BLACK, where="mid", lw=2)
    x = np.linalg.cholesky(result.own) @ np.random.default_rng(8).standard_normal(len(places))
    axes[1].plot(places, x, color=style.BLACK, lw=2)
    for (name, color), y, error in zip(COLORS.items(), (0.9, 0.8, 0.7), point.spectra, strict=True):
        axes[0].step(places, error, color=color, where="mid")
        axes[2].plot(leaks[name], color=color)
        said = name.replace("X", "$X$").replace("W", "$W$")
        axes[2].text(0.5, y, said, color=color, ha="right")
    for name, solution in (("made for X", point.code), ("made for W", point.best)):
        axes[1].plot(places, solution.release.apply(x, seed=1), color=COLORS[name])
    axes[2].plot(leaks["closed bound"], **style.BOUND)
    axes[0].text(3, 5, r"signal $\sigma_i^2$")
    axes[2].text(0.2, 0.09, "closed bound")
    axes[0].set(xlabel="mode $i$", ylabel="variance [Var $X_t$]", yscale="log", ylim=(0.01, 20))
    axes[1].set(xlabel="reading $t$", ylabel="$X_t$ [standard deviations]")
    axes[2].set(xlabel="$D$ / tr $\\Sigma_X$", ylabel=r"$I(W; \hat X)$ / $I(W; X)$", ylim=(0, None))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
