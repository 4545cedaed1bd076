"""Problems in TOML: what is read is what Python would say, and every error names its line."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy import criteria
from cvxprivacy.model import distortion
from cvxprivacy_sdc.statements import problemfile
from cvxprivacy_sdc.statements.toml import written
from tests import referee
from tests.lengths import some_at_length
from tests.repository import ROOT

COUNTS = [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]]
AGES = [25, 40, 55, 70]
SOURCE = """
[source]
counts = [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]]
w = ["none", "mild", "severe"]
x = [25, 40, 55, 70]
names = ["illness", "age"]
"""
YEARS = """
[distortion]
kind = "absolute_error"
"""
BUDGET = 'formulation = "PrivacyDistortion"\nbudget = 5.0\n'


def source() -> cpv.DiscreteSource:
    return cpv.DiscreteSource.from_counts(
        COUNTS, w=["none", "mild", "severe"], x=AGES, names=["illness", "age"]
    )


def years() -> cpv.Distortion:
    return cpv.absolute_error(AGES)


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "problem.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def read(write):
    return lambda text, **options: problemfile.read(write(text), **options)


def same_program(outcome: cpv.ChannelProblem, expected: cpv.ChannelProblem) -> None:
    """Assert that two problems are the same canonical data, letters and units included."""
    assert type(outcome) is type(expected)
    assert (outcome.encoder, outcome.units) == (expected.encoder, expected.units)
    for name in ("w", "x", "names", "records"):
        assert getattr(outcome.source, name) == getattr(expected.source, name)
    assert outcome.alphabet.d.outputs == expected.alphabet.d.outputs
    assert outcome.program.to_dict() == expected.program.to_dict()
    assert [c.latex for c in outcome.criteria] == [c.latex for c in expected.criteria]


# ---- every formulation, every criterion --------------------------------------------------

FORMULATIONS = {
    "PrivacyDistortion": (
        'formulation = "PrivacyDistortion"\nprice = 40.0\nencoder = "wx"\nunits = "nats"',
        lambda rules: cpv.PrivacyDistortion(
            source(), years(), price=40.0, encoder="wx", units="nats", criteria=rules
        ),
    ),
    "MinimumDistortion": (
        'formulation = "MinimumDistortion"\nunits = "nats"',
        lambda rules: cpv.MinimumDistortion(source(), years(), rules, units="nats"),
    ),
    "RateDistortionEquivocation": (
        'formulation = "RateDistortionEquivocation"\nbudget = 20.0\nmax_rate = 1.0\n'
        "minimize = { rate = 0.5, leakage = 1 }",
        lambda rules: cpv.RateDistortionEquivocation(
            source(),
            years(),
            20.0,
            max_rate=1.0,
            minimize={"rate": 0.5, "leakage": 1.0},
            criteria=rules,
        ),
    ),
}
MASK = [[False, False, True, True], [False] * 4, [False] * 4, [True, False, False, False]]
MOVED = [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
CRITERIA = {
    "TCloseness": {"t": 0.1},
    "LDiversity": {"l": 2.5},
    "RecordEntropy": {"k": 60},
    "DeltaDisclosure": {"delta": 0.5},
    "LeakageCap": {"b": 0.05},
    "CapacityCap": {"b": 0.05},
    "ConditionalLeakageCap": {"c": 0.05},
    "PerLetter": {"leakage": cpv.leakage.TotalVariation(), "bound": 0.1},
    "PerfectPrivacy": {},
    "PointwiseMaximalLeakage": {"epsilon": 0.5},
    "LocalInformationPrivacy": {"epsilon": 0.5},
    "LocalPrivacy": {"epsilon": 1},
    "MaximalLeakage": {"b": 0.5},
    "KeepProbability": {"p": [0.5, 0.4, 0.3, 0.2]},
    "ForbiddenMoves": {"mask": MASK},
    "PreserveMarginal": {},
    "MarginalDistance": {"t": 0.1},
    "PreserveMean": {"values": {25: 1.0, 40: 2, 55: 4.0, 70: 8.0}},
    "Linear": {"A": MOVED, "bound": 0.25, "name": "moved"},
}


def rule(kind: str) -> str:
    """Return a criterion as a file has it; letters that are keys are strings there."""
    values = {k: {str(x): y for x, y in v.items()} if isinstance(v, dict) else v
              for k, v in CRITERIA[kind].items()}  # fmt: skip
    if "leakage" in values:
        values["leakage"] = {"kind": type(values["leakage"]).__name__}
    return written({"criteria": [{"kind": kind, **values}]})


def test_further_laws_are_written_down(read, tmp_path):
    head = 'formulation = "MinimumDistortion"\n'
    law = "[[laws]]\n{}counts = [[3, 9, 2, 4], [1, 3, 1, 8], [5, 2, 8, 1]]\n"
    labels = 'w = ["none", "mild", "severe"]\nx = [25, 40, 55, 70]\n'
    rules = '[[criteria]]\nkind = "LeakageCap"\nb = 0.1\n'
    text = head + SOURCE + law.format('name = "2025"\n') + labels + law.format("") + labels
    outcome = read(text + YEARS + rules).problem
    counts = [[3, 9, 2, 4], [1, 3, 1, 8], [5, 2, 8, 1]]
    other = cpv.DiscreteSource.from_counts(counts, w=source().w, x=source().x)
    laws = {"2025": other, "law 2": other}
    expected = cpv.MinimumDistortion(source(), years(), [cpv.LeakageCap(0.1)], laws=laws)
    same_program(outcome, expected)
    for wrong, message in (
        (law.format('name = "a"\n') * 2, "two laws are called 'a'"),
        (law.format("name = 3\n"), r"laws\[0\]\.name: 3 is a number"),
        (law.format("") + labels.replace("70", "71"), "71 is no letter of the source"),
        ("[[laws]]\n", r"laws\[0\]: does not say what it is"),
        ("[laws]\ncounts = [[1, 1]]\n", "laws: .* is a table"),
    ):
        with pytest.raises(cpv.InputError, match=message):
            read(head + SOURCE + wrong + YEARS + rules)


def test_every_formulation_and_criterion_has_an_example():
    """A new one is reachable by its name alone; write down here how."""
    of_table = {name for name in criteria.__all__ if getattr(criteria, name).of_table}
    assert set(CRITERIA) == set(criteria.__all__) - {"Criterion", *of_table}
    expected = {name: getattr(cpv, name) for name in cpv.__all__}
    base = cpv.ChannelProblem
    discrete = {n for n, c in expected.items() if isinstance(c, type) and issubclass(c, base)}
    assert set(FORMULATIONS) == discrete - {"ChannelProblem", "MostUsefulRelease"}


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("kind", CRITERIA)
def test_a_file_and_python_state_the_same_program(formulation, kind, read):
    head, python = FORMULATIONS[formulation]
    problem = read(head + SOURCE + YEARS + rule(kind))
    same_program(problem.problem, python([getattr(cpv, kind)(**CRITERIA[kind])]))
    assert (problem.solve, problem.output) == ({}, {})


def test_the_most_useful_release_is_written_down(read):
    head = 'formulation = "MostUsefulRelease"\nabout = "w"\nutility = { kind = "ChiSquared" }\n'
    options = {"about": "w", "utility": cpv.leakage.ChiSquared()}
    problem = read(head + SOURCE + rule("LocalPrivacy")).problem
    rules = problem.criteria
    same_program(problem, cpv.MostUsefulRelease(source(), rules, **options))
    problem = read("budget = 20.0\n" + head + SOURCE + YEARS + rule("LocalPrivacy")).problem
    options |= {"distortion": years(), "budget": 20.0}
    same_program(problem, cpv.MostUsefulRelease(source(), rules, **options))


def test_a_measure_of_leakage_is_written_down(read):
    text = BUDGET + 'leakage = { kind = "HockeyStick", gamma = 1.5 }\n' + SOURCE + YEARS
    measure = cpv.leakage.HockeyStick(1.5)
    outcome = read(text).problem
    expected = cpv.PrivacyDistortion(source(), years(), budget=outcome.budget, leakage=measure)
    same_program(outcome, expected)
    named = 'leakage = "Hockey_stick:1.5"\n'
    same_program(read(BUDGET + named + SOURCE + YEARS).problem, expected)
    gains = 'leakage = { kind = "Gain", matrix = [[1, 0, 0], [0, 1, 1]] }\n'
    same_program(
        read(BUDGET + gains + SOURCE + YEARS).problem,
        cpv.PrivacyDistortion(
            source(), years(), budget=outcome.budget,
            leakage=cpv.leakage.Gain([[1, 0, 0], [0, 1, 1]]),
        ),
    )  # fmt: skip
    terms = [[1, 2, 1, -3, 1, 0.5], [1, 1, 1, 0, 0.25, 1]]
    stated = f'leakage = {{ kind = "FInformation", terms = {terms} }}\n'
    same_program(
        read(BUDGET + stated + SOURCE + YEARS).problem,
        cpv.PrivacyDistortion(
            source(), years(), budget=outcome.budget, leakage=cpv.leakage.FInformation(terms)
        ),
    )  # fmt: skip
    for wrong, message in (
        (
            'leakage = { kind = "FInformation", terms = [[1, -1, 1, 0, 0, 1]] }',
            r"leakage\.terms.*infinite where a release rules out",
        ),
        ('leakage = { kind = "PowerDivergence", order = 1 }', r"leakage\.order: 1 is Mutual"),
        ('leakage = "gossip"', "leakage: 'gossip' is no measure"),
        ('leakage = "sibson"', "leakage: 'sibson'; write sibson:NUMBER"),
        ('leakage = { kind = "Chi" }', r"leakage\.kind: 'Chi' is unknown"),
        ('leakage = { kind = "Sibson" }', r"leakage\.order: missing"),
        ('leakage = { kind = "Sibson", order = 1 }', r"leakage\.order: 1 is out of range"),
        ('leakage = { kind = "ChiSquared", more = 1 }', r"leakage\.more: unknown key"),
    ):
        with pytest.raises(cpv.InputError, match=message):
            read(BUDGET + wrong + "\n" + SOURCE + YEARS)


def test_all_criteria_of_one_file_keep_their_order(read):
    outcome = read(BUDGET + SOURCE + YEARS + "".join(map(rule, CRITERIA))).problem
    assert [type(c).__name__ for c in outcome.criteria] == list(CRITERIA)


def test_a_file_is_solved_as_python_solves_it(read):
    head = 'formulation = "PrivacyDistortion"\nbudget = 12.0\n'
    text = head + SOURCE + YEARS + rule("PreserveMean") + '\n[solve]\naccuracy = "high"\n'
    solution = read(text).solution()
    referee.check(solution)
    criterion = cpv.PreserveMean(**CRITERIA["PreserveMean"])
    expected = cpv.PrivacyDistortion(source(), years(), budget=12.0, criteria=[criterion])
    other = expected.solve(accuracy="high")
    assert (solution.value, solution.lower) == (other.value, other.lower)
    assert np.array_equal(solution.channel.matrix, other.channel.matrix)
    assert solution.channel.inputs == AGES


def test_the_example_of_the_documentation(read):
    lines = problemfile.__doc__.split("\n\nKeys are")[0].split("\n\n", 1)[1]
    problem = read(textwrap.dedent(lines))
    rules = [cpv.KeepProbability(0.3)]
    same_program(
        problem.problem, cpv.PrivacyDistortion(source(), years(), budget=5.0, criteria=rules)
    )
    assert problem.solve == {"accuracy": "high"}
    assert problem.output == {"certificate": Path("proof.json"), "channel": Path("channel.json")}
    referee.check(problem.solution())


def test_the_documentation_says_every_kind_and_every_argument():
    text = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    words = [name for name in distortion.__all__ if name.islower() and name != "per_attribute"]
    words += inspect.signature(cpv.ChannelProblem.solve).parameters
    words += inspect.signature(cpv.PrivacyDistortion).parameters
    words += inspect.signature(cpv.DiscreteSource.from_table).parameters
    missing = [
        word
        for word in words
        if word not in text and word not in ("self", "frame", "progress", "settings")
    ]
    assert not missing


def test_a_formulation_that_is_added_later_is_reachable(monkeypatch, read):
    class Constant(cpv.ChannelProblem):
        def __init__(self, source, distortion, *, level: int, units: str = "bits") -> None:
            self.level = level
            super().__init__(source, distortion, units=units)

        def formulation(self):
            return self.risk, {}

    monkeypatch.setattr(problemfile, "FORMULATIONS", (*problemfile.FORMULATIONS, Constant))
    outcome = read('formulation = "Constant"\nlevel = 3' + SOURCE + YEARS).problem
    assert (type(outcome), outcome.level) == (Constant, 3)
    with pytest.raises(
        cpv.InputError, match="line 3, budget: unknown key; the keys here are source, distortion"
    ):
        read('formulation = "Constant"\nlevel = 3\nbudget = 1' + SOURCE + YEARS)


# ---- sources and distortions -------------------------------------------------------------

HAMMING = '\n[distortion]\nkind = "hamming"\n'
SOURCES = {
    "pmf": (
        "pmf = [[0.4, 0.1], [0.1, 0.4]]\nrecords = 10",
        lambda: cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]], records=10),
    ),
    "pmf with side information": (
        'pmf = [[[0.2, 0.2], [0.1, 0]], [[0, 0.1], [0.2, 0.2]]]\nz = ["no", "yes"]',
        lambda: cpv.DiscreteSource(
            [[[0.2, 0.2], [0.1, 0]], [[0, 0.1], [0.2, 0.2]]], z=["no", "yes"]
        ),
    ),
    "letters that are tuples": (
        'counts = [[4, 1], [1, 4]]\nx = [["old", 1], ["young", 2]]',
        lambda: cpv.DiscreteSource.from_counts([[4, 1], [1, 4]], x=[("old", 1), ("young", 2)]),
    ),
    "identical": (
        'identical = [0.5, 0.3, 0.2]\nx = ["a", "b", "c"]',
        lambda: cpv.DiscreteSource.identical([0.5, 0.3, 0.2], x=["a", "b", "c"]),
    ),
    "gaussian": (
        "gaussian = { rho = 0.95, points = 5 }",
        lambda: cpv.DiscreteSource.gaussian(0.95, points=5),
    ),
}


@pytest.mark.parametrize("form", list(SOURCES))
def test_sources(form, read):
    text, python = SOURCES[form]
    problem = read('formulation = "PrivacyDistortion"\nbudget = 0.1\n[source]\n' + text + HAMMING)
    expected = python()
    same_program(
        problem.problem, cpv.PrivacyDistortion(expected, cpv.hamming(expected.x), budget=0.1)
    )


TREE = {25: ("young", "all"), 40: ("young", "all"), 55: ("old", "all"), 70: ("old", "all")}
DISTORTIONS = {
    "hamming": ('kind = "hamming"', cpv.hamming(AGES)),
    "ordinal": ('kind = "ordinal"', cpv.ordinal(AGES)),
    "squared_error": ('kind = "squared_error"', cpv.squared_error(AGES)),
    "absolute_error": (
        'kind = "absolute_error"\noutputs = [30, 60]',
        cpv.absolute_error(AGES, [30, 60]),
    ),
    "absolute_error of values": (
        'kind = "absolute_error"\nvalues = [0, 1, 2, 3.5]',
        cpv.absolute_error([0, 1, 2, 3.5]),
    ),
    "hierarchy_distance": (
        """
        kind = "hierarchy_distance"
        [distortion.paths]
        25 = ["young", "all"]
        40 = ["young", "all"]
        55 = ["old", "all"]
        70 = ["old", "all"]
        """,
        cpv.hierarchy_distance(TREE),
    ),
    "matrix": (
        'matrix = [[0, 1], [0, 1], [1, 0], [1, 0]]\noutputs = ["young", "old"]',
        cpv.Distortion([[0, 1], [0, 1], [1, 0], [1, 0]], outputs=["young", "old"]),
    ),
    "matrix with labelled rows": (
        "matrix = [[0, 1], [0, 2], [1, 0], [3, 0]]\ninputs = [70, 55, 40, 25]\noutputs = [70, 25]",
        cpv.Distortion([[0, 1], [0, 2], [1, 0], [3, 0]], inputs=[70, 55, 40, 25], outputs=[70, 25]),
    ),
    "matrix that sees w": (f"matrix = {[MOVED] * 3}", cpv.Distortion([MOVED] * 3)),
}


def test_every_distortion_has_an_example():
    functions = {name for name in distortion.__all__ if name.islower()}
    assert functions - {"per_attribute"} <= set(DISTORTIONS)


@pytest.mark.parametrize("form", list(DISTORTIONS))
def test_distortions(form, read):
    text, measure = DISTORTIONS[form]
    head = 'formulation = "PrivacyDistortion"\nbudget = 0.5'
    problem = read(head + SOURCE + "\n[distortion]\n" + textwrap.dedent(text))
    same_program(problem.problem, cpv.PrivacyDistortion(source(), measure, budget=0.5))


def test_values_of_released_letters_that_are_no_key_letters(read):
    rules = """
    [[criteria]]
    kind = "PreserveMean"
    values = { 25 = 1, 40 = 1, 55 = 2, 70 = 2, young = 1, old = 2 }
    """
    measure, python = DISTORTIONS["matrix"]
    problem = read(BUDGET + SOURCE + "\n[distortion]\n" + measure + rules)
    values = {25: 1, 40: 1, 55: 2, 70: 2, "young": 1, "old": 2}
    rule = cpv.PreserveMean(values)
    same_program(
        problem.problem, cpv.PrivacyDistortion(source(), python, budget=5.0, criteria=[rule])
    )


# ---- tables ------------------------------------------------------------------------------

TABLE = """
formulation = "PrivacyDistortion"
budget = 0.5

[source]
table = "people.csv"
sensitive = "income"
key = ["age", "sex"]
bins = { age = 30 }
delimiter = ";"

[distortion]
attributes = { age = "ordinal", sex = "hamming" }
weights = { age = 2.0 }
"""


def people():
    return pd.DataFrame(
        {
            "income": ["low", "high", "low", "high", "low", "high", "low", "low"],
            "age": [20, 40, 70, 50, 35, 65, 45, 25],
            "sex": ["f", "m", "f", "f", "m", "m", "f", "m"],
        }
    )


def by_pandas(path, *, delimiter: str = ",", **how):
    return cpv.DiscreteSource.from_table(pd.read_csv(path, sep=delimiter), **how)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a table and the problem file, which is not the current one."""
    people().to_csv(tmp_path / "people.csv", sep=";", index=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


@pytest.mark.parametrize("kind", ["", 'kind = "per_attribute"'])
def test_a_table_is_counted_and_measured_by_attribute(kind, folder, read):
    problem = read(TABLE.replace("attributes", f"{kind}\nattributes"), table=by_pandas)
    expected = cpv.DiscreteSource.from_table(
        people(), sensitive="income", key=["age", "sex"], bins={"age": 30}
    )
    measure = cpv.per_attribute(
        {"age": "ordinal", "sex": "hamming"}, expected, weights={"age": 2.0}
    )
    same_program(problem.problem, cpv.PrivacyDistortion(expected, measure, budget=0.5))
    referee.check(problem.solution())


def test_what_the_reader_of_tables_is_given(tmp_path, read):
    recorded = {}

    def table(path, **others):
        recorded.update(others, path=path)
        return source()

    read(
        'formulation = "PrivacyDistortion"\nbudget = 5\n[source]\ntable = "a/b.csv"\n'
        'sensitive = "w"\nkey = ["x"]\nweights = "n"\nmissing = "drop"\nbins = { x = [0, 40, inf] }'
        + YEARS, table=table,
    )  # fmt: skip
    assert recorded.pop("path") == tmp_path / "a" / "b.csv"
    assert recorded == {
        "sensitive": "w", "key": ["x"], "weights": "n", "missing": "drop",
        "bins": {"x": [0, 40, float("inf")]},
    }  # fmt: skip


# ---- refused, with the line --------------------------------------------------------------

# What is said (… stands for anything) of the file below it, on the line that is marked; | ends a
# line, @ stands for the sections above, and @pd for a formulation alone.
REFUSED = r"""
>> formulation: missing; use one of MinimumDistortion, MostUsefulRelease
budget = 5.0 # here | @source @years
>> formulation: 'RateDistortion' is unknown; use one of MinimumDistortion, MostUsefulRelease
budget = 5.0 | formulation = "RateDistortion" # here | @source @years
>> formulation: ['PrivacyDistortion'] is unknown
formulation = ["PrivacyDistortion"] # here | @source @years
>> budgte: unknown key; the keys here are source, distortion, budget, price, … solve, output
@pd | budgte = 5.0 # here | @source @years
>> outputs: unknown key
@head @source @years | [outputs] # here
>> source: missing
formulation = "PrivacyDistortion" # here | budget = 5.0 | @years
>> budget: '5.0' is a string; write a number
@pd | budget = "5.0" # here | @source @years
>> budget: True is a boolean; write a number
@pd | budget = true # here | @source @years
>> budget: datetime.date(2026, 1, 31) is a date or a time; write a number
@pd | budget = 2026-01-31 # here | @source @years
>> budget: -5.0 is out of range; pass a finite number ≥ 0
@pd | budget = -5.0 # here | @source @years
>> budget: budget and price; pass exactly one of
@pd | price = 2 | budget = 5.0 # here | @source @years
>> budget: neither budget nor price
formulation = "PrivacyDistortion" # here | @source @years
>> units: 'bit' is unknown; use "bits" or "nats"
@head | units = "bit" # here | @source @years
>> source: 3 is a number; write a table
@head | source = 3 # here | @years
>> source: does not say what it is; write exactly one of counts, pmf, identical, gaussian, table
@head @years | [source] # here
>> source.pmf: counts and pmf exclude each other; write exactly one of
@head @source | pmf = [[1.0]] # here | @years
>> source.name: unknown key; the keys here are counts, w, x, z, names
@head @source | name = "age" # here | @years
>> source.records: unknown argument
@head @source | records = 240 # here | @years
>> source.x: unknown key; the keys here are gaussian
@head @years | [source] | gaussian = { rho = 0.5 } | x = [1] # here
>> source.gaussian: 0.5 is a number; write a table
@head @years | [source] | gaussian = 0.5 # here
>> source.gaussian.rho: missing
@head @years | [source] | [source.gaussian] # here | points = 3
>> source.gaussian.rho: 1.0; pass a correlation strictly between
@head @years | [source.gaussian] | points = 3 | rho = 1.0 # here
>> source.gaussian.points: 3.5 is a number; write a whole number
@head @years | [source.gaussian] | rho = 0.5 | points = 3.5 # here
>> source.counts[1]: shape (3,) after entries of shape (4,); make all rows of one length
@head @years | [source] | counts = [ | [40, 22, 9, 4],  # none | [18, 30, 21], # here
[5, 12, 28, 41], | ]
>> source.counts[1]: shape () after entries of shape (2,)
@head @years | [source] | counts = [[40, 22], | 3, # here | ]
>> source.counts[1][1]: '30' is a string; write a number
@head @years | [source] | counts = [[40, 22], [18, | "30", # here | ]]
>> source.counts[1][1]: -30.0 is negative; pass finite nonnegative masses
@head @years | [source] | counts = [[40, 22], | [18, -30], # here | ]
>> source.counts: shape (0,)
@head @years | [source] | counts = [] # here
>> source.pmf: the entries sum to 0.9, off 1
@head @years | [source] | pmf = [[0.5, 0.4]] # here
>> source.pmf: shape ()
@head @years | [source] | pmf = 1.0 # here
>> source.identical[1]: -0.5 is negative
@head @years | [source] | identical = [ | 1.5, | -0.5, # here | ]
>> source.w: 1 labels; pass 2, one per letter
@head @years | [source] | counts = [[1, 2], [3, 4]] | w = ["none"] # here
>> source.x[1]: 25 labels letters 0 and 1
@head @years | [source] | x = [25, | 25] # here | counts = [[1, 2], [3, 4]]
>> source.x[1]: {'age': 2} cannot label
@head @years | [source] | counts = [[1, 2], [3, 4]] | x = [25, # years | { age = 2 }, # here | ]
>> source.names[1]: 2 is a number; write a string
@head @years | [source] | counts = [[1, 2], [3, 4]] | names = ["illness", 2] # here
>> source.table: nothing is there to read a table with
@head @years | [source] | table = "people.csv" # here | sensitive = "income"
>> distortion: does not say what it is; write exactly one of kind, matrix, attributes
@head @source | [distortion] # here | values = [1, 2, 3, 4]
>> distortion.matrix: kind and matrix exclude each other
@head @source | [distortion] | kind = "hamming" | matrix = [[1]] # here
>> distortion.kind: 'absolut' is unknown; use one of absolute_error, hamming, hierarchy_distance
@head @source | [distortion] | kind = "absolut" # here
>> distortion.value: unknown key; the keys here are values, outputs
@head @source @years | value = [1] # here
>> distortion.values[2]: 'c' is a string; write a number
@head @source @years | values = [1, 2, "c", 4] # here
>> distortion.values[0]: 'a' is no number … pass one finite number
@head | [source] | identical = [0.5, 0.5] | x = ["a", "b"] | [distortion] # here
kind = "absolute_error"
>> distortion: shape (2, 2) beside a source with |W|, |X| = (3, 4)
@head @source | [distortion] # here | kind = "absolute_error" | values = [1, 2]
>> distortion.paths.40: 'old' is a string; write an array
@head @source | [distortion] | kind = "hierarchy_distance" | [distortion.paths] | 25 = ["young"]
40 = "old" # here
>> distortion.attributes: a source that was not counted from a table
@head @source | [distortion] | attributes = { age = "ordinal" } # here
>> distortion: does not say what it is; write exactly one of
@head @source | [distortion] # here | kind = "per_attribute"
>> criteria: {'kind': 'PreserveMarginal'} is a table; write an array
@head @source @years | [criteria] # here | kind = "PreserveMarginal"
>> criteria[1]: 'PreserveMarginal' is a string; write a table
@head | criteria = [ | { kind = "PreserveMarginal" }, | "PreserveMarginal", # here | ]
@source @years
>> criteria[1].kind: missing; use one of CapacityCap, ConditionalLeakageCap, DeltaDisclosure
@head @source @years @first | [[criteria]] # here | p = 0.5
>> criteria[1].kind: 'Criterion' is unknown
@head @source @years @first | [[criteria]] | kind = "Criterion" # here
>> criteria[1].p: unknown key; leave it out
@head @source @years @first | [[criteria]] | kind = "PreserveMarginal" | p = 1 # here
>> criteria[1].p[2]: 1.5 is above 1
@head @source @years @first | [[criteria]] | p = [ | 0.5, 0.5, | 1.5, # here | 0.5, | ]
kind = "KeepProbability"
>> criteria[1].p: 1 floors; pass 4, one per key letter
@head @source @years @first | [[criteria]] | kind = "KeepProbability" | p = [0.5] # here
>> criteria[1].l: 4 exceeds the 3 values that W takes
@head @source @years @first | [[criteria]] | kind = "LDiversity" | l = 4 # here | [[criteria]]
kind = "LDiversity" | l = 5
>> source: no number of records behind it
@head @years | [[criteria]] | kind = "RecordEntropy" | k = 2 | [source] # here
identical = [0.5, 0.5] | x = [25, 40]
>> criteria: KAnonymity is decided on tables alone; ask a law for RecordEntropy
@head @source @years | [[criteria]] # here | kind = "KAnonymity" | k = 2
>> criteria[1].mask[0][0]: 'no' is a string; write a number or a boolean
@head @source @years @first | [[criteria]] | kind = "ForbiddenMoves" | mask = [["no"]] # here
>> criteria[1].mask[1]: 40 may go nowhere
@head @source @years @first | [[criteria]] | kind = "ForbiddenMoves" | mask = [
[false, true, true, true], | [true, true, true, true], # here | [true, true, true, false],
[true, true, true, false], | ]
>> criteria: 25 → 25 must have probability 1 and is forbidden
@head @source @years | [[criteria]] # here | kind = "KeepProbability" | p = 1 | [[criteria]]
kind = "ForbiddenMoves" | mask = [ | [true, false, false, false], | [false, false, false, false],
[false, false, false, false], | [false, false, false, false], | ]
>> criteria[1].values.40: '2' is a string; write a number
@head @source @years @first | [[criteria]] | kind = "PreserveMean" | [criteria.values] | 25 = 1
40 = "2" # here
>> criteria[1].values[25]: inf is out of range
@head @source @years @first | [[criteria]] | kind = "PreserveMean"
values = { 25 = inf, 40 = 1, 55 = 2, 70 = 3 } # here
>> solve.acuracy: unknown key; the keys here are method, solver, accuracy
@head @source @years | [solve] | acuracy = "high" # here
>> solve.verbose: 'yes' is a string; write a boolean
@head @source @years | [solve] | verbose = "yes" # here
>> output.certificates: unknown key; the keys here are certificate, channel
@head @source @years | [output] | certificates = "proof.json" # here
>> output: 'proof.json' is a string; write a table
@head | output = "proof.json" # here | @source @years
"""

TABLES_REFUSED = """
>> source.separator: unknown key; the keys here are table, delimiter, sensitive, key, side, weights
@table | separator = ";" # here | sensitive = "income" | @years
>> source.sensitive: no column 'wage'; did you mean 'age'?
@table | key = "age" | sensitive = "wage" # here | @years
>> source.delimiter: 5 is a number; write a string
@head | [source] | table = "people.csv" | delimiter = 5 # here | sensitive = "income"
key = "age" | @years
>> source.bins.age: '30' is no number; pass a width
@table | sensitive = "income" | key = "age" | bins = { age = "30" } # here | @years
>> source.table: cannot be used (FileNotFoundError
@head | [source] | table = "persons.csv" # here | sensitive = "income" | key = "age" | @years
>> distortion.attributes.age: 'ordinals' is no distortion; did you mean 'ordinal'?
@both | attributes = { age = "ordinals", sex = "hamming" } # here
>> distortion.weights.age: -2.0 is out of range
@both | attributes = { age = "ordinal", sex = "hamming" } | weights = { age = -2.0 } # here
>> distortion.outputs: unknown key; the keys here are attributes, inputs, weights
@both | attributes = { age = "ordinal", sex = "hamming" } | outputs = [1] # here
"""

_OPENED = BUDGET + '[source]\ntable = "people.csv"\ndelimiter = ";"\n'
SHORT = {
    "@pd": 'formulation = "PrivacyDistortion"\n',
    "@head": BUDGET,
    "@source": SOURCE,
    "@years": YEARS,
    "@first": '[[criteria]]\nkind = "PreserveMarginal"\n',
    "@table": _OPENED,
    "@both": _OPENED + 'sensitive = "income"\nkey = ["age", "sex"]\n[distortion]\n',
}


def cases(text: str) -> list[tuple[str, str]]:
    """Return what is said of each file, and the file."""
    values = []
    for block in text.split("\n>> ")[1:]:
        message, body = block.split("\n", 1)
        body = body.replace(" | ", "\n")
        values.append((message, re.sub(r"@\w+", lambda name: SHORT[name[0]], body)))
    return values


def refused(call, text: str, expected: str) -> None:
    """Assert an InputError that says what is expected of the line that is marked."""
    (line,) = [i for i, message in enumerate(text.split("\n"), 1) if "# here" in message]
    with pytest.raises(cpv.InputError) as caught:
        call()
    _, _, message = str(caught.value).partition("problem.toml, ")
    pattern = ".*".join(map(re.escape, f"line {line}, {expected}".split(" … ")))
    assert re.match(pattern, message, re.DOTALL), message
    assert "np." not in message


@pytest.mark.parametrize(("expected", "text"), cases(REFUSED))
def test_refused_on_its_line(expected, text, read):
    refused(lambda: read(text), text, expected)


@pytest.mark.parametrize(("expected", "text"), cases(TABLES_REFUSED))
def test_tables_refused_on_their_line(expected, text, folder, read):
    refused(lambda: read(text, table=by_pandas), text, expected)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('accuracy = "hihg"', '\'hihg\' is unknown; use "default" or "high"'),
        ('method = "guess"', "'guess' is unknown"),
        ('solver = "NONE"', "'NONE' is not installed"),
        ('certify = "maybe"', "'maybe'"),
    ],
)
def test_a_setting_refused_while_solving_names_its_line(setting, message, read):
    text = BUDGET + SOURCE + YEARS + f"\n[solve]\nverbose = false\n{setting} # here\n"
    problem = read(text)
    refused(problem.solution, text, f"solve.{setting.split()[0]}: {message}")


def test_an_infeasible_problem_is_no_input_error(read):
    rules = (
        '[[criteria]]\nkind = "LeakageCap"\nb = 0\n[[criteria]]\nkind = "KeepProbability"\np = 0.9'
    )
    problem = read(BUDGET + SOURCE + YEARS + rules)
    with pytest.raises(cpv.InfeasibleError):
        problem.solution()


VALUES = re.compile(r"(?<=[=,] )(?=(\[.*\]|\{.*\}|\"[^\"]*\"|'[^']*'|[-+.\w]+))")
JUNK = ["true", '"x"', "-1", "3", "0.5", "nan", "1e400", "1" * 400, "2026-01-31", "[]", '["x"]',
        "[[1, 2], [3, 4]]", "[1, [2]]", "{}", "{ a = 1 }", "[{ a = [] }]"]  # fmt: skip
EVERYTHING = [
    BUDGET + "units = 'bits'\nencoder = \"x\"\n" + SOURCE + YEARS + "\n[solve]\nverbose = false\n",
    *(BUDGET + SOURCE + YEARS + rule(kind) for kind in CRITERIA),
    *(
        BUDGET + SOURCE + "[distortion]\n" + textwrap.dedent(arguments) + "\n"
        for arguments, _ in DISTORTIONS.values()
    ),
    *(BUDGET + "[source]\n" + arguments + "\n" + HAMMING for arguments, _ in SOURCES.values()),
    TABLE,
]


@pytest.mark.parametrize("number", some_at_length(range(len(EVERYTHING)), 8))
def test_any_value_in_any_place_makes_a_problem_or_is_refused_on_a_line(number, folder, read):
    text = EVERYTHING[number]
    read(text, table=by_pandas)
    messages = []
    for i, match in enumerate(VALUES.finditer(text)):
        for junk in JUNK[i % 6 :: 6]:
            try:
                read(text[: match.start(1)] + junk + text[match.end(1) :], table=by_pandas)
            except cpv.InputError as error:
                messages.append(str(error))
    assert len(messages) >= 10
    assert not [error for error in messages if not re.search(r"problem\.toml, line \d+", error)]


# ---- unreadable files --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ('formulation = "A"\nbudget 5\n', ["line 2, column 8", "Expected '='"]),
        ("[source\n", ["line 1, column 8"]),
        ("a = [1,\n2", ["line 2", "Unclosed array"]),
        ("a = " + "[" * 100_000, ["nested too deeply"]),
        ("a = " + "1" * 5000, ["digits"]),
    ],
)
def test_no_toml(text, pieces, read):
    with pytest.raises(cpv.InputError) as caught:
        read(text)
    for piece in ("problem.toml", *pieces, "correct the TOML"):
        assert piece in str(caught.value)


def test_unreadable_files(tmp_path):
    for path, text in ((tmp_path / "none.toml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(cpv.InputError, match=f"cannot be read .*{text}") as caught:
            problemfile.read(path)
        assert str(path) in str(caught.value)


def test_an_encoding_that_is_not_utf8(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes((BUDGET + '# ok\nname = "é"\n').encode("latin-1"))
    with pytest.raises(cpv.InputError, match=r"latin\.toml, line 4: byte 0xe9 is not UTF-8; save"):
        problemfile.read(path)


def test_a_byte_order_mark_and_line_ends_of_windows_do_no_harm(tmp_path):
    path = tmp_path / "windows.toml"
    text = (BUDGET + SOURCE + YEARS).replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert problemfile.read(str(path)).problem.budget == 5.0
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("[18,", "\r\n['a',").encode())
    with pytest.raises(cpv.InputError, match=r"line 6, source\.counts\[1\]\[0\]"):
        problemfile.read(path)


# ---- written, and read back ---------------------------------------------------------------

ODD_NAMES = ["a,b", "c.d", 'e"f', "g'h", "i\\j", " k ", "", "名前", "l=m", "#n", "[o]", "p\nq"]


NAMES = st.lists(st.sampled_from(ODD_NAMES) | st.text(), min_size=3, max_size=3, unique=True)


@given(NAMES, st.floats(0, 1), st.floats(1e-300, 1e300), st.floats(5, 50))
@settings(max_examples=5)
def test_any_column_and_any_number_is_read_back(tmp_path_factory, names, budget, weight, width):
    path = tmp_path_factory.mktemp("written") / "problem.toml"
    w, x, y = names
    given_by = []

    def table(place, **how):
        given_by.append((place, how))
        frame = people().rename(columns={"income": w, "age": x, "sex": y})
        return cpv.DiscreteSource.from_table(frame, **how)

    how = {"sensitive": [w], "key": [x, y], "bins": {x: width}, "missing": "refuse"}
    data = {
        "formulation": "PrivacyDistortion", "budget": budget, "source": {"table": "t", **how},
        "distortion": {"attributes": {x: "ordinal", y: "hamming"}, "weights": {y: weight}},
    }  # fmt: skip
    path.write_bytes(written(data).encode())
    outcome = problemfile.read(path, table=table).problem
    ((place, read),) = given_by
    assert place == path.parent / "t"
    assert read == how
    source = table(place, **how)
    d = cpv.per_attribute({x: "ordinal", y: "hamming"}, source, weights={y: weight})
    same_program(outcome, cpv.PrivacyDistortion(source, d, budget=budget))


def test_an_earlier_release_is_a_file_beside_the_problem(read, tmp_path):
    first = read(BUDGET.replace("5.0", "8.0") + SOURCE + YEARS).problem.solve().channel
    first.save(tmp_path / "first.json")
    (path,) = {p.parent for p in tmp_path.rglob("first.json")}
    for head, remember, channels in (
        ('after = "first.json"\n', True, first),
        ('after = ["first.json", "first.json"]\nremember = false\n', False, [first] * 2),
    ):
        outcome = read(BUDGET + head + SOURCE + YEARS).problem
        source = cpv.DiscreteSource.from_counts(
            [[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]],
            w=["none", "mild", "severe"], x=[25, 40, 55, 70], names=["illness", "age"],
        )  # fmt: skip
        d = cpv.absolute_error([25, 40, 55, 70])
        same_program(
            outcome, cpv.PrivacyDistortion(source, d, 5.0, after=channels, remember=remember)
        )
    assert path == tmp_path
    with pytest.raises(cpv.InputError, match=r"after\[0\].*cannot be read"):
        read(BUDGET + 'after = "none.json"\n' + SOURCE + YEARS)
    with pytest.raises(cpv.InputError, match="after"):
        read(BUDGET + "after = 3\n" + SOURCE + YEARS)
