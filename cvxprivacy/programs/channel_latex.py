r"""The channel program in LaTeX, written out in its variables, from what was stated.

Constraints that are written alike are one line with a quantifier.  The dual is that of
:mod:`cvxprivacy.programs.dual`: with multipliers λ of constraints, scores of every measure, and
what each input adds, ν,

.. math::
   \max \; \sum_s p(s)\, ν(s) - \sum_j λ_j b_j \quad\text{s.t.}\quad
   ν(s) ≤ \sum_k ω_k(y) \sum_v p_k(v \mid s)\, s_k(v \mid y) + C_0(s, y) + \sum_j λ_j C_j(s, y).

Multipliers are called as in ``solution.duals``, where ν is that of ``mass``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from cvxprivacy.leakage import Leakage
from cvxprivacy.leakage.base import Places
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import INFORMATION
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.expression import Constraint, Expression, Worst, first_part
from cvxprivacy.programs.latex_symbols import (
    GIVEN_X,
    Notation,
    PrintedCost,
    Written,
    aligned,
    each,
    multiplier,
    plus,
    tex,
    times,
    total,
    upright,
)
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess

__all__ = ["ChannelStatement", "categorical"]

Key = tuple[str, str]  # the kind and the label of what is leaked
Terms = list[tuple[Any, str]]  # texts with their factors
LONGEST = 240  # characters of a line of the dual that is not broken


class Row(NamedTuple):
    """Constraints that are written alike, or the objective: terms with factors, and a bound."""

    leaked: tuple[tuple[Fraction, Key, bool], ...]  # by kind and measure; True: of one z each
    costs: tuple[tuple[Fraction, PrintedCost], ...]
    constant: Fraction
    bound: Fraction = Fraction(0)
    level: str = ""
    relation: str = ""
    per_output: bool = False
    each_law: bool = False
    name: str = ""

    @property
    def free(self) -> list[str]:
        """Letters for each of which there is one, but the output's and the law's."""
        letters = dict.fromkeys(letter for _, cost in self.costs for letter in cost.free)
        return [*(letters | dict.fromkeys("z" for *_, alone in self.leaked if alone))]

    @property
    def events(self) -> set[str]:
        """The values of W of which each counts one alone."""
        return {cost.event for _, cost in self.costs} - {""}

    def of_any(self, w: str) -> Row:
        """Return the same for any value of W instead of one."""
        costs = tuple(
            (c, k._replace(event=w, free=(*k.free, w)) if k.event and w not in k.free else k)
            for c, k in self.costs
        )
        return self._replace(costs=costs)


class Condition(NamedTuple):
    """An auxiliary: its lines in the program, and what its multipliers add to the dual."""

    lines: list[str]
    inside: Terms  # to what an input and an output have
    objective: Terms
    conditions: list[str]


class ChannelStatement:
    """What a channel program, and its dual, are in LaTeX.

    Parameters
    ----------
    alphabet : Alphabet
    objective : Expression or Worst
    rules : Rules
    criteria : mapping of str to str
        How rules that bound entries are written, by name.
    """

    def __init__(
        self,
        alphabet: Alphabet,
        objective: Expression | Worst,
        rules: Rules,
        criteria: Mapping[str, str],
    ) -> None:
        self.of: Notation = alphabet.notation
        self._observers, self._values = len(alphabet.observers), len(alphabet.p_w)
        self.measures: dict[Key, tuple[Leakage, Places]] = {}
        self.over = objective.over if isinstance(objective, Worst) else ""  # instead of laws k
        self.k = (self.over or "k") if isinstance(objective, Worst) else ""  # of the maximum
        self.objective = self._quantity(first_part(objective))
        self.rows = [row for name, group in rules.items() for row in self._rows(name, group)]
        parts = [(name, key, rule) for name, group in rules.items() for key, rule in group.items()]
        self.auxiliaries = [
            self._auxiliary(key, rule) for _, key, rule in parts
            if isinstance(rule, Auxiliary) and not self._as_another(key, rule)
        ]  # fmt: skip
        bounds = [(name, rule) for name, _, rule in parts if isinstance(rule, EntryBounds)]
        self.bounds = [
            part for part, side in (("floor", "lower"), ("cap", "upper"))
            if any(getattr(rule, side) is not None for _, rule in bounds)
        ]  # fmt: skip
        self.auxiliaries += [self._entries(part) for part in self.bounds]
        shown = {row.name for row in self.rows}
        self.entries = list(
            dict.fromkeys(criteria[k] for k, _ in bounds if k in criteria and k not in shown)
        )

    # ---- what was stated -----------------------------------------------------------------

    def _quantity(self, expression: Expression) -> Row:
        of, groups = self.of, dict[Key, list[tuple[Any, Any]]]()
        for name, weight in expression.weights.items():
            view = expression.views[name]
            key = view.kind, view.measure.label
            groups.setdefault(key, []).append((view, weight))
            if key not in self.measures:  # those of one symbol are numbered
                alike = sum(
                    other.symbol == view.measure.symbol for other, _ in self.measures.values()
                )
                mark = f", {alike + 1}" if alike and not view.measure.informs else ""
                self.measures[key] = view.measure, of.places(view.kind, mark)
        costs = [
            (c, k if isinstance(k, PrintedCost) else PrintedCost(f"C_{{{upright(k)}}}(@s)", "x"))
            for k, c in expression.summands.items()
        ]
        of_one_z, leaked = any("z" in k.free for _, k in costs), list[tuple[Fraction, Key, bool]]()
        for key, ((view, weight), *others) in groups.items():
            some = key[0] != GIVEN_X and 1 + len(others) < self._observers
            alone = bool(of.side) and (of_one_z or some)
            leaked.append((Fraction(weight) / view.scale, key, alone))
        return Row(tuple(leaked), tuple(costs), Fraction(expression.constant))

    def _row(self, rule: Constraint, number: str) -> Row:
        """Return a constraint as it is written, its cost that of a number if it has no other."""
        row, level, bound = self._quantity(rule.expression), rule.level, rule.bound
        if number and not all(isinstance(k, PrintedCost) for k in rule.expression.summands):
            cost = PrintedCost(f"C_{{{number}}}(@s)", "x", ("i",))
            row, level = row._replace(costs=((Fraction(1), cost),)), f"b_{{{number}}}"
        return row._replace(
            bound=Fraction(1) if level else bound[0] if isinstance(bound, tuple) else bound,
            level=level,
            relation="=" if rule.sense == "==" else rule.relation,
            per_output=rule.per_output,
            each_law=rule.of_law and self.of.several,
        )

    def _rows(self, name: str, group: Mapping[str, Any]) -> list[Row]:
        """Return the constraints of a group: once those written alike, or for every value of W."""
        rules = {key: rule for key, rule in group.items() if isinstance(rule, Constraint)}
        number = f"{upright(name)}, i" if len(rules) > 1 and not self.of.several else ""
        rows = {key: self._row(rule, number) for key, rule in rules.items()}
        values: dict[Row, set[str]] = {}
        for row in rows.values():
            values.setdefault(row.of_any(self.of.w), set()).update(row.events)
        forms: dict[Row, str] = {}
        for key, row in rows.items():
            of_any = row.of_any(self.of.w)
            each_w = len(row.events) == 1 and len(values[of_any]) == self._values
            forms.setdefault(of_any if each_w else row, key)
        suffixes = {key: key.removeprefix(name).removeprefix(".") for key in rows}
        parts = {key: re.split(r"[\[|]", suffix)[0] for key, suffix in suffixes.items()}
        # A part's name is shown, unless it is a value of z, or a number.
        labelled = len(forms) > 1 or len({*parts.values()}) == 1
        names: list[str] = []
        for key in forms.values():
            label = f"{name}.{parts[key]}" if labelled and parts[key] else name
            names.append(label if label not in names else f"{label}.{len(names)}")
        return [row._replace(name=n) for n, row in zip(names, forms, strict=True)]

    def _centred(self, row: Row) -> bool:
        """Tell whether there is one for each w, of a relative entropy to a common law r."""
        return any(self.measures[key][0].centred for _, key, _ in row.leaked)

    def _letters(self, row: Row) -> list[str]:
        """Return the letters for each of which there is a constraint."""
        law, each_w = ["k"] if row.each_law else [], [self.of.w] if self._centred(row) else []
        return [*law, *each_w, *row.free, *([self.of.y] if row.per_output else [])]

    # ---- the program ---------------------------------------------------------------------

    def _amounts(self, row: Row) -> Terms:
        """Return the terms of a quantity with their factors, in the program's variables."""
        of, y = self.of, [self.of.y] if row.per_output else []
        terms: Terms = [(row.constant, "")] if row.constant else []
        for factor, key, alone in row.leaked:
            measure, at = self.measures[key]
            over = ["x"] if key[0] == GIVEN_X else []
            over += ["z"] if of.side and not alone else []
            terms.append((factor, total([*over, *([] if y else [of.y])], measure.latex(at))))
        costs = [(factor, cost._replace(free=(*cost.free, *y))) for factor, cost in row.costs]
        return terms + [(factor, of.expectation(cost)) for factor, cost in costs]

    def _line(self, row: Row) -> str:
        """Return a constraint in the program's variables."""
        sign = -1 if row.relation == r"\ge" else 1
        terms = [(sign * c, text) for c, text in self._amounts(row)]
        right: Terms = [(sign * row.bound, row.level)]
        if not row.bound:
            right = [(-c, text) for c, text in terms if c <= 0]
            terms = [(c, text) for c, text in terms if c > 0]
        return each(f"{plus(terms)} {row.relation} {plus(right)}", self._letters(row))

    @property
    def expanded(self) -> str:
        """Min … s.t. … in the program's variables, without delimiters."""
        of, rows = self.of, (self.objective, *self.rows)
        objective = plus(self._amounts(self.objective))
        if self.k:
            objective = rf"\max_{{{self.k}}} \left\{{ {objective} \right\}}"
        lines = [self._line(row) for row in self.rows] + self.entries
        lines += [line for auxiliary in self.auxiliaries for line in auxiliary.lines]
        lines += of.is_a_channel()
        body, variables = "".join([objective, *lines]), of.channel
        if any(map(self._centred, rows)):
            variables += r",\, r"
            lines += [each(rf"r({of.y}) \ge 0", [of.y]), rf"{total([of.y], f'r({of.y})')} = 1"]
        costs = [cost for row in rows for _, cost in row.costs]
        events = any(cost.event or cost.over == "w" for cost in costs)
        kinds = dict.fromkeys([*(["W"] if events else []), *(kind for kind, _ in self.measures)])
        order = sorted(kinds, key=lambda kind: (kind in ("S", GIVEN_X), kind != "W"))
        return aligned(variables, objective, lines, of.definitions(order, body))

    # ---- auxiliaries ---------------------------------------------------------------------

    def _as_another(self, name: str, rule: Auxiliary) -> bool:
        """Tell what is written with another: a further pair of inputs, or a further law."""
        if not isinstance(rule, Excess):
            return False
        return rule.pair != (0, 1) if rule.pair else self.of.several and "[" in name

    def _auxiliary(self, name: str, rule: Auxiliary) -> Condition:
        """Return an auxiliary of each kind: (P23), (P24) and (P25)."""
        of, y, label = self.of, self.of.y, upright(name)
        entry, weight = [*of.inputs, y], of.weight
        if isinstance(rule, Excess):
            return (self._pair if rule.pair else self._excess)(name, rule)
        cap, floor = (multiplier(f"{name}.{part}", entry, r"\mu") for part in ("cap", "floor"))
        top, bar = multiplier(name, (), r"\tau"), rf"{weight} \, " if of.several else ""
        if rule.kind == "ratio":
            a = rf"a_{{{label}}}({y})"
            price = rf"{weight} \, \left({rule.written} \, {cap} - {floor}\right)"
            return Condition(
                [each(rf"{a} \le {of.channel} \le {rule.written} \, {a}", entry),
                 rf"{total([y], a)} \le 1"],
                [(1, bar + cap), (-1, bar + floor)],
                [(-1, top)],
                [each(rf"{total(of.inputs, price)} \le {top}", [y]), rf"{top} \ge 0",
                 each(rf"{floor}, {cap} \ge 0", entry)],
            )  # fmt: skip
        u, price = rf"u_{{{label}}}({y})", total(of.inputs, rf"{weight} \, {cap}")
        return Condition(
            [each(rf"{of.channel} \le {u}", entry), rf"{total([y], u)} \le {rule.written}"],
            [(1, bar + cap)],
            [(-1, rf"{rule.written} \, {top}")],
            [each(rf"{price} \le {top}", [y]), each(rf"{cap} \ge 0", entry)],
        )  # fmt: skip

    def _entries(self, part: str) -> Condition:
        """Return what bounds of entries, floors ℓ or caps c, add to the dual."""
        of, entry = self.of, [*self.of.inputs, self.of.y]
        bound, sign = (r"\ell", -1) if part == "floor" else ("c", 1)
        mu = multiplier(part, entry, r"\mu")
        worth = total(entry, rf"{of.weight} \, {bound}({of.s}, {of.y}) \, {mu}")
        inside = rf"{of.weight} \, {mu}" if of.several else mu
        return Condition([], [(sign, inside)], [(-sign, worth)], [each(rf"{mu} \ge 0", entry)])

    def _pair(self, name: str, rule: Excess) -> Condition:
        """Return what one input has above e^ε times another, of all pairs at once."""
        of, y, base = self.of, self.of.y, name.rpartition(".")[0]
        (symbol,), primed = rule.moving, [f"{letter}'" for letter in of.inputs]
        factor, other = rf"e^{{{tex(symbol.rate * float(symbol.typed))}}}", ", ".join(primed)
        pair, u = [*of.inputs, *primed], rf"u_{{{upright(base)}}}({of.s}, {other}, {y})"
        orders = (of.s, other, y), (other, of.s, y)
        ours, theirs = (multiplier(f"{base}.cap", letters, r"\mu") for letters in orders)
        inner = total(primed, rf"\left({ours} - {factor} \, {theirs}\right)")
        inside = inner if of.several else rf"\frac{{1}}{{{of.weight}}} \, {inner}"
        return Condition(
            [each(rf"{of.channel} - {factor} \, p({y} \mid {other}) \le {u}", [*pair, y]),
             each(rf"{total([y], u)} \le {tex(float(rule.bound))}", pair),
             each(rf"{u} \ge 0", [*pair, y])],
            [(1, inside)],
            [(-rule.bound, total(pair, rf"\max_{{{y}}} {ours}"))],
            [each(rf"{ours} \ge 0", [*pair, y])],
        )  # fmt: skip

    def _excess(self, name: str, rule: Excess) -> Condition:
        """Return what outputs have above their levels, under each law."""
        of, y = self.of, self.of.y
        law, k = (["k"], ", k") if of.several else ([], "")
        entry, u = [*law, y], rf"u_{{{upright(name)}{k}}}({y})"
        mu, top = multiplier(f"{name}.cap", entry, r"\mu"), multiplier(name, law, r"\tau")
        return Condition(
            [each(rf"q{'_k' if law else ''}({y}) \le {of.original} + {u}", entry),
             each(rf"{total([y], u)} \le {tex(float(rule.bound))}", law),
             each(rf"{u} \ge 0", entry)],
            [(1, total(law, rf"p_k({of.s}) \, {mu}") if law else mu)],
            [(-1, total(entry, rf"{of.original} \, {mu}")), (-rule.bound, total(law, top))],
            [each(rf"{mu} \le {top}", entry), each(rf"{mu} \ge 0", entry)],
        )  # fmt: skip

    # ---- the dual ------------------------------------------------------------------------

    def _multiplier(self, row: Row, letters: Sequence[str]) -> str:
        """Return λ of a constraint, or the share θ of the objective; "" where that is 1."""
        share = rf"\theta({self.k})" if self.k else ""
        return multiplier(row.name, letters) if row.name else share

    def _weights(self) -> dict[Key, tuple[Terms, bool]]:
        """Return ω of each measure as a sum of multipliers, and whether that depends on z."""
        weights: dict[Key, tuple[Terms, bool]] = {}
        for row in (self.objective, *self.rows):
            letters = self._letters(row)
            outer = [i for i in letters if i not in ("k", "z", self.of.y)]
            for factor, key, _ in row.leaked:
                outer = [] if self.measures[key][0].centred else outer
                terms, by_z = weights.get(key, ([], False))
                term = factor, total(outer, self._multiplier(row, letters))
                weights[key] = [*terms, term], by_z or "z" in letters
        return weights

    def _inside(self) -> Terms:
        """Return what an input and an output have of the objective and of every constraint."""
        of, terms = self.of, list[tuple[Any, str]]()
        side = of.side_sum
        for key, (summands, by_z) in self._weights().items():
            measure, at = self.measures[key]
            score, (factor, omega) = measure.latex_scores(at)[0], summands[0]
            if measure.centred:  # of each w by itself, whose weight is under the sum
                score = rf"\frac{{{plus(summands)}}}{{{at.pi}}} \, {score}"
                terms.append((1, of.seeing(key[0], score)))
                continue
            if len(summands) > 1:
                factor, omega = Fraction(1), rf"\left({plus(summands)}\right)"
            mean = of.seeing(key[0], score)
            text = times(omega, mean if by_z else total(side, mean))
            terms.append((factor, total(side, text) if by_z else text))
        for row in (self.objective, *self.rows):
            terms += self._costs(row)
        return [(c, rf"\sum_{{k}} p_k({of.s}) \, {t}" if of.several else t) for c, t in terms]

    def _costs(self, row: Row) -> Terms:
        """Return what the costs of a constraint add, each sum over z and others in front."""
        of, letters = self.of, self._letters(row)
        clash = of.w in row.free and of.w in of.inputs
        indices = [f"{of.w}'" if clash and i == of.w else i for i in letters]
        price = self._multiplier(row, indices) if row.name or not self.over else ""  # θ adds to 1
        sums = [i for i in indices if i not in ("k", of.y) and i not in of.inputs]
        w = f"{of.w}'" if clash else ""
        terms = [(c, of.averaged(k._replace(free=(*row.free,)), w)) for c, k in row.costs if c]
        if len(terms) < 2 or not price:
            return [(c, total(sums, times(price, text))) for c, text in terms]
        return [(1, total(sums, rf"{price} \, \left({plus(terms)}\right)"))]

    @property
    def dual(self) -> str:
        """Max … s.t. … in the multipliers, without delimiters."""
        of, parts, left = self.of, self.auxiliaries, rf"\nu({self.of.s})"
        objective: Terms = [(1, total(of.inputs, rf"{of.weight} \, {left}"))]
        signs: dict[tuple[str, ...], list[str]] = {}
        for row in self.rows:
            letters = self._letters(row)
            price = self._multiplier(row, letters)
            right = row.bound if row.level else row.bound - row.constant
            if right:
                objective.append((-right, total(letters, times(row.level, price))))
            relation = r"\text{ free}" if row.relation == "=" else r"\ge 0"
            signs.setdefault((relation, *letters), []).append(price)
        objective += [(self.objective.constant, "")] if self.objective.constant else []
        objective += [term for part in parts for term in part.objective]
        inside = self._inside() + [term for part in parts for term in part.inside]
        left = rf"{of.weight} \, {left}" if of.several else left
        lines = [_broken(left, inside, [*of.inputs, of.y]), *self._scores()]
        lines += [line for part in parts for line in part.conditions]
        for (relation, *letters), prices in signs.items():
            lines.append(each(f"{', '.join(prices)} {relation}", letters))
        if self.k:
            lines += [each(rf"\theta({self.k}) \ge 0", [self.k]),
                      total([self.k], rf"\theta({self.k}) = 1")]  # fmt: skip
        where = [rf"{of.weight} > 0 \text{{ a mixture of the laws }} p_k({of.s})"] * of.several
        low = rf"\ell({of.s}, {of.y}) \le " * ("floor" in self.bounds)
        high = rf" \le c({of.s}, {of.y})" * ("cap" in self.bounds)
        where += [rf"{low}{of.channel}{high} \text{{ the bounds of entries}}"] * bool(self.bounds)
        body = "".join([*(text for _, text in objective), *lines])
        return aligned(self._variables(body), plus(objective), lines, where, least=False)

    def _scores(self) -> list[str]:
        """Return what the scores of every measure satisfy, and what r adds."""
        of, lines, law = self.of, list[str](), ["k"] if self.of.several else []
        for measure, at in self.measures.values():
            letters = [*law, *at.observation.split(", ")]
            lines += [each(line, letters) for line in measure.latex_scores(at)[1]]
        for key, (summands, _) in self._weights().items():
            measure, at = self.measures[key]
            if measure.centred:  # of the row r
                weight, power = plus(summands), "2" if of.units == "bits" else "e"
                grown = at.sum(rf"{weight} \, {power}^{{{at.score('s')}}}")
                most = "1" if weight == rf"\theta({self.over})" else at.sum(weight)
                lines.append(each(rf"{grown} \le {most}", of.observation.split(", ")))
        return lines

    def _variables(self, body: str) -> str:
        """Return the letters of the multipliers in the body of the dual."""
        letters = [r"\nu"] + ([r"\lambda"] if self.rows else [])
        for measure, at in self.measures.values():
            letters.append(at.posterior if measure.informs else "s")
        letters += [letter for letter in (r"\mu", r"\tau", r"\theta") if letter in body]
        return r",\, ".join(dict.fromkeys(letters))


def _broken(left: str, terms: Terms, letters: list[str]) -> str:
    """Return left ≤ a sum, for each of some letters, a long one in a row for each term."""
    if sum(len(text) for _, text in terms) < LONGEST:
        return each(rf"{left} \le {plus(terms)}", letters)
    rows = [plus([term]) for term in terms]
    rows = [f"- {row[1:]}" if row.startswith("-") else f"+ {row}" for row in rows]
    rows[0] = rows[0].removeprefix("+ ")
    return each(rf"{left} \le " + " \\\\\n & \\qquad {} ".join(rows), letters)


def categorical(budget: float, units: str) -> Written:
    """Return min I(X; X̂) s.t. Pr(X ≠ X̂) ≤ D, and its dual, of letters too many for a table."""
    of, price, changed = (
        Notation(same=True, units=units),
        multiplier("budget"),
        r"\mathbf 1[x \ne \hat x]",
    )
    at = of.places("W")
    objective, cost = total([of.y], INFORMATION.latex(at)), PrintedCost(changed, "x")
    lines = [rf"{of.expectation(cost)} \le {tex(budget)}", *of.is_a_channel()]
    expanded = aligned(of.channel, objective, lines, of.definitions(["W"], objective))
    score, sound = INFORMATION.latex_scores(at)
    lines = [each(rf"\nu(x) \le {score} + {price} \, {changed}", ["x", of.y])]
    lines += [*(each(line, [of.y]) for line in sound), rf"{price} \ge 0"]
    worth = plus([(1, total(["x"], r"p(x) \, \nu(x)")), (-budget, price)])
    return Written(expanded, aligned(r"\nu,\, \lambda,\, r", worth, lines, least=False))
