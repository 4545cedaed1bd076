"""The certificate of the most useful release: an enclosure of a greatest value."""

from __future__ import annotations

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.certificates.certificate import Certificate

__all__ = ["Greatest", "UsefulProver"]


class Greatest(Certificate):
    """A proved enclosure of a program's maximum; the release attains the lower end."""

    @property
    def attained(self) -> float:
        return self.lower


class UsefulProver(Prover):
    """The ends of −Σ μ(c_y), of which the certificate is that of Σ μ(c_y)."""

    def certificate(self) -> Certificate:
        return Greatest(
            self.program,
            self.accuracy,
            self.status,
            0.0 - self.upper,  # and no −0
            0.0 - self.lower,
            self.primal,
            self.dual,
            self.terms,
            self.raw,
        )
