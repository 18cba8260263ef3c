"""Figures of many cells: a metric over one or two keys, two metrics against each other, what a metric depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes as Plot
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator
from matplotlib.tri import Triangulation

from sojourn import _core
from sojourn.figure import panels, style
from sojourn.figure.bars import MOST_LINES
from sojourn.figure.covered import COVERED, uncover
from sojourn.figure.distributions import widen
from sojourn.figure.names import name_places
from sojourn.figure.style import COLORS, Look, Width
from sojourn.frame.cells import LABEL, Axis, CellTable
from sojourn.frame.registry import Column, short
from sojourn.frame.statistics import CONFIDENCE, FloatArray, Intervals

_MOST_WRITTEN = 150  # most cells of a panel whose values are written into them
_LEVELS = 12


def _write(plot: Plot, values: FloatArray, norm: object, room_in: float) -> None:
    texts = {index: short(float(value)) for index, value in np.ndenumerate(values) if np.isfinite(value)}
    longest = max(map(len, texts.values()), default=1)
    size = min(7.5, 72.0 * (room_in - 0.04) / (0.65 * longest))
    if size < 4.5:
        return
    for (row, column), text in texts.items():
        is_dark = norm(values[row, column]) < 0.6  # type: ignore[operator]
        plot.text(column, row, text, ha="center", va="center", fontsize=size, color="white" if is_dark else "black")


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


def front(cost: FloatArray, gain: FloatArray) -> npt.NDArray[np.int64]:
    """The indices of the points that no other dominates, by cost: with no more cost and no less gain, one better."""
    known = np.flatnonzero(np.isfinite(cost) & np.isfinite(gain))
    # By cost, and at the same cost the largest gain first.
    ordered = known[np.lexsort((-gain[known], cost[known]))]
    found = []
    best_gain, its_cost = -np.inf, np.nan
    for index in ordered:
        equal = gain[index] == best_gain and cost[index] == its_cost
        if gain[index] > best_gain or equal:
            found.append(index)
            best_gain, its_cost = gain[index], cost[index]
    return np.array(found, dtype=np.int64)


def _looks(grid: CellTable, each: Axis) -> list[Look]:
    """How the lines are drawn: queues as everywhere, numbers as shades from dark to bright."""
    if each.key == LABEL:
        return style.looks_of([grid.discipline(label) for label in each.texts])
    if each.numbers is None:
        return style.looks(len(each.texts))
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, len(each.texts)))
    return [
        look._replace(color=matplotlib.colors.to_hex(shade))
        for look, shade in zip(style.looks(len(each.texts)), shades, strict=True)
    ]


class OfGrid:
    """Cells to be drawn; the methods are figures."""

    def __init__(self, grid: CellTable) -> None:
        self._grid = grid

    def _over(
        self, across: Axis, up: Axis, metric: str, pool: bool
    ) -> tuple[CellTable, Column, list[panels.Panel], Intervals]:
        """The cells to draw over two keys, the metric, the panels, and the medians of each cell."""
        if across.key == up.key:
            raise _core.ExperimentError(f'--y: got "{up.key}", as --x; must be another key')
        shown = self._grid.column(metric)
        grid = self._grid.pooled([across.key, up.key, LABEL]) if pool else self._grid
        return grid, shown, panels.panels(grid, [across.key, up.key]), grid.intervals(shown)

    def heatmap(
        self, x: str, y: str, metric: str = "sojourn_p95_ms", *, pool: bool = False, width: Width | None = None
    ) -> Figure:
        """The median of a metric over two keys, as colours. Hatched cells have no runs with the metric."""
        whole = self._grid
        across, up = whole.axis(x, "--x"), whole.axis(y, "--y")
        grid, shown, found, medians = self._over(across, up, metric, pool)
        columns, rows = len(across.texts), len(up.texts)
        norm = panels.color_scale(medians.middle)
        with style.applied():
            size = min(6.0, max(1.9, 0.7 + 0.42 * columns)), min(5.0, max(1.5, 0.6 + 0.26 * rows))
            page = panels.Page(found, size, width, below=across)
            wide_in, height_in = page.drawn.get_size_inches()
            height_in /= max(1, len(page.plots) * page.panel_in / wide_in)
            tables = []
            for plot, panel in page.each():
                values = np.full((rows, columns), np.nan)
                values[grid.indices(y)[panel.cells], grid.indices(x)[panel.cells]] = medians.middle[panel.cells]
                # Behind the colours, so that it shows where there are none.
                plot.add_patch(
                    Rectangle((-0.5, -0.5), columns, rows, fill=False, hatch="////", edgecolor="#b8b8b8", linewidth=0)
                )
                panels.draw_map(plot, values, norm=norm, cmap="viridis", rasterized=values.size > 2000)
                tables.append(values)
                name_places(plot, "x", panels.number_texts(across), page.panel_in - 0.5)
                name_places(plot, "y", panels.number_texts(up), max(0.8, min(height_in, 5.0) - 0.6))
            missing = (
                "hatched: no value" if np.isnan(medians.middle).any() or len(grid) < columns * rows * len(found) else ""
            )
            notes = panels.spread(medians.n, interval=False), panels.pooled_note(grid, whole), missing
            colors = ScalarMappable(norm, "viridis"), shown.axis_label
            drawn = page.finish(across.axis_label, up.axis_label, *notes, colors=colors)
            if columns * rows <= _MOST_WRITTEN:
                # Only the layout tells how much room there is.
                drawn.draw_without_rendering()
                for plot, values in zip(page.plots, tables, strict=True):
                    _write(plot, values, norm, plot.get_window_extent().width / drawn.dpi / columns)
            return drawn

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
        with style.applied():
            size = (5.2, 3.8) if len(found) == 1 else (2.7, 2.3)
            page = panels.Page(found, size, width)
            for plot, panel in page.each():
                known = panel.cells[np.isfinite(medians.middle[panel.cells])]
                at = xs[grid.indices(x)[known]], ys[grid.indices(y)[known]]
                _draw(plot, at, (x_log, y_log), medians.middle[known], levels, norm)
                plot.plot(*at, ".", color="black", markersize=2 if known.size < 200 else 1, alpha=0.7, clip_on=False)
                if x_log:
                    style.log_axis(plot, "x")
                if y_log:
                    style.log_axis(plot, "y")
                plot.grid(False)
            notes = panels.spread(medians.n, interval=False), panels.pooled_note(grid, whole)
            colors = ScalarMappable(norm, "viridis"), shown.axis_label
            return page.finish(
                across.axis_label, up.axis_label, "dots: cells, linear between them", *notes, colors=colors
            )

    def pareto(
        self, x: str = "sojourn_p95_ms", y: str = "goodput_bps", *, pool: bool = False, width: Width | None = None
    ) -> Figure:
        """Two metrics against each other: less of ``x`` and more of ``y`` are better.

        A point is a cell. A panel has the queues with all values of their own keys, ``queue.…``, at one combination of
        the values of the other keys: link, traffic and so on. Its line is the Pareto front: no other point of the panel
        is as good as one of its points in both metrics and better in one. With ``pool`` there is one panel.
        """
        whole = self._grid
        cost, gain = whole.column(x, "--x"), whole.column(y, "--y")
        # What an operator chooses: the queue and its parameters. The other keys say where it is used.
        chosen = [key for key in whole.axes if pool or key == LABEL or key.startswith("queue.")]
        found = panels.panels(whole, chosen)
        costs, gains = whole.intervals(cost), whole.intervals(gain)
        labels = whole.axes[LABEL]
        looks = style.looks_of([whole.discipline(label) for label in labels.texts])
        known = costs.middle[np.isfinite(costs.middle)]
        is_log = bool(known.size) and bool((known > 0.0).all()) and style.wants_log(known.tolist())
        is_dense = len(whole) / len(found) > 60
        with style.applied():
            size = (5.2, 3.6) if len(found) == 1 else (2.6, 2.1)
            # Goodputs of different links differ by far: each panel has its own scale.
            page = panels.Page(found, size, width, share_y=False)
            texts = panels.legend_texts(labels.texts, page.drawn)
            marks: list[list[tuple[str, Line2D]]] = [[] for _ in page.plots]
            for (plot, panel), own in zip(page.each(), marks, strict=True):
                best = panel.cells[front(costs.middle[panel.cells], gains.middle[panel.cells])]
                plot.step(
                    costs.middle[best], gains.middle[best], where="post", color="#555555", linewidth=1.0, zorder=1.5
                )
                for value, (text, look) in enumerate(zip(texts, looks, strict=True)):
                    of_label = panel.cells[whole.indices(LABEL)[panel.cells] == value]
                    for cells, on_front in (
                        (np.setdiff1d(of_label, best), False),
                        (np.intersect1d(of_label, best), True),
                    ):
                        own += [(text, line) for line in plot.plot(
                            costs.middle[cells], gains.middle[cells], linestyle="none", marker=look.marker,
                            markersize=(3 if is_dense else 4.5) + on_front,
                            markerfacecolor=look.color + ("" if on_front else "55"),
                            markeredgecolor="black" if on_front else look.color,
                            markeredgewidth=0.8 if on_front else 0.4,
                            label=text if on_front else None, zorder=3 if on_front else 2,
                        )]  # fmt: skip
            for plot in page.plots:
                if is_log:
                    style.log_axis(plot, "x")
                else:
                    plot.xaxis.set_major_locator(MaxNLocator(6 if len(found) == 1 else 3))
                widen(plot)
            page.plots[0].invert_xaxis()
            covered = [uncover(plot, own) for plot, own in zip(page.plots, marks, strict=True)]
            return page.finish(
                f"{cost.axis_label}, less to the right",
                gain.axis_label,
                "line and black edges: Pareto front",
                COVERED if any(covered) else "",
                panels.spread(costs.n, interval=False),
                "all cells together" if pool else "",
                has_legend=len(texts) > 1,
            )

    def lines(
        self,
        x: str,
        y: str = "label",
        metric: str = "sojourn_p95_ms",
        *,
        pool: bool = False,
        width: Width | None = None,
    ) -> Figure:
        """The median of a metric over the key ``x`` with its confidence interval, a line for each value of ``y``.

        Marks without a line where the values of ``x`` have no order.
        """
        whole = self._grid
        across, each = whole.axis(x, "--x"), whole.axis(y, "--y")
        if len(each.texts) > MOST_LINES:
            raise _core.ExperimentError(
                f'--y: got "{y}" with {len(each.texts)} values; must have at most {MOST_LINES}: '
                "choose some with --where"
            )
        grid, shown, found, medians = self._over(across, each, metric, pool)
        positions, x_log = panels.positions(across)
        known = medians.middle[np.isfinite(medians.middle)]
        with style.applied():
            size = (5.2, 3.4) if len(found) == 1 else (2.6, 2.1)
            page = panels.Page(found, size, width, below=across)
            texts = panels.legend_texts(each.texts, page.drawn)
            for plot, panel in page.each():
                for value, (text, look) in enumerate(zip(texts, _looks(grid, each), strict=True)):
                    members = panel.cells[grid.indices(y)[panel.cells] == value]
                    members = members[np.argsort(grid.indices(x)[members])]
                    at = positions[grid.indices(x)[members]]
                    # Drawn even if there are none: the legend is that of the first panel.
                    ends = [one[members] for one in (medians.low, medians.middle, medians.high)]
                    several = members.size and medians.n[members].max() > 1
                    joined = across.numbers is not None
                    style.draw_line(plot, at, ends, look, text, band=bool(several), size=3.5, joined=joined)
                if across.numbers is None:
                    name_places(plot, "x", across.texts, page.panel_in - 0.6)
                elif x_log:
                    style.log_axis(plot, "x")
            if known.size and (known > 0.0).all() and style.wants_log(known.tolist()):
                for plot in page.plots:
                    style.log_axis(plot, "y")
            else:
                style.from_zero(page.plots[0])
            return page.finish(
                across.axis_label,
                shown.axis_label,
                "" if y == LABEL else f"lines: {each.words}",
                panels.spread(medians.n, interval=True, is_pooled=grid.is_pooled),
                panels.pooled_note(grid, whole),
                has_legend=len(each.texts) > 1,
            )


@dataclass(frozen=True)
class Indices:
    """The indices of a queue, a value per key; NaN if the metric is the same everywhere."""

    label: str
    keys: tuple[str, ...]
    first: FloatArray
    """First order: the share of the variance that the key causes alone."""
    first_reach: FloatArray
    """Half of the width of its 95 % confidence interval, by bootstrap."""
    total: FloatArray
    """Total: the share that would vanish if the key were fixed, so with all interactions."""
    total_reach: FloatArray


def sensitivity(grid: CellTable, shown: Column, found: Sequence[Indices], width: Width | None) -> Figure:
    """The first-order and total index of each key of a design, a panel per queue."""
    several = len(grid.axes[LABEL].texts) > 1
    named = [panels.Panel(one.label if several else "", np.empty(0, dtype=np.int64)) for one in found]
    names = [grid.axes[key].words for key in found[0].keys]
    with style.applied():
        page = panels.Page(named, (max(2.6, 0.9 + 0.7 * len(names)), 2.4), width)
        for plot, one in zip(page.plots, found, strict=True):
            at = np.arange(len(names), dtype=np.float64)
            for shift, values, reach, color, text in (
                (-0.2, one.first, one.first_reach, COLORS[0], "alone (first order)"),
                (0.2, one.total, one.total_reach, COLORS[5], "with interactions (total)"),
            ):
                plot.bar(at + shift, values, 0.36, yerr=reach, color=color, label=text, capsize=2, ecolor="#444444",
                         error_kw={"elinewidth": 0.8})  # fmt: skip
            plot.axhline(0.0, color="#444444", linewidth=0.6)
            plot.grid(False, axis="x")
            if np.isnan(one.first).all():
                plot.text(0.5, 0.5, "the same everywhere", transform=plot.transAxes, ha="center", color="#555555")
            name_places(plot, "x", names, page.panel_in - 0.6)
        meant = f"{shown.words}: indices of Sobol' with {CONFIDENCE:.0%} confidence intervals"
        return page.finish("", "share of the variance", meant, has_legend=True)
