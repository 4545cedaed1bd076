"""Programs in MathML, which browsers set without a network and without a script."""

from __future__ import annotations

import re

__all__ = ["mathml", "statement_rows"]

_UPRIGHT = re.compile(r"\\mathrm\{(E|tr)\}")
_OVER = re.compile(r"\\(min|max)_(\{(?:[^{}]|\{[^{}]*\})*\}|\w)")


def statement_rows(latex: str) -> list[dict[str, str]]:
    """Split a program, in LaTeX's ``aligned``, into rows of what stands left and right."""
    body = latex.replace(r"\begin{aligned}", "").replace(r"\end{aligned}", "")
    rows = []
    for line in body.split(r"\\"):
        left, _sign, right = line.partition("&")
        rows.append({"left": left.replace(r"\quad", "").strip(), "right": right.strip()})
    return rows


def mathml(latex: str, *, display: bool = True) -> str:
    """Return LaTeX of a program as MathML; nothing for nothing."""
    from latex2mathml.converter import convert

    if not latex:
        return ""
    text = _UPRIGHT.sub(r"\\operatorname{\1}", latex)
    text = text.replace(r"\log ", r"\log\, ")
    text = _OVER.sub(r"\\underset{\2}{\\\1}", text) if display else text
    made = convert(text, display="block" if display else "inline")
    made = re.sub(r'\sxmlns="[^"]*"', "", made, count=1)
    return str(made).replace('display="block"', 'displaystyle="true"')
