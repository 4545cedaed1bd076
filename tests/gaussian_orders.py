"""Gaussian problems whose value cannot depend on how they are written.

Exact covariances, some singular or next to it, in two orders of the variables and in two units:
X → aX with a²D in place of D leaves the information.  The enclosures must overlap, and contain the
truth where a formula has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np

import cvxprivacy as cpv
from tests.instances import Chance
from tests.lies import outcome
from tests.second_checker import Refused, check
from tests.tally import Tally

SIZE = 5  # variables up to which the second checker is asked, too
Matrix = list[list[Fraction]]


# ---- problems and their twins ------------------------------------------------------------


def law(rng: Chance, size: int) -> Matrix:
    """Return A Aᵀ + noise, in which variables may nearly or wholly determine each other."""
    factors = int(rng.integers(max(1, size - 2), size + 2))
    tops = rng.integers(-5, 6, (size, factors)).tolist()
    below = rng.integers(1, 8, (size, factors)).tolist()
    loads = [list(map(Fraction, *pair)) for pair in zip(tops, below, strict=True)]
    noise = Fraction(1, 2 ** int(rng.choice([0, 2, 10, 30, 52, 60])))
    quiet = rng.random(size) < 0.3
    values = [[sum(a * b for a, b in zip(r, s, strict=True)) for s in loads] for r in loads]
    for i in range(size):
        values[i][i] += 0 if quiet[i] else noise * int(rng.integers(1, 4))
    if rng.random() < 0.3:  # floats are rationals too
        values = [[Fraction(float(x)) for x in row] for row in values]
        for i in range(size):
            values[i][i] += sum(map(abs, values[i])) * Fraction(1, 2**40)
    return values


class Problem:
    """A Gaussian problem as data, so that it can be written in another order and unit."""

    def __init__(self, rng: Chance) -> None:
        w, x = int(rng.integers(1, 3)), int(rng.integers(1, 5))
        side = rng.random() < 0.25
        self.law = law(rng, w + x + side)
        self.w, self.x = list(range(w)), list(range(w, w + x))
        self.z = [w + x] if side else []
        self.units = str(rng.choice(["bits", "nats"]))
        variances = [self.law[i][i] for i in self.x]
        share = Fraction(int(rng.integers(1, 70)), 64)
        self.budget: Any = share * sum(variances)
        self.kind = "region" if side or rng.random() < 0.2 else "quadratic"
        self.options: dict[str, Any] = {}
        self.weights: list[Fraction] | None = None
        if self.kind == "region":
            expected = str(rng.choice(["decoder", "both"])) if side else None
            self.options = {"side_information": expected, "encoder": str(rng.choice(["x", "wx"]))}
            self.options["minimize"] = str(rng.choice(["rate", "leakage"]))
            if rng.random() < 0.3:
                self.options["max_leakage"] = float(rng.uniform(0.3, 3))
        elif rng.random() < 0.35:
            some = [i for i in range(x) if rng.random() < 0.6] or [0]
            self.budget = {i: share * variances[i] for i in some}
        elif rng.random() < 0.35:
            self.weights = [Fraction(int(k), 8) for k in rng.integers(1, 20, x)]

    def written(self, order: list[int], a: Fraction) -> Any:
        """Return the problem with its variables in another order, and X in units of 1/a."""
        size = [a if i in self.x else Fraction(1) for i in range(len(self.law))]
        gamma = [[self.law[i][j] * size[i] * size[j] for j in order] for i in order]
        names = [f"V{i}" for i in order]
        places = {group: [names[order.index(i)] for i in sorted(members, key=order.index)]
                  for group, members in (("w", self.w), ("x", self.x), ("z", self.z))}  # fmt: skip
        source = cpv.GaussianSource(
            gamma, sensitive=places["w"], key=places["x"], side=places["z"], names=names
        )
        if self.kind == "region":
            return cpv.GaussianEquivocation(
                source, self.budget * a * a, units=self.units, **self.options
            )
        budget: Any
        if isinstance(self.budget, dict):
            budget = {f"V{self.x[i]}": value * a * a for i, value in self.budget.items()}
        else:
            budget = self.budget * a * a
        weights = None
        if self.weights is not None:
            weights = [self.weights[self.x.index(int(name[1:]))] for name in places["x"]]
        return cpv.QuadraticGaussian(source, budget, weights=weights, units=self.units)

    def twins(self, rng: Chance) -> Iterator[Callable[[], Any]]:
        """Yield what makes it as it is, in another order, in another unit, and in both."""
        plain = list(range(len(self.law)))
        other = rng.permutation(plain).tolist()
        a = Fraction(int(rng.integers(1, 99)), int(rng.integers(1, 99)))
        if rng.random() < 0.5:
            a = Fraction(2) ** int(rng.integers(-30, 31))
        for order, unit in ((plain, Fraction(1)), (other, Fraction(1)), (plain, a), (other, a)):
            yield partial(self.written, order, unit)


# ---- problems whose value is known -------------------------------------------------------


def nearly_equal(k: int) -> tuple[list[Any], Any]:
    """Return X₁ = (U + eV)/3, X₂ = (U − eV)/7, X₃ = V/11, W = U + 4V + N, in three orders.

    The budget is on X₃ alone, so that the key, which determines U and V, has an error d of V and
    one of U + 4V of at most 1 + 15 d + 8 √(d(1 − d)), whatever e = 2⁻ᵏ/3 is.
    """
    e = Fraction(1, 3 * 2**k)
    loads = {
        "W": (1, 4, 1),
        "X1": (Fraction(1, 3), e / 3, 0),
        "X2": (Fraction(1, 7), -e / 7, 0),
        "X3": (0, Fraction(1, 11), 0),
    }
    d = Fraction(1, 2)
    problems = []
    for order in ("W X1 X2 X3", "X3 W X2 X1", "X2 X3 X1 W"):
        names = order.split()
        gamma = [
            [sum(Fraction(a) * b for a, b in zip(loads[i], loads[j], strict=True)) for j in names]
            for i in names
        ]
        key = [name for name in names if name != "W"]
        source = cpv.GaussianSource(gamma, sensitive=["W"], key=key, names=names)
        problems.append(partial(cpv.QuadraticGaussian, source, {"X3": d / 121}))
    with mpmath.workdps(60):
        information = mpmath.mpf(18) / (2 + mpmath.mpf(15) / 2 + 8 * mpmath.mpf(1) / 2)
        return problems, mpmath.log(information, 2) / 2


def density(bits: int, entropy: float, budget: float = 0.5) -> tuple[list[Any], Any]:
    """Return the bound of a W of entropy h, two variables of correlation 1 − 2^−bits."""
    a = 1 - 2.0**-bits
    gamma = [[1.0, a, 0.5], [a, 1.0, 0.5], [0.5, 0.5, 1.0]]
    problems = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        law_ = [[gamma[i][j] for j in order] for i in order]
        places = [order.index(0), order.index(1)]
        source = cpv.GaussianSource(law_, sensitive=places, key=[order.index(2)])
        problems.append(partial(cpv.QuadraticGaussian, source, budget, entropy=entropy))
    with mpmath.workdps(60):
        q = (1 - mpmath.mpf(budget)) / 4
        det = (2 * mpmath.pi * mpmath.e) ** 2 * (1 - mpmath.mpf(a)) * (1 + mpmath.mpf(a) - 2 * q)
        return problems, mpmath.mpf(entropy) - mpmath.log(det, 2) / 2


def cases() -> Iterator[tuple[str, list[Any], Any]]:
    for k in range(8, 31):
        yield f"e = 2^-{k}/3", *nearly_equal(k)
    for bits in (10, 40, 52):
        for entropy in (-16.0, 1.0, 3.7):
            yield f"a = 1 - 2^-{bits}, h = {entropy}", *density(bits, entropy)


# ---- truth -------------------------------------------------------------------------------


def proved(problem: Any) -> tuple[float, float, str]:
    """Return proved ends, and what is wrong with them; the status "refused" of bad input."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        certificate = outcome(problem)
    document = certificate.document()
    if len(document["program"]["covariance"]) <= SIZE:
        try:
            lower, upper, status = check(document)
        except Refused as error:
            return certificate.lower, certificate.upper, f"the second checker refuses it: {error}"
        meet = lower <= certificate.upper and certificate.lower <= upper
        if not meet and "infeasible" not in (status, certificate.status):
            return certificate.lower, certificate.upper, "the second checker has other ends"
    return certificate.lower, certificate.upper, ""


def falsehood(makers: list[Callable[[], Any]], truth: Any = None) -> str:
    """Return what is false about enclosures of one value; empty if nothing is."""
    ends: list[tuple[float, float]] = []
    refused = None
    for make in makers:
        try:
            lower, upper, wrong = proved(make())
        except cpv.InputError as error:
            if ends:
                return f"solved as {ends[0]}, and refused: {error}"
            refused = error
            continue
        if refused is not None:
            return f"refused, and solved as {(lower, upper)}: {refused}"
        if wrong:
            return wrong
        if truth is not None and not lower <= truth <= upper:
            return f"{mpmath.nstr(truth, 20)} is not in [{lower!r}, {upper!r}]"
        ends.append((lower, upper))
    if refused is not None:
        raise refused
    infeasible = {low == np.inf for low, _ in ends}  # some proved infeasible, others feasible?
    if len(infeasible) > 1 and any(high < np.inf for _, high in ends):
        return f"feasible and infeasible: {ends}"
    if len(infeasible) == 1 and max(low for low, _ in ends) > min(high for _, high in ends):
        return f"disjoint: {ends}"
    return ""


def same_in_every_order(
    tally: Tally, name: str, makers: list[Callable[[], Any]], truth: Any = None
) -> None:
    """Judge problems that must have one value, or be refused for one reason."""
    tally.tried += 1
    try:
        wrong = falsehood(makers, truth)
    except cpv.InputError as error:
        tally.refusals[f"InputError: {error.argument}"] += 1
        return
    except Exception as error:  # nothing else is documented
        wrong = f"{type(error).__name__}: {str(error)[:150]}"
    if wrong:
        tally.false.append(f"{name}: {wrong}")
    else:
        tally.verified += 1


def campaign(count: int, seed: int = 0, first: int = 0) -> Tally:
    """Write so many problems four ways, numbers ``first`` on; the known ones come first."""
    tally = Tally()
    if not first:
        for name, makers, truth in cases():
            same_in_every_order(tally, name, makers, truth)
    for index in range(first, first + count):
        rng = np.random.default_rng([seed, index])
        problem = Problem(rng)
        same_in_every_order(tally, f"trial {index} ({problem.kind})", list(problem.twins(rng)))
    return tally
