"""What the masking methods share: tables in, tables out, in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from cvxprivacy.errors import InputError
from cvxprivacy.microdata.arrays import is_frame, like, numbers

try:
    from sklearn import get_config
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    need = "cvxprivacy.microdata.masking needs scikit-learn 1.6 or later"
    raise ImportError(f"{need}: pip install 'cvxprivacy[masking]'") from error

__all__ = ["Masking", "TableMasking", "check_is_fitted", "clone", "generator", "validate_data"]


class Masking(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """A method that replaces every column of a table.

    A frame comes back as a frame of its own flavour, with its index and names, an array as an
    array; ``set_output`` overrides that.
    """

    n_features_in_: int

    def _numbers(self, X: Any, *, reset: bool = True) -> np.ndarray:
        """Return the table as finite numbers, shape (n, p), or say which cell is none."""
        if is_frame(X, "X"):
            numbers(X, "X")
        data = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        bad = ~np.isfinite(data)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            value = float(data[row, column])
            problem = "NaN" if np.isnan(value) else repr(value)
            remedy = "fill or drop what is missing or infinite"
            raise InputError("X", problem, remedy, where=(row, column), value=value)
        return np.asarray(data)

    def _output(self, released: Any) -> Any:
        """Return a frame as it is, or for ``set_output`` as one that scikit-learn can convert."""
        config = getattr(self, "_sklearn_output_config", {})
        wanted = config.get("transform", get_config()["transform_output"])
        if wanted == "default" or not is_frame(released, "X"):
            return released
        return nw.from_native(released, eager_only=True).to_pandas()


class TableMasking(Masking):
    """A method whose promise concerns the records that it is fitted on: there is no ``transform``.

    Ranks or groups of further records would not be those of these.
    """

    def _masked(self, data: np.ndarray) -> np.ndarray:
        """Set what is fitted; return the masked records, shape (n, p)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the groups, or the swaps, of the records of X, a table of finite numbers."""
        self._masked(self._numbers(X))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the masked table."""
        return self._output(like(X, self._masked(self._numbers(X))))


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a generator of either kind, or fresh entropy (None)."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, size=4, dtype=np.uint32).tolist()
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        remedy = "pass None, a whole number ≥ 0 or a numpy.random.Generator"
        problem = f"{random_state!r} ({error})"
        raise InputError("random_state", problem, remedy, value=random_state) from None
