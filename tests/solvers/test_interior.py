"""The interior-point method for channel programs: its steps, its blocks, and what it reaches."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mpmath import mp

import cvxprivacy as cpv
from cvxprivacy.leakage.f_information import logarithmic_mean
from cvxprivacy.settings import InteriorPoint, using
from cvxprivacy.solvers import presolve
from cvxprivacy.solvers.channel import ChannelTask
from cvxprivacy.solvers.driver import solve
from cvxprivacy.solvers.interior import method as interior
from cvxprivacy.solvers.interior.blocks import Blocks, Square
from cvxprivacy.solvers.interior.newton import Newton, Residuals
from cvxprivacy.solvers.interior.point import HIGH, LOW, Layout
from cvxprivacy.solvers.interior.program import ScaledProgram
from cvxprivacy.solvers.interior.start import start
from tests import referee
from tests.lengths import rest_at_length, some_at_length

RULES = (
    list,
    lambda: [cpv.TCloseness(0.1)],
    lambda: [cpv.LDiversity(1.6)],
    lambda: [cpv.RecordEntropy(3)],
    lambda: [cpv.DeltaDisclosure(1.0)],
    lambda: [cpv.LocalPrivacy(2.0)],
    lambda: [cpv.MaximalLeakage(0.6), cpv.KeepProbability(0.1)],
    lambda: [cpv.LocalPrivacy(2.5), cpv.MaximalLeakage(0.9), cpv.TCloseness(0.2)],
    lambda: [cpv.PreserveMarginal()],
    lambda: [cpv.PreserveMean([1.0, 2.0, 3.0, 5.0]), cpv.KeepProbability(0.2)],
    lambda: [cpv.ForbiddenMoves(np.eye(4, k=3, dtype=bool)), cpv.LeakageCap(0.2)],
)


def problems():
    """Yield a problem with every kind of row, bound and auxiliary, and with every view."""
    rng = np.random.default_rng(3)
    law = rng.dirichlet(np.full(12, 0.8)).reshape(3, 4)
    source, error = cpv.DiscreteSource(law, records=20), rng.random((4, 4))
    np.fill_diagonal(error, 0)
    for rules in RULES:
        yield cpv.PrivacyDistortion(source, error, budget=0.1, criteria=rules(), units="nats")
    for rules in RULES[1:7]:
        yield cpv.MinimumDistortion(source, error, rules())
    law = rng.dirichlet(np.ones(24)).reshape(3, 4, 2)
    for who in (None, "decoder", "both"):
        for minimize, bound in (("leakage", {"max_rate": 0.9}), ("rate", {"max_leakage": 0.6})):
            yield cpv.RateDistortionEquivocation(
                cpv.DiscreteSource(law), error, 0.2, minimize=minimize,
                side_information=who, units="nats", **bound,
            )  # fmt: skip


PROBLEMS = list(problems())
ERROR = PROBLEMS[0].alphabet.d.matrix


@pytest.mark.parametrize("number", rest_at_length(range(len(PROBLEMS)), 8))
def test_it_reaches_what_the_conic_solver_finds(number):
    problem = PROBLEMS[number]
    solution = problem.solve(method="structured")
    referee.check(solution)
    assert all(line.startswith(("central path", "closed form")) for line in solution.log)
    conic = problem.solve(method="conic")
    assert solution.lower <= conic.upper
    assert conic.lower <= solution.upper


@pytest.mark.parametrize("number", some_at_length(range(len(PROBLEMS)), 8))
def test_high_accuracy(number):
    referee.check(PROBLEMS[number].solve(accuracy="high"))


# ---- a step ------------------------------------------------------------------------------


def points(number: int):
    """Return a program and some points of its path, to where the gap is 1e-6."""
    iterates = []
    for iterate in interior.central_path(ScaledProgram(PROBLEMS[number].program)):
        iterates.append(iterate)
        if iterate.gap < 1e-6:
            break
    return iterates[0].program, [iterate.point for iterate in iterates[::3]]


@pytest.mark.parametrize("number", some_at_length(range(len(PROBLEMS)), 8))
def test_a_step_solves_the_equations_linearised(number):
    """Every residual by itself, from the point and the step alone: a wrong sign breaks one."""
    program, path = points(number)
    for x in path:
        newton = Newton(program, x)
        mu = 0.3 * program.complementarity(x) / program.count
        targets = {name: mu * share for name, share in program.shares.items()}
        step = newton.step(targets, 1.0)
        for name, share in program.shares.items():  # pairs
            after = x.slack[name] * x.price[name]
            after = after + step.slack[name] * x.price[name] + x.slack[name] * step.price[name]
            assert after == pytest.approx(mu * share, abs=1e-6 * mu + 1e-11)
        assert step.q.sum(axis=0) == pytest.approx(program.mass - x.q.sum(axis=0), abs=1e-9)
        assert step.slack[LOW] == pytest.approx(step.q, abs=1e-15)
        dual = program.cost - (x.nu + step.nu) - (x.price[LOW] + step.price[LOW])
        if HIGH in x.price:
            assert step.slack[HIGH] == pytest.approx(-step.q * program.capped, abs=1e-15)
            dual = dual + x.price[HIGH] + step.price[HIGH]
        joint, logs = program.joints(x.q)
        for view, s, ds, weight, log in zip(
            program.views, x.scores, step.scores, newton.at.omega, logs, strict=True
        ):
            dual = dual + weight[:, None] * ((s + ds) @ view.matrix)
            assert np.isfinite(log).all()
        for name, row in program.rows.items():
            price, change = x.multiplier(name), step.multiplier(name)
            slope = row.cost
            for i, weight in row.weights.items():
                slope = slope + weight[:, None] * (x.scores[i] @ program.views[i].matrix)
            shape = (-1, 1) if row.per_output else ()
            dual = dual + row.cost * price.reshape(shape) + slope * np.reshape(change, shape)
            reached = program.excess(
                name, x, [(j * g).sum(axis=1) for j, g in zip(joint, logs, strict=True)]
            )
            reached = reached + row.total(np.einsum("yn,yn->y", slope, step.q))
            slack = 0.0 if row.equal else x.slack[name] + step.slack[name]
            assert reached + slack == pytest.approx(0.0 * reached, abs=1e-8)
        for name, level in program.levels.items():
            full = 0.0 if level.total is None else x.price[name] + step.price[name]
            height = x.levels[name] + step.levels[name]
            for side, sign, factor in level.sides:
                price = x.price[side] + step.price[side]
                dual = dual - sign * price
                full = full + sign * factor * price @ program.mass
                room = sign * (x.q + step.q - factor * program.mass * height[:, None])
                assert x.slack[side] + step.slack[side] == pytest.approx(room, abs=1e-8)
            assert full == pytest.approx(np.zeros(program.m), abs=1e-6 * np.abs(price).max())
            if level.total is not None:
                left = level.total - height.sum()
                assert x.slack[name] + step.slack[name] == pytest.approx(left, abs=1e-8)
        scale = max(float(np.abs(v).max()) for v in (x.price[LOW], x.nu, program.cost))
        assert dual[program.free] == pytest.approx(0.0, abs=1e-8 * scale + 1e-10)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7])
def test_a_row_in_the_border_takes_the_step_that_it_takes_in_its_block(number):
    """Where neither has lost any digits."""
    program, path = points(number)
    x = path[2]
    targets = {key: 0.1 * share for key, share in program.shares.items()}
    steps, rows = [], []
    for tight in (1e300, 1e-300):
        with using(InteriorPoint(tight=tight)):
            newton = Newton(program, x)
        rows.append(len(newton.edges.outputs))
        steps.append(newton.step(targets, 0.7))
    local = sum(row.per_output for row in program.rows.values())
    assert rows[0] == 0 < rows[1] <= local * program.m
    for name in ("slack", "price"):
        inside, border = (getattr(step, name) for step in steps)
        for key in program.shares:
            assert border[key] == pytest.approx(inside[key], rel=1e-6, abs=1e-9), (name, key)
    assert steps[1].q == pytest.approx(steps[0].q, rel=1e-6, abs=1e-9)


def test_tight_rows_of_many_outputs_do_not_stall_the_path():
    """Once the blocks lost what such rows leave, and the path went astray at a gap of 1e-7."""
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.full(4 * 60, 0.3)).reshape(4, 60) + 1e-6
    places = np.sort(rng.random(60))
    problem = cpv.MinimumDistortion(
        cpv.DiscreteSource(law / law.sum()), abs(places[:, None] - places), [cpv.TCloseness(0.05)]
    )
    program = ScaledProgram(problem.program)
    with np.errstate(all="ignore"):
        path = interior.central_path(program)
        assert any(iterate.gap < 1e-11 * program.program.scale for iterate in path)
    assert problem.solve(method="structured", accuracy="high").status == "certified"


@pytest.mark.parametrize("number", some_at_length(range(len(PROBLEMS)), 8))
def test_scores_tend_to_the_logarithms_of_the_posteriors(number):
    """A step to first order leaves an error of second order, but for what is lacking before."""
    program, path = points(number)
    for lacking, share in ((False, 0.03), (True, 0.2)):
        x = path[-1] if lacking else replace(path[-1], scores=program.joints(path[-1].q)[1])
        newton = Newton(program, x)
        targets = {name: x.slack[name] * x.price[name] for name in x.slack}
        step = newton.step(targets, 1.0)
        errors = []
        for t in (1e-2, 1e-3):
            moved = x.moved(step, t)
            _, logs = program.joints(moved.q)
            scores = zip(logs, moved.scores, newton.at.posterior, strict=True)
            left = (float(np.abs(g - s - (1 - t) * r).max()) for g, s, r in scores)
            errors.append(max(left, default=0.0))
        assert errors[0] < 0.1
        assert errors[1] <= share * errors[0] + 1e-15


# ---- the second order --------------------------------------------------------------------


def residuals_of(program, x) -> dict:
    """Return what each equation lacks at a point, by kind."""
    at = Residuals(program, x)
    results = {"dual": at.dual, **{f"posterior {i}": part for i, part in enumerate(at.posterior)}}
    results.update((f"row {name}", at.primal[name]) for name in program.rows)
    return results


def orders(program, x, t: float):
    """Yield what is lacking of each equation after a step of the first, and of the second order."""
    x = replace(x, scores=program.joints(x.q)[1])  # where the posteriors lack nothing
    newton, path = Newton(program, x), interior._Path(program, None)
    path.x = x
    affine = newton.step({name: 0.0 * share for name, share in program.shares.items()}, 1.0)
    affine = affine.moved(affine, t - 1.0)  # that much of it
    products = {name: (1 - t) * x.slack[name] * x.price[name] for name in program.shares}
    bent = {name: p - affine.slack[name] * affine.price[name] for name, p in products.items()}
    first = x.moved(newton.step(products, t), 1.0)
    second = x.moved(newton.step(bent, t, path._second_order(newton, affine)), 1.0)
    for name, was in residuals_of(program, x).items():
        yield name, *(residuals_of(program, y)[name] - (1 - t) * was for y in (first, second))
    for name, p in products.items():
        yield f"pair {name}", *(y.slack[name] * y.price[name] - p for y in (first, second))


def test_a_step_of_second_order_leaves_less_in_every_equation():
    """A tenth of what the first order leaves: posteriors, dual equation, curved rows and pairs."""
    better = set()
    for number in range(len(PROBLEMS)):
        program, path = points(number)
        for x in path[1:]:
            for name, *left in orders(program, x, 0.002):
                one, two = (float(np.abs(v).max()) for v in left)
                if one > 1e-8:
                    assert two < 0.1 * one, (number, name)
                    better.add(name.split()[0])
    assert better == {"dual", "posterior", "row", "pair"}


def test_what_corrected_steps_aim_at():
    """Products, without the second order that the affine step has of them: all by one μ."""
    for number in (0, 3, 6, 10):
        program, path = points(number)
        for x in path:
            newton, calls = Newton(program, x), []
            honest = newton.step

            def step(*value, honest=honest, calls=calls):
                calls.append((value, honest(*value)))
                return calls[-1][1]

            newton.step = step
            follower = interior._Path(program, None)
            follower.x = x
            follower._corrected(newton)
            affine, targets = calls[0][1], calls[1][0][0]
            aimed = [
                (targets[name] + affine.slack[name] * affine.price[name])[share > 0]
                / share[share > 0]
                for name, share in program.shares.items()
            ]
            centre = np.concatenate([np.ravel(v) for v in aimed])
            assert (centre > 0).all()
            assert centre == pytest.approx(np.full(centre.shape, np.median(centre)), rel=1e-6)


def test_a_corrector_moves_products_towards_their_targets():
    product, target = np.array([0.01, 0.1, 1.0, 10.0, 12.0, 100.0]), np.ones(6)
    pushed = interior._pushed(product, target)
    assert pushed == pytest.approx([0.09, 0.0, 0.0, 0.0, -2.0, -10.0])
    assert interior._pushed(product, 2.0 * target)[0] == pytest.approx(0.19)


def test_a_row_has_the_slack_that_its_information_leaves():
    taken = 0
    for number, problem in enumerate(PROBLEMS):
        if not any(row.expression.weights for row in problem.program.constraints.values()):
            continue
        program, path = points(number)
        for x in path[1:]:
            information = program.information(*program.joints(x.q))
            for name, row in program.rows.items():
                if row.weights:
                    free, slack = -program.excess(name, x, information), x.slack[name]
                    near = (free > 0.51 * slack) & (free < 1.99 * slack)
                    assert slack[near] == pytest.approx(free[near], rel=1e-9, abs=1e-15)
                    taken += int(near.sum())
    assert taken > 60


def test_few_steps_are_taken():
    """To a gap of 1e-6; a tenth more than they are would pass."""
    steps = 0
    for problem in PROBLEMS:
        for iterate in interior.central_path(ScaledProgram(problem.program)):
            if iterate.gap < 1e-6:
                break
        steps += iterate.number
    assert steps <= 254


# ---- blocks ------------------------------------------------------------------------------


def exact_inverse(y, diagonal, rows, squares, free):
    """Return the inverse of one block, in sixty digits, where entries are free."""
    on = np.nonzero(free)[0].tolist()
    with mp.workdps(60):
        block = mp.diag([mp.mpf(diagonal[y, i]) for i in on])
        for square in squares:
            added = [mp.mpf(square.added[y, i]) for i in on]
            values = [mp.mpf(square.remainder[y, i]) for i in on]
            share = [mp.mpf(square.share[y, i]) for i in on]
            lost = [mp.sqrt(s * (a - r)) for s, a, r in zip(share, added, values, strict=True)]
            block += mp.diag(added) - mp.matrix(lost) * mp.matrix(lost).T
        for row in rows[y]:
            column = mp.matrix([mp.mpf(row[i]) for i in on])
            block += column * column.T
        return np.array((block**-1).tolist(), dtype=float)


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_blocks_are_inverses(seed):
    """Of a diagonal, squares that are diagonal but for one, and rows, where entries are free."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 4)), int(rng.integers(2, 7))
    diagonal = 10.0 ** rng.uniform(-3, 3, (m, n))
    rows = rng.normal(size=(m, int(rng.integers(0, 3)), n)) * 10.0 ** rng.uniform(-2, 3)
    free = rng.random((m, n)) < 0.8
    free[:, 0] = True
    squares = []
    for _ in range(int(rng.integers(0, 3))):
        share = rng.dirichlet(np.ones(n), m)
        added = 10.0 ** rng.uniform(-3, 6, (m, n))
        squares.append(Square(share, added, added * rng.random((m, n)) * rng.integers(0, 2)))
    inverses = [exact_inverse(y, diagonal, rows, squares, free[y]) for y in range(m)]
    kinds = [Blocks.of(diagonal, squares, rows.copy(), free)]
    if not squares:
        kinds.append(Blocks.dense(diagonal, rows, rows[:, :0], free))
    x = rng.normal(size=(m, n))
    for blocks in kinds:
        outcome, total = blocks.times(x), np.zeros((n, n))
        for y in range(m):
            inverse = inverses[y]
            total[np.ix_(free[y], free[y])] += inverse
            size = np.abs(inverse).max() * np.abs(x).max()
            assert outcome[y][free[y]] == pytest.approx(inverse @ x[y][free[y]], abs=1e-5 * size)
            assert (outcome[y][~free[y]] == 0).all()
        assert blocks.total(Layout.full(n, m)) == pytest.approx(
            total, abs=1e-5 * np.abs(total).max()
        )
    if rows.shape[1]:
        reached = np.einsum("yrn,yn->yr", rows, kinds[0].times(x))
        assert kinds[0].reached(x) == pytest.approx(reached, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("ratio", [-30.0, -1e-6, 0.0, 1e-9, 1e-4, 2.0, 40.0])
def test_the_logarithmic_mean(ratio):
    with mp.workdps(50):
        b = 3 * mp.exp(-mp.mpf(ratio))
        mean = float((3 - b) / mp.mpf(ratio)) if ratio else 3.0
    assert logarithmic_mean(np.array(3.0), np.array(ratio)) == pytest.approx(mean, rel=1e-9)


# ---- the start and the end ---------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(PROBLEMS)))
def test_the_start_is_inside(number):
    program = ScaledProgram(PROBLEMS[number].program)
    x, mu = start(program)
    for name, share in program.shares.items():
        on = share > 0
        assert (x.slack[name] * x.price[name])[on] == pytest.approx(mu * share[on], rel=1e-12)
    for values in (*x.slack.values(), *x.price.values()):
        assert (values >= 0).all()
    assert (x.q[program.free] > program.low[program.free]).all()
    if not program.capped.any():
        assert x.q.sum(axis=0) == pytest.approx(program.mass, rel=1e-12)
        at_the_centre(program, x, mu)
    linear = [row for row in program.rows.values() if not (row.equal or row.per_output)]
    if len(linear) == 1 and not linear[0].weights:
        holds = (linear[0].cost * x.q).sum() < linear[0].bound
        # or it gives way to rows of other kinds, which then hold
        information = program.information(*program.joints(x.q))
        others = [k for k, row in program.rows.items() if row is not linear[0] and not row.equal]
        left = [program.left(k, x.q, information) - program.rows[k].bound for k in others]
        assert holds or (left and all((values <= 0).all() for values in left))


def at_the_centre(program, x, mu):
    """Assert a/(Q − lo) = κ d + c_s for one κ ≥ 0, d the sum of the linear rows."""
    room = np.where(program.free, x.q - program.low, np.inf)
    left = program.share / room + x.nu / mu  # κ d where entries are free
    rows = [r for r in program.rows.values() if not (r.equal or r.per_output or r.weights)]
    cost = sum((row.cost for row in rows), np.zeros_like(x.q))[program.free]
    kappa = float(cost @ left[program.free] / (cost @ cost)) if cost.any() else 0.0
    scale = float(np.abs(x.nu / mu).max())
    assert kappa >= 0
    assert left[program.free] == pytest.approx(kappa * cost, abs=1e-9 * scale)
    largest = (np.where(program.free, x.q - program.low, 0.0) / program.share).max(axis=0)
    assert mu == pytest.approx(100.0 * np.median(largest[largest > 0]))


def test_rows_that_pull_apart_leave_a_start():
    """A budget asks for small moves, shares of outputs for large ones: both begin with room."""
    source = cpv.DiscreteSource.from_counts([[8, 1, 1, 0], [1, 1, 1, 8]], x=[0, 1, 2, 3])
    problem = cpv.PrivacyDistortion(source, cpv.absolute_error([0, 1, 2, 3]), budget=0.9)
    for y in (1, 2):
        share = problem.variables["Q"][:, y].sum()
        problem = problem.with_constraint(f"share {y}", share >= 0.3)
    x, _ = start(ScaledProgram(problem.program))
    assert np.isfinite(x.q).all()
    assert x.q.max() < 1e3 * np.median(x.q)
    assert problem.solve(method="structured").status == "certified"


def test_what_does_not_fit_is_left_to_the_solver():
    problem = PROBLEMS[0]
    assert interior.fits(problem.program)
    small = InteriorPoint(most_numbers=10)
    with using(small):
        assert not interior.fits(problem.program)
    solution = problem.solve(settings=small)
    assert solution.status == "certified"
    assert solution.log[0] == "central path: too large"
    assert all("CLARABEL" in line for line in solution.log[1:])


@pytest.mark.parametrize("after", [0, 4])
def test_a_path_that_breaks_is_reported_and_the_solver_takes_over(after, monkeypatch):
    honest = interior.Newton
    made = []

    def breaking(*value):
        made.append(value)
        if len(made) > after:
            raise np.linalg.LinAlgError("no way")
        return honest(*value)

    monkeypatch.setattr(interior, "Newton", breaking)
    outcome = solve(PROBLEMS[0].program)
    assert outcome.log[0] == "central path: no way"
    assert outcome.certificate.status == "certified"
    made.clear()
    alone = solve(PROBLEMS[0].program, method="structured")
    assert alone.log == ["central path: no way"]
    assert alone.certificate.status != "certified"


# ---- who is told, and what needs no path -------------------------------------------------


def test_what_progress_raises_is_raised():
    text = ValueError("mine")

    def progress(now):
        if now.step == 2:
            raise text

    with pytest.raises(ValueError, match="mine") as caught:
        PROBLEMS[0].solve(progress=progress)
    assert caught.value is text


@pytest.mark.parametrize("rules", [[], [cpv.KeepProbability(0.2)]], ids=["free", "floors"])
def test_no_solver_is_asked_where_nothing_may_be_told(rules):
    problem = cpv.MinimumDistortion(PROBLEMS[0].source, ERROR, [cpv.TCloseness(0), *rules])
    solution = problem.solve()
    referee.check(solution)
    assert solution.log[0] == "closed form: t_closeness leaves a face"
    assert not any("CLARABEL" in line for line in solution.log)


@pytest.mark.parametrize("rules", [[], [cpv.TCloseness(5.0)], [cpv.LeakageCap(3.0)]], ids=len)
def test_where_nothing_moves_there_is_nothing_to_choose(rules):
    problem = cpv.PrivacyDistortion(
        PROBLEMS[0].source, cpv.hamming(4), budget=0.1, criteria=[cpv.KeepProbability(1), *rules]
    )
    solution = problem.solve()
    referee.check(solution)
    assert not any("CLARABEL" in line for line in solution.log)
    assert (solution.channel.matrix == np.eye(4)).all()


@pytest.mark.parametrize("number", [0, 1, 5, 10])
def test_a_constant_added_to_every_cost_changes_nothing(number):
    """Row sums are fixed: d + 5 under the budget D + 5 is the same program."""
    problem = PROBLEMS[number]
    other = cpv.PrivacyDistortion(
        problem.source, ERROR + 5.0, budget=5.1, criteria=RULES[number](), units="nats"
    )
    solution, truth = other.solve(method="structured"), problem.solve(method="structured")
    referee.check(solution)
    assert solution.value == pytest.approx(truth.value, abs=1e-7)
    steps = [s.log[-1].split(": ")[1].split()[0] for s in (solution, truth)]
    assert abs(int(steps[0]) - int(steps[1])) <= 10


# ---- at random ---------------------------------------------------------------------------


def at_random(rng: np.random.Generator):
    """Return a problem with up to 30 letters and two criteria, feasible or not."""
    w, n = int(rng.integers(2, 11)), int(rng.integers(2, 31))
    law = rng.dirichlet(np.full(w * n, rng.choice([0.1, 0.3, 1.0, 3.0]))).reshape(w, n)
    law = law[:, law.sum(axis=0) > 1e-12]
    law = law / law.sum()
    source, n = cpv.DiscreteSource(law, records=100), law.shape[1]
    square = bool(rng.random() < 0.7)
    m = n if square else int(rng.integers(2, 31))
    error = rng.random((n, m))
    if square:
        np.fill_diagonal(error, 0)
    p = law.sum(axis=0)
    least, most = float(p @ error.min(axis=1)), float((p @ error).min())
    rules = [
        lambda: cpv.TCloseness(float(rng.uniform(0.01, 0.5))),
        lambda: cpv.LDiversity(float(rng.uniform(1.05, 1.5))),
        lambda: cpv.RecordEntropy(float(rng.uniform(2, 5))),
        lambda: cpv.DeltaDisclosure(float(rng.uniform(0.2, 3))),
        lambda: cpv.LocalPrivacy(float(rng.uniform(0.3, 4))),
        lambda: cpv.MaximalLeakage(float(rng.uniform(0.2, 2))),
        lambda: cpv.LeakageCap(float(rng.uniform(0.01, 0.5))),
    ]
    if square:
        rules += [
            lambda: cpv.PreserveMarginal(),
            lambda: cpv.PreserveMean(rng.random(n)),
            lambda: cpv.KeepProbability(float(rng.uniform(0.01, 0.4))),
            lambda: cpv.ForbiddenMoves(np.triu(np.ones((n, n), bool), n // 2 + 1)),
        ]
    chosen = rng.choice(len(rules), int(rng.integers(0, 3)), replace=False)
    criteria = [rules[i]() for i in chosen]
    if criteria and rng.random() < 0.4:
        return cpv.MinimumDistortion(source, error, criteria)
    budget = least + float(rng.uniform(0.02, 0.98)) * (most - least)
    return cpv.PrivacyDistortion(source, error, budget=budget, criteria=criteria)


@pytest.mark.campaign
def test_a_campaign_over_all_criteria():
    """Certified, or proved infeasible, in 99 %; by the path alone in 95 %, half in 25 steps."""
    rng, steps, open_, asked = np.random.default_rng(20_260), [], [], 0
    for trial in range(300):
        outcome = solve(at_random(rng).program)
        status = outcome.certificate.status
        if status not in ("certified", "infeasible"):
            open_.append((trial, status, outcome.log))
        asked += any("CLARABEL" in line for line in outcome.log)
        taken = [line.split(": ")[1].split() for line in outcome.log if "steps" in line]
        steps += [int(words[0]) for words in taken]
    assert len(open_) <= 3, open_
    assert asked <= 15
    assert median(steps) <= 25


@pytest.mark.parametrize("seed", [0, 3])
def test_a_channel_mixed_with_one_that_has_room_loses_about_what_it_lacked(seed):
    law = np.random.default_rng(seed).dirichlet(np.ones(36)).reshape(3, 12)
    source, error = cpv.DiscreteSource(law), cpv.hamming(12)
    free = cpv.RateDistortionEquivocation(source, error, 0.4).solve()
    cap = 0.9 * float(free.leakage)
    problem = cpv.RateDistortionEquivocation(source, error, 0.4, max_leakage=cap)
    program, least = problem.program, problem.solve(accuracy="high").lower
    task = ChannelTask(program, {"method": "structured", "accuracy": "high"})
    with np.errstate(all="ignore"):
        path = list(interior.central_path(ScaledProgram(program)))
        ours = next(i for i in path if i.gap < 1e-5)
        near = min(path, key=lambda i: i.gap).proposal()[0]
        lacking = (1 - 1e-9) * near + 1e-9 * np.eye(12)
        assert program.violation(lacking) > 1e-11
        task.prover.offer_channel(ours.proposal()[0])
        task.channels = [lacking]
        assert task.prover.upper > least + 1e-8
        stricter = ScaledProgram(presolve.tightened(program, 1e-6))
        next(i for i in interior.central_path(stricter) if task._mixed(i))
    assert least <= task.prover.upper <= least + 4e-9
