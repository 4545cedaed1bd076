"""How little can education reveal about income, if no table of education may change?

A statistical office perturbs one attribute by post-randomisation (PRAM): every record's
education x is replaced by a random x̂ drawn from row x of a published matrix p(x̂ | x).  Here a
convex program designs the matrix, for the 32,561 records of the UCI Adult data set.

Confidential W: income, at most or above 50,000 dollars.  Key X: education, sixteen ordered levels.

    minimise    I(W; X̂)                                          over p(x̂ | x)
    subject to  p(x̂ = x)      = p(x)      the table of education stays unbiased (invariant PRAM)
                p(x̂ = x | x) ≥ 0.6        every value is kept with at least this probability
                p(x̂ | x)      = 0         if x̂ is more than two levels away from x

The classical way to an invariant matrix is the two-step construction of Gouweleeuw, Kooiman,
Willenborg and de Wolf (Journal of Official Statistics 14, 1998): take any matrix P, follow it by
its Bayes inverse Q(x | y) = p(x) P(y | x) / Σ_x' p(x') P(y | x'), and release with R = P Q.

Learn: how release rules are stated as constraints, what "exactly preserved" means when it is
checked in fractions, what a stricter floor costs in bits, and how much a matrix made by the
classical recipe leaves on the table.

    python problems/invariant_pram.py         # prints, and writes output/invariant_pram.png
"""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

FLOORS, FLOOR = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), 0.6  # the latter's matrix is shown
REACH = 2  # levels that a record may move


def two_steps(p_x, keep):
    """R = P Q: P keeps x so often, else takes it one level on, so that R takes it two at most."""
    near = np.eye(len(p_x), k=1) + np.eye(len(p_x), k=-1)
    p = keep * np.eye(len(p_x)) + (1 - keep) * near / near.sum(axis=1, keepdims=True)
    joint = p_x[:, None] * p
    return p @ (joint / joint.sum(axis=0)).T


def raised(source, floor):
    """R of the P that keeps just so often that R keeps the floor."""
    least = brentq(lambda keep: two_steps(source.p_x, keep).diagonal().min() - floor, 0, 1)
    return two_steps(source.p_x, least)


def mixed(source, floor):
    """(1 − a) I + a R, invariant too: the best P, the greatest a under the floor."""
    found = []
    for keep in np.arange(0, 1, 0.05):
        step = two_steps(source.p_x, keep)
        a = min(1.0, (1 - floor) / (1 - step.diagonal().min()))
        found.append((1 - a) * np.eye(len(step)) + a * step)
    return min(found, key=lambda matrix: leakage(source, matrix))


def leakage(source, matrix):
    """I(W; X̂) in bits if education is released with this matrix."""
    return cpv.information.mutual_information(source.joint @ matrix)


def study():
    """Return the source, a certified matrix for each floor, and the classical ones at one."""
    frame = cpv.datasets.load_adult()
    levels = frame.groupby("education")["education-num"].first().sort_values().index
    frame["education"] = pd.Categorical(frame["education"], levels, ordered=True)
    source = cpv.DiscreteSource.from_table(frame, sensitive="income", key="education")
    far = np.abs(np.subtract.outer(range(len(levels)), range(len(levels)))) > REACH
    changed = cpv.hamming(source.x)  # E d is the share of changed records; all may change
    optima = {}
    for floor in FLOORS:
        rules = [cpv.PreserveMarginal(), cpv.KeepProbability(floor), cpv.ForbiddenMoves(far)]
        optima[floor] = cpv.PrivacyDistortion(source, changed, criteria=rules).solve()
    matrices = {
        "the optimum": optima[FLOOR].channel.matrix,
        f"R, if P keeps with {FLOOR:g}": two_steps(source.p_x, FLOOR),
        "R, P raised to keep the floor": raised(source, FLOOR),
        "R mixed with no change": mixed(source, FLOOR),
    }
    return SimpleNamespace(frame=frame, source=source, far=far, optima=optima, matrices=matrices)


def report(result):
    """Check in fractions what is promised, and compare with the classical matrices."""
    source, optimum = result.source, result.optima[FLOOR]
    yield optimum
    before, size = source.information(), len(source.x)
    yield f"""
before: I(W; X) = {before:.4f} bits, of which about {source.bias():.4f} is bias (Miller–Madow)
after: {optimum.value / before:.0%} of it; {float(optimum.distortion):.0%} of the records change
one more percentage point of floor costs {optimum.prices["keep_probability"] / 100:.5f} bits"""
    primal = optimum.certificate.primal
    exact = np.array([[Fraction(int(k), primal.denominator) for k in row]
                      for row in primal.numerators])  # fmt: skip
    counts = [int(n) for n in source.joint.sum(axis=0)]
    lawful = int(((exact.sum(axis=1) == 1) & (exact.min(axis=1) >= 0)).sum())
    kept, moved = (counts @ exact == counts).sum(), np.count_nonzero(exact[result.far])
    yield claim("rows that are laws (in fractions)", lawful, str(size), "definition")
    yield claim("expected counts that are the counts", int(kept), str(size), "invariance")
    yield claim("least p(x̂ = x | x)", float(exact.diagonal().min()), f"≥ {FLOOR:g}", "the floor")
    yield claim(f"moves over more than {REACH} levels", moved, "0", "forbidden")
    values, (low, high) = {p: s.value for p, s in result.optima.items()}, (0.5, 0.7)
    chords = [(values[p] - values[FLOOR]) / (p - FLOOR) for p in (low, high)]
    price = optimum.prices["keep_probability"]
    yield claim(f"slopes to floors {low:g} and {high:g} [bits]", tuple(chords), price, "price")
    yield claim("I(W; X̂) at the floor 1 [bits]", values[1.0], before, "I(W; X)", within=1e-9)
    shift = max(np.abs(source.p_x @ r - source.p_x).max() for r in result.matrices.values())
    yield claim("greatest |p(x̂) − p(x)| of all matrices", shift, 0.0, "R = P Q", within=1e-12)
    table = pd.DataFrame(index=list(result.matrices))
    table["I(W; X̂)"] = [leakage(source, r) for r in result.matrices.values()]
    table["removed [%]"] = 100 * (before - table["I(W; X̂)"]) / (before - optimum.value)
    table["least kept [%]"] = [100 * r.diagonal().min() for r in result.matrices.values()]
    table["keeps the floor"] = np.where(table["least kept [%]"] > 100 * FLOOR - 1e-6, "yes", "no")
    yield ""
    yield table.round({"I(W; X̂)": 4, "removed [%]": 1, "least kept [%]": 1})
    yield "(removed: share of the risk that the optimum removes)"


def draw(result):
    """Draw the optimal matrix, and the least leakage against the floor."""
    source = result.source
    figure, (left, right) = style.panels(
        f"the optimal matrix at the floor {FLOOR:g}", "what the floor costs", height=3.5
    )
    image = left.imshow(result.optima[FLOOR].channel.matrix, vmin=0, vmax=1, cmap=style.MAP)
    ticks = range(len(source.x))
    left.set_xticks(ticks, source.x, rotation=90)
    left.set_yticks(ticks, source.x)
    left.set(xlabel=r"released education $\hat x$", ylabel="original education $x$")
    scale = figure.colorbar(image, cax=left.inset_axes((0.6, 0.8, 0.34, 0.04)),
                            orientation="horizontal")  # fmt: skip
    scale.ax.set_title(r"$p(\hat x\,|\,x)$", color="white", loc="center")
    scale.ax.tick_params(colors="white")
    right.plot(FLOORS, [s.value for s in result.optima.values()], **style.OPTIMUM)
    some = np.linspace(FLOORS[0], FLOORS[-1], 20)
    for rule, dashes in ((mixed, "-"), (raised, ":")):
        risk = [leakage(source, rule(source, floor)) for floor in some]
        right.plot(some, risk, dashes, color=style.VERMILION)
    right.axhline(source.information(), **style.BOUND)
    for x, y, said, color in (
        (0.02, 0.89, "no change: $I(W;X)$", style.BLACK),
        (0.22, 0.75, "two steps, first raised", style.VERMILION),
        (0.07, 0.47, "two steps,\nmixed with\nno change", style.VERMILION),
        (0.62, 0.2, "certified optimum;\nchords: achieved\nby mixing", style.BLUE),
    ):
        right.text(x, y, said, color=color, transform=right.transAxes)
    right.set(xlabel=r"floor: least $p(\hat x = x\,|\,x)$", ylabel=r"risk $I(W;\hat X)$ [bits]")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
