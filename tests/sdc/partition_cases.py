"""Tables with ties, and what makes two labellings the same groups."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


def same_partition(one, other):
    """Tell whether two labellings make the same groups."""
    pairs = set(zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


@st.composite
def tied_tables(draw, most=60, columns=3):
    """Draw records, many of them tied, and a group size."""
    n, d = draw(st.integers(1, most)), draw(st.integers(1, columns))
    k = draw(st.integers(1, n))
    seed, levels = draw(st.integers(0, 10**6)), draw(st.sampled_from([1, 2, 3, 10, 10**6]))
    data = np.random.default_rng(seed).integers(0, levels, size=(n, d)).astype(float)
    return data, k
