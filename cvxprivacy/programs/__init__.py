"""The canonical programs as plain data."""

from cvxprivacy.programs.channel import (
    Auxiliary,
    ChannelProgram,
    Dual,
    Minimize,
    Row,
    Term,
    View,
)

__all__ = ["Auxiliary", "ChannelProgram", "Dual", "Minimize", "Row", "Term", "View"]
