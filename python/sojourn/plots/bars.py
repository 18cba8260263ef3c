"""A metric per arm, as bars with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.metrics import Metric, has_queue, metric_called, samples_note
from sojourn.plots.style import (
    Look,
    Width,
    figure,
    log_axis,
    looks_of,
    name_ticks,
    name_y,
    note,
    style,
    wants_log,
    way,
    width_for,
)
from sojourn.statistics import CONFIDENCE, Interval, median_interval

if TYPE_CHECKING:
    from sojourn.results import Direction, Results


def bars(results: Results, name: str, direction: Direction, width: Width | None = None) -> Figure:
    """The median over the repeats of a metric, with its confidence interval."""
    metric = metric_called(name, results)
    arms = results.arms
    intervals = arm_intervals(results, metric, direction)
    with style():
        drawn = figure(width_in=width_for(len(arms)), width=width)
        axes = drawn.add_subplot()
        draw_bars(axes, intervals, looks_of([arm.discipline for arm in arms]), metric.declared.scale)
        name_ticks(axes, [arm.title for arm in arms])
        name_y(axes, metric.axis_label)
        repeated = any(interval.n > 1 for interval in intervals)
        spread = f"median of the repeats, {CONFIDENCE:.0%} confidence interval" if repeated else ""
        note(axes, "" if metric.group else way(results, direction), samples_note(results, metric), spread)
        return drawn


def arm_intervals(results: Results, metric: Metric, direction: Direction) -> list[Interval]:
    """The median over the repeats of each arm, in the unit of the metric's heading."""
    return [
        median_interval(
            [
                metric.value(run.summary, direction) / metric.shown_per
                for run in arm.runs
                if metric.group or has_queue(run.summary, direction)
            ]
        )
        for arm in results.arms
    ]


def draw_bars(
    axes: Axes, intervals: Sequence[Interval], look: Sequence[Look], scale: tuple[float, float] | None = None
) -> None:
    """Bars from zero, or from the beginning of their scale.

    If bars from zero would be too small, the axis is logarithmic, with a mark at each value.
    """
    is_log = wants_log([interval.middle for interval in intervals])
    for place, (interval, one) in enumerate(zip(intervals, look, strict=True)):
        if math.isnan(interval.middle):
            continue
        axes.bar(place, interval.middle, 0.6, color=one.color + "55", edgecolor=one.color)
        if is_log:
            axes.plot(place, interval.middle, "D", color=one.color, markersize=5)
        if interval.n > 1:
            reach = np.array([[interval.middle - interval.low], [interval.high - interval.middle]])
            axes.errorbar(place, interval.middle, yerr=reach, color=one.color, capsize=4, linewidth=1.4)
    axes.grid(axis="x", visible=False)
    if is_log:
        least = min(interval.middle for interval in intervals if interval.middle > 0.0)
        axes.set_ylim(bottom=least / 3)
        log_axis(axes, "y")
    elif scale is not None:
        axes.set_ylim(*scale)
