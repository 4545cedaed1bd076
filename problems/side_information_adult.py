"""What does it cost that the users know everybody's sex?

32,561 records of UCI Adult.  Confidential W: marital status.  Key X: age group and education
group, released as X̂.  Side information Z: sex, which the users have from elsewhere.  Distortion:
groups moved, in age and in education together.

    Z known to       minimise, subject to E d(X, X̂) ≤ D
    nobody           I(W; X̂)       over p(x̂ | x)
    the user         I(W; U, Z)    over p(u | x), read as x̂ = f(u, z)
    user, encoder    I(W; X̂, Z)    over p(x̂ | x, z)

Sankar, Rajagopalan and Poor (IEEE TIFS 8(6), 2013), Proposition 2 and Theorems 2 and 3.  Then the
worst case: least E d(X, X̂) such that D(p(w | u, z) ‖ p(w)) ≤ t for every u and z.

Learn: that no release takes back what a user knows already, I(W; Z); that on the average a release
made for users without Z does nearly as well against those with it; that its promise for every
letter breaks, and what keeping it costs; that letters may mean other things for women than for men.

    python problems/side_information_adult.py # prints, and writes output/side_information_adult.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run

AGES = ("under 25", "25–39", "40–59", "60 and over")
DEGREES = ("no diploma", "high school", "some college", "degree")
BUDGETS, BUDGET = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0), 0.4  # D; that of the numbers
T, REFUSED = 0.5, 0.1  # of t-closeness, and a cap on leakage that cannot be kept, in bits
KNOWN_TO = {None: "nobody", "decoder": "the user", "both": "user, encoder"}
NAIVE = "nobody, read with Z"


def told(source, solution):
    """p(w, u, z), or p(w, x̂, z): what a user who knows Z is told, shape (|W|, m |Z|)."""
    matrix, law = solution.channel.matrix, source.pmf
    if solution.channel.encoder == "x":
        matrix = np.repeat(matrix, len(source.z), axis=0)
    matrix = matrix.reshape(*law.shape[1:], -1)
    return np.einsum("wxz,xzu->wuz", law, matrix).reshape(len(law), -1)


def letters(source, solution):
    """By u: z, p(u, z) and D(p(w | u, z) ‖ p(w)), where at least a record is expected."""
    joint, size = told(source, solution), len(source.z)
    share, bits = joint.sum(axis=0), cpv.one_symbol.i1(joint)
    every = pd.DataFrame({"z": np.tile(source.z, len(share) // size), "share": share, "bits": bits},
                         index=np.arange(len(share)) // size)  # fmt: skip
    return every[share * source.records >= 1].sort_values("bits")


def study(*, quick: bool = False):
    """Solve for the least leakage at each D, and for the least distortion under t-closeness."""
    frame = cpv.datasets.load_adult()
    frame["age"] = pd.cut(frame["age"], [0, 25, 40, 60, 200], right=False, labels=AGES)
    years = frame["education-num"]
    frame["education"] = pd.cut(years, [0, 9, 10, 13, 99], right=False, labels=DEGREES)
    source = cpv.DiscreteSource.from_table(
        frame, sensitive="marital-status", key=["age", "education"], side="sex"
    )
    groups, steps = {"age": AGES, "education": DEGREES}, cpv.absolute_error(range(4))
    error = cpv.per_attribute(dict.fromkeys(groups, steps), source, inputs=groups)

    def optimum(minimize, who, **rules):
        return cpv.RateDistortionEquivocation(
            source, error, minimize=minimize, side_information=who, **rules
        ).solve()

    budgets, close = (0.2, BUDGET) if quick else BUDGETS, [cpv.TCloseness(T)]
    average = {(who, d): optimum("leakage", who, budget=d) for who in KNOWN_TO for d in budgets}
    worst = {who: optimum("distortion", who, criteria=close) for who in KNOWN_TO}
    try:
        optimum("distortion", "decoder", max_leakage=REFUSED)
    except cpv.InfeasibleError as reason:
        refusal = reason
    leakage = cpv.information.mutual_information
    least = pd.DataFrame({name: {d: average[who, d].value for d in budgets}
                          for who, name in KNOWN_TO.items()})  # fmt: skip
    least[NAIVE] = [leakage(told(source, average[None, d])) for d in budgets]
    return SimpleNamespace(
        frame=frame, source=source, error=error, held=leakage(source.law.sum(axis=1)), least=least,
        average=average, worst=worst, refusal=refusal,
    )  # fmt: skip


def report(result):
    """Say what was proved, and what letters mean."""
    source = result.source
    yield f"""{source.records:,} records, {" × ".join(map(str, source.law.shape))} cells
I(W; X) = {source.information():.4f} bits, of which about {source.bias():.4f} is bias (Miller–Madow)
I(W; Z) = {result.held:.4f}: what the user knows before anything is released"""
    user, both = result.average["decoder", BUDGET], result.average["both", BUDGET]
    yield user
    parts = [float(user.terms[f"distortion of {name}"]) for name in ("age", "education")]
    yield claim("groups moved in age + in education", sum(parts), float(user.distortion), "E d",
                within=1e-9)  # fmt: skip
    yield claim("least max_leakage that can be kept [bits]", result.refusal.extremes["max_leakage"],
                result.held, "I(W; Z)", within=1e-4)  # fmt: skip
    yield claim("leakage to the user [bits]", user, ("≥", both.lower), "user, encoder")
    rows = {}
    for who, name in KNOWN_TO.items():
        solution, found = result.worst[who], letters(source, result.worst[who])
        bound = ("≤", T + 1e-7) if who else (">", T)
        yield claim(f"worst (u, z), Z known to {name} [bits]", found["bits"].max(), bound, "with Z")
        above = 100 * found["share"][found["bits"] > T + 1e-6].sum()
        price = solution.prices["t_closeness"]
        rows[name] = {"E d": solution.value, "dD/dt": price, "above t [%]": above}
    yield f"\n{result.refusal}"
    yield "\nleast leakage by D [bits], and that of a release for nobody to users who know Z"
    yield result.least.round(4)
    alone = cpv.one_symbol.i1(source.law.sum(axis=1)).max()
    yield f"\nevery letter within t = {T:g} of p(w) (sex alone: {alone:.3f}); read with Z, above t:"
    yield pd.DataFrame(rows).T.round(4).round({"above t [%]": 1})
    solution = result.worst["decoder"]
    each = letters(source, solution).groupby(level=0).agg({"share": "sum", "bits": "max"})
    meaning = pd.DataFrame(solution.channel.decoder.table, columns=source.z)
    yield "\nletters made for the user, by what they mean to one who knows the sex"
    yield meaning.join(each, how="right").sort_values("share", ascending=False).round(4)


def draw(result):
    """Draw leakage against D, and what each letter tells."""
    figure, (left, right) = style.panels(
        "least leakage on the average", "every letter, read with $Z$ (area: share)", height=3.1
    )
    marks = style.OPTIMUM, {**style.PRACTICE, "ls": "", "mfc": "none", "ms": 8}
    for name, color, x, y, said, how in (
        ("the user", style.BLUE, 0.3, 0.8, "$Z$ known to the user", marks[0]),
        ("user, encoder", style.GREEN, 0.3, 0.7, "$Z$ known to user, encoder", marks[0]),
        ("nobody", style.PURPLE, 0.42, 0.13, "$Z$ known to nobody", marks[0]),
        (NAIVE, style.VERMILION, 0.3, 0.9, "for nobody, read with $Z$", marks[1]),
    ):
        left.plot(result.least.index, result.least[name], **{**how, "color": color}, clip_on=False)
        left.text(x, y, said, color=color, transform=left.transAxes)
    left.axhline(result.held, **style.BOUND)
    right.axhline(T, **style.BOUND)
    for who, color, said, x in (
        (None, style.VERMILION, "made for users\nwithout $Z$", 0),
        ("decoder", style.BLUE, "made for users\nwith $Z$", 2),
    ):
        found = letters(result.source, result.worst[who])
        for place, (_, part) in enumerate(found.groupby("z"), x):
            spots = place + np.linspace(-0.35, 0.35, len(part))
            right.scatter(spots, part["bits"], 500 * part["share"], color, alpha=0.6, lw=0)
        right.text(0.3 + x / 6, 0.6, said, color=color, transform=right.transAxes)
    left.set(xlabel="distortion $D$ [groups moved]", ylabel="leakage [bits]", ylim=(0, None))
    right.set(xlabel="letters $u$, rising, by $Z$", ylabel=r"$D(p(w\,|\,u,z)\,\|\,p(w))$ [bits]",
              xticks=range(4), xticklabels=2 * list(result.source.z), ylim=(0, None))  # fmt: skip
    left.text(0.8, 0.31, "$I(W;Z)$", transform=left.transAxes)
    right.text(2.85, T + 0.04, f"$t$ = {T:g}")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
