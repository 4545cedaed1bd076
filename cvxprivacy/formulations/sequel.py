r"""A further release of the same records: what it tells together with those that are out already.

With Z = X̂₁ the earlier release, I(W; X̂₁ X̂₂) = I(W; X̂₁) + I(W; X̂₂ | X̂₁), and

.. math:: \min_{p(x̂_2 | x, x̂_1)} I(W; X̂_1, X̂_2) \quad\text{s.t.}\quad E\, d(X, X̂_2) ≤ D

is the program of side information that both know, with the exact law p(w, x) p(x̂₁ | x).  Where
nobody kept which letters were drawn it is minimised over p(x̂₂ | x), and the user knows Z alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cvxprivacy.errors import InputError, UnknownValueError
from cvxprivacy.exact import fractions, is_sparse
from cvxprivacy.model.discrete import DiscreteSource
from cvxprivacy.release.channel import Channel
from cvxprivacy.validation import one_of

__all__ = ["after_releases", "earlier", "joined"]

_MOST = 100_000  # atoms of W, X and what was released


def after_releases(source: DiscreteSource, after: Channel | Sequence[Channel]) -> DiscreteSource:
    """Return the joint law of W, X and the letters that were released of X before.

    Parameters
    ----------
    source : DiscreteSource
        Of W and X.
    after : Channel, or several
        Of the earlier releases, drawn independently given the record; Z is a letter of the one, or
        a tuple of all parts of those of several.

    Returns
    -------
    DiscreteSource
        p(w, x) Π p(x̂ᵢ | x), each product rounded once to a float, and ``earlier`` the exact
        Π p(x̂ᵢ | x); letters Z that never occur are left out.

    Raises
    ------
    InputError
        For side information besides, what is no channel, a channel whose user decodes, or more than
        100,000 combinations.
    UnknownValueError
        For a letter with mass that is no input of a channel.

    Examples
    --------
    >>> import cvxprivacy as cpv
    >>> source = cpv.DiscreteSource([[0.4, 0.1], [0.1, 0.4]])
    >>> first = cpv.PrivacyDistortion(source, cpv.hamming(2), 0.25).solve().channel
    >>> both = after_releases(source, first)
    >>> both, both.law[0].round(4).tolist()
    (DiscreteSource(W: 2, X: 2, earlier: 2), [[0.3, 0.1], [0.025, 0.075]])
    """
    channels = list(after) if isinstance(after, Iterable) else [after]
    if source.z is not None:
        remedy = "make the source of W and X alone"
        raise InputError("after", "side information and earlier releases", remedy)
    if not channels:
        raise InputError("after", "no channel", "pass one, or several")
    for place, channel in enumerate(channels):
        _check(channel, place)
    size = source.law.size * math.prod(len(c.outputs) for c in channels)
    if size > _MOST:
        remedy = "release fewer letters, or merge those of earlier releases that tell the same"
        raise InputError("after", f"{size:,} combinations of letters", remedy, value=size)
    law, tables = fractions(source.law), [_rows(c, source, i) for i, c in enumerate(channels)]
    chances: dict[tuple[int, ...], np.ndarray] = {}  # p(z | w, x)
    for places in itertools.product(*(range(len(c.outputs)) for c in channels)):
        chance: Any = math.prod(rows[:, :, y] for rows, y in zip(tables, places, strict=True))
        if (law * chance > 0).any():
            chances[places] = chance
    labels = [joined([c.outputs[y] for c, y in zip(channels, z, strict=True)]) for z in chances]
    exact = np.stack(list(chances.values()), axis=2)
    joint = law[:, :, None] * exact
    joint = joint / joint.sum()
    made = DiscreteSource(
        joint.astype(float),
        w=source.w,
        x=source.x,
        z=labels,
        names=(*source.names[:2], "earlier"),
        records=source.records,
    )._with(earlier=exact)
    schemas = [channel.schema for channel in channels]
    if source.schema is None or any(s is None or s.key != source.schema.key for s in schemas):
        return made
    counted = {name: getattr(source, name) for name in ("effective", "levels", "dropped")}
    return made._with(schema=source.schema.after(len(channels)), **counted)


def earlier(
    source: DiscreteSource, after: Any, remember: bool, laws: Any
) -> tuple[DiscreteSource, str | None]:
    """Return the source of a problem after earlier releases, and who knows these."""
    one_of(remember, "remember", True, False)
    if after is None:
        return source, None
    if laws:
        problem, remedy = "earlier releases under several laws", "solve under each law by itself"
        raise InputError("after", problem, remedy)
    return after_releases(source, after), "both" if remember else "decoder"


def joined(letters: Sequence[Any]) -> Any:
    """Return the letter of one earlier release, or all parts of those of several in one tuple."""
    if len(letters) == 1:
        return letters[0]
    parts = (letter if isinstance(letter, tuple) else (letter,) for letter in letters)
    return tuple(part for letter in parts for part in letter)


def _check(channel: Any, place: int) -> None:
    """Refuse what is no channel, or one whose letters are read with side information."""
    if not isinstance(channel, Channel):
        remedy = "pass solution.channel, or Channel.load(path)"
        raise InputError("after", f"a {type(channel).__name__}", remedy, where=place)
    if channel.decoder is not None or channel.encoder not in ("x", "wx"):
        problem, remedy = "a release that is read with side information", "pass one that is not"
        raise InputError("after", problem, remedy, where=place)


def _rows(channel: Channel, source: DiscreteSource, place: int) -> np.ndarray:
    """Return p(x̂ | w, x) of a channel, exactly, shape (|W|, |X|, |X̂|)."""
    laws = fractions(channel.matrix.toarray() if is_sparse(channel.matrix) else channel.matrix)
    laws = laws / laws.sum(axis=1, keepdims=True)
    order = {label: i for i, label in enumerate(channel.inputs)}
    table = np.full((len(source.w), len(source.x), len(channel.outputs)), Fraction(0), dtype=object)
    for (w, x), mass in np.ndenumerate(source.law):
        letter = source.x[x] if channel.encoder == "x" else (source.w[w], source.x[x])
        if letter in order:
            table[w, x] = laws[order[letter]]
        elif mass:
            remedy = "pass a channel of the same letters"
            problem = f"{letter!r} is no input of the channel"
            raise UnknownValueError("after", problem, remedy, where=place, value=letter)
    return table
