"""Tables 2 and 3 of Mateo-Sanz et al. 2005: information loss of masked Census tables.

Mateo-Sanz, Domingo-Ferrer and Sebé, *Probabilistic Information Loss Measures in Confidentiality
Protection of Continuous Microdata*, Data Mining and Knowledge Discovery 11, 2005.  A statistic θ̂
of the masked table is held against the original's θ as if it were that of a random sample,

    pil(θ̂) = 2 P(0 ≤ Z ≤ |θ̂ − θ| / √Var θ̂),   Z normal,                                  (1)

averaged over attributes or pairs of them.  Table 3 has seven maskings of Census, grouped in a way
not stated; here by MDAV on standardised data, all attributes, or 3, 3, 3, 4 in the file's order.
Random methods are repeated over seeds, others over orders of the records.  Table 2: PIL by IL.

Learn: that five losses say different things of one masking; how far a published number can be
reproduced; that ranks agree where numbers do not.

    python figures/mateosanz_tables.py        # prints, and writes output/mateosanz_tables.png
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.special import erf

import cvxprivacy as cpv
from cvxprivacy import style
from cvxprivacy.study import claim, run
from cvxprivacy_sdc import loss, masking  # pip install cvxprivacy-sdc

PARTS = ["PIL(Q)", "PIL(mean)", "PIL(var)", "PIL(cov)", "PIL(r)"]
PAPER = pd.DataFrame.from_dict({  # Table 3, as printed
    "Rankswap7": ("0", "0", "0", "0.4540", "0.5933"),
    "Mic3mul7": ("0.3640", "0", "0.4403", "0.3022", "0.3309"),
    "Micmul3": ("0.4987", "0", "0.7004", "0.1846", "0.5341"),
    "Noise16": ("0.4524", "0.1608", "0.4447", "0.1342", "0.4929"),
    "Scal_Mic3mul7": ("0.3760", "0", "0", "0.2138", "0.3309"),
    "Scal_Micmul3": ("0.4979", "0", "0", "0.3631", "0.5341"),
    "Scal_Noise16": ("0.4467", "0", "0", "0.3271", "0.4929"),
}, orient="index", columns=PARTS)  # fmt: skip
FIXED = [name for name in PAPER.index if "Mic" in name]  # no chance but the order of the records
TABLE_2 = {  # Pearson's and Spearman's
    "PIL(Q) IL1": (0.693, 0.902), "PIL(mean) IL2": (0.918, 1.000), "PIL(var) IL3": (0.531, 0.977),
    "PIL(cov) IL4": (0.592, 0.950), "PIL(r) IL5": (0.781, 0.995), "PIL IL": (0.824, 0.955),
}  # fmt: skip
QUANTILES = "averaged_inverted_cdf", "inverted_cdf", "weibull", "linear", "median_unbiased"


def methods(seed):
    """Return the maskings of Table 3, and noise of that size correlated as the data are."""
    found = {"Mic3mul7": masking.MDAV(7, groups=3), "Micmul3": masking.MDAV(3)}
    for name in ("Noise16", "Corr16"):
        found[name] = masking.AdditiveNoise(0.16, correlated=name[0] == "C", random_state=seed)
    found |= {f"Scal_{name}": masking.Rescaled(each) for name, each in found.items()}
    return {"Rankswap7": masking.RankSwapping(7, random_state=seed)} | found


def maskings(step):
    """Yield family and method of the maskings of Table 2; all 120 if ``step`` is 1."""
    for i in range(1, 21, step):
        yield "rank swapping", masking.RankSwapping(i, random_state=i)
        yield "noise", masking.AdditiveNoise(i / 50, random_state=i)
    for k in range(3, 11, step):
        yield from (("microaggregation", masking.MDAV(k, groups=n)) for n in (*range(1, 7), None))
        yield "microaggregation", masking.HansenMukherjee(k)
        yield "μ-Approx", masking.MuApprox(k)
        yield "rescaled", masking.Rescaled(masking.MDAV(k))


def quantile_loss(x, y, kind, portion, own):
    """Return PIL(Q) with ε = range/portion, counting the quantile's own record or not."""
    q = np.arange(1, 20) / 20
    at, there = (np.quantile(table, q, axis=0, method=kind) for table in (x, y))
    half = np.ptp(x, axis=0) / portion
    inside = (np.abs(x - at[:, None]) < half).sum(axis=1) - (own == "not counted")
    height = np.maximum(inside, 0) / len(x) / (2 * half)
    return erf(np.abs(there - at) * height / np.sqrt(2 * q * (1 - q) / len(x))[:, None]).mean()


def study(*, quick: bool = False):
    """Measure; ``quick`` takes fewer repeats, maskings and readings."""
    census, runs, many = cpv.datasets.load_census(), [], []
    for i, name in product(range(2 if quick else 50), methods(0)):
        table = census.sample(frac=1, random_state=i) if name in FIXED and i else census
        found = loss.probabilistic_loss(table, methods(i)[name].fit_transform(table))
        runs.append({"method": name, **found.parts, "PIL": found.total})
    for family, each in maskings(7 if quick else 1):
        masked = each.fit_transform(census)
        new, old = loss.probabilistic_loss(census, masked), loss.information_loss(census, masked)
        many.append({"family": family, **new.parts, "PIL": new.total, **old.parts, "IL": old.total})
    tables = [methods(0)[name].fit_transform(census).to_numpy() for name in FIXED]
    tried = product(QUANTILES, (1000, 100, 200, 500, 2000, 5000), ("counted", "not counted"))
    x = census.to_numpy(float)
    readings = pd.DataFrame({e: [quantile_loss(x, y, *e) for y in tables] for e in tried}, FIXED).T
    readings["off by"] = (readings - PAPER.loc[FIXED, "PIL(Q)"].astype(float)).abs().max(axis=1)
    off = 0.16 * np.random.default_rng(0).standard_normal((400_000, census.shape[1]))
    chance = (erf(np.abs(off) / np.sqrt(2)).mean(axis=1) >= float(PAPER.iat[3, 1])).mean()
    return SimpleNamespace(runs=pd.DataFrame(runs).groupby("method", sort=False), chance=chance,
                           many=pd.DataFrame(many), readings=readings.round(4))  # fmt: skip


def report(result):
    """Compare with what the paper says."""
    means, many, readings = result.runs.mean(), result.many, result.readings
    swaps = result.runs.get_group("Rankswap7")["PIL"]
    yield f"means over {len(swaps)} seeds or orders; below, ranges, to a unit of the last digit"
    yield means.round(4)
    reasons = {"PIL(Q)": f"none of {len(readings)} readings of §4.4 gives all: below", "PIL(mean)":
               f"means that err by N(0, .16²) s.e. reach it in {result.chance:.2%}"}  # fmt: skip
    for (name, part), printed in PAPER.stack().items():
        ends = tuple(result.runs.get_group(name)[part].agg(["min", "max"]))
        same = ends[0] - 1e-4 <= float(printed) <= ends[1] + 1e-4
        why = "" if same else reasons.get(part, "beyond the range of the repeats")
        yield claim(f"{name} {part}", ends, printed, "Table 3", why, agrees=same)
    best = means.loc[PAPER.index]
    less = f"{(swaps < best['PIL'].min()).sum()} of {len(swaps)} seeds of Rankswap7 have less"
    yield claim("least PIL, of means", best["PIL"].idxmin(), "Scal_Mic3mul7", "§5", less)
    yield claim("least PIL(Q)", best["PIL(Q)"].idxmin(), "Rankswap7", "§5")
    for part, pair, said, why in (
        ("PIL(cov)", "Micmul3 Scal_Micmul3", "no significant increase", "so by Table 3 itself"),
        ("PIL(cov)", "Noise16 Corr16", "probably lower", "its covariances are 1 + .16² X's"),
        ("PIL(r)", "Noise16 Corr16", "probably lower", ""),
        ("PIL(cov)", "Scal_Noise16 Scal_Corr16", "probably lower", "rescaling undoes the factor"),
    ):
        before, after = means.loc[pair.split(), part]
        yield claim(f"{part}, {pair.replace(' ', ' → ')}", f"{before:.3f} → {after:.3f}", said,
                    "§5", why, agrees=after <= before)  # fmt: skip
    high = f"PIL(cov) is 0.75 or more for {(many['PIL(cov)'] >= 0.75).sum()} of {len(many)}"
    yield claim("greatest eq. 6 of a masking", many["IL5"].max() / 2, "≤ 0.25", "Rem. 4.2", high)
    yield f"\nPIL(Q) in {len(readings)} ways, own record counted or not: ε stated; nearest of all"
    yield readings.xs(1000, level=1).sort_values("off by")
    yield readings.nsmallest(3, "off by")
    yield f"\nTable 2: the paper's 109 maskings, {len(many)} here, some by μ-Approx, which is later"
    table = pd.DataFrame(TABLE_2, ["Pearson, paper", "Spearman, paper"]).T
    for how in ("Pearson", "Spearman"):
        table[f"{how}, here"] = [many[pair.split()].corr(how.lower()).iat[0, 1] for pair in TABLE_2]
    yield table.sort_index(axis=1).round(3)


def draw(result):
    """Draw Table 3, ours beside the paper's, and PIL beside IL over many maskings."""
    figure, axes = style.panels(*PARTS, "PIL beside IL", height=4.6, rows=2)
    for ax, part in zip(axes, PARTS, strict=False):
        own = result.runs[part].agg(["min", "mean", "max"])
        ax.hlines(own.index, own["min"], own["max"], color=style.VERMILION)
        ax.plot(own["mean"], own.index, **style.PRACTICE | {"ls": ""}, label="here: mean, range")
        ax.plot(PAPER[part].astype(float), PAPER.index, "k|", ms=9, mew=1, label="paper, no Corr16")
        ax.set(xlim=(-0.04, 0.84), ylim=(8.5, -0.5), xlabel="loss [probability]")
        ax.tick_params(labelleft=ax in axes[::3])
    axes[1].legend(loc="upper right")
    for family, some in result.many.groupby("family"):
        color, sign = style.MASKINGS.get(family, "kx")
        axes[5].plot(some["IL"], some["PIL"], sign, ms=3, color=color, label=family)
    axes[5].set(xlabel="IL [unbounded]", ylabel="PIL [%]", ylim=(0, None))
    axes[5].legend(loc="lower right", handletextpad=0, labelspacing=0.2, borderaxespad=0)
    return figure


if __name__ == "__main__":
    run(study, report, draw)
