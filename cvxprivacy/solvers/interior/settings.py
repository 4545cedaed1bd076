"""The numbers of the interior-point method on channel programs."""

from __future__ import annotations

from cvxprivacy.solvers.settings import Settings

__all__ = ["InteriorPoint"]


class InteriorPoint(Settings):
    """Settings of the central path.  docs/theory/interior_point.md tells what others cost."""

    numbers: int = 500_000_000  # most that the blocks of all outputs have: 4 GB
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
