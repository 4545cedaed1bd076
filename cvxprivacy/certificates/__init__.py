"""Proofs: a program with an untrusted primal and dual becomes an enclosure.

``verify`` alone needs nothing but the standard library and python-flint, so importing this
package imports nothing else until a name is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxprivacy.certificates.certificate import Certificate, Prover
    from cvxprivacy.certificates.repair import ExactChannel

__all__ = ["Certificate", "ExactChannel", "Prover"]


def __getattr__(name: str) -> Any:
    if name in ("Certificate", "Prover"):
        from cvxprivacy.certificates import certificate

        return getattr(certificate, name)
    if name == "ExactChannel":
        from cvxprivacy.certificates.repair import ExactChannel

        return ExactChannel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
