"""The numbers of entry generation."""

from __future__ import annotations

from cvxprivacy.solvers.settings import Settings

__all__ = ["EntryGeneration"]


class EntryGeneration(Settings):
    """Settings of the central path on few entries; equations of docs/theory/entries.md.

    Others, at least half and twice each, were tried on three laws of 250 to 300 letters: the steps
    to a gap of 1e-7, 53 to 153, change by 40 % at most, but where a figure stands.
    """

    # first entries
    judged: float = 1e-2  # gap at which it is judged whether few entries pay: where they do, 4 …
    broad: int = 40  # … to 26 of a letter are cheapest but for the gap, else 65 to 230
    first_steps: int = 400  # at most: 742 groups of the Adult table took 221, 3,355 took 291
    cheapest: int = 12  # entries of a letter, and as many at outputs of most mass
    # rounds
    rounds: int = 60  # at most: 3,355 groups of the Adult table took 15
    long: int = 150  # steps after which few entries do not pay, where all are an alternative
    floors: int = 8  # entries of a letter with a floor, at most
    first_gap: float = 1e-3  # of the first round, in terms of that of the steps before it
    inner_gap: float = 0.1  # of a round, in terms of the last one's (E10); at 0.6 1.7 × the rounds
    warm: float = 100.0  # gap from which the last path goes on, in terms of what was missing
    # reduced cost that counts, in terms of the path's gap; at .05 and .2 144 to 146 steps at 742
    # groups of the Adult table, 112 to 114 at 1,160, where it is 146 and 106 now
    reduced_cost: float = 0.1
    share: float = 10.0  # most that a new entry has, in equal shares of its letter (E12)
    tried: int = 3  # steps from a point in which the gap is to halve
    points: int = 12  # of a path, that are kept
    unmet: float = 15.0  # of a score below the largest: a label that only new entries may meet
    # prices
    chunk: int = 4_000_000  # entries that are priced at once: some 32 MB a table
    massless: float = 0.1  # share of the gap that all outputs judged as massless have in mass
    deepest: float = 20.0  # of a score below the largest: an output has not met that label
    crowd: int = 12  # letters that choose one output in a round, besides its own (E11)
    softest: float = 30.0  # κ of the soft minimum (E6): at first this or 1/shortfall, …
    sharper: float = 10.0  # … then times this, …
    sharpest: float = 10.0  # … to this over the tolerance
    # of (E5) in terms of itself, at which an output that is not cleared is done with; at .03 and .3
    # 132 to 146 steps at 742 groups, 99 to 109 at 1,160
    width: float = 0.1
    passes: int = 40  # in which letters join: of 3,052 outputs priced at 742 groups 2 took 15
    halvings: int = 12  # trials of a length, each 0.3 of the one before; at 4 2 × the steps
    newton_steps: int = 4  # before letters join; at 2 up to 1.6 × the time, at 8 up to 1.3 ×
    score_change: float = 4.0  # largest in one of these steps
    shift: float = 1e-9  # of the system's trace, on its diagonal: all scores may rise by the same
