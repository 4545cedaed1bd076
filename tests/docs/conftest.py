"""A browser that looks at pages, if there is one."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    """A window of headless Chromium, patient enough for a busy machine."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="needs Playwright: pip install -e .[dev]"
    )
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium on the path")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        window = chromium.new_context()
        window.set_default_timeout(180_000)
        yield window
        chromium.close()
