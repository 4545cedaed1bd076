"""The work and the room that a document asks of the verifier, estimated before any is done.

A unit of work is a product of two balls in a loop of Python.  Every loop of the proofs is counted
by the sizes of what it goes through, and what is exact by the size of its numbers: a sum of
rationals of l limbs takes about 1 + l²/25 units, a product of matrices l²/400 for each product of
entries.  What grows with a program's size is (C19).  Needs the standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .costs import steps_of
from .elimination import elimination_of
from .fields import parts_of
from .rationals import UnaffordableError, bits_of, integers

__all__ = [
    *("BLOCK", "BURDEN", "EXACT", "LISTED", "LONG", "ROOM", "STEPS", "WORK"),
    *("affordable", "allowing", "refuse_long", "work_of"),
]

# Documents of all kinds took 0.001 to 0.09 µs a unit on one core (the estimate is of the worst):
# this ends within 10 minutes, and is 22 times a full channel of 2,000 × 2,000, 2.7e8 units in 12 s.
WORK = 6_000_000_000
ROOM = 4_000_000  # entries of all tables that a program makes: a short file must not ask for more
PLAN = 16  # units that a plan takes at most for each triple of values, and an exact one
EXACT = 8  # variables up to which what is rational stays so, unless they are hardly coupled
BURDEN = 10**10  # of exact elimination, which takes minutes beyond
BLOCK = 256  # letters that are looked at together, at most
LONG = 6_700  # bits of a common denominator of boxes: a level that has more stands in no document

LISTED = 20  # letters of which all corners {1, γ}ⁿ are looked at
STEPS = 4_000  # bounds of corners at most, for one list of prices, where there are more

Program = Mapping[str, Any]
_times: ContextVar[float] = ContextVar("times", default=1.0)


@contextmanager
def allowing(times: float) -> Iterator[None]:
    """Allow so many times the usual work and room, which only the person at the keyboard asks."""
    token = _times.set(times)
    try:
        yield
    finally:
        _times.reset(token)


def affordable(asked: int, most: int = ROOM, what: str = "tables of {} entries") -> None:
    """Refuse a program that asks for more than is allowed, before any of it is done."""
    allowed = int(most * _times.get())  # never from the document itself
    if asked > allowed:
        asks = what.format(f"{asked:,}" if asked < 10**24 else "over 10^24")
        raise UnaffordableError(f"{asks}, where {allowed:,} are the most")


def refuse_long(program: Program, primal: Any = None, dual: Any = None) -> None:
    """Refuse a program, with a primal and a dual or without, whose proof takes too long."""
    affordable(work_of(program, primal, dual), WORK, "{} products (--work allows more)")


def work_of(program: Program, primal: Any = None, dual: Any = None) -> int:
    """Return about how many products of balls it takes to prove and to state a program."""
    kinds = {"covariance": _covariance, "hamming": _hamming}
    kinds |= {"spectral": _spectral, "useful": _useful, "water": _water}
    # an unknown kind counts as a channel program, and is refused by its proof
    products = kinds.get(str(program.get("kind")), _channel)(program, primal, dual)
    return int(products + 8 * sum(map(_reading, (program, primal, dual))))


def _reading(node: Any) -> int:
    """Return what it takes to read all numbers: texts in the square of their length."""
    # a stack, not a recursion: a document may be nested as deeply as JSON's reader goes
    work = 0
    stack: list[Any] = [[node]]
    while stack:
        node = stack.pop()
        work += len(node)
        inner = node.values() if isinstance(node, dict) else node
        kinds = {*map(type, inner)}
        if str in kinds:  # decimal digits to a whole number take the square of their count
            work += sum(len(x) ** 2 // 16_000 for x in inner if isinstance(x, str))
        if not kinds <= {int, float, str}:
            stack += [x for x in inner if isinstance(x, (dict, list))]
    return work


def _limbs(*bits: int) -> int:
    return 1 + sum(bits) // 64  # words of a machine, in which FLINT counts


def _sum(limbs: int) -> int:
    """Return the work of a sum of rationals."""
    return 1 + limbs * limbs // 25


def _hamming(program: Program, primal: Any, dual: Any) -> int:
    """Count up to four precisions of a logarithm for each letter."""
    return 60 * len(program["law"])


def _water(program: Program, primal: Any, dual: Any) -> int:
    """Count six precisions of a reciprocal, where a box is exactly, and a sum of fractions."""
    numbers = [*program["variances"], *(program["gains"] or ())]
    exact = [x for x in numbers if type(x) is not float]
    longest = max(map(_bits, exact), default=1075)  # of a float
    levels = (_bits(x["level"]) for x in (primal, dual) if x is not None)
    place = _limbs(longest) * _limbs(max(levels, default=0))
    return len(numbers) * (64 + place // 6) + len(exact) * _sum(_limbs(longest, LONG))


def _bits(value: Any) -> int:
    """Return the bits of a number of a document."""
    return 10 * len(value) // 3 if isinstance(value, str) else 1075 + int(value).bit_length()


def _spectral(program: Program, primal: Any, dual: Any) -> int:
    """Count five products of matrices of balls, and whatever is read exactly."""
    entries = [x for row in program["covariance"] for x in row]
    pairs = [x["axes"] for x in (primal, dual) if x is not None]
    entries += [x for axes in pairs for row in axes for x in row]
    bits = max((_bits(x) for x in entries if type(x) is not float), default=1075)
    return 2 * len(program["covariance"]) ** 3 + len(entries) * (16 + _sum(_limbs(bits)))


# ---- channel programs --------------------------------------------------------------------


def _channel(program: Program, primal: Any, dual: Any) -> int:
    law, m, views = program["law"], program["outputs"], program["views"]
    n, atoms, elimination = len(law[0]), sum(map(len, law)), elimination_of(program)
    # what the lower end goes through: all entries, or one attribute after the other (C22)
    entries = n * m if elimination is None else elimination.operations
    objectives = list(parts_of(program["objective"]).values())
    rows = [row["term"] for row in program["rows"].values()]
    terms = [*objectives, *program["terms"].values(), *rows]
    law_bits, own_bits, listed = _spread(law), 0, 0
    if primal is not None:
        numbers = [primal["denominator"], *(max(row, default=0) for row in primal["numerators"])]
        own_bits, listed = (
            max(x.bit_length() for x in numbers if type(x) is int),
            sum(map(len, primal["outputs"])),
        )
    joint = _limbs(law_bits, own_bits)
    measures = {name: _measure_bits(view["measure"]) for name, view in views.items()}
    work, costs = 2 * entries + atoms * 16, {}
    work += 12 * entries if elimination is not None else 0
    for view in views.values():  # n m |V| of (C19)
        # of a channel the outputs that a block of letters uses
        few = entries + min(n * m, BLOCK * listed)
        work += _view(view, n, m, few, law_bits, own_bits) + 12 * atoms
    for term in terms:
        weights = len(term["weights"])
        bits = bits_of(map(_listed, term["weights"].values()), "weights")
        exact = joint + _limbs(bits, *(measures[view] for view in term["weights"]))
        work += weights * m * (6 + _sum(exact)) + len(views) + m
        if term["cost"] is not None:
            if (key := id(term["cost"])) not in costs:  # in memory most terms share one
                costs[key] = _cost(term["cost"])
            layers, bits = costs[key]
            # n m of (C19) for the lower end, and for the upper what the channel uses
            each = 4 + _limbs(bits) * joint // 300
            work += layers * (12 * n * m * (elimination is None) + each * listed)
            work += 12 * n * m * layers if any(term is part for part in objectives) else 0
    for row in program["rows"].values():
        work += (m if row["per_output"] else 1) * (4 + 2 * _sum(joint))
    work += len(program["auxiliaries"]) * (10 * entries + 4 * listed + 8 * m)
    # levels of (P22) are exact: fractions of as many limbs as the bounds have
    for box in filter(None, (program["lower"], program["upper"])):
        work += entries * (30 + 4 * _sum(_limbs(bits_of(box))))
    return work


def _useful(program: Program, primal: Any, dual: Any) -> int:
    """Count rays besides: corners, or choices of rows and of letters (U5)."""
    n, each = len(program["law"][0]), 3 * (2 + program["outputs"])
    for term in parts_of(program["objective"]).values():
        for name in term["weights"]:  # of balls, whatever the masses
            view = program["views"][name]
            each += 8 * _values(view) + 2 * _measured(view["measure"], _values(view), 1)
    rows = [r for r in program["rows"].values() if r["per_output"]]
    ratios = [aux["bound"] for aux in program["auxiliaries"].values()]
    if ratios and not rows:
        lists = program["outputs"] if program["rows"] else 1  # a price list for each that costs
        looked = 2**n * each if n <= LISTED else STEPS * 8 * n * lists
        return int(_channel(program, primal, dual) + looked)
    count = sum(1 + (row["sense"] == "==") for row in rows) + n * (n - 1) * bool(ratios)
    terms = [row["term"] for row in rows]
    bits = [_cost(term["cost"])[1] for term in terms if term["cost"] is not None]
    bits += [bits_of([[term["cost_radius"]]]) for term in terms]
    bits += [128 + bits_of([bound]) for bound in ratios]  # an end of a ball, exactly
    limbs = _sum(_limbs(_spread(program["law"]), max(bits, default=0)))
    work = _channel(program, primal, dual)
    for k in range(1, min(count + 1, n) + 1):
        chosen = math.comb(n, k) * math.comb(count, k - 1)
        work += chosen * (40 + k**3 * limbs + k * (each + count * limbs))
        if work > 10**15:  # far beyond what is allowed: numbers need grow no further
            break
    return int(work)


def _view(view: Program, n: int, m: int, few: int, law_bits: int, own_bits: int) -> int:
    """Count a view's products with multipliers and with a channel, and its measure."""
    v = _values(view)
    # 0.3 units: FLINT multiplies matrices of balls three times as fast as a loop of Python
    products = v * few * (300 + _limbs(law_bits) * _limbs(own_bits)) // 1000
    joint, data = _limbs(law_bits, own_bits), view["measure"]
    ground = v * v * ("ground" in data)
    each = _measured(data, v, joint)
    return 8 * v * n + products + 12 * (_gains(data) + ground) + m * each


def _values(view: Program) -> int:
    tables = [view["labels"], *filter(None, [view["reference"]])]
    return 1 + max(label for table in tables for row in table for label in row)


def _gains(data: Program) -> int:
    matrix = data.get("matrix", ())
    return sum(map(len, matrix)) if isinstance(matrix, list) else 0


def _measured(data: Program, v: int, joint: int) -> int:
    """Count a measure of v values at one output, whose masses have so many limbs."""
    bits = _limbs(_measure_bits(data))
    # of powers and logarithms, f's terms; a kind that has none of its own has two at most
    terms = len(data["terms"]) if isinstance(data.get("terms"), list) else 2
    each: int = v * (20 * terms + joint * joint // 100) + _gains(data) * (4 + bits * joint // 300)
    if data["kind"] in ("Vincze-Le Cam", "power divergence", "f-information"):
        each += min(v, 8) * 64 * joint * terms  # fractions of few values, added up
    if data["kind"] == "transport":  # prices are brought inside in v²; a plan takes v³
        each += v * v * 4 + (
            v * 6
            if steps_of(integers(data["ground"])[0]) is not None
            else PLAN * v**3 * (8 + joint) // 8
        )
    return each


def _cost(cost: Any) -> tuple[int, int]:
    """Return how many tables a cost adds up, and the bits of their numbers."""
    if isinstance(cost, dict):
        tables = [part["table"] for part in cost["parts"]]
    else:
        tables = cost if isinstance(cost[0][0], list) else [cost]
    return len(tables), bits_of(row for table in tables for row in table)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _measure_bits(data: Program) -> int:
    """Return the bits of the numbers of a measure."""
    rows = [row for key in ("matrix", "ground", "terms") for row in data.get(key, ())]
    return bits_of([*rows, [data[key] for key in ("gamma", "order") if key in data]])


def _spread(law: Any) -> int:
    """Return the bits of masses in whole numbers."""
    masses = [x for row in law for x in row if isinstance(x, int | float) and 0 < x < math.inf]
    most, least = (math.frexp(end(masses, default=1))[1] for end in (max, min))
    return 53 + most - least  # of floats over their common denominator


# ---- covariance programs -----------------------------------------------------------------


def _covariance(program: Program, primal: Any, dual: Any) -> int:
    """Count matrices of balls at the highest precision, and exact ones where those may stay so."""
    gamma, n, z = program["covariance"], len(program["encoded"]), len(program["given"])
    size, caps, views = len(gamma), program["caps"], program["views"]
    rows = [row["term"] for row in program["rows"].values()]
    terms = [program["objective"], *program["terms"].values(), *rows]
    costs = [row for t in terms if t["cost"] is not None for row in t["cost"]]
    bits = [bits_of(gamma), bits_of(costs, "costs")]
    bits.append(bits_of([[*t["weights"].values()] for t in terms], "weights"))
    bits.append(bits_of(row for cap in caps.values() for row in cap))
    if dual is not None:
        bits.append(bits_of([[*dual["multipliers"].values()]], "multipliers"))
    bits.append(max(map(_factor_bits, _factors(primal, dual)), default=0))
    limbs = _limbs(*bits)
    cubes = 2 * size**3 + n * z * (n + z)  # conditioning, and what is semidefinite
    sizes = {name: len(view["of"]) for name, view in views.items()}
    for a in sizes.values():
        cubes += n**3 + 2 * a * n * (a + n) + a**3 + 2 * a * z * (a + z)
    work = 12 * cubes + 8 * (6 + 4 * len(caps)) * n**3
    for term in terms:
        work += sum(8 * (a * n * (a + n) + a**3) for a in (sizes[v] for v in term["weights"]))
        work += 2 * n * n * _sum(limbs) if term["cost"] is not None else _sum(limbs)
    coupled = sum(not _zero(x) for i, row in enumerate(gamma) for x in row[:i])
    if size <= EXACT or 2 * coupled <= size:
        matrices = len(terms) + sum(3 * a**4 + a * n * (a + n) for a in sizes.values())
        matrices += (8 + 4 * len(caps)) * n**4 + size**4
        work += matrices * (1 + limbs * limbs // 400)
    else:  # only what a document holds is exact, and eliminated if that is worth its time
        for side, count in ((size, 1), (n, 2 + 2 * len(caps))):
            burden = side**4 * max(bits)
            work += 2 * count * burden // 300 if burden <= BURDEN else 0
    return work


def _factors(primal: Any, dual: Any) -> Iterator[Any]:
    yield from (x[key] for x in filter(None, [primal]) for key in ("root", "middle"))
    for part in ("posteriors", "parts") if dual is not None else ():
        yield from (pair[key] for pair in dual[part].values() for key in ("root", "middle"))


def _factor_bits(rows: Any) -> int:
    return bits_of(rows, "factors")


def _zero(value: Any) -> bool:
    return not (value.split("/")[0].strip("-0") if isinstance(value, str) else value)
