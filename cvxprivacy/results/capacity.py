"""The capacity of a channel or a table, as a user asks for it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.exact import Exact, Real, is_sparse, rational
from cvxprivacy.frozen import Frozen, FrozenDict
from cvxprivacy.model.capacity import proved_capacity
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import nat
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import numerators
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.validation import table, typed

__all__ = ["Capacity", "capacity"]

_SLACK = Fraction(1, 10**9)  # by which the sum of a row may be off 1, as of a Channel


class Capacity(Frozen):
    """What :func:`capacity` returns.

    Attributes
    ----------
    value : Enclosure
        C in ``units``, proved at both ends.
    prior : dict
        An optimal π, by input: inputs of probability 0 are no one's concern.
    output_law : dict
        r, by output: all inputs with π > 0 are equally far from it.
    price : float
        λ, d C / d Γ in ``units``; 0 without a cost.
    units : {"bits", "nats"}
    """

    def __init__(
        self,
        value: Enclosure,
        prior: Mapping[Hashable, float],
        output_law: Mapping[Hashable, float],
        price: float,
        units: str,
    ) -> None:
        self.value, self.price, self.units = value, price, units
        self.prior, self.output_law = FrozenDict(prior), FrozenDict(output_law)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"Capacity({self.value}, {self.units})"


def capacity(
    channel: Channel | npt.ArrayLike,
    source: DiscreteSource | None = None,
    *,
    cost: npt.ArrayLike | None = None,
    at_most: Real | None = None,
    units: str = "bits",
) -> Capacity:
    """Return the capacity of a channel: the most that its output tells, whatever the prior.

    Parameters
    ----------
    channel : Channel or array_like, shape (|X|, |X̂|)
        p(x̂ | x): rows are nonnegative and sum to 1, to 1e-9.
    source : DiscreteSource, optional
        Of W and X: then W is what is told about, through Σ_x p(x | w) p(x̂ | x).
    cost : array_like, shape (|X|,) or (|W|,), optional
        c of each input, whose mean is at most ``at_most``.
    at_most : number, optional
        Γ.
    units : {"bits", "nats"}
        Of the capacity.

    Returns
    -------
    Capacity
        Both ends, an optimal prior, the law r of outputs and the price of Γ.

    Raises
    ------
    InputError
        If a row is no law, for a cost without a limit or a limit without a cost, or a limit that no
        prior keeps.

    Notes
    -----
    Of the other measures over all priors: the greatest gain in guessing, multiplied, is maximal
    leakage of W (:class:`leakage.Maximal <cvxprivacy.leakage.Maximal>`), which no prior moves;
    Sibson's orders α lie between both.  Of f-informations the greatest over priors is not
    min_r max_w D_f(V_w ‖ r) but where f is that of information.

    Examples
    --------
    The binary symmetric channel has 1 − h(a), and the Z-channel of ½ log₂ 1.25:

    >>> import cvxprivacy as cpv
    >>> symmetric = cpv.capacity([[0.9, 0.1], [0.1, 0.9]])
    >>> round(float(symmetric), 6), round(1 - cpv.information.entropy([0.1, 0.9]), 6)
    (0.531004, 0.531004)
    >>> z = cpv.capacity([[1, 0], [0.5, 0.5]])
    >>> round(float(z), 6), round(z.prior[1], 6)
    (0.321928, 0.4)
    >>> z.value.upper - z.value.lower < 1e-12
    True

    A release that tells 0.0088 bits of a rare W may tell one who believes otherwise 0.042:

    >>> source = cpv.DiscreteSource([[0.04, 0.01], [0.3, 0.65]])
    >>> solution = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2).solve()
    >>> round(solution.value, 4), round(float(cpv.capacity(solution.channel, source)), 3)
    (0.0087, 0.042)
    """
    scale = nat(units)
    rows, inputs, outputs = _rows(channel, source)
    charge = None if cost is None else _cost(cost, len(rows))
    limit: Real = 0
    if (cost is None) != (at_most is None):
        argument = "at_most" if at_most is None else "cost"
        raise InputError(argument, "a cost and its limit go together", "pass both, or neither")
    if charge is not None and at_most is not None:
        limit = typed(at_most, "at_most", negative=True)
        if rational(limit) < min(map(rational, charge.tolist())):
            problem, remedy = f"{at_most!r} is below every cost", f"pass {charge.min()} or more"
            raise InputError("at_most", problem, remedy, value=at_most)
    proved = proved_capacity(rows, charge, limit)
    return Capacity(
        Enclosure(*proved.ends(units)),
        dict(zip(inputs, map(float, proved.prior), strict=True)),
        dict(zip(outputs, proved.law.tolist(), strict=True)),
        proved.price * scale,
        units,
    )


def _rows(
    channel: Any, source: DiscreteSource | None
) -> tuple[list[list[Fraction]], list[Hashable], list[Hashable]]:
    """Return V exactly, and the labels of its inputs and outputs."""
    if isinstance(channel, Channel):
        if is_sparse(channel.matrix) or channel.decoder is not None or channel.encoder != "x":
            problem = "a channel that is sparse, reads W or is read with side information"
            raise InputError("channel", problem, "pass its matrix p(x̂ | w) instead")
        numbers: list[list[Any]] = numerators(channel.matrix).tolist()
        inputs, outputs = list(channel.inputs), list(channel.outputs)
    else:
        remedy = "pass a Channel, or finite numbers ≥ 0 of shape (|X|, |X̂|)"
        matrix = table(channel, "channel", remedy, axes=(2,))
        numbers = [list(map(rational, row)) for row in matrix.tolist()]
        inputs, outputs = list(range(len(matrix))), list(range(matrix.shape[1]))
    sums = [sum(row) for row in numbers]
    for i in range(0 if isinstance(channel, Channel) else len(sums)):
        if abs(sums[i] - 1) > _SLACK:
            problem = f"the row sums to {float(sums[i])!r}, and not to 1"
            remedy = "pass p(x̂ | x), a law of outputs in each row; divide counts by their row's sum"
            raise InputError("channel", problem, remedy, where=i, value=float(sums[i]))
    rows = [[Fraction(x) / mass for x in row] for row, mass in zip(numbers, sums, strict=True)]
    if source is None:
        return rows, inputs, outputs
    if not isinstance(source, DiscreteSource) or source.law.ndim != 2:
        raise InputError("source", f"a {type(source).__name__}", "pass a DiscreteSource of W and X")
    labelled = isinstance(channel, Channel)
    if not labelled and len(rows) > len(source.x):
        problem = f"{len(rows)} rows, where the source has {len(source.x)} letters"
        raise InputError("channel", problem, "pass a row for each of its letters")
    places = {label: i for i, label in enumerate(inputs if labelled else source.x)}
    released = []
    for masses in source.law.tolist():
        parts = [(Fraction(p), x) for p, x in zip(masses, source.x, strict=True) if p]
        for _, x in parts:
            if x not in places or places[x] >= len(rows):
                remedy = "pass a channel of the source's letters"
                raise InputError("channel", f"no row for {x!r}", remedy, value=x)
        share = sum((p for p, _ in parts), Fraction(0))
        columns = zip(*([p * q for q in rows[places[x]]] for p, x in parts), strict=True)
        released.append([sum(column, Fraction(0)) / share for column in columns])
    there = [w for w, masses in zip(source.w, source.law.tolist(), strict=True) if any(masses)]
    return [row for row in released if row], there, outputs


def _cost(cost: npt.ArrayLike, count: int) -> Exact:
    charge = table(cost, "cost", "pass a finite number for each input", axes=(1,), negative=True)
    if len(charge) != count:
        problem = f"{len(charge)} numbers for {count} inputs"
        raise InputError("cost", problem, "pass one for each")
    return charge
