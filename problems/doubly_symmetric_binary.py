"""What does a user's side information save in rate, and what does it cost in privacy?

The doubly symmetric binary source of Wyner and Ziv (1976) in the regions of Sankar, Rajagopalan
and Poor (IEEE TIFS 8(6), 2013): W = X is a fair bit, to be described and to be hidden; Z is X with
an error of probability p0; d counts wrong bits; a ∗ b = a(1 − b) + b(1 − a).  In bits:

    Z known to       minimise, s.t. E d(X, X̂) ≤ D        R(D)
    nobody           I(X; X̂)        over p(x̂ | x)        1 − h(D)                (Proposition 2)
    the user         I(X; U | Z)    over p(u | x), f     h(p0 ∗ D) − h(D), D ≤ D_c (Theorem 2)
    user, encoder    I(X; X̂ | Z)    over p(x̂ | x, z)     h(p0) − h(D)            (Theorem 3)

Beyond D_c the user's R(D) is the chord to (p0, 0).  As W = X, the leakage I(W; U, Z) is that rate
and what Z tells by itself, I(W; Z) = 1 − h(p0).

Learn: what a strategy is (a rule z → x̂ that is the letter u), that the chord mixes two; that a
user's Z costs privacy, but none if the encoder knows it too: the leakage is what it was without.

    python problems/doubly_symmetric_binary.py  # writes output/doubly_symmetric_binary.png
"""

from itertools import product

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

P0, KINDS, BUDGETS = 0.25, ("rate", "leakage"), (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25)
KNOWN_TO = {"nobody": None, "the user": "decoder", "user, encoder": "both"}


def h(p):
    """Binary entropy in bits."""
    return cpv.information.entropy([p, 1 - p])


def blind(d):
    """h(p0 ∗ D) − h(D), what strategies that ignore z achieve."""
    return h(P0 * (1 - d) + d * (1 - P0)) - h(d)


D_C = minimize_scalar(lambda d: blind(d) / (P0 - d), bounds=(0.01, 0.2), options={"xatol": 1e-12}).x


@np.vectorize
def closed(kind, who, d):
    """Least rate or least leakage."""
    rate = {"nobody": 1 - h(d), "user, encoder": h(P0) - h(d),
            "the user": blind(min(d, D_C)) * min(1, (P0 - d) / (P0 - D_C))}  # fmt: skip
    return rate[who] + (kind == "leakage" and who != "nobody") * (1 - h(P0))


def study():
    """Solve for the least rate and the least leakage at several D, whoever knows Z."""
    source = cpv.DiscreteSource(np.eye(2)[:, :, None] / 2 * [[1 - P0, P0], [P0, 1 - P0]])
    return pd.Series({(kind, who, d): cpv.RateDistortionEquivocation(
        source, cpv.hamming(2), d, minimize=kind, side_information=KNOWN_TO[who]
    ).solve() for kind, who, d in product(KINDS, KNOWN_TO, BUDGETS)}).sort_index()  # fmt: skip


def follow(solution):
    """Share of the records that are told x̂ = z, whatever x."""
    return solution.channel.released_marginal[solution.channel.decoder.table.index([0, 1])]


def report(result):
    """Compare certified optima with the closed forms, and say how they are made."""
    yield (last := result["rate", "the user", 0.15])
    for (kind, who), some in result.groupby(level=[0, 1]):
        off = np.max([abs(s.value - closed(*at)) for at, s in some.items()])
        yield claim(f"{kind}, Z known to {who}: off [bits]", off, 0.0, "closed form", within=1e-7)
    yield claim("told x̂ = z at 0.15", follow(last), (0.15 - D_C) / (P0 - D_C), "chord", within=1e-5)
    nobody, user, both = (result["leakage", who, 0.05].value for who in KNOWN_TO)
    yield claim("leakage at 0.05, user's above nobody's [bits]", user - nobody, "> 0", "Thm. 2")
    yield claim("leakage at 0.05, both's above nobody's [bits]", both - nobody, 0.0, "Thm. 3")


def draw(result):
    """Draw rate and leakage against D, and the strategies' shares."""
    figure, axes = style.panels("rate", "leakage", r"share that is told $\hat x = z$")
    fine, colours = np.linspace(0, P0, 400), (style.PURPLE, style.BLUE, style.GREEN)
    for ax, kind in zip(axes, KINDS, strict=False):
        for who, colour, at in zip(KNOWN_TO, colours, (0.9, 0.83, 0.76), strict=True):
            ax.plot(fine, closed(kind, who, fine), color=colour, lw=2 if who == "nobody" else 1)
            ax.plot(result[kind, who].map(lambda s: s.value), "*", color=colour, clip_on=False)
            ax.text(0.08, at, f"$Z$ known to {who}", color=colour)
        ax.set(xlabel="distortion $D$ [wrong bits]", ylabel=f"least {kind} [bits]", ylim=(0, 1.02))
    axes[1].axhline(1 - h(P0), **style.BOUND)
    axes[1].text(0.005, 0.12, "$I(W; Z)$")
    axes[2].plot(fine, np.clip((fine - D_C) / (P0 - D_C), 0, 1), color=style.BLUE)
    axes[2].plot(result["rate", "the user"].map(follow), "*", color=style.BLUE)
    axes[2].set(xlabel="distortion $D$ [wrong bits]", ylabel="records [share]")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
