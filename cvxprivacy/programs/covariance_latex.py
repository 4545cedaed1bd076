r"""The covariance program and its dual in LaTeX, from what was stated.

For any :math:`Y ≻ 0`, :math:`-\log\det(S + BΣBᵀ) ≥ \log\det Y + m - \mathrm{tr}\,Y(S + BΣBᵀ)`, so
that the dual has a Y for each view, P ≽ 0 for Σ ≼ Σ̄, and λ for every constraint, called as in
``solution.duals``; Y is the inverse of what ``solution.posteriors`` has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxprivacy.programs.covariance import GaussianView
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.latex_symbols import (
    PrintedCost,
    Written,
    aligned,
    each,
    logarithm,
    multiplier,
    plus,
    tex,
    times,
    upright,
)

__all__ = ["CovarianceStatement", "boxes"]

_HALF = r"\tfrac{1}{2}"
_TRACE = r"\mathrm{tr}\,"
_HALF_A_NAT = {"bits": r"\tfrac{\log_2 e}{2}", "nats": _HALF}


class _View(NamedTuple):
    """What is observed, S + BΣBᵀ: its size, its covariance before a release, whether B is I, S."""

    size: int
    reference: str
    encoded: bool
    noise: str


@dataclass(frozen=True)
class CovarianceStatement:
    """What a covariance program, and its dual, are in LaTeX.

    Attributes
    ----------
    encoded : tuple of int
        V among the variables.
    conditioned : bool
        Whether Z is known.
    above : str
        Σ̄ in LaTeX.
    objective : Expression
    rows : mapping of str to Constraint
    caps : iterable of str
        Names of further bounds.
    units : {"bits", "nats"}
    dependent : bool
        Whether Σ is of some of X, which determine the others.
    """

    encoded: tuple[int, ...]
    conditioned: bool
    above: str
    objective: Expression
    rows: Mapping[str, Constraint]
    caps: Iterable[str]
    units: str
    dependent: bool

    # ---- pieces --------------------------------------------------------------------------

    @property
    def _terms(self) -> list[tuple[str, Expression]]:
        """The objective, whose multiplier is 1, and the left sides of the constraints."""
        rows = [(multiplier(name), row.expression) for name, row in self.rows.items()]
        return [("", self.objective), *rows]

    def _views(self) -> dict[str, _View]:
        views = {name: term.views[name] for _, term in self._terms for name in term.weights}
        return {name: self._view(view) for name, view in views.items()}

    def _view(self, view: GaussianView) -> _View:
        encoded = sorted(view.of) == sorted(self.encoded)
        marginal = view.reference == "marginal" and (self.conditioned or not encoded)
        noise = "" if set(view.of) <= set(self.encoded) else "S"
        return _View(len(view.of), r"\Sigma_W" if marginal else self.above, encoded, noise)

    def _costs(self, expression: Expression) -> list[tuple[Any, str]]:
        """Return the matrices of a cost with their factors; "" for the identity."""
        costs, summands = expression.costs, expression.summands.items()
        factor = float(next(iter(expression.summands.values()), 0))
        if (
            len(summands) == 1
            and costs is not None
            and (costs == factor * np.eye(len(costs))).all()
        ):
            return [(factor, "")]
        return [
            (c, k.text.split("(")[0] if isinstance(k, PrintedCost) else f"C_{{{upright(k)}}}")
            for k, c in summands
        ]

    def _amounts(self, term: Expression) -> list[tuple[Any, str]]:
        constant = float(term.constant)
        terms: list[tuple[Any, str]] = [(constant, "")] if constant else []
        for name, weight in term.weights.items():
            view = self._view(term.views[name])
            spread = plus([(1, view.noise)] * bool(view.noise) + [(1, r"B \, \Sigma \, B^\top")])
            spread = r"\Sigma" if view.encoded else rf"\left({spread}\right)"
            ratio = rf"\frac{{\det {view.reference}}}{{\det {spread}}}"
            terms.append((weight, rf"{_HALF} {logarithm(self.units)} {ratio}"))
        return terms + [(c, rf"{_TRACE}{m}\Sigma") for c, m in self._costs(term)]

    def _definitions(self) -> list[str]:
        lines, z = [], (", Z", r" \mid Z") if self.conditioned else ("", "")
        for view in self._views().values():
            if view.noise:
                lines.append(rf"S = \Sigma_{{W \mid X{z[0]}}}")
                lines.append(rf"B = \Sigma_{{W X{z[1]}}} \, {self.above}^{{-1}}")
            elif not view.encoded:
                lines.append(r"B \text{ selects } W \text{: } B \, V = W")
        for _, term in self._terms:
            for _, matrix in self._costs(term):
                if matrix.startswith("C") and term.latex and not term.weights:
                    lines.append(rf"{_TRACE}{matrix}\Sigma = {term.latex}")
        lines += [r"X \text{ less what others of it determine}"] * self.dependent
        return list(dict.fromkeys(lines))

    # ---- what is written -----------------------------------------------------------------

    @property
    def expanded(self) -> str:
        """Min … s.t. … over Σ, without delimiters."""
        lines = []
        for row in self.rows.values():
            sign = -1 if row.relation == r"\ge" else 1
            left = plus([(sign * c, text) for c, text in self._amounts(row.expression)])
            right = row.level or tex(sign * float(row.number) + 0.0)
            lines.append(rf"{left} {row.relation} {right}")
        lines.append(rf"0 \preceq \Sigma \preceq {self.above}")
        lines += [rf"\Sigma \preceq {_cap(name)}" for name in self.caps]
        return aligned(r"\Sigma", plus(self._amounts(self.objective)), lines, self._definitions())

    @property
    def dual(self) -> str:
        """Max … s.t. … over Y, P and λ, without delimiters."""
        log, nat = logarithm(self.units), _HALF_A_NAT[self.units]
        caps = {f"P_{{{upright(name)}}}": _cap(name) for name in self.caps}
        slack: list[tuple[Any, str]] = [(1, p) for p in ("P", *caps)]
        objective: list[tuple[Any, str]] = []
        conditions, weights = [], dict[str, list[tuple[Any, str]]]()
        for price, term in self._terms:
            slack += [(c, times(price, m or "I")) for c, m in self._costs(term)]
            for name, weight in term.weights.items():
                weights.setdefault(name, []).append((weight, price))
        for name, view in self._views().items():
            y, ((factor, omega), *others) = f"Y_{{{name}}}", weights[name]
            if others:
                factor, omega = 1, rf"\left({plus(weights[name])}\right)"
            linear = rf"\cdot {view.size}"
            if view.noise:
                linear = rf"\left({view.size} - {_TRACE}{y} {view.noise}\right)"
            logs = rf"{_HALF} {log} \det {view.reference} + {_HALF} {log} \det {y}"
            inner = rf"{logs} + {nat} {linear}"
            alone = not omega and factor == 1
            objective.append((factor, inner if alone else times(omega, rf"\left({inner}\right)")))
            pullback = y if view.encoded else rf"B^\top {y} \, B"
            slack.append((-factor, rf"{nat} \, {times(omega, pullback)}"))
            conditions.append(rf"{y} \succ 0")
        objective += [(-1, rf"{_TRACE}{p} \, {m}") for p, m in {"P": self.above, **caps}.items()]
        for name, row in self.rows.items():
            right = float(row.number) - float(row.expression.constant)
            if row.level or right:
                objective.append(
                    (-1.0 if row.level else -right, times(row.level, multiplier(name)))
                )
        if self.objective.constant:
            objective.append((float(self.objective.constant), ""))
        conditions = [rf"{plus(slack)} \succeq 0", *conditions]
        conditions += [rf"{p} \succeq 0" for p in ("P", *caps)]
        if self.rows:
            conditions.append(rf"{', '.join(map(multiplier, self.rows))} \ge 0")
        over = r"Y,\, P,\, \lambda" if self.rows else r"Y,\, P"
        return aligned(over, plus(objective), conditions, self._definitions(), least=False)


def _cap(name: str) -> str:
    return "M" if name == "cap" else f"M_{{{upright(name)}}}"


def boxes(units: str, poured: str, amount: float, x: str, offset: str, cap: str) -> Written:
    """Return what water in boxes is, min ½ Σ log (offset + cap)/(offset + x), and its dual.

    Parameters
    ----------
    units : {"bits", "nats"}
    poured : str
        What the amount is called.
    amount : float
    x, offset, cap : str
        x_i ≤ cap, and what stands under it; "" for nothing.
    """
    log, nat, price = logarithm(units), _HALF_A_NAT[units], multiplier(poured)
    top, under = (f"{offset} + {part}" if offset else part for part in (cap, x))
    objective = rf"{_HALF} \sum_{{i}} {log} \frac{{{top}}}{{{under}}}"
    lines = [rf"\sum_{{i}} {x} \le {tex(amount)}", each(rf"0 \le {x} \le {cap}", ["i"])]
    top, linear = rf"\left({top}\right)" if offset else cap, ""
    if offset:
        linear = rf" \left(1 - {offset} \, Y_i\right)"
    inner = rf"{_HALF} {log} \left({top} \, Y_i\right) + {nat}{linear} - {cap} \, P_i"
    worth = rf"\sum_{{i}} \left({inner}\right) - {tex(amount)} \, {price}"
    conditions = [rf"{nat} \, Y_i \le {price} + P_i", "Y_i > 0", r"P_i \ge 0"]
    sound = [*(each(line, ["i"]) for line in conditions), rf"{price} \ge 0"]
    dual = aligned(r"Y,\, P,\, \lambda", worth, sound, least=False)
    return Written(aligned(x, objective, lines), dual)
