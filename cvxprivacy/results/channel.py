"""From the certificate of a channel program to a solution: multipliers, prices, the release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from cvxprivacy.exact import FloatArray, is_sparse
from cvxprivacy.programs.alphabet import Alphabet
from cvxprivacy.programs.channel import ChannelProgram, Matrix
from cvxprivacy.programs.compiler import Rules
from cvxprivacy.programs.dual import Dual
from cvxprivacy.programs.useful import UsefulDual
from cvxprivacy.programs.worst import Worst
from cvxprivacy.release.channel import Channel
from cvxprivacy.release.decoder import Decoder
from cvxprivacy.results.inactive_constraints import inactive_notes
from cvxprivacy.results.informed import Informed, atoms_of, informed
from cvxprivacy.results.prices import ChannelPrices
from cvxprivacy.results.recount import table_record
from cvxprivacy.results.restoration import Entries, restored_rows
from cvxprivacy.results.solution import Solution
from cvxprivacy.solvers.driver import Outcome

__all__ = ["channel_solution", "release_of"]


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
