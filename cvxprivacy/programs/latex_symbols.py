r"""The symbols of programs in LaTeX, and how formulas are put together from them.

A program speaks of laws p of the source, of the channel, and of what these make of each other:

.. math:: Q(s, y) = p(s)\, p(y \mid s), \qquad J(w, y) = \sum_s p(w \mid s)\, Q(s, y), \qquad
          q(y) = \sum_s Q(s, y),

with z next to y where Z is side information, and k below each where there are several laws.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cvxprivacy.frozen import Frozen
from cvxprivacy.leakage.base import Places

__all__ = [
    "GIVEN_X",
    "ROW",
    "Notation",
    "PrintedCost",
    "Written",
    "aligned",
    "displayed",
    "each",
    "logarithm",
    "multiplier",
    "plain",
    "plus",
    "tex",
    "times",
    "total",
    "upright",
]

GIVEN_X = r"W \mid X"  # the kind of views of W by those who know x
ROW = " \\\\\n"  # between the rows of a statement
_SIGNS = {"\\": r"\backslash ", "~": r"\sim ", "^": r"\wedge "} | {c: "\\" + c for c in "_%&#${}"}
_PLAIN = {
    r"\mathrm{E}\,": "E", r"\mathrm{tr}\,\Sigma": "tr Σ", r"\hat X": "X̂", r"\hat x": "x̂",
    r"\|": "‖", "_C^2": "²_C", r"\chi": "χ", r"\infty": "∞", "^2": "²", r"\mid": "|",
    r"\max": "max", r"\{": "{", r"\}": "}", r"\le": "≤", r"\ge": "≥",
    r"\quad \forall\,": "for each", r"\,": "",
}  # fmt: skip


# ---- pieces of formulas -------------------------------------------------------------------


def tex(number: float) -> str:
    """Return a number in LaTeX, to six digits."""
    mantissa, _, exponent = f"{number:.6g}".partition("e")
    if not exponent:
        return mantissa
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def upright(name: str) -> str:
    """Return text as LaTeX sets it within mathematics, its signs between pieces of text.

    MathJax knows no such sign within a piece.
    """
    pieces = re.split(r"([\\~^_%&#${}<>])", name)
    return "".join(
        _SIGNS.get(piece, piece) if i % 2 else rf"\text{{{piece}}}"
        for i, piece in enumerate(pieces)
        if piece
    )


def logarithm(units: str) -> str:
    """Return the logarithm of units in LaTeX."""
    return r"\log_2" if units == "bits" else r"\ln"


def multiplier(name: str, letters: Iterable[str] = (), letter: str = r"\lambda") -> str:
    """Return the multiplier of a constraint, one for each value of some letters."""
    indices = ", ".join(letters)
    return rf"{letter}_{{{upright(name)}}}" + (f"({indices})" if indices else "")


def plus(terms: Iterable[tuple[Any, str]]) -> str:
    """Return a sum of texts with factors; 0 if there are none."""
    result = ""
    for factor, text in ((factor, "" if text == "1" else text) for factor, text in terms):
        size = "" if abs(factor) == 1 and text else tex(abs(float(factor)))
        sign = ("-" if factor < 0 else "") if not result else " - " if factor < 0 else " + "
        result += sign + (rf"{size} \, {text}" if size and text else size or text)
    return result or "0"


def times(left: str, right: str) -> str:
    """Return a product of texts, where "" is 1."""
    if right in ("", "1"):
        return left or "1"
    return rf"{left} \, {right}" if left else right


def total(letters: Iterable[str], text: str) -> str:
    """Return a sum over letters, and over those of a sum that the text is."""
    indices = ", ".join(letters)
    if not indices:
        return text
    if text.startswith(r"\sum_{"):
        inner, _, body = text.removeprefix(r"\sum_{").partition("} ")
        return rf"\sum_{{{inner}, {indices}}} {body}"
    return rf"\sum_{{{indices}}} {text}"


def each(line: str, letters: Iterable[str]) -> str:
    """Return a line that holds for each value of some letters, and of those it names."""
    indices = ", ".join(letters)
    if not indices:
        return line
    return line + (", " if r"\forall" in line else r" \quad \forall\, ") + indices


# ---- statements ---------------------------------------------------------------------------


class Written(NamedTuple):
    """A program in its variables, and its dual, without delimiters."""

    expanded: str
    dual: str


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
    return "\\begin{aligned}\n" + ROW.join(rows) + "\n\\end{aligned}"


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


# ---- the symbols of a channel program -----------------------------------------------------


class PrintedCost(NamedTuple):
    """How a cost is written: the mean of a function of letters.

    Attributes
    ----------
    text : str
        The function in LaTeX, "" for 1; ``@w`` stands for the letter of W, ``@s`` for the
        encoder's letter and the output.
    over : str
        Which of w, x, z it is a function of.
    free : tuple of str
        Letters for each value of which there is a constraint.
    event : str
        The only value of W that is counted, as it is written; "" for all of them.
    """

    text: str = ""
    over: str = ""
    free: tuple[str, ...] = ()
    event: str = ""


class Notation(Frozen):
    """The symbols of a channel program.

    Parameters
    ----------
    inputs : str
        What makes the encoder's letter: "x", "wx", "xz" or "wxz".
    side : {None, "decoder", "both"}
        Who knows Z.
    same : bool
        Whether W is X.
    several : bool
        Whether there are several laws, numbered k.
    units : {"bits", "nats"}
    strategies : bool
        Whether the output is u, which means something to one who knows z.
    together : {"", "x", "wx"}
        What all releases together see of a record, where z was released earlier.
    """

    def __init__(
        self,
        inputs: str = "x",
        side: str | None = None,
        same: bool = False,
        several: bool = False,
        units: str = "bits",
        strategies: bool = False,
        together: str = "",
    ) -> None:
        self.inputs, self.side, self.several, self.together = inputs, side, several, together
        self.units, self.strategies, self.same = units, strategies, same
        self._k, z = "_k" if several else "", ", z" if side else ""
        self.w = "x" if same else "w"  # a value of W
        self.sensitive = self.w.upper()  # W
        self.s = ", ".join(inputs)  # what the encoder reads
        self.record = ", ".join(together or inputs)  # what all releases see of a record
        self.y = "u" if strategies else r"\hat x"  # the output
        self.released = "u(z)" if strategies else r"\hat x"  # x̂, as the user has it
        self.observation = self.y + z  # what a user sees
        self.held = ("U" if strategies else r"\hat X") + z.upper()  # the same at random
        self.channel = rf"p({self.y} \mid {self.s})"
        self.law = f"p{self._k}"  # of the source
        self.joint = f"Q{self._k}({self.s}, {self.y})"  # what is read and released
        self.mass = f"q{self._k}({self.observation})"
        self.original = rf"p_{{X{', k' if several else ''}}}({self.y})"  # p_X at what is released
        self.weight = rf"\bar p({self.s})" if several else f"p({self.s})"  # of the dual's ν(s)
        self.log = logarithm(units)

    def all_releases(self, mark: str = "") -> str:
        """Return the law of all that is released, given a record, or another one with a mark."""
        record = ", ".join(f"{letter}{mark}" for letter in self.together or self.inputs)
        if not self.together:
            return rf"p({self.y} \mid {record})"
        read = ", ".join(f"{letter}{mark * (letter != 'z')}" for letter in self.inputs)
        return rf"p(z \mid {record}) \, p({self.y} \mid {read})"

    def hidden(self, letters: str) -> list[str]:
        """Return those of w and z that the encoder does not see."""
        unseen = {"z"} if self.same else {"w", "z"}
        return [i for i in "wz" if i in unseen and i in letters and i not in self.inputs]

    @property
    def side_sum(self) -> list[str]:
        """Z, if the user sees it and the encoder does not."""
        return self.hidden("z") if self.side else []

    def given_input(self, letters: Sequence[str]) -> str:
        """Return the law of hidden letters given the encoder's, "" of none."""
        return rf"{self.law}({', '.join(letters)} \mid {self.s})" if letters else ""

    # ---- costs ---------------------------------------------------------------------------

    def expectation(self, cost: PrintedCost) -> str:
        """Return what a cost is in all, of one output if that is free."""
        text, sums = self._text(cost, self.w), [] if self.y in cost.free else [self.y]
        if "x" in cost.over:
            return total([*self.inputs, *sums], rf"{self.joint} \, {self.averaged(cost)}")
        side = ["z"] if self.side and "z" not in cost.free else []
        if "w" in cost.over or cost.event:
            letters = [*([] if cost.event else [self.w]), *side, *sums]
            joint = self.places("W").joint.replace("@", cost.event or self.w)
            return total(letters, times(joint, text))
        pair = (text, self.mass) if text.startswith("e^") else (self.mass, text)
        return total([*side, *sums], times(*pair))

    def averaged(self, cost: PrintedCost, w: str = "") -> str:
        """Return what a cost is for an input and an output, per unit of the input's mass."""
        text, hidden = self._text(cost, w or self.w), self.hidden(cost.over)
        side = [letter for letter in self.hidden("z") if letter in cost.free]
        if cost.event:
            unseen = [cost.event] if self.hidden("w") else []
            event = "" if unseen else rf"\mathbf 1[{w or self.w} = {cost.event}]"
            factors = text, self.given_input([*unseen, *side]), event
            return r" \, ".join(filter(None, factors))
        hidden = [letter for letter in hidden if letter not in cost.free]
        law = self.given_input(sorted({*hidden, *side}))
        return total(hidden, times(law, text or "1"))

    def _text(self, cost: PrintedCost, w: str) -> str:
        return cost.text.replace("@w", w).replace("@s", f"{self.s}, {self.y}")

    # ---- what is leaked ------------------------------------------------------------------

    def places(self, kind: str, mark: str = "") -> Places:
        """Return the letters of a measure of W, of the input ("S"), or of a part of W."""
        k, observed, z = self._k, self.observation, ", z" if self.side else ""
        condition = "" if self.together else z  # an earlier release is judged by p(s) alone
        bar = condition.replace(",", r" \mid")
        w_is_s = self.same and self.inputs == "x" and not self.side
        of_s = f"z, {self.y}" if "z" in self.inputs else observed
        rows = {
            "W": (self.w, f"{'Q' if w_is_s else 'J'}{k}(@, {observed})", "@", "r"),
            "S": (self.record.removesuffix(", z"), f"Q{k}(@, {of_s})", f"@{bar}", r"\sigma"),
            GIVEN_X: ("w", f"Q{k}(@, x{z}, {self.y})", rf"@ \mid x{condition}", r"\varrho"),
        }
        of_part = f"w_{{{kind}}}", f"J_{{{kind}}}(@, {observed})", "@", f"r_{{{kind}}}"
        index, joint, law, posterior = rows.get(kind, of_part)
        observation = f"x, {observed}" if kind == GIVEN_X else observed
        law, mass, posterior = f"{self.law}({law})", f"q{k}({observation})", posterior + k
        mark += ", k" if self.several else ""
        return Places(index, joint, law, mass, observation, posterior, self.log, mark)

    def _unread(self, kind: str) -> list[str]:
        """Return the letters of what leaks that the encoder does not see."""
        unread = {"W": self.hidden("w"), "S": self.hidden(self.together), GIVEN_X: self.hidden("w")}
        return unread.get(kind, [f"w_{{{kind}}}"])

    def seeing(self, kind: str, score: str) -> str:
        """Return the mean of a score, given the encoder's letter, without a sum over z."""
        unread = self._unread(kind)
        return total(unread, times(self.given_input([*unread, *self.side_sum]), score))

    # ---- what holds of all of them -------------------------------------------------------

    def is_a_channel(self) -> list[str]:
        """Return that each input's law of outputs is one."""
        nonnegative = each(rf"{self.channel} \ge 0", [*self.inputs, self.y])
        return [nonnegative, each(rf"{total([self.y], self.channel)} = 1", self.inputs)]

    def definitions(self, kinds: Iterable[str], body: str) -> list[str]:
        """Return what Q is, J of what leaks, and q if it is in the body of a statement."""
        lines, side = [rf"{self.joint} = {self.law}({self.s}) \, {self.channel}"], self.side_sum
        for kind in kinds:
            at = self.places(kind)
            if at.j != self.joint:
                kept = {*at.index.split(", "), "z"} | ({"x"} if kind == GIVEN_X else set())
                law = self.given_input([*self._unread(kind), *side])
                over = [i for i in self.inputs if i not in kept]
                lines.append(f"{at.j} = {total(over, times(law, self.joint))}")
            if kind == GIVEN_X:
                lines.append(f"{at.mass} = {total([at.index], at.j)}")
        if self.mass in body:
            over = [i for i in self.inputs if i != "z"]
            lines.append(f"{self.mass} = {total(over, times(self.given_input(side), self.joint))}")
        return lines
