"""The errata page prints what it shows of disclosure control."""

from __future__ import annotations

import pytest

from tests.scripts.test_errata import SDC, check, entries


@pytest.mark.long
@pytest.mark.parametrize(("code", "shown"), [e for e in entries() if SDC in e.values[0]])
def test_a_slip_is_shown(code, shown, request):
    check(code, shown, request)
