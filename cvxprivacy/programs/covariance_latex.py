r"""The covariance program and its dual in LaTeX, from what was stated.

For any :math:`Y ≻ 0`, :math:`-\log\det(S + BΣBᵀ) ≥ \log\det Y + m - \mathrm{tr}\,Y(S + BΣBᵀ)`, so
that the dual has a Y for each view, P ≽ 0 for Σ ≼ Σ̄, and λ for every constraint, called as in
``solution.duals``; Y is the inverse of what ``solution.posteriors`` has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxprivacy.programs.covariance import GaussianView
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.latex import aligned, each, plus
from cvxprivacy.programs.lettering import Wording
from cvxprivacy.programs.notation import logarithm, tex, upright

__all__ = ["BoxWriter", "CovarianceWriter"]

_TRACE = r"\mathrm{tr}\,"


@dataclass(frozen=True)
class CovarianceWriter:
    """What a covariance program, and its dual, are in LaTeX.

    Attributes
    ----------
    encoded, hidden : tuple of int
        V, and W, among the variables.
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
    hidden: tuple[int, ...]
    conditioned: bool
    above: str
    objective: Expression
    rows: Mapping[str, Constraint]
    caps: Iterable[str]
    units: str
    dependent: bool

    # ---- pieces --------------------------------------------------------------------------

    def _views(self) -> dict[str, GaussianView]:
        terms = [self.objective, *(row.expression for row in self.rows.values())]
        return {name: term.views[name] for term in terms for name in term.weights}

    def _is_encoded(self, view: GaussianView) -> bool:
        """Whether it sees all that is encoded, and nothing else."""
        return sorted(view.of) == sorted(self.encoded)

    def _noisy(self, view: GaussianView) -> bool:
        """Whether V does not determine what it sees."""
        return not set(view.of) <= set(self.encoded)

    def _reference(self, view: GaussianView) -> str:
        if view.reference == "marginal" and not (self._is_encoded(view) and not self.conditioned):
            return r"\Sigma_W"
        return self.above

    def _spread(self, view: GaussianView) -> str:
        if self._is_encoded(view):
            return r"\Sigma"
        inner = r"B \, \Sigma \, B^\top"
        return f"S + {inner}" if self._noisy(view) else inner

    def _cost(self, key: Any, expression: Expression) -> str:
        """Return the matrix of a cost; "" for the identity."""
        if len(expression.summands) == 1 and expression.costs is not None:
            factor = float(next(iter(expression.summands.values())))
            if (expression.costs == factor * np.eye(len(expression.costs))).all():
                return ""
        return key.text.split("(")[0] if isinstance(key, Wording) else f"C_{{{upright(key)}}}"

    def _costs(self, expression: Expression) -> list[tuple[Any, str]]:
        return [(c, self._cost(k, expression)) for k, c in expression.summands.items()]

    def _amounts(self, expression: Expression) -> list[tuple[Any, str]]:
        constant = float(expression.constant)
        terms: list[tuple[Any, str]] = [(constant, "")] if constant else []
        for name, weight in expression.weights.items():
            view = expression.views[name]
            spread = self._spread(view)
            spread = spread if spread == r"\Sigma" else rf"\left({spread}\right)"
            ratio = rf"\frac{{\det {self._reference(view)}}}{{\det {spread}}}"
            terms.append((weight, rf"\tfrac{{1}}{{2}} {logarithm(self.units)} {ratio}"))
        return terms + [(c, rf"{_TRACE}{m}\Sigma") for c, m in self._costs(expression)]

    def _definitions(self) -> list[str]:
        lines, condition = [], r" \mid Z" if self.conditioned else ""
        for view in self._views().values():
            if self._noisy(view):
                both = "X, Z" if self.conditioned else "X"
                lines.append(rf"S = \Sigma_{{W \mid {both}}}")
                lines.append(rf"B = \Sigma_{{W X{condition}}} \, {self.above}^{{-1}}")
            elif not self._is_encoded(view):
                lines.append(r"B \text{ selects } W \text{: } B \, V = W")
        for expression in [self.objective, *(row.expression for row in self.rows.values())]:
            for _, matrix in self._costs(expression):
                if matrix.startswith("C") and expression.latex and not expression.weights:
                    lines.append(rf"{_TRACE}{matrix}\Sigma = {expression.latex}")
        if self.dependent:
            lines.append(r"X \text{ less what others of it determine}")
        return list(dict.fromkeys(lines))

    # ---- what is written -----------------------------------------------------------------

    def expanded(self) -> str:
        """Return min … s.t. … over Σ, without delimiters."""
        lines = []
        for row in self.rows.values():
            up = row.relation == r"\ge"
            sign = -1 if up else 1
            left = plus([(sign * c, text) for c, text in self._amounts(row.expression)])
            lines.append(
                rf"{left} {row.relation} {row.level or tex(sign * float(row.number) + 0.0)}"
            )
        lines.append(rf"0 \preceq \Sigma \preceq {self.above}")
        lines += [rf"\Sigma \preceq {_cap(name)}" for name in self.caps]
        objective = plus(self._amounts(self.objective))
        return aligned(r"\Sigma", objective, lines, self._definitions())

    def dual(self) -> str:
        """Return max … s.t. … over Y, P and λ, without delimiters."""
        log, half = logarithm(self.units), _half(self.units)
        weights: dict[str, list[tuple[Any, str]]] = {}
        multipliers = {name: rf"\lambda_{{{upright(name)}}}" for name in self.rows}
        for name, weight in self.objective.weights.items():
            weights.setdefault(name, []).append((weight, ""))
        for row_name, row in self.rows.items():
            for name, weight in row.expression.weights.items():
                weights.setdefault(name, []).append((weight, multipliers[row_name]))
        objective: list[tuple[Any, str]] = []
        slack: list[tuple[Any, str]] = [(1, "P")]
        parts = [(name, f"P_{{{upright(name)}}}") for name in self.caps]
        slack += [(1, part) for _, part in parts]
        slack += [(c, m or "I") for c, m in self._costs(self.objective)]
        for row_name, row in self.rows.items():
            slack += [
                (c, rf"{multipliers[row_name]} \, {m or 'I'}")
                for c, m in self._costs(row.expression)
            ]
        conditions = []
        for name, view in self._views().items():
            y = f"Y_{{{name}}}"
            factor, omega = weights[name][0]
            if len(weights[name]) > 1:
                factor, omega = 1, rf"\left({plus(weights[name])}\right)"
            omega = omega and rf"{omega} \, "
            nats = [(len(view.of), "")]
            nats += [(-1, rf"{_TRACE}{y} S")] if self._noisy(view) else []
            linear = rf"\left({plus(nats)}\right)" if len(nats) > 1 else rf"\cdot {plus(nats)}"
            inner = (
                rf"\tfrac{{1}}{{2}} {log} \det {self._reference(view)}"
                rf" + \tfrac{{1}}{{2}} {log} \det {y} + {half} {linear}"
            )
            alone = not omega and factor == 1
            objective.append((factor, inner if alone else rf"{omega}\left({inner}\right)"))
            pullback = y if self._is_encoded(view) else rf"B^\top {y} \, B"
            slack.append((-factor, rf"{half} \, {omega}{pullback}"))
            conditions.append(rf"{y} \succ 0")
        objective.append((-1, rf"{_TRACE}P \, {self.above}"))
        objective += [(-1, rf"{_TRACE}{p} \, {_cap(name)}") for name, p in parts]
        constant = float(self.objective.constant)
        for row_name, row in self.rows.items():
            right = float(row.number) - float(row.expression.constant)
            bound = rf"{row.level} \, " if row.level else ""
            size = 1.0 if row.level else right
            if size:
                objective.append((-size, bound + multipliers[row_name]))
        if constant:
            objective.append((constant, ""))
        conditions = [rf"{plus(slack)} \succeq 0", *conditions, r"P \succeq 0"]
        conditions += [rf"{p} \succeq 0" for _, p in parts]
        if multipliers:
            conditions.append(rf"{', '.join(multipliers.values())} \ge 0")
        over = ",\\, ".join(["Y", "P", r"\lambda"] if multipliers else ["Y", "P"])
        return aligned(over, plus(objective), conditions, self._definitions(), least=False)


@dataclass(frozen=True)
class BoxWriter:
    """What water in boxes is in LaTeX, and its dual: min ½ Σ log (offset + cap)/(offset + x).

    Attributes
    ----------
    units : {"bits", "nats"}
    poured : str
        What the amount is called.
    amount : float
    level, offset, cap : str
        x_i ≤ cap, and what stands under it; "" for nothing.
    """

    units: str
    poured: str
    amount: float
    level: str
    offset: str
    cap: str

    def expanded(self) -> str:
        """Return min … s.t. … over x, without delimiters."""
        x, cap, log = self.level, self.cap, logarithm(self.units)
        parts = (f"{self.offset} + {part}" if self.offset else part for part in (cap, x))
        ratio = "\\frac{{{}}}{{{}}}".format(*parts)
        lines = [rf"\sum_{{i}} {x} \le {tex(self.amount)}", each(rf"0 \le {x} \le {cap}", ["i"])]
        return aligned(x, rf"\tfrac{{1}}{{2}} \sum_{{i}} {log} {ratio}", lines)

    def dual(self) -> str:
        """Return max … s.t. … over Y, P and λ, without delimiters."""
        offset, cap, half = self.offset, self.cap, _half(self.units)
        log, price = logarithm(self.units), rf"\lambda_{{{upright(self.poured)}}}"
        top = rf"\left({offset} + {cap}\right)" if offset else cap
        linear = rf" \left(1 - {offset} \, Y_i\right)" if offset else ""
        inner = rf"\tfrac{{1}}{{2}} {log} \left({top} \, Y_i\right) + {half}{linear} - {cap} \, P_i"
        objective = rf"\sum_{{i}} \left({inner}\right) - {tex(self.amount)} \, {price}"
        lines = [each(rf"{half} \, Y_i \le {price} + P_i", ["i"]), each("Y_i > 0", ["i"])]
        lines += [each(r"P_i \ge 0", ["i"]), rf"{price} \ge 0"]
        return aligned(r"Y,\, P,\, \lambda", objective, lines, least=False)


def _half(units: str) -> str:
    """Return half a nat in some units."""
    return r"\tfrac{\log_2 e}{2}" if units == "bits" else r"\tfrac{1}{2}"


def _cap(name: str) -> str:
    return "M" if name == "cap" else f"M_{{{upright(name)}}}"
