"""Masking methods beside the certified optimum: what each leaks, what it costs, how far it is.

The key attributes are cut into cells, each of which stands for its mean, and the confidential
ones into classes.  The frontier is the certified optimum of the counted law, proved for releases
that see X's cell alone.  A method's mark is counted from one masked table, cut likewise: it lies
beside the frontier, and may lie on either side of it, by sampling or because the method used more
than the cell.  (Rebollo-Monedero, Forné and Domingo-Ferrer, IEEE TKDE 22(11), 2010, compare
methods with the quadratic-Gaussian bound in §6.2; the frontier is the optimum of their eq. 3.)
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.formulations.gaussian import QuadraticGaussian
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.microdata.loss import information_loss, probabilistic_loss
from cvxprivacy.microdata.partitions import mdav
from cvxprivacy.microdata.risk import (
    Leakage,
    distance_linkage,
    interval_disclosure,
    leakage,
    score,
)
from cvxprivacy.microdata.tables import deviations, framed, is_numeric, numbers, paired
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.information import bias_in_words, differential_entropy, mutual_information
from cvxprivacy.tables.frames import cell, listed, narwhal, plain
from cvxprivacy.validation import array, present, whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from cvxprivacy.results.solution import GaussianSolution, Solution

__all__ = ["Comparison", "Point", "compare"]

# Shares of the greatest distortion, and of the variance for the QGLB.
SHARES = (0.002, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8)
GRID = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
OPTIMUM = "optimal channel"


@dataclass(frozen=True)
class Point:
    """A masked table, measured.

    Attributes
    ----------
    method, setting : str
        The curve it belongs to, and where on it.
    distortion : float
        E ‖x − x̂‖² with each attribute in units of its variance, divided by their number: the
        mean share of the variance that is error.
    leakage : Leakage
        I(W; X̂) of the records by nearest neighbours, W and X̂ as they are.
    cut : float
        The same of the table cut into cells: x̂ is the mean of its cell.
    risk : float
        I(W; X̂) of the table cut into cells, as counted, biased upwards in small samples.
    optimum : float
        What releases of this cut distortion that see X's cell alone leak at least, as certified.
    linkage, interval, pil, il, score : float
        :func:`~cvxprivacy.microdata.risk.distance_linkage`, ``interval_disclosure``, the totals
        of ``probabilistic_loss`` and ``information_loss``, and ``score`` with PIL.
    """

    method: str
    setting: str
    distortion: float
    leakage: Leakage
    cut: float
    risk: float
    optimum: float
    linkage: float
    interval: float
    pil: float
    il: float
    score: float

    @property
    def excess(self) -> float:
        """Risk above the certified optimum of the same cut distortion; may be negative."""
        return self.risk - self.optimum


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods in the plane of risk and distortion, with the bounds of the plane.

    Attributes
    ----------
    points : list of Point
        In the order given; the optimal channels, applied to the table, last.
    source : DiscreteSource
        The counted law of classes and cells.
    frontier : list of Solution
        Certified optima of that law.
    within : float
        Distortion within the cells, which every release of cells has.
    gaussian : dict of float to GaussianSolution
        By distortion, the QGLB of the table as it is, uncut, from estimates of h(W) and the
        moments; without ``entropy`` the optimum of a Gaussian table with these moments.  Empty
        if W is no number.
    entropy : float or None
        h(W) as estimated by nearest neighbours, W in standard deviations; None if W has no
        density.
    units : {"bits", "nats"}
    """

    points: list[Point]
    source: DiscreteSource
    frontier: list[Solution]
    within: float
    gaussian: dict[float, GaussianSolution]
    entropy: float | None
    units: str

    @property
    def information(self) -> float:
        """I(W; X) of the counted law, what an untouched table leaks."""
        return self.source.information(units=self.units)

    def lower(self, cut: npt.ArrayLike) -> np.ndarray:
        """Return what releases of this cut distortion that see X's cell alone leak at least.

        Certified.  None of them has less than ``within``, where I(W; X) is returned.
        """
        at = np.asarray(cut) - self.within
        lines = [s.lower - s.duals["budget"] * (at - _budget(s)) for s in self.frontier]
        return np.where(at < 0, self.information, np.clip(np.max(lines, axis=0), 0.0, None))

    def upper(self, cut: npt.ArrayLike) -> np.ndarray:
        """Return what mixtures of the certified optima leak."""
        ends = [(0.0, self.information), *((_budget(s), s.value) for s in self.frontier)]
        ends.append((1 - self.within, 0.0))
        return np.interp(np.asarray(cut) - self.within, *np.array(ends).T)

    def chord(self, cut: npt.ArrayLike) -> np.ndarray:
        """MIUB: what the better of "release the cell" and "release the mean" leaks, mixed."""
        share = (np.asarray(cut) - self.within) / (1 - self.within)
        return self.information * np.clip(1 - share, 0.0, 1.0)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point, a pandas frame."""
        import pandas as pd

        rows = [
            {
                "method": p.method,
                "setting": p.setting,
                "distortion": p.distortion,
                f"leakage [{self.units}]": p.leakage.value,
                "cut distortion": p.cut,
                f"risk [{self.units}]": p.risk,
                "optimum": p.optimum,
                "excess": p.excess,
                "linked": p.linkage,
                "interval": p.interval,
                "PIL": p.pil,
                "IL": p.il,
                "score": p.score,
            }
            for p in self.points
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        curves = len({p.method for p in self.points})
        return f"Comparison({curves} methods, {len(self.points)} tables, {self.source!r})"

    def __str__(self) -> str:
        table = self.to_frame().to_string(index=False, float_format="{:.4f}".format)
        notes = [
            f"  risk: I(W; X̂) counted from the table, X̂ cut into {len(self.source.x)} cells and W "
            f"into {len(self.source.w)} classes",
            f"  untouched, the cells leak {self.information:.4f} {self.units}, "
            f"{bias_in_words(self.source.bias(units=self.units) or 0.0)}; every risk has its own; "
            f"{self.within:.1%} of the variance lies within cells",
            "  optimum: no release that sees X's cell alone leaks less at this cut distortion "
            "(certified)",
            "  excess: risk less optimum; below zero by sampling, or as the method used more than "
            "the cell",
            "  leakage: of the records as they are, by nearest neighbours",
        ]
        return "\n".join([repr(self), table, *notes])

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw risk against distortion: bounds, frontier and every method's curve.

        Filled marks are tables cut into cells, beside the frontier of releases that see X's cell
        alone; crosses are the records as they are, beside the QGLB, both of them estimates.
        """
        import matplotlib.pyplot as plt

        ax = plt.gca() if ax is None else ax
        fine = np.linspace(self.within, 1.0, 400)
        ax.fill_between(fine, self.lower(fine), self.upper(fine), color="0.35", alpha=0.45)
        ends = [(self.within + _budget(s), s.value) for s in self.frontier]
        ax.plot(fine, self.upper(fine), color="0.1", lw=1.2)
        label = "frontier of releases of X's cell, certified"
        ax.plot(*zip(*ends, strict=True), ".-", color="0.1", ms=5, lw=1.2, label=label)
        ax.plot(fine, self.chord(fine), "k--", lw=1.0, label="MIUB: the cell, or the mean")
        if self.gaussian:
            label = (
                "QGLB, from estimates of h(W) and Σ"
                if self.entropy is not None
                else "optimum, if Gaussian"
            )
            bound = [max(s.lower, 0.0) for s in self.gaussian.values()]
            ax.plot(list(self.gaussian), bound, "k-.", lw=1.0, label=label)
        curves = dict.fromkeys(p.method for p in self.points if p.method != OPTIMUM)
        for i, name in enumerate(curves):
            points = [p for p in self.points if p.method == name]
            color, mark = f"C{i % 10}", "osD^v<>P"[i % 8]
            ax.plot(
                [p.cut for p in points], [p.risk for p in points], mark + "-", ms=5.5, color=color,
                label=name,
            )  # fmt: skip
            ax.plot(
                [p.distortion for p in points], [p.leakage.value for p in points], "x", ms=5,
                color=color, alpha=0.6,
            )  # fmt: skip
        ax.plot([], [], "x", ms=5, color="0.3", label="the same, records as they are")
        ax.set_xlim(0.0, max(1.0, *(p.cut for p in self.points)) * 1.02)
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("distortion [share of the variance]")
        ax.set_ylabel(f"risk $I(W; \\hat X)$ [{self.units}]")
        return ax


def compare(
    original: Any,
    methods: Mapping[str, Any],
    *,
    sensitive: Hashable | Sequence[Hashable],
    key: Hashable | Sequence[Hashable],
    cells: int = 64,
    classes: int = 8,
    shares: Sequence[float] = SHARES,
    units: str = "bits",
    seed: int = 0,
) -> Comparison:
    """Put masking methods beside the certified optimum.

    Parameters
    ----------
    original : frame
        In memory, of any flavour.
    methods : mapping of name to table, estimator, or several of either
        A masked table, with the key columns and record i in row i; or what has
        ``fit_transform``, such as the estimators of :mod:`cvxprivacy.microdata.masking`, which
        is given the key columns, and the classes of W as y.  A list, or a mapping of setting to
        either, is a curve.  Estimators are copied; a random one without a state is given ``seed``.
    sensitive : column name, or several
        W.
    key : column name, or several
        X, columns of numbers, which the methods mask.
    cells, classes : int
        Cells of X and classes of W at most.  Cells are those of k-means, in standard deviations;
        a confidential column of numbers is cut at its quantiles, letters stay.
    shares : sequence of float
        Distortions, as shares > 0 and ≤ 1 of the greatest, at which the optimum is certified.
    units : {"bits", "nats"}
    seed : int
        Of the draws of the optimal channels, and of methods without a state of their own.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        For unknown columns, key columns that are not numbers or are constant, missing values, or
        masked tables that do not fit.
    """
    if not framed(original, "original"):
        problem = f"a {type(original).__name__}"
        raise InputError("original", problem, "pass a frame with columns")
    if not isinstance(methods, Mapping) or not methods:
        raise InputError("methods", f"{methods!r}", "pass {name: masked table or estimator}")
    if OPTIMUM in methods:
        raise InputError("methods", f"{OPTIMUM!r} is the frontier's own name", "name it otherwise")
    remedy = "pass numbers > 0 and ≤ 1"
    parts = np.sort(array(list(np.atleast_1d(shares)), "shares", remedy, axes=(1,)))
    if not (len(parts) and parts[0] > 0 and parts[-1] <= 1):
        raise InputError("shares", f"{parts.tolist()}", remedy)
    names = listed(key, "key")
    frame = narwhal(original)
    assert isinstance(frame, nw.DataFrame)
    data, _ = numbers(original, "original", names)
    variance = data.var(axis=0)
    for name, column in zip(names, data.T, strict=True):
        if np.ptp(column) == 0:
            raise InputError("key", f"column {name!r} is constant", "leave it out", value=name)
    hidden = listed(sensitive, "sensitive")
    twice = next((name for name in hidden if hidden.count(name) > 1), None)
    if twice is not None:
        raise InputError("sensitive", f"{twice!r} is named twice", "name it once", value=twice)
    shared = next((name for name in names if name in hidden), None)
    if shared is not None:
        problem = f"column {shared!r} is confidential, too"
        raise InputError("key", problem, "name the columns that are masked", value=shared)
    w = _classes(frame, hidden, whole(classes, "classes", least=2))
    cell_of = _cells(data, whole(cells, "cells", least=2))
    x = cell_of(data)
    points = np.array([data[x == i].mean(axis=0) for i in range(int(x.max()) + 1)])
    within = float(((data - points[x]) ** 2 / variance).mean())
    counts = np.zeros((int(w.max()) + 1, len(points)))
    np.add.at(counts, (w, x), 1)
    source = DiscreteSource.from_counts(counts, names=("W", "X"))
    letters = np.vstack([points, data.mean(axis=0)])
    error = ((points[:, None] - letters) ** 2 / variance).mean(axis=2)
    frontier = _frontier(source, error, parts, units)
    bare = Comparison([], source, frontier, within, {}, None, units)

    def measured(method: str, setting: str, masked: Any) -> Point:
        before, after, _ = paired(chosen, masked)
        released = cell_of(after)
        joint = np.zeros_like(counts)
        np.add.at(joint, (w, released), 1 / len(w))
        cut = float(((data - points[released]) ** 2 / variance).mean())
        pil = probabilistic_loss(before, after).total
        linkage, interval = distance_linkage(before, after), interval_disclosure(before, after)
        return Point(
            method,
            setting,
            float(((before - after) ** 2 / variance).mean()),
            leakage(values, after, method="neighbours", units=units),
            cut,
            mutual_information(joint, units=units),
            float(bare.lower(cut)),
            linkage,
            interval,
            pil,
            information_loss(before, after).total,
            score(pil, linkage=linkage, interval=interval),
        )

    chosen, values = (nw.to_native(frame.select(*some)) for some in (names, hidden))
    found = []
    for method, given in methods.items():
        for setting, each in _curve(given):
            try:
                found.append(measured(str(method), setting, _masked(each, chosen, w, seed)))
            except InputError as problem:
                said = f"{problem.argument}: {problem.problem}"
                raise InputError("methods", said, problem.remedy, where=method) from None
    for share, solution in zip(parts, frontier, strict=True):
        drawn = solution.release.apply(x, seed=seed)
        found.append(measured(OPTIMUM, f"D = {share:g} of most", letters[drawn]))
    gaussian, entropy = _gaussian(original, hidden, names, units)
    return Comparison(found, source, frontier, within, gaussian, entropy, units)


def _classes(frame: nw.DataFrame[Any], names: Sequence[str], most: int) -> npt.NDArray[np.int64]:
    """Return each record's class of W: numbers cut at quantiles, letters as they are."""
    columns, parts = [], max(2, int(most ** (1 / len(names)) + 1e-9))
    for name in names:
        present(name, frame.columns, "sensitive")
        column = plain(frame[name])
        if None in column:
            where = (column.index(None), name)
            raise InputError("sensitive", "a missing value", "fill or drop it", where=where)
        if len(set(column)) > parts and is_numeric(frame[name]):
            given = numbers(frame, "original", [name])[0][:, 0]
            ends = np.quantile(given, np.arange(1, parts) / parts, method="inverted_cdf")
            column = np.searchsorted(np.unique(ends), given, side="left").tolist()
        columns.append(column)
    place: dict[Any, int] = {}
    rows = [cell(row) for row in zip(*columns, strict=True)]
    return np.array([place.setdefault(row, len(place)) for row in rows])


def _cells(data: np.ndarray, most: int) -> Callable[[np.ndarray], npt.NDArray[np.int64]]:
    """Return what finds each record's cell: the nearest of the means of k-means."""
    from scipy.cluster.vq import kmeans2
    from scipy.spatial import cKDTree

    scale = deviations(data)
    records = data / scale
    centres = np.unique(records, axis=0)
    if len(centres) > most:
        labels = mdav(records, -(-len(records) // most))  # a start that needs no chance
        start = np.array([records[labels == i].mean(axis=0) for i in range(labels.max() + 1)])
        with warnings.catch_warnings():  # a cluster that lost its records is dropped below
            warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
            centres = kmeans2(records, np.unique(start, axis=0), iter=50, minit="matrix")[0]
    used = np.unique(np.asarray(cKDTree(centres).query(records)[1]))
    tree = cKDTree(centres[used])
    return lambda table: np.asarray(tree.query(table / scale)[1])


def _gaussian(
    original: Any, sensitive: Sequence[str], key: Sequence[str], units: str
) -> tuple[dict[float, GaussianSolution], float | None]:
    """Return the QGLB by distortion, and h(W) if W has a density."""
    try:
        hidden, _ = numbers(original, "original", sensitive)
        source = GaussianSource.from_table(original, sensitive=sensitive, key=key, standardise=True)
    except InputError:  # W is letters, or constant
        return {}, None
    try:
        scaled = hidden / hidden.std(axis=0, ddof=1)
        entropy: float | None = differential_entropy(scaled, units=units)
    except InputError:  # too many equal records
        entropy = None
    size = len(key) * (1 - 1 / len(hidden))  # the source's variances are divided by N − 1
    return {
        share: QuadraticGaussian(source, share * size, entropy=entropy, units=units).solve()
        for share in GRID
    }, entropy


def _budget(solution: Solution) -> float:
    return float(solution.certificate.program.rows["budget"].bounds(1))


def _frontier(
    source: DiscreteSource, error: np.ndarray, shares: np.ndarray, units: str
) -> list[Solution]:
    """Return certified optima, from the least distortion to the greatest."""
    greatest = float((source.p_x @ error).min())
    measure = Distortion(error, outputs=range(error.shape[1]), name="squared error")
    return [
        PrivacyDistortion(source, measure, budget=float(share) * greatest, units=units).solve()
        for share in shares
    ]


def _masked(method: Any, table: Any, classes: np.ndarray, seed: int) -> Any:
    """Return a masked table as it is, or what a copy of an estimator makes of the table."""
    if isinstance(method, type):
        problem, remedy = f"{method.__name__} is a class", f"pass {method.__name__}(…)"
        raise InputError("method", problem, remedy)
    if not hasattr(method, "fit_transform"):
        return method
    own = copy.deepcopy(method)
    if hasattr(own, "get_params"):
        states = {k: v for k, v in own.get_params().items() if k.endswith("random_state")}
        own.set_params(**{name: seed for name, state in states.items() if state is None})
    try:
        return own.fit_transform(table, classes)
    except InputError:
        raise
    except Exception as error:  # each estimator has its own
        said = f"{type(error).__name__}: {error}"
        raise InputError("fit_transform", said, "mend the estimator") from error


def _curve(given: Any) -> list[tuple[str, Any]]:
    """Return the settings of a method, and what is measured at each."""
    if isinstance(given, Mapping | list | tuple) and not given:
        raise InputError("methods", "an empty curve", "pass at least one setting")
    if isinstance(given, Mapping):
        return [(str(setting), each) for setting, each in given.items()]
    several = list(given) if isinstance(given, list | tuple) else [given]
    return [(_setting(each) or str(i), each) for i, each in enumerate(several, 1)]


def _setting(method: Any) -> str:
    """Return the numbers that an estimator was given, but for its random state."""
    if isinstance(method, type) or not hasattr(method, "get_params"):
        return ""
    found = {
        name.rpartition("__")[2]: value
        for name, value in method.get_params().items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    found.pop("random_state", None)
    return ", ".join(f"{name} = {value:g}" for name, value in found.items())
