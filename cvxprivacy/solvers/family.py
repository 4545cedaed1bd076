"""Programs that differ in bounds alone, as along a frontier: what is made once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy_verifier import verify

__all__ = ["Family"]

# Entries beyond which a path takes far longer than reading, and tables fill memory
_MANY = 100_000


@dataclass(eq=False)
class Family:
    """What all programs have in common that are this one but for bounds of rows."""

    program: ChannelProgram

    @cached_property
    def proof(self) -> Any:
        """A proof of one of them, of which others have what they read alike; None of large ones."""
        if self.program.n * self.program.m > _MANY:
            return None
        return verify.proof_of(self.program.to_dict())

    def model(self, program: ChannelProgram) -> Any:
        """Return the conic model with the bounds of one of them."""
        self._model.set_bounds(program.constraints)
        return self._model

    @cached_property
    def _model(self) -> Any:
        from cvxprivacy.solvers.conic.channel import ConicModel

        return ConicModel(self.program)
