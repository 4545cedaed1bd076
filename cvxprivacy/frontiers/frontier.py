"""A trade-off as a whole: the curve that is achieved, and the curve that is proved.

Rebollo-Monedero, Forné and Domingo-Ferrer (IEEE TKDE 22(11), 2010), Theorem 1: the
privacy–distortion function is convex and non-increasing; so is every optimum of this package in
the right-hand side of a constraint.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy import style
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Real
from cvxprivacy.extras import pd
from cvxprivacy.files import whole_file
from cvxprivacy.formulations.problem import Problem
from cvxprivacy.frontiers import picture, practice, stored
from cvxprivacy.frontiers.curve import (
    CONCAVE,
    CONVEX,
    EXPONENTIAL,
    MONOTONE,
    Axis,
    Concave,
    Convex,
    Mixture,
    Number,
    curve_of,
)
from cvxprivacy.frontiers.membership import Membership
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.frontiers.point import Point, breakpoint_of
from cvxprivacy.frozen import Frozen
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.solution import Solution
from cvxprivacy.text import facts_html
from cvxprivacy.validation import axes_of, table, typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Frontier"]

_KINDS = {
    CONVEX: "convex",
    EXPONENTIAL: "convex in e^b",
    MONOTONE: "monotone, a staircase",
    CONCAVE: "concave",
}


class Frontier(Frozen):
    """An optimum as a function of one number, enclosed everywhere: see :func:`frontier`.

    Attributes
    ----------
    parameter : str
        The number's name.
    kind : {"convex", "convex in exp", "monotone", "concave"}
        Whether the optimum is convex in the number, or in its exponential (e^b of maximal
        leakage), or only monotone; or concave, where the number weighs a part of the objective:
        then each release achieves a line, and what is proved are chords.  Of a monotone one
        the inner curve is the staircase of solved points: there is no time-sharing.
    units : str
        Of information: "bits" or "nats".
    points : list of Point
        What was solved, by x.
    band : float
        The inner curve is nowhere more than this above the outer one, from the first point at
        which anything is feasible to the last.
    solved_range : (float, float) or None
        The first and the last number at which a release was found.
    tol : float or None
        What was asked of the band; ``complete`` tells whether it was reached.
    solves : int
        Programs that were solved for it.
    complete : bool
        Whether the band that was asked was reached.
    edge : (float, float) or None
        Where it is not known whether anything is feasible.

    Examples
    --------
    W, X and X̂ are binary, and X differs from W in one case of five.  At the distortion D the
    optimum is 1 − h(0.2 (1 − D) + 0.8 D) bits; from D = ½ on nothing need be told:

    >>> import numpy as np
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
    >>> curve = cpv.frontier(problem, tol=1e-2)
    >>> curve.kind, curve.solved_range, curve.band <= 1e-2
    ('convex', (0.0, 0.5), True)
    >>> d = np.array([0.1, 0.3])
    >>> p = 0.2 * (1 - d) + 0.8 * d
    >>> truth = 1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)
    >>> bool(np.all((curve.outer(d) <= truth) & (truth <= curve.inner(d))))
    True

    Between solved points a release draws from both neighbours', and keeps its budget:

    >>> curve.solution_at(0.3).distortion.upper <= 0.3
    True
    """

    def __init__(
        self,
        facts: Mapping[str, Any],
        records: Iterable[Mapping[str, Any]],
        program: Mapping[str, Any],
        problem: ParametricProblem | None,
    ) -> None:
        records = list(records)
        axis = Axis(facts["kind"], program["units"], facts["falling"], tuple(facts["rows"]))
        breakpoints = [breakpoint_of(r, program, axis) for r in records]
        self._curve, self._problem, self._facts = curve_of(breakpoints, axis), problem, facts
        self.points = sorted((Point(r, problem) for r in records), key=lambda point: point.x)
        self.parameter, self.kind, self.units = (facts[k] for k in ("parameter", "kind", "units"))
        self.tol, self.complete, self.solves = (facts[k] for k in ("tol", "complete", "solves"))
        self.edge = None if facts["edge"] is None else tuple(map(stored.from_json, facts["edge"]))
        self.solved_range = self._curve.solved_range

    # ---- the two curves ------------------------------------------------------------------

    def inner(self, x: npt.ArrayLike) -> Any:
        """Return what releases are known to achieve, rounded up; +inf where none is known.

        Parameters
        ----------
        x : array_like
            Values of the parameter, of any shape; a number gives a number.

        Notes
        -----
        On the chord between two solved points it is achieved by drawing from one release or the
        other (``release_at``), since information is convex in the channel and distortion linear.
        """
        return _mapped(self._curve.inner, x)

    def outer(self, x: npt.ArrayLike) -> Any:
        """Return what no release undercuts, by proof, rounded down; +inf where none is feasible.

        Parameters
        ----------
        x : array_like
            Values of the parameter, of any shape; a number gives a number.

        Notes
        -----
        Of a monotone frontier it is the best that the multipliers of any solved point prove at x
        (of a frontier loaded without its problem, the staircase of proved ends).
        """
        return _mapped(self._outer, x)

    def _outer(self, x: Number) -> float:
        proved = self._curve.outer(x)
        solved = proved == math.inf or any(point.x == x for point in self.points)
        if self.kind != MONOTONE or self._problem is None or solved:
            return proved
        return max(proved, self._problem.proved(x, self._strongest_duals(x)))

    def contains(self, point: Sequence[Real]) -> Membership:
        """Tell whether a release exists at x that achieves at most y.

        Parameters
        ----------
        point : (x, y)
            A value of the parameter, and one of the optimum.

        Returns
        -------
        Membership
            A text with the certificate of the answer: which of ``points`` are mixed, by exact
            shares, or what no release undercuts at x.

        Raises
        ------
        InputError
            For what is not two numbers.

        Examples
        --------
        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> curve = cpv.frontier(cpv.PrivacyDistortion(source, cpv.hamming(2), 0.2), tol=1e-2)
        >>> answer = curve.contains((0.2, 0.11))  # the optimum is 0.0956
        >>> answer, sum(answer.weights.values()) == 1, curve.contains((0.2, 0.08))
        ('inside', True, 'outside')
        """
        remedy = f"pass two numbers: {self.parameter} and a value of the optimum"
        shape = np.shape(np.asarray(point, dtype=object))
        if shape != (2,):
            raise InputError("point", f"shape {shape}", remedy)
        x, y = (typed(number, "point", negative=True, remedy=remedy) for number in point)
        if Fraction(y) < (bound := self._outer(x)):
            return Membership("outside", bound=bound)
        achieved, mixture = self._curve.achieved(x), self._curve.mixture(x)
        if mixture is None or achieved is None or achieved > Fraction(y):
            return Membership("within tol")
        places = {point.x: i for i, point in enumerate(self.points)}
        left, right, share = mixture
        shares = {places[right.x]: share, places[left.x]: 1 - share}  # of one point, all of it
        return Membership("inside", {i: weight for i, weight in shares.items() if weight})

    @cached_property
    def band(self) -> float:
        """The greatest distance between the two curves."""
        return self._curve.band

    def price(self, x: Real) -> Enclosure:
        """Return d optimum / dx: the slopes of all lines that support the curve at x.

        Parameters
        ----------
        x : number
            A value of the parameter at which a release is known.

        Notes
        -----
        Proved from the two curves by convexity; −inf is among them at the first point, as
        nothing is feasible before it.  A monotone frontier has no proved slope: it is the
        multipliers' own, interpolated between solved points.
        """
        x, _ = self._achieved(x)
        if isinstance(self._curve, Convex):
            low, high = self._curve.axis.slopes(x, *self._curve.slopes(x))
            return Enclosure(low, min(high, 0.0))
        if isinstance(self._curve, Concave):
            return Enclosure(*self._curve.slopes(x))
        prices = {point.x: point.price for point in self.points if point.price is not None}
        finite = [(float(at), price) for at, price in prices.items() if math.isfinite(price)]
        if x not in prices and not finite:
            return Enclosure(-math.inf, 0.0)
        slope = prices[x] if x in prices else float(np.interp(float(x), *np.array(finite).T))
        return Enclosure(slope, slope)

    # ---- releases ------------------------------------------------------------------------

    def solution_at(self, x: Real) -> Solution:
        """Return what is known at x without solving again: release, enclosure and certificate.

        Between solved points the release draws from its neighbours' (not across a monotone
        curve, where it is the tighter neighbour's, nor a concave one, where it is the best of
        all), and the lower end is proved by the neighbours' multipliers.

        Parameters
        ----------
        x : number
            A value of the parameter.

        Raises
        ------
        InputError
            If no release is known at x, or the frontier was loaded without its problem.
        """
        x, (left, right, share) = self._achieved(x)
        by_place = {point.x: point for point in self.points}
        first, second = (by_place[point.x]._solution() for point in (left, right))
        if left.x == x and not share:
            return first
        primals = [(first.certificate.primal, 1 - share)]
        if share:
            primals.append((second.certificate.primal, share))
        assert self._problem is not None
        duals = self._strongest_duals(x)
        solution = self._problem.mixed(x, primals, duals, self._curve.inner(x))
        if solution.release is None:
            problem = f"no release is proved at {self.parameter} {x!r}"
            remedy = f"pass {left.x!r}, whose release is allowed here too"
            raise InputError("x", problem, remedy, value=x)
        return solution

    def release_at(self, x: Real) -> Any:
        """Return a release that is allowed at x and achieves the inner curve or less.

        A mixture of channels is a channel; it keeps the bound, which is linear or convex in the
        channel, and reveals no more than the chord says.  A channel is rounded to integers over
        2⁵² where that costs nothing but rounding.

        Parameters
        ----------
        x : number
            A value of the parameter; errors are those of :meth:`solution_at`.
        """
        return self.solution_at(x).release

    def _achieved(self, x: Real) -> tuple[Number, Mixture]:
        x = typed(x, "x", negative=True)
        mixture = self._curve.mixture(x)
        if mixture is None:
            problem = f"no release is known at {self.parameter} {float(x):g}"
            ends = tuple(map(float, self.solved_range or ()))
            remedy = "pass an x between {:g} and {:g}".format(*ends) if ends else "go on"
            raise InputError("x", problem, remedy, value=x)
        return x, mixture

    def _strongest_duals(self, x: Number) -> list[Any]:
        """Return the multipliers that prove most at x, in floats."""
        points = [point for point in self.points if point.status != "infeasible"]
        if isinstance(self._curve, Convex):
            best = self._curve.highest(x)
            points = [point for point in points if best is not None and point.x == best.x]
        duals = [point._solution().certificate.dual for point in points]
        assert self._problem is not None
        if self.kind not in (MONOTONE, CONCAVE):
            return duals
        strongest = self._problem.strongest(x, duals)
        if self.kind == CONCAVE:
            places = [(p.x, dual) for p, dual in zip(points, duals, strict=True)]
            strongest += self._problem.chords(x, places)
        return strongest

    # ---- kept, shown, proved again -------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the frontier with all its proofs as JSON, whole or not at all.

        The file holds the joint law of the confidential attribute: it is readable by its owner
        only.

        Parameters
        ----------
        path : str or path
            Where it is written; the path is returned.
        """
        proofs = self.documents()
        table, program = (proofs[0]["table"], proofs[0]["program"]) if proofs else (None, {})
        points = []
        for point, proof in zip(self.points, proofs, strict=True):
            unshared = {key: proof[key] for key in proof if key not in ("program", "table")}
            part = stored.difference(program, proof["program"])
            points.append({**point._record, **unshared, "program": part})
        head = {"schema": stored.SCHEMA, "facts": self._facts, "table": table, "program": program}
        with whole_file(path, private=True) as file:
            json.dump({**head, "points": points}, file, ensure_ascii=False, allow_nan=False)
        return Path(path)

    def to_json(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        words: Mapping[str, str] | None = None,
        references: picture.References | None = None,
    ) -> Path:
        """Write what a picture of the frontier needs as JSON, whole or not at all.

        The documentation's Explorer reads it.  It says what is in it: ``"schema"`` is
        ``"cvxprivacy frontier picture 1"``, after ``frontiers/schema.json`` of the package.  The
        title, program, ``words``, labels and the law p(w, x) stand at the top (of a Gaussian
        problem Σ_W, Σ_X and Σ_WX Σ_X⁻¹), then every solved point: the number, the enclosure of
        the optimum, price and terms, the release, and of each constraint f ≤ b what f is, b,
        the slack b − f and the multiplier.  Letters without mass are left out.  All numbers are
        doubles, None where one is infinite; proofs are kept by :meth:`save`.

        The file holds the joint law of the confidential attribute: it is readable by its owner
        only.

        Parameters
        ----------
        path : path
            Replaced if it exists.
        title : str, optional
            Of the picture.
        words : mapping, optional
            What is shown is called: ``"parameter"`` the number that moves, ``"unit"`` its unit,
            ``"value"`` the optimum with its unit, ``"price"`` what one more unit would save.
        references : mapping of str to callable, optional
            Further curves by their labels, such as a closed form: functions of the number.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            For an encoder that sees W, side information, or several laws, whose releases are no
            p(x̂ | x) under one law; for other words; for a frontier loaded without its problem.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> import cvxprivacy as cpv
        >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
        >>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
        >>> curve = cpv.frontier(problem, points=[0.1, 0.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = curve.to_json(pathlib.Path(folder) / "picture.json", title="Two letters")
        ...     picture = json.loads(path.read_text(encoding="utf-8"))
        >>> picture["schema"], [point["x"] for point in picture["points"]]
        ('cvxprivacy frontier picture 1', [0.1, 0.5])
        """
        if self._problem is None:
            remedy = "pass problem= to Frontier.load"
            raise InputError("problem", "the frontier was loaded without it", remedy)
        texts: dict[str, Any] = {"title": title, "words": words, "references": references}
        shown = picture.document(self._facts, self._curve, self.points, self._problem, **texts)
        with whole_file(path, private=True) as file:
            json.dump(shown, file, ensure_ascii=False, allow_nan=False)
        return Path(path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], problem: Problem | None = None, *, verify: bool = False
    ) -> Frontier:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        problem : Problem, optional
            The problem it is of, at any value of the parameter: needed for releases.
        verify : bool
            Prove every point again, and that each is of the problem at its number: from the file
            where the number is a right-hand side, else with ``problem`` alone.  What the file says
            besides of where feasibility begins is then left out.

        Raises
        ------
        InputError
            If the file is no frontier, or another problem's, or a proof in it fails; if only the
            problem could tell whether it holds.
        """
        try:
            document = stored.read(path)
            facts, parametric = document["facts"], None
            if problem is not None:
                parametric = ParametricProblem(problem, facts["parameter"], facts["accuracy"])
                if parametric.digest != facts["digest"]:
                    wrong = "the frontier in the file is of another problem"
                    raise InputError("problem", wrong, "pass the problem that it was made of")
                stored.refuse_other_axis(facts, parametric.facts)
            stored.refuse_no_axis(facts, document["program"])
            if verify and parametric is None:
                stored.refuse_unproved(document)
            program_at = None if parametric is None else parametric.document
            for i, record in enumerate(document["points"] if verify else ()):
                if wrong_parts := stored.disagreements(document, record, program_at):
                    wrong = f"the proof at {record['x']!r} fails: {'; '.join(wrong_parts)}"
                    raise InputError("path", wrong, "make the frontier again", where=i)
            if verify and parametric is not None:
                facts = {**facts, **parametric.facts}
            loaded = cls(facts, document["points"], document["program"], parametric)
            return loaded._as_proved() if verify else loaded
        except InputError:
            raise
        except (
            ValueError,
            ArithmeticError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            message = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            wrong, remedy = f"is no frontier ({message})", "pass a file that Frontier.save wrote"
            raise InputError("path", f"{os.fspath(path)!r} {wrong}", remedy) from None

    def _as_proved(self) -> Frontier:
        """Return the frontier with what its points prove of its edge and its completeness."""
        reached = self.tol is None or (self.solved_range is not None and self.band <= self.tol)
        return self._with(complete=self.complete and reached, edge=self._curve.edge)

    def documents(self) -> list[dict[str, Any]]:
        """Return each point's proof, as ``python -m cvxprivacy_verifier`` reads it."""
        return [point._solution().certificate.document() for point in self.points]

    def to_frame(self) -> pd.DataFrame:
        """Return the points as a pandas frame, the number that moves in its first column.

        A result of the same name is called ``…_of_optimum``: of a moving ``price``
        ``price_of_optimum`` is d optimum / d price.
        """
        rows = [
            {
                self.parameter: float(p.x),
                self._called("lower"): p.lower,
                self._called("upper"): p.upper,
                self._called("status"): p.status,
                self._called("price"): p.price,
                **{self._called(name): float(term) for name, term in p.terms.items()},
            }
            for p in self.points
        ]
        return pd.DataFrame(rows)

    def compare(self, channels: Any) -> pd.DataFrame:
        """Return where channels of somebody else lie, and what the optimum is there.

        Each is evaluated as it is drawn by, on the frontier's own law, distortion and measure,
        exactly or in balls; nothing is repaired.

        Parameters
        ----------
        channels : mapping of str to Channel, or sequence of them or of pairs (name, Channel)
            Of the letters of the problem: outputs such as subsets are first made letters by
            :func:`cvxprivacy.mechanisms.remap`.

        Returns
        -------
        pandas.DataFrame
            A row for each: the parameter's least number that allows it, ``"value"``, the objective
            there, both rounded up; ``"lower"`` and ``"upper"``, :meth:`outer` and :meth:`inner` at
            that number; ``"breaks"``, other constraints that are not proved to hold of it.

        Raises
        ------
        InputError
            For what is no channel of the problem, and for a parameter that channels have no number
            of: it is the right-hand side of a constraint, or the ε of local privacy.

        Examples
        --------
        Randomised response is on the frontier of a fair bit that is itself confidential:

        >>> import cvxprivacy as cpv
        >>> from cvxprivacy import mechanisms
        >>> source = cpv.DiscreteSource.identical([0.5, 0.5], x="ab")
        >>> curve = cpv.frontier(cpv.PrivacyDistortion(source, cpv.hamming("ab"), 0.2), tol=1e-2)
        >>> response = mechanisms.randomised_response("ab", 1.0)
        >>> curve.compare({"ε = 1": response}).iloc[:, :2].round(4)
               budget   value
        ε = 1  0.2689  0.1601
        """
        columns = [self.parameter, *map(self._called, ("value", "lower", "upper", "breaks"))]
        rows = self._beside(channels)
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def _called(self, name: str) -> str:
        """Return what a column of results is called beside that of the number that moves."""
        return f"{name}_of_optimum" if name == self.parameter else name

    def _beside(self, channels: Any) -> dict[str, tuple[Any, ...]]:
        """Return what ``compare`` does, by name: pictures need no frame."""
        named = practice.named_channels(channels, "channels")
        if named and self._problem is None:
            remedy = "pass problem= to Frontier.load"
            raise InputError("problem", "the frontier was loaded without it", remedy)
        rows: dict[str, tuple[Any, ...]] = {}
        if not named:
            return rows
        assert self._problem is not None
        for name, place in practice.places_of(self._problem, named, "channels"):
            x = place.x.upper
            ends = (self.outer(x), self.inner(x)) if math.isfinite(x) else (math.nan, math.nan)
            rows[name] = (x, place.value.upper, *ends, ", ".join(place.breaks))
        return rows

    def plot(
        self,
        ax: Axes | None = None,
        *,
        per: tuple[float, float] = (1.0, 1.0),
        label: str = "",
        color: str | None = None,
        compare: Any = (),
    ) -> Axes:
        """Draw the solved points and the band between the two curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The current axes by default.
        per : (float, float)
            Units of the axes: abscissa and optimum are divided by these.
        label : str, optional
            Of the curve, for a legend.
        color : str, optional
            Of the curve and its band; the next one of the axes by default.
        compare : mapping of str to Channel, or sequence of them or of pairs, optional
            Channels in use, each a point with its name where :meth:`compare` says; hollow where
            it breaks another constraint of the problem, and none where its number is infinite.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with their labels.

        Raises
        ------
        InputError
            If nothing is feasible, or as :meth:`compare` does.
        """
        ax = axes_of(ax)
        solved = np.array([(p.x, p.upper) for p in self.points if math.isfinite(p.upper)], float)
        if not len(solved):
            raise InputError("points", "none is feasible", "solve further")
        x, upper = solved.T
        fine = np.unique([*np.linspace(x[0], x[-1], 400), *x])
        inner, outer = self.inner(fine) / per[1], self.outer(fine) / per[1]
        (line,) = ax.plot(fine / per[0], inner, lw=1.0, color=color)
        color = line.get_color()
        ax.plot(x / per[0], upper / per[1], "o", ms=3, color=color)
        ax.fill_between(fine / per[0], outer, inner, color=color, alpha=0.35, lw=0)
        if label:
            line.set_label(label)
        informs = self._facts["unit"] == self.units
        unit = f"  [{self.units}]" if informs and per[1] == 1.0 else ""
        name, abscissa = self.parameter.replace("_", " "), self._facts["abscissa"]
        ax.set_xlabel(f"{name}  (${abscissa}$)" if abscissa else name)
        ax.set_ylabel(f"${self._facts['ordinate']}${unit}")
        for name, (x, value, *_, breaks) in self._beside(compare).items():
            at = (x / per[0], value / per[1])
            if not math.isfinite(at[0]):  # of no ε
                continue
            fill = "none" if breaks else style.VERMILION
            ax.plot(*at, **{**style.PRACTICE, "ls": "none"}, markerfacecolor=fill)
            ax.annotate(name, at, (4, 2), textcoords="offset points", color=style.VERMILION)
        return ax

    def _repr_html_(self) -> str:
        head, *lines = str(self).splitlines()
        rows = [(name, text.strip()) for name, _, text in (s.strip().partition(" ") for s in lines)]
        return facts_html(head, rows, self._picture() if self.solved_range else "")

    def _picture(self) -> str:
        """Return the band as SVG within HTML."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure  # not of pyplot, which would take this for its start

        with rc_context(style.HOUSE):
            figure = Figure(figsize=(style.COLUMN, 2.2), layout="constrained")
            self.plot(figure.subplots(), color=style.BLUE)
            picture = style.inline_svg(figure, repr(self))
        return f"<div style='max-width:30em'>{picture}</div>"

    def __repr__(self) -> str:
        size = f"{len(self.points)} points, band {self.band:.2e}"
        return f"Frontier({self._facts['title']} over {self.parameter}, {size})"

    def __str__(self) -> str:
        reach = "nothing feasible"
        if self.solved_range is not None:
            reach = "from {:.6g} to {:.6g}".format(*map(float, self.solved_range))
        asked = "" if self.tol is None else f" (asked: {self.tol:.2g})"
        lines = [
            f"{self._facts['title']} over {self.parameter}, {reach}: {_KINDS[self.kind]}",
            f"  points  {len(self.points)}, of {self.solves} solves",
            f"  band    {self.band:.2e} {self._facts['unit']}{asked}",
        ]
        if self.edge is not None:
            low, high = self.edge
            between = f"between {low:.6g} and {high:.6g}, {high - low:.1e} apart"
            lines.append(f"  edge    feasibility begins {between}")
        return "\n".join(lines)


def _mapped(function: Callable[[Number], float], x: npt.ArrayLike) -> Any:
    places = table(x, "x", "pass finite numbers", negative=True)
    values = np.array([function(place) for place in places.ravel().tolist()])
    return values.reshape(places.shape) if places.ndim else float(values[0])
