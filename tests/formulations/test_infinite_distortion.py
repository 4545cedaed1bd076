"""An infinite distortion is a forbidden move, as ForbiddenMoves states it, and costs nothing."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cvxprivacy as cpv
from cvxprivacy import mechanisms
from cvxprivacy_verifier.__main__ import main
from tests import referee
from tests.lengths import some_at_length
from tests.refusals import refused

INF = math.inf
D = [[0, 1, INF], [Fraction(1, 3), 0, 1], [INF, 0.5, 0]]
MASK = np.array(D, float) == INF
FINITE = [[0, 1, 9], [Fraction(1, 3), 0, 1], [7, 0.5, 0]]  # whatever stands where none goes
SOURCE = cpv.DiscreteSource([[0.3, 0.15, 0.05], [0.05, 0.15, 0.3]], x=[1, 2, 3])
OTHER = cpv.DiscreteSource([[0.1, 0.2, 0.2], [0.2, 0.2, 0.1]], x=[1, 2, 3])
THREE = cpv.DiscreteSource(np.random.default_rng(0).dirichlet(np.ones(18)).reshape(2, 3, 3))


def both(formulation, *arguments, source=SOURCE, criteria=(), **options):
    """Return a problem with infinite distortions, and one with moves that are forbidden."""
    rule = cpv.ForbiddenMoves(MASK)
    one = formulation(source, D, *arguments, criteria=criteria, **options)
    other = formulation(source, FINITE, *arguments, criteria=[*criteria, rule], **options)
    return [one, other]


@pytest.mark.parametrize(
    "pair",
    some_at_length(
        [
            both(cpv.PrivacyDistortion, 0.1),
            both(cpv.PrivacyDistortion, price=0.3),
            both(cpv.PrivacyDistortion, 0.1, encoder="wx"),
            both(cpv.PrivacyDistortion, 0.1, laws=[OTHER]),
            both(cpv.PrivacyDistortion, 0.1, leakage=cpv.leakage.TotalVariation()),
            both(cpv.MinimumDistortion, criteria=[cpv.LeakageCap(0.05)]),
            both(cpv.RateDistortionEquivocation, 0.2, source=THREE, side_information="both"),
            both(cpv.RateDistortionEquivocation, 0.2, source=THREE, side_information="decoder"),
        ],
        4,
    ),
    ids=range(8),
)
def test_it_is_the_program_with_these_moves_forbidden(pair):
    problem, stated = pair
    assert problem.criteria == stated.criteria
    assert problem.latex == stated.latex
    assert problem.dual_latex == stated.dual_latex
    solution, expected = problem.solve(), stated.solve()
    referee.check(solution, problem=problem)
    assert solution.certificate.verify()
    assert solution.lower <= expected.upper
    assert expected.lower <= solution.upper
    assert problem.problem.solve() == pytest.approx(solution.value, abs=1e-5)
    assert solution.certificate.proves(problem)
    assert not solution.certificate.proves(stated)  # of other numbers, which no release pays
    rows = problem.alphabet.possible(MASK)
    outputs = solution.channel.matrix
    if solution.channel.decoder is None:
        assert not outputs[rows].any()
    assert np.isfinite(solution.distortion)


def test_what_is_forbidden_adds_nothing_to_the_distortion():
    solution = cpv.PrivacyDistortion(SOURCE, D, 0.1).solve()
    q = SOURCE.p_x[:, None] * solution.channel.matrix
    paid = float((q[~MASK] * np.array(D, float)[~MASK]).sum())
    assert solution.distortion.lower - 1e-15 <= paid <= solution.distortion.upper + 1e-15


def test_the_moves_stay_through_changes_of_the_problem():
    problem = cpv.PrivacyDistortion(SOURCE, D, 0.1, criteria=[cpv.TCloseness(0.2)])
    assert [*map(repr, problem.criteria)] == ["TCloseness(0.2)", "ForbiddenMoves(2 of 9 moves)"]
    for changed in (
        problem.at(budget=0.2),
        problem.at(tcloseness=0.3) if "tcloseness" in problem.program.constraints else problem,
        problem.with_constraint("mine", cpv.LeakageCap(0.3)),
        pickle.loads(pickle.dumps(problem)),
    ):
        assert changed.criteria[1:] == (cpv.ForbiddenMoves(MASK),)


def test_the_ends_of_the_curve():
    """No letter stays at no cost: 1 has to move.  One column alone is open to all."""
    d = [[INF, 1, INF], [1, 0, 2], [INF, 3, 0]]
    problem = cpv.PrivacyDistortion(SOURCE, d, 1.0)
    p = SOURCE.p_x
    assert problem.least_distortion == pytest.approx(p[0])
    assert problem.greatest_distortion == pytest.approx(p[0] + 3 * p[2])
    assert problem.at(budget=problem.greatest_distortion).solve().value < 1e-6
    shut = cpv.PrivacyDistortion(SOURCE, [[0, INF, 1], [1, 0, INF], [INF, 1, 0]], 1.0)
    assert shut.greatest_distortion == INF
    identical = cpv.DiscreteSource.identical([0.5, 0.3, 0.2])
    assert cpv.PrivacyDistortion(identical, shut.alphabet.d.matrix, 9).solve().lower > 0.1
    both_laws = cpv.PrivacyDistortion(SOURCE, d, 1.0, laws=[OTHER])
    assert both_laws.greatest_distortion == pytest.approx(1.4)


def test_letters_in_another_order_and_multiples():
    d = cpv.Distortion(D, inputs=[1, 2, 3], outputs=[1, 2, 3])
    fitted = (2 * d).fitted(2, [3, 1, 2])
    assert fitted.matrix.tolist() == [[INF, 1, 0], [0, 2, INF], [2 / 3, 0, 2]]
    assert fitted.exact[2, 0] == Fraction(2, 3)
    assert d == cpv.Distortion(pd.DataFrame(D, index=[1, 2, 3], columns=[1, 2, 3]))
    assert (0 * d).matrix[0].tolist() == [0, 0, INF]
    same = [[0, 1, Decimal("Infinity")], *D[1:]]
    assert (cpv.Distortion(same).matrix == d.matrix).all()
    assert cpv.Distortion(FINITE).forbidden is None


def test_an_attribute_that_may_not_change():
    sex = cpv.Distortion([[0, INF], [INF, 0]], outputs=["f", "m"])
    d = cpv.per_attribute({"age": cpv.absolute_error([30, 40]), "sex": sex}, weights={"age": 2})
    assert d.matrix[0].tolist() == [0, INF, 20, INF]
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1, 0.0], [0.0, 0.2, 0.1, 0.2]], x=d.outputs)
    solution = cpv.PrivacyDistortion(source, d, budget=5).solve()
    rows = solution.channel.to_frame()
    assert not rows.loc[[(30, "f")], [(30, "m")]].to_numpy().any()
    assert solution.terms["distortion of sex"] == 0
    some = cpv.Distortion([[INF, 0], [0, INF]], outputs=["f", "m"])
    refused(lambda: cpv.per_attribute({"sex": some}, [("f",)]), "distortions", where=0)


def test_what_is_refused_names_what_helps():
    for wrong, where in (([[INF, INF], [0, 1]], 0), ([[0, INF], [INF, INF]], 1)):
        error = refused(lambda d=wrong: cpv.Distortion(d), "distortion", where=where)
        assert "finite" in error.remedy
    cube = np.zeros((2, 2, 2))
    cube[1, 0, 1] = INF
    refused(lambda: cpv.Distortion(cube), "distortion", "forbidden", where=(1, 0, 1), value=INF)
    for bad in (-INF, math.nan, "inf"):
        refused(lambda v=bad: cpv.Distortion([[0, v], [INF, 0]]), "distortion", where=(0, 1))
    d = cpv.Distortion(D, inputs=[1, 2, 3], outputs=[1, 2, 3])
    refused(lambda: d.with_suppression(1.0), "cost", "ForbiddenMoves")
    rules = [cpv.LocalPrivacy(1.0)]
    refused(
        lambda: cpv.MostUsefulRelease(SOURCE, rules, distortion=D, budget=1.0),
        "distortion", "PrivacyDistortion",
    )  # fmt: skip
    with pytest.raises(cpv.InfeasibleError) as caught:
        cpv.MinimumDistortion(SOURCE, [[0, INF, 1], [1, 0, INF], [INF, 1, 0]], rules).solve()
    assert {"local_privacy", "forbidden_moves"} <= set(caught.value.conflict)


def test_the_best_use_of_outputs_makes_no_such_move():
    source = cpv.DiscreteSource.identical([0.4, 0.35, 0.25], x=[1, 2, 3])
    noisy = cpv.Channel(
        [[0.7, 0.3, 0], [0, 0.6, 0.4], [0, 0, 1]], inputs=[1, 2, 3], outputs=["u", "v", "w"]
    )
    best = mechanisms.remap(noisy, source, D)
    assert not best.matrix[MASK].any()
    mixed = cpv.Channel([[0.5, 0.5]] * 3, inputs=[1, 2, 3], outputs=["u", "v"])
    shut = [[0, INF, 1], [1, 0, INF], [INF, 1, 0]]
    refused(lambda: mechanisms.remap(mixed, source, shut), "distortion", where=0)


# ---- the marginal -------------------------------------------------------------------------


def test_a_distance_of_nothing_preserves_the_marginal():
    for zero in (0, 0.0, Fraction(0), Decimal(0)):
        assert cpv.MarginalDistance(zero) == cpv.PreserveMarginal()
        assert cpv.MarginalDistance(t=zero) == cpv.PreserveMarginal()
    near = cpv.MarginalDistance(0.1)
    assert near.at(0) == cpv.PreserveMarginal()
    assert pickle.loads(pickle.dumps(near)) == near
    source = cpv.DiscreteSource.identical([0.8, 0.2])

    def least(rule):
        return cpv.PrivacyDistortion(source, cpv.hamming(2), 0.1, criteria=[rule]).solve().value

    assert least(cpv.MarginalDistance(0)) == least(cpv.PreserveMarginal())
    assert least(cpv.MarginalDistance(1e-6)) == pytest.approx(least(near.at(0)), abs=1e-4)
    for wrong in (-0.1, math.nan, "0", None, False):
        refused(lambda t=wrong: cpv.MarginalDistance(t), "t", value=wrong)
    for rule in (near, cpv.PreserveMarginal()):  # no label of the key is released
        other = cpv.Distortion([[0, 1], [1, 0]], outputs=["a", "b"])
        refused(
            lambda d=other, rule=rule: cpv.PrivacyDistortion(source, d, 0.1, criteria=[rule]),
            "distortion",
        )


# ---- the erasure distortion of every lecture ----------------------------------------------------


BIT = cpv.DiscreteSource.identical([0.5, 0.5])
ERASURE = [[0, INF, 1], [INF, 0, 1]]


@pytest.mark.parametrize("budget", [0, 1e-12, 0.25, 1])
def test_erasures_cost_a_bit_each(budget):
    """R(D) = 1 − D (Cover and Thomas 2006, problem 10.7): D of the letters are erased."""
    problem = cpv.PrivacyDistortion(BIT, ERASURE, budget=budget)
    solution = problem.solve()
    assert solution.certificate.verify()
    assert solution.lower - 1e-15 <= 1 - budget <= solution.upper + 1e-15
    price = solution.prices["budget"]
    assert price.lower - 1e-9 <= -1 <= price.upper + 1e-9 or budget == 1
    assert (price.kind == "one-sided") == (budget == 0)
    assert solution.channel.matrix[0].tolist() == pytest.approx([1 - budget, 0, budget], abs=1e-5)


def test_erasures_in_proofs_and_along_the_curve(tmp_path, capsys):
    proof = tmp_path / "proof.json"
    cpv.PrivacyDistortion(BIT, ERASURE, budget=0.25).solve().certificate.to_json(proof)
    assert main([str(proof)]) == 0
    assert "verified" in capsys.readouterr().out
    curve = cpv.frontier(cpv.PrivacyDistortion(BIT, ERASURE, budget=0.25), tol=1e-4)
    for point in curve.points:
        assert point.lower - 1e-12 <= 1 - point.x <= point.upper + 1e-12
