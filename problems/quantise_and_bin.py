"""How close do real codes of short blocks come to the rate-distortion-equivocation region?

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013) prove Theorem 2 with a *quantise-and-bin* code
for n records at once: draw 2^{n I(X; U)} words uⁿ from p(u), replace xⁿ by the likeliest word,
deal the words into 2^{n I(X; U | Z)} bins at random, and send the number J of the bin; a user who
knows zⁿ takes the likeliest word of the bin and reads x̂_i = f(u_i, z_i).

Here: X = W + noise (mod 2), Z = X + noise (mod 2), W a fair bit; p(u | x) and f from the certified
optimum of

    minimise    I(X; U | Z)                                        over p(u | x), f
    subject to  E d(X, X̂) ≤ D                 d counts wrong bits

For n = 1 … 12 and several random codebooks, everything below is computed exactly, by visiting all
2ⁿ words of each of X, W and Z in each bin: the rate (log₂ bins)/n, the distortion, the equivocation
H(Wⁿ | J, Zⁿ)/n, and what the best reader makes of the same J and zⁿ.  By the converse of Theorem
2 no code is outside the region, that is, with D the code's own distortion,

    rate ≥ R(D),   equivocation ≤ Γ(D) = H(W) − L(D).

Learn: what the region says and what it does not.  It is a limit for long blocks; short random
codes are far inside, and the rate they lose has three exact parts.  Privacy and distortion need no
blocks at all: the same p(u | x) applied record by record has E d = D and the equivocation Γ(D).

    python problems/quantise_and_bin.py         # prints, and writes output/quantise_and_bin.png
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path

import numpy as np

import cvxprivacy as cpv

NOISE = 0.1  # from W to X
P0 = 0.25  # from X to Z
TARGET = 0.07  # D of the design
LENGTHS = {**dict.fromkeys(range(1, 11), 8), 11: 4, 12: 2}  # block length: codebooks
ROWS = 256  # of a joint law that are in memory at once


def bsc(p: float) -> np.ndarray:
    """Return a binary symmetric channel of this error."""
    return np.array([[1 - p, p], [p, 1 - p]])


def power(matrix: np.ndarray, n: int) -> np.ndarray:
    """Return the n-fold Kronecker power."""
    return reduce(np.kron, [matrix] * n, np.ones((1, 1)))


def entropies(masses: np.ndarray) -> float:
    """−Σ p log₂ p of positive masses."""
    flat = masses.ravel()
    return -float(flat @ np.log2(flat))


@dataclass
class Design:
    """The single-letter optimum that codes are drawn from."""

    source: cpv.DiscreteSource
    solution: cpv.Solution

    @cached_property
    def used(self) -> np.ndarray:
        """The letters u that a record in a thousand carries, at least."""
        return np.flatnonzero(self.solution.channel.released_marginal > 1e-3)

    @cached_property
    def joint(self) -> np.ndarray:
        """p(x, u), shape (2, |U|), to four digits: words that should be alike are."""
        found = self.source.p_x[:, None] * self.solution.channel.matrix[:, self.used]
        return np.round(found, 4) / np.round(found, 4).sum()

    @property
    def p_u(self) -> np.ndarray:
        return self.joint.sum(axis=0)

    @cached_property
    def reading(self) -> np.ndarray:
        """f(u, z), shape (|U|, 2)."""
        return np.array([self.solution.channel.decoder.table[u] for u in self.used])

    @property
    def quantised(self) -> float:
        """I(X; U), the rate of the codebook."""
        return cpv.information.mutual_information(self.joint)

    @property
    def rate(self) -> float:
        """I(X; U | Z), the rate of the bins."""
        return float(self.solution.rate)


@dataclass
class Code:
    """One random code, and what it does: exactly, in bits per record."""

    n: int
    words: int
    bins: int
    told: float  # H(J | Zⁿ)/n, all that J tells about Xⁿ beside Zⁿ
    before: float  # distortion if the user were told the word itself
    mistaken: float  # probability that the user takes another word
    distortion: float
    best: float  # distortion of the best guess from J and zⁿ
    equivocation: float

    @property
    def rate(self) -> float:
        return math.log2(self.bins) / self.n


@dataclass
class Point:
    """A code beside the certified region at its own distortions."""

    code: Code
    rate: cpv.Solution  # least rate at the distortion of the user's reading
    leakage: cpv.Solution
    best_rate: cpv.Solution  # the same at the distortion of the best reader
    best_leakage: cpv.Solution

    @property
    def parts(self) -> tuple[float, float, float]:
        """What is lost of the rate: in the index, in the code, in the reading; each ≥ 0."""
        c = self.code
        return (
            c.rate - c.told,
            c.told - self.best_rate.value,
            self.best_rate.value - self.rate.value,
        )

    @property
    def below(self) -> tuple[float, float]:
        """Γ(D) less the equivocation, at the user's distortion and at the best reader's."""
        gamma = [float(s.leakage) + float(s.equivocation) - s.value
                 for s in (self.leakage, self.best_leakage)]  # fmt: skip
        return gamma[0] - self.code.equivocation, gamma[1] - self.code.equivocation


@dataclass
class Study:
    """The design, its codes, and the boundary of the region."""

    design: Design
    points: list[Point]
    boundary: list[tuple[float, cpv.Solution, cpv.Solution]]  # D, least rate, least leakage

    def of(self, n: int) -> list[Point]:
        return [point for point in self.points if point.code.n == n]

    @property
    def lengths(self) -> list[int]:
        return sorted({point.code.n for point in self.points})


def letters(n: int) -> np.ndarray:
    """Return all binary words, shape (2ⁿ, n)."""
    return (np.arange(2**n)[:, None] >> np.arange(n)[::-1]) & 1


def drawn(design: Design, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a codebook, shape (words, n), and the bin of each word."""
    rng = np.random.default_rng([seed, n])
    words, bins = math.ceil(2 ** (n * design.quantised)), math.ceil(2 ** (n * design.rate))
    book = rng.choice(len(design.p_u), p=design.p_u, size=(words, n))
    return book, rng.permutation(words) % bins  # dealt out: the bins are equally full


def likelihood(table: np.ndarray, book: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return log Π table[a_i, u_i] of each uⁿ of the book and each aⁿ, to nine digits.

    Equal likelihoods come out equal, whatever the order of their factors; the first uⁿ is taken.
    """
    logs = np.log(np.maximum(table, 1e-300))
    n = book.shape[1]
    return np.round(sum(logs[:, book[:, i]].T[:, words[:, i]] for i in range(n)), 9)


def coded(design: Design, book: np.ndarray, bin_of: np.ndarray) -> Code:
    """Visit every xⁿ, wⁿ and zⁿ of a code."""
    n, bins = book.shape[1], int(bin_of.max()) + 1
    every = letters(n)
    x_given_u = design.joint / design.p_u
    chosen = likelihood(x_given_u, book, every).argmax(axis=0)  # the word of each xⁿ
    of_z = likelihood(bsc(P0).T @ x_given_u, book, every)

    half = (2 ** (n // 2), 2 ** (n - n // 2))
    to_z = [power(bsc(P0), k) for k in (n // 2, n - n // 2)]
    both = np.einsum("wx,xz->wzx", bsc(NOISE), bsc(P0)).reshape(4, 2)
    to_wz = [power(both, k) for k in (n // 2, n - n // 2)]

    def with_z(mass: np.ndarray) -> np.ndarray:
        """Return p(·, zⁿ) of a mass on xⁿ."""
        return (to_z[0] @ mass.reshape(half) @ to_z[1].T).ravel()

    h_jz = h_jwz = before = mistaken = distortion = best = 0.0
    for j in range(bins):
        members = np.flatnonzero(bin_of == j)
        here = np.isin(chosen, members) / 2**n  # p(xⁿ, J = j)
        if not here.any():
            continue
        jz = with_z(here)
        h_jz += entropies(jz)
        left = to_wz[0] @ here.reshape(half)
        for start in range(0, len(left), ROWS):
            h_jwz += entropies(left[start : start + ROWS] @ to_wz[1].T)
        taken = members[of_z[members].argmax(axis=0)]  # the word that the user takes, for each zⁿ
        read = design.reading[book[taken], every]
        for i in range(n):
            one = with_z(here * every[:, i])  # p(x_i = 1, j, zⁿ)
            zero = jz - one
            distortion += np.where(read[:, i], zero, one).sum()
            best += np.minimum(zero, one).sum()
        for word in members:
            mass = with_z((chosen == word) / 2**n)
            mistaken += mass[taken != word].sum()
            known = design.reading[book[word], every]
            ones = np.stack([with_z((chosen == word) * every[:, i] / 2**n) for i in range(n)], 1)
            before += np.where(known, mass[:, None] - ones, ones).sum()
    h_z = n * cpv.information.entropy(design.source.pmf.sum(axis=(0, 1)))
    return Code(
        n=n,
        words=len(book),
        bins=bins,
        told=(h_jz - h_z) / n,
        before=float(before) / n,
        mistaken=float(mistaken),
        distortion=float(distortion) / n,
        best=float(best) / n,
        equivocation=(h_jwz - h_jz) / n,
    )


def least(source: cpv.DiscreteSource, budget: float, kind: str) -> cpv.Solution:
    """Solve for the least rate or leakage of a user who knows Z."""
    problem = cpv.RateDistortionEquivocation(
        source, cpv.hamming(2), budget, minimize=kind, side_information="decoder"
    )
    return problem.solve()


def study(lengths: dict[int, int] | None = None) -> Study:
    """Draw the codes, and solve at each one's distortion."""
    law = np.einsum("wx,xz->wxz", bsc(NOISE) / 2, bsc(P0))
    source = cpv.DiscreteSource(law)
    design = Design(source, least(source, TARGET, "rate"))
    points = []
    for n, codebooks in (lengths or LENGTHS).items():
        for seed in range(codebooks):
            code = coded(design, *drawn(design, n, seed))
            ends = (code.distortion, code.best)
            points.append(
                Point(code, *(least(source, d, k) for d in ends for k in ("rate", "leakage")))
            )
    boundary = [
        (d, least(source, d, "rate"), least(source, d, "leakage"))
        for d in np.linspace(0, P0, 11).tolist()
    ]
    return Study(design, points, boundary)


def report(result: Study) -> str:
    """Say how far inside the codes are, and why."""
    design = result.design
    fair = [float(getattr(design.solution, name)) for name in ("leakage", "equivocation")]
    outside = [
        point for point in result.points
        if min(*point.parts, *point.below) < -1e-9
    ]  # fmt: skip
    lines = [
        f"X = W + noise of {NOISE:g}, Z = X + noise of {P0:g} (mod 2), W a fair bit; in bits",
        f"{design.solution}",
        f"  the codes: 2^(n {design.quantised:.4f}) words in 2^(n {design.rate:.4f}) bins; "
        f"{len(design.used)} letters u, x̂ = "
        + " or ".join("".join(map(str, rule)) for rule in design.reading)
        + " for z = 0, 1",
        "",
        f"{len(result.points)} codes, each against the region at its own distortion, and at that "
        "of the best reader of its index:",
        f"  outside the region: {len(outside)}",
        "",
        "means over the codebooks, bits per record:",
        "                       sent    wrong bits: the   word        as the  best     equivo-   "
        "distance to the region",
        "   n  words bins codes rate    word itself       mistaken    user    reader   cation    "
        "rate − R(D)  Γ(D) − equivocation",
    ]
    for n in result.lengths:
        found = result.of(n)
        c = [p.code for p in found]
        mean = {
            name: float(np.mean([getattr(code, name) for code in c]))
            for name in ("rate", "before", "mistaken", "distortion", "best", "equivocation")
        }
        lines.append(
            f"  {n:2d}  {c[0].words:5d} {c[0].bins:4d} {len(c):5d} {mean['rate']:.4f}  "
            f"{mean['before']:.4f}            {mean['mistaken']:6.1%}      {mean['distortion']:.4f}"
            f"  {mean['best']:.4f}   {mean['equivocation']:.4f}    "
            f"{np.mean([sum(p.parts) for p in found]):.4f}       "
            f"{np.mean([p.below[0] for p in found]).round(6) + 0.0:.4f}"
        )
    lines += [
        "",
        "why:  the rate that is lost has three parts, each ≥ 0 for every code (means over the "
        "codebooks)",
        "   n   the index: rate −       the code: H(J | Zⁿ)/n −   the reading: R(best D) −",
        "       H(J | Zⁿ)/n             R(best D)                 R(D)",
    ]
    for n in result.lengths:
        index, code, reading = np.mean([p.parts for p in result.of(n)], axis=0)
        lines.append(
            f"  {n:2d}   {index:.4f}                  {code:.4f}                    {reading:.4f}"
        )
    long = [n for n in result.lengths if n > 2]
    ends = [np.mean([p.parts for p in result.of(n)], axis=0) for n in (long[0], long[-1])]
    cheaper = [p for p in result.points if p.code.rate > 1 - p.code.best / P0 + 1e-9]
    lines += [
        "  The index: bins are not equally likely, and zⁿ still tells something about them.  The "
        "code: what J tells beside",
        "  zⁿ would do for less distortion in long blocks.  The reading: the likeliest word is "
        "often another one, and a",
        "  reader who weighs all xⁿ of the bin does better.",
        f"  From n = {long[0]} to n = {long[-1]}: "
        + ", ".join(
            f"{name} {one:.3f} → {other:.3f}"
            for name, one, other in zip(("index", "code", "reading"), *ends, strict=True)
        )
        + f", in all {ends[0].sum():.3f} → {ends[1].sum():.3f}.",
        "  With any margin in the number of words and of bins all vanish in the limit (Theorem 2): "
        "such blocks are far from it.",
        "",
        "beside them, without blocks:",
        f"  p(u | x) record by record: wrong bits {float(design.solution.distortion):.4f}, leakage "
        f"{fair[0]:.4f}, equivocation {fair[1]:.4f} = Γ({TARGET:g}), on the",
        f"    boundary.  Its letters cost H(U) = {cpv.information.entropy(design.p_u):.4f} bits to "
        "send; only that is what long blocks are for",
        f"  x itself for a share 1 − D/{P0:g} of the records and z for the rest: a lower rate than "
        f"{len(cheaper)} of the {len(result.points)} codes,",
        "    for the distortion of their best readers",
    ]
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw the codes in the region, and the parts of the rate that is lost."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(17, 5.2), layout="constrained")
    d = [at for at, _, _ in result.boundary]
    rate = [r.value for _, r, _ in result.boundary]
    gamma = [float(s.leakage) + float(s.equivocation) - s.value for _, _, s in result.boundary]
    longest = max(result.lengths)
    axes[0].fill_between([*d, 0.5], [*rate, 0.0], 1.05, color="#0072B2", alpha=0.1, lw=0)
    axes[1].fill_between([*d, 0.5], [*gamma, gamma[-1]], 0, color="#0072B2", alpha=0.1, lw=0)
    style = {"color": "#0072B2", "lw": 1.6}
    axes[0].plot([*d, 0.5], [*rate, 0.0], label="R(D), certified", **style)
    axes[1].plot([*d, 0.5], [*gamma, gamma[-1]], label="Γ(D), certified", **style)
    for point in result.points:
        c = point.code
        color = plt.get_cmap("viridis")(1 - c.n / longest)
        for ax, y in ((axes[0], c.rate), (axes[1], c.equivocation)):
            ax.plot([c.best, c.distortion], [y, y], color=color, lw=0.5, alpha=0.6)
            ax.plot(c.distortion, y, "o", color=color, ms=5)
            ax.plot(c.best, y, "o", color=color, ms=5, mfc="white", clip_on=False)
    axes[0].plot([0, P0], [1, 0], "k--", lw=1, label="x for some, z for the rest")
    alone = cpv.information.entropy(bsc(NOISE)[0])  # H(W | X)
    axes[1].plot([0, P0], [alone, gamma[-1]], "k--", lw=1, label="x for some, z for the rest")
    axes[1].plot(
        TARGET, float(result.design.solution.equivocation), "*", color="#D55E00", ms=15,
        label="p(u | x), record by record",
    )  # fmt: skip
    for ax in axes[:2]:
        ax.plot([], [], "o", color="#444444", label="code, as its user reads it")
        ax.plot([], [], "o", color="#444444", mfc="white", label="the same, best reader")
        ax.set(xlim=(0, 0.4), xlabel="distortion D   [share of wrong bits]")
    axes[0].set(ylim=(0, 1.05), ylabel="rate   [bits per record]")
    axes[0].set_title("rate (shaded: the region)", fontsize=11)
    axes[0].legend(fontsize=9.5, loc="upper right")
    axes[1].set(ylim=(0.4, 0.95), ylabel="equivocation H(Wⁿ | J, Zⁿ)/n   [bits per record]")
    axes[1].set_title("equivocation (shaded: the region)", fontsize=11)
    axes[1].legend(fontsize=9.5, loc="lower right")
    marks = plt.cm.ScalarMappable(cmap=plt.get_cmap("viridis_r"), norm=plt.Normalize(0, longest))
    figure.colorbar(marks, ax=axes[1], label="block length n", pad=0.02)

    ax = axes[2]
    parts = np.array([np.mean([p.parts for p in result.of(n)], axis=0) for n in result.lengths])
    tops, floor = parts.cumsum(axis=1), np.zeros(len(parts))
    names = ("index: unused rate", "code: words of short blocks", "reading: words mistaken")
    for name, top, color in zip(names, tops.T, ("#56B4E9", "#009E73", "#E69F00"), strict=True):
        ax.bar(result.lengths, top - floor, bottom=floor, color=color, label=name)
        floor = top
    ax.set(xlabel="block length n", ylabel="rate − R(D)   [bits per record]")
    ax.set(xticks=result.lengths, ylim=(0, 1.05 * tops.max()))
    ax.set_title("what short random codes lose (means over codebooks)", fontsize=11)
    ax.legend(fontsize=9.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Draw codes, compare, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/quantise_and_bin.png"))
    parser.add_argument("--quick", action="store_true", help="shorter blocks, fewer codebooks")
    given = parser.parse_args(arguments)
    result = study(dict.fromkeys((1, 2, 3, 5, 7), 3) if given.quick else LENGTHS)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
