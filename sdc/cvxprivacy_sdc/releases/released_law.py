"""The law of what a channel releases of a table, and what is proved of it.

The certificate is of the randomisation before any groups were merged: of the law after that a
criterion is known to hold only where it survives merging, or by its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from cvxprivacy.additive import entries, floats
from cvxprivacy.criteria import Criterion
from cvxprivacy.criteria.counts import Counts
from cvxprivacy.exact import FloatArray, is_sparse
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frozen import owned
from cvxprivacy.model.capacity import capacity_of_table
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.model.one_symbol import SLACK, i1
from cvxprivacy.release.channel import Channel
from cvxprivacy.results.informed import Atoms, Informed, informed
from cvxprivacy.results.solution import Solution
from cvxprivacy_sdc.releases.merging import Merging

__all__ = ["RANDOMISATION", "CountedLaw", "ReleasedLaw", "clearly", "law_of"]

RANDOMISATION = "the randomisation"  # what boards and users read in place of "the law"
_NOTHING = 1e-14  # mass of a letter that is no more than rounding


@dataclass(frozen=True, eq=False)
class ReleasedLaw:
    """p(w, x̂) of what is released of a table, in floats.

    Attributes
    ----------
    channel : Channel
        As it was solved for.
    source : DiscreteSource
        The law of the table.
    distortion : Distortion
        Fitted to the source.
    units : {"bits", "nats"}
    feasible : bool
        Whether the channel was proved to be feasible under this law.
    merging : Merging or None
    """

    channel: Channel
    source: DiscreteSource
    distortion: Distortion
    units: str
    feasible: bool
    merging: Merging | None

    @property
    def proved(self) -> bool:
        """Whether it is the law that the certificate is of."""
        return self.feasible and self.merging is None

    @property
    def name(self) -> str:
        """What it is called, wherever it is spoken of."""
        return f"{RANDOMISATION}{' after groups were merged' if self.merging else ''}"

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
        return owned(self._merged(self._atoms @ self.channel.matrix))

    def _merged(self, joint: FloatArray) -> FloatArray:
        """Return the columns of outputs that are released as one, added."""
        if self.merging is None:
            return joint
        merged = np.zeros_like(joint)
        np.add.at(merged.T, self.merging.places, joint.T)
        return merged

    @cached_property
    def risk(self) -> float:
        """I(W; X̂)."""
        per_letter = np.nan_to_num(i1(self.joint, units=self.units))
        return float(per_letter @ self.joint.sum(axis=0))

    @property
    def informed(self) -> Informed | None:
        """What is told to who knows x, where the encoder saw W."""
        if self.channel.encoder != "wx":
            return None
        w, letter = np.nonzero(self._atoms)
        cell = np.asarray(self._x_of)[letter]
        atoms = Atoms(letter, w, cell, self._atoms[w, letter], list(self.source.x))
        matrix = self.channel.matrix
        if self.merging is not None:
            some = sparse.coo_array(matrix)
            at = some.row, self.merging.places[some.col]
            matrix = sparse.csr_array((some.data, at), shape=matrix.shape)
        return informed(atoms, matrix, self.channel.outputs, self.units, self.source.names[:2])

    @property
    def capacity(self) -> float:
        """max_π I_π(W; X̂), rounded up: what is told to anybody, whatever is believed beforehand."""
        return capacity_of_table(self.joint.tolist()).ends(self.units)[1]

    @cached_property
    def mean_distortion(self) -> float:
        """E d."""
        atoms, q = self._atoms, self.channel.matrix
        if is_sparse(q):
            some = q.tocoo()
            y = some.col if self.merging is None else self.merging.places[some.col]
            costs = entries(self.distortion.cost, np.asarray(self._x_of)[some.row], y)
            return float(atoms.sum(axis=0)[some.row] @ (some.data * costs))
        d = floats(self.distortion.cost)
        if self.merging is not None:
            d = d[..., self.merging.places]
        if d.ndim == 2:
            return float((atoms.sum(axis=0)[:, None] * q * d[self._x_of]).sum())
        return float(np.einsum("wi,iy,wiy->", atoms, q, d[:, self._x_of]))

    @cached_property
    def _counts(self) -> Counts:
        """The law as a table, in floats: what criteria measure of it."""
        origins, there = None, self.joint.sum(axis=0) > _NOTHING
        if self.source.records is not None:  # N e^−D(p(s | x̂) ‖ p(s)), s what the encoder sees
            origins = self.source.records * np.exp(-self._of_letters())[there]
        joint = self.joint[:, there]
        return Counts(joint, self.units, self.joint.sum(axis=1), origins=origins)

    def _of_letters(self) -> FloatArray:
        """Return D(p(s | x̂) ‖ p(s)) of each output, in nats; 0 where it has no mass."""
        masses, q = self._atoms.sum(axis=0), self.channel.matrix
        if not is_sparse(q):
            letters = self._merged(masses[:, None] * q)
            letters = letters[letters.sum(axis=1) > 0]
            return np.nan_to_num(i1(letters, units="nats"))
        there = masses > 0
        joint = q[there].multiply(masses[there, None]).tocoo()
        marginal = np.bincount(joint.col, joint.data, minlength=q.shape[1])
        ratio = joint.data / (marginal[joint.col] * masses[there][joint.row] / masses.sum())
        sums = np.bincount(joint.col, joint.data * np.log(ratio), minlength=q.shape[1])
        return np.divide(sums, marginal, out=np.zeros_like(sums), where=marginal > 0)

    def standing(self, rule: Criterion) -> tuple[float | None, bool | None]:
        """Return what a criterion measures of this law, and whether it holds, if that is known.

        Proved before groups were merged, and after that of what survives it; else by its value,
        where it declares how its number loosens and that value is farther from it than any
        rounding.  Of what speaks of tables alone nothing is known.
        """
        if rule.of_table:
            return None, None
        stated = rule.verdict(self._counts)
        kept = self.merging is None or rule.survives_merging
        if kept and self.feasible:
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

    @cached_property
    def unmerged(self) -> ReleasedLaw:
        """The law of what the channel draws, before groups are merged."""
        return self if self.merging is None else replace(self, merging=None)

    def because(self, holds: bool | None, within: Callable[[ReleasedLaw], bool | None]) -> str:
        """Say why this law is beyond what was asked, or is not known to be within it.

        ``holds`` tells whether it is, and ``within`` whether another law is.
        """
        if holds:
            return ""
        proved = "proved of the randomisation before groups were merged"
        if holds is None:
            return f"{proved}, not of this release"
        merged = self.merging is not None and within(self.unmerged) is not False
        return "as groups were merged" if merged else proved


@dataclass(frozen=True, eq=False)
class CountedLaw(ReleasedLaw):
    """The law of whole counts, which is the table itself: what is judged of one is of both.

    Of counts that see X alone, which records of a cell move is chance, and so is what the table
    tells of W.

    Attributes
    ----------
    table : Counts
        The records that are released.
    kept : sequence of Criterion
        What the counts were accepted for: each holds, decided exactly.
    """

    table: Counts
    kept: Sequence[Criterion]

    @property
    def name(self) -> str:
        """What it is called, wherever it is spoken of."""
        return "the counts of the table"

    @property
    def proved(self) -> bool:
        """Whether it is the law that the certificate is of: that bounds this one from below."""
        return False

    def standing(self, rule: Criterion) -> tuple[float | None, bool | None]:
        """Return what a criterion measures of the counts, and whether it holds of them, exactly."""
        verdict = rule.verdict(self.table)
        holds = True if verdict.holds is None and rule in self.kept else verdict.holds
        return verdict.value, holds


def law_of(
    problem: ChannelProblem, solution: Solution, merging: Merging | None = None
) -> ReleasedLaw:
    """Return the law of what a solution releases of a table.

    Parameters
    ----------
    problem : ChannelProblem
    solution : Solution
        Of the problem.
    merging : Merging, optional
        Of the groups that were drawn.
    """
    channel = solution.channel
    assert channel is not None
    feasible, d = solution.certificate.primal is not None, problem.alphabet.d
    return ReleasedLaw(channel, problem.source, d, problem.units, feasible, merging)


def clearly(value: float, bound: float, *, at_least: bool = False) -> bool | None:
    """Tell whether a value in floats is within a bound; None where rounding might tell wrongly."""
    beyond = bound - value if at_least else value - bound
    return None if abs(beyond) <= SLACK * max(1.0, abs(bound)) else beyond < 0
