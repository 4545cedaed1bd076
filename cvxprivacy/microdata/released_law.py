"""The law of what is released: of a channel, after groups were merged, over a whole table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.exact import FloatArray
from cvxprivacy.frozen import own
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
        Whether the channel was proved to be feasible under this law, and not under that of a part
        of the table.
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
        merged = np.zeros_like(joint)
        np.add.at(merged.T, self.merging.places, joint.T)
        return merged

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

    @cached_property
    def _counts(self) -> Counts:
        """The law as a table, in floats: what criteria measure of it."""
        sizes = None
        if self.source.records is not None:  # N e^−D(p(s | x̂) ‖ p(s)), s what the encoder sees
            letters = self._merged(self._atoms.sum(axis=0)[:, None] * self.channel.matrix)
            letters = letters[letters.sum(axis=1) > 0]
            sizes = self.source.records * np.exp(-np.nan_to_num(i1(letters, units="nats")))
        there = self.joint.sum(axis=0) > _NOTHING
        joint = self.joint[:, there]
        sizes = None if sizes is None else sizes[there]
        return Counts(joint, self.units, self.joint.sum(axis=1), sizes)

    def standing(self, rule: Criterion) -> tuple[float | None, bool | None]:
        """Return what a criterion measures of this law, and whether it holds, if that is known.

        Proved of the law that the channel was solved for, and after groups were merged of what
        survives that; else by its value, where it declares how its number loosens and that value is
        farther from it than any rounding.
        """
        stated = rule.verdict(self._counts)
        if self.proved or (self.designed and rule.survives_merging):
            return stated.value, True
        number, loosens = rule.value, rule.loosens
        if number is None and not rule.numbers and rule.measure:  # nothing leaks
            number, loosens = 0.0, "up"
        if stated.value is None or loosens is None:
            return stated.value, None
        if not isinstance(number, int | float | Fraction):  # one for each letter
            return stated.value, None
        at_least = loosens == "down"
        return stated.value, clearly(stated.value, float(number), at_least=at_least)


def clearly(value: float, bound: float, *, at_least: bool = False) -> bool | None:
    """Tell whether a value in floats is within a bound; None where rounding might tell wrongly."""
    beyond = bound - value if at_least else value - bound
    return None if abs(beyond) <= SLACK * max(1.0, abs(bound)) else beyond < 0
