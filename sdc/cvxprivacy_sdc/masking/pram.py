"""PRAM: the letters of categorical attributes are drawn anew by a known channel p(x̂ | x).

J. M. Gouweleeuw, P. Kooiman, L. C. R. J. Willenborg and P.-P. de Wolf, Post randomisation for
statistical disclosure control: theory and implementation, Journal of Official Statistics 14
(1998) 463–478.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from cvxprivacy.criteria import Criterion, PreserveMarginal
from cvxprivacy.errors import InputError
from cvxprivacy.extras import nw, pd
from cvxprivacy.formulations.minimum_distortion import MinimumDistortion
from cvxprivacy.formulations.privacy_distortion import PrivacyDistortion
from cvxprivacy.model.attributes import per_attribute
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.model.distortion import Distortion
from cvxprivacy.release.apply import rows_of
from cvxprivacy.release.channel import Channel
from cvxprivacy.tables.arrays import is_frame
from cvxprivacy.tables.engines import as_narwhals, python_values
from cvxprivacy.tables.schema import TableSchema
from cvxprivacy.validation import number, present
from cvxprivacy_sdc.masking.numeric import Masking, generator

__all__ = ["PRAM", "OptimalPRAM"]


class CategoryMasking(Masking):
    """What the kinds of PRAM share: tables of categories, and channels that draw them anew."""

    random_state: Any
    channels_: list[Channel]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # a record's draw depends on its place
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _letters(self, X: Any, *, reset: bool = True) -> dict[str, list[Any]]:
        """Return the columns of a table; a missing value is no letter."""
        data = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        if is_frame(X, "X"):
            frame = as_narwhals(X)
            columns = {name: python_values(frame[name]) for name in frame.columns}
        else:
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(data.shape[1])])
            columns = {str(n): column.tolist() for n, column in zip(names, data.T, strict=True)}
        for name, column in columns.items():
            for row, value in enumerate(column):
                if value is None or (isinstance(value, float) and not np.isfinite(value)):
                    problem = "a missing value (NaN)" if value is None else f"{value!r} (NaN, inf)"
                    remedy = "drop the record, or give the missing a letter of their own"
                    raise InputError("X", problem, remedy, where=(row, name), value=value)
        return columns

    def transform(self, X: Any) -> Any:
        """Return the table with its categories drawn anew; an unknown one is refused."""
        check_is_fitted(self)
        columns, draws = self._letters(X, reset=False), generator(self.random_state)
        released = X if is_frame(X, "X") else pd.DataFrame(columns)
        for channel in self.channels_:
            released = channel.apply(released, seed=draws)
        if is_frame(X, "X"):
            return self._output(released)
        values = released.to_numpy()
        text = np.asarray(X).dtype.kind in "US"
        return np.array(values.tolist()) if text else values


class PRAM(CategoryMasking):
    """Draw each letter anew by a channel that is given.

    Parameters
    ----------
    channel : float, Channel, or mapping of column to float or Channel
        A number is the probability with which a letter stays; the column's other letters share
        the rest evenly.  A channel draws all columns at once, a mapping each column by its own;
        columns that it does not name stay.
    invariant : bool
        Follow the channel K by its inverse in the sense of Bayes, p(x | x̂) of the fitted table:
        the channel of both keeps the expected counts of the fitted table (Gouweleeuw et al.,
        §6).  :class:`OptimalPRAM` finds the invariant channel that reveals least.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Of the draws; fresh ones by default.

    Attributes
    ----------
    channels_ : list of Channel
        The channel of each column, or the one of all, with the law of the fitted table.

    Examples
    --------
    Nine in ten answers stay.  Of 40 smokers among 100, 0.9 · 40 + 0.1 · 60 = 42 are expected
    after it, and 40 by the invariant channel, which costs more changes:

    >>> import pandas as pd
    >>> people = pd.DataFrame({"smokes": ["yes"] * 40 + ["no"] * 60})
    >>> [plain] = PRAM(0.9).fit(people).channels_
    >>> [kept] = PRAM(0.9, invariant=True).fit(people).channels_
    >>> plain.inputs, plain.released_marginal.round(6).tolist()
    (['no', 'yes'], [0.58, 0.42])
    >>> kept.released_marginal.round(6).tolist(), kept.matrix.diagonal().round(3).tolist()
    ([0.6, 0.4], [0.852, 0.778])
    """

    def __init__(
        self,
        channel: float | Channel | Mapping[Hashable, float | Channel] = 0.8,
        *,
        invariant: bool = False,
        random_state: Any = None,
    ) -> None:
        self.channel, self.invariant, self.random_state = channel, invariant, random_state

    def fit(self, X: Any, y: Any = None) -> PRAM:
        """Count the categories of X, among them numbers; one unknown to the channel is refused.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Categories, without a missing one.
        y : None
            Ignored.
        """
        columns, channel = self._letters(X), self.channel
        each: dict[tuple[str, ...], float | Channel]
        if isinstance(channel, Channel):
            each = {tuple(channel.schema.key if channel.schema else columns): channel}
        elif isinstance(channel, Mapping):
            each = {(str(name),): value for name, value in channel.items()}
        else:
            each = {(name,): channel for name in columns}
        self.channels_ = [self._channel(columns, key, value) for key, value in each.items()]
        return self

    def _channel(
        self, columns: dict[str, list[Any]], key: tuple[str, ...], channel: float | Channel
    ) -> Channel:
        """Return the channel of some columns, with the law of the table."""
        for name in key:
            present(name, columns, "channel")
        schema = TableSchema(key=key)
        if isinstance(channel, Channel):
            if channel.encoder != "x":
                remedy = "pass a channel of the columns that are released"
                raise InputError("channel", "its encoder sees the confidential letter", remedy)
            schema = channel.schema or schema
            inputs, outputs, matrix = channel.inputs, channel.outputs, channel.matrix
        else:
            stay = number(channel, "channel", below=1.0 + 1e-12)
            inputs = outputs = _sorted(set(columns[key[0]]))
            size = len(inputs)
            matrix = np.full((size, size), (1.0 - stay) / max(size - 1, 1))
            np.fill_diagonal(matrix, stay if size > 1 else 1.0)
        # letters that fit no columns are refused before records that have no letter
        Channel(matrix, inputs=inputs, outputs=outputs, schema=schema)
        letters = schema.letters(nw.from_native(pd.DataFrame(columns)), key)
        rows = rows_of({x: i for i, x in enumerate(inputs)}, letters)
        law = np.bincount(rows, minlength=len(inputs)) / len(rows)
        stated = Channel(matrix, inputs=inputs, outputs=outputs, schema=schema, p_input=law)
        if not self.invariant:
            return stated
        back = stated.posterior
        back[np.isnan(back[:, 0])] = law
        return stated.then(Channel(back, inputs=outputs, outputs=inputs, schema=schema))


def _sorted(letters: set[Any]) -> list[Any]:
    try:
        return sorted(letters)
    except TypeError:
        return sorted(letters, key=repr)


class OptimalPRAM(CategoryMasking):
    r"""Draw letters anew by the channel that reveals least about a confidential attribute y.

    .. math:: \min_{p(x̂ | x)} I(y; X̂) \quad \text{s.t.} \quad E\, d(X, X̂) ≤ D
              \text{ and the criteria,}

    in the law of the fitted records, with a certificate (Rebollo-Monedero, Forné and
    Domingo-Ferrer, IEEE TKDE 22(11), 2010, eq. 3); all columns are drawn at once.  Without y the
    table itself is confidential: Shannon's rate–distortion function.

    Parameters
    ----------
    budget : float or None
        D, in the unit of the distortion; None looks for the least distortion under the criteria.
    distortion : str, mapping of column to str, Distortion, or callable
        ``"hamming"``, ``"ordinal"``, ``"absolute_error"`` or ``"squared_error"``, the mean over
        the columns; for several columns their sum, as :func:`cvxprivacy.per_attribute`; or what
        a function makes of the ``DiscreteSource``.
    criteria : sequence of Criterion
        What the release has to satisfy besides.
    invariant : bool
        Keep the expected counts of the fitted table (``PreserveMarginal``).
    bins : mapping of column to width or edges, optional
        As in :meth:`cvxprivacy.DiscreteSource.from_table`.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Of the draws; fresh ones by default.

    Attributes
    ----------
    solution_ : Solution
        With its certificate and prices.
    channels_ : list of one Channel
        The optimal channel of all columns.

    Examples
    --------
    One answer in five may change, and 40 of 100 have to stay smokers on average.  What the answers
    tell about an illness falls from 0.268 to 0.087 bits:

    >>> import pandas as pd
    >>> people = pd.DataFrame({"smokes": ["yes"] * 40 + ["no"] * 60})
    >>> ill = ["ill"] * 32 + ["well"] * 8 + ["ill"] * 12 + ["well"] * 48
    >>> none = OptimalPRAM(budget=0).fit(people, ill)
    >>> best = OptimalPRAM(budget=0.2, invariant=True).fit(people, ill)
    >>> best.solution_.status, round(none.solution_.value, 3), round(best.solution_.value, 3)
    ('certified', 0.268, 0.087)
    >>> [channel] = best.channels_
    >>> channel.released_marginal.round(6).tolist(), channel.matrix.diagonal().round(4).tolist()
    ([0.6, 0.4], [0.8333, 0.75])
    """

    def __init__(
        self,
        budget: float | None = 0.1,
        *,
        distortion: str
        | Mapping[str, str]
        | Distortion
        | Callable[[DiscreteSource], Distortion] = "hamming",
        criteria: Sequence[Criterion] = (),
        invariant: bool = False,
        bins: Mapping[Hashable, float | Sequence[float]] | None = None,
        random_state: Any = None,
    ) -> None:
        self.budget, self.distortion, self.criteria = budget, distortion, criteria
        self.invariant, self.bins, self.random_state = invariant, bins, random_state

    def fit(self, X: Any, y: Any = None) -> OptimalPRAM:
        """Solve for the optimal channel of X, with few enough combinations to be counted.

        Parameters
        ----------
        X : frame, or array_like of shape (n, p)
            Categories, without a missing one.
        y : array_like, shape (n,), optional
            The confidential categories.

        Raises
        ------
        InfeasibleError
            If no channel satisfies the criteria within the budget.
        """
        columns = self._letters(X)
        key, size = list(columns), len(next(iter(columns.values())))
        hidden = {f"confidential {name}": column for name, column in columns.items()}
        if y is not None:
            hidden = {"confidential": np.asarray(y).ravel().tolist()}
            if len(hidden["confidential"]) != size:
                problem = f"{len(hidden['confidential'])} letters"
                raise InputError("y", problem, f"pass {size}, one per record")
        source = DiscreteSource.from_table(
            pd.DataFrame({**columns, **hidden}), sensitive=list(hidden), key=key, bins=self.bins
        )
        measure, criteria = self._measure(source, key), list(self.criteria)
        criteria += [PreserveMarginal()] if self.invariant else []
        if self.budget is None:
            self.solution_ = MinimumDistortion(source, measure, criteria).solve()
        else:
            self.solution_ = PrivacyDistortion(
                source, measure, budget=self.budget, criteria=criteria
            ).solve()
        channel = self.solution_.channel
        assert channel is not None
        self.channels_ = [channel]
        return self

    def _measure(self, source: DiscreteSource, key: list[str]) -> Distortion:
        kind = self.distortion
        if isinstance(kind, Distortion):
            return kind
        if isinstance(kind, str):
            return per_attribute(dict.fromkeys(key, kind), source) * (1 / len(key))
        if isinstance(kind, Mapping):
            return per_attribute(kind, source)
        if not callable(kind):
            raise InputError("distortion", f"{kind!r}", "pass a name, a mapping or a Distortion")
        return kind(source)
