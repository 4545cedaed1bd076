"""Channels of somebody else beside a frontier: where each one lies, as it is, unrepaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from cvxprivacy.certificates.exact_channel import DENOMINATOR, ExactChannel
from cvxprivacy.criteria import LocalPrivacy
from cvxprivacy.errors import InputError
from cvxprivacy.exact import rational
from cvxprivacy.formulations.candidate import candidate_rows
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.frontiers.curve import CONVEX
from cvxprivacy.frontiers.parametric import ParametricProblem
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.draws import numerators
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.results.privacy_profile import PrivacyProfile
from cvxprivacy.solvers.candidate import with_centre
from cvxprivacy_verifier.balls import ball, ceil, floor
from cvxprivacy_verifier.verify import proof_of

__all__ = ["Place", "named_channels", "places_of"]


class Place(NamedTuple):
    """Where a channel lies: its own number, its objective, and the other constraints it breaks."""

    x: Enclosure
    value: Enclosure
    breaks: list[str]


def named_channels(channels: Any, argument: str) -> dict[str, Channel]:
    """Return channels by their names: of a mapping, of pairs, or one by one, which are numbered."""
    remedy = 'pass channels by their names, such as {"randomised response": channel}'
    if isinstance(channels, Channel):
        channels = [channels]
    if not isinstance(channels, Iterable) or isinstance(channels, str):
        raise InputError(argument, f"a {type(channels).__name__}", remedy)
    listed = list(channels.items() if isinstance(channels, Mapping) else channels)
    named: dict[str, Channel] = {}
    for i, entry in enumerate(listed):
        pair = isinstance(entry, tuple) and len(entry) == 2
        name, channel = entry if pair else (f"channel {i + 1}", entry)
        if not isinstance(channel, Channel):
            raise InputError(argument, f"a {type(channel).__name__}", remedy, where=name)
        if str(name) in named:
            raise InputError(argument, f"{str(name)!r} twice", remedy, where=i, value=name)
        named[str(name)] = channel
    return named


def places_of(
    family: ParametricProblem, channels: Mapping[str, Channel], argument: str
) -> Iterator[tuple[str, Place]]:
    """Evaluate channels under a family's problem, exactly or in balls, without any repair.

    Raises
    ------
    InputError
        For outputs that are no letters of the problem, and a number that a channel has none of.
    """
    problem: Any = family._problem
    if not isinstance(problem, ChannelProblem):
        remedy = "compare on a frontier of a channel problem"
        raise InputError(argument, f"channels beside a {type(problem).__name__}", remedy)
    if problem.alphabet.strategies is not None:  # whose u = 0, 1, … are nobody else's letters
        remedy = "compare where the user of the release has no side information"
        raise InputError(argument, "outputs that only a decoder reads", remedy)
    proof = proof_of(problem.program.to_dict())
    for name, channel in channels.items():
        yield name, _place_of(family, proof, channel, argument, name)


def _place_of(
    family: ParametricProblem, proof: Any, channel: Channel, argument: str, name: str
) -> Place:
    problem: Any = family._problem
    inputs, outputs = problem.alphabet.inputs, {*problem.alphabet.outputs}
    remedy = "make the channel of the letters of the problem"
    for label in channel.inputs:
        if label not in inputs:
            unknown = f"an input {label!r}, which is no letter of the problem"
            raise InputError(argument, unknown, remedy, where=name, value=label)
    for label in (inputs[place] for place in problem.alphabet.support):
        if label not in channel.inputs:
            raise InputError(argument, f"no input {label!r}", remedy, where=name, value=label)
    for label in channel.outputs:
        if label not in outputs:
            remedy = "pass mechanisms.remap(channel, source, distortion)"
            unknown = f"an output {label!r}, which is no released letter of the problem"
            raise InputError(argument, unknown, remedy, where=name, value=label)
    rows = with_centre(problem.program, candidate_rows(channel, problem.alphabet))
    exact = ExactChannel(numerators(rows))
    evaluation = proof.upper(exact.to_dict())
    moving = {*family.axis.rows, *problem.rules.get(family.parameter, {})}
    breaks = [broken for broken in evaluation.broken if broken not in moving]
    number = _number(family, problem, exact, evaluation.violation, argument)
    return Place(number, _enclosed(evaluation.objective), breaks)


def _number(
    family: ParametricProblem,
    problem: Any,
    exact: ExactChannel,
    violation: Mapping[str, list[arb]],
    argument: str,
) -> Enclosure:
    """Return the least number at which the channel keeps the constraint that moves."""
    if family.axis.kind == CONVEX:
        rows = problem.program.constraints
        lefts = [ball(rational(rows[r].bound)) + violation[r][0] for r in family.axis.rows]
        first, *others = map(_enclosed, lefts)
        lower = max([first.lower, *(other.lower for other in others)])
        return Enclosure(lower, max([first.upper, *(other.upper for other in others)]))
    criterion = problem._criteria().get(family.parameter)
    if not isinstance(criterion, LocalPrivacy) or criterion.delta is not None:
        remedy = "compare on a frontier over a budget, a cap, or the ε of local privacy"
        wrong = f"no channel has a number {family.parameter!r} of its own"
        raise InputError(argument, wrong, remedy, value=family.parameter)
    alphabet, matrix = problem.alphabet, exact.numerators / DENOMINATOR
    matrix = matrix[: alphabet.n]
    n, m = matrix.shape
    metric = criterion.metric
    if metric is not None:
        metric = metric[np.ix_(alphabet.x_of, alphabet.x_of)]
    rows_with_mass = Channel(matrix, inputs=range(n), outputs=range(m))
    return PrivacyProfile(rows_with_mass, metric=metric).epsilon


def _enclosed(value: arb) -> Enclosure:
    return Enclosure(floor(value), ceil(value))
