"""Proofs of Hamming water-filling: ends at any level, documents, forgeries, honest rounding."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings, strategies as st

import cvxprivacy as cpv
from cvxprivacy.certificates.hamming import Masses, _wider
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.__main__ import main
from cvxprivacy_verifier.balls import UnprovableError, ceil, floor
from cvxprivacy_verifier.hamming_proof import Filling, HammingProof
from tests.formulations.hamming_truth import (
    KNOWN,
    PMF,
    ball,
    contains,
    level_of,
    part,
    poured,
    random_budget,
    random_pmf,
    rationals,
    truth,
)
from tests.lengths import some_at_length

WRONG = (0.0, 1e-9, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-9, 1 + 1e-9, 1.0001, 1.01, 1.1, 2.0, 50.0)


def water(problem: cpv.HammingWaterFilling, level: Fraction) -> Filling:
    return Filling(Masses(problem.masses, problem.total), level)


@pytest.mark.parametrize("budget", KNOWN)
def test_a_wrong_level_is_looser_and_proves_nothing_false(budget):
    problem = cpv.HammingWaterFilling(PMF, budget, units="nats")
    with ctx.workprec(400):
        exact = truth(PMF, budget)
        for factor in (0.99, 1.01):
            level = problem.level * Fraction(factor)
            ends, filling = problem.enclosure(level), water(problem, level)
            off = filling.distortion - Fraction(budget)
            assert (off > 0) == (factor > 1)
            # strictly looser at both ends: the error of the lower one is of second order
            assert 1e-9 < float(exact) - ends.lower < 1e-3
            assert 1e-6 < ends.upper - float(exact) < 1e-1
            # the channel's own information is a lower end on one side and an upper one on the
            # other, and mirrored tangents or chords would be false: such a proof would be caught
            ours, slope = float(filling.rate), filling.slope
            assert (ours < float(exact)) == (factor > 1)
            mirrored = ours - slope * float(off)
            assert ours + slope * float(off) == pytest.approx(ends.lower, abs=1e-13)
            assert (mirrored > float(exact)) == (factor < 1)
            assert abs(mirrored - float(exact)) > 1e-4


@pytest.mark.parametrize("factor", [0.3, 0.9, 1.0, 1.05, 1.5])
def test_the_lower_end_is_the_bound_of_explicit_multipliers(factor):
    """Build r(x | x̂) for every output, also those under water, and minimise over x̂ by hand."""
    p, budget = np.array([*PMF[:5], 0.05]), 0.25
    problem = cpv.HammingWaterFilling(p, budget, units="nats")
    level = float(problem.level) * factor
    kept = p > level
    delta = (kept.sum() - 1) * level + p[~kept].sum()
    slope = math.log((1 - delta) / level)
    scores = np.empty((6, 6))
    for x_hat in range(6):
        r = np.minimum(p, level)
        if kept[x_hat]:
            r[x_hat] = 1 - delta
            assert r.sum() == pytest.approx(1, abs=1e-15)
        else:
            r[x_hat] = p[x_hat] * (1 - delta) / level
            assert r.sum() <= 1 + 1e-15
            r[x_hat] += 1 - r.sum()
        scores[:, x_hat] = np.log(r / p) + slope * (np.arange(6) != x_hat)
    bound = p @ scores.min(axis=1) - slope * budget
    assert problem.enclosure(level).lower == pytest.approx(max(bound, 0.0), abs=1e-14)
    dense = cpv.HammingWaterFilling(p, budget, units="nats").channel_problem().program
    assert (
        bound <= dense.value(dense.objective, problem.solve().release.to_channel().matrix) + 1e-14
    )


def test_ends_are_on_their_sides_of_the_truth():
    """A thousand ends against 400 bits: unrounded ones would be false half of the time."""
    rng = np.random.default_rng(5)
    tiny = 0
    for number in range(500):
        p = random_pmf(rng, int(rng.integers(2, 8)))
        if rng.random() < 0.3:
            p[0] = 1e-300
            p[1:] /= math.fsum(p[1:])
        budget = random_budget(rng, p)
        units = ("bits", "nats")[int(rng.integers(2))]
        problem = cpv.HammingWaterFilling(p, budget, units=units)
        outcome = problem.enclosure()
        with ctx.workprec(400):
            exact = truth(p, budget) / (arb(2).log() if units == "bits" else 1)
            assert contains(outcome, exact)
            if number < 40:  # and those of any other level are looser, not false
                for factor in WRONG:
                    assert contains(problem.enclosure(float(problem.level) * factor), exact)
            tiny += float(exact) > 0 and outcome.upper - outcome.lower < 1e-14
    assert tiny > 300


def exact(document: dict) -> dict[str, tuple[arb, arb]]:
    """Return what is true of a document's program and release, to 400 bits, by definition.

    The release is written out as a matrix in rationals, and the mutual information taken of it.
    """
    program = document["program"]
    p = [Fraction(m) for m in program["law"]]
    p = [q / sum(p) for q in p]
    budget, unit = Fraction(program["budget"]), 1 if program["units"] == "nats" else arb(2).log()
    level = min(max(Fraction(document["primal"]["level"]), Fraction(0)), max(p))
    size, first = len(p), max(range(len(p)), key=p.__getitem__)
    above = [max(q - level, Fraction(0)) for q in p]
    drawn = (
        [a / sum(above) for a in above]
        if any(above)
        else [Fraction(i == first) for i in range(size)]
    )
    channel = [[(1 - a / q) * d if q else d for d in drawn] for q, a in zip(p, above, strict=True)]
    for i in range(size):
        channel[i][i] += above[i] / p[i] if p[i] else 0

    def changed(matrix) -> Fraction:
        return 1 - sum(q * row[i] for i, (q, row) in enumerate(zip(p, matrix, strict=True)))

    ours, most = changed(channel), 1 - max(p)
    share, other = Fraction(1), [[Fraction(j == first) for j in range(size)] for _ in p]
    if ours > budget:
        share, other = budget / ours, [[Fraction(i == j) for j in range(size)] for i in range(size)]
    elif ours < budget and ours < most:
        share = max(most - budget, Fraction(0)) / (most - ours)
    release = [
        [share * k + (1 - share) * o for k, o in zip(*rows, strict=True)]
        for rows in zip(channel, other, strict=True)
    ]
    marginal = [sum(q * row[j] for q, row in zip(p, release, strict=True)) for j in range(size)]
    rate = sum((-part(m) for m in marginal), arb(0))
    for q, row in zip(p, release, strict=True):
        rate += sum((ball(q) * part(k) for k in row), arb(0))
    before = sum((-part(q) for q in p), arb(0))
    return {
        "value": truth(program["law"], budget) / unit,
        "rate": rate / unit,
        "leakage": rate / unit,
        "equivocation": (before - rate) / unit,
        "distortion": ball(changed(release)),
    }


def false_claims(document: dict) -> list[str]:
    """Return which claims of a document are false, whatever its proof says."""
    claim = document["claim"]
    ends = {"value": (claim["lower"], claim["upper"]), **claim["terms"]}
    with ctx.workprec(400):
        return [
            name
            for name, value in exact(document).items()
            if arb(float(ends[name][0])) > value or arb(float(ends[name][1])) < value
        ]


def signed(document: dict) -> dict:
    """Return a copy that is nowhere the same object, under its own digest."""
    copied = json.loads(json.dumps(document))
    copied["sha256"] = verify.digest(copied)
    return copied


def reclaimed(document: dict) -> dict:
    """Return the document with the claims that it proves."""
    proved = verify.recompute(document)
    claim = {name: proved[name] for name in ("status", "lower", "upper", "terms")}
    return signed({**document, "claim": claim})


HARD_LAWS = (
    [1.0, 1e-30, 1e-50],
    [1.0, 1e-300, 5e-324],
    [1 - 2.0**-53, 2.0**-53],
    [0.5, 0.5],
    [0.25, 0.25, 0.25, 0.25 - 2.0**-54],
    [1.0, *[5e-324] * 3],
    [0.4, 0.35, 0.25 - 1e-17, 1e-17, 1e-40, 0.0],
    [1.0],
)


def hard_budgets(law) -> list[Fraction]:
    p = rationals(law)
    most, kinks = 1 - p[0], [poured(law, q) for q in p]
    values = [Fraction(0), Fraction(5e-324), Fraction(1, 10**900), most / 2, most, Fraction(1)]
    values += [most - Fraction(1, 10**k) for k in (17, 40, 900)]
    values += [end for k in kinks for end in (k, k / 2, k * (1 - Fraction(1, 2**60)))]
    near = float(most)
    values += [Fraction(math.nextafter(near, side)) for side in (0.0, 1.0)] + [Fraction(near)]
    return sorted({budget for budget in values if 0 <= budget <= 1})


@pytest.mark.parametrize("law", some_at_length(HARD_LAWS, 4), ids=str)
def test_honest_claims_verify_however_small_the_masses(law):
    for budget in hard_budgets(law):
        for units in ("bits", "nats"):
            solution = cpv.HammingWaterFilling(law, budget, units=units).solve(accuracy="high")
            assert solution.status == "certified"
            assert solution.certificate.verify()
            assert not false_claims(solution.certificate.document())


@pytest.mark.parametrize("law", HARD_LAWS, ids=str)
def test_what_is_small_is_known_as_precisely_as_what_is_large(law):
    """Next to a letter of nearly all mass entropies are tiny, and their digits are not lost."""
    for budget in (Fraction(0), (1 - rationals(law)[0]) / 2):
        solution = cpv.HammingWaterFilling(law, budget, units="nats").solve()
        for name in ("rate", "equivocation"):
            term = solution.terms[name]
            assert term.upper - term.lower <= 1e-13 * term.upper + 1e-303, name
            assert (term.upper == 0) == (term.lower == 0) or term.upper < 1e-300


@settings(max_examples=25)
@given(
    st.lists(st.floats(0, 1e3, allow_subnormal=True), min_size=1, max_size=6).filter(any),
    st.fractions(0, 1),
    st.sampled_from(["bits", "nats"]),
)
def test_every_honest_certificate_verifies(law, share, units):
    total = sum(map(Fraction, law))
    law = [float(Fraction(m) / total) for m in law]
    problem = cpv.HammingWaterFilling(law, share * (1 - Fraction(max(law))), units=units)
    certificate = problem.solve().certificate
    assert certificate.verify()
    assert not false_claims(certificate.document())


def test_a_proof_file_is_read_without_the_package_s_arrays(tmp_path, capsys):
    solution = cpv.HammingWaterFilling(PMF, Fraction(3, 10), x=list("abcdefg")).solve()
    path = solution.certificate.to_json(tmp_path / "proof.json")
    assert main([str(path)]) == 0
    assert "verified, certified, value in [0.629929" in capsys.readouterr().out
    document = verify.read_document(str(path))
    assert document["program"] == {
        "kind": "hamming", "units": "bits", "law": list(PMF), "budget": "3/10"
    }  # fmt: skip
    level = str(level_of(PMF, Fraction(3, 10)))
    assert document["primal"] == {"level": level}
    assert document["dual"] == {"level": level, "objective": 1}
    code = "import sys; from cvxprivacy_verifier.__main__ import main; "
    code += "assert main(sys.argv[1:]) == 0; "
    code += "assert not {'numpy', 'cvxpy', 'narwhals'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)


def moved(document: dict, path: tuple[str, ...], value) -> dict:
    """Return a signed copy with another value in one place."""
    copied = json.loads(json.dumps(document))
    place = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return signed(copied)


FIELDS = [("lower",), ("upper",), *(("terms", name, end) for name in
          ("rate", "leakage", "equivocation", "distortion") for end in (0, 1))]  # fmt: skip


@pytest.mark.parametrize("budget", [0.0, 0.05, 0.3, 0.6, 0.9])
def test_a_claim_moved_inwards_is_refused(budget):
    document = cpv.HammingWaterFilling(PMF, budget).solve().certificate.document()
    proved = verify.recompute(document)
    assert verify.disagreements(document) == []
    for field in FIELDS:
        end = proved
        for key in field:
            end = end[key]
        inwards = field[-1] in ("lower", 0)
        for far in (False, True):
            value = end + (1e-6 if inwards else -1e-6) if far else math.nextafter(
                end, math.inf if inwards else -math.inf
            )  # fmt: skip
            wrong = verify.disagreements(moved(document, ("claim", *field), value))
            name = field[1] if len(field) == 3 else "the value"
            assert any(problem.startswith(name) for problem in wrong), (field, wrong)
        outwards = math.nextafter(end, -math.inf if inwards else math.inf)
        assert verify.disagreements(moved(document, ("claim", *field), outwards)) == []


GARBAGE = (-1, -1e300, 0, "0", "-7/3", 5e-324, "1/" + "9" * 1999, 0.02, 0.1, 0.26, 0.4, 0.5, 1, 2.0,
           1.7e308, "9" * 2000)  # fmt: skip


def test_every_level_proves_true_ends():
    rng = np.random.default_rng(11)
    laws = [list(PMF), *HARD_LAWS, *(random_pmf(rng, 5).tolist() for _ in range(6))]
    for law in laws:
        if abs(math.fsum(law) - 1) > 1e-9:
            continue
        budgets = hard_budgets(law)
        problem = cpv.HammingWaterFilling(law, budgets[len(budgets) // 2])
        document = problem.solve().certificate.document()
        for _ in range(12):
            primal, dual = (GARBAGE[i] for i in rng.integers(len(GARBAGE), size=2))
            budget = budgets[rng.integers(len(budgets))]
            forged = {
                **document,
                "program": {**document["program"], "budget": str(budget)},
                "primal": {"level": primal},
                "dual": {"level": dual, "objective": 1},
            }
            proved = reclaimed(forged)
            assert verify.disagreements(proved) == []
            assert false_claims(proved) == [], (law, budget, primal, dual)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"rows": {}}, "has a kind, units, a law and a budget"),
        ({"units": "bans"}, "'bans'"),
        ({"law": [0.5, 1]}, "no list of floats"),
        ({"law": (0.5, 0.5)}, "no list of floats"),
        ({"law": [0.5, -0.5]}, "negative"),
        ({"law": [0.5, math.inf]}, "infinite"),
        ({"law": [0.5, math.nan]}, "infinite"),
        ({"law": [0.0, -0.0]}, "no mass"),
        ({"law": []}, "no mass"),
        ({"budget": "-1/10"}, "no probability"),
        ({"budget": "11/10"}, "no probability"),
        ({"budget": 1e-400 - 1}, "no probability"),
        ({"budget": "1/0"}, "no fraction"),
        ({"budget": "0.5"}, "no fraction"),
        ({"budget": math.inf}, "not finite"),
    ],
)
def test_what_is_no_program_is_refused(changed, text):
    program = {"kind": "hamming", "units": "bits", "law": [0.5, 0.5], "budget": "1/4"}
    assert HammingProof(program).unit(1.0) == pytest.approx(1 / math.log(2))
    with pytest.raises(UnprovableError, match=text):
        HammingProof({**program, **changed})


def test_huge_masses_are_exact_too():
    program = {"kind": "hamming", "units": "bits", "law": [1.7e308] * 4 + [5e-324], "budget": "0"}
    proof = HammingProof(program)
    level = {"level": 0}
    assert floor(proof.lower(level)) <= 2.0 <= ceil(proof.upper(level).objective)
    assert proof.lower({"level": 0, "objective": 0}) == 0  # which contradicts nothing


def test_both_ends_are_sharp_where_nearly_everything_cancels():
    """R(D) next to 1 − max p: with 160 bits nothing would be left of it."""
    for law in ([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [1.0, 1e-30, 1e-50]):
        budget = (1 - rationals(law)[0]) * (1 - Fraction(1, 10**60))
        program = {"kind": "hamming", "units": "nats", "law": law, "budget": str(budget)}
        level = {"level": str(level_of(law, budget))}
        proof = HammingProof(program)
        ends = proof.lower(level), proof.upper(level).objective
        for end in ends:
            assert end > 0
            assert end.rad() <= end.mid() * arb(2) ** -99
        with ctx.workprec(2000):
            exact = truth(law, budget)
            assert all(end.overlaps(exact) for end in ends)  # both ends meet at it


def test_a_claim_is_wider_than_the_proof_is_unsure_of():
    for value, radius in ((1.0, 2.0**-50), (1e-30, 0.0), (3.0, 2.0**-200), (0.0, 1e-300)):
        with ctx.workprec(200):
            outcome = arb(value, radius) * arb(1, arb(2) ** -150)
            unsure = max(outcome.mid() * arb(2) ** -100, arb(2) ** -1100)
            for edge in (outcome.lower() - unsure, outcome.upper() + unsure):
                assert _wider(outcome).contains(edge + arb(0, unsure))
            assert _wider(arb(value)).is_exact()
