"""What a proof is a proof of: said from its data alone, and compared with what was asked."""

from __future__ import annotations

import ast
import copy
import json
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.certificates.certificate import Certificate
from cvxprivacy_verifier import statement, verify
from cvxprivacy_verifier.differences import differences
from cvxprivacy_verifier.statement import headline, stated
from cvxprivacy_verifier.wording import MOST_VIEWS, constant, quoted, ranged, together, written
from tests.verifier.documents import Document, get, leaves, put, run, signed
from tests.verifier.test_certificate import (
    BUILD,
    EVERYWHERE,
    claim_what_is_computed,
    mutations,
)


def source() -> cpv.DiscreteSource:
    return cpv.DiscreteSource.from_counts([[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 41]])


def asked(budget: float = 0.5, **options: Any) -> cpv.PrivacyDistortion:
    return cpv.PrivacyDistortion(source(), cpv.absolute_error(range(4)), budget=budget, **options)


def document_of(certificate: Certificate) -> Document:
    return json.loads(json.dumps(certificate.document()))


@pytest.fixture(scope="module")
def honest() -> Document:
    return document_of(asked().solve().certificate)


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    return {name: document_of(build()) for name, build in BUILD.items()}


def line(document: Document, start: str) -> str:
    (outcome,) = [text for text in stated(document) if text.startswith(start)]
    return outcome


# ---- a document of another question ------------------------------------------------------


def emptied(document: Document) -> None:
    document["program"]["objective"].update(weights={}, cost=None)
    document["dual"]["scores"] = {}


def permuted(document: Document) -> None:
    cost = document["program"]["rows"]["budget"]["term"]["cost"]
    cost[:] = [[row[i] for i in (1, 0, 3, 2)] for row in cost]


def one_value(document: Document) -> None:
    labels = document["program"]["views"]["W"]["labels"]
    labels[:] = [[0] * len(row) for row in labels]


def priced(document: Document) -> None:
    term = document["program"]["rows"]["budget"]["term"]
    document["program"]["objective"]["cost"] = copy.deepcopy(term["cost"])


ROWS = ("program", "rows")
FLOOR = [[0.5 * (s == y) for y in range(4)] for s in range(4)]
RATIO = {"kind": "ratio", "bound": [3.0, 0.0]}
EXCESS = {
    "kind": "excess", "bound": [0.2, 0.0], "share": [1, 2, 1, 1], "levels": [0.5, 0.4, 0.1, 0.1],
}  # fmt: skip
FORGED: dict[str, tuple[Callable[[Document], None], str, str]] = {
    # what is changed; what the statement says then; what is different from the problem
    "objective emptied": (
        emptied,
        "minimised: NOTHING: the objective is empty, so this proves only that a release exists",
        'objective: information about "W" has weight 0, where the problem has 1',
    ),
    "W of one value": (
        one_value,
        'minimised: NOTHING: 1 × information about "W" (1 value) is the same for every release, so '
        "this proves only that a release exists",
        'view "W": labels: 8 of 12 differ, the first at [1, 0]: 0, where the problem has 1',
    ),
    "objective of weight 0": (
        put("program", "objective", "weights", "W", value=0.0),
        'minimised: NOTHING: 0 × information about "W" (3 values) is the same for every release, '
        "so this proves only that a release exists",
        'objective: information about "W" has weight 0, where the problem has 1',
    ),
    "objective scaled": (
        put("program", "objective", "weights", "W", value=0.125),
        'minimised: 0.125 × information about "W" (3 values), in bits',
        'objective: information about "W" has weight 0.125, where the problem has 1',
    ),
    "cost added": (
        priced,
        'minimised: 1 × information about "W" (3 values) + expected cost of 0 to 3 (0 for 4 of 16 '
        "moves: each letter i to output i), in units of the objective",
        "objective: cost: 12 of 16 differ, the first at [0, 1]: 1, where the problem has 0",
    ),
    "costs of the letter alone": (
        lambda document: document["program"]["objective"].update(
            weights={}, cost=[[float(s)] * 4 for s in range(4)]
        ),
        "minimised: NOTHING: expected cost of 0 to 3 (0 for 4 of 16 moves, 1 of them from a letter "
        "i to output i) is the same for every release, so this proves only that a release exists",
        'objective: information about "W" has weight 0, where the problem has 1',
    ),
    "budget dropped": (
        lambda document: document["program"]["rows"].clear(),
        "subject to: nothing, every channel is allowed",
        'row "budget" is missing',
    ),
    "budget renamed": (
        lambda document: document["program"].update(
            rows={"budgel": document["program"]["rows"]["budget"]}
        ),
        'subject to "budgel": expected cost of 0 to 3 (0 for 4 of 16 moves: each letter i to '
        "output i) <= 0.5",
        'row "budget" is missing',
    ),
    "bound moved": (
        put(*ROWS, "*", "bound", value="3/4"),
        'subject to "budget": expected cost of 0 to 3 (0 for 4 of 16 moves: each letter i to '
        "output i) <= 0.75",
        'row "budget": bound 0.75, where the problem has 0.5',
    ),
    "costs permuted": (
        permuted,
        'subject to "budget": expected cost of 0 to 3 (0 for 4 of 16 moves, 0 of them from a '
        "letter i to output i) <= 0.5",
        'row "budget": cost: 16 of 16 differ, the first at [0, 0]: 1, where the problem has 0',
    ),
    "units swapped": (
        put("program", "units", value="nats"),
        'minimised: 1 × information about "W" (3 values), in nats',
        "units nats, where the problem has bits",
    ),
    "law of another table": (
        put("program", "law", 0, 0, value=41.0),
        "over: all channels from 4 letters to 4 outputs; the law has 12 atoms, of mass 241 in all",
        "law: 1 of 12 differ, the first at [0, 0]: 41, where the problem has 40",
    ),
    "bound with a radius": (
        put(*ROWS, "*", "radius", value=0.125),
        'subject to "budget": expected cost of 0 to 3 (0 for 4 of 16 moves: each letter i to '
        "output i) <= 0.5 (± 0.12)",
        'row "budget": radius of bound 0.125, where the problem has 0',
    ),
    "floors": (
        put("program", "lower", value=FLOOR),
        "subject to moves with a floor of 0.5: 4 of 16 moves: each letter i to output i",
        "lower bound of moves: 4 of 16 differ, the first at [0, 0]: 0.5, where the problem has 0",
    ),
    "moves forbidden": (
        put("program", "upper", value=[[1.0 * (s <= y) for y in range(4)] for s in range(4)]),
        "subject to moves forbidden: 6 of 16 moves, 0 of them from a letter i to output i",
        "upper bound of moves: 6 of 16 differ, the first at [1, 0]: 0, where the problem has 1",
    ),
    "an auxiliary": (
        put("program", "auxiliaries", value={"ldp": RATIO}),
        "subject to \"ldp\": p(y | s) <= c p(y | s') for all letters s, s' and outputs y, c = 3",
        'auxiliary "ldp" is not in the problem',
    ),
    "another level of the marginal": (
        put("program", "auxiliaries", value={"near": EXCESS}),
        'subject to "near": the sum over outputs of their probability above its level '
        "(0.1 to 0.5, each letter's mass times 1 to 2) <= 0.2",
        'auxiliary "near" is not in the problem',
    ),
    "a term of another name": (
        lambda document: document["program"]["terms"].update(
            risk=document["program"]["terms"]["distortion"],
        ),
        'minimised: 1 × information about "W" (3 values), in bits',
        'term "risk": information about "W" has weight 0, where the problem has 1',
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FORGED)
def test_a_document_of_another_question_is_told(
    name: str, honest: Document, tmp_path: Path
) -> None:
    """It verifies truly, once it claims what its own program proves; but not as the problem's."""
    change, text, different = FORGED[name]
    document = copy.deepcopy(honest)
    change(document)
    if name in ("budget dropped", "budget renamed"):  # whose price is of no row
        document["dual"]["multipliers"] = {}
    before = document["primal"]
    try:
        claim_what_is_computed(document)
    except verify.UnprovableError:  # the channel is none of the new program: no upper end
        document["primal"] = None
        claim_what_is_computed(document)
    assert document["primal"] in (before, None)
    document = signed(document)
    assert verify.disagreements(document) == []
    assert text in stated(document)
    outcome = differences(document["program"], asked().program.to_dict())
    assert different in outcome
    assert differences(honest["program"], asked().program.to_dict()) == []
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    printed = run(str(path))
    assert printed.returncode == 0
    assert printed.stdout.splitlines()[0].startswith(f"{path}: verified, ")
    assert f"  {text}" in printed.stdout.splitlines()


def test_the_headline_has_the_unit_of_the_objective(honest: Document) -> None:
    def unit(certificate: Certificate) -> str:
        return headline(document_of(certificate)).rpartition(" (")[2].removesuffix(")")

    d, rules = cpv.absolute_error(range(4)), [cpv.LeakageCap(0.1)]
    assert unit(asked().solve().certificate) == "bits"
    assert unit(asked(units="nats").solve().certificate) == "nats"
    least = cpv.MinimumDistortion(source(), d, rules).solve().certificate
    assert unit(least) == "units of distortion"
    assert line(document_of(least), "minimised").endswith("in units of distortion")
    priced = cpv.PrivacyDistortion(source(), d, price=2.0).solve().certificate
    assert unit(priced) == "units of the objective"
    both = {"rate": 1.0, "leakage": 2.0}
    summed = cpv.RateDistortionEquivocation(source(), d, 0.5, minimize=both).solve().certificate
    assert unit(summed) == "bits"
    nothing = copy.deepcopy(honest)
    emptied(nothing)
    claim_what_is_computed(nothing)
    assert headline(nothing).endswith("(of an empty objective)")


INSIDE = "the least value that any release attains lies in this interval"
STATUSES = [  # status, ends, words
    ("certified", 1.0, 1.0, INSIDE),
    ("loose", 0.0, 1.0, f"{INSIDE}, which is wide"),
    ("infeasible", "inf", "inf", "no release satisfies these rows"),
    ("uncertified", "-inf", 1.0, "some release attains the upper end; nothing about the least "
     "value from below"),
    ("uncertified", 0.0, "inf", "no release attains less than the lower end; not that there is "
     "any release"),
    ("uncertified", "-inf", "inf", "nothing about the least value"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "lower", "upper", "words"), STATUSES)
def test_a_status_is_said_in_words(
    status: str, lower: Any, upper: Any, words: str, honest: Document
) -> None:
    claim = {"status": status, "lower": lower, "upper": upper, "terms": {}}
    assert stated({**honest, "claim": claim})[0] == f"proved: {words}"


CONSTANT: dict[str, tuple[cpv.leakage.Leakage, cpv.leakage.Leakage]] = {
    # the same for every release; and nearly so
    "one guess": (cpv.leakage.Gain([[1, 2, 3]]), cpv.leakage.Gain([[1, 2, 3], [0, 3, 3]])),
    "a guess that is never worse": (
        cpv.leakage.Gain([[1, 2, 0], [1, 3, 0.5], [0, 3, 0.5]]),
        cpv.leakage.Gain([[1, 2, 1], [1, 3, 0.5], [0, 3, 0.5]]),
    ),
    "no distances": (
        cpv.leakage.EarthMover(np.zeros((3, 3))),
        cpv.leakage.EarthMover([[0, 0, 0], [0, 0, 0], [0, 1, 0]]),
    ),
    "no posterior so large": (  # 240/75 is the least likely value's
        cpv.leakage.HockeyStick(3.2),
        cpv.leakage.HockeyStick(Fraction(32, 10) - Fraction(1, 10**9)),
    ),
}


@pytest.mark.parametrize("kind", CONSTANT)
def test_a_measure_that_cannot_vary_is_minimised_loudly(kind: str) -> None:
    for measure, empty in zip(CONSTANT[kind], (True, False), strict=True):
        document = document_of(asked(leakage=measure).solve().certificate)
        assert ("NOTHING" in line(document, "minimised")) == empty
        if empty:
            assert "is the same for every release" in line(document, "minimised")
            assert math.isclose(*(document["claim"][end] for end in ("lower", "upper")))


def test_differences_are_in_the_words_of_the_measure() -> None:
    other = asked(leakage=cpv.leakage.ChiSquared())
    outcome = asked(leakage=cpv.leakage.Sibson(2)).solve().certificate.differences(other)
    assert any("objective: Sibson's measure of order 2 of" in text for text in outcome)
    assert any("objective: chi-squared divergence of" in text for text in outcome)
    assert not any("information about" in text for text in outcome)


def test_a_number_that_one_measure_alone_has_is_a_difference() -> None:
    program = asked(leakage=cpv.leakage.HockeyStick(1.25)).program.to_dict()
    other = copy.deepcopy(program)
    measures = [view["measure"] for view in other["views"].values()]
    del next(measure for measure in measures if "gamma" in measure)["gamma"]
    for pair in ((program, other), (other, program)):
        assert any("gamma" in difference for difference in differences(*pair))


def test_nothing_feasible_is_no_proof_that_a_release_exists(documents: dict[str, Document]) -> None:
    document = copy.deepcopy(documents["infeasible"])
    assert "proved: no release satisfies these rows" in stated(document)
    assert headline(document) == "infeasible"
    document["program"]["objective"]["weights"] = {}
    document = signed(document)
    assert verify.disagreements(document) == []
    assert "minimised: NOTHING: the objective is empty" in stated(document)


# ---- every field -------------------------------------------------------------------------


def test_the_statement_of_a_program_with_every_field(documents: dict[str, Document]) -> None:
    assert stated(documents["rich"])[1:-1] == [
        'minimised: (0 to 0.5) × information about "P" (2 values) + 1 × information about "W" '
        "(2 values) + expected cost of 0 to 1.25 (± 1e-14) + the constant 0.125 (± 1e-15), in "
        "units of the objective",
        "over: all channels from 3 letters to 3 outputs; the law has 6 atoms, of mass 27 in all",
        'subject to "budget": expected cost of 0 to 1 (0 for 3 of 9 moves: each letter i to output '
        "i) <= 0.75 (± 1e-15)",
        'subject to "leak": 1 × information about "W" (2 values) + the constant 0.5 <= 4/3 bits',
        'subject to "t": for each of the 3 outputs, 1 × information about "X" (3 values) <= 1 bits '
        "× its probability + 0 to 0.125 bits",
        'subject to "mean": expected cost of 0 to 2 (0 for 3 of 9 moves, 1 of them from a letter i '
        "to output i) = 1",
        "subject to \"ldp\": p(y | s) <= c p(y | s') for all letters s, s' and outputs y, c = 9 "
        "(± 1e-15)",
        'subject to "maximal": the sum over outputs y of the greatest p(y | s) of any letter s <= '
        "2 (± 1e-15)",
        "subject to moves with a floor of 0.015625: 9 of 9 moves, 3 of them from a letter i to "
        "output i",
        "subject to moves with a cap of 0.875: 2 of 9 moves, 0 of them from a letter i to output i",
        'where "W" is a label with 2 values; the letters themselves tell 0.167803 bits about it',
        'where "X" is the letter itself: 1.53049 bits',
        'where "P" is a label with 2 values, known of 0.6667 of the mass; the letters themselves '
        "tell 0.130867 bits about it",
    ]


def test_criteria_are_said_as_they_are() -> None:
    rules = [cpv.TCloseness(0.1), cpv.PreserveMarginal(), cpv.PreserveMean([1, 2, 3, 4])]
    rules += [cpv.KeepProbability([0.1, 0.2, 0.2, 0.25])]
    d = cpv.absolute_error(range(4))
    problem = cpv.MinimumDistortion(source(), d, rules)
    text = stated(document_of(problem.solve().certificate))
    for words in (
        'subject to "t_closeness": for each of the 4 outputs, 1 × information about "W" (3 values) '
        "<= 0.1 bits × its probability",
        'subject to "preserve_marginal": for each of the 4 outputs, 1 × its probability = 11/48 to '
        "4/15",
        'subject to "preserve_mean": expected cost of 1 to 4 = 2.4375',
        "subject to moves with a floor of 0.1 to 0.25: 4 of 16 moves: each letter i to output i",
    ):
        assert words in text


class ToldAtMost(cpv.Criterion):
    """p(x̂) D(p(w | x̂) ‖ p(w)) ≤ b of each letter, with its probability."""

    name = "told_at_most"
    b = cpv.Parameter()

    def constraints(self, release: Any) -> dict[str, Any]:
        return {"each": release.information().each() <= self.b}


def test_a_bound_that_no_probability_scales_is_said_so() -> None:
    problem = cpv.MinimumDistortion(source(), cpv.absolute_error(range(4)), [ToldAtMost(0.01)])
    words = (
        'subject to "told_at_most.each": for each of the 4 outputs, 1 × information about "W" '
        "(3 values) <= 0.01 bits"
    )
    assert words in stated(document_of(problem.solve().certificate))


@pytest.mark.parametrize("encoder", ["x", "wx"])
@pytest.mark.parametrize("kind", ["W", "S"])
def test_what_the_letters_tell_is_what_releasing_them_tells(kind: str, encoder: str) -> None:
    d = cpv.absolute_error(range(4))
    problem = cpv.RateDistortionEquivocation(source(), d, 0.5, encoder=encoder, minimize="leakage")
    program = problem.program.to_dict()
    kinds = {**problem.risk.views, **problem.rate.views}
    program["views"] = {name: view.to_dict() for name, view in kinds.items()}
    program["rows"]["budget"]["term"]["weights"] = {kind: 1.0}
    document = {"program": program, "claim": {"status": "certified", "lower": 0.0, "upper": 0.0}}
    information = float(line(document, f'where "{kind}" is').partition(" bits")[0].split()[-1])
    law = source().law / source().law.sum()
    alone = law.sum(axis=0) if encoder == "x" else law
    entropy = -(alone[alone > 0] * np.log2(alone[alone > 0])).sum()
    w = law.sum(axis=1)
    leakage = source().information() if encoder == "x" else -(w * np.log2(w)).sum()
    assert information == pytest.approx({"W": leakage, "S": entropy}[kind], rel=1e-5)


def test_rows_that_differ_in_their_bound_alone_are_said_together() -> None:
    law = np.random.default_rng(0).integers(1, 9, (2, 3, 2)).astype(float)
    problem = cpv.RateDistortionEquivocation(
        cpv.DiscreteSource.from_counts(law), cpv.hamming(3), 0.3, minimize="leakage",
        side_information="decoder", criteria=[cpv.KeepProbability(0.125)],
    )  # fmt: skip
    text = stated(document_of(problem.solve().certificate))
    (kept,) = [words for words in text if "keep_probability" in words]
    masses = [Fraction(int(mass)) / int(law.sum()) / 8 for mass in law.sum(axis=(0, 2))]
    assert kept.startswith('subject to each of "keep_probability.0|0", "keep_probability.1|0", ')
    assert "(6 rows): expected cost of -1 to 0 (0 for 24 of 27 moves) <= " in kept
    assert kept.endswith(f"<= {written(-max(masses))} to {written(-min(masses))}")
    assert len(set(masses)) > 1
    views = 'each of "W|0", "W|1" (2 views of 2 values)'
    assert f"minimised: 1 × information about {views}, in bits" in text


def unproved(program: Any) -> Document:
    return {"program": program.to_dict(), "claim": {"status": "loose", "lower": 0.0, "upper": 1.0}}


def test_moves_that_are_left_no_choice_are_said_to_be_fixed() -> None:
    floors = asked(criteria=[cpv.KeepProbability([1.0, 0.0, 0.0, 0.25])])
    messages = [words for words in stated(unproved(floors.program)) if "moves" in words[:17]]
    assert messages == [
        "subject to moves fixed at 1: 1 of 16 moves, 1 of them from a letter i to output i",
        "subject to moves with a floor of 0.25: 1 of 16 moves, 1 of them from a letter i to "
        "output i",
    ]


def test_of_many_views_and_of_many_variables_only_the_number_is_said() -> None:
    law = np.ones((2, 2, 3 * MOST_VIEWS))
    many = cpv.RateDistortionEquivocation(
        cpv.DiscreteSource.from_counts(law), cpv.hamming(2), 0.3, side_information="both"
    )
    text = stated(unproved(many.program))
    assert sum(words.startswith('where "') for words in text) == MOST_VIEWS
    assert sum(words.endswith("are not described here") for words in text) == 1
    source = cpv.GaussianSource(np.eye(8) + 1, sensitive=range(7), key=[7])
    text = stated(unproved(cpv.QuadraticGaussian(source, 0.5).program))
    assert 'where "W" is 7 variables' in text


def test_programs_of_other_kinds_are_told_apart() -> None:
    mine = asked(criteria=[cpv.LocalPrivacy(4.0)]).program.to_dict()
    gaussian = cpv.GaussianSource(np.eye(3) + 1, sensitive=[0], key=[1], side=[2])
    theirs = cpv.GaussianEquivocation(gaussian, 0.5, side_information="both").program.to_dict()
    assert differences(mine, theirs) == [
        'kind of program "channel", where the problem has "covariance"'
    ]
    other = copy.deepcopy(mine)
    other["auxiliaries"]["local_privacy"]["kind"] = "maximum"
    assert differences(mine, other) == [
        'auxiliary "local_privacy": kind "ratio", where the problem has "maximum"'
    ]
    mine["auxiliaries"] = {"near": EXCESS}
    other["auxiliaries"] = {"near": {**EXCESS, "levels": [0.5, 0.4, 0.1, 0.2]}}
    (outcome,) = differences(mine, other)
    assert outcome.startswith('auxiliary "near": levels: 1 of 4 differ, the first at [3]')
    other = copy.deepcopy(theirs)
    other["views"]["W"]["reference"] = "conditional"
    assert differences(theirs, other) == [
        'view "W": reference "marginal", where the problem has "conditional"'
    ]


def test_a_cost_of_letters_is_one_of_all_their_atoms() -> None:
    mine = asked().program.to_dict()
    other, atoms = copy.deepcopy(mine), len(mine["law"])
    term = other["rows"]["budget"]["term"]
    term["cost"] = [copy.deepcopy(term["cost"]) for _ in range(atoms)]
    assert differences(mine, other) == differences(other, mine) == []
    term["cost"][1][2][3] += 0.5
    (text,) = differences(mine, other)
    assert text.startswith('row "budget": cost: 1 of 48 differ, the first at [1, 2, 3]: 1, where')


def test_covariance_programs() -> None:
    covariance = [[2.0, 1.0, 0.5], [1.0, 2.0, 0.25], [0.5, 0.25, 1.0]]
    gaussian = cpv.GaussianSource(covariance, sensitive=[0], key=[1], side=[2])
    problem = cpv.GaussianEquivocation(gaussian, 0.5, max_leakage=1.5, side_information="both")
    certificate = problem.solve().certificate
    assert stated(document_of(certificate))[1:-1] == [
        'minimised: 1 × information about "V" (1 variable), in bits',
        "over: all error covariances 0 <= Sigma <= the covariance of variable 1 given variable 2",
        "law: 3 jointly Gaussian variables, of variance 1 to 2",
        'subject to "budget": trace of C Sigma (C: identity) <= 0.5',
        'subject to "max_leakage": 1 × information about "W" (1 variable) <= 1.5 bits',
        'where "W" is variable 0, counting what those given tell',
        'where "V" is variable 1, beyond what those given tell',
    ]
    assert certificate.proves(problem)
    assert certificate.differences(problem.at(budget=0.75)) == [
        'row "budget": bound 0.5, where the problem has 0.75'
    ]
    both = cpv.GaussianSource(covariance, sensitive=[0], key=[1, 2])
    shapes = {  # weights and caps, in words
        "(C: diagonal, of entries 1 to 4)": {"weights": [1.0, 4.0]},
        "(C: 2 × identity)": {"weights": [2.0, 2.0]},
        "(C: 2 × 2, of entries 0.25 to 1)": {"weights": [[1.0, 0.25], [0.25, 1.0]]},
        'subject to "cap": Sigma <= M (M: 1.5 × identity)': {"cap": [[1.5, 0.0], [0.0, 1.5]]},
    }
    for words, options in shapes.items():
        problem = cpv.QuadraticGaussian(both, 1.0, **options)
        program = problem.program.to_dict()
        document = {"program": program, "claim": {"status": "loose", "lower": 0.0, "upper": 1.0}}
        assert any(words in text for text in stated(document)), words
        assert differences(program, problem.program.to_dict()) == []
        assert differences(program, cpv.QuadraticGaussian(both, 1.0).program.to_dict())


def test_a_rate_under_hamming_distortion() -> None:
    program = {"kind": "hamming", "units": "bits", "law": [5.0, 3.0, 2.0], "budget": "1/10"}
    document = {"program": program, "claim": {"status": "certified", "lower": 0.5, "upper": 0.5}}
    assert stated(document)[1:-1] == [
        "minimised: rate I(X; X^) of 3 letters, in bits",
        "over: all channels from X to X^, the same letters",
        "subject to: Pr(X != X^) <= 1/10",
    ]
    assert headline(document) == "certified, value in [0.5, 0.5] (bits)"
    problem = cpv.HammingWaterFilling([0.5, 0.25, 0.25], 0.125)
    certificate = problem.solve().certificate
    assert "subject to: Pr(X != X^) <= 0.125" in stated(document_of(certificate))
    assert certificate.proves(problem)
    assert certificate.differences(cpv.HammingWaterFilling([0.5, 0.25, 0.25], 0.25)) == [
        "budget 0.125, where the problem has 0.25"
    ]
    assert differences(program, {**program, "budget": 0.1})  # a float is no tenth
    assert differences(program, {**program, "budget": "2/20"}) == []
    assert differences({**program, "law": [5.0, 2.0, 2.0]}, program) == [
        "law: 1 of 3 differ, the first at [1]: 2, where the problem has 3"
    ]


# ---- numbers and names -------------------------------------------------------------------

NUMBERS = {
    0.1: "0.1", 5.0: "5", "1/10": "1/10", "1/2": "0.5", "7": "7", "-3/4": "-0.75", 1e300: "1e+300",
    5e-324: "5e-324", 0.1 + 0.2: "≈ 0.3", 1 / 3: "≈ 0.333333333333", "1/3": "1/3", -0.0: "0",
    "3602879701896397/36028797018963968": "0.1", 10**15: "1e+15", f"1/{10**400}": "≈ 1e-400",
    f"{10**400}": "≈ 1e+400", "123456789/987654321": "≈ 0.124999998861",
}  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_short_and_say_when_they_are_rounded(number: Any) -> None:
    assert written(number) == NUMBERS[number]
    if "≈" not in NUMBERS[number]:
        exact = Fraction(number)
        text = NUMBERS[number]
        assert (Fraction(text) if "/" in text else Fraction(float(text))) == exact


def test_neighbours_are_told_apart_where_they_differ(honest: Document) -> None:
    other = copy.deepcopy(honest["program"])
    other["rows"]["budget"]["bound"] = math.nextafter(0.5, 1)
    assert differences(honest["program"], other) == [
        'row "budget": bound 0.5, where the problem has 0.5000000000000001'
    ]
    for same in (0.5, "1/2", "2/4"):
        other["rows"]["budget"]["bound"] = same
        assert differences(honest["program"], other) == []
    for no in ("nan", "inf", "1e9", "1/0", None, [], {}):
        other["rows"]["budget"]["bound"] = no
        assert differences(honest["program"], other)


def test_ranges_are_of_numbers_not_of_text() -> None:
    assert ranged([2.0, "10", "1/2"]) == "0.5 to 10"
    assert ranged(["1/2", 0.5]) == "0.5"


ODD = ["\x1b[2J\x1b[31mred", "a\nb\r\tc", "\u202eegakael", "\ud800", 'W" (9 values)', "\\",
       "x" * 500, "", "\u200b", "名前", "é"]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_names_are_labels_that_no_terminal_obeys(name: str, honest: Document) -> None:
    label = quoted(name)
    assert label.isprintable()
    assert label[0] == '"'
    assert len(label) <= 500
    body = label[1:].partition("… (")[0].removesuffix('"')
    assert body.replace("\\\\", "").replace('\\"', "").count('"') == 0
    document = copy.deepcopy(honest)
    program = document["program"]
    program["rows"][name] = program["rows"].pop("budget")
    program["views"][name] = program["views"].pop("W")
    for term in (program["objective"], *program["terms"].values()):
        term["weights"] = {name if view == "W" else view: w for view, w in term["weights"].items()}
    document["table"] = {
        "records": 9, "sensitive": [name], "key": [name], "side": [name], "weights": name,
        "bins": [[name, ["-inf", 3.0, "inf"]]], "missing": name, "encoder": name,
    }  # fmt: skip
    text = stated(document)
    assert not [words for words in text if not words.isprintable()]
    assert [words for words in text if words.startswith(f"subject to {label}")]
    assert [words for words in text if words.startswith("table, as recorded: 9 records; ")]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_without_the_letters_gets_the_statement(
    encoding: str, honest: Document, tmp_path: Path
) -> None:
    document = copy.deepcopy(honest)
    document["program"]["rows"] = {"Σ名": document["program"]["rows"]["budget"]}
    document["dual"]["multipliers"] = {"Σ名": document["dual"]["multipliers"]["budget"]}
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(signed(document)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "cvxprivacy_verifier", str(path)],
        capture_output=True, check=False, env={"PYTHONIOENCODING": encoding,
        "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"subject to" in done.stdout


TABLES: list[Any] = ["x", [], {}, {"records": "many"}, 3, True]


@pytest.mark.parametrize("table", TABLES)
def test_a_malformed_record_of_the_table_is_said_to_be_one(table: Any, honest: Document) -> None:
    text = stated({**honest, "table": table})
    assert "table: the record of how it was counted is malformed" in text
    assert text[:-2] == stated(honest)[:-1]


def test_what_cannot_be_told_is_said_loudly(honest: Document) -> None:
    (text,) = stated({**honest, "program": {}})
    assert text.startswith("WHAT IS PROVED CANNOT BE TOLD")


@pytest.mark.parametrize(("name", "every"), EVERYWHERE)
def test_no_document_that_verifies_is_without_a_statement(
    name: str, every: int, documents: dict[str, Document]
) -> None:
    """Changes in one place, claiming what they prove: each one that verifies is stated."""
    program = documents[name]["program"]
    information = 0
    for where, changed in mutations(documents[name], every):
        if where.startswith(("claim", "schema", "accuracy", "dual", "primal")):
            continue
        try:
            claim_what_is_computed(changed)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            continue
        if verify.disagreements(signed(changed)):
            continue
        text = stated(changed)
        assert "CANNOT BE TOLD" not in text[0], where
        assert len(text) >= 4
        nothing = where.endswith(("= []", "= null", "= {}", '{"value": 0}'))  # however written
        same = changed["program"] == program or "/name" in where or nothing
        assert same or differences(changed["program"], program), where
        information += 1
    assert information >= 50 / every


@pytest.mark.parametrize("name", BUILD)
def test_every_number_of_a_program_counts(name: str, documents: dict[str, Document]) -> None:
    """A number that is moved is noticed by its place; written otherwise it is the same."""
    program, moved = documents[name]["program"], 0
    for path in leaves(program):
        old = get(program, path)
        if isinstance(old, bool) or not isinstance(old, int | float | str) or path[-1] == "name":
            continue
        try:
            number = Fraction(old)
        except ValueError:
            continue
        other = copy.deepcopy(program)
        get(other, path[:-1])[path[-1]] = str(number + 1)
        assert differences(other, program), path
        assert differences(program, other), path
        if path[0] not in ("law", "outputs", "views"):
            get(other, path[:-1])[path[-1]] = str(number)
            assert differences(other, program) == [], path
        moved += 1
    assert moved >= 20


# ---- certificates ------------------------------------------------------------------------


def test_a_certificate_proves_the_problem_it_is_of_and_no_other() -> None:
    rules = [cpv.TCloseness(0.2), cpv.KeepProbability(0.1), cpv.LocalPrivacy(4.0)]
    problem, certificate = asked(criteria=rules), asked(criteria=rules).solve().certificate
    assert certificate.proves(problem)
    assert certificate.proves(asked(criteria=rules[::-1]))  # the order of rows is no matter
    others: dict[str, cpv.ChannelProblem] = {
        "budget": asked(0.75, criteria=rules),
        "t_closeness": asked(criteria=[cpv.TCloseness(0.3), *rules[1:]]),
        "lower bound of moves": asked(criteria=[rules[0], cpv.KeepProbability(0.2), rules[2]]),
        "local_privacy": asked(criteria=[*rules[:2], cpv.LocalPrivacy(5.0)]),
        "units": asked(criteria=rules, units="nats"),
        "letters": asked(criteria=rules, encoder="wx"),
        '"leakage_cap" is missing': asked(criteria=[*rules, cpv.LeakageCap(0.1)]),
        '"t_closeness" is not in the problem': asked(criteria=rules[1:]),
        '"budget" is not in the problem': cpv.MinimumDistortion(
            source(), cpv.absolute_error(range(4)), rules
        ),
        "law": cpv.PrivacyDistortion(
            cpv.DiscreteSource.from_counts([[40, 22, 9, 4], [18, 30, 21, 10], [5, 12, 28, 42]]),
            cpv.absolute_error(range(4)), budget=0.5, criteria=rules,
        ),
    }  # fmt: skip
    for words, other in others.items():
        assert not certificate.proves(other)
        assert any(words in text for text in certificate.differences(other)), words


def cut(**options: Any) -> cpv.RateDistortionEquivocation:
    law = np.random.default_rng(0).integers(1, 9, (2, 3, 4)).astype(float)
    arguments = {"budget": 0.3, "most_strategies": 8, "max_leakage": 0.7, **options}
    return cpv.RateDistortionEquivocation(
        cpv.DiscreteSource.from_counts(law), cpv.hamming(3), side_information="decoder", **arguments
    )


def test_where_letters_were_generated_what_is_left_is_compared() -> None:
    certificate = cut().solve().certificate
    assert certificate.proves(cut())
    for words, other in {
        'row "budget": bound 0.3, where the problem has 0.2': cut(budget=0.2),
        'lower end: row "max_leakage": bound 0.7, where the problem has 0.8': cut(max_leakage=0.8),
        'objective: information about "S|0" has weight 1, where the problem has 0': cut(
            minimize="leakage"
        ),
        'row "max_rate" is missing': cut(max_rate=2.0),
        "outputs: generated, where the problem lists its own": cut(most_strategies=1024),
    }.items():
        assert words in certificate.differences(other)


def test_the_statement_needs_the_standard_library_only() -> None:
    ours = ("statement", "wording", "channel_statement", "differences", "costs", "rationals")
    ours += ("work", "fields", "elimination")
    for name in ours:
        path = Path(statement.__file__).with_name(f"{name}.py")
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module))
        others = {n.split(".")[0] for n in names - set(ours)}
        assert others <= set(sys.stdlib_module_names)


def test_constants_and_rows_in_words() -> None:
    assert constant([0, 0.0]) == []
    assert constant([0, 1e-9]) == ["the constant 0 (± 1e-09)"]
    rows = [(f"r{i}", "left", "<= {}", [i]) for i in range(3)]
    assert together(rows[:2]) == [f'subject to "r{i}": left <= {i}' for i in range(2)]
    assert together(rows) == ['subject to each of "r0", "r1", "r2" (3 rows): left <= 0 to 2']
