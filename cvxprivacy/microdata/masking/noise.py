"""Additive noise, and the rescaling that restores means and variances.

J. M. Mateo-Sanz, J. Domingo-Ferrer and F. Sebé, Probabilistic information loss measures in
confidentiality protection of continuous microdata, Data Mining and Knowledge Discovery 11 (2005)
181–193, §5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.arrays import deviations, like, paired
from cvxprivacy.microdata.masking.base import Masking, check_is_fitted, clone, generator
from cvxprivacy.validation import number

__all__ = ["AdditiveNoise", "Rescaled", "rescale"]


class AdditiveNoise(Masking):
    """Add Gaussian noise: X̂ = X + N.

    Parameters
    ----------
    scale : float
        Uncorrelated, N has standard deviation scale · s_j in attribute j (``Noise16`` of the
        paper is 0.16).  Correlated, its covariance is scale² Σ_X, so that correlations are kept.
    correlated : bool
        Whether the noise has the correlations of the table.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Of the draws; fresh ones by default.  An int gives every call of ``transform`` the same
        draws: whoever holds two releases with them can subtract one from the other.

    Attributes
    ----------
    covariance_ : ndarray, shape (p, p)
        Of the noise.

    Examples
    --------
    Correlated noise of half the size makes the covariance 1.25 times as large, and keeps the
    correlation; uncorrelated noise lowers it:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = rng.standard_normal((5_000, 2)) @ [[1.0, 1.0], [0.0, 0.5]]
    >>> alike = AdditiveNoise(0.5, correlated=True, random_state=1).fit_transform(table)
    >>> apart = AdditiveNoise(0.5, random_state=1).fit_transform(table)
    >>> [round(float(np.corrcoef(each.T)[0, 1]), 1) for each in (table, alike, apart)]
    [0.9, 0.9, 0.7]
    >>> bool(np.allclose(np.var(alike, axis=0), 1.25 * np.var(table, axis=0), rtol=0.05))
    True
    """

    def __init__(
        self, scale: float = 0.1, *, correlated: bool = False, random_state: Any = None
    ) -> None:
        self.scale, self.correlated, self.random_state = scale, correlated, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # a record's noise depends on its place
        return tags

    def fit(self, X: Any, y: Any = None) -> AdditiveNoise:
        """Measure the covariance of a table X of finite numbers.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            The table.
        y : None
            Ignored.
        """
        data, size = self._numbers(X), number(self.scale, "scale")
        centred = (data - data.mean(axis=0)) * (deviations(data) > 0)
        scaled = size * centred
        with np.errstate(over="ignore", invalid="ignore"):
            law = scaled.T @ scaled / len(data)
        if not np.isfinite(law).all():
            problem = f"noise of {size:g} deviations overflows"
            raise InputError("scale", problem, "pass a smaller one")
        self.covariance_ = law if self.correlated else np.diag(law.diagonal())
        return self

    def transform(self, X: Any) -> Any:
        """Return the table with noise of the fitted covariance added.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Finite numbers, in the columns that were fitted.
        """
        check_is_fitted(self)
        data = self._numbers(X, reset=False)
        values, vectors = np.linalg.eigh(self.covariance_)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        noise = generator(self.random_state).standard_normal(data.shape) @ root.T
        return self._output(like(X, data + noise))


def rescale(original: Any, masked: Any) -> Any:
    """Return a masked table with the means and variances of the original (§5).

    Each masked attribute becomes (x̂ − m̂_j) s_j / ŝ_j + m_j.  One that is constant becomes the
    mean, whose variance cannot be restored.

    Parameters
    ----------
    original, masked : frame, or array_like of shape (n, p)
        The records may differ in number; columns of frames are matched by name.  The result is in
        the flavour of ``masked``.

    Returns
    -------
    frame or ndarray
        The rescaled table, in the flavour of ``masked``.

    Examples
    --------
    >>> rescale([[0.0], [2.0], [4.0]], [[10.0], [11.0], [12.0]]).ravel()
    array([0., 2., 4.])
    """
    before, after, names = paired(original, masked, records=False)
    shift, spread = after.mean(axis=0), deviations(after)
    factor = np.divide(deviations(before), spread, out=np.zeros_like(spread), where=spread > 0)
    return like(masked, (after - shift) * factor + before.mean(axis=0), names)


class Rescaled(Masking):
    """A masking method followed by :func:`rescale`.

    Parameters
    ----------
    method : estimator with ``fit_transform``
        ``Rescaled(MDAV(k=3))`` is ``Scal_Micmul3`` of the paper's Table 3.

    Attributes
    ----------
    method_ : estimator
        The fitted method, a clone of ``method``.

    Examples
    --------
    The means of groups vary less than the records do; rescaled, they vary as much:

    >>> import numpy as np
    >>> from cvxprivacy.microdata.masking import MDAV
    >>> table = [[1.0], [2.0], [10.0], [12.0]]
    >>> masked = MDAV(k=2).fit_transform(table)
    >>> rescaled = Rescaled(MDAV(k=2)).fit_transform(table)
    >>> [round(float(np.var(each)), 4) for each in (table, masked, rescaled)]
    [23.1875, 22.5625, 23.1875]
    """

    def __init__(self, method: Any) -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> Rescaled:
        """Fit the method to X and y.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Finite numbers.
        y : array_like, optional
            Passed to the method.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return the rescaled table of the method.  There is no ``transform``."""
        self._numbers(X)
        self.method_ = clone(self.method)
        return self._output(rescale(X, self.method_.fit_transform(X, y)))
