"""What copied columns tell together: sums, functions, guesses, unique records, proposals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy_sdc.copied.dependencies import functions, sums
from cvxprivacy_sdc.copied.joint_disclosure import JointDisclosure, Recovery
from cvxprivacy_sdc.copied.sample import Sample
from cvxprivacy_sdc.copied.untouched import surveyed
from tests.public_tables import made_up_census, real_folder


def disclosed(frame, *, budget=0.1, kinds, progress=None, **columns):
    """Return what the copied columns tell, where the key is changed within a budget."""
    source = cpv.DiscreteSource.from_table(frame, key=list(kinds), **columns)
    distortion = cpv.per_attribute(kinds, source)
    channel = cpv.PrivacyDistortion(source, distortion, budget=budget).solve().channel
    sample = Sample.of(frame, source.schema)
    copied = [sample.column(name) for name in sample.copied]
    leaks = surveyed(sample, copied)
    return JointDisclosure.of(sample, copied, leaks, channel, progress=progress)


def households(records=2000, seed=0):
    """Make up people whose sex is in their relationship and occupation together, in neither."""
    rng = np.random.default_rng(seed)
    sex, shift = rng.integers(0, 2, records), rng.integers(0, 2, records)
    noisy = np.where(rng.random(records) < 0.05, 1 - sex, sex)
    return pd.DataFrame({
        "ill": np.where(rng.random(records) < 0.3 + 0.4 * sex, "yes", "no"),
        "sex": np.array(["F", "M"])[sex], "dice": rng.integers(1, 7, records),
        "shift": np.array(["day", "night"])[shift], "code": np.array(["a", "b"])[shift ^ noisy],
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["sample", pytest.param("real", marks=pytest.mark.real)])
def test_two_columns_that_add_up_to_the_key_are_named(kind):
    """In the census file each by itself tells of it, and both are the protected total."""
    if kind == "real":
        frame = pd.read_csv(real_folder("census") / "census.csv")
    else:
        frame = made_up_census()
    finding = disclosed(
        frame,
        sensitive="TAXINC",
        kinds={"PTOTVAL": "ordinal"},
        bins={"PTOTVAL": "q6", "TAXINC": "q4"},
    )
    (first,) = [d for d in finding.dependencies if d.signs]
    records = len(frame)
    assert (first.columns, first.signs, first.holds) == (("PEARNVAL", "POTHVAL"), (1, 1), records)
    text = f"PEARNVAL + POTHVAL = PTOTVAL in {records:,} of {records:,} records"
    assert text in finding.lines()
    assert {"PEARNVAL", "POTHVAL"} & {name for name, _ in finding.proposals}


def test_sums_and_differences_of_three():
    rng = np.random.default_rng(0)
    a, b, c, other = rng.integers(0, 1000, (4, 300)).astype(float)
    goal = a - b + c
    goal[:2] += 1  # but for two records
    columns = {"other": other, "a": a, "b": b, "c": c}
    (entry,) = sums("goal", goal, columns)
    assert str(entry) == "a + c − b = goal in 298 of 300 records"
    assert sums("b", b, {"twice": 2 * b, "other": other}) == []
    assert sums("none", np.where(rng.random(300) < 0.95, 0.0, a), columns) == []
    missing = np.where(np.arange(300) % 3, a, np.nan)
    (entry,) = sums("a", missing, columns)
    assert (entry.columns, entry.holds, entry.records) == (("a",), 200, 200)


def test_functions_of_one_column_and_of_two():
    rng = np.random.default_rng(0)
    plant, part, name = np.arange(400) % 50, rng.integers(0, 4, 400), np.arange(400)
    (entry,) = functions("state", plant % 7, {"plant": plant, "part": part, "name": name})
    assert str(entry) == "plant determines state in 400 of 400 records"
    both = (plant % 2 + part) % 3
    (entry,) = functions("both", both, {"half": plant % 2, "part": part, "name": name})
    assert entry.columns == ("half", "part")
    assert (
        functions("state", plant % 7, {"name": name, "part": part}) == []
    )  # no value occurs twice


def test_what_two_columns_tell_of_what_was_changed():
    """Neither the shift nor the code tells of the sex; both together restore changed ones."""
    calls = []
    finding = disclosed(
        households(), sensitive="ill", kinds={"sex": "hamming"}, progress=calls.append
    )
    assert calls == [1, 1]
    (every,) = [guess for guess in finding.guesses if guess.target == "sex"]
    assert every.of_changed.records >= 30
    assert every.of_changed.lower > 0.85 > every.of_changed.without / every.of_changed.records
    assert set(every.columns) == {"dice", "shift", "code"}
    assert every.of_all.lower > 0.9
    assert every.tells
    names = [name for name, _ in finding.proposals]
    assert len(names) == 1  # without either the other tells nothing
    assert names[0] in ("shift", "code")
    assert finding.met
    assert finding.advice()[0].startswith(
        f"leave out of the file, or coarsen, {names[0]}: from the others"
    )


@pytest.mark.long
@pytest.mark.real
def test_changed_sexes_are_recovered_from_what_is_copied_of_adult():
    frame = pd.read_csv(real_folder("adult") / "adult.csv", nrows=12_000)
    finding = disclosed(
        frame, sensitive="marital-status", kinds={"age": "ordinal", "sex": "hamming"},
        bins={"age": 10}, missing="level",
    )  # fmt: skip
    (sex,) = [guess for guess in finding.guesses if guess.target == "sex"]
    assert len(sex.columns) == 12
    assert sex.of_changed.share > 0.8
    assert sex.of_changed.lower > 0.7
    assert {"fnlwgt", "relationship"} <= {name for name, _ in finding.proposals}
    (line,) = finding.uniqueness()
    assert line.endswith(" on 12 copied columns")


def test_columns_that_tell_nothing_are_left_alone():
    rng = np.random.default_rng(1)
    frame = households().drop(columns=["shift", "code"])
    frame = frame.assign(
        more=rng.integers(0, 40, len(frame)), town=rng.choice(list("abc"), len(frame))
    )
    finding = disclosed(frame, sensitive="ill", kinds={"sex": "hamming"})
    assert finding.proposals == ()
    assert finding.met
    assert finding.advice() == []
    assert not any(guess.tells for guess in finding.guesses)
    assert finding.dependencies == ()


def test_records_that_are_unique_are_counted():
    frame = households().assign(id=lambda t: range(len(t)))
    finding = disclosed(frame, sensitive="ill", kinds={"sex": "hamming"})
    (columns, unique), (every, number) = finding.unique[-2:]
    assert "id" in every
    assert number == len(frame)
    left = frame[list(columns)].value_counts()
    assert unique == int((left == 1).sum())
    assert "id" not in columns  # which is to be left out
    assert finding.proposals[0] == ("id", "fewer than two records share a value")


def test_of_few_records_nothing_is_guessed():
    few = disclosed(households(300), sensitive="ill", kinds={"sex": "hamming"})
    assert few.guesses == ()
    assert few.met is None
    assert any("too few to learn from" in line for line in few.lines())


def test_no_confidential_value_is_named():
    frame = households().assign(ill=lambda t: "illness-" + t["ill"])
    document = repr(disclosed(frame, sensitive="ill", kinds={"sex": "hamming"}).document())
    assert "illness-" not in document
    assert "night" not in document  # nor one that is copied


def test_bounds_hold():
    rng, below = np.random.default_rng(0), 0
    for hits in rng.binomial(100, 0.6, 400):
        below += Recovery(int(hits), 100, 0).lower <= 0.6
    assert below >= 0.93 * 400
    assert Recovery(0, 10, 0).lower == 0.0
    assert not Recovery(60, 100, 55).tells
    assert Recovery(90, 100, 55).tells
    assert not Recovery(100, 100, 100).tells
