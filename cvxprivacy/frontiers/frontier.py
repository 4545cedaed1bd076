"""A trade-off as a whole: the curve that is achieved, and the curve that is proved.

Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010), Theorem 1: the
privacy–distortion function is convex and non-increasing; so is every optimum of this package in
the right-hand side of a constraint.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers import stored
from cvxprivacy.frontiers.curve import Convex, Curve, Knot, Staircase
from cvxprivacy.frontiers.family import EXPONENTIAL, MONOTONE, Family
from cvxprivacy.frontiers.mixing import mixture, offer
from cvxprivacy.frontiers.point import Point
from cvxprivacy.frontiers.refine import Refinement
from cvxprivacy.model.information import nat
from cvxprivacy.proving.certificate import Ends, value_units
from cvxprivacy.results.solution import Enclosure, Solution
from cvxprivacy.validation import array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Frontier"]


class Frontier:
    """An optimum as a function of one number, enclosed everywhere.

    Attributes
    ----------
    parameter : str
        The number's name.
    kind : {"convex", "convex in exp", "monotone"}
        Whether the optimum is convex in the number, or in its exponential (e^b of maximal
        leakage), or only monotone.  Then the inner curve is the staircase of solved points: there
        is no time-sharing.
    units : str
        Of information: "bits" or "nats".
    points : list of Point
        What was solved, by x.
    band : float
        The inner curve is nowhere more than this above the outer one, from the first point at
        which anything is feasible to the last.
    tol : float or None
        What was asked of the band; ``complete`` tells whether it was reached.
    solves : int
        Programs that were solved for it.
    edge : (float, float) or None
        Where it is not known whether anything is feasible.
    """

    def __init__(
        self,
        records: Iterable[Mapping[str, Any]],
        curve: Curve,
        family: Family | None,
        facts: Mapping[str, Any],
    ) -> None:
        points = (Point(record, family) for record in records)
        self.points = sorted(points, key=lambda point: point.x)
        self.curve, self._family, self.facts = curve, family, dict(facts)
        self.parameter, self.kind, self.units = (facts[k] for k in ("parameter", "kind", "units"))
        self.tol, self.complete, self.solves = (facts[k] for k in ("tol", "complete", "solves"))
        self.edge = None if facts["edge"] is None else tuple(facts["edge"])
        if family is not None and isinstance(curve, Staircase):
            curve.certified = self._certified

    @classmethod
    def of(cls, search: Refinement) -> Frontier:
        """Return what a search has found."""
        family, problem = search.worker, search.worker.problem
        row = problem.program.rows.get(family.parameter)
        facts = {
            "parameter": family.parameter,
            "kind": family.kind,
            "falling": family.falling,
            "accuracy": family.accuracy,
            "digest": family.digest,
            "units": problem.units,
            "title": type(problem).__name__,
            "abscissa": "" if row is None else row.term.latex,
            "ordinate": problem.objective().latex,
            "information": value_units(problem.program) is not None,
            "tol": search.tol,
            "complete": search.complete,
            "solves": search.solves,
            "edge": search.edge,
        }
        return cls(search.records.values(), search.curve, family, facts)

    # ---- the two curves ------------------------------------------------------------------

    def inner(self, x: npt.ArrayLike) -> Any:
        """Return what releases are known to achieve, rounded up; +inf where none is known.

        On the chord between two solved points it is achieved by drawing from one release or the
        other (``release_at``), since information is convex in the channel and distortion linear.
        """
        return _mapped(self.curve.inner, x)

    def outer(self, x: npt.ArrayLike) -> Any:
        """Return what no release undercuts, by proof, rounded down; +inf where none is feasible.

        Of a monotone frontier it is the best that the multipliers of any solved point prove at x
        (of a frontier loaded without its problem, the staircase of proved ends).
        """
        return _mapped(self.curve.outer, x)

    @property
    def band(self) -> float:
        return self.curve.band

    def price(self, x: float) -> Enclosure:
        """Return d optimum / dx: the slopes of all lines that support the curve at x.

        Proved from the two curves by convexity; −inf is among them at the first point, as
        nothing is feasible before it.  A monotone frontier has no proved slope: it is the
        multipliers' own, interpolated between solved points.
        """
        self._achieved(x)
        if not isinstance(self.curve, Convex):
            known = {p.x: p.price for p in self.points if p.price is not None}
            inner = [pair for pair in known.items() if math.isfinite(pair[1])]
            if x not in known and not inner:
                return Enclosure(-math.inf, 0.0)
            slope = known[x] if x in known else float(np.interp(x, *np.array(inner).T))
            return Enclosure(slope, slope)
        low, high = self.curve.slopes(x)
        if self.kind == EXPONENTIAL:
            first, last = (float(end) for end in self.curve.axis(x))
            each = np.array([low * last, high * first]) / nat(self.units)
            low, high = np.nextafter(each, [-math.inf, math.inf]).tolist()
        return Enclosure(low, min(high, 0.0))

    # ---- releases ------------------------------------------------------------------------

    def solution_at(self, x: float) -> Solution:
        """Return what is known at x without solving again: release, enclosure and certificate.

        Between solved points the release draws from its neighbours' (not across a monotone
        curve, where it is the tighter neighbour's), and the lower end is proved by the
        neighbours' multipliers.

        Raises
        ------
        InputError
            If no release is known at x, or the frontier was loaded without its problem.
        """
        found, family = self._achieved(x), self._family
        by_place = {point.x: point for point in self.points}
        first, second = (by_place[knot.x] for knot in found[:2])
        share = found[2]
        if first.x == x and not share:
            return first.known
        primals = [(first.known.certificate.primal, 1 - share)]
        if share:
            primals.append((second.known.certificate.primal, share))
        duals = [point.known.certificate.dual for point in self._proving(x)]
        assert family is not None
        solution = mixture(family.at(x), family.accuracy, primals, duals, self.curve.inner(x))
        if solution.release is None:
            problem = f"no release is proved at {self.parameter} {x!r}"
            remedy = f"pass {first.x!r}, whose release is allowed here too"
            raise InputError("x", problem, remedy, value=x)
        return solution

    def release_at(self, x: float) -> Any:
        """Return a release that is allowed at x and achieves the inner curve or less.

        A mixture of channels is a channel; it keeps the bound, which is linear or convex in the
        channel, and reveals no more than the chord says.  A channel is rounded to integers over
        2⁵² where that costs nothing but rounding.
        """
        return self.solution_at(x).release

    def _achieved(self, x: float) -> tuple[Knot, Knot, Fraction]:
        x = float(array(x, "x", "pass a finite number", axes=(0,), negative=True))
        found = self.curve.mixture(x)
        if found is None:
            problem = f"no release is known at {self.parameter} {x:g}"
            stretch = self.curve.stretch()
            remedy = "pass an x between {:g} and {:g}".format(*stretch) if stretch else "go on"
            raise InputError("x", problem, remedy, value=x)
        return found

    def _proving(self, x: float) -> list[Point]:
        """Return the points whose multipliers prove most at x, in floats."""
        if isinstance(self.curve, Convex):
            knot = self.curve.highest(x)
            return [point for point in self.points if knot is not None and point.x == knot.x]
        assert self._family is not None
        program = self._family.at(x).program
        known = [point for point in self.points if point.status != "infeasible"]

        def proved(point: Point) -> float:
            return float(program.lower_bound(point.known.certificate.dual.cleaned(program)))

        return sorted(known, key=proved)[-2:]

    def _certified(self, x: float) -> float:
        """Return the best that the multipliers of solved points prove at x."""
        assert self._family is not None
        ends = Ends(self._family.at(x).program)
        for point in self._proving(x):
            offer(ends, None, point.known.certificate.dual)
        return ends.lower

    # ---- kept, shown, proved again -------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the frontier with all its proofs as JSON, whole or not at all.

        The file holds the joint law of the confidential attribute: it is readable by its owner
        only.
        """
        return stored.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        problem: Problem | None = None,
        *,
        verify: bool = False,
    ) -> Frontier:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        problem : Problem, optional
            The problem it is of, at any value of the parameter: needed for releases.
        verify : bool
            Prove every point again.  That each is of the problem at its number is proved with
            ``problem``, or where the number is a right-hand side.

        Raises
        ------
        InputError
            If the file is no frontier, or another problem's, or a proof in it fails.
        """
        return stored.load(cls, path, problem, verify)

    def documents(self) -> list[dict[str, Any]]:
        """Return each point's proof, as ``python -m cvxprivacy.certificates.verify`` reads it."""
        return [point.known.certificate.document() for point in self.points]

    def to_frame(self) -> pd.DataFrame:
        """Return the points as a pandas frame."""
        import pandas as pd

        rows = [
            {
                self.parameter: p.x,
                "lower": p.lower,
                "upper": p.upper,
                "status": p.status,
                "price": p.price,
                **{name: float(term) for name, term in p.terms.items()},
            }
            for p in self.points
        ]
        return pd.DataFrame(rows)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        per: tuple[float, float] = (1.0, 1.0),
        label: str = "",
        color: str | None = None,
    ) -> Axes:
        """Draw the solved points and the band between the two curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        per : (float, float)
            Units of the axes: abscissa and optimum are divided by these.
        label, color : str, optional
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.gca()
        shown = [p for p in self.points if math.isfinite(p.upper)]
        if not shown:
            raise InputError("points", "none is feasible", "solve further")
        x = np.array([p.x for p in shown])
        fine = np.unique([*np.linspace(x[0], x[-1], 400), *x])
        (line,) = ax.plot(fine / per[0], self.inner(fine) / per[1], lw=1.0, color=color)
        color = line.get_color()
        ax.plot(x / per[0], [p.upper / per[1] for p in shown], "o", ms=3, color=color)
        outer, inner = self.outer(fine) / per[1], self.inner(fine) / per[1]
        ax.fill_between(fine / per[0], outer, inner, color=color, alpha=0.35, lw=0)
        if label:
            line.set_label(label)
        unit = f"  [{self.units}]" if self.facts["information"] and per[1] == 1.0 else ""
        named = self.parameter.replace("_", " ")
        abscissa = self.facts["abscissa"]
        ax.set_xlabel(f"{named}  (${abscissa}$)" if abscissa else named)
        ax.set_ylabel(f"${self.facts['ordinate']}${unit}")
        return ax

    def __repr__(self) -> str:
        known = f"{len(self.points)} points"
        return (
            f"Frontier({self.facts['title']} over {self.parameter}, {known}, band {self.band:.2e})"
        )

    def __str__(self) -> str:
        unit = self.units if self.facts["information"] else "units of distortion"
        stretch = self.curve.stretch()
        ends = (
            "nothing feasible" if stretch is None else f"from {stretch[0]:.6g} to {stretch[1]:.6g}"
        )
        kind = {"convex": "convex", EXPONENTIAL: "convex in e^b", MONOTONE: "monotone, a staircase"}
        lines = [
            f"{self.facts['title']} over {self.parameter}, {ends}: {kind[self.kind]}",
            f"  points  {len(self.points)}, of {self.solves} solves",
            f"  band    {self.band:.2e} {unit}"
            + ("" if self.tol is None else f" (asked: {self.tol:.2g})"),
        ]
        if self.edge is not None:
            wide = self.edge[1] - self.edge[0]
            said = "  edge    feasibility begins between {:.6g} and {:.6g}, {:.1e} apart"
            lines.append(said.format(*self.edge, wide))
        return "\n".join(lines)


def _mapped(function: Callable[[float], float], x: npt.ArrayLike) -> Any:
    places = array(x, "x", "pass finite numbers", negative=True)
    found = np.array([function(place) for place in places.ravel().tolist()])
    return found.reshape(places.shape) if places.ndim else float(found[0])
