"""The release of independent variables, which needs no matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cvxprivacy.exact import FloatArray
from cvxprivacy.frozen import owned
from cvxprivacy.release.draws import Draws
from cvxprivacy.release.gaussian import GaussianRelease

__all__ = ["MOST", "DiagonalRelease", "diagonal"]

MOST = 200  # variables of a matrix


def diagonal(values: FloatArray) -> FloatArray:
    """Return a diagonal matrix of at most 200 rows, of more variables its diagonal alone."""
    if len(values) > MOST:
        return owned(np.array(values))
    matrix = np.zeros((len(values),) * 2)
    np.fill_diagonal(matrix, values)
    return owned(matrix)


class DiagonalRelease(GaussianRelease):
    """X̂_i = (1 − a_i) X_i + noise of variance a_i (1 − a_i) σ_i², a_i = D_i/σ_i², for each i alone.

    The :class:`GaussianRelease` of independent variables, in time and memory of their number.

    Attributes
    ----------
    gains, noises : ndarray, shape (n,)
        1 − a_i, and a_i (1 − a_i) σ_i².
    gain, noise : ndarray, shape (n, n) or (n,)
        The same as diagonal matrices; of more than 200 variables their diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxprivacy as cpv
    >>> release = cpv.ReverseWaterFilling([4, 1, 0.25], budget=1.25).solve().release
    >>> release.gains.tolist(), release.noises.tolist()
    ([0.875, 0.5, 0.0], [0.4375, 0.25, 0.0])
    >>> release.apply(np.ones((20_000, 3)), seed=1).mean(axis=0).round(1).tolist()
    [0.9, 0.5, 0.0]
    """

    def __init__(self, errors: FloatArray, left: FloatArray, variances: FloatArray) -> None:
        """State a release of error variances; ``left`` is what they leave of the variances."""
        self.gains = owned(left / variances)
        self.noises = owned(errors * self.gains)
        self._size = len(variances)
        self.mean = self.mean_out = owned(np.zeros(self._size))
        self.scale = self.scale_out = owned(np.ones(self._size))
        self.regression = owned(np.zeros((self._size, 0)))

    @cached_property
    def inputs(self) -> tuple[str, ...]:  # type: ignore[override]  # as others read it, an attribute
        return tuple(f"V{i}" for i in range(self._size))

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inputs

    @cached_property
    def gain(self) -> FloatArray:  # type: ignore[override]
        return diagonal(self.gains)

    @cached_property
    def noise(self) -> FloatArray:  # type: ignore[override]
        return diagonal(self.noises)

    @cached_property
    def expansion(self) -> FloatArray:  # type: ignore[override]
        return diagonal(np.ones(self._size))

    def __repr__(self) -> str:
        return f"GaussianRelease({self._size} variables → {self._size})"

    def _repr_html_(self) -> str:
        if self._size > MOST:
            return repr(self)
        return super()._repr_html_()

    def _released(self, data: np.ndarray, draws: Draws) -> np.ndarray:
        noise = draws.generator.standard_normal(data.shape)
        return data * self.gains + noise * np.sqrt(self.noises)
