"""What a criterion asks for, in the words of one who has to sign for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["Words"]


@dataclass(frozen=True)
class Words:
    """A criterion in words; a class has them with places for numbers and names.

    Attributes
    ----------
    asks : str
        What it asks for, a sentence without its end, of ``{n}`` the number, ``{w}`` and ``{x}`` the
        columns, ``{measure}`` what leaks and ``{how}`` the same with its unit.
    quantity, unit : str
        What it bounds, and in which unit; no unit for a pure number.
    at_least : bool
        Whether its number is the least that there may be, else the most.
    definition, source : str
        The criterion in one sentence for a board, and who proposed it.
    examples : tuple of str
        How it is typed on the command line.
    """

    asks: str
    quantity: str
    unit: str = ""
    at_least: bool = False
    definition: str = ""
    source: str = ""
    examples: tuple[str, ...] = ()

    def about(self, names: Mapping[str, str]) -> Words:
        """Return the words with numbers and names in their places."""
        parts = {key: getattr(self, key).format(**names) for key in ("asks", "quantity", "unit")}
        return replace(self, **parts)
