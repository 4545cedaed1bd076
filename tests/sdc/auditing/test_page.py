"""The audit as a page and as a picture."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import cvxprivacy_sdc as sdc
from tests.frontiers import test_notebook
from tests.sdc.audits import CRITERIA, Page, audited, coarse, owner_only, people


@pytest.fixture
def hostile():
    """An audit of a table whose names and values are markup."""
    table = people().assign(ill=lambda t: t["ill"].replace("none", "<script>alert(1)</script>"))
    table = table.rename(columns={"sex": "s&x"})
    table["s&x"] = table["s&x"].replace("f", "$f_{$<b>")
    return sdc.audit(
        table, coarse(table), key=["age", "s&x"], sensitive="ill", criteria=CRITERIA,
        bootstrap=50, seed=1,
    )  # fmt: skip


def test_the_page_stands_alone_and_is_well_made(hostile, tmp_path):
    hostile.to_html(tmp_path / "audit.html")
    assert owner_only(tmp_path / "audit.html")
    text = (tmp_path / "audit.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []  # everything is closed in order
    assert page.all("html") == [{"lang": "en"}]
    assert page.all("meta")[0] == {"charset": "utf-8"}
    assert len(page.all("title")) == len(page.all("h1")) == len(page.all("main")) == 1
    assert page.all("script") == []
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
    assert {attributes.get("scope") for attributes in page.all("th")} == {"col", "row"}
    (picture,) = page.all("svg")
    assert picture["role"] == "img"
    assert "I(W; X̃)" in picture["aria-label"]
    # clips have an extent, without which browsers show no bar
    assert all(float(a["width"]) > 0 < float(a["height"]) for a in page.all("rect"))


def test_the_page_says_what_the_audit_says(hostile):
    """Every fact, condition, measure, note and worst letter; in a notebook without the picture."""
    bare = hostile._repr_html_()
    assert "<svg" not in bare
    assert "<html" not in bare
    messages = [" ".join(piece.split()) for piece in Page(bare).pieces if piece.strip()]
    assert "This page tells what ill is in the worst groups" in messages[0]
    for name, fact in hostile.facts.items():
        assert messages[messages.index(name) + 1] == fact
    for row in hostile.conclusions:
        at = messages.index(row[0])
        assert tuple(messages[at : at + 3]) == row
    assert bare.count('class="broken"') == sum(row[1] == "BROKEN" for row in hostile.conclusions)
    for measure in hostile.measures.values():
        at = messages.index(measure.title)
        assert messages[at + 2 : at + 4] == [str(measure.letters), str(measure.records)]
    for note in hostile.all_notes:
        assert note in messages
    at = messages.index(f"By {hostile.measures['k'].title}")
    worst = hostile.letters.index(hostile.worst("k", 1)[0])
    counts = hostile.released.joint[:, worst]
    share = f"{hostile.released.w[counts.argmax()]}: {counts.max() / counts.sum():.0%}"
    assert messages[at + 7 : at + 9] == [
        "({}, {})".format(*hostile.letters[worst]), str(int(counts.sum()))
    ]  # fmt: skip
    assert messages[at + 12] == share
    assert '<td class="n">' in bare


@pytest.mark.parametrize("few", [True, False])
def test_the_picture(few):
    alone = sdc.audit(people(), key=["age", "sex"], sensitive="ill")
    result = audited(criteria=CRITERIA, bootstrap=50, seed=1) if few else alone
    figure = result.draw()
    left, right = figure.axes
    expected = [result.after.plugin]
    if few:  # Fig. 2's order: original, t, ℓ, released
        bounds = [result.averages[name].bound for name in ("t", "H(W) − log ℓ")]
        expected = [result.before.plugin, *bounds, result.after.plugin]
        heights = [patch.get_height() for patch in right.patches]
        values = [*result.measures["I1"].values, *result.measures["I2"].values]
        assert heights == pytest.approx(values)
    assert [patch.get_height() for patch in left.patches] == pytest.approx(expected)
    plt.close(figure)


def test_the_picture_of_a_script_without_glyphs_warns_of_nothing(recwarn, tmp_path):
    table = pd.DataFrame({"x": ["漢字", "b"] * 50, "w": list("abcd") * 25})
    sdc.audit(table, key="x", sensitive="w").to_html(tmp_path / "a.html")
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


@pytest.mark.long
def test_a_picture_that_follows_an_audit_is_shown_by_itself(monkeypatch):
    code = """
import pandas as pd
import cvxprivacy_sdc as sdc
frame = pd.DataFrame({'x': list('aabb'), 'w': list('cddd')})
sdc.audit(frame, key='x', sensitive='w')"""
    test_notebook.check(code, monkeypatch)
