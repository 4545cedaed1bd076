"""Scripts of disclosure control run as all do."""

from __future__ import annotations

from tests.scripts.conftest import run  # noqa: F401 (a fixture)
