"""What every name in the statement of a channel problem stands for, from what was typed."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from cvxprivacy.leakage import FInformation
from cvxprivacy.programs.latex_symbols import GIVEN_X, upright
from cvxprivacy.programs.side_conditions import EntryBounds


def _tokens(text: str) -> str:
    """Return a name as the parser has it: without blanks between tokens."""
    return re.sub(r"\s+", "", text)


class Values:
    """Symbols and domains of a problem at its solution."""

    def __init__(self, problem: Any, solution: Any) -> None:
        self.problem, self.solution = problem, solution
        self.of, self.program = problem.alphabet, solution.certificate.program
        self.dual = solution.certificate.dual
        self.names = list(self.of.laws)
        laws = [np.asarray(source.pmf, float) for source in self.of.laws.values()]
        self.laws = [law if law.ndim == 3 else law[:, :, None] for law in laws]
        self.laws = [law / law.sum() for law in self.laws]
        w, x, z = self.laws[0].shape
        self.rows = self._rows(w, x, z)
        sizes = {"w": w, "x": x, "z": z, r"\hat x": len(self.of.d.outputs), "u": self.of.m}
        self.domains: dict[str, list[Any]] = {k: list(range(n)) for k, n in sizes.items()}
        self.domains |= {f"{k}'": self.domains[k] for k in ("w", "x")}
        self.domains["k"] = list(range(len(self.laws)))
        self.parts: dict[str, list[int]] = {}
        self.y = "u" if self.of.strategies is not None else r"\hat x"
        self.symbols: dict[str, Any] = {}
        self.scores: dict[tuple[str, str], np.ndarray] = {}
        self._fill()

    def _rows(self, w: int, x: int, z: int) -> dict[tuple[int, ...], int]:
        """Return which row of the program a tuple of the encoder's letters is."""
        sizes = {"w": w, "x": x, "z": z}
        letters = list(itertools.product(*(range(sizes[k]) for k in self.of.encoder_inputs)))
        return {letters[place]: i for i, place in enumerate(self.of.support.tolist())}

    # ---- laws ----------------------------------------------------------------------------

    def _mass(self, law: np.ndarray, pairs: list[tuple[str, Any]]) -> float:
        """Return the mass of what letters are said to be, of an array by w, x, z (and y)."""
        mask = np.ones(law.shape, bool)
        for letter, value in pairs:
            base = letter.rstrip("'")
            if base in self.parts:
                along, ours = 0, np.array(self.parts[base]) == value
            else:
                along = {"w": 0, "x": 1, "z": 2}.get(base, 3)
                ours = np.arange(law.shape[along]) == value
            shape = [1] * law.ndim
            shape[along] = -1
            mask &= ours.reshape(shape)
        return float(law[mask].sum())

    def p(self, below: Any, left: Any, argument: Any) -> float:
        law = self.laws[below[0][1] if below else 0]
        if any(letter == self.y for letter, _ in left):
            inputs = tuple(value for _, value in argument)
            return float(self.channel[self.rows[inputs], left[0][1]])
        return self._mass(law, left + argument) / (self._mass(law, argument) if argument else 1.0)

    def joint(self, below: Any, pairs: Any, _: Any) -> float:
        k = below[0][1] if below else 0
        return self._mass(self.joints[k], pairs)

    def s(self, pairs: Any) -> int:
        return self.rows[tuple(v for k, v in pairs if k != self.y)]

    # ---- what is looked up ---------------------------------------------------------------

    def _fill(self) -> None:
        program, expected = self.program, self.symbols
        self.channel = self.solution.certificate.primal.matrix
        self.joints = []
        for law in self.laws:
            joint = np.zeros((*law.shape, program.m))
            for w, x, z in np.argwhere(law > 0):
                letters = dict(zip("wxz", (w, x, z), strict=True))
                row = self.rows[tuple(int(letters[k]) for k in self.of.encoder_inputs)]
                joint[w, x, z] = law[w, x, z] * self.channel[row]
            self.joints.append(joint)
        expected |= {"p": self.p, "Q": self.joint, "J": self.joint, "q": self.joint}
        expected[r"\bar p"] = lambda b, a, g: float(program.mass[self.s(a)])
        expected["p_{X}"] = self._original
        expected["u"] = lambda u, z: int(self.of.strategies[u, z])
        duals, mass = self.solution.duals, program.mass
        expected[r"\nu"] = lambda b, a, g: float(duals["mass"][self.s(a)])
        if program.lower is not None:
            expected[r"\ell"] = lambda b, a, g: float(program.lower[self.s(a), a[-1][1]])
        if program.upper is not None:
            expected["c"] = lambda b, a, g: float(program.upper[self.s(a), a[-1][1]])
        for part in ("floor", "cap"):
            values = duals.get(part)
            expected[_mu(part)] = lambda b, a, g, v=values: float(v[self.s(a), a[-1][1]])
        for name, values in self.dual.auxiliaries.items():
            kinds = ("floor", "cap") if len(values) == 2 else ("cap",)
            for part, table in zip(kinds, values, strict=True):
                expected[_mu(f"{name}.{part}")] = lambda b, a, g, v=table, n=name: self._aux(
                    n, v, a
                )
        for name, group in self.problem.rules.items():
            if any(getattr(rule, "pair", None) for rule in group.values()):
                expected[_mu(f"{name}.cap")] = lambda b, a, g, n=name: self._of_pair(n, a)
        shares = self.dual.shares_of(program).items()
        by_law = {self.names.index(name): share for name, share in shares}
        expected[r"\theta"] = lambda b, a, g: by_law[a[0][1]]
        assert np.allclose(mass.sum(), 1)
        self._costs()
        self._multipliers()
        self._scores()

    def _original(self, below: Any, pairs: Any, _: Any) -> float:
        law, label = self.laws[below[0][1] if below else 0], self.of.d.outputs[pairs[0][1]]
        inputs = list(self.of.source.x)
        return self._mass(law, [("x", inputs.index(label))]) if label in inputs else 0.0

    def _aux(self, name: str, table: Any, pairs: Any) -> float:
        if np.ndim(table) == 2:
            return float(table[self.s(pairs), pairs[-1][1]])
        k = next((v for letter, v in pairs if letter == "k"), 0)
        if k:
            table = self.dual.auxiliaries[f"{name}[{self.names[k]}]"][0]
        return float(np.asarray(table)[pairs[-1][1]])

    def _of_pair(self, name: str, pairs: Any) -> float:
        size = len(self.of.encoder_inputs)
        values = [value for _, value in pairs]
        i, j = (self.rows[tuple(part)] for part in (values[:size], values[size:-1]))
        return 0.0 if i == j else float(self.dual.auxiliaries[f"{name}.{i}/{j}"][0][values[-1]])

    def _costs(self) -> None:
        """Costs of distortions and rules, as they were typed."""

        def entry(table: Any) -> Any:
            table = np.asarray(table, float)
            return lambda b, a, g: float(table[tuple(v for _, v in a)])

        d = self.of.d
        self.symbols["d"] = entry(d.matrix if d.cost.ndim == 2 else d.cost)
        for name, part in d.parts.items():
            self.symbols[_tokens(f"d_{{{upright(name)}}}")] = entry(part)
        for name, rule in self.problem._criteria().items():
            kind = type(rule).__name__
            if kind == "Linear":
                self.symbols[_tokens(f"A_{{{upright(rule.name)}}}")] = entry(rule.matrix)
            if kind == "PreserveMean":
                values = np.asarray(rule.values, float)
                self.symbols["v"] = lambda b, a, g, v=values: float(v[a[0][1]])
            if kind == "Affine":
                rows = [
                    (np.asarray(row.coefficients), float(rule.bounds[row.place]) - row.constant)
                    for row in rule.rows
                ]
                self.domains["i"] = list(range(len(rows)))
                self.symbols[_tokens(f"A_{{{upright(name)}}}")] = self._numbered(rows, 0)
                self.symbols[_tokens(f"b_{{{upright(name)}}}")] = self._numbered(rows, 1)
        for name, group in self.problem.rules.items():
            plain = [r for r in group.values() if not isinstance(r, EntryBounds)]
            ours = [row for row in plain if getattr(row, "expression", None) is not None]
            if any(str(k) in ("kept", "moved") for row in ours for k in row.expression.summands):
                rows = [
                    (self.program.cost(r.expression), float(np.max(r.bounds(self.of.m))))
                    for r in ours
                ]
                self.domains["i"] = list(range(len(rows)))
                self.symbols[_tokens(f"C_{{{upright(name)}}}")] = self._numbered(rows, 0)
                self.symbols[_tokens(f"b_{{{upright(name)}}}")] = self._numbered(rows, 1)

    def _numbered(self, rows: Any, part: int) -> Any:
        def look(below: Any, pairs: Any, _: Any) -> float:
            value = rows[below[0][1] if below else 0][part]
            return float(value if part else value[self.s(pairs), pairs[-1][1]])

        return look

    def _multipliers(self) -> None:
        """λ of each group, found among ``duals`` by the letters that it has."""
        for name, group in self.problem.rules.items():
            parts = [key.removeprefix(name).strip(".") for key in group if key != name]
            labels = {name} | {".".join([name, re.split(r"[\[|]", part)[0]]) for part in parts}
            for label in labels:

                def look(below: Any, pairs: Any, _: Any, label: str = label, name: str = name,
                         keys: Any = tuple(group)) -> float:  # fmt: skip
                    letters = dict(pairs)
                    key = label
                    inside = label != name
                    if "i" in letters:
                        key = keys[letters["i"]]
                    for w in ("w", "x", "w'", "x'"):
                        if w in letters:
                            key += f"[{letters[w]}]"
                    if "z" in letters:
                        z = self.of.source.z_names[letters["z"]]
                        key += f"|{z}" if inside else f".{z}"
                    if self.y == "u" and r"\hat x" in letters:
                        key += f".{letters[chr(92) + 'hat x']}"
                    if letters.get("k"):
                        key += f"[{self.names[letters['k']]}]"
                    outcome = np.asarray(self.solution.duals[key], float)
                    return float(outcome[letters[self.y]] if outcome.ndim else outcome)

                self.symbols[_tokens(rf"\lambda_{{{upright(label)}}}")] = look

    def _scores(self) -> None:
        """Posteriors, and what tells the scores of other measures."""
        for view_name, view in self.program.views.items():
            if view.kind == GIVEN_X:
                self.symbols[r"\varrho"] = self._given_x
                continue
            if view.kind not in ("W", "S"):
                letter = _tokens(f"w_{{{view.kind}}}")
                labels = self.of._attributes(tuple(view.kind[6:-1].split(", ")))
                self.parts[letter] = labels.tolist()
                self.domains[letter] = sorted(set(labels.tolist()))
                self.symbols[_tokens(f"J_{{{view.kind}}}")] = self.joint
            if view.informs and view_name in self.solution.posteriors:
                name = {"W": "r", "S": r"\sigma"}.get(view.kind, _tokens(f"r_{{{view.kind}}}"))
                self.symbols[name] = self._posterior
            elif not view.informs:
                self._measure(view_name, view)

    def _view(self, kind: str, letters: dict[str, Any], k: int, measure: Any = None) -> str:
        z = letters.get("z")
        for name, view in self.program.views.items():
            if view.kind != kind or (measure and view.measure.label != measure.label):
                continue
            if measure is None and not view.informs:
                continue
            ends = name.split(": ")[0]
            if z is not None and not ends.endswith(f"|{self.of.source.z_names[z]}"):
                continue
            if k and not ends.endswith(f"[{self.names[k]}]"):
                continue
            return name
        raise LookupError((kind, letters))

    def _posterior(self, below: Any, pairs: Any, value: Any) -> float:
        k = below[0][1] if below else 0
        ours, summary = dict(pairs), dict(value)
        attribute = next((letter for letter in ours if letter in self.parts), "")
        kind = "W"
        if attribute:
            kind = next(v.kind for v in self.program.views.values()
                        if _tokens(f"w_{{{v.kind}}}") == attribute)  # fmt: skip
        elif set(ours) - {"w"} and not self.of.notation.same:
            kind = "S"
        view = self._view(kind, summary, k)
        table = self.solution.posteriors[view]
        if kind != "S":
            return float(table[next(iter(ours.values())), summary[self.y]])
        letters = {**ours, **({"z": summary["z"]} if "z" in summary else {})}
        rows = self.program.views[view].labels
        inputs = tuple(letters[i] for i in self.of.encoder_inputs)
        if inputs not in self.rows:
            return 0.0
        label = int(rows[:, self.rows[inputs]].max())
        return float(table[label, summary[self.y]]) if label >= 0 else 0.0

    def _given_x(self, below: Any, pairs: Any, value: Any) -> float:
        """Return r(w | x, x̂) of the x that is known: 1 where that leaves but one w."""
        ((_, w),), letters = pairs, dict(value)
        k, z = below[0][1] if below else 0, letters.get("z")
        masses = self.laws[k][:, letters["x"], 0 if z is None else z]
        there = np.flatnonzero(masses)
        if len(there) < 2:
            return 1.0
        known_by = "W" if z is None else f"W|{self.of.source.z_names[z]}"
        name = f"{known_by}|X = {self.of.source.x[letters['x']]}" + (
            f"[{self.names[k]}]" if k else ""
        )
        label = there.tolist().index(w)
        return float(self.solution.posteriors[name][label, letters[self.y]])

    def _measure(self, view_name: str, view: Any) -> None:
        measure = view.measure
        table = np.asarray(self.dual.scores[view_name], float)
        pi = self.program.reference(view_name)
        symbol = _tokens(measure.symbol)
        inside = measure.inside(table, pi)

        information = {"chi-squared": np.maximum(table, -2.0),
                "hockey-stick": np.clip(table, 0.0, 1.0),
                "squared Hellinger": np.minimum(table, 1.0 - 2.0**-50)}  # fmt: skip
        kind = measure.kind
        if isinstance(measure, FInformation):
            information[kind] = np.exp(table)
        results = {"s": inside * self.program.unit(view_name)}
        if kind in information:
            results["t"] = information[kind]
        if kind == "transport":
            far = np.asarray(measure._floats, float)
            results |= {"f": table, "g": (far[:, :, None] - table[:, None, :]).min(axis=0)}
            self.symbols[r"\rho"] = lambda b, a, g: float(far[a[0][1], a[1][1]])
        if kind == "gain":
            weights = np.maximum(table, 0.0)
            weights = np.where(weights.any(axis=0), weights, 1.0)
            results[r"\eta"] = weights / weights.sum(axis=0)
            gains = np.asarray(measure._table, float)
            self.domains["g"] = list(range(len(gains)))
            self.symbols["G"] = lambda b, a, g: float(gains[a[0][1], a[1][1]])
        for letter, values in results.items():
            self.scores[letter, view_name] = values

            def look(below: Any, left: Any, recorded: Any, letter: str = letter) -> float:
                k = below[0][1] if below else 0
                ours = self._view(view.kind, dict(recorded), k, measure)
                return float(self.scores[letter, ours][left[0][1], dict(recorded)[self.y]])

            self.symbols[f"{letter}_{{{symbol}}}"] = look


def _mu(name: str) -> str:
    text = rf"\text{{{name}}}" if name in ("floor", "cap") else upright(name)
    return _tokens(rf"\mu_{{{text}}}")
