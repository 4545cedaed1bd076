"""The base of both kinds of Gaussian water-filling: what is poured, its level, and its proof."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.certificates.water import TypedBoxes, WaterCertificate, boxes_of
from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, FloatArray, floats, rational, short
from cvxprivacy.formulations.covariance import CovarianceProblem
from cvxprivacy.formulations.problem import Formulation
from cvxprivacy.frozen import owned
from cvxprivacy.model.gaussian import GaussianSource
from cvxprivacy.model.information import nat
from cvxprivacy.programs.covariance import CovarianceDual, ErrorCovariance
from cvxprivacy.programs.covariance_latex import boxes
from cvxprivacy.programs.expression import Minimize
from cvxprivacy.programs.latex_symbols import aligned, tex
from cvxprivacy.programs.parameter import Scalar
from cvxprivacy.programs.water import WaterProgram
from cvxprivacy.release.gaussian import MOST, DiagonalRelease, GaussianRelease, diagonal
from cvxprivacy.results.price_bounds import ClosedFormPrice
from cvxprivacy.results.solution import GaussianSolution
from cvxprivacy.solvers.family import Family
from cvxprivacy.solvers.task import Outcome, reported
from cvxprivacy.solvers.water_level import box_level, writable
from cvxprivacy.validation import array, table, typed

__all__ = ["FillingProblem", "positive"]


def positive(values: Any, argument: str, remedy: str) -> Exact:
    """Return numbers > 0 as they were typed."""
    numbers = table(values, argument, remedy, axes=(1,))
    zeros = np.flatnonzero(numbers == 0)
    if len(zeros):
        raise InputError(argument, "0", remedy, where=int(zeros[0]), value=0)
    return owned(numbers)


class FillingProblem(CovarianceProblem):
    """Independent coordinates of variances ``caps``: W_i = X_i + noise of variance 1/gain.

    Solved and proved coordinate by coordinate, in time O(n log n) and memory O(n).  What needs the
    covariance matrix is there for up to 200 coordinates: ``source``, ``program``, ``problem`` and
    the quantities that :meth:`with_constraint` takes.

    Attributes
    ----------
    total : Fraction
        What is poured; ``level`` is how high it stands, ``allocation`` what each coordinate has.
    """

    _total = "budget"  # what the number that is poured is called
    _boxes: tuple[str, str, str] = "D_i", "", r"\sigma_i^2"  # x_i, its offset and its cap, in LaTeX

    def _pour(self, gains: Exact | None, caps: Exact, total: Fraction, units: str) -> None:
        nat(units)
        self._gains, self._caps, self.total, self.units = gains, caps, total, units
        self.encoder, self.given, self.weighted, self.caps = "x", False, False, {}

    # ---- the level -----------------------------------------------------------------------

    @cached_property
    def level(self) -> Fraction | None:
        """How high the water stands; None where the total covers all caps."""
        level = box_level(self._typed_boxes, self._gains, self._caps, self.total)
        if level is not None and not (level > 0 and short(level)):
            problem, remedy = "so little that no proof can hold its level", "pass a larger number"
            raise InputError(self._total, problem, remedy, value=self.total)
        return level

    @cached_property
    def _typed_boxes(self) -> TypedBoxes:
        return boxes_of(self._gains, self._caps)

    @property
    def _offsets(self) -> tuple[Fraction, ...]:
        if self._gains is None:
            return (Fraction(0),) * len(self._caps)
        return tuple(1 / rational(gain) for gain in self._gains.tolist())

    @property
    def allocation(self) -> list[Fraction]:
        """What each coordinate has."""
        return self._poured_to(self._top if self.level is None else self.level)

    def _poured_to(self, level: Fraction) -> list[Fraction]:
        pairs = zip(self._offsets, map(rational, self._caps.tolist()), strict=True)
        return [min(max(level - offset, Fraction(0)), cap) for offset, cap in pairs]

    def _numbers(self) -> list[str]:
        return [self._total]

    # ---- as a covariance program ---------------------------------------------------------

    @cached_property
    def source(self) -> GaussianSource:  # type: ignore[override]  # as others read it, an attribute
        """The covariance of X and W, of at most 200 coordinates."""
        size = len(self._caps)
        if size > MOST:
            problem = f"{size:,} coordinates, too many for a covariance matrix"
            remedy = f"use at most {MOST}, or level, allocation and solve()"
            raise InputError("variances" if self._gains is None else "caps", problem, remedy)
        noisy = self._gains is not None
        law = [[Fraction(0)] * (size * (1 + noisy)) for _ in range(size * (1 + noisy))]
        for i, (offset, cap) in enumerate(zip(self._offsets, self._caps.tolist(), strict=True)):
            law[i][i] = rational(cap)
            if noisy:
                law[size + i][size + i] = rational(cap) + offset
                law[i][size + i] = law[size + i][i] = rational(cap)
        places = list(range(size))
        hidden = [size + i for i in places] if noisy else places
        return GaussianSource(law, sensitive=hidden, key=places)

    @cached_property
    def key(self) -> tuple[int, ...]:  # type: ignore[override]
        """The coordinates, all of which are encoded."""
        return tuple(self.source.x)

    @property
    def encoded(self) -> tuple[int, ...]:  # type: ignore[override]
        """The coordinates, all of which are encoded."""
        return self.key

    @cached_property
    def cost(self) -> Exact:  # type: ignore[override]
        """The identity: the errors of all coordinates count alike."""
        return owned(np.eye(len(self.key)))

    def formulation(self) -> Formulation:
        trace = self.distortion.named("distortion", r"\mathrm{tr}\,\Sigma")
        return Minimize(self.risk), {self._total: trace <= Scalar.named(self.total, self._total)}

    def _proposal(self) -> Any:
        """Return diag(x), λ = 1/2v, and the multiplier of Σ ≼ Σ_X, all exact."""
        size, x = len(self._caps), self.allocation
        price = Fraction(0) if self.level is None else 1 / (2 * self.level)
        identity = _diagonal([Fraction(1)] * size)
        spread = [offset + part for offset, part in zip(self._offsets, x, strict=True)]
        slopes = [1 / (2 * s) if s else Fraction(0) for s in spread]
        posterior = identity, _diagonal([2 * p or Fraction(1) for p in slopes])
        above = {"": (identity, _diagonal([max(p - price, Fraction(0)) for p in slopes]))}
        dual = CovarianceDual({self._total: price}, {"W": posterior}, above)
        return ErrorCovariance(identity, _diagonal(x)), dual

    # ---- in print ------------------------------------------------------------------------

    @property
    def exact_program(self) -> Any:
        """Gains, caps and total, of which the proof speaks; None where constraints were added."""
        if self._added:
            return None
        parts = self._gains, self._caps, self.total, self.units
        return WaterProgram(*parts, statement=self._statement())

    @property
    def _hidden(self) -> str:
        return "X" if self._gains is None else "W"

    @property
    def latex(self) -> str:
        if self._added:
            return super().latex
        lines = [
            rf"\mathrm{{tr}}\,\Sigma \le {tex(float(self.total))}",
            r"0 \preceq \Sigma \preceq \Sigma_{X}",
        ]
        return aligned(r"\Sigma", rf"I({self._hidden}; \hat X)", lines)

    def _statement(self) -> str:
        if self._added:
            return super()._statement()
        poured = f"tr Σ ≤ {float(self.total):.6g}"
        return f"min I({self._hidden}; X̂)  s.t.  {poured}, 0 ≼ Σ ≼ Σ_X"

    def _sizes(self) -> str:
        return f"W of {len(self._caps):,}, X of {len(self._caps):,}"

    @property
    def _written(self) -> Any:
        if self._added:
            return super()._written
        return boxes(self.units, self._total, float(self.total), *self._boxes)

    # ---- solving -------------------------------------------------------------------------

    def _outcome(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        if self.exact_program is None:
            return self._programmed(options, family)
        return Outcome(self._closed_form(options["accuracy"]), [reported("closed form")])

    def _closed_form(self, accuracy: str) -> Certificate:
        """Return what the level proves."""
        level = self._top if self.level is None else self.level
        program, boxes = self.exact_program, self._typed_boxes
        return WaterCertificate(program, accuracy, boxes, level, self._price)

    def _programmed(self, options: Mapping[str, Any], family: Family | None = None) -> Outcome:
        return super()._outcome(options, family)

    def _candidate(
        self, candidate: Any, duals: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> tuple[Outcome, float]:
        """Take a level, or what it pours along each axis, for the covariance that it stands for."""
        if not isinstance(candidate, GaussianRelease) and np.ndim(candidate) < 2:
            if np.ndim(candidate) == 0:
                level = rational(typed(candidate, "candidate", zero=False))
                poured = np.array([_near(x) for x in self._poured_to(level)])
                if duals is None:
                    price = min(1 / (2 * level), Fraction(2) ** 1000)  # which a float can hold
                    duals = {self._total: float(price) * nat(self.units)}
            else:
                remedy = f"pass what each of {len(self._caps)} coordinates has, a level, or Σ"
                poured = array(candidate, "candidate", remedy, axes=(1,))
                if len(poured) != len(self._caps):
                    raise InputError("candidate", f"{len(poured)} numbers", remedy)
            axes = getattr(self, "_vectors", None)
            candidate = np.diag(poured)
            if axes is not None:
                half = axes * poured @ axes.T / 2
                candidate = half + half.T  # which rounding is not
        return super()._candidate(candidate, duals, options)

    @property
    def _top(self) -> Fraction:
        """A level at which all is full."""
        most = rational(self._caps.max())
        return writable(most if self._gains is None else most + 1 / rational(self._gains.min()))

    @property
    def _price(self) -> float:
        """μ = 1/2v, in nats."""
        return 0.0 if self.level is None else _near(1 / (2 * self.level))

    def _solution(self, outcome: Outcome) -> GaussianSolution:
        if not isinstance(outcome.certificate, WaterCertificate):
            return super()._solution(outcome)
        unit, price = nat(self.units), self._price
        errors, left, spread = self._poured_floats()
        with np.errstate(over="ignore", divide="ignore"):
            slope = 0.5 / spread
        if self.level is not None:  # of what is wet, the very price
            slope[spread == _near(self.level)] = price
        return GaussianSolution(
            outcome.certificate,
            title=type(self).__name__,
            sizes=self._sizes(),
            release=DiagonalRelease(errors, left, floats(self._caps)),
            prices=ClosedFormPrice(self, self._total, -price * unit + 0.0, outcome.certificate),
            duals={
                self._total: price * unit,
                "Σ ≼ Σ_X": diagonal(unit * _beyond(slope, price)),
                "0 ≼ Σ": diagonal(unit * _beyond(price, slope)),
            },
            posteriors={"W": diagonal(spread)},
            log=outcome.log,
            error_covariance=diagonal(errors),
            notes=self._notes(),
        )

    def _notes(self) -> list[str]:
        return []  # variances that were typed: no records are behind them

    def _poured_floats(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x_i, what it leaves of the cap, and o_i + x_i, each rounded about once."""
        level, size = self.level, len(self._caps)
        typed = [v for v in (self._gains, self._caps) if v is not None]
        if size <= MOST or (level or 0) > 2**1000 or any(v.dtype.kind != "f" for v in typed):
            return self._exactly_poured(np.arange(size))
        caps, (offset, correction) = self._caps, _reciprocals(self._gains, size)
        top = offset + caps
        if level is None:
            return caps, np.zeros(size), top
        high = float(level)
        low = float(level - Fraction(high))
        with np.errstate(invalid="ignore"):  # of an offset beyond floats, which is mended below
            lost = (offset - (top - (top - offset))) + (caps - (top - offset))  # of a rounded sum
            poured = (
                np.clip((high - offset) + (low - correction), 0.0, caps),
                np.clip((top - high) + (lost + correction - low), 0.0, caps),
                np.clip(high, offset, top),
            )
        near = np.minimum(np.abs(high - offset), np.abs(top - high)) < 2.0**-40 * high
        some = np.flatnonzero((near & (offset > 0)) | ~np.isfinite(top))
        for values, exact in zip(poured, self._exactly_poured(some), strict=True):
            values[some] = exact
        return poured

    def _exactly_poured(self, some: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the same of some coordinates, from rationals."""
        rows = []
        for i in some:
            cap = rational(self._caps[i])
            offset = Fraction(0) if self._gains is None else 1 / rational(self._gains[i])
            x = cap if self.level is None else min(max(self.level - offset, Fraction(0)), cap)
            rows.append((x, cap - x, offset + x))
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        above, left, spread = (np.array(list(map(_near, values))) for values in columns)
        return above, left, spread


def _beyond(a: Any, b: Any) -> FloatArray:
    """Return (a − b)⁺, 0 of two infinities."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(a > b, a - b, 0.0))


def _near(value: Fraction) -> float:
    """Return the nearest float, infinite beyond all."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _reciprocals(gains: Exact | None, size: int) -> tuple[FloatArray, FloatArray]:
    """Return 1/g as a float and what it is off by, to twice a float's digits."""
    if gains is None:
        return np.zeros(size), np.zeros(size)
    m, exponent = np.frexp(gains)
    r = 1.0 / m
    parts = [(v * 134217729.0) - (v * 134217729.0 - v) for v in (m, r)]  # the upper 26 bits
    (a, c), (b, d) = parts, (m - parts[0], r - parts[1])
    product = m * r
    error = b * d - (((product - a * c) - b * c) - a * d)
    correction = ((1.0 - product) - error) / m
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(r, -exponent), np.ldexp(correction, -exponent)


def _diagonal(values: Sequence[Fraction]) -> list[list[Fraction]]:
    size = len(values)
    return [[values[i] if i == j else Fraction(0) for j in range(size)] for i in range(size)]
