r"""The program of the most useful release, one output at a time.

Of a channel with columns c_y(s) = p(y | s),

.. math::
   \begin{aligned}
   \text{maximise}   \quad & \sum_y μ(c_y), \qquad μ(c) = \sum_k α_k F_k(V_k p c) \\
   \text{subject to} \quad & c_y ∈ 𝒞, \quad \sum_y c_y = 1, \quad
                             \sum_y ⟨C_j(·, y), p\, c_y⟩ ≤ b_j,
   \end{aligned}

where an output may be taken as often as one likes, and 𝒞 is one polyhedral cone for all of them.  μ
is convex and homogeneous: each column is split into extreme rays of 𝒞 at no loss, and what is left
is a linear program over these (U2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from cvxprivacy.exact import FloatArray
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.latex import aligned
from cvxprivacy.programs.lettering import Lettering
from cvxprivacy.programs.notation import tex

__all__ = ["RayLatex", "UsefulDual", "UsefulProgram", "plain"]


class UsefulProgram(ChannelProgram):
    """A channel program whose objective is maximised, over any number of outputs."""

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "kind": "useful"}


def plain(program: UsefulProgram) -> ChannelProgram:
    """Return the convex program of the same rows: it is feasible if this one is."""
    same = {f.name: getattr(program, f.name) for f in fields(program)}
    return ChannelProgram(**same)


@dataclass(frozen=True)
class UsefulDual:
    """What proves that no release is more useful.

    Attributes
    ----------
    letters : (n,) array
        λ of Σ_y c_y = 1.
    multipliers : mapping of str to float
        κ_j of the rows that are of all outputs together.
    """

    letters: FloatArray
    multipliers: Mapping[str, float] = field(default_factory=dict)
    objective = 1  # there is no contradiction of this kind: what is feasible is a convex program

    def residuals(self, program: UsefulProgram, channel: Matrix) -> dict[str, float]:
        """Return complementarity, ⟨λ, 1⟩ + κ b − Σ_y μ(c_y) before λ is shifted, in floats."""
        value = program.attained(channel)
        worth = float(self.letters.sum())
        for name, kappa in self.multipliers.items():
            row = program.constraints[name]
            worth += kappa * (float(row.bounds(program.m)) - float(row.expression.constant))
        return {"complementarity": worth - value, "stationarity": 0.0}

    def to_dict(self) -> dict[str, Any]:
        return {
            "letters": self.letters.tolist(),
            "multipliers": dict(self.multipliers),
            "objective": self.objective,
        }


class RayLatex:
    """The linear program over rays in LaTeX, and its dual."""

    def __init__(self, lettering: Lettering, budget: Any) -> None:
        self._x = lettering.s
        self._budget = None if budget is None else tex(float(budget))

    def expanded(self) -> str:
        lines = [rf"\sum_{{r, y}} α_{{ry}}\, r({self._x}) = 1 \quad \forall\, {self._x}"]
        if self._budget is not None:
            spent = rf"\sum_{{{self._x}}} p({self._x})\, d({self._x}, y)\, r({self._x})"
            lines.append(rf"\sum_{{r, y}} α_{{ry}} {spent} \le {self._budget}")
        return aligned(r"α \ge 0", r"\sum_{r, y} α_{ry}\, μ(r)", lines, least=False)

    def dual(self) -> str:
        worth, right = rf"\sum_{{{self._x}}} λ({self._x})\, r({self._x})", ""
        if self._budget is not None:
            worth += rf" + κ \sum_{{{self._x}}} p({self._x})\, d({self._x}, y)\, r({self._x})"
            right = rf" + {self._budget}\, κ"
        over = "λ" + (r", κ \ge 0" if right else "")
        line = rf"{worth} \ge μ(r) \quad \forall\, r" + (", y" if right else "")
        return aligned(over, rf"\sum_{{{self._x}}} λ({self._x}){right}", [line])
