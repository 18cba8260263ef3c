"""A metric over two numeric keys, as contours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes as Plot
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from matplotlib.tri import Triangulation

from sojourn import _core
from sojourn.figure import panels
from sojourn.figure.of_grid import OfGrid
from sojourn.figure.style import Width, log_axis, style
from sojourn.frame.cells import Axis, CellTable
from sojourn.frame.columns import short
from sojourn.frame.statistics import FloatArray

_LEVELS = 12


def _numeric(grid: CellTable, key: str, option: str) -> Axis:
    axis = grid.axis(key, option)
    if axis.numbers is None:
        raise _core.ExperimentError(f'{option}: got "{key}", whose values are not numbers of one unit; must be numeric')
    if len(axis.texts) < 2:
        raise _core.ExperimentError(f'{option}: got "{key}", which has one value; must have at least two')
    return axis


def _draw(
    plot: Plot,
    at: tuple[FloatArray, FloatArray],
    is_log: tuple[bool, bool],
    values: FloatArray,
    levels: FloatArray,
    norm: Normalize,
) -> None:
    # Triangles and distances are those of the picture.
    seen = [np.log(one) if log else one for one, log in zip(at, is_log, strict=True)]
    if len(values) < 3 or _on_a_line(*seen):
        plot.text(0.5, 0.5, "too few cells", transform=plot.transAxes, ha="center", va="center", color="#555555")
        return
    spans = [one.max() - one.min() for one in seen]
    triangles = Triangulation(seen[0] / spans[0], seen[1] / spans[1])
    drawn = Triangulation(*at, triangles=_not_flat(triangles))
    plot.tricontourf(drawn, values, levels=levels, norm=norm, cmap="viridis", extend="both")
    lines = plot.tricontour(drawn, values, levels=levels[1:-1:2], norm=norm, colors="white", linewidths=0.6)
    plot.clabel(lines, fontsize=6, fmt=short)


def _on_a_line(x: FloatArray, y: FloatArray) -> bool:
    centred = np.stack([x - x.mean(), y - y.mean()])
    lengths = np.abs(centred).max(axis=1)
    return bool((lengths == 0.0).any()) or np.linalg.matrix_rank(centred / lengths[:, None], tol=1e-9) < 2


def _not_flat(triangles: Triangulation) -> npt.NDArray[np.int32]:
    """The triangles but for those that have no area: rounding makes them of cells in a row."""
    x, y = triangles.x[triangles.triangles], triangles.y[triangles.triangles]
    area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
    kept: npt.NDArray[np.int32] = triangles.triangles[np.abs(area) > 1e-12]
    return kept


def _levels(norm: Normalize) -> FloatArray:
    low, high = float(norm.vmin or 0.0), float(norm.vmax or 1.0)
    if not isinstance(norm, LogNorm) and type(norm) is not Normalize:
        # Linear below the least value above zero.
        return np.array([low, *_levels(LogNorm(float(norm.inverse(0.05)), high))])
    if isinstance(norm, LogNorm):
        subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high / low < 30.0 else (1.0, 2.0, 5.0) if high / low < 1e4 else (1.0,)
        found = np.asarray(LogLocator(subs=subs, numticks=50).tick_values(low, high))
    else:
        found = np.asarray(MaxNLocator(_LEVELS).tick_values(low, high))
    within = (found > low) & (found < high)
    return np.array([low, *found[within], high])


class Surface(OfGrid):
    """A metric over two numeric keys, as contours."""

    def surface(
        self, x: str, y: str, metric: str = "sojourn_p95_ms", *, pool: bool = False, width: Width | None = None
    ) -> Figure:
        """The median of a metric over two numeric keys as contours, interpolated linearly between the cells' dots."""
        whole = self._grid
        across, up = _numeric(whole, x, "--x"), _numeric(whole, y, "--y")
        grid, shown, found, medians = self._over(across, up, metric, pool)
        norm = panels.color_scale(medians.middle)
        levels = _levels(norm)
        (xs, x_log), (ys, y_log) = panels.positions(across), panels.positions(up)
        with style():
            size = (5.2, 3.8) if len(found) == 1 else (2.7, 2.3)
            drawn, plots, panel_in = panels.layout(found, size, width)
            for plot, panel in zip(plots, found, strict=True):
                known = panel.cells[np.isfinite(medians.middle[panel.cells])]
                at = xs[grid.indices(x)[known]], ys[grid.indices(y)[known]]
                _draw(plot, at, (x_log, y_log), medians.middle[known], levels, norm)
                plot.plot(*at, ".", color="black", markersize=2 if known.size < 200 else 1, alpha=0.7, clip_on=False)
                if x_log:
                    log_axis(plot, "x")
                if y_log:
                    log_axis(plot, "y")
                plot.grid(False)
            panels.name_panels(plots, found, panel_in)
            panels.name_axes(drawn, across.axis_label, up.axis_label)
            panels.color_bar(drawn, plots, ScalarMappable(norm, "viridis"), shown.axis_label)
            panels.headline(
                drawn,
                panels.joined(
                    "dots: cells, linear between them",
                    panels.spread(medians.n, interval=False),
                    panels.pooled_note(grid, whole),
                ),
            )
            return drawn
