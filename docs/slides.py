"""The slides of the lecture, made of the built pages: ``write(built)`` after a build.

A slide is a title, some lines, and pieces of pages: a formula, a picture, code or what it printed,
each told by its page, its section and its number there.  A piece that is no longer there is an
error.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag

__all__ = ["SLIDES", "Piece", "Slide", "write"]

SELECTORS = {
    "math": "div.math",
    "picture": "img",
    "code": "div.cell_input",
    "output": "div.cell_output",
    "table": "table",
}
LONG = 16  # lines of code, beyond which they are set smaller
FIRST, DUAL = "tutorials/first_problem", "tutorials/primal_dual_kkt"
CRITERIA, NOT_CONVEX = "tutorials/criteria", "tutorials/not_convex"


@dataclass(frozen=True)
class Piece:
    """An element of a page: the ``number``-th of its kind in a section."""

    page: str
    section: str
    kind: str
    number: int = 0


@dataclass(frozen=True)
class Slide:
    """A title, lines of text (HTML), and pieces of pages below."""

    title: str
    lines: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()


def dual(section: str, *numbers: int, kind: str = "math") -> tuple[Piece, ...]:
    return tuple(Piece(DUAL, section, kind, number) for number in numbers)


SLIDES = (
    Slide("Privacy as a convex program",
          ("W is confidential, X is useful, X̂ is released in place of X.",
           "How little can X̂ tell about W, if only so much of X may be changed?"),
          (Piece("index", "cvxprivacy", "math"),)),
    Slide("A column that tells", ("W an illness, X an age: the least that can be told, and how.",),
          (Piece("index", "cvxprivacy", "picture"),)),
    Slide("Three questions",
          ("What is chosen? A channel p(x̂ | x).", "What is minimised, and what is bounded?",
           "Who says that nobody does better?")),
    Slide("A clinic", ("200 records; the test errs in one case of ten.",),
          (Piece(FIRST, "state-the-problem", "code"),)),
    Slide("The program", ("Hamming distortion: the share of records that are changed.",),
          (Piece(FIRST, "state-the-problem", "code", 2),
           Piece(FIRST, "state-the-problem", "output", 1))),
    Slide("Why by chance?",
          ("A rule without chance is a corner of the set of channels.",
           "Randomised ones are all points between: a convex set.",
           "A budget can be met exactly.", "<em>What are R(0) and R(½)?</em>")),
    Slide("Solve it", (), (Piece(FIRST, "solve-it", "code"), Piece(FIRST, "solve-it", "output"))),
    Slide("Read it", (), (Piece(FIRST, "solve-it", "table"),
                          Piece(FIRST, "use-the-channel", "output"))),
    Slide("Task A: a bound by hand",
          (r"For any \(r\) and \(\lambda \ge 0\):&ensp; "
           r"\(R(D) \;\ge\; \sum_x p(x) \min_{\hat x} G(x, \hat x) - \lambda D\)",
           r"\(G(x, \hat x) = \sum_w p(w \mid x) \log_2 \frac{r(w \mid \hat x)}{p(w)}"
           r" + \lambda \, d(x, \hat x)\)",
           r"The clinic, \(D = 0.2\): \(r = \frac14\) for what X̂ denies, else \(\frac34\).",
           r"Compute \(G\) of keeping and of changing, and the bound, at \(\lambda = 1\) and "
           r"at \(\lambda = 1.268\); then at \(r\) and \(\lambda\) of your own.",
           "<em>Six minutes, in pairs. The largest bound wins.</em>")),
    Slide("The truth", ("The best release flips X with probability D.",),
          (Piece(FIRST, "compare-with-a-formula", "math", 0),
           Piece(FIRST, "compare-with-a-formula", "math", 1),
           Piece(FIRST, "compare-with-a-formula", "output"))),
    Slide("What is one more record in a hundred worth?",
          ("The multiplier of the budget is the slope of the curve.",),
          (Piece(FIRST, "read-the-price", "code"), Piece(FIRST, "read-the-price", "output"))),
    Slide("The whole curve", (), (Piece(FIRST, "the-whole-curve", "picture"),)),
    Slide("Convex, by perspective",
          (r"\(\varphi(u) = u \log_2 u\), and its perspective \(t \, \varphi(u/t)\):",),
          dual("the-primal", 2)),
    Slide("The Lagrangian", (), dual("the-lagrangian", 0, 1)),
    Slide("The slope of the objective", (), dual("the-slope-of-the-objective", 0, 1)),
    Slide("Linear functions below the objective",
          (r"For <em>any</em> distributions \(r(\cdot \mid \hat x)\):",),
          dual("linear-functions-below-the-objective", 0, 1)),
    Slide("The dual", (), dual("linear-functions-below-the-objective", 2)),
    Slide("No gap",
          ("R is convex and does not rise.",
           r"Slater: for \(D > D_{\min}\) it has a supporting line, of slope \(-\lambda\).",
           "Minimax: linear in Q, concave in r, over compact sets."),
          dual("no-gap", 0)),
    Slide("Task B: duality in a square",
          ("The explorer, <em>Duality in a square</em>.", "Answer before you are shown.",
           r"Then close the gap by hand: move \(r\), then \(\lambda\).",
           "<em>Can the bound ever be above the curve?</em>")),
    Slide("What the gap is made of",
          ("Three parts, none of them negative. Without a gap all are 0.",),
          dual("the-conditions-of-karush-kuhn-and-tucker", 0)),
    Slide("Complementarity", (), dual("complementarity-drawn", 0, kind="picture")),
    Slide("Any multipliers prove something", (),
          dual("any-multipliers-prove-something", 0, kind="picture")),
    Slide("Every value, not the average", (), (Piece(CRITERIA, "on-a-table", "table"),)),
    Slide("What is not convex", ("The funnel and the bottleneck:",),
          (Piece(NOT_CONVEX, "the-two-problems", "math"),)),
    Slide("Two channels and their midpoint", (),
          (Piece(NOT_CONVEX, "two-channels-and-their-midpoint", "code"),)),
    Slide("To take home",
          ("State it as a convex program.", "Any multipliers prove a bound.",
           "The best of them is the optimum, and tells the price.", "Homework: six problems.")),
)  # fmt: skip


def write(built: Path) -> None:
    """Write ``teaching/slides.html`` beside the built pages.

    Raises
    ------
    LookupError
        For a piece that its page no longer has.
    """
    pages: dict[str, BeautifulSoup] = {}

    def page(name: str) -> BeautifulSoup:
        if name not in pages:
            text = (built / f"{name}.html").read_text(encoding="utf-8")
            pages[name] = BeautifulSoup(text, "html.parser")
        return pages[name]

    slides = []
    for slide in SLIDES:
        lines = "".join(f"<p>{line}</p>" for line in slide.lines)
        pieces = "".join(_html(piece, page(piece.page)) for piece in slide.pieces)
        body = f'<div class="pieces">{pieces}</div>' if pieces else ""
        kind = "" if pieces else ' class="words"'
        slides.append(f"<section{kind}><h1>{escape(slide.title)}</h1>{lines}{body}</section>")
    scripts = [s for s in page(DUAL).find_all("script") if "mathjax" in str(s).lower()]
    mathjax = "\n".join(str(script) for script in scripts)
    target = built / "teaching" / "slides.html"
    target.parent.mkdir(exist_ok=True)
    frame = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    for mark, text in (("mathjax", mathjax), ("slides", "\n".join(slides))):
        frame = frame.replace(f"<!-- {mark} -->", text)
    target.write_text(frame, encoding="utf-8")


def _html(piece: Piece, page: BeautifulSoup) -> str:
    section = page.find(id=piece.section)
    elements = section.select(SELECTORS[piece.kind]) if isinstance(section, Tag) else []
    if len(elements) <= piece.number:
        raise LookupError(f"{piece.page}#{piece.section} has no {piece.kind} {piece.number}")
    element = elements[piece.number]
    if piece.kind == "picture":
        home = posixpath.join("..", posixpath.dirname(piece.page), str(element["src"]))
        return f'<div class="picture"><img src="{home}" alt="{escape(str(element["alt"]))}"></div>'
    if piece.kind in ("code", "output") and isinstance(text := element.find("pre"), Tag):
        if text.get_text().count("\n") > LONG:
            text["class"] = "long"
        return str(text)
    return str(element)
