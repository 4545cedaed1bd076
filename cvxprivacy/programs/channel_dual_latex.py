r"""The dual of a channel program in LaTeX: that of :mod:`cvxprivacy.programs.dual`.

With multipliers λ of constraints, scores of every measure, and what each input adds, ν,

.. math::
   \max \; \sum_s p(s)\, ν(s) - \sum_j λ_j b_j \quad\text{s.t.}\quad
   ν(s) ≤ \sum_k ω_k(y) \sum_v p_k(v \mid s)\, s_k(v \mid y) + C_0(s, y) + \sum_j λ_j C_j(s, y).

Multipliers are called as in ``solution.duals``; ν is minus that of ``mass``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cvxprivacy.programs.channel import INFORMATION
from cvxprivacy.programs.channel_latex import ChannelStatement, Family, Row, Sum, is_a_channel
from cvxprivacy.programs.latex import aligned, each, plus, times
from cvxprivacy.programs.lettering import Lettering, total
from cvxprivacy.programs.notation import tex, upright
from cvxprivacy.programs.side_conditions import Auxiliary, Excess

__all__ = ["CategoricalWriter", "ChannelDual"]


class ChannelDual(ChannelStatement):
    """What the dual of a channel program is in LaTeX; arguments are those of its base."""

    def dual(self) -> str:
        """Return max … s.t. … in the multipliers, without delimiters."""
        of, weight = self.of, self.of.weight
        nu = rf"\nu({of.s})"
        first = rf"{weight} \, {nu}"
        entry: list[tuple[Any, str]] = []
        if self.floors:
            low = rf"\ell({of.s}, {of.y}) \, \mu_{{\text{{floor}}}}({of.s}, {of.y})"
            entry.append((1, total([of.y], low)))
        if self.caps:
            high = rf"c({of.s}, {of.y}) \, \mu_{{\text{{cap}}}}({of.s}, {of.y})"
            entry.append((-1, total([of.y], high)))
        if entry:
            first = rf"{weight} \, \left({plus([(1, nu), *entry])}\right)"
        objective = [(Fraction(1), total(of.inputs, first))]
        conditions: list[str] = []
        free: list[tuple[str, list[str]]] = []
        signed: list[tuple[str, list[str]]] = []
        for row in self.rows:
            letters = self._letters(row)
            multiplier = _multiplier(row.name, letters)
            right = row.bound - row.sum.constant if not row.level else row.bound
            if right:
                factor = rf"{row.level} \, " if row.level else ""
                objective.append((-right, total(letters, factor + multiplier)))
            (free if row.sense == "==" else signed).append((multiplier, letters))
        if self.objective.constant:
            objective.append((self.objective.constant, ""))
        inside = self._inside()
        for name, rule in self.auxiliaries:
            terms, outside, constraints = self._dual_auxiliary(name, rule)
            inside += terms
            objective += outside
            conditions += constraints
        left = nu
        for i, part in enumerate(("floor", "cap")):
            if (self.floors, self.caps)[i]:
                mu = rf"\mu_{{\text{{{part}}}}}({of.s}, {of.y})"
                left += f" {'-' if i else '+'} {mu}"
                conditions.append(each(rf"{mu} \ge 0", [*of.inputs, of.y]))
        if of.several:
            left = rf"{weight} \, \left({left}\right)" if " " in left else rf"{weight} \, {left}"
        main = _broken(left, inside, [*of.inputs, of.y])
        families = {f.key: f for q in self._quantities() for _, f in q.leaked}
        scores = []
        for family in families.values():
            places = of.places(family.kind, family.mark)
            letters = (["k"] if of.several else []) + of.observation.split(", ")
            scores += [_each_too(c, letters) for c in family.measure.latex_scores(places)[1]]
        conditions = [*scores, *conditions, *_alike(signed, r"\ge 0")]
        conditions += _alike(free, r"\text{ free}")
        if self.worst:
            conditions += [r"\theta(k) \ge 0 \quad \forall\, k", r"\sum_{k} \theta(k) = 1"]
        return aligned(self._variables(families.values()), plus(objective), [main, *conditions],
                       self._dual_definitions(), least=False)  # fmt: skip

    def _quantities(self) -> list[Sum]:
        return [self.objective, *(row.sum for row in self.rows)]

    def _letters(self, row: Row) -> list[str]:
        """Return the letters of a constraint's multiplier."""
        law = ["k"] if row.of_law else []
        return [*law, *row.sum.free, *([self.of.y] if row.per_output else [])]

    def _inside(self) -> list[tuple[Any, str]]:
        """Return what an input and an output have of the objective and of every constraint."""
        of = self.of
        weights: dict[tuple[str, str], list[tuple[Fraction, str]]] = {}
        families: dict[tuple[str, str], Family] = {}
        by_z: dict[tuple[str, str], list[list[str]]] = {}
        share = r"\theta(k)" if self.worst else ""
        for factor, family in self.objective.leaked:
            weights.setdefault(family.key, []).append((factor, share))
            families.setdefault(family.key, family)
        costs = [(factor, times(share, of.averaged(c))) for factor, c in self.objective.costs]
        for row in self.rows:
            letters = self._letters(row)
            outer = [i for i in letters if i not in ("k", "z", of.y)]
            for factor, family in row.sum.leaked:
                text = total(outer, _multiplier(row.name, letters))
                weights.setdefault(family.key, []).append((factor, text))
                families.setdefault(family.key, family)
                by_z.setdefault(family.key, []).append(letters)
            if row.sum.costs:
                costs += self._costs(row, letters)
        terms = []
        for key, family in families.items():
            score = family.measure.latex_scores(of.places(family.kind, family.mark))[0]
            summands = weights[key]
            text = of.seeing(family.kind, score)
            factor, first = summands[0]
            side = of.hidden("z") if of.side else []
            apart = any("z" in letters for letters in by_z.get(key, ()))
            text = text if apart else total(side, text)
            if len(summands) > 1:
                text = rf"\left({plus(summands)}\right) \, {text}"
                factor = Fraction(1)
            else:
                text = times(first, text)
            terms.append((factor, total(side, text) if apart else text))
        terms += [(c, text) for c, text in costs if c]
        if not of.several:
            return terms
        return [(c, rf"\sum_{{k}} p_k({of.s}) \, {text}") for c, text in terms]

    def _costs(self, row: Row, letters: list[str]) -> list[tuple[Fraction, str]]:
        """Return what a constraint's costs add, each sum over z and others in front."""
        of = self.of
        clash = of.w in row.sum.free and of.w in of.inputs
        indices = [f"{of.w}'" if clash and i == of.w else i for i in letters]
        multiplier = _multiplier(row.name, indices)
        sums = [i for i in indices if i not in ("k", of.y) and i not in of.inputs]
        w = f"{of.w}'" if clash else ""
        terms = [(c, of.averaged(k._replace(free=row.sum.free), w)) for c, k in row.sum.costs]
        terms = [(c, text) for c, text in terms if c]
        if len(terms) < 2:
            return [(c, total(sums, times(multiplier, text))) for c, text in terms]
        return [(Fraction(1), total(sums, rf"{multiplier} \, \left({plus(terms)}\right)"))]

    def _dual_auxiliary(
        self, name: str, rule: Auxiliary
    ) -> tuple[list[tuple[Any, str]], list[tuple[Any, str]], list[str]]:
        """Return what an auxiliary adds inside, to the objective, and to the conditions."""
        of = self.of
        letters, sums = [*of.inputs, of.y], list(of.inputs)
        bar = "" if not of.several else rf"{of.weight} \, "

        def mu(part: str) -> str:
            return rf"\mu_{{{upright(f'{name}.{part}')}}}({of.s}, {of.y})"

        weight = of.weight
        if isinstance(rule, Excess):
            return self._dual_excess(name, rule)
        top = rf"\tau_{{{upright(name)}}}"
        if rule.kind == "ratio":
            inner = rf"\left({rule.written} \, {mu('cap')} - {mu('floor')}\right)"
            price = total(sums, times(weight, inner))
            constraints = [each(rf"{price} \le {top}", [of.y])]
            constraints += [rf"{top} \ge 0"]
            constraints += [each(rf"{mu(part)} \ge 0", letters) for part in ("floor", "cap")]
            inside = [(1, bar + mu("cap")), (-1, bar + mu("floor"))]
            return inside, [(-1, top)], constraints
        inner = total(sums, rf"{weight} \, {mu('cap')}")
        constraints = [each(rf"{inner} \le {top}", [of.y]), each(rf"{mu('cap')} \ge 0", letters)]
        return [(1, bar + mu("cap"))], [(-1, rf"{rule.written} \, {top}")], constraints

    def _dual_excess(self, name: str, rule: Excess) -> Any:
        of, base = self.of, name.split("[")[0]
        if of.several and "[" in name:
            return [], [], []
        law = ["k"] if of.several else []
        args = ", ".join([*law, of.y])
        mu, top = rf"\mu_{{{upright(base + '.cap')}}}({args})", rf"\tau_{{{upright(base)}}}"
        top += "(k)" if law else ""
        outside = [(-1, total([*law, of.y], rf"{of.original} \, {mu}")),
                   (-Fraction(rule.bound), total(law, top))]  # fmt: skip
        constraints = [each(rf"{mu} \le {top}", [*law, of.y]), each(rf"{mu} \ge 0", [*law, of.y])]
        inside = total(law, rf"p_k({of.s}) \, {mu}") if law else mu
        return [(1, inside)], outside, constraints

    def _variables(self, families: Any) -> str:
        letters = [r"\nu"] + ([r"\lambda"] if self.rows else [])
        for family in families:
            posterior = self.of.places(family.kind).posterior
            letters.append(posterior if family.measure.informs else "s")
        if self.floors or self.caps or self.auxiliaries:
            letters.append(r"\mu")
        if self.auxiliaries:
            letters.append(r"\tau")
        letters += [r"\theta"] if self.worst else []
        return ",\\, ".join(dict.fromkeys(letters))

    def _dual_definitions(self) -> list[str]:
        of, lines = self.of, []
        if of.several:
            lines.append(rf"{of.weight} > 0 \text{{ a mixture of the laws }} p_k({of.s})")
        if self.floors or self.caps:
            low = rf"\ell({of.s}, {of.y}) \le " if self.floors else ""
            high = rf" \le c({of.s}, {of.y})" if self.caps else ""
            lines.append(rf"{low}{of.channel}{high} \text{{ the bounds of entries}}")
        return lines


@dataclass(frozen=True)
class CategoricalWriter:
    """What min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D is in LaTeX, and its dual."""

    budget: float
    units: str

    @property
    def _of(self) -> Lettering:
        return Lettering(same=True, units=self.units)

    def expanded(self) -> str:
        """Return min … s.t. … in the program's variables, without delimiters."""
        of = self._of
        changed = total(["x", of.y], r"Q(x, \hat x) \, \mathbf 1[x \ne \hat x]")
        objective = total([of.y], INFORMATION.latex(of.places("W")))
        lines = [rf"{changed} \le {tex(self.budget)}", *is_a_channel(of)]
        mass = rf"q(\hat x) = {total(['x'], 'Q(x, ' + of.y + ')')}"
        joint = rf"Q(x, \hat x) = p(x) \, {of.channel}"
        return aligned(of.channel, objective, lines, [joint, mass])

    def dual(self) -> str:
        """Return max … s.t. … in the multipliers, without delimiters."""
        of, price = self._of, _multiplier("budget", [])
        score, sound = INFORMATION.latex_scores(of.places("W"))
        objective = plus([(1, total(["x"], r"p(x) \, \nu(x)")), (-self.budget, price)])
        inside = rf"{score} + {price} \, \mathbf 1[x \ne \hat x]"
        lines = [each(rf"\nu(x) \le {inside}", ["x", of.y])]
        lines += [*(_each_too(line, [of.y]) for line in sound), rf"{price} \ge 0"]
        return aligned(r"\nu,\, \lambda,\, r", objective, lines, least=False)


def _multiplier(name: str, letters: list[str]) -> str:
    args = f"({', '.join(letters)})" if letters else ""
    return rf"\lambda_{{{upright(name)}}}{args}"


def _alike(multipliers: list[tuple[str, list[str]]], relation: str) -> list[str]:
    """Return what is said of multipliers, in one line of those of the same letters."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for multiplier, letters in multipliers:
        groups.setdefault(tuple(letters), []).append(multiplier)
    return [each(f"{', '.join(group)} {relation}", letters) for letters, group in groups.items()]


def _each_too(condition: str, letters: list[str]) -> str:
    """Return a condition with more letters in its quantifier."""
    indices = ", ".join(letters)
    if r"\forall" not in condition:
        return each(condition, letters)
    return f"{condition}, {indices}"


def _broken(left: str, terms: list[tuple[Any, str]], letters: list[str]) -> str:
    """Return left ≤ a sum, for each of some letters, a long one in a row for each term."""
    if sum(len(text) for _, text in terms) < 240:
        return each(rf"{left} \le {plus(terms)}", letters)
    rows = [plus([term]) for term in terms]
    rows = [f"- {row[1:]}" if row.startswith("-") else f"+ {row}" for row in rows]
    rows[0] = rows[0].removeprefix("+ ")
    body = " \\\\\n & \\qquad {} ".join(rows)
    return each(rf"{left} \le {body}", letters)
