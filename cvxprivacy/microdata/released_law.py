"""The law of what is released: of a channel, after groups were merged, over a whole table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cvxprivacy.criteria import Criterion, KAnonymity, LocalPrivacy, MaximalLeakage
from cvxprivacy.criteria.words import PER_LETTER
from cvxprivacy.exact import FloatArray
from cvxprivacy.frozen import own
from cvxprivacy.leakage import Leakage
from cvxprivacy.microdata.measures import standing
from cvxprivacy.microdata.merging import Merging
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.one_symbol import SLACK, i1
from cvxprivacy.release.channel import Channel

__all__ = ["ReleasedLaw"]

_NOTHING = 1e-14  # mass of a letter that is no more than rounding


@dataclass(frozen=True, eq=False)
class ReleasedLaw:
    """p(w, x̂) of what is released of a table, in floats.

    Attributes
    ----------
    channel : Channel
        As it was solved for.
    source : DiscreteSource
        The law of the whole table.
    distortion : Distortion
        Fitted to the source.
    units : {"bits", "nats"}
    designed : bool
        Whether the channel was solved for this law, and not for that of a part of the table.
    merging : Merging or None
    """

    channel: Channel
    source: DiscreteSource
    distortion: Distortion
    units: str
    designed: bool
    merging: Merging | None

    @property
    def proved(self) -> bool:
        """Whether it is the law that the certificate is of."""
        return self.designed and self.merging is None

    @cached_property
    def _atoms(self) -> FloatArray:
        """p(w, s) of the channel's inputs s, shape (|W|, n)."""
        source, channel = self.source, self.channel
        law, x_of = source.joint / source.joint.sum(), self._x_of
        if channel.encoder == "x":
            return np.asarray(law[:, x_of])
        place, w = {v: i for i, v in enumerate(source.w)}, channel.encoder.index("w")
        w_of = [place[letter[w]] for letter in channel.inputs]
        atoms = np.zeros((len(source.w), len(channel.inputs)))
        atoms[w_of, np.arange(len(w_of))] = law[w_of, x_of]
        return atoms

    @cached_property
    def _x_of(self) -> list[int]:
        """The key letter of each input."""
        place, channel = {v: i for i, v in enumerate(self.source.x)}, self.channel
        if channel.encoder == "x":
            return [place[letter] for letter in channel.inputs]
        return [place[letter[channel.encoder.index("x")]] for letter in channel.inputs]

    @cached_property
    def joint(self) -> FloatArray:
        """p(w, x̂), shape (|W|, |X̂|)."""
        return own(self._merged(self._atoms @ self.channel.matrix))

    def _merged(self, joint: FloatArray) -> FloatArray:
        """Return the columns of outputs that are released as one, added."""
        if self.merging is None:
            return joint
        found = np.zeros_like(joint)
        np.add.at(found.T, self.merging.places, joint.T)
        return found

    @property
    def risk(self) -> float:
        """I(W; X̂)."""
        per_letter = np.nan_to_num(i1(self.joint, units=self.units))
        return float(per_letter @ self.joint.sum(axis=0))

    @cached_property
    def mean_distortion(self) -> float:
        """E d."""
        d, atoms, q = self.distortion.matrix, self._atoms, self.channel.matrix
        if self.merging is not None:
            d = d[..., self.merging.places]
        if d.ndim == 2:
            return float((atoms.sum(axis=0)[:, None] * q * d[self._x_of]).sum())
        return float(np.einsum("wi,iy,wiy->", atoms, q, d[:, self._x_of]))

    def leakage(self, measure: Leakage) -> float:
        """Return what leaks on average in a measure."""
        return measure.total(self.joint) * measure.unit(self.units)

    def worst(self, rule: Criterion, at_least: bool) -> float:
        """Return a criterion's measure at the worst released letter."""
        joint, records = self.joint, self.source.records
        if isinstance(rule, KAnonymity):  # N e^−D(p(s | x̂) ‖ p(s)), s what the encoder sees
            letters = self._merged(self._atoms.sum(axis=0)[:, None] * self.channel.matrix)
            letters = letters[letters.sum(axis=1) > 0]
            values = (records or 0) * np.exp(-i1(letters, units="nats"))
        else:
            values = standing(rule, joint, units=self.units)[0]
        values = values[joint.sum(axis=0) > _NOTHING]
        return float(np.nanmin(values) if at_least else np.nanmax(values))

    def holds(self, rule: Criterion, value: float | None, at_least: bool) -> bool | None:
        """Tell whether a criterion holds of this law; None where that is not known.

        Proved of the law that the channel was solved for, and by convexity after groups were merged
        for criteria on released letters and on averages; else by its value, to a rounding.
        """
        kept = isinstance(rule, (*PER_LETTER, LocalPrivacy, MaximalLeakage)) or value is not None
        if self.proved or (self.designed and kept):
            return True
        if value is None:
            return None
        bound = float(rule.value or 0.0)
        beyond = bound - value if at_least else value - bound
        return bool(beyond <= SLACK * max(1.0, abs(bound)))
