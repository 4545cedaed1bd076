"""What another choice of the numbers would cost: the curve around them, and their prices."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.errors import CertificationError, InfeasibleError, InputError
from cvxprivacy.results.price_bounds import Price
from cvxprivacy_sdc.dossier.words import extended, rounded

if TYPE_CHECKING:
    from cvxprivacy.formulations.channel import ChannelProblem
    from cvxprivacy.results.solution import Solution

__all__ = ["curve", "prices"]

MOST_ENTRIES = 100_000  # of a channel of which a curve is drawn
BAND = 0.02  # of the curve's height, that is asked for
MANY_ENTRIES = 20_000  # of which only a stretch around the chosen number is drawn
TOO_FEW = "too few points of it were solved in the time that is given to it"
SECONDS = 8.0  # after which no further point of the curve is solved
NEGLIGIBLE = 1e-9  # a price that is rounding
FINE = 120  # places at which both ends of the band are told


def curve(
    problem: Any,
    solution: Solution,
    minimised: tuple[str, str],
    height: float,
    *,
    seconds: float = 0.0,
    progress: Callable[[str], object] | None = None,
    words: str = "mean change per record that is allowed",
    parts: int = 1,
) -> tuple[dict[str, Any] | None, str]:
    """Return the optimum over the number that the user chose, or why it is not drawn.

    Parameters
    ----------
    problem : ChannelProblem or QuadraticGaussian
    minimised : (str, str)
        What is minimised, in words, and its unit, "" if it has none.
    height : float
        Of the curve, in the unit of the optimum: what the band is measured by.
    seconds : float
        How long the problem itself took.
    words : str
        What the budget is.
    parts : int
        Of how many parts the budget is the sum: what is drawn is their mean.
    """
    from cvxprivacy import frontier

    name = _parameter(problem, solution)
    if name is None:
        return None, "no number of the problem can be moved along a curve"
    alphabet = getattr(problem, "alphabet", None)
    entries = 0 if alphabet is None else alphabet.n * alphabet.m
    if alphabet is not None and entries > MOST_ENTRIES:
        size = f"{alphabet.n:,} × {alphabet.m:,}"
        return None, f"the channel has {size} entries, and each point of the curve is a program"
    if seconds > SECONDS:
        return None, f"each of its points is a program, and this one took {seconds:.0f} seconds"
    started = time.monotonic()

    def watched(line: str) -> None:
        if progress is not None:
            progress(line)
        if time.monotonic() - started > SECONDS:
            raise KeyboardInterrupt  # which a frontier takes as: return what is proved so far

    chosen = _chosen(problem, name)
    many = entries > MANY_ENTRIES
    how: dict[str, Any] = {}  # the points alone: ends are dear to find where nothing is convex
    if not many and name in ("budget", "leakage_cap"):
        how = {"tol": max(BAND * height, 1e-9)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a curve that is not complete
            optima = frontier(
                problem, name, points=_around(problem, name, chosen, many), progress=watched, **how
            )
    except (InputError, InfeasibleError, CertificationError) as error:
        return None, str(error)
    except KeyboardInterrupt:  # where it had nothing to return yet
        return None, TOO_FEW
    if optima.solved_range is None or len(optima.points) < 2:
        return None, TOO_FEW
    unit = ""
    if name != "budget":
        rule = problem._criteria()[name]
        asks = rule.in_words(units=problem.units)
        verb = "asks for" if asks.at_least else "allows"
        words, unit = f"{asks.quantity} that {type(rule).__name__} {verb}", asks.unit
        if unit == "nats" and "log ratio" in asks.quantity:  # of a factor
            words, unit = f"natural logarithm of the factor that {type(rule).__name__} {verb}", ""
    first, last = map(float, optima.solved_range)
    solved = [float(point.x) for point in optima.points]
    places = np.unique([*np.linspace(first, last, FINE), *solved, chosen])
    places = places[(places >= first) & (places <= last)]
    partial = ""
    if optima.tol is None:
        partial = "only a stretch around the chosen number was solved for"
    elif not optima.complete:
        partial = (
            f"the curve was broken off after {SECONDS:.0f} seconds: it is proved, but its band "
            "is wider than was aimed at, or it does not reach both of its ends"
        )
    points = [
        {"x": rounded(float(p.x) / parts), "lower": rounded(p.lower), "upper": rounded(p.upper)}
        for p in optima.points
        if math.isfinite(p.upper)
    ]
    x = rounded(chosen / parts)
    around = {rounded(place / parts) for place in _around(problem, name, chosen, many)}
    named = sorted((p["x"] or 0.0, p["upper"]) for p in points if p["x"] in around)
    return {
        "parameter": name,
        "words": words,
        "kind": optima.kind,
        "minimised": minimised[0],
        "unit": minimised[1],
        "points": points,
        "curve": [
            {"x": rounded(at / parts), "achieved": rounded(a), "proved": rounded(b)}
            for at, a, b in zip(places, optima.inner(places), optima.outer(places), strict=True)
            if math.isfinite(a)
        ],
        "chosen": {"x": x, "value": rounded(solution.value)},
        "band": rounded(optima.band),
        "solved": len(optima.points),
        "partial": partial,
        "x_unit": unit,
        "choices": [  # the tightest first
            {"name": chr(ord("A") + i), "x": at, "value": value, "chosen": at == x}
            for i, (at, value) in enumerate(named)
        ],
    }, ""


def _parameter(problem: Any, solution: Solution) -> str | None:
    """Return the number to move: the budget, or the criterion that costs most."""
    if "budget" in solution.prices:
        return "budget"
    named = problem._criteria()
    movable = {
        name: abs(float(solution.prices[name])) * max(abs(float(rule.value)), 1e-12)
        for name, rule in named.items()
        if rule.value is not None and rule.loosest is not None and name in solution.prices
        and np.ndim(solution.prices[name]) == 0 and np.ndim(rule.value) == 0
    }  # fmt: skip
    return max(movable, key=lambda name: movable[name], default=None)


def _chosen(problem: Any, name: str) -> float:
    """Return the number that was typed: the budget of a formulation that has one, or a rule's."""
    return float(problem.budget if name == "budget" else problem._criteria()[name].value)


def _around(problem: Any, name: str, chosen: float, many: bool) -> list[float]:
    """Return the chosen number and some beside it that the problem can be stated at."""
    shares = (0.6, 1.0, 1.6) if many else (0.6, 0.8, 1.0, 1.3, 1.6)
    points = []
    for x in dict.fromkeys(chosen * share for share in shares):
        with suppress(InputError):
            problem.at(**{name: x})
            points.append(x)
    return points


def prices(
    problem: ChannelProblem, solution: Solution, minimised: tuple[str, str]
) -> list[dict[str, Any]]:
    """Return the price of each number typed, with what a small step of it would do in words."""
    named: Mapping[str, Any] = problem._criteria()
    what, unit = minimised[0], minimised[1] and f" {minimised[1]}"
    rows = []
    for name, price in solution.prices.items():
        if np.ndim(price):
            continue
        rule = named.get(name)
        typed = _chosen(problem, name) if name == "budget" else rule and rule.value
        label = "the budget" if name == "budget" else repr(rule) if rule is not None else name
        if typed is None or np.ndim(typed):
            continue
        proved = price if isinstance(price, Price) else None
        if proved is not None and proved.number is None:
            words, shown = f"{label}: what it costs is {proved.words}", None
        else:
            words = _price_words(label, float(typed), float(price), what, unit, solution.value)
            shown = extended(float(price)) if abs(price) > NEGLIGIBLE else 0.0
            if proved is not None and proved.kind == "not proved":
                words += " (by the multipliers, not proved)"
        rows.append({"name": label, "typed": rounded(float(typed)), "price": shown, "words": words})
    return rows


def _price_words(
    label: str, typed: float, price: float, what: str, unit: str, value: float
) -> str:  # fmt: skip
    """Say what a step towards looseness would bring: prices are derivatives, to first order."""
    if not math.isfinite(price):
        return f"{label} is at its tightest: the least tightening leaves no release"
    step = _step(typed)
    bought = abs(price) * step
    if bought <= 2e-3 * max(abs(value), 1e-9):
        return f"{label} costs next to nothing here: loosening it would not lower {what} noticeably"
    looser = "allowing" if price < 0 else "asking"
    more = "more" if price < 0 else "less"
    return (
        f"{looser} {step:g} {more} of {label} would lower {what} by about {bought:.3g}{unit}; the "
        f"first {step:g} {'less' if price < 0 else 'more'} would raise it by about as much"
    )


def _step(typed: float) -> float:
    """Return a round step of about a tenth of a number."""
    return 10.0 ** math.floor(math.log10(abs(typed) / 10 * 1.0000001)) if typed else 0.01
