"""Table 1 of Mateo-Sanz et al. 2005: IL1 to IL5, unbounded.

J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic information loss measures in
confidentiality protection of continuous microdata, Data Mining and Knowledge Discovery 11 (2005)
181–193.  The stable variant of the first is that of W. E. Yancey, W. E. Winkler and R. H. Creecy,
Disclosure risk assessment in perturbative microdata protection, in: Inference Control in
Statistical Databases, LNCS 2316 (2002) 135–152.

Every measure is finite: a percent variation of an original 0 is 0 if the masked number is 0 too,
else 1 (100 %); a constant attribute has correlation 0 with all others; measures of pairs of
attributes do not exist for a single attribute, and no total has them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxprivacy.microdata.arrays import paired
from cvxprivacy.microdata.loss.base import DUST, Loss, correlation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class InformationLoss(Loss):
    """The measures of Table 1, unbounded, as :func:`information_loss` returns them.

    Attributes
    ----------
    table : dict of str to dict of str to float
        By what is compared, ``"X"``, ``"mean"``, ``"V"``, ``"S"``, ``"R"``, ``"RF"``, ``"C"``,
        ``"F"``, and how: ``"mean square error"``, ``"mean absolute error"``,
        ``"mean variation"``.
    yancey : float
        The mean of abs(x − x̂) / (√2 S_j) over the n records and p attributes.

    Examples
    --------
    Values 10 % too large: so is each of them (IL1) and the mean (IL2), and the variance (IL3) is
    1.1² = 1.21 times as large.  Of a single attribute there are no covariances:

    >>> import numpy as np
    >>> numbers = np.arange(1.0, 101)[:, None]
    >>> loss = information_loss(numbers, 1.1 * numbers)
    >>> {name: round(part, 4) for name, part in loss.parts.items()}
    {'IL1': 0.1, 'IL2': 0.1, 'IL3': 0.21}
    >>> round(loss.total, 2)
    13.67
    """

    table: dict[str, dict[str, float]]
    yancey: float

    @property
    def parts(self) -> dict[str, float]:
        """IL1 to IL5: variation of values, means, variances, covariances, error of correlations."""
        kinds = [("X", "mean variation"), ("mean", "mean variation"), ("S", "mean variation")]
        kinds += [("V", "mean variation"), ("R", "mean absolute error")]
        return {
            f"IL{i}": self.table[what][how]
            for i, (what, how) in enumerate(kinds, 1)
            if what in self.table
        }

    def to_frame(self) -> pd.DataFrame:
        """Return Table 1, a row for each thing compared."""
        import pandas as pd

        return pd.DataFrame.from_dict(self.table, orient="index")


def information_loss(
    original: Any, masked: Any, columns: Sequence[Hashable] | None = None
) -> InformationLoss:
    """Compare a masked table with the original by Table 1 of Mateo-Sanz et al. 2005.

    Compared are the values X, their means, covariances V (of different attributes), variances S,
    correlations R, and of the principal components of R: the correlations RF of attributes and
    components, the communality C of each attribute with the first, and the coefficients F with
    which standardised attributes enter each component.  The weights w_j of RF and F, which the
    paper leaves open, are the components' shares of the original variance.  Components are
    ordered by variance, and signed so that each masked one points along its original.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        Finite numbers, record i the same in both; columns of frames are matched by name.
    columns : sequence of str, optional
        Of frames, by default all.

    Returns
    -------
    InformationLoss
        Table 1, the total of IL1 to IL5, and the stable variant of IL1 (Yancey et al. 2002).

    Raises
    ------
    InputError
        For what is no table of finite numbers, or tables that do not match.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"wages": [1.0, 2.0, 3.0, 6.0], "rent": [1.0, 1.0, 2.0, 2.0]})
    >>> information_loss(table, table).total
    0.0
    >>> loss = information_loss(table, table.assign(rent=[2.0, 1.0, 1.0, 2.0]))
    >>> loss.table["R"]["mean absolute error"] > 0.5, loss.table["S"]["mean variation"]
    (True, 0.0)
    """
    before, after, _ = paired(original, masked, columns)
    means = before.mean(axis=0), after.mean(axis=0)
    laws = [(x - m).T @ (x - m) / len(x) for x, m in zip((before, after), means, strict=True)]
    for x, law in zip((before, after), laws, strict=True):
        constant = np.ptp(x, axis=0) == 0
        law[constant], law[:, constant] = 0.0, 0.0
    spread = np.sqrt(np.maximum(laws[0].diagonal(), laws[1].diagonal()))
    pairs = np.triu_indices(len(spread), 1)
    r = [correlation(law) for law in laws]
    shares, rf, f = _components(*r)
    table = {  # each original and masked, the scale of rounding, weights
        "X": _errors(before, after, 0.0),
        "mean": _errors(*means, np.abs(before).max(axis=0)),
        "V": _errors(laws[0][pairs], laws[1][pairs], np.outer(spread, spread)[pairs]),
        "S": _errors(laws[0].diagonal(), laws[1].diagonal(), spread**2),
        "R": _errors(r[0][pairs], r[1][pairs], 1.0),
        "RF": _errors(rf[0], rf[1], 1.0, shares),
        "C": _errors(rf[0][:, 0] ** 2, rf[1][:, 0] ** 2, 1.0),
        "F": _errors(f[0], f[1], 1.0, shares),
    }
    yancey = _variation(np.sqrt(2 * laws[0].diagonal()), np.abs(before - after)).mean()
    return InformationLoss({name: row for name, row in table.items() if row}, float(yancey))


def _errors(
    before: np.ndarray, after: np.ndarray, scale: float | np.ndarray, weights: Any = 1.0
) -> dict[str, float]:
    """Return the three kinds of error; what is smaller than rounding in ``scale`` is 0."""
    if not before.size:  # a single attribute has no pairs
        return {}
    dust = DUST * scale
    before = np.where(np.abs(before) <= dust, 0.0, before)
    error = np.abs(before - after)
    error[error <= dust] = 0.0
    return {
        "mean square error": float((weights * error**2).mean()),
        "mean absolute error": float((weights * error).mean()),
        "mean variation": float((weights * _variation(np.abs(before), error)).mean()),
    }


def _variation(of: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return errors as shares of numbers ≥ 0; of 0, any error is the whole."""
    base = np.broadcast_to(of, error.shape)
    return np.divide(error, base, out=(error > 0).astype(float), where=base > 0)


def _components(
    before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Return the components' shares of the original variance, RF and F of both tables."""
    pairs = [np.linalg.eigh(r) for r in (before, after)]
    values, others = (np.maximum(pair[0][::-1], 0.0) for pair in pairs)
    first, second = (pair[1][:, ::-1] for pair in pairs)
    signs = np.where((first * second).sum(axis=0) < 0, -1.0, 1.0)
    f = [first, second * signs]
    return values / values.sum(), [f[0] * np.sqrt(values), f[1] * np.sqrt(others)], f
