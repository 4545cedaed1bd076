"""Append to ``verifier/tests/frozen.json``: small documents of every kind, and what they prove.

``python -m tests.proofs``.  Some are proofs of random problems, some of whose multipliers were
spoilt, which makes them looser and every part of a bound matter; others are programs written
by hand, with all that the format has, and multipliers drawn at random; others one of each
formulation, criterion and measure.  The verdicts are frozen there: a change of the verifier that
moves an end by one float fails.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import cvxprivacy as cpv
from cvxprivacy_verifier import verify
from tests.claims import claimed
from tests.formulations import test_dual_statement
from tests.instances import Chance, Document, Program, documents, solved
from tests.primals import INFORMATION, listed
from tests.verifier import test_covariance_proof

PATH = Path(__file__).parents[1] / "verifier" / "tests" / "frozen.json"
BLANK: dict[str, Any] = {"cost": None, "cost_radius": 0, "constant": [0, 0]}


def document(program: Any, primal: Any, dual: Any, accuracy: str = "default") -> Document:
    """Return a document that claims what it proves."""
    results = {"schema": verify.SCHEMA, "software": "by hand", "accuracy": accuracy, "table": None}
    results |= {"program": program, "primal": primal, "dual": dual}
    return claimed(results)


def spoilt(rng: Chance, value: Document, size: float) -> Document:
    """Return a document with multipliers that are off by about ``size`` of themselves."""
    summary = copy.deepcopy(value)

    def off(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            return {k: off(v, k) for k, v in node.items()}
        if isinstance(node, list):
            return [off(x, key) for x in node]
        if type(node) is float and node:
            return node * (1 + size * float(rng.normal())) + 0.1 * size * float(rng.normal())
        return node

    dual = summary["dual"]
    for key in ("scores", "multipliers", "auxiliaries", "level"):
        if key in dual:
            dual[key] = off(dual[key])
    for table in (*dual.get("posteriors", {}).values(), *dual.get("parts", {}).values()):
        for i, row in enumerate(table["middle"]):
            row[i] = (float(Fraction(row[i])) + size) * (1 + size)
    return claimed(summary)


# ---- channel programs by hand ------------------------------------------------------------


def written(rng: Chance, value: float) -> Any:
    """Return a number near a value: a float, or a fraction as text."""
    return float(value) if rng.random() < 0.5 else str(Fraction(value).limit_denominator(97))


def table(rng: Chance, *shape: int) -> Any:
    if len(shape) > 1:
        return [table(rng, *shape[1:]) for _ in range(shape[0])]
    return [written(rng, rng.uniform(0, 2)) for _ in range(shape[0])]


def channel_program(rng: Chance) -> tuple[Any, Any]:
    """Return a program with all that there is, and a channel that is feasible."""
    w, n, m = (int(k) for k in rng.integers(2, 4, 3))
    law = [[float(x) for x in row] for row in rng.uniform(0.05, 1, (w, n)).round(3)]
    hidden = [[i] * n for i in range(w)]
    partial = [[i if i == s % w or s == 0 else -1 for s in range(n)] for i in range(w)]
    views = {
        "W": {"labels": hidden, "reference": None, "measure": INFORMATION},
        "X": {"labels": [list(range(n))] * w, "reference": None, "measure": INFORMATION},
        "P": {"labels": partial, "reference": hidden, "measure": INFORMATION},
    }
    cells = rng.integers(3, 30, (n, m))
    cells[:, -1] = 90 - cells[:, :-1].sum(axis=1)
    numerators = cells.tolist()

    def term(name: str, weights: Any, layered: bool = False, radius: float = 0.0) -> Any:
        shape = (w, n, m) if layered else (n, m)
        return {
            "name": name,
            "weights": weights,
            "cost": table(rng, *shape),
            "cost_radius": radius,
            "constant": [written(rng, rng.normal()), radius],
        }

    def row(value: Any, sense: str, bound: Any, radius: Any = 0, many: bool = False) -> Any:
        return {
            "term": value,
            "sense": sense,
            "bound": bound,
            "radius": radius,
            "per_output": many,
        }

    values = [written(rng, x) for x in rng.uniform(0, 1, m)]
    objective = term(
        "o", {"W": written(rng, 0.7), "P": values}, radius=float(rng.choice([0, 1e-3]))
    )
    close = {**BLANK, "name": "t", "weights": {"W": 1}, "cost": [["-1/9"] * m] * n}
    kept = {**BLANK, "name": "kept", "weights": {}, "cost": [[1] * m] * n}
    p = [sum(Fraction(r[s]) for r in law) for s in range(n)]
    q = [sum(p[s] * numerators[s][y] for s in range(n)) / 90 / sum(p) for y in range(m)]
    mean = {**kept, "name": "mean", "cost": [list(range(m))] * n, "constant": ["-1/3", 0]}
    rows = {
        "budget": row(term("budget", {}, radius=1e-4), "<=", 9, 1e-5),
        "layers": row(term("layers", {"X": "1/2"}, layered=True), "<=", 9),
        "close": row(close, "<=", [1.5, *["7/3"] * (m - 1)], "1/1000", many=True),
        "one": row({**close, "weights": {"P": 2}}, "<=", "5/2", many=True),
        "kept": row(kept, "==", [str(x) for x in q], many=True),
        "mean": row(mean, "==", str(sum(y * x for y, x in enumerate(q)) - Fraction(1, 3))),
    }
    low = [[written(rng, 0.02) for _ in range(m)] for _ in range(n)]
    high = [[written(rng, 0.98) for _ in range(m)] for _ in range(n)]
    return {
        "kind": "channel",
        "units": str(rng.choice(["bits", "nats"])),
        "law": law,
        "outputs": m,
        "views": views,
        "objective": objective,
        "rows": rows,
        "lower": low,
        "upper": high,
        "auxiliaries": {
            "ratio": {"kind": "ratio", "bound": [31, 1e-3]},
            "maximum": {"kind": "maximum", "bound": ["11/4", "1/100"]},
            "near": {
                "kind": "excess",
                "bound": ["3/2", 1e-3],
                "share": [written(rng, x) for x in rng.uniform(0.5, 1.5, n)],
                "levels": [written(rng, x) for x in rng.uniform(-0.1, 0.3, m)],
            },
        },
        "terms": {"x": term("x", {"X": -1}, radius=1e-6), "w": term("w", {"W": values})},
    }, listed(numerators, 90)


def multipliers(rng: Chance, program: Any, objective: int = 1) -> Any:
    n, m = len(program["law"][0]), program["outputs"]

    def some(*shape: int) -> Any:
        return rng.normal(size=shape).tolist()

    sizes = {
        k: 1 + max(x for row in v["reference"] or v["labels"] for x in row)
        for k, v in program["views"].items()
    }
    prices = {k: some(m) if row["per_output"] else some() for k, row in program["rows"].items()}
    shapes = {"ratio": [(n, m)] * 2, "maximum": [(n, m)], "excess": [(m,)]}
    parts = {k: shapes[a["kind"]] for k, a in program["auxiliaries"].items()}
    return {
        "scores": {k: some(size, m) for k, size in sizes.items()},
        "multipliers": prices,
        "auxiliaries": {k: [some(*shape) for shape in shapes] for k, shapes in parts.items()},
        "objective": objective,
    }


def channels(rng: Chance) -> Any:
    for index in range(8):
        program, primal = channel_program(rng)
        for row in program["rows"].values():  # bounds that the channel meets, not by much
            if row["sense"] == "<=":
                row["bound"] = 1000 if not isinstance(row["bound"], list) else row["bound"]
        proof = verify.proof_of(program)
        gaps = proof.upper(primal).violation
        for name in ("budget", "layers"):
            program["rows"][name]["bound"] = round(1000.01 + float(gaps[name][0]), 2)
        program["rows"]["one"]["bound"] = "1/2"
        dual = multipliers(rng, program)
        if index == 1:
            program["lower"] = None
        if index == 2:
            program["upper"] = None
        if index in (3, 4):
            program["lower"] = program["upper"] = None
        if index == 5:
            dual["multipliers"]["close"] = [0.5]  # as many as nothing: counts as 0
            dual["scores"]["X"] = dual["scores"]["X"][:1]
            dual["scores"]["W"][0][0] = 1e300
        if index > 4:  # the worst of two or three, in untrusted shares
            _, *others = program["terms"].values()
            parts = [program["objective"], program["rows"]["layers"]["term"], *others]
            chance = np.random.default_rng(index)
            parts = dict(zip("abc", parts[: index - 3], strict=False))
            program["objective"] = {"worst": parts}
            shares = ["x", 1e300, -1.0, *chance.normal(0.3, 0.5, 9).tolist()]
            dual["shares"] = dict(zip(parts, chance.permutation(shares), strict=False))
        yield "by hand", document(program, primal, dual, ("default", "high")[index % 2])
        if index < 4:  # nothing but multipliers; a price for what is not per output
            dual = multipliers(rng, program)
            dual["multipliers"]["mean"] = -3.0
            program["rows"]["mean"]["radius"] = "1/8"
            dual["multipliers"]["budget"] = [1.0] * program["outputs"]
            yield "multipliers alone", document(program, None, dual)
        if index < 2:
            yield "channel alone", document(program | {"rows": {}}, primal, None)
    # contradictions: a budget below every cost; one that is met; entries that leave no channel
    base = {
        "kind": "channel",
        "units": "nats",
        "law": [[0.5, 0.25]],
        "outputs": 2,
        "views": {},
        "objective": {**BLANK, "name": "", "weights": {}},
        "terms": {},
        "auxiliaries": {},
        "lower": None,
        "upper": None,
    }
    cost = {**BLANK, "name": "d", "weights": {}, "cost": [[1, 2], ["3/2", 1]]}
    for bound, radius in ((0.75, 0), (0.75, "1/8"), (1, 0), (0.75, "1/4")):
        term = {"term": cost, "sense": "<=", "bound": bound, "radius": radius, "per_output": False}
        dual = {"multipliers": {"d": 1.0}, "scores": {}, "auxiliaries": {}, "objective": 0}
        yield "contradiction", document({**base, "rows": {"d": term}}, None, dual)
    for low, high in ((["1/2", "2/3"], [1, 1]), ([0, 0], ["1/3", "1/2"]), (["1/3", 0], [1, 1])):
        boxed = {**base, "rows": {}, "lower": [low] * 2, "upper": [high] * 2}
        dual = {"multipliers": {}, "scores": {}, "auxiliaries": {}, "objective": 0}
        yield "entries", document(boxed, None, dual)
    for kind, bound in (("ratio", [2, 0.5]), ("maximum", ["5/4", "1/8"])):
        auxiliary = {"a": {"kind": kind, "bound": bound}}
        program = {**base, "rows": {}, "auxiliaries": auxiliary}
        program["objective"] = {**cost, "cost": [[0, 2], [1, "1/7"]]}
        dual = multipliers(rng, program)
        primal = listed([[5, 4], [4, 5]], 9)
        yield kind, document(program, primal, dual)


# ---- covariance programs, and letters ----------------------------------------------------


def gaussians(rng: Chance) -> Any:
    for flavour, index in itertools.product(test_covariance_proof.FLAVOURS, range(2)):
        problem = Program(test_covariance_proof.random_program(rng, flavour))
        outcome = json.loads(json.dumps(solved(problem).document()))
        if index and flavour != "balls":
            outcome = spoilt(rng, outcome, 0.05)
        if len(json.dumps(outcome)) < 30_000:
            yield f"gaussian {flavour}", outcome
    # exact: S is singular, W is one of X, a cap in fractions, costs and constants with radii
    gamma = [["3/2", 1, "1/2", "1/4"], [1, 1, "1/4", 0], ["1/2", "1/4", 2, "1/3"],
             ["1/4", 0, "1/3", 1]]  # fmt: skip
    cost = [["2/3", "1/7"], ["1/7", 1]]
    both = {"root": [[1.0, 0.0], [0.25, 1.5]], "middle": [["1/2", "1/9"], ["1/9", "1/3"]]}
    one = {"root": [[0.75]], "middle": [["4/5"]]}
    for units, objective, value in itertools.product(
        ("bits", "nats"), ({"W": "1/3", "V": 0.25}, {"V": 1}, {}), ([], [3])
    ):
        term = {"name": "o", "weights": objective, "cost": cost if len(objective) != 1 else None}
        term |= {"cost_radius": 2.0**-60 * (len(objective) == 2), "constant": ["1/7", 2.0**-55]}
        rate = {**BLANK, "name": "r", "weights": {"V": 0.5, "S": "1/4"}, "constant": ["-1/5", 0]}
        near = {**BLANK, "name": "d", "weights": {}, "cost": cost, "constant": [0.5, 2.0**-58]}
        mixed = {**near, "name": "m", "weights": {"W": 0.125}}
        plain = {"sense": "<=", "radius": 0, "per_output": False}
        program = {
            "kind": "covariance",
            "units": units,
            "covariance": gamma,
            "encoded": [0, 2],
            "given": value,
            "objective": term,
            "terms": {"r": rate, "d": near, "m": mixed},
            "views": {
                "W": {"of": [1], "reference": "marginal"},
                "V": {"of": [0, 2], "reference": "conditional"},
                "S": {"of": [2], "reference": "marginal"},
            },
            "rows": {
                "r": {"term": rate, "bound": "5/2", **plain},
                "d": {"term": near, "bound": "5/2", **plain},
                "m": {"term": mixed, "bound": 3.25, **plain},
            },
            "caps": {"cap": [["5/4", "1/8"], ["1/8", "7/4"]]},
        }
        primal = {"root": [[1.0, 0.0], ["1/8", 1.25]], "middle": [["3/8", "1/50"], ["1/50", 0.5]]}
        prices = {"r": 0.5, "d": "1/3", "m": 0.25}
        large = {"root": [[1.0, 0.0], [0.25, 1.0]], "middle": [["5/3", "1/9"], ["1/9", "8/5"]]}
        dual = {
            "multipliers": prices,
            "objective": 1,
            "posteriors": {"W": one, "V": {**both, "middle": [["9/5", 0], [0, "7/3"]]}, "S": one},
            "parts": {"": large, "cap": {**large, "middle": [[0.5, 0], [0, "1/4"]]}},
        }
        yield "gaussian by hand", document(program, primal, dual)
        if not value:
            negative = {**dual, "multipliers": {"d": -1.0, "r": 0.25}}
            yield "gaussian by hand", document(program, None, negative, "high")
        elif units == "bits":
            program = copy.deepcopy(program)
            program["rows"]["d"]["bound"] = "1/4"  # below its constant
            dual = {**dual, "multipliers": {"d": 1.0}, "objective": 0}
            yield "gaussian contradiction", document(program, None, dual)


def letters(rng: Chance) -> Any:
    laws: Any = (
        ([0.5, 0.25, 0.125, 0.125], (0.3, 0, "1/3", 1), "bits"),
        ([0.4, 0.0, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02], (0.2, "3/5", "5e-1"), "nats"),
        ([0.9, 0.06, 0.04], ("1/20", "1/10"), "nats"),
        ([1.0, 1e-30, 1e-50], (0.0, 1e-31), "bits"),
        ([1.0], (0,), "nats"),
        ([0.25] * 4, ("1/7", "3/4"), "bits"),
    )
    for law, budgets, units in laws:
        for budget in budgets:
            d = Fraction(budget)
            certificate = solved(cpv.HammingWaterFilling(law, d, units=units), accuracy="high")
            yield "letters", claimed(certificate.document())  # which are wider than it proves
    for level in ("1/10", "1/4", "3/10", "-1/2", "3/4", 0, 0.5):
        program: Any = {"kind": "hamming", "units": "bits", "law": [0.5, 1.5, 0.0, 0.375, 0.25]}
        program["budget"] = "5/16"
        dual = {"level": level, "objective": int(level != 0.5)}
        yield "letters at a level", document(program, {"level": level}, dual)


def waters() -> Any:
    """Yield water in boxes, and of a covariance, at its level and at others."""
    gains: Any
    for gains, caps, budget, units in (
        (None, [4.0, "3/2", "1/3", 0.25], "5/4", "bits"),
        ([1.0, "5/2", 4.0, "1/7"], [1.0, 1.5, "2/3", 0.25], 1, "nats"),
        ([5e-324, 1e300], [1e300, 5e-324], 1e-300, "bits"),
    ):
        program = {"kind": "water", "units": units, "gains": gains, "variances": caps}
        program["budget"] = budget
        for level in ("1/100", 0.25, "7/16", 1, "10/9"):
            dual = {"level": level, "objective": int(level != 1)}
            feasible = verify.proof_of(program).upper({"level": level}).feasible
            yield "water", document(program, {"level": level} if feasible else None, dual, "high")
    gamma = [["7/2", 0.5, -0.25], [0.5, 2, "1/8"], [-0.25, "1/8", 3.0]]
    root = np.linalg.eigh([[float(Fraction(x)) for x in row] for row in gamma])[1].tolist()
    for units, shift in itertools.product(("bits", "nats"), (0.0, 2.0**-36)):
        program = {"kind": "spectral", "units": units, "covariance": gamma, "budget": 6}
        axes = [[x + shift * (i == j) for j, x in enumerate(row)] for i, row in enumerate(root)]
        primal = {"axes": axes, "removed": ["3/4", 1, 1.5]}
        dual = {"axes": root, "precisions": [0.875, "1/2", 0.5], "price": "1/5", "objective": 1}
        yield "spectral", document(program, primal, dual)


def useful() -> Any:
    """Yield the most useful releases under rules of each kind; multipliers of some are off."""
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    metric = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    bound: dict[str, Any] = {"distortion": cpv.hamming(3), "budget": 0.55}
    for rules, options in (
        ([cpv.LocalPrivacy(1)], {}),
        ([cpv.LocalPrivacy(0.5, metric=metric)], bound),
        ([cpv.PointwiseMaximalLeakage(0.2)], {"utility": cpv.leakage.ChiSquared()}),
        ([cpv.LocalInformationPrivacy(0.2), cpv.LocalPrivacy(2)], {"about": "w"}),
    ):
        honest = json.loads(
            json.dumps(solved(cpv.MostUsefulRelease(source, rules, **options)).document())
        )
        yield "useful", honest
        letters = [x * 1.25 - 0.125 for x in honest["dual"]["letters"]]
        off = {**honest, "dual": {**honest["dual"], "letters": letters}, "accuracy": "high"}
        yield "useful, spoilt", claimed(off)


def many_letters() -> Document:
    """Return one of more letters than all rays of are looked at, of three probabilities."""
    source = cpv.DiscreteSource.identical([Fraction(1 + s % 3, 42) for s in range(21)])
    problem = cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(2)])
    document: Document = json.loads(json.dumps(solved(problem).document()))
    return document


def centred() -> Any:
    """Yield what is told whatever the prior, and relative entropies written by hand."""
    source = cpv.DiscreteSource([[0.3, 0.1, 0.05], [0.05, 0.1, 0.4]])
    rare = cpv.DiscreteSource([[1e-12, 0.0, 1e-9], [0.25, 0.25, 0.5 - 1e-9 - 1e-12]])
    d = cpv.hamming(3)
    caps = [cpv.CapacityCap(0.02), cpv.LocalPrivacy(2)]
    for problem in (
        cpv.PrivacyDistortion(source, d, budget=0.15, prior="any"),
        cpv.PrivacyDistortion(rare, d, budget=0.25, prior="any", units="nats"),
        cpv.PrivacyDistortion(source, d, price=2, prior="any", encoder="wx"),
        cpv.MinimumDistortion(source, d, caps),
        cpv.PrivacyDistortion(source, d, budget=0.05, criteria=caps[:1]),
    ):
        honest = json.loads(json.dumps(solved(problem).document()))
        yield "centred", honest
        yield "centred, spoilt", spoilt(np.random.default_rng(4), honest, 0.05)
    # of the row r some outputs are unused where the others use none, and one row is that of r
    labels = {"a": [[0, -1, 1], [-1, 0, 1]], "b": [[-1, 0, 1], [-1, 0, 1]]}
    measure = {"kind": "relative entropy"}
    views = {k: {"labels": v, "reference": None, "measure": measure} for k, v in labels.items()}
    for units, bound in itertools.product(("bits", "nats"), (["1/3", 0, "1/8"], ["1/2", 0, 1])):
        term = {**BLANK, "name": "o", "weights": {"a": ["5/2", 1, 0.75], "b": "1/3"}}
        term |= {"cost": [["1/7", 0, 2], [1, "1/2", 0], [0, 0, 0]], "constant": ["1/9", 2.0**-50]}
        near = {**BLANK, "name": "near", "weights": {"b": 1}}
        row = {"term": near, "sense": "<=", "bound": bound, "radius": 0, "per_output": True}
        program = {
            "kind": "channel", "units": units, "law": [[0.25, 0.5, 0.125], [0.375, 0.25, 1.5]],
            "outputs": 3, "views": views, "objective": term, "rows": {"near": row},
            "lower": None, "upper": None, "auxiliaries": {}, "terms": {"near": near},
        }  # fmt: skip
        dual = multipliers(np.random.default_rng(5), program)
        dual["scores"] = {"a": [[0.5, -20.0, 2.5]], "b": [[0.0, 0.25, -1.5]]}
        primal = listed([[5, 4, 0], [2, 7, 0], [2, 7, 0]], 9)
        yield "centred by hand", document(program, primal, dual, "high")
    # a contradiction: r is as near one row as the other, which have no output in common
    boxes = {"lower": [[1, 0], [0, 1], [0, 0]], "upper": [[1, 1], [1, 1], [1, 1]]}
    views = {
        k: {"labels": [row], "reference": None, "measure": measure}
        for k, row in (("a", [0, -1, 1]), ("b", [-1, 0, 1]))
    }
    rows = {
        k: {
            "term": {**BLANK, "name": k, "weights": {k: 2}},
            "sense": "<=", "bound": "1/2", "radius": 0, "per_output": False,
        }
        for k in views
    }  # fmt: skip
    program = {
        "kind": "channel", "units": "nats", "law": [[0.5, 0.5, 1.0]], "outputs": 2, "terms": {},
        "views": views, "objective": {**BLANK, "name": "", "weights": {}}, "rows": rows, **boxes,
        "auxiliaries": {},
    }  # fmt: skip
    for score in (0.5, math.log(2), 3.0):
        scores = {"a": [[score, -9.0]], "b": [[-9.0, score]]}
        dual = {"multipliers": dict.fromkeys(views, 1.0), "auxiliaries": {}, "objective": 0}
        yield "centred contradiction", document(program, None, {**dual, "scores": scores})


def statements() -> Any:
    """Yield an honest proof of each formulation, criterion and measure."""
    for name, problem in test_dual_statement.problems():
        yield name, json.loads(json.dumps(solved(problem).document()))


def corpus() -> Any:
    """Yield all that has a name."""
    rng = np.random.default_rng(20)
    yield from channels(rng)
    yield from gaussians(rng)
    yield from letters(rng)
    yield from waters()
    for name, honest in documents(7, 33):
        if len(json.dumps(honest)) < 6000:
            yield name, honest
            if honest["dual"] is not None:
                yield f"{name}, spoilt", spoilt(rng, honest, 0.03)
    yield from statements()
    for number, (name, value) in enumerate([*useful(), *centred()]):
        yield f"{name} {number}", value
    yield "useful, many letters", many_letters()


def line(name: str, value: Document) -> str:
    """Return an entry of the file."""
    tolerance = verify.recompute(value)["tolerance"]
    assert math.isfinite(tolerance)
    entry = {"name": name, "tolerance": tolerance, "document": value}
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False)


def main() -> None:
    """Append what has a name that is not there yet; what is there never changes."""
    lines = [text.rstrip(",") for text in PATH.read_text(encoding="utf-8").splitlines()[1:-1]]
    names = {json.loads(text)["name"] for text in lines}
    fresh = [line(name, value) for name, value in corpus() if name not in names]
    PATH.write_text("[\n" + ",\n".join([*lines, *fresh]) + "\n]\n", encoding="utf-8")
    print(f"{len(fresh)} documents appended to {len(lines)}")


if __name__ == "__main__":
    main()
