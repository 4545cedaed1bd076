"""Channel programs that are refused before anything is made of them."""

from __future__ import annotations

from cvxprivacy.certificates.bounds import Prover
from cvxprivacy.errors import InputError
from cvxprivacy.leakage import Leakage
from cvxprivacy.programs.channel import ChannelProgram
from cvxprivacy.solvers.entries import generation as entry_generation
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy.verifier.balls import UnaffordableError

__all__ = ["prover_of", "refuse_foreign", "refuse_too_large"]


def refuse_foreign(measures: list[Leakage]) -> None:
    """Refuse measures of which the central path knows no derivatives."""
    if measures:
        problem = f"{measures[0]!r} states neither a Hessian nor a linear program"
        remedy = 'use "auto" or "conic", or make it leakage.Smooth or leakage.Polyhedral'
        raise InputError("method", problem, remedy, value="structured")


def refuse_too_large(program: ChannelProgram, many: int) -> None:
    """Refuse more entries than there is room for; up to ``many`` there is."""
    n, m = program.n, program.m
    if n * m <= many or interior.fits(program):
        return
    most = interior.LARGEST
    if entry_generation.suits(program):
        if (needed := entry_generation.table_size(program)) <= most:  # (E13)
            return
    else:
        needed = interior.block_size(program)
    side = int((most / needed * n * m) ** 0.5)  # what is needed grows as n m
    problem = f"{n:,} letters to release as {m:,}, which takes {8 * needed / 2**30:.1f} GiB"
    remedy = f"about {side:,} of each fit: put letters together, or list fewer outputs"
    raise InputError("problem", problem, remedy)


def prover_of(program: ChannelProgram, accuracy: str) -> Prover:
    """Return the prover, or refuse a program that no proof would be read of."""
    try:
        return Prover(program, accuracy)
    except UnaffordableError as error:
        sizes = f"{program.n:,} letters to release as {program.m:,}"
        problem = f"{sizes} are more than a proof holds ({error})"
        remedy = "put letters or hidden values together, list fewer outputs, or state fewer rows"
        raise InputError("problem", problem, remedy) from error
