"""From the certificate of a channel program to a solution: multipliers, prices, the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.certificates.exact_channel import DENOMINATOR
from cvxprivacy.criteria.base import Criterion
from cvxprivacy.exact import FloatArray, is_sparse
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.expression import Worst
from cvxprivacy.programs.side_conditions import EntryBounds
from cvxprivacy.programs.useful import UsefulDual
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.decoder import Decoder
from cvxprivacy.results.inactive_constraints import inactive_notes
from cvxprivacy.results.informed import Informed, atoms_of, informed
from cvxprivacy.results.prices import ChannelPrices
from cvxprivacy.results.recount import table_record
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome

__all__ = ["Entries", "channel_solution", "entry_bounds", "release_of", "restored_rows"]


def channel_solution(
    outcome: Outcome,
    alphabet: Alphabet,
    rules: Rules,
    entries_of: Entries,
    *,
    independent: bool,
    title: str,
    sizes: str,
    notes: list[str],
    restated: Callable[..., Any] | None = None,
) -> Solution:
    """Return what a solve returns.

    Parameters
    ----------
    entries_of : callable
        Bounds on the row of a key letter without mass, as of ``restored_rows``.
    independent : bool
        Whether records have to be drawn independently.
    restated : callable, optional
        Returns the problem with other numbers.
    """
    counted = None  # of several laws, no one table is all that was counted
    if not alphabet.several:
        counted = table_record(alphabet.source, alphabet.encoder_inputs)
    certificate = outcome.certificate.recorded(counted)
    program, primal, dual = certificate.program, certificate.primal, certificate.dual
    duals: dict[str, Any] = {}
    posteriors: dict[str, FloatArray] = {}
    priced: Any = {}
    if isinstance(dual, UsefulDual):  # a maximum is no convex function of what bounds it: no prices
        duals = {"mass": dual.letters, **dual.multipliers}
    elif primal is not None and dual is not None and dual.objective:
        duals, posteriors = _multipliers(program, dual, alphabet.n)
        priced = ChannelPrices(
            program,
            rules,
            primal,
            dual,
            outcome.edges,
            nearby=certificate.status == "certified",
            restated=restated,
        )
    return Solution(
        certificate,
        title=title,
        sizes=sizes,
        release=None
        if primal is None
        else release_of(
            program, alphabet, primal.matrix[: alphabet.n], entries_of, independent=independent
        ),
        prices=priced,
        duals=duals,
        posteriors=posteriors,
        least_favourable=_least_favourable(program, alphabet, dual),
        log=outcome.log,
        notes=[*notes, *(inactive_notes(program) if program.dense else ())],
        informed={} if primal is None else _informed(alphabet, primal.matrix[: alphabet.n]),
    )


def _informed(alphabet: Alphabet, matrix: Matrix) -> dict[str, Informed]:
    """Return what is told to who knows x, under each law; nothing more than x if W is not seen."""
    if "w" not in alphabet.encoder_inputs:
        return {}
    laws = alphabet.by_law if alphabet.several else {"": alphabet}
    w, x, *z = alphabet.source.names
    x = f"{x} and {z[0]}" if alphabet.side_information else x
    how: Any = (matrix, alphabet.outputs, alphabet.units, (w, x))
    return {law: informed(atoms_of(of), *how) for law, of in laws.items()}


def _least_favourable(program: ChannelProgram, alphabet: Alphabet, dual: Any) -> dict[Any, float]:
    """Return the weights of what the worst is of: laws, or values of W, whose prior they are."""
    objective = program.objective
    if not isinstance(objective, Worst) or dual is None or not dual.objective:
        return {}
    shares = list(dual.shares_of(program).values())
    values = [alphabet.source.w[w] for w in alphabet.w_support]
    return dict(zip(values if objective.over else objective.parts, shares, strict=True))


def _multipliers(
    program: ChannelProgram, dual: Dual, letters: int
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Return the multipliers of every constraint, mass and entry bound, and r(v | y) per view.

    Of the letters alone, where another one is nobody's.
    """
    mass, nu = program.mass[:letters], dual.thresholds(program)[:letters]
    if program.centred:
        mass = mass / mass.sum()
    duals: dict[str, Any] = {"mass": nu / mass}
    if program.dense:  # a table of all entries
        g = dual.minorant(program)[0][:letters]
        duals["floor"] = np.maximum(g - nu[:, None], 0.0) / mass[:, None]
        if program.upper is not None:
            duals["cap"] = np.maximum(nu[:, None] - g, 0.0) / mass[:, None]
    for name, auxiliary in program.auxiliaries.items():
        parts = ("floor", "cap") if auxiliary.kind == "ratio" else ("cap",)
        for part, values in zip(parts, dual.auxiliaries[name], strict=True):
            table = np.array(values)
            if table.ndim == 2:  # per unit of mass, as all others
                table = table[:letters] * (program.mass[:letters] / mass)[:, None]
            duals[f"{name}.{part}"] = table
    for name in program.constraints:
        multiplier = np.asarray(dual.multipliers[name], float)
        duals[name] = multiplier.copy() if multiplier.ndim else float(multiplier)
    posteriors = {
        name: program.reference(name)[:, None] * np.exp(dual.slopes(program, name))
        for name, view in program.views.items()
        if view.informs
    }
    return duals, posteriors


def release_of(
    program: ChannelProgram,
    alphabet: Alphabet,
    kept: Matrix,
    entries_of: Entries,
    *,
    independent: bool,
) -> Channel:
    """Restore the letters of probability zero, on which no optimum depends.

    Those for which the criteria leave no row are no inputs of the channel.
    """
    source, encoder = alphabet.source, alphabet.encoder_inputs
    inputs = alphabet.inputs
    letters = inputs if encoder == "x" else [label[encoder.index("x")] for label in inputs]
    p_input = np.zeros(len(inputs))
    p_input[alphabet.support] = alphabet.mass_of_letters
    arbitrary = np.ones(len(inputs), bool)
    arbitrary[alphabet.support] = False
    empty = np.flatnonzero(arbitrary)
    rows = restored_rows(program, alphabet, kept, [letters[i] for i in empty], entries_of)
    allowed = np.ones(len(inputs), bool)
    allowed[empty] = [row is not None for row in rows]
    matrix = kept
    if len(empty):
        restored = [np.zeros(alphabet.m) if row is None else row for row in rows]
        order = np.argsort(np.concatenate([alphabet.support, empty]))
        if is_sparse(kept):
            few = [sparse.csr_array(row[None]) for row in restored]
            matrix = sparse.vstack([kept, *few], format="csr")[order]
        else:
            matrix = np.vstack([kept, restored])[order]
    allowed = np.flatnonzero(allowed)
    return Channel(
        matrix[allowed],
        inputs=[inputs[i] for i in allowed],
        outputs=alphabet.outputs,
        p_input=p_input[allowed],
        schema=source.schema,
        encoder=encoder,
        arbitrary=arbitrary[allowed],
        decoder=_decoder(alphabet),
        independent=independent,
    )


def _decoder(alphabet: Alphabet) -> Decoder | None:
    if alphabet.strategies is None:
        return None
    letters, z = alphabet.d.outputs, alphabet.source.z or []
    met = [observer.z for observer in alphabet.observers]
    places = [i if i in met else met[0] for i in range(len(z))]  # z without mass: as another
    rules = alphabet.strategies.tolist()
    table = [[letters[rule[place]] for place in places] for rule in rules]
    return Decoder(table, side=z, schema=alphabet.source.schema)


Entries = Callable[[int, Mapping[int, FloatArray]], tuple[FloatArray, FloatArray] | None]

_SLACK = 1e-12  # of rounding


def restored_rows(
    program: ChannelProgram,
    alphabet: Alphabet,
    channel: Matrix,
    letters: Sequence[Any],
    entries_of: Entries,
) -> list[FloatArray | None]:
    """Return a row for each input that has no mass, or None where the criteria allow none.

    No optimum depends on them and no proof covers them, but a record may have such a value next
    month: what the criteria say of every single input is kept for it too, or it is not released.

    It is the released marginal, which bounded ratios tolerate, or the letter itself where entries
    have bounds and nothing else speaks of single inputs; and the law nearest to the released
    marginal where neither is allowed.

    Parameters
    ----------
    channel : array, shape (n, m)
        The rows of the inputs with mass.
    letters : sequence
        The key letter x of each input without.
    entries_of : callable
        Bounds (m,) on the row of a key letter, by its number and the rows of others; None where
        they are not known, or nothing is within.
    """
    marginal = program.mass[: alphabet.n] @ channel  # of all letters but the centre
    least, most = (extreme(axis=0) for extreme in (channel.min, channel.max))
    if is_sparse(channel):
        least, most = (extreme.toarray().ravel() for extreme in (least, most))
    # without what a bound may be off, or a product with it is rounded: a row kept at 1 is the same
    ratios = [
        max(1.0, (float(a.bound) - float(a.radius)) * (1 - 2.0**-51))
        for a in program.auxiliaries.values()
        if a.kind == "ratio"
    ]
    totals = [float(a.bound) for a in program.auxiliaries.values() if a.kind == "maximum"]
    bounded = program.lower is not None or program.upper is not None
    identical = bounded and not program.auxiliaries and alphabet.strategies is None
    places = {x: alphabet.source.x.index(x) for x in dict.fromkeys(letters)}
    present = {} if is_sparse(channel) else dict(zip(alphabet.x_of.tolist(), channel, strict=True))
    rows: list[FloatArray | None] = []
    for x in letters:
        row = None
        if (entries := entries_of(places[x], present)) is not None:
            lower, upper = entries
            if ratios:
                # in whole draws, which _drawable moves no further out
                fewest = np.ceil(most / min(ratios) * DENOMINATOR)
                largest = np.floor(np.minimum(least * min(ratios), 1.0) * DENOMINATOR)
                lower = np.maximum(lower, fewest / DENOMINATOR)
                upper = np.minimum(upper, largest / DENOMINATOR)
            row = _nearest(marginal / marginal.sum(), lower, upper, most)
            if identical and x in alphabet.outputs:
                same = np.array([y == x for y in alphabet.outputs], float)
                row = same if (lower <= same).all() and (same <= upper).all() else row
        if row is not None and totals and np.maximum(row, most).sum() > min(totals) + _SLACK:
            row = None
        if row is not None:  # those that follow are compared with it too
            least, most = np.minimum(least, row), np.maximum(most, row)
            present[places[x]] = row
        rows.append(row)
    return rows


def entry_bounds(criteria: Mapping[str, Criterion], rules: Rules, alphabet: Alphabet) -> Entries:
    """Return what gives the bounds (m,) of a key letter's row; None where they are not known."""

    def bounds(x: int, rows: Mapping[int, FloatArray]) -> tuple[FloatArray, FloatArray] | None:
        lower, upper = np.zeros(alphabet.m), np.ones(alphabet.m)
        for name, criterion in criteria.items():
            overridden = type(criterion).entries_of is not Criterion.entries_of
            silent = not any(isinstance(rule, EntryBounds) for rule in rules[name].values())
            entries = criterion.entries_of(alphabet, x) if overridden or silent else None
            for part in (entries, criterion.row_bounds(alphabet, x, rows)):
                if part is None:
                    return None
                lower, upper = np.maximum(lower, part[0]), np.minimum(upper, part[1])
        return lower, upper

    return bounds


def _nearest(
    marginal: FloatArray, lower: FloatArray, upper: FloatArray, most: FloatArray
) -> FloatArray | None:
    """Return a law within bounds, which exceeds ``most`` by the least; None if there is none."""
    if (lower > upper + _SLACK).any() or lower.sum() > 1 + _SLACK or upper.sum() < 1 - _SLACK:
        return None
    upper = np.maximum(lower, upper)
    row = np.clip(marginal, lower, upper)
    spare, over = row - lower, row.sum() - 1.0
    if over > 0 and spare.any():
        row = row - spare * min(1.0, over / spare.sum())
    for limit in (np.minimum(upper, most), upper):
        room, short = np.maximum(limit - row, 0.0), 1.0 - row.sum()
        if short > 0 and room.any():
            row = row + room * min(1.0, short / room.sum())
    return _drawable(row / row.sum(), lower, upper)


def _drawable(row: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
    """Return a law of whole numbers over 2⁵², which it is drawn by, within bounds.

    If none is, one that leaves them by less than a draw, and None if there is none either: bounds
    that are kept in any case are whole draws.
    """
    scaled_lower, scaled_upper = lower * DENOMINATOR, upper * DENOMINATOR
    low, high = np.ceil(scaled_lower - _SLACK), np.floor(scaled_upper + _SLACK)
    if low.sum() > DENOMINATOR or high.sum() < DENOMINATOR:  # a third is no multiple of 2⁻⁵²
        low, high = np.floor(scaled_lower), np.ceil(scaled_upper)
    low = np.maximum(low, lower > 0)  # no floor above 0 is kept at 0
    k = np.minimum(np.maximum(np.rint(row * DENOMINATOR), low), high)
    short = DENOMINATOR - k.sum()
    room = np.maximum(high - k if short > 0 else k - low, 0.0)
    moved = np.clip(abs(short) - (np.cumsum(room) - room), 0.0, room)
    k += np.sign(short) * moved
    return np.asarray(k / DENOMINATOR) if k.sum() == DENOMINATOR else None
