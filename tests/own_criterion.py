"""A criterion of one's own, as a user writes it."""

from __future__ import annotations

import cvxprivacy as cpv


class GuessedAtMost(cpv.Criterion):
    """p(w | x̂) ≤ p for all w and x̂; it says which way p loosens, and claims nothing more."""

    name = "guessed_at_most"
    p = cpv.Parameter(loosens="up", loosest=1.0)

    def constraints(self, release):
        mass = release.mass().each()
        return {str(w): release.mass(w).each() <= self.p * mass for w in range(len(release.p_w))}
