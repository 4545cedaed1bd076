"""Programs too large for tables, on small ones that are taken for such."""

import json

import numpy as np
import pytest
from scipy import sparse

import cvxprivacy as cpv
from cvxprivacy.additive import AdditiveCost, Part
from cvxprivacy.certificates import stored
from cvxprivacy.programs import channel as programs
from cvxprivacy.solvers.bregman.entries import AllEntries, SomeEntries, Sums
from cvxprivacy.solvers.bregman.method import Relaxed, suits
from cvxprivacy.tables import TableSchema
from cvxprivacy_verifier import verify
from cvxprivacy_verifier.channel_statement import _Words
from cvxprivacy_verifier.elimination import elimination_of
from tests.lengths import rest_at_length
from tests.second_checker import check

SCHEMA = TableSchema(sensitive=("w",), key=("age", "sex", "job"))


def people(seed: int = 0, records: int = 500) -> cpv.DiscreteSource:
    """Return a table of which most cells have a few records."""
    rng = np.random.default_rng(seed)
    age, sex, job = (
        rng.integers(12, size=records),
        rng.integers(2, size=records),
        rng.integers(6, size=records),
    )
    w = (age + 3 * sex + job + rng.integers(8, size=records)) // 9
    import pandas as pd

    frame = pd.DataFrame({"w": w.astype(str), "age": age, "sex": sex, "job": job.astype(str)})
    return cpv.DiscreteSource.from_schema(frame, SCHEMA)


def problem_of(source: cpv.DiscreteSource, share: float = 0.3, **options) -> cpv.PrivacyDistortion:
    kinds = {"age": "ordinal", "sex": "hamming", "job": "hamming"}
    d = cpv.per_attribute(kinds, source)
    problem = cpv.PrivacyDistortion(source, d, budget=1, **options)
    return problem.at(budget=share * problem.greatest_distortion)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take programs of over 100 entries for too large."""
    for module in (programs, stored):
        monkeypatch.setattr(module, "DENSE", 100)


@pytest.mark.parametrize(
    ("seed", "share", "units"), rest_at_length([(0, 0.3, "bits"), (1, 0.1, "nats")], 1)
)
def test_both_ends_hold_the_optimum_and_are_near(seed, share, units, monkeypatch):
    source = people(seed)
    reference = problem_of(source, share, units=units).solve()
    for module in (programs, stored):
        monkeypatch.setattr(module, "DENSE", 100)
    solution = problem_of(source, share, units=units).solve()
    assert "all entries in blocks" in solution.log[-1]
    assert solution.lower <= reference.upper + 1e-12
    assert solution.upper >= reference.lower - 1e-12
    # 3e-4 nats in the objective's scale, and what a release of few entries costs
    assert solution.gap < 5e-4 * (1 if units == "nats" else 1 / np.log(2))
    assert solution.status == "loose"
    document = json.loads(json.dumps(solution.certificate.document()))
    assert solution.certificate.verify()
    check(document)


@pytest.mark.usefixtures("few")
def test_the_release_is_sparse_and_draws_its_own_shares(tmp_path):
    solution = problem_of(people()).solve()
    channel, m = solution.channel, len(solution.channel.outputs)
    assert channel.matrix.nnz < 0.5 * m * m
    assert np.abs(channel.matrix.sum(axis=1) - 1).max() < 1e-12
    assert abs(channel.released_marginal.sum() - 1) < 1e-12
    letter = max(channel.inputs, key=lambda x: channel.matrix[[channel._rows[x]]].nnz)
    import pandas as pd

    frame = pd.DataFrame([letter] * 20_000, columns=list(SCHEMA.key))
    drawn = channel.apply(frame, seed=1)
    shares = drawn.value_counts(normalize=True)
    row = channel.matrix[[channel._rows[letter]]].toarray()[0]
    for output, share in zip(channel.outputs, row, strict=True):
        assert abs(shares.get(output, 0.0) - share) < 6 * np.sqrt(share / 20_000) + 1e-12
    again = cpv.Channel.load(channel.save(tmp_path / "channel.json"))
    assert (again.matrix != channel.matrix).nnz == 0
    assert again.apply(frame, seed=1).equals(drawn)
    posterior = channel.posterior
    used = channel.released_marginal > 0
    assert np.allclose(posterior.sum(axis=1)[used], 1)
    assert channel.to_frame().shape == (m, m)
    for refused in (lambda: channel.estimate(np.ones(m)), lambda: channel.to_sdcmicro("x.csv")):
        with pytest.raises(cpv.InputError, match="matrix"):
            refused()


@pytest.mark.usefixtures("few")
def test_the_certificate_comes_back_from_its_document(tmp_path):
    solution = problem_of(people()).solve()
    document = json.loads(json.dumps(solution.certificate.document()))
    again = stored.restored(document, solution.certificate.program)
    assert (again.primal.matrix != solution.certificate.primal.matrix).nnz == 0
    assert again.document()["primal"] == document["primal"]
    residuals = solution.certificate.residuals
    assert residuals["complementarity"] + residuals["stationarity"] == pytest.approx(
        solution.gap, abs=1e-9
    )


@pytest.mark.usefixtures("few")
def test_what_needs_no_steps():
    source = people()
    free = problem_of(source, 1.01).solve()
    assert (free.status, free.value) == ("certified", 0.0)


@pytest.mark.usefixtures("few")
def test_a_budget_below_the_least_is_proved_infeasible():
    source = people()
    d = cpv.Distortion(AdditiveCost((
        Part(np.full((1, 1), 0.5), np.zeros(len(source.x), int), np.zeros(len(source.x), int)),
        *cpv.per_attribute(dict.fromkeys(SCHEMA.key, "hamming"), source).cost.parts,
    )), inputs=source.x, outputs=source.x)  # fmt: skip
    with pytest.raises(cpv.InfeasibleError, match="budget"):
        cpv.PrivacyDistortion(source, d, budget=0.4).solve()


@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("outputs", [2, 18])
def test_rows_that_contradict_each_other_are_proved_to(outputs):
    rng = np.random.default_rng([99, outputs])
    source = cpv.DiscreteSource(rng.dirichlet(np.ones(54)).reshape(3, 18))
    d = rng.random((18, outputs))
    budget = float(source.p_x @ d.min(axis=1)) + 0.01
    away = cpv.Linear(-d, -budget - 0.01, name="away")
    problem = cpv.PrivacyDistortion(source, d, budget=budget, criteria=[away])
    solution = problem.solve(certify=False)
    assert solution.status == "infeasible"
    assert solution.log[-1].endswith("infeasible")
    check(json.loads(json.dumps(solution.certificate.document())))


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_a_frontier_has_its_band():
    curve = cpv.frontier(problem_of(people()), tol=0.05)
    assert curve.band <= 0.05
    assert len(curve.points) >= 3


def odd_problem(seed: int) -> cpv.PrivacyDistortion:
    """Masses from 1e-9, equal letters, ties, one output, |W| = 1 and 50, two rows."""
    rng = np.random.default_rng([99, seed])
    labels, n, m = rng.choice([1, 2, 7, 50]), int(rng.integers(11, 30)), int(rng.choice([1, 11]))
    law = rng.dirichlet(np.full(labels * n, rng.choice([0.02, 0.3, 1.0]))).reshape(labels, n)
    law = (law + 1e-12) * 10.0 ** rng.uniform(-9 * rng.integers(2), 0, n)
    law[:, n // 2 :] = law[:, : n - n // 2] if rng.integers(2) else law[:, n // 2 :]
    source = cpv.DiscreteSource(law / law.sum())
    d, cost = (np.floor(rng.random((n, m)) * k) / k for k in (rng.choice([3, 1e6]), 1e6))
    least, most = float(source.p_x @ d.min(axis=1)), float((source.p_x @ d).min())
    row = float(source.p_x @ cost.min(axis=1)) + rng.uniform(-0.05, 0.6)
    rows = [cpv.Linear(cost, row, name="row")] if rng.integers(2) else []
    budget = least + rng.choice([0.0, 0.1, 0.5, 1.0]) * (most - least)
    return cpv.PrivacyDistortion(source, d, budget=budget, criteria=rows, units="nats")


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_at_length(range(24), 12))
def test_odd_laws_have_true_ends(seed, monkeypatch):
    reference = odd_problem(seed).solve(certify=False)
    for module in (programs, stored):
        monkeypatch.setattr(module, "DENSE", 10)
    solution = odd_problem(seed).solve(certify=False)
    feasible = reference.status != "infeasible"
    assert solution.status != "infeasible" or not feasible
    if feasible:
        assert solution.lower <= reference.upper + 1e-12
        assert solution.upper >= reference.lower - 1e-12
    assert solution.certificate.verify()


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_at_length(range(24), 12))
def test_each_step_knows_both_ends(seed):
    """By duality the ends in floats never cross but by rounding; no price is negative."""
    problem = odd_problem(seed)
    value = problem.solve(certify=False).lower
    for iterate in Relaxed(problem.program).steps():
        assert (iterate.sums.prices >= 0).all()
        dear = 1e-7 * float(iterate.sums.prices.sum()) / iterate.sums.weight  # single precision
        assert iterate.lower <= value + 1e-5 * (1 + abs(value)) + dear
        assert iterate.lower <= iterate.upper + 1e-5 * (1 + abs(iterate.upper)) + dear
        if iterate.number >= 60:
            break


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "change", [{"criteria": [cpv.RecordEntropy(5)]}, {"leakage": cpv.leakage.TotalVariation()}]
)
def test_what_the_method_does_not_solve_is_refused_before(change):
    problem = problem_of(people(), **change)
    assert not suits(problem.program)
    with pytest.raises(cpv.InputError, match="letters to release as"):
        problem.solve()


@pytest.mark.usefixtures("few")
def test_a_solver_by_name_is_refused():
    with pytest.raises(cpv.InputError, match="no conic solver is asked"):
        problem_of(people()).solve(method="conic")


@pytest.mark.usefixtures("few")
def test_time_is_kept_and_the_best_so_far_is_returned():
    steps = []
    solution = problem_of(people()).solve(time_limit=0.3, progress=steps.append)
    assert steps
    assert 0 <= solution.lower <= solution.upper < np.inf
    assert solution.channel is not None


@pytest.mark.long
@pytest.mark.parametrize("priced", [False, True])
def test_several_bounds_and_a_price_are_kept(priced, monkeypatch):
    source = people()

    class Priced(cpv.PrivacyDistortion):
        def formulation(self):
            objective, rows = super().formulation()
            return objective + 0.2 * self.distortion, rows

    ages = np.array([[abs(x[0] - y[0]) / 11 for y in source.x] for x in source.x])
    kinds = {"age": "ordinal", "sex": "hamming", "job": "hamming"}
    d = cpv.per_attribute(kinds, source)
    problem = (Priced if priced else cpv.PrivacyDistortion)(source, d, budget=0.25)
    problem = problem.with_constraint("age", cpv.Linear(ages, 0.02))
    reference = problem.solve()
    assert min(reference.duals[name] for name in ("budget", "age")) > (-1 if priced else 0.01)
    for module in (programs, stored):
        monkeypatch.setattr(module, "DENSE", 100)
    solution = problem.solve()
    assert "all entries in blocks" in solution.log[-1]
    assert solution.lower <= reference.upper + 1e-12
    assert solution.upper >= reference.lower - 1e-12
    assert solution.gap < 1e-3
    assert solution.duals["age"] == pytest.approx(reference.duals["age"], abs=0.1)


def test_all_entries_and_some_of_all_choose_alike(few):
    program = problem_of(people()).program
    of = Relaxed(program)
    rng = np.random.default_rng(3)
    sums = Sums(rng.normal(size=(len(of.law) - 1, program.m)), 2.0, np.array([3.0]))
    x, y = (axis.ravel() for axis in np.indices((program.n, program.m)))
    some = SomeEntries(program, of.likelihood, of.law, of.smoothness, x, y)
    g = some.slope(sums.slopes) + (sums.weight - 1) * some.costs[0]
    shares = some.law_of(-(g + sums.prices @ some.costs[1:]) / of.smoothness)
    expected, chosen = some.of(shares), of.all.chosen(sums)
    assert isinstance(of.all, AllEntries)
    assert np.allclose(chosen.joint, expected.joint, rtol=1e-4, atol=1e-9)
    assert chosen.spent == pytest.approx(expected.spent, rel=1e-4)
    table = (g + sums.prices @ some.costs[1:]).reshape(program.n, program.m)
    assert chosen.least == pytest.approx(program.mass @ table.min(axis=1), rel=1e-5)
    # how costs answer to their prices: a difference quotient
    more = of.all.chosen(Sums(sums.slopes, sums.weight, sums.prices + 0.05))
    assert (chosen.spent - more.spent) / 0.05 == pytest.approx(expected.answers[0], rel=0.05)


# ---- the proof, one attribute after the other ---------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_elimination_proves_what_all_entries_do(seed, monkeypatch):
    source = people(seed, 300)
    program = problem_of(source).program.to_dict()
    rng = np.random.default_rng(seed)
    views = {name: (len(source.w), program["outputs"]) for name in program["views"]}
    dual = {
        "scores": {k: rng.normal(size=shape).tolist() for k, shape in views.items()},
        "multipliers": {"budget": 0.7 + seed},
        "auxiliaries": {},
        "objective": seed % 2,
    }
    monkeypatch.setattr("cvxprivacy_verifier.elimination._FEWER", 0)
    one = verify.proof_of(program)
    assert one.elimination is not None
    monkeypatch.setattr("cvxprivacy_verifier.elimination._FEWER", 1e9)
    other = verify.proof_of(program)
    assert other.elimination is None
    low, entry_by_entry = one.lower(dual), other.lower(dual)
    assert low.overlaps(entry_by_entry)
    assert abs(low.mid() - entry_by_entry.mid()) < 1e-28
    assert low.rad() < 1e-25


@pytest.mark.parametrize("seed", range(3))
def test_a_cost_is_described_alike_either_way(seed, monkeypatch):
    program = problem_of(people(seed, 200)).program.to_dict()
    rng = np.random.default_rng(seed)
    for part in program["rows"]["budget"]["term"]["cost"]["parts"]:
        part["rows"] = rng.permutation(part["rows"]).tolist()
        part["table"] = [[c if rng.random() < 0.9 else 0 for c in row] for row in part["table"]]
    term = program["rows"]["budget"]["term"]
    row_by_row = _Words(program).term(term)
    monkeypatch.setattr("cvxprivacy_verifier.elimination._FEWER", 0)
    assert _Words(program).term(term) == row_by_row
    assert " of " in row_by_row


@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "places", [[10**9], [-1], [1.0], [True], [0, 0], [1, 0]], ids=["far", "low", "x", "b", "2", "o"]
)
def test_places_that_are_none_are_refused(places, tmp_path):
    channel = problem_of(people()).solve(time_limit=0.2).channel
    path = channel.save(tmp_path / "channel.json")
    document = json.loads(path.read_text())
    document["matrix"]["places"][0] = places
    document["matrix"]["values"][0] = [1 / len(places)] * len(places)
    path.write_text(json.dumps(document))
    with pytest.raises(cpv.InputError, match="path"):
        cpv.Channel.load(path)


def test_a_sparse_array_that_is_none_is_refused():
    broken = sparse.csr_array(np.eye(2))
    broken.indices[0] = 10**9
    with pytest.raises(cpv.InputError, match="matrix"):
        cpv.Channel(broken, inputs="ab", outputs="ab")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["outputs", "places", "law", "parts"])
def test_a_plan_is_not_made_of_what_would_take_for_ever(kind):
    # hours, if all of these are one bucket of a dictionary, or are gone through
    n, modulus = 200_000, 2**61 - 1
    part = {"table": [[1]], "rows": [0] * n, "columns": [0] * n}
    law, m, parts = [[1] * n], n, [part]
    if kind == "outputs":
        m = 10**10
    elif kind == "places":
        part["rows"] = [k * modulus for k in range(n)]
    elif kind == "law":
        law = [[2.0 ** (61 * (k % 30) - 1037) for k in range(i, n + i)] for i in (0, 7, 13)]
    else:
        parts = [{**part, "rows": [k * modulus]} for k in range(n)]
    program = {
        "law": law, "outputs": m, "lower": None, "upper": None, "auxiliaries": {}, "views": {},
        "objective": {"cost": {"parts": parts}}, "rows": {},
    }  # fmt: skip
    assert (elimination_of(program) is None) == (kind != "law")
