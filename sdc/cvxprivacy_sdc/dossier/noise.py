"""The facts of a dossier of numbers that are released as numbers (``release --noise``).

The proof is of averages, variances and correlations.  What is said of the table itself is counted:
how far its numbers are off, and what straight lines explain of the confidential columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.extras import pd
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy_sdc.dossier import tradeoff, words
from cvxprivacy_sdc.dossier.board import TYPED_SEED, check_facts, release_verdict
from cvxprivacy_sdc.dossier.facts import dossier_of, of_files, program_facts
from cvxprivacy_sdc.dossier.leaks import SHARE_DIGITS, leaks, of_order
from cvxprivacy_sdc.dossier.provenance import Asked, Facts, Kept, seed_of
from cvxprivacy_sdc.dossier.secrecy import Guard
from cvxprivacy_sdc.dossier.tables import changed
from cvxprivacy_sdc.dossier.words import rounded
from cvxprivacy_sdc.releases.check import Check
from cvxprivacy_sdc.releases.released_law import RANDOMISATION, clearly

if TYPE_CHECKING:
    from cvxprivacy.formulations.quadratic_gaussian import QuadraticGaussian
    from cvxprivacy.results.solution import Solution
    from cvxprivacy_sdc.copied.order import OrderTest

__all__ = ["explained", "noise_facts"]

_CAUTIONS = (
    "what is proved is of averages, variances and correlations alone: it would be all that the "
    "released columns tell if all columns were jointly Gaussian; of columns of another shape "
    "nothing is proved, and they may tell more",
    "the numbers released are rounded to a hundredth of their error, which the proof leaves out",
    "the numbers released may lie where no record does, such as below 0",
    "what copied columns tell of the confidential ones was not measured: it comes on top",
)
_LEFT_OUT = {
    "Groups": "numbers are released as numbers, and make no groups",
    "Copied columns": "what they tell of the confidential ones is not measured with --noise",
}


def noise_facts(
    asked: Asked,
    frame: Any,
    columns: Mapping[str, Sequence[str]],
    problem: QuadraticGaussian,
    solution: Solution,
    released: Mapping[str, Sequence[float]] | None,
    kept: Kept,
    notes: Sequence[str],
    order: OrderTest,
    undone: Sequence[Facts],
) -> Facts:
    """Return the facts of a release of numbers.

    Parameters
    ----------
    frame : pandas.DataFrame
        The original numbers.
    columns : mapping
        Names of columns by their roles, ``sensitive`` and ``key``.
    released : mapping of column to sequence of float, or None
        The numbers that were written.
    kept : Kept
        The files as they were written.
    notes : sequence of str
        What is to be said besides.
    order : OrderTest
        What the order of records tells.
    undone : sequence of dict
        Which copied columns tell much of a key column.
    """
    schema = TableSchema(
        key=tuple(columns["key"]), sensitive=tuple(columns["sensitive"]),
        reading=asked.opened.reading([*columns["sensitive"], *columns["key"]], frame),
    )  # fmt: skip
    key, units = list(schema.key), problem.units
    check = _budget(frame, problem, solution, released)
    document: Facts = {"status": solution.status, "released": released}
    document |= {"order": order.document(), "undone": undone}
    verdict = release_verdict(document, [check], released is not None)
    if verdict["may_be_released"]:
        verdict["words"] += (
            " What it tells is known as far as averages, variances and correlations go, and no "
            "further."
        )
    seed = seed_of(asked.arguments)
    sizes = {role: len(frame[list(names)].drop_duplicates()) for role, names in columns.items()}
    minimised = "what is told if jointly Gaussian", units
    before = problem.source.information(units=units)
    curve, why = tradeoff.curve(
        problem, solution, minimised, before, parts=len(key),
        words="mean share of the variance that is error",
    )  # fmt: skip
    guard = Guard([], schema.columns)  # its text speaks of columns and measures alone
    return dossier_of(
        "release",
        **of_files(
            asked, schema, guard, kept, verdict,
            {"records": len(frame), "left_out": 0, "w": sizes["sensitive"], "x": sizes["key"]},
            list(solution.notes), seed, sequel=True,
        ),
        leaks=leaks(
            schema, asked.opened, len(frame), gaussian={
                "units": units, "released": rounded(solution.upper), "original": rounded(before)
            }, **_counted(frame, schema, released), **of_order(order),
        ),
        cautions=[
            *_CAUTIONS, *notes, *(entry["words"] for entry in undone), *[TYPED_SEED] * seed["given"]
        ],
        asked=words.asked(
            {"units": units, "distortion": {}, "budget": float(problem.budget) / len(key)},
            (), schema,
        ),
        program=program_facts(problem, solution, minimised, sees="x"),
        checks=check_facts([check], None),
        tradeoff=curve,
        changed=None if released is None else changed(frame[key], pd.DataFrame(released)),
        left_out={**_LEFT_OUT, **({} if curve else {"Another choice": why})},
    )  # fmt: skip


def explained(columns: Any, numbers: Any) -> FloatArray:
    """Return the share of the variance of each column that straight lines explain, as R².

    Parameters
    ----------
    columns : array, shape (records, |W|)
        That are guessed.
    numbers : array, shape (records, |X|)
        That they are guessed from.
    """
    w, x = (np.asarray(v, float) for v in (columns, numbers))
    w, x = w - w.mean(axis=0), x - x.mean(axis=0)
    x = x / np.maximum(x.std(axis=0), np.finfo(float).tiny)
    residual = w - x @ np.linalg.lstsq(x, w, rcond=None)[0]
    return np.asarray(1.0 - (residual**2).sum(axis=0) / (w**2).sum(axis=0))


def _counted(
    frame: Any, schema: TableSchema, released: Mapping[str, Sequence[float]] | None
) -> Facts:
    """Return what straight lines explain, and how far the numbers that were released are off."""
    if released is None:
        return {}
    key, confidential = list(schema.key), frame[list(schema.sensitive)]
    after = explained(confidential, np.column_stack([released[n] for n in key]))
    shares = zip(schema.sensitive, after, explained(confidential, frame[key]), strict=True)
    return {
        "explained": [
            {"column": name, "released": rounded(share, SHARE_DIGITS),
             "original": rounded(before, SHARE_DIGITS)}
            for name, share, before in shares
        ],
        "off": [
            {"column": n, "mean": rounded(float(np.abs(frame[n] - np.asarray(v)).mean()))}
            for n, v in released.items()
        ],
    }  # fmt: skip


def _budget(frame: Any, problem: QuadraticGaussian, solution: Solution, released: Any) -> Check:
    """Return how the error stands with the budget: by the rule, and as it is counted."""
    parts, table = len(problem.source.x), None
    bound = float(problem.budget) / parts
    if released is not None:
        table = float(np.mean([
            np.mean((frame[name] - np.asarray(numbers)) ** 2) / np.var(frame[name])
            for name, numbers in released.items()
        ]))  # fmt: skip
    return Check(
        "budget", "budget", f"budget {bound:g}",
        f"on average over the key columns at most {bound:g} of the variance is error",
        "share of the variance", "", False, bound,
        float(solution.terms["distortion"]) / parts, True, table,
        None if table is None else clearly(table, bound), law_of=RANDOMISATION, on_average=True,
        drawn=released is not None,
    )  # fmt: skip
