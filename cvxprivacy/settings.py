"""The numbers of the package's own methods, to be passed to ``solve``.

They say how an optimum is looked for, never what counts as proved: with other numbers a solve is
slower, its enclosure wider, or a program refused for its size, as limits of memory are settings,
too.  ``with using(…):`` passes them to all that is solved within, such as a frontier, by the same
thread: workers (``n_jobs``) have the usual ones.

>>> import cvxprivacy as cpv
>>> from cvxprivacy.settings import InteriorPoint
>>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
>>> problem = cpv.PrivacyDistortion(source, cpv.hamming(2), budget=0.2)
>>> problem.solve(settings=InteriorPoint(boundary=0.9)).status
'certified'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self, dataclass_transform

from cvxprivacy.errors import InputError
from cvxprivacy.validation import integer, number

__all__ = [
    "CovariancePath", "EntryGeneration", "EntryRows", "InteriorPoint", "MirrorDescent",
    "RayGeneration", "Settings", "SparseRows", "Stages", "StrategyGeneration", "using",
]  # fmt: skip

_passed: ContextVar[Mapping[type, Any]] = ContextVar("settings", default=MappingProxyType({}))


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Settings:
    """Base class: subclasses are frozen dataclasses, whose fields are checked by their defaults.

    A count is a whole number of at least 1; a share, whose default is below 1, is between 0 and 1;
    any other number is positive.
    """

    _usual: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        cls._usual = dataclass(frozen=True, kw_only=True)(cls)()

    def __post_init__(self: Any) -> None:
        for field in fields(self):
            usual: Any = field.default
            value = getattr(self, field.name)
            if isinstance(usual, int):
                value = integer(value, field.name, least=1)
            else:
                below = 1.0 if usual < 1 else math.inf
                value = number(value, field.name, zero=False, below=below)
            object.__setattr__(self, field.name, value)

    @classmethod
    def current(cls) -> Self:
        """Return what the solve that is under way was passed, or the defaults."""
        settings: Self = _passed.get().get(cls, cls._usual)
        return settings


@contextmanager
def using(settings: Settings | Iterable[Settings]) -> Iterator[None]:
    """Let methods read these settings, of each class the last."""
    passed = dict(_passed.get())
    for one in settings if isinstance(settings, Iterable) else [settings]:
        if type(one) not in Settings.__subclasses__():  # of another one no method would ask
            remedy = "pass one or several of cvxprivacy.settings"
            raise InputError("settings", f"a {type(one).__name__}", remedy, value=one)
        passed[type(one)] = one
    token = _passed.set(passed)
    try:
        yield
    finally:
        _passed.reset(token)


class Stages(Settings):
    """Settings of the stages: which method is asked, and how far a path is followed.

    Sizes of conic models are in coefficients, about 2 kB each while CVXPY and Clarabel have it
    (measured at 60 to 180 letters: 0.8 to 3.7).
    """

    # About 450 letters.  Measured, few entries and all: 470 groups of the Adult table took 3.7 and
    # 4.8 s, 742 8 and 14; Hamming costs of 600 letters 3.8 and 4.2 s, of 1,100 8.5 and 21
    few_entries_beyond: int = 200_000  # n m, beyond which the path begins with few entries
    never_refused: int = 1_200_000  # n m, up to which no program is refused
    all_entries_up_to: int = 2_000_000  # n m, up to which the path may be followed with all entries
    conic_up_to: int = 500_000  # beyond: a gibibyte, many minutes, and inaccurate
    conic_refused_beyond: int = 2_000_000  # 4 GB
    patience: int = 3  # steps in which a gap that would do is to become a tenth, or at last a half
    stalled: float = 0.95  # … or this, where the value has digits beyond the gap
    small_work: float = 5e5  # n²m, up to which a program is followed to ``small_gap``
    small_gap: float = 1e-11  # in the objective's scale, where a larger one was asked for
    margin: float = 0.25  # of a gap that would do, where repair takes some: a step costs less
    interior_points: int = 6  # strictly feasible, that are kept: one for each hundredth of the gap
    stricter: float = 1e-6  # of their spans, by which rows are stricter for channels to mix with
    price_limit: float = 1e5  # of information, in terms of all differences of costs
    unused: float = 1e-6  # mass of an output that is as well without any


class InteriorPoint(Settings):
    """Settings of the central path.  docs/theory/interior_point.md tells what some others cost."""

    most_numbers: int = 500_000_000  # in the blocks of all outputs: 4 GB
    steps: int = 150
    patience: int = 8  # steps in which the gap is to shrink to 0.7 times the best
    boundary: float = 0.99  # share of the way to the boundary (N28)
    score_change: float = 3.0  # largest change of a logarithm in one step (N28)
    correctors: int = 3  # at most, while the step grows (N27)
    least_product: float = 0.1  # of its target: a corrector leaves products from here … (N26)
    greatest_product: float = 10.0  # … to here alone
    feasible: float = 1e-3  # complementarity below which curved rows are to hold
    residual: float = 3.0  # of a row in terms of its slack, beyond which the row is restored
    restoring_step: float = 0.5  # shortest one; shorter ones upset the products
    short_step: float = 0.01  # a corrected step below it gives way to one without second order
    centred: float = 1e-4  # least product after a step, in terms of their mean
    # start
    start_inside: float = 0.97  # of the way from the least cost to the bound
    start_mu: float = 100.0  # in terms of what the largest entries of Q would have it
    start_recourse: float = 0.1  # least μ, in terms of the weight of an output with recourse
    # Newton's method
    refined: float = 1e-4  # complementarity below which (N15) is solved in two rounds: with one
    # round throughout, 3 more of 160 random programs stop short of 1e-8
    inverted: int = 40  # letters up to which a block is inverted in full; 200 take 15 × the time
    tight: float = 1e8  # θ aᵀD⁻¹a of a row of one output from which it stands in B
    # recourse
    centring_steps: int = 40  # at most
    centring_boundary: float = 0.9  # share of the way to the boundary
    centring_end: float = 1e-3  # relative change of a step that ends them
    refinements: int = 2  # of changes of the recourse
    least_weight: float = 1e-9  # of an output, in terms of the largest


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
    round_gap: float = 0.1  # of a round, in terms of the last one's (E10); at 0.6 1.7 × the rounds
    warm: float = 100.0  # gap from which the last path goes on, in terms of what was missing
    # reduced cost that counts, in terms of the path's gap; at .05 and .2 144 to 146 steps at 742
    # groups of the Adult table, 112 to 114 at 1,160, where it is 146 and 106 now
    reduced_cost: float = 0.1
    share: float = 10.0  # most that a new entry has, in equal shares of its letter (E12)
    tried: int = 3  # steps from a point in which the gap is to halve
    points: int = 12  # of a path, that are kept
    unmet_score: float = 15.0  # below the largest: only new entries may meet such a label
    # prices
    chunk: int = 4_000_000  # entries that are priced at once: some 32 MB a table
    massless: float = 0.1  # share of the gap that all outputs judged as massless have in mass
    score_depth: float = 20.0  # of a score below the largest: an output has not met that label
    choosers: int = 12  # letters that choose one output in a round, besides its own (E11)
    first_sharpness: float = 30.0  # κ of the soft minimum (E6), at least; else 1/shortfall
    sharpness_factor: float = 10.0  # by which κ rises
    last_sharpness: float = 10.0  # κ at the end, times the tolerance
    # of (E5) in terms of itself, at which an output that is not cleared is done with; at .03 and .3
    # 132 to 146 steps at 742 groups, 99 to 109 at 1,160
    width: float = 0.1
    passes: int = 40  # in which letters join: of 3,052 outputs priced at 742 groups 2 took 15
    halvings: int = 12  # trials of a length, each 0.3 of the one before; at 4 2 × the steps
    newton_steps: int = 4  # before letters join; at 2 up to 1.6 × the time, at 8 up to 1.3 ×
    score_change: float = 4.0  # largest in one of these steps
    shift: float = 1e-9  # of the system's trace, on its diagonal: all scores may rise by the same


class MirrorDescent(Settings):
    """Settings of the method, and of the release that it ends with."""

    most_bytes: int = 4_000_000_000  # of shared rows
    # in the objective's scale, at which the steps end; a tenth of it takes three times the steps:
    # of 14,539 groups of the Adult table 3e-4 took 250 steps of half a second
    gap: float = 3e-4
    high_gap: float = 3e-5  # the same at accuracy="high"
    patience: int = 40  # steps in which the gap is to shrink by a fifth
    release_gap: float = 0.3  # of the gap, by which a release that will do is above the lower end
    release_time: float = 0.4  # share of a time limit that is left for the release
    least_ratio: float = 1e-9  # of a posterior to the reference: the logarithm of 0 has no end
    price_trials: int = 30  # evaluations for the prices of a step, at most: two or three, as a rule
    trial_growth: float = 1.2  # of what a trial may be off, from one to the next
    step_tolerance: float = 5e-3  # share of a bound by which what a step spends may be off it
    step_tolerance_cost: float = 0.05  # most that ``step_tolerance`` may cost, of the gap
    least_step_tolerance: float = 1e-5  # share of a bound by which a step may be off in any case
    slack: float = 0.01  # of the gap, which a step may miss (B4) by, in terms of its length
    repeats: int = 20  # of a step at most, with gains that rise to 4 times the one before
    gain_decrease: float = 1.5  # by which a gain falls with each step
    gain_increase: float = 1.2  # by which it grows at least
    # release
    first_entries: int = 48  # of a letter, and as many at popular outputs
    popular: int = 128  # outputs of most mass: where little is told, letters meet at few outputs
    joining: int = 16  # entries, of both kinds, that a letter is given in a round
    joining_share: float = 1e-3  # of a letter, that these have to begin with
    rounds: int = 3  # of joining entries
    round_gain: float = 0.05  # of the gap, that another round is to gain
    release_steps: int = 400  # in a round, at most
    slow: float = 0.02  # of the gap, below which the gain of ten of them ends the round
    release_tolerance: float = 1e-11  # of a bound, by which a release may be off what it aims at
    release_margin: float = 1e-10  # of a bound, by which a release aims below it
    release_trials: int = 60  # evaluations for the prices of one of these steps
    unused: float = 1e-9  # share of a letter that no round keeps; mass of an unused output

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gain_decrease", "gain_increase"):
            value = getattr(self, name)
            if not 1 < value <= 10:
                raise InputError(name, f"{value!r}", "pass a factor from 1 to 10", value=value)


class CovariancePath(Settings):
    """Settings of the central path of covariances.

    Measured on 68 programs with up to 20 variables: 3,962 Newton steps in all, at most 14 per
    centre.
    """

    most_numbers: int = 150_000_000  # of a Newton step, which makes three copies: 3.4 GiB
    gap_divisor: int = 20  # times below the gap that certifies: repair and rounding have the rest
    shrink: float = 0.15  # of μ to the next centre; 2,329 steps at 0.01 (up to 31), 5,322 at 0.3
    steps: int = 60  # Newton steps per centre, at most: four times what was measured
    boundary: float = 0.97  # of the way to the boundary of 0 ≼ M ≼ I in one step; as good as 0.9
    descent: float = 0.25  # of the decrement, that the slope has at a step's end; 11,493 steps at 0
    shortest: float = 1e-12  # share of a Newton step: below it M + t dM is M to nearly all digits
    # The gap is of first order in μ and of second order in the distance from the centre, so that a
    # decrement below this times μ is none (3,367 steps at 1e-6)
    centred: float = 1e-12
    nearly_centred: float = 1e-3  # a decrement below it that no longer halves is rounding


class SparseRows(Settings):
    """Settings of linear programs with many rows of few letters."""

    letters: int = 30  # below which a path is as fast
    share: float = 0.2  # of the letters that a row has, on average, at most
    tolerance: float = 1e-10  # of Clarabel
    ratio_factor: float = 4.0  # times what rows of ratios need of a constant
    sweeps: int = 1_000  # in which ratios are made to hold, at most


class EntryRows(Settings):
    """Settings of linear programs that HiGHS solves entry by entry."""

    listed: int = 2_500  # entries, up to which all are there from the beginning
    cheapest: int = 4  # entries of a letter to begin with, by each cost
    added: int = 10  # entries of a letter that a round adds, in the mean


class StrategyGeneration(Settings):
    """Settings of strategy generation.

    A third or three times of each left the upper ends of eight problems of 27 to 256 strategies the
    same to 1e-11, after one to three rounds.
    """

    rounds: int = 12  # of solving and looking for better strategies, at most
    descent_steps: int = 30  # on the law of a letter u (E17)
    starts: int = 200  # laws to begin with, in each round, besides those of the release
    added: int = 48  # strategies that a round adds, at most
    gain: float = 1e-7  # least gain of a round, in the objective's scale: a tenth of the tolerance
    rare: float = 1e-4  # quantiles between which a strategy is too rare to be listed (E15)
    reduced_cost: float = 1e-8  # that counts, in the objective's scale (E16)
    sparse: float = 0.3  # Dirichlet parameter of random laws: below 1, most mass on few letters


class RayGeneration(Settings):
    """Settings of the search for the most useful release."""

    letters: int = 100  # most, of which the verifier looks at every ray
    listed: int = 2_000  # columns, up to which all are in the first linear program
    added: int = 60  # columns at a time
    rounds: int = 999
    starts: int = 3  # of threshold rules, near which better corners are looked for
    inside: float = 0.25  # share of what tells nothing, that a channel to repair by has at first, …
    least_inside: float = 1e-6  # … and at last
