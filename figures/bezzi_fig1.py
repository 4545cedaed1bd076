"""Tables 1–3 and Fig. 1 of Bezzi (Trans. Data Privacy 3, 2010): one-symbol information.

Twelve people, their height X and a diagnosis W (Table 2); heights are released in bins of ten
(Table 3).  What a record's bin x̃ tells about W, in two decompositions of I(X̃; W):

    I1(x̃) = Σ_w p(w|x̃) log2 p(w|x̃)/p(w)      surprise, t-closeness
    I2(x̃) = H(W) − H(W|x̃)                    specific information, ℓ-diversity

and in two more, I3 and I4, of which Table 1 states what they add up to.  Each statement is put to
laws p(w₁, w₂, x₁, x₂) drawn at random: a property that holds has no defect beyond rounding, one
that fails has a large one.

Learn: one average hides opposite risks of single records; and which of the four can be added up.

    python figures/bezzi_fig1.py              # prints, and writes output/bezzi_fig1.png
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy.model import one_symbol
from cvxprivacy.model.information import entropy, mutual_information

KINDS = {
    "I1": one_symbol.i1, "I2": one_symbol.i2, "I3": one_symbol.i3, "I4": one_symbol.i4,
}  # fmt: skip
PRINTED = {  # Table 1: positive, chain rules of X and Y, averages to I
    "I1": ("Yes", "Yes", "No", "Yes"), "I2": ("No", "Yes", "Yes", "Yes"),
    "I3": ("No", "Yes", "No", "Yes"), "I4": ("Yes", "Yes", "Yes/No", "No"),
}  # fmt: skip
PROPERTIES = ("positive", "chain rule, split W", "chain rule, split x", "averages to I")
HELD = 1e-9  # a defect under this is rounding


@dataclass
class Study:
    """The audit of the twelve, the measures per record, and the defects of Table 1."""

    people: pd.DataFrame
    audit: cpv.Audit
    defects: dict[str, dict[str, float]]  # kind → property → largest violation
    laws: int

    def per_record(self, kind: str) -> np.ndarray:
        """I1 … I4 of each record, in bits."""
        return self.audit.per_record(kind)


def split_average(law: np.ndarray, kind: str) -> np.ndarray:
    """Return f(x; W₁W₂) − f(x; W₁) − f(x; W₂|W₁) for each x, law of shape (|W₁|, |W₂|, |X|).

    The conditional term averages the same measure of each law p(w₂, x | w₁), with p(w₁|x), in I4
    with p(w₁); that of I2 has both weights.
    """
    f = KINDS[kind]
    given = law.sum(axis=1)  # (w1, x)
    if kind == "I2":
        before = sum(part.sum() * entropy(part.sum(axis=1)) for part in law)
        after = [
            sum(given[a, x] * entropy(law[a, :, x]) for a in range(len(law))) / given[:, x].sum()
            for x in range(law.shape[2])
        ]
        conditional = before - np.array(after)
    else:
        weight = given / given.sum(axis=0) if kind != "I4" else given.sum(axis=1, keepdims=True)
        conditional = sum(weight[a] * f(part) for a, part in enumerate(law))
    joint = f(law.reshape(-1, law.shape[2]))
    return joint - f(given) - conditional


def split_symbol(law: np.ndarray, kind: str) -> np.ndarray:
    """Return f(x₁x₂; W) − f(x₁; W) − f(x₂; W | x₁), law of shape (|W|, |X₁|, |X₂|)."""
    f = KINDS[kind]
    joint = f(law.reshape(len(law), -1)).reshape(law.shape[1:])
    conditional = np.array([f(law[:, a]) for a in range(law.shape[1])])
    return joint - f(law.sum(axis=2))[:, None] - conditional


def defects(laws: int, seed: int = 1) -> dict[str, dict[str, float]]:
    """Return the largest violation of each property over random laws, in bits."""
    rng = np.random.default_rng(seed)
    found = {kind: dict.fromkeys(PROPERTIES, 0.0) for kind in KINDS}
    for _ in range(laws):
        spread = 10 ** rng.uniform(-1, 1, 6)  # some values of W know their x, some do not
        given = np.array([rng.dirichlet(np.full(6, a)) for a in spread])
        law = rng.dirichlet(np.full(6, 0.5))[:, None] * given
        law = (0.99 * law + 0.01 / 36).reshape(2, 3, 3, 2)  # w1, w2, x1, x2
        of_w = law.reshape(2, 3, 6)
        of_x = law.reshape(6, 3, 2)
        flat = law.reshape(6, 6)
        for kind, f in KINDS.items():
            average = f(flat) @ flat.sum(axis=0) - mutual_information(flat)
            seen = (
                max(0.0, -f(flat).min()),
                np.abs(split_average(of_w, kind)).max(),
                np.abs(split_symbol(of_x, kind)).max(),
                abs(average),
            )
            for name, value in zip(PROPERTIES, seen, strict=True):
                found[kind][name] = max(found[kind][name], float(value))
    return found


def study(*, quick: bool = False) -> Study:
    """Count the twelve, and try Table 1 on random laws."""
    table, laws = cpv.datasets.load_bezzi(), 20 if quick else 500
    audit = cpv.audit(table, key="height", sensitive="diagnosis", bins={"height": 10})
    return Study(table, audit, defects(laws), laws)


def report(result: Study) -> str:
    """Compare with what the paper says."""
    audit = result.audit
    i1, i2 = (result.per_record(kind) for kind in ("I1", "I2"))
    mean = audit.after.plugin
    lines = [
        "Tables 1–3 and Fig. 1 of Bezzi 2010 (bits)",
        "",
        f"{'name':<9}{'height':>7}  {'released':<12}{'W':<3}{'I1':>8}{'I2':>9}{'I3':>9}{'I4':>9}",
    ]
    bins = audit.released.schema.bins["height"]
    columns = [result.per_record(kind) for kind in KINDS]
    for row, *values in zip(result.people.itertuples(), *columns, strict=True):
        label = bins.named([row.height])[0]
        said = "".join(f"{v:>9.4f}" for v in values[1:])
        lines.append(
            f"{row.name:<9}{row.height:>7}  {label:<12}{row.diagnosis:<3}{values[0]:>8.4f}{said}"
        )
    low, high = (np.unique(v.round(4)) for v in (i1, i2))
    lines += [
        "",
        "paper: Fig. 1, without numbers: the groups that I2 holds risky have a low I1, and vice",
        "       versa; both average to I(X̃; W)",
        f"here:  I1 is {low[0]:.4f} for {int((i1 < 0.5).sum())} people and {low[1]:.4f} for the "
        f"{int((i1 > 0.5).sum())} of the last bin, I2 is {high[1]:.4f} and {high[0]:.4f}",
        f"       averages {i1.mean():.4f} and {i2.mean():.4f}; I(X̃; W) = {mean:.4f}",
        "why:   the same.  In the last bin one of two is ill: the surprise is great, and yet the",
        "       diagnosis is less certain than before; in the others everybody is well, which is",
        "       no surprise and leaves nothing uncertain",
        "",
        f"Table 1, largest defect over {result.laws} random laws (bits); 0 is less than {HELD:.0e}",
        f"{'':<4}" + "".join(f"{name:>22}" for name in PROPERTIES) + "   paper: pos, X, Y, average",
    ]
    for kind, values in result.defects.items():
        said = "".join(
            f"{'0' if value < HELD else format(value, '.3f'):>22}" for value in values.values()
        )
        lines.append(f"{kind:<4}{said}   {', '.join(PRINTED[kind])}")
    xor = np.array([[0.25, 0, 0, 0.25], [0, 0.25, 0.25, 0]])  # w = x1 xor x2
    single = xor.reshape(2, 2, 2).sum(axis=2)
    lines += [
        "",
        "paper: I1 has the chain rule in X and not in Y; I3 likewise; I4 in X, in Y yes and no",
        "here:  split the averaged attribute (the paper's Y) and all four have it; split the",
        "       symbol (its X) and only I2 has",
        "why:   the table's two columns are exchanged against its own notation I(x, Y)",
        "",
        "paper: for two independent X¹, X², I({X¹, X²}, Y) = I(X¹, Y) + I(X², Y) is expected",
        f"here:  Y = X¹ xor X²: {mutual_information(xor):g} bit against "
        f"{2 * mutual_information(single):g}",
        "why:   the chain rule has I(X²; Y | X¹) on the right; independence of X¹ and X² does not",
        "       make it I(X²; Y)",
    ]
    return "\n".join(lines)


def draw(result: Study, path: Path) -> None:
    """Draw Fig. 1, and the defects of Table 1."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 2, figsize=(14, 5.2), layout="constrained", width_ratios=(1.25, 1)
    )
    ax, at = axes[0], np.arange(len(result.people))
    for kind, color, hatch, side in (("I1", "#5f5f5f", "//", -1), ("I2", "#cfcfcf", "", 1)):
        ax.bar(at + side * 0.2, result.per_record(kind), 0.4, color=color, edgecolor="black",
               hatch=hatch, label=f"$I_{kind[1]}$")  # fmt: skip
    ax.axhline(result.audit.after.plugin, color="#B00020", ls="--",
               label=r"$I(\tilde X;W)$, the mean of both")  # fmt: skip
    ax.axhline(0, color="black", lw=0.6)
    bins = result.audit.released.schema.bins["height"]
    names = [
        f"{row.name} ({bins.named([row.height])[0]}, {row.diagnosis})"
        for row in result.people.itertuples()
    ]
    ax.set_xticks(at, names, rotation=40, ha="right", fontsize=9)
    ax.set_ylabel("information about the diagnosis   [bits]")
    ax.set_title("Fig. 1: opposite risks behind one average", fontsize=11)
    ax.legend(fontsize=10, loc="upper left")

    ax, floor = axes[1], 1e-17
    for i, name in enumerate(PROPERTIES):
        for j, (kind, values) in enumerate(result.defects.items()):
            value = max(values[name], floor)
            color = "#009E73" if value < HELD else "#D55E00"
            ax.plot(value, 4 * (3 - i) + 0.75 * (3 - j), "o" if value < HELD else "s", color=color)
            ax.annotate(f"$I_{kind[1]}$", (value, 4 * (3 - i) + 0.75 * (3 - j)), (7, -4),
                        textcoords="offset points", fontsize=10)  # fmt: skip
    ax.axvline(HELD, color="black", lw=0.8, ls=":")
    for i in range(1, 4):
        ax.axhline(4 * i - 0.85, color="#bbbbbb", lw=0.6)
    ax.set(xscale="log", xlim=(floor / 4, 30), ylim=(-0.9, 15.1))
    ax.set_yticks([4 * (3 - i) + 1.1 for i in range(4)], PROPERTIES)
    ax.set_xlabel(f"largest defect over {result.laws} random laws   [bits]")
    ax.set_title("Table 1: green holds, orange fails", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Study:
    """Compute, compare, draw; return the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("output/bezzi_fig1.png"))
    parser.add_argument("--quick", action="store_true", help="fewer laws")
    given = parser.parse_args(arguments)
    result = study(quick=given.quick)
    print(report(result), end="\n\n")
    draw(result, given.out)
    print(f"picture: {given.out}")
    return result


if __name__ == "__main__":
    main()
