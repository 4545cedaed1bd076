"""Beside dit: information, divergences, capacities, orders of channels, rate–distortion."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import dit
import numpy as np
from dit.algorithms import channel_capacity
from dit.channelorder import is_output_degraded, le_cam_deficiency
from dit.divergences import pmf as of_laws
from dit.other import sibson_mutual_information_pmf
from dit.rate_distortion.blahut_arimoto import blahut_arimoto

import cvxprivacy as cpv
from cvxprivacy.leakage import divergence

from . import judge
from .cases import channels, law, narrowly, pairs
from .tally import Tally

BALLS = "definition in balls"
MISSED = "missed by 1e-10"


def tallies() -> Iterator[Tally]:
    """Yield the lines of the table."""
    yield from informations()
    yield from divergences()
    yield from capacities()
    yield from orders()
    yield from rates()


def informations() -> Iterator[Tally]:
    """Compare entropies and informations of a joint law."""
    entropy, conditional = Tally("entropy", BALLS), Tally("conditional entropy", BALLS)
    information, leakage = Tally("mutual information", BALLS), Tally("maximal leakage", BALLS)
    sibson = Tally("Sibson's information, ½ to 5", BALLS)
    for prior, rows in channels(1, 120):
        p, v = np.array(prior, float), np.array(rows, float)
        joint = p[:, None] * v
        theirs = dit.Distribution.from_ndarray(joint)
        told, h = judge.information(prior, rows), judge.entropy(prior)
        entropy.add(cpv.information.entropy(p), dit.shannon.entropy(theirs, [0]), h)
        ours = cpv.information.conditional_entropy(joint)
        conditional.add(ours, dit.shannon.conditional_entropy(theirs, [0], [1]), h - told)
        ours = cpv.information.mutual_information(joint)
        information.add(ours, dit.shannon.mutual_information(theirs, [0], [1]), told)
        for order in (Fraction(1, 2), Fraction(3, 2), Fraction(2), Fraction(5)):
            ours = cpv.information.sibson_information(joint, float(order))
            there = sibson_mutual_information_pmf(joint, float(order))
            sibson.add(ours, there, judge.sibson(prior, rows, order))
        greatest = sum(max(column) for column in zip(*rows, strict=True))
        truth = float(judge.log2(judge.ball(greatest)))
        ours = np.log2(cpv.leakage.Maximal().total(joint))
        leakage.add(ours, sibson_mutual_information_pmf(joint, np.inf), truth)
    yield from (entropy, conditional, information, sibson, leakage)


def divergences() -> Iterator[Tally]:
    """Compare divergences of two laws, some values of which one of them lacks."""
    kl, renyi = (
        Tally("Kullback–Leibler divergence", BALLS),
        Tally("Rényi divergence, ½ and 2", BALLS),
    )
    variation, chi = (
        Tally("total variation", "fractions"),
        Tally("χ² as an f-divergence", "fractions"),
    )
    hellinger, shannon = Tally("squared Hellinger distance", BALLS), Tally("Jensen–Shannon", BALLS)
    mover = Tally("earth mover, values in a row", "fractions")
    draw = random.Random(2)
    for _ in range(150):
        size = draw.randint(2, 6)
        p, q = law(draw, size), law(draw, size)
        a, b = np.array(p, float), np.array(q, float)
        outcomes = [str(i) for i in range(size)]
        first, second = (dit.Distribution(outcomes, x, trim=False) for x in (a, b))
        kl.add(
            divergence(a, b),
            of_laws.relative_entropy(a, b),
            judge.renyi(p, q, Fraction(1)),
            (p, q),
        )
        for order in (Fraction(1, 2), Fraction(2)):
            ours = divergence(a, b, f"renyi:{float(order)}")
            there = dit.divergences.renyi_divergence(first, second, float(order))
            renyi.add(ours, there, judge.renyi(p, q, order), (order, p, q))
        far = sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2
        variation.add(divergence(a, b, "tv"), of_laws.variational_distance(a, b), float(far))
        lacking = any(x and not y for x, y in zip(p, q, strict=True))
        squares = sum((x - y) ** 2 / y for x, y in zip(p, q, strict=True) if y)
        there = dit.divergences.f_divergence(first, second, lambda t: (t - 1) ** 2)
        truth = float("inf") if lacking else float(squares)
        chi.add(divergence(a, b, "chi2"), there, truth, (p, q))
        half = Fraction(1, 2)
        roots = sum(
            (judge.power(x, half) * judge.power(y, half) for x, y in zip(p, q, strict=True)),
            judge.arb(0),
        )
        hellinger.add(
            divergence(a, b, "hellinger") / 2,
            of_laws.hellinger_distance(a, b) ** 2,
            float(1 - roots),
        )
        mean = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
        truth = float((judge.divergence(p, mean) + judge.divergence(q, mean)) / 2)
        shannon.add(divergence(a, b, "js"), of_laws.jensen_shannon_divergence2(a, b), truth)
        moved = [sum(p[: i + 1]) - sum(q[: i + 1]) for i in range(size)]
        ground = np.abs(np.subtract.outer(range(size), range(size))) / (size - 1)
        there = of_laws.earth_movers_distance(a, b, ground)
        mover.add(divergence(a, b, "emd"), there, float(sum(map(abs, moved)) / (size - 1)))
    yield from (kl, renyi, variation, chi, hellinger, shannon, mover)


def capacities() -> Iterator[Tally]:
    """Compare capacities: both priors bound them from below, both laws of outputs from above."""
    how = "I(π) ≤ C ≤ max D(V ‖ r), in balls"
    line, longer = Tally("capacity, as it comes", how), Tally("capacity, tolerances of 1e-13", how)
    for _, rows in channels(3, 100):
        ours, matrix = cpv.capacity(rows), np.array(rows, float)
        for each, options in ((line, {}), (longer, {"rtol": 1e-13, "atol": 1e-13})):
            theirs, prior = channel_capacity(matrix, **options)
            truth = judge.capacity(rows, [list(ours.prior.values()), prior])
            each.add(float(ours), theirs, truth, rows)
    yield from (line, longer)


def orders() -> Iterator[Tally]:
    """Compare Blackwell's order and Le Cam's deficiency."""
    order, close = (Tally(name, judge.BY_PROOF) for name in ("Blackwell's order", MISSED))
    deficiency = Tally("Le Cam's deficiency", "garbling and gain, in fractions")
    for line, asked in ((order, pairs(4, 120)), (close, narrowly())):
        for a, b in asked:
            first, second = np.array(a), np.array(b)
            ours = cpv.compare_channels(first, second)
            proof = (ours.garbling, ours.prior, ours.gain)
            there = is_output_degraded(second.astype(float), first.astype(float))
            line.add(judge.ANSWER[ours.verdict], there, judge.order(a, b, *proof), (a, b))
            if line is order:
                there = le_cam_deficiency(second.astype(float), first.astype(float))
                middle = (ours.deficiency.lower + ours.deficiency.upper) / 2
                deficiency.add(middle, there, judge.deficiency(a, b, *proof), (a, b))
    yield from (order, close, deficiency)


def rates() -> Iterator[Tally]:
    """Compare R(D) where dit stops: it has R at a slope, this package at that D, with both ends."""
    closed = Tally("R(D) of a bit, Hamming", "closed form h(p) − h(D)")
    line = Tally("R(D), Hamming, 3 to 5 letters", "ends proved by a certificate")
    draw = random.Random(5)
    np.random.seed(5)  # noqa: NPY002  (of which dit draws its starts)
    for i in range(40):
        p = law(draw, 2 if i < 15 else draw.randint(3, 5), empty=0.0)
        reached, _ = blahut_arimoto(np.array(p, float), draw.uniform(1.0, 5.0))
        rate, budget = float(reached.rate), float(reached.distortion)
        source = cpv.DiscreteSource.identical(p)
        solution = cpv.PrivacyDistortion(source, cpv.hamming(len(p)), budget).solve()
        proved = solution.certificate.verify()
        assert proved, "a certificate does not verify"
        ends = (solution.lower, solution.upper)
        if len(p) == 2:
            d = Fraction(budget)
            truth = max(0.0, judge.entropy(p) - judge.entropy([d, 1 - d])) if d < min(p) else 0.0
            closed.add(solution.value, rate, truth, (p, budget))
        else:
            line.add(solution.value, rate, ends, (p, budget))
    yield from (closed, line)
