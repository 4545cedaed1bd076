"""What a program printed in LaTeX is worth: its own text, parsed and evaluated in floats.

A name with arguments in plain parentheses is a function; \\left( … \\right) groups.  Letters in
sums and quantifiers run over ``domains``; every name is looked up in ``symbols``, a function of a
list of (letter, value) pairs, in which the letters below it come first.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

Env = dict[str, Any]
Value = Callable[[Env], Any]
_TOKEN = re.compile(
    r"\\left[(|]|\\left\\\{|\\right[)|]|\\right\\\}|\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL
)
_SPACES = {r"\,", r"\;", r"\quad", r"\qquad"}
_RELATIONS = {r"\le", r"\ge", "=", "<"}
_ENDS = {
    ")",
    r"\right)",
    r"\right|",
    r"\right\}",
    "]",
    "}",
    ",",
    "",
    r"\mid",
    "+",
    "-",
    *_RELATIONS,
}


def lines_of(statement: str) -> tuple[str, list[str]]:
    """Return the objective of a statement and its constraints, without what is defined in it."""
    body = statement.replace("\\begin{aligned}\n", "").replace("\n\\end{aligned}", "")
    body = re.sub(r" \\\\\n & \\qquad \{\} ", " ", body)
    rows = [row.partition("&") for row in body.split(" \\\\\n")]
    words = [left.strip() for left, _, _ in rows]
    end = next((i for i, word in enumerate(words) if "where" in word), len(rows))
    return rows[0][2], [right.strip() for _, _, right in rows[1:end]]


class Parser:
    """A text as a function of its letters."""

    def __init__(self, text: str, symbols: dict[str, Any], domains: dict[str, list[Any]]) -> None:
        kept = [t for t in _TOKEN.findall(text) if t not in _SPACES and not t.isspace()]
        self.tokens, self.at = [*kept, ""], 0
        self.symbols, self.domains = symbols, domains

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self, token: str = "") -> str:
        assert not token or self.next == token, (token, self.tokens[self.at :])
        self.at += 1
        return self.tokens[self.at - 1]

    def raw(self) -> str:
        """Return what stands in braces, or one token, as text."""
        if self.next != "{":
            return self.take()
        depth, text = 0, []
        while True:
            token = self.take()
            depth += (token == "{") - (token == "}")
            text.append(f"{token} " if re.fullmatch(r"\\[a-zA-Z]+", token) else token)
            if not depth:
                return "".join(text[1:-1])

    def letter(self) -> str:
        """Return an index such as w, w', \\hat x or w_{…}."""
        text = self.take()
        if text == r"\hat":
            return rf"\hat {self.take()}"
        if self.next == "_":
            self.take()
            text += f"_{{{self.raw()}}}".replace(" ", "")
        while self.next == "'":
            text += self.take()
        return text

    def letters(self, text: str) -> list[str]:
        inner = Parser(text, self.symbols, self.domains)
        values = [inner.letter()]
        while inner.next == ",":
            inner.take()
            values.append(inner.letter())
        assert inner.next == "", text
        return values

    def sum(self) -> Value:
        sign = -1.0 if self.next == "-" else 1.0
        if self.next == "-":
            self.take()
        parts = [(sign, self.product())]
        while self.next in ("+", "-"):
            sign = 1.0 if self.take() == "+" else -1.0
            parts.append((sign, self.product()))
        return lambda env: sum(sign * part(env) for sign, part in parts)

    def product(self) -> Value:
        parts: list[Value] = []
        while self.next not in _ENDS:
            parts.append(self.power())
            if self.next == r"\cdot":
                self.take()
        assert parts, self.tokens[self.at :]
        return lambda env: math.prod(part(env) for part in parts)

    def power(self) -> Value:
        base = self.atom()
        if self.next == "_":  # ( … )_+
            self.take()
            self.take("+")
            inner = base
            base = lambda env: max(inner(env), 0.0)  # noqa: E731
        if self.next == "^":
            self.take()
            text = self.raw()
            exponent = eval(text.replace(" ", ""), {"__builtins__": {}}) if text else 1  # numbers
            return lambda env: base(env) ** exponent
        return base

    def over(self, combine: Callable[[Iterator[Any]], Any]) -> Value:
        self.take("_")
        letters = self.letters(self.raw())
        inner = self.product()
        return lambda env: combine(inner({**env, **ours}) for ours in each(letters, self.domains))

    def braced(self) -> Value:
        inner = Parser(self.raw(), self.symbols, self.domains)
        return inner.sum()

    def atom(self) -> Value:
        token = self.take()
        if re.fullmatch(r"\d+(\.\d+)?", token):
            return lambda env: float(token)
        if token == r"\sum":
            return self.over(sum)
        if token == r"\max":
            return self.over(max)
        if token in (r"\frac", r"\tfrac"):
            above, below = self.braced(), self.braced()
            return lambda env: above(env) / below(env)
        if token == r"\sqrt":
            root = self.braced()
            return lambda env: math.sqrt(root(env))
        if token in (r"\log", r"\ln"):
            base = math.e
            if token == r"\log":
                self.take("_")
                base = float(self.take())
            if self.next == "e":
                self.take()
                return lambda env: math.log(math.e, base)
            inner = self.power()
            return lambda env: math.log(max(inner(env), 1e-300), base)
        if token in (r"\left(", r"\left|", r"\left\{"):
            inner = self.sum()
            self.take()
            return inner if token != r"\left|" else lambda env: abs(inner(env))
        if token == r"\mathbf":
            return self.event()
        return self.name(token)

    def event(self) -> Value:
        self.take("1")
        self.take("[")
        left = self.argument()
        equal = self.take() == "="
        right = self.argument()
        self.take("]")
        return lambda env: float((left[1](env) == right[1](env)) == equal)

    def argument(self) -> tuple[str, Value]:
        letter = self.letter()
        if self.next == "(":  # u(z)
            self.take()
            inner = self.argument()
            self.take(")")
            return letter, lambda env: self.symbols["u"](env[letter], inner[1](env))
        return letter, lambda env: env[letter]

    def name(self, token: str) -> Value:
        if token == r"\bar":
            token += " " + self.take()
        if token == r"\mathrm":
            token += f"{{{self.raw()}}}"
        if token == "e" and self.next == "^":
            return lambda env: math.e
        below: list[str] = []
        if self.next == "_":
            self.take()
            text = self.raw().replace(" ", "")
            pieces = re.match(r"(.*?)(?:, ?([ki]))?$", text, re.DOTALL)
            below = [text] if text in ("k", "i") else [pieces[2]] if pieces and pieces[2] else []
            others = "" if text in ("k", "i") else pieces[1].rstrip(", ") if pieces else text
            token += f"_{{{others}}}" if others else ""
        arguments: list[tuple[str, Value]] = []
        after = 0
        if self.next == "(":
            self.take()
            while True:
                arguments.append(self.argument())
                end = self.take()
                if end == ")":
                    break
                if end == r"\mid":
                    after = len(arguments)
        return lambda env: self.symbols[token](
            [(k, env[k]) for k in below],
            [(k, value(env)) for k, value in arguments[: after or None]],
            [(k, value(env)) for k, value in arguments[after:]] if after else [],
        )


def each(letters: list[str], domains: dict[str, list[Any]]) -> Iterator[Env]:
    values = [domains[letter] for letter in letters]
    return (dict(zip(letters, place, strict=True)) for place in itertools.product(*values))


class Line:
    """A constraint: sides with relations between them, for each of some letters."""

    def __init__(self, text: str, symbols: dict[str, Any], domains: dict[str, list[Any]]) -> None:
        body, _, quantifier = text.partition(r"\forall")
        parser = Parser(body, symbols, domains)
        self.text, self.domains = text, domains
        self.letters = parser.letters(quantifier.strip()) if quantifier else []
        self.sides, self.relations = [[parser.sum()]], []
        while parser.next:
            token = parser.take()
            if token == ",":
                self.sides[-1].append(parser.sum())
            else:
                assert token in _RELATIONS, (token, text)
                self.relations.append(token)
                self.sides.append([parser.sum()])

    def excess(self) -> float:
        """Return by how much it is broken at worst."""
        return self.excess_at()

    def excess_at(self, **other: Any) -> float:
        """Return the same where other letters have these values."""
        worst = -math.inf
        for ours in each(self.letters, self.domains):
            env = {**other, **ours}
            for lows, relation, highs in zip(
                self.sides, self.relations, self.sides[1:], strict=False
            ):
                for low, high in itertools.product(lows, highs):
                    off = low(env) - high(env)
                    off = {r"\ge": -off, "=": abs(off)}.get(relation, off)
                    worst = max(worst, off)
        return worst
