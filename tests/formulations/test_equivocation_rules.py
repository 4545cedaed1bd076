"""Caps, criteria, rules and prices of regions, for every letter and every z."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

import cvxprivacy as cpv
from tests import referee
from tests.formulations.regions import (
    ASKED,
    CASES,
    ENCODERS,
    Played,
    agree,
    between,
    costs,
    entropy,
    information,
    people,
    random_law,
    rde,
    solved,
)
from tests.lengths import rest_at_length, some_at_length
from tests.refusals import refused

# every case and every encoder once
PAIRS = [("decoder", "wx"), ("both", "x"), (None, "x")]
PAIRS += [("decoder", "x"), ("both", "wx"), (None, "wx")]


def nearest_feasible(error: cpv.InfeasibleError, name: str) -> float:
    match = re.search(
        re.escape(name) + r" would have to be at (?:least|most) (?:about )?([0-9.]+)", str(error)
    )
    assert match, str(error)
    return float(match[1])


@pytest.mark.parametrize(
    ("case", "units", "most"),
    some_at_length([("decoder", "nats", 1), ("decoder", "bits", 64), ("both", "nats", 1)], 1),
)
def test_what_z_tells_cannot_be_capped(case, units, most):
    """I(W; U, Z) ≥ I(W; Z): less is proved infeasible, and the number to write is told."""
    rng = np.random.default_rng(17)
    law = random_law(rng, 3, 3, 2, 0.5)
    source, unit = cpv.DiscreteSource(law), math.log(2) if units == "bits" else 1.0
    expected, full = information(law[..., None], "w", "z") / unit, entropy(source.p_w) / unit
    for encoder in ENCODERS:

        def problem(encoder=encoder, **bounds):
            options = {"side_information": case, "encoder": encoder, "units": units}
            return rde(source, cpv.hamming(3), most_strategies=most, **options, **bounds)

        for tight in (1e-2, 1e-9):
            with pytest.raises(cpv.InfeasibleError) as caught:
                problem(max_leakage=expected * (1 - tight)).solve()
            assert caught.value.certificate.verify()
            assert caught.value.conflict == ["max_leakage"]
            needed = nearest_feasible(caught.value, "max_leakage")
            assert expected <= needed <= expected * 1.002
            problem(max_leakage=needed).solve()
            with pytest.raises(cpv.InfeasibleError) as caught:
                problem(min_equivocation=(full - expected) * (1 + tight)).solve()
            assert caught.value.certificate.verify()
            allowed = nearest_feasible(caught.value, "min_equivocation")
            assert (full - expected) * 0.998 <= allowed <= full - expected
            problem(min_equivocation=allowed).solve()
        for loose in (1e-3, 1e-6):
            solution = problem(max_leakage=expected * (1 + loose)).solve()
            assert solution.status == "certified"
            assert solution.value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.long
def test_conflicts_name_numbers_that_would_do():
    """Each suggestion, put in alone, is feasible; a little less is not."""
    rng = np.random.default_rng(18)
    cells = list(itertools.product("ab", "cd"))
    law = rng.dirichlet(np.full(32, 0.6)).reshape(4, 4, 2)
    source = cpv.DiscreteSource(law, w=cells, x=cells)
    parts = {"p": cpv.hamming(["a", "b"]), "q": cpv.hamming(["c", "d"])}
    measure = cpv.per_attribute(parts, cells)
    split = law.reshape(2, 2, 4, 2)
    tried = 0
    for case in ("decoder", "both"):
        expected = information(law[..., None], "w", "z")
        first = information(split.sum(axis=1)[..., None], "w", "z")
        stated = [
            {"budget": 0.3, "max_leakage": expected + 0.003},
            {"budget": {"p": 0.05, "q": 0.4}, "max_leakage": {"0": first + 0.003}},
            {"budget": {"p": 0.05, "p, q": 0.2}, "max_rate": 0.1},
            {"budget": 0.2, "min_equivocation": entropy(source.p_w) - expected - 0.003},
        ]
        if case == "both":  # a bisection
            stated = [stated[1], {"budget": 0.2, "criteria": [cpv.TCloseness(0.2)]}]
        for bounds in stated:
            with pytest.raises(cpv.InfeasibleError) as caught:
                rde(source, measure, side_information=case, **bounds).solve()
            assert caught.value.certificate.verify()
            for name in caught.value.extremes:
                argument, _, key = name.removesuffix("]").partition("[")
                number = nearest_feasible(caught.value, name)
                for value, feasible in ((number, True), (number * 0.997, False)):
                    if "equivocation" in name and not feasible:
                        value = number * 1.003
                    other = dict(bounds)
                    if key:
                        other[argument] = {**bounds[argument], key: value}
                    elif name == "t_closeness":
                        other["criteria"] = [cpv.TCloseness(value)]
                    else:
                        other[name] = value
                    problem = rde(source, measure, side_information=case, **other)
                    status = problem.solve(certify=False).status
                    assert (status in ("certified", "loose")) == feasible, (name, value)
                    assert feasible or status == "infeasible"
                tried += 1
    assert tried >= 9


@pytest.mark.parametrize("case", some_at_length(CASES, 1))
def test_equivocation_is_what_the_leakage_leaves(case):
    """R(D, E) by min_equivocation = E, and by max_leakage = H(W) − E."""
    rng = np.random.default_rng(19)
    source, d = cpv.DiscreteSource(random_law(rng, 3, 4, 2)), costs(rng, 4, 3)
    options = {"side_information": case}
    budget = between(lambda **o: rde(source, d, **options, **o), 0.2)
    free = solved(rde(source, d, budget, **options))
    least = solved(rde(source, d, budget, minimize="leakage", **options))
    cap = 0.5 * (float(free.leakage) + least.value)
    assert float(free.leakage) - least.value > 1e-4
    full = entropy(source.p_w)
    capped = solved(rde(source, d, budget, max_leakage=cap, **options))
    held = solved(rde(source, d, budget, min_equivocation=full - cap, **options))
    assert capped.value == pytest.approx(held.value, abs=1e-7)
    assert capped.value > free.value + 1e-7
    assert float(held.equivocation) >= full - cap - 1e-12
    assert held.prices["min_equivocation"] == pytest.approx(-capped.prices["max_leakage"], rel=1e-3)
    assert held.prices["min_equivocation"] > 0
    assert "H(W" in repr(rde(source, d, budget, min_equivocation=0.1, **options))


def known_to_z(counts: np.ndarray, case: str | None) -> list[np.ndarray]:
    """Return p(w | z) for every z that occurs; p(w) alone without side information."""
    tables = [counts[:, :, z].sum(axis=1) for z in range(counts.shape[2])] if case else []
    tables = tables or [counts.sum(axis=(1, 2))]
    return [t / t.sum() for t in tables if t.sum()]


@pytest.mark.parametrize(("case", "encoder"), rest_at_length(PAIRS, 1))
def test_criteria_hold_for_every_letter_and_z(case, encoder):
    """Recounted per (u, z); each binds, and its price is the derivative."""
    rng = np.random.default_rng([22, encoder == "x"])
    counts = rng.multinomial(500, random_law(rng, 3, 3, 2, 0.8).ravel()).reshape(3, 3, 2)
    counts[:, :, :] += 1
    source, d = cpv.DiscreteSource.from_counts(counts), 1 - np.eye(3)
    laws, p_w = known_to_z(counts, case), counts.sum(axis=(1, 2)) / counts.sum()
    learned = max((p * np.log(p / p_w)).sum() for p in laws)
    diverse = min(entropy(p) for p in laws)
    delta = max(np.abs(np.log(p / p_w)).max() for p in laws)
    fewest = counts.sum(axis=(0, 1)).min() if case else counts.sum()
    for criterion, step in (
        (cpv.TCloseness(learned + 0.05), 1e-4),
        (cpv.LDiversity(math.exp(diverse - 0.05)), -1e-3),
        (cpv.DeltaDisclosure(delta + 0.2), 1e-4),
        (cpv.RecordEntropy(0.6 * fewest), -1e-2),
    ):
        options = {"side_information": case, "encoder": encoder, "minimize": "distortion"}
        problem = rde(source, d, criteria=[criterion], **options)
        solution = problem.solve(accuracy="high")
        referee.check(solution, status=solution.status)
        assert solution.gap <= 1e-6
        played = agree(problem, solution)
        assert -1e-5 <= played.excess(criterion) <= 1e-9, criterion
        free = rde(source, d, **options).solve()
        assert solution.value > free.value + 1e-4
        price, value = solution.prices[criterion.name], float(criterion.value)
        loose, tight = (
            rde(source, d, criteria=[criterion.at(value + s)], **options).solve(accuracy="high")
            for s in (step, -step)
        )
        chords = sorted(
            [(loose.value - solution.value) / step, (solution.value - tight.value) / step]
        )
        room = 0.02 * abs(price) + 1e-5
        assert chords[0] - room <= price <= chords[1] + room
        assert price * step < 0


def test_a_criterion_holds_for_every_z_and_not_only_on_average():
    """One z where nothing may be said: the release is blind there, and free elsewhere."""
    law = np.zeros((2, 2, 2))
    law[:, :, 0] = 0.2 * np.eye(2) + 0.05
    law[:, :, 1] = 0.2 * np.eye(2) + 0.05
    source, t = cpv.DiscreteSource(law / law.sum()), cpv.TCloseness(0.02)
    both = rde(source, cpv.hamming(2), minimize="distortion", side_information="both", criteria=[t])
    none = rde(source, cpv.hamming(2), minimize="distortion", criteria=[t])
    assert solved(both).value == pytest.approx(solved(none).value, abs=1e-8)
    law[:, :, 1] = 0.25  # there x tells nothing of w, and may be told
    source = cpv.DiscreteSource(law / law.sum())
    both = rde(source, cpv.hamming(2), minimize="distortion", side_information="both", criteria=[t])
    free = solved(both)
    released = Played(both, free).released.sum(axis=0)  # p(x, z, x̂)
    assert released[0, 1, 1] + released[1, 1, 0] == pytest.approx(0.0, abs=1e-8)
    assert released[0, 0, 1] + released[1, 0, 0] > 0.1


def test_record_level_anonymity_counts_the_records_of_each_z():
    counts = np.array([[[30, 2], [10, 1]], [[5, 1], [25, 4]]])
    source = cpv.DiscreteSource.from_counts(counts)
    for case in ("decoder", "both"):
        with pytest.raises(cpv.InputError, match=r"9 exceeds the 8 records with Z = 1"):
            rde(source, cpv.hamming(2), side_information=case, criteria=[cpv.RecordEntropy(9)])
        k = cpv.RecordEntropy(8)
        problem = rde(source, cpv.hamming(2), 0.5, side_information=case, criteria=[k])
        assert problem.solve().status == "certified"
    assert rde(source, cpv.hamming(2), 0.5, criteria=[cpv.RecordEntropy(40)]).solve().value >= 0


@pytest.mark.long
@pytest.mark.parametrize(("case", "encoder"), rest_at_length(PAIRS, 1))
def test_rules_hold_for_what_the_user_reads(case, encoder):
    """KeepProbability, ForbiddenMoves, PreserveMarginal, PreserveMean, Linear of (x, z, x̂)."""
    rng = np.random.default_rng(23)
    counts = rng.multinomial(300, random_law(rng, 2, 3, 2).ravel()).reshape(2, 3, 2)
    counts[0, 1, 0] = counts[1, 1, 0] = 0  # x = 1 never meets z = 0
    source, values = cpv.DiscreteSource.from_counts(counts, x=["a", "b", "c"]), [1.0, 2.5, -3.0]
    mask = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool)
    weights = rng.normal(size=(2, 3, 3))
    measure = cpv.hamming(["a", "b", "c"])
    options = {"side_information": case, "encoder": encoder}

    def play(*criteria, budget=None):
        problem = rde(source, measure, budget, criteria=criteria, **options)
        solution = solved(problem)
        return Played(problem, solution), solution

    played, solution = play(cpv.KeepProbability(0.7))
    law = played.released.sum(axis=0)  # p(x, z, x̂)
    for x, z in np.ndindex(3, 2):
        if law[x, z].sum():
            assert law[x, z, x] >= 0.7 * law[x, z].sum() - 1e-12
    more = rde(source, measure, criteria=[cpv.KeepProbability(0.701)], **options).solve()
    less = rde(source, measure, criteria=[cpv.KeepProbability(0.699)], **options).solve()
    slope = (more.value - less.value) / 0.002
    assert solution.prices["keep_probability"] == pytest.approx(slope, rel=5e-3)
    assert slope > 0

    played, _ = play(cpv.ForbiddenMoves(mask), budget=0.4)
    assert (played.released.sum(axis=(0, 2))[mask] == 0.0).all()

    played, _ = play(cpv.PreserveMarginal(), budget=0.4)
    assert played.released.sum(axis=(0, 1, 2)) == pytest.approx(source.p_x, abs=1e-13)

    played, _ = play(cpv.PreserveMean(values), budget=0.4)
    mean = played.released.sum(axis=(0, 1, 2)) @ values
    assert mean == pytest.approx(source.p_x @ values, abs=1e-13)

    matrix = rng.random((3, 3))
    free, _ = play(budget=0.15)
    for a, sense in ((weights, "<="), (weights, "=="), (matrix, "==")):
        bound = free.expected(a) - 0.02
        played, solution = play(cpv.Linear(a, bound, sense=sense), budget=0.15)
        assert played.expected(a) == pytest.approx(bound, abs=1e-7)
        assert played.expected(a) <= bound + 1e-13
        ahead, behind = (
            rde(source, measure, 0.15, criteria=[cpv.Linear(a, bound + s, sense=sense)], **options)
            .solve(accuracy="high")
            .value
            for s in (1e-4, -1e-4)
        )
        slope = (ahead - behind) / 2e-4
        assert solution.prices["linear"] == pytest.approx(slope, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("case", some_at_length(CASES, 1))
def test_privacy_of_the_whole_channel(case):
    """LocalPrivacy and MaximalLeakage bound what the encoder sends, u or x̂, as a function of s."""
    rng = np.random.default_rng(24)
    source, d = cpv.DiscreteSource(random_law(rng, 2, 3, 2)), costs(rng, 3, 3)
    for criterion, step in ((cpv.LocalPrivacy(0.8), 1e-3), (cpv.MaximalLeakage(0.3), 1e-3)):

        def problem(c):
            options = {"minimize": "distortion", "side_information": case}
            return rde(source, d, criteria=[c], **options)

        solution = solved(problem(criterion))
        matrix = solution.channel.matrix
        if criterion.name == "local_privacy":
            assert (matrix.max(axis=0) <= math.exp(0.8) * matrix.min(axis=0) + 1e-12).all()
        else:
            assert math.log(matrix.max(axis=0).sum()) <= 0.3 + 1e-12
        ends = [problem(criterion.at(float(criterion.value) + s)).solve() for s in (step, -step)]
        slope = (ends[0].value - ends[1].value) / (2 * step)
        assert solution.prices[criterion.name] == pytest.approx(slope, rel=2e-2, abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("case", rest_at_length(["both", None, "decoder"], 1))
def test_hidden_attributes_and_sets_of_them_have_bounds_of_their_own(case):
    """I(W_j; what the user holds) of single columns and of pairs, from the law written out."""
    source = cpv.DiscreteSource.from_table(people(), **ASKED)
    measure = cpv.per_attribute({"age": "absolute_error", "sex": "hamming"}, source)
    letters = {name: [w[i] for w in source.w] for i, name in enumerate(ASKED["sensitive"])}

    def leaks(played: Played, *names: str) -> float:
        groups = list(zip(*(letters[name] for name in names), strict=True))
        kinds = sorted(set(groups))
        merged = np.zeros((len(kinds), *played.joint.shape[1:]))
        for i, group in enumerate(groups):
            merged[kinds.index(group)] += played.joint[i]
        return information(merged, "w", "uz" if case else "u")

    options = {"side_information": case, "most_strategies": 300}
    free = rde(source, measure, {"age": 3.0, ("age", "sex"): 3.3}, **options)
    before = Played(free, solved(free))
    floor = rde(
        source, measure, minimize="leakage", max_leakage={"ill": 9.0, "income": 9.0}, **options
    )
    expected = {
        name: float(solved(floor).terms[f"leakage of {name}"]) for name in ("ill", "income")
    }
    caps = {name: 0.7 * leaks(before, name) + 0.3 * expected[name] for name in ("ill", "income")}
    caps |= {("ill", "income"): leaks(before, "ill", "income") - 1e-3}
    problem = rde(source, measure, {"age": 3.0, "age, sex": 3.3}, max_leakage=caps, **options)
    solution = solved(problem)
    played = Played(problem, solution)
    for names, cap in caps.items():
        names = names if isinstance(names, tuple) else tuple(names.split(", "))
        term = float(solution.terms[f"leakage of {', '.join(names)}"])
        assert term == pytest.approx(leaks(played, *names), abs=1e-9)
        assert term <= cap + 1e-12
    assert leaks(played, "ill", "income") == pytest.approx(played.terms["leakage"], abs=1e-9)
    for name in ("age", "sex"):
        part = np.asarray(measure.parts[name])
        assert float(solution.terms[f"distortion of {name}"]) == pytest.approx(
            played.expected(part), abs=1e-9
        )
    assert played.expected(np.asarray(measure.parts["age"])) <= 3.0 + 1e-12
    both = played.expected(sum(np.asarray(measure.parts[name]) for name in ("age", "sex")))
    assert both <= 3.3 + 1e-12
    assert {"budget[age]", "budget[age, sex]"} <= set(solution.prices)
    assert min(solution.prices[f"max_leakage[{key}]"] for key in ("ill", "income")) < -1e-4
    for key in ("ill", "income"):
        ahead, behind = (
            rde(
                source, measure, {"age": 3.0, "age, sex": 3.3},
                max_leakage={**caps, key: caps[key] + s}, **options,
            ).solve(accuracy="high").value
            for s in (1e-5, -1e-5)
        )  # fmt: skip
        price, room = solution.prices[f"max_leakage[{key}]"], 2e-3
        assert (solution.value - behind) / 1e-5 - room <= price
        assert price <= (ahead - solution.value) / 1e-5 + room
    with pytest.raises(cpv.InputError, match=r"no hidden attribute 'age'; use ill, income"):
        rde(source, measure, max_leakage={"age": 1.0}, **options).solve()
    with pytest.raises(cpv.InputError, match=r"distortion has no part 'ill'; use age, sex"):
        rde(source, measure, {"ill": 1.0}, **options)


def test_weights_of_records_and_several_columns_of_side_information():
    """The same law with weights as with copies, and Z of two columns as of their tuples."""
    frame = people(300)
    frame["n"] = np.where(frame["id"] % 3 == 0, 2, 1)
    copies = frame.loc[frame.index.repeat(frame["n"])]
    asked = {"sensitive": "ill", "key": "age", "side": ["town", "income"]}
    weighed = cpv.DiscreteSource.from_table(frame, weights="n", **asked)
    counted = cpv.DiscreteSource.from_table(copies, **asked)
    assert counted.z == weighed.z
    assert all(isinstance(z, tuple) for z in counted.z)
    one, other = (
        solved(rde(source, cpv.hamming(source.x), 0.3, side_information="both"))
        for source in (weighed, counted)
    )
    assert one.value == pytest.approx(other.value, abs=2e-9)
    k = [cpv.RecordEntropy(2)]
    with pytest.raises(cpv.InputError, match="weighted records cannot be counted"):
        rde(weighed, cpv.hamming(weighed.x), 0.3, side_information="both", criteria=k)


# 2 soundness of input: of two bounds on the same set the looser may win, silently
def test_a_bound_written_twice_is_refused():
    source = cpv.DiscreteSource(
        random_law(np.random.default_rng(0), 4, 3, 2), w=list(itertools.product("ab", "cd"))
    )
    bounds = {("0", "1"): 0.1, "0, 1": 0.5}
    call = lambda: rde(source, cpv.hamming(3), 0.1, max_leakage=bounds)  # noqa: E731
    refused(call, "max_leakage", "twice", where="0, 1")


# 3 the price of a floor of 1 has the wrong sign where the user decodes
@pytest.mark.parametrize("case", some_at_length(CASES, 1))
def test_the_price_of_a_floor_of_one_is_plus_infinity(case):
    source = cpv.DiscreteSource(random_law(np.random.default_rng(0), 3, 4, 2))
    keep = [cpv.KeepProbability(1.0)]
    solution = rde(source, cpv.hamming(4), side_information=case, criteria=keep).solve()
    assert solution.prices["keep_probability"] == math.inf
