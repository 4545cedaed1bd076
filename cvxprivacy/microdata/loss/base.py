"""What the measures of loss share: a total of parts, rounding, correlations."""

from __future__ import annotations

import numpy as np

DUST = 1e-12  # relative differences below this are rounding


class Loss:
    """Named parts, and their mean in percent."""

    @property
    def parts(self) -> dict[str, float]:
        """Each part by its name."""
        raise NotImplementedError

    @property
    def total(self) -> float:
        """100 times the mean of the parts."""
        return 100 * float(np.mean(list(self.parts.values())))


def correlation(law: np.ndarray) -> np.ndarray:
    """Return the correlations of a covariance matrix, those of a constant attribute 0."""
    spread = np.sqrt(law.diagonal())
    scale = np.outer(spread, spread)
    result = np.divide(law, scale, out=np.eye(len(law)), where=scale > 0)
    np.fill_diagonal(result, 1.0)
    return np.clip(result, -1.0, 1.0)
