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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from cvxprivacy.leakage import Leakage
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import INFORMATION
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.expression import Constraint, Expression
from cvxprivacy.programs.latex import aligned, each, plus, times
from cvxprivacy.programs.lettering import GIVEN_X, Lettering, Wording, total
from cvxprivacy.programs.notation import tex, upright
from cvxprivacy.programs.side_conditions import Auxiliary, EntryBounds, Excess
from cvxprivacy.programs.worst import Worst, parts_of

__all__ = [
    "CategoricalWriter",
    "ChannelDual",
    "ChannelStatement",
    "Family",
    "Row",
    "Sum",
    "is_a_channel",
]


@dataclass(frozen=True)
class Family:
    """Views that are alike but for z and law, and for the x that is known.

    Their measures are equal by label: each z and law has an object of its own.
    """

    kind: str
    label: str
    measure: Leakage = field(compare=False)
    free: bool  # whether each z is by itself
    mark: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.label

    @property
    def over(self) -> list[str]:
        """Letters over which its views are added up wherever it stands."""
        return ["x"] if self.kind == GIVEN_X else []


@dataclass(frozen=True)
class Sum:
    """A quantity: measures and costs with their factors, and a constant."""

    leaked: tuple[tuple[Fraction, Family], ...]
    costs: tuple[tuple[Fraction, Wording], ...]
    constant: Fraction

    @property
    def free(self) -> tuple[str, ...]:
        """Letters of which each has one such quantity, but the output's and the law's."""
        letters = dict.fromkeys(letter for _, cost in self.costs for letter in cost.free)
        return tuple(letters | dict.fromkeys("z" for _, of in self.leaked if of.free))


@dataclass(frozen=True)
class Row:
    """Constraints that are written alike."""

    name: str
    sum: Sum
    bound: Fraction
    level: str
    sense: str
    up: bool  # stated as ≥
    per_output: bool
    of_law: bool


class ChannelStatement:
    """What a channel program is in LaTeX.

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
        self.of: Lettering = alphabet.lettering
        self._observers, self._values = len(alphabet.observers), len(alphabet.p_w)
        self._marks: dict[tuple[str, str], tuple[str, str]] = {}
        self._centred: dict[tuple[str, str], tuple[str, Any]] = {}  # weights of relative entropies
        self.objective = self._sum(next(iter(parts_of(objective).values())))
        self.worst = isinstance(objective, Worst)
        self.over = objective.over if isinstance(objective, Worst) else ""  # instead of laws k
        self.rows = [row for name, group in rules.items() for row in self._rows(name, group)]
        parts = [(name, key, rule) for name, group in rules.items() for key, rule in group.items()]
        self.auxiliaries = [
            (key, rule) for _, key, rule in parts
            if isinstance(rule, Auxiliary) and not _as_another(rule)
        ]  # fmt: skip
        bounds = [(name, rule) for name, _, rule in parts if isinstance(rule, EntryBounds)]
        self.floors = any(rule.lower is not None for _, rule in bounds)
        self.caps = any(rule.upper is not None for _, rule in bounds)
        row_names = {row.name for row in self.rows}
        bound_names = [name for name, _ in bounds if name in criteria and name not in row_names]
        self.entries = list(dict.fromkeys(criteria[name] for name in bound_names))

    # ---- what is written -----------------------------------------------------------------

    def _sum(self, expression: Expression) -> Sum:
        groups: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
        for name, weight in expression.weights.items():
            view = expression.views[name]
            groups.setdefault((view.kind, view.measure.label), []).append((view, weight))
        summands = expression.summands.items()
        costs = [(c, k if isinstance(k, Wording) else self._unknown(k)) for k, c in summands]
        alone = any("z" in k.free for _, k in costs)
        leaked = []
        for key, members in groups.items():
            view, weight = members[0]
            some = key[0] != GIVEN_X and len(members) < self._observers
            free = bool(self.of.side) and (alone or some)
            family = Family(*key, view.measure, free, self._mark(key, view.measure))
            leaked.append((Fraction(weight) / view.scale, family))
        return Sum(tuple(leaked), tuple(costs), Fraction(expression.constant))

    def _unknown(self, name: str) -> Wording:
        return Wording(f"C_{{{upright(name)}}}(@s)", "x")

    def _mark(self, key: tuple[str, str], measure: Leakage) -> str:
        """Return what tells scores of measures of one symbol apart."""
        if key not in self._marks:
            alike = sum(symbol == measure.symbol for symbol, _ in self._marks.values())
            mark = f", {alike + 1}" if alike and not measure.informs else ""
            self._marks[key] = measure.symbol, mark
        return self._marks[key][1]

    def _alike(self, rows: Mapping[str, Constraint]) -> Iterator[tuple[str, Constraint, Sum]]:
        """Yield each constraint and its sum: of any w, where there is one alike for every w."""
        sums = {key: self._sum(rule.expression) for key, rule in rows.items()}
        events = {
            key: {k.event for _, k in quantity.costs} - {""} for key, quantity in sums.items()
        }
        of_any: dict[str, tuple[Sum, Any]] = {}
        values: dict[tuple[Sum, Any], set[str]] = {}
        for key, rule in rows.items():
            costs = tuple((c, self.of.for_each_w(k)) for c, k in sums[key].costs)
            form = rule.level, rule.bound, rule.sense, rule.relation, rule.per_output
            of_any[key] = replace(sums[key], costs=costs), form
            values[of_any[key]] = values.get(of_any[key], set()) | events[key]
        for key, rule in rows.items():
            each_w = len(events[key]) == 1 and len(values[of_any[key]]) == self._values
            yield key, rule, of_any[key][0] if each_w else sums[key]

    def _rows(self, name: str, group: Mapping[str, Any]) -> list[Row]:
        """Return the constraints of a group, those that are written alike once."""
        rows = {key: rule for key, rule in group.items() if isinstance(rule, Constraint)}
        forms: dict[Any, str] = {}
        for key, rule, quantity in self._alike(rows):
            costs = quantity.costs
            unworded = len(rows) > 1 and any(
                not isinstance(k, Wording) for k in rule.expression.summands
            )
            level, bound = rule.level, rule.bound
            if unworded and not self.of.several:  # each is another one: numbered
                words = Wording(f"C_{{{upright(name)}, i}}(@s)", "x", ("i",))
                costs, level = ((Fraction(1), words),), f"b_{{{upright(name)}, i}}"
            if isinstance(bound, tuple):
                bound = bound[0] if not level else Fraction(1)
            elif level:
                bound = Fraction(1)
            written = (
                Sum(quantity.leaked, costs, quantity.constant),
                bound,
                level,
                rule.sense,
                rule.relation == r"\ge",
                rule.per_output,
                rule.of_law and self.of.several,
            )
            forms.setdefault(written, key)
        suffixes = ((key, key.removeprefix(name).removeprefix(".")) for key in rows)
        parts = {key: re.split(r"[\[|]", suffix)[0] for key, suffix in suffixes}
        # A part's name is shown, unless it is a value of z, or a number.
        labelled = len(forms) > 1 or len({*parts.values()}) == 1
        names: list[str] = []
        for key in forms.values():
            label = f"{name}.{parts[key]}" if labelled and parts[key] else name
            names.append(label if label not in names else f"{label}.{len(names)}")
        return [Row(n, *written) for n, written in zip(names, forms, strict=True)]

    # ---- the program ---------------------------------------------------------------------

    def _amounts(self, quantity: Sum, per_output: bool) -> list[tuple[Fraction, str]]:
        """Return the terms of a quantity with their factors, in the program's variables."""
        of, terms = self.of, []
        for factor, family in quantity.leaked:
            places = of.places(family.kind, family.mark)
            side = ["z"] if of.side and not family.free else []
            letters = [*family.over, *side, *([] if per_output else [of.y])]
            terms.append((factor, total(letters, family.measure.latex(places))))
        for factor, cost in quantity.costs:
            free = cost.free + ((of.y,) if per_output else ())
            terms.append((factor, of.expectation(cost._replace(free=free))))
        return [(quantity.constant, ""), *terms] if quantity.constant else terms

    def _letters(self, row: Row) -> list[str]:
        """Return the letters of which there is a constraint each."""
        law = ["k"] if row.of_law else []
        each_w = [self.of.w] if any(family.measure.centred for _, family in row.sum.leaked) else []
        return [*law, *each_w, *row.sum.free, *([self.of.y] if row.per_output else [])]

    def _line(self, row: Row) -> str:
        """Return a constraint in the program's variables."""
        sign = -1 if row.up else 1
        terms = [(sign * c, text) for c, text in self._amounts(row.sum, row.per_output)]
        relation = "=" if row.sense == "==" else r"\ge" if row.up else r"\le"
        right: list[tuple[Fraction, str]] = []
        if row.bound:
            right = [(sign * row.bound, row.level)]
        else:
            right = [(-c, text) for c, text in terms if c <= 0]
            terms = [(c, text) for c, text in terms if c > 0]
        letters = self._letters(row)
        return each(f"{plus(terms)} {relation} {plus(right)}", letters)

    def expanded(self) -> str:
        """Return min … s.t. … in the program's variables, without delimiters."""
        of = self.of
        objective = plus(self._amounts(self.objective, False))
        if self.worst:
            objective = rf"\max_{{{self.over or 'k'}}} \left\{{ {objective} \right\}}"
        lines = [self._line(row) for row in self.rows] + self.entries
        for name, rule in self.auxiliaries:
            lines += self._auxiliary(name, rule)
        lines += is_a_channel(of)
        body, variables = "".join([objective, *lines]), of.channel
        if any(family.measure.centred for q in self._quantities() for _, family in q.leaked):
            variables += r",\, r"
            lines += [each(rf"r({of.y}) \ge 0", [of.y]), rf"{total([of.y], f'r({of.y})')} = 1"]
        return aligned(variables, objective, lines, self._definitions(body))

    def _quantities(self) -> list[Sum]:
        return [self.objective, *(row.sum for row in self.rows)]

    def _definitions(self, body: str) -> list[str]:
        """Return what Q, J and q are, as far as they are named."""
        of, rows = self.of, [self.objective, *(row.sum for row in self.rows)]
        kinds = list(dict.fromkeys(f.kind for each in rows for _, f in each.leaked))
        costs = [cost for each in rows for _, cost in each.costs]
        lines = [rf"Q{of.under}({of.s}, {of.y}) = {of.law}({of.s}) \, {of.channel}"]
        events = any(cost.event or (cost.over == "w") for cost in costs)
        parts = [k for k in ["W", *kinds] if k not in ("S", GIVEN_X) and (k in kinds or events)]
        for kind in dict.fromkeys(parts):
            joint, index = of.places(kind).j, of.places(kind).index
            if kind == "W" and of.joint_name.startswith("Q"):
                continue
            hidden = [index] if kind != "W" else of.hidden("w")
            side = of.hidden("z") if of.side else []
            inner = rf"Q{of.under}({of.s}, {of.y})"
            conditional = of.given_input([*hidden, *side])
            over = [i for i in of.inputs if i not in (index, "z")]
            lines.append(f"{joint} = {total(over, times(conditional, inner))}")
        side = of.hidden("z") if of.side else []
        for kind in {"S", GIVEN_X} & {*kinds} if side else ():
            joint = of.places(kind).j
            lines.append(rf"{joint} = {of.given_input(['z'])} \, Q{of.under}({of.s}, {of.y})")
        if GIVEN_X in kinds:
            places = of.places(GIVEN_X)
            lines.append(f"{places.mass} = {total([places.index], places.j)}")
        over = [i for i in of.inputs if i != "z"]
        mass = total(over, times(of.given_input(side), rf"Q{of.under}({of.s}, {of.y})"))
        named = f"q{of.under}({of.observation})"
        return [*lines, f"{named} = {mass}"] if named in body else lines

    def _pairs(self, name: str, rule: Excess) -> list[str]:
        """Return what one input has above e^ε times another, of all pairs at once."""
        of, other = self.of, _other(self.of)
        pair, right = [*of.inputs, other], rf"{_factor(rule)} \, p({of.y} \mid {other})"
        u = rf"u_{{{upright(name.rpartition('.')[0])}}}({of.s}, {other}, {of.y})"
        return [
            each(rf"{of.channel} - {right} \le {u}", [*pair, of.y]),
            each(rf"{total([of.y], u)} \le {tex(float(rule.bound))}", pair),
            each(rf"{u} \ge 0", [*pair, of.y]),
        ]

    def _auxiliary(self, name: str, rule: Auxiliary) -> list[str]:
        of, label = self.of, upright(name)
        if isinstance(rule, Excess) and rule.pair is not None:
            return self._pairs(name, rule)
        if isinstance(rule, Excess):
            k = _mark(of, name)
            above = rf"q{of.under}({of.y}) \le {of.original} + u_{{{k}}}({of.y})"
            letters = ["k", of.y] if of.several else [of.y]
            most = rf"{total([of.y], f'u_{{{k}}}({of.y})')} \le {tex(float(rule.bound))}"
            if of.several and "[" in name:
                return []
            return [
                each(above, letters),
                each(most, letters[:-1]),
                each(rf"u_{{{k}}}({of.y}) \ge 0", letters),
            ]
        if rule.kind == "ratio":
            a = rf"a_{{{label}}}({of.y})"
            return [each(rf"{a} \le {of.channel} \le {rule.written} \, {a}", [*of.inputs, of.y]),
                    rf"{total([of.y], a)} \le 1"]  # fmt: skip
        u = rf"u_{{{label}}}({of.y})"
        return [each(rf"{of.channel} \le {u}", [*of.inputs, of.y]),
                rf"{total([of.y], u)} \le {rule.written}"]  # fmt: skip


def _as_another(rule: Auxiliary) -> bool:
    """Tell a pair of letters that is written with the first one: they are alike."""
    return isinstance(rule, Excess) and rule.pair not in (None, (0, 1))


def _factor(rule: Excess) -> str:
    """Return e^ε of a pair."""
    (symbol,) = rule.moving
    return rf"e^{{{tex(symbol.rate * float(symbol.typed))}}}"


def _other(of: Lettering) -> str:
    """Return the letters of another input."""
    return ", ".join(f"{letter}'" for letter in of.inputs)


def is_a_channel(of: Lettering) -> list[str]:
    """Return that each input's law of outputs is one."""
    nonnegative = each(rf"{of.channel} \ge 0", [*of.inputs, of.y])
    return [nonnegative, each(rf"{total([of.y], of.channel)} = 1", of.inputs)]


def _power(units: str, exponent: str) -> str:
    """Return e, or 2 of bits, to a power."""
    return rf"{'2' if units == 'bits' else 'e'}^{{{exponent}}}"


def _mark(of: Lettering, name: str) -> str:
    base = upright(name.split("[")[0])
    return f"{base}, k" if of.several else base


# ---- the dual -----------------------------------------------------------------------------


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
            letters = (["k"] if of.several else []) + places.observation.split(", ")
            scores += [_each_too(c, letters) for c in family.measure.latex_scores(places)[1]]
        for weight, places in self._centred.values():  # of the row r
            grown = places.sum(rf"{weight} \, {_power(of.units, places.score('s'))}")
            most = "1" if weight == rf"\theta({self.over})" else places.sum(weight)
            scores.append(_each_too(rf"{grown} \le {most}", of.observation.split(", ")))
        conditions = [*scores, *conditions, *_alike(signed, r"\ge 0")]
        conditions += _alike(free, r"\text{ free}")
        if self.worst:
            k = self.over or "k"
            conditions += [
                rf"\theta({k}) \ge 0 \quad \forall\, {k}",
                rf"\sum_{{{k}}} \theta({k}) = 1",
            ]
        return aligned(self._variables(families.values()), plus(objective), [main, *conditions],
                       self._dual_definitions(), least=False)  # fmt: skip

    def _inside(self) -> list[tuple[Any, str]]:
        """Return what an input and an output have of the objective and of every constraint."""
        of = self.of
        weights: dict[tuple[str, str], list[tuple[Fraction, str]]] = {}
        families: dict[tuple[str, str], Family] = {}
        by_z: dict[tuple[str, str], list[list[str]]] = {}
        share = rf"\theta({self.over or 'k'})" if self.worst else ""
        for factor, family in self.objective.leaked:
            weights.setdefault(family.key, []).append((factor, share))
            families.setdefault(family.key, family)
        of_costs = "" if self.over else share  # θ adds up to 1
        costs = [(factor, times(of_costs, of.averaged(c))) for factor, c in self.objective.costs]
        for row in self.rows:
            letters = self._letters(row)
            outer = [i for i in letters if i not in ("k", "z", of.y)]
            for factor, family in row.sum.leaked:
                outer = [] if family.measure.centred else outer
                text = total(outer, _multiplier(row.name, letters))
                weights.setdefault(family.key, []).append((factor, text))
                families.setdefault(family.key, family)
                by_z.setdefault(family.key, []).append(letters)
            if row.sum.costs:
                costs += self._costs(row, letters)
        terms = []
        for key, family in families.items():
            places, summands = of.places(family.kind, family.mark), weights[key]
            score = family.measure.latex_scores(places)[0]
            if family.measure.centred:  # of each w by itself, whose weight is under the sum
                score = rf"\frac{{{plus(summands)}}}{{{places.pi}}} \, {score}"
                terms.append((Fraction(1), of.seeing(family.kind, score)))
                self._centred[family.key] = plus(summands), places
                continue
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
            of_pairs = rule.pair is not None
            return self._dual_pairs(name, rule) if of_pairs else self._dual_excess(name, rule)
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

    def _dual_pairs(self, name: str, rule: Excess) -> Any:
        of, other = self.of, _other(self.of)
        mu = rf"\mu_{{{upright(name.rpartition('.')[0] + '.cap')}}}"
        ours, theirs = (rf"{mu}({a}, {b}, {of.y})" for a, b in ((of.s, other), (other, of.s)))
        inner = total(other.split(", "), rf"\left({ours} - {_factor(rule)} \, {theirs}\right)")
        most = total([*of.inputs, *other.split(", ")], rf"\max_{{{of.y}}} {ours}")
        inside = inner if of.several else rf"\frac{{1}}{{{of.weight}}} \, {inner}"
        conditions = [each(rf"{ours} \ge 0", [*of.inputs, *other.split(", "), of.y])]
        return [(1, inside)], [(-Fraction(rule.bound), most)], conditions

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
        if any(not isinstance(a, Excess) or a.pair is None for _, a in self.auxiliaries):
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
