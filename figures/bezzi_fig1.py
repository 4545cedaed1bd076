"""Tables 1–3 and Fig. 1 of Bezzi (Trans. Data Privacy 3, 2010): one-symbol information.

Twelve people, their height X and a diagnosis W (Table 2), heights released in bins of ten (Table
3).  What a record's bin x̃ tells about W, in two decompositions of I(X̃; W):

    I1(x̃) = Σ_w p(w|x̃) log2 p(w|x̃)/p(w)      surprise; t-closeness is I1 ≤ t
    I2(x̃) = H(W) − H(W|x̃)                    specific information; ℓ-diversity is I2 ≤ H(W) − log2 ℓ

and in two more, I3 and I4, of Table 1.  What this says of all four is put to laws of
(Y₁, Y₂, X₁, X₂) drawn at random: what holds has no defect beyond rounding,

    chain rule in x     f(x₁x₂; Y) − f(x₁; Y) − f(x₂; Y | x₁)
    chain rule in Y     f(x; Y₁Y₂) − f(x; Y₁) − f(x; Y₂ | Y₁), a mean over p(y₁|x), in I4 p(y₁),
                        in I2 of H(Y₂|y₁) over p(y₁) and of H(Y₂|y₁, x) over p(y₁|x)

Learn: one average hides opposite risks; which of the four can be added up; and that independent
attributes may tell together what none of them tells alone.

    python figures/bezzi_fig1.py              # prints, and writes output/bezzi_fig1.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc  # pip install cvxprivacy-sdc
from cvxprivacy import information, one_symbol, style
from cvxprivacy.study import claim, run

KINDS = {"I1": one_symbol.i1, "I2": one_symbol.i2, "I3": one_symbol.i3, "I4": one_symbol.i4}
PRINTED = {  # Table 1, of I1 to I4
    "positive": "yes, no, no, yes",
    "chain rule X": "yes, yes, yes, yes",
    "chain rule Y": "no, yes, no, yes/no",
    "average is I": "yes, yes, yes, no",
}
HELD = 1e-9  # bits: a defect below is rounding


def defects_of(law, kind):
    """Return how far each property fails; the law has axes (y₁, y₂), (x₁, x₂), shape (6, 6)."""
    f, of_y, of_x = KINDS[kind], law.reshape(2, 3, 6), law.reshape(6, 3, 2)
    whole, first = f(law.reshape(6, 6)), of_y.sum(axis=1)
    given_x1 = np.array([f(of_x[:, a]) for a in range(3)])
    split_x = whole.reshape(3, 2) - f(of_x.sum(axis=2))[:, None] - given_x1
    given_x, p = first / first.sum(axis=0), first.sum(axis=1, keepdims=True)
    parts = np.array([f(part) for part in of_y])
    h = np.array([[information.entropy(part.sum(axis=1))] for part in of_y])
    terms = {"I2": p * h - given_x * (h - parts), "I4": p * parts}.get(kind, given_x * parts)
    split_y = whole - f(first) - terms.sum(axis=0)
    average = whole @ first.sum(axis=0) - information.mutual_information(law.reshape(6, 6))
    return [max(0, -whole.min()), abs(split_x).max(), abs(split_y).max(), abs(average)]


def study(*, laws: int = 300, seed: int = 1):
    """Count the twelve, and put Table 1 to random laws."""
    people = cpv.datasets.load_bezzi()
    audit = sdc.audit(people, key="height", sensitive="diagnosis", bins={"height": 10})
    people["bin"] = audit.released.schema.bins["height"].named(people["height"].tolist())
    rng, defects = np.random.default_rng(seed), pd.DataFrame(0.0, list(KINDS), list(PRINTED))
    for _ in range(laws):
        spread = 10 ** rng.uniform(-1, 1, 6)  # some values of Y know their x, some do not
        given = np.array([rng.dirichlet(np.full(6, a)) for a in spread])
        law = 0.99 * rng.dirichlet(np.full(6, 0.5))[:, None] * given + 0.01 / 36
        for kind in KINDS:
            defects.loc[kind] = np.maximum(defects.loc[kind], defects_of(law, kind))
    people = people.assign(**{kind: audit.per_record(kind) for kind in KINDS})
    return SimpleNamespace(people=people, average=audit.after.plugin, defects=defects, laws=laws)


def report(result):
    """Compare with what the paper says."""
    people, mean, defects = result.people, result.average, result.defects
    yield people.round(4).to_string(index=False)
    high = {kind: set(people["name"][people[kind] > mean]) for kind in ("I1", "I2")}
    opposite = not high["I1"] & high["I2"] and high["I1"] | high["I2"] == set(people["name"])
    why = "of the two in the last bin one is ill: a surprise that leaves more uncertain; in the "
    why += "others all are well: little surprise, and nothing uncertain.  The text has no numbers"
    yield claim("people above the mean by I1, by I2", f"{len(high['I1'])}, the other "
                f"{len(high['I2'])}", "the opposite", "Fig. 1", why, agrees=opposite)  # fmt: skip
    for kind in high:
        yield claim(f"mean of {kind} over the records [bits]", people[kind].mean(), mean, "eq. 2")
    yield f"\nTable 1: largest defect over {result.laws} random laws [bits]; 0: below {HELD:.0e}"
    yield defects.where(defects > HELD, 0).round(3).to_string()
    why = "exchanged against I(x, Y), I4's “Yes/No” apart; §2.2: “surprise lacks additivity”"
    for name, printed in PRINTED.items():
        here = ", ".join("yes" if value < HELD else "no" for value in defects[name])
        yield claim(f"{name}: I1 to I4", here, printed, "Table 1", why * ("chain" in name))
    xor = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]]) / 4  # y = x¹ xor x², axes y, x¹, x²
    of = information.mutual_information
    both, single = of(xor.reshape(2, 4)), of(xor.sum(axis=2)) + of(xor.sum(axis=1))
    why = "the paper expects I(X¹; Y) + I(X²; Y); the chain rule has I(X²; Y | X¹) for the second"
    yield claim("I(X¹X²; Y), X¹, X² fair coins, Y their xor [bits]", both, single, "§2.2", why)


def draw(result):
    """Draw Fig. 1, and Table 1 with what was found."""
    titles = "one average, opposite risks (Fig. 1)", "Table 1, and the largest defect [bits]"
    figure, (left, right) = style.panels(*titles, height=3.1, width_ratios=(1.3, 1))
    people, at = result.people, np.arange(len(result.people))
    left.bar(at - 0.2, people["I1"], 0.4, color=style.GREY, ec="black", hatch="////")
    left.bar(at + 0.2, people["I2"], 0.4, color=style.LIGHT, ec="black")
    left.axhline(result.average, **style.BOUND)
    left.axhline(0, color="black", lw=0.6)
    left.text(9.4, 0.68, "$I_1$, surprise", ha="right")
    left.text(9.4, -0.4, "$I_2$, specific information", ha="right")
    left.text(11.7, result.average + 0.03, r"$I(W;\tilde X)$")
    left.set_xticks(at, people["name"] + ", " + people["diagnosis"], rotation=90)
    left.set(ylabel="information on the diagnosis [bits]", ylim=(-0.65, 1.1), xlim=(-0.8, 13.7),
             xlabel="person, diagnosis (Y: ill); above: height released [cm]")  # fmt: skip
    for bin_, places in people.groupby("bin").indices.items():
        left.text(places.mean(), 0.98, f"{bin_[1:4]}s", ha="center")
    printed = np.array([words.split(", ") for words in PRINTED.values()]).T
    differs = printed != np.where(result.defects < HELD, "yes", "no")
    right.imshow(differs, cmap=ListedColormap(["white", style.ORANGE]), aspect="auto", alpha=0.5)
    for (row, column), word in np.ndenumerate(printed):
        value = result.defects.iloc[row, column]
        said = f"{word}\n{value:.2f}" if value > HELD else f"{word}\n0"
        right.text(column, row, said, ha="center", va="center")
    right.set_xticks(range(4), ["positive", "chain\nrule X", "chain\nrule Y", "average\nis $I$"])
    right.set_yticks(range(4), [f"$I_{kind[1]}$" for kind in KINDS])
    right.set(xlabel="shaded: the defect refutes the word")
    return figure


if __name__ == "__main__":
    run(study, report, draw)
