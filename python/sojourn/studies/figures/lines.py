"""Lines: a metric over time, and its distribution function."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sojourn.figure.style import log_axis
from sojourn.frame import series
from sojourn.frame.statistics import FloatArray, mean_interval
from sojourn.studies.figures.panel import Panel
from sojourn.studies.figures.words import at
from sojourn.studies.grid import AxisValue, Cell
from sojourn.studies.measures import quantile_level
from sojourn.studies.published import Mark

_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), "-.")
_LEVELS = np.array([*np.arange(0.0, 0.995, 0.005), 0.995, 0.998, 0.999, 0.9995, 1.0])


def draw_series(panel: Panel) -> None:
    """The metric over time: of one run or, with bins, the mean over the repeats in a band of its interval."""
    axes, spec = panel.axes, panel.spec
    for scheme, look in panel.looks.items():
        for cell in panel.cells(scheme):
            rows = _rows(panel, cell)
            if len(rows) > 1:
                t_s, low, middle, high = _over_repeats(rows)
                axes.fill_between(t_s, low, high, color=look.color, alpha=0.18, linewidth=0)
                axes.plot(t_s, middle, color=look.color, linewidth=0.9)
            elif rows:
                axes.plot(rows[0].t_s, rows[0].value, color=look.color, linewidth=0.7, alpha=0.85)
    if spec.log and panel.metric == spec.metric:
        log_axis(axes, "y")
    axes.margins(x=0)
    axes.set_xlabel("time [s]")
    start, end = axes.get_xlim()
    for index, mark in enumerate(panel.marks):
        if mark.is_at(panel.at) and mark.scheme in panel.looks:
            _draw_mark(panel, mark, start, end, 0.96 - 0.05 * (index % 6))
    axes.set_xlim(start, end)


def _rows(panel: Panel, cell: Cell) -> list[series.Series]:
    """The series to draw: all runs if they can be put in the same bins, otherwise the first."""
    runs = cell.runs if panel.spec.bin_s > 0.0 else cell.runs[:1]
    place = {**panel.grid.constants, **cell.point}
    found = [one for run in runs if (one := panel.measure.series(run, place)) is not None]
    return [series.binned(one, panel.spec.bin_s) for one in found] if panel.spec.bin_s > 0.0 else found


def _over_repeats(rows: list[series.Series]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(bins, lower end, mean, upper end) of the mean over the repeats in each bin."""
    bins = np.unique(np.concatenate([row.t_s for row in rows]))
    values = np.full((len(rows), bins.size), np.nan)
    for row, one in zip(values, rows, strict=True):
        row[np.searchsorted(bins, one.t_s)] = one.value
    intervals = [mean_interval(column) for column in values.T]
    low, middle, high = np.array([(one.low, one.middle, one.high) for one in intervals]).T
    return bins, low, middle, high


def _draw_mark(panel: Panel, mark: Mark, start: float, end: float, at: float) -> None:
    measure = panel.grid.measures[mark.metric]
    color = panel.looks[mark.scheme].color
    if measure.at_least is None:
        begin, finish = max(start, measure.part.from_s), min(end, measure.part.to_s)
        panel.drawn.level(panel.axes, mark, begin, finish, at, color)
    elif measure.tell != "share":
        panel.drawn.point(panel.axes, mark, (mark.low, measure.at_least), (mark.high, measure.at_least), color)


def draw_cdf(panel: Panel) -> None:
    """The distribution function: a line per scheme, and per value of ``x``, distinguished by dashes."""
    axes, spec = panel.axes, panel.spec
    values: list[AxisValue | None] = [*panel.grid.values(spec.x)] if spec.x else [None]
    for scheme, look in panel.looks.items():
        for value, dashes in zip(values, _DASHES, strict=False):
            place = panel.at if value is None else {**panel.at, spec.x: value}
            for cell in panel.grid.at(scheme, place):
                _draw_cell(panel, cell, look.color, dashes)
            for mark in panel.marks:
                level = quantile_level(mark.statistic)
                if mark.scheme == scheme and mark.is_at(place) and level is not None and not spec.of_runs:
                    panel.drawn.point(axes, mark, (mark.low, level), (mark.high, level), look.color)
    if spec.log and panel.metric == spec.metric:
        log_axis(axes, "x")
    elif spec.from_zero:
        axes.set_xlim(left=0)
    axes.set_ylim(0, 1.03)
    if spec.x:
        for value, dashes in zip(values, _DASHES, strict=False):
            if value is not None:
                axes.plot([], [], color="black", linestyle=dashes, label=at(spec.x, value))
        axes.legend(loc="lower right", fontsize=7)


def _draw_cell(panel: Panel, cell: Cell, color: str, dashes: object) -> None:
    style: dict[str, Any] = {"color": color, "linestyle": dashes, "linewidth": 1.1}
    if panel.spec.of_runs:
        values = np.sort(panel.of_runs(panel.metric, panel.spec.statistic, [cell]))
        panel.axes.step([values[0], *values], np.arange(values.size + 1) / values.size, where="post", **style)
        return
    place = {**panel.grid.constants, **cell.point}
    curves = np.array([panel.measure.quantiles(run, _LEVELS, place) for run in cell.runs])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle, low, high = np.nanmean(curves, axis=0), np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)
    if len(curves) > 1:
        panel.axes.fill_betweenx(_LEVELS, low, high, color=color, alpha=0.15, linewidth=0)
    panel.axes.plot(middle, _LEVELS, **style)
