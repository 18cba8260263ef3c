"""A metric per arm, as bars with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure.names import name_arms
from sojourn.figure.of_results import OfResults
from sojourn.figure.style import (
    Look,
    Width,
    figure,
    log_axis,
    name_y,
    note,
    own_times,
    style,
    wants_log,
    where,
    width_for,
)
from sojourn.frame.metrics import Metric, has_queue, metric_called, samples_note
from sojourn.frame.results import Results
from sojourn.frame.statistics import CONFIDENCE, Interval, median_interval


def arm_intervals(results: Results, metric: Metric, queue: str) -> list[Interval]:
    """The median over the repeats of each arm, in the unit of the metric's heading."""
    is_of_queue = metric.declared.over in ("queue", "inner_queue")
    if metric.declared.over == "direction":
        queue = queue.rpartition("/")[2]
    return [
        median_interval(
            [
                metric.value(run.summary, queue) / metric.declared.per
                for run in arm.runs
                if not is_of_queue or has_queue(run.summary, queue)
            ]
        )
        for arm in results.arms
    ]


def draw_bars(
    axes: Axes, intervals: Sequence[Interval], look: Sequence[Look], scale: tuple[float, float] | None = None
) -> None:
    """Bars from zero, or from the beginning of their scale.

    Without a scale, if bars from zero would be too small, the axis is logarithmic, with a mark at each value: there the
    length of a bar means nothing.
    """
    is_log = scale is None and wants_log([interval.middle for interval in intervals])
    for at, (interval, one) in enumerate(zip(intervals, look, strict=True)):
        if math.isnan(interval.middle):
            continue
        if is_log:
            axes.plot(at, interval.middle, "D", color=one.color, markersize=5)
        else:
            axes.bar(at, interval.middle, 0.6, color=one.color + "55", edgecolor=one.color)
        if interval.n > 1:
            reach = np.array([[interval.middle - interval.low], [interval.high - interval.middle]])
            axes.errorbar(at, interval.middle, yerr=reach, color=one.color, capsize=4, linewidth=1.4)
    axes.grid(axis="x", visible=False)
    if is_log:
        known = [end for one in intervals for end in (one.middle, one.low, one.high) if end > 0.0]
        axes.set_ylim(min(known) / 2, max(known) * 2)
        log_axis(axes, "y")
    elif scale is not None:
        axes.set_ylim(*scale)
    elif not any(interval.high > 0.0 for interval in intervals):
        axes.set_ylim(0.0, 1.0)
    for at, interval in enumerate(intervals):
        if interval.middle == 0.0:  # a bar without height, or none on a logarithmic axis
            axes.text(at, axes.get_ylim()[0], "0", color=look[at].color, ha="center", va="bottom")


class Bars(OfResults):
    """A metric per arm."""

    def bars(self, metric: str = "goodput_bps", queue: str = "down", *, width: Width | None = None) -> Figure:
        """A metric as bars: medians over the repeats with their 95 % confidence intervals.

        ``metric`` is a column of the results table, or one of a group of flows: ``"movie.rtt_p95_ms"``, or ``"mos"`` if
        only one group has it.
        """
        results = self._results
        shown = metric_called(metric, results)
        arms = results.arms
        intervals = arm_intervals(results, shown, queue)
        with style():
            drawn = figure(width_in=width_for(len(arms)), width=width)
            axes = drawn.add_subplot()
            draw_bars(axes, intervals, self._looks, shown.declared.scale)
            name_arms([axes], [arm.title for arm in arms], drawn.get_figwidth() - 0.7)
            name_y(axes, shown.axis_label)
            repeated = any(interval.n > 1 for interval in intervals)
            spread = f"median of the repeats, {CONFIDENCE:.0%} confidence interval" if repeated else ""
            note(
                axes,
                where(results, shown, queue),
                samples_note(results, shown),
                spread,
                own_times(results, shown, queue),
            )
            return drawn
