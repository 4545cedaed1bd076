"""Beside ARX, in Java: whether a table, generalised to given levels, satisfies a privacy model."""

from __future__ import annotations

import math
import os
import random
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pandas as pd

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc

from . import judge
from .cases import Table, tables
from .judge import Counts
from .tally import Tally

MODELS = {  # of ARX's names: a line of the table, and who judges
    "k": ("k-anonymity holds", "whole numbers"),
    "distinct l": ("distinct ℓ-diversity holds", "whole numbers"),
    "entropy l": ("entropy ℓ-diversity holds", "whole numbers"),
    "recursive": ("recursive (c, ℓ)-diversity holds", "fractions"),
    "t": ("t-closeness (equal) holds", "fractions"),
    "beta": ("basic β-likeness holds", "fractions"),
    "enhanced beta": ("enhanced β-likeness holds", "definition in balls"),
    "delta": ("δ-disclosure holds of what occurs", "definition in balls"),
}
LEVELS = [(a, b) for a in range(3) for b in range(3)]


def raised(value: int, level: int) -> str:
    """Return a value at a level of its hierarchy, as Peer.java has it."""
    return (str(value), f"pair {value // 2}", "*")[level]


def asked(lines: list[str]) -> list[bool]:
    """Return ARX's answers."""
    classpath = os.environ.get("ARX_CLASSPATH")
    if not classpath:
        raise ModuleNotFoundError("ARX_CLASSPATH does not name its jar")
    java = ["java", "-cp", classpath, str(Path(__file__).with_name("Peer.java"))]
    done = subprocess.run(java, input="\n".join(lines), capture_output=True, text=True, check=True)
    return [answer == "1" for answer in done.stdout.split()]


def number(draw: random.Random, model: str) -> tuple[Fraction, int]:
    """Return what a model asks for, and the ℓ of a recursive one."""
    low, high = {
        "k": (2, 6), "distinct l": (2, 4), "entropy l": (2, 3), "recursive": (1, 4),
        "t": (0, 1), "beta": (0, 2), "enhanced beta": (0, 2), "delta": (0, 3),
    }[model]  # fmt: skip
    whole = model in ("k", "distinct l")
    steps = 1 if whole else 8  # eighths are floats as they are
    return Fraction(draw.randint(max(1, low * steps), high * steps), steps), draw.randint(2, 3)


def holds(model: str, x: Fraction, l: int, classes: list[Counts], whole: Counts) -> bool:  # noqa: E741
    """Return whether a model holds, by its definition."""
    if model == "k":
        return min(sum(of.values()) for of in classes) >= x
    if model == "distinct l":
        return min(len(of) for of in classes) >= x
    if model == "entropy l":
        return all(judge.diverse(of, x) for of in classes)
    if model == "recursive":
        rows = [sorted(of.values(), reverse=True) for of in classes]
        return all(row[0] < x * sum(row[l - 1 :]) for row in rows)
    if model == "t":
        return judge.closeness(classes, whole, ordered=False) <= x
    if model == "beta":
        return judge.basic_beta(classes, whole) <= x
    if model == "enhanced beta":
        return judge.enhanced_beta(classes, whole) <= x
    return judge.delta(classes, whole, missed=False) / math.log(2) < x


def here(frame: pd.DataFrame, numbers: dict[str, tuple[Fraction, int]]) -> dict[str, bool]:
    """Return which models hold: by the criteria of this package, or by its measures."""
    asked = {model: x for model, (x, _) in numbers.items()}
    criteria = {
        "k": cpv.KAnonymity(int(asked["k"])),
        "entropy l": cpv.LDiversity(asked["entropy l"]),
        "t": cpv.TCloseness(asked["t"], "tv"),
    }
    audit = sdc.audit(frame, key=["a", "b"], sensitive="w", criteria=list(criteria.values()))
    worst = {name: measure.worst for name, measure in audit.measures.items()}
    told = {model: verdict.holds for model, verdict in zip(criteria, audit.verdicts, strict=True)}
    c = audit.measure(f"c at l={numbers['recursive'][1]}").worst
    return told | {
        "distinct l": worst["distinct l"] >= asked["distinct l"],
        "recursive": c < asked["recursive"],
        "beta": worst["beta"] <= asked["beta"],
        "enhanced beta": worst["enhanced beta"] <= asked["enhanced beta"],
        "delta": worst["delta observed"] / math.log(2) < asked["delta"],
    }


def tallies() -> Iterator[Tally]:
    """Yield the lines of the table."""
    lines = {model: Tally(*about) for model, about in MODELS.items()}
    minimal = Tally("minimal levels of hierarchies, k", "whole numbers")
    draw, questions, answers = random.Random(31), [], []
    searches: list[tuple[set[tuple[int, int]], set[tuple[int, int]]]] = []
    for i in range(40):
        table = next(tables(draw.randrange(10**6), 1)) if i % 2 else scattered(draw)
        keys = table.keys
        records = ";".join(f"{a},{b},{w}" for (a, b), w in zip(keys, table.w, strict=True))
        numbers = {model: number(draw, model) for model in MODELS}
        true: dict[tuple[int, int], bool] = {}
        for a, b in LEVELS:
            raw = [(raised(x, a), raised(y, b)) for x, y in keys]
            frame = pd.DataFrame(raw, columns=["a", "b"]).assign(w=table.w)
            ours = here(frame, numbers)
            classes = table.grouped(raw)
            for model, (x, l) in numbers.items():  # noqa: E741
                truth = holds(model, x, l, classes, table.whole)
                answers.append((model, ours[model], truth))
                questions.append(f"{records}\t{a}\t{b}\t{model}\t{float(x)}\t{l}")
                if model == "k":
                    true[a, b] = truth
        searches.append((found(table, int(numbers["k"][0])), finest(true)))
    theirs = asked(questions)
    assert len(theirs) == len(questions), "ARX did not answer every question"
    for (model, ours, truth), there, question in zip(answers, theirs, questions, strict=True):
        lines[model].add(ours, there, truth, question)
    of_k = [there for (model, *_), there in zip(answers, theirs, strict=True) if model == "k"]
    for i, (ours, truth) in enumerate(searches):
        there = finest(dict(zip(LEVELS, of_k[9 * i : 9 * i + 9], strict=True)))
        minimal.add(ours == truth, there == truth, True)
    yield from (*lines.values(), minimal)


def scattered(draw: random.Random) -> Table:
    """Return a table of small classes, which levels of the hierarchies join."""
    size = draw.randint(12, 60)
    keys = [(draw.randrange(6), draw.randrange(6)) for _ in range(size)]
    return Table(keys, [draw.randrange(4) for _ in range(size)])


def finest(satisfied: dict[tuple[int, int], bool]) -> set[tuple[int, int]]:
    """Return the levels that satisfy and have no finer ones that do."""
    good = [levels for levels, holding in satisfied.items() if holding]
    return {
        (a, b) for a, b in good if not any((c, d) != (a, b) and c <= a and d <= b for c, d in good)
    }


def found(table: Table, k: int) -> set[tuple[int, int]]:
    """Return the minimal levels of this package's search; none if there are none."""
    frame = pd.DataFrame(table.keys, columns=["a", "b"]).assign(w=table.w)
    source = cpv.DiscreteSource.from_table(frame, sensitive="w", key=["a", "b"])
    hierarchies = {
        name: sdc.Hierarchy(range(6), [[raised(i, level) for i in range(6)] for level in (1, 2)])
        for name in ("a", "b")
    }
    best = sdc.full_domain(source, hierarchies, [cpv.KAnonymity(k)])
    return {(levels["a"], levels["b"]) for levels in best.minimal}
