"""Beside qif (libqif): vulnerabilities, leakage, capacities, refinement, mechanisms."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import qif

import cvxprivacy as cpv
from cvxprivacy.mechanisms import randomised_response, truncated_geometric

from . import judge
from .cases import channel, channels, law, narrowly, normalised, pairs
from .tally import Tally

NOTES: list[str] = []


def tallies() -> Iterator[Tally]:
    """Yield the lines of the table."""
    yield from leakages()
    yield from refinements()
    yield from distances()
    yield from mechanisms()
    times()


def leakages() -> Iterator[Tally]:
    """Compare what a channel tells, in each of qif's measures that this package has."""
    lines = {
        name: Tally(name, how)
        for name, how in {
            "Shannon leakage": "definition in balls",
            "Shannon capacity": "I(π) ≤ C ≤ max D(V ‖ r), in balls",
            "Bayes vulnerability after": "fractions",
            "min-entropy leakage": "definition in balls",
            "multiplicative Bayes capacity": "fractions",
            "g-vulnerability before": "fractions",
            "g-vulnerability after": "fractions",
            "additive g-leakage": "fractions",
        }.items()
    }
    measure = qif.measure
    draw = random.Random(11)
    for prior, rows in channels(11, 150):
        p, v = np.array(prior, float), np.array(rows, float)
        joint = p[:, None] * v
        told = judge.information(prior, rows)
        ours = cpv.information.mutual_information(joint)
        lines["Shannon leakage"].add(ours, measure.shannon.add_leakage(p, v), told)
        ours = cpv.capacity(rows)
        theirs, best = measure.shannon.add_capacity(v)
        truth = judge.capacity(rows, [list(ours.prior.values()), best])
        lines["Shannon capacity"].add(float(ours), theirs, truth, rows)
        right = judge.identity(len(prior))
        after = judge.best_guess(right, prior, rows)
        guessed = cpv.leakage.GuessingProbability().total(joint)
        lines["Bayes vulnerability after"].add(
            guessed, measure.bayes_vuln.posterior(p, v), float(after)
        )
        truth = float(judge.log2(judge.ball(after / max(prior))))
        theirs = measure.bayes_vuln.min_entropy_leakage(p, v)
        lines["min-entropy leakage"].add(np.log2(guessed / p.max()), theirs, truth)
        greatest = sum(max(column) for column in zip(*rows, strict=True))
        ours = cpv.leakage.Maximal().total(joint)
        theirs = measure.bayes_vuln.mult_capacity(v)
        lines["multiplicative Bayes capacity"].add(ours, theirs, float(greatest))
        gain = [[Fraction(draw.randint(0, 9)) for _ in prior] for _ in range(draw.randint(2, 4))]
        g, exact = np.array(gain, float), cpv.leakage.Gain(gain)
        before = judge.best_guess(gain, prior, [[Fraction(1)]] * len(prior))
        after = judge.best_guess(gain, prior, rows)
        known, unseen = exact.total(joint), exact.total(p[:, None])
        lines["g-vulnerability before"].add(unseen, measure.g_vuln.prior(g, p), float(before))
        lines["g-vulnerability after"].add(known, measure.g_vuln.posterior(g, p, v), float(after))
        theirs = measure.g_vuln.add_leakage(g, p, v)
        lines["additive g-leakage"].add(known - unseen, theirs, float(after - before))
    yield from lines.values()


def refinements() -> Iterator[Tally]:
    """Compare refinement, in floats and in fractions, which qif has, too."""
    floats, fractions, near, exactly = (
        Tally(name, judge.BY_PROOF)
        for name in (
            "refinement, qif in floats", "refinement, qif in fractions",
            "missed by 1e-10, qif in floats", "missed by 1e-10, qif in fractions",
        )
    )  # fmt: skip
    for lines, asked in (((floats, fractions), pairs(12, 120)), ((near, exactly), narrowly())):
        for a, b in asked:
            first, second = np.array(a), np.array(b)
            ours = cpv.compare_channels(first, second)
            truth = judge.order(a, b, ours.garbling, ours.prior, ours.gain)
            for line, there in zip(
                lines,
                (refined(second.astype(float), first.astype(float)), refined(second, first)),
                strict=True,
            ):
                line.add(judge.ANSWER[ours.verdict], there, truth, (a, b))
    yield from (floats, fractions, near, exactly)


def refined(b: np.ndarray, a: np.ndarray) -> float:
    """Return qif's answer; none where its solver gives up."""
    try:
        return float(qif.refinement.refined_by(b, a))
    except RuntimeError:
        return math.nan


def distances() -> Iterator[Tally]:
    """Compare distances of laws, and the least ε of channels."""
    variation = Tally("total variation", "fractions")
    mover = Tally("Kantorovich distance, as it comes", "fractions")
    program = Tally('Kantorovich distance, method "lp"', "fractions")
    least = Tally("least ε of a channel", "definition in balls")
    metric = Tally("least ε for each unit of distance", "definition in balls")
    draw = random.Random(13)
    euclidean, discrete = qif.metric.euclidean(), qif.metric.discrete()
    kantorovich, tv = qif.metric.kantorovich, qif.metric.total_variation()
    ways = ((mover, kantorovich(euclidean)), (program, kantorovich(euclidean, "lp")))
    for _ in range(100):
        size = draw.randint(2, 6)
        p, q = law(draw, size), law(draw, size)
        a, b = np.array(p, float), np.array(q, float)
        far = sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2
        variation.add(cpv.leakage.divergence(a, b, "tv"), tv(a, b), float(far))
        moved = [sum(p[: i + 1]) - sum(q[: i + 1]) for i in range(size)]
        ours = cpv.leakage.divergence(a, b, "emd") * (size - 1)
        for line, there in ways:
            line.add(ours, there(a, b), float(sum(map(abs, moved))), (p, q))
        rows = channel(draw, draw.randint(2, 4), draw.randint(2, 4), empty=0.0)
        matrix = np.array(rows, float)
        labels = list(range(len(rows)))
        released = cpv.Channel(matrix, inputs=labels, outputs=range(len(rows[0])))
        logs = [
            (float(judge.ball(x / y).log()), abs(i - j))
            for column in zip(*rows, strict=True)
            for i, x in enumerate(column) for j, y in enumerate(column) if i != j
        ]  # fmt: skip
        ours = cpv.PrivacyProfile(released).epsilon
        theirs = qif.measure.d_privacy.smallest_epsilon(matrix, discrete)
        least.add(ours.upper, theirs, max(x for x, _ in logs), rows)
        ours = cpv.PrivacyProfile(released, metric=cpv.absolute_error(labels)).epsilon
        theirs = qif.measure.d_privacy.smallest_epsilon(matrix, euclidean)
        metric.add(ours.upper, theirs, max(x / d for x, d in logs), rows)
    yield from (variation, mover, program, least, metric)


def mechanisms() -> Iterator[Tally]:
    """Compare mechanisms entry by entry, and the least loss of the best ones."""
    geometric = Tally("geometric mechanism, entries", "closed form in balls")
    response = Tally("randomised response, entries", "closed form in balls")
    private = Tally("least loss under metric privacy", "ends proved by a certificate")
    guessed = Tally("least loss under a vulnerability", "ends proved by a certificate")
    made, draw = qif.mechanism, random.Random(14)
    for _ in range(15):
        size, epsilon = draw.randint(2, 6), Fraction(draw.randint(1, 30), 10)
        alpha = (-judge.ball(epsilon)).exp()
        ours = truncated_geometric(size, epsilon).matrix
        theirs = made.d_privacy.geometric(size, float(epsilon))
        answers = randomised_response(range(size), epsilon).matrix
        others = made.d_privacy.randomized_response(size, float(epsilon))
        for i in range(size):
            for j in range(size):
                part = 1 if j in (0, size - 1) else 1 - alpha
                truth = float(part * alpha ** abs(i - j) / (1 + alpha))
                geometric.add(ours[i, j], theirs[i, j], truth, (size, epsilon, i, j))
                truth = float((1 if i == j else alpha) / (1 + (size - 1) * alpha))
                response.add(answers[i, j], others[i, j], truth, (size, epsilon, i, j))
    euclidean = qif.metric.euclidean()
    for _ in range(60):
        size = draw.randint(3, 6)
        prior = normalised([draw.randint(1, 20) for _ in range(size)])
        p, source = np.array(prior, float), cpv.DiscreteSource.identical(prior)
        years = cpv.absolute_error(list(range(size)))
        epsilon = draw.randint(2, 12) / 8
        rule = cpv.LocalPrivacy(epsilon, metric=years)
        solution = cpv.MinimumDistortion(source, years, [rule]).solve()
        scaled = qif.metric.scale(euclidean, epsilon)
        theirs = made.d_privacy.min_loss_given_d(p, size, scaled, euclidean)
        loss = qif.utility.expected_distance(euclidean, p, theirs)
        private.add(solution.value, loss, proved(solution), (prior, epsilon))
        most = Fraction(draw.randint(0, 10), 20) * (1 - max(prior)) + max(prior)
        cap = cpv.LeakageCap(most, cpv.leakage.GuessingProbability())
        solution = cpv.MinimumDistortion(source, years, [cap]).solve()
        theirs = made.bayes_vuln.min_loss_given_max_vuln(p, size, float(most), euclidean)
        loss = qif.utility.expected_distance(euclidean, p, theirs)
        guessed.add(solution.value, loss, proved(solution), (prior, most))
    yield from (geometric, response, private, guessed)


def proved(solution: cpv.typing.Solution) -> tuple[float, float]:
    """Return the ends of an optimum whose certificate verifies."""
    assert solution.certificate.verify(), "a certificate does not verify"
    return solution.lower, solution.upper


def times() -> None:
    """Note how long the best mechanism under metric privacy takes: the best of three."""
    euclidean = qif.metric.euclidean()
    private = qif.metric.scale(euclidean, math.log(2))
    for size in (10, 20, 30, 40):
        p, years = np.full(size, 1 / size), cpv.absolute_error(list(range(size)))
        source = cpv.DiscreteSource.identical([Fraction(1, size)] * size)
        rule = cpv.LocalPrivacy(math.log(2), metric=years)
        seconds: dict[str, list[float]] = {"here": [], "there": []}
        for _ in range(3):
            start = time.perf_counter()
            qif.mechanism.d_privacy.min_loss_given_d(p, size, private, euclidean)
            middle = time.perf_counter()
            solution = cpv.MinimumDistortion(source, years, [rule]).solve()
            seconds["here"].append(time.perf_counter() - middle)
            seconds["there"].append(middle - start)
        ratio = min(seconds["here"]) / min(seconds["there"])
        NOTES.append(
            f"metric privacy of {size} letters: {ratio:.2g} times the seconds of qif, "
            f"with {solution.status} ends"
        )
