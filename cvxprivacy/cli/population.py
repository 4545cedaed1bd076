"""``release --holdout``: a channel designed on some records, its population risk by the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from cvxprivacy.cli.options import Command
from cvxprivacy.errors import InputError

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.model.discrete import DiscreteSource
    from cvxprivacy.results.solution import Solution
    from cvxprivacy.sdc.risk.population import Halves, PopulationRisk

__all__ = ["halves_of", "held_out", "measured_of", "population_facts", "refuse_with_holdout"]

LEVEL = 0.95


def held_out(command: Command) -> Command:
    """Add ``--holdout`` and ``--confidence``."""
    command = click.option(
        "--confidence",
        type=float,
        metavar="PROBABILITY",
        help=f"Of the bound on the population's risk, with --holdout; {LEVEL:g} by default.",
    )(command)
    return click.option(
        "--holdout",
        type=float,
        metavar="SHARE",
        help="Design the channel on a random part of the records without this share, 0.5 for a "
        "half, and bound what it tells in the population by the records held out.  All are "
        "released, through this channel.",
    )(command)


def refuse_with_holdout(options: Mapping[str, Any]) -> None:
    """Refuse what does not go together with ``--holdout``, or does not go without it."""
    share, level = options["holdout"], options["confidence"]
    if level is not None and share is None:
        raise InputError("--confidence", "without --holdout", "pass both, or neither", value=level)
    if share is None:
        return
    if not 0 < share < 1:
        remedy = "pass a share of the records, such as 0.5"
        raise InputError("--holdout", f"{share:g}", remedy, value=share)
    if level is not None and not 0 < level < 1:
        raise InputError(
            "--confidence", f"{level:g}", "pass a probability such as 0.95", value=level
        )
    if options["weights"] is not None:
        problem = "with --weights, records are no independent draws of one law"
        raise InputError("--holdout", problem, "leave out either")
    if options["encoder"] != "x":
        problem = "with --encoder wx, the randomisation sees W"
        raise InputError("--holdout", problem, "use --encoder x, or hold nothing out")
    if options["cells"] is not None:
        problem = "with --cells, which looks at W of all records"
        raise InputError("--holdout", problem, "paste the options that --cells prints")
    if options["problem_out"] is not None:
        problem = "with --problem-out, whose file cannot say which records are held out"
        raise InputError("--holdout", problem, "leave out either")


def halves_of(source: DiscreteSource, options: Mapping[str, Any], seed: int) -> Halves | None:
    """Return the records in two parts, or None without ``--holdout``.

    Which part a record is in is independent of its draw, though both are of the one seed.
    """
    if options["holdout"] is None:
        return None
    from cvxprivacy.sdc.risk.population import halved

    try:
        return halved(source, share=options["holdout"], seed=_chance(seed, 1))
    except InputError as error:
        if error.argument != "share":
            raise
        more: dict[str, Any] = {"where": error.where, "value": error.value}
        raise InputError("--holdout", error.problem, error.remedy, **more) from None


def measured_of(
    halves: Halves | None,
    problem: ChannelProblem,
    solution: Solution,
    options: Mapping[str, Any],
    seed: int,
) -> PopulationRisk | None:
    """Return what the records held out say, if any are."""
    if halves is None:
        return None
    from cvxprivacy.sdc.risk.population import measured

    level = options["confidence"]
    level = LEVEL if level is None else level
    return measured(halves, problem, solution, level=level, seed=_chance(seed, 2))


def _chance(seed: int, use: int) -> Any:
    """Return chance of the seed that is independent of the draws of the release."""
    import numpy as np

    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(use,)))


def population_facts(document: dict[str, Any], risk: PopulationRisk | None) -> dict[str, Any]:
    """Return a report with the population's risk."""
    if risk is None:
        return document
    note = (
        f"the optimum, the risk after and the proof are of the {risk.records[0]:,} records that "
        f"the channel was designed on; all {sum(risk.records):,} go through it, and "
        "`cvxprivacy verify --table` counts all"
    )
    return {**document, "population": risk.document(), "notes": [*document["notes"], note]}
