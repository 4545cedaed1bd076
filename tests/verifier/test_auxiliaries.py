"""Auxiliaries that are just kept, and just broken."""

from __future__ import annotations

import pytest

import cvxprivacy as cpv
from cvxprivacy_verifier import verify
from tests.primals import listed


@pytest.mark.parametrize("kind", ["ratio", "maximum"])
def test_an_auxiliary_that_is_just_kept_is_told_from_one_that_is_just_broken(kind):
    """In balls of 128 bits 3 · 2²⁰⁰ and 3 · 2²⁰⁰ + 1 are the same."""
    criterion = cpv.LocalPrivacy(1.0) if kind == "ratio" else cpv.MaximalLeakage(1.0)
    source = cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]])
    document = cpv.MinimumDistortion(source, cpv.hamming(2), [criterion]).program.to_dict()
    for aux in document["auxiliaries"].values():
        aux["bound"] = [1.5, 0.0] if kind == "ratio" else [1.25, 0.0]
    proof = verify.proof_of(document)
    big = 2**200
    for more, kept in ((0, True), (1, False), (-1, True)):
        # ratios 3 : 2 of either output; Σ max = 5/4 of the whole
        (a, b), (c, d) = (3 * big, 2 * big), (2 * big, 3 * big)
        full = 5 * big
        if kind == "maximum":
            (a, b), (c, d), full = (5 * big, 3 * big), (3 * big, 5 * big), 8 * big
        rows = [[a + more, b - more], [c, d]]
        outcome = proof.upper(listed(rows, full))
        assert outcome.feasible is kept
