"""Partitions of records into groups of at least k: MDAV, μ-Approx, and the univariate optimum.

Each function takes n records, shape (n, d) or (n,), and the least size 1 ≤ k ≤ n of a group, and
returns the group of each record, 0, 1, …, shape (n,).  Distances are Euclidean: standardise first.

* MDAV: J. Domingo-Ferrer and V. Torra, Ordinal, continuous and heterogeneous k-anonymity through
  microaggregation, Data Mining and Knowledge Discovery 11 (2005) 195–212.
* μ-Approx: J. Domingo-Ferrer, F. Sebé and A. Solanas, A polynomial-time approximation to optimal
  multivariate microaggregation, Computers and Mathematics with Applications 55 (2008) 714–732.
* The optimum for one attribute: S. L. Hansen and S. Mukherjee, A polynomial algorithm for optimal
  univariate microaggregation, IEEE Transactions on Knowledge and Data Engineering 15 (2003)
  1043–1044.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cvxprivacy.errors import InputError
from cvxprivacy.validation import array, integer

__all__ = ["hansen_mukherjee", "mdav", "means", "mu_approx"]

Labels = npt.NDArray[np.int64]


def _records(data: npt.ArrayLike, k: int) -> tuple[np.ndarray, int]:
    """Return the records, shape (n, d), and k as a whole number, if there are k of them."""
    remedy = "pass finite records of shape (n,) or (n, d)"
    records = array(data, "data", remedy, axes=(1, 2), negative=True)
    return records.reshape(len(records), -1), least_size(k, len(records))


def least_size(k: int, records: int) -> int:
    """Return k as a whole number, if there are so many records."""
    size = integer(k, "k", least=1)
    if size > records:
        problem = f"groups of {size} from {records} samples"
        raise InputError("k", problem, f"pass at most {records}", value=k)
    return size


def means(data: np.ndarray, labels: Labels) -> np.ndarray:
    """Return the mean of each record's group, shape (n, d).

    The deviations from one record of the group are averaged: equal values stay as they are.
    """
    first = np.zeros(labels.max() + 1, dtype=np.int64)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    base = data[first[labels]]
    count = np.bincount(labels)
    off = [np.bincount(labels, column) / count for column in (data - base).T]
    return base + np.array(off).T[labels]


# ---- MDAV --------------------------------------------------------------------------------


def mdav(data: npt.ArrayLike, k: int) -> Labels:
    """Partition by maximum distance to average vector, in groups of k to 2k − 1.

    While 3k records or more are left, the record farthest from their mean and its k − 1 nearest
    make a group, and so do, of the rest, the record farthest from that one and its k − 1 nearest.
    Of 2k to 3k − 1 records one such group is made; what is left is the last group.

    O(n² d / k) time and O(n d) memory; O(n log n) time for one attribute, where the records left
    are always an interval.
    """
    records, k = _records(data, k)
    return _mdav_line(records[:, 0], k) if records.shape[1] == 1 else _mdav(records, k)


def _mdav(records: np.ndarray, k: int) -> Labels:
    labels = np.full(len(records), -1, dtype=np.int64)
    left = np.arange(len(records))
    points = np.ascontiguousarray(records - records.mean(axis=0))  # the records left
    group = 0

    def taken(seed: np.ndarray) -> np.ndarray:
        """Make a group of the k records nearest to one; return which are left."""
        nonlocal left, points, group
        distance = _squares(points, seed)
        kth = np.partition(distance, k - 1)[k - 1]
        keep = distance >= kth
        keep[np.flatnonzero(distance == kth)[: k - len(left) + np.count_nonzero(keep)]] = False
        labels[left[~keep]] = group
        left, points, group = left[keep], points[keep], group + 1
        return distance[keep]

    while len(left) >= 2 * k:
        pair = len(left) >= 3 * k
        farthest = points[_squares(points, points.mean(axis=0)).argmax()]
        distance = taken(farthest)
        if pair:
            taken(points[distance.argmax()])
    labels[left] = group
    return labels


def _squares(points: np.ndarray, seed: np.ndarray) -> np.ndarray:
    difference = points - seed
    return np.einsum("ij,ij->i", difference, difference)


def _mdav_line(values: np.ndarray, k: int) -> Labels:
    """Take k from one end and k from the other, as MDAV does with one attribute."""
    order = np.argsort(values, kind="stable")
    size = len(values)
    pairs = (size - 3 * k) // (2 * k) + 1 if size >= 3 * k else 0  # of groups, one at each end
    outer = pairs * k
    ranked = np.empty(size, dtype=np.int64)
    ranked[:outer] = 2 * (np.arange(outer) // k)
    ranked[size - outer :] = ranked[:outer][::-1] + 1
    middle = values[order[outer : size - outer]]
    inner = np.zeros(len(middle), dtype=np.int64)
    if len(middle) >= 2 * k:  # fewer than 3k
        mean = middle.mean()
        low = mean - middle[0] >= middle[-1] - mean
        inner[slice(k, None) if low else slice(None, -k)] = 1
    ranked[outer : size - outer] = 2 * pairs + inner
    labels = np.empty(size, dtype=np.int64)
    labels[order] = ranked
    return labels


# ---- μ-Approx ----------------------------------------------------------------------------


def mu_approx(data: npt.ArrayLike, k: int) -> Labels:
    """Partition by cutting a nearest-neighbour forest, in groups of k to max(2k − 1, 3k − 5).

    First a forest is grown: as long as a tree has fewer than k records, its root is joined to the
    nearest record of another tree, whose root is then the root of both.  Each such edge is one of
    its record's k − 1 shortest, so that no partition into groups of k has trees of less length.
    Then trees of more than max(2k − 1, 3k − 5) records are cut at their centroid, a record none
    of whose subtrees holds more than half of the tree: subtrees of k or more come off, or, where
    all are smaller, half of them.

    Neighbours come from a k-d tree, in batches of bounded size: O(n) memory.
    """
    records, k = _records(data, k)
    return _cut(records, _forest(records, k), k)


BATCH = 1 << 20  # neighbours held at a time


def _forest(records: np.ndarray, k: int) -> list[tuple[int, int]]:
    """Return the edges of a forest whose trees have k records or more.

    The trees grow in rounds, every small one once in each, so that there are about log₂ k rounds,
    and a tree of m records asks for about m neighbours.
    """
    from scipy.spatial import cKDTree

    size, tree = len(records), cKDTree(records)
    parent, count, root = list(range(size)), [1] * size, list(range(size))
    edges: list[tuple[int, int]] = []

    def of(node: int) -> int:
        """Return which tree a record is in, as the record that stands for it."""
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    small = list(range(size)) if k > 1 else []
    while small:
        before = np.array([of(node) for node in range(size)])
        asking, many = np.array([root[node] for node in small]), 2
        while len(asking):  # k records, itself among them, are not all of a tree of fewer than k
            many, waiting = min(2 * many, k), []
            for batch in np.array_split(asking, -(-len(asking) * many // BATCH)):
                near = np.asarray(tree.query(records[batch], many)[1])
                foreign = before[near] != before[batch, None]
                for node, row, outside in zip(batch.tolist(), near, foreign, strict=True):
                    source = of(node)
                    if count[source] >= k:  # others have joined it
                        continue
                    nearest = next((v for v in row[outside].tolist() if of(v) != source), None)
                    if nearest is None:
                        waiting.append(node)
                        continue
                    edges.append((node, nearest))
                    target = of(nearest)
                    parent[source] = target
                    count[target] += count[source]
            asking = np.array(waiting, dtype=np.int64)
        small = sorted({node for node in map(of, small) if count[node] < k})
    return edges


def _cut(records: np.ndarray, edges: list[tuple[int, int]], k: int) -> Labels:
    """Return the groups that are left when trees of more than max(2k − 1, 3k − 5) are cut."""
    most = max(2 * k - 1, 3 * k - 5)
    links: list[set[int]] = [set() for _ in records]
    for a, b in edges:
        links[a].add(b)
        links[b].add(a)
    labels, group = np.full(len(records), -1, dtype=np.int64), 0
    for start in range(len(records)):
        trees = [start] if labels[start] < 0 else []
        while trees:
            first = trees.pop()
            above, below = {first: first}, {first: 1}  # parents, and records of subtrees
            order = [first]
            for node in order:  # which grows
                for child in links[node] - {above[node]}:
                    above[child], below[child] = node, 1
                    order.append(child)
            size = len(order)
            if size <= most:
                labels[order], group = group, group + 1
                continue
            for node in reversed(order[1:]):
                below[above[node]] += below[node]
            centre = next(n for n in reversed(order) if 2 * below[n] >= size)
            branches = {v: below[v] for v in links[centre] if v != above[centre]}
            if centre != first:
                branches[above[centre]] = size - below[centre]
            trees += [centre, *_severed(records, links, centre, branches, k)]
    return labels


def _severed(
    records: np.ndarray, links: list[set[int]], centre: int, branches: dict[int, int], k: int
) -> list[int]:
    """Cut branches off a tree's centroid; return a record of each tree that comes off.

    Branches of k or more are cut where k are left.  If all are smaller, t₁ ≤ k − 1 the largest,
    an order of them has a prefix of between k − 1 and s − k records, s the whole tree's: the
    first of k − 1 or more is at most 2k − 4 if t₁ ≤ k − 2, and s > 3k − 5; it is t₁ itself if
    t₁ = k − 1 comes first.  The centroid goes to the smaller side, the other is linked anew.
    """
    size, cut = 1 + sum(branches.values()), []
    left = size
    for node in sorted(branches, key=branches.__getitem__, reverse=True):
        if branches[node] >= k and left - branches[node] >= k:
            links[centre].remove(node)
            links[node].remove(centre)
            left -= branches[node]
            cut.append(node)
    if cut:
        return cut
    at = records[list(branches)]
    axis = np.ptp(at, axis=0).argmax()
    along = sorted(branches, key=lambda node: records[node, axis])
    for order in (along, sorted(branches, key=branches.__getitem__, reverse=True)):
        prefix = np.cumsum([branches[node] for node in order])
        fit = np.flatnonzero((prefix >= k - 1) & (prefix <= size - k))
        if len(fit):
            break
    half = int(fit[np.abs(2 * prefix[fit] - size + 1).argmin()])
    parts = order[: half + 1], order[half + 1 :]
    away = parts[int(2 * prefix[half] < size - 1)]  # the larger side does without the centroid
    for node in away:
        links[centre].remove(node)
        links[node].remove(centre)
    for node in away[1:]:
        links[away[0]].add(node)
        links[node].add(away[0])
    return away[:1]


# ---- the optimum for one attribute -------------------------------------------------------


def hansen_mukherjee(values: npt.ArrayLike, k: int) -> Labels:
    """Return the partition of one attribute into groups of at least k with the least SSE.

    An optimal partition has groups of k to 2k − 1 that are neighbours in rank, so that it is a
    shortest path over the cuts, an edge from i to j at the cost Σ (x − x̄)² of the ranks i to j.
    The group of the least values is 0.  O(nk) time, O(n) memory.
    """
    records, k = _records(values, k)
    if records.shape[1] != 1:
        raise InputError("values", f"shape {records.shape}", "pass one attribute, shape (n,)")
    size, order = len(records), np.argsort(records[:, 0], kind="stable")
    x = records[order, 0]
    best, last = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    best[0] = 0.0
    count = np.arange(k, 2 * k, dtype=float)
    for j in range(k, size + 1):
        back = x[j - 1] - x[max(j - 2 * k + 1, 0) : j][::-1]  # from the last value: no cancelling
        sums, squares = np.cumsum(back)[k - 1 :], np.cumsum(back * back)[k - 1 :]
        cost = squares - sums * sums / count[: len(sums)]
        total = best[j - k :: -1][: len(sums)] + np.maximum(cost, 0.0)
        at = int(total.argmin())
        best[j], last[j] = total[at], j - k - at
    labels, cuts = np.empty(size, dtype=np.int64), [size]
    while cuts[-1]:
        cuts.append(int(last[cuts[-1]]))
    labels[order] = np.repeat(np.arange(len(cuts) - 1), -np.diff(cuts)[::-1])
    return labels
