"""The lecture can be held: minutes add up, slides are there, and what is said takes less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repository import ROOT, script

PLAN = (ROOT / "docs" / "teaching" / "lecture.md").read_text(encoding="utf-8")
HOMEWORK = (ROOT / "docs" / "teaching" / "homework.md").read_text(encoding="utf-8")
SOLUTIONS = (ROOT / "docs" / "teaching" / "solutions.md").read_text(encoding="utf-8")
ITEM = re.compile(r"^## (\d+)–(\d+) · ([^\n]+)\n(.*?)(?=^## )", re.M | re.S)
ITEMS = [(int(a), int(b), title, text) for a, b, title, text in ITEM.findall(PLAN)]
SLOW = 120  # words a minute, of one who also writes and waits
SLIDES = ROOT / "docs" / "_build" / "teaching" / "slides.html"


def part(text: str, what: str) -> str:
    match = re.search(rf"\*\*{what}\.\*\* (.*?)(?=\n\n|\Z)", text, re.S)
    return "" if match is None else match[1]


def test_ninety_minutes_without_a_hole_and_with_slack():
    assert [0, *(end for _, end, *_ in ITEMS)] == [*(start for start, *_ in ITEMS), 90]
    slack = sum(end - start for start, end, title, _ in ITEMS if title == "Slack")
    assert slack >= 5
    assert sum(title.startswith("Task") for *_, title, _ in ITEMS) == 2


def test_each_item_has_all_that_a_lecturer_needs():
    for start, end, title, text in ITEMS:
        assert part(text, "Done"), title
        if title != "Slack":
            assert all(part(text, what) for what in ("Shown", "Said", "Asked")), title
            assert re.search(r"\*\(.+\)\*", part(text, "Asked"), re.S), f"{title}: no answer"
            spoken = len(f"{part(text, 'Said')} {part(text, 'Asked')}".split())
            assert spoken <= SLOW * (end - start), title


def test_the_slides_are_shown_in_their_order():
    pytest.importorskip("bs4", reason="needs what builds the pages: pip install -e .[docs]")
    slides = script(ROOT / "docs" / "slides.py").SLIDES
    numbers = []
    for *_, text in ITEMS:
        for first, last in re.findall(r"Slides? (\d+)(?:–(\d+))?", part(text, "Shown")):
            numbers += range(int(first), int(last or first) + 1)
    assert numbers == list(range(1, len(slides) + 1))


def test_every_problem_has_a_solution_on_a_page_of_its_own():
    problems = re.findall(r"^\*\*(\d+)\. ", HOMEWORK, re.M)
    assert problems == re.findall(r"^## (\d+)$", SOLUTIONS, re.M)
    assert len(problems) >= 4
    assert "solutions" not in HOMEWORK.lower()


@pytest.mark.long
def test_every_slide_fits_on_a_projector(browser):
    if not SLIDES.exists():
        pytest.skip("the pages are not built: python -m sphinx -W -b html docs docs/_build")
    window = browser.new_page()
    window.set_viewport_size({"width": 1280, "height": 720})
    messages: list[str] = []
    window.on("console", lambda message: messages.append(message.text))
    window.on("pageerror", lambda error: messages.append(str(error)))
    window.on("request", lambda r: None if local(r.url) else messages.append(r.url))
    window.goto(Path(SLIDES).as_uri())
    window.wait_for_function("window.MathJax && document.querySelectorAll('mjx-container').length")
    window.evaluate("MathJax.startup.promise")
    count = window.evaluate("document.querySelectorAll('section').length")
    wide = """() => [...document.querySelectorAll("section.now, section.now *")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.right > innerWidth + 2 || box.bottom > innerHeight + 2 || box.left < -2
          || (e.matches("pre, .pieces") && (e.scrollWidth > e.clientWidth + 2
            || e.scrollHeight > e.clientHeight + 2));
      }).map((e) => `${e.tagName} ${e.className}`)"""
    small = """() => [...document.querySelectorAll(".now p, .now td, .now pre")]
      .map((e) => parseFloat(getComputedStyle(e).fontSize)).filter((size) => size < 20)"""
    for number in range(1, count + 1):
        window.evaluate(f"location.hash = '{number}'")
        window.wait_for_function(
            f"document.querySelector('nav').textContent === '{number} / {count}'"
        )
        assert window.evaluate(wide) == [], number
        assert window.evaluate(small) == [], number
    window.keyboard.press("ArrowLeft")
    window.wait_for_function(
        f"document.querySelector('nav').textContent === '{count - 1} / {count}'"
    )
    window.close()
    assert messages == []


def local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))
