"""The canonical programs as plain data."""

from cvxprivacy.programs.channel import (
    Auxiliary,
    ChannelProgram,
    Dual,
    EntryBounds,
    Minimize,
    Part,
    Row,
    Term,
    View,
)

__all__ = [
    "Auxiliary",
    "ChannelProgram",
    "Dual",
    "EntryBounds",
    "Minimize",
    "Part",
    "Row",
    "Term",
    "View",
]
