"""Files that ask the verifier for more time or memory than any proof is worth.

Each kind is a function of a random generator and a size (bytes, roughly: what the file may weigh)
that returns the bytes of a file.  The verifier runs in a process of its own, whose address space
and processor time are limited; it must refuse (exit 1 or 2), or accept what is true (exit 0),
without a traceback and within both limits.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cvxprivacy_verifier import verify
from tests.primals import INFORMATION, listed
from tests.tally import Tally

Document = dict[str, Any]

MOST = 10_000_000  # bytes of a file
SPACE = 2**30  # bytes of address space beyond what the process needs to start
SECONDS = 120  # of processor time after which a process is killed, and counts as starved
TARGET = 1.0  # seconds of processor time within which every refusal should come


# ---- documents, written by hand ----------------------------------------------------------


def term(**changes: Any) -> Document:
    full = {"name": "", "weights": {}, "cost": None, "cost_radius": 0.0, "constant": [0.0, 0.0]}
    return {**full, **changes}


def row(**changes: Any) -> Document:
    full = {"term": term(), "sense": "<=", "bound": "1", "radius": 0.0, "per_output": False}
    return {**full, **changes}


def channel(letters: int = 2, outputs: int = 2, **changes: Any) -> Document:
    """Return a document of the information in a constant channel, which is 0."""
    program = {
        "kind": "channel",
        "units": "nats",
        "law": [[1.0] * letters],
        "outputs": outputs,
        "views": {
            "W": {"labels": [list(range(letters))], "reference": None, "measure": INFORMATION}
        },
        "objective": term(weights={"W": 1.0}),
        "rows": {},
        "lower": None,
        "upper": None,
        "auxiliaries": {},
        "terms": {},
        **changes,
    }
    dual = {"scores": {}, "multipliers": {}, "auxiliaries": {}, "objective": 1}
    return document(program, listed([[1]] * letters, 1), dual)


def covariance(gamma: list[list[Any]], encoded: list[int], **changes: Any) -> Document:
    """Return a document of W, the first variable, and the release of those encoded."""
    size = len(encoded)
    program = {
        "kind": "covariance",
        "units": "nats",
        "covariance": gamma,
        "encoded": encoded,
        "given": [],
        "views": {"W": {"of": [0], "reference": "marginal"}},
        "objective": term(weights={"W": 1.0}),
        "rows": {},
        "caps": {},
        "terms": {},
        **changes,
    }
    identity = diagonal([1.0] * size)
    dual = {
        "multipliers": {},
        "posteriors": {"W": {"root": [[1.0]], "middle": [[1.0]]}},
        "parts": {"": {"root": identity, "middle": identity}},
        "objective": 1,
    }
    return document(program, {"root": identity, "middle": identity}, dual)


def document(program: Document, primal: Any, dual: Any) -> Document:
    claim = {"status": "loose", "lower": -1e6, "upper": 1e6, "terms": {}}
    return {
        "schema": verify.SCHEMA,
        "software": "",
        "accuracy": "default",
        "table": None,
        "program": program,
        "primal": primal,
        "dual": dual,
        "claim": claim,
    }


def diagonal(values: list[Any]) -> list[list[Any]]:
    rows = [[0] * len(values) for _ in values]
    for i, value in enumerate(values):
        rows[i][i] = value
    return rows


def written(summary: Document) -> bytes:
    """Return a document as a file, with its digest."""
    summary["sha256"] = verify.digest(summary)
    return json.dumps(summary, separators=(",", ":"), ensure_ascii=False).encode()


def digits(rng: np.random.Generator, count: int) -> str:
    """Return a whole number of so many digits, odd."""
    return "9" + "".join(map(str, rng.integers(0, 10, max(count - 2, 0)))) + "7"


# ---- kinds -------------------------------------------------------------------------------

KINDS: dict[str, Callable[[np.random.Generator, int], bytes]] = {}


def kind(make: Callable[[np.random.Generator, int], bytes]) -> Callable[..., bytes]:
    KINDS[make.__name__] = make
    return make


@kind
def outputs_times_letters(rng: np.random.Generator, size: int) -> bytes:
    outputs = int(10 ** rng.uniform(2, 6))
    letters = size // 16
    return written(channel(max(2, letters), outputs))


@kind
def more_outputs_than_any(rng: np.random.Generator, size: int) -> bytes:
    return written(channel(2, int(10 ** rng.uniform(6, 300))))


@kind
def labels_times_letters(rng: np.random.Generator, size: int) -> bytes:
    return written(channel(max(2, size // 12)))


@kind
def labels_in_the_millions(rng: np.random.Generator, size: int) -> bytes:
    summary = channel(max(2, size // 12))
    summary["program"]["views"]["W"]["labels"][0][0] = int(10 ** rng.uniform(6, 18))
    return written(summary)


@kind
def wide_channels(rng: np.random.Generator, size: int) -> bytes:
    side = max(2, math.isqrt(size // 4))
    summary = channel(side, side)
    summary["primal"] = listed([[1] * side] * side, side)
    return written(summary)


@kind
def numerators_of_many_digits(rng: np.random.Generator, size: int) -> bytes:
    side = max(2, math.isqrt(max(size // 4000, 1)))
    summary = channel(side, 2)
    den = 10**3999
    part = [int(digits(rng, 3000)) for _ in range(side)]
    summary["primal"] = listed([[k, den - k] for k in part], den)
    return written(summary)


@kind
def many_views(rng: np.random.Generator, size: int) -> bytes:
    letters = int(10 ** rng.uniform(0.4, 2))
    view = {"labels": [list(range(letters))], "reference": None, "measure": INFORMATION}
    count = max(1, size // (40 + 4 * letters))
    return written(channel(letters, views={"W": view, **{f"v{i}": view for i in range(count)}}))


@kind
def many_rows_per_output(rng: np.random.Generator, size: int) -> bytes:
    many = row(per_output=True, term=term(weights={"W": 1.0}))
    rows = {f"r{i}": many for i in range(max(1, size // 150))}
    summary = channel(2, int(10 ** rng.uniform(1, 5)), rows=rows)
    summary["dual"]["multipliers"] = dict.fromkeys(rows, 1.0)
    return written(summary)


@kind
def many_views_and_rows(rng: np.random.Generator, size: int) -> bytes:
    view = {"labels": [[0, 1]], "reference": None, "measure": INFORMATION}
    count = max(1, size // 250)
    rows = {f"r{i}": row(term=term(weights={f"v{i}": 1.0})) for i in range(count)}
    summary = channel(2, 2, views={"W": view, **{f"v{i}": view for i in range(count)}}, rows=rows)
    summary["dual"]["multipliers"] = dict.fromkeys(rows, 1.0)
    return written(summary)


@kind
def many_terms(rng: np.random.Generator, size: int) -> bytes:
    one = term(weights={"W": 1.0})
    outputs = int(10 ** rng.uniform(1, 5))
    return written(channel(2, outputs, terms={f"t{i}": one for i in range(max(1, size // 90))}))


@kind
def many_auxiliaries(rng: np.random.Generator, size: int) -> bytes:
    one = {"kind": "ratio", "bound": [2.0, 0.0]}
    many = {f"a{i}": one for i in range(max(1, size // 45))}
    return written(channel(2, int(10 ** rng.uniform(1, 5)), auxiliaries=many))


@kind
def bounds_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    """Fractions whose sum has a denominator of as many digits as the file."""
    width = int(10 ** rng.uniform(1, 3.3))
    count = max(2, size // (2 * width))
    bounds = [f"{digits(rng, width)}/{digits(rng, width)}" for _ in range(count)]
    cost = [[0.0] * count, [1.0] + [0.0] * (count - 1)]
    budget = row(per_output=True, bound=bounds, term=term(cost=cost))
    return written(channel(2, count, rows={"r": budget}))


@kind
def costs_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    width = int(10 ** rng.uniform(1, 3.3))
    count = max(2, size // (4 * width))
    cost = [[f"{digits(rng, width)}/{digits(rng, width)}" for _ in range(count)] for _ in "01"]
    budget = row(bound="1/2", term=term(cost=cost))
    summary = channel(2, count, rows={"r": budget}, objective=term(cost=cost))
    summary["dual"]["multipliers"] = {"r": 1.0}
    summary["primal"] = listed([[1] * count] * 2, count)
    return written(summary)


@kind
def costs_by_parts(rng: np.random.Generator, size: int) -> bytes:
    """Small tables for many letters and outputs: as many as are affordable, or more."""
    letters = int(10 ** rng.uniform(1, math.log10(max(size // 12, 11))))
    outputs = max(2, min(size // 6, int(10 ** rng.uniform(6, 9) / letters)))
    places = [[0] * letters, (np.arange(outputs) % 2).tolist()]
    part = {"table": [[0, "1/3"]], "rows": places[0], "columns": places[1]}
    count = max(1, min(20, size // (4 * (letters + outputs))))
    if rng.random() < 0.2:  # a denominator too many
        part["table"] = [[f"1/{digits(rng, 1900)}" for _ in range(12)]]
    rows = {f"r{i}": row(term=term(cost={"parts": [part] * 2})) for i in range(count)}
    view = {"labels": [[0, *[1] * (letters - 1)]], "reference": None, "measure": INFORMATION}
    summary = channel(letters, outputs, rows=rows, views={"W": view})
    summary["dual"]["multipliers"] = dict.fromkeys(rows, 1.0)
    return written(summary)


@kind
def entry_bounds_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    width = int(10 ** rng.uniform(1, 3.3))
    count = max(2, size // (4 * width))
    low = [[f"1/{digits(rng, width)}" for _ in range(count)] for _ in "01"]
    return written(channel(2, count, lower=low))


@kind
def weights_and_constants_of_many_digits(rng: np.random.Generator, size: int) -> bytes:
    long = f"{digits(rng, size // 4)}/{digits(rng, size // 4)}"
    place = int(rng.integers(4))
    one = term(weights={"W": long}) if place == 0 else term(constant=[long, 0.0])
    if place == 2:
        one = term(cost=[[long, 0.0], [0.0, 0.0]])
    outcome = channel(objective=one)
    if place == 3:
        outcome = channel(auxiliaries={"a": {"kind": "ratio", "bound": [long, "0"]}})
    return written(outcome)


@kind
def entry_bounds_of_all_exponents(rng: np.random.Generator, size: int) -> bytes:
    count = max(2, size // 50)
    low = [10.0 ** rng.uniform(-320, -20, count) for _ in "01"]
    return written(channel(2, count, lower=[x.tolist() for x in low]))


@kind
def law_of_all_exponents(rng: np.random.Generator, size: int) -> bytes:
    count = max(2, size // 30)
    law = 10.0 ** rng.uniform(-300, 300, count)
    view = {"labels": [(np.arange(count) % 2).tolist()], "reference": None, "measure": INFORMATION}
    cost = [[0.0, 1.0]] * count
    rows = {"r": row(bound="0", term=term(cost=cost))}
    return written(channel(count, 2, law=[law.tolist()], views={"W": view}, rows=rows))


@kind
def scores_of_all_exponents(rng: np.random.Generator, size: int) -> bytes:
    count = max(2, size // 50)
    summary = channel(2, count)
    scores = rng.choice([1e308, -1e308, 1e4, 5e-324, 1e-300], (2, count))
    summary["dual"]["scores"] = {"W": scores.tolist()}
    return written(summary)


@kind
def exact_products(rng: np.random.Generator, size: int) -> bytes:
    """Tell in rationals whether a channel says anything: J = π q of a square program."""
    side = min(max(2, math.isqrt(size // 12)), 900)
    summary = channel(side, side, law=[rng.random(side).tolist()])
    k = rng.integers(1, 2**52, side)
    summary["primal"] = listed([k.tolist()] * side, int(k.sum()))
    return written(summary)


@kind
def large_covariance(rng: np.random.Generator, size: int) -> bytes:
    side = min(max(2, math.isqrt(size // 2)), 2000)
    gamma = (np.ones((side, side), int) + 2 * side * np.eye(side, dtype=int)).tolist()
    return written(covariance(gamma, list(range(1, min(side, 1 + int(10 ** rng.uniform(0, 3)))))))


@kind
def indefinite_covariance(rng: np.random.Generator, size: int) -> bytes:
    """No precision proves it positive definite."""
    side = min(max(3, math.isqrt(size // 2)), 2000)
    gamma = np.ones((side, side), int)
    gamma += np.eye(side, dtype=int) * (np.arange(side) < side - 2)
    return written(covariance(gamma.tolist(), list(range(1, side))))


@kind
def diagonal_covariance(rng: np.random.Generator, size: int) -> bytes:
    side = min(max(3, math.isqrt(size // 4)), 1500)
    return written(covariance(diagonal([1] * side), list(range(1, side))))


@kind
def covariance_of_many_digits(rng: np.random.Generator, size: int) -> bytes:
    side = int(rng.integers(2, 9))
    width = min(3900, max(2, size // (2 * side * side)))
    gamma = [[f"1/{digits(rng, width)}" for _ in range(side)] for _ in range(side)]
    for i in range(side):
        gamma[i][i] = f"{9 + i}{digits(rng, width)}/{digits(rng, width)}"
        for j in range(i):
            gamma[i][j] = gamma[j][i]
    summary = covariance(gamma, list(range(1, side)))
    part = [[gamma[i][j] for j in range(1, side)] for i in range(1, side)]
    lower = [[x if j <= i else 0 for j, x in enumerate(line)] for i, line in enumerate(part)]
    summary["dual"]["parts"][""] = {"root": lower, "middle": part}
    summary["primal"] = {"root": lower, "middle": part}
    return written(summary)


@kind
def large_fractions_in_large_covariance(rng: np.random.Generator, size: int) -> bytes:
    width = int(10 ** rng.uniform(1, 3))
    side = max(2, math.isqrt(size // (2 * width)))
    off = [f"1/{digits(rng, width)}" for _ in range(side)]
    gamma = [[off[i + j - side] for j in range(side)] for i in range(side)]
    for i in range(side):
        gamma[i][i] = f"{4 * side}/1"
    return written(covariance(gamma, list(range(1, side))))


@kind
def many_gaussian_views(rng: np.random.Generator, size: int) -> bytes:
    side = int(rng.integers(3, 30))
    gamma = (np.ones((side, side), int) + side * np.eye(side, dtype=int)).tolist()
    view = {"of": list(range(1, side)), "reference": "conditional"}
    views = {f"v{i}": view for i in range(max(1, size // (50 + 4 * side)))}
    summary = covariance(gamma, list(range(1, side)), given=[])
    summary["program"]["views"] |= views
    return written(summary)


@kind
def many_gaussian_rows(rng: np.random.Generator, size: int) -> bytes:
    side = int(rng.integers(3, 20))
    gamma = (np.ones((side, side), int) + side * np.eye(side, dtype=int)).tolist()
    cost = diagonal([1.0] * (side - 1))
    count = max(1, size // (2 * side * side + 150))
    rows = {f"r{i}": row(term=term(cost=cost, weights={"W": 1.0})) for i in range(count)}
    caps = {f"c{i}": diagonal([side * 2.0] * (side - 1)) for i in range(count)}
    which = {"rows": rows} if rng.random() < 0.5 else {"caps": caps}
    summary = covariance(gamma, list(range(1, side)), **which)
    summary["dual"]["multipliers"] = dict.fromkeys(which.get("rows", {}), 1.0)
    return written(summary)


@kind
def multipliers_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    """Of many rows of one view: their sum has as many digits as the file."""
    count = max(8, size // 2200)
    rows = {f"r{i}": row(term=term(weights={"W": 1.0})) for i in range(count)}
    summary = covariance([[2, 1], [1, 2]], [1], rows=rows)
    summary["dual"]["multipliers"] = {name: f"1/{digits(rng, 1999)}" for name in rows}
    return written(summary)


@kind
def weights_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    count = max(8, size // 2200)
    long = (f"1/{digits(rng, 1999)}" for _ in range(count))
    rows = {f"r{i}": row(term=term(weights={"W": x})) for i, x in enumerate(long)}
    summary = covariance([[2, 1], [1, 2]], [1], rows=rows)
    summary["dual"]["multipliers"] = dict.fromkeys(rows, 1.0)
    return written(summary)


@kind
def gaussian_costs_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    count = max(8, size // 2200)
    long = (f"1/{digits(rng, 1999)}" for _ in range(count))
    rows = {f"r{i}": row(term=term(cost=[[x]])) for i, x in enumerate(long)}
    summary = covariance([[2, 1], [1, 2]], [1], rows=rows)
    summary["dual"]["multipliers"] = dict.fromkeys(rows, 1.0)
    return written(summary)


@kind
def channel_weights_that_are_coprime(rng: np.random.Generator, size: int) -> bytes:
    count = min(max(8, size // 2100), 400)
    view = {"labels": [[0, 1]], "reference": None, "measure": INFORMATION}
    views = {f"v{i}": view for i in range(count)}
    weights = {name: f"1/{digits(rng, 1999)}" for name in views}
    return written(channel(2, 2, views=views, objective=term(weights=weights)))


@kind
def many_centred_views(rng: np.random.Generator, size: int) -> bytes:
    """Relative entropies of one law r, the greatest of them minimised, at many outputs."""
    letters = int(rng.integers(2, 40))
    count = max(2, size // (6 * letters + 250))
    labels = [[i % letters for i in range(count)], [letters] * count]
    measure = {"kind": "relative entropy"}
    views = {
        f"v{i}": {
            "labels": [[0 if s == one else 1 if s == last else -1 for s in range(letters + 1)]],
            "reference": None, "measure": measure,
        }
        for i, (one, last) in enumerate(zip(*labels, strict=True))
    }  # fmt: skip
    outputs = int(10 ** rng.uniform(0, 5.5))
    objective = {"worst": {name: term(weights={name: 2.0}) for name in views}}
    outcome = channel(letters + 1, outputs, views=views, objective=objective)
    outcome["program"]["law"] = [[1.0] * letters + [float(letters)]]
    outcome["dual"]["scores"] = {name: [[float(rng.normal())] * 3] for name in views}
    outcome["dual"]["shares"] = dict.fromkeys(views, 1.0 / count)
    return written(outcome)


@kind
def outputs_of_a_general_plan(rng: np.random.Generator, size: int) -> bytes:
    """Distances between values that lie on no line, and a score for each output."""
    values = min(max(3, math.isqrt(size // 8)), 120)
    outputs = max(2, min(size // (12 * values), 1000))
    ground = rng.integers(50, 100, (values, values))
    np.fill_diagonal(ground, 0)
    measure = {"kind": "transport", "ground": ground.tolist()}
    view = {"labels": [list(range(values))], "reference": None, "measure": measure}
    summary = channel(values, outputs, views={"W": view})
    summary["dual"]["scores"] = {"W": rng.integers(0, 5, (values, outputs)).astype(float).tolist()}
    summary["primal"] = listed(rng.integers(1, 99, (values, outputs)).tolist(), 1)
    return written(summary)


@kind
def letters_times_outputs(rng: np.random.Generator, size: int) -> bytes:
    """A file of n numbers that asks for n² costs."""
    letters = max(2, size // 40)
    view = {"labels": [[i % 2 for i in range(letters)]], "reference": None, "measure": INFORMATION}
    part = {
        "table": [[0.0, 1.0]],
        "rows": [0] * letters,
        "columns": [i % 2 for i in range(letters)],
    }
    outcome = channel(letters, letters, views={"W": view}, objective=term(cost={"parts": [part]}))
    return written(outcome)


@kind
def a_level_of_many_digits(rng: np.random.Generator, size: int) -> bytes:
    """Of a Hamming program."""
    width = int(10 ** rng.uniform(1, 3.6))
    law = rng.random(max(2, size // 25)).tolist()
    level, budget = (f"1/{digits(rng, width)}" for _ in range(2))
    program = {"kind": "hamming", "law": law, "budget": budget, "units": "nats"}
    return written(document(program, {"level": level}, {"level": level, "objective": 1}))


@kind
def a_law_without_end(rng: np.random.Generator, size: int) -> bytes:
    """Of a Hamming program: masses of all exponents have a sum of many bits."""
    law = (10.0 ** rng.uniform(-300, 300, max(2, size // 25))).tolist()
    program = {"kind": "hamming", "law": law, "budget": "1/3", "units": "bits"}
    return written(document(program, {"level": "1/7"}, {"level": "1/7", "objective": 1}))


def filled(variances: list[Any], gains: list[Any] | None, level: str) -> bytes:
    """Return a document of water up to a level."""
    program = {"kind": "water", "gains": gains, "variances": variances}
    program |= {"budget": "1/3", "units": "bits"}
    return written(document(program, {"level": level}, {"level": level, "objective": 1}))


@kind
def boxes_and_a_level_of_many_digits(rng: np.random.Generator, size: int) -> bytes:
    width = int(10 ** rng.uniform(1, 3.6))
    variances, gains = (rng.exponential(size=max(1, size // 90)).tolist() for _ in range(2))
    return filled(variances, gains, f"{digits(rng, width)}/{digits(rng, width)}")


@kind
def boxes_of_coprime_fractions(rng: np.random.Generator, size: int) -> bytes:
    """Sums, reciprocals and products of them have as many digits as the file."""
    width = int(10 ** rng.uniform(0.5, 3.3))
    numbers = [f"{digits(rng, width)}/{digits(rng, width)}" for _ in range(size // (4 * width) + 1)]
    return filled(numbers, numbers if rng.random() < 0.7 else None, "1/2")


@kind
def boxes_of_one_hash(rng: np.random.Generator, size: int) -> bytes:
    """Numbers that differ by multiples of 2⁶¹ − 1, as text: of one hash once they are read."""
    count = max(1, size // 60)
    numbers = [str(k * (2**61 - 1) + 5) for k in range(1, count + 1)]
    kind = int(rng.integers(3))
    gains = None if kind == 0 else [f"1/{number}" for number in numbers]
    if kind == 2 and gains is not None:  # what is many shows only beyond the first
        gains[: count // 2] = ["1/7"] * (count // 2)
    return filled(numbers, gains, str(10 ** int(rng.integers(15, 40))))


@kind
def covariance_of_one_hash(rng: np.random.Generator, size: int) -> bytes:
    """Denominators that differ by multiples of 2⁶¹ − 1."""
    n = max(2, math.isqrt(size // 30))
    entries = iter(range(1, n * n + 1))
    gamma = [[f"1/{next(entries) * (2**61 - 1)}" for _ in range(n)] for _ in range(n)]
    return written(covariance(gamma, list(range(n))))


@kind
def boxes_of_powers_of_two(rng: np.random.Generator, size: int) -> bytes:
    """Fractions with a common denominator just short of what is tried."""
    powers = rng.integers(0, 6_600, max(1, size // 1_200)).tolist()
    return filled([f"3/{2**power}" for power in powers], None, f"1/{2**6_000}")


@kind
def axes_of_large_covariance(rng: np.random.Generator, size: int) -> bytes:
    n, width = max(2, math.isqrt(size // 70)), int(rng.integers(1, 20))
    gamma = diagonal([digits(rng, width) for _ in range(n)])
    axes, ones = rng.normal(size=(n, n)).tolist(), [1.0] * n
    program = {"kind": "spectral", "covariance": gamma, "budget": "1/3", "units": "bits"}
    dual = {"axes": axes, "precisions": ones, "price": 0.5, "objective": 1}
    return written(document(program, {"axes": axes, "removed": ones}, dual))


@kind
def deep(rng: np.random.Generator, size: int) -> bytes:
    depth = int(10 ** rng.uniform(1, math.log10(max(size // 2, 11))))
    place = rng.choice(["table", "dual", "primal", "claim", "program"])
    left, right = ("[", "]") if rng.random() < 0.5 else ('{"a":', "}")
    text = json.dumps({**channel(), place: 0}).replace(f'"{place}": 0', f'"{place}": @')
    return text.replace("@", left * depth + "1" + right * depth).encode()


@kind
def long_strings(rng: np.random.Generator, size: int) -> bytes:
    summary, text = channel(), rng.choice(["x", "9", "é", "\n", "/"]) * size
    place = int(rng.integers(8))
    if place == 0:
        summary["software"] = text
    elif place == 1:
        summary["program"]["rows"] = {text[: size // 2]: row(bound=text[: size // 2])}
    elif place == 2:
        summary["claim"]["lower"] = text
    elif place == 3:
        summary["program"]["units"] = text
    elif place == 4:
        summary["program"]["kind"] = text
    elif place == 5:
        summary["schema"] = text
    elif place == 6:
        summary["claim"]["status"] = text
    else:
        summary["primal"]["numerators"] = [[text], [1]]
    return written(summary)


@kind
def huge_numbers(rng: np.random.Generator, size: int) -> bytes:
    number = rng.choice(["1e999999999", "9" * 4200, "9" * min(size, 10**6), "1e-999999999"])
    number = rng.choice([number, "-" + number, "NaN", "Infinity"])
    places = ['"outputs": 2', '"denominator": 1', '"lower": -1000000.0', '"constant": [0.0, 0.0]']
    place = str(rng.choice(places))
    key = place.split(":")[0]
    value = f"[{number}, 0]" if "[" in place else number
    return json.dumps(channel()).replace(place, f"{key}: {value}", 1).encode()


@kind
def keys_twice(rng: np.random.Generator, size: int) -> bytes:
    name = rng.choice(["schema", "program", "dual", "claim", "sha256"])
    text = written(channel()).decode()
    return (text[:-1] + f',"{name}":' + "0" * 1 + "}").encode()


@kind
def a_key_many_times(rng: np.random.Generator, size: int) -> bytes:
    return b"{" + b'"a":1,' * (size // 6) + b'"a":1}'


@kind
def not_utf8(rng: np.random.Generator, size: int) -> bytes:
    return rng.choice([b"\xff\xfe", b"\x00", b"\xef\xbb\xbf", b"\xc3"]) + written(channel()) * (
        size // 2000 + 1
    )


@kind
def truncated(rng: np.random.Generator, size: int) -> bytes:
    outcome = written(channel(max(2, size // 50)))
    return outcome[: int(rng.integers(len(outcome)))]


@kind
def noise(rng: np.random.Generator, size: int) -> bytes:
    return rng.integers(0, 256, size, dtype=np.uint8).tobytes()


@kind
def no_object(rng: np.random.Generator, size: int) -> bytes:
    return bytes(
        rng.choice([b"", b"[]", b"1", b"null", b'"x"', b"[" + b"1," * (size // 2) + b"1]"])
    )


# ---- the campaign ------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What a process did with a file."""

    kind: str
    size: int
    code: int
    seconds: float
    bytes: int
    output: str

    @property
    def starved(self) -> str:
        """What is wrong with it; empty if nothing is."""
        if "Traceback" in self.output:
            return "traceback"
        if self.code not in (0, 1, 2):
            return f"ended by {self.code}"
        if "MemoryError" in self.output:
            return "out of memory"
        return ""


# The verifier limits itself before it starts, and says at its end how much memory it held: what a
# parent sees of a child's memory includes the parent's own, from which the child was forked.
WATCHED = f"""
import atexit, resource, runpy, sys
path, place = sys.argv[1:]
def held():
    with open("/proc/self/status") as lines, open(place, "w") as out:
        out.write(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
atexit.register(held)
resource.setrlimit(resource.RLIMIT_AS, ({SPACE + 2**28},) * 2)
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS},) * 2)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.argv[1:] = [path]
runpy.run_module("cvxprivacy_verifier", run_name="__main__", alter_sys=True)
"""


def watched(path: Path) -> tuple[int, float, int, str]:
    """Run the verifier on a file; return its exit code, processor time, memory and output."""
    held = path.with_suffix(".held")
    command = [sys.executable, "-c", WATCHED, str(path), str(held)]
    with tempfile.TemporaryFile() as message:
        process = subprocess.Popen(command, stdout=message, stderr=message)
        _, state, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(state)
        message.seek(0)
        text = message.read().decode(errors="replace")
    memory = int(held.read_text()) if held.exists() else used.ru_maxrss
    return process.returncode, used.ru_utime + used.ru_stime, memory * 1024, text


def made(rng: np.random.Generator, name: str, size: int) -> bytes:
    """Return a file of a kind that is no larger than any is meant to be."""
    while len(text := KINDS[name](rng, size)) > MOST:
        size //= 2
    return text


def offered(rng: np.random.Generator, name: str, size: int) -> Seen:
    """Write a file of a kind, and watch the verifier read it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        path.write_bytes(made(rng, name, size))
        code, seconds, used, text = watched(path)
        return Seen(name, path.stat().st_size, code, seconds, used, text)


def sizes(rng: np.random.Generator, index: int) -> int:
    """Return a size: every twentieth as large as any, mostly small ones otherwise."""
    return int(MOST * 0.95 if index % 20 == 19 else 10 ** rng.uniform(1, 5.7))


def campaign(count: int, seed: int = 0, first: int = 0) -> Tally:
    """Offer so many files, each kind in turn, numbers ``first`` on."""
    tally, names = Tally(), list(KINDS)
    for index in range(first, first + count):
        rng = np.random.default_rng([seed, index])
        outcome = offered(rng, names[index * 7 % len(names)], sizes(rng, index))
        tally.tried += 1
        tally.verified += outcome.code == 0
        tally.slowest = max(tally.slowest, (outcome.seconds, outcome.kind))
        tally.largest = max(tally.largest, (outcome.bytes, outcome.kind))
        if outcome.starved:
            text = f"{outcome.seconds:.1f} s, {outcome.bytes / 2**20:.0f} MiB"
            tally.false.append(
                f"trial {index} ({outcome.kind}, {outcome.size} bytes): {outcome.starved}, {text}"
            )
        else:
            tally.refusals[f"exit {outcome.code}"] += 1
    return tally
