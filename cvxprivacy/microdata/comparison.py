"""Masked tables in the plane of risk and distortion, with the bounds of the plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cvxprivacy.leakage import Leakage as Measure
from cvxprivacy.leakage.transport import order_in_words
from cvxprivacy.microdata.measures import extremes
from cvxprivacy.microdata.plane import draw_bounds, draw_curves, draw_estimates
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import bias_in_words
from cvxprivacy.results.solution import GaussianSolution, Solution
from cvxprivacy.sdc.risk import Leakage
from cvxprivacy.validation import one_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["OPTIMUM", "Comparison", "Point"]

OPTIMUM = "optimal channel"
COLUMNS = {  # of the frame: Point's attributes by title, with {} for the units
    "method": "method", "setting": "setting", "distortion": "distortion",
    "leakage [{}]": "leakage", "cut distortion": "cut", "risk [{}]": "risk",
    "optimum": "optimum", "excess": "excess", "linked": "linkage", "interval": "interval",
    "PIL": "pil", "IL": "il", "score": "score",
}  # fmt: skip
_ENDS = {
    "nothing": "if nothing is released", "untouched": "of the cells untouched",
    "everything": "if W itself is released",
}  # fmt: skip


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
        :func:`~cvxprivacy.sdc.risk.distance_linkage`, ``interval_disclosure``, the totals
        of ``probabilistic_loss`` and ``information_loss``, and ``score`` with PIL.
    measures : dict of str to float
        The table cut into cells, in the measures of leakage asked for.
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
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def excess(self) -> float:
        """Risk above the certified optimum of the same cut distortion; may be negative."""
        return self.risk - self.optimum


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods in the plane of risk and distortion, with the bounds of the plane.

    :func:`compare` returns one.

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
        Of information.
    measures : dict of str to Leakage
        Those that the tables are measured in besides information, by their names.

    Examples
    --------
    No release that sees an age's cell alone lies below the certified line; a masking's excess is
    how far it lies above:

    >>> import numpy as np, pandas as pd
    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.sdc.masking import MDAV
    >>> age = np.arange(20.0, 80.0)
    >>> people = pd.DataFrame({"age": age, "ill": np.where(age % 7 < age / 12, "yes", "no")})
    >>> comparison = cpv.compare(
    ...     people, {"MDAV": MDAV(k=10)}, sensitive="ill", key="age", cells=6, shares=[0.3, 0.6]
    ... )
    >>> point = comparison.points[0]
    >>> bool(np.isclose(point.risk, comparison.lower(point.cut) + point.excess))
    True
    >>> cut = np.linspace(comparison.within, 1, 5)
    >>> bool(np.all(comparison.lower(cut) <= comparison.upper(cut) + 1e-9))
    True
    >>> bool(np.all(comparison.upper(cut) <= comparison.chord(cut) + 1e-9))
    True
    """

    points: list[Point]
    source: DiscreteSource
    frontier: list[Solution]
    within: float
    gaussian: dict[float, GaussianSolution]
    entropy: float | None
    units: str
    measures: Mapping[str, Measure] = field(default_factory=dict)

    def measured(self, law: npt.ArrayLike) -> dict[str, float]:
        """Return what a joint law of classes and released cells leaks in each measure.

        Parameters
        ----------
        law : array_like, shape (|W|, |X̂|)
            Masses that sum to 1.
        """
        joint = np.asarray(law, dtype=float)
        return {name: of.total(joint) * of.unit(self.units) for name, of in self.measures.items()}

    @property
    def ends(self) -> dict[str, dict[str, float]]:
        """What each measure is: of nothing released, of the cells untouched, of W itself."""
        untouched, rows = self.measured(self.source.pmf), {}
        for name, of in self.measures.items():
            nothing, everything = extremes(of, self.source.p_w, units=self.units)
            rows[name] = {
                "nothing": nothing, "untouched": untouched[name], "everything": everything
            }  # fmt: skip
        return rows

    @property
    def information(self) -> float:
        """I(W; X) of the counted law, what an untouched table leaks."""
        return self.source.information(units=self.units)

    def lower(self, cut: npt.ArrayLike) -> np.ndarray:
        """Return what releases of this cut distortion that see X's cell alone leak at least.

        Certified.  None of them has less than ``within``, where I(W; X) is returned.

        Parameters
        ----------
        cut : array_like
            Distortions of the table cut into cells, as shares of the variance.
        """
        at = np.asarray(cut) - self.within
        lines = [s.lower - s.duals["budget"] * (at - _budget(s)) for s in self.frontier]
        return np.where(at < 0, self.information, np.clip(np.max(lines, axis=0), 0.0, None))

    def upper(self, cut: npt.ArrayLike) -> np.ndarray:
        """Return what mixtures of the certified optima leak.

        Parameters
        ----------
        cut : array_like
            Distortions of the table cut into cells, as shares of the variance.
        """
        knots = [(0.0, self.information), *((_budget(s), s.value) for s in self.frontier)]
        knots.append((1 - self.within, 0.0))
        return np.interp(np.asarray(cut) - self.within, *np.array(knots).T)

    def chord(self, cut: npt.ArrayLike) -> np.ndarray:
        """MIUB: what the better of "release the cell" and "release the mean" leaks, mixed.

        Parameters
        ----------
        cut : array_like
            Distortions of the table cut into cells, as shares of the variance.
        """
        share = (np.asarray(cut) - self.within) / (1 - self.within)
        return self.information * np.clip(1 - share, 0.0, 1.0)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point, a pandas frame."""
        import pandas as pd

        columns = {
            title.format(self.units): [getattr(p, name) for p in self.points]
            for title, name in COLUMNS.items()
        }
        columns[f"leakage [{self.units}]"] = [p.leakage.value for p in self.points]
        for name, of in self.measures.items():
            title = f"{name} [{self.units}]" if of.informs else name
            columns[title] = [p.measures[name] for p in self.points]
        return pd.DataFrame(columns)

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
        if self.measures:
            notes.append("  in these measures the optimal channels need not be the best:")
        for name, ends in self.ends.items():
            values = ", ".join(f"{value:.4g} {_ENDS[end]}" for end, value in ends.items())
            notes.append(f"  {name}: {self.measures[name].meaning}; {values}")
        if any(of.ordered for of in self.measures.values()) and not self.source.in_order:
            notes.append(f"  {order_in_words('W', self.source.w)}")
        return "\n".join([repr(self), table, *notes])

    def draw(
        self,
        ax: Axes | None = None,
        *,
        of: str = "cells",
        parameters: Mapping[str, str] | None = None,
    ) -> Axes:
        """Draw risk against distortion: a curve for each method, its points by their settings.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            With its legend, if the labels of points shall keep clear of it.
        of : {"cells", "records"}
            The tables cut into cells, above the certified frontier of releases that see X's cell
            alone (a point below it is ringed, and the legend says why); or the records as they
            are, beside the QGLB, both of them estimates.
        parameters : mapping of str to str, optional
            The letter of each method's settings: ``{"mdav": "k"}`` writes k = 3 for 3.
        """
        import matplotlib.pyplot as plt

        one_of(of, "of", "cells", "records")
        ax = plt.gca() if ax is None else ax
        names = dict.fromkeys(p.method for p in self.points if p.method != OPTIMUM)
        curves = {name: [p for p in self.points if p.method == name] for name in names}
        letters, cells = parameters or {}, of == "cells"
        texts = {
            name: [
                f"{letters[name]} = {p.setting}" if name in letters else p.setting for p in of_it
            ]
            for name, of_it in curves.items()
        }
        if cells:
            draw_bounds(self, [_budget(s) for s in self.frontier], ax)
        else:
            draw_estimates(self, ax)
        ax.set_xlabel("distortion [share of the variance]")
        ax.set_ylabel(f"risk $I(W; \\hat X)$ [{self.units}]")
        places = {
            name: [(p.cut, p.risk) if cells else (p.distortion, p.leakage.value) for p in of_it]
            for name, of_it in curves.items()
        }
        most = [max(p.cut, p.distortion) for p in self.points]
        risks = [max(p.risk, p.leakage.value) for p in self.points]
        limits = max(1.0, *most), max(self.information, *risks)  # of both pictures
        floor = self.lower if cells else None
        draw_curves(places, texts, ax, limits, filled=cells, floor=floor)
        return ax


def _budget(solution: Solution) -> float:
    return float(solution.certificate.program.constraints["budget"].bounds(1))
