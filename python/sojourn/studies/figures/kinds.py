"""The kinds of figures: what is drawn on one set of axes, with the published values beside the measured ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import isnan, nan
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from sojourn.figure import distributions
from sojourn.figure.style import DASHES, Look, log_axis
from sojourn.figure.timeseries import mean_over_repeats
from sojourn.frame import series
from sojourn.frame.statistics import FloatArray, mean_interval
from sojourn.studies.figures.words import at, with_unit, words
from sojourn.studies.grid import AmbiguousPlaceError, AxisValue, Cell, Grid, Point
from sojourn.studies.measures import Measure, quantile_level
from sojourn.studies.published import PublishedValue
from sojourn.studies.recipe import FigureSpec
from sojourn.studies.texts import plain

_OF_ONE = frozenset({"value", "mean", "median"})
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), "-.", *DASHES[4:])
_LEVELS = np.array([*np.arange(0.0, 0.995, 0.005), 0.995, 0.998, 0.999, 0.9995, 1.0])
INK, PAPER, RELATIVE = "#000000", "#ffffff", "#bbbbbb"
_Point = tuple[float, float]
_MIDDLE = frozenset({"median", "value", "mean", "p50"})


class Drawn:
    """The published values drawn on some axes, for the legend and for marks that need the final limits."""

    def __init__(self) -> None:
        self.claims: set[str] = set()
        self._has: set[str] = set()
        self._later: list[tuple[Axes, PublishedValue, float, float]] = []

    def upright(self, axes: Axes, mark: PublishedValue, x: float, width: float, *, named: bool = True) -> None:
        """Draws a mark at a position of the horizontal axis: a diamond, or a band as wide as a box."""
        self._note(mark)
        if mark.bound is not None:
            axes.plot([x - width / 2, x + width / 2], [mark.low] * 2, color=INK, linewidth=1.0, zorder=6)
            self._bound(axes, mark, x - width / 2, x + width / 2)
        elif mark.low != mark.high:
            band = Rectangle((x - width / 2, mark.low), width, mark.high - mark.low, zorder=5)
            band.set(facecolor=INK + "22", edgecolor=INK, linewidth=0.8, linestyle="--" if mark.relative else "-")
            axes.add_patch(band)
            axes.update_datalim([(x, mark.low), (x, mark.high)])
            axes.autoscale_view()
        else:
            self._diamond(axes, mark, x, mark.low)
        if named and mark.statistic not in _MIDDLE:
            text = mark.statistic.replace("_", ".")
            axes.annotate(text, (x, mark.high), (4, 2), textcoords="offset points", fontsize=6, zorder=7)

    def level(self, axes: Axes, mark: PublishedValue, start: float, end: float, at: float, color: str) -> None:
        """Draws a level over time, with its diamond between its ends."""
        self._note(mark)
        if mark.bound is not None:
            axes.plot([start, end], [mark.low] * 2, color=color, linewidth=0.9, linestyle=(0, (4, 2)), zorder=5)
            self._bound(axes, mark, start, end)
        elif mark.low != mark.high:
            axes.fill_between([start, end], mark.low, mark.high, color=color, alpha=0.2, linewidth=0, zorder=5)
        else:
            axes.plot([start, end], [mark.low] * 2, color=color, linewidth=0.9, linestyle=(0, (4, 2)), zorder=5)
            self._diamond(axes, mark, start + at * (end - start), mark.low, color)

    def point(self, axes: Axes, mark: PublishedValue, low: _Point, high: _Point, color: str) -> None:
        """Draws a mark at a point, or between two."""
        self._note(mark)
        if low == high:
            self._diamond(axes, mark, *low, color)
            if mark.bound is not None:
                moved = 14 if mark.bound in (">", ">=") else -14
                arrow = {"arrowstyle": "<-", "color": INK, "linewidth": 0.9}
                axes.annotate("", low, xytext=(moved, 0), textcoords="offset points", arrowprops=arrow)
        else:
            axes.plot(*zip(low, high, strict=True), color=INK, linewidth=4, alpha=0.35, zorder=6)

    def finish(self) -> None:
        """Draws the bands of bounds, which extend to the limits of the axes."""
        for axes, mark, start, end in self._later:
            bottom, top = axes.get_ylim()
            limits = axes.get_xlim()
            reach = top if mark.bound in (">", ">=") else bottom
            axes.fill_between([start, end], mark.low, reach, color=INK, alpha=0.09, linewidth=0, zorder=1)
            axes.set_ylim(bottom, top)
            axes.set_xlim(limits)

    def handles(self) -> Iterable[Artist]:
        """The legend's entries."""
        if "number" in self._has:
            yield _entry(PAPER, "published")
        if "relative" in self._has:
            yield _entry(RELATIVE, "published gain")
        if "band" in self._has:
            yield Patch(facecolor=INK + "22", edgecolor=INK, label="published range")

    def _note(self, mark: PublishedValue) -> None:
        self.claims.add(mark.claim.id)
        is_number = mark.low == mark.high and mark.bound is None
        self._has.add("band" if not is_number else "relative" if mark.relative else "number")

    def _bound(self, axes: Axes, mark: PublishedValue, start: float, end: float) -> None:
        """Leaves room on the accepted side of a bound; its band is drawn last."""
        beyond = 1.15 if mark.bound in (">", ">=") else 0.9
        axes.update_datalim([(start, beyond * mark.low)])
        axes.autoscale_view(scalex=False)
        self._later.append((axes, mark, start, end))

    def _diamond(self, axes: Axes, mark: PublishedValue, x: float, y: float, color: str = PAPER) -> None:
        face = RELATIVE if mark.relative and color == PAPER else color
        axes.plot(
            [x], [y], "D", color=face, markeredgecolor=INK, markersize=4.5, markeredgewidth=0.9, zorder=8, clip_on=False
        )


@dataclass(frozen=True)
class Subplot:
    """A metric at one value of the panels' axis."""

    axes: Axes
    spec: FigureSpec
    metric: str
    grid: Grid
    at: Mapping[str, AxisValue]
    looks: Mapping[str, Look]
    marks: Sequence[PublishedValue]
    drawn: Drawn

    @property
    def measure(self) -> Measure:
        """The metric on the vertical axis."""
        return self.grid.measures[self.metric]

    @property
    def values(self) -> list[AxisValue | None]:
        """The values of ``x``; None without one."""
        return [*self.grid.values(self.spec.x)] if self.spec.x else [None]

    def place(self, value: AxisValue | None) -> Mapping[str, AxisValue]:
        """The place of one of ``values`` here."""
        return self.at if value is None else {**self.at, self.spec.x: value}

    def cells(self, scheme: str, value: AxisValue | None = None) -> list[Cell]:
        """The cells of a scheme here."""
        return list(self.grid.at(scheme, self.place(value)))

    def of_runs(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[float]:
        """A metric's statistic of every run of some cells."""
        measure = self.grid.measures[metric]
        return [measure.statistic(run, statistic, self.known_at(cell)) for cell in cells for run in cell.runs]

    def known_at(self, cell: Cell) -> Point:
        """The values of axes and constants at a cell."""
        return {**self.grid.constants, **cell.set}

    def over_repeats(self, metric: str, statistic: str, cell: Cell) -> float:
        """A metric's statistic of a cell, as for claims: the mean over its repeats, or of all combined."""
        found = self.grid.of_repeats(cell.label, metric, statistic, cell.set)
        known = [one for one in found if not isnan(one)]
        return fmean(known) if known else nan


def draw_box(plot: Subplot) -> None:
    """Boxes over ``x``, side by side for each scheme."""
    spec, axes = plot.spec, plot.axes
    ticks = plot.values
    width = 0.8 / len(plot.looks)
    for index, (scheme, look) in enumerate(plot.looks.items()):
        offset = (index - (len(plot.looks) - 1) / 2) * width
        for tick, value in enumerate(ticks):
            cells = plot.cells(scheme, value)
            distributions.draw_boxes(axes, [tick + offset], [_box(plot, cells)], [look], width=0.8 * width)
            medians = (
                [] if spec.of_runs else [one for one in plot.of_runs(plot.metric, "median", cells) if not isnan(one)]
            )
            if len(medians) > 1:
                ends = [min(medians), max(medians)]
                axes.plot([tick + offset] * 2, ends, color="black", linewidth=1.1, solid_capstyle="butt", zorder=4)
            for mark in _marks(plot, scheme, value):
                plot.drawn.upright(axes, mark, tick + offset, 0.9 * width, named=not spec.of_runs)
    names = [plain(value) for value in ticks if value is not None]
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel(words(spec.x))


def draw_bars(plot: Subplot) -> None:
    """Means with their intervals, grouped by scheme; in a group side by side by metric and by the values of ``x``."""
    spec, axes = plot.spec, plot.axes
    metrics = (plot.metric, *spec.beside)
    ticks = plot.values
    count = len(ticks) * len(metrics)
    width = 0.8 / count
    for group, (scheme, look) in enumerate(plot.looks.items()):
        bars = [(value, metric) for metric in metrics for value in ticks]
        for index, (value, metric) in enumerate(bars):
            x = group + (index - (count - 1) / 2) * width
            interval = mean_interval(plot.of_runs(metric, "value", plot.cells(scheme, value)))
            shown = (ticks.index(value), len(ticks)) if spec.x else (index, count)
            face = to_rgba(look.color, shade(*shown))
            axes.bar(x, interval.middle, 0.9 * width, color=face, edgecolor=look.color, linewidth=0.8)
            if interval.n > 1:
                axes.plot([x, x], [interval.low, interval.high], color="black", linewidth=0.9, zorder=4)
            if metric == plot.metric:
                for mark in _marks(plot, scheme, value):
                    plot.drawn.upright(axes, mark, x, 0.9 * width)
    if spec.x and spec.beside:
        middles = [(index + 0.5) * len(ticks) - count / 2 for index in range(len(metrics))]
        positions = [group + middle * width for group in range(len(plot.looks)) for middle in middles]
        axes.set_xticks(positions, [*metrics] * len(plot.looks))
    else:
        axes.set_xticks([])
    axes.set_xlim(-0.6, len(plot.looks) - 0.4)


def shade(index: int, count: int) -> float:
    """The darkness of the fill of a group's bars, from the first to the last."""
    return 0.35 if count == 1 else 0.15 + 0.7 * index / (count - 1)


def _marks(plot: Subplot, scheme: str, value: AxisValue | None) -> list[PublishedValue]:
    place = plot.place(value)
    drawn = {plot.spec.statistic} if plot.spec.statistic not in _OF_ONE else _OF_ONE
    return [
        mark
        for mark in plot.marks
        if mark.scheme == scheme and mark.is_at(place) and (not plot.spec.of_runs or mark.statistic in drawn)
    ]


def _box(plot: Subplot, cells: Sequence[Cell]) -> distributions.Box | None:
    low, high = plot.spec.whiskers
    levels = (low, 25, 50, 75, high)
    if plot.spec.of_runs:
        values = [one for one in plot.of_runs(plot.metric, plot.spec.statistic, cells) if not isnan(one)]
        box = np.percentile(values, levels).tolist() if values else [nan]
    else:
        if len(cells) > 1:
            raise AmbiguousPlaceError(f"figure {plot.spec.name}: several places share a box; name their axis in where")
        box = [plot.over_repeats(plot.metric, f"p{level}", cell) for cell in cells for level in levels] or [nan]
    return None if any(map(isnan, box)) else distributions.Box(*box)


def draw_ellipse(plot: Subplot) -> None:
    """Per scheme a dot per run, the medians as a circle, from three runs on their 1-sigma ellipse."""
    axes, spec = plot.axes, plot.spec
    for scheme, look in plot.looks.items():
        cells = plot.cells(scheme)
        sample = np.column_stack([plot.of_runs(metric, "mean", cells) for metric in (spec.x, plot.metric)])
        distributions.draw_ellipse(axes, sample, look.color, is_log=True)
    log_axis(axes, "x", few=100.0)
    axes.invert_xaxis()
    axes.set_xlabel(f"{with_unit(plot.grid.measures[spec.x])}, less to the right")


def draw_spread(plot: Subplot) -> None:
    """Per scheme, a metric's mean against the distribution of another, whose box and whiskers are horizontal."""
    axes, spec = plot.axes, plot.spec
    low, high = spec.whiskers
    for scheme, look in plot.looks.items():
        for cell in plot.cells(scheme):
            heights = plot.of_runs(plot.metric, "mean", [cell])
            y = float(np.nanmean(heights))
            ends = [float(np.nanmean(plot.of_runs(spec.x, f"p{level}", [cell]))) for level in (low, 25, 50, 75, high)]
            axes.plot([ends[0], ends[-1]], [y, y], "|-", color=look.color, linewidth=1.0, markersize=6)
            axes.plot(ends[1:4:2], [y, y], color=look.color, linewidth=4.5, alpha=0.55, solid_capstyle="butt")
            axes.plot([ends[2]] * 2, [min(heights), max(heights)], color=look.color, linewidth=1.0)
            axes.plot([ends[2]], [y], "o", color=look.color, markersize=4)
            for mark in plot.marks:
                is_drawn = mark.metric == spec.x and quantile_level(mark.statistic) is not None
                if is_drawn and mark.scheme == scheme and mark.is_at(cell.set):
                    plot.drawn.point(axes, mark, (mark.low, y), (mark.high, y), look.color)
    if spec.log:
        log_axis(axes, "x", few=100.0)
    elif spec.from_zero:
        axes.set_xlim(left=0)
    axes.set_xlabel(with_unit(plot.grid.measures[spec.x]))


def draw_series(plot: Subplot) -> None:
    """The metric over time: of one run or, with bins, the mean over the repeats in a band of its interval."""
    axes, spec = plot.axes, plot.spec
    for scheme, look in plot.looks.items():
        for cell in plot.cells(scheme):
            # All runs if they can be put in the same bins, otherwise the first.
            runs = cell.runs if spec.bin_s > 0.0 else cell.runs[:1]
            found = [plot.measure.series(run, plot.known_at(cell)) for run in runs]
            rows = [series.binned(one, spec.bin_s) if spec.bin_s > 0.0 else one for one in found if one is not None]
            if len(rows) > 1:
                t_s, values = series.aligned(rows)
                low, middle, high = mean_over_repeats(values)
                axes.fill_between(t_s, low, high, color=look.color, alpha=0.18, linewidth=0)
                axes.plot(t_s, middle, color=look.color, linewidth=0.9)
            elif rows:
                axes.plot(rows[0].t_s, rows[0].value, color=look.color, linewidth=0.7, alpha=0.85)
    if spec.log and plot.metric == spec.metric:
        log_axis(axes, "y")
    axes.margins(x=0)
    axes.set_xlabel("time [s]")
    start, end = axes.get_xlim()
    for index, mark in enumerate(plot.marks):
        if mark.is_at(plot.at) and mark.scheme in plot.looks:
            _draw_mark(plot, mark, start, end, 0.96 - 0.05 * (index % 6))
    axes.set_xlim(start, end)


def _draw_mark(plot: Subplot, mark: PublishedValue, start: float, end: float, at: float) -> None:
    measure = plot.grid.measures[mark.metric]
    color = plot.looks[mark.scheme].color
    if measure.at_least is None:
        begin, finish = max(start, measure.from_s), min(end, measure.end_s)
        plot.drawn.level(plot.axes, mark, begin, finish, at, color)
    elif measure.tell not in (None, "share"):
        plot.drawn.point(plot.axes, mark, (mark.low, measure.at_least), (mark.high, measure.at_least), color)


def draw_cdf(plot: Subplot) -> None:
    """The distribution function: a line per scheme, and per value of ``x``, distinguished by dashes."""
    axes, spec = plot.axes, plot.spec
    for scheme, look in plot.looks.items():
        for value, dashes in zip(plot.values, cycle(_DASHES), strict=False):
            place = plot.place(value)
            for cell in plot.grid.at(scheme, place):
                _draw_cell(plot, cell, look.color, dashes)
            for mark in plot.marks:
                level = quantile_level(mark.statistic)
                if mark.scheme == scheme and mark.is_at(place) and level is not None and not spec.of_runs:
                    plot.drawn.point(axes, mark, (mark.low, level), (mark.high, level), look.color)
    if spec.log and plot.metric == spec.metric:
        log_axis(axes, "x")
    elif spec.from_zero:
        axes.set_xlim(left=0)
    axes.set_ylim(0, 1.03)
    if spec.x:
        for value, dashes in zip(plot.values, cycle(_DASHES), strict=False):
            if value is not None:
                axes.plot([], [], color="black", linestyle=dashes, label=at(spec.x, value))
        axes.legend(loc="lower right", fontsize=7)


def _draw_cell(plot: Subplot, cell: Cell, color: str, dashes: object) -> None:
    style: dict[str, Any] = {"color": color, "linestyle": dashes, "linewidth": 1.1}
    if plot.spec.of_runs:
        values = np.sort(plot.of_runs(plot.metric, plot.spec.statistic, [cell]))
        plot.axes.plot(*distributions.steps([(values, np.arange(1.0, values.size + 1))]), **style)
        return
    curves = np.array([plot.measure.quantiles(run, _LEVELS, plot.known_at(cell)) for run in cell.runs])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle, low, high = np.nanmean(curves, axis=0), np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)
    if len(curves) > 1:
        plot.axes.fill_betweenx(_LEVELS, low, high, color=color, alpha=0.15, linewidth=0)
    plot.axes.plot(middle, _LEVELS, **style)


def draw_packets(plot: Subplot) -> None:
    """Arrivals above, departures below, each as wide as its transmission and as high as the rate; lines between."""
    axes, measure = plot.axes, plot.measure
    for scheme, look in plot.looks.items():
        for cell in plot.cells(scheme):
            found = series.passages(cell.runs[0], measure.directions[0])
            if found is None:
                continue
            arriving, leaving = _top_mbps(found.arrival_s, found.bits), _top_mbps(found.departure_s, found.bits)
            gap = 0.25 * max(arriving, leaving)
            wide: dict[str, Any] = {
                "align": "edge",
                "color": look.color + "77",
                "edgecolor": look.color,
                "linewidth": 0.6,
            }
            axes.bar(found.arrival_s, arriving, found.bits / arriving / 1e6, bottom=gap, **wide)
            axes.bar(found.departure_s, -leaving, found.bits / leaving / 1e6, bottom=-gap, **wide)
            ends = np.stack([found.arrival_s, found.departure_s])
            axes.plot(ends, [gap, -gap], color=look.color, linewidth=0.7)
            ticks = {gap: 0.0, gap + arriving: arriving, -gap: 0.0, -gap - leaving: leaving}
            axes.set_yticks(list(ticks), [f"{rate:.3g}" for rate in ticks.values()])
    axes.set_xlim(measure.from_s, measure.to_s)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("leaving, arriving [Mbit/s]")


def _top_mbps(t_s: FloatArray, bits: FloatArray) -> float:
    """The highest rate from one packet to the next."""
    order = np.argsort(t_s, kind="stable")
    gaps = np.diff(t_s[order])
    apart = gaps > 0.0
    return float((bits[order][:-1][apart] / gaps[apart]).max() / 1e6) if apart.any() else 1.0


def _entry(color: str, label: str) -> Line2D:
    return Line2D([], [], marker="D", linestyle="", color=color, markeredgecolor=INK, markersize=4.5, label=label)


DRAW: dict[str, Callable[[Subplot], None]] = {
    "box": draw_box,
    "bars": draw_bars,
    "series": draw_series,
    "cdf": draw_cdf,
    "ellipse": draw_ellipse,
    "spread": draw_spread,
    "packets": draw_packets,
}
