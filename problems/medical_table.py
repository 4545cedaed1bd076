"""Whose record is at risk in a generalised table, and what would randomising it have done?

Bezzi (Transactions on Data Privacy 3, 2010, §3.1): twelve people, their height X in bins of ten, a
diagnosis W.  An audit says what each bin reveals; then a promise made beforehand protects them:

    minimise    E |X − X̂|                                            over p(x̂ | x)
    subject to  I1(x̂) = Σ_w p(w|x̂) log2 p(w|x̂)/p(w) ≤ t  for every x̂          (t-closeness)

by the best intervals of bins that keep it each by itself (dynamic programming over the cuts), and
by the best randomisation (certified).  Only [190, 200) tells much: one of its two people is ill.
Of the next bin's two, 10 cm away, v ≤ 2 join them, until q = 1/(2 + v) of the letter are ill and
D(q ‖ 1/12) = t: that costs 10 v / 12 cm.

Learn: how to audit a table; that measures disagree about who is at risk; that an average says
nothing about one record; and that a randomised release keeps the same promise with less error.

    python problems/medical_table.py          # prints, and writes output/medical_table.png
"""

from textwrap import fill
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import rel_entr

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc  # pip install cvxprivacy-sdc
from cvxprivacy import one_symbol, style
from cvxprivacy.study import claim, run

PROMISES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8555)  # t in bits; at the last the bins pass
PROMISE, ILL = 0.3, 1 / 12  # the promise that is drawn; p(ill)


def surprise(q):
    """D(q ‖ 1/12) in bits."""
    return (rel_entr(q, ILL) + rel_entr(1 - q, 1 - ILL)) / np.log(2)


def study():
    """Audit the bins of ten; then keep every promise twice."""
    people = cpv.datasets.load_bezzi()
    columns = {"key": "height", "sensitive": "diagnosis", "bins": {"height": 10}}
    source = cpv.DiscreteSource.from_table(people, **columns)
    d = cpv.absolute_error(source.schema.bins["height"].middles)
    cm = cpv.Distortion(d.matrix, inputs=source.x, outputs=source.x)
    prices = {t: sdc.price_of_determinism(source, cm, [cpv.TCloseness(t)]) for t in PROMISES}
    costs = ((p.deterministic.distortion, p.randomised.value) for p in prices.values())
    table = pd.DataFrame(costs, PROMISES, ["best intervals", "best randomisation"])
    audit = sdc.audit(people, criteria=[cpv.TCloseness(PROMISE), cpv.KAnonymity(2)], **columns)
    return SimpleNamespace(audit=audit, source=source, prices=prices, table=table)


def report(result):
    """Say who is at risk, and what each release costs."""
    audit, chosen = result.audit, result.prices[PROMISE]
    yield "\n".join(fill(line, 100, subsequent_indent=4 * " ") for line in str(audit).split("\n"))
    for kind, bins in (("I1", 1), ("I2", 3)):
        yield f"worst by {kind}: {', '.join(audit.records(audit.worst(kind, bins))['name'])}"
    yield f"\n{chosen}\n{chosen.randomised}\n\ncentimetres, by t"
    yield result.table.round(4)
    for t in PROMISES[3:-1]:
        least = 10 / 12 * brentq(lambda v, t=t: surprise(1 / (2 + v)) - t, 0, 2)
        yield claim(f"least error at t = {t:g} [cm]", result.prices[t].randomised, least, "by hand")
    epsilon = one_symbol.privacy_loss(chosen.randomised.channel.matrix.round(6))
    yield f"\nof the bin t-closeness promises nothing: local ε at t = {PROMISE:g} is {epsilon:g}"


def draw(result):
    """Draw the audit, the optimal randomisation, and what intervals cost."""
    titles = "what bins tell", rf"best $p(\hat x|x)$, $t$ = {PROMISE:g}", "what the promise costs"
    figure, (left, middle, right) = style.panels(*titles, height=2.5, width_ratios=(1, 1, 1.2))
    at, names = np.arange(4), [f"{name[1:4]}s" for name in result.audit.letters]
    i1, i2 = (result.audit.measures[kind].values for kind in ("I1", "I2"))
    left.bar(at - 0.2, i1, 0.4, color=style.GREY, ec="black", hatch="////")
    left.bar(at + 0.2, i2, 0.4, color=style.LIGHT, ec="black")
    left.axhline(PROMISE, **style.BOUND)
    left.axhline(0, color="black", lw=0.6)
    for y, name in ((0.7, "$I_1$, surprise"), (0.33, "$t$"), (-0.5, "$I_2$, specific information")):
        left.text(2.56, y, name, ha="right")
    left.set(xlabel="height [cm]", ylabel="information on the diagnosis [bits]")
    matrix = result.prices[PROMISE].randomised.channel.matrix
    middle.imshow(matrix, vmin=0, vmax=1, aspect="auto")
    for (x, y), p in np.ndenumerate(matrix.round(2)):
        middle.text(y, x, f"{p:g}", color="black" if p > 0.5 else "white", ha="center", va="center")
    for axis in (left.xaxis, middle.xaxis, middle.yaxis):
        axis.set_ticks(at, names)
    middle.set(xlabel=r"released $\hat x$ [cm]", ylabel="original $x$ [cm]")
    right.plot(result.table["best intervals"], **style.PRACTICE | {"ls": ""})
    right.plot(result.table["best randomisation"], **style.OPTIMUM)
    right.text(0.2, 5, "best intervals", color=style.VERMILION)
    right.text(0.44, 0.85, "best randomisation", color=style.BLUE)
    right.set(xlabel="promise $t$ [bits]", ylabel=r"E$\,|X-\hat X|$ [cm]", xlim=(0, 1))
    return figure


if __name__ == "__main__":
    run(study, report, draw)
