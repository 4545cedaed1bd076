"""The programs that are printed, evaluated as printed: both ends of what is proved."""

from __future__ import annotations

import math
import re
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import cvxprivacy as cpv
from cvxprivacy.leakage.base import Places
from cvxprivacy.programs.latex_symbols import plus, upright
from tests import instances
from tests.formulations.statement_values import Values, _tokens
from tests.instances import BINARY, COUNTS, HAMMING, KNOWN, SOURCE, D
from tests.latex_value import Line, Parser, each, lines_of
from tests.lengths import some_at_length

L = cpv.leakage
OTHER = cpv.DiscreteSource([[0.3, 0.2], [0.15, 0.35]])
ATTRIBUTES = cpv.DiscreteSource(
    COUNTS[[0, 1, 2, 0]] / COUNTS[[0, 1, 2, 0]].sum(),
    w=[("a", 0), ("a", 1), ("b", 0), ("b", 1)],
)
MEASURES = [
    L.ChiSquared(), L.SquaredHellinger(), L.TotalVariation(), L.HockeyStick(1.25),
    L.VinczeLeCam(), L.JensenShannon(), L.PowerDivergence(1.5),
    L.FInformation([(1, 1, 0.5, 0.5, 0, 1), (2, 2, 1, -3, 1, 0.5), (1, 0.4, 2, 1, 0, 1)]),
    L.EarthMover(), L.GuessingProbability(), L.Gain([[1, 0, 0.5], [0, 1, 0.5]]),
    L.Sibson(2), L.Maximal(),
]  # fmt: skip
DECODED = [
    cpv.TCloseness(0.4), cpv.DeltaDisclosure(2.0), cpv.LDiversity(1.1), cpv.RecordEntropy(1.5),
    cpv.MaximalLeakage(1.4), cpv.KeepProbability(0.3), cpv.PreserveMarginal(),
    cpv.TCloseness(0.5, distance="emd"), cpv.TCloseness(0.5, distance="tv"),
    cpv.PerLetter(L.GuessingProbability(), 0.8), cpv.PointwiseMaximalLeakage(1.5),
]  # fmt: skip


def problems():
    for name, make in instances.FAST.items():
        problem = make(1.0)
        if hasattr(problem, "alphabet"):
            yield name, problem
    for rule in DECODED:
        yield (
            f"decoder, {rule!r}",
            cpv.RateDistortionEquivocation(
                KNOWN, cpv.hamming(3), 0.4, side_information="decoder", criteria=[rule]
            ),
        )
    for rule in DECODED[:3]:
        yield (
            f"both, {rule!r}",
            cpv.RateDistortionEquivocation(
                KNOWN,
                cpv.hamming(3),
                0.4,
                side_information="both",
                criteria=[rule],
                minimize="leakage",
            ),
        )
    for measure in MEASURES:
        yield f"{measure!r}", cpv.PrivacyDistortion(SOURCE, D, budget=0.4, leakage=measure)
        bound = 1.1 * float(measure.total(np.asarray(SOURCE.pmf).sum(1, keepdims=True))) + 0.05
        rule = cpv.PerLetter(measure, round(bound, 3))
        yield f"per letter, {measure!r}", cpv.MinimumDistortion(SOURCE, D, [rule])
    yield "laws", cpv.PrivacyDistortion(
        BINARY, HAMMING, budget=0.2, laws=[OTHER],
        criteria=[cpv.TCloseness(0.1), cpv.Linear([[1, 0], [0, 0]], 0.5)],
    )  # fmt: skip
    for rule in (cpv.LocalPrivacy(0.5, delta=0.1), cpv.LocalPrivacy(0.5, metric=(D + D.T) / 2)):
        yield f"{rule!r}", cpv.PrivacyDistortion(SOURCE, D, budget=1.2, criteria=[rule])
    for rule in (cpv.DeltaDisclosure(0.5), cpv.LocalPrivacy(0.5, delta=0.1),
                 cpv.MarginalDistance(0.02), cpv.LocalPrivacy(1.5),
                 cpv.KeepProbability(0.7), cpv.MaximalLeakage(0.4), cpv.TCloseness(0.1, "emd"),
                 cpv.TCloseness(0.1, "tv"), cpv.PointwiseMaximalLeakage(0.2)):  # fmt: skip
        yield f"laws, {rule!r}", cpv.MinimumDistortion(BINARY, HAMMING, [rule], laws=[OTHER])
    yield "W = X", cpv.PrivacyDistortion(
        cpv.DiscreteSource.identical([0.5, 0.25, 0.25]), cpv.hamming(3), budget=0.25,
        criteria=[cpv.DeltaDisclosure(2), cpv.LDiversity(1.25)],
    )  # fmt: skip
    yield "d of w", cpv.PrivacyDistortion(
        SOURCE, np.round(np.random.default_rng(1).random((3, 4, 4)), 2), budget=0.3, encoder="wx",
        criteria=[cpv.DeltaDisclosure(0.5), cpv.LocalPrivacy(5.5)],
    )  # fmt: skip
    given_x = [cpv.ConditionalLeakageCap(0.02)]
    yield "given x", cpv.PrivacyDistortion(SOURCE, D, 0.3, encoder="wx", criteria=given_x)
    yield "given x, laws", cpv.PrivacyDistortion(
        BINARY, HAMMING, 0.1, encoder="wx", criteria=given_x, laws=[OTHER]
    )  # fmt: skip
    for side in ("decoder", "both"):
        yield f"given x, {side}", cpv.RateDistortionEquivocation(
            KNOWN, cpv.hamming(3), 0.4, side_information=side, encoder="wx", criteria=given_x,
            minimize="leakage",
        )  # fmt: skip
    yield (
        "d of w, x seen",
        cpv.PrivacyDistortion(
            SOURCE, np.round(np.random.default_rng(1).random((3, 4, 4)), 2), budget=0.36
        ),
    )
    yield (
        "marginal distance",
        cpv.PrivacyDistortion(SOURCE, D, budget=0.5, criteria=[cpv.MarginalDistance(0.02)]),
    )
    yield "attributes", cpv.RateDistortionEquivocation(ATTRIBUTES, D, 0.9, max_leakage={"0": 0.05})
    plain = cpv.PrivacyDistortion(SOURCE, D, budget=0.4)
    q = plain.variables["Q"]
    yield "added", plain.with_constraint("mine", q[0, :2] <= 0.125)
    yield "added from below", plain.with_constraint("mine", q[0, 3] >= 0.05)
    yield "norm", plain.with_constraint("mine", cp.norm_inf(q[0] - 0.1) <= 0.05)
    yield "sums", plain.with_constraint("mine", plain.rate + 0.5 * plain.distortion <= 1.25)
    yield "each", plain.with_constraint("mine", plain.risk.each() <= 0.06)


CASES = dict(problems())


NAMES = list(CASES)


@cache
def solution_of(name):
    """Solve once what is read in two ways."""
    return CASES[name].solve()


@pytest.mark.long
@pytest.mark.parametrize("name", some_at_length(NAMES, 40))
def test_a_dual_is_worth_what_is_proved(name):
    problem, solution = CASES[name], solution_of(name)
    values = Values(problem, solution)
    objective, lines = lines_of(problem.dual_latex)
    expected, domains = values.symbols, values.domains
    read = [Line(line, expected, domains) for line in lines if r"\text{ free}" not in line
            and not re.fullmatch(r"\\tau_\{.*\} \\ge 0", line)]  # fmt: skip
    for line in read:  # τ is the least that its line allows
        top = re.search(r"\\le (\\tau_\{(?:[^{}]|\{[^{}]*\})*\})", line.text)
        if top:
            least: dict = {}
            for env in each(line.letters, domains):
                k = env.get("k")
                least[k] = max(least.get(k, 0.0), line.sides[0][0](env))
            expected[_tokens(top[1])] = lambda b, a, g, v=least: v[dict(a).get("k")]
    size = max(1.0, abs(solution.value))
    for line in read:
        assert line.excess() <= 1e-7 * size, line.text
    assert Parser(objective, expected, domains).sum()({}) == pytest.approx(
        solution.lower, abs=1e-6 * size
    )
    # what is released meets its bound: no term is missing that would loosen it
    law = solution.certificate.program.mass
    loose = 0.0
    for env in each(read[0].letters, domains):
        s = values.rows.get(tuple(env[letter] for letter in problem.alphabet.encoder_inputs))
        if s is not None:
            weight = values.channel[s, env[values.y]] * (
                1.0 if problem.alphabet.several else law[s]
            )
            loose += weight * (read[0].sides[1][0](env) - read[0].sides[0][0](env))
    assert loose <= 2e-6 * size


PLAIN = [name for name in CASES if "arth" not in name]


@pytest.mark.long
@pytest.mark.parametrize("name", some_at_length(PLAIN, 40))
def test_a_program_is_worth_what_its_release_attains(name):
    problem, solution = CASES[name], solution_of(name)
    values = Values(problem, solution)
    objective, lines = lines_of(problem.latex_expanded)
    outcome = Parser(objective, values.symbols, values.domains).sum()({})
    assert outcome == pytest.approx(solution.value, abs=1e-6 * max(1.0, abs(solution.value)))
    read = 0
    for line in lines:
        if not re.search(r"[ua]_\{|\\min_\{T|\\text\{ forbidden|\\hat X|p_x|under each", line):
            assert Line(line, values.symbols, values.domains).excess() <= 2e-6, line
            read += 1
    assert read >= 2  # the channel is one, at the least
    assert math.isfinite(outcome)


@pytest.mark.parametrize("measure", some_at_length([L.MutualInformation(), *MEASURES], 6), ids=repr)
def test_scores_as_printed_are_minorants(measure):
    """Whatever satisfies the printed conditions is below F as it is computed."""
    rng = np.random.default_rng(7)
    pi = np.array([0.2, 0.3, 0.5])
    fitted = measure.fitted(range(3), [0, 1, 2])
    score, conditions = fitted.latex_scores(Places())
    far = np.abs(np.subtract.outer(range(3), range(3))) / 2
    table: dict = {}
    expected = {
        "p": lambda b, a, g: pi[a[0][1]],
        "G": lambda b, a, g: [[1, 0, 0.5], [0, 1, 0.5]][a[0][1]][a[1][1]],
        r"\rho": lambda b, a, g: far[a[0][1], a[1][1]],
    }
    guesses = 2 if type(measure) is L.Gain else 3
    domains = {"w": [0, 1, 2], "w'": [0, 1, 2], "g": list(range(guesses)), r"\hat x": [0]}
    symbol = _tokens(measure.symbol)
    names = ["r", *(rf"{letter}_{{{symbol}}}" for letter in ("s", "t", "f", "g", r"\eta"))]
    for name in names:
        expected[name] = lambda b, a, g, name=name: table[name][a[0][1]]
    read = [Line(line, expected, domains) for line in conditions]
    value = Parser(score, expected, domains).sum()
    laws = any("= 1" in line for line in conditions)
    tangents = conditions[-1].startswith("0 <")  # t is a point where f has a tangent
    accepted, least = 0, math.inf
    while accepted < 50:
        for name in names:
            drawn = rng.dirichlet(np.ones(guesses)) if laws else rng.uniform(-2.2, 1.6, 3)
            table[name] = np.exp(drawn) if tangents else drawn
        if conditions[0].startswith("s_") and " = " in conditions[0]:  # s is defined by t
            shift = [read[0].sides[1][0]({"w": w, r"\hat x": 0}) for w in range(3)]
            table[f"s_{{{symbol}}}"] = np.array(shift)
        if max(line.excess_at(**{r"\hat x": 0}) for line in read) > 1e-12:
            continue
        accepted += 1
        s = np.array([value({"w": w, r"\hat x": 0}) for w in range(3)])
        joint = rng.dirichlet(np.ones(3))[:, None]
        room = float(fitted.value(joint, pi)[0]) - float(s @ joint[:, 0])
        assert room >= -1e-9
        least = min(least, room)
    assert least < 1.0


@pytest.mark.parametrize(
    ("measures", "letters"),
    [
        ((L.Gain([[1, 0], [0, 1]]), L.Gain([[2, 0], [0, 1]])), ("G(g", "G_{2}(g")),
        ((L.EarthMover(), L.EarthMover([[0, 0.5], [0.5, 0]])), (r"\rho(w", r"\rho_{2}(w")),
    ],
    ids=["gains", "ground distances"],
)
def test_numbers_of_two_measures_of_a_kind_are_told_apart(measures, letters):
    first, second = measures
    for laws in ([], [OTHER]):
        rules = [cpv.LeakageCap(0.9, leakage=second)]
        problem = cpv.PrivacyDistortion(
            BINARY, HAMMING, budget=0.1, leakage=first, criteria=rules, laws=laws
        )
        for statement in (problem.latex_expanded, problem.dual_latex):
            assert all(letter in statement for letter in letters)


def test_a_factor_of_one_is_not_written():
    assert plus([(1, "x"), (-0.7, "1"), (1, "1")]) == "x - 0.7 + 1"


# ---- Gaussian programs -------------------------------------------------------------------


def pieces(problem, solution):
    """Return Σ̄, and S, B and the reference of each view, from the moments."""
    gamma = np.array(problem.source.exact, float)
    z, v = list(problem.source.z) if problem.given else [], list(problem.encoded)

    def conditional(a, b):
        ours = gamma[np.ix_(a, b)]
        if not z:
            return ours
        return ours - gamma[np.ix_(a, z)] @ np.linalg.solve(
            gamma[np.ix_(z, z)], gamma[np.ix_(z, b)]
        )

    above = conditional(v, v)
    results = {}
    for name, view in solution.certificate.program.views.items():
        a = list(view.of)
        b = conditional(a, v) @ np.linalg.inv(above)
        results[name] = (
            conditional(a, a) - b @ conditional(v, a),
            b,
            gamma[np.ix_(a, a)] if name == "W" else above,
        )
    return above, results


POURED = cpv.ReverseWaterFilling([[2, 1], [1, 2]], 1)
GAUSSIAN = {
    name: make(1.0)
    for name, make in instances.FAST.items()
    if name in ("quadratic", "weights", "cap", "attributes", "gaussian rate", "gaussian leakage")
} | {
    "entropy": cpv.QuadraticGaussian(instances.SCALAR, 0.5, entropy=1),
    "no noise": POURED.with_constraint("mine", POURED.variables["Sigma"][0, 0] <= 0.375),
}


@pytest.mark.parametrize("name", GAUSSIAN)
def test_a_gaussian_dual_is_worth_what_is_proved(name):
    """max Σ ω (½ log det R + ½ log det Y + ½ (m − tr YS)) − tr PΣ̄ − λb, as it is printed."""
    problem = GAUSSIAN[name]
    solution, text = problem.solve(), problem.dual_latex
    program, duals = solution.certificate.program, solution.duals
    nat = 1.0 / math.log(2) if problem.units == "bits" else 1.0
    assert (r"\log_2" in text) == (nat != 1.0)
    above, views = pieces(problem, solution)
    p = {key: np.asarray(value) for key, value in duals.items() if np.ndim(value) == 2}
    slack = sum(part for key, part in p.items() if key != "0 ≼ Σ")
    p_above = next(part for key, part in p.items() if key.startswith("Σ ≼"))
    value = -np.trace(p_above @ above) + float(program.objective.constant)
    assert (r"P_{\text{cap}}" in text) == ("cap" in p)
    if "cap" in p:
        value -= np.trace(p["cap"] @ np.asarray(program.caps["cap"], float))
    weights = dict(program.objective.weights)
    if program.objective.costs is not None:
        slack = slack + program.objective.costs
    for key, row in program.constraints.items():
        assert rf"\lambda_{{{upright(key)}}}" in text
        assert duals[key] >= 0
        value -= duals[key] * float(row.number)
        if row.expression.costs is not None:
            slack = slack + duals[key] * row.expression.costs
        for view, beta in row.expression.weights.items():
            weights[view] = weights.get(view, 0.0) + duals[key] * float(beta)
    for view, omega in weights.items():
        s, b, full = views[view]
        y = np.linalg.inv(solution.posteriors[view])
        assert f"Y_{{{view}}}" in text
        assert (rf"\mathrm{{tr}}\,Y_{{{view}}} S" in text) == bool(np.abs(s).max() > 1e-9)
        logs = np.linalg.slogdet(full)[1] + np.linalg.slogdet(y)[1]
        value += float(omega) * nat / 2 * (logs + len(y) - np.trace(y @ s))
        slack = slack - float(omega) * nat / 2 * b.T @ y @ b
    assert min(np.linalg.eigvalsh(part)[0] for part in (slack, *p.values())) >= -1e-7
    assert value == pytest.approx(solution.lower, abs=1e-6)


@pytest.mark.parametrize("name", ["reverse", "box"])
@pytest.mark.parametrize("units", ["bits", "nats"])
def test_the_dual_of_water_in_boxes(name, units):
    problem = {
        "reverse": cpv.ReverseWaterFilling([0.5, 1, 4], 2, units=units),
        "box": cpv.BoxWaterFilling([0.5, 1, 4], [1, 2, 1], 1.5, units=units),
    }[name]
    solution, domains = problem.solve(), {"i": [0, 1, 2]}
    offsets, caps = ([float(v) for v in part] for part in (problem._offsets, problem._caps))
    poured = [float(x) for x in problem.allocation]

    def at(values):
        return lambda below, pairs, argument: float(values[below[0][1]])

    expected = {
        "Y": at(1 / np.diag(solution.posteriors["W"])), "P": at(np.diag(solution.duals["Σ ≼ Σ_X"])),
        "y": at(caps), r"\sigma": at(np.sqrt(caps)), "x": at(poured), "D": at(poured),
        r"\lambda": at([1 / o if o else 0.0 for o in offsets]),
        rf"\lambda_{{{upright(problem._total)}}}": lambda b, a, g: solution.duals[problem._total],
    }  # fmt: skip
    for latex, value in (
        (problem.dual_latex, solution.lower), (problem.latex_expanded, solution.value)
    ):  # fmt: skip
        objective, lines = lines_of(latex)
        for line in lines:
            line = line.replace("Y_i > 0", r"0 \le Y_i")
            assert Line(line, expected, domains).excess() <= 1e-9
        assert Parser(objective, expected, domains).sum()({}) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("units", ["bits", "nats"])
def test_the_dual_of_the_categorical_example(units):
    problem = cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.3, units=units)
    solution, p = problem.solve(), [0.4, 0.3, 0.2, 0.1]
    release = solution.release.to_channel().matrix
    r = [np.minimum(p, float(problem.level)) for _ in p]
    for x in range(4):
        r[x][x] = 1 - 0.3
    expected = {
        "p": lambda b, a, g: release[g[0][1], a[0][1]] if g else p[a[0][1]],
        "Q": lambda b, a, g: p[a[0][1]] * release[a[0][1], a[1][1]],
        "q": lambda b, a, g: float(np.array(p) @ release[:, a[0][1]]),
        "r": lambda b, a, g: r[g[0][1]][a[0][1]],
        r"\nu": lambda b, a, g: solution.duals["mass"][a[0][1]],
        r"\lambda_{\text{budget}}": lambda b, a, g: solution.duals["budget"],
    }
    domains = {"x": list(range(4)), r"\hat x": list(range(4))}
    for latex, value in (
        (problem.dual_latex, solution.lower), (problem.latex_expanded, solution.value)
    ):  # fmt: skip
        objective, lines = lines_of(latex)
        if latex == problem.dual_latex:  # an r of letters under water adds up to less than 1
            assert all(sum(r[x]) <= 1 + 1e-12 for x in range(4))
            lines = [line for line in lines if not line.startswith(r"\sum_{x} r")]
        assert all(Line(line, expected, domains).excess() <= 1e-9 for line in lines)
        assert Parser(objective, expected, domains).sum()({}) == pytest.approx(value, abs=1e-9)
