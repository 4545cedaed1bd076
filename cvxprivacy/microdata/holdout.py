"""From sample to population: a channel designed on some records, measured on others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cvxprivacy.additive import floats
from cvxprivacy.certificates.certificate import refuse_other
from cvxprivacy.errors import InputError
from cvxprivacy.frozen import own
from cvxprivacy.microdata.bootstrap import Information, draws_of, estimated
from cvxprivacy.microdata.risk.population import Bound, population_bounds
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.information import mutual_information
from cvxprivacy.validation import generator, number

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.results.solution import Solution

__all__ = ["Halves", "PopulationRisk", "halved", "measured", "population_risk"]


@dataclass(frozen=True, eq=False)
class Halves:
    """The records of a table in two random parts.

    Attributes
    ----------
    full, design : DiscreteSource
        All records, and those that the channel is designed on, over the same letters.
    holdout : ndarray of counts, shape (|W|, |X|)
        The others.
    share : float
        Of the records that is held out.
    """

    full: DiscreteSource
    design: DiscreteSource
    holdout: npt.NDArray[np.float64]
    share: float


@dataclass(frozen=True, eq=False)
class PopulationRisk:
    """I(W; X̂) of a channel in the population that a table's records were drawn from.

    Attributes
    ----------
    bounds : tuple of Bound
        Upper confidence bounds; the first is the one that is reported.
    level : float
        At which each holds by itself.
    design, holdout : Information
        Plug-in value of either part, with its Miller–Madow bias; of the holdout with a bootstrap
        interval, which is no proof.
    overall : float
        Plug-in value of all records.
    records : (int, int)
        On which the channel was designed, and on which it was measured.
    distortion : (float, float) or None
        E d(X, X̂) of the records that the channel was designed on, and of all.
    names : (str, str)
        Of W and X.
    units : {"bits", "nats"}
    solution : Solution or None
        The certified optimum on the design records, with the channel.
    """

    bounds: tuple[Bound, ...]
    level: float
    design: Information
    holdout: Information
    overall: float
    records: tuple[int, int]
    distortion: tuple[float, float] | None
    names: tuple[str, str]
    units: str
    solution: Solution | None = None

    @property
    def upper(self) -> float:
        """The reported bound: above the population's I(W; X̂) with probability ``level``."""
        return self.bounds[0].value

    @property
    def assumption(self) -> str:
        """What the bound rests on beside its proof."""
        w, x = self.names
        return (
            f"records are independent draws, {w} and {x} have the table's values only, and bands "
            "and groups that were settled from the table are taken as given"
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        first = self.bounds[0]
        return {
            "upper": self.upper, "level": self.level, "bound": first.name, "source": first.source,
            "units": self.units, "assumption": self.assumption,
            "bounds": {bound.name: bound.value for bound in self.bounds},
            "design": {"records": self.records[0], **_estimate(self.design)},
            "holdout": {"records": self.records[1], **_estimate(self.holdout)},
            "whole": {"records": sum(self.records), "plugin": self.overall},
            "distortion": None if self.distortion is None else
            {"design": self.distortion[0], "whole": self.distortion[1]},
        }  # fmt: skip

    def __str__(self) -> str:
        first, *others = self.bounds
        units, (design, held) = self.units, self.records
        lines = [
            f"population: channel designed on {design:,} records, measured on {held:,} others",
            f"  I(W; X̂)          at most {self.upper:.6g} {units} at {self.level:g}, proved: "
            f"{first.source}",
            f"  assumed          {self.assumption}",
            f"  plug-in          {self.holdout.plugin:.6g} on the others (bias about "
            f"{self.holdout.bias:.2g}), {self.design.plugin:.6g} on the design (bias about "
            f"{self.design.bias:.2g}), {self.overall:.6g} on all",
        ]
        if self.holdout.lower is not None:
            ends = f"[{self.holdout.lower:.6g}, {self.holdout.upper:.6g}]"
            lines.append(f"  bootstrap        {ends} at {self.level:g}, not proved")
        if self.holdout.note:
            lines.append(f"  bootstrap        {self.holdout.note}")
        values = ", ".join(f"{bound.name} {bound.value:.4g}" for bound in others)
        lines.append(f"  other bounds     {values}; the first was chosen on the design")
        if self.distortion is not None:
            designed, overall = self.distortion
            lines.append(
                f"  distortion       {designed:.6g} on the design, {overall:.6g} on all records"
            )
        return "\n".join(lines)


def _estimate(of: Information) -> dict[str, Any]:
    names = ("plugin", "bias", "lower", "upper", "note")
    return {name: value for name, value in asdict(of).items() if name in names}


def halved(
    source: DiscreteSource, *, share: float = 0.5, seed: int | np.random.Generator | None = None
) -> Halves:
    """Hold out a random share of a table's records.

    Which records they are is drawn by their cells: the counts of a simple random sample are
    multivariate hypergeometric.

    Parameters
    ----------
    source : DiscreteSource
        Of a table, or of counts; without survey weights, which make records no independent draws,
        and without Z.
    share : float
        In (0, 1); the number of records held out is rounded.
    seed : int or Generator, optional

    Raises
    ------
    InputError
        For another share, or where either part would have no record.
    """
    share = number(share, "share", zero=False, below=1.0)
    if source.weighted:
        problem = "records with survey weights are no independent draws of one law"
        raise InputError("weights", problem, "leave the weights out, or hold nothing out")
    records = source.records or 0
    if source.law.ndim != 2 or (source.law % 1).any() or source.law.sum() != records:
        problem = "no counts of records of (W, X)"
        raise InputError("source", problem, "pass from_table or from_counts, without Z")
    held = round(share * records)
    if not 0 < held < records:
        problem = f"of {records:,} records it holds {held:,} out"
        raise InputError("share", problem, "leave a record at least in either part", value=share)
    counts = source.law.astype(np.int64)
    drawn = generator(seed).multivariate_hypergeometric(counts.ravel(), held, method="marginals")
    holdout = drawn.reshape(counts.shape)
    left = records - held
    law = own((counts - holdout).astype(float))
    design = source._with(law=law, records=left, effective=float(left))
    return Halves(source, design, holdout.astype(float), share)


def measured(
    halves: Halves,
    problem: ChannelProblem,
    solution: Solution,
    *,
    level: float = 0.95,
    bootstrap: int = 200,
    seed: int | np.random.Generator | None = None,
) -> PopulationRisk:
    """Measure on the holdout what a problem's solution leaks that was found on the design.

    Parameters
    ----------
    halves : Halves
    problem : ChannelProblem
        Of ``halves.design``, with an encoder of X.
    solution : Solution
        Of the problem.
    level, bootstrap, seed
        As of :func:`population_risk`.

    Raises
    ------
    InputError
        For a problem of another source, a randomisation that sees more than X, or one that has no
        row for a cell of the table.
    """
    draws, source = draws_of(bootstrap, "bootstrap"), halves.full
    if problem.source is not halves.design:
        raise InputError("problem", "of another source", "state it of the design records")
    if problem.encoder != "x" or problem.side_information is not None:
        wrong = f"the randomisation sees {problem.encoder!r}"
        raise InputError("encoder", wrong, "use encoder='x', which a holdout can measure")
    refuse_other(solution.certificate, problem, "solution")
    channel = solution.channel
    assert channel is not None
    place = {x: i for i, x in enumerate(channel.inputs)}
    lacking = [x for x in source.x if x not in place]
    if lacking:
        wrong = f"{len(lacking)} cells of the table have no row: the design half lacks them"
        raise InputError("criteria", wrong, "hold out fewer records, or ask for less")
    matrix = channel.matrix[[place[x] for x in source.x]]
    units = problem.units
    bounds = population_bounds(matrix, halves.design.law, halves.holdout, level=level, units=units)
    spread: dict[str, Any] = {"draws": draws, "level": level, "seed": seed}
    costs, joints = floats(problem.alphabet.d.cost), (halves.design.pmf, source.pmf)
    laws = joints if costs.ndim == 3 else [joint.sum(axis=0) for joint in joints]
    designed, released = (float((p[..., None] * matrix * costs).sum()) for p in laws)
    return PopulationRisk(
        bounds,
        level,
        estimated(halves.design.law, channel=matrix, level=level, units=units),
        estimated(halves.holdout, channel=matrix, units=units, **spread),
        mutual_information(source.law @ matrix, units=units),
        (int(halves.design.law.sum()), int(halves.holdout.sum())),
        (designed, released),
        (source.names[0], source.names[1]),
        units,
        solution,
    )


def population_risk(
    source: DiscreteSource,
    problem: Callable[[DiscreteSource], ChannelProblem],
    *,
    share: float = 0.5,
    level: float = 0.95,
    bootstrap: int = 200,
    seed: int | np.random.Generator | None = None,
    **options: Any,
) -> PopulationRisk:
    """Design a channel on a random part of the records, and bound its population risk by the rest.

    The risk of a certified optimum is that of the table at hand, which the optimum fits.  Other
    records of the same population, which the channel has never met, tell what it leaks there:
    :mod:`cvxprivacy.microdata.risk.population` has the bounds and their proofs.

    Parameters
    ----------
    source : DiscreteSource
        Of all records.
    problem : callable
        States the problem of a source: ``lambda source: PrivacyDistortion(source, d, budget=1)``.
    share : float
        Of the records that is held out, in (0, 1).
    level : float
        With which the bound holds: for this share of all tables, whatever the population.
    bootstrap : int
        Draws for the interval beside it, which is not proved; 0 for none.
    seed : int or Generator, optional
        Of the parts and of the bootstrap.
    **options
        Of ``problem.solve``.

    Raises
    ------
    InputError
        As :func:`halved` and :func:`measured`.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource.from_counts([[600, 200], [200, 600]])
    >>> population = population_risk(
    ...     source, lambda half: cpv.PrivacyDistortion(half, cpv.hamming(2), budget=0.2), seed=1
    ... )
    >>> population.holdout.plugin < population.upper < source.information()
    True
    """
    rng = generator(seed)
    halves = halved(source, share=share, seed=rng)
    stated = problem(halves.design)
    solution = stated.solve(**options)
    return measured(halves, stated, solution, level=level, bootstrap=bootstrap, seed=rng)
