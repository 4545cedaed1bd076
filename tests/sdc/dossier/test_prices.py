"""Prices in a document."""

from __future__ import annotations

from cvxprivacy_sdc.dossier.report import proved
from tests.results.test_prices import undetermined


def test_documents_state_no_number_that_is_not_determined():
    facts = proved(undetermined())
    assert facts["prices"] == {"budget": None}
    assert facts["price_words"]["budget"].startswith("not determined, in [")
