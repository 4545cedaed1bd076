"""Fig. 5 of Sankar et al. 2013: rate and leakage of Gaussian data, with and without a user's Z.

Sankar, Rajagopalan and Poor, IEEE TIFS 8(6), 2013, Example 2.  W (the paper's Y), X and the user's
Z are jointly Gaussian, W – X – Z Markov, variances 1; U tells of X, and is read with Z as x̂(U, Z):

    minimise    rate I(X; U | Z), or leakage I(W; U, Z)                over p(u | x), x̂(u, z)
    subject to  E (X − X̂)² ≤ D

    R(D) = ½ log₂((1 − ρ²_XZ)/D),   L(D) = −½ log₂(1 − ρ²_WX + ρ²_WX D),   0 < D ≤ 1 − ρ²_XZ

Solved over Σ = Cov(X | U, Z) and, on sampled data, over all channels: no Z; Z at the user, whose
strategies z → x̂ are the letters u (Theorem 2); Z at both ends (Theorem 3), no better by (iii).

Learn: side information lowers the rate, not the privacy; Gaussian codes are best; "no rate loss" is
of the continuum: on a grid little is lost only if z moves the user's x̂ from letter to letter.

    python figures/sankar_fig5.py             # prints, and writes output/sankar_fig5.png
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

KINDS, RHO_WX, RHO_XZ = ("rate", "leakage"), (0.5, 0.8, 0.95), (0.0, 0.5, 0.8)  # chosen here
SHARES, D = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0), 0.3  # of the greatest D; D of the losses
STEPS = (2, 1, 0.5, 0.8, 1.5, 0.7, 0.4)  # of the letters x̂, in moves
GRIDS = ((11, 3, 1), (9, 2.4, 1), (21, 3.6, 2))  # points and span of x, step
SIGNS = {"covariance": ".", "no Z": "x", "Thm. 3": "+", "Thm. 2": "o"}


def closed(kind, w, z, d):
    """R(D) or L(D) in bits, by the correlations ρ_WX and ρ_XZ."""
    return np.log2((1 - z**2) / d) / 2 if kind == "rate" else -np.log2(1 - w**2 * (1 - d)) / 2


def letters(z, d, step=None):
    """…, −step, 0, step, … in moves of x̂ from one of three z to the next; by default 1/n ≤ .35."""
    move = np.sqrt(3) * z * d / (1 - z**2)
    step = move * step if step else move / np.ceil(move / 0.35)
    return step * np.arange(-int(2.5 / step), int(2.5 / step) + 1)


def free(kind, source, outputs, d, listed=1):
    """Solve channel programs; of more than ``listed`` strategies, Theorem 3 is the lower bound."""
    knowing = {"Thm. 3": "both", "Thm. 2": "decoder"} if source.z else {"no Z": None}
    error = cpv.squared_error(source.x, outputs)
    return {name: cpv.RateDistortionEquivocation(
        source, error, d, minimize=kind, side_information=who, most_strategies=listed
    ).solve(certify=False) for name, who in knowing.items()}  # fmt: skip


def study(*, quick: bool = False):
    """Solve all programs; ``quick`` takes fewer budgets, correlations and steps."""
    rows, losses, law = [], [], cpv.GaussianSource.scalar(0.8, rho_xz=0.5)
    cases = [*product(KINDS, [13], [3.6], STEPS), *(("rate", *grid) for grid in GRIDS)]
    for kind, points, span, step in cases[:2] if quick else cases:
        source, listed = law.discretise(points, span, z_points=3), 800 if quick else 3400
        both, user = free(kind, source, letters(0.5, D, step), D, listed).values()
        least, most = max(user.lower - both.upper, 0.0), user.upper - both.lower
        losses.append((kind, points, span, step, both.upper, user.upper, least, most))
    sides, shares = (RHO_XZ[:2], SHARES[2::3]) if quick else (RHO_XZ, SHARES)
    for kind, w, z, share in product(KINDS, RHO_WX, sides, shares):
        law, d = cpv.GaussianSource.scalar(w, rho_xz=z or None), share * (1 - z**2)
        who = "both" if z else None
        program = cpv.GaussianEquivocation(law, d, minimize=kind, side_information=who)
        found = {"covariance": program.solve()}
        if w == 0.8 and share in (0.4, 0.8):
            source = law.discretise(17, 4, z_points=3 * (z > 0))
            found |= free(kind, source, letters(z, d) if z else None, d)
        rows += [(name, kind, w, z, d, s) for name, s in found.items()]
    names = ["kind", "|X|", "span", "step", "Thm. 3", "Thm. 2", "loss ≥", "loss ≤"]
    points = pd.DataFrame(rows, columns=["program", "kind", "w", "z", "d", "solution"])
    return SimpleNamespace(points=points, losses=pd.DataFrame(losses, columns=names))


def report(result):
    """Compare with the paper."""
    points = result.points.set_index(["program", "kind", "w", "z", "d"]).solution.sort_index()
    yield points["Thm. 2"].iloc[0]
    for program, within in zip(SIGNS, (1e-6, 5e-4, 5e-4, 5e-4), strict=True):  # tails are cut
        off = np.max([abs(s.value - closed(*at)) for at, s in points[program].items()])
        yield claim(f"{program}: farthest off R(D), L(D) [bits]", off, 0.0, "Ex. 2", within=within)
    codes, leaks = (points["covariance", kind] for kind in KINDS)
    off = np.max([float(c.leakage) - s.lower for c, s in zip(codes, leaks, strict=True)])
    yield claim("excess leakage of the least rate [bits]", off, 0.0, "Ex. 2 (ii)", within=1e-6)
    held = -np.log2(1 - (0.8 * 0.5) ** 2) / 2
    yield claim("L(0.75), ρ_XZ = 0.5 [bits]", leaks[0.8, 0.5, 0.75].value, held, "I(W; Z)")
    yield f"\nTheorem 2 less Theorem 3, D = {D:g}, ρ_WX = 0.8, ρ_XZ = 0.5 [bits]; step / move by z"
    yield result.losses.set_index("kind")
    match = result.losses.query("kind == 'rate' and step == 1").sort_values("span")
    why = f"x on ±{match['span'].iloc[-1]:g}, and letters x̂ that z moves onto each other; else more"
    yield claim("loss of rate left on a grid [bits]", match["loss ≤"].iloc[-1], 0.0, "Ex. 2 (iii)",
                why, within=1e-6)  # fmt: skip


def draw(result):
    """Draw rate and leakage against D, and the loss against the step of x̂."""
    figure, (rate, leak, loss) = style.panels("rate", "leakage", "Theorem 2 less Theorem 3")
    axes, fine = {"rate": rate, "leakage": leak}, np.linspace(0.005, 1, 300)
    for z, colour, at in zip(RHO_XZ, style.PALETTE, (1.45, 1.2, 0.95), strict=False):
        rate.plot(fine, closed("rate", 0, z, fine), color=colour, lw=0.8)
        rate.text(0.58, at, rf"$\rho_{{XZ}}$ = {z:g}", color=colour)
        for name, kind, _, _, d, s in result.points.query("z == @z").itertuples(index=False):
            axes[kind].plot(d, s.value, SIGNS[name], color=colour, mfc="none", clip_on=False)
    for w, x, y in zip(RHO_WX, (0.1, 0.1, 0.25), (0.24, 0.7, 1), strict=True):
        leak.plot(fine, closed("leakage", w, 0, fine), color=style.GREY, lw=0.8, zorder=1)
        leak.text(x, y, r"$\rho_{WX}$ = " * (w == RHO_WX[-1]) + f"{w:g}", color=style.GREY)
    for name, sign in SIGNS.items():
        rate.plot([], [], sign, color=style.BLACK, mfc="none", label=name)
    rate.legend()
    for row in result.losses.itertuples(index=False):
        colour, sign = (style.BLUE, "o") if row.kind == "rate" else (style.PURPLE, "s")
        loss.semilogy(row.step, row[-1], sign, color=colour, mfc="none")
        said = rf"grid $|x| \leq {row.span:g}$" if row.step == 1 else row.kind
        if row.step == 1.5 or (row.step, row.kind) == (1, "rate"):
            loss.text(row.step + 0.06, row[-1], said, color=colour, va="top")
    rate.set(xlabel="error $D$ [Var $X$]", ylabel="least rate [bits]", xlim=(0, 1), ylim=(0, 3))
    leak.set(xlabel="error $D$ [Var $X$]", ylabel="leakage [bits]", xlim=(0, 1), ylim=(0, 1.7))
    loss.set(xlabel=r"step of $\hat x$ / move by $z$", ylabel="most loss [bits]", ylim=(5e-8, 0.2))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
