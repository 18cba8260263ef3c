"""A metric over two swept keys, as colours."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes as Plot
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sojourn.figure import panels
from sojourn.figure.names import name_places
from sojourn.figure.of_grid import OfGrid
from sojourn.figure.style import Width, style
from sojourn.frame.columns import short
from sojourn.frame.statistics import FloatArray

_MOST_WRITTEN = 150
"""Most cells of a panel whose values are written into them."""


def _write(plot: Plot, values: FloatArray, norm: object, room_in: float) -> None:
    texts = {index: short(float(value)) for index, value in np.ndenumerate(values) if np.isfinite(value)}
    longest = max(map(len, texts.values()), default=1)
    size = min(7.5, 72.0 * (room_in - 0.04) / (0.65 * longest))
    if size < 4.5:
        return
    for (row, column), text in texts.items():
        is_dark = norm(values[row, column]) < 0.6  # type: ignore[operator]
        plot.text(column, row, text, ha="center", va="center", fontsize=size, color="white" if is_dark else "black")


class Heatmap(OfGrid):
    """A metric over two keys, as colours."""

    def heatmap(
        self, x: str, y: str, metric: str = "sojourn_p95_ms", *, pool: bool = False, width: Width | None = None
    ) -> Figure:
        """The median of a metric over two keys, as colours. Hatched cells have no runs with the metric."""
        whole = self._grid
        across, up = whole.axis(x, "--x"), whole.axis(y, "--y")
        grid, shown, found, medians = self._over(across, up, metric, pool)
        columns, rows = len(across.texts), len(up.texts)
        norm = panels.color_scale(medians.middle)
        with style():
            size = min(6.0, max(1.9, 0.7 + 0.42 * columns)), min(5.0, max(1.5, 0.6 + 0.26 * rows))
            drawn, plots, panel_in = panels.layout(found, size, width, below=across)
            height_in = drawn.get_size_inches()[1] / max(1, len(plots) * panel_in / drawn.get_size_inches()[0])
            tables = []
            for plot, panel in zip(plots, found, strict=True):
                values = np.full((rows, columns), np.nan)
                values[grid.indices(y)[panel.cells], grid.indices(x)[panel.cells]] = medians.middle[panel.cells]
                plot.set_facecolor(panels.NO_DATA)
                # Behind the colours, so that it shows where there are none.
                plot.add_patch(
                    Rectangle((-0.5, -0.5), columns, rows, fill=False, hatch="////", edgecolor="#b8b8b8", linewidth=0)
                )
                plot.pcolormesh(
                    np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, np.ma.masked_invalid(values), norm=norm,
                    cmap="viridis", rasterized=values.size > 2000,
                )  # fmt: skip
                plot.grid(False)
                tables.append(values)
                name_places(plot, "x", panels.number_texts(across), panel_in - 0.5)
                name_places(plot, "y", panels.number_texts(up), max(0.8, min(height_in, 5.0) - 0.6))
            panels.name_panels(plots, found, panel_in)
            panels.name_axes(drawn, across.axis_label, up.axis_label)
            panels.color_bar(drawn, plots, ScalarMappable(norm, "viridis"), shown.axis_label)
            missing = (
                "hatched: no value" if np.isnan(medians.middle).any() or len(grid) < columns * rows * len(found) else ""
            )
            panels.headline(
                drawn, panels.joined(panels.spread(medians.n, interval=False), panels.pooled_note(grid, whole), missing)
            )
            if columns * rows <= _MOST_WRITTEN:
                # Only the layout tells how much room there is.
                drawn.draw_without_rendering()
                for plot, values in zip(plots, tables, strict=True):
                    _write(plot, values, norm, plot.get_window_extent().width / drawn.dpi / columns)
            return drawn
