"""Small multiples of a grid: which panels there are, and how they are laid out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes as Plot
from matplotlib.colors import AsinhNorm, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sojourn import _core
from sojourn.figure import style
from sojourn.figure.filenames import WIDTHS_IN
from sojourn.figure.names import cut
from sojourn.frame.cells import LABEL, Axis, CellTable
from sojourn.frame.registry import short
from sojourn.frame.statistics import CONFIDENCE, FloatArray, coverage_limit

MOST_PANELS = 24
NO_DATA = "#e4e4e4"


@dataclass(frozen=True)
class Panel:
    """Cells of a grid that are drawn together."""

    title: str
    cells: npt.NDArray[np.int64]


def panels(grid: CellTable, within: Sequence[str]) -> list[Panel]:
    """A panel per combination of the values of the keys not drawn ``within`` one, unless they are too many."""
    keys = [key for key in grid.varying if key not in within]
    if not keys:
        return [Panel("", np.arange(len(grid)))]
    # The queues change fastest: they stand beside each other.
    codes = np.stack([grid.indices(key) for key in sorted(keys, key=lambda key: key == LABEL)], axis=1)
    combinations, members = np.unique(codes, axis=0, return_inverse=True)
    if len(combinations) > MOST_PANELS:
        raise _core.ExperimentError(
            f"plot: would need {len(combinations)} panels, one per combination of {', '.join(keys)}; must be at most "
            f"{MOST_PANELS}: choose some of their values with --where, or combine them with --pool"
        )
    members = members.ravel()
    found = []
    for index in range(len(combinations)):
        cells = np.flatnonzero(members == index)
        found.append(Panel(grid.setting(int(cells[0]), keys), cells))
    return found


_ONE_ROW = 2
"""The lines above a headline that a legend of one row takes."""


class Page:
    """A figure with panels, as wide as they or as given, higher for long titles and for names on the axis ``below``."""

    def __init__(
        self,
        found: Sequence[Panel],
        size_in: tuple[float, float],
        width: style.Width | None,
        *,
        below: Axis | None = None,
        share_y: bool = True,
    ) -> None:
        count = len(found)
        width_in, height_in = size_in
        most = max(1, int(12.0 / width_in)) if width is None else max(1, int(WIDTHS_IN[width] / 1.7))
        ideal = math.sqrt(count * 1.6)
        # Without empty panels in the last row, if that is possible.
        columns = min(range(1, min(count, most) + 1), key=lambda each: (-count % each + abs(each - ideal), -each))
        rows = math.ceil(count / columns)
        if width is not None:
            scale = WIDTHS_IN[width] / columns / width_in
            width_in, height_in = width_in * scale, min(max(1.6, height_in * min(1.0, scale)), style.TALLEST_IN / rows)
        titles = max(style.wrapped(panel.title, width_in - 0.2).count("\n") for panel in found)
        names = max(map(len, cut(below.texts)), default=0) if below is not None and below.numbers is None else 0
        room_in = 0.055 * names * (1 if -count % columns == 0 else 2) + 0.15 * titles * rows
        self.drawn = style.figure(max(4.2, columns * width_in), max(2.4, rows * height_in) + room_in)
        if width is not None:
            self.drawn.set_size_inches(WIDTHS_IN[width], max(2.3, rows * height_in) + room_in)
            self.drawn.is_fixed = True  # type: ignore[attr-defined]
        self.panels = found
        self.plots = style.multiples(self.drawn, count, columns, sharey=share_y)
        self.panel_in = width_in

    def each(self) -> Iterator[tuple[Plot, Panel]]:
        """The panels with their axes."""
        return zip(self.plots, self.panels, strict=True)

    def finish(
        self, x: str, y: str, *notes: str, has_legend: bool = False, colors: tuple[Any, str] | None = None
    ) -> Figure:
        """Adds the titles, the labels of the shared axes, a legend or the colours with their label, and the notes."""
        for plot, panel in self.each():
            if panel.title:
                style.title(plot, panel.title, self.panel_in + 0.3)
                if len(self.plots) > 6:
                    # Half of the time of drawing would go into small ticks.
                    plot.minorticks_off()
        wide_in, high_in = self.drawn.get_size_inches()
        self.drawn.supxlabel(style.wrapped(x, wide_in - 0.3), fontsize=9)
        self.drawn.supylabel(style.wrapped(y, high_in - 0.9), fontsize=9)
        if colors is not None:
            self._color_bar(*colors)
        if has_legend:
            style.legend(self.drawn, self.plots[0])
        self._headline("; ".join(filter(None, notes)))
        return self.drawn

    def _headline(self, text: str) -> None:
        """Lines above all panels that explain what is drawn, below the legend, which must be there already."""
        room = max(30, int((self.drawn.get_size_inches()[0] - 0.3) / 0.065))
        above = 0
        for key in self.drawn.legends:
            if len(key.get_texts()) <= style.ABOVE:
                rows = math.ceil(len(key.get_texts()) / key._ncols)  # type: ignore[attr-defined]
                above = math.ceil((0.17 * rows + 0.08) / 0.135)
        lines = fill(text, room)
        # Panels are as high as with a row of names and a line, so that the label beside them has its room.
        more_in = 0.135 * (max(0, above - _ONE_ROW) + lines.count("\n"))
        high_in = self.drawn.get_figheight()
        self.drawn.set_figheight(max(high_in, min(high_in + more_in, style.TALLEST_IN)))
        # matplotlib makes room for the higher of legend and title, and puts both at the top.
        self.drawn.suptitle("\n" * above + lines if lines else "", x=0.01, ha="left", color="#555555", fontsize=8)

    def _color_bar(self, mappable: Any, label: str) -> None:
        """The colours with their values, beside all panels."""
        words = style.wrapped(label, self.drawn.get_size_inches()[1] - 0.7)
        bar = self.drawn.colorbar(mappable, ax=self.plots, label=words, fraction=0.05, pad=0.02)
        norm = mappable.norm
        if isinstance(norm, LogNorm):
            few = norm.vmax / norm.vmin < 300.0  # type: ignore[operator]
            bar.locator = LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,))
        elif isinstance(norm, AsinhNorm):
            first, last = (
                math.ceil(math.log10(3.0 * norm.linear_width)),
                math.floor(math.log10(float(norm.vmax or 1.0))),
            )
            bar.locator = FixedLocator([0.0, *(10.0**power for power in range(first, last + 1))])
        else:
            bar.locator = MaxNLocator(6)
        bar.formatter = FuncFormatter(style.plain_number)
        bar.update_ticks()
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
        bar.ax.grid(False)
        bar.outline.set_linewidth(0.4)


def draw_map(plot: Plot, values: FloatArray, **look: Any) -> None:
    """A table of values as colours."""
    rows, columns = values.shape
    plot.set_facecolor(NO_DATA)
    plot.pcolormesh(np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, np.ma.masked_invalid(values), **look)
    plot.grid(False)


def spread(n: npt.NDArray[np.int64], *, interval: bool, is_pooled: bool = False) -> str:
    """What a value stands for: ``median of 5 runs``. Runs of several settings have a range instead of an interval."""
    known = n[n > 0]
    if not known.size or known.max() == 1:
        return ""
    low, high = int(known.min()), int(known.max())
    text = f"median of {low if low == high else f'{low} to {high}'} runs"
    if not interval:
        return text
    if is_pooled:
        return f"{text}, with their range"
    text += f", with its {CONFIDENCE:.0%} confidence interval"
    if coverage_limit(low) < CONFIDENCE:
        text += f" (of {low} it cannot cover more than {math.floor(100 * coverage_limit(low))}%)"
    return text


def color_scale(values: FloatArray) -> Normalize:
    """A scale of colours for values: logarithmic as axes are; with zeros among wide values linear near zero."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low == high == 0.0:
        return Normalize(0.0, 1.0)
    if low == high:
        return Normalize(low - abs(low) * 0.05 - 1e-9, high + abs(high) * 0.05 + 1e-9)
    if low >= 0.0 and style.wants_log(known.tolist()):
        least = float(known[known > 0.0].min())
        return LogNorm(least, high) if low > 0.0 else AsinhNorm(linear_width=least, vmin=0.0, vmax=high)
    return Normalize(low, high)


def positions(axis: Axis) -> tuple[FloatArray, bool]:
    """Where the values of a key are on an axis, and whether that is logarithmic: the numbers, or else 0, 1, …."""
    if axis.numbers is None:
        return np.arange(len(axis.texts), dtype=np.float64), False
    return axis.numbers, bool((axis.numbers > 0.0).all()) and style.wants_log(axis.numbers.tolist())


def legend_texts(texts: Sequence[str], drawn: Figure) -> list[str]:
    """Names that fit into the width of a figure."""
    return cut(texts, max(12, int((drawn.get_size_inches()[0] - 0.6) / 0.07)))


def number_texts(axis: Axis) -> tuple[str, ...]:
    """The values of a key without the unit that its axis has."""
    return axis.texts if axis.numbers is None else tuple(map(short, axis.numbers.tolist()))


def pooled_note(grid: CellTable, whole: CellTable) -> str:
    """The keys whose values are combined."""
    gone = [whole.axes[key].words for key in whole.varying if key not in grid.axes]
    return f"all values of {', '.join(gone)} together" if gone else ""
