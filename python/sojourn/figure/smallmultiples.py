"""A metric over a swept key, a panel for each combination of the other keys."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from sojourn import _core
from sojourn.figure import panels
from sojourn.figure.of_grid import OfGrid
from sojourn.figure.style import Look, Width, from_zero, legend, log_axis, looks, looks_of, style, wants_log
from sojourn.figure.sweep import MOST_LINES
from sojourn.frame.cells import LABEL, Axis, CellTable


def _looks(grid: CellTable, each: Axis) -> list[Look]:
    """How the lines are drawn: queues as everywhere, numbers as shades from dark to bright."""
    if each.key == LABEL:
        return looks_of([grid.discipline(label) for label in each.texts])
    if each.numbers is None:
        return looks(len(each.texts))
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(each.texts)))
    return [
        look._replace(color=matplotlib.colors.to_hex(shade))
        for look, shade in zip(looks(len(each.texts)), shades, strict=True)
    ]


class Lines(OfGrid):
    """A metric over a key, as lines."""

    def lines(
        self,
        x: str,
        y: str = "label",
        metric: str = "sojourn_p95_ms",
        *,
        pool: bool = False,
        width: Width | None = None,
    ) -> Figure:
        """The median of a metric over the key ``x`` with its confidence interval, a line for each value of ``y``."""
        whole = self._grid
        across, each = whole.axis(x, "--x"), whole.axis(y, "--y")
        if len(each.texts) > MOST_LINES:
            raise _core.ExperimentError(
                f'--y: got "{y}" with {len(each.texts)} values; must have at most {MOST_LINES}: '
                "choose some with --where"
            )
        grid, shown, found, medians = self._over(across, each, metric, pool)
        positions, _ = panels.positions(across)
        known = medians.middle[np.isfinite(medians.middle)]
        with style():
            size = (5.2, 3.4) if len(found) == 1 else (2.6, 2.1)
            drawn, plots, panel_in = panels.layout(found, size, width, below=across)
            texts = panels.legend_texts(each.texts, drawn)
            for plot, panel in zip(plots, found, strict=True):
                for value, (text, look) in enumerate(zip(texts, _looks(grid, each), strict=True)):
                    members = panel.cells[grid.indices(y)[panel.cells] == value]
                    members = members[np.argsort(grid.indices(x)[members])]
                    at = positions[grid.indices(x)[members]]
                    # Drawn even if there are none: the legend is that of the first panel.
                    plot.plot(
                        at, medians.middle[members], color=look.color, linestyle=look.dashes, marker=look.marker,
                        markersize=3.5, label=text,
                    )  # fmt: skip
                    if members.size and medians.n[members].max() > 1:
                        plot.fill_between(
                            at, medians.low[members], medians.high[members], color=look.color, alpha=0.15, linewidth=0
                        )
                panels.scale_axis(plot, "x", across, panel_in - 0.6)
            if known.size and (known > 0.0).all() and wants_log(known.tolist()):
                for plot in plots:
                    log_axis(plot, "y")
            else:
                from_zero(plots[0])
            panels.name_panels(plots, found, panel_in)
            panels.name_axes(drawn, across.axis_label, shown.axis_label)
            if len(each.texts) > 1:
                legend(drawn, plots[0])
            panels.headline(
                drawn,
                panels.joined(
                    "" if y == LABEL else f"lines: {each.words}",
                    panels.spread(medians.n, interval=True, is_pooled=grid.is_pooled),
                    panels.pooled_note(grid, whole),
                ),
            )
            return drawn
