r"""The letters of a program in LaTeX: who sees what, and what it is called.

A program speaks of laws p of the source, of the channel, and of what these make of each other:

.. math:: Q(s, y) = p(s)\, p(y \mid s), \qquad J(w, y) = \sum_s p(w \mid s)\, Q(s, y), \qquad
          q(y) = \sum_s Q(s, y),

with z beside y where Z is side information, and k below each where there are several laws.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cvxprivacy.leakage.base import Places
from cvxprivacy.programs.latex import times
from cvxprivacy.programs.notation import logarithm

__all__ = ["GIVEN_X", "Lettering", "Wording", "total"]

GIVEN_X = r"W \mid X"  # the kind of views of W by those who know x


class Wording(NamedTuple):
    """How a cost is written: the mean of a function of letters.

    Attributes
    ----------
    text : str
        The function in LaTeX, "" for 1; ``@w`` stands for the letter of W.
    over : str
        Which of w, x, z it is a function of.
    free : tuple of str
        Letters of which there is a constraint for each value.
    event : str
        The value of W that alone is counted, as it is written; "" for all of them.
    """

    text: str = ""
    over: str = ""
    free: tuple[str, ...] = ()
    event: str = ""


@dataclass(frozen=True)
class Lettering:
    """What the letters of a problem are.

    Attributes
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
        Whether what is released is u, which means something to one who knows z.
    together : {"", "x", "wx"}
        What all releases together see of a record, where z was released earlier.
    """

    inputs: str = "x"
    side: str | None = None
    same: bool = False
    several: bool = False
    units: str = "bits"
    strategies: bool = False
    together: str = ""

    @property
    def w(self) -> str:
        return "x" if self.same else "w"

    @property
    def s(self) -> str:
        """The encoder's letter."""
        return ", ".join(self.inputs)

    @property
    def y(self) -> str:
        """What is released: x̂, or u that is read with z."""
        return "u" if self.strategies else r"\hat x"

    @property
    def released(self) -> str:
        """x̂, as the user has it."""
        return "u(z)" if self.strategies else r"\hat x"

    @property
    def observation(self) -> str:
        """All that a user sees."""
        return f"{self.y}, z" if self.side else self.y

    @property
    def held(self) -> str:
        """The same as random variables."""
        output = "U" if self.strategies else r"\hat X"
        return f"{output}, Z" if self.side else output

    @property
    def channel(self) -> str:
        return rf"p({self.y} \mid {self.s})"

    @property
    def record(self) -> str:
        """What is seen of a record: the encoder's letter, but for what was released earlier."""
        return ", ".join(self.together or self.inputs)

    def all_releases(self, mark: str = "") -> str:
        """Return the law of all that is released, given a record, or another one with a mark."""
        record = ", ".join(f"{letter}{mark}" for letter in self.together or self.inputs)
        if not self.together:
            return rf"p({self.y} \mid {record})"
        read = ", ".join(f"{letter}{mark * (letter != 'z')}" for letter in self.inputs)
        return rf"p(z \mid {record}) \, p({self.y} \mid {read})"

    @property
    def under(self) -> str:
        """What laws have below them."""
        return "_k" if self.several else ""

    @property
    def law(self) -> str:
        return f"p{self.under}"

    @property
    def original(self) -> str:
        """The law of X at what is released."""
        return rf"p_{{X{', k' if self.several else ''}}}({self.y})"

    @property
    def log(self) -> str:
        return logarithm(self.units)

    @property
    def weight(self) -> str:
        """By what multipliers of an input are weighed: its probability."""
        return rf"\bar p({self.s})" if self.several else f"p({self.s})"

    def hidden(self, letters: Iterable[str]) -> list[str]:
        """Return those of w and z that the encoder does not see."""
        candidates = ["w", "z"] if not self.same else ["z"]
        return [letter for letter in candidates if letter in letters and letter not in self.inputs]

    def given_input(self, letters: list[str]) -> str:
        """Return the law of hidden letters given the encoder's, "" of none."""
        return rf"p{self.under}({', '.join(letters)} \mid {self.s})" if letters else ""

    # ---- costs ---------------------------------------------------------------------------

    def for_each_w(self, cost: Wording) -> Wording:
        """Return a cost that counts one value of W as it is of any."""
        if not cost.event or self.w in cost.free:
            return cost
        return cost._replace(event=self.w, free=(*cost.free, self.w))

    def expectation(self, cost: Wording) -> str:
        """Return what a cost is in all, of one output if that is free."""
        free, over = cost.free, cost.over
        text = self._text(cost, self.w)
        sums = [] if self.y in free else [self.y]
        if "x" in over:
            letters = [*self.inputs, *sums]
            inner = rf"Q{self.under}({self.s}, {self.y}) \, {self.averaged(cost)}"
            return total(letters, inner)
        side = ["z"] if self.side and "z" not in free else []
        if "w" in over or cost.event:
            sums = [*([] if cost.event else [self.w]), *side, *sums]
            joint = f"{self.joint_name}({cost.event or self.w}, {self.observation})"
            return total(sums, times(joint, text))
        mass = f"q{self.under}({self.observation})"
        first = not text.startswith("e^")
        return total([*side, *sums], times(mass, text) if first else times(text, mass))

    def averaged(self, cost: Wording, w: str = "") -> str:
        """Return what a cost is for an input and an output, per unit of the input's mass."""
        free, over = cost.free, cost.over
        text = self._text(cost, w or self.w)
        side = [letter for letter in self.hidden("z") if letter in free]
        if cost.event:
            conditional = self.given_input([cost.event, *side] if self.hidden("w") else side)
            event = "" if self.hidden("w") else rf"\mathbf 1[{w or self.w} = {cost.event}]"
            return " \\, ".join(filter(None, (text, conditional, event)))
        hidden = [letter for letter in self.hidden(over) if letter not in free]
        letters = sorted({*hidden, *side})
        return total(hidden, times(self.given_input(letters), text or "1"))

    def _text(self, cost: Wording, w: str) -> str:
        return cost.text.replace("@w", w).replace("@s", f"{self.s}, {self.y}")

    @property
    def joint_name(self) -> str:
        return f"{'Q' if self.same and self.inputs == 'x' and not self.side else 'J'}{self.under}"

    # ---- what is leaked ------------------------------------------------------------------

    def places(self, kind: str, mark: str = "") -> Places:
        """Return the letters in which a measure of W, of the input ("S"), or of a part is told."""
        under, observation = self.under, self.observation
        if kind == GIVEN_X:
            joint = self.inputs if "z" in self.inputs or not self.side else f"{self.inputs}z"
            letters = ", ".join(joint.replace("w", "@"))
            return Places(
                index="w",
                joint=f"Q{under}({letters}, {self.y})",
                law=f"p{under}(@ \\mid x{', z' if self.side and not self.together else ''})",
                mass=f"q{under}(x, {observation})",
                observation=f"x, {observation}",
                posterior=rf"\varrho{under}",
                log=self.log,
                mark=mark + (", k" if self.several else ""),
            )
        record = self.together or self.inputs.replace("z", "")
        names = {"W": (self.w, "r"), "S": (", ".join(record), r"\sigma")}
        index, score = names.get(kind, (f"w_{{{kind}}}", f"r_{{{kind}}}"))
        condition = " \\mid z" if kind == "S" and self.side and not self.together else ""
        joint = {"W": self.joint_name, "S": f"Q{under}"}.get(kind, f"J_{{{kind}}}")
        args = f"@, z, {self.y}" if kind == "S" and "z" in self.inputs else f"@, {observation}"
        return Places(
            index=index,
            joint=f"{joint}({args})",
            law=f"p{under}(@{condition})",
            mass=f"q{under}({observation})",
            observation=observation,
            posterior=score + under,
            log=self.log,
            mark=mark + (", k" if self.several else ""),
        )

    def seeing(self, kind: str, score: str) -> str:
        """Return the mean of a score, given the encoder's letter, without a sum over z."""
        side = self.hidden("z") if self.side else []
        if kind == "W" or (kind == "S" and self.together):
            hidden = self.hidden("w" if kind == "W" else self.together)
            return total(hidden, times(self.given_input([*hidden, *side]), score))
        if kind in ("S", GIVEN_X):
            return times(self.given_input(side), score)
        index = f"w_{{{kind}}}"
        return total([index], times(self.given_input([index, *side]), score))


def total(letters: Iterable[str], text: str) -> str:
    """Return a sum over letters, and over those of a sum that the text is."""
    indices = ", ".join(letters)
    if not indices:
        return text
    if text.startswith(r"\sum_{"):
        inner, _, body = text.removeprefix(r"\sum_{").partition("} ")
        return rf"\sum_{{{inner}, {indices}}} {body}"
    return rf"\sum_{{{indices}}} {text}"
