"""Proofs of leakage whatever the prior: the relative entropy of a label from a law r."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import flint
import mpmath
import numpy as np
import pytest
from flint import arb, fmpq, fmpz

import cvxprivacy as cpv
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.balls import PRECISION, UnprovableError
from cvxprivacy_verifier.measures import measure_of
from cvxprivacy_verifier.work import work_of
from tests.claims import claimed
from tests.forgeries import REFUSED, falsehood, forged
from tests.instances import Chance, budget, measure, per_letter, solved, source, units
from tests.second_checker import Refused, program_of
from tests.verifier.test_second_checker import agree

Document = dict[str, Any]
KIND = {"kind": "relative entropy"}


def problem(rng: Chance) -> Any:
    value = source(rng)
    d = measure(rng, value, square=True)
    options: dict[str, Any] = {"units": units(rng)}
    if rng.random() < 0.25:
        rules = [*per_letter(rng, value), cpv.CapacityCap(float(rng.uniform(0.01, 0.3)))]
        return cpv.MinimumDistortion(value, d, rules, **options)
    if rng.random() < 0.3:
        options["criteria"] = per_letter(rng, value)
    if rng.random() < 0.25:
        options["encoder"] = "wx"
    if rng.random() < 0.3 and "criteria" not in options:
        options["price"] = float(10 ** rng.uniform(-1, 1))
    else:
        options["budget"] = budget(rng, value, d)
    return cpv.PrivacyDistortion(value, d, prior="any", **options)


def documents(seed: int, count: int) -> list[tuple[str, Document]]:
    outcome: list[tuple[str, Document]] = []
    while len(outcome) < count:
        rng = np.random.default_rng([seed, len(outcome)])
        for _ in range(20):
            try:
                certificate = solved(problem(rng))
            except cpv.InputError:  # what a source or an encoder has not
                continue
            break
        outcome.append((f"prior {len(outcome)}", json.loads(json.dumps(certificate.document()))))
    return outcome


def bit(**options: Any) -> Document:
    return copy.deepcopy(_bit(**options))


@cache
def _bit(**options: Any) -> Document:
    law = cpv.DiscreteSource([[0.3, 0.2], [0.1, 0.4]])
    options = {"budget": 0.1, "units": "nats", **options}
    value = cpv.PrivacyDistortion(law, cpv.hamming(2), prior="any", **options)
    return json.loads(json.dumps(solved(value).document()))


def test_two_checkers_agree_on_it() -> None:
    statuses = []
    for name, document in documents(1, 8):
        assert verify.disagreements(document) == [], name
        statuses.append(agree(document))
    assert statuses.count("certified") >= 4


@pytest.mark.long
def test_two_checkers_agree_on_it_at_length() -> None:
    statuses = [agree(document) for _, document in documents(2, 60)]
    assert statuses.count("certified") > 36
    assert {*statuses} <= {"certified", "infeasible", "loose"}


# ---- enclosures, in every branch ---------------------------------------------------------


def exactly(j0: Fraction, j1: Fraction, ratio: Fraction) -> Any:
    """Return J₁ f(t), t = ratio J₀/J₁, in 60 digits."""
    first = mpmath.mpf((ratio * j0).numerator) / (ratio * j0).denominator
    other = mpmath.mpf(j1.numerator) / j1.denominator
    if not first:
        return other
    return first * mpmath.log(first / other) - first + other if other else mpmath.inf


def as_ball(middle: Fraction, radius: Fraction) -> arb:
    inner = arb(fmpq(*middle.as_integer_ratio()))
    return inner + arb(0, arb(fmpq(*radius.as_integer_ratio())).upper()) if radius else inner


def some_ball(rng: Chance) -> tuple[Fraction, Fraction]:
    """Return a middle and a radius: 0, exact, small, around 0, or down to 0."""
    size = Fraction(2) ** int(rng.integers(-70, 8))
    middle, chance = Fraction(float(rng.random())) * size, int(rng.integers(6))
    radii = [Fraction(0), Fraction(0), middle / 2**40, middle, middle * 3, size]
    return Fraction(0) if chance in (0, 5) else middle, radii[chance]


def enclosed(count: int) -> dict[tuple[bool, bool, bool], int]:
    """Draw balls and numbers in them; return how often each branch gave finite ends."""
    rng, branches = np.random.default_rng(6), dict[tuple[bool, bool, bool], int]()
    flint.ctx.prec = PRECISION
    with mpmath.workdps(60):
        for _ in range(count):
            first = Fraction(int(rng.integers(1, 99)), 99)
            reference = [arb(fmpq(*p.as_integer_ratio())) for p in (first, 1 - first)]
            (a, off_a), (b, off_b) = some_ball(rng), some_ball(rng)
            joint = [as_ball(a, off_a), as_ball(b, off_b)]
            value = measure_of(KIND, reference, arb(1)).value(joint)
            if not value.is_finite():
                assert not joint[1] > 0
                continue
            branch = (joint[0].is_zero(), bool(joint[0] > 0), bool(joint[1] > 0))
            branches[branch] = branches.get(branch, 0) + 1
            ends = [
                mpmath.mpf(x.mid().str(60, radius=False)) for x in (value.lower(), value.upper())
            ]
            assert ends[0] >= 0 or not value > 0
            for _ in range(6):
                shares = rng.choice([-1, 0, 1, float(rng.uniform(-1, 1)), 2.0**-40 - 1], 2)
                inner = [Fraction(float(s)) for s in shares]
                j0, j1 = (
                    max(a + inner[0] * off_a, Fraction(0)),
                    max(b + inner[1] * off_b, Fraction(0)),
                )
                truth = exactly(j0, j1, (1 - first) / first)
                slack = mpmath.mpf(2) ** -100 * max(truth, float(a), float(b))
                assert ends[0] - slack <= truth <= ends[1] + slack
    return branches


BRANCHES = [(True, False, False), (True, False, True), (False, True, True), (False, False, True)]


def test_what_is_leaked_lies_in_its_ball() -> None:
    branches = enclosed(400)
    assert all(branches[branch] > 10 for branch in BRANCHES)


@pytest.mark.long
def test_what_is_leaked_lies_in_its_ball_at_length() -> None:
    assert all(enclosed(8_000)[branch] > 200 for branch in BRANCHES)


def test_what_is_no_number_proves_nothing() -> None:
    flint.ctx.prec = PRECISION
    value = measure_of(KIND, [arb("0.5"), arb("0.5")], arb(1)).value
    for joint in (
        [arb("nan"), arb(1)],
        [arb(1), arb("nan")],
        [arb(1), arb(0)],
        [arb(0, 1), arb(0, 1)],
        [arb.pos_inf(), arb(1)],
        [arb(1), arb.pos_inf()],
    ):
        assert not value(joint) <= 10**9
        assert not value(joint) > 0
    assert value([arb(0), arb(0)]).is_zero()


def test_of_whole_numbers_it_is_rational_where_nothing_is_told() -> None:
    flint.ctx.prec = PRECISION
    one = measure_of(KIND, [arb(fmpq(1, 4)), arb(fmpq(3, 4))], arb(1))
    assert one.exactly([fmpz(2), fmpz(6)], [1, 3]) == 0
    assert one.exactly([fmpz(0), fmpz(0)], [1, 3]) == 0
    for joint in ([2, 5], [0, 5], [5, 0]):
        assert one.exactly([fmpz(j) for j in joint], [1, 3]) is None


SCORES = [
    math.nan, math.inf, -math.inf, 1e308, -1e308, 1e5, -1e5, 5e-324, -0.0, 0.0, 1.0, -3.0, 0.2,
]  # fmt: skip


def test_every_score_is_a_minorant() -> None:
    flint.ctx.prec = PRECISION
    rng = np.random.default_rng(3)
    for _ in range(60):
        first = Fraction(int(rng.integers(1, 99)), 99)
        reference = [arb(fmpq(*p.as_integer_ratio())) for p in (first, 1 - first)]
        one = measure_of(KIND, reference, arb(1) / arb(2).log())
        for score in [*SCORES, float(rng.normal()), 30 * float(rng.normal())]:
            slopes = one.inside([score])
            for joint in ([0, 1], [1, 0], [1, 1], [3, 5], [1, 2**60], [2**60, 1], [0, 0]):
                masses = [arb(j) for j in joint]
                below = sum((s * j for s, j in zip(slopes, masses, strict=True)), arb(0))
                assert not below > one.value(masses)


# ---- forged documents --------------------------------------------------------------------

FORMS: dict[str, Any] = {
    "none": lambda x: {},
    "no number": lambda x: {k: [[math.nan] * len(r) for r in v] for k, v in x.items()},
    "infinite": lambda x: {k: [[math.inf] * len(r) for r in v] for k, v in x.items()},
    "huge": lambda x: {k: [[1e300 * s for s in r] for r in v] for k, v in x.items()},
    "of another sign": lambda x: {k: [[-s for s in r] for r in v] for k, v in x.items()},
    "steeper": lambda x: {k: [[1.5 * s for s in r] for r in v] for k, v in x.items()},
    "shorter": lambda x: {k: [r[:-1] for r in v] for k, v in x.items()},
    "longer": lambda x: {k: [[*r, 9.0] for r in v] for k, v in x.items()},
    "of two rows": lambda x: {k: [*v, *v] for k, v in x.items()},
    "one number": lambda x: dict.fromkeys(x, 1.0),
    "exchanged": lambda x: dict(zip(x, [*x.values()][::-1], strict=True)),
    "texts": lambda x: {k: [["1/3"] * len(r) for r in v] for k, v in x.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_scores_may_be_anything(form: str) -> None:
    for honest in (bit(), bit(budget=0.0), bit(units="bits")):
        dual = {**honest["dual"], "scores": FORMS[form](honest["dual"]["scores"])}
        proved = verify.recompute({**honest, "dual": dual})
        assert proved["lower"] <= honest["claim"]["upper"]
        assert proved["upper"] == honest["claim"]["upper"]


SHARES: list[Any] = [
    {}, {"w = 0": 5.0}, {"w = 0": -1.0, "w = 1": 2.0}, {"w = 1": math.nan}, {"w = 0": 1.0},
    {"w = 1": 1.0}, {"w = 0": 1e300, "w = 1": 1e300}, {"w = 1": "1/2"}, {"w = 0": [0.5]},
]  # fmt: skip


@pytest.mark.parametrize("shares", SHARES)
def test_any_prior_proves_a_lower_end(shares: Any) -> None:
    honest = bit()
    proved = verify.recompute({**honest, "dual": {**honest["dual"], "shares": shares}})
    assert proved["lower"] <= honest["claim"]["upper"]


def put(*path: Any, value: Any) -> Callable[[Document], None]:
    def change(program: Document) -> None:
        node: Any = program
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value

    return change


VIEW = ("views", "w = 0")
WRONG: dict[str, tuple[Callable[[Document], None], str]] = {
    "three labels": (put(*VIEW, "labels", 0, 1, value=2), "other than two labels"),
    "no label 1": (put(*VIEW, "labels", value=[[0, 0, -1], [-1, -1, -1]]), "other than two"),
    "no label 0": (put(*VIEW, "labels", value=[[-1, -1, 1], [-1, -1, 1]]), "reference mass 0"),
    "no labels": (put(*VIEW, "labels", value=[[-1] * 3] * 2), "more labels than"),
    "a reference": (put(*VIEW, "reference", value=[[1, 0, 1], [-1, -1, 0]]), "of its own"),
    "its labels": (put(*VIEW, "reference", value=[[0, 0, 1], [-1, -1, 1]]), "of its own"),
    "other data": (put(*VIEW, "measure", value={**KIND, "order": 2.0}), "other data"),
    "a weight < 0": (put("objective", "worst", "w = 0", "weights", "w = 0", value=-2.0), "convex"),
    "a mass < 0": (put("law", 0, 2, value=-1.0), "negative"),
    "an infinite mass": (put("law", 0, 2, value=math.inf), "negative or infinite"),
    "no mass": (put("law", value=[[0.3, 0.2, 0.0], [0.1, 0.4, 0.0]]), "without mass"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_relative_entropy_is_refused(name: str) -> None:
    change, words = WRONG[name]
    document = bit()
    change(document["program"])
    with pytest.raises(UnprovableError, match=words):
        verify.recompute(document)
    with pytest.raises((Refused, *REFUSED)):
        program_of(document)
    assert verify.disagreements(document)


def test_labels_that_change_places_are_another_divergence() -> None:
    """D(r ‖ V_w): true of the program that it is then, and not what was claimed."""
    document = bit()
    for view in ("w = 0", "w = 1"):
        labels = document["program"]["views"][view]["labels"]
        swapped = [[{0: 1, 1: 0, -1: -1}[v] for v in row] for row in labels]
        document["program"]["views"][view]["labels"] = swapped
    assert verify.disagreements(document)
    other = claimed(document)
    assert other["claim"]["lower"] <= other["claim"]["upper"]
    agree(other)


def test_a_rare_law_r_makes_no_wide_gap_look_narrow() -> None:
    for share in (2.0**-30, 2.0**-5, 2.0**20):
        document = bit()
        program = document["program"]
        for row in program["law"]:
            row[-1] *= share
        factor = (1 + share) / share  # of J₁, whose mass is share : 1
        for name, part in program["objective"]["worst"].items():
            part["weights"] = {name: factor}
        cost = program["rows"]["budget"]["term"]
        cost["cost"] = [[c * (1 + share) / 2 for c in row] for row in cost["cost"]]
        document["dual"]["scores"] = {}
        honest = claimed(document)
        assert honest["claim"]["upper"] == pytest.approx(bit()["claim"]["upper"], abs=1e-12)
        assert honest["claim"]["upper"] - honest["claim"]["lower"] > 1e-3
        assert honest["claim"]["status"] == "loose"
        assert agree(honest) == "loose"


def test_an_output_that_r_does_not_use_costs_everything() -> None:
    document = bit()
    document["primal"]["outputs"][2] = [1]
    document["primal"]["numerators"][2] = [document["primal"]["denominator"]]
    assert verify.recompute(document)["upper"] == math.inf
    document["claim"] = bit()["claim"]
    assert verify.disagreements(document)


CENTRED: list[Callable[[Chance, Document], Any]] = [
    lambda rng, d: _relabelled(rng, d["program"]),
    lambda rng, d: _weighed(rng, d["program"]),
    lambda rng, d: d["program"]["law"][0].__setitem__(-1, float(10 ** rng.uniform(-12, 12))),
    lambda rng, d: _moved(rng, d["primal"]),
    lambda rng, d: d["dual"].update(shares={
        k: float(rng.normal()) for k in d["program"]["objective"]["worst"]
    }),
    lambda rng, d: d["dual"].update(scores={
        k: (10 ** rng.uniform(-2, 3) * rng.normal(size=np.shape(v))).tolist()
        for k, v in d["dual"]["scores"].items()
    }),
]  # fmt: skip


def _relabelled(rng: Chance, program: Any) -> None:
    views = [v for v in program["views"].values() if v["measure"] == KIND]
    labels = views[int(rng.integers(len(views)))]["labels"]
    row = labels[int(rng.integers(len(labels)))]
    row[int(rng.integers(len(row)))] = int(rng.choice([-1, 0, 1]))


def _weighed(rng: Chance, program: Any) -> None:
    terms = [*program["objective"].get("worst", {"": program["objective"]}).values()]
    terms += [row["term"] for row in program["rows"].values()]
    term = terms[int(rng.integers(len(terms)))]
    for view in term["weights"]:
        term["weights"][view] = float(10 ** rng.uniform(-12, 12))


def _moved(rng: Chance, primal: Any) -> None:
    """Move probability between two outputs of the law r, or all of it."""
    numbers = primal["numerators"][-1]
    i, j = (int(k) for k in rng.integers(len(numbers), size=2))
    part = numbers[i] if rng.random() < 0.3 else int(numbers[i] * rng.random())
    numbers[i] -= part
    numbers[j] += part
    if not numbers[i]:
        del numbers[i], primal["outputs"][-1][i]


def attack(seed: int, count: int, bases: int = 40) -> int:
    pool, verified = documents(seed, bases), 0
    for index in range(count):
        rng = np.random.default_rng([seed, 7, index])
        base = pool[index % len(pool)][1]
        text = "centred"
        if rng.random() < 0.5:
            document = copy.deepcopy(base)
            for change in rng.choice(len(CENTRED), int(rng.integers(1, 3))):
                try:
                    CENTRED[change](rng, document)
                except REFUSED:
                    continue
        else:
            document, text = forged(rng, base, pool)
        try:
            document = claimed(document)
            if document["claim"]["upper"] == "inf" and document["claim"]["lower"] != "inf":
                # r lacks an output; the lower end is looked at beside a channel that is one
                document = claimed({**document, "primal": base["primal"]})
        except REFUSED:
            continue
        claim = document["claim"]
        nowhere = claim["status"] == "uncertified" and claim["upper"] == "inf"
        if nowhere or verify.disagreements(document):  # the second checker has no infinities
            continue
        verified += 1
        assert falsehood(copy.deepcopy(document), base) == "", (index, text)
    return verified


def test_no_forgery_is_false() -> None:
    assert attack(3, 30, bases=5) > 5


@pytest.mark.long
def test_no_forgery_is_false_at_length() -> None:
    assert attack(5, 300) > 75


def test_many_centred_views_count_as_work() -> None:
    law = cpv.DiscreteSource(np.full((8, 8), 1 / 64))
    value = cpv.PrivacyDistortion(law, cpv.hamming(8), budget=0.2, prior="any")
    program = json.loads(json.dumps(value.program.to_dict()))
    least = work_of(program)
    for number in range(80):  # ten times as many
        program["views"][f"more {number}"] = copy.deepcopy(program["views"]["w = 0"])
    assert work_of(program) > 4 * least
    few = work_of(program)
    program["outputs"] *= 50
    assert work_of(program) > 10 * few
