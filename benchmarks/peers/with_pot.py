"""Beside POT, Python Optimal Transport: the earth mover's distance."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import networkx as nx
import numpy as np
from ot import emd2, emd2_1d  # codespell:ignore

import cvxprivacy as cpv

from .cases import Law, law
from .tally import Tally


def transported(p: Law, q: Law, distances: list[list[int]]) -> float:
    """Return the least cost of moving p to q: the network simplex method in whole numbers."""
    scale = math.lcm(*(x.denominator for x in (*p, *q)))
    graph = nx.DiGraph()
    for i, x in enumerate(p):
        graph.add_node(("from", i), demand=-int(x * scale))
    for j, x in enumerate(q):
        graph.add_node(("to", j), demand=int(x * scale))
    for i, row in enumerate(distances):
        for j, far in enumerate(row):
            graph.add_edge(("from", i), ("to", j), weight=far)
    return nx.network_simplex(graph)[0] / scale


def tallies() -> Iterator[Tally]:
    """Yield the lines of the table."""
    draw = random.Random(41)
    table = Tally("earth mover, any ground distance", "network simplex in integers")
    row = Tally("earth mover, values in a row", "fractions")
    for _ in range(150):
        size = draw.randint(2, 8)
        p, q = law(draw, size), law(draw, size)
        far = [[0] * size for _ in range(size)]
        for i in range(size):
            for j in range(i):
                far[i][j] = far[j][i] = draw.randint(1, 9)
        a, b = np.array(p, float), np.array(q, float)
        ours = cpv.leakage.divergence(a, b, cpv.leakage.EarthMover(far))
        theirs = emd2(a, b, np.array(far, float))
        table.add(ours, theirs, transported(p, q, far), (p, q, far))
        places = np.arange(size) / (size - 1)
        moved = [sum(p[: i + 1]) - sum(q[: i + 1]) for i in range(size)]
        truth = float(sum(map(abs, moved)) / (size - 1))
        theirs = emd2_1d(places, places, a, b, metric="euclidean")
        row.add(cpv.leakage.divergence(a, b, "emd"), theirs, truth, (p, q))
    yield table
    yield row
