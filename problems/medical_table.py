"""Whose record is at risk in a generalised table, and what would randomising it have done?

The medical example of Bezzi (Transactions on Data Privacy 3, 2010, §3.1): twelve people, their
height X and a diagnosis W.  Heights are released in bins of ten (Tables 2 and 3).  The audit says
what each released bin tells about the diagnosis, by every measure in use; then the same people are
protected by a promise made beforehand,

    minimise    E |X − X̂|                                            over p(x̂ | x)
    subject to  I1(x̂) = Σ_w p(w|x̂) log2 p(w|x̂)/p(w) ≤ t  for every x̂          (t-closeness)

once by the best intervals of heights that keep it each by itself (by dynamic programming over the
cuts),
once by the best randomisation (certified).

Learn: how to audit a table; that measures disagree about who is at risk; that an average says
nothing about one record; and that a randomised release keeps the same promise with less error.

    python problems/medical_table.py          # prints, and writes output/medical_table.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy.microdata.determinism import PriceOfDeterminism
from cvxprivacy.model.one_symbol import privacy_loss, surprise_of_inputs

PROMISES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8555)  # t in bits; at the last the bins pass
PROMISE = 0.3  # for the release that is printed


@dataclass
class Study:
    """The audit of Table 3, and both releases for every t."""

    people: pd.DataFrame
    audit: cpv.Audit
    source: cpv.DiscreteSource
    prices: dict[float, PriceOfDeterminism]

    @property
    def chosen(self) -> PriceOfDeterminism:
        return self.prices[PROMISE]


def study(promises: tuple[float, ...] = PROMISES) -> Study:
    """Audit the bins of ten; then keep every promise twice."""
    people = cpv.datasets.load_bezzi()
    bins = {"height": 10}
    audit = cpv.audit(
        people, key="height", sensitive="diagnosis", bins=bins,
        criteria=[cpv.TCloseness(PROMISE), cpv.KAnonymity(2)],
    )  # fmt: skip
    source = cpv.DiscreteSource.from_table(people, sensitive="diagnosis", key="height", bins=bins)
    middles = source.schema.bins["height"].middles
    distance = cpv.Distortion(
        cpv.absolute_error(middles).matrix, inputs=source.x, outputs=source.x, name="centimetres"
    )
    prices = {t: cpv.price_of_determinism(source, distance, [cpv.TCloseness(t)]) for t in promises}
    return Study(people, audit, source, prices)


def report(result: Study) -> str:
    """Say who is at risk, and what each release costs."""
    audit, chosen = result.audit, result.chosen
    i1, i2 = audit.per_record("I1"), audit.per_record("I2")
    lines = [str(audit), "", "what a record's bin tells about its diagnosis (bits):"]
    bins = result.source.schema.bins["height"]
    for row, a, b in zip(result.people.itertuples(), i1, i2, strict=True):
        lines.append(
            f"  {row.name:<8} {row.height} cm  {bins.named([row.height])[0]}  {row.diagnosis}   "
            f"I1 = {a:.4f}   I2 = {b:+.4f}"
        )
    worst = audit.records(audit.worst("I1", 1))
    lines += [
        f"  worst by I1: {', '.join(worst['name'])}; worst by I2: everybody else",
        f"  on average both say {audit.after.plugin:.4f}",
        "",
        str(chosen),
        f"  the grouping: {', '.join(f'{x} → {g}' for x, g in _moves(result))}",
        str(chosen.randomised),
        "  the randomisation, a row per bin:",
    ]
    channel = chosen.randomised.channel
    for x, row in zip(channel.inputs, channel.matrix, strict=True):
        lines.append(f"    {x}  " + "  ".join(f"{p:.3f}" for p in row))
    epsilon = privacy_loss(channel.matrix)
    surprise = surprise_of_inputs(channel.matrix, result.source.p_x).max()
    lines += [
        "  of the bin itself t-closeness promises nothing: as a mechanism of local differential",
        f"  privacy the randomisation has ε = {epsilon:.3g} (its least probability is "
        f"{channel.matrix.min():.0e}), and its",
        f"  surprise (eq. 17) reaches {surprise:.3f} bits",
    ]
    lines += ["", "      t   best intervals   best randomisation      intervals add"]
    for t, price in result.prices.items():
        lines.append(
            f"  {t:>6g}   {price.deterministic.distortion:>11.4f} cm   "
            f"{price.randomised.value:>15.4f} cm   {float(price.gap):>13.4f} cm"
        )
    return "\n".join(lines)


def _moves(result: Study) -> list[tuple[str, str]]:
    return list(zip(result.source.x, result.chosen.deterministic.groups, strict=True))


def draw(result: Study, path: Path) -> None:
    """Draw the audit, the optimal randomisation, and what intervals cost."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 9), layout="constrained")
    top, bottom = figure.subfigures(2, 1)
    result.audit.draw(top)
    left, right = bottom.subplots(1, 2)
    cpv.plotting.channel(result.chosen.randomised.channel, left)
    left.set_title(f"the optimal randomisation at t = {PROMISE:g} bits", fontsize=11)
    t = np.array(list(result.prices))
    fixed = [price.deterministic.distortion for price in result.prices.values()]
    free = [price.randomised.value for price in result.prices.values()]
    right.plot(t, fixed, "s", color="black", mfc="none", label="best intervals")
    right.plot(t, free, "o-", color="#0072B2", label="best randomisation (certified)")
    right.set(xlabel="t: no letter tells more   [bits]", ylabel="E |X − X̂|   [cm]", ylim=(0, None))
    right.set_title("what the promise costs", fontsize=11)
    right.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Audit, solve, print, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/medical_table.png"))
    out = parser.parse_args(arguments).out
    result = study()
    print(report(result), end="\n\n")
    draw(result, out)
    print(f"picture: {out}")
    return result


if __name__ == "__main__":
    main()
