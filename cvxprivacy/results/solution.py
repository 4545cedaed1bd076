"""What ``solve`` returns: the optimum with its proof, prices and release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import count, takewhile
from typing import Any

import numpy as np

from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy.frozen import Frozen, FrozenDict, frozen, owned
from cvxprivacy.programs.expression import indexed
from cvxprivacy.release.channel import Channel
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.informed import Informed
from cvxprivacy.results.price_bounds import Price
from cvxprivacy.text import facts_html

__all__ = ["GaussianSolution", "Solution"]

_DIGITS = 1e-6  # of a value, which an enclosure has that is narrower


class _ByRow(FrozenDict):
    """Numbers by name; of the rows ``v.0``, ``v.1``, … of a vector constraint all under ``v``."""

    def __missing__(self, name: str) -> np.ndarray:
        rows = list(takewhile(self.__contains__, (f"{name}.{i}" for i in count())))
        if not rows:
            raise KeyError(name)
        return owned(np.array([self[row] for row in rows], float))

    def __reduce__(self) -> Any:
        return _by_row, (dict(self),)


def _by_row(values: Mapping[str, Any]) -> _ByRow:
    return _ByRow(frozen(values))


class Solution(Frozen):
    """A certified optimum: what ``solve`` of every discrete problem returns.

    Attributes
    ----------
    status : {"certified", "loose", "infeasible", "uncertified"}
        Decided by the certificate, never by a solver.
    value : float
        Objective at the released channel, an upper bound of the minimum; a lower one of a maximum.
    lower, upper, gap : float
        The proved enclosure of the optimum, in ``value_units``.
    units : {"bits", "nats"}
        Of information.
    value_units : {"bits", "nats"} or None
        Of the value; None where distortion is minimised, or has a part in it.
    terms : dict of str to Enclosure
        Named quantities of the release, each also an attribute (``solution.risk``).
    duals : dict of str to float or array
        Multipliers of the program in its own units: every row and auxiliary by name, ``mass``
        of Σ_x̂ Q = p, ``floor`` and ``cap`` of the entry bounds; signs as in CVXPY.  (Those of
        ``problem.problem`` belong to the scaled statement that the solver sees.)
    prices : dict of str to Price or array
        d value / d (the number that was typed), for each number typed, with proved ends (see
        :class:`Price`); of a vector constraint ``v`` one for each row, ``v.0``, ``v.1``, … as in
        ``duals``, and both have all of them as an array under ``v``, in CVXPY's order.  Infinite
        where the least tightening makes the problem infeasible: −inf for a budget of least
        distortion, +inf for a floor of 1.  Proved when they are first read.
    unproved_prices : dict of str to float or array
        The prices by the multipliers alone, which are not proved and take no time.
    release : Channel, GaussianRelease or None
        The optimal randomisation; ``channel`` is the same, on discrete problems.
    certificate : Certificate
        The proof, to be verified again and written to a file.
    posteriors : dict of str to array, shape (|V|, m)
        r(v | y) of each view: the multipliers of its information.
    least_favourable : dict
        Where the worst of several is minimised, the weights whose mean proves the lower end: of
        laws by name; with ``prior="any"`` of values of W, a prior to which as much is told as to
        any.
    informed : Informed or None
        Where the encoder saw W: what is told to who knows X, before the release and by it, which
        the risk does not tell; of several laws the one that tells most.  Its I(W; X, X̂) is the
        term ``informed_risk``.
    log : list of str
        What closed forms and solvers reported; nothing depends on it.
    notes : list of str
        What a reader of the value should know.

    Examples
    --------
    X agrees with W four times in five, and one letter in five may be changed.  The best release
    changes both letters alike; W and X̂ then differ with probability 0.2 · 0.8 + 0.8 · 0.2 = 0.32,
    and I(W; X̂) = 1 − h(0.32) bits:

    >>> import numpy as np
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    >>> solution.status, round(solution.value, 6)
    ('certified', 0.095619)
    >>> bool(np.isclose(solution.value, 1 + 0.32 * np.log2(0.32) + 0.68 * np.log2(0.68)))
    True
    >>> solution.channel.matrix.round(4).tolist()
    [[0.8, 0.2], [0.2, 0.8]]

    The next hundredth of distortion buys 0.0065 bits:

    >>> round(solution.prices["budget"], 4)
    -0.6525
    >>> print(solution)
    PrivacyDistortion: certified (information in bits)
      program               min I(W; X̂)  s.t.  E d(X, X̂) ≤ 0.2
      alphabets             |W| = 2, |X| = 2, |X̂| = 2
      optimum               0.09561854...
      enclosure             [0.09561854..., 0.09561854...], gap ...
      risk                  0.0956185
      distortion            0.2
      d optimum / d budget  -0.65248
    """

    _sized = "alphabets"

    def __init__(
        self,
        certificate: Certificate,
        *,
        title: str,
        sizes: str,
        release: Any,
        prices: Any,
        duals: Mapping[str, Any],
        posteriors: Mapping[str, np.ndarray],
        log: list[str],
        notes: Sequence[str] = (),
        least_favourable: Mapping[Any, float] | None = None,
        informed: Mapping[str, Informed] | None = None,
    ) -> None:
        self.certificate = certificate
        self.title, self.sizes = title, sizes
        self.release, self.log = release, frozen(log)
        laws = dict(informed or {})
        self.informed = max(laws.values(), key=lambda each: each.after.upper, default=None)
        caution = "" if self.informed is None else self.informed.caution
        coarse = _coarse(certificate)
        self.notes = frozen([*notes, *filter(None, (caution, coarse))])
        self.terms = frozen({
            **{k: Enclosure(*ends) for k, ends in certificate.terms.items()},
            **{indexed("informed_risk", law): each.after for law, each in laws.items()},
        })  # fmt: skip
        self._priced, self.duals = prices, _by_row(duals)
        self.posteriors = frozen(posteriors)
        self.least_favourable = frozen(dict(least_favourable or {}))

    @cached_property
    def prices(self) -> Mapping[str, Any]:
        """The derivatives of the optimum by the numbers that were typed; proved when first read."""
        priced = self._priced
        prices: Mapping[str, Any] = priced if isinstance(priced, Mapping) else priced.proved()
        return _by_row(prices)

    @property
    def unproved_prices(self) -> Mapping[str, Any]:
        """The prices by the multipliers alone, which are not proved and take no time."""
        priced = self._priced
        return priced if isinstance(priced, Mapping) else priced.by_multipliers()

    @property
    def channel(self) -> Channel | None:
        """The release of a discrete problem."""
        if self.release is None or isinstance(self.release, Channel):
            return self.release
        raise AttributeError  # which __getattr__ explains

    @property
    def statement(self) -> str:
        """The program that was proved, in one line."""
        return self.certificate.program.statement

    @property
    def status(self) -> str:
        """What is known of the optimum: decided by the certificate, never by a solver."""
        return self.certificate.status

    @property
    def units(self) -> str:
        """The unit of information."""
        return self.certificate.program.units

    @property
    def value_units(self) -> str | None:
        """The unit of the value; None where distortion is minimised, or has a part in it."""
        return self.certificate.value_units

    @property
    def lower(self) -> float:
        """The proved lower end: no release has less, or, of a maximum, this one has as much."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """The proved upper end: this release has at most this, or, of a maximum, every one."""
        return self.certificate.upper

    @property
    def value(self) -> float:
        """The objective at the release, rounded to the worse side.

        An upper bound of a minimum; of what is maximised a lower one.
        """
        return self.certificate.attained

    @property
    def gap(self) -> float:
        """The width of the enclosure, ``upper - lower``."""
        return self.certificate.gap

    def __getattr__(self, name: str) -> Enclosure:
        if name == "channel":
            raise AttributeError(
                "a Gaussian solution has no channel: its randomisation is .release"
            )
        terms = self.__dict__.get("terms", {})
        if name in terms:
            return terms[name]
        raise AttributeError(
            f"a {type(self).__name__} has no {name!r}; its terms are {', '.join(terms) or 'none'}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.terms]

    def __repr__(self) -> str:
        ends = f"[{self.lower!r}, {self.upper!r}]"
        units = self.certificate.units_in_words
        return f"Solution({self.title}, {self.status}, value in {ends} {units})"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("program", self.statement), (self._sized, self.sizes)]
        notes = [("note", note) for note in self.notes]
        if self.status == "infeasible":
            return [*lines, ("certificate", "no release satisfies the constraints"), *notes]
        best = "optimum" if self.status == "certified" else "best found"
        lines.append((best, _agreed(self.lower, self.upper)))
        lines.append(("enclosure", f"[{self.lower:.12g}, {self.upper:.12g}], gap {self.gap:.1e}"))
        lines += [(name, f"{term:.6g}") for name, term in self.terms.items()]
        if self.informed is not None:
            lines.append((f"who knows {self.informed.names[1]}", self.informed.words))
        for name, price in self.prices.items():
            text = f"{price:+.5g}" if np.ndim(price) == 0 else f"{len(price)} numbers"
            text = price.words if isinstance(price, Price) else text
            what = "optimum" if self.status == "certified" else "best found"
            lines.append((f"d {what} / d {name}", text))
        return [*lines, *notes]

    def __str__(self) -> str:
        head = f"{self.title}: {self.status} (information in {self.units})"
        width = max(len(name) for name, _ in self._lines())
        return "\n".join([head, *(f"  {name:<{width}}  {text}" for name, text in self._lines())])

    def _repr_html_(self) -> str:
        title = f"{self.title}: {self.status} (information in {self.units})"
        return facts_html(title, self._lines())


class GaussianSolution(Solution):
    """A certified optimum over error covariances: a Gaussian problem's :class:`Solution`.

    Attributes
    ----------
    error_covariance : ndarray, shape (|X|, |X|)
        Σ = Cov(X − X̂) at the release.  Of water-filling over more than 200 variances this, and
        all matrices of ``duals`` and ``posteriors``, are their diagonals, shape (|X|,).
    duals : dict of str to float or array
        Multipliers of the rows, and of 0 ≼ Σ, Σ ≼ Σ_X (and a cap) as matrices in the coordinates
        of the independent encoded variables; d value / d bound of a row is minus its multiplier.
    posteriors : dict of str to array
        Cov(A | X̂) of each view A, as the dual has it.

    Examples
    --------
    One variable, ρ = 0.8, and half of the variance of X allowed as error, d = ½: the optimum is
    −½ log(1 − (1 − d) ρ²) (Rebollo-Monedero et al. 2010, eq. 7), and the error takes all it may:

    >>> import numpy as np
    >>> import cvxprivacy as cpv
    >>> solution = cpv.QuadraticGaussian(cpv.GaussianSource.scalar(0.8), budget=0.5).solve()
    >>> solution.status, round(solution.value, 6)
    ('certified', 0.278197)
    >>> bool(np.isclose(solution.value, -0.5 * np.log2(1 - 0.5 * 0.8**2)))
    True
    >>> solution.error_covariance.round(6).tolist(), round(solution.prices["budget"], 4)
    ([[0.5]], -0.6789)
    """

    _sized = "variables"

    def __init__(
        self, *arguments: Any, error_covariance: np.ndarray | None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.error_covariance = frozen(error_covariance)


def _coarse(certificate: Certificate) -> str:
    """Say so where high accuracy, which is a share of what an objective can be, is not of it."""
    gap, value = certificate.gap, abs(certificate.attained)
    high = certificate.accuracy == "high" and certificate.status == "certified"
    if not high or gap <= _DIGITS * value:
        return ""
    unit = "a nat" if certificate.value_units else "the least step of the objective"
    return f"high accuracy is relative to {unit}, not to the value: the enclosure is {gap:.1e} wide"


def _agreed(lower: float, upper: float) -> str:
    """Return the upper end to as many digits as both ends share."""
    for digits in range(12, 2, -1):
        if f"{lower:.{digits}g}" == f"{upper:.{digits}g}":
            return f"{upper:.{digits}g}"
    return f"{upper:.3g}"
