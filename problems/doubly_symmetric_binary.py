"""What does a user's side information save in rate, and what does it cost in privacy?

The doubly symmetric binary source of Wyner and Ziv (IEEE Trans. Inform. Theory 22(1), 1976), in
the rate-distortion-equivocation regions of Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013):
W = X is a fair bit that must be described and should stay hidden, Z is X with an error of
probability p0, and d counts wrong bits.  With a ∗ b = a(1 − b) + b(1 − a), in bits:

    Z known to       minimise, s.t. E d(X, X̂) ≤ D        R(D)
    nobody           I(X; X̂)        over p(x̂ | x)        1 − h(D)                (Proposition 2)
    the user         I(X; U | Z)    over p(u | x), f     h(p0 ∗ D) − h(D), D ≤ D_c (Theorem 2)
    user, encoder    I(X; X̂ | Z)    over p(x̂ | x, z)     h(p0) − h(D)            (Theorem 3)

with x̂ = f(u, z) for a user who knows Z, and the chord from (D_c, R(D_c)) to (p0, 0) beyond D_c.
As W = X, the leakage I(W; U, Z) is that rate and what Z tells by itself, I(W; Z) = 1 − h(p0), so
that one release is best in both; both programs are solved.

Learn: what a strategy is (a rule z → x̂ that the user applies to the letter u), how the chord
comes about as a mixture of two of them, and who pays: a user's side information lowers the rate
and raises the leakage, but if the encoder knows it too, the total leakage is what it was without.

    python problems/doubly_symmetric_binary.py  # writes output/doubly_symmetric_binary.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr

import cvxprivacy as cpv

P0 = 0.25  # of an error in Z
BUDGETS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25)  # D_c is added
MORE = (0.3, 0.4, 0.5)  # where nobody knows Z
KNOWN_TO = {None: "nobody", "decoder": "the user", "both": "user and encoder"}
CONSTANT, FOLLOW, OPPOSE = "x̂ = u", "x̂ = z", "x̂ ≠ z"  # the kinds of strategy
COLORS = {None: "#444444", "decoder": "#D55E00", "both": "#0072B2"}
MARKERS = {None: "s", "decoder": "o", "both": "^"}


def h(p: float | np.ndarray) -> float | np.ndarray:
    """Binary entropy in bits."""
    return (entr(p) + entr(1 - np.asarray(p))) / np.log(2)


def star(a: float, b: float | np.ndarray) -> float | np.ndarray:
    """Return a ∗ b, the error of two errors in a row."""
    return a * (1 - b) + b * (1 - a)


def binned(d: float | np.ndarray) -> float | np.ndarray:
    """h(p0 ∗ D) − h(D), what the constant strategies alone achieve."""
    return h(star(P0, d)) - h(d)


def tangent() -> float:
    """D_c, where the line to (p0, 0) is tangent to h(p0 ∗ D) − h(D)."""

    def above(d: float) -> float:
        error = star(P0, d)
        slope = (1 - 2 * P0) * np.log2((1 - error) / error) - np.log2((1 - d) / d)
        return float(binned(d) + slope * (P0 - d))

    return float(brentq(above, 1e-6, P0 - 1e-6, xtol=1e-15))


D_C = tangent()


def rate(d: float, known_to: str | None) -> float:
    """R(D) in closed form."""
    if known_to is None:
        return float(1 - h(min(d, 0.5)))
    if known_to == "both":
        return float(h(P0) - h(min(d, P0)))
    if d <= D_C:
        return float(binned(d))
    return float(binned(D_C)) * max(P0 - d, 0.0) / (P0 - D_C)


def leakage(d: float, known_to: str | None) -> float:
    """L(D) in closed form: R(D), and I(W; Z) if the user has Z."""
    return rate(d, known_to) + (0.0 if known_to is None else float(1 - h(P0)))


def follows(d: float) -> float:
    """Share of the records that are told x̂ = z: none up to D_c, all at p0."""
    return min(max((d - D_C) / (P0 - D_C), 0.0), 1.0)


@dataclass
class Point:
    """Both optima at one D, for one state of knowledge."""

    known_to: str | None
    budget: float
    rate: cpv.Solution
    leakage: cpv.Solution

    @property
    def errors(self) -> tuple[float, float]:
        """Certified values less the closed forms."""
        return (
            self.rate.value - rate(self.budget, self.known_to),
            self.leakage.value - leakage(self.budget, self.known_to),
        )

    def strategies(self) -> dict[str, tuple[float, float]]:
        """Return mass and error of each kind of strategy in the release of least rate."""
        channel = self.rate.channel
        mass = channel.released_marginal
        x, z = np.array([0, 1]), np.array([0, 1])
        law = 0.5 * np.where(np.equal.outer(x, z), 1 - P0, P0)  # p(x, z)
        found: dict[str, list[float]] = {CONSTANT: [0, 0], FOLLOW: [0, 0], OPPOSE: [0, 0]}
        for u, rule in enumerate(channel.decoder.table):
            kind = CONSTANT if rule[0] == rule[1] else FOLLOW if rule == [0, 1] else OPPOSE
            wrong = np.not_equal.outer(x, rule) * law
            found[kind][0] += mass[u]
            found[kind][1] += float((channel.matrix[:, u, None] * wrong).sum())
        return {kind: (m, e / m if m > 1e-6 else np.nan) for kind, (m, e) in found.items()}


@dataclass
class Study:
    """The source, and all points."""

    source: cpv.DiscreteSource
    points: list[Point]

    def of(self, known_to: str | None) -> list[Point]:
        return [point for point in self.points if point.known_to == known_to]


def study(budgets: tuple[float, ...] = (*BUDGETS, D_C)) -> Study:
    """Solve for the least rate and the least leakage at several D, whoever knows Z."""
    z_of = np.array([[1 - P0, P0], [P0, 1 - P0]])  # p(z | x)
    source = cpv.DiscreteSource(0.5 * np.eye(2)[:, :, None] * z_of)
    points = []
    for known_to in KNOWN_TO:
        for budget in sorted(budgets + (MORE if known_to is None else ())):
            least = [
                cpv.RateDistortionEquivocation(
                    source, cpv.hamming(2), budget, minimize=kind, side_information=known_to
                ).solve()
                for kind in ("rate", "leakage")
            ]
            points.append(Point(known_to, budget, *least))
    return Study(source, points)


def report(result: Study) -> str:
    """Say how far the certified optima are from the closed forms, and how they are made."""
    lines = [
        f"W = X a fair bit, Z = X through a binary symmetric channel of error p0 = {P0:g}; bits",
        f"  I(W; Z) = {1 - h(P0):.6f}; the chord begins at D_c = {D_C:.7f}",
        "                           least rate                      least leakage",
        "  Z known to       D       certified  closed form  off by  certified  closed form  off by",
    ]
    for known_to, name in KNOWN_TO.items():
        for point in result.of(known_to):
            d, (r, l) = point.budget, point.errors  # noqa: E741
            lines.append(
                f"  {name:<16} {d:<7.4g} {point.rate.value:9.7f}   {rate(d, known_to):9.7f}  "
                f"{r:+.0e}   {point.leakage.value:9.7f}   {leakage(d, known_to):9.7f}  {l:+.0e}"
            )
            name = ""
    worst = max(abs(error) for point in result.points for error in point.errors)
    inside = all(
        solution.lower - 1e-12 <= closed(point.budget, point.known_to) <= solution.upper + 1e-12
        for point in result.points
        for solution, closed in ((point.rate, rate), (point.leakage, leakage))
    )
    lines += [
        f"  {2 * len(result.points)} programs; the largest error is {worst:.0e}, and the closed "
        f"forms lie in {'all' if inside else 'NOT ALL'} of the proved enclosures",
        "",
        "How a user who knows Z is told (release of least rate):",
        "            share of records        wrong bits among them   price of D",
        "  D         x̂ = u   x̂ = z   x̂ ≠ z   x̂ = u     x̂ = z         [bits per unit]",
    ]
    for point in result.of("decoder"):
        kinds = point.strategies()
        said = [f"{kinds[kind][0]:.4f}" for kind in (CONSTANT, FOLLOW, OPPOSE)]
        wrong = [f"{kinds[kind][1]:.5f}".replace("nan", "–") for kind in (CONSTANT, FOLLOW)]
        lines.append(
            f"  {point.budget:<8.5g}  {'  '.join(said)}  {wrong[0]:<8}  {wrong[1]:<8}      "
            f"{point.rate.prices['budget']:+.4f}"
        )
    lines += [
        f"  Up to D_c every letter is a guess of x that ignores z.  Beyond it a share "
        f"(D − D_c)/({P0:g} − D_c) of the records",
        f"  is told to take z for x, which costs no rate and errs {P0:g} of the time; the rest are "
        "coded as at D_c.",
        "  This time-sharing is the chord, and on it every next wrong bit saves the same.",
        "",
        "Who pays:",
        "            leakage in total                     added to what Z tells",
        "  D         nobody  the user  user and encoder   the user  user and encoder",
    ]
    known = {who: {p.budget: p.leakage.value for p in result.of(who)} for who in KNOWN_TO}
    held = float(1 - h(P0))
    for d in known["decoder"]:
        nobody, user, both = (known[who][d] for who in KNOWN_TO)
        lines.append(
            f"  {d:<8.5g}  {nobody:.4f}  {user:.4f}    {both:.4f}             "
            f"{abs(user - held):.4f}    {abs(both - held):.4f}"
        )
    lines += [
        "  If the encoder knows Z it corrects z where needed, and the user ends up knowing what "
        "nobody's release tells: 1 − h(D).",
        "  If it does not, the user combines two descriptions with independent errors, and knows "
        "more: by h(p0 ∗ D) − h(p0) up to D_c.",
    ]
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw rate and leakage against D, and the strategies' shares."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(16.5, 5), layout="constrained")
    for ax, kind, closed in ((axes[0], "rate", rate), (axes[1], "leakage", leakage)):
        for known_to, name in KNOWN_TO.items():
            color = COLORS[known_to]
            fine = np.linspace(0, 0.5, 400)
            ax.plot(fine, [closed(d, known_to) for d in fine], color=color, lw=1.4)
            points = result.of(known_to)
            ax.plot(
                [p.budget for p in points], [getattr(p, kind).value for p in points],
                MARKERS[known_to], color=color, mfc="none", ms=7, clip_on=False,
                label=f"{name} know{'' if known_to == 'both' else 's'} Z",
            )  # fmt: skip
        fine = np.linspace(D_C, P0, 200)
        held = 0.0 if kind == "rate" else 1 - h(P0)
        ax.plot(fine, binned(fine) + held, "--", color=COLORS["decoder"], lw=1)
        ax.axvline(D_C, color="#999999", lw=0.8, ls=":")
        ax.set(xlim=(0, 0.5), ylim=(0, 1), xlabel="distortion D   [share of wrong bits]")
    axes[1].axhline(1 - h(P0), color="#999999", lw=0.8)
    axes[1].text(0.33, 1 - h(P0) + 0.012, "I(W; Z)", fontsize=10, color="#555555")
    for ax in axes[:2]:
        ax.text(D_C + 0.004, 0.93, "D_c", fontsize=10, color="#555555")
    axes[0].set(ylabel="least rate   [bits per record]")
    axes[0].set_title("rate (dashed: constant strategies alone)", fontsize=11)
    axes[0].legend(fontsize=10, title="lines: closed form; marks: certified")
    axes[1].set(ylabel="least leakage I(W; what the user holds)   [bits per record]")
    axes[1].set_title("leakage: the encoder's knowing Z undoes the user's", fontsize=11)

    ax = axes[2]
    fine = np.linspace(0, P0, 400)
    share = np.array([follows(d) for d in fine])
    ax.fill_between(fine, 1 - share, color="#D55E00", alpha=0.25, lw=0)
    ax.fill_between(fine, 1 - share, 1, color="#009E73", alpha=0.25, lw=0)
    points = result.of("decoder")
    ax.plot(
        [p.budget for p in points], [p.strategies()[CONSTANT][0] for p in points], "o",
        color="#D55E00", ms=7, clip_on=False, label="certified release",
    )  # fmt: skip
    ax.text(0.08, 0.4, "x̂ = u:\na description of x,\nwhatever z", fontsize=11, ha="center")
    ax.text(0.2, 0.8, "x̂ = z:\nnothing is sent", fontsize=11, ha="center")
    ax.axvline(D_C, color="#999999", lw=0.8, ls=":")
    ax.set(xlim=(0, P0), ylim=(0, 1), xlabel="distortion D   [share of wrong bits]")
    ax.set_ylabel("share of the records")
    ax.set_title("strategies of the user who knows Z (areas: closed form)", fontsize=11)
    ax.legend(fontsize=10, loc="lower left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/doubly_symmetric_binary.png"))
    out = parser.parse_args(arguments).out
    result = study()
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
