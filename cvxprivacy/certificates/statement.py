"""What a proof is a proof of, in plain words.

A document that verifies proves *its own* program, which need not be the program that a reader has
in mind.  :func:`stated` says which one it is, from the document's data alone.  The names in a
document may lie: they stand in quotes, as labels, and beside them stands what the data say.
Needs the standard library only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby
from typing import Any

__all__ = ["MALFORMED", "exact", "headline", "quoted", "ranged", "reported", "stated", "written"]

MALFORMED = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(ArithmeticError, MemoryError, RecursionError),
)

_FRACTION = re.compile(r"-?\d{1,4000}(/\d{1,4000})?")
_LONGEST = 60  # characters of a name that are printed
_MOST = 20  # views that are described
Table = list[list[Any]]


# ---- numbers and names -------------------------------------------------------------------


def exact(value: Any) -> Fraction:
    """Return the very number that a document holds: a float is a dyadic, a text a fraction."""
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise ValueError(f"{value[:20]!r} is no number")
    return Fraction(value)


def written(value: Any, digits: int = 12) -> str:
    """Return a number in print: a decimal or a fraction is meant exactly, ≈ tells the others."""
    number = exact(value)
    try:
        near = float(number)
    except OverflowError:
        near = math.inf
    if number == near:
        if number.denominator == 1 and abs(number) < 10**15:
            return str(number)
        short = min(repr(near), f"{near:.12g}", key=len)
        if float(short) == near:
            return short
    elif len(str(number)) <= 16:
        return str(number)
    with localcontext(prec=digits):
        return f"≈ {(Decimal(number.numerator) / number.denominator).normalize():g}"


def ranged(values: Iterable[Any], digits: int = 12) -> str:
    """Return the least and the greatest of some numbers in print."""
    low, high = (written(end, digits) for end in ends(values))
    return low if low == high else f"{low} to {high}"


def ends(values: Iterable[Any]) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest of some numbers."""
    found = set(values)
    numbers = [
        value for value in found if not isinstance(value, str)
    ]  # floats are compared as such
    some = [min(numbers), max(numbers)] if numbers else []
    exactly = [exact(value) for value in (*some, *(v for v in found if isinstance(v, str)))]
    return min(exactly), max(exactly)


def quoted(name: Any) -> str:
    """Return a name as a label, without anything that a terminal would obey."""
    text = str(name)
    cut = text[:_LONGEST]
    shown = "".join(
        c if c.isprintable() and c not in '"\\' else c.encode("unicode_escape").decode()
        for c in cut
    ).replace('"', '\\"')
    return f'"{shown}"' + (f"… ({len(text):,} characters)" if cut != text else "")


def _names(names: Sequence[Any]) -> str:
    """Return labels in a list, the first three and the last if there are many."""
    shown = [quoted(name) for name in names]
    if len(shown) <= 4:
        return ", ".join(shown)
    return f"{', '.join(shown[:3])}, … {shown[-1]}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _radius(radius: Any) -> str:
    return f" (± {float(exact(radius)):.2g})" if radius and exact(radius) else ""


# ---- a document --------------------------------------------------------------------------


def headline(document: Mapping[str, Any]) -> str:
    """Return status, enclosure and unit of a verified document, in one line."""
    claim = document["claim"]
    if claim["status"] == "infeasible":
        return "infeasible"
    return f"{claim['status']}, value in [{claim['lower']}, {claim['upper']}] ({_unit(document)})"


def stated(document: Mapping[str, Any]) -> list[str]:
    """Return what a verified document proves, line by line.

    Parameters
    ----------
    document : mapping
        A proof that :func:`cvxprivacy.certificates.verify.disagreements` has nothing against.
    """
    try:
        program, claim = document["program"], document["claim"]
        words = {"covariance": _covariance, "hamming": _hamming}.get(program["kind"], _channel)
        lines = [f"proved: {_proved(claim)}", *words(program, claim["status"] == "infeasible")]
    except MALFORMED as error:
        said = f"{type(error).__name__}: {error}"[:200]
        return [f"WHAT IS PROVED CANNOT BE TOLD, so rely on nothing here ({quoted(said)})"]
    try:
        lines += _table(document.get("table"))
    except MALFORMED:
        lines.append("table: the record of how it was counted is malformed")
    return [*lines, "names in quotes are the file's own labels; all else is read from its data"]


def reported(path: str, document: Mapping[str, Any], encoding: str | None = None) -> str:
    """Return all that is to be said of a verified document, for a console of this encoding."""
    said = "\n  ".join([f"{path}: verified, {headline(document)}", *stated(document)])
    return said.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def _proved(claim: Mapping[str, Any]) -> str:
    """Return the status in words."""
    lower, upper = float(claim["lower"]), float(claim["upper"])
    if claim["status"] == "infeasible":
        return "no release satisfies these rows"
    if claim["status"] == "certified":
        return "the least value that any release attains lies in this interval"
    if claim["status"] == "loose":
        return "the least value that any release attains lies in this interval, which is wide"
    if math.isfinite(upper):
        return "some release attains the upper end; nothing about the least value from below"
    if math.isfinite(lower):
        return "no release attains less than the lower end; not that there is any release"
    return "nothing about the least value"


def _unit(document: Mapping[str, Any]) -> str:
    """Return what a value of the objective is measured in."""
    program = document["program"]
    if "objective" not in program:
        return str(program["units"])
    informed = any(map(_positive, dict(program["objective"]["weights"]).values()))
    costly = program["objective"]["cost"] is not None
    if informed and costly:
        return "units of the objective"
    if informed:
        return str(program["units"])
    return "units of distortion" if costly else "of an empty objective"


def _positive(weight: Any) -> bool:
    return any(exact(w) > 0 for w in (weight if isinstance(weight, list) else [weight]))


def _minimised(text: str, matters: bool, unit: str, infeasible: bool) -> str:
    """Say what is minimised, and loudly if nothing is."""
    if text and matters:
        return f"minimised: {text}, in {unit}"
    empty = f"{text} is the same for every release" if text else "the objective is empty"
    proved = "" if infeasible else ", so this proves only that a release exists"
    return f"minimised: NOTHING: {empty}{proved}"


def _weighed(weights: Mapping[str, Any], sizes: Mapping[str, int], what: str) -> list[str]:
    """Return the informations of a term, those of one weight together."""
    found = []
    pairs = sorted(dict(weights).items(), key=lambda pair: _weight(pair[1]))
    for weight, group in groupby(pairs, key=lambda pair: _weight(pair[1])):
        names = [name for name, _ in group]
        size = sorted({sizes[name] for name in names})
        count = _many(size[0], what) if len(size) == 1 else f"{size[0]:,} to {size[-1]:,} {what}s"
        if len(names) == 1:
            found.append(f"{weight} × information about {quoted(names[0])} ({count})")
        else:
            each = f"each of {_names(names)}"
            found.append(f"{weight} × information about {each} ({len(names):,} views of {count})")
    return found


def _weight(weight: Any) -> str:
    return f"({ranged(weight)})" if isinstance(weight, list) else written(weight)


def _constant(constant: Sequence[Any]) -> list[str]:
    value, radius = constant
    if not exact(value) and not exact(radius):
        return []
    return [f"the constant {written(value)}{_radius(radius)}"]


def _together(rows: Iterable[tuple[str, str, str, list[Any]]]) -> list[str]:
    """Return rows (name, left, right, bounds), those alike but for their bounds in one line."""
    lines = []
    for (left, right), group in groupby(rows, key=lambda row: row[1:3]):
        members = list(group)
        if len(members) < 3:
            members_of = [(quoted(name), bounds) for name, _, _, bounds in members]
        else:
            whole = f"each of {_names([row[0] for row in members])} ({len(members):,} rows)"
            members_of = [(whole, [bound for row in members for bound in row[3]])]
        for name, bounds in members_of:
            lines.append(f"subject to {name}: {left} {right.format(ranged(bounds))}")
    return lines


# ---- channel programs --------------------------------------------------------------------


def _channel(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    words, objective = _Channel(program), program["objective"]
    rows, auxiliaries = program["rows"], program["auxiliaries"]
    held = [
        *_together((name, *words.row(row)) for name, row in rows.items()),
        *(f"subject to {quoted(k)}: {words.auxiliary(aux)}" for k, aux in auxiliaries.items()),
        *words.entry_bounds(),
    ]
    masses = [exact(atom) for atoms in words.law for atom in atoms if atom]
    unit = _unit({"program": program})
    return [
        _minimised(words.term(objective), words.matters(objective), unit, infeasible),
        f"over: all channels from {_many(words.n, 'letter')} to {_many(words.m, 'output')}; the "
        f"law has {_many(len(masses), 'atom')}, of mass {written(sum(masses))} in all",
        *(held or ["subject to: nothing, every channel is allowed"]),
        *words.views([view for view in program["views"] if view in _used(program)]),
    ]


class _Channel:
    """The words of a channel program."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program, self.law, self.units = program, program["law"], program["units"]
        self.n, self.m = len(self.law[0]), int(program["outputs"])
        self.sizes = {}
        for name, view in program["views"].items():
            labels = [*view["labels"], *(view["reference"] or ())]
            self.sizes[name] = 1 + max(label for row in labels for label in row)

    def term(self, term: Mapping[str, Any]) -> str:
        parts = _weighed(term["weights"], self.sizes, "value")
        costs = self.costs(term)
        if costs:
            free = self.free(term["cost"]) if len(costs) > 1 else ""
            off = _radius(term["cost_radius"])
            parts.append(f"expected cost of {ranged(costs, 6)}{off}{free}")
        return " + ".join([*parts, *_constant(term["constant"])])

    def matters(self, term: Mapping[str, Any]) -> bool:
        """Tell whether a term can depend on what is released."""
        informed = (self.sizes[v] > 1 and _positive(w) for v, w in dict(term["weights"]).items())
        return any(informed) or any(len(set(row)) > 1 for row in self._letters(term["cost"]))

    def _letters(self, cost: Table | None) -> Iterable[list[Fraction]]:
        """Yield what each output costs a letter, all its atoms together."""
        if cost is None:
            return
        layers = cost if isinstance(cost[0][0], list) else [cost]
        for s in range(self.n):
            masses = [exact(atoms[s]) for atoms in self.law] if layers[1:] else [Fraction(1)]
            rows = [[p * exact(c) for c in z[s]] for p, z in zip(masses, layers, strict=True) if p]
            yield [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]

    def costs(self, term: Mapping[str, Any]) -> set[Fraction]:
        """Return the least and the greatest cost of moves that have mass; none without a cost."""
        if term["cost"] is None:
            return set()
        return set(ends(entry for _, row in self._costs(term["cost"]) for entry in row))

    def _costs(self, cost: Table) -> Iterable[tuple[int, list[Any]]]:
        """Yield each letter with the costs of its moves, for every atom that has mass."""
        layers = cost if isinstance(cost[0][0], list) else [cost]
        for i, layer in enumerate(layers):
            for s, row in enumerate(layer):
                if len(layers) == 1 or self.law[i][s] > 0:
                    yield s, row

    def free(self, cost: Table) -> str:
        """Say which moves cost nothing: a permuted cost has the same range."""
        rows = list(self._costs(cost))
        texts = {c for _, row in rows for c in row if isinstance(c, str)}
        zeros = {0, *(c for c in texts if not exact(c))}
        paid = {(s, y) for s, row in rows for y, entry in enumerate(row) if entry not in zeros}
        places = {(s, y) for s in range(self.n) for y in range(self.m)} - paid
        return f" (0 for {self.among(places)})" if places else ""

    def among(self, places: set[tuple[int, int]]) -> str:
        """Say how many of all moves these are, and how many lead from a letter to its number."""
        said = f"{len(places):,} of {_many(self.n * self.m, 'move')}"
        if self.n != self.m:
            return said
        own = sum(s == y for s, y in places)
        if own == len(places) == self.n:
            return f"{said}: each letter i to output i"
        return f"{said}, {own:,} of them from a letter i to output i"

    def row(self, row: Mapping[str, Any]) -> tuple[str, str, list[Any]]:
        """Return left side, right side around the bound, and bounds."""
        term, bounds = row["term"], row["bound"]
        bounds = bounds if isinstance(bounds, list) else [bounds]
        weighed, costs = _weighed(term["weights"], self.sizes, "value"), self.costs(term)
        off, sense = _radius(row["radius"]), {"<=": "<=", "==": "="}[row["sense"]]
        unit = f" {self.units}" if weighed and len(costs) < 2 else ""
        if not row["per_output"]:
            unit = "" if costs else unit
            return self.term(term) or "nothing", f"{sense} {{}}{off}{unit}", bounds
        each = f"for each of the {_many(self.m, 'output')}, "
        if len(costs) != 1:
            return each + (self.term(term) or "nothing"), f"{sense} {{}}{off}{unit}", bounds
        (cost,), radius = costs, _radius(term["cost_radius"])  # C q(y), for each output y
        if not weighed:
            left = f"{each}{written(cost)}{radius} × its probability"
            return left, f"{sense} {{}}{off}", bounds
        share = f"{sense} {written(-cost)}{radius}{unit} × its probability"
        more = f" + {{}}{off}{unit}" if any(map(exact, bounds)) or off else ""
        return each + " + ".join(weighed), share + more, bounds

    def auxiliary(self, auxiliary: Mapping[str, Any]) -> str:
        value, radius = auxiliary["bound"]
        bound = f"{written(value)}{_radius(radius)}"
        if auxiliary["kind"] == "ratio":
            return f"p(y | s) <= c p(y | s') for all letters s, s' and outputs y, c = {bound}"
        return f"the sum over outputs y of the greatest p(y | s) of any letter s <= {bound}"

    def entry_bounds(self) -> list[str]:
        """Say which single moves are bounded."""
        low = self.program["lower"] or [[0] * self.m] * self.n
        high = self.program["upper"] or [[1] * self.m] * self.n
        kinds: dict[str, dict[tuple[int, int], Any]] = {}
        for s, bounds in enumerate(zip(low, high, strict=True)):
            for y, (a, b) in enumerate(zip(*bounds, strict=True)):
                least, most = exact(a), exact(b)
                if not most:
                    kinds.setdefault("forbidden", {})[s, y] = b
                elif least == most:
                    kinds.setdefault("fixed at", {})[s, y] = a
                else:
                    if least > 0:
                        kinds.setdefault("with a floor of", {})[s, y] = a
                    if most < 1:
                        kinds.setdefault("with a cap of", {})[s, y] = b
        return [
            f"subject to moves {kind}{'' if kind == 'forbidden' else f' {ranged(places.values())}'}"
            f": {self.among(set(places))}"
            for kind, places in kinds.items()
        ]

    # ---- views ---------------------------------------------------------------------------

    def views(self, names: Sequence[str]) -> list[str]:
        """Say what each view sees, and what the letters themselves tell about it."""
        lines = [f"where {quoted(name)} is {self.view(name)}" for name in names[:_MOST]]
        if len(names) > _MOST:
            lines.append(f"where {_many(len(names) - _MOST, 'more view')} are not described here")
        return lines

    def view(self, name: str) -> str:
        view = self.program["views"][name]
        labels, reference = view["labels"], view["reference"] or view["labels"]
        top, share = max(atom for atoms in self.law for atom in atoms), [0.0, 0.0]
        joint: dict[tuple[int, int], float] = {}
        prior = [0.0] * self.sizes[name]
        for rows in zip(labels, reference, self.law, strict=True):
            for s, (v, r, atom) in enumerate(zip(*rows, strict=True)):
                mass = atom / top
                share[v >= 0] += mass
                if mass and v >= 0:
                    joint[v, s] = joint.get((v, s), 0.0) + mass
                if mass and r >= 0:
                    prior[r] += mass
        told = _information(joint, prior) / sum(share)
        told = told / math.log(2) if self.units == "bits" else told
        part = f", known of {share[1] / sum(share):.4g} of the mass" if share[0] else ""
        if len(joint) == len({s for _, s in joint}) == len({v for v, _ in joint}):
            return f"the letter itself{part}: {told:.6g} {self.units}"
        said = f"a label with {_many(len(prior), 'value')}{part}"
        return f"{said}; the letters themselves tell {told:.6g} {self.units} about it"


def _information(joint: Mapping[tuple[int, int], float], prior: Sequence[float]) -> float:
    """Return what a release of the very letters tells, in nats: no other one tells more."""
    own: dict[int, float] = {}
    for (_, s), mass in joint.items():
        own[s] = own.get(s, 0.0) + mass
    if any(not prior[v] for v, _ in joint):
        return math.inf  # a reference less than any float
    whole, entries = sum(prior), joint.items()
    found = (mass * math.log(mass / own[s] / (prior[v] / whole)) for (v, s), mass in entries)
    return max(math.fsum(found), 0.0)


def _used(program: Mapping[str, Any]) -> set[str]:
    """Return the views of which the objective or a row has some information."""
    terms = [program["objective"], *(row["term"] for row in program["rows"].values())]
    return {view for term in terms for view in term["weights"]}


# ---- covariance programs, and rate under Hamming distortion --------------------------------


def _covariance(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    gamma, encoded, given = (program[k] for k in ("covariance", "encoded", "given"))
    views, units, objective = program["views"], program["units"], program["objective"]
    sizes = {name: len(view["of"]) for name, view in views.items()}

    def words(term: Mapping[str, Any]) -> str:
        parts = _weighed(term["weights"], sizes, "variable")
        if term["cost"] is not None:
            parts.append(f"trace of C Sigma (C: {_matrix(term['cost'])})")
        return " + ".join([*parts, *_constant(term["constant"])])

    rows = []
    for name, row in program["rows"].items():
        unit = f" {units}" if row["term"]["weights"] and row["term"]["cost"] is None else ""
        right = f"{row['sense']} {{}}{_radius(row['radius'])}{unit}"
        rows.append((name, words(row["term"]) or "nothing", right, [row["bound"]]))
    costs = [] if objective["cost"] is None else [c for row in objective["cost"] for c in row]
    matters = any(map(_positive, objective["weights"].values())) or any(map(exact, costs))
    unit = _unit({"program": program})
    lines = [
        _minimised(words(objective), matters, unit, infeasible),
        f"over: all error covariances 0 <= Sigma <= the covariance of {_variables(encoded)}"
        + (f" given {_variables(given)}" if given else ""),
        f"law: {_many(len(gamma), 'jointly Gaussian variable')}, of variance "
        f"{ranged(gamma[i][i] for i in range(len(gamma)))}",
        *_together(rows),
    ]
    for name, cap in program["caps"].items():
        lines.append(f"subject to {quoted(name)}: Sigma <= M (M: {_matrix(cap)})")
    for name in [name for name in views if name in _used(program)][:_MOST]:
        beyond = views[name]["reference"] == "conditional"
        also = f", {'beyond' if beyond else 'counting'} what those given tell" if given else ""
        lines.append(f"where {quoted(name)} is {_variables(views[name]['of'])}{also}")
    return lines


def _variables(places: Sequence[int]) -> str:
    if len(places) > 6:
        return f"{len(places):,} variables"
    return f"variable{'s' * (len(places) != 1)} {', '.join(map(str, places))}"


def _matrix(entries: Table) -> str:
    """Say what a symmetric matrix is like."""
    size, own = len(entries), [row[i] for i, row in enumerate(entries)]
    off = {x for i, row in enumerate(entries) for j, x in enumerate(row) if i != j}
    if any(map(exact, off)):
        return f"{size} × {size}, of entries {ranged([*own, *off], 6)}"
    if len(set(map(exact, own))) > 1:
        return f"diagonal, of entries {ranged(own, 6)}"
    scale = written(own[0])
    return {"0": "zero", "1": "identity"}.get(scale, f"{scale} × identity")


def _hamming(program: Mapping[str, Any], infeasible: bool) -> list[str]:
    letters = _many(sum(mass > 0 for mass in program["law"]), "letter")
    return [
        f"minimised: rate I(X; X^) of {letters}, in {program['units']}",
        "over: all channels from X to X^, the same letters",
        f"subject to: Pr(X != X^) <= {written(program['budget'])}",
    ]


# ---- the table -----------------------------------------------------------------------------


def _table(table: Any) -> list[str]:
    """Say how the law is said to have been counted."""
    if table is None:
        return []
    records = table["records"]
    parts = [f"{records:,} records" if isinstance(records, int) else "unknown records"]
    for role in ("sensitive", "key", "side"):
        parts += [f"{role} {', '.join(map(quoted, table[role]))}"] if table[role] else []
    parts += [] if table["weights"] is None else [f"weights {quoted(table['weights'])}"]
    for name, edges in table["bins"]:
        ends = f"{float(edges[0]):g} to {float(edges[-1]):g}"
        parts.append(f"{quoted(name)} in {_many(len(edges) - 1, 'interval')} from {ends}")
    if table["missing"] != "refuse":
        parts.append(f"missing values {quoted(table['missing'])}")
    known = {"x": "the key", "wx": "sensitive and key"}
    sees = known.get(table["encoder"], quoted(table["encoder"]))
    return [f"table, as recorded: {'; '.join(parts)}; the randomisation sees {sees}"]
