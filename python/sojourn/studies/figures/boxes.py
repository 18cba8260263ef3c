"""Boxes and bars: a number or a distribution per scheme and place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgba

from sojourn.figure.distributions import Box, draw_boxes
from sojourn.frame.statistics import mean_interval
from sojourn.studies.figures.panel import Panel
from sojourn.studies.figures.words import words
from sojourn.studies.grid import AmbiguousPlaceError, AxisValue, Cell
from sojourn.studies.published import Mark
from sojourn.studies.sides import plain

_OF_ONE = frozenset({"value", "mean", "median"})
"""Statistics that are equal for a single number per run."""


def draw_box(panel: Panel) -> None:
    """Boxes over ``x``, side by side for each scheme."""
    spec, axes = panel.spec, panel.axes
    ticks: list[AxisValue | None] = [*panel.grid.values(spec.x)] if spec.x else [None]
    width = 0.8 / len(panel.looks)
    for index, (scheme, look) in enumerate(panel.looks.items()):
        offset = (index - (len(panel.looks) - 1) / 2) * width
        for at, value in enumerate(ticks):
            cells = _cells(panel, scheme, value)
            draw_boxes(axes, [at + offset], [_box(panel, cells)], [look], width=0.8 * width)
            _range_of_medians(panel, cells, at + offset)
            for mark in _marks(panel, scheme, value):
                panel.drawn.upright(axes, mark, at + offset, 0.9 * width, named=not spec.of_runs)
    names = [plain(value) for value in ticks if value is not None]
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel(words(spec.x))


def draw_bars(panel: Panel) -> None:
    """Means over the repeats with their intervals, in groups by scheme or, with ``x``, by its values.

    With ``x`` and several metrics, the values of ``x`` stand side by side for each metric, whose names are at the axis.
    """
    spec, axes = panel.spec, panel.axes
    metrics = (panel.metric, *spec.beside)
    ticks: list[AxisValue | None] = [*panel.grid.values(spec.x)] if spec.x else [None]
    count = len(ticks) * len(metrics)
    width = 0.8 / count
    for group, (scheme, look) in enumerate(panel.looks.items()):
        bars = [(value, metric) for metric in metrics for value in ticks]
        for index, (value, metric) in enumerate(bars):
            x = group + (index - (count - 1) / 2) * width
            interval = mean_interval(panel.of_runs(metric, "value", _cells(panel, scheme, value)))
            shown = (ticks.index(value), len(ticks)) if spec.x else (index, count)
            face = to_rgba(look.color, shade(*shown))
            axes.bar(x, interval.middle, 0.9 * width, color=face, edgecolor=look.color, linewidth=0.8)
            if interval.n > 1:
                axes.plot([x, x], [interval.low, interval.high], color="black", linewidth=0.9, zorder=4)
            if metric == panel.metric:
                for mark in _marks(panel, scheme, value):
                    panel.drawn.upright(axes, mark, x, 0.9 * width)
    if spec.x and spec.beside:
        middles = [(index + 0.5) * len(ticks) - count / 2 for index in range(len(metrics))]
        positions = [group + middle * width for group in range(len(panel.looks)) for middle in middles]
        axes.set_xticks(positions, [*metrics] * len(panel.looks))
    else:
        axes.set_xticks([])
    axes.set_xlim(-0.6, len(panel.looks) - 0.4)


def shade(index: int, count: int) -> float:
    """The darkness of the fill of a group's bars, from the first to the last."""
    return 0.35 if count == 1 else 0.15 + 0.7 * index / (count - 1)


def _cells(panel: Panel, scheme: str, value: AxisValue | None) -> list[Cell]:
    place = panel.at if value is None else {**panel.at, panel.spec.x: value}
    return list(panel.grid.at(scheme, place))


def _marks(panel: Panel, scheme: str, value: AxisValue | None) -> list[Mark]:
    place = panel.at if value is None else {**panel.at, panel.spec.x: value}
    drawn = {panel.spec.statistic} if panel.spec.statistic not in _OF_ONE else _OF_ONE
    return [
        mark
        for mark in panel.marks
        if mark.scheme == scheme and mark.is_at(place) and (not panel.spec.of_runs or mark.statistic in drawn)
    ]


def _box(panel: Panel, cells: Sequence[Cell]) -> Box | None:
    low, high = panel.spec.whiskers
    levels = (low, 25, 50, 75, high)
    if panel.spec.of_runs:
        values = [v for v in panel.of_runs(panel.metric, panel.spec.statistic, cells) if not np.isnan(v)]
        box = [float(np.percentile(values, level)) for level in levels] if values else [np.nan]
    else:
        if len(cells) > 1:
            raise AmbiguousPlaceError(f"figure {panel.spec.name}: several places share a box; name their axis in where")
        box = [panel.over_repeats(panel.metric, f"p{level}", cell) for cell in cells for level in levels] or [np.nan]
    return None if any(np.isnan(box)) else Box(*box)


def _range_of_medians(panel: Panel, cells: Sequence[Cell], x: float) -> None:
    """The range of the repeats' medians."""
    if panel.spec.of_runs:
        return
    medians = [value for value in panel.of_runs(panel.metric, "median", cells) if not np.isnan(value)]
    if len(medians) > 1:
        ends = [min(medians), max(medians)]
        panel.axes.plot([x, x], ends, color="black", linewidth=1.1, solid_capstyle="butt", zorder=4)
