"""What ``solve`` returns: the optimum with its proof, prices and release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cvxprivacy.certificates import Certificate
from cvxprivacy.release import Channel

__all__ = ["Enclosure", "Solution"]


class Enclosure(NamedTuple):
    """Two proved ends of a number; ``float`` gives the middle."""

    lower: float
    upper: float

    def __float__(self) -> float:
        return self.lower + (self.upper - self.lower) / 2

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __str__(self) -> str:
        return f"[{self.lower!r}, {self.upper!r}]"


class Solution:
    """A certified optimum.

    Attributes
    ----------
    status : {"certified", "loose", "infeasible", "uncertified"}
        Decided by the certificate, never by a solver.
    value : float
        Objective at the released channel, an upper bound of the minimum.
    lower, upper, gap : float
        The proved enclosure of the minimum, in ``units``.
    units : {"bits", "nats"}
    terms : dict of str to Enclosure
        Named quantities of the release, each also an attribute (``solution.risk``).
    duals : dict of str to float or array
        Multiplier of each named constraint of ``problem.problem``, in its shape.
    prices : dict of str to float
        d value / d (the number that was typed), for each number typed.
    release, channel : Channel or None
        The optimal randomisation.
    certificate : Certificate
    posteriors : dict of str to array, shape (|V|, m)
        r(v | y) of each view: the multipliers of its information.
    log : list of str
        What closed forms and solvers reported; nothing depends on it.
    """

    def __init__(
        self,
        certificate: Certificate,
        *,
        title: str,
        statement: str,
        sizes: str,
        channel: Channel | None,
        typed: Mapping[str, str],
        log: list[str],
    ) -> None:
        self.certificate = certificate
        self.title, self.statement, self.sizes = title, statement, sizes
        self.channel = self.release = channel
        self.log = log
        program, dual = certificate.program, certificate.dual
        self.terms = {name: Enclosure(*ends) for name, ends in certificate.terms.items()}
        self.duals: dict[str, Any] = {}
        self.prices: dict[str, float] = {}
        self.posteriors: dict[str, np.ndarray] = {}
        if dual is None or not dual.objective or certificate.primal is None:
            return
        q = program.mass @ certificate.primal.matrix
        for name, row in program.rows.items():
            lam = np.asarray(dual.multipliers[name], float)
            self.duals[name] = lam.copy() if lam.ndim else float(lam)
            self.prices[name] = row.price(lam, q) + 0.0
        for name, term in typed.items():
            self.prices[name] = float(self.terms[term])
        g, _ = program.minorant(dual)
        nu = program.least(g)[1]
        self.duals["mass"] = -nu / program.mass
        self.duals["floor"] = np.maximum(g - nu[:, None], 0.0) / program.mass[:, None]
        if program.upper is not None:
            self.duals["cap"] = np.maximum(nu[:, None] - g, 0.0) / program.mass[:, None]
        for view in program.views:
            log_ratio = program.log_posterior(dual, view)
            self.posteriors[view] = program.reference(view)[:, None] * np.exp(log_ratio)

    @property
    def status(self) -> str:
        return self.certificate.status

    @property
    def units(self) -> str:
        return self.certificate.program.units

    @property
    def lower(self) -> float:
        return self.certificate.lower

    @property
    def upper(self) -> float:
        return self.certificate.upper

    @property
    def value(self) -> float:
        return self.certificate.upper

    @property
    def gap(self) -> float:
        return self.certificate.gap

    def __getattr__(self, name: str) -> Enclosure:
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
        return f"Solution({self.title}, {self.status}, value in {ends} {self.units})"

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("program", self.statement), ("alphabets", self.sizes)]
        if self.status == "infeasible":
            return [*lines, ("certificate", "no release satisfies the constraints")]
        digits = _digits(self.lower, self.upper)
        lines.append(("optimum", f"{self.value:.{digits}f}"))
        lines.append(("enclosure", f"[{self.lower:.12g}, {self.upper:.12g}], gap {self.gap:.1e}"))
        lines += [(name, f"{term:.{digits}f}") for name, term in self.terms.items()]
        lines += [(f"price of {name}", f"{price:+.6g}") for name, price in self.prices.items()]
        return lines

    def __str__(self) -> str:
        head = f"{self.title}: {self.status} (information in {self.units})"
        width = max(len(name) for name, _ in self._lines())
        return "\n".join([head, *(f"  {name:<{width}}  {text}" for name, text in self._lines())])

    def _repr_html_(self) -> str:
        left = "style='text-align:left'"
        rows = "".join(
            f"<tr><th {left}>{name}</th><td {left}>{text}</td></tr>" for name, text in self._lines()
        )
        return (
            f"<b>{self.title}: {self.status}</b> (information in {self.units})<table>{rows}</table>"
        )


def _digits(lower: float, upper: float) -> int:
    """Return how many decimals of a value the enclosure supports, between 3 and 12."""
    gap = upper - lower
    if not math.isfinite(gap) or gap <= 0:
        return 12 if gap == 0 else 6
    return int(min(12, max(3, math.floor(-math.log10(gap)))))
