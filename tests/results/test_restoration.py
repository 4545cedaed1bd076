"""What an input that the source never had receives: a row that its rules allow, or none."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

import cvxprivacy as cpv
from cvxprivacy.criteria.decisions import within
from cvxprivacy.errors import UnknownValueError, UnseenValueWarning
from cvxprivacy.programs.parameter import Scalar
from cvxprivacy.programs.side_conditions import Auxiliary
from cvxprivacy.results import channel as channel_results
from tests.engines import KINDS, made
from tests.lengths import seeds

LETTERS = list("abcde")


COUNTS = np.array([[30, 10, 0, 5, 20], [5, 20, 0, 30, 10]])  # nobody has c


SOURCE = cpv.DiscreteSource.from_counts(COUNTS, x=LETTERS)


MEASURE = cpv.hamming(LETTERS)


def released(*criteria, budget=0.4, **options):
    options = {"budget": budget, **options}
    return cpv.PrivacyDistortion(SOURCE, MEASURE, criteria=criteria, **options).solve().channel


def row(channel, letter="c"):
    return channel.matrix[channel.inputs.index(letter)]


def moves(**allowed):
    """Forbid every move of these letters but to those named."""
    return cpv.ForbiddenMoves(lambda x, y: x in allowed and y not in allowed[x])


def test_a_letter_that_may_not_stay_moves_to_what_it_may():
    channel = released(moves(c="bd"))
    marginal = channel.released_marginal
    assert row(channel)[[0, 2, 4]].tolist() == [0, 0, 0]
    assert row(channel).sum() == pytest.approx(1.0)
    assert row(channel)[1] >= marginal[1]  # no less than others release of it
    assert channel.arbitrary.tolist() == [x == "c" for x in channel.inputs]
    with pytest.warns(UnseenValueWarning, match="50 records have values without"):
        assert set(channel.apply(["c"] * 50, seed=1)) <= {"b", "d"}
    assert row(released(moves(c="bcd"))).tolist() == [0, 0, 1, 0, 0]  # where it may stay, it does
    for encoder in ("x", "wx"):
        channel = released(moves(c="bd"), encoder=encoder)
        rows = [i for i, x in enumerate(channel.inputs) if "c" in x]
        assert len(rows) == (1 if encoder == "x" else 2)
        assert not channel.matrix[rows][:, [0, 2, 4]].any()


def test_floors_hold_beside_forbidden_moves():
    channel = released(cpv.KeepProbability(0.25), moves(c="ac"), cpv.MaximalLeakage(1.9))
    assert row(channel)[2] >= 0.25
    assert row(channel)[[1, 3, 4]].tolist() == [0, 0, 0]
    channel = released(cpv.KeepProbability(0.25), moves(c="ab"))  # it must stay and may not
    assert "c" not in channel.inputs


def test_a_letter_without_an_allowed_row_is_refused():
    """Bounded ratios need c to release all five letters, as everybody does; its moves are two."""
    problem = cpv.MinimumDistortion(SOURCE, MEASURE, [cpv.LocalPrivacy(1.0), moves(c="bd")])
    channel = problem.solve().channel
    assert (channel.matrix > 0)[:, [0, 4]].all()
    assert channel.inputs == ["a", "b", "d", "e"]
    assert not channel.arbitrary.any()
    assert channel.p_input.tolist() == [x for x in SOURCE.p_x if x]
    with pytest.raises(UnknownValueError, match="'c' is no input.*rebuild it") as caught:
        channel.apply(["a", "c"], seed=1)
    assert (caught.value.where, caught.value.value) == (1, "c")


def test_a_letter_that_must_stay_and_is_never_released_has_no_row():
    kept = [0, 1, 3, 4]
    measure = cpv.Distortion(
        MEASURE.matrix[:, kept], inputs=LETTERS, outputs=[LETTERS[i] for i in kept]
    )
    for floor, inputs in ((0.25, list("abde")), (0.0, LETTERS)):
        rules = [cpv.KeepProbability(floor)]
        solution = cpv.PrivacyDistortion(SOURCE, measure, budget=0.4, criteria=rules).solve()
        assert solution.channel.inputs == inputs


def exists(kept, lower, upper, ratio, total):
    """Ask a linear program for a row: no shared code, and no shared idea."""
    size, most = kept.shape[1], kept.max(axis=0)
    lower = np.maximum(lower, most / ratio) if ratio else lower
    upper = np.minimum(upper, kept.min(axis=0) * ratio) if ratio else upper
    if (lower > upper).any():
        return False
    eye, zero = np.eye(size), np.zeros((size, size))
    less = np.vstack([np.hstack([eye, -eye]), np.hstack([zero, -eye])])
    limits = [*most, *np.zeros(size)]
    if total:  # Σ max(K, row), e ≥ row − K
        less = np.vstack([less, [0.0] * size + [1.0] * size])
        limits.append(total - most.sum() + 1e-9)
    values = [[1.0] * size + [0.0] * size]
    bounds = [*zip(lower, upper, strict=True), *[(0, None)] * size]
    return linprog(np.zeros(2 * size), less, limits, values, [1.0], bounds).success


@pytest.mark.parametrize("seed", seeds(25, 10))
def test_a_row_is_there_whenever_there_is_one(seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((5, 5)) < 0.55
    mask[[0, 1, 3, 4]] = False
    mask[2, rng.integers(5)] = False
    floor = float(rng.choice([0.0, 0.1, 0.3])) if not mask[2, 2] else 0.0
    criteria, ratio, total = [cpv.ForbiddenMoves(mask), cpv.KeepProbability(floor)], 0.0, 0.0
    if seed % 3 == 0:
        ratio = math.exp(epsilon := rng.uniform(0.5, 3))
        criteria.append(cpv.LocalPrivacy(epsilon))
    elif seed % 3 == 1:
        total = 2 ** (b := rng.uniform(0.8, 1.6))
        criteria.append(cpv.MaximalLeakage(b))
    channel = released(*criteria, budget=0.85)
    recorded = [i for i, x in enumerate(channel.inputs) if x != "c"]
    kept, lower = channel.matrix[recorded], floor * (np.arange(5) == 2)
    upper = np.where(mask[2], 0.0, 1.0)
    assert ("c" in channel.inputs) == exists(kept, lower, upper, ratio, total)
    if "c" in channel.inputs:
        outcome = row(channel)
        assert (lower - 1e-12 <= outcome).all()
        assert (outcome <= upper).all()
        assert not ratio or (channel.matrix.max(0) <= ratio * channel.matrix.min(0) + 1e-12).all()
        assert not total or channel.matrix.max(axis=0).sum() <= total + 1e-9


def test_both_ends_of_that_comparison_occur():
    kept = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    free = np.zeros(3), np.ones(3)
    assert exists(kept, *free, 0.0, 1.4)
    assert not exists(kept, np.array([0.0, 0.0, 0.2]), np.ones(3), 0.0, 1.4)  # max sums to 1.5
    assert not exists(kept, np.zeros(3), np.array([0.0, 0.0, 1.0]), 3.0, 0.0)


def test_a_strategy_is_forbidden_if_it_is_at_any_z():
    law = np.zeros((2, 3, 2))
    law[:, [0, 2]] = [[[0.15, 0.1], [0.05, 0.2]], [[0.1, 0.15], [0.2, 0.05]]]  # nobody has x = 1
    source = cpv.DiscreteSource(law)
    for rules, moves_of in (
        ([], {0, 1, 2}), ([(1, 2)], {0, 1}), ([(1, 0), (1, 1)], {2}), ([(1, 1), (1, 2)], {0}),
    ):  # fmt: skip
        forbidden = [cpv.ForbiddenMoves(lambda x, y, rules=rules: (x, y) in rules)]
        channel = cpv.RateDistortionEquivocation(
            source, cpv.hamming(3), 0.3, side_information="decoder", criteria=forbidden
        ).solve().channel  # fmt: skip
        used = np.flatnonzero(channel.matrix[channel.inputs.index(1)])
        assert {x for u in used for x in channel.decoder.table[u]} <= moves_of
    stays = [cpv.KeepProbability(0.4)]
    channel = cpv.RateDistortionEquivocation(
        source, cpv.hamming(3), 0.3, side_information="decoder", criteria=stays
    ).solve().channel  # fmt: skip
    steady = [set(rule) == {1} for rule in channel.decoder.table]
    assert channel.matrix[channel.inputs.index(1)][steady].sum() >= 0.4 - 1e-12


TABLE = {"ill": ("text", ["no", "yes", "no", "yes"] * 3), "sex": ("text", list("mfmffmfmmffm"))}


UNSEEN = {"ill": ("text", ["no"] * 5), "sex": ("text", list("xmfxx"))}


@pytest.fixture(scope="module")
def channel():
    """A channel of a table whose letter x has no weight."""
    frame = made("pandas", TABLE).assign(weight=1.0)
    frame.loc[len(frame)] = ["no", "x", 0.0]
    source = cpv.DiscreteSource.from_table(frame, sensitive="ill", key="sex", weights="weight")
    assert source.p_x.tolist().count(0.0) == 1
    return cpv.PrivacyDistortion(source, cpv.hamming(source.x), budget=0.1).solve().channel


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_warns_of_values_the_source_never_had(kind, channel):
    with pytest.warns(UnseenValueWarning, match="^3 records have values without") as caught:
        done = channel.apply(made(kind, UNSEEN), seed=1)
    (warning,) = (one for one in caught if one.category is UnseenValueWarning)
    assert warning.message.counts == {"x": 3}
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenValueWarning)
        for others in (done, channel.apply(made(kind, TABLE), seed=1)):  # once, and only then
            if hasattr(others, "collect"):
                others.collect()
            elif hasattr(others, "read_all"):
                others.read_all()
            elif hasattr(others, "compute"):
                others.compute()


def test_a_list_and_an_implicit_channel_warn_too(channel):
    with pytest.warns(UnseenValueWarning, match="^1 record has a value"):
        channel.apply(["x", "m"], seed=1)
    hamming = cpv.HammingWaterFilling([0.5, 0.0, 0.5], 0.1).solve().release
    with pytest.warns(UnseenValueWarning, match="^2 records have values without"):
        hamming.apply([1, 0, 1], seed=1)


def test_floors_of_thirds_that_leave_no_room_leave_a_row():
    floor = np.full(5, 1 / 3) * [1, 0, 1, 0, 1]
    for lower in (floor, np.full(5, 0.2)):
        row = channel_results._nearest(np.full(5, 0.2), lower, lower.copy(), np.ones(5))
        assert row.sum() == 1
        assert np.abs(row - lower).max() <= 2.0**-51


def test_a_row_that_bounds_hold_at_an_end_keeps_the_ratio_exactly():
    """2832724801703289 draws over e^1.067… are 973697198722752 and a part, which floats lose."""
    epsilon, most, others = 1.0678939838334494, 2832724801703289, (2**52 - 2832724801703289) // 2
    ratio = Auxiliary.of("ratio", Scalar(epsilon).exp())
    first = np.array([most, others, 2**52 - most - others]) / 2**52
    upper = np.array([973697198722752 / 2**52, 1.0, 1.0])
    program = SimpleNamespace(mass=np.ones(1), auxiliaries={"": ratio}, lower=None, upper=None)
    alphabet = SimpleNamespace(
        n=1, m=3, strategies=None, x_of=np.array([0]), source=SimpleNamespace(x=[0, 1])
    )
    (row,) = channel_results.restored_rows(
        program, alphabet, first[None], [1], lambda *_: (0 * upper, upper)
    )
    assert row[0] <= upper[0] + 2.0**-52
    for a, b in itertools.permutations((first, row)):
        ratios = [Fraction(p) / Fraction(q) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
        assert all(within(ratio, Fraction(epsilon)) for ratio in ratios)


def test_a_row_that_no_draws_keep_within_its_bounds_leaves_them_by_less_than_one():
    third = np.full(3, 1 / 3)
    row = channel_results._drawable(third, third, third)
    assert row.sum() == 1
    assert 0 < abs(row - third).max() < 2.0**-52
