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
from cvxprivacy.programs.latex_symbols import Written, aligned, tex

__all__ = ["UsefulDual", "UsefulProgram", "plain", "rays_written"]


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


def rays_written(s: str, budget: Any) -> Written:
    """Return the linear program over rays in LaTeX, and its dual, ``s`` the encoder's letters."""
    weight, shadow = rf"\alpha_{{ry}}\, r({s})", rf"\sum_{{{s}}} \lambda({s})"
    spent = rf"\sum_{{{s}}} p({s})\, d({s}, y)\, r({s})"
    lines = [rf"\sum_{{r, y}} {weight} = 1 \quad \forall\, {s}"]
    over, price, right, y = r"\lambda", "", "", ""
    if budget is not None:
        limit, y = tex(float(budget)), ", y"
        lines.append(rf"\sum_{{r, y}} \alpha_{{ry}} {spent} \le {limit}")
        over, price, right = (
            r"\lambda, \kappa \ge 0",
            rf" + \kappa {spent}",
            rf" + {limit}\, \kappa",
        )
    worth = rf"{shadow}\, r({s}){price} \ge \mu(r) \quad \forall\, r{y}"
    return Written(
        aligned(r"\alpha \ge 0", r"\sum_{r, y} \alpha_{ry}\, \mu(r)", lines, least=False),
        aligned(over, shadow + right, [worth]),
    )
