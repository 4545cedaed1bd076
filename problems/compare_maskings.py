"""What do the masking methods in use leak beyond the optimum?

Persons of the 1995 Current Population Survey: the reference microdata "Census" of the CASC
project, 1,080 persons.  Confidential W: taxable income (TAXINC).  Key X, masked as X̂: total
income, state income tax and interest, which together nearly tell it.

Six methods of statistical disclosure control, each over its parameter, and beside them

    minimise    I(W; X̂)
    subject to  E Σ_j (X_j − X̂_j)² / Var X_j ≤ 3 D              over p(x̂ | x)

certified for X cut into 64 cells and W into 8 classes.  The frontier is proved for releases that
see X's cell alone; a method's mark is counted from one table, cut likewise, and can lie on either
side by sampling or because the method used more than the cell (Rebollo-Monedero, Forné and
Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. 3 and §6.2; methods and losses: Mateo-Sanz,
Domingo-Ferrer and Sebé, Data Mining and Knowledge Discovery 11, 2005).

Learn: that groups of k hide who it is, and hardly what they earn; that swapping costs more than it
hides; that noise is the best of the simple methods, and leaks twice the optimum at a fifth of the
variance; and that the usual picture of linked records against information loss shows none of this.

    python problems/compare_maskings.py       # prints, and writes output/compare_maskings.png
"""

import numpy as np

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc  # pip install cvxprivacy-sdc
from cvxprivacy import style
from cvxprivacy.study import claim, run
from cvxprivacy_sdc.masking import (
    MDAV,
    AdditiveNoise,
    HansenMukherjee,
    MuApprox,
    RankSwapping,
)

SENSITIVE = "TAXINC"
KEYS = {"PTOTVAL": "total income", "STATETAX": "state income tax", "INTVAL": "interest"}
SIZES, SCALES = (3, 10, 30, 100, 200), (0.1, 0.2, 0.4, 0.6, 0.8)
METHODS = {
    "MDAV": [MDAV(k) for k in SIZES],
    "μ-Approx": [MuApprox(k) for k in SIZES],
    "individual ranking": [HansenMukherjee(k) for k in SIZES],
    "rank swapping": [RankSwapping(p, random_state=0) for p in (1, 3, 7, 15, 30, 60)],
    "noise": [AdditiveNoise(s, random_state=0) for s in SCALES],
    "correlated noise": [AdditiveNoise(s, correlated=True, random_state=0) for s in SCALES],
}
COLUMNS = "method", "setting", "cut distortion", "risk [bits]", "optimum", "excess", "linked", "PIL"
AT = 0.2  # the distortion at which methods are compared in words


def study():
    """Mask Census by every method, and certify the frontier."""
    census = cpv.datasets.load_census()
    return sdc.compare(census, METHODS, sensitive=SENSITIVE, key=list(KEYS))


def curve(result, name):
    """Return the distortions and risks of a method, the distortions increasing."""
    return np.array(sorted((p.cut, p.risk) for p in result.points if p.method == name)).T


def report(result):
    """Show every table, and the methods at one distortion."""
    yield f"W = {SENSITIVE}, taxable income; X = {', '.join(KEYS.values())}"
    yield result.to_frame()[list(COLUMNS)].round(4).to_string(index=False)
    cells, classes, bias = len(result.source.x), len(result.source.w), result.source.bias()
    yield f"risk: I(W; X̂) as counted, X̂ cut into {cells} cells, W into {classes} classes"
    yield f"untouched: {result.information:.3f} bits, some {bias:.2f} of them small-sample bias"
    yield f"within the cells lies {result.within:.1%} of the variance; one certified optimum:\n"
    yield result.frontier[len(result.frontier) // 2]
    lower, upper, chord = (float(of(AT)) for of in (result.lower, result.upper, result.chord))
    points = [p for p in result.points if p.method in METHODS]
    least = min(points, key=lambda p: p.excess)
    yield claim(f"least risk at D = {AT:g} [bits]", (lower, upper), ("≤", chord), "MIUB, eq. 9")
    yield claim("least excess of a method [bits]", least.excess, "≥ 0", "eq. 3", "counted from one "
                f"table ({least.method}, {least.setting}), bias and sampling included")  # fmt: skip
    yield f"\nat a distortion of {AT:.0%} of the variance, between the nearest settings:"
    for name in dict.fromkeys(p.method for p in points):
        x, y = curve(result, name)
        if x[0] <= AT <= x[-1]:
            risk = np.interp(AT, x, y)
            yield f"  {name:<20} {risk:.3f} bits, {risk / upper:.1f} times the optimum"


def draw(result):
    """Draw the plane of risk and distortion, and the usual map of linkage and loss."""
    titles = "what is learnt of taxable income", "the usual picture of the same tables"
    figure, (left, right) = style.panels(*titles, height=3.2)
    fine = np.linspace(result.within, 1, 400)
    left.plot(fine, result.chord(fine), **style.BOUND)
    left.fill_between(fine, result.lower(fine), result.upper(fine), color=style.BLUE, lw=1.3)
    left.text(0.84, 0.3, "MIUB")
    solved = [(result.within + s.distortion, s.value) for s in result.frontier]
    left.plot(*np.transpose(solved), **style.OPTIMUM | {"ls": "", "clip_on": False})
    left.text(0.02, 0.04, "certified\noptimum,\nwith bounds", color=style.BLUE)
    for name in METHODS:
        color, sign = style.MASKINGS[name]
        own = [p for p in result.points if p.method == name]
        left.plot(*curve(result, name), color=color, marker=sign, ms=4)
        right.plot([p.pil for p in own], [p.linkage for p in own], color=color, marker=sign, ms=4,
                   label=name)  # fmt: skip
    best = [p for p in result.points if p.method not in METHODS]
    right.plot([p.pil for p in best], [p.linkage for p in best], **style.OPTIMUM | {"ls": ""},
               label="certified optimum, one draw")  # fmt: skip
    left.set(xlabel="distortion $D$ [share of the variance]", xlim=(0, None), ylim=(0, None),
             ylabel=r"risk $I(W;\hat X)$ [bits]")  # fmt: skip
    right.set(xlabel="probabilistic information loss PIL [0 to 100]", xlim=(0, 100),
              ylabel="records linked to their own [share]", ylim=(-0.02, 1.04))  # fmt: skip
    right.legend()
    return figure


if __name__ == "__main__":
    run(study, report, draw)
