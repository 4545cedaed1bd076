"""Small random problems of every formulation, and the documents of their proofs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import cvxprivacy as cpv
from cvxprivacy.additive import AdditiveCost, Part
from cvxprivacy.exact import array as exact_array
from cvxprivacy.programs.covariance import CovarianceProgram
from cvxprivacy.solvers.driver import solve, solve_gaussian
from tests.certificates import test_soundness
from tests.verifier import test_covariance_proof

Document = dict[str, Any]
Chance = np.random.Generator
Instance = Any  # a problem of any formulation

KINDS: dict[str, Callable[[Chance], Instance]] = {}


def kind(make: Callable[[Chance], Instance]) -> Callable[[Chance], Instance]:
    KINDS[make.__name__] = make
    return make


def solved(problem: Instance, **options: Any) -> Any:
    """Return the certificate of a problem, whatever it says."""
    if isinstance(problem, Program):
        return problem.solve(**options)
    try:
        return problem.solve(**options).certificate
    except (cpv.InfeasibleError, cpv.CertificationError) as error:
        return error.certificate


def as_covariance(problem: Any) -> Any:
    """Return the certificate of water in boxes that is of its covariance program, and exact."""
    return solve_gaussian(problem.program, exact=problem._proposal()).certificate


def instance(rng: Chance, name: str = "") -> tuple[str, Instance]:
    """Return a random problem that its formulation takes."""
    while True:
        chosen = name or str(rng.choice(list(KINDS)))
        try:
            return chosen, KINDS[chosen](rng)
        except cpv.InputError:
            continue


def documents(seed: int, count: int) -> Iterator[tuple[str, Document]]:
    """Yield the documents of random problems, each formulation in turn."""
    rng = np.random.default_rng(seed)
    names = list(KINDS)
    made = 0
    while made < count:
        name, problem = instance(rng, names[made % len(names)])
        accuracy = "high" if rng.random() < 0.2 else "default"
        try:
            certificate = solved(problem, accuracy=accuracy)
        except cpv.InputError:  # refused where it is solved: a singular covariance
            continue
        yield name, json.loads(json.dumps(certificate.document()))
        made += 1


# ---- what problems are made of -----------------------------------------------------------


def law(rng: Chance, *shape: int) -> np.ndarray:
    """Return a joint law, of counts or of floats, some of them far from even, some with zeros."""
    while True:
        outcome = rng.dirichlet(np.full(int(np.prod(shape)), 10 ** rng.uniform(-0.7, 0.7)))
        outcome = outcome.reshape(shape)
        if rng.random() < 0.3:
            outcome = np.round(outcome * 20) / 20
        if (outcome.sum() > 0.5) and all(
            (outcome.sum(axis=i) > 0).all() for i in range(len(shape))
        ):
            return outcome / outcome.sum()


def source(rng: Chance, *, side: bool = False) -> Any:
    w, x = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    if side:
        return cpv.DiscreteSource(law(rng, w, min(x, 3), 2))
    if rng.random() < 0.3:
        counts = rng.integers(0, 9, (w, x)) + np.eye(w, x, dtype=int)
        return cpv.DiscreteSource.from_counts(counts + 1)
    return cpv.DiscreteSource(law(rng, w, x))


def measure(rng: Chance, value: Any, *, square: bool = False) -> Any:
    x = len(value.x)
    choice = rng.random()
    if choice < 0.4 or square:
        return cpv.hamming(x)
    y = int(rng.integers(2, 5))
    size = 10 ** rng.choice([0.0, 0.0, 3.0, -3.0])
    if choice < 0.55:
        return size * rng.random((len(value.w), x, y))
    if choice < 0.7:
        return by_parts(rng, x, y)
    return size * np.round(4 * rng.random((x, y))) / 4


def by_parts(rng: Chance, x: int, y: int) -> cpv.Distortion:
    """Return a sum of two or three tables, some of them of thirds and fifths."""
    parts = []
    for _ in range(int(rng.integers(2, 4))):
        shape = [int(k) for k in rng.integers(1, 4, 2)]
        entries = [
            Fraction(int(k), int(rng.choice([1, 4, 15]))) for k in rng.integers(0, 9, shape).flat
        ]
        rows, columns = (rng.integers(k, size=size) for k, size in zip(shape, (x, y), strict=True))
        parts.append(Part(exact_array(np.array(entries).reshape(shape)), rows, columns))
    return cpv.Distortion(AdditiveCost(tuple(parts)))


def span(value: Any, d: Any) -> tuple[float, float]:
    """Return the least distortion there is, and that of the best constant release."""
    table = np.asarray(getattr(d, "matrix", d), float)
    mass = np.asarray(value.law, float)
    mass = mass.sum(axis=tuple(range(2, mass.ndim)))
    if table.ndim == 2:
        table = np.broadcast_to(table, (mass.shape[0], *table.shape))
    each = np.einsum("wx,wxy->xy", mass, table)
    return float(each.min(axis=1).sum()), float(each.sum(axis=0).min())


def budget(rng: Chance, argument: Any, d: Any) -> Any:
    least, most = span(argument, d)
    share = rng.choice([0.0, 1.0, -0.1, rng.uniform(0, 1)], p=[0.05, 0.05, 0.05, 0.85])
    value = max(0.0, least + float(share) * (most - least))
    return Fraction(round(value * 64), 64) if rng.random() < 0.2 else value


def per_letter(rng: Chance, value: Any) -> list[Any]:
    """Return criteria that every letter, or the channel, must satisfy."""
    x = len(value.x)
    choices: list[Callable[[], Any]] = [
        lambda: cpv.TCloseness(rng.uniform(0, 0.6)),
        lambda: cpv.LDiversity(rng.uniform(1, len(value.w))),
        lambda: cpv.DeltaDisclosure(rng.uniform(0.05, 1.5)),
        lambda: cpv.LocalPrivacy(rng.uniform(0.1, 2)),
        lambda: cpv.LocalPrivacy(rng.uniform(0.1, 2), delta=rng.uniform(0.01, 0.5)),
        lambda: cpv.LocalPrivacy(
            rng.uniform(0.1, 2), metric=cpv.absolute_error(rng.integers(0, 5, x))
        ),
        lambda: cpv.MaximalLeakage(rng.uniform(0.05, 1)),
        lambda: cpv.LeakageCap(rng.uniform(0, 0.5) * value.information()),
        lambda: cpv.KeepProbability(rng.uniform(0, 0.8)),
        lambda: cpv.PreserveMarginal(),
        lambda: cpv.MarginalDistance(rng.uniform(0.01, 0.3)),
        lambda: cpv.PreserveMean(np.arange(x)),
        lambda: cpv.ForbiddenMoves(np.tri(x, x, -1, dtype=bool)),
        lambda: cpv.Linear(rng.normal(size=(x, x)), rng.uniform(0, 0.5)),
    ]
    if value.records is not None:
        choices.append(lambda: cpv.RecordEntropy(rng.uniform(1, value.records / 2)))
    count = int(rng.choice([1, 1, 2]))
    return [choices[i]() for i in rng.choice(len(choices), count, replace=False)]


def units(rng: Chance) -> str:
    return str(rng.choice(["bits", "nats"]))


# ---- channel programs --------------------------------------------------------------------


@kind
def privacy_distortion(rng: Chance) -> Instance:
    value = source(rng)
    d = measure(rng, value)
    options: dict[str, Any] = {"units": units(rng)}
    if rng.random() < 0.25:
        options["encoder"] = "wx"
    if rng.random() < 0.3:
        options["price"] = float(10 ** rng.uniform(-1.5, 1))
    else:
        options["budget"] = budget(rng, value, d)
    return cpv.PrivacyDistortion(value, d, **options)


@kind
def with_criteria(rng: Chance) -> Instance:
    value = source(rng)
    d = measure(rng, value, square=True)
    bound = budget(rng, value, d) if rng.random() < 0.6 else None
    return cpv.PrivacyDistortion(
        value, d, budget=bound, criteria=per_letter(rng, value), units=units(rng)
    )


@kind
def several_laws(rng: Chance) -> Instance:
    value = source(rng)
    shape = np.shape(value.law)
    laws = [cpv.DiscreteSource(law(rng, *shape)) for _ in range(int(rng.integers(1, 3)))]
    d, ours = measure(rng, value, square=True), units(rng)
    if rng.random() < 0.5:
        return cpv.MinimumDistortion(value, d, per_letter(rng, value), laws=laws, units=ours)
    least = max(span(each, d)[0] for each in (value, *laws))
    most = max(span(each, d)[1] for each in (value, *laws))
    bound = least + float(rng.uniform(0.05, 0.9)) * (most - least)
    return cpv.PrivacyDistortion(value, d, budget=bound, laws=laws, units=ours)


@kind
def minimum_distortion(rng: Chance) -> Instance:
    value = source(rng)
    d = measure(rng, value, square=True)
    return cpv.MinimumDistortion(value, d, per_letter(rng, value), units=units(rng))


@kind
def region(rng: Chance) -> Instance:
    expected = rng.choice([None, "decoder", "both"])
    value = source(rng, side=expected is not None)
    d = measure(rng, value, square=True)
    options: dict[str, Any] = {"units": units(rng), "side_information": expected}
    options["minimize"] = ["rate", "leakage", {"rate": 1.0, "leakage": 0.3}][int(rng.integers(3))]
    if rng.random() < 0.3:
        options["max_leakage"] = float(rng.uniform(0.2, 1.2)) * value.information()
    if rng.random() < 0.2:
        options["max_rate"] = float(rng.uniform(0.1, 1))
    if rng.random() < 0.2:
        options["min_equivocation"] = float(rng.uniform(0, 0.5))
    if rng.random() < 0.3:
        options["encoder"] = "wx"
    return cpv.RateDistortionEquivocation(value, d, budget(rng, value, d), **options)


@kind
def region_by_distortion(rng: Chance) -> Instance:
    value = source(rng)
    d = measure(rng, value)
    cap = float(rng.uniform(0.05, 0.9)) * value.information()
    return cpv.RateDistortionEquivocation(
        value, d, minimize="distortion", max_leakage=cap, units=units(rng)
    )


class Program:
    """A program that no formulation states."""

    def __init__(self, program: Any) -> None:
        self.program = program

    def solve(self, **options: Any) -> Any:
        gaussian = isinstance(self.program, CovarianceProgram)
        return (solve_gaussian if gaussian else solve)(self.program, **options).certificate


@kind
def any_channel_program(rng: Chance) -> Instance:
    """Return auxiliaries, entry bounds, equalities, layers and views of every kind."""
    size = (int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 5)))
    flavour = str(rng.choice(test_soundness.FLAVOURS))
    return Program(test_soundness.random_program(rng, flavour, size))


# ---- covariance programs -----------------------------------------------------------------


def covariance(rng: Chance, size: int) -> Any:
    """Return a covariance: of floats, of fractions, nearly singular, or of a common factor."""
    choice = rng.random()
    if choice < 0.5:
        return test_covariance_proof.random_covariance(rng, size, 10 ** rng.uniform(0, 4))
    loads = rng.integers(-4, 5, (size, size))
    values = [[int(v) for v in row] for row in loads @ loads.T]
    scale = [Fraction(1, int(k)) for k in rng.integers(1, 9, size)]
    noise = Fraction(1, int(rng.choice([1, 8, 2**20])))
    return [
        [(Fraction(v) + (noise if i == j else 0)) * a * b
         for j, (v, b) in enumerate(zip(row, scale, strict=True))]
        for i, (row, a) in enumerate(zip(values, scale, strict=True))
    ]  # fmt: skip


def gaussian_source(rng: Chance, *, side: bool = False) -> Any:
    w, x, z = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(side)
    gamma = covariance(rng, w + x + z)
    return cpv.GaussianSource(
        gamma,
        sensitive=list(range(w)),
        key=list(range(w, w + x)),
        side=list(range(w + x, w + x + z)),
    )


@kind
def quadratic_gaussian(rng: Chance) -> Instance:
    value = gaussian_source(rng)
    variances = np.diag(value.block(value.x, value.x))
    share = float(rng.uniform(0.02, 1.1))
    options: dict[str, Any] = {"units": units(rng)}
    bound: Any = share * variances.sum()
    if rng.random() < 0.3:
        some = [i for i in range(len(value.x)) if rng.random() < 0.7] or [0]
        bound = {value.names[value.x[i]]: share * float(variances[i]) for i in some}
    elif rng.random() < 0.3:
        options["weights"] = rng.uniform(0.1, 2, len(value.x))
    if rng.random() < 0.2:
        spread = rng.uniform(0.3, 1.2) * np.asarray(value.block(value.x, value.x))
        options["cap"] = spread + 0.05 * np.diag(variances)
    if rng.random() < 0.2:
        options["entropy"] = float(rng.uniform(-1, 3))
    return cpv.QuadraticGaussian(value, bound, **options)


@kind
def gaussian_region(rng: Chance) -> Instance:
    expected = rng.choice([None, "decoder", "both"])
    value = gaussian_source(rng, side=expected is not None)
    total = float(np.trace(value.block(value.x, value.x)))
    options: dict[str, Any] = {"units": units(rng), "side_information": expected}
    if rng.random() < 0.3:
        options["encoder"] = "wx"
    options["minimize"] = str(rng.choice(["rate", "leakage"]))
    if rng.random() < 0.5:
        options["max_leakage"] = float(rng.uniform(0.05, 2))
    if rng.random() < 0.3:
        options["max_rate"] = float(rng.uniform(0.3, 3))
    return cpv.GaussianEquivocation(value, float(rng.uniform(0.05, 1.1)) * total, **options)


@kind
def reverse_water_filling(rng: Chance) -> Instance:
    variances = [Fraction(int(k), 8) for k in rng.integers(1, 40, int(rng.integers(1, 5)))]
    value: Any = variances if rng.random() < 0.5 else [float(v) * 1.1 for v in variances]
    total = Fraction(int(rng.integers(1, 30)), 10)
    return cpv.ReverseWaterFilling(value, total, units=units(rng))


@kind
def box_water_filling(rng: Chance) -> Instance:
    size = int(rng.integers(1, 4))
    gains, caps = rng.uniform(0.1, 5, size), rng.uniform(0.1, 3, size)
    return cpv.BoxWaterFilling(gains, caps, float(rng.uniform(0.05, 4)), units=units(rng))


@kind
def any_covariance_program(rng: Chance) -> Instance:
    flavours = [f for f in test_covariance_proof.FLAVOURS if f != "balls"]
    return Program(test_covariance_proof.random_program(rng, str(rng.choice(flavours))))


# ---- the smallest ------------------------------------------------------------------------

BINARY = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
HAMMING = cpv.hamming(2)
# x is uniform on {0, 1, 2} and 1 has no near output: the least distortion is 1/3
THREE = cpv.DiscreteSource([[1 / 3, 1 / 6, 0.0], [0.0, 1 / 6, 1 / 3]])
ENDS = cpv.absolute_error([0, 1, 2], [0, 2])


def budgeted(**options: Any) -> cpv.PrivacyDistortion:
    return cpv.PrivacyDistortion(BINARY, HAMMING, **{"budget": 0.1, **options})


def contradictory(**options: Any) -> cpv.PrivacyDistortion:
    """Ask for less leakage than a budget of 0.1 leaves: 1 − h(0.26) = 0.173 bits."""
    return budgeted(criteria=[cpv.LeakageCap(0.125)], **options)


SCALAR = cpv.GaussianSource.scalar(0.95)
DEPENDENT = cpv.GaussianSource(
    [[2, 1, 1, 2], [1, 2, 1, 2], [1, 1, 2, 3], [2, 2, 3, 5]], sensitive=[0], key=[2, 3], side=[1]
)
MINIMAL: dict[str, Callable[[], Any]] = {
    "privacy-distortion": lambda: budgeted(budget=0.3, criteria=[cpv.TCloseness(0.05)]),
    "minimum distortion": lambda: cpv.MinimumDistortion(
        BINARY, HAMMING, [cpv.LocalPrivacy(1.0), cpv.KeepProbability(0.6)]
    ),
    "equivocation": lambda: cpv.RateDistortionEquivocation(
        BINARY, HAMMING, 0.2, minimize={"rate": 1, "leakage": 2}
    ),
    "side information": lambda: cpv.RateDistortionEquivocation(
        cpv.DiscreteSource(np.full((2, 2, 2), 0.125)), HAMMING, 0.2,
        side_information="decoder",
    ),
    "Gaussian bound": lambda: cpv.QuadraticGaussian(SCALAR, 0.5),
    "entropy": lambda: cpv.QuadraticGaussian(DEPENDENT, Fraction(1, 3), entropy=1),
    "Gaussian side": lambda: cpv.GaussianEquivocation(DEPENDENT, 0.5, side_information="both"),
    "water of a matrix": lambda: cpv.ReverseWaterFilling([[2, 1], [1, 2]], 1),
    "Gaussian region": lambda: cpv.GaussianEquivocation(SCALAR, 0.5, minimize="leakage"),
    "reverse water-filling": lambda: cpv.ReverseWaterFilling([1.0, 2.0], 1.5),
    "Hamming of counts": lambda: cpv.HammingWaterFilling.from_counts([4, 3, 2, 1], 0.2),
    "Hamming": lambda: cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.2),
}  # fmt: skip


# ---- one of each -------------------------------------------------------------------------

COUNTS = np.array([[9, 2, 1, 3], [1, 4, 8, 2], [2, 3, 1, 6]])
SOURCE = cpv.DiscreteSource.from_counts(COUNTS)
KNOWN = cpv.DiscreteSource.from_counts(
    np.random.default_rng(3).integers(1, 9, (2, 3, 2)).astype(float)
)
D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) * (1 + np.eye(4, k=1))
GAUSSIAN = cpv.GaussianSource(
    [[2.0, 1.0, 0.5, 0.2], [1.0, 2.0, 0.25, 0.1], [0.5, 0.25, 1.0, 0.3], [0.2, 0.1, 0.3, 1.0]],
    sensitive=[0], key=[1, 2], side=[3],
)  # fmt: skip


def scaled(scale: float, **side: Any) -> cpv.GaussianSource:
    moments = np.array(GAUSSIAN.exact, float) * scale
    return cpv.GaussianSource(moments, sensitive=[0], key=[1, 2], **side)


CRITERIA: dict[str, Any] = {
    "t-closeness": cpv.TCloseness(0.08),
    "l-diversity": cpv.LDiversity(2.2),
    "record entropy": cpv.RecordEntropy(14),
    "delta": cpv.DeltaDisclosure(0.7),
    "leakage": cpv.LeakageCap(0.07),
    "local": cpv.LocalPrivacy(1.2),
    "maximal": cpv.MaximalLeakage(0.9),
    "keep": cpv.KeepProbability(0.6),
    "keep each": cpv.KeepProbability([0.6, 0.2, 0.5, 0.4]),
    "forbidden": cpv.ForbiddenMoves(np.eye(4, k=1, dtype=bool)),
    "marginal": cpv.PreserveMarginal(),
    "mean": cpv.PreserveMean([0, 1, 2, 3]),
    "linear": cpv.Linear(np.eye(4), 0.55, sense="<="),
}


def stricter(name: str, scale: float, units: str) -> Any:
    rule = CRITERIA[name]
    if name in ("keep", "keep each", "forbidden", "marginal", "mean", "linear"):
        return cpv.PrivacyDistortion(SOURCE, D * scale, budget=0.9 * scale, criteria=[rule])
    return cpv.MinimumDistortion(SOURCE, D * scale, [rule], units=units)


def decoded(minimize: Any, scale: float, **rules: Any) -> Any:
    d = cpv.hamming(3).matrix * scale
    return cpv.RateDistortionEquivocation(
        KNOWN, d, 0.25 * scale, minimize=minimize, side_information="decoder", **rules
    )


# one of each formulation and criterion, with all costs and budgets times a scale
FAST: dict[str, Any] = {
    "budget": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, budget=0.4 * s),
    "nats": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, budget=0.4 * s, units="nats"),
    "w seen": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, budget=0.4 * s, encoder="wx"),
    "price": lambda s: cpv.PrivacyDistortion(SOURCE, D * s, price=2.5 * s),
    "rate": lambda s: cpv.RateDistortionEquivocation(SOURCE, D * s, 0.4 * s, max_leakage=0.1),
    "leakage": lambda s: cpv.RateDistortionEquivocation(
        SOURCE, D * s, 0.4 * s, minimize="leakage", max_rate=0.8
    ),
    "distortion": lambda s: cpv.RateDistortionEquivocation(
        SOURCE, D * s, minimize="distortion", min_equivocation=1.4
    ),
    "weighted": lambda s: decoded({"rate": 1.0, "leakage": 0.5}, s),
    "decoder": lambda s: decoded("rate", s, max_leakage=0.4),
    "both": lambda s: cpv.RateDistortionEquivocation(
        KNOWN, cpv.hamming(3).matrix * s, 0.25 * s, side_information="both"
    ),
    "both, w seen": lambda s: cpv.RateDistortionEquivocation(
        KNOWN, cpv.hamming(3).matrix * s, 0.3 * s, minimize="leakage", max_rate=0.35,
        side_information="both", encoder="wx",
    ),
    "equivocation": lambda s: decoded("rate", s, min_equivocation=0.6, encoder="wx"),
    "quadratic": lambda s: cpv.QuadraticGaussian(
        scaled(s), 0.8 * s
    ),
    "weights": lambda s: cpv.QuadraticGaussian(
        scaled(s), 0.8 * s, weights=[1.0, 2.5], units="nats"
    ),
    "cap": lambda s: cpv.QuadraticGaussian(
        scaled(s), 1.0 * s, cap=np.array([[0.9, 0.1], [0.1, 0.4]]) * s
    ),
    "attributes": lambda s: cpv.QuadraticGaussian(
        cpv.GaussianSource(
            np.array(GAUSSIAN.exact, float) * s, sensitive=["w"], key=["a", "b"],
            names=["w", "a", "b", "z"],
        ),
        {"a": 0.7 * s, "b": 0.3 * s},
    ),
    "gaussian rate": lambda s: cpv.GaussianEquivocation(
        scaled(s, side=[3]),
        0.8 * s, max_leakage=0.5, side_information="both",
    ),
    "gaussian leakage": lambda s: cpv.GaussianEquivocation(
        scaled(s, side=[3]),
        0.8 * s, minimize="leakage", max_rate=2.0, encoder="wx",
    ),
    "reverse": lambda s: cpv.ReverseWaterFilling(np.array([0.5, 1.0, 4.0]) * s, 2.0 * s),
    "box": lambda s: cpv.BoxWaterFilling(np.array([0.5, 1.0, 4.0]) / s, np.ones(3) * s, 1.2 * s),
    "categorical": lambda s: cpv.HammingWaterFilling([0.4, 0.3, 0.2, 0.1], 0.3),
    **{name: lambda s, n=name: stricter(n, s, "bits") for name in CRITERIA},
    "nats of t": lambda s: stricter("t-closeness", s, "nats"),
    "nats of l": lambda s: stricter("l-diversity", s, "nats"),
    "nats of b": lambda s: stricter("maximal", s, "nats"),
}  # fmt: skip

# ---- random ones -------------------------------------------------------------------------

VARIOUS: dict[str, Callable[[], Instance]] = {
    f"{name} {seed}": lambda name=name, seed=seed: instance(np.random.default_rng(seed), name)[1]
    for name in KINDS
    if not name.startswith("any")
    for seed in range(3)
}
