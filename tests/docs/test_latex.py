"""Every statement is set without an error by LaTeX and by MathJax; labels stay text."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.leakage import MEASURES
from tests import instances
from tests.formulations.test_dual_statement import CASES, GAUSSIAN

NASTY = ["<script>alert(1)</script>", r"50% & $more_#1$ {x} \oops ~^"]
SOURCE = cpv.DiscreteSource(
    [[0.4, 0.1], [0.1, 0.4]], w=NASTY, x=[("<b>", 1), ("c", 2.5)], names=("<i>W</i>", "X_1")
)
MATHJAX = Path(
    sysconfig.get_path("purelib"),
    *("sphinx-mathjax-offline", "static", "mathjax", "tex-chtml-full.js"),
)


@cache
def problems():
    """Return one of each formulation, criterion and measure, and some with names of all signs."""
    made = dict(CASES) | dict(GAUSSIAN)
    made |= {f"fast {name}": make(1.0) for name, make in instances.FAST.items()}
    made |= {f"minimal {name}": make() for name, make in instances.MINIMAL.items()}
    rules = [cpv.DeltaDisclosure(0.9)]
    made["most useful"] = cpv.MostUsefulRelease(
        SOURCE, rules, distortion=[[0, 1], [1, 0]], budget=0.4
    )
    plain = cpv.PrivacyDistortion(SOURCE, [[0, 1], [1, 0]], budget=0.1)
    q = plain.variables["Q"]
    for i, name in enumerate(NASTY):
        made[f"nasty {i}"] = plain.with_constraint(name, q[0, 1] <= 0.2)
        made[f"nasty rows {i}"] = plain.with_constraint(name, q[0] <= 0.9)
        made[f"nasty law {i}"] = cpv.PrivacyDistortion(
            SOURCE, [[0, 1], [1, 0]], budget=0.1, laws={name: SOURCE}
        )
    return made


@cache
def formulas():
    """Return the name of a problem, what is written of it, and that."""
    return [
        (name, kind, getattr(problem, kind))
        for name, problem in problems().items()
        for kind in ("latex", "latex_expanded", "dual_latex")
    ]


def distinct():
    return sorted({formula for _, _, formula in formulas()})


def test_every_measure_and_criterion_is_among_them():
    text = " ".join(map(repr, problems().values())) + " ".join(problems())
    for measure in MEASURES.keys() - {"MutualInformation"}:  # which is all others'
        assert measure in text, measure
    for name in ("RecordEntropy", "DeltaDisclosure", "MaximalLeakage", "PreserveMarginal"):
        assert name in text


@pytest.mark.parametrize("kind", ["latex", "latex_expanded", "dual_latex"])
def test_statements_hold_no_letter_that_latex_lacks(kind):
    for name, ours, formula in formulas():
        if ours == kind:
            assert formula.isascii(), f"{name}: {formula}"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_sets_them(tmp_path):
    body = "\n".join(f"\\[\n{formula}\n\\]" for formula in distinct())
    page = f"\\documentclass{{article}}\n\\usepackage{{amsmath}}\n\\begin{{document}}\n{body}\n"
    (tmp_path / "all.tex").write_text(page + "\\end{document}\n", encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path, capture_output=True, text=True, check=False, errors="replace",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
    assert "Missing character" not in (tmp_path / "all.log").read_text(errors="replace")


@pytest.mark.long
@pytest.mark.skipif(not MATHJAX.exists(), reason="sphinx-mathjax-offline is not installed")
def test_mathjax_sets_them(tmp_path, browser):
    body = "".join(f"<p>$${escape(formula)}$$</p>" for formula in distinct())
    page = tmp_path / "all.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><script src='{MATHJAX.as_uri()}'></script>{body}",
        encoding="utf-8",
    )
    view = browser.new_page()
    view.goto(page.as_uri())
    view.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
    view.evaluate("() => MathJax.startup.promise", None)
    errors = view.eval_on_selector_all(
        "mjx-merror, [data-mjx-error]", "es => es.map(e => e.outerHTML.slice(0, 300))"
    )
    wide = view.eval_on_selector_all(
        "mjx-container", "es => es.map(e => e.querySelector('mjx-math').offsetWidth)"
    )
    view.close()
    assert not errors
    assert len(wide) == len(distinct())
    assert min(wide) > 20


# ---- in Jupyter --------------------------------------------------------------------------


class Elements(HTMLParser):
    """The elements of a piece of HTML; each that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@cache
def shown():
    problem = cpv.PrivacyDistortion(SOURCE, [[0, 1], [1, 0]], budget=0.1)
    solution = problem.solve()
    gaussian = cpv.GaussianSource(
        [[2.0, 1.0], [1.0, 2.0]], sensitive=["<i>w</i>"], key=["<b>x</b>"],
        names=["<i>w</i>", "<b>x</b>"],
    )  # fmt: skip
    bound = cpv.QuadraticGaussian(gaussian, 0.8).solve()
    many = cpv.HammingWaterFilling(np.full(5000, 1 / 5000), 0.3).solve()
    return {
        "source": SOURCE, "solution": solution, "channel": solution.channel,
        "Gaussian source": gaussian, "Gaussian solution": bound, "Gaussian release": bound.release,
        "Hamming channel": many.release, "frontier": cpv.frontier(problem, tol=0.05),
    }  # fmt: skip


def test_what_jupyter_shows_is_whole_and_holds_labels_as_text():
    for value in shown().values():
        outcome = Elements(value._repr_html_())
        assert not {"script", "i"} & set(outcome.elements)
        assert len(outcome.text) < 20_000
        assert value._repr_html_() == value._repr_html_()  # the same in each build


def test_what_jupyter_shows_says_what_there_is():
    assert "I(W; X)" in shown()["source"]._repr_html_()
    assert "0.2781 bits" in shown()["source"]._repr_html_()
    assert "&lt;script&gt;" in shown()["source"]._repr_html_()
    channel = Elements(shown()["channel"]._repr_html_())
    assert channel.elements.count("td") == 4
    assert "<b>, 1" in channel.text
    assert "0.900" in channel.text
    hamming = Elements(shown()["Hamming channel"]._repr_html_())
    assert "12 of 5,000 rows" in hamming.text
    assert hamming.elements.count("td") == 144
    assert "svg" in Elements(shown()["frontier"]._repr_html_()).elements


@pytest.mark.parametrize("name", ["laws", "W = X", "quadratic", "fast box", "fast categorical"])
def test_a_problem_shows_its_program_and_its_size(name):
    text = problems()[name]._repr_latex_()
    assert text.count("$$") == 2
    assert problems()[name].latex in text
    assert text.isascii()


# ---- what is said ------------------------------------------------------------------------


def test_where_w_is_x_it_is_called_so():
    source = cpv.DiscreteSource.identical([0.5, 0.25, 0.25])
    rules = [cpv.TCloseness(1), cpv.LDiversity(1.25), cpv.LeakageCap(2)]
    problem = cpv.PrivacyDistortion(source, cpv.hamming(3), budget=0.25, criteria=rules)
    for text in (problem.latex, str(problem), problem.latex_expanded, problem.dual_latex):
        assert "W" not in text.replace("PrivacyDistortion", "").split("; |W|")[0]
    assert r"I(X; \hat X)" in problem.latex
    assert "min I(X; X̂)" in repr(problem)
    moments = cpv.ReverseWaterFilling([1, 2], 1)
    assert r"I(X; \hat X)" in moments.latex
    apart = cpv.DiscreteSource([[0.5, 0.0], [0.0, 0.5]], w="ab", x="cd")
    assert "I(W;" in cpv.PrivacyDistortion(apart, cpv.hamming(2), budget=0.25).latex


def test_rules_of_each_letter_say_so():
    for name in ("t-closeness", "l-diversity", "record entropy", "delta", "local", "keep",
                 "forbidden", "marginal"):  # fmt: skip
        assert r"\forall" in instances.CRITERIA[name].latex, name
    for name in ("leakage", "maximal", "mean", "linear"):
        assert r"\forall" not in instances.CRITERIA[name].latex, name
    expected = cpv.RateDistortionEquivocation(
        instances.KNOWN, cpv.hamming(3), 0.4, side_information="both", criteria=[cpv.TCloseness(1)]
    )
    assert r"D(p_{W \mid \hat x, z} \,\|\, p_W) \le 1 \quad \forall\, \hat x, z" in expected.latex


def test_a_criterion_of_ones_own_is_written_from_its_rows():
    class Guess(cpv.Criterion):
        """max_w p(w | x̂) ≤ p."""

        name = "guess"
        p = cpv.Parameter()

        def constraints(self, release):
            return {
                str(w): release.mass(w).each() <= self.p * release.mass().each()
                for w in range(len(release.p_w))
            }

    problem = cpv.MinimumDistortion(instances.BINARY, instances.HAMMING, [Guess(0.7)])
    assert r"\text{Guess}" in problem.latex
    row = r"J(w, \hat x) \le 0.7 \, q(\hat x) \quad \forall\, w, \hat x"
    assert row in problem.latex_expanded
    assert r"\lambda_{\text{guess}}(w, \hat x)" in problem.dual_latex
