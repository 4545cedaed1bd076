"""A further release of a table: who is matched, and by which law the letters are drawn."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import cvxprivacy as cpv
import cvxprivacy_sdc as sdc
from cvxprivacy.release.draws import Draws
from tests.lengths import some_at_length
from tests.refusals import refused

RECORDS = 40_000


def people(records, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.choice([20, 40, 60], records, p=[0.5, 0.3, 0.2])
    ill = (rng.random(records) < age / 80).astype(int)
    return pd.DataFrame({"id": np.arange(records), "age": age, "ill": ill})


def solved(table, budget, **options):
    source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    return cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget, **options).solve()


TABLE = people(RECORDS)
FIRST = solved(TABLE, 0.4).channel
TOGETHER = solved(TABLE, 0.25, after=FIRST).channel
ALONE = solved(TABLE, 0.25).channel
JANUARY = FIRST.apply(TABLE, seed=5, row_id="id")


def sequel(**changes):
    made_of = {"together": TOGETHER, "alone": ALONE, "after": FIRST, "released": JANUARY}
    return sdc.Sequel(**{**made_of, "row_id": "id", **changes})


def distance(expected, counts):
    """Return Pearson's χ² and its 1 − 1e-6 quantile."""
    there = expected > 0
    assert counts[~there].sum() == 0
    degrees = int(there.sum()) - 1
    return ((counts - expected)[there] ** 2 / expected[there]).sum(), chi2.ppf(1 - 1e-6, degrees)


def test_the_letters_of_both_releases_have_the_law_that_was_proved():
    """With the seed of the first release: its numbers again would be another law."""
    second = sequel().apply(TABLE, seed=5)
    ages = [20, 40, 60]
    for x in ages:
        chosen = TABLE["age"] == x
        counts = pd.crosstab(JANUARY["age"][chosen], second["age"][chosen])
        counts = counts.reindex(index=ages, columns=ages, fill_value=0).to_numpy()
        first = FIRST.matrix[FIRST.inputs.index(x)]
        rows = [TOGETHER.matrix[TOGETHER.inputs.index((x, z))] for z in FIRST.outputs]
        value, limit = distance(chosen.sum() * first[:, None] * np.array(rows), counts)
        assert value < limit


def test_the_numbers_of_the_first_release_would_be_another_law():
    """So it was with one stream: the reason for a key of its own."""
    pairs = list(zip(TABLE["age"].tolist(), JANUARY["age"].tolist(), strict=True))
    again = TOGETHER.apply(pairs, seed=5, row_id=TABLE["id"])
    worst = 0.0
    for z in FIRST.outputs:
        for x in (20, 40, 60):
            chosen = np.array([p == (x, z) for p in pairs])
            row = TOGETHER.matrix[TOGETHER.inputs.index((x, z))]
            shares = [(again[chosen] == y).mean() for y in TOGETHER.outputs]
            worst = max(worst, np.abs(shares - row).max() if chosen.sum() > 500 else 0.0)
    assert worst > 0.1


def test_draws_are_those_of_the_recipe():
    """The bytes as docs/reference/files.md has them, with the standard library."""
    text = json.dumps(
        [FIRST.inputs, FIRST.outputs, [[int(p * 2**52) for p in row] for row in FIRST.matrix]],
        separators=(",", ":"),
    )
    version = b"cvxprivacy draws 1"
    secret = hashlib.scrypt(hex(5).encode(), salt=version, n=2**14, r=8, p=1, dklen=32)
    after = f" after {hashlib.sha256(text.encode()).hexdigest()}".encode()
    key = hashlib.shake_256(secret + version + after).digest(32)
    released = sequel().apply(TABLE[:200], seed=5)["age"].tolist()
    for i, (x, z) in enumerate(zip(TABLE["age"][:200], JANUARY["age"][:200], strict=True)):
        digest = hashlib.blake2b(str(i).encode(), digest_size=16, key=key).digest()
        number = int.from_bytes(digest[:8], "little") >> 12
        row = TOGETHER.matrix[TOGETHER.inputs.index((x, z))]
        ends = np.cumsum([int(p * 2**52) for p in row])
        assert released[i] == TOGETHER.outputs[int(np.searchsorted(ends, number, "right"))]


def test_a_record_keeps_its_draw_wherever_it_stands():
    made = sequel()
    once = made.apply(TABLE, seed=5)
    turned = made.apply(TABLE.sample(frac=1, random_state=1), seed=5).sort_index()
    assert once.equals(turned)
    again = sequel(released=JANUARY.sample(frac=1, random_state=2)).apply(TABLE, seed=5)
    assert once.equals(again)
    assert not once.equals(made.apply(TABLE, seed=6))


def test_records_are_matched_by_name():
    table = TABLE[100:300].copy()
    table.loc[100, "id"] = 10**6
    table = pd.concat([table, people(3, seed=9).assign(id=[-1, -2, -3])], ignore_index=True)
    counts = sequel().matching(table)
    assert (counts.matched, counts.new, counts.partly) == (199, 4, 0)
    assert counts.changed == 0
    assert counts.gone == RECORDS - 199
    texts = JANUARY.assign(id=JANUARY["id"].astype(str))
    assert sequel(released=texts).matching(table) == counts


def test_a_value_that_cannot_have_had_its_letter_is_as_new():
    x, z = 20, 60
    sure = cpv.Channel(np.eye(3), inputs=[20, 40, 60], outputs=[20, 40, 60], schema=FIRST.schema)
    together = solved(TABLE, 0.25, after=sure).channel
    released = TABLE.copy()
    place = int(np.flatnonzero(TABLE["age"] == x)[0])
    released.loc[place, "age"] = z
    made = sequel(together=together, after=sure, released=released)
    counts = made.matching(TABLE)
    assert (counts.matched, counts.changed, counts.new) == (RECORDS - 1, 1, 0)
    made.apply(TABLE, seed=1)


def test_several_earlier_tables():
    other = solved(TABLE, 0.3).channel
    march = other.apply(TABLE[: RECORDS // 2], seed=77, row_id="id")
    together = solved(TABLE, 0.25, after=[FIRST, other]).channel
    made = sequel(together=together, after=[FIRST, other], released=[JANUARY, march])
    counts = made.matching(TABLE)
    assert (counts.matched, counts.partly) == (RECORDS // 2, RECORDS // 2)
    share = (made.apply(TABLE, seed=5)["age"] == TABLE["age"]).mean()
    assert share == pytest.approx(0.75, abs=0.02)


@pytest.mark.long
def test_letters_that_are_not_of_their_channels():
    assert sequel().matching(TABLE).fits
    assert (
        not sequel(released=JANUARY.assign(id=JANUARY["id"].to_numpy()[::-1])).matching(TABLE).fits
    )
    other = solved(TABLE, 0.3).channel
    assert not sequel(released=other.apply(TABLE, seed=5, row_id="id")).matching(TABLE).fits
    moved = TABLE.assign(age=TABLE["age"].replace(60, 40))
    assert not sequel().matching(moved).fits
    together = solved(TABLE, 0.25, after=[FIRST, other]).channel
    for seed, independent in ((5, False), (77, True)):
        december = other.apply(TABLE, seed=seed, row_id="id")
        both = {"after": [FIRST, other], "released": [JANUARY, december]}
        assert sequel(together=together, **both).matching(TABLE).fits is independent
    few = sequel().matching(TABLE[:3]).fits
    assert few


def test_an_encoder_that_sees_w():
    options = {"encoder": "wx"}
    together = solved(TABLE, 0.25, after=FIRST, **options).channel
    made = sequel(together=together, alone=solved(TABLE, 0.25, **options).channel)
    assert made.matching(TABLE).matched == RECORDS
    assert (made.apply(TABLE, seed=5)["age"] == TABLE["age"]).mean() == pytest.approx(
        0.75, abs=0.02
    )


@pytest.mark.parametrize("library", some_at_length(["polars", "pyarrow", "duckdb"], 1))
def test_flavours(library):
    module = pytest.importorskip(library, reason="the extra `tables` is not installed")
    expected, made = sequel().apply(TABLE, seed=5)["age"].tolist(), sequel()
    if library == "duckdb":
        arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
        relation = module.from_arrow(arrow.Table.from_pandas(TABLE))
        assert made.apply(relation, seed=5).read_all()["age"].to_pylist() == expected
        return
    if library == "polars":
        frame = module.from_pandas(TABLE)
        assert made.apply(frame, seed=5)["age"].to_list() == expected
        refused(lambda: made.apply(frame.lazy(), seed=5), "frame", "lazy")
        return
    assert made.apply(module.Table.from_pandas(TABLE), seed=5)["age"].to_pylist() == expected


def test_what_makes_no_sequel_is_refused():
    twice = JANUARY.assign(id=JANUARY["id"].replace(7, 8))
    refused(lambda: sequel(released=twice), "released", "names records 7 and 8", where=8)
    gaps = JANUARY.assign(id=JANUARY["id"].astype(float).replace(3.0, np.nan))
    refused(lambda: sequel(released=gaps), "released", "missing name", where=3)
    other = JANUARY.assign(age=JANUARY["age"].replace(60, 61))
    first = int(np.flatnonzero(JANUARY["age"] == 60)[0])
    refused(lambda: sequel(released=other), "released", "its channel", value=61, where=first)
    refused(lambda: sequel(released=JANUARY.drop(columns="id")), "released", "'id'")
    refused(lambda: sequel(released=[JANUARY] * 2), "released", "2 tables of 1")
    both = solved(TABLE, 0.25, after=[FIRST, FIRST]).channel
    several = {"together": both, "after": [FIRST, FIRST], "released": [JANUARY, twice]}
    refused(lambda: sequel(**several), "released[1]", "names records 7 and 8", where=8)
    refused(lambda: sequel(together=ALONE), "together", "other columns or releases")
    refused(lambda: sequel(alone=TOGETHER), "alone", "other letters")
    refused(lambda: sequel(alone=ALONE.relabelled([1, 2, 3])), "alone", "other letters")
    made = sequel()
    refused(lambda: made.matching(TABLE.drop(columns="id")), "row_id", "'id'")
    refused(lambda: made.matching(TABLE.assign(id=1)), "row_id", "records 0 and 1", where=1)
    refused(lambda: made.apply(TABLE.assign(age=21), seed=1), "values", "no input", where=0)
    refused(lambda: made.apply(TABLE, seed=1, row_id="ill"), "row_id", "another column")
    assert "after 1" in repr(made)


def test_fresh_draws_are_of_the_purpose():
    draws = Draws(5)
    plain, one, other = draws(50, None), draws.fresh("a")(50, None), draws.fresh("b")(50, None)
    assert len({tuple(numbers[0].tolist()) for numbers in (plain, one, other)}) == 3
    assert (draws.fresh("a")(50, None) == one).all()


@pytest.mark.parametrize("argument", ["together", "alone", "after"])
@pytest.mark.parametrize("wrong", [None, [3], "january"])
def test_what_is_no_channel_is_named(argument, wrong):
    channel = cpv.Channel(np.eye(2), inputs="ab", outputs="ab")
    channels = dict.fromkeys(("together", "alone", "after"), channel) | {argument: wrong}
    with pytest.raises(cpv.InputError, match="pass a Channel") as refused:
        sdc.Sequel(**channels, released=None, row_id="id")
    assert refused.value.argument == argument
