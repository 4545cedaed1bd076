"""Nodes of a lattice of levels: which satisfy a condition, the least of them, and the best.

A condition is monotone if it holds at every node above one where it holds; then chains of nodes are
bisected.  Else every node may satisfy it, and only those above one that does are spared.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["Node", "best_of", "least", "monotone_verdicts"]

Node = tuple[int, ...]  # a level of each hierarchy


def monotone_verdicts(
    heights: Sequence[int], satisfied: Callable[[Node], bool]
) -> dict[Node, bool]:
    """Tell where a monotone condition holds.

    Chains of undecided nodes are bisected; every verdict decides all nodes above, or below.
    """
    verdicts: dict[Node, bool] = {}
    nodes = _from_below(heights)
    undecided = set(nodes)
    for start in nodes:
        chain = [start] if start in undecided else []
        while chain:
            above = (_step(chain[-1], axis) for axis in range(len(heights)))
            successor = next((node for node in above if node in undecided), None)
            if successor is None:
                break
            chain.append(successor)
        low, high = 0, len(chain)
        while low < high:
            half = (low + high) // 2
            verdict = satisfied(chain[half])
            ranges = [
                range(level, height) if verdict else range(level + 1)
                for level, height in zip(chain[half], heights, strict=True)
            ]
            decided = dict.fromkeys(itertools.product(*ranges), verdict)
            verdicts.update(decided)
            undecided.difference_update(decided)
            low, high = (low, half) if verdict else (half + 1, high)
    return verdicts


def least(
    heights: Sequence[int], possible: dict[Node, bool], satisfied: Callable[[Node], bool]
) -> list[Node]:
    """Return the nodes that satisfy a condition and no node below does.

    Parameters
    ----------
    possible : dict of Node to bool
        Where a weaker condition holds.
    satisfied : callable
        The condition, which need not be monotone; it is asked of no node above one that holds.
    """
    above: set[Node] = set()
    results = []
    for node in _from_below(heights):
        if any(below in above for below in _neighbours(node, heights, -1)):
            above.add(node)
        elif possible[node] and satisfied(node):
            above.add(node)
            results.append(node)
    return results


def best_of(
    starts: Iterable[Node],
    heights: Sequence[int],
    *,
    bound: Callable[[Node], float],
    cost: Callable[[Node], float],
    satisfied: Callable[[Node], bool],
) -> tuple[Node, float]:
    """Return the node of the least cost of all that satisfy a condition, and its cost.

    Nodes are taken in the order of their bounds until these exceed the least cost.  Of equal costs
    the finest one is returned.

    Parameters
    ----------
    starts : iterable of Node
        Of which some lies below every node that satisfies the condition; one that does is above.
    bound : callable
        At most the cost of the node and of all nodes above it.
    cost : callable
    satisfied : callable
    """
    queue = [(bound(node), sum(node), node) for node in starts]
    queued = {node for _, _, node in queue}
    heapq.heapify(queue)
    best: tuple[float, int, Node] = (math.inf, 0, ())
    while queue and queue[0][0] <= best[0]:
        _, height, node = heapq.heappop(queue)
        if satisfied(node):
            best = min(best, (cost(node), height, node))
        for above in _neighbours(node, heights, 1):
            if above not in queued:
                queued.add(above)
                least_above = bound(above)
                if least_above <= best[0]:
                    heapq.heappush(queue, (least_above, height + 1, above))
    return best[2], best[0]


def _from_below(heights: Sequence[int]) -> list[Node]:
    return sorted(itertools.product(*map(range, heights)), key=sum)


def _neighbours(node: Node, heights: Sequence[int], by: int) -> Iterator[Node]:
    for axis, height in enumerate(heights):
        if 0 <= node[axis] + by < height:
            yield _step(node, axis, by)


def _step(node: Node, axis: int, by: int = 1) -> Node:
    return (*node[:axis], node[axis] + by, *node[axis + 1 :])
