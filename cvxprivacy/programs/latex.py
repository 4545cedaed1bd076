"""Statements of programs in LaTeX, and in a line of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.notation import tex

__all__ = ["aligned", "as_under", "plain", "stated"]

_PLAIN = {
    r"\mathrm{E}\,": "E",
    r"\mathrm{tr}\,\Sigma": "tr Σ",
    r"\hat X": "X̂",
    r"\hat x": "x̂",
    r"\|": "‖",
    "_C^2": "²_C",
    r"\chi": "χ",
    r"\infty": "∞",
    "^2": "²",
    r"\mid": "|",
    r"\max": "max",
    r"\{": "{",
    r"\}": "}",
    r"\le": "≤",
    r"\ge": "≥",
    r"\;\forall": "for each",
    r"\,": "",
}


def stated(constraint: Constraint, written: Callable[[float], str] = tex) -> str:
    """Return a constraint with a single bound, as its formulation has it."""
    sign = -1 if constraint.relation == r"\ge" else 1
    bound = constraint.right or written(sign * float(constraint.number) + 0.0)
    return f"{constraint.expression.latex} {constraint.relation} {bound}"


def as_under(law: str, latex: str) -> str:
    """Return a quantity under a law that has a name."""
    return rf"{latex}\text{{ under {law}}}" if law and latex else latex


def aligned(over: str, objective: str, lines: Iterable[str]) -> str:
    """Return min over … s.t. …, without delimiters."""
    rows = [rf"\min_{{{over}}} \quad & {objective}"]
    for i, line in enumerate(lines):
        rows.append(("" if i else r"\text{s.t.}") + rf" \quad & {line}")
    body = " \\\\\n".join(rows)
    return "\\begin{aligned}\n" + body + "\n\\end{aligned}"


def plain(latex: str) -> str:
    """Return the letters of a statement in LaTeX as text."""
    text = re.sub(r"\\text\{([^}]*)\}", r"\1", latex)
    text = re.sub(r"\\mathrm\{(TV|EMD)\}", r"\1", text)
    for command, letter in _PLAIN.items():
        text = text.replace(command, letter)
    return re.sub(r"_\{([^}]*)\}", r"[\1]", text)
