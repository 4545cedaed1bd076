"""Write what 300 problems and 60 commands come to, and compare two such files bit for bit.

    python benchmarks/same_results.py write before.json
    python benchmarks/same_results.py compare before.json after.json

Of a problem: its value and proved ends, prices, multipliers and release, to the last bit, or what
it was refused for.  Of a command: its exit code, and sums of what it printed and of the files that
it wrote, but for paths, times and what is drawn anew each time.  The same numbers on the same
machine show that a change of structure changed nothing else.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of which results may depend in the last bit

import argparse
import hashlib
import io
import json
import math
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cvxprivacy as cpv

try:
    import cvxprivacy_sdc as sdc
except ImportError:  # files and tables were rooms of the core
    sdc = cpv

ADULT = Path(__file__).resolve().parents[1] / "tests" / "data" / "adult" / "adult.csv"
COMMAND = Path(sys.executable).with_name("cvxprivacy")
Problems = Iterator[tuple[str, Callable[[], Any]]]
L = cpv.leakage

# ---- problems ----------------------------------------------------------------------------

COUNTS = np.array([[9, 2, 1, 3], [1, 4, 8, 2], [2, 3, 1, 6]])
BANDS = cpv.DiscreteSource.from_counts(COUNTS)
PAIR = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
THREE = cpv.DiscreteSource([[1 / 3, 1 / 6, 0.0], [0.0, 1 / 6, 1 / 3]])  # with zeros
SKEWED = cpv.DiscreteSource(np.random.default_rng(1).dirichlet(np.full(12, 0.4)).reshape(2, 6))
LARGE = cpv.DiscreteSource.from_counts(np.random.default_rng(2).integers(1, 40, (4, 12)))
SOURCES = {"bands": BANDS, "pair": PAIR, "three": THREE, "skewed": SKEWED, "large": LARGE}
SIDE = {
    "known": cpv.DiscreteSource.from_counts(
        np.random.default_rng(3).integers(1, 9, (2, 3, 2)).astype(float)
    ),
    "floats": cpv.DiscreteSource(np.random.default_rng(4).dirichlet(np.ones(12)).reshape(2, 3, 2)),
}
MEASURES = {
    "information": L.MutualInformation(), "chi": L.ChiSquared(), "hellinger": L.SquaredHellinger(),
    "le cam": L.VinczeLeCam(), "jensen": L.JensenShannon(), "power": L.PowerDivergence(1.5),
    "own f": L.FInformation([(1, 1, 1, 0, 0.5, 0.5), (2, 2, 1, -3, 1, 1)]),
    "variation": L.TotalVariation(), "hockey": L.HockeyStick(1.5), "mover": L.EarthMover(),
    "guess": L.GuessingProbability(), "gain": L.Gain([[1, 0, 0], [0, 1, 1], [0.5, 0.5, 0]]),
    "sibson": L.Sibson(2), "maximal": L.Maximal("W"),
}  # fmt: skip
CRITERIA = {
    "t": lambda n: cpv.TCloseness(0.08), "emd": lambda n: cpv.TCloseness(0.1, distance="emd"),
    "tv": lambda n: cpv.TCloseness(0.12, distance="tv"), "l": lambda n: cpv.LDiversity(1.8),
    "delta": lambda n: cpv.DeltaDisclosure(0.7), "cap": lambda n: cpv.LeakageCap(0.07),
    "cap of guesses": lambda n: cpv.LeakageCap(0.55, leakage=L.GuessingProbability()),
    "capacity": lambda n: cpv.CapacityCap(0.1), "local": lambda n: cpv.LocalPrivacy(1.2),
    "local but for": lambda n: cpv.LocalPrivacy(0.8, delta=0.05),
    "metric": lambda n: cpv.LocalPrivacy(0.6, metric=cpv.absolute_error(range(n))),
    "maximal": lambda n: cpv.MaximalLeakage(0.9),
    "pointwise": lambda n: cpv.PointwiseMaximalLeakage(0.4),
    "information": lambda n: cpv.LocalInformationPrivacy(0.5),
    "perfect": lambda n: cpv.PerfectPrivacy(),
    "letter": lambda n: cpv.PerLetter(L.TotalVariation(), 0.15),
    "letter chi": lambda n: cpv.PerLetter(L.ChiSquared(), 0.1),
    "records": lambda n: cpv.RecordEntropy(14), "keep": lambda n: cpv.KeepProbability(0.6),
    "keep each": lambda n: cpv.KeepProbability(np.linspace(0.2, 0.7, n)),
    "forbidden": lambda n: cpv.ForbiddenMoves(np.eye(n, k=1, dtype=bool)),
    "marginal": lambda n: cpv.PreserveMarginal(), "near": lambda n: cpv.MarginalDistance(0.05),
    "mean": lambda n: cpv.PreserveMean(range(n)),
    "linear": lambda n: cpv.Linear(np.eye(n), 0.55, sense="<="),
    "conditional": lambda n: cpv.ConditionalLeakageCap(0.05),
}  # fmt: skip
DESIGN = ("keep", "keep each", "forbidden", "marginal", "near", "mean", "linear", "conditional")
GAUSSIAN = [
    [2.0, 1.0, 0.5, 0.2], [1.0, 2.0, 0.25, 0.1], [0.5, 0.25, 1.0, 0.3], [0.2, 0.1, 0.3, 1.0],
]  # fmt: skip
DEPENDENT = [[2, 1, 1, 2], [1, 2, 1, 2], [1, 1, 2, 3], [2, 2, 3, 5]]


def uneven(n: int) -> np.ndarray:
    places = np.arange(float(n))
    return np.abs(np.subtract.outer(places, places)) * (1 + np.eye(n, k=1))


def least_leakage() -> Problems:
    """Yield programs of a budget or a price: sources, costs, measures, encoders, units."""
    for (name, source), share, units in product(
        SOURCES.items(), (0, 0.1, 0.4, 2), ("bits", "nats")
    ):
        d = uneven(len(source.x))
        yield (
            f"budget {name} {share} {units}",
            lambda s=source, d=d, b=share, u=units: cpv.PrivacyDistortion(s, d, budget=b, units=u),
        )
    for (name, source), price in product(SOURCES.items(), (0.05, 1, 2.5)):
        d = cpv.hamming(len(source.x))
        yield (
            f"price {name} {price}",
            lambda s=source, d=d, p=price: cpv.PrivacyDistortion(s, d, price=p),
        )
    for (name, measure), encoder in product(MEASURES.items(), ("x", "wx")):
        yield (
            f"measure {name} {encoder}",
            lambda m=measure, e=encoder: cpv.PrivacyDistortion(
                BANDS, uneven(4), budget=0.3, leakage=m, encoder=e
            ),
        )
    for name, measure in MEASURES.items():
        if name != "gain":  # of three values
            yield (
                f"measure {name} of many",
                lambda m=measure: cpv.PrivacyDistortion(
                    LARGE, cpv.ordinal(12), budget=Fraction(1, 3), leakage=m
                ),
            )
    for w, x, y in ((2, 3, 3), (2, 3, 2)):
        seen = np.random.default_rng(5).random((w, x, y))
        yield f"cost of w {y}", lambda d=seen: cpv.PrivacyDistortion(PAIR, d, budget=0.4)
        yield (
            f"cost of w, seen {y}",
            lambda d=seen: cpv.PrivacyDistortion(PAIR, d, budget=0.4, encoder="wx"),
        )
    for share in (0.05, 0.2):
        same = cpv.DiscreteSource.identical([0.4, 0.3, 0.2, 0.1])
        yield (
            f"identical {share}",
            lambda s=same, b=share: cpv.PrivacyDistortion(s, cpv.hamming(4), budget=b),
        )
        yield (
            f"any prior {share}",
            lambda b=share: cpv.PrivacyDistortion(PAIR, cpv.hamming(3), budget=b, prior="any"),
        )


def criteria() -> Problems:
    """Yield programs under each criterion, and under some pairs."""
    for name, rule in CRITERIA.items():
        for encoder, units, source in (
            ("x", "bits", BANDS),
            ("wx", "bits", BANDS),
            ("x", "nats", PAIR),
        ):
            if (name, encoder) == ("local but for", "wx"):
                continue  # a minute
            n = len(source.x)
            how = {"criteria": [rule(n)], "encoder": encoder, "units": units}
            if name in DESIGN:
                how["budget"] = 0.9 if source is BANDS else 0.25
            kind = cpv.PrivacyDistortion if name in DESIGN else cpv.MinimumDistortion
            yield (
                f"under {name} {encoder} {units}",
                lambda k=kind, s=source, n=n, h=how: k(s, uneven(n), **h),
            )
    for name in ("t", "delta"):
        yield (
            f"budget under {name}",
            lambda r=CRITERIA[name]: cpv.PrivacyDistortion(
                PAIR, cpv.hamming(3), budget=0.3, criteria=[r(3)]
            ),
        )
    pairs = (("t", "keep"), ("delta", "marginal"), ("cap", "near"), ("local", "l"), ("emd", "mean"))
    for one, other in pairs:
        yield (
            f"least under {one} and {other}",
            lambda a=one, b=other: cpv.MinimumDistortion(
                BANDS, cpv.ordinal(4), [CRITERIA[a](4), CRITERIA[b](4)]
            ),
        )
    yield (
        "no release",
        lambda: cpv.PrivacyDistortion(
            PAIR, cpv.hamming(3), budget=0.01, criteria=[cpv.LeakageCap(0.01)]
        ),
    )


def more_laws() -> Problems:
    """Yield programs of several laws, and after earlier releases."""
    later = cpv.DiscreteSource.from_counts(COUNTS[:, ::-1] + 2)
    laws = {"2025": later, "2026": cpv.DiscreteSource.from_counts(COUNTS + 5)}
    for count, share in product((1, 2), (0.2, 0.5)):
        some = dict(list(laws.items())[:count])
        yield (
            f"laws {count} {share}",
            lambda o=some, b=share: cpv.PrivacyDistortion(BANDS, uneven(4), budget=b, laws=o),
        )
    for name in ("t", "delta", "cap", "maximal"):
        yield (
            f"laws under {name}",
            lambda n=name: cpv.MinimumDistortion(BANDS, uneven(4), [CRITERIA[n](4)], laws=laws),
        )
    for share, remember in product((0.2, 0.5), (True, False)):
        yield (
            f"after {share} {remember}",
            lambda b=share, r=remember: cpv.PrivacyDistortion(
                BANDS, uneven(4), b, after=first(), remember=r
            ),
        )
    for name in ("t", "delta", "local"):
        yield (
            f"after under {name}",
            lambda n=name: cpv.MinimumDistortion(BANDS, uneven(4), [CRITERIA[n](4)], after=first()),
        )


def first() -> Any:
    return cpv.PrivacyDistortion(BANDS, uneven(4), 0.5).solve().channel


def regions() -> Problems:
    """Yield rate, distortion and equivocation, with and without side information."""
    aims = {"rate": {"max_leakage": 0.1}, "leakage": {"max_rate": 0.8}}
    for (aim, rules), (name, source) in product(aims.items(), SOURCES.items()):
        if name == "large":
            continue
        d = uneven(len(source.x))
        yield (
            f"{aim} {name}",
            lambda s=source, d=d, a=aim, r=rules: cpv.RateDistortionEquivocation(
                s, d, 0.6, minimize=a, **r
            ),
        )
    for name, source in (("bands", BANDS), ("pair", PAIR)):
        d = uneven(len(source.x))
        yield (
            f"distortion {name}",
            lambda s=source, d=d: cpv.RateDistortionEquivocation(
                s, d, minimize="distortion", max_leakage=0.05
            ),
        )
    for (name, source), known, aim, encoder in product(
        SIDE.items(), ("decoder", "both"), ("rate", "leakage", "sum"), ("x", "wx")
    ):
        minimize = {"rate": 1.0, "leakage": 0.5} if aim == "sum" else aim
        yield (
            f"{aim} {name} {known} {encoder}",
            lambda s=source, k=known, m=minimize, e=encoder: cpv.RateDistortionEquivocation(
                s, cpv.hamming(3), 0.2, minimize=m, side_information=k, encoder=e
            ),
        )


def gaussians() -> Problems:
    """Yield programs over covariances, and closed forms."""
    plain = cpv.GaussianSource(GAUSSIAN, sensitive=[0], key=[1, 2])
    known = cpv.GaussianSource(GAUSSIAN, sensitive=[0], key=[1, 2], side=[3])
    singular = cpv.GaussianSource(DEPENDENT, sensitive=[0], key=[2, 3], side=[1])
    named = cpv.GaussianSource(
        GAUSSIAN, sensitive=["w"], key=["a", "b"], names=["w", "a", "b", "z"]
    )
    cap = np.array([[0.9, 0.1], [0.1, 0.4]])
    asked = {
        "plain": (plain, 0.8, {}), "little": (plain, 0.05, {}), "much": (plain, 2.9, {}),
        "scalar": (cpv.GaussianSource.scalar(0.95), 0.5, {}),
        "nats": (plain, 0.8, {"weights": [1.0, 2.5], "units": "nats"}),
        "cap": (plain, 1.0, {"cap": cap}), "named": (named, {"a": 0.7, "b": 0.3}, {}),
        "singular": (singular, Fraction(1, 3), {}),
        "entropy": (singular, Fraction(1, 3), {"entropy": 1}),
    }  # fmt: skip
    for name, (source, bound, more) in asked.items():
        yield f"Gaussian {name}", lambda s=source, b=bound, m=more: cpv.QuadraticGaussian(s, b, **m)
    for aim, known_by, encoder in product(
        ("rate", "leakage"), (None, "both", "decoder"), ("x", "wx")
    ):
        source = plain if known_by is None else known
        yield (
            f"Gaussian {aim} {known_by} {encoder}",
            lambda s=source, a=aim, k=known_by, e=encoder: cpv.GaussianEquivocation(
                s, 0.8, minimize=a, side_information=k, encoder=e
            ),
        )
    yield (
        "Gaussian rate capped",
        lambda: cpv.GaussianEquivocation(known, 0.8, max_leakage=0.5, side_information="both"),
    )
    for budget in (0.05, 0.3, 0.9):
        yield f"letters {budget}", lambda b=budget: cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], b)
    yield "letters counted", lambda: cpv.HammingWaterFilling.from_counts([4, 3, 2, 1], 0.2)
    yield (
        "letters in nats",
        lambda: cpv.HammingWaterFilling.from_counts(range(1, 60), Fraction(1, 7), units="nats"),
    )
    for budget in (0.5, 2, 6):
        yield f"water {budget}", lambda b=budget: cpv.ReverseWaterFilling([0.5, 1.0, 4.0], b)
    yield "water of a matrix", lambda: cpv.ReverseWaterFilling([[2, 1], [1, 2]], 1)
    for total in (0.3, 1.2, 2.5):
        yield f"boxes {total}", lambda t=total: cpv.BoxWaterFilling([0.5, 1, 4], np.ones(3), t)


def useful() -> Problems:
    """Yield the most useful releases."""
    rules = {
        "local": cpv.LocalPrivacy(0.7), "pointwise": cpv.PointwiseMaximalLeakage(0.4),
        "delta": cpv.DeltaDisclosure(0.5), "information": cpv.LocalInformationPrivacy(0.3),
    }  # fmt: skip
    measures = {k: MEASURES[k] for k in ("information", "chi", "variation")}
    for (name, rule), (kind, measure) in product(rules.items(), measures.items()):
        yield (
            f"useful {name} {kind}",
            lambda r=rule, m=measure: cpv.MostUsefulRelease(PAIR, [r], utility=m),
        )
    yield (
        "useful within a budget",
        lambda: cpv.MostUsefulRelease(
            PAIR, [cpv.LocalPrivacy(1)], distortion=cpv.hamming(3), budget=0.45
        ),
    )
    yield "useful about w", lambda: cpv.MostUsefulRelease(PAIR, [cpv.LocalPrivacy(1)], about="w")


def tables() -> Problems:
    """Yield tables of whole counts."""
    small = cpv.DiscreteSource.from_counts([[1, 3, 6, 2], [2, 1, 4, 5]])
    asked = {
        "k": [cpv.KAnonymity(4)], "k, delta": [cpv.KAnonymity(3), cpv.DeltaDisclosure(0.8)],
        "tv": [cpv.TCloseness(0.15, distance="tv")], "t": [cpv.TCloseness(0.2)],
        "delta": [cpv.DeltaDisclosure(0.6)],
    }  # fmt: skip
    for (name, rules), encoder in product(asked.items(), ("x", "wx")):
        yield (
            f"table {name} {encoder}",
            lambda r=rules, e=encoder: sdc.WholeCounts(small, cpv.ordinal(4), r, encoder=e),
        )
    yield (
        "table within a budget",
        lambda: sdc.WholeCounts(small, cpv.hamming(4), budget=0.25, encoder="wx"),
    )


def refused() -> Problems:
    """Yield what nobody can state."""
    yield "refused: shape", lambda: cpv.PrivacyDistortion(PAIR, cpv.hamming(4), budget=0.1)
    yield "refused: sign", lambda: cpv.PrivacyDistortion(PAIR, cpv.hamming(3), budget=-0.1)
    yield (
        "refused: measure",
        lambda: cpv.PrivacyDistortion(PAIR, cpv.hamming(3), budget=0.1, leakage="nothing"),
    )


KINDS = (
    least_leakage, criteria, more_laws, regions, gaussians, useful, tables, refused,
)  # fmt: skip
ACCURATE = ("budget bands", "measure", "rate", "leakage", "Gaussian", "under t")
EVERY = 4  # of these, one in so many is solved to high accuracy


def bits(value: Any) -> Any:
    """Return a value as JSON, of floats each bit."""
    if isinstance(value, dict):
        return {str(name): bits(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return bits(value.tolist())
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    if isinstance(value, float):
        return float(value).hex()
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def price(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return bits(value)
    ends = (float(value), getattr(value, "lower", None), getattr(value, "upper", None))
    return [*bits(ends), getattr(value, "kind", None)]


def of_problem(make: Callable[[], Any], accuracy: str) -> dict[str, Any]:
    """Return what comes of a problem."""
    try:
        problem = make()
        high = {"accuracy": accuracy} if accuracy == "high" else {}
        solution = problem.solve(**high)
    except Exception as error:  # whatever it is, it has to stay so
        return {"error": f"{type(error).__name__}: {error}"}
    said = {"accuracy": accuracy, "status": solution.status}
    for name in ("value", "lower", "upper", "total", "counts", "joint", "duals", "posteriors"):
        said[name] = bits(getattr(solution, name, None))
    prices = getattr(solution, "prices", None) or {}
    said["prices"] = {name: price(value) for name, value in prices.items()}
    said["terms"] = {
        name: bits((float(term), term.lower, term.upper))
        for name, term in getattr(solution, "terms", {}).items()
    }
    channel = getattr(solution, "channel", None)
    said["channel"] = bits(getattr(channel, "matrix", None))
    said["covariance"] = bits(getattr(solution, "error_covariance", None))
    return said


# ---- commands ----------------------------------------------------------------------------

MARITAL = "adult.csv --sensitive marital-status --key age,sex --bins age=10 --seed 1 --out r.csv"
INCOME = "adult.csv --sensitive income --key age,sex --bins age=20 --seed 1 --out r.csv"
ALONE = "--no-untouched"
LAW = f"--ensure law {ALONE}"
WARD = "--sensitive ward --key age,sex --bins age=20 --budget 0.1 --seed 1"
ID = "id.csv --sensitive income --key age,sex --bins age=20 --row-id id"
FIRST = f"release {ID} --budget 0.2 --seed 7 --out r.csv --channel c.json {ALONE}"
COMMANDS = {
    "readme": [
        f"release {MARITAL} --distortion age=ordinal,sex=hamming --budget 0.1 --report p.html"
    ],
    "budget": [f"release {MARITAL} --budget 0.1 {ALONE}"],
    "json": [f"release {MARITAL} --budget 0.1 --json {ALONE}"],
    "dossier": [f"release {INCOME} --budget 0.1 --report p.json"],
    "encoder wx": [f"release {INCOME} --budget 0.1 --encoder wx {ALONE}"],
    "at most": [f"release {INCOME} --criterion LeakageCap=0.02 {ALONE}"],
    "at most guesses": [
        f"release {INCOME} --criterion LeakageCap=0.8:guessing-probability {ALONE}"
    ],
    "table": [f"release {INCOME} --criterion TCloseness=0.1 --criterion KAnonymity=10 {ALONE}"],
    "table wx": [f"release {INCOME} --criterion KAnonymity=15 --encoder wx {ALONE}"],
    "table drawn": [
        f"release {INCOME} --criterion KAnonymity=10 --draw balanced --budget 0.2 {ALONE}"
    ],
    "law": [f"release {INCOME} --criterion TCloseness=0.1 {LAW}"],
    "records": [f"release {INCOME} --criterion RecordEntropy=20 {LAW}"],
    "diversity": [f"release {INCOME} --criterion LDiversity=1.6 {LAW}"],
    "delta": [f"release {INCOME} --criterion DeltaDisclosure=0.5 {LAW}"],
    "local": [f"release {INCOME} --criterion LocalPrivacy=1.5 {LAW}"],
    "keep": [f"release {INCOME} --budget 0.5 --criterion KeepProbability=0.5 {ALONE}"],
    "near": [f"release {INCOME} --budget 0.2 --criterion MarginalDistance=0.02 {LAW}"],
    "conditional": [
        "release adult.csv --sensitive income --key age --bins age=20 --budget 0.1 --seed 1 "
        f"--out r.csv --encoder wx --criterion ConditionalLeakageCap=0.05 {LAW}"
    ],
    "chi": [f"release {INCOME} --budget 0.1 --leakage chi-squared {ALONE}"],
    "hockey": [f"release {INCOME} --budget 0.1 --leakage hockey-stick:1.5 {ALONE}"],
    "nats": [f"release {INCOME} --budget 0.1 --units nats {ALONE}"],
    "any prior": [f"release {INCOME} --budget 0.2 --prior any {ALONE}"],
    "any prior, capped": [f"release {INCOME} --criterion CapacityCap=0.05 {LAW}"],
    "suppress": [f"release {INCOME} --budget 0.1 --suppress 0.3 {ALONE}"],
    "suppress age": [f"release {INCOME} --budget 0.1 --suppress age=0.3 {ALONE}"],
    "shuffle": [f"release {INCOME} --budget 0.1 --shuffle {ALONE}"],
    "balanced": [f"release {INCOME} --budget 0.1 --draw balanced {ALONE}"],
    "drop": [f"release {INCOME} --budget 0.1 --drop fnlwgt,race"],
    "keep columns": [f"release {INCOME} --budget 0.1 --keep-columns race,workclass"],
    "weights": [f"release {INCOME} --budget 0.1 --weights fnlwgt {ALONE}"],
    "quantiles": ["release adult.csv --sensitive income --key age,sex --bins age=q4 --budget 0.1 "
                  f"--seed 2 --out r.csv {ALONE}"],
    "edges": ["release adult.csv --sensitive income,sex --key age --bins age=-inf:30:45:60:inf "
              f"--budget 0.1 --seed 2 --out r.csv {ALONE}"],
    "group": ["release adult.csv --sensitive income --key race --group race=groups.csv "
              f"--budget 0.1 --seed 2 --out r.csv {ALONE}"],
    "hierarchy": ["release adult.csv --sensitive income --key race --hierarchy race=tree.csv "
                  f"--level race=1 --budget 0.1 --seed 2 --out r.csv {ALONE}"],
    "top": ["release adult.csv --sensitive income --key occupation,sex --top occupation=3 "
            f"--budget 0.1 --seed 2 --out r.csv {ALONE}"],
    "cells": [f"release adult.csv --sensitive income --key age,education --cells 12 --budget 0.2 "
              f"--seed 2 --out r.csv {ALONE}"],
    "missing level": ["release adult.csv --sensitive income --key workclass --na ? --missing level "
                      f"--budget 0.1 --seed 2 --out r.csv {ALONE}"],
    "missing drop": ["release adult.csv --sensitive income --key workclass --na ? --missing drop "
                     f"--budget 0.1 --seed 2 --out r.csv {ALONE}"],
    "noise": ["release adult.csv --sensitive hours-per-week --key age,education-num --noise "
              "--budget 0.2 --seed 2 --out r.csv"],
    "proof": [
        f"release {INCOME} --budget 0.1 --certificate p.json --problem-out q.toml {ALONE}",
        "verify p.json --table adult.csv --problem q.toml", "solve q.toml",
    ],
    "apply": [FIRST, "apply c.json later.csv --row-id id --seed 7 --out s.csv"],
    "apply, ensured": [
        FIRST, "apply c.json later.csv --row-id id --seed 7 --out s.csv "
        "--criterion KAnonymity=60",
    ],
    "after": [
        FIRST, f"release {ID.replace('id.csv', 'later.csv')} --budget 0.1 --seed 7 --after r.csv "
        f"--after-channel c.json --out s.csv {ALONE}",
    ],
    "audit": [
        FIRST, "audit id.csv r.csv --sensitive income --key age,sex --bins age=20 "
        "--criterion TCloseness=0.3",
    ],
    "plan": ["plan adult.csv --sensitive income --key age,sex --bins age=20 --yes"],
    "infeasible": [
        f"release {INCOME} --criterion LeakageCap=0.001 --criterion KeepProbability=0.99 {LAW}"
    ],
    "misspelt": ["release adult.csv --sensitive incom --key age --budget 0.1 --out r.csv"],
    "text": [f"release t.csv {WARD} --out r.csv"],
    "text with semicolons": [f"release comma.csv {WARD} --decimal , --out r.csv {ALONE}"],
    "tabs": [f"release t.tsv {WARD} --out r.tsv {ALONE}"],
    "zipped text": [f"release t.csv.gz {WARD} --out r.csv.gz {ALONE}"],
    "parquet": [f"release t.parquet {WARD} --out r.parquet {ALONE}"],
    "workbook": [f"release t.xlsx {WARD} --out r.xlsx {ALONE}"],
    "SPSS": [f"release t.sav {WARD} --out r.sav {ALONE}"],
    "SPSS as Parquet": [f"release t.sav {WARD} --out r.parquet {ALONE}"],
    "Stata": [f"release t.dta {WARD} --out r.dta {ALONE}"],
    "SAS": [f"release t.xpt {WARD} --out r.xpt {ALONE}"],
}  # fmt: skip
TEXT = (".csv", ".tsv", ".toml", ".sh")
COMPARED = (*TEXT, ".gz", ".parquet", ".xlsx", ".sav", ".dta", ".xpt")  # the other have times


def inputs(folder: Path) -> None:
    """Write the tables that commands read."""
    import pyreadstat

    adult = pd.read_csv(ADULT, keep_default_na=False)
    (folder / "adult.csv").write_bytes(ADULT.read_bytes())
    adult.insert(0, "id", range(len(adult)))
    adult.to_csv(folder / "id.csv", index=False)
    adult[20:].to_csv(folder / "later.csv", index=False)
    races = sorted(set(adult["race"]))
    groups = ["white" if race == "White" else "not" for race in races]
    lines = [f"{race},{group}" for race, group in zip(races, groups, strict=True)]
    (folder / "groups.csv").write_text("\n".join(["value,group", *lines, ""]))
    tree = [f"{race};{group};*" for race, group in zip(races, groups, strict=True)]
    (folder / "tree.csv").write_text("\n".join([*tree, ""]))

    rng = np.random.default_rng(6)
    ward = rng.integers(0, 3, 300)
    frame = pd.DataFrame(
        {
            "ward": np.array(["east", "north", "west"])[ward],
            "age": 20 + 8 * ward + rng.integers(0, 40, 300),
            "sex": np.array(["f", "m"])[rng.integers(0, 2, 300)],
            "amount": rng.integers(0, 10_000, 300) / 8,
        }
    )
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "comma.csv", index=False, sep=";", decimal=",")
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_parquet(folder / "t.parquet", index=False)
    frame.to_excel(folder / "t.xlsx", index=False)
    labels = {name: f"Label of {name}" for name in frame}
    for ending, written in (("sav", "sav"), ("dta", "dta"), ("xpt", "xport")):
        path = folder / f"t.{ending}"
        getattr(pyreadstat, f"write_{written}")(frame, path, column_labels=labels)


def timeless(path: Path) -> bytes:
    """Return the bytes of a file without the times that its format has."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return data[:4] + data[8:]
    if path.suffix == ".sav":
        return data[:84] + data[101:]  # date and time of creation
    if path.suffix == ".dta":
        return re.sub(rb"\d\d \w{3} \d{4} \d\d:\d\d", b"", data[:500]) + data[500:]
    if path.suffix == ".xpt":
        return re.sub(rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"", data[:1000]) + data[1000:]
    if path.suffix != ".xlsx":
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        parts = [(n, book.read(n)) for n in book.namelist() if n != "docProps/core.xml"]
    return b"".join(name.encode() + part for name, part in parts)


def clean(text: str, folder: Path) -> str:
    """Return text without paths, times and sums."""
    text = text.replace(str(folder), "").replace(folder.name, "")
    text = re.sub(r"\b[0-9a-f]{64}\b", "SUM", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", "TIME", text)
    text = re.sub(r'("\w*seconds"): [\d.e+-]+', r"\1", text)
    return re.sub(r"\b\d+(\.\d+)? (s|ms|seconds)\b", "SECONDS", text)


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def of_command(lines: list[str]) -> dict[str, Any]:
    """Return what comes of commands, one after the other, in a folder of their own."""
    said: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        inputs(folder)
        given = {path.name for path in folder.iterdir()}
        for i, line in enumerate(lines):
            # COLUMNS: how wide what is printed may be
            how = {**os.environ, "COLUMNS": "100", "PYTHONWARNINGS": "ignore"}
            done = subprocess.run(
                [COMMAND, *line.split()], cwd=folder, env=how, capture_output=True, text=True,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            said[f"{i}: exit code"] = done.returncode
            for stream in ("stdout", "stderr"):
                text = clean(getattr(done, stream), folder)
                said[f"{i}: {stream}"] = sum_of(text.encode())
                if done.returncode and stream == "stderr":
                    said[f"{i}: error"] = text
        for path in sorted(folder.iterdir()):
            if path.name in given:
                continue
            compared = path.suffix in COMPARED
            data = timeless(path) if compared else b""
            if path.suffix in (".toml", ".sh"):
                data = clean(data.decode(), folder).encode()
            said[path.name] = sum_of(data) if compared else "written"
    return said


# ---- both --------------------------------------------------------------------------------


def write(out: Path) -> None:
    """Solve all, run all, and write what comes of it."""
    said: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        for name, make in kind():
            near = [n for n in said if n.startswith(ACCURATE)]
            high = name.startswith(ACCURATE) and len(near) % EVERY == 0
            assert name not in said, name
            said[name] = of_problem(make, "high" if high else "default")
    problems = len(said)
    for name, lines in COMMANDS.items():
        said[f"command: {name}"] = of_command(lines)
    out.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    print(f"{out}: {problems} problems, {len(COMMANDS)} commands")


def flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what stands at each place of nested tables and lists."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, each in items:
            yield from flat(each, f"{place}.{name}" if place else str(name))
    else:
        yield place, value


def number(value: Any) -> float | None:
    try:
        return float.fromhex(value) if "x" in value or value in ("inf", "-inf", "nan") else None
    except (TypeError, ValueError):
        return None


def difference(old: Any, new: Any) -> str:
    """Return how far two numbers are apart, relative to the larger one."""
    a, b = number(old), number(new)
    if a is None or b is None:
        return f"{old!r} became {new!r}"
    largest = max(abs(a), abs(b))
    apart = abs(a - b) / largest if math.isfinite(largest) else math.nan
    return f"{a!r} became {b!r}, relative difference {apart:.1e}"


def compare(before: Path, after: Path) -> int:
    """Print every difference; return 1 where there is one."""
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    nothing = "nothing"
    same = 0
    for name in [*old, *(name for name in new if name not in old)]:
        was, now = (dict(flat(said.get(name, {}))) for said in (old, new))
        same += was == now
        for place in [*was, *(place for place in now if place not in was)]:
            one, other = was.get(place, nothing), now.get(place, nothing)
            if one != other:
                print(f"{name}: {place}: {difference(one, other)}")
    count = len(old.keys() | new.keys())
    print(f"{same} of {count} are the same bit for bit")
    return int(same != count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("write").add_argument("out", type=Path)
    both = modes.add_parser("compare")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    typed = parser.parse_args()
    if typed.mode == "compare":
        return compare(typed.before, typed.after)
    write(typed.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
