"""Proofs of the most useful release: every ray counts, and no document says which there are."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.solvers.useful import Master, prover_of, rays_of
from cvxprivacy_verifier import useful_proof, verify
from cvxprivacy_verifier.balls import UnaffordableError, UnprovableError
from cvxprivacy_verifier.statement import stated
from cvxprivacy_verifier.useful_proof import UsefulProof
from cvxprivacy_verifier.work import WORK, allowing, work_of
from tests import second_checker
from tests.claims import claimed
from tests.forgeries import REFUSED, forged, plainly
from tests.instances import Chance, solved
from tests.second_checker import Refused
from tests.verifier.test_second_checker import agree

Document = dict[str, Any]
L = cpv.leakage
RULES = {
    "local": lambda rng: [cpv.LocalPrivacy(float(rng.uniform(0.2, 2)))],
    "metric": lambda rng: [
        cpv.LocalPrivacy(float(rng.uniform(0.2, 2)), metric=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    ],
    "pointwise": lambda rng: [cpv.PointwiseMaximalLeakage(float(rng.uniform(0.1, 0.5)))],
    "both sides": lambda rng: [cpv.LocalInformationPrivacy(float(rng.uniform(0.1, 0.5)))],
    "two rules": lambda rng: [
        cpv.LocalPrivacy(float(rng.uniform(0.5, 1))), cpv.PointwiseMaximalLeakage(0.1),
    ],
}  # fmt: skip
MEASURES = [
    None, L.ChiSquared(), L.TotalVariation(), L.GuessingProbability(), L.HockeyStick(1.5),
    L.SquaredHellinger(), L.JensenShannon(),
]  # fmt: skip


def problem(rng: Chance, rule: str) -> cpv.MostUsefulRelease:
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(6)).reshape(2, 3))
    measure = MEASURES[int(rng.integers(len(MEASURES)))]
    options: dict[str, Any] = {"utility": measure, "about": str(rng.choice(["x", "w"]))}
    if rng.random() < 0.3:
        options |= {"distortion": cpv.hamming(3), "budget": float(rng.uniform(0.55, 0.9))}
    return cpv.MostUsefulRelease(source, RULES[rule](rng), **options)


def document_of(value: cpv.MostUsefulRelease) -> Document:
    return json.loads(json.dumps(solved(value).document()))


def documents(seed: int, count: int) -> list[tuple[str, Document]]:
    outcome, names = [], list(RULES)
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        try:
            outcome.append((names[index % 5], document_of(problem(rng, names[index % 5]))))
        except cpv.InfeasibleError:  # a budget that no private release meets
            continue
    return outcome


@pytest.mark.parametrize("rule", RULES)
def test_two_checkers_agree_on_it(rule: str) -> None:
    for seed in range(3):
        document = document_of(problem(np.random.default_rng(seed), rule))
        assert verify.disagreements(document) == []
        assert agree(document) == "certified"


@pytest.mark.long
def test_two_checkers_agree_on_it_at_length() -> None:
    statuses = [agree(document) for _, document in documents(1, 50)]
    assert len(statuses) > 35
    assert {*statuses} == {"certified"}


def test_multipliers_may_be_anything() -> None:
    rng = np.random.default_rng(4)
    for name, honest in documents(2, 5):
        lowest = float(honest["claim"]["lower"])
        for scale in (0.0, 1.0, 1e3, math.nan):
            dual = {**honest["dual"], "letters": (scale * rng.normal(size=3)).tolist()}
            document = claimed({**honest, "dual": json.loads(json.dumps(dual))})
            assert float(document["claim"]["upper"]) >= lowest, name
            agree(document)


def test_no_ray_can_be_left_out() -> None:
    """Multipliers that are optimal without a ray would prove what is false: it is looked at."""
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    for rule in (cpv.PointwiseMaximalLeakage(0.2), cpv.LocalPrivacy(1)):
        value = cpv.MostUsefulRelease(source, [rule])
        document = document_of(value)
        rays, false = rays_of(prover_of(value.program).proof, value.program), 0
        for ray in range(1, len(rays)):
            master = Master(value.program, np.delete(rays, ray, axis=0))
            master.solve(1.0)
            letters = master.dual.to_dict()
            proved = verify.recompute({**document, "dual": letters})
            assert proved["upper"] >= document["claim"]["lower"]
            false += sum(letters["letters"]) < document["claim"]["lower"] - 1e-6
        assert false >= 2


FIELDS = [
    ("lower", [[0.0] * 3] * 3, "bounds of entries"),
    ("objective.cost", [[0.0] * 3] * 3, "no measure alone"),
    ("objective.constant", [1.0, 0.0], "no measure alone"),
    ("objective.weights", {"S": [1.0, 1.0, 2.0]}, "differ between outputs"),
    ("auxiliaries", {"m": {"kind": "maximum", "bound": [2.0, 0.0]}}, "not of every letter"),
]


@pytest.mark.parametrize(("field", "value", "words"), FIELDS)
def test_another_program_is_refused(field: str, value: Any, words: str) -> None:
    source = cpv.DiscreteSource.identical([0.2, 0.3, 0.5])
    document = document_of(cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1)]))
    node = document["program"]
    *above, last = field.split(".")
    for key in above:
        node = node[key]
    node[last] = value
    with pytest.raises(UnprovableError, match=words):
        verify.recompute(document)


def test_a_rule_of_some_outputs_is_refused() -> None:
    source = cpv.DiscreteSource([[0.3, 0.1, 0.1], [0.05, 0.15, 0.3]])
    document = document_of(cpv.MostUsefulRelease(source, [cpv.PointwiseMaximalLeakage(0.2)]))
    row = next(iter(document["program"]["rows"].values()))
    row["term"]["cost"] = [[*map(float, range(3))] for _ in range(3)]
    with pytest.raises(UnprovableError, match="not the same for all outputs"):
        verify.recompute(document)
    honest = document_of(cpv.MostUsefulRelease(source, [cpv.PointwiseMaximalLeakage(0.2)]))
    row = next(iter(honest["program"]["rows"].values()))
    row["bound"] = ["1/10"] * 3
    with pytest.raises(UnprovableError, match="or not ≤ 0"):
        verify.recompute(honest)


PARTS = {  # Σ of parts is 24 and 15, and 2⁵³ + 1 and 2⁵³
    "texts": ([["1", "12"]], [["23", "3"]], "20"),
    "floats": ([[2.0**53] * 2], [[1.0, 0.0]], "18014398509481985/2"),
}


@pytest.mark.parametrize("name", PARTS)
def test_outputs_are_alike_if_they_cost_the_same_and_not_by_a_sum_that_is_rounded(
    name: str,
) -> None:
    """Texts that were put one behind the other, and floats, were alike once: no ray cost less."""
    first, second, bound = PARTS[name]
    source = cpv.DiscreteSource.identical([0.5, 0.5])
    rule = cpv.LocalPrivacy(1)
    document = document_of(
        cpv.MostUsefulRelease(source, [rule], distortion=cpv.hamming(2), budget=0.4)
    )
    program = document["program"]
    row, cheap = program["rows"]["budget"], program["outputs"] // 2
    parts = [{"table": t, "rows": [0, 0], "columns": [1] * cheap + [0] * cheap}
             for t in (first, second)]  # fmt: skip
    row["term"]["cost"], row["bound"] = {"parts": parts}, bound
    program["auxiliaries"]["local_privacy"]["bound"] = [3.0, 0.0]  # times 2⁵³ a radius would show
    document["dual"]["multipliers"] = {"budget": 1.0}
    document = claimed(document)  # a channel of cheap outputs alone
    assert document["claim"]["upper"] > document["claim"]["lower"] > 0
    agree(document)


def large(
    n: int, measure: Any, rows: dict[str, list[float]], labels: list[int], unseen: Any = None
) -> Document:
    """Return a program of n letters of one mass, under γ = 2 or rows."""
    term = {"name": "", "weights": {"V": 1.0}, "cost": None, "cost_radius": 0.0}
    term["constant"] = [0.0, 0.0]
    ruled = {
        name: {
            "term": {**term, "weights": {}, "cost": [[c] for c in costs]},
            "sense": "<=", "bound": "0", "radius": 0.0, "per_output": True,
        }
        for name, costs in rows.items()
    }  # fmt: skip
    return {
        "kind": "useful", "units": "nats", "law": [[1.0] * n], "outputs": 1,
        "views": {"V": {"labels": [labels], "reference": unseen, "measure": measure}},
        "objective": term, "rows": ruled, "lower": None, "upper": None, "terms": {},
        "auxiliaries": {} if rows else {"r": {"kind": "ratio", "bound": [2.0, 0.0]}},
    }  # fmt: skip


def test_what_a_measure_takes_at_each_ray_counts_as_work() -> None:
    plain = {"kind": "mutual information"}
    least = work_of(large(12, plain, {}, [0] * 6 + [1] * 6))
    assert least < WORK
    gains = {"kind": "gain", "matrix": [[float(i), 0.0] for i in range(2_000)]}
    ground = [[float((i != j) * (1 + (i * j) % 3)) for j in range(12)] for i in range(12)]
    transport = {"kind": "transport", "ground": ground}
    assert work_of(large(12, gains, {}, [0] * 6 + [1] * 6)) > 50 * least
    assert work_of(large(12, transport, {}, [*range(12)])) > 50 * least
    assert work_of(large(12, plain, {}, [0] * 12, [[*range(12)]])) > 2 * least
    # a radius of 2,000 digits makes every row as long
    ruled = large(6, plain, {str(i): [1.0, -1.0] * 3 for i in range(6)}, [0] * 6)
    shorter = work_of(ruled)
    ruled["rows"]["0"]["term"]["cost_radius"] = "1/1" + "0" * 1_990
    assert work_of(ruled) > 10 * shorter


def test_vertices_that_fill_memory_are_refused() -> None:
    costs = [1.0 + i if i % 2 else -1.0 - i for i in range(20)]  # 100 vertices of two letters
    program = large(20, {"kind": "mutual information"}, {"a": costs}, [0] * 20)
    with allowing(1e-4):  # 400 entries
        proof = UsefulProof(program)
        with pytest.raises(UnaffordableError, match="tables of 404 entries"):
            proof.lower({"letters": [], "multipliers": {}, "objective": 1})


def channels(rng: Chance, program: Any, primal: Any) -> Any:
    """Yield channels of a program, some of them near the one of a document."""
    n, m = program.n, program.m
    dense = [[Fraction(0)] * m for _ in range(n)]
    for row, places, numbers in zip(dense, primal["outputs"], primal["numerators"], strict=True):
        for y, k in zip(places, numbers, strict=True):
            row[y] = Fraction(k, primal["denominator"])
    law = [Fraction(int(k), 1000) for k in rng.multinomial(1000, np.ones(m) / m)]
    for share in (Fraction(0), Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2)):
        mixed = [
            [(1 - share) * x + share * q for x, q in zip(row, law, strict=True)] for row in dense
        ]
        try:
            program.feasible(mixed)
        except Refused:
            continue
        yield mixed


def falsehood(rng: Chance, document: Document, base: Document) -> str:
    """Return what is false about a document that was verified."""
    claim = document["claim"]
    low, high = float(claim["lower"]), float(claim["upper"])
    if (low, high) == (-math.inf, math.inf):
        return ""
    document = plainly(document)
    try:
        program = second_checker.program_of(document)
        lower, upper, _, _ = second_checker.judged(document, program)
    except Refused as error:
        return f"the second checker refuses it: {error}"
    if not (low <= upper and lower <= high):
        return f"[{low}, {high}] does not meet [{lower}, {upper}]"
    for source in (document["primal"], base["primal"]):
        try:
            for channel in channels(rng, program, source):
                if -program.attained(channel)[1] > high:
                    return "a channel is more useful than the upper end"
        except REFUSED:
            continue
    return ""


def attack(seed: int, count: int, patch: Any = None) -> int:
    pool = documents(seed, 40)
    if patch is not None:
        patch.setattr(useful_proof, "LISTED", 1)
        pool = [pair for pair in pool if verify.disagreements(pair[1]) == []]
    verified = 0
    for index in range(count):
        rng = np.random.default_rng([seed, 7, index])
        base = pool[index % len(pool)][1]
        document, text = forged(rng, base, pool)
        try:
            document = claimed(json.loads(json.dumps(document)))
        except REFUSED:
            continue
        if verify.disagreements(document):
            continue
        verified += 1
        if document["program"]["kind"] == "useful":
            assert falsehood(rng, copy.deepcopy(document), base) == "", text
    return verified


def test_no_forgery_is_false() -> None:
    assert attack(3, 25) > 3


@pytest.mark.long
def test_no_forgery_is_false_at_length() -> None:
    assert attack(5, 400) > 50


def test_no_forgery_is_false_where_corners_are_bounded(monkeypatch: Any) -> None:
    """As of more than 20 letters: the second checker looks at all corners."""
    assert attack(8, 25, monkeypatch) > 3


@pytest.mark.long
def test_no_forgery_is_false_where_corners_are_bounded_at_length(monkeypatch: Any) -> None:
    assert attack(9, 300, monkeypatch) > 45


@pytest.mark.parametrize("field", ["reference", "labels"])
def test_corners_are_bounded_of_the_letters_beside_their_own_law_alone(field: str) -> None:
    """Beside another reference a release tells more than any M says, and a false end was proved."""
    n = 21
    program = large(n, {"kind": "mutual information"}, {}, [*range(n)])
    program["law"] = [[1.0 + s for s in range(n)], [1.0] * n]
    view = program["views"]["V"]
    view["labels"] = [[*range(n)]] * 2
    dual = {"objective": 1, "multipliers": {}, "letters": [0.0] * n}
    assert not UsefulProof(program).lower(dual) > 0
    others = [[[*range(n)][::-1]] * 2, [[*range(n)], [-1] * n]]
    for tables in others if field == "reference" else others[1:]:
        view[field] = tables
        with pytest.raises(UnaffordableError, match="of the letters themselves"):
            UsefulProof(program).lower(dual)


@pytest.mark.parametrize(
    "bound", [0.5, 1.0, 1.0 + 2.0**-52, "1152921504606846977/1152921504606846976"]
)
def test_corners_whose_ratio_is_hardly_above_one_tell_next_to_nothing(bound: Any) -> None:
    n = 21
    program = large(n, {"kind": "chi-squared"}, {}, [*range(n)])
    program["law"] = [[5e-324, *[1e300] * (n - 1)]]  # a mass less than any float
    program["auxiliaries"]["r"]["bound"] = [bound, 0.0]
    dual = {"objective": 1, "multipliers": {}, "letters": [0.0] * n}
    assert 0 <= -UsefulProof(program).lower(dual) < 1e-18


def test_it_says_that_it_is_the_greatest() -> None:
    source = cpv.DiscreteSource.identical([0.2, 0.3, 0.5])
    text = "\n".join(stated(document_of(cpv.MostUsefulRelease(source, [cpv.LocalPrivacy(1)]))))
    assert "the greatest value that any release attains" in text
    assert "maximised: 1 × information" in text
    assert "3 outputs, or more of the same" in text
