"""The audit of a released table: every kind of frame, by hand, written down, and on the command."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import stat
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy.microdata import measures
from cvxprivacy.microdata.bootstrap import estimated
from cvxprivacy.model.information import miller_madow, mutual_information
from tests.test_architecture import ROOT, script
from tests.test_cli import say

WHY = "the extra `tables` is not installed"
CRITERIA = [cpv.TCloseness(0.05), cpv.LDiversity(2.0), cpv.KAnonymity(10)]


def people(records=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, records)
    ill = np.array(["none", "cold", "flu"])[(rng.random(records) * 3 * age / 60).astype(int)]
    sex = rng.choice(["f", "m"], records)
    return pd.DataFrame({"id": range(records), "age": age, "sex": sex, "ill": ill})


def coarse(table):
    return table.assign(age=[f"{a // 20 * 20}+" for a in table["age"]])


def audited(table=None, released=None, **options):
    table = people() if table is None else table
    released = coarse(table) if released is None else released
    options = {"key": ["age", "sex"], "sensitive": "ill", **options}
    return cpv.audit(table, released, **options)


# ---- what is measured --------------------------------------------------------------------


def test_every_measure_is_of_the_counts():
    found = audited(criteria=CRITERIA)
    table = coarse(people())
    letters = list(zip(table["age"], table["sex"], strict=True))
    assert sorted(found.letters) == sorted(set(letters))
    counts = Counter(zip(table["ill"], letters, strict=True))
    joint = np.array([[counts[w, x] for x in found.letters] for w in found.released.w])
    assert (found.released.joint == joint).all()
    expected = {
        "k": measures.size(joint),
        "distinct l": measures.distinct_diversity(joint),
        "entropy l": measures.entropy_diversity(joint),
        "c at l=2": measures.recursive_diversity(joint, 2),
        "c at l=3": measures.recursive_diversity(joint, 3),
        "I1": cpv.one_symbol.i1(joint), "I2": cpv.one_symbol.i2(joint),
        "I3": cpv.one_symbol.i3(joint), "I4": cpv.one_symbol.i4(joint),
        "equal distance": measures.earth_mover(joint),
        "delta": measures.disclosure(joint),
        "delta observed": measures.disclosure(joint, observed=True),
        "beta": measures.likeness(joint),
        "enhanced beta": measures.likeness(joint, enhanced=True),
    }  # fmt: skip
    assert set(found.measures) == set(expected)  # ill is not in order: no ordered distance
    sizes = joint.sum(axis=0)
    for name, values in expected.items():
        measure = found.measures[name]
        assert measure.values == pytest.approx(values, abs=1e-12)
        low = name in ("k", "distinct l", "entropy l")
        assert measure.worst == pytest.approx(min(values) if low else max(values), abs=1e-12)
        at = np.isclose(values, measure.worst, rtol=1e-9)
        assert (measure.letters, measure.records) == (at.sum(), sizes[at].sum())
        assert found.worst(name, 1)[0] in [found.letters[i] for i in np.flatnonzero(at)]
        assert measure.average == pytest.approx((values * sizes).sum() / sizes.sum(), abs=1e-9)
    assert found.measures["I1"].average == pytest.approx(found.after.plugin, abs=1e-12)
    assert found.after.plugin == pytest.approx(mutual_information(joint), abs=1e-12)
    assert found.after.bias == pytest.approx(miller_madow(joint), abs=1e-12)
    before = cpv.DiscreteSource.from_table(people(), sensitive="ill", key=["age", "sex"])
    assert found.before.plugin == pytest.approx(before.information(), abs=1e-12)
    assert found.greatest_diversity == pytest.approx(2 ** before.entropy())


def test_verdicts_name_the_letters_that_break():
    found = audited(criteria=CRITERIA)
    i1, sizes = found.measures["I1"].values, found.measures["k"].values
    t, diverse, k = found.verdicts
    assert t.broken.tolist() == np.flatnonzero(i1 > 0.05).tolist()
    assert t.records == sizes[i1 > 0.05].sum() > 0
    assert diverse.holds == (found.measures["entropy l"].worst >= 2.0)
    assert k.holds
    assert not found.holds
    assert audited(criteria=[cpv.KAnonymity(10)]).holds
    most = found.released.entropy() - math.log2(2.0)
    assert found.averages["t"].bound == 0.05
    assert found.averages["H(W) − log ℓ"].bound == pytest.approx(most)
    assert found.averages["I(W; X)"].bound == found.before.plugin
    text = str(found)
    for piece in ("BROKEN  TCloseness(0.05)", "holds   KAnonymity(10)", "ℓ_t", "ℓ_max", "bias"):
        assert piece in text
    strict = audited(criteria=[cpv.TCloseness(0.05), cpv.TCloseness(0.01)])
    assert strict.averages["t"].bound == 0.01


def test_a_table_as_it_stands():
    found = cpv.audit(people(), key="sex", sensitive="ill")
    assert found.original is found.released
    assert found.averages == {}
    assert found.before is found.after
    assert "X̃" not in str(found)
    in_nats = cpv.audit(people(), key="sex", sensitive="ill", units="nats")
    assert in_nats.after.plugin == pytest.approx(found.after.plugin * math.log(2))
    assert in_nats.measures["I2"].values == pytest.approx(found.measures["I2"].values * math.log(2))


def test_what_the_release_did_to_columns_and_records():
    table = people()
    assert audited(table).notes[:1] != ["suppressed in the release: sex"]
    gone = audited(table, coarse(table).drop(columns="sex"))
    assert "suppressed in the release: sex" in gone.notes
    assert gone.letters == ["20+", "40+"]
    fewer = audited(table, coarse(table)[10:])
    assert "290 records of 300 are released" in fewer.notes
    swapped = coarse(table).assign(ill=["flu"] * 3 + table["ill"].tolist()[3:])
    assert "ill itself was changed" in audited(table, swapped).notes
    assert not any("changed" in note for note in audited(table).notes)
    with pytest.raises(cpv.InputError, match="no key column"):
        audited(table, table[["ill"]])
    with pytest.raises(cpv.InputError, match="no column 'ill'"):
        audited(table, table[["age"]])


def test_bins_are_of_numbers_only():
    table = people()
    both = audited(table, table, bins={"age": 20})
    assert [x[0] for x in both.letters] == ["[20, 40)"] * 2 + ["[40, 60)"] * 2
    assert len(both.original.x) == 4
    text = audited(table, coarse(table), bins={"age": 20})
    assert text.measures["I1"].values == pytest.approx(both.measures["I1"].values)


def test_missing_values():
    table = people()
    table["sex"] = table["sex"].where(table.index % 7 > 0, None)
    with pytest.raises(cpv.InputError, match="missing"):
        audited(table)
    assert ("20+", None) in audited(table, missing="level").letters
    dropped = audited(table, missing="drop")
    assert dropped.released.records == 257
    per_record = dropped.per_record("I1")
    assert np.isnan(per_record).tolist() == [i % 7 == 0 for i in range(300)]
    assert len(dropped.records(dropped.letters)) == 257


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([1, 2, 3], True), ([1.5, 2.5, 9.0], True), (["a", "b", "c"], False),
        (pd.Categorical.from_codes([0, 1, 2], ["lo", "mid", "hi"], ordered=True), True),
        (pd.Categorical.from_codes([0, 1, 2], ["lo", "mid", "hi"]), False),
    ],
)  # fmt: skip
def test_what_is_in_order(values, order):
    table = pd.DataFrame({"x": [1, 1, 2, 2, 1, 2], "w": pd.Series(values).repeat(2).to_numpy()})
    if isinstance(values, pd.Categorical):
        table["w"] = pd.Categorical(table["w"], values.categories, ordered=values.ordered)
    found = cpv.audit(table, key="x", sensitive="w")
    assert ("ordered distance" in found.measures) == order
    if not order:  # the alphabet is no order
        with pytest.raises(cpv.InputError, match="no order of its own"):
            cpv.audit(table, key="x", sensitive="w", ordered=True)
    else:
        told = cpv.audit(table, key="x", sensitive="w", ordered=False)
        assert "ordered distance" not in told.measures
        joint = found.released.joint
        expected = measures.earth_mover(joint, ordered=True)
        assert found.measures["ordered distance"].values == pytest.approx(expected)


def test_records_and_values_by_record():
    table = people()
    found = audited(table)
    worst = found.worst("I1", 2)
    assert (
        found.measures["I1"].values[[found.letters.index(x) for x in worst]].tolist()
        == sorted(found.measures["I1"].values, reverse=True)[:2]
    )
    rows = found.records(worst)
    letters = list(zip(coarse(table)["age"], table["sex"], strict=True))
    assert rows["id"].tolist() == [i for i, x in enumerate(letters) if x in worst]
    value = dict(zip(found.letters, found.measures["I2"].values, strict=True))
    assert found.per_record("I2").tolist() == [value[x] for x in letters]
    with pytest.raises(cpv.InputError, match="measure"):
        found.worst("secrecy")
    with pytest.raises(cpv.InputError, match="no released letter"):
        found.records(["20+"])


def test_what_cannot_be_audited():
    for options, said in (
        ({"key": ["age", "town"]}, "town"), ({"criteria": ["k=3"]}, "no criterion"),
        ({"criteria": [cpv.LeakageCap(1)]}, "per letter"), ({"missing": "guess"}, "missing"),
        ({"bootstrap": -1}, "bootstrap"), ({"units": "hartleys"}, "units"),
    ):  # fmt: skip
        with pytest.raises(cpv.InputError, match=said):
            audited(**options)


# ---- frames ------------------------------------------------------------------------------


def test_every_kind_of_frame_says_the_same():
    pl = pytest.importorskip("polars", reason=WHY)
    pa = pytest.importorskip("pyarrow", reason=WHY)
    duckdb = pytest.importorskip("duckdb", reason=WHY)
    dd = pytest.importorskip("dask.dataframe", reason=WHY)
    table = people()
    table["seen"] = [datetime.date(2026, 1, 1 + i % 3) for i in range(300)]
    table["sex"] = table["sex"].where(table.index % 7 > 0, None)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    kinds = {
        "pandas": table, "arrow": arrow, "polars": pl.from_arrow(arrow),
        "lazy": pl.from_arrow(arrow).lazy(), "duckdb": duckdb.connect().from_arrow(arrow),
        "dask": dd.from_pandas(arrow.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3),
    }  # fmt: skip
    how = {
        "key": ["age", "sex", "seen"], "sensitive": "ill", "bins": {"age": 20},
        "missing": "level",
    }  # fmt: skip
    expected = None
    for kind, frame in kinds.items():
        found = cpv.audit(frame, frame, **how)
        expected = expected or found
        assert found.letters == expected.letters, kind
        for name, measure in found.measures.items():
            assert measure.values == pytest.approx(expected.measures[name].values), (kind, name)
        some = [x for x in found.letters if x[1] is None][:2] + found.worst("I1", 2)
        rows = found.records(some)
        assert kind in ("pandas", "dask") or type(rows) is type(frame), kind  # its own flavour
        ids = {
            "pandas": lambda r: r["id"].tolist(), "arrow": lambda r: r["id"].to_pylist(),
            "polars": lambda r: r["id"].to_list(),
            "lazy": lambda r: r.collect()["id"].to_list(),
            "duckdb": lambda r: [row[0] for row in r.fetchall()],
            "dask": lambda r: r["id"].compute().tolist(),
        }[kind](rows)  # fmt: skip
        if kind == "pandas":
            first = ids
        assert sorted(ids) == first, kind
        if kind in ("lazy", "duckdb", "dask"):
            with pytest.raises(cpv.InputError, match="lazy"):
                found.per_record()
        else:
            assert found.per_record().tolist() == pytest.approx(expected.per_record().tolist())
    assert len(first) == sum(expected.measures["k"].values[expected.letters.index(x)]
                             for x in dict.fromkeys(some))  # fmt: skip


def test_more_letters_than_a_program_could_use():
    table = pd.DataFrame({"zip": range(12_000), "ill": ["yes", "no", "no"] * 4_000})
    found = cpv.audit(table, key="zip", sensitive="ill", bootstrap=50)
    assert found.measures["k"].records == 12_000
    assert found.after.lower is None
    assert any("too few for an interval" in note for note in found.all_notes)
    with pytest.raises(cpv.InputError, match="12,000 different"):
        cpv.DiscreteSource.from_table(table, key="zip", sensitive="ill")


# ---- the interval ------------------------------------------------------------------------


def coverage(law, records, tables, seed, draws=200):
    """Return how often the interval covers I of the law."""
    rng, truth, hits = np.random.default_rng(seed), mutual_information(law), 0
    for _ in range(tables):
        counts = rng.multinomial(records, law.ravel()).reshape(law.shape)
        found = estimated(counts, draws=draws, seed=rng)
        hits += found.lower <= truth <= found.upper
    return hits / tables


def test_the_interval_covers_what_it_says_it_covers():
    law = np.random.default_rng(4).dirichlet(np.full(24, 1.0)).reshape(3, 8)
    found = coverage(law, 24 * 20, 250, seed=1)
    assert 0.91 < found < 0.985  # three standard errors of 250 tables around 95 %
    independent = np.outer([0.3, 0.7], [0.1, 0.2, 0.3, 0.4])
    assert coverage(independent, 400, 100, seed=2) > 0.95


@pytest.mark.long
@pytest.mark.parametrize(("shape", "seed"), [((2, 4), 1), ((3, 8), 2), ((7, 20), 3), ((7, 72), 4)])
def test_coverage_by_records_per_cell(shape, seed):
    """What the docstring of ``estimated`` says of 10 and of 20 records per observed cell."""
    law = np.random.default_rng(seed).dirichlet(np.full(math.prod(shape), 1.0)).reshape(shape)
    for per_cell, least in ((10, 0.88), (20, 0.91)):
        assert coverage(law, per_cell * math.prod(shape), 400, seed) > least


def unequal(shape, seed):
    """Return a law of W × X whose cells are of very unequal masses, as those of people are."""
    law = np.outer(1.0 / np.arange(1, shape[0] + 1), 1.0 / np.arange(1, shape[1] + 1) ** 1.2)
    law = law * np.random.default_rng(seed).lognormal(0.0, 0.5, shape)
    return law / law.sum()


def test_the_corrected_estimate_is_the_middle_of_its_interval():
    """It was less bias once, and the interval less bias twice: it could lie outside."""
    rng, law, missed, errors = np.random.default_rng(6), unequal((15, 1500), 3), 0, []
    for _ in range(8):
        counts = rng.multinomial(100_000, law.ravel()).reshape(law.shape)
        found = estimated(counts, draws=100, seed=rng)
        assert found.lower < found.corrected < found.upper
        assert found.corrected == pytest.approx((found.lower + found.upper) / 2)
        once = found.plugin - found.bias
        missed += not found.lower <= once <= found.upper
        errors.append([once, found.corrected])
    assert missed == 8  # so the defect would be seen
    once, twice = np.abs(np.mean(errors, axis=0) - mutual_information(law))
    assert twice < 0.8 * once  # the second correction takes bias off, and adds none
    assert estimated(counts).corrected == pytest.approx(errors[-1][0])  # without a bootstrap
    for counts in ([[40, 0], [0, 40]], [[20, 20], [20, 20]], [[80]]):  # cut at 0, or no spread
        found = estimated(counts, draws=50, seed=1)
        assert found.lower <= found.corrected <= found.upper


def test_a_negative_bias_is_corrected_upwards_and_says_so():
    found = estimated(np.diag([30, 40, 50]))
    assert found.bias < 0 < found.plugin < found.corrected
    assert "corrected upwards as fewer cells occur than values of both less one" in str(found)
    assert "upwards" not in str(estimated([[30, 10], [10, 30]]))


def test_the_naive_intervals_would_not_have_covered():
    """Percentiles of redrawn plug-in values are biased twice, which is why they are not used."""
    rng = np.random.default_rng(9)
    law = rng.dirichlet(np.full(140, 1.0)).reshape(7, 20)
    truth, missed = mutual_information(law), 0
    for _ in range(20):
        counts = rng.multinomial(1400, law.ravel()).reshape(7, 20)
        redrawn = rng.multinomial(1400, counts.ravel() / 1400, 100)
        values = [mutual_information(r.reshape(7, 20)) for r in redrawn]
        missed += not np.quantile(values, 0.025) <= truth <= np.quantile(values, 0.975)
    assert missed > 15


def test_redrawn_tables_are_measured_as_tables_are():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 60, (3, 5))
    found = estimated(counts, draws=400, seed=7)
    again = estimated(counts, draws=400, seed=7)
    assert found == again != estimated(counts, draws=400, seed=8)
    rows, columns = np.nonzero(counts)
    size, values = counts.sum(), []
    for cells in np.random.default_rng(0).multinomial(size, counts[rows, columns] / size, 4000):
        table = np.zeros_like(counts)
        table[rows, columns] = cells
        values.append(mutual_information(table) - miller_madow(table))
    centre = 2 * found.plugin - found.bias - np.mean(values)
    half = 1.96 * np.std(values)
    assert (found.lower + found.upper) / 2 == pytest.approx(centre, abs=0.15 * half)
    assert (found.upper - found.lower) / 2 == pytest.approx(half, rel=0.15)
    wide = estimated(counts, draws=400, seed=7, level=0.99)
    assert wide.lower < found.lower
    assert wide.upper > found.upper
    nats = estimated(counts, draws=400, seed=7, units="nats")
    assert nats.upper == pytest.approx(found.upper * math.log(2))


def test_intervals_that_are_not_given_say_why():
    few = estimated([[3, 1], [1, 3]], draws=100)
    assert (few.lower, few.note) == (None, "2.0 records per observed cell are too few for an "
                                           "interval")  # fmt: skip
    assert estimated([[8, 5], [5, 8]], draws=100).lower is None  # 6.5 each, covered 1 % at worst
    some = estimated([[18, 5], [5, 18]], draws=100, seed=1)
    assert some.lower is not None
    assert "covers less" in some.note
    assert "covers less" in estimated([[30, 5], [5, 30]], draws=100, seed=1).note  # 17.5 each
    rare = unequal((15, 400), 3)  # 22.1 records per cell, but few in most of them
    counts = np.random.default_rng(1).multinomial(100_000, rare.ravel()).reshape(rare.shape)
    assert "of bias that Miller and Madow's formula leaves" in estimated(counts, draws=100).note
    assert estimated([[300, 99], [99, 300]], draws=100, seed=1).note == ""
    none = estimated([[300, 1], [1, 300]])
    assert (none.lower, none.note) == (None, "")
    for wrong in ({"counts": [[0.5, 1]]}, {"draws": -1}, {"level": 1.0}, {"level": 0}):
        (name,) = wrong
        with pytest.raises(cpv.InputError, match=name):
            estimated(**{"counts": [[1, 2]], **wrong})


# ---- written down ------------------------------------------------------------------------


def owner_only(path):
    return stat.S_IMODE(Path(path).stat().st_mode) == 0o600 or sys.platform == "win32"


def test_the_json_document(tmp_path):
    found = audited(criteria=CRITERIA, bootstrap=50, seed=1)
    found.to_json(tmp_path / "audit.json")
    assert owner_only(tmp_path / "audit.json")
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(found.document()))
    assert document["schema"] == "cvxprivacy audit 1"
    assert [c["holds"] for c in document["criteria"]] == [v.holds for v in found.verdicts]
    assert document["information"]["after"]["upper"] == found.after.upper
    assert cpv.Coding.from_dict(document["released"]).key == ("age", "sex")
    for i, letter in enumerate(document["letters"]):
        assert tuple(letter["letter"]) == found.letters[i]
        assert letter["counts"] == found.released.joint[:, i].tolist()
        assert letter["I1"] == found.measures["I1"].values[i]
    # infinite measures are still JSON
    endless = cpv.audit(people(), key="age", sensitive="ill")
    endless.to_json(tmp_path / "endless.json")

    def refused(value):
        raise AssertionError(value)

    text = (tmp_path / "endless.json").read_text(encoding="utf-8")
    assert json.loads(text, parse_constant=refused)["measures"]["delta"]["worst"] == {
        "float": "inf"
    }


class Page(HTMLParser):
    """What a browser would see: tags in order, and the text of each element."""

    VOID = ("meta", "path", "use", "rect")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.said = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_stands_alone_and_is_well_made(tmp_path):
    table = people().assign(ill=lambda t: t["ill"].replace("none", "<script>alert(1)</script>"))
    table = table.rename(columns={"sex": "s&x"})
    table["s&x"] = table["s&x"].replace("f", "$f_{$<b>")
    found = cpv.audit(
        table, coarse(table), key=["age", "s&x"], sensitive="ill", criteria=CRITERIA,
        bootstrap=50, seed=1,
    )  # fmt: skip
    found.to_html(tmp_path / "audit.html")
    assert owner_only(tmp_path / "audit.html")
    text = (tmp_path / "audit.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []  # everything is closed in order
    assert page.all("html") == [{"lang": "en"}]
    assert page.all("meta")[0] == {"charset": "utf-8"}
    assert len(page.all("title")) == len(page.all("h1")) == len(page.all("main")) == 1
    assert page.all("script") == []
    assert "<script>alert(1)</script>" in "".join(page.said)  # as text
    assert "s&x" in "".join(page.said)
    # nothing is loaded: no address, no source, only references inside the picture
    assert "://" not in text
    for tag, attributes in page.tags:
        assert "src" not in attributes
        assert tag not in ("link", "iframe", "img", "object")
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    named = {attributes.get("id") for _, attributes in page.tags}
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | {a["href"][1:] for a in page.all("use")}
    assert used <= named
    # tables have captions and headers, the picture a description
    assert len(page.all("caption")) == len(page.all("table")) >= 5
    scopes = {attributes.get("scope") for attributes in page.all("th")}
    assert scopes == {"col", "row"}
    (picture,) = page.all("svg")
    assert picture["role"] == "img"
    assert "I(W; X̃)" in picture["aria-label"]
    # clips have an extent, without which browsers show no bar
    assert all(float(a["width"]) > 0 < float(a["height"]) for a in page.all("rect"))
    assert "BROKEN" in text
    # in a notebook: the same without the picture
    assert "<svg" not in found._repr_html_()
    Page(found._repr_html_())


def test_the_picture(tmp_path):
    import matplotlib.pyplot as plt

    for name, found in {
        "few": audited(criteria=CRITERIA, bootstrap=50, seed=1),
        "many": cpv.audit(people(), key=["age", "sex"], sensitive="ill"),
    }.items():
        figure = found.draw()
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        left, right = figure.axes
        bars = [patch.get_height() for patch in left.patches]
        if name == "few":  # Fig. 2's order: original, t, ℓ, released
            bounds = [found.averages[k].bound for k in ("t", "H(W) − log ℓ")]
            expected = [found.before.plugin, *bounds, found.after.plugin]
            heights = [patch.get_height() for patch in right.patches]
            assert heights == pytest.approx(
                [*found.measures["I1"].values, *found.measures["I2"].values]
            )
        else:
            expected = [found.after.plugin]
        assert bars == pytest.approx(expected)
        plt.close(figure)


# ---- the command -------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().to_csv("t.csv", index=False)
    coarse(people()).to_csv("r.csv", index=False)
    return tmp_path


BOTH = ("audit", "t.csv", "r.csv", "--sensitive", "ill", "--key", "age,sex")


@pytest.mark.usefixtures("here")
def test_the_command_says_what_python_says():
    told = say(*BOTH, "--bootstrap", 0, "--criterion", "KAnonymity=10")
    assert told.out.strip() == str(audited(criteria=[cpv.KAnonymity(10)]))
    shown = say(*BOTH, "--bootstrap", 0, "--json", "--criterion", "TCloseness=0.05", code=1)
    document = json.loads(shown.out)
    assert "letters" not in document
    assert document["holds"] is False
    expected = audited(criteria=[cpv.TCloseness(0.05)])
    assert document["measures"]["I1"]["worst"] == expected.measures["I1"].worst
    alone = say("audit", "t.csv", "--sensitive", "ill", "--key", "age", "--bins", "age=20")
    assert "[20, 40)" not in alone.err
    assert "2 letters" in alone.out
    again = [say(*BOTH, "--seed", 3).out for _ in range(2)]
    assert again[0] == again[1]
    assert "at 95%" in again[0]


@pytest.mark.usefixtures("here")
def test_the_command_writes_for_the_owner_alone_and_says_so():
    told = say(*BOTH, "--html", "a.html", "--out", "a.json", "--criterion", "LDiversity=2.9",
               code=1)  # fmt: skip
    assert "BROKEN" in told.out
    for name in ("a.html", "a.json"):
        assert owner_only(name)
        assert f"{name}: the " in told.out
    assert told.out.count("only you can read it") == 2
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["letters"]
    Page(Path("a.html").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("more", "pieces"),
    [
        (("--key", "town"), ("--key", "town", "'age'")),
        (("--criterion", "Secrecy=1"), ("--criterion", "Secrecy")),
        (("--criterion", "LeakageCap=1"), ("--criterion", "per letter")),
        (("--criterion", "KAnonymity=none"), ("--criterion", "KAnonymity")),
        (("--bins", "age=ten"), ("--bins", "ten")),
        (("--bins", "sex=10"), ("sex",)),
        (("--bootstrap", "-5"), ("bootstrap",)),
        (("--html", "r.csv"), ("--html", "r.csv")),
        (("--out", "no/such/folder.json"), ("--out", "folder")),
        (("--units", "bans"), ("units",)),
    ],
)
def test_the_command_refuses_in_one_line(more, pieces):
    before = {p: p.read_bytes() for p in Path().iterdir()}
    told = say(*BOTH, *more, code=2)
    assert told.out == ""
    assert "Traceback" not in told.err
    for piece in pieces:
        assert piece in told.err
    assert {p: p.read_bytes() for p in Path().iterdir()} == before


@pytest.mark.usefixtures("here")
def test_tables_that_cannot_be_read():
    for args in (("audit", "none.csv"), ("audit", "t.csv", "none.csv")):
        told = say(*args, "--sensitive", "ill", "--key", "age", code=2)
        assert "none.csv" in told.err
    Path("w.csv").write_text("age,sex\n20,f\n", encoding="utf-8")
    told = say("audit", "t.csv", "w.csv", "--sensitive", "ill", "--key", "age,sex", code=2)
    assert "RELEASED: no column 'ill'" in told.err


@pytest.mark.usefixtures("here")
def test_the_command_loads_no_solver():
    code = (
        "import sys\nfrom cvxprivacy.cli import main\n"
        "try:\n    main(['audit', 't.csv', '--sensitive', 'ill', '--key', 'sex', '--bootstrap', "
        "'0'], prog_name='cvxprivacy')\nexcept SystemExit:\n    pass\n"
        "assert 'cvxpy' not in sys.modules\nassert 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# ---- Adult, and pycanon ------------------------------------------------------------------


@pytest.fixture
def adult():
    folder = os.environ.get("CVXPRIVACY_DATA")
    if not folder or not (Path(folder) / "adult.csv").is_file():
        pytest.skip("CVXPRIVACY_DATA does not name a folder with adult.csv (UCI Adult)")
    return Path(folder) / "adult.csv"


@pytest.mark.usefixtures("adult")
def test_the_four_groups_of_the_paper():
    frame = cpv.datasets.load_adult(complete=True)
    assert len(frame) == 30_162
    found = cpv.audit(
        frame, key="age", sensitive="marital-status",
        bins={"age": (-math.inf, 26, 51, 76, math.inf)},
        criteria=[cpv.TCloseness(0.55), cpv.LDiversity(2.7)],
    )  # fmt: skip
    assert found.greatest_diversity == pytest.approx(3.530, abs=5e-4)
    t, diverse = found.verdicts
    assert [found.letters[i] for i in t.broken] == ["< 26", "≥ 76"]
    assert [found.letters[i] for i in diverse.broken] == ["< 26"]
    assert all(c.holds for c in found.averages.values())
    i1 = dict(zip(found.letters, found.measures["I1"].values, strict=True))
    assert i1["< 26"] == pytest.approx(0.86, abs=5e-3)
    assert i1["≥ 76"] == pytest.approx(0.86, abs=5e-3)
    assert found.measures["entropy l"].worst == pytest.approx(1.78, abs=5e-3)


@pytest.mark.long
def test_pycanon_itself(adult, tmp_path):
    """The numbers stated in test_measures.py, from pycanon in an environment of its own."""
    module = script(ROOT / "benchmarks" / "pycanon_audit.py")
    try:
        python = module.environment(tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"pycanon 1.3.5 cannot be installed here: {error}")
    for key, sensitive in module.CASES[1:]:
        theirs = module.pycanon(python, adult, key, sensitive)
        ours = module.ours(adult, key, sensitive)
        for name, value in ours["found"].items():
            assert theirs["found"][name] == pytest.approx(value, rel=1e-12), (sensitive, name)


# ---- records of many letters -------------------------------------------------------------


@pytest.mark.parametrize("key", [["x"], ["x", "y"]])
@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "lazy", "duckdb", "dask"])
def test_records_of_thousands_of_letters(kind, key):
    pl = pytest.importorskip("polars", reason=WHY)
    pa = pytest.importorskip("pyarrow", reason=WHY)
    duckdb = pytest.importorskip("duckdb", reason=WHY)
    dd = pytest.importorskip("dask.dataframe", reason=WHY)
    table = pd.DataFrame({"x": np.arange(3000), "y": np.arange(3000) % 3, "w": np.arange(3000) % 2})
    frame = {
        "pandas": lambda: table, "arrow": lambda: pa.Table.from_pandas(table),
        "polars": lambda: pl.from_pandas(table), "lazy": lambda: pl.from_pandas(table).lazy(),
        "duckdb": lambda: duckdb.connect().from_arrow(pa.Table.from_pandas(table)),
        "dask": lambda: dd.from_pandas(table, npartitions=2),
    }[kind]()  # fmt: skip
    found = cpv.audit(frame, key=key, sensitive="w")
    rows = found.records(found.letters[:2500])
    if kind == "lazy":
        rows = rows.collect()
    assert (len(rows.fetchall()) if kind == "duckdb" else len(rows)) == 2500


def test_records_of_decimals_and_of_dropped_ones():
    from decimal import Decimal

    table = pd.DataFrame(
        {"x": [Decimal("1.10"), Decimal("1.1"), Decimal("2")] * 8, "w": list("aab") * 8}
    )
    found = cpv.audit(table, key="x", sensitive="w")
    assert len(found.records(found.letters)) == 24
    assert len(found.records(found.worst("k", 1))) == found.measures["k"].worst
    table.loc[0, "x"] = Decimal("2")  # behind the audit's back
    with pytest.raises(cpv.InputError, match="changed since"):
        found.records([1.1])
    gaps = people().assign(ill=lambda t: t["ill"].where(t.index % 5 > 0, None))
    found = cpv.audit(gaps, key="sex", sensitive="ill", missing="drop")
    assert len(found.records(found.letters)) == 240
    assert np.isnan(found.per_record()).tolist() == [i % 5 == 0 for i in range(300)]


def test_duckdb_decimals_are_filtered():
    pa = pytest.importorskip("pyarrow", reason=WHY)
    duckdb = pytest.importorskip("duckdb", reason=WHY)
    from decimal import Decimal

    x = pa.array([Decimal("1.10"), Decimal("2.00"), None] * 8, pa.decimal128(10, 2))
    relation = duckdb.connect().from_arrow(pa.table({"x": x, "w": list("aab") * 8}))
    found = cpv.audit(relation, key="x", sensitive="w", missing="level")
    assert [len(found.records([x]).fetchall()) for x in found.letters] == [8, 8, 8]


# ---- the order of W ----------------------------------------------------------------------

STEPS = pd.DataFrame({
    "x": [0] * 6 + [1] * 6,
    "w": ["low", "low", "mid", "low", "low", "mid", "high", "high", "mid", "mid", "high", "high"],
})  # fmt: skip


def test_text_is_in_the_order_that_is_given():
    numbers = STEPS.assign(w=STEPS["w"].map({"low": 0, "mid": 1, "high": 2}))
    expected = cpv.audit(numbers, key="x", sensitive="w").measures["ordered distance"].values
    found = cpv.audit(STEPS, key="x", sensitive="w", ordered=["low", "mid", "high"])
    assert found.measures["ordered distance"].values == pytest.approx(expected)
    alphabet = measures.earth_mover(found.released.joint, ordered=True)
    assert alphabet != pytest.approx(expected)
    for wrong, said in (
        ("low,mid,high", "ordered"), (["low", "mid"], "lacks 'high'"), (3, "ordered"),
        (["low", "low", "mid", "high"], "distinct"), (True, "no order of its own"),
    ):  # fmt: skip
        with pytest.raises(cpv.InputError, match=said):
            cpv.audit(STEPS, key="x", sensitive="w", ordered=wrong)
    gap = numbers.assign(w=numbers["w"].where(numbers.index > 0))
    with pytest.raises(cpv.InputError, match="no order"):
        cpv.audit(gap, key="x", sensitive="w", missing="level", ordered=True)
    two = STEPS.assign(v=list("ab") * 6)
    with pytest.raises(cpv.InputError, match="no order"):
        cpv.audit(two, key="x", sensitive=["w", "v"], ordered=True)


def test_the_order_of_the_original_is_kept():
    table = pd.DataFrame({"x": [0] * 6 + [1] * 6, "w": [5, 15, 105, 5, 15, 25] * 2})
    table.loc[6:, "w"] += 10
    text = table.assign(w=[f"[{v // 10 * 10}, {v // 10 * 10 + 10})" for v in table["w"]])
    expected = cpv.audit(table, key="x", sensitive="w", bins={"w": 10})
    found = cpv.audit(table, text, key="x", sensitive="w", bins={"w": 10})
    assert found.measures["ordered distance"].worst == pytest.approx(
        expected.measures["ordered distance"].worst
    )
    steps = STEPS.assign(w=pd.Categorical(STEPS["w"], ["low", "mid", "high"], ordered=True))
    both = [cpv.audit(steps, released, key="x", sensitive="w") for released in (steps, STEPS)]
    values = [a.measures["ordered distance"].worst for a in both]
    assert values[0] == pytest.approx(values[1])


def test_an_ordered_dictionary_of_arrow_is_in_order():
    pa = pytest.importorskip("pyarrow", reason=WHY)
    kinds = ["low", "mid", "high"]
    codes = pa.array([kinds.index(w) for w in STEPS["w"]], pa.int8())
    w = pa.DictionaryArray.from_arrays(codes, pa.array(kinds), ordered=True)
    found = cpv.audit(pa.table({"x": STEPS["x"], "w": w}), key="x", sensitive="w")
    expected = cpv.audit(STEPS, key="x", sensitive="w", ordered=kinds)
    assert found.measures["ordered distance"].worst == pytest.approx(
        expected.measures["ordered distance"].worst
    )


# ---- the two tables against each other ---------------------------------------------------


def test_more_information_than_before_is_seen_not_judged():
    table = pd.DataFrame({"x": [0] * 50, "w": list("ab") * 25})
    drawn = table.assign(x=np.random.default_rng(2).integers(0, 2, 50))
    found = cpv.audit(table, drawn, key="x", sensitive="w", criteria=[cpv.KAnonymity(2)])
    assert not found.averages["I(W; X)"].holds
    assert found.holds
    assert "BROKEN" not in str(found)
    assert "seen    on average, I(W; X̃)" in str(found)
    assert "sampling, or X̃ uses W" in str(found)
    for other in (drawn[1:], drawn.assign(w="a")):  # no comparison of like with like
        assert "I(W; X)" not in cpv.audit(table, other, key="x", sensitive="w").averages


def test_what_suppression_hides():
    table = pd.DataFrame({"x": [0, 0, 1, 1] * 5, "w": list("abcc") * 5})
    released = table[table["w"] != "c"]
    how = {"key": "x", "sensitive": "w", "criteria": [cpv.TCloseness(0.1)]}
    blind = cpv.audit(table, released, **how)
    assert blind.holds
    assert "10 records of 20 are released" in blind.notes
    assert "w c: vanished in the release, 10 records" in blind.notes
    seen = cpv.audit(table, released, **how, reference="original")
    assert seen.measures["I1"].worst == pytest.approx(1.0)  # of (¼, ¼, ½) only a and b are left
    assert not seen.holds
    assert seen.measures["delta"].worst == math.inf
    assert seen.measures["equal distance"].worst == pytest.approx(0.5)
    with pytest.raises(cpv.InputError, match="reference: the original has no 'd'"):
        cpv.audit(table, table.replace("c", "d"), **how, reference="original")
    assert "w d: new in the release, 10 records" in cpv.audit(
        table, table.replace("c", "d"), **how).notes  # fmt: skip
    with pytest.raises(cpv.InputError, match="reference"):
        cpv.audit(table, **how, reference="theirs")
    some = cpv.audit(table, table[4:], **how)
    assert any("the least share" in note for note in some.notes)
    coded = table.assign(w=table["w"].map({"a": 1, "b": 2, "c": 3}))
    text = coded.assign(w=coded["w"].astype(str))
    assert any("w is int in the original and str" in n
               for n in cpv.audit(coded, text, key="x", sensitive="w").notes)  # fmt: skip


def test_records_dropped_for_missing_values_were_released():
    table = pd.DataFrame({"x": [1] * 20, "w": list("ab") * 10})
    found = cpv.audit(
        table, table.assign(x=[None] + [1] * 19), key="x", sensitive="w", missing="drop"
    )
    assert not any("are released" in n or "changed" in n for n in found.notes)
    twice = cpv.audit(table, pd.concat([table, table]), key="x", sensitive="w")
    assert "the release has 40 records, the original 20" in twice.notes
    assert any("1 records with missing values" in note for note in found.notes)


def test_text_in_a_binned_column_is_noted():
    table = people()
    starred = table.assign(age=["*", *map(str, table["age"][1:])])
    found = audited(table, starred, bins={"age": 20})
    assert any("age holds text in the release, such as '*'" in n for n in found.notes)
    labels = table.assign(age=[f"[{a // 20 * 20}, {a // 20 * 20 + 20})" for a in table["age"]])
    assert not any("holds text" in n for n in audited(table, labels, bins={"age": 20}).notes)


def test_bands_of_a_width_cover_both_tables():
    table = people()
    found = audited(table, table.assign(age=table["age"] + 35), bins={"age": 20})
    assert {x[0] for x in found.letters} == {"[40, 60)", "[60, 80)", "[80, 100)"}
    assert {x[0] for x in found.original.x} == {"[20, 40)", "[40, 60)"}
    with pytest.raises(cpv.InputError, match=r"outside.*in the released table"):
        audited(table, table.assign(age=table["age"] + 35), bins={"age": [20, 40, 60]})


def test_errors_say_which_table():
    table = people()
    with pytest.raises(cpv.InputError, match="^released: no records"):
        audited(table, table[:0])
    with pytest.raises(cpv.InputError, match="^original: no records"):
        audited(table[:0], table)
    gap = table.assign(sex=table["sex"].where(table.index > 0, None))
    with pytest.raises(cpv.InputError, match="in the released table"):
        audited(table, gap)
    with pytest.raises(cpv.InputError, match="^original: a Series"):
        cpv.audit(table["age"], key="age", sensitive="ill")


def test_more_that_cannot_be_audited():
    for options, said in (
        ({"seed": -1}, "seed"), ({"seed": "a"}, "seed"), ({"bootstrap": 1}, "no spread"),
        ({"criteria": cpv.KAnonymity(2)}, "pass a list"),
    ):  # fmt: skip
        with pytest.raises(cpv.InputError, match=said):
            audited(**options)
    found = audited()
    for letters in ("a", -1, 0, 1.5):
        with pytest.raises(cpv.InputError, match="letters"):
            found.worst("I1", letters)
    with pytest.raises(cpv.InputError, match="no released letter"):
        found.records([["20+", "f"]])
    with pytest.raises(cpv.InputError, match="draws"):
        estimated([[50, 10], [10, 50]], draws=1)


def test_notes_are_in_the_units_of_the_audit():
    sparse = people(30)
    found = cpv.audit(sparse, key="age", sensitive="ill", units="nats")
    assert any(f"{found.after.plugin:.4f} nats" in note for note in found.notes)
    assert not any("bits" in note for note in found.notes)
    assert "kept" not in cpv.audit(sparse, sparse, key="age", sensitive="ill").facts


def test_control_characters_do_not_reach_the_terminal():
    table = pd.DataFrame({"x": ["\x1b[31mred\x07", "b"] * 50, "w": list("abcd") * 25})
    text = str(cpv.audit(table, key="x", sensitive="w", criteria=[cpv.KAnonymity(1000)]))
    assert r"\x1b[31mred\x07" in text
    assert "\x1b" not in text


@pytest.mark.usefixtures("here")
def test_the_command_takes_an_order_and_names_the_tables():
    text = say(*BOTH, "--bootstrap", 0, "--ordered", "none,cold,flu").out
    assert "ordered distance" in text
    assert "ordered distance" not in say(*BOTH, "--bootstrap", 0).out
    assert "no order of its own" in say(*BOTH, "--bootstrap", 0, "--ordered", code=2).err
    Path("none.csv").write_text("age,sex,ill\n", encoding="utf-8")
    args = ("--sensitive", "ill", "--key", "age,sex")
    assert (
        "cvxprivacy: RELEASED: no records" in say("audit", "t.csv", "none.csv", *args, code=2).err
    )
    assert (
        "cvxprivacy: ORIGINAL: no records" in say("audit", "none.csv", "t.csv", *args, code=2).err
    )
    seen = say(*BOTH, "--bootstrap", 0, "--json", "--criterion", "TCloseness=0.05", code=1)
    document = json.loads(seen.out)
    expected = audited(criteria=[cpv.TCloseness(0.05)])
    assert document["criteria"][0]["letters"] == len(expected.verdicts[0].broken)
    assert "places" not in document["criteria"][0]
    assert expected.document()["criteria"][0]["places"] == expected.verdicts[0].broken.tolist()
    assert list(document["averages"]) == ["before", "t"]
    assert document["averages"]["before"]["title"] == "I(W; X)"
    device = say(*BOTH, "--bootstrap", 0, "--html", os.devnull).out
    assert "only you can read it" not in device


def test_the_picture_of_a_script_without_glyphs_warns_of_nothing(recwarn, tmp_path):
    table = pd.DataFrame({"x": ["漢字", "b"] * 50, "w": list("abcd") * 25})
    cpv.audit(table, key="x", sensitive="w").to_html(tmp_path / "a.html")
    assert not [w for w in recwarn if "Glyph" in str(w.message)]
