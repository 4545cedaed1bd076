"""The pages as they were built: links lead somewhere, formulas are set, nothing is fetched.

They are built by ``python -m sphinx -W -b html docs docs/_build``.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from cvxprivacy.tables.datasets import HOMES
from tests.docs.public import public_names
from tests.public_tables import real_folder
from tests.repository import ROOT, scripts

pytestmark = pytest.mark.long
BUILT = ROOT / "docs" / "_build"


class Page(HTMLParser):
    """What a page points at, and what can be pointed at in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    if not (BUILT / "index.html").exists():
        pytest.skip("the pages are not built: python -m sphinx -W -b html docs docs/_build")
    return {
        path: Page(path) for path in sorted(BUILT.rglob("*.html")) if "_static" not in str(path)
    }


def test_every_link_leads_to_a_file_and_a_place_in_it(pages):
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.exists()
            if there and parts.fragment and target in pages:
                there = unquote(parts.fragment) in pages[target].anchors
            if not there:
                lost.append(f"{path.relative_to(BUILT)}: {link}")
    assert not lost


def test_addresses_elsewhere_are_secure(pages):
    links = {link for page in pages.values() for link in page.links}
    assert not {link for link in links if urlsplit(link).scheme == "http"}


def test_every_public_name_and_every_script_has_a_page(pages):
    built = {path.relative_to(BUILT).with_suffix("").as_posix() for path in pages}
    assert {f"reference/generated/{name}" for name in public_names()} <= built
    assert {f"gallery/{path.stem}" for path in scripts()} <= built


@pytest.mark.real
def test_every_script_was_run_for_its_page(pages):
    real_folder(*HOMES)
    for path in scripts():
        assert "It was not run" not in (BUILT / "gallery" / f"{path.stem}.html").read_text("utf-8")
        assert (BUILT / "_images" / f"{path.stem}.png").exists()


def test_cells_show_pictures_and_not_their_names(pages):
    shown = re.compile(r"&lt;(Figure size|Axes|matplotlib)|\[?Text\(")
    results = {path.name: shown.findall(path.read_text(encoding="utf-8")) for path in pages}
    assert not {name: what for name, what in results.items() if what}


@pytest.mark.parametrize("half", [0, 1])  # one for each worker
def test_pages_open_without_an_error_and_without_a_network(pages, browser, half):
    """On a screen, and then, but for those of single names, on a phone: each is opened once."""
    view = browser.new_page()
    wrong: list[str] = []
    view.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.on("request", lambda to: None if to.url.startswith("file:") else wrong.append(to.url))
    faults = {}
    for path in list(pages)[half::2]:
        view.set_viewport_size({"width": 1200, "height": 900})
        view.goto(path.as_uri())
        if view.locator(".math, .tex2jax_process").count():
            view.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
            view.evaluate("MathJax.startup.promise")
        wrong += [f"formula: {text}" for text in view.locator("[data-mjx-error]").all_inner_texts()]
        if "generated" not in path.parts:
            view.set_viewport_size({"width": 400, "height": 900})
            if view.evaluate("document.documentElement.scrollWidth") > 400:
                wrong.append("wider than a phone's screen")
        if wrong:
            faults[str(path.relative_to(BUILT))] = list(wrong)
            wrong.clear()
    view.close()
    assert not faults
