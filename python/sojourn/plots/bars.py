"""A figure of merit per arm, as bars with confidence intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sojourn.metrics import has_direction, metric_called
from sojourn.plots.style import figure, looks, name_ticks, style, width_for
from sojourn.statistics import CONFIDENCE, median_interval

if TYPE_CHECKING:
    from sojourn.results import Direction, Results


def bars(results: Results, name: str, direction: Direction) -> Figure:
    """The median over the repeats of a metric, with its confidence interval."""
    metric = metric_called(name)
    arms = results.arms
    intervals = [
        median_interval(
            [
                metric.value(run.summary, direction) / metric.shown_per
                for run in arm.runs
                if has_direction(run.summary, direction)
            ]
        )
        for arm in arms
    ]
    with style():
        drawn = figure(width_in=width_for(len(arms)))
        axes = drawn.add_subplot()
        for place, (interval, look) in enumerate(zip(intervals, looks(len(arms)), strict=True)):
            axes.bar(place, interval.middle, 0.6, color=look.color + "55", edgecolor=look.color)
            if interval.n > 1:
                reach = np.array([[interval.middle - interval.low], [interval.high - interval.middle]])
                axes.errorbar(place, interval.middle, yerr=reach, color=look.color, capsize=4, linewidth=1.4)
        name_ticks(axes, [arm.name for arm in arms])
        axes.grid(axis="x", visible=False)
        axes.set(ylabel=metric.axis_label)
        if any(interval.n > 1 for interval in intervals):
            note = f"median of the repeats, {CONFIDENCE:.0%} confidence interval"
            axes.set_title(note, loc="left", color="#555555", fontsize=8)
        return drawn
