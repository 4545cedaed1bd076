"""Documents changed anywhere, then sealed anew with the best claim that the verifier allows.

The attack is on the proof, not on the seal.  What still verifies must be true of the program that
the changed document holds.  Truth comes from the second checker; from feasible points of the
changed program, whose exact values no lower end may pass; and from closed forms where a change
keeps them.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import cvxprivacy as cpv
from cvxprivacy_verifier import verify
from tests import instances, second_checker
from tests.claims import claimed
from tests.formulations.water_truth import contains, value_of
from tests.instances import Chance, Document, documents, solved
from tests.primals import tabulated
from tests.second_checker import Refused, covariance
from tests.tally import Tally

INF = math.inf
Path = tuple[Any, ...]

# what the verifier takes for "not a certificate"
REFUSED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


# ---- documents to change -----------------------------------------------------------------


@cache
def pool(seed: int, count: int) -> list[tuple[str, Document]]:
    """Return honest documents: of every formulation, and some whose minimum is known."""
    outcome = [(name, json.loads(json.dumps(d.document()))) for name, d in honest_proofs()]
    outcome += [("parts", json.loads(json.dumps(d.document()))) for d in by_parts()]
    outcome += hamming_documents()
    return outcome + list(documents(seed, count))


def honest_proofs() -> Iterator[tuple[str, Any]]:
    bit = cpv.DiscreteSource([[0.5, 0.0], [0.0, 0.5]])
    for units in ("bits", "nats"):
        problem = cpv.PrivacyDistortion(bit, cpv.hamming(2), budget=0.125, units=units)
        yield "binary", solved(problem)
        problem = cpv.ReverseWaterFilling([1.0], 0.25, units=units)
        yield "scalar", instances.as_covariance(problem)
        yield "water", solved(problem)
        yield "water", solved(cpv.ReverseWaterFilling([0.5, 2.0], 0.75, units=units))
        yield "water", solved(cpv.BoxWaterFilling([1, 2, 4], [1, 1.5, 1], 1, units=units))


def by_parts() -> Iterator[Any]:
    """Yield proofs of programs whose costs are sums of small tables."""
    rng = np.random.default_rng(8)
    for index in range(6):
        source = cpv.DiscreteSource(rng.dirichlet(np.ones(8)).reshape(2, 4))
        attributes = {"a": cpv.ordinal(2), "b": cpv.hamming(2)}
        cells = [(a, b) for a in range(2) for b in range(2)]
        measure: Any = cpv.per_attribute(attributes, cells, weights={"a": Fraction(1, 3)})
        measure = cpv.Distortion(measure.cost)
        if index % 3 == 1:
            yield solved(cpv.MinimumDistortion(source, measure, [cpv.LeakageCap(0.01)]))
        else:
            measure = measure if index % 3 else instances.by_parts(rng, 4, 3)
            yield solved(cpv.PrivacyDistortion(source, measure, price=0.1))


def hamming_documents() -> list[tuple[str, Document]]:
    """Return documents of water-filling, if the verifier knows their kind."""
    outcome = []
    for law, budget, units in (
        ([0.5, 0.25, 0.125, 0.125], 0.3, "bits"),
        ([0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02], 0.2, "nats"),
        ([0.5, 0.5], 0.125, "bits"),
    ):
        certificate = solved(cpv.HammingWaterFilling(law, budget, units=units))
        try:
            outcome.append(("hamming", json.loads(json.dumps(certificate.document()))))
        except cpv.InputError:  # a closed form without a proof file
            return []
    return outcome


# ---- changes -----------------------------------------------------------------------------


def paths(node: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path to everything below a node."""
    if path:
        yield path
    if isinstance(node, dict | list):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            yield from paths(node[key], (*path, key))


def get(node: Any, path: Path) -> Any:
    for key in path:
        node = node[key]
    return node


def put(node: Any, path: Path, value: Any) -> None:
    get(node, path[:-1])[path[-1]] = value


STRANGE: tuple[Any, ...] = (
    *(math.nan, INF, -INF, 1e308, -1e308, 5e-324, 0.0, -0.0, 1.0, -1.0, 0, 1, -1, 2, 10**400),
    *("1/3", "-1/3", "1/0", "0/1", "0.1", "1e-3", "nan", "inf", "-inf", "", " 1", "1_0", "١"),
    *(None, True, False, [], {}, [1.0], [[0.0]]),
)


def as_fraction(value: Any) -> Fraction | None:
    try:
        return Fraction(value)
    except (ValueError, TypeError, ArithmeticError):
        return None


def moved(rng: Chance, value: Any) -> Any:
    """Return another number: by ulps, by a factor, of another sign, or written otherwise."""
    number = as_fraction(value)
    if number is None or rng.random() < 0.08:
        return STRANGE[int(rng.integers(len(STRANGE)))]
    move = int(rng.integers(9))
    if move == 0 and isinstance(value, float):
        for _ in range(int(rng.integers(1, 4))):
            value = math.nextafter(value, INF * rng.choice([-1.0, 1.0]))
        return value
    if move == 1:
        number *= Fraction(float(1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-16, -1)))
    elif move == 2:
        number += Fraction(float(rng.choice([-1, 1]) * 10 ** rng.uniform(-18, 0)))
    elif move == 3:
        number = -number
    elif move == 4:
        number *= Fraction(float(rng.choice([2.0, 0.5, 10.0, 1e-3, 1e3, 1e-9, 1e9, 1e30])))
    elif move == 5:  # a fraction next to no float
        number += Fraction(int(rng.integers(-3, 4)), 3 * 10 ** int(rng.integers(1, 40)))
        return str(number)
    elif move == 6:
        return str(number)
    elif move == 7:
        return int(number)
    if type(value) is int and rng.random() < 0.7:
        return int(number) + int(rng.choice([0, 1, -1]))
    if isinstance(value, str):
        return str(number)
    try:
        return float(number)
    except OverflowError:
        return 0.0


def number(rng: Chance, document: Document) -> str:
    """Move a number anywhere."""
    part = str(rng.choice(["program", "program", "dual", "primal"]))
    outcome = [p for p in paths(document[part]) if as_fraction(get(document[part], p)) is not None]
    if not outcome:
        return ""
    path = outcome[int(rng.integers(len(outcome)))]
    value = moved(rng, get(document[part], path))
    put(document[part], path, value)
    return f"{part}/{'/'.join(map(str, path))} = {str(value)[:40]}"


def anything(rng: Chance, document: Document) -> str:
    """Replace anything by something strange, or by another part of the document."""
    outcome = [p for p in paths(document) if p[0] not in ("sha256", "claim", "schema")]
    path = outcome[int(rng.integers(len(outcome)))]
    if rng.random() < 0.5:
        value = STRANGE[int(rng.integers(len(STRANGE)))]
        put(document, path, copy.deepcopy(value))
        return f"{path} = {str(value)[:30]}"
    other = outcome[int(rng.integers(len(outcome)))]
    put(document, path, copy.deepcopy(get(document, other)))
    return f"{path} = {other}"


def order(rng: Chance, document: Document) -> str:
    """Permute, reverse, shorten, lengthen, transpose or empty a list."""
    parts = [p for p in ("program", "dual", "primal") if isinstance(document[p], dict)]
    outcome = [(p, *q) for p in parts for q in paths(document[p])]
    lists = [p for p in outcome if isinstance(get(document, p), list) and get(document, p)]
    if not lists:
        return ""
    path = lists[int(rng.integers(len(lists)))]
    old = get(document, path)
    move = int(rng.integers(7))
    new = [old[i] for i in rng.permutation(len(old))] if move < 3 else old[::-1]
    if move == 4:
        new = old[:-1]
    elif move == 5:
        new = old + old[-1:]
    elif move == 6 and isinstance(old[0], list):
        new = [list(column) for column in zip(*old, strict=False)]
    put(document, path, new)
    return f"{path}: move {move}"


def names(rng: Chance, document: Document) -> str:
    """Drop, rename, add or exchange keys."""
    parts = [p for p in ("program", "dual", "primal") if isinstance(document[p], dict)]
    outcome = [(p, *q) for p in parts for q in ((), *paths(document[p]))]
    dicts = [p for p in outcome if isinstance(get(document, p), dict) and get(document, p)]
    path = dicts[int(rng.integers(len(dicts)))]
    here = get(document, path)
    keys = list(here)
    one, other = (keys[i] for i in rng.integers(len(keys), size=2))
    move = int(rng.integers(5))
    if move == 0:
        del here[one]
    elif move == 1:
        here[str(rng.choice(["", "value", "W", "budget", "x"]))] = here.pop(one)
    elif move == 2:
        here[str(rng.choice(["", "value", "term", "extra"]))] = copy.deepcopy(here[one])
    elif move == 3:
        here[one], here[other] = here[other], here[one]
    else:
        here.clear()
    return f"{path}: {one}, {other}, move {move}"


def meaning(rng: Chance, document: Document) -> str:
    """Change what a part of the program says."""
    program = document["program"]
    rows = list(program.get("rows", {}).values())
    terms = [program[k] for k in ("objective",) if k in program]
    terms += [row["term"] for row in rows if isinstance(row, dict)]
    some = rows[int(rng.integers(len(rows)))] if rows else {}
    term = terms[int(rng.integers(len(terms)))] if terms else {}
    radius = float(10 ** rng.uniform(-18, 0)) * rng.choice([1, 1, -1])
    changes: list[Callable[[], Any]] = [
        lambda: some.update(radius=radius),
        lambda: term.update(cost_radius=radius),
        lambda: term["constant"].__setitem__(1, radius),
        lambda: term["constant"].__setitem__(0, float(rng.normal())),
        lambda: some.update(sense=str(rng.choice(["<=", "==", ">="]))),
        lambda: some.update(per_output=not some["per_output"]),
        lambda: some.update(bound=[some["bound"]] * int(rng.integers(1, 4))),
        lambda: term.update(cost=None),
        lambda: term.update(cost=tabled(term["cost"])),
        lambda: term.update(cost={"parts": [parted(term["cost"])]}),
        lambda: term["cost"]["parts"].append(copy.deepcopy(term["cost"]["parts"][0])),
        lambda: term["cost"]["parts"].pop(),
        lambda: turned(rng, term["cost"]["parts"][0]),
        lambda: lessened(rng, document["primal"]),
        lambda: split(rng, document["primal"], program["outputs"]),
        lambda: term.update(weights={}),
        lambda: term["weights"].update({str(v): 1.0 for v in program["views"]}),
        lambda: term.update(weights={v: [float(x) for x in rng.random(program["outputs"])]
                                     for v in term["weights"]}),
        lambda: program.update(units={"bits": "nats", "nats": "bits"}[program["units"]]),
        lambda: program.update(kind=str(rng.choice(["channel", "covariance", "hamming"]))),
        lambda: document.update(accuracy=str(rng.choice(["default", "high", "none"]))),
        lambda: document["dual"].update(objective=int(rng.integers(2))),
        lambda: document.update(primal=None),
        lambda: document.update(dual=None),
        lambda: program["rows"].update({"": copy.deepcopy(some)}),
        lambda: program.update(rows={}),
        lambda: program["terms"].update(value=copy.deepcopy(term)),
        lambda: program.update(outputs=program["outputs"] + int(rng.choice([1, -1]))),
        lambda: program.update(lower=None),
        lambda: program.update(upper=None),
        lambda: program["auxiliaries"].update(a={"kind": str(rng.choice(["ratio", "maximum"])),
                                                 "bound": [float(rng.uniform(0.5, 3)), 0.0]}),
        lambda: program["auxiliaries"].update(e={
            "kind": "excess", "bound": [float(rng.uniform(0.01, 0.5)), 0.0],
            "share": rng.choice([0.5, 1.0, -1.0], len(program["law"][0])).tolist(),
            "levels": rng.uniform(0, 1, program["outputs"]).tolist(),
        }),
        lambda: program.update(given=program["encoded"][:1]),
        lambda: program["caps"].update(more=copy.deepcopy(document["primal"]["middle"])),
        lambda: [v.update(reference=str(rng.choice(["marginal", "conditional"])))
                 for v in program["views"].values()],
        lambda: [v.update(reference=copy.deepcopy(v["labels"])) for v in program["views"].values()],
    ]  # fmt: skip
    chosen = int(rng.integers(len(changes)))
    try:
        changes[chosen]()
    except (LookupError, TypeError, AttributeError):  # there is no such part here
        return ""
    return f"meaning {chosen}"


def tabled(cost: Any) -> Any:
    """Return the table of a cost by parts, in text."""
    parts = cost["parts"]
    n, m = len(parts[0]["rows"]), len(parts[0]["columns"])
    return [
        [str(sum(Fraction(p["table"][p["rows"][s]][p["columns"][y]]) for p in parts))
         for y in range(m)]
        for s in range(n)
    ]  # fmt: skip


def parted(cost: Any) -> Any:
    """Return a table as the only part of a cost."""
    return {"table": cost, "rows": [*range(len(cost))], "columns": [*range(len(cost[0]))]}


def turned(rng: Chance, part: Any) -> None:
    """Move a place of a part, perhaps out of its table, or exchange rows and columns."""
    key = str(rng.choice(["rows", "columns"]))
    at = int(rng.integers(len(part[key])))
    strange: list[Any] = [part[key][at] + 1, part[key][at] - 1, -1, 99, True, 0.0, "0", None]
    if rng.random() < 0.7:
        part[key][at] = strange[int(rng.integers(len(strange)))]
    else:
        part["rows"], part["columns"] = part["columns"], part["rows"]


def lessened(rng: Chance, primal: Any) -> None:
    """Take an output from a letter; its first one has what is missing."""
    s = int(rng.integers(len(primal["outputs"])))
    y = int(rng.integers(len(primal["outputs"][s])))
    for key in ("outputs", "numerators"):
        del primal[key][s][y]
    primal["numerators"][s][0] += primal["denominator"] - sum(primal["numerators"][s])


def split(rng: Chance, primal: Any, m: int) -> None:
    """Give a letter one more output: with nothing, with less, or with a bit of its first one."""
    s, more = int(rng.integers(len(primal["outputs"]))), int(rng.choice([0, -1, 1]))
    pairs = list(zip(primal["outputs"][s], primal["numerators"][s], strict=True))
    pairs = [(pairs[0][0], pairs[0][1] - more), *pairs[1:], (int(rng.integers(m + 1)), more)]
    pairs = sorted(pairs) if rng.random() < 0.7 else pairs
    primal["outputs"][s], primal["numerators"][s] = (list(x) for x in zip(*pairs, strict=True))


def consistently(rng: Chance, document: Document) -> str:
    """Reorder letters or outputs in some of the places that have them, perhaps in all."""
    program = document["program"]
    if program.get("kind") != "channel":
        return ""
    n, m = len(program["law"][0]), program["outputs"]
    share = rng.choice([0.5, 1.0])
    axis = int(rng.integers(2))
    size = (n, m)[axis]
    swap = rng.permutation(size).tolist()

    def reordered(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            return {k: reordered(v, k) for k, v in node.items()}
        if not isinstance(node, list) or not node or rng.random() > share:
            return node
        if not isinstance(node[0], list):
            letters = key in ("law", "labels", "reference", "rows")
            if len(node) == size and letters == (axis == 0):
                return [node[i] for i in swap]
            return node
        inner = [reordered(x, key) for x in node]
        places = key in ("cost", "lower", "upper", "outputs", "numerators") and axis == 0
        if places and len(inner) == n and not isinstance(inner[0][0], list):
            inner = [inner[i] for i in swap]
        return inner

    document["program"], document["primal"] = map(reordered, (program, document["primal"]))
    if rng.random() < share:
        document["dual"] = reordered(document["dual"])
    return f"order of {('letters', 'outputs')[axis]}"


CHANGES = (number, number, number, number, anything, order, names, meaning, consistently)


def forged(rng: Chance, base: Document, value: list[tuple[str, Document]]) -> tuple[Document, str]:
    """Return a changed document, and what was changed."""
    document, text = copy.deepcopy(base), []
    if rng.random() < 0.08:  # parts of another document
        for part in rng.choice(["program", "dual", "primal"], int(rng.integers(1, 3))):
            other, where = value[int(rng.integers(len(value)))], str(part)
            document[where] = copy.deepcopy(other[1][where])
            text.append(f"{where} of {other[0]}")
    if rng.random() < 0.7 and not text:  # a number or two: what verifies most often
        changes = [number] * int(rng.integers(1, 3))
    else:
        changes = [CHANGES[i] for i in rng.integers(len(CHANGES), size=int(rng.integers(1, 4)))]
    for change in changes:
        try:
            text.append(change(rng, document))
        except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError):
            continue  # an earlier change took away what this one needs
    return document, "; ".join(filter(None, text))


# ---- truth -------------------------------------------------------------------------------


def plainly(document: Document) -> Document:
    """Return a document with its whole numbers and truth values written as such."""

    def spelled(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            return {k: spelled(v, str(k)) for k, v in node.items()}
        if key == "per_output":
            return bool(node)
        if isinstance(node, list):
            if key in ("root", "middle"):  # a text is a row of its letters
                node = [list(x) if isinstance(x, str) else x for x in node]
            return [spelled(x, "") if key in ("root", "middle") else spelled(x, key) for x in node]
        if key in ("numerators", "denominator", "outputs"):
            return int(node)
        if key == "cost_radius" and not node:
            return 0
        if isinstance(node, str) and re.fullmatch(r"-?\d+(/\d+)?", node):  # of any script
            top, _, below = node.partition("/")
            return f"{int(top)}/{int(below)}" if below else str(int(top))
        return int(node) if isinstance(node, bool) else node

    return spelled(document)


def falsehood(document: Document, base: Document) -> str:
    """Return what is false about a document that was verified; empty if nothing is found."""
    claim = document["claim"]
    low, high = float(claim["lower"]), float(claim["upper"])
    if (low, high) == (-INF, INF):
        return ""  # nothing is claimed
    try:
        program = second_checker.program_of(document)
        lower, upper, status, terms = second_checker.judged(document, program)
    except Refused as error:
        return f"the second checker refuses it: {error}"
    infeasible = claim["status"] == "infeasible"
    if infeasible and status != "infeasible":
        return f"{claim['status']} is claimed, {status} is found"
    if not infeasible and not (low <= upper and (lower <= high or status == "infeasible")):
        return f"[{low}, {high}] does not meet [{lower}, {upper}]"
    if claim["status"] == "certified":
        proved = verify.recompute(document)["tolerance"]
        ours = float(second_checker.tolerance(program, document["accuracy"], Fraction(high)))
        if high - low > 1.001 * (ours if verify.SCHEMA[-1] != "1" else max(ours, proved)):
            return f"certified, but {high - low} apart with a tolerance of {ours}"
    for value in values(program, document, base):
        if infeasible:
            return "infeasible is claimed, and a feasible point is found"
        if value < low:
            return f"a feasible point of value {float(value)} is below {low}"
    if document["program"]["kind"] == "water" and not infeasible:
        parts = (document["program"][key] for key in ("gains", "variances", "budget", "units"))
        truth, _ = value_of(*parts)
        if not contains(low, high, truth):
            return f"the minimum is {truth}, not in [{low}, {high}]"
    expected = closed(document, base)
    if expected is not None and not low - 1e-14 <= expected <= high + 1e-14:
        return f"the minimum is {expected}, not in [{low}, {high}]"
    return wrong_terms(document, terms)


def wrong_terms(document: Document, terms: dict[str, Any]) -> str:
    for name, ends in document["claim"]["terms"].items():
        (low, high), (least, most) = map(float, ends), terms[name]
        if not (low <= most and least <= high):
            return f"{name} in [{low}, {high}], not [{float(least)}, {float(most)}]"
    return ""


def values(program: Any, document: Document, base: Document) -> Iterator[Any]:
    """Yield the objective, rounded up, at feasible points of a program, some nearly optimal."""
    find = sigmas if isinstance(program, covariance.Covariance) else channels
    for point in find(program, document, base):
        yield program.attained(point)[1]


def feasible(program: Any, point: Any) -> bool:
    try:
        program.feasible(point)
    except Refused:
        return False
    return True


def channels(program: Any, document: Document, base: Document) -> Iterator[Any]:
    n, m = program.n, program.m
    rng = np.random.default_rng(0)
    anchors = [[[Fraction(int(y == z)) for y in range(m)] for _ in range(n)] for z in range(m)]
    anchors.append([[Fraction(1, m)] * m for _ in range(n)])
    random = rng.integers(1, 64, (n, m)).tolist()
    anchors.append([[Fraction(k, sum(row)) for k in row] for row in random])
    good = [a for a in anchors if feasible(program, a)]
    yield from good[:3]
    primal = base["primal"] or {}
    if "level" in primal:
        return
    outputs = primal.get("outputs", [])
    if len(outputs) != n or any(y >= m for row in outputs for y in row):
        return
    numerators = tabulated(primal, m)
    best = [[Fraction(k, primal["denominator"]) for k in row] for row in numerators]
    if feasible(program, best):
        yield best
        return
    for anchor in good[:2]:  # what was optimal before the change, mended as little as need be
        for exponent in (40, 20, 10, 5, 2):
            t = Fraction(1, 2**exponent)
            mixed = [[(1 - t) * a + t * b for a, b in zip(r, s, strict=True)]
                     for r, s in zip(best, anchor, strict=True)]  # fmt: skip
            if feasible(program, mixed):
                yield mixed
                break


def sigmas(program: Any, document: Document, base: Document) -> Iterator[Any]:
    outcome = []
    primal = base["primal"]
    if primal is not None and len(primal.get("root", [])) == program.n:
        root, middle = program.factored(primal, program.n)
        outcome.append(covariance.dot(covariance.dot(root, middle), covariance.transpose(root)))
    outcome.append(program.bound)
    if "root" in (primal or {}) and len(outcome) == 2:
        outcome.append(
            covariance.add(outcome[0], covariance.add(outcome[1], outcome[0], -1), Fraction(1, 2))
        )
    for sigma in outcome:
        for exponent in (0, 40, 20, 3, 1, -3, -10):
            t = 1 - Fraction(1, 2**exponent) if exponent > 0 else Fraction(2) ** exponent
            scaled = [[t * x for x in row] for row in sigma]
            if feasible(program, scaled):
                yield scaled
                break


def closed(document: Document, base: Document) -> float | None:
    """Return the minimum, where only a budget was changed in a program that has a formula."""
    program, other = copy.deepcopy(document["program"]), copy.deepcopy(base["program"])
    try:
        bound = Fraction(program["rows"]["budget"]["bound"])
        program["rows"]["budget"]["bound"] = other["rows"]["budget"]["bound"]
        size = {"bits": 1.0, "nats": math.log(2)}[program["units"]]
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
        return None
    if program != other or not 0 < bound < Fraction(1, 2):
        return None
    d = float(bound)
    plain = program["objective"].get("cost", 0) is None and list(program["rows"]) == ["budget"]
    if plain and other.get("law") == [[0.5, 0.0], [0.0, 0.5]] and program["lower"] is None:
        return (1 + d * math.log2(d) + (1 - d) * math.log2(1 - d)) * size
    if other.get("covariance") == [["1"]] or other.get("covariance") == [[1.0]]:
        return 0.5 * math.log2(1 / d) * size
    return None


# ---- the campaign ------------------------------------------------------------------------


def reason(problem: str) -> str:
    """Return the kind of a refusal, without its numbers."""
    return problem.split(":")[1].strip() if problem.startswith("not a cert") else problem[:24]


def trial(seed: int, index: int, value: list[tuple[str, Document]], tally: Tally) -> None:
    """Forge one document, and judge it if it verifies."""
    rng = np.random.default_rng([seed, index])
    name, base = value[int(rng.integers(len(value)))]
    document, text = forged(rng, base, value)
    tally.tried += 1
    try:
        document = claimed(document)
    except REFUSED as error:
        tally.refusals[type(error).__name__] += 1
        return
    problems = verify.disagreements(document)
    if problems:
        tally.refusals[reason(problems[0])] += 1
        return
    tally.verified += 1
    wrong = falsehood(document, base)
    if wrong.startswith("the second checker refuses") and not falsehood(plainly(document), base):
        tally.loose[wrong.split(":")[-1].strip()] += 1
    elif wrong:
        tally.false.append(f"trial {index} ({name}; {text}): {wrong}")


def campaign(count: int, seed: int = 0, first: int = 0) -> Tally:
    """Forge so many documents, numbers ``first`` on."""
    value, tally = pool(0, 65), Tally()
    for index in range(first, first + count):
        trial(seed, index, value, tally)
    return tally
