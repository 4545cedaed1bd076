"""Statements of programs in LaTeX, and in a line of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from cvxprivacy.programs.expression import Constraint
from cvxprivacy.programs.notation import tex, upright

__all__ = ["ROW", "aligned", "as_under", "displayed", "each", "plain", "plus", "stated", "times"]

ROW = " \\\\\n"  # between the rows of a statement
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
    r"\quad \forall\,": "for each",
    r"\,": "",
}


def stated(constraint: Constraint, written: Callable[[float], str] = tex) -> str:
    """Return a constraint as its formulation has it."""
    sign, bound = -1 if constraint.relation == r"\ge" else 1, constraint.bound
    numbers = {*bound} if isinstance(bound, tuple) else {bound}
    level = constraint.level or r"b(\hat x)"
    right = constraint.right or level
    if not constraint.right and len(numbers) == 1:
        right = written(sign * float(numbers.pop()) + 0.0)
    each = r" \quad \forall\, \hat x" if constraint.per_output else ""
    return f"{constraint.expression.latex} {constraint.relation} {right}{each}"


def as_under(law: str, latex: str) -> str:
    """Return a quantity under a law that has a name."""
    return f"{latex}{upright(f' under {law}')}" if law and latex else latex


def plus(terms: Iterable[tuple[Any, str]]) -> str:
    """Return a sum of texts with factors; 0 if there are none."""
    total = ""
    for factor, text in ((factor, "" if text == "1" else text) for factor, text in terms):
        size = "" if abs(factor) == 1 and text else tex(abs(float(factor)))
        sign = ("-" if factor < 0 else "") if not total else " - " if factor < 0 else " + "
        total += sign + (rf"{size} \, {text}" if size and text else size or text)
    return total or "0"


def times(left: str, right: str) -> str:
    """Return a product of texts, of which "" is 1."""
    if right in ("", "1"):
        return left or "1"
    return rf"{left} \, {right}" if left else right


def each(line: str, letters: Iterable[str]) -> str:
    """Return a line that holds for each value of some letters."""
    indices = ", ".join(letters)
    return rf"{line} \quad \forall\, {indices}" if indices else line


def aligned(
    over: str,
    objective: str,
    lines: Iterable[str],
    definitions: Iterable[str] = (),
    *,
    least: bool = True,
) -> str:
    """Return min over … s.t. … where …, or max, without delimiters."""
    rows = [rf"\{'min' if least else 'max'}_{{{over}}} \quad & {objective}"]
    for word, group in (("s.t.", lines), ("where", definitions)):
        for i, line in enumerate(group):
            rows.append(("" if i else rf"\text{{{word}}}") + rf" \quad & {line}")
    body = ROW.join(rows)
    return "\\begin{aligned}\n" + body + "\n\\end{aligned}"


def displayed(*rows: str) -> str:
    """Return formulas below each other, between delimiters: what Jupyter shows."""
    body = " \\\\[1ex]\n".join(rows)
    return f"$$\n\\begin{{gathered}}\n{body}\n\\end{{gathered}}\n$$"


def plain(latex: str) -> str:
    """Return the letters of a statement in LaTeX as text."""
    text = re.sub(r"\\text\{([^}]*)\}", r"\1", latex)
    text = re.sub(r"\\([_%&#$])", r"\1", text)
    text = re.sub(r"\\mathrm\{([A-Z]{2,})\}", r"\1", text)
    for command, letter in _PLAIN.items():
        text = text.replace(command, letter)
    return re.sub(r"_\{([^}]*)\}", r"[\1]", text)
