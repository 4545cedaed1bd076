r"""Rows that allow no more leakage than there is without a release, and what they say instead.

Let p be the law of what a view sees.  A measure is F(J) ≥ ⟨s, J⟩, with equality at p, for some
score s, and Σ_y ⟨s, J_y⟩ = ⟨s, p⟩ = F(p) whatever is released.  So a bound of F(p) on Σ_y F(J_y)
demands F(J_y) = ⟨s, J_y⟩ at every output y, for all such s: the face of p, which is linear in J
(:class:`~cvxprivacy.leakage.base.Face`).  For most measures it is J = π q; of guesses, that the
best one without a release is best still.  Rows for each output add up to such a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cvxprivacy.additive import dense
from cvxprivacy.exact import Exact, array, fractions, rational
from cvxprivacy.leakage.base import Face
from cvxprivacy.programs.channel import ChannelProgram, View
from cvxprivacy.programs.expression import Constraint, Expression, Sense, Worst

__all__ = ["LeastLeakage", "breach", "least_leakage", "prior_leakage"]

_EDGE = 1e-15  # of a measure's span: a bound so near the least is taken for it
_ROUNDED = 1e-12  # what floats may be off
_TIED = 1e-11  # a direction so near 0 at p, of its size, is taken for 0


@dataclass(frozen=True, eq=False)
class LeastLeakage:
    """What a row says by the faces of its views.

    Attributes
    ----------
    program : ChannelProgram
        The program with linear rows in place of it, and with scores in place of its measures.
    faces : mapping of str to Face
        By view.
    directions : mapping of str to (str, int)
        View and direction of each of these rows.
    score : str
        The row that bounds the score of each output, as the row itself does; "" if all do.
    """

    program: ChannelProgram
    faces: Mapping[str, Face]
    directions: Mapping[str, tuple[str, int]]
    score: str


def prior_leakage(program: ChannelProgram, view: str) -> float:
    """Return what a view's observer knows before any release, such as I(W; Z)."""
    joint = np.asarray(program.view_matrix(view).sum(axis=1), float)[:, None]
    value = program.views[view].measure.value(joint, program.reference(view))
    return float(value[0]) * program.unit(view)


def breach(program: ChannelProgram, row: Constraint) -> float | None:
    """Return by how much a release that tells nothing breaks a row; None if that is not known.

    It is not where costs, weights or bounds are other ones at other outputs.
    """
    term, weights = row.expression, row.expression.columns(program.m)
    uneven = any(np.ptp(weight) for weight in weights.values())
    if row.linear or uneven or (row.per_output and row.bounds(program.m).any()):
        return None
    value = float(term.constant) - float(row.bounds(program.m).max())
    if term.cost is not None:
        cost = program.cost(term)
        if np.ptp(cost, axis=1).any():
            return None
        value += float(program.mass @ cost[:, 0])
    return value + sum(float(w[0]) * prior_leakage(program, view) for view, w in weights.items())


def least_leakage(program: ChannelProgram, name: str, within: float = _EDGE) -> LeastLeakage | None:
    """Return what a row says if a release that tells nothing just satisfies it; else None.

    Or what it would say, where its bound is ``within`` that share of the measure's span.
    """
    row = program.constraints[name]
    term, span = row.expression, sum(program.sizes(row.expression))
    off, radii = breach(program, row), (row.radius, term.cost_radius, term.constant_radius)
    if off is None or off < -max(within, _ROUNDED) * span or any(radii):
        return None
    atoms = fractions(program.law)
    atoms = atoms / atoms.sum()
    priors: dict[str, Exact] = {}
    faces: dict[str, Face] = {}
    for view in term.weights:
        priors[view], reference = _laws(program.views[view], atoms)
        face = program.views[view].measure.face(priors[view], reference)
        if face is None:
            return None
        faces[view] = face
    scored = _scored(program, term, faces)
    each = np.full(atoms.shape, Fraction(0))  # what an atom costs, at any output
    if scored.cost is not None:
        each = each + fractions(dense(scored.cost)[..., 0])
    bound = row.bound[0] if isinstance(row.bound, tuple) else row.bound
    over = (atoms * each).sum() + rational(scored.constant) - bound
    if abs(over) > within * span:
        return None
    rows: dict[str, Constraint] = {}
    directions: dict[str, tuple[str, int]] = {}
    for view, face in faces.items():
        for i, direction in enumerate(face.directions):
            mean = direction @ priors[view] / priors[view].sum()
            tied = abs(mean) <= _TIED * np.abs(direction).max()
            if direction.any():
                cost = _of_atoms(program.views[view], direction - mean if tied else direction)
                rows[key := f"{name}: {view} {i}"] = _row(cost, program.m, "==" if tied else "<=")
                directions[key] = view, i
    says = row.per_output and (atoms * (each - over)).sum(axis=0).any()  # of some letter
    score = f"{name}: score" if says else ""
    if score:
        rows[score] = _row(each - over, program.m, "==")
    others = {
        key: replace(other, expression=_scored(program, other.expression, faces))
        for key, other in program.constraints.items()
        if key != name
    }
    parts = {key: _scored(program, part, faces) for key, part in program.objectives.items()}
    objective = Worst(parts) if isinstance(program.objective, Worst) else parts[""]
    inner = replace(program, objective=objective, constraints={**others, **rows})
    return LeastLeakage(inner, faces, directions, score)


def _laws(view: View, atoms: Exact) -> tuple[Exact, Exact]:
    """Return p and π of a view, exactly."""
    both = []
    for labels in (view.labels, view.labels if view.reference is None else view.reference):
        masses = np.full(view.size + 1, Fraction(0))  # the last one of what is not seen
        np.add.at(masses, labels, atoms)
        both.append(masses[:-1])
    prior, masses = both
    return prior, masses / masses.sum()


def _of_atoms(view: View, values: Exact) -> Exact:
    """Return what each atom is seen as, 0 if it is not seen, in numbers by label."""
    numbers: Exact = np.array([*values, Fraction(0)])[view.labels]
    return numbers


def _scored(program: ChannelProgram, term: Expression, faces: Mapping[str, Face]) -> Expression:
    """Return a term with the scores of faces in place of their measures."""
    scored = replace(term, weights={k: w for k, w in term.weights.items() if k not in faces})
    for view in faces.keys() & term.weights.keys():
        each = _of_atoms(program.views[view], faces[view].score)
        if each.any():
            weights = np.broadcast_to(fractions(array(term.weights[view])), program.m)
            cost = each[:, :, None] * weights
            scored = scored + Expression(cost=cost, per_output=term.per_output)
    return scored


def _row(cost: Exact, m: int, sense: Sense) -> Constraint:
    """Return a row for each output of a cost of atoms; equalities add up to 0: all but one."""
    costs = np.repeat(cost[:, :, None], m, axis=2)
    if sense == "==":
        costs[:, :, -1] = Fraction(0)
    term = Expression("least leakage", cost=costs, per_output=True)
    return Constraint(term, sense, (Fraction(0),) * m)
