"""Is the best compression of a signal also its best protection?

X: 24 readings in a row of a stationary Gaussian signal, Cov(X_s, X_t) = 0.9^|s − t|, such as the
hourly load of an electricity meter.  Its spectrum, the eigenvalues σ_i² of Σ_X from slow to fast
variation, is "coloured": most of the power is slow.

First nothing but X itself is confidential, W = X.  That is Shannon's rate–distortion problem, and
its answer is reverse water-filling: one water level θ for all, and a direction that does not
reach it is given up.

    minimise    ½ Σ_i log (σ_i² / D_i)
    subject to  Σ_i D_i ≤ D,  0 ≤ D_i ≤ σ_i²                    so that  D_i = min(θ, σ_i²)

Then W is the slow course of X alone, moving averages of seven readings observed with noise,
W = H X + V, which tells when somebody is at home; what is switched on meanwhile may be known.

    minimise    ½ log det Σ_W − ½ log det (Σ_V + H Σ Hᵀ)
    subject to  tr Σ ≤ D                                         over 0 ≼ Σ ≼ Σ_X

Both are covariance programs of one form (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE
22(11), 2010, eq. 6).  Sankar, Rajagopalan, Mohajer and Poor study the second one for stationary
signals (Smart Meter Privacy: A Theoretical Framework, IEEE Transactions on Smart Grid 4(2), 2013).

Learn: that a closed form and the conic program prove the same number; that the optimal error of
the second problem is no water-filling of the first, as it fills where W is, not where X is weak;
what is lost by protecting W with a code made for X; and how tight Proposition 5's closed form is.

    python problems/colored_source.py         # prints, and writes output/colored_source.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import cvxprivacy as cpv

READINGS = 24
MEMORY = 0.9  # correlation of neighbouring readings
TAPS = 7  # of the moving average
NOISE = 0.2  # variance of V
SHARES = (0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # D / tr Σ_X
SHARE = 0.2  # that is drawn
PAIR = (11, 12)  # readings whose ellipses are drawn


@dataclass
class Point:
    """Everything that is computed at one D."""

    filling: cpv.ReverseWaterFilling
    closed: cpv.GaussianSolution  # W = X, in closed form
    general: cpv.GaussianSolution  # W = X, by the covariance program
    private: cpv.GaussianSolution  # W = H X + V
    bound: float  # Proposition 5, of the private one


@dataclass
class Study:
    """The signal, its confidential version, and a point at each share of its power."""

    own: np.ndarray
    average: np.ndarray
    source: cpv.GaussianSource
    points: dict[float, Point]

    @property
    def chosen(self) -> Point:
        return self.points[SHARE]

    @cached_property
    def axes(self) -> np.ndarray:
        """Eigenvectors of Σ_X as columns, from slow to fast."""
        return np.linalg.eigh(self.own)[1][:, ::-1]

    def spectrum(self, sigma: np.ndarray) -> np.ndarray:
        """Return the variance along each eigenvector of Σ_X."""
        return np.einsum("ij,ik,kj->j", self.axes, sigma, self.axes)

    def leakage(self, sigma: np.ndarray) -> float:
        """I(W; X̂) in bits, W = H X + V, at the error covariance Σ."""

        def log_det(inner: np.ndarray) -> float:
            law = NOISE * np.eye(len(self.average)) + self.average @ inner @ self.average.T
            return float(np.linalg.slogdet(law)[1])

        return (log_det(self.own) - log_det(sigma)) / 2 / np.log(2)


def signal(readings: int, taps: int) -> tuple[np.ndarray, np.ndarray, cpv.GaussianSource]:
    """Return Σ_X, H, and the source of (X, W)."""
    places = np.arange(readings)
    own = MEMORY ** np.abs(places[:, None] - places)
    lag = places - places[: readings - taps + 1, None]
    average = ((lag >= 0) & (lag < taps)) / taps
    cross = average @ own
    hidden = cross @ average.T + NOISE * np.eye(len(average))
    law = np.block([[own, cross.T], [cross, (hidden + hidden.T) / 2]])
    hidden_places = list(range(readings, len(law)))
    return own, average, cpv.GaussianSource(law, sensitive=hidden_places, key=places.tolist())


def study(shares: tuple[float, ...] = SHARES, readings: int = READINGS, taps: int = TAPS) -> Study:
    """Solve both problems at several distortions."""
    own, average, source = signal(readings, taps)
    every = list(range(readings))
    itself = cpv.GaussianSource(own, key=every, sensitive=every)
    points = {}
    for share in shares:
        budget = share * float(np.trace(own))
        filling = cpv.ReverseWaterFilling(own, budget)
        points[share] = Point(
            filling,
            filling.solve(),
            cpv.QuadraticGaussian(itself, budget).solve(),
            cpv.QuadraticGaussian(source, budget).solve(),
            cpv.closed_gaussian_bound(source, budget),
        )
    return Study(own, average, source, points)


def report(result: Study) -> str:
    """Say in words what was proved."""
    point, size = result.chosen, len(result.own)
    closed, general, private = point.closed, point.general, point.private
    filled = sum(v == point.filling.level for v in point.filling.allocation)
    level = float(point.filling.level or 0)
    budget = SHARE * np.trace(result.own)
    compressed = result.leakage(general.error_covariance)
    inside = general.lower <= closed.value <= general.upper
    off = np.abs(result.spectrum(general.error_covariance) - point.filling.allocation[::-1]).max()
    lines = [
        f"X: {size} readings, correlation {MEMORY:g} from one to the next; D = {SHARE:.0%} of "
        f"tr Σ_X = {budget:.3g}",
        "",
        "W = X: reverse water-filling, in closed form",
        f"{closed}",
        f"  water level θ          {level:.6f}: {filled} of {size} directions are filled to it, "
        "the others are given up",
        f"  price, from the level  {-1 / (2 * level * np.log(2)):.6g} = −1 / 2θ ln 2 bits per unit "
        "of D",
        "the same as a general covariance program",
        f"  enclosure              [{general.lower:.12g}, {general.upper:.12g}], gap "
        f"{general.gap:.1e}",
        f"                         which {'contains' if inside else 'DOES NOT contain'} the closed "
        "form's value",
        f"  its error spectrum     differs from D_i = min(θ, σ_i²) by {off:.0e} at most",
        "",
        f"W = moving averages of {np.count_nonzero(result.average[0])} readings, with "
        f"noise of variance {NOISE:g}: I(W; X) = {result.source.information():.4f} bits",
        f"{private}",
        f"  the code made for X    leaks {compressed:.4f} bits about W with the same error, "
        f"{compressed / private.value:.2f} times the optimum",
        f"  Proposition 5          {point.bound:.4f} bits at least, in closed form",
        "",
        "error along the eigenvectors of Σ_X, from slow to fast",
        "              power     W = X               W = slow course",
        "              σ_i²      D_i      share      error    share",
    ]
    power, one, two = (
        result.spectrum(s) for s in (result.own, general.error_covariance, private.error_covariance)
    )
    for i in (0, 1, 2, 3, 4, 5, 6, 8, 12, 18, size - 1):
        lines.append(
            f"  {i + 1:8}  {power[i]:8.4f}  {one[i]:7.4f}  {one[i] / power[i]:7.1%}    "
            f"{two[i]:7.4f}  {two[i] / power[i]:7.1%}"
        )
    lines += [
        "  To compress, every direction errs by the same, and weak ones are dropped.  To hide the",
        "  slow course, the slow directions bear all the error, and fast ones are released as they",
        "  are: what is best for one is not for the other.",
        "",
        "              W = X               W = slow course [bits]",
        "  D / tr Σ_X  rate [bits]         the optimum   closed bound   below by   code for X "
        "leaks",
    ]
    for share, found in result.points.items():
        value, bound = found.private.value, found.bound
        lines.append(
            f"  {share:10.0%}  {found.closed.value:11.6f}      {value:12.6f}   {bound:12.6f}   "
            f"{value - bound:8.1e}   {result.leakage(found.general.error_covariance):12.4f}"
        )
    lines.append(
        "  (of Σ ≼ Σ_X the closed bound keeps the diagonal along its own axes, and is exact while "
        "no more binds)"
    )
    return "\n".join(lines)


def ellipse(covariance: np.ndarray) -> np.ndarray:
    """Return the one-standard-deviation ellipse of two variables."""
    angle = np.linspace(0, 2 * np.pi, 200)
    return np.linalg.cholesky(covariance) @ np.array([np.cos(angle), np.sin(angle)])


def draw(result: Study, path: Path) -> None:
    """Draw the spectra with the water level, one signal, the trade-off and Σ inside Σ_X."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(14, 9.5), layout="constrained")
    point, size = result.chosen, len(result.own)
    code, private = point.general.error_covariance, point.private.error_covariance
    places = np.arange(1, size + 1)

    ax = axes[0, 0]
    level = float(point.filling.level or 0)
    ax.step(
        places, result.spectrum(result.own), where="mid", color="0.3", lw=2, label="signal σ_i²"
    )
    ax.bar(
        places,
        result.spectrum(code),
        0.9,
        color="C1",
        alpha=0.55,
        label="W = X: D_i = min(θ, σ_i²)",
    )
    ax.plot(
        places, result.spectrum(private), "o-", color="C0", label="W = slow course: optimal error"
    )
    ax.axhline(level, color="C1", ls="--", lw=1.2)
    ax.annotate(f"water level θ = {level:.3f}", (size + 0.4, level), (0, 4), ha="right",
                textcoords="offset points", fontsize=9, color="0.2")  # fmt: skip
    ax.set(xlabel="eigenvector of Σ_X, from slow (1) to fast", ylabel="variance", yscale="log")
    ax.set(xlim=(0.4, size + 0.6), ylim=(0.01, 20))
    ax.set_title(f"where D = {SHARE:.0%} of the power goes (points below 0.01 are not shown)",
                 fontsize=10)  # fmt: skip
    ax.legend(fontsize=9, loc="upper right")

    ax = axes[0, 1]
    root = np.linalg.cholesky(result.own)
    x = root @ np.random.default_rng(8).standard_normal(size)
    ax.plot(places, x, "o-", color="0.3", lw=2, ms=4, label="original X")
    for solution, style, color, label in (
        (point.general, "s--", "C1", "code for X (W = X)"),
        (point.private, "^-", "C0", "hides the slow course"),
    ):
        released = solution.release.apply(x, seed=1)
        ax.plot(places, released, style, color=color, ms=4, label=f"released: {label}")
    ax.set(xlabel="reading t", ylabel="X_t [standard deviations]")
    ax.set_title("one signal, and two releases of it with the same mean error", fontsize=10)
    ax.legend(fontsize=9)

    ax = axes[1, 0]
    shares = np.array(list(result.points))
    points = list(result.points.values())
    leaks = [result.leakage(p.general.error_covariance) for p in points]
    ax.plot(shares, leaks, "s--", color="C1", ms=5, label="code for X, D_i = min(θ, σ_i²)")
    power = float(np.trace(result.own))
    cpv.plotting.tradeoff([p.private for p in points], ax, per=(power, 1.0), color="C0",
                          label="optimum, certified")  # fmt: skip
    ax.plot(shares, [p.bound for p in points], "k:", lw=2, label="closed bound (Proposition 5)")
    ax.set(xlabel="distortion D / tr Σ_X", ylabel="leakage about the slow course I(W; X̂) [bits]")
    ax.set(xlim=(0, None), ylim=(0, None))
    ax.set_title("the best code for X is not the best protection of W", fontsize=10)
    ax.legend(fontsize=9)

    ax = axes[1, 1]
    at = np.ix_(PAIR, PAIR)
    for sigma, color, style, name in (
        (result.own, "0.3", "-", "Σ_X"),
        (code, "C1", "--", "Σ of the code for X"),
        (private, "C0", "-", "Σ that hides the slow course"),
    ):
        ax.plot(*ellipse(sigma[at]), style, color=color, lw=2, label=name)
    ax.set_aspect("equal")
    ax.set(xlabel=f"error of reading {PAIR[0] + 1} [s.d.]", ylim=(-1.1, 1.6), xlim=(-1.6, 1.6))
    ax.set_ylabel(f"error of reading {PAIR[1] + 1} [s.d.]")
    ax.set_title("Σ inside Σ_X: one standard deviation of two neighbours", fontsize=10)
    ax.legend(fontsize=9, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/colored_source.png"))
    out = parser.parse_args(arguments).out
    result = study()
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
