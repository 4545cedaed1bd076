"""What every picture must be: a journal's width, 8-point text, inside the page, on nothing else."""

from __future__ import annotations

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from cvxprivacy import style

SHARE = 0.1  # of the smaller of two texts that may lie under the other: boxes are wider than ink


def texts(figure: Figure) -> list[Text]:
    """Return what can be read: visible, not empty, on visible axes."""
    values = []
    for text in figure.findobj(Text):
        axes = text.axes
        shown = text.get_visible() and (axes is None or (axes.get_visible() and axes.axison))
        if shown and text.get_text().strip():
            values.append(text)
    return values


def ticks_out_of_sight(figure: Figure) -> set[Text]:
    """Return labels of ticks beyond the limits of their axis, which are not drawn."""
    hidden = set()
    for axes in figure.axes:
        if axes.name == "3d":  # counting them would move them
            continue
        if not axes.axison:
            hidden |= {text for axis in (axes.xaxis, axes.yaxis) for text in axis.findobj(Text)}
        for axis in (getattr(axes, f"{name}axis") for name in axes._axis_names):
            drawn = set(axis._update_ticks())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if tick not in drawn:
                    hidden |= {tick.label1, tick.label2}
    return hidden


def check(figure: Figure) -> None:
    """Raise AssertionError unless a figure has the house style and no text collides."""
    width, height = figure.get_size_inches()
    assert width in (style.COLUMN, style.PAGE), width
    assert height <= 9.0
    canvas = FigureCanvasAgg(figure)  # a fresh one: what saved the figure remembers its own scale
    canvas.draw()
    hidden = ticks_out_of_sight(figure)
    boxes = {}
    for text in texts(figure):
        if text in hidden:
            continue
        assert 6.5 <= text.get_fontsize() <= 9, (text.get_text(), text.get_fontsize())
        boxes[text] = box = text.get_window_extent(canvas.get_renderer())
        page = figure.bbox
        inside = (box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1
                  and box.y1 <= page.y1 + 1)  # fmt: skip
        assert inside, f"{text.get_text()!r} leaves the page"
    for (one, a), (other, b) in combinations(boxes.items(), 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > 0 and along > 0 and not (one.get_rotation() % 90 or other.get_rotation() % 90):
            least = min(a.width * a.height, b.width * b.height)
            message = f"{one.get_text()!r} lies on {other.get_text()!r}"
            assert across * along <= SHARE * least, message
    for axes in figure.axes:
        for line in axes.get_lines():
            shade = to_hex(line.get_color()).upper()
            assert shade in COLORS, f"{shade} is not of the palette"


COLORS = {value for name, value in vars(style).items() if str(value).startswith("#")} | {"#FFFFFF"}
