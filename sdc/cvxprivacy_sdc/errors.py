"""What can go wrong with tables alone."""

from __future__ import annotations

from collections.abc import Sequence

from cvxprivacy.errors import Pickled

__all__ = ["BrokenTableError"]


class BrokenTableError(Pickled, ValueError):
    """A drawn table breaks criteria, and no merging of its groups was found that mends that.

    Where all groups may be merged there is none; where moves are forbidden, another order of
    merging might mend it.

    Attributes
    ----------
    criteria : list of str
        Those that are still broken.

    Examples
    --------
    Each value may become the next one round a circle, so that any two groups of the table have a
    record that may not be in the other.  Of 18 records a group is drawn that leaves open fewer than
    as many as 8 equally likely ones:

    >>> import cvxprivacy as cpv
    >>> import cvxprivacy_sdc as sdc
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": ["a", "b", "c"] * 6, "ill": ["no", "yes"] * 9})
    >>> source = cpv.DiscreteSource.from_table(table, sensitive="ill", key="age")
    >>> backwards = [("a", "c"), ("b", "a"), ("c", "b")]
    >>> rules = [cpv.RecordEntropy(8), cpv.ForbiddenMoves(lambda x, y: (x, y) in backwards)]
    >>> problem = cpv.MinimumDistortion(source, cpv.hamming(source.x), rules)
    >>> try:
    ...     sdc.release_table(problem, table, seed=2, ensure="table")
    ... except sdc.BrokenTableError as error:
    ...     print(error.criteria)
    ['RecordEntropy(8)']
    """

    def __init__(self, groups: int, criteria: Sequence[str]) -> None:
        self.criteria = list(criteria)
        left = "1 group is left" if groups == 1 else f"{groups:,} groups are left"
        super().__init__(
            f"the drawn table breaks {', '.join(criteria)}, and no merging of its groups was found "
            f"that mends it ({left}); relax the criterion, allow suppression, or ask it of the law "
            "alone"
        )
