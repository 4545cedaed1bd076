"""What is the most that may be told under a rule of every output?

To maximise what a release tells is no convex program.  Under rules that each output obeys by itself
it is a linear program over the extreme rays of these rules all the same, and its optimum is global
(Kairouz, Oh and Viswanath, JMLR 2016; Grosse, Saeidian and Oechtering, IEEE TIFS 2024).

Key X: marital status, 7 values, of the 32,561 records of the UCI Adult data set.  Confidential W:
sex, on which it depends strongly (widowed).

    maximise    I(X; Y)                                    over p(y | x), any number of outputs
    subject to  p(y | x) ≤ e^ε p(y | x')                   local privacy of X, or
                p(w | y) ≤ e^ε p(w)                        pointwise maximal leakage of W

Learn: how much of the possible randomised response, subsets and RAPPOR tell where the law is not
uniform; that a rule about W leaves nearly all of X to be told; how many values are released.

    python problems/most_useful.py        # prints, and writes output/most_useful.png
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import cvxprivacy as cpv
from cvxprivacy import mechanisms, style
from cvxprivacy.study import claim, run

EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
ABOUT_W = (0.01, 0.05, 0.1, 0.2, 0.4, 0.8)


def study():
    """Return the optima under both rules, and what mechanisms in use tell."""
    table = cpv.datasets.load_adult()
    source = cpv.DiscreteSource.from_table(table, sensitive="sex", key="marital-status")
    optima = {e: cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(e)]).solve() for e in EPSILONS}
    pointwise = {
        e: cpv.MostUsefulRelease(source, [cpv.PointwiseMaximalLeakage(e)]).solve() for e in ABOUT_W
    }
    values = {("optimum", e): best.value for e, best in optima.items()}
    for e in EPSILONS:
        for name, channel in (
            ("randomised response", mechanisms.randomised_response(source.x, e)),
            ("subsets of half", mechanisms.subset_selection(source.x, e, size=3)),
            ("RAPPOR", mechanisms.rappor(source.x, e)),
        ):
            joint = source.p_x[:, None] * channel.matrix
            values[name, e] = cpv.information.mutual_information(joint)
    values = pd.Series(values).unstack(0)
    return SimpleNamespace(source=source, optima=optima, pointwise=pointwise, values=values)


def report(result):
    """Set what is used beside what is possible, and say what is left under a rule about W."""
    source, values = result.source, result.values
    entropy = cpv.information.entropy(source.p_x)
    yield (
        f"{source.records:,} records, {len(source.x)} values, H(X) = {entropy:.4f} bits, "
        f"I(W; X) = {source.information():.4f} bits"
    )
    yield f"\nI(X; Y) [bits] by ε\n{values.to_string(float_format='{:.4f}'.format)}"
    for e, best in result.optima.items():
        used = values.loc[e].drop("optimum").max()
        yield claim(f"the best in use at ε = {e:g} [bits]", used, ("≤", best.upper), "the optimum")
    ratios = result.optima[1.0].channel.matrix
    yield claim("greatest ratio at ε = 1", (ratios.max(axis=0) / ratios.min(axis=0)).max(),
                ("≤", np.e * (1 + 1e-9)), "the rule")  # fmt: skip
    yield result.pointwise[0.1]
    rows = {}
    for e, best in result.pointwise.items():
        posterior = source.pmf @ best.channel.matrix
        posterior /= posterior.sum(axis=0)
        most = float((posterior / source.p_w[:, None]).max())
        yield claim(f"greatest p(w | y)/p(w) at ε = {e:g}", most, ("≤", np.exp(e) * (1 + 1e-9)),
                    "the rule")  # fmt: skip
        rows[e] = {
            "I(X; Y)": best.value, "of H(X)": best.value / entropy,
            "I(W; Y)": float(best.risk), "outputs": len(best.channel.outputs),
        }  # fmt: skip
    yield f"\nunder a rule about W\n{pd.DataFrame(rows).T.to_string(float_format='{:.4f}'.format)}"


def draw(result):
    """Draw what is told under both rules, and the best release at ε = 1."""
    source, entropy = result.source, cpv.information.entropy(result.source.p_x)
    titles = ("local privacy", r"the best release at $\varepsilon$ = 1", "a rule about sex")
    figure, (left, middle, right) = style.panels(*titles, height=3.2, width_ratios=(1.2, 1, 1))
    share = result.values.div(result.values["optimum"], axis=0)
    for name, look, x, y in (
        ("optimum", style.OPTIMUM, 0.05, 0.93),
        ("randomised response", style.PRACTICE, 0.3, 0.32),
        ("subsets of half", {**style.PRACTICE, "color": style.PURPLE, "marker": "s"}, 0.05, 0.76),
        ("RAPPOR", {**style.PRACTICE, "ls": ":", "mfc": "none"}, 0.72, 0.61),
    ):
        left.plot(share[name], **look)
        left.text(x, y, name, color=look["color"], transform=left.transAxes)
    left.set(xlabel=r"$\varepsilon$", ylabel="told, as a share of the most", ylim=(0, 1.1))
    matrix = result.optima[1.0].channel.matrix
    image = middle.imshow(matrix, vmin=0, cmap=style.MAP, aspect="auto")
    names = [name.replace("-spouse", "").replace("Married", "M.") for name in source.x]
    middle.set_yticks(range(len(names)), names)
    middle.set(xlabel="released value $y$", xticks=range(matrix.shape[1]))
    figure.colorbar(image, ax=middle, label="$p(y\\,|\\,x)$")
    shares = [best.value / entropy for best in result.pointwise.values()]
    right.plot(list(result.pointwise), shares, **style.OPTIMUM)
    right.set(xlabel=r"$\varepsilon$ of sex", ylabel="told of marital status, share of $H(X)$",
              ylim=(0, 1.05))  # fmt: skip
    return figure


if __name__ == "__main__":
    run(study, report, draw)
