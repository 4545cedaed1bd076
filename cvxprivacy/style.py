"""How every picture looks: two widths, one size of type, one palette, one sign for each thing.

Colours are those of Okabe and Ito (*Color Universal Design*, 2008), told apart by all eyes; images
and surfaces take the map ``cividis``.  What is proved optimal is blue with stars, what a theorem
bounds is black and dashed, what is done in practice is vermilion with circles.  Where masking
methods stand side by side, each has the colour and marker of ``MASKINGS`` in every picture.

>>> from cvxprivacy import style
>>> import matplotlib.pyplot as plt
>>> with plt.rc_context(style.HOUSE):
...     figure, [ax] = style.panels("")
...     _ = ax.plot([0, 1], [1, 0], **style.BOUND)
>>> float(figure.get_figwidth())
3.5
"""

from __future__ import annotations

import re
import warnings
from html import escape
from io import StringIO
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BOUND", "COLUMN", "HOUSE", "MASKINGS", "OPTIMUM", "PAGE", "PALETTE", "PRACTICE", "inline_svg",
    "panels",
]  # fmt: skip

COLUMN, PAGE = 3.5, 7.2  # inches: one column of a journal, and two
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT = "#6E6E6E", "#C8C8C8"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # of curves, in this order
MAP = "cividis"  # of images and surfaces

OPTIMUM: dict[str, Any] = {"color": BLUE, "ls": "-", "marker": "*", "ms": 7}
BOUND: dict[str, Any] = {"color": BLACK, "ls": "--", "lw": 1.0}
PRACTICE: dict[str, Any] = {"color": VERMILION, "ls": "-", "marker": "o", "ms": 4}
MASKINGS: dict[str, tuple[str, str]] = {  # colour and marker of each method
    "MDAV": (VERMILION, "o"), "microaggregation": (VERMILION, "o"), "μ-Approx": (GREEN, "s"),
    "individual ranking": (PURPLE, "D"), "rank swapping": (ORANGE, "^"), "noise": (SKY, "v"),
    "correlated noise": (GREY, "P"),
}  # fmt: skip

HOUSE: dict[str, Any] = {  # for matplotlib.rc_context
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 8,
    "figure.titlesize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "grid.linewidth": 0.4,
    "lines.linewidth": 1.3, "lines.markeredgewidth": 0.5, "patch.linewidth": 0.5,
    "hatch.linewidth": 0.5, "legend.frameon": False, "legend.handlelength": 1.6,
    "axes.titlelocation": "left", "image.cmap": MAP, "savefig.dpi": 300,
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "cvxprivacy",
}  # fmt: skip


def panels(
    *titles: str, height: float = 2.6, rows: int = 1, width: float | None = None, **subplots: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row, lettered (a), (b), … if there are several.

    Parameters
    ----------
    *titles : str
        What each panel shows; "" for none.
    height : float
        Of the figure, in inches.
    rows : int
        Over which the panels are spread evenly; what is left over of the last stays empty.
    width : float, optional
        In inches: by default :data:`COLUMN` for one panel, :data:`PAGE` for several.
    **subplots
        For ``matplotlib.pyplot.subplots``, such as ``width_ratios`` or ``sharey``.

    Returns
    -------
    (Figure, list of Axes)
        One for each title, in their order.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> with plt.rc_context(HOUSE):
    ...     figure, axes = panels("risk", "distortion", "price", rows=2)
    >>> [ax.get_title(loc="left") for ax in axes]
    ['(a) risk', '(b) distortion', '(c) price']
    >>> float(figure.get_figwidth()), len(figure.axes)
    (7.2, 3)
    >>> plt.close(figure)
    """
    import matplotlib.pyplot as plt

    several = len(titles) > 1
    figure, axes = plt.subplots(
        rows, -(-len(titles) // rows), figsize=(width or (PAGE if several else COLUMN), height),
        layout="constrained", squeeze=False, **subplots,
    )  # fmt: skip
    every = list(axes.flat)
    for spare in every[len(titles) :]:
        spare.remove()
    for letter, title, ax in zip(ascii_lowercase, titles, every, strict=False):
        ax.set_title(f"({letter}) {title}".rstrip() if several else title)
    return figure, every[: len(titles)]


def inline_svg(figure: Figure, description: str) -> str:
    """Return a figure as SVG to be put into HTML: no metadata, no address, with a description.

    Its text is text where ``svg.fonttype`` is "none": a reader's fonts draw it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What is drawn.
    description : str
        What it shows, for those who do not see it.

    Returns
    -------
    str
        One ``<svg>`` element.

    Examples
    --------
    >>> from cvxprivacy import style
    >>> import matplotlib.pyplot as plt
    >>> figure, ax = plt.subplots()
    >>> text = style.inline_svg(figure, "R(D) falls")
    >>> text.startswith("<svg"), 'aria-label="R(D) falls"' in text, "<metadata>" in text
    (True, True, False)
    >>> plt.close(figure)
    """
    text = StringIO()
    with warnings.catch_warnings():  # of glyphs that matplotlib's own font lacks
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    picture = text.getvalue()
    picture = picture[picture.index("<svg") :]
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    head, body = picture.split(">", 1)
    head = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
    label = escape(description, quote=True)
    return f'{head} role="img" aria-label="{label}">{body.replace("xlink:href", "href")}'
