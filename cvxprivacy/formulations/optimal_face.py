"""How far an entry of the channel may move among releases that attain the optimum."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.formulations.channel import ChannelProblem
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.programs.expression import Constraint, Expression, indexed, parts_of
from cvxprivacy.results.enclosure import Enclosure
from cvxprivacy.solvers.driver import solve
from cvxprivacy.validation import one_of, typed, untaken

__all__ = ["entry_range"]


def entry_range(
    problem: ChannelProblem, letter: Hashable, output: Hashable, *, within: float = 1e-6
) -> Enclosure:
    """Enclose p(x̂ | s) over all releases whose value is near the optimum.

    An optimal release is often not unique; ``solve`` returns one near the middle of them all.  The
    entry is minimised and maximised under the problem's constraints and objective ≤ v + within,
    v the value that ``solve`` attains; both ends are proved.

    Parameters
    ----------
    problem : ChannelProblem
        The problem whose optimal releases are asked about; it is solved first.
    letter, output : hashable
        An input and an output of the channel, as ``solution.channel`` labels them.
    within : float
        How far from the optimum a release may be, in the units of the objective.  Where the
        optimum is unique, an entry still moves by about the root of it.

    Returns
    -------
    Enclosure
        No near-optimal release has this entry outside it.

    Raises
    ------
    InputError
        If there is no such entry, or its letter has no mass: then any row will do; where strategies
        are generated, as those that are not listed would not be searched.
    InfeasibleError, CertificationError
        As of ``solve``.

    Examples
    --------
    Two outputs of one cost can take each other's place:

    >>> import cvxprivacy as cpv
    >>> from cvxprivacy.formulations.optimal_face import entry_range
    >>> source = cpv.DiscreteSource([[0.3, 0.1], [0.1, 0.5]])
    >>> problem = cpv.PrivacyDistortion(source, [[0, 0, 1], [1, 1, 0]], budget=0.1)
    >>> ends = entry_range(problem, 0, 0, within=1e-4)
    >>> ends.lower < 1e-6, ends.upper > 0.8
    (True, True)
    """
    if not isinstance(problem, ChannelProblem):
        remedy = "pass a problem over discrete channels"
        raise InputError("problem", f"{problem!r} is none", remedy, value=problem)
    if not problem.minimised:
        wrong = "a greatest value, which releases that are far apart may attain"
        raise InputError("problem", wrong, "pass a problem that minimises")
    if getattr(problem, "cut", False):
        wrong = f"only {problem.alphabet.m:,} of its strategies are listed"
        raise InputError("problem", wrong, "raise most_strategies: others may be optimal too")
    margin = Fraction(typed(within, "within", zero=False))
    solution = problem.solve()
    channel = solution.channel
    assert channel is not None  # or solve had raised
    one_of(letter, "letter", *channel.inputs)
    one_of(output, "output", *channel.outputs)
    place = list(channel.inputs).index(letter)
    if channel.arbitrary[place]:
        wrong = f"{letter!r} has no mass"
        raise InputError("letter", wrong, "any row is optimal: choose another", value=letter)
    s = int(np.count_nonzero(~channel.arbitrary[:place]))
    y = list(channel.outputs).index(output)
    program = solution.certificate.program
    rows = dict(program.constraints)
    for name, part in parts_of(program.objective).items():  # each of a worst case
        near = replace(part, name="optimum")
        bound = Fraction(solution.upper) + margin
        rows[untaken(indexed("optimum", name), rows)] = Constraint(near, "<=", bound)
    lowest = []
    for sign in (1, -1):
        objective = Expression(cost=_entry(program, s, y, sign))
        face = replace(program, objective=objective, constraints=rows, terms={})
        lowest.append(solve(face).certificate.lower)
    return Enclosure(max(lowest[0], 0.0), min(-lowest[1], 1.0))


def _entry(program: ChannelProgram, s: int, y: int, sign: int) -> np.ndarray:
    """Return the cost that is ± K(s, y) itself."""
    atoms = [[Fraction(atom) for atom in row] for row in program.law.tolist()]
    cost = np.full((program.n, program.m), Fraction(0), dtype=object)
    share = sum((row[s] for row in atoms), Fraction(0)) / sum(map(sum, atoms), Fraction(0))
    cost[s, y] = sign / share
    return cost
